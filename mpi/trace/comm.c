/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Communicators. Ranks identify a communicator without a message: its identity is a hash of how it was made, which all of its members
 * know. Only its first rank writes who the members are.
 */
#include "trace.h"

#include <pthread.h>
#include <stdlib.h>

#define BUCKETS 1024

static struct comm world = { .number = QUELL_TRACE_WORLD, .remote_size = -1 };
static struct comm self = { .number = QUELL_TRACE_SELF, .size = 1, .remote_size = -1 };
/* The record for an unknown communicator: MPI_COMM_NULL, in an erroneous call. */
static struct comm nothing = { .number = QUELL_TRACE_UNKNOWN, .remote_size = -1 };
static struct comm *buckets[BUCKETS];
static uint32_t numbers = 2;
static MPI_Group world_group;

/* How many communicators were made by the same part of a parent in the same way. */
static struct apart {
	struct apart *next;
	uint64_t key;
	uint32_t count;
} *aparts;

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

void lock_(void)
{
	pthread_mutex_lock(&guard);
}

void unlock_(void)
{
	pthread_mutex_unlock(&guard);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

static struct comm **bucket(MPI_Comm handle)
{
	return &buckets[mix(0, (uint64_t)(uintptr_t)handle) >> 40 & (BUCKETS - 1)];
}

void comms_begin(void)
{
	world.handle = THE_WORLD;
	self.handle = THE_SELF;
	REAL(Comm_rank)(THE_WORLD, &world.rank);
	REAL(Comm_size)(THE_WORLD, &world.size);
	REAL(Comm_group)(THE_WORLD, &world_group);
	world.identity = mix(1, 1);
	self.identity = mix(2, (uint64_t)world.rank);
}

const struct comm *comm_world(void)
{
	return &world;
}

/* The world ranks of a group's first `count` members. */
static int *members(MPI_Group group, int count)
{
	int *places = malloc(sizeof(int) * 2 * (size_t)(count > 0 ? count : 1)), *ranks = places + count;
	if (!places)
		return NULL;
	for (int i = 0; i < count; i++) {
		places[i] = i;
		ranks[i] = -1;
	}
	REAL(Group_translate_ranks)(group, count, places, world_group, ranks);
	memmove(places, ranks, sizeof(int) * (size_t)count);
	return places;
}

static uint32_t world_rank(int rank)
{
	return rank == MPI_UNDEFINED || rank < 0 ? QUELL_TRACE_UNKNOWN : (uint32_t)rank;
}

static uint32_t first_of(MPI_Group group)
{
	int *first = members(group, 1);
	uint32_t rank = first ? world_rank(first[0]) : QUELL_TRACE_UNKNOWN;
	free(first);
	return rank;
}

static void put_members(struct log *log, const struct comm *comm, const int *ranks)
{
	for (int from = 0; from < comm->size; from += 500) {
		int count = comm->size - from < 500 ? comm->size - from : 500;
		uint64_t words[252] = { comm->identity, two((uint32_t)from, (uint32_t)count) };
		for (int i = 0; i < count; i++)
			words[2 + i / 2] |= (uint64_t)world_rank(ranks[from + i]) << 32 * (i % 2);
		put(log, QUELL_TRACE_MEMBERS, 0, comm->number, words, 2 + ((unsigned)count + 1) / 2);
	}
}

static void define(struct log *log, struct comm *comm, MPI_Group group, uint32_t first, const char *maker)
{
	uint64_t words[3 + 5] = { comm->identity, two((uint32_t)comm->size, (uint32_t)comm->rank),
				  two(comm->remote_size < 0 ? 0 : (uint32_t)comm->remote_size, first) };
	strncpy((char *)&words[3], maker, 39);
	put(log, QUELL_TRACE_COMM, comm->remote_size >= 0, comm->number, words, 3 + (unsigned)strlen(maker) / 8 + 1);
	if (comm->rank)
		return;
	int *ranks = members(group, comm->size);
	if (ranks)
		put_members(log, comm, ranks);
	free(ranks);
}

/* How a communicator was made, except for its members. */
struct origin {
	uint64_t parent;
	uint64_t count;
	bool apart;
};

static uint32_t count_apart(uint64_t key)
{
	uint32_t count = 0;
	lock();
	struct apart *known = aparts;
	while (known && known->key != key)
		known = known->next;
	if (!known && (known = calloc(1, sizeof(*known)))) {
		known->key = key;
		known->next = aparts;
		aparts = known;
	}
	if (known)
		count = known->count++;
	unlock();
	return count;
}

/* A group of a communicator; the second one of most is empty. */
struct side {
	MPI_Group group;
	int size;
	uint32_t first;
};

static uint64_t mix_members(uint64_t hash, const struct side *side)
{
	int *ranks = side->size > 0 ? members(side->group, side->size) : NULL;
	for (int i = 0; ranks && i < side->size; i++)
		hash = mix(hash, world_rank(ranks[i]));
	free(ranks);
	return hash;
}

/* Both groups come to the same, because they are in one order. */
static uint64_t identity(struct origin origin, const struct side *low, const struct side *high)
{
	uint64_t hash = mix(mix(origin.parent, origin.count), two(low->first, high->first));
	if (!origin.apart)
		return hash;
	hash = mix_members(mix_members(hash, low), high);
	return mix(hash, count_apart(hash));
}

static struct comm *make(struct log *log, struct origin origin, MPI_Comm handle, const char *maker)
{
	struct comm *comm = handle == NO_COMM ? NULL : calloc(1, sizeof(*comm));
	if (!comm)
		return &nothing;
	struct side own, remote = { .first = QUELL_TRACE_UNKNOWN };
	int joins = 0;
	comm->handle = handle;
	comm->remote_size = -1;
	REAL(Comm_rank)(handle, &comm->rank);
	REAL(Comm_size)(handle, &comm->size);
	REAL(Comm_group)(handle, &own.group);
	own.size = comm->size;
	own.first = first_of(own.group);
	REAL(Comm_test_inter)(handle, &joins);
	if (joins) {
		REAL(Comm_remote_size)(handle, &comm->remote_size);
		REAL(Comm_remote_group)(handle, &remote.group);
		remote.size = comm->remote_size;
		remote.first = first_of(remote.group);
	}
	bool behind = remote.first < own.first;
	comm->identity = behind ? identity(origin, &remote, &own) : identity(origin, &own, &remote);
	if (joins)
		REAL(Group_free)(&remote.group);
	lock();
	comm->number = numbers++;
	struct comm **head = bucket(handle);
	comm->next = *head;
	*head = comm;
	unlock();
	define(log, comm, own.group, own.first, maker);
	REAL(Group_free)(&own.group);
	return comm;
}

/* The number of the next communicator that a parent makes. Every rank of the parent counts it, whether or not it is a member. */
uint32_t comm_count(struct comm *parent)
{
	return __atomic_fetch_add(&parent->made, 1, __ATOMIC_RELAXED);
}

void comm_made(struct log *log, uint64_t parent, uint32_t count, MPI_Comm handle, const char *maker)
{
	make(log, (struct origin){ parent, count, false }, handle, maker);
}

struct comm *comm_made_apart(struct log *log, uint64_t parent, int tag, MPI_Comm handle, const char *maker)
{
	return make(log, (struct origin){ parent, (uint64_t)(uint32_t)tag << 32 | 0x80000000u, true }, handle, maker);
}

static struct comm **place_of(MPI_Comm handle)
{
	struct comm **place = bucket(handle);
	while (*place && (*place)->handle != handle)
		place = &(*place)->next;
	return place;
}

/* The record of a communicator. One that was made in a way that is not traced gets its record here. */
struct comm *comm_of(MPI_Comm handle)
{
	if (handle == world.handle)
		return &world;
	if (handle == self.handle)
		return &self;
	lock();
	struct comm *found = *place_of(handle);
	unlock();
	return found ? found : comm_made_apart(mine.log, 3, 0, handle, "unknown");
}

/* The same, and removes it from the table. */
struct comm *comm_take(MPI_Comm handle)
{
	struct comm *comm = comm_of(handle);
	lock();
	struct comm **place = place_of(handle);
	if (*place)
		*place = (*place)->next;
	unlock();
	return comm;
}

void comm_drop(struct comm *comm)
{
	if (comm == &world || comm == &self || comm == &nothing)
		return;
	free(comm->sources);
	free(comm->destinations);
	free(comm);
}
