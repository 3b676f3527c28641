/*
 * opt/cedar_form.h - what cedar's files have in common: maps keyed by pipe ids, numbers.
 */
#ifndef HR_OPT_CEDAR_FORM_H
#define HR_OPT_CEDAR_FORM_H

#include "graph/form.h"
#include "opt/cedar_file.h"

#define HR_CEDAR_ID_MAX INT32_MAX

/* "12", without sign, leading zero or anything else. */
bool hr__cedar_id(const char *text, int64_t *ret_id);

/* The id that is a key of a map. */
HR_CHECK enum hr_err hr__cedar_key(const struct hr_form *form,
                                   const struct hr_doc_pair *pair, int64_t *ret_id);

/* A number from 0 up, or above 0 where it must be positive. */
HR_CHECK enum hr_err
hr__cedar_amount(const struct hr_form *form, const struct hr_doc *value, const char *key,
                 bool positive, double *ret_number);

/* The same under a key that must be there. */
HR_CHECK enum hr_err hr__cedar_need(const struct hr_form *form, const struct hr_doc *map,
                                    const char *key, bool positive, double *ret_number);

#endif
