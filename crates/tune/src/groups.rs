//! Files that the kernel changes together: setting `dirty_bytes` sets `dirty_ratio` to 0 and vice versa, `soft_watchdog` switches
//! `watchdog`. They are read together, and restored together.

use super::journal::{Dependents, Group, Noted};
use super::place::{Place, PlaceError};
use super::root::Root;

/// The values of a group's files; files that do not exist are left out.
///
/// # Errors
/// Why one cannot be read.
pub fn read(root: &Root, paths: &[String]) -> Result<Group, PlaceError> {
    let mut group = Group::new();
    for path in paths {
        match (Place::File { path: path.clone() }).read(root) {
            Ok(text) => drop(group.insert(path.clone(), text)),
            Err(trouble) if trouble.is_absence() => {}
            Err(trouble) => return Err(trouble),
        }
    }
    Ok(group)
}

/// The values of dependents, which the kernel may change along with other settings. Those without a value, as of another governor, are left out.
pub fn note(root: &Root, paths: impl Iterator<Item = String>) -> Dependents {
    let noted = |path: String| {
        let place = Place::File { path: path.clone() };
        Some((path, Noted { value: value(root, &place)?, device: place.device(root) }))
    };
    paths.filter_map(noted).collect()
}

/// The value of a dependent; none while it has none, as `<unsupported>` of a governor's speed says.
pub fn value(root: &Root, place: &Place) -> Option<String> {
    place.read(root).ok().filter(|value| !value.starts_with('<'))
}

/// Writes until all files have their target values. The order in which the kernel accepts them is not known: it may refuse a zero as
/// long as the partner has its value, and sets the zero itself once the partner is written. Refused writes are therefore repeated as
/// long as another write succeeds.
///
/// # Errors
/// The files that do not reach their values, and why.
pub fn write_until_stable(root: &Root, target: &Group) -> Result<(), Vec<(String, PlaceError)>> {
    let mut blind = false;
    // Each pass sets at least one file, or no later pass will.
    for left in (0..=2 * target.len()).rev() {
        let (mut moved, mut troubles) = (false, Vec::new());
        for (path, value) in target {
            let place = Place::File { path: path.clone() };
            if place.read(root).is_ok_and(|now| place.same(&now, value)) {
                continue;
            }
            match place.write(root, value) {
                Ok(()) if place.read(root).is_ok_and(|now| place.same(&now, value)) => moved = true,
                Ok(()) => troubles.push((path.clone(), PlaceError::Ignored(value.trim().to_owned()))),
                Err(trouble) => troubles.push((path.clone(), trouble)),
            }
        }
        // A refused value may be accepted now, and an accepted one may have changed other files.
        if moved && left > 0 {
            continue;
        }
        if troubles.is_empty() {
            return Ok(());
        }
        if blind || left == 0 {
            return Err(troubles);
        }
        // While both detectors of lockups are off, kernels before 6.13 forget what was written to one of their files when one is read.
        blind = true;
        for (path, _) in troubles {
            if let Some(value) = target.get(&path) {
                // The next pass reports what this one does not set.
                let _ = Place::File { path }.write(root, value);
            }
        }
    }
    Ok(())
}
