/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The tracer: a preload library for an unmodified MPI program. It writes what each thread's MPI calls do, and the noise during them,
 * to the thread's own log (trace_log.h). Compile, in a copy of mpi/ with crates/kernel/include in ../include:
 *
 *     mpicc -std=gnu11 -O2 -fPIC -fvisibility=hidden -I include -c trace/X.c     for each X
 *     cc -shared -o quell-trace.so *.o -ldl -lpthread
 *
 * The last step must not use mpicc: the library is preloaded into launchers and shells, too, and must not pull an MPI into them. All MPI
 * functions are looked up when the program first calls one (entry.c).
 */
#ifndef QUELL_TRACE_H
#define QUELL_TRACE_H

#define _GNU_SOURCE
#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "../trace_log.h"
#include "quell_metrics_read.h"

/* ---- The MPI (entry.c) ---- */

#define CALL(name) CALL_##name,
#define HELPER(name) CALL_##name,
enum call {
#include "calls.h"
	CALLS
};
#undef CALL
#undef HELPER

/* The MPI's own functions, by call; `missing` where it has none. */
extern void *real[CALLS];
#define REAL(name) ((__typeof__(&PMPI_##name))real[CALL_##name])

/* Open MPI's handles are addresses of its data, which are looked up together with its functions. */
#ifdef OPEN_MPI
#define HANDLES(HANDLE) \
	HANDLE(ompi_mpi_comm_world) HANDLE(ompi_mpi_comm_self) HANDLE(ompi_mpi_comm_null) HANDLE(ompi_request_null) \
	HANDLE(ompi_message_null) HANDLE(ompi_message_no_proc) HANDLE(ompi_mpi_byte) HANDLE(ompi_mpi_datatype_null) \
	HANDLE(ompi_mpi_group_null)
#define HANDLE(name) HANDLE_##name,
enum { HANDLES(HANDLE) HANDLE_COUNT };
#undef HANDLE
extern void *handles[HANDLE_COUNT];
#define THE_WORLD ((MPI_Comm)handles[HANDLE_ompi_mpi_comm_world])
#define THE_SELF ((MPI_Comm)handles[HANDLE_ompi_mpi_comm_self])
#define NO_COMM ((MPI_Comm)handles[HANDLE_ompi_mpi_comm_null])
#define NO_REQUEST ((MPI_Request)handles[HANDLE_ompi_request_null])
#define NO_MESSAGE ((MPI_Message)handles[HANDLE_ompi_message_null])
#define NO_PROC_MESSAGE ((MPI_Message)handles[HANDLE_ompi_message_no_proc])
#define BYTE ((MPI_Datatype)handles[HANDLE_ompi_mpi_byte])
#else
#define THE_WORLD MPI_COMM_WORLD
#define THE_SELF MPI_COMM_SELF
#define NO_COMM MPI_COMM_NULL
#define NO_REQUEST MPI_REQUEST_NULL
#define NO_MESSAGE MPI_MESSAGE_NULL
#define NO_PROC_MESSAGE MPI_MESSAGE_NO_PROC
#define BYTE MPI_BYTE
#endif

/* ---- A thread's log (log.c) ---- */

#define REGIONS_AT_FIRST 256

/* Regions that are no calls of MPI, in place of a call. */
enum { PHASE = CALLS, OMP_PARALLEL, OMP_BARRIER, OMP_IMPLICIT_BARRIER };

struct region {
	const void *site; /* the call site; for phases the phase */
	uint32_t call;
	uint32_t number;  /* from 1; 0: the place is free */
};

/* The time of an event, and the noise counters by then. */
struct edge {
	struct log *log;
	uint64_t at_ns, now_ns[QUELL_TRACE_SOURCES];
	unsigned from, to; /* the range of sources that could be read */
};

struct log {
	struct quell_trace_head *head;
	char *next, *limit; /* in the stage */
	uint64_t now_ns;    /* time of the event that is being written */
	uint32_t region;    /* region of the current call */
	uint32_t phase;     /* region of the current phase, or 0 */
	const void *slot;   /* in the metric container, or NULL */
	struct quell_levels seen; /* of the slot, when its counters were last read */
	uint64_t from_ns[QUELL_TRACE_SOURCES];  /* the counters when the log began: noise before that is not the run's */
	uint64_t noise_ns[QUELL_TRACE_SOURCES]; /* as last written */
	char *stage;
	bool full;
	struct region *regions; /* a hash table of a power of two places */
	uint32_t places, used;
	struct log *others;
	struct team *team; /* of OpenMP, in which the thread has a share (openmp.h) */
	struct edge waits; /* since then in a barrier that may turn out to be the join (ompt.c) */
	char path[];
};

struct thread {
	struct log *log;
	int depth; /* nesting depth of calls: only the outermost are the program's */
	int inner; /* nesting depth of parallel regions that are not traced */
	struct behind *behind; /* by which function of the MPI the program came to its call; NULL: by none */
};

extern __thread struct thread mine __attribute__((tls_model("initial-exec")));
/* Whether calls are traced: from MPI_Init to MPI_Finalize, if there is a folder for logs. */
extern bool tracing;
/* Whether several threads may be in the MPI at the same time. */
extern bool threaded;

static inline uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool log_make_room(struct log *log);
struct log *log_open(void);
void log_forget_noise(struct log *log);
void log_wrong_mpi(void);
void log_end_all(bool finalized);
void log_each(void (*visit)(struct log *log));
void log_edge(struct log *log, enum quell_trace_kind kind, uint32_t region);
void log_read_edge(struct log *log, struct edge *edge);
void log_put_edge(struct log *log, enum quell_trace_kind kind, uint32_t region, const struct edge *edge);
uint32_t log_region(struct log *log, uint32_t call, const void *site);
extern const char *const call_names[CALLS];

/* Appends a record with `words` words, at log->now_ns. */
static inline void put(struct log *log, enum quell_trace_kind kind, unsigned mask, uint32_t value, const void *data, unsigned words)
{
	size_t size = sizeof(struct quell_trace_record) + 8u * words;
	if (__builtin_expect((size_t)(log->limit - log->next) < size, 0) && !log_make_room(log)) {
		log->head->lost++;
		return;
	}
	struct quell_trace_record record = { (uint8_t)kind, (uint8_t)words, (uint16_t)mask, value, log->now_ns };
	memcpy(log->next, &record, sizeof(record));
	if (words)
		memcpy(log->next + sizeof(record), data, 8u * words);
	log->next += size;
	/* If the program is killed, readers find only complete records. */
	__atomic_store_n(&log->head->bytes, log->head->bytes + size, __ATOMIC_RELEASE);
}

#define PUT(log, kind, mask, value, ...)                                                          \
	do {                                                                                      \
		const uint64_t words_[] = { __VA_ARGS__ };                                        \
		put(log, kind, mask, value, words_, sizeof(words_) / sizeof(words_[0]));          \
	} while (0)

static inline uint64_t two(uint32_t low, uint32_t high)
{
	return (uint64_t)high << 32 | low;
}

/* ---- Call sites (site.c) ---- */

/* From the first of the MPI's objects to the last; others may lie between. */
extern struct addresses {
	uintptr_t from, size;
} mpi_objects;

void sites_begin(void);
const void *site_behind(const void *caller, const char *frame);
bool site_is_right(const void *site);
size_t describe_site(const void *site, char *text, size_t size);

/* Where the program makes the call, also if one of the MPI's functions for Fortran is between. */
static inline const void *site_of(const void *caller, const char *frame)
{
	mine.behind = NULL;
	return (uintptr_t)caller - mpi_objects.from < mpi_objects.size ? site_behind(caller, frame) : caller;
}

/* The return address of the function, and the address above it. */
#define CALLER __builtin_return_address(0), __builtin_dwarf_cfa()
#define SITE site_of(CALLER)

/* ---- Calls ---- */

/* A call of the program begins. NULL: it is nested or not traced, and is only passed on. */
static inline struct log *call_begin(uint32_t call, const void *caller, const char *frame)
{
	if (mine.depth || !tracing)
		return NULL;
	struct log *log = mine.log ? mine.log : log_open();
	if (!log)
		return NULL;
	mine.depth = 1;
	log->head->calls++;
	log->region = log_region(log, call, site_of(caller, frame));
	log->now_ns = now_ns();
	log_edge(log, QUELL_TRACE_ENTER, log->region);
	return log;
}

/* The MPI's function has returned; its result is recorded next. */
static inline void call_returned(struct log *log)
{
	log->now_ns = now_ns();
}

static inline int call_end(struct log *log, int code)
{
	log_edge(log, QUELL_TRACE_LEAVE, log->region);
	mine.depth = 0;
	return code;
}

/* A function that traces a call: what to do before it, after it if it succeeded, and after it if it failed. */
#define TRACED(name, params, args, before, after) TRACED_(name, params, args, before, after, )
#define TRACED_OR(name, params, args, before, after, otherwise) TRACED_(name, params, args, before, after, otherwise)
#define TRACED_(name, params, args, before, after, otherwise)      \
	int traced_##name params                                   \
	{                                                          \
		struct log *log = call_begin(CALL_##name, CALLER); \
		if (!log)                                          \
			return REAL(name) args;                    \
		before;                                            \
		int code = REAL(name) args;                        \
		call_returned(log);                                \
		if (code == MPI_SUCCESS) {                         \
			after;                                     \
		} else {                                           \
			otherwise;                                 \
		}                                                  \
		return call_end(log, code);                        \
	}

/* ---- Communicators (comm.c) ---- */

struct comm {
	MPI_Comm handle;
	struct comm *next;
	uint64_t identity;
	uint32_t number;
	int rank, size, remote_size; /* remote_size: -1 unless it is an inter-communicator */
	uint32_t made;               /* number of communicators that were made from it */
	uint32_t neighbor_calls;
	bool neighbors_known;
	int in, out;
	int *sources, *destinations;
};

void comms_begin(void);
/* MPI_COMM_WORLD, without a call of the MPI: not every thread may make one. */
const struct comm *comm_world(void);
struct comm *comm_of(MPI_Comm handle);
struct comm *comm_take(MPI_Comm handle);
void comm_drop(struct comm *comm);
uint32_t comm_count(struct comm *parent);
/* Registers a communicator that the whole parent made, as the parent's `count`th. */
void comm_made(struct log *log, uint64_t parent, uint32_t count, MPI_Comm handle, const char *maker);
/* Registers one that only its members made: a group of `parent`, or two groups (`parent` is then ignored). */
struct comm *comm_made_apart(struct log *log, uint64_t parent, int tag, MPI_Comm handle, const char *maker);
void comm_neighbors(struct comm *comm);

/* The number of ranks with which a rank exchanges data in a collective; in an intra-communicator this includes the rank itself. */
static inline int peers(const struct comm *comm)
{
	return comm->remote_size < 0 ? comm->size : comm->remote_size;
}

static inline bool is_root(const struct comm *comm, int root)
{
	return comm->remote_size < 0 ? root == comm->rank : root == MPI_ROOT;
}

/* Whether this rank exchanges data with the root: everywhere except in the root's own group of an inter-communicator. */
static inline bool is_leaf(const struct comm *comm, int root)
{
	return comm->remote_size < 0 || root >= 0;
}

void lock_(void);
void unlock_(void);

/* Guards the tables of communicators and requests. */
static inline void lock(void)
{
	if (threaded)
		lock_();
}

static inline void unlock(void)
{
	if (threaded)
		unlock_();
}

/* ---- Requests (request.c) ---- */

enum request_kind { REQUEST_SEND, REQUEST_RECV, REQUEST_COLLECTIVE, REQUEST_NEIGHBOR, REQUEST_IDUP, REQUEST_SENDRECV };

struct request {
	MPI_Request handle;
	struct request *next;
	const struct log *owner; /* log of the thread that made it */
	uint64_t id;
	uint8_t kind;
	bool persistent, active, cancelling;
	uint16_t operation;
	int peer, tag; /* for collectives the root; as the program passed them */
	uint32_t comm; /* its number */
	uint64_t sent, received;
	struct exchange *exchange; /* of neighbour collectives */
	MPI_Comm *newcomm;         /* of MPI_Comm_idup, with the parent's identity, and its number among the parent's communicators */
	uint64_t parent;
	uint32_t count;
};

uint64_t request_ids(unsigned count);
struct request *request_add(MPI_Request handle, struct request facts);
/* The record of a request, also of an inactive persistent one. NULL for a request that is not traced. */
struct request *request_find(MPI_Request handle);
/* The same, and removes it from the table unless it is persistent. */
struct request *request_take(MPI_Request handle);
void request_drop(struct request *request);
/* The communicator of a message that was matched by a probe. */
void message_add(MPI_Message handle, uint32_t comm);
uint32_t message_take(MPI_Message handle);
void request_start(struct log *log, MPI_Request handle);
void request_done(struct log *log, MPI_Request handle, MPI_Status *status);
void request_lost(struct log *log, MPI_Request handle);

/* ---- Messages (message.c) ---- */

static inline uint64_t bytes_of(MPI_Count count, MPI_Datatype type)
{
	MPI_Count size = 0;
	/* With a count of 0 the type need not be valid. */
	if (count <= 0 || REAL(Type_size_x)(type, &size) != MPI_SUCCESS)
		return 0;
	return (uint64_t)count * (uint64_t)size;
}

void put_send(struct log *log, uint32_t comm, int to, uint32_t tag, uint64_t bytes, const uint64_t *request);
void put_recv(struct log *log, uint32_t comm, int from, uint32_t tag, uint64_t bytes, const uint64_t *request);
void put_posted(struct log *log, uint32_t comm, int from, int tag, uint64_t request);
void put_collective(struct log *log, uint32_t comm, unsigned operation, int root, uint64_t sent, uint64_t received,
		    const uint64_t *request);
/* A blocking collective begins. */
static inline void begun(struct log *log)
{
	put(log, QUELL_TRACE_COLLECTIVE_BEGIN, 0, 0, NULL, 0);
}

/* Records the message that a status describes. */
void put_status(struct log *log, uint32_t comm, const MPI_Status *status, const uint64_t *request);

/* ---- Windows and files (create.c) ---- */

#define ADDRESS(handle) ((const void *)(uintptr_t)(handle))
/* Records a collective of the ranks of a window or a file that no rank leaves before all have come. */
void collective_on(struct log *log, const void *handle);

/* ---- Neighbour collectives (neighbor.c) ---- */

/* The messages of one exchange: to each in `to`, then from each in `from`, with their bytes and numbers of requests from `first` on. */
struct exchange {
	uint32_t tag;
	int out, in;
	uint64_t first;
	struct {
		int peer;
		uint64_t bytes;
	} each[];
};

void exchange_begin(struct log *log, uint32_t comm, const struct exchange *exchange, bool blocking);
void exchange_end(struct log *log, uint32_t comm, const struct exchange *exchange, bool blocking);

/* ---- Clocks (clock.c) ---- */

/* Names the MPI_COMM_WORLD; 0 until `clocks_begin`. */
extern uint64_t job;
void clocks_begin(struct log *log);
void clocks_measure(struct log *log);
void read_line(const char *path, char *text, size_t size);

#endif
