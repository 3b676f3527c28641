/*
 * jpeg_decode.c - headrace jpeg decode: writes a window, optionally resized, as a PNG.
 *
 * With several threads the window is divided into strips of whole MCU rows; each thread
 * seeks to its strip using the seek points of --index, or ones made first.
 */
#include "headrace/dataset.h"
#include "jpeg.h"
#include "out.h"
#include "term.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 64

struct job {
    const struct jpeg_options *options;
    const struct jpeg_file *file;
    struct hr_jpeg_info info;
    struct hr_jpeg_worker *worker;
    struct hr_jpeg_entries *entries;
    double box[4];                   /* x, y, width, height; width 0: to the edges */
    int32_t width, height, channels; /* of the result */
    uint8_t *pixels;
    int threads; /* number actually used */
};

/* ---- the command line ---- */

static int read_box(const char *text, double *box)
{
    char *end = (char *)(uintptr_t)text;

    memset(box, 0, 4 * sizeof *box);
    if (text == NULL)
        return CLI_OK;
    for (int i = 0; i < 4; i++) {
        const char *from = end;

        box[i] = strtod(from, &end);
        if (end == from || !isfinite(box[i]) || fabs(box[i]) > 1e6 ||
            *end != (i < 3 ? ',' : '\0'))
            return cli_usage("--window expects X,Y,WIDTH,HEIGHT in pixels, not '%s'",
                             text);
        end += i < 3;
    }
    if (box[2] <= 0 || box[3] <= 0)
        return cli_usage("--window '%s' is empty", text);
    return CLI_OK;
}

static int read_size(const char *text, int32_t *ret_width, int32_t *ret_height)
{
    char *end;
    long width = strtol(text, &end, 10), height = 0;

    if (*end == 'x')
        height = strtol(end + 1, &end, 10);
    if (*end != '\0' || width < 1 || height < 1 || width > 65535 || height > 65535)
        return cli_usage("--size expects WIDTHxHEIGHT, such as 224x224, not '%s'", text);
    *ret_width = (int32_t)width;
    *ret_height = (int32_t)height;
    return CLI_OK;
}

static int whole_window(const struct job *job, struct hr_jpeg_window *ret_window)
{
    const double *box = job->box;

    for (int i = 0; i < 4; i++)
        if (box[i] != floor(box[i]))
            return cli_usage("--window without --size expects whole pixels, not %g",
                             box[i]);
    *ret_window = (struct hr_jpeg_window){.x = (int32_t)box[0],
                                          .y = (int32_t)box[1],
                                          .width = (int32_t)box[2],
                                          .height = (int32_t)box[3],
                                          .scale = 1 << job->options->scale,
                                          .gray = job->options->gray,
                                          .entries = job->entries};
    return CLI_OK;
}

/* ---- threads ---- */

struct strip {
    const struct job *job;
    struct hr_jpeg_window window;
    uint8_t *pixels;
    struct hr_error error;
    enum hr_err err;
    pthread_t thread;
    bool started;
};

static void *decode_strip(void *user)
{
    struct strip *strip = user;
    const struct job *job = strip->job;
    struct hr_jpeg_worker *worker = hr_jpeg_worker_create();
    size_t row = (size_t)job->width * (size_t)job->channels;

    strip->err = HR_ERR_MEMORY;
    if (worker != NULL)
        strip->err = hr_jpeg_decode(worker, job->file->data, job->file->bytes,
                                    &strip->window, strip->pixels, row, &strip->error);
    hr_jpeg_worker_destroy(worker);
    return NULL;
}

/* Strips begin and end at multiples of both scaled pixels and rows of MCUs. */
static int cut_strips(const struct job *job, const struct hr_jpeg_window *window,
                      struct strip *strips)
{
    int32_t end = window->height > 0 ? window->y + window->height : job->info.height;
    int32_t rows = end - window->y, top = window->y;
    int count = 0;

    for (int i = 0; i < job->threads && top < end; i++) {
        int64_t below = window->y + (int64_t)rows * (i + 1) / job->threads;

        below = i + 1 == job->threads ? end : below / 16 * 16;
        if (below <= top)
            continue;
        strips[count] = (struct strip){.job = job, .window = *window};
        strips[count].window.y = top;
        strips[count].window.height = (int32_t)below - top;
        strips[count].pixels =
            job->pixels + (size_t)(top / window->scale - window->y / window->scale) *
                              (size_t)job->width * (size_t)job->channels;
        top = (int32_t)below;
        count++;
    }
    return count;
}

static int decode_strips(struct job *job, const struct hr_jpeg_window *window)
{
    struct strip strips[THREADS_MAX];
    int count = cut_strips(job, window, strips), code = CLI_OK;

    for (int i = 1; i < count; i++)
        strips[i].started =
            pthread_create(&strips[i].thread, NULL, decode_strip, &strips[i]) == 0;
    for (int i = 0; i < count; i++)
        if (!strips[i].started)
            decode_strip(&strips[i]);
    for (int i = 0; i < count; i++) {
        if (strips[i].started)
            pthread_join(strips[i].thread, NULL);
        if (strips[i].err != HR_OK && code == CLI_OK) {
            strips[i].error.code = strips[i].err;
            code = jpeg_failed(job->file, &strips[i].error);
        }
    }
    job->threads = count;
    return code;
}

/* ---- decoding ---- */

static int alloc_pixels(struct job *job)
{
    job->channels = job->options->gray ? 1 : 3;
    job->pixels =
        malloc((size_t)job->width * (size_t)job->height * (size_t)job->channels);
    return job->pixels != NULL ? CLI_OK : cli_failed("out of memory");
}

/* Photos without seek points are decoded by one thread. */
static int find_entries(struct job *job)
{
    const struct jpeg_file *file = job->file;
    struct hr_error error = {0};
    enum hr_err err = HR_OK;

    if (job->options->index != NULL)
        err = hr_jpeg_entries_load(job->options->index, file->data, file->bytes,
                                   &job->entries, &error);
    else if (job->threads > 1 &&
             hr_jpeg_entries_make(job->worker, file->data, file->bytes, 0, &job->entries,
                                  &error) == HR_ERR_UNSUPPORTED)
        job->threads = 1;
    if (err == HR_OK)
        return CLI_OK;
    return cli_failed("%s: %s", job->options->index,
                      error.message[0] ? error.message : hr_err_text(err));
}

static int decode_window(struct job *job)
{
    struct hr_jpeg_window window;
    struct hr_error error = {0};
    int code = whole_window(job, &window);

    if (code != CLI_OK)
        return code;
    if (hr_jpeg_window_size(&job->info, &window, &job->width, &job->height, &error) !=
        HR_OK)
        return cli_usage("%s: %s", job->file->path, error.message);
    code = alloc_pixels(job);
    return code == CLI_OK ? decode_strips(job, &window) : code;
}

static int resize_window(struct job *job)
{
    struct hr_jpeg_resize what = {.x = job->box[0],
                                  .y = job->box[1],
                                  .width = job->box[2],
                                  .height = job->box[3],
                                  .mode = (enum hr_jpeg_mode)job->options->mode,
                                  .gray = job->options->gray,
                                  .entries = job->entries};
    struct hr_error error = {0};
    int code = read_size(job->options->size, &job->width, &job->height);

    if (code == CLI_OK)
        code = alloc_pixels(job);
    if (code != CLI_OK)
        return code;
    what.out_width = job->width;
    what.out_height = job->height;
    job->threads = 1;
    if (hr_jpeg_resize(job->worker, job->file->data, job->file->bytes, &what, job->pixels,
                       (size_t)job->width * (size_t)job->height * (size_t)job->channels,
                       &error) == HR_OK)
        return CLI_OK;
    if (error.code == HR_ERR_ARGUMENT)
        return cli_usage("%s: %s", job->file->path, error.message);
    return jpeg_failed(job->file, &error);
}

static int run_job(struct job *job)
{
    struct hr_error error = {0};
    double began = term_now(), decoded;
    char passed[24];
    int code;

    if (hr_jpeg_read_info(job->file->data, job->file->bytes, &job->info, &error) != HR_OK)
        return jpeg_failed(job->file, &error);
    code = find_entries(job);
    if (code == CLI_OK)
        code = job->options->size != NULL ? resize_window(job) : decode_window(job);
    if (code != CLI_OK)
        return code;
    decoded = term_now();
    if (hr_png_write(job->options->output, job->pixels, job->width, job->height,
                     job->channels, &error) != HR_OK)
        return cli_library_failed(&error);
    if (!job->options->quiet)
        printf("%s, %dx%d from %dx%d, decoded in %s by %d thread%s%s\n",
               job->options->output, (int)job->width, (int)job->height,
               (int)job->info.width, (int)job->info.height,
               term_seconds(passed, sizeof(passed), decoded - began), job->threads,
               job->threads == 1 ? "" : "s",
               job->info.accepted ? "" : " (libjpeg-turbo)");
    return CLI_OK;
}

static int check_options(const struct jpeg_options *options)
{
    if (options->output == NULL)
        return cli_usage("jpeg decode needs -o FILE.png (see headrace jpeg --help)");
    if (options->size != NULL && options->scale != 0)
        return cli_usage(
            "--scale and --size exclude each other: with --size, --mode sets the scale");
    if (options->size != NULL && options->threads > 1)
        return cli_usage("--threads cannot be combined with --size");
    return out_probe(options->output);
}

int jpeg_decode(const struct jpeg_options *options, const struct jpeg_file *file)
{
    struct job job = {.options = options, .file = file, .threads = (int)options->threads};
    int code = check_options(options);

    if (code == CLI_OK)
        code = read_box(options->window, job.box);
    if (code != CLI_OK)
        return code;
    job.worker = hr_jpeg_worker_create();
    code = job.worker != NULL ? run_job(&job) : cli_failed("out of memory");
    free(job.pixels);
    hr_jpeg_entries_destroy(job.entries);
    hr_jpeg_worker_destroy(job.worker);
    return code;
}
