/*
 * graph/form.h - reads the maps of plans and profiles: keys that must be there, of their
 * kind, and no others.
 */
#ifndef HR_GRAPH_FORM_H
#define HR_GRAPH_FORM_H

#include "core/doc.h"
#include "core/error.h"

/* A file that is read, for messages. */
struct hr_form {
    const char *name;
    struct hr_error *error;
};

/* Fails at a value or a pair of the file. */
#define HR_FORM_FAIL(form, code, at, ...)                                                \
    hr__fail_in((form)->error, code, (form)->name, (at)->line, (at)->column, __VA_ARGS__)

/* Keys that a map may have; they outlive the struct. */
struct hr_form_keys {
    const char *names[32];
    size_t count;
};
void hr__form_add_key(struct hr_form_keys *keys, const char *name);

/* Fails with the nearest key. */
HR_CHECK enum hr_err
hr__form_check_keys(const struct hr_form *form, const struct hr_doc *map,
                    const struct hr_form_keys *keys);

/* Fails: the value under `key` is not what it must be ("a list"). */
enum hr_err hr__form_wrong_type(const struct hr_form *form, const struct hr_doc *at,
                                const char *key, const char *wants);

/* The value under a key that must be there; `wants` names its kind. */
HR_CHECK enum hr_err
hr__form_need(const struct hr_form *form, const struct hr_doc *map, const char *key,
              enum hr_doc_kind kind, const char *wants, const struct hr_doc **ret_value);

/* The same for a string without NULs. */
HR_CHECK enum hr_err
hr__form_need_text(const struct hr_form *form, const struct hr_doc *map, const char *key,
                   const char **ret_text);

/* The value under a key, NULL if it is not there. */
HR_CHECK enum hr_err
hr__form_get(const struct hr_form *form, const struct hr_doc *map, const char *key,
             enum hr_doc_kind kind, const char *wants, const struct hr_doc **ret_value);

/* The file is a `what` ("plan") of this version, which key "headrace_WHAT" says. */
HR_CHECK enum hr_err
hr__form_check_version(const struct hr_form *form, const struct hr_doc *root,
                       const char *what, int version);

#endif
