//! Combines the results for single places to the state of a mitigation, with the reasons.

use super::look::{Examined, Examiner, Verdict};
use super::{Audited, State};
use crate::catalogue::Mitigation;
use crate::place::Place;

impl Examiner<'_> {
    /// Examines a mitigation and everything that it touches.
    pub fn look_at<'m>(&self, mitigation: &'m Mitigation) -> Audited<'m> {
        let mut audited = Audited {
            mitigation,
            state: State::NotHere,
            why: None,
            places: Vec::new(),
            lasting: Vec::new(),
            by_hand: Vec::new(),
        };
        if !self.facts.is_one_of(&mitigation.arch) {
            audited.why = Some(format!("this processor has none: {} only", mitigation.arch.join(", ")));
            return audited;
        }
        let looks = self.looks(mitigation);
        (audited.state, audited.why) = sum(&looks, mitigation);
        audited.lasting = self.lasting(mitigation, &looks);
        for look in looks {
            audited.places.extend(look.place_state);
            audited.by_hand.extend(look.by_hand);
        }
        audited
    }
}

/// The state of a mitigation, and the reason if the state alone does not say it.
fn sum(looks: &[Examined], mitigation: &Mitigation) -> (State, Option<String>) {
    let count = |verdict: Verdict| looks.iter().filter(|look| look.verdict == verdict).count();
    let (done, not) = (count(Verdict::Done), count(Verdict::Not));
    let (missing, unseen) = (count(Verdict::Missing), count(Verdict::Unseen));
    let hidden = (count(Verdict::NotMounted), count(Verdict::NotReadable));
    let state = match (done, not, missing, unseen) {
        (0, 0, ..) if hidden.0 > 0 => State::NotMounted,
        (0, 0, ..) if hidden.1 > 0 => State::NotReadable,
        (0, 0, _, 0) => return (State::NotHere, not_here(looks, mitigation)),
        (0, 0, _, _) => State::CannotTell,
        (0, ..) => State::NotApplied,
        _ if hidden != (0, 0) => State::Partial,
        (_, 0, 0, 0) => State::Applied,
        // Steps by hand whose state is not visible do not affect the state of the rest.
        (_, 0, 0, _) if looks.iter().all(|look| look.verdict != Verdict::Unseen || is_by_hand(look)) => {
            State::Applied
        }
        _ => State::Partial,
    };
    let mut reported = vec![
        Verdict::NotMounted,
        Verdict::NotReadable,
        Verdict::Unseen,
        Verdict::Missing,
        Verdict::Immovable,
        Verdict::Not,
    ];
    reported.extend((state == State::Applied).then_some(Verdict::Done));
    let whys: Vec<String> = reported.into_iter().flat_map(|verdict| reasons(looks, verdict)).collect();
    (state, (!whys.is_empty()).then(|| whys.join("; ")))
}

fn is_by_hand(look: &Examined) -> bool {
    look.by_hand.is_some()
}

/// Why the machine has nothing of it: what became of it, if that is known.
fn not_here(looks: &[Examined], mitigation: &Mitigation) -> Option<String> {
    if let Some(gone) = &mitigation.gone {
        let today = mitigation.successor.as_ref().map(|id| format!("; today: {id}"));
        return Some(format!("{}{}", gone.trim_end_matches('.'), today.unwrap_or_default()));
    }
    if mitigation.knob.is_empty() {
        return Some("its entry in the catalogue lists no settings".into());
    }
    let whys: Vec<String> = [Verdict::Immovable, Verdict::Missing, Verdict::NotMissed]
        .into_iter()
        .flat_map(|verdict| reasons(looks, verdict))
        .collect();
    (!whys.is_empty()).then(|| whys.join("; "))
}

/// The reasons of all results with one verdict, each once, with the number of places that have it.
fn reasons(looks: &[Examined], verdict: Verdict) -> Vec<String> {
    let mine: Vec<&Examined> = looks.iter().filter(|look| look.verdict == verdict).collect();
    let mut reasons: Vec<&str> = Vec::new();
    for why in mine.iter().filter_map(|look| look.why.as_deref()) {
        if !reasons.contains(&why) {
            reasons.push(why);
        }
    }
    let one = |why: &&str| {
        let same: Vec<&&Examined> = mine.iter().filter(|look| look.why.as_deref() == Some(*why)).collect();
        match same.first().and_then(|look| look.place_state.as_ref()) {
            Some(place_state) => reason(looks, &place_state.place, same.len(), verdict, why),
            None => (*why).to_owned(),
        }
    };
    let (shown, rest) = reasons.split_at(reasons.len().min(4));
    let more = (!rest.is_empty()).then(|| format!("and {} more reasons", rest.len()));
    shown.iter().map(one).chain(more).collect()
}

/// One reason for several places: `3 of 19 interrupts cannot be moved: …`.
fn reason(looks: &[Examined], place: &Place, count: usize, verdict: Verdict, why: &str) -> String {
    let kind = noun(place);
    let alike = looks.iter().filter_map(|look| look.place_state.as_ref());
    let all = alike.filter(|place_state| noun(&place_state.place) == kind).count();
    let what = match verdict {
        Verdict::Immovable if matches!(place, Place::File { .. }) => "cannot be written: ",
        Verdict::Immovable => "cannot be moved: ",
        Verdict::Unseen => "cannot be judged: ",
        Verdict::NotReadable => "cannot be read: ",
        _ => "",
    };
    match (count, all) {
        (1, 1) => format!("{place}: {what}{why}"),
        _ if what.is_empty() => format!("{count} of {all} {kind}: {why}"),
        _ => format!("{count} of {all} {kind} {what}{why}"),
    }
}

fn noun(place: &Place) -> &'static str {
    match place {
        Place::File { .. } => "files",
        Place::Irq { .. } => "interrupts",
        Place::Thread { .. } => "threads",
        Place::Unit { .. } => "units",
        Place::DropIn { .. } => "drop-ins",
        Place::Held { .. } | Place::Cpuset { .. } => "places",
    }
}
