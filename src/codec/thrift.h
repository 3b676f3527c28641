/*
 * codec/thrift.h - reading Thrift's compact protocol.
 *
 * What does not lie inside the bytes sets `bad`; then numbers are 0, and structs and
 * lists are empty.
 */
#ifndef HR_CODEC_THRIFT_H
#define HR_CODEC_THRIFT_H

#include "headrace/base.h"

struct hr_thrift {
    const uint8_t *data;
    size_t bytes, at;
    bool bad;
};

enum hr_thrift_type {
    HR_THRIFT_TRUE = 1,
    HR_THRIFT_FALSE,
    HR_THRIFT_I8,
    HR_THRIFT_I16,
    HR_THRIFT_I32,
    HR_THRIFT_I64,
    HR_THRIFT_DOUBLE,
    HR_THRIFT_BINARY,
    HR_THRIFT_LIST,
    HR_THRIFT_SET,
    HR_THRIFT_MAP,
    HR_THRIFT_STRUCT,
};

/* A field of a struct; zeroed before the struct's first one. */
struct hr_thrift_field {
    int id;
    enum hr_thrift_type type;
};

/* False after the last field. Each field is read or skipped before the next. */
bool hr__thrift_next(struct hr_thrift *thrift, struct hr_thrift_field *field);
void hr__thrift_skip(struct hr_thrift *thrift, enum hr_thrift_type type);

/* Values of a field, which are `bad` if it has another type. */
int64_t hr__thrift_int(struct hr_thrift *thrift, const struct hr_thrift_field *field);
bool hr__thrift_bool(struct hr_thrift *thrift, const struct hr_thrift_field *field);
const void *hr__thrift_binary(struct hr_thrift *thrift,
                              const struct hr_thrift_field *field, size_t *ret_bytes);
bool hr__thrift_struct(struct hr_thrift *thrift, const struct hr_thrift_field *field);
/* The number of elements, which are of the type, and follow. */
size_t hr__thrift_list(struct hr_thrift *thrift, const struct hr_thrift_field *field,
                       enum hr_thrift_type type);
/* An element of a list of integers. */
int64_t hr__thrift_element(struct hr_thrift *thrift);

#endif
