/*
 * simclr.c - make bench B=simclr: the SimCLR views in their written order, composed and
 * with every node alone, beside decoding alone.
 */
#include "passes.h"

static const char full_1[] = "libjpeg-turbo, read + full decode, 1";
static const char written_1[] = "headrace, written order, 1 thread";
static const char apart_1[] = "headrace, unfused, 1 thread";

static void run_round(struct bench *bench, const struct photos *photos, const char *dir,
                      char *nodes, size_t room)
{
    struct pass pass = {.graph = "simclr", .dir = dir, .threads = 1};

    photos_decode(bench, full_1, photos, 1, true);
    pass_run(bench, written_1, &pass, nodes, room);
    pass.unfused = true;
    pass_run(bench, apart_1, &pass, NULL, 0);
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
    for (int i = 0; i < bench.rounds; i++)
        run_round(&bench, &photos, dir, nodes, sizeof(nodes));
    photos_finish(&photos);
    bench_fact(&bench, "us per record", "%s", nodes);
    bench_print(&bench);
    return 0;
}
