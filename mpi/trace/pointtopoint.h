/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Included once for each kind of COUNT, with NAME giving the call's name for it. The actions are functions because a comma would separate
 * a macro's arguments. */

#define OWN MPI_Status own; if (status == MPI_STATUS_IGNORE) status = &own

#define SENDS(name)                                                                                                    \
	TRACED(NAME(name), (const void *buf, COUNT count, MPI_Datatype type, int to, int tag, MPI_Comm comm),          \
	       (buf, count, type, to, tag, comm),                                                                      \
	       put_send(log, comm_of(comm)->number, to, (uint32_t)tag, bytes_of(count, type), NULL), )
SENDS(Send)
SENDS(Bsend)
SENDS(Ssend)
SENDS(Rsend)
#undef SENDS

/* The send is recorded before the call, because the message may arrive before the call returns, whichever send mode it has. */
#define ISENDS(name)                                                                                                    \
	TRACED(NAME(name),                                                                                              \
	       (const void *buf, COUNT count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request), \
	       (buf, count, type, to, tag, comm, request),                                                              \
	       uint64_t id = request_ids(1); uint32_t in = comm_of(comm)->number;                                       \
	       put_send(log, in, to, (uint32_t)tag, bytes_of(count, type), &id),                                        \
	       if (to != MPI_PROC_NULL) request_add(*request, (struct request){ .id = id, .kind = REQUEST_SEND, .active = true, .peer = to, .comm = in }))
ISENDS(Isend)
ISENDS(Ibsend)
ISENDS(Issend)
ISENDS(Irsend)
#undef ISENDS

#define INITS(name)                                                                                                     \
	TRACED(NAME(name),                                                                                              \
	       (const void *buf, COUNT count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request), \
	       (buf, count, type, to, tag, comm, request), ,                                                            \
	       request_add(*request, (struct request){ .kind = REQUEST_SEND, .persistent = true, .peer = to, .tag = tag,  \
						       .comm = comm_of(comm)->number, .sent = bytes_of(count, type) }))
INITS(Send_init)
INITS(Bsend_init)
INITS(Ssend_init)
INITS(Rsend_init)
#undef INITS

TRACED(NAME(Recv), (void *buf, COUNT count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status),
       (buf, count, type, from, tag, comm, status), OWN, put_status(log, comm_of(comm)->number, status, NULL))

TRACED(NAME(Irecv), (void *buf, COUNT count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request),
       (buf, count, type, from, tag, comm, request),
       uint64_t id = request_ids(1); uint32_t in = comm_of(comm)->number; put_posted(log, in, from, tag, id),
       if (from != MPI_PROC_NULL) request_add(*request, (struct request){ .id = id, .kind = REQUEST_RECV, .active = true, .comm = in }))

TRACED(NAME(Recv_init), (void *buf, COUNT count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request),
       (buf, count, type, from, tag, comm, request), ,
       request_add(*request, (struct request){ .kind = REQUEST_RECV, .persistent = true, .peer = from, .tag = tag,
					       .comm = comm_of(comm)->number }))

TRACED(NAME(Mrecv), (void *buf, COUNT count, MPI_Datatype type, MPI_Message *message, MPI_Status *status),
       (buf, count, type, message, status), OWN; uint32_t in = message_take(*message), put_status(log, in, status, NULL))

TRACED(NAME(Imrecv), (void *buf, COUNT count, MPI_Datatype type, MPI_Message *message, MPI_Request *request),
       (buf, count, type, message, request),
       uint64_t id = request_ids(1); uint32_t in = message_take(*message); if (in != QUELL_TRACE_UNKNOWN) put_posted(log, in, MPI_ANY_SOURCE, MPI_ANY_TAG, id),
       request_add(*request, (struct request){ .id = id, .kind = REQUEST_RECV, .active = true, .comm = in }))

TRACED(NAME(Sendrecv),
       (const void *out, COUNT sends, MPI_Datatype send, int to, int totag, void *in, COUNT receives, MPI_Datatype receive, int from,
	int fromtag, MPI_Comm comm, MPI_Status *status),
       (out, sends, send, to, totag, in, receives, receive, from, fromtag, comm, status),
       OWN; put_send(log, comm_of(comm)->number, to, (uint32_t)totag, bytes_of(sends, send), NULL),
       put_status(log, comm_of(comm)->number, status, NULL))

TRACED(NAME(Sendrecv_replace),
       (void *buf, COUNT count, MPI_Datatype type, int to, int totag, int from, int fromtag, MPI_Comm comm, MPI_Status *status),
       (buf, count, type, to, totag, from, fromtag, comm, status),
       OWN; put_send(log, comm_of(comm)->number, to, (uint32_t)totag, bytes_of(count, type), NULL),
       put_status(log, comm_of(comm)->number, status, NULL))

#if MPI_VERSION >= 4
/* The receive has the first number, the send the next one. */
#define BOTH_POSTED(count, type)                                                                      \
	uint64_t id = request_ids(2); uint64_t next = id + 1; uint32_t number = comm_of(comm)->number;         \
	put_send(log, number, to, (uint32_t)totag, bytes_of(count, type), &next);                     \
	put_posted(log, number, from, fromtag, id)
#define BOTH_PENDING                                                                                  \
	request_add(*request, (struct request){ .id = id, .kind = REQUEST_SENDRECV, .active = true, .peer = to, .comm = number })

TRACED(NAME(Isendrecv),
       (const void *out, COUNT sends, MPI_Datatype send, int to, int totag, void *in, COUNT receives, MPI_Datatype receive, int from,
	int fromtag, MPI_Comm comm, MPI_Request *request),
       (out, sends, send, to, totag, in, receives, receive, from, fromtag, comm, request), BOTH_POSTED(sends, send), BOTH_PENDING)

TRACED(NAME(Isendrecv_replace),
       (void *buf, COUNT count, MPI_Datatype type, int to, int totag, int from, int fromtag, MPI_Comm comm, MPI_Request *request),
       (buf, count, type, to, totag, from, fromtag, comm, request), BOTH_POSTED(count, type), BOTH_PENDING)
#undef BOTH_POSTED
#undef BOTH_PENDING
#endif

#undef OWN
