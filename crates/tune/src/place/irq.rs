//! An interrupt's affinity. Numbers can change when a driver is loaded again, so the name of the handler must match too.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;

use super::PlaceError;
use super::trouble::is_root;
use crate::masks::parse_mask;
use crate::root::Root;

/// Maximum size of /proc/interrupts, which has megabytes on a machine with many CPUs and queues.
const LONGEST: u64 = 64 << 20;

/// The mask that new interrupts get.
pub const DEFAULT: &str = "/proc/irq/default_smp_affinity";

/// An interrupt with a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Irq {
    /// Its number.
    pub number: u32,
    /// The name that its drivers chose; joined by `, ` if several share it.
    pub name: String,
    /// Its mask, as in `smp_affinity`.
    pub affinity: String,
    /// Why the kernel does not permit moving it, if that is visible without trying.
    pub immovable: Option<String>,
}

/// All interrupts with a handler, by number.
pub fn list(root: &Root) -> Vec<Irq> {
    let mut reported = None;
    let numbers = root.names("/proc/irq").into_iter().filter_map(|name| plain_number(&name));
    let irqs = numbers.filter_map(|number| {
        let name = handlers(root, number)
            .or_else(|| reported.get_or_insert_with(|| interrupts(root)).get(&number).cloned())?;
        let affinity = root.read(&file(number, "smp_affinity")).ok()?.trim().to_owned();
        Some(Irq { number, name, affinity, immovable: managed(root, number) })
    });
    irqs.collect()
}

/// The mask of the CPUs that actually receive it. It changes only when the interrupt next fires.
pub fn effective(root: &Root, number: u32) -> Option<String> {
    root.read(&file(number, "effective_affinity")).ok().map(|text| text.trim().to_owned())
}

/// Why an interrupt is not where its mask says yet: it moves when it next fires.
pub(super) fn pending(root: &Root, number: u32) -> Option<String> {
    let cpus = |text: String| parse_mask(text.trim()).ok();
    let asked = cpus(root.read(&file(number, "smp_affinity")).ok()?)?;
    let effective = cpus(effective(root, number)?)?;
    let elsewhere = effective.iter().any(|cpu| !asked.contains(cpu));
    elsewhere.then(|| "it moves at the next interrupt".into())
}

pub(super) fn read(root: &Root, number: u32, name: &str) -> Result<String, PlaceError> {
    check(root, number, name)?;
    root.read(&file(number, "smp_affinity")).map_err(|e| PlaceError::from_io(&e, ""))
}

pub(super) fn write(root: &Root, number: u32, name: &str, value: &str) -> Result<(), PlaceError> {
    check(root, number, name)?;
    root.write(&file(number, "smp_affinity"), value).map_err(|error| {
        let reason = match error.raw_os_error() {
            Some(libc::EIO) => "the kernel itself places it (a managed interrupt of a queue)".to_owned(),
            Some(libc::EPERM) if is_root() => managed(root, number)
                .unwrap_or_else(|| "the kernel itself places it (a managed interrupt of a queue)".to_owned()),
            Some(libc::ENOSPC) => "no interrupt vectors are left on those CPUs: choose more CPUs".to_owned(),
            _ => return PlaceError::from_io(&error, value),
        };
        PlaceError::Immovable(reason)
    })
}

/// All interrupts, with a handler or without.
pub(super) fn numbers(root: &Root) -> Vec<u32> {
    root.names("/proc/irq").iter().filter_map(|name| plain_number(name)).collect()
}

/// Sets interrupts other than the known ones that have one default to another one. Those that the kernel itself or their driver places stay.
pub(super) fn give_default(root: &Root, known: &[u32], from: &str, to: &str) {
    for number in numbers(root).into_iter().filter(|number| !known.contains(number)) {
        let mask = file(number, "smp_affinity");
        let is = |file: &str| root.read(file).is_ok_and(|now| super::file::same(&mask, &now, from));
        if is(&mask) && !is(&file(number, "affinity_hint")) {
            let _ = root.write(&mask, to);
        }
    }
}

fn file(number: u32, name: &str) -> String {
    format!("/proc/irq/{number}/{name}")
}

fn check(root: &Root, number: u32, name: &str) -> Result<(), PlaceError> {
    if !root.has(&file(number, "")) {
        return Err(PlaceError::Gone(format!("there is no interrupt {number} any more")));
    }
    let now = handlers(root, number).or_else(|| interrupts(root).remove(&number));
    match now {
        // A shared interrupt gains and loses handlers.
        Some(now) if now.split(", ").any(|one| name.split(", ").any(|other| one == other)) => Ok(()),
        Some(now) => Err(PlaceError::Gone(format!("interrupt {number} is now `{now}`, not `{name}`"))),
        // Its mask remains, and is in force again when the driver returns.
        None => Err(PlaceError::Busy(format!("interrupt {number} has no handler now"))),
    }
}

/// The handlers' names: the subfolders of the interrupt's folder.
fn handlers(root: &Root, number: u32) -> Option<String> {
    let folder = file(number, "");
    let is_folder = |name: &String| root.path(&format!("{folder}{name}")).is_dir();
    let names: Vec<String> = root.names(&folder).into_iter().filter(is_folder).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Why a managed interrupt cannot be moved. On recent kernels its file has no write permission; older ones refuse the write.
fn managed(root: &Root, number: u32) -> Option<String> {
    let mode = std::fs::metadata(root.path(&file(number, "smp_affinity"))).ok()?.permissions().mode();
    (mode & 0o222 == 0).then(|| {
        "the kernel itself places it (a managed interrupt of a queue; its smp_affinity is read-only)".into()
    })
}

fn interrupts(root: &Root) -> BTreeMap<u32, String> {
    let bytes = root.read_bytes("/proc/interrupts", LONGEST).unwrap_or_default();
    names_in(&String::from_utf8_lossy(&bytes))
}

/// The names in the last column of `/proc/interrupts`: the text after the last wide gap, behind counts, chip and line.
fn names_in(text: &str) -> BTreeMap<u32, String> {
    let mut lines = text.lines();
    let cpus = lines.next().map_or(0, |header| header.split_whitespace().count());
    let name_of = |line: &str| {
        let (number, rest) = line.split_once(':')?;
        let number = plain_number(number.trim())?;
        if rest.split_whitespace().skip(cpus).count() < 3 {
            return None;
        }
        let (_, names) = rest.trim_end().rsplit_once("  ")?;
        let mut names: Vec<&str> = names.split(", ").map(str::trim).filter(|name| !name.is_empty()).collect();
        names.sort_unstable();
        (!names.is_empty()).then(|| (number, names.join(", ")))
    };
    lines.filter_map(name_of).collect()
}

/// A number as the kernel writes it: digits, without leading zeros.
fn plain_number(text: &str) -> Option<u32> {
    text.parse::<u32>().ok().filter(|number| number.to_string() == text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use super::super::trial;
    use super::*;
    use crate::masks::parse_mask;
    use crate::place::Place;
    use fs_err as fs;
    use proptest::prelude::*;

    const TEXT: &str = "           CPU0       CPU1
 24:          1          0  IO-APIC   5-edge      ACPI:Ged
 36:          0      99563 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
 40:          7          0 GICv3  27 Level     arch timer, a b
 41:          7          0 GICv3
NMI:          0          0   Non-maskable interrupts
ERR:          0
";

    #[test]
    fn names_are_the_last_column() {
        let names: Vec<_> = names_in(TEXT).into_iter().collect();
        let wanted = [(24, "ACPI:Ged"), (36, "virtio1-req.0"), (40, "a b, arch timer")];
        assert_eq!(names, wanted.map(|(number, name)| (number, name.to_owned())));
    }

    fn tree() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        for number in [9, 24, 100] {
            let irq = folder.path().join(format!("proc/irq/{number}"));
            fs::create_dir_all(&irq).unwrap();
            fs::write(irq.join("smp_affinity"), "00000003\n").unwrap();
        }
        fs::create_dir_all(folder.path().join("proc/irq/100/eth0-rx-0")).unwrap();
        fs::write(folder.path().join("proc/interrupts"), TEXT).unwrap();
        let root = Root::at(folder.path()).unwrap();
        (folder, root)
    }

    #[test]
    fn interrupts_are_listed_by_either_source_of_their_names() {
        let (_folder, root) = tree();
        let names: Vec<_> = list(&root).into_iter().map(|irq| (irq.number, irq.name, irq.affinity)).collect();
        let mask = || "00000003".to_owned();
        assert_eq!(names, [(24, "ACPI:Ged".into(), mask()), (100, "eth0-rx-0".into(), mask())]);
    }

    #[test]
    fn a_number_that_another_driver_has_now_is_not_touched() {
        let (_folder, root) = tree();
        assert_eq!(read(&root, 24, "ACPI:Ged").unwrap(), "00000003\n");
        write(&root, 24, "ACPI:Ged", "1").unwrap();
        assert_eq!(read(&root, 24, "ACPI:Ged").unwrap(), "1");
        for (number, name) in [(24, "eth0"), (77, "x")] {
            assert!(matches!(write(&root, number, name, "1"), Err(PlaceError::Gone(_))), "{number}");
        }
        assert!(matches!(write(&root, 9, "x", "1"), Err(PlaceError::Busy(_))), "its driver may come back");
    }

    #[test]
    fn a_real_interrupt_is_moved_and_moved_back() {
        let root = Root::system();
        let mut irqs = list(&root).into_iter().filter(|irq| irq.immovable.is_none() && irq.affinity != "1");
        let Some(irq) = irqs.next().filter(|_| trial::is_root()) else {
            return trial::skip("no interrupt may be moved here");
        };
        let place = Place::Irq { number: irq.number, name: irq.name };
        let Some(_given_back) = trial::GiveBack::new(&place) else { return trial::skip("it cannot be read") };
        match place.write(&root, "1") {
            Ok(()) => assert!(place.same(&place.read(&root).unwrap(), "1")),
            Err(PlaceError::Immovable(why)) => trial::skip(&why),
            Err(other) => panic!("{place}: {other}"),
        }
    }

    #[test]
    fn a_real_managed_interrupt_says_so() {
        let root = Root::system();
        let Some(irq) = list(&root).into_iter().find(|irq| irq.immovable.is_some()) else {
            return trial::skip("no interrupt is managed here");
        };
        parse_mask(&effective(&root, irq.number).unwrap()).unwrap();
        if trial::is_root() {
            let refused = write(&root, irq.number, &irq.name, &irq.affinity);
            assert!(matches!(refused, Err(PlaceError::Immovable(_))), "{refused:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_names_or_none(text in "( ?CPU[0-9]){0,3}\n( *[0-9]{1,12}: .{0,40}\n){0,5}|.*") {
            for name in names_in(&text).into_values() {
                prop_assert!(!name.is_empty());
            }
        }
    }
}
