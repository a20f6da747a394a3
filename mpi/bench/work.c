/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Work of a known length: steps of a linear congruential generator (De et al. 2008, eq. 1), as many as fill a quantum when
 * nothing disturbs them.
 */
#include "bench.h"

#include <stdlib.h>

/* Short runs fit between interruptions; the clock's two readings are a thousandth of one. */
#define BATCH_NS 40000
#define BATCHES 300
/* Quantile in the middle of the fastest tenth. */
#define FASTEST 0.05
/* Number of full quanta to check with. */
#define CHECKS 15
#define LONGEST_CHECK_NS 20000000
#define TRIES 5
/* Permitted deviation of the fastest from the quantum, as a share. */
#define TOLERANCE 0.005

/* The generator's state carries over from call to call, so a compiler can neither drop nor move a call. */
static volatile uint64_t state = 1;

__attribute__((noinline)) uint64_t work_do(uint64_t iterations)
{
	uint64_t x = state;
	for (uint64_t i = 0; i < iterations; i++)
		x = (16807 * x + 11) % 2147483647;
	state = x;
	return x;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static uint64_t quantile(uint64_t *times, size_t count, double part)
{
	qsort(times, count, sizeof(*times), ascending);
	return times[(size_t)(part * (double)(count - 1))];
}

static uint64_t time_of(uint64_t iterations)
{
	uint64_t begin = now_ns();
	work_do(iterations);
	return now_ns() - begin;
}

/* Time of a step, from the fastest tenth of many short runs. */
static double measure_step(void)
{
	uint64_t batch = 1000, times[BATCHES];
	while (time_of(batch) < BATCH_NS && batch < UINT64_MAX / 4)
		batch *= 2;
	for (size_t i = 0; i < BATCHES; i++)
		times[i] = time_of(batch);
	return (double)quantile(times, BATCHES, FASTEST) / (double)batch;
}

static void take(struct work *work, double step)
{
	double iterations = (double)work->quantum_ns / step;
	work->ns_per_iteration = step;
	work->iterations = iterations < 1 ? 1 : (uint64_t)(iterations + 0.5);
	work->calibrations++;
}

/* Whether the fastest of several quanta has the requested length. */
static bool holds(const struct work *work)
{
	if (work->quantum_ns > LONGEST_CHECK_NS)
		return true;
	uint64_t times[CHECKS];
	for (size_t i = 0; i < CHECKS; i++)
		times[i] = time_of(work->iterations);
	double ratio = (double)quantile(times, CHECKS, 0) / (double)work->quantum_ns;
	return ratio > 1 - TOLERANCE && ratio < 1 + TOLERANCE;
}

void work_calibrate(struct work *work, uint64_t quantum_ns)
{
	*work = (struct work){.quantum_ns = quantum_ns};
	if (!quantum_ns)
		return;
	take(work, measure_step());
	/* Noise can only make a step seem longer, so the shortest of several is kept. */
	for (int try = 1; try < TRIES && !holds(work); try++) {
		double step = measure_step();
		take(work, step < work->ns_per_iteration ? step : work->ns_per_iteration);
	}
}

void work_check(struct work *work, uint64_t *times_ns, size_t times)
{
	if (!work->quantum_ns || times < 2 * CHECKS)
		return;
	double ratio = (double)quantile(times_ns, times, FASTEST) / (double)work->quantum_ns;
	if (ratio > 0.99 && ratio < 1.01)
		return;
	/* Noise lengthens quanta too, and must not be calibrated away. Only short runs show whether the step itself takes another time now. */
	double step = measure_step(), moved = step / work->ns_per_iteration;
	if (moved < 1 - TOLERANCE || moved > 1 + TOLERANCE)
		take(work, step);
}
