/*
 * look.h - what files lie in a folder, by the endings of their names.
 */
#ifndef BIN_LOOK_H
#define BIN_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOOK_PATH_MAX 1024 /* bytes of a path below the folder */
#define LOOK_ENDINGS_MAX 8

/* In names of TFRecord files that end in a number: "train.tfrecord-00000-of-00008". */
#define LOOK_NUMBERED_TFRECORD ".tfrecord-"

/* In order of preference where a folder holds equally many of two kinds. */
enum look_kind {
    LOOK_RECORDS,
    LOOK_TAR,
    LOOK_TFRECORD,
    LOOK_PARQUET,
    LOOK_ARROW,
    LOOK_LMDB,
    LOOK_IDX,
    LOOK_NPY,
    LOOK_PHOTO,
    LOOK_SOUND,
    LOOK_JSONL,
    LOOK_CSV,
    LOOK_JSON,
    LOOK_TEXT,
    LOOK_OTHER, /* not read by any source */
    LOOK_KINDS,
};

/* Files of one kind. */
struct look_files {
    uint64_t count, top;       /* all; directly in the folder */
    uint64_t folders;          /* folders directly below that hold some, at any depth */
    uint64_t parts;            /* those of them that are named as a part of a data set */
    bool scattered;            /* they lie in more than one folder */
    char first[LOOK_PATH_MAX]; /* the first in order of bytes, relative to the folder */
    char endings[LOOK_ENDINGS_MAX][12]; /* without dots, in small letters */
    size_t ending_count;
};

struct look {
    struct look_files kinds[LOOK_KINDS];
    bool cut;       /* there are more files than were looked at */
    char train[64]; /* the folder directly below that is named as the training set, or ""
                     */
};

/* Looks through a folder and those below it, at up to 200,000 names. Names that begin
 * with a dot are left out, and so are READMEs and licences. Returns a cli_exit code;
 * prints the reason on failure. */
int look_at(const char *folder, struct look *ret_look);

/* What the name of a file says that it is. */
enum look_kind look_kind(const char *path);

/* Writes "folder/name", or the folder alone if the name is "". False if it does not fit,
 * and then "". */
bool look_join(char *to, size_t room, const char *folder, const char *name);

#endif
