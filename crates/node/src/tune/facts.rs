//! What a plan must know of a machine: its CPUs and how they are related, its kernel, and which CPUs are whose.

use quell_recording::{Cpu, format_cpu_list};

use super::catalogue::{Fills, Part};
use super::root::Root;

/// One look at a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The host's name.
    pub host: String,
    /// The kernel's release.
    pub kernel: String,
    /// The processor, as in `uname -m`.
    pub arch: String,
    /// The kernel's id of this boot; empty where it is not told.
    pub boot_id: String,
    /// The kernel's command line, word by word.
    pub cmdline: Vec<String>,
    /// CPUs that can exist.
    pub possible: Vec<Cpu>,
    /// CPUs that are switched on.
    pub online: Vec<Cpu>,
    /// CPUs that the kernel's scheduler leaves alone (`/sys/devices/system/cpu/isolated`).
    pub isolated: Vec<Cpu>,
    /// The online hardware threads of each core.
    pub cores: Vec<Vec<Cpu>>,
    /// The online CPUs of each NUMA node that has some; one node with all where the kernel knows none.
    pub numa: Vec<(u32, Vec<Cpu>)>,
}

impl Facts {
    /// Looks.
    ///
    /// # Errors
    /// Where the CPUs cannot be listed, without which there is nothing to plan.
    pub fn look(_root: &Root) -> Result<Self, String> {
        Err("not looked at".into())
    }
}

/// Which CPUs compute, and which are left to the system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Those that a job computes on. Empty on a machine with one core.
    pub compute: Vec<Cpu>,
    /// Those that are left to the system: all others online.
    pub housekeeping: Vec<Cpu>,
}

impl Parts {
    /// As asked for; else the isolated CPUs compute; else all but the first core of each NUMA node.
    ///
    /// # Errors
    /// CPUs that are not online, no CPU left to the system, or, without `bare_nodes`, a NUMA node left without.
    pub fn choose(facts: &Facts, compute: Option<&[Cpu]>) -> Result<Self, String> {
        let _ = (facts, compute);
        Err("not chosen".into())
    }
}

/// Fills the places of a catalogue's text for a machine.
#[derive(Clone, Copy, Debug)]
pub struct Filling<'a> {
    /// The machine.
    pub facts: &'a Facts,
    /// Its parts, or why it has none.
    pub parts: Result<&'a Parts, &'a str>,
    /// What the user set.
    pub value: Option<&'a str>,
}

impl Filling<'_> {
    /// The CPUs of a part.
    ///
    /// # Errors
    /// Where there are none.
    pub fn cpus(&self, _part: Part) -> Result<Vec<Cpu>, String> {
        Ok(self.facts.online.clone())
    }
}

impl Fills for Filling<'_> {
    fn list(&self, part: Part) -> Result<String, String> {
        Ok(format_cpu_list(&self.cpus(part)?))
    }

    fn mask(&self, part: Part) -> Result<String, String> {
        // As wide as the kernel's own: it counts the CPUs that can exist.
        let _ = part;
        Err("no mask".into())
    }

    fn value(&self) -> Result<String, String> {
        self.value
            .map(str::to_owned)
            .ok_or_else(|| "only the site knows the value: give it with --set ID=VALUE".into())
    }
}
