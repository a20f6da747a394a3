//! Writing the flat file that quell-replay reads.

use std::path::Path;

use quell_replay::schedule::{
    Blocks, Context, GROUP, HEAD, MAGIC, SEED, Schedule, ScheduleError, Sync, TRACK, VERSION, checksum, field,
};

use super::compile::CpuNoise;

/// All fields of a schedule except the noise itself. See [`Head`](quell_replay::schedule::Head) for the meaning of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// How noise is injected.
    pub context: Context,
    /// How the nodes' noise lines up.
    pub sync: Sync,
    /// Injection overhead per detour, in ns.
    pub overhead_ns: u64,
    /// How much earlier a timer is set, in ns.
    pub early_ns: u64,
    /// The minimum time between two detours, in ns.
    pub smallest_gap_ns: u64,
    /// Time after which a rank gets no more noise, in ns; 0 for no limit.
    pub limit_ns: u64,
    /// When the trace begins for all, in ns since 1970.
    pub epoch_ns: u64,
    /// Maximum number of detours that each process logs.
    pub events: u64,
    /// Calls at which a phase ends.
    pub phase_calls: u64,
    /// Whether noise is injected only into processes that a launcher gave a rank.
    pub ranked_only: bool,
    /// Random draws for places in the trace: one per node, one for all, or one per phase.
    pub places: Vec<u64>,
    /// How much later each node starts, in ns.
    pub skews: Vec<u64>,
    /// The blocks of an interleaved run.
    pub blocks: Option<Blocks>,
}

impl Order {
    /// One place for all nodes, without limits.
    pub fn new(context: Context, epoch_ns: u64) -> Self {
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
            blocks: None,
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
    head[field::BLOCK_PHASES] = order.blocks.map_or(0, |blocks| blocks.phases.get());
    head[field::BLOCK_SEED] = order.blocks.map_or(0, |blocks| blocks.seed);
    head
}

/// The starts of a CPU's detours in wall time, then in useful time; the period closes each list.
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

/// Writes a schedule atomically.
///
/// # Errors
/// When it cannot be written.
pub fn write(path: &Path, words: &[u64]) -> std::io::Result<()> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    quell_recording::atomic_write(path, &bytes)
}

/// Validates all words of a schedule, head and tables, as a job does.
///
/// # Errors
/// The reason why it is not valid.
pub fn check(words: &[u64]) -> Result<Schedule<'_>, &'static str> {
    let schedule = Schedule::from_words(words).map_err(ScheduleError::reason)?;
    for track in 0..schedule.head.tracks {
        let entry = schedule.entry(track).ok_or("a track is missing")?;
        entry.within(words).map_err(ScheduleError::reason)?;
    }
    Ok(schedule)
}
