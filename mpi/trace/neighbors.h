/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The neighbour collectives, included once for each kind of COUNT and PLACE: name, parameters, arguments, and the bytes to and from the
 * neighbour at index `i`. */

ROW(allgather, (const void *from, COUNT sends, MPI_Datatype send, void *to, COUNT receives, MPI_Datatype receive, MPI_Comm comm),
    (from, sends, send, to, receives, receive, comm), bytes_of(sends, send), bytes_of(receives, receive))

ROW(allgatherv,
    (const void *from, COUNT sends, MPI_Datatype send, void *to, const COUNT receives[], const PLACE places[], MPI_Datatype receive,
     MPI_Comm comm),
    (from, sends, send, to, receives, places, receive, comm), bytes_of(sends, send), bytes_of(receives[i], receive))

ROW(alltoall, (const void *from, COUNT sends, MPI_Datatype send, void *to, COUNT receives, MPI_Datatype receive, MPI_Comm comm),
    (from, sends, send, to, receives, receive, comm), bytes_of(sends, send), bytes_of(receives, receive))

ROW(alltoallv,
    (const void *from, const COUNT sends[], const PLACE froms[], MPI_Datatype send, void *to, const COUNT receives[], const PLACE tos[],
     MPI_Datatype receive, MPI_Comm comm),
    (from, sends, froms, send, to, receives, tos, receive, comm), bytes_of(sends[i], send), bytes_of(receives[i], receive))

ROW(alltoallw,
    (const void *from, const COUNT sends[], const MPI_Aint froms[], const MPI_Datatype send[], void *to, const COUNT receives[],
     const MPI_Aint tos[], const MPI_Datatype receive[], MPI_Comm comm),
    (from, sends, froms, send, to, receives, tos, receive, comm), bytes_of(sends[i], send[i]), bytes_of(receives[i], receive[i]))
