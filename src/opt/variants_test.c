/*
 * opt/variants_test.c - profile in, plan out: both as text.
 */
#include "opt/variants.h"

#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "core/str.h"
#include "opt/opt_test_util.h"
#include "tests/support/check.h"
#include "tests/support/outcome.h"

#define NODES_MAX 24
#define MAP(code, in, out, name)                                                         \
    "  - code.map: {code: " code ", fields: " in ", outputs: [\"" out                    \
    ": int64\"]}\n    name: " name "\n"
#define SOURCE "  - source.range: {n: 50}\n"
#define BATCH "  - batch.stack: {size: 8}\n"

static enum hr_err start(void *user, int fd, int64_t *ret_id, struct hr_error *reterr)
{
    (void)user;
    (void)fd;
    (void)ret_id;
    (void)reterr;
    return HR_ERR_UNSUPPORTED;
}

static void end(void *user, int64_t id)
{
    (void)user;
    (void)id;
}

/* `user`: whether there is a host. */
static enum hr_err add_code(void *user, struct hr_graph *graph, struct hr_error *reterr)
{
    struct hr_code stays = opt_test_locked;
    static const struct hr_code_host host = {.start = start, .kill = end};

    stays.identity = "3";
    stays.stays = "it is a lambda";
    CHECK_OK(opt_test_add_code(graph, reterr));
    CHECK_OK(hr_graph_code(graph, "stays", &stays, reterr));
    return user != NULL ? hr_graph_code_host(graph, &host, reterr) : HR_OK;
}

static struct hr_graph *graph_of(const char *pipeline, bool hosted)
{
    struct outcome_job job;
    struct hr_error error = {0};
    struct hr_graph *graph;
    struct hr_str text;

    hr__str_init(&text);
    hr__str_addf(&text, "headrace: 1\npipeline:\n%s", pipeline);
    job = outcome_job_text(hr__str_text(&text));
    job.prepare = add_code;
    job.user = hosted ? &text : NULL;
    graph = outcome_graph(&job, &error);
    if (graph == NULL || hr_graph_freeze(graph, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    hr__str_finish(&text);
    return graph;
}

/* What a node costs: microseconds inline and in a worker process, 0: not known; the part
 * under the lock, < 0: not known; bytes in and out. */
struct cost {
    const char *node;
    double us, process_us, serial, bytes;
};

static void add_number(struct hr_str *text, const char *key, double number)
{
    if (number < 0)
        hr__str_addf(text, ", \"%s\": null", key);
    else
        hr__str_addf(text, ", \"%s\": %.9g", key, number);
}

static void profile_text(const struct hr_graph *graph, const struct cost *costs,
                         size_t count, int cores, struct hr_str *text)
{
    hr__str_addf(text,
                 "{\"headrace_profile\": 2, \"graph\": \"%032d\", \"library\": \"0\", "
                 "\"variant\": \"inline\", \"fused\": true, \"seconds\": 1, "
                 "\"machine\": {\"cpu\": \"x\", \"isa\": \"avx2\", \"cores\": %d, "
                 "\"copy\": null, \"crowd\": 1, \"disk\": null, \"transfer_ns\": 400, "
                 "\"transfer\": 5e9}, \"nodes\": [",
                 0, cores);
    for (size_t i = 0; i < graph->count; i++) {
        const struct hr_graph_node *n = &graph->nodes[i];
        const struct cost none = {n->name, 0.1, 0, -1, 0}, *cost = &none;
        char hash[HR_HASH_TEXT_BYTES];

        for (size_t k = 0; k < count; k++)
            if (strcmp(costs[k].node, n->name) == 0)
                cost = &costs[k];
        hr__hash_text(n->fingerprint, hash);
        hr__str_addf(text,
                     "%s{\"node\": \"%s\", \"op\": \"%s\", \"fingerprint\": \"%s\", "
                     "\"measured\": 1, \"records_in\": 100, \"records_out\": 100, "
                     "\"wait_ns\": 0, \"deviation_ns\": 0, \"fixed\": null, "
                     "\"width\": null",
                     i > 0 ? ", " : "", n->name, n->op->name, hash);
        add_number(text, "cpu_ns", 1e3 * cost->us);
        add_number(text, "bytes_in", cost->bytes);
        add_number(text, "bytes_out", cost->bytes);
        add_number(text, "serial", cost->serial);
        add_number(text, "process_ns",
                   cost->process_us > 0 ? 1e3 * cost->process_us : -1);
        hr__str_addf(text, "}");
    }
    hr__str_addf(text, "]}");
    CHECK(hr__str_ok(text));
}

struct choice {
    struct hr_graph *graph;
    struct hr_variants variants;
    char *plan; /* YAML */
};

static struct choice choose(const char *pipeline, bool hosted, const struct cost *costs,
                            size_t count, int cores, int threads)
{
    struct choice made = {.graph = graph_of(pipeline, hosted)};
    struct hr_opt_settings settings = {
        .cpus = cores, .threads = threads, .ordered = true, .fuse = true};
    struct hr_cost_fact facts[NODES_MAX];
    struct hr_cost_machine machine;
    struct hr_profile profile;
    struct hr_error error = {0};
    struct hr_plan plan;
    struct hr_str text;

    CHECK(made.graph->count <= NODES_MAX);
    hr__str_init(&text);
    profile_text(made.graph, costs, count, cores, &text);
    if (hr__profile_parse(hr__str_text(&text), text.length, "p", &profile, &error) !=
        HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    hr__cost_machine(&profile, &machine);
    CHECK_OK(hr__cost_facts(made.graph, &profile, facts, &error));
    CHECK_OK(hr__variants_choose(made.graph, &settings, false, facts, &machine,
                                 &made.variants, &error));
    settings.processes = made.variants.sets[0].processes;
    CHECK_OK(hr__plan_make(made.graph, &settings, &plan, &error));
    hr__str_clear(&text);
    hr__plan_print(&plan, HR_GRAPH_YAML, &text);
    made.plan = hr__str_take(&text);
    hr__str_finish(&text);
    hr__plan_finish(&plan);
    hr__profile_finish(&profile);
    return made;
}

static void finish(struct choice *made)
{
    hr__variants_finish(&made->variants);
    hr_graph_unref(made->graph);
    hr__free(made->plan);
}

/* The variants of the plan's steps in order: "threads processes". */
static void check_plan(const struct choice *made, const char *want)
{
    char found[512] = "";
    const char *at = made->plan;
    size_t length = 0;

    while ((at = strstr(at, "\n        variant: ")) != NULL) {
        at += strlen("\n        variant: ");
        length += (size_t)snprintf(found + length, sizeof found - length, "%s%.*s",
                                   length > 0 ? " " : "", (int)strcspn(at, "\n"), at);
    }
    if (strcmp(found, want) != 0)
        check_failed(__FILE__, __LINE__, "\"%s\", not \"%s\" in\n%s", found, want,
                     made->plan);
}

static const char *reason_of(const struct choice *made, const char *node)
{
    for (size_t i = 0; i < made->variants.step_count; i++) {
        const struct hr_variant_step *step = &made->variants.steps[i];

        if (strcmp(made->graph->nodes[step->node].name, node) == 0)
            return step->reason;
    }
    check_failed(__FILE__, __LINE__, "no step %s", node);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ONE SOURCE MAP("locked", "value", "a", "x") BATCH

TEST(code_that_holds_the_lock_goes_to_processes_if_it_costs_more_than_transfer)
{
    static const struct cost heavy[] = {
        {"x", 200, 205, 1, 8}
    };
    static const struct cost cheap[] = {
        {"x", 0.2, 0.9, 1, 8}
    };
    static const struct cost large[] = {
        {"x", 150, 320, 0.9, 400000}
    };
    struct choice made = choose(ONE, true, heavy, 1, 4, 4);

    check_plan(&made, "threads processes");
    CHECK_EQ_INT(made.variants.sets[0].count, 1);
    CHECK(made.variants.sets[0].rate >
          3 * made.variants.sets[made.variants.written].rate);
    CHECK_HAS(reason_of(&made, "x"), "a record takes 200 us, 100 %");
    CHECK_HAS(reason_of(&made, "x"), "205 us in a worker process");
    finish(&made);
    made = choose(ONE, true, heavy, 1, 1, 1); /* no other core */
    check_plan(&made, "threads threads");
    finish(&made);
    made = choose(ONE, true, cheap, 1, 2, 2);
    check_plan(&made, "threads threads");
    CHECK_HAS(reason_of(&made, "x"), "a record takes 0.2 us");
    finish(&made);
    made = choose(ONE, true, large, 1, 2, 2);
    check_plan(&made, "threads threads");
    finish(&made);
}

TEST(code_that_releases_the_lock_stays_in_threads)
{
    static const struct cost costs[] = {
        {"x", 200, 205, 0.05, 8}
    };
    static const struct cost not_known[] = {
        {"x", 200, 205, -1, 8}
    };
    struct choice made = choose(ONE, true, costs, 1, 2, 2);

    check_plan(&made, "threads threads");
    CHECK_HAS(reason_of(&made, "x"), "5 % of it with the lock");
    finish(&made);
    made = choose(ONE, true, not_known, 1, 2, 2);
    check_plan(&made, "threads threads");
    CHECK_HAS(reason_of(&made, "x"), "measure again");
    finish(&made);
    made = choose(SOURCE MAP("free", "value", "a", "x") BATCH, true, costs, 1, 2, 2);
    check_plan(&made, "threads threads");
    finish(&made);
}

TEST(what_may_not_move_is_said)
{
    static const struct cost costs[] = {
        {"x", 200, 205, 1, 8},
        {"y", 200, 205, 1, 8}
    };
    struct choice made = choose(ONE, false, costs, 1, 2, 2);

    check_plan(&made, "threads threads");
    CHECK_HAS(reason_of(&made, "x"), "nothing here can start worker processes");
    finish(&made);
    made = choose(ONE, true, costs, 1, 2, -1);
    CHECK_HAS(reason_of(&made, "x"), "in the caller's thread, as asked");
    finish(&made);
    made =
        choose(SOURCE MAP("stays", "value", "a", "x") MAP("locked", "a", "b", "y") BATCH,
               true, costs, 2, 4, 4);
    check_plan(&made, "threads threads processes");
    CHECK_EQ_STR(reason_of(&made, "x"), "it is a lambda");
    finish(&made);
    made = choose(SOURCE
                  "  - code.map: {code: locked, fields: value, outputs: [\"a: int64\"], "
                  "variant: inline}\n    name: x\n"
                  "  - code.map: {code: locked, fields: a, outputs: [\"b: int64\"], "
                  "variant: processes}\n    name: y\n" BATCH,
                  true, costs, 2, 4, 4);
    check_plan(&made, "threads inline processes");
    CHECK_HAS(reason_of(&made, "x"), "as written: variant: inline");
    CHECK_HAS(reason_of(&made, "y"), "as written: variant: processes");
    CHECK_EQ_INT(made.variants.steps[1].variant, HR_PLAN_PROCESSES);
    finish(&made);
}

#define CHAIN                                                                            \
    SOURCE MAP("locked", "value", "a", "x") MAP("locked", "a", "b", "y")                 \
        MAP("locked", "b", "c", "z") BATCH

TEST(a_contiguous_slice_crosses_the_border_once)
{
    static const struct cost costs[] = {
        {"x", 100, 102, 1, 8     },
        {"y", 100, 340, 1, 600000},
        {"z", 100, 102, 1, 8     }
    };
    struct choice made = choose(CHAIN, true, costs, 3, 8, 8);

    check_plan(&made, "threads processes processes processes");
    CHECK_EQ_INT(made.variants.set_count, 8);
    CHECK(made.variants.sets[0].rate >= made.variants.sets[1].rate);
    finish(&made);
}

TEST(built_in_steps_within_a_slice_go_with_it)
{
    static const struct cost costs[] = {
        {"x",   100, 230, 1,  300000},
        {"mid", 1,   0,   -1, 300000},
        {"y",   100, 230, 1,  300000}
    };
    struct choice made = choose(
        SOURCE MAP("locked", "value", "a",
                   "x") "  - debug.identity: {}\n    name: mid\n" MAP("locked", "a", "b",
                                                                      "y") BATCH,
        true, costs, 3, 8, 8);

    check_plan(&made, "threads processes processes processes");
    CHECK_EQ_INT(made.variants.sets[0].count, 2);
    finish(&made);
}

/* Whatever the costs, no case that was tried is better by more than what is asked for a
 * change, and the written one is among them. */
TEST(the_choice_is_the_best_of_all_sets)
{
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (int round = 0; round < 200; round++) {
        struct cost costs[3] = {{.node = "x"}, {.node = "y"}, {.node = "z"}};
        struct choice made;
        const struct hr_variants *v;

        for (int i = 0; i < 3; i++) {
            costs[i].us = hr__rng_uniform(&rng, 0.1, 300);
            costs[i].process_us = costs[i].us + hr__rng_uniform(&rng, 0.5, 100);
            costs[i].serial = hr__rng_uniform(&rng, 0, 1);
            costs[i].bytes = hr__rng_uniform(&rng, 0, 200000);
        }
        made = choose(CHAIN, true, costs, 3, 1 + (int)hr__rng_below(&rng, 8),
                      1 + (int)hr__rng_below(&rng, 8));
        v = &made.variants;
        CHECK(v->written < v->set_count);
        for (size_t i = 0; i < v->set_count; i++) {
            CHECK(v->sets[0].rate * HR_VARIANT_GAIN >= v->sets[i].rate);
            CHECK(i < 2 || v->sets[i - 1].rate >= v->sets[i].rate);
        }
        CHECK(v->written == 0 ||
              v->sets[0].rate >= HR_VARIANT_GAIN * v->sets[v->written].rate);
        finish(&made);
    }
}

/* A chain of steps of user code: m0 to the last. */
static void chain_text(int count, struct hr_str *text)
{
    hr__str_init(text);
    hr__str_addf(text, "%s", SOURCE);
    for (int i = 0; i < count; i++) {
        hr__str_addf(text, "  - code.map: {code: locked, fields: %s",
                     i > 0 ? "f" : "value");
        if (i > 0)
            hr__str_addf(text, "%d", i - 1);
        hr__str_addf(text, ", outputs: [\"f%d: int64\"]}\n    name: m%d\n", i, i);
    }
    hr__str_addf(text, "%s", BATCH);
    CHECK(hr__str_ok(text));
}

TEST(many_candidates_are_tried_as_slices)
{
    struct cost costs[12];
    char names[12][8];
    struct choice made;
    struct hr_str text;

    chain_text(12, &text);
    for (int i = 0; i < 12; i++) {
        bool heavy = i >= 3 && i < 9;

        snprintf(names[i], sizeof names[i], "m%d", i);
        costs[i] = (struct cost){names[i], heavy ? 50 : 0.1, heavy ? 51 : 1, 1, 8};
    }
    made = choose(hr__str_text(&text), true, costs, 12, 8, 8);
    for (int i = 3; i < 9; i++)
        CHECK_EQ_INT(made.variants.steps[i].variant, HR_PLAN_PROCESSES);
    finish(&made);
    hr__str_finish(&text);
}

/* The rate of the fastest of all sets of the steps that are not the first or last node.
 */
static double
best_of_all(const struct hr_graph *graph, struct hr_opt_settings settings,
            const struct hr_cost_fact *facts, const struct hr_cost_machine *machine)
{
    bool processes[NODES_MAX] = {false};
    double best = 0;

    settings.processes = processes;
    for (unsigned set = 0; set < 1u << (graph->count - 2); set++) {
        struct hr_plan plan;
        struct hr_cost cost;

        for (size_t i = 0; i + 2 < graph->count; i++)
            processes[i + 1] = (set >> i & 1) != 0;
        CHECK_OK(hr__plan_make(graph, &settings, &plan, NULL));
        CHECK_OK(hr__cost_plan(&plan, facts, machine, &cost, NULL));
        best = fmax(best, cost.rate);
        hr__cost_finish(&cost);
        hr__plan_finish(&plan);
    }
    return best;
}

TEST(the_choice_among_many_is_close_to_the_best_of_all_sets)
{
    struct hr_opt_settings settings = {.ordered = true, .fuse = true};
    struct hr_cost_fact facts[NODES_MAX];
    struct hr_graph *graph;
    struct hr_str text;
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 1, 0);
    chain_text(10, &text);
    graph = graph_of(hr__str_text(&text), true);
    for (int round = 0; round < 20; round++) {
        struct hr_cost_machine machine = {.crowd = 1, .transfer_ns = 1000, .copy = 1e10};
        struct hr_variants variants;

        settings.threads = settings.cpus = 1 + (int)hr__rng_below(&rng, 8);
        machine.cores = settings.cpus;
        for (size_t i = 0; i < graph->count; i++) {
            double ns = exp(hr__rng_uniform(&rng, log(1e2), log(1e5)));

            facts[i] = (struct hr_cost_fact){
                .records = 1,
                .kept = 1,
                .cpu_ns = ns,
                .bytes_in = hr__rng_uniform(&rng, 0, 1e5),
                .bytes_out = hr__rng_uniform(&rng, 0, 1e5),
                .parallel = (double)hr__rng_below(&rng, 3) / 2,
                .process_ns = ns * hr__rng_uniform(&rng, 1, 2),
                .variants = true,
            };
        }
        CHECK_OK(hr__variants_choose(graph, &settings, false, facts, &machine, &variants,
                                     NULL));
        CHECK(variants.sets[0].rate * HR_VARIANT_GAIN * 1.02 >=
              best_of_all(graph, settings, facts, &machine));
        hr__variants_finish(&variants);
    }
    hr_graph_unref(graph);
    hr__str_finish(&text);
}

/* The work does not grow with the square of the candidates. */
TEST(few_sets_of_very_many_candidates_are_tried)
{
    enum { STEPS = 480, SETS = 256 + 16 * 17 / 2 + 4 * 9 };
    struct hr_opt_settings settings = {
        .cpus = 2, .threads = 2, .ordered = true, .fuse = true};
    struct hr_cost_machine machine = {.cores = 2, .crowd = 1};
    static struct hr_cost_fact facts[STEPS + 2];
    struct hr_variants variants;
    struct hr_error error = {0};
    struct hr_graph *graph;
    struct hr_str text;

    chain_text(STEPS, &text);
    graph = graph_of(hr__str_text(&text), true);
    CHECK_EQ_INT(graph->count, STEPS + 2);
    for (size_t i = 0; i < graph->count; i++)
        facts[i] = (struct hr_cost_fact){.records = 1,
                                         .kept = 1,
                                         .cpu_ns = 1e4,
                                         .process_ns = 1e4,
                                         .variants = i > 0 && i <= STEPS};
    CHECK_OK(
        hr__variants_choose(graph, &settings, false, facts, &machine, &variants, &error));
    CHECK(variants.set_count <= SETS);
    /* One core holds the lock, the other one is the worker's: half of the steps each. */
    CHECK(variants.sets[0].rate >= 1.9 * variants.sets[variants.written].rate);
    CHECK_EQ_INT(variants.sets[0].slices, 1);
    hr__variants_finish(&variants);
    hr_graph_unref(graph);
    hr__str_finish(&text);
}

TEST(failed_allocations_are_reported)
{
    struct hr_graph *graph = graph_of(CHAIN, true);
    struct hr_opt_settings settings = {
        .cpus = 2, .threads = 2, .ordered = true, .fuse = true};
    struct hr_cost_machine machine = {.cores = 2, .crowd = 1};
    struct hr_cost_fact facts[NODES_MAX];
    enum hr_err code = HR_ERR_MEMORY;

    for (size_t i = 0; i < graph->count; i++)
        facts[i] = (struct hr_cost_fact){
            .records = 1, .kept = 1, .cpu_ns = 1e5, .variants = true};
    for (uint64_t n = 1; code == HR_ERR_MEMORY; n++) {
        struct hr_variants variants;
        struct hr_error error = {0};

        hr__fault_arm(HR_FAULT_ALLOC, n);
        code = hr__variants_choose(graph, &settings, false, facts, &machine, &variants,
                                   &error);
        hr__fault_arm(0, 0);
        if (code == HR_OK)
            hr__variants_finish(&variants);
        else
            CHECK_ERR(HR_ERR_MEMORY, code);
    }
    CHECK_OK(code);
    hr_graph_unref(graph);
}
