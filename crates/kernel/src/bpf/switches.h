/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Who has the CPU: other tasks' runs on watched CPUs, and followed threads coming and going.
 */
#ifndef QUELL_SWITCHES_H
#define QUELL_SWITCHES_H

#include "state.h"
#include "steal.h"
#include "threads.h"

/* The run of `prev`, which ends now. The idle task is no noise. */
static __always_inline void end_run(struct cpu_state *state, u32 cpu, struct task_struct *prev, u64 now_ns)
{
	if (!state->task.start_ns || prev->pid == 0)
		return;
	u64 net = net_of(state, &state->task, now_ns);
	struct named_record *to = reserve(state, cpu, sizeof(*to));
	if (!to)
		return;
	fill(&to->record, cpu, 0, &state->task, now_ns, net);
	to->cause = state->running;
	to->pid = prev->pid;
	to->tgid = prev->tgid;
	__builtin_memcpy(to->name, prev->comm, sizeof(to->name));
	bpf_ringbuf_submit(to, BPF_RB_NO_WAKEUP);
}

/* The state in which a task is left. On its way to sleep it may be woken before it is looked at: better told than read. */
static __always_inline u32 state_left(unsigned long long *ctx, struct task_struct *prev)
{
	if (settings.tells_state)
		return ctx[3];
	if (bpf_core_field_exists(prev->__state))
		return BPF_CORE_READ(prev, __state);
	/* Before 5.14. */
	return BPF_CORE_READ((struct task_struct___old *)prev, state);
}

SEC("tp_btf/sched_switch") int BPF_PROG(task_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_state *state = state_of(cpu);
	if (!state || (!state->watched && !settings.follow))
		return 0;
	u64 now = bpf_ktime_get_ns();
	if (state->watched)
		end_run(state, cpu, prev, now);
	if (settings.follow) {
		leave(state, cpu, prev, next, preempted, state_left(ctx, prev), now);
		state->slot = slot_of_thread(next);
		state->victim = state->slot ? next->pid : 0;
		state->active = state->watched || state->slot;
		enter(state, cpu, next, state->slot, now);
		/* What was stolen until now was stolen from others. */
		if (state->slot && !state->watched)
			forget_stolen(state, now);
	}
	state->running.known = 0;
	if (state->wakee && state->wakee == next->pid)
		state->running = state->woken;
	state->wakee = 0;
	/* Only where the kernel is fully preemptible: a softirq that loses its CPU is not recorded. */
	if (state->softirq.inside) {
		state->softirq.start_ns = 0;
		state->softirq.inside = 0;
	}
	open_at(state, &state->task, QUELL_TASK, 0, now);
	return 0;
}

#endif
