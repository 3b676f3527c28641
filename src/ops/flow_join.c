/*
 * flow.join - joins the records of two inputs that have equal keys.
 *
 * open() reads the keys of both inputs and lists, for each pair of records with equal
 * keys, their positions, in 4 bytes each (join_pairs.c). In a left join, a left record
 * without a match is a pair with HR_JOIN_NONE, whose right fields join_fill.c makes.
 */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "ops/join_fill.h"
#include "ops/join_pairs.h"
#include "ops/joined.h"

struct join {
    const char *on, *left_on, *right_on;
    bool integers;
    int how; /* enum how */
    struct hr_pairs fill;
    const char *matched;
    struct hr_names prefix;
};

enum how { INNER, OUTER_LEFT };
static const char *const hows[] = {"inner", "left", NULL};

static const struct hr_param join_params[] = {
    HR_P_STRING(struct join, on,
                .help =
                    "the key, if it has the same name in both inputs: a field that the "
                    "source knows before it reads a record (a column, a label, an "
                    "integer or a text of an archive), or that is made of such fields; "
                    "path, stem or index, as for order.split"),
    HR_P_STRING(struct join, left_on, .help = "the key of the first input"),
    HR_P_STRING(struct join, right_on, .help = "the key of the second input"),
    HR_P_BOOL(struct join, integers, .fallback = "false",
              .help = "read keys that are texts as decimal integers, so that the file "
                      "000123.jpg, by its stem, is the number 123"),
    HR_P_ENUM(struct join, how, .names = hows, .fallback = "inner",
              .help = "inner: records of the first input without a match are left out; "
                      "left: they come once, and `fill` or `matched` is needed"),
    HR_P_MAP(struct join, fill, .fallback = "{}", .items_min = 0,
             .items_max = HR_LIST_MAX, .values = true,
             .help =
                 "left: what the fields of the second input become, under their names "
                 "after the join, where there is no match, such as {age: -1, name: "
                 "'='}; = stands for the text after it, here an empty one, and for "
                 "an empty list"),
    HR_P_FIELD(struct join, matched, .access = HR_ACCESS_WRITE,
               .help = "left: a new field, true where there is a match; fields that "
                       "`fill` does not name are then zeros, and empty texts and lists"),
    HR_P_JOINED_PREFIX(struct join),
};

struct state {
    struct hr_join_pairs pairs;
    struct hr_join_fills *fills; /* of a left join */
};

/* ---- before any data ---- */

static enum hr_err check_how(const struct join *p, struct hr_error *error)
{
    if (p->how == OUTER_LEFT || (p->fill.count == 0 && p->matched == NULL))
        return HR_OK;
    snprintf(error->param, sizeof error->param, "%s",
             p->matched != NULL ? "matched" : "fill");
    return hr__fail(error, HR_ERR_ARGUMENT,
                    "`%s` is for records without a match, which an inner join leaves "
                    "out: say \"how: left\" to have them",
                    error->param);
}

static enum hr_err join_check(const void *params, struct hr_error *error)
{
    const struct join *p = params;

    HR_TRY(check_how(p, error));
    if (p->on != NULL && p->left_on == NULL && p->right_on == NULL)
        return HR_OK;
    if (p->on == NULL && p->left_on != NULL && p->right_on != NULL)
        return HR_OK;
    snprintf(error->param, sizeof error->param, "%s",
             p->on != NULL || p->right_on == NULL ? "on" : "left_on");
    if (p->on != NULL)
        return hr__fail(error, HR_ERR_ARGUMENT,
                        "it has `on` and `%s`: give `on` alone, or left_on and right_on",
                        p->left_on != NULL ? "left_on" : "right_on");
    return hr__fail(error, HR_ERR_ARGUMENT,
                    "it has no key for %s: give `on`, or left_on and right_on",
                    p->left_on != NULL    ? "the second input"
                    : p->right_on != NULL ? "the first input"
                                          : "its inputs");
}

static const char *join_by(const void *params, size_t input, const char **ret_param)
{
    const struct join *p = params;

    *ret_param = p->on != NULL ? "on" : input == HR_JOIN_LEFT ? "left_on" : "right_on";
    if (p->on != NULL)
        return p->on;
    return input == HR_JOIN_LEFT ? p->left_on : p->right_on;
}

static bool join_optional(const void *params, size_t input)
{
    return ((const struct join *)params)->how == OUTER_LEFT && input == HR_JOIN_RIGHT;
}

/* The fields of the output from `first` on are those of the second input. */
static enum hr_err infer_left(struct hr_infer *infer, size_t first)
{
    const struct join *p = infer->params;
    struct hr_field *matched;

    for (size_t i = first; i < infer->output->count; i++)
        HR_TRY(hr__join_fill_check(infer, i, &p->fill, p->matched != NULL));
    HR_TRY(hr__join_fill_names(infer, first, &p->fill));
    if (p->matched == NULL)
        return HR_OK;
    if (hr__schema_find(infer->output, p->matched) != NULL)
        return hr__infer_fail(infer, "matched", HR_ERR_GRAPH,
                              "an input has a field \"%s\": give `matched` another name",
                              p->matched);
    matched = hr__schema_put(infer->output, p->matched);
    if (matched == NULL)
        return hr__infer_fail(infer, "matched", HR_ERR_LIMIT, "more than %d fields",
                              HR_SCHEMA_FIELDS_MAX);
    matched->kind = HR_FIELD_TENSOR;
    matched->dtype = HR_BOOL;
    return HR_OK;
}

static enum hr_err join_infer(struct hr_infer *infer)
{
    const struct join *p = infer->params;
    const struct state *state = infer->state;
    size_t first = 0;

    HR_TRY(hr__joined_begin(infer, &p->prefix));
    for (size_t i = 0; i < infer->input_count; i++) {
        const struct hr_schema *in = &infer->inputs[i];

        first = infer->output->count;
        for (size_t k = 0; k < in->count; k++) {
            if (i == HR_JOIN_RIGHT && p->on != NULL &&
                strcmp(in->fields[k].name, p->on) == 0 &&
                hr__schema_get(&infer->inputs[HR_JOIN_LEFT], p->on) != NULL)
                continue; /* both are equal */
            HR_TRY(hr__joined_add(infer, &in->fields[k], &p->prefix, i));
        }
    }
    if (p->how == OUTER_LEFT)
        HR_TRY(infer_left(infer, first));
    infer->output->records = state != NULL ? (int64_t)state->pairs.count : -1;
    return HR_OK;
}

static enum hr_err join_apply(struct hr_op_ctx *ctx)
{
    const struct state *state = ctx->state;
    void *memory;

    if (ctx->field_count == 0) /* without `matched` */
        return HR_OK;
    HR_TRY(hr__op_alloc(ctx, 1, &memory));
    *(uint8_t *)memory = state->pairs.at[HR_JOIN_RIGHT][ctx->id->index] != HR_JOIN_NONE;
    hr__value_set_tensor(ctx->fields[0], HR_BOOL, 0, NULL, memory, NULL);
    return HR_OK;
}

static enum hr_err join_fill(struct hr_op_ctx *ctx, size_t field, struct hr_value *value)
{
    const struct state *state = ctx->state;

    return hr__join_fill(state->fills, ctx, field, value);
}

/* ---- hooks ---- */

static void join_close(void *state)
{
    struct state *s = state;

    hr__join_pairs_finish(&s->pairs);
    hr__join_fills_destroy(s->fills);
    hr__free(s);
}

static const char *type_name(enum hr_key_type type)
{
    return type == HR_KEY_INTEGER ? "an integer" : "a text";
}

static enum hr_err check_keys(const struct join *p, const struct hr_join_reader *left,
                              const struct hr_join_reader *right, struct hr_error *error)
{
    for (size_t i = HR_JOIN_LEFT; i <= HR_JOIN_RIGHT; i++) {
        const struct hr_join_reader *r = i == HR_JOIN_LEFT ? left : right;
        const char *param;

        (void)join_by(p, i, &param);
        snprintf(error->param, sizeof error->param, "%s", param);
        if (r->keys->count >= UINT32_MAX)
            return hr__fail(error, HR_ERR_LIMIT,
                            "fewer than %lu records can be joined, and '%s' has %llu",
                            (unsigned long)UINT32_MAX, r->keys->of,
                            (unsigned long long)r->keys->count);
        if (r->keys->type == HR_KEY_OTHER)
            return hr__fail(error, HR_ERR_ARGUMENT,
                            "the \"%s\" of '%s' is neither an integer nor a text", r->by,
                            r->keys->of);
    }
    if (left->keys->type != right->keys->type && !p->integers)
        return hr__fail(error, HR_ERR_ARGUMENT,
                        "the \"%s\" of '%s' is %s and the \"%s\" of '%s' is %s, so none "
                        "are equal: \"integers: true\" reads texts as decimal integers",
                        left->by, left->keys->of, type_name(left->keys->type), right->by,
                        right->keys->of, type_name(right->keys->type));
    error->param[0] = '\0';
    return HR_OK;
}

static enum hr_err join_open(const struct hr_open *open, void **ret_state)
{
    const struct join *p = open->params;
    struct hr_join_reader readers[2];
    struct state *state;
    enum hr_err code;

    for (size_t i = HR_JOIN_LEFT; i <= HR_JOIN_RIGHT; i++) {
        const char *param;

        readers[i] = (struct hr_join_reader){
            .keys = open->keys[i],
            .by = join_by(p, i, &param),
            .integers = p->integers || open->keys[i]->type == HR_KEY_INTEGER,
        };
        hr__str_init(&readers[i].text);
    }
    HR_TRY(check_keys(p, &readers[HR_JOIN_LEFT], &readers[HR_JOIN_RIGHT], open->error));
    state = hr__calloc(1, sizeof *state);
    if (state == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    for (size_t i = HR_JOIN_LEFT; i <= HR_JOIN_RIGHT; i++)
        state->pairs.records[i] = open->keys[i]->count;
    code = hr__join_pairs_make(&readers[HR_JOIN_LEFT], &readers[HR_JOIN_RIGHT],
                               p->how == OUTER_LEFT, &state->pairs, open->error);
    for (size_t i = HR_JOIN_LEFT; i <= HR_JOIN_RIGHT; i++)
        hr__str_finish(&readers[i].text);
    if (code == HR_OK && p->how == OUTER_LEFT) {
        state->fills = hr__join_fills_create(open->output, &p->fill);
        if (state->fills == NULL)
            code = hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    }
    if (code == HR_OK)
        *ret_state = state;
    else
        join_close(state);
    return code;
}

static void join_identity(const void *params, const void *state, struct hr_hasher *hasher)
{
    const struct hr_join_pairs *pairs = &((const struct state *)state)->pairs;

    (void)params;
    for (int side = HR_JOIN_LEFT; side <= HR_JOIN_RIGHT; side++)
        hr__hasher_add(hasher, pairs->at[side],
                       (size_t)pairs->count * sizeof *pairs->at[side]);
}

static uint64_t join_count(const void *state)
{
    return ((const struct state *)state)->pairs.count;
}

static uint64_t join_map(const void *state, size_t input, uint64_t at)
{
    const struct hr_join_pairs *pairs = &((const struct state *)state)->pairs;
    uint32_t position = at < pairs->count ? pairs->at[input][at] : 0;

    return position == HR_JOIN_NONE ? HR_INDEX_NONE : position;
}

static void join_kept(const void *params, const void *state, uint64_t budget,
                      struct hr_op_kept *ret_kept)
{
    const struct hr_join_pairs *pairs = &((const struct state *)state)->pairs;

    (void)params, (void)budget;
    ret_kept->fixed = pairs->count * 2 * sizeof **pairs->at;
}

static void join_tell(const void *state, struct hr_str *out)
{
    static const char *const sides[] = {"left", "right"};
    const struct hr_join_pairs *pairs = &((const struct state *)state)->pairs;

    hr__str_addf(out, "%llu pairs", (unsigned long long)(pairs->count - pairs->alone));
    for (int i = HR_JOIN_LEFT; i <= HR_JOIN_RIGHT; i++) {
        hr__str_addf(out, "%s %llu of %llu %s records", i == HR_JOIN_LEFT ? ":" : " with",
                     (unsigned long long)pairs->used[i],
                     (unsigned long long)pairs->records[i], sides[i]);
        if (pairs->empty[i] > 0)
            hr__str_addf(out, " (%llu without a key)",
                         (unsigned long long)pairs->empty[i]);
    }
    if (pairs->alone > 0)
        hr__str_addf(out, "; %llu left records without a match",
                     (unsigned long long)pairs->alone);
}

const struct hr_op hr_op_flow_join = {
    .name = "flow.join",
    .summary = "join the records of two inputs that have equal keys",
    .doc =
        "An inner join, as `merge` of pandas: one record for each pair of equal keys, in "
        "the order of the first input, and for one record there in the order of the "
        "second. A record without a match is left out; `headrace explain` says how many "
        "of each input are used. An inner join in which no record at all has a match is "
        "refused. With `how: left`, a record of the first input without a match comes "
        "once, in its place, even if none has one. Its fields of the second input need "
        "values that "
        "cannot be taken for data: `fill` names them, or `matched` names a new field "
        "that "
        "is true where there is a match. Without either the join is refused, as are "
        "fields that cannot be made up: the bytes of files, and pictures of differing "
        "sizes. A key that is null matches nothing; a damaged record "
        "whose key cannot be read is an error. Keys are integers or texts, and those of "
        "both inputs must be the same kind. They are read once, when the graph is "
        "opened: "
        "each pair takes 8 bytes of memory, which a budget counts. While they are read, "
        "a "
        "record of the second input takes 24 to 40 bytes and its key, one of the first 4 "
        "bytes: put the smaller table second.\n\n"
        "A key is a field of the records that reach the join, under its name there. As "
        "with "
        "order.split, its values must be known before any record is read: a field of the "
        "source as it is or renamed, or what steps before "
        "the join make of such integers and texts, such as text.lower, text.strip or "
        "tensor.cast. These steps run once for each key when the graph is opened, on "
        "nothing else of the record. Your own functions and random steps cannot make a "
        "key. Where no field has the name, it is that of a key of the source: path, "
        "stem, index, or a field that was dropped. A "
        "record without a match has no key in fields of the second input. The output has "
        "the field `on` "
        "once; other names that both inputs have need a `prefix`. Both inputs must know "
        "their number of records: filters, expansions, batches and shuffles come after "
        "it, and a shuffle costs the same there. Steps before it run for each joined "
        "record, with the same random draws for a record that is joined twice; steps "
        "after it draw anew for each. "
        "To join by position instead, see flow.zip.",
    .version = 1,
    .kind = HR_OP_ZIP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_ZERO_COPY | HR_TRAIT_DEFERS,
    .inputs_min = 2,
    .inputs_max = 2,
    HR_PARAMS(join_params, struct join),
    .check = join_check,
    .infer = join_infer,
    .open = join_open,
    .close = join_close,
    .identity = join_identity,
    .apply = join_apply,
    .zip = {.by = join_by,
            .count = join_count,
            .map = join_map,
            .optional = join_optional,
            .fill = join_fill},
    .learner.tell = join_tell,
    .memory.kept = join_kept,
};
