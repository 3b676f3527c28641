/*
 * source.csv - the rows of CSV files: a record a row, its cells are fields.
 *
 * Where rows lie is found when the graph is checked (store/csv_scan.c); they are parsed
 * when they are read (store/csv.c).
 */
#include "ops/row_source.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/str.h"
#include "store/csv_scan.h"

struct csv {
    struct hr_row_params row;
    int header;
    const char *delimiter;
    struct hr_names names;
};

static const char *const header_words[] = {"auto", "yes", "no", NULL};

static const struct hr_param csv_params[] = {
    HR_P_PATH(struct hr_row_params, path, .required = true, .not_identity = true,
              .help = "a file; or several: \"part-{000..099}.csv\", a pattern such as "
                      "\"part-*.csv\", or a folder of .csv files"),
    HR_P_ROW_COLUMNS,
    HR_P_ROW_TYPES,
    HR_P_ENUM(struct csv, header, .names = header_words, .fallback = "auto",
              .help =
                  "whether the first line of each file names the columns; auto: if it "
                  "has a name that columns or types has, or no cell that is a number "
                  "or contains a dot or a slash; refused where numbers follow such a "
                  "cell, or it is one name that contains ;, | or a tab"),
    HR_P_STRINGS(struct csv, names, .fallback = "[]", .items_min = 0,
                 .items_max = HR_LIST_MAX,
                 .help = "names of the columns in their order, where the files have no "
                         "header or another one; default without a header: column_1, "
                         "column_2 and so on"),
    HR_P_STRING(struct csv, delimiter, .fallback = ",",
                .help = "what stands between cells: one ASCII character, or tab"),
    HR_P_ROW_MAX_BYTES,
    HR_P_SHARDS(struct hr_row_params),
};

struct state {
    struct hr_row_source row;
    char delimiter;
    size_t cells;                  /* of a row */
    int columns[HR_CSV_CELLS_MAX]; /* of the source, by cell; -1: none */
};

/* ---- rows ---- */

static enum hr_err parser_create(void **ret_object, struct hr_error *reterr)
{
    *ret_object = hr__calloc(1, sizeof(struct hr_csv));
    return *ret_object != NULL ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

static void parser_destroy(void *object)
{
    hr__csv_finish(object);
    hr__free(object);
}

static const struct hr_thread_class parser_class = {"csv parser", parser_create,
                                                    parser_destroy};

/* What the parser says, without the place, which is that of the row. */
static enum hr_err fail_row(const struct hr_error *why, size_t bytes, enum hr_err code,
                            size_t *ret_at, struct hr_error *reterr)
{
    const char *words = strstr(why->message, ": ");

    *ret_at =
        why->line == 1 && (size_t)why->column <= bytes ? (size_t)why->column - 1 : 0;
    return hr__fail(reterr, code, "%s", words != NULL ? words + 2 : why->message);
}

static enum hr_err give_cells(const struct state *state, const struct hr_csv *csv,
                              const char *row, size_t bytes, hr_row_cell_fn *each,
                              void *user, size_t *ret_at, struct hr_error *reterr)
{
    if (csv->count != state->cells) {
        *ret_at = 0;
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "%zu cells, and %zu in the first line: put cells that contain "
                        "the delimiter in quotes",
                        csv->count, state->cells);
    }
    for (size_t i = 0; i < csv->count; i++) {
        const struct hr_csv_cell *from = &csv->cells[i];
        bool inside = from->text >= row && from->text <= row + bytes;
        struct hr_row_cell cell = {.at = inside ? (size_t)(from->text - row) : 0,
                                   .bytes = from->bytes,
                                   .text = from->text,
                                   .seen = hr__csv_kind(from)};

        if (state->columns[i] < 0)
            continue;
        cell.column = (size_t)state->columns[i];
        HR_TRY(each(user, &cell));
    }
    return HR_OK;
}

static enum hr_err csv_parse(const struct hr_row_source *source, struct hr_thread *thread,
                             const char *row, size_t bytes, hr_row_cell_fn *each,
                             void *user, size_t *ret_at, struct hr_error *reterr)
{
    const struct state *state = (const struct state *)source;
    struct hr_csv once = {0}, *csv = &once;
    struct hr_error why;
    enum hr_err code;
    void *object;

    hr__error_init(&why);
    if (thread != NULL) {
        HR_TRY(hr__thread_object(thread, &parser_class, &object, reterr));
        csv = object;
    }
    csv->path = "row";
    csv->error = &why;
    csv->delimiter = state->delimiter;
    csv->at = csv->line_begin = row;
    csv->end = row + bytes;
    csv->line = 0;
    code = hr__csv_next(csv);
    if (code == HR_OK && csv->at < csv->end)
        code = hr__fail_in(&why, HR_ERR_FORMAT, csv->path, 1, 1,
                           "a line end that is not in quotes");
    csv->error = NULL;
    if (code != HR_OK)
        code = fail_row(&why, bytes, code == HR_ERR_LIMIT ? HR_ERR_FORMAT : code, ret_at,
                        reterr);
    else
        code = give_cells(state, csv, row, bytes, each, user, ret_at, reterr);
    hr__csv_finish(&once);
    return code;
}

static const struct hr_row_format format = {.json = false, .parse = csv_parse};

/* ---- columns ---- */

static void csv_close(void *state)
{
    hr__row_source_finish(state);
    hr__shard_source_close(state);
}

static enum hr_err bad_delimiter(const struct csv *p, struct hr_error *error)
{
    memcpy(error->param, "delimiter", sizeof "delimiter");
    return hr__fail(error, HR_ERR_ARGUMENT,
                    "delimiter is one ASCII character that is no quote, blank or line "
                    "end, or tab, not \"%.20s\"",
                    p->delimiter);
}

static enum hr_err
read_delimiter(const struct csv *p, char *ret_delimiter, struct hr_error *error)
{
    const char *text = p->delimiter;

    *ret_delimiter = '\t';
    if (strcmp(text, "tab") == 0 || strcmp(text, "\t") == 0 || strcmp(text, "\\t") == 0)
        return HR_OK;
    *ret_delimiter = text[0];
    if (strlen(text) != 1 || (unsigned char)text[0] >= 0x80 ||
        strchr("\" \r\n", text[0]) != NULL)
        return bad_delimiter(p, error);
    return HR_OK;
}

/* The names that count: the parameter's, the header's, or numbers. */
static enum hr_err name_columns(const struct csv *p, const struct hr_csv_scan *scan,
                                char **names, struct hr_error *error)
{
    char number[32];

    if (p->names.count > 0 && scan->begun && (size_t)p->names.count != scan->columns) {
        memcpy(error->param, "names", sizeof "names");
        return hr__fail(error, HR_ERR_ARGUMENT, "%s: %d names, and %zu columns",
                        p->row.path, p->names.count, scan->columns);
    }
    for (size_t i = 0; i < scan->columns; i++) {
        const char *name = number;

        snprintf(number, sizeof number, "column_%zu", i + 1);
        if (p->names.count > 0)
            name = p->names.values[i];
        else if (scan->has_header)
            name = scan->names[i];
        if (!hr__utf8_is_valid(name, strlen(name)))
            return hr__fail(error, HR_ERR_FORMAT,
                            "%s: the name of column %zu is not UTF-8: save the file as "
                            "UTF-8",
                            p->row.path, i + 1);
        names[i] = hr__strdup(name);
        if (names[i] == NULL)
            return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    }
    return HR_OK;
}

static void map_columns(struct state *state, char *const *names)
{
    for (size_t i = 0; i < state->cells; i++)
        state->columns[i] =
            hr__row_source_column(&state->row, names[i], strlen(names[i]), 0);
}

/* A first row without numbers above columns of numbers: a header with a dot or a slash in
 * a name, which makes it look like names of files. */
static bool is_like_header(const struct hr_table *table)
{
    const int text = __builtin_ctz(HR_SEEN_TEXT);
    bool numbers = false;

    for (size_t i = 0; i < table->column_count; i++) {
        const struct hr_table_column *column = &table->columns[i];

        if (!(column->seen & (HR_SEEN_INT | HR_SEEN_FLOAT)))
            continue;
        if (!(column->seen & HR_SEEN_TEXT) || column->first[text].line != 1)
            return false;
        numbers = true;
    }
    return numbers;
}

/* A header that holds another delimiter makes one column of the whole file. */
static enum hr_err check_delimiter(const struct csv *p, const struct hr_csv_scan *scan,
                                   struct hr_error *error)
{
    char other;

    if (p->header != HR_CSV_AUTO || !scan->has_header || scan->columns != 1 ||
        p->names.count > 0)
        return HR_OK;
    other = scan->names[0][strcspn(scan->names[0], ";\t|")];
    if (other == '\0')
        return HR_OK;
    return hr__fail(error, HR_ERR_FORMAT,
                    "%s: the cells seem to be separated by %s: say delimiter: %s, or "
                    "header: yes if \"%.80s\" is one name",
                    p->row.path,
                    other == '\t'  ? "tabs"
                    : other == ';' ? "semicolons"
                                   : "bars",
                    other == '\t'  ? "tab"
                    : other == ';' ? "\";\""
                                   : "\"|\"",
                    scan->names[0]);
}

static enum hr_err settle(struct state *state, const struct csv *p,
                          const struct hr_csv_scan *scan, struct hr_error *error)
{
    char **names = hr__calloc(scan->columns + 1, sizeof *names);
    struct hr_table table = {.header = scan->has_header};
    enum hr_err code;

    if (names == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    state->cells = scan->columns;
    code = name_columns(p, scan, names, error);
    if (code == HR_OK)
        code = check_delimiter(p, scan, error);
    if (code == HR_OK)
        code = hr__row_source_choose(&state->row, &p->row, scan->begun ? names : NULL,
                                     scan->columns, &table, error);
    if (code == HR_OK) {
        map_columns(state, names);
        code = hr__row_source_types(&state->row, &table, error);
    }
    if (code == HR_OK && p->header == HR_CSV_AUTO && !scan->has_header &&
        is_like_header(&table))
        code = hr__fail(error, HR_ERR_FORMAT,
                        "%s: the first line has texts where the others have numbers: say "
                        "whether it names the columns, header: yes or header: no",
                        p->row.path);
    hr__table_finish(&table);
    for (size_t i = 0; i < scan->columns; i++)
        hr__free(names[i]);
    hr__free(names);
    return code;
}

/* Names that make the first line a header. */
static size_t list_known(const struct csv *p, const char **known)
{
    size_t count = 0;

    for (int i = 0; i < p->row.columns.count; i++)
        if (strcmp(p->row.columns.values[i], "*") != 0)
            known[count++] = p->row.columns.values[i];
    for (int i = 0; i < p->row.types.count; i++)
        known[count++] = p->row.types.keys[i];
    return count;
}

static enum hr_err
csv_prepare(const void *params, void **ret_state, struct hr_error *error)
{
    const struct csv *p = params;
    const char *known[2 * HR_LIST_MAX];
    struct hr_csv_scan scan = {.header = (enum hr_csv_header)p->header,
                               .known = known,
                               .known_count = list_known(p, known),
                               .bytes_max = (uint64_t)p->row.max_bytes};
    struct hr_packed_limits packed = hr__unpack_limits(&p->row.shards);
    char text[HR_CSV_FORMAT_BYTES];
    const struct hr_shard_saving saving = {
        .format = text, .path = p->row.shards.index, .look = hr__csv_look};
    struct state *state;
    enum hr_err code;
    void *made;

    HR_TRY(read_delimiter(p, &scan.delimiter, error));
    hr__csv_format(&scan, text);
    code = hr__shard_source_open(p->row.path, ".csv", hr__csv_scan, &scan, &packed,
                                 &saving, sizeof *state, &made, error);
    if (code == HR_OK) {
        state = made;
        state->row.format = &format;
        state->delimiter = scan.delimiter;
        code = settle(state, p, &scan, error);
        if (code == HR_OK)
            *ret_state = state;
        else
            csv_close(state);
    }
    hr__csv_scan_finish(&scan);
    return code;
}

const struct hr_op hr_op_source_csv = {
    .name = "source.csv",
    .summary = "the rows of CSV files, with typed fields",
    .doc =
        "RFC 4180: cells in quotes may contain delimiters, line ends and quotes, which "
        "are doubled. Lines end in LF or CR LF; blanks around a cell, blank lines and a "
        "byte order mark do not count. Several files have the same header. The columns "
        "that `columns` names become fields: int64, float64, bool (true or false, case "
        "ignored) or text. "
        "Types that are not declared follow from all rows, which are read once for it "
        "when the graph is checked: whole numbers are int64, other numbers among them "
        "make float64, anything else makes text, which holds cells as they are written. "
        "Bytes of texts are not checked: they may be any encoding.\n\n"
        "A row with more or fewer cells than the first line, a value of another type and "
        "a missing value (an empty cell; among numbers also nan, NA, N/A, null, none) "
        "without a default are bad records, whose message names file, line, byte and "
        "column. A quote that is not closed within `max_bytes` costs its line. Rows can "
        "be read in any order, so shuffle, split, shard and resume work as for files; 8 "
        "bytes of memory are kept per row. The identity of the source is the contents of "
        "its files.\n\n" HR_SHARD_INDEX_DOC "\n\n" HR_UNPACK_DOC,
    .version = 1,
    .kind = HR_OP_SOURCE,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(csv_params, struct csv),
    .binds = hr__row_source_binds,
    .infer = hr__row_source_infer,
    .open = hr__row_source_open,
    .close = csv_close,
    .identity = hr__shard_source_identity,
    .apply = hr__row_source_apply,
    .prepare = csv_prepare,
    .source = HR_ROW_SOURCE,
    .memory = HR_SHARD_MEMORY,
};
