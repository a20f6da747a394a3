//! Units of systemd, and processes that do the same work without systemd.

use super::look::{Examined, Examiner, Verdict};
use super::{ByHand, PlaceState};
use crate::catalogue::UnitKnob;
use crate::place::{Place, PlaceError};

/// States in which a unit runs, or is about to.
const RUNNING: [&str; 3] = ["active", "activating", "reloading"];

impl Examiner<'_> {
    pub(super) fn unit(&self, knob: &UnitKnob) -> Vec<Examined> {
        let place = Place::Unit { name: knob.name.clone() };
        let read = match self.no_systemd() {
            Some(why) => Err(PlaceError::Unavailable(why)),
            None => place.read(self.root),
        };
        let mut looks = vec![match read {
            Ok(now) => stopped(place, &now),
            Err(trouble) if trouble.is_absence() => {
                // A service has several possible names, of which a node has one.
                let why = match trouble {
                    PlaceError::Missing => format!("there is no {}", knob.name),
                    other => other.to_string(),
                };
                Examined::bare(Verdict::NotMissed, why)
            }
            Err(trouble) => {
                let why = Some(trouble.to_string());
                let place_state = PlaceState { why: why.clone(), ..PlaceState::unreadable(place) };
                Examined { verdict: Verdict::Unseen, why, place_state: Some(place_state), by_hand: None }
            }
        }];
        // systemd does not know of a process that was started without the unit.
        if !looks.iter().any(|look| look.verdict == Verdict::Not) {
            looks.extend(self.strays(knob));
        }
        looks
    }

    fn strays(&self, knob: &UnitKnob) -> Option<Examined> {
        let regex = regex::Regex::new(knob.process.as_ref()?).ok()?;
        let mine = self.lists.processes().iter().filter(|task| regex.is_match(&task.comm));
        let strays: Vec<String> = mine.map(|task| format!("{} ({})", task.comm, task.pid)).collect();
        if strays.is_empty() {
            return None;
        }
        let todo = format!("stop {}, which runs without {}", strays.join(", "), knob.name);
        let why = format!("{} runs without {}", strays.join(", "), knob.name);
        let by_hand = ByHand { todo, done: Some(false), seen: Some(why.clone()) };
        Some(Examined { verdict: Verdict::Not, why: Some(why), place_state: None, by_hand: Some(by_hand) })
    }
}

/// The wanted state of a unit: not running; whether it starts at boot stays as it is.
fn stopped(place: Place, now: &str) -> Examined {
    let (activity, enablement) = now.trim().split_once(' ').unwrap_or((now.trim(), "unknown"));
    let runs = RUNNING.contains(&activity);
    let mut place_state = PlaceState::unreadable(place);
    place_state.want = Some(if runs { format!("inactive {enablement}") } else { now.trim().to_owned() });
    place_state.done = !runs;
    place_state.now = Some(now.to_owned());
    let verdict = if runs { Verdict::Not } else { Verdict::Done };
    Examined { verdict, why: None, place_state: Some(place_state), by_hand: None }
}

/// The state that keeps a unit off permanently; none if it does not start at boot, or only other units start it (static).
pub fn disabled(now: &str) -> Option<String> {
    let enablement = now.split_whitespace().nth(1)?;
    (enablement == "enabled").then(|| "inactive disabled".to_owned())
}
