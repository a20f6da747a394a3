/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Page faults of followed threads: from the exception tracepoint to the software event (minor or major fault) with which the kernel
 * counts the fault at its end. Waiting for a disk is included; what other kinds took during the fault is not. There is no hook at
 * the end of a fault itself: kprobes and fentry are missing in many kernels of compute nodes. An exception that the kernel never
 * counts is not a fault: a fixup handled it, or it came from an interrupt. Above kernel.perf_event_max_sample_rate events a second
 * the kernel throttles the software event, and faults are missed.
 */
#ifndef QUELL_FAULTS_H
#define QUELL_FAULTS_H

#include "state.h"

/* Time that everything but faults took from the thread: what this grows by during a fault was nested in it. */
static __always_inline u64 taken_from(const struct quell_slot *s)
{
	u64 taken = 0;
	for (int kind = 0; kind < QUELL_KINDS; kind++) {
		if (kind != QUELL_FAULT)
			taken += s->ns[kind];
	}
	return taken;
}

static __always_inline int enter_fault(void)
{
	u64 now = bpf_ktime_get_ns();
	struct cpu_state *state = this_cpu();
	struct quell_slot *s = state ? slot_of(state->slot) : 0;
	if (!s || state->hardirq.inside || state->softirq.inside)
		return 0;
	s->fault_base_ns = taken_from(s);
	s->fault_since_ns = now;
	return 0;
}

SEC("tp_btf/page_fault_user") int fault_of_user(void *ctx) { return enter_fault(); }
SEC("tp_btf/page_fault_kernel") int fault_of_kernel(void *ctx) { return enter_fault(); }

/* Attached to the software events PERF_COUNT_SW_PAGE_FAULTS_MIN and _MAJ. */
SEC("perf_event") int fault_counted(void *ctx)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_state *state = state_of(cpu);
	struct quell_slot *s = state ? slot_of(state->slot) : 0;
	if (!s || !s->fault_since_ns)
		return 0;
	u64 now = bpf_ktime_get_ns();
	struct open_interval fault = { .start_ns = s->fault_since_ns, .kind = QUELL_FAULT };
	s64 net = now - fault.start_ns - (taken_from(s) - s->fault_base_ns);
	s->fault_since_ns = 0;
	if (net < 0)
		net = 0;
	charge(state->slot, QUELL_LEVEL_TASK, QUELL_FAULT, net);
	send(state, cpu, &fault, now, net);
	return 0;
}

#endif
