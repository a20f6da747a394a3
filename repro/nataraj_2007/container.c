/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What it costs to begin with the metric container: Nataraj et al. 2007, Table 1, "config". Runs under `quell record`; prints the
 * ticks of each of some openings, and of the first look for the thread's slot after it, a pair a line.
 */
#include <stdint.h>
#include <stdio.h>

#include "quell_metrics_read.h"

#define TIMES 200

static uint64_t ticks(void)
{
	return __builtin_ia32_rdtsc();
}

int main(void)
{
	for (int time = 0; time < TIMES; time++) {
		struct quell_metrics metrics;
		uint64_t begin = ticks(), opened, found;

		if (quell_metrics_open(&metrics))
			return 1;
		opened = ticks();
		if (!quell_metrics_thread(&metrics))
			return 1;
		found = ticks();
		printf("%llu %llu\n", (unsigned long long)(opened - begin), (unsigned long long)(found - opened));
		quell_metrics_close(&metrics);
	}
	return 0;
}
