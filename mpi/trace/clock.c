/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The first rank of each kernel asks rank 0 for its time. The fastest of many answers limits the error of the clocks' difference to
 * half its round-trip time (Cristian 1989). Ranks of one kernel share its clock, and the offset that its first rank measured. "First"
 * is among those with a log. A rank without one, for instance because the disk is full, still takes part in the collective calls.
 *
 * A rank that does not have the tracer at all, as when several programs are started together and only some with the preload,
 * cannot take part, and the others wait for it in MPI_Init forever: detecting that it is missing would take a message that it
 * has to answer.
 */
#include "trace.h"

#include <stdlib.h>
#include <unistd.h>

#define ROUNDS 200
/* Both sides wait for each other within MPI_Init or MPI_Finalize, so only messages that the program never received could interfere,
 * and those have another tag. */
#define TAG 31337

/* On rank 0, the first ranks of the other kernels. On each of those ranks `leads` is set. */
static int *leaders, count;
static bool leads;
uint64_t job;

static uint64_t hash(const char *text)
{
	uint64_t value = 0xcbf29ce484222325u;
	while (*text)
		value = (value ^ (unsigned char)*text++) * 0x100000001b3u;
	return value;
}

static void answer(int whom)
{
	uint64_t now;
	for (int round = 0; round < ROUNDS; round++) {
		REAL(Recv)(&now, sizeof(now), BYTE, whom, TAG, THE_WORLD, MPI_STATUS_IGNORE);
		now = now_ns();
		REAL(Send)(&now, sizeof(now), BYTE, whom, TAG, THE_WORLD);
	}
}

static void ask(struct quell_trace_clock *clock)
{
	uint64_t best = UINT64_MAX;
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t theirs = 0, begin = now_ns();
		REAL(Send)(&theirs, sizeof(theirs), BYTE, 0, TAG, THE_WORLD);
		REAL(Recv)(&theirs, sizeof(theirs), BYTE, 0, TAG, THE_WORLD, MPI_STATUS_IGNORE);
		uint64_t took = now_ns() - begin, mine_ns = begin + took / 2;
		if (took >= best)
			continue;
		best = took;
		*clock = (struct quell_trace_clock){ mine_ns, (int64_t)(theirs - mine_ns), (took + 1) / 2 };
	}
}

/* Measures the clocks. Without a log (NULL) this is not a first rank, but may be rank 0. */
void clocks_measure(struct log *log)
{
	for (int i = 0; i < count; i++)
		answer(leaders[i]);
	if (log && leads)
		ask(&log->head->clock[log->head->clocks++ & 1]);
}

/* Finds the first rank of each kernel, and measures their clocks. The log may be NULL. */
void clocks_begin(struct log *log)
{
	int ranks = 1, rank = 0;
	char boot[64] = "";
	REAL(Comm_rank)(THE_WORLD, &rank);
	REAL(Comm_size)(THE_WORLD, &ranks);
	read_line("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	/* 0: a rank whose clock is not measured. Rank 0's clock is that of the run, and its start names the job. */
	uint64_t own = log || !rank ? hash(boot) : 0, *all = malloc(sizeof(*all) * (size_t)ranks);
	job = (now_ns() ^ (uint64_t)getpid() << 40 ^ hash(boot)) | 1;
	leaders = rank ? NULL : malloc(sizeof(*leaders) * (size_t)ranks);
	if (!all || (!rank && !leaders))
		REAL(Abort)(THE_WORLD, 1);
	REAL(Allgather)(&own, sizeof(own), BYTE, all, sizeof(own), BYTE, THE_WORLD);
	REAL(Bcast)(&job, sizeof(job), BYTE, 0, THE_WORLD);
	if (log) {
		log->head->clock_zero = own == all[0];
		log->head->job = job;
	}
	leads = log && own != all[0];
	for (int other = 1; other < rank && leads; other++)
		leads = all[other] != own;
	for (int other = 1; other < ranks && !rank; other++) {
		bool first = all[other] != 0;
		/* Backwards, because a rank's neighbours are mostly on its own kernel. */
		for (int before = other - 1; before >= 0 && first; before--)
			first = all[before] != all[other];
		if (first)
			leaders[count++] = other;
	}
	free(all);
	clocks_measure(log);
}
