/*
 * api/code_api.c - include/headrace/code.h: checks arguments; the work is done elsewhere.
 */
#include "headrace/code.h"

#include <string.h>

#include "core/error.h"
#include "graph/graph.h"
#include "op/code_call.h"
#include "op/ragged.h"

enum hr_err hr_graph_code(struct hr_graph *graph, const char *name,
                          const struct hr_code *code, struct hr_error *reterr)
{
    if (graph == NULL || name == NULL || code == NULL || code->call == NULL ||
        code->identity == NULL)
        return hr__fail(
            reterr, HR_ERR_ARGUMENT,
            "hr_graph_code needs a graph, a name, an identity and a call function");
    if ((code->enter == NULL) != (code->leave == NULL))
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "code \"%.63s\" must have both enter and leave, or neither",
                        name);
    if (graph->frozen)
        return hr__fail(reterr, HR_ERR_STATE, "the graph is frozen");
    return hr__code_table_add(graph->codes, name, code, reterr);
}

enum hr_err hr_graph_code_host(struct hr_graph *graph, const struct hr_code_host *host,
                               struct hr_error *reterr)
{
    if (graph == NULL || host == NULL || host->start == NULL || host->kill == NULL)
        return hr__fail(
            reterr, HR_ERR_ARGUMENT,
            "hr_graph_code_host needs a graph, and a host with start and kill");
    if (graph->frozen)
        return hr__fail(reterr, HR_ERR_STATE, "the graph is frozen");
    return hr__code_table_host(graph->codes, host, reterr);
}

/* ---- inside a call ---- */

void hr_code_record(const struct hr_code_call *call, struct hr_code_record *ret_record)
{
    if (call != NULL && ret_record != NULL)
        hr__code_record(call, ret_record);
}

void hr_code_key(const struct hr_code_call *call, uint64_t ret_key[2])
{
    if (call != NULL && ret_key != NULL)
        hr__code_key(call, ret_key);
}

uint64_t hr_code_index(const struct hr_code_call *call)
{
    return call != NULL ? call->id->index : 0;
}

size_t
hr_code_following(const struct hr_code_call *call, uint64_t *ret_indices, size_t room)
{
    if (call == NULL || (ret_indices == NULL && room > 0))
        return 0;
    return call->class->following(call, ret_indices, room);
}

size_t hr_code_input_count(const struct hr_code_call *call)
{
    return call != NULL ? call->input_count : 0;
}

enum hr_err
hr_code_input(const struct hr_code_call *call, size_t at, struct hr_field_view *ret_view)
{
    if (call == NULL || ret_view == NULL)
        return HR_ERR_ARGUMENT;
    if (at >= call->input_count)
        return HR_ERR_RANGE;
    hr__value_view(call->inputs[at], call->input_fields[at]->name, ret_view);
    ret_view->text = call->input_fields[at]->meaning == HR_MEANING_TEXT;
    return HR_OK;
}

size_t hr_code_output_count(const struct hr_code_call *call)
{
    return call != NULL ? call->output_count : 0;
}

enum hr_err
hr_code_output(const struct hr_code_call *call, size_t at, struct hr_field_info *ret_info)
{
    if (call == NULL || ret_info == NULL)
        return HR_ERR_ARGUMENT;
    if (at >= call->output_count)
        return HR_ERR_RANGE;
    hr__field_info(call->output_fields[at], ret_info);
    return HR_OK;
}

/* Checks that the output exists and, for an expansion, that a child has been started. */
static enum hr_err
check_output(const struct hr_code_call *call, size_t at, struct hr_error *reterr)
{
    if (at >= call->output_count)
        return hr__fail(reterr, HR_ERR_RANGE, "there is no output %zu; the node has %zu",
                        at, call->output_count);
    if (call->kind == HR_OP_EXPAND && call->child_count == 0)
        return hr__fail(reterr, HR_ERR_STATE,
                        "output '%s' was set before the first hr_code_child",
                        call->output_fields[at]->name);
    return HR_OK;
}

enum hr_err
hr_code_room(struct hr_code_call *call, size_t at, enum hr_dtype dtype, int ndim,
             const int64_t *dims, void **ret_memory, struct hr_error *reterr)
{
    const struct hr_field *field;
    size_t bytes;

    if (call == NULL || ret_memory == NULL || (ndim > 0 && dims == NULL))
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "call, dims and ret_memory must not be NULL");
    HR_TRY(check_output(call, at, reterr));
    field = call->output_fields[at];
    bytes = hr_dtype_size(dtype);
    if (!hr__code_fits_number(field, dtype, ndim))
        HR_TRY(hr__code_fits(field, dtype, ndim, dims, &bytes, reterr));
    HR_TRY(call->class->room(call, at, dtype, ndim, dims, bytes, ret_memory, reterr));
    call->made |= (uint64_t)1 << at;
    return HR_OK;
}

enum hr_err
hr_code_pass(struct hr_code_call *call, size_t at, size_t input, struct hr_error *reterr)
{
    if (call == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "call must not be NULL");
    HR_TRY(check_output(call, at, reterr));
    if (input >= call->input_count)
        return hr__fail(reterr, HR_ERR_RANGE, "there is no input %zu; the node has %zu",
                        input, call->input_count);
    HR_TRY(hr__code_fits_value(call->output_fields[at], call->inputs[input], reterr));
    HR_TRY(call->class->pass(call, at, input, reterr));
    call->made |= (uint64_t)1 << at;
    return HR_OK;
}

void hr_code_keep(struct hr_code_call *call, bool keep)
{
    if (call != NULL)
        call->keep = keep;
}

enum hr_err hr_code_child(struct hr_code_call *call, struct hr_error *reterr)
{
    if (call == NULL || call->kind != HR_OP_EXPAND)
        return hr__fail(reterr, HR_ERR_STATE, "only code.expand can make children");
    if (call->child_count > 0)
        HR_TRY(hr__code_whole(call, reterr));
    if (call->child_count == UINT32_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "a record can have at most 2^32 - 1 children");
    HR_TRY(call->class->child(call, reterr));
    call->child_count++;
    call->made = 0;
    return HR_OK;
}

void hr_code_detail(struct hr_code_call *call, const char *text)
{
    if (call != NULL && text != NULL)
        call->class->detail(call, text);
}
