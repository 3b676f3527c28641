/*
 * graph/graph_test_util.h - what the tests of graph/ share: a registry of its own, with
 * ops as small as the rules need them, so that nothing depends on what real operators do;
 * reading, freezing and refusing graphs.
 */
#ifndef HR_GRAPH_GRAPH_TEST_UTIL_H
#define HR_GRAPH_GRAPH_TEST_UTIL_H

#include "graph/graph.h"

#include "core/alloc.h"
#include "tests/support/check.h"

/* ---- ops ---- */

static int opened, closed;

struct source {
    int64_t n, id;
    const char *path;
    bool broken;
};

static const struct hr_param source_params[] = {
    HR_P_INT(struct source, n, .fallback = "100", HR_RANGE(0, 1e9), .help = "records"),
    HR_P_INT(struct source, id, .help = "stands for the content"),
    HR_P_PATH(struct source, path, .not_identity = true, .help = "where"),
    HR_P_BOOL(struct source, broken, .not_identity = true, .help = "fails to open"),
};

static enum hr_err source_infer(struct hr_infer *infer)
{
    struct hr_field *data = hr__schema_put(infer->output, "data");

    data->kind = HR_FIELD_BYTES;
    data->meaning = HR_MEANING_ENCODED;
    hr__schema_put(infer->output, "label")->dtype = HR_I32;
    return HR_OK;
}

static enum hr_err source_open(const struct hr_open *open, void **ret_state)
{
    const struct source *p = open->params;

    if (p->broken)
        return hr__fail(open->error, HR_ERR_NOT_FOUND, "no files under %s", p->path);
    *ret_state = hr__strdup("state");
    if (*ret_state == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    opened++;
    return HR_OK;
}

static void source_close(void *state)
{
    closed++;
    hr__free(state);
}

static uint64_t source_count(const void *params, const void *state)
{
    CHECK_EQ_STR(state, "state");
    return (uint64_t)((const struct source *)params)->n;
}

static void
source_identity(const void *params, const void *state, struct hr_hasher *hasher)
{
    (void)state;
    hr__hasher_add(hasher, &((const struct source *)params)->id, sizeof(int64_t));
}

static const struct hr_op op_source = {
    .name = "test.source",
    .version = 1,
    .kind = HR_OP_SOURCE,
    HR_PARAMS(source_params, struct source),
    .infer = source_infer,
    .open = source_open,
    .close = source_close,
    .identity = source_identity,
    .source = {.count = source_count},
};

struct fields {
    const char *from, *to;
    double p;
    struct hr_names more;
};

static enum hr_err keep(struct hr_infer *infer)
{
    (void)infer;
    return HR_OK;
}

static const struct hr_param decode_params[] = {
    HR_P_FIELD(struct fields, from, .fallback = "data", .access = HR_ACCESS_TAKE,
               .help = "bytes"),
    HR_P_FIELD(struct fields, to, .fallback = "image", .access = HR_ACCESS_WRITE,
               .help = "image"),
};

static enum hr_err decode_infer(struct hr_infer *infer)
{
    struct hr_field *to = infer->fields[1];

    CHECK_EQ_INT(infer->field_count, 2);
    to->kind = HR_FIELD_TENSOR;
    to->dtype = HR_U8;
    to->ndim = 3;
    to->meaning = HR_MEANING_IMAGE_U8;
    to->layout = HR_LAYOUT_HWC;
    hr__dim_unknown(&to->dims[0], "height");
    hr__dim_unknown(&to->dims[1], "width");
    hr__dim_set(&to->dims[2], 3);
    return HR_OK;
}

static const struct hr_op op_decode = {
    .name = "test.decode",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_DECODES,
    HR_PARAMS(decode_params, struct fields),
    .infer = decode_infer,
};

static const struct hr_param flip_params[] = {
    HR_P_FIELD(struct fields, from, .fallback = "image", .access = HR_ACCESS_UPDATE,
               .help = "image"),
    HR_P_FLOAT(struct fields, p, .fallback = "0.5", HR_RANGE(0, 1), .help = "chance"),
};

static enum hr_err flip_infer(struct hr_infer *infer)
{
    return hr__infer_image(infer, 0);
}

static const struct hr_op op_flip = {
    .name = "test.flip",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(flip_params, struct fields),
    .infer = flip_infer,
};

static const struct hr_op op_flip2 = {
    .name = "test.flop", /* as flip, another version */
    .version = 2,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(flip_params, struct fields),
    .infer = flip_infer,
};

static const struct hr_param view_params[] = {
    HR_P_FIELDS(struct fields, more, .fallback = "[label]", .access = HR_ACCESS_READ,
                .help = "fields"),
    HR_P_FIELD(struct fields, to, .access = HR_ACCESS_WRITE, .help = "result"),
};

static enum hr_err
view_binds(const void *params, const void *state, const struct hr_schema *input,
           struct hr_bindings *bindings, struct hr_error *error)
{
    (void)params;
    (void)state;
    if (hr__schema_get(input, "extra") == NULL)
        return HR_OK;
    return hr__bind(bindings, "extra", HR_ACCESS_READ, error);
}

static const struct hr_op op_view = {
    .name = "test.view",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(view_params, struct fields),
    .infer = keep,
    .binds = view_binds,
};

struct none {
    int64_t size;
    bool drop_last;
};

static const struct hr_param size_params[] = {
    HR_P_INT(struct none, size, .required = true, HR_MIN(1), .help = "how many"),
    HR_P_BOOL(struct none, drop_last, .fallback = "false", .help = "full ones only"),
};

#define NONE .params_size = sizeof(struct none), .version = 1, .infer = keep
#define SIZE HR_PARAMS(size_params, struct none), .version = 1

static const struct hr_op op_filter = {
    .name = "test.filter", .kind = HR_OP_FILTER, .traits = HR_TRAIT_PURE, NONE};
static const struct hr_op op_expand = {
    .name = "test.expand", .kind = HR_OP_EXPAND, .traits = HR_TRAIT_PURE, NONE};
static const struct hr_op op_mix = {
    .name = "test.mix", .kind = HR_OP_MAP, .traits = HR_TRAIT_BATCHED, NONE};
static const struct hr_op op_zip = {
    .name = "test.zip", .kind = HR_OP_ZIP, .inputs_min = 2, .inputs_max = 3, NONE};

static enum hr_err rank_infer(struct hr_infer *infer)
{
    infer->output->batch_rank += infer->op->kind == HR_OP_SEQUENCE ? 1 : -1;
    return HR_OK;
}

static uint64_t batch_count(const void *params, uint64_t n)
{
    const struct none *p = params;

    return p->drop_last ? n - n % (uint64_t)p->size : n;
}

static const struct hr_op op_batch = {.name = "test.batch",
                                      .kind = HR_OP_SEQUENCE,
                                      SIZE,
                                      .infer = rank_infer,
                                      .sequence.count = batch_count};
static const struct hr_op op_unbatch = {.name = "test.unbatch",
                                        .kind = HR_OP_EXPAND,
                                        .params_size = sizeof(struct none),
                                        .version = 1,
                                        .infer = rank_infer};

static uint64_t same_count(const void *params, const void *state, uint64_t n)
{
    (void)params, (void)state;
    return n;
}

static uint64_t take_count(const void *params, const void *state, uint64_t n)
{
    uint64_t size = (uint64_t)((const struct none *)params)->size;

    (void)state;
    return n < size ? n : size;
}

static enum hr_err take_add(void *sequencer, struct hr_sequence_record *record,
                            enum hr_sequence_verdict *ret_verdict, struct hr_error *error)
{
    (void)sequencer, (void)record, (void)error;
    *ret_verdict = HR_SEQUENCE_PASS;
    return HR_OK;
}

struct shuffle {
    int64_t seed;
};

static const struct hr_param shuffle_params[] = {
    HR_P_INT(struct shuffle, seed, .fallback = "-1", .help = "decides the order"),
};

static bool shuffle_draws_by_params(const void *params)
{
    return ((const struct shuffle *)params)->seed >= 0;
}

static const struct hr_op op_shuffle = {.name = "test.shuffle",
                                        .kind = HR_OP_ORDER,
                                        .traits = HR_TRAIT_RANDOM,
                                        .version = 1,
                                        HR_PARAMS(shuffle_params, struct shuffle),
                                        .infer = keep,
                                        .order.count = same_count,
                                        .order.draws_by_params = shuffle_draws_by_params};
static const struct hr_op op_take = {.name = "test.take",
                                     .kind = HR_OP_ORDER,
                                     SIZE,
                                     .infer = keep,
                                     .order.count = take_count,
                                     .sequence.add = take_add};
static const struct hr_op op_shard = {.name = "test.shard",
                                      .kind = HR_OP_ORDER,
                                      .traits = HR_TRAIT_SHARDS,
                                      NONE,
                                      .order.count = same_count};

const struct hr_op *const *hr__op_list(size_t *ret_count)
{
    static const struct hr_op *const list[] = {
        &op_batch, &op_decode,  &op_expand, &op_filter, &op_flip,    &op_flip2, &op_mix,
        &op_shard, &op_shuffle, &op_source, &op_take,   &op_unbatch, &op_view,  &op_zip};

    *ret_count = sizeof list / sizeof list[0];
    return list;
}

/* ---- helpers ---- */

static inline struct hr_graph *
parse_with(const char *text, const char *name, const struct hr_graph_param *params,
           size_t count)
{
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};

    if (hr_graph_parse(text, strlen(text), name, params, count, &graph, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%d:%d: %s", error.line, error.column,
                     error.message);
    return graph;
}

static inline struct hr_graph *parse(const char *text)
{
    return parse_with(text, text[0] == '{' ? "t.json" : "t.yaml", NULL, 0);
}

static inline void freeze(struct hr_graph *graph)
{
    struct hr_error error = {0};

    if (hr_graph_freeze(graph, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%d:%d: %s", error.line, error.column,
                     error.message);
}

/* Freezes and drops the graph. */
static inline const char *fingerprint(struct hr_graph *graph)
{
    static char texts[8][HR_FINGERPRINT_BYTES];
    static int at;
    char *text = texts[at++ % 8];

    freeze(graph);
    CHECK_OK(hr_graph_fingerprint(graph, text));
    hr_graph_unref(graph);
    return text;
}

#define SAME(a, b) CHECK_EQ_STR(fingerprint(a), fingerprint(b))
#define DIFFER(a, b) CHECK(strcmp(fingerprint(a), fingerprint(b)) != 0)

static inline struct hr_node
add(struct hr_graph *graph, const char *op, const char *params)
{
    struct hr_node node = {0}, input = {(uint32_t)hr_graph_node_count(graph) - 1};
    struct hr_error error = {0};

    if (hr_graph_add(graph, op, NULL, &input, input.id == UINT32_MAX ? 0 : 1, params,
                     &node, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    return node;
}

/* Loading or freezing must fail there with these words. */
static inline void
refused(const char *text, enum hr_err code, int line, int column, const char *words)
{
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};
    enum hr_err got =
        hr_graph_parse(text, strlen(text), "g.yaml", NULL, 0, &graph, &error);

    if (got == HR_OK) {
        got = hr_graph_freeze(graph, &error);
        CHECK(got == HR_OK || hr_graph_record_count(graph) == -1);
    } else {
        CHECK(graph == NULL);
    }
    hr_graph_unref(graph);
    if (got != code || error.line != line || error.column != column ||
        strstr(error.message, words) == NULL)
        check_failed(__FILE__, __LINE__,
                     "%s\n%s at %d:%d: %s\n  instead of %s at %d:%d: %s", text,
                     hr_err_name(got), error.line, error.column, error.message,
                     hr_err_name(code), line, column, words);
    if (line > 0) {
        char place[32];

        snprintf(place, sizeof place, "g.yaml:%d:%d: ", line, column);
        CHECK_EQ_STR(error.file, "g.yaml");
        CHECK(strncmp(error.message, place, strlen(place)) == 0);
        CHECK(strstr(error.message + 1, "g.yaml:") == NULL);
    }
    CHECK_EQ_INT(opened, closed);
}

#define HEAD "headrace: 1\npipeline:\n"

/* A file with parameters. */
static const char declared[] =
    "headrace: 1\n"
    "params:\n"
    "  n: {type: int, default: 10, help: records}\n"
    "  where: {type: path}\n"
    "  names: [label]\n"
    "  mode: {choices: [a, b], default: a}\n"
    "pipeline:\n"
    "- test.source: {n: \"${n}\", path: \"/x/${where}/${n}$${n}\"}\n"
    "- test.view: {more: \"${names}\"}\n";

#endif
