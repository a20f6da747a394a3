// Injects noise as De, Kothari & Mann (IEEE Cluster 2008, III-C) and Beckman et al. (IEEE Cluster 2006) do: the signal of an
// interval timer stops the program, its handler burns the length, and then sets the timer for the next detour. The overhead of
// this is not subtracted.
//
//   interval_timer CPU SECONDS GAP_NS LENGTH_NS
//
// The disturbed program reads the clock all the time. At the end it prints one JSON line: each time between two readings, in ns,
// in which the handler ran once.

#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#define NS 1000000000ull
#define MOST 1000000u

static volatile sig_atomic_t struck;
static uint64_t length_ns;
static struct itimerval next;

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "interval_timer: %s: %s\n", what, strerror(errno));
	exit(1);
}

static inline uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

static void burn(int signal)
{
	(void)signal;
	uint64_t until = now_ns() + length_ns;
	while (now_ns() < until)
		;
	struck++;
	setitimer(ITIMER_REAL, &next, NULL);
}

static uint64_t number(const char *text, uint64_t least, uint64_t most)
{
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (errno || *end || end == text || value < least || value > most) {
		fprintf(stderr, "interval_timer: `%s` is not a number from %" PRIu64 " to %" PRIu64 "\n", text, least, most);
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	if (argc != 5) {
		fprintf(stderr, "usage: interval_timer CPU SECONDS GAP_NS LENGTH_NS\n");
		return 2;
	}
	uint64_t cpu = number(argv[1], 0, CPU_SETSIZE - 1), seconds = number(argv[2], 1, 600);
	uint64_t gap = number(argv[3], 1000, NS - 1);
	length_ns = number(argv[4], 0, NS);
	next.it_value.tv_usec = (suseconds_t)(gap / 1000);
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("to run on that CPU");
	uint64_t *seen = malloc(sizeof(*seen) * MOST), count = 0;
	if (!seen)
		fail("malloc");
	// Touches the pages now, so that no page fault happens between two readings.
	memset(seen, 1, sizeof(*seen) * MOST);
	struct sigaction action = { .sa_handler = burn };
	if (sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &next, NULL))
		fail("the timer");
	uint64_t start = now_ns(), last = start;
	uint64_t gap_before = 0;
	sig_atomic_t before = struck, hit = 0;
	while (last - start < seconds * NS && count < MOST) {
		uint64_t now = now_ns();
		sig_atomic_t after = struck;
		// The handler may have run after this turn's reading; then the next turn is the long one.
		if (hit == 1)
			seen[count++] = gap_before > now - last ? gap_before : now - last;
		hit = after - before;
		before = after;
		gap_before = now - last;
		last = now;
	}
	printf("{\"schema\": \"quell.bench-interval-timer/1\", \"took_ns\": %" PRIu64 ", \"gaps_ns\": [", last - start);
	for (uint64_t i = 0; i < count; i++)
		printf("%s%" PRIu64, i ? ", " : "", seen[i]);
	printf("]}\n");
	return 0;
}
