/*
 * engine/finals_test.c - which results are made in the batch, and that their bytes are
 * those of results that are copied there.
 */
#include "api/iter.h"
#include "engine/engine.h"
#include "engine/engine_test_util.h"

#include <string.h>

#define HOT "  - tensor.one_hot: {classes: 5, field: value}\n"
#define CLASSES 50

/* Placed results of the run's first stage; their fields in `names`. */
static size_t placed(const char *text, enum hr_variant variant, const char *names[8])
{
    struct hr_graph *graph = load(text);
    struct hr_iter_options options;
    const struct hr_program *p;
    struct hr_error error = {0};
    struct hr_iter *iter;
    size_t count;

    hr_iter_options_init(&options);
    options.variant = variant;
    CHECK_OK(hr_iter_open(graph, &options, &iter, &error));
    p = &iter->engine->stages[0].program;
    count = p->placed_count;
    CHECK(count <= 8);
    for (size_t i = 0; i < count; i++)
        names[i] = p->out[p->placed[i].out].field->name;
    hr_iter_close(iter);
    hr_graph_unref(graph);
    return count;
}

static void check_placed(const char *steps, const char *field)
{
    const char *names[8];
    char text[1024];

    snprintf(text, sizeof text,
             "headrace: 1\npipeline:\n  - source.range: {n: 5}\n%s"
             "  - batch.stack: {size: 5}\n",
             steps);
    for (int variant = HR_VARIANT_INLINE; variant <= HR_VARIANT_THREADS; variant++) {
        size_t count = placed(text, (enum hr_variant)variant, names);

        if (count != (field != NULL) || (count == 1 && strcmp(names[0], field) != 0))
            check_failed(__FILE__, __LINE__, "%zu results are placed of%s%s", count,
                         count > 0 ? ", the first of " : "",
                         count > 0 ? names[0] : steps);
    }
}

TEST(results_of_known_size_that_no_later_step_replaces_are_placed)
{
    check_placed("", NULL);
    check_placed(HOT, "value");
    check_placed(HOT "  - tensor.cast: {dtype: float16, field: value}\n", "value");
    check_placed(HOT "  - record.rename: {names: {value: hot}}\n", "hot");
    check_placed(HOT "  - record.select: {fields: [value]}\n", "value");
    check_placed(HOT "  - record.filter: {expr: \"1 > 0\"}\n", "value");
    check_placed("  - tensor.one_hot: {classes: 5, field: value}\n"
                 "  - record.drop: {fields: [value]}\n",
                 NULL);
}

/* Class numbers up to 63 to one-hot rows of the first CLASSES; the others are bad. */
static void check_rows(const char *filter, int64_t step, int threads)
{
    struct hr_iter_options options;
    struct hr_field_view hot;
    struct outcome_job job;
    struct outcome *o;
    int64_t row = 0;
    char text[1024];

    snprintf(
        text, sizeof text,
        GRAPH(RANGE(64) "%s  - tensor.one_hot: {classes: %d, field: value}\n" BATCH(64)),
        filter, CLASSES);
    hr_iter_options_init(&options);
    options.on_error = HR_ON_ERROR_SKIP;
    options.errors_max = 64;
    job = outcome_job_with(text, threads, &options);
    job.first = true;
    o = outcome_run(&job);
    CHECK(o->code == HR_ERR_END);
    CHECK_OK(hr_batch_find(o->first, "value", &hot));
    for (int64_t class = 0; class < CLASSES; class += step, row++)
        for (int64_t at = 0; at < CLASSES; at++)
            CHECK(((const float *)hot.data)[CLASSES * row + at] == (at == class));
    CHECK(hr_batch_records(o->first) == row);
    outcome_free(o);
}

TEST(placed_results_close_the_gaps_of_bad_and_dropped_records)
{
    for (int threads = 0; threads <= 2; threads++) {
        check_rows("", 1, threads);
        check_rows("  - record.filter: {expr: \"value % 3 == 0\"}\n", 3, threads);
    }
}
