/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Wavefronts over a grid of ranks, as Sweep3D and the triangular solves of LU have them: block by block each rank receives from both
 * neighbours before it, works, and sends to both behind it. Sweep3D begins twice at each corner, for its eight octants; LU begins at one
 * corner and then at the opposite one. An all-reduce ends an iteration.
 *
 *     sweep ITERATIONS sweep3d|lu BLOCKS SIZE TURNS
 *
 * BLOCKS blocks are in an octant or a solve, SIZE doubles go from rank to rank in each, and TURNS passes over them are its work. The grid
 * is as even as possible, with ranks in the order of rows. Prints what the iterations took, in ns, on rank 0.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double *edge;
static int size, turns, rank, rows, columns;

/* A pass depends on the one before, so the compiler cannot leave any out. */
static void work(void)
{
	for (int turn = 0; turn < turns; turn++)
		for (int at = 1; at < size; at++)
			edge[at] = 0.5 * edge[at] + 0.25 * edge[at - 1] + 0.1;
}

static void receive(int from)
{
	if (from >= 0)
		MPI_Recv(edge, size, MPI_DOUBLE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send(int to)
{
	if (to >= 0)
		MPI_Send(edge, size, MPI_DOUBLE, to, 1, MPI_COMM_WORLD);
}

/* The neighbour some rows and columns away, or -1 beyond the grid. */
static int neighbour(int down, int right)
{
	int row = rank / columns + down, column = rank % columns + right;

	return row < 0 || row >= rows || column < 0 || column >= columns ? -1 : row * columns + column;
}

/* Wavefronts that go down or up by rows, and right or left by columns: 1 or -1 each. */
static void sweep(int blocks, int down, int right)
{
	for (int block = 0; block < blocks; block++) {
		receive(neighbour(-down, 0));
		receive(neighbour(0, -right));
		work();
		send(neighbour(down, 0));
		send(neighbour(0, right));
	}
}

int main(int argc, char **argv)
{
	int ranks, iterations, blocks, dims[2] = { 0, 0 };
	double begin, error, all;

	MPI_Init(&argc, &argv);
	if (argc != 6)
		MPI_Abort(MPI_COMM_WORLD, 2);
	iterations = atoi(argv[1]);
	blocks = atoi(argv[3]);
	size = atoi(argv[4]);
	turns = atoi(argv[5]);
	edge = calloc((size_t)size, sizeof(*edge));
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Dims_create(ranks, 2, dims);
	rows = dims[0];
	columns = dims[1];
	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	for (int iteration = 0; iteration < iterations; iteration++) {
		if (!strcmp(argv[2], "lu")) {
			sweep(blocks, 1, 1);
			sweep(blocks, -1, -1);
		} else {
			for (int octant = 0; octant < 8; octant++)
				sweep(blocks, octant & 4 ? 1 : -1, octant & 2 ? 1 : -1);
		}
		error = edge[size - 1];
		MPI_Allreduce(&error, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	}
	if (rank == 0)
		printf("%.0f\n", 1e9 * (MPI_Wtime() - begin));
	MPI_Finalize();
	return 0;
}
