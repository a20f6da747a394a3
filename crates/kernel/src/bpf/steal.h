/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Time that the hypervisor gave to others. At each tick the kernel reads the hypervisor's counter, in ns, and stores it in
 * the run queue. The difference says how much was taken since the last tick, not when.
 */
#ifndef QUELL_STEAL_H
#define QUELL_STEAL_H

#include "state.h"

/* The run queue is reached from the current task: a per-CPU variable can be named only where the kernel keeps all its symbols. */
static __always_inline u64 stolen_ever(void)
{
	if (!bpf_core_field_exists(struct sched_entity, cfs_rq) || !bpf_core_field_exists(struct cfs_rq, rq) ||
	    !bpf_core_field_exists(struct rq, prev_steal_time))
		return 0;
	/* A typed pointer needs no call for each step. Linux 5.11 and later. */
	if (bpf_core_enum_value_exists(enum bpf_func_id___new, BPF_FUNC_get_current_task_btf___new))
		return bpf_get_current_task_btf()->se.cfs_rq->rq->prev_steal_time;
	struct task_struct *task = (void *)bpf_get_current_task();
	return BPF_CORE_READ(task, se.cfs_rq, rq, prev_steal_time);
}

static __always_inline void forget_stolen(struct cpu_state *state, u64 now_ns)
{
	state->stolen_ns = stolen_ever();
	state->stolen_at_ns = now_ns;
}

/* The counter of a CPU that is recorded is not read more often: between two ticks it rarely changes, and each timer's interrupt would pay for
 * it. That of another CPU is, since each switch begins its account anew. */
#define BETWEEN_READINGS_NS 500000

static __always_inline void look_for_steal(struct cpu_state *state, u32 cpu, u64 now_ns)
{
	if (state->watched && now_ns - state->stolen_at_ns < BETWEEN_READINGS_NS)
		return;
	u64 stolen = stolen_ever(), more = stolen - state->stolen_ns;
	struct open_interval window = { .start_ns = state->stolen_at_ns, .kind = QUELL_STEAL };
	state->stolen_ns = stolen;
	state->stolen_at_ns = now_ns;
	if (!more || !window.start_ns)
		return;
	if (more > now_ns - window.start_ns)
		more = now_ns - window.start_ns;
	send_entry(state, cpu, &window, now_ns, more);
	charge(state->slot, QUELL_LEVEL_HARDIRQ, QUELL_STEAL, more);
}

#endif
