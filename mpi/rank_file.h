/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A rank's file: what one rank of an MPI program tells quell. crates/recording/src/rank_file.rs reads it, and its test compiles
 * this header.
 *
 * A file is blocks, one after another: a `struct quell_block`, then as many bytes as it says.
 *
 *   FACT   lines of text, `key value`. The first line of a file is `quell-rank 1`. The key `series` opens a series: facts before
 *          the first are the rank's, those after it the series'. The key `columns` names what follows, words apart by a space.
 *   ROWS   rows of the series' columns, every value an unsigned 64-bit integer, little endian.
 *
 * A block whose bytes are not all there is the end of a file whose rank died: what came before it counts.
 */
#ifndef QUELL_RANK_FILE_H
#define QUELL_RANK_FILE_H

#include <stdint.h>

#define QUELL_RANK_FILE_VERSION 1
#define QUELL_BLOCK_FACT "FACT"
#define QUELL_BLOCK_ROWS "ROWS"

struct quell_block {
	char kind[4];
	uint32_t zero;
	uint64_t bytes;
};

#endif
