/*
 * opt/cedar_join.c - names, hints and statistics to a pipeline that hr__cedar_optimize()
 * reads, and its result to a plan of cedar.
 */
#include <string.h>

#include "core/alloc.h"
#include "core/str.h"
#include "opt/cedar_form.h"

#define HERE (1U << HR_CEDAR_INPROCESS)
#define THREADS (1U << HR_CEDAR_MULTITHREADED)
#define WORKERS (1U << HR_CEDAR_MULTIPROCESS | 1U << HR_CEDAR_SMP)
#define RAY (1U << HR_CEDAR_RAY)
#define TF (1U << HR_CEDAR_TF | 1U << HR_CEDAR_TF_RAY)

/* What cedar's classes of pipes can do, by the beginning of their names; all others are
 * mappers. */
static const struct class
{
    const char *name;
    uint32_t variants;
    bool batches, tf;
} classes[] = {
    {"BatcherPipe",       HERE,                           true,  false},
    {"NoopPipe",          HERE | THREADS | WORKERS | RAY, false, false},
    {"ImageReaderPipe",   HERE | THREADS,                 false, false},
    {"WebReaderPipe",     HERE,                           false, false},
    {"FileOpenerPipe",    HERE,                           false, false},
    {"LineReaderPipe",    HERE,                           false, false},
    {"LocalFSListerPipe", HERE | 1U << HR_CEDAR_RAY_DS,   false, false},
    {"TFLocalLinePipe",   1U << HR_CEDAR_TF,              false, true },
};

/* Pipes that cedar's optimizer inserts. */
static const char *const inserted[] = {"PrefetcherPipe", "ObjectDiskCachePipe",
                                       "FusedPipe", "NoopOptimizerPipe"};

static bool begins(const char *text, const char *part)
{
    return strncmp(text, part, strlen(part)) == 0;
}

bool hr__cedar_is_inserted(const char *name)
{
    for (size_t i = 0; i < sizeof inserted / sizeof inserted[0]; i++)
        if (begins(name, inserted[i]))
            return true;
    return false;
}

static const struct class *find_class(const char *name)
{
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (begins(name, classes[i].name))
            return &classes[i];
    return NULL;
}

struct join {
    const struct hr_cedar_measures *measures;
    const char *stats_name;
    struct hr_form form; /* of the plan */
    const struct hr_cedar_section *section;
    struct hr_cedar_pipeline *pipeline;
    size_t count;
};

/* ---- the written order ---- */

static enum hr_err add(struct join *j, const struct hr_cedar_entry *entry)
{
    if (hr__cedar_is_inserted(entry->name))
        return HR_OK;
    if (j->count == HR_CEDAR_PIPES_MAX)
        return HR_FORM_FAIL(&j->form, HR_ERR_LIMIT, entry->at, "more than %d pipes",
                            HR_CEDAR_PIPES_MAX);
    if (hr__cedar_measure(j->measures, entry->id) == NULL)
        return HR_FORM_FAIL(&j->form, HR_ERR_STATE, entry->at,
                            "pipe %lld (%.60s) is not in the statistics %.200s",
                            (long long)entry->id, entry->name, j->stats_name);
    j->pipeline->entries[j->count++] = entry;
    return HR_OK;
}

/* cedar numbers pipes from the output back to the source. */
static enum hr_err add_by_id(struct join *j)
{
    int64_t below = (int64_t)HR_CEDAR_ID_MAX + 1;

    for (;;) {
        const struct hr_cedar_entry *next = NULL;

        for (size_t i = 0; i < j->section->entry_count; i++) {
            const struct hr_cedar_entry *entry = &j->section->entries[i];

            if (entry->id < below && (next == NULL || entry->id > next->id))
                next = entry;
        }
        if (next == NULL)
            return HR_OK;
        below = next->id;
        HR_TRY(add(j, next));
    }
}

static enum hr_err order(struct join *j, const struct hr_cedar_plan *plan)
{
    const struct hr_cedar_section *section = j->section;

    if (section == &plan->logical && section->chain_count > 0)
        for (size_t i = 0; i < section->chain_count; i++)
            HR_TRY(add(j, hr__cedar_entry(section, section->chain[i])));
    else
        HR_TRY(add_by_id(j));
    for (size_t i = 0; i < j->measures->pipe_count; i++) {
        int64_t id = j->measures->pipes[i].id;
        size_t k = 0;

        while (k < j->count && j->pipeline->entries[k]->id != id)
            k++;
        if (k == j->count)
            return hr__fail_in(j->form.error, HR_ERR_STATE, j->form.name, 0, 0,
                               "the statistics %.200s have pipe %lld, which is missing "
                               "here",
                               j->stats_name, (long long)id);
    }
    return HR_OK;
}

/* ---- hints ---- */

static bool
hint(const struct hr_cedar_entry *entry, enum hr_cedar_hint which, bool otherwise)
{
    return entry->hints[which] >= 0 ? entry->hints[which] != 0 : otherwise;
}

static void fill(struct join *j, size_t i)
{
    const struct hr_cedar_entry *entry = j->pipeline->entries[i];
    const struct hr_cedar_measure *measure = hr__cedar_measure(j->measures, entry->id);
    const struct class *class = find_class(entry->name);
    struct hr_cedar_pipe *pipe = &j->pipeline->pipes[i];
    bool maps = i > 0 && class == NULL;

    *pipe = (struct hr_cedar_pipe){
        .name = entry->name,
        .latency_ns = measure->latency_ns,
        .bytes_in = measure->bytes_in,
        .bytes_out = measure->bytes_out,
        .batches = hint(entry, HR_CEDAR_BATCH, class != NULL && class->batches),
        .random = hint(entry, HR_CEDAR_IS_RANDOM, false),
        .py_function = hint(entry, HR_CEDAR_PY_FUNC, false),
        .tf = hint(entry, HR_CEDAR_TF_OP,
                   (class != NULL && class->tf) || measure->rates[HR_CEDAR_TF_RAY] > 0 ||
                       entry->hints[HR_CEDAR_PY_FUNC] > 0),
    };
    memcpy(pipe->rates, measure->rates, sizeof pipe->rates);
    maps = maps && !pipe->batches;
    pipe->fixed = i == 0 || hint(entry, HR_CEDAR_FIX, pipe->batches);
    pipe->fusable = hint(entry, HR_CEDAR_FUSABLE, maps);
    pipe->kept = !hint(entry, HR_CEDAR_OFFLOAD,
                       strstr(entry->name, "MapperPipe_ToTensor") == NULL &&
                           !begins(entry->name, "ToTensor"));
    pipe->variants = HERE;
    if (class != NULL)
        pipe->variants = class->variants;
    else if (maps)
        pipe->variants = HERE | THREADS | WORKERS | (pipe->tf ? TF : RAY);
    if (entry->variants != 0)
        pipe->variants = entry->variants;
}

/* Whether the pipe has this tag: cedar's default one is its name and id. */
static bool has_tag(const struct hr_cedar_entry *entry, const char *tag)
{
    size_t length = strlen(entry->name);
    int64_t id;

    if (entry->tag != NULL)
        return strcmp(entry->tag, tag) == 0;
    return begins(tag, entry->name) && tag[length] == '_' &&
           hr__cedar_id(tag + length + 1, &id) && id == entry->id;
}

static enum hr_err
find_pipe(const struct join *j, const struct hr_doc *item, size_t *ret_at)
{
    const char *tags[HR_CEDAR_PIPES_MAX], *near = NULL;
    size_t found = 0, tag_count = 0;

    for (size_t i = 0; i < j->count; i++) {
        const struct hr_cedar_entry *entry = j->pipeline->entries[i];

        if (item->kind == HR_DOC_INT ? item->as.integer == entry->id
                                     : has_tag(entry, item->as.string.text)) {
            *ret_at = i;
            found++;
        }
        if (entry->tag != NULL)
            tags[tag_count++] = entry->tag;
    }
    if (found == 1)
        return HR_OK;
    if (item->kind == HR_DOC_INT)
        return HR_FORM_FAIL(&j->form, HR_ERR_FORMAT, item,
                            "\"depends_on\": there is no pipe %lld",
                            (long long)item->as.integer);
    if (found == 0)
        near = hr__nearest(item->as.string.text, tags, tag_count);
    return HR_FORM_FAIL(&j->form, HR_ERR_FORMAT, item,
                        "\"depends_on\": %s pipe has the tag \"%.63s\"%s%s%s",
                        found == 0 ? "no" : "more than one", item->as.string.text,
                        near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
                        near != NULL ? "\"?" : "");
}

static enum hr_err depend(const struct join *j, size_t i)
{
    const struct hr_doc *list = j->pipeline->entries[i]->depends_on;

    for (size_t k = 0; list != NULL && k < list->as.list.count; k++) {
        size_t at = 0;

        HR_TRY(find_pipe(j, list->as.list.items[k], &at));
        if (at >= i)
            return HR_FORM_FAIL(&j->form, HR_ERR_FORMAT, list->as.list.items[k],
                                "\"depends_on\": pipe %lld (%.60s) is not before pipe "
                                "%lld",
                                (long long)j->pipeline->entries[at]->id,
                                j->pipeline->entries[at]->name,
                                (long long)j->pipeline->entries[i]->id);
        j->pipeline->pipes[i].depends_on |= (uint64_t)1 << at;
    }
    return HR_OK;
}

enum hr_err
hr__cedar_join(const struct hr_cedar_measures *measures, const char *stats_name,
               const struct hr_cedar_plan *plan, const char *plan_name,
               struct hr_cedar_pipeline *ret_pipeline, struct hr_error *reterr)
{
    struct join j = {
        .measures = measures,
        .stats_name = stats_name,
        .form = {plan_name, reterr},
        .section = plan->logical.entry_count > 0 ? &plan->logical : &plan->physical,
        .pipeline = ret_pipeline,
    };

    HR_TRY(order(&j, plan));
    for (size_t i = 0; i < j.count; i++) {
        fill(&j, i);
        HR_TRY(depend(&j, i));
    }
    ret_pipeline->stats = (struct hr_cedar_stats){
        .pipes = ret_pipeline->pipes,
        .pipe_count = j.count,
        .rate = measures->rate,
        .tf_rate = measures->tf_rate,
        .disk_read = measures->disk_read,
    };
    return HR_OK;
}
