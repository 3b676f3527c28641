/*
 * headrace/op.h - the available operators and their parameters.
 */
#ifndef HR_OP_H
#define HR_OP_H

#include "headrace/base.h"

HR_BEGIN_DECLS

/* A parameter as text. Strings live as long as the library. */
struct hr_param_info {
    const char *name;
    const char *type;     /* "int", "float", "bool", "string", "list of floats", ... */
    const char *fallback; /* the default as written in a graph, or NULL */
    const char *unit;     /* or NULL */
    const char *help;
    bool required;
};

struct hr_op_info {
    const char *name;
    const char *kind; /* "source", "order", "map", "filter", "expand", "batch", "zip",
                         "merge" */
    const char *summary;
    const char *doc; /* Markdown, or NULL */
    uint32_t version;
    bool test_only;
    size_t param_count;
};

/* Number of operators; the i-th in order of name. HR_ERR_RANGE past the end. */
HR_API size_t hr_op_count(void);
HR_API HR_CHECK enum hr_err hr_op_info(size_t at, struct hr_op_info *ret_info);

/* The position of the op of this name; on failure *reterr suggests the nearest name. */
HR_API HR_CHECK enum hr_err
hr_op_find(const char *name, size_t *ret_at, struct hr_error *reterr);

/* Parameter `param` of op `at`. */
HR_API HR_CHECK enum hr_err
hr_op_param(size_t at, size_t param, struct hr_param_info *ret_info);

/* Writes a parameter's range as text ("0 to 1", "one of rgb, gray, unchanged") to `text`;
 * "" if any value is allowed. Returns `text`. */
HR_API const char *hr_op_param_range(size_t at, size_t param, char *text, size_t room);

/* Writes the op's traits as text ("random, geometric, resampling, defers") to `text`.
 * Returns `text`. */
HR_API const char *hr_op_traits(size_t at, char *text, size_t room);

HR_END_DECLS

#endif
