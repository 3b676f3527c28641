/*
 * tests/conformance/reorder_test.c - a graph in the order that hr__reorder() finds gives
 * the records that its strictness promises, and costs no more than the written one.
 *
 * Costs are drawn, not measured, so that any order may be the cheapest.
 */
#include "tests/conformance/photos.h"
#include "tests/support/check.h"
#include "tests/support/outcome.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "opt/reorder.h"

#define HEAD                                                                             \
    "headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"                            \
    "  - source.files: {path: \"${data}\", labels: folder}\n"                            \
    "  - order.take: {count: 8}\n"

/* Steps that may stand anywhere behind a decode. */
static const char *const steps[] = {
    "image.flip: {p: 0.5}",
    "image.flip: {p: 0.5, direction: vertical}",
    "image.grayscale: {p: 0.5, channels: 3}",
    "image.clip: {min: 20, max: 200}",
    "image.resize: {size: [60, 50]}",
    "image.center_crop: {size: 24}",
    "image.random_resized_crop: {size: 32}",
    "image.rotate: {degrees: [0, 5]}",
    "image.color_jitter: {brightness: 0.3}",
    "tensor.cast: {dtype: float32}",
    "tensor.one_hot: {field: label, classes: 64, to: hot}",
    "tensor.cast: {field: label, dtype: int32}",
    "record.filter: {expr: \"label < 3\"}",
    "record.filter: {expr: \"label > 0\"}",
    "record.rename: {fields: {label: class}}",
    "record.rename: {fields: {class: label}}",
    "record.drop: {fields: [class]}",
    "record.select: {fields: [image, label]}",
};
#define STEPS (sizeof steps / sizeof steps[0])

/* Records of a run, batch by batch. */
static struct outcome *run(struct hr_graph *graph)
{
    struct outcome_job job = outcome_job_text("");
    struct outcome *outcome;
    char *text;

    CHECK_OK(hr_graph_print(graph, HR_GRAPH_YAML, &text, NULL));
    job.text = text;
    job.options.seed = check_seed();
    outcome = outcome_run(&job);
    hr_free(text);
    return outcome;
}

/* A graph of drawn steps, frozen; steps that do not fit are left out. */
static struct hr_graph *draw_graph(struct hr_rng *rng, const char *mode)
{
    static char text[2048], longer[4096];
    struct hr_graph_param data = {"data", photos_good()};
    struct hr_graph *graph = NULL;
    size_t wanted = 2 + hr__rng_below(rng, 7);

    snprintf(text, sizeof text, HEAD "  - image.decode: {mode: %s}\n", mode);
    for (size_t i = 0; i < wanted; i++) {
        struct hr_graph *more = NULL;

        snprintf(longer, sizeof longer, "%s  - %s\n", text,
                 steps[hr__rng_below(rng, STEPS)]);
        if (hr_graph_parse(longer, strlen(longer), "drawn", &data, 1, &more, NULL) !=
                HR_OK ||
            hr_graph_freeze(more, NULL) != HR_OK) {
            hr_graph_unref(more);
            continue;
        }
        hr_graph_unref(graph);
        graph = more;
        snprintf(text, sizeof text, "%s", longer);
    }
    return graph;
}

static double drawn(struct hr_rng *rng, double least, double most)
{
    return least * pow(most / least, (double)hr__rng_below(rng, 1000) / 1000);
}

static void draw_profile(const struct hr_graph *graph, struct hr_rng *rng,
                         struct hr_profile *ret_profile)
{
    *ret_profile = (struct hr_profile){
        .machine = {"none", "c", 1}
    };
    for (size_t i = 0; i < graph->count; i++) {
        const struct hr_graph_node *n = &graph->nodes[i];
        struct hr_profile_node *node = hr__profile_add(ret_profile, n->name, n->op->name);

        CHECK(node != NULL);
        node->fingerprint = n->fingerprint;
        node->records_in = 1000;
        node->records_out = n->op->kind == HR_OP_FILTER ? hr__rng_below(rng, 1001) : 1000;
        node->cpu_ns = drawn(rng, 10, 1e7);
        node->bytes_in = drawn(rng, 1e3, 1e6);
        node->bytes_out = node->bytes_in * drawn(rng, 0.1, 10);
        node->fixed = hr__rng_below(rng, 2) ? 0.5 : HR_PROFILE_UNKNOWN;
    }
}

static int moved[2];

static void check_order(const struct hr_graph *graph, const struct hr_profile *profile,
                        enum hr_rule rule, enum hr_strictness strictness)
{
    struct hr_reorder_settings settings = {rule, strictness};
    struct hr_error error = {0};
    struct hr_reorder order;
    struct hr_graph *other;
    struct outcome *written, *changed;

    CHECK_OK(hr__reorder(graph, profile, &settings, &order, &error));
    if (rule == HR_RULE_HEADRACE)
        CHECK(order.ns <= order.written_ns * (1 + 1e-9));
    if (rule == HR_RULE_WRITTEN)
        CHECK(order.moved == 0 && order.ns == order.written_ns);
    if (order.moved == 0) {
        hr__reorder_finish(&order);
        return;
    }
    moved[strictness == HR_STRICTNESS_RELAXED]++;
    if (hr__graph_permute(graph, order.nodes, &other, &error) != HR_OK ||
        hr_graph_freeze(other, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    if (strictness == HR_STRICTNESS_EXACT) {
        written = run((struct hr_graph *)graph);
        changed = run(other);
        CHECK_ERR(HR_ERR_END, written->code);
        outcome_check_same(written, changed, 0, "in another order");
        outcome_free(written);
        outcome_free(changed);
    }
    hr__reorder_finish(&order);
    hr_graph_unref(other);
}

TEST(a_cheaper_order_gives_the_records_that_it_promises)
{
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (int round = 0; round < 150; round++) {
        struct hr_graph *graph =
            draw_graph(&rng, hr__rng_below(&rng, 2) ? "exact" : "close");
        struct hr_profile profile;

        if (graph == NULL)
            continue;
        draw_profile(graph, &rng, &profile);
        check_order(graph, &profile, HR_RULE_HEADRACE, HR_STRICTNESS_EXACT);
        check_order(graph, &profile, HR_RULE_HEADRACE, HR_STRICTNESS_CLOSE);
        check_order(graph, &profile, HR_RULE_HEADRACE, HR_STRICTNESS_RELAXED);
        check_order(graph, &profile, HR_RULE_PECAN, HR_STRICTNESS_EXACT);
        check_order(graph, &profile, HR_RULE_WRITTEN, HR_STRICTNESS_RELAXED);
        hr__profile_finish(&profile);
        hr_graph_unref(graph);
    }
    printf("# %d orders exact or close, %d relaxed\n", moved[0], moved[1]);
    CHECK(moved[0] >= 20 && moved[1] >= 20);
}

/* ---- orders that are known ---- */

static struct hr_graph *chain(const char *nodes)
{
    struct hr_graph_param data = {"data", photos_good()};
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};
    char text[2048];

    snprintf(text, sizeof text, HEAD "  - image.decode: {mode: exact}\n%s", nodes);
    if (hr_graph_parse(text, strlen(text), "chain", &data, 1, &graph, &error) != HR_OK ||
        hr_graph_freeze(graph, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    return graph;
}

/* Every node takes 1 ns per byte of images of 600 kB; a resize leaves a tenth of them, a
 * cast to float makes them four times as large. */
static void plain_profile(const struct hr_graph *graph, struct hr_profile *ret_profile)
{
    double bytes = 6e5;

    *ret_profile = (struct hr_profile){
        .machine = {"none", "c", 1}
    };
    for (size_t i = 0; i < graph->count; i++) {
        const struct hr_graph_node *n = &graph->nodes[i];
        struct hr_profile_node *node = hr__profile_add(ret_profile, n->name, n->op->name);

        CHECK(node != NULL);
        node->fingerprint = n->fingerprint;
        node->records_in = node->records_out = 100;
        node->cpu_ns = node->bytes_in = bytes;
        if (strcmp(n->op->name, "image.resize") == 0 ||
            strcmp(n->op->name, "image.random_resized_crop") == 0)
            bytes *= 0.1;
        else if (strcmp(n->op->name, "tensor.cast") == 0)
            bytes *= 4;
        node->bytes_out = bytes;
    }
}

/* The names after the decode, in the order that is found. */
static const char *
names_of(const struct hr_graph *graph, const struct hr_profile *profile,
         enum hr_rule rule, enum hr_strictness strictness)
{
    struct hr_reorder_settings settings = {rule, strictness};
    struct hr_reorder order;
    static char text[512];
    size_t at = 0;

    CHECK_OK(hr__reorder(graph, profile, &settings, &order, NULL));
    for (size_t i = 3; i < graph->count; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i > 3 ? " " : "",
                               graph->nodes[order.nodes[i]].name);
    hr__reorder_finish(&order);
    return text;
}

static const char *
names(const char *nodes, enum hr_rule rule, enum hr_strictness strictness)
{
    struct hr_graph *graph = chain(nodes);
    struct hr_profile profile;
    const char *text;

    plain_profile(graph, &profile);
    text = names_of(graph, &profile, rule, strictness);
    hr__profile_finish(&profile);
    hr_graph_unref(graph);
    return text;
}

#define NODE(op, name) "  - image." op "\n    name: " name "\n"
#define FLIP NODE("flip: {p: 0.5}", "flip")
#define ROTATE NODE("rotate: {degrees: [0, 5]}", "rotate")
#define RESIZE NODE("resize: {size: [160, 120]}", "resize")
#define PINNED NODE("resize: {size: [160, 120], keep_position: true}", "resize")
#define CLIP NODE("clip: {min: 20, max: 200}", "clip")
#define CAST "  - tensor.cast: {dtype: float32}\n    name: cast\n"

TEST(a_resize_moves_to_the_front_only_where_that_is_asked_for)
{
    const char *nodes = ROTATE CLIP RESIZE;

    CHECK_EQ_STR(names(nodes, HR_RULE_HEADRACE, HR_STRICTNESS_EXACT),
                 "rotate clip resize");
    CHECK_EQ_STR(names(nodes, HR_RULE_HEADRACE, HR_STRICTNESS_RELAXED),
                 "resize rotate clip");
    CHECK_EQ_STR(names(nodes, HR_RULE_PECAN, HR_STRICTNESS_RELAXED),
                 "resize rotate clip");
    CHECK_EQ_STR(names(nodes, HR_RULE_WRITTEN, HR_STRICTNESS_RELAXED),
                 "rotate clip resize");
}

/* Else all images would have the black corners that few have as written. */
TEST(a_crop_stays_behind_what_fills_corners)
{
    const char *crop = NODE("random_resized_crop: {size: 60}", "crop");
    char nodes[512];

    for (size_t i = 0; i < 2; i++) {
        snprintf(nodes, sizeof nodes, "%s%s", i == 0 ? ROTATE : FLIP, crop);
        CHECK_EQ_STR(names(nodes, HR_RULE_HEADRACE, HR_STRICTNESS_RELAXED),
                     i == 0 ? "rotate crop" : "crop flip");
    }
}

/* Interpolation blurs by about a pixel, which is more of a small image. */
TEST(a_resize_to_few_pixels_stays_behind_a_rotation)
{
    const char *small = NODE("resize: {size: [160, 111]}", "resize");
    char nodes[512];

    for (size_t i = 0; i < 2; i++) {
        snprintf(nodes, sizeof nodes, "%s%s", ROTATE, i == 0 ? small : RESIZE);
        CHECK_EQ_STR(names(nodes, HR_RULE_HEADRACE, HR_STRICTNESS_RELAXED),
                     i == 0 ? "rotate resize" : "resize rotate");
    }
}

static struct hr_profile_node *node_named(struct hr_profile *profile, const char *name)
{
    for (size_t i = 0; i < profile->node_count; i++)
        if (strcmp(profile->nodes[i].name, name) == 0)
            return &profile->nodes[i];
    check_failed(__FILE__, __LINE__, "no node '%s'", name);
}

/* What the rotation takes, a part of 100 ms, falls to a tenth after the resize. */
TEST(values_change_only_where_that_pays)
{
    static const struct {
        double part;
        enum hr_strictness needs;
    } cases[] = {
        {0.01, HR_STRICTNESS_EXACT  },
        {0.02, HR_STRICTNESS_EXACT  },
        {0.03, HR_STRICTNESS_RELAXED},
        {0.3,  HR_STRICTNESS_RELAXED},
    };
    struct hr_reorder_settings settings = {HR_RULE_HEADRACE, HR_STRICTNESS_RELAXED};
    struct hr_graph *graph = chain(ROTATE CLIP RESIZE);
    struct hr_profile profile;
    struct hr_reorder order;

    plain_profile(graph, &profile);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t k = 0; k < profile.node_count; k++)
            profile.nodes[k].cpu_ns = 0;
        node_named(&profile, "rotate")->cpu_ns = 1e8 * cases[i].part;
        profile.nodes[2].cpu_ns = 1e8 * (1 - cases[i].part); /* the decode */
        CHECK_OK(hr__reorder(graph, &profile, &settings, &order, NULL));
        CHECK_EQ_INT(order.needs, cases[i].needs);
        CHECK((order.moved > 0) == (order.needs == HR_STRICTNESS_RELAXED));
        CHECK(order.best);
        hr__reorder_finish(&order);
    }
    hr__profile_finish(&profile);
    hr_graph_unref(graph);
}

/* A resize that enlarges, of which the profile says that it makes images smaller: first
 * it would be slower, as the runs show. The filter still moves before the spin. */
TEST(an_order_that_changes_values_and_is_dropped_leaves_the_exact_one)
{
    struct hr_graph *graph = chain(
        "  - debug.spin: {us: 1000}\n    name: spin\n"
        "  - record.filter: {expr: \"image.width % 2 == 0\"}\n    name: filter\n" ROTATE
            CLIP "  - image.resize: {size: [900, 900]}\n    name: resize\n");
    static const char *const order[] = {"filter", "spin", "rotate", "clip", "resize"};
    struct hr_optimize_options options;
    struct hr_optimize_result result;
    struct hr_graph *found = NULL;
    struct hr_node_info node;
    struct hr_error error = {0};
    struct hr_profile profile;

    plain_profile(graph, &profile);
    node_named(&profile, "spin")->cpu_ns = 1e6;
    node_named(&profile, "filter")->cpu_ns = 100;
    node_named(&profile, "filter")->records_out = 50;
    hr_optimize_options_init(&options);
    options.strictness = HR_STRICTNESS_RELAXED;
    CHECK_OK(hr_graph_optimize(graph, &profile, &options, &found, &result, &error));
    CHECK_EQ_INT(result.needs, HR_STRICTNESS_EXACT);
    CHECK(result.moved == 2 && result.difference == 0);
    CHECK(strstr(result.dropped, "times the CPU time of the written order") != NULL);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        CHECK_OK(hr_graph_node_info(found, i + 3, &node));
        CHECK_EQ_STR(node.name, order[i]);
    }
    hr_graph_unref(found);
    hr__profile_finish(&profile);
    hr_graph_unref(graph);
}

TEST(a_node_that_keeps_its_position_divides_a_chain)
{
    CHECK_EQ_STR(names(ROTATE CLIP PINNED, HR_RULE_HEADRACE, HR_STRICTNESS_RELAXED),
                 "rotate clip resize");
    CHECK_EQ_STR(names(ROTATE CLIP PINNED, HR_RULE_PECAN, HR_STRICTNESS_RELAXED),
                 "rotate clip resize");
}

/* Later nodes have few kernels for halves: Pecan's exception to shrinking first. */
TEST(pecan_puts_a_cast_to_half_last)
{
    const char *nodes = "  - tensor.cast: {dtype: float32, keep_position: true}\n"
                        "    name: float\n"
                        "  - tensor.cast: {dtype: float16}\n    name: half\n" FLIP;
    struct hr_graph *graph = chain(nodes);
    struct hr_profile profile;

    plain_profile(graph, &profile);
    for (size_t i = 0; i < graph->count; i++) /* of 2.4 MB, half of it remains */
        if (strcmp(profile.nodes[i].name, "half") == 0)
            profile.nodes[i].bytes_out = profile.nodes[i].bytes_in / 2;
    CHECK_EQ_STR(names_of(graph, &profile, HR_RULE_PECAN, HR_STRICTNESS_RELAXED),
                 "float flip half");
    hr__profile_finish(&profile);
    hr_graph_unref(graph);
}

/* The rule reverses those that shrink, which is not legal for two that resize. */
TEST(where_pecans_order_is_not_legal_the_nearest_is_taken)
{
    const char *nodes = CLIP RESIZE NODE("resize: {size: [30, 25]}", "smaller")
        NODE("rotate: {degrees: [0, 5], keep_position: true}", "rotate")
            NODE("clip: {min: 30, max: 190}", "clip2")
                NODE("resize: {size: [20, 15]}", "smallest");

    CHECK_EQ_STR(names(nodes, HR_RULE_PECAN, HR_STRICTNESS_RELAXED),
                 "resize smaller clip rotate smallest clip2");
}

/* A filter of labels, which is cheapest before the decode. */
TEST(pecan_does_not_cross_what_makes_numbers_of_bytes)
{
    struct hr_graph *graph =
        chain(FLIP "  - record.filter: {expr: \"label < 3\"}\n    name: filter\n");
    struct hr_profile profile;

    plain_profile(graph, &profile);
    node_named(&profile, "filter")->records_out = 50;
    CHECK_EQ_STR(names_of(graph, &profile, HR_RULE_PECAN, HR_STRICTNESS_RELAXED),
                 "filter flip");
    CHECK_EQ_STR(names_of(graph, &profile, HR_RULE_HEADRACE, HR_STRICTNESS_RELAXED),
                 "image.decode flip");
    hr__profile_finish(&profile);
    hr_graph_unref(graph);
}

/* A class number that becomes a row: what is before and after it stays there. */
TEST(pecan_does_not_cross_a_change_of_rank)
{
    struct hr_graph *graph =
        chain(FLIP "  - tensor.one_hot: {classes: 64}\n    name: row\n" CLIP RESIZE);
    struct hr_profile profile;

    plain_profile(graph, &profile);
    CHECK_EQ_STR(names_of(graph, &profile, HR_RULE_PECAN, HR_STRICTNESS_RELAXED),
                 "flip row resize clip");
    hr__profile_finish(&profile);
    hr_graph_unref(graph);
}

/* Whatever field it is that grows or shrinks. */
TEST(pecan_counts_the_bytes_of_every_field)
{
    struct hr_graph *graph = chain(
        "  - tensor.cast: {field: label, dtype: float64}\n    name: same\n" FLIP CAST
        "  - tensor.cast: {field: label, dtype: int16}\n    name: small\n" CLIP);
    struct hr_profile profile;

    plain_profile(graph, &profile);
    node_named(&profile, "same")->bytes_in = node_named(&profile, "same")->bytes_out = 8;
    node_named(&profile, "small")->bytes_in = 8;
    node_named(&profile, "small")->bytes_out = 2;
    node_named(&profile, "cast")->bytes_out = 4 * node_named(&profile, "cast")->bytes_in;
    CHECK_EQ_STR(names_of(graph, &profile, HR_RULE_PECAN, HR_STRICTNESS_RELAXED),
                 "same small flip cast clip");
    hr__profile_finish(&profile);
    hr_graph_unref(graph);
}

TEST(a_cast_to_a_larger_type_moves_back_past_what_only_moves_pixels)
{
    CHECK_EQ_STR(names(CLIP CAST FLIP, HR_RULE_HEADRACE, HR_STRICTNESS_EXACT),
                 "clip flip cast");
}

/* What a profile of composed nodes says of examples/papers/cv_torch.yaml after the
 * decode: the crop does the work of the cast and the flip. */
static const struct {
    double ns, bytes_in, bytes_out, fixed;
} cv_torch_costs[] = {
    {1499,   601770,  2407079, 0.97              }, /* tensor.cast */
    {264597, 2407079, 714432,  0.84              }, /* image.random_resized_crop */
    {693,    714432,  714432,  HR_PROFILE_UNKNOWN}, /* image.flip */
    {442643, 714432,  714432,  HR_PROFILE_UNKNOWN}, /* image.color_jitter */
    {103437, 714432,  238144,  HR_PROFILE_UNKNOWN}, /* image.grayscale */
    {98983,  238144,  238144,  HR_PROFILE_UNKNOWN}, /* image.gaussian_blur */
    {33723,  238144,  238144,  HR_PROFILE_UNKNOWN}, /* image.normalize */
};

TEST(all_rules_move_the_cast_of_cv_torch_after_what_only_moves_pixels)
{
    const char *nodes = CAST NODE("random_resized_crop: {size: 244}", "crop") FLIP NODE(
        "color_jitter: {brightness: 0.1, contrast: 0.1, saturation: 0.1, hue: 0.1}",
        "jitter") NODE("grayscale: {}", "gray")
        NODE("gaussian_blur: {size: 11, sigma: [0.1, 2.0]}", "blur")
            NODE("normalize: {mean: [0.1307], std: [0.3081]}", "normal");
    const enum hr_rule rules[] = {HR_RULE_HEADRACE, HR_RULE_PECAN, HR_RULE_CEDAR};
    struct hr_graph *graph = chain(nodes);
    struct hr_profile profile;

    plain_profile(graph, &profile);
    for (size_t i = 0; i < 3; i++) /* else values would change for too little */
        profile.nodes[i].cpu_ns = 0;
    for (size_t i = 0; i < sizeof cv_torch_costs / sizeof cv_torch_costs[0]; i++) {
        struct hr_profile_node *node = &profile.nodes[i + 3];

        node->cpu_ns = cv_torch_costs[i].ns;
        node->bytes_in = cv_torch_costs[i].bytes_in;
        node->bytes_out = cv_torch_costs[i].bytes_out;
        node->fixed = cv_torch_costs[i].fixed;
    }
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        CHECK_EQ_STR(names_of(graph, &profile, rules[i], HR_STRICTNESS_RELAXED),
                     "crop flip cast jitter gray blur normal");
    hr__profile_finish(&profile);
    hr_graph_unref(graph);
}

TEST(a_profile_of_another_graph_is_refused_with_the_node)
{
    struct hr_reorder_settings settings = {HR_RULE_HEADRACE, HR_STRICTNESS_EXACT};
    struct hr_graph *graph = chain(FLIP CLIP), *other = chain(FLIP RESIZE);
    struct hr_error error = {0};
    struct hr_profile profile;
    struct hr_reorder order;

    plain_profile(other, &profile);
    CHECK_ERR(HR_ERR_STATE, hr__reorder(graph, &profile, &settings, &order, &error));
    CHECK(strstr(error.message, "'clip' (image.clip)") != NULL);
    CHECK(order.nodes == NULL);
    hr__profile_finish(&profile);
    hr_graph_unref(graph);
    hr_graph_unref(other);
}

TEST(every_failed_allocation_is_an_error)
{
    struct hr_reorder_settings settings = {HR_RULE_HEADRACE, HR_STRICTNESS_RELAXED};
    struct hr_graph *graph = chain(ROTATE CLIP RESIZE);
    struct hr_profile profile;
    enum hr_err code = HR_ERR_MEMORY;

    plain_profile(graph, &profile);
    for (uint64_t nth = 1; code != HR_OK; nth++) {
        struct hr_reorder order;

        hr__fault_arm(HR_FAULT_ALLOC, nth);
        code = hr__reorder(graph, &profile, &settings, &order, NULL);
        hr__fault_arm(0, 0);
        CHECK(code == HR_OK || (code == HR_ERR_MEMORY && order.nodes == NULL));
        hr__reorder_finish(&order);
        CHECK(nth < 100);
    }
    hr__profile_finish(&profile);
    hr_graph_unref(graph);
}
