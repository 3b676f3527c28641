/*
 * tests/conformance/seek_test.c - seek points change no byte: none, cold, warm, loaded,
 * in a store that is too small, damaged, of files that were replaced, with damaged
 * photos, from one or more threads; for random crops, centre crops, gray pixels, and two
 * views of one photo.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "headrace/dataset.h"
#include "tests/support/check.h"
#include "tests/support/outcome.h"

#define HEAD                                                                             \
    "headrace: 1\n"                                                                      \
    "params:\n"                                                                          \
    "  data: {type: path}\n"                                                             \
    "  index: {type: path, default: null}\n"                                             \
    "  seek: {type: string, default: 64MB}\n"                                            \
    "pipeline:\n"                                                                        \
    "  - source.files: {path: \"${data}\", index: \"${index}\"}\n"                       \
    "  - order.shuffle: {}\n"
#define BATCH "  - batch.stack: {size: 8}\n"

static const char *const graphs[] = {
    HEAD "  - image.decode: {seek_bytes: \"${seek}\"}\n"
         "  - image.random_resized_crop: {size: 48}\n"
         "  - image.flip: {p: 0.5}\n"
         "  - image.normalize: {mean: imagenet, std: imagenet}\n" BATCH,
    HEAD "  - image.decode: {mode: exact, orientation: true, seek_bytes: \"${seek}\"}\n"
         "  - image.random_resized_crop: {size: 48}\n" BATCH,
    HEAD "  - image.decode: {color: gray, seek_bytes: \"${seek}\"}\n"
         "  - image.random_crop: {size: 64, pad_if_needed: true}\n" BATCH,
    HEAD "  - image.decode: {seek_bytes: \"${seek}\"}\n"
         "  - image.resize_shortest: {size: 64}\n"
         "  - image.center_crop: {size: 48}\n" BATCH,
    HEAD "  - image.decode: {seek_bytes: \"${seek}\"}\n"
         "    name: photo\n"
         "  - image.random_resized_crop: {size: 48}\n"
         "    name: left\n"
         "    inputs: [photo]\n"
         "  - image.random_resized_crop: {size: 32}\n"
         "    name: right\n"
         "    inputs: [photo]\n"
         "  - flow.zip: {prefix: [left_, right_]}\n"
         "    inputs: [left, right]\n" BATCH,
};
#define GRAPHS (sizeof graphs / sizeof graphs[0])

static const char *in_temp(const char *name)
{
    static char paths[4][600];
    static int at;
    char *path = paths[at++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", check_temp_dir(), name);
    return path;
}

#define PHOTOS 24
static void make_photos(const char *dir)
{
    const struct hr_synth_photos what = {.seed = 9,
                                         .count = PHOTOS,
                                         .classes = 1,
                                         .width = 320,
                                         .height = 240,
                                         .vary = true};

    CHECK_OK(hr_synth_photos(dir, &what, NULL, NULL, NULL));
}

static const char *photos(void)
{
    static char dir[600];

    if (dir[0] == '\0') {
        snprintf(dir, sizeof dir, "%s", in_temp("photos"));
        make_photos(dir);
    }
    return dir;
}

struct set_up {
    const char *data, *index, *seek; /* NULL: the defaults */
    int threads;
    int64_t epoch_first, epochs;
    enum hr_on_error on_error;
};

static struct outcome *run(const char *text, const struct set_up *set_up)
{
    struct outcome_job job = outcome_job_text(text);

    outcome_job_threads(&job, set_up->threads);
    job.params[job.param_count++] =
        (struct hr_graph_param){"data", set_up->data != NULL ? set_up->data : photos()};
    if (set_up->index != NULL)
        job.params[job.param_count++] = (struct hr_graph_param){"index", set_up->index};
    if (set_up->seek != NULL)
        job.params[job.param_count++] = (struct hr_graph_param){"seek", set_up->seek};
    job.options.epochs = set_up->epochs != 0 ? set_up->epochs : 3;
    job.options.epoch_first = set_up->epoch_first;
    job.options.on_error = set_up->on_error;
    job.options.errors_max = 1000;
    return outcome_run(&job);
}

static void check_run(const char *text, const struct set_up *set_up, const char *what)
{
    struct set_up without = *set_up;
    struct outcome *expected, *got = run(text, set_up);

    without.index = NULL;
    without.seek = "0";
    without.threads = 0;
    expected = run(text, &without);
    CHECK_ERR(HR_ERR_END, expected->code);
    outcome_check_same(expected, got, 0, what);
    CHECK_EQ_INT(expected->stats.errors, got->stats.errors);
    outcome_free(expected);
    outcome_free(got);
}

TEST(epochs_with_seek_points_give_the_same_bytes_as_without)
{
    for (size_t i = 0; i < GRAPHS; i++) {
        check_run(graphs[i], &(struct set_up){0}, "inline");
        check_run(graphs[i], &(struct set_up){.threads = 4}, "four threads");
        check_run(graphs[i], &(struct set_up){.seek = "8000", .threads = 2},
                  "little room");
    }
}

TEST(runs_with_saved_seek_points_give_the_same_bytes)
{
    for (size_t i = 0; i < GRAPHS; i++) {
        const char *index = in_temp("loaded.index");

        for (int64_t epoch = 0; epoch < 4; epoch++)
            check_run(graphs[i],
                      &(struct set_up){.index = index,
                                       .threads = (int)epoch % 3,
                                       .epoch_first = epoch,
                                       .epochs = 1},
                      "loaded");
    }
}

/* True if the plan of this run says that it loaded seek points. */
static bool knows_points(const char *index)
{
    struct outcome_job job = outcome_job_text(graphs[0]);
    struct hr_graph *graph;
    char *text;
    bool knows;

    job.params[job.param_count++] = (struct hr_graph_param){"data", photos()};
    job.params[job.param_count++] = (struct hr_graph_param){"index", index};
    graph = outcome_graph(&job, NULL);
    CHECK(graph != NULL);
    CHECK_OK(hr_graph_explain(graph, NULL, false, &text, NULL));
    knows = strstr(text, "has seek points in 2") != NULL;
    hr_free(text);
    hr_graph_unref(graph);
    return knows;
}

TEST(a_damaged_section_is_dropped_and_recorded_again)
{
    const char *index = in_temp("flipped.index");
    char *whole = NULL;
    size_t bytes = 0;

    check_run(graphs[0], &(struct set_up){.index = index}, "fresh");
    CHECK(knows_points(index));
    CHECK_OK(hr__file_read(index, 1 << 24, &whole, &bytes, NULL));
    for (size_t at = bytes / 64; at < bytes; at += bytes / 24) {
        whole[at] ^= 0x55;
        CHECK_OK(hr__file_replace(index, whole, bytes, NULL));
        whole[at] ^= 0x55;
        check_run(graphs[0], &(struct set_up){.index = index, .epochs = 2}, "damaged");
        CHECK(knows_points(index));
    }
    hr__free(whole);
}

/* Two files are swapped, keeping names, sizes and times. */
TEST(a_replaced_file_is_detected_by_its_contents)
{
    const char *dir = in_temp("replaced"), *index = in_temp("replaced.index");
    const struct timespec times[2] = {
        {1600000000, 0},
        {1600000000, 0}
    };
    char paths[2][700], *data[2], *padded;
    size_t bytes[2], longer;

    make_photos(dir);
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/balloon/photo_%08d.jpg", dir, i + 3);
        CHECK_OK(hr__file_read(paths[i], 1 << 24, &data[i], &bytes[i], NULL));
    }
    longer = bytes[0] > bytes[1] ? bytes[0] : bytes[1];
    padded = calloc(1, longer);
    CHECK(padded != NULL);
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < 2; i++) {
            const char *path = paths[i ^ pass];
            FILE *file = fopen(path, "r+");

            CHECK(file != NULL); /* written in place, so that the folder's time stays */
            memset(padded, 0, longer);
            memcpy(padded, data[i], bytes[i]);
            CHECK_EQ_INT(fwrite(padded, 1, longer, file), longer);
            CHECK_EQ_INT(fclose(file), 0);
            CHECK_EQ_INT(utimensat(AT_FDCWD, path, times, 0), 0);
        }
        check_run(graphs[0], &(struct set_up){.data = dir, .index = index}, "replaced");
    }
    free(padded);
    for (int i = 0; i < 2; i++)
        hr__free(data[i]);
}

/* Truncated photos fail or not, exactly as without seek points: in the epoch that records
 * them and later. */
TEST(damaged_photos_have_the_same_outcome)
{
    const char *dir = in_temp("cut"), *index = in_temp("cut.index");
    struct stat info;
    char path[700];

    make_photos(dir);
    for (int i = 0; i < PHOTOS; i += 3) {
        snprintf(path, sizeof path, "%s/balloon/photo_%08d.jpg", dir, i);
        CHECK_EQ_INT(stat(path, &info), 0);
        CHECK_EQ_INT(truncate(path, info.st_size * (2 + i % 5) / 7), 0);
    }
    for (int i = 0; i < 2; i++)
        check_run(
            graphs[i],
            &(struct set_up){.data = dir, .index = index, .on_error = HR_ON_ERROR_SKIP},
            "cut");
}

/* A graph with two views against a graph for each. */
TEST(two_views_of_a_photo_equal_those_of_two_graphs)
{
    static const char *const decode = "  - image.decode: {}\n    name: photo\n";
    static const char *const views[] = {
        "  - image.center_crop: {size: 60}\n    name: view0\n    inputs: [photo]\n",
        "  - image.resize: {size: [40, 50]}\n    name: view1\n    inputs: [photo]\n"
        "  - image.center_crop: {size: 30}\n    name: end1\n",
    };
    struct hr_field_view field[2];
    struct hr_iter *iter[3];
    struct hr_graph *graph[3];
    struct hr_batch *batch[3];
    struct outcome_job job;
    struct hr_iter_options options;
    char text[2000];

    hr_iter_options_init(&options);
    options.epochs = 2;
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "%s%s%s%s%s%s", HEAD, decode, i != 1 ? views[0] : "",
                 i != 0 ? views[1] : "",
                 i == 2 ? "  - flow.zip: {prefix: [a_, b_]}\n    inputs: [view0, end1]\n"
                        : "",
                 BATCH);
        job = outcome_job_text(text);
        job.params[job.param_count++] = (struct hr_graph_param){"data", photos()};
        graph[i] = outcome_graph(&job, NULL);
        CHECK(graph[i] != NULL);
        CHECK_OK(hr_iter_open(graph[i], &options, &iter[i], NULL));
    }
    for (int n = 0; n < 2 * PHOTOS / 8; n++) {
        for (int i = 0; i < 3; i++)
            CHECK_OK(hr_iter_next(iter[i], &batch[i], NULL));
        for (int i = 0; i < 2; i++) {
            CHECK_OK(hr_batch_find(batch[i], "image", &field[0]));
            CHECK_OK(hr_batch_find(batch[2], i == 0 ? "a_image" : "b_image", &field[1]));
            CHECK_EQ_INT(field[0].bytes, field[1].bytes);
            CHECK_BYTES(field[0].data, field[1].data, field[0].bytes);
        }
        for (int i = 0; i < 3; i++)
            hr_batch_unref(batch[i]);
    }
    for (int i = 0; i < 3; i++) {
        hr_iter_close(iter[i]);
        hr_graph_unref(graph[i]);
    }
}
