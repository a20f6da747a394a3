//! The commands in which a call fails, and the kinds of calls.

/// Stands for a program of MPI in the arguments of a case.
pub const MPI_PROGRAM: &str = "MPI-PROGRAM";

/// A command, and what holds of what it makes.
pub struct Case {
    pub name: &'static str,
    pub args: &'static [&'static str],
    /// What it makes, if it makes something.
    pub output: Option<&'static str>,
    /// How to look at what it makes, as a command; its stdout must be that of the run without a fault. Empty: the bytes must be equal.
    pub look: &'static [&'static str],
    /// Whether it starts no program, so that calls that bypass the C library can be faulted too.
    pub alone: bool,
    /// Whether two runs without a fault print and make the same.
    pub repeats: bool,
    /// Whether an output may be incomplete and say so: it is written while something is measured.
    pub grows: bool,
    /// Whether it runs a command, and ends with 126 where it cannot.
    pub command: bool,
    /// Whether it goes on from what a killed run left, under the same name.
    pub resumes: bool,
    /// What takes its changes of the inputs back.
    pub undo: &'static [&'static str],
}

const fn case(name: &'static str, args: &'static [&'static str]) -> Case {
    Case {
        name,
        args,
        output: None,
        look: &[],
        alone: true,
        repeats: true,
        grows: false,
        command: false,
        resumes: false,
        undo: &[],
    }
}

pub const CASES: &[Case] = &[
    Case {
        output: Some("out.quell"),
        look: &["show", "out.quell", "--json"],
        ..case("convert to a recording", &["convert", "selfish.txt", "out.quell"])
    },
    Case { output: Some("out.csv"), ..case("convert to CSV", &["convert", "a.quell", "out.csv"]) },
    Case {
        output: Some("out"),
        repeats: false,
        ..case("convert to OTF2", &["convert", "a.quell", "out", "--to", "otf2"])
    },
    case("show", &["show", "a.quell", "--json"]),
    case("predict", &["predict", "a.quell", "--ranks", "16", "--phases", "50", "--json"]),
    case("compare", &["compare", "a.quell", "a.quell", "--json"]),
    case("simulate", &["simulate", "ring.goal", "--noise", "a.quell", "--json"]),
    Case {
        output: Some("out.goal"),
        ..case(
            "make a schedule",
            &["goal", "make", "--pattern", "allreduce-ring", "--ranks", "8", "-o", "out.goal"],
        )
    },
    Case {
        output: Some("out.html"),
        repeats: false,
        ..case("report", &["report", "a.quell", "-o", "out.html", "--ranks", "16", "--phases", "50"])
    },
    Case {
        output: Some("out"),
        look: &["predict", "--sweep", "plan.toml", "--output", "out", "--json"],
        resumes: true,
        ..case("sweep", &["predict", "--sweep", "plan.toml", "--output", "out", "--json"])
    },
    Case {
        output: Some("out.quell"),
        look: &["show", "out.quell", "--json"],
        repeats: false,
        grows: true,
        ..case("record", &["record", "-o", "out.quell", "--duration", "20ms", "--sources", "off"])
    },
    Case {
        output: Some("out.quell"),
        look: &["show", "out.quell", "--json"],
        repeats: false,
        grows: true,
        alone: false,
        ..case(
            "record the kernel",
            &["record", "-o", "out.quell", "--method", "kernel", "--duration", "20ms"],
        )
    },
    Case {
        output: Some("out"),
        repeats: false,
        alone: false,
        command: true,
        // A given overhead, because on a slow machine the measured one may be longer than all detours.
        ..case(
            "replay",
            &["replay", "selfish.txt", "-o", "out", "--context", "timer", "--overhead", "1us", "--", "true"],
        )
    },
    Case {
        output: Some("out"),
        look: &["track", "out", "--json"],
        repeats: false,
        grows: true,
        alone: false,
        command: true,
        ..case("trace", &["trace", "-o", "out", "--", MPI_PROGRAM, "5"])
    },
    Case {
        output: Some("out"),
        look: &["show", "out/node.quell", "--json"],
        repeats: false,
        grows: true,
        ..case(
            "study",
            &[
                "study",
                "-o",
                "out",
                "--duration",
                "20ms",
                "--sources",
                "off",
                "--ranks",
                "16",
                "--phases",
                "20",
            ],
        )
    },
    Case {
        repeats: false,
        undo: &["tune", "revert", "--sysroot", "node"],
        ..case(
            "apply a plan",
            &["tune", "apply", "plan", "--yes", "--max-risk", "medium", "--sysroot", "node"],
        )
    },
    Case {
        repeats: false,
        undo: &["tune", "revert", "--sysroot", "node"],
        ..case("audit", &["tune", "audit", "--sysroot", "node", "--json"])
    },
];

/// Kinds of calls, with the error numbers with which they fail.
pub const KINDS: &[(&str, &[i32])] = &[
    ("alloc", &[libc::ENOMEM]),
    ("open", &[libc::EMFILE, libc::EACCES, libc::ENOSPC, libc::EIO, libc::EINTR]),
    ("read", &[libc::EIO, libc::EINTR]),
    ("write", &[libc::ENOSPC, libc::EIO, libc::EINTR, libc::EDQUOT]),
    ("sync", &[libc::EIO, libc::ENOSPC]),
    ("rename", &[libc::EIO, libc::ENOSPC, libc::EACCES]),
    ("mkdir", &[libc::ENOSPC, libc::EACCES]),
    ("unlink", &[libc::EIO, libc::EACCES]),
    ("truncate", &[libc::ENOSPC, libc::EIO]),
    ("map", &[libc::ENOMEM]),
    ("thread", &[libc::EAGAIN]),
    ("fork", &[libc::EAGAIN, libc::ENOMEM]),
    ("clock", &[]),
    ("bpf", &[libc::EPERM, libc::ENOMEM, libc::EINVAL]),
];
