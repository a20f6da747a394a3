//! `/proc/PID/stat`: one line, in which the name may contain spaces, parentheses and anything else.

use crate::root::Root;

/// Maximum size of `stat` and `status`.
pub const LONGEST: u64 = 1 << 16;

/// PF_WQ_WORKER, PF_KTHREAD and PF_NO_SETAFFINITY of the kernel's sched.h.
const WORKER: u64 = 0x20;
const KERNEL_THREAD: u64 = 0x0020_0000;
const BOUND: u64 = 0x0400_0000;

/// The fields that quell uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Its id.
    pub pid: u32,
    /// Its name; a kernel worker's without its current work.
    pub comm: String,
    over: bool,
    flags: u64,
    /// When it started, in ticks after boot.
    pub start: u64,
    /// Its real-time priority; 0 for others.
    pub priority: u32,
    /// The number of its scheduling policy.
    pub policy: u32,
}

impl Stat {
    /// Whether the kernel does not permit moving it.
    pub fn bound(&self) -> bool {
        self.flags & BOUND != 0
    }

    /// Whether it has ended and is a zombie.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Whether it is a kernel thread.
    pub fn is_kernel_thread(&self) -> bool {
        self.flags & KERNEL_THREAD != 0
    }
}

/// Reads it from a thread's folder.
pub fn stat(root: &Root, folder: &str) -> Option<Stat> {
    parse(&root.read_bytes(&format!("{folder}/stat"), LONGEST).ok()?)
}

/// Reads the line.
pub fn parse(line: &[u8]) -> Option<Stat> {
    let line = String::from_utf8_lossy(line);
    let (pid, rest) = line.split_once(" (")?;
    // No field after the name contains a parenthesis, so the last one ends the name.
    let (comm, rest) = rest.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // Fields are counted from 1, and the first of these is the third.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let flags = field(9)?;
    Some(Stat {
        pid: pid.parse().ok()?,
        comm: name_of(comm, flags).to_owned(),
        over: matches!(fields.first(), Some(&("Z" | "X"))),
        flags,
        start: field(22)?,
        priority: u32::try_from(field(40)?).ok()?,
        policy: u32::try_from(field(41)?).ok()?,
    })
}

/// A worker's name includes its current work (`kworker/0:1-events`), which changes all the time.
fn name_of(comm: &str, flags: u64) -> &str {
    let worker = flags & WORKER != 0 && comm.starts_with("kworker/");
    match comm.find(['+', '-']) {
        // A rescuer's name includes its queue permanently: `kworker/R-writeback`.
        Some(at) if worker && !comm.starts_with("kworker/R-") => &comm[..at],
        _ => comm,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use super::*;
    use proptest::prelude::*;

    fn line(comm: &str, flags: u64) -> String {
        let zeros = |count| vec!["0"; count].join(" ");
        format!("12 ({comm}) S 2 0 0 0 -1 {flags} {} 777 {} 5 1 {}\n", zeros(12), zeros(17), zeros(11))
    }

    #[test]
    fn a_name_may_hold_anything() {
        for comm in ["cron", "a) (b", ") R 1 (", "", " ", "é\n)", "kworker/0:1-x"] {
            let stat = parse(line(comm, 0x0420_0000).as_bytes()).unwrap();
            assert_eq!((stat.comm.as_str(), stat.pid, stat.start), (comm, 12, 777), "{comm}");
            assert_eq!((stat.priority, stat.policy), (5, 1));
            assert!(stat.bound() && stat.is_kernel_thread());
        }
        let stat = parse(b"12 (\xff\xfe) S 2 0 0 0 -1 0").map(|stat| stat.comm);
        assert_eq!(stat, None);
    }

    #[test]
    fn a_worker_is_named_without_what_it_is_at() {
        for (comm, name) in [
            ("kworker/0:1-events", "kworker/0:1"),
            ("kworker/u8:0+flush-254:0", "kworker/u8:0"),
            ("kworker/1:0H-kblockd", "kworker/1:0H"),
            ("kworker/R-writeback", "kworker/R-writeback"),
            ("kworker/0:1", "kworker/0:1"),
        ] {
            assert_eq!(parse(line(comm, 0x0420_8060).as_bytes()).unwrap().comm, name);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_line_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn any_name_is_read_back(comm in "[^\0]{0,15}", flags in any::<u64>()) {
            let stat = parse(line(&comm, flags & !WORKER).as_bytes()).unwrap();
            prop_assert_eq!(stat.comm, comm);
        }
    }
}
