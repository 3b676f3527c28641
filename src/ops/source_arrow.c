/*
 * source.arrow - the rows of Arrow files and streams.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/str.h"
#include "op/op.h"
#include "ops/arrow_files.h"

struct params {
    const char *path;
    struct hr_names columns;
    struct hr_pairs fill;
    int64_t batch_max, batch_cache;
};

static const struct hr_param arrow_params[] = {
    HR_P_PATH(struct params, path, .required = true, .not_identity = true,
              .help = "a file; or several: \"data-{00000..00003}.arrow\", a pattern such "
                      "as \"train/data-*.arrow\", or a folder of .arrow files"),
    HR_P_STRINGS(struct params, columns, .fallback = "[\"*\"]", .items_min = 1,
                 .items_max = HR_LIST_MAX,
                 .help = "the columns that become fields, by name; * stands for all, the "
                         "name of a struct for its columns, \"image.bytes\" for one"),
    HR_P_MAP(struct params, fill, .items_min = 0, .items_max = HR_LIST_MAX,
             .fallback = "{}",
             .help = "column: what a null becomes, such as {label: \"-1\", text: \"=\"}; "
                     "= stands for the text after it, here an empty one; without, a row "
                     "with a null is a bad record"),
    HR_P_BYTES(struct params, batch_max, .fallback = "4GiB", HR_RANGE(1, 1LL << 50),
               .unit = "bytes", .not_identity = true,
               .help = "a record batch that takes more memory is not read; those of "
                       "local files that are not compressed take none"),
    HR_P_BYTES(struct params, batch_cache, .fallback = "256MiB", HR_RANGE(0, 1LL << 50),
               .unit = "bytes", .not_identity = true,
               .help = "of files that are compressed or not local: record batches that "
                       "are kept in memory, at most 64"),
};

struct state {
    struct hr_arrow_files *files;
    struct hr_str note;
    bool has_fill[HR_SCHEMA_FIELDS_MAX];
    const char *fill[HR_SCHEMA_FIELDS_MAX]; /* the parameter's */
    int64_t number[HR_SCHEMA_FIELDS_MAX];   /* it as bytes of the field's dtype */
};

static void arrow_close(void *made)
{
    struct state *state = made;

    if (state->files != NULL)
        hr__arrow_files_close(state->files);
    hr__str_finish(&state->note);
    hr__free(state);
}

/* ---- nulls ---- */

static bool is_bytes(const struct hr_arrow_column *column)
{
    return column->kind == HR_ARROW_BYTES || column->kind == HR_ARROW_FIXED;
}

static bool fits(int64_t number, enum hr_dtype dtype)
{
    static const struct {
        enum hr_dtype dtype;
        int64_t min, max;
    } ranges[] = {
        {HR_BOOL, 0,         1         },
        {HR_U8,   0,         UINT8_MAX },
        {HR_I8,   INT8_MIN,  INT8_MAX  },
        {HR_U16,  0,         UINT16_MAX},
        {HR_I16,  INT16_MIN, INT16_MAX },
        {HR_I32,  INT32_MIN, INT32_MAX },
    };

    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (ranges[i].dtype == dtype)
            return number >= ranges[i].min && number <= ranges[i].max;
    return dtype == HR_I64;
}

/* Sets *to to the bytes of the number in the dtype. */
static bool convert_fill(const char *text, enum hr_dtype dtype, int64_t *to)
{
    double real;
    char *end;

    if (dtype == HR_F32 || dtype == HR_F64) {
        float small;

        if (!hr__double_parse(text, strlen(text), &real))
            return false;
        small = (float)real;
        if (dtype == HR_F32)
            memcpy(to, &small, sizeof small);
        else
            memcpy(to, &real, sizeof real);
        return true;
    }
    if (dtype == HR_BOOL && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)) {
        *to = text[0] == 't';
        return true;
    }
    *to = strtoll(text, &end, 10);
    return end != text && *end == '\0' && fits(*to, dtype);
}

static enum hr_err
set_fill(struct state *state, const char *name, const char *text, struct hr_error *error)
{
    const struct hr_arrow_files *files = state->files;
    const char *names[HR_SCHEMA_FIELDS_MAX];
    const char *near;
    bool good;

    if (text[0] == '=')
        text += 1 + strspn(text + 1, " ");
    for (size_t i = 0; i < files->count; i++) {
        const struct hr_arrow_column *column = &files->columns[i];

        names[i] = column->name;
        if (strcmp(column->name, name) != 0)
            continue;
        state->has_fill[i] = true;
        state->fill[i] = text;
        if (column->kind == HR_ARROW_NUMBER)
            good = convert_fill(text, column->dtype, &state->number[i]);
        else
            good =
                column->kind == HR_ARROW_BYTES ||
                (column->kind == HR_ARROW_LIST && text[0] == '\0') ||
                (column->kind == HR_ARROW_FIXED && strlen(text) == (size_t)column->size);
        if (good)
            return HR_OK;
        memcpy(error->param, "fill", sizeof "fill");
        return hr__fail(error, HR_ERR_ARGUMENT,
                        "\"%.80s\" is no value of column \"%s\"%s", text, name,
                        column->kind == HR_ARROW_LIST
                            ? ": of a list only \"=\" is, an empty one"
                            : "");
    }
    near = hr__nearest(name, names, files->count);
    memcpy(error->param, "fill", sizeof "fill");
    return hr__fail(error, HR_ERR_ARGUMENT, "no column is called \"%.80s\"%s%s%s", name,
                    near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
                    near != NULL ? "\"?" : "");
}

/* ---- before data ---- */

/* What the numbers of times mean. */
static bool make_note(struct state *state)
{
    for (size_t i = 0; i < state->files->count; i++) {
        const struct hr_arrow_column *column = &state->files->columns[i];

        if (column->unit != NULL)
            hr__str_addf(&state->note, "%s%s: %s", state->note.length > 0 ? ", " : "",
                         column->name, column->unit);
    }
    return hr__str_ok(&state->note);
}

static enum hr_err
arrow_prepare(const void *params, void **ret_state, struct hr_error *error)
{
    const struct params *p = params;
    struct state *state = hr__calloc(1, sizeof *state);
    enum hr_err code;

    if (state == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    hr__str_init(&state->note);
    code = hr__arrow_files_open(p->path, &p->columns, (uint64_t)p->batch_max,
                                &state->files, error);
    if (code == HR_OK)
        *ret_state = state;
    else
        arrow_close(state);
    return code;
}

static enum hr_err arrow_open(const struct hr_open *open, void **ret_state)
{
    const struct params *p = open->params;
    struct state *state = *ret_state;

    for (int i = 0; i < p->fill.count; i++)
        HR_TRY(set_fill(state, p->fill.keys[i], p->fill.values[i], open->error));
    state->files->cache_bytes = (uint64_t)p->batch_cache;
    return make_note(state) ? HR_OK
                            : hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
}

static enum hr_err
arrow_binds(const void *params, const void *made, const struct hr_schema *input,
            struct hr_bindings *bindings, struct hr_error *error)
{
    const struct state *state = made;

    (void)params, (void)input;
    for (size_t i = 0; i < state->files->count; i++)
        HR_TRY(hr__bind(bindings, state->files->columns[i].name, HR_ACCESS_WRITE, error));
    return HR_OK;
}

static enum hr_err arrow_infer(struct hr_infer *infer)
{
    const struct state *state = infer->state;

    for (size_t i = 0; i < infer->field_count; i++) {
        const struct hr_arrow_column *column = &state->files->columns[i];
        struct hr_field *field = infer->fields[i];

        field->kind = is_bytes(column) ? HR_FIELD_BYTES : HR_FIELD_TENSOR;
        field->meaning = column->is_text ? HR_MEANING_TEXT : HR_MEANING_NONE;
        field->dtype = is_bytes(column) ? field->dtype : column->dtype;
        field->ndim = column->kind == HR_ARROW_LIST || column->kind == HR_ARROW_VECTOR;
        if (column->kind == HR_ARROW_LIST)
            hr__dim_unknown(&field->dims[0], "length");
        if (column->kind == HR_ARROW_VECTOR)
            hr__dim_set(&field->dims[0], column->size);
    }
    infer->output->records = (int64_t)state->files->records;
    return HR_OK;
}

static void arrow_identity(const void *params, const void *made, struct hr_hasher *hasher)
{
    const struct hr_arrow_files *files = ((const struct state *)made)->files;

    (void)params;
    hr__hasher_add(hasher, &files->identity.low, sizeof files->identity.low);
    hr__hasher_add(hasher, &files->identity.high, sizeof files->identity.high);
}

static const char *arrow_note(const void *made)
{
    const struct state *state = made;

    return state->note.length > 0 ? hr__str_text(&state->note) : NULL;
}

/* ---- records ---- */

static uint64_t arrow_count(const void *params, const void *made)
{
    (void)params;
    return ((const struct state *)made)->files->records;
}

/* The body of the record's batch. */
static bool arrow_locate(const void *params, const void *made, uint64_t index, char *uri,
                         size_t room, uint64_t *ret_offset)
{
    const struct hr_arrow_files *files = ((const struct state *)made)->files;
    const struct hr_arrow_group *group;
    size_t length;

    (void)params;
    if (index >= files->records)
        return false;
    group = hr__arrow_files_group(files, index);
    length = strlen(files->files[group->file].uri);
    if (length >= room)
        return false;
    memcpy(uri, files->files[group->file].uri, length + 1);
    *ret_offset = group->body;
    return true;
}

static void
set_bytes(struct hr_value *value, const void *data, size_t bytes, struct hr_buffer *owner)
{
    hr__value_set_bytes(value, data, bytes, owner != NULL ? hr_buffer_ref(owner) : NULL);
    value->shared = true;
}

static enum hr_err set_null(struct hr_op_ctx *ctx, const struct state *state,
                            const struct hr_arrow_row *row, size_t at)
{
    const struct hr_arrow_column *column = &state->files->columns[at];
    int64_t none = 0;
    void *memory;

    if (!state->has_fill[at])
        return hr__fail(ctx->error, HR_ERR_FORMAT,
                        "%s: column \"%s\": row %lld of the batch at byte %llu is null: "
                        "say with fill what it becomes, or choose other columns",
                        row->file->uri, column->name, (long long)row->row,
                        (unsigned long long)row->group->body);
    if (is_bytes(column)) {
        set_bytes(ctx->fields[at], state->fill[at], strlen(state->fill[at]), NULL);
        return HR_OK;
    }
    HR_TRY(hr__op_alloc(ctx, sizeof(int64_t), &memory));
    memcpy(memory, &state->number[at], sizeof(int64_t));
    hr__value_set_tensor(ctx->fields[at], column->dtype, column->kind == HR_ARROW_LIST,
                         &none, memory, NULL);
    return HR_OK;
}

static enum hr_err set_field(struct hr_op_ctx *ctx, const struct state *state,
                             const struct hr_arrow_row *row, size_t at)
{
    const struct hr_arrow_column *column = &state->files->columns[at];
    struct hr_value *value = ctx->fields[at];
    struct hr_error why = {0};
    struct hr_arrow_cell cell;
    enum hr_err code;
    void *memory;
    int ndim;

    code = hr__arrow_files_cell(state->files, row, at, &cell, &why);
    if (code != HR_OK)
        return hr__fail(ctx->error, code, "%s: byte %llu: %s", row->file->uri,
                        (unsigned long long)row->group->body, why.message);
    if (cell.is_null)
        return set_null(ctx, state, row, at);
    if (is_bytes(column)) {
        set_bytes(value, cell.bytes > 0 ? (const void *)cell.data : "",
                  (size_t)cell.bytes, row->buffer);
        return HR_OK;
    }
    ndim = column->kind != HR_ARROW_NUMBER;
    if (hr__arrow_is_plain(column) && cell.count > 0 &&
        (uintptr_t)cell.data % column->width == 0) {
        hr__value_set_tensor(value, column->dtype, ndim, &cell.count,
                             (void *)(uintptr_t)cell.data,
                             row->buffer != NULL ? hr_buffer_ref(row->buffer) : NULL);
        value->shared = true;
        return HR_OK;
    }
    HR_TRY(hr__op_alloc(ctx, (size_t)cell.count * hr_dtype_size(column->dtype) + 1,
                        &memory));
    code = hr__arrow_elements(column, &cell, memory, &why);
    if (code != HR_OK)
        return hr__fail(ctx->error, code, "%s: byte %llu: %s", row->file->uri,
                        (unsigned long long)row->group->body, why.message);
    hr__value_set_tensor(value, column->dtype, ndim, &cell.count, memory, NULL);
    return HR_OK;
}

static enum hr_err arrow_apply(struct hr_op_ctx *ctx)
{
    const struct state *state = ctx->state;
    struct hr_arrow_row row;
    enum hr_err code;

    if (ctx->id->index >= state->files->records)
        return hr__fail(ctx->error, HR_ERR_RANGE, "there is no row %llu",
                        (unsigned long long)ctx->id->index);
    code = hr__arrow_files_row(state->files, ctx->id->index, &row, ctx->error);
    for (size_t i = 0; i < ctx->field_count && code == HR_OK; i++)
        code = set_field(ctx, state, &row, i);
    hr_buffer_unref(row.buffer);
    return code;
}

/* ---- keys: integers and texts ---- */

static size_t key_column(const struct state *state, size_t i)
{
    for (size_t k = 0; k < state->files->count; k++) {
        const struct hr_arrow_column *column = &state->files->columns[k];
        bool number = column->kind == HR_ARROW_NUMBER && column->dtype != HR_F16 &&
                      column->dtype != HR_F32 && column->dtype != HR_F64;

        if ((number || column->is_text) && i-- == 0)
            return k;
    }
    return state->files->count;
}

static const char *arrow_key_name(const void *params, const void *made, size_t i)
{
    const struct state *state = made;
    size_t column = key_column(state, i);

    (void)params;
    return column < state->files->count ? state->files->columns[column].name : NULL;
}

/* A bad record is known by its number. */
static enum hr_err arrow_key(const void *params, const void *made, size_t i,
                             uint64_t index, struct hr_str *out, struct hr_error *error)
{
    const struct state *state = made;
    size_t at = key_column(state, i);
    const struct hr_arrow_column *column = &state->files->columns[at];
    struct hr_arrow_cell cell;
    struct hr_arrow_row row;
    enum hr_err code;
    int64_t number;

    (void)params;
    code = hr__arrow_files_row(state->files, index, &row, error);
    if (code == HR_OK)
        code = hr__arrow_files_cell(state->files, &row, at, &cell, error);
    if (code == HR_OK && !cell.is_null && !is_bytes(column))
        code = hr__arrow_elements(column, &cell, &number, error);
    if (code == HR_ERR_FORMAT || code == HR_ERR_RANGE || (code == HR_OK && cell.is_null))
        hr__str_addf(out, "%llu", (unsigned long long)index);
    else if (code == HR_OK && is_bytes(column))
        hr__str_add_bytes(out, cell.bytes > 0 ? (const void *)cell.data : "",
                          (size_t)cell.bytes);
    else if (code == HR_OK)
        hr__str_addf(out, "%lld", (long long)hr__integer_at(column->dtype, &number));
    hr_buffer_unref(row.buffer);
    return code == HR_ERR_FORMAT || code == HR_ERR_RANGE ? HR_OK : code;
}

const struct hr_op hr_op_source_arrow = {
    .name = "source.arrow",
    .summary = "the rows of Apache Arrow files and streams",
    .doc =
        "Reads Arrow's IPC format, as files (`.arrow`, Feather 2) and as streams, which "
        "Hugging Face `datasets` saves. Bool, integers and floats become numbers, utf8 "
        "text, binary byte strings, lists of numbers tensors of one dimension; "
        "dictionary-encoded text is text. uint32 and uint64 become int64, and a row with "
        "a larger number is a bad record. Dates, times, timestamps and durations become "
        "integers; explain says in which unit. The columns of a struct become fields "
        "called \"struct.column\", so a Hugging Face image is `image.bytes` and "
        "`image.path`. Other types are refused by name. A row with a null is a bad "
        "record "
        "unless `fill` says what it becomes.\n\n"
        "Local files are mapped into memory and used in place. Record batches of other "
        "stores, and those compressed by zstd, are loaded when one of their rows is "
        "wanted and kept in `batch_cache`; rows in order need one batch at a time, a "
        "shuffled epoch is fast where all fit. LZ4 is refused. Rows can be read in any "
        "order, so shuffle, split, shard and resume work as for files.\n\n"
        "Arrow has no checksums: damage to offsets, dictionaries and metadata is found, "
        "damage to numbers and text is not. A batch whose metadata are damaged is one "
        "bad "
        "record, and so is the rest of a file that is cut. The identity of the source is "
        "the metadata of all batches, and the first, middle and last 64 KiB of each "
        "file.",
    .version = 1,
    .kind = HR_OP_SOURCE,
    .traits = HR_TRAIT_PURE | HR_TRAIT_ZERO_COPY,
    HR_PARAMS(arrow_params, struct params),
    .binds = arrow_binds,
    .infer = arrow_infer,
    .open = arrow_open,
    .close = arrow_close,
    .identity = arrow_identity,
    .apply = arrow_apply,
    .source = {.prepare = arrow_prepare,
               .note = arrow_note,
               .count = arrow_count,
               .locate = arrow_locate,
               .key_name = arrow_key_name,
               .key = arrow_key},
};
