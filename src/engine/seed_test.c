/*
 * engine/seed_test.c - hr_iter_seed: one record after the other, each with a seed.
 */
#include "core/hash.h"
#include "engine/code_test_util.h"

#define STEPS GRAPH(CODE_RANGE(1000) TILES FLIP NOISE)
#define FLIP "  - image.flip: {p: 0.5}\n"
#define NOISE "  - image.gaussian_noise: {sigma: 0.1}\n"

/* Sets all values of a key of a plan to 1. */
static void set_to_one(char *plan, const char *key)
{
    for (char *at = strstr(plan, key); at != NULL; at = strstr(at, key)) {
        at += strlen(key);
        *at = '1';
        for (char *rest = at + 1; *rest >= '0' && *rest <= '9'; rest++)
            *rest = ' ';
    }
}

static struct hr_iter *open_run(struct hr_graph *graph, bool one_by_one)
{
    struct hr_iter_options options;
    struct hr_iter *iter;
    char *plan;

    hr_iter_options_init(&options);
    options.variant = HR_VARIANT_INLINE;
    CHECK_OK(hr_graph_plan(graph, &options, HR_GRAPH_YAML, &plan, NULL));
    if (one_by_one) {
        set_to_one(plan, "block_records: ");
        set_to_one(plan, "chunk_records: ");
    }
    options.plan = plan;
    CHECK_OK(hr_iter_open(graph, &options, &iter, NULL));
    hr_free(plan);
    return iter;
}

/* The hash of the image of the next record. */
static uint64_t next_hash(struct hr_iter *iter)
{
    struct hr_field_view view;
    struct hr_batch *batch;
    uint64_t hash;

    CHECK_OK(hr_iter_next(iter, &batch, NULL));
    CHECK_OK(hr_batch_find(batch, "image", &view));
    hash = hr__hash64(view.data, view.bytes, 0);
    hr_batch_unref(batch);
    return hash;
}

static uint64_t hash_of_first(uint64_t seed)
{
    struct world w = {.end = INT64_MAX};
    struct hr_graph *graph = load(STEPS, &w, NULL);
    struct hr_iter_options options;
    struct hr_iter *iter;
    uint64_t hash;

    hr_iter_options_init(&options);
    options.seed = seed;
    CHECK_OK(hr_iter_open(graph, &options, &iter, NULL));
    hash = next_hash(iter);
    hr_iter_close(iter);
    hr_graph_unref(graph);
    return hash;
}

TEST(a_record_with_a_seed_is_record_0_of_a_run_with_it)
{
    static const uint64_t seeds[] = {7, 8, 7, INT64_MAX, 0, 8};
    struct world w = {.end = INT64_MAX};
    struct hr_graph *graph = load(STEPS, &w, NULL);
    struct hr_iter *iter = open_run(graph, true);
    struct hr_error error;
    char *state;

    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        CHECK_OK(hr_iter_seed(iter, seeds[i], NULL));
        CHECK(next_hash(iter) == hash_of_first(seeds[i]));
        /* None is begun before it is asked for. */
        CHECK_EQ_INT(w.calls, (int)i + 1);
    }
    CHECK(hash_of_first(7) != hash_of_first(8));
    CHECK_ERR(HR_ERR_UNSUPPORTED, hr_iter_save(iter, &state, &error));
    CHECK_HAS(error.message, "seed");
    CHECK_ERR(HR_ERR_ARGUMENT, hr_iter_seed(iter, UINT64_MAX, &error));
    CHECK_ERR(HR_ERR_ARGUMENT, hr_iter_seed(NULL, 1, NULL));
    hr_iter_close(iter);
    hr_graph_unref(graph);
}

TEST(seeds_are_refused_where_records_are_begun_ahead)
{
    struct world w = {.end = INT64_MAX};
    struct hr_graph *graph = load(STEPS, &w, NULL);
    struct hr_iter *iter = open_run(graph, false);
    struct hr_error error;

    CHECK_ERR(HR_ERR_UNSUPPORTED, hr_iter_seed(iter, 1, &error));
    CHECK_HAS(error.message, "block_records");
    hr_iter_close(iter);
    CHECK_OK(hr_iter_open(graph, NULL, &iter, NULL));
    CHECK_ERR(HR_ERR_UNSUPPORTED, hr_iter_seed(iter, 1, &error));
    hr_iter_close(iter);
    hr_graph_unref(graph);
}

TEST(seeds_are_refused_where_records_come_from_a_cache)
{
    struct world w = {.end = INT64_MAX};
    struct hr_graph *graph =
        load(GRAPH(RANGE(1000) "  - debug.identity: {}\n  - flow.cache: {}\n"), &w, NULL);
    struct hr_iter *iter = open_run(graph, true);
    struct hr_error error;

    CHECK_ERR(HR_ERR_UNSUPPORTED, hr_iter_seed(iter, 1, &error));
    CHECK_HAS(error.message, "caches");
    hr_iter_close(iter);
    hr_graph_unref(graph);
}
