/*
 * source.lines - the lines of text files.
 *
 * Lines are found when the graph is opened (store/lines.h), so that they can be taken in
 * any order.
 */
#include "ops/shard_source.h"

#include "core/alloc.h"
#include "core/str.h"
#include "store/lines.h"

struct lines {
    const char *path;
    bool skip_empty;
    int64_t max_bytes;
    const char *field;
    struct hr_shard_params shards;
};

static const struct hr_param lines_params[] = {
    HR_P_PATH(struct lines, path, .required = true, .not_identity = true,
              .help = "a file; or several: \"part-{000..099}.txt\", a pattern such as "
                      "\"part-*.txt\", or a folder of .txt files"),
    HR_P_BOOL(struct lines, skip_empty, .fallback = "false",
              .help = "leave out empty lines"),
    HR_P_BYTES(struct lines, max_bytes, .fallback = "64MiB", HR_RANGE(1, 1 << 30),
               .unit = "bytes", .help = "a longer line is a bad record, and is not read"),
    HR_P_FIELD(struct lines, field, .fallback = "text", .access = HR_ACCESS_WRITE,
               .help = "the field that holds a line, without its line ending"),
    HR_P_SHARDS(struct lines),
};

static enum hr_err lines_infer(struct hr_infer *infer)
{
    infer->fields[0]->kind = HR_FIELD_BYTES;
    infer->fields[0]->meaning = HR_MEANING_TEXT;
    infer->output->records = -1;
    return HR_OK;
}

static enum hr_err lines_open(const struct hr_open *open, void **ret_state)
{
    const struct lines *p = open->params;
    struct hr_lines_scan scan = {p->skip_empty ? HR_LINES_SKIP_EMPTY
                                               : HR_LINES_SKIP_NONE};
    struct hr_packed_limits packed = hr__unpack_limits(&p->shards);
    const struct hr_shard_saving saving = {.format = hr__lines_format(scan.skip),
                                           .path = p->shards.index};
    struct hr_shard_source *source;

    HR_TRY(hr__shard_source_open(p->path, ".txt", hr__lines_scan, &scan, &packed, &saving,
                                 sizeof *source, ret_state, open->error));
    source = *ret_state;
    source->bytes_max = (uint64_t)p->max_bytes;
    source->ending_bytes = 2;
    return HR_OK;
}

static const char *lines_key_name(const void *params, const void *state, size_t i)
{
    (void)state;
    return i == 0 ? ((const struct lines *)params)->field : NULL;
}

static enum hr_err lines_key(const void *params, const void *state, size_t i,
                             uint64_t index, struct hr_str *out, struct hr_error *error)
{
    const char *data;
    size_t bytes;
    enum hr_err code = hr__shard_source_peek(state, index, &data, &bytes, error);

    (void)params, (void)i;
    if (code == HR_ERR_LIMIT ||
        code == HR_ERR_FORMAT) /* a bad record is known by its number */
        return hr__shard_source_key(HR_ERR_FORMAT, index, out);
    if (code == HR_OK)
        hr__str_add_bytes(out, data, hr__line_length(data, bytes));
    return code;
}

static enum hr_err lines_apply(struct hr_op_ctx *ctx)
{
    struct hr_shard_record record;
    enum hr_err code;
    size_t bytes;

    HR_TRY(hr__shard_source_read(ctx, &record));
    bytes = hr__line_length(record.data, (size_t)record.place.bytes);
    code = hr__shard_source_check(ctx->state, &record.place, bytes, ctx->error);
    if (code == HR_OK)
        code = hr__shard_source_bytes(ctx, &record, record.data, bytes, ctx->fields[0]);
    hr_buffer_unref(record.owner);
    return code;
}

const struct hr_op hr_op_source_lines = {
    .name = "source.lines",
    .summary = "the lines of text files",
    .doc =
        "A line ends in LF or CR LF; the last one of a file needs no ending. A byte "
        "order "
        "mark at the beginning of a file is no part of its first line. Empty lines are "
        "records unless `skip_empty` is set. Bytes are not checked: they may be any "
        "encoding, and a text that is not UTF-8 stays as it is. Files are read "
        "through once when the graph is opened, and 8 bytes of memory are kept per line; "
        "then lines can be read in any order, so shuffle, split, shard and resume work "
        "as for files. The identity of the source is the contents of its files. "
        "`source.list` reads the lines of a single file that is mapped into "
        "memory.\n\n" HR_SHARD_INDEX_DOC "\n\n" HR_UNPACK_DOC,
    .version = 1,
    .kind = HR_OP_SOURCE,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(lines_params, struct lines),
    .infer = lines_infer,
    .open = lines_open,
    .close = hr__shard_source_close,
    .identity = hr__shard_source_identity,
    .apply = lines_apply,
    .source = {.count = hr__shard_source_count,
               .locate = hr__shard_source_locate,
               .ahead = hr__shard_source_ahead,
               .size = hr__shard_source_size,
               .key_name = lines_key_name,
               .key = lines_key},
    .memory = HR_SHARD_MEMORY,
};
