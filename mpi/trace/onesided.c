/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * One-sided communication: the calls are counted; which rank waits for them is not known here. onesided.h has the rows. */
#include "trace.h"

#define ROW(name, params, args) TRACED(name, params, args, log->head->one_sided++, )

ROW(Fetch_and_op, (const void *from, void *result, MPI_Datatype type, int rank, MPI_Aint at, MPI_Op op, MPI_Win win),
    (from, result, type, rank, at, op, win))
ROW(Compare_and_swap, (const void *from, const void *compare, void *result, MPI_Datatype type, int rank, MPI_Aint at, MPI_Win win),
    (from, compare, result, type, rank, at, win))

#define NAME(name) name
#define COUNT int
#include "onesided.h"
#undef NAME
#undef COUNT

#if MPI_VERSION >= 4
#define NAME(name) name##_c
#define COUNT MPI_Count
#include "onesided.h"
#endif
