/*
 * opt/cache_point.c - see cache_point.h: predicts a plan twice for each point, with the
 * facts of an epoch that fills the cache and of one that reads it.
 */
#include "opt/cache_point.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

struct points {
    const struct hr_plan *plan;
    const struct hr_cost_fact *facts;
    const struct hr_cost_machine *machine;
    const struct hr_cache_job *job;
    const struct hr_cost_fact *const *split; /* or NULL */
    const struct hr_cache_file *files;       /* or NULL */
    struct hr_cost_fact *changed;            /* scratch, one per node */
    bool low;        /* nodes take as little as their confidence intervals allow */
    double low_rate; /* without a cache */
    struct hr_error *error;
};

/* ---- the size of an entry ---- */

static bool is_made_by(const struct hr_graph_node *n, const struct hr_field *field)
{
    for (size_t i = 0; i < n->field_count; i++) {
        enum hr_param_access access = n->field_access[i];
        const struct hr_field *made = hr__schema_get(&n->schema, n->field_names[i]);

        if ((access == HR_ACCESS_WRITE || access == HR_ACCESS_UPDATE) && made != NULL &&
            made->slot == field->slot)
            return true;
    }
    return false;
}

/* The node that gave the field its value: `node`, or one before it. */
static uint32_t
maker(const struct hr_graph *graph, uint32_t node, const struct hr_field *field)
{
    const struct hr_graph_node *n = &graph->nodes[node];

    if (is_made_by(n, field))
        return node;
    for (size_t i = 0; i < n->input_count; i++) {
        const struct hr_schema *schema = &graph->nodes[n->inputs[i]].schema;

        for (size_t k = 0; k < schema->count; k++)
            if (schema->fields[k].slot == field->slot)
                return maker(graph, n->inputs[i], field);
    }
    return node;
}

double hr__cache_entry_bytes(const struct hr_graph *graph,
                             const struct hr_cost_fact *facts, uint32_t node)
{
    const struct hr_schema *schema = &graph->nodes[node].schema;
    bool counted[HR_GRAPH_NODES_MAX] = {false};
    double bytes = 0;

    for (size_t i = 0; i < schema->count; i++) {
        int64_t known = hr__field_bytes(&schema->fields[i]);
        uint32_t by;

        if (known >= 0) {
            bytes += (double)known;
            continue;
        }
        by = maker(graph, node, &schema->fields[i]);
        if (!counted[by]) /* the profile knows the sum over the fields of a node */
            bytes += facts[by].bytes_out;
        counted[by] = true;
    }
    return bytes;
}

const struct hr_field *hr__cache_image(const struct hr_schema *schema)
{
    const struct hr_field *found = NULL;

    for (size_t i = 0; i < schema->count; i++) {
        const struct hr_field *field = &schema->fields[i];

        if (!hr__field_has_pixels(field) || field->meaning == HR_MEANING_MASK)
            continue;
        if (found != NULL)
            return NULL;
        found = field;
    }
    if (found == NULL || found->dtype != HR_U8 || found->ndim != 3 ||
        found->layout != HR_LAYOUT_HWC ||
        (found->dims[2].size != 1 && found->dims[2].size != 3))
        return NULL;
    return found;
}

/* ---- what an epoch costs ---- */

static double entry_ns(double ns, double rate, double bytes)
{
    return ns + (rate > 0 ? bytes / rate * 1e9 : 0);
}

double hr__cache_fill_rate(const double *ns, size_t count, double bytes)
{
    size_t width = (count + 3) / 4;
    double window = 0, most;

    assert(count > 0 && bytes > 0);
    for (size_t i = 0; i < width; i++)
        window += ns[i];
    most = window;
    for (size_t i = width; i < count; i++) {
        window += ns[i] - ns[i - width];
        most = fmax(most, window);
    }
    return most > 0 ? (double)width * bytes / most * 1e9 : 0;
}

/* Where nothing else is known: composed nodes after the cache no longer share the work of
 * their group, and each reads and writes its own bytes, at the rate at which the machine
 * copies. */
static void split_group(struct points *p, const struct hr_plan_stage *stage, size_t at)
{
    const struct hr_graph_node *nodes = p->plan->graph->nodes;
    double copy = p->machine->copy;

    for (size_t i = at + 1; copy > 0 && i < stage->step_count; i++) {
        uint32_t node = stage->steps[i].node;
        struct hr_cost_fact *fact = &p->changed[node];

        if (stage->steps[i].group != stage->steps[at].group || !nodes[node].describes)
            return;
        fact->cpu_ns =
            fmax(fact->cpu_ns, (fact->bytes_in + fact->bytes_out) / copy * 1e9);
    }
}

/* Leaves this part of the work before the cache: of the steps that run for it alone. */
static void
leave_out(struct points *p, const struct hr_plan_stage *stage, size_t at, double part)
{
    for (size_t i = at + 1; i-- > 0;) {
        uint32_t node = stage->steps[i].node;
        struct hr_cost_fact *fact = &p->changed[node];

        if (i < at && !hr__graph_feeds_only(p->plan->graph, node, stage->steps[at].node))
            return;
        fact->cpu_ns *= 1 - part;
        fact->wait_ns *= 1 - part;
        fact->bytes_in *= 1 - part;
        fact->bytes_out *= 1 - part;
    }
}

static enum hr_err predict(const struct points *p, double *ret_rate)
{
    struct hr_cost cost;

    HR_TRY(hr__cost_plan(p->plan, p->changed, p->machine, &cost, p->error));
    *ret_rate = cost.rate;
    hr__cost_finish(&cost);
    return HR_OK;
}

static void reset_by(struct points *p, const struct hr_cost_fact *facts)
{
    for (uint32_t i = 0; i < p->plan->graph->count; i++) {
        p->changed[i] = facts[i];
        if (p->low)
            p->changed[i].cpu_ns *= 1 - facts[i].width;
    }
}

static void reset(struct points *p)
{
    reset_by(p, p->facts);
}

/* The facts with a cache after step `at`, without what the cache takes. */
static void reset_to(struct points *p, const struct hr_plan_stage *stage, size_t at)
{
    uint32_t node = stage->steps[at].node;

    if (p->split != NULL && p->split[node] != NULL) {
        reset_by(p, p->split[node]);
        return;
    }
    reset(p);
    split_group(p, stage, at);
}

/* Values are copied from the cache's memory, or beside it, to where the next step or the
 * batch has them; without a cache they are made there. */
static double copy_ns(const struct points *p, const struct hr_cache_point *point)
{
    return entry_ns(0, p->machine->copy, point->bytes);
}

/* What becomes of the image of a record that was not found, or that comes back. */
static double
file_ns(const struct points *p, const struct hr_cache_point *point, double missing)
{
    const struct hr_cache_file *file = point->file ? &p->files[point->node] : NULL;

    return file != NULL ? missing * file->encode_ns + file->decode_ns : 0;
}

static enum hr_err
predict_fill(struct points *p, const struct hr_plan_stage *stage, size_t at,
             const struct hr_cache_medium *medium, struct hr_cache_point *point)
{
    struct hr_cost_fact *fact;

    reset_to(p, stage, at);
    fact = &p->changed[point->node];
    fact->cpu_ns +=
        fact->kept *
        (copy_ns(p, point) + file_ns(p, point, 1) +
         point->part * entry_ns(medium->write_ns, medium->write_rate, point->bytes));
    return predict(p, &point->fill);
}

static enum hr_err
predict_hits(struct points *p, const struct hr_plan_stage *stage, size_t at,
             const struct hr_cache_medium *medium, struct hr_cache_point *point)
{
    struct hr_cost_fact *fact;
    double entries;

    reset_to(p, stage, at);
    leave_out(p, stage, at, point->part);
    fact = &p->changed[point->node];
    entries = fact->kept * point->part;
    fact->cpu_ns +=
        fact->kept * (copy_ns(p, point) + file_ns(p, point, 1 - point->part)) +
        entries * entry_ns(medium->read_ns, medium->read_rate, point->bytes);
    if (medium->device > 0 && point->total * point->part > medium->device_from)
        fact->wait_ns += entries * point->bytes / medium->device * 1e9;
    return predict(p, &point->hit);
}

static double per_record(double rate)
{
    return rate > 0 && rate < HUGE_VAL ? 1 / rate : 0;
}

static double mean_rate(const struct hr_cache_job *job, double fill, double hit)
{
    double fills = job->refresh > 0 ? ceil(job->epochs / job->refresh) : 1;
    double seconds = fills * per_record(fill) + (job->epochs - fills) * per_record(hit);

    return seconds > 0 ? job->epochs / seconds : HUGE_VAL;
}

/* ---- all points ---- */

/* Different records that pass the node in an epoch: fewer than those of the source after
 * a take, and no more after a repeat. */
static double entries_of(const struct points *p, uint32_t node)
{
    const struct hr_graph *graph = p->plan->graph;
    const struct hr_cost_fact *fact = &p->facts[node];
    double part = 1;

    for (uint32_t at = node;; at = graph->nodes[at].inputs[0]) {
        int64_t known = graph->nodes[at].schema.records;

        if (known >= 0)
            part = fmin(part, (double)known / p->job->records);
        if (graph->nodes[at].input_count != 1)
            return part * p->job->records * fact->records * fact->kept;
    }
}

static enum hr_err
set_rates(struct points *p, const struct hr_plan_stage *stage, size_t at,
          const struct hr_cache_medium *medium, struct hr_cache_point *point)
{
    HR_TRY(predict_fill(p, stage, at, medium, point));
    HR_TRY(predict_hits(p, stage, at, medium, point));
    point->rate = mean_rate(p->job, point->fill, point->hit);
    return HR_OK;
}

static enum hr_err
set_sure(struct points *p, const struct hr_plan_stage *stage, size_t at,
         const struct hr_cache_medium *medium, struct hr_cache_point *point)
{
    struct hr_cache_point low = *point;
    enum hr_err code;

    p->low = true;
    code = set_rates(p, stage, at, medium, &low);
    p->low = false;
    point->sure = p->low_rate < HUGE_VAL ? low.rate / p->low_rate : 1;
    return code;
}

static enum hr_err
set_point(struct points *p, const struct hr_plan_stage *stage, size_t at,
          const struct hr_cache_medium *medium, struct hr_cache_point *point)
{
    point->bytes = hr__cache_entry_bytes(p->plan->graph, p->facts, point->node);
    if (point->file)
        point->bytes = fmax(point->bytes - p->files[point->node].pixels, 0) +
                       p->files[point->node].bytes;
    point->total = point->bytes * entries_of(p, point->node);
    point->part = point->total > medium->room ? medium->room / point->total : 1;
    HR_TRY(set_rates(p, stage, at, medium, point));
    return set_sure(p, stage, at, medium, point);
}

static int by_rate(const void *a, const void *b)
{
    const struct hr_cache_point *x = a, *y = b;

    if (x->rate != y->rate)
        return x->rate > y->rate ? -1 : 1;
    return (x->total > y->total) - (x->total < y->total);
}

/* Single records, which a node that is no cache itself has made. */
static bool is_place(const struct hr_graph_node *n)
{
    return n->schema.batch_rank == 0 && n->op->cache.begin == NULL &&
           (n->op->kind == HR_OP_SOURCE || n->op->kind == HR_OP_MAP ||
            n->op->kind == HR_OP_FILTER);
}

static enum hr_err add_stage(struct points *p, const struct hr_plan_stage *stage,
                             const struct hr_cache_medium *media, size_t media_count,
                             struct hr_cache_point *points, size_t *count)
{
    for (size_t i = 0; i < stage->step_count; i++)
        for (size_t m = 0; m < 2 * media_count; m++) {
            uint32_t node = stage->steps[i].node;
            struct hr_cache_point point = {
                .node = node, .medium = m / 2, .file = m % 2 == 1};

            if (!is_place(&p->plan->graph->nodes[node]) || media[m / 2].room <= 0 ||
                (point.file && (p->files == NULL || p->files[node].bytes == 0)))
                continue;
            HR_TRY(set_point(p, stage, i, &media[m / 2], &point));
            points[(*count)++] = point;
        }
    return HR_OK;
}

static enum hr_err
add_all(struct points *p, const struct hr_cache_medium *media, size_t media_count,
        struct hr_cache_point *points, size_t *count)
{
    struct hr_cache_point none = {.node = HR_NO_NODE, .sure = 1};

    p->low = true;
    reset(p);
    HR_TRY(predict(p, &p->low_rate));
    p->low = false;
    reset(p);
    HR_TRY(predict(p, &none.rate));
    none.fill = none.hit = none.rate;
    points[(*count)++] = none;
    for (size_t i = 0; i < p->plan->stage_count; i++)
        HR_TRY(add_stage(p, &p->plan->stages[i], media, media_count, points, count));
    return HR_OK;
}

enum hr_err
hr__cache_points(const struct hr_plan *plan, const struct hr_cost_fact *facts,
                 const struct hr_cost_machine *machine, const struct hr_cache_job *job,
                 const struct hr_cache_medium *media, size_t media_count,
                 const struct hr_cost_fact *const *split,
                 const struct hr_cache_file *files, struct hr_cache_point *ret_points,
                 size_t *ret_count, struct hr_error *reterr)
{
    struct points p = {.plan = plan,
                       .facts = facts,
                       .machine = machine,
                       .job = job,
                       .split = split,
                       .files = files,
                       .error = reterr};
    size_t count = 0;
    enum hr_err code;

    assert(job->epochs >= 1 && job->refresh >= 0 && job->records > 0);
    p.changed = hr__calloc(plan->graph->count, sizeof *p.changed);
    if (p.changed == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    code = add_all(&p, media, media_count, ret_points, &count);
    hr__free(p.changed);
    if (code != HR_OK)
        return code;
    qsort(ret_points, count, sizeof *ret_points, by_rate);
    *ret_count = count;
    return HR_OK;
}
