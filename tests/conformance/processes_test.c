/*
 * tests/conformance/processes_test.c - ops in worker processes: any run of steps there
 * gives the bytes that it gives here, and what fails there fails with the same words.
 *
 * Every pair of places is tried: a record crosses into a worker before one step and back
 * after another one, with its image made or described, as the graph has it.
 */
#include <stdlib.h>

#include "graph/graph.h"
#include "opt/opt.h"
#include "tests/conformance/photos.h"
#include "tests/conformance/random_graph.h"
#include "tests/support/check.h"
#include "tests/support/outcome.h"
#include "tests/support/peers.h"

__attribute__((constructor)) static void serve(void)
{
    if (peers_argument() != NULL)
        peers_serve(random_graph_code, NULL);
}

static enum hr_err prepare(void *user, struct hr_graph *graph, struct hr_error *reterr)
{
    enum hr_err code = random_graph_prepare(NULL, graph, reterr);

    return code == HR_OK ? peers_host(user, graph, reterr) : code;
}

/* Runs the graph with nodes [from, to) away, if a plan can have them there. */
static struct outcome *run_away(const struct outcome_job *whole, const bool *away)
{
    struct hr_opt_settings settings = {
        .cpus = 2, .threads = 2, .ordered = true, .fuse = true, .processes = away};
    struct outcome_job job = *whole;
    struct hr_graph *graph = outcome_graph(&job, NULL);
    struct outcome *outcome;
    struct hr_plan plan;
    struct peers peers;
    struct hr_str text;

    CHECK(graph != NULL);
    CHECK_OK(hr_graph_freeze(graph, NULL));
    CHECK_OK(hr__plan_make(graph, &settings, &plan, NULL));
    hr__str_init(&text);
    hr__plan_print(&plan, HR_GRAPH_YAML, &text);
    CHECK(hr__str_ok(&text));
    peers_init(&peers, "");
    outcome_job_threads(&job, 2);
    job.prepare = prepare;
    job.user = &peers;
    job.options.plan = hr__str_text(&text);
    outcome = outcome_run(&job);
    peers_finish(&peers);
    hr__str_finish(&text);
    hr__plan_finish(&plan);
    hr_graph_unref(graph);
    return outcome;
}

static void check_places(const char *text, size_t nodes)
{
    struct outcome_job job = outcome_job_text(text);
    struct outcome *whole;
    bool away[HR_GRAPH_NODES_MAX];
    char words[64];

    job.prepare = random_graph_prepare;
    whole = outcome_run(&job);
    for (size_t from = 0; from < nodes; from++) {
        for (size_t to = from + 1; to <= nodes; to++) {
            struct outcome *other;

            for (size_t i = 0; i < nodes; i++)
                away[i] = i >= from && i < to;
            other = run_away(&job, away);
            snprintf(words, sizeof words, "nodes %zu to %zu away", from, to);
            outcome_check_same(whole, other, 0, words);
            outcome_free(other);
        }
    }
    outcome_free(whole);
}

#define GRAPH(mode)                                                                      \
    "headrace: 1\n"                                                                      \
    "pipeline:\n"                                                                        \
    "  - source.files: {path: '%s', labels: folder}\n"                                   \
    "  - image.decode: {mode: " mode "}\n"                                               \
    "  - image.random_resized_crop: {size: 40}\n"                                        \
    "  - image.flip: {p: 0.5}\n"                                                         \
    "  - image.color_jitter: {brightness: 0.4}\n"                                        \
    "  - image.resize: {size: [24, 30]}\n"                                               \
    "  - image.normalize: {mean: imagenet, std: imagenet}\n"                             \
    "  - tensor.layout: {order: chw}\n"                                                  \
    "  - batch.stack: {size: 5, drop_last: false}\n"

static void check_photos(const char *format)
{
    static char text[4096];

    snprintf(text, sizeof text, format, photos_good());
    check_places(text, 9);
}

TEST(photos_in_mode_exact)
{
    check_photos(GRAPH("exact"));
}

TEST(photos_in_mode_close)
{
    check_photos(GRAPH("close"));
}

TEST(numbers_a_filter_and_children)
{
    check_places("headrace: 1\n"
                 "pipeline:\n"
                 "  - source.range: {n: 300}\n"
                 "  - record.filter: {expr: 'value % 3 != 1'}\n"
                 "  - tensor.cast: {field: value, dtype: float32}\n"
                 "  - batch.stack: {size: 7}\n"
                 "  - batch.unbatch: {}\n"
                 "  - debug.identity: {}\n"
                 "  - batch.stack: {size: 10, drop_last: false}\n",
                 7);
}

TEST(two_views_of_a_photo)
{
    static char text[4096];

    snprintf(text, sizeof text,
             "headrace: 1\n"
             "pipeline:\n"
             "  - source.files: {path: '%s'}\n"
             "  - image.decode: {}\n"
             "  - image.random_resized_crop: {size: 24}\n"
             "    name: left\n"
             "    inputs: [image.decode]\n"
             "  - image.flip: {p: 0.5}\n"
             "    name: left_end\n"
             "  - image.center_crop: {size: 30}\n"
             "    name: right\n"
             "    inputs: [image.decode]\n"
             "  - flow.zip: {prefix: [a_, b_]}\n"
             "    inputs: [left_end, right]\n"
             "  - batch.stack: {size: 4, drop_last: false}\n",
             photos_good());
    check_places(text, 7);
}

/* The filter reads pixels that only a description of is sent. */
TEST(user_code_that_only_looks_at_pixels)
{
    static char text[4096];

    snprintf(text, sizeof text,
             "headrace: 1\n"
             "pipeline:\n"
             "  - source.files: {path: '%s', labels: folder}\n"
             "  - image.decode: {}\n"
             "  - image.flip: {p: 0.5}\n"
             "  - record.select: {fields: [image]}\n"
             "  - code.filter: {code: some, fields: [image]}\n"
             "  - code.map: {code: reverse, fields: [image], "
             "outputs: [\"image: uint8[-1, -1, 3]\"]}\n"
             "  - image.resize: {size: [14, 9]}\n"
             "  - batch.stack: {size: 4, drop_last: false}\n",
             photos_good());
    check_places(text, 8);
}

TEST(a_record_that_fails_away_fails_with_the_same_words)
{
    check_places("headrace: 1\n"
                 "pipeline:\n"
                 "  - source.range: {n: 40}\n"
                 "  - debug.fail: {at: [17]}\n"
                 "  - batch.stack: {size: 4}\n",
                 3);
}
