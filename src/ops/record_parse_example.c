/*
 * record.parse_example - the features of a tf.train.Example as fields.
 */
#include <stdio.h>
#include <string.h>

#include "codec/example.h"
#include "core/alloc.h"
#include "ops/code_common.h"

struct parse {
    const char *field;
    struct hr_pairs features;
};

static const struct hr_param parse_params[] = {
    HR_P_FIELD(struct parse, field, .fallback = "data", .access = HR_ACCESS_TAKE,
               .help = "the field that holds the bytes of an Example"),
    HR_P_MAP(struct parse, features, .required = true, .texts = true,
             .help =
                 "field: its type, or \"feature: type\" where the feature has another "
                 "name: {label: int64, image: \"image/encoded: bytes\", box: "
                 "\"float32[4]\", ids: \"int64[length]\"}"),
};

enum { FIELD_FROM, FIELD_FIRST };

/* ---- declarations ---- */

struct wanted {
    const char *name; /* of the feature; the parameter's */
    size_t name_bytes;
    struct hr_field field;
};

static enum hr_err wrong(struct hr_error *error, const char *field, const char *what)
{
    memcpy(error->param, "features", sizeof "features");
    return hr__fail(error, HR_ERR_ARGUMENT, "feature of field \"%s\": %s", field, what);
}

/* A feature's type: bytes; int64 or float32, of known dims or with one unknown. */
static enum hr_err check_type(const struct hr_field *field, struct hr_error *error)
{
    int unknown = 0;

    for (int i = 0; i < field->ndim; i++)
        unknown += field->dims[i].size == HR_DIM_UNKNOWN;
    if (field->kind == HR_FIELD_BYTES)
        return HR_OK;
    if (field->kind != HR_FIELD_TENSOR ||
        (field->dtype != HR_I64 && field->dtype != HR_F32))
        return wrong(error, field->name,
                     "an Example holds bytes, int64 and float32; tensor.cast and "
                     "image.decode make others of them");
    return unknown <= 1 ? HR_OK
                        : wrong(error, field->name, "more than one dimension is unknown");
}

static enum hr_err
declare(const struct parse *p, int at, struct wanted *ret_wanted, struct hr_error *error)
{
    const char *name = p->features.keys[at], *value = p->features.values[at];
    const char *colon = strrchr(value, ':');
    char text[512];

    if (snprintf(text, sizeof text, "%s: %s", name, colon != NULL ? colon + 1 : value) >=
        (int)sizeof text)
        return wrong(error, name, "its type is too long");
    HR_TRY(hr__code_declaration(text, &ret_wanted->field, error));
    ret_wanted->name = colon != NULL ? value : name;
    ret_wanted->name_bytes = colon != NULL ? (size_t)(colon - value) : strlen(name);
    return check_type(&ret_wanted->field, error);
}

static enum hr_err
parse_binds(const void *params, const void *state, const struct hr_schema *input,
            struct hr_bindings *bindings, struct hr_error *error)
{
    const struct parse *p = params;

    (void)state;
    (void)input;
    for (int i = 0; i < p->features.count; i++) {
        if (strcmp(p->features.keys[i], p->field) == 0)
            return wrong(error, p->field, "that is the field it is read from");
        HR_TRY(hr__bind(bindings, p->features.keys[i], HR_ACCESS_WRITE, error));
    }
    return HR_OK;
}

static enum hr_err parse_infer(struct hr_infer *infer)
{
    const struct parse *p = infer->params;
    struct wanted wanted;

    if (infer->fields[FIELD_FROM]->kind != HR_FIELD_BYTES)
        return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                              "field \"%s\" is no byte string", p->field);
    for (int i = 0; i < p->features.count; i++) {
        struct hr_field *field = infer->fields[FIELD_FIRST + i];
        int slot = field->slot;

        HR_TRY(declare(p, i, &wanted, infer->error));
        *field = wanted.field;
        field->slot = slot;
    }
    return HR_OK;
}

/* ---- state ---- */

struct state {
    size_t count;
    struct wanted wanted[];
};

static void parse_close(void *state)
{
    hr__free(state);
}

static enum hr_err parse_open(const struct hr_open *open, void **ret_state)
{
    const struct parse *p = open->params;
    size_t count = (size_t)p->features.count;
    struct state *state = hr__calloc(1, sizeof *state + count * sizeof *state->wanted);
    enum hr_err code = HR_OK;

    if (state == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    state->count = count;
    for (size_t i = 0; code == HR_OK && i < count; i++)
        code = declare(p, (int)i, &state->wanted[i], open->error);
    if (code == HR_OK)
        *ret_state = state;
    else
        parse_close(state);
    return code;
}

/* ---- records ---- */

static enum hr_err
fail(struct hr_op_ctx *ctx, const struct wanted *wanted, const char *what)
{
    return hr__fail(ctx->error, HR_ERR_FORMAT, "feature '%.*s': %s",
                    (int)wanted->name_bytes, wanted->name, what);
}

/* Sizes of a tensor of `count` elements; false if they do not fit the declared dims. */
static bool dims_of(const struct hr_field *field, int64_t count, int64_t *dims)
{
    int64_t known = 1;
    int unknown = -1;

    for (int i = 0; i < field->ndim; i++) {
        dims[i] = field->dims[i].size;
        if (dims[i] == HR_DIM_UNKNOWN)
            unknown = i;
        else if (__builtin_mul_overflow(known, dims[i], &known))
            return false;
    }
    if (unknown < 0)
        return known == count;
    if (known == 0 || count % known != 0)
        return false;
    dims[unknown] = count / known;
    return true;
}

static enum hr_err set_tensor(struct hr_op_ctx *ctx, const struct wanted *wanted,
                              const struct hr_example_feature *feature, int64_t count,
                              struct hr_value *value)
{
    const struct hr_field *field = &wanted->field;
    int64_t dims[HR_MAX_DIMS];
    void *memory;

    if (!dims_of(field, count, dims))
        return hr__fail(ctx->error, HR_ERR_FORMAT,
                        "feature '%.*s' has %lld items, which is not its shape",
                        (int)wanted->name_bytes, wanted->name, (long long)count);
    HR_TRY(hr__op_alloc(ctx, (size_t)count * hr_dtype_size(field->dtype) + 1, &memory));
    if (field->dtype == HR_I64)
        hr__example_ints(feature, memory);
    else
        hr__example_floats(feature, memory);
    hr__value_set_tensor(value, field->dtype, field->ndim, dims, memory, NULL);
    return HR_OK;
}

/* In place: the bytes are those of the example. */
static enum hr_err
set_bytes(struct hr_op_ctx *ctx, const struct wanted *wanted,
          const struct hr_example_feature *feature, int64_t count, struct hr_value *value)
{
    struct hr_buffer *owner = ctx->fields[FIELD_FROM]->owner;
    struct hr_proto_bytes bytes;

    if (count != 1)
        return fail(ctx, wanted, "it has not one byte string");
    hr__example_strings(feature, &bytes);
    hr__value_set_bytes(value, bytes.at, (size_t)(bytes.end - bytes.at),
                        owner != NULL ? hr_buffer_ref(owner) : NULL);
    value->shared = true;
    return HR_OK;
}

static enum hr_err
set_feature(struct hr_op_ctx *ctx, const struct wanted *wanted,
            const struct hr_example_feature *feature, struct hr_value *value)
{
    enum hr_example_kind kind = wanted->field.kind == HR_FIELD_BYTES ? HR_EXAMPLE_BYTES
                                : wanted->field.dtype == HR_I64      ? HR_EXAMPLE_INTS
                                                                     : HR_EXAMPLE_FLOATS;
    int64_t count = hr__example_count(feature);

    if (count < 0)
        return fail(ctx, wanted, "it is malformed");
    if (feature->kind != kind && feature->kind != HR_EXAMPLE_NONE)
        return fail(ctx, wanted,
                    feature->kind == HR_EXAMPLE_BYTES    ? "it holds bytes"
                    : feature->kind == HR_EXAMPLE_FLOATS ? "it holds floats"
                                                         : "it holds integers");
    if (kind == HR_EXAMPLE_BYTES)
        return set_bytes(ctx, wanted, feature, count, value);
    return set_tensor(ctx, wanted, feature, count, value);
}

/* Those of the features that are wanted, by their number; the last of equal names. */
static enum hr_err
find_features(struct hr_op_ctx *ctx, struct hr_example_feature *found, bool *has)
{
    const struct hr_value *from = ctx->fields[FIELD_FROM];
    const struct state *state = ctx->state;
    struct hr_example_feature feature;
    struct hr_example_walk walk;

    hr__example_begin(&walk, from->data, from->bytes);
    while (hr__example_next(&walk, &feature)) {
        size_t bytes = (size_t)(feature.name.end - feature.name.at);

        for (size_t i = 0; i < state->count; i++) {
            const struct wanted *wanted = &state->wanted[i];

            if (wanted->name_bytes != bytes ||
                (bytes > 0 && memcmp(wanted->name, feature.name.at, bytes) != 0))
                continue;
            found[i] = feature;
            has[i] = true;
        }
    }
    return walk.malformed
               ? hr__fail(ctx->error, HR_ERR_FORMAT, "the bytes are no tf.train.Example")
               : HR_OK;
}

static enum hr_err parse_apply(struct hr_op_ctx *ctx)
{
    const struct state *state = ctx->state;
    struct hr_example_feature found[HR_LIST_MAX];
    bool has[HR_LIST_MAX] = {0};

    HR_TRY(find_features(ctx, found, has));
    for (size_t i = 0; i < state->count; i++) {
        if (!has[i])
            return fail(ctx, &state->wanted[i], "the Example has none of this name");
        HR_TRY(
            set_feature(ctx, &state->wanted[i], &found[i], ctx->fields[FIELD_FIRST + i]));
    }
    return HR_OK;
}

const struct hr_op hr_op_record_parse_example = {
    .name = "record.parse_example",
    .summary = "the features of a tf.train.Example as fields",
    .doc = "Usually after source.tfrecord. Features that are not named are ignored; one "
           "that "
           "is missing, of another type or of another shape makes the record bad. Of a "
           "tensor one dimension may be unknown (a name or -1); it follows from the "
           "number of "
           "items. A feature without items is an empty list of any type. Byte strings "
           "are used "
           "where they lie. The field with the Example is gone afterwards.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(parse_params, struct parse),
    .binds = parse_binds,
    .infer = parse_infer,
    .open = parse_open,
    .close = parse_close,
    .apply = parse_apply,
};
