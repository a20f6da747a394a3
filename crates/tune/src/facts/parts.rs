//! The division of CPUs into compute and housekeeping, and texts about it.

use std::collections::BTreeSet;

use quell_recording::{Cpu, format_cpu_list};

use super::Facts;
use crate::catalogue::{Fills, Part};
use crate::masks::format_mask;

/// Which CPUs compute, and which are left to the system. Neither list is ever empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Those on which a job computes.
    pub compute: Vec<Cpu>,
    /// Those that are left to the system: all others online.
    pub housekeeping: Vec<Cpu>,
}

impl Parts {
    /// The compute CPUs are the requested ones; otherwise the isolated ones; otherwise all except the first core of each NUMA node, where a
    /// node with a single core does not compute.
    ///
    /// # Errors
    /// CPUs that do not exist or are not online, no CPU left to the system, or none left to compute.
    pub fn choose(facts: &Facts, compute: Option<&[Cpu]>) -> Result<Self, String> {
        let compute = match compute {
            Some(asked) => asked_for(facts, asked)?,
            None => isolated(facts).unwrap_or_else(|| all_but_first_cores(facts)),
        };
        let housekeeping: Vec<Cpu> =
            facts.online.iter().copied().filter(|cpu| !compute.contains(cpu)).collect();
        if compute.is_empty() {
            let online = format_cpu_list(&facts.online);
            return Err(format!(
                "no CPU is left to compute on: each NUMA node keeps a core for the system, and CPUs {online} are no more than that; \
                 name those that compute with --cpus"
            ));
        }
        if housekeeping.is_empty() {
            return Err(format!(
                "CPUs {} are all that are online: leave at least one to the system",
                format_cpu_list(&compute)
            ));
        }
        Ok(Self { compute, housekeeping })
    }
}

fn asked_for(facts: &Facts, asked: &[Cpu]) -> Result<Vec<Cpu>, String> {
    for cpu in asked {
        if !facts.possible.contains(cpu) && !facts.online.contains(cpu) {
            let online = format_cpu_list(&facts.online);
            return Err(format!("CPU {cpu} does not exist: this machine has CPUs {online} online"));
        }
        if !facts.online.contains(cpu) {
            return Err(format!("CPU {cpu} is offline: leave it out of --cpus, or bring it up first"));
        }
    }
    if asked.is_empty() {
        return Err("--cpus names no CPU: name those that compute".into());
    }
    Ok(asked.iter().copied().collect::<BTreeSet<_>>().into_iter().collect())
}

/// The CPUs that the kernel's scheduler does not use, unless these are all or none.
fn isolated(facts: &Facts) -> Option<Vec<Cpu>> {
    let here: Vec<Cpu> = facts.isolated.iter().copied().filter(|cpu| facts.online.contains(cpu)).collect();
    (!here.is_empty() && here.len() < facts.online.len()).then_some(here)
}

fn all_but_first_cores(facts: &Facts) -> Vec<Cpu> {
    let kept: BTreeSet<Cpu> = facts
        .numa
        .iter()
        .filter_map(|(_, node)| facts.cores.iter().find(|core| core.iter().any(|cpu| node.contains(cpu))))
        .flatten()
        .copied()
        .collect();
    facts.online.iter().copied().filter(|cpu| !kept.contains(cpu)).collect()
}

/// Fills in the placeholders of a catalogue's text for a machine.
#[derive(Clone, Copy, Debug)]
pub struct Filling<'a> {
    /// The machine.
    pub facts: &'a Facts,
    /// Its compute and housekeeping CPUs, or why it has none.
    pub parts: Result<&'a Parts, &'a str>,
    /// The value that the user set.
    pub value: Option<&'a str>,
}

impl Filling<'_> {
    /// The CPUs of a part, sorted.
    ///
    /// # Errors
    /// If there are none.
    pub fn cpus(&self, part: Part) -> Result<Vec<Cpu>, String> {
        match part {
            Part::All => Ok(self.facts.online.clone()),
            Part::Compute => Ok(self.parts?.compute.clone()),
            Part::Housekeeping => Ok(self.parts?.housekeeping.clone()),
            Part::FirstThreads => {
                let mut first: Vec<Cpu> =
                    self.facts.cores.iter().filter_map(|core| core.first().copied()).collect();
                first.sort_unstable();
                Ok(first)
            }
            Part::SecondThreads => self.second_threads(),
        }
    }

    /// The mask of a part, with the width of the kernel's own masks, which cover all possible CPUs.
    ///
    /// # Errors
    /// If the part has no CPUs.
    pub fn mask_of(&self, part: Part) -> Result<String, String> {
        Ok(self.as_mask(&self.cpus(part)?))
    }

    /// A mask of these CPUs, with that width.
    pub fn as_mask(&self, cpus: &[Cpu]) -> String {
        let width = self.facts.possible.iter().max().map_or(1, |last| last.0 as usize + 1);
        format_mask(cpus, width)
    }

    /// Compute CPUs that are not the first thread of their core; all of them if no core has two.
    fn second_threads(&self) -> Result<Vec<Cpu>, String> {
        let compute = &self.parts?.compute;
        if self.facts.cores.iter().all(|core| core.len() < 2) {
            return Ok(compute.clone());
        }
        let first: BTreeSet<Cpu> = self.facts.cores.iter().filter_map(|core| core.first().copied()).collect();
        let second: Vec<Cpu> = compute.iter().copied().filter(|cpu| !first.contains(cpu)).collect();
        match second.is_empty() {
            true => Err(format!(
                "each of the compute CPUs {} is the first thread of its core",
                format_cpu_list(compute)
            )),
            false => Ok(second),
        }
    }
}

impl Fills for Filling<'_> {
    fn list(&self, part: Part) -> Result<String, String> {
        Ok(format_cpu_list(&self.cpus(part)?))
    }

    fn mask(&self, part: Part) -> Result<String, String> {
        self.mask_of(part)
    }

    fn value(&self) -> Result<String, String> {
        self.value
            .map(str::to_owned)
            .ok_or_else(|| "only the site knows the value: give it with --set ID=VALUE".into())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use proptest::prelude::*;
    use quell_recording::parse_cpu_list;

    use super::*;

    fn list(text: &str) -> Vec<Cpu> {
        parse_cpu_list(text).unwrap()
    }

    /// Two nodes of two cores of two threads; siblings are four apart.
    fn small() -> Facts {
        Facts {
            possible: list("0-39"),
            online: list("0-7"),
            cores: ["0,4", "1,5", "2,6", "3,7"].map(list).to_vec(),
            numa: vec![(0, list("0-1,4-5")), (1, list("2-3,6-7"))],
            ..Facts::default()
        }
    }

    #[test]
    fn each_node_keeps_its_first_core() {
        let parts = Parts::choose(&small(), None).unwrap();
        assert_eq!((parts.compute, parts.housekeeping), (list("1,3,5,7"), list("0,2,4,6")));
    }

    #[test]
    fn isolated_cpus_compute_and_what_is_asked_goes_before() {
        let facts = Facts { isolated: list("4-7,20"), ..small() };
        assert_eq!(Parts::choose(&facts, None).unwrap().compute, list("4-7"));
        assert_eq!(Parts::choose(&facts, Some(&list("1,2"))).unwrap().compute, list("1-2"));
    }

    #[test]
    fn refusals_say_what_would_do() {
        let alone =
            Facts { online: list("0"), cores: vec![list("0")], numa: vec![(0, list("0"))], ..small() };
        for (facts, asked, part) in [
            (small(), Some("0-7"), "leave at least one"),
            (small(), Some("9"), "CPU 9 is offline"),
            (small(), Some("99"), "CPU 99 does not exist"),
            (alone, None, "no CPU is left to compute on"),
        ] {
            let asked = asked.map(list);
            let text = Parts::choose(&facts, asked.as_deref()).unwrap_err();
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn threads_are_counted_by_core_and_masks_are_as_wide_as_the_kernels() {
        let facts = small();
        let parts = Parts::choose(&facts, None).unwrap();
        let filling = Filling { facts: &facts, parts: Ok(&parts), value: None };
        assert_eq!(filling.list(Part::FirstThreads).unwrap(), "0-3");
        assert_eq!(filling.list(Part::SecondThreads).unwrap(), "5,7");
        assert_eq!(filling.mask(Part::Compute).unwrap(), "00,000000aa");
        let first_only = Parts { compute: list("1,3"), housekeeping: list("0,2,4-7") };
        let filling = Filling { parts: Ok(&first_only), ..filling };
        assert!(filling.cpus(Part::SecondThreads).unwrap_err().contains("first thread"));
    }

    proptest! {
        #[test]
        fn parts_never_take_all_cpus(
            online in proptest::collection::btree_set(0u32..64, 1..40),
            isolated in proptest::collection::btree_set(0u32..64, 0..64),
            asked in proptest::option::of(proptest::collection::vec(0u32..64, 0..64)),
            threads in 1u32..9,
            nodes in 1u32..5,
        ) {
            let cpus = |set: Vec<u32>| set.into_iter().map(Cpu).collect::<Vec<_>>();
            let online = cpus(online.into_iter().collect());
            let by = |key: &dyn Fn(&Cpu) -> u32| {
                let mut groups = std::collections::BTreeMap::<u32, Vec<Cpu>>::new();
                online.iter().for_each(|cpu| groups.entry(key(cpu)).or_default().push(*cpu));
                groups
            };
            let facts = Facts {
                possible: cpus((0..64).collect()),
                isolated: cpus(isolated.into_iter().collect()),
                cores: by(&|cpu| cpu.0 / threads).into_values().collect(),
                numa: by(&|cpu| cpu.0 / threads % nodes).into_iter().collect(),
                online: online.clone(),
                ..Facts::default()
            };
            if let Ok(parts) = Parts::choose(&facts, asked.map(cpus).as_deref()) {
                prop_assert!(!parts.housekeeping.is_empty() && !parts.compute.is_empty());
                let mut all = [parts.compute, parts.housekeeping].concat();
                all.sort_unstable();
                prop_assert_eq!(all, online);
            }
        }
    }
}
