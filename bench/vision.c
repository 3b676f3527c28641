/*
 * vision.c - make bench B=vision: photos to training batches against decoding alone.
 *
 * The line to beat is libjpeg-turbo decoding the same files whole on the same cores and
 * doing nothing else. Batches go round: the consumer gives each back when it comes, as
 * training does that copies it to a device. Beside speed stands how far mode close is
 * from the reference, which is mode exact with every node alone.
 */
#include "passes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char full_1[] = "libjpeg-turbo, read + full decode, 1";
static const char full_2[] = "libjpeg-turbo, read + full decode, 2";
static const char close_1[] = "headrace close, 1 thread";
static const char close_2[] = "headrace close, 2 threads";
static const char exact_1[] = "headrace exact, 1 thread";
static const char apart_1[] = "headrace exact, unfused, 1 thread";

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

/* Sum of absolute differences in grey levels of one photo's two tensors. */
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

/* Mean absolute difference over all photos, same crops. */
static void measure_distance(struct bench *bench, const char *dir)
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
                      distance.sum / distance.photos, false, 1);
}

static void run_round(struct bench *bench, const struct photos *photos, const char *dir,
                      char *nodes, size_t room)
{
    struct pass pass = {.graph = "vision_rrc", .dir = dir, .threads = 1};

    photos_decode(bench, full_1, photos, 1, true);
    pass_run(bench, close_1, &pass, nodes, room);
    pass.params[0] = (struct hr_graph_param){"mode", "exact"};
    pass.param_count = 1;
    pass_run(bench, exact_1, &pass, NULL, 0);
    photos_decode(bench, "libjpeg-turbo, full decode only, 1", photos, 1, false);
    pass.unfused = true;
    pass_run(bench, apart_1, &pass, NULL, 0);
    pass.unfused = false;
    pass.params[0] = (struct hr_graph_param){"dtype", "float16"};
    pass_run(bench, "headrace close, float16, 1 thread", &pass, NULL, 0);
    if (bench_cpus() < 2)
        return;
    pass.param_count = 0;
    pass.threads = 2;
    photos_decode(bench, full_2, photos, 2, true);
    pass_run(bench, close_2, &pass, NULL, 0);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct photos photos;
    char path[4096], nodes[160] = "";
    const char *dir;

    bench_init(&bench, argc, argv, "vision",
               "photos -> crop 224, flip, normalise -> f32 CHW, batches of 256",
               "photos/s");
    bench.cpu_heading = "per CPU s";
    dir = bench_photos(&bench, path, sizeof(path));
    photos_load(&photos, dir);
    bench_fact(&bench, "files", "%zu, each once per pass, page cache", photos.count);
    for (int i = 0; i < bench.rounds; i++)
        run_round(&bench, &photos, dir, nodes, sizeof(nodes));
    photos_finish(&photos);
    bench_fact(&bench, "us per record", "%s", nodes);
    bench_claim_ratio(&bench, "close / full decode, 1 thread, wall clock", close_1,
                      full_1, false, true, 1.15);
    bench_claim_ratio(&bench, "close / full decode, 1 thread, CPU time", close_1, full_1,
                      true, true, 1.15);
    if (bench_cpus() >= 2) {
        bench_claim_ratio(&bench, "2 threads / 1 thread, wall clock", close_2, close_1,
                          false, true, 1.9);
        bench_claim_ratio(&bench, "close / full decode, 2 threads, wall clock", close_2,
                          full_2, false, true, 1.15);
    }
    measure_distance(&bench, dir);
    bench_print(&bench);
    return 0;
}
