/*
 * tests/contract/shards_test.c - sources of records in shards make many records at once:
 * the same records, and the same errors for damaged ones, as one by one, in every way to
 * run a graph.
 */
#include "tests/contract/contract.h"

#include "headrace/pack.h"

#include "core/alloc.h"
#include "core/file.h"
#include "core/rng.h"
#include "core/str.h"

#include <sys/stat.h>

#define RECORDS 420
#define BYTES_MAX 900
#define DAMAGES 6

static const struct kind {
    const char *name, *ending, *source;
    enum hr_pack_format format;
    int zstd_level;
    size_t head, tail; /* bytes of a shard that stay as they are */
    const char *steps; /* before it is packed, or NULL */
} kinds[] = {
    {"records",  ".records",  "source.records: {path: '%s'}",                HR_PACK_RECORDS,  0, 1024,
     4096,                                                                                                    NULL},
    {"zstd",     ".records",  "source.records: {path: '%s'}",                HR_PACK_RECORDS,  3, 1024, 4096,
     NULL                                                                                                         },
    {"ragged",   ".records",  "source.records: {path: '%s'}",                HR_PACK_RECORDS,  0, 1024, 4096,
     "  - text.split: {separator: e}\n"                                                                           },
    {"tar",      ".tar",
     "source.tar: {path: '%s', fields: {text: text.txt, value: value.cls}}", HR_PACK_TAR,
     0,                                                                                           2560, 1024, NULL},
    {"tfrecord", ".tfrecord", "source.tfrecord: {path: '%s'}",               HR_PACK_TFRECORD, 0, 12,   0,
     NULL                                                                                                         },
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static uint32_t draw(uint32_t below)
{
    static struct hr_rng rng;
    static bool ready;

    if (!ready)
        hr__rng_init(&rng, check_seed(), 0, 0);
    ready = true;
    return (uint32_t)hr__rng_below(&rng, below);
}

/* A file of lines of many lengths; its path. */
static const char *write_lines(void)
{
    static char path[512];
    struct hr_str text;

    hr__str_init(&text);
    for (int i = 0; i < RECORDS; i++) {
        uint32_t bytes = draw(BYTES_MAX);

        for (uint32_t k = 0; k < bytes; k++)
            hr__str_addf(&text, "%c", 'a' + (int)draw(26));
        hr__str_addf(&text, "%d\n", i);
    }
    snprintf(path, sizeof path, "%s/lines.txt", check_temp_dir());
    CHECK_OK(hr__file_replace(path, text.text, text.length, NULL));
    hr__str_finish(&text);
    return path;
}

static void pack(const struct kind *kind, const char *folder)
{
    bool one = kind->format == HR_PACK_TFRECORD;
    struct hr_pack_options options;
    struct hr_iter_options run;
    struct hr_graph *graph = NULL;
    char text[2000];

    snprintf(text, sizeof text,
             one ? "headrace: 1\npipeline:\n  - source.list: {path: '%s'}\n"
                 : "headrace: 1\npipeline:\n  - source.list: {path: '%s'}\n    name: a\n"
                   "  - source.range: {n: %d}\n    name: b\n"
                   "  - flow.zip: {}\n    inputs: [a, b]\n",
             write_lines(), RECORDS);
    if (kind->steps != NULL)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s", kind->steps);
    CHECK_OK(hr_graph_parse(text, strlen(text), "pack", NULL, 0, &graph, NULL));
    hr_iter_options_init(&run);
    hr_pack_options_init(&options);
    options.format = kind->format;
    options.zstd_level = kind->zstd_level;
    options.folder = folder;
    options.shard_records = RECORDS / 3;
    CHECK_OK(hr_pack(graph, &run, &options, NULL, NULL));
    hr_graph_unref(graph);
}

/* Changes bytes of the second shard. */
static void damage(const struct kind *kind, const char *folder)
{
    char path[600], *data;
    size_t bytes;

    snprintf(path, sizeof path, "%s/part-000001%s", folder, kind->ending);
    CHECK_OK(hr__file_read(path, 1 << 24, &data, &bytes, NULL));
    CHECK(bytes > kind->head + kind->tail);
    for (int i = 0; i < DAMAGES; i++)
        data[kind->head + draw((uint32_t)(bytes - kind->head - kind->tail))] ^=
            (char)(1 + draw(255));
    CHECK_OK(hr__file_replace(path, data, bytes, NULL));
    hr__free(data);
}

static struct outcome_job
job_of(const struct kind *kind, const char *folder, const char *nodes)
{
    static char text[4][2000];
    static int next;
    char source[600], *graph = text[next++ % 4];

    snprintf(source, sizeof source, kind->source, folder);
    snprintf(graph, sizeof text[0], "headrace: 1\npipeline:\n  - %s\n%s", source, nodes);
    return contract_job(graph);
}

/* In order, shuffled, in windows: as a step after the source gets them, one by one. */
static void check(const struct kind *kind, const char *folder, bool all_ways)
{
    static const char *const orders[] = {"", "  - order.shuffle: {}\n",
                                         "  - order.shuffle: {window: 20}\n"};

    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        char nodes[2][300];
        struct outcome_job jobs[2];
        struct outcome *made[2];

        snprintf(nodes[0], sizeof nodes[0], "%s  - batch.stack: {size: 7}\n", orders[i]);
        snprintf(nodes[1], sizeof nodes[1],
                 "  - debug.identity: {}\n%s  - batch.stack: {size: 7}\n", orders[i]);
        for (int k = 0; k < 2; k++) {
            jobs[k] = job_of(kind, folder, nodes[k]);
            made[k] = outcome_run(&jobs[k]);
        }
        CHECK_ERR(HR_ERR_END, made[0]->code);
        CHECK(made[0]->records > 0);
        outcome_check_same(made[1], made[0], 0, kind->name);
        if (all_ways && i == 1)
            outcome_free(contract_check(jobs[0]));
        outcome_free(made[0]);
        outcome_free(made[1]);
    }
}

TEST(whole_and_damaged_shards_give_what_records_one_by_one_give)
{
    for (size_t i = 0; i < KINDS; i++) {
        char folder[512];

        snprintf(folder, sizeof folder, "%s/%s", check_temp_dir(), kinds[i].name);
        CHECK(mkdir(folder, 0700) == 0);
        pack(&kinds[i], folder);
        check(&kinds[i], folder, kinds[i].format == HR_PACK_TAR);
        damage(&kinds[i], folder);
        check(&kinds[i], folder, kinds[i].format == HR_PACK_RECORDS);
    }
}
