/* Equal work on a thread on the first CPU and one on the last, and a barrier of the ranks after it: ROUNDS. */
#define _GNU_SOURCE
#include <mpi.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Some 2 ms, by count and not by clock: a thread that loses its CPU ends later. */
static unsigned work(unsigned seed)
{
	for (int turn = 0; turn < 2000000; turn++) {
		seed = seed * 1664525u + 1013904223u;
		/* No compiler computes it otherwise. */
		__asm__ volatile("" : "+r"(seed));
	}
	return seed;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

int main(int argc, char **argv)
{
	const int rounds = argc > 1 ? atoi(argv[1]) : 100, last = (int)sysconf(_SC_NPROCESSORS_ONLN) - 1;
	unsigned sum = 0;
	int given;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
	/* Before there is a worker: what strikes the last CPU from then on never strikes this thread. */
	pin(0);
	for (int round = 0; round < rounds; round++) {
#pragma omp parallel num_threads(2) reduction(+ : sum)
		{
			if (!round && omp_get_thread_num())
				pin(last);
			sum += work((unsigned)omp_get_thread_num());
#pragma omp barrier
			sum += work((unsigned)round);
		}
		MPI_Barrier(MPI_COMM_WORLD);
	}
	printf("%d rounds, %s\n", rounds, sum ? "done" : "nothing");
	MPI_Finalize();
	return 0;
}
