/* A process that is not followed from birth is followed once it opens the container: the thread that opens it, one that exists
 * already and never leaves its CPU, and one that is born later. */
#include <pthread.h>
#include <stdio.h>

#include "quell_metrics_read.h"

static struct quell_metrics metrics;
static volatile int asked, go;
static unsigned tid_before;

static unsigned long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long long)t.tv_sec * 1000000000ULL + (unsigned long long)t.tv_nsec;
}

/* Number of interrupts of any kind that hit the slot's thread. */
static unsigned long long struck(const struct quell_slot *slot)
{
	struct quell_reading reading;

	if (!slot || quell_metrics_read(slot, &reading))
		return 0;
	return reading.count[QUELL_TICK] + reading.count[QUELL_IRQ] + reading.count[QUELL_IPI];
}

static int burn(const char *who, const struct quell_slot *slot)
{
	unsigned long long begin = now_ns(), before = struck(slot);

	while (now_ns() - begin < 300000000ULL)
		;
	printf("%s %s %llu\n", who, slot ? "slot" : "none", struck(slot) - before);
	return slot && struck(slot) > before;
}

/* Makes no call that could release the CPU, from before the opening on. */
static void *before(void *good)
{
	tid_before = (unsigned)syscall(SYS_gettid);
	go = 1;
	while (!asked)
		;
	*(int *)good = burn("before", quell_metrics_thread(&metrics));
	return NULL;
}

static void *after(void *good)
{
	*(int *)good = burn("after", quell_metrics_thread(&metrics));
	return NULL;
}

int main(void)
{
	pthread_t threads[2];
	int good[3] = { 0, 0, 0 }, code;

	pthread_create(&threads[0], NULL, before, &good[0]);
	while (!go)
		;
	code = quell_metrics_open(&metrics);
	if (code) {
		printf("%s\n", quell_metrics_reason(code));
		return 2;
	}
	good[1] = burn("asks", quell_metrics_thread(&metrics));
	asked = 1;
	pthread_join(threads[0], NULL);
	pthread_create(&threads[1], NULL, after, &good[2]);
	pthread_join(threads[1], NULL);
	if (!good[1])
		return 1;
	/* A second opening changes nothing. */
	if (quell_metrics_open(&metrics) || quell_metrics_thread(&metrics)->start_ns > now_ns() - 800000000ULL)
		return 3;
	return good[0] && good[1] && good[2] ? 0 : 1;
}
