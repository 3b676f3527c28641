/*
 * bench/kernel_bench.c - microseconds per kernel and instruction set.
 *
 * Standalone: link it with the library's kernel and core objects. Each line is the median
 * of many runs on a hot cache and one core. `kernel_bench NAME` runs the rows whose name
 * contains NAME.
 */
#include "core/arena.h"
#include "core/cpu.h"
#include "kernel/blur.h"
#include "kernel/colour.h"
#include "kernel/resample_ycc.h"
#include "kernel/warp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RUNS 61

struct job {
    struct hr_pixels src, dst;
    struct hr_resample spec;
    struct hr_ycc_planes planes;
    struct hr_arena arena;
    int steps;
    bool flip, plan_only, round;
    int mode; /* colour: 0 jitter and gray, 1 jitter, 2 hue, 3 brightness; warp: 1 nearest
               */
    float sigma;
};

static const struct hr_affine normal = {
    {.017f, .0175f, .0174f, .017f},
    {-2.1f, -2.0f,  -1.8f,  -2   }
};
static const char *wanted = "";

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static struct hr_pixels
image(enum hr_dtype dtype, int32_t w, int32_t h, int32_t channels, bool planar)
{
    int64_t size = (int64_t)hr_dtype_size(dtype);
    struct hr_pixels p = {NULL, dtype, w, h, channels, 0, 0, 0};
    size_t count = (size_t)w * (size_t)h * (size_t)channels;

    p.row_stride = size * w * (planar ? 1 : channels);
    p.pixel_stride = size * (planar ? 1 : channels);
    p.channel_stride = planar ? p.row_stride * h : size;
    p.data = aligned_alloc(64, (count * (size_t)size + 127) / 64 * 64);
    if (p.data == NULL)
        abort();
    for (size_t i = 0; i < count; i++) {
        int level = (int)(i * 2654435761u >> 24 & 255);

        if (dtype == HR_U8)
            ((uint8_t *)p.data)[i] = (uint8_t)level;
        else if (dtype == HR_F32)
            ((float *)p.data)[i] = (float)level / 255;
    }
    return p;
}

static void must(enum hr_err err)
{
    if (err != HR_OK)
        abort();
}

static void run_resample(struct job *job)
{
    struct hr_resample_plan *plan;

    hr__arena_reset(&job->arena);
    must(hr__resample_plan(&job->arena, &job->spec, &plan));
    if (!job->plan_only)
        must(hr__resample_run(plan, &job->arena, &job->src, &job->dst, job->round,
                              &normal, job->steps));
}

static void run_ycc(struct job *job)
{
    hr__arena_reset(&job->arena);
    must(hr__resample_ycc(&job->arena, &job->spec, &job->planes, &job->dst, job->round,
                          &normal, job->steps));
}

static void run_store(struct job *job)
{
    hr__pixels_store(&job->src, &job->dst, &normal, job->steps, job->flip, false);
}

static void run_colour(struct job *job)
{
    static const struct hr_colour_step steps[] = {
        {HR_COLOUR_BRIGHTNESS, 1.1f, 0},
        {HR_COLOUR_CONTRAST,   .9f,  0},
        {HR_COLOUR_SATURATION, 1.1f, 0},
        {HR_COLOUR_HUE,        .1f,  0},
        {HR_COLOUR_GRAY,       0,    0},
    };
    int from = job->mode == 2 ? 3 : 0;
    int count = job->mode == 0 ? 5 : job->mode == 1 ? 4 : 1;

    hr__arena_reset(&job->arena);
    must(hr__colour_run(&job->arena, &job->src, &job->dst, steps + from, count,
                        job->src.dtype == HR_U8 ? 255 : 1));
}

static void run_blur(struct job *job)
{
    hr__arena_reset(&job->arena);
    must(hr__blur_run(&job->arena, &job->src, &job->dst, 11, 11, job->sigma, job->sigma));
}

static void run_warp(struct job *job)
{
    static const double m[6] = {.985, .17, -19, -.17, .985, 22};
    static const float fill[4] = {0};

    hr__arena_reset(&job->arena);
    must(hr__warp_run(&job->arena, &job->src, &job->dst, m,
                      job->mode ? HR_FILTER_NEAREST : HR_FILTER_BILINEAR, fill));
}

static void measure(const char *name, void (*run)(struct job *), struct job *job)
{
    static const enum hr_isa isas[] = {HR_ISA_C, HR_ISA_AVX2, HR_ISA_AVX512};
    double took[RUNS];

    if (strstr(name, wanted) == NULL)
        return;
    printf("%-44s", name);
    for (int i = 0; i < 3; i++) {
        hr__isa_limit(isas[i]);
        for (int r = 0; r < RUNS; r++) {
            double from = now_us();

            run(job);
            took[r] = now_us() - from;
        }
        qsort(took, RUNS, sizeof *took, by_size);
        printf(" %9.1f (%.1f)", took[RUNS / 2], took[0]);
    }
    printf("\n");
    free(job->src.data);
    free(job->planes.plane[1].data);
    free(job->planes.plane[2].data);
    free(job->dst.data);
    hr__arena_finish(&job->arena);
}

static struct job make(struct hr_pixels src, struct hr_pixels dst)
{
    struct job job = {.src = src, .dst = dst, .steps = 1, .sigma = 2};

    hr__arena_init(&job.arena);
    job.spec = (struct hr_resample){.in_width = src.width,
                                    .in_height = src.height,
                                    .box_width = src.width,
                                    .box_height = src.height,
                                    .out_width = dst.width,
                                    .out_height = dst.height,
                                    .filter = HR_FILTER_BILINEAR,
                                    .antialias = true};
    return job;
}

static void bench_resample(void)
{
    static const int32_t sizes[][2] = {
        {224,  224 },
        {300,  300 },
        {350,  260 },
        {500,  375 },
        {640,  480 },
        {1024, 768 },
        {4000, 3000}
    };
    char name[96];
    struct job job;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        job = make(image(HR_U8, sizes[i][0], sizes[i][1], 3, false),
                   image(HR_F32, 224, 224, 3, true));
        snprintf(name, sizeof name, "resample u8 hwc %dx%d -> f32 chw", sizes[i][0],
                 sizes[i][1]);
        job.spec.flip_x = i & 1;
        measure(name, run_resample, &job);
    }
    job = make(image(HR_U8, 350, 260, 3, false), image(HR_F32, 224, 224, 3, true));
    job.plan_only = true;
    measure("resample plan 350x260", run_resample, &job);
    job = make(image(HR_U8, 350, 260, 3, false), image(HR_U8, 224, 224, 3, false));
    job.round = true;
    job.steps = 0;
    measure("resample u8 hwc 350x260 -> u8 hwc", run_resample, &job);
    job = make(image(HR_U8, 350, 260, 3, false), image(HR_F16, 224, 224, 3, true));
    measure("resample u8 hwc 350x260 -> f16 chw", run_resample, &job);
    job = make(image(HR_U8, 350, 260, 3, false), image(HR_BF16, 224, 224, 3, true));
    measure("resample u8 hwc 350x260 -> bf16 chw", run_resample, &job);
    job = make(image(HR_U8, 350, 260, 1, false), image(HR_F32, 224, 224, 1, true));
    measure("resample u8 gray 350x260 -> f32", run_resample, &job);
    job = make(image(HR_U8, 350, 260, 4, false), image(HR_F32, 224, 224, 4, true));
    measure("resample u8 4 channels 350x260 -> f32", run_resample, &job);
    job = make(image(HR_U8, 350, 260, 3, false), image(HR_F32, 224, 224, 3, true));
    job.spec.filter = HR_FILTER_BICUBIC;
    measure("resample u8 hwc 350x260 -> f32, bicubic", run_resample, &job);
    job = make(image(HR_U8, 350, 260, 3, false), image(HR_F32, 224, 224, 3, true));
    job.spec.filter = HR_FILTER_NEAREST;
    measure("resample u8 hwc 350x260 -> f32, nearest", run_resample, &job);
    job = make(image(HR_F32, 350, 260, 3, true), image(HR_F32, 224, 224, 3, true));
    measure("resample f32 chw 350x260 -> f32 chw", run_resample, &job);
    job = make(image(HR_U8, 100, 80, 3, false), image(HR_F32, 224, 224, 3, true));
    measure("resample u8 hwc 100x80 -> f32 chw", run_resample, &job);
}

static struct job
make_ycc(int32_t width, int32_t height, int shift_x, int shift_y, struct hr_pixels dst)
{
    struct job job = make(image(HR_U8, width, height, 1, true), dst);
    int32_t chroma_width = (width + shift_x) >> shift_x;
    int32_t chroma_height = (height + shift_y) >> shift_y;

    job.planes = (struct hr_ycc_planes){.shift_x = shift_x, .shift_y = shift_y};
    job.planes.plane[0] = job.src;
    job.planes.plane[1] = image(HR_U8, chroma_width, chroma_height, 1, true);
    job.planes.plane[2] = image(HR_U8, chroma_width, chroma_height, 1, true);
    return job;
}

static void bench_ycc(void)
{
    static const int32_t sizes[][2] = {
        {224,  224},
        {300,  300},
        {350,  260},
        {500,  375},
        {640,  480},
        {1024, 768},
    };
    char name[96];
    struct job job;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int sub = 0; sub < 2; sub++) {
            job = make_ycc(sizes[i][0], sizes[i][1], sub, sub,
                           image(HR_F32, 224, 224, 3, true));
            snprintf(name, sizeof name, "ycc 4:%s %dx%d -> f32 chw", sub ? "2:0" : "4:4",
                     sizes[i][0], sizes[i][1]);
            job.spec.flip_x = i & 1;
            measure(name, run_ycc, &job);
        }
    job = make_ycc(350, 260, 1, 0, image(HR_F32, 224, 224, 3, true));
    measure("ycc 4:2:2 350x260 -> f32 chw", run_ycc, &job);
    job = make_ycc(350, 260, 1, 1, image(HR_U8, 224, 224, 3, false));
    job.round = true;
    job.steps = 0;
    measure("ycc 4:2:0 350x260 -> u8 hwc", run_ycc, &job);
    job = make_ycc(350, 260, 1, 1, image(HR_F16, 224, 224, 3, true));
    measure("ycc 4:2:0 350x260 -> f16 chw", run_ycc, &job);
    job = make_ycc(350, 260, 0, 0, image(HR_F32, 224, 224, 3, true));
    job.planes.gray = true;
    measure("ycc gray 350x260 -> f32 chw", run_ycc, &job);
}

static void bench_store(void)
{
    struct job job =
        make(image(HR_U8, 244, 244, 3, false), image(HR_F32, 244, 244, 3, true));

    measure("store u8 hwc -> f32 chw", run_store, &job);
    job = make(image(HR_U8, 244, 244, 3, false), image(HR_F32, 244, 244, 3, true));
    job.flip = true;
    measure("store u8 hwc -> f32 chw, flip", run_store, &job);
    job = make(image(HR_F32, 244, 244, 3, true), image(HR_F32, 244, 244, 3, true));
    job.flip = true;
    measure("store f32 chw -> f32 chw, flip", run_store, &job);
    job = make(image(HR_F32, 244, 244, 3, true), image(HR_F16, 244, 244, 3, true));
    measure("store f32 chw -> f16 chw", run_store, &job);
    job = make(image(HR_F32, 244, 244, 3, true), image(HR_BF16, 244, 244, 3, true));
    measure("store f32 chw -> bf16 chw", run_store, &job);
    job = make(image(HR_F32, 244, 244, 3, true), image(HR_BF16, 244, 244, 3, false));
    measure("store f32 chw -> bf16 hwc", run_store, &job);
    job = make(image(HR_F32, 244, 244, 3, true), image(HR_U8, 244, 244, 3, false));
    measure("store f32 chw -> u8 hwc", run_store, &job);
    job = make(image(HR_F32, 244, 244, 3, false), image(HR_F32, 244, 244, 3, true));
    measure("store f32 hwc -> f32 chw", run_store, &job);
    job = make(image(HR_F32, 244, 244, 3, true), image(HR_F32, 244, 244, 3, false));
    measure("store f32 chw -> f32 hwc", run_store, &job);
    job = make(image(HR_U8, 244, 244, 3, false), image(HR_U8, 244, 244, 3, false));
    job.steps = 0;
    job.flip = true;
    measure("store u8 hwc -> u8 hwc, flip only", run_store, &job);
    job = make(image(HR_U8, 244, 244, 3, false), image(HR_U8, 244, 244, 3, true));
    job.steps = 0;
    measure("store u8 hwc -> u8 chw", run_store, &job);
}

static void bench_rest(void)
{
    struct job job =
        make(image(HR_U8, 244, 244, 3, false), image(HR_F32, 244, 244, 1, true));

    measure("colour jitter + gray, u8 hwc -> f32", run_colour, &job);
    job = make(image(HR_F32, 244, 244, 3, true), image(HR_F32, 244, 244, 1, true));
    measure("colour jitter + gray, f32 chw -> f32", run_colour, &job);
    job = make(image(HR_U8, 244, 244, 3, false), image(HR_U8, 244, 244, 3, false));
    job.mode = 1;
    measure("colour jitter, u8 hwc -> u8 hwc", run_colour, &job);
    job = make(image(HR_U8, 244, 244, 3, true), image(HR_U8, 244, 244, 3, true));
    job.mode = 2;
    measure("colour hue, u8 chw -> u8 chw", run_colour, &job);
    job = make(image(HR_U8, 244, 244, 3, true), image(HR_U8, 244, 244, 3, true));
    job.mode = 3;
    measure("colour brightness, u8 chw -> u8 chw", run_colour, &job);
    for (int radius = 1; radius <= 5; radius += 2) {
        char name[64];

        snprintf(name, sizeof name, "blur f32 gray, radius %d", radius);
        job = make(image(HR_F32, 244, 244, 1, true), image(HR_F32, 244, 244, 1, true));
        job.sigma = radius == 1 ? .5f : radius == 3 ? 1.0f : 2.0f;
        measure(name, run_blur, &job);
    }
    job = make(image(HR_U8, 244, 244, 3, false), image(HR_U8, 244, 244, 3, false));
    measure("blur u8 hwc, radius 5", run_blur, &job);
    job = make(image(HR_F32, 244, 244, 3, true), image(HR_F32, 244, 244, 3, true));
    measure("blur f32 chw, radius 5", run_blur, &job);
    job = make(image(HR_U8, 244, 244, 3, false), image(HR_U8, 244, 244, 3, false));
    measure("warp u8 hwc", run_warp, &job);
    job = make(image(HR_U8, 244, 244, 3, false), image(HR_U8, 244, 244, 3, false));
    job.mode = 1;
    measure("warp u8 hwc, nearest", run_warp, &job);
    job = make(image(HR_U8, 244, 244, 1, false), image(HR_U8, 244, 244, 1, false));
    measure("warp u8 gray", run_warp, &job);
    job = make(image(HR_F32, 244, 244, 1, false), image(HR_F32, 244, 244, 1, false));
    measure("warp f32 gray", run_warp, &job);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        wanted = argv[1];
    printf("%-44s %s\n", "us, median (min)", "   plain C        AVX2           AVX-512");
    bench_resample();
    bench_ycc();
    bench_store();
    bench_rest();
    return 0;
}
