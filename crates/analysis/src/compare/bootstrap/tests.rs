use quell_recording::{Cpu, Detour, Nanos, Span};

use super::*;

/// A trace of 6,400 ns, so that each block is 100 ns long.
fn trace(detours: &[(u64, u64, bool)]) -> Trace {
    let ns = Nanos::from_nanos;
    let detour = |&(start, duration, own): &(u64, u64, bool)| Detour {
        start: ns(1_000 + start),
        duration: ns(duration),
        own,
    };
    let span = Span { start: ns(1_000), end: ns(7_400) };
    Trace { cpu: Cpu(0), span, detours: detours.iter().map(detour).collect() }
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found} for {expected}");
}

#[test]
fn a_decade_of_durations_has_two_hundred_bins() {
    // log10(2) × 200 = 60.2.
    assert_eq!([0, 1, 2, 10, 1_000].map(bin), [0, 0, 60, 200, 600]);
}

#[test]
fn each_detour_is_in_the_block_in_which_it_begins() {
    let trace = trace(&[
        (0, 10, false),
        (99, 20, false),
        (100, 1_000, false),
        (250, 30, true),
        (6_399, 10, false),
        (6_400, 40, false),
    ]);
    let all = Blocks::from_traces(&[&trace, &trace]);
    assert_eq!((all.first, all.blocks.len(), all.blocks[0].counts.len()), (200, 64, 401));
    let block = |at: usize| {
        let block = &all.blocks[at];
        let counts: Vec<(usize, u32)> =
            (0..).zip(block.counts.iter().copied()).filter(|count| count.1 > 0).collect();
        (block.observed_ns, block.noise_ns, block.longest_ns, counts)
    };
    // Two CPUs; log10(20) × 200 = 260.2 and log10(40) × 200 = 320.4, less the 200 of 10 ns.
    assert_eq!(block(0), (200.0, 60.0, 20, vec![(0, 2), (60, 2)]));
    assert_eq!(block(1), (200.0, 2_000.0, 1_000, vec![(400, 2)]));
    assert_eq!(block(2), (140.0, 0.0, 0, vec![]), "less the time of quell's own work");
    assert_eq!(block(63), (200.0, 100.0, 40, vec![(0, 2), (120, 2)]));
    near(all.observed_ns(), 64.0 * 200.0 - 60.0);
}

#[test]
fn figures_are_those_of_the_blocks_that_were_drawn() {
    let mut detours = vec![(100, 1_000, false), (200, 100_000, false)];
    detours.extend((0..4).map(|at| (at, 10, false)));
    let trace = trace(&detours);
    let blocks = Blocks::from_traces(&[&trace]);
    let mut times = [0; BLOCKS];
    (times[0], times[1], times[5]) = (3, 2, 59);
    let [overhead, rate, p50, p90, p99, p99_9, longest] = blocks.figures(&times);
    // 64 blocks of 100 ns, 12 detours of 10 ns and 2 of 1,000 ns.
    near(overhead, 100.0 * (12.0 * 10.0 + 2.0 * 1_000.0) / 6_400.0);
    near(rate, 14.0 / 6_400e-9);
    assert_eq!(longest, 1_000.0, "the block of the longest detour was not drawn");
    // The 7th of 14 is the 7th of the 12 in the bin of 10 ns; the 13th and the 14th are in that of 1,000 ns.
    near(p50, 10f64.powf((200.0 + 7.0 / 12.0) / 200.0));
    near(p90, 10f64.powf((600.0 + 1.0 / 2.0) / 200.0));
    near(p99, 10f64.powf((600.0 + 2.0 / 2.0) / 200.0));
    near(p99_9, p99);
    // Half of the blocks with noise, twice as much time for each.
    (times[0], times[1], times[5]) = (1, 0, 127);
    near(blocks.figures(&times)[0], 100.0 * 40.0 / 12_800.0);
    assert_eq!(blocks.figures(&times)[6], 10.0);
}

#[test]
fn a_side_without_detours_has_the_figures_of_nothing() {
    let (trace, times) = (trace(&[]), [1; BLOCKS]);
    assert_eq!(Blocks::from_traces(&[&trace]).figures(&times), [0.0; FIGURES]);
}

/// Whichever blocks are drawn, the difference stays the same.
#[test]
fn blocks_that_are_all_alike_leave_no_error() {
    let side = |duration| {
        let trace = trace(&(0..64).map(|block| (block * 100 + 10, duration, false)).collect::<Vec<_>>());
        Blocks::from_traces(&[&trace])
    };
    let options = Options { seed: 3, replicates: 50 };
    let intervals = intervals(&side(10), &side(20), &options, 0);
    for figure in 0..FIGURES {
        assert_eq!(intervals.errors[figure].len(), 50);
        let error = intervals.error(figure);
        assert!(error.start().abs() < 1e-6 && error.end().abs() < 1e-6, "{figure}: {error:?}");
    }
}

/// A figure that one block alone holds is drawn as often as this block: k times with the binomial distribution of 64 draws of
/// one in 64, near to the Poisson distribution of mean 1, of which 2.5 % is at 0 and 97.5 % at 3.
#[test]
fn the_error_of_a_block_is_how_often_it_is_drawn() {
    let (some, none) = (trace(&[(10, 50, false)]), trace(&[]));
    let [some, none] = [&some, &none].map(|trace| Blocks::from_traces(&[trace]));
    let options = Options { seed: 5, replicates: 2_000 };
    let once = 100.0 * 50.0 / 6_400.0;
    let error = intervals(&none, &some, &options, 0).error(0);
    near(*error.start(), -once);
    near(*error.end(), 2.0 * once);
    let error = intervals(&some, &none, &options, 0).error(0);
    near(*error.start(), -2.0 * once);
    near(*error.end(), once);
}

#[test]
fn replicates_have_limits() {
    let of = |replicates| super::replicates(&Options { seed: 1, replicates });
    assert_eq!([39, 40, 41, 100_000, 100_001].map(of), [40, 40, 41, 100_000, 100_000]);
}

/// The first numbers of SplitMix64 with the seeds 0, 1 and 1,234,567, as its authors' C code gives them. A seed and a stream that
/// cancel its step leave a state of 0.
#[test]
fn seeds_are_mixed_as_splitmix64_does() {
    let step = 0x9e37_79b9_7f4a_7c15_u64;
    for stream in [0, 9] {
        let seed = 0u64.wrapping_sub(step).wrapping_sub(stream);
        assert_eq!(mixed(seed, stream, 0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mixed(seed, stream, 1), 0x910a_2dec_8902_5cc1);
        assert_eq!(mixed(seed, stream, 1_234_567), 6_457_827_717_110_365_317);
    }
}
