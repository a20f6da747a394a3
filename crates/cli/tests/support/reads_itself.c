/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Reads its own account from the metric container many times under a storm of timers, and reports the result. A torn
 * reading is one in which a kind's time moved and its count did not, or the other way round, or either fell. The last
 * reading is reported with the time just before it and just after it.
 */
#define _GNU_SOURCE
#include "quell_metrics_read.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static unsigned long long monotonic_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

int main(int argc, char **argv)
{
	int cpu = argc > 1 ? atoi(argv[1]) : 0;
	long reads = argc > 2 ? atol(argv[2]) : 1000000;
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	/* As a user without privileges, if it can. */
	if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
		return 1;

	struct quell_metrics metrics;
	int code = quell_metrics_open(&metrics);
	if (code) {
		fprintf(stderr, "%s\n", quell_metrics_reason(code));
		return 1;
	}
	const struct quell_slot *slot = quell_metrics_thread(&metrics);
	if (!slot) {
		fprintf(stderr, "this thread has no slot\n");
		return 1;
	}
	struct itimerspec storm = { .it_interval.tv_nsec = 100000, .it_value.tv_nsec = 100000 };
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	timerfd_settime(timer, 0, &storm, 0);

	struct quell_reading before, now;
	long torn = 0, done = 0;
	unsigned long long first_ticks;
	if (quell_metrics_read(slot, &before))
		return 1;
	first_ticks = before.count[QUELL_TICK];
	/* Minimum number of reads, and of ticks among them. */
	while (done < reads || before.count[QUELL_TICK] - first_ticks < 2000) {
		if (quell_metrics_read(slot, &now))
			return 1;
		for (int kind = 0; kind < QUELL_KINDS; kind++) {
			int fell = now.ns[kind] < before.ns[kind] || now.count[kind] < before.count[kind];
			int time_alone = now.ns[kind] != before.ns[kind] && now.count[kind] == before.count[kind];
			torn += fell || time_alone;
		}
		before = now;
		/* A timer goes on only when its expirations are read. */
		unsigned long long expired;
		if (++done % 64 == 0 && read(timer, &expired, sizeof(expired)) < 0)
			continue;
	}
	close(timer);
	unsigned long long earliest = monotonic_ns();
	if (quell_metrics_read(slot, &now))
		return 1;
	unsigned long long latest = monotonic_ns();
	printf("{\"tid\":%u,\"reads\":%ld,\"torn\":%ld,\"ticks\":%llu,\"count\":{\"tick\":%llu,\"task\":%llu},"
	       "\"ns\":{\"tick\":%llu,\"task\":%llu},\"before_ns\":%llu,\"after_ns\":%llu}\n",
	       now.tid, done, torn, now.count[QUELL_TICK], now.count[QUELL_TICK], now.count[QUELL_TASK], now.ns[QUELL_TICK],
	       now.ns[QUELL_TASK], earliest, latest);
	return 0;
}
