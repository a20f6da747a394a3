/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The time, from the TSC where the kernel keeps time by it too: then it is the same on all CPUs, and CLOCK_MONOTONIC is a straight line of it
 * but for small corrections of its slope (NTP). Each thread reads clock_gettime() once a millisecond, and follows a line in between.
 */
#include "trace.h"

#define HOLDS_NS 1000000u
/* A reading that took longer was interrupted. */
#define LONGEST_READING 2000

static bool usable(void)
{
	static int known; /* 1: usable, -1: not */
	if (!known) {
		char source[32];
		read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", source, sizeof(source));
		known = strcmp(source, "tsc") ? -1 : 1;
	}
	return known > 0;
}

static uint64_t monotonic_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Reads clock_gettime(), and begins the line anew. */
uint64_t now_anew(void)
{
	static __thread uint64_t first_tsc, first_ns, last_ns; /* where the slope is measured from; the last result */
	uint64_t before = __builtin_ia32_rdtsc(), now = monotonic_ns(), after = __builtin_ia32_rdtsc();
	uint64_t tsc = before + (after - before) / 2;
	struct line *line = &mine.line;
	/* The line may have been ahead: no time is earlier than one before. */
	uint64_t reached = line->ticks ? line->ns + (line->ticks * line->slope >> 32) : last_ns;
	uint64_t result = now < reached && reached - now < HOLDS_NS ? reached : now;
	line->ticks = 0;
	last_ns = result;
	if (!usable() || after - before > LONGEST_READING)
		return result;
	if (!first_tsc || now - first_ns > 1000u * HOLDS_NS) {
		first_tsc = tsc;
		first_ns = now;
		return result;
	}
	if (now - first_ns < HOLDS_NS)
		return result;
	double slope = (double)(now - first_ns) / (double)(tsc - first_tsc);
	uint64_t ticks = (uint64_t)(HOLDS_NS / slope);
	/* Flatter if it begins ahead, so that it is right at its end. */
	double fitting = slope * (1.0 - (double)(result - now) / HOLDS_NS);
	*line = (struct line){ tsc, result, (uint64_t)(fitting * 4294967296.0), ticks };
	return result;
}
