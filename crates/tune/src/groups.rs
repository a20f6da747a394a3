//! Files that the kernel changes together: `dirty_bytes` sets `dirty_ratio` to 0 and the other way round, `soft_watchdog` switches
//! `watchdog`. They are read together, and given back together.

use super::journal::Group;
use super::place::{Place, Trouble};
use super::root::Root;

/// What the files of a group hold; those that are not here are left out.
///
/// # Errors
/// Why one cannot be read.
pub fn read(root: &Root, paths: &[String]) -> Result<Group, Trouble> {
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

/// Writes until all files hold what they should. The order in which the kernel takes them is not known: a zero may be refused as
/// long as its partner stands, and is implied once that is set. So what is refused is tried again while something moves.
///
/// # Errors
/// The files that do not get there, and why.
pub fn settle(root: &Root, target: &Group) -> Result<(), Vec<(String, Trouble)>> {
    // Each pass settles one file at least, or none that follows will.
    for left in (0..=2 * target.len()).rev() {
        let (mut moved, mut troubles) = (false, Vec::new());
        for (path, value) in target {
            let place = Place::File { path: path.clone() };
            match place.read(root) {
                Ok(now) if place.same(&now, value) => continue,
                Ok(_) => {}
                Err(trouble) => {
                    troubles.push((path.clone(), trouble));
                    continue;
                }
            }
            match place.write(root, value) {
                Ok(()) if place.read(root).is_ok_and(|now| place.same(&now, value)) => moved = true,
                Ok(()) => troubles.push((path.clone(), Trouble::Ignored(value.trim().to_owned()))),
                Err(trouble) => troubles.push((path.clone(), trouble)),
            }
        }
        // What was refused may be taken now, and what was taken may have moved others.
        if moved && left > 0 {
            continue;
        }
        return if troubles.is_empty() { Ok(()) } else { Err(troubles) };
    }
    Ok(())
}
