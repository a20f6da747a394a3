/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The beginning and the end of the MPI, and the program's phases. */
#include "trace.h"

/* The log is opened once the rank is known. */
static int initialized(uint32_t call, const void *site, uint64_t began_ns, int code)
{
	if (code != MPI_SUCCESS)
		return code;
	comms_begin();
	mine.depth = 1;
	struct log *log = log_open();
	clocks_begin(log);
	if (log) {
		/* Noise during the clock measurement would seem to lie before the first event. */
		log_forget_noise(log);
		log->region = log_region(log, call, site);
		log->now_ns = began_ns;
		log->head->begin_ns = began_ns;
		log_edge(log, QUELL_TRACE_ENTER, log->region);
		call_returned(log);
		log_edge(log, QUELL_TRACE_LEAVE, log->region);
	}
	tracing = true;
	mine.depth = 0;
	return code;
}

int traced_Init(int *argc, char ***argv)
{
	uint64_t began_ns = now_ns();
	if (mine.depth)
		return REAL(Init)(argc, argv);
	mine.depth = 1;
	int code = REAL(Init)(argc, argv);
	mine.depth = 0;
	return initialized(CALL_Init, SITE, began_ns, code);
}

int traced_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	uint64_t began_ns = now_ns();
	if (mine.depth)
		return REAL(Init_thread)(argc, argv, required, provided);
	mine.depth = 1;
	int code = REAL(Init_thread)(argc, argv, required, provided);
	mine.depth = 0;
	threaded = code == MPI_SUCCESS && *provided == MPI_THREAD_MULTIPLE;
	return initialized(CALL_Init_thread, SITE, began_ns, code);
}

static void phase_ends(struct log *log)
{
	if (log->phase)
		log_edge(log, QUELL_TRACE_LEAVE, log->phase);
	log->phase = 0;
}

int traced_Finalize(void)
{
	if (mine.depth || !tracing)
		return REAL(Finalize)();
	struct log *log = call_begin(CALL_Finalize, CALLER);
	mine.depth = 1;
	if (log)
		log->head->calls--;
	clocks_measure(log);
	int code = REAL(Finalize)();
	tracing = false;
	if (log) {
		call_returned(log);
		log_edge(log, QUELL_TRACE_LEAVE, log->region);
		phase_ends(log);
	}
	log_end_all(true);
	mine.depth = 0;
	return code;
}

/* The log then ends within the call. */
TRACED(Abort, (MPI_Comm comm, int reason), (comm, reason), , )

/* A level of 1 or more begins the phase of that number, a negative one ends it. Other values are ignored. */
int traced_Pcontrol(const int level, ...)
{
	struct log *log = mine.depth || !tracing ? NULL : mine.log ? mine.log : log_open();
	if (!log || !level)
		return MPI_SUCCESS;
	log->now_ns = now_ns();
	if (level < 0) {
		uint32_t region = log_region(log, PHASE, (const void *)(intptr_t)-(int64_t)level);
		if (log->phase == region)
			phase_ends(log);
		return MPI_SUCCESS;
	}
	phase_ends(log);
	log->phase = log_region(log, PHASE, (const void *)(intptr_t)level);
	log_edge(log, QUELL_TRACE_ENTER, log->phase);
	return MPI_SUCCESS;
}
