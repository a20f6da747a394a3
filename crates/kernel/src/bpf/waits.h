/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Who ran while a preempted thread waited: each run of another task on the CPU where it waits is an interval of its own.
 */
#ifndef QUELL_WAITS_H
#define QUELL_WAITS_H

#include "state.h"

/* By slot. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct own_waits);
} own_waits SEC(".maps");

/* Notes that a thread waits on a CPU. A CPU with more waiting threads than there is room for gives the rest of them one interval each, in
 * the name of the task that ran last. */
static __always_inline void add_waiter(struct cpu_state *state, u32 slot)
{
	for (int at = 0; at < MOST_WAITERS; at++) {
		if (!state->waiters[at]) {
			state->waiters[at] = slot;
			return;
		}
	}
}

static __always_inline void remove_waiter(struct cpu_state *state, u32 slot)
{
	for (int at = 0; at < MOST_WAITERS; at++)
		if (state->waiters[at] == slot)
			state->waiters[at] = 0;
}

/* Records that `ran` had the CPU on which a thread waits, from the end of the last such interval until now. */
static __always_inline void end_piece(struct cpu_state *state, u32 slot, struct own_waits *own, struct task_struct *ran, u64 now_ns)
{
	struct quell_slot *s = slot_of(slot);
	u64 since = own->piece_since_ns;
	if (!s || now_ns <= since)
		return;
	own->piece_since_ns = now_ns;
	charge(slot, QUELL_LEVEL_TASK, QUELL_TASK, now_ns - since);
	struct named_record *to = reserve(state, own->waits_on, sizeof(*to));
	if (!to)
		return;
	struct open_interval piece = { .start_ns = since, .kind = QUELL_TASK };
	fill(&to->record, own->waits_on, s->global_tid, &piece, now_ns, now_ns - since);
	to->cause.known = 0;
	to->pid = BPF_CORE_READ(ran, pid);
	to->tgid = 0;
	BPF_CORE_READ_STR_INTO(&to->name, ran, comm);
	/* The thread was runnable and the CPU was idle: its group has used up its CPU bandwidth (CFS throttling). */
	if (!to->pid)
		__builtin_memcpy(to->name, "(throttled)", sizeof("(throttled)"));
	bpf_ringbuf_submit(to, BPF_RB_NO_WAKEUP);
}

/* Ends the pieces of all threads that wait on this CPU, which `ran` leaves now. */
static __always_inline void end_pieces(struct cpu_state *state, u32 cpu, struct task_struct *ran, u64 now_ns)
{
	for (int at = 0; at < MOST_WAITERS; at++) {
		u32 slot = state->waiters[at];
		if (!slot)
			continue;
		struct own_waits *own = bpf_map_lookup_elem(&own_waits, &slot);
		if (own && own->waits && own->waits_on == cpu)
			end_piece(state, slot, own, ran, now_ns);
		else
			state->waiters[at] = 0;
	}
}

/* A thread that is preempted begins to wait. */
static __always_inline void begin_wait(struct cpu_state *state, u32 cpu, u32 slot, struct own_waits *own, u64 now_ns)
{
	own->waits = 1;
	own->waits_on = cpu;
	own->piece_since_ns = now_ns;
	add_waiter(state, slot);
}

/* It has a CPU again, on which `ran` was before it. */
static __always_inline void end_wait(struct cpu_state *state, u32 cpu, u32 slot, struct own_waits *own, struct task_struct *ran,
				     u64 now_ns)
{
	struct cpu_state *waited = state_of(own->waits_on);
	if (waited)
		remove_waiter(waited, slot);
	own->waits_on = cpu;
	end_piece(state, slot, own, ran, now_ns);
	own->waits = 0;
}

#endif
