/*
 * probe.h - what the records of a file hold, by its first whole record.
 */
#ifndef BIN_PROBE_H
#define BIN_PROBE_H

#include <stdbool.h>

struct probe {
    char photo[64], sound[64]; /* fields with an encoded one, or "" */
    bool ragged;               /* a tensor's size differs between records */
    char fields[512];          /* "image bytes, label int64", for a comment */
};

/* Reads the first record of a file with source `op`. Returns a cli_exit code; prints the
 * reason on failure. A file without records is no failure. */
int probe_file(const char *op, const char *path, struct probe *ret_probe);

#endif
