/*
 * store/lines.c - the lines of text files.
 */
#include "store/lines.h"

#include <string.h>

#include "core/error.h"

#define BLOCK HR_WINDOW_MAX

struct scan {
    struct hr_shard_scan *shard;
    enum hr_lines_skip skip;
    uint64_t begin; /* of the line that is being looked for */
    char before;    /* the last byte of the block before */
    bool blank;     /* what has been seen of the line is */
};

const char *hr__lines_format(enum hr_lines_skip skip)
{
    static const char *const formats[] = {
        [HR_LINES_SKIP_NONE] = "lines 1",
        [HR_LINES_SKIP_EMPTY] = "lines 1, not the empty ones",
        [HR_LINES_SKIP_BLANK] = "lines 1, not the blank ones",
    };

    return formats[skip];
}

size_t hr__bom_bytes(const char *text, size_t bytes)
{
    return bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

size_t hr__line_length(const char *line, size_t bytes)
{
    bytes -= bytes > 0 && line[bytes - 1] == '\n';
    return bytes - (bytes > 0 && line[bytes - 1] == '\r');
}

/* Adds the line up to `end`; `ending` bytes of it are its ending. */
static enum hr_err add_line(struct scan *scan, uint64_t end, uint64_t ending)
{
    uint64_t begin = scan->begin;
    bool blank = scan->blank;

    scan->begin = end;
    scan->blank = true;
    scan->shard->line++;
    if ((scan->skip == HR_LINES_SKIP_EMPTY && end - begin == ending) ||
        (scan->skip == HR_LINES_SKIP_BLANK && blank))
        return HR_OK;
    return hr__shard_add(scan->shard, begin, end);
}

static bool is_blank(const char *from, const char *end)
{
    while (from < end && (*from == ' ' || *from == '\t' || *from == '\r'))
        from++;
    return from == end;
}

/* `at` is where the block begins in the file. */
static enum hr_err
scan_block(struct scan *scan, const char *block, size_t bytes, uint64_t at)
{
    const char *from = block, *end = block + bytes, *feed;

    if (scan->begin > at) /* after the byte order mark */
        from += scan->begin - at;
    while ((feed = memchr(from, '\n', (size_t)(end - from))) != NULL) {
        uint64_t next = at + (uint64_t)(feed + 1 - block);
        char before = feed > block ? feed[-1] : scan->before;
        bool cr = before == '\r' && next - scan->begin > 1;

        scan->blank = scan->blank && is_blank(from, feed);
        HR_TRY(add_line(scan, next, cr ? 2 : 1));
        from = feed + 1;
    }
    scan->blank = scan->blank && is_blank(from, end);
    scan->before = end[-1];
    return HR_OK;
}

enum hr_err hr__lines_scan(struct hr_shard_scan *shard)
{
    const struct hr_lines_scan *options = shard->user;
    struct scan scan = {.shard = shard, .skip = options->skip, .blank = true};
    uint64_t end = shard->window.object->bytes;
    const void *block;
    size_t bytes;

    for (uint64_t at = 0; at < end; at += bytes) {
        bytes = end - at < BLOCK ? (size_t)(end - at) : BLOCK;
        HR_TRY(hr__window_get(&shard->window, at, bytes, &block, shard->error));
        hr__hasher_add(shard->hasher, block, bytes);
        if (at == 0)
            scan.begin = hr__bom_bytes(block, bytes);
        HR_TRY(scan_block(&scan, block, bytes, at));
    }
    hr__hasher_add(shard->hasher, &end, sizeof end); /* where a file ends, a line does */
    if (scan.begin == end)
        return HR_OK;
    return add_line(&scan, end, scan.before == '\r');
}
