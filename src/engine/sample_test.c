/*
 * engine/sample_test.c - records that stolen time explains are not counted.
 */
#include "api/iter.h"
#include "core/cpu.h"
#include "engine/engine.h"
#include "engine/engine_test_util.h"

#include <math.h>

#define STEP ((uint64_t)HR_CPU_STEAL_STEP_NS)

TEST(stolen_time_explains_as_much_as_there_was)
{
    struct hr_stolen stolen = {.before_ns = 7 * STEP};

    CHECK(!hr__stolen_explains(&stolen, 7 * STEP, STEP / 2)); /* nothing was stolen */
    CHECK(!hr__stolen_explains(&stolen, 8 * STEP, 3 * STEP));
    CHECK(hr__stolen_explains(&stolen, 8 * STEP, STEP));
    CHECK(!hr__stolen_explains(&stolen, 8 * STEP, 1)); /* it has explained something */
    CHECK(hr__stolen_explains(&stolen, 10 * STEP, 3 * STEP - 1));
    CHECK(!hr__stolen_explains(&stolen, 10 * STEP, 1));
}

#define COUNT 4000

/* Every 1000th of COUNT records takes 20 ms and the others 2 us. Returns how many were
 * counted, where `stolen_ns` may explain records. */
static double counted(uint64_t stolen_ns)
{
    struct hr_graph *graph = load(GRAPH(
        RANGE(4000) "  - debug.spin: {us: 2, every: 1000, factor: 10000}\n" BATCH(10)));
    struct hr_iter_options options;
    struct hr_batch *batch;
    struct hr_iter *iter;
    struct hr_error error = {0};
    double count;

    hr_iter_options_init(&options);
    options.variant = HR_VARIANT_INLINE;
    options.trace = true; /* each record is timed */
    CHECK_OK(hr_iter_open(graph, &options, &iter, &error));
    iter->engine->stolen.before_ns = hr__cpu_steal_ns() - stolen_ns;
    if (stolen_ns == 0)
        iter->engine->stolen.explained_ns = UINT64_MAX / 2;
    while (hr_iter_next(iter, &batch, &error) == HR_OK)
        hr_batch_unref(batch);
    count = hr__fit_count((struct hr_fit[]){hr__engine_node_fit(iter->engine, 1)});
    hr_iter_close(iter);
    hr_graph_unref(graph);
    return count;
}

TEST(a_record_is_left_out_where_stolen_time_explains_it)
{
    double count;

    CHECK_EQ_INT(COUNT, (int)lround(counted(0)));
    if (hr__cpu_steal_ns() < 10 * STEP)
        SKIP("this machine knows of no stolen time");
    /* The first record is no exception yet. What the machine's other work does to the
     * rest is seldom. */
    count = counted(10 * STEP);
    if (count > COUNT - 3 + 0.5 || count < COUNT - 20)
        check_failed(__FILE__, __LINE__, "%.1f of %d records were counted", count, COUNT);
}
