/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Starting, testing and completing requests. The MPI overwrites the handles of completed requests, so they are copied before the call. */
#include "trace.h"

#include <stdlib.h>

/* Buffers for the handles and statuses of a call, kept from call to call. */
static __thread struct room {
	MPI_Request *handles;
	MPI_Status *statuses;
	int size;
} room;

static bool room_for(int count)
{
	if (count <= room.size)
		return true;
	int size = count + count / 2 + 16;
	MPI_Request *handles = realloc(room.handles, sizeof(*handles) * (size_t)size);
	if (handles)
		room.handles = handles;
	MPI_Status *statuses = realloc(room.statuses, sizeof(*statuses) * (size_t)size);
	if (statuses)
		room.statuses = statuses;
	room.size = handles && statuses ? size : 0;
	return room.size;
}

/* Copies the handles, and provides statuses if the program ignores them: a status names the sender. */
static bool remember(int count, const MPI_Request requests[], MPI_Status **statuses)
{
	if (count <= 0 || !room_for(count))
		return false;
	memcpy(room.handles, requests, sizeof(*requests) * (size_t)count);
	if (*statuses == MPI_STATUSES_IGNORE)
		*statuses = room.statuses;
	return true;
}

static void pending(struct log *log, MPI_Request handle)
{
	struct request *request = handle == NO_REQUEST ? NULL : request_find(handle);
	if (request && request->active)
		PUT(log, QUELL_TRACE_PENDING, 0, 0, request->id);
}

static void all_done(struct log *log, bool known, int count, MPI_Status *statuses)
{
	for (int i = 0; known && i < count; i++)
		request_done(log, room.handles[i], &statuses[i]);
}

static void some_done(struct log *log, bool known, int count, const int *places, MPI_Status *statuses)
{
	if (!known || count == MPI_UNDEFINED)
		return;
	for (int i = 0; i < count; i++)
		request_done(log, room.handles[places[i]], &statuses[i]);
}

static void one_done(struct log *log, bool known, int place, MPI_Status *status)
{
	if (known && place != MPI_UNDEFINED)
		request_done(log, room.handles[place], status);
}

static void one_failed(struct log *log, MPI_Request handle, MPI_Request now)
{
	if (now == NO_REQUEST)
		request_lost(log, handle);
}

/* The MPI may have released some requests, whose handles it then reuses. If the error is in the statuses, `done` requests succeeded: those
 * at these places, or else the first. */
static void failed(struct log *log, int code, bool known, int count, const MPI_Request requests[], int done, const int *places,
		   MPI_Status *statuses)
{
	int class = MPI_SUCCESS;
	if (!known)
		return;
	REAL(Error_class)(code, &class);
	for (int i = 0; class == MPI_ERR_IN_STATUS && i < done; i++) {
		int place = places ? places[i] : i;
		if (requests[place] != NO_REQUEST || statuses[i].MPI_ERROR != MPI_SUCCESS)
			continue;
		request_done(log, room.handles[place], &statuses[i]);
		room.handles[place] = NO_REQUEST;
	}
	for (int i = 0; i < count; i++)
		one_failed(log, room.handles[i], requests[i]);
}

#define OWN                              \
	MPI_Status own;                  \
	if (status == MPI_STATUS_IGNORE) \
		status = &own

TRACED_OR(Wait, (MPI_Request *request, MPI_Status *status), (request, status),
	  OWN; MPI_Request handle = *request, request_done(log, handle, status), one_failed(log, handle, *request))
TRACED_OR(Test, (MPI_Request *request, int *flag, MPI_Status *status), (request, flag, status),
	  OWN; MPI_Request handle = *request, if (*flag) request_done(log, handle, status); else pending(log, handle),
	  one_failed(log, handle, *request))

TRACED_OR(Waitall, (int count, MPI_Request requests[], MPI_Status *statuses), (count, requests, statuses),
	  bool known = remember(count, requests, &statuses), all_done(log, known, count, statuses),
	  failed(log, code, known, count, requests, count, NULL, statuses))
TRACED_OR(Testall, (int count, MPI_Request requests[], int *flag, MPI_Status *statuses), (count, requests, flag, statuses),
	  bool known = remember(count, requests, &statuses), all_done(log, known && *flag, count, statuses),
	  failed(log, code, known, count, requests, count, NULL, statuses))

#define REMEMBER_ANY                      \
	OWN;                              \
	MPI_Status *none = status;        \
	bool known = remember(count, requests, &none)

TRACED_OR(Waitany, (int count, MPI_Request requests[], int *place, MPI_Status *status), (count, requests, place, status),
	  REMEMBER_ANY, one_done(log, known, *place, status), failed(log, code, known, count, requests, 0, NULL, NULL))
TRACED_OR(Testany, (int count, MPI_Request requests[], int *place, int *flag, MPI_Status *status),
	  (count, requests, place, flag, status),
	  REMEMBER_ANY, one_done(log, known && *flag, *place, status), failed(log, code, known, count, requests, 0, NULL, NULL))

TRACED_OR(Waitsome, (int count, MPI_Request requests[], int *done, int *places, MPI_Status *statuses),
	  (count, requests, done, places, statuses),
	  bool known = remember(count, requests, &statuses), some_done(log, known, *done, places, statuses),
	  failed(log, code, known, count, requests, *done, places, statuses))
TRACED_OR(Testsome, (int count, MPI_Request requests[], int *done, int *places, MPI_Status *statuses),
	  (count, requests, done, places, statuses),
	  bool known = remember(count, requests, &statuses), some_done(log, known, *done, places, statuses),
	  failed(log, code, known, count, requests, *done, places, statuses))

TRACED(Request_get_status, (MPI_Request request, int *flag, MPI_Status *status), (request, flag, status), ,
       if (!*flag) pending(log, request))

static void start_all(struct log *log, int count, const MPI_Request requests[])
{
	for (int i = 0; i < count; i++)
		request_start(log, requests[i]);
}

TRACED(Start, (MPI_Request *request), (request), request_start(log, *request), )
TRACED(Startall, (int count, MPI_Request requests[]), (count, requests), start_all(log, count, requests), )

static void cancelling(MPI_Request handle)
{
	struct request *request = request_find(handle);
	if (request)
		request->cancelling = true;
}

TRACED(Cancel, (MPI_Request *request), (request), cancelling(*request), )

TRACED(Request_free, (MPI_Request *request), (request), request_lost(log, *request), )
