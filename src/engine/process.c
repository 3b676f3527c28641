/*
 * engine/process.c - steps in a worker process: all records of a chunk in one request.
 *
 * A runner starts a peer per segment on first use; each of its two chunks has a channel
 * to it. Results are in memory that both sides map, valid until the channel's next
 * request; by then they have been copied to their final place.
 */
#include "engine/run.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/error.h"

/* ---- the host, one thread at a time ---- */

static enum hr_err
host_start(void *user, int fd, int64_t *ret_id, struct hr_error *reterr)
{
    struct hr_engine *engine = user;
    const struct hr_code_host *host = &engine->graph->codes->host;
    enum hr_err code;

    pthread_mutex_lock(&engine->host_lock);
    if (atomic_load(&engine->cancelled)) /* closing relies on this: see finish_idle */
        code = hr__fail(reterr, HR_ERR_CANCELLED, "cancelled");
    else
        code = host->start(host->user, fd, ret_id, reterr);
    pthread_mutex_unlock(&engine->host_lock);
    return code;
}

static void host_kill(void *user, int64_t id)
{
    struct hr_engine *engine = user;
    const struct hr_code_host *host = &engine->graph->codes->host;

    pthread_mutex_lock(&engine->host_lock);
    host->kill(host->user, id);
    pthread_mutex_unlock(&engine->host_lock);
}

static void host_ended(void *user, int64_t id, char *text, size_t room)
{
    struct hr_engine *engine = user;
    const struct hr_code_host *host = &engine->graph->codes->host;

    pthread_mutex_lock(&engine->host_lock);
    if (host->ended != NULL)
        host->ended(host->user, id, text, room);
    pthread_mutex_unlock(&engine->host_lock);
}

enum hr_err hr__process_host(struct hr_engine *engine, const struct hr_program *program,
                             struct hr_error *reterr)
{
    for (size_t i = 0; i < program->segment_count; i++) {
        if (program->segments[i].kind != HR_SEGMENT_PROCESS)
            continue;
        if (engine->graph->codes->host.start == NULL) {
            hr__fail(
                reterr, HR_ERR_STATE,
                "it runs in worker processes, but the graph has no host to start them "
                "(hr_graph_code_host); or use variant: threads");
            hr__graph_blame(engine->graph,
                            hr__program_step(program, program->segments[i].from)->node,
                            reterr);
            return HR_ERR_STATE;
        }
    }
    engine->host = (struct hr_code_host){
        .user = engine, .start = host_start, .kill = host_kill, .ended = host_ended};
    return HR_OK;
}

/* ---- life ---- */

enum hr_err hr__process_init(struct hr_chunk *chunk, const struct hr_program *p)
{
    size_t inputs = 0;
    bool any = false;

    for (size_t i = 0; i < p->segment_count; i++) {
        const struct hr_segment *segment = &p->segments[i];

        if (segment->kind != HR_SEGMENT_PROCESS)
            continue;
        any = true;
        if (segment->program->input_count > inputs)
            inputs = segment->program->input_count;
    }
    if (chunk->channel == 0)
        chunk->procs = hr__calloc(p->segment_count, sizeof(void *));
    if (chunk->procs == NULL)
        return HR_ERR_MEMORY;
    if (!any)
        return HR_OK;
    chunk->records = hr__calloc(chunk->room, sizeof *chunk->records);
    chunk->shipped = hr__calloc(chunk->room * (inputs + 1), sizeof *chunk->shipped);
    return chunk->records != NULL && chunk->shipped != NULL ? HR_OK : HR_ERR_MEMORY;
}

void hr__process_finish(struct hr_chunk *chunk, const struct hr_program *p)
{
    for (size_t i = 0;
         chunk->channel == 0 && chunk->procs != NULL && i < p->segment_count; i++)
        hr__proc_close(chunk->procs[i]);
    if (chunk->channel == 0)
        hr__free(chunk->procs);
    hr__free(chunk->records);
    hr__free(chunk->shipped);
}

static size_t shared_bytes(const struct hr_proc *proc)
{
    struct hr_proc_stats stats = {0};

    if (proc != NULL)
        hr__proc_stats(proc, &stats);
    return stats.shared_bytes;
}

void hr__process_release(struct hr_runner *runner)
{
    struct hr_engine *engine = runner->engine;

    for (size_t i = 0; i < engine->stage_count; i++) {
        struct hr_chunk *chunk = &runner->chunks[2 * i];

        for (size_t k = 0; k < engine->stages[i].program.segment_count; k++) {
            struct hr_proc *proc = chunk->procs[k];

            if (proc == NULL)
                continue;
            engine->shared_bytes -= shared_bytes(proc);
            engine->processes--;
            runner->processes--;
            hr__proc_close(proc);
            chunk->procs[k] = NULL;
        }
    }
    assert(runner->processes == 0);
}

size_t hr__process_count(const struct hr_program *program)
{
    size_t count = 0;

    for (size_t i = 0; i < program->segment_count; i++)
        count += program->segments[i].kind == HR_SEGMENT_PROCESS;
    return count;
}

/* The worker process of the runner, which waits for it, is at this record. */
static void show_record(void *user, uint32_t node, const struct hr_record_id *id)
{
    struct hr_runner *runner = user;

    if (atomic_load(&runner->code_node) != node + 1 ||
        atomic_load(&runner->code_record) != id->index)
        hr__runner_in_code(runner, node, id->index);
}

/* Starts the peer if there is none. Its memory limit is left to the user. */
static enum hr_err
open_peer(struct hr_pass *pass, const struct hr_segment *segment, struct hr_proc **proc)
{
    struct hr_engine *engine = pass->runner->engine;
    uint64_t begin = hr__ticks();
    enum hr_err code;

    if (*proc != NULL)
        return HR_OK;
    hr__runner_in_code(pass->runner,
                       hr__program_step(&pass->stage->program, segment->from)->node,
                       UINT64_MAX);
    code = hr__proc_open(&engine->host, segment->program, 0, &engine->cancelled, proc,
                         &pass->runner->error);
    hr__runner_out_of_code(pass->runner);
    if (code == HR_OK) {
        hr__proc_watch(*proc, show_record, pass->runner);
        pass->runner->processes++;
        engine->processes++;
    }
    pass->lost_ticks += hr__ticks() - begin;
    return code;
}

/* The peer cannot be started or does not answer: no record is at fault. User code that
 * returns "cancelled" ends the run too, with an error that the consumer gets. */
static void
give_up(struct hr_pass *pass, const struct hr_segment *segment, enum hr_err code)
{
    struct hr_runner *runner = pass->runner;
    const struct hr_step *step = hr__program_step(&pass->stage->program, segment->from);

    if (code == HR_ERR_CANCELLED && atomic_load(&runner->engine->cancelled)) {
        atomic_store(&runner->engine->stop, true);
        memset(&runner->error, 0, sizeof runner->error);
    } else {
        runner->error.code = code;
        hr__pass_fail(pass, pass->chunk->live[0], step->node, NULL, true);
    }
    hr__pass_give_up(pass, step->node);
}

static void load(struct hr_pass *pass, const struct hr_segment *segment)
{
    struct hr_chunk *chunk = pass->chunk;
    const struct hr_step *step = hr__program_step(&pass->stage->program, segment->from);
    size_t inputs = segment->program->input_count;

    for (uint32_t i = 0; i < chunk->live_count; i++) {
        struct hr_value *slots = hr__pass_slots(pass, chunk->live[i]);
        struct hr_value *to = &chunk->shipped[i * inputs];
        struct hr_proc_record *record = &chunk->records[i];

        for (size_t f = 0; f < inputs; f++) {
            to[f] = slots[segment->inputs[f]];
            pass->bytes += to[f].bytes;
        }
        record->id = &hr__pass_ids(pass, chunk->live[i])[step->path];
        record->inputs = to;
        record->code = HR_OK;
        record->drop = false;
        record->failed_step = 0;
        record->failed_node = step->node;
        record->detail = NULL;
        record->results = NULL;
        record->child_count = 0;
    }
}

static enum hr_err
keep_children(struct hr_pass *pass, const struct hr_proc_record *record, uint32_t row)
{
    struct hr_children *children = &pass->block->children[pass->at + row];
    size_t fields = pass->stage->program.child_count;
    size_t count = (size_t)record->child_count * fields;

    if (record->child_count == 0)
        return HR_OK;
    children->values = hr__calloc(count + 1, sizeof *children->values);
    if (children->values == NULL)
        return hr__fail(&pass->runner->error, HR_ERR_MEMORY,
                        "no memory for %llu children",
                        (unsigned long long)record->child_count);
    children->count = record->child_count;
    hr__meter_node(pass->runner, pass->stage->program.expand.node)->records_out +=
        record->child_count;
    for (size_t i = 0; i < count; i++) {
        enum hr_err code =
            hr__store_keep(pass->runner, &record->results[i], &children->values[i]);

        if (code != HR_OK) {
            hr__children_clear(children, fields);
            return code;
        }
        children->values[i].layout =
            (uint8_t)pass->stage->program.children[i % fields].field->layout;
    }
    return HR_OK;
}

/* The node of the step that ended the record. */
static uint32_t ending_node(const struct hr_pass *pass, const struct hr_segment *segment,
                            const struct hr_proc_record *record)
{
    assert(segment->from + record->failed_step < segment->to);
    return hr__program_step(&pass->stage->program, segment->from + record->failed_step)
        ->node;
}

static void unload_good(struct hr_pass *pass, const struct hr_segment *segment,
                        const struct hr_proc_record *record, uint32_t row)
{
    const struct hr_program *p = &pass->stage->program;
    struct hr_value *slots = hr__pass_slots(pass, row);

    if (record->drop) {
        hr__pass_ended(pass, row, ending_node(pass, segment, record), HR_RECORD_DROPPED);
        return;
    }
    if (segment->to > p->step_count) {
        enum hr_err code = keep_children(pass, record, row);

        if (code != HR_OK) {
            pass->runner->error.code = code;
            hr__pass_fail(pass, row, p->expand.node, NULL, false);
        }
        return;
    }
    for (size_t i = segment->from; i < segment->to; i++)
        for (size_t k = 0; k < p->steps[i].clear_count; k++)
            hr__value_clear(&slots[p->steps[i].clear[k]]);
    for (size_t f = 0; f < segment->program->result_count; f++) {
        struct hr_value *value = &slots[segment->results[f]];

        hr__value_clear(value);
        *value = record->results[f];
        pass->bytes += value->bytes;
    }
}

static void unload(struct hr_pass *pass, const struct hr_segment *segment, uint32_t i)
{
    struct hr_runner *runner = pass->runner;
    struct hr_proc_record *record = &pass->chunk->records[i];
    uint32_t row = pass->chunk->live[i];

    if (record->code == HR_OK) {
        unload_good(pass, segment, record, row);
        hr__free(record->detail);
        return;
    }
    if (record->code == HR_ERR_END) {
        hr__pass_ended(pass, row, ending_node(pass, segment, record), HR_RECORD_END);
        hr__free(record->detail);
        return;
    }
    runner->error = record->error;
    runner->error.code = record->code;
    runner->error.node[0] = '\0';
    hr__pass_fail(pass, row, record->failed_node, record->detail, false);
}

/* Charges what the request took in the worker process: wall time per node, of which
 * `cpu_ns` was on a core. Some belongs to nodes before the segment, whose deferred values
 * are made there. */
static void
add_times(struct hr_pass *pass, const struct hr_proc_time *times, uint64_t cpu_ns)
{
    size_t nodes = pass->runner->engine->graph->count;
    double wall_ns = 0;

    for (size_t i = 0; i < nodes; i++)
        wall_ns += (double)times[i].wall_ns;
    for (uint32_t i = 0; i < nodes; i++) {
        struct hr_node_meter *meter;
        double part;

        if (times[i].wall_ns == 0)
            continue;
        meter = hr__meter_node(pass->runner, i);
        part = (double)times[i].wall_ns / wall_ns;
        meter->worker.cpu_ns += part * (double)cpu_ns;
        if (wall_ns > (double)cpu_ns)
            meter->worker.wait_ns += part * (wall_ns - (double)cpu_ns);
        hr__fit_merge(&meter->cost, &times[i].cost);
    }
}

static void trace(struct hr_pass *pass, const struct hr_segment *segment, uint64_t begin,
                  uint64_t end)
{
    const struct hr_program *p = &pass->stage->program;
    uint32_t node = segment->to - segment->from == 1
                        ? hr__program_step(p, segment->from)->node
                        : HR_NO_NODE;
    const struct hr_chunk *chunk = pass->chunk;
    uint64_t each = (end - begin) / chunk->live_count;

    (void)hr__span_begin(pass->runner);
    for (uint32_t i = 0; i < chunk->live_count; i++)
        hr__span_record(pass->runner, pass, hr__pass_ids(pass, chunk->live[i]), node,
                        begin + i * each, begin + (i + 1) * each);
}

bool hr__process_begin(struct hr_pass *pass, const struct hr_segment *segment,
                       struct hr_proc **proc)
{
    struct hr_chunk *chunk = pass->chunk;
    struct hr_runner *runner = pass->runner;
    uint32_t node = hr__program_step(&pass->stage->program, segment->from)->node;
    size_t shared = shared_bytes(*proc);
    uint64_t bytes;
    enum hr_err code;
    unsigned was;

    hr__pass_prepare(pass, segment->from, segment->made, segment->made_count);
    if (chunk->live_count == 0)
        return false;
    assert(segment->kind == HR_SEGMENT_PROCESS && chunk->live_count <= chunk->room);
    was = hr__meter_begin(runner, node);
    code = open_peer(pass, segment, proc);
    if (code == HR_OK) {
        bytes = pass->bytes;
        load(pass, segment);
        hr__meter_node(runner, node)->bytes_in += pass->bytes - bytes;
        chunk->begin_ticks = hr__ticks();
        code = hr__proc_begin(hr__proc_channel(*proc, chunk->channel), chunk->records,
                              chunk->live_count, &runner->error);
        runner->engine->shared_bytes += shared_bytes(*proc) - shared;
    }
    if (code != HR_OK)
        give_up(pass, segment, code);
    hr__meter_end(runner, was);
    return code == HR_OK;
}

void hr__process_end(struct hr_pass *pass, const struct hr_segment *segment,
                     struct hr_proc *proc)
{
    struct hr_chunk *chunk = pass->chunk;
    struct hr_runner *runner = pass->runner;
    struct hr_engine *engine = runner->engine;
    uint32_t node = hr__program_step(&pass->stage->program, segment->to - 1u)->node;
    unsigned was = hr__meter_begin(runner, node);
    struct hr_proc_stats before, after;
    uint64_t bytes = pass->bytes;
    enum hr_err code;

    assert(proc != NULL && segment->kind == HR_SEGMENT_PROCESS);
    hr__proc_stats(proc, &before);
    code = hr__proc_end(hr__proc_channel(proc, chunk->channel), &runner->error);
    hr__runner_out_of_code(runner);
    hr__proc_stats(proc, &after);
    engine->shared_bytes += after.shared_bytes - before.shared_bytes;
    engine->worker_ns += after.cpu_ns - before.cpu_ns;
    if (code == HR_OK) {
        if (engine->options.trace)
            trace(pass, segment, chunk->begin_ticks, hr__ticks());
        add_times(pass, hr__proc_times(hr__proc_channel(proc, chunk->channel)),
                  after.cpu_ns - before.cpu_ns);
        for (uint32_t i = 0; i < chunk->live_count; i++)
            unload(pass, segment, i);
        hr__meter_node(runner, node)->bytes_out += pass->bytes - bytes;
    } else {
        give_up(pass, segment, code);
    }
    hr__meter_end(runner, was);
}
