/*
 * engine/span.c - the spans of a trace: a runner writes them, any thread reads those that
 * are published.
 */
#include <stdatomic.h>

#include "core/clock.h"
#include "engine/run.h"

static void add_span(struct hr_runner *runner, const struct hr_span *span)
{
    if (runner->span_next < runner->span_room)
        runner->spans[runner->span_next++] = *span;
}

static void publish_spans(struct hr_runner *runner)
{
    atomic_store_explicit(&runner->span_count, runner->span_next, memory_order_release);
}

void hr__span_part(struct hr_thread *thread, uint32_t node, uint64_t begin, uint64_t end)
{
    struct hr_runner *runner = (struct hr_runner *)thread; /* its first member */
    size_t first = atomic_load_explicit(&runner->span_count, memory_order_relaxed);
    struct hr_span *last =
        runner->span_next > first ? &runner->spans[runner->span_next - 1] : NULL;

    if (last != NULL && last->node == node)
        last->end = end;
    else
        add_span(runner,
                 &(struct hr_span){
                     .begin = begin, .end = end, .node = node, .kind = HR_SPAN_NODE});
}

uint64_t hr__span_begin(struct hr_runner *runner)
{
    runner->span_next = atomic_load_explicit(&runner->span_count, memory_order_relaxed);
    return hr__ticks();
}

/* A direct stage makes a batch of each block, unless bad records leave holes. */
static int64_t batch_of(const struct hr_pass *pass)
{
    const struct hr_engine *engine = pass->runner->engine;
    bool whole = pass->stage->direct && engine->options.on_error != HR_ON_ERROR_SKIP;

    return whole ? (int64_t)pass->block->number : -1;
}

void hr__span_record(struct hr_runner *runner, const struct hr_pass *pass,
                     const struct hr_record_id *id, uint32_t node, uint64_t begin,
                     uint64_t end)
{
    size_t first = atomic_load_explicit(&runner->span_count, memory_order_relaxed);
    struct hr_span span = {.begin = begin,
                           .end = end,
                           .node = node,
                           .kind = node == HR_NO_NODE ? HR_SPAN_RECORD : HR_SPAN_NODE};

    if (span.kind == HR_SPAN_NODE)
        runner->span_next = first;
    add_span(runner, &span);
    for (size_t i = first; i < runner->span_next; i++) {
        runner->spans[i].id = *id;
        runner->spans[i].stage = (uint32_t)pass->stage->number;
        runner->spans[i].batch = batch_of(pass);
    }
    publish_spans(runner);
}

void hr__span_wait(struct hr_runner *runner, uint64_t batch, uint64_t begin)
{
    (void)hr__span_begin(runner);
    add_span(runner, &(struct hr_span){.begin = begin,
                                       .end = hr__ticks(),
                                       .batch = (int64_t)batch,
                                       .kind = HR_SPAN_WAIT});
    publish_spans(runner);
}
