/* Loaded into quell: makes one call of a kind fail, wait or be the last one. Also counts the calls of each kind.
 *
 * QUELL_FAULT is KIND:NUMBER:ACTION, where NUMBER counts the process's calls of that kind from 1, and ACTION is `kill`, `wait`, `short`,
 * `again` (the call is made twice, as a file system in a network does that lost the first answer) or an error number; `+` after it means this call and all later ones. QUELL_FAULT_LOG is a file that gets the calls of each kind and the fault.
 *
 * Parts of quell call the kernel without the C library. With QUELL_FAULT_TRAP set, a seccomp filter hands these calls to a signal handler. It
 * would end programs that quell starts, so it is not for verbs that start any. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define WAIT_NS 3000000L
#define LOG_FD 700

enum kind { ALLOC, OPEN, READ, WRITE, SYNC, RENAME, MKDIR, UNLINK, TRUNCATE, MAP, THREAD, FORK, CLOCK, BPF, KINDS };
static const char *const names[KINDS] = { "alloc", "open", "read", "write", "sync", "rename", "mkdir",
					  "unlink", "truncate", "map", "thread", "fork", "clock", "bpf" };

enum { NO_FAULT = 0, SHORT = -1, AGAIN = -2 };

static unsigned long calls[KINDS];
static int active, is_logged, chosen = -1, action, onwards;
static unsigned long number;

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static void say(const char *format, ...)
{
	char line[200];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	if (is_logged && length > 0)
		syscall(SYS_write, LOG_FD, line, (size_t)length);
}

static int is_pipe(int fd)
{
	struct stat facts;

	return fstat(fd, &facts) == 0 && S_ISFIFO(facts.st_mode);
}

/* The fault for this call: an error number, SHORT, AGAIN, or none. */
static int fault(enum kind kind, int fd)
{
	unsigned long now;

	if (!active)
		return NO_FAULT;
	now = __atomic_add_fetch(&calls[kind], 1, __ATOMIC_RELAXED);
	if ((int)kind != chosen || now < number || (now > number && !onwards))
		return NO_FAULT;
	/* A full disk is not the terminal's. */
	if (kind == WRITE && onwards && fd <= STDERR_FILENO)
		return NO_FAULT;
	/* No disk is behind a pipe: the kernel reports no such error, and Rust's library expects none. */
	if (kind == READ && action > 0 && action < 1000 && action != EINTR && is_pipe(fd))
		return NO_FAULT;
	if (now == number)
		say("fault %s %lu fd %d\n", names[kind], now, fd);
	if (action == SIGKILL + 1000) {
		syscall(SYS_kill, getpid(), SIGKILL);
	} else if (action == 2000) {
		const struct timespec pause = { 0, WAIT_NS };

		syscall(SYS_nanosleep, &pause, NULL);
		return NO_FAULT;
	}
	return action;
}

/* A call of the kernel that the filter lets through, by the address at which it returns. */
long raw_call(long call, long a, long b, long c, long d, long e, long f);
#ifdef __x86_64__
extern const char raw_call_end[];
__asm__(".text\n.type raw_call, @function\nraw_call:\n"
	"mov %rdi, %rax\nmov %rsi, %rdi\nmov %rdx, %rsi\nmov %rcx, %rdx\nmov %r8, %r10\nmov %r9, %r8\nmov 8(%rsp), %r9\n"
	"syscall\nraw_call_end:\nret\n.size raw_call, . - raw_call\n");

static const struct {
	long call;
	enum kind kind;
} trapped[] = { { SYS_rename, RENAME },	  { SYS_renameat, RENAME },   { SYS_renameat2, RENAME },   { SYS_link, RENAME },
		{ SYS_linkat, RENAME },	  { SYS_mkdir, MKDIR },	      { SYS_mkdirat, MKDIR },	   { SYS_unlink, UNLINK },
		{ SYS_unlinkat, UNLINK }, { SYS_rmdir, UNLINK },      { SYS_ftruncate, TRUNCATE }, { SYS_fsync, SYNC },
		{ SYS_fdatasync, SYNC },  { SYS_fallocate, TRUNCATE } };
#define TRAPPED (sizeof(trapped) / sizeof(*trapped))

static void on_trap(int signal, siginfo_t *facts, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	int error = 0;
	size_t at;

	(void)signal;
	for (at = 0; at < TRAPPED; at++)
		if (trapped[at].call == facts->si_syscall)
			error = fault(trapped[at].kind, -1);
	for (at = error == AGAIN ? 2 : error <= 0; at > 0; at--)
		error = -(int)raw_call(facts->si_syscall, registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
				       registers[REG_R10], registers[REG_R8], registers[REG_R9]);
	registers[REG_RAX] = -error;
}

static void trap(void)
{
	const unsigned long long end = (unsigned long long)(size_t)raw_call_end;
	struct sigaction action_of_trap = { 0 };
	struct sock_filter filter[8 + TRAPPED];
	struct sock_fprog program = { 0, filter };
	unsigned short n = 0;
	size_t at;

	filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer));
	filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)end, 0, 2);
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4);
	filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(end >> 32), TRAPPED + 1, 0);
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (at = 0; at < TRAPPED; at++)
		filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)trapped[at].call,
							   (unsigned char)(TRAPPED - at), 0);
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
	program.len = n;
	action_of_trap.sa_sigaction = on_trap;
	action_of_trap.sa_flags = SA_SIGINFO | SA_NODEFER;
	sigaction(SIGSYS, &action_of_trap, NULL);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
#else
long raw_call(long call, long a, long b, long c, long d, long e, long f)
{
	long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	long result = next(call, a, b, c, d, e, f);

	return result < 0 ? -errno : result;
}

static void trap(void)
{
}
#endif

/* As a function of the C library. */
static int through(enum kind kind, long call, long a, long b, long c, long d, long e)
{
	int error = fault(kind, -1);
	long result;

	if (error == AGAIN)
		raw_call(call, a, b, c, d, e, 0);
	result = error > 0 ? -error : raw_call(call, a, b, c, d, e, 0);

	if (result >= 0)
		return (int)result;
	errno = (int)-result;
	return -1;
}

static void begin(void) __attribute__((constructor));
static void begin(void)
{
	const char *plan = getenv("QUELL_FAULT"), *log = getenv("QUELL_FAULT_LOG");
	char kind[16], what[16];
	int at, fd;

	if (strcmp(program_invocation_short_name, "quell"))
		return;
	if (log && (fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) >= 0) {
		is_logged = syscall(SYS_dup3, fd, LOG_FD, O_CLOEXEC) >= 0;
		syscall(SYS_close, fd);
	}
	if (plan && sscanf(plan, "%15[a-z]:%lu:%15s", kind, &number, what) == 3) {
		for (at = 0; at < KINDS; at++)
			if (!strcmp(kind, names[at]))
				chosen = at;
		onwards = strchr(what, '+') != NULL;
		action = !strncmp(what, "kill", 4)  ? SIGKILL + 1000 :
			 !strncmp(what, "wait", 4)  ? 2000 :
			 !strncmp(what, "short", 5) ? SHORT :
			 !strncmp(what, "again", 5) ? AGAIN :
						      atoi(what);
	}
	if (getenv("QUELL_FAULT_TRAP"))
		trap();
	active = 1;
}

static void end(void) __attribute__((destructor));
static void end(void)
{
	int at;

	active = 0;
	for (at = 0; at < KINDS; at++)
		say("calls %s %lu\n", names[at], calls[at]);
}

#define NEXT(result, name, ...)                            \
	static result (*next)(__VA_ARGS__);                \
	if (!next)                                         \
	next = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

void *malloc(size_t size)
{
	if (fault(ALLOC, -1) > 0) {
		errno = ENOMEM;
		return NULL;
	}
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	if (fault(ALLOC, -1) > 0) {
		errno = ENOMEM;
		return NULL;
	}
	return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	if (fault(ALLOC, -1) > 0) {
		errno = ENOMEM;
		return NULL;
	}
	return __libc_realloc(old, size);
}

int posix_memalign(void **result, size_t alignment, size_t size)
{
	if (fault(ALLOC, -1) > 0)
		return ENOMEM;
	*result = __libc_memalign(alignment, size);
	return *result ? 0 : ENOMEM;
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return fault(ALLOC, -1) > 0 ? NULL : __libc_memalign(alignment, size);
}

#define FAIL(kind, fd, failed)                     \
	do {                                       \
		int error = fault(kind, fd);       \
		if (error > 0) {                   \
			errno = error;             \
			return failed;             \
		}                                  \
	} while (0)

#define MODE(flags, last)                               \
	mode_t mode = 0;                                \
	if ((flags) & (O_CREAT | __O_TMPFILE)) {        \
		va_list rest;                           \
		va_start(rest, last);                   \
		mode = va_arg(rest, mode_t);            \
		va_end(rest);                           \
	}

int open(const char *path, int flags, ...)
{
	MODE(flags, flags)
	FAIL(OPEN, -1, -1);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	MODE(flags, flags)
	FAIL(OPEN, -1, -1);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
	MODE(flags, flags)
	FAIL(OPEN, -1, -1);
	return (int)syscall(SYS_openat, folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...)
{
	MODE(flags, flags)
	FAIL(OPEN, -1, -1);
	return (int)syscall(SYS_openat, folder, path, flags | O_LARGEFILE, mode);
}

ssize_t read(int fd, void *to, size_t size)
{
	FAIL(READ, fd, -1);
	return syscall(SYS_read, fd, to, size);
}

ssize_t pread64(int fd, void *to, size_t size, off64_t at)
{
	FAIL(READ, fd, -1);
	return syscall(SYS_pread64, fd, to, size, at);
}

ssize_t write(int fd, const void *from, size_t size)
{
	int error = fault(WRITE, fd);

	if (error > 0) {
		errno = error;
		return -1;
	}
	return syscall(SYS_write, fd, from, error == SHORT && size > 1 ? size / 2 : size);
}

ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at)
{
	FAIL(WRITE, fd, -1);
	return syscall(SYS_pwrite64, fd, from, size, at);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	FAIL(WRITE, fd, -1);
	return syscall(SYS_writev, fd, parts, count);
}

int fsync(int fd)
{
	return through(SYNC, SYS_fsync, fd, 0, 0, 0, 0);
}

int fdatasync(int fd)
{
	return through(SYNC, SYS_fdatasync, fd, 0, 0, 0, 0);
}

int rename(const char *from, const char *to)
{
	return through(RENAME, SYS_renameat2, AT_FDCWD, (long)from, AT_FDCWD, (long)to, 0);
}

int renameat2(int one, const char *from, int other, const char *to, unsigned flags)
{
	return through(RENAME, SYS_renameat2, one, (long)from, other, (long)to, flags);
}

int link(const char *from, const char *to)
{
	return through(RENAME, SYS_linkat, AT_FDCWD, (long)from, AT_FDCWD, (long)to, 0);
}

int mkdir(const char *path, mode_t mode)
{
	return through(MKDIR, SYS_mkdirat, AT_FDCWD, (long)path, mode, 0, 0);
}

int unlink(const char *path)
{
	return through(UNLINK, SYS_unlinkat, AT_FDCWD, (long)path, 0, 0, 0);
}

int unlinkat(int folder, const char *path, int flags)
{
	return through(UNLINK, SYS_unlinkat, folder, (long)path, flags, 0, 0);
}

int rmdir(const char *path)
{
	return through(UNLINK, SYS_unlinkat, AT_FDCWD, (long)path, AT_REMOVEDIR, 0, 0);
}

int ftruncate64(int fd, off64_t length)
{
	return through(TRUNCATE, SYS_ftruncate, fd, length, 0, 0, 0);
}

/* Rust's own runtime aborts where a thread gets no signal stack, so small maps without a file do not fail. */
#define FAIL_MAP(size, fd)                            \
	do {                                          \
		if ((fd) >= 0 || (size) >= 1 << 20)   \
			FAIL(MAP, fd, MAP_FAILED);    \
	} while (0)

void *mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t offset)
{
	FAIL_MAP(size, fd);
	return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	FAIL_MAP(size, fd);
	return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *), void *argument)
{
	int error = fault(THREAD, -1);
	NEXT(int, "pthread_create", pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	return error > 0 ? error : next(thread, attributes, work, argument);
}

pid_t fork(void)
{
	FAIL(FORK, -1, -1);
	NEXT(pid_t, "fork", void);
	return next();
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
		 char *const *words, char *const *environment)
{
	int error = fault(FORK, -1);
	NEXT(int, "posix_spawnp", pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
	     char *const *, char *const *);

	return error > 0 ? error : next(pid, file, actions, attributes, words, environment);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
	fault(CLOCK, -1);
	return (int)syscall(SYS_clock_gettime, clock, time);
}

long syscall(long call, ...)
{
	NEXT(long, "syscall", long, ...);
	va_list rest;
	long a[6];
	int at;

	va_start(rest, call);
	for (at = 0; at < 6; at++)
		a[at] = va_arg(rest, long);
	va_end(rest);
	if (call == SYS_bpf)
		FAIL(BPF, -1, -1);
	return next(call, a[0], a[1], a[2], a[3], a[4], a[5]);
}
