//! Which mitigations are chosen, which can be combined, and their order.

use crate::audit::{Audit, Audited};
use crate::suggestions;

/// The chosen mitigations in the order of their writes: a mitigation that must precede others goes first; otherwise by id.
///
/// # Errors
/// Unknown ids, and ids that cannot be combined.
pub fn choose<'p, 'a>(audit: &'p Audit<'a>, ids: &[String]) -> Result<Vec<&'p Audited<'a>>, String> {
    let known = || audit.entries.iter().map(|one| one.mitigation.id.as_str());
    if let Some(stranger) = ids.iter().find(|id| !known().any(|one| one == *id)) {
        return Err(suggestions::unknown(stranger, known()));
    }
    let mut chosen: Vec<&Audited<'a>> =
        audit.entries.iter().filter(|one| ids.contains(&one.mitigation.id)).collect();
    if chosen.is_empty() {
        return Err("no mitigation is chosen: `quell tune audit` lists them".into());
    }
    chosen.sort_by_key(|one| &one.mitigation.id);
    chosen.dedup_by_key(|one| &one.mitigation.id);
    alone(&chosen)?;
    peaceful(&chosen)?;
    Ok(sorted(chosen))
}

/// Refuses a disruptive mitigation together with others.
fn alone(chosen: &[&Audited<'_>]) -> Result<(), String> {
    match chosen.iter().find(|one| one.mitigation.disruptive && chosen.len() > 1) {
        Some(one) => Err(format!(
            "`{}` is disruptive (programs on the node notice), and cannot share a plan with others: plan it alone",
            one.mitigation.id
        )),
        None => Ok(()),
    }
}

/// Refuses two mitigations of which one excludes the other.
fn peaceful(chosen: &[&Audited<'_>]) -> Result<(), String> {
    for one in chosen.iter().map(|one| one.mitigation) {
        if let Some(other) = chosen.iter().find(|other| one.conflicts.contains(&other.mitigation.id)) {
            return Err(format!(
                "`{}` and `{}` exclude each other, so leave one out: the first does this: {}; the second: {}",
                one.id, other.mitigation.id, one.title, other.mitigation.title
            ));
        }
    }
    Ok(())
}

fn sorted<'p, 'a>(mut rest: Vec<&'p Audited<'a>>) -> Vec<&'p Audited<'a>> {
    let mut order = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let waits = |one: &&Audited<'_>| {
            let after = &one.mitigation.after;
            rest.iter()
                .any(|other| other.mitigation.id != one.mitigation.id && after.contains(&other.mitigation.id))
        };
        // The catalogue has no cycle; if it had one, its first element would go first.
        let next = rest.iter().position(|one| !waits(one)).unwrap_or(0);
        order.push(rest.remove(next));
    }
    order
}
