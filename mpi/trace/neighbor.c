/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Neighbour collectives: a message to each neighbour and one from each, with tags of their own. neighbors.h has the rows. */
#include "trace.h"

#include <stdlib.h>

static void learn_cart(struct comm *comm)
{
	int dimensions = 0;
	REAL(Cartdim_get)(comm->handle, &dimensions);
	comm->sources = malloc(sizeof(int) * 2 * (size_t)(dimensions + 1));
	comm->destinations = malloc(sizeof(int) * 2 * (size_t)(dimensions + 1));
	if (!comm->sources || !comm->destinations)
		return;
	for (int i = 0; i < dimensions; i++)
		REAL(Cart_shift)(comm->handle, i, 1, &comm->sources[2 * i], &comm->sources[2 * i + 1]);
	comm->in = comm->out = 2 * dimensions;
	memcpy(comm->destinations, comm->sources, sizeof(int) * (size_t)comm->in);
}

static void learn_graph(struct comm *comm)
{
	int count = 0;
	REAL(Graph_neighbors_count)(comm->handle, comm->rank, &count);
	comm->sources = malloc(sizeof(int) * (size_t)(count + 1));
	comm->destinations = malloc(sizeof(int) * (size_t)(count + 1));
	if (!comm->sources || !comm->destinations)
		return;
	comm->in = comm->out = count;
	REAL(Graph_neighbors)(comm->handle, comm->rank, count, comm->sources);
	memcpy(comm->destinations, comm->sources, sizeof(int) * (size_t)count);
}

static void learn_dist_graph(struct comm *comm)
{
	int in = 0, out = 0, weighted = 0;
	REAL(Dist_graph_neighbors_count)(comm->handle, &in, &out, &weighted);
	/* Weights are not used, but the call needs room for them. */
	comm->sources = malloc(sizeof(int) * 2 * (size_t)(in + 1));
	comm->destinations = malloc(sizeof(int) * 2 * (size_t)(out + 1));
	if (!comm->sources || !comm->destinations)
		return;
	comm->in = in;
	comm->out = out;
	REAL(Dist_graph_neighbors)(comm->handle, in, comm->sources, comm->sources + in, out, comm->destinations, comm->destinations + out);
}

void comm_neighbors(struct comm *comm)
{
	int kind = MPI_UNDEFINED;
	if (comm->neighbors_known)
		return;
	comm->neighbors_known = true;
	REAL(Topo_test)(comm->handle, &kind);
	if (kind == MPI_CART)
		learn_cart(comm);
	else if (kind == MPI_GRAPH)
		learn_graph(comm);
	else if (kind == MPI_DIST_GRAPH)
		learn_dist_graph(comm);
}

/* The next exchange on a communicator. All of its ranks make them in the same order, so they agree on the tag without a message. */
static struct exchange *exchange_of(struct comm *comm)
{
	comm_neighbors(comm);
	struct exchange *exchange = malloc(sizeof(*exchange) + sizeof(exchange->each[0]) * (size_t)(comm->in + comm->out));
	if (!exchange)
		return NULL;
	exchange->tag = QUELL_TRACE_NEIGHBOR_TAG | (comm->neighbor_calls++ & 0x3fffffffu);
	exchange->out = comm->out;
	exchange->in = comm->in;
	exchange->first = request_ids((unsigned)(comm->in + comm->out));
	for (int i = 0; i < comm->out; i++)
		exchange->each[i].peer = comm->destinations[i];
	for (int i = 0; i < comm->in; i++)
		exchange->each[comm->out + i].peer = comm->sources[i];
	return exchange;
}

void exchange_begin(struct log *log, uint32_t comm, const struct exchange *exchange, bool blocking)
{
	for (int i = 0; i < exchange->out + exchange->in; i++) {
		uint64_t id = exchange->first + (uint64_t)i;
		if (i < exchange->out)
			put_send(log, comm, exchange->each[i].peer, exchange->tag, exchange->each[i].bytes, blocking ? NULL : &id);
		else if (!blocking && exchange->each[i].peer != MPI_PROC_NULL)
			PUT(log, QUELL_TRACE_POSTED, 0, exchange->tag, two(comm, (uint32_t)exchange->each[i].peer), id);
	}
}

void exchange_end(struct log *log, uint32_t comm, const struct exchange *exchange, bool blocking)
{
	for (int i = 0; i < exchange->out + exchange->in; i++) {
		uint64_t id = exchange->first + (uint64_t)i;
		if (exchange->each[i].peer == MPI_PROC_NULL)
			continue;
		if (i >= exchange->out)
			put_recv(log, comm, exchange->each[i].peer, exchange->tag, exchange->each[i].bytes, blocking ? NULL : &id);
		else if (!blocking)
			PUT(log, QUELL_TRACE_SEND_DONE, 0, 0, id);
	}
}

#define OPEN_(...) __VA_ARGS__
#define OPEN(list) OPEN_ list

/* `sent` and `received` are the bytes for the neighbour at index `i`. */
#define FILL(sent, received)                                                   \
	struct comm *in = comm_of(comm);                                       \
	struct exchange *exchange = exchange_of(in);                           \
	for (int i = 0; exchange && i < exchange->out; i++)                    \
		exchange->each[i].bytes = sent;                                \
	for (int i = 0; exchange && i < exchange->in; i++)                     \
		exchange->each[exchange->out + i].bytes = received

#define BLOCKING(name, params, args, sent, received)                           \
	TRACED(name, params, args,                                             \
	       FILL(sent, received);                                           \
	       if (exchange) exchange_begin(log, in->number, exchange, true),  \
	       if (exchange) exchange_end(log, in->number, exchange, true);    \
	       free(exchange))

#define PENDING(name, params, args, sent, received)                                                       \
	TRACED(name, (OPEN(params), MPI_Request *request), (OPEN(args), request),                         \
	       FILL(sent, received);                                                                      \
	       if (exchange) exchange_begin(log, in->number, exchange, false),                            \
	       request_add(*request, (struct request){ .kind = REQUEST_NEIGHBOR, .active = true,          \
						       .comm = in->number, .exchange = exchange }))

#define PERSISTENT(name, params, args, sent, received)                                                    \
	TRACED(name, (OPEN(params), MPI_Info info, MPI_Request *request), (OPEN(args), info, request),    \
	       FILL(sent, received),                                                                      \
	       request_add(*request, (struct request){ .kind = REQUEST_NEIGHBOR, .persistent = true,      \
						       .comm = in->number, .exchange = exchange }))

#if MPI_VERSION >= 4
#define ROW(name, params, args, sent, received)                                \
	BLOCKING(NAME(Neighbor_##name), params, args, sent, received)          \
	PENDING(NAME(Ineighbor_##name), params, args, sent, received)          \
	PERSISTENT(NAME(Neighbor_##name##_init), params, args, sent, received)
#else
#define ROW(name, params, args, sent, received)                                \
	BLOCKING(NAME(Neighbor_##name), params, args, sent, received)          \
	PENDING(NAME(Ineighbor_##name), params, args, sent, received)
#endif

#define NAME(name) name
#define COUNT int
#define PLACE int
#include "neighbors.h"
#undef NAME
#undef COUNT
#undef PLACE

#if MPI_VERSION >= 4
#define NAME(name) name##_c
#define COUNT MPI_Count
#define PLACE MPI_Aint
#include "neighbors.h"
#endif
