/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Included once for each kind of COUNT. */

ROW(NAME(Put), (const void *from, COUNT count, MPI_Datatype type, int rank, MPI_Aint at, COUNT theirs, MPI_Datatype theirtype, MPI_Win win),
    (from, count, type, rank, at, theirs, theirtype, win))
ROW(NAME(Get), (void *from, COUNT count, MPI_Datatype type, int rank, MPI_Aint at, COUNT theirs, MPI_Datatype theirtype, MPI_Win win),
    (from, count, type, rank, at, theirs, theirtype, win))
ROW(NAME(Accumulate), (const void *from, COUNT count, MPI_Datatype type, int rank, MPI_Aint at, COUNT theirs, MPI_Datatype theirtype, MPI_Op op, MPI_Win win),
    (from, count, type, rank, at, theirs, theirtype, op, win))
ROW(NAME(Get_accumulate),
    (const void *from, COUNT count, MPI_Datatype type, void *result, COUNT results, MPI_Datatype resulttype, int rank, MPI_Aint at,
     COUNT theirs, MPI_Datatype theirtype, MPI_Op op, MPI_Win win),
    (from, count, type, result, results, resulttype, rank, at, theirs, theirtype, op, win))
ROW(NAME(Rput), (const void *from, COUNT count, MPI_Datatype type, int rank, MPI_Aint at, COUNT theirs, MPI_Datatype theirtype, MPI_Win win, MPI_Request *request),
    (from, count, type, rank, at, theirs, theirtype, win, request))
ROW(NAME(Rget), (void *from, COUNT count, MPI_Datatype type, int rank, MPI_Aint at, COUNT theirs, MPI_Datatype theirtype, MPI_Win win, MPI_Request *request),
    (from, count, type, rank, at, theirs, theirtype, win, request))
ROW(NAME(Raccumulate), (const void *from, COUNT count, MPI_Datatype type, int rank, MPI_Aint at, COUNT theirs, MPI_Datatype theirtype, MPI_Op op, MPI_Win win, MPI_Request *request),
    (from, count, type, rank, at, theirs, theirtype, op, win, request))
ROW(NAME(Rget_accumulate),
    (const void *from, COUNT count, MPI_Datatype type, void *result, COUNT results, MPI_Datatype resulttype, int rank, MPI_Aint at,
     COUNT theirs, MPI_Datatype theirtype, MPI_Op op, MPI_Win win, MPI_Request *request),
    (from, count, type, result, results, resulttype, rank, at, theirs, theirtype, op, win, request))
