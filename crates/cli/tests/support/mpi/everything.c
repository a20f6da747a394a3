/* Most kinds of MPI calls, on four ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, ranks;

static void messages(MPI_Comm comm)
{
	int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks, value = rank, got = -1, flag = 0;
	MPI_Request requests[4];
	MPI_Status status;
	MPI_Sendrecv(&value, 1, MPI_INT, right, 1, &got, 1, MPI_INT, left, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE);
	MPI_Sendrecv_replace(&value, 1, MPI_INT, left, 2, right, 2, comm, MPI_STATUS_IGNORE);
	for (int i = 0; i < 5; i++) {
		MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 10 + i, comm, &requests[0]);
		MPI_Isend(&value, 1, MPI_INT, right, 10 + i, comm, &requests[1]);
		MPI_Issend(&value, 1, MPI_INT, MPI_PROC_NULL, 3, comm, &requests[2]);
		MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
	}
	if (rank == 0) {
		for (int i = 1; i < ranks; i++) {
			MPI_Probe(MPI_ANY_SOURCE, 20, comm, &status);
			MPI_Recv(&got, 1, MPI_INT, status.MPI_SOURCE, 20, comm, MPI_STATUS_IGNORE);
		}
		for (int i = 1; i < ranks; i++) {
			MPI_Message message;
			MPI_Mprobe(MPI_ANY_SOURCE, 21, comm, &message, MPI_STATUS_IGNORE);
			if (i % 2)
				MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
			else {
				MPI_Imrecv(&got, 1, MPI_INT, &message, requests);
				MPI_Wait(requests, MPI_STATUS_IGNORE);
			}
		}
	} else {
		MPI_Ssend(&value, 1, MPI_INT, 0, 20, comm);
		MPI_Send(&value, 1, MPI_INT, 0, 21, comm);
	}
	MPI_Isend(&value, 1, MPI_INT, right, 22, comm, requests);
	while (!flag)
		MPI_Iprobe(left, 22, comm, &flag, MPI_STATUS_IGNORE);
	MPI_Recv(&got, 1, MPI_INT, left, MPI_ANY_TAG, comm, &status);
	for (flag = 0; !flag;)
		MPI_Test(requests, &flag, MPI_STATUS_IGNORE);
	MPI_Irecv(&got, 1, MPI_INT, left, 23, comm, requests);
	MPI_Cancel(requests);
	MPI_Wait(requests, MPI_STATUS_IGNORE);
}

static void persistent(MPI_Comm comm)
{
	int right = (rank + 1) % ranks, value[2] = { rank, rank }, got[2];
	MPI_Request requests[4];
	MPI_Recv_init(&got[0], 1, MPI_INT, MPI_ANY_SOURCE, 30, comm, &requests[0]);
	MPI_Recv_init(&got[1], 1, MPI_INT, MPI_ANY_SOURCE, 31, comm, &requests[1]);
	MPI_Send_init(&value[0], 1, MPI_INT, right, 30, comm, &requests[2]);
	MPI_Ssend_init(&value[1], 1, MPI_INT, right, 31, comm, &requests[3]);
	for (int round = 0; round < 3; round++) {
		int done = 0, places[4], count, flag;
		MPI_Startall(3, requests);
		MPI_Start(&requests[3]);
		while (done < 4) {
			if (round == 0) {
				MPI_Waitsome(4, requests, &count, places, MPI_STATUSES_IGNORE);
				done += count;
			} else if (round == 1) {
				MPI_Testany(4, requests, places, &flag, MPI_STATUS_IGNORE);
				done += flag && places[0] != MPI_UNDEFINED;
			} else {
				MPI_Waitany(4, requests, places, MPI_STATUS_IGNORE);
				done++;
			}
		}
		MPI_Barrier(comm);
	}
	for (int i = 0; i < 4; i++)
		MPI_Request_free(&requests[i]);
}

static void collectives(MPI_Comm comm)
{
	int value = rank, sum, all[64], counts[64], places[64], more[64];
	MPI_Request requests[3];
	for (int i = 0; i < ranks; i++) {
		counts[i] = 1;
		places[i] = i;
		more[i] = i;
	}
	MPI_Bcast(&value, 1, MPI_INT, 1, comm);
	MPI_Reduce(rank ? &value : MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, 0, comm);
	MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, comm);
	/* What is not significant need not be a type. */
	if (rank == 2)
		MPI_Gather(&value, 1, MPI_INT, all, 1, MPI_INT, 2, comm);
	else
		MPI_Gather(&value, 1, MPI_INT, NULL, -1, MPI_DATATYPE_NULL, 2, comm);
	MPI_Gatherv(&value, 1, MPI_INT, all, counts, places, MPI_INT, 0, comm);
	MPI_Scatter(more, 1, MPI_INT, rank == 1 ? MPI_IN_PLACE : (void *)&value, 1, MPI_INT, 1, comm);
	MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, comm);
	MPI_Allgatherv(&value, 1, MPI_INT, all, counts, places, MPI_INT, comm);
	MPI_Alltoall(more, 1, MPI_INT, all, 1, MPI_INT, comm);
	MPI_Alltoallv(more, counts, places, MPI_INT, all, counts, places, MPI_INT, comm);
	MPI_Reduce_scatter_block(more, &sum, 1, MPI_INT, MPI_SUM, comm);
	MPI_Scan(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
	MPI_Exscan(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
	MPI_Ibarrier(comm, &requests[0]);
	MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[1]);
	MPI_Ibcast(&value, 1, MPI_INT, 0, comm, &requests[2]);
	MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
}

static void neighbors(void)
{
	int sizes[2] = { 2, ranks / 2 }, periods[2] = { 1, 0 }, out[4] = { 0 }, in[4];
	MPI_Comm grid, row;
	MPI_Request request;
	MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 0, &grid);
	MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, grid);
	MPI_Ineighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, grid, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	int keep[2] = { 1, 0 };
	MPI_Cart_sub(grid, keep, &row);
	MPI_Barrier(row);
	MPI_Comm_free(&row);
	MPI_Comm_free(&grid);
}

static void communicators(void)
{
	MPI_Comm half, other, both, group_comm, copy;
	MPI_Group world, group;
	MPI_Request request;
	int value = rank, first[2] = { 0, 1 };
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
	MPI_Bcast(&value, 1, MPI_INT, 0, half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? ranks - 2 : ranks - 1, 5, &other);
	int own;
	MPI_Comm_rank(other, &own);
	if (rank % 2)
		MPI_Send(&value, 1, MPI_INT, own, 40, other);
	else
		MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 40, other, MPI_STATUS_IGNORE);
	MPI_Intercomm_merge(other, rank % 2, &both);
	MPI_Barrier(both);
	MPI_Comm_free(&both);
	MPI_Comm_free(&other);
	MPI_Comm_free(&half);
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 2, first, &group);
	for (int round = 0; round < 2 && rank < 2; round++) {
		MPI_Comm_create_group(MPI_COMM_WORLD, group, 6, &group_comm);
		MPI_Barrier(group_comm);
		MPI_Comm_disconnect(&group_comm);
	}
	MPI_Comm_create(MPI_COMM_WORLD, group, &copy);
	if (copy != MPI_COMM_NULL) {
		MPI_Barrier(copy);
		MPI_Comm_free(&copy);
	}
	MPI_Comm_idup(MPI_COMM_WORLD, &copy, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	messages(copy);
	MPI_Comm_free(&copy);
	MPI_Barrier(MPI_COMM_SELF);
	MPI_Group_free(&group);
	MPI_Group_free(&world);
}

static void windows(void)
{
	MPI_Win win;
	int *memory, value = rank;
	MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	MPI_Win_fence(0, win);
	MPI_Put(&value, 1, MPI_INT, (rank + 1) % ranks, 0, 1, MPI_INT, win);
	MPI_Win_fence(0, win);
	MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Pcontrol(1);
	messages(MPI_COMM_WORLD);
	persistent(MPI_COMM_WORLD);
	MPI_Pcontrol(2);
	collectives(MPI_COMM_WORLD);
	neighbors();
	MPI_Pcontrol(-2);
	communicators();
	windows();
#if MPI_VERSION >= 4
	MPI_Request request;
	MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request);
	for (int round = 0; round < 2; round++) {
		MPI_Start(&request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	MPI_Request_free(&request);
	MPI_Bcast_c(&rank, (MPI_Count)0, MPI_INT, 0, MPI_COMM_WORLD);
#endif
	MPI_Finalize();
	return 0;
}
