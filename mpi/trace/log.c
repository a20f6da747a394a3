/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A thread's log. Records go to the stage, a part of the file that is mapped, so what was written survives if the program is killed. A full
 * stage is appended to the file by one system call, which takes a small part of the time that a fault for each page of a mapped file does,
 * and on a full disk fails instead of ending the program with a SIGBUS. There are system calls only then, and at a new call site.
 */
#include "trace.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "node.h"

#define MAPPED (QUELL_TRACE_HEAD + QUELL_TRACE_STAGE)
#define LIMIT (4ull << 30)
/* Room for any record. */
#define LARGEST 4096u

__thread struct thread mine;
bool tracing, threaded;

static struct log *logs;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static char folder[PATH_MAX];
static uint64_t limit = LIMIT;
static uint32_t threads;
static struct quell_metrics metrics;
static int metrics_code;
static uint64_t (*injected_ns)(void);

static void thread_ends(void *log);

/* A forked child shares the mapped logs, and is not a rank. */
static void child_begins(void)
{
	static const pthread_mutex_t open = PTHREAD_MUTEX_INITIALIZER;
	tracing = false;
	mine.log = NULL;
	guard = open;
}

static void begin(void)
{
	const char *name = getenv(QUELL_TRACE_FOLDER_VARIABLE), *bytes = getenv(QUELL_TRACE_LIMIT_VARIABLE);
	/* Resolved now, because the program may change its working directory. */
	if (!name || !realpath(name, folder))
		folder[0] = 0;
	if (bytes && *bytes)
		limit = strtoull(bytes, NULL, 10);
	metrics_code = quell_metrics_open(&metrics);
	if (metrics_code) {
		/* On a host where quell itself does not run, one of the ranks must start its recorder. */
		quell_trace_node();
		metrics_code = quell_metrics_open(&metrics);
	}
	void *found = dlsym(RTLD_DEFAULT, "quell_injected_ns");
	memcpy(&injected_ns, &found, sizeof(found));
	pthread_key_create(&key, thread_ends);
	pthread_atfork(NULL, NULL, child_begins);
}

void read_line(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "re");
	if (!file || !fgets(text, (int)size, file))
		text[0] = 0;
	if (file)
		fclose(file);
	text[strcspn(text, "\n")] = 0;
}

/* ---- Files ---- */

/* Opened by name each time, because a program may close all descriptors that it does not know. */
static int open_again(const struct log *log, int flags)
{
	return open(log->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0644);
}

/* Whether disk space is reserved for the mapped part of the file; if not, errno says why. */
static bool reserve(int file)
{
	do
		errno = posix_fallocate(file, 0, MAPPED);
	while (errno == EINTR);
	return !errno;
}

/* Appends what is in the stage to the file. If the program is killed before this is done, all of it is still in the stage. */
static bool append(struct log *log)
{
	uint64_t appended = log->head->appended, bytes = log->head->bytes - appended, done = 0;
	int saved = errno, file = bytes ? open_again(log, 0) : -1;
	while (file >= 0 && done < bytes) {
		ssize_t written = pwrite(file, log->stage + done, bytes - done, (off_t)(MAPPED + appended + done));
		if (written > 0)
			done += (uint64_t)written;
		else if (errno != EINTR)
			break;
	}
	/* Some network file systems report only here that the disk is full. */
	bool is_kept = file < 0 || !close(file) || errno == EINTR;
	errno = saved;
	if (done < bytes || !is_kept)
		return false;
	__atomic_store_n(&log->head->appended, appended + bytes, __ATOMIC_RELEASE);
	/* The stage is overwritten only after that. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return true;
}

/* Makes room in the stage. */
bool log_make_room(struct log *log)
{
	uint64_t end = limit & ~4095ull;
	if (log->full)
		return false;
	log->full = true;
	if (log->head->bytes + LARGEST > end || !append(log))
		return false;
	uint64_t room = end - log->head->bytes;
	log->next = log->stage;
	log->limit = log->stage + (room < QUELL_TRACE_STAGE ? room : QUELL_TRACE_STAGE);
	log->full = false;
	return true;
}

static void describe(struct quell_trace_head *head)
{
	/* Larger than any MPI's maximum, because this may be another MPI than that of the header. */
	char library[16384] = "";
	int length;
	gethostname(head->host, sizeof(head->host) - 1);
	head->host[sizeof(head->host) - 1] = 0;
	read_line("/proc/sys/kernel/random/boot_id", head->boot, sizeof(head->boot));
	if (readlink("/proc/self/exe", head->program, sizeof(head->program) - 1) < 0)
		head->program[0] = 0;
	if (real[CALL_Get_library_version])
		((int (*)(char *, int *))real[CALL_Get_library_version])(library, &length);
	library[strcspn(library, "\n")] = 0;
	snprintf(head->library, sizeof(head->library), "%.255s", library);
}

static struct log *create(void)
{
	char host[256] = "";
	pthread_once(&once, begin);
	if (!folder[0])
		return NULL;
	gethostname(host, sizeof(host) - 1);
	struct log *log = calloc(1, sizeof(*log) + PATH_MAX + 300);
	if (!log)
		return NULL;
	snprintf(log->path, PATH_MAX + 300, "%s/%s.%d.%ld.log", folder, host, (int)getpid(), syscall(SYS_gettid));
	int saved = errno, file = open_again(log, O_CREAT | O_EXCL);
	void *head = MAP_FAILED;
	if (file >= 0 && reserve(file))
		head = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	const char *reason = head == MAP_FAILED ? strerror(errno) : "";
	if (file >= 0)
		close(file);
	errno = saved;
	if (head == MAP_FAILED) {
		fprintf(stderr, "quell trace: %s: %s; this thread is not traced\n", log->path, reason);
		free(log);
		return NULL;
	}
	log->head = head;
	log->stage = (char *)head + QUELL_TRACE_HEAD;
	memcpy(log->head->magic, QUELL_TRACE_MAGIC, sizeof(log->head->magic));
	log->head->version = QUELL_TRACE_VERSION;
	log->head->pid = (uint32_t)getpid();
	log->head->tid = (uint32_t)syscall(SYS_gettid);
	log->head->begin_ns = now_ns();
	describe(log->head);
	return log;
}

/* ---- Noise ---- */

/* Reads the thread's counters. */
static void read_noise(const struct log *log, struct edge *edge)
{
	edge->from = edge->to = QUELL_KINDS;
	if (log->slot && !quell_metrics_read_some(log->slot, QUELL_EVERY_KIND, (unsigned long long *)edge->now_ns))
		edge->from = 0;
	if (injected_ns) {
		edge->now_ns[QUELL_TRACE_INJECTED] = injected_ns();
		edge->to = QUELL_TRACE_SOURCES;
	}
}

/* Excludes the noise so far from the run. */
void log_forget_noise(struct log *log)
{
	struct edge edge;
	read_noise(log, &edge);
	for (unsigned source = edge.from; source < edge.to; source++)
		log->from_ns[source] = edge.now_ns[source];
}

/* Opens the calling thread's log; NULL, without another attempt, if that fails. */
struct log *log_open(void)
{
	static __thread bool tried;
	if (tried)
		return NULL;
	tried = true;
	struct log *log = create();
	if (!log)
		return NULL;
	log->head->rank = (uint32_t)comm_world()->rank;
	log->head->ranks = (uint32_t)comm_world()->size;
	log->head->job = job;
	log->slot = metrics_code ? NULL : quell_metrics_thread(&metrics);
	const char *reason = log->slot ? "" : quell_metrics_reason(metrics_code ? metrics_code : -ESRCH);
	snprintf(log->head->reason, sizeof(log->head->reason), "%s", reason);
	log->head->sources = (log->slot ? QUELL_EVERY_KIND : 0) | (injected_ns ? 1u << QUELL_TRACE_INJECTED : 0);
	log_forget_noise(log);
	log->places = REGIONS_AT_FIRST;
	log->regions = calloc(log->places, sizeof(*log->regions));
	pthread_mutex_lock(&guard);
	log->head->thread = threads++;
	log->others = logs;
	logs = log;
	pthread_mutex_unlock(&guard);
	pthread_setspecific(key, log);
	mine.log = log;
	return log;
}

/* Records that this process uses another MPI. */
void log_wrong_mpi(void)
{
	struct log *log = create();
	if (!log)
		return;
	log->head->state = QUELL_TRACE_WRONG_MPI;
	munmap(log->head, MAPPED);
	free(log);
}

/* ---- The end ---- */

/* Appends the last records. Nothing is written afterwards. */
static void end(struct log *log)
{
	/* A forked child has the same memory, but is not a rank. */
	if (log->head->pid != (uint32_t)getpid())
		return;
	/* What cannot be appended is read from the stage. */
	append(log);
	log->next = log->limit = NULL;
	log->full = true;
}

static void thread_ends(void *given)
{
	struct log *log = given;
	mine.depth = 1;
	pthread_mutex_lock(&guard);
	log->head->end_ns = log->head->end_ns ? log->head->end_ns : now_ns();
	end(log);
	pthread_mutex_unlock(&guard);
}

void log_end_all(bool finalized)
{
	pthread_mutex_lock(&guard);
	for (struct log *log = logs; log; log = log->others) {
		if (log->head->pid != (uint32_t)getpid())
			break;
		if (finalized) {
			log->head->state = QUELL_TRACE_FINALIZED;
			log->head->end_ns = log->head->end_ns ? log->head->end_ns : now_ns();
		}
		/* Another thread may be writing its own; its last records stay in the stage. */
		if (log == mine.log)
			end(log);
	}
	pthread_mutex_unlock(&guard);
}

/* Calls a function for each log of the process. */
void log_each(void (*visit)(struct log *log))
{
	pthread_mutex_lock(&guard);
	for (struct log *log = logs; log; log = log->others)
		visit(log);
	pthread_mutex_unlock(&guard);
}

__attribute__((destructor)) static void process_ends(void)
{
	tracing = false;
	log_end_all(false);
}

/* ---- Enter and leave ---- */

/* What the thread's clock and counters say now. */
void log_read_edge(struct log *log, struct edge *edge)
{
	edge->log = log;
	edge->at_ns = now_ns();
	read_noise(log, edge);
}

/* Writes an enter, a leave, or an event of a team, with the noise counters that changed since the last one. */
void log_edge(struct log *log, enum quell_trace_kind kind, uint32_t region)
{
	/* Mostly nothing has struck since the last event. */
	if (log->slot && !injected_ns && quell_metrics_is_old(log->slot, log->seen)) {
		put(log, kind, 0, region, NULL, 0);
		return;
	}
	/* Before the counters are read: what is written then is new the next time. */
	struct quell_levels seen = { { ~0ull, ~0ull } };
	if (log->slot)
		seen = quell_levels_before(log->slot);
	struct edge edge;
	read_noise(log, &edge);
	if (!edge.from)
		log->seen = seen;
	log_put_edge(log, kind, region, &edge);
}

/* The same with counters that were read before. */
void log_put_edge(struct log *log, enum quell_trace_kind kind, uint32_t region, const struct edge *edge)
{
	uint64_t changed[QUELL_TRACE_SOURCES];
	unsigned mask = 0, words = 0;
	for (unsigned source = edge->from; source < edge->to; source++) {
		uint64_t noise_ns = edge->now_ns[source] - log->from_ns[source];
		if (noise_ns == log->noise_ns[source])
			continue;
		log->noise_ns[source] = changed[words++] = noise_ns;
		mask |= 1u << source;
	}
	put(log, kind, mask, region, changed, words);
}

/* ---- Regions ---- */

static struct region *place_of(struct log *log, uint32_t call, const void *site)
{
	uint64_t hash = ((uint64_t)(uintptr_t)site ^ (uint64_t)call << 40) * 0x9e3779b97f4a7c15u;
	uint32_t at = (uint32_t)(hash >> 32);
	for (;; at++) {
		struct region *region = &log->regions[at & (log->places - 1)];
		if (!region->number || (region->call == call && region->site == site))
			return region;
	}
}

/* The name of a region that is neither a call of MPI nor a phase. */
static const char *openmp_name(uint32_t call)
{
	return call == OMP_PARALLEL ? "omp parallel" : call == OMP_BARRIER ? "omp barrier" : "omp implicit barrier";
}

static void define(struct log *log, uint32_t number, uint32_t call, const void *site)
{
	char text[8 * 255] = { 0 }; /* as much as a record may hold */
	size_t length;
	if (call == PHASE) {
		length = (size_t)snprintf(text, sizeof(text), "phase %d", (int)(intptr_t)site) + 2;
	} else {
		length = (size_t)snprintf(text, sizeof(text), "%s", call < CALLS ? call_names[call] : openmp_name(call)) + 1;
		if (call >= CALLS || site_is_right(site))
			length += describe_site(site, text + length, sizeof(text) - length);
	}
	log->now_ns = now_ns();
	put(log, QUELL_TRACE_REGION, call < CALLS, number, text, (unsigned)(length + 7) / 8);
}

/* The region of a call at a call site. */
uint32_t log_region(struct log *log, uint32_t call, const void *site)
{
	struct region *found = place_of(log, call, site);
	if (__builtin_expect(found->number != 0, 1))
		return found->number;
	if (log->used * 2 >= log->places) {
		struct region *old = log->regions, *bigger = calloc(log->places * 2, sizeof(*bigger));
		uint32_t count = log->places;
		/* Number 0 is never defined: regions for which there is no memory are not distinguished. */
		if (!bigger)
			return 0;
		log->regions = bigger;
		log->places *= 2;
		for (uint32_t i = 0; i < count; i++) {
			if (old[i].number)
				*place_of(log, old[i].call, old[i].site) = old[i];
		}
		free(old);
		found = place_of(log, call, site);
	}
	*found = (struct region){ site, call, ++log->used };
	define(log, found->number, call, site);
	return found->number;
}
