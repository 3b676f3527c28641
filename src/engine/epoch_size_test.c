/*
 * engine/epoch_size_test.c - the computed size of an epoch is the size that is run.
 */
#include "engine/engine_test_util.h"

struct counted {
    int64_t records, batches;
};

static struct counted count(struct hr_graph *graph, const struct hr_iter_options *options)
{
    struct counted counted = {0, 0};
    struct hr_batch *batch;
    struct hr_iter *iter;
    enum hr_err code;

    CHECK_OK(hr_iter_open(graph, options, &iter, NULL));
    while ((code = hr_iter_next(iter, &batch, NULL)) == HR_OK) {
        struct hr_iter_stats stats;

        hr_iter_stats(iter, &stats);
        counted.records = (int64_t)stats.records;
        counted.batches++;
        hr_batch_unref(batch);
    }
    CHECK_ERR(HR_ERR_END, code);
    hr_iter_close(iter);
    return counted;
}

/* For every rank of `world`: what was computed, and that `batches_least` is the least. */
static void check_world(struct hr_graph *graph, int64_t world, enum hr_even even)
{
    int64_t least = INT64_MAX, told = -1;

    for (int64_t rank = 0; rank < world; rank++) {
        struct hr_iter_options options;
        struct hr_epoch_size size;
        struct counted counted;

        hr_iter_options_init(&options);
        options.rank = rank;
        options.world = world;
        options.even = even;
        CHECK_OK(hr_graph_epoch_size(graph, &options, &size, NULL));
        counted = count(graph, &options);
        CHECK_EQ_INT(size.batches, counted.batches);
        CHECK(!size.shards && !size.ranks_differ);
        least = counted.batches < least ? counted.batches : least;
        told = size.batches_least;
    }
    CHECK_EQ_INT(told, least);
}

TEST(every_rank_gets_the_batches_that_were_computed)
{
    static const char *const ends[] = {
        "",
        BATCH(4),
        "  - batch.stack: {size: 4, drop_last: true}\n",
        BATCH(4) "  - batch.unbatch: {}\n",
        SHUFFLE BATCH(3),
        "  - order.take: {count: 7}\n" BATCH(2),
        BATCH(4) "  - batch.unbatch: {}\n  - batch.stack: {size: 3, drop_last: true}\n",
    };

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        for (int n = 0; n < 26; n += 5) {
            char text[512];
            struct hr_graph *graph;

            snprintf(text, sizeof text,
                     "headrace: 1\npipeline:\n  - source.range: {n: %d}\n%s", n, ends[i]);
            graph = load(text);
            for (int64_t world = 1; world < 5; world += 1 + (world > 1))
                for (int even = HR_EVEN_NONE; even <= HR_EVEN_REPEAT; even++)
                    check_world(graph, world, (enum hr_even)even);
            hr_graph_unref(graph);
        }
}

TEST(sizes_that_depend_on_data_are_unknown)
{
    struct hr_graph *graph = load(GRAPH(RANGE(100) DROP_THIRD BATCH(4)));
    struct hr_iter_options options;
    struct hr_epoch_size size;

    hr_iter_options_init(&options);
    CHECK_OK(hr_graph_epoch_size(graph, &options, &size, NULL));
    CHECK_EQ_INT(size.records, -1);
    CHECK_EQ_INT(size.batches, -1);
    CHECK_EQ_INT(size.batches_least, -1);
    CHECK(!size.ranks_differ); /* there is one */
    options.world = 2;
    CHECK_OK(hr_graph_epoch_size(graph, &options, &size, NULL));
    CHECK(size.ranks_differ);
    hr_graph_unref(graph);
}

TEST(skipping_bad_records_makes_ranks_differ)
{
    struct hr_graph *graph = load(GRAPH(RANGE(100) BATCH(4)));
    struct hr_iter_options options;
    struct hr_epoch_size size;

    hr_iter_options_init(&options);
    options.world = 2;
    options.on_error = HR_ON_ERROR_SKIP;
    CHECK_OK(hr_graph_epoch_size(graph, &options, &size, NULL));
    CHECK_EQ_INT(size.batches, 13);
    CHECK(size.ranks_differ);
    hr_graph_unref(graph);
}

TEST(an_order_shard_has_the_share_of_its_rank)
{
    struct hr_graph *graph =
        load(GRAPH(RANGE(10) "  - order.shard: {rank: 2, world: 3}\n" BATCH(2)));
    struct hr_iter_options options;
    struct hr_epoch_size size;
    struct hr_error error = {0};

    hr_iter_options_init(&options);
    CHECK_OK(hr_graph_epoch_size(graph, &options, &size, NULL));
    CHECK_EQ_INT(size.records, 3);
    CHECK_EQ_INT(size.batches, 2);
    CHECK(size.shards);
    options.world = 3;
    CHECK_ERR(HR_ERR_ARGUMENT, hr_graph_epoch_size(graph, &options, &size, &error));
    CHECK_HAS(error.message, "shards already");
    hr_graph_unref(graph);
}

TEST(options_that_a_run_refuses_are_refused)
{
    struct hr_graph *graph = load(GRAPH(RANGE(10) BATCH(2)));
    struct hr_iter_options options;
    struct hr_epoch_size size;

    hr_iter_options_init(&options);
    options.rank = 3;
    options.world = 3;
    CHECK_ERR(HR_ERR_ARGUMENT, hr_graph_epoch_size(graph, &options, &size, NULL));
    hr_iter_options_init(&options);
    options.variant = (enum hr_variant)3;
    CHECK_ERR(HR_ERR_ARGUMENT, hr_graph_epoch_size(graph, &options, &size, NULL));
    hr_iter_options_init(&options);
    options.on_error = (enum hr_on_error)3;
    CHECK_ERR(HR_ERR_ARGUMENT, hr_graph_epoch_size(graph, &options, &size, NULL));
    hr_iter_options_init(&options);
    options.world = 1;
    options.even = (enum hr_even)4;
    CHECK_ERR(HR_ERR_ARGUMENT, hr_graph_epoch_size(graph, &options, &size, NULL));
    CHECK_ERR(HR_ERR_ARGUMENT, hr_graph_epoch_size(NULL, NULL, &size, NULL));
    CHECK_OK(hr_graph_epoch_size(graph, NULL, &size, NULL));
    CHECK_EQ_INT(size.batches, 5);
    hr_graph_unref(graph);
}
