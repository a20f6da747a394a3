/* SPDX-License-Identifier: MIT OR Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
 *
 * Reads the metric container: what kernel noise a thread had to bear, without a system call. Header only; C99 with GNU
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
 * A program under `quell record -- CMD` finds the container by itself; any other names it in the variable QUELL_METRICS.
 * Functions that give an int give 0, or an error number below 0. One `struct quell_metrics` serves all threads.
 */
#ifndef QUELL_METRICS_READ_H
#define QUELL_METRICS_READ_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "quell_metrics.h"

#ifndef __LP64__
#error "a slot's counters are read whole only where a machine word has 64 bits"
#endif
#ifndef MAP_ANONYMOUS
#error "quell_metrics_read.h needs Linux's own declarations: compile with -std=gnu99 or later, or with -D_GNU_SOURCE"
#endif

#ifdef __cplusplus
#define QUELL_ASSERT(what) static_assert(what, #what)
#else
#define QUELL_ASSERT(what) __extension__ _Static_assert(what, #what)
#endif
QUELL_ASSERT(sizeof(struct quell_slot) == 256);
QUELL_ASSERT(offsetof(struct quell_slot, level_seq) == 0);
QUELL_ASSERT(offsetof(struct quell_slot, tid) == 16);
QUELL_ASSERT(offsetof(struct quell_slot, pid_namespace) == 20);
QUELL_ASSERT(offsetof(struct quell_slot, start_ns) == 32);
QUELL_ASSERT(offsetof(struct quell_slot, on_cpu_ns) == 40);
QUELL_ASSERT(offsetof(struct quell_slot, on_since_ns) == 48);
QUELL_ASSERT(offsetof(struct quell_slot, run_delay_ns) == 56);
QUELL_ASSERT(offsetof(struct quell_slot, ns) == 64);
QUELL_ASSERT(offsetof(struct quell_slot, count) == 128);
QUELL_ASSERT(QUELL_KINDS == 8 && QUELL_LEVELS == 4);
QUELL_ASSERT(sizeof(struct quell_header) <= sizeof(struct quell_slot));
QUELL_ASSERT(offsetof(struct quell_header, version) == 8);
QUELL_ASSERT(offsetof(struct quell_header, slots) == 16);

/* How often a read is tried before it says -EAGAIN: some ten microseconds. A writer on another CPU can itself be held up
 * for as long as its hypervisor likes, and no reader should spin that long. */
#define QUELL_METRICS_TRIES 1000
/* How long an open waits for quell's answer. */
#define QUELL_METRICS_PATIENCE_S 5
/* A container of more slots than this (1 GiB) is taken for a broken one. */
#define QUELL_METRICS_MOST_SLOTS (1u << 22)

struct quell_metrics {
	const struct quell_slot *slots; /* slot 0 is the header */
	unsigned int count;             /* of slots, with the header */
	/* Which process this is, as a number that no other process or container has here. It stands on a page that the kernel
	 * wipes in a forked child, however that was forked: what a thread knew before the fork is then seen to be stale. */
	unsigned long long *epoch;
};

/* What one thread had to bear, from start_ns to now. */
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

#define QUELL_FAST static inline __attribute__((__always_inline__, __unused__))
#define QUELL_SLOW static __attribute__((__noinline__, __unused__))

/* The four levels' numbers as two words: half the loads. */
typedef unsigned long long __attribute__((__may_alias__)) quell_two_levels;

struct quell_levels {
	unsigned long long words[2];
};

QUELL_FAST struct quell_levels quell_levels_before(const struct quell_slot *slot)
{
	const quell_two_levels *words = (const quell_two_levels *)(const void *)slot->level_seq;
	struct quell_levels levels;

	/* Acquire: nothing of the slot is read earlier than its levels. */
	levels.words[0] = __atomic_load_n(&words[0], __ATOMIC_ACQUIRE);
	levels.words[1] = __atomic_load_n(&words[1], __ATOMIC_ACQUIRE);
	return levels;
}

/* Whether no level was at work before, nor has been since: then what was read in between is of one instant. */
QUELL_FAST int quell_levels_stood(const struct quell_slot *slot, struct quell_levels before)
{
	const quell_two_levels *words = (const quell_two_levels *)(const void *)slot->level_seq;
	const unsigned long long odd = 0x0000000100000001ULL;
	unsigned long long changed;

	/* The levels are read again after all else. On x86 this keeps only the compiler from reordering. */
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
	return quell_levels_stood(slot, before);
}

/* Apart from the first try, so that the loop takes no registers from it. */
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

/* The ns of the kinds in `mask`, in the order of `enum quell_kind`, all of one instant. With a constant mask this is a
 * handful of loads. -EAGAIN: a writer on another CPU is held up in the middle; `out` then holds nothing of use.
 *
 * It does not look whether the thread still lives: for the caller's own slot, and for one that is known to be in use. */
QUELL_FAST int quell_metrics_read_some(const struct quell_slot *slot, unsigned int mask, unsigned long long *out)
{
	return quell_try_some(slot, mask, out) ? 0 : quell_try_some_again(slot, mask, out);
}

/* All that a slot says, of one instant. -ESRCH: the slot is free, its thread has ended. -EAGAIN: as above. A slot may be
 * given to another thread after its own has ended: whoever reads others' slots compares tid and start_ns. */
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

/* The slot of a thread of the caller's own PID namespace; NULL where it has none. Looks at every slot: a slow call. */
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

/* What this thread knows of its slot. One for each file that includes this header; each finds the slot for itself. */
static __thread struct {
	const struct quell_metrics *metrics;
	unsigned long long epoch;
	const struct quell_slot *slot;
} quell_known __attribute__((__unused__));

QUELL_FAST unsigned long long quell_new_epoch(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned long long)now.tv_sec * 1000000000ULL + (unsigned long long)now.tv_nsec;
}

QUELL_SLOW const struct quell_slot *quell_metrics_thread_anew(const struct quell_metrics *m)
{
	unsigned long long wiped = 0, fresh;

	if (!m->epoch)
		return NULL;
	fresh = quell_new_epoch();
	/* In a forked child, one thread sets the new number and the others take it. */
	if (__atomic_compare_exchange_n(m->epoch, &wiped, fresh, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		wiped = fresh;
	quell_known.metrics = m;
	quell_known.epoch = wiped;
	quell_known.slot = quell_metrics_find(m, (unsigned int)syscall(SYS_gettid));
	return quell_known.slot;
}

/* The calling thread's own slot, its for as long as it lives; NULL where it has none: it is not under watch. The first call
 * in a thread looks at every slot, later ones remember the answer, a NULL too: a thread has its slot from birth or never. */
QUELL_FAST const struct quell_slot *quell_metrics_thread(const struct quell_metrics *m)
{
	if (__builtin_expect(quell_known.metrics == m && m->epoch &&
				     quell_known.epoch == __atomic_load_n(m->epoch, __ATOMIC_RELAXED), 1))
		return quell_known.slot;
	return quell_metrics_thread_anew(m);
}

/* ---- Opening and closing ---- */

#ifdef MSG_CMSG_CLOEXEC
#define QUELL_MSG_CLOEXEC MSG_CMSG_CLOEXEC
#else
#define QUELL_MSG_CLOEXEC 0x40000000
#endif
#define QUELL_WIPEONFORK 18         /* MADV_WIPEONFORK, Linux 4.14 */
#define QUELL_GET_SEALS (1024 + 10) /* F_GET_SEALS */
#define QUELL_SEAL_SHRINK 2         /* F_SEAL_SHRINK */

/* A socket to the quell that holds the container. */
QUELL_SLOW int quell_connect(void)
{
	const struct timeval patience = { QUELL_METRICS_PATIENCE_S, 0 };
	const char *name = getenv("QUELL_METRICS");
	struct sockaddr_un address;
	size_t length;
	int sock, code;

	if (!name || !*name)
		name = "quell-metrics";
	length = strlen(name);
	memset(&address, 0, sizeof(address));
	if (length > sizeof(address.sun_path) - 1)
		return -ENAMETOOLONG;
	address.sun_family = AF_UNIX;
	memcpy(address.sun_path + 1, name, length); /* after a NUL: the abstract namespace, which leaves no file behind */
	length += offsetof(struct sockaddr_un, sun_path) + 1;

	sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -errno;
	if (setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience))) {
		code = -errno;
		close(sock);
		return code;
	}
	do {
		code = connect(sock, (const struct sockaddr *)&address, (socklen_t)length) ? -errno : 0;
	} while (code == -EINTR);
	if (code) {
		close(sock);
		return code == -EAGAIN ? -ETIMEDOUT : code;
	}
	return sock;
}

/* Anyone may take a name in the abstract namespace: only root and the reader's own user are believed. */
QUELL_SLOW int quell_check_peer(int sock)
{
	struct {
		pid_t pid;
		uid_t uid;
		gid_t gid;
	} peer; /* struct ucred, which is only declared with _GNU_SOURCE */
	socklen_t length = sizeof(peer);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &length))
		return -errno;
	return peer.uid == 0 || peer.uid == geteuid() ? 0 : -EACCES;
}

/* The one descriptor that comes with the one byte. */
QUELL_SLOW int quell_receive(int sock)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec data = { &byte, 1 };
	struct msghdr message;
	struct cmsghdr *first;
	ssize_t got;
	int fd;

	memset(&message, 0, sizeof(message));
	memset(&control, 0, sizeof(control));
	message.msg_iov = &data;
	message.msg_iovlen = 1;
	message.msg_control = &control;
	message.msg_controllen = CMSG_LEN(sizeof(int)); /* CMSG_SPACE would let a second descriptor in */
	do {
		got = recvmsg(sock, &message, QUELL_MSG_CLOEXEC);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	first = CMSG_FIRSTHDR(&message);
	if (!first || first->cmsg_level != SOL_SOCKET || first->cmsg_type != SCM_RIGHTS ||
	    first->cmsg_len != CMSG_LEN(sizeof(int)))
		return -EPROTO;
	memcpy(&fd, CMSG_DATA(first), sizeof(fd));
	return fd;
}

/* A BPF map never shrinks. A file in memory, which stands in for it in tests, must promise that: what is mapped and then
 * cut away would end the reader by SIGBUS. */
QUELL_SLOW int quell_check_size(int fd, size_t size)
{
	int seals = fcntl(fd, QUELL_GET_SEALS);
	struct stat file;

	if (fstat(fd, &file))
		return -errno;
	if (seals < 0)
		return S_ISREG(file.st_mode) && file.st_size > 0 ? -EBADMSG : 0;
	return (seals & QUELL_SEAL_SHRINK) && (size_t)file.st_size >= size ? 0 : -EBADMSG;
}

QUELL_SLOW int quell_check_header(const struct quell_header *header)
{
	if (header->magic != QUELL_METRICS_MAGIC)
		return -EBADMSG;
	if (header->version != QUELL_METRICS_VERSION)
		return -EPROTONOSUPPORT;
	if (header->slot_size != sizeof(struct quell_slot))
		return -EBADMSG;
	return header->slots > 0 && header->slots <= QUELL_METRICS_MOST_SLOTS ? 0 : -EBADMSG;
}

/* Maps the first page for the number of slots, which a map's descriptor does not tell, and then all of them. */
QUELL_SLOW int quell_map(struct quell_metrics *m, int fd)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct quell_header header;
	void *mapped;
	int code = quell_check_size(fd, sizeof(struct quell_slot));

	if (code)
		return code;
	mapped = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED)
		return -errno;
	memcpy(&header, mapped, sizeof(header));
	munmap(mapped, page);
	code = quell_check_header(&header);
	if (!code)
		code = quell_check_size(fd, header.slots * sizeof(struct quell_slot));
	if (code)
		return code;
	mapped = mmap(NULL, header.slots * sizeof(struct quell_slot), PROT_READ, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED)
		return errno == EINVAL ? -EBADMSG : -errno; /* the map is smaller than its header says */
	m->slots = (const struct quell_slot *)mapped;
	m->count = header.slots;
	return 0;
}

QUELL_SLOW int quell_map_epoch(struct quell_metrics *m)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *mapped = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int code;

	if (mapped == MAP_FAILED)
		return -errno;
	if (madvise(mapped, page, QUELL_WIPEONFORK)) {
		code = -errno;
		munmap(mapped, page);
		return code;
	}
	m->epoch = (unsigned long long *)mapped;
	*m->epoch = quell_new_epoch();
	return 0;
}

/* After this, and after a failed open, no thread has a slot. Not while another thread reads. */
QUELL_SLOW void quell_metrics_close(struct quell_metrics *m)
{
	if (m->slots)
		munmap((void *)(size_t)m->slots, m->count * sizeof(struct quell_slot));
	if (m->epoch)
		munmap(m->epoch, (size_t)sysconf(_SC_PAGESIZE));
	memset(m, 0, sizeof(*m));
}

/* Asks the running quell for its container and maps it. Keeps no descriptor open. */
QUELL_SLOW int quell_metrics_open(struct quell_metrics *m)
{
	int sock, fd, code;

	memset(m, 0, sizeof(*m));
	sock = quell_connect();
	if (sock < 0)
		return sock;
	code = quell_check_peer(sock);
	fd = code ? code : quell_receive(sock);
	close(sock);
	if (fd < 0)
		return fd;
	code = quell_map(m, fd);
	close(fd);
	if (!code)
		code = quell_map_epoch(m);
	if (code)
		quell_metrics_close(m);
	return code;
}

/* What an error number of this header means. */
QUELL_SLOW const char *quell_metrics_reason(int code)
{
	switch (-code) {
	case 0:
		return "no error";
	case ECONNREFUSED:
		return "no quell answers under the name in QUELL_METRICS (else `quell-metrics`): "
		       "start the program with `quell record -- PROGRAM`, in the same network namespace";
	case EACCES:
		return "the container is offered by another user, who is not root: not believed; "
		       "set QUELL_METRICS to the name that your own quell prints";
	case ETIMEDOUT:
		return "quell did not answer in time: see whether it is stopped";
	case EPROTO:
		return "the other side sent no container: see that QUELL_METRICS names a quell";
	case ENAMETOOLONG:
		return "the name in QUELL_METRICS is longer than the 107 bytes that a socket's may have";
	case EPROTONOSUPPORT:
		return "the container is of another version: build the program with the header of the quell that runs";
	case EBADMSG:
		return "what was sent is no metric container, or a broken one: see that QUELL_METRICS names a quell";
	case ESRCH:
		return "the thread has ended, or is not under watch: start it under `quell record -- PROGRAM`";
	case EAGAIN:
		return "the slot is being written by a CPU that is held up: read again later";
	default:
		return strerror(-code);
	}
}

#undef QUELL_ASSERT
#undef QUELL_GET

#endif
