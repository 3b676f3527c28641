/*
 * jpeg_codec.c - make bench B=jpeg-codec: photos per second for each way to decode a
 * JPEG, without an engine.
 *
 * Each round runs every way once over all photos, each photo once, so that caches and the
 * branch predictor see new data as in training. Windows are RandomResizedCrop's (scale
 * .08 to 1, ratio 3/4 to 4/3), the same for all ways. Photos that our decoder declines
 * are skipped.
 */
#include "passes.h"

#include <math.h>
#include <stdlib.h>

#include "codec/jpeg.h"
#include "core/cpu.h"

struct job {
    const struct photo *photo;
    struct hr_image_info info;
    struct hr_image_request window;
    struct hr_jpeg_index rows, eights;
};

static struct job *jobs;
static struct photos photos; /* those to decode, in the order of `jobs` */
static struct hr_image_decoder *decoder;
static struct hr_jpeg *jpeg;
static struct hr_arena arena, kept;

static double draw(void)
{
    static uint64_t state = 12345;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) * 0x1p-53;
}

static void choose_window(struct job *job)
{
    double w = job->info.width, h = job->info.height;
    struct hr_image_request *r = &job->window;

    r->width = job->info.width;
    r->height = job->info.height;
    for (int i = 0; i < 10; i++) {
        double area = w * h * (0.08 + 0.92 * draw());
        double ratio = exp((2 * draw() - 1) * log(4.0 / 3.0));
        double crop_w = rint(sqrt(area * ratio)), crop_h = rint(sqrt(area / ratio));

        if (crop_w > w || crop_h > h || crop_w < 1 || crop_h < 1)
            continue;
        r->width = (int32_t)crop_w;
        r->height = (int32_t)crop_h;
        r->x = (int32_t)(draw() * (w - crop_w + 1));
        r->y = (int32_t)(draw() * (h - crop_h + 1));
        return;
    }
}

/* ---- ways to decode ---- */

static void
decode(struct job *job, const struct hr_image_request *request, enum hr_jpeg_path path)
{
    struct hr_image_part part;
    struct hr_error error = {0};

    hr__jpeg_path_force(path);
    bench_must(hr__image_decode(decoder, &arena, job->photo->data, job->photo->bytes,
                                &job->info, request, &part, &error),
               &error);
}

static void libjpeg_window(struct job *job)
{
    decode(job, &job->window, HR_JPEG_LIBJPEG);
}

static void own_window(struct job *job)
{
    decode(job, &job->window, HR_JPEG_OWN);
}

static void own_whole(struct job *job)
{
    struct hr_image_request whole = {.width = job->info.width,
                                     .height = job->info.height};

    decode(job, &whole, HR_JPEG_OWN);
}

static void own_gray(struct job *job)
{
    struct hr_image_request gray = job->window;

    gray.channels = HR_CHANNELS_GRAY;
    decode(job, &gray, HR_JPEG_OWN);
}

static void half(struct job *job, enum hr_jpeg_path path)
{
    struct hr_image_request request = job->window;

    request.scale_log2 = 1;
    decode(job, &request, path);
}

static void libjpeg_half(struct job *job)
{
    half(job, HR_JPEG_LIBJPEG);
}

static void own_half(struct job *job)
{
    half(job, HR_JPEG_OWN);
}

static void planes(struct job *job, struct hr_jpeg_index *index)
{
    struct hr_image_request request = job->window;
    struct hr_image_job what = {&arena,     job->photo->data, job->photo->bytes,
                                &job->info, &request,         NULL};
    struct hr_image_planes made;

    request.index = index;
    if (hr__jpeg_planes(jpeg, &what, &made) != HR_OK)
        bench_die("%s: declined", job->photo->path);
}

static void own_planes(struct job *job)
{
    planes(job, NULL);
}

static void own_planes_rows(struct job *job)
{
    planes(job, &job->rows);
}

static void own_planes_eights(struct job *job)
{
    planes(job, &job->eights);
}

static void own_planes_gathering(struct job *job)
{
    struct hr_jpeg_index index = {0};

    planes(job, &index);
}

static void make_index(struct job *job)
{
    struct hr_jpeg_index index;

    if (hr__jpeg_index_make(jpeg, &arena, job->photo->data, job->photo->bytes, 8,
                            &index) != HR_OK)
        bench_die("%s: declined", job->photo->path);
}

static const struct {
    const char *name;
    void (*run)(struct job *job);
    enum hr_isa isa;
} ways[] = {
    {"libjpeg-turbo, window",        libjpeg_window,       HR_ISA_AVX512},
    {"own, window",                  own_window,           HR_ISA_AVX512},
    {"own, window, AVX2",            own_window,           HR_ISA_AVX2  },
    {"own, window, plain C",         own_window,           HR_ISA_C     },
    {"own, gray window",             own_gray,             HR_ISA_AVX512},
    {"own, whole",                   own_whole,            HR_ISA_AVX512},
    {"libjpeg-turbo, window at 1/2", libjpeg_half,         HR_ISA_AVX512},
    {"own, window at 1/2",           own_half,             HR_ISA_AVX512},
    {"own, planes",                  own_planes,           HR_ISA_AVX512},
    {"own, planes, gathering",       own_planes_gathering, HR_ISA_AVX512},
    {"own, planes, index of rows",   own_planes_rows,      HR_ISA_AVX512},
    {"own, planes, index every 8",   own_planes_eights,    HR_ISA_AVX512},
    {"making an index every 8",      make_index,           HR_ISA_AVX512},
};

static void run_way(struct bench *bench, size_t at)
{
    double wall, cpu, count = (double)photos.count;

    hr__isa_limit(ways[at].isa);
    wall = bench_now();
    cpu = bench_cpu_seconds();
    for (size_t k = 0; k < photos.count; k++) {
        ways[at].run(&jobs[k]);
        hr__arena_reset(&arena);
    }
    wall = bench_now() - wall;
    cpu = bench_cpu_seconds() - cpu;
    bench_add(bench, ways[at].name, count / wall, count / cpu);
}

/* ---- the photos ---- */

/* Returns false if our decoder declines the photo. */
static bool prepare(struct job *job)
{
    const void *data = job->photo->data;
    size_t bytes = job->photo->bytes;

    if (hr__image_probe(data, bytes, &job->info, NULL) != HR_OK ||
        hr__jpeg_index_make(jpeg, &kept, data, bytes, 0, &job->rows) != HR_OK ||
        hr__jpeg_index_make(jpeg, &kept, data, bytes, 8, &job->eights) != HR_OK)
        return false;
    choose_window(job);
    return true;
}

static void prepare_all(struct bench *bench, const struct photos *all)
{
    photos.list = malloc(all->count * sizeof(*photos.list));
    jobs = calloc(all->count, sizeof(*jobs));
    if (photos.list == NULL || jobs == NULL)
        bench_die("out of memory");
    for (size_t i = 0; i < all->count; i++) {
        struct job *job = &jobs[photos.count];

        *job = (struct job){.photo = &all->list[i]};
        if (prepare(job))
            photos.list[photos.count++] = all->list[i];
    }
    if (photos.count == 0)
        bench_die("our decoder declines all of these photos");
    bench_fact(bench, "files", "%zu of %zu, in memory", photos.count, all->count);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct photos all;
    char path[4096];

    bench_init(&bench, argc, argv, "jpeg-codec",
               "ways to decode a JPEG: whole, a window, with an index", "photos/s");
    bench.cpu_heading = "per CPU s";
    hr__arena_init(&arena);
    hr__arena_init(&kept);
    jpeg = hr__jpeg_create();
    if (jpeg == NULL || hr__image_decoder_create(&decoder) != HR_OK)
        bench_die("out of memory");
    photos_load(&all, bench_photos(&bench, path, sizeof(path)));
    prepare_all(&bench, &all);
    for (int i = 0; i < bench.rounds; i++) {
        photos_decode(&bench, "libjpeg-turbo, whole", &photos, 1, false);
        for (size_t k = 0; k < sizeof(ways) / sizeof(ways[0]); k++)
            run_way(&bench, k);
    }
    bench_print(&bench);
    hr__arena_finish(&kept);
    hr__arena_finish(&arena);
    hr__image_decoder_destroy(decoder);
    hr__jpeg_destroy(jpeg);
    free(jobs);
    free(photos.list);
    photos_finish(&all);
    return 0;
}
