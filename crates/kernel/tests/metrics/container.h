/* For the tests in this folder: a container in memory and a server that hands it out, in place of a running quell, and the
 * writers' half of the protocol, as the BPF programs implement it. */
#ifndef CONTAINER_H
#define CONTAINER_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "quell_metrics.h"

#define REFUSE (-2)

#define CHECK(what)                                                                        \
	do {                                                                               \
		if (!(what)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
			_exit(1);                                                          \
		}                                                                          \
	} while (0)

struct container {
	int fd;
	unsigned int count;
	struct quell_slot *slots;
	struct quell_header *header;
	char name[64]; /* of the socket */
	int listener;
	int sent; /* the descriptor that the server sends; -1: none; REFUSE: none, and the byte that says so */
	pthread_t server;
};

static inline unsigned int container_namespace(void)
{
	struct stat own;

	CHECK(stat("/proc/self/ns/pid", &own) == 0);
	return (unsigned int)own.st_ino;
}

static inline void container_make(struct container *c, unsigned int count)
{
	const size_t size = count * sizeof(struct quell_slot);

	memset(c, 0, sizeof(*c));
	c->count = count;
	c->fd = memfd_create("container", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK(c->fd >= 0);
	CHECK(ftruncate(c->fd, (off_t)size) == 0);
	CHECK(fcntl(c->fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	c->slots = (struct quell_slot *)mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
	CHECK(c->slots != MAP_FAILED);
	c->header = (struct quell_header *)(void *)c->slots;
	c->header->magic = QUELL_METRICS_MAGIC;
	c->header->version = QUELL_METRICS_VERSION;
	c->header->slot_size = sizeof(struct quell_slot);
	c->header->slots = count;
	c->sent = c->fd;
}

static inline void container_send(int sock, int fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char byte = fd == REFUSE ? 'n' : 'q';
	struct iovec data = { &byte, 1 };
	struct msghdr message;

	memset(&message, 0, sizeof(message));
	memset(&control, 0, sizeof(control));
	message.msg_iov = &data;
	message.msg_iovlen = 1;
	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control.room);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	CHECK(sendmsg(sock, &message, MSG_NOSIGNAL) == 1);
}

static inline void *container_server(void *argument)
{
	struct container *c = (struct container *)argument;
	int sock;

	while ((sock = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		container_send(sock, __atomic_load_n(&c->sent, __ATOMIC_ACQUIRE));
		close(sock);
	}
	return NULL;
}

static inline void container_listen(struct container *c)
{
	struct sockaddr_un address;
	socklen_t length;

	snprintf(c->name, sizeof(c->name), "quell-metrics-test-%d", (int)getpid());
	memset(&address, 0, sizeof(address));
	address.sun_family = AF_UNIX;
	memcpy(address.sun_path + 1, c->name, strlen(c->name));
	length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(c->name));
	c->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(c->listener >= 0);
	CHECK(bind(c->listener, (const struct sockaddr *)&address, length) == 0);
	CHECK(listen(c->listener, 16) == 0);
}

/* Serves from a thread, and sets the variable for this process's readers. */
static inline void container_serve(struct container *c)
{
	container_listen(c);
	CHECK(setenv("QUELL_METRICS", c->name, 1) == 0);
	CHECK(pthread_create(&c->server, NULL, container_server, c) == 0);
}

static inline void container_end(struct container *c)
{
	CHECK(shutdown(c->listener, SHUT_RDWR) == 0);
	CHECK(pthread_join(c->server, NULL) == 0);
	close(c->listener);
	close(c->fd);
	munmap(c->slots, c->count * sizeof(struct quell_slot));
}

/* What a writer does around its writes: makes the level's number odd, writes, makes it even again. */
static inline void level_begin(struct quell_slot *slot, enum quell_level level)
{
	__atomic_store_n(&slot->level_seq[level], slot->level_seq[level] + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

static inline void level_end(struct quell_slot *slot, enum quell_level level)
{
	__atomic_store_n(&slot->level_seq[level], slot->level_seq[level] + 1, __ATOMIC_RELEASE);
}

#define PUT(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)

static inline void give_slot(struct quell_slot *slot, unsigned int tid, unsigned int pid_namespace)
{
	level_begin(slot, QUELL_LEVEL_TASK);
	PUT(slot->tid, tid);
	PUT(slot->pid_namespace, pid_namespace);
	level_end(slot, QUELL_LEVEL_TASK);
}

#endif
