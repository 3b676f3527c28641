/*
 * move.c - moves all fields of an op's list by one draw.
 */
#include "ops/move.h"

#include <assert.h>

#include "core/alloc.h"
#include "ops/image_job.h"
#include "ops/image_size.h"
#include "ops/kinds.h"

/* State of an op with more than one field: the kind and the name of each. */
struct followers {
    size_t count;
    struct {
        const struct hr_kind *kind;
        const char *name; /* the parameters' */
    } items[HR_LIST_MAX];
};

enum hr_err hr__move_open(const struct hr_open *open, void **ret_state)
{
    const struct hr_names *names = open->params;
    struct followers *state;

    *ret_state = NULL;
    if (names->count == 1)
        return HR_OK;
    state = hr__calloc(1, sizeof *state);
    if (state == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    for (int i = 0; i < names->count; i++) {
        const struct hr_field *field = hr__schema_get(open->input, names->values[i]);

        state->items[i].name = names->values[i];
        state->items[i].kind = field != NULL ? hr__kind_of(field) : NULL;
        if (state->items[i].kind == NULL) {
            hr__free(state);
            return hr__fail(open->error, HR_ERR_TYPE, "field \"%s\" cannot move",
                            names->values[i]);
        }
    }
    state->count = (size_t)names->count;
    *ret_state = state;
    return HR_OK;
}

void hr__move_close(void *state)
{
    hr__free(state);
}

/* ---- infer ---- */

static bool is_listed(const struct hr_infer *infer, const struct hr_field *field)
{
    for (size_t i = 0; i < infer->field_count; i++)
        if (infer->fields[i] == field)
            return true;
    return false;
}

static bool can_follow(const struct hr_field *field)
{
    const struct hr_kind *kind = hr__kind_of(field);

    return kind == &hr__kind_mask || kind == &hr__kind_boxes || kind == &hr__kind_points;
}

/* The first field that a move of the record's only image leaves where it is; NULL if
 * there is none. Of several images nothing says whose they are. */
static struct hr_field *left_behind(const struct hr_infer *infer)
{
    struct hr_field *left = NULL;
    size_t images = 0;

    for (size_t i = 0; i < infer->output->count; i++) {
        struct hr_field *f = &infer->output->fields[i];

        images += hr__kind_of(f) == &hr__kind_image;
        if (left == NULL && can_follow(f) && !is_listed(infer, f))
            left = f;
    }
    return images == 1 ? left : NULL;
}

/* A random move would leave fields where no one can find them. One that is always the
 * same may be wanted for the image alone, as results are compared in its first size; but
 * then nothing moves with it any more. */
static enum hr_err check_left_behind(struct hr_infer *infer)
{
    struct hr_field *left = left_behind(infer);

    for (size_t i = 1; i < infer->field_count; i++) {
        const struct hr_field *f = infer->fields[i];

        if (f->left_by != NULL)
            return hr__infer_fail(
                infer, "field", HR_ERR_ARGUMENT,
                "\"%s\" is where it was before %s moved the image alone: "
                "list it there, too, field: [%s, %s], or, if that is its place all the "
                "same, declare it after that (record.kind)",
                f->name, f->left_by, infer->fields[0]->name, f->name);
    }
    if (left == NULL)
        return HR_OK;
    if (infer->op->traits & HR_TRAIT_RANDOM)
        return hr__infer_fail(
            infer, "field", HR_ERR_ARGUMENT,
            "\"%s\" would stay where it is while \"%s\" moves at random: "
            "add it, as in field: [%s, %s], or leave it out before "
            "(record.drop)",
            left->name, infer->fields[0]->name, infer->fields[0]->name, left->name);
    for (size_t i = 0; i < infer->output->count; i++) {
        struct hr_field *f = &infer->output->fields[i];

        if (can_follow(f) && hr__kind_of(f) != &hr__kind_mask && !is_listed(infer, f))
            f->left_by = infer->op->name;
    }
    return HR_OK;
}

enum hr_err hr__infer_moved(struct hr_infer *infer)
{
    HR_TRY(hr__infer_image(infer, 0));
    for (size_t i = 1; i < infer->field_count; i++) {
        const struct hr_field *f = infer->fields[i];
        char text[128];

        if (hr__kind_of(f) == NULL || hr__kind_of(f)->move == NULL)
            return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                                  "field \"%s\" is %s and cannot move with an image: "
                                  "declare it a mask, boxes or points with record.kind",
                                  f->name, hr__field_text(f, text, sizeof text));
        for (size_t k = 0; k < i; k++)
            if (infer->fields[k] == f)
                return hr__infer_fail(infer, "field", HR_ERR_ARGUMENT,
                                      "field \"%s\" is listed twice", f->name);
    }
    return check_left_behind(infer);
}

enum hr_err hr__infer_moved_boxes(struct hr_infer *infer)
{
    int count = 0;

    for (size_t i = 0; i < infer->field_count; i++)
        count += hr__kind_of(infer->fields[i]) == &hr__kind_boxes;
    if (count != 1)
        return hr__infer_fail(infer, "field", HR_ERR_ARGUMENT,
                              "the list has %d fields of boxes, and this op needs one: "
                              "field: [image, boxes]",
                              count);
    return HR_OK;
}

void hr__infer_moved_size(struct hr_infer *infer, int64_t width, int64_t height)
{
    for (size_t i = 0; i < infer->field_count; i++)
        if (hr__field_has_pixels(infer->fields[i]))
            hr__infer_size(infer->fields[i], width, height);
}

/* ---- the move ---- */

enum hr_err hr__move_boxes(struct hr_op_ctx *ctx, size_t *ret_field, float **ret_boxes,
                           int64_t *ret_count)
{
    const struct followers *f = ctx->state;
    size_t field = 1;

    while (f->items[field].kind != &hr__kind_boxes)
        field++;
    *ret_field = field;
    return hr__boxes_copy(ctx, field, ret_boxes, ret_count);
}

enum hr_err hr__move_begin(struct hr_op_ctx *ctx, struct hr_move *ret_move)
{
    int32_t width, height, channels;

    HR_TRY(hr__image_size(ctx, 0, &width, &height, &channels));
    *ret_move = (struct hr_move){.width = width, .height = height};
    hr__move_crop(ret_move, 0, 0, width, height);
    return HR_OK;
}

void hr__move_pad(struct hr_move *move, int32_t left, int32_t top, int32_t right,
                  int32_t bottom)
{
    move->left = left;
    move->top = top;
    move->right = right;
    move->bottom = bottom;
    hr__move_crop(move, 0, 0, move->width + left + right, move->height + top + bottom);
}

void hr__move_crop(struct hr_move *move, int32_t x, int32_t y, int32_t width,
                   int32_t height)
{
    assert(x >= 0 && y >= 0 && width > 0 && height > 0);
    assert(x + width <= move->width + move->left + move->right);
    assert(y + height <= move->height + move->top + move->bottom);
    move->x = x;
    move->y = y;
    move->crop_width = move->to_width = width;
    move->crop_height = move->to_height = height;
}

void hr__move_resize(struct hr_move *move, int32_t width, int32_t height, int filter,
                     bool antialias)
{
    move->to_width = width;
    move->to_height = height;
    move->filter = filter;
    move->antialias = antialias;
}

static enum hr_err check_sizes(struct hr_op_ctx *ctx, const struct followers *f,
                               int32_t image_width, int32_t image_height)
{
    int32_t width, height, channels;

    assert(f->count == ctx->field_count);
    for (size_t i = 1; i < f->count; i++) {
        if (!f->items[i].kind->pixels)
            continue;
        HR_TRY(hr__image_size(ctx, i, &width, &height, &channels));
        if (width != image_width || height != image_height)
            return hr__fail(ctx->error, HR_ERR_SHAPE,
                            "\"%s\" is %dx%d and \"%s\" is %dx%d: they cannot move "
                            "together",
                            f->items[0].name, (int)image_width, (int)image_height,
                            f->items[i].name, (int)width, (int)height);
    }
    return HR_OK;
}

enum hr_err hr__move(struct hr_op_ctx *ctx, const struct hr_move *move)
{
    const struct followers *f = ctx->state;

    if (f == NULL) {
        assert(ctx->field_count == 1);
        return hr__image_move(ctx, 0, move);
    }
    HR_TRY(check_sizes(ctx, f, move->width, move->height));
    for (size_t i = 0; i < f->count; i++)
        HR_TRY(f->items[i].kind->move(ctx, i, move));
    return HR_OK;
}

enum hr_err hr__move_made(struct hr_op_ctx *ctx, const struct hr_move *move)
{
    HR_TRY(hr__move(ctx, move));
    for (size_t i = 0; i < ctx->field_count; i++)
        HR_TRY(hr__value_force(ctx->thread, ctx->fields[i], NULL, ctx->error));
    return HR_OK;
}

enum hr_err hr__move_to_size(struct hr_op_ctx *ctx, struct hr_move *move, int64_t width,
                             int64_t height, int filter, bool antialias)
{
    if (width > HR_IMAGE_SIDE_MAX || height > HR_IMAGE_SIDE_MAX)
        return hr__fail(ctx->error, HR_ERR_LIMIT,
                        "an image of %dx%d would become %lldx%lld", (int)move->width,
                        (int)move->height, (long long)width, (long long)height);
    hr__move_resize(move, (int32_t)width, (int32_t)height, filter, antialias);
    return hr__move(ctx, move);
}

enum hr_err hr__warp(struct hr_op_ctx *ctx, const struct hr_warp *warp)
{
    const struct followers *f = ctx->state;

    if (f == NULL) {
        assert(ctx->field_count == 1);
        return hr__image_warp(ctx, 0, warp);
    }
    HR_TRY(check_sizes(ctx, f, warp->width, warp->height));
    for (size_t i = 0; i < f->count; i++)
        HR_TRY(f->items[i].kind->warp(ctx, i, warp));
    return HR_OK;
}
