/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Records of messages and collectives. */
#include "trace.h"

void put_send(struct log *log, uint32_t comm, int to, uint32_t tag, uint64_t bytes, const uint64_t *request)
{
	const uint64_t words[3] = { two(comm, (uint32_t)to), bytes, request ? *request : 0 };
	if (to != MPI_PROC_NULL)
		put(log, QUELL_TRACE_SEND, 0, tag, words, request ? 3 : 2);
}

void put_recv(struct log *log, uint32_t comm, int from, uint32_t tag, uint64_t bytes, const uint64_t *request)
{
	const uint64_t words[3] = { two(comm, (uint32_t)from), bytes, request ? *request : 0 };
	if (from != MPI_PROC_NULL)
		put(log, QUELL_TRACE_RECV, 0, tag, words, request ? 3 : 2);
}

void put_posted(struct log *log, uint32_t comm, int from, int tag, uint64_t request)
{
	uint32_t peer = from == MPI_ANY_SOURCE ? QUELL_TRACE_UNKNOWN : (uint32_t)from;
	if (from != MPI_PROC_NULL)
		PUT(log, QUELL_TRACE_POSTED, 0, tag == MPI_ANY_TAG ? QUELL_TRACE_UNKNOWN : (uint32_t)tag, two(comm, peer), request);
}

/* The size of a message, in bytes. Where the header shows the field, it is read without a call. */
static uint64_t received(const MPI_Status *status)
{
#if defined(OPEN_MPI)
	return status->_ucount;
#elif defined(MPICH_NUMVERSION)
	return (uint64_t)((unsigned)status->count_hi_and_cancelled >> 1) << 32 | (unsigned)status->count_lo;
#else
	MPI_Count bytes = 0;
	return REAL(Get_elements_x)(status, BYTE, &bytes) == MPI_SUCCESS && bytes > 0 ? (uint64_t)bytes : 0;
#endif
}

void put_status(struct log *log, uint32_t comm, const MPI_Status *status, const uint64_t *request)
{
	if (status->MPI_SOURCE >= 0)
		put_recv(log, comm, status->MPI_SOURCE, (uint32_t)status->MPI_TAG, received(status), request);
}

void put_collective(struct log *log, uint32_t comm, unsigned operation, int root, uint64_t sent, uint64_t received, const uint64_t *request)
{
	/* MPI_ROOT and MPI_PROC_NULL are negative, and not ranks that other processes know. */
	const uint64_t words[4] = { two(comm, root < 0 ? QUELL_TRACE_UNKNOWN : (uint32_t)root), sent, received, request ? *request : 0 };
	put(log, QUELL_TRACE_COLLECTIVE, operation, comm, words, request ? 4 : 3);
}
