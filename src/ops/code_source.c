/*
 * code.source - records that user code makes, by number.
 *
 * Without a count the code reports the end of the data (HR_ERR_END). Then no order op may
 * ask for records by number, since their number is unknown.
 */
#include "ops/code_common.h"

#include <assert.h>

#include "core/alloc.h"

#define KEY_BYTES 256 /* of a key that needs no memory */

static const struct hr_param source_params[] = {
    HR_P_CODE_NAME,
    HR_P_INT(struct hr_code_params, count, .fallback = "-1", HR_RANGE(-1, 1e15),
             .unit = "records",
             .help = "number of records; -1: the code reports the end of the data"),
    HR_P_CODE_OUTPUTS,
    HR_P_CODE_VARIANT,
};

static enum hr_err source_infer(struct hr_infer *infer)
{
    const struct hr_code_params *p = infer->params;

    HR_TRY(hr__code_infer(infer, false));
    infer->output->records = p->count;
    return HR_OK;
}

static bool source_open_ended(const void *params)
{
    return ((const struct hr_code_params *)params)->count < 0;
}

static uint64_t source_count(const void *params, const void *state)
{
    const struct hr_code_params *p = params;

    (void)state;
    return p->count < 0 ? HR_COUNT_UNKNOWN : (uint64_t)p->count;
}

static const char *source_key_name(const void *params, const void *state, size_t i)
{
    const struct hr_code_use *use = hr__code_use(state);

    (void)params;
    for (size_t at = 0; at < use->output_count; at++)
        if ((use->code->keys >> at & 1) && i-- == 0)
            return use->output_fields[at]->name;
    return NULL;
}

/* The output that is key number i. */
static size_t key_output(const struct hr_code_use *use, size_t i)
{
    size_t at = 0;

    while (!(use->code->keys >> at & 1) || i-- > 0)
        at++;
    assert(at < use->output_count);
    return at;
}

static enum hr_err source_key(const void *params, const void *state, size_t i,
                              uint64_t index, struct hr_str *out, struct hr_error *error)
{
    const struct hr_code *code = hr__code_use(state)->code;
    size_t output = key_output(hr__code_use(state), i), bytes = 0;
    char text[KEY_BYTES], *more = NULL;
    void *token = code->enter != NULL ? code->enter(code->user) : NULL;
    enum hr_err result;

    (void)params;
    result = code->key(code->user, output, index, text, sizeof text, &bytes, error);
    if (result == HR_OK && bytes > sizeof text) {
        size_t room = bytes;

        more = hr__malloc(room);
        result = more != NULL
                     ? code->key(code->user, output, index, more, room, &bytes, error)
                     : hr__fail(error, HR_ERR_MEMORY, "out of memory");
        if (result == HR_OK && bytes > room)
            result = hr__fail(error, HR_ERR_STATE, "the key of record %llu changes",
                              (unsigned long long)index);
    }
    if (code->leave != NULL)
        code->leave(code->user, token);
    if (result == HR_OK)
        hr__str_add_bytes(out, more != NULL ? more : text, bytes);
    else if (result == HR_ERR_NOT_FOUND)
        hr__str_addf(out, "%llu", (unsigned long long)index);
    hr__free(more);
    return result;
}

const struct hr_op hr_op_code_source = {
    .name = "code.source",
    .summary = "records that your own code makes",
    .doc = "The code is asked for record i, in any order and from several threads unless "
           "`variant` says otherwise. A graph file names the code; the program that has "
           "it gives it.",
    .version = 1,
    .kind = HR_OP_SOURCE,
    .params = source_params,
    .param_count = sizeof source_params / sizeof source_params[0],
    HR_CODE_OP,
    .infer = source_infer,
    .source = {.open_ended = source_open_ended,
               .count = source_count,
               .key_name = source_key_name,
               .key = source_key},
};
