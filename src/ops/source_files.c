/*
 * source.files - the files of a folder, as bytes, in the order of their names.
 *
 * Names are listed when the graph is opened (store/index.h); bytes are read record by
 * record through the thread's reader, which fetches them early where reads have to wait.
 * The source's identity is a hash of names and labels, not of contents: a file that
 * changes under the same name goes unnoticed.
 */
#include "op/op.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "store/index.h"
#include "store/reader.h"

struct files {
    const char *path;
    const char *labels;
    struct hr_names suffixes;
    bool recursive, paths;
    const char *index;
    const char *field, *label, *path_field;
};

static const struct hr_param files_params[] = {
    HR_P_PATH(struct files, path, .required = true,
              .help = "a folder, its URI, or a pattern such as \"photos/?x/*.jpg\" (two "
                      "stars: any number of folders)",
              .not_identity = true),
    HR_P_STRING(struct files, labels, .fallback = "none",
                .help = "none; folder (the rank of the first folder below path); or the "
                        "path of a CSV or JSONL file of path and label"),
    HR_P_FIELDS(
        struct files, suffixes, .fallback = "[jpg, jpeg, png, webp, ppm, pgm, pbm, pnm]",
        .items_min = 0, .items_max = HR_LIST_MAX, .access = HR_ACCESS_NONE,
        .help = "endings of the names to include, case ignored; [] for all files"),
    HR_P_BOOL(struct files, recursive, .fallback = "true",
              .help = "include files in folders below path"),
    HR_P_BOOL(struct files, paths, .fallback = "false",
              .help = "add the path of each file as a field"),
    HR_P_PATH(struct files, index,
              .help =
                  "a file that keeps the list of names, so that the next start does not "
                  "read unchanged folders, and what image.decode learns about the photos "
                  "(see its `seek_bytes`)",
              .not_identity = true),
    HR_P_FIELD(struct files, field, .fallback = "data", .access = HR_ACCESS_WRITE,
               .help = "the field that holds a file's bytes"),
    HR_P_FIELD(struct files, label, .fallback = "label", .access = HR_ACCESS_WRITE,
               .help = "the field that holds the label, when there are labels"),
    HR_P_FIELD(struct files, path_field, .fallback = "path", .access = HR_ACCESS_WRITE,
               .help = "the field that holds the path, when paths are wanted"),
};

enum { FIELD_DATA, FIELD_LABEL, FIELD_PATH };

static bool has_labels(const struct files *p)
{
    return strcmp(p->labels, "none") != 0;
}

static void remove_field(struct hr_infer *infer, size_t at)
{
    size_t index = (size_t)(infer->fields[at] - infer->output->fields);

    hr__schema_remove(infer->output, index);
}

static enum hr_err files_infer(struct hr_infer *infer)
{
    const struct files *p = infer->params;
    struct hr_field *data = infer->fields[FIELD_DATA];
    struct hr_field *label = infer->fields[FIELD_LABEL];
    struct hr_field *path = infer->fields[FIELD_PATH];

    if (data == label || data == path || label == path)
        return hr__infer_fail(infer, "label", HR_ERR_ARGUMENT,
                              "field, label and path_field must have different names");
    data->kind = HR_FIELD_BYTES;
    data->meaning = HR_MEANING_ENCODED;
    label->kind = HR_FIELD_TENSOR;
    label->dtype = HR_I64;
    label->meaning = HR_MEANING_LABEL;
    path->kind = HR_FIELD_BYTES;
    path->meaning = HR_MEANING_TEXT;
    infer->output->records = -1;
    if (!p->paths)
        remove_field(infer, FIELD_PATH);
    if (!has_labels(p))
        remove_field(infer, FIELD_LABEL);
    return HR_OK;
}

/* "jpg" as ".jpg". */
static const char *with_dot(const char *suffix, char *text, size_t room)
{
    if (suffix[0] == '.')
        return suffix;
    snprintf(text, room, ".%s", suffix);
    return text;
}

static enum hr_err files_open(const struct hr_open *open, void **ret_state)
{
    const struct files *p = open->params;
    bool folders = strcmp(p->labels, "folder") == 0;
    const char *suffixes[HR_LIST_MAX];
    char dotted[HR_LIST_MAX][64];
    struct hr_index_options options = {
        .root = p->path,
        .suffixes = suffixes,
        .suffix_count = (size_t)p->suffixes.count,
        .recursive = p->recursive,
        .folder_labels = folders,
        .label_file = has_labels(p) && !folders ? p->labels : NULL,
        .saved = p->index,
    };
    struct hr_index *index;

    for (int i = 0; i < p->suffixes.count; i++)
        suffixes[i] = with_dot(p->suffixes.values[i], dotted[i], sizeof dotted[i]);
    HR_TRY(hr__index_open(&options, &index, open->error));
    *ret_state = index;
    return HR_OK;
}

static void files_close(void *state)
{
    hr__index_unref(state);
}

static const char *files_side_file(const void *params)
{
    return ((const struct files *)params)->index;
}

static uint64_t files_count(const void *params, const void *state)
{
    (void)params;
    return hr__index_count(state);
}

static void
files_identity(const void *params, const void *state, struct hr_hasher *hasher)
{
    struct hr_hash128 hash = hr__index_identity(state);

    (void)params;
    hr__hasher_add(hasher, &hash.low, sizeof hash.low);
    hr__hasher_add(hasher, &hash.high, sizeof hash.high);
}

static bool files_locate(const void *params, const void *state, uint64_t index,
                         char *path, size_t room, uint64_t *ret_offset)
{
    (void)params;
    if (index >= hr__index_count(state) ||
        hr__index_path(state, index, path, room, NULL) != HR_OK)
        return false;
    *ret_offset = 0;
    return true;
}

static bool files_ahead(const void *params, const void *state, uint64_t index,
                        struct hr_range *ret_range)
{
    (void)params;
    hr__range_whole(ret_range);
    return index < hr__index_count(state) &&
           hr__index_path(state, index, ret_range->uri, sizeof ret_range->uri, NULL) ==
               HR_OK;
}

static enum hr_err set_label(struct hr_op_ctx *ctx)
{
    void *memory;

    HR_TRY(hr__op_alloc(ctx, sizeof(int64_t), &memory));
    *(int64_t *)memory = hr__index_label(ctx->state, ctx->id->index);
    hr__value_set_tensor(ctx->fields[FIELD_LABEL], HR_I64, 0, NULL, memory, NULL);
    return HR_OK;
}

static enum hr_err set_path(struct hr_op_ctx *ctx, const char *path, size_t length)
{
    void *memory;

    HR_TRY(hr__op_alloc(ctx, length + 1, &memory));
    memcpy(memory, path, length + 1);
    hr__value_set_bytes(ctx->fields[FIELD_PATH], memory, length, NULL);
    return HR_OK;
}

static enum hr_err files_apply(struct hr_op_ctx *ctx)
{
    const struct files *p = ctx->params;
    struct hr_range range; /* 4 kB, not cleared */
    struct hr_buffer *buffer;
    size_t length;

    hr__range_whole(&range);
    if (hr__index_path(ctx->state, ctx->id->index, range.uri, sizeof range.uri,
                       &length) != HR_OK)
        return hr__fail(ctx->error, HR_ERR_LIMIT, "the path of a file is too long");
    if (has_labels(p))
        HR_TRY(set_label(ctx));
    if (p->paths)
        HR_TRY(set_path(ctx, range.uri, length));
    HR_TRY(hr__reader_take(ctx->thread->reader, &range, &buffer, ctx->error));
    hr__value_set_bytes(ctx->fields[FIELD_DATA], hr_buffer_data(buffer),
                        hr_buffer_bytes(buffer), buffer);
    return HR_OK;
}

const struct hr_op hr_op_source_files = {
    .name = "source.files",
    .summary = "the files of a folder, with labels",
    .doc =
        "Files follow the bytes of their paths below `path`, so record numbers agree on "
        "every machine. `labels: folder` numbers the folders directly below `path` in "
        "order of name, as torchvision's ImageFolder does. Names that begin with a dot "
        "are ignored. The fields `label` (int64) and `path` exist only when asked "
        "for.",
    .version = 1,
    .kind = HR_OP_SOURCE,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(files_params, struct files),
    .infer = files_infer,
    .open = files_open,
    .close = files_close,
    .identity = files_identity,
    .apply = files_apply,
    .source = {.count = files_count,  .locate = files_locate, .ahead = files_ahead},
    .learner = {.side_file = files_side_file},
};
