/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A trace log: what the tracer in mpi/trace recorded about one thread of one rank. crates/recording/src/mpi_log.rs reads it, and its
 * test compiles this header.
 *
 * A file is a head of QUELL_TRACE_HEAD bytes, a stage of QUELL_TRACE_STAGE bytes, and the records that were appended, `appended` bytes. The
 * records that come after those are in the stage, from its beginning, so that there are `bytes` bytes of whole records at any time, even if the
 * program was killed. All numbers are little endian. If the head says FINALIZED, nothing more will be written.
 */
#ifndef QUELL_TRACE_LOG_H
#define QUELL_TRACE_LOG_H

#include <stddef.h>
#include <stdint.h>

/* Generated (layout) by tools/make_contract.py from contract/trace_log.py and kernel.py: change it there. */
#define QUELL_TRACE_MAGIC "QUELLMPI"
#define QUELL_TRACE_VERSION 2
#define QUELL_TRACE_HEAD 4096
#define QUELL_TRACE_STAGE 65536

/* Variables: the logs' folder, how many bytes each may have, the program that records a host's kernel. */
#define QUELL_TRACE_FOLDER_VARIABLE "QUELL_TRACE"
#define QUELL_TRACE_LIMIT_VARIABLE "QUELL_TRACE_LIMIT"
#define QUELL_TRACE_NODE_VARIABLE "QUELL_TRACE_NODE"

enum quell_trace_state {
	QUELL_TRACE_RUNNING = 0,
	QUELL_TRACE_FINALIZED = 1,
	QUELL_TRACE_WRONG_MPI = 2, /* the tracer was compiled for an MPI other than the program's: nothing was traced */
};

/* Noise sources: 0 to 7 are the kinds of quell_metrics.h, this is what an injector burned. */
#define QUELL_TRACE_INJECTED 8
#define QUELL_TRACE_SOURCES 9

/* At at_ns on this thread's clock, rank 0's was offset_ns ahead, give or take error_ns. */
struct quell_trace_clock {
	uint64_t at_ns;
	int64_t offset_ns;
	uint64_t error_ns;
};

/* The used part of the head; zeros follow. Texts end with a zero. Times are on CLOCK_MONOTONIC. */
struct quell_trace_head {
	char magic[8];
	uint32_t version;
	uint32_t state;
	uint64_t bytes; /* of whole records */
	uint64_t lost; /* records that found no room */
	uint32_t rank;
	uint32_t ranks;
	uint32_t pid;
	uint32_t tid;
	uint32_t thread; /* of this rank, from 0 */
	uint32_t sources; /* a bit for each noise source that there is */
	uint64_t begin_ns;
	uint64_t end_ns; /* 0 until it ended */
	uint64_t calls; /* seen, in addition to MPI_Init, MPI_Init_thread and MPI_Finalize */
	uint64_t one_sided; /* calls that put or get: seen, not tracked */
	uint32_t clocks; /* how many of these were measured; 0 on followers: see the rank with the same boot id that did */
	uint32_t clock_zero; /* not 0: this is the clock of rank 0 itself */
	struct quell_trace_clock clock[2];
	char host[256];
	char boot[64];
	char library[256]; /* the MPI's version, its first line */
	char program[256];
	char reason[256]; /* why there are no kernel's noise counters; empty if there are */
	uint64_t appended; /* bytes of records that were appended; later ones are in the stage */
	uint64_t job; /* the same in all logs of an MPI_COMM_WORLD and in no others; 0 if it is not known */
};

/* What happened. `value`, `mask` and the words that follow the record are given for each. COMM|PEER is a word with the number
 * of the communicator in its lower half and a rank of it in the upper. A [REQUEST] is only present if the call does not block.
 * Numbers of regions hold within a log, those of communicators and requests within a process. 0xffffffff: not known, a wildcard. */
enum quell_trace_kind {
	QUELL_TRACE_REGION = 1, /* value: its number; mask: 1 if it is an MPI call. Text: name, zero, site, zero, `0xaddress path` of the site, zero */
	QUELL_TRACE_COMM = 2, /* value: its number; mask: 1 if it joins two groups. IDENTITY, SIZE|RANK, REMOTE SIZE|FIRST, text: maker, zero */
	QUELL_TRACE_MEMBERS = 3, /* value: the communicator's number. IDENTITY, FIRST PLACE|COUNT, then world ranks, two a word */
	QUELL_TRACE_ENTER = 4, /* value: region; mask: the noise sources that changed. Their totals in ns */
	QUELL_TRACE_LEAVE = 5, /* the same */
	QUELL_TRACE_SEND = 6, /* value: tag. COMM|PEER, bytes, [REQUEST] */
	QUELL_TRACE_SEND_DONE = 7, /* REQUEST */
	QUELL_TRACE_POSTED = 8, /* a receive. value: tag. COMM|PEER, REQUEST */
	QUELL_TRACE_RECV = 9, /* value: tag. COMM|PEER, bytes, [REQUEST] */
	QUELL_TRACE_PROBED = 10, /* value: tag. COMM|PEER */
	QUELL_TRACE_PENDING = 11, /* REQUEST */
	QUELL_TRACE_CANCELLED = 12, /* REQUEST */
	QUELL_TRACE_COLLECTIVE_BEGIN = 13,
	QUELL_TRACE_COLLECTIVE_POSTED = 14, /* value: communicator. REQUEST */
	QUELL_TRACE_COLLECTIVE = 15, /* value: communicator; mask: operation. COMM|ROOT, bytes sent, bytes received, [REQUEST] */
	QUELL_TRACE_FORK = 16, /* as enter, but value: the threads that the program asks for, or 0. A team of threads begins */
	QUELL_TRACE_TEAM_BEGIN = 17, /* as enter, without a value. The thread's share in its process's team begins */
	QUELL_TRACE_TEAM_END = 18, /* the same. The share ends: the thread has come to the join */
	QUELL_TRACE_JOIN = 19, /* the same. In the thread that forked: all threads of the team have come */
};

enum quell_trace_operation {
	QUELL_BARRIER = 0,
	QUELL_BCAST = 1,
	QUELL_GATHER = 2,
	QUELL_GATHERV = 3,
	QUELL_SCATTER = 4,
	QUELL_SCATTERV = 5,
	QUELL_ALLGATHER = 6,
	QUELL_ALLGATHERV = 7,
	QUELL_ALLTOALL = 8,
	QUELL_ALLTOALLV = 9,
	QUELL_ALLTOALLW = 10,
	QUELL_ALLREDUCE = 11,
	QUELL_REDUCE = 12,
	QUELL_REDUCE_SCATTER = 13,
	QUELL_REDUCE_SCATTER_BLOCK = 14,
	QUELL_SCAN = 15,
	QUELL_EXSCAN = 16,
	QUELL_CREATE = 17, /* Makes a communicator, a window or a file. */
	QUELL_DESTROY = 18, /* Frees one. */
};

#define QUELL_TRACE_UNKNOWN 0xffffffffu
/* MPI_COMM_WORLD and MPI_COMM_SELF have these numbers and need no definition. */
#define QUELL_TRACE_WORLD 0
#define QUELL_TRACE_SELF 1
/* Tags of messages within neighbour collectives begin here; users' are below. */
#define QUELL_TRACE_NEIGHBOR_TAG 0x80000000u

struct quell_trace_record {
	uint8_t kind;
	uint8_t words; /* of 8 bytes, that follow */
	uint16_t mask;
	uint32_t value;
	uint64_t time_ns;
};

_Static_assert(sizeof(struct quell_trace_clock) == 24, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_clock, at_ns) == 0, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_clock, offset_ns) == 8, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_clock, error_ns) == 16, "contract/ has another layout");
_Static_assert(sizeof(struct quell_trace_head) == 1248, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_head, magic) == 0, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_head, version) == 8, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_head, state) == 12, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_head, bytes) == 16, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_head, lost) == 24, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_head, rank) == 32, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_head, ranks) == 36, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_head, pid) == 40, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_head, tid) == 44, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_head, thread) == 48, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_head, sources) == 52, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_head, begin_ns) == 56, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_head, end_ns) == 64, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_head, calls) == 72, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_head, one_sided) == 80, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_head, clocks) == 88, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_head, clock_zero) == 92, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_head, clock) == 96, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_head, host) == 144, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_head, boot) == 400, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_head, library) == 464, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_head, program) == 720, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_head, reason) == 976, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_head, appended) == 1232, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_head, job) == 1240, "contract/ has another layout");
_Static_assert(sizeof(struct quell_trace_record) == 16, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_record, kind) == 0, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_record, words) == 1, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_record, mask) == 2, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_record, value) == 4, "contract/ has another layout");
_Static_assert(offsetof(struct quell_trace_record, time_ns) == 8, "contract/ has another layout");
/* End of what is generated. */

#endif
