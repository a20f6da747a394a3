/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Teams of OpenMP threads (openmp.c). A process has one team at a time: that of its outermost parallel region. */
#ifndef QUELL_TRACE_OPENMP_H
#define QUELL_TRACE_OPENMP_H

#include "trace.h"

/* A parallel region, from its fork to its join. */
struct team {
	const void *site;
	uint32_t threads; /* that the program asks for, or 0 */
	struct edge fork;
	bool forked; /* whether the fork is in the log: teams of one thread are left out */
};

/* The calling thread is about to fork a team; false if that is not traced. */
bool team_fork(struct team *team, uint32_t threads, const void *site);
/* The calling thread's share begins, in a team of `threads`, and ends. */
void share_begin(struct team *team, bool master, uint32_t threads);
void share_end(struct team *team);
/* The share of any thread that is at rest ended at `edge`. */
void share_ended(struct team *team, const struct edge *edge);
/* The calling thread has joined its team. */
void team_join(struct team *team);
/* Enters a barrier of the calling thread's team; 0 if that is not traced. */
uint32_t barrier_enter(uint32_t kind, const void *site);
/* The calling thread leaves a barrier that it entered at `edge`. */
void barrier_passed(const struct edge *edge);
void barrier_leave(uint32_t region);

/* The runtime with this function reports its teams itself (ompt.c). */
void runtime_reports(const void *function);

#endif
