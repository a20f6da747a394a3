//! What a plan must not contain, even if its hash is right: anyone can compute a hash.

use std::collections::BTreeSet;

use super::{Plan, Write};
use crate::deny;
use crate::place::{ABSENT, Place};

/// Maximum length of the value of one file, in bytes.
const LONGEST_VALUE: usize = 1 << 20;

/// Checks every write.
///
/// # Errors
/// The first write that is refused, and why.
pub fn check(plan: &Plan) -> Result<(), String> {
    let mut ids = BTreeSet::new();
    for write in &plan.writes {
        let refused =
            |why: String| format!("the write `{}` is refused: {why}", quell_recording::one_line(&write.id));
        if !ids.insert(&write.id) {
            return Err(refused("another mitigation has its id".into()));
        }
        if !plan.mitigations.iter().any(|one| one.id == write.mitigation) {
            return Err(refused("it belongs to no mitigation of the plan".into()));
        }
        one(write).map_err(refused)?;
    }
    Ok(())
}

fn one(write: &Write) -> Result<(), String> {
    let values = [&write.old, &write.new];
    if values.iter().any(|value| value.len() > LONGEST_VALUE || value.contains('\0')) {
        return Err("its value is not the text of a setting".into());
    }
    write.group.iter().chain(&write.dependents).try_for_each(|path| deny::file(path))?;
    match &write.place {
        Place::File { path } => deny::file(path),
        Place::Unit { name } => deny::unit(name),
        Place::DropIn { path } => {
            deny::drop_in(path)?;
            let mut texts = values.into_iter().filter(|text| *text != ABSENT);
            texts.try_for_each(|text| deny::contents(path, text).map(drop))
        }
        Place::Irq { name, .. } if name.contains('/') => Err("an interrupt has no such name".into()),
        Place::Thread { pid: 0, .. } => Err("there is no thread 0".into()),
        _ => Ok(()),
    }
}
