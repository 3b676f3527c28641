/*
 * distance.c - how far mode close is from mode exact, in grey levels.
 *
 * The reference is mode exact without composition, so that a composition bug would show
 * here too. `headrace explain --measure` compares the modes of any graph.
 */
#include "passes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const float std_of[3] = {.229f, .224f, .225f};

static struct hr_iter *open_inline(const char *dir, const char *mode, bool fuse)
{
    struct hr_graph_param params[] = {
        {"data",  dir },
        {"mode",  mode},
        {"batch", "50"}
    };
    struct hr_graph *graph = bench_example("vision_rrc", params, 3);
    struct hr_iter_options options;
    struct hr_error error = {0};
    struct hr_iter *iter = NULL;

    hr_iter_options_init(&options);
    options.variant = HR_VARIANT_INLINE;
    options.fuse = fuse;
    bench_must(hr_iter_open(graph, &options, &iter, &error), &error);
    hr_graph_unref(graph);
    return iter;
}

/* Sum of absolute differences of one photo's two tensors, in grey levels. */
static double difference(const float *a, const float *b, int64_t plane)
{
    double sum = 0;

    for (int c = 0; c < 3; c++)
        for (int64_t i = 0; i < plane; i++)
            sum += 255 * std_of[c] * fabsf(a[c * plane + i] - b[c * plane + i]);
    return sum / (double)(3 * plane);
}

struct distance {
    double sum, worst, photos, over_1;
};

static void
compare(const struct hr_batch *a, const struct hr_batch *b, struct distance *distance)
{
    struct hr_field_view one, two;
    struct hr_error error = {.message = "the batches differ in shape"};

    bench_must(hr_batch_find(a, "image", &one), &error);
    bench_must(hr_batch_find(b, "image", &two), &error);
    if (one.bytes != two.bytes || one.ndim != 4 || one.dims[1] != 3)
        bench_die("the batches differ in shape");
    for (int64_t i = 0; i < one.dims[0]; i++) {
        int64_t plane = one.dims[2] * one.dims[3];
        double d = difference((const float *)one.data + 3 * plane * i,
                              (const float *)two.data + 3 * plane * i, plane);

        distance->sum += d;
        distance->worst = d > distance->worst ? d : distance->worst;
        distance->photos++;
        distance->over_1 += d > 1;
    }
}

void pass_distance(struct bench *bench, const char *dir, double limit)
{
    struct hr_iter *close = open_inline(dir, "close", true);
    struct hr_iter *reference = open_inline(dir, "exact", false);
    struct distance distance = {0};
    struct hr_error error = {0};
    struct hr_batch *a = NULL, *b = NULL;
    enum hr_err code;

    while ((code = hr_iter_next(close, &a, &error)) == HR_OK) {
        bench_must(hr_iter_next(reference, &b, &error), &error);
        compare(a, b, &distance);
        hr_batch_unref(a);
        hr_batch_unref(b);
    }
    if (code != HR_ERR_END)
        bench_must(code, &error);
    hr_iter_close(close);
    hr_iter_close(reference);
    bench_fact(bench, "close to exact",
               "mean %.3f grey levels, worst photo %.2f, over 1: %.0f of %.0f",
               distance.sum / distance.photos, distance.worst, distance.over_1,
               distance.photos);
    bench_claim_value(bench, "mean difference of close from exact unfused, grey levels",
                      distance.sum / distance.photos, false, limit);
}
