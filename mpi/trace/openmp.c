/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Teams of OpenMP threads, and how GCC's runtime makes them. A compiler turns a parallel region into a call of GOMP_parallel with the
 * region's code as a function: ours passes on another function, which calls that one in each thread of the team.
 */
#include "openmp.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

bool runtime_reports;

/* Whether the process has a team. */
static bool team_open;

/* ---- Teams ---- */

/* The calling thread's log, opened with its first share. */
static struct log *own_log(void)
{
	return mine.log ? mine.log : log_open();
}

bool team_fork(struct team *team, uint32_t threads, const void *site)
{
	if (mine.depth || (mine.log && mine.log->team) || mine.inner || !tracing || threads == 1 || __atomic_exchange_n(&team_open, true, __ATOMIC_ACQUIRE))
		return false;
	struct log *log = own_log();
	if (!log) {
		__atomic_store_n(&team_open, false, __ATOMIC_RELEASE);
		return false;
	}
	*team = (struct team){ .site = site, .threads = threads };
	log_read_edge(log, &team->fork);
	return true;
}

/* Writes the fork, at its time, once it is known that there are several threads. */
static void put_fork(struct log *log, struct team *team)
{
	uint32_t region = log_region(log, OMP_PARALLEL, team->site);
	log->now_ns = team->fork.at_ns;
	log_put_edge(log, QUELL_TRACE_ENTER, region, &team->fork);
	put(log, QUELL_TRACE_FORK, 0, team->threads, NULL, 0);
	team->forked = true;
}

void share_begin(struct team *team, bool master, uint32_t threads)
{
	if (threads < 2)
		return;
	struct log *log = own_log();
	if (!log || !tracing)
		return;
	if (master)
		put_fork(log, team);
	log->team = team;
	uint32_t region = log_region(log, OMP_PARALLEL, team->site);
	log->now_ns = now_ns();
	log_edge(log, QUELL_TRACE_TEAM_BEGIN, 0);
	if (!master)
		put(log, QUELL_TRACE_ENTER, 0, region, NULL, 0);
}

/* Whether the calling thread has a share, and does not work for a team within it. */
static bool in_team(void)
{
	return mine.log && mine.log->team && !mine.inner && !mine.depth;
}

/* A task that the thread ran in the barrier may have written later events. */
static void go_back_to(struct log *log, uint64_t at_ns)
{
	log->now_ns = log->now_ns > at_ns ? log->now_ns : at_ns;
}

void share_ended(struct team *team, const struct edge *edge)
{
	struct log *log = edge->log;
	if (!log || log->team != team)
		return;
	log->team = NULL;
	uint32_t region = log_region(log, OMP_PARALLEL, team->site);
	go_back_to(log, edge->at_ns);
	if (team->fork.log == log) {
		log_put_edge(log, QUELL_TRACE_TEAM_END, 0, edge);
		return;
	}
	log_put_edge(log, QUELL_TRACE_LEAVE, region, edge);
	put(log, QUELL_TRACE_TEAM_END, 0, 0, NULL, 0);
}

void share_end(struct team *team)
{
	struct edge edge;
	if (!mine.log || mine.log->team != team)
		return;
	log_read_edge(mine.log, &edge);
	share_ended(team, &edge);
}

void team_join(struct team *team)
{
	struct log *log = team->fork.log;
	if (team->forked) {
		uint32_t region = log_region(log, OMP_PARALLEL, team->site);
		log->now_ns = now_ns();
		log_edge(log, QUELL_TRACE_JOIN, 0);
		put(log, QUELL_TRACE_LEAVE, 0, region, NULL, 0);
	}
	__atomic_store_n(&team_open, false, __ATOMIC_RELEASE);
}

uint32_t barrier_enter(uint32_t kind, const void *site)
{
	if (!in_team())
		return 0;
	struct log *log = mine.log;
	uint32_t region = log_region(log, kind, site);
	log->now_ns = now_ns();
	log_edge(log, QUELL_TRACE_ENTER, region);
	return region;
}

void barrier_passed(const struct edge *edge)
{
	struct log *log = edge->log;
	uint32_t region = log_region(log, OMP_IMPLICIT_BARRIER, NULL);
	go_back_to(log, edge->at_ns);
	log_put_edge(log, QUELL_TRACE_ENTER, region, edge);
	barrier_leave(region);
}

void barrier_leave(uint32_t region)
{
	if (!region)
		return;
	mine.log->now_ns = now_ns();
	log_edge(mine.log, QUELL_TRACE_LEAVE, region);
}

/* ---- GCC's runtime ---- */

typedef void region_code(void *);

/* What the threads of a team get in place of the program's function and its data. */
struct outlined {
	region_code *code;
	void *data;
	unsigned (*size)(void), (*place)(void);
	struct team team;
};

static void run_share(void *given)
{
	struct outlined *outlined = given;
	bool master = !outlined->place();
	share_begin(&outlined->team, master, outlined->size());
	outlined->code(outlined->data);
	share_end(&outlined->team);
}

static int note_runtime(struct dl_phdr_info *object, size_t size, void *found)
{
	const char *file = strrchr(object->dlpi_name, '/');
	(void)size;
	if (!file || (strncmp(file, "/libgomp", 8) && strncmp(file, "/libomp", 7) && strncmp(file, "/libiomp", 8)))
		return 0;
	snprintf(found, 4096, "%s", object->dlpi_name);
	return 1;
}

/* A function of the runtime, which an interpreter may have loaded behind this library's search order. */
static void *of_runtime(const char *name)
{
	char path[4096] = "";
	void *found = dlsym(RTLD_NEXT, name);
	if (!found && dl_iterate_phdr(note_runtime, path))
		found = dlsym(dlopen(path, RTLD_LAZY | RTLD_NOLOAD), name);
	if (!found) {
		fprintf(stderr, "quell trace: %s is called, and no OpenMP runtime is loaded that has it\n", name);
		abort();
	}
	return found;
}

/* The runtime's function of this name, looked up once. */
#define RUNTIME(name)                                                            \
	({                                                                       \
		static __typeof__(&name) found;                                  \
		__typeof__(&name) known = __atomic_load_n(&found, __ATOMIC_RELAXED); \
		if (!known) {                                                    \
			known = (__typeof__(&name))of_runtime(#name);            \
			__atomic_store_n(&found, known, __ATOMIC_RELAXED);       \
		}                                                                \
		known;                                                           \
	})

unsigned omp_get_num_threads(void);
unsigned omp_get_thread_num(void);

#define EXPORTED __attribute__((visibility("default")))

/* A function of the runtime that forks a team, runs a region in it, and joins it: its parameters and arguments after the first three. */
#define FORKS(name, params, args)                                                                                  \
	EXPORTED void name(region_code *code, void *data, unsigned threads, UNPACK params);                        \
	EXPORTED void name(region_code *code, void *data, unsigned threads, UNPACK params)                         \
	{                                                                                                          \
		struct outlined outlined = { .code = code, .data = data };                                         \
		__typeof__(&name) runtime = RUNTIME(name);                                                         \
		if (runtime_reports || !team_fork(&outlined.team, threads, SITE)) {                                \
			mine.inner++;                                                                              \
			runtime(code, data, threads, UNPACK args);                                                 \
			mine.inner--;                                                                              \
			return;                                                                                    \
		}                                                                                                  \
		outlined.size = RUNTIME(omp_get_num_threads);                                                      \
		outlined.place = RUNTIME(omp_get_thread_num);                                                      \
		runtime(run_share, &outlined, threads, UNPACK args);                                               \
		team_join(&outlined.team);                                                                         \
	}
#define UNPACK(...) __VA_ARGS__

FORKS(GOMP_parallel, (unsigned flags), (flags))
FORKS(GOMP_parallel_sections, (unsigned count, unsigned flags), (count, flags))

#define LOOP (long begin, long end, long step, unsigned flags), (begin, end, step, flags)
#define CHUNKS (long begin, long end, long step, long chunk, unsigned flags), (begin, end, step, chunk, flags)
#define FORKS_LOOP(name, how) FORKS_LOOP_(name, how)
#define FORKS_LOOP_(name, params, args) FORKS(name, params, args)

FORKS_LOOP(GOMP_parallel_loop_static, CHUNKS)
FORKS_LOOP(GOMP_parallel_loop_dynamic, CHUNKS)
FORKS_LOOP(GOMP_parallel_loop_guided, CHUNKS)
FORKS_LOOP(GOMP_parallel_loop_runtime, LOOP)
FORKS_LOOP(GOMP_parallel_loop_nonmonotonic_dynamic, CHUNKS)
FORKS_LOOP(GOMP_parallel_loop_nonmonotonic_guided, CHUNKS)
FORKS_LOOP(GOMP_parallel_loop_nonmonotonic_runtime, LOOP)
FORKS_LOOP(GOMP_parallel_loop_maybe_nonmonotonic_runtime, LOOP)

/* A function of the runtime in which the threads of a team wait for each other. */
#define WAITS(name, kind)                                     \
	EXPORTED void name(void);                             \
	EXPORTED void name(void)                              \
	{                                                     \
		__typeof__(&name) runtime = RUNTIME(name);    \
		uint32_t region = runtime_reports ? 0 : barrier_enter(kind, SITE); \
		runtime();                                    \
		barrier_leave(region);                        \
	}

WAITS(GOMP_barrier, OMP_BARRIER)
WAITS(GOMP_loop_end, OMP_IMPLICIT_BARRIER)
WAITS(GOMP_sections_end, OMP_IMPLICIT_BARRIER)
