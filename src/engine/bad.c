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

/* The node is named; the graph file is not, since it is not what is wrong. */
void hr__run_blame(struct hr_runner *runner, uint32_t node)
{
    struct hr_error *error = &runner->error;
    bool has_file = error->file[0] != '\0';

    if (error->node[0] == '\0')
        hr__graph_blame(runner->engine->graph, node, error);
    if (!has_file) {
        error->file[0] = '\0';
        error->line = error->column = 0;
    }
    runner->meters[node].errors++;
}

/* Where the record lives goes into the error's parts, and into its words unless they name
 * it. */
static void
locate(struct hr_runner *runner, const struct hr_stage *stage, struct hr_bad *bad)
{
    const struct hr_program *p = &stage->program;
    struct hr_error *error = &bad->error;
    const struct hr_graph_node *n;
    size_t length = strlen(error->message);

    if (stage->number > 0 || p->path_count == 0)
        return;
    n = &runner->engine->graph->nodes[p->paths[0].source];
    error->record = (int64_t)bad->index + 1;
    if (error->file[0] == '\0' && n->op->locate != NULL)
        (void)n->op->locate(n->params, n->state, bad->index, error->file,
                            sizeof error->file, &bad->offset);
    if (error->file[0] != '\0' && strstr(error->message, error->file) == NULL)
        snprintf(error->message + length, sizeof error->message - length, " (in %s)",
                 error->file);
    else if (error->file[0] == '\0')
        snprintf(error->message + length, sizeof error->message - length,
                 " (record %llu)", (unsigned long long)bad->index);
}

void hr__run_note_bad(struct hr_runner *runner, struct hr_stage *stage,
                      struct hr_block *block, uint32_t at, const struct hr_record_id *id,
                      char *detail, bool fatal)
{
    struct hr_bad *bad = hr__calloc(1, sizeof *bad), **end = &block->bad[at];

    if (bad == NULL) {
        hr__free(detail);
        memset(&runner->error, 0, sizeof runner->error);
        return;
    }
    bad->error = runner->error;
    bad->index = id->index;
    bad->detail = detail;
    bad->fatal = fatal;
    memset(&runner->error, 0, sizeof runner->error);
    locate(runner, stage, bad);
    while (*end != NULL)
        end = &(*end)->next;
    *end = bad;
}

bool hr__run_may_substitute(const struct hr_stage *stage, const struct hr_bad *last,
                            uint64_t attempt)
{
    const struct hr_engine *engine = stage->engine;

    return engine->options.on_error == HR_ON_ERROR_SUBSTITUTE && stage->number == 0 &&
           last != NULL && !last->fatal && !hr__error_is_fatal(last->error.code) &&
           attempt < engine->errors_max && attempt + 1 < stage->program.paths[0].n &&
           !atomic_load_explicit(&engine->stop, memory_order_relaxed);
}
