/*
 * jpeg.c - make bench B=jpeg: photos of three sizes to training batches, against
 * libjpeg-turbo only decoding them.
 *
 * Single passes: every photo once, then the next contender, so that neither caches nor
 * the branch predictor have seen the data; both sides read from the page cache. The graph
 * is examples/vision_rrc.yaml through the public API, with recycled batches of 16. Each
 * round has its own order and crops, because with few large photos a single draw of crops
 * weighs much. The first epoch of a run is compared with the second, which may use what
 * the first learned about the files (seek points). The codec by itself is measured in
 * jpeg_codec.c.
 */
#include "enlarge.h"

#include <stdio.h>
#include <string.h>

#include "core/cpu.h"

static const char full_1[] = "libjpeg-turbo, read + full decode, 1";
static const char full_2[] = "libjpeg-turbo, read + full decode, 2";
static const char close_1[] = "close, 1 thread";
static const char close_1_second[] = "close, 1 thread, second epoch";
static const char close_2[] = "close, 2 threads";
static const char close_2_second[] = "close, 2 threads, second epoch";
static const char close_avx2[] = "close, 1 thread, AVX2";

#define BATCH 16
#define STRING_OF(x) #x
#define STRING(x) STRING_OF(x)

struct set {
    struct enlarge how; /* name NULL: the photos unchanged */
    char group[96], path[4200];
    const char *dir;
    struct photos photos;
};

static struct set sets[] = {
    {.group = "photos as they are"                        },
    { .group = "doubled, 4:2:0, q85",
     .how = {.name = "doubled", .tiles = 1, .quality = 85}},
    { .group = "12 Mpx, one photo enlarged, 4:2:0, q90",
     .how = {"12mpx", 24, 4000, 3000, 1, 90}},
    {               .group = "12 Mpx, 16 photos side by side, 4:2:0, q87",
     .how = {"12mpx-mosaic", 24, 4000, 3000, 4, 87}},
};
#define SETS ((int)(sizeof(sets) / sizeof(sets[0])))

static void load_sets(struct bench *bench, const char *dir)
{
    for (int i = 0; i < SETS; i++) {
        struct set *set = &sets[i];
        size_t bytes = 0, length = strlen(set->group);

        set->dir = dir;
        if (set->how.name != NULL) {
            enlarge_set(&sets[0].photos, &set->how, set->path, sizeof(set->path));
            set->dir = set->path;
        }
        photos_load(&set->photos, set->dir);
        for (size_t k = 0; k < set->photos.count; k++)
            bytes += set->photos.list[k].bytes;
        snprintf(set->group + length, sizeof(set->group) - length, ": %zu of %.0f kB",
                 set->photos.count, (double)bytes / 1000 / (double)set->photos.count);
    }
    bench_fact(bench, "files", "each once per pass, in the page cache");
}

/* Three batches are in flight; a small set cannot spare that many records for warming
 * up. */
static int64_t warm_records(const struct set *set)
{
    return set->photos.count >= 4 * 3 * BATCH ? 3 * BATCH : 0;
}

static void
run_mode(struct bench *bench, const struct set *set, struct pass pass, const char *mode)
{
    char first[48], second[48];

    snprintf(first, sizeof(first), "%s, 1 thread", mode);
    snprintf(second, sizeof(second), "%s, 1 thread, second epoch", mode);
    pass.params[pass.param_count++] = (struct hr_graph_param){"mode", mode};
    pass_run_epochs(bench, first, second, &pass, warm_records(set));
}

static void run_set(struct bench *bench, const struct set *set, int round)
{
    struct pass pass = {
        .graph = "vision_rrc",
        .dir = set->dir,
        .params = {{"batch", STRING(BATCH)}},
        .param_count = 1,
        .threads = 1,
        .round = round,
    };

    bench_group(bench, set->group);
    photos_decode(bench, full_1, &set->photos, 1, true);
    pass_run_epochs(bench, close_1, close_1_second, &pass, warm_records(set));
    run_mode(bench, set, pass, "exact");
    run_mode(bench, set, pass, "fast");
    if (hr__isa() > HR_ISA_AVX2) {
        pass.avx2 = true;
        pass_run_epochs(bench, close_avx2, "close, 1 thread, AVX2, second epoch", &pass,
                        warm_records(set));
        pass.avx2 = false;
    }
    if (bench_cpus() < 2)
        return;
    pass.threads = 2;
    photos_decode(bench, full_2, &set->photos, 2, true);
    pass_run_epochs(bench, close_2, close_2_second, &pass, warm_records(set));
}

/* Wall clock and CPU time: on a machine with other load the latter is more stable. */
static void
claim_both(struct bench *bench, const char *what, const char *row, double limit)
{
    char text[96];

    snprintf(text, sizeof(text), "%s, wall clock", what);
    bench_claim_ratio(bench, text, row, full_1, false, true, limit);
    snprintf(text, sizeof(text), "%s, CPU time", what);
    bench_claim_ratio(bench, text, row, full_1, true, true, limit);
}

static void claim(struct bench *bench)
{
    bench_group(bench, sets[0].group);
    claim_both(bench, "first epoch / full decode (aim 2.2)", close_1, 1.8);
    claim_both(bench, "second epoch / full decode (aim 2.9)", close_1_second, 2.4);
    claim_both(bench, "AVX2 only / full decode",
               hr__isa() > HR_ISA_AVX2 ? close_avx2 : close_1, 1.5);
    if (bench_cpus() >= 2)
        bench_claim_ratio(bench, "2 threads / 1 thread, wall clock", close_2, close_1,
                          false, true, 1.9);
    for (int i = 2; i < SETS; i++) {
        bench_group(bench, sets[i].group);
        claim_both(bench,
                   i == 2 ? "12 Mpx enlarged / full decode"
                          : "12 Mpx mosaics / full decode",
                   close_1, 3.5);
    }
}

int main(int argc, char **argv)
{
    static struct bench bench;
    char path[4096];
    const char *dir;

    bench_init(&bench, argc, argv, "jpeg",
               "photos -> crop 224, flip, normalise -> f32 CHW, batches of 16",
               "photos/s");
    bench.cpu_heading = "per CPU s";
    dir = bench_photos(&bench, path, sizeof(path));
    load_sets(&bench, dir);
    for (int i = 0; i < bench.rounds; i++)
        for (int k = 0; k < SETS; k++)
            run_set(&bench, &sets[k], i);
    claim(&bench);
    pass_distance(&bench, dir, 0.4);
    bench_print(&bench);
    for (int k = 0; k < SETS; k++)
        photos_finish(&sets[k].photos);
    return 0;
}
