/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A trace log: what the tracer in mpi/trace saw of one thread of one rank. crates/recording/src/mpi_log.rs reads it, and its test
 * compiles this header.
 *
 * A file is a head of QUELL_TRACE_HEAD bytes and then records, of which the first `bytes` bytes are whole at any time: they are there
 * even if the program was killed. All numbers are little endian. Where the head says FINALIZED, nothing more will come.
 */
#ifndef QUELL_TRACE_LOG_H
#define QUELL_TRACE_LOG_H

#include <stdint.h>

#define QUELL_TRACE_MAGIC "QUELLMPI"
#define QUELL_TRACE_VERSION 1
#define QUELL_TRACE_HEAD 4096

enum quell_trace_state {
	QUELL_TRACE_RUNNING = 0,
	QUELL_TRACE_FINALIZED = 1,
	QUELL_TRACE_WRONG_MPI = 2, /* the tracer was compiled for another MPI than the program's: nothing was traced */
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
	uint64_t lost;  /* records that found no room */
	uint32_t rank;
	uint32_t ranks;
	uint32_t pid;
	uint32_t tid;
	uint32_t thread;  /* of this rank, from 0 */
	uint32_t sources; /* a bit for each noise source that there is */
	uint64_t begin_ns;
	uint64_t end_ns;    /* 0 until it ended */
	uint64_t calls;     /* seen, beside MPI_Init, MPI_Init_thread and MPI_Finalize */
	uint64_t one_sided; /* calls that put or get: seen, not tracked */
	uint32_t clocks;    /* how many of these were measured; 0 on followers: see the rank with the same boot id that did */
	uint32_t clock_zero; /* not 0: this is the clock of rank 0 itself */
	struct quell_trace_clock clock[2];
	char host[256];
	char boot[64];
	char library[256]; /* the MPI's version, its first line */
	char program[256];
	char reason[256]; /* why there are no kernel's noise counters; empty if there are */
};

/* What happened. `value`, `mask` and the words that follow the record are given for each. COMM|PEER is a word with the number
 * of the communicator in its lower half and a rank of it in the upper. A [REQUEST] is only there where the call does not block.
 * Numbers of regions hold within a log, those of communicators and requests within a process. 0xffffffff: not known, a wildcard. */
enum quell_trace_kind {
	QUELL_TRACE_REGION = 1,    /* value: its number; mask: 1 if it is an MPI call. Text: name, zero, site, zero */
	QUELL_TRACE_COMM = 2,      /* value: its number; mask: 1 if it joins two groups. IDENTITY, SIZE|RANK, REMOTE SIZE|FIRST, text: maker, zero */
	QUELL_TRACE_MEMBERS = 3,   /* value: the communicator's number. IDENTITY, FIRST PLACE|COUNT, then world ranks, two a word */
	QUELL_TRACE_ENTER = 4,     /* value: region; mask: the noise sources that changed. Their totals in ns */
	QUELL_TRACE_LEAVE = 5,     /* the same */
	QUELL_TRACE_SEND = 6,      /* value: tag. COMM|PEER, bytes, [REQUEST] */
	QUELL_TRACE_SEND_DONE = 7, /* REQUEST */
	QUELL_TRACE_POSTED = 8,    /* a receive. value: tag. COMM|PEER, REQUEST */
	QUELL_TRACE_RECV = 9,      /* value: tag. COMM|PEER, bytes, [REQUEST] */
	QUELL_TRACE_PROBED = 10,   /* value: tag. COMM|PEER */
	QUELL_TRACE_PENDING = 11,  /* REQUEST */
	QUELL_TRACE_CANCELLED = 12, /* REQUEST */
	QUELL_TRACE_COLLECTIVE_BEGIN = 13,
	QUELL_TRACE_COLLECTIVE_POSTED = 14, /* value: communicator. REQUEST */
	QUELL_TRACE_COLLECTIVE = 15, /* value: communicator; mask: operation. COMM|ROOT, bytes sent, bytes received, [REQUEST] */
};

/* In the order of `Operation` in crates/recording/src/mpi.rs. */
enum quell_trace_operation {
	QUELL_BARRIER,
	QUELL_BCAST,
	QUELL_GATHER,
	QUELL_GATHERV,
	QUELL_SCATTER,
	QUELL_SCATTERV,
	QUELL_ALLGATHER,
	QUELL_ALLGATHERV,
	QUELL_ALLTOALL,
	QUELL_ALLTOALLV,
	QUELL_ALLTOALLW,
	QUELL_ALLREDUCE,
	QUELL_REDUCE,
	QUELL_REDUCE_SCATTER,
	QUELL_REDUCE_SCATTER_BLOCK,
	QUELL_SCAN,
	QUELL_EXSCAN,
	QUELL_CREATE,
	QUELL_DESTROY,
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

#endif
