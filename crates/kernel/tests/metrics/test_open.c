/* Opening a container, finding one's own slot in it, and refusing what is not a container. Needs no BPF, and no privilege except
 * for the tests that it reports as skipped. */
#define _GNU_SOURCE
#include <grp.h>
#include <linux/bpf.h>
#include <sched.h>
#include <sys/wait.h>

#include "container.h"
#include "quell_metrics_read.h"

#define OTHER_NAMESPACE 4u
#define NOBODY 65534

static unsigned int own_tid(void)
{
	return (unsigned int)syscall(SYS_gettid);
}

static int open_code(void)
{
	struct quell_metrics m;
	int code = quell_metrics_open(&m);

	if (!code)
		quell_metrics_close(&m);
	return code;
}

static int descriptors(void)
{
	int fd, open = 0;

	for (fd = 0; fd < 256; fd++)
		open += fcntl(fd, F_GETFD) >= 0;
	return open;
}

/* Waits for the server, whose end of the connection is in the same descriptor table. */
static int descriptors_become(int expected)
{
	int tries;

	for (tries = 0; tries < 5000 && descriptors() != expected; tries++)
		usleep(1000);
	return descriptors() == expected;
}

static void expect_end_of(pid_t child)
{
	int status;

	CHECK(child > 0);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void reads_what_was_written(void)
{
	struct container c;
	struct quell_metrics m;
	struct quell_reading reading;
	unsigned long long some[QUELL_KINDS];
	const struct quell_slot *mine;
	int kind, before;

	container_make(&c, 100);
	container_serve(&c);
	for (kind = 0; kind < QUELL_KINDS; kind++) {
		c.slots[99].ns[kind] = 1000u + (unsigned int)kind;
		c.slots[99].count[kind] = 10u + (unsigned int)kind;
	}
	c.slots[99].start_ns = 1;
	c.slots[99].on_cpu_ns = 2;
	c.slots[99].on_since_ns = 3;
	c.slots[99].run_delay_ns = 4;
	give_slot(&c.slots[99], own_tid(), container_namespace());

	before = descriptors();
	CHECK(quell_metrics_open(&m) == 0);
	CHECK(descriptors_become(before));
	CHECK(m.count == 100);
	mine = quell_metrics_thread(&m);
	CHECK(mine == &m.slots[99] && mine != &c.slots[99]);
	CHECK(quell_metrics_find(&m, own_tid()) == mine);
	CHECK(quell_metrics_read(mine, &reading) == 0);
	CHECK(reading.tid == own_tid() && reading.start_ns == 1 && reading.on_cpu_ns == 2);
	CHECK(reading.on_since_ns == 3 && reading.run_delay_ns == 4);
	CHECK(quell_metrics_read_some(mine, QUELL_EVERY_KIND, some) == 0);
	for (kind = 0; kind < QUELL_KINDS; kind++) {
		CHECK(reading.ns[kind] == 1000u + (unsigned int)kind && some[kind] == reading.ns[kind]);
		CHECK(reading.count[kind] == 10u + (unsigned int)kind);
	}
	memset(some, 0, sizeof(some));
	CHECK(quell_metrics_read_some(mine, QUELL_ONLY(QUELL_TASK) | QUELL_ONLY(QUELL_TICK), some) == 0);
	CHECK(some[0] == 1000 + QUELL_TICK && some[1] == 1000 + QUELL_TASK && some[2] == 0);

	/* A writer that never returns, at each level in turn, is distinguished from one that has finished. */
	for (kind = 0; kind < QUELL_LEVELS; kind++) {
		level_begin(&c.slots[99], (enum quell_level)kind);
		CHECK(quell_metrics_read(mine, &reading) == -EAGAIN);
		CHECK(quell_metrics_read_some(mine, QUELL_EVERY_KIND, some) == -EAGAIN);
		level_end(&c.slots[99], (enum quell_level)kind);
		CHECK(quell_metrics_read(mine, &reading) == 0);
	}
	give_slot(&c.slots[99], 0, 0);
	CHECK(quell_metrics_read(mine, &reading) == -ESRCH && reading.tid == 0);

	quell_metrics_close(&m);
	CHECK(quell_metrics_thread(&m) == NULL && quell_metrics_find(&m, own_tid()) == NULL);
	CHECK(descriptors_become(before));
	container_end(&c);
}

static void opened_anew_is_found_anew(void)
{
	struct container c;
	struct quell_metrics m;

	container_make(&c, 8);
	container_serve(&c);
	give_slot(&c.slots[3], own_tid(), container_namespace());
	CHECK(quell_metrics_open(&m) == 0);
	CHECK(quell_metrics_thread(&m) == &m.slots[3]);
	quell_metrics_close(&m);
	give_slot(&c.slots[3], 0, 0);
	give_slot(&c.slots[4], own_tid(), container_namespace());
	CHECK(quell_metrics_open(&m) == 0);
	CHECK(quell_metrics_thread(&m) == &m.slots[4]);
	quell_metrics_close(&m);
	container_end(&c);
}

static void another_namespace_is_not_ours(void)
{
	struct container c;
	struct quell_metrics m;

	container_make(&c, 8);
	container_serve(&c);
	give_slot(&c.slots[1], own_tid(), OTHER_NAMESPACE);
	CHECK(quell_metrics_open(&m) == 0);
	CHECK(quell_metrics_thread(&m) == NULL);
	give_slot(&c.slots[2], own_tid(), container_namespace());
	CHECK(quell_metrics_thread(&m) == NULL); /* cached: a slot is given at birth or never */
	CHECK(quell_metrics_find(&m, own_tid()) == &m.slots[2]);
	quell_metrics_close(&m);
	container_end(&c);
}

/* The first process of a PID namespace has thread id 1 there, whatever its id is outside. */
static void a_real_namespace(void)
{
	struct container c;
	struct quell_metrics m;
	pid_t outer;

	container_make(&c, 8);
	container_serve(&c);
	give_slot(&c.slots[1], 1, container_namespace());
	CHECK(quell_metrics_open(&m) == 0);
	outer = fork();
	if (outer == 0) {
		pid_t inner;

		if (unshare(CLONE_NEWPID)) {
			fprintf(stderr, "skipped: a PID namespace of its own: %s\n", strerror(errno));
			_exit(0);
		}
		inner = fork();
		if (inner == 0) {
			CHECK(own_tid() == 1);
			CHECK(quell_metrics_thread(&m) == NULL);
			give_slot(&c.slots[2], 1, container_namespace());
			CHECK(quell_metrics_find(&m, 1) == &m.slots[2]);
			_exit(0);
		}
		expect_end_of(inner);
		_exit(0);
	}
	expect_end_of(outer);
	quell_metrics_close(&m);
	container_end(&c);
}

struct seeker {
	const struct quell_metrics *metrics;
	struct quell_slot *slot; /* given to the thread before it looks; NULL: none */
	const struct quell_slot *found;
};

static void *seek(void *argument)
{
	struct seeker *seeker = (struct seeker *)argument;

	if (seeker->slot)
		give_slot(seeker->slot, own_tid(), container_namespace());
	seeker->found = quell_metrics_thread(seeker->metrics);
	CHECK(quell_metrics_thread(seeker->metrics) == seeker->found);
	return NULL;
}

static const struct quell_slot *found_by_a_thread(const struct quell_metrics *m, struct quell_slot *slot)
{
	struct seeker seeker = { m, slot, NULL };
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, seek, &seeker) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	return seeker.found;
}

/* fork() by the C library, and by the bare system call, which no library notices. */
static pid_t forked(int bare)
{
	return bare ? (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) : fork();
}

static void a_child_has_not_its_parents_slot(int bare)
{
	struct container c;
	struct quell_metrics m;
	pid_t child;

	container_make(&c, 8);
	container_serve(&c);
	give_slot(&c.slots[1], own_tid(), container_namespace());
	CHECK(quell_metrics_open(&m) == 0);
	CHECK(quell_metrics_thread(&m) == &m.slots[1]);
	CHECK(found_by_a_thread(&m, &c.slots[2]) == &m.slots[2]);
	CHECK(found_by_a_thread(&m, NULL) == NULL);

	child = forked(bare);
	if (child == 0) { /* without a slot */
		CHECK(quell_metrics_thread(&m) == NULL);
		CHECK(quell_metrics_thread(&m) == NULL);
		_exit(0);
	}
	expect_end_of(child);
	child = forked(bare);
	if (child == 0) { /* with its own, and a child of its own */
		give_slot(&c.slots[5], own_tid(), container_namespace());
		CHECK(quell_metrics_thread(&m) == &m.slots[5]);
		CHECK(quell_metrics_thread(&m) == &m.slots[5]);
		child = forked(bare);
		if (child == 0) {
			CHECK(quell_metrics_thread(&m) == NULL);
			_exit(0);
		}
		expect_end_of(child);
		CHECK(quell_metrics_thread(&m) == &m.slots[5]);
		_exit(0);
	}
	expect_end_of(child);
	CHECK(quell_metrics_thread(&m) == &m.slots[1]);
	quell_metrics_close(&m);
	container_end(&c);
}

static void a_child_whose_thread_looks_first(void)
{
	struct container c;
	struct quell_metrics m;
	pid_t child;

	container_make(&c, 8);
	container_serve(&c);
	give_slot(&c.slots[1], own_tid(), container_namespace());
	CHECK(quell_metrics_open(&m) == 0);
	CHECK(quell_metrics_thread(&m) == &m.slots[1]);
	child = fork();
	if (child == 0) {
		CHECK(found_by_a_thread(&m, NULL) == NULL);
		CHECK(quell_metrics_thread(&m) == NULL);
		_exit(0);
	}
	expect_end_of(child);
	quell_metrics_close(&m);
	container_end(&c);
}

static void what_is_no_container_is_refused(void)
{
	struct container c;
	int other;

	container_make(&c, 64);
	container_serve(&c);
	CHECK(open_code() == 0);
	c.header->magic++;
	CHECK(open_code() == -EBADMSG);
	c.header->magic--;
	c.header->version++;
	CHECK(open_code() == -EPROTONOSUPPORT);
	c.header->version--;
	c.header->slot_size = 128;
	CHECK(open_code() == -EBADMSG);
	c.header->slot_size = 256;
	c.header->slots = 0;
	CHECK(open_code() == -EBADMSG);
	c.header->slots = 65; /* more than the map has */
	CHECK(open_code() == -EBADMSG);
	c.header->slots = ~0u;
	CHECK(open_code() == -EBADMSG);
	c.header->slots = 64;
	CHECK(open_code() == 0);

	__atomic_store_n(&c.sent, -1, __ATOMIC_RELEASE);
	CHECK(open_code() == -EPROTO);
	__atomic_store_n(&c.sent, REFUSE, __ATOMIC_RELEASE);
	CHECK(open_code() == -EPERM);
	other = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK(ftruncate(other, 64 * 256) == 0);
	CHECK(pwrite(other, c.slots, 64 * 256, 0) == 64 * 256);
	__atomic_store_n(&c.sent, other, __ATOMIC_RELEASE);
	CHECK(open_code() == -EBADMSG); /* another process could truncate it under the reader */
	CHECK(fcntl(other, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	CHECK(open_code() == 0);
	close(other);
	other = memfd_create("empty", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK(fcntl(other, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	__atomic_store_n(&c.sent, other, __ATOMIC_RELEASE);
	CHECK(open_code() == -EBADMSG);
	close(other);
	other = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	__atomic_store_n(&c.sent, other, __ATOMIC_RELEASE);
	CHECK(open_code() == -EBADMSG);
	close(other);
	container_end(&c);

	CHECK(open_code() == -ECONNREFUSED);
	CHECK(strstr(quell_metrics_reason(-ECONNREFUSED), "quell record") != NULL);
	CHECK(setenv("QUELL_METRICS", "a-name-that-is-longer-than-a-socket-of-the-abstract-namespace-may-have-"
				      "which-is-a-hundred-and-seven-bytes-without-the-first", 1) == 0);
	CHECK(open_code() == -ENAMETOOLONG);
}

static void drop_privileges(void)
{
	CHECK(setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
}

/* Every reader trusts a server that runs as root; any other user's server is trusted only by the same user. */
static void another_user_is_refused(void)
{
	struct container c;
	pid_t child;
	int ready[2], sock;

	if (geteuid() != 0) {
		fprintf(stderr, "skipped: another user's container: only root can make one\n");
		return;
	}
	container_make(&c, 8);
	container_serve(&c);
	child = fork();
	if (child == 0) {
		drop_privileges();
		CHECK(open_code() == 0);
		_exit(0);
	}
	expect_end_of(child);
	container_end(&c);

	CHECK(pipe(ready) == 0);
	child = fork();
	if (child == 0) {
		drop_privileges();
		container_make(&c, 8);
		container_listen(&c);
		CHECK(write(ready[1], c.name, sizeof(c.name)) == sizeof(c.name));
		sock = accept(c.listener, NULL, NULL);
		CHECK(sock >= 0 && read(sock, c.name, 1) <= 0); /* until the reader closes the connection */
		_exit(0);
	}
	CHECK(read(ready[0], c.name, sizeof(c.name)) == sizeof(c.name));
	CHECK(setenv("QUELL_METRICS", c.name, 1) == 0);
	CHECK(open_code() == -EACCES);
	expect_end_of(child);
}

static long bpf(int command, union bpf_attr *attributes)
{
	return syscall(SYS_bpf, command, attributes, sizeof(*attributes));
}

/* A frozen BPF map, as quell holds it. */
static void a_real_map(void)
{
	struct container c;
	struct quell_metrics m;
	union bpf_attr create, update, freeze;
	unsigned int number;

	memset(&create, 0, sizeof(create));
	create.map_type = BPF_MAP_TYPE_ARRAY;
	create.key_size = sizeof(number);
	create.value_size = sizeof(struct quell_slot);
	create.max_entries = 100;
	create.map_flags = BPF_F_MMAPABLE;
	container_make(&c, 100);
	c.sent = (int)bpf(BPF_MAP_CREATE, &create);
	if (c.sent < 0) {
		fprintf(stderr, "skipped: a real map: %s\n", strerror(errno));
		return;
	}
	give_slot(&c.slots[99], own_tid(), container_namespace());
	for (number = 0; number < 100; number++) {
		memset(&update, 0, sizeof(update));
		update.map_fd = (unsigned int)c.sent;
		update.key = (unsigned long long)(size_t)&number;
		update.value = (unsigned long long)(size_t)&c.slots[number];
		CHECK(bpf(BPF_MAP_UPDATE_ELEM, &update) == 0);
	}
	memset(&freeze, 0, sizeof(freeze));
	freeze.map_fd = (unsigned int)c.sent;
	CHECK(bpf(BPF_MAP_FREEZE, &freeze) == 0);
	container_serve(&c);
	CHECK(quell_metrics_open(&m) == 0);
	close(c.sent);
	CHECK(quell_metrics_thread(&m) == &m.slots[99]);
	CHECK(mprotect((void *)(size_t)m.slots, 4096, PROT_READ | PROT_WRITE) != 0);
	quell_metrics_close(&m);
	container_end(&c);
}

int main(void)
{
	reads_what_was_written();
	opened_anew_is_found_anew();
	another_namespace_is_not_ours();
	a_real_namespace();
	a_child_has_not_its_parents_slot(0);
	a_child_has_not_its_parents_slot(1);
	a_child_whose_thread_looks_first();
	what_is_no_container_is_refused();
	another_user_is_refused();
	a_real_map();
	return 0;
}
