/* Messages as programs have them on any number of ranks that share a problem of 33 x 33 x 33: SHAPE [ROWS COLUMNS [LAYERS]]. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 33, ROUNDS = 2, WORDS = SIDE * SIDE };

static double out[WORDS], in[WORDS];
static int rank, size;

/* The extent of a part of a dimension: as even as possible, the first ones larger. */
static int part(int dim, int at)
{
	return SIDE / dim + (at < SIDE % dim);
}

static void swap_with(int peer, int words)
{
	MPI_Request request;

	MPI_Irecv(in, words, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, &request);
	MPI_Send(out, words, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void receive(int from, int words, int tag)
{
	MPI_Recv(in, words, MPI_DOUBLE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send(int to, int words, int tag)
{
	MPI_Send(out, words, MPI_DOUBLE, to, tag, MPI_COMM_WORLD);
}

/* From the first corner of a plane to the last one, and back. Ranks beyond an end are MPI_PROC_NULL. */
static void pipeline(int rows, int columns)
{
	const int row = rank / columns, column = rank % columns;
	const int wide = part(columns, column), high = part(rows, row);
	const int up = row > 0 ? rank - columns : MPI_PROC_NULL, down = row + 1 < rows ? rank + columns : MPI_PROC_NULL;
	const int left = column > 0 ? rank - 1 : MPI_PROC_NULL, right = column + 1 < columns ? rank + 1 : MPI_PROC_NULL;
	int plane;

	for (plane = 0; plane < SIDE; plane++) {
		receive(up, wide, 1);
		receive(left, high, 2);
		send(down, wide, 1);
		send(right, high, 2);
	}
	for (plane = 0; plane < SIDE; plane++) {
		receive(down, wide, 3);
		receive(right, high, 4);
		send(up, wide, 3);
		send(left, high, 4);
	}
}

/* With the neighbours at all sides of a cuboid. */
static void halo(const int dims[3])
{
	const int at[3] = {rank / dims[2] / dims[1], rank / dims[2] % dims[1], rank % dims[2]};
	MPI_Request requests[6];
	int dimension, way, stride = size, words, to[6];

	for (dimension = 0; dimension < 3; dimension++) {
		stride /= dims[dimension];
		to[2 * dimension] = at[dimension] > 0 ? rank - stride : MPI_PROC_NULL;
		to[2 * dimension + 1] = at[dimension] + 1 < dims[dimension] ? rank + stride : MPI_PROC_NULL;
	}
	for (way = 0; way < 6; way++)
		MPI_Irecv(in, WORDS, MPI_DOUBLE, to[way], way ^ 1, MPI_COMM_WORLD, &requests[way]);
	for (way = 0; way < 6; way++) {
		for (dimension = 0, words = 1; dimension < 3; dimension++)
			words *= dimension == way / 2 ? 1 : part(dims[dimension], at[dimension]);
		send(to[way], words, way);
	}
	MPI_Waitall(6, requests, MPI_STATUSES_IGNORE);
}

/* All-to-all exchanges of 64 Ki words, after their counts. */
static void transposes(void)
{
	const int words = 65536 / size;
	int *counts = calloc(2 * (size_t)size, sizeof *counts);
	double *block = calloc(2 * (size_t)words, sizeof *block);

	MPI_Alltoall(counts, 1, MPI_INT, counts + size, 1, MPI_INT, MPI_COMM_WORLD);
	MPI_Alltoall(block, words / size, MPI_DOUBLE, block + words, words / size, MPI_DOUBLE, MPI_COMM_WORLD);
	free(counts);
	free(block);
}

int main(int argc, char **argv)
{
	int dims[3] = {1, 1, 1}, round, bit;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (bit = 2; bit < argc && bit < 5; bit++)
		dims[bit - 2] = atoi(argv[bit]);
	for (round = 0; round < ROUNDS; round++) {
		if (!strcmp(argv[1], "pipeline"))
			pipeline(dims[0], dims[1]);
		else if (!strcmp(argv[1], "halo"))
			halo(dims);
		else if (!strcmp(argv[1], "transposes"))
			transposes();
		else if (!strcmp(argv[1], "powers"))
			for (bit = 1; bit < size; bit *= 2)
				swap_with(rank ^ bit, 1);
		else if (!strcmp(argv[1], "transposed"))
			swap_with(rank % dims[0] * dims[0] + rank / dims[0], 1);
		MPI_Allreduce(MPI_IN_PLACE, out, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	}
	MPI_Finalize();
	return 0;
}
