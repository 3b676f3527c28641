/*
 * source.files - the files of a folder, as bytes, in the order of their names.
 *
 * Names are listed when the graph is opened (store/index.h); bytes are read record by
 * record through the thread's reader, which fetches them early where reads have to wait.
 * A labels file is read when the graph is checked, because its columns become fields
 * (ops/label_table.h). The source's identity is a hash of names, labels and columns, not
 * of contents: a file that changes under the same name goes unnoticed.
 */
#include "ops/file_list.h"
#include "ops/label_table.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/str.h"
#include "store/index.h"
#include "store/reader.h"
#include "store/store.h"

struct files {
    const char *path;
    const char *labels;
    const char *path_column, *label_column;
    struct hr_names columns;
    const struct hr_doc *files, *classes; /* lists of texts, or NULL */
    int skip;
    struct hr_names suffixes;
    bool recursive, paths;
    const char *index;
    const char *field, *label, *path_field;
};

enum { SKIP_NONE, SKIP_UNLISTED, SKIP_MISSING, SKIP_BOTH };
static const char *const skip_words[] = {"none", "unlisted", "missing", "both", NULL};

static const struct hr_param files_params[] = {
    HR_P_PATH(struct files, path, .required = true,
              .help = "a folder, its URI, or a pattern such as \"photos/?x/*.jpg\" (two "
                      "stars: any number of folders)",
              .not_identity = true),
    HR_P_TEXTS(struct files, files, .items_min = 1, .items_max = 1 << 24,
               .help =
                   "the files, by paths relative to path, in this order; default: all "
                   "in the folder",
               .not_identity = true),
    HR_P_STRING(struct files, labels, .fallback = "none",
                .help = "none; folder (the rank of the first folder below path); or the "
                        "path of a CSV or JSONL file that lists the files"),
    HR_P_STRING(struct files, path_column, .fallback = "path",
                .help =
                    "the column of the labels file that holds paths, relative to path"),
    HR_P_STRING(struct files, label_column, .fallback = "label",
                .help = "the column that holds labels: numbers, or names of classes; "
                        "\"\" when there is none"),
    HR_P_STRINGS(struct files, columns, .fallback = "[\"*\"]", .items_min = 0,
                 .items_max = HR_LIST_MAX,
                 .help = "the further columns that become fields; * stands for all"),
    HR_P_TEXTS(struct files, classes, .items_min = 1, .items_max = 1 << 24,
               .help =
                   "names of the classes in the order of their numbers, such as those "
                   "of the training set; default: those found, in order of name",
               .not_identity = true),
    HR_P_ENUM(struct files, skip, .names = skip_words, .fallback = "none",
              .help = "what to leave out instead of failing: unlisted (files without a "
                      "line in the labels file), missing (lines without a file), both"),
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

enum { FIELD_DATA, FIELD_LABEL, FIELD_PATH, FIELD_COLUMNS };

struct state {
    struct hr_label_table table; /* the labels file */
    struct hr_index *index;
    struct hr_field_classes classes; /* of the index */
    const char **given;              /* classes; the texts are the parameter's */
    char *note;
};

static bool is_table(const struct files *p)
{
    return strcmp(p->labels, "none") != 0 && strcmp(p->labels, "folder") != 0;
}

static bool has_label(const struct files *p)
{
    return strcmp(p->labels, "none") != 0 && (!is_table(p) || p->label_column[0] != '\0');
}

static void files_close(void *made)
{
    struct state *state = made;

    hr__label_table_finish(&state->table);
    hr__index_unref(state->index);
    hr__free(state->given);
    hr__free(state->note);
    hr__free(state);
}

static bool exists(const char *uri)
{
    struct hr_object object;

    if (hr__store_open(uri, &object, NULL) != HR_OK)
        return false;
    hr__store_close(&object);
    return true;
}

/* Words that mean something else than they say: `label` is the name of a field. */
static enum hr_err check_words(const struct files *p, struct hr_error *error)
{
    static const char *const words[] = {"folder", "none"};
    const char *near = hr__nearest(p->labels, words, 2);

    if (strcmp(p->labels, "none") == 0 && strcmp(p->label, "label") != 0) {
        bool folder = hr__nearest(p->label, words, 1) != NULL;

        snprintf(error->param, sizeof error->param, "label");
        return hr__fail(error, HR_ERR_ARGUMENT,
                        "label is the name of the field that holds labels, and there are "
                        "none: %s",
                        folder ? "did you mean labels: folder?"
                               : "set labels to folder or to a file");
    }
    if (is_table(p) && near != NULL && !exists(p->labels)) {
        snprintf(error->param, sizeof error->param, "labels");
        return hr__fail(error, HR_ERR_ARGUMENT,
                        "labels is none, folder or a file, and there is no file \"%s\"; "
                        "did you mean \"%s\"?",
                        p->labels, near);
    }
    if (is_table(p) && p->files != NULL)
        return hr__fail(error, HR_ERR_ARGUMENT,
                        "files are given, and %s lists them, too: leave out one of both",
                        p->labels);
    if (!has_label(p) && p->classes != NULL)
        return hr__fail(
            error, HR_ERR_ARGUMENT,
            "classes are given, and there are no labels: set labels to folder "
            "or to a file");
    return HR_OK;
}

static enum hr_err
list_given(const struct files *p, struct state *state, struct hr_error *error)
{
    if (p->classes == NULL)
        return HR_OK;
    state->given = hr__malloc(p->classes->as.list.count * sizeof *state->given + 1);
    if (state->given == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < p->classes->as.list.count; i++)
        state->given[i] = p->classes->as.list.items[i]->as.string.text;
    return HR_OK;
}

static enum hr_err
files_prepare(const void *params, void **ret_state, struct hr_error *error)
{
    const struct files *p = params;
    const struct hr_label_names names = {
        .path = p->path_column,
        .label = p->label_column,
        .more = p->columns.values,
        .more_count = (size_t)p->columns.count,
        .taken = {p->field, p->label, p->path_field},
        .classes = p->classes != NULL,
    };
    struct state *state;
    enum hr_err err;

    HR_TRY(check_words(p, error));
    state = hr__calloc(1, sizeof *state);
    if (state == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    err = list_given(p, state, error);
    if (err == HR_OK && is_table(p))
        err = hr__label_table_read(p->labels, &names, &state->table, error);
    if (err == HR_OK)
        *ret_state = state;
    else
        files_close(state);
    return err;
}

static enum hr_err
files_binds(const void *params, const void *made, const struct hr_schema *input,
            struct hr_bindings *bindings, struct hr_error *error)
{
    const struct state *state = made;

    (void)params;
    (void)input;
    for (size_t i = 0; i < state->table.more_count; i++)
        HR_TRY(hr__bind(bindings, hr__label_table_more(&state->table, i)->name,
                        HR_ACCESS_WRITE, error));
    return HR_OK;
}

static enum hr_err files_infer(struct hr_infer *infer)
{
    const struct files *p = infer->params;
    const struct state *state = infer->state;
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
    if (!is_table(p) || (has_label(p) && hr__label_table_has_classes(&state->table)))
        label->classes = &state->classes;
    if (is_table(p) && has_label(p))
        hr__label_table_label(&state->table, label);
    for (size_t i = 0; i < state->table.more_count; i++)
        hr__label_table_field(hr__label_table_more(&state->table, i),
                              infer->fields[FIELD_COLUMNS + i]);
    path->kind = HR_FIELD_BYTES;
    path->meaning = HR_MEANING_TEXT;
    infer->output->records = -1;
    if (!p->paths)
        hr__infer_remove(infer, FIELD_PATH);
    if (!has_label(p))
        hr__infer_remove(infer, FIELD_LABEL);
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

/* "labels.csv: header "path", "class", ...; 2 files without a line are skipped" */
static char *make_note(const struct state *state)
{
    struct hr_index_stats stats;
    struct hr_str text;

    hr__index_stats(state->index, &stats);
    hr__str_init(&text);
    hr__label_table_note(&state->table, hr__index_table(state->index), &text);
    if (stats.unlisted > 0)
        hr__str_addf(&text, "; files without a line, skipped: %llu",
                     (unsigned long long)stats.unlisted);
    if (stats.missing > 0)
        hr__str_addf(&text, "; lines without a file, skipped: %llu",
                     (unsigned long long)stats.missing);
    if (!hr__str_ok(&text)) {
        hr__str_finish(&text);
        return NULL;
    }
    return hr__str_take(&text);
}

/* Gives the index a table of the files that are listed. */
static enum hr_err use_list(const struct files *p, struct hr_table *table,
                            struct hr_index_options *options, struct hr_error *error)
{
    if (p->files == NULL)
        return HR_OK;
    options->table = table;
    options->listed = true;
    options->path_column = HR_FILE_LIST_PATH;
    options->label_column = options->folder_labels ? HR_FILE_LIST_LABEL : -1;
    return hr__file_list_table(p->files, options->folder_labels, table, error);
}

static enum hr_err files_open(const struct hr_open *open, void **ret_state)
{
    const struct files *p = open->params;
    struct state *state = *ret_state;
    struct hr_table list = {0};
    const char *suffixes[HR_LIST_MAX];
    char dotted[HR_LIST_MAX][64];
    struct hr_index_options options = {
        .root = p->path,
        .suffixes = suffixes,
        .suffix_count = (size_t)p->suffixes.count,
        .recursive = p->recursive,
        .folder_labels = strcmp(p->labels, "folder") == 0,
        .table = is_table(p) ? &state->table.table : NULL,
        .classes = state->given,
        .class_count = p->classes != NULL ? p->classes->as.list.count : 0,
        .path_column = state->table.path,
        .label_column = state->table.label,
        .skip_unlisted = p->skip == SKIP_UNLISTED || p->skip == SKIP_BOTH,
        .skip_missing = p->skip == SKIP_MISSING || p->skip == SKIP_BOTH,
        .saved = p->index,
    };

    for (int i = 0; i < p->suffixes.count; i++)
        suffixes[i] = with_dot(p->suffixes.values[i], dotted[i], sizeof dotted[i]);
    if (use_list(p, &list, &options, open->error) != HR_OK) {
        hr__table_finish(&list);
        return open->error->code;
    }
    HR_TRY(hr__index_open(&options, &state->index, open->error));
    state->classes.names = hr__index_classes(state->index)->names;
    state->classes.count = hr__index_classes(state->index)->count;
    if (is_table(p) && (state->note = make_note(state)) == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    return HR_OK;
}

static const char *files_note(const void *state)
{
    return ((const struct state *)state)->note;
}

static const char *files_side_file(const void *params)
{
    return ((const struct files *)params)->index;
}

static uint64_t files_count(const void *params, const void *state)
{
    (void)params;
    return hr__index_count(((const struct state *)state)->index);
}

static void
files_identity(const void *params, const void *state, struct hr_hasher *hasher)
{
    struct hr_hash128 hash = hr__index_identity(((const struct state *)state)->index);

    (void)params;
    hr__hasher_add(hasher, &hash.low, sizeof hash.low);
    hr__hasher_add(hasher, &hash.high, sizeof hash.high);
}

static bool path_at(const void *state, uint64_t at, char *path, size_t room)
{
    const struct hr_index *index = ((const struct state *)state)->index;

    return at < hr__index_count(index) &&
           hr__index_path(index, at, path, room, NULL) == HR_OK;
}

static bool files_locate(const void *params, const void *state, uint64_t index,
                         char *path, size_t room, uint64_t *ret_offset)
{
    (void)params;
    *ret_offset = 0;
    return path_at(state, index, path, room);
}

static bool files_ahead(const void *params, const void *state, uint64_t index, int part,
                        struct hr_range *ret_range)
{
    (void)params;
    hr__range_whole(ret_range);
    return part == 0 && path_at(state, index, ret_range->uri, sizeof ret_range->uri);
}

/* The label, if there is one, the columns, and last the path and the stem, which columns
 * may hide. */
static const char *files_key_name(const void *params, const void *made, size_t i)
{
    const struct files *p = params;
    const struct state *state = made;
    const struct hr_table *table = hr__index_table(state->index);

    if (has_label(p) && i-- == 0)
        return p->label;
    if (i < state->table.more_count)
        return table->columns[state->table.more[i]].name;
    i -= state->table.more_count;
    return i == 0 ? "path" : i == 1 ? "stem" : NULL;
}

static bool files_in_name_order(const void *params)
{
    const struct files *p = params;

    return p->files == NULL && !is_table(p);
}

/* The name of a file without folders and without its last ending. */
static void cut_stem(const char **path, size_t *length)
{
    const char *slash = memrchr(*path, '/', *length), *dot;

    if (slash != NULL) {
        *length -= (size_t)(slash + 1 - *path);
        *path = slash + 1;
    }
    dot = memrchr(*path, '.', *length);
    if (dot != NULL && dot > *path)
        *length = (size_t)(dot - *path);
}

static enum hr_err add_path(const struct hr_index *index, uint64_t at, bool stem,
                            struct hr_str *out, struct hr_error *error)
{
    char path[HR_URI_MAX];
    size_t length, root = hr__index_root_bytes(index, at);
    const char *from = path + root;

    if (hr__index_path(index, at, path, sizeof path, &length) != HR_OK)
        return hr__fail(error, HR_ERR_LIMIT, "the path of a file is too long");
    length -= root;
    if (stem)
        cut_stem(&from, &length);
    hr__str_add_bytes(out, from, length);
    return HR_OK;
}

static enum hr_err files_key(const void *params, const void *made, size_t i,
                             uint64_t index, struct hr_str *out, struct hr_error *error)
{
    const struct files *p = params;
    const struct state *state = made;
    const struct hr_table *table = hr__index_table(state->index);

    if (has_label(p) && i-- == 0) {
        if (state->classes.count > 0)
            hr__str_add(out, state->classes.names[hr__index_label(state->index, index)]);
        else
            hr__label_table_text(&table->columns[state->table.label], index, out);
    } else if (i < state->table.more_count) {
        hr__label_table_text(&table->columns[state->table.more[i]], index, out);
    } else {
        return add_path(state->index, index, i > state->table.more_count, out, error);
    }
    return HR_OK;
}

static enum hr_err set_class(struct hr_op_ctx *ctx, const struct hr_index *index)
{
    void *memory;

    HR_TRY(hr__op_alloc(ctx, sizeof(int64_t), &memory));
    *(int64_t *)memory = hr__index_label(index, ctx->id->index);
    hr__value_set_tensor(ctx->fields[FIELD_LABEL], HR_I64, 0, NULL, memory, NULL);
    return HR_OK;
}

static enum hr_err set_label(struct hr_op_ctx *ctx, const struct state *state)
{
    const struct hr_table *table = hr__index_table(state->index);
    const struct hr_table_column *column;

    if (!is_table(ctx->params))
        return set_class(ctx, state->index);
    column = &table->columns[state->table.label];
    if (column->type == HR_TABLE_TEXT)
        return set_class(ctx, state->index);
    return hr__label_table_set(ctx, column, ctx->fields[FIELD_LABEL]);
}

static enum hr_err set_columns(struct hr_op_ctx *ctx, const struct state *state)
{
    const struct hr_table *table = hr__index_table(state->index);

    for (size_t i = 0; i < state->table.more_count; i++)
        HR_TRY(hr__label_table_set(ctx, &table->columns[state->table.more[i]],
                                   ctx->fields[FIELD_COLUMNS + i]));
    return HR_OK;
}

static enum hr_err files_apply(struct hr_op_ctx *ctx)
{
    const struct files *p = ctx->params;
    const struct state *state = ctx->state;
    struct hr_range range; /* 4 kB, not cleared */
    struct hr_buffer *buffer;
    size_t length;

    hr__range_whole(&range);
    if (hr__index_path(state->index, ctx->id->index, range.uri, sizeof range.uri,
                       &length) != HR_OK)
        return hr__fail(ctx->error, HR_ERR_LIMIT, "the path of a file is too long");
    if (has_label(p))
        HR_TRY(set_label(ctx, state));
    if (p->paths)
        HR_TRY(hr__label_table_set_text(ctx, ctx->fields[FIELD_PATH], range.uri, length));
    HR_TRY(set_columns(ctx, state));
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
        "are ignored; a link that leads nowhere is a bad record. The fields `label` and "
        "`path` exist only when asked for.\n\n"
        "`files` lists the files instead, in any order, also more than once; they are "
        "opened when they are read, so that a missing one is a bad record.\n\n"
        "A labels file is CSV (RFC 4180) or JSON lines (one object a line), and decides "
        "which files there are and their order. The first line of a CSV file names the "
        "columns; without such a line the columns are path and label. The type of a "
        "column "
        "follows from all of its cells: whole numbers are int64, other numbers float64, "
        "true and false (of JSON) bool. Labels that are texts are classes, numbered in "
        "the "
        "order of their names; any other text is a byte string. A cell without a value, "
        "a "
        "file without a line and a line without a file are errors.",
    .version = 1,
    .kind = HR_OP_SOURCE,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(files_params, struct files),
    .binds = files_binds,
    .infer = files_infer,
    .open = files_open,
    .close = files_close,
    .identity = files_identity,
    .apply = files_apply,
    .prepare = files_prepare,
    .source = {.note = files_note,
               .classes_param = "classes",
               .count = files_count,
               .locate = files_locate,
               .ahead = files_ahead,
               .key_name = files_key_name,
               .in_name_order = files_in_name_order,
               .path_below = true,
               .key = files_key},
    .learner = {.side_file = files_side_file},
};
