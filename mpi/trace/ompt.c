/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Teams of OpenMP threads as a runtime reports them through OMPT (OpenMP 5.2, chapter 19), such as LLVM's. It looks for ompt_start_tool
 * when it starts. The declarations are those of its omp-tools.h, which not every site has.
 */
#include "openmp.h"

#include <stdlib.h>

union ompt_data {
	uint64_t value;
	void *ptr;
};

typedef void ompt_function(void);
typedef ompt_function *ompt_lookup(const char *name);

struct ompt_tool {
	int (*initialize)(ompt_lookup *lookup, int device, union ompt_data *data);
	void (*finalize)(union ompt_data *data);
	union ompt_data data;
};

enum { PARALLEL_BEGIN = 3, PARALLEL_END = 4, IMPLICIT_TASK = 7, SYNC_REGION = 23 };
enum { SCOPE_BEGIN = 1, SCOPE_END = 2 };
enum { A_LEAGUE = 0x40000000 };
enum { BARRIER_IMPLICIT = 2, BARRIER_EXPLICIT = 3, BARRIER_WORKSHARE = 8, BARRIER_OF_JOIN = 9 };

/* A process has one at a time. */
static struct team the_team;
/* The barrier in which the thread is, and its region. */
static __thread struct {
	uint32_t region;
	int kind;
} barrier;

static bool is_ours(const union ompt_data *parallel)
{
	return parallel && parallel->ptr == &the_team;
}

static void parallel_begin(union ompt_data *task, const void *frame, union ompt_data *parallel, unsigned threads, int flags,
			   const void *site)
{
	(void)task, (void)frame;
	struct team team;
	parallel->ptr = NULL;
	/* The teams of a teams construct are not followed. */
	if (flags & A_LEAGUE || !team_fork(&team, threads, site))
		return;
	the_team = team;
	parallel->ptr = &the_team;
}

/* A worker leaves the barrier of the join with the next fork only; until then it is at rest, and its log is ours. */
static void come(struct log *log)
{
	if (log->team == &the_team && log->waits.log)
		share_ended(&the_team, &log->waits);
	if (log->team == &the_team)
		log->team = NULL;
	log->waits.log = NULL;
}

static void parallel_end(union ompt_data *parallel, union ompt_data *task, int flags, const void *site)
{
	(void)task, (void)flags, (void)site;
	if (!is_ours(parallel))
		return;
	log_each(come);
	team_join(&the_team);
}

static void implicit_task(int scope, union ompt_data *parallel, union ompt_data *task, unsigned threads, unsigned place, int flags)
{
	(void)task, (void)flags;
	if (scope == SCOPE_BEGIN && is_ours(parallel))
		share_begin(&the_team, !place, threads);
}

static void sync_region(int kind, int scope, union ompt_data *parallel, union ompt_data *task, const void *site)
{
	(void)task;
	struct log *log = mine.log;
	if (scope == SCOPE_END) {
		/* Within a barrier a thread may run tasks, with waits of their own, and regions. */
		if (barrier.region && kind == barrier.kind && (!parallel || is_ours(parallel))) {
			barrier_leave(barrier.region);
			barrier.region = 0;
		}
		/* The join has no parallel region any more. */
		if (kind == BARRIER_IMPLICIT && is_ours(parallel) && log && log->waits.log) {
			barrier_passed(&log->waits);
			log->waits.log = NULL;
		}
		return;
	}
	if (!tracing || !is_ours(parallel) || !log || log->team != &the_team)
		return;
	/* LLVM's runtime before version 15 does not distinguish the join from other implicit barriers. */
	if (kind == BARRIER_IMPLICIT)
		log_read_edge(log, &log->waits);
	else if (kind == BARRIER_OF_JOIN)
		share_end(&the_team);
	else if (!barrier.region && (kind == BARRIER_EXPLICIT || kind == BARRIER_WORKSHARE)) {
		barrier.region = barrier_enter(kind == BARRIER_EXPLICIT ? OMP_BARRIER : OMP_IMPLICIT_BARRIER, site);
		barrier.kind = kind;
	}
}

static int initialize(ompt_lookup *lookup, int device, union ompt_data *data)
{
	(void)device, (void)data;
	int (*set)(int, ompt_function *) = (int (*)(int, ompt_function *))lookup("ompt_set_callback");
	if (!set)
		return 0;
	set(PARALLEL_BEGIN, (ompt_function *)parallel_begin);
	set(PARALLEL_END, (ompt_function *)parallel_end);
	set(IMPLICIT_TASK, (ompt_function *)implicit_task);
	set(SYNC_REGION, (ompt_function *)sync_region);
	runtime_reports((const void *)lookup);
	return 1;
}

static void finalize(union ompt_data *data)
{
	(void)data;
}

__attribute__((visibility("default"))) struct ompt_tool *ompt_start_tool(unsigned version, const char *runtime);
struct ompt_tool *ompt_start_tool(unsigned version, const char *runtime)
{
	static struct ompt_tool tool = { initialize, finalize, { 0 } };
	const char *folder = getenv(QUELL_TRACE_FOLDER_VARIABLE);
	(void)version, (void)runtime;
	return folder && *folder ? &tool : NULL;
}
