/*
 * vision.c - make bench B=vision: photos to training batches, against decoding alone.
 *
 * The baseline is libjpeg-turbo decoding the same whole files on the same cores and doing
 * nothing else. Batches are recycled: the consumer releases each on receipt, like
 * training that copies it to a device. In addition to speed it reports how far mode close
 * is from the reference, mode exact without composition.
 */
#include "passes.h"

static const char full_1[] = "libjpeg-turbo, read + full decode, 1";
static const char full_2[] = "libjpeg-turbo, read + full decode, 2";
static const char close_1[] = "headrace close, 1 thread";
static const char close_2[] = "headrace close, 2 threads";
static const char exact_1[] = "headrace exact, 1 thread";
static const char apart_1[] = "headrace exact, unfused, 1 thread";

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
    pass_distance(&bench, dir, 1);
    bench_print(&bench);
    return 0;
}
