/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Followed threads: each owns a slot in the container from its birth, or its adoption, to its last switch.
 */
#ifndef QUELL_THREADS_H
#define QUELL_THREADS_H

#include "state.h"
#include "waits.h"

#ifdef __TARGET_ARCH_arm64
#define NR_SCHED_YIELD 124
#define NR_SCHED_SETAFFINITY 122
#else
#define NR_SCHED_YIELD 24
#define NR_SCHED_SETAFFINITY 203
#endif
#define TASK_RUNNING 0
#define TASK_DEAD 0x80
#define EEXIST 17
/* Marks the thread that starts the command: its children are followed, the thread itself is not. */
#define SLOT_OF_PARENT 0xffffffff

/* Slot by thread id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 1);
	__type(value, u32);
} free_slots SEC(".maps");

/* The system call that `task` is in; negative if it is in none, or before Linux 5.15. */
static __always_inline s64 system_call(struct task_struct *task)
{
	if (!bpf_core_enum_value_exists(enum bpf_func_id___new, BPF_FUNC_task_pt_regs___new))
		return -1;
	struct pt_regs *registers = (void *)bpf_task_pt_regs(task);
#ifdef __TARGET_ARCH_arm64
	return BPF_CORE_READ(registers, syscallno);
#else
	return BPF_CORE_READ(registers, orig_ax);
#endif
}

/* How `prev`, which could go on, leaves its CPU. Nataraj et al. 2007, section 3, count involuntary switches only: a program that yields,
 * or moves itself to another CPU, is not preempted. The switch itself does not say which it is: a preemption on the way back to user mode
 * looks like a yield, but only a yield is in that system call. */
static __always_inline u32 how_left(struct task_struct *prev, bool preempted)
{
	s64 call = system_call(prev);
	if (call == NR_SCHED_YIELD && !preempted)
		return LEFT_YIELDED;
	/* The kernel's migration thread preempts it in the middle of the call. */
	return call == NR_SCHED_SETAFFINITY ? LEFT_MOVED : LEFT_PREEMPTED;
}

/* Sets the thread's id as the thread itself sees it, and the PID namespace of that id. */
static __always_inline void identify(struct quell_slot *s, struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	u32 level = BPF_CORE_READ(pid, level);
	struct upid *numbers = (void *)pid + bpf_core_field_offset(pid->numbers);
	struct upid *innermost = (void *)numbers + level * bpf_core_type_size(struct upid);
	s->global_tid = BPF_CORE_READ(task, pid);
	s->global_pid = BPF_CORE_READ(task, tgid);
	s->pid_namespace = BPF_CORE_READ(innermost, ns, ns.inum);
	s->tid = BPF_CORE_READ(innermost, nr);
}

static __always_inline u32 allocate(struct task_struct *task)
{
	u32 slot = 0;
	struct quell_slot *s;
	if (bpf_map_pop_elem(&free_slots, &slot) || !(s = slot_of(slot))) {
		__sync_fetch_and_add(&lost_threads, 1);
		return 0;
	}
	step(&s->level_seq[QUELL_LEVEL_TASK]);
	s->start_ns = bpf_ktime_get_ns();
	s->on_cpu_ns = 0;
	s->on_since_ns = 0;
	s->run_delay_ns = 0;
	for (int kind = 0; kind < QUELL_KINDS; kind++) {
		s->ns[kind] = 0;
		s->count[kind] = 0;
	}
	s->off_since_ns = 0;
	s->fault_since_ns = 0;
	BPF_CORE_READ_STR_INTO(&s->comm, task, comm);
	identify(s, task);
	step(&s->level_seq[QUELL_LEVEL_TASK]);
	struct own_waits *own = bpf_map_lookup_elem(&own_waits, &slot);
	if (own)
		*own = (struct own_waits){};
	return slot;
}

static __always_inline void follow(struct task_struct *task)
{
	u32 tid = BPF_CORE_READ(task, pid);
	u32 slot = allocate(task);
	/* A thread may be adopted at the moment of its birth: whichever program comes second gives its slot back. */
	long failed = slot ? bpf_map_update_elem(&slots, &tid, &slot, settings.adopt ? BPF_NOEXIST : BPF_ANY) : 0;
	if (failed) {
		struct quell_slot *s = slot_of(slot);
		if (s)
			s->tid = 0;
		bpf_map_push_elem(&free_slots, &slot, 0);
		if (failed != -EEXIST)
			__sync_fetch_and_add(&lost_threads, 1);
	}
}

static __always_inline u32 slot_of_thread(u32 tid)
{
	u32 *slot = bpf_map_lookup_elem(&slots, &tid);
	return slot && *slot != SLOT_OF_PARENT ? *slot : 0;
}

/* The thread's last switch: its account goes to the recorder, and its slot becomes free. */
static __always_inline void end_thread(struct cpu_state *state, u32 cpu, struct quell_slot *s, u64 now_ns)
{
	u32 slot = state->slot;
	struct thread_record *to = reserve(state, cpu, sizeof(*to));
	if (to) {
		struct open_interval life = { .start_ns = s->start_ns, .kind = RECORD_THREAD_END };
		fill(&to->record, cpu, s->global_tid, &life, now_ns, 0);
		to->slot = *s;
		struct own_waits *own = bpf_map_lookup_elem(&own_waits, &slot);
		to->own = own ? *own : (struct own_waits){};
		bpf_ringbuf_submit(to, BPF_RB_NO_WAKEUP);
	} else {
		__sync_fetch_and_add(&lost_threads, 1);
	}
	/* Another thread of the process may have called exec and taken over this id, with a slot of its own. */
	u32 tid = s->global_tid;
	u32 *held = bpf_map_lookup_elem(&slots, &tid);
	if (held && *held == slot)
		bpf_map_delete_elem(&slots, &tid);
	step(&s->level_seq[QUELL_LEVEL_TASK]);
	s->tid = 0;
	step(&s->level_seq[QUELL_LEVEL_TASK]);
}

static __always_inline void leave(struct cpu_state *state, u32 cpu, struct task_struct *prev, struct task_struct *next,
				  bool preempted, u32 run_state, u64 now_ns)
{
	u32 slot = state->slot;
	struct quell_slot *s = slot_of(slot);
	if (!s)
		return;
	step(&s->level_seq[QUELL_LEVEL_TASK]);
	s->on_cpu_ns += now_ns - s->on_since_ns;
	s->on_since_ns = 0;
	if (bpf_core_field_exists(struct sched_info, run_delay))
		s->run_delay_ns = BPF_CORE_READ(prev, sched_info.run_delay);
	s->cpu = cpu;
	if (preempted || run_state == TASK_RUNNING) {
		s->off_since_ns = now_ns;
		struct own_waits *own = bpf_map_lookup_elem(&own_waits, &slot);
		if (own) {
			own->left = how_left(prev, preempted);
			if (own->left == LEFT_PREEMPTED)
				begin_wait(state, cpu, slot, own, now_ns);
		}
		s->preemptor_pid = next->pid;
		BPF_CORE_READ_STR_INTO(&s->preemptor, next, comm);
		/* It was runnable and the CPU goes idle: its group has used up its CPU bandwidth (CFS throttling). */
		if (!next->pid)
			__builtin_memcpy(s->preemptor, "(throttled)", sizeof("(throttled)"));
	}
	step(&s->level_seq[QUELL_LEVEL_TASK]);
	if (run_state & TASK_DEAD) {
		BPF_CORE_READ_STR_INTO(&s->comm, prev, comm);
		end_thread(state, cpu, s, now_ns);
		bpf_map_push_elem(&free_slots, &slot, 0);
	}
}

static __always_inline void enter(struct cpu_state *state, u32 cpu, u32 slot, u64 now_ns)
{
	struct quell_slot *s = slot_of(slot);
	if (!s)
		return;
	u64 off_since = s->off_since_ns;
	step(&s->level_seq[QUELL_LEVEL_TASK]);
	s->on_since_ns = now_ns;
	s->off_since_ns = 0;
	step(&s->level_seq[QUELL_LEVEL_TASK]);
	if (!off_since || now_ns < off_since)
		return;
	struct own_waits *own = bpf_map_lookup_elem(&own_waits, &slot);
	if (own && own->left == LEFT_YIELDED) {
		own->yielded_ns += now_ns - off_since;
		own->yields++;
		return;
	}
	if (own && own->left == LEFT_MOVED) {
		own->moved_ns += now_ns - off_since;
		own->moves++;
		return;
	}
	if (own)
		end_wait(state, cpu, slot, own, (void *)state->on_cpu, now_ns);
}

SEC("tp_btf/sched_process_fork") int BPF_PROG(thread_born, struct task_struct *parent, struct task_struct *child)
{
	u32 tid = parent->pid;
	if (bpf_map_lookup_elem(&slots, &tid))
		follow(child);
	return 0;
}

/* When a thread other than the process's first calls exec, it takes over the first one's id. */
SEC("tp_btf/sched_process_exec") int BPF_PROG(program_begins, struct task_struct *task, int old_tid)
{
	u32 before = old_tid, now = task->pid;
	u32 *known = bpf_map_lookup_elem(&slots, &before);
	if (!known)
		return 0;
	u32 slot = *known;
	struct quell_slot *s = slot_of(slot);
	if (!s)
		return 0;
	step(&s->level_seq[QUELL_LEVEL_TASK]);
	BPF_CORE_READ_STR_INTO(&s->comm, task, comm);
	identify(s, task);
	step(&s->level_seq[QUELL_LEVEL_TASK]);
	if (before != now) {
		bpf_map_delete_elem(&slots, &before);
		bpf_map_update_elem(&slots, &now, &slot, BPF_ANY);
	}
	return 0;
}

#endif
