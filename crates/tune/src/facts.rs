//! What a plan needs to know about a machine: its CPUs and their topology, its kernel, and which CPUs are reserved.

mod look;
mod parts;

pub(crate) use look::{cpus, is_guest};
pub use parts::{Filling, Parts};
use quell_recording::Cpu;

/// The facts about a machine at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The host's name.
    pub host: String,
    /// The kernel's release.
    pub kernel: String,
    /// The processor, as in `uname -m`; `unknown` if nothing shows it.
    pub arch: String,
    /// The kernel's id of this boot; empty if it is not available.
    pub boot_id: String,
    /// The words of the kernel's command line.
    pub cmdline: Vec<String>,
    /// CPUs that can exist.
    pub possible: Vec<Cpu>,
    /// CPUs that are online.
    pub online: Vec<Cpu>,
    /// CPUs that the kernel's scheduler does not use (`/sys/devices/system/cpu/isolated`).
    pub isolated: Vec<Cpu>,
    /// The online hardware threads of each core.
    pub cores: Vec<Vec<Cpu>>,
    /// The online CPUs of each NUMA node that has any; one node with all of them if the kernel knows none.
    pub numa: Vec<(u32, Vec<Cpu>)>,
}

impl Facts {
    /// The options on the kernel's command line. What follows `--` is passed to init.
    pub fn options(&self) -> impl Iterator<Item = &str> {
        self.cmdline.iter().map(String::as_str).take_while(|word| *word != "--")
    }

    /// Whether this is one of a mitigation's processors: `powerpc64` and `ppc64` stand for either byte order.
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
