/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Rank 0 sends messages of several sizes to rank 1, which sleeps until long after each send began. How rank 0 sends is the argument: by
 * `send`, by `sendrecv`, or by `waitall` for the send and a receive. Rank 1 sends it a short message before it sleeps.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void sends(const char *how, char *out, int size, char *in)
{
	if (!strcmp(how, "sendrecv")) {
		MPI_Sendrecv(out, size, MPI_CHAR, 1, 0, in, 8, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else if (!strcmp(how, "waitall")) {
		MPI_Request both[2];
		MPI_Irecv(in, 8, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &both[0]);
		MPI_Isend(out, size, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &both[1]);
		MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
	} else {
		MPI_Send(out, size, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(in, 8, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

int main(int count, char **words)
{
	static const int sizes[] = {8, 256, 257, 4096, 1 << 20};
	char *bytes = calloc(1, 1 << 20), few[8] = "";
	int rank;
	MPI_Init(&count, &words);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < 25; i++) {
		int size = sizes[i % 5];
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank == 0) {
			usleep(60000);
			sends(words[1], bytes, size, few);
		} else {
			MPI_Send(few, 8, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
			usleep(120000);
			MPI_Recv(bytes, size, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		}
		usleep(60000);
	}
	MPI_Finalize();
	free(bytes);
	return 0;
}
