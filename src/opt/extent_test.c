/*
 * opt/extent_test.c - sizes of records of a graph, by the sizes of some photos.
 */
#include "tests/support/check.h"
#include "tests/support/outcome.h"

#include <stdio.h>

#include "core/alloc.h"
#include "opt/memory.h"
#include "opt/opt.h"

static const char *const batched = "headrace: 1\npipeline:\n"
                                   "  - source.list: {path: \"%s/README.md\"}\n"
                                   "  - image.decode: {field: text}\n"
                                   "  - image.color_jitter: {brightness: 0.3}\n"
                                   "  - image.resize_shortest: {size: 100}\n"
                                   "  - batch.pad: {size: 4}\n"
                                   "  - batch.unbatch: {}\n"
                                   "  - image.rotate: {degrees: 30, expand: true}\n"
                                   "  - tensor.cast: {dtype: float32}\n";
#define SCRATCH (4 << 20) /* of a thread, whatever it runs */
enum { SOURCE, DECODE, JITTER, RESIZE, PAD, UNBATCH, ROTATE, CAST };

static struct hr_graph *make(const char *steps)
{
    char text[1024];
    struct outcome_job job;
    struct hr_error error = {0};
    struct hr_graph *graph;

    snprintf(text, sizeof text, steps, check_source_dir());
    job = outcome_job_text(text);
    graph = outcome_graph(&job, &error);
    if (graph == NULL || hr_graph_freeze(graph, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    return graph;
}

/* A photo of this size, as the header says it. */
static void
add_photo(const struct hr_graph *graph, struct hr_extent *most, int64_t h, int64_t w)
{
    struct hr_extent *one = hr__extents_create(graph);

    CHECK(one != NULL);
    one[DECODE].known = true;
    one[DECODE].schema = graph->nodes[DECODE].schema;
    one[DECODE].force = (uint64_t)(h * w * 3);
    one[DECODE].schema.fields[0].dims[0].size = h;
    one[DECODE].schema.fields[0].dims[1].size = w;
    hr__extents_add(graph, one, most);
    hr__free(one);
}

static void check_dims(const struct hr_extent *extent, int64_t a, int64_t b, int64_t c)
{
    const struct hr_field *field = &extent->schema.fields[0];

    CHECK(extent->known && field->ndim >= 3);
    CHECK_EQ_INT(field->dims[0].size, a);
    CHECK_EQ_INT(field->dims[1].size, b);
    CHECK_EQ_INT(field->dims[2].size, c);
}

TEST(sizes_of_photos_follow_the_graph_through_batches)
{
    struct hr_graph *graph = make(batched);
    struct hr_extent *most = hr__extents_create(graph);

    add_photo(graph, most, 200, 600);
    add_photo(graph, most, 800, 400);
    CHECK_OK(hr__extents_close(graph, most));
    CHECK(!most[SOURCE].known);
    check_dims(&most[DECODE], 800, 600, 3);
    check_dims(&most[JITTER], 800, 600, 3);
    check_dims(&most[RESIZE], 200, 300, 3); /* no photo is both */
    check_dims(&most[PAD], 4, 200, 300);
    check_dims(&most[UNBATCH], 200, 300, 3);
    check_dims(&most[ROTATE], 361, 361, 3); /* the diagonal */
    check_dims(&most[CAST], 361, 361, 3);
    hr__free(most);
    hr_graph_unref(graph);
}

TEST(ops_say_how_large_they_make_an_image)
{
    struct hr_graph *graph = make("headrace: 1\npipeline:\n"
                                  "  - source.list: {path: \"%s/README.md\"}\n"
                                  "  - image.decode: {field: text}\n"
                                  "  - image.zoom_out: {side_range: [1, 2.5]}\n"
                                  "  - image.scale_jitter: {size: [100, 50]}\n"
                                  "  - batch.pad: {size: 2}\n");
    struct hr_extent *most = hr__extents_create(graph);

    add_photo(graph, most, 200, 601);
    add_photo(graph, most, 801, 400);
    CHECK_OK(hr__extents_close(graph, most));
    check_dims(&most[2], 2002, 1502, 3);
    check_dims(&most[3], 200, 100, 3);
    check_dims(&most[4], 2, 200, 100);
    hr__free(most);
    hr_graph_unref(graph);
}

TEST(an_aspect_outlives_a_drawn_scale)
{
    struct hr_graph *graph = make("headrace: 1\npipeline:\n"
                                  "  - source.list: {path: \"%s/README.md\"}\n"
                                  "  - image.decode: {field: text}\n"
                                  "  - image.scale_jitter: {size: 1000}\n"
                                  "  - image.resize_shortest: {size: 100}\n");
    struct hr_extent *most = hr__extents_create(graph);

    add_photo(graph, most, 300, 600);
    add_photo(graph, most, 200, 100);
    CHECK_OK(hr__extents_close(graph, most));
    check_dims(&most[2], 2000, 2000, 3);
    check_dims(&most[3], 200, 200, 3);
    hr__free(most);
    hr_graph_unref(graph);
}

TEST(rows_that_are_packed_are_as_large_as_stacked_ones)
{
    struct hr_graph *graph = make("headrace: 1\npipeline:\n"
                                  "  - source.list: {path: \"%s/README.md\"}\n"
                                  "  - image.decode: {field: text}\n"
                                  "  - batch.stack: {size: 4, ragged: true}\n"
                                  "  - batch.unbatch: {}\n");
    struct hr_extent *most = hr__extents_create(graph);
    struct hr_opt_settings settings = {.cpus = 2, .ordered = true, .fuse = true};
    struct hr_sizes sizes;
    struct hr_plan plan;

    add_photo(graph, most, -1, -1); /* as of a record that only its source has seen */
    add_photo(graph, most, 300, 600);
    CHECK_OK(hr__extents_close(graph, most));
    check_dims(&most[2], 4, 300, 600);
    check_dims(&most[3], 300, 600, 3);
    CHECK_OK(hr__plan_make(graph, &settings, &plan, NULL));
    hr__sizes_estimate(&plan, most, &sizes);
    CHECK_EQ_INT(sizes.stages[0].batch, 4 * 300 * 600 * 3);
    hr__plan_finish(&plan);
    hr__free(most);
    hr_graph_unref(graph);
}

TEST(estimates_go_by_the_photos)
{
    struct hr_opt_settings settings = {.cpus = 2, .ordered = true, .fuse = true};
    struct hr_graph *graph = make(batched);
    struct hr_extent *most = hr__extents_create(graph);
    struct hr_sizes sizes;
    struct hr_plan plan;

    add_photo(graph, most, 800, 600);
    CHECK_OK(hr__extents_close(graph, most));
    CHECK_OK(hr__plan_make(graph, &settings, &plan, NULL));
    CHECK_EQ_INT(plan.stage_count, 3);
    hr__sizes_estimate(&plan, NULL, &sizes);
    CHECK(!sizes.stages[0].known && !sizes.stages[2].known);
    hr__sizes_estimate(&plan, most, &sizes);
    CHECK(sizes.stages[0].known && sizes.stages[2].known);
    CHECK_EQ_INT(sizes.stages[0].result, 133 * 100 * 3);
    CHECK_EQ_INT(sizes.stages[0].batch, 4 * 133 * 100 * 3);
    CHECK_EQ_INT(sizes.stages[2].item, 167 * 167 * 3 * 4);
    /* Decoded, and changed; the resize of that goes to the result. */
    CHECK_EQ_INT(sizes.stages[0].scratch, SCRATCH + 4096 + 2 * 800 * 600 * 3);
    CHECK_EQ_INT(sizes.stages[2].scratch, SCRATCH + 167 * 167 * 3);
    hr__plan_finish(&plan);
    hr__free(most);
    hr_graph_unref(graph);
}
