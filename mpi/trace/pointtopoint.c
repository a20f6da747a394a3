/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Messages from one rank to another. pointtopoint.h has the calls that exist twice, with small counts and with large ones. */
#include "trace.h"

#define NAME(name) name
#define COUNT int
#include "pointtopoint.h"
#undef NAME
#undef COUNT

#if MPI_VERSION >= 4
#define NAME(name) name##_c
#define COUNT MPI_Count
#include "pointtopoint.h"
#undef NAME
#undef COUNT
#endif

static void probed(struct log *log, MPI_Comm comm, const MPI_Status *status)
{
	if (status->MPI_SOURCE >= 0)
		PUT(log, QUELL_TRACE_PROBED, 0, (uint32_t)status->MPI_TAG, two(comm_of(comm)->number, (uint32_t)status->MPI_SOURCE));
}

static void matched(MPI_Message message, MPI_Comm comm)
{
	if (message != NO_MESSAGE && message != NO_PROC_MESSAGE)
		message_add(message, comm_of(comm)->number);
}

#define OWN_STATUS                         \
	MPI_Status own;                    \
	if (status == MPI_STATUS_IGNORE)   \
		status = &own

TRACED(Probe, (int from, int tag, MPI_Comm comm, MPI_Status *status), (from, tag, comm, status),
       OWN_STATUS, probed(log, comm, status))
TRACED(Iprobe, (int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status), (from, tag, comm, flag, status),
       OWN_STATUS, if (*flag) probed(log, comm, status))
TRACED(Mprobe, (int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status), (from, tag, comm, message, status),
       OWN_STATUS, probed(log, comm, status); matched(*message, comm))
TRACED(Improbe, (int from, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status),
       (from, tag, comm, flag, message, status),
       OWN_STATUS, if (*flag) { probed(log, comm, status); matched(*message, comm); })
