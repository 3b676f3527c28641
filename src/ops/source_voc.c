/*
 * source.voc - the pictures of a Pascal VOC data set, with boxes and labels or with
 * masks.
 *
 * The list of pictures is read when the graph is checked, annotations and masks with each
 * picture: a set has thousands of them. The identity of the source is the list and the
 * classes, not the contents of the files.
 */
#include <stdio.h>
#include <string.h>

#include "codec/image.h"
#include "core/alloc.h"
#include "core/str.h"
#include "op/op.h"
#include "ops/box_source.h"
#include "store/reader.h"
#include "store/store.h"
#include "store/voc.h"

enum task { DETECTION, SEGMENTATION };

struct voc {
    const char *path, *split, *suffix;
    int task;
    const struct hr_doc *classes;
    bool find_classes, difficult, raw;
    struct hr_names columns;
};

static const char *const tasks[] = {"detection", "segmentation", NULL};
/* In the order of the fields. */
enum { NAME, INSTANCES, COLUMN_KINDS };
static const char *const columns[] = {"name", "instances", NULL};

#define LIST_BYTES_MAX ((size_t)1 << 30)

static const struct hr_param voc_params[] = {
    HR_P_PATH(struct voc, path, .required = true, .not_identity = true,
              .help = "the folder with JPEGImages, Annotations and ImageSets, such as "
                      "VOCdevkit/VOC2012, or its URI"),
    HR_P_STRING(struct voc, split, .fallback = "train", .not_identity = true,
                .help = "train, val, trainval or another list of ImageSets/Main or "
                        "ImageSets/Segmentation; with a / in it or .txt at its end, the "
                        "path of a file with a name per line"),
    HR_P_ENUM(struct voc, task, .fallback = "detection", .names = tasks,
              .help = "detection: boxes and labels; segmentation: masks"),
    HR_P_TEXTS(struct voc, classes, .items_min = 1, .items_max = 32768,
               .help = "names of the classes in the order of their numbers; default: the "
                       "20 of VOC",
               .not_identity = true),
    HR_P_BOOL(struct voc, find_classes, .fallback = "false", .not_identity = true,
              .help = "without `classes`: the names in the annotations of the list, "
                      "sorted; all are read when the graph is opened"),
    HR_P_BOOL(struct voc, difficult, .fallback = "true",
              .help = "keep objects that are marked difficult"),
    HR_P_BOOL(struct voc, raw, .fallback = "false",
              .help = "boxes in the numbers of the file, as torchvision gives them"),
    HR_P_STRINGS(struct voc, columns, .fallback = "[]", .items_min = 0,
                 .items_max = COLUMN_KINDS,
                 .help = "further fields: name of the picture; instances: the file of "
                         "SegmentationObject, for segmentation"),
    HR_P_STRING(struct voc, suffix, .fallback = ".jpg",
                .help = "of the files in JPEGImages"),
};

struct state {
    struct hr_voc_list list;
    struct hr_class_set set;
    struct hr_classes classes;
    struct hr_field_classes field_classes;
    bool wanted[COLUMN_KINDS];
    char note[100];
};

static void voc_close(void *made)
{
    struct state *state = made;

    hr__voc_list_finish(&state->list);
    hr__class_set_free(&state->set);
    hr__classes_free(&state->classes);
    hr__free(state);
}

/* ---- paths ---- */

enum part { IMAGE, ANNOTATION, MASK, OBJECTS };
static const char *const folders[] = {"JPEGImages", "Annotations", "SegmentationClass",
                                      "SegmentationObject"};

static const char *slash(const char *folder)
{
    size_t length = strlen(folder);

    return length > 0 && folder[length - 1] == '/' ? "" : "/";
}

static bool path_of(const struct voc *p, const struct state *state, uint64_t index,
                    enum part part, char *path, size_t room)
{
    const char *suffix = part == IMAGE ? p->suffix : part == ANNOTATION ? ".xml" : ".png";

    return index < state->list.count &&
           (size_t)snprintf(path, room, "%s%s%s/%s%s", p->path, slash(p->path),
                            folders[part], state->list.names[index], suffix) < room;
}

/* ---- what follows from the list ---- */

static enum hr_err
choose_columns(const struct voc *p, struct state *state, struct hr_error *error)
{
    HR_TRY(hr__choose_columns(&p->columns, columns, COLUMN_KINDS, "name and instances",
                              state->wanted, error));
    if (!state->wanted[INSTANCES] || p->task == SEGMENTATION)
        return HR_OK;
    snprintf(error->param, sizeof error->param, "columns");
    return hr__fail(error, HR_ERR_ARGUMENT,
                    "the column \"instances\" needs task: segmentation");
}

static bool is_file(const char *split)
{
    size_t length = strlen(split);

    return strchr(split, '/') != NULL ||
           (length >= 4 && strcmp(split + length - 4, ".txt") == 0);
}

static enum hr_err
read_list(const struct voc *p, struct state *state, struct hr_error *error)
{
    char uri[HR_URI_MAX], *text;
    size_t bytes;
    enum hr_err err;
    int length;

    if (is_file(p->split))
        length = snprintf(uri, sizeof uri, "%s", p->split);
    else
        length =
            snprintf(uri, sizeof uri, "%s%sImageSets/%s/%s.txt", p->path, slash(p->path),
                     p->task == DETECTION ? "Main" : "Segmentation", p->split);
    if (length >= (int)sizeof uri)
        return hr__fail(error, HR_ERR_LIMIT, "the path of the list is too long");
    err = hr__store_load(uri, LIST_BYTES_MAX, &text, &bytes, error);
    if (err == HR_ERR_NOT_FOUND && !is_file(p->split))
        return hr__fail(error, err,
                        "%s; `path` is the folder with JPEGImages and ImageSets, such as "
                        "VOCdevkit/VOC2012",
                        error->message);
    HR_TRY(err);
    err = hr__voc_list(text, bytes, uri, &state->list, error);
    hr__free(text);
    return err;
}

static enum hr_err
find_in(const char *uri, const struct hr_voc_options *options, struct hr_error *error)
{
    struct hr_voc voc;
    char *text;
    size_t bytes;
    enum hr_err err;

    HR_TRY(hr__store_load(uri, HR_VOC_BYTES_MAX, &text, &bytes, error));
    err = hr__voc_parse(text, bytes, uri, options, &voc, error);
    hr__voc_finish(&voc);
    hr__free(text);
    return err;
}

/* Without expat no annotation could be read: that is said at once. */
static enum hr_err check_xml(const struct voc *p, struct hr_error *error)
{
    static const char text[] = "<annotation/>";
    const struct hr_voc_options options = {0};
    struct hr_voc voc;

    return hr__voc_parse(text, sizeof text - 1, p->path, &options, &voc, error);
}

/* The names in all annotations, sorted. */
static enum hr_err
find_classes(const struct voc *p, struct state *state, struct hr_error *error)
{
    struct hr_class_set found = {0};
    struct hr_voc_options options = {.found = &found, .drop_difficult = !p->difficult};
    enum hr_err err = HR_OK;
    uint32_t *ranks;
    char uri[HR_URI_MAX];

    for (size_t i = 0; err == HR_OK && i < state->list.count; i++)
        err = path_of(p, state, i, ANNOTATION, uri, sizeof uri)
                  ? find_in(uri, &options, error)
                  : hr__fail(error, HR_ERR_LIMIT, "the path of \"%s\" is too long",
                             state->list.names[i]);
    ranks = hr__malloc(found.count * sizeof *ranks + 1);
    if (err == HR_OK &&
        (ranks == NULL || hr__class_close(&found, ranks, &state->classes) != HR_OK))
        err = hr__fail(error, HR_ERR_MEMORY, "out of memory");
    hr__free(ranks);
    hr__class_set_free(&found);
    return err;
}

static enum hr_err
add_class(struct state *state, const char *name, struct hr_error *error)
{
    size_t count = state->set.count;

    if (hr__class_add(&state->set, name, strlen(name)) < 0)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    if (state->set.count > count)
        return HR_OK;
    snprintf(error->param, sizeof error->param, "classes");
    return hr__fail(error, HR_ERR_ARGUMENT, "\"%s\" is given twice", name);
}

/* The set, and its names in order. */
static enum hr_err
choose_classes(const struct voc *p, struct state *state, struct hr_error *error)
{
    if (p->classes != NULL) {
        for (size_t i = 0; i < p->classes->as.list.count; i++)
            HR_TRY(add_class(state, p->classes->as.list.items[i]->as.string.text, error));
    } else if (p->find_classes) {
        HR_TRY(find_classes(p, state, error));
        for (size_t i = 0; i < state->classes.count; i++)
            HR_TRY(add_class(state, state->classes.names[i], error));
    } else {
        for (size_t i = 0; i < HR_VOC_CLASSES; i++)
            HR_TRY(add_class(state, hr__voc_classes[i], error));
    }
    if (state->classes.names == NULL &&
        hr__class_close(&state->set, NULL, &state->classes) != HR_OK)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    state->field_classes =
        (struct hr_field_classes){state->classes.names, state->classes.count};
    return HR_OK;
}

static enum hr_err
voc_prepare(const void *params, void **ret_state, struct hr_error *error)
{
    const struct voc *p = params;
    struct state *state = hr__calloc(1, sizeof *state);
    enum hr_err err;

    if (state == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    err = choose_columns(p, state, error);
    if (err == HR_OK)
        err = read_list(p, state, error);
    if (err == HR_OK && p->task == DETECTION)
        err = check_xml(p, error);
    if (err == HR_OK && p->task == DETECTION)
        err = choose_classes(p, state, error);
    if (err != HR_OK) {
        voc_close(state);
        return err;
    }
    snprintf(state->note, sizeof state->note, "%zu pictures", state->list.count);
    *ret_state = state;
    return HR_OK;
}

/* ---- the schema ---- */

enum { DATA, BOXES, LABELS, DIFFICULT, TRUNCATED, DETECTED }; /* detection */
enum { MASKS = 1, MASKED };                                   /* segmentation */

static enum hr_err
voc_binds(const void *params, const void *made, const struct hr_schema *input,
          struct hr_bindings *bindings, struct hr_error *error)
{
    static const char *const detected[] = {"data", "boxes", "labels", "difficult",
                                           "truncated"};
    static const char *const masked[] = {"data", "mask"};
    const struct voc *p = params;
    const struct state *state = made;
    const char *const *names = p->task == DETECTION ? detected : masked;

    (void)input;
    for (int i = 0; i < (p->task == DETECTION ? DETECTED : MASKED); i++)
        HR_TRY(hr__bind(bindings, names[i], HR_ACCESS_WRITE, error));
    for (int i = 0; i < COLUMN_KINDS; i++)
        if (state->wanted[i])
            HR_TRY(hr__bind(bindings, columns[i], HR_ACCESS_WRITE, error));
    return HR_OK;
}

static enum hr_err voc_infer(struct hr_infer *infer)
{
    const struct voc *p = infer->params;
    const struct state *state = infer->state;
    struct hr_field **fields = infer->fields;
    struct hr_field **more = fields + (p->task == DETECTION ? DETECTED : MASKED);

    hr__infer_bytes(fields[DATA], HR_MEANING_ENCODED);
    if (p->task == DETECTION) {
        hr__infer_boxes(fields[BOXES]);
        hr__infer_box_labels(fields[LABELS], &state->field_classes);
        hr__infer_box_list(fields[DIFFICULT], HR_I64);
        hr__infer_box_list(fields[TRUNCATED], HR_I64);
    } else {
        hr__infer_bytes(fields[MASKS], HR_MEANING_ENCODED);
    }
    if (state->wanted[NAME])
        hr__infer_bytes(*more++, HR_MEANING_TEXT);
    if (state->wanted[INSTANCES])
        hr__infer_bytes(*more, HR_MEANING_ENCODED);
    infer->output->records = -1;
    return HR_OK;
}

static enum hr_err voc_open(const struct hr_open *open, void **ret_state)
{
    (void)open;
    (void)ret_state;
    return HR_OK;
}

static const char *voc_note(const void *state)
{
    return ((const struct state *)state)->note;
}

static uint64_t voc_count(const void *params, const void *state)
{
    (void)params;
    return ((const struct state *)state)->list.count;
}

static void voc_identity(const void *params, const void *made, struct hr_hasher *hasher)
{
    const struct state *state = made;

    (void)params;
    for (size_t i = 0; i < state->classes.count; i++)
        hr__hasher_add(hasher, state->classes.names[i],
                       strlen(state->classes.names[i]) + 1);
    for (size_t i = 0; i < state->list.count; i++)
        hr__hasher_add(hasher, state->list.names[i], strlen(state->list.names[i]) + 1);
}

static bool voc_locate(const void *params, const void *state, uint64_t index, char *path,
                       size_t room, uint64_t *ret_offset)
{
    *ret_offset = 0;
    return path_of(params, state, index, IMAGE, path, room);
}

static bool voc_beside(const void *params, const void *made, uint64_t index, int at,
                       char *uri, size_t room)
{
    const struct voc *p = params;
    const struct state *state = made;
    const enum part parts[] = {p->task == DETECTION ? ANNOTATION : MASK, OBJECTS};

    return at < 1 + state->wanted[INSTANCES] &&
           path_of(p, state, index, parts[at], uri, room);
}

/* In the order in which apply takes them. */
static bool voc_ahead(const void *params, const void *made, uint64_t index, int part,
                      struct hr_range *ret_range)
{
    const struct voc *p = params;
    const struct state *state = made;
    const enum part parts[] = {IMAGE, p->task == DETECTION ? ANNOTATION : MASK, OBJECTS};

    hr__range_whole(ret_range);
    return part < 2 + state->wanted[INSTANCES] &&
           path_of(p, state, index, parts[part], ret_range->uri, sizeof ret_range->uri);
}

static const char *voc_key_name(const void *params, const void *state, size_t i)
{
    static const char *const keys[] = {"name", "path"};

    (void)params;
    (void)state;
    return i < 2 ? keys[i] : NULL;
}

static enum hr_err voc_key(const void *params, const void *made, size_t i, uint64_t index,
                           struct hr_str *out, struct hr_error *error)
{
    const char *name = ((const struct state *)made)->list.names[index];

    (void)error;
    if (i == 0)
        hr__str_add(out, name);
    else
        hr__str_addf(out, "%s/%s%s", folders[IMAGE], name,
                     ((const struct voc *)params)->suffix);
    return HR_OK;
}

/* ---- records ---- */

static enum hr_err take(struct hr_op_ctx *ctx, enum part part, struct hr_range *range,
                        struct hr_buffer **ret_buffer)
{
    hr__range_whole(range);
    if (!path_of(ctx->params, ctx->state, ctx->id->index, part, range->uri,
                 sizeof range->uri))
        return hr__fail(ctx->error, HR_ERR_LIMIT, "the path of a picture is too long");
    return hr__reader_take(ctx->thread->reader, range, ret_buffer, ctx->error);
}

static enum hr_err take_field(struct hr_op_ctx *ctx, enum part part, size_t field)
{
    struct hr_range range; /* 4 kB, not cleared */
    struct hr_buffer *buffer;

    HR_TRY(take(ctx, part, &range, &buffer));
    hr__value_set_bytes(ctx->fields[field], hr_buffer_data(buffer),
                        hr_buffer_bytes(buffer), buffer);
    return HR_OK;
}

/* Whether the picture has these sides as it is stored or as its EXIF data turns it. What
 * cannot be read is left to whoever decodes it. */
static bool has_sides(const struct hr_value *picture, int32_t width, int32_t height,
                      struct hr_image_info *ret_info)
{
    if (width == 0 || height == 0 ||
        hr__image_probe(picture->data, picture->bytes, ret_info, NULL) != HR_OK)
        return true;
    return (ret_info->width == width && ret_info->height == height) ||
           (ret_info->orientation >= 5 && ret_info->width == height &&
            ret_info->height == width);
}

static enum hr_err
check_sides(struct hr_op_ctx *ctx, int32_t width, int32_t height, const char *uri)
{
    struct hr_image_info info;

    if (has_sides(ctx->fields[DATA], width, height, &info))
        return HR_OK;
    return hr__fail(ctx->error, HR_ERR_SHAPE, "%s is of %dx%d, and the picture is %dx%d",
                    uri, (int)width, (int)height, (int)info.width, (int)info.height);
}

static enum hr_err set_objects(struct hr_op_ctx *ctx, const struct hr_voc *voc)
{
    void *labels, *difficult, *truncated;
    float *boxes;

    HR_TRY(hr__new_boxes(ctx, BOXES, voc->count, &boxes));
    HR_TRY(hr__new_box_list(ctx, LABELS, HR_I64, voc->count, &labels));
    HR_TRY(hr__new_box_list(ctx, DIFFICULT, HR_I64, voc->count, &difficult));
    HR_TRY(hr__new_box_list(ctx, TRUNCATED, HR_I64, voc->count, &truncated));
    for (size_t i = 0; i < voc->count; i++) {
        const struct hr_voc_object *object = &voc->objects[i];

        memcpy(boxes + 4 * i, object->box, sizeof object->box);
        ((int64_t *)labels)[i] = object->label;
        ((int64_t *)difficult)[i] = object->difficult;
        ((int64_t *)truncated)[i] = object->truncated;
    }
    return HR_OK;
}

static enum hr_err apply_detection(struct hr_op_ctx *ctx)
{
    const struct voc *p = ctx->params;
    const struct state *state = ctx->state;
    const struct hr_voc_options options = {.classes = &state->set,
                                           .names = &state->classes,
                                           .drop_difficult = !p->difficult,
                                           .raw = p->raw};
    struct hr_range range; /* 4 kB, not cleared */
    struct hr_buffer *buffer;
    struct hr_voc voc;
    enum hr_err err;

    HR_TRY(take(ctx, ANNOTATION, &range, &buffer));
    err = hr__voc_parse(hr_buffer_data(buffer), hr_buffer_bytes(buffer), range.uri,
                        &options, &voc, ctx->error);
    hr_buffer_unref(buffer);
    if (err == HR_OK)
        err = check_sides(ctx, voc.width, voc.height, range.uri);
    if (err == HR_OK)
        err = set_objects(ctx, &voc);
    hr__voc_finish(&voc);
    return err;
}

static enum hr_err apply_mask(struct hr_op_ctx *ctx, enum part part, size_t field)
{
    const struct hr_value *mask = ctx->fields[field];
    struct hr_image_info info;
    char uri[HR_URI_MAX];

    HR_TRY(take_field(ctx, part, field));
    if (hr__image_probe(mask->data, mask->bytes, &info, NULL) != HR_OK ||
        !path_of(ctx->params, ctx->state, ctx->id->index, part, uri, sizeof uri))
        return HR_OK;
    return check_sides(ctx, info.width, info.height, uri);
}

static enum hr_err voc_apply(struct hr_op_ctx *ctx)
{
    const struct voc *p = ctx->params;
    const struct state *state = ctx->state;
    size_t field = p->task == DETECTION ? DETECTED : MASKED;

    HR_TRY(take_field(ctx, IMAGE, DATA));
    HR_TRY(p->task == DETECTION ? apply_detection(ctx) : apply_mask(ctx, MASK, MASKS));
    if (state->wanted[NAME])
        HR_TRY(hr__set_text(ctx, field++, state->list.names[ctx->id->index]));
    return state->wanted[INSTANCES] ? apply_mask(ctx, OBJECTS, field) : HR_OK;
}

const struct hr_op hr_op_source_voc = {
    .name = "source.voc",
    .summary = "the pictures of a Pascal VOC data set, with boxes and labels or masks",
    .doc =
        "One record per name of the list, in its order. In VOC's lists of a class, such "
        "as aeroplane_train.txt, each name is followed by 1, 0 (only difficult objects) "
        "or -1 (none): lines `NAME -1` are left out, and it is an error if all are. "
        "`data` holds the bytes of "
        "JPEGImages/NAME.jpg. For detection the objects of Annotations/NAME.xml follow, "
        "in its order: `boxes` (float32 [n, 4]: x1, y1, x2, y2 in pixels), `labels` "
        "(int64 [n]), `difficult` and `truncated` (int64 [n], 0 or 1). For segmentation "
        "`mask` holds the bytes of SegmentationClass/NAME.png: image.decode with "
        "`color: labels` makes it a mask of class numbers, 0 being background and 255 "
        "the outlines, which a loss ignores. VOC's classes have the numbers 0 to 19 in "
        "`labels` and 1 to 20 in masks.\n\n"
        "VOC counts pixels from 1 and names the first and the last pixel of an object. "
        "Boxes here count from 0, and x2 and y2 are where the last pixel ends: xmin 1 "
        "and xmax 500 are 0 and 500. torchvision's VOCDetection gives the numbers of the "
        "file, as `raw` does; use it too for sets whose tools counted from 0.\n\n"
        "A missing or damaged file, an object without a name or a box, a name that is "
        "not among the classes, and a size that is not the picture's make a bad record, "
        "whose message names the file, and in annotations line and object. Annotations "
        "without objects, and those that say no size, are fine. The identity of the "
        "source is its list and its classes. Detection needs expat.",
    .version = 1,
    .kind = HR_OP_SOURCE,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(voc_params, struct voc),
    .binds = voc_binds,
    .infer = voc_infer,
    .open = voc_open,
    .close = voc_close,
    .identity = voc_identity,
    .apply = voc_apply,
    .prepare = voc_prepare,
    .source =
        {
                 .note = voc_note,
                 .classes_param = "classes",
                 .count = voc_count,
                 .locate = voc_locate,
                 .beside = voc_beside,
                 .ahead = voc_ahead,
                 .key_name = voc_key_name,
                 .path_below = true,
                 .key = voc_key,
                 },
};
