/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The program of Nataraj et al. 2007, section 4.1: phases of a fixed piece of work and an all-reduce. Usage: bsp PHASES TURNS, or
 * bsp PHASES NS clock, where the work is time by the clock, in which a rank gives its CPU away, so that more ranks than CPUs can work at
 * once. Prints what the phases took, in ns, from a barrier before them.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SLICE_NS 100000

/* As the kernel has it (sched_setattr(2)); not every C library does. */
struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Asks for the shortest turns on a shared CPU, which kernels before 6.12 ignore. */
static void short_turns(void)
{
	struct attributes wanted = { .size = sizeof(wanted), .policy = SCHED_OTHER, .runtime = SLICE_NS };

	if (syscall(SYS_sched_setattr, 0, &wanted, 0))
		perror("sched_setattr");
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	uint64_t phases = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
	uint64_t turns = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000;
	int by_clock = argc > 3 && !strcmp(argv[3], "clock");
	uint64_t state = 1, begin;
	double mine = 1, all;
	int rank;

	if (by_clock)
		short_turns();
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Barrier(MPI_COMM_WORLD);
	begin = now_ns();
	for (uint64_t phase = 0; phase < phases; phase++) {
		if (by_clock) {
			for (uint64_t end = now_ns() + turns; now_ns() < end;)
				sched_yield();
		} else {
			for (uint64_t turn = 0; turn < turns; turn++)
				state = state * 6364136223846793005u + 1442695040888963407u;
		}
		mine = (double)(state >> 63);
		MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	}
	if (rank == 0)
		printf("%llu\n", (unsigned long long)(now_ns() - begin));
	MPI_Finalize();
	return 0;
}
