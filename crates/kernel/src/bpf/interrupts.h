/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Interrupts: the local timer, devices, other CPUs, NMIs, and the softirqs that they raise.
 */
#ifndef QUELL_INTERRUPTS_H
#define QUELL_INTERRUPTS_H

#include "state.h"
#include "steal.h"
#include "switches.h"

/* Reads the clock first: after a program has run the caches are cold, and each memory access before the reading would shorten the
 * interval. What the tracing machinery takes before this line at a cold entry, some 100 to 500 ns, is in no interval. */
static __always_inline int enter_hardirq(u32 kind, u32 id)
{
	u64 now = bpf_ktime_get_ns();
	struct cpu_state *state = this_cpu();
	if (!state)
		return 0;
	u16 depth = suspend_hardirq(state, kind, id);
	if (state->active)
		open_at(state, &state->hardirq, kind, id, now);
	else
		open_unrecorded(&state->hardirq, kind, id);
	state->hardirq.inside = depth + 1;
	return 0;
}

/* Ends the interrupt, charges the thread that it interrupted, and returns the net time. A plain addition is enough: one hard interrupt
 * begins within another only between two of its programs, and an NMI adds to a sum of its own. */
static __always_inline u64 close_hardirq(struct cpu_state *state, u32 kind, u64 now_ns)
{
	u64 net = net_of(state, &state->hardirq, now_ns);
	state->taken_ns += net;
	charge(state->slot, QUELL_LEVEL_HARDIRQ, kind, net);
	return net;
}

static __always_inline int exit_tick(void)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_state *state = state_of(cpu);
	if (!state)
		return 0;
	bool recorded = is_recorded_hardirq(state, QUELL_TICK, 0);
	u64 now = bpf_ktime_get_ns();
	if (recorded) {
		send_entry(state, cpu, &state->hardirq, now, close_hardirq(state, QUELL_TICK, now));
		leave_hardirq(state);
		look_for_steal(state, cpu, now);
	}
	look_for_unseen_switch(state, cpu, now);
	return 0;
}

static __always_inline int exit_ipi(u32 id)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_state *state = state_of(cpu);
	if (!state || !is_recorded_hardirq(state, QUELL_IPI, id))
		return 0;
	u64 now = bpf_ktime_get_ns();
	u64 net = close_hardirq(state, QUELL_IPI, now);
	u32 number;
	struct entry *entry = next_entry(state, &number);
	if (entry) {
		struct named_record *to = &entry->of;
		entry->has_names = 1;
		fill(&to->record, cpu, state->victim, &state->hardirq, now, net);
		to->cause = state->sent.cause;
		to->pid = 0;
		to->tgid = 0;
		to->name[0] = 0;
		publish(entry, number);
	}
	state->sent.cause.known = 0;
	leave_hardirq(state);
	return 0;
}

static __always_inline int exit_irq(u32 irq, struct irqaction *action)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_state *state = state_of(cpu);
	if (!state || !is_recorded_hardirq(state, QUELL_IRQ, irq))
		return 0;
	u64 now = bpf_ktime_get_ns();
	u64 net = close_hardirq(state, QUELL_IRQ, now);
	u32 number;
	struct entry *entry = next_entry(state, &number);
	if (entry) {
		struct named_record *to = &entry->of;
		entry->has_names = 1;
		fill(&to->record, cpu, state->victim, &state->hardirq, now, net);
		to->cause.known = 0;
		to->pid = 0;
		to->tgid = 0;
		if (bpf_probe_read_kernel_str(to->name, sizeof(to->name), action->name) < 0)
			to->name[0] = 0;
		publish(entry, number);
	}
	leave_hardirq(state);
#ifdef __TARGET_ARCH_arm64
	/* The tick is one of them there. */
	look_for_steal(state, cpu, now);
#endif
	return 0;
}

static __always_inline int enter_softirq(u32 vector)
{
	u64 now = bpf_ktime_get_ns();
	struct cpu_state *state = this_cpu();
	if (!state)
		return 0;
	/* None runs where a softirq begins. */
	forget_hardirq(state);
	if (state->active)
		open_at(state, &state->softirq, QUELL_SOFTIRQ, vector, now);
	else
		open_unrecorded(&state->softirq, QUELL_SOFTIRQ, vector);
	return 0;
}

/* Interrupts are enabled here, so one can end between any two statements. Hence the atomic addition to `taken_ns`. An interrupt within
 * the few ns around the end of the softirq makes its net time wrong by that interrupt. */
static __always_inline int exit_softirq(bool by_ring)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_state *state = state_of(cpu);
	if (!state || !is_recorded(&state->softirq))
		return 0;
	u64 now = bpf_ktime_get_ns();
	u64 net = net_of(state, &state->softirq, now);
	__sync_fetch_and_add(&state->taken_ns, net);
	charge(state->slot, QUELL_LEVEL_SOFTIRQ, QUELL_SOFTIRQ, net);
	if (by_ring)
		send_interruptible(state, cpu, &state->softirq, now, net);
	else
		send(state, cpu, &state->softirq, now, net);
	state->softirq.start_ns = 0;
	return 0;
}

/* The kernel reports an NMI when a handler is done, with the handler's time. It also reports handlers that only checked whether the NMI
 * was theirs. Their time counts as nested in what the NMI interrupted, but they make no record of their own. */
static __always_inline int handle_nmi(s64 delta_ns, int handled)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_state *state = state_of(cpu);
	if (!state || !state->active || delta_ns < 0)
		return 0;
	u64 now = bpf_ktime_get_ns();
	struct open_interval open = { .start_ns = now - delta_ns, .kind = QUELL_NMI };
	state->taken_by_nmi_ns += delta_ns;
	if (!handled)
		return 0;
	charge(state->slot, QUELL_LEVEL_NMI, QUELL_NMI, delta_ns);
	send(state, cpu, &open, now, delta_ns);
	return 0;
}

SEC("tp_btf/local_timer_entry") int local_timer_in(void *ctx) { return enter_hardirq(QUELL_TICK, 0); }
SEC("tp_btf/local_timer_exit") int local_timer_out(void *ctx) { return exit_tick(); }

#define IPI(vector, id)                                                                             \
	SEC("tp_btf/" #vector "_entry") int vector##_in(void *ctx) { return enter_hardirq(QUELL_IPI, id); } \
	SEC("tp_btf/" #vector "_exit") int vector##_out(void *ctx) { return exit_ipi(id); }

EACH_IPI(IPI)

SEC("tp_btf/irq_handler_entry") int BPF_PROG(irq_handler_in, int irq) { return enter_hardirq(QUELL_IRQ, irq); }

SEC("tp_btf/irq_handler_exit") int BPF_PROG(irq_handler_out, int irq, struct irqaction *action)
{
	return exit_irq(irq, action);
}

SEC("tp_btf/softirq_entry") int BPF_PROG(softirq_in, unsigned int vector) { return enter_softirq(vector); }

/* One of the two is loaded: a kernel that does not know an instruction refuses it even where it is never reached, and a fully preemptible one
 * may take the CPU from a softirq. */
SEC("tp_btf/softirq_exit") int softirq_out(void *ctx) { return exit_softirq(true); }
SEC("tp_btf/softirq_exit") int softirq_out_by_buffer(void *ctx) { return exit_softirq(false); }

SEC("tp_btf/nmi_handler") int BPF_PROG(nmi_handler, void *handler, s64 delta_ns, int handled)
{
	return handle_nmi(delta_ns, handled);
}

#endif
