/*
 * ops/row_source.c - what source.jsonl and source.csv share.
 */
#include "ops/row_source.h"

#include <assert.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "core/str.h"
#include "store/lines.h"

/* ---- declarations ---- */

static enum hr_err
wrong_type(struct hr_error *error, const char *column, const char *what)
{
    memcpy(error->param, "types", sizeof "types");
    return hr__fail(error, HR_ERR_ARGUMENT, "the type of column \"%s\": %s", column,
                    what);
}

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t");
}

static bool find_type(const char *text, size_t bytes, enum hr_table_type *ret_type)
{
    for (int type = HR_TABLE_TEXT; type <= HR_TABLE_JSON; type++) {
        const char *name = hr__table_type_name((enum hr_table_type)type);

        if (strlen(name) == bytes && memcmp(name, text, bytes) == 0) {
            *ret_type = (enum hr_table_type)type;
            return true;
        }
    }
    return false;
}

static unsigned kind_of(const char *text)
{
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        return HR_SEEN_BOOL;
    return hr__number_kind(text, strlen(text));
}

/* Converts the default once, so that it is checked before data is read. */
static bool convert_default(struct hr_row_column *column)
{
    unsigned kind = kind_of(column->text);
    bool fits =
        (column->type == HR_TABLE_INT && kind == HR_SEEN_INT) ||
        (column->type == HR_TABLE_FLOAT && (kind & (HR_SEEN_INT | HR_SEEN_FLOAT))) ||
        (column->type == HR_TABLE_BOOL && kind == HR_SEEN_BOOL);

    if (column->type == HR_TABLE_TEXT || column->type == HR_TABLE_JSON)
        return true;
    return fits && hr__table_convert(column->type, column->text, strlen(column->text),
                                     &column->number);
}

/* "float64 = 0" */
static enum hr_err
declare(struct hr_row_column *column, const char *text, struct hr_error *error)
{
    const char *equals = strchr(text, '=');
    size_t bytes;

    text = skip_blanks(text);
    bytes = strcspn(text, " \t=");
    if (!find_type(text, bytes, &column->type) ||
        *skip_blanks(text + bytes) != (equals != NULL ? '=' : '\0'))
        return wrong_type(error, column->name,
                          "it is int64, float64, bool, text or json, and may have a "
                          "default, such as \"float64 = 0\"");
    column->declared = true;
    column->has_default = equals != NULL;
    if (equals == NULL)
        return HR_OK;
    column->text = skip_blanks(equals + 1);
    if (!convert_default(column))
        return wrong_type(error, column->name, "its default is no value of the type");
    return HR_OK;
}

static const char *declared_type(const struct hr_row_params *p, const char *name)
{
    for (int i = 0; i < p->types.count; i++)
        if (strcmp(p->types.keys[i], name) == 0)
            return p->types.values[i];
    return NULL;
}

/* ---- columns ---- */

int hr__row_source_column(const struct hr_row_source *source, const char *name,
                          size_t bytes, size_t probable)
{
    for (size_t i = 0; i < source->count; i++) {
        size_t at =
            probable + i < source->count ? probable + i : probable + i - source->count;
        const char *own = source->columns[at].name;

        if (memcmp(own, name,
                   bytes < sizeof source->columns[at].name
                       ? bytes
                       : sizeof source->columns[at].name) == 0 &&
            bytes <= HR_FIELD_NAME_MAX && own[bytes] == '\0')
            return (int)at;
    }
    return -1;
}

static enum hr_err add_column(struct hr_row_source *source, const struct hr_row_params *p,
                              const char *name, struct hr_error *error)
{
    struct hr_row_column *column;
    const char *type = declared_type(p, name);

    if (hr__row_source_column(source, name, strlen(name), 0) >= 0)
        return HR_OK;
    if (name[0] == '\0' || strlen(name) > HR_FIELD_NAME_MAX)
        return hr__fail(error, HR_ERR_ARGUMENT,
                        "%s: the name of a field has 1 to %d bytes: leave out column "
                        "\"%.80s\" by choosing others with columns",
                        source->path, HR_FIELD_NAME_MAX, name);
    if (source->count == HR_SCHEMA_FIELDS_MAX)
        return hr__fail(
            error, HR_ERR_LIMIT,
            "%s: more columns than a record can have fields (%d): choose with "
            "columns",
            source->path, HR_SCHEMA_FIELDS_MAX);
    column = &source->columns[source->count++];
    memcpy(column->name, name, strlen(name) + 1);
    return type != NULL ? declare(column, type, error) : HR_OK;
}

static enum hr_err
unknown(const struct hr_row_source *source, const struct hr_table *table,
        const char *name, const char *param, struct hr_error *error)
{
    const char **names = hr__calloc(table->column_count + 1, sizeof *names);
    const char *near = NULL;
    struct hr_str all;

    hr__str_init(&all);
    for (size_t i = 0; names != NULL && i < table->column_count; i++)
        names[i] = table->columns[i].name;
    if (names != NULL)
        near = hr__nearest(name, names, table->column_count);
    hr__table_names(table, &all);
    memcpy(error->param, param, strlen(param) + 1);
    hr__fail(error, HR_ERR_ARGUMENT,
             "%s: no column is called \"%s\"%s%s%s; the columns are %.400s", source->path,
             name, near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
             near != NULL ? "\"?" : "",
             table->column_count > 0 ? hr__str_text(&all) : "none");
    hr__str_finish(&all);
    hr__free(names);
    return HR_ERR_ARGUMENT;
}

/* Of JSON, * stands for the keys of the first row, so that one that few rows have does
 * not make the others bad. */
static bool is_in_first_row(const struct hr_table *table, size_t column)
{
    return !table->json || table->rows == 0 ||
           table->columns[column].place.line == table->lines[0];
}

/* All columns that the files have are in the table. */
static enum hr_err
choose_columns(struct hr_row_source *source, const struct hr_row_params *p,
               const struct hr_table *table, struct hr_error *error)
{
    for (int i = 0; i < p->columns.count; i++) {
        const char *name = p->columns.values[i];
        bool all = strcmp(name, "*") == 0;

        for (size_t k = 0; all && k < table->column_count; k++)
            if (table->columns[k].name[0] != '\0' &&
                (is_in_first_row(table, k) ||
                 declared_type(p, table->columns[k].name) != NULL))
                HR_TRY(add_column(source, p, table->columns[k].name, error));
        if (!all && hr__table_find(table, name) < 0)
            return unknown(source, table, name, "columns", error);
        if (!all)
            HR_TRY(add_column(source, p, table->columns[hr__table_find(table, name)].name,
                              error));
    }
    for (int i = 0; i < p->types.count; i++) {
        const char *name = p->types.keys[i];

        if (hr__row_source_column(source, name, strlen(name), 0) < 0)
            return unknown(source, table, name, "types", error);
    }
    return HR_OK;
}

/* ---- types ---- */

struct look {
    struct hr_row_source *source;
    struct hr_table *table;
    int number;                        /* of the row, from 1 */
    int columns[HR_SCHEMA_FIELDS_MAX]; /* of the table, by the source's */
};

/* hr_row_cell_fn, of CSV */
static enum hr_err look_at_cell(void *user, const struct hr_row_cell *cell)
{
    struct look *look = user;
    struct hr_table_place place = {look->number, 1};

    return hr__table_put(look->table, look->columns[cell->column], cell->text,
                         cell->bytes, cell->seen, place)
               ? HR_OK
               : HR_ERR_MEMORY;
}

static enum hr_err
look_at_row(struct look *look, const char *row, size_t bytes, struct hr_error *ret_why)
{
    enum hr_err code;
    size_t at;

    if (look->source->format->json)
        return hr__table_add_json(look->table, look->number, row, bytes, ret_why);
    if (!hr__table_add_row(look->table, look->number))
        return HR_ERR_MEMORY;
    code = look->source->format->parse(look->source, NULL, row, bytes, look_at_cell, look,
                                       &at, ret_why);
    if ((code == HR_OK || code == HR_ERR_FORMAT) && !hr__table_end_row(look->table))
        code = HR_ERR_MEMORY;
    return code;
}

/* Of a data set without a row that can be read; `why` is about the first. */
static enum hr_err fail_first(const struct hr_row_source *source,
                              const struct hr_error *why, struct hr_error *error)
{
    struct hr_shard_place place;
    uint64_t line;

    hr__shard_index_place(source->source.index, 0, &place);
    HR_TRY(hr__shard_source_line(source, NULL, 0, &line, error));
    return hr__fail(error, HR_ERR_FORMAT, "%s:%llu: %s; nor can any other line be read",
                    place.uri, (unsigned long long)line, why->message);
}

static enum hr_err
look_at_all(struct hr_row_source *source, struct hr_table *table, struct hr_error *error)
{
    struct look look = {.source = source, .table = table};
    uint64_t count = hr__shard_index_count(source->source.index), bad = 0;
    struct hr_error first = {0};

    for (size_t i = 0; i < source->count; i++)
        look.columns[i] = hr__table_find(table, source->columns[i].name);
    for (uint64_t i = 0; i < count; i++) {
        struct hr_error why = {0};
        const char *row;
        size_t bytes;
        enum hr_err code = hr__shard_source_peek(source, i, &row, &bytes, error);

        if (code == HR_ERR_LIMIT || code == HR_ERR_FORMAT)
            continue; /* reading it reports that */
        HR_TRY(code);
        look.number = i < INT_MAX ? (int)i + 1 : INT_MAX;
        code = look_at_row(&look, row, hr__line_length(row, bytes), &why);
        if (code != HR_OK && code != HR_ERR_FORMAT)
            return hr__fail(error, code, "out of memory while reading %s", source->path);
        bad += code != HR_OK;
        if (code != HR_OK && i == 0)
            first = why;
    }
    return count > 0 && bad == count ? fail_first(source, &first, error) : HR_OK;
}

/* Of a column whose cells do not go together; the place is the number of a row. */
static enum hr_err
fail_column(const struct hr_row_source *source, const struct hr_table_column *column,
            int bit, const char *what, struct hr_error *error)
{
    struct hr_shard_place place;
    uint64_t row = (uint64_t)column->first[bit].line - 1, line;

    hr__shard_index_place(source->source.index, row, &place);
    HR_TRY(hr__shard_source_line(source, NULL, row, &line, error));
    return hr__fail(error, HR_ERR_FORMAT,
                    "%s:%llu: column \"%s\": %s: declare its type with types, and such "
                    "lines are bad records",
                    place.uri, (unsigned long long)line, column->name, what);
}

static int first_bit(unsigned flag)
{
    return __builtin_ctz(flag);
}

static enum hr_err settle_column(struct hr_row_source *source, struct hr_table *table,
                                 struct hr_row_column *to, struct hr_error *error)
{
    struct hr_table_column *column = &table->columns[hr__table_find(table, to->name)];
    unsigned seen = column->seen & ~(unsigned)(HR_SEEN_MISSING | HR_SEEN_NAN);
    const char *wrong;
    int bit;

    if (seen == 0)
        return hr__fail(error, HR_ERR_FORMAT,
                        "%s: column \"%s\" has no value in any row: declare its type "
                        "with types, or choose other columns",
                        source->path, to->name);
    if (seen == HR_SEEN_NESTED) {
        to->type = HR_TABLE_JSON;
        return HR_OK;
    }
    if (seen & HR_SEEN_NESTED)
        return fail_column(source, column, first_bit(HR_SEEN_NESTED),
                           "a list or an object, and other lines have none", error);
    wrong = hr__table_settle(table, column, &bit);
    if (wrong != NULL)
        return fail_column(source, column, bit, wrong, error);
    to->type = column->type;
    return HR_OK;
}

static bool all_declared(const struct hr_row_source *source)
{
    for (size_t i = 0; i < source->count; i++)
        if (!source->columns[i].declared)
            return false;
    return true;
}

/* Named columns of declared types need no look at the rows. */
static bool is_declared(const struct hr_row_params *p)
{
    for (int i = 0; i < p->columns.count; i++)
        if (declared_type(p, p->columns.values[i]) == NULL)
            return false;
    return true;
}

static enum hr_err
name_columns(struct hr_table *table, const struct hr_row_params *p, char *const *names,
             size_t name_count, struct hr_error *error)
{
    const struct hr_table_place nowhere = {0, 0};
    size_t count = names != NULL ? name_count : (size_t)p->columns.count;

    for (size_t i = 0; i < count; i++) {
        const char *name = names != NULL ? names[i] : p->columns.values[i];

        if (names == NULL && strcmp(name, "*") == 0)
            continue;
        if (hr__table_add_column(table, name, strlen(name), nowhere) < 0)
            return hr__fail(error, HR_ERR_LIMIT, "more than %zu columns", i);
    }
    return HR_OK;
}

enum hr_err
hr__row_source_choose(struct hr_row_source *source, const struct hr_row_params *params,
                      char *const *names, size_t name_count, struct hr_table *table,
                      struct hr_error *error)
{
    bool look = source->format->json && !is_declared(params);

    source->path = params->path;
    source->source.bytes_max = (uint64_t)params->max_bytes;
    source->source.ending_bytes = 2;
    table->types_only = true;
    table->json = source->format->json;
    table->path = hr__strdup(params->path);
    if (table->path == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    if (look)
        HR_TRY(look_at_all(source, table, error));
    else
        HR_TRY(name_columns(table, params, names, name_count, error));
    if (table->column_count == 0)
        return hr__fail(error, HR_ERR_NOT_FOUND,
                        "%s has no row, hence no columns: name them with columns, and "
                        "declare their types with types",
                        params->path);
    hr__str_addf(&source->note, "%s: %s ", params->path,
                 table->json     ? "keys"
                 : table->header ? "header"
                                 : "no header, columns");
    hr__table_names(table, &source->note);
    for (size_t i = 0, told = 0; i < table->column_count; i++)
        if (!is_in_first_row(table, i))
            hr__str_addf(
                &source->note, "%s\"%s\"",
                told++ > 0 ? ", " : "; not in the first row: ", table->columns[i].name);
    return choose_columns(source, params, table, error);
}

enum hr_err hr__row_source_types(struct hr_row_source *source, struct hr_table *table,
                                 struct hr_error *error)
{
    if (all_declared(source))
        return HR_OK;
    if (!source->format->json)
        HR_TRY(look_at_all(source, table, error));
    for (size_t i = 0; i < source->count; i++)
        if (!source->columns[i].declared)
            HR_TRY(settle_column(source, table, &source->columns[i], error));
    return HR_OK;
}

void hr__row_source_finish(struct hr_row_source *source)
{
    hr__str_finish(&source->note);
}

/* ---- schema ---- */

enum hr_err
hr__row_source_binds(const void *params, const void *state, const struct hr_schema *input,
                     struct hr_bindings *bindings, struct hr_error *error)
{
    const struct hr_row_source *source = state;

    (void)params;
    (void)input;
    for (size_t i = 0; i < source->count; i++)
        HR_TRY(hr__bind(bindings, source->columns[i].name, HR_ACCESS_WRITE, error));
    return HR_OK;
}

static enum hr_dtype dtype_of(enum hr_table_type type)
{
    return type == HR_TABLE_INT ? HR_I64 : type == HR_TABLE_FLOAT ? HR_F64 : HR_BOOL;
}

static bool is_bytes(enum hr_table_type type)
{
    return type == HR_TABLE_TEXT || type == HR_TABLE_JSON;
}

enum hr_err hr__row_source_infer(struct hr_infer *infer)
{
    const struct hr_row_source *source = infer->state;

    assert(infer->field_count == source->count);
    for (size_t i = 0; i < source->count; i++) {
        struct hr_field *field = infer->fields[i];
        enum hr_table_type type = source->columns[i].type;

        field->kind = is_bytes(type) ? HR_FIELD_BYTES : HR_FIELD_TENSOR;
        field->dtype = is_bytes(type) ? HR_DTYPE_NONE : dtype_of(type);
        field->meaning = is_bytes(type) ? HR_MEANING_TEXT : HR_MEANING_NONE;
    }
    infer->output->records = -1;
    return HR_OK;
}

/* What was inferred is said. */
enum hr_err hr__row_source_open(const struct hr_open *open, void **ret_state)
{
    struct hr_row_source *source = *ret_state;
    size_t told = 0;

    for (size_t i = 0; i < source->count; i++)
        if (!source->columns[i].declared)
            hr__str_addf(&source->note, "%s%s %s",
                         told++ > 0 ? ", " : "; inferred: ", source->columns[i].name,
                         hr__table_type_name(source->columns[i].type));
    if (!hr__str_ok(&source->note))
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    return HR_OK;
}

const char *hr__row_source_note(const void *state)
{
    return hr__str_text(&((const struct hr_row_source *)state)->note);
}

/* ---- records ---- */

struct row {
    struct hr_op_ctx *ctx;
    const struct hr_row_source *source;
    size_t at; /* of the cell, for messages */
};

static enum hr_err bad_cell(struct row *row, const struct hr_row_column *column,
                            const struct hr_row_cell *cell)
{
    row->at = cell->at;
    return hr__fail(row->ctx->error, HR_ERR_FORMAT,
                    "column \"%s\": %s\"%.*s%s\" is no %s", column->name,
                    cell->seen & HR_SEEN_TEXT ? "the text " : "",
                    cell->bytes < 40 ? (int)cell->bytes : 40, cell->text,
                    cell->bytes < 40 ? "" : "...", hr__table_type_name(column->type));
}

static enum hr_err
set_text(struct hr_op_ctx *ctx, struct hr_value *value, const char *text, size_t bytes)
{
    void *memory;

    HR_TRY(hr__op_alloc(ctx, bytes + 1, &memory));
    if (bytes > 0)
        memcpy(memory, text, bytes);
    hr__value_set_bytes(value, memory, bytes, NULL);
    return HR_OK;
}

/* A text becomes a JSON string; other values are as they are. */
static enum hr_err
set_json(struct hr_op_ctx *ctx, struct hr_value *value, const struct hr_row_cell *cell)
{
    struct hr_str out;
    enum hr_err code;

    if (!(cell->seen & (HR_SEEN_TEXT | HR_SEEN_OTHER)))
        return set_text(ctx, value, cell->text, cell->bytes);
    hr__str_init(&out);
    hr__str_add_json(&out, cell->text, cell->bytes);
    code = hr__str_ok(&out) ? set_text(ctx, value, hr__str_text(&out), out.length)
                            : hr__fail(ctx->error, HR_ERR_MEMORY, "out of memory");
    hr__str_finish(&out);
    return code;
}

static enum hr_err set_number(struct hr_op_ctx *ctx, struct hr_value *value,
                              enum hr_table_type type, const void *number)
{
    size_t size = hr_dtype_size(dtype_of(type));
    void *memory;

    HR_TRY(hr__op_alloc(ctx, size, &memory));
    memcpy(memory, number, size);
    hr__value_set_tensor(value, dtype_of(type), 0, NULL, memory, NULL);
    return HR_OK;
}

/* Whether a cell of numbers, or of true and false, is of the type. In CSV the latter are
 * texts. */
static bool is_of_type(enum hr_table_type type, const struct hr_row_cell *cell, bool json)
{
    if (type == HR_TABLE_INT)
        return (cell->seen & HR_SEEN_INT) != 0;
    if (type == HR_TABLE_FLOAT)
        return (cell->seen & (HR_SEEN_INT | HR_SEEN_FLOAT)) != 0;
    if (cell->seen & HR_SEEN_BOOL)
        return true;
    return !json && ((cell->bytes == 4 && strncasecmp(cell->text, "true", 4) == 0) ||
                     (cell->bytes == 5 && strncasecmp(cell->text, "false", 5) == 0));
}

/* hr_row_cell_fn */
static enum hr_err set_cell(void *user, const struct hr_row_cell *cell)
{
    struct row *row = user;
    const struct hr_row_column *column = &row->source->columns[cell->column];
    struct hr_value *value = row->ctx->fields[cell->column];
    bool json = row->source->format->json;
    int64_t number = 0;

    if ((cell->seen & HR_SEEN_MISSING) ||
        ((cell->seen & HR_SEEN_NAN) && !is_bytes(column->type)))
        return HR_OK;
    if (column->type == HR_TABLE_JSON && json)
        return set_json(row->ctx, value, cell);
    if (is_bytes(column->type)) {
        if (json && !(cell->seen & (HR_SEEN_TEXT | HR_SEEN_OTHER)))
            return bad_cell(row, column, cell);
        return set_text(row->ctx, value, cell->text, cell->bytes);
    }
    if (!is_of_type(column->type, cell, json) ||
        !hr__table_convert(column->type, cell->text, cell->bytes, &number))
        return bad_cell(row, column, cell);
    return set_number(row->ctx, value, column->type, &number);
}

/* Columns that the row lacks. */
static enum hr_err set_missing(struct row *row)
{
    struct hr_op_ctx *ctx = row->ctx;

    for (size_t i = 0; i < row->source->count; i++) {
        const struct hr_row_column *column = &row->source->columns[i];

        if (ctx->fields[i]->kind != HR_VALUE_NONE)
            continue;
        row->at = 0;
        if (!column->has_default)
            return hr__fail(ctx->error, HR_ERR_FORMAT,
                            "column \"%s\": the value is missing (types can give it a "
                            "default: \"%s = ...\")",
                            column->name, hr__table_type_name(column->type));
        if (is_bytes(column->type))
            HR_TRY(set_text(ctx, ctx->fields[i], column->text, strlen(column->text)));
        else
            HR_TRY(set_number(ctx, ctx->fields[i], column->type, &column->number));
    }
    return HR_OK;
}

static enum hr_err set_row(struct row *row, const struct hr_shard_record *record)
{
    const struct hr_row_source *source = row->source;
    size_t bytes = hr__line_length(record->data, (size_t)record->place.bytes);

    row->at = 0;
    HR_TRY(
        hr__shard_source_check(&source->source, &record->place, bytes, row->ctx->error));
    HR_TRY(source->format->parse(source, row->ctx->thread, record->data, bytes, set_cell,
                                 row, &row->at, row->ctx->error));
    return set_missing(row);
}

enum hr_err hr__row_source_apply(struct hr_op_ctx *ctx)
{
    struct row row = {.ctx = ctx, .source = ctx->state};
    struct hr_shard_record record;
    enum hr_err code;
    uint64_t line;

    HR_TRY(hr__shard_source_read(ctx, &record));
    code = set_row(&row, &record);
    hr_buffer_unref(record.owner);
    if (code != HR_ERR_FORMAT)
        return code;
    if (hr__shard_source_line(ctx->state, ctx->thread, ctx->id->index, &line, NULL) !=
        HR_OK) /* of a damaged stream */
        hr__error_prefix(ctx->error, "%s: byte %llu", record.place.uri,
                         (unsigned long long)(record.place.offset + row.at));
    else
        hr__error_prefix(ctx->error, "%s:%llu: byte %llu", record.place.uri,
                         (unsigned long long)line,
                         (unsigned long long)(record.place.offset + row.at));
    return code;
}

/* ---- keys ---- */

const char *hr__row_source_key_name(const void *params, const void *state, size_t i)
{
    const struct hr_row_source *source = state;

    (void)params;
    return i < source->count ? source->columns[i].name : NULL;
}

struct key {
    size_t column;
    struct hr_str *out;
    bool found;
};

/* hr_row_cell_fn */
static enum hr_err add_key(void *user, const struct hr_row_cell *cell)
{
    struct key *key = user;

    if (cell->column == key->column && !(cell->seen & HR_SEEN_MISSING)) {
        hr__str_add_bytes(key->out, cell->text, cell->bytes);
        key->found = true;
    }
    return HR_OK;
}

/* As it is written in the row. */
enum hr_err hr__row_source_key(const void *params, const void *state, size_t i,
                               uint64_t index, struct hr_str *out, struct hr_error *error)
{
    const struct hr_row_source *source = state;
    struct key key = {.column = i, .out = out};
    struct hr_error why = {0};
    const char *row;
    size_t bytes, at;
    enum hr_err code;

    (void)params;
    code = hr__shard_source_peek(state, index, &row, &bytes, error);
    if (code == HR_OK)
        code = source->format->parse(source, NULL, row, hr__line_length(row, bytes),
                                     add_key, &key, &at, &why);
    if (code == HR_ERR_MEMORY)
        return hr__fail(error, code, "out of memory");
    if (code == HR_OK && !key.found)
        return HR_ERR_NOT_FOUND;
    if (code != HR_OK && why.message[0] != '\0')
        hr__fail(error, code, "%s", why.message);
    return hr__shard_source_key(code == HR_ERR_LIMIT ? HR_ERR_FORMAT : code, index, out);
}
