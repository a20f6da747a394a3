/* Two threads of each rank exchange messages at once. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

static int rank, ranks;

static void *exchange(void *own)
{
	int tag = *(int *)own, value = 0, got;
	for (int i = 0; i < 200; i++) {
		MPI_Request requests[2];
		MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &requests[0]);
		MPI_Isend(&value, 1, MPI_INT, (rank + 1) % ranks, tag, MPI_COMM_WORLD, &requests[1]);
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int provided, tags[2] = { 1, 2 };
	pthread_t other;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	if (provided != MPI_THREAD_MULTIPLE)
		printf("no threads\n");
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	pthread_create(&other, NULL, exchange, &tags[0]);
	exchange(&tags[1]);
	pthread_join(other, NULL);
	MPI_Finalize();
	return 0;
}
