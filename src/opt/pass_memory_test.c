/*
 * opt/pass_memory_test.c - the division of a memory budget, by properties that hold for
 * any sizes of records.
 */
#include "tests/support/check.h"
#include "tests/support/outcome.h"

#include "core/rng.h"
#include "core/str.h"
#include "opt/memory.h"
#include "opt/opt.h"

#define GRAPH(steps) "headrace: 1\npipeline:\n  - source.range: {n: 1000}\n" steps

/* One direct stage; one with a filter; two with a batch between them; a window. */
static const char *const graphs[] = {
    GRAPH("  - batch.stack: {size: 32}\n"),
    GRAPH("  - record.filter: {expr: \"value % 3 != 1\"}\n  - batch.stack: {size: 8}\n"),
    GRAPH("  - batch.pad: {size: 4}\n  - batch.unbatch: {}\n  - record.filter: {expr: "
          "\"value != 1\"}\n  - batch.pad: {size: 4}\n"),
    GRAPH("  - record.filter: {expr: \"value % 3 != 1\"}\n  - order.shuffle: {window: "
          "100}\n  - batch.stack: {size: 16}\n"),
    GRAPH("  - record.filter: {expr: \"value % 3 != 1\"}\n"),
    GRAPH("  - record.filter: {expr: \"value != 1\"}\n  - order.shuffle: {window: "
          "1000000000000}\n  - batch.stack: {size: 16777216}\n"),
};
#define GRAPHS (sizeof graphs / sizeof graphs[0])

struct made {
    struct hr_graph *graph;
    struct hr_plan plan;
    struct hr_sizes sizes;
};

static struct made make(const char *text, int threads)
{
    struct outcome_job job = outcome_job_text(text);
    struct hr_opt_settings settings = {
        .cpus = 4, .threads = threads, .ordered = true, .fuse = true};
    struct hr_error error = {0};
    struct made made = {.graph = outcome_graph(&job, &error)};

    if (made.graph == NULL || hr_graph_freeze(made.graph, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    CHECK_OK(hr__plan_make(made.graph, &settings, &made.plan, NULL));
    hr__sizes_estimate(&made.plan, NULL, &made.sizes);
    return made;
}

static void finish(struct made *made)
{
    hr__plan_finish(&made->plan);
    hr_graph_unref(made->graph);
}

/* Turn `turn` of a test. */
static struct hr_rng rng_of(uint64_t seed, int turn)
{
    struct hr_rng rng;

    hr__rng_init(&rng, seed, 0, (uint64_t)turn);
    return rng;
}

/* Between 1 byte and 64 MiB, all magnitudes alike. */
static uint64_t any_size(struct hr_rng *rng)
{
    return 1 + hr__rng_below(rng, (uint64_t)1 << hr__rng_below(rng, 27));
}

static void draw_sizes(struct made *made, struct hr_rng *rng)
{
    for (size_t i = 0; i < made->plan.stage_count; i++) {
        struct hr_stage_sizes *s = &made->sizes.stages[i];

        s->records = 1;
        s->item = any_size(rng);
        s->result = s->item * (1 + hr__rng_below(rng, 5));
        s->scratch = any_size(rng);
        s->batch = s->batch > 0 ? any_size(rng) : 0;
    }
}

static void check_limits(const struct hr_plan *plan)
{
    for (size_t i = 0; i < plan->stage_count; i++) {
        const struct hr_plan_stage_memory *m = &plan->stages[i].memory;

        CHECK(m->block_records >= 1 && m->block_count >= 1 && m->block_bytes >= 1);
        CHECK((m->queue_records >= 1) == (i > 0) && (m->queue_bytes >= 1) == (i > 0));
    }
    CHECK(plan->memory.batches_ahead >= 1 && plan->memory.batches_ahead <= 64);
    CHECK(plan->memory.total >= plan->memory.least);
}

/* Half of the budget if it fits, and less before a run is refused. */
TEST(a_cache_in_memory_is_reduced_before_a_run_is_refused)
{
    struct made m = make("headrace: 1\npipeline:\n  - source.range: {n: 1000}\n"
                         "  - flow.cache: {}\n  - batch.stack: {size: 32}\n",
                         2);
    struct hr_plan_memory *memory = &m.plan.memory;
    struct hr_error error = {0};
    uint64_t least;

    memory->budget = (uint64_t)1 << 32;
    CHECK_OK(hr__plan_divide(&m.plan, &m.sizes, 0, false, NULL));
    CHECK_EQ_INT(memory->kept, memory->budget / 2);
    CHECK(memory->total <= memory->budget);
    for (uint32_t i = 0; i < m.graph->count; i++)
        if (m.graph->nodes[i].op->memory.kept != NULL)
            CHECK_EQ_INT(hr__plan_cache_bytes(&m.plan, i), memory->kept);
    memory->budget = 1;
    CHECK_EQ_INT(hr__plan_divide(&m.plan, &m.sizes, 0, false, &error), HR_ERR_LIMIT);
    least = memory->budget = memory->least;
    CHECK_OK(hr__plan_divide(&m.plan, &m.sizes, 0, false, NULL));
    CHECK_EQ_INT(memory->total, least);
    finish(&m);
}

TEST(any_budget_is_kept_or_refused_with_a_figure_that_then_works)
{
    uint64_t seed = check_seed();

    for (int i = 0; i < 2000; i++) {
        struct hr_rng rng = rng_of(seed, i);
        struct made m =
            make(graphs[hr__rng_below(&rng, GRAPHS)], (int)hr__rng_below(&rng, 6) - 1);
        struct hr_plan_memory *memory = &m.plan.memory;
        struct hr_error error = {0};
        const char *figure;
        char text[32];

        draw_sizes(&m, &rng);
        memory->budget = 1 + hr__rng_below(&rng, (uint64_t)1 << (20 + i % 14));
        if (hr__plan_divide(&m.plan, &m.sizes, 0, false, &error) == HR_OK) {
            check_limits(&m.plan);
            CHECK(memory->total <= memory->budget && memory->least <= memory->budget);
            finish(&m);
            continue;
        }
        CHECK_EQ_INT(error.code, HR_ERR_LIMIT);
        CHECK(memory->least > memory->budget);
        figure = strstr(error.message, "need at least ");
        CHECK(figure != NULL);
        CHECK(sscanf(figure, "need at least %31[^(]", text) == 1);
        text[strlen(text) - 1] = '\0';
        CHECK(hr__bytes_parse(text, &memory->budget));
        CHECK_OK(hr__plan_divide(&m.plan, &m.sizes, 0, false, &error));
        check_limits(&m.plan);
        finish(&m);
    }
}

TEST(a_running_plan_is_revised_by_measured_sizes_and_never_grows_its_arrays)
{
    uint64_t seed = check_seed();

    for (int i = 0; i < 500; i++) {
        struct hr_rng rng = rng_of(seed, i);
        struct made m = make(graphs[hr__rng_below(&rng, GRAPHS)], 4);
        struct hr_plan before;

        m.plan.memory.budget = (uint64_t)1 << (26 + i % 8);
        if (hr__plan_divide(&m.plan, &m.sizes, 0, false, NULL) != HR_OK) {
            finish(&m); /* no budget is enough for the largest window */
            continue;
        }
        CHECK(!m.plan.memory.measured);
        before = m.plan;
        draw_sizes(&m, &rng);
        if (hr__plan_divide(&m.plan, &m.sizes, 0, true, NULL) == HR_OK) {
            CHECK(m.plan.memory.measured);
            CHECK(m.plan.memory.total <= m.plan.memory.budget);
            CHECK(m.plan.threads <= before.threads);
            for (size_t k = 0; k < before.stage_count; k++) {
                const struct hr_plan_stage_memory *a = &before.stages[k].memory;
                const struct hr_plan_stage_memory *b = &m.plan.stages[k].memory;

                CHECK(b->block_records <= a->block_records);
                CHECK(b->block_count <= a->block_count);
                CHECK(b->queue_records <= a->queue_records);
            }
        }
        finish(&m);
    }
}

TEST(without_a_budget_there_are_limits_all_the_same)
{
    for (size_t g = 0; g < GRAPHS; g++) {
        struct made m = make(graphs[g], 4);

        check_limits(&m.plan);
        CHECK_HAS(m.plan.memory.reason, "no budget was given");
        for (size_t i = 0; i < m.plan.stage_count; i++)
            m.sizes.stages[i].result = m.sizes.stages[i].item = (uint64_t)1 << 30;
        CHECK_OK(hr__plan_divide(&m.plan, &m.sizes, 0, false, NULL));
        for (size_t i = 0; i < m.plan.stage_count; i++)
            CHECK(m.plan.stages[i].direct || m.plan.stages[i].memory.block_records == 1);
        finish(&m);
    }
}

/* Threads that wait for each other in a batch would be idle. */
TEST(records_in_progress_keep_all_threads_busy_however_few_a_batch_has)
{
    static const int threads[] = {1, 2, 8, 16, 64};

    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++)
        for (int size = 1; size <= 256; size *= 2) {
            uint64_t wanted = 2 * (uint64_t)threads[i], all;
            char text[256];
            struct made m;

            snprintf(text, sizeof text, GRAPH("  - batch.stack: {size: %d}\n"), size);
            m = make(text, threads[i]);
            m.sizes.stages[0].batch = (uint64_t)size << 20;
            CHECK_OK(hr__plan_divide(&m.plan, &m.sizes, 0, false, NULL));
            CHECK(m.plan.stages[0].direct);
            all = (uint64_t)size * (m.plan.memory.batches_ahead - 1);
            if (m.plan.memory.batches_ahead < HR_PLAN_BATCHES_MAX)
                CHECK(all >= wanted);
            /* No more memory than that needs, beyond the default. */
            if (m.plan.memory.batches_ahead > 2 && size >= 4)
                CHECK(all - (uint64_t)size < wanted);
            finish(&m);
        }
}
