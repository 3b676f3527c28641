/*
 * arrays_out.h - the records of a run as NumPy arrays: one .npz file, or a folder of .npy
 * files.
 *
 * An array per field, with all records in the order of delivery. A field whose records
 * all have one size becomes [records, ...]. Otherwise, and for texts and bytes, FIELD
 * holds the elements of all records one after the other, FIELD_splits (int64 [records +
 * 1]) where each begins and ends, and FIELD_shapes (int64 [records, dims]) the sizes of
 * records of two dimensions or more. bfloat16, which NumPy lacks, becomes float32.
 */
#ifndef BIN_ARRAYS_OUT_H
#define BIN_ARRAYS_OUT_H

#include "headrace/engine.h"

struct arrays_out;

/* Begins to write, beside `path`: a file if it ends in .npz, else a folder. An existing
 * `path` is refused. Returns a cli_exit code; prints the reason on failure. */
int arrays_out_begin(const char *path, struct arrays_out **ret_out);

/* Appends the records of a batch. */
int arrays_out_add(struct arrays_out *out, const struct hr_batch *batch);

/* Finishes the arrays and moves them to `path`. */
int arrays_out_commit(struct arrays_out *out);

/* Prints what was written, one line per array. */
void arrays_out_report(const struct arrays_out *out);

/* Frees it, and removes what is not committed. NULL is allowed. */
void arrays_out_end(struct arrays_out *out);

#endif
