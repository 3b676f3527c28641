/*
 * graph/graph_test.c - tests of graph/ on a registry of its own: ops as small as the
 * rules need them, so that nothing here depends on what real operators do.
 */
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
    .count = source_count,
    .identity = source_identity,
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

static enum hr_err view_binds(const void *params, const struct hr_schema *input,
                              struct hr_bindings *bindings, struct hr_error *error)
{
    (void)params;
    if (hr__schema_find((struct hr_schema *)(uintptr_t)input, "extra") == NULL)
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
    infer->output->batch_rank += infer->op->kind == HR_OP_BATCH ? 1 : -1;
    return HR_OK;
}

static void batch_spec(const void *params, struct hr_batch_spec *ret_spec)
{
    const struct none *p = params;

    *ret_spec = (struct hr_batch_spec){.size = p->size, .drop_last = p->drop_last};
}

static const struct hr_op op_batch = {.name = "test.batch",
                                      .kind = HR_OP_BATCH,
                                      SIZE,
                                      .infer = rank_infer,
                                      .batch_spec = batch_spec};
static const struct hr_op op_unbatch = {.name = "test.unbatch",
                                        .kind = HR_OP_EXPAND,
                                        .params_size = sizeof(struct none),
                                        .version = 1,
                                        .infer = rank_infer};

static uint64_t same_count(const void *params, uint64_t n)
{
    (void)params;
    return n;
}

static uint64_t take_count(const void *params, uint64_t n)
{
    uint64_t size = (uint64_t)((const struct none *)params)->size;

    return n < size ? n : size;
}

static enum hr_stream_verdict take_verdict(const void *params, uint64_t ordinal)
{
    return ordinal < take_count(params, UINT64_MAX) ? HR_STREAM_KEEP : HR_STREAM_END;
}

static const struct hr_op op_shuffle = {.name = "test.shuffle",
                                        .kind = HR_OP_ORDER,
                                        .traits = HR_TRAIT_RANDOM,
                                        NONE,
                                        .order_count = same_count};
static const struct hr_op op_take = {.name = "test.take",
                                     .kind = HR_OP_ORDER,
                                     SIZE,
                                     .infer = keep,
                                     .order_count = take_count,
                                     .stream_verdict = take_verdict};
static const struct hr_op op_shard = {.name = "test.shard",
                                      .kind = HR_OP_ORDER,
                                      .traits = HR_TRAIT_SHARDS,
                                      NONE,
                                      .order_count = same_count};

const struct hr_op *const *hr__op_list(size_t *ret_count)
{
    static const struct hr_op *const list[] = {
        &op_batch, &op_decode,  &op_expand, &op_filter, &op_flip,    &op_flip2, &op_mix,
        &op_shard, &op_shuffle, &op_source, &op_take,   &op_unbatch, &op_view,  &op_zip};

    *ret_count = sizeof list / sizeof list[0];
    return list;
}

/* ---- helpers ---- */

static struct hr_graph *parse_with(const char *text, const char *name,
                                   const struct hr_graph_param *params, size_t count)
{
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};

    if (hr_graph_parse(text, strlen(text), name, params, count, &graph, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%d:%d: %s", error.line, error.column,
                     error.message);
    return graph;
}

static struct hr_graph *parse(const char *text)
{
    return parse_with(text, text[0] == '{' ? "t.json" : "t.yaml", NULL, 0);
}

static void freeze(struct hr_graph *graph)
{
    struct hr_error error = {0};

    if (hr_graph_freeze(graph, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%d:%d: %s", error.line, error.column,
                     error.message);
}

/* Freezes and drops the graph. */
static const char *fingerprint(struct hr_graph *graph)
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

static struct hr_node add(struct hr_graph *graph, const char *op, const char *params)
{
    struct hr_node node = {0}, input = {(uint32_t)hr_graph_node_count(graph) - 1};
    struct hr_error error = {0};

    if (hr_graph_add(graph, op, NULL, &input, input.id == UINT32_MAX ? 0 : 1, params,
                     &node, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    return node;
}

/* Loading or freezing must fail there with these words. */
static void
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

/* ---- reading ---- */

static const char long_yaml[] =
    "headrace: 1\n"
    "title: a test\n"
    "params:\n"
    "  chance: {type: float, default: 0.25, help: how often}\n"
    "pipeline:\n"
    "  - test.source: {n: 10, id: 3}\n"
    "  - test.shuffle\n"
    "  - test.decode: {}\n"
    "  - test.flip: {p: \"${chance}\"}\n"
    "  - test.batch: {size: 4}\n";

TEST(a_chain_is_read_and_frozen)
{
    struct hr_graph *graph = parse(long_yaml);
    struct hr_node_info node;
    struct hr_field_info field;

    CHECK_EQ_INT(hr_graph_node_count(graph), 5);
    CHECK_EQ_INT(hr_graph_record_count(graph), -1);
    CHECK_ERR(HR_ERR_STATE, hr_graph_field_info(graph, 0, 0, &field));
    freeze(graph);
    freeze(graph); /* repeating it is fine */
    CHECK_OK(hr_graph_node_info(graph, 3, &node));
    CHECK_EQ_STR(node.name, "test.flip");
    CHECK_EQ_INT(node.inputs[0].id, 2);
    CHECK_EQ_INT(hr_graph_record_count(graph), 10);
    CHECK_EQ_INT(hr_graph_field_count(graph, 0), 2);
    CHECK_EQ_INT(hr_graph_field_count(graph, 2), 2);
    CHECK_OK(hr_graph_field_info(graph, 2, 1, &field));
    CHECK_EQ_STR(field.name, "image");
    CHECK_EQ_INT(field.dims[0], -1);
    CHECK_EQ_STR(field.dim_names[0], "height");
    CHECK_EQ_STR(field.dim_names[2], "");
    CHECK_ERR(HR_ERR_RANGE, hr_graph_field_info(graph, 2, 2, &field));
    CHECK_EQ_INT(((const struct fields *)graph->nodes[3].params)->p * 100, 25);
    CHECK_ERR(HR_ERR_STATE,
              hr_graph_add(graph, "test.mix", NULL, NULL, 0, NULL, NULL, NULL));
    CHECK_EQ_INT(opened, closed + 1);
    hr_graph_ref(graph);
    hr_graph_unref(graph);
    hr_graph_unref(graph);
    CHECK_EQ_INT(opened, closed);
}

TEST(all_ways_of_writing_a_graph_give_one_fingerprint)
{
    struct hr_graph *built = hr_graph_create();

    add(built, "test.source", "{\"id\": 3, \"n\": 10}");
    add(built, "test.shuffle", NULL);
    add(built, "test.decode", "from: data\nto: image");
    add(built, "test.flip", "{p: 0.25}");
    add(built, "test.batch", "size: 4.0");
    SAME(parse(long_yaml), built);
    SAME(
        parse(long_yaml),
        parse(
            "{\"headrace\": 1, \"pipeline\": [{\"test.source\": {\"id\": 3, \"n\": 10}}, "
            "\"test.shuffle\", \"test.decode\", {\"test.flip\": {\"p\": 0.25}}, "
            "{\"test.batch\": {\"size\": 4}}]}"));
    SAME(parse(long_yaml),
         parse(HEAD "- test.source: {n: 10, id: 3}\n"
                    "  name: a\n"
                    "- test.shuffle:\n"
                    "  name: b\n"
                    "  inputs: [a]\n"
                    "- test.decode: {from: data, keep_position: true}\n"
                    "  inputs: b\n"
                    "  name: c\n"
                    "- test.flip: {depends_on: c, from: image, p: 25e-2}\n"
                    "- test.batch: {drop_last: false, size: 4}\n"));
}

TEST(whatever_changes_records_changes_the_fingerprint)
{
#define CHAIN(source, flip) parse(HEAD "- " source "\n- test.decode\n- " flip "\n")
    const char *base = fingerprint(CHAIN("test.source", "test.flip"));

    CHECK_EQ_STR(base, fingerprint(CHAIN("test.source: {path: /else}", "test.flip")));
    CHECK_EQ_STR(base, fingerprint(CHAIN("test.source: {id: 0}", "test.flip: {p: 0.5}")));
    CHECK(strcmp(base, fingerprint(CHAIN("test.source: {id: 1}", "test.flip"))) != 0);
    CHECK(strcmp(base, fingerprint(CHAIN("test.source: {n: 5}", "test.flip"))) != 0);
    CHECK(strcmp(base, fingerprint(CHAIN("test.source", "test.flip: {p: 1}"))) != 0);
    CHECK(strcmp(base, fingerprint(CHAIN("test.source", "test.flop"))) != 0);
    CHECK(strcmp(base, fingerprint(parse(HEAD "- test.source\n- test.shuffle\n"
                                              "- test.decode\n- test.flip\n"))) != 0);
}

TEST(the_number_of_a_random_node_counts_and_that_of_a_pure_one_does_not)
{
    /* Two sources in either order under a zip: only the order of adding differs. */
#define TWO(first, second, op)                                                           \
    parse(HEAD "- " first "\n- " second "\n"                                             \
               "- test.decode:\n  name: d\n  inputs: x\n"                                \
               "- " op "\n  inputs: d\n  name: e\n"                                      \
               "- test.zip:\n  inputs: [e, y]\n")
    SAME(TWO("test.source: {id: 1}\n  name: x", "test.source: {id: 2}\n  name: y",
             "test.flop:"),
         TWO("test.source: {id: 2}\n  name: y", "test.source: {id: 1}\n  name: x",
             "test.flop:"));
    SAME(parse(HEAD "- test.source\n- test.decode\n- test.flip\n"),
         parse(HEAD "- test.source\n- test.decode\n- test.flip:\n  name: other\n"));
    DIFFER(parse(HEAD "- test.source\n- test.decode\n- test.flip\n"),
           parse(HEAD
                 "- test.source\n- test.flip:\n  inputs: d\n- test.decode:\n  name: d\n"
                 "  inputs: test.source\n"));
}

TEST(wiring_counts)
{
#define ZIP(inputs)                                                                      \
    parse(HEAD "- test.source: {id: 1}\n  name: x\n- test.source: {id: 2}\n  name: y\n"  \
               "- test.zip:\n  inputs: " inputs "\n")
    SAME(ZIP("[x, y]"), ZIP("[x, y]"));
    DIFFER(ZIP("[x, y]"), ZIP("[y, x]"));
}

TEST(inputs_may_point_forward_and_numbers_stay)
{
    struct hr_graph *graph = parse(HEAD "- test.decode:\n  inputs: late\n"
                                        "- test.source:\n  name: late\n");

    freeze(graph);
    CHECK_EQ_INT(graph->output, 0);
    CHECK_EQ_STR(graph->nodes[0].name, "test.decode");
    hr_graph_unref(graph);
}

TEST(names_are_made_and_numbered)
{
    struct hr_graph *graph = parse(HEAD "- test.source\n- test.decode\n- test.flip\n- "
                                        "test.flip\n- test.flip\n");

    CHECK_EQ_STR(graph->nodes[3].name, "test.flip2");
    CHECK_EQ_STR(graph->nodes[4].name, "test.flip3");
    hr_graph_unref(graph);
}

TEST(hints_are_kept_and_are_no_parameters)
{
    struct hr_graph *graph =
        parse(HEAD "- test.source\n- test.decode: {keep_position: true}"
                   "\n- test.flip: {depends_on: [test.source, "
                   "test.decode]}\n");

    freeze(graph);
    CHECK(graph->nodes[1].keep_position);
    CHECK_EQ_INT(graph->nodes[2].depends_count, 2);
    CHECK(hr__doc_get(graph->nodes[1].canonical, "keep_position") == NULL);
    hr_graph_unref(graph);
}

/* ---- parameters of the file ---- */

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

TEST(parameters_replace_typed_and_in_texts)
{
    const struct hr_graph_param params[] = {
        {"where", "2012"},
        {"n",     "7"   },
        {"n",     "8"   }
    };
    struct hr_graph *graph = parse_with(declared, "d.yaml", params, 3);
    const struct source *source = graph->nodes[0].params;
    struct hr_graph_param_info info;

    CHECK_EQ_INT(source->n, 8);
    CHECK_EQ_STR(source->path, "/x/2012/8${n}");
    CHECK_OK(hr_graph_param_info(graph, 0, &info));
    CHECK_EQ_STR(info.name, "n");
    CHECK_EQ_STR(info.type, "int");
    CHECK_EQ_STR(info.fallback, "10");
    CHECK_EQ_STR(info.help, "records");
    CHECK(!info.required);
    CHECK_OK(hr_graph_param_info(graph, 1, &info));
    CHECK(info.required && info.fallback == NULL && info.help == NULL);
    CHECK_OK(hr_graph_param_info(graph, 2, &info));
    CHECK_EQ_STR(info.type, "list");
    CHECK_OK(hr_graph_param_info(graph, 3, &info));
    CHECK_EQ_STR(info.type, "enum");
    CHECK_ERR(HR_ERR_RANGE, hr_graph_param_info(graph, 4, &info));
    hr_graph_unref(graph);
}

TEST(lists_can_be_given)
{
    const struct hr_graph_param params[] = {
        {"where", "x"            },
        {"names", "[data, label]"}
    };
    struct hr_graph *graph = parse_with(declared, "d.yaml", params, 2);

    freeze(graph);
    CHECK_EQ_INT(graph->nodes[1].field_count, 2);
    CHECK_EQ_STR(graph->nodes[1].field_names[0], "data");
    hr_graph_unref(graph);
}

static void
refused_param(const char *name, const char *value, enum hr_err code, const char *words)
{
    const struct hr_graph_param params[] = {
        {"where", "x"  },
        {name,    value}
    };
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};

    CHECK_ERR(code, hr_graph_parse(declared, strlen(declared), "d.yaml", params, 2,
                                   &graph, &error));
    CHECK_HAS(error.message, words);
    CHECK_EQ_STR(error.param, name);
}

TEST(wrong_values_of_parameters_are_refused_before_any_op_sees_them)
{
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};

    refused_param("wehre", "y", HR_ERR_ARGUMENT,
                  "parameter \"wehre\" is not known; did you mean \"where\"?");
    refused_param("n", "many", HR_ERR_TYPE,
                  "parameter \"n\" is declared as int, and this is the string \"many\"");
    refused_param("mode", "c", HR_ERR_RANGE,
                  "parameter \"mode\" must be one of a, b, not the string \"c\"");
    refused_param("names", "[1", HR_ERR_FORMAT, "parameter \"names\": ");
    CHECK_ERR(HR_ERR_ARGUMENT, hr_graph_parse(declared, strlen(declared), "d.yaml", NULL,
                                              0, &graph, &error));
    CHECK_EQ_STR(
        error.message,
        "d.yaml:4:3: parameter \"where\" needs a value: give it with -p where=...");
    CHECK_EQ_INT(error.line, 4);
}

TEST(wrong_declarations_and_references_are_refused)
{
#define PARAMS(text) "headrace: 1\nparams: {" text "}\npipeline:\n- test.source\n"
    refused(PARAMS("a: {type: in, default: 1}"), HR_ERR_GRAPH, 2, 20,
            "type \"in\" is not known; did you mean \"int\"?");
    refused(PARAMS("a: {typ: int}"), HR_ERR_GRAPH, 2, 14,
            "key \"typ\" is not known; did you mean \"type\"?");
    refused(PARAMS("a: {type: int, default: x}"), HR_ERR_TYPE, 2, 34,
            "declared as int, and this is the string \"x\"");
    refused(PARAMS("a: {type: 3}"), HR_ERR_TYPE, 2, 14, "\"type\" of parameter \"a\"");
    refused(HEAD "- test.source: {path: \"${x}\"}\n", HR_ERR_GRAPH, 3, 23,
            "the file declares no parameters");
    refused(
        "headrace: 1\nparams: {size: 1}\npipeline:\n- test.source: {n: \"${sise}\"}\n",
        HR_ERR_GRAPH, 4, 20, "did you mean \"size\"?");
    refused("headrace: 1\nparams: {size: 1}\npipeline:\n- test.source: {n: \"${size\"}\n",
            HR_ERR_GRAPH, 4, 20, "\"${\" without \"}\"");
    refused(
        "headrace: 1\nparams: {l: [1]}\npipeline:\n- test.source: {path: \"/${l}\"}\n",
        HR_ERR_GRAPH, 4, 23, "cannot stand within a text");
}

/* ---- wrong graphs ---- */

TEST(wrong_files_are_refused_where_they_are_wrong)
{
    refused("pipeline: []\n", HR_ERR_FORMAT, 1, 1, "lacks the key \"headrace: 1\"");
    refused("headrace: 2\npipeline: []\n", HR_ERR_UNSUPPORTED, 1, 11, "format version 2");
    refused("headrace: 1\npipelin: []\n", HR_ERR_GRAPH, 2, 1,
            "key \"pipelin\" is not known; did you mean \"pipeline\"?");
    refused("headrace: 1\n", HR_ERR_GRAPH, 1, 1, "\"pipeline\" is missing");
    refused("headrace: 1\npipeline: []\n", HR_ERR_GRAPH, 2, 11, "is empty");
    refused(HEAD "- test.sauce\n", HR_ERR_NOT_FOUND, 3, 3,
            "there is no op \"test.sauce\"; did you mean \"test.source\"?");
    refused(HEAD "- test.source\n  test.flip: {}\n", HR_ERR_FORMAT, 4, 12, "");
    refused(HEAD "- test.source: {}\n  test.flip: {}\n", HR_ERR_GRAPH, 4, 3,
            "names two ops");
    refused(HEAD "- test.source: {}\n  nam: x\n", HR_ERR_GRAPH, 4, 3,
            "did you mean \"name\"?");
    refused(HEAD "- name: x\n", HR_ERR_GRAPH, 3, 3, "names no op");
    refused(HEAD "- 3\n", HR_ERR_GRAPH, 3, 3, "not the int 3");
    refused(HEAD "- test.source: {m: 3}\n", HR_ERR_ARGUMENT, 3, 17,
            "node 'test.source' (test.source): parameter \"m\" is not known; ");
    refused(
        HEAD "- test.source\n- test.batch: {size: 0}\n", HR_ERR_RANGE, 4, 22,
        "node 'test.batch' (test.batch): parameter \"size\" must be at least 1, not 0");
    refused(HEAD "- test.source: {keep_position: 3}\n", HR_ERR_TYPE, 3, 32,
            "parameter \"keep_position\" wants a bool");
}

TEST(wrong_wiring_is_refused)
{
    refused(HEAD "- test.flip\n", HR_ERR_GRAPH, 3, 3, "a pipeline begins with a source");
    refused(HEAD "- test.source\n- test.flip:\n  inputs: surce\n", HR_ERR_GRAPH, 5, 11,
            "node 'test.flip' (test.flip): there is no node 'surce'");
    refused(HEAD "- test.source:\n  name: a\n- test.source:\n  name: a\n", HR_ERR_GRAPH,
            5, 3, "node 'a' (test.source): another node has the name 'a'");
    refused(HEAD "- test.source\n- test.source\n", HR_ERR_GRAPH, 3, 3,
            "nothing reads it, nor 'test.source2'");
    refused(HEAD "- test.source\n- test.zip\n", HR_ERR_GRAPH, 4, 3,
            "it takes 2 to 3 inputs, and has 1");
    refused(HEAD "- test.source\n- test.source:\n  inputs: test.source\n", HR_ERR_GRAPH,
            4, 3, "a source has no inputs");
    refused(HEAD "- test.source\n- test.decode:\n  name: a\n  inputs: b\n- test.flip:\n"
                 "  name: b\n  inputs: a\n",
            HR_ERR_GRAPH, 4, 3, "lead back to itself");
    refused("headrace: 1\noutput: test.source\npipeline:\n- test.source\n- test.decode\n",
            HR_ERR_GRAPH, 4, 3, "the last one is 'test.decode'");
    refused(HEAD "- test.source\n- test.decode: {depends_on: test.surce}\n", HR_ERR_GRAPH,
            4, 3, "did you mean 'test.source'?");
    refused(HEAD "- test.source: {depends_on: test.decode}\n- test.decode\n",
            HR_ERR_GRAPH, 3, 3, "does not stand anywhere before it");
}

TEST(wrong_orders_are_refused_with_what_would_mend_them)
{
    refused(
        HEAD "- test.source\n- test.flip\n", HR_ERR_GRAPH, 4, 3,
        "node 'test.flip' (test.flip): there is no field \"image\"; fields here: data, "
        "label; put test.decode before it, which makes \"image\" of \"data\"");
    refused(HEAD "- test.source\n- test.decode\n- test.flip: {from: imgae}\n",
            HR_ERR_GRAPH, 5, 21,
            "there is no field \"imgae\"; did you mean \"image\"? Fields here: label, "
            "image");
    refused(HEAD "- test.source\n- test.flip: {from: data}\n", HR_ERR_TYPE, 4, 21,
            "is encoded bytes, not pixels: put image.decode before it");
    refused(HEAD "- test.source\n- test.decode\n- test.shuffle\n", HR_ERR_GRAPH, 5, 3,
            "put it before 'test.decode'");
    refused(HEAD "- test.source\n- test.filter\n- test.shuffle\n", HR_ERR_GRAPH, 5, 3,
            "behind 'test.filter' that is known only at the end: put it before "
            "'test.filter'");
    refused(HEAD "- test.source\n- test.shard\n- test.shuffle\n", HR_ERR_GRAPH, 5, 3,
            "put it before 'test.shard'");
    refused(HEAD "- test.source\n- test.batch: {size: 2}\n- test.decode\n", HR_ERR_GRAPH,
            5, 3,
            "it works on single records, and 'test.batch' has made batches of them: put "
            "it before 'test.batch'");
    refused(HEAD "- test.source\n- test.batch: {size: 2}\n- test.batch: {size: 2}\n",
            HR_ERR_GRAPH, 5, 3, "single records");
    refused(HEAD "- test.source: {n: 3}\n- test.source: {n: 4}\n- test.zip:\n  inputs: "
                 "[test.source, test.source2]\n",
            HR_ERR_GRAPH, 5, 3, "'test.source' has 3, 'test.source2' has 4");
    refused(HEAD "- test.source\n- test.view: {more: [label], to: label}\n", HR_ERR_GRAPH,
            4, 22, "field \"label\" is named twice");
    refused(HEAD
            "- test.source\n- test.source: {broken: true, path: /none}\n- test.zip:\n"
            "  inputs: [test.source, test.source2]\n",
            HR_ERR_NOT_FOUND, 4, 3,
            "node 'test.source2' (test.source): no files under /none");
}

TEST(right_orders_pass_and_count)
{
    static const struct {
        const char *text;
        int64_t records;
    } right[] = {
        {"- test.source\n- test.shuffle\n- test.take: {size: 30}\n- test.shard\n", 30 },
        {"- test.source\n- test.filter\n- test.take: {size: 3}\n",                 -1 },
        {"- test.source\n- test.expand\n",                                         -1 },
        {"- test.source\n- test.batch: {size: 30}\n- test.mix\n",                  100},
        {"- test.source\n- test.batch: {size: 30, drop_last: true}\n",             90 },
        {"- test.source\n- test.batch: {size: 30}\n- test.unbatch\n- test.decode\n"
         "- test.batch: {size: 7}\n",                                     100},
        {"- test.source\n- test.decode: {to: data}\n- test.flip: {from: data}\n",  100},
        {"- test.source:\n  name: a\n- test.source:\n  name: b\n- test.zip:\n  inputs: "
         "[a, "
         "b]\n- test.shuffle\n- test.view\n",                             100},
    };

    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        char text[512];
        struct hr_graph *graph;

        snprintf(text, sizeof text, "%s%s", HEAD, right[i].text);
        graph = parse(text);
        freeze(graph);
        CHECK_EQ_INT(hr_graph_record_count(graph), right[i].records);
        hr_graph_unref(graph);
    }
}

TEST(an_op_may_read_fields_that_no_parameter_names)
{
    struct hr_graph *graph = parse(HEAD "- test.source\n- test.view: {to: extra}\n"
                                        "- test.view: {more: [data]}\n");
    const struct hr_graph_node *node = &graph->nodes[2];

    freeze(graph);
    CHECK_EQ_INT(node->field_count, 2);
    CHECK_EQ_STR(node->field_names[1], "extra");
    CHECK_EQ_INT(node->field_access[1], HR_ACCESS_READ);
    hr_graph_unref(graph);
}

TEST(a_failed_freeze_leaves_the_graph_as_it_was)
{
    struct hr_graph *graph = hr_graph_create();
    struct hr_node source = add(graph, "test.source", NULL), flip;
    struct hr_error error = {0};

    flip = add(graph, "test.view", NULL);
    CHECK_OK(hr_graph_add(graph, "test.mix", "side", &source, 1, NULL, NULL, NULL));
    CHECK_ERR(HR_ERR_GRAPH, hr_graph_freeze(graph, &error));
    CHECK(!graph->frozen);
    CHECK_OK(hr_graph_add(graph, "test.zip", NULL, (struct hr_node[]){flip, {2}}, 2, NULL,
                          NULL, &error));
    freeze(graph);
    CHECK_EQ_INT(hr_graph_record_count(graph), 100);
    hr_graph_unref(graph);
}

TEST(a_failed_add_leaves_the_graph_as_it_was)
{
    struct hr_graph *graph = hr_graph_create();
    struct hr_node node = {77}, wrong = {5};
    struct hr_error error = {0};

    CHECK_ERR(HR_ERR_NOT_FOUND,
              hr_graph_add(graph, "no.op", NULL, NULL, 0, NULL, &node, &error));
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_graph_add(graph, "test.source", NULL, NULL, 0, "{m: 1}", &node, &error));
    CHECK_EQ_STR(error.node, "test.source");
    CHECK_EQ_STR(error.op, "test.source");
    CHECK_EQ_STR(error.param, "m");
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_graph_add(graph, "test.source", NULL, &wrong, 1, NULL, &node, &error));
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_graph_add(graph, "test.source", "", NULL, 0, NULL, &node, &error));
    CHECK_ERR(HR_ERR_FORMAT,
              hr_graph_add(graph, "test.source", NULL, NULL, 0, "{n: [", &node, &error));
    CHECK_EQ_INT(node.id, 77);
    CHECK_EQ_INT(hr_graph_node_count(graph), 0);
    CHECK_ERR(HR_ERR_GRAPH, hr_graph_freeze(graph, &error));
    CHECK_EQ_STR(error.message, "the graph has no nodes");
    hr_graph_unref(graph);
}

/* ---- printing ---- */

/* Prints the graph in both formats and reads it back; the texts must stand still. */
static void check_round_trip(struct hr_graph *graph)
{
    char expected[HR_FINGERPRINT_BYTES];
    char *yaml, *again, *json;
    struct hr_graph *back;

    freeze(graph);
    CHECK_OK(hr_graph_fingerprint(graph, expected));
    CHECK_OK(hr_graph_print(graph, HR_GRAPH_YAML, &yaml, NULL));
    CHECK_OK(hr_graph_print(graph, HR_GRAPH_JSON, &json, NULL));
    back = parse_with(yaml, "back.yaml", NULL, 0);
    CHECK_OK(hr_graph_print(back, HR_GRAPH_YAML, &again, NULL));
    CHECK_EQ_STR(again, yaml);
    CHECK_EQ_STR(fingerprint(back), expected);
    CHECK_EQ_STR(fingerprint(parse_with(json, "back.json", NULL, 0)), expected);
    hr_free(yaml);
    hr_free(again);
    hr_free(json);
}

TEST(a_loaded_file_prints_as_written_with_what_was_set)
{
    const struct hr_graph_param params[] = {
        {"where", "here"},
        {"n",     "8"   }
    };
    struct hr_graph *graph = parse_with(declared, "d.yaml", params, 2);
    char *text;

    check_round_trip(graph);
    CHECK_OK(hr_graph_print(graph, HR_GRAPH_YAML, &text, NULL));
    CHECK_HAS(text, "${n}");
    CHECK_HAS(text, "default: here");
    CHECK_HAS(text, "default: 8");
    CHECK_HAS(text, "help: records");
    hr_free(text);
    hr_graph_unref(graph);
}

TEST(a_built_chain_prints_short_and_reads_back)
{
    struct hr_graph *graph = hr_graph_create();
    char *text;

    add(graph, "test.source", "{path: '/a/${b}/$${c}', n: 5}");
    add(graph, "test.decode", NULL);
    add(graph, "test.flip", "{p: 0.125, keep_position: true}");
    CHECK_OK(hr_graph_print(graph, HR_GRAPH_YAML, &text, NULL));
    CHECK_HAS(text, "- test.decode\n");
    CHECK(strstr(text, "inputs") == NULL && strstr(text, "name") == NULL);
    hr_free(text);
    check_round_trip(graph);
    hr_graph_unref(graph);
}

TEST(a_built_net_prints_long_and_reads_back)
{
    struct hr_graph *graph = hr_graph_create();
    struct hr_node a, b;
    char *text;

    CHECK_OK(hr_graph_add(graph, "test.source", "left", NULL, 0, NULL, &a, NULL));
    CHECK_OK(hr_graph_add(graph, "test.source", "right", NULL, 0, "id: 3", &b, NULL));
    CHECK_OK(hr_graph_add(graph, "test.zip", NULL, (struct hr_node[]){b, a}, 2, NULL,
                          NULL, NULL));
    CHECK_OK(hr_graph_print(graph, HR_GRAPH_YAML, &text, NULL));
    CHECK_HAS(text, "name: left\n");
    CHECK_HAS(text, "inputs:");
    hr_free(text);
    check_round_trip(graph);
    hr_graph_unref(graph);
}

TEST(nodes_added_to_a_loaded_graph_are_printed_too)
{
    struct hr_graph *graph = parse("headrace: 1\noutput: test.decode\npipeline:\n"
                                   "- test.source\n- test.decode\n");

    add(graph, "test.flip", NULL);
    check_round_trip(graph);
    hr_graph_unref(graph);
}

/* ---- parameters of a node ---- */

static void check_node_params(const struct hr_graph *graph, size_t at, const char *json)
{
    struct hr_error error = {0};
    char *text = NULL;

    CHECK_OK(hr_graph_node_params(graph, at, &text, &error));
    CHECK_EQ_STR(text, json);
    hr_free(text);
}

TEST(parameters_of_a_node_are_those_given_with_references_replaced)
{
    const struct hr_graph_param params[] = {
        {"where", "here"},
    };
    struct hr_graph *graph = NULL, *again = hr_graph_create();
    struct hr_error error = {0};
    struct hr_node node;
    char *text = NULL;

    CHECK_OK(
        hr_graph_parse(declared, strlen(declared), "d.yaml", params, 1, &graph, &error));
    check_node_params(graph, 0, "{\"n\":10,\"path\":\"/x/here/10${n}\"}");
    check_node_params(graph, 1, "{\"more\":[\"label\"]}");
    CHECK_OK(hr_graph_node_params(graph, 0, &text, &error));
    CHECK_OK(hr_graph_add(again, "test.source", NULL, NULL, 0, text, &node, &error));
    check_node_params(again, 0, text);
    hr_free(text);
    hr_graph_unref(again);
    hr_graph_unref(graph);
}

TEST(parameters_of_a_node_hold_hints_and_no_defaults)
{
    struct hr_graph *graph =
        parse(HEAD "- test.source\n- test.decode: {keep_position: true}\n");
    struct hr_error error = {0};
    char *text = NULL;

    check_node_params(graph, 0, "{}");
    check_node_params(graph, 1, "{\"keep_position\":true}");
    freeze(graph);
    check_node_params(graph, 1, "{\"keep_position\":true}");
    CHECK_ERR(HR_ERR_RANGE, hr_graph_node_params(graph, 2, &text, &error));
    CHECK_EQ_STR(error.message, "there is no node 2; the graph has 2");
    CHECK_ERR(HR_ERR_ARGUMENT, hr_graph_node_params(NULL, 0, &text, NULL));
    CHECK_ERR(HR_ERR_ARGUMENT, hr_graph_node_params(graph, 0, NULL, NULL));
    CHECK(text == NULL);
    hr_graph_unref(graph);
}

/* ---- the public edge ---- */

TEST(wrong_arguments_are_refused)
{
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};
    char text[HR_FINGERPRINT_BYTES];

    CHECK_ERR(HR_ERR_ARGUMENT, hr_graph_load(NULL, NULL, 0, &graph, &error));
    CHECK_EQ_STR(error.message, "path must not be NULL");
    CHECK_ERR(HR_ERR_ARGUMENT, hr_graph_freeze(NULL, NULL));
    CHECK_ERR(HR_ERR_ARGUMENT, hr_graph_parse("", 0, "x", NULL, 1, &graph, NULL));
    graph = hr_graph_create();
    CHECK_ERR(HR_ERR_STATE, hr_graph_fingerprint(graph, text));
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_graph_add(graph, NULL, NULL, NULL, 0, NULL, NULL, NULL));
    hr_graph_unref(graph);
    hr_graph_unref(NULL);
    CHECK(hr_graph_load("/no/such/file.yaml", NULL, 0, &graph, &error) != HR_OK);
}

TEST(files_are_loaded_and_named_in_errors)
{
    char path[512];
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};
    FILE *file;

    snprintf(path, sizeof path, "%s/g.yaml", check_temp_dir());
    file = fopen(path, "w");
    CHECK(file != NULL);
    fputs(HEAD "- test.source: {n: x}\n", file);
    fclose(file);
    CHECK_ERR(HR_ERR_TYPE, hr_graph_load(path, NULL, 0, &graph, &error));
    CHECK_EQ_STR(error.file, path);
    CHECK_EQ_INT(error.line, 3);
    CHECK_EQ_INT(error.column, 20);
}

TEST(a_failed_allocation_anywhere_leaks_nothing)
{
    const struct hr_graph_param params[] = {
        {"where", "here"  },
        {"names", "[data]"}
    };
    bool done = false;
    uint64_t n;

    for (n = 1; !done; n++) {
        struct hr_graph *graph = NULL;
        struct hr_error error = {0};
        char *text = NULL, *json = NULL;
        enum hr_err code;

        hr__fault_arm(HR_FAULT_ALLOC, n);
        code = hr_graph_parse(declared, strlen(declared), "d.yaml", params, 2, &graph,
                              &error);
        if (code == HR_OK)
            code = hr_graph_add(graph, "test.decode", NULL, (struct hr_node[]){{1}}, 1,
                                "{to: x, keep_position: true, depends_on: [test.view]}",
                                NULL, &error);
        if (code == HR_OK)
            code = hr_graph_freeze(graph, &error);
        if (code == HR_OK)
            code = hr_graph_print(graph, HR_GRAPH_YAML, &text, &error);
        if (code == HR_OK)
            code = hr_graph_node_params(graph, 0, &json, &error);
        hr__fault_arm(0, 0);
        done = code == HR_OK;
        if (!done && (code != HR_ERR_MEMORY || error.code != HR_ERR_MEMORY))
            check_failed(__FILE__, __LINE__, "allocation %d: %s: %s", (int)n,
                         hr_err_name(code), error.message);
        hr_free(json);
        hr_free(text);
        hr_graph_unref(graph);
        CHECK_EQ_INT(opened, closed);
    }
    CHECK(n > 50);
}
