/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The benchmarks of `quell bench`, as one MPI program: declarations that its parts share.
 */
#ifndef QUELL_BENCH_H
#define QUELL_BENCH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* The command line's options: `NAME=VALUE` arguments, each with a default. */
struct options {
	const char *bench;     /* bsp, allreduce, halo, fwq, loggp: names the file; only loggp selects other code here */
	const char *out;       /* folder of the rank files, which every host must see */
	int ranks;             /* requested number of ranks */
	uint64_t work_ns;      /* quantum; 0 for none */
	uint64_t duration_ns;  /* the run ends after this time; 0 for no limit */
	uint64_t count;        /* the run ends after this many phases; 0 for no limit */
	uint64_t every;        /* phases between two checks of the time; 0 for as many as fit into half a second */
	const char *op;        /* operation that ends a phase: none, or one of ops.c */
	uint64_t bytes;        /* size of its messages */
	int dims;              /* dimensions of a halo's grid */
	const char *lead;      /* a barrier before each `phase`, or after each check of the time (`look`), or `none` */
	const char *bind;      /* `auto`: ranks that may use several CPUs are bound to one each; `none` */
	uint64_t sizes_to;     /* loggp: the largest message */
	uint64_t rounds;       /* loggp: how often everything is measured */
};

/* This process's place in the job. */
struct job {
	struct options options;
	int rank, ranks;
	int node;              /* index of this rank's kernel among the job's, by the kernel's boot id */
	int node_rank;         /* index among the ranks on it */
	int node_ranks;        /* number of ranks on it */
	int nodes;
	int leader;            /* first rank of this kernel */
	bool yields;           /* more ranks than CPUs: a rank that waits yields its CPU */
	struct rank_file *file;
};

/* CLOCK_MONOTONIC, in ns: the clock of the kernel's own intervals. */
static inline uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Prints what failed, where and why, and ends the job. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *allocate(size_t bytes);

/* files.c: this rank's file. Rows are buffered in memory whose pages are present, and written by rank_file_flush, or by a signal that
 * ends the program. */
struct rank_file *rank_file_open(const struct job *job);
void rank_file_fact(struct rank_file *file, const char *key, const char *format, ...) __attribute__((format(printf, 3, 4)));
void rank_file_series(struct rank_file *file, const char *name, const char *columns);
/* The location of the series' next row, provided that rank_file_room says that there is room; rank_file_keep then adds the row. */
uint64_t *rank_file_row(struct rank_file *file);
void rank_file_keep(struct rank_file *file);
/* Drops the rows that are not written yet. */
void rank_file_forget(struct rank_file *file);
/* From here on rows count: they are also written if a signal ends the program. */
void rank_file_counts(struct rank_file *file);
size_t rank_file_room(const struct rank_file *file);
/* The room of an empty buffer. */
size_t rank_file_most(const struct rank_file *file);
/* 0, or the errno of the first write that failed. */
int rank_file_flush(struct rank_file *file);
/* Ends the job if any rank could not write; collective. */
void rank_file_flush_all(struct job *job);
void rank_file_close(struct rank_file *file);

/* place.c: which rank is on which kernel and CPU. */
void place(struct job *job);
void place_tell(const struct job *job);

/* clocks.c: writes the offset of this rank's clock from rank 0's to the file; collective. `when` is `start` or `end`. */
void clocks_align(struct job *job, const char *when);

/* work.c: work of a fixed length. */
struct work {
	uint64_t quantum_ns;
	uint64_t iterations;
	double ns_per_iteration;
	unsigned calibrations;
};
void work_calibrate(struct work *work, uint64_t quantum_ns);
/* Recalibrates if the fastest tenth of these times shows that the clock speed changed. Reorders them. */
void work_check(struct work *work, uint64_t *times_ns, size_t times);
uint64_t work_do(uint64_t iterations);

/* ops.c: operations that end a phase. */
struct operation;
struct operation *operation_make(struct job *job, const char *name);
void operation_run(struct operation *operation);
void operation_free(struct operation *operation);
/* Like the MPI functions, but they yield the CPU while they wait if ranks outnumber CPUs. */
void job_barrier(const struct job *job);
void job_bcast(const struct job *job, void *data, int bytes);
void job_wait(const struct job *job, MPI_Request *request);

/* The benchmarks. */
void run_phases(struct job *job);
void run_loggp(struct job *job);

/* Rank 0 reports progress to quell, and checks whether quell wants the run to end. */
void tell_progress(uint64_t done, uint64_t all);
bool asked_to_stop(const struct job *job);

#endif
