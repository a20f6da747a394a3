//! Selects the programs whose hooks this kernel has.

mod missed;

use std::ffi::OsStr;

use libbpf_rs::ReferencesType as _;
use libbpf_rs::btf::types::{Enum, Func, FuncProto, Ptr, Struct, Typedef};
use libbpf_rs::skel::Skel as _;
use libbpf_rs::{Btf, Link, OpenProgramMut, ProgramMut};

use crate::bpf::RecorderSkel;
use crate::error::KernelError;
use missed::MISSED;

/// The hook of a program, from its section: kind and name.
fn place(section: &str) -> (&str, &str) {
    section.split_once('/').unwrap_or((section, ""))
}

/// Whether the programs of a section of this kind run at a tracepoint.
fn is_tracepoint(kind: &str) -> bool {
    matches!(kind, "tp_btf" | "raw_tp")
}

/// Attaches the programs of all tracepoints, until the links are dropped. The object has an interval's entry before its exit: they are attached
/// the other way round, and detached in this order, so that no interval begins whose end is not seen.
pub(crate) fn attach(skeleton: &mut RecorderSkel<'_>) -> Result<Vec<Link>, KernelError> {
    let is_chosen = |program: &ProgramMut<'_>| {
        is_tracepoint(place(&program.section().to_string_lossy()).0) && program.autoload()
    };
    let mut programs: Vec<_> = skeleton.object_mut().progs_mut().filter(is_chosen).collect();
    programs.reverse();
    let links = programs.iter().map(ProgramMut::attach).collect::<Result<Vec<_>, _>>();
    let mut links = links.map_err(|e| KernelError::refused("to attach a program", &e))?;
    links.reverse();
    Ok(links)
}

/// The interrupt at whose end programs read the hypervisor's counter of stolen time: the tick's.
const TICK_EXIT: &str = if cfg!(target_arch = "x86_64") { "local_timer_exit" } else { "irq_handler_exit" };

/// Why stolen time is not seen, as [`missing_hooks`] says it; `None` if it is.
pub(crate) fn unseen_steal(kernel: &Btf<'_>) -> Option<String> {
    let lost = "what the hypervisor takes is not seen";
    let timer = fs_err::read_to_string("/sys/devices/system/clockevents/clockevent0/current_device");
    if !keeps_stolen_time(kernel) {
        Some(format!("prev_steal_time: {lost}"))
    } else if !exists(kernel, TICK_EXIT) || timer.is_ok_and(|timer| !ticks_there(timer.trim())) {
        Some(format!("{TICK_EXIT}: the tick does not come there, so {lost}"))
    } else {
        None
    }
}

/// Whether the tick of a clock event device ends at [`TICK_EXIT`]. On x86 those of hypervisors (`Hyper-V clockevent`, `xen`) do not use the
/// local timer's interrupt.
fn ticks_there(timer: &str) -> bool {
    cfg!(not(target_arch = "x86_64")) || timer.starts_with("lapic")
}

/// Whether the run queue stores the hypervisor's counter of stolen time, and can be reached from a task.
fn keeps_stolen_time(kernel: &Btf<'_>) -> bool {
    let has = |name: &str, field: &str| {
        kernel
            .type_by_name::<Struct<'_>>(name)
            .is_some_and(|s| s.iter().any(|member| member.name.is_some_and(|n| n == field)))
    };
    has("rq", "prev_steal_time") && has("cfs_rq", "rq")
}

/// The functions behind the periodic tick, by version.
pub(crate) const TICK_FUNCTIONS: [&str; 2] = ["tick_sched_timer", "tick_nohz_handler"];

/// The one of this kernel. Before Linux 6.8 `tick_nohz_handler` existed as well, and handled a clock that has no timers.
pub(crate) fn tick_function(kernel: &Btf<'_>) -> &'static str {
    let [before, now] = TICK_FUNCTIONS;
    if takes(kernel, now, "hrtimer") { now } else { before }
}

/// Whether the first argument of a function points to this structure.
fn takes(kernel: &Btf<'_>, function: &str, structure: &str) -> bool {
    let prototype = kernel
        .type_by_name::<Func<'_>>(function)
        .and_then(|function| FuncProto::try_from(function.referenced_type()).ok());
    let argument = prototype.as_ref().and_then(|prototype| prototype.iter().next());
    let pointer = argument.and_then(|argument| kernel.type_by_id::<Ptr<'_>>(argument.ty));
    let pointed = pointer.and_then(|pointer| Struct::try_from(pointer.referenced_type()).ok());
    pointed.is_some_and(|pointed| pointed.name().is_some_and(|name| name == structure))
}

/// Whether `sched_switch` passes the state in which it leaves a task: its fourth argument, after the hook's own first.
pub(crate) fn switch_tells_state(kernel: &Btf<'_>) -> bool {
    let hook = kernel.type_by_name::<Typedef<'_>>("btf_trace_sched_switch");
    let function = hook.and_then(|hook| Ptr::try_from(hook.referenced_type()).ok());
    let prototype = function.and_then(|function| FuncProto::try_from(function.referenced_type()).ok());
    prototype.is_some_and(|prototype| prototype.iter().count() >= 5)
}

/// Whether an atomic operation of a program can return a value (Linux 5.12 and later; on arm64 5.18).
/// The kernel's types do not say so; these functions for programs came with the same versions.
pub(crate) fn has_atomic_results(kernel: &Btf<'_>) -> bool {
    let of_same_version =
        if NEEDS_ATOMIC_RESULTS { "BPF_FUNC_copy_from_user_task" } else { "BPF_FUNC_check_mtu" };
    let functions = kernel.type_by_name::<Enum<'_>>("bpf_func_id");
    let is_it = |name: Option<&OsStr>| name.is_some_and(|name| name == of_same_version);
    functions.is_some_and(|functions| functions.iter().any(|member| is_it(member.name)))
}

/// Whether every program needs such operations: arm64 orders memory by them.
pub(crate) const NEEDS_ATOMIC_RESULTS: bool = cfg!(target_arch = "aarch64");

/// Whether the kernel has a tracepoint of this name.
fn exists(kernel: &Btf<'_>, name: &str) -> bool {
    kernel.type_by_name::<Typedef<'_>>(&format!("btf_trace_{name}")).is_some()
}

/// The kernel's own types.
pub(crate) fn types() -> Result<Btf<'static>, KernelError> {
    // libbpf tries several places, and its error says nothing of the first one's.
    Btf::from_vmlinux().map_err(|_| match fs_err::File::open("/sys/kernel/btf/vmlinux") {
        Err(error) if error.raw_os_error() == Some(libc::EMFILE) => KernelError::TooManyFiles,
        _ => KernelError::NoTypes,
    })
}

/// The hooks that this kernel lacks, each with what is missed without it: `HOOK: LOSS`. Needs no privilege.
///
/// # Errors
/// [`KernelError::NoTypes`] where the kernel has no type information, [`KernelError::TooManyFiles`] where it cannot be opened.
pub fn missing_hooks() -> Result<Vec<String>, KernelError> {
    let kernel = types()?;
    let missing = MISSED.iter().filter(|(hook, _)| !exists(&kernel, hook));
    let missing = missing.map(|(hook, loss)| format!("{hook}: {loss}"));
    Ok(missing.chain(unseen_steal(&kernel)).collect())
}

/// Disables every program whose hook this kernel lacks or that is not wanted; returns what is missing from the data without it.
pub(crate) fn choose<'a>(
    kernel: &Btf<'_>,
    programs: impl Iterator<Item = OpenProgramMut<'a>>,
    wanted: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut missing = Vec::new();
    for mut program in programs {
        let section = program.section().to_string_lossy().into_owned();
        let (kind, name) = place(&section);
        let exists = !is_tracepoint(kind) || self::exists(kernel, name);
        let wanted = wanted(name);
        // `attach` does this, so that they can be detached.
        program.set_autoattach(!is_tracepoint(kind));
        program.set_autoload(exists && wanted);
        let loss = MISSED.iter().find(|(hook, _)| *hook == name).filter(|_| wanted && !exists);
        missing.extend(loss.map(|(hook, loss)| format!("{hook}: {loss}")));
    }
    missing.dedup();
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_ticks_of_hypervisors_come_elsewhere() {
        assert!(["lapic", "lapic-deadline"].iter().all(|timer| ticks_there(timer)));
        assert!(!["Hyper-V clockevent", "xen", ""].iter().any(|timer| ticks_there(timer)));
    }

    mod on_this_machine {
        use crate::hooks::*;

        #[test]
        fn the_two_functions_of_the_tick_differ_by_their_argument() {
            let Ok(kernel) = Btf::from_vmlinux() else {
                return quell_testing::skip("this kernel has no type information");
            };
            assert!(takes(&kernel, "hrtimer_cancel", "hrtimer"));
            assert!(!takes(&kernel, "hrtimer_cancel", "clock_event_device"));
            assert!(!takes(&kernel, "no_such_function", "hrtimer"));
            assert!(TICK_FUNCTIONS.contains(&tick_function(&kernel)));
        }
    }
}
