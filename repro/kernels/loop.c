/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Phases of a fixed piece of work and a call: a barrier, an all-reduce of a double, or a halo exchange with both neighbours on a ring,
 * after which MPI_Pcontrol marks the end of the phase.
 *
 *     loop PHASES TURNS barrier|allreduce|halo BYTES
 */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	uint64_t state = 1;
	int rank, ranks;

	MPI_Init(&argc, &argv);
	if (argc != 5)
		MPI_Abort(MPI_COMM_WORLD, 2);
	uint64_t phases = strtoull(argv[1], NULL, 10), turns = strtoull(argv[2], NULL, 10);
	int bytes = atoi(argv[4]);
	char *here = calloc((size_t)bytes, 1), *there = calloc((size_t)bytes, 1);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
	for (uint64_t phase = 0; phase < phases; phase++) {
		for (uint64_t turn = 0; turn < turns; turn++)
			state = state * 6364136223846793005u + 1442695040888963407u;
		double mine = (double)(state >> 63), all;
		if (!strcmp(argv[3], "barrier")) {
			MPI_Barrier(MPI_COMM_WORLD);
		} else if (!strcmp(argv[3], "allreduce")) {
			MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		} else {
			MPI_Sendrecv(here, bytes, MPI_BYTE, left, 1, there, bytes, MPI_BYTE, right, 1, MPI_COMM_WORLD,
				     MPI_STATUS_IGNORE);
			MPI_Sendrecv(here, bytes, MPI_BYTE, right, 2, there, bytes, MPI_BYTE, left, 2, MPI_COMM_WORLD,
				     MPI_STATUS_IGNORE);
			MPI_Pcontrol(1);
		}
	}
	MPI_Finalize();
	return 0;
}
