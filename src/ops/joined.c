/*
 * ops/joined.c - the fields of records that are joined from those of several inputs.
 *
 * The inputs' fields are already in the same row; only their names must differ.
 */
#include "ops/joined.h"

#include <stdio.h>
#include <string.h>

enum hr_err hr__joined_begin(struct hr_infer *infer, const struct hr_names *prefix)
{
    if (prefix->count != 0 && (size_t)prefix->count != infer->input_count)
        return hr__infer_fail(infer, "prefix", HR_ERR_ARGUMENT,
                              "%d prefixes for %zu inputs", prefix->count,
                              infer->input_count);
    memset(infer->output->fields, 0, sizeof infer->output->fields);
    infer->output->count = 0;
    return HR_OK;
}

enum hr_err hr__joined_add(struct hr_infer *infer, const struct hr_field *field,
                           const struct hr_names *prefix, size_t input)
{
    const char *before = prefix->count > 0 ? prefix->values[input] : "";
    struct hr_schema *out = infer->output;
    char name[2 * HR_FIELD_NAME_MAX + 2];
    struct hr_field *added;

    snprintf(name, sizeof name, "%.*s%s", HR_FIELD_NAME_MAX + 1, before, field->name);
    if (strlen(name) > HR_FIELD_NAME_MAX)
        return hr__infer_fail(infer, "prefix", HR_ERR_ARGUMENT,
                              "the name \"%s\" is longer than %d bytes", name,
                              HR_FIELD_NAME_MAX);
    if (hr__schema_find(out, name) != NULL)
        return hr__infer_fail(infer, "prefix", HR_ERR_GRAPH,
                              "two inputs have a field \"%s\": give each input a prefix, "
                              "or rename one",
                              name);
    added = hr__schema_put(out, name);
    if (added == NULL)
        return hr__infer_fail(infer, NULL, HR_ERR_LIMIT, "more than %d fields",
                              HR_SCHEMA_FIELDS_MAX);
    memcpy(name, added->name, sizeof added->name);
    *added = *field;
    memcpy(added->name, name, sizeof added->name);
    return HR_OK;
}
