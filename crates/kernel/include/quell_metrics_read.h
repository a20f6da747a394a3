/* SPDX-License-Identifier: MIT OR Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
 *
 * Reads the metric container: how much kernel noise a thread suffered, without a system call. Header only; C99 with GNU
 * extensions or C++11, Linux, 64 bits.
 *
 *     struct quell_metrics metrics;
 *     int code = quell_metrics_open(&metrics);
 *     if (code)
 *             fprintf(stderr, "no noise counters: %s\n", quell_metrics_reason(code));
 *     else {
 *             const struct quell_slot *mine = quell_metrics_thread(&metrics);
 *             unsigned long long ns[2];
 *             if (mine && !quell_metrics_read_some(mine, QUELL_ONLY(QUELL_TICK) | QUELL_ONLY(QUELL_TASK), ns))
 *                     printf("tick %llu ns, preempted %llu ns\n", ns[0], ns[1]);
 *     }
 *
 * A program under `quell record -- CMD` finds the container by itself; any other program names it in the variable QUELL_METRICS.
 * Functions that return an int return 0, or a negative error number. One `struct quell_metrics` serves all threads.
 */
#ifndef QUELL_METRICS_READ_H
#define QUELL_METRICS_READ_H

#include <errno.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "quell_metrics.h"
#include "quell_metrics_open.h"

#ifdef __cplusplus
#define QUELL_ASSERT(what) static_assert(what, #what)
#else
#define QUELL_ASSERT(what) __extension__ _Static_assert(what, #what)
#endif
/* Generated (checks) by tools/make_contract.py from contract/container.py and kernel.py: change it there. */
QUELL_ASSERT(sizeof(struct quell_slot) == 256);
QUELL_ASSERT(offsetof(struct quell_slot, level_seq) == 0);
QUELL_ASSERT(offsetof(struct quell_slot, tid) == 16);
QUELL_ASSERT(offsetof(struct quell_slot, pid_namespace) == 20);
QUELL_ASSERT(offsetof(struct quell_slot, global_tid) == 24);
QUELL_ASSERT(offsetof(struct quell_slot, global_pid) == 28);
QUELL_ASSERT(offsetof(struct quell_slot, start_ns) == 32);
QUELL_ASSERT(offsetof(struct quell_slot, on_cpu_ns) == 40);
QUELL_ASSERT(offsetof(struct quell_slot, on_since_ns) == 48);
QUELL_ASSERT(offsetof(struct quell_slot, run_delay_ns) == 56);
QUELL_ASSERT(offsetof(struct quell_slot, ns) == 64);
QUELL_ASSERT(offsetof(struct quell_slot, count) == 128);
QUELL_ASSERT(offsetof(struct quell_slot, off_since_ns) == 192);
QUELL_ASSERT(offsetof(struct quell_slot, fault_since_ns) == 200);
QUELL_ASSERT(offsetof(struct quell_slot, fault_base_ns) == 208);
QUELL_ASSERT(offsetof(struct quell_slot, preemptor_pid) == 216);
QUELL_ASSERT(offsetof(struct quell_slot, cpu) == 220);
QUELL_ASSERT(offsetof(struct quell_slot, preemptor) == 224);
QUELL_ASSERT(offsetof(struct quell_slot, comm) == 240);
QUELL_ASSERT(sizeof(struct quell_header) == 24);
QUELL_ASSERT(offsetof(struct quell_header, magic) == 0);
QUELL_ASSERT(offsetof(struct quell_header, version) == 8);
QUELL_ASSERT(offsetof(struct quell_header, slot_size) == 12);
QUELL_ASSERT(offsetof(struct quell_header, slots) == 16);
QUELL_ASSERT(offsetof(struct quell_header, recorder_pid) == 20);
QUELL_ASSERT(QUELL_KINDS == 8 && QUELL_LEVELS == 4);
/* End of what is generated. */

/* Number of attempts before a read returns -EAGAIN: about ten microseconds. A hypervisor can stop a writer on another CPU for
 * any length of time in the middle of a write, and no reader should spin that long. */
#define QUELL_METRICS_TRIES 1000

/* What one thread suffered, from start_ns to now. */
struct quell_reading {
	unsigned int tid;
	unsigned long long start_ns;
	unsigned long long on_cpu_ns; /* up to the thread's last switch; see on_since_ns */
	unsigned long long on_since_ns;
	unsigned long long run_delay_ns;
	unsigned long long ns[QUELL_KINDS];
	unsigned long long count[QUELL_KINDS];
};

#define QUELL_ONLY(kind) (1u << (kind))
#define QUELL_EVERY_KIND ((1u << QUELL_KINDS) - 1)

/* ---- Reading a slot ---- */

/* The four levels' sequence numbers as two words, which halves the number of loads. */
typedef unsigned long long __attribute__((__may_alias__)) quell_two_levels;

struct quell_levels {
	unsigned long long words[2];
};

QUELL_FAST struct quell_levels quell_levels_before(const struct quell_slot *slot)
{
	const quell_two_levels *words = (const quell_two_levels *)(const void *)slot->level_seq;
	struct quell_levels levels;

	/* Acquire: no field of the slot is read before the sequence numbers. */
	levels.words[0] = __atomic_load_n(&words[0], __ATOMIC_ACQUIRE);
	levels.words[1] = __atomic_load_n(&words[1], __ATOMIC_ACQUIRE);
	return levels;
}

/* Whether no level was writing before, and none has written since: what was read in between is then a consistent snapshot. */
QUELL_FAST int quell_levels_stood(const struct quell_slot *slot, struct quell_levels before)
{
	const quell_two_levels *words = (const quell_two_levels *)(const void *)slot->level_seq;
	const unsigned long long odd = 0x0000000100000001ULL;
	unsigned long long changed;

	/* The sequence numbers are read again after everything else. On x86 this fence only stops the compiler from reordering. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	changed = before.words[0] ^ __atomic_load_n(&words[0], __ATOMIC_RELAXED);
	changed |= before.words[1] ^ __atomic_load_n(&words[1], __ATOMIC_RELAXED);
	return __builtin_expect((changed | ((before.words[0] | before.words[1]) & odd)) == 0, 1);
}

QUELL_FAST void quell_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

#define QUELL_GET(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

QUELL_FAST int quell_try_some(const struct quell_slot *slot, unsigned int mask, unsigned long long *out)
{
	struct quell_levels before = quell_levels_before(slot);

	/* Generated (kinds) by tools/make_contract.py from contract/kernel.py: change it there. */
	if (mask & QUELL_ONLY(QUELL_NMI))
		*out++ = QUELL_GET(slot->ns[QUELL_NMI]);
	if (mask & QUELL_ONLY(QUELL_TICK))
		*out++ = QUELL_GET(slot->ns[QUELL_TICK]);
	if (mask & QUELL_ONLY(QUELL_IRQ))
		*out++ = QUELL_GET(slot->ns[QUELL_IRQ]);
	if (mask & QUELL_ONLY(QUELL_IPI))
		*out++ = QUELL_GET(slot->ns[QUELL_IPI]);
	if (mask & QUELL_ONLY(QUELL_SOFTIRQ))
		*out++ = QUELL_GET(slot->ns[QUELL_SOFTIRQ]);
	if (mask & QUELL_ONLY(QUELL_TASK))
		*out++ = QUELL_GET(slot->ns[QUELL_TASK]);
	if (mask & QUELL_ONLY(QUELL_FAULT))
		*out++ = QUELL_GET(slot->ns[QUELL_FAULT]);
	if (mask & QUELL_ONLY(QUELL_STEAL))
		*out++ = QUELL_GET(slot->ns[QUELL_STEAL]);
	/* End of what is generated. */
	return quell_levels_stood(slot, before);
}

/* Separate from the first attempt, so that the retry loop takes no registers from the fast path. */
QUELL_SLOW int quell_try_some_again(const struct quell_slot *slot, unsigned int mask, unsigned long long *out)
{
	int tries;

	for (tries = 1; tries < QUELL_METRICS_TRIES; tries++) {
		quell_pause();
		if (quell_try_some(slot, mask, out))
			return 0;
	}
	return -EAGAIN;
}

/* Reads the ns of the kinds in `mask`, in the order of `enum quell_kind`, as one consistent snapshot. With a constant mask this
 * compiles to a few loads. -EAGAIN: a writer on another CPU was stopped in the middle of a write; `out` is then undefined.
 *
 * It does not check that the thread still lives. Use it for the caller's own slot, or for one that is known to be in use. */
QUELL_FAST int quell_metrics_read_some(const struct quell_slot *slot, unsigned int mask, unsigned long long *out)
{
	return quell_try_some(slot, mask, out) ? 0 : quell_try_some_again(slot, mask, out);
}

/* Whether nothing was written into the slot since quell_levels_before() gave `seen`: a reader that keeps what it read after that call need
 * not read again. */
QUELL_FAST int quell_metrics_is_old(const struct quell_slot *slot, struct quell_levels seen)
{
	struct quell_levels now = quell_levels_before(slot);

	return now.words[0] == seen.words[0] && now.words[1] == seen.words[1];
}

/* Reads all fields of a slot as one consistent snapshot. -ESRCH: the slot is free, its thread has ended. -EAGAIN: as above. A slot
 * can be given to another thread after its own has ended: a reader of another thread's slot must compare tid and start_ns. */
QUELL_SLOW int quell_metrics_read(const struct quell_slot *slot, struct quell_reading *out)
{
	int tries, kind;

	for (tries = 0; tries < QUELL_METRICS_TRIES; tries++) {
		struct quell_levels before = quell_levels_before(slot);

		out->tid = QUELL_GET(slot->tid);
		out->start_ns = QUELL_GET(slot->start_ns);
		out->on_cpu_ns = QUELL_GET(slot->on_cpu_ns);
		out->on_since_ns = QUELL_GET(slot->on_since_ns);
		out->run_delay_ns = QUELL_GET(slot->run_delay_ns);
		for (kind = 0; kind < QUELL_KINDS; kind++) {
			out->ns[kind] = QUELL_GET(slot->ns[kind]);
			out->count[kind] = QUELL_GET(slot->count[kind]);
		}
		if (quell_levels_stood(slot, before))
			return out->tid ? 0 : -ESRCH;
		quell_pause();
	}
	return -EAGAIN;
}

/* ---- Finding a thread's slot ---- */

QUELL_SLOW int quell_slot_belongs(const struct quell_slot *slot, unsigned int tid, unsigned int pid_namespace)
{
	int tries;

	for (tries = 0; tries < QUELL_METRICS_TRIES; tries++) {
		struct quell_levels before = quell_levels_before(slot);
		int same = QUELL_GET(slot->tid) == tid && QUELL_GET(slot->pid_namespace) == pid_namespace;

		if (quell_levels_stood(slot, before))
			return same;
		quell_pause();
	}
	return 0;
}

/* The slot of a thread of the caller's own PID namespace; NULL if it has none. Searches all slots, so the call is slow. */
QUELL_SLOW const struct quell_slot *quell_metrics_find(const struct quell_metrics *m, unsigned int tid)
{
	struct stat own;
	unsigned int number;

	if (!m->slots || stat("/proc/self/ns/pid", &own))
		return NULL;
	for (number = 1; number < m->count; number++) {
		const struct quell_slot *slot = &m->slots[number];

		if (QUELL_GET(slot->tid) == tid && quell_slot_belongs(slot, tid, (unsigned int)own.st_ino))
			return slot;
	}
	return NULL;
}

/* This thread's cached slot. Each file that includes this header has its own cache and searches for itself. */
static __thread struct {
	const struct quell_metrics *metrics;
	unsigned long long epoch;
	const struct quell_slot *slot;
} quell_known __attribute__((__unused__));

QUELL_SLOW const struct quell_slot *quell_metrics_thread_anew(const struct quell_metrics *m)
{
	unsigned long long wiped = 0, fresh;

	if (!m->epoch)
		return NULL;
	fresh = quell_new_epoch();
	/* In a forked child one thread sets the new number, and the others take it over. */
	if (__atomic_compare_exchange_n(m->epoch, &wiped, fresh, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		wiped = fresh;
	quell_known.metrics = m;
	quell_known.epoch = wiped;
	quell_known.slot = quell_metrics_find(m, (unsigned int)syscall(SYS_gettid));
	return quell_known.slot;
}

/* The calling thread's own slot, which stays its own as long as it lives; NULL if it has none because it is not followed. The first
 * call in a thread searches all slots. Later calls return the cached answer, also where it is NULL: a thread gets its slot at birth,
 * or when its process opens the container, and never later. */
QUELL_FAST const struct quell_slot *quell_metrics_thread(const struct quell_metrics *m)
{
	if (__builtin_expect(quell_known.metrics == m && m->epoch &&
				     quell_known.epoch == __atomic_load_n(m->epoch, __ATOMIC_RELAXED), 1))
		return quell_known.slot;
	return quell_metrics_thread_anew(m);
}

#undef QUELL_ASSERT
#undef QUELL_GET

#endif
