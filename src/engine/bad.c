/*
 * engine/bad.c - bad records: which node and which record is at fault, and whether
 * another record may stand in.
 */
#include "engine/run.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

/* Names the node, but not its line: the graph file is not at fault. */
void hr__run_blame(struct hr_runner *runner, uint32_t node)
{
    struct hr_error *error = &runner->error;
    bool has_file = error->file[0] != '\0';

    if (runner->thread.failed_node > 0)
        node = runner->thread.failed_node - 1;
    runner->thread.failed_node = 0;
    if (error->node[0] == '\0')
        hr__graph_blame(runner->engine->graph, node, error);
    if (!has_file) {
        error->file[0] = '\0';
        error->line = error->column = 0;
    }
    hr__meter_node(runner, node)->errors++;
}

/* The path of the failed step's records. Records of later stages keep the identity from
 * the first source. */
static size_t blamed_path(const struct hr_runner *runner, const struct hr_stage *stage,
                          const struct hr_error *error)
{
    const struct hr_program *p = &stage->program;
    const struct hr_graph_node *nodes = runner->engine->graph->nodes;

    if (stage->number > 0)
        return 0;
    for (size_t i = 0; i < p->step_count; i++)
        if (strcmp(nodes[p->steps[i].node].name, error->node) == 0)
            return hr__program_path(p, p->steps[i].path);
    return 0;
}

/* Whether the node's record is a batch or comes from one; then its identity is that of
 * the batch's first record. */
static bool is_of_batch(const struct hr_graph *graph, const char *name)
{
    const struct hr_graph_node *n = NULL;

    for (size_t i = 0; i < graph->count && n == NULL; i++)
        if (strcmp(graph->nodes[i].name, name) == 0)
            n = &graph->nodes[i];
    while (n != NULL && n->input_count > 0) {
        n = &graph->nodes[n->inputs[0]];
        if (n->schema.batch_rank > 0)
            return true;
    }
    return false;
}

/* Appends the record, or its file, to the message. */
static void append_place(const struct hr_graph *graph, struct hr_error *error)
{
    const char *of = is_of_batch(graph, error->node) ? "the batch that begins with " : "";
    size_t length = strlen(error->message), room = sizeof error->message - length;
    char *end = error->message + length, child[128] = "";

    for (size_t i = 0, at = 0; i < error->depth; i++)
        at += (size_t)snprintf(child + at, sizeof child - at, "%s%lu",
                               i == 0 ? ", child " : ".",
                               (unsigned long)error->children[i]);
    if (error->file[0] == '\0')
        snprintf(end, room, " (%srecord %lld%s)", of, (long long)error->record - 1,
                 child);
    else if (strstr(error->message, error->file) == NULL)
        snprintf(end, room, " (in %s%s%s)", of, error->file, child);
}

void hr__run_locate(const struct hr_graph *graph, uint32_t source,
                    const struct hr_record_id *id, struct hr_error *error)
{
    const struct hr_graph_node *n = &graph->nodes[source];
    char unused[sizeof error->file], *file = error->file;
    uint64_t offset = 0;

    assert(n->op->kind == HR_OP_SOURCE);
    if (error->file[0] != '\0') /* the op has set it */
        file = unused;
    if (n->op->source.locate != NULL)
        (void)n->op->source.locate(n->params, n->state, id->index, file, sizeof unused,
                                   &offset);
    error->record = (int64_t)id->index + 1;
    error->epoch = id->epoch;
    error->position = (int64_t)id->position;
    error->offset = (int64_t)offset;
    error->depth = id->depth;
    memcpy(error->children, id->child, sizeof error->children);
    append_place(graph, error);
}

/* Appends an attempt with runner->error, which it clears. NULL without memory. */
static struct hr_bad *
add_bad(struct hr_runner *runner, struct hr_block *block, uint32_t at)
{
    struct hr_bad *bad = hr__calloc(1, sizeof *bad), **end = &block->bad[at];

    if (bad != NULL)
        bad->error = runner->error;
    memset(&runner->error, 0, sizeof runner->error);
    while (*end != NULL)
        end = &(*end)->next;
    *end = bad;
    return bad;
}

void hr__run_note_bad(struct hr_runner *runner, struct hr_stage *stage,
                      struct hr_block *block, uint32_t at, const struct hr_record_id *ids,
                      char *detail, bool fatal)
{
    const struct hr_program *p = &runner->engine->stages[0].program;
    size_t path = blamed_path(runner, stage, &runner->error);
    struct hr_bad *bad = add_bad(runner, block, at);
    uint32_t source;

    if (bad == NULL) {
        hr__free(detail);
        return;
    }
    bad->id = ids[path];
    bad->detail = detail;
    bad->fatal = fatal;
    source = hr__path_source(p, path, &bad->id.index);
    hr__run_locate(runner->engine->graph, source, &bad->id, &bad->error);
}

void hr__run_note_outside(struct hr_runner *runner, struct hr_block *block, uint32_t at)
{
    struct hr_bad *bad = add_bad(runner, block, at);

    runner->thread.failed_node = 0;
    if (bad != NULL)
        bad->fatal = bad->outside = true;
}

bool hr__run_may_substitute(const struct hr_stage *stage, const struct hr_bad *last,
                            uint64_t attempt)
{
    const struct hr_engine *engine = stage->engine;

    return engine->options.on_error == HR_ON_ERROR_SUBSTITUTE && stage->number == 0 &&
           last != NULL && !last->fatal && !hr__error_is_fatal(last->error.code) &&
           attempt < engine->errors_max &&
           attempt + 1 < hr__path_global_count(&stage->program.paths[0]) &&
           !atomic_load_explicit(&engine->stop, memory_order_relaxed);
}
