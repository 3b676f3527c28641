/*
 * api/cache_api_test.c - caches that are proposed, and those that are not.
 */
#include "headrace/cache.h"

#include <dirent.h>

#include "api/cache_rates.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "headrace/dataset.h"
#include "tests/support/check.h"
#include "tests/support/pipeline.h"

struct proposed {
    struct hr_graph *graph;
    struct hr_cache_places *places;
    struct hr_cache_place best, chosen;
};

/* With this profile, which is freed. */
static enum hr_err ask_of(struct hr_graph *graph, struct hr_profile *profile,
                          const struct hr_cache_options *options, struct proposed *ret,
                          struct hr_error *error)
{
    enum hr_err code;

    *ret = (struct proposed){0};
    code =
        hr_graph_propose_cache(graph, profile, options, &ret->graph, &ret->places, error);
    hr_profile_free(profile);
    for (size_t i = 0; code == HR_OK && !ret->chosen.chosen &&
                       hr_cache_places_get(ret->places, i, &ret->chosen) == HR_OK;
         i++)
        ;
    if (code == HR_OK)
        CHECK_OK(hr_cache_places_get(ret->places, 0, &ret->best));
    return code;
}

static enum hr_err ask(struct hr_graph *graph, const struct hr_cache_options *options,
                       struct proposed *ret, struct hr_error *error)
{
    return ask_of(graph, pipeline_profile(graph), options, ret, error);
}

static void finish(struct proposed *p)
{
    hr_graph_unref(p->graph);
    hr_cache_places_free(p->places);
}

static size_t caches_in(const struct hr_graph *graph, char *before, size_t room)
{
    struct hr_node_info node;
    char last[64] = "";
    size_t count = 0;

    for (size_t i = 0; hr_graph_node_info(graph, i, &node) == HR_OK; i++) {
        if (strcmp(node.op, "flow.cache") == 0) {
            snprintf(before, room, "%s", last);
            count++;
        }
        snprintf(last, sizeof last, "%.63s", node.name);
    }
    return count;
}

/* CPU seconds of each of two epochs. */
static void time_epochs(struct hr_graph *graph, double ret_seconds[2])
{
    struct hr_iter_options options;
    struct hr_batch *batch = NULL;
    struct hr_iter *iter = NULL;
    struct hr_iter_stats stats;
    uint64_t began = hr__cpu_process_ns(), half = 0;
    int64_t records = hr_graph_record_count(graph), seen = 0;

    hr_iter_options_init(&options);
    options.epochs = 2;
    options.variant = HR_VARIANT_INLINE;
    CHECK_OK(hr_iter_open(graph, &options, &iter, NULL));
    while (hr_iter_next(iter, &batch, NULL) == HR_OK && batch != NULL) {
        seen += hr_batch_records(batch);
        hr_batch_unref(batch);
        if (half == 0 && seen >= records)
            half = hr__cpu_process_ns();
    }
    hr_iter_stats(iter, &stats);
    hr_iter_close(iter);
    CHECK_EQ_INT(seen, 2 * records);
    ret_seconds[0] = (double)(half - began) * 1e-9;
    ret_seconds[1] = (double)(hr__cpu_process_ns() - half) * 1e-9;
}

#define RANGE "  - source.range: {n: 800}\n  - order.shuffle: {}\n"
#define DEAR "  - debug.spin: {us: 300}\n    name: dear\n"
#define CHEAP "  - debug.identity: {}\n    name: cheap\n"
#define STACK "  - batch.stack: {size: 8}\n    name: stack\n"

/* The cache is after what is dear, and an epoch that reads it takes what was predicted,
 * against the epoch that fills it. */
TEST(a_cache_is_put_after_what_is_dear_and_gains_what_was_predicted)
{
    struct hr_graph *graph = pipeline_graph(RANGE DEAR STACK);
    struct hr_cache_options options;
    struct hr_error error = {0};
    struct proposed p;
    char before[64] = "";
    double seconds[2];

    hr_cache_options_init(&options);
    if (ask(graph, &options, &p, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    CHECK_EQ_INT(caches_in(p.graph, before, sizeof before), 1);
    CHECK_EQ_STR(before, "dear");
    CHECK_EQ_STR(p.chosen.node, "dear");
    CHECK(p.best.chosen && !p.best.in_folder && p.best.part == 1);
    CHECK_NEAR(p.best.entry_bytes, 8, 1e-9);
    CHECK_NEAR(p.best.total_bytes, 6400, 1e-9);
    CHECK(p.best.gain > 5 && p.best.gain < 10.01); /* of 10 epochs one does the work */
    CHECK(p.best.hit_rate > 10 * p.best.fill_rate);
    time_epochs(p.graph, seconds);
    CHECK(seconds[1] < 0.2 * seconds[0]);
    finish(&p);
    hr_graph_unref(graph);
}

TEST(nothing_is_cached_where_it_does_not_pay)
{
    struct hr_graph *graph = pipeline_graph(RANGE CHEAP STACK);
    struct hr_error error = {0};
    struct proposed p;

    CHECK_OK(ask(graph, NULL, &p, &error));
    CHECK(p.graph == graph && p.chosen.node == NULL && p.chosen.gain == 1);
    finish(&p);
    hr_graph_unref(graph);
}

/* Copies the text with `value` for the number after the first `key` behind `at`. */
static void edit(const char *text, const char *at, const char *key, const char *value,
                 char *to, size_t room)
{
    const char *from = strstr(strstr(text, at), key) + strlen(key);
    int length = snprintf(to, room, "%.*s%s%s", (int)(from - text), text, value,
                          from + strcspn(from, ",}"));

    CHECK(length > 0 && (size_t)length < room);
}

/* What takes time by a few records only, such as those during which the host took the
 * processor away, is not worth a cache. */
TEST(a_gain_that_may_be_an_error_is_refused)
{
    struct hr_graph *graph = pipeline_graph(RANGE CHEAP STACK);
    struct hr_profile *profile = pipeline_profile(graph);
    struct hr_error error = {0};
    char dear[16384], text[16384], *json;
    struct proposed p;

    CHECK_OK(hr_profile_print(profile, &json, &error));
    hr_profile_free(profile);
    edit(json, "\"cheap\"", "\"cpu_ns\": ", "20000", dear, sizeof dear);
    hr_free(json);
    for (int sure = 0; sure < 2; sure++) {
        edit(dear, "\"cheap\"", "\"width\": ", sure ? "0.05" : "1.0", text, sizeof text);
        CHECK_OK(hr_profile_parse(text, strlen(text), "test", &profile, &error));
        CHECK_OK(ask_of(graph, profile, NULL, &p, &error));
        CHECK(p.best.gain > 2);
        CHECK_EQ_INT(p.best.chosen, sure);
        if (!sure)
            CHECK_HAS(p.best.refused, "profile for longer");
        finish(&p);
    }
    hr_graph_unref(graph);
}

static struct hr_graph *photos(const char *steps)
{
    struct hr_synth_photos what = {.count = 60};
    char folder[512], text[1024];

    snprintf(folder, sizeof folder, "%s/photos", check_temp_dir());
    CHECK_OK(hr_synth_photos(folder, &what, NULL, NULL, NULL));
    snprintf(text, sizeof text, "  - source.files: {path: '%.400s'}\n%s" STACK, folder,
             steps);
    return pipeline_graph(text);
}

#define CROP_AND_BLUR                                                                    \
    "  - image.decode: {}\n  - image.random_resized_crop: {size: 96}\n    name: crop\n"  \
    "  - image.gaussian_blur: {size: 9}\n    name: blur\n"
#define RESIZE_AND_CROP(mode)                                                            \
    "  - image.decode: {mode: " mode "}\n  - image.resize: {size: [64, 64]}\n"           \
    "    name: resize\n  - image.random_crop: {size: 48}\n    name: crop\n"

/* Behind a random op a cache would repeat the first epoch: it is refused with the reason,
 * unless draws may stay the same for some epochs. */
TEST(random_draws_before_a_cache_are_refused_unless_refreshed)
{
    struct hr_graph *graph = photos(CROP_AND_BLUR);
    struct hr_cache_options options;
    struct hr_error error = {0};
    struct proposed p;
    char before[64] = "";

    if (ask(graph, NULL, &p, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    CHECK(p.best.node != NULL && !p.best.chosen && p.best.refused != NULL);
    CHECK_HAS(p.best.refused, "draws random numbers");
    finish(&p);
    hr_cache_options_init(&options);
    options.refresh = 5;
    if (ask(graph, &options, &p, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    CHECK(p.best.chosen && p.best.refused == NULL);
    CHECK(p.best.gain < 5.01); /* two of ten epochs do the work */
    CHECK_EQ_INT(caches_in(p.graph, before, sizeof before), 1);
    finish(&p);
    hr_graph_unref(graph);
}

static const char *refused_after(const struct proposed *p, const char *node)
{
    struct hr_cache_place place;

    for (size_t i = 0; hr_cache_places_get(p->places, i, &place) == HR_OK; i++)
        if (place.node != NULL && strcmp(place.node, node) == 0 && place.image == NULL)
            return place.refused;
    return NULL;
}

static void check_after_resize(struct hr_graph *graph, struct hr_cache_options *options,
                               enum hr_strictness strictness)
{
    struct proposed p;

    options->strictness = strictness;
    CHECK_OK(ask(graph, options, &p, NULL));
    CHECK_EQ_STR(p.chosen.node, "resize");
    CHECK_EQ_INT(p.chosen.needs, strictness);
    finish(&p);
}

/* In mode close, decode, resize and crop are one piece of work: a cache within it has
 * them work on pixels that are made before. */
TEST(a_cache_that_divides_a_group_needs_what_it_changes)
{
    struct hr_graph *graph = photos(RESIZE_AND_CROP("close"));
    struct hr_cache_options options;
    struct hr_error error = {0};
    struct proposed p;

    hr_cache_options_init(&options);
    options.epochs = 100;
    if (ask(graph, &options, &p, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    CHECK(p.chosen.node == NULL || strcmp(p.chosen.node, "resize") != 0);
    CHECK_EQ_INT(p.chosen.needs, HR_STRICTNESS_EXACT);
    CHECK_HAS(refused_after(&p, "resize"), "with other pixels");
    CHECK_HAS(refused_after(&p, "crop"), "draws random numbers");
    finish(&p);
    check_after_resize(graph, &options, HR_STRICTNESS_CLOSE);
    hr_graph_unref(graph);

    graph = photos(RESIZE_AND_CROP("exact"));
    check_after_resize(graph, &options, HR_STRICTNESS_EXACT);
    hr_graph_unref(graph);
}

static size_t entries_of(const char *folder)
{
    DIR *open = opendir(folder);
    struct dirent *entry;
    size_t count = 0;

    while (open != NULL && (entry = readdir(open)) != NULL)
        count += entry->d_name[0] != '.';
    if (open != NULL)
        closedir(open);
    return count;
}

TEST(a_folder_is_used_when_memory_is_not_and_is_left_clean)
{
    struct hr_graph *graph = pipeline_graph(RANGE DEAR STACK);
    struct hr_cache_options options;
    struct hr_error error = {0};
    struct proposed p;
    char folder[512];

    snprintf(folder, sizeof folder, "%s/kept", check_temp_dir());
    hr_cache_options_init(&options);
    options.memory = -1;
    options.folder = folder;
    options.folder_bytes = 3200;
    if (ask(graph, &options, &p, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    CHECK(p.best.chosen && p.best.in_folder);
    CHECK_NEAR(p.best.part, 0.5, 1e-9);
    CHECK_EQ_INT(entries_of(folder), 0);
    finish(&p);
    options.folder = "/proc/none";
    CHECK_ERR(HR_ERR_IO, ask(graph, &options, &p, &error));
    hr_graph_unref(graph);
}

TEST(options_and_graphs_that_cannot_be_asked_about_say_why)
{
    struct hr_graph *graph = pipeline_graph(RANGE DEAR STACK), *faster = NULL;
    struct hr_profile *profile = pipeline_profile(graph);
    struct hr_cache_places *places = NULL;
    struct hr_cache_options options;
    struct hr_cache_place place;
    struct hr_error error = {0};

    hr_cache_options_init(&options);
    options.epochs = 0;
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_graph_propose_cache(graph, profile, &options, &faster, &places, &error));
    CHECK_HAS(error.message, "epochs must be 1 to");
    hr_cache_options_init(&options);
    options.refresh = -1;
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_graph_propose_cache(graph, profile, &options, &faster, &places, &error));
    hr_cache_options_init(&options);
    options.memory = -1;
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_graph_propose_cache(graph, profile, &options, &faster, &places, &error));
    CHECK_HAS(error.message, "neither is allowed");
    options.memory = -2;
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_graph_propose_cache(graph, profile, &options, &faster, &places, &error));
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_graph_propose_cache(NULL, profile, NULL, &faster, &places, &error));
    CHECK_ERR(HR_ERR_ARGUMENT, hr_cache_places_get(NULL, 0, &place));
    hr_cache_places_free(NULL);
    hr_graph_unref(graph);
    graph = pipeline_graph("  - source.range: {n: 8}\n" CHEAP STACK);
    CHECK_ERR(HR_ERR_STATE,
              hr_graph_propose_cache(graph, profile, NULL, &faster, &places, &error));
    CHECK_HAS(error.message, "profile it again");
    CHECK(faster == NULL && places == NULL);
    hr_profile_free(profile);
    hr_graph_unref(graph);
}

TEST(entries_take_time_and_larger_ones_more)
{
    struct hr_cache_medium medium = {0};

    CHECK_OK(hr__cache_rates(NULL, &medium, NULL));
    CHECK(medium.write_ns > 0 && medium.read_ns > 0 && medium.write_rate > 1e6);
    CHECK_OK(hr__cache_rates(check_temp_dir(), &medium, NULL));
    CHECK(medium.write_ns > 0 && medium.read_rate > 1e6 && medium.write_rate > 1e6);
}

TEST(failing_allocations_are_errors)
{
    struct hr_graph *graph = pipeline_frozen(RANGE DEAR STACK);
    struct hr_profile *profile = pipeline_profile(graph);
    enum hr_err code = HR_ERR_MEMORY;

    for (uint64_t nth = 1; code != HR_OK; nth += 1 + nth / 8) {
        struct hr_graph *faster = NULL;
        struct hr_cache_places *places = NULL;

        hr__fault_arm(HR_FAULT_ALLOC, nth);
        code = hr_graph_propose_cache(graph, profile, NULL, &faster, &places, NULL);
        hr__fault_arm(0, 0);
        /* A cache without memory keeps nothing, so its rates are not known. */
        CHECK(code == HR_OK || code == HR_ERR_MEMORY || code == HR_ERR_IO);
        CHECK((code == HR_OK) == (faster != NULL) && (code == HR_OK) == (places != NULL));
        hr_graph_unref(faster);
        hr_cache_places_free(places);
        CHECK(nth < 100000);
    }
    hr_profile_free(profile);
    hr_graph_unref(graph);
}
