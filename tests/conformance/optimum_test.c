/*
 * conformance/optimum_test.c - chains of steps whose costs are known: the order, and the
 * number of threads, that the optimizer chooses is the best of all, every time.
 *
 * Costs are told, not measured, so nothing depends on the machine. The best is found here
 * by trying all orders. `make bench B=plan` has the same with measured costs.
 */
#include <math.h>
#include <stdio.h>

#include "core/rng.h"
#include "graph/graph.h"
#include "graph/profile.h"
#include "headrace/predict.h"
#include "tests/support/check.h"
#include "tests/support/pipeline.h"

#define CHAINS 60
#define STEPS_MAX 7
#define BEFORE 1 /* nodes before the steps: the source */

/* A step takes `ns` per record and keeps this part of them. A filter needs the step that
 * it is written after. */
struct step {
    double ns, kept;
    int after; /* number of a step, or -1 */
};

struct chain {
    struct step steps[STEPS_MAX];
    int count;
    struct hr_graph *graph;
    struct hr_profile profile;
};

static int below(struct hr_rng *rng, int n)
{
    return (int)hr__rng_below(rng, (uint64_t)n);
}

static int
add_step(struct chain *c, struct hr_rng *rng, char *text, size_t room, int prime)
{
    size_t at = strlen(text);
    int step = c->count++, keep = 1 + below(rng, prime > 0 ? prime - 1 : 1);

    c->steps[step] = (struct step){.ns = 1e3 * pow(100, hr__rng_double(rng)),
                                   .kept = prime > 0 ? (double)keep / prime : 1,
                                   .after = -1};
    if (prime == 0) {
        snprintf(text + at, room - at, "  - debug.spin: {us: 1}\n    name: n%d\n", step);
        return step;
    }
    snprintf(text + at, room - at, "  - record.filter: {expr: \"value %% %d < %d\"",
             prime, keep);
    if (below(rng, 2) == 0)
        for (int i = 0; i < step; i++)
            if (c->steps[i].kept == 1 && below(rng, 2) == 0)
                c->steps[step].after = i;
    at = strlen(text);
    if (c->steps[step].after >= 0)
        snprintf(text + at, room - at, ", depends_on: [n%d]", c->steps[step].after);
    at = strlen(text);
    snprintf(text + at, room - at, "}\n    name: n%d\n", step);
    return step;
}

/* What the steps cost, as if it had been measured in the written order. */
static void tell(struct chain *c)
{
    double records = 1e6;

    c->profile = (struct hr_profile){.variant = HR_PLAN_INLINE};
    hr__profile_machine(&c->profile.machine);
    for (uint32_t i = 0; i < c->graph->count; i++) {
        const struct hr_graph_node *n = &c->graph->nodes[i];
        struct hr_profile_node *told = hr__profile_add(&c->profile, n->name, n->op->name);
        int at = (int)i - BEFORE;
        bool step = at >= 0 && at < c->count;

        CHECK(told != NULL);
        told->fingerprint = n->fingerprint;
        told->records_in = (uint64_t)llround(records);
        records *= step ? c->steps[at].kept : 1;
        told->records_out = (uint64_t)llround(records);
        told->cpu_ns = step ? c->steps[at].ns : 0;
        told->bytes_in = told->bytes_out = 8;
        told->fixed = 1;
    }
}

static struct chain draw(struct hr_rng *rng)
{
    static const int primes[] = {2, 3, 5, 7};
    char text[2048] = "  - source.range: {n: 210}\n";
    struct chain c = {.count = 0};
    int filters = 0, count = 2 + below(rng, STEPS_MAX - 1);

    while (c.count < count) {
        bool filter = filters < 4 && below(rng, 2) == 0;

        add_step(&c, rng, text, sizeof text, filter ? primes[filters] : 0);
        filters += filter;
    }
    snprintf(text + strlen(text), sizeof text - strlen(text),
             "  - batch.stack: {size: 8}\n");
    c.graph = pipeline_frozen(text);
    tell(&c);
    return c;
}

/* The least time of all orders, for each record of the source. */
static double
least(const struct chain *c, unsigned done, double records, double spent, double best)
{
    if (spent >= best)
        return best;
    if (done == (1u << c->count) - 1)
        return spent;
    for (int i = 0; i < c->count; i++) {
        const struct step *s = &c->steps[i];

        if (done >> i & 1 || (s->after >= 0 && !(done >> s->after & 1)))
            continue;
        best = least(c, done | 1u << i, records * s->kept, spent + records * s->ns, best);
    }
    return best;
}

/* The time of the steps in the order of a graph. */
static double time_of(const struct chain *c, const struct hr_graph *graph)
{
    double records = 1, spent = 0;
    struct hr_node_info node;

    for (size_t i = 0; hr_graph_node_info(graph, i, &node) == HR_OK; i++) {
        int at;

        if (sscanf(node.name, "n%d", &at) != 1)
            continue;
        spent += records * c->steps[at].ns;
        records *= c->steps[at].kept;
    }
    return spent;
}

static double rate_with(struct chain *c, int threads)
{
    struct hr_predict_options options;
    struct hr_prediction *prediction = NULL;
    struct hr_prediction_info info;
    struct hr_iter_options run;

    hr_iter_options_init(&run);
    hr_predict_options_init(&options);
    run.threads = threads;
    options.run = &run;
    options.machine.cores = 3;
    CHECK_OK(hr_graph_predict(c->graph, &c->profile, &options, &prediction, NULL));
    hr_prediction_info(prediction, &info);
    hr_prediction_free(prediction);
    return info.rate;
}

TEST(the_cheapest_of_all_orders_is_found_every_time)
{
    struct hr_rng rng;
    int moved = 0;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (int i = 0; i < CHAINS; i++) {
        struct chain c = draw(&rng);
        struct hr_prediction *prediction = NULL;
        struct hr_graph *found = NULL;
        struct hr_error error = {0};
        double best = least(&c, 0, 1, 0, HUGE_VAL);

        if (hr_graph_predict_order(c.graph, &c.profile, NULL, NULL, &found, &prediction,
                                   &error) != HR_OK)
            check_failed(__FILE__, __LINE__, "%s", error.message);
        CHECK_NEAR(time_of(&c, found), best, 1e-6 * best);
        moved += time_of(&c, c.graph) > 1.001 * best;
        hr_prediction_free(prediction);
        hr_graph_unref(found);
        hr__profile_finish(&c.profile);
        hr_graph_unref(c.graph);
    }
    CHECK(moved > CHAINS / 10); /* written orders are seldom the best */
}

TEST(no_number_of_threads_is_better_than_the_chosen_one)
{
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 1, 0);
    for (int i = 0; i < CHAINS / 3; i++) {
        struct chain c = draw(&rng);
        double chosen = rate_with(&c, 0);

        for (int threads = 1; threads <= 6; threads++)
            CHECK(rate_with(&c, threads) <= chosen * (1 + 1e-9));
        hr__profile_finish(&c.profile);
        hr_graph_unref(c.graph);
    }
}
