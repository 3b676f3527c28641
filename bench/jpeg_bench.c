/*
 * bench/jpeg_bench.c - milliseconds per photo of each way to decode a JPEG.
 *
 * Stands alone, linked with the static library: jpeg_bench DIR [PASSES]. Each pass runs
 * every variant once over all photos, each photo once, so that caches and the branch
 * predictor see new data as in training; the median over passes is printed, in CPU time
 * of the thread. Windows are RandomResizedCrop's (scale .08 to 1, ratio 3/4 to 4/3), the
 * same for all variants.
 */
#include "codec/jpeg.h"
#include "core/alloc.h"
#include "core/cpu.h"
#include "core/file.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>

#define PHOTOS_MAX 10000
#define PASSES_MAX 64

struct photo {
    char *data;
    size_t bytes;
    struct hr_image_info info;
    struct hr_image_request window;
    struct hr_jpeg_index rows, eights;
};

static struct photo photos[PHOTOS_MAX];
static int photo_count;
static uint8_t *whole_pixels;
static struct hr_image_decoder *decoder;
static struct hr_jpeg *jpeg;
static struct hr_arena arena, kept;

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double draw(void)
{
    static uint64_t state = 12345;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) * 0x1p-53;
}

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "jpeg_bench: %s\n", what);
    exit(1);
}

static void choose_window(struct photo *photo)
{
    double w = photo->info.width, h = photo->info.height;
    struct hr_image_request *r = &photo->window;
    int i;

    r->width = photo->info.width;
    r->height = photo->info.height;
    for (i = 0; i < 10; i++) {
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

/* ---- variants ---- */

static void libjpeg_alone(struct photo *photo)
{
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;

    info.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, (const uint8_t *)photo->data, (unsigned long)photo->bytes);
    jpeg_read_header(&info, TRUE);
    info.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info);
    while (info.output_scanline < info.output_height) {
        JSAMPROW row =
            whole_pixels + (size_t)info.output_scanline * info.output_width * 3;

        jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
}

static void decode(struct photo *photo, const struct hr_image_request *request,
                   enum hr_jpeg_path path)
{
    struct hr_image_part part;
    struct hr_error error = {0};

    hr__jpeg_path_force(path);
    if (hr__image_decode(decoder, &arena, photo->data, photo->bytes, &photo->info,
                         request, &part, &error) != HR_OK)
        fail(error.message);
}

static void libjpeg_window(struct photo *photo)
{
    decode(photo, &photo->window, HR_JPEG_LIBJPEG);
}

static void own_window(struct photo *photo)
{
    decode(photo, &photo->window, HR_JPEG_OWN);
}

static void own_whole(struct photo *photo)
{
    struct hr_image_request whole = {.width = photo->info.width,
                                     .height = photo->info.height};

    decode(photo, &whole, HR_JPEG_OWN);
}

static void own_gray(struct photo *photo)
{
    struct hr_image_request gray = photo->window;

    gray.channels = HR_CHANNELS_GRAY;
    decode(photo, &gray, HR_JPEG_OWN);
}

static void half(struct photo *photo, enum hr_jpeg_path path)
{
    struct hr_image_request request = photo->window;

    request.scale_log2 = 1;
    decode(photo, &request, path);
}

static void libjpeg_half(struct photo *photo)
{
    half(photo, HR_JPEG_LIBJPEG);
}

static void own_half(struct photo *photo)
{
    half(photo, HR_JPEG_OWN);
}

static void planes(struct photo *photo, const struct hr_jpeg_index *index)
{
    struct hr_image_job job = {&arena,         (const uint8_t *)photo->data,
                               photo->bytes,   &photo->info,
                               &photo->window, NULL};
    struct hr_image_planes made;

    hr__jpeg_index_use(jpeg, index);
    if (hr__jpeg_planes(jpeg, &job, &made) != HR_OK)
        fail("declined");
}

static void own_planes(struct photo *photo)
{
    planes(photo, NULL);
}

static void own_planes_rows(struct photo *photo)
{
    planes(photo, &photo->rows);
}

static void own_planes_eights(struct photo *photo)
{
    planes(photo, &photo->eights);
}

static void make_index(struct photo *photo)
{
    struct hr_jpeg_index index;

    if (hr__jpeg_index_make(jpeg, &arena, photo->data, photo->bytes, 8, &index) != HR_OK)
        fail("declined");
}

static struct {
    const char *name;
    void (*run)(struct photo *photo);
    enum hr_isa isa;
    double seconds[PASSES_MAX];
} variants[] = {
    {"libjpeg-turbo, whole",         libjpeg_alone,     HR_ISA_AVX512, {0}},
    {"libjpeg-turbo, window",        libjpeg_window,    HR_ISA_AVX512, {0}},
    {"own, window",                  own_window,        HR_ISA_AVX512, {0}},
    {"own, window, AVX2",            own_window,        HR_ISA_AVX2,   {0}},
    {"own, window, plain C",         own_window,        HR_ISA_C,      {0}},
    {"own, gray window",             own_gray,          HR_ISA_AVX512, {0}},
    {"own, whole",                   own_whole,         HR_ISA_AVX512, {0}},
    {"libjpeg-turbo, window at 1/2", libjpeg_half,      HR_ISA_AVX512, {0}},
    {"own, window at 1/2",           own_half,          HR_ISA_AVX512, {0}},
    {"own, planes",                  own_planes,        HR_ISA_AVX512, {0}},
    {"own, planes, index of rows",   own_planes_rows,   HR_ISA_AVX512, {0}},
    {"own, planes, index every 8",   own_planes_eights, HR_ISA_AVX512, {0}},
    {"making an index every 8",      make_index,        HR_ISA_AVX512, {0}},
};
#define VARIANTS ((int)(sizeof variants / sizeof variants[0]))

/* ---- the run ---- */

/* Photos that ours declines, or that have restart markers, are left out. */
static void read_photo(const char *path, size_t *pixels_max)
{
    struct photo *photo = &photos[photo_count];
    size_t pixels;

    if (photo_count == PHOTOS_MAX ||
        hr__file_read(path, (size_t)1 << 26, &photo->data, &photo->bytes, NULL) != HR_OK)
        return;
    if (hr__image_probe(photo->data, photo->bytes, &photo->info, NULL) != HR_OK ||
        hr__jpeg_index_make(jpeg, &kept, photo->data, photo->bytes, 0, &photo->rows) !=
            HR_OK ||
        hr__jpeg_index_make(jpeg, &kept, photo->data, photo->bytes, 8, &photo->eights) !=
            HR_OK) {
        hr__free(photo->data);
        return;
    }
    choose_window(photo);
    pixels = (size_t)photo->info.width * (size_t)photo->info.height;
    *pixels_max = pixels > *pixels_max ? pixels : *pixels_max;
    photo_count++;
}

static void read_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    size_t pixels_max = 0;
    struct dirent *entry;
    char path[4096];

    if (dir == NULL)
        fail("cannot open the folder");
    while ((entry = readdir(dir)) != NULL) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            read_photo(path, &pixels_max);
    }
    closedir(dir);
    whole_pixels = malloc(3 * pixels_max + 1);
    if (photo_count == 0 || whole_pixels == NULL)
        fail("no photos");
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void report(int passes)
{
    int i;

    for (i = 0; i < VARIANTS; i++)
        qsort(variants[i].seconds, (size_t)passes, sizeof(double), by_size);
    printf("%d photos, %d passes, CPU ms a photo: median (least to most), whole / this\n",
           photo_count, passes);
    for (i = 0; i < VARIANTS; i++) {
        const double *s = variants[i].seconds;
        double ms = 1e3 / photo_count;

        printf("%-30s %8.4f (%.4f to %.4f) %6.2f\n", variants[i].name, ms * s[passes / 2],
               ms * s[0], ms * s[passes - 1],
               variants[0].seconds[passes / 2] / s[passes / 2]);
    }
}

int main(int argc, char **argv)
{
    int passes = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 5, pass, i, k;

    if (argc < 2 || passes < 1 || passes > PASSES_MAX)
        fail("usage: jpeg_bench DIR [PASSES, 1 to 64]");
    hr__arena_init(&arena);
    hr__arena_init(&kept);
    jpeg = hr__jpeg_create();
    if (jpeg == NULL || hr__image_decoder_create(&decoder) != HR_OK)
        fail("out of memory");
    read_folder(argv[1]);
    for (pass = 0; pass < passes; pass++)
        for (i = 0; i < VARIANTS; i++) {
            double from;

            hr__isa_limit(variants[i].isa);
            from = seconds();
            for (k = 0; k < photo_count; k++) {
                variants[i].run(&photos[k]);
                hr__arena_reset(&arena);
            }
            variants[i].seconds[pass] = seconds() - from;
        }
    report(passes);
    return 0;
}
