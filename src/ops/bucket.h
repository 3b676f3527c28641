/*
 * ops/bucket.h - the parameters of batch.bucket, and what follows from them without a
 * record at hand.
 */
#ifndef HR_OPS_BUCKET_H
#define HR_OPS_BUCKET_H

#include "op/op.h"
#include "ops/padding.h"

struct hr_bucket {
    const char *by;
    int64_t dim;
    struct hr_ints boundaries, size;
    int64_t elements;
    struct hr_padding padding;
    int pad_to, too_long;
    bool coordinated;
};

enum { HR_BUCKET_LONGEST, HR_BUCKET_BOUNDARY };

/* Where a record's length is: a dimension of a field, or -1: the integer or the number of
 * bytes that the field is. */
struct hr_bucket_measure {
    size_t field;
    int dim;
};

/* hr_op.check. */
HR_CHECK enum hr_err hr__bucket_check(const void *params, struct hr_error *error);

int hr__bucket_count(const struct hr_bucket *p);
/* Records of a batch; with `elements` no batch has more. */
int64_t hr__bucket_size(const struct hr_bucket *p, int at);
/* What records of a bucket are padded to, or -1: to the longest of the batch. */
int64_t hr__bucket_target(const struct hr_bucket *p, int at);
/* The bucket for a length. */
int hr__bucket_of(const struct hr_bucket *p, int64_t length);

/* Whether sizes of the field differ between records. */
bool hr__bucket_varies(const struct hr_field *field);
/* Finds the length of records; fails where it is not clear which it is. */
HR_CHECK enum hr_err
hr__bucket_measure(struct hr_infer *infer, struct hr_bucket_measure *ret_measure);
int64_t
hr__bucket_length(const struct hr_bucket_measure *m, const struct hr_value *values);

/* hr_op_sequence.joins and holds. `state` is a measure. */
uint64_t
hr__bucket_joins(const void *params, const void *state, const struct hr_schema *input);
uint64_t
hr__bucket_holds(const void *params, const void *state, const struct hr_schema *input);

#endif
