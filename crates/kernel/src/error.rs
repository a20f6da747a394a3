//! Errors of the kernel recorder.

use std::io;

use quell_recording::Cpu;

/// What went wrong, and what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// The kernel has no BTF, the description of its types.
    #[error(
        "the kernel carries no type information (/sys/kernel/btf/vmlinux): use one built with CONFIG_DEBUG_INFO_BTF"
    )]
    NoTypes,
    /// Programs on arm64 cannot do what the recorder's need.
    #[error(
        "eBPF programs of this kernel have no atomic operations that return a value, which arm64 has from 5.18 on: boot a newer kernel"
    )]
    NoAtomicResults,
    /// The programs were refused because a privilege is missing.
    #[error(
        "this user may not load eBPF programs: run as root, or `sudo setcap cap_bpf,cap_perfmon=ep` the quell program"
    )]
    NotPermitted,
    /// The process has too many open files.
    #[error("this process may not open enough files for the programs and their maps: raise `ulimit -n`")]
    TooManyFiles,
    /// The programs, or one of their maps, were refused for another reason.
    #[error("the kernel refused {what}: {reason}")]
    Refused {
        /// The map or program.
        what: String,
        /// The text of libbpf.
        reason: String,
    },
    /// The kernel is locked down.
    #[error(
        "the kernel is locked down (confidentiality), so no program may read its memory, not even root's: boot without \
         `lockdown=confidentiality`"
    )]
    LockedDown,
    /// Threads cannot be followed from within a PID namespace.
    #[error(
        "quell runs in a PID namespace of its own, as in a container, where the kernel's ids of threads are not its own: run it \
         outside, or share the host's PID namespace, to follow a command"
    )]
    PidNamespace,
    /// Threads cannot be followed from within a time namespace.
    #[error(
        "quell runs in a time namespace of its own, where the clock is not the kernel's: run it outside, to follow a command"
    )]
    TimeNamespace,
    /// A CPU that the kernel does not know.
    #[error("CPU {0} is beyond those that this kernel can have")]
    UnknownCpu(Cpu),
    /// The metric container is not available.
    #[error("the metric container {doing}")]
    Container {
        /// The step that failed.
        doing: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

impl KernelError {
    /// The error for a step of the metric container that failed.
    pub(crate) fn container(doing: &'static str) -> impl Fn(io::Error) -> Self + Copy {
        move |source| match source.raw_os_error() {
            Some(libc::EMFILE) => Self::TooManyFiles,
            _ => Self::Container { doing, source },
        }
    }

    /// The error for a refusal by libbpf. The verifier's "permission denied" (EACCES) is not a missing privilege (EPERM).
    pub(crate) fn refused(what: impl Into<String>, error: &libbpf_rs::Error) -> Self {
        let reason = format!("{error:#}");
        if locked_down() {
            return Self::LockedDown;
        }
        if reason.contains("os error 1)") {
            return Self::NotPermitted;
        }
        if reason.contains("os error 24)") {
            return Self::TooManyFiles;
        }
        let printed = crate::libbpf_log::last_words();
        Self::Refused {
            what: what.into(),
            reason: if printed.is_empty() { reason } else { format!("{reason}: {printed}") },
        }
    }
}

/// Whether programs may not read the kernel's memory. A locked-down kernel refuses them by different errors.
fn locked_down() -> bool {
    fs_err::read_to_string("/sys/kernel/security/lockdown")
        .is_ok_and(|modes| modes.contains("[confidentiality]"))
}
