//! Another user's job reads a schedule: no content may crash it. Half of the inputs are words as they are, half a schedule as `replay` writes
//! it, with some words changed.
#![no_main]

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use quell_node::injector::compile::CpuNoise;
use quell_node::injector::schedule::{Order, words};
use quell_recording::Cpu;
use quell_replay::schedule::{Blocks, Context, Head, SEED, Schedule, Sync, checksum};

const NUMBERS: [u64; 8] = [0, 1, 2, 7, 1_000, 1 << 32, u64::MAX / 2, u64::MAX];

fn number(u: &mut Unstructured<'_>) -> Result<u64> {
    if u.arbitrary()? { u.int_in_range(0..=5_000) } else { u.choose(&NUMBERS).copied() }
}

fn track(u: &mut Unstructured<'_>, cpu: u32) -> Result<CpuNoise> {
    let (mut detours, mut end) = (Vec::new(), 0_u64);
    for _ in 0..u.int_in_range(0..=12)? {
        let start = end + u.int_in_range(0..=10_000_u64)?;
        let length = u.int_in_range(1..=5_000_u64)?;
        detours.push((start, length));
        end = start + length;
    }
    Ok(CpuNoise { cpu: Cpu(cpu), period_ns: end + u.int_in_range(1..=10_000_u64)?, detours })
}

/// A schedule, and some words of it that another value replaces.
fn made(u: &mut Unstructured<'_>) -> Result<Vec<u64>> {
    let contexts = [Context::Boundary, Context::Timer, Context::Process];
    let mut order = Order::new(*u.choose(&contexts)?, number(u)?);
    order.sync = *u.choose(&[Sync::None, Sync::Start, Sync::Phase])?;
    (order.overhead_ns, order.early_ns) = (number(u)?, u.int_in_range(0..=100_000)?);
    (order.limit_ns, order.events) = (number(u)?, number(u)?);
    order.places = (0..u.int_in_range(1..=4)?).map(|_| number(u)).collect::<Result<_>>()?;
    order.skews = (0..u.int_in_range(0..=3)?).map(|_| number(u)).collect::<Result<_>>()?;
    if let Some(phases) = std::num::NonZeroU64::new(number(u)?) {
        order.blocks = Some(Blocks { phases, seed: number(u)? });
    }
    let mut groups = Vec::new();
    for _ in 0..u.int_in_range(1..=3)? {
        let cpus = u.int_in_range(1..=3)?;
        groups.push((0..cpus).map(|cpu| track(u, cpu)).collect::<Result<Vec<_>>>()?);
    }
    let mut words = words(&order, &groups);
    for _ in 0..*u.choose(&[0, 0, 1, 2, 4])? {
        let place = u.choose_index(words.len())?;
        words[place] = number(u)?;
    }
    Ok(words)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((mode, rest)) = bytes.split_first() else { return };
    let mut words: Vec<u64> = match mode & 1 {
        0 => rest.as_chunks::<8>().0.iter().map(|&word| u64::from_le_bytes(word)).collect(),
        _ => match made(&mut Unstructured::new(rest)) {
            Ok(words) => words,
            Err(_) => return,
        },
    };
    // As if the damage had been signed; else no damage would come beyond the checksum.
    let end = words.first_chunk().and_then(|head| Head::from_words(head).ok()).map(|head| head.tables_end());
    if let Some(end) = end.and_then(|end| usize::try_from(end).ok()).filter(|&end| end <= words.len()) {
        words[3] = checksum(SEED, &words[4..end]);
    }
    let Ok(schedule) = Schedule::from_words(&words) else { return };
    for rank in 0..schedule.head.tracks.min(8) {
        let seat = schedule.seat(rank);
        let Some(mut entry) = schedule.entry(seat.track) else { continue };
        let place = entry.first as usize..(entry.first + entry.words()) as usize;
        let Some(words) = words.get(place) else { continue };
        entry.checksum = checksum(SEED, words);
        let Ok(track) = entry.read(words) else { continue };
        let t = schedule.place(seat.node, rank, track.period());
        let _ =
            (track.delay(t, u64::MAX), track.delay(t, 1_000), track.ahead(t), track.noise_in(t, u64::MAX));
    }
});
