//! Judges measurements: a failure counts only if the machine was quiet.

use std::time::Duration;

use crate::conditions::{Conditions, Watch};
use crate::outcome::{inconclusive, measured};

/// Maximum number of attempts at a measurement. That many failures on a quiet machine are not an accident.
const ATTEMPTS: usize = 5;

/// After a wrong figure on a busy machine, number of checks that wait for it to be quiet again. Other work that lasts through all of them
/// will last longer.
const LOOKS: usize = 10;

/// Duration of a check.
const LOOK: Duration = Duration::from_secs(1);

/// Repeats a measurement until its figures are right. `attempt` gets its number and returns what is wrong, if anything. What
/// must hold on a machine however busy, it asserts itself.
///
/// The precondition is that no other work uses the machine, and that the machine itself is not unusually slow. It is measured around each attempt ([`Conditions`]). If figures
/// were wrong and it did not hold, the test ends as *inconclusive*: it is counted and named, but is not a failure.
///
/// # Panics
///
/// If figures were wrong in every attempt, and the machine was quiet in all of them.
pub fn measure(mut attempt: impl FnMut(usize) -> Result<(), String>) {
    measured();
    let judged = |number| {
        let watch = Watch::start();
        attempt(number).map_err(|wrong| (wrong, watch.end()))
    };
    let verdict = judge(judged, || (0..LOOKS).any(|_| look().quiet()));
    match verdict {
        Verdict::Holds => {}
        Verdict::Wrong(reported) => panic!("wrong on a quiet machine:\n{}", reported.join("\n")),
        Verdict::Inconclusive(reported) => {
            inconclusive(&format!("the machine was busy: {}", reported.join(" | ")));
        }
    }
}

#[derive(Debug, PartialEq)]
enum Verdict {
    Holds,
    Wrong(Vec<String>),
    Inconclusive(Vec<String>),
}

/// The current conditions of the machine.
fn look() -> Conditions {
    let watch = Watch::start();
    std::thread::sleep(LOOK);
    watch.end()
}

fn judge(
    mut attempt: impl FnMut(usize) -> Result<(), (String, Conditions)>,
    mut becomes_quiet: impl FnMut() -> bool,
) -> Verdict {
    let (mut reported, mut quiet) = (Vec::new(), 0);
    for number in 0..ATTEMPTS {
        let Err((wrong, conditions)) = attempt(number) else { return Verdict::Holds };
        reported.push(format!("{wrong}; {conditions}"));
        if conditions.quiet() {
            quiet += 1;
        } else if !becomes_quiet() {
            break;
        }
    }
    if quiet == ATTEMPTS { Verdict::Wrong(reported) } else { Verdict::Inconclusive(reported) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conditions::Pace;

    const PACE: Pace = Pace { clock_read_ns: 30, interrupted: 0.0, late_ns: 60_000 };
    const QUIET: Conditions = Conditions { others: 0.0, steal: 0.0, pace: PACE };
    const BUSY: Conditions = Conditions { others: 1.9, ..QUIET };

    /// The verdict on attempts that all fail in these conditions, and the number of attempts.
    fn failing(conditions: &[Conditions], becomes_quiet: bool) -> (Verdict, usize) {
        let mut attempts = 0;
        let attempt = |number: usize| {
            attempts += 1;
            Err(("wrong".into(), conditions[number % conditions.len()]))
        };
        let verdict = judge(attempt, || becomes_quiet);
        (verdict, attempts)
    }

    #[test]
    fn one_good_attempt_is_enough() {
        let attempt = |number| if number == 2 { Ok(()) } else { Err(("wrong".into(), BUSY)) };
        let verdict = judge(attempt, || true);
        assert_eq!(verdict, Verdict::Holds);
    }

    #[test]
    fn failures_on_a_quiet_machine_are_a_failure() {
        let (verdict, attempts) = failing(&[QUIET], true);
        assert!(
            matches!(verdict, Verdict::Wrong(reported) if reported[0].starts_with("wrong; others used 0 %"))
        );
        assert_eq!(attempts, ATTEMPTS);
    }

    #[test]
    fn failures_on_a_busy_machine_say_nothing() {
        assert!(matches!(failing(&[BUSY], false), (Verdict::Inconclusive(_), 1)));
        assert!(matches!(failing(&[BUSY], true), (Verdict::Inconclusive(_), 5)));
        assert!(matches!(failing(&[BUSY, QUIET], true), (Verdict::Inconclusive(_), 5)));
        assert!(matches!(failing(&[QUIET, BUSY], false), (Verdict::Inconclusive(_), 2)));
    }
}
