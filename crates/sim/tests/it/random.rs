//! Compares the engine with the reference on thousands of random schedules.

use crate::reference::compatible::compatible;
use crate::reference::physical::physical;
use crate::reference::strikes::Strikes;
use crate::reference::{Found, Reference};
use crate::schedules::patterns::pattern;
use crate::schedules::shrink::shrunk;
use crate::schedules::{Dice, Schedule, rank_clocks, schedule};
use quell_sim::goal::{Findings, read_text};
use quell_sim::loggops::{
    Network, Noise, Outcome, PerByte, Program, Rules, Run, RunError, Speed, Waiting, run, run_for_culprits,
    speed,
};
use quell_sim::pattern::Pattern;

/// Number of random schedules; CI plays 6,000.
fn schedules() -> u64 {
    std::env::var("QUELL_TEST_SCHEDULES").map_or(300, |number| number.parse().unwrap())
}

/// Number of random patterns: fewer, because each takes longer.
fn patterns() -> u64 {
    schedules().div_ceil(20)
}

/// The engine rejects times from here on.
const TOO_LATE: u64 = 1 << 62;

/// Errors for what a program may hold and a file may not: cycles, and no operation at all.
const REFUSED: [&str; 2] = ["none of them can ever start", "no operation"];

fn referenced<P: Program>(program: &P, schedule: &Schedule, rules: Rules) -> Reference {
    let Schedule { net, ranges, levels, strikes, .. } = schedule;
    match rules {
        Rules::Compatible => compatible(program, *net, strikes.as_ref()),
        Rules::Physical => physical(program, *net, ranges, levels, strikes.as_ref(), false),
        Rules::Call => physical(program, *net, ranges, levels, strikes.as_ref(), true),
    }
}

/// The engine's result; `program` is that of the schedule, in one form or another.
fn played<P: Program>(
    program: &P,
    schedule: &Schedule,
    rules: Rules,
    threads: usize,
) -> Result<Outcome, RunError> {
    let noise = match rules {
        Rules::Compatible => schedule.strikes.as_ref().map(Strikes::window_noise),
        Rules::Physical | Rules::Call => schedule.strikes.as_ref().map(rank_clocks),
    };
    let noise = noise.unwrap_or(Noise::None);
    let (ranges, levels) = match rules {
        Rules::Compatible => (&[][..], &[][..]),
        Rules::Physical | Rules::Call => (&schedule.ranges[..], &schedule.levels[..]),
    };
    run(
        program,
        &Run {
            net: schedule.net,
            ranges,
            levels,
            rules,
            noise: &noise,
            threads,
            progress: quell_sim::loggops::NO_PROGRESS,
        },
    )
}

/// How the engine differs from the expected result, if it does, on any number of threads.
fn departure<P: Program>(
    program: &P,
    schedule: &Schedule,
    rules: Rules,
    expected: &Reference,
) -> Option<String> {
    let [one, more @ ..] = [1, 2, 7].map(|threads| played(program, schedule, rules, threads));
    if more.iter().any(|more| *more != one) {
        return Some(format!("1 thread {one:#?}\n2 and 7 threads {more:#?}"));
    }
    match one {
        Ok(outcome) if Found::from(&outcome) == expected.found => misnamed(&outcome, expected),
        Ok(outcome) => Some(format!("engine {:#?}\nreference {:#?}", Found::from(&outcome), expected.found)),
        Err(RunError::Overflow) if expected.latest >= TOO_LATE => None,
        Err(error) => Some(format!("the engine refuses: {error}")),
    }
}

/// How the leftovers that the engine lists differ from the actual ones, if they do.
fn misnamed(outcome: &Outcome, expected: &Reference) -> Option<String> {
    let stuck = outcome.stuck.clone().unwrap_or_default();
    let finished = expected.found.left_over == [0; 3];
    let first =
        |some: &[Waiting], all: &[Waiting]| all.starts_with(some) && some.is_empty() == all.is_empty();
    let right = outcome.stuck.is_none() == finished
        && first(&stuck.receives, &expected.receives)
        && first(&stuck.messages, &expected.messages)
        && stuck.unfreed.iter().map(|rank| rank.1).sum::<u64>() == stuck.unfreed_total;
    (!right).then(|| format!("{stuck:#?}\nof {expected:#?}"))
}

/// How the engine differs from the reference, if it does, on a schedule and on its text.
fn difference(schedule: &Schedule, rules: Rules) -> Option<String> {
    let expected = referenced(&schedule.program, schedule, rules);
    if let Some(departure) = departure(&schedule.program, schedule, rules, &expected) {
        return Some(departure);
    }
    match read_text(schedule.program.to_string().as_bytes(), &mut Findings::default()) {
        Ok(read) => {
            departure(&read, schedule, rules, &expected).map(|departure| format!("read: {departure}"))
        }
        Err(error) if REFUSED.iter().any(|words| error.to_string().contains(words)) => None,
        Err(error) => Some(format!("it cannot be read: {error}")),
    }
}

/// Plays a schedule; on a difference, prints the schedule reduced to a minimum.
fn hold(seed: u64, schedule: &Schedule, rules: Rules) {
    if difference(schedule, rules).is_some() {
        let small = shrunk(schedule, |less| difference(less, rules).is_some());
        let what = difference(&small, rules).unwrap_or_default();
        let Schedule { program, net, ranges, levels, strikes } = small;
        panic!("seed {seed}, {rules:?}: {what}\n{net:?}\n{ranges:?}\n{levels:?}\n{strikes:?}\n\n{program}");
    }
}

#[test]
fn the_engine_plays_as_loggopsim_does() {
    (0..schedules()).for_each(|seed| hold(seed, &schedule(seed), Rules::Compatible));
}

#[test]
fn the_engine_keeps_the_physical_rules() {
    for seed in 0..schedules() {
        let mut schedule = schedule(seed);
        let dice = &mut Dice::new(seed ^ 6_000);
        if dice.below(2) == 0 {
            // Times per byte that are not whole nanoseconds, which LogGOPSim does not support.
            let [gap_per_byte, overhead_per_byte] =
                [6_000_000, 2_000_000].map(|most| PerByte::from_femtoseconds(dice.below(most)));
            schedule.net = Network { gap_per_byte, overhead_per_byte, ..schedule.net };
        }
        hold(seed, &schedule, Rules::Physical);
        hold(seed, &schedule, Rules::Call);
    }
}

/// A pattern gives the same result by its rule and as the list of its operations.
#[test]
fn patterns_are_played_as_their_lists() {
    for seed in 0..patterns() {
        let (name, steps, schedule) = pattern(seed);
        for rules in [Rules::Compatible, Rules::Physical, Rules::Call] {
            hold(seed, &schedule, rules);
            let expected = referenced(&steps, &schedule, rules);
            if let Some(departure) = departure(&steps, &schedule, rules, &expected) {
                let Schedule { net, ranges, levels, .. } = &schedule;
                panic!("seed {seed}, {rules:?}, {name}: {departure}\n{net:?}\n{ranges:?}\n{levels:?}");
            }
            let listed = referenced(&schedule.program, &schedule, rules).found;
            // With two lanes, operations at the same instant have another order in the list.
            if steps.pattern().lanes() == 1 {
                assert_eq!(expected.found, listed, "seed {seed}, {rules:?}, {name}");
            }
        }
    }
}

/// The tests above are only as good as the schedules that they cover.
#[test]
fn schedules_are_of_many_kinds() {
    let all = (0..1000).map(|seed| referenced(&schedule(seed).program, &schedule(seed), Rules::Compatible));
    let all: Vec<Reference> = all.collect();
    let count = |holds: &dyn Fn(&Reference) -> bool| all.iter().filter(|one| holds(one)).count();
    let counts = [
        ("finish", 300, count(&|one| one.found.left_over == [0; 3])),
        ("leave receives", 100, count(&|one| one.found.left_over[0] > 0)),
        ("leave messages", 100, count(&|one| one.found.left_over[1] > 0)),
        ("leave operations", 100, count(&|one| one.found.left_over[2] > 0)),
        ("suffer noise", 300, count(&|one| one.found.noise.iter().any(|noise| *noise > 0))),
        ("crowd", 5, count(&|one| one.widest > 32)),
        ("wrap", 20, count(&|one| one.latest >= TOO_LATE)),
    ];
    for (what, least, found) in counts {
        assert!(found >= least, "only {found} of 1000 {what}: {counts:?}");
    }
    let in_rounds = (0..1000).map(schedule).filter(is_played_in_rounds).count();
    assert!(in_rounds >= 50, "only {in_rounds} of 1000 are played in rounds");
}

/// Whether a schedule with noise, as it is read from its text, can be played in rounds.
fn is_played_in_rounds(schedule: &Schedule) -> bool {
    let Schedule { net, ranges, levels, program, .. } = schedule;
    let how = Run {
        net: *net,
        ranges,
        levels,
        rules: Rules::Call,
        noise: &Noise::None,
        threads: 1,
        progress: quell_sim::loggops::NO_PROGRESS,
    };
    let read = read_text(program.to_string().as_bytes(), &mut Findings::default());
    let has_noise = schedule.strikes.is_some();
    has_noise && read.is_ok_and(|read| speed(&read, &how) == Ok(Speed::Listed))
}

/// A schedule in steps, which rounds play, has the culprits that it has where it is played event by event.
#[test]
fn steps_have_the_culprits_of_their_events() {
    let mut in_rounds = 0;
    for seed in 0..schedules() {
        let schedule = schedule(seed);
        if !is_played_in_rounds(&schedule) {
            continue;
        }
        in_rounds += 1;
        let noise = schedule.strikes.as_ref().map_or(Noise::None, rank_clocks);
        let Schedule { net, ranges, levels, program, .. } = &schedule;
        let how = Run {
            net: *net,
            ranges,
            levels,
            rules: Rules::Call,
            noise: &noise,
            threads: 1,
            progress: quell_sim::loggops::NO_PROGRESS,
        };
        let read = read_text(program.to_string().as_bytes(), &mut Findings::default()).unwrap();
        let [found, expected] = [run_for_culprits(&read, &how), run_for_culprits(program, &how)];
        assert_eq!(found, expected, "seed {seed}: {net:?}\n{ranges:?}\n{levels:?}\n{noise:?}\n\n{program}");
    }
    assert!(in_rounds > 0, "no schedule was played in rounds");
}
