/*
 * ops/label_table.c - see ops/label_table.h.
 *
 * A column that was not named by its header or by the user is never guessed: the message
 * lists the columns that there are.
 */
#include "ops/label_table.h"

#include <string.h>

#include "core/alloc.h"
#include "core/str.h"

#define MORE_MAX (HR_SCHEMA_FIELDS_MAX - 3) /* data, label, path */

/* What the cells of the only column seem to be separated by instead of commas; '\0'. */
static char other_delimiter(const struct hr_table *table)
{
    const char *name = table->column_count == 1 && table->header && !table->json
                           ? table->columns[0].name
                           : "";

    return name[strcspn(name, ";\t|")];
}

static enum hr_err unknown(const struct hr_table *table, const char *name,
                           const char *param, const char *what, struct hr_error *error)
{
    struct hr_table_place at = table->columns[0].place;
    const char **names = hr__malloc(table->column_count * sizeof *names);
    const char *near = NULL;
    struct hr_str all;

    hr__str_init(&all);
    for (size_t i = 0; names != NULL && table->header && i < table->column_count; i++)
        names[i] = table->columns[i].name;
    if (names != NULL && table->header)
        near = hr__nearest(name, names, table->column_count);
    if (table->header)
        hr__table_names(table, &all);
    if (other_delimiter(table) != '\0')
        hr__fail_in(error, HR_ERR_ARGUMENT, table->path, at.line, at.column,
                    "the cells seem to be separated by %s: write a comma between them, "
                    "or join the table by name (source.csv with delimiter, flow.join)",
                    other_delimiter(table) == '\t'  ? "tabs"
                    : other_delimiter(table) == ';' ? "semicolons"
                                                    : "bars");
    else if (!table->header)
        hr__fail_in(error, HR_ERR_ARGUMENT, table->path, at.line, at.column,
                    "there is no header that could name the column \"%s\": begin the "
                    "file with a line such as path,label",
                    name);
    else
        hr__fail_in(error, HR_ERR_ARGUMENT, table->path, at.line, at.column,
                    "no column is called \"%s\"%s%s%s; the columns are %.400s: set %s to "
                    "the one that holds %s",
                    name, near != NULL ? "; did you mean \"" : "",
                    near != NULL ? near : "", near != NULL ? "\"?" : "",
                    hr__str_text(&all), param, what);
    hr__str_finish(&all);
    hr__free(names);
    return HR_ERR_ARGUMENT;
}

/* A file without a header has a path and a label in each line. */
static enum hr_err
choose_unnamed(struct hr_label_table *t, const struct hr_label_names *names,
               struct hr_error *error)
{
    const struct hr_table *table = &t->table;
    bool label = names->label[0] != '\0';

    if (strcmp(names->path, "path") != 0)
        return unknown(table, names->path, "path_column", "paths", error);
    if (label && strcmp(names->label, "label") != 0)
        return unknown(table, names->label, "label_column", "labels", error);
    if (table->column_count != 1 + (size_t)label)
        return hr__fail_in(error, HR_ERR_ARGUMENT, table->path,
                           table->columns[0].place.line, 0,
                           "%zu columns and no header: begin the file with a line that "
                           "names them, such as path,label",
                           table->column_count);
    t->path = 0;
    t->label = label ? 1 : -1;
    return HR_OK;
}

static enum hr_err
choose_named(struct hr_label_table *t, const struct hr_label_names *names,
             struct hr_error *error)
{
    t->path = hr__table_find(&t->table, names->path);
    if (t->path < 0)
        return unknown(&t->table, names->path, "path_column", "paths", error);
    t->label = -1;
    if (names->label[0] == '\0')
        return HR_OK;
    t->label = hr__table_find(&t->table, names->label);
    if (t->label < 0)
        return unknown(&t->table, names->label, "label_column", "labels", error);
    if (t->label == t->path)
        return hr__fail(error, HR_ERR_ARGUMENT,
                        "path_column and label_column are both \"%s\"", names->path);
    return HR_OK;
}

static enum hr_err
check_field(const struct hr_label_table *t, const struct hr_label_names *names,
            const struct hr_table_column *column, struct hr_error *error)
{
    const struct hr_table_place *at = &column->place;
    static const char *const params[] = {"field", "label", "path_field"};

    if (strlen(column->name) > HR_FIELD_NAME_MAX)
        return hr__fail_in(error, HR_ERR_ARGUMENT, t->table.path, at->line, at->column,
                           "the name of a field has at most %d bytes: rename column "
                           "\"%.80s\", or choose others with columns",
                           HR_FIELD_NAME_MAX, column->name);
    for (int i = 0; i < 3; i++) {
        if (strcmp(column->name, names->taken[i]) == 0)
            return hr__fail_in(error, HR_ERR_ARGUMENT, t->table.path, at->line,
                               at->column,
                               "column \"%s\" has the name of another field of the "
                               "record: rename that one with %s, or choose the columns "
                               "that become fields with columns",
                               column->name, params[i]);
    }
    return HR_OK;
}

static enum hr_err add_more(struct hr_label_table *t, const struct hr_label_names *names,
                            int column, struct hr_error *error)
{
    const struct hr_table_column *c = &t->table.columns[column];

    for (size_t i = 0; i < t->more_count; i++) {
        if (t->more[i] == column)
            return HR_OK;
    }
    HR_TRY(check_field(t, names, c, error));
    if (t->more_count == MORE_MAX)
        return hr__fail_in(error, HR_ERR_LIMIT, t->table.path, c->place.line,
                           c->place.column,
                           "more columns than a record can have fields (%d): choose "
                           "with columns",
                           HR_SCHEMA_FIELDS_MAX);
    t->more[t->more_count++] = column;
    return HR_OK;
}

static enum hr_err choose_more(struct hr_label_table *t,
                               const struct hr_label_names *names, struct hr_error *error)
{
    for (size_t i = 0; i < names->more_count; i++) {
        bool all = strcmp(names->more[i], "*") == 0;
        int one = all ? -1 : hr__table_find(&t->table, names->more[i]);

        if (!all && one < 0)
            return unknown(&t->table, names->more[i], "columns", "further fields", error);
        if (one >= 0 && (one == t->path || one == t->label))
            return hr__fail(error, HR_ERR_ARGUMENT,
                            "columns: \"%s\" is the column of the %s already%s",
                            names->more[i], one == t->path ? "paths" : "labels",
                            one == t->path ? "; `paths: true` adds them as a field" : "");
        for (int k = 0; all && k < (int)t->table.column_count; k++) {
            const char *name = t->table.columns[k].name;

            if (k != t->path && k != t->label && name != NULL && name[0] != '\0')
                HR_TRY(add_more(t, names, k, error));
        }
        if (one >= 0)
            HR_TRY(add_more(t, names, one, error));
    }
    return HR_OK;
}

/* Labels that are texts become numbers, by which a damaged column of numbers would show
 * only in what a model learns from it. So targets with fractions are no names of classes,
 * and neither are missing values without any other. */
static enum hr_err check_classes(const struct hr_label_table *t, struct hr_error *error)
{
    const struct hr_table_column *column = &t->table.columns[t->label];
    const struct hr_table_place *at;

    if (column->type != HR_TABLE_TEXT)
        return HR_OK;
    at = &column->first[__builtin_ctz(HR_SEEN_NAN)];
    if (column->seen == HR_SEEN_NAN)
        return hr__fail_in(error, HR_ERR_FORMAT, t->table.path, at->line, at->column,
                           "column \"%s\": the value is missing, as all others are",
                           column->name != NULL ? column->name : "");
    if (!(column->seen & HR_SEEN_FLOAT))
        return HR_OK;
    at = &column->first[__builtin_ctz(column->seen & (HR_SEEN_TEXT | HR_SEEN_NAN))];
    return hr__fail_in(error, HR_ERR_FORMAT, t->table.path, at->line, at->column,
                       "column \"%s\": a text, and other lines have numbers with "
                       "fractions: correct it, or, if all are names of classes, give "
                       "these in classes",
                       column->name != NULL ? column->name : "");
}

static enum hr_err
use_columns(struct hr_label_table *t, bool classes_given, struct hr_error *error)
{
    HR_TRY(hr__table_use_text(&t->table, t->path, error));
    if (t->label >= 0)
        HR_TRY(hr__table_use(&t->table, t->label, error));
    if (t->label >= 0 && !classes_given)
        HR_TRY(check_classes(t, error));
    for (size_t i = 0; i < t->more_count; i++)
        HR_TRY(hr__table_use(&t->table, t->more[i], error));
    hr__table_drop_unused(&t->table);
    return HR_OK;
}

enum hr_err hr__label_table_read(const char *uri, const struct hr_label_names *names,
                                 struct hr_label_table *ret_table, struct hr_error *error)
{
    HR_TRY(hr__table_read(uri, names->path, &ret_table->table, error));
    if (ret_table->table.column_count == 0)
        return hr__fail(error, HR_ERR_NOT_FOUND, "%s is empty", uri);
    HR_TRY(ret_table->table.header ? choose_named(ret_table, names, error)
                                   : choose_unnamed(ret_table, names, error));
    HR_TRY(choose_more(ret_table, names, error));
    return use_columns(ret_table, names->classes, error);
}

void hr__label_table_finish(struct hr_label_table *table)
{
    hr__table_finish(&table->table);
}

const struct hr_table_column *
hr__label_table_more(const struct hr_label_table *table, size_t i)
{
    return &table->table.columns[table->more[i]];
}

static enum hr_dtype dtype_of(enum hr_table_type type)
{
    static const enum hr_dtype dtypes[] = {
        [HR_TABLE_TEXT] = HR_DTYPE_NONE,
        [HR_TABLE_INT] = HR_I64,
        [HR_TABLE_FLOAT] = HR_F64,
        [HR_TABLE_BOOL] = HR_BOOL,
    };

    return dtypes[type];
}

void hr__label_table_field(const struct hr_table_column *column, struct hr_field *field)
{
    bool text = column->type == HR_TABLE_TEXT;

    field->kind = text ? HR_FIELD_BYTES : HR_FIELD_TENSOR;
    field->dtype = dtype_of(column->type);
    field->meaning = text ? HR_MEANING_TEXT : HR_MEANING_NONE;
}

bool hr__label_table_has_classes(const struct hr_label_table *table)
{
    return table->table.columns[table->label].type == HR_TABLE_TEXT;
}

void hr__label_table_label(const struct hr_label_table *table, struct hr_field *field)
{
    enum hr_table_type type = table->table.columns[table->label].type;
    bool class = type == HR_TABLE_TEXT || type == HR_TABLE_INT;

    field->kind = HR_FIELD_TENSOR;
    field->dtype = class ? HR_I64 : dtype_of(type);
    field->meaning = class ? HR_MEANING_LABEL : HR_MEANING_NONE;
}

enum hr_err hr__label_table_set_text(struct hr_op_ctx *ctx, struct hr_value *value,
                                     const char *text, size_t bytes)
{
    void *memory;

    HR_TRY(hr__op_alloc(ctx, bytes + 1, &memory));
    memcpy(memory, text, bytes);
    ((char *)memory)[bytes] = '\0';
    hr__value_set_bytes(value, memory, bytes, NULL);
    return HR_OK;
}

enum hr_err
hr__label_table_set(struct hr_op_ctx *ctx, const struct hr_table_column *column,
                    struct hr_value *value)
{
    size_t size = hr_dtype_size(dtype_of(column->type)), bytes;
    void *memory;

    if (column->type == HR_TABLE_TEXT) {
        const char *text = hr__table_text(column, ctx->id->index, &bytes);

        return hr__label_table_set_text(ctx, value, text, bytes);
    }
    HR_TRY(hr__op_alloc(ctx, size, &memory));
    memcpy(memory, (const char *)column->numbers + ctx->id->index * size, size);
    hr__value_set_tensor(value, dtype_of(column->type), 0, NULL, memory, NULL);
    return HR_OK;
}

void hr__label_table_text(const struct hr_table_column *column, uint64_t row,
                          struct hr_str *out)
{
    const char *text;
    size_t bytes;

    switch (column->type) {
    case HR_TABLE_TEXT:
    case HR_TABLE_JSON:
        text = hr__table_text(column, row, &bytes);
        hr__str_add_bytes(out, text, bytes);
        break;
    case HR_TABLE_INT:
        hr__str_addf(out, "%lld", (long long)((const int64_t *)column->numbers)[row]);
        break;
    case HR_TABLE_FLOAT:
        hr__str_add_double(out, ((const double *)column->numbers)[row]);
        break;
    case HR_TABLE_BOOL:
        hr__str_add(out, ((const bool *)column->numbers)[row] ? "true" : "false");
        break;
    }
}

void hr__label_table_note(const struct hr_label_table *table,
                          const struct hr_table *content, struct hr_str *out)
{
    size_t unnamed = 0;

    hr__str_addf(out, "%s: ", content->path);
    if (!content->header) {
        hr__str_add(out, "no header, paths");
        hr__str_add(out, table->label >= 0 ? " and labels" : "");
        return;
    }
    hr__str_add(out, content->json ? "keys " : "header ");
    hr__table_names(content, out);
    hr__str_addf(out, "; paths from \"%s\"", content->columns[table->path].name);
    if (table->label >= 0)
        hr__str_addf(out, ", labels from \"%s\" (%s)",
                     content->columns[table->label].name,
                     hr__table_type_name(content->columns[table->label].type));
    for (size_t i = 0; i < content->column_count; i++)
        unnamed += content->columns[i].name[0] == '\0';
    if (unnamed > 0)
        hr__str_addf(out, "; columns without a name, left out: %zu", unnamed);
}
