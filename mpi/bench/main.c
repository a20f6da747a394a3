/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bench.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

_Noreturn void fail(const char *format, ...)
{
	char text[1024], host[256] = "";
	va_list values;
	va_start(values, format);
	vsnprintf(text, sizeof(text), format, values);
	va_end(values);
	gethostname(host, sizeof(host) - 1);
	fprintf(stderr, "quell-bench: error: %s (host %s)\n", text, host);
	fflush(NULL);
	int begun = 0, ended = 0;
	MPI_Initialized(&begun);
	MPI_Finalized(&ended);
	if (begun && !ended)
		MPI_Abort(MPI_COMM_WORLD, 1);
	_exit(1);
}

void *allocate(size_t bytes)
{
	void *memory = malloc(bytes ? bytes : 1);
	if (!memory)
		fail("no memory for %zu bytes", bytes);
	/* Touches the pages now, so that page faults do not happen in what is timed. */
	memset(memory, 1, bytes);
	return memory;
}

void tell_progress(uint64_t done, uint64_t all)
{
	printf("quell-bench: progress %llu %llu\n", (unsigned long long)done, (unsigned long long)all);
	fflush(stdout);
}

bool asked_to_stop(const struct job *job)
{
	char path[4096];
	struct stat found;
	snprintf(path, sizeof(path), "%s/stop", job->options.out);
	return stat(path, &found) == 0;
}

static uint64_t number(const char *name, const char *text)
{
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-')
		fail("`%s=%s` is not a number", name, text);
	return value;
}

static void set(struct options *options, const char *name, const char *value)
{
	if (!strcmp(name, "bench"))
		options->bench = value;
	else if (!strcmp(name, "out"))
		options->out = value;
	else if (!strcmp(name, "op"))
		options->op = value;
	else if (!strcmp(name, "lead"))
		options->lead = value;
	else if (!strcmp(name, "bind"))
		options->bind = value;
	else if (!strcmp(name, "ranks"))
		options->ranks = (int)number(name, value);
	else if (!strcmp(name, "work_ns"))
		options->work_ns = number(name, value);
	else if (!strcmp(name, "duration_ns"))
		options->duration_ns = number(name, value);
	else if (!strcmp(name, "count"))
		options->count = number(name, value);
	else if (!strcmp(name, "every"))
		options->every = number(name, value);
	else if (!strcmp(name, "bytes"))
		options->bytes = number(name, value);
	else if (!strcmp(name, "dims"))
		options->dims = (int)number(name, value);
	else if (!strcmp(name, "sizes_to"))
		options->sizes_to = number(name, value);
	else if (!strcmp(name, "rounds"))
		options->rounds = number(name, value);
	else
		fail("there is no option `%s`", name);
}

static struct options read_options(int count, char **words)
{
	struct options options = {
		.bench = "bsp", .out = ".", .op = "barrier", .lead = "phase", .bind = "auto", .bytes = 8, .dims = 2,
		.sizes_to = 65536, .rounds = 5,
	};
	for (int i = 1; i < count; i++) {
		char *equals = strchr(words[i], '=');
		if (!equals)
			fail("`%s` is not NAME=VALUE; this program is started by `quell bench`", words[i]);
		*equals = 0;
		set(&options, words[i], equals + 1);
	}
	if (strcmp(options.bench, "loggp") && !options.count && !options.duration_ns)
		fail("neither a count nor a duration: this would never end");
	return options;
}

int main(int count, char **words)
{
	/* If the launcher's process on this host is killed, no one waits for this rank any more. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	struct job job = {.options = read_options(count, words)};
	int threads;
	MPI_Init_thread(&count, &words, MPI_THREAD_SINGLE, &threads);
	MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &job.ranks);
	if (job.options.ranks && job.ranks != job.options.ranks) {
		fail("the job has %d ranks instead of %d: use the launcher of this MPI library",
		     job.ranks, job.options.ranks);
	}
	place(&job);
	job.file = rank_file_open(&job);
	place_tell(&job);
	if (job.rank == 0)
		tell_progress(0, 1);
	job_barrier(&job);
	clocks_align(&job, "start");
	if (!strcmp(job.options.bench, "loggp"))
		run_loggp(&job);
	else
		run_phases(&job);
	clocks_align(&job, "end");
	rank_file_fact(job.file, "ended", "well");
	rank_file_flush_all(&job);
	rank_file_close(job.file);
	MPI_Finalize();
	return 0;
}
