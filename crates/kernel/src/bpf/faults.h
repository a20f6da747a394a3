/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Page faults of followed threads, from the exception to the kernel's own counting of the fault at its end (the software
 * events for minor and major faults); waiting for a disk is included, what other kinds took meanwhile is not. An exception
 * without that end is none of these: the kernel mends it by a fixup, or it came from an interrupt. In a storm beyond
 * kernel.perf_event_max_sample_rate the kernel holds events back, and faults are missed.
 */
#ifndef QUELL_FAULTS_H
#define QUELL_FAULTS_H

#include "state.h"

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
