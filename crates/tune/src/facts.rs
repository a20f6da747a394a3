//! What a plan must know of a machine: its CPUs and how they are related, its kernel, and which CPUs are whose.

mod look;
mod parts;

pub use parts::{Filling, Parts};
use quell_recording::Cpu;

/// One look at a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The host's name.
    pub host: String,
    /// The kernel's release.
    pub kernel: String,
    /// The processor, as in `uname -m`; `unknown` where nothing says.
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
    /// The options on the kernel's command line: what follows `--` is the first program's.
    pub fn options(&self) -> impl Iterator<Item = &str> {
        self.cmdline.iter().map(String::as_str).take_while(|word| *word != "--")
    }

    /// Whether this is one of the processors that a mitigation is for: `powerpc64` and `ppc64` stand for either byte order.
    pub fn is_one_of(&self, archs: &[String]) -> bool {
        archs.is_empty() || archs.iter().any(|arch| family(arch) == family(&self.arch))
    }
}

fn family(arch: &str) -> &str {
    match arch {
        "ppc64le" | "ppc64" | "powerpc64" | "powerpc64le" | "powerpc" | "power" => "powerpc64",
        "x86" | "amd64" => "x86_64",
        "arm64" => "aarch64",
        other => other,
    }
}
