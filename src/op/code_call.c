/*
 * op/code_call.c - what a call of user code means, the same in a thread and in a process.
 *
 * User code is not trusted to keep the contract: a missing output, an unknown error code
 * or an undeclared shape makes the record bad, with a message.
 */
#include "op/code_call.h"
#include "op/ragged.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"

static const char *kind_text(enum hr_op_kind kind)
{
    return kind == HR_OP_SOURCE ? "a source" : "this code";
}

enum hr_err hr__code_whole(const struct hr_code_call *call, struct hr_error *reterr)
{
    uint64_t all =
        call->output_count >= 64 ? UINT64_MAX : ((uint64_t)1 << call->output_count) - 1;
    size_t at;

    assert(call->output_count <= HR_SCHEMA_FIELDS_MAX);
    if ((call->made & all) == all)
        return HR_OK;
    at = (size_t)__builtin_ctzll(~call->made);
    return hr__fail(reterr, HR_ERR_STATE, "the code of node '%s' made no output '%s'",
                    call->node, call->output_fields[at]->name);
}

/* The returned error, made to keep the contract. */
static enum hr_err
settle_failure(const struct hr_code_call *call, enum hr_err code, struct hr_error *reterr)
{
    if (code > HR_OK || code < HR_ERR_DENIED)
        return hr__fail(reterr, HR_ERR_INTERNAL,
                        "the code of node '%s' returned %d, which is not an error code",
                        call->node, (int)code);
    if (code == HR_ERR_END && call->kind != HR_OP_SOURCE)
        return hr__fail(
            reterr, HR_ERR_STATE,
            "the code of node '%s' says that the data ends; only a source may",
            call->node);
    reterr->code = code;
    if (reterr->message[0] == '\0')
        hr__fail(reterr, code, "%s of node '%s': %s", kind_text(call->kind), call->node,
                 hr_err_text(code));
    return code;
}

enum hr_err hr__code_run(const struct hr_code *code, struct hr_code_call *call,
                         struct hr_error *reterr)
{
    enum hr_err result;

    assert(code->call != NULL && call->class != NULL && call->id != NULL);
    for (size_t i = 0; i < call->input_count; i++)
        assert(hr__value_is_made(call->inputs[i]));
    call->made = 0;
    call->child_count = 0;
    call->keep = false;
    result = code->call(code->user, call, reterr);
    if (result == HR_OK && call->kind != HR_OP_FILTER &&
        (call->kind != HR_OP_EXPAND || call->child_count > 0))
        result = hr__code_whole(call, reterr);
    if (__builtin_expect(result != HR_OK, 0)) {
        result = settle_failure(call, result, reterr);
        snprintf(reterr->node, sizeof reterr->node, "%s", call->node);
    }
    return result;
}

static enum hr_err misfit(const struct hr_field *field, enum hr_dtype dtype, int ndim,
                          const int64_t *dims, struct hr_error *reterr)
{
    struct hr_field came = {.dtype = dtype};
    char declared[256], text[256];
    bool type;

    if (ndim < 0 || ndim > HR_MAX_DIMS)
        return hr__fail(reterr, HR_ERR_SHAPE,
                        "field '%s' cannot have %d dimensions; at most %d", field->name,
                        ndim, HR_MAX_DIMS);
    if (dtype == HR_DTYPE_NONE) {
        came.kind = HR_FIELD_BYTES;
    } else {
        came.ndim = ndim;
        for (int i = 0; i < ndim; i++)
            came.dims[i].size = dims[i];
    }
    type = (field->kind == HR_FIELD_BYTES) != (dtype == HR_DTYPE_NONE) ||
           (field->kind != HR_FIELD_BYTES && field->dtype != dtype);
    hr__fail(reterr, type ? HR_ERR_TYPE : HR_ERR_SHAPE,
             "field '%s' is declared as %s; the code made %s%s", field->name,
             hr__field_text(field, declared, sizeof declared),
             hr__field_text(&came, text, sizeof text),
             !type && ndim == field->ndim
                 ? "; records whose lengths differ are collected by batch.pad (in Python "
                   "padded_batch)"
                 : "");
    if (reterr != NULL)
        snprintf(reterr->param, sizeof reterr->param, "%s", field->name);
    return type ? HR_ERR_TYPE : HR_ERR_SHAPE;
}

static enum hr_err misfit_kind(const struct hr_field *field, struct hr_error *reterr)
{
    char declared[256];

    return hr__fail(reterr, HR_ERR_TYPE,
                    "field '%s' is declared as %s: it can only be an input of that kind, "
                    "passed on",
                    field->name, hr__field_text(field, declared, sizeof declared));
}

enum hr_err hr__code_fits(const struct hr_field *field, enum hr_dtype dtype, int ndim,
                          const int64_t *dims, size_t *ret_bytes, struct hr_error *reterr)
{
    size_t bytes = dtype == HR_DTYPE_NONE ? 1 : hr_dtype_size(dtype);
    bool strings = field->kind == HR_FIELD_BYTES;

    if (field->kind != HR_FIELD_TENSOR && !strings)
        return misfit_kind(field, reterr);
    if (bytes == 0 || ndim < 0 || ndim != (strings ? 1 : field->ndim) ||
        dtype != (strings ? HR_DTYPE_NONE : field->dtype))
        return misfit(field, dtype, ndim, dims, reterr);
    for (int i = 0; i < ndim; i++) {
        bool free = strings || field->dims[i].size < 0;

        if (dims[i] < 0 || (!free && dims[i] != field->dims[i].size) ||
            __builtin_mul_overflow(bytes, (size_t)dims[i], &bytes) ||
            bytes > (size_t)PTRDIFF_MAX)
            return misfit(field, dtype, ndim, dims, reterr);
    }
    *ret_bytes = bytes;
    return HR_OK;
}

enum hr_err hr__code_fits_value(const struct hr_field *field,
                                const struct hr_value *value, struct hr_error *reterr)
{
    int64_t length = (int64_t)value->bytes;
    size_t bytes;

    assert(hr__value_is_made(value));
    if (value->kind == HR_VALUE_TENSOR)
        return hr__code_fits(field, (enum hr_dtype)value->dtype, value->ndim, value->dims,
                             &bytes, reterr);
    if (value->kind == HR_VALUE_BYTES)
        return hr__code_fits(field, HR_DTYPE_NONE, 1, &length, &bytes, reterr);
    if (value->kind != HR_VALUE_RAGGED ||
        field->kind != (value->strings ? HR_FIELD_STRINGS : HR_FIELD_RAGGED) ||
        (!value->strings && value->dtype != field->dtype) ||
        value->u.ragged->levels != field->levels ||
        (!value->strings && value->u.ragged->item_ndim != field->ndim - 1))
        return misfit_kind(field, reterr);
    return HR_OK;
}

void hr__code_record(const struct hr_code_call *call, struct hr_code_record *ret_record)
{
    const struct hr_record_id *id = call->id;

    *ret_record =
        (struct hr_code_record){.seed = id->seed,
                                .index = id->index,
                                .position = id->position,
                                .epoch = id->epoch,
                                .node = call->node,
                                .draw_epoch = id->draw_epoch & ~HR_EPOCH_SUBSTITUTE,
                                .depth = id->depth,
                                .children = id->child,
                                .replaced = call->replaced};
}

void hr__code_key(const struct hr_code_call *call, uint64_t ret_key[2])
{
    struct hr_rng rng;

    hr__record_rng(call->id, call->draw_id, &rng);
    ret_key[0] = hr__rng_u64(&rng);
    ret_key[1] = hr__rng_u64(&rng);
}
