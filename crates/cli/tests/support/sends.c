/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Rank 0 sends messages of several sizes to rank 1, which sleeps until long after each send began.
 */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **words)
{
	static const int sizes[] = {8, 256, 257, 4096, 1 << 20};
	char *bytes = calloc(1, 1 << 20);
	int rank;
	MPI_Init(&count, &words);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < 25; i++) {
		int size = sizes[i % 5];
		MPI_Barrier(MPI_COMM_WORLD);
		usleep(rank ? 40000 : 20000);
		if (rank == 0)
			MPI_Send(bytes, size, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
		else
			MPI_Recv(bytes, size, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		usleep(20000);
	}
	MPI_Finalize();
	free(bytes);
	return 0;
}
