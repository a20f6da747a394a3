#define _GNU_SOURCE
#include "node.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "../trace_log.h"
#include "quell_metrics_open.h"

#define TIMEOUT_S 10
#define LOOK_NS 20000000L
/* The recorder holds the lock at this descriptor; all later ones are closed, or the launcher would wait for its pipes to be closed. */
#define LOCK_FD 3

extern char **environ;

/* A name in the abstract namespace serves as a lock: one process in this host's network namespace has it, and loses it when it ends, for
 * whatever reason. It needs no locks of a shared file system. Returns -1 if another process has it. */
static int take_lock(void)
{
	const char *name = getenv(QUELL_METRICS_VARIABLE);
	struct sockaddr_un address;
	int length, lock;

	memset(&address, 0, sizeof(address));
	address.sun_family = AF_UNIX;
	length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s.node", name);
	if (length < 0 || (size_t)length >= sizeof(address.sun_path) - 1)
		return -1;
	lock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (lock >= 0 && bind(lock, (const struct sockaddr *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length))) {
		close(lock);
		return -1;
	}
	return lock;
}

/* This environment without LD_PRELOAD: the recorder is not a rank. */
static char **plain_environment(void)
{
	size_t count = 0, kept = 0, i;
	char **plain;

	while (environ[count])
		count++;
	plain = malloc((count + 1) * sizeof(*plain));
	if (!plain)
		return NULL;
	for (i = 0; i < count; i++)
		if (strncmp(environ[i], "LD_PRELOAD=", strlen("LD_PRELOAD=")))
			plain[kept++] = environ[i];
	plain[kept] = NULL;
	return plain;
}

/* Runs between fork and exec: only async-signal-safe functions are permitted. */
static void become_recorder(int lock, char *const *words, char *const *environment)
{
	sigset_t none;
	long most = sysconf(_SC_OPEN_MAX);
	int null = open("/dev/null", O_RDWR), fd;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (fd = 0; fd < LOCK_FD; fd++)
		dup2(null, fd);
	if (lock == LOCK_FD)
		fcntl(lock, F_SETFD, 0);
	else
		dup2(lock, LOCK_FD);
#ifdef SYS_close_range
	if (syscall(SYS_close_range, LOCK_FD + 1, ~0U, 0))
#endif
		for (fd = LOCK_FD + 1; fd < (most > 0 && most < 65536 ? (int)most : 65536); fd++)
			close(fd);
	if (chdir("/"))
		_exit(126);
	execve(words[0], words, environment);
	_exit(127);
}

/* Starts the recorder in a session of its own and as an orphan, so that it may outlive this process. */
static void start(int lock, const char *program, const char *folder)
{
	char *words[] = { (char *)(size_t)program, (char *)(size_t)"trace-node", (char *)(size_t)folder, NULL };
	char **environment = plain_environment();
	pid_t child = environment ? fork() : -1;

	if (child == 0) {
		setsid();
		if (fork() == 0)
			become_recorder(lock, words, environment);
		_exit(0);
	}
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	free(environment);
}

/* Whether a recorder serves the container. Connecting also makes it follow this process. */
static int answers(void)
{
	int sock = quell_connect();

	if (sock >= 0)
		close(sock);
	return sock >= 0;
}

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (long long)now.tv_sec * 1000000000LL + now.tv_nsec;
}

void quell_trace_node(void)
{
	const struct timespec pause = { 0, LOOK_NS };
	const long long end = now_ns() + TIMEOUT_S * 1000000000LL;
	const char *program = getenv(QUELL_TRACE_NODE_VARIABLE), *folder = getenv(QUELL_TRACE_FOLDER_VARIABLE);
	const char *name = getenv(QUELL_METRICS_VARIABLE);
	int tried = 0, lock;

	if (!program || !*program || !folder || !*folder || !name || !*name)
		return;
	while (!answers() && now_ns() < end) {
		lock = take_lock();
		if (lock >= 0) {
			/* The lock is free again: the process that had it, this one or another, failed. */
			if (!tried)
				start(lock, program, folder);
			close(lock);
			if (tried)
				return;
		}
		tried = 1;
		nanosleep(&pause, NULL);
	}
}
