/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A wavefront over a chain of ranks, as Sweep3D and the solver of LU have it: block by block each rank receives from its neighbour, works,
 * and sends on; then the other way; an all-reduce ends an iteration. Few large blocks are like Sweep3D, many small ones like LU.
 *
 *     wavefront ITERATIONS BLOCKS SIZE TURNS
 *
 * SIZE doubles go from rank to rank in a block, and TURNS passes over them are its work. Prints what the iterations took, in ns, on rank 0.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double *edge;
static int size, turns;

/* A pass depends on the one before, so the compiler cannot leave any out. */
static void work(void)
{
	for (int turn = 0; turn < turns; turn++)
		for (int at = 1; at < size; at++)
			edge[at] = 0.5 * edge[at] + 0.25 * edge[at - 1] + 0.1;
}

static void sweep(int blocks, int from, int to)
{
	for (int block = 0; block < blocks; block++) {
		MPI_Recv(edge, size, MPI_DOUBLE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		work();
		MPI_Send(edge, size, MPI_DOUBLE, to, 1, MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	int rank, ranks, iterations, blocks, before, after;
	double begin, error, all;

	MPI_Init(&argc, &argv);
	if (argc != 5)
		MPI_Abort(MPI_COMM_WORLD, 2);
	iterations = atoi(argv[1]);
	blocks = atoi(argv[2]);
	size = atoi(argv[3]);
	turns = atoi(argv[4]);
	edge = calloc((size_t)size, sizeof(*edge));
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	before = rank > 0 ? rank - 1 : MPI_PROC_NULL;
	after = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	for (int iteration = 0; iteration < iterations; iteration++) {
		sweep(blocks, before, after);
		sweep(blocks, after, before);
		error = edge[size - 1];
		MPI_Allreduce(&error, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	}
	if (rank == 0)
		printf("%.0f\n", 1e9 * (MPI_Wtime() - begin));
	MPI_Finalize();
	return 0;
}
