//! Judging what is measured: a failure counts only where the machine was quiet.

use crate::conditions::{Conditions, Watch};
use crate::outcome::{inconclusive, measured};

/// As often a measurement is tried before it is given up. So many failures on a quiet machine are no accident.
const ATTEMPTS: usize = 5;

/// What others do now they do for a while: so many attempts on a busy machine say as much as more would.
const BUSY_ATTEMPTS: usize = 3;

/// Measures until once the figures are as they should be. `attempt` gets its number and says what is wrong, if anything; what
/// must hold on a machine however busy, it asserts itself.
///
/// The precondition is that others leave the machine alone. It is measured around each attempt ([`Conditions`]). Where figures
/// were wrong and it did not hold, the test ends as *inconclusive*: counted and named, and no failure.
///
/// # Panics
///
/// Where figures were wrong in every attempt, and the machine was quiet in all of them.
pub fn measure(mut attempt: impl FnMut(usize) -> Result<(), String>) {
    measured();
    let verdict = judge(|number| {
        let watch = Watch::start();
        attempt(number).map_err(|wrong| (wrong, watch.end()))
    });
    match verdict {
        Verdict::Holds => {}
        Verdict::Wrong(told) => panic!("wrong on a quiet machine:\n{}", told.join("\n")),
        Verdict::Inconclusive(told) => inconclusive(&format!("the machine was busy: {}", told.join(" | "))),
    }
}

#[derive(Debug, PartialEq)]
enum Verdict {
    Holds,
    Wrong(Vec<String>),
    Inconclusive(Vec<String>),
}

fn judge(mut attempt: impl FnMut(usize) -> Result<(), (String, Conditions)>) -> Verdict {
    let (mut told, mut quiet) = (Vec::new(), 0);
    for number in 0..ATTEMPTS {
        let Err((wrong, conditions)) = attempt(number) else { return Verdict::Holds };
        told.push(format!("{wrong}; {conditions}"));
        quiet += usize::from(conditions.quiet());
        if quiet == 0 && told.len() == BUSY_ATTEMPTS {
            break;
        }
    }
    if quiet == ATTEMPTS { Verdict::Wrong(told) } else { Verdict::Inconclusive(told) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Conditions = Conditions { others: 0.0, steal: 0.0 };
    const BUSY: Conditions = Conditions { others: 1.9, steal: 0.0 };

    /// The verdict on attempts that all fail in these conditions, and how many there were.
    fn failing(conditions: &[Conditions]) -> (Verdict, usize) {
        let mut attempts = 0;
        let verdict = judge(|number| {
            attempts += 1;
            Err(("wrong".into(), conditions[number % conditions.len()]))
        });
        (verdict, attempts)
    }

    #[test]
    fn one_good_attempt_is_enough() {
        let verdict = judge(|number| if number == 2 { Ok(()) } else { Err(("wrong".into(), BUSY)) });
        assert_eq!(verdict, Verdict::Holds);
    }

    #[test]
    fn failures_on_a_quiet_machine_are_a_failure() {
        let (verdict, attempts) = failing(&[QUIET]);
        assert!(matches!(verdict, Verdict::Wrong(told) if told[0].starts_with("wrong; others used 0 %")));
        assert_eq!(attempts, ATTEMPTS);
    }

    #[test]
    fn failures_on_a_busy_machine_say_nothing() {
        assert!(matches!(failing(&[BUSY]), (Verdict::Inconclusive(_), 3)));
        assert!(matches!(failing(&[BUSY, QUIET]), (Verdict::Inconclusive(_), 5)));
        assert!(matches!(failing(&[QUIET, BUSY]), (Verdict::Inconclusive(_), 5)));
    }
}
