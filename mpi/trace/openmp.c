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
	if (threads < 2 || !tracing)
		return;
	struct log *log = own_log();
	if (!log)
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
	return tracing && mine.log && mine.log->team && !mine.inner && !mine.depth;
}

/* A task that the thread ran in the barrier may have written later events. */
static void go_back_to(struct log *log, uint64_t at_ns)
{
	log->now_ns = log->now_ns > at_ns ? log->now_ns : at_ns;
}

void share_ended(struct team *team, const struct edge *edge)
{
	struct log *log = edge->log;
	if (!log || log->team != team || !tracing)
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
	if (team->forked && tracing) {
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
	uint64_t last_ns = log->now_ns;
	if (!tracing)
		return;
	uint32_t region = log_region(log, OMP_IMPLICIT_BARRIER, NULL);
	/* The region may have been defined now. */
	log->now_ns = last_ns;
	go_back_to(log, edge->at_ns);
	log_put_edge(log, QUELL_TRACE_ENTER, region, edge);
	barrier_leave(region);
}

void barrier_leave(uint32_t region)
{
	if (!region || !tracing)
		return;
	mine.log->now_ns = now_ns();
	log_edge(mine.log, QUELL_TRACE_LEAVE, region);
}

/* ---- Runtimes ---- */

unsigned omp_get_num_threads(void);
unsigned omp_get_thread_num(void);

/* What is called in GCC's runtime, or in another that has its functions. */
#define FUNCTIONS(F)                                                                                                                \
	F(GOMP_parallel) F(GOMP_parallel_sections) F(GOMP_parallel_loop_static) F(GOMP_parallel_loop_dynamic)                       \
	F(GOMP_parallel_loop_guided) F(GOMP_parallel_loop_runtime) F(GOMP_parallel_loop_nonmonotonic_dynamic)                       \
	F(GOMP_parallel_loop_nonmonotonic_guided) F(GOMP_parallel_loop_nonmonotonic_runtime)                                        \
	F(GOMP_parallel_loop_maybe_nonmonotonic_runtime) F(GOMP_barrier) F(GOMP_loop_end) F(GOMP_sections_end)                      \
	F(omp_get_num_threads) F(omp_get_thread_num)

#define FUNCTION(name) OF_##name,
enum function { FUNCTIONS(FUNCTION) FUNCTION_COUNT };
#undef FUNCTION

#define FUNCTION(name) #name,
static const char *const function_names[FUNCTION_COUNT] = { FUNCTIONS(FUNCTION) };
#undef FUNCTION

/* The runtime of an object. An interpreter's modules may each bring their own, whose functions must not be mixed. */
struct runtime {
	struct runtime *next;
	const void *user; /* where the object lies that calls it */
	const void *base; /* where it lies itself */
	void *functions[FUNCTION_COUNT];
};

static struct runtime *runtimes;

#define REPORTING_MOST 8
static const void *reporting[REPORTING_MOST];

/* Where the object of an address lies. */
static const void *base_of(const void *address)
{
	Dl_info facts;
	return address && dladdr(address, &facts) ? facts.dli_fbase : NULL;
}

void runtime_reports(const void *function)
{
	for (int i = 0; i < REPORTING_MOST; i++) {
		if (!reporting[i]) {
			reporting[i] = base_of(function);
			return;
		}
	}
}

/* Whether it reports its teams itself (ompt.c). */
static bool reports(const struct runtime *runtime)
{
	for (int i = 0; i < REPORTING_MOST && reporting[i]; i++) {
		if (reporting[i] == runtime->base)
			return true;
	}
	return false;
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

/* Finds the runtime among what the object is linked with, then as the linker does, and last among all that are loaded. */
static void find_functions(struct runtime *runtime, const char *user)
{
	char path[4096] = "";
	void *own = user ? dlopen(user, RTLD_LAZY | RTLD_NOLOAD) : NULL;
	void *loaded = dl_iterate_phdr(note_runtime, path) ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
	const void *ours = base_of((const void *)find_functions);
	for (int i = 0; i < FUNCTION_COUNT; i++) {
		void *found = own ? dlsym(own, function_names[i]) : NULL;
		if (!found || base_of(found) == ours)
			found = dlsym(RTLD_NEXT, function_names[i]);
		if (!found && loaded)
			found = dlsym(loaded, function_names[i]);
		runtime->functions[i] = found;
	}
	runtime->base = base_of(runtime->functions[OF_GOMP_parallel]);
}

static struct runtime *new_runtime(const void *caller)
{
	Dl_info facts = { 0 };
	dladdr(caller, &facts);
	struct runtime *all = __atomic_load_n(&runtimes, __ATOMIC_ACQUIRE);
	for (struct runtime *known = all; known; known = known->next) {
		if (known->user == facts.dli_fbase)
			return known;
	}
	struct runtime *made = calloc(1, sizeof(*made));
	if (!made)
		abort();
	made->user = facts.dli_fbase;
	find_functions(made, facts.dli_fname);
	/* Two threads may both add it. */
	made->next = all;
	while (!__atomic_compare_exchange_n(&runtimes, &made->next, made, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return made;
}

/* The runtime of the object that calls from here. */
static struct runtime *runtime_of(const void *caller)
{
	static __thread struct {
		const void *caller;
		struct runtime *runtime;
	} known[16] __attribute__((tls_model("initial-exec")));
	unsigned at = (unsigned)((uintptr_t)caller * 0x9e3779b97f4a7c15u >> 60);
	if (known[at].caller != caller) {
		known[at].runtime = new_runtime((const char *)caller - 1);
		known[at].caller = caller;
	}
	return known[at].runtime;
}

static void *function_of(const struct runtime *runtime, enum function function)
{
	if (!runtime->functions[function]) {
		fprintf(stderr, "quell trace: %s is called, and no OpenMP runtime is loaded that has it\n", function_names[function]);
		abort();
	}
	return runtime->functions[function];
}

#define RUNTIME(runtime, name) ((__typeof__(&name))function_of(runtime, OF_##name))

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

#define EXPORTED __attribute__((visibility("default")))

/* A function of the runtime that forks a team, runs a region in it, and joins it: its parameters and arguments after the first three. */
#define FORKS(name, params, args)                                                                                  \
	EXPORTED void name(region_code *code, void *data, unsigned threads, UNPACK params);                        \
	EXPORTED void name(region_code *code, void *data, unsigned threads, UNPACK params)                         \
	{                                                                                                          \
		const struct runtime *runtime = runtime_of(__builtin_return_address(0));                           \
		struct outlined outlined = { .code = code, .data = data };                                         \
		bool by_itself = reports(runtime);                                                                 \
		if (by_itself || !team_fork(&outlined.team, threads, SITE)) {                                      \
			mine.inner += !by_itself;                                                                  \
			RUNTIME(runtime, name)(code, data, threads, UNPACK args);                                  \
			mine.inner -= !by_itself;                                                                  \
			return;                                                                                    \
		}                                                                                                  \
		outlined.size = RUNTIME(runtime, omp_get_num_threads);                                             \
		outlined.place = RUNTIME(runtime, omp_get_thread_num);                                             \
		RUNTIME(runtime, name)(run_share, &outlined, threads, UNPACK args);                                \
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
#define WAITS(name, kind)                                                              \
	EXPORTED void name(void);                                                      \
	EXPORTED void name(void)                                                       \
	{                                                                              \
		const struct runtime *runtime = runtime_of(__builtin_return_address(0));   \
		uint32_t region = reports(runtime) ? 0 : barrier_enter(kind, SITE);    \
		RUNTIME(runtime, name)();                                              \
		barrier_leave(region);                                                 \
	}

WAITS(GOMP_barrier, OMP_BARRIER)
WAITS(GOMP_loop_end, OMP_IMPLICIT_BARRIER)
WAITS(GOMP_sections_end, OMP_IMPLICIT_BARRIER)
