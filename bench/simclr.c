/*
 * simclr.c - make bench B=simclr: the SimCLR views in their written order, composed and
 * not, compared with decoding alone; then pairs of views, as crops and as SimCLR has
 * them, from one shared decode of the photo and from two.
 */
#include "passes.h"

static const char full_1[] = "libjpeg-turbo, read + full decode, 1";
static const char written_1[] = "headrace, written order, 1 thread";
static const char apart_1[] = "headrace exact, unfused, 1 thread";

/* Pairs: sharing one image.decode, or with one each. */
#define SOURCE                                                                           \
    "headrace: 1\nparams: {data: {type: path}}\npipeline:\n"                             \
    "  - source.files: {path: \"${data}\"}\n"                                            \
    "  - order.shuffle: {}\n    name: photos\n"
#define DECODE(name, from)                                                               \
    "  - image.decode: {}\n    name: " name "\n    inputs: [" from "]\n"
#define CROP(from)                                                                       \
    "  - image.random_resized_crop: {size: 224}\n    inputs: [" from "]\n"               \
    "  - image.flip: {p: 0.5}\n"
#define COLOURS                                                                          \
    "  - tensor.cast: {dtype: float32}\n"                                                \
    "  - image.color_jitter: {brightness: 0.8, contrast: 0.8, saturation: 0.8, "         \
    "hue: 0.2}\n"                                                                        \
    "  - image.grayscale: {p: 0.2, channels: 3}\n"                                       \
    "  - image.gaussian_blur: {size: 23, sigma: [0.1, 2.0]}\n"
#define VIEW(name) "  - image.normalize: {mean: half, std: half}\n    name: " name "\n"
#define PAIR                                                                             \
    "  - flow.zip: {prefix: [a_, b_]}\n    inputs: [a, b]\n"                             \
    "  - batch.stack: {size: 64}\n"
#define PAIRS_SHARED(colours)                                                            \
    SOURCE DECODE("one", "photos") CROP("one") colours VIEW("a") CROP("one")             \
        colours VIEW("b") PAIR
#define PAIRS_APART(colours)                                                             \
    SOURCE DECODE("one", "photos") CROP("one") colours VIEW("a") DECODE("two", "photos") \
        CROP("two") colours VIEW("b") PAIR

/* Each by its first epoch, in which the photos are new, and its second. */
static const struct pair {
    const char *first, *second, *text;
} pairs[] = {
    {"crops, two decodes",        "crops, two decodes, epoch 2", PAIRS_APART("")      },
    {"crops, one decode",         "crops, one decode, epoch 2",  PAIRS_SHARED("")     },
    {"SimCLR views, two decodes", "SimCLR views, two, epoch 2",  PAIRS_APART(COLOURS) },
    {"SimCLR views, one decode",  "SimCLR views, one, epoch 2",  PAIRS_SHARED(COLOURS)},
};

/* Records are photos, with two views each. */
static void run_pairs(struct bench *bench, const char *dir, int round)
{
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct pass pass = {.graph = pairs[i].first,
                            .dir = dir,
                            .text = pairs[i].text,
                            .threads = 1,
                            .round = round};

        pass_run_epochs(bench, pairs[i].first, pairs[i].second, &pass, 128);
    }
}

static void report_gain(struct bench *bench)
{
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i += 2) {
        double spread[2], again[2];
        double first =
            bench_ratio(bench, pairs[i + 1].first, pairs[i].first, true, spread);
        double second =
            bench_ratio(bench, pairs[i + 1].second, pairs[i].second, true, again);

        bench_fact(bench, i == 0 ? "crops, one / two" : "views, one / two",
                   "by CPU %.2f (%.2f to %.2f), epoch 2 %.2f (%.2f to %.2f)", first,
                   spread[0], spread[1], second, again[0], again[1]);
    }
}

static void run_round(struct bench *bench, const struct photos *photos, const char *dir,
                      char *nodes, size_t room)
{
    struct pass pass = {.graph = "simclr", .dir = dir, .threads = 1};

    photos_decode(bench, full_1, photos, 1, true);
    pass_run(bench, written_1, &pass, nodes, room);
    pass.unfused = true;
    pass.params[pass.param_count++] = (struct hr_graph_param){"mode", "exact"};
    pass_run(bench, apart_1, &pass, NULL, 0);
    pass.param_count--;
    if (bench_cpus() < 2)
        return;
    pass.unfused = false;
    pass.threads = 2;
    pass_run(bench, "headrace, written order, 2 threads", &pass, NULL, 0);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct photos photos;
    char path[4096], nodes[160] = "";
    const char *dir;

    bench_init(
        &bench, argc, argv, "simclr",
        "photos -> f32, crop 244, flip, jitter, grey, blur, normalise, batches of 256",
        "photos/s");
    bench.cpu_heading = "per CPU s";
    dir = bench_photos(&bench, path, sizeof(path));
    photos_load(&photos, dir);
    for (int i = 0; i < bench.rounds; i++) {
        bench_group(&bench, "one view");
        run_round(&bench, &photos, dir, nodes, sizeof(nodes));
        bench_group(&bench, "pairs of views of a photo");
        run_pairs(&bench, dir, i);
    }
    photos_finish(&photos);
    report_gain(&bench);
    bench_fact(&bench, "us per record", "%s", nodes);
    bench_print(&bench);
    return 0;
}
