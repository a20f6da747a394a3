/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Requests that are not complete. An MPI may return the same handle for several requests that were complete when they were made, and it
 * reuses a handle as soon as it is free. Of several records with one handle, the oldest of the calling thread is used, or else the oldest.
 */
#include "trace.h"

#include <stdlib.h>

#define BUCKETS 4096

static struct bucket {
	struct request *head, *tail;
} buckets[BUCKETS];
static struct request *spare;
static uint64_t ids;

static struct message {
	struct message *next;
	MPI_Message handle;
	uint32_t comm;
} *messages;

static struct bucket *bucket(MPI_Request handle)
{
	return &buckets[((uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15u) >> 40 & (BUCKETS - 1)];
}

/* Allocates this many new numbers, and returns the first. */
uint64_t request_ids(unsigned count)
{
	if (threaded)
		return __atomic_fetch_add(&ids, count, __ATOMIC_RELAXED);
	ids += count;
	return ids - count;
}

struct request *request_add(MPI_Request handle, struct request facts)
{
	struct bucket *in = bucket(handle);
	lock();
	struct request *request = spare;
	if (request)
		spare = request->next;
	else
		request = malloc(sizeof(*request));
	if (request) {
		*request = facts;
		request->handle = handle;
		request->owner = mine.log;
		request->next = NULL;
		*(in->head ? &in->tail->next : &in->head) = request;
		in->tail = request;
	}
	unlock();
	return request;
}

static struct request *look(MPI_Request handle, bool take)
{
	struct bucket *in = bucket(handle);
	struct request *before = NULL, *found = NULL, *last = NULL;
	lock();
	for (struct request *at = in->head; at; last = at, at = at->next) {
		if (at->handle != handle || (found && at->owner != mine.log))
			continue;
		before = last;
		found = at;
		if (!threaded || at->owner == mine.log)
			break;
	}
	if (found && take && !found->persistent) {
		*(before ? &before->next : &in->head) = found->next;
		if (in->tail == found)
			in->tail = before;
	}
	unlock();
	return found;
}

struct request *request_find(MPI_Request handle)
{
	return look(handle, false);
}

struct request *request_take(MPI_Request handle)
{
	return look(handle, true);
}

void request_drop(struct request *request)
{
	free(request->exchange);
	request->exchange = NULL;
	lock();
	request->next = spare;
	spare = request;
	unlock();
}

void message_add(MPI_Message handle, uint32_t comm)
{
	struct message *message = malloc(sizeof(*message));
	if (!message)
		return;
	lock();
	*message = (struct message){ messages, handle, comm };
	messages = message;
	unlock();
}

uint32_t message_take(MPI_Message handle)
{
	uint32_t comm = QUELL_TRACE_UNKNOWN;
	lock();
	struct message **place = &messages;
	while (*place && (*place)->handle != handle)
		place = &(*place)->next;
	struct message *found = *place;
	if (found) {
		comm = found->comm;
		*place = found->next;
	}
	unlock();
	free(found);
	return comm;
}

/* Starts a persistent request again. */
void request_start(struct log *log, MPI_Request handle)
{
	struct request *request = request_find(handle);
	if (!request)
		return;
	request->active = true;
	request->cancelling = false;
	request->id = request_ids(1);
	switch (request->kind) {
	case REQUEST_SEND:
		put_send(log, request->comm, request->peer, (uint32_t)request->tag, request->sent, &request->id);
		break;
	case REQUEST_RECV:
		put_posted(log, request->comm, request->peer, request->tag, request->id);
		break;
	case REQUEST_COLLECTIVE:
		PUT(log, QUELL_TRACE_COLLECTIVE_POSTED, 0, request->comm, request->id);
		break;
	case REQUEST_NEIGHBOR:
		if (!request->exchange)
			break;
		request->exchange->first = request_ids((unsigned)(request->exchange->in + request->exchange->out));
		exchange_begin(log, request->comm, request->exchange, false);
		break;
	}
}

static bool cancelled(const struct request *request, MPI_Status *status)
{
	int flag = 0;
	if (request->cancelling)
		REAL(Test_cancelled)(status, &flag);
	return flag;
}

static void put_done(struct log *log, struct request *request, MPI_Status *status)
{
	if (cancelled(request, status)) {
		PUT(log, QUELL_TRACE_CANCELLED, 0, 0, request->id);
		return;
	}
	switch (request->kind) {
	case REQUEST_SEND:
		if (request->peer != MPI_PROC_NULL)
			PUT(log, QUELL_TRACE_SEND_DONE, 0, 0, request->id);
		break;
	case REQUEST_RECV:
		put_status(log, request->comm, status, &request->id);
		break;
	case REQUEST_COLLECTIVE:
		put_collective(log, request->comm, request->operation, request->peer, request->sent, request->received, &request->id);
		break;
	case REQUEST_NEIGHBOR:
		if (request->exchange)
			exchange_end(log, request->comm, request->exchange, false);
		break;
	case REQUEST_IDUP:
		put_collective(log, request->comm, QUELL_CREATE, -1, 0, 0, &request->id);
		comm_made(log, request->parent, request->count, *request->newcomm, call_names[request->operation]);
		break;
	case REQUEST_SENDRECV:
		if (request->peer != MPI_PROC_NULL)
			PUT(log, QUELL_TRACE_SEND_DONE, 0, 0, request->id + 1);
		put_status(log, request->comm, status, &request->id);
		break;
	}
}

static void put_lost(struct log *log, const struct request *request)
{
	uint64_t sent = request->kind == REQUEST_SENDRECV ? request->id + 1 : request->id;
	bool sends = request->kind == REQUEST_SEND || request->kind == REQUEST_SENDRECV;
	if (sends && !request->cancelling && request->peer != MPI_PROC_NULL)
		PUT(log, QUELL_TRACE_SEND_DONE, 0, 0, sent);
	/* An exchange has numbers of its own, and its messages belong to all ranks that take part. */
	if (request->kind == REQUEST_NEIGHBOR || (request->kind == REQUEST_SEND && !request->cancelling))
		return;
	PUT(log, QUELL_TRACE_CANCELLED, 0, 0, request->id);
}

/* The completion of this request will not be visible. Its sends are recorded as done, and its receives as cancelled. */
void request_lost(struct log *log, MPI_Request handle)
{
	struct request *request = handle == NO_REQUEST ? NULL : request_find(handle);
	if (!request)
		return;
	request->persistent = false;
	request = request_take(handle);
	if (request->active)
		put_lost(log, request);
	request_drop(request);
}

/* The MPI reports that a request is complete. */
void request_done(struct log *log, MPI_Request handle, MPI_Status *status)
{
	struct request *request = handle == NO_REQUEST ? NULL : request_take(handle);
	if (!request)
		return;
	if (request->active)
		put_done(log, request, status);
	request->active = false;
	if (!request->persistent)
		request_drop(request);
}
