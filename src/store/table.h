/*
 * store/table.h - a file of columns: CSV with or without a header, or JSON lines.
 *
 * A table is read whole. The type of a column follows from all of its cells. Each cell
 * keeps its line, for error messages. Columns that are not used are not checked.
 */
#ifndef HR_STORE_TABLE_H
#define HR_STORE_TABLE_H

#include "headrace/base.h"

enum hr_table_type {
    HR_TABLE_TEXT,
    HR_TABLE_INT,   /* int64_t */
    HR_TABLE_FLOAT, /* double; whole numbers among them are converted */
    HR_TABLE_BOOL,  /* bool, of JSON */
    HR_TABLE_JSON,  /* any value, as compact JSON; of rows that are read one by one */
};

struct hr_table_place {
    int line, column; /* line 0: nowhere; column 0: unknown */
};

/* What the cells of a column are, while it is read. */
enum hr_table_seen {
    HR_SEEN_TEXT = 1,
    HR_SEEN_INT = 2,
    HR_SEEN_FLOAT = 4,
    HR_SEEN_BOOL = 8,
    HR_SEEN_MISSING = 16, /* nothing, or null */
    HR_SEEN_NAN = 32,     /* "nan", "NA": text, or missing among numbers */
    HR_SEEN_OTHER = 64,   /* a text with a zero byte */
    HR_SEEN_NESTED = 128, /* a list or an object; its text is compact JSON */
};
#define HR_SEEN_KINDS 8

struct hr_table_column {
    char *name;                  /* "" where the header has none; NULL without a header */
    struct hr_table_place place; /* of the name */
    enum hr_table_type type;     /* once used */
    bool used;
    unsigned seen;                              /* enum hr_table_seen */
    struct hr_table_place first[HR_SEEN_KINDS]; /* by bit */
    /* TEXT, and before use: cell i is text[offset[i]] to text[offset[i + 1]] */
    char *text;
    uint64_t *offset;
    size_t cells, text_room, offset_room;
    void *numbers; /* INT, FLOAT, BOOL, once used */
};

struct hr_table {
    char *path;  /* for messages */
    bool header; /* the first line gave the names */
    bool json;
    bool types_only; /* cells are not kept: the table only learns the types of columns */
    size_t rows, column_count, column_room, line_room;
    struct hr_table_column *columns;
    int *lines; /* where each row begins */
};

/* Reads the object `uri`: JSON lines if its name ends in ".jsonl" or ".ndjson" or its
 * text begins with '{', else CSV. The first line of a CSV file is a header if one of its
 * cells is `known` (or NULL), or if no cell is a number or contains '.' or '/'. Errors
 * name file, line and column. Free with hr__table_finish, also after failure. */
HR_CHECK enum hr_err hr__table_read(const char *uri, const char *known,
                                    struct hr_table *ret_table, struct hr_error *reterr);
HR_CHECK enum hr_err
hr__table_parse(const char *text, size_t bytes, const char *path, const char *known,
                struct hr_table *ret_table, struct hr_error *reterr);
void hr__table_finish(struct hr_table *table);

/* The column called `name`, or the only one that is when ASCII case is ignored; -1. */
int hr__table_find(const struct hr_table *table, const char *name);

/* Appends the names of all columns: `"a", "b"`. */
struct hr_str;
void hr__table_names(const struct hr_table *table, struct hr_str *out);

/* Settles the type of a column and converts its cells. Fails for a missing value and for
 * cells that do not go together, naming the first one's place. */
HR_CHECK enum hr_err
hr__table_use(struct hr_table *table, int column, struct hr_error *reterr);

/* The same for a column that is TEXT whatever its cells look like. */
HR_CHECK enum hr_err
hr__table_use_text(struct hr_table *table, int column, struct hr_error *reterr);

/* A cell of a TEXT column; not terminated. */
const char *
hr__table_text(const struct hr_table_column *column, uint64_t row, size_t *ret_bytes);

/* Frees the cells of columns that are not used. */
void hr__table_drop_unused(struct hr_table *table);

/* Removes the rows with keep[row] false; call hr__table_drop_unused before. */
void hr__table_keep(struct hr_table *table, const bool *keep);

const char *hr__table_type_name(enum hr_table_type type);

/* ---- for those that fill a table ---- */

/* A new column; -1 when out of memory. Cells of earlier rows are missing. */
int hr__table_add_column(struct hr_table *table, const char *name, size_t bytes,
                         struct hr_table_place place);
/* Begins a row; then put each cell of it once at most. False when out of memory. */
bool hr__table_add_row(struct hr_table *table, int line);
bool hr__table_put(struct hr_table *table, int column, const char *text, size_t bytes,
                   unsigned seen, struct hr_table_place place);
/* Ends the row: cells that were not put are missing. */
bool hr__table_end_row(struct hr_table *table);

/* table_json.c: reads JSON lines into an empty table. */
HR_CHECK enum hr_err hr__table_read_json(struct hr_table *table, const char *text,
                                         size_t bytes, struct hr_error *error);

/* Adds the object that a line is as a row. When it is none, HR_ERR_FORMAT with the
 * column, and the table is as before. */
HR_CHECK enum hr_err
hr__table_add_json(struct hr_table *table, int line, const char *text, size_t bytes,
                   struct hr_error *reterr);

/* ---- cells, one by one ---- */

/* The type that fits all cells of a column so far; missing values fit any. Returns NULL,
 * or what is wrong with the cell at column->first[*ret_bit]. */
const char *hr__table_settle(const struct hr_table *table, struct hr_table_column *column,
                             int *ret_bit);

/* Converts a cell that is an INT, a FLOAT or a BOOL as `seen` says, to that type at `to`;
 * false: it does not fit. */
bool hr__table_convert(enum hr_table_type type, const char *text, size_t bytes, void *to);

/* What a cell of CSV is. */
struct hr_csv_cell;
unsigned hr__csv_kind(const struct hr_csv_cell *cell);
/* Whether a record of CSV is a header: one of its cells is among the `known` names (case
 * ignored), or no cell is a number or contains '.' or '/'. */
struct hr_csv;
bool hr__csv_is_header(const struct hr_csv *csv, const char *const *known, size_t count);

/* A member of a JSON object; the texts are valid during the call only. */
struct hr_json_member {
    const char *key, *text;
    size_t key_bytes, bytes;
    unsigned seen;
    int column; /* in the line, from 1 */
};
typedef enum hr_err hr_json_member_fn(void *user, const struct hr_json_member *member);

/* Calls `each` for the members of the object that a line is, unless something is wrong
 * with the line: HR_ERR_FORMAT, "no JSON object: ..." with the column, or HR_ERR_MEMORY.
 * Other errors are those of `each`. */
HR_CHECK enum hr_err
hr__json_members(const char *line, size_t bytes, hr_json_member_fn *each, void *user,
                 struct hr_error *reterr);
/* HR_SEEN_INT, HR_SEEN_FLOAT or 0: whether the text is a decimal number. */
unsigned hr__number_kind(const char *text, size_t bytes);

#endif
