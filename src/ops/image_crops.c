/*
 * image_crops.c - one crop of an image, with copies of the record's other fields.
 */
#include "ops/image_crops.h"

#include <assert.h>
#include <math.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "ops/image_job.h"

struct crops_state {
    size_t image; /* number of the field in the record */
};

enum hr_err hr__crops_infer(struct hr_infer *infer)
{
    const struct hr_crops *p = infer->params;

    HR_TRY(hr__infer_pixels(infer, 0));
    hr__infer_size(infer->fields[0], hr__size_width(&p->size), hr__size_height(&p->size));
    infer->output->records = -1;
    return HR_OK;
}

enum hr_err hr__crops_open(const struct hr_open *open, void **ret_state)
{
    const struct hr_crops *p = open->params;
    struct crops_state *state = hr__calloc(1, sizeof *state);

    if (state == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    state->image =
        (size_t)(hr__schema_get(open->output, p->field) - open->output->fields);
    assert(state->image < open->output->count);
    *ret_state = state;
    return HR_OK;
}

void hr__crops_close(void *state)
{
    hr__free(state);
}

/* The crop's place in the image, flipped or not. Half a pixel is rounded to even, as by
 * torchvision's center_crop. */
static void place(int corner, const struct hr_pixels *in, int32_t width, int32_t height,
                  int32_t *ret_x, int32_t *ret_y)
{
    int32_t right = in->width - width, bottom = in->height - height;

    *ret_x = corner % 2 == 1 ? right : 0;
    *ret_y = corner >= 2 ? bottom : 0;
    if (corner == 4) {
        *ret_x = (int32_t)rint(right / 2.0);
        *ret_y = (int32_t)rint(bottom / 2.0);
    }
}

static enum hr_err make_crop(struct hr_op_ctx *ctx, uint64_t at,
                             const struct hr_value *image, struct hr_value *ret_crop)
{
    const struct hr_crops *p = ctx->params;
    int32_t width = hr__size_width(&p->size), height = hr__size_height(&p->size), x, y;
    bool flip_x = at >= 5 && !p->vertical, flip_y = at >= 5 && p->vertical;
    struct hr_pixels in, out;

    HR_TRY(hr__image_view(image, &in, ctx->error));
    if (width > in.width || height > in.height)
        return hr__fail(ctx->error, HR_ERR_SHAPE,
                        "the crops are %dx%d and the image is only %dx%d: resize it "
                        "before",
                        (int)width, (int)height, (int)in.width, (int)in.height);
    HR_TRY(hr__image_make(ctx->thread, width, height, in.channels, in.dtype,
                          hr__image_layout_of(image), ret_crop, &out, ctx->error));
    place((int)(at % 5), &in, width, height, &x, &y);
    x = flip_x ? in.width - width - x : x;
    y = flip_y ? in.height - height - y : y;
    in = hr__image_inside(&in, x, y, width, height);
    hr__pixels_store(&in, &out, NULL, 0, flip_x, flip_y);
    return HR_OK;
}

enum hr_err
hr__crops_child(struct hr_op_ctx *ctx, uint64_t at, const struct hr_value *parents,
                struct hr_value *children, size_t count)
{
    const struct crops_state *state = ctx->state;

    for (size_t i = 0; i < count; i++) {
        if (i == state->image) {
            HR_TRY(make_crop(ctx, at, &parents[i], &children[i]));
            continue;
        }
        children[i] = parents[i];
        children[i].shared = true;
        if (children[i].owner != NULL)
            hr_buffer_ref(children[i].owner);
    }
    return HR_OK;
}
