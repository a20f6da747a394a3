/* A million reads of a slot that is written at four nested levels must each be a consistent snapshot, on another CPU and on the
 * writers' own. Signals stand in for interrupts: a timer's signal interrupts the writer in the middle of a write, as an
 * interrupt does in the kernel, and a signal of a higher level interrupts its handler.
 *
 * The same reads without the sequence numbers must see torn values; otherwise the test could not have failed. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "container.h"
#include "quell_metrics_read.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define READS 1000000
#define LONGEST_S 120
#define TASK_TURN_PAUSES 8 /* so that there is time in which no level is at work */

static struct quell_slot *written;
static volatile int ending;
static unsigned long long nested[QUELL_LEVELS]; /* how often each level interrupted a write */

static void add(struct quell_slot *slot, enum quell_kind kind, unsigned long long times)
{
	PUT(slot->count[kind], slot->count[kind] + times);
	PUT(slot->ns[kind], slot->ns[kind] + 1000 * times);
}

/* What a level writes: all its fields grow by the same amount, so that a torn read shows. */
static void write_level(enum quell_level level)
{
	struct quell_slot *slot = written;
	int other;

	for (other = 0; other < QUELL_LEVELS; other++)
		if (slot->level_seq[other] & 1) {
			nested[level]++;
			break;
		}
	level_begin(slot, level);
	switch (level) {
	case QUELL_LEVEL_NMI:
		add(slot, QUELL_NMI, 1);
		break;
	case QUELL_LEVEL_HARDIRQ:
		add(slot, QUELL_TICK, 1);
		add(slot, QUELL_IRQ, 2);
		add(slot, QUELL_IPI, 3);
		add(slot, QUELL_STEAL, 4);
		break;
	case QUELL_LEVEL_SOFTIRQ:
		add(slot, QUELL_SOFTIRQ, 1);
		break;
	default:
		add(slot, QUELL_TASK, 1);
		PUT(slot->on_cpu_ns, slot->on_cpu_ns + 7);
		PUT(slot->on_since_ns, slot->on_since_ns + 5);
		PUT(slot->run_delay_ns, slot->run_delay_ns + 3);
		add(slot, QUELL_FAULT, 2);
	}
	level_end(slot, level);
}

static int agrees(const struct quell_reading *r)
{
	const unsigned long long tick = r->count[QUELL_TICK], task = r->count[QUELL_TASK];
	int kind;

	for (kind = 0; kind < QUELL_KINDS; kind++)
		if (r->ns[kind] != 1000 * r->count[kind])
			return 0;
	return r->count[QUELL_IRQ] == 2 * tick && r->count[QUELL_IPI] == 3 * tick &&
	       r->count[QUELL_STEAL] == 4 * tick && r->count[QUELL_FAULT] == 2 * task &&
	       r->on_cpu_ns == 7 * task && r->on_since_ns == 5 * task && r->run_delay_ns == 3 * task;
}

/* The fast path returns ns only, so only the relations between the kinds of a level are checked. */
static int agree(const unsigned long long *ns)
{
	const unsigned long long tick = ns[QUELL_TICK];

	return ns[QUELL_IRQ] == 2 * tick && ns[QUELL_IPI] == 3 * tick && ns[QUELL_STEAL] == 4 * tick &&
	       ns[QUELL_FAULT] == 2 * ns[QUELL_TASK];
}

/* What quell_metrics_read would be without the sequence numbers. */
static int read_blindly(const struct quell_slot *slot, struct quell_reading *out)
{
	int kind;

	out->tid = __atomic_load_n(&slot->tid, __ATOMIC_RELAXED);
	out->on_cpu_ns = __atomic_load_n(&slot->on_cpu_ns, __ATOMIC_RELAXED);
	out->on_since_ns = __atomic_load_n(&slot->on_since_ns, __ATOMIC_RELAXED);
	out->run_delay_ns = __atomic_load_n(&slot->run_delay_ns, __ATOMIC_RELAXED);
	for (kind = 0; kind < QUELL_KINDS; kind++) {
		out->ns[kind] = __atomic_load_n(&slot->ns[kind], __ATOMIC_RELAXED);
		out->count[kind] = __atomic_load_n(&slot->count[kind], __ATOMIC_RELAXED);
	}
	return 0;
}

/* ---- Interrupts ---- */

static int signal_of(enum quell_level level)
{
	return SIGRTMIN + (int)level;
}

static void interrupt(int number)
{
	write_level((enum quell_level)(number - SIGRTMIN));
}

/* Each level blocks itself and those below it, and admits those above. */
static void handle_interrupts(void)
{
	int level, below;

	for (level = QUELL_LEVEL_NMI; level <= QUELL_LEVEL_SOFTIRQ; level++) {
		struct sigaction action;

		memset(&action, 0, sizeof(action));
		action.sa_handler = interrupt;
		action.sa_flags = SA_RESTART;
		sigemptyset(&action.sa_mask);
		for (below = level; below <= QUELL_LEVEL_SOFTIRQ; below++)
			sigaddset(&action.sa_mask, signal_of((enum quell_level)below));
		CHECK(sigaction(signal_of((enum quell_level)level), &action, NULL) == 0);
	}
}

/* Timers that interrupt the calling thread, with periods that drift against each other. */
static void start_interrupts(timer_t *timers)
{
	static const long period_ns[] = { 53000, 71000, 97000 };
	int level;

	for (level = QUELL_LEVEL_NMI; level <= QUELL_LEVEL_SOFTIRQ; level++) {
		struct itimerspec period;
		struct sigevent event;

		memset(&period, 0, sizeof(period));
		memset(&event, 0, sizeof(event));
		event.sigev_notify = SIGEV_THREAD_ID;
		event.sigev_signo = signal_of((enum quell_level)level);
		event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
		CHECK(timer_create(CLOCK_MONOTONIC, &event, &timers[level]) == 0);
		period.it_interval.tv_nsec = period.it_value.tv_nsec = period_ns[level];
		CHECK(timer_settime(timers[level], 0, &period, NULL) == 0);
	}
}

static void stop_interrupts(const timer_t *timers)
{
	int level;

	for (level = QUELL_LEVEL_NMI; level <= QUELL_LEVEL_SOFTIRQ; level++)
		CHECK(timer_delete(timers[level]) == 0);
}

/* ---- CPUs ---- */

static cpu_set_t allowed;

/* Puts writer and reader on two CPUs, where there are two: a scheduler would put them on one now and then. */
static void take_cpu(int last)
{
	cpu_set_t one;
	int cpu = last ? CPU_SETSIZE - 1 : 0;

	while (!CPU_ISSET(cpu, &allowed))
		cpu += last ? -1 : 1;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
}

static void *write_until_the_end(void *unused)
{
	timer_t timers[QUELL_LEVELS];
	int pause;

	take_cpu(0);
	start_interrupts(timers);
	while (!ending) {
		write_level(QUELL_LEVEL_TASK);
		for (pause = 0; pause < TASK_TURN_PAUSES; pause++)
			quell_pause();
	}
	stop_interrupts(timers);
	return unused;
}

/* ---- Reads ---- */

struct tally {
	unsigned long long good, torn, backward, held_up;
};

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

typedef int (*reader)(const struct quell_slot *, struct quell_reading *);

/* Reads until `reads` are done and `least_s` have passed. */
static struct tally read_often(const struct quell_slot *slot, reader read_one, unsigned long long reads, double least_s)
{
	struct quell_reading reading, last;
	struct tally tally = { 0, 0, 0, 0 };
	const double start = now_s();
	double passed = 0;
	int kind;

	memset(&last, 0, sizeof(last));
	while (tally.good + tally.torn < reads || passed < least_s) {
		if ((tally.good + tally.torn + tally.held_up) % 1024 == 0) {
			passed = now_s() - start;
			CHECK(passed < LONGEST_S);
		}
		if (read_one(slot, &reading)) {
			tally.held_up++;
			sched_yield();
			continue;
		}
		if (agrees(&reading))
			tally.good++;
		else
			tally.torn++;
		for (kind = 0; kind < QUELL_KINDS; kind++)
			tally.backward += reading.count[kind] < last.count[kind];
		last = reading;
	}
	return tally;
}

static struct tally read_some_often(const struct quell_slot *slot, unsigned long long reads)
{
	struct tally tally = { 0, 0, 0, 0 };
	unsigned long long ns[QUELL_KINDS];
	const double start = now_s();

	while (tally.good + tally.torn < reads) {
		if (quell_metrics_read_some(slot, QUELL_EVERY_KIND, ns)) {
			tally.held_up++;
			CHECK(now_s() - start < LONGEST_S);
			sched_yield();
		} else if (agree(ns)) {
			tally.good++;
		} else {
			tally.torn++;
		}
	}
	return tally;
}

static void say(const char *what, struct tally t)
{
	printf("%s: %llu good, %llu torn, %llu held up\n", what, t.good, t.torn, t.held_up);
}

static void expect_whole(const char *what, struct tally t)
{
	say(what, t);
	CHECK(t.torn == 0 && t.backward == 0 && t.good >= READS);
}

static void expect_tears(const char *what, struct tally t)
{
	say(what, t);
	CHECK(t.torn > 0);
}

static void expect_nesting(void)
{
	printf("writes in the middle of others: nmi %llu, hardirq %llu, softirq %llu\n", nested[QUELL_LEVEL_NMI],
	       nested[QUELL_LEVEL_HARDIRQ], nested[QUELL_LEVEL_SOFTIRQ]);
	CHECK(nested[QUELL_LEVEL_NMI] > 0 && nested[QUELL_LEVEL_HARDIRQ] > 0 && nested[QUELL_LEVEL_SOFTIRQ] > 0);
}

/* A reader in another thread. On a single CPU it reads only when the writers are preempted, often in the middle of a write. */
static void from_another_thread(const struct quell_slot *slot)
{
	pthread_t writer;
	struct tally blind;

	CHECK(pthread_create(&writer, NULL, write_until_the_end, NULL) == 0);
	expect_whole("during writes, all", read_often(slot, quell_metrics_read, READS, 1));
	expect_whole("during writes, ns", read_some_often(slot, READS));
	blind = read_often(slot, read_blindly, READS, 1);
	ending = 1;
	CHECK(pthread_join(writer, NULL) == 0);
	if (CPU_COUNT(&allowed) > 1)
		expect_tears("during writes, blindly", blind);
	else
		say("during writes on a single CPU, blindly", blind);
	expect_nesting();
}

/* A thread that reads its own slot and is interrupted by its writers. */
static void from_the_thread_itself(const struct quell_slot *slot)
{
	timer_t timers[QUELL_LEVELS];
	struct tally whole, some, blind;

	start_interrupts(timers);
	whole = read_often(slot, quell_metrics_read, READS, 1);
	some = read_some_often(slot, 4 * READS);
	blind = read_often(slot, read_blindly, READS, 1);
	stop_interrupts(timers);
	expect_whole("interrupted, all", whole);
	expect_whole("interrupted, ns", some);
	expect_tears("interrupted, blindly", blind);
}

int main(void)
{
	struct container c;
	struct quell_metrics m;
	const struct quell_slot *slot;

	container_make(&c, 8);
	container_serve(&c);
	written = &c.slots[1];
	give_slot(written, (unsigned int)syscall(SYS_gettid), container_namespace());
	CHECK(quell_metrics_open(&m) == 0);
	slot = quell_metrics_thread(&m);
	CHECK(slot == &m.slots[1]);
	CHECK(sched_getaffinity(0, sizeof(allowed), &allowed) == 0);
	take_cpu(1);
	handle_interrupts();
	from_another_thread(slot);
	from_the_thread_itself(slot);
	quell_metrics_close(&m);
	container_end(&c);
	return 0;
}
