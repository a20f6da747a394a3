/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The cost of an MPI call that does next to nothing: MPI_Test on a receive that never completes. Usage: test_call CALLS ROUNDS.
 * Rank 0 prints the ns per call, one line for each round.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
	int rank, flag, token = 0;
	MPI_Request request;

	MPI_Init(&argc, &argv);
	long calls = argc > 1 ? atol(argv[1]) : 100000, rounds = argc > 2 ? atol(argv[2]) : 9;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 0) {
		MPI_Irecv(&token, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, &request);
		for (long round = 0; round < rounds; round++) {
			double begin = now_ns();
			for (long call = 0; call < calls; call++)
				MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
			printf("%.3f\n", (now_ns() - begin) / (double)calls);
		}
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 1)
		MPI_Send(&token, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
	if (rank == 0)
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Finalize();
	return 0;
}
