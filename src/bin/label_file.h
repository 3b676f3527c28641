/*
 * label_file.h - finds the table in a folder that lists its photos or sounds with labels.
 */
#ifndef BIN_LABEL_FILE_H
#define BIN_LABEL_FILE_H

#include <stdbool.h>

#define LABEL_NAME_MAX 128

struct label_file {
    char path[1280];                   /* of the table */
    char base[1280];                   /* the folder that its paths are relative to */
    char path_column[LABEL_NAME_MAX];  /* "" if the table has no header */
    char label_column[LABEL_NAME_MAX]; /* "" if none looks like a label */
};

/* Looks at the CSV and JSON lines files directly in the folder, those with "train" in
 * their name first. True if one has a column whose cells name files, below the folder or
 * one of the folders in it. */
bool label_file_find(const char *folder, struct label_file *ret_found);

#endif
