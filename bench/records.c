/*
 * records.c - make bench B=records: records of 1 kB from files in the page cache to
 * batches, on one core: a text of 1000 bytes and a number, all of it delivered, checksums
 * on. The yardstick is reading the container's bytes, of which nothing is made. Files are
 * read back before the first round: the page cache keeps what was read from a disk in
 * larger folios than what was written, and reads of it take less time.
 */
#include "measure.h"

#include "headrace/pack.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORDS 100000
#define EPOCHS 10
#define PIECE ((size_t)256 << 10)
#define STACK "  - batch.stack: {size: 256}\n"

static char folder[4096];

static struct hr_graph *parse(const char *text)
{
    struct hr_error error = {0};
    struct hr_graph *graph = NULL;

    bench_must(hr_graph_parse(text, strlen(text), "bench", NULL, 0, &graph, &error),
               &error);
    bench_must(hr_graph_freeze(graph, &error), &error);
    return graph;
}

/* ---- data ---- */

static void write_lines(const char *path)
{
    FILE *file = fopen(path, "w");
    uint64_t number = 1;
    char line[1001];

    if (file == NULL)
        bench_die("cannot write %s", path);
    for (int i = 0; i < RECORDS; i++) {
        for (int k = 0; k < 1000; k++) {
            number = number * 6364136223846793005u + 1442695040888963407u;
            line[k] = (char)('a' + (number >> 60));
        }
        line[1000] = '\n';
        if (fwrite(line, 1, sizeof line, file) != sizeof line)
            bench_die("cannot write %s", path);
    }
    if (fclose(file) != 0)
        bench_die("cannot write %s", path);
}

static void pack(const char *text, enum hr_pack_format format, const char *prefix)
{
    struct hr_graph *graph = parse(text);
    struct hr_pack_options options;
    struct hr_iter_options run;
    struct hr_error error = {0};

    hr_iter_options_init(&run);
    hr_pack_options_init(&options);
    options.format = format;
    options.folder = folder;
    options.prefix = prefix;
    options.shard_bytes = (uint64_t)64 << 20;
    bench_must(hr_pack(graph, &run, &options, NULL, &error), &error);
    hr_graph_unref(graph);
}

static void make_data(void)
{
    char text[8192], lines[4200];
    struct stat info;

    bench_path(folder, sizeof folder, "records-data");
    mkdir(folder, 0777);
    snprintf(lines, sizeof lines, "%s/lines.txt", folder);
    if (stat(lines, &info) != 0 || info.st_size != (off_t)RECORDS * 1001)
        write_lines(lines);
    snprintf(text, sizeof text,
             "headrace: 1\npipeline:\n  - source.list: {path: '%s'}\n    name: text\n"
             "  - source.range: {n: %d}\n    name: number\n"
             "  - flow.zip: {}\n    inputs: [text, number]\n",
             lines, RECORDS);
    pack(text, HR_PACK_RECORDS, "own");
    pack(text, HR_PACK_TAR, "tar");
    snprintf(text, sizeof text, "headrace: 1\npipeline:\n  - source.list: {path: '%s'}\n",
             lines);
    pack(text, HR_PACK_TFRECORD, "tfrecord");
}

/* ---- plain reads ---- */

/* Reads a file to its end. */
static void read_all(int fd, char *piece)
{
    ssize_t got;

    for (off_t at = 0; (got = pread(fd, piece, PIECE, at)) > 0; at += got)
        ;
    if (got < 0)
        bench_die("cannot read a file of %s", folder);
}

/* Reads the files of a pattern; `afresh`: from the disk. */
static void read_files(const char *pattern, bool afresh)
{
    char path[8192], *piece = malloc(PIECE);
    glob_t files;

    snprintf(path, sizeof path, "%s/%s", folder, pattern);
    if (piece == NULL || glob(path, 0, NULL, &files) != 0)
        bench_die("there are no files %s", path);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        int fd = open(files.gl_pathv[i], O_RDONLY | O_CLOEXEC);

        if (fd < 0)
            bench_die("cannot open %s", files.gl_pathv[i]);
        if (afresh && fsync(fd) == 0)
            (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        read_all(fd, piece);
        close(fd);
    }
    globfree(&files);
    free(piece);
}

#define PLAIN "bytes of the container, pread"

static void add_plain(struct bench *bench)
{
    double wall = bench_now(), cpu = bench_cpu_seconds();
    double scale = 1e9 / RECORDS / EPOCHS;

    for (int i = 0; i < EPOCHS; i++)
        read_files("own-*.records", false);
    wall = bench_now() - wall;
    cpu = bench_cpu_seconds() - cpu;
    bench_add(bench, PLAIN, wall * scale, cpu * scale);
}

/* ---- rows ---- */

static const struct row {
    const char *name, *op, *rest; /* the folder is between the last two */
    bool shuffled;
} rows[] = {
    {"lines of a text, no checksums", "source.list",     "/lines.txt'}",           false},
    {"records in order",              "source.records",  "/own-*.records'}",       false},
    {"records, shuffled",             "source.records",  "/own-*.records'}",       true },
    {"tar in order",                  "source.tar",
     "/tar-*.tar', fields: {text: text.txt, value: value.cls}}",                   false},
    {"TFRecord in order",             "source.tfrecord", "/tfrecord-*.tfrecord'}", false},
    {"source.lines in order",         "source.lines",    "/lines.txt'}",           false},
    {"source.lines, shuffled",        "source.lines",    "/lines.txt'}",           true },
};
#define ROWS (sizeof rows / sizeof rows[0])

static struct hr_graph *open_row(const struct row *row)
{
    char text[8192];

    snprintf(text, sizeof text, "headrace: 1\npipeline:\n  - %s: {path: '%s%s\n%s" STACK,
             row->op, folder, row->rest, row->shuffled ? "  - order.shuffle: {}\n" : "");
    return parse(text);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct hr_graph *graphs[ROWS];
    struct hr_iter_options options;

    bench_init(&bench, argc, argv, "records",
               "records of 1 kB from the page cache to batches of 256, inline on one "
               "core",
               "ns/record");
    bench.cpu_heading = "CPU ns";
    make_data();
    for (size_t i = 0; i < ROWS; i++)
        graphs[i] = open_row(&rows[i]);
    hr_iter_options_init(&options);
    options.variant = HR_VARIANT_INLINE;
    options.epochs = EPOCHS;
    bench_pin(1);
    read_files("*", true);
    for (int i = 0; i < bench.rounds; i++) {
        add_plain(&bench);
        for (size_t k = 0; k < ROWS; k++)
            bench_add_run(&bench, rows[k].name, graphs[k], &options,
                          (int64_t)RECORDS * EPOCHS);
    }
    for (size_t i = 0; i < ROWS; i++)
        hr_graph_unref(graphs[i]);
    bench_claim_value(&bench, "records in order, CPU ns (5 M/s)",
                      bench_median_cpu(&bench, rows[1].name), false, 200);
    bench_claim_value(&bench, "records shuffled, CPU ns (1 M/s)",
                      bench_median_cpu(&bench, rows[2].name), false, 1000);
    bench_claim_value(&bench, "tar in order, CPU ns (3 M/s)",
                      bench_median_cpu(&bench, rows[3].name), false, 333);
    bench_claim_value(&bench, "TFRecord in order, CPU ns (3 M/s)",
                      bench_median_cpu(&bench, rows[4].name), false, 333);
    bench_print(&bench);
    return 0;
}
