/*
 * picture.c - approximately undoes dtype, layout and range: for viewing, not for
 * measuring.
 *
 * Normalisation cannot be undone without its mean and std, so an image with values
 * outside 0..1 is stretched from its smallest to its largest value.
 */
#include "picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CELL 160
#define GAP 4

static double half_value(uint16_t bits)
{
    int exponent = (bits >> 10) & 31, fraction = bits & 1023;
    double value = exponent == 0    ? ldexp(fraction, -24)
                   : exponent == 31 ? (fraction ? NAN : INFINITY)
                                    : ldexp(fraction + 1024, exponent - 25);

    return bits & 0x8000 ? -value : value;
}

#define LOAD(type, name)                                                                 \
    type name;                                                                           \
    memcpy(&name, element, sizeof(name))

static double whole_value(enum hr_dtype dtype, const void *element)
{
    switch (dtype) {
    case HR_I16: {
        LOAD(int16_t, value);
        return value;
    }
    case HR_I32: {
        LOAD(int32_t, value);
        return value;
    }
    case HR_I64: {
        LOAD(int64_t, value);
        return (double)value;
    }
    case HR_U16: {
        LOAD(uint16_t, value);
        return value;
    }
    case HR_I8:
        return *(const int8_t *)element;
    default:
        return *(const uint8_t *)element;
    }
}

double picture_element(enum hr_dtype dtype, const void *element)
{
    switch (dtype) {
    case HR_F16: {
        LOAD(uint16_t, bits);
        return half_value(bits);
    }
    case HR_BF16: {
        LOAD(uint16_t, high);
        uint32_t bits = (uint32_t)high << 16;
        float value;

        memcpy(&value, &bits, sizeof(value));
        return value;
    }
    case HR_F32: {
        LOAD(float, value);
        return value;
    }
    case HR_F64: {
        LOAD(double, value);
        return value;
    }
    default:
        return whole_value(dtype, element);
    }
}

static bool is_channels(int64_t n)
{
    return n == 1 || n == 3;
}

void picture_walk_begin(struct picture_walk *walk, const struct hr_field_view *view,
                        int64_t record)
{
    *walk = (struct picture_walk){.view = view, .at = {record}, .left = 1};
    for (int d = 1; d < view->ndim; d++)
        walk->left *= view->dims[d];
}

const void *picture_walk_next(struct picture_walk *walk)
{
    const struct hr_field_view *view = walk->view;
    const char *element = view->data;

    if (walk->left-- <= 0)
        return NULL;
    for (int d = 0; d < view->ndim; d++)
        element += walk->at[d] * view->strides[d];
    for (int d = view->ndim - 1; d > 0 && ++walk->at[d] == view->dims[d]; d--)
        walk->at[d] = 0;
    return element;
}

bool picture_is_image(const struct hr_field_view *view)
{
    const int64_t *d = view->dims;

    if (view->ndim != 4 || view->offsets != NULL || view->dtype == HR_DTYPE_NONE ||
        d[1] < 1 || d[2] < 1 || d[3] < 1 || d[1] > 32768 || d[2] > 32768 || d[3] > 32768)
        return false;
    return is_channels(d[3]) || is_channels(d[1]);
}

/* Finds the smallest and largest finite value. */
static void find_range(const struct hr_field_view *view, const char *record, double *low,
                       double *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (int64_t i = 0; i < view->dims[1]; i++)
        for (int64_t j = 0; j < view->dims[2]; j++)
            for (int64_t k = 0; k < view->dims[3]; k++) {
                double v = picture_element(view->dtype, record + i * view->strides[1] +
                                                            j * view->strides[2] +
                                                            k * view->strides[3]);
                if (!isfinite(v))
                    continue;
                *low = v < *low ? v : *low;
                *high = v > *high ? v : *high;
            }
    if (*low > *high)
        *low = *high = 0;
}

static uint8_t level(double value)
{
    return value >= 255 ? 255 : value > 0 ? (uint8_t)(value + 0.5) : 0;
}

bool picture_make(const struct hr_field_view *view, int64_t record,
                  struct picture *ret_picture, enum picture_scale *ret_scale)
{
    bool last = is_channels(view->dims[3]);
    int y = last ? 1 : 2, x = last ? 2 : 3, c = last ? 3 : 1;
    const char *base = (const char *)view->data + record * view->strides[0];
    struct picture p = {(int)view->dims[x], (int)view->dims[y], (int)view->dims[c], NULL};
    double low, high, scale = 1, shift = 0;
    uint8_t *out;

    find_range(view, base, &low, &high);
    *ret_scale = PICTURE_AS_IS;
    if (view->dtype == HR_BOOL ||
        (view->dtype >= HR_F16 && view->dtype <= HR_F64 && low >= 0 && high <= 1)) {
        scale = 255;
    } else if (low < 0 || high > 255 || (view->dtype != HR_U8 && high <= 16)) {
        *ret_scale = PICTURE_RANGE;
        scale = high > low ? 255 / (high - low) : 1;
        shift = -low;
    }
    p.pixels = out = malloc((size_t)p.width * (size_t)p.height * (size_t)p.channels);
    if (out == NULL)
        return false;
    for (int64_t i = 0; i < p.height; i++)
        for (int64_t j = 0; j < p.width; j++)
            for (int64_t k = 0; k < p.channels; k++)
                *out++ =
                    level(scale * (shift + picture_element(view->dtype,
                                                           base + i * view->strides[y] +
                                                               j * view->strides[x] +
                                                               k * view->strides[c])));
    *ret_picture = p;
    return true;
}

/* Averages the source pixels under cell pixel (x, y); small pictures are not enlarged. */
static uint8_t
average(const struct picture *p, int x, int y, int width, int height, int channel)
{
    int x0 = x * p->width / width, x1 = (x + 1) * p->width / width;
    int y0 = y * p->height / height, y1 = (y + 1) * p->height / height;
    int c = p->channels == 1 ? 0 : channel;
    long sum = 0, count = 0;

    for (int i = y0; i < y1 || i == y0; i++)
        for (int j = x0; j < x1 || j == x0; j++, count++)
            sum += p->pixels[((size_t)i * (size_t)p->width + (size_t)j) *
                                 (size_t)p->channels +
                             (size_t)c];
    return (uint8_t)((sum + count / 2) / count);
}

static void place(struct picture *sheet, const struct picture *p, int left, int top)
{
    int longest = p->width > p->height ? p->width : p->height;
    double shrink = longest > CELL ? (double)CELL / longest : 1;
    int width = (int)(p->width * shrink), height = (int)(p->height * shrink);

    width = width < 1 ? 1 : width;
    height = height < 1 ? 1 : height;
    left += (CELL - width) / 2;
    top += (CELL - height) / 2;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < 3; c++)
                sheet->pixels[((size_t)(top + y) * (size_t)sheet->width +
                               (size_t)(left + x)) *
                                  3 +
                              (size_t)c] = average(p, x, y, width, height, c);
}

bool picture_sheet(const struct picture *pictures, size_t count,
                   struct picture *ret_sheet)
{
    int columns = (int)ceil(sqrt((double)count) * 1.2);
    int rows;
    struct picture sheet = {.channels = 3};

    columns = columns > (int)count ? (int)count : columns;
    columns = columns < 1 ? 1 : columns;
    rows = ((int)count + columns - 1) / columns;
    sheet.width = columns * (CELL + GAP) + GAP;
    sheet.height = rows * (CELL + GAP) + GAP;
    sheet.pixels = malloc((size_t)sheet.width * (size_t)sheet.height * 3);
    if (sheet.pixels == NULL)
        return false;
    memset(sheet.pixels, 32, (size_t)sheet.width * (size_t)sheet.height * 3);
    for (size_t i = 0; i < count; i++)
        place(&sheet, &pictures[i], GAP + (int)i % columns * (CELL + GAP),
              GAP + (int)i / columns * (CELL + GAP));
    *ret_sheet = sheet;
    return true;
}
