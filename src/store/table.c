/*
 * store/table.c - columns, their types, and CSV files as tables.
 *
 * All cells are kept as text while a file is read, because whether a column holds numbers
 * is known only at its end. Numbers are then converted in one pass and the text is freed.
 */
#include "store/table.h"
#include "core/alloc.h"
#include "core/error.h"
#include "core/str.h"
#include "store/csv.h"
#include "store/store.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FILE_BYTES_MAX ((size_t)16 << 30)
#define COLUMNS_MAX HR_CSV_CELLS_MAX
#define NAMES_SHOWN 20

static enum hr_err no_memory(const struct hr_table *table, struct hr_error *error)
{
    return hr__fail(error, HR_ERR_MEMORY, "out of memory while reading %s", table->path);
}

/* ---- filling ---- */

static void see(struct hr_table_column *column, unsigned seen, struct hr_table_place at)
{
    for (int bit = 0; bit < HR_SEEN_KINDS; bit++) {
        if ((seen & 1u << bit) && column->first[bit].line == 0)
            column->first[bit] = at;
    }
    column->seen |= seen;
}

/* Appends a cell to a column. */
static bool add_cell(struct hr_table_column *column, const char *text, size_t bytes)
{
    uint64_t from = column->offset != NULL ? column->offset[column->cells] : 0;

    if (!hr__array_room(&column->text, from, &column->text_room, bytes + 1, 1) ||
        !hr__array_room(&column->offset, column->cells, &column->offset_room, 2,
                        sizeof *column->offset))
        return false;
    if (bytes > 0)
        memcpy(column->text + from, text, bytes);
    column->offset[column->cells++] = from;
    column->offset[column->cells] = from + bytes;
    return true;
}

int hr__table_add_column(struct hr_table *table, const char *name, size_t bytes,
                         struct hr_table_place place)
{
    struct hr_table_column column = {.place = place};
    bool ok = table->column_count < COLUMNS_MAX &&
              hr__array_room(&table->columns, table->column_count, &table->column_room, 1,
                             sizeof *table->columns);

    if (ok && name != NULL)
        ok = (column.name = hr__strndup(name, bytes)) != NULL;
    if (table->types_only && table->rows > 1) {
        see(&column, HR_SEEN_MISSING, (struct hr_table_place){table->lines[0], 0});
        column.cells = table->rows - 1;
    }
    for (size_t row = 0; ok && !table->types_only && row + 1 < table->rows; row++) {
        see(&column, HR_SEEN_MISSING, (struct hr_table_place){table->lines[row], 0});
        ok = add_cell(&column, "", 0);
    }
    if (!ok) {
        hr__free(column.name);
        hr__free(column.text);
        hr__free(column.offset);
        return -1;
    }
    table->columns[table->column_count] = column;
    return (int)table->column_count++;
}

/* Where only types are kept, the lines of the first row and of this one are, too. */
bool hr__table_add_row(struct hr_table *table, int line)
{
    size_t at = table->types_only && table->rows > 0 ? 1 : table->rows;

    if (!hr__array_room(&table->lines, at, &table->line_room, 1, sizeof *table->lines))
        return false;
    table->lines[at] = line;
    table->rows++;
    return true;
}

static int last_line(const struct hr_table *table)
{
    size_t at = table->types_only && table->rows > 1 ? 1 : table->rows - 1;

    return table->lines[at];
}

bool hr__table_put(struct hr_table *table, int column, const char *text, size_t bytes,
                   unsigned seen, struct hr_table_place place)
{
    struct hr_table_column *to = &table->columns[column];

    assert(to->cells + 1 == table->rows);
    if (seen & ~to->seen)
        see(to, seen, place);
    if (!table->types_only)
        return add_cell(to, text, bytes);
    to->cells++;
    return true;
}

bool hr__table_end_row(struct hr_table *table)
{
    struct hr_table_place place = {last_line(table), 0};

    for (size_t i = 0; i < table->column_count; i++) {
        if (table->columns[i].cells < table->rows &&
            !hr__table_put(table, (int)i, "", 0, HR_SEEN_MISSING, place))
            return false;
    }
    return true;
}

void hr__table_finish(struct hr_table *table)
{
    for (size_t i = 0; i < table->column_count; i++) {
        hr__free(table->columns[i].name);
        hr__free(table->columns[i].text);
        hr__free(table->columns[i].offset);
        hr__free(table->columns[i].numbers);
    }
    hr__free(table->columns);
    hr__free(table->lines);
    hr__free(table->path);
    memset(table, 0, sizeof *table);
}

/* ---- what a cell is ---- */

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at;
}

unsigned hr__number_kind(const char *text, size_t bytes)
{
    const char *at = text, *end = text + bytes, *whole, *part;
    unsigned kind = HR_SEEN_INT;
    size_t digits;

    at += at < end && (*at == '-' || *at == '+');
    whole = at;
    at = skip_digits(at, end);
    digits = (size_t)(at - whole);
    if (at < end && *at == '.') {
        part = ++at;
        at = skip_digits(at, end);
        digits += (size_t)(at - part);
        kind = HR_SEEN_FLOAT;
    }
    if (digits == 0)
        return 0;
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        at += at < end && (*at == '-' || *at == '+');
        part = at;
        at = skip_digits(at, end);
        if (at == part)
            return 0;
        kind = HR_SEEN_FLOAT;
    }
    return at == end && bytes <= 400 ? kind : 0;
}

static bool parse_int(const char *text, size_t bytes, int64_t *ret_value)
{
    bool negative = text[0] == '-';
    uint64_t value = 0, limit = (uint64_t)INT64_MAX + negative;

    for (size_t i = text[0] == '-' || text[0] == '+'; i < bytes; i++) {
        uint64_t digit = (uint64_t)(text[i] - '0');

        if (value > (limit - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *ret_value = (int64_t)(negative ? 0 - value : value);
    return true;
}

static bool is_nan_word(const char *text, size_t bytes)
{
    static const char *const words[] = {"nan", "na", "n/a", "null", "none"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (bytes == strlen(words[i]) && strncasecmp(text, words[i], bytes) == 0)
            return true;
    }
    return false;
}

/* Whole numbers that do not fit an int64 are text, so that no digit is lost. */
unsigned hr__csv_kind(const struct hr_csv_cell *cell)
{
    int64_t value;
    unsigned kind;

    if (cell->bytes == 0)
        return cell->quoted ? HR_SEEN_TEXT : HR_SEEN_MISSING;
    kind = hr__number_kind(cell->text, cell->bytes);
    if (kind == HR_SEEN_INT && !parse_int(cell->text, cell->bytes, &value))
        return HR_SEEN_TEXT;
    if (kind == 0)
        return is_nan_word(cell->text, cell->bytes) ? HR_SEEN_NAN : HR_SEEN_TEXT;
    return kind;
}

/* ---- CSV ---- */

static bool has_name(const struct hr_csv *csv, const char *name)
{
    for (size_t i = 0; i < csv->count; i++) {
        if (csv->cells[i].bytes == strlen(name) &&
            strncasecmp(csv->cells[i].text, name, csv->cells[i].bytes) == 0)
            return true;
    }
    return false;
}

bool hr__csv_is_header(const struct hr_csv *csv, const char *const *known, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (has_name(csv, known[i]))
            return true;
    }
    for (size_t i = 0; i < csv->count; i++) {
        const struct hr_csv_cell *cell = &csv->cells[i];

        if (hr__number_kind(cell->text, cell->bytes) != 0 ||
            memchr(cell->text, '.', cell->bytes) != NULL ||
            memchr(cell->text, '/', cell->bytes) != NULL)
            return false;
    }
    return true;
}

static struct hr_table_place place_of(const struct hr_csv_cell *cell)
{
    return (struct hr_table_place){cell->line, cell->column};
}

static enum hr_err add_columns(struct hr_table *table, const struct hr_csv *csv)
{
    for (size_t i = 0; i < csv->count; i++) {
        const struct hr_csv_cell *cell = &csv->cells[i];
        const char *name = table->header ? cell->text : NULL;

        for (size_t k = 0; table->header && cell->bytes > 0 && k < i; k++) {
            if (strlen(table->columns[k].name) == cell->bytes &&
                memcmp(table->columns[k].name, cell->text, cell->bytes) == 0)
                return hr__fail_in(csv->error, HR_ERR_FORMAT, table->path, cell->line,
                                   cell->column, "two columns are called \"%s\"",
                                   table->columns[k].name);
        }
        if (hr__table_add_column(table, name, cell->bytes, place_of(cell)) < 0)
            return no_memory(table, csv->error);
    }
    return HR_OK;
}

static enum hr_err add_csv_row(struct hr_table *table, const struct hr_csv *csv)
{
    int line = csv->cells[0].line;

    if (csv->count != table->column_count)
        return hr__fail_in(csv->error, HR_ERR_FORMAT, table->path, line, 0,
                           "%zu cells, and %zu in the first line: put cells that contain "
                           "commas in quotes",
                           csv->count, table->column_count);
    if (!hr__table_add_row(table, line))
        return no_memory(table, csv->error);
    for (size_t i = 0; i < csv->count; i++) {
        const struct hr_csv_cell *cell = &csv->cells[i];

        if (!hr__table_put(table, (int)i, cell->text, cell->bytes, hr__csv_kind(cell),
                           place_of(cell)))
            return no_memory(table, csv->error);
    }
    return HR_OK;
}

static enum hr_err read_csv(struct hr_table *table, struct hr_csv *csv, const char *known)
{
    HR_TRY(hr__csv_next(csv));
    if (csv->count == 0)
        return HR_OK;
    table->header = hr__csv_is_header(csv, &known, known != NULL);
    HR_TRY(add_columns(table, csv));
    if (!table->header)
        HR_TRY(add_csv_row(table, csv));
    for (;;) {
        HR_TRY(hr__csv_next(csv));
        if (csv->count == 0)
            return HR_OK;
        HR_TRY(add_csv_row(table, csv));
    }
}

/* ---- files ---- */

static bool ends_in(const char *path, const char *ending)
{
    size_t length = strlen(path), bytes = strlen(ending);

    return length > bytes && strcasecmp(path + length - bytes, ending) == 0;
}

static enum hr_err check_zero(const struct hr_table *table, const char *text,
                              const char *end, struct hr_error *error)
{
    const char *zero = end > text ? memchr(text, '\0', (size_t)(end - text)) : NULL;
    int line = 1;

    if (zero == NULL)
        return HR_OK;
    for (; (text = memchr(text, '\n', (size_t)(zero - text))) != NULL; text++)
        line++;
    return hr__fail_in(error, HR_ERR_FORMAT, table->path, line, 0,
                       "a zero byte, so this is no text in UTF-8");
}

enum hr_err
hr__table_parse(const char *text, size_t bytes, const char *path, const char *known,
                struct hr_table *ret_table, struct hr_error *reterr)
{
    struct hr_csv csv = {.path = path, .error = reterr, .end = text + bytes};
    enum hr_err err;

    *ret_table = (struct hr_table){.path = hr__strdup(path)};
    if (ret_table->path == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    csv.at = text;
    if (bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        csv.at += 3;
    HR_TRY(check_zero(ret_table, csv.at, csv.end, reterr));
    if (ends_in(path, ".json") && csv.at < csv.end && *csv.at == '[')
        return hr__fail_in(reterr, HR_ERR_FORMAT, path, 1, 1,
                           "a JSON array: write one object a line, without brackets and "
                           "commas around them (JSON lines)");
    ret_table->json = ends_in(path, ".jsonl") || ends_in(path, ".ndjson") ||
                      (csv.at < csv.end && *csv.at == '{');
    if (ret_table->json)
        return hr__table_read_json(ret_table, csv.at, (size_t)(csv.end - csv.at), reterr);
    err = read_csv(ret_table, &csv, known);
    hr__csv_finish(&csv);
    return err;
}

enum hr_err hr__table_read(const char *uri, const char *known, struct hr_table *ret_table,
                           struct hr_error *reterr)
{
    size_t bytes;
    char *text;
    enum hr_err err;

    memset(ret_table, 0, sizeof *ret_table);
    HR_TRY(hr__store_load(uri, FILE_BYTES_MAX, &text, &bytes, reterr));
    err = hr__table_parse(text, bytes, uri, known, ret_table, reterr);
    hr__free(text);
    return err;
}

/* ---- use ---- */

int hr__table_find(const struct hr_table *table, const char *name)
{
    int found = -1, alike = 0;

    for (size_t i = 0; i < table->column_count; i++) {
        const char *other = table->columns[i].name;

        if (other != NULL && strcmp(other, name) == 0)
            return (int)i;
        if (other != NULL && strcasecmp(other, name) == 0 && alike++ == 0)
            found = (int)i;
    }
    return alike == 1 ? found : -1;
}

void hr__table_names(const struct hr_table *table, struct hr_str *out)
{
    for (size_t i = 0; i < table->column_count && i < NAMES_SHOWN; i++)
        hr__str_addf(out, "%s\"%s\"", i > 0 ? ", " : "",
                     table->columns[i].name != NULL ? table->columns[i].name : "");
    if (table->column_count > NAMES_SHOWN)
        hr__str_addf(out, " and %zu more", table->column_count - NAMES_SHOWN);
}

const char *
hr__table_text(const struct hr_table_column *column, uint64_t row, size_t *ret_bytes)
{
    assert(row < column->cells && column->numbers == NULL);
    *ret_bytes = column->offset[row + 1] - column->offset[row];
    return column->text + column->offset[row];
}

const char *hr__table_type_name(enum hr_table_type type)
{
    static const char *const names[] = {"text", "int64", "float64", "bool", "json"};

    return names[type];
}

static enum hr_err
bad_cell(const struct hr_table *table, const struct hr_table_column *column, int bit,
         const char *what, struct hr_error *error)
{
    const struct hr_table_place *at = &column->first[bit];

    return hr__fail_in(error, HR_ERR_FORMAT, table->path, at->line, at->column,
                       "column \"%s\": %s", column->name != NULL ? column->name : "",
                       what);
}

static const char no_value[] =
    "a list, an object or a text with a zero byte is no value of a column";
static const char is_missing[] = "the value is missing";

/* The number of a flag. */
static int bit_of(enum hr_table_seen seen)
{
    return __builtin_ctz((unsigned)seen);
}

/* Numbers, and what else there is: true or false, texts. */
static const char *
settle_numbers(const struct hr_table *table, struct hr_table_column *column, int *ret_bit)
{
    unsigned seen = column->seen;

    column->type = seen & HR_SEEN_FLOAT ? HR_TABLE_FLOAT : HR_TABLE_INT;
    *ret_bit = bit_of(HR_SEEN_TEXT);
    if (table->json && (seen & HR_SEEN_TEXT))
        return "a text, and other lines have numbers";
    *ret_bit = bit_of(HR_SEEN_BOOL);
    if (seen & HR_SEEN_BOOL)
        return "true or false, and other lines have numbers";
    if (seen & HR_SEEN_TEXT)
        column->type = HR_TABLE_TEXT;
    return NULL;
}

const char *hr__table_settle(const struct hr_table *table, struct hr_table_column *column,
                             int *ret_bit)
{
    unsigned seen = column->seen;

    if (seen & (HR_SEEN_INT | HR_SEEN_FLOAT))
        return settle_numbers(table, column, ret_bit);
    column->type = seen & HR_SEEN_BOOL ? HR_TABLE_BOOL : HR_TABLE_TEXT;
    *ret_bit = bit_of(HR_SEEN_TEXT);
    if ((seen & HR_SEEN_BOOL) && (seen & HR_SEEN_TEXT))
        return "a text, and other lines have true or false";
    return NULL;
}

/* The same, with a value in every row. */
static enum hr_err settle(const struct hr_table *table, struct hr_table_column *column,
                          struct hr_error *error)
{
    unsigned seen = column->seen;
    const char *wrong;
    int bit;

    if (seen & HR_SEEN_MISSING)
        return bad_cell(table, column, bit_of(HR_SEEN_MISSING), is_missing, error);
    if (seen & HR_SEEN_OTHER)
        return bad_cell(table, column, bit_of(HR_SEEN_OTHER), no_value, error);
    if (seen & HR_SEEN_NESTED)
        return bad_cell(table, column, bit_of(HR_SEEN_NESTED), no_value, error);
    wrong = hr__table_settle(table, column, &bit);
    if (wrong != NULL)
        return bad_cell(table, column, bit, wrong, error);
    if (column->type != HR_TABLE_TEXT && (seen & HR_SEEN_NAN))
        return bad_cell(table, column, bit_of(HR_SEEN_NAN),
                        "the value is missing, and other lines have numbers", error);
    return HR_OK;
}

static void free_text(struct hr_table_column *column)
{
    hr__free(column->text);
    hr__free(column->offset);
    column->text = NULL;
    column->offset = NULL;
}

bool hr__table_convert(enum hr_table_type type, const char *text, size_t bytes, void *to)
{
    if (type == HR_TABLE_INT)
        return parse_int(text, bytes, to);
    if (type == HR_TABLE_FLOAT)
        return hr__double_parse(text, bytes, to) && isfinite(*(double *)to);
    *(bool *)to = text[0] == 't' || text[0] == 'T';
    return true;
}

static enum hr_err convert(const struct hr_table *table, struct hr_table_column *column,
                           struct hr_error *error)
{
    size_t item = column->type == HR_TABLE_BOOL ? sizeof(bool) : sizeof(int64_t);

    column->numbers = hr__malloc(column->cells * item + 1);
    if (column->numbers == NULL)
        return no_memory(table, error);
    for (size_t row = 0; row < column->cells; row++) {
        const char *text = column->text + column->offset[row];
        size_t bytes = column->offset[row + 1] - column->offset[row];

        if (!hr__table_convert(column->type, text, bytes,
                               (char *)column->numbers + row * item))
            return hr__fail_in(error, HR_ERR_FORMAT, table->path, table->lines[row], 0,
                               "column \"%s\": \"%.*s\" is no %s",
                               column->name != NULL ? column->name : "",
                               bytes < 40 ? (int)bytes : 40, text,
                               hr__table_type_name(column->type));
    }
    free_text(column);
    return HR_OK;
}

enum hr_err hr__table_use(struct hr_table *table, int at, struct hr_error *reterr)
{
    struct hr_table_column *column = &table->columns[at];

    if (column->used)
        return HR_OK;
    HR_TRY(settle(table, column, reterr));
    if (column->type != HR_TABLE_TEXT)
        HR_TRY(convert(table, column, reterr));
    column->used = true;
    return HR_OK;
}

enum hr_err hr__table_use_text(struct hr_table *table, int at, struct hr_error *reterr)
{
    struct hr_table_column *column = &table->columns[at];

    if (column->seen & HR_SEEN_MISSING)
        return bad_cell(table, column, bit_of(HR_SEEN_MISSING), is_missing, reterr);
    if (column->seen & HR_SEEN_OTHER)
        return bad_cell(table, column, bit_of(HR_SEEN_OTHER), no_value, reterr);
    if (column->seen & HR_SEEN_NESTED)
        return bad_cell(table, column, bit_of(HR_SEEN_NESTED), no_value, reterr);
    assert(column->numbers == NULL);
    column->type = HR_TABLE_TEXT;
    column->used = true;
    return HR_OK;
}

/* ---- rows ---- */

void hr__table_drop_unused(struct hr_table *table)
{
    for (size_t i = 0; i < table->column_count; i++) {
        if (!table->columns[i].used)
            free_text(&table->columns[i]);
    }
}

static void keep_cells(struct hr_table_column *column, const bool *keep)
{
    size_t rows = column->cells, kept = 0;
    uint64_t bytes = 0;

    for (size_t row = 0; row < rows; row++) {
        if (!keep[row])
            continue;
        if (column->type == HR_TABLE_TEXT) {
            uint64_t from = column->offset[row], to = column->offset[row + 1];

            memmove(column->text + bytes, column->text + from, to - from);
            column->offset[kept] = bytes;
            bytes += to - from;
        } else if (column->type == HR_TABLE_BOOL) {
            ((bool *)column->numbers)[kept] = ((bool *)column->numbers)[row];
        } else {
            ((int64_t *)column->numbers)[kept] = ((int64_t *)column->numbers)[row];
        }
        kept++;
    }
    if (column->type == HR_TABLE_TEXT && rows > 0)
        column->offset[kept] = bytes;
    column->cells = kept;
}

void hr__table_keep(struct hr_table *table, const bool *keep)
{
    size_t kept = 0;

    for (size_t i = 0; i < table->column_count; i++) {
        if (table->columns[i].used)
            keep_cells(&table->columns[i], keep);
    }
    for (size_t row = 0; row < table->rows; row++) {
        if (keep[row])
            table->lines[kept++] = table->lines[row];
    }
    table->rows = kept;
}
