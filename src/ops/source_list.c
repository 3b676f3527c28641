/*
 * source.list - the lines of a text file as records.
 *
 * The text is used in place where its store can map it (the file must not be truncated
 * meanwhile). open() notes where every 16th line begins, half a byte per line; finding a
 * line is a jump and a short scan.
 */
#include <string.h>

#include "core/alloc.h"
#include "op/op.h"
#include "store/store.h"

#define MARK_EVERY 16

struct list {
    const char *path;
    bool skip_empty;
    const char *field;
};

static const struct hr_param list_params[] = {
    HR_P_PATH(struct list, path, .required = true, .not_identity = true,
              .help = "the text file, or its URI"),
    HR_P_BOOL(struct list, skip_empty, .fallback = "false", .help = "skip empty lines"),
    HR_P_FIELD(struct list, field, .fallback = "text", .access = HR_ACCESS_WRITE,
               .help = "the field that holds a line, without its line ending"),
};

struct lines {
    struct hr_store_map map;
    const char *text;
    size_t bytes;
    uint64_t count;
    size_t *marks; /* where lines 0, 16, 32, ... begin */
    size_t mark_count, mark_room;
};

static enum hr_err list_infer(struct hr_infer *infer)
{
    infer->fields[0]->kind = HR_FIELD_BYTES;
    infer->fields[0]->meaning = HR_MEANING_TEXT;
    infer->output->records = -1;
    return HR_OK;
}

/* Returns the length of the line at `at` without LF or CR LF; sets where the next begins.
 */
static size_t line_at(const struct lines *lines, size_t at, size_t *ret_next)
{
    const char *begin = lines->text + at;
    const char *end = memchr(begin, '\n', lines->bytes - at);
    size_t length = end != NULL ? (size_t)(end - begin) : lines->bytes - at;

    *ret_next = at + length + (end != NULL);
    return length > 0 && begin[length - 1] == '\r' ? length - 1 : length;
}

static bool mark(struct lines *lines, size_t at)
{
    size_t room = lines->mark_room == 0 ? 64 : lines->mark_room * 2;
    size_t *marks;

    if (lines->mark_count == lines->mark_room) {
        marks = hr__realloc(lines->marks, room * sizeof *marks);
        if (marks == NULL)
            return false;
        lines->marks = marks;
        lines->mark_room = room;
    }
    lines->marks[lines->mark_count++] = at;
    return true;
}

static bool mark_lines(struct lines *lines, bool skip_empty)
{
    size_t next;

    for (size_t at = 0; at < lines->bytes; at = next) {
        size_t length = line_at(lines, at, &next);
        if (length == 0 && skip_empty)
            continue;
        if (lines->count++ % MARK_EVERY == 0 && !mark(lines, at))
            return false;
    }
    return true;
}

static void list_close(void *state)
{
    struct lines *lines = state;

    hr__store_unmap(&lines->map);
    hr__free(lines->marks);
    hr__free(lines);
}

static enum hr_err list_open(const struct hr_open *open, void **ret_state)
{
    const struct list *p = open->params;
    struct lines *lines = hr__calloc(1, sizeof *lines);
    enum hr_err err;

    if (lines == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    err = hr__store_map(p->path, &lines->map, open->error);
    lines->text = lines->map.data;
    lines->bytes = lines->map.bytes;
    if (err == HR_OK && !mark_lines(lines, p->skip_empty))
        err = hr__fail(open->error, HR_ERR_MEMORY, "out of memory for the lines of %s",
                       p->path);
    if (err != HR_OK) {
        list_close(lines);
        return err;
    }
    *ret_state = lines;
    return HR_OK;
}

static uint64_t list_count(const void *params, const void *state)
{
    (void)params;
    return ((const struct lines *)state)->count;
}

static void list_identity(const void *params, const void *state, struct hr_hasher *hasher)
{
    const struct lines *lines = state;

    (void)params;
    if (lines->bytes > 0)
        hr__hasher_add(hasher, lines->text, lines->bytes);
}

static size_t
find_line(const struct lines *lines, bool skip_empty, uint64_t index, size_t *ret_length)
{
    size_t at = lines->marks[index / MARK_EVERY], next, length;
    uint64_t left = index % MARK_EVERY;

    for (;; at = next) {
        length = line_at(lines, at, &next);
        if (length == 0 && skip_empty)
            continue;
        if (left-- == 0)
            break;
    }
    *ret_length = length;
    return at;
}

static bool list_locate(const void *params, const void *state, uint64_t index, char *path,
                        size_t room, uint64_t *ret_offset)
{
    const struct list *p = params;
    const struct lines *lines = state;
    size_t length;

    if (index >= lines->count || strlen(p->path) >= room)
        return false;
    memcpy(path, p->path, strlen(p->path) + 1);
    *ret_offset = find_line(lines, p->skip_empty, index, &length);
    return true;
}

static const char *list_key_name(const void *params, const void *state, size_t i)
{
    (void)state;
    return i == 0 ? ((const struct list *)params)->field : NULL;
}

static enum hr_err list_key(const void *params, const void *state, size_t i,
                            uint64_t index, struct hr_str *out, struct hr_error *error)
{
    const struct list *p = params;
    const struct lines *lines = state;
    size_t length, at = find_line(lines, p->skip_empty, index, &length);

    (void)i, (void)error;
    hr__str_add_bytes(out, lines->text + at, length);
    return HR_OK;
}

static enum hr_err list_apply(struct hr_op_ctx *ctx)
{
    const struct list *p = ctx->params;
    const struct lines *lines = ctx->state;
    size_t length, at;

    if (ctx->id->index >= lines->count)
        return hr__fail(ctx->error, HR_ERR_RANGE, "there is no line %llu",
                        (unsigned long long)ctx->id->index);
    at = find_line(lines, p->skip_empty, ctx->id->index, &length);
    hr__value_set_bytes(ctx->fields[0], (char *)(uintptr_t)lines->text + at, length,
                        NULL);
    ctx->fields[0]->shared = true;
    return HR_OK;
}

const struct hr_op hr_op_source_list = {
    .name = "source.list",
    .summary = "the lines of a text file",
    .doc = "A line ends with LF or CR LF; the last one needs no ending. Bytes are not "
           "checked: they may be any encoding.",
    .version = 1,
    .kind = HR_OP_SOURCE,
    .traits = HR_TRAIT_PURE | HR_TRAIT_ZERO_COPY,
    HR_PARAMS(list_params, struct list),
    .infer = list_infer,
    .open = list_open,
    .close = list_close,
    .identity = list_identity,
    .apply = list_apply,
    .source = {.count = list_count,
               .locate = list_locate,
               .key_name = list_key_name,
               .key = list_key},
};
