/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * The maps, and the few steps that every program consists of: look up this CPU's state, open and close an interval,
 * charge a thread's slot, send a record.
 */
#ifndef QUELL_STATE_H
#define QUELL_STATE_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "../../include/quell_metrics.h"
#include "records.h"

const volatile struct settings settings = {};

/* Never read. They put their types into the object's type information, from which the Rust side takes them. */
const volatile struct record a_record = {};
const volatile struct named_record a_named_record = {};
const volatile struct thread_record a_thread_record = {};
const volatile struct entry an_entry = {};
const volatile struct emptied an_emptied = {};

u64 lost_threads = 0;

/* An array, not a per-CPU array: a sender of an interrupt, and a waker, writes its name into the state of the target CPU. It is not mapped:
 * the flag makes it begin on a page, so that each CPU's state begins on a cache line. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu_state);
} cpus SEC(".maps");

/* A ring per CPU for interrupts, softirqs, switches and stolen time, which are most: what writes to it runs with interrupts disabled, or takes
 * its entry by an atomic operation, so an entry takes no lock, no call, and two cache lines at most. The recorder maps both. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct entry);
} entries SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct emptied);
} emptied SEC(".maps");

/* A ring buffer of the kernel's per CPU for all else. The recorder creates them, with a size that depends on the number of CPUs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_RINGBUF);
			__uint(max_entries, 1 << 12);
		});
} rings SEC(".maps");

/* The metric container. It is frozen after loading: programs write it, no system call can, and readers map it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct quell_slot);
} container SEC(".maps");

static __always_inline struct cpu_state *state_of(u32 cpu)
{
	return bpf_map_lookup_elem(&cpus, &cpu);
}

static __always_inline struct cpu_state *this_cpu(void)
{
	return state_of(bpf_get_smp_processor_id());
}

static __always_inline u64 taken_of(const struct cpu_state *state)
{
	return state->taken_ns + state->taken_by_nmi_ns;
}

static __always_inline void count_lost(struct cpu_state *state)
{
	__sync_fetch_and_add(&state->lost, 1);
}

static __always_inline void set_active(struct cpu_state *state, u16 active)
{
	if (state->active == active)
		return;
	state->active = active;
	state->sent.wanted = active;
	state->woken.wanted = active;
}

static __always_inline void open_at(struct cpu_state *state, struct open_interval *open, u32 kind, u32 id, u64 now_ns)
{
	open->inner_ns = taken_of(state);
	open->what = 0;
	open->kind = kind;
	open->id = id;
	open->inside = 1;
	open->start_ns = now_ns;
}

/* Notes what runs even where nothing is recorded: it may wake a task on a CPU that is recorded, and is then the cause. */
static __always_inline void open_unrecorded(struct open_interval *open, u32 kind, u32 id)
{
	open->what = 0;
	open->kind = kind;
	open->id = id;
	open->inside = 1;
}

/* Whether the interval that ends now was recorded from its entry on. If not, it ends here without a record. */
static __always_inline bool is_recorded(struct open_interval *open)
{
	open->inside = 0;
	return open->start_ns;
}

/* Ends the hard interrupts whose end was not seen. */
static __always_inline void forget_hardirq(struct cpu_state *state)
{
	u16 depth = state->hardirq.inside;
	if (!depth)
		return;
	if (state->hardirq.start_ns)
		count_lost(state);
	if (depth > 1 && state->outer.start_ns)
		count_lost(state);
	state->hardirq.start_ns = 0;
	state->hardirq.inside = 0;
}

/* Which hard interrupts come within others: those that a handler handles for its device, which gathers them (Intel's VMD). On arm64 all are
 * reported by handlers. */
static __always_inline bool may_nest(u32 kind)
{
#ifdef __TARGET_ARCH_x86
	return kind == QUELL_IRQ;
#else
	return true;
#endif
}

static __always_inline bool is_one(const struct open_interval *open, u32 kind, u32 id)
{
	return open->kind == kind && open->id == id;
}

/* A hard interrupt comes. One that runs already waits in a place of its own until this one ends. Of three, the middle one is lost. None comes
 * within itself, so its own end was not seen if it seems to. */
static __always_inline u16 suspend_hardirq(struct cpu_state *state, u32 kind, u32 id)
{
	u16 depth = state->hardirq.inside;
	if (depth && (!may_nest(kind) || is_one(&state->hardirq, kind, id) || (depth > 1 && is_one(&state->outer, kind, id)))) {
		forget_hardirq(state);
		depth = 0;
	}
	if (depth == 1)
		state->outer = state->hardirq;
	else if (depth && state->hardirq.start_ns)
		count_lost(state);
	return depth;
}

/* The hard interrupt that runs has ended. */
static __always_inline void leave_hardirq(struct cpu_state *state)
{
	u16 depth = state->hardirq.inside;
	state->hardirq.start_ns = 0;
	state->hardirq.inside = depth ? depth - 1 : 0;
	if (depth == 2)
		state->hardirq = state->outer;
}

/* Whether the hard interrupt that ends now was recorded from its entry on. If not, it ends here. */
static __always_inline bool is_recorded_hardirq(struct cpu_state *state, u32 kind, u32 id)
{
	u16 depth = state->hardirq.inside;
	if (depth && !is_one(&state->hardirq, kind, id)) {
		/* Its entry was not seen, or the end of one that came within it. */
		if (depth != 2 || !is_one(&state->outer, kind, id))
			return false;
		if (state->hardirq.start_ns)
			count_lost(state);
		leave_hardirq(state);
	}
	if (state->hardirq.start_ns)
		return true;
	leave_hardirq(state);
	return false;
}

/* Net time of an interval that ends now. Clocks of two CPUs may differ by a few ns, so a negative value becomes 0. */
static __always_inline u64 net_of(const struct cpu_state *state, const struct open_interval *open, u64 end_ns)
{
	s64 net = end_ns - open->start_ns - (taken_of(state) - open->inner_ns);
	return net > 0 ? net : 0;
}

/* A task's name, from a typed pointer. */
static __always_inline void copy_name(char to[NAME_LENGTH], struct task_struct *task)
{
	((u64 *)to)[0] = *(u64 *)&task->comm[0];
	((u64 *)to)[1] = *(u64 *)&task->comm[sizeof(u64)];
}

static __always_inline void *ring_of(u32 cpu)
{
	return bpf_map_lookup_elem(&rings, &cpu);
}

static __always_inline void *reserve(struct cpu_state *state, u32 cpu, u64 size)
{
	void *ring = ring_of(cpu);
	void *record = ring ? bpf_ringbuf_reserve(ring, size, 0) : 0;
	if (!record)
		count_lost(state);
	return record;
}

static __always_inline void fill(struct record *record, u32 cpu, u32 victim, const struct open_interval *open, u64 end_ns,
				 u64 net_ns)
{
	record->start_ns = open->start_ns;
	record->end_ns = end_ns;
	record->net_ns = net_ns;
	record->what = open->what;
	record->cpu = cpu;
	record->victim = victim;
	record->id = open->id;
	record->kind = open->kind;
}

/* Adds to a word that only this CPU writes, and keeps stores before from stores behind. x86 does not reorder stores; on other architectures
 * an atomic operation that returns a value is a full barrier. */
static __always_inline void add_between_stores(volatile u32 *word, u32 more)
{
#ifdef __TARGET_ARCH_x86
	if (more)
		*word += more;
	asm volatile("" ::: "memory");
#else
	u32 before = __sync_fetch_and_add((u32 *)word, more);
	asm volatile("" ::"r"(before) : "memory");
#endif
}

/* Whether a CPU's ring has room for more than `spare` entries. */
static __always_inline bool has_room(struct cpu_state *state, s32 spare)
{
	if ((s32)(state->full_at - state->next) > spare)
		return true;
	u32 ring = state->ring;
	struct emptied *by_recorder = bpf_map_lookup_elem(&emptied, &ring);
	if (by_recorder)
		state->full_at = *(volatile u32 *)&by_recorder->entries + (1u << state->ring_order);
	return (s32)(state->full_at - state->next) > spare;
}

static __always_inline struct entry *entry_at(struct cpu_state *state, u32 number)
{
	u32 entries_each = 1u << state->ring_order;
	u32 at = state->ring * entries_each + (number & (entries_each - 1));
	return bpf_map_lookup_elem(&entries, &at);
}

/* The entry that comes next in this CPU's ring, and its number; none if the ring is full. Interrupts must be disabled. On arm64 an NMI may
 * write to the ring all the same (pseudo-NMIs are interrupts to the kernel's tracepoints), so the number is taken by an atomic operation there,
 * and there is room left for what comes between the look at the ring and that: beyond the ring's end, it would overwrite an entry that the
 * recorder waits for. */
#ifdef __TARGET_ARCH_x86
#define SPARE_FOR_NMIS 0
#else
#define SPARE_FOR_NMIS 8
#endif
static __always_inline struct entry *next_entry(struct cpu_state *state, u32 *number)
{
	if (!has_room(state, SPARE_FOR_NMIS)) {
		count_lost(state);
		return 0;
	}
#ifdef __TARGET_ARCH_x86
	*number = state->next;
	state->next = *number + 1;
#else
	*number = __sync_fetch_and_add(&state->next, 1);
#endif
	return entry_at(state, *number);
}

/* Gives an entry to the recorder. */
static __always_inline void publish(struct entry *entry, u32 number)
{
	add_between_stores(&entry->has_names, 0);
	*(volatile u32 *)&entry->number = number + 1;
}

/* Sends an interval that ends while interrupts are disabled. */
static __always_inline void send_entry(struct cpu_state *state, u32 cpu, const struct open_interval *open, u64 end_ns, u64 net_ns)
{
	u32 number;
	struct entry *entry = next_entry(state, &number);
	if (!entry)
		return;
	entry->has_names = 0;
	fill(&entry->of.record, cpu, state->victim, open, end_ns, net_ns);
	publish(entry, number);
}

/* BPF_RB_NO_WAKEUP: a wakeup triples the cost of a program (571 ns against 185 in the prototype). The recorder empties the rings at intervals. */
static __always_inline void send(struct cpu_state *state, u32 cpu, const struct open_interval *open, u64 end_ns, u64 net_ns)
{
	struct record *record = reserve(state, cpu, sizeof(*record));
	if (!record)
		return;
	fill(record, cpu, state->victim, open, end_ns, net_ns);
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* Room that a softirq leaves: more interrupts than can come between its look at the ring and its entry. */
#define SPARE_ENTRIES 64

/* Sends an interval that ends while interrupts are enabled but nothing else is, as a softirq does: an interrupt may write to the ring
 * between any two steps. The atomic operation returns a value, which programs can have since Linux 5.12 (arm64: 5.18). */
static __always_inline void send_interruptible(struct cpu_state *state, u32 cpu, const struct open_interval *open, u64 end_ns, u64 net_ns)
{
	if (!has_room(state, SPARE_ENTRIES)) {
		count_lost(state);
		return;
	}
	u32 number = __sync_fetch_and_add(&state->next, 1);
	struct entry *entry = entry_at(state, number);
	if (!entry)
		return;
	entry->has_names = 0;
	fill(&entry->of.record, cpu, state->victim, open, end_ns, net_ns);
	publish(entry, number);
}

/* Advances a level's sequence number: odd while the level writes. */
static __always_inline void step(volatile u32 *level_seq)
{
	add_between_stores(level_seq, 1);
}

static __always_inline struct quell_slot *slot_of(u32 slot)
{
	return slot ? bpf_map_lookup_elem(&container, &slot) : 0;
}

/* Adds to a slot's counters. Plain increments are enough: each counter is written at one level only, and a level never interrupts
 * itself. */
static __always_inline void charge(u32 slot, u32 level, u32 kind, u64 ns)
{
	struct quell_slot *s = slot_of(slot);
	if (!s)
		return;
	step(&s->level_seq[level]);
	*(volatile u64 *)&s->ns[kind] += ns;
	*(volatile u64 *)&s->count[kind] += 1;
	asm volatile("" ::: "memory");
	step(&s->level_seq[level]);
}

#endif
