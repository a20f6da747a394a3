/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A rank's file: what one rank of an MPI program reports to quell. crates/recording/src/rank_file.rs reads it, and its test compiles
 * this header.
 *
 * A file is a sequence of blocks: a `struct quell_block`, then as many bytes as it says.
 *
 *   FACT   lines of text, `key value`. The first line of a file is `quell-rank 1`. The key `series` opens a series: facts before
 *          the first one belong to the rank, those after it to the series. The key `columns` has the names of the columns that
 *          follow, separated by spaces.
 *   ROWS   rows of the series' columns, every value an unsigned 64-bit integer, little endian.
 *
 * An incomplete block is the end of a file whose rank died: the blocks before it are valid.
 */
#ifndef QUELL_RANK_FILE_H
#define QUELL_RANK_FILE_H

#include <stddef.h>
#include <stdint.h>

/* Generated (layout) by tools/make_contract.py from contract/trace_log.py: change it there. */
#define QUELL_RANK_FILE_VERSION 1
#define QUELL_RANK_FILE_FIRST "quell-rank"
#define QUELL_BLOCK_FACT "FACT"
#define QUELL_BLOCK_ROWS "ROWS"

struct quell_block {
	char kind[4];
	uint32_t zero;
	uint64_t bytes;
};

_Static_assert(sizeof(struct quell_block) == 16, "contract/ has another layout");
_Static_assert(offsetof(struct quell_block, kind) == 0, "contract/ has another layout");
_Static_assert(offsetof(struct quell_block, zero) == 4, "contract/ has another layout");
_Static_assert(offsetof(struct quell_block, bytes) == 8, "contract/ has another layout");

/* The columns of a benchmark's phases, and their places in a row. */
#define QUELL_PHASE_COLUMNS "start_ns work qt_ns bt_ns cpu"
enum quell_phase_column {
	QUELL_PHASE_START_NS = 0,
	QUELL_PHASE_WORK = 1,
	QUELL_PHASE_QT_NS = 2,
	QUELL_PHASE_BT_NS = 3,
	QUELL_PHASE_CPU = 4,
};
/* End of what is generated. */

#endif
