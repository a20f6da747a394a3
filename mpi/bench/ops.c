/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Operations that end a phase. MPI libraries spin while they wait. Where ranks outnumber CPUs, the rank that the others wait for would
 * then be stopped until the scheduler's next tick. In that case the non-blocking form is used, and a rank that waits yields its CPU.
 */
#include "bench.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum kind { BARRIER, ALLREDUCE, REDUCE, BCAST, ALLGATHER, GATHER, SCATTER, ALLTOALL, REDUCE_SCATTER, SCAN, HALO };

static const struct { const char *name; enum kind kind; } kinds[] = {
	{"barrier", BARRIER}, {"allreduce", ALLREDUCE}, {"reduce", REDUCE}, {"bcast", BCAST},
	{"allgather", ALLGATHER}, {"gather", GATHER}, {"scatter", SCATTER}, {"alltoall", ALLTOALL},
	{"reduce_scatter", REDUCE_SCATTER}, {"scan", SCAN}, {"halo", HALO},
};

struct operation {
	struct job *job;
	enum kind kind;
	int bytes, words;
	void *out, *in;
	MPI_Comm grid;
	int dims;
	struct { int before, after; } neighbours[3];
};

void job_wait(const struct job *job, MPI_Request *request)
{
	int done = 0;
	while (job->yields && !done) {
		MPI_Test(request, &done, MPI_STATUS_IGNORE);
		if (!done)
			sched_yield();
	}
	if (!done)
		MPI_Wait(request, MPI_STATUS_IGNORE);
}

void job_barrier(const struct job *job)
{
	if (!job->yields) {
		MPI_Barrier(MPI_COMM_WORLD);
		return;
	}
	MPI_Request request;
	MPI_Ibarrier(MPI_COMM_WORLD, &request);
	job_wait(job, &request);
}

void job_bcast(const struct job *job, void *data, int bytes)
{
	if (!job->yields) {
		MPI_Bcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
		return;
	}
	MPI_Request request;
	MPI_Ibcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
	job_wait(job, &request);
}

static void make_grid(struct operation *operation)
{
	int dims = operation->job->options.dims;
	if (dims < 1 || dims > 3)
		fail("a halo has 1, 2 or 3 dimensions, not %d", dims);
	int sizes[3] = {0, 0, 0}, around[3] = {1, 1, 1};
	MPI_Dims_create(operation->job->ranks, dims, sizes);
	/* No reordering of ranks: the launcher's placement is what is measured. */
	MPI_Cart_create(MPI_COMM_WORLD, dims, sizes, around, 0, &operation->grid);
	operation->dims = dims;
	for (int dim = 0; dim < dims; dim++)
		MPI_Cart_shift(operation->grid, dim, 1, &operation->neighbours[dim].before, &operation->neighbours[dim].after);
}

struct operation *operation_make(struct job *job, const char *name)
{
	if (!strcmp(name, "none"))
		return NULL;
	struct operation *operation = allocate(sizeof(*operation));
	memset(operation, 0, sizeof(*operation));
	operation->job = job;
	size_t known = sizeof(kinds) / sizeof(kinds[0]), at = 0;
	while (at < known && strcmp(kinds[at].name, name))
		at++;
	if (at == known)
		fail("there is no operation `%s`", name);
	operation->kind = kinds[at].kind;
	/* Reductions add doubles, at least one. */
	uint64_t words = (job->options.bytes + 7) / 8;
	if (words > (1u << 27))
		fail("messages of %llu bytes are too long", (unsigned long long)job->options.bytes);
	operation->words = words ? (int)words : 1;
	operation->bytes = (int)job->options.bytes;
	size_t room = (size_t)operation->words * 8;
	if (operation->kind == ALLGATHER || operation->kind == GATHER || operation->kind == SCATTER || operation->kind == ALLTOALL ||
	    operation->kind == REDUCE_SCATTER)
		room *= (size_t)job->ranks;
	operation->out = allocate(room);
	operation->in = allocate(room);
	memset(operation->out, 0, room);
	if (operation->kind == HALO)
		make_grid(operation);
	return operation;
}

void operation_free(struct operation *operation)
{
	if (!operation)
		return;
	if (operation->kind == HALO)
		MPI_Comm_free(&operation->grid);
	free(operation->out);
	free(operation->in);
	free(operation);
}

static void shift(struct operation *o, int to, int from)
{
	if (!o->job->yields) {
		MPI_Sendrecv(o->out, o->bytes, MPI_BYTE, to, 2, o->in, o->bytes, MPI_BYTE, from, 2, o->grid, MPI_STATUS_IGNORE);
		return;
	}
	MPI_Request requests[2];
	MPI_Irecv(o->in, o->bytes, MPI_BYTE, from, 2, o->grid, &requests[0]);
	MPI_Isend(o->out, o->bytes, MPI_BYTE, to, 2, o->grid, &requests[1]);
	job_wait(o->job, &requests[0]);
	job_wait(o->job, &requests[1]);
}

static void exchange(struct operation *o)
{
	for (int dim = 0; dim < o->dims; dim++) {
		shift(o, o->neighbours[dim].after, o->neighbours[dim].before);
		shift(o, o->neighbours[dim].before, o->neighbours[dim].after);
	}
}

static void run_blocking(struct operation *o)
{
	MPI_Comm all = MPI_COMM_WORLD;
	switch (o->kind) {
	case BARRIER: MPI_Barrier(all); break;
	case ALLREDUCE: MPI_Allreduce(o->out, o->in, o->words, MPI_DOUBLE, MPI_SUM, all); break;
	case REDUCE: MPI_Reduce(o->out, o->in, o->words, MPI_DOUBLE, MPI_SUM, 0, all); break;
	case BCAST: MPI_Bcast(o->out, o->bytes, MPI_BYTE, 0, all); break;
	case ALLGATHER: MPI_Allgather(o->out, o->bytes, MPI_BYTE, o->in, o->bytes, MPI_BYTE, all); break;
	case GATHER: MPI_Gather(o->out, o->bytes, MPI_BYTE, o->in, o->bytes, MPI_BYTE, 0, all); break;
	case SCATTER: MPI_Scatter(o->out, o->bytes, MPI_BYTE, o->in, o->bytes, MPI_BYTE, 0, all); break;
	case ALLTOALL: MPI_Alltoall(o->out, o->bytes, MPI_BYTE, o->in, o->bytes, MPI_BYTE, all); break;
	case REDUCE_SCATTER: MPI_Reduce_scatter_block(o->out, o->in, o->words, MPI_DOUBLE, MPI_SUM, all); break;
	case SCAN: MPI_Scan(o->out, o->in, o->words, MPI_DOUBLE, MPI_SUM, all); break;
	case HALO: exchange(o); break;
	}
}

static void run_yielding(struct operation *o)
{
	MPI_Comm all = MPI_COMM_WORLD;
	MPI_Request r = MPI_REQUEST_NULL;
	switch (o->kind) {
	case BARRIER: MPI_Ibarrier(all, &r); break;
	case ALLREDUCE: MPI_Iallreduce(o->out, o->in, o->words, MPI_DOUBLE, MPI_SUM, all, &r); break;
	case REDUCE: MPI_Ireduce(o->out, o->in, o->words, MPI_DOUBLE, MPI_SUM, 0, all, &r); break;
	case BCAST: MPI_Ibcast(o->out, o->bytes, MPI_BYTE, 0, all, &r); break;
	case ALLGATHER: MPI_Iallgather(o->out, o->bytes, MPI_BYTE, o->in, o->bytes, MPI_BYTE, all, &r); break;
	case GATHER: MPI_Igather(o->out, o->bytes, MPI_BYTE, o->in, o->bytes, MPI_BYTE, 0, all, &r); break;
	case SCATTER: MPI_Iscatter(o->out, o->bytes, MPI_BYTE, o->in, o->bytes, MPI_BYTE, 0, all, &r); break;
	case ALLTOALL: MPI_Ialltoall(o->out, o->bytes, MPI_BYTE, o->in, o->bytes, MPI_BYTE, all, &r); break;
	case REDUCE_SCATTER: MPI_Ireduce_scatter_block(o->out, o->in, o->words, MPI_DOUBLE, MPI_SUM, all, &r); break;
	case SCAN: MPI_Iscan(o->out, o->in, o->words, MPI_DOUBLE, MPI_SUM, all, &r); break;
	case HALO: exchange(o); return;
	}
	job_wait(o->job, &r);
}

void operation_run(struct operation *operation)
{
	if (operation->job->yields)
		run_yielding(operation);
	else
		run_blocking(operation);
}
