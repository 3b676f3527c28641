/*
 * core/doc_internal.h - shared by the JSON and YAML readers.
 */
#ifndef HR_CORE_DOC_INTERNAL_H
#define HR_CORE_DOC_INTERNAL_H

#include "core/doc.h"

#define HR_DOC_DEPTH_MAX 64
#define HR_DOC_NODES_MAX 1000000
#define HR_DOC_BYTES_MAX ((size_t)64 << 20)

struct hr_doc_reader {
    const char *name; /* for messages */
    struct hr_error *error;
    size_t nodes, bytes; /* made so far; `bytes` counts only copies made by aliases */
    int depth;
};

struct hr_doc_mark {
    int line, column;
};

/* Fills the reader's error with "name:line:column: " and the message. Returns `code`. */
enum hr_err
hr__doc_fail(struct hr_doc_reader *reader, enum hr_err code, struct hr_doc_mark mark,
             const char *format, ...) HR_PRINTF(4, 5);

/* Creates a node at `mark` and counts it against the limit. */
enum hr_err hr__doc_node(struct hr_doc_reader *reader, enum hr_doc_kind kind,
                         struct hr_doc_mark mark, struct hr_doc **ret_doc);

/* Enter and leave a list or map. */
enum hr_err hr__doc_enter(struct hr_doc_reader *reader, struct hr_doc_mark mark);

/* Appends a pair without checking for duplicates. Takes key and value, also on
 * failure. */
enum hr_err hr__doc_push_pair(struct hr_doc *map, char *key, struct hr_doc *value,
                              struct hr_doc_mark mark);

/* Fails if a finished map has duplicate keys. */
enum hr_err hr__doc_check_keys(struct hr_doc_reader *reader, const struct hr_doc *map);

/* Sets kind and value of `doc` from a plain scalar or a string, which is copied. On
 * failure `doc` is unchanged. */
enum hr_err hr__doc_set_scalar(struct hr_doc *doc, const char *text, size_t length);
/* True if a plain scalar reads as a string. */
bool hr__doc_is_string(const char *text, size_t length);
enum hr_err hr__doc_set_string(struct hr_doc *doc, const char *text, size_t length);

/* Read a whole text. */
enum hr_err hr__doc_read_json(struct hr_doc_reader *reader, const char *text,
                              size_t bytes, struct hr_doc **ret_doc);
enum hr_err hr__doc_read_yaml(struct hr_doc_reader *reader, const char *text,
                              size_t bytes, struct hr_doc **ret_doc);

/* The pairs of a map sorted by key, duplicates in source order. The caller frees the
 * array with hr__free. NULL if the map is empty or memory runs out. */
const struct hr_doc_pair **hr__doc_sorted(const struct hr_doc *map);

#endif
