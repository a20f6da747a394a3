/* What a read of the metric container costs, compared with other ways to read noise and time: the question of Nataraj et al.
 * 2007, Table 1. Runs under `quell record`, which gives its thread a slot. Prints one JSON document to the file in its
 * first argument: for each kind of read the ticks of a read, batch by batch, in both modes.
 *
 *     metric_container FILE CPU SEED ROUNDS
 *
 * In the mode "throughput" the reads of a batch follow each other directly and may overlap. In the mode "serialised" a fence before
 * each read delays it until the one before is done; "fence alone" is the cost of the fences themselves.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>

#include "quell_metrics_read.h"

#define BATCH 100
#define MOST_ROUNDS 100000
#define FIRST_ROUNDS 20 /* not counted: they warm up caches, predictors and pages */

static struct quell_metrics metrics;
static const struct quell_slot *slot;
static unsigned long long values[QUELL_KINDS];
static struct quell_reading reading;
static struct timeval day;
static struct timespec now;
static struct rusage usage;
static char text[256];
static uint64_t counter;
static int version_file, perf_counter;

#if defined(__x86_64__)
static inline void fence(void)
{
	__asm__ volatile("lfence" ::: "memory");
}

static inline uint64_t ticks(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence; rdtsc; lfence" : "=a"(low), "=d"(high)::"memory");
	return (uint64_t)high << 32 | low;
}
#elif defined(__aarch64__)
static inline void fence(void)
{
	__asm__ volatile("dsb ld; isb" ::: "memory");
}

static inline uint64_t ticks(void)
{
	uint64_t value;

	__asm__ volatile("isb; mrs %0, cntvct_el0; isb" : "=r"(value)::"memory");
	return value;
}
#else
#error "this processor's counter is not known here"
#endif

/* Keeps the compiler from dropping a read whose result is not used, and from merging two of them. */
#define DONE(memory_read) __asm__ volatile("" ::"r"(memory_read) : "memory")

#define KINDS_1 QUELL_ONLY(QUELL_TASK)
#define KINDS_2 (KINDS_1 | QUELL_ONLY(QUELL_TICK))
#define KINDS_4 (KINDS_2 | QUELL_ONLY(QUELL_IRQ) | QUELL_ONLY(QUELL_SOFTIRQ))

static void stop(const char *what, const char *why)
{
	fprintf(stderr, "metric_container: %s: %s\n", what, why);
	exit(1);
}

static unsigned long long failed;

/* Two functions for each kind of read, each of which times a batch. */
#define CONTENDER(name, call, result)                            \
	static uint64_t name##_throughput(void)                  \
	{                                                        \
		const uint64_t start = ticks();                  \
		int number;                                      \
		for (number = 0; number < BATCH; number++) {     \
			failed += (call) < 0;                    \
			DONE(result);                            \
		}                                                \
		return ticks() - start;                          \
	}                                                        \
	static uint64_t name##_serialised(void)                  \
	{                                                        \
		const uint64_t start = ticks();                  \
		int number;                                      \
		for (number = 0; number < BATCH; number++) {     \
			fence();                                 \
			failed += (call) < 0;                    \
			DONE(result);                            \
		}                                                \
		return ticks() - start;                          \
	}

CONTENDER(nothing, 0, values)
CONTENDER(container_1, quell_metrics_read_some(slot, KINDS_1, values), values)
CONTENDER(container_2, quell_metrics_read_some(slot, KINDS_2, values), values)
CONTENDER(container_4, quell_metrics_read_some(slot, KINDS_4, values), values)
CONTENDER(container_8, quell_metrics_read_some(slot, QUELL_EVERY_KIND, values), values)
CONTENDER(found_8, quell_metrics_read_some(quell_metrics_thread(&metrics), QUELL_EVERY_KIND, values), values)
CONTENDER(whole, quell_metrics_read(slot, &reading), &reading)
CONTENDER(time_of_day, gettimeofday(&day, NULL), &day)
CONTENDER(monotonic, clock_gettime(CLOCK_MONOTONIC, &now), &now)
CONTENDER(null_call, syscall(SYS_getppid), values)
CONTENDER(thread_usage, getrusage(RUSAGE_THREAD, &usage), &usage)
CONTENDER(no_op_proc, pread(version_file, text, sizeof(text), sizeof(text)), text)
CONTENDER(perf, read(perf_counter, &counter, sizeof(counter)), &counter)

static struct contender {
	const char *name;
	uint64_t (*batch[2])(void); /* throughput, serialised */
	const char *skipped;        /* the reason */
	uint64_t *taken[2];
} contenders[] = {
	{ "fence alone", { nothing_throughput, nothing_serialised }, NULL, { NULL, NULL } },
	{ "container, 1 metric", { container_1_throughput, container_1_serialised }, NULL, { NULL, NULL } },
	{ "container, 2 metrics", { container_2_throughput, container_2_serialised }, NULL, { NULL, NULL } },
	{ "container, 4 metrics", { container_4_throughput, container_4_serialised }, NULL, { NULL, NULL } },
	{ "container, 8 metrics", { container_8_throughput, container_8_serialised }, NULL, { NULL, NULL } },
	{ "container, 8 metrics and the slot found", { found_8_throughput, found_8_serialised }, NULL, { NULL, NULL } },
	{ "container, all that a slot says", { whole_throughput, whole_serialised }, NULL, { NULL, NULL } },
	{ "gettimeofday", { time_of_day_throughput, time_of_day_serialised }, NULL, { NULL, NULL } },
	{ "clock_gettime(CLOCK_MONOTONIC)", { monotonic_throughput, monotonic_serialised }, NULL, { NULL, NULL } },
	{ "null system call (getppid)", { null_call_throughput, null_call_serialised }, NULL, { NULL, NULL } },
	{ "getrusage(RUSAGE_THREAD)", { thread_usage_throughput, thread_usage_serialised }, NULL, { NULL, NULL } },
	{ "no-op read of /proc", { no_op_proc_throughput, no_op_proc_serialised }, NULL, { NULL, NULL } },
	{ "perf read() of task-clock", { perf_throughput, perf_serialised }, NULL, { NULL, NULL } },
};
#define CONTENDERS ((int)(sizeof(contenders) / sizeof(contenders[0])))
#define PERF (CONTENDERS - 1)

/* splitmix64: the same seed must give the same order everywhere. */
static uint64_t chance(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static void open_container(void)
{
	int code = quell_metrics_open(&metrics);

	if (code)
		stop("the metric container", quell_metrics_reason(code));
	slot = quell_metrics_thread(&metrics);
	if (!slot)
		stop("the metric container", quell_metrics_reason(-ESRCH));
}

static void open_peers(void)
{
	struct perf_event_attr attributes;

	version_file = open("/proc/version", O_RDONLY | O_CLOEXEC);
	if (version_file < 0)
		stop("/proc/version", strerror(errno));
	memset(&attributes, 0, sizeof(attributes));
	attributes.size = sizeof(attributes);
	attributes.type = PERF_TYPE_SOFTWARE;
	attributes.config = PERF_COUNT_SW_TASK_CLOCK;
	perf_counter = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (perf_counter < 0)
		contenders[PERF].skipped = strerror(errno);
}

static void stay_on(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		stop("staying on one CPU", strerror(errno));
}

static void make_room(int rounds)
{
	int number, mode;

	for (number = 0; number < CONTENDERS; number++)
		for (mode = 0; mode < 2; mode++) {
			contenders[number].taken[mode] = (uint64_t *)calloc((size_t)rounds, sizeof(uint64_t));
			if (!contenders[number].taken[mode])
				stop("memory", strerror(errno));
		}
}

/* Measures every contender once in both modes, in random order. */
static void measure_round(uint64_t *state, int round)
{
	int order[2 * CONTENDERS], number;

	for (number = 0; number < 2 * CONTENDERS; number++)
		order[number] = number;
	for (number = 2 * CONTENDERS - 1; number > 0; number--) {
		const int other = (int)(chance(state) % (uint64_t)(number + 1));
		const int kept = order[number];

		order[number] = order[other];
		order[other] = kept;
	}
	for (number = 0; number < 2 * CONTENDERS; number++) {
		struct contender *contender = &contenders[order[number] / 2];
		const int mode = order[number] % 2;

		if (contender->skipped)
			continue;
		contender->batch[mode](); /* warm-up: the contender before left its own data in the caches */
		contender->taken[mode][round < 0 ? 0 : round] = contender->batch[mode]();
	}
}

static void print_series(FILE *out, const char *key, const uint64_t *taken, int rounds)
{
	int round;

	fprintf(out, ", \"%s\": [", key);
	for (round = 0; round < rounds; round++)
		fprintf(out, "%s%.2f", round ? ", " : "", (double)taken[round] / BATCH);
	fputs("]", out);
}

static void print_document(const char *file, int rounds)
{
	FILE *out = fopen(file, "w");
	int number;

	if (!out)
		stop(file, strerror(errno));
	fprintf(out, "{\"schema\": \"quell.bench-metric-container/1\", \"batch\": %d, \"reads\": [\n", BATCH);
	for (number = 0; number < CONTENDERS; number++) {
		const struct contender *contender = &contenders[number];

		fprintf(out, "{\"name\": \"%s\"", contender->name);
		if (contender->skipped) {
			fprintf(out, ", \"skipped\": \"%s\"", contender->skipped);
		} else {
			print_series(out, "throughput", contender->taken[0], rounds);
			print_series(out, "serialised", contender->taken[1], rounds);
		}
		fprintf(out, "}%s\n", number + 1 < CONTENDERS ? "," : "");
	}
	fputs("]}\n", out);
	if (fclose(out))
		stop(file, strerror(errno));
}

int main(int count, char **arguments)
{
	uint64_t state;
	int rounds, round;

	if (count != 5)
		stop("wrong usage", "metric_container FILE CPU SEED ROUNDS");
	stay_on(atoi(arguments[2]));
	state = strtoull(arguments[3], NULL, 10);
	rounds = atoi(arguments[4]);
	if (rounds < 1 || rounds > MOST_ROUNDS)
		stop("ROUNDS", "must be from 1 to 100000");
	open_container();
	open_peers();
	make_room(rounds);
	for (round = -FIRST_ROUNDS; round < rounds; round++)
		measure_round(&state, round);
	if (failed)
		stop("reads", "some gave no figures");
	print_document(arguments[1], rounds);
	return 0;
}
