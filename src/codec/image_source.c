/*
 * codec/image_source.c - see image_source.h. Computes what to decode, then cuts the
 * decoded part, turns it upright and locates the box in it.
 */
#include "codec/image_source.h"
#include "core/error.h"

#include <assert.h>
#include <math.h>

#include "kernel/resample.h"

/* Pixels that the widest filter reaches beyond a box at less than three times the size of
 * the result, with those for rounding. */
#define REACH_MAX 12

struct rect {
    int32_t x, y, width, height;
};

/* By how much a decode at a reduced scale is larger than the result, at least. */
static double spare_of(const struct hr_image_view *view)
{
    return view->mode == HR_MODE_CLOSE ? 1.5 : 1.0;
}

static bool may_reduce(const struct hr_image_info *info, const struct hr_image_view *view)
{
    return info->format == HR_IMAGE_JPEG && view->resampled && view->antialias &&
           view->mode != HR_MODE_EXACT && view->filter != HR_FILTER_NEAREST;
}

static int
reduced_scale(const struct hr_image_info *info, const struct hr_image_view *view)
{
    double spare = spare_of(view);
    int log2 = 0;

    if (!may_reduce(info, view))
        return 0;
    while (log2 < 3 && view->box_width / (2 << log2) >= spare * view->width &&
           view->box_height / (2 << log2) >= spare * view->height)
        log2++;
    return log2;
}

/* One axis of a view. */
struct span {
    int32_t clip, clip_size;
    double box, box_size;
    int32_t size, full, at;
};

/* What one axis needs of the clip: the part of the box that is shown, what the taps reach
 * beyond it, one more pixel for rounding and for subsampled chroma, rounded out to whole
 * pixels of the reduced scale. */
static void needed_range(const struct hr_image_view *view, const struct span *span,
                         int log2, int32_t *ret_at, int32_t *ret_size)
{
    double unit = 1 << log2, low, high;
    double scale = span->box_size / (span->full > 0 ? span->full : span->size);
    double taps = hr__resample_reach(view->filter, view->antialias, scale / unit);
    double reach = (taps + 1) * unit, from = span->box, to = from + span->box_size;

    if (span->full > 0) {
        from += span->at * scale;
        to = from + span->size * scale;
    }
    low = floor((from - reach) / unit) * unit;
    high = ceil((to + reach) / unit) * unit;
    low = fmax(low, span->clip);
    high = fmin(high, (double)span->clip + span->clip_size);
    *ret_at = (int32_t)low;
    *ret_size = (int32_t)(high - low);
}

static struct rect needed_rect(const struct hr_image_view *view, int log2)
{
    struct rect rect = {view->clip_x, view->clip_y, view->clip_width, view->clip_height};
    const struct span x = {view->clip_x, view->clip_width, view->box_x, view->box_width,
                           view->width,  view->full_width, view->at_x};
    const struct span y = {view->clip_y, view->clip_height, view->box_y, view->box_height,
                           view->height, view->full_height, view->at_y};

    if (!view->resampled)
        return rect;
    needed_range(view, &x, log2, &rect.x, &rect.width);
    needed_range(view, &y, log2, &rect.y, &rect.height);
    return rect;
}

static void
cut(struct hr_pixels *pixels, int32_t x, int32_t y, int32_t width, int32_t height)
{
    assert(x >= 0 && y >= 0 && width <= pixels->width - x &&
           height <= pixels->height - y);
    pixels->data =
        (char *)pixels->data + y * pixels->row_stride + x * pixels->pixel_stride;
    pixels->width = width;
    pixels->height = height;
}

void hr__image_source_cut(const struct hr_pixels *pixels,
                          const struct hr_image_view *view,
                          struct hr_image_source *ret_source)
{
    struct rect rect = needed_rect(view, 0);

    *ret_source = (struct hr_image_source){
        .pixels = *pixels,
        .x = rect.x,
        .y = rect.y,
        .box_x = view->box_x - rect.x,
        .box_y = view->box_y - rect.y,
        .box_width = view->box_width,
        .box_height = view->box_height,
    };
    cut(&ret_source->pixels, rect.x, rect.y, rect.width, rect.height);
}

/* How an EXIF orientation maps the stored image: the stored axes that upright x and y run
 * along, and their directions. */
struct axes {
    bool swapped, mirror_x, mirror_y; /* mirrors of the stored axes */
};

static struct axes axes_of(int orientation)
{
    struct axes axes = {
        .swapped = orientation >= 5,
        .mirror_x =
            orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8,
        .mirror_y =
            orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7,
    };

    assert(orientation >= 1 && orientation <= 8);
    return axes;
}

/* The stored rectangle for an upright one. */
static struct rect
stored_rect(const struct hr_image_info *info, int orientation, struct rect rect)
{
    struct axes axes = axes_of(orientation);
    struct rect stored = rect;

    if (axes.swapped)
        stored = (struct rect){rect.y, rect.x, rect.height, rect.width};
    if (axes.mirror_x)
        stored.x = info->width - stored.x - stored.width;
    if (axes.mirror_y)
        stored.y = info->height - stored.y - stored.height;
    return stored;
}

/* Copies a row of pixels that are `step` bytes apart. */
static inline void gather_row(uint8_t *to, const uint8_t *from, int64_t step,
                              int32_t width, int32_t channels)
{
    for (int32_t x = 0; x < width; x++, from += step, to += channels)
        for (int32_t c = 0; c < channels; c++)
            to[c] = from[c];
}

/* Copies the cut part upright. */
static enum hr_err put_upright(struct hr_arena *arena, int orientation,
                               struct hr_pixels *pixels, struct hr_error *reterr)
{
    struct axes axes = axes_of(orientation);
    struct hr_pixels in = *pixels, out = *pixels;
    const uint8_t *origin = in.data;
    int64_t step_x = in.pixel_stride, step_y = in.row_stride;
    uint8_t *to;

    if (axes.mirror_x) {
        origin += (in.width - 1) * in.pixel_stride;
        step_x = -step_x;
    }
    if (axes.mirror_y) {
        origin += (in.height - 1) * in.row_stride;
        step_y = -step_y;
    }
    out.width = axes.swapped ? in.height : in.width;
    out.height = axes.swapped ? in.width : in.height;
    out.row_stride = (int64_t)out.width * out.channels;
    to = hr__arena_alloc(arena, (size_t)(out.row_stride * out.height));
    if (to == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory turning an image upright");
    out.data = to;
    for (int32_t y = 0; y < out.height; y++, to += out.row_stride) {
        const uint8_t *from = origin + y * (axes.swapped ? step_x : step_y);
        int64_t step = axes.swapped ? step_y : step_x;
        if (in.channels == 3)
            gather_row(to, from, step, out.width, 3);
        else
            gather_row(to, from, step, out.width, in.channels);
    }
    *pixels = out;
    return HR_OK;
}

/* Cuts the requested window out of the decoded part, so that nothing outside it is ever
 * read. */
static enum hr_err cut_part(const struct hr_image_view *view, struct hr_image_part *part,
                            const struct rect *asked, struct hr_error *reterr)
{
    int log2 = part->scale_log2;
    int32_t unit = 1 << log2;
    int32_t x = asked->x >> log2, y = asked->y >> log2;
    int32_t width = ((asked->x + asked->width + unit - 1) >> log2) - x;
    int32_t height = ((asked->y + asked->height + unit - 1) >> log2) - y;

    if (part->pixels.channels != view->channels)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the image has %d channels where its header said %d",
                        (int)part->pixels.channels, (int)view->channels);
    if (x < part->x || y < part->y || x + width > part->x + part->pixels.width ||
        y + height > part->y + part->pixels.height)
        return hr__fail(reterr, HR_ERR_INTERNAL,
                        "the decoder returned less than the window");
    cut(&part->pixels, x - part->x, y - part->y, width, height);
    part->x = x;
    part->y = y;
    return HR_OK;
}

/* Where a cut of `size` scaled pixels at `at` begins, counted from the opposite end. */
static double from_end(int32_t full, int32_t at, int32_t size, double unit)
{
    return full / unit - (at + size);
}

/* A resize may take luma and chroma planes as stored, which costs less work and less
 * rounding, but gives other bytes than converting first. */
static bool
takes_planes(const struct hr_image_info *info, const struct hr_image_view *view)
{
    return view->mode != HR_MODE_EXACT && view->resampled && view->antialias &&
           view->filter != HR_FILTER_NEAREST && view->orientation == 1 &&
           view->want == HR_CHANNELS_RGB && info->format == HR_IMAGE_JPEG;
}

static void place_box(const struct hr_image_view *view, double unit, double x, double y,
                      struct hr_image_source *source)
{
    source->x = (int32_t)(x * unit);
    source->y = (int32_t)(y * unit);
    source->box_x = view->box_x / unit - x;
    source->box_y = view->box_y / unit - y;
    source->box_width = view->box_width / unit;
    source->box_height = view->box_height / unit;
}

/* The arguments of one decode, for the functions below. */
struct decode {
    struct hr_image_decoder *decoder;
    struct hr_arena *arena;
    const void *data;
    size_t bytes;
    const struct hr_image_info *info;
    const struct hr_image_view *view;
    struct hr_error *reterr;
};

/* HR_ERR_UNSUPPORTED without a message: decode to RGB instead. */
static enum hr_err
source_planes(const struct decode *d, const struct hr_image_request *request,
              struct hr_image_source *source)
{
    struct hr_image_planes planes;

    if (!takes_planes(d->info, d->view))
        return HR_ERR_UNSUPPORTED;
    HR_TRY(hr__image_decode_planes(d->decoder, d->arena, d->data, d->bytes, d->info,
                                   request, &planes, d->reterr));
    source->planar = true;
    source->ycc = planes.ycc;
    source->pixels = planes.ycc.plane[0];
    place_box(d->view, 1 << planes.scale_log2, planes.x, planes.y, source);
    return HR_OK;
}

/* `rect` is the requested stored rectangle. */
static enum hr_err
source_pixels(const struct decode *d, const struct hr_image_request *request,
              const struct rect *rect, struct hr_image_source *source)
{
    struct axes axes = axes_of(d->view->orientation);
    struct hr_image_part part;
    double unit, x, y;

    HR_TRY(hr__image_decode(d->decoder, d->arena, d->data, d->bytes, d->info, request,
                            &part, d->reterr));
    HR_TRY(cut_part(d->view, &part, rect, d->reterr));
    unit = 1 << part.scale_log2;
    x = axes.mirror_x ? from_end(d->info->width, part.x, part.pixels.width, unit)
                      : part.x;
    y = axes.mirror_y ? from_end(d->info->height, part.y, part.pixels.height, unit)
                      : part.y;
    if (d->view->orientation != 1)
        HR_TRY(put_upright(d->arena, d->view->orientation, &part.pixels, d->reterr));
    source->pixels = part.pixels;
    place_box(d->view, unit, axes.swapped ? y : x, axes.swapped ? x : y, source);
    return HR_OK;
}

enum hr_err
hr__image_source_decode(struct hr_image_decoder *decoder, struct hr_arena *arena,
                        const void *data, size_t bytes, const struct hr_image_info *info,
                        const struct hr_image_view *view,
                        struct hr_image_source *ret_source, struct hr_error *reterr)
{
    const struct decode d = {decoder, arena, data, bytes, info, view, reterr};
    int log2 = reduced_scale(info, view);
    struct rect rect = stored_rect(info, view->orientation, needed_rect(view, log2));
    struct hr_image_request request = {.channels = view->want,
                                       .x = rect.x,
                                       .y = rect.y,
                                       .width = rect.width,
                                       .height = rect.height,
                                       .scale_log2 = log2,
                                       .pixels_max = view->pixels_max,
                                       .index = view->index,
                                       .seen = view->seen};
    struct hr_image_source source = {0};
    enum hr_err err = source_planes(&d, &request, &source);

    if (err == HR_ERR_UNSUPPORTED)
        err = source_pixels(&d, &request, &rect, &source);
    if (err == HR_OK)
        *ret_source = source;
    return err;
}

/* Pixels that a decode leaves at most, whatever box of this shape is drawn: the next
 * scale would be too small, so one side is less than twice what is needed at least. */
static double
most_pixels(const struct hr_image_info *info, const struct hr_image_view *view)
{
    double whole = (double)view->clip_width * view->clip_height;
    double ratio = view->box_width / view->width, other = view->box_height / view->height;
    double shape = ratio > other ? ratio / other : other / ratio;
    double reach = 2 * spare_of(view);
    double most;

    if (!may_reduce(info, view))
        return whole;
    most = (reach * view->width + 2 * REACH_MAX) *
           (reach * view->height + 2 * REACH_MAX) * shape;
    return most < whole ? most : whole;
}

/* Rows of a PNG are decoded in full width. */
static double decoded_pixels(const struct hr_image_info *info,
                             const struct hr_image_view *view, bool drawn)
{
    int log2 = reduced_scale(info, view);
    struct rect rect = stored_rect(info, view->orientation, needed_rect(view, log2));
    double unit = 1 << log2;

    if (info->whole)
        return (double)info->width * info->height;
    if (info->format == HR_IMAGE_PNG)
        return (double)info->width * (drawn ? info->height : rect.height);
    if (drawn && view->resampled)
        return most_pixels(info, view);
    return rect.width / unit * (rect.height / unit);
}

uint64_t
hr__image_source_bytes(const struct hr_image_info *info, const struct hr_image_view *view,
                       size_t bytes, bool drawn)
{
    double each = view->channels > info->channels ? view->channels : info->channels;

    if (takes_planes(info, view))
        each = info->samples;
    else if (info->format == HR_IMAGE_JPEG && !info->cmyk)
        each = view->channels;
    else if (info->format == HR_IMAGE_PNM && view->channels > info->channels)
        each += info->channels;
    if (view->seen != NULL) /* samples are kept for other views */
        each += info->samples;
    if (view->orientation != 1)
        each += view->channels;
    return info->held_bytes + (info->format == HR_IMAGE_JPEG ? bytes : 0) +
           (uint64_t)(each * decoded_pixels(info, view, drawn));
}

/* Counts from the clip instead of the part that was decoded, which depends on the
 * window. */
static void count_from_clip(const struct hr_image_source *source,
                            const struct hr_image_view *view, struct hr_resample *spec)
{
    spec->in_width = view->clip_width;
    spec->in_height = view->clip_height;
    spec->in_x = source->x - view->clip_x;
    spec->in_y = source->y - view->clip_y;
    spec->box_x = view->box_x - view->clip_x;
    spec->box_y = view->box_y - view->clip_y;
    spec->full_width = view->full_width;
    spec->full_height = view->full_height;
    spec->out_x = view->at_x;
    spec->out_y = view->at_y;
}

enum hr_err
hr__image_source_resample(struct hr_arena *arena, const struct hr_image_source *source,
                          const struct hr_image_view *view,
                          const struct hr_image_finish *finish,
                          const struct hr_pixels *to, struct hr_error *reterr)
{
    struct hr_resample spec = {
        .in_width = source->pixels.width,
        .in_height = source->pixels.height,
        .box_x = source->box_x,
        .box_y = source->box_y,
        .box_width = source->box_width,
        .box_height = source->box_height,
        .out_width = view->width,
        .out_height = view->height,
        .flip_x = finish->flip_x,
        .flip_y = finish->flip_y,
        .filter = view->filter,
        .antialias = view->antialias,
    };
    struct hr_resample_plan *plan;
    enum hr_err err;

    if (view->full_width > 0)
        count_from_clip(source, view, &spec);
    if (source->planar)
        err = hr__resample_ycc(arena, &spec, &source->ycc, to, finish->round_levels,
                               finish->steps, finish->step_count);
    else
        err = hr__resample_plan(arena, &spec, &plan);
    if (err == HR_OK && !source->planar)
        err = hr__resample_run(plan, arena, &source->pixels, to, finish->round_levels,
                               finish->steps, finish->step_count);
    if (err != HR_OK)
        return hr__fail(reterr, err, "out of memory resizing an image");
    return HR_OK;
}
