/*
 * api/cedar_api_test.c - plans from cedar's files; statistics as profiles and back.
 */
#include "headrace/cedar.h"

#include "core/alloc.h"
#include "graph/profile.h"
#include "tests/support/check.h"

static const char stats_text[] =
    "baseline:\n"
    "  throughput: 39.89594\n"
    "  latencies: {3: 16526.24, 2: 9625668, 1: 363186.9, 0: 6194943}\n"
    "  input_sizes: {3: 0, 2: 714432, 1: 714432, 0: 238144}\n"
    "  output_sizes: {3: 714432, 2: 714432, 1: 238144, 0: 238144}\n"
    "offloads:\n"
    "  RAY: {0: {throughput: 62.65463}}\n"
    "disk_info: {read_latency: 1.0e-09, write_latency: 1.0e-09}\n";
static const char pipes_text[] = "logical_plan:\n"
                                 "  pipes:\n"
                                 "    0: {name: blur, is_random: true}\n"
                                 "    1: {name: gray}\n"
                                 "    2: {name: jitter}\n"
                                 "    3: {name: IterSourcePipe}\n";
static const struct hr_cedar_text stats = {stats_text, sizeof stats_text - 1, "s.yml"};
static const struct hr_cedar_text pipes = {pipes_text, sizeof pipes_text - 1, "p.yml"};

static struct hr_cedar_outcome *plan_of(const struct hr_cedar_plan_options *options)
{
    struct hr_cedar_outcome *plan = NULL;
    struct hr_error error = {0};

    if (hr_cedar_optimize(&stats, &pipes, options, &plan, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    return plan;
}

TEST(a_plan_has_its_costs_and_stages)
{
    struct hr_cedar_outcome *plan = plan_of(NULL);
    struct hr_cedar_stage_info stage;
    struct hr_cedar_plan_info info;
    char *text = NULL;

    hr_cedar_plan_info(plan, &info);
    CHECK(info.orders == 6 && info.best && info.cache_after == -1);
    CHECK_NEAR(info.written_ms, 1000 / 39.89594, 1e-6);
    CHECK(info.cost_ms < info.order_ms && info.order_ms < info.written_ms);
    CHECK_EQ_INT(info.drivers, 8);
    CHECK_BYTES(info.order, ((int64_t[]){3, 1, 2, 0}), 4 * sizeof(int64_t));
    CHECK_OK(hr_cedar_plan_stage(plan, 3, &stage));
    CHECK_EQ_STR(stage.kind, "pipes");
    CHECK_EQ_STR(stage.variant, "RAY");
    CHECK(stage.pipe_count == 1 && stage.ids[0] == 0 && stage.workers == 4);
    CHECK_EQ_STR(stage.names[0], "blur");
    CHECK_OK(hr_cedar_plan_stage(plan, 4, &stage));
    CHECK_EQ_STR(stage.kind, "prefetch");
    CHECK_ERR(HR_ERR_RANGE, hr_cedar_plan_stage(plan, 5, &stage));
    CHECK_OK(hr_cedar_plan_print(plan, &text, NULL));
    CHECK_HAS(text, "graph: {3: '1', 1: '2', 2: '0', 0: '4', 4: ''}");
    CHECK_HAS(text, "n_local_workers: 8");
    hr_free(text);
    hr_cedar_plan_free(plan);
    hr_cedar_plan_free(NULL);
    hr_cedar_plan_info(NULL, &info);
    CHECK(info.drivers == 0 && info.cache_after == -1);
}

TEST(options_reach_the_plan)
{
    struct hr_cedar_plan_options options;
    struct hr_cedar_plan_info info;
    struct hr_cedar_outcome *plan;

    hr_cedar_plan_options_init(&options);
    options.rule = HR_RULE_WRITTEN;
    options.no_offload = options.no_prefetch = options.no_drivers = true;
    plan = plan_of(&options);
    hr_cedar_plan_info(plan, &info);
    CHECK(info.cost_ms == info.written_ms && info.drivers == 1);
    hr_cedar_plan_free(plan);
    options.rule = HR_RULE_HEADRACE;
    options.no_drivers = false;
    options.cpus = 3;
    options.cache_samples = 10;
    plan = plan_of(&options);
    hr_cedar_plan_info(plan, &info);
    /* All but blur, which is random; gray last, for the smallest samples. */
    CHECK(info.cache_after == 1);
    CHECK(info.order[0] == 3 && info.drivers == 3);
    hr_cedar_plan_free(plan);
    options.disk_free = 100; /* too small for any */
    plan = plan_of(&options);
    hr_cedar_plan_info(plan, &info);
    CHECK_EQ_INT(info.cache_after, -1);
    hr_cedar_plan_free(plan);
}

TEST(wrong_arguments_and_files_are_errors)
{
    static const struct hr_cedar_text none = {NULL, 0, "n"}, empty = {"", 0, "e.yml"};
    struct hr_cedar_plan_options options;
    struct hr_cedar_outcome *plan = NULL;
    struct hr_error error = {0};

    CHECK_ERR(HR_ERR_ARGUMENT, hr_cedar_optimize(NULL, &pipes, NULL, &plan, &error));
    CHECK_ERR(HR_ERR_ARGUMENT, hr_cedar_optimize(&stats, &none, NULL, &plan, &error));
    CHECK_ERR(HR_ERR_ARGUMENT, hr_cedar_optimize(&stats, &pipes, NULL, NULL, &error));
    hr_cedar_plan_options_init(&options);
    options.rule = HR_RULE_PECAN;
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_cedar_optimize(&stats, &pipes, &options, &plan, &error));
    CHECK_HAS(error.message, "take cedar, headrace or written");
    options.rule = HR_RULE_CEDAR;
    options.cpus = -1;
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_cedar_optimize(&stats, &pipes, &options, &plan, &error));
    CHECK_ERR(HR_ERR_FORMAT, hr_cedar_optimize(&pipes, &pipes, NULL, &plan, &error));
    CHECK_HAS(error.message, "p.yml:1:1: key \"logical_plan\" is not known");
    CHECK_ERR(HR_ERR_FORMAT, hr_cedar_optimize(&stats, &empty, NULL, &plan, &error));
    CHECK_HAS(error.message, "e.yml");
    CHECK(plan == NULL);
    for (uint64_t nth = 1;; nth++) {
        enum hr_err code;

        hr__fault_arm(HR_FAULT_ALLOC, nth);
        code = hr_cedar_optimize(&stats, &pipes, NULL, &plan, NULL);
        hr__fault_arm(0, 0);
        if (code == HR_OK)
            break;
        CHECK_ERR(HR_ERR_MEMORY, code);
    }
    hr_cedar_plan_free(plan);
}

/* ---- profiles ---- */

static struct hr_graph *graph_of(const char *pipeline)
{
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};

    if (hr_graph_parse(pipeline, strlen(pipeline), "g.yaml", NULL, 0, &graph, &error) !=
        HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    return graph;
}

#define GRAPH                                                                            \
    "headrace: 1\npipeline:\n  - source.range: {n: 400}\n    name: source\n"             \
    "  - debug.spin: {us: 1}\n    name: jitter\n"                                        \
    "  - debug.identity: {}\n    name: gray\n"                                           \
    "  - debug.spin: {us: 2}\n    name: blur\n"

TEST(statistics_become_a_profile_of_a_graph)
{
    static const struct hr_cedar_match two[] = {
        {0, "jitter"},
        {1, "jitter"},
        {3, "source"}
    };
    struct hr_graph *graph = graph_of(GRAPH), *same = NULL;
    const struct hr_profile_node *found[4];
    struct hr_profile *profile = NULL;
    struct hr_optimize_result result;
    struct hr_profile_info node;

    CHECK_OK(hr_cedar_to_profile(&stats, NULL, graph, NULL, 0, &profile, NULL));
    CHECK_EQ_INT(hr__profile_match(graph, profile, found), 4);
    CHECK_OK(hr_profile_node(profile, 2, &node));
    CHECK_EQ_STR(node.node, "gray");
    CHECK(node.cpu_ns == 363186.9 && node.bytes_in == 714432 && node.bytes_out == 238144);
    CHECK_OK(hr_graph_optimize(graph, profile, NULL, &same, &result, NULL));
    hr_graph_unref(same);
    hr_profile_free(profile);
    /* several pipes of one node, and a node without */
    CHECK_OK(hr_cedar_to_profile(&stats, &pipes, graph, two, 3, &profile, NULL));
    CHECK_OK(hr_profile_node(profile, 1, &node));
    CHECK(node.cpu_ns == 363186.9 + 6194943);
    CHECK(node.bytes_in == 714432 && node.bytes_out == 238144);
    CHECK_OK(hr_profile_node(profile, 3, &node));
    CHECK(node.records_in == 0 && node.cpu_ns == 0);
    hr_profile_free(profile);
    hr_graph_unref(graph);
}

/* ---- the order of a plan ---- */

#define CHAIN                                                                            \
    "headrace: 1\npipeline:\n  - source.range: {n: 400}\n    name: source\n"             \
    "  - debug.spin: {us: 1}\n    name: jitter\n"                                        \
    "  - record.filter: {expr: \"value < 100\"}\n    name: gray\n"                       \
    "  - batch.stack: {size: 2}\n    name: blur\n"

static enum hr_err order_of(const char *plan, const struct hr_cedar_match *matches,
                            size_t count, char *ret_names, struct hr_error *error)
{
    struct hr_graph *graph = graph_of(CHAIN), *made = NULL;
    struct hr_node_info node;
    enum hr_err code =
        hr_cedar_to_graph(&(struct hr_cedar_text){plan, strlen(plan), "p.yml"}, graph,
                          matches, count, HR_STRICTNESS_EXACT, &made, error);
    size_t at = 0;

    ret_names[0] = '\0';
    for (size_t i = 0; code == HR_OK && hr_graph_node_info(made, i, &node) == HR_OK; i++)
        at += (size_t)snprintf(ret_names + at, 64 - at, "%s ", node.name);
    hr_graph_unref(made);
    hr_graph_unref(graph);
    return code;
}

#define PIPES "pipes: {3: {name: s}, 2: {name: j}, 1: {name: g}, 0: {name: b}"

TEST(a_graph_takes_the_order_of_a_plan)
{
    static const struct hr_cedar_match some[] = {
        {2, "jitter"},
        {1, "gray"  }
    };
    struct hr_error error = {0};
    char found[64];

    CHECK_OK(order_of("physical_plan: {graph: {3: 5, 5: 0, 0: 4, 4: }, " PIPES
                      ", 4: {name: PrefetcherPipe}, 5: {name: FusedPipe, fused_pipes: "
                      "[1, 2]}}}",
                      NULL, 0, found, &error));
    CHECK_EQ_STR(found, "source gray jitter blur ");
    /* the written order is that of the logical plan: 1 is jitter */
    CHECK_OK(order_of("physical_plan: {graph: {3: 2, 2: 1, 1: 0, 0: }, " PIPES
                      "}}\nlogical_plan: {graph: {3: 1, 1: 2, 2: 0, 0: }, " PIPES "}}",
                      NULL, 0, found, &error));
    CHECK_EQ_STR(found, "source gray jitter blur ");
    /* pipes without a node */
    CHECK_OK(order_of("logical_plan: {graph: {3: 0, 0: 1, 1: 2, 2: }, " PIPES "}}", some,
                      2, found, &error));
    CHECK_EQ_STR(found, "source gray jitter blur ");
}

TEST(orders_that_do_not_fit_are_errors)
{
    static const struct hr_cedar_match some[] = {
        {2, "jitter"}
    };
    static const char two[] = "physical_plan: {graph: {3: 0, 0: }, pipes: {3: {name: a}, "
                              "0: {name: b}}}";
    struct hr_error error = {0};
    char found[64];

    CHECK_ERR(HR_ERR_STATE,
              order_of("physical_plan: {graph: {3: 2, 2: 0, 0: 1, 1: }, " PIPES "}}",
                       NULL, 0, found, &error));
    CHECK_HAS(error.message, "puts 'blur' before 'gray', which is not legal here: only");
    CHECK_ERR(
        HR_ERR_FORMAT,
        order_of("physical_plan: {graph: {3: 2, 2: 1, 1: 0, 0: }, " PIPES
                 "}}\nlogical_plan: {graph: {3: 9, 9: 0, 0: }, pipes: {3: {name: a}, "
                 "9: {name: b}, 0: {name: c}}}",
                 NULL, 0, found, &error));
    CHECK_HAS(error.message, "does not have the pipes of the physical one, such as 3");
    CHECK_ERR(HR_ERR_FORMAT,
              order_of("physical_plan: {" PIPES "}}", NULL, 0, found, &error));
    CHECK_HAS(error.message, "has no \"graph\"");
    CHECK_ERR(HR_ERR_ARGUMENT, order_of(two, NULL, 0, found, &error));
    CHECK_HAS(error.message, "2 pipes and the graph 4 nodes");
    CHECK_ERR(HR_ERR_ARGUMENT, order_of(two, some, 1, found, &error));
    CHECK_HAS(error.message, "2=jitter: there is no such pipe");
    CHECK_ERR(HR_ERR_ARGUMENT,
              order_of("physical_plan: {graph: {3: 2, 2: 1, 1: 0, 0: }, " PIPES "}}",
                       (struct hr_cedar_match[]){
                           {2, "jitter"},
                           {2, "gray"  }
    },
                       2, found, &error));
    CHECK_HAS(error.message, "several nodes");
}

static void check_match_error(const struct hr_cedar_match *matches, size_t count,
                              const char *graph_text, const char *message)
{
    struct hr_graph *graph = graph_of(graph_text);
    struct hr_profile *profile = NULL;
    struct hr_error error = {0};

    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_cedar_to_profile(&stats, NULL, graph, matches, count, &profile, &error));
    CHECK_HAS(error.message, message);
    hr_graph_unref(graph);
}

TEST(matches_that_do_not_fit_are_errors)
{
    check_match_error(NULL, 0, GRAPH "  - debug.identity: {}\n",
                      "4 pipes and the graph 5 nodes");
    check_match_error(
        (struct hr_cedar_match[]){
            {7, "gray"}
    },
        1, GRAPH, "no pipe 7");
    check_match_error(
        (struct hr_cedar_match[]){
            {1, "grey"}
    },
        1, GRAPH, "no node 'grey'");
    check_match_error(
        (struct hr_cedar_match[]){
            {1, "gray"},
            {1, "blur"}
    },
        2, GRAPH, "several nodes");
}

TEST(a_profile_becomes_statistics_that_read_back)
{
    struct hr_graph *graph = graph_of(GRAPH);
    struct hr_profile *profile = NULL, *again = NULL;
    char *text = NULL, *names = NULL;
    struct hr_cedar_outcome *plan = NULL;
    struct hr_cedar_plan_info info;
    struct hr_error error = {0};
    double ns = 0;

    CHECK_OK(hr_cedar_to_profile(&stats, NULL, graph, NULL, 0, &profile, NULL));
    profile->nodes[1].bytes_in = profile->nodes[1].bytes_out = 0; /* reads no field */
    profile->nodes[2].records_in = 4; /* keeps a quarter: per record of the source */
    CHECK_OK(hr_cedar_from_profile(profile, &text, &names, &error));
    CHECK_HAS(text, "    3: 16526.24\n");
    CHECK_HAS(text, "    0: 1548735.75\n");
    CHECK_HAS(text,
              "input_sizes:\n    3: 0\n    2: 714432\n    1: 714432\n    0: 238144\n");
    CHECK_HAS(names, "    3: {name: \"source\", fix: true}\n"
                     "    2: {name: \"jitter\"}\n");
    CHECK_OK(hr_cedar_optimize(&(struct hr_cedar_text){text, strlen(text), "t.yml"},
                               &(struct hr_cedar_text){names, strlen(names), "n.yml"},
                               NULL, &plan, &error));
    hr_cedar_plan_info(plan, &info);
    for (size_t i = 0; i < profile->node_count; i++)
        ns += hr__profile_wall_ns(&profile->nodes[i]) / (i == 3 ? 4 : 1);
    CHECK_NEAR(info.written_ms, ns * 1e-6, 1e-6 * info.written_ms);
    hr_cedar_plan_free(plan);
    CHECK_OK(hr_cedar_to_profile(&(struct hr_cedar_text){text, strlen(text), "t.yml"},
                                 NULL, graph, NULL, 0, &again, &error));
    CHECK(again->nodes[1].bytes_in == 714432); /* that of the node before */
    hr_free(text);
    hr_free(names);
    for (size_t i = 0; i < profile->node_count; i++)
        profile->nodes[i].cpu_ns = 0;
    CHECK_ERR(HR_ERR_STATE, hr_cedar_from_profile(profile, &text, NULL, &error));
    CHECK_HAS(error.message, "no node was measured");
    hr_profile_free(profile);
    hr_profile_free(again);
    hr_graph_unref(graph);
}

TEST(conversions_without_memory_are_errors)
{
    static const char plan[] =
        "physical_plan: {graph: {3: 1, 1: 2, 2: 0, 0: }, " PIPES "}}";
    struct hr_graph *graph = graph_of(CHAIN), *ordered = NULL;
    struct hr_profile *profile = NULL;
    char *text = NULL, *names = NULL;
    enum hr_err codes[3] = {HR_ERR_MEMORY, HR_ERR_MEMORY, HR_ERR_MEMORY};

    CHECK_OK(hr_graph_freeze(graph, NULL));
    for (uint64_t nth = 1; codes[0] != HR_OK; nth++) {
        hr__fault_arm(HR_FAULT_ALLOC, nth);
        codes[0] = hr_cedar_to_profile(&stats, &pipes, graph, NULL, 0, &profile, NULL);
        hr__fault_arm(0, 0);
        CHECK(codes[0] == HR_OK || codes[0] == HR_ERR_MEMORY);
    }
    for (uint64_t nth = 1; codes[1] != HR_OK; nth++) {
        hr__fault_arm(HR_FAULT_ALLOC, nth);
        codes[1] = hr_cedar_from_profile(profile, &text, &names, NULL);
        hr__fault_arm(0, 0);
        CHECK(codes[1] == HR_OK || codes[1] == HR_ERR_MEMORY);
    }
    for (uint64_t nth = 1; codes[2] != HR_OK; nth++) {
        hr__fault_arm(HR_FAULT_ALLOC, nth);
        codes[2] =
            hr_cedar_to_graph(&(struct hr_cedar_text){plan, sizeof plan - 1, "p.yml"},
                              graph, NULL, 0, HR_STRICTNESS_EXACT, &ordered, NULL);
        hr__fault_arm(0, 0);
        CHECK(codes[2] == HR_OK || codes[2] == HR_ERR_MEMORY);
    }
    hr_graph_unref(ordered);
    hr_graph_unref(graph);
    hr_profile_free(profile);
    hr_free(text);
    hr_free(names);
}
