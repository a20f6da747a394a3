/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Measurements for LogGOPS parameters: PRTT(n, d, s), the time of n messages of s bytes, d apart, and one answer (Hoefler, Lichei &
 * Rehm, "Low-Overhead LogGP Parameter Assessment for Modern Interconnection Networks", IPDPS 2007). crates/analysis/src/bench/loggp
 * computes the parameters from the times.
 *
 * Rank 0 measures with one rank of its own host and with one of another. It sends orders, the partner executes them, all others sleep.
 */
#include "bench.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ORDERS 11
#define DATA 12
#define REPORT 13

#define HOST 256
/* Messages of a PRTT(n, d, s): twice as many as netgauge, because the first few of a burst pass faster than those that follow. */
#define MESSAGES 32
/* Messages to a partner that is computing: so few that the network and its buffers can hold them. */
#define LATE_MESSAGES 8
/* Round trips between two readings of the clock, for messages up to this size and for larger ones. */
#define SMALL 4096
#define SMALL_TRIPS 16
#define LARGE_TRIPS 4
/* Maximum number of samples of each size in a round, and the minimum if they take longer than this time. */
#define REPEATS 24
#define FEWEST 6
#define SIZE_NS 40000000
#define MOST_SIZES 256
/* Sends to a partner that comes late on purpose: how late, how often, and up to at least which size. */
#define LATE_NS 4000000
#define TRIES 5
#define THRESHOLD_ROUNDS 3
#define THRESHOLD_TO (1u << 20)
/* The check's number of round trips and scatters in a row. */
#define CHECK_COUNT 32

enum what { TRIPS, BURSTS, LATE_BURSTS, LATE, STOP };

struct order {
	uint64_t what, bytes, count, repeats, delay_ns;
};

/* Rank 0 and the ranks that it measures with. */
struct party {
	struct job *job;
	int partner;        /* the rank that rank 0 measures with; on the partner rank 0 */
	int members;        /* of the linear scatter, without rank 0 */
	int *member;
	bool yields;        /* both share their only CPU */
	/* Two buffers, like real programs: a single buffer that is sent and received in turn would come from the other CPU's cache each time. */
	char *out, *in;
	uint64_t done, all; /* steps, for progress reports */
};

static void send(const struct party *party, int whom, uint64_t bytes)
{
	if (!party->yields) {
		MPI_Send(party->out, (int)bytes, MPI_BYTE, whom, DATA, MPI_COMM_WORLD);
		return;
	}
	MPI_Request request;
	MPI_Isend(party->out, (int)bytes, MPI_BYTE, whom, DATA, MPI_COMM_WORLD, &request);
	job_wait(party->job, &request);
}

static void receive(const struct party *party, int whom, uint64_t bytes)
{
	if (!party->yields) {
		MPI_Recv(party->in, (int)bytes, MPI_BYTE, whom, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		return;
	}
	MPI_Request request;
	MPI_Irecv(party->in, (int)bytes, MPI_BYTE, whom, DATA, MPI_COMM_WORLD, &request);
	job_wait(party->job, &request);
}

static void spin(uint64_t ns)
{
	for (uint64_t begin = now_ns(); now_ns() - begin < ns;)
		;
}

/* The partner's side. */

static void obey_late_bursts(const struct party *party, const struct order *order)
{
	uint64_t took[REPEATS] = {0};
	for (uint64_t repeat = 0; repeat < order->repeats; repeat++) {
		send(party, party->partner, 1);
		/* All messages have arrived before the first is received: the time that is left is the CPU's part. */
		spin(order->delay_ns);
		uint64_t begin = now_ns();
		for (uint64_t i = 0; i < order->count; i++)
			receive(party, party->partner, order->bytes);
		took[repeat] = now_ns() - begin;
	}
	MPI_Send(took, (int)order->repeats, MPI_UINT64_T, party->partner, REPORT, MPI_COMM_WORLD);
}

static bool obey(const struct party *party)
{
	struct order order;
	MPI_Request request;
	MPI_Irecv(&order, sizeof(order), MPI_BYTE, party->partner, ORDERS, MPI_COMM_WORLD, &request);
	job_wait(party->job, &request);
	if (order.what == LATE_BURSTS)
		obey_late_bursts(party, &order);
	for (uint64_t repeat = 0; repeat < order.repeats && order.what != LATE_BURSTS; repeat++) {
		if (order.what == LATE) {
			send(party, party->partner, 1);
			struct timespec late = {.tv_nsec = (long)order.delay_ns};
			nanosleep(&late, NULL);
			receive(party, party->partner, order.bytes);
			continue;
		}
		for (uint64_t i = 0; i < order.count; i++) {
			receive(party, party->partner, order.bytes);
			if (order.what == TRIPS || i + 1 == order.count)
				send(party, party->partner, order.bytes);
		}
	}
	return order.what != STOP;
}

/* Rank 0's side. */

static void give(const struct party *party, struct order order)
{
	MPI_Send(&order, sizeof(order), MPI_BYTE, party->partner, ORDERS, MPI_COMM_WORLD);
}

/* Samples of PRTT(1, 0, s), `count` round trips each. */
static void trips(const struct party *party, uint64_t bytes, uint64_t count, uint64_t repeats, uint64_t *took)
{
	give(party, (struct order){TRIPS, bytes, count, repeats, 0});
	for (uint64_t repeat = 0; repeat < repeats; repeat++) {
		uint64_t begin = now_ns();
		for (uint64_t i = 0; i < count; i++) {
			send(party, party->partner, bytes);
			receive(party, party->partner, bytes);
		}
		took[repeat] = now_ns() - begin;
	}
}

/* Samples of PRTT(n, d, s). */
static void bursts(const struct party *party, uint64_t bytes, uint64_t delay_ns, uint64_t repeats, uint64_t *took)
{
	give(party, (struct order){BURSTS, bytes, MESSAGES, repeats, 0});
	for (uint64_t repeat = 0; repeat < repeats; repeat++) {
		uint64_t begin = now_ns();
		for (uint64_t i = 0; i < MESSAGES; i++) {
			if (i && delay_ns)
				spin(delay_ns);
			send(party, party->partner, bytes);
		}
		receive(party, party->partner, bytes);
		took[repeat] = now_ns() - begin;
	}
}

/* n sends while the partner computes, and then its n receives of messages that have arrived: the CPU's part alone, on either side. */
static void late_bursts(const struct party *party, uint64_t bytes, uint64_t delay_ns, uint64_t repeats, uint64_t *sends,
			uint64_t *receives)
{
	give(party, (struct order){LATE_BURSTS, bytes, LATE_MESSAGES, repeats, delay_ns});
	for (uint64_t repeat = 0; repeat < repeats; repeat++) {
		receive(party, party->partner, 1);
		uint64_t begin = now_ns();
		for (uint64_t i = 0; i < LATE_MESSAGES; i++)
			send(party, party->partner, bytes);
		sends[repeat] = now_ns() - begin;
	}
	MPI_Recv(receives, (int)repeats, MPI_UINT64_T, party->partner, REPORT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The delays of a PRTT(n, d, s) alone: spinning on the clock takes longer than the requested time. */
static void delays(uint64_t delay_ns, uint64_t repeats, uint64_t *took)
{
	for (uint64_t repeat = 0; repeat < repeats; repeat++) {
		uint64_t begin = now_ns();
		for (int i = 1; i < MESSAGES; i++)
			spin(delay_ns);
		took[repeat] = now_ns() - begin;
	}
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static uint64_t median(const uint64_t *times, size_t count)
{
	uint64_t sorted[REPEATS];
	memcpy(sorted, times, count * sizeof(*times));
	qsort(sorted, count, sizeof(*sorted), ascending);
	return sorted[count / 2];
}

static void measure_size(const struct party *party, uint64_t round, uint64_t bytes)
{
	uint64_t single[REPEATS], burst[REPEATS], paced[REPEATS], waits[REPEATS], sends[REPEATS],
		 receives[REPEATS];
	uint64_t in_a_row = bytes <= SMALL ? SMALL_TRIPS : LARGE_TRIPS;
	/* The first messages of a size allocate its buffers, and show how long samples take; the five kinds together take about five of them. */
	uint64_t begin = now_ns();
	trips(party, bytes, in_a_row, 2, single);
	bursts(party, bytes, 0, 2, burst);
	uint64_t sample_ns = (now_ns() - begin) / 2 * 5, repeats = SIZE_NS / (sample_ns + 1);
	repeats = repeats > REPEATS ? REPEATS : repeats < FEWEST ? FEWEST : repeats;
	trips(party, bytes, in_a_row, repeats, single);
	bursts(party, bytes, 0, repeats, burst);
	uint64_t delay_ns = median(single, repeats) / in_a_row;
	bursts(party, bytes, delay_ns, repeats, paced);
	delays(delay_ns, repeats, waits);
	late_bursts(party, bytes, 2 * median(burst, repeats), repeats, sends, receives);
	for (uint64_t repeat = 0; repeat < repeats; repeat++) {
		uint64_t row[] = {round,	 bytes,		in_a_row,      single[repeat],	burst[repeat],
				  paced[repeat], waits[repeat], sends[repeat], receives[repeat]};
		memcpy(rank_file_row(party->job->file), row, sizeof(row));
		rank_file_keep(party->job->file);
	}
}

/* Sizes from 1 byte on, four per doubling. */
static int sizes_of(uint64_t to, uint64_t *sizes)
{
	int count = 0;
	for (uint64_t base = 1; base <= to && count < MOST_SIZES - 4; base *= 2) {
		for (uint64_t quarter = 0; quarter < 4; quarter++) {
			uint64_t bytes = base + base * quarter / 4;
			if (bytes <= to && (!count || sizes[count - 1] < bytes))
				sizes[count++] = bytes;
		}
	}
	if (sizes[count - 1] < to)
		sizes[count++] = to;
	return count;
}

/* Whether a send waits for its receive: the second longest of several sends to a partner that comes late. Noise between the partner's
 * message and the send often shortens a send that waits; a send that does not wait is too short to be lengthened by noise twice. */
static bool waits_for_receive(const struct party *party, uint64_t round, uint64_t bytes)
{
	uint64_t took[TRIES];
	give(party, (struct order){LATE, bytes, 1, TRIES, LATE_NS});
	for (int try = 0; try < TRIES; try++) {
		receive(party, party->partner, 1);
		uint64_t begin = now_ns();
		send(party, party->partner, bytes);
		took[try] = now_ns() - begin;
	}
	qsort(took, TRIES, sizeof(*took), ascending);
	uint64_t row[] = {round, bytes, took[TRIES - 2], LATE_NS};
	memcpy(rank_file_row(party->job->file), row, sizeof(row));
	rank_file_keep(party->job->file);
	return row[2] > LATE_NS / 2;
}

/* Finds the largest message whose send does not wait, to the byte. */
static void measure_threshold(const struct party *party, uint64_t round, uint64_t to)
{
	if (waits_for_receive(party, round, 1) || !waits_for_receive(party, round, to))
		return;
	for (uint64_t eager = 1, rendezvous = to; rendezvous - eager > 1;) {
		uint64_t middle = eager + (rendezvous - eager) / 2;
		if (waits_for_receive(party, round, middle))
			rendezvous = middle;
		else
			eager = middle;
	}
}

/* Linear scatters in a row, and an answer of one byte from the last rank after the last scatter. */
static void scatters(const struct party *party, uint64_t bytes, uint64_t *took)
{
	int last = party->member[party->members - 1];
	for (int repeat = 0; repeat < REPEATS; repeat++) {
		for (int i = 0; party->job->rank == 0 && i < party->members; i++)
			receive(party, party->member[i], 1);
		if (party->job->rank != 0)
			send(party, 0, 1);
		uint64_t begin = now_ns();
		for (int scatter = 0; scatter < CHECK_COUNT; scatter++) {
			for (int i = 0; party->job->rank == 0 && i < party->members; i++)
				send(party, party->member[i], bytes);
			if (party->job->rank != 0)
				receive(party, 0, bytes);
		}
		if (party->job->rank == 0)
			receive(party, last, 1);
		else if (party->job->rank == last)
			send(party, 0, 1);
		took[repeat] = now_ns() - begin;
	}
}

static void check_size(const struct party *party, uint64_t round, uint64_t bytes)
{
	uint64_t pingpong[REPEATS], scatter[REPEATS];
	if (party->job->rank == 0)
		trips(party, bytes, CHECK_COUNT, REPEATS, pingpong);
	else if (party->member[0] == party->job->rank)
		obey(party);
	scatters(party, bytes, scatter);
	for (int repeat = 0; party->job->rank == 0 && repeat < REPEATS; repeat++) {
		uint64_t row[] = {round, bytes, pingpong[repeat], scatter[repeat]};
		memcpy(rank_file_row(party->job->file), row, sizeof(row));
		rank_file_keep(party->job->file);
	}
}

/* Ranks without work sleep, and check now and then whether the others are done. */
static void sleep_until(MPI_Request *request)
{
	for (int done = 0; !done;) {
		MPI_Test(request, &done, MPI_STATUS_IGNORE);
		struct timespec pause = {.tv_nsec = 300000};
		if (!done)
			nanosleep(&pause, NULL);
	}
}

static void meet(void)
{
	MPI_Request request;
	MPI_Ibarrier(MPI_COMM_WORLD, &request);
	sleep_until(&request);
}

static bool asks_all_to_stop(const struct job *job)
{
	int stop = job->rank == 0 && asked_to_stop(job);
	MPI_Request request;
	MPI_Ibcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
	sleep_until(&request);
	return stop;
}

static void open_series(const struct party *party, const char *kind, const char *what, const char *columns)
{
	char name[64];
	snprintf(name, sizeof(name), "loggp %s%s", kind, what);
	rank_file_series(party->job->file, name, columns);
}

static void measure(struct party *party, const char *kind, uint64_t round)
{
	const struct options *options = &party->job->options;
	uint64_t sizes[MOST_SIZES];
	int count = sizes_of(options->sizes_to, sizes);
	open_series(party, kind, "", "round bytes trips trips_ns burst_ns paced_ns delays_ns sends_ns receives_ns");
	rank_file_fact(party->job->file, "messages", "%d", MESSAGES);
	rank_file_fact(party->job->file, "late_messages", "%d", LATE_MESSAGES);
	for (int i = 0; i < count && !asked_to_stop(party->job); i++) {
		measure_size(party, round, sizes[i]);
		tell_progress(++party->done, party->all);
	}
	if (round < THRESHOLD_ROUNDS) {
		open_series(party, kind, " threshold", "round bytes send_ns late_ns");
		measure_threshold(party, round, options->sizes_to > THRESHOLD_TO ? options->sizes_to : THRESHOLD_TO);
	}
	give(party, (struct order){.what = STOP});
}

static void check(const struct party *party, const char *kind, uint64_t round)
{
	if (party->job->rank == 0) {
		open_series(party, kind, " check", "round bytes pingpong_ns scatter_ns");
		rank_file_fact(party->job->file, "receivers", "%d", party->members);
		rank_file_fact(party->job->file, "count", "%d", CHECK_COUNT);
	}
	for (uint64_t bytes = 1; bytes <= party->job->options.sizes_to; bytes *= 4)
		check_size(party, round, bytes);
}

static void run_kind(struct party *party, const char *kind, const char *partner_host)
{
	struct job *job = party->job;
	bool takes_part = job->rank == 0;
	for (int i = 0; i < party->members; i++)
		takes_part |= party->member[i] == job->rank;
	for (uint64_t round = 0; round < job->options.rounds && !asks_all_to_stop(job); round++) {
		if (job->rank == 0) {
			measure(party, kind, round);
			rank_file_fact(job->file, "partner", "%d", party->partner);
			rank_file_fact(job->file, "partner_host", "%s", partner_host);
		} else if (job->rank == party->member[0]) {
			while (obey(party))
				;
		}
		meet();
		if (takes_part)
			check(party, kind, round);
		meet();
	}
}

/* Ranks on rank 0's host, or on others. Hosts are distinguished by name: several host names on one kernel may stand for hosts of a network. */
static int choose(const struct job *job, const char (*hosts)[HOST], bool same_host, int *member)
{
	int members = 0;
	for (int rank = 1; rank < job->ranks; rank++) {
		if (!strcmp(hosts[rank], hosts[0]) == same_host)
			member[members++] = rank;
	}
	/* Ranks without a CPU of their own would measure how they share one. */
	return job->yields && members > 1 ? 1 : members;
}

static bool has_one_cpu(void)
{
	cpu_set_t set;
	return !sched_getaffinity(0, sizeof(set), &set) && CPU_COUNT(&set) == 1;
}

void run_loggp(struct job *job)
{
	static const char *const kinds[] = {"inter", "intra"};
	if (job->ranks < 2)
		fail("messages need two ranks, and the job has one");
	if (job->options.sizes_to < 1 || job->options.sizes_to > 1u << 30)
		fail("sizes_to=%llu is not between 1 and 1 GiB", (unsigned long long)job->options.sizes_to);
	char mine[HOST] = "", (*hosts)[HOST] = allocate(sizeof(*hosts) * (size_t)job->ranks);
	gethostname(mine, sizeof(mine) - 1);
	MPI_Allgather(mine, HOST, MPI_BYTE, hosts, HOST, MPI_BYTE, MPI_COMM_WORLD);
	uint64_t sizes[MOST_SIZES], most = job->options.sizes_to > THRESHOLD_TO ? job->options.sizes_to : THRESHOLD_TO;
	struct party party = {.job = job, .yields = job->yields && has_one_cpu(), .out = allocate(most), .in = allocate(most)};
	int *member = allocate(sizeof(int) * (size_t)job->ranks);
	party.member = member;
	for (int same = 0; same < 2; same++)
		party.all += choose(job, (const char(*)[HOST])hosts, same, member) ? job->options.rounds : 0;
	party.all *= (uint64_t)sizes_of(job->options.sizes_to, sizes);
	for (int same = 0; same < 2; same++) {
		party.members = choose(job, (const char(*)[HOST])hosts, same, member);
		party.partner = job->rank == 0 ? member[0] : 0;
		if (party.members)
			run_kind(&party, kinds[same], hosts[member[0]]);
	}
	free(member);
	free(hosts);
	free(party.out);
	free(party.in);
}
