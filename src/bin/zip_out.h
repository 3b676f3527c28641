/*
 * zip_out.h - writes files into a ZIP archive, stored, as numpy.savez does.
 */
#ifndef BIN_ZIP_OUT_H
#define BIN_ZIP_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct zip_member {
    char name[256];
    uint64_t bytes, offset;
    uint32_t crc;
};

/* An archive that is being written to `file` from its beginning. */
struct zip_out {
    FILE *file;
    struct zip_member *members;
    size_t count;
};

/* Appends a file, which is read from where it stands, as `name`. False if memory or a
 * read or write failed; errno says which. */
bool zip_out_add(struct zip_out *zip, const char *name, FILE *from, uint64_t bytes);

/* Writes the directory. Call it once, at the end. */
bool zip_out_finish(struct zip_out *zip);

void zip_out_free(struct zip_out *zip); /* does not close the file */

#endif
