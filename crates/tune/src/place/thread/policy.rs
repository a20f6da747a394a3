//! Scheduling policy and priority: `fifo:1`, `rr:1`, `other:0`. The nice value of a thread does not change.

use std::io;

use super::super::PlaceError;
use super::stat::Stat;

/// The highest real-time priority that quell sets: above it a loop would starve the kernel's own threads.
const HIGHEST: u32 = 2;

/// Policies by their numbers in the kernel's sched.h; `libc` does not have all of them.
const POLICIES: [(u32, &str); 7] =
    [(0, "other"), (1, "fifo"), (2, "rr"), (3, "batch"), (5, "idle"), (6, "deadline"), (7, "ext")];

const FIFO: u32 = 1;
const RR: u32 = 2;
const DEADLINE: u32 = 6;

/// Policy and priority as text.
pub fn text(policy: u32, priority: u32) -> String {
    match POLICIES.iter().find(|(number, _)| *number == policy) {
        Some((_, word)) => format!("{word}:{priority}"),
        None => format!("policy-{policy}:{priority}"),
    }
}

fn parse(text: &str) -> Option<(u32, u32)> {
    let (word, priority) = text.trim().split_once(':')?;
    let (policy, _) = POLICIES.iter().find(|(_, known)| *known == word)?;
    let priority = priority.parse().ok()?;
    let real_time = matches!(*policy, FIFO | RR);
    (real_time == (priority > 0)).then_some((*policy, priority))
}

/// Sets policy and priority. SCHED_RESET_ON_FORK stays set if the thread has it, so that its children get an ordinary policy.
pub fn set(pid: u32, now: &Stat, value: &str) -> Result<(), PlaceError> {
    let (policy, priority) = parse(value).ok_or_else(|| PlaceError::Invalid(value.trim().to_owned()))?;
    if (policy, priority) == (now.policy, now.priority) {
        return Ok(());
    }
    if policy == DEADLINE || priority > HIGHEST {
        return Err(PlaceError::Unavailable(format!(
            "quell does not set `{}`: the highest real-time priority is {HIGHEST}, so that the kernel's own threads come first",
            value.trim()
        )));
    }
    // quell does not change a policy that it could not restore.
    if now.policy == DEADLINE || now.priority > HIGHEST {
        return Err(PlaceError::Unavailable(format!(
            "it has `{}` already, which quell could not restore",
            text(now.policy, now.priority)
        )));
    }
    let id = pid as libc::pid_t;
    let failed = || PlaceError::from_io(&io::Error::last_os_error(), value);
    // SAFETY: the call only reads its argument.
    let flags = unsafe { libc::sched_getscheduler(id) };
    if flags < 0 {
        return Err(failed());
    }
    let policy = policy as libc::c_int | (flags & libc::SCHED_RESET_ON_FORK);
    let parameters = libc::sched_param { sched_priority: priority as libc::c_int };
    // SAFETY: the parameters live through the call.
    match unsafe { libc::sched_setscheduler(id, policy, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(failed()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_as_they_are_written() {
        for (policy, priority, words) in
            [(0, 0, "other:0"), (1, 1, "fifo:1"), (2, 5, "rr:5"), (3, 0, "batch:0"), (5, 0, "idle:0")]
        {
            assert_eq!(text(policy, priority), words);
            assert_eq!(parse(words), Some((policy, priority)));
        }
        for bad in ["fifo", "fifo:0", "other:1", "fifo:-1", "x:1", "1:1", ""] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
