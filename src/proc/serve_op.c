/*
 * proc/serve_op.c - ops of ours in a worker process, run as the engine runs them.
 *
 * A step brings the op's name, its parameters and what its open() looks at, so the peer
 * has a state of its own. Files beside the data are the parent's: the peer's states write
 * none, and what they learn ends with the process.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "proc/serve_internal.h"

/* ---- opening ---- */

static enum hr_err
read_params(struct hr_server *server, struct hr_serve_step *step, struct hr_error *reterr)
{
    const char *text = step->step->params;
    void *params = hr__arena_zalloc(&server->lasting, step->op->params_size + 1);
    struct hr_doc *doc;
    enum hr_err code;

    if (params == NULL || text == NULL)
        return hr__fail(reterr, text == NULL ? HR_ERR_FORMAT : HR_ERR_MEMORY,
                        "no parameters for '%s'", step->step->op);
    HR_TRY(hr__doc_parse(text, strlen(text), "params.json", &doc, reterr));
    code = hr__params_parse(step->op->params, step->op->param_count, doc, params,
                            step->op->params_size, &step->canonical, reterr);
    hr__doc_destroy(doc);
    step->ctx.params = params;
    return code;
}

/* As many fields are bound as the op will use. */
static enum hr_err check_fields(const struct hr_serve_step *step, struct hr_error *reterr)
{
    const char *names[HR_SCHEMA_FIELDS_MAX];
    enum hr_param_access access[HR_SCHEMA_FIELDS_MAX];
    size_t count =
        hr__params_bindings(step->op->params, step->op->param_count, step->ctx.params,
                            names, access, HR_SCHEMA_FIELDS_MAX);
    struct hr_bindings *more;
    enum hr_err code = HR_OK;

    more = hr__calloc(1, sizeof *more);
    if (more == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for '%s'", step->op->name);
    if (step->op->binds != NULL)
        code = step->op->binds(step->ctx.params, NULL, step->step->input, more, reterr);
    count += more->count;
    hr__free(more);
    if (code == HR_OK && count != step->step->fields.count)
        code = hr__fail(reterr, HR_ERR_FORMAT, "'%s' uses %zu fields; %zu are bound",
                        step->op->name, count, step->step->fields.count);
    return code;
}

static enum hr_err
bind(struct hr_server *server, struct hr_serve_step *step, struct hr_error *reterr)
{
    const struct hr_proc_step *from = step->step;
    struct hr_op_ctx *ctx = &step->ctx;

    ctx->fields =
        hr__arena_zalloc(&server->lasting, (from->fields.count + 1) * sizeof(void *));
    if (ctx->fields == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for '%s'", step->op->name);
    for (size_t i = 0; i < from->fields.count; i++)
        ctx->fields[i] = &server->values[from->fields.at[i]];
    ctx->field_count = from->fields.count;
    ctx->id = &server->id;
    ctx->thread = &server->thread;
    ctx->node = from->number;
    ctx->draw_id = from->draw_id;
    ctx->when = from->when;
    ctx->when_count = from->when_count;
    ctx->error = &server->error;
    return HR_OK;
}

enum hr_err hr__serve_op_open(struct hr_server *server, struct hr_serve_step *step,
                              struct hr_error *reterr)
{
    const struct hr_proc_step *from = step->step;
    struct hr_open open = {.input = from->input, .output = from->output};

    HR_TRY(hr__op_get(from->op, &step->op, reterr));
    if (!hr__op_is_portable(step->op) || step->op->kind != from->kind)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED, "'%s' cannot run in a worker process",
                        from->op);
    HR_TRY(read_params(server, step, reterr));
    if ((step->op->binds != NULL || step->op->open != NULL) && from->input == NULL)
        return hr__fail(reterr, HR_ERR_FORMAT, "'%s' lacks its schema", from->op);
    HR_TRY(check_fields(step, reterr));
    HR_TRY(bind(server, step, reterr));
    open.params = step->ctx.params;
    open.error = reterr;
    return step->op->open != NULL ? step->op->open(&open, &step->ctx.state) : HR_OK;
}

void hr__serve_op_close(struct hr_serve_step *step)
{
    if (step->ctx.state != NULL)
        step->op->close(step->ctx.state);
    hr__doc_destroy(step->canonical);
    step->ctx.state = NULL;
    step->canonical = NULL;
}

/* ---- running ---- */

/* Bytes of the value are wherever the op left them. */
static void moved(struct hr_server *server, size_t slot)
{
    server->places[slot] = (struct hr_serve_place){HR_SERVE_SCRATCH, 0};
}

static enum hr_err force_all(struct hr_server *server, const struct hr_proc_slots *slots,
                             struct hr_error *reterr)
{
    for (size_t i = 0; i < slots->count; i++) {
        struct hr_value *value = &server->values[slots->at[i]];

        if (value->kind != HR_VALUE_DEFERRED)
            continue;
        HR_TRY(hr__value_force(&server->thread, value, NULL, reterr));
        moved(server, slots->at[i]);
    }
    return HR_OK;
}

static enum hr_err force_after(struct hr_server *server, const struct hr_proc_step *step,
                               struct hr_error *reterr)
{
    if (!step->early)
        return force_all(server, &step->after, reterr);
    for (size_t i = 0; i < step->after.count; i++) {
        size_t slot = step->after.at[i];

        if (server->values[slot].kind != HR_VALUE_DEFERRED)
            continue;
        hr__value_force_early(&server->thread, &server->values[slot]);
        moved(server, slot);
    }
    return HR_OK;
}

static enum hr_err
begin(struct hr_server *server, struct hr_serve_step *step, struct hr_error *reterr)
{
    const struct hr_proc_slots *alias = &step->step->alias;

    assert(alias->count % 2 == 0);
    for (size_t i = 0; i < alias->count; i += 2) {
        size_t from = alias->at[i], to = alias->at[i + 1];

        hr__value_alias(&server->values[to], &server->values[from]);
        server->places[to] = server->places[from];
    }
    return force_all(server, &step->step->before, reterr);
}

enum hr_err hr__serve_op_run(struct hr_server *server, struct hr_serve_step *step,
                             bool *ret_drop, struct hr_error *reterr)
{
    const struct hr_proc_step *from = step->step;

    assert(step->ctx.error == reterr);
    HR_TRY(begin(server, step, reterr));
    for (size_t i = 0; i < from->fields.count; i++)
        moved(server, from->fields.at[i]);
    HR_TRY(hr__op_apply(step->op, &step->ctx));
    *ret_drop = step->ctx.drop;
    step->ctx.drop = false;
    HR_TRY(force_after(server, from, reterr));
    for (size_t i = 0; i < from->clear.count; i++)
        hr__value_clear(&server->values[from->clear.at[i]]);
    return HR_OK;
}

/* Children may show their parent's bytes, which are made for that. */
static enum hr_err make_parents(struct hr_server *server, const struct hr_proc_step *from,
                                struct hr_value **ret_parents, struct hr_error *reterr)
{
    struct hr_value *parents = hr__arena_zalloc(
        &server->thread.arena, (from->parents.count + 1) * sizeof *parents);

    if (parents == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for children");
    HR_TRY(force_all(server, &from->parents, reterr));
    for (size_t i = 0; i < from->parents.count; i++) {
        parents[i] = server->values[from->parents.at[i]];
        parents[i].shared = true;
    }
    *ret_parents = parents;
    return HR_OK;
}

static enum hr_err expand_one(struct hr_server *server, struct hr_serve_step *step,
                              uint64_t at, const struct hr_value *parents,
                              struct hr_value *child, struct hr_error *reterr)
{
    size_t count = server->map.results.count;
    struct hr_wire_value *row;
    enum hr_err code;

    memset(child, 0, (count + 1) * sizeof *child);
    HR_TRY(hr__serve_child_room(server, at, &row, reterr));
    code = step->op->expand.child(&step->ctx, at, parents, child, count);
    for (size_t r = 0; r < count; r++) {
        struct hr_serve_place place = {HR_SERVE_SCRATCH, 0};

        if (code == HR_OK)
            code = hr__serve_describe(server, r, &child[r], &place, &row[r], reterr);
        hr__value_clear(&child[r]);
    }
    return code;
}

enum hr_err hr__serve_op_expand(struct hr_server *server, struct hr_serve_step *step,
                                uint64_t *ret_children, struct hr_error *reterr)
{
    struct hr_value *parents = NULL, *child;
    uint64_t count = 0;

    HR_TRY(begin(server, step, reterr));
    HR_TRY(make_parents(server, step->step, &parents, reterr));
    child = hr__arena_alloc(&server->thread.arena,
                            (server->map.results.count + 1) * sizeof *child);
    if (child == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for children");
    HR_TRY(step->op->expand.count(&step->ctx, &count));
    for (uint64_t i = 0; i < count; i++)
        HR_TRY(expand_one(server, step, i, parents, child, reterr));
    *ret_children = count;
    return HR_OK;
}
