/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Hard interrupts that handle others: the programs are called in the order in which a kernel would run them.
 */
#include "../../src/bpf/interrupts.h"

#define ENTRIES 16

int printf(const char *format, ...);
void exit(int status);

static struct cpu_state cpu_0 = { .active = 1, .watched = 1, .full_at = ENTRIES };
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

static void ends(u64 at)
{
	struct irqaction action = { .name = "" };
	now_ns = at;
	irq_handler_out(0, 0, &action);
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

int main(void)
{
	/* One within another, of which each has its own time. */
	begins(100, 1);
	begins(110, 2);
	ends(130);
	begins(140, 3);
	ends(145);
	ends(200);
	recorded(2, 110, 130, 20);
	recorded(3, 140, 145, 5);
	recorded(1, 100, 200, 75);
	CHECK(cpu_0.next == 3 && !cpu_0.lost && !cpu_0.hardirq.inside);

	/* Of three, the middle one is lost, and its own time counts as the outer one's. */
	begins(300, 1);
	begins(310, 2);
	begins(320, 3);
	ends(330);
	ends(340);
	ends(400);
	recorded(3, 320, 330, 10);
	recorded(1, 300, 400, 90);
	CHECK(cpu_0.next == 5 && cpu_0.lost == 1 && !cpu_0.hardirq.inside);

	/* An interrupt whose end was not seen is over where a softirq begins. */
	begins(500, 1);
	now_ns = 600;
	softirq_in(0, 1);
	CHECK(!cpu_0.hardirq.inside);
	begins(700, 2);
	ends(710);
	recorded(2, 700, 710, 10);
	CHECK(cpu_0.next == 6 && cpu_0.lost == 1 && !cpu_0.hardirq.inside);

	/* Where nothing is recorded, what runs is known all the same. */
	cpu_0.active = 0;
	begins(800, 1);
	begins(810, 2);
	ends(820);
	CHECK(cpu_0.hardirq.inside == 1 && cpu_0.hardirq.id == 1);
	ends(830);
	CHECK(cpu_0.next == 6 && !cpu_0.hardirq.inside);
	return 0;
}
