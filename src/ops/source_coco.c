/*
 * source.coco - the images of a COCO data set, with the boxes and labels of each.
 *
 * The annotations are read when the graph is checked (store/coco.h). The identity of the
 * source is what they say, not the contents of the images.
 */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/str.h"
#include "op/op.h"
#include "ops/box_source.h"
#include "store/coco.h"
#include "store/reader.h"
#include "store/store.h"

struct coco {
    const char *path, *annotations;
    bool crowd, empty;
    const struct hr_doc *classes;
    struct hr_names columns;
};

enum { DATA, BOXES, LABELS, IMAGE_ID, COLUMNS };
static const char *const names[] = {"data", "boxes", "labels", "image_id"};
/* In the order of the fields. */
enum { AREA, CROWD, ANNOTATION, PATH, COLUMN_KINDS };
static const char *const columns[] = {"area", "iscrowd", "annotation_id", "path", NULL};

static const struct hr_param coco_params[] = {
    HR_P_PATH(struct coco, path, .required = true, .not_identity = true,
              .help = "the folder of the images, or its URI"),
    HR_P_PATH(struct coco, annotations, .required = true, .not_identity = true,
              .help = "the file of annotations, such as instances_train2017.json"),
    HR_P_BOOL(struct coco, crowd, .fallback = "true",
              .help = "keep annotations of crowds (iscrowd), whose box is around many "
                      "objects"),
    HR_P_BOOL(struct coco, empty, .fallback = "true",
              .help = "keep images without annotations"),
    HR_P_TEXTS(struct coco, classes, .items_min = 1, .items_max = 32768,
               .help = "names of the categories in the order of their numbers, such as "
                       "those of the training set; default: the file's, in order of id",
               .not_identity = true),
    HR_P_STRINGS(struct coco, columns, .fallback = "[]", .items_min = 0,
                 .items_max = COLUMN_KINDS,
                 .help = "further fields: area, iscrowd and annotation_id of each box, "
                         "path of the image"),
};

struct state {
    struct hr_coco coco;
    struct hr_field_classes classes;
    const char **given; /* classes; the texts are the parameter's */
    bool wanted[COLUMN_KINDS];
    char note[200];
};

static void coco_close(void *made)
{
    struct state *state = made;

    hr__coco_finish(&state->coco);
    hr__free(state->given);
    hr__free(state);
}

static enum hr_err
read_annotations(const struct coco *p, struct state *state, struct hr_error *error)
{
    struct hr_coco_options options = {.drop_crowd = !p->crowd, .drop_empty = !p->empty};

    if (p->classes != NULL) {
        options.class_count = p->classes->as.list.count;
        state->given = hr__malloc(options.class_count * sizeof *state->given);
        if (state->given == NULL)
            return hr__fail(error, HR_ERR_MEMORY, "out of memory");
        for (size_t i = 0; i < options.class_count; i++)
            state->given[i] = p->classes->as.list.items[i]->as.string.text;
        options.classes = state->given;
    }
    HR_TRY(hr__coco_read(p->annotations, &options, &state->coco, error));
    state->classes =
        (struct hr_field_classes){state->coco.categories, state->coco.category_count};
    snprintf(state->note, sizeof state->note, "%zu images, %zu boxes, %zu categories",
             state->coco.image_count, state->coco.object_count,
             state->coco.category_count);
    return HR_OK;
}

static enum hr_err
coco_prepare(const void *params, void **ret_state, struct hr_error *error)
{
    struct state *state = hr__calloc(1, sizeof *state);
    enum hr_err err;

    if (state == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    err =
        hr__choose_columns(&((const struct coco *)params)->columns, columns, COLUMN_KINDS,
                           "area, iscrowd, annotation_id and path", state->wanted, error);
    if (err == HR_OK)
        err = read_annotations(params, state, error);
    if (err == HR_OK)
        *ret_state = state;
    else
        coco_close(state);
    return err;
}

static enum hr_err
coco_binds(const void *params, const void *made, const struct hr_schema *input,
           struct hr_bindings *bindings, struct hr_error *error)
{
    const struct state *state = made;

    (void)params;
    (void)input;
    for (int i = 0; i < COLUMNS; i++)
        HR_TRY(hr__bind(bindings, names[i], HR_ACCESS_WRITE, error));
    for (int i = 0; i < COLUMN_KINDS; i++)
        if (state->wanted[i])
            HR_TRY(hr__bind(bindings, columns[i], HR_ACCESS_WRITE, error));
    return HR_OK;
}

static enum hr_err coco_infer(struct hr_infer *infer)
{
    const struct state *state = infer->state;
    struct hr_field **fields = infer->fields, **more = fields + COLUMNS;

    hr__infer_bytes(fields[DATA], HR_MEANING_ENCODED);
    hr__infer_boxes(fields[BOXES]);
    hr__infer_box_labels(fields[LABELS], &state->classes);
    fields[IMAGE_ID]->dtype = HR_I64;
    if (state->wanted[AREA])
        hr__infer_box_list(*more++, HR_F32);
    if (state->wanted[CROWD])
        hr__infer_box_list(*more++, HR_I64);
    if (state->wanted[ANNOTATION])
        hr__infer_box_list(*more++, HR_I64);
    if (state->wanted[PATH])
        hr__infer_bytes(*more, HR_MEANING_TEXT);
    infer->output->records = -1;
    return HR_OK;
}

static enum hr_err coco_open(const struct hr_open *open, void **ret_state)
{
    (void)open;
    (void)ret_state;
    return HR_OK;
}

static const char *coco_note(const void *state)
{
    return ((const struct state *)state)->note;
}

static uint64_t coco_count(const void *params, const void *state)
{
    (void)params;
    return ((const struct state *)state)->coco.image_count;
}

static void coco_identity(const void *params, const void *made, struct hr_hasher *hasher)
{
    const struct hr_coco *coco = &((const struct state *)made)->coco;

    (void)params;
    for (size_t i = 0; i < coco->category_count; i++)
        hr__hasher_add(hasher, coco->categories[i], strlen(coco->categories[i]) + 1);
    for (size_t i = 0; i < coco->image_count; i++) {
        const struct hr_coco_image *image = &coco->images[i];

        hr__hasher_add(hasher, &image->id, sizeof image->id);
        hr__hasher_add(hasher, image->name, strlen(image->name) + 1);
        hr__hasher_add(hasher, &image->count, sizeof image->count);
        for (uint32_t k = 0; k < image->count; k++) {
            const struct hr_coco_object *object = &coco->objects[image->first + k];

            hr__hasher_add(hasher, &object->id, sizeof object->id);
            hr__hasher_add(hasher, &object->label, sizeof object->label);
            hr__hasher_add(hasher, &object->crowd, sizeof object->crowd);
            hr__hasher_add(hasher, object->box, sizeof object->box);
            hr__hasher_add(hasher, &object->area, sizeof object->area);
        }
    }
}

static bool
path_of(const void *params, const void *made, uint64_t index, char *path, size_t room)
{
    const char *folder = ((const struct coco *)params)->path;
    const struct hr_coco *coco = &((const struct state *)made)->coco;
    size_t length = strlen(folder);

    if (index >= coco->image_count)
        return false;
    return (size_t)snprintf(path, room, "%s%s%s", folder,
                            length > 0 && folder[length - 1] == '/' ? "" : "/",
                            coco->images[index].name) < room;
}

static bool coco_locate(const void *params, const void *state, uint64_t index, char *path,
                        size_t room, uint64_t *ret_offset)
{
    *ret_offset = 0;
    return path_of(params, state, index, path, room);
}

static bool coco_ahead(const void *params, const void *state, uint64_t index, int part,
                       struct hr_range *ret_range)
{
    hr__range_whole(ret_range);
    return part == 0 &&
           path_of(params, state, index, ret_range->uri, sizeof ret_range->uri);
}

static const char *coco_key_name(const void *params, const void *state, size_t i)
{
    static const char *const keys[] = {"image_id", "path"};

    (void)params;
    (void)state;
    return i < 2 ? keys[i] : NULL;
}

static enum hr_err coco_key(const void *params, const void *made, size_t i,
                            uint64_t index, struct hr_str *out, struct hr_error *error)
{
    const struct hr_coco_image *image = &((const struct state *)made)->coco.images[index];

    (void)params;
    (void)error;
    if (i == 0)
        hr__str_addf(out, "%lld", (long long)image->id);
    else
        hr__str_add(out, image->name);
    return HR_OK;
}

/* ---- records ---- */

static enum hr_err set_boxes(struct hr_op_ctx *ctx, const struct hr_coco_image *image,
                             const struct hr_coco_object *objects)
{
    void *labels, *id;
    float *boxes;

    HR_TRY(hr__new_boxes(ctx, BOXES, image->count, &boxes));
    HR_TRY(hr__new_box_list(ctx, LABELS, HR_I64, image->count, &labels));
    for (uint32_t i = 0; i < image->count; i++) {
        memcpy(boxes + 4 * (size_t)i, objects[i].box, sizeof objects[i].box);
        ((int64_t *)labels)[i] = objects[i].label;
    }
    HR_TRY(hr__op_alloc(ctx, sizeof(int64_t), &id));
    *(int64_t *)id = image->id;
    hr__value_set_tensor(ctx->fields[IMAGE_ID], HR_I64, 0, NULL, id, NULL);
    return HR_OK;
}

static enum hr_err set_columns(struct hr_op_ctx *ctx, const struct hr_coco_image *image,
                               const struct hr_coco_object *objects)
{
    const struct state *state = ctx->state;
    size_t field = COLUMNS;
    void *data;

    if (state->wanted[AREA]) {
        HR_TRY(hr__new_box_list(ctx, field++, HR_F32, image->count, &data));
        for (uint32_t i = 0; i < image->count; i++)
            ((float *)data)[i] = (float)objects[i].area;
    }
    if (state->wanted[CROWD]) {
        HR_TRY(hr__new_box_list(ctx, field++, HR_I64, image->count, &data));
        for (uint32_t i = 0; i < image->count; i++)
            ((int64_t *)data)[i] = objects[i].crowd;
    }
    if (state->wanted[ANNOTATION]) {
        HR_TRY(hr__new_box_list(ctx, field++, HR_I64, image->count, &data));
        for (uint32_t i = 0; i < image->count; i++)
            ((int64_t *)data)[i] = objects[i].id;
    }
    return state->wanted[PATH] ? hr__set_text(ctx, field, image->name) : HR_OK;
}

static enum hr_err coco_apply(struct hr_op_ctx *ctx)
{
    const struct coco *p = ctx->params;
    const struct state *state = ctx->state;
    const struct hr_coco_image *image = &state->coco.images[ctx->id->index];
    const struct hr_coco_object *objects = state->coco.objects + image->first;
    struct hr_range range; /* 4 kB, not cleared */
    struct hr_buffer *buffer;

    if (image->fault != NULL)
        return hr__fail(ctx->error, HR_ERR_FORMAT,
                        "%s: annotation %lld of image %lld: %s", p->annotations,
                        (long long)image->fault_id, (long long)image->id, image->fault);
    hr__range_whole(&range);
    if (!path_of(p, state, ctx->id->index, range.uri, sizeof range.uri))
        return hr__fail(ctx->error, HR_ERR_LIMIT, "the path of image %lld is too long",
                        (long long)image->id);
    HR_TRY(set_boxes(ctx, image, objects));
    HR_TRY(set_columns(ctx, image, objects));
    HR_TRY(hr__reader_take(ctx->thread->reader, &range, &buffer, ctx->error));
    hr__value_set_bytes(ctx->fields[DATA], hr_buffer_data(buffer),
                        hr_buffer_bytes(buffer), buffer);
    return HR_OK;
}

const struct hr_op hr_op_source_coco = {
    .name = "source.coco",
    .summary = "the images of a COCO data set, with boxes and labels",
    .doc =
        "One record per image, in order of id: `data` (the bytes of its file), `boxes` "
        "(float32 [n, 4]: x1, y1, x2, y2 in pixels), `labels` (int64 [n]) and "
        "`image_id`. Ids of categories become numbers from 0 without gaps, in order of "
        "id; the field knows the names. A validation set gets the numbers of the "
        "training set by `classes`.\n\n"
        "Boxes are as the file has them, also those of no width: boxes.sanitize drops "
        "them. What is wrong with an annotation (no bbox, a negative width, an unknown "
        "category) makes its image a bad record, whose message names the annotation's "
        "id; an annotation of an image that is not listed is an error at once. Polygons "
        "and key points are skipped.",
    .version = 1,
    .kind = HR_OP_SOURCE,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(coco_params, struct coco),
    .binds = coco_binds,
    .infer = coco_infer,
    .open = coco_open,
    .close = coco_close,
    .identity = coco_identity,
    .apply = coco_apply,
    .prepare = coco_prepare,
    .source =
        {
                 .note = coco_note,
                 .classes_param = "classes",
                 .count = coco_count,
                 .locate = coco_locate,
                 .ahead = coco_ahead,
                 .key_name = coco_key_name,
                 .path_below = true,
                 .key = coco_key,
                 },
};
