/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The first rank of each kernel asks rank 0 for its time. The fastest of many answers limits the error of the clocks' difference to
 * half its round-trip time (Cristian 1989). Ranks of one kernel share its clock.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 200

static uint64_t ask(const struct job *job, int whom, uint64_t *took_ns, uint64_t *end_ns)
{
	uint64_t question = 0, answer;
	MPI_Request requests[2];
	uint64_t begin = now_ns();
	MPI_Irecv(&answer, 1, MPI_UINT64_T, whom, 1, MPI_COMM_WORLD, &requests[0]);
	MPI_Isend(&question, 1, MPI_UINT64_T, whom, 1, MPI_COMM_WORLD, &requests[1]);
	job_wait(job, &requests[0]);
	*end_ns = now_ns();
	*took_ns = *end_ns - begin;
	job_wait(job, &requests[1]);
	return answer;
}

static void answer(const struct job *job, int whom)
{
	uint64_t question, now;
	MPI_Request request;
	MPI_Irecv(&question, 1, MPI_UINT64_T, whom, 1, MPI_COMM_WORLD, &request);
	job_wait(job, &request);
	now = now_ns();
	MPI_Isend(&now, 1, MPI_UINT64_T, whom, 1, MPI_COMM_WORLD, &request);
	job_wait(job, &request);
}

void clocks_align(struct job *job, const char *when)
{
	if (job->nodes == 1)
		return;
	int leads = job->leader == job->rank && job->rank != 0;
	int *leaders = allocate(sizeof(int) * (size_t)job->ranks);
	MPI_Allgather(&leads, 1, MPI_INT, leaders, 1, MPI_INT, MPI_COMM_WORLD);
	for (int leader = 1; leader < job->ranks; leader++) {
		if (!leaders[leader])
			continue;
		if (job->rank == 0) {
			for (int round = 0; round < ROUNDS; round++)
				answer(job, leader);
		}
		if (job->rank != leader)
			continue;
		uint64_t best = UINT64_MAX, at = 0;
		int64_t offset = 0;
		for (int round = 0; round < ROUNDS; round++) {
			uint64_t took, end, theirs = ask(job, 0, &took, &end), mine = end - took / 2;
			if (took < best) {
				best = took;
				at = mine;
				offset = (int64_t)(theirs - mine);
			}
		}
		char key[64];
		snprintf(key, sizeof(key), "clock_%s", when);
		rank_file_fact(job->file, key, "at_ns %llu offset_ns %lld error_ns %llu", (unsigned long long)at,
			       (long long)offset, (unsigned long long)(best + 1) / 2);
	}
	free(leaders);
}
