/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Phases: work of a fixed length, then an operation (De et al. 2008, Algorithm 1). Without work it is a loop of operations as in
 * Jones et al. §3; without an operation it is the fixed work quantum benchmark.
 */
#include "bench.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "../rank_file.h"

/* Time between two checks at which the ranks decide whether to end, and write their rows. */
#define LOOK_NS 500000000u
#define MOST_CHECKED 4096

/* Rank 0's decision for all ranks. */
struct plan {
	uint64_t phases; /* until the next check; 0 for the end */
	uint64_t flush;
};

struct run {
	struct job *job;
	struct operation *operation;
	struct work work;
	uint64_t checked[MOST_CHECKED];
	size_t checks;
	/* Used by rank 0 only. */
	uint64_t begun_ns, done, flushed_ns, look;
};

static void phase(struct run *run, bool lead)
{
	struct job *job = run->job;
	uint64_t *row = rank_file_row(job->file);
	if (lead)
		job_barrier(job);
	uint64_t begin = now_ns(), computed = begin;
	if (run->work.iterations) {
		work_do(run->work.iterations);
		/* For tools: the work is done although no message follows yet. Noise that is replayed at MPI calls belongs to the work. */
		MPI_Pcontrol(1);
		computed = now_ns();
	}
	if (run->operation)
		operation_run(run->operation);
	uint64_t end = run->operation ? now_ns() : computed;
	row[QUELL_PHASE_START_NS] = begin;
	row[QUELL_PHASE_WORK] = run->work.iterations;
	row[QUELL_PHASE_QT_NS] = computed - begin;
	row[QUELL_PHASE_BT_NS] = end - computed;
	row[QUELL_PHASE_CPU] = (uint64_t)sched_getcpu();
	rank_file_keep(job->file);
	if (run->checks < MOST_CHECKED)
		run->checked[run->checks++] = computed - begin;
}

/* Phases until the next check: the requested number, or as many as take about LOOK_NS. */
static uint64_t until_look(const struct run *run, uint64_t now)
{
	const struct options *options = &run->job->options;
	if (options->every)
		return options->every;
	if (!run->done)
		return 1;
	double each = (double)(now - run->begun_ns) / (double)run->done;
	double phases = LOOK_NS / (each > 1 ? each : 1);
	/* The time of the first phases does not predict that of later ones yet. */
	double most = (double)run->done * 10;
	return phases < 1 ? 1 : (uint64_t)(phases < most ? phases : most);
}

static struct plan decide(struct run *run)
{
	const struct options *options = &run->job->options;
	uint64_t now = now_ns(), elapsed = now - run->begun_ns;
	struct plan plan = {.phases = until_look(run, now)};
	size_t room = rank_file_room(run->job->file);
	if (run->done)
		plan.flush = now - run->flushed_ns >= LOOK_NS || room <= plan.phases;
	bool over = (options->duration_ns && elapsed >= options->duration_ns) || (options->count && run->done >= options->count);
	if (plan.flush) {
		run->flushed_ns = now;
		over |= asked_to_stop(run->job);
		bool by_time = options->duration_ns && (!options->count || (double)elapsed * (double)options->count >
										  (double)run->done * (double)options->duration_ns);
		tell_progress(by_time ? elapsed : run->done, by_time ? options->duration_ns : options->count);
	}
	if (over)
		return (struct plan){.flush = 1};
	if (options->count && plan.phases > options->count - run->done)
		plan.phases = options->count - run->done;
	if (plan.flush)
		room = rank_file_most(run->job->file);
	if (plan.phases > room)
		plan.phases = room;
	return plan;
}

/* The time that the clock readings add to a phase: everything in it except the work, the operation and the barrier. */
static double timing_ns(struct run *run)
{
	uint64_t iterations = run->work.iterations, best = UINT64_MAX;
	struct operation *operation = run->operation;
	for (int batch = 0; batch < 20; batch++) {
		uint64_t begin = now_ns();
		for (int i = 0; i < 100; i++) {
			run->work.iterations = 0;
			run->operation = NULL;
			phase(run, false);
			/* The two readings that a phase without work and operation skips. */
			(void)now_ns();
			(void)now_ns();
		}
		uint64_t took = now_ns() - begin;
		best = took < best ? took : best;
		rank_file_forget(run->job->file);
	}
	run->work.iterations = iterations;
	run->operation = operation;
	return (double)best / 100;
}

static void tell_work(const struct run *run)
{
	rank_file_fact(run->job->file, "ns_per_iteration", "%.6f", run->work.ns_per_iteration);
	rank_file_fact(run->job->file, "calibrations", "%u", run->work.calibrations);
}

static void write_out(struct run *run)
{
	struct job *job = run->job;
	rank_file_flush_all(job);
	unsigned before = run->work.calibrations;
	work_check(&run->work, run->checked, run->checks);
	run->checks = 0;
	if (run->work.calibrations != before)
		tell_work(run);
	job_barrier(job);
}

void run_phases(struct job *job)
{
	const struct options *options = &job->options;
	struct run *run = allocate(sizeof(*run));
	memset(run, 0, sizeof(*run));
	run->job = job;
	run->operation = operation_make(job, options->op);
	bool lead_phase = !strcmp(options->lead, "phase"), lead_look = !strcmp(options->lead, "look");
	rank_file_series(job->file, options->bench, QUELL_PHASE_COLUMNS);
	/* All ranks calibrate at the same time, so that shared resources are shared as in the measurement. */
	job_barrier(job);
	work_calibrate(&run->work, options->work_ns);
	tell_work(run);
	rank_file_fact(job->file, "quantum_ns", "%llu", (unsigned long long)options->work_ns);
	rank_file_fact(job->file, "op", "%s", options->op);
	rank_file_fact(job->file, "bytes", "%llu", (unsigned long long)options->bytes);
	rank_file_fact(job->file, "timing_ns", "%.1f", timing_ns(run));
	/* Warm-up: in the first phases caches, connections and pages are not in their later state. */
	for (int warm = 0; warm < 3; warm++)
		phase(run, true);
	rank_file_counts(job->file);
	run->checks = 0;
	job_barrier(job);
	run->begun_ns = run->flushed_ns = now_ns();
	for (;;) {
		struct plan plan = {0};
		if (job->rank == 0)
			plan = decide(run);
		job_bcast(job, &plan, sizeof(plan));
		if (plan.flush)
			write_out(run);
		if (!plan.phases)
			break;
		for (uint64_t i = 0; i < plan.phases; i++)
			phase(run, lead_phase || (lead_look && i == 0));
		run->done += plan.phases;
	}
	operation_free(run->operation);
	free(run);
}
