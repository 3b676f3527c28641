/*
 * engine/outputs.c - see outputs.h.
 */
#include "engine/outputs.h"

#include <assert.h>
#include <string.h>

#include "core/doc.h"
#include "core/error.h"
#include "engine/engine.h"

/* ---- which graphs ---- */

static enum hr_err refuse(const struct hr_graph *graph, uint32_t node, const char *why,
                          struct hr_error *reterr)
{
    hr__fail(reterr, HR_ERR_UNSUPPORTED,
             "%s, so no worker can begin in the middle; run the graph without the "
             "service",
             why);
    hr__graph_blame(graph, node, reterr);
    return HR_ERR_UNSUPPORTED;
}

/* The size of the batches that are made of records by number; 1 without a batch op. */
static enum hr_err
find_step(const struct hr_graph *graph, uint64_t *ret_step, struct hr_error *reterr)
{
    struct hr_sequence_runs runs = {0};
    uint32_t at = graph->output;
    const struct hr_graph_node *n = &graph->nodes[at];

    for (; !n->by_number; n = &graph->nodes[at = n->inputs[0]]) {
        bool gathers = n->op->kind == HR_OP_SEQUENCE && n->op->sequence.runs != NULL;

        if (gathers && runs.size > 0)
            return refuse(graph, at, "it makes batches of batches", reterr);
        if (gathers)
            n->op->sequence.runs(n->params, &runs);
        else if (n->op->kind != HR_OP_MAP || hr__op_drops(n->op, n->params))
            return refuse(graph, at, "what it outputs depends on all records before it",
                          reterr);
    }
    if (hr__node_drops(n) || n->schema.records < 0)
        return refuse(graph, at, "how many records it has shows only at the end", reterr);
    *ret_step = runs.size > 0 ? (uint64_t)runs.size : 1;
    return HR_OK;
}

static enum hr_err check_options(const struct hr_iter_options *o, struct hr_error *reterr)
{
    const char *wrong = o->on_error == HR_ON_ERROR_SKIP
                            ? "skipping bad records moves all batches after them"
                        : o->even == HR_EVEN_PAD ? "padded shares"
                        : o->trace               ? "traces"
                        : o->demand != 0         ? "a demanded rate"
                        : o->plan != NULL        ? "a plan"
                        : o->ledger != NULL      ? "a list of bad records"
                                                 : NULL;

    if (wrong != NULL)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "a service cannot do this yet: %s; leave the option out, or run "
                        "the graph without the service",
                        wrong);
    return HR_OK;
}

/* ---- sizes ---- */

/* Batches of the first `records` records of a run. */
static uint64_t batches_of(const struct hr_outputs *out, uint64_t records)
{
    uint64_t epochs = records / out->records, rest = records % out->records;

    if (__builtin_mul_overflow(epochs, out->batches, &epochs))
        return HR_OUTPUTS_MAX;
    return epochs + (rest + out->step - 1) / out->step;
}

static uint64_t end_of(const struct hr_outputs *out)
{
    const struct hr_iter_options *o = &out->options;
    uint64_t end = HR_OUTPUTS_MAX, limit;

    if (out->batches == 0)
        return 0;
    if (o->epochs > 0 && __builtin_mul_overflow((uint64_t)o->epochs, out->batches, &end))
        end = HR_OUTPUTS_MAX;
    limit = o->records_max > 0 ? batches_of(out, (uint64_t)o->records_max) : end;
    end = limit < end ? limit : end;
    return end < HR_OUTPUTS_MAX ? end : HR_OUTPUTS_MAX;
}

enum hr_err
hr__outputs_init(struct hr_outputs *outputs, const struct hr_graph *graph,
                 const struct hr_iter_options *options, struct hr_error *reterr)
{
    struct hr_epoch_size size;

    *outputs = (struct hr_outputs){.graph = graph, .options = *options};
    HR_TRY(check_options(options, reterr));
    HR_TRY(hr__engine_epoch_size(graph, options, &size, reterr));
    HR_TRY(hr__engine_set_world(graph, &outputs->options, reterr));
    HR_TRY(find_step(graph, &outputs->step, reterr));
    if (size.records < 0 || size.batches < 0)
        return refuse(graph, graph->output, "its epochs have no known size", reterr);
    outputs->records = (uint64_t)size.records;
    outputs->batches = (uint64_t)size.batches;
    outputs->end = end_of(outputs);
    return HR_OK;
}

uint64_t
hr__outputs_epoch(const struct hr_outputs *outputs, uint64_t number, uint64_t *ret_within)
{
    assert(outputs->batches > 0);
    *ret_within = number % outputs->batches;
    return (uint64_t)outputs->options.epoch_first + number / outputs->batches;
}

uint64_t hr__outputs_before(const struct hr_outputs *outputs, uint64_t number)
{
    uint64_t epochs, rest, records;

    if (outputs->batches == 0)
        return 0;
    epochs = number / outputs->batches;
    rest = number % outputs->batches * outputs->step;
    rest = rest < outputs->records ? rest : outputs->records;
    if (__builtin_mul_overflow(epochs, outputs->records, &records))
        return HR_STATE_NUMBER_MAX;
    records += rest;
    if (outputs->options.records_max > 0 &&
        records > (uint64_t)outputs->options.records_max)
        records = (uint64_t)outputs->options.records_max;
    return records;
}

uint64_t hr__outputs_records(const struct hr_outputs *outputs, uint64_t number)
{
    return hr__outputs_before(outputs, number + 1) - hr__outputs_before(outputs, number);
}

/* ---- states ---- */

static const char *fingerprint_of(const struct hr_graph *graph, char *text)
{
    if (graph->states_of[0] != '\0')
        return graph->states_of;
    return hr_graph_fingerprint(graph, text) == HR_OK ? text : "";
}

/* Of a run of `graph`, the outputs' own or their packs. `even`: another world may resume
 * from it. */
static enum hr_err
print(const struct hr_outputs *outputs, const struct hr_graph *graph, uint64_t number,
      bool even, struct hr_str *out, struct hr_error *reterr)
{
    char fingerprint[HR_FINGERPRINT_BYTES];
    struct hr_saved s = {.fingerprint = fingerprint_of(graph, fingerprint),
                         .seed = outputs->options.seed,
                         .epoch = (uint64_t)outputs->options.epoch_first,
                         .records = hr__outputs_before(outputs, number),
                         .moves = true,
                         .even = even};

    hr__state_share(outputs->graph, &outputs->options, &s.rank, &s.world);
    if (outputs->batches > 0) {
        bool at_end = number == outputs->end && number > 0; /* of the last epoch */

        s.epoch = hr__outputs_epoch(outputs, number - at_end, &s.position);
        s.position = s.records - (s.epoch - (uint64_t)outputs->options.epoch_first) *
                                     outputs->records;
    }
    s.end_position = hr__state_step_end(s.world, outputs->step, s.position);
    hr__saved_print_head(&s, out);
    hr__state_print_classes(graph, out);
    hr__str_add(out, "}");
    return hr__str_ok(out) ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

enum hr_err hr__outputs_state(const struct hr_outputs *outputs, uint64_t number,
                              struct hr_str *out, struct hr_error *reterr)
{
    const struct hr_iter_options *o = &outputs->options;

    return print(outputs, outputs->graph, number, o->records_max == 0 || o->world == 1,
                 out, reterr);
}

static enum hr_err locate(const struct hr_outputs *outputs, const struct hr_saved *s,
                          uint64_t *ret_number, struct hr_error *reterr)
{
    uint64_t first = (uint64_t)outputs->options.epoch_first, rank, world, at, number;
    char fingerprint[HR_FINGERPRINT_BYTES];

    hr__state_share(outputs->graph, &outputs->options, &rank, &world);
    if (strcmp(s->fingerprint, fingerprint_of(outputs->graph, fingerprint)) != 0)
        HR_TRY(hr__state_check_classes(outputs->graph, s->classes, reterr));
    if (strcmp(s->fingerprint, fingerprint_of(outputs->graph, fingerprint)) != 0 ||
        s->seed != outputs->options.seed)
        return hr__fail(reterr, HR_ERR_STATE,
                        "the iterator state belongs to another graph, data set or seed");
    if (outputs->options.records_max > 0 &&
        s->records >= (uint64_t)outputs->options.records_max) {
        *ret_number = outputs->end;
        return HR_OK;
    }
    at = world > 0 ? s->base / world + s->position : 0;
    if (s->world != world || s->rank != rank || s->node_count > 0 || s->child > 0 ||
        !hr__done_is_empty(&s->done) || s->base % world != 0 || s->epoch < first ||
        (at % outputs->step != 0 && at < outputs->records))
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "a service cannot resume from this iterator state: it was saved "
                        "by another rank or world, for another first epoch, or between "
                        "batches; resume without the service");
    at = (at + outputs->step - 1) / outputs->step;
    at = at < outputs->batches ? at : outputs->batches;
    if (__builtin_mul_overflow(s->epoch - first, outputs->batches, &number) ||
        number > outputs->end || number + at > outputs->end)
        number = outputs->end - at;
    *ret_number = number + at;
    return HR_OK;
}

enum hr_err hr__outputs_resume(const struct hr_outputs *outputs, const char *state,
                               uint64_t *ret_number, struct hr_error *reterr)
{
    struct hr_saved saved = {0};
    struct hr_doc *doc;
    enum hr_err code = hr__doc_parse(state, strlen(state), "the state", &doc, reterr);

    if (code != HR_OK) {
        hr__error_prefix(reterr, "the iterator state is damaged");
        return code;
    }
    code = hr__saved_parse(doc, &saved, reterr);
    if (code == HR_OK)
        code = locate(outputs, &saved, ret_number, reterr);
    hr__done_finish(&saved.done);
    hr__doc_destroy(doc);
    return code;
}

/* ---- packs ---- */

uint64_t
hr__outputs_pack_size(const struct hr_outputs *outputs, size_t bytes, uint64_t most)
{
    const struct hr_graph *graph = outputs->graph;
    const struct hr_schema *schema = &graph->nodes[graph->output].schema;
    uint64_t size;
    size_t record = 0;

    if (schema->batch_rank > 0 || outputs->bare || schema->count == 0)
        return 1;
    for (uint32_t i = 0; i < graph->count; i++)
        if (graph->nodes[i].op->learner.keeps != NULL)
            return 1;
    for (size_t f = 0; f < schema->count; f++) {
        int64_t field = hr__field_bytes(&schema->fields[f]);

        if (field <= 0 || schema->fields[f].ndim == HR_MAX_DIMS ||
            (size_t)field > bytes - record)
            return 1;
        record += (size_t)field;
    }
    size = bytes / record;
    return size < most ? size : most;
}

enum hr_err hr__outputs_pack(const struct hr_outputs *outputs, uint64_t size,
                             struct hr_graph **ret_packed, struct hr_error *reterr)
{
    struct hr_iter_options options = outputs->options;
    struct hr_doc *given = hr__doc_new(HR_DOC_MAP);
    struct hr_epoch_size epoch;
    struct hr_graph *packed;
    enum hr_err code;

    assert(outputs->step == 1 && !outputs->bare && size > 1);
    if (given == NULL ||
        hr__doc_set(given, "size", hr__doc_int((int64_t)size)) != HR_OK) {
        hr__doc_destroy(given);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    HR_TRY(hr__graph_insert(outputs->graph, outputs->graph->output, "batch.stack", given,
                            &packed, reterr));
    code = hr__graph_freeze(packed, reterr);
    if (code == HR_OK)
        code = hr__engine_epoch_size(packed, &options, &epoch, reterr);
    if (code == HR_OK && epoch.records != (int64_t)outputs->records)
        code = hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "stacked, the graph's epochs have other records");
    if (code == HR_OK)
        *ret_packed = packed;
    else
        hr__graph_unref(packed);
    return code;
}

/* ---- making some ---- */

enum hr_err
hr__outputs_open(const struct hr_outputs *outputs, struct hr_graph *packed, uint64_t from,
                 uint64_t until, struct hr_pool *pool, int nice,
                 struct hr_engine **ret_engine, struct hr_error *reterr)
{
    struct hr_graph *graph =
        packed != NULL ? packed : (struct hr_graph *)(uintptr_t)outputs->graph;
    struct hr_iter_options options = outputs->options;
    const struct hr_engine_place place = {
        .pool = pool, .bare = outputs->bare, .nice = nice};
    struct hr_str state;
    enum hr_err code;
    uint64_t within;

    hr__str_init(&state);
    code = print(outputs, graph, from, options.world == 1, &state, reterr);
    if (code == HR_OK) {
        options.epoch_first = (int64_t)hr__outputs_epoch(outputs, from, &within);
        options.epochs = 1;
        options.records_max = (int64_t)hr__outputs_before(outputs, until);
        options.state = hr__str_text(&state);
        code = hr__engine_open_in(graph, &options, &place, ret_engine, reterr);
    }
    hr__str_finish(&state);
    return code;
}
