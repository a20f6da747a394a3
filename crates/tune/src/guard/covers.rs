//! Whether a write belongs to its mitigation.

use crate::catalogue::{EACH_CPU, FileKnob, Knob, Mitigation, Property};
use crate::deny::{self, Setting};
use crate::place::{ABSENT, Place};
use crate::plan::Write;
use crate::root::fits;

/// Whether one of a mitigation's knobs can produce the place of a write, with its group and its dependents; for a drop-in, everything that it
/// sets.
pub fn covers(one: &Mitigation, write: &Write) -> bool {
    let others = |knob: &FileKnob, path: &str| {
        let is_dependent = |other: &String| {
            knob.dependents_of(path).any(|pattern| {
                pattern.split('/').count() == other.split('/').count()
                    && pattern.split('/').zip(other.split('/')).all(|(pattern, name)| fits(pattern, name))
            })
        };
        write.group.iter().all(|other| other == path || knob.group.contains(other))
            && write.dependents.iter().all(is_dependent)
    };
    let alone = write.group.is_empty() && write.dependents.is_empty();
    one.knob.iter().any(|knob| match (knob, &write.place) {
        (Knob::File(knob), Place::File { path }) => stands_for(knob, path) && others(knob, path),
        (Knob::Irq(knob), Place::Irq { name, .. }) => alone && is_match(&knob.matches, name),
        (Knob::KernelThread(knob), Place::Thread { comm, property: Property::Affinity, .. }) => {
            alone && is_match(&knob.matches, comm)
        }
        (Knob::Process(knob), Place::Thread { property, .. }) => alone && knob.what == *property,
        (Knob::Unit(knob), Place::Unit { name }) => alone && knob.name == *name,
        (Knob::Hold(knob), Place::Held { what }) => alone && knob.what == *what,
        (Knob::Cpuset(knob), Place::Cpuset { what }) => alone && knob.what == *what,
        (Knob::DropIn(knob), Place::DropIn { path }) => alone && knob.path == *path,
        (_, Place::DropIn { path }) => alone && lasts(one, path, &write.new),
        _ => false,
    })
}

/// Whether a drop-in that keeps settings after a boot sets only what the mitigation sets.
fn lasts(one: &Mitigation, path: &str, text: &str) -> bool {
    let id = &one.id;
    let ours = [
        format!("/etc/sysctl.d/90-quell-{id}.conf"),
        format!("/etc/tmpfiles.d/90-quell-{id}.conf"),
        format!("/etc/default/grub.d/90-quell-{id}.cfg"),
    ];
    let mine = |setting: &Setting| {
        one.knob.iter().any(|knob| match (knob, setting) {
            (Knob::File(knob), Setting::File(path)) => stands_for(knob, path),
            (Knob::Boot(knob), Setting::Option(option)) => knob.option == *option,
            _ => false,
        })
    };
    let settings = if text == ABSENT { Ok(Vec::new()) } else { deny::contents(path, text) };
    ours.iter().any(|our| our == path) && settings.is_ok_and(|settings| settings.iter().all(mine))
}

/// Whether a path matches a knob's pattern.
fn stands_for(knob: &FileKnob, path: &str) -> bool {
    let is_cpu = |name: &str| {
        let number = name.strip_prefix("cpu").unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let same = |(pattern, name): (&str, &str)| match pattern == EACH_CPU.trim_matches('/') {
        true => is_cpu(name),
        false => fits(pattern, name),
    };
    let parts = |text: &str| text.split('/').count();
    parts(&knob.path) == parts(path) && knob.path.split('/').zip(path.split('/')).all(same)
}

fn is_match(pattern: &str, name: &str) -> bool {
    regex::Regex::new(pattern).is_ok_and(|regex| regex.is_match(name))
}
