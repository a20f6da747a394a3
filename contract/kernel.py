"""What the kernel recorder names: kinds of noise sources, levels of the metric container, IPIs, softirqs."""

from __future__ import annotations

from contract.rows import Hook, Ipi, Kind, Number

KINDS = (
    Kind("nmi", "nmi", "A non-maskable interrupt."),
    Kind(
        "tick", "hardirq", "The local timer's interrupt, whichever timers it ran.", note="the local timer's interrupt"
    ),
    Kind(
        "irq",
        "hardirq",
        "A device's interrupt, by the name that its driver registered.",
        own="NAME",
        note="devices' interrupts",
    ),
    Kind(
        "ipi",
        "hardirq",
        "Another CPU's interrupt: `reschedule`, `call_function`, `irq_work`, and so on.",
        own="KIND",
        note="other CPUs' interrupts",
    ),
    Kind(
        "softirq",
        "softirq",
        "Deferred kernel work, by its vector: `TIMER`, `NET_RX`, `SCHED`, `RCU`, and so on.",
        own="NAME",
    ),
    Kind(
        "task",
        "task",
        "Another task that ran, by its comm.",
        own="COMM",
        note="preemptions: from losing the CPU while runnable to having one again",
    ),
    Kind("fault", "task", "A page fault.", note="page faults"),
    Kind(
        "steal",
        "hardirq",
        "Time that the hypervisor gave to others.",
        note="time that the hypervisor gave to others while the thread was on a CPU",
    ),
)

# One kind more makes slots of the container, and counters in the tracer's logs, others: raise both.
CONTAINER_VERSION = 1
TRACE_LOG_VERSION = 2
KINDS_DOC = "What takes a CPU from a thread; the order in which one interrupts another."

LEVELS = (
    Number("nmi"),
    Number("hardirq", note=", ".join(kind.name for kind in KINDS if kind.level == "hardirq")),
    Number("softirq"),
    Number("task", note="preemptions, faults, everything else in the slot"),
)
LEVELS_DOC = """A kind is only ever written at its own level, and a level never interrupts itself: that is what makes a slot
consistent without locks. A writer makes its level's number odd, writes, and makes it even again."""

# A record's kind that is no noise source: a thread's end.
RECORD_THREAD_END = 64

IPIS = (
    Ipi("reschedule", "reschedule"),
    Ipi("call_function", "call_function"),
    Ipi("call_function_single", "call_function_single"),
    Ipi("irq_work", "irq_work"),
    Ipi("platform", "x86_platform_ipi"),
    Ipi("thermal", "thermal_apic"),
    Ipi("threshold", "threshold_apic"),
    Ipi("deferred_error", "deferred_error_apic"),
    Ipi("error", "error_apic"),
    Ipi("spurious", "spurious_apic"),
)

# In the order of their vectors (include/linux/interrupt.h).
SOFTIRQS = ("HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU")

# Hooks whose absence in a kernel is reported. Hooks that exist only on other processors are not listed.
HOOKS = (
    Hook("local_timer_entry", "the local timer's interrupts show as `irq:` of the timer's driver"),
    Hook("call_function_entry", "other CPUs' interrupts show as `irq:` of their kind"),
    Hook("nmi_handler", "NMIs are not seen"),
    Hook("irq_handler_entry", "devices' interrupts are not seen"),
    Hook("softirq_entry", "softirqs are not seen"),
    Hook("sched_switch", "tasks are not seen"),
    Hook("hrtimer_expire_entry", "the causes of timer interrupts are unknown"),
    Hook("csd_function_entry", "the causes of other CPUs' calls are unknown"),
    Hook(
        "csd_queue_cpu",
        "which task called from another CPU is known only where it sent an interrupt of its own",
    ),
    Hook("page_fault_user", "page faults are not seen"),
)
