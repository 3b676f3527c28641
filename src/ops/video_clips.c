/*
 * video.clips - a record for each clip of a video, with its bytes uncopied.
 */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "ops/video.h"

struct clips {
    const char *field, *to;
    struct hr_clip_params clip;
    int64_t step;
};

static const struct hr_param clips_params[] = {
    HR_P_FIELD(struct clips, field, .fallback = "data", .access = HR_ACCESS_READ,
               .help = "the field with the encoded bytes, which all clips keep"),
    HR_P_FIELD(struct clips, to, .fallback = "start", .access = HR_ACCESS_WRITE,
               .help = "the field that becomes the number of the clip's first frame, an "
                       "int64: `start_from` of video.decode"),
    HR_P_CLIP(struct clips),
    HR_P_INT(struct clips, step, .fallback = "0", HR_RANGE(0, 1LL << 40),
             .unit = "frames",
             .help = "from the start of a clip to that of the next; 0: `frames` times "
                     "`stride`, so that no frame is in two clips"),
    HR_P_VIDEO_LIMITS(struct clips),
};

enum { FIELD_FROM, FIELD_TO };

/* Where the fields of children come from. */
struct state {
    size_t start;                      /* number of the field `to` among a child's */
    size_t from[HR_SCHEMA_FIELDS_MAX]; /* of the others: among the parent's */
};

static enum hr_err clips_infer(struct hr_infer *infer)
{
    const struct clips *p = infer->params;
    struct hr_field *to = infer->fields[FIELD_TO];
    int slot = to->slot;

    if (infer->fields[FIELD_FROM] == to)
        return hr__infer_fail(infer, "to", HR_ERR_ARGUMENT,
                              "the number of the first frame needs a field of its own");
    HR_TRY(hr__infer_encoded(infer, FIELD_FROM));
    *to = (struct hr_field){.kind = HR_FIELD_TENSOR, .dtype = HR_I64, .slot = slot};
    snprintf(to->name, sizeof to->name, "%s", p->to);
    infer->output->records = -1;
    return HR_OK;
}

static enum hr_err clips_open(const struct hr_open *open, void **ret_state)
{
    const struct clips *p = open->params;
    struct state *state = hr__calloc(1, sizeof *state);

    if (state == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < open->output->count; i++) {
        const char *name = open->output->fields[i].name;

        if (strcmp(name, p->to) == 0)
            state->start = i;
        else
            state->from[i] =
                (size_t)(hr__schema_get(open->input, name) - open->input->fields);
    }
    *ret_state = state;
    return HR_OK;
}

static void clips_close(void *state)
{
    hr__free(state);
}

/* Frames from the start of a clip to that of the next. */
static int64_t step_of(const struct clips *p)
{
    return p->step > 0 ? p->step : p->clip.frames * p->clip.stride;
}

static enum hr_err clips_count(struct hr_op_ctx *ctx, uint64_t *ret_count)
{
    const struct clips *p = ctx->params;
    struct hr_video *video;
    int64_t spare = 0;
    enum hr_err err;

    HR_TRY(hr__clip_open(ctx, ctx->fields[FIELD_FROM], &p->clip, &video));
    err = hr__clip_spare(ctx, &p->clip, video, 0, &spare);
    hr__video_close(video);
    *ret_count = (uint64_t)(spare / step_of(p)) + 1;
    return err;
}

static enum hr_err
clips_child(struct hr_op_ctx *ctx, uint64_t at, const struct hr_value *parents,
            struct hr_value *children, size_t count)
{
    const struct state *state = ctx->state;
    void *start;

    HR_TRY(hr__op_alloc(ctx, sizeof(int64_t), &start));
    *(int64_t *)start = (int64_t)at * step_of(ctx->params);
    for (size_t i = 0; i < count; i++) {
        if (i == state->start) {
            hr__value_set_tensor(&children[i], HR_I64, 0, NULL, start, NULL);
            continue;
        }
        children[i] = parents[state->from[i]];
        children[i].shared = true;
        if (children[i].owner != NULL)
            hr_buffer_ref(children[i].owner);
    }
    return HR_OK;
}

const struct hr_op hr_op_video_clips = {
    .name = "video.clips",
    .summary = "a record for each clip of a video",
    .doc = "The record's fields, with the number of the clip's first frame: "
           "`video.clips: {frames: 16}` and then `video.decode: {frames: 16, start_from: "
           "start}` decode all of a video, 16 frames at a time. Nothing is decoded here, "
           "and the bytes are not copied. Frames after the last whole clip are left out. "
           "Clip i is child i of the record that held the video, and its identity says "
           "so.",
    .version = 1,
    .kind = HR_OP_EXPAND,
    .traits = HR_TRAIT_PURE | HR_TRAIT_GROWS,
    HR_PARAMS(clips_params, struct clips),
    .infer = clips_infer,
    .open = clips_open,
    .close = clips_close,
    .expand.count = clips_count,
    .expand.child = clips_child,
};
