/*
 * opt/cedar_form.c - see cedar_form.h.
 */
#include "opt/cedar_form.h"

#include <stdlib.h>
#include <string.h>

bool hr__cedar_id(const char *text, int64_t *ret_id)
{
    size_t length = strlen(text);

    if (length == 0 || length > 10 || strspn(text, "0123456789") != length ||
        (text[0] == '0' && length > 1))
        return false;
    *ret_id = strtoll(text, NULL, 10);
    return *ret_id <= HR_CEDAR_ID_MAX;
}

enum hr_err
hr__cedar_key(const struct hr_form *form, const struct hr_doc_pair *pair, int64_t *ret_id)
{
    if (!hr__cedar_id(pair->key, ret_id))
        return HR_FORM_FAIL(form, HR_ERR_FORMAT, pair,
                            "\"%.63s\" is no pipe: ids are numbers from 0 up", pair->key);
    return HR_OK;
}

enum hr_err hr__cedar_amount(const struct hr_form *form, const struct hr_doc *value,
                             const char *key, bool positive, double *ret_number)
{
    double number;

    if (value->kind != HR_DOC_INT && value->kind != HR_DOC_DOUBLE)
        return hr__form_wrong_type(form, value, key, "a number");
    number = value->kind == HR_DOC_INT ? (double)value->as.integer : value->as.number;
    if (!(number >= 0 && number <= 1e18) || (positive && number == 0))
        return HR_FORM_FAIL(form, HR_ERR_RANGE, value,
                            "\"%.63s\" must be a number %s 0, at most 1e18, not %g", key,
                            positive ? "above" : "from", number);
    *ret_number = number;
    return HR_OK;
}

enum hr_err hr__cedar_need(const struct hr_form *form, const struct hr_doc *map,
                           const char *key, bool positive, double *ret_number)
{
    const struct hr_doc *value = hr__doc_get(map, key);

    if (value == NULL)
        return HR_FORM_FAIL(form, HR_ERR_FORMAT, map, "the key \"%s\" is missing", key);
    return hr__cedar_amount(form, value, key, positive, ret_number);
}
