/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Shares a CPU with a child that never sleeps, for 400 ms, and leaves the CPU in one way only: `yield` calls sched_yield, `move` calls
 * sched_setaffinity, `compute` does neither, so that the scheduler preempts it. Prints its thread id and the time inside the calls.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RUN_NS 400000000ULL

static unsigned long long monotonic_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static void go_to(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "yield";
	int cpu = argc > 2 ? atoi(argv[2]) : 0, other = argc > 3 ? atoi(argv[3]) : 0;
	go_to(cpu);
	unsigned long long end = monotonic_ns() + RUN_NS, inside = 0, calls = 0;
	pid_t neighbour = fork();
	if (neighbour == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (monotonic_ns() < end + RUN_NS)
			;
		return 0;
	}
	while (monotonic_ns() < end) {
		unsigned long long begin = monotonic_ns();
		if (!strcmp(how, "yield"))
			sched_yield();
		else if (!strcmp(how, "move"))
			go_to(calls % 2 ? cpu : other);
		else
			continue;
		inside += monotonic_ns() - begin;
		calls++;
	}
	kill(neighbour, SIGKILL);
	waitpid(neighbour, NULL, 0);
	printf("{\"tid\": %d, \"inside_ns\": %llu, \"calls\": %llu}\n", getpid(), inside, calls);
	return 0;
}
