/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Works, then makes an MPI call, again and again, and reports the times: for each call when work began, when the call began, when it ended.
 *
 * Usage: calls COUNT WORK_NS probe|barrier|sendrecv [LOG]
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int main(int count, char **words)
{
	int calls = atoi(words[1]), rank, ranks, flag;
	uint64_t work = strtoull(words[2], NULL, 10);
	const char *kind = words[3];
	MPI_Init(&count, &words);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	uint64_t *log = malloc(sizeof(*log) * 3 * (size_t)calls);
	/* Pages are taken now, not between two readings. */
	memset(log, 0, sizeof(*log) * 3 * (size_t)calls);
	for (int i = 0; i < calls; i++) {
		uint64_t begin = now_ns(), at = begin;
		while (at < begin + work)
			at = now_ns();
		if (!strcmp(kind, "probe")) {
			MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		} else if (!strcmp(kind, "barrier")) {
			MPI_Barrier(MPI_COMM_WORLD);
		} else {
			int sent = i, got = -1;
			/* Twelve arguments: six of them are not in registers. */
			MPI_Sendrecv(&sent, 1, MPI_INT, (rank + 1) % ranks, 5, &got, 1, MPI_INT, (rank + ranks - 1) % ranks, 5,
				     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			if (got != i)
				return 99;
		}
		log[3 * i] = begin;
		log[3 * i + 1] = at;
		log[3 * i + 2] = now_ns();
	}
	printf("rank %d of %d is done\n", rank, ranks);
	MPI_Finalize();
	FILE *file = count > 4 ? fopen(words[4], "wb") : NULL;
	if (file) {
		fwrite(log, sizeof(*log), 3 * (size_t)calls, file);
		fclose(file);
	}
	return 0;
}
