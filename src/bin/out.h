/*
 * out.h - output of the command: atomically replaced files, and JSON.
 */
#ifndef BIN_OUT_H
#define BIN_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A file being written in the folder of its final path. */
struct out {
    char path[2048], temp[2080]; /* temp: "" while it has no name */
    bool in_place;               /* a device or a pipe, which no file may replace */
    FILE *file;
};

/* begin, then fprintf to out->file, then commit (fsync, rename) or abort. Each returns a
 * cli_exit code and prints the reason on failure; on failure the temporary file is
 * removed. */
int out_begin(struct out *out, const char *path);
int out_commit(struct out *out);
void out_abort(struct out *out); /* also for a zeroed struct, and after commit */

/* All of it in one call. */
int out_replace(const char *path, const char *text);

/* Whether the second of two files written to these paths replaces the first: one name in
 * one folder. Never of devices and pipes. */
bool out_is_same(const char *a, const char *b);

/* Reports early, before hours of work, if a file cannot be created there. */
int out_probe(const char *path);

/* Creates a folder and its parents. */
int out_folder(const char *path);

/* Length of the UTF-8 character that NUL-terminated text begins with, 0 if it is none. */
size_t out_utf8_length(const unsigned char *text);

/* Writes one JSON value sequentially; `key` is NULL inside arrays. Invalid UTF-8 in
 * strings is replaced by U+FFFD. */
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
