/*
 * opt/cost_test.c - predicted rates against what follows by hand from the costs of nodes,
 * and what holds for all costs.
 */
#include "opt/cost.h"

#include <math.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "opt/opt.h"
#include "opt/opt_test_util.h"
#include "opt/reorder.h"
#include "tests/support/check.h"
#include "tests/support/outcome.h"

#define NODES_MAX 8

/* A graph with a plan, and facts that tests edit: nodes cost nothing at first. */
struct made {
    struct hr_graph *graph;
    struct hr_plan plan;
    struct hr_cost_fact facts[NODES_MAX];
    struct hr_cost_machine machine;
};

static enum hr_err add_code(void *user, struct hr_graph *graph, struct hr_error *reterr)
{
    (void)user;
    return opt_test_add_code(graph, reterr);
}

static struct made make(const char *pipeline, int threads, const bool *processes)
{
    struct hr_opt_settings settings = {.cpus = 2,
                                       .threads = threads,
                                       .ordered = true,
                                       .fuse = true,
                                       .processes = processes};
    struct outcome_job job;
    struct hr_error error = {0};
    struct made made = {
        .machine = {.cores = 2, .crowd = 1}
    };
    char text[1024];

    snprintf(text, sizeof text, "headrace: 1\npipeline:\n%s", pipeline);
    job = outcome_job_text(text);
    job.prepare = add_code;
    made.graph = outcome_graph(&job, &error);
    if (made.graph == NULL || hr_graph_freeze(made.graph, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    CHECK(made.graph->count <= NODES_MAX);
    CHECK_OK(hr__plan_make(made.graph, &settings, &made.plan, NULL));
    for (size_t i = 0; i < made.graph->count; i++)
        made.facts[i] = (struct hr_cost_fact){.records = 1, .kept = 1};
    return made;
}

static void finish(struct made *made)
{
    hr__plan_finish(&made->plan);
    hr_graph_unref(made->graph);
}

static struct hr_cost predict(const struct made *made)
{
    struct hr_cost cost;

    CHECK_OK(hr__cost_plan(&made->plan, made->facts, &made->machine, &cost, NULL));
    return cost;
}

static void
check_limit(const struct made *made, enum hr_cost_limit limit, uint32_t node, double rate)
{
    struct hr_cost cost = predict(made);

    CHECK_EQ_STR(hr__cost_limit_text(cost.limit), hr__cost_limit_text(limit));
    CHECK_EQ_INT(cost.node, node);
    CHECK_NEAR(cost.rate, rate, 1e-9 * rate);
    CHECK_HAS(cost.reason, made->graph->nodes[node].name);
    hr__cost_finish(&cost);
}

#define CHAIN                                                                            \
    "  - source.range: {n: 50}\n  - debug.identity: {}\n    name: a\n"                   \
    "  - debug.identity: {}\n    name: b\n  - batch.stack: {size: 8}\n"
#define FILTER                                                                           \
    "  - source.range: {n: 50}\n  - record.filter: {expr: \"value % 2 == 0\"}\n"         \
    "  - debug.identity: {}\n  - batch.stack: {size: 8}\n"
#define CODE                                                                             \
    "  - source.range: {n: 50}\n"                                                        \
    "  - code.map: {code: locked, fields: value, outputs: [\"p: int64\"]}\n    name: "   \
    "x\n"                                                                                \
    "  - code.map: {code: free, fields: p, outputs: [\"q: int64\"]}\n    name: y\n"      \
    "  - code.map: {code: free, fields: q, outputs: [\"r: int64\"], variant: inline}\n"  \
    "    name: z\n  - batch.stack: {size: 8}\n"

TEST(cores_that_compute_limit_the_rate)
{
    struct made made = make(CHAIN, 2, NULL);

    made.facts[1].cpu_ns = 30000;
    made.facts[2].cpu_ns = 70000;
    check_limit(&made, HR_COST_CORES, 2, 2e9 / 100000);
    made.machine.cores = 16; /* two threads use two of them */
    check_limit(&made, HR_COST_CORES, 2, 2e9 / 100000);
    finish(&made);
    made = make(CHAIN, 4, NULL);
    made.facts[1].cpu_ns = 100000;
    check_limit(&made, HR_COST_CORES, 1, 2e9 / 100000);
    made.machine.cores = 3;
    check_limit(&made, HR_COST_CORES, 1, 3e9 / 100000);
    finish(&made);
    made = make(CHAIN, -1, NULL); /* inline */
    made.facts[1].cpu_ns = 100000;
    check_limit(&made, HR_COST_CORES, 1, 1e9 / 100000);
    finish(&made);
}

TEST(threads_that_wait_limit_the_rate)
{
    struct made made = make(CHAIN, 2, NULL);

    made.facts[0].wait_ns = 400000;
    made.facts[1].cpu_ns = 100000;
    check_limit(&made, HR_COST_THREADS, 0, 2e9 / 500000);
    finish(&made);
    made = make(CHAIN, 20, NULL); /* enough to hide it */
    made.facts[0].wait_ns = 400000;
    made.facts[1].cpu_ns = 100000;
    check_limit(&made, HR_COST_CORES, 1, 2e9 / 100000);
    finish(&made);
}

/* A direct stage joins fields of varying size as others gather records. */
TEST(one_thread_at_a_time_limits_the_rate)
{
    struct made made = make(CHAIN, 2, NULL);

    CHECK(made.plan.stages[0].direct);
    made.facts[1].cpu_ns = 20000;
    made.facts[3].cpu_ns = 50000;
    check_limit(&made, HR_COST_SEQUENCE, 3, 1e9 / 50000);
    made.facts[3].parallel = 0.1; /* what threads write into the batch */
    check_limit(&made, HR_COST_SEQUENCE, 3, 1e9 / 45000);
    made.facts[3].parallel = 0.5;
    check_limit(&made, HR_COST_CORES, 3, 2e9 / 70000);
    made.facts[3].parallel = 0;
    made.facts[1].cpu_ns = 60000;
    check_limit(&made, HR_COST_CORES, 1, 2e9 / 110000);
    finish(&made);
    made = make(FILTER, 2, NULL);
    CHECK(!made.plan.stages[0].direct);
    made.facts[1].kept = 0.5;
    made.facts[2].records = made.facts[3].records = 0.5;
    made.facts[1].cpu_ns = 10000;
    made.facts[3].cpu_ns = 50000;
    check_limit(&made, HR_COST_SEQUENCE, 3, 1e9 / 50000);
    finish(&made);
}

TEST(user_code_under_a_lock_limits_the_rate)
{
    struct made made = make(CODE, 2, NULL);

    made.facts[2].cpu_ns = 50000; /* holds no lock */
    check_limit(&made, HR_COST_CORES, 2, 2e9 / 50000);
    made.facts[1].cpu_ns = 60000;
    made.facts[3].cpu_ns = 40000; /* never two at once */
    check_limit(&made, HR_COST_CODE, 1, 2e9 / (50000 + 100000 * (1 + 2.0 / 3)));
    made.facts[2].cpu_ns = 150000; /* a thread finds the lock taken 2 times in 5 */
    check_limit(&made, HR_COST_CODE, 1, 2e9 / (150000 + 100000 * 1.4));
    made.facts[2].cpu_ns = 1900000;
    check_limit(&made, HR_COST_CORES, 2, 2e9 / (1900000 + 100000 * 1.05));
    made.facts[2].cpu_ns = 0;
    made.facts[1].parallel = 0.75;
    check_limit(&made, HR_COST_CODE, 3, 2e9 / (45000 + 55000 * 1.55));
    finish(&made);
}

TEST(worker_processes_use_cores_of_their_own_and_copies_cost)
{
    static const bool chosen[NODES_MAX] = {[1] = true};
    struct made made = make(CODE, 2, chosen);
    struct hr_cost cost;

    made.facts[1].cpu_ns = 300000;
    made.facts[2].cpu_ns = 50000;
    made.machine.cores = 8;
    check_limit(&made, HR_COST_THREADS, 1, 2e9 / 300000); /* overlapped */
    made.plan.stages[0].overlap_ns = 0;
    check_limit(&made, HR_COST_THREADS, 1, 2e9 / 350000);
    made.machine.cores = 1;
    check_limit(&made, HR_COST_CORES, 1, 1e9 / 350000);
    made.facts[1].bytes_in = 300000;
    made.facts[1].bytes_out = 100000;
    made.machine.copy = 4e9; /* 75 us; the next step reads the output where it is */
    check_limit(&made, HR_COST_CORES, 1, 1e9 / 425000);
    cost = predict(&made);
    CHECK_NEAR(cost.nodes[1].cpu_ns, 375000, 1e-6);
    hr__cost_finish(&cost);
    finish(&made);
}

#define PAIR                                                                             \
    "  - source.range: {n: 50}\n"                                                        \
    "  - code.map: {code: free, fields: value, outputs: [\"p: int64\"]}\n"               \
    "  - code.map: {code: free, fields: p, outputs: [\"p: int64\"]}\n"                   \
    "  - batch.stack: {size: 8}\n"

/* CPU times as measured with NumPy and two cores: an int to an image of 150 kB, and that
 * to 600 kB. What a step's process_ns lacks is the copy of its output into the batch. */
TEST(the_output_of_worker_processes_is_copied_where_it_is_kept)
{
    static const struct {
        bool chosen[NODES_MAX];
        double cpu_ns; /* per record */
    } cases[] = {
        {{false},                  90000                 },
        {{[1] = true},             18000 + 77000         },
        {{[2] = true},             13000 + 115000 + 60000},
        {{[1] = true, [2] = true}, 18000 + 77000 + 60000 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct made made = make(PAIR, 2, cases[i].chosen);
        struct hr_cost cost;

        made.machine.copy = 10e9;
        made.facts[1] = (struct hr_cost_fact){.records = 1,
                                              .kept = 1,
                                              .cpu_ns = 13000,
                                              .bytes_out = 150000,
                                              .process_ns = 18000};
        made.facts[2] = (struct hr_cost_fact){.records = 1,
                                              .kept = 1,
                                              .cpu_ns = 77000,
                                              .bytes_in = 150000,
                                              .bytes_out = 600000,
                                              .process_ns = 115000};
        cost = predict(&made);
        CHECK_NEAR(cost.cpu_ns, cases[i].cpu_ns, 1e-6);
        hr__cost_finish(&cost);
        finish(&made);
    }
}

TEST(the_disk_limits_the_rate)
{
    struct made made = make(CHAIN, 2, NULL);

    made.facts[1].cpu_ns = 100000;
    made.facts[0].bytes_out = 110000;
    made.machine.disk = 200e6;
    check_limit(&made, HR_COST_DISK, 0, 200e6 / 110000);
    made.machine.disk = 20e9;
    check_limit(&made, HR_COST_CORES, 1, 20000);
    finish(&made);
}

TEST(crowded_cores_memory_and_money_count)
{
    struct made made = make(CHAIN, 2, NULL);
    struct hr_cost cost;

    made.facts[1].cpu_ns = 100000;
    made.machine.crowd = 1.25;
    made.machine.price = 3.6;
    made.machine.memory = 1;
    cost = predict(&made);
    CHECK_NEAR(cost.rate, 16000, 1e-6);
    CHECK_NEAR(cost.cpu_ns, 125000, 1e-6);
    CHECK_NEAR(cost.nodes[1].cpu_ns, 125000, 1e-6);
    CHECK_NEAR(cost.busy, 2, 1e-9);
    CHECK_NEAR(cost.price, 0.001 / 16000 * 1e6, 1e-9);
    CHECK(!cost.fits && cost.memory == made.plan.memory.total);
    hr__cost_finish(&cost);
    made.machine.cores = 4; /* half of them compute: a third of the way */
    cost = predict(&made);
    CHECK_NEAR(cost.cpu_ns, 100000 * (1 + 0.25 / 3), 1e-6);
    hr__cost_finish(&cost);
    finish(&made);
}

TEST(nodes_that_know_what_crowding_costs_them_ignore_the_machine)
{
    struct made made = make(CHAIN, 2, NULL);
    struct hr_cost cost;

    for (size_t i = 0; i < made.graph->count; i++)
        made.facts[i].cpu_ns = 0;
    made.facts[1].cpu_ns = 100000;
    made.facts[1].crowd = 1.5;
    made.facts[2].cpu_ns = 100000;
    made.machine.crowd = 1.2;
    cost = predict(&made);
    CHECK_NEAR(cost.nodes[1].cpu_ns, 150000, 1e-6);
    CHECK_NEAR(cost.nodes[2].cpu_ns, 120000, 1e-6);
    CHECK_NEAR(cost.cpu_ns, 270000, 1e-6);
    hr__cost_finish(&cost);
    made.facts[1].crowd = 0.9; /* less than alone: as measured */
    cost = predict(&made);
    CHECK_NEAR(cost.cpu_ns, 210000, 1e-6);
    hr__cost_finish(&cost);
    made.plan.threads = 1;
    cost = predict(&made);
    CHECK_NEAR(cost.cpu_ns, 200000, 1e-6);
    hr__cost_finish(&cost);
    finish(&made);
}

/* What holds for all costs: the rate is the least of the limits, more of anything never
 * slows a run, and shares add up. */
TEST(more_of_a_machine_is_never_slower)
{
    static const char *const graphs[] = {CHAIN, FILTER, CODE};
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (int round = 0; round < 300; round++) {
        struct made made = make(graphs[round % 3], (int)hr__rng_below(&rng, 5), NULL);
        struct hr_cost cost, more;
        double shares = 0, cpu_ns = 0;

        for (size_t i = 0; i < made.graph->count; i++)
            made.facts[i] =
                (struct hr_cost_fact){.records = 0.5 + hr__rng_double(&rng),
                                      .kept = 1,
                                      .cpu_ns = 1 + 1e6 * hr__rng_double(&rng),
                                      .wait_ns = 1e6 * hr__rng_double(&rng),
                                      .bytes_out = 1e5 * hr__rng_double(&rng)};
        made.machine =
            (struct hr_cost_machine){.cores = 1 + (double)hr__rng_below(&rng, 8),
                                     .crowd = 1,
                                     .disk = 1e8 * hr__rng_double(&rng)};
        cost = predict(&made);
        for (int i = 0; i < HR_COST_LIMITS; i++)
            CHECK(cost.rate <= cost.rates[i] && cost.rates[i] > 0);
        for (size_t i = 0; i < made.graph->count; i++) {
            shares += cost.nodes[i].share;
            cpu_ns += cost.nodes[i].cpu_ns;
        }
        CHECK_NEAR(shares, 1, 1e-9);
        CHECK_NEAR(cpu_ns, cost.cpu_ns, 1e-9 * cpu_ns);
        CHECK(cost.busy <= made.machine.cores * (1 + 1e-9));
        made.machine.cores += 1 + (double)hr__rng_below(&rng, 8);
        made.machine.disk *= 2;
        more = predict(&made);
        CHECK(more.rate >= cost.rate * (1 - 1e-12));
        hr__cost_finish(&cost);
        hr__cost_finish(&more);
        finish(&made);
    }
}

/* ---- facts ---- */

static struct hr_profile profile_of(const struct hr_graph *graph)
{
    struct hr_profile profile = {.variant = HR_PLAN_INLINE};

    for (size_t i = 0; i < graph->count; i++) {
        struct hr_profile_node *node =
            hr__profile_add(&profile, graph->nodes[i].name, graph->nodes[i].op->name);

        CHECK(node != NULL);
        node->fingerprint = graph->nodes[i].fingerprint;
        node->records_in = node->records_out = 100;
        node->cpu_ns = 1000 * (double)(i + 1);
    }
    return profile;
}

TEST(records_flow_through_filters_and_what_is_not_known_is_named)
{
    struct made made = make(FILTER, 2, NULL);
    struct hr_profile profile = profile_of(made.graph);
    struct hr_error error = {0};
    struct hr_cost cost;

    profile.nodes[1].records_out = 25;
    CHECK_OK(hr__cost_facts(made.graph, &profile, made.facts, &error));
    CHECK_NEAR(made.facts[1].records, 1, 1e-12);
    CHECK_NEAR(made.facts[2].records, 0.25, 1e-12);
    CHECK_NEAR(made.facts[3].records, 0.25, 1e-12);
    CHECK_NEAR(made.facts[3].cpu_ns, 4000, 1e-12);
    cost = predict(&made);
    CHECK_NEAR(cost.cpu_ns, (1000 + 2000 + 0.25 * 7000) / 0.25, 1e-6);
    hr__cost_finish(&cost);
    profile.nodes[1].records_out = 0;
    CHECK_OK(hr__cost_facts(made.graph, &profile, made.facts, &error));
    CHECK_ERR(HR_ERR_STATE,
              hr__cost_plan(&made.plan, made.facts, &made.machine, &cost, &error));
    CHECK_HAS(error.message, "no record reached the output");
    profile.nodes[2].fingerprint.low ^= 1;
    CHECK_ERR(HR_ERR_STATE, hr__cost_facts(made.graph, &profile, made.facts, &error));
    CHECK_HAS(error.message, "debug.identity");
    hr__profile_finish(&profile);
    finish(&made);
}

TEST(an_order_moves_the_costs_of_its_nodes)
{
    struct made made = make("  - source.range: {n: 50}\n  - debug.spin: {us: 5}\n"
                            "  - record.filter: {expr: \"value % 4 == 0\"}\n"
                            "  - batch.stack: {size: 8}\n",
                            2, NULL);
    struct hr_profile profile = profile_of(made.graph);
    struct hr_reorder_settings settings = {HR_RULE_HEADRACE, HR_STRICTNESS_EXACT};
    struct hr_cost_fact facts[NODES_MAX];
    struct hr_graph *other = NULL;
    struct hr_reorder order;

    profile.nodes[1].cpu_ns = 5000;
    profile.nodes[2].records_out = 25;
    CHECK_OK(hr__cost_facts(made.graph, &profile, made.facts, NULL));
    CHECK_OK(hr__reorder(made.graph, &profile, &settings, &order, NULL));
    CHECK_EQ_INT(order.moved, 2);
    CHECK_OK(hr__graph_permute(made.graph, order.nodes, &other, NULL));
    CHECK_OK(hr_graph_freeze(other, NULL));
    hr__cost_reorder(made.facts, &order, other, facts);
    CHECK_EQ_STR(other->nodes[1].op->name, "record.filter");
    CHECK_NEAR(facts[1].records, 1, 1e-12);
    CHECK_NEAR(facts[2].records, 0.25, 1e-12);
    CHECK_NEAR(facts[2].cpu_ns, 5000, 1e-9);
    CHECK_NEAR(facts[1].records * facts[1].cpu_ns + facts[2].records * facts[2].cpu_ns,
               order.ns, 1e-9);
    hr__reorder_finish(&order);
    hr__profile_finish(&profile);
    hr_graph_unref(other);
    finish(&made);
}

TEST(the_machine_is_that_of_the_profile)
{
    struct hr_profile profile = {.variant = HR_PLAN_INLINE};
    struct hr_cost_machine machine;

    hr__profile_machine(&profile.machine);
    hr__cost_machine(&profile, &machine);
    CHECK(machine.cores >= 1 && machine.crowd == 1 && machine.copy == 0 &&
          machine.disk == 0);
    profile.machine.crowd = 1.5;
    profile.machine.copy = 2e9;
    profile.machine.disk = 3e8;
    hr__cost_machine(&profile, &machine);
    CHECK(machine.crowd == 1.5 && machine.copy == 2e9 && machine.disk == 3e8);
    profile.variant = HR_PLAN_THREADS; /* crowded when it was measured */
    hr__cost_machine(&profile, &machine);
    CHECK(machine.crowd == 1);
}

TEST(failed_allocations_are_reported)
{
    struct made made = make(CHAIN, 2, NULL);
    struct hr_profile profile = profile_of(made.graph);
    struct hr_cost cost;

    hr__fault_arm(HR_FAULT_ALLOC, 1);
    CHECK_ERR(HR_ERR_MEMORY, hr__cost_facts(made.graph, &profile, made.facts, NULL));
    hr__fault_arm(HR_FAULT_ALLOC, 1);
    CHECK_ERR(HR_ERR_MEMORY,
              hr__cost_plan(&made.plan, made.facts, &made.machine, &cost, NULL));
    hr__fault_arm(0, 0);
    hr__profile_finish(&profile);
    finish(&made);
}
