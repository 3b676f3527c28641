/*
 * tests/support/tar.h - writes tar archives for tests, damaged ones too.
 */
#ifndef HR_TESTS_TAR_H
#define HR_TESTS_TAR_H

#include "core/str.h"

#include <stdio.h>
#include <string.h>

/* Adds a header of this type for `bytes` bytes of contents, as ustar has it. */
static inline void
tar_header(struct hr_str *out, char type, const char *name, size_t bytes)
{
    char head[512] = {0};
    size_t length = strlen(name);
    unsigned sum = 0;

    memcpy(head, name, length < 100 ? length : 100);
    memcpy(head + 100, "0000644\0000000000\0000000000", 23);
    snprintf(head + 124, 12, "%011zo", bytes);
    memcpy(head + 136, "00000000000", 11);
    memset(head + 148, ' ', 8);
    head[156] = type;
    memcpy(head + 257, "ustar\00000", 8);
    for (size_t i = 0; i < sizeof head; i++)
        sum += (unsigned char)head[i];
    snprintf(head + 148, 8, "%06o", sum & 0777777);
    hr__str_add_bytes(out, head, sizeof head);
}

/* Adds contents, filled up to a whole block. */
static inline void tar_contents(struct hr_str *out, const void *data, size_t bytes)
{
    static const char zeros[512];

    hr__str_add_bytes(out, data, bytes);
    hr__str_add_bytes(out, zeros, (512 - bytes % 512) % 512);
}

static inline void
tar_member(struct hr_str *out, const char *name, const void *data, size_t bytes)
{
    tar_header(out, '0', name, bytes);
    tar_contents(out, data, bytes);
}

static inline void tar_end(struct hr_str *out)
{
    static const char zeros[1024];

    hr__str_add_bytes(out, zeros, sizeof zeros);
}

#endif
