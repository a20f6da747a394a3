/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bench.h"

#include "../rank_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "rank files are little endian");

/* Maximum size of the buffered rows. */
#define ROOM (4u << 20)

struct rank_file {
	char path[4096];
	int fd;
	int error;
	size_t columns;
	struct quell_block head; /* directly before the rows, so that one write takes both */
	_Alignas(8) unsigned char rows[ROOM];
	volatile size_t bytes;
};

/* The file whose rows are written if the launcher ends this rank; none before the first phase that counts. */
static struct rank_file *live_file;

/* A signal between the head of a block and its end would write the block twice, so signals are held. */
static void hold_signals(sigset_t *before)
{
	sigset_t held;
	sigemptyset(&held);
	sigaddset(&held, SIGTERM);
	sigaddset(&held, SIGINT);
	sigprocmask(SIG_BLOCK, &held, before);
}

static int write_all(int fd, const void *data, size_t bytes)
{
	const char *at = data;
	while (bytes) {
		ssize_t written = write(fd, at, bytes);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return errno;
		at += written;
		bytes -= (size_t)written;
	}
	return 0;
}

static int write_rows(struct rank_file *file)
{
	if (!file->bytes)
		return 0;
	sigset_t before;
	hold_signals(&before);
	memcpy(file->head.kind, QUELL_BLOCK_ROWS, 4);
	file->head.bytes = file->bytes;
	int error = write_all(file->fd, &file->head, sizeof(file->head));
	if (!error)
		error = write_all(file->fd, file->rows, file->bytes);
	file->bytes = 0;
	sigprocmask(SIG_SETMASK, &before, NULL);
	return error;
}

/* The launcher ends this rank: finished rows are written. */
static void keep_and_end(int signal)
{
	if (live_file && !live_file->error)
		write_rows(live_file);
	_exit(128 + signal);
}

struct rank_file *rank_file_open(const struct job *job)
{
	struct rank_file *file = allocate(sizeof(*file));
	memset(file, 0, offsetof(struct rank_file, rows));
	file->bytes = 0;
	snprintf(file->path, sizeof(file->path), "%s/%06d.rank", job->options.out, job->rank);
	file->fd = open(file->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_APPEND, 0666);
	if (file->fd < 0) {
		int error = errno;
		fail("rank %d cannot make %s: %s%s", job->rank, file->path, strerror(error),
		     error == ENOENT ? "; the folder must be one that every host sees" : "");
	}
	struct sigaction keep = {.sa_handler = keep_and_end};
	sigaction(SIGTERM, &keep, NULL);
	sigaction(SIGINT, &keep, NULL);
	rank_file_fact(file, QUELL_RANK_FILE_FIRST, "%d", QUELL_RANK_FILE_VERSION);
	rank_file_fact(file, "bench", "%s", job->options.bench);
	rank_file_fact(file, "rank", "%d", job->rank);
	rank_file_fact(file, "ranks", "%d", job->ranks);
	return file;
}

void rank_file_fact(struct rank_file *file, const char *key, const char *format, ...)
{
	char text[8192];
	int length = snprintf(text, sizeof(text), "%s ", key);
	va_list values;
	va_start(values, format);
	length += vsnprintf(text + length, sizeof(text) - (size_t)length - 1, format, values);
	va_end(values);
	if ((size_t)length > sizeof(text) - 2)
		length = sizeof(text) - 2;
	for (int i = 0; i < length; i++) {
		if (text[i] == '\n')
			text[i] = ' ';
	}
	text[length++] = '\n';
	struct quell_block head = {.bytes = (uint64_t)length};
	memcpy(head.kind, QUELL_BLOCK_FACT, 4);
	rank_file_flush(file);
	if (!file->error)
		file->error = write_all(file->fd, &head, sizeof(head));
	if (!file->error)
		file->error = write_all(file->fd, text, (size_t)length);
}

void rank_file_series(struct rank_file *file, const char *name, const char *columns)
{
	rank_file_fact(file, "series", "%s", name);
	rank_file_fact(file, "columns", "%s", columns);
	file->columns = 1;
	for (const char *at = columns; *at; at++)
		file->columns += *at == ' ';
}

size_t rank_file_room(const struct rank_file *file)
{
	return (ROOM - file->bytes) / (file->columns * sizeof(uint64_t));
}

size_t rank_file_most(const struct rank_file *file)
{
	return ROOM / (file->columns * sizeof(uint64_t));
}

uint64_t *rank_file_row(struct rank_file *file)
{
	/* Callers check the room first, so this never happens. */
	if (!rank_file_room(file))
		rank_file_flush(file);
	return (uint64_t *)(void *)(file->rows + file->bytes);
}

void rank_file_keep(struct rank_file *file)
{
	file->bytes += file->columns * sizeof(uint64_t);
}

void rank_file_forget(struct rank_file *file)
{
	file->bytes = 0;
}

void rank_file_counts(struct rank_file *file)
{
	rank_file_forget(file);
	live_file = file;
}

int rank_file_flush(struct rank_file *file)
{
	/* After a failed write the file ends within a block, and nothing may follow. */
	if (!file->error)
		file->error = write_rows(file);
	file->bytes = 0;
	return file->error;
}

void rank_file_flush_all(struct job *job)
{
	struct { int error, rank; } mine = {rank_file_flush(job->file), job->rank}, worst;
	MPI_Allreduce(&mine, &worst, 1, MPI_2INT, MPI_MAXLOC, MPI_COMM_WORLD);
	if (worst.error && worst.rank == job->rank)
		fail("rank %d cannot write %s: %s", job->rank, job->file->path, strerror(worst.error));
	/* The rank that failed ends the job, and reports why. */
	if (worst.error)
		MPI_Barrier(MPI_COMM_WORLD);
}

void rank_file_close(struct rank_file *file)
{
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	live_file = NULL;
	close(file->fd);
	free(file);
}
