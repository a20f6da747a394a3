/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Follows processes that are already running: all their threads get slots, as if they were born just now.
 */
#ifndef QUELL_ADOPT_H
#define QUELL_ADOPT_H

#include "steal.h"
#include "threads.h"

/* The process to adopt. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} adopted SEC(".maps");

/* Visits all threads in the order of their ids. A thread that is born during the walk is visited later, or its parent already has a
 * slot. If both happen, BPF_NOEXIST in follow() prevents a second slot. A thread that is exiting right now may keep its slot, whose
 * counters then stand still. */
SEC("iter/task") int adopt_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	u32 zero = 0;
	u32 *process = bpf_map_lookup_elem(&adopted, &zero);
	if (!task || !process || task->tgid != *process || task->exit_state)
		return 0;
	u32 tid = task->pid;
	if (!bpf_map_lookup_elem(&slots, &tid))
		follow(task);
	return 0;
}

/* Runs on each CPU after the walk, because an adopted thread that is on a CPU may not be switched out for a long time. Interrupts are
 * disabled. An interval that is open now was not recorded at its entry, so its exit is ignored as well. */
SEC("raw_tracepoint/begin_here") int begin_here(void *ctx)
{
	struct cpu_state *state = this_cpu();
	u32 tid = bpf_get_current_pid_tgid();
	u32 *known = bpf_map_lookup_elem(&slots, &tid);
	if (!state || state->slot || !known || *known == SLOT_OF_PARENT)
		return 0;
	u32 slot = *known;
	struct quell_slot *s = slot_of(slot);
	if (!s)
		return 0;
	u64 now = bpf_ktime_get_ns();
	step(&s->level_seq[QUELL_LEVEL_TASK]);
	s->on_since_ns = now;
	step(&s->level_seq[QUELL_LEVEL_TASK]);
	if (!state->watched)
		forget_stolen(state, now);
	state->slot = slot;
	state->victim = tid;
	set_active(state, 1);
	return 0;
}

#endif
