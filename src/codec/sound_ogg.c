/*
 * codec/sound_ogg.c - whether an Ogg file is whole.
 *
 * libsndfile skips damaged pages and ends at the last whole one without a word, which
 * would be a sound with a gap or without its end. Pages are read as RFC 3533 defines
 * them.
 */
#include "codec/sound_priv.h"

#include <string.h>

#include "core/error.h"

#define PAGE_HEAD 27u
#define CRC_AT 22u
#define END_FLAG 4u
#define CRC_FACTOR 0x04c11db7u

/* Contributions of the byte that leaves a CRC of Ogg: the high bit first, from 0. */
struct crc_table {
    uint32_t of[256];
};

static void fill_table(struct crc_table *table)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i << 24;

        for (int bit = 0; bit < 8; bit++)
            crc = crc << 1 ^ (crc >> 31 != 0 ? CRC_FACTOR : 0);
        table->of[i] = crc;
    }
}

static uint32_t add_bytes(const struct crc_table *table, uint32_t crc,
                          const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        crc = crc << 8 ^ table->of[crc >> 24 ^ bytes[i]];
    return crc;
}

/* Of a page, whose own checksum counts as zeros. */
static bool
has_checksum(const struct crc_table *table, const unsigned char *page, size_t bytes)
{
    static const unsigned char zeros[4];
    const unsigned char *c = page + CRC_AT;
    uint32_t crc = add_bytes(table, 0, page, CRC_AT);

    crc = add_bytes(table, crc, zeros, sizeof zeros);
    crc = add_bytes(table, crc, page + CRC_AT + 4, bytes - CRC_AT - 4);
    return crc ==
           (c[0] | (uint32_t)c[1] << 8 | (uint32_t)c[2] << 16 | (uint32_t)c[3] << 24);
}

/* The size of the page at `page`, of which at most `bytes` are there; 0: it is cut short.
 */
static size_t page_bytes(const unsigned char *page, size_t bytes)
{
    size_t size = PAGE_HEAD;

    if (bytes < PAGE_HEAD || bytes < PAGE_HEAD + page[PAGE_HEAD - 1])
        return 0;
    size += page[PAGE_HEAD - 1];
    for (size_t i = 0; i < page[PAGE_HEAD - 1]; i++)
        size += page[PAGE_HEAD + i];
    return size <= bytes ? size : 0;
}

enum hr_err hr__ogg_check(const void *data, size_t *ret_bytes, bool checksums,
                          struct hr_error *reterr)
{
    size_t size, bytes = *ret_bytes;
    const unsigned char *page = data;
    struct crc_table table;
    bool end = false;

    if (checksums)
        fill_table(&table);
    for (size_t at = 0; at < bytes; at += size, page += size) {
        if (bytes - at < 4 || memcmp(page, "OggS", 4) != 0) {
            *ret_bytes = at;
            if (end)
                return HR_OK; /* tags that other programs append */
            return hr__fail(
                reterr, HR_ERR_FORMAT,
                "Ogg, offset %zu: no page begins here: the file is damaged or "
                "cut short",
                at);
        }
        size = page_bytes(page, bytes - at);
        if (size == 0)
            return hr__fail(reterr, HR_ERR_FORMAT,
                            "Ogg, offset %zu: the file is cut short in this page", at);
        if (checksums && !has_checksum(&table, page, size))
            return hr__fail(reterr, HR_ERR_FORMAT,
                            "Ogg, offset %zu: the checksum of this page is wrong", at);
        end = (page[5] & END_FLAG) != 0;
    }
    if (!end)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "Ogg, offset %zu: the file is cut short: its last page is not "
                        "marked as the end",
                        bytes);
    return HR_OK;
}
