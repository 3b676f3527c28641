/*
 * cache.c - make bench B=cache: examples/vision_eval.yaml without a cache, with one in
 * memory and with one in a folder behind decode, resize and crop: the epoch that fills it
 * and the one that reads it, and the first epoch of a later run.
 */
#include "passes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEHIND "  - image.center_crop: {size: \"${size}\"}\n"

static const char plain_1[] = "no cache, epoch 1";
static const char plain_2[] = "no cache, epoch 2";
static const char memory_1[] = "in memory, epoch 1 fills it";
static const char memory_2[] = "in memory, epoch 2";
static const char folder_1[] = "in a folder, epoch 1 fills it";
static const char folder_2[] = "in a folder, epoch 2";
static const char later_1[] = "in a folder, a later run";
static const char later_2[] = "in a folder, its epoch 2";

/* The example's text with a line after the crop. */
static const char *text_with(const char *line)
{
    static char example[1 << 14], text[1 << 15];
    FILE *file = fopen(BENCH_SOURCE_ROOT "/examples/vision_eval.yaml", "rb");
    const char *at;

    if (file == NULL)
        bench_die("cannot open examples/vision_eval.yaml");
    example[fread(example, 1, sizeof(example) - 1, file)] = '\0';
    fclose(file);
    at = strstr(example, BEHIND);
    if (at == NULL)
        bench_die("examples/vision_eval.yaml has no line %s", BEHIND);
    at += strlen(BEHIND);
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - example), example, line, at);
    return text;
}

static void run_round(struct bench *bench, const char *dir, int threads, int round)
{
    char folder[4096], line[4200], command[4200];
    struct pass pass = {
        .graph = "vision_eval", .dir = dir, .threads = threads, .round = round};

    pass.params[pass.param_count++] = (struct hr_graph_param){"batch", "64"};
    pass.text = text_with("");
    pass_run_epochs(bench, plain_1, plain_2, &pass, 128);
    pass.text = text_with("  - flow.cache: {}\n");
    pass_run_epochs(bench, memory_1, memory_2, &pass, 128);
    bench_path(folder, sizeof(folder), "bench-cache");
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    snprintf(line, sizeof(line), "  - flow.cache: {folder: '%s'}\n", folder);
    if (system(command) != 0)
        bench_die("cannot remove %s", folder);
    pass.text = text_with(line);
    pass_run_epochs(bench, folder_1, folder_2, &pass, 128);
    pass_run_epochs(bench, later_1, later_2, &pass, 128);
    if (system(command) != 0)
        bench_die("cannot remove %s", folder);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    char path[4096];
    const char *dir;

    bench_init(&bench, argc, argv, "cache",
               "photos -> resized, cropped to 224 x 224, uint8 | cache | normalised, "
               "batches of 64",
               "photos/s");
    bench.cpu_heading = "per CPU s";
    dir = bench_photos(&bench, path, sizeof(path));
    for (int i = 0; i < bench.rounds; i++) {
        bench_group(&bench, "1 thread");
        run_round(&bench, dir, 1, i);
        if (bench_cpus() < 2)
            continue;
        bench_group(&bench, "2 threads");
        run_round(&bench, dir, 2, i);
    }
    bench_group(&bench, "1 thread");
    bench_claim_ratio(&bench, "epoch 2 from a folder / epoch 1 that fills it, by CPU",
                      folder_2, folder_1, true, true, 3);
    bench_claim_ratio(&bench, "epoch 2 from a folder / epoch 2 without, by CPU", folder_2,
                      plain_2, true, true, 3);
    bench_claim_ratio(&bench, "a later run / epoch 1 without, by CPU", later_1, plain_1,
                      true, true, 3);
    bench_print(&bench);
    return 0;
}
