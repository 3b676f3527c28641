#include "headrace/pack.h"
#include "tests/support/check.h"

#include "core/alloc.h"
#include "core/file.h"
#include "core/rng.h"

#include <stdlib.h>
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

static void check_same_files(const char *one, const char *two, int count)
{
    for (int i = 0; i < count; i++) {
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
    check_same_files("whole", "parts", SHARDS);
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

/* ---- appending ---- */

#define APPENDED 1000 /* the first number of what is appended */

static struct hr_error error;

static struct hr_graph *open_range(const char *form, int start, int n)
{
    struct hr_graph *graph = NULL;
    char text[200];

    snprintf(text, sizeof text, form, start, n);
    CHECK_OK(hr_graph_parse(text, strlen(text), "pack.yaml", NULL, 0, &graph, NULL));
    return graph;
}

#define RANGE "headrace: 1\npipeline:\n  - source.range: {start: %d, n: %d}\n"

static enum hr_err pack_range(const struct hr_pack_options *pack, int start, int n,
                              struct hr_pack_result *ret_result)
{
    struct hr_graph *graph = open_range(RANGE, start, n);
    struct hr_iter_options options;
    enum hr_err code;

    hr_iter_options_init(&options);
    error = (struct hr_error){0};
    code = hr_pack(graph, &options, pack, ret_result, &error);
    hr_graph_unref(graph);
    return code;
}

/* The folder has the records 0 to `base` - 1, then APPENDED and so on, each once and in
 * order. Returns the number of the latter. */
static int count_appended(int base)
{
    struct hr_graph *graph = NULL;
    struct hr_iter *iter = NULL;
    struct hr_batch *batch;
    enum hr_err code;
    char text[700];
    int count = 0;

    snprintf(text, sizeof text,
             "headrace: 1\npipeline:\n  - source.records: {path: '%s'}\n", folder);
    CHECK_OK(hr_graph_parse(text, strlen(text), "read.yaml", NULL, 0, &graph, NULL));
    CHECK_OK(hr_iter_open(graph, NULL, &iter, NULL));
    while ((code = hr_iter_next(iter, &batch, &error)) == HR_OK) {
        struct hr_field_view view;
        int64_t value;

        CHECK_OK(hr_batch_field(batch, 0, &view));
        memcpy(&value, view.data, sizeof value);
        CHECK_EQ_INT(value, count < base ? count : APPENDED + count - base);
        count++;
        hr_batch_unref(batch);
    }
    CHECK_ERR(HR_ERR_END, code);
    CHECK(count >= base);
    hr_iter_close(iter);
    hr_graph_unref(graph);
    return count - base;
}

TEST(appended_records_follow_those_that_are_there)
{
    struct hr_pack_options pack = pack_options("append");
    struct hr_pack_result result;

    pack.append = true; /* to nothing */
    CHECK_OK(pack_range(&pack, 0, 40, &result));
    CHECK_EQ_INT(result.records_earlier, 0);
    CHECK_EQ_INT(result.shards, 2);
    CHECK_OK(pack_range(&pack, APPENDED, 35, &result));
    CHECK_EQ_INT(result.shards, 3);
    CHECK_EQ_INT(result.records, 75);
    CHECK_EQ_INT(result.records_now, 35);
    CHECK_EQ_INT(result.records_earlier, 40);
    CHECK(!result.resumed);
    CHECK_EQ_INT(count_appended(40), 35);
    pack.append = false; /* all is there */
    CHECK_OK(pack_range(&pack, APPENDED, 35, &result));
    CHECK(result.resumed);
    CHECK_EQ_INT(result.records_now, 0);
    pack.append = true;
    pack.shard_records = 1000;
    CHECK_OK(pack_range(&pack, APPENDED + 35, 20, &result));
    CHECK_EQ_INT(result.shards, 3);
    CHECK_OK(pack_range(&pack, APPENDED, 0, &result));
    CHECK_EQ_INT(result.records, 95);
    CHECK_EQ_INT(result.shards, 3);
    CHECK_EQ_INT(count_appended(40), 55);
    pack.shard_records = 1; /* the last shard is full */
    CHECK_OK(pack_range(&pack, APPENDED + 55, 2, &result));
    CHECK_EQ_INT(result.shards, 5);
    CHECK_EQ_INT(count_appended(40), 57);
}

TEST(one_packer_at_a_time_writes_shards_of_a_prefix)
{
    struct hr_pack_options pack = pack_options("two"), second = pack;
    struct hr_graph *graph = open_graph();
    struct hr_packer *packer, *other;
    struct hr_iter_options options;
    struct hr_iter *iter;

    hr_iter_options_init(&options);
    CHECK_OK(hr_packer_open(graph, &options, &pack, &packer, NULL));
    CHECK_ERR(HR_ERR_STATE, hr_packer_open(graph, &options, &second, &other, &error));
    CHECK(strstr(error.message, "are being written by other work") != NULL);
    second.append = true;
    CHECK_ERR(HR_ERR_STATE, hr_packer_open(graph, &options, &second, &other, NULL));
    second.prefix = "other";
    CHECK_OK(hr_packer_open(graph, &options, &second, &other, NULL));
    CHECK_OK(hr_iter_open(graph, &options, &iter, NULL));
    CHECK_EQ_INT(add(packer, iter, 1000), 100);
    CHECK_OK(hr_packer_finish(packer, NULL));
    hr_packer_close(other);
    second.prefix = NULL;
    CHECK_OK(hr_packer_open(graph, &options, &pack, &other, NULL)); /* complete */
    hr_packer_close(other);
    hr_packer_close(packer);
    hr_iter_close(iter);
    hr_graph_unref(graph);
}

TEST(what_cannot_be_appended_is_refused_and_changes_nothing)
{
    struct hr_pack_options pack = pack_options("refuse");
    char path[600], kept[600], *text, *cut;
    struct hr_graph *graph;
    struct hr_iter_options options;
    size_t bytes;

    hr_iter_options_init(&options);
    CHECK_OK(pack_range(&pack, 0, 40, NULL));
    CHECK_ERR(HR_ERR_STATE, pack_range(&pack, APPENDED, 5, NULL));
    pack.append = true;
    graph = open_range(RANGE "  - tensor.cast: {field: value, dtype: float32}\n", 0, 10);
    CHECK_ERR(HR_ERR_TYPE, hr_pack(graph, &options, &pack, NULL, &error));
    CHECK_HAS(error.message, "value: int64");
    CHECK_HAS(error.message, "value: float32");
    hr_graph_unref(graph);
    pack.format = HR_PACK_TAR;
    CHECK_ERR(HR_ERR_NOT_FOUND, pack_range(&pack, APPENDED, 5, NULL));
    CHECK_HAS(error.message, "part-000001.tar");
    pack.format = HR_PACK_RECORDS;
    snprintf(path, sizeof path, "%s/part-000001.records", folder);
    CHECK_OK(hr__file_read(path, 1 << 20, &text, &bytes, NULL));
    cut = hr__malloc(bytes);
    memcpy(cut, text, bytes);
    CHECK_OK(hr__file_replace(path, text, bytes - 100, NULL));
    CHECK_ERR(HR_ERR_FORMAT, pack_range(&pack, APPENDED, 5, NULL));
    CHECK_HAS(error.message, path);
    CHECK_HAS(error.message, "choose another prefix");
    cut[bytes / 2] ^= 4;
    CHECK_OK(hr__file_replace(path, cut, bytes, NULL));
    CHECK_ERR(HR_ERR_FORMAT, pack_range(&pack, APPENDED, 5, NULL));
    CHECK_HAS(error.message, "checksum");
    snprintf(kept, sizeof kept, "%s/kept", check_temp_dir());
    CHECK(rename(path, kept) == 0);
    CHECK_ERR(HR_ERR_NOT_FOUND, pack_range(&pack, APPENDED, 5, NULL));
    CHECK_OK(hr__file_replace(path, text, bytes, NULL));
    CHECK_EQ_INT(count_appended(40), 0);
    CHECK_OK(pack_range(&pack, APPENDED, 5, NULL));
    CHECK_EQ_INT(count_appended(40), 5);
    hr__free(text);
    hr__free(cut);
}

/* Packs `base` records, then appends `n` in calls that fail at some point each. */
static void append_with_failures(const struct hr_pack_options *pack, int base, int n,
                                 struct hr_rng *rng)
{
    struct hr_pack_options sizes = *pack;
    uint64_t nth = 1;
    enum hr_err code;
    int before = 0;

    sizes.append = false;
    CHECK_OK(pack_range(&sizes, 0, base, NULL));
    sizes.append = true;
    do {
        struct hr_graph *graph = open_range(RANGE, APPENDED, n);
        struct hr_iter_options options;
        struct hr_pack_result result;
        int now;

        hr_iter_options_init(&options);
        hr__fault_arm(HR_FAULT_ALLOC | HR_FAULT_OPEN | HR_FAULT_READ | HR_FAULT_WRITE,
                      nth);
        code = hr_pack(graph, &options, &sizes, &result, NULL);
        hr__fault_arm(0, 0);
        hr_graph_unref(graph);
        now = count_appended(base);
        CHECK(now >= before && now <= n);
        if (code == HR_OK) {
            CHECK_EQ_INT(now, n);
            CHECK_EQ_INT(result.records, base + n);
            CHECK_EQ_INT(result.records_earlier, base);
        }
        before = now;
        nth += 1 + hr__rng_below(rng, nth < 40 ? 3 : nth);
        CHECK(nth < 1u << 20); /* far more than there are calls */
    } while (code != HR_OK);
}

TEST(an_append_that_fails_anywhere_leaves_what_is_there_and_continues)
{
    for (int round = 0; round < 12; round++) {
        struct hr_pack_options pack, quiet;
        struct hr_pack_result result;
        char name[2][40];
        struct hr_rng rng;
        int base, n;

        hr__rng_init(&rng, check_seed(), (uint32_t)round, 7);
        base = (int)hr__rng_below(&rng, 60);
        n = (int)hr__rng_below(&rng, 60);
        snprintf(name[0], sizeof name[0], "failing %d", round);
        snprintf(name[1], sizeof name[1], "quiet %d", round);
        pack = pack_options(name[0]);
        pack.shard_records = 1 + hr__rng_below(&rng, 50);
        append_with_failures(&pack, base, n, &rng);
        quiet = pack_options(name[1]);
        quiet.shard_records = pack.shard_records;
        CHECK_OK(pack_range(&quiet, 0, base, NULL));
        quiet.append = true;
        CHECK_OK(pack_range(&quiet, APPENDED, n, &result));
        check_same_files(name[0], name[1], (int)result.shards);
    }
}
