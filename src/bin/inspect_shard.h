/*
 * inspect_shard.h - headrace inspect of a file of records, instead of a graph.
 */
#ifndef BIN_INSPECT_SHARD_H
#define BIN_INSPECT_SHARD_H

#include "headrace/engine.h"

/* Whether the path looks like a file of records: its name ends in .records, .tar,
 * .tfrecord, .txt, .jsonl, .csv, .arrow, .parquet, .npy or .npz, optionally followed by
 * .gz, .zst or .zlib. */
bool inspect_is_shard(const char *path);

/* A frozen graph that reads it. Returns a cli_exit code. */
int inspect_shard_open(const char *path, struct hr_graph **ret_graph);

/* Reads all records and prints how many are whole, and what is wrong with the others and
 * where. Returns a cli_exit code: CLI_FAILED if there is damage. */
int inspect_shard_check(struct hr_graph *graph);

#endif
