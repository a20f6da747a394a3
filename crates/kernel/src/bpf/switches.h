/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Which task has the CPU: runs of other tasks on watched CPUs, and when followed threads come and go.
 */
#ifndef QUELL_SWITCHES_H
#define QUELL_SWITCHES_H

#include "state.h"
#include "steal.h"
#include "threads.h"

/* The task that leaves a CPU. */
struct leaving {
	u64 arrival; /* when it came, on the scheduler's clock; 0: unknown */
	char name[NAME_LENGTH];
	u32 pid;
	u32 tgid;
};

/* From a typed pointer, which needs no call for each field. */
static __always_inline struct leaving leaving(struct task_struct *task)
{
	struct leaving who = { .pid = task->pid, .tgid = task->tgid };
	copy_name(who.name, task);
	if (bpf_core_field_exists(task->sched_info.last_arrival))
		who.arrival = task->sched_info.last_arrival;
	return who;
}

/* From an address. */
static __always_inline struct leaving leaving_at(struct task_struct *task)
{
	struct leaving who = { .pid = BPF_CORE_READ(task, pid), .tgid = BPF_CORE_READ(task, tgid) };
	BPF_CORE_READ_STR_INTO(&who.name, task, comm);
	if (bpf_core_field_exists(task->sched_info.last_arrival))
		who.arrival = BPF_CORE_READ(task, sched_info.last_arrival);
	return who;
}

/* Whether it is one of the recorder's own probes: their time is the measured program's. */
static __always_inline bool is_probe(const struct leaving *who)
{
	const u64 *name = (const u64 *)who->name, rest = (1ull << 8 * PROBE_NAME_REST) - 1;
	return name[0] == settings.probe_name[0] && (name[1] & rest) == settings.probe_name[1] &&
	       (!settings.own_tgid || who->tgid == settings.own_tgid);
}

/* Records the run of a task, which ends now. The idle task is not noise. */
static __always_inline void end_run(struct cpu_state *state, u32 cpu, const struct leaving *prev, u64 now_ns)
{
	if (!state->task.start_ns || prev->pid == 0 || is_probe(prev))
		return;
	u64 net = net_of(state, &state->task, now_ns);
	u32 number;
	struct entry *entry = next_entry(state, &number);
	if (!entry)
		return;
	struct named_record *to = &entry->of;
	entry->has_names = 1;
	fill(&to->record, cpu, 0, &state->task, now_ns, net);
	to->cause = state->running;
	to->pid = prev->pid;
	to->tgid = prev->tgid;
	__builtin_memcpy(to->name, prev->name, sizeof(to->name));
	publish(entry, number);
}

/* When `prev` came onto the CPU, if that switch was not seen; 0 if it was seen. Some kernels show no switch from the threads of a
 * virtual machine's own agent (65 of 65 were missing in 22 s, among 55,393 that were seen), and a busy program can miss a switch on any
 * kernel. The scheduler stores the arrival time on its own clock; each run that was seen gives the offset of that clock from ours. */
static __always_inline u64 came_unseen(struct cpu_state *state, u64 prev, u64 arrival, u64 now_ns)
{
	u64 since = state->task.start_ns;
	if (!since || state->on_cpu == prev) {
		state->scheduler_ahead = since && arrival ? since - arrival : 0;
		return 0;
	}
	u64 came = arrival + state->scheduler_ahead;
	return arrival && state->scheduler_ahead && came > since && came < now_ns ? came : now_ns;
}

/* Gives the CPU to the task `tid`, and to its slot if it is followed. */
static __always_inline void come(struct cpu_state *state, u32 cpu, u32 tid, u64 now_ns)
{
	state->slot = slot_of_thread(tid);
	state->victim = state->slot ? tid : 0;
	set_active(state, state->watched || state->slot);
	enter(state, cpu, state->slot, now_ns);
}

/* Makes up for a switch that was not seen: from the task that came in last to the task `tid`. */
static __always_inline void switch_unseen(struct cpu_state *state, u32 cpu, u32 tid, u64 came_ns)
{
	struct task_struct *before = (void *)state->on_cpu;
	if (state->watched) {
		struct leaving left = leaving_at(before);
		end_run(state, cpu, &left, came_ns);
	}
	if (settings.follow)
		end_pieces(state, cpu, before, came_ns);
	/* An adoption may have given the task its slot since: then its account begins there, after it came. */
	if (settings.follow && state->slot != slot_of_thread(tid)) {
		struct quell_slot *s = slot_of(state->slot);
		if (s) {
			step(&s->level_seq[QUELL_LEVEL_TASK]);
			s->on_cpu_ns += came_ns - s->on_since_ns;
			s->on_since_ns = 0;
			step(&s->level_seq[QUELL_LEVEL_TASK]);
		}
		come(state, cpu, tid, came_ns);
	}
	state->running.known = 0;
	open_at(state, &state->task, QUELL_TASK, 0, came_ns);
}

/* Notices at the tick that the running task came by a switch that was not seen. A followed task that keeps its CPU would otherwise be
 * charged with none of its interrupts until it leaves. Interrupts are disabled, as they are in a switch. */
static __always_inline void look_for_unseen_switch(struct cpu_state *state, u32 cpu, u64 now_ns)
{
	if (!settings.follow || !state->on_cpu)
		return;
	struct task_struct *current = (void *)bpf_get_current_task();
	if (state->on_cpu == (u64)current)
		return;
	u64 arrival = 0;
	if (bpf_core_field_exists(current->sched_info.last_arrival))
		arrival = BPF_CORE_READ(current, sched_info.last_arrival);
	u64 came = came_unseen(state, (u64)current, arrival, now_ns);
	if (!came)
		return;
	switch_unseen(state, cpu, bpf_get_current_pid_tgid(), came);
	state->on_cpu = (u64)current;
	/* What the hypervisor has stolen until now, it may have stolen from other tasks. */
	if (state->slot && !state->watched)
		forget_stolen(state, now_ns);
}

/* The state in which a task is left. A task on its way to sleep may be woken before this program reads its state, so the tracepoint's
 * argument is preferred. */
static __always_inline u32 state_left(unsigned long long *ctx, struct task_struct *prev)
{
	if (settings.tells_state)
		return ctx[3];
	if (bpf_core_field_exists(prev->__state))
		return BPF_CORE_READ(prev, __state);
	/* Before 5.14 the field had another name. */
	return BPF_CORE_READ((struct task_struct___old *)prev, state);
}

SEC("tp_btf/sched_switch") int BPF_PROG(task_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_state *state = state_of(cpu);
	if (!state || (!state->active && !settings.follow))
		return 0;
	u64 now = bpf_ktime_get_ns();
	struct leaving left = leaving(prev);
	u64 came = came_unseen(state, (u64)prev, left.arrival, now);
	if (came)
		switch_unseen(state, cpu, prev->pid, came);
	state->on_cpu = (u64)prev;
	if (state->watched)
		end_run(state, cpu, &left, now);
	if (settings.follow) {
		end_pieces(state, cpu, prev, now);
		leave(state, cpu, prev, next, preempted, state_left(ctx, prev), now);
		come(state, cpu, next->pid, now);
		/* What the hypervisor has stolen until now, it stole from other tasks. */
		if (state->slot && !state->watched)
			forget_stolen(state, now);
	}
	state->on_cpu = (u64)next;
	state->running.known = 0;
	u32 wakee = state->woken.pid;
	if (wakee) {
		if (wakee == next->pid)
			state->running = state->woken.cause;
		state->woken.pid = 0;
	}
	/* Happens only on a fully preemptible kernel: a softirq that loses its CPU is not recorded. */
	if (state->softirq.inside) {
		state->softirq.start_ns = 0;
		state->softirq.inside = 0;
	}
	/* None runs where tasks switch. */
	forget_hardirq(state);
	open_at(state, &state->task, QUELL_TASK, 0, now);
	return 0;
}

/* The scheduler moves a waiting thread to another CPU, under the lock of the CPU that it leaves. The CPU that it goes to may switch tasks
 * at the same time, and a waiter that is lost by that has one interval for the rest of its wait. */
SEC("tp_btf/sched_migrate_task") int BPF_PROG(thread_moves, struct task_struct *task, int dest_cpu)
{
	u32 slot = slot_of_thread(task->pid), dest = dest_cpu;
	struct own_waits *own = slot ? bpf_map_lookup_elem(&own_waits, &slot) : 0;
	struct cpu_state *here = this_cpu();
	if (!own || !own->waits || own->waits_on == dest || !here)
		return 0;
	struct cpu_state *from = state_of(own->waits_on), *to = state_of(dest);
	if (from) {
		end_piece(here, slot, own, (void *)from->on_cpu, bpf_ktime_get_ns());
		remove_waiter(from, slot);
	}
	own->waits_on = dest;
	if (to)
		add_waiter(to, slot);
	return 0;
}

#endif
