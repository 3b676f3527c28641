/*
 * opt/cedar_plan_make.c - a result of hr__cedar_optimize() as the plan that cedar would
 * write.
 */
#include <string.h>

#include "core/alloc.h"
#include "opt/cedar_file.h"

static struct hr_cedar_entry *add(struct hr_cedar_section *section, int64_t id,
                                  const char *name, enum hr_cedar_variant variant)
{
    struct hr_cedar_entry *entry = &section->entries[section->entry_count++];

    *entry = (struct hr_cedar_entry){.id = id, .name = name, .variant = variant};
    for (int i = 0; i < HR_CEDAR_NUMBERS; i++)
        entry->numbers[i] = HR_CEDAR_UNSET;
    for (int i = 0; i < HR_CEDAR_HINTS; i++)
        entry->hints[i] = -1;
    return entry;
}

static void set_context(const struct hr_cedar_stage *stage, struct hr_cedar_entry *entry)
{
    entry->has_context = true;
    if (stage->autotune)
        entry->numbers[HR_CEDAR_PARALLEL_CALLS] = -1;
    if (stage->in_flight == 0)
        return;
    entry->numbers[HR_CEDAR_MAX_INFLIGHT] = stage->in_flight;
    entry->numbers[HR_CEDAR_MAX_PREFETCH] = stage->in_flight;
    entry->numbers[HR_CEDAR_USE_THREADS] = 1;
    if (stage->variant == HR_CEDAR_SMP) {
        entry->numbers[HR_CEDAR_N_PROCS] = stage->workers;
        entry->numbers[HR_CEDAR_DISABLE_PARALLEL] = 1;
    } else {
        entry->numbers[HR_CEDAR_N_ACTORS] = stage->workers;
        entry->numbers[HR_CEDAR_SUBMIT_BATCH] = stage->submit_batch;
    }
}

struct make {
    const struct hr_cedar_pipeline *pipeline;
    struct hr_cedar_section *physical;
    int64_t next_id; /* of inserted pipes */
    int64_t cache_id, prefetch_id;
};

/* A stage of pipes: one pipe, or pipes that are fused into a new one or into the source.
 */
static void add_pipes(struct make *m, const struct hr_cedar_stage *stage)
{
    const struct hr_cedar_entry *first = m->pipeline->entries[stage->pipes[0]];
    bool in_source = stage->pipes[0] == 0 && stage->pipe_count > 1;
    struct hr_cedar_entry *entry;

    if (stage->pipe_count == 1 || in_source)
        entry = add(m->physical, first->id, first->name, stage->variant);
    else
        entry = add(m->physical, m->next_id++, "FusedPipe", stage->variant);
    set_context(stage, entry);
    m->physical->chain[m->physical->chain_count++] = entry->id;
    if (stage->pipe_count == 1)
        return;
    for (size_t i = in_source; i < stage->pipe_count; i++) {
        const struct hr_cedar_entry *fused = m->pipeline->entries[stage->pipes[i]];

        entry->fused[entry->fused_count++] = fused->id;
        add(m->physical, fused->id, fused->name, HR_CEDAR_INPROCESS);
    }
}

static void add_inserted(struct make *m, const struct hr_cedar_stage *stage)
{
    bool cache = stage->kind == HR_CEDAR_CACHE;
    struct hr_cedar_entry *entry =
        add(m->physical, cache ? m->cache_id : m->prefetch_id,
            cache ? "ObjectDiskCachePipe" : "PrefetcherPipe", HR_CEDAR_INPROCESS);

    entry->has_context = true;
    m->physical->chain[m->physical->chain_count++] = entry->id;
}

static void
fill_logical(const struct hr_cedar_pipeline *pipeline, struct hr_cedar_section *logical)
{
    for (size_t i = 0; i < pipeline->stats.pipe_count; i++) {
        struct hr_cedar_entry *entry = &logical->entries[logical->entry_count++];

        *entry = *pipeline->entries[i];
        entry->variant = HR_CEDAR_NONE;
        entry->has_context = false;
        entry->fused_count = 0;
        logical->chain[logical->chain_count++] = entry->id;
    }
}

enum hr_err hr__cedar_plan_make(const struct hr_cedar_pipeline *pipeline,
                                const struct hr_cedar_result *result,
                                struct hr_cedar_plan *ret_plan, struct hr_error *reterr)
{
    struct hr_cedar_plan plan = {.logical = {.drivers = HR_CEDAR_UNSET},
                                 .physical = {.drivers = result->drivers}};
    struct make m = {.pipeline = pipeline, .physical = &plan.physical};

    plan.logical.entries =
        hr__calloc(pipeline->stats.pipe_count, sizeof *plan.logical.entries);
    plan.physical.entries = hr__calloc(pipeline->stats.pipe_count + result->stage_count,
                                       sizeof *plan.physical.entries);
    if (plan.logical.entries == NULL || plan.physical.entries == NULL) {
        hr__cedar_plan_finish(&plan);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    fill_logical(pipeline, &plan.logical);
    for (size_t i = 0; i < pipeline->stats.pipe_count; i++)
        if (pipeline->entries[i]->id >= m.next_id)
            m.next_id = pipeline->entries[i]->id + 1;
    /* cedar inserts a cache first, then the prefetcher, then fused pipes. */
    m.cache_id = m.prefetch_id = m.next_id;
    for (size_t i = 0; i < result->stage_count; i++)
        if (result->stages[i].kind == HR_CEDAR_CACHE)
            m.prefetch_id = m.cache_id + 1;
    m.next_id = m.prefetch_id + 1;
    for (size_t i = 0; i < result->stage_count; i++)
        if (result->stages[i].kind == HR_CEDAR_PIPES)
            add_pipes(&m, &result->stages[i]);
        else
            add_inserted(&m, &result->stages[i]);
    *ret_plan = plan;
    return HR_OK;
}
