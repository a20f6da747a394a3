//! Writing the flat file that quell-replay reads.

use std::path::Path;

use quell_replay::schedule::{
    Context, Flaw, GROUP, HEAD, MAGIC, SEED, Schedule, Sync, TRACK, VERSION, checksum, field,
};

use super::compile::CpuNoise;

/// All that a schedule holds beside the noise. See [`Head`](quell_replay::schedule::Head) for what each means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// By what the noise comes in.
    pub context: Context,
    /// How the nodes' noise lines up.
    pub sync: Sync,
    /// What a detour costs beside the time that is burned, in ns.
    pub overhead_ns: u64,
    /// So much earlier a timer is set, in ns.
    pub early_ns: u64,
    /// The least time between two, in ns.
    pub smallest_gap_ns: u64,
    /// After so much time a rank is left alone, in ns; 0 for never.
    pub limit_ns: u64,
    /// When the trace begins for all, in ns since 1970.
    pub epoch_ns: u64,
    /// How many detours each process may log.
    pub events: u64,
    /// Calls at which a phase ends.
    pub phase_calls: u64,
    /// Whether only ranks of a launcher suffer.
    pub ranked_only: bool,
    /// Draws for places: of nodes, of all or of phases.
    pub places: Vec<u64>,
    /// How much later each node starts, in ns.
    pub skews: Vec<u64>,
}

impl Order {
    /// Of one place for all, without limits.
    pub fn of(context: Context, epoch_ns: u64) -> Self {
        Self {
            context,
            sync: Sync::None,
            overhead_ns: 0,
            early_ns: 0,
            smallest_gap_ns: 0,
            limit_ns: 0,
            epoch_ns,
            events: 0,
            phase_calls: 0,
            ranked_only: false,
            places: vec![0],
            skews: Vec::new(),
        }
    }
}

/// The words of a schedule.
pub fn words(order: &Order, groups: &[Vec<CpuNoise>]) -> Vec<u64> {
    let tracks: Vec<Vec<u64>> = groups.iter().flatten().map(track).collect();
    let tables = HEAD + GROUP * groups.len() + TRACK * tracks.len() + order.places.len() + order.skews.len();
    let mut words = head(order, groups.len(), tracks.len());
    let mut first_track = 0;
    for group in groups {
        words.extend([first_track, group.len() as u64]);
        first_track += group.len() as u64;
    }
    let mut first_word = tables as u64;
    for (cpu, track) in groups.iter().flatten().zip(&tracks) {
        words.extend([u64::from(cpu.cpu.0), cpu.detours.len() as u64, first_word, checksum(SEED, track)]);
        first_word += track.len() as u64;
    }
    words.extend(&order.places);
    words.extend(&order.skews);
    words[field::WORDS] = first_word;
    words[field::CHECKSUM] = checksum(SEED, &words[field::CHECKSUM + 1..]);
    words.extend(tracks.iter().flatten());
    words
}

fn head(order: &Order, groups: usize, tracks: usize) -> Vec<u64> {
    let mut head = vec![0; HEAD];
    head[field::MAGIC] = MAGIC;
    head[field::VERSION] = VERSION;
    head[field::CONTEXT] = match order.context {
        Context::Boundary => 0,
        Context::Timer => 1,
        Context::Process => 2,
    };
    head[field::SYNC] = match order.sync {
        Sync::None => 0,
        Sync::Start => 1,
        Sync::Phase => 2,
    };
    head[field::OVERHEAD_NS] = order.overhead_ns;
    head[field::EARLY_NS] = order.early_ns;
    head[field::SMALLEST_GAP_NS] = order.smallest_gap_ns;
    head[field::LIMIT_NS] = order.limit_ns;
    head[field::EPOCH_NS] = order.epoch_ns;
    head[field::EVENTS] = order.events;
    head[field::PHASE_CALLS] = order.phase_calls;
    head[field::RANKED_ONLY] = u64::from(order.ranked_only);
    head[field::GROUPS] = groups as u64;
    head[field::TRACKS] = tracks as u64;
    head[field::PLACES] = order.places.len() as u64;
    head[field::SKEWS] = order.skews.len() as u64;
    head
}

/// A CPU's starts in wall time, then in useful time; its period closes each.
fn track(noise: &CpuNoise) -> Vec<u64> {
    let mut useful = Vec::with_capacity(noise.detours.len() + 1);
    let mut words = Vec::with_capacity(2 * (noise.detours.len() + 1));
    let mut lost = 0;
    for &(start, length) in &noise.detours {
        words.push(start);
        useful.push(start - lost);
        lost += length;
    }
    words.push(noise.period_ns);
    useful.push(noise.period_ns - lost);
    words.extend(useful);
    words
}

/// Writes a schedule, whole or not at all.
///
/// # Errors
/// When it cannot be written.
pub fn write(path: &Path, words: &[u64]) -> std::io::Result<()> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    quell_recording::atomic_write(path, &bytes)
}

/// Reads a schedule's head and tables from all its words, as a job does.
///
/// # Errors
/// The reason why it is none.
pub fn check(words: &[u64]) -> Result<Schedule<'_>, &'static str> {
    let schedule = Schedule::of(words).map_err(Flaw::reason)?;
    for track in 0..schedule.head.tracks {
        let entry = schedule.entry(track).ok_or("a track is missing")?;
        entry.within(words).map_err(Flaw::reason)?;
    }
    Ok(schedule)
}
