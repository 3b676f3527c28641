/*
 * op/param_internal.h - what reading a table and checking a value share.
 */
#ifndef HR_OP_PARAM_INTERNAL_H
#define HR_OP_PARAM_INTERNAL_H

#include "op/param.h"

struct hr_param_parse {
    const struct hr_param *table;
    size_t count;
    const struct hr_param *param; /* the one at hand */
    const struct hr_doc *at;      /* the value as written, for messages */
    struct hr_error *error;
};

/* The canonical form of a value of p->param; *ret stays as it is when out of memory. */
HR_CHECK enum hr_err hr__param_canon(struct hr_param_parse *p, const struct hr_doc *value,
                                     struct hr_doc **ret);

/* Put the parameter's name and, when known, a place into the error. */
void hr__param_place(struct hr_param_parse *p, const char *param, int line, int column);

#endif
