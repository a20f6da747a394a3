/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Which ranks share a kernel, and where each runs. Hosts are distinguished by the kernel's boot id, not by name: containers and
 * namespaces of one machine share its clock and its CPUs.
 */
#include "bench.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_CPUS 8192

struct whereabouts {
	char kernel[40];
	uint64_t mask;     /* hash of the rank's affinity mask */
	uint32_t cpus;     /* number of CPUs in it */
	uint32_t zero;
};

static cpu_set_t *my_cpus(size_t *bytes)
{
	*bytes = CPU_ALLOC_SIZE(MOST_CPUS);
	cpu_set_t *set = CPU_ALLOC(MOST_CPUS);
	if (!set)
		fail("no memory");
	CPU_ZERO_S(*bytes, set);
	if (sched_getaffinity(0, *bytes, set))
		fail("the kernel does not report the CPUs that this process may use");
	return set;
}

static uint64_t hash_of(const cpu_set_t *set, size_t bytes)
{
	uint64_t hash = 14695981039346656037u;
	for (int cpu = 0; cpu < MOST_CPUS; cpu++) {
		if (CPU_ISSET_S(cpu, bytes, set))
			hash = (hash ^ (uint64_t)cpu) * 1099511628211u;
	}
	return hash;
}

/* The index of a CPU among the hardware threads of its core. */
static int thread_of_core(int cpu)
{
	char path[128], siblings[256] = "";
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
	FILE *file = fopen(path, "r");
	if (!file)
		return 0;
	int index = 0;
	if (fgets(siblings, sizeof(siblings), file)) {
		for (char *at = siblings; *at >= '0' && *at <= '9';) {
			long from = strtol(at, &at, 10), to = from;
			if (*at == '-')
				to = strtol(at + 1, &at, 10);
			index += (int)((to < cpu ? to + 1 : cpu > from ? cpu : from) - from);
			if (*at == ',')
				at++;
		}
	}
	fclose(file);
	return index;
}

/* The CPU of the `wanted`-th rank: first the first thread of each core, then the second threads. */
static int nth_cpu(const cpu_set_t *set, size_t bytes, int wanted)
{
	for (int thread = 0; thread < 64; thread++) {
		for (int cpu = 0; cpu < MOST_CPUS; cpu++) {
			if (CPU_ISSET_S(cpu, bytes, set) && thread_of_core(cpu) == thread && wanted-- == 0)
				return cpu;
		}
	}
	return -1;
}

static void bind_to(int cpu)
{
	size_t bytes = CPU_ALLOC_SIZE(MOST_CPUS);
	cpu_set_t *one = CPU_ALLOC(MOST_CPUS);
	if (!one)
		fail("no memory");
	CPU_ZERO_S(bytes, one);
	CPU_SET_S(cpu, bytes, one);
	/* If the kernel refuses, the rank stays where the launcher put it, and its file names those CPUs. */
	(void)sched_setaffinity(0, bytes, one);
	CPU_FREE(one);
}

static void read_kernel(char *text, size_t room)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
	if (!file || !fgets(text, (int)room, file))
		gethostname(text, room - 1);
	if (file)
		fclose(file);
	text[strcspn(text, "\n")] = 0;
}

void place(struct job *job)
{
	size_t bytes;
	cpu_set_t *set = my_cpus(&bytes);
	struct whereabouts mine = {.mask = hash_of(set, bytes), .cpus = (uint32_t)CPU_COUNT_S(bytes, set)};
	read_kernel(mine.kernel, sizeof(mine.kernel));
	struct whereabouts *all = allocate(sizeof(*all) * (size_t)job->ranks);
	MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, all, sizeof(mine), MPI_BYTE, MPI_COMM_WORLD);
	int alike = 0, alike_before = 0;
	job->leader = -1;
	for (int rank = 0; rank < job->ranks; rank++) {
		if (memcmp(all[rank].kernel, mine.kernel, sizeof(mine.kernel)))
			continue;
		if (job->leader < 0)
			job->leader = rank;
		job->node_rank += rank < job->rank;
		job->node_ranks++;
		alike += all[rank].mask == mine.mask;
		alike_before += rank < job->rank && all[rank].mask == mine.mask;
	}
	/* Nodes are numbered in the order of their first ranks. */
	int leads = job->leader == job->rank, *leaders = allocate(sizeof(int) * (size_t)job->ranks);
	MPI_Allgather(&leads, 1, MPI_INT, leaders, 1, MPI_INT, MPI_COMM_WORLD);
	for (int rank = 0; rank < job->ranks; rank++) {
		job->node += rank < job->leader && leaders[rank];
		job->nodes += leaders[rank];
	}
	int crowded = alike > (int)mine.cpus, any;
	MPI_Allreduce(&crowded, &any, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
	job->yields = any;
	if (!strcmp(job->options.bind, "auto") && !crowded && mine.cpus > 1) {
		int cpu = nth_cpu(set, bytes, alike_before);
		if (cpu >= 0)
			bind_to(cpu);
	}
	CPU_FREE(set);
	free(leaders);
	free(all);
}

/* Formats a list as in `0,2-5`. */
static void write_list(char *text, size_t room, const cpu_set_t *set, size_t bytes)
{
	size_t at = 0;
	text[0] = 0;
	for (int cpu = 0; cpu < MOST_CPUS && at + 16 < room; cpu++) {
		if (!CPU_ISSET_S(cpu, bytes, set))
			continue;
		int last = cpu;
		while (last + 1 < MOST_CPUS && CPU_ISSET_S(last + 1, bytes, set))
			last++;
		at += (size_t)snprintf(text + at, room - at, last > cpu ? "%s%d-%d" : "%s%d", at ? "," : "", cpu, last);
		cpu = last;
	}
}

void place_tell(const struct job *job)
{
	char text[4096] = "";
	struct timespec wall;
	gethostname(text, sizeof(text) - 1);
	rank_file_fact(job->file, "host", "%s", text);
	rank_file_fact(job->file, "pid", "%d", (int)getpid());
	rank_file_fact(job->file, "node", "%d", job->node);
	rank_file_fact(job->file, "node_ranks", "%d", job->node_ranks);
	rank_file_fact(job->file, "nodes", "%d", job->nodes);
	rank_file_fact(job->file, "yields", "%d", job->yields);
	size_t bytes;
	cpu_set_t *set = my_cpus(&bytes);
	write_list(text, sizeof(text), set, bytes);
	CPU_FREE(set);
	rank_file_fact(job->file, "cpus", "%s", text);
	uint64_t monotonic = now_ns();
	clock_gettime(CLOCK_REALTIME, &wall);
	rank_file_fact(job->file, "monotonic_ns", "%llu", (unsigned long long)monotonic);
	rank_file_fact(job->file, "unix_ns", "%lld%09ld", (long long)wall.tv_sec, wall.tv_nsec);
	char library[MPI_MAX_LIBRARY_VERSION_STRING];
	int length;
	MPI_Get_library_version(library, &length);
	library[strcspn(library, "\n")] = 0;
	rank_file_fact(job->file, "mpi", "%s", library);
}
