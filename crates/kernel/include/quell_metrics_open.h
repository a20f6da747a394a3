/* SPDX-License-Identifier: MIT OR Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
 *
 * Opens and closes the metric container; quell_metrics_read.h, which reads it, includes this.
 *
 * quell holds the container as a frozen BPF map and listens on a Unix stream socket in the abstract namespace. Its own user, root and
 * the processes that it follows receive one byte together with the map's descriptor, others an `n` alone. The socket's name, without its leading NUL, is in QUELL_METRICS.
 */
#ifndef QUELL_METRICS_OPEN_H
#define QUELL_METRICS_OPEN_H

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
#error "the metric container's headers need Linux's own declarations: compile with -std=gnu99 or later, or with -D_GNU_SOURCE"
#endif

/* Seconds that an open waits for quell's answer. */
#define QUELL_METRICS_TIMEOUT_S 5
/* Generated (names) by tools/make_contract.py from contract/container.py: change it there. */
/* The variable with the name of quell's socket, and the name without it. */
#define QUELL_METRICS_VARIABLE "QUELL_METRICS"
#define QUELL_METRICS_COMMON_NAME "quell-metrics"
/* A container of more slots than this is taken for a broken one. */
#define QUELL_METRICS_MOST_SLOTS (1u << 22)
/* End of what is generated. */

struct quell_metrics {
	const struct quell_slot *slots; /* slot 0 is the header */
	unsigned int count;             /* number of slots, including the header */
	/* Identifies this process and this opening of a container. The number is on a page that the kernel wipes in a forked child,
	 * whichever call forked it, so a thread sees that its cached slot is from before the fork. */
	unsigned long long *epoch;
};

#define QUELL_FAST static inline __attribute__((__always_inline__, __unused__))
#define QUELL_SLOW static __attribute__((__noinline__, __unused__))

QUELL_FAST unsigned long long quell_new_epoch(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned long long)now.tv_sec * 1000000000ULL + (unsigned long long)now.tv_nsec;
}

#ifdef MSG_CMSG_CLOEXEC
#define QUELL_MSG_CLOEXEC MSG_CMSG_CLOEXEC
#else
#define QUELL_MSG_CLOEXEC 0x40000000
#endif
#define QUELL_WIPEONFORK 18         /* MADV_WIPEONFORK, Linux 4.14 */
#define QUELL_GET_SEALS (1024 + 10) /* F_GET_SEALS */
#define QUELL_SEAL_SHRINK 2         /* F_SEAL_SHRINK */

/* Connects to the quell process that holds the container. */
QUELL_SLOW int quell_connect(void)
{
	const struct timeval timeout = { QUELL_METRICS_TIMEOUT_S, 0 };
	const char *name = getenv(QUELL_METRICS_VARIABLE);
	struct sockaddr_un address;
	size_t length;
	int sock, code;

	if (!name || !*name)
		name = QUELL_METRICS_COMMON_NAME;
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
	if (setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) ||
	    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout))) {
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

/* Any process can bind a name in the abstract namespace, so the peer must be root or the reader's own user. */
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

/* Receives the one byte and the one descriptor that comes with it. */
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
	message.msg_controllen = CMSG_LEN(sizeof(int)); /* CMSG_SPACE would leave room for a second descriptor */
	do {
		got = recvmsg(sock, &message, QUELL_MSG_CLOEXEC);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	first = CMSG_FIRSTHDR(&message);
	if (!first && got == 1 && byte == 'n')
		return -EPERM;
	if (!first || first->cmsg_level != SOL_SOCKET || first->cmsg_type != SCM_RIGHTS ||
	    first->cmsg_len != CMSG_LEN(sizeof(int)))
		return -EPROTO;
	memcpy(&fd, CMSG_DATA(first), sizeof(fd));
	return fd;
}

/* A BPF map never shrinks. A memfd, which stands in for the map in tests, must be sealed against shrinking: if it were truncated
 * after it was mapped, SIGBUS would end the reader. */
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

/* Maps the first page to read the number of slots, because a map's descriptor does not say its size, then maps all slots. */
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

/* After this, and after a failed open, no thread has a slot. Must not run while another thread reads. */
QUELL_SLOW void quell_metrics_close(struct quell_metrics *m)
{
	if (m->slots)
		munmap((void *)(size_t)m->slots, m->count * sizeof(struct quell_slot));
	if (m->epoch)
		munmap(m->epoch, (size_t)sysconf(_SC_PAGESIZE));
	memset(m, 0, sizeof(*m));
}

/* Requests the container from the running quell and maps it. No descriptor stays open. */
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
	case EPERM:
		return "quell gives its container to its own user, root, and the processes that it follows: "
		       "start the program with `quell record -- PROGRAM`";
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

#endif
