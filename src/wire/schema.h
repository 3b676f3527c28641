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

#endif
