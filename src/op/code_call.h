/*
 * op/code_call.h - one call of user code (headrace/code.h), wherever it runs.
 *
 * The engine's threads and the worker process (proc/serve.c) each fill a struct
 * hr_code_call and hand it to hr__code_run; what the code asks for is answered from these
 * fields, and only what differs between the two goes through the class. The doors in
 * api/code_api.c check arguments and the declaration first, so that a class may trust
 * them.
 */
#ifndef HR_OP_CODE_CALL_H
#define HR_OP_CODE_CALL_H

#include "headrace/code.h"
#include "op/op.h"

struct hr_code_call_class {
    /* Memory of `bytes` bytes for output `at`, whose declaration it fits. */
    HR_CHECK enum hr_err (*room)(struct hr_code_call *call, size_t at,
                                 enum hr_dtype dtype, int ndim, const int64_t *dims,
                                 size_t bytes, void **ret_memory,
                                 struct hr_error *reterr);
    /* Output `at` shows inputs[input], which fits its declaration. */
    HR_CHECK enum hr_err (*pass)(struct hr_code_call *call, size_t at, size_t input,
                                 struct hr_error *reterr);
    /* The next child of an expansion begins; the one before it is whole. */
    HR_CHECK enum hr_err (*child)(struct hr_code_call *call, struct hr_error *reterr);
    void (*detail)(struct hr_code_call *call, const char *text);
    /* See hr_code_following. */
    size_t (*following)(const struct hr_code_call *call, uint64_t *ret_indices,
                        size_t room);
};

/* Embedded first in a struct of its maker. One thread, one record, one node. */
struct hr_code_call {
    const struct hr_code_call_class *class;
    enum hr_op_kind kind;
    const char *node;
    uint64_t draw_id; /* of the node, see hr__record_rng */
    const struct hr_record_id *id;
    size_t input_count, output_count; /* at most HR_SCHEMA_FIELDS_MAX */
    struct hr_value *const *inputs;   /* forced */
    const struct hr_field *const *input_fields;
    const struct hr_field *const *output_fields; /* as declared */
    /* What the code did; hr__code_run clears them. */
    uint64_t made; /* bit per output: given room or passed; of the child begun last */
    uint64_t child_count;
    bool keep;         /* FILTER */
    uint32_t replaced; /* see struct hr_code_record */
};

/* Calls the code and checks that it kept the contract: a known error code, HR_ERR_END
 * from a source only, every output of the record or of every child made. On failure
 * *reterr (never NULL) names the node. */
HR_CHECK enum hr_err hr__code_run(const struct hr_code *code, struct hr_code_call *call,
                                  struct hr_error *reterr);

/* HR_OK when every output of the record, or of the child begun last, is made. */
HR_CHECK enum hr_err
hr__code_whole(const struct hr_code_call *call, struct hr_error *reterr);

/* Does a tensor, or (HR_DTYPE_NONE, ndim 1) a byte string, fit what was declared? Its
 * bytes. Else HR_ERR_TYPE or HR_ERR_SHAPE with a message that names the field. Never
 * overflows. */
HR_CHECK enum hr_err
hr__code_fits(const struct hr_field *field, enum hr_dtype dtype, int ndim,
              const int64_t *dims, size_t *ret_bytes, struct hr_error *reterr);

/* The same for a value of any kind that is passed on. */
HR_CHECK enum hr_err
hr__code_fits_value(const struct hr_field *field, const struct hr_value *value,
                    struct hr_error *reterr);

/* The common case of hr__code_fits: a number of the declared type. */
static inline bool
hr__code_fits_number(const struct hr_field *field, enum hr_dtype dtype, int ndim)
{
    return ndim == 0 && field->ndim == 0 && field->kind == HR_FIELD_TENSOR &&
           dtype == field->dtype;
}

/* The record as user code sees it. */
void hr__code_record(const struct hr_code_call *call, struct hr_code_record *ret_record);
/* See hr_code_key. */
void hr__code_key(const struct hr_code_call *call, uint64_t ret_key[2]);

#endif
