/*
 * core/doc.h - a YAML or JSON text as a tree of values with source positions.
 *
 * Used for graphs, iterator states, label lists and index headers. The text is read as
 * strict JSON if the name ends in .json or the text starts with '{', else as YAML 1.2
 * core schema. Depth, number of values and text size are limited; copies made by YAML
 * aliases count. Duplicate keys are an error.
 */
#ifndef HR_CORE_DOC_H
#define HR_CORE_DOC_H

#include "headrace/base.h"

enum hr_doc_kind {
    HR_DOC_NULL,
    HR_DOC_BOOL,
    HR_DOC_INT,
    HR_DOC_DOUBLE,
    HR_DOC_STRING,
    HR_DOC_LIST,
    HR_DOC_MAP,
};

struct hr_doc {
    enum hr_doc_kind kind;
    int line, column; /* 1-based; 0 when built by a program */
    bool quoted;      /* STRING: quoted in the source */
    union {
        bool boolean;
        int64_t integer;
        double number;
        struct {
            char *text; /* NUL-terminated; may contain NULs */
            size_t length;
        } string;
        struct {
            struct hr_doc **items;
            size_t count;
        } list;
        struct {
            struct hr_doc_pair *pairs; /* in source order */
            size_t count;
        } map;
    } as;
};

struct hr_doc_pair {
    char *key;
    int line, column;
    struct hr_doc *value;
};

/* Parses `bytes` bytes of `text`; `name` selects the format and appears in messages. On
 * failure *reterr has file, line and column. */
HR_CHECK enum hr_err hr__doc_parse(const char *text, size_t bytes, const char *name,
                                   struct hr_doc **ret_doc, struct hr_error *reterr);
HR_CHECK enum hr_err
hr__doc_parse_file(const char *path, struct hr_doc **ret_doc, struct hr_error *reterr);
/* Appends what a JSON string means; `text` is what is between its quotes. False if it is
 * malformed, also if it is not UTF-8, or out of memory (hr__str_ok). */
struct hr_str;
bool hr__doc_unescape(const char *text, size_t bytes, struct hr_str *out);
void hr__doc_destroy(struct hr_doc *doc);
struct hr_doc *hr__doc_copy(const struct hr_doc *doc);
bool hr__doc_equal(
    const struct hr_doc *a,
    const struct hr_doc *b); /* ignores key order, positions, quotes; 1 == 1.0 */

/* Constructors; NULL when out of memory. append and set take ownership of `value`, also
 * on failure; of a value that is NULL they return HR_ERR_MEMORY. */
struct hr_doc *hr__doc_new(enum hr_doc_kind kind);
struct hr_doc *hr__doc_int(int64_t value);
struct hr_doc *hr__doc_double(double value);
struct hr_doc *hr__doc_bool(bool value);
struct hr_doc *hr__doc_string(const char *text);
struct hr_doc *hr__doc_string_n(const char *text, size_t length);
HR_CHECK enum hr_err hr__doc_append(struct hr_doc *list, struct hr_doc *value);
HR_CHECK enum hr_err
hr__doc_set(struct hr_doc *map, const char *key, struct hr_doc *value);

/* The value of `key`, or NULL if absent or if `map` is not a map. */
struct hr_doc *hr__doc_get(const struct hr_doc *map, const char *key);

/* The string value of `key`; NULL if absent or not a string. */
const char *hr__doc_get_string(const struct hr_doc *map, const char *key);

/* "map", "number", ... for messages. */
const char *hr__doc_kind_name(enum hr_doc_kind kind);

/* Reads an unquoted YAML scalar ("12", "true", "0.5", "abc") by the core schema; also
 * used for -p name=value and "${param}". NULL when out of memory. */
struct hr_doc *hr__doc_scalar(const char *text, size_t length);

/* Printers. JSON is compact or indented by 2. YAML is in block style and quotes what
 * would read back differently. Reading the output gives an equal tree. */
void hr__doc_print_json(const struct hr_doc *doc, bool pretty, struct hr_str *out);
void hr__doc_print_yaml(const struct hr_doc *doc, struct hr_str *out);
/* Canonical form: compact JSON, keys sorted, whole numbers written as integers. */
void hr__doc_print_canonical(const struct hr_doc *doc, struct hr_str *out);

#endif
