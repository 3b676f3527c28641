/*
 * ops/column_source.c - fields, nulls, keys, and the values of a row.
 */
#include "ops/column_source.h"

#include <string.h>

#include "core/alloc.h"
#include "ops/condition.h"
#include "ops/fill.h"

#define COPY_MAX 256 /* bytes */

/* ---- nulls ---- */

static bool is_bytes(const struct hr_arrow_column *column)
{
    return column->kind == HR_ARROW_BYTES || column->kind == HR_ARROW_FIXED;
}

static enum hr_err set_fill(struct hr_column_source *state, const char *name,
                            const char *text, struct hr_error *error)
{
    const struct hr_columns *columns = state->columns;
    const char *names[HR_SCHEMA_FIELDS_MAX];
    const char *near;
    bool good;

    if (text[0] == '=')
        text += 1 + strspn(text + 1, " ");
    for (size_t i = 0; i < columns->count; i++) {
        const struct hr_arrow_column *column = &columns->items[i];

        names[i] = column->name;
        if (strcmp(column->name, name) != 0)
            continue;
        state->has_fill[i] = true;
        state->fill[i] = text;
        if (column->kind == HR_ARROW_NUMBER)
            good = hr__fill_parse(text, column->dtype, &state->number[i]);
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
    near = hr__nearest(name, names, columns->count);
    memcpy(error->param, "fill", sizeof "fill");
    return hr__fail(error, HR_ERR_ARGUMENT, "no column is called \"%.80s\"%s%s%s", name,
                    near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
                    near != NULL ? "\"?" : "");
}

/* ---- before data ---- */

/* What the numbers of times mean. */
static bool make_note(struct hr_column_source *state)
{
    for (size_t i = 0; i < state->columns->count; i++) {
        const struct hr_arrow_column *column = &state->columns->items[i];

        if (column->unit != NULL)
            hr__str_addf(&state->note, "%s%s: %s", state->note.length > 0 ? ", " : "",
                         column->name, column->unit);
    }
    return hr__str_ok(&state->note);
}

enum hr_err hr__column_source_create(const struct hr_column_format *format, void *files,
                                     const struct hr_columns *columns, uint64_t records,
                                     struct hr_hash128 identity, void **ret_state,
                                     struct hr_error *reterr)
{
    struct hr_column_source *state = hr__calloc(1, sizeof *state);

    if (state == NULL) {
        format->close(files);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    state->format = format;
    state->files = files;
    state->columns = columns;
    state->records = records;
    state->identity = identity;
    hr__str_init(&state->note);
    *ret_state = state;
    return HR_OK;
}

void hr__column_source_close(void *made)
{
    struct hr_column_source *state = made;

    state->format->close(state->files);
    hr__expr_destroy(state->where);
    hr__str_finish(&state->note);
    hr__free(state);
}

enum hr_err hr__column_source_open(const struct hr_open *open, void **ret_state)
{
    const struct hr_column_params *p = open->params;
    struct hr_column_source *state = *ret_state;

    for (int i = 0; i < p->fill.count; i++)
        HR_TRY(set_fill(state, p->fill.keys[i], p->fill.values[i], open->error));
    return make_note(state) ? HR_OK
                            : hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
}

enum hr_err
hr__column_source_where(struct hr_column_source *state, const char *text,
                        const struct hr_schema *schema, struct hr_error *error)
{
    enum hr_err code = hr__condition_make(text, schema, &state->where, error);
    const char *const *names;
    size_t count;

    if (code != HR_OK) {
        memcpy(error->param, "where", sizeof "where");
        return code;
    }
    names = hr__expr_fields(state->where, &count);
    for (size_t i = 0; i < count; i++)
        while (strcmp(state->columns->items[state->where_at[i]].name, names[i]) != 0)
            state->where_at[i]++;
    return HR_OK;
}

enum hr_err hr__column_source_binds(const void *params, const void *made,
                                    const struct hr_schema *input,
                                    struct hr_bindings *bindings, struct hr_error *error)
{
    const struct hr_column_source *state = made;

    (void)params, (void)input;
    for (size_t i = 0; i < state->columns->count; i++)
        HR_TRY(hr__bind(bindings, state->columns->items[i].name, HR_ACCESS_WRITE, error));
    return HR_OK;
}

enum hr_err hr__column_source_infer(struct hr_infer *infer)
{
    const struct hr_column_source *state = infer->state;

    for (size_t i = 0; i < infer->field_count; i++) {
        const struct hr_arrow_column *column = &state->columns->items[i];
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
    infer->output->records = (int64_t)state->records;
    return HR_OK;
}

void hr__column_source_identity(const void *params, const void *made,
                                struct hr_hasher *hasher)
{
    const struct hr_column_source *state = made;

    (void)params;
    hr__hasher_add(hasher, &state->identity.low, sizeof state->identity.low);
    hr__hasher_add(hasher, &state->identity.high, sizeof state->identity.high);
}

const char *hr__column_source_note(const void *made)
{
    const struct hr_column_source *state = made;

    return state->note.length > 0 ? hr__str_text(&state->note) : NULL;
}

/* ---- records ---- */

uint64_t hr__column_source_count(const void *params, const void *made)
{
    (void)params;
    return ((const struct hr_column_source *)made)->records;
}

bool hr__column_source_place(const char *from, uint64_t at, char *uri, size_t room,
                             uint64_t *ret_offset)
{
    size_t length = strlen(from);

    if (length >= room)
        return false;
    memcpy(uri, from, length + 1);
    *ret_offset = at;
    return true;
}

/* A reference to the buffer that a cell lies in; NULL. */
static struct hr_buffer *owner_of(struct hr_buffer *buffer)
{
    return buffer != NULL ? hr_buffer_ref(buffer) : NULL;
}

/* Shows the bytes, or copies a few of them, which is cheaper than a reference. */
static enum hr_err set_bytes(struct hr_op_ctx *ctx, struct hr_value *value,
                             const void *data, size_t bytes, struct hr_buffer *owner)
{
    void *memory;

    if (owner == NULL || bytes > COPY_MAX) {
        hr__value_set_bytes(value, data, bytes, owner_of(owner));
        value->shared = true;
        return HR_OK;
    }
    HR_TRY(hr__op_alloc(ctx, bytes + 1, &memory));
    memcpy(memory, data, bytes);
    hr__value_set_bytes(value, memory, bytes, NULL);
    return HR_OK;
}

static enum hr_err
set_null(struct hr_op_ctx *ctx, const struct hr_column_source *state,
         const struct hr_column_row *row, size_t at, struct hr_value *value)
{
    const struct hr_arrow_column *column = &state->columns->items[at];
    int64_t none = 0;
    void *memory;

    if (!state->has_fill[at]) {
        struct hr_str where;

        hr__str_init(&where);
        state->format->where(row, &where);
        (void)hr__fail(ctx->error, HR_ERR_FORMAT,
                       "%s: column \"%s\": %s is null: say with fill what it becomes, "
                       "or choose other columns",
                       row->uri, column->name, hr__str_text(&where));
        hr__str_finish(&where);
        return HR_ERR_FORMAT;
    }
    if (is_bytes(column))
        return set_bytes(ctx, value, state->fill[at], strlen(state->fill[at]), NULL);
    HR_TRY(hr__op_alloc(ctx, sizeof(int64_t), &memory));
    memcpy(memory, &state->number[at], sizeof(int64_t));
    hr__value_set_tensor(value, column->dtype, column->kind == HR_ARROW_LIST, &none,
                         memory, NULL);
    return HR_OK;
}

/* Begins the message with the row. */
static enum hr_err
name_row(const struct hr_column_source *state, const struct hr_column_row *row,
         enum hr_err code, struct hr_error *error)
{
    struct hr_str where;

    hr__str_init(&where);
    state->format->where(row, &where);
    hr__error_prefix(error, "%s: %s", row->uri, hr__str_text(&where));
    hr__str_finish(&where);
    return code;
}

static enum hr_err
set_elements(struct hr_op_ctx *ctx, const struct hr_column_source *state,
             const struct hr_column_row *row, size_t at, const struct hr_arrow_cell *cell,
             struct hr_buffer *owner, struct hr_value *value)
{
    const struct hr_arrow_column *column = &state->columns->items[at];
    bool is_plain = hr__arrow_is_plain(column);
    size_t bytes =
        (size_t)cell->count * (is_plain ? column->width : hr_dtype_size(column->dtype));
    int ndim = column->kind != HR_ARROW_NUMBER;
    enum hr_err code;
    void *memory;

    if (is_plain && cell->count > 0 && (owner == NULL || bytes > COPY_MAX) &&
        (uintptr_t)cell->data % column->width == 0) {
        hr__value_set_tensor(value, column->dtype, ndim, &cell->count,
                             (void *)(uintptr_t)cell->data, owner_of(owner));
        value->shared = true;
        return HR_OK;
    }
    HR_TRY(hr__op_alloc(ctx, bytes + 1, &memory));
    code = hr__arrow_elements(column, cell, memory, ctx->error);
    if (code != HR_OK)
        return name_row(state, row, code, ctx->error);
    hr__value_set_tensor(value, column->dtype, ndim, &cell->count, memory, NULL);
    return HR_OK;
}

enum hr_err
hr__column_source_value(struct hr_op_ctx *ctx, const struct hr_column_source *state,
                        struct hr_column_row *row, size_t at, struct hr_value *value)
{
    const struct hr_arrow_column *column = &state->columns->items[at];
    struct hr_buffer *owner;
    struct hr_arrow_cell cell;

    HR_TRY(state->format->cell(state->files, row, at, &cell, &owner, ctx->error));
    if (cell.is_null)
        return set_null(ctx, state, row, at, value);
    if (is_bytes(column))
        return set_bytes(ctx, value, cell.bytes > 0 ? (const void *)cell.data : "",
                         (size_t)cell.bytes, owner);
    return set_elements(ctx, state, row, at, &cell, owner, value);
}

static enum hr_err set_field(struct hr_op_ctx *ctx, const struct hr_column_source *state,
                             struct hr_column_row *row, size_t at)
{
    return hr__column_source_value(ctx, state, row, at, ctx->fields[at]);
}

/* The columns that the condition reads, and whether it is false. */
static enum hr_err
check_where(struct hr_op_ctx *ctx, const struct hr_column_source *state,
            struct hr_column_row *row, bool is_set[HR_SCHEMA_FIELDS_MAX])
{
    size_t count;
    bool holds;

    (void)hr__expr_fields(state->where, &count);
    for (size_t i = 0; i < count; i++) {
        HR_TRY(set_field(ctx, state, row, state->where_at[i]));
        is_set[state->where_at[i]] = true;
    }
    HR_TRY(hr__condition_holds(ctx, state->where, state->where_at, &holds));
    ctx->drop = !holds;
    return HR_OK;
}

enum hr_err hr__column_source_apply(struct hr_op_ctx *ctx)
{
    const struct hr_column_source *state = ctx->state;
    struct hr_column_row row = {.index = ctx->id->index, .thread = ctx->thread};
    bool is_set[HR_SCHEMA_FIELDS_MAX];
    enum hr_err code;

    if (row.index >= state->records)
        return hr__fail(ctx->error, HR_ERR_RANGE, "there is no row %llu",
                        (unsigned long long)row.index);
    code = state->format->begin(state->files, &row, ctx->error);
    if (state->where != NULL) {
        memset(is_set, 0, ctx->field_count * sizeof *is_set);
        if (code == HR_OK)
            code = check_where(ctx, state, &row, is_set);
    }
    for (size_t i = 0; i < ctx->field_count && code == HR_OK && !ctx->drop; i++)
        if (state->where == NULL || !is_set[i])
            code = set_field(ctx, state, &row, i);
    state->format->end(&row);
    return code;
}

/* ---- keys: numbers and texts ---- */

static size_t key_column(const struct hr_column_source *state, size_t i)
{
    for (size_t k = 0; k < state->columns->count; k++)
        if (hr__columns_is_key(&state->columns->items[k]) && i-- == 0)
            return k;
    return state->columns->count;
}

const char *hr__column_source_key_name(const void *params, const void *made, size_t i)
{
    const struct hr_column_source *state = made;
    size_t column = key_column(state, i);

    (void)params;
    return column < state->columns->count ? state->columns->items[column].name : NULL;
}

/* A bad record, and one whose cell is null, is known by its number. */
enum hr_err
hr__column_source_key(const void *params, const void *made, size_t i, uint64_t index,
                      struct hr_str *out, struct hr_error *error)
{
    const struct hr_column_source *state = made;
    size_t at = key_column(state, i);
    const struct hr_arrow_column *column = &state->columns->items[at];
    struct hr_column_row row = {.index = index};
    struct hr_buffer *owner;
    struct hr_arrow_cell cell;
    enum hr_err code;

    (void)params;
    code = state->format->begin(state->files, &row, error);
    if (code == HR_OK)
        code = state->format->cell(state->files, &row, at, &cell, &owner, error);
    if (code == HR_OK && !cell.is_null)
        code = hr__columns_key(column, &cell, out, error);
    if (code == HR_ERR_FORMAT || code == HR_ERR_RANGE || (code == HR_OK && cell.is_null))
        hr__str_addf(out, "%llu", (unsigned long long)index);
    state->format->end(&row);
    if (code == HR_OK && cell.is_null)
        return HR_ERR_NOT_FOUND;
    return code == HR_ERR_RANGE ? HR_ERR_FORMAT : code;
}
