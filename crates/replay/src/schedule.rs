//! The flat file that says when each rank loses its CPU. Little-endian 64-bit words:
//!
//! | words | what |
//! |---|---|
//! | [`HEAD`] | the head: [`Head`], in the order of [`field`] |
//! | groups × 2 | a kind of node: its first track, its number of CPUs |
//! | tracks × 4 | a CPU's noise: CPU, number of detours, index of its words, their checksum |
//! | places | draws of where in a trace to start: one per node, one for all, or one per phase, depending on the sync mode |
//! | skews | how much later than the others each node starts, in ns; may be empty |
//! | … | per track: starts, then useful starts, one more of each than it has detours (see [`ProgressClockView`]) |
//!
//! All times are nanoseconds as they are burned, with the scale already applied. If a job has more nodes or phases than the lists of places
//! and skews have entries, the lists repeat.

use core::num::NonZeroU64;

pub use crate::flaw::ScheduleError;
pub use crate::track::LONGEST_NS;
use crate::track::ProgressClockView;

/// The first word: `QUELLRPL`.
pub const MAGIC: u64 = u64::from_le_bytes(*b"QUELLRPL");
/// The version of the layout.
pub const VERSION: u64 = 1;
/// Words of the head.
pub const HEAD: usize = 24;
/// Words of a group.
pub const GROUP: usize = 2;
/// Words of a track's entry.
pub const TRACK: usize = 4;
/// Maximum number of entries in a list, and of words in a file: 32 GiB.
pub const MOST: u64 = 1 << 32;
/// Maximum number of detours that a process logs: 24 MiB.
pub const MOST_EVENTS: u64 = 1 << 20;
/// A timer is set at most this much earlier than its detour: as much of the trace may come all at once.
pub const MOST_EARLY_NS: u64 = 100_000_000;
/// Indices of the head's words.
pub mod field {
    #![allow(missing_docs, reason = "the field of Head documents each")]
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 1;
    pub const WORDS: usize = 2;
    pub const CHECKSUM: usize = 3;
    pub const CONTEXT: usize = 4;
    pub const SYNC: usize = 5;
    pub const OVERHEAD_NS: usize = 6;
    pub const EARLY_NS: usize = 7;
    pub const SMALLEST_GAP_NS: usize = 8;
    pub const LIMIT_NS: usize = 9;
    pub const EPOCH_NS: usize = 10;
    pub const EVENTS: usize = 11;
    pub const PHASE_CALLS: usize = 12;
    pub const RANKED_ONLY: usize = 13;
    pub const GROUPS: usize = 14;
    pub const TRACKS: usize = 15;
    pub const PLACES: usize = 16;
    pub const SKEWS: usize = 17;
    pub const BLOCK_PHASES: usize = 18;
    pub const BLOCK_SEED: usize = 19;
}

/// How a rank's noise is injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// At its MPI calls.
    Boundary,
    /// By timers and signals.
    Timer,
    /// From outside, by a separate process.
    Process,
}

/// How the nodes' noise lines up (De et al. 2008, §V).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Each node at its own place in the trace.
    None,
    /// All nodes at one place, from one instant on.
    Start,
    /// All nodes at one place, drawn again in each phase.
    Phase,
}

/// Calls at which a phase ends, as bits of [`Head::phase_calls`].
pub mod phase_call {
    /// `MPI_Barrier`.
    pub const BARRIER: u64 = 1;
    /// Every other blocking collective that no rank leaves before all have entered.
    pub const COLLECTIVE: u64 = 2;
    /// `MPI_Pcontrol`.
    pub const PCONTROL: u64 = 4;
}

/// The fields of the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Words of the whole file.
    pub words: u64,
    /// FNV-1a over the head after this word, and the tables.
    pub checksum: u64,
    /// How noise is injected.
    pub context: Context,
    /// How the nodes' noise lines up.
    pub sync: Sync,
    /// Injection overhead per detour; each burn is shortened by it.
    pub overhead_ns: u64,
    /// How much earlier than the detour its timer is set to expire.
    pub early_ns: u64,
    /// Minimum time between the end of a detour and the next.
    pub smallest_gap_ns: u64,
    /// Time after which a rank has used up its share of the trace and gets no more noise; 0 for no limit.
    pub limit_ns: u64,
    /// When the trace begins for all ranks, on CLOCK_REALTIME.
    pub epoch_ns: u64,
    /// Maximum number of detours that each process logs in its report.
    pub events: u64,
    /// Calls at which a phase ends: bits of [`phase_call`].
    pub phase_calls: u64,
    /// Whether only processes that a launcher gave a rank get noise; otherwise each process that loads the library does.
    pub ranked_only: bool,
    /// Number of kinds of nodes.
    pub groups: u64,
    /// Number of CPUs of all kinds.
    pub tracks: u64,
    /// Number of draws for places.
    pub places: u64,
    /// Number of skews.
    pub skews: u64,
    /// Number of phases in a block of an interleaved run, see [`Blocks`]; 0 if noise is injected all the time.
    pub block_phases: u64,
    /// The seed of the order of the blocks.
    pub block_seed: u64,
}

/// An interleaved run: blocks of phases with noise alternate with blocks without it, so that a core whose speed strays is as fast in both.
///
/// Block 0 is a warm-up without noise. The rest are pairs, one block with noise and one without, in random order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Number of phases in a block.
    pub phases: NonZeroU64,
    /// The seed of the order within the pairs.
    pub seed: u64,
}

impl Blocks {
    /// Whether noise is injected in a block.
    pub fn has_noise(&self, block: u64) -> bool {
        let Some(place) = block.checked_sub(1) else { return false };
        let noise_first = mixed(self.seed ^ mixed(place / 2)) & 1 == 1;
        (place % 2 == 0) == noise_first
    }
}

/// A random bijection: the finalizer of SplitMix64 (Steele, Lea & Flood 2014).
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Head {
    /// Reads a head.
    ///
    /// # Errors
    /// For values that are not valid.
    pub fn from_words(words: &[u64; HEAD]) -> Result<Self, ScheduleError> {
        let [MAGIC, version, total, checksum, ..] = *words else { return Err(ScheduleError::Magic) };
        if version != VERSION {
            return Err(ScheduleError::Version);
        }
        let word = |index: usize| words.get(index).copied().unwrap_or(0);
        let count =
            |index: usize| Some(word(index)).filter(|&count| count <= MOST).ok_or(ScheduleError::Head);
        let context = match word(field::CONTEXT) {
            0 => Context::Boundary,
            1 => Context::Timer,
            2 => Context::Process,
            _ => return Err(ScheduleError::Head),
        };
        let sync = match word(field::SYNC) {
            0 => Sync::None,
            1 => Sync::Start,
            2 => Sync::Phase,
            _ => return Err(ScheduleError::Head),
        };
        let head = Self {
            words: total,
            checksum,
            context,
            sync,
            overhead_ns: word(field::OVERHEAD_NS),
            early_ns: word(field::EARLY_NS),
            smallest_gap_ns: word(field::SMALLEST_GAP_NS),
            limit_ns: word(field::LIMIT_NS),
            epoch_ns: word(field::EPOCH_NS),
            events: Some(word(field::EVENTS))
                .filter(|&events| events <= MOST_EVENTS)
                .ok_or(ScheduleError::Head)?,
            phase_calls: word(field::PHASE_CALLS),
            ranked_only: word(field::RANKED_ONLY) != 0,
            groups: count(field::GROUPS)?,
            tracks: count(field::TRACKS)?,
            places: count(field::PLACES)?,
            skews: count(field::SKEWS)?,
            block_phases: word(field::BLOCK_PHASES),
            block_seed: word(field::BLOCK_SEED),
        };
        if head.early_ns > MOST_EARLY_NS {
            return Err(ScheduleError::Head);
        }
        if total > MOST || head.groups == 0 || head.places == 0 || head.tables_end() > total {
            return Err(ScheduleError::Head);
        }
        Ok(head)
    }

    /// The blocks of an interleaved run.
    pub fn blocks(&self) -> Option<Blocks> {
        NonZeroU64::new(self.block_phases).map(|phases| Blocks { phases, seed: self.block_seed })
    }

    /// The index at which the tables end and the tracks' words begin.
    pub fn tables_end(&self) -> u64 {
        (HEAD as u64)
            .wrapping_add(self.groups.wrapping_mul(GROUP as u64))
            .wrapping_add(self.tracks.wrapping_mul(TRACK as u64))
            .wrapping_add(self.places)
            .wrapping_add(self.skews)
    }
}

/// The head and the tables, checked.
#[derive(Clone, Copy, Debug)]
pub struct Schedule<'a> {
    /// The head.
    pub head: Head,
    groups: &'a [u64],
    tracks: &'a [u64],
    places: &'a [u64],
    skews: &'a [u64],
    /// Number of CPUs in one node of each kind together.
    round: NonZeroU64,
}

/// The node and the track of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankAssignment {
    /// Its node.
    pub node: u64,
    /// Its track.
    pub track: u64,
}

/// The location of a track's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackEntry {
    /// The CPU that it was recorded on.
    pub cpu: u64,
    /// Number of its detours.
    pub detours: u64,
    /// Index of its first word in the file.
    pub first: u64,
    /// Their checksum.
    pub checksum: u64,
}

impl TrackEntry {
    /// Number of its words.
    pub fn words(&self) -> u64 {
        self.detours.wrapping_add(1).wrapping_mul(2)
    }

    /// The track, from its words.
    ///
    /// # Errors
    /// For words whose checksum differs, and for words that do not form a progress clock.
    pub fn read<'a>(&self, words: &'a [u64]) -> Result<ProgressClockView<'a>, ScheduleError> {
        if checksum(SEED, words) != self.checksum {
            return Err(ScheduleError::Checksum);
        }
        ProgressClockView::from_words(
            usize::try_from(self.detours).map_err(|_| ScheduleError::ProgressClockView)?,
            words,
        )
    }

    /// The track, from all words of its file.
    ///
    /// # Errors
    /// As for [`TrackEntry::read`], and where the file ends before it.
    pub fn within<'a>(&self, file: &'a [u64]) -> Result<ProgressClockView<'a>, ScheduleError> {
        let end = self.first.wrapping_add(self.words());
        self.read(file.get(self.first as usize..end as usize).ok_or(ScheduleError::Torn)?)
    }
}

impl<'a> Schedule<'a> {
    /// Reads head and tables from the words up to [`Head::tables_end`]; more may follow.
    ///
    /// # Errors
    /// For any inconsistency in them.
    pub fn from_words(words: &'a [u64]) -> Result<Self, ScheduleError> {
        let head = Head::from_words(words.first_chunk().ok_or(ScheduleError::Torn)?)?;
        let end = usize::try_from(head.tables_end()).map_err(|_| ScheduleError::Head)?;
        let words = words.get(..end).ok_or(ScheduleError::Torn)?;
        if checksum(SEED, words.get(field::CHECKSUM.wrapping_add(1)..).unwrap_or_default()) != head.checksum {
            return Err(ScheduleError::Checksum);
        }
        let mut rest = words.get(HEAD..).unwrap_or_default();
        let mut take = |count: u64, each: usize| {
            let (taken, left) =
                rest.split_at_checked((count as usize).wrapping_mul(each)).ok_or(ScheduleError::Torn)?;
            rest = left;
            Ok(taken)
        };
        let (groups, tracks) = (take(head.groups, GROUP)?, take(head.tracks, TRACK)?);
        let (places, skews) = (take(head.places, 1)?, take(head.skews, 1)?);
        let mut round = 0u64;
        for &[first, cpus] in groups.as_chunks::<GROUP>().0 {
            let end = first.checked_add(cpus).ok_or(ScheduleError::Table)?;
            if cpus == 0 || end > head.tracks {
                return Err(ScheduleError::Table);
            }
            round = round.checked_add(cpus).ok_or(ScheduleError::Table)?;
        }
        let round = NonZeroU64::new(round).ok_or(ScheduleError::Table)?;
        let schedule = Self { head, groups, tracks, places, skews, round };
        for number in 0..head.tracks {
            let entry = schedule.entry(number).ok_or(ScheduleError::Table)?;
            let end = entry.first.checked_add(entry.words()).ok_or(ScheduleError::Table)?;
            if entry.detours > MOST || entry.first < head.tables_end() || end > head.words {
                return Err(ScheduleError::Table);
            }
        }
        Ok(schedule)
    }

    /// Node and track of a rank: ranks fill one node after the other, and nodes take turns through the given kinds.
    pub fn seat(&self, rank: u64) -> RankAssignment {
        let (rounds, mut left) = (rank / self.round, rank % self.round);
        let mut node = rounds.wrapping_mul(self.head.groups);
        for &[first, cpus] in self.groups.as_chunks::<GROUP>().0 {
            if left < cpus {
                return RankAssignment { node, track: first.wrapping_add(left) };
            }
            left = left.wrapping_sub(cpus);
            node = node.wrapping_add(1);
        }
        RankAssignment { node: 0, track: 0 }
    }

    /// The entry of a track.
    pub fn entry(&self, track: u64) -> Option<TrackEntry> {
        let (entries, _) = self.tracks.as_chunks::<TRACK>();
        let &[cpu, detours, first, checksum] = entries.get(usize::try_from(track).ok()?)?;
        Some(TrackEntry { cpu, detours, first, checksum })
    }

    /// The place in a trace of this period at which a node starts; in phase mode, the place of all nodes when a phase begins. Each block
    /// of an interleaved run has places of its own, so that the run has many of them and not only one.
    pub fn place(&self, node: u64, phase: u64, period: NonZeroU64) -> u64 {
        let block = self.head.blocks().map_or(0, |blocks| phase / blocks.phases);
        let index = match self.head.sync {
            Sync::None => node.wrapping_add(block.wrapping_mul(NODES_OF_A_BLOCK)),
            Sync::Start => block,
            Sync::Phase => phase,
        };
        let draw = turned(self.places, index);
        let place = (u128::from(draw).wrapping_mul(u128::from(period.get())) >> 64) as u64;
        place.wrapping_add(turned(self.skews, node) % period) % period
    }
}

/// Distance in the list of places from one block's nodes to the next's.
const NODES_OF_A_BLOCK: u64 = 257;

/// The entry of a list that repeats; 0 if the list is empty.
fn turned(list: &[u64], index: u64) -> u64 {
    let index = index.checked_rem(list.len() as u64).unwrap_or(0);
    list.get(index as usize).copied().unwrap_or(0)
}

/// The initial value of a checksum: FNV-1a's offset basis.
pub const SEED: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a over words. It detects damage, not malice: values that pass it are validated as well.
pub fn checksum(seed: u64, words: &[u64]) -> u64 {
    words.iter().fold(seed, |sum, &word| {
        let sum = (sum ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        sum ^ (sum >> 29)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_pairs_in_random_order_after_a_warm_up() {
        let blocks = Blocks { phases: NonZeroU64::MIN, seed: 7 };
        assert!(!blocks.has_noise(0));
        let noise_first = (0..1000).filter(|pair| blocks.has_noise(1 + 2 * pair)).count();
        assert!((400..600).contains(&noise_first), "{noise_first} of 1000");
        assert!((0..1000).all(|pair| blocks.has_noise(1 + 2 * pair) != blocks.has_noise(2 + 2 * pair)));
        let other = Blocks { seed: 8, ..blocks };
        assert!((1..1000).any(|block| blocks.has_noise(block) != other.has_noise(block)));
    }
}
