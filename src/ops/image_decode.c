/*
 * image.decode - turns a photo's bytes into a described image. Pixels are made when a
 * later node needs them, and only those that it needs.
 */
#include "ops/image_job.h"

#include "core/str.h"

struct decode {
    const char *field, *to;
    int color, mode;
    bool orientation;
    int64_t pixels_max;
    int64_t seek_bytes;
};

static const char *const colors[] = {"rgb", "gray", "unchanged", "labels", NULL};
static const char *const modes[] = {"exact", "close", "fast", NULL};

static const struct hr_param decode_params[] = {
    HR_P_FIELD(struct decode, field, .fallback = "data", .access = HR_ACCESS_TAKE,
               .help = "the field with the encoded bytes; it is dropped"),
    HR_P_FIELD(struct decode, to, .fallback = "image", .access = HR_ACCESS_WRITE,
               .help = "the field that becomes the image"),
    HR_P_ENUM(struct decode, color, .fallback = "rgb", .names = colors,
              .help =
                  "channels: rgb repeats gray and drops alpha; unchanged keeps those of "
                  "the file; labels: a mask, the numbers in a PNG with a palette or in "
                  "gray"),
    HR_P_BOOL(struct decode, orientation, .fallback = "false",
              .help = "rotate and mirror the image according to its EXIF data"),
    HR_P_ENUM(struct decode, mode, .fallback = "close", .names = modes,
              .help = "exact: decode at full size always; close: at a half, quarter or "
                      "eighth where 1.5 times the wanted size remains; fast: where the "
                      "wanted size remains"),
    HR_P_INT(struct decode, pixels_max, .fallback = "268435456", HR_RANGE(1, 4e9),
             .unit = "pixels", .help = "refuse larger images"),
    HR_P_BYTES(struct decode, seek_bytes, .fallback = "256MB", HR_MIN(0),
               .help = "memory for seek points in JPEGs, at which decoding can start; 0: "
                       "none are recorded or used",
               .not_identity = true),
};

enum { FIELD_FROM, FIELD_TO };

static enum hr_err decode_infer(struct hr_infer *infer)
{
    const struct decode *p = infer->params;
    struct hr_field *to = infer->fields[FIELD_TO];
    const struct hr_field *from = infer->fields[FIELD_FROM];

    if (from != to && from->kind != HR_FIELD_BYTES)
        return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                              "field \"%s\" has no bytes to decode", p->field);
    *to = (struct hr_field){
        .kind = HR_FIELD_TENSOR,
        .dtype = HR_U8,
        .ndim = 3,
        .meaning = p->color == HR_CHANNELS_LABELS ? HR_MEANING_MASK : HR_MEANING_IMAGE_U8,
        .layout = HR_LAYOUT_HWC,
        .slot = to->slot};
    for (size_t i = 0; p->to[i] != '\0' && i < HR_FIELD_NAME_MAX; i++)
        to->name[i] = p->to[i];
    hr__dim_unknown(&to->dims[0], "height");
    hr__dim_unknown(&to->dims[1], "width");
    if (p->color == HR_CHANNELS_UNCHANGED)
        hr__dim_unknown(&to->dims[2], "channels");
    else
        hr__dim_set(&to->dims[2], p->color == HR_CHANNELS_RGB ? 3 : 1);
    return HR_OK;
}

/* ---- seek points, the node's state ---- */

static enum hr_err decode_open(const struct hr_open *open, void **ret_state)
{
    const struct decode *p = open->params;
    struct hr_seek *seek = open->twin;

    if (p->seek_bytes == 0 || p->color == HR_CHANNELS_LABELS)
        return HR_OK;
    if (seek != NULL)
        seek = hr__seek_ref(seek);
    else
        HR_TRY(hr__seek_create(open->side_file, (uint64_t)p->seek_bytes, &seek,
                               open->error));
    *ret_state = seek;
    return HR_OK;
}

static void decode_close(void *state)
{
    hr__seek_unref(state);
}

static void decode_rest(void *state)
{
    hr__seek_rest(state);
}

static void decode_pause(void *state)
{
    hr__seek_pause(state);
}

static void decode_keeps(const void *state, struct hr_kept *ret_kept)
{
    struct hr_seek_stats stats;

    hr__seek_stats((struct hr_seek *)(uintptr_t)state, &stats);
    *ret_kept = (struct hr_kept){stats.entries, stats.bytes, stats.hits, stats.misses};
}

static void decode_tell(const void *state, struct hr_str *out)
{
    struct hr_seek_stats stats;

    hr__seek_stats((struct hr_seek *)(uintptr_t)state, &stats);
    if (stats.damaged)
        hr__str_add(out, "the seek points in the saved index were damaged and are "
                         "recorded again; ");
    if (stats.entries == 0) {
        hr__str_add(out,
                    "records seek points in JPEGs; later views of a photo start there");
        return;
    }
    hr__str_addf(out,
                 "has seek points in %llu JPEGs, %.0f bytes each (%.1f MB, of which "
                 "%.1f MB in memory), for %.0f %% of their rows: of those it decodes "
                 "what a view needs, and skips the rest",
                 (unsigned long long)stats.entries,
                 (double)stats.bytes / (double)stats.entries, (double)stats.bytes / 1e6,
                 (double)stats.memory_bytes / 1e6, 100 * stats.done);
    if (stats.would > 0)
        hr__str_addf(out, "; windows decoded %.0f %% of a photo instead of %.0f %%",
                     100 * stats.went, 100 * stats.would);
    if (stats.hits + stats.misses > 0)
        hr__str_addf(out, "; found %llu times of %llu", (unsigned long long)stats.hits,
                     (unsigned long long)(stats.hits + stats.misses));
}

/* A reduced scale would mix labels. */
static enum hr_image_mode mode_of(const struct decode *p)
{
    return p->color == HR_CHANNELS_LABELS ? HR_MODE_EXACT : (enum hr_image_mode)p->mode;
}

static enum hr_err decode_apply(struct hr_op_ctx *ctx)
{
    const struct decode *p = ctx->params;
    struct hr_value bytes = *ctx->fields[FIELD_FROM];
    const struct hr_image_begin how = {
        .mode = mode_of(p),
        .channels = (enum hr_image_channels)p->color,
        .orientation = p->orientation,
        .pixels_max = (uint64_t)p->pixels_max,
        .seek = ctx->state,
    };
    enum hr_err err;

    if (bytes.kind != HR_VALUE_BYTES)
        return hr__fail(ctx->error, HR_ERR_TYPE, "the field has no bytes to decode");
    *ctx->fields[FIELD_FROM] = (struct hr_value){0};
    err = hr__image_begin(ctx, FIELD_TO, bytes.data, bytes.bytes, &how);
    if (err == HR_OK)
        ctx->fields[FIELD_TO]->owner = bytes.owner;
    else
        hr_buffer_unref(bytes.owner);
    return err;
}

/* The decode's scale is the lowest that the whole group allows. */
static enum hr_strictness decode_composes(const void *params)
{
    switch (mode_of(params)) {
    case HR_MODE_EXACT:
        return HR_STRICTNESS_EXACT;
    case HR_MODE_CLOSE:
        return HR_STRICTNESS_CLOSE;
    default:
        return HR_STRICTNESS_RELAXED;
    }
}

const struct hr_op hr_op_image_decode = {
    .name = "image.decode",
    .summary = "decode a JPEG, PNG, WebP or PNM file to an image",
    .doc =
        "Outputs uint8 levels, [height, width, channels]. Decoding is deferred until "
        "pixels are needed: after a crop the rest of the photo is never decoded, and "
        "after a resize it may be decoded at a reduced scale (JPEG, see `mode`). In "
        "baseline JPEGs it records seek points, places where decoding can start, a few "
        "kilobytes per photo, by the hash of the file's contents; the next epoch, or a "
        "second view in the same record, starts there. If the source has an `index`, "
        "they are saved to that file when an epoch or an iterator ends, and later runs "
        "use them. `seek_bytes` is in addition to the memory of the iterator; saved "
        "points are mapped and do not count. They change no pixel. Differs from "
        "torchvision: CMYK is converted to RGB, 16-bit files are reduced to 8 bits, and "
        "a damaged file is an error instead of a partly gray image.\n\n"
        "`color: labels` gives a mask, uint8 [height, width, 1], of the numbers that a "
        "PNG holds: of a palette the numbers and not the colours (Pascal VOC), of gray "
        "the levels as they are stored (Cityscapes' labelIds, ADE20K), also where they "
        "have 1, 2 or 4 bits, which other values of `color` scale to 0..255. Any other "
        "file is a bad record: colours and lossy files have no labels, and those of 16 "
        "bits do not fit. The field is of kind mask: it needs no record.kind.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_DECODES | HR_TRAIT_DEFERS | HR_TRAIT_GROWS,
    HR_PARAMS(decode_params, struct decode),
    .infer = decode_infer,
    .open = decode_open,
    .close = decode_close,
    .apply = decode_apply,
    .composes = decode_composes,
    .learner = {.rest = decode_rest,
                .pause = decode_pause,
                .keeps = decode_keeps,
                .tell = decode_tell},
};
