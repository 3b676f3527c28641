/*
 * opt/cache_point_test.c - caches predicted against what follows by hand, and what holds
 * for all costs.
 */
#include "opt/cache_point.h"

#include <math.h>

#include "core/rng.h"
#include "opt/opt.h"
#include "tests/support/check.h"
#include "tests/support/pipeline.h"

#define NODES_MAX 8
#define POINTS_MAX (4 * NODES_MAX + 1)

/* A graph with a plan of one thread, costs that tests edit, and the points found. */
struct made {
    struct hr_graph *graph;
    struct hr_plan plan;
    struct hr_cost_fact facts[NODES_MAX];
    struct hr_cost_machine machine;
    struct hr_cache_medium media[2];
    size_t media_count;
    struct hr_cache_job job;
    const struct hr_cost_fact *split[NODES_MAX];
    struct hr_cache_file files[NODES_MAX];
    struct hr_cache_point points[POINTS_MAX];
    size_t count;
};

static struct made make(const char *pipeline)
{
    struct hr_opt_settings settings = {
        .cpus = 1, .threads = 1, .ordered = true, .fuse = true};
    struct made made = {
        .graph = pipeline_frozen(pipeline),
        .machine = {.cores = 1,                                        .crowd = 1},
        .media = {{.room = 1e12, .read_ns = 1000, .write_ns = 2000}},
        .media_count = 1,
        .job = {.epochs = 10,                                  .records = 1000          },
    };

    CHECK(made.graph->count <= NODES_MAX);
    CHECK_OK(hr__plan_make(made.graph, &settings, &made.plan, NULL));
    for (size_t i = 0; i < made.graph->count; i++)
        made.facts[i] = (struct hr_cost_fact){.records = 1, .kept = 1};
    return made;
}

static void finish(struct made *made)
{
    hr__plan_finish(&made->plan);
    hr_graph_unref(made->graph);
}

static void find(struct made *made)
{
    struct hr_error error = {0};

    if (hr__cache_points(&made->plan, made->facts, &made->machine, &made->job,
                         made->media, made->media_count, made->split, made->files,
                         made->points, &made->count, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
}

/* The point right after the node, of the first medium. */
static const struct hr_cache_point *after(const struct made *made, uint32_t node)
{
    for (size_t i = 0; i < made->count; i++)
        if (made->points[i].node == node && made->points[i].medium == 0)
            return &made->points[i];
    check_failed(__FILE__, __LINE__, "no point after node %u", node);
    return NULL;
}

#define CHAIN                                                                            \
    "  - source.range: {n: 1000}\n  - debug.spin: {us: 1}\n    name: a\n"                \
    "  - debug.spin: {us: 1}\n    name: b\n  - batch.stack: {size: 8}\n"
enum { SOURCE, A, B, STACK };

TEST(a_hit_costs_the_read_and_a_miss_the_work_and_the_write)
{
    struct made made = make(CHAIN);

    made.facts[A].cpu_ns = 100e3;
    made.facts[B].cpu_ns = 10e3;
    find(&made);
    CHECK_EQ_INT(made.count, 4); /* after the source, a and b; none */
    CHECK_EQ_INT(made.points[0].node, B);
    CHECK_NEAR(after(&made, A)->fill, 1e9 / 112e3, 1e-3);
    CHECK_NEAR(after(&made, A)->hit, 1e9 / 11e3, 1e-3);
    CHECK_NEAR(after(&made, A)->rate, 10e9 / (112e3 + 9 * 11e3), 1e-3);
    CHECK_NEAR(after(&made, B)->rate, 10e9 / (112e3 + 9 * 1e3), 1e-3);
    CHECK_NEAR(after(&made, HR_NO_NODE)->rate, 1e9 / 110e3, 1e-3);
    CHECK_NEAR(after(&made, SOURCE)->rate, 10e9 / (112e3 + 9 * 111e3), 1e-3);
    finish(&made);
}

TEST(a_gain_is_sure_as_far_as_costs_are_known)
{
    struct made made = make(CHAIN);

    made.facts[A] =
        (struct hr_cost_fact){.records = 1, .kept = 1, .cpu_ns = 100e3, .width = 0.9};
    made.facts[B].cpu_ns = 10e3;
    find(&made);
    CHECK_NEAR(after(&made, A)->rate, 10e9 / (112e3 + 9 * 11e3), 1e-3);
    CHECK_NEAR(after(&made, A)->sure, 10 * 20e3 / (22e3 + 9 * 11e3), 1e-9);
    CHECK_NEAR(after(&made, HR_NO_NODE)->sure, 1, 1e-9);
    made.facts[A].width = 1;
    find(&made);
    CHECK(after(&made, A)->rate > 5 * after(&made, HR_NO_NODE)->rate);
    CHECK(after(&made, A)->sure < 1);
    made.facts[A].width = 0;
    find(&made);
    CHECK_NEAR(after(&made, A)->sure,
               after(&made, A)->rate / after(&made, HR_NO_NODE)->rate, 1e-9);
    finish(&made);
}

static const struct hr_cache_point *file_after(const struct made *made, uint32_t node)
{
    for (size_t i = 0; i < made->count; i++)
        if (made->points[i].node == node && made->points[i].file)
            return &made->points[i];
    return NULL;
}

/* A file is encoded where the record was not found, and decoded always. */
TEST(images_may_be_kept_as_files)
{
    const struct hr_cache_point *point;
    char text[1024];
    struct made made;
    double bytes;

    snprintf(text, sizeof text,
             "  - source.list: {path: \"%s/README.md\"}\n"
             "  - image.decode: {field: text}\n  - image.resize: {size: [10, 20]}\n"
             "  - batch.stack: {size: 8}\n",
             check_source_dir());
    made = make(text);
    made.facts[1].cpu_ns = 100e3;
    made.facts[1].bytes_out = 5000;
    made.files[2] = (struct hr_cache_file){
        .bytes = 50, .pixels = 600, .encode_ns = 8000, .decode_ns = 3000};
    made.media[0].read_rate = made.media[0].write_rate = 1e8; /* 10 ns a byte */
    find(&made);
    point = file_after(&made, 2);
    CHECK(point != NULL && file_after(&made, 1) == NULL && point == made.points);
    bytes = point->bytes;
    CHECK_NEAR(bytes, hr__cache_entry_bytes(made.graph, made.facts, 2) - 550, 1e-9);
    CHECK_NEAR(1e9 / point->fill, 100e3 + 11e3 + 2000 + 10 * bytes, 1e-6);
    CHECK_NEAR(1e9 / point->hit, 3000 + 1000 + 10 * bytes, 1e-6);
    made.media[0].room = point->total / 2;
    find(&made);
    point = file_after(&made, 2);
    CHECK_NEAR(point->part, 0.5, 1e-9);
    CHECK_NEAR(1e9 / point->hit, 50e3 + 4000 + 3000 + 500 + 5 * bytes, 1e-6);
    finish(&made);
}

/* With a cache between them nodes may cost more than composed. */
TEST(a_divided_group_costs_what_was_measured)
{
    struct hr_cost_fact divided[NODES_MAX];
    struct made made = make(CHAIN);

    made.facts[A].cpu_ns = 100e3;
    made.facts[B].cpu_ns = 10e3;
    memcpy(divided, made.facts, sizeof divided);
    divided[A].cpu_ns = 150e3;
    divided[B].cpu_ns = 70e3;
    made.split[A] = divided;
    find(&made);
    CHECK_NEAR(1e9 / after(&made, A)->fill, 150e3 + 70e3 + 2000, 1e-6);
    CHECK_NEAR(1e9 / after(&made, A)->hit, 70e3 + 1000, 1e-6);
    CHECK_NEAR(1e9 / after(&made, B)->fill, 110e3 + 2000, 1e-6);
    CHECK_NEAR(1e9 / after(&made, HR_NO_NODE)->rate, 110e3, 1e-6);
    finish(&made);
}

TEST(an_image_for_a_file_is_the_only_one_with_its_channels_last)
{
    static const struct {
        const char *steps;
        uint32_t node;
        bool fits;
    } cases[] = {
        {"  - image.decode: {field: text}\n",                                    1, true },
        {"  - image.decode: {field: text, color: gray}\n",                       1, true },
        {"  - image.decode: {field: text, color: unchanged}\n",                  1, false},
        {"  - image.decode: {field: text, color: labels}\n",                     1, false},
        {"  - image.decode: {field: text}\n  - tensor.layout: {order: chw}\n",   2, false},
        {"  - image.decode: {field: text}\n  - tensor.cast: {dtype: float32}\n", 2,
         false                                                                           },
        {"  - debug.identity: {}\n",                                             1, false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        struct hr_graph *graph;

        snprintf(text, sizeof text, "  - source.list: {path: \"%s/README.md\"}\n%s",
                 check_source_dir(), cases[i].steps);
        graph = pipeline_frozen(text);
        CHECK((hr__cache_image(&graph->nodes[cases[i].node].schema) != NULL) ==
              cases[i].fits);
        hr_graph_unref(graph);
    }
}

/* One epoch only writes; draws that change every two epochs fill it five times. */
TEST(epochs_and_refresh_count)
{
    struct made made = make(CHAIN);

    made.facts[A].cpu_ns = 100e3;
    made.job.epochs = 1;
    find(&made);
    CHECK_EQ_INT(made.points[0].node, HR_NO_NODE);
    made.job.epochs = 10;
    made.job.refresh = 2;
    find(&made);
    CHECK_NEAR(after(&made, A)->rate, 10e9 / (5 * 102e3 + 5 * 1e3), 1e-3);
    finish(&made);
}

TEST(what_finds_no_room_is_made_again)
{
    struct made made = make(CHAIN);

    made.facts[A].cpu_ns = 100e3;
    made.media[0].room = 2000; /* of 8000 bytes */
    made.media[0].read_rate = made.media[0].write_rate = 1e9;
    find(&made);
    CHECK_NEAR(after(&made, A)->bytes, 8, 1e-9);
    CHECK_NEAR(after(&made, A)->total, 8000, 1e-9);
    CHECK_NEAR(after(&made, A)->part, 0.25, 1e-9);
    CHECK_NEAR(after(&made, A)->fill, 1e9 / (100e3 + 0.25 * 2008), 1e-3);
    CHECK_NEAR(after(&made, A)->hit, 1e9 / (75e3 + 0.25 * 1008), 1e-3);
    made.media[0].room = 0;
    find(&made);
    CHECK_EQ_INT(made.count, 1);
    finish(&made);
}

TEST(the_slowest_quarter_of_a_fill_says_what_a_long_one_costs)
{
    const double cold_last[] = {1, 1, 1, 1, 1, 1, 9, 11};
    const double cold_within[] = {1, 1, 1, 9, 11, 1, 1, 1};
    const double one_hiccup[] = {1, 1, 9, 1, 1, 1, 1, 1};

    CHECK_NEAR(hr__cache_fill_rate(cold_last, 8, 1000), 1e9 * 100, 1);
    CHECK_NEAR(hr__cache_fill_rate(cold_within, 8, 1000), 1e9 * 100, 1);
    CHECK_NEAR(hr__cache_fill_rate(one_hiccup, 8, 1000), 1e9 * 200, 1);
    CHECK_NEAR(hr__cache_fill_rate(cold_last, 1, 1000), 1e9 * 1000, 1);
    CHECK_NEAR(hr__cache_fill_rate(cold_last, 5, 1000), 1e9 * 1000, 1);
    CHECK(hr__cache_fill_rate((const double[]){0, 0}, 2, 1000) == 0);
}

TEST(a_slow_disk_is_not_read_for_hits_and_a_slow_device_is)
{
    struct made made = make(CHAIN);

    made.facts[SOURCE].bytes_out = 1e6;
    made.machine.disk = 1e8; /* 100 records/s */
    made.facts[A].cpu_ns = 1e3;
    find(&made);
    CHECK_NEAR(after(&made, HR_NO_NODE)->rate, 100, 1e-6);
    CHECK_NEAR(after(&made, A)->fill, 100, 1e-6);
    CHECK(after(&made, A)->hit > 1e5);
    made.media[0].device = 8e3; /* 1000 entries/s, and one thread that waits */
    find(&made);
    CHECK_NEAR(after(&made, A)->hit, 1e9 / (1e6 + 1e3), 1e-3);
    made.media[0].device_from = 9000; /* memory holds them all */
    find(&made);
    CHECK(after(&made, A)->hit > 1e5);
    finish(&made);
}

TEST(values_of_a_cache_are_copied)
{
    struct made made = make(CHAIN);

    made.facts[A].cpu_ns = 100e3;
    made.machine.copy = 1e6; /* 8 us for 8 bytes */
    find(&made);
    CHECK_NEAR(after(&made, A)->fill, 1e9 / 110e3, 1e-3);
    CHECK_NEAR(after(&made, A)->hit, 1e9 / 9e3, 1e-3);
    finish(&made);
}

/* Records that a filter drops need no room. */
TEST(a_filter_before_the_cache_counts)
{
    struct made made = make("  - source.range: {n: 1000}\n"
                            "  - record.filter: {expr: \"value < 500\"}\n"
                            "  - debug.spin: {us: 1}\n  - batch.stack: {size: 8}\n");

    made.facts[1].kept = 0.5;
    made.facts[2].records = made.facts[3].records = 0.5;
    made.facts[2].cpu_ns = 100e3;
    find(&made);
    CHECK_NEAR(after(&made, 1)->total, 4000, 1e-9);
    CHECK_NEAR(after(&made, 2)->total, 4000, 1e-9);
    CHECK_EQ_INT(made.points[0].node, 2);
    CHECK_NEAR(made.points[0].hit, 1e9 / 1e3, 1e-3);
    finish(&made);
}

TEST(only_records_that_are_taken_need_room)
{
    struct made made = make("  - source.range: {n: 1000}\n  - order.take: {count: 100}\n"
                            "  - order.repeat: {count: 3}\n  - debug.spin: {us: 1}\n");

    find(&made);
    CHECK_NEAR(after(&made, 3)->total, 800, 1e-9);
    finish(&made);
}

/* What both branches need is made again for the other one. */
TEST(a_step_that_others_need_is_not_left_out)
{
    struct made made =
        make("  - source.range: {n: 1000}\n    name: range\n"
             "  - debug.spin: {us: 1}\n    name: shared\n"
             "  - debug.spin: {us: 1}\n    name: left\n    inputs: [shared]\n"
             "  - record.rename: {fields: {value: other}}\n    name: right\n"
             "    inputs: [shared]\n"
             "  - flow.zip: {}\n    inputs: [left, right]\n  - batch.stack: {size: 8}\n");

    made.facts[1].cpu_ns = made.facts[2].cpu_ns = 100e3;
    find(&made);
    CHECK_NEAR(after(&made, 2)->hit, 1e9 / 101e3, 1e-3);
    CHECK_NEAR(after(&made, 1)->hit, 1e9 / 101e3, 1e-3);
    finish(&made);
}

TEST(what_holds_for_all_costs)
{
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (int round = 0; round < 300; round++) {
        struct made made = make(CHAIN);
        double none, rates[POINTS_MAX], before;

        made.media_count = 2;
        for (int m = 0; m < 2; m++)
            made.media[m] = (struct hr_cache_medium){
                .room = hr__rng_double(&rng) * 1e5,
                .read_ns = hr__rng_double(&rng) * 1e4,
                .read_rate = 1e6 + hr__rng_double(&rng) * 1e9,
                .write_ns = hr__rng_double(&rng) * 1e4,
            };
        for (int i = 0; i < 4; i++)
            made.facts[i].cpu_ns = hr__rng_double(&rng) * 1e5;
        made.job.epochs = 1 + floor(hr__rng_double(&rng) * 20);
        find(&made);
        none = after(&made, HR_NO_NODE)->rate;
        for (size_t i = 0; i < made.count; i++) {
            const struct hr_cache_point *p = &made.points[i];

            CHECK(i == 0 || p->rate <= made.points[i - 1].rate);
            CHECK(p->fill <= none * (1 + 1e-9) && p->part >= 0 && p->part <= 1);
            CHECK(p->rate >= fmin(p->fill, p->hit) * (1 - 1e-9) &&
                  p->rate <= fmax(p->fill, p->hit) * (1 + 1e-9));
        }
        for (uint32_t node = SOURCE; node <= B; node++)
            rates[node] = after(&made, node)->rate;
        made.job.epochs += 5; /* more epochs favour the later ones */
        find(&made);
        for (uint32_t node = SOURCE; node <= B; node++) {
            const struct hr_cache_point *p = after(&made, node);

            before = rates[node];
            CHECK(p->hit >= p->fill ? p->rate >= before * (1 - 1e-9)
                                    : p->rate <= before * (1 + 1e-9));
        }
        finish(&made);
    }
}
