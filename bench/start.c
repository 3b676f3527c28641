/*
 * start.c - make bench B=start: time from the start of a process to its first batch, with
 * as many files as ImageNet has.
 *
 * The files are empty and the batch holds their paths: this measures finding them. `find
 * DIR -type f | wc -l` lists the same folders in the same round. Names stay in the page
 * cache. The folders are in the build folder and are created once.
 */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/cpu.h"
#include "headrace/dataset.h"

#define FILES 1281167
#define FOLDERS 1000

static const char listing[] = "find DIR -type f | wc -l";
static const char plain[] = "first batch, no index";
static const char saved[] = "first batch, saved index";
static const char changed[] = "first batch, one folder changed";

/* ---- the child: one start ---- */

static struct hr_graph *paths_graph(const char *dir, const char *index)
{
    struct hr_graph *graph = hr_graph_create();
    struct hr_node node = {0};
    struct hr_error error = {0};
    char params[8400];

    if (graph == NULL)
        bench_die("out of memory");
    snprintf(params, sizeof(params), "{path: '%s', paths: true%s%s%s}", dir,
             index[0] != '\0' ? ", index: '" : "", index, index[0] != '\0' ? "'" : "");
    bench_must(
        hr_graph_add(graph, "source.files", "files", NULL, 0, params, &node, &error),
        &error);
    bench_must(
        hr_graph_add(graph, "order.shuffle", "order", &node, 1, "{}", &node, &error),
        &error);
    bench_must(hr_graph_add(graph, "record.select", "paths", &node, 1, "{fields: [path]}",
                            &node, &error),
               &error);
    bench_must(hr_graph_add(graph, "batch.stack", "batch", &node, 1, "{size: 256}", &node,
                            &error),
               &error);
    return graph;
}

/* Prints: seconds from main() to the first batch, number of names, bytes of memory they
 * take, peak memory. */
static int child(const char *dir, const char *index)
{
    double began = bench_now();
    uint64_t before = hr__rss_bytes(), held;
    struct hr_graph *graph = paths_graph(dir, index);
    struct hr_iter_options options;
    struct hr_error error = {0};
    struct hr_iter *iter = NULL;
    struct hr_batch *batch = NULL;

    bench_must(hr_graph_freeze(graph, &error), &error);
    held = hr__rss_bytes() - before;
    hr_iter_options_init(&options);
    bench_must(hr_iter_open(graph, &options, &iter, &error), &error);
    bench_must(hr_iter_next(iter, &batch, &error), &error);
    printf("%.6f %lld %llu %llu\n", bench_now() - began,
           (long long)hr_graph_record_count(graph), (unsigned long long)held,
           (unsigned long long)(hr__rss_peak_bytes() - before));
    fflush(stdout);
    _exit(0);
}

struct outcome {
    double seconds; /* in the child */
    long long names;
    unsigned long long held, peak;
};

static struct outcome start(struct bench *bench, const char *row, const char *self,
                            const char *dir, const char *index)
{
    const char *args[] = {self, "--child", dir, index, NULL};
    struct outcome outcome;
    char line[160];
    double took = bench_child(line, sizeof(line), args);

    if (sscanf(line, "%lf %lld %llu %llu", &outcome.seconds, &outcome.names,
               &outcome.held, &outcome.peak) != 4)
        bench_die("a start failed: %s", line);
    if (row != NULL)
        bench_add(bench, row, took * 1000, -1);
    return outcome;
}

/* ---- the parent ---- */

static void make_names(const char *dir, const char *done)
{
    struct hr_error error = {0};
    FILE *file;

    if (access(done, F_OK) == 0)
        return;
    fprintf(stderr, "bench: making %d empty files in %s, once\n", FILES, dir);
    bench_must(hr_synth_names(dir, FILES, FOLDERS, NULL, NULL, &error), &error);
    file = fopen(done, "w");
    if (file == NULL)
        bench_die("cannot write %s", done);
    fclose(file);
}

/* Adds a file to one folder, or removes it. */
static void change(const char *dir, bool add)
{
    char path[4200];
    FILE *file;

    snprintf(path, sizeof(path), "%s/bench_new", dir);
    if (add && mkdir(path, 0777) != 0 && access(path, F_OK) != 0)
        bench_die("cannot make %s", path);
    snprintf(path, sizeof(path), "%s/bench_new/new.jpg", dir);
    if (!add) {
        unlink(path);
        return;
    }
    file = fopen(path, "w");
    if (file == NULL)
        bench_die("cannot write %s", path);
    fclose(file);
}

static void run_round(struct bench *bench, const char *self, const char *dir,
                      const char *index, struct outcome ret[3])
{
    char command[4300], line[160];
    const char *find[] = {"/bin/sh", "-c", command, NULL};
    struct hr_index_result result;
    struct hr_error error = {0};

    snprintf(command, sizeof(command), "find '%s' -type f | wc -l", dir);
    bench_add(bench, listing, bench_child(line, sizeof(line), find) * 1000, -1);
    ret[0] = start(bench, plain, self, dir, "");
    bench_must(hr_index_write(dir, index, &result, &error), &error);
    ret[1] = start(bench, saved, self, dir, index);
    change(dir, true);
    ret[2] = start(bench, changed, self, dir, index);
    bench_must(hr_index_write(dir, index, &result, &error), &error);
    change(dir, false);
    bench_must(hr_index_write(dir, index, &result, &error), &error);
    if (ret[2].names != ret[1].names + 1)
        bench_die("the index missed a new file");
    if (bench->row_count > 0 && bench->rows[0].count == 1)
        bench_fact(bench, "index",
                   "%llu files, %.1f bytes each; changed: %llu of %llu folders read",
                   (unsigned long long)result.files,
                   (double)result.bytes / (double)result.files,
                   (unsigned long long)result.folders_rescanned,
                   (unsigned long long)result.folders);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    char dir[4096], done[4096], index[4096], self[4096];
    struct outcome last[3] = {0};

    if (argc == 4 && strcmp(argv[1], "--child") == 0)
        return child(argv[2], argv[3]);
    bench_init(&bench, argc, argv, "start",
               "1,281,167 names in 1000 folders -> first batch of 256 paths, shuffled",
               "ms");
    bench_path(dir, sizeof(dir), "names");
    bench_path(done, sizeof(done), "names.done");
    bench_path(index, sizeof(index), "names.index");
    bench_path(self, sizeof(self), "start");
    make_names(dir, done);
    change(dir, true);
    change(dir, false);
    unlink(index);
    for (int i = 0; i < bench.rounds; i++)
        run_round(&bench, self, dir, index, last);
    bench_fact(&bench, "memory",
               "no index: %.1f bytes per name, peak %.1f; index: %.1f, peak %.1f",
               (double)last[0].held / (double)last[0].names,
               (double)last[0].peak / (double)last[0].names,
               (double)last[1].held / (double)last[1].names,
               (double)last[1].peak / (double)last[1].names);
    bench_claim_ratio(&bench, "no index / find", plain, listing, false, false, 1.2);
    bench_claim_value(&bench, "saved index, ms", bench_median(&bench, saved), false, 100);
    bench_claim_value(&bench, "bytes of memory per name, no index",
                      (double)last[0].held / (double)last[0].names, false, 64);
    bench_print(&bench);
    return 0;
}
