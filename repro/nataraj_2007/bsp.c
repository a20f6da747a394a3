/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The program of Nataraj et al. 2007, section 4.1: phases of a fixed piece of work and an all-reduce. Usage: bsp PHASES TURNS.
 * Prints what the phases took, in ns, from a barrier before them.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	uint64_t phases = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
	uint64_t turns = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000;
	uint64_t state = 1, begin;
	double mine = 1, all;
	int rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Barrier(MPI_COMM_WORLD);
	begin = now_ns();
	for (uint64_t phase = 0; phase < phases; phase++) {
		for (uint64_t turn = 0; turn < turns; turn++)
			state = state * 6364136223846793005u + 1442695040888963407u;
		mine = (double)(state >> 63);
		MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	}
	if (rank == 0)
		printf("%llu\n", (unsigned long long)(now_ns() - begin));
	MPI_Finalize();
	return 0;
}
