/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Processes that come under watch while they run: all threads that one has are given slots, as if they were born just now.
 */
#ifndef QUELL_ADOPT_H
#define QUELL_ADOPT_H

#include "steal.h"
#include "threads.h"

/* The process that is adopted. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} adopted SEC(".maps");

/* Goes through all threads by their ids. One that is born meanwhile is met later, or its parent has a slot by then; both at
 * once is what BPF_NOEXIST in follow() is for. A thread that ends right now may keep its slot, which then stands still. */
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

/* Run on each CPU after that: an adopted thread that is on it may not be switched for a long time. Interrupts are off, and what
 * goes on there was not recorded at its entry, so it will not be at its exit. */
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
	state->active = 1;
	return 0;
}

#endif
