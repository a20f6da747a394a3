/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Hard interrupts that handle others: the programs are called in the order in which a kernel would run them.
 */
#include "../../src/bpf/interrupts.h"

#define ENTRIES (1 << 5)

int printf(const char *format, ...);
void exit(int status);

static struct cpu_state cpu_0 = { .active = 1, .watched = 1, .full_at = ENTRIES, .ring_order = 5 };
static struct entry ring[ENTRIES];
static struct emptied taken;

static void *find(void *map, const void *key)
{
	if (map == &cpus)
		return &cpu_0;
	if (map == &entries)
		return &ring[*(const u32 *)key];
	return map == &emptied ? &taken : 0;
}

static void check(bool holds, int line)
{
	if (holds)
		return;
	printf("line %d does not hold\n", line);
	exit(1);
}
#define CHECK(what) check(what, __LINE__)

static void begins(u64 at, int irq)
{
	now_ns = at;
	irq_handler_in(0, irq);
}

static void ends(u64 at, int irq)
{
	struct irqaction action = { .name = "" };
	now_ns = at;
	irq_handler_out(0, irq, &action);
}

/* The next record in the ring is of this interrupt. */
static void recorded(u32 irq, u64 start, u64 end, u64 net)
{
	static u32 next;
	const struct record *record = &ring[next].of.record;
	CHECK(ring[next].number == next + 1 && cpu_0.next > next);
	CHECK(record->kind == QUELL_IRQ && record->id == irq);
	CHECK(record->start_ns == start && record->end_ns == end && record->net_ns == net);
	next++;
}

/* Nothing runs, and this many were recorded and lost. */
static void over(u32 number, u64 lost)
{
	CHECK(cpu_0.next == number && cpu_0.lost == lost && !cpu_0.hardirq.inside && !cpu_0.hardirq.start_ns);
}

static void nested(void)
{
	/* One within another, of which each has its own time. */
	begins(100, 1);
	begins(110, 2);
	ends(130, 2);
	begins(140, 3);
	ends(145, 3);
	ends(200, 1);
	recorded(2, 110, 130, 20);
	recorded(3, 140, 145, 5);
	recorded(1, 100, 200, 75);
	over(3, 0);

	/* Of three, the middle one is lost, and its own time counts as the outer one's. */
	begins(300, 1);
	begins(310, 2);
	begins(320, 3);
	ends(330, 3);
	ends(340, 2);
	ends(400, 1);
	recorded(3, 320, 330, 10);
	recorded(1, 300, 400, 90);
	over(5, 1);
}

static void ends_not_seen(void)
{
	/* It is over where a softirq begins. */
	begins(500, 1);
	begins(510, 2);
	now_ns = 600;
	softirq_in(0, 1);
	over(5, 3);
	begins(700, 2);
	ends(710, 2);
	recorded(2, 700, 710, 10);
	over(6, 3);

	/* It is over where it comes again. */
	begins(720, 1);
	begins(730, 1);
	ends(740, 1);
	recorded(1, 730, 740, 10);
	over(7, 4);

	/* It is over where the one ends within which it came. */
	begins(750, 1);
	begins(760, 2);
	ends(770, 1);
	recorded(1, 750, 770, 20);
	over(8, 5);

	/* An end without an entry ends nothing else. */
	begins(780, 1);
	ends(785, 2);
	ends(790, 1);
	recorded(1, 780, 790, 10);
	over(9, 5);

	/* On x86 it is over where the tick comes, which never comes within another. */
	begins(800, 1);
	now_ns = 810;
	local_timer_in(0);
#ifdef __TARGET_ARCH_x86
	CHECK(cpu_0.hardirq.inside == 1 && cpu_0.hardirq.kind == QUELL_TICK && cpu_0.lost == 6);
	ends(815, 1);
#else
	CHECK(cpu_0.hardirq.inside == 2 && cpu_0.hardirq.kind == QUELL_TICK && cpu_0.lost == 5);
#endif
	now_ns = 820;
	local_timer_out(0);
#ifdef __TARGET_ARCH_x86
	over(10, 6);
#else
	CHECK(cpu_0.next == 10 && cpu_0.hardirq.inside == 1);
#endif
}

/* Where nothing is recorded, what runs is known all the same. */
static void not_recorded(void)
{
	u32 number = cpu_0.next;
	cpu_0.active = 0;
	begins(900, 1);
	begins(910, 2);
	ends(920, 2);
	CHECK(cpu_0.hardirq.inside == 1 && cpu_0.hardirq.id == 1);
	ends(930, 1);
	CHECK(cpu_0.next == number && !cpu_0.hardirq.inside);
}

int main(void)
{
	nested();
	ends_not_seen();
	not_recorded();
	return 0;
}
