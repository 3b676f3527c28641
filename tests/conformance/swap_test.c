/*
 * tests/conformance/swap_test.c - nodes that may change places give the records that
 * hr__swap() promises: both orders are run.
 */
#include "tests/conformance/photos.h"
#include "tests/support/check.h"
#include "tests/support/outcome.h"

#include <math.h>
#include <stdlib.h>

#include "graph/graph.h"
#include "opt/swap.h"

#define HEAD                                                                             \
    "headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"                            \
    "  - source.files: {path: \"${data}\", labels: folder}\n"                            \
    "  - order.shuffle: {}\n  - order.take: {count: 16}\n"

/* Two nodes between what makes their input and what batches their output. */
static struct hr_graph *
make(const char *before, const char *a, const char *b, const char *after,
     struct outcome_job *ret_job, struct hr_error *error)
{
    static char text[4096];
    struct hr_graph *graph;

    snprintf(text, sizeof text, HEAD "%s%s%s%s", before, a, b, after);
    *ret_job = outcome_job_text(text);
    ret_job->params[ret_job->param_count++] =
        (struct hr_graph_param){"data", photos_good()};
    ret_job->options.seed = check_seed();
    ret_job->first = true;
    graph = outcome_graph(ret_job, error);
    if (graph != NULL && hr_graph_freeze(graph, error) != HR_OK) {
        hr_graph_unref(graph);
        return NULL;
    }
    return graph;
}

static uint32_t find(const struct hr_graph *graph, const char *name)
{
    for (uint32_t i = 0; i < graph->count; i++)
        if (strcmp(graph->nodes[i].name, name) == 0)
            return i;
    check_failed(__FILE__, __LINE__, "no node '%s'", name);
}

/* The largest difference of two batches' images, in parts of the range of values. */
static double difference(const struct hr_batch *x, const struct hr_batch *y)
{
    double most = 0, low = HUGE_VAL, high = -HUGE_VAL;
    struct hr_field_view a, b;

    CHECK_OK(hr_batch_find(x, "image", &a));
    CHECK_OK(hr_batch_find(y, "image", &b));
    CHECK(a.bytes == b.bytes && a.dtype == b.dtype);
    for (size_t i = 0; i < a.bytes / hr_dtype_size(a.dtype); i++) {
        double p = a.dtype == HR_U8 ? ((const uint8_t *)a.data)[i]
                                    : (double)((const float *)a.data)[i];
        double q = b.dtype == HR_U8 ? ((const uint8_t *)b.data)[i]
                                    : (double)((const float *)b.data)[i];

        most = fmax(most, fabs(p - q));
        low = fmin(low, p);
        high = fmax(high, p);
    }
    return most / (high - low);
}

/* Of the range: a level of 255. */
#define TOLERANCE (1.0 / 255)

static int swapped[3]; /* pairs by what they need */
static double farthest;

/* Runs both orders if they are allowed to be equal or close. */
static void
check_pair(const char *before, const char *first, const char *second, const char *after)
{
    struct outcome_job written_job, swapped_job;
    struct outcome *written, *other;
    struct hr_error error = {0};
    struct hr_graph *graph = make(before, first, second, after, &written_job, &error);
    char text[4096];
    struct hr_swap swap;
    const char *wrong;

    if (graph == NULL)
        return; /* the order is none */
    hr__swap(graph, find(graph, "first"), find(graph, "second"), &swap);
    CHECK(swap.reason[0] != '\0');
    hr_graph_unref(graph);
    if (!swap.allowed)
        return;
    swapped[swap.needs]++;
    snprintf(text, sizeof text, "%s", written_job.text);
    written_job.text = text;
    graph = make(before, second, first, after, &swapped_job, &error);
    if (graph == NULL)
        check_failed(__FILE__, __LINE__, "%s%s%s: %s", before, second, first,
                     error.message);
    hr_graph_unref(graph);
    if (swap.needs == HR_STRICTNESS_RELAXED)
        return;
    written = outcome_run(&written_job);
    other = outcome_run(&swapped_job);
    CHECK_ERR(HR_ERR_END, written->code);
    wrong = outcome_difference(written, other, 0);
    if (swap.needs == HR_STRICTNESS_EXACT && wrong != NULL)
        check_failed(__FILE__, __LINE__, "%s%s%s(%s): %s", before, first, second,
                     swap.reason, wrong);
    if (swap.needs == HR_STRICTNESS_CLOSE)
        farthest = fmax(farthest, difference(written->first, other->first));
    if (farthest > TOLERANCE)
        check_failed(__FILE__, __LINE__, "%s%s%s(%s): %g apart", before, first, second,
                     swap.reason, farthest);
    outcome_free(written);
    outcome_free(other);
}

#define STEP(words)                                                                      \
    {                                                                                    \
        "  - " words "\n    name: first\n", "  - " words "\n    name: second\n"          \
    }

static const char *const steps[][2] = {
    STEP("image.flip: {p: 0.5}"),
    STEP("image.grayscale: {p: 0.5, channels: 3}"),
    STEP("image.clip: {min: 20, max: 200}"),
    STEP("image.normalize: {mean: imagenet, std: imagenet}"),
    STEP("tensor.cast: {dtype: float32}"),
    STEP("image.resize: {size: 40}"),
    STEP("image.resize: {size: [30, 50], interpolation: nearest}"),
    STEP("image.center_crop: {size: 24}"),
    STEP("image.random_area_crop: {}"),
    STEP("image.random_resized_crop: {size: 32}"),
    STEP("image.color_jitter: {brightness: 0.3, contrast: 0.3}"),
    STEP("image.gaussian_blur: {size: 5}"),
    STEP("image.rotate: {degrees: [0, 5]}"),
    STEP("image.pad: {padding: 3}"),
    STEP("tensor.one_hot: {field: label, classes: 4}"),
    STEP("tensor.cast: {field: label, dtype: int32}"),
    STEP("record.filter: {expr: \"label < 3\"}"),
    STEP("record.rename: {fields: {label: class}}"),
    STEP("record.drop: {fields: [label]}"),
};

TEST(swapped_nodes_give_the_records_that_are_promised)
{
    static const char *const before[] = {
        "  - image.decode: {mode: exact}\n",
        "  - image.decode: {mode: close}\n",
        "  - image.decode: {mode: close}\n  - image.clip: {min: 0, max: 250}\n",
        "  - image.decode: {mode: exact}\n  - tensor.cast: {dtype: float32}\n",
    };
    size_t count = sizeof steps / sizeof steps[0];

    for (size_t h = 0; h < sizeof before / sizeof before[0]; h++)
        for (size_t a = 0; a < count; a++)
            for (size_t b = 0; b < count; b++)
                if (a != b)
                    check_pair(before[h], steps[a][0], steps[b][1],
                               "  - image.resize: {size: 20}\n    name: last\n"
                               "  - batch.stack: {size: 16}\n");
    printf("# %d pairs exact, %d close (at most %.2g of the range apart), %d relaxed\n",
           swapped[0], swapped[1], farthest, swapped[2]);
    CHECK(swapped[0] >= 100 && swapped[1] >= 10 && swapped[2] >= 10);
}
