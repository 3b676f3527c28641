/*
 * zip_out.c - see zip_out.h. Sizes are in the 64-bit fields always: the archive is the
 * same whatever its size, and arrays may be larger than 4 GB.
 */
#include "zip_out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PIECE ((size_t)1 << 20)
#define VERSION 45 /* of ZIP, with 64-bit sizes */
#define DATE 0x21  /* 1980-01-01: the bytes depend on the arrays only */
#define NAMES_UTF8 0x800

static uint32_t crc_table[256];

static void make_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;

        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xEDB88320u : crc >> 1;
        crc_table[i] = crc;
    }
}

static uint32_t crc_add(uint32_t crc, const uint8_t *data, size_t bytes)
{
    crc = ~crc;
    for (size_t i = 0; i < bytes; i++)
        crc = crc >> 8 ^ crc_table[(crc ^ data[i]) & 255];
    return ~crc;
}

static void put(FILE *out, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++)
        fputc((int)(number >> 8 * i & 255), out);
}

/* What the two headers of a member share. */
static void put_common(FILE *out, const struct zip_member *m, size_t extra)
{
    put(out, NAMES_UTF8, 2);
    put(out, 0, 2); /* stored */
    put(out, 0, 2); /* time */
    put(out, DATE, 2);
    put(out, m->crc, 4);
    put(out, UINT32_MAX, 4); /* sizes: see the extra field */
    put(out, UINT32_MAX, 4);
    put(out, strlen(m->name), 2);
    put(out, extra, 2);
}

static void put_header(FILE *out, const struct zip_member *m)
{
    put(out, 0x04034b50, 4);
    put(out, VERSION, 2);
    put_common(out, m, 20);
    fputs(m->name, out);
    put(out, 1, 2);
    put(out, 16, 2);
    put(out, m->bytes, 8);
    put(out, m->bytes, 8);
}

static void put_entry(FILE *out, const struct zip_member *m)
{
    put(out, 0x02014b50, 4);
    put(out, 3 << 8 | VERSION, 2); /* made on Unix */
    put(out, VERSION, 2);
    put_common(out, m, 28);
    put(out, 0, 2); /* comment */
    put(out, 0, 2); /* disk */
    put(out, 0, 2);
    put(out, (uint64_t)0100644 << 16, 4); /* mode of the file */
    put(out, UINT32_MAX, 4);
    fputs(m->name, out);
    put(out, 1, 2);
    put(out, 24, 2);
    put(out, m->bytes, 8);
    put(out, m->bytes, 8);
    put(out, m->offset, 8);
}

/* Copies the bytes and computes their checksum. */
static bool copy(FILE *to, FILE *from, uint64_t bytes, uint32_t *ret_crc)
{
    uint8_t *piece = malloc(PIECE);
    uint32_t crc = 0;

    while (piece != NULL && bytes > 0) {
        size_t want = bytes < PIECE ? (size_t)bytes : PIECE;
        size_t got = fread(piece, 1, want, from);

        if (got == 0 || fwrite(piece, 1, got, to) != got)
            break;
        crc = crc_add(crc, piece, got);
        bytes -= got;
    }
    free(piece);
    *ret_crc = crc;
    return piece != NULL && bytes == 0;
}

bool zip_out_add(struct zip_out *zip, const char *name, FILE *from, uint64_t bytes)
{
    struct zip_member *members =
        realloc(zip->members, (zip->count + 1) * sizeof(*members));
    struct zip_member *m;
    off_t end;

    if (members == NULL)
        return false;
    if (zip->count == 0)
        make_table();
    zip->members = members;
    m = &members[zip->count];
    *m = (struct zip_member){.bytes = bytes, .offset = (uint64_t)ftello(zip->file)};
    snprintf(m->name, sizeof(m->name), "%s", name);
    put_header(zip->file, m);
    if (!copy(zip->file, from, bytes, &m->crc))
        return false;
    end = ftello(zip->file); /* the header again, with the checksum */
    if (fseeko(zip->file, (off_t)m->offset, SEEK_SET) != 0)
        return false;
    put_header(zip->file, m);
    zip->count++;
    return fseeko(zip->file, end, SEEK_SET) == 0 && !ferror(zip->file);
}

bool zip_out_finish(struct zip_out *zip)
{
    uint64_t begin = (uint64_t)ftello(zip->file), end;
    FILE *out = zip->file;

    for (size_t i = 0; i < zip->count; i++)
        put_entry(out, &zip->members[i]);
    end = (uint64_t)ftello(out);
    put(out, 0x06064b50, 4); /* the 64-bit end of the directory, and where it is */
    put(out, 44, 8);
    put(out, VERSION, 2);
    put(out, VERSION, 2);
    put(out, 0, 8);
    put(out, zip->count, 8);
    put(out, zip->count, 8);
    put(out, end - begin, 8);
    put(out, begin, 8);
    put(out, 0x07064b50, 4);
    put(out, 0, 4);
    put(out, end, 8);
    put(out, 1, 4);
    put(out, 0x06054b50, 4); /* the end of the directory, which says: see there */
    put(out, 0, 4);
    put(out, UINT16_MAX, 2);
    put(out, UINT16_MAX, 2);
    put(out, UINT32_MAX, 4);
    put(out, UINT32_MAX, 4);
    put(out, 0, 2);
    return !ferror(out);
}

void zip_out_free(struct zip_out *zip)
{
    free(zip->members);
    *zip = (struct zip_out){.file = NULL};
}
