/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The collectives, included once for each kind of COUNT and PLACE: name, non-blocking name, operation, parameters, arguments, root, and
 * the bytes in the buffers that this rank sends from and receives into. Only arguments that are significant on this rank may be used:
 * the others need not be valid types or counts. `in` is the communicator's record.
 */

static inline uint64_t sum_of(const COUNT counts[], int ranks, MPI_Datatype type)
{
	MPI_Count sum = 0;
	for (int i = 0; i < ranks; i++)
		sum += counts[i];
	return bytes_of(sum, type);
}

static inline uint64_t sum_each(const COUNT counts[], int ranks, const MPI_Datatype types[])
{
	uint64_t sum = 0;
	for (int i = 0; i < ranks; i++)
		sum += bytes_of(counts[i], types[i]);
	return sum;
}

#define ROOT is_root(in, root)
#define LEAF is_leaf(in, root)
#define IN_PLACE(buf) ((buf) == MPI_IN_PLACE)

ROW(Bcast, Ibcast, QUELL_BCAST, (void *buf, COUNT count, MPI_Datatype type, int root, MPI_Comm comm), (buf, count, type, root, comm), root,
    (ROOT ? bytes_of(count, type) : 0), (!ROOT && LEAF ? bytes_of(count, type) : 0))

ROW(Gather, Igather, QUELL_GATHER,
    (const void *from, COUNT sends, MPI_Datatype send, void *to, COUNT receives, MPI_Datatype receive, int root, MPI_Comm comm),
    (from, sends, send, to, receives, receive, root, comm), root,
    (LEAF && !IN_PLACE(from) ? bytes_of(sends, send) : 0), (ROOT ? bytes_of((MPI_Count)receives * peers(in), receive) : 0))

ROW(Gatherv, Igatherv, QUELL_GATHERV,
    (const void *from, COUNT sends, MPI_Datatype send, void *to, const COUNT receives[], const PLACE places[], MPI_Datatype receive,
     int root, MPI_Comm comm),
    (from, sends, send, to, receives, places, receive, root, comm), root,
    (LEAF && !IN_PLACE(from) ? bytes_of(sends, send) : 0), (ROOT ? sum_of(receives, peers(in), receive) : 0))

ROW(Scatter, Iscatter, QUELL_SCATTER,
    (const void *from, COUNT sends, MPI_Datatype send, void *to, COUNT receives, MPI_Datatype receive, int root, MPI_Comm comm),
    (from, sends, send, to, receives, receive, root, comm), root,
    (ROOT ? bytes_of((MPI_Count)sends * peers(in), send) : 0), (LEAF && !IN_PLACE(to) ? bytes_of(receives, receive) : 0))

ROW(Scatterv, Iscatterv, QUELL_SCATTERV,
    (const void *from, const COUNT sends[], const PLACE places[], MPI_Datatype send, void *to, COUNT receives, MPI_Datatype receive,
     int root, MPI_Comm comm),
    (from, sends, places, send, to, receives, receive, root, comm), root,
    (ROOT ? sum_of(sends, peers(in), send) : 0), (LEAF && !IN_PLACE(to) ? bytes_of(receives, receive) : 0))

ROW(Allgather, Iallgather, QUELL_ALLGATHER,
    (const void *from, COUNT sends, MPI_Datatype send, void *to, COUNT receives, MPI_Datatype receive, MPI_Comm comm),
    (from, sends, send, to, receives, receive, comm), -1,
    (IN_PLACE(from) ? bytes_of(receives, receive) : bytes_of(sends, send)), bytes_of((MPI_Count)receives * peers(in), receive))

ROW(Allgatherv, Iallgatherv, QUELL_ALLGATHERV,
    (const void *from, COUNT sends, MPI_Datatype send, void *to, const COUNT receives[], const PLACE places[], MPI_Datatype receive,
     MPI_Comm comm),
    (from, sends, send, to, receives, places, receive, comm), -1,
    (IN_PLACE(from) ? bytes_of(receives[in->rank], receive) : bytes_of(sends, send)), sum_of(receives, peers(in), receive))

ROW(Alltoall, Ialltoall, QUELL_ALLTOALL,
    (const void *from, COUNT sends, MPI_Datatype send, void *to, COUNT receives, MPI_Datatype receive, MPI_Comm comm),
    (from, sends, send, to, receives, receive, comm), -1,
    (IN_PLACE(from) ? bytes_of((MPI_Count)receives * peers(in), receive) : bytes_of((MPI_Count)sends * peers(in), send)),
    bytes_of((MPI_Count)receives * peers(in), receive))

ROW(Alltoallv, Ialltoallv, QUELL_ALLTOALLV,
    (const void *from, const COUNT sends[], const PLACE froms[], MPI_Datatype send, void *to, const COUNT receives[], const PLACE tos[],
     MPI_Datatype receive, MPI_Comm comm),
    (from, sends, froms, send, to, receives, tos, receive, comm), -1,
    (IN_PLACE(from) ? sum_of(receives, peers(in), receive) : sum_of(sends, peers(in), send)), sum_of(receives, peers(in), receive))

ROW(Alltoallw, Ialltoallw, QUELL_ALLTOALLW,
    (const void *from, const COUNT sends[], const PLACE froms[], const MPI_Datatype send[], void *to, const COUNT receives[],
     const PLACE tos[], const MPI_Datatype receive[], MPI_Comm comm),
    (from, sends, froms, send, to, receives, tos, receive, comm), -1,
    (IN_PLACE(from) ? sum_each(receives, peers(in), receive) : sum_each(sends, peers(in), send)), sum_each(receives, peers(in), receive))

ROW(Allreduce, Iallreduce, QUELL_ALLREDUCE, (const void *from, void *to, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
    (from, to, count, type, op, comm), -1, bytes_of(count, type), bytes_of(count, type))

ROW(Reduce, Ireduce, QUELL_REDUCE, (const void *from, void *to, COUNT count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
    (from, to, count, type, op, root, comm), root, (LEAF ? bytes_of(count, type) : 0), (ROOT ? bytes_of(count, type) : 0))

ROW(Reduce_scatter, Ireduce_scatter, QUELL_REDUCE_SCATTER,
    (const void *from, void *to, const COUNT counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm), (from, to, counts, type, op, comm), -1,
    sum_of(counts, in->size, type), bytes_of(counts[in->rank], type))

ROW(Reduce_scatter_block, Ireduce_scatter_block, QUELL_REDUCE_SCATTER_BLOCK,
    (const void *from, void *to, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm), (from, to, count, type, op, comm), -1,
    bytes_of((MPI_Count)count * in->size, type), bytes_of(count, type))

ROW(Scan, Iscan, QUELL_SCAN, (const void *from, void *to, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
    (from, to, count, type, op, comm), -1, bytes_of(count, type), bytes_of(count, type))

ROW(Exscan, Iexscan, QUELL_EXSCAN, (const void *from, void *to, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
    (from, to, count, type, op, comm), -1, bytes_of(count, type), bytes_of(count, type))

#undef ROOT
#undef LEAF
#undef IN_PLACE
