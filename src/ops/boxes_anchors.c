/*
 * boxes.anchors - what a detector of RetinaNet's kind is to say at each of its anchors.
 *
 * Only anchors that overlap a box are compared with it: the cells of a level whose
 * anchors of one shape reach the box are a rectangle.
 */
#include <math.h>
#include <string.h>

#include "ops/box_window.h"
#include "ops/image_size.h"
#include "ops/kinds.h"

struct anchors {
    const char *field, *labels, *class_targets, *box_targets;
    struct hr_ints size, levels;
    int64_t scales;
    struct hr_floats ratios;
    double anchor_size, match, unmatched;
};

enum { BOXES, LABELS, CLASSES, TARGETS };

static const struct hr_param anchors_params[] = {
    HR_P_SIZE(struct anchors),
    HR_P_INTS(struct anchors, levels, .fallback = "[3, 7]", .items_min = 2,
              .items_max = 2, HR_RANGE(0, 16),
              .help = "first and last level of the pyramid; a cell of level l has a side "
                      "of 2^l pixels"),
    HR_P_INT(struct anchors, scales, .fallback = "3", HR_RANGE(1, 16),
             .help = "sizes of anchors per level: 2^(0/scales), 2^(1/scales), ... times "
                     "anchor_size"),
    HR_P_FLOATS(struct anchors, ratios, .fallback = "[1, 2, 0.5]", .items_min = 1,
                .items_max = HR_LIST_MAX, HR_RANGE(0, 1000), .min_open = true,
                .help = "width / height of the anchors"),
    HR_P_FLOAT(struct anchors, anchor_size, .fallback = "4", HR_RANGE(0, 1000),
               .min_open = true, .help = "side of a square anchor, in sides of a cell"),
    HR_P_FLOAT(struct anchors, match, .fallback = "0.5", HR_RANGE(0, 1),
               .help = "least overlap (intersection over union) of an anchor that stands "
                       "for a box"),
    HR_P_FLOAT(struct anchors, unmatched, .fallback = "0.5", HR_RANGE(0, 1),
               .help = "anchors with less overlap are background; those between the two "
                       "are ignored"),
    HR_P_FIELD(struct anchors, field, .fallback = "boxes", .access = HR_ACCESS_READ,
               .help = "the boxes"),
    HR_P_FIELD(struct anchors, labels, .fallback = "labels", .access = HR_ACCESS_READ,
               .help = "their class numbers, int64 [n]"),
    HR_P_FIELD(struct anchors, class_targets, .fallback = "class_targets",
               .access = HR_ACCESS_WRITE,
               .help = "the field that becomes the class of each anchor: -1 background, "
                       "-2 to be ignored"),
    HR_P_FIELD(struct anchors, box_targets, .fallback = "box_targets",
               .access = HR_ACCESS_WRITE,
               .help = "the field that becomes the place of each anchor's box"),
};

#define ANCHORS_MAX (1 << 26)

/* Cells of a level along an axis. */
static int64_t cells(int64_t pixels, int64_t level)
{
    return (pixels + ((int64_t)1 << level) - 1) >> level;
}

static int64_t count_of(const struct anchors *p)
{
    int64_t count = 0;

    for (int64_t level = p->levels.values[0]; level <= p->levels.values[1]; level++)
        count += cells(hr__size_width(&p->size), level) *
                 cells(hr__size_height(&p->size), level) * p->scales * p->ratios.count;
    return count;
}

static enum hr_err anchors_infer(struct hr_infer *infer)
{
    const struct anchors *p = infer->params;
    const struct hr_field *labels = infer->fields[LABELS];
    struct hr_field *classes = infer->fields[CLASSES], *targets = infer->fields[TARGETS];

    if (hr__kind_of(infer->fields[BOXES]) != &hr__kind_boxes)
        return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                              "field \"%s\" holds no boxes: declare it with record.kind",
                              p->field);
    if (labels->kind != HR_FIELD_TENSOR || labels->dtype != HR_I64 || labels->ndim != 1)
        return hr__infer_fail(infer, "labels", HR_ERR_TYPE,
                              "field \"%s\" must be int64 [n]", p->labels);
    if (classes == targets)
        return hr__infer_fail(infer, "box_targets", HR_ERR_ARGUMENT,
                              "class_targets and box_targets must have different names");
    if (p->levels.values[0] > p->levels.values[1])
        return hr__infer_fail(infer, "levels", HR_ERR_RANGE,
                              "levels: the smaller number comes first");
    if (p->unmatched > p->match)
        return hr__infer_fail(infer, "unmatched", HR_ERR_RANGE,
                              "unmatched %g is above match %g", p->unmatched, p->match);
    if (count_of(p) > ANCHORS_MAX)
        return hr__infer_fail(infer, "size", HR_ERR_LIMIT,
                              "there would be %lld anchors, more than %d",
                              (long long)count_of(p), ANCHORS_MAX);
    classes->dtype = HR_I64;
    classes->ndim = 1;
    hr__dim_set(&classes->dims[0], count_of(p));
    targets->dtype = HR_F32;
    targets->ndim = 2;
    hr__dim_set(&targets->dims[0], count_of(p));
    hr__dim_set(&targets->dims[1], 4);
    return HR_OK;
}

/* Anchors of one shape on one level: that of cell (x, y) is the one at
 * (y * columns + x) * stride of its values. */
struct grid {
    int64_t first, columns, rows, stride;
    double cell, width, height;
};

struct matcher {
    const struct anchors *params;
    const float *boxes;
    const int64_t *labels;
    int64_t *classes;
    float *targets;
    float *overlaps; /* of each anchor with the box that it stands for */
    int32_t *owners; /* that box, or -1 */
    /* of the box at hand: the anchor that overlaps it most */
    int64_t best;
    double most;
};

/* The rectangle of cells along one axis whose anchors may overlap [low, high]. */
static void reach(double low, double high, double side, double cell, int64_t count,
                  int64_t *ret_first, int64_t *ret_last)
{
    double first = floor((low - side / 2) / cell - 0.5);
    double last = ceil((high + side / 2) / cell - 0.5);

    *ret_first = (int64_t)fmax(0, fmin(first, (double)count));
    *ret_last = (int64_t)fmax(-1, fmin(last, (double)count - 1));
}

static void match_grid(struct matcher *m, const struct grid *g, int32_t box_at)
{
    const float *box = m->boxes + 4 * (int64_t)box_at;
    double area = hr__box_area(box), own = g->width * g->height;
    int64_t x_first, x_last, y_first, y_last;

    reach(box[0], box[2], g->width, g->cell, g->columns, &x_first, &x_last);
    reach(box[1], box[3], g->height, g->cell, g->rows, &y_first, &y_last);
    for (int64_t y = y_first; y <= y_last; y++) {
        double top = ((double)y + 0.5) * g->cell - g->height / 2;
        double high = hr__span_shared(box[1], box[3], top, top + g->height);

        for (int64_t x = x_first; x <= x_last; x++) {
            double left = ((double)x + 0.5) * g->cell - g->width / 2;
            double both = hr__span_shared(box[0], box[2], left, left + g->width) * high;
            double overlap = both / (own + area - both);
            int64_t at = g->first + (y * g->columns + x) * g->stride;

            if (overlap > m->most) {
                m->most = overlap;
                m->best = at;
            }
            if (overlap > m->overlaps[at]) {
                m->overlaps[at] = (float)overlap;
                m->owners[at] = box_at;
            }
        }
    }
}

typedef void grid_fn(struct matcher *m, const struct grid *grid, int32_t box_at);

/* Calls `each` for all shapes of all levels. */
static void each_grid(struct matcher *m, grid_fn *each, int32_t box_at)
{
    const struct anchors *p = m->params;
    struct grid g = {.stride = p->scales * p->ratios.count};

    for (int64_t level = p->levels.values[0]; level <= p->levels.values[1]; level++) {
        int64_t first = g.first;

        g.cell = (double)((int64_t)1 << level);
        g.columns = cells(hr__size_width(&p->size), level);
        g.rows = cells(hr__size_height(&p->size), level);
        for (int64_t scale = 0; scale < p->scales; scale++)
            for (int ratio = 0; ratio < p->ratios.count; ratio++, g.first++) {
                double side =
                    p->anchor_size * g.cell * exp2((double)scale / (double)p->scales);

                g.width = side * sqrt(p->ratios.values[ratio]);
                g.height = side / sqrt(p->ratios.values[ratio]);
                each(m, &g, box_at);
            }
        g.first = first + g.columns * g.rows * g.stride;
    }
}

/* Where the box lies, seen from the anchor. */
static void
set_target(const struct matcher *m, const struct grid *g, double x, double y, int64_t at)
{
    const float *box = m->boxes + 4 * (int64_t)m->owners[at];
    double width = (double)box[2] - box[0], height = (double)box[3] - box[1];
    float *to = m->targets + 4 * at;

    to[0] = (float)((box[0] + width / 2 - (x + 0.5) * g->cell) / g->width);
    to[1] = (float)((box[1] + height / 2 - (y + 0.5) * g->cell) / g->height);
    to[2] = (float)log(width / g->width);
    to[3] = (float)log(height / g->height);
}

static void set_grid(struct matcher *m, const struct grid *g, int32_t box_at)
{
    const struct anchors *p = m->params;

    (void)box_at;
    for (int64_t i = 0; i < g->columns * g->rows; i++) {
        int64_t at = g->first + i * g->stride;
        float overlap = m->overlaps[at];

        if (m->owners[at] >= 0 && overlap >= (float)p->match) {
            m->classes[at] = m->labels[m->owners[at]];
            set_target(m, g, (double)(i % g->columns), (double)(i / g->columns), at);
        } else {
            m->classes[at] = overlap >= (float)p->unmatched ? -2 : -1;
        }
    }
}

/* Beyond any overlap: the anchor is the best one of a box. */
#define FORCED 2

static enum hr_err match_boxes(struct hr_op_ctx *ctx, struct matcher *m, int64_t boxes)
{
    void *best;

    HR_TRY(
        hr__op_alloc(ctx, (size_t)boxes * (sizeof(int64_t) + sizeof(float)) + 1, &best));
    for (int64_t i = 0; i < boxes; i++) {
        m->most = 0;
        m->best = -1;
        if (hr__box_area(m->boxes + 4 * i) > 0)
            each_grid(m, match_grid, (int32_t)i);
        ((int64_t *)best)[i] = m->best;
        ((float *)(void *)((int64_t *)best + boxes))[i] = (float)m->most;
    }
    for (int64_t i = 0; i < boxes; i++) {
        int64_t at = ((int64_t *)best)[i];
        float most = ((float *)(void *)((int64_t *)best + boxes))[i];

        if (at >= 0 && FORCED + most > m->overlaps[at]) {
            m->overlaps[at] = FORCED + most;
            m->owners[at] = (int32_t)i;
        }
    }
    return HR_OK;
}

static enum hr_err
make(struct hr_op_ctx *ctx, size_t field, enum hr_dtype dtype, int64_t count, void **ret)
{
    int64_t dims[2] = {count, 4};
    int ndim = field == TARGETS ? 2 : 1;
    size_t bytes = (size_t)count * hr_dtype_size(dtype) * (field == TARGETS ? 4 : 1);

    HR_TRY(hr__op_result(ctx, field, bytes, ret));
    memset(*ret, 0, bytes);
    hr__value_set_tensor(ctx->fields[field], dtype, ndim, dims, *ret, NULL);
    return HR_OK;
}

static enum hr_err anchors_apply(struct hr_op_ctx *ctx)
{
    const struct anchors *p = ctx->params;
    int64_t count = count_of(p), boxes;
    struct matcher m = {.params = p};
    void *classes, *targets, *overlaps, *owners, *labels;
    float *rows;

    HR_TRY(hr__boxes_copy(ctx, BOXES, &rows, &boxes));
    if (ctx->fields[LABELS]->kind != HR_VALUE_TENSOR ||
        ctx->fields[LABELS]->dims[0] != boxes)
        return hr__fail(ctx->error, HR_ERR_SHAPE,
                        "\"%s\" has %lld rows and there are %lld boxes", p->labels,
                        (long long)ctx->fields[LABELS]->dims[0], (long long)boxes);
    HR_TRY(hr__op_alloc(ctx, (size_t)boxes * sizeof(int64_t) + 1, &labels));
    hr__value_copy(ctx->fields[LABELS], labels);
    HR_TRY(make(ctx, CLASSES, HR_I64, count, &classes));
    HR_TRY(make(ctx, TARGETS, HR_F32, count, &targets));
    HR_TRY(hr__op_alloc(ctx, (size_t)count * sizeof(float), &overlaps));
    HR_TRY(hr__op_alloc(ctx, (size_t)count * sizeof(int32_t), &owners));
    memset(overlaps, 0, (size_t)count * sizeof(float));
    memset(owners, -1, (size_t)count * sizeof(int32_t));
    m.boxes = rows;
    m.labels = labels;
    m.classes = classes;
    m.targets = targets;
    m.overlaps = overlaps;
    m.owners = owners;
    HR_TRY(match_boxes(ctx, &m, boxes));
    each_grid(&m, set_grid, 0);
    return HR_OK;
}

const struct hr_op hr_op_boxes_anchors = {
    .name = "boxes.anchors",
    .summary = "the class and the box that each anchor of a detector stands for",
    .doc =
        "For detectors of RetinaNet's kind. Anchors are numbered by level, then row and "
        "column of the cell in whose middle they lie, then size, then ratio; `size` is "
        "the image's. An anchor stands for the box that it overlaps most, if by at least "
        "`match`; each box also gets the anchor that overlaps it most (of two boxes with "
        "the "
        "same one, the box with more overlap). `class_targets` "
        "(int64) is the box's label, -1 for background, -2 for anchors to be ignored. "
        "`box_targets` (float32 [anchors, 4]) is the box's centre minus the anchor's, in "
        "sides of the anchor, and the logarithms of its sides in sides of the anchor, as "
        "torchvision's BoxCoder with weights of 1; 0 where there is no box.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_GROWS,
    HR_PARAMS(anchors_params, struct anchors),
    .infer = anchors_infer,
    .apply = anchors_apply,
    .placed = true,
};
