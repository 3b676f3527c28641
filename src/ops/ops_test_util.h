/*
 * ops/ops_test_util.h - running ops on one record without a graph or an engine.
 *
 * A bench holds a thread context, a schema and a row of values. bench_op() does what
 * freezing and the executor do for a node: parse, bind, infer, open, apply. The file is
 * included by tests (its functions are static): tests are single-file programs.
 */
#ifndef HR_OPS_OPS_TEST_UTIL_H
#define HR_OPS_OPS_TEST_UTIL_H

#include <stdlib.h>

#include "core/alloc.h"
#include "core/doc.h"
#include "core/file.h"
#include "op/op.h"
#include "op/thread.h"
#include "ops/image_job.h"
#include "store/reader.h"
#include "tests/support/check.h"

#define BENCH_SLOTS 128

struct bench_node {
    const struct hr_op *op;
    void *params, *state;
    struct hr_doc *doc, *canonical;
    struct hr_bindings more;
    const char *names[HR_LIST_MAX * 3];
    enum hr_param_access access[HR_LIST_MAX * 3];
    size_t count;
    struct hr_schema input;
};

static inline void bench_node_finish(struct bench_node *n)
{
    if (n->state != NULL)
        n->op->close(n->state);
    hr__doc_destroy(n->doc);
    hr__doc_destroy(n->canonical);
    free(n->params);
}

struct bench {
    struct hr_thread thread;
    struct hr_schema schema;
    struct hr_value values[BENCH_SLOTS]; /* by the schema's slots */
    int slots;
    struct hr_record_id id;
    uint32_t node;
    bool force_each;                     /* make every described field after each op */
    void (*after_each)(struct bench *b); /* called after each op, or NULL */
    bool dropped;
    struct bench_node nodes[32]; /* open until the record is cleared: values may show
                                    what a state owns */
    int node_count;
    struct hr_error error;
};

static inline void bench_init(struct bench *b)
{
    struct hr_reader_options options = {.mode = HR_READER_NONE};

    memset(b, 0, sizeof *b);
    hr__arena_init(&b->thread.arena);
    b->thread.pool = hr_pool_create(0);
    CHECK(b->thread.pool != NULL);
    options.pool = b->thread.pool;
    CHECK_OK(hr__reader_create(&options, &b->thread.reader, NULL));
    b->id.seed = 1;
}

/* Begins a new record. */
static inline void bench_clear(struct bench *b)
{
    for (int i = 0; i < BENCH_SLOTS; i++)
        hr__value_clear(&b->values[i]);
    while (b->node_count > 0)
        bench_node_finish(&b->nodes[--b->node_count]);
    memset(&b->schema, 0, sizeof b->schema);
    memset(&b->error, 0, sizeof b->error);
    hr__arena_reset(&b->thread.arena);
    b->slots = 0;
    b->node = 0;
    b->dropped = false;
}

static inline void bench_finish(struct bench *b)
{
    bench_clear(b);
    hr__thread_objects_destroy(&b->thread);
    hr__reader_destroy(b->thread.reader);
    hr_pool_unref(b->thread.pool);
    hr__arena_finish(&b->thread.arena);
}

static inline struct hr_field *bench_field(struct bench *b, const char *name)
{
    return hr__schema_find(&b->schema, name);
}

static inline struct hr_value *bench_value(struct bench *b, const char *name)
{
    struct hr_field *field = bench_field(b, name);

    return field == NULL ? NULL : &b->values[field->slot];
}

static inline struct hr_value *bench_put(struct bench *b, const char *name)
{
    struct hr_field *field = hr__schema_put(&b->schema, name);

    field->slot = b->slots++;
    return &b->values[field->slot];
}

static inline void
bench_put_bytes(struct bench *b, const char *name, const void *data, size_t bytes)
{
    hr__value_set_bytes(bench_put(b, name), data, bytes, NULL);
    bench_field(b, name)->kind = HR_FIELD_BYTES;
    bench_field(b, name)->meaning = HR_MEANING_ENCODED;
}

/* An image of uint8 or float32 (0..1), [h, w, c], of the caller's memory. */
static inline void
bench_put_image(struct bench *b, const char *name, enum hr_dtype dtype, int64_t height,
                int64_t width, int64_t channels, void *data)
{
    int64_t dims[3] = {height, width, channels};
    struct hr_value *value = bench_put(b, name);
    struct hr_field *field = bench_field(b, name);

    hr__value_set_tensor(value, dtype, 3, dims, data, NULL);
    value->layout = HR_LAYOUT_HWC;
    value->shared = true;
    field->dtype = dtype;
    field->ndim = 3;
    field->meaning = dtype == HR_U8 ? HR_MEANING_IMAGE_U8 : HR_MEANING_IMAGE_UNIT;
    field->layout = HR_LAYOUT_HWC;
    for (int i = 0; i < 3; i++)
        hr__dim_set(&field->dims[i], dims[i]);
}

static inline enum hr_err
bench_parse(struct bench *b, struct bench_node *n, const char *name, const char *params)
{
    memset(n, 0, sizeof *n);
    HR_TRY(hr__op_get(name, &n->op, &b->error));
    n->params = calloc(1, n->op->params_size + 1);
    if (params != NULL && (n->doc = hr__param_flow(params, &b->error)) == NULL)
        return b->error.code;
    return hr__params_parse(n->op->params, n->op->param_count, n->doc, n->params,
                            n->op->params_size, &n->canonical, &b->error);
}

static inline enum hr_err bench_bind(struct bench *b, struct bench_node *n)
{
    n->count = hr__params_bindings(n->op->params, n->op->param_count, n->params, n->names,
                                   n->access, HR_LIST_MAX * 2);
    if (n->op->prepare != NULL)
        HR_TRY(n->op->prepare(n->params, &n->state, &b->error));
    if (n->op->binds != NULL)
        HR_TRY(n->op->binds(n->params, n->state, &b->schema, &n->more, &b->error));
    for (size_t i = 0; i < n->more.count; i++) {
        n->names[n->count] = n->more.items[i].name;
        n->access[n->count++] = n->more.items[i].access;
    }
    return HR_OK;
}

/* Infers the schema and finds each bound field's value. */
static inline enum hr_err
bench_infer(struct bench *b, struct bench_node *n, struct hr_value **values)
{
    struct hr_field *fields[HR_LIST_MAX * 3];
    struct hr_infer infer = {
        n->op,    n->params, &n->input, n->op->kind != HR_OP_SOURCE, &b->schema, fields,
        n->count, &b->error, n->state};

    n->input = b->schema;
    for (size_t i = 0; i < n->count; i++) {
        struct hr_field *field = bench_field(b, n->names[i]);
        if (n->access[i] == HR_ACCESS_WRITE) {
            bench_put(b, n->names[i]);
            field = bench_field(b, n->names[i]);
        } else if (field == NULL) {
            return hr__fail(&b->error, HR_ERR_GRAPH, "no field %s", n->names[i]);
        } else {
            field = hr__schema_find(&n->input, n->names[i]);
        }
        values[i] = &b->values[field->slot];
    }
    for (size_t i = 0; i < n->count; i++)
        fields[i] = bench_field(b, n->names[i]);
    HR_TRY(n->op->infer(&infer));
    for (size_t i = 0; i < n->count; i++)
        if (n->access[i] == HR_ACCESS_TAKE && bench_field(b, n->names[i]) != NULL &&
            &b->values[bench_field(b, n->names[i])->slot] == values[i])
            hr__schema_remove(&b->schema,
                              (size_t)(bench_field(b, n->names[i]) - b->schema.fields));
    return HR_OK;
}

/* Checks the values against the schema. */
static inline void bench_check(struct bench *b)
{
    for (size_t i = 0; i < b->schema.count; i++) {
        const struct hr_field *field = &b->schema.fields[i];
        const struct hr_value *value = &b->values[field->slot];
        if (field->kind != HR_FIELD_TENSOR)
            continue;
        CHECK_EQ_INT(value->dtype, field->dtype);
        CHECK_EQ_INT(value->ndim, field->ndim);
        for (int k = 0; k < field->ndim; k++)
            CHECK(field->dims[k].size == HR_DIM_UNKNOWN ||
                  field->dims[k].size == value->dims[k]);
    }
}

static inline enum hr_err
bench_apply(struct bench *b, struct bench_node *n, struct hr_value **values)
{
    struct hr_op_ctx ctx = {.params = n->params,
                            .draw_id = b->node,
                            .node = b->node++,
                            .id = &b->id,
                            .thread = &b->thread,
                            .error = &b->error,
                            .fields = values,
                            .field_count = n->count};

    struct hr_open open = {.params = n->params,
                           .input = &n->input,
                           .output = &b->schema,
                           .error = &b->error};

    if (n->op->open != NULL)
        HR_TRY(n->op->open(&open, &n->state));
    ctx.state = n->state;
    HR_TRY(n->op->apply(&ctx));
    b->dropped = ctx.drop;
    for (size_t i = 0; i < b->schema.count && b->force_each; i++)
        HR_TRY(hr__value_force(&b->thread, &b->values[b->schema.fields[i].slot], NULL,
                               &b->error));
    if (b->after_each != NULL)
        b->after_each(b);
    return HR_OK;
}

/* Runs one op on the record. Params are YAML flow text, or NULL. On failure the schema is
 * unchanged. */
static inline enum hr_err bench_op(struct bench *b, const char *name, const char *params)
{
    struct hr_value *values[HR_LIST_MAX * 3];
    struct hr_schema before = b->schema;
    struct bench_node *n = &b->nodes[b->node_count++];
    enum hr_err err = bench_parse(b, n, name, params);

    if (err == HR_OK)
        err = bench_bind(b, n);
    if (err == HR_OK)
        err = bench_infer(b, n, values);
    if (err == HR_OK)
        err = bench_apply(b, n, values);
    if (err == HR_OK)
        bench_check(b);
    else
        b->schema = before;
    return err;
}

/* The field's bytes, contiguous; free() them. */
static inline void *bench_bytes(struct bench *b, const char *name, size_t *ret_bytes)
{
    struct hr_value *value = bench_value(b, name);
    size_t bytes =
        (size_t)hr__value_count(value) * hr_dtype_size((enum hr_dtype)value->dtype);
    void *data = malloc(bytes + 1);
    struct hr_value sight = {0};

    hr__value_alias(&sight, value);
    CHECK_OK(hr__value_force(&b->thread, &sight, data, &b->error));
    hr__value_clear(&sight);
    *ret_bytes = bytes;
    return data;
}

#endif
