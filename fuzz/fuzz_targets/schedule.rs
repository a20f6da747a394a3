//! Another user's job reads a schedule: no content may crash it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quell_replay::schedule::{SEED, Schedule, checksum};

fuzz_target!(|bytes: &[u8]| {
    let mut words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|&word| u64::from_le_bytes(word)).collect();
    // As if the damage had been signed; else no damage would come beyond the checksum.
    let end = |words: &[u64]| words.first_chunk().and_then(|head| quell_replay::schedule::Head::from_words(head).ok()).map(|head| head.tables_end());
    if let Some(end) = end(&words).and_then(|end| usize::try_from(end).ok()).filter(|&end| end <= words.len()) {
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
        let _ = (track.delay(t, u64::MAX), track.delay(t, 1_000), track.ahead(t), track.noise_in(t, u64::MAX));
    }
});
