/*
 * tests/conformance/random_graph.c - drawing a graph.
 */
#include "tests/conformance/random_graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/hash.h"
#include "op/op.h"
#include "tests/support/check.h"

/* ---- code ---- */

/* Through the elements of a tensor in order, whatever its strides. */
struct walk {
    const struct hr_field_view *view;
    int64_t at[HR_MAX_DIMS];
    const char *element; /* NULL: that was the last one */
};

static void walk_begin(struct walk *w, const struct hr_field_view *view)
{
    *w = (struct walk){.view = view, .element = view->data};
    for (int d = 0; d < view->ndim; d++)
        if (view->dims[d] == 0)
            w->element = NULL;
}

static void walk_next(struct walk *w)
{
    for (int d = w->view->ndim - 1; d >= 0; d--) {
        w->element += w->view->strides[d];
        if (++w->at[d] < w->view->dims[d])
            return;
        w->element -= w->at[d] * w->view->strides[d];
        w->at[d] = 0;
    }
    w->element = NULL;
}

static bool is_tensor(const struct hr_field_view *view)
{
    return view->dtype != HR_DTYPE_NONE && view->offsets == NULL;
}

/* In logical order, whatever the strides. */
static uint64_t hash_tensor(const struct hr_field_view *view, uint64_t hash)
{
    size_t size = hr_dtype_size(view->dtype), filled = 0;
    char block[4096];
    struct walk w;

    for (walk_begin(&w, view); w.element != NULL; walk_next(&w)) {
        memcpy(block + filled, w.element, size);
        filled += size;
        if (filled == sizeof block) {
            hash = hr__hash64(block, filled, hash);
            filled = 0;
        }
    }
    return hr__hash64(block, filled, hash);
}

/* Of all bytes of all inputs. */
static uint64_t hash_of(struct hr_code_call *call)
{
    struct hr_field_view view;
    uint64_t hash = 0;

    for (size_t i = 0; i < hr_code_input_count(call); i++) {
        CHECK_OK(hr_code_input(call, i, &view));
        CHECK(view.data != NULL || view.bytes == 0);
        hash = hr__hash64(view.dims, sizeof view.dims[0] * (size_t)view.ndim, hash);
        hash = is_tensor(&view) ? hash_tensor(&view, hash)
                                : hr__hash64(view.data, view.bytes, hash);
    }
    return hash;
}

static enum hr_err
put_int(struct hr_code_call *call, size_t at, uint64_t value, struct hr_error *e)
{
    enum hr_err code;
    void *memory;

    code = hr_code_room(call, at, HR_I64, 0, NULL, &memory, e);
    if (code == HR_OK)
        memcpy(memory, &value, sizeof value);
    return code;
}

/* The hash of the inputs, mixed with a draw of the record. */
static enum hr_err call_look(void *user, struct hr_code_call *call, struct hr_error *e)
{
    uint64_t key[2];

    (void)user;
    hr_code_key(call, key);
    return put_int(call, 0, hash_of(call) ^ key[0], e);
}

static enum hr_err call_some(void *user, struct hr_code_call *call, struct hr_error *e)
{
    (void)user;
    (void)e;
    hr_code_keep(call, hash_of(call) % 3 != 1);
    return HR_OK;
}

/* The elements of a tensor in reverse order. */
static enum hr_err call_reverse(void *user, struct hr_code_call *call, struct hr_error *e)
{
    struct hr_field_view view;
    size_t size, count = 1;
    enum hr_err code;
    struct walk w;
    void *memory;
    char *to;

    (void)user;
    CHECK_OK(hr_code_input(call, 0, &view));
    code = hr_code_room(call, 0, view.dtype, view.ndim, view.dims, &memory, e);
    if (code != HR_OK)
        return code;
    size = hr_dtype_size(view.dtype);
    for (int d = 0; d < view.ndim; d++)
        count *= (size_t)view.dims[d];
    to = (char *)memory + count * size;
    for (walk_begin(&w, &view); w.element != NULL; walk_next(&w))
        memcpy(to -= size, w.element, size);
    return HR_OK;
}

/* Up to two children: the input and a number. */
static enum hr_err call_few(void *user, struct hr_code_call *call, struct hr_error *e)
{
    uint64_t count = hash_of(call) % 3;
    enum hr_err code = HR_OK;

    (void)user;
    for (uint64_t i = 0; code == HR_OK && i < count; i++) {
        code = hr_code_child(call, e);
        if (code == HR_OK)
            code = hr_code_pass(call, 0, 0, e);
        if (code == HR_OK)
            code = put_int(call, 1, i, e);
    }
    return code;
}

static const struct hr_code codes[] = {
    {"look",    NULL, call_look,    NULL, NULL, NULL},
    {"some",    NULL, call_some,    NULL, NULL, NULL},
    {"reverse", NULL, call_reverse, NULL, NULL, NULL},
    {"few",     NULL, call_few,     NULL, NULL, NULL},
};
#define CODES (sizeof codes / sizeof codes[0])

const struct hr_code *random_graph_code(void *user, const char *name)
{
    (void)user;
    for (size_t i = 0; i < CODES; i++)
        if (strcmp(codes[i].identity, name) == 0)
            return &codes[i];
    return NULL;
}

enum hr_err
random_graph_prepare(void *user, struct hr_graph *graph, struct hr_error *reterr)
{
    enum hr_err code = HR_OK;

    (void)user;
    for (size_t i = 0; code == HR_OK && i < CODES; i++)
        code = hr_graph_code(graph, codes[i].identity, &codes[i], reterr);
    return code;
}

/* ---- text ---- */

uint64_t random_graph_below(struct random_graph *m, uint64_t n)
{
    return hr__rng_below(&m->rng, n);
}

static uint64_t below(struct random_graph *m, uint64_t n)
{
    return random_graph_below(m, n);
}

void random_graph_add(struct random_graph *m, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    m->length += (size_t)vsnprintf(m->text + m->length, RANDOM_GRAPH_MAX - m->length,
                                   format, args);
    va_end(args);
    CHECK(m->length < RANDOM_GRAPH_MAX);
}

#define add random_graph_add
#define keep random_graph_keep

/* Repeats multiply. A graph runs some thirty times, so more records would take minutes.
 */
#define RECORDS_MAX 300

bool random_graph_keep(struct random_graph *m, size_t length)
{
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};
    enum hr_err code =
        hr_graph_parse(m->text, m->length, "random.yaml", NULL, 0, &graph, &error);

    if (code == HR_OK)
        code = random_graph_prepare(NULL, graph, &error);
    if (code == HR_OK)
        code = hr_graph_freeze(graph, &error);
    CHECK(code == HR_OK || error.message[0] != '\0');
    if (code != HR_OK || hr_graph_record_count(graph) > RECORDS_MAX) {
        hr_graph_unref(graph);
        m->text[m->length = length] = '\0';
        return false;
    }
    hr_graph_unref(m->graph);
    m->graph = graph;
    m->steps++;
    return true;
}

/* Field `at` after the last step; false past the last field. */
static bool field_at(struct random_graph *m, size_t at, struct hr_field_info *ret_field)
{
    return hr_graph_field_info(m->graph, hr_graph_node_count(m->graph) - 1, at,
                               ret_field) == HR_OK;
}

static size_t field_count(struct random_graph *m)
{
    return hr_graph_field_count(m->graph, hr_graph_node_count(m->graph) - 1);
}

static bool has_field(struct random_graph *m, const char *name)
{
    struct hr_field_info field;

    for (size_t i = 0; field_at(m, i, &field); i++)
        if (strcmp(field.name, name) == 0)
            return true;
    return false;
}

static const char *any_field(struct random_graph *m)
{
    struct hr_field_info field = {.name = "value"};

    if (field_count(m) > 0)
        CHECK(field_at(m, below(m, field_count(m)), &field));
    return field.name;
}

/* ---- parameters ---- */

static double
number(struct random_graph *m, const struct hr_param *p, double low, double high)
{
    if (p->has_min && p->min > low)
        low = p->min;
    if (p->has_max && p->max < high)
        high = p->max;
    return hr__rng_uniform(&m->rng, low, high);
}

static void add_list(struct random_graph *m, const struct hr_param *p, bool whole)
{
    int least = p->items_min > 0 ? p->items_min : 1;
    int most = p->items_max > 0 && p->items_max < 4 ? p->items_max : 4;
    int count =
        least >= most ? least : least + (int)below(m, (uint64_t)(most - least + 1));
    double value = whole ? 0 : number(m, p, -1, 1);

    add(m, "[");
    for (int i = 0; i < count; i++) {
        if (whole)
            add(m, "%s%d", i == 0 ? "" : ", ", (int)number(m, p, 0, 60));
        else
            add(m, "%s%.3f", i == 0 ? "" : ", ", value += number(m, p, 0, 1.5));
    }
    add(m, "]");
}

static void add_name(struct random_graph *m, const struct hr_param *p)
{
    int count = 0;

    while (p->names[count] != NULL)
        count++;
    add(m, "%s", p->names[below(m, (uint64_t)count)]);
}

static void add_value(struct random_graph *m, const struct hr_param *p)
{
    static const char *const dtypes[] = {"float32", "float16", "bfloat16", "uint8",
                                         "int32"};

    switch (p->type) {
    case HR_PARAM_INT:
    case HR_PARAM_BYTES:
        add(m, "%d", (int)number(m, p, 0, below(m, 4) != 0 ? 6 : 70));
        break;
    case HR_PARAM_FLOAT:
        add(m, "%.3f", number(m, p, 0, 2));
        break;
    case HR_PARAM_BOOL:
        add(m, below(m, 2) == 0 ? "true" : "false");
        break;
    case HR_PARAM_ENUM:
        add_name(m, p);
        break;
    case HR_PARAM_DTYPE:
        add(m, "%s", dtypes[below(m, 5)]);
        break;
    case HR_PARAM_INTS:
    case HR_PARAM_FLOATS:
        add_list(m, p, p->type == HR_PARAM_INTS);
        break;
    case HR_PARAM_FIELDS:
    case HR_PARAM_STRINGS:
    case HR_PARAM_TEXTS:
        add(m, "[%s", any_field(m));
        if (p->one_is_item && below(m, 2) == 0)
            add(m, ", %s", any_field(m));
        add(m, "]");
        break;
    case HR_PARAM_MAP:
        add(m, "{%s: other}", any_field(m));
        break;
    case HR_PARAM_STRING: /* a filter condition */
        add(m, "\"%s %% %d != 1\"", any_field(m), 2 + (int)below(m, 3));
        break;
    case HR_PARAM_FIELD:
    case HR_PARAM_PATH:
        add(m, "%s", any_field(m));
        break;
    }
}

/* True for required parameters and a third of the others; names of missing fields are
 * replaced by existing ones. */
static bool wants(struct random_graph *m, const struct hr_param *p)
{
    if (p->required)
        return true;
    if (p->one_is_item) /* the image, and what moves with it */
        return !has_field(m, p->fallback) || below(m, 3) == 0;
    if (p->type == HR_PARAM_FIELD && p->access != HR_ACCESS_WRITE && p->fallback != NULL)
        return !has_field(m, p->fallback);
    return p->type != HR_PARAM_FIELD && p->type != HR_PARAM_PATH &&
           p->type != HR_PARAM_STRING && p->type != HR_PARAM_FIELDS && below(m, 3) == 0;
}

static void add_step(struct random_graph *m, const struct hr_op *op)
{
    const char *comma = "";

    add(m, "  - %s: {", op->name);
    for (size_t i = 0; i < op->param_count; i++) {
        if (!wants(m, &op->params[i]))
            continue;
        add(m, "%s%s: ", comma, op->params[i].name);
        add_value(m, &op->params[i]);
        comma = ", ";
    }
    if (below(m, 6) == 0) /* steps of three groups; refused where no record can skip it */
        add(m, "%swhen: {group%d: %.2f}", comma, (int)below(m, 3),
            hr__rng_uniform(&m->rng, 0, 1));
    add(m, "}\n");
}

/* ---- graphs ---- */

/* A random op for the middle of a graph. Ops that only take time are excluded; they are
 * recognised by having a single, required, numeric parameter. */
static const struct hr_op *any_op(struct random_graph *m)
{
    for (;;) {
        size_t count;
        const struct hr_op *const *list = hr__op_list(&count);
        const struct hr_op *op = list[below(m, count)];

        if (op->kind == HR_OP_SOURCE || op->kind == HR_OP_ZIP ||
            op->kind == HR_OP_SEQUENCE || (op->traits & HR_TRAIT_DECODES) != 0 ||
            op->code != NULL)
            continue;
        /* Photos stay whole: whether one that cannot be decoded is bad depends on whether
         * a plan makes its pixels. */
        if (strncmp(op->name, "text.", 5) == 0 && has_field(m, "data"))
            continue;
        if ((op->traits & HR_TRAIT_TEST_ONLY) != 0 && op->param_count > 0 &&
            (op->params[0].required || below(m, 4) != 0))
            continue;
        return op;
    }
}

static int side(struct random_graph *m)
{
    return below(m, 2) == 0 ? 2 << below(m, 7) : 2 + (int)below(m, 150);
}

/* Pixels that are made, a resize of them and a window of that: the window alone must have
 * the bytes of the whole. */
static void add_window(struct random_graph *m)
{
    static const char *const makers[] = {
        "image.grayscale: {p: 1}", "image.gaussian_blur: {size: 3}",
        "image.pad: {padding: 2}", "image.color_jitter: {brightness: 0.5}"};
    static const char *const filters[] = {"nearest", "bilinear", "bicubic", "box",
                                          "lanczos"};
    int height = side(m), width = side(m);
    size_t length = m->length;

    add(m, "  - %s\n", makers[below(m, 4)]);
    keep(m, length);
    length = m->length;
    add(m, "  - image.resize: {size: [%d, %d], interpolation: %s, antialias: %s}\n",
        height, width, filters[below(m, 5)], below(m, 4) != 0 ? "true" : "false");
    if (!keep(m, length))
        return;
    length = m->length;
    add(m, "  - image.%s_crop: {size: [%d, %d]}\n",
        below(m, 2) == 0 ? "center" : "random", 1 + (int)below(m, (uint64_t)height),
        1 + (int)below(m, (uint64_t)width));
    keep(m, length);
}

/* "uint8[height, -1, 3]" */
static void add_type(struct random_graph *m, const struct hr_field_info *field)
{
    add(m, "%s[", hr_dtype_name(field->dtype));
    for (int d = 0; d < field->ndim; d++)
        add(m, "%s%lld", d > 0 ? ", " : "", (long long)field->dims[d]);
    add(m, "]");
}

/* Code that reads one field, or all of them. */
static bool add_code(struct random_graph *m)
{
    size_t length = m->length, number = m->codes;
    struct hr_field_info field;
    bool tensor;

    if (field_count(m) == 0)
        return false;
    CHECK(field_at(m, below(m, field_count(m)), &field));
    tensor = field.dtype != HR_DTYPE_NONE && !field.ragged;
    switch (below(m, 6)) {
    case 0:
        add(m, "  - code.filter: {code: some, fields: [%s]}\n", field.name);
        break;
    case 1:
        if (!tensor)
            return false;
        add(m, "  - code.expand: {code: few, fields: [%s], outputs: [\"%s: ", field.name,
            field.name);
        add_type(m, &field);
        add(m, "\", \"child%zu: int64\"]}\n", number);
        break;
    case 2:
    case 3:
        if (!tensor)
            return false;
        add(m, "  - code.map: {code: reverse, fields: [%s], outputs: [\"%s: ", field.name,
            field.name);
        add_type(m, &field);
        add(m, "\"]}\n");
        break;
    default:
        add(m, "  - code.map: {code: look, outputs: [\"seen%zu: int64\"]}\n", number);
        break;
    }
    if (!keep(m, length))
        return false;
    m->codes++;
    return true;
}

static void grow(struct random_graph *m, size_t steps)
{
    for (size_t tries = 0; steps > 0 && tries < 60; tries++) {
        size_t length = m->length;

        if (m->wants_code && below(m, 4) == 0) {
            steps -= add_code(m);
            continue;
        }
        add_step(m, any_op(m));
        steps -= keep(m, length);
    }
}

static void add_branches(struct random_graph *m, size_t number, bool flips)
{
    add(m, "  - debug.identity: {}\n    name: fork%zu\n", number);
    for (int branch = 0; branch < 2; branch++) {
        add(m, "  - debug.identity: {}\n    name: branch%zu_%d\n    inputs: [fork%zu]\n",
            number, branch, number);
        if (flips && below(m, 2) == 0)
            add(m, "  - image.flip: {}\n    name: end%zu_%d\n", number, branch);
        else
            add(m, "  - debug.identity: {}\n    name: end%zu_%d\n", number, branch);
    }
    add(m,
        "  - flow.zip: {prefix: [left%zu_, right%zu_]}\n    inputs: [end%zu_0, "
        "end%zu_1]\n",
        number, number, number, number);
}

/* Adds two branches and joins them, where the number of records is known. */
static void fork_and_join(struct random_graph *m)
{
    size_t length = m->length, number = m->forks++;

    if (hr_graph_record_count(m->graph) < 0)
        return;
    add_branches(m, number, has_field(m, "image"));
    if (keep(m, length))
        return;
    add_branches(m, number, false); /* "image" may have become a mask */
    if (!keep(m, length))
        check_failed(__FILE__, __LINE__, "a fork is refused in\n%s", m->text);
}

static bool all_known(struct random_graph *m)
{
    struct hr_field_info field;

    for (size_t i = 0; field_at(m, i, &field); i++)
        for (int d = 0; d < field.ndim; d++)
            if (field.dims[d] < 0)
                return false;
    return true;
}

/* Refused unless the images have one shape. */
static void add_mix(struct random_graph *m)
{
    size_t length = m->length;

    if (!has_field(m, "image") || !has_field(m, "label") || below(m, 4) > 0)
        return;
    add(m, "  - batch.%s: {num_classes: 9}\n", below(m, 2) == 0 ? "mixup" : "cutmix");
    keep(m, length);
}

void random_graph_batch(struct random_graph *m)
{
    size_t length = m->length;
    int size = 1 + (int)below(m, 9);
    bool pads, ragged;

    if (!all_known(m) && below(m, 2) == 0) {
        add(m, "  - image.resize: {size: [%d, %d]}\n", 8 + (int)below(m, 40),
            8 + (int)below(m, 40));
        keep(m, length);
        length = m->length;
    }
    pads = !all_known(m) && below(m, 8) > 1;
    ragged = !pads && !all_known(m) && below(m, 2) == 0;
    add(m, "  - batch.%s: {size: %d, drop_last: %s%s%s}\n", pads ? "pad" : "stack", size,
        below(m, 3) == 0 ? "true" : "false", ragged ? ", ragged: true" : "",
        pads && has_field(m, "image") && below(m, 2) == 0 ? ", lengths: image" : "");
    if (keep(m, length))
        add_mix(m);
}

/* Refused if no record is in the part. */
static void add_split(struct random_graph *m, const char *by)
{
    size_t length = m->length;

    add(m, "  - order.split: {fractions: [0.6, 0.4], part: %d, seed: %d, by: %s}\n",
        (int)below(m, 2), (int)below(m, 1000), by);
    keep(m, length);
}

/* What moves, repeats or leaves out records of one input. */
static void add_order(struct random_graph *m, const char *photos)
{
    switch (below(m, 6)) {
    case 0:
        add(m, "  - order.shuffle: {}\n");
        break;
    case 1:
        add(m, "  - order.sample: {count: %d, replacement: %s}\n", (int)below(m, 20),
            below(m, 2) == 0 ? "true" : "false");
        break;
    case 2:
        if (photos != NULL)
            add(m, "  - order.sample: {balance: label}\n");
        break;
    case 3:
        add(m, "  - order.skip: {count: 1}\n");
        break;
    }
}

static void add_source(struct random_graph *m, const char *photos)
{
    if (photos == NULL) {
        add(m, "  - source.range: {n: %d}\n", 20 + (int)below(m, 100));
    } else {
        add(m, "  - source.files: {path: '%s', labels: folder}\n", photos);
        add(m, "  - order.take: {count: %d}\n", 4 + (int)below(m, 9));
    }
}

/* How the inputs of node `number` become one. */
struct merging {
    size_t number, inputs;
    bool joins, left; /* by a key, which takes two inputs */
};

static void add_merge_op(struct random_graph *m, const char *photos, struct merging how)
{
    if (how.joins)
        add(m, "  - flow.join: {on: %s, prefix: [l%zu_, r%zu_]%s}\n",
            photos == NULL || below(m, 2) == 0 ? "index" : "path", how.number, how.number,
            how.left ? ", how: left, matched: found" : "");
    else if (below(m, 3) == 0)
        add(m, "  - flow.concat: {}\n");
    else if (below(m, 2) == 0)
        add(m, "  - flow.interleave: {block: %d}\n", 1 + (int)below(m, 9));
    else
        add(m, "  - flow.mix: {until: %s}\n", below(m, 2) == 0 ? "first" : "all");
}

/* A source with what its records go through. The second input of a left join has nothing
 * that cannot be made up. */
static void
add_input(struct random_graph *m, const char *photos, bool decoded, struct merging how)
{
    add_source(m, photos);
    add_order(m, photos);
    if (photos == NULL && below(m, 3) == 0)
        add(m, "  - debug.fail: {probability: 0.05}\n");
    if (decoded)
        add(m, "  - image.decode: {mode: exact}\n");
    if (decoded && below(m, 2) == 0)
        add(m, "  - image.flip: {}\n");
    if (decoded && how.left)
        add(m, "  - image.resize: {size: [9, 14]}\n");
    else if (photos != NULL && how.left)
        add(m, "  - record.drop: {fields: [data]}\n");
}

/* Joins what there is, records of sources or `decoded` ones, with those of one to three
 * more sources. */
static void add_merge(struct random_graph *m, const char *photos, bool decoded)
{
    size_t length = m->length;
    struct merging how = {.number = m->forks++,
                          .inputs = 2 + (below(m, 2) == 0 ? 0 : below(m, 3))};

    how.joins = how.inputs == 2 && below(m, 3) > 0;
    how.left = how.joins && below(m, 2) == 0;
    add(m, "  - debug.identity: {}\n    name: input%zu_0\n", how.number);
    for (size_t i = 1; i < how.inputs; i++) {
        add_input(m, photos, decoded, how);
        add(m, "  - debug.identity: {}\n    name: input%zu_%zu\n", how.number, i);
    }
    add_merge_op(m, photos, how);
    add(m, "    inputs: [input%zu_0", how.number);
    for (size_t i = 1; i < how.inputs; i++)
        add(m, ", input%zu_%zu", how.number, i);
    add(m, "]\n");
    keep(m, length);
}

/* Refused behind batches. Runs of the graph share what a folder keeps, from the first one
 * that fills it; a small budget keeps some records only. */
static void add_cache(struct random_graph *m)
{
    static const char *const draws[] = {"random: freeze", "refresh: 1", "refresh: 2"};
    size_t length = m->length;

    add(m, "  - flow.cache: {%s", draws[below(m, 3)]);
    if (below(m, 3) > 0)
        add(m, ", folder: '%s/kept'", check_temp_dir());
    if (below(m, 3) == 0)
        add(m, ", budget: %d", (int)below(m, 200000));
    add(m, "}\n");
    keep(m, length);
}

/* The records of one source or of several. */
static void begin(struct random_graph *m, const char *photos)
{
    size_t length = m->length;

    add_source(m, photos);
    CHECK(keep(m, 0));
    if (below(m, 5) == 0) {
        length = m->length;
        add_order(m, photos);
        if (m->length > length)
            keep(m, length);
    }
    for (uint64_t merges = below(m, 5) == 0 ? 1 + below(m, 2) : 0; merges > 0; merges--)
        add_merge(m, photos, false);
    if (below(m, 4) == 0)
        add_split(m, photos != NULL && below(m, 2) == 0 ? "path" : "index");
}

void random_graph_make(struct random_graph *m, uint64_t seed, const char *photos)
{
    size_t length;

    *m = (struct random_graph){0};
    hr__rng_init(&m->rng, seed, 0, 0);
    m->wants_code = below(m, 3) == 0;
    add(m, "headrace: 1\npipeline:\n");
    if (below(m, 3) == 0) {
        begin(m, NULL);
        grow(m, 1 + below(m, 4));
    } else {
        begin(m, photos);
        grow(m, below(m, 2));
        if (below(m, 6) == 0)
            add_cache(m);
        length = m->length;
        add(m, "  - image.decode: {mode: exact}\n");
        m->decodes = keep(m, length);
        if (m->decodes && below(m, 6) == 0)
            add_merge(m, photos, true); /* refused if fields were added */
        if (below(m, 4) == 0)
            add_window(m);
        grow(m, 1 + below(m, 6));
    }
    if (below(m, 5) == 0)
        fork_and_join(m);
    if (below(m, 4) == 0) {
        add_cache(m);
        grow(m, below(m, 3));
    }
    random_graph_batch(m);
    if (below(m, 5) == 0) {
        grow(m, 1 + below(m, 2));
        random_graph_batch(m);
    }
}

/* Batches by length, where a record's number is its length. */
static void add_buckets(struct random_graph *m)
{
    int first = 1 + (int)below(m, 100);

    add(m, "  - batch.bucket: {by: value, boundaries: [%d, %d], drop_last: %s, ", first,
        first + 1 + (int)below(m, 60), below(m, 4) == 0 ? "true" : "false");
    if (below(m, 2) == 0)
        add(m, "size: [%d, %d, %d]}\n", 1 + (int)below(m, 5), 1 + (int)below(m, 5),
            1 + (int)below(m, 9));
    else
        add(m, "elements: %d, multiple: %d, too_long: %s}\n", 100 + (int)below(m, 500),
            1 + (int)below(m, 20), below(m, 4) == 0 ? "refuse" : "drop");
}

static void add_sequence_step(struct random_graph *m)
{
    size_t length = m->length;

    switch (below(m, 12)) {
    case 11:
        add_buckets(m);
        add(m, "  - debug.fail: {probability: 0.%02d}\n  - batch.unbatch: {}\n",
            (int)below(m, 9));
        break;
    case 10: /* of lists of numbers, it is one number again */
        add(m,
            "  - flow.window: {size: %d, stride: %d, drop_last: %s}\n"
            "  - record.flat: {fields: value}\n",
            1 + (int)below(m, 6), (int)below(m, 8), below(m, 2) == 0 ? "true" : "false");
        break;
    case 9:
        add_cache(m);
        return;
    case 0:
    case 1:
        add(m, "  - debug.fail: {probability: 0.%02d}\n", 1 + (int)below(m, 15));
        break;
    case 2:
        add(m, "  - record.filter: {expr: \"value %% %d != 1\"}\n", 2 + (int)below(m, 5));
        break;
    case 3:
        add(m, "  - order.take: {count: %d}\n", (int)below(m, 80));
        break;
    case 4:
        add(m, "  - order.skip: {count: %d}\n", (int)below(m, 20));
        break;
    case 5:
        add(m, "  - order.shard: {rank: 0, world: %d}\n", 2 + (int)below(m, 2));
        break;
    case 6:
        add(m, "  - order.shuffle: {window: %d}\n", 1 + (int)below(m, 12));
        break;
    case 7:
        add(m,
            "  - code.expand: {code: few, fields: [value], outputs: "
            "[\"value: int64[]\", \"child%zu: int64\"]}\n",
            m->codes);
        m->codes++;
        break;
    case 8:
        add(m, "  - batch.stack: {size: %d}\n", 1 + (int)below(m, 5));
        if (below(m, 3) == 0)
            add(m, "  - order.take: {count: %d}\n", 1 + (int)below(m, 20));
        add(m, "  - debug.fail: {probability: 0.%02d}\n  - batch.unbatch: {}\n",
            (int)below(m, 9));
        break;
    }
    keep(m, length);
}

void random_graph_sequence(struct random_graph *m, uint64_t seed)
{
    size_t length;

    *m = (struct random_graph){0};
    hr__rng_init(&m->rng, seed, 0, 1);
    add(m, "headrace: 1\npipeline:\n  - source.range: {n: %d}\n",
        20 + (int)below(m, 200));
    CHECK(keep(m, 0));
    for (uint64_t steps = 2 + below(m, 7); steps > 0; steps--)
        add_sequence_step(m);
    length = m->length;
    if (below(m, 4) == 0)
        add_buckets(m);
    else
        add(m, "  - batch.stack: {size: %d}\n", 1 + (int)below(m, 6));
    if (!keep(m, length))
        add(m, "  - batch.stack: {size: 4}\n");
}
