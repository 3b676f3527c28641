#include "headrace/pack.h"
#include "tests/support/check.h"

#include "core/alloc.h"
#include "core/file.h"

#include <string.h>
#include <sys/stat.h>

#define TEXT "headrace: 1\npipeline:\n  - source.range: {n: 100}\n  - order.shuffle: {}\n"
#define SHARDS 4

static char folder[512];

static struct hr_graph *open_graph(void)
{
    struct hr_graph *graph = NULL;

    CHECK_OK(hr_graph_parse(TEXT, strlen(TEXT), "pack.yaml", NULL, 0, &graph, NULL));
    return graph;
}

static struct hr_pack_options pack_options(const char *name)
{
    struct hr_pack_options pack;

    hr_pack_options_init(&pack);
    snprintf(folder, sizeof folder, "%s/%s", check_temp_dir(), name);
    CHECK(mkdir(folder, 0700) == 0);
    pack.folder = folder;
    pack.shard_records = 30;
    return pack;
}

/* Adds at most `count` records; the number added. */
static uint64_t add(struct hr_packer *packer, struct hr_iter *iter, uint64_t count)
{
    struct hr_batch *batch;
    uint64_t added = 0;

    for (; added < count && hr_iter_next(iter, &batch, NULL) == HR_OK; added++) {
        char *state = NULL;
        bool mark;

        CHECK_OK(hr_packer_add(packer, batch, &mark, NULL));
        if (mark) {
            CHECK_ERR(HR_ERR_STATE, hr_packer_add(packer, batch, &mark, NULL));
            CHECK_OK(hr_iter_save(iter, &state, NULL));
            CHECK_OK(hr_packer_mark(packer, state, NULL));
        }
        CHECK_ERR(HR_ERR_STATE, hr_packer_mark(packer, "{}", NULL));
        hr_free(state);
        hr_batch_unref(batch);
    }
    return added;
}

static void check_same_shards(const char *one, const char *two)
{
    for (int i = 0; i < SHARDS; i++) {
        char path[2][600], *text[2];
        size_t bytes[2];

        for (int k = 0; k < 2; k++) {
            snprintf(path[k], sizeof path[k], "%s/%s/part-%06d.records", check_temp_dir(),
                     k == 0 ? one : two, i);
            CHECK_OK(hr__file_read(path[k], 1 << 20, &text[k], &bytes[k], NULL));
        }
        CHECK_EQ_INT(bytes[0], bytes[1]);
        CHECK_BYTES(text[0], text[1], bytes[0]);
        hr__free(text[0]);
        hr__free(text[1]);
    }
}

TEST(a_packer_writes_the_files_of_hr_pack_in_several_runs)
{
    struct hr_graph *graph = open_graph();
    struct hr_pack_options pack = pack_options("whole");
    struct hr_iter_options options;
    struct hr_pack_result result;
    uint64_t added = 0;

    hr_iter_options_init(&options);
    CHECK_OK(hr_pack(graph, &options, &pack, &result, NULL));
    CHECK_EQ_INT(result.shards, SHARDS);
    pack = pack_options("parts");
    for (int run = 0; run < 3; run++) {
        struct hr_iter_options from = options;
        struct hr_packer *packer = NULL;
        struct hr_iter *iter = NULL;

        CHECK_OK(hr_packer_open(graph, &options, &pack, &packer, NULL));
        CHECK(!hr_packer_complete(packer));
        CHECK((hr_packer_state(packer) != NULL) == (run > 0));
        from.state = hr_packer_state(packer);
        CHECK_OK(hr_iter_open(graph, &from, &iter, NULL));
        added += add(packer, iter, run < 2 ? 40 : 1000); /* 10 are written again */
        if (run == 2)
            CHECK_OK(hr_packer_finish(packer, NULL));
        hr_packer_result(packer, &result);
        CHECK_EQ_INT(result.records, run < 2 ? 30 * (run + 1) : 100);
        CHECK(result.resumed == (run > 0));
        hr_iter_close(iter);
        hr_packer_close(packer);
    }
    CHECK_EQ_INT(added, 120);
    check_same_shards("whole", "parts");
    hr_graph_unref(graph);
}

TEST(a_packer_that_is_complete_takes_nothing)
{
    struct hr_graph *graph = open_graph();
    struct hr_pack_options pack = pack_options("complete");
    struct hr_iter_options options;
    struct hr_packer *packer = NULL;
    struct hr_batch *batch;
    struct hr_iter *iter = NULL;
    bool mark;

    hr_iter_options_init(&options);
    CHECK_OK(hr_pack(graph, &options, &pack, NULL, NULL));
    CHECK_OK(hr_packer_open(graph, &options, &pack, &packer, NULL));
    CHECK(hr_packer_complete(packer));
    CHECK_OK(hr_packer_finish(packer, NULL));
    CHECK_OK(hr_iter_open(graph, &options, &iter, NULL));
    CHECK_OK(hr_iter_next(iter, &batch, NULL));
    CHECK_ERR(HR_ERR_STATE, hr_packer_add(packer, batch, &mark, NULL));
    hr_batch_unref(batch);
    hr_iter_close(iter);
    hr_packer_close(packer);
    hr_packer_close(NULL);
    options.ordered = false;
    CHECK_ERR(HR_ERR_ARGUMENT, hr_packer_open(graph, &options, &pack, &packer, NULL));
    hr_graph_unref(graph);
}
