/*
 * jpeg.h - shared by the actions of headrace jpeg.
 */
#ifndef BIN_JPEG_H
#define BIN_JPEG_H

#include "cli.h"
#include "headrace/jpeg.h"

struct jpeg_options {
    const char *output, *window, *size, *index;
    int scale, mode;
    int64_t threads, step;
    bool gray, json, quiet;
};

/* A photo in memory; free() its data. */
struct jpeg_file {
    const char *path;
    void *data;
    size_t bytes;
};

/* Each returns a cli_exit code and prints the reason on failure. */
int jpeg_read(const char *path, struct jpeg_file *ret_file);
int jpeg_failed(const struct jpeg_file *file, const struct hr_error *error);
int jpeg_decode(const struct jpeg_options *options, const struct jpeg_file *file);

#endif
