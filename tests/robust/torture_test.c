/*
 * tests/robust/torture_test.c - makes the n-th allocation, open, read, write or thread
 * start fail, for n = 1, 2, ... until the run has fewer calls. Each run either ends with
 * a meaningful error or succeeds; none crashes, hangs or leaks (ASan checks leaks).
 *
 * A normal run takes every n up to a few hundred and then skips; HEADRACE_TORTURE=all
 * takes every n.
 */
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "headrace/dataset.h"
#include "headrace/engine.h"
#include "tests/support/check.h"

static const char vision[] = "headrace: 1\n"
                             "params:\n"
                             "  data: {type: path}\n"
                             "  index: {type: path}\n"
                             "pipeline:\n"
                             "  - source.files: {path: \"${data}\", labels: folder}\n"
                             "  - order.shuffle: {}\n"
                             "  - image.decode: {}\n"
                             "  - image.random_resized_crop: {size: 24}\n"
                             "  - image.flip: {}\n"
                             "  - image.normalize: {mean: imagenet, std: imagenet}\n"
                             "  - tensor.layout: {order: chw}\n"
                             "  - batch.stack: {size: 2}\n";

static const char indexed[] =
    "headrace: 1\n"
    "params:\n"
    "  data: {type: path}\n"
    "  index: {type: path}\n"
    "pipeline:\n"
    "  - source.files: {path: \"${data}\", index: \"${index}\"}\n"
    "  - batch.stack: {size: 2}\n";

static const char joined[] =
    "headrace: 1\n"
    "params:\n"
    "  data: {type: path}\n"
    "  index: {type: path}\n"
    "pipeline:\n"
    "  - source.files: {path: \"${data}\"}\n"
    "    name: left\n"
    "  - source.files: {path: \"${data}\", index: \"${index}\", paths: true}\n"
    "    inputs: []\n"
    "  - record.select: {fields: [path]}\n"
    "  - order.take: {count: 1}\n"
    "    name: right\n"
    "  - flow.join: {on: stem, prefix: [l_, r_], how: left, fill: {r_path: none}}\n"
    "    inputs: [left, right]\n"
    "  - batch.stack: {size: 2, ragged: true}\n";

/* By keys that steps make. */
static const char made[] = "headrace: 1\n"
                           "params:\n"
                           "  data: {type: path}\n"
                           "  index: {type: path}\n"
                           "pipeline:\n"
                           "  - source.list: {path: \"${data}/../words\"}\n"
                           "  - text.lower: {}\n"
                           "    name: left\n"
                           "  - source.list: {path: \"${data}/../words\"}\n"
                           "    inputs: []\n"
                           "  - text.lower: {}\n"
                           "  - record.rename: {fields: {text: word}}\n"
                           "    name: right\n"
                           "  - flow.join: {left_on: text, right_on: word}\n"
                           "    inputs: [left, right]\n"
                           "  - batch.stack: {size: 2, ragged: true}\n";

static const char stages[] =
    "headrace: 1\n"
    "params:\n"
    "  data: {type: path}\n"
    "  index: {type: path}\n"
    "pipeline:\n"
    "  - source.files: {path: \"${data}\", labels: folder, paths: true}\n"
    "  - order.split: {fractions: [0.9, 0.1], part: 0, by: label, group: '.*'}\n"
    "  - image.decode: {}\n"
    "  - image.color_jitter: {brightness: 0.4, hue: 0.1}\n"
    "  - image.rotate: {degrees: 20}\n"
    "  - record.filter: {expr: \"label != 1\"}\n"
    "  - order.shuffle: {window: 2}\n"
    "  - batch.pad: {size: 2}\n"
    "  - batch.unbatch: {}\n"
    "  - image.gaussian_blur: {size: 5}\n"
    "  - batch.pad: {size: 2, lengths: image}\n";

static const char buckets[] =
    "headrace: 1\n"
    "params:\n"
    "  data: {type: path}\n"
    "  index: {type: path}\n"
    "pipeline:\n"
    "  - source.list: {path: \"${data}/../words\"}\n"
    "  - order.repeat: {count: 15}\n"
    "  - batch.bucket: {by: text, boundaries: [2, 4], elements: 6, coordinated: true}\n";

struct torture {
    const char *text;
    int threads;
    enum hr_on_error on_error;
    bool save;     /* also save the state after each batch */
    bool plan;     /* print the plan and run it as text */
    int64_t world; /* the run is of its last rank */
};

static char photos[512], names[512], ledger[512];

static void prepare(void)
{
    const struct hr_synth_photos what = {
        .seed = 1, .count = 3, .classes = 3, .width = 60, .height = 44};

    char words[512];

    if (photos[0] != '\0')
        return;
    snprintf(words, sizeof words, "%s/words", check_temp_dir());
    CHECK_OK(hr__file_replace(words, "One\none\nTwo\n", 12, NULL));
    snprintf(photos, sizeof photos, "%s/photos", check_temp_dir());
    snprintf(names, sizeof names, "%s/names", check_temp_dir());
    snprintf(ledger, sizeof ledger, "%s/ledger", check_temp_dir());
    CHECK_OK(hr_synth_photos(photos, &what, NULL, NULL, NULL));
}

static enum hr_err take_all(const struct torture *t, struct hr_iter *iter,
                            struct hr_error *error, int64_t *ret_records)
{
    struct hr_batch *batch;
    enum hr_err code;
    char *state;

    while ((code = hr_iter_next(iter, &batch, error)) == HR_OK) {
        *ret_records += hr_batch_records(batch);
        hr_batch_unref(batch);
        if (!t->save)
            continue;
        code = hr_iter_save(iter, &state, error);
        if (code != HR_OK)
            return code;
        hr_free(state);
    }
    return code;
}

static enum hr_err
run(const struct torture *t, struct hr_error *error, int64_t *ret_records)
{
    const struct hr_graph_param params[] = {
        {"data",  photos},
        {"index", names }
    };
    struct hr_iter_options options;
    struct hr_graph *graph = NULL;
    struct hr_iter *iter = NULL;
    char *plan = NULL;
    enum hr_err code;

    hr_iter_options_init(&options);
    options.threads = t->threads;
    options.variant = t->threads == 0 ? HR_VARIANT_INLINE : HR_VARIANT_THREADS;
    options.on_error = t->on_error;
    options.ledger = t->on_error == HR_ON_ERROR_FAIL ? NULL : ledger;
    options.world = t->world;
    options.rank = t->world > 0 ? t->world - 1 : 0;
    options.even = t->world > 0 ? HR_EVEN_REPEAT : HR_EVEN_NONE;
    *ret_records = 0;
    code = hr_graph_parse(t->text, strlen(t->text), "t.yaml", params, 2, &graph, error);
    if (code == HR_OK && t->plan)
        code = hr_graph_plan(graph, &options, HR_GRAPH_YAML, &plan, error);
    options.plan = plan;
    if (code == HR_OK)
        code = hr_iter_open(graph, &options, &iter, error);
    hr_free(plan);
    if (code == HR_OK)
        code = take_all(t, iter, error, ret_records);
    hr_iter_close(iter);
    hr_graph_unref(graph);
    return code;
}

/* Runs once with the n-th call of these kinds failing; false if there were fewer
 * calls. */
static bool run_faulty(const struct torture *t, unsigned kinds, uint64_t nth)
{
    struct hr_error error = {0};
    int64_t records;
    enum hr_err code;
    uint64_t calls;

    unlink(names);
    unlink(ledger);
    hr__fault_arm(kinds, nth);
    code = run(t, &error, &records);
    calls = hr__fault_calls();
    hr__fault_arm(0, 0);
    CHECK(code != HR_OK);
    if (calls < nth)
        CHECK_ERR(HR_ERR_END, code);
    if (code != HR_ERR_END && error.message[0] == '\0')
        check_failed(__FILE__, __LINE__, "call %llu of kinds %u: %s without a message",
                     (unsigned long long)nth, kinds, hr_err_name(code));
    return calls >= nth;
}

static void torture(const struct torture *t, unsigned kinds)
{
    uint64_t nth = 1;

    prepare();
    while (run_faulty(t, kinds, nth)) {
        CHECK(nth < 1000000);
        nth++;
    }
    printf("# %llu calls\n", (unsigned long long)nth - 1);
}

#define FILES (HR_FAULT_OPEN | HR_FAULT_READ | HR_FAULT_WRITE)

TEST(any_failing_allocation_ends_a_run_inline)
{
    torture(&(struct torture){vision, 0, HR_ON_ERROR_FAIL, true, false}, HR_FAULT_ALLOC);
    torture(&(struct torture){stages, 0, HR_ON_ERROR_SKIP, true, false}, HR_FAULT_ALLOC);
    torture(&(struct torture){indexed, 0, HR_ON_ERROR_SKIP, false, false},
            HR_FAULT_ALLOC);
    torture(&(struct torture){joined, 0, HR_ON_ERROR_FAIL, false, false}, HR_FAULT_ALLOC);
    torture(&(struct torture){made, 0, HR_ON_ERROR_FAIL, false, false}, HR_FAULT_ALLOC);
    torture(&(struct torture){buckets, 0, HR_ON_ERROR_FAIL, true, false}, HR_FAULT_ALLOC);
    torture(&(struct torture){buckets, 0, HR_ON_ERROR_FAIL, true, .world = 3},
            HR_FAULT_ALLOC);
}

TEST(any_failing_allocation_ends_a_run_in_threads)
{
    torture(&(struct torture){vision, 2, HR_ON_ERROR_SUBSTITUTE, true, false},
            HR_FAULT_ALLOC);
    torture(&(struct torture){stages, 2, HR_ON_ERROR_FAIL, false, false}, HR_FAULT_ALLOC);
}

TEST(any_failing_allocation_ends_a_run_of_a_plan)
{
    const struct torture one = {stages, 0, HR_ON_ERROR_FAIL, false, .plan = true};

    torture(&one, HR_FAULT_ALLOC);
}

TEST(any_failing_open_read_or_write_follows_the_policy)
{
    for (int policy = HR_ON_ERROR_FAIL; policy <= HR_ON_ERROR_SUBSTITUTE; policy++)
        for (int threads = 0; threads < 3; threads += 2) {
            const struct torture one = {vision, threads, (enum hr_on_error)policy, false,
                                        false};
            const struct torture two = {stages, threads, (enum hr_on_error)policy, false,
                                        false};

            torture(&one, FILES);
            torture(&two, FILES);
            torture(&(struct torture){indexed, threads, one.on_error, false, false},
                    FILES);
        }
}

TEST(any_thread_that_fails_to_start_ends_the_run)
{
    torture(&(struct torture){vision, 4, HR_ON_ERROR_FAIL, false, false},
            HR_FAULT_THREAD);
    torture(&(struct torture){stages, 4, HR_ON_ERROR_FAIL, false, false},
            HR_FAULT_THREAD);
}
