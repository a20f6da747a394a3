/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Calls of which only the beginning and the end are recorded: files, the synchronisation of windows, processes that are started, partitioned
 * messages. Of collectives on files, it is also recorded that all ranks of the file take part. Calls that a library of the MPI makes within
 * them, such as ROMIO's, are not the program's. regions.h has the calls that exist twice, with small counts and with large ones. */
#include "trace.h"

#define ROW(name, params, args) TRACED(name, params, args, , )
#define ALL(name, params, args) TRACED(name, params, args, begun(log), collective_on(log, ADDRESS(file)))

/* ---- Windows ---- */

ROW(Win_start, (MPI_Group group, int assert, MPI_Win win), (group, assert, win))
ROW(Win_complete, (MPI_Win win), (win))
ROW(Win_post, (MPI_Group group, int assert, MPI_Win win), (group, assert, win))
ROW(Win_wait, (MPI_Win win), (win))
ROW(Win_test, (MPI_Win win, int *flag), (win, flag))
ROW(Win_lock, (int type, int rank, int assert, MPI_Win win), (type, rank, assert, win))
ROW(Win_lock_all, (int assert, MPI_Win win), (assert, win))
ROW(Win_unlock, (int rank, MPI_Win win), (rank, win))
ROW(Win_unlock_all, (MPI_Win win), (win))
ROW(Win_flush, (int rank, MPI_Win win), (rank, win))
ROW(Win_flush_all, (MPI_Win win), (win))
ROW(Win_flush_local, (int rank, MPI_Win win), (rank, win))
ROW(Win_flush_local_all, (MPI_Win win), (win))
ROW(Win_sync, (MPI_Win win), (win))

/* ---- Processes ---- */

ROW(Comm_spawn,
    (const char *command, char *words[], int count, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made, int codes[]),
    (command, words, count, info, root, comm, made, codes))
ROW(Comm_spawn_multiple,
    (int count, char *commands[], char **words[], const int counts[], const MPI_Info infos[], int root, MPI_Comm comm, MPI_Comm *made,
     int codes[]),
    (count, commands, words, counts, infos, root, comm, made, codes))
ROW(Comm_accept, (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made), (port, info, root, comm, made))
ROW(Comm_connect, (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made), (port, info, root, comm, made))

/* ---- Files ---- */

ALL(File_sync, (MPI_File file), (file))
ALL(File_set_size, (MPI_File file, MPI_Offset size), (file, size))
ALL(File_preallocate, (MPI_File file, MPI_Offset size), (file, size))
ALL(File_set_view,
    (MPI_File file, MPI_Offset at, MPI_Datatype type, MPI_Datatype view, const char *form, MPI_Info info),
    (file, at, type, view, form, info))
ROW(File_read_all_end, (MPI_File file, void *data, MPI_Status *status), (file, data, status))
ROW(File_read_at_all_end, (MPI_File file, void *data, MPI_Status *status), (file, data, status))
ROW(File_read_ordered_end, (MPI_File file, void *data, MPI_Status *status), (file, data, status))
ROW(File_write_all_end, (MPI_File file, const void *data, MPI_Status *status), (file, data, status))
ROW(File_write_at_all_end, (MPI_File file, const void *data, MPI_Status *status), (file, data, status))
ROW(File_write_ordered_end, (MPI_File file, const void *data, MPI_Status *status), (file, data, status))

#define NAME(name) name
#define COUNT int
#include "regions.h"
#undef NAME
#undef COUNT

#if MPI_VERSION >= 4
#define NAME(name) name##_c
#define COUNT MPI_Count
#include "regions.h"

/* ---- Partitioned messages ---- */

ROW(Pready, (int partition, MPI_Request request), (partition, request))
ROW(Pready_range, (int low, int high, MPI_Request request), (low, high, request))
ROW(Pready_list, (int count, const int partitions[], MPI_Request request), (count, (int *)partitions, request))
ROW(Parrived, (MPI_Request request, int partition, int *flag), (request, partition, flag))
#endif
