/*
 * data_file.h - which source reads a file of records, by the ending of its name.
 */
#ifndef BIN_DATA_FILE_H
#define BIN_DATA_FILE_H

#include "headrace/graph.h"

/* The op that reads such a file (.records, .tar, .tfrecord, .txt, .jsonl, .csv, .arrow,
 * .parquet, .npy, .npz, .mdb, .h5 or .hdf5, some of them followed by .gz, .zst or .zlib;
 * or .tfrecord-00000-of-00008), or NULL. */
const char *data_file_source(const char *path);

/* A frozen graph of that op alone, with its parameter `index` unless that is NULL.
 * Returns a cli_exit code; prints the reason on failure.
 */
int data_file_open(const char *op, const char *path, const char *index,
                   struct hr_graph **ret_graph);

#endif
