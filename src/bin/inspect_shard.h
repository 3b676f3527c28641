/*
 * inspect_shard.h - headrace inspect and index of files of records, instead of a graph
 * or of photos.
 */
#ifndef BIN_INSPECT_SHARD_H
#define BIN_INSPECT_SHARD_H

#include "headrace/engine.h"

/* Whether the path looks like a file of records: its name ends in .records, .tar,
 * .tfrecord, .txt, .jsonl, .csv, .arrow, .parquet, .npy, .npz, .mdb, .h5 or .hdf5,
 * optionally followed by .gz, .zst or .zlib. */
bool inspect_is_shard(const char *path);

/* A frozen graph that reads it, with a saved index in the file `index`, or NULL. Returns
 * a cli_exit code. */
int inspect_shard_open(const char *path, const char *index, struct hr_graph **ret_graph);

/* Reads all records and prints how many are whole, and what is wrong with the others and
 * where. Returns a cli_exit code: CLI_FAILED if there is damage. */
int inspect_shard_check(struct hr_graph *graph);

#endif
