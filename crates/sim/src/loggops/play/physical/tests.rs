use std::sync::Arc;

use quell_recording::{Cpu, Detour, Nanos, Span, Trace};

use crate::ProgressClock;
use crate::goal::{Findings, Schedule, read_text};
use crate::loggops::{
    Culprits, NO_PROGRESS, Network, Noise, Outcome, PerByte, Place, RankClocks, Rules, Run, SizeRange, run,
    run_for_culprits,
};

/// A large message and a small one, each on a CPU of its own at the receiver, and work of 10,000 ns once one of them was received.
fn large_then_small(received: &str) -> Schedule {
    let text = "num_ranks 2
rank 0 {
a: send 2000b to 1
b: send 8b to 1
b irequires a
}
rank 1 {
p: recv 2000b from 0
q: recv 8b from 0 cpu 1
q irequires p
w: calc 10000 cpu 2
w requires ";
    let text = format!("{text}{received}\n}}\n");
    read_text(text.as_bytes(), &mut Findings::default()).unwrap()
}

/// Plays it where small messages are faster than large ones.
fn play(rules: Rules, eager_limit: u64, noise: &Noise, received: &str) -> (Outcome, Culprits) {
    let free = PerByte::default();
    let net = Network {
        latency: 2000,
        overhead: 100,
        gap: 0,
        gap_per_byte: free,
        overhead_per_byte: free,
        eager_limit,
    };
    let small = SizeRange { from_bytes: 1, to_bytes: 1024, network: Network { latency: 300, ..net } };
    let how = Run { net, ranges: &[small], levels: &[], rules, noise, threads: 1, progress: NO_PROGRESS };
    let program = large_then_small(received);
    let outcome = run(&program, &how).unwrap();
    assert_eq!(outcome.stuck, None);
    assert_eq!(run(&program, &Run { threads: 2, ..how }).unwrap(), outcome);
    let (watched, culprits) = run_for_culprits(&program, &how).unwrap();
    assert_eq!(watched, outcome);
    (outcome, culprits)
}

#[test]
fn a_small_message_does_not_overtake_a_large_one() {
    for rules in [Rules::Physical, Rules::Call] {
        // The large one arrives at 2100, and the small one no earlier.
        for received in ["p", "q"] {
            let (outcome, _) = play(rules, 1 << 20, &Noise::None, received);
            assert_eq!(outcome.finish, [200, 2200 + 10_000]);
        }
        // The request arrives at 2100, the answer at 4200, the data at 6300.
        for (received, end) in [("p", 6400), ("q", 2200)] {
            let (outcome, _) = play(rules, 1000, &Noise::None, received);
            assert_eq!(outcome.finish, [4300, end + 10_000]);
        }
    }
}

/// Noise of 50 ns that strikes rank 0 at `at`.
fn struck(at: u64) -> Noise {
    let ns = Nanos::from_nanos;
    let clock = |detours| {
        let span = Span { start: Nanos::ZERO, end: ns(1_000_000) };
        Arc::new(ProgressClock::new(&Trace { cpu: Cpu(0), span, detours }).unwrap())
    };
    let detour = Detour { start: ns(at), duration: ns(50), own: false };
    let places = [0, 1].map(|clock| Place { clock, offset: 0 });
    Noise::Clocks(RankClocks::new(vec![clock(vec![detour]), clock(vec![])], places.to_vec()).unwrap())
}

/// What a message waits for behind an earlier one is that one's noise, and none of its own.
#[test]
fn a_message_that_is_held_back_has_the_culprits_of_the_one_before() {
    for rules in [Rules::Physical, Rules::Call] {
        for (at, delay) in [(50, 50), (120, 0)] {
            let (outcome, culprits) = play(rules, 1 << 20, &struck(at), "q");
            assert_eq!(outcome.finish, [250, 2200 + delay + 10_000]);
            assert_eq!(culprits.delay(), delay, "noise at {at}");
        }
    }
}
