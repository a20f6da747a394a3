//! The states of many units at once: a look at a machine would otherwise start two programs for each unit.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::systemctl::{ACTIVE, ENABLED, State, Systemctl};
use crate::place::PlaceError;
use crate::root::Root;

thread_local! {
    /// What this thread looks at now.
    static LOOK: RefCell<Option<Look>> = const { RefCell::new(None) };
}

#[derive(Default)]
struct Look {
    /// Units by name; those that are not installed have no state.
    states: BTreeMap<String, Option<State>>,
    asked: BTreeSet<String>,
}

/// The units at which someone looks again and again.
#[derive(Debug, Default)]
pub struct Units {
    names: BTreeSet<String>,
}

impl Units {
    /// Looks, and answers from one call of systemctl what the last look asked, too. Writes ask systemctl themselves.
    pub fn during<T>(&mut self, root: &Root, look: impl FnOnce() -> T) -> T {
        /// Also if the look panics.
        struct End;
        impl Drop for End {
            fn drop(&mut self) {
                LOOK.take();
            }
        }
        let states = self.states(root).unwrap_or_default();
        LOOK.set(Some(Look { states, asked: BTreeSet::new() }));
        let end = End;
        let result = look();
        self.names = LOOK.take().unwrap_or_default().asked;
        drop(end);
        result
    }

    fn states(&self, root: &Root) -> Option<BTreeMap<String, Option<State>>> {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let printed = Systemctl::find(root).ok().filter(|_| !names.is_empty())?.show(&names).ok()?;
        let mut states = parse(&printed);
        // One that has another name is asked by itself: whether an alias is enabled is not what its unit says.
        states.retain(|name, _| self.names.contains(name));
        Some(states)
    }
}

/// The state of a unit, or that it is not installed; none if this look does not have it.
pub(super) fn known(name: &str) -> Option<Result<State, PlaceError>> {
    LOOK.with_borrow_mut(|look| {
        let look = look.as_mut()?;
        look.asked.insert(name.to_owned());
        Some(look.states.get(name)?.clone().ok_or(PlaceError::Missing))
    })
}

/// Units as `systemctl show` prints them: lines `NAME=VALUE`, and an empty one between two units.
fn parse(printed: &str) -> BTreeMap<String, Option<State>> {
    let unit = |lines: &str| {
        let get = |name: &str| lines.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        let (active, enabled) = (get("ActiveState")?, get("UnitFileState")?);
        let state = match get("LoadState")? {
            "not-found" if active == "inactive" => None,
            // One of an init script: only `systemctl is-enabled` asks the script's links.
            _ if enabled == "generated" => return None,
            "loaded" | "masked" if ACTIVE.contains(&active) && ENABLED.contains(&enabled) => {
                Some(State { active: active.to_owned(), enabled: enabled.to_owned() })
            }
            _ => return None,
        };
        Some((get("Id")?.to_owned(), state))
    };
    printed.split("\n\n").filter_map(unit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_known_where_all_of_it_is_shown() {
        let printed = "Id=a.service\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled\n\n\
            UnitFileState=\nId=b.service\nLoadState=not-found\nActiveState=inactive\n\n\
            Id=c.service\nLoadState=loaded\nActiveState=active\nUnitFileState=\n\n\
            Id=d.service\nLoadState=not-found\nActiveState=active\nUnitFileState=\n\n\
            Id=f.service\nLoadState=loaded\nActiveState=active\nUnitFileState=generated\n\n\
            Id=e.service\nLoadState=masked\nActiveState=inactive\nUnitFileState=masked\n";
        let states = parse(printed);
        let state =
            |active: &str, enabled: &str| Some(State { active: active.into(), enabled: enabled.into() });
        let expected = [
            ("a.service", state("active", "enabled")),
            ("b.service", None),
            ("e.service", state("inactive", "masked")),
        ];
        assert_eq!(states, expected.map(|(name, state)| (name.to_owned(), state)).into());
        assert!(parse("System has not been booted with systemd\n").is_empty());
    }
}
