/*
 * wire/schema.h - what fields are, as bytes: name, kind, dtype, dims, meaning, layout.
 *
 * Written once per block of records, connection or file; records refer to it by place.
 */
#ifndef HR_WIRE_SCHEMA_H
#define HR_WIRE_SCHEMA_H

#include "core/error.h"
#include "core/str.h"
#include "op/schema.h"

/* Appends a field, or a schema. */
void hr__wire_field_write(const struct hr_field *field, struct hr_str *out);
void hr__wire_schema_write(const struct hr_schema *schema, struct hr_str *out);

/* Bytes that are read from the front; the first failure stays. */
struct hr_wire_input {
    const char *at;
    size_t left;
    bool failed;
};

/* Takes `bytes` bytes; false (and zeros in `to`) when there are not as many. */
bool hr__wire_take(struct hr_wire_input *in, void *to, size_t bytes);

/* Reads one field. False when it is malformed; every number is checked. */
bool hr__wire_field_read(struct hr_wire_input *in, struct hr_field *ret_field);
bool hr__wire_schema_read(struct hr_wire_input *in, struct hr_schema *ret_schema);

/* Names of classes, by field. The texts are those of the input, which outlives them. */
struct hr_wire_classes {
    struct hr_field_classes of[HR_SCHEMA_FIELDS_MAX]; /* names NULL: the field has none */
};

/* Appends the names of the classes of all fields that have some. */
void hr__wire_classes_write(const struct hr_schema *schema, struct hr_str *out);

/* Reads names up to the end of the input; the fields of the schema then refer to them.
 * HR_ERR_FORMAT, HR_ERR_MEMORY. Finish them in any case; zeroed ones are fine. */
HR_CHECK enum hr_err
hr__wire_classes_read(struct hr_wire_input *in, struct hr_schema *schema,
                      struct hr_wire_classes *ret_classes);
void hr__wire_classes_finish(struct hr_wire_classes *classes);

#endif
