/*
 * graph/form.c - see form.h.
 */
#include "graph/form.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/str.h"
#include "op/param.h"

void hr__form_add_key(struct hr_form_keys *keys, const char *name)
{
    assert(keys->count < sizeof keys->names / sizeof keys->names[0]);
    keys->names[keys->count++] = name;
}

enum hr_err hr__form_check_keys(const struct hr_form *form, const struct hr_doc *map,
                                const struct hr_form_keys *keys)
{
    for (size_t i = 0; i < map->as.map.count; i++) {
        const struct hr_doc_pair *pair = &map->as.map.pairs[i];
        const char *near;
        size_t k = 0;

        while (k < keys->count && strcmp(keys->names[k], pair->key) != 0)
            k++;
        if (k < keys->count)
            continue;
        near = hr__nearest(pair->key, keys->names, keys->count);
        return HR_FORM_FAIL(form, HR_ERR_FORMAT, pair, "key \"%.63s\" is not known%s%s%s",
                            pair->key, near != NULL ? "; did you mean \"" : "",
                            near != NULL ? near : "", near != NULL ? "\"?" : "");
    }
    return HR_OK;
}

enum hr_err hr__form_wrong_type(const struct hr_form *form, const struct hr_doc *at,
                                const char *key, const char *wants)
{
    char text[128];

    return HR_FORM_FAIL(form, HR_ERR_TYPE, at, "\"%s\" must be %s, not %s", key, wants,
                        hr__param_value_text(at, text, sizeof text));
}

enum hr_err
hr__form_need(const struct hr_form *form, const struct hr_doc *map, const char *key,
              enum hr_doc_kind kind, const char *wants, const struct hr_doc **ret_value)
{
    const struct hr_doc *value = hr__doc_get(map, key);

    if (value == NULL)
        return HR_FORM_FAIL(form, HR_ERR_FORMAT, map, "the key \"%s\" is missing", key);
    if (value->kind != kind)
        return hr__form_wrong_type(form, value, key, wants);
    *ret_value = value;
    return HR_OK;
}

enum hr_err hr__form_need_text(const struct hr_form *form, const struct hr_doc *map,
                               const char *key, const char **ret_text)
{
    const struct hr_doc *value = NULL;

    HR_TRY(hr__form_need(form, map, key, HR_DOC_STRING, "a string", &value));
    if (strlen(value->as.string.text) != value->as.string.length)
        return HR_FORM_FAIL(form, HR_ERR_FORMAT, value, "\"%s\" contains a NUL", key);
    *ret_text = value->as.string.text;
    return HR_OK;
}

enum hr_err
hr__form_get(const struct hr_form *form, const struct hr_doc *map, const char *key,
             enum hr_doc_kind kind, const char *wants, const struct hr_doc **ret_value)
{
    const struct hr_doc *value = hr__doc_get(map, key);

    if (value != NULL && value->kind != kind)
        return hr__form_wrong_type(form, value, key, wants);
    *ret_value = value;
    return HR_OK;
}

enum hr_err hr__form_check_version(const struct hr_form *form, const struct hr_doc *root,
                                   const char *what, int version)
{
    const struct hr_doc *found = NULL;
    char key[32];

    snprintf(key, sizeof key, "headrace_%s", what);
    if (root->kind == HR_DOC_MAP)
        found = hr__doc_get(root, key);
    if (found == NULL)
        return hr__fail_in(form->error, HR_ERR_FORMAT, form->name, 1, 1,
                           "this is no %s: the key \"%s: %d\" is missing", what, key,
                           version);
    if (found->kind != HR_DOC_INT)
        return hr__form_wrong_type(form, found, key, "the version of the format");
    if (found->as.integer != version)
        return HR_FORM_FAIL(form, HR_ERR_UNSUPPORTED, found,
                            "the %s has format version %lld; this library reads %d", what,
                            (long long)found->as.integer, version);
    return HR_OK;
}
