/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Spins on a CPU until its standard input ends; prints its thread id first.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	cpu_set_t set;
	char byte;
	CPU_ZERO(&set);
	CPU_SET(argc > 1 ? atoi(argv[1]) : 0, &set);
	sched_setaffinity(0, sizeof(set), &set);
	printf("%d\n", getpid());
	fflush(stdout);
	fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK);
	for (;;) {
		for (volatile int turn = 0; turn < 1000000; turn++)
			;
		if (read(0, &byte, 1) == 0)
			return 0;
	}
}
