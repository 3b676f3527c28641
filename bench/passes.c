/*
 * passes.c - see passes.h.
 */
#include "passes.h"

#include <fcntl.h>
#include <fts.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jpeglib.h>

#include "core/cpu.h"

/* ---- libjpeg-turbo alone ---- */

struct room {
    unsigned char *data;
    size_t bytes;
};

static unsigned char *grow(struct room *room, size_t bytes)
{
    if (bytes > room->bytes) {
        free(room->data);
        room->data = malloc(bytes);
        room->bytes = bytes;
    }
    if (room->data == NULL)
        bench_die("out of memory");
    return room->data;
}

static size_t read_file(const char *path, struct room *room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;

    if (size < 0 ||
        pread(fd, grow(room, (size_t)size + 1), (size_t)size, 0) != (ssize_t)size)
        bench_die("cannot read %s", path);
    close(fd);
    return (size_t)size;
}

static void ignore_message(j_common_ptr jpeg)
{
    (void)jpeg;
}

static void decode(struct jpeg_decompress_struct *jpeg, const unsigned char *data,
                   size_t bytes, struct room *image)
{
    unsigned char *pixels;
    size_t row_bytes;

    jpeg_mem_src(jpeg, data, (unsigned long)bytes);
    jpeg_read_header(jpeg, TRUE);
    if (jpeg->num_components < 4)
        jpeg->out_color_space = JCS_RGB;
    jpeg_start_decompress(jpeg);
    row_bytes = (size_t)jpeg->output_width * (size_t)jpeg->output_components;
    pixels = grow(image, row_bytes * (jpeg->output_height + 8));
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW rows[8];

        for (size_t i = 0; i < 8; i++)
            rows[i] = pixels + row_bytes * (jpeg->output_scanline + i);
        jpeg_read_scanlines(jpeg, rows, 8);
    }
    jpeg_finish_decompress(jpeg);
}

struct decoding {
    const struct photos *photos;
    atomic_size_t taken;
    bool read;
};

static void *decode_all(void *user)
{
    struct decoding *decoding = user;
    struct room file = {NULL, 0}, image = {NULL, 0};
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    size_t at;

    jpeg.err =
        jpeg_std_error(&errors); /* exits on a broken file, which must not be here */
    errors.output_message = ignore_message;
    jpeg_create_decompress(&jpeg);
    while ((at = atomic_fetch_add(&decoding->taken, 1)) < decoding->photos->count) {
        const struct photo *photo = &decoding->photos->list[at];

        if (decoding->read)
            read_file(photo->path, &file);
        decode(&jpeg, decoding->read ? file.data : photo->data, photo->bytes, &image);
    }
    jpeg_destroy_decompress(&jpeg);
    free(file.data);
    free(image.data);
    return NULL;
}

void photos_decode(struct bench *bench, const char *row, const struct photos *photos,
                   int threads, bool read)
{
    struct decoding decoding = {.photos = photos, .read = read};
    double wall, cpu, count = (double)photos->count;
    pthread_t other;

    bench_pin(threads);
    wall = bench_now();
    cpu = bench_cpu_seconds();
    if (threads > 1 && pthread_create(&other, NULL, decode_all, &decoding) != 0)
        bench_die("cannot start a thread");
    decode_all(&decoding);
    if (threads > 1)
        pthread_join(other, NULL);
    wall = bench_now() - wall;
    cpu = bench_cpu_seconds() - cpu;
    bench_pin(0);
    bench_add(bench, row, count / wall, count / cpu);
}

/* ---- the list ---- */

static void add_photo(struct photos *photos, const char *path)
{
    struct room room = {NULL, 0};
    struct photo photo = {.path = strdup(path)};

    if (photos->count % 1024 == 0)
        photos->list =
            realloc(photos->list, (photos->count + 1024) * sizeof(*photos->list));
    if (photos->list == NULL || photo.path == NULL)
        bench_die("out of memory");
    photo.bytes = read_file(path, &room);
    photo.data = room.data;
    if (photo.bytes < 2 || photo.data[0] != 0xff || photo.data[1] != 0xd8)
        bench_die("%s is not a JPEG; this benchmark compares JPEG decoders", path);
    photos->list[photos->count++] = photo;
}

static void shuffle(struct photos *photos)
{
    uint64_t state = 1;

    for (size_t i = photos->count; i > 1; i--) {
        struct photo photo = photos->list[i - 1];
        size_t at;

        state = state * 6364136223846793005u + 1442695040888963407u;
        at = (size_t)((state >> 33) % i);
        photos->list[i - 1] = photos->list[at];
        photos->list[at] = photo;
    }
}

void photos_load(struct photos *photos, const char *dir)
{
    char *const roots[] = {(char *)dir, NULL};
    FTS *walk = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL);
    FTSENT *entry;

    memset(photos, 0, sizeof(*photos));
    if (walk == NULL)
        bench_die("cannot read %s", dir);
    while ((entry = fts_read(walk)) != NULL)
        if (entry->fts_info == FTS_F && entry->fts_name[0] != '.')
            add_photo(photos, entry->fts_path);
    fts_close(walk);
    if (photos->count == 0)
        bench_die("no photos in %s", dir);
    shuffle(photos);
}

void photos_finish(struct photos *photos)
{
    for (size_t i = 0; i < photos->count; i++) {
        free(photos->list[i].path);
        free(photos->list[i].data);
    }
    free(photos->list);
}

/* ---- a graph ---- */

static struct hr_iter *open_iter(const struct pass *pass, struct hr_graph *graph)
{
    struct hr_iter_options options;
    struct hr_error error = {0};
    struct hr_iter *iter = NULL;

    hr_iter_options_init(&options);
    options.seed = 1 + (uint64_t)pass->round;
    options.epochs = 2;
    options.threads = pass->threads;
    options.fuse = !pass->unfused;
    bench_must(hr_iter_open(graph, &options, &iter, &error), &error);
    return iter;
}

/* Receives and releases batches until `records` have arrived. */
static void take(struct hr_iter *iter, int64_t records)
{
    struct hr_error error = {0};
    struct hr_batch *batch = NULL;

    while (records > 0) {
        bench_must(hr_iter_next(iter, &batch, &error), &error);
        records -= hr_batch_records(batch);
        hr_batch_unref(batch);
    }
}

static void format_nodes(const struct hr_iter *iter, char *text, size_t room)
{
    struct hr_iter_stats stats;
    struct hr_node_stats node;
    size_t length = 0;

    text[0] = '\0';
    hr_iter_stats(iter, &stats);
    for (size_t i = 0; i < stats.node_count && length < room; i++) {
        double us;

        if (hr_iter_node_stats(iter, i, &node) != HR_OK || node.records == 0)
            continue;
        us = node.seconds * 1e6 / (double)node.records;
        if (us >= .5)
            length += (size_t)snprintf(text + length, room - length, "%s%s %.0f",
                                       length > 0 ? ", " : "", node.op, us);
    }
}

/* A run in progress. */
struct running {
    struct hr_graph *graph;
    struct hr_iter *iter;
    int64_t records; /* of an epoch */
    enum hr_isa isa; /* to restore */
};

static void begin(const struct pass *pass, struct running *run)
{
    struct hr_error error = {0};
    struct hr_graph_param params[5] = {
        {"data", pass->dir}
    };

    memcpy(params + 1, pass->params, pass->param_count * sizeof(params[0]));
    bench_pin(pass->threads);
    run->isa = hr__isa();
    if (pass->avx2)
        hr__isa_limit(HR_ISA_AVX2);
    if (pass->text != NULL)
        bench_must(hr_graph_parse(pass->text, strlen(pass->text), pass->graph, params,
                                  pass->param_count + 1, &run->graph, &error),
                   &error);
    else
        run->graph = bench_example(pass->graph, params, pass->param_count + 1);
    run->iter = open_iter(pass, run->graph);
    run->records = hr_graph_record_count(run->graph);
}

static void end(struct running *run)
{
    hr_iter_close(run->iter);
    hr_graph_unref(run->graph);
    hr__isa_limit(run->isa);
    bench_pin(0);
}

/* Times the next `count` records. */
static void time_records(struct bench *bench, const char *row, const struct running *run,
                         int64_t count)
{
    double wall = bench_now(), cpu = bench_cpu_seconds();

    take(run->iter, count);
    wall = bench_now() - wall;
    cpu = bench_cpu_seconds() - cpu;
    bench_add(bench, row, (double)count / wall, (double)count / cpu);
}

void pass_run(struct bench *bench, const char *row, const struct pass *pass,
              char *ret_nodes, size_t room)
{
    struct running run;

    begin(pass, &run);
    take(run.iter, run.records);
    time_records(bench, row, &run, run.records);
    if (ret_nodes != NULL)
        format_nodes(run.iter, ret_nodes, room);
    end(&run);
}

void pass_run_epochs(struct bench *bench, const char *first, const char *second,
                     const struct pass *pass, int64_t warm)
{
    struct running run;

    begin(pass, &run);
    take(run.iter, warm);
    time_records(bench, first, &run, run.records - warm);
    time_records(bench, second, &run, run.records);
    end(&run);
}
