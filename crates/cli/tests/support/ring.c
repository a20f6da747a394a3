/* A ring of messages and a sum after each, with a millisecond of work between: ROUNDS [EXIT CODE [RANK THAT IS KILLED]]. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv)
{
	const int rounds = argc > 1 ? atoi(argv[1]) : 100, code = argc > 2 ? atoi(argv[2]) : 0;
	const int killed = argc > 3 ? atoi(argv[3]) : -1;
	int rank, size, round, token = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (round = 0; round < rounds; round++) {
		long long end = now_ns() + 1000000;

		while (now_ns() < end)
			;
		if (rank == killed && round == rounds / 2)
			raise(SIGKILL);
		MPI_Sendrecv_replace(&token, 1, MPI_INT, (rank + 1) % size, 0, (rank + size - 1) % size, 0, MPI_COMM_WORLD,
				     MPI_STATUS_IGNORE);
		MPI_Allreduce(MPI_IN_PLACE, &token, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	}
	if (!rank)
		printf("%d ranks, %d rounds\n", size, rounds);
	MPI_Finalize();
	return code;
}
