/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * The records that the programs send, and the settings that they get before they are loaded. The Rust side takes these types from
 * the object's own type information (through the skeleton), so the two sides cannot differ.
 */
#ifndef QUELL_RECORDS_H
#define QUELL_RECORDS_H

#include "names.h"

#define NAME_LENGTH 16
/* Maximum number of waiting threads of a CPU for which every run of another task is recorded. */
#define MOST_WAITERS 4
/* Bytes of the probes' name beyond its first word. */
#define PROBE_NAME_REST 3

/* One interval. `id` is the interrupt's number, the softirq's vector or one of `enum ipi`. */
struct record {
	u64 start_ns;
	u64 end_ns;
	u64 net_ns;
	u64 what; /* address of the function that it ran, or 0 */
	u32 cpu;
	u32 victim; /* the followed thread that had to wait, or 0 */
	u32 id;
	u32 kind;
};

/* What caused an interval: a task (kind QUELL_TASK, with pid and name), an interrupt (its kind, id and function), or unknown. */
struct cause {
	u64 what;
	u32 known;
	u32 kind;
	u32 id; /* a pid, or as in `record` */
	u32 check; /* of the other fields, and the task that was woken: two CPUs may write a cause at the same time */
	char name[NAME_LENGTH]; /* of a task; else zero */
};

/* A cause that other CPUs write, on a cache line of its own: what they touch, this CPU has to fetch again. */
struct cause_from_afar {
	struct cause cause;
	u32 wanted; /* as the CPU's `active` */
	u32 pid;    /* the task that was woken */
	u64 pad[2];
};

/* One interval with the name of what ran, and its cause. */
struct named_record {
	struct record record;
	struct cause cause;
	u32 pid;
	u32 tgid;
	char name[NAME_LENGTH];
};

/* What a CPU's ring of entries holds: an interval. Without names and cause it takes one cache line. */
struct entry {
	u32 number; /* of the entry since the start, from 1: written last */
	u32 has_names;
	u64 pad;
	struct named_record of; /* only its record where there are no names */
};

/* How far the recorder has emptied a ring of entries. */
struct emptied {
	u32 entries;
} __attribute__((aligned(64)));

/* How a thread left its CPU while it could have run. */
enum left { LEFT_PREEMPTED, LEFT_YIELDED, LEFT_MOVED };

/* Time off the CPU that a runnable thread asked for itself. It is no noise, so it is not in the metric container. */
struct own_waits {
	u64 yielded_ns; /* after sched_yield */
	u64 yields;
	u64 moved_ns; /* while sched_setaffinity moved it to another CPU */
	u64 moves;
	u32 left; /* how it left last, one of `enum left` */
	/* While it waits, preempted. */
	u32 waits;
	u32 waits_on; /* the CPU */
	u32 pad;
	u64 piece_since_ns; /* when the task that runs there now began to */
};

/* A thread's end. */
struct thread_record {
	struct record record;
	struct quell_slot slot;
	struct own_waits own;
};

/* What runs at one level of a CPU, from its entry to its exit. Only hard interrupts nest in their own level, and rarely, so one of these per
 * level, and one more, replaces a stack. */
struct open_interval {
	u64 start_ns; /* 0: nothing runs, or it is not recorded */
	u64 inner_ns; /* the CPU's `taken` at the start */
	u64 what;
	u32 id;
	u16 kind;
	u16 inside; /* number of those that run at this level, recorded or not: the cause of what is sent and woken during it */
};

/* What a hard interrupt touches comes first, then softirqs, then switches, a cache line each: an interrupt finds its caches cold, and its
 * cost is the number of lines. */
struct cpu_state {
	/* Net time of all intervals that have ended on this CPU. What this sum grows by while an interval is open was nested in it: net
	 * is gross less growth. NMIs have their own sum, because an NMI may arrive while the other one is being written. */
	u64 taken_ns;
	u64 taken_by_nmi_ns;
	struct open_interval hardirq;
	u16 active; /* watched, or a followed thread is on this CPU: the only field that most events read */
	u16 slot;   /* of the thread that is on this CPU; 0: none */
	u32 next;   /* number of entries written to this CPU's ring; like all such numbers, it may wrap */
	u32 full_at; /* where the ring was found to be full when the recorder's progress was last read */
	u16 ring;
	u16 ring_order; /* the ring has 2 to the power of this entries */

	struct open_interval softirq;
	u64 stolen_ns; /* the hypervisor's counter when it was last read */
	u64 stolen_at_ns;
	u64 lost;    /* intervals for which a ring had no room, or whose end was not seen */
	u32 victim;  /* the id of the thread that is on this CPU; 0: it is not followed */
	u32 watched; /* everything on this CPU is recorded */

	struct open_interval task;
	u64 on_cpu;          /* address of the task that came in at the last switch that was seen */
	u64 scheduler_ahead; /* CLOCK_MONOTONIC less the scheduler's clock, in ns */
	u32 waiters[MOST_WAITERS]; /* slots of the followed threads that wait on this CPU, preempted; 0: free */

	struct cause_from_afar sent;  /* why another CPU last sent an interrupt to this one */
	struct cause_from_afar woken; /* what last woke a task for this CPU */

	struct cause running; /* what woke the task that is on this CPU */
	u64 pad[3];

	struct open_interval outer; /* the hard interrupt within which `hardirq` runs, where there is one */
	u64 pad2[4];
} __attribute__((aligned(64)));

/* Set before loading. */
struct settings {
	u64 tick_function; /* address of the callback of the tick's own timer */
	u64 probe_name[2]; /* of the recorder's own probes, whose runs are not recorded; PROBE_NAME_REST bytes of the second word count */
	u32 follow;        /* threads are followed */
	u32 tells_state;   /* sched_switch passes the state in which it leaves a task (5.18 and later) */
	u32 adopt;         /* processes that request the container are followed too */
	u32 own_tgid;      /* of the recorder; 0: unknown */
};

#endif
