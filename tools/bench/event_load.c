// Generates events at a known rate on one CPU, for a few seconds:
//
//   event_load CPU SECONDS switch RATE   two threads wake each other: RATE switches between them per second
//   event_load CPU SECONDS timer RATE    a timer that fires RATE times per second
//   event_load CPU SECONDS storm         switches as fast as possible
//   event_load CPU SECONDS yield         as `storm`, by threads of the lowest real-time priority that do nothing but yield; needs the privilege
//
// Paced work is done in portions each millisecond, so that the mean rate is right even if this program has to wait.
// At the end it prints one JSON line: its threads, the kernel's count of how often each left the CPU, and what it did.

#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NS 1000000000ull
#define PORTION_NS 1000000ull
#define STORM_PORTION 1000u

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "event_load: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / NS), .tv_nsec = (long)(ns % NS) };
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

// How often this thread left a CPU, by the kernel's count.
static uint64_t switches(void)
{
	struct rusage usage;
	if (getrusage(RUSAGE_THREAD, &usage))
		fail("getrusage");
	return (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
}

struct pair {
	int there[2], back[2];
	pid_t tid;
	uint64_t switches;
};

static void *answer(void *argument)
{
	struct pair *pair = argument;
	char byte;
	pair->tid = gettid();
	while (read(pair->there[0], &byte, 1) == 1)
		if (write(pair->back[1], &byte, 1) != 1)
			fail("write");
	pair->switches = switches();
	return NULL;
}

static void round_trip(const struct pair *pair)
{
	char byte = 0;
	if (write(pair->there[1], &byte, 1) != 1 || read(pair->back[0], &byte, 1) != 1)
		fail("a round trip");
}

static void print(const char *mode, uint64_t did, uint64_t took_ns, const struct pair *pair)
{
	printf("{\"schema\": \"quell.bench-event-load/1\", \"mode\": \"%s\", \"events\": %" PRIu64 ", \"took_ns\": %" PRIu64
	       ", \"threads\": [{\"tid\": %d, \"switches\": %" PRIu64 "}",
	       mode, did, took_ns, (int)getpid(), switches());
	if (pair)
		printf(", {\"tid\": %d, \"switches\": %" PRIu64 "}", (int)pair->tid, pair->switches);
	printf("]}\n");
}

// Each round trip is two switches, provided that both threads share one CPU. A rate of 0 means unpaced.
static void ping_pong(const char *mode, uint64_t seconds, uint64_t rate)
{
	struct pair pair = { 0 };
	pthread_t other;
	if (pipe(pair.there) || pipe(pair.back))
		fail("pipe");
	if (pthread_create(&other, NULL, answer, &pair))
		fail("pthread_create");
	uint64_t start = now_ns(), trips = 0, now = start;
	while (now - start < seconds * NS) {
		uint64_t due = rate ? (now - start) * rate / 2 / NS : trips + STORM_PORTION;
		while (trips < due) {
			round_trip(&pair);
			trips++;
		}
		if (rate)
			sleep_until(now + PORTION_NS);
		now = now_ns();
	}
	uint64_t took_ns = now_ns() - start;
	close(pair.there[1]);
	pthread_join(other, NULL);
	print(mode, trips * 2, took_ns, &pair);
}

struct yielding {
	uint64_t until_ns;
	pid_t tid;
	uint64_t times, switches;
};

// Ends by itself, since nothing else may get the CPU before it does.
static void *yield_until(void *argument)
{
	struct yielding *yielding = argument;
	yielding->tid = gettid();
	while (now_ns() < yielding->until_ns)
		for (unsigned i = 0; i < STORM_PORTION; i++, yielding->times++)
			sched_yield();
	yielding->switches = switches();
	return NULL;
}

// Each yield of a thread is a switch to the other one, which has the same priority.
static void yields(uint64_t seconds)
{
	struct sched_param lowest = { .sched_priority = sched_get_priority_min(SCHED_FIFO) };
	if (sched_setscheduler(0, SCHED_FIFO, &lowest))
		fail("a real-time priority");
	uint64_t start = now_ns();
	struct yielding here = { .until_ns = start + seconds * NS }, there = here;
	pthread_t other;
	if (pthread_create(&other, NULL, yield_until, &there))
		fail("pthread_create");
	yield_until(&here);
	pthread_join(other, NULL);
	struct pair pair = { .tid = there.tid, .switches = there.switches };
	print("yield", here.times + there.times, now_ns() - start, &pair);
}

static void timer(uint64_t seconds, uint64_t rate)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	struct timespec period = { .tv_nsec = (long)(NS / rate) };
	struct itimerspec setting = { .it_interval = period, .it_value = period };
	if (fd < 0 || timerfd_settime(fd, 0, &setting, NULL))
		fail("timerfd");
	uint64_t start = now_ns(), fired = 0, times;
	while (now_ns() - start < seconds * NS) {
		if (read(fd, &times, sizeof(times)) != sizeof(times))
			fail("the timer");
		fired += times;
	}
	print("timer", fired, now_ns() - start, NULL);
}

static uint64_t number(const char *text, uint64_t least, uint64_t most)
{
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (errno || *end || end == text || value < least || value > most) {
		fprintf(stderr, "event_load: `%s` is not a number from %" PRIu64 " to %" PRIu64 "\n", text, least, most);
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 3 ? argv[3] : "";
	int paced = !strcmp(mode, "switch") || !strcmp(mode, "timer");
	if (argc != (paced ? 5 : 4) || (!paced && strcmp(mode, "storm") && strcmp(mode, "yield"))) {
		fprintf(stderr, "usage: event_load CPU SECONDS switch RATE | timer RATE | storm | yield\n");
		return 2;
	}
	uint64_t cpu = number(argv[1], 0, CPU_SETSIZE - 1), seconds = number(argv[2], 1, 600);
	uint64_t rate = paced ? number(argv[4], 2, 1000000) : 0;
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("to run on that CPU");
	if (!strcmp(mode, "timer"))
		timer(seconds, rate);
	else if (!strcmp(mode, "yield"))
		yields(seconds);
	else
		ping_pong(mode, seconds, rate);
	return 0;
}
