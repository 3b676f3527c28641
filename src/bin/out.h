/*
 * out.h - what the command writes: files that appear by rename, and JSON.
 */
#ifndef BIN_OUT_H
#define BIN_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A file in the making beside its final path. */
struct out {
    char path[2048], temp[2080];
    FILE *file;
};

/* Begin; then fprintf to out->file; then commit (fsync, rename) or abort. Each returns a
 * cli_exit code and has printed what failed; after a failure nothing is left behind. */
int out_begin(struct out *out, const char *path);
int out_commit(struct out *out);
void out_abort(struct out *out); /* also of a zeroed one, and after commit */

/* All of it at once. */
int out_replace(const char *path, const char *text);

/* Say beforehand, before hours of work, that a file cannot be made there. */
int out_probe(const char *path);

/* Make a folder and those above it. */
int out_folder(const char *path);

/* One JSON value, written from front to back; `key` is NULL inside arrays. Strings that
 * are not UTF-8 have their wrong bytes replaced by U+FFFD. */
struct json {
    FILE *out;
    bool comma;
};
void json_open(struct json *json, const char *key, char bracket);
void json_close(struct json *json, char bracket);
void json_text(struct json *json, const char *key, const char *text); /* NULL: null */
void json_u64(struct json *json, const char *key, uint64_t value);
void json_i64(struct json *json, const char *key, int64_t value);
void json_double(struct json *json, const char *key, double value);
void json_bool(struct json *json, const char *key, bool value);
void json_end(struct json *json); /* newline */

#endif
