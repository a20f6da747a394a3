//! When the current value of a place counts as the wanted one.

use quell_recording::Cpu;

use crate::catalogue::Compare;
use crate::place::Place;

/// Whether `now` counts as `want`.
pub fn counts(place: &Place, now: &str, want: &str, how: Compare, online: &[Cpu]) -> bool {
    let numbers = || Some((number(now)?, number(want)?));
    match how {
        Compare::Equal => place.same(now, want),
        Compare::AtLeast => numbers().is_some_and(|(now, want)| now >= want),
        Compare::AtMost => numbers().is_some_and(|(now, want)| now <= want),
        Compare::AtMostNotZero => elements(now)
            .zip(elements(want).and_then(|want| want.first().copied()))
            .is_some_and(|(now, want)| now.iter().all(|now| *now != 0 && *now <= want)),
        Compare::FirstAtMost => first(now).zip(first(want)).is_some_and(|(now, want)| now <= want),
        Compare::AtLeastOrZero => numbers().is_some_and(|(now, want)| now == 0 || now >= want),
        Compare::LatencyAtMost => {
            now.trim() == "n/a" || numbers().is_some_and(|(now, want)| now != 0 && now <= want)
        }
        Compare::Within => within(place, now, want, online),
        Compare::Covers => within(place, want, now, online),
    }
}

fn number(text: &str) -> Option<i128> {
    text.trim().parse().ok()
}

/// The numbers of a module's parameter: one, or an array of them.
fn elements(text: &str) -> Option<Vec<i128>> {
    text.trim().split(',').map(number).collect()
}

/// The first of several numbers.
fn first(text: &str) -> Option<i128> {
    text.split_whitespace().map(number).collect::<Option<Vec<_>>>()?.first().copied()
}

/// Whether no online CPU is outside the wanted ones. A mask can also name CPUs that are offline or do not exist.
fn within(place: &Place, now: &str, want: &str, online: &[Cpu]) -> bool {
    let (Some(now), Some(want)) = (place.cpus(now), place.cpus(want)) else { return false };
    let mut here = now.iter().filter(|cpu| online.binary_search(cpu).is_ok());
    here.all(|cpu| want.binary_search(cpu).is_ok())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use super::*;
    use quell_recording::parse_cpu_list;

    #[test]
    fn each_way_of_counting() {
        let file = |path: &str| Place::File { path: path.into() };
        let online = parse_cpu_list("0-3").unwrap();
        let vm = file("/proc/sys/vm/x");
        for (place, now, want, how, counted) in [
            (&vm, "20\n", "20", Compare::Equal, true),
            (&vm, "30\n", "20", Compare::AtLeast, true),
            (&vm, "-1\n", "20", Compare::AtLeast, false),
            (&vm, "30\n", "20", Compare::AtMost, false),
            (&vm, "1\n", "3", Compare::AtMostNotZero, true),
            (&vm, "0\n", "3", Compare::AtMostNotZero, false),
            (&vm, "3,2\n", "3,3", Compare::AtMostNotZero, true),
            (&vm, "3,4\n", "3,3", Compare::AtMostNotZero, false),
            (&vm, "3,0\n", "3,3", Compare::AtMostNotZero, false),
            (&vm, "3,\n", "3", Compare::AtMostNotZero, false),
            (&vm, "0\t4\t1\t7\n", "1 4 1 7", Compare::FirstAtMost, true),
            (&vm, "4\t4\t1\t7\n", "1 4 1 7", Compare::FirstAtMost, false),
            (&vm, "0 x\n", "1 4 1 7", Compare::FirstAtMost, false),
            (&vm, "0\n", "600", Compare::AtLeastOrZero, true),
            (&vm, "120\n", "600", Compare::AtLeastOrZero, false),
            (&vm, "n/a\n", "600", Compare::AtLeast, false),
            (&vm, "1\n", "3", Compare::LatencyAtMost, true),
            (&vm, "3\n", "3", Compare::LatencyAtMost, true),
            (&vm, "n/a\n", "3", Compare::LatencyAtMost, true),
            (&vm, "0\n", "3", Compare::LatencyAtMost, false),
            (&vm, "100\n", "3", Compare::LatencyAtMost, false),
            (&file("/proc/irq/default_smp_affinity"), "1\n", "03", Compare::Within, true),
            (&file("/proc/irq/default_smp_affinity"), "ffffff03\n", "03", Compare::Within, true),
            (&file("/proc/irq/default_smp_affinity"), "7\n", "03", Compare::Within, false),
            (&file("/proc/sys/kernel/watchdog_cpumask"), "0-1\n", "0-2", Compare::Within, true),
            (&file("/proc/sys/kernel/watchdog_cpumask"), "\n", "0-2", Compare::Within, true),
            (&file("/proc/sys/kernel/watchdog_cpumask"), "1-3\n", "2-3", Compare::Covers, true),
            (&file("/proc/sys/kernel/watchdog_cpumask"), "3\n", "2-3", Compare::Covers, false),
        ] {
            assert_eq!(counts(place, now, want, how, &online), counted, "{now:?} {how:?} {want}");
        }
    }
}
