// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The least that a recorder of kernel events can do, on quell's hooks. With WATCHED, the number of a CPU: read the clock at a begin and keep it, read it at
// an end and write into a line of a ring, on that CPU. Without: nothing at all.

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

// Lines of the ring, as many as quell has for a CPU.
#define RING 131072

struct line {
	__u64 of[8];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct line);
} state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, RING);
	__type(key, __u32);
	__type(value, struct line);
} ring SEC(".maps");

// What one CPU's programs keep; none on the others.
static __always_inline struct line *kept(void)
{
#ifdef WATCHED
	__u32 first = 0;
	if (bpf_get_smp_processor_id() == WATCHED)
		return bpf_map_lookup_elem(&state, &first);
#endif
	return 0;
}

static __always_inline int begins(void)
{
	struct line *state = kept();
	if (state)
		state->of[0] = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int ends(void)
{
	struct line *state = kept();
	if (!state)
		return 0;
	__u64 now = bpf_ktime_get_ns();
	__u32 at = state->of[1]++ % RING;
	struct line *to = bpf_map_lookup_elem(&ring, &at);
	if (!to)
		return 0;
	to->of[0] = state->of[0];
	to->of[1] = now;
	return 0;
}

// What quell only notes: who caused an interval.
static __always_inline int notes(void)
{
	struct line *state = kept();
	if (state)
		state->of[2] = 1;
	return 0;
}

#define HOOK(name, does)                       \
	SEC("raw_tp/" #name) int on_##name(void *ctx) \
	{                                      \
		return does();                 \
	}

HOOK(local_timer_entry, begins)
HOOK(local_timer_exit, ends)
HOOK(call_function_single_entry, begins)
HOOK(call_function_single_exit, ends)
HOOK(call_function_entry, begins)
HOOK(call_function_exit, ends)
HOOK(reschedule_entry, begins)
HOOK(reschedule_exit, ends)
HOOK(irq_handler_entry, begins)
HOOK(irq_handler_exit, ends)
HOOK(softirq_entry, begins)
HOOK(softirq_exit, ends)
HOOK(sched_switch, ends)
HOOK(sched_waking, notes)
HOOK(hrtimer_expire_entry, notes)
HOOK(timer_expire_entry, notes)
HOOK(workqueue_execute_start, notes)
HOOK(csd_queue_cpu, notes)
HOOK(csd_function_entry, notes)
HOOK(ipi_send_cpu, notes)

char LICENSE[] SEC("license") = "Dual BSD/GPL";
