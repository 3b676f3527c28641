/*
 * engine/engine_test_util.h - shared by the tests of the engine: graphs of numbers, and
 * running them.
 */
#ifndef HR_ENGINE_ENGINE_TEST_UTIL_H
#define HR_ENGINE_ENGINE_TEST_UTIL_H

#include "tests/support/check.h"
#include "tests/support/outcome.h"

static inline struct hr_graph *load(const char *text)
{
    struct outcome_job job = outcome_job_text(text);
    struct hr_error error = {0};
    struct hr_graph *graph = outcome_graph(&job, &error);

    if (graph == NULL)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    return graph;
}

static inline struct outcome *
run(const char *text, int threads, const struct hr_iter_options *options)
{
    struct outcome_job job = outcome_job_with(text, threads, options);

    return outcome_run(&job);
}

static inline void
check_equivalent(const char *text, const struct hr_iter_options *options)
{
    outcome_check_threads_and_restarts(outcome_job_with(text, 0, options));
}

#define GRAPH(steps) "headrace: 1\npipeline:\n" steps
#define RANGE(n) "  - source.range: {n: " #n "}\n"
#define SHUFFLE "  - order.shuffle: {}\n"
#define BATCH(n) "  - batch.stack: {size: " #n "}\n"
#define DROP_THIRD "  - record.filter: {expr: \"value % 3 != 1\"}\n"

#endif
