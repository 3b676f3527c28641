/*
 * store/tar.c - one header of a tar archive.
 */
#include "store/tar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* POSIX.1-1988; GNU tar writes "ustar  " as magic and uses `prefix` for other things. */
struct head {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
    char link[100], magic[6], version[2], owner[32], group[32], major[8], minor[8];
    char prefix[155], unused[12];
};
_Static_assert(sizeof(struct head) == HR_TAR_BLOCK, "a header is one block");

static size_t text_bytes(const char *text, size_t room)
{
    const char *end = memchr(text, '\0', room);

    return end != NULL ? (size_t)(end - text) : room;
}

/* Octal digits between spaces, or GNU's base 256 when the first byte is 128. */
static bool read_number(const char *text, size_t room, uint64_t *ret_number)
{
    const unsigned char *at = (const unsigned char *)text;
    uint64_t number = 0;
    size_t i = 0;

    if (at[0] == 0x80) {
        for (i = 1; i < room; i++) {
            if (number >> 55 != 0)
                return false;
            number = number << 8 | at[i];
        }
        *ret_number = number;
        return true;
    }
    while (i < room && at[i] == ' ')
        i++;
    for (; i < room && at[i] >= '0' && at[i] <= '7'; i++)
        number = number << 3 | (uint64_t)(at[i] - '0'); /* at most 12 digits: 36 bits */
    *ret_number = number;
    return i == room || at[i] == ' ' || at[i] == '\0';
}

static bool is_zero(const unsigned char *block)
{
    for (size_t i = 0; i < HR_TAR_BLOCK; i++)
        if (block[i] != 0)
            return false;
    return true;
}

/* The sum of a block's bytes. */
#if defined(__SSE2__)
static uint32_t sum_of(const void *block)
{
    const __m128i *at = block, zero = _mm_setzero_si128();
    __m128i sums[2] = {zero, zero};

    for (size_t i = 0; i < HR_TAR_BLOCK / sizeof *at; i += 2)
        for (size_t k = 0; k < 2; k++)
            sums[k] =
                _mm_add_epi64(sums[k], _mm_sad_epu8(_mm_loadu_si128(at + i + k), zero));
    sums[0] = _mm_add_epi64(sums[0], sums[1]);
    return (uint32_t)(_mm_cvtsi128_si64(sums[0]) +
                      _mm_cvtsi128_si64(_mm_srli_si128(sums[0], 8)));
}
#else
/* Even and odd bytes are added in lanes of 16 bits, which hold 64 times two bytes. */
static uint32_t sum_of(const void *block)
{
    const uint64_t even = 0x00ff00ff00ff00ff;
    uint64_t words[HR_TAR_BLOCK / 8], lanes = 0;

    memcpy(words, block, sizeof words);
    for (size_t i = 0; i < HR_TAR_BLOCK / 8; i++)
        lanes += (words[i] & even) + (words[i] >> 8 & even);
    return (uint32_t)((lanes & 0xffff) + (lanes >> 16 & 0xffff) + (lanes >> 32 & 0xffff) +
                      (lanes >> 48));
}
#endif

/* The sum of the header's bytes, its own field taken as spaces. */
static bool has_checksum(const struct head *head)
{
    uint32_t sum = sum_of(head) + ' ' * sizeof head->checksum;
    uint64_t wanted;

    for (size_t i = 0; i < sizeof head->checksum; i++)
        sum -= (unsigned char)head->checksum[i];
    return read_number(head->checksum, sizeof head->checksum, &wanted) && wanted == sum;
}

/* What extension headers say about the member after them. */
struct extensions {
    const char *name;
    size_t name_bytes;
    bool has_size;
    uint64_t size;
};

static enum hr_err fail_sparse(struct hr_error *reterr)
{
    return hr__fail(reterr, HR_ERR_FORMAT,
                    "a sparse member: unpack it and pack it again without --sparse");
}

static enum hr_err
pax_record(const char *key, size_t key_bytes, const char *value, size_t value_bytes,
           struct extensions *ext, struct hr_error *reterr)
{
    if (key_bytes == 4 && memcmp(key, "path", 4) == 0) {
        ext->name = value;
        ext->name_bytes = value_bytes;
    } else if (key_bytes == 4 && memcmp(key, "size", 4) == 0) {
        ext->has_size = value_bytes > 0 && value_bytes < 19;
        ext->size = 0;
        for (size_t i = 0; i < value_bytes && ext->has_size; i++) {
            ext->has_size = value[i] >= '0' && value[i] <= '9';
            ext->size = ext->size * 10 + (uint64_t)(value[i] - '0');
        }
        if (!ext->has_size)
            return hr__fail(reterr, HR_ERR_FORMAT, "a pax header has no valid size");
    } else if (key_bytes >= 10 && memcmp(key, "GNU.sparse", 10) == 0) {
        return fail_sparse(reterr);
    }
    return HR_OK;
}

/* Records "LENGTH KEY=VALUE\n", where LENGTH counts all of the record. */
static enum hr_err
read_pax(const char *at, size_t bytes, struct extensions *ext, struct hr_error *reterr)
{
    while (bytes > 0 && *at != '\0') {
        const char *key, *equals;
        size_t length = 0, i = 0;

        for (; i < bytes && i < 8 && at[i] >= '0' && at[i] <= '9'; i++)
            length = length * 10 + (size_t)(at[i] - '0');
        if (i == 0 || i >= bytes || at[i] != ' ' || length <= i + 1 || length > bytes ||
            at[length - 1] != '\n')
            return hr__fail(reterr, HR_ERR_FORMAT, "a pax header is damaged");
        key = at + i + 1;
        equals = memchr(key, '=', length - i - 2);
        if (equals == NULL)
            return hr__fail(reterr, HR_ERR_FORMAT, "a pax header is damaged");
        HR_TRY(pax_record(key, (size_t)(equals - key), equals + 1,
                          (size_t)(at + length - 1 - (equals + 1)), ext, reterr));
        at += length;
        bytes -= length;
    }
    return HR_OK;
}

static enum hr_err set_name(const char *text, size_t bytes, struct hr_tar_member *member,
                            size_t at, struct hr_error *reterr)
{
    if (at + bytes >= sizeof member->name)
        return hr__fail(reterr, HR_ERR_FORMAT, "a name of %zu bytes is too long",
                        at + bytes);
    memcpy(member->name + at, text, bytes);
    member->name[at + bytes] = '\0';
    member->name_bytes = at + bytes;
    return HR_OK;
}

static enum hr_err name_member(const struct head *head, const struct extensions *ext,
                               struct hr_tar_member *member, struct hr_error *reterr)
{
    size_t prefix = 0;

    if (ext->name != NULL)
        return set_name(ext->name, ext->name_bytes, member, 0, reterr);
    if (memcmp(head->magic, "ustar", 6) == 0 && head->prefix[0] != '\0') {
        prefix = text_bytes(head->prefix, sizeof head->prefix);
        HR_TRY(set_name(head->prefix, prefix, member, 0, reterr));
        HR_TRY(set_name("/", 1, member, prefix++, reterr));
    }
    return set_name(head->name, text_bytes(head->name, sizeof head->name), member, prefix,
                    reterr);
}

/* An extension header with `size` bytes of contents at `data`. */
static enum hr_err read_extension(const struct head *head, const char *data, size_t size,
                                  struct extensions *ext, struct hr_error *reterr)
{
    if (head->type == 'x')
        return read_pax(data, size, ext, reterr);
    if (head->type == 'L') {
        ext->name = data;
        ext->name_bytes = text_bytes(data, size);
    }
    return HR_OK; /* 'g' and 'K' say nothing that is used */
}

static bool is_extension(char type)
{
    return type == 'x' || type == 'g' || type == 'L' || type == 'K';
}

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + HR_TAR_BLOCK - 1) / HR_TAR_BLOCK * HR_TAR_BLOCK;
}

enum hr_err hr__tar_parse(const void *data, size_t have, struct hr_tar_member *ret_member,
                          size_t *ret_need, struct hr_error *reterr)
{
    struct extensions ext = {0};
    enum hr_err code = HR_OK;
    const struct head *head;
    uint64_t size, at = 0;

    ret_member->next = 0;
    for (;; at += HR_TAR_BLOCK + round_up(size)) {
        *ret_need = (size_t)at + HR_TAR_BLOCK;
        if (have < *ret_need)
            return HR_ERR_RANGE;
        head = (const void *)((const char *)data + at);
        if (at == 0 && is_zero((const unsigned char *)head))
            return HR_ERR_END;
        if (!has_checksum(head) && code == HR_OK)
            code = hr__fail(reterr, HR_ERR_FORMAT, "a header's checksum is wrong");
        if (!has_checksum(head) && !is_extension(head->type))
            return code;
        if (!read_number(head->size, sizeof head->size, &size))
            return hr__fail(reterr, HR_ERR_FORMAT, "a header's size is no number");
        if (!is_extension(head->type))
            break;
        if (size > HR_TAR_HEAD_MAX ||
            at + 2 * HR_TAR_BLOCK + round_up(size) > HR_TAR_HEAD_MAX)
            return hr__fail(reterr, HR_ERR_FORMAT, "an extension header of %llu bytes",
                            (unsigned long long)size);
        *ret_need = (size_t)(at + 2 * HR_TAR_BLOCK + round_up(size));
        if (have < *ret_need)
            return HR_ERR_RANGE;
        if (code == HR_OK)
            code = read_extension(head, (const char *)head + HR_TAR_BLOCK, (size_t)size,
                                  &ext, reterr);
    }
    if (code == HR_OK && head->type == 'S')
        code = fail_sparse(reterr);
    if (code == HR_OK)
        code = name_member(head, &ext, ret_member, reterr);
    ret_member->file = head->type == '0' || head->type == '\0' || head->type == '7';
    ret_member->bytes = ext.has_size ? ext.size : size;
    ret_member->data = at + HR_TAR_BLOCK;
    if (head->type >= '1' && head->type <= '6')
        ret_member->bytes = 0; /* links and folders may state a size, and have no data */
    if (ret_member->bytes > UINT64_MAX / 2)
        return hr__fail(reterr, HR_ERR_FORMAT, "a member of %llu bytes",
                        (unsigned long long)ret_member->bytes);
    ret_member->next = ret_member->data + round_up(ret_member->bytes);
    return code;
}

enum hr_err hr__tar_head(const char *name, uint64_t bytes, char ret_head[HR_TAR_BLOCK],
                         struct hr_error *reterr)
{
    struct head head = {
        .type = '0', .magic = "ustar", .version = {'0', '0'}
    };
    size_t length = strlen(name);
    char digits[16];

    if (length == 0 || length >= sizeof head.name || bytes >> 33 != 0)
        return hr__fail(
            reterr, HR_ERR_LIMIT,
            "the name or the size of member '%.100s' (%llu bytes) is too large "
            "for a tar archive",
            name, (unsigned long long)bytes);
    memcpy(head.name, name, length);
    memcpy(head.mode, "0000644", 8);
    memcpy(head.uid, "0000000", 8);
    memcpy(head.gid, "0000000", 8);
    snprintf(digits, sizeof digits, "%011llo", (unsigned long long)bytes);
    memcpy(head.size, digits, sizeof head.size);
    memcpy(head.mtime, "00000000000", sizeof head.mtime);
    memset(head.checksum, ' ', sizeof head.checksum);
    snprintf(digits, sizeof digits, "%06o", sum_of(&head));
    memcpy(head.checksum, digits, 7);
    memcpy(ret_head, &head, sizeof head);
    return HR_OK;
}

bool hr__tar_key(const struct hr_tar_member *member, size_t *ret_key, size_t *ret_ending)
{
    const char *name = member->name;
    const char *slash = memrchr(name, '/', member->name_bytes);
    const char *stem = slash != NULL ? slash + 1 : name;
    const char *dot = memchr(stem, '.', (size_t)(name + member->name_bytes - stem));
    size_t bytes = member->name_bytes;

    if (!member->file || dot == NULL || dot == stem || dot + 1 == name + bytes)
        return false;
    if (slash == NULL && bytes > 4 && memcmp(name, "__", 2) == 0 &&
        memcmp(name + bytes - 2, "__", 2) == 0)
        return false;
    *ret_key = (size_t)(dot - name);
    *ret_ending = bytes - *ret_key - 1;
    return true;
}
