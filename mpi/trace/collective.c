/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Collectives: each is a row of collectives.h, from which all its forms are generated here: blocking, non-blocking, persistent, and for
 * large counts. */
#include "trace.h"

static void posted(struct log *log, const struct comm *comm, uint64_t id)
{
	PUT(log, QUELL_TRACE_COLLECTIVE_POSTED, 0, comm->number, id);
}

#define OPEN_(...) __VA_ARGS__
#define OPEN(list) OPEN_ list

/* The arguments are known to be valid once the MPI has accepted them, so sizes are computed after the call. */
#define BLOCKING(name, what, params, args, from_root, out_bytes, in_bytes)               \
	TRACED(name, params, args, begun(log),                                      \
	       struct comm *in = comm_of(comm);                                     \
	       put_collective(log, in->number, what, from_root, out_bytes, in_bytes, NULL))

#define PENDING(name, what, params, args, from_root, out_bytes, in_bytes)                                                  \
	TRACED(name, (OPEN(params), MPI_Request *request), (OPEN(args), request),                                     \
	       struct comm *in = comm_of(comm); uint64_t id = request_ids(1); posted(log, in, id),                    \
	       request_add(*request, (struct request){ .id = id, .kind = REQUEST_COLLECTIVE, .active = true,          \
						       .operation = what, .peer = from_root, .comm = in->number,      \
						       .sent = out_bytes, .received = in_bytes }))

#define PERSISTENT(name, what, params, args, from_root, out_bytes, in_bytes)                                                       \
	TRACED(name, (OPEN(params), MPI_Info info, MPI_Request *request), (OPEN(args), info, request), ,                      \
	       struct comm *in = comm_of(comm);                                                                               \
	       request_add(*request, (struct request){ .kind = REQUEST_COLLECTIVE, .persistent = true, .operation = what, \
						       .peer = from_root, .comm = in->number, .sent = out_bytes, .received = in_bytes }))

#if MPI_VERSION >= 4
#define ROW(name, iname, operation, params, args, root, sent, received)            \
	BLOCKING(NAME(name), operation, params, args, root, sent, received)        \
	PENDING(NAME(iname), operation, params, args, root, sent, received)        \
	PERSISTENT(NAME(name##_init), operation, params, args, root, sent, received)
#else
#define ROW(name, iname, operation, params, args, root, sent, received)            \
	BLOCKING(NAME(name), operation, params, args, root, sent, received)        \
	PENDING(NAME(iname), operation, params, args, root, sent, received)
#endif

#define NAME(name) name
ROW(Barrier, Ibarrier, QUELL_BARRIER, (MPI_Comm comm), (comm), -1, 0, 0)
#define COUNT int
#define PLACE int
#define sum_of sum_of_small
#define sum_each sum_each_small
#include "collectives.h"
#undef NAME
#undef COUNT
#undef PLACE
#undef sum_of
#undef sum_each

#if MPI_VERSION >= 4
#define NAME(name) name##_c
#define COUNT MPI_Count
#define PLACE MPI_Aint
#define sum_of sum_of_large
#define sum_each sum_each_large
#include "collectives.h"
#endif
