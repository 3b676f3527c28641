/*
 * op/value_copy.c - hr__value_copy(): a tensor with gaps, repeated or transposed dims
 * into contiguous memory.
 *
 * Dims that follow each other in memory are merged, and the innermost run is copied at
 * once. A run may be one element, as where a grey image is read three times or a layout
 * was exchanged: a call of memcpy for each would take several times as long as the copy,
 * so short runs have loops in which their size is a constant.
 */
#include <assert.h>
#include <string.h>

#include "op/value.h"

#define COPY_INLINE static inline __attribute__((always_inline))
#define CHANNELS 3 /* of colours, by far the most common short line */

/* The dims around the innermost run, the last one inside. */
struct walk {
    int64_t dims[HR_MAX_DIMS], strides[HR_MAX_DIMS];
    int ndim;
    int64_t run; /* bytes */
};

/* Merges dims that follow each other in memory, and leaves out those of length 1. */
static struct walk make_walk(const struct hr_value *value)
{
    struct walk w = {.run = (int64_t)hr_dtype_size((enum hr_dtype)value->dtype)};

    for (int i = 0; i < value->ndim; i++) {
        int64_t dim = value->dims[i], stride = value->strides[i];
        bool follows = w.ndim > 0 && w.strides[w.ndim - 1] == dim * stride;

        if (dim == 1)
            continue;
        if (follows)
            dim *= w.dims[--w.ndim];
        w.dims[w.ndim] = dim;
        w.strides[w.ndim++] = stride;
    }
    if (w.ndim > 0 && w.strides[w.ndim - 1] == w.run)
        w.run *= w.dims[--w.ndim];
    return w;
}

/* Lines of CHANNELS runs each: their planes, or one of them repeated, are woven. */
COPY_INLINE void weave(char *out, const char *from, int64_t lines, int64_t stride,
                       int64_t plane, int64_t run)
{
    for (int64_t i = 0; i < lines; i++)
        for (int k = 0; k < CHANNELS; k++)
            memcpy(out + (i * CHANNELS + k) * run, from + i * stride + k * plane,
                   (size_t)run);
}

COPY_INLINE void
copy_line(char *out, const char *from, int64_t count, int64_t stride, int64_t run)
{
    for (int64_t i = 0; i < count; i++)
        memcpy(out + i * run, from + i * stride, (size_t)run);
}

/* The last two dims; strides that are common are constants as well. */
COPY_INLINE void copy_plane(char *out, const char *from, const int64_t *dims,
                            const int64_t *strides, int64_t run)
{
    if (dims[1] == CHANNELS && strides[0] == run && strides[1] == 0) {
        weave(out, from, dims[0], run, 0, run);
        return;
    }
    if (dims[1] == CHANNELS) {
        weave(out, from, dims[0], strides[0], strides[1], run);
        return;
    }
    for (int64_t i = 0; i < dims[0]; i++) {
        if (strides[1] == CHANNELS * run)
            copy_line(out, from, dims[1], CHANNELS * run, run);
        else
            copy_line(out, from, dims[1], strides[1], run);
        out += dims[1] * run;
        from += strides[0];
    }
}

static void copy_runs(char *out, const char *from, const int64_t *dims,
                      const int64_t *strides, int64_t run)
{
    switch (run) {
    case 1:
        copy_plane(out, from, dims, strides, 1);
        return;
    case 2:
        copy_plane(out, from, dims, strides, 2);
        return;
    case 4:
        copy_plane(out, from, dims, strides, 4);
        return;
    case 8:
        copy_plane(out, from, dims, strides, 8);
        return;
    default:
        copy_plane(out, from, dims, strides, run);
    }
}

void hr__value_copy(const struct hr_value *value, void *to)
{
    int64_t at[HR_MAX_DIMS] = {0}, dims[2] = {1, 1}, strides[2] = {0, 0};
    const char *from = value->data;
    char *out = to;
    struct walk w;
    int outer;

    assert(value->kind == HR_VALUE_TENSOR);
    if (hr__value_count(value) == 0)
        return;
    assert(from != NULL && out != NULL);
    w = make_walk(value);
    outer = w.ndim > 2 ? w.ndim - 2 : 0;
    for (int i = outer; i < w.ndim; i++) {
        dims[2 - w.ndim + i] = w.dims[i];
        strides[2 - w.ndim + i] = w.strides[i];
    }
    for (;;) {
        int i = outer - 1;

        copy_runs(out, from, dims, strides, w.run);
        out += dims[0] * dims[1] * w.run;
        while (i >= 0 && ++at[i] == w.dims[i]) {
            from -= (w.dims[i] - 1) * w.strides[i];
            at[i--] = 0;
        }
        if (i < 0)
            return;
        from += w.strides[i];
    }
}
