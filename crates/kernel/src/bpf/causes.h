/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * What an interval ran, and who caused it: timer callbacks, work functions, senders of interrupts, wakers.
 */
#ifndef QUELL_CAUSES_H
#define QUELL_CAUSES_H

#include "state.h"

/* The first function that runs is the cause. The tick's own callback counts only if no other runs. */
static __always_inline void note(struct open_interval *open, u64 function)
{
	if (open->inside && (!open->what || open->what == settings.tick_function))
		open->what = function;
}

static __always_inline int note_in_interrupt(u64 function)
{
	struct cpu_state *state = this_cpu();
	if (state)
		note(state->hardirq.inside ? &state->hardirq : &state->softirq, function);
	return 0;
}

/* The task that runs on this CPU. */
static __always_inline struct cause current_task(void)
{
	struct cause cause = { .kind = QUELL_TASK };
	/* A typed pointer needs no call for each field. Linux 5.11 and later. */
	if (bpf_core_enum_value_exists(enum bpf_func_id___new, BPF_FUNC_get_current_task_btf___new)) {
		struct task_struct *task = bpf_get_current_task_btf();
		cause.id = task->pid;
		copy_name(cause.name, task);
		return cause;
	}
	cause.id = bpf_get_current_pid_tgid();
	bpf_get_current_comm(cause.name, sizeof(cause.name));
	return cause;
}

static __always_inline struct cause cause_of(const struct open_interval *open)
{
	return (struct cause){ .kind = open->kind, .id = open->id, .what = open->what };
}

/* As translate.rs computes it. */
static __always_inline u32 check_of(const struct cause *cause, u32 woken)
{
	const u64 *name = (const u64 *)cause->name;
	u64 mixed = cause->what * 0x9e3779b97f4a7c15 + name[0] * 0xc2b2ae3d27d4eb4f + name[1] * 0x165667b19e3779f9 +
		    ((u64)cause->kind << 32 | cause->id) * 0xd6e8feb86659fd93 + woken * 0xff51afd7ed558ccd;
	return mixed >> 32;
}

/* Blames what runs on this CPU right now: an interrupt, or else the task. `woken` is the task that it woke, or 0. Another CPU may write the same
 * cause at the same time, so it is made whole before it is written, and translate.rs checks that it was read whole, and for this task. */
static __always_inline void blame_here(struct cause *to, u32 woken)
{
	struct cpu_state *here = this_cpu();
	struct cause cause;
	if (here && here->hardirq.inside)
		cause = cause_of(&here->hardirq);
	else if (here && here->softirq.inside)
		cause = cause_of(&here->softirq);
	else
		cause = current_task();
	cause.known = 1;
	cause.check = check_of(&cause, woken);
	*to = cause;
}

static __always_inline int handle_send(u32 target)
{
	struct cpu_state *state = state_of(target);
	if (state && state->sent.wanted)
		blame_here(&state->sent.cause, 0);
	return 0;
}

static __always_inline u32 cpu_of(struct task_struct *task)
{
	if (bpf_core_field_exists(task->thread_info.cpu))
		return task->thread_info.cpu;
	return BPF_CORE_READ(task, cpu);
}

/* Notes the waker on the task's last CPU. A task that wakes on another CPU stays without a cause. */
static __always_inline int handle_waking(struct task_struct *task)
{
	struct cpu_state *target = state_of(cpu_of(task));
	if (!target || !target->woken.wanted)
		return 0;
	u32 pid = task->pid;
	blame_here(&target->woken.cause, pid);
	target->woken.pid = pid;
	return 0;
}

SEC("tp_btf/hrtimer_expire_entry") int BPF_PROG(hrtimer_expires, struct hrtimer *timer)
{
	return note_in_interrupt((u64)timer->function);
}

SEC("tp_btf/timer_expire_entry") int BPF_PROG(timer_expires, struct timer_list *timer)
{
	return note_in_interrupt((u64)timer->function);
}

/* A raw tracepoint: the verifier does not let a typed program (tp_btf) read a pointer to a function. */
SEC("raw_tp/csd_function_entry") int function_called(struct bpf_raw_tracepoint_args *ctx)
{
	return note_in_interrupt(ctx->args[0]);
}

SEC("tp_btf/workqueue_execute_start") int BPF_PROG(work_begins, struct work_struct *work)
{
	struct cpu_state *state = this_cpu();
	if (state && state->watched)
		note(&state->task, (u64)work->func);
	return 0;
}

SEC("tp_btf/csd_queue_cpu") int BPF_PROG(function_queued, unsigned int target) { return handle_send(target); }
SEC("tp_btf/ipi_send_cpu") int BPF_PROG(ipi_sent, unsigned int target) { return handle_send(target); }
SEC("tp_btf/sched_waking") int BPF_PROG(task_wakes, struct task_struct *task) { return handle_waking(task); }

#endif
