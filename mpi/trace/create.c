/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Creating and freeing communicators, windows and files. */
#include "trace.h"

#include <stdlib.h>

static void created(struct log *log, struct comm *parent, MPI_Comm made, enum call call)
{
	uint32_t count = comm_count(parent);
	put_collective(log, parent->number, QUELL_CREATE, -1, 0, 0, NULL);
	if (made != NO_COMM)
		comm_made(log, parent->identity, count, made, call_names[call]);
}

static void created_apart(struct log *log, uint64_t parent, int tag, MPI_Comm made, enum call call)
{
	if (made == NO_COMM)
		return;
	struct comm *comm = comm_made_apart(log, parent, tag, made, call_names[call]);
	put_collective(log, comm->number, QUELL_CREATE, -1, 0, 0, NULL);
}

#define MAKES(name, params, args) TRACED(name, params, args, begun(log), created(log, comm_of(comm), *made, CALL_##name))

MAKES(Comm_dup, (MPI_Comm comm, MPI_Comm *made), (comm, made))
MAKES(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *made), (comm, info, made))
MAKES(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *made), (comm, group, made))
MAKES(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *made), (comm, color, key, made))
MAKES(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made), (comm, type, key, info, made))
MAKES(Cart_create, (MPI_Comm comm, int count, const int sizes[], const int periods[], int reorder, MPI_Comm *made),
      (comm, count, sizes, periods, reorder, made))
MAKES(Cart_sub, (MPI_Comm comm, const int remain[], MPI_Comm *made), (comm, remain, made))
MAKES(Graph_create, (MPI_Comm comm, int nodes, const int index[], const int edges[], int reorder, MPI_Comm *made),
      (comm, nodes, index, edges, reorder, made))
MAKES(Dist_graph_create,
      (MPI_Comm comm, int n, const int nodes[], const int degrees[], const int targets[], const int weights[], MPI_Info info, int reorder,
       MPI_Comm *made),
      (comm, n, nodes, degrees, targets, weights, info, reorder, made))
MAKES(Dist_graph_create_adjacent,
      (MPI_Comm comm, int in, const int sources[], const int sourceweights[], int out, const int destinations[],
       const int destinationweights[], MPI_Info info, int reorder, MPI_Comm *made),
      (comm, in, sources, sourceweights, out, destinations, destinationweights, info, reorder, made))
MAKES(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm *made), (comm, high, made))

TRACED(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made), (comm, group, tag, made), begun(log),
       created_apart(log, comm_of(comm)->identity, tag, *made, CALL_Comm_create_group))
TRACED(Intercomm_create, (MPI_Comm local, int leader, MPI_Comm peer, int remote, int tag, MPI_Comm *made),
       (local, leader, peer, remote, tag, made), begun(log), created_apart(log, 4, tag, *made, CALL_Intercomm_create))

#define DUPLICATES(name, params, args)                                                                                            \
	TRACED(name, params, args,                                                                                                \
	       struct comm *parent = comm_of(comm); uint32_t count = comm_count(parent); uint64_t id = request_ids(1);            \
	       PUT(log, QUELL_TRACE_COLLECTIVE_POSTED, 0, parent->number, id),                                                    \
	       request_add(*request, (struct request){ .id = id, .kind = REQUEST_IDUP, .active = true, .operation = CALL_##name,  \
						       .comm = parent->number, .newcomm = made, .parent = parent->identity,       \
						       .count = count }))
DUPLICATES(Comm_idup, (MPI_Comm comm, MPI_Comm *made, MPI_Request *request), (comm, made, request))
#if MPI_VERSION >= 4
DUPLICATES(Comm_idup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *made, MPI_Request *request), (comm, info, made, request))
#endif

static void destroyed(struct log *log, struct comm *comm)
{
	put_collective(log, comm->number, QUELL_DESTROY, -1, 0, 0, NULL);
	comm_drop(comm);
}

TRACED(Comm_free, (MPI_Comm *comm), (comm), begun(log); struct comm *gone = comm_take(*comm), destroyed(log, gone))
TRACED(Comm_disconnect, (MPI_Comm *comm), (comm), begun(log); struct comm *gone = comm_take(*comm), destroyed(log, gone))

/* ---- Windows and files ---- */

/* The communicator of each window and file. */
static struct place {
	struct place *next;
	const void *handle;
	uint32_t comm;
} *places;

static void placed(struct log *log, const void *handle, MPI_Comm comm)
{
	struct place *place = malloc(sizeof(*place));
	uint32_t number = comm_of(comm)->number;
	put_collective(log, number, QUELL_CREATE, -1, 0, 0, NULL);
	if (!place)
		return;
	lock();
	*place = (struct place){ places, handle, number };
	places = place;
	unlock();
}

static uint32_t place_of(const void *handle, bool take)
{
	uint32_t comm = QUELL_TRACE_UNKNOWN;
	lock();
	struct place **at = &places, *found;
	while (*at && (*at)->handle != handle)
		at = &(*at)->next;
	found = *at;
	if (found) {
		comm = found->comm;
		if (take)
			*at = found->next;
	}
	unlock();
	if (take)
		free(found);
	return comm;
}

void collective_on(struct log *log, const void *handle)
{
	put_collective(log, place_of(handle, false), QUELL_BARRIER, -1, 0, 0, NULL);
}

#define WINDOW(name, params, args) TRACED(name, params, args, begun(log), placed(log, ADDRESS(*win), comm))
#define WINDOWS(NAME, SIZE, UNIT)                                                                                                     \
	WINDOW(NAME(Win_create), (void *base, MPI_Aint size, UNIT unit, MPI_Info info, MPI_Comm comm, MPI_Win *win),                  \
	       (base, size, unit, info, comm, win))                                                                                   \
	WINDOW(NAME(Win_allocate), (MPI_Aint size, UNIT unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win),                \
	       (size, unit, info, comm, base, win))                                                                                   \
	WINDOW(NAME(Win_allocate_shared), (MPI_Aint size, UNIT unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win),         \
	       (size, unit, info, comm, base, win))
#define SMALL_(name) name
#define LARGE_(name) name##_c
WINDOWS(SMALL_, MPI_Aint, int)
#if MPI_VERSION >= 4
WINDOWS(LARGE_, MPI_Aint, MPI_Aint)
#endif
WINDOW(Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win *win), (info, comm, win))
TRACED(File_open, (MPI_Comm comm, const char *name, int mode, MPI_Info info, MPI_File *file), (comm, name, mode, info, file), begun(log),
       placed(log, ADDRESS(*file), comm))

/* With MPI_MODE_NOPRECEDE, which all ranks then pass, no rank has operations before the fence, and none waits for the others. */
TRACED(Win_fence, (int assertion, MPI_Win win), (assertion, win), bool waits = !(assertion & MPI_MODE_NOPRECEDE); if (waits) begun(log),
       if (waits) collective_on(log, ADDRESS(win)))
TRACED(Win_free, (MPI_Win *win), (win), begun(log); uint32_t comm = place_of(ADDRESS(*win), true),
       put_collective(log, comm, QUELL_DESTROY, -1, 0, 0, NULL))
TRACED(File_close, (MPI_File *file), (file), begun(log); uint32_t comm = place_of(ADDRESS(*file), true),
       put_collective(log, comm, QUELL_DESTROY, -1, 0, 0, NULL))
