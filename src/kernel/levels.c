/*
 * kernel/levels.c - changes the levels of an image in place, a run of neighbouring levels
 * at a time.
 *
 * A run is a row of an interleaved image or a row of one plane. What needs statistics
 * takes two passes, of which the second looks levels of uint8 up in a table per channel.
 */
#include "kernel/levels.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernel/rows.h"

struct runs {
    const struct hr_pixels *image;
    int32_t turn;          /* channels whose levels take turns in a run */
    int64_t length, count; /* levels in a run; runs */
};

static struct runs runs_of(const struct hr_pixels *image)
{
    bool planar = hr__is_planar(image);

    assert(planar || hr__is_interleaved(image));
    return (struct runs){
        .image = image,
        .turn = planar ? 1 : image->channels,
        .length = (int64_t)image->width * (planar ? 1 : image->channels),
        .count = (int64_t)image->height * (planar ? image->channels : 1),
    };
}

static void *run_at(const struct runs *runs, int64_t i)
{
    int32_t height = runs->image->height;

    return hr__at(runs->image, 0, (int32_t)(i % height), (int32_t)(i / height));
}

/* The channel of the first level of a run. */
static int32_t channel_of(const struct runs *runs, int64_t i)
{
    return (int32_t)(i / runs->image->height);
}

#define EACH_RUN(runs_, i_) for (int64_t i_ = 0; i_ < (runs_)->count; i_++)

/* ---- of each level by itself ---- */

static void fold_bytes(uint8_t *restrict run, int64_t n, uint8_t low)
{
    for (int64_t i = 0; i < n; i++)
        run[i] = (uint8_t)(run[i] ^ (run[i] >= low ? 255 : 0));
}

static void fold_floats(float *restrict run, int64_t n, float low)
{
    for (int64_t i = 0; i < n; i++)
        run[i] = run[i] >= low ? 1 - run[i] : run[i];
}

void hr__levels_solarize(const struct hr_pixels *image, float threshold)
{
    struct runs runs = runs_of(image);
    bool bytes = image->dtype == HR_U8;

    if (bytes && threshold > 255)
        return;
    EACH_RUN(&runs, i)
    {
        if (bytes)
            fold_bytes(run_at(&runs, i), runs.length,
                       threshold > 0 ? (uint8_t)ceilf(threshold) : 0);
        else
            fold_floats(run_at(&runs, i), runs.length, threshold);
    }
}

static void mask_bytes(uint8_t *restrict run, int64_t n, uint8_t mask)
{
    for (int64_t i = 0; i < n; i++)
        run[i] &= mask;
}

static void step_floats(float *restrict run, int64_t n, float levels)
{
    for (int64_t i = 0; i < n; i++) {
        float step = floorf(run[i] * levels);

        step = step > 0 ? step : 0;
        run[i] = (step < levels - 1 ? step : levels - 1) * (1 / levels);
    }
}

void hr__levels_posterize(const struct hr_pixels *image, int bits)
{
    struct runs runs = runs_of(image);

    assert(bits >= 0 && bits <= 8);
    EACH_RUN(&runs, i)
    {
        if (image->dtype == HR_U8)
            mask_bytes(run_at(&runs, i), runs.length, (uint8_t)(0xff00 >> bits));
        else
            step_floats(run_at(&runs, i), runs.length, (float)(1 << bits));
    }
}

/* ---- by tables ---- */

/* The level of a float among 256. */
static uint8_t level_of(float value)
{
    float level = value * 255.999f;

    return (uint8_t)(level > 0 ? level < 255 ? level : 255 : 0);
}

static void count_bytes(const uint8_t *run, int64_t n, int32_t turn, uint32_t (*of)[256])
{
    int64_t k = 0;

    if (turn == 3)
        for (; k < n; k += 3) {
            of[0][run[k]]++;
            of[1][run[k + 1]]++;
            of[2][run[k + 2]]++;
        }
    for (; k < n; k += turn)
        for (int32_t c = 0; c < turn; c++)
            of[c][run[k + c]]++;
}

static void count_floats(const float *run, int64_t n, int32_t turn, uint32_t (*of)[256])
{
    for (int64_t k = 0; k < n; k += turn)
        for (int32_t c = 0; c < turn; c++)
            of[c][level_of(run[k + c])]++;
}

void hr__levels_count(const struct hr_pixels *image, struct hr_level_counts *ret_counts)
{
    struct runs runs = runs_of(image);

    memset(ret_counts, 0, sizeof *ret_counts);
    EACH_RUN(&runs, i)
    {
        uint32_t(*of)[256] = &ret_counts->of[channel_of(&runs, i)];

        if (image->dtype == HR_U8)
            count_bytes(run_at(&runs, i), runs.length, runs.turn, of);
        else
            count_floats(run_at(&runs, i), runs.length, runs.turn, of);
    }
}

static void look_up_bytes(const uint8_t (*table)[256], const uint8_t *in, uint8_t *out,
                          int64_t n, int32_t turn)
{
    int64_t k = 0;

    if (turn == 3)
        for (; k < n; k += 3) {
            out[k] = table[0][in[k]];
            out[k + 1] = table[1][in[k + 1]];
            out[k + 2] = table[2][in[k + 2]];
        }
    for (; k < n; k += turn)
        for (int32_t c = 0; c < turn; c++)
            out[k + c] = table[c][in[k + c]];
}

void hr__levels_look_up_row(const struct hr_level_tables *tables, const uint8_t *in,
                            uint8_t *out, int32_t n, int32_t channels)
{
    look_up_bytes(tables->of, in, out, (int64_t)n * channels, channels);
}

void hr__levels_look_up(const struct hr_pixels *in, const struct hr_level_tables *tables,
                        const struct hr_pixels *out)
{
    struct runs from = runs_of(in), to = runs_of(out);

    assert(from.turn == to.turn && from.length == to.length && from.count == to.count);
    EACH_RUN(&from, i)
    look_up_bytes(&tables->of[channel_of(&from, i)], run_at(&from, i), run_at(&to, i),
                  from.length, from.turn);
}

static void look_up_floats(const struct runs *runs, const struct hr_level_tables *tables)
{
    EACH_RUN(runs, i)
    {
        float *run = run_at(runs, i);

        for (int64_t k = 0; k < runs->length; k += runs->turn)
            for (int32_t c = 0; c < runs->turn; c++)
                run[k + c] =
                    (float)tables->of[channel_of(runs, i) + c][level_of(run[k + c])] *
                    (float)(1.0 / 255);
    }
}

void hr__levels_flatten(const uint32_t count[256], uint8_t ret_table[256])
{
    uint64_t total = 0, so_far = 0, step;
    int last = 0;

    for (int i = 0; i < 256; i++) {
        total += count[i];
        last = count[i] > 0 ? i : last;
    }
    step = (total - count[last]) / 255;
    for (int i = 0; i < 256; i++) {
        uint64_t level = step == 0 ? (uint64_t)i : (so_far + step / 2) / step;

        ret_table[i] = (uint8_t)(level < 255 ? level : 255);
        so_far += count[i];
    }
}

void hr__levels_equalize(const struct hr_pixels *image)
{
    struct runs runs = runs_of(image);
    struct hr_level_counts counts;
    struct hr_level_tables tables;

    hr__levels_count(image, &counts);
    for (int32_t c = 0; c < image->channels; c++)
        hr__levels_flatten(counts.of[c], tables.of[c]);
    if (image->dtype == HR_U8)
        hr__levels_look_up(image, &tables, image);
    else
        look_up_floats(&runs, &tables);
}

/* ---- autocontrast ---- */

void hr__levels_stretch(const uint32_t count[256], uint8_t ret_table[256])
{
    int low = 0, high = 255;
    float unit;

    while (low < 255 && count[low] == 0)
        low++;
    while (high > low && count[high] == 0)
        high--;
    unit = (float)(high - low) * (float)(1.0 / 255);
    for (int i = 0; i < 256; i++) {
        float level = (float)(i - low) / (high > low ? unit : 1);

        ret_table[i] = (uint8_t)i;
        if (high > low)
            ret_table[i] = (uint8_t)(level > 0 ? level < 255 ? level : 255 : 0);
    }
}

static void stretch_bytes(const struct hr_pixels *image)
{
    struct hr_level_counts counts;
    struct hr_level_tables tables;

    hr__levels_count(image, &counts);
    for (int32_t c = 0; c < image->channels; c++)
        hr__levels_stretch(counts.of[c], tables.of[c]);
    hr__levels_look_up(image, &tables, image);
}

static void stretch_floats(const struct runs *runs)
{
    float low[4] = {INFINITY, INFINITY, INFINITY, INFINITY};
    float high[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};

    EACH_RUN(runs, i)
    {
        const float *run = run_at(runs, i);

        for (int64_t k = 0; k < runs->length; k++) {
            int64_t c = channel_of(runs, i) + k % runs->turn;

            low[c] = run[k] < low[c] ? run[k] : low[c];
            high[c] = run[k] > high[c] ? run[k] : high[c];
        }
    }
    EACH_RUN(runs, i)
    {
        float *run = run_at(runs, i);

        for (int64_t k = 0; k < runs->length; k++) {
            int64_t c = channel_of(runs, i) + k % runs->turn;
            bool flat = !(high[c] > low[c]);
            float level = (run[k] - (flat ? 0 : low[c])) / (flat ? 1 : high[c] - low[c]);

            run[k] = level > 0 ? level < 1 ? level : 1 : 0;
        }
    }
}

void hr__levels_autocontrast(const struct hr_pixels *image)
{
    struct runs runs = runs_of(image);

    if (image->dtype == HR_U8)
        stretch_bytes(image);
    else
        stretch_floats(&runs);
}

/* ---- channels ---- */

void hr__levels_permute(const struct hr_pixels *image, const int order[4])
{
    size_t size = hr_dtype_size(image->dtype);
    int32_t channels = image->channels;

    for (int32_t y = 0; y < image->height; y++) {
        for (int32_t x = 0; x < image->width; x++) {
            char *at = hr__at(image, x, y, 0), kept[4][4];

            for (int32_t c = 0; c < channels; c++)
                memcpy(kept[c], at + c * image->channel_stride, size);
            for (int32_t c = 0; c < channels; c++)
                memcpy(at + c * image->channel_stride, kept[order[c]], size);
        }
    }
}
