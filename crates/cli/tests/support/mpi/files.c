/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Writes the file of its argument with all ranks, reads it again, and puts a number into the next rank's window.
 */
#include <mpi.h>
#include <stdlib.h>

int main(int count, char **words)
{
	int rank, ranks, many[256] = {0}, *base;
	MPI_File file;
	MPI_Win window;
	MPI_Init(&count, &words);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (MPI_File_open(MPI_COMM_WORLD, words[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS)
		MPI_Abort(MPI_COMM_WORLD, 3);
	MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
	MPI_File_write_at_all(file, 256 * rank, many, 256, MPI_INT, MPI_STATUS_IGNORE);
	MPI_File_sync(file);
	MPI_File_read_at(file, 256 * rank, many, 256, MPI_INT, MPI_STATUS_IGNORE);
	MPI_File_close(&file);
	MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, (rank + 1) % ranks, 0, window);
	MPI_Put(&rank, 1, MPI_INT, (rank + 1) % ranks, 0, 1, MPI_INT, window);
	MPI_Win_flush((rank + 1) % ranks, window);
	MPI_Win_unlock((rank + 1) % ranks, window);
	MPI_Win_free(&window);
	MPI_Finalize();
	return 0;
}
