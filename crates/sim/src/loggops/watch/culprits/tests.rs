use std::sync::Arc;

use quell_recording::{Cpu, Detour, Nanos, Span, Trace};

use super::*;
use crate::clock::ProgressClock;
use crate::draws::Draws;
use crate::loggops::watch::culprits_by_events;
use crate::loggops::{NO_PROGRESS, Network, Noise, Place, Rules, Run, run_watched};
use crate::pattern::{Params, by_name};

const RANKS: u32 = 8;
const PERIOD: u64 = 1_000_000;

/// Drops what no trail reaches after every event.
struct Sweeping {
    trails: Trails,
    most: usize,
}

impl Watch for Sweeping {
    fn see(&mut self, seen: &Seen<'_>) {
        self.trails.see(seen);
        self.trails.sweep();
        self.most = self.most.max(self.trails.steps.len());
        assert!(self.trails.steps.iter().enumerate().skip(1).all(|(at, step)| (step.before as usize) < at));
    }
}

fn clocks() -> RankClocks {
    let ns = Nanos::from_nanos;
    let clock = |rank: u64| {
        let draws = Draws::new(3, &[rank]);
        let mut detours: Vec<Detour> = (0..40)
            .map(|i| Detour {
                start: ns(draws.below(i, PERIOD)),
                duration: ns(1 + draws.below(100 + i, 9_000)),
                own: false,
            })
            .collect();
        detours.sort_by_key(|detour| detour.start);
        let span = Span { start: Nanos::ZERO, end: ns(PERIOD) };
        Arc::new(ProgressClock::new(&Trace { cpu: Cpu(0), span, detours }).unwrap())
    };
    let places = (0..RANKS).map(|clock| Place { clock, offset: u64::from(clock) * 1_000 }).collect();
    RankClocks::new((0..u64::from(RANKS)).map(clock).collect(), places).unwrap()
}

fn run_under(noise: &Noise) -> Run<'_> {
    Run {
        net: Network::default(),
        ranges: &[],
        levels: &[],
        rules: Rules::Physical,
        noise,
        threads: 1,
        progress: NO_PROGRESS,
    }
}

/// Messages of 100,000 bytes are sent by rendezvous.
#[test]
fn what_is_dropped_was_on_no_trail() {
    for name in ["bsp", "halo", "binomial-bcast", "linear-gather", "allreduce-ring"] {
        for bytes in [8, 100_000] {
            let params = Params { ranks: RANKS, bytes, iterations: 6, work_ns: 40_000, ..Params::default() };
            let program = by_name(name, &params).unwrap();
            let noise = Noise::Clocks(clocks());
            let run = run_under(&noise);
            let (outcome, all) = culprits_by_events(&program, &run).unwrap();
            let mut plain = Trails::new(RANKS);
            run_watched(&program, &run, &mut plain).unwrap();
            let mut sweeping = Sweeping { trails: Trails::new(RANKS), most: 0 };
            assert_eq!(run_watched(&program, &run, &mut sweeping).unwrap(), outcome);
            let Sweeping { trails, most } = sweeping;
            assert_eq!(trails.culprits(&outcome, Some(&clocks())), all, "{name}");
            assert!(!all.hits.is_empty() && trails.sweep_at == SWEEP);
            // All that strikes a rank whose message is yet to be gathered is on its trail.
            assert!(
                most < plain.steps.len() || name == "linear-gather",
                "{name}: {most} of {}",
                plain.steps.len()
            );
            // Nothing is in flight at the end, and each message has found its receive.
            for trails in [&trails, &plain] {
                let left =
                    (trails.free.len(), trails.messages.len(), trails.answers.len(), trails.data.len());
                assert_eq!(left, (0, 0, 0, 0), "{name} of {bytes} bytes");
            }
        }
    }
}

/// A phase is 100 us of work and a message of 1.5 + 2.5 + 1.5 us, so the third one lasts from 211 us to 316.5 us.
#[test]
fn a_hit_is_in_the_phase_that_it_prolongs() {
    let ns = Nanos::from_nanos;
    let detour = |at| Detour { start: ns(at), duration: ns(7_000), own: false };
    let span = Span { start: Nanos::ZERO, end: ns(PERIOD) };
    let trace = Trace { cpu: Cpu(0), span, detours: vec![detour(250_000)] };
    let clock = Arc::new(ProgressClock::new(&trace).unwrap());
    let places = vec![Place { clock: 0, offset: 0 }, Place { clock: 0, offset: 500_000 }];
    let noise = Noise::Clocks(RankClocks::new(vec![clock], places).unwrap());
    let inner = Some("barrier".to_owned());
    let params = Params { ranks: 2, bytes: 1, iterations: 4, work_ns: 100_000, inner, ..Params::default() };
    let run = run_under(&noise);
    let (outcome, culprits) = culprits_by_events(&by_name("bsp", &params).unwrap(), &run).unwrap();
    assert_eq!(outcome.last().1, 4 * 105_500 + 7_000);
    let hit =
        Hit { rank: 0, iteration: 2, start: 211_000, end: 318_000, delay: 7_000, clock: 0, at: 211_000 };
    assert_eq!((culprits.hits, culprits.propagated), (vec![hit], vec![7_000, 0]));
}
