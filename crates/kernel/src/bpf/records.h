/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * What the programs send, and what they are told before they are loaded. The Rust side takes these types from the
 * object's own type information (the skeleton), so the two cannot drift apart.
 */
#ifndef QUELL_RECORDS_H
#define QUELL_RECORDS_H

#include "names.h"

#define NAME_LENGTH 16

/* One interval. `id` is the interrupt's number, the softirq's vector or one of `enum ipi`. */
struct record {
	u64 start_ns;
	u64 end_ns;
	u64 net_ns;
	u64 what; /* address of the function that it worked at, or 0 */
	u32 cpu;
	u32 victim; /* the watched thread that waited, or 0 */
	u32 id;
	u32 kind;
};

/* What caused it: a task (kind QUELL_TASK, with pid and name), an interrupt (its kind, id and function), or nothing known. */
struct cause {
	u64 what;
	u32 known;
	u32 kind;
	u32 id; /* a pid, or as in `record` */
	u32 pad;
	char name[NAME_LENGTH];
};

/* One interval with the name of what ran, and what caused it. */
struct named_record {
	struct record record;
	struct cause cause;
	u32 pid;
	u32 tgid;
	char name[NAME_LENGTH];
};

/* A thread's end. */
struct thread_record {
	struct record record;
	struct quell_slot slot;
};

/* What is going on at one level of a CPU, from its entry to its exit. */
struct open_interval {
	u64 start_ns; /* 0: nothing is, or it is not recorded */
	u64 inner_ns; /* `taken` of the CPU at the start */
	u64 what;
	u32 kind;
	u32 id;
	u32 inside; /* something is going on, recorded or not: whom to blame for what is sent and woken meanwhile */
	u32 pad;
};

struct cpu_state {
	/* Net time of all intervals that ended on this CPU: what grows while an interval is open was nested in it. Two numbers,
	 * since an NMI may strike while the other is being written. */
	u64 taken_ns;
	u64 taken_by_nmi_ns;
	struct open_interval hardirq;
	struct open_interval softirq;
	struct open_interval task;
	u64 stolen_ns; /* the hypervisor's count at the last look */
	u64 stolen_at_ns;
	u64 lost; /* records that found no room */
	u32 watched; /* everything on this CPU is recorded */
	u32 active;  /* watched, or a watched thread is on it: the one word that most events look at */
	u32 slot;    /* of the thread that is on it; 0: none */
	u32 victim;  /* its id */
	struct cause sent;   /* what another CPU last sent an interrupt for */
	struct cause woken;  /* what last woke the task `wakee` for this CPU */
	struct cause running; /* what woke the task that is on it */
	u32 wakee;
	u32 pad;
} __attribute__((aligned(64)));

/* Told before loading. */
struct settings {
	u64 tick_function; /* address of the tick's own timer callback */
	u32 follow;        /* threads are followed */
	u32 tells_state;   /* sched_switch says in which state it leaves a task (5.18 and later) */
	u32 adopt;         /* so are processes that ask for the container */
	u32 pad;
};

#endif
