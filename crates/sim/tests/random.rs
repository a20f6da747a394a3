//! The engine beside the reference on thousands of random schedules.

mod reference;
mod schedules;

use quell_sim::loggops::{Net, Noise, Outcome, PerByte, Rules, Run, RunError, Waiting, run};
use reference::compatible::compatible;
use reference::physical::physical;
use reference::strikes::Strikes;
use reference::{Found, Reference};
use schedules::shrink::shrunk;
use schedules::{Dice, Schedule, schedule};

const SCHEDULES: u64 = 6_000;

/// Times from here on the engine refuses.
const TOO_LATE: u64 = 1 << 62;

fn referenced(schedule: &Schedule, rules: Rules) -> Reference {
    let Schedule { program, net, strikes } = schedule;
    match rules {
        Rules::Compatible => compatible(program, *net, strikes.as_ref()),
        Rules::Physical => physical(program, *net, strikes.as_ref()),
    }
}

fn played(schedule: &Schedule, rules: Rules, threads: usize) -> Result<Outcome, RunError> {
    let noise = match rules {
        Rules::Compatible => schedule.strikes.as_ref().map(Strikes::window_noise),
        Rules::Physical => schedule.strikes.as_ref().map(Strikes::rank_clocks),
    };
    let noise = noise.unwrap_or(Noise::None);
    run(&schedule.program, &Run { net: schedule.net, rules, noise: &noise, threads, progress: &|_| {} })
}

/// What the engine does otherwise than the reference, if anything.
fn difference(schedule: &Schedule, rules: Rules) -> Option<String> {
    let expected = referenced(schedule, rules);
    let outcome = match played(schedule, rules, 1) {
        Ok(outcome) => outcome,
        Err(RunError::Overflow) if expected.latest >= TOO_LATE => return None,
        Err(error) => return Some(format!("the engine refuses: {error}")),
    };
    let found = Found::from(&outcome);
    if found != expected.found {
        return Some(format!("reference {:#?}\nengine {found:#?}", expected.found));
    }
    for threads in [2, 7] {
        let more = played(schedule, rules, threads);
        if more.as_ref() != Ok(&outcome) {
            return Some(format!("1 thread {outcome:#?}\n{threads} threads {more:#?}"));
        }
    }
    misnamed(&outcome, &expected)
}

/// Whether what the engine names as left over is.
fn misnamed(outcome: &Outcome, expected: &Reference) -> Option<String> {
    let finished = expected.found.left_over == [0; 3];
    let Some(stuck) = &outcome.stuck else {
        return (!finished).then(|| "the engine says that all was done".to_owned());
    };
    let among = |some: &[Waiting], all: &[Waiting]| {
        some.iter().all(|one| all.contains(one)) && some.is_empty() == all.is_empty()
    };
    let right = !finished
        && among(&stuck.receives, &expected.receives)
        && among(&stuck.messages, &expected.messages)
        && stuck.unfreed.iter().map(|rank| rank.1).sum::<u64>() <= stuck.unfreed_total;
    (!right).then(|| format!("{stuck:#?}\nof {expected:#?}"))
}

/// Plays many schedules, and of the first that differs shows what is left of it when made small.
fn hold(rules: Rules, make: impl Fn(u64) -> Schedule) {
    for seed in 0..SCHEDULES {
        let schedule = make(seed);
        if difference(&schedule, rules).is_some() {
            let small = shrunk(&schedule, |less| difference(less, rules).is_some());
            let what = difference(&small, rules).unwrap_or_default();
            let Schedule { program, net, strikes } = small;
            panic!("seed {seed}, {rules:?}: {what}\n{net:?}\n{strikes:?}\n\n{program}");
        }
    }
}

#[test]
fn the_engine_plays_as_loggopsim_does() {
    hold(Rules::Compatible, schedule);
}

#[test]
fn the_engine_keeps_the_physical_rules() {
    hold(Rules::Physical, |seed| {
        let mut schedule = schedule(seed);
        let dice = &mut Dice::new(seed ^ SCHEDULES);
        if dice.below(2) == 0 {
            // Bytes at other than whole nanoseconds, which LogGOPSim does not know.
            let [gap_per_byte, overhead_per_byte] =
                [6_000_000, 2_000_000].map(|most| PerByte::from_femtoseconds(dice.below(most)));
            schedule.net = Net { gap_per_byte, overhead_per_byte, ..schedule.net };
        }
        schedule
    });
}
