/*
 * store/index_pattern.c - which folders are entered and which files are taken.
 *
 * A plain folder is a pattern too: two stars and a star below it, or a star alone if not
 * recursive. A folder carries the set of segments that may come next, one bit each, so a
 * walk enters only folders below which something can match. Bytes are compared, not
 * characters: names need not be UTF-8, and the locale does not matter. There is no escape
 * character; "[*]" stands for a star.
 */
#include "core/alloc.h"
#include "core/error.h"
#include "core/str.h"
#include "store/index_internal.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define SEGMENTS_MAX 64

/* Returns whether the class at glob[at] ('[') contains `byte`. *ret_next is after its
 * ']'; a class that is not closed is a plain '['. */
static bool
class_has(const char *glob, size_t bytes, size_t at, unsigned char byte, size_t *ret_next)
{
    size_t i = at + 1;
    bool inverse = i < bytes && (glob[i] == '!' || glob[i] == '^');
    bool found = false;

    i += inverse;
    for (size_t first = i; i < bytes && (glob[i] != ']' || i == first); i++) {
        unsigned char low = (unsigned char)glob[i], high = low;

        if (i + 2 < bytes && glob[i + 1] == '-' && glob[i + 2] != ']') {
            high = (unsigned char)glob[i + 2];
            i += 2;
        }
        found |= low <= byte && byte <= high;
    }
    if (i >= bytes) {
        *ret_next = at + 1;
        return byte == '[';
    }
    *ret_next = i + 1;
    return found != inverse;
}

bool hr__glob_match(const char *glob, size_t glob_bytes, const char *name, size_t bytes)
{
    size_t g = 0, n = 0, star = SIZE_MAX, star_n = 0;

    while (n < bytes || g < glob_bytes) {
        if (g < glob_bytes && glob[g] == '*') {
            star = g++;
            star_n = n;
            if (g == glob_bytes)
                return true;
            continue;
        }
        if (g < glob_bytes && n < bytes) {
            size_t next = g + 1;
            bool same = glob[g] == '?' || glob[g] == name[n];

            if (glob[g] == '[')
                same = class_has(glob, glob_bytes, g, (unsigned char)name[n], &next);
            if (same) {
                g = next;
                n++;
                continue;
            }
        }
        if (star == SIZE_MAX || star_n >= bytes)
            return false;
        g = star + 1; /* let the last star match one byte more */
        n = ++star_n;
    }
    return true;
}

/* Adds the segments that may come next because two stars may match no folder. */
static uint64_t with_skips(const struct hr_index_pattern *pattern, uint64_t states)
{
    for (uint32_t i = 0; i + 1 < pattern->segment_count; i++) {
        if ((states >> i & 1) != 0 && pattern->segments[i].any_depth)
            states |= UINT64_C(1) << (i + 1);
    }
    return states;
}

uint64_t hr__index_pattern_start(const struct hr_index_pattern *pattern)
{
    return with_skips(pattern, 1);
}

static bool
segment_matches(const struct hr_index_segment *segment, const char *name, size_t bytes)
{
    if (name[0] == '.' && (segment->any_depth || segment->text[0] != '.'))
        return false;
    if (segment->any_depth || (segment->bytes == 1 && segment->text[0] == '*'))
        return true;
    return hr__glob_match(segment->text, segment->bytes, name, bytes);
}

uint64_t hr__index_pattern_enter(const struct hr_index_pattern *pattern, uint64_t states,
                                 const char *name, size_t bytes)
{
    uint64_t next = 0;

    for (uint32_t i = 0; i + 1 < pattern->segment_count; i++) {
        const struct hr_index_segment *segment = &pattern->segments[i];

        if ((states >> i & 1) != 0 && segment_matches(segment, name, bytes))
            next |= UINT64_C(1) << (segment->any_depth ? i : i + 1);
    }
    return with_skips(pattern, next);
}

static char lower(char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (char)(byte + 32) : byte;
}

static bool
ends_so(const char *name, size_t bytes, const char *suffix, size_t suffix_bytes)
{
    if (bytes < suffix_bytes)
        return false;
    name += bytes - suffix_bytes;
    for (size_t i = 0; i < suffix_bytes; i++) {
        if (lower(name[i]) != suffix[i])
            return false;
    }
    return true;
}

bool hr__index_pattern_accepts(const struct hr_index_pattern *pattern, uint64_t states,
                               const char *name, size_t bytes)
{
    uint32_t last = pattern->segment_count - 1;

    if ((states >> last & 1) == 0 ||
        !segment_matches(&pattern->segments[last], name, bytes))
        return false;
    for (size_t i = 0; i < pattern->suffix_count; i++) {
        if (ends_so(name, bytes, pattern->suffixes[i], pattern->suffix_bytes[i]))
            return true;
    }
    return pattern->suffix_count == 0;
}

/* The first segment with a wildcard. */
static const char *glob_part(const char *root)
{
    size_t at = strcspn(root, "*?[");

    while (at > 0 && root[at - 1] != '/')
        at--;
    return root + at;
}

static enum hr_err split_segments(struct hr_index_pattern *pattern, const char *root,
                                  struct hr_error *reterr)
{
    pattern->segments = hr__calloc(SEGMENTS_MAX, sizeof *pattern->segments);
    if (pattern->segments == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    for (const char *at = pattern->text; *at != '\0';) {
        size_t bytes = strcspn(at, "/");
        struct hr_index_segment segment = {at, bytes,
                                           bytes == 2 && memcmp(at, "**", 2) == 0};

        if (pattern->segment_count == SEGMENTS_MAX)
            return hr__fail(reterr, HR_ERR_ARGUMENT, "pattern %s has over %d parts", root,
                            SEGMENTS_MAX);
        if ((bytes == 1 && at[0] == '.') || (bytes == 2 && memcmp(at, "..", 2) == 0))
            return hr__fail(reterr, HR_ERR_ARGUMENT,
                            "pattern %s has %.*s after a wildcard", root, (int)bytes, at);
        if (bytes > 0)
            pattern->segments[pattern->segment_count++] = segment;
        at += bytes + (at[bytes] == '/');
    }
    return HR_OK;
}

static enum hr_err
copy_suffixes(struct hr_index_pattern *pattern, const struct hr_index_options *options)
{
    size_t count = options->suffix_count;

    if (count == 0)
        return HR_OK;
    pattern->suffixes = hr__calloc(count, sizeof *pattern->suffixes);
    pattern->suffix_bytes = hr__calloc(count, sizeof *pattern->suffix_bytes);
    if (pattern->suffixes == NULL || pattern->suffix_bytes == NULL)
        return HR_ERR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        pattern->suffixes[i] = hr__strdup(options->suffixes[i]);
        if (pattern->suffixes[i] == NULL)
            return HR_ERR_MEMORY;
        pattern->suffix_count = i + 1;
        pattern->suffix_bytes[i] = strlen(pattern->suffixes[i]);
        for (char *byte = pattern->suffixes[i]; *byte != '\0'; byte++)
            *byte = lower(*byte);
    }
    return HR_OK;
}

static enum hr_err hash_pattern(struct hr_index_pattern *pattern)
{
    struct hr_str text;
    enum hr_err err = HR_OK;

    hr__str_init(&text);
    for (uint32_t i = 0; i < pattern->segment_count; i++) {
        hr__str_add(&text, "/");
        hr__str_add_bytes(&text, pattern->segments[i].text, pattern->segments[i].bytes);
    }
    for (size_t i = 0; i < pattern->suffix_count; i++) {
        hr__str_add_bytes(&text, "", 1);
        hr__str_add(&text, pattern->suffixes[i]);
    }
    if (hr__str_ok(&text))
        pattern->hash = hr__hash128(hr__str_text(&text), text.length);
    else
        err = HR_ERR_MEMORY;
    hr__str_finish(&text);
    return err;
}

/* The folder to begin in, without trailing slashes. */
static char *base_folder(const char *root, size_t bytes)
{
    while (bytes > 1 && root[bytes - 1] == '/' &&
           !(bytes >= 3 && memcmp(root + bytes - 3, "://", 3) == 0))
        bytes--;
    return hr__strndup(root, bytes);
}

enum hr_err
hr__index_pattern_init(struct hr_index_pattern *pattern,
                       const struct hr_index_options *options, struct hr_error *reterr)
{
    const char *root = options->root;
    const char *glob = root + strlen(root);
    const char *tail = options->recursive ? "**/*" : "*";
    size_t text_bytes;
    struct stat info;
    enum hr_err err = HR_ERR_MEMORY;

    memset(pattern, 0, sizeof *pattern);
    if (stat(root, &info) != 0 && strpbrk(root, "*?[") != NULL) {
        size_t bytes = strlen(root);

        glob = glob_part(root);
        while (bytes > 0 && root[bytes - 1] == '/')
            bytes--;
        tail = bytes >= 2 && memcmp(root + bytes - 2, "**", 2) == 0 &&
                       (bytes == 2 || root[bytes - 3] == '/')
                   ? "/*"
                   : "";
        pattern->is_glob = true;
    }
    pattern->base = base_folder(root, (size_t)(glob - root));
    text_bytes = strlen(glob) + strlen(tail) + 1;
    pattern->text = hr__malloc(text_bytes);
    if (pattern->base == NULL || pattern->text == NULL)
        goto out;
    snprintf(pattern->text, text_bytes, "%s%s", glob, tail);
    err = split_segments(pattern, root, reterr);
    if (err != HR_OK)
        goto fail;
    err = copy_suffixes(pattern, options);
    if (err == HR_OK)
        err = hash_pattern(pattern);
    if (err == HR_OK)
        return HR_OK;
out:
    hr__fail(reterr, err, "out of memory");
fail:
    hr__index_pattern_finish(pattern);
    return err;
}

void hr__index_pattern_finish(struct hr_index_pattern *pattern)
{
    for (size_t i = 0; i < pattern->suffix_count; i++)
        hr__free(pattern->suffixes[i]);
    hr__free(pattern->suffixes);
    hr__free(pattern->suffix_bytes);
    hr__free(pattern->segments);
    hr__free(pattern->text);
    hr__free(pattern->base);
    memset(pattern, 0, sizeof *pattern);
}
