/*
 * engine/sequencer.c - the nodes at a stage's end that see records in order.
 *
 * A record goes from sequencer to sequencer until one takes it. Sequencers with pending
 * outputs are drained first, the last one first, which keeps outputs in order. All of
 * this stops whenever there is no room.
 *
 * The place after an output is found from the last sequencer backwards: a sequencer whose
 * state is cheap to save now needs the place of its next input; any other has a base, a
 * place and state in the past, and counts outputs since.
 */
#include "engine/run.h"
#include "engine/sequence.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "graph/graph.h"

/* ---- life ---- */

/* Whether all results are in columns and the first sequencer takes many at once. Not with
 * a limit on records, which is checked record by record. */
static bool takes_rows(const struct hr_stage *stage)
{
    const struct hr_program *p = &stage->program;

    if (stage->sequencer_count == 0 || stage->sequencers[0].op->add_rows == NULL ||
        p->expand.op != NULL || stage->engine->options.records_max > 0)
        return false;
    for (size_t f = 0; f < p->out_count; f++)
        if (p->out[f].bytes < 0)
            return false;
    return true;
}

enum hr_err hr__sequencers_init(struct hr_stage *stage, struct hr_error *reterr)
{
    const struct hr_plan_stage *plan = stage->program.plan;

    stage->sequencers = hr__calloc(plan->sequence_count + 1, sizeof *stage->sequencers);
    if (stage->sequencers == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    for (size_t k = 0; k < plan->sequence_count; k++) {
        struct hr_sequencer *s = &stage->sequencers[stage->sequencer_count++];

        s->number = plan->sequence[k];
        s->node = &stage->engine->graph->nodes[s->number];
        s->op = &s->node->op->sequence;
        s->fields = s->node->schema.count;
        assert(s->op->begin != NULL && s->op->add != NULL && s->op->end != NULL);
        assert(s->op->number == NULL || (s->op->next == NULL && s->op->save == NULL));
        s->row = hr__calloc(s->fields + 1, sizeof *s->row);
        if (s->row == NULL)
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    if (takes_rows(stage)) {
        stage->columns = hr__calloc(stage->program.out_count + 1, sizeof *stage->columns);
        if (stage->columns == NULL)
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    return HR_OK;
}

static void drop_base(struct hr_sequencer *s)
{
    struct hr_place marked = {.mark = s->mark};

    hr__place_clear(&marked);
    hr__place_clear(&s->base);
    hr__free(s->base_state);
    s->mark = NULL;
    s->base_state = NULL;
    s->out = 0;
}

void hr__sequencers_finish(struct hr_stage *stage)
{
    for (size_t k = 0; k < stage->sequencer_count; k++) {
        struct hr_sequencer *s = &stage->sequencers[k];

        drop_base(s);
        if (s->state != NULL)
            s->op->end(s->state);
        if (s->row != NULL)
            hr__row_clear(s->row, s->fields);
        hr__free(s->row);
    }
    hr__free(stage->columns);
    hr__free(stage->sequencers);
    stage->columns = NULL;
    stage->sequencers = NULL;
    stage->sequencer_count = 0;
}

bool hr__sequence_fail(struct hr_stage *stage, size_t k, enum hr_err code,
                       struct hr_error *error)
{
    error->code = code;
    if (error->message[0] == '\0')
        hr__fail(error, code, "%s", hr_err_text(code));
    hr__graph_blame(stage->engine->graph, stage->sequencers[k].number, error);
    stage->failure = *error;
    return false;
}

/* The same for a record that the sequencer refuses, which is named. */
static bool refuse_record(struct hr_stage *stage, size_t k, enum hr_err code,
                          const struct hr_record_id *id, struct hr_error *error)
{
    const struct hr_engine *engine = stage->engine;
    struct hr_record_id at = *id;
    uint32_t source = hr__path_source(&engine->stages[0].program, 0, &at.index);

    (void)hr__sequence_fail(stage, k, code, error);
    if (hr__error_is_fatal(code))
        return false;
    stage->failure.file[0] = '\0'; /* the graph file is not at fault */
    stage->failure.line = stage->failure.column = 0;
    hr__run_locate(engine->graph, source, &at, &stage->failure);
    return false;
}

bool hr__sequence_settle(struct hr_stage *stage)
{
    if (stage->failure.code == HR_OK)
        return true;
    if (!hr__stage_is_final(stage) && !stage->next_quiet &&
        !hr__error_is_fatal(stage->failure.code)) {
        stage->waits = true;
        return false;
    }
    if (stage->ended_epoch != stage->sequence_epoch) {
        hr__stage_fail(stage, stage->failure.code, &stage->failure, NULL);
        return false;
    }
    for (size_t k = 0; k < stage->sequencer_count; k++) { /* nobody needs their outputs */
        stage->sequencers[k].draining = false;
        stage->sequencers[k].ended = stage->sequencers[k].flushed = true;
    }
    stage->failure.code = HR_OK;
    return true;
}

static bool no_memory(struct hr_stage *stage)
{
    struct hr_error error = {0};

    hr__stage_fail(stage, HR_ERR_MEMORY, &error, NULL);
    return false;
}

static enum hr_err
begin(struct hr_stage *stage, size_t k, uint64_t epoch, struct hr_error *error)
{
    struct hr_sequencer *s = &stage->sequencers[k];
    const struct hr_engine *engine = stage->engine;
    struct hr_sequence_begin b = {
        .params = s->node->params,
        .state = s->node->state,
        .input = &engine->graph->nodes[s->node->inputs[0]].schema,
        .output = &s->node->schema,
        .pool = engine->pool,
        .seed = engine->options.seed,
        .draw_id = s->node->draw_id,
        .epoch = (uint32_t)epoch,
        .world = 1,
        .error = error,
    };

    assert(!s->draining);
    if (s->number == engine->divider) {
        b.rank = (uint64_t)engine->options.rank;
        b.world = (uint64_t)engine->options.world;
        b.even = engine->options.even;
    }
    s->flushed = s->ended = false;
    s->skip = 0;
    drop_base(s);
    return s->op->begin(&b, &s->state);
}

/* ---- places ---- */

/* Whether the sequencer can save its state without replaying inputs; if so, appends the
 * state. */
static bool can_save(const struct hr_sequencer *s, struct hr_str *out)
{
    if (s->skip > 0 || (s->draining && s->op->replays))
        return false;
    return hr__sequence_save(s->op, s->state, out);
}

/* Whether its state may be long. Then places count from a base, which is renewed after
 * OUTPUTS_MAX outputs. */
#define OUTPUTS_MAX 16
static bool saves_rarely(const struct hr_sequencer *s)
{
    return s->op->save != NULL && !s->op->replays;
}

static bool set_base(struct hr_stage *stage, size_t k)
{
    struct hr_sequencer *s = &stage->sequencers[k];
    struct hr_place input = {0};
    struct hr_str text;
    bool saved;

    hr__str_init(&text);
    saved =
        can_save(s, &text) || (s->out >= OUTPUTS_MAX && hr__rerun_save(stage, k, &text));
    if (!saved || !hr__sequence_place(stage, k, &input)) {
        hr__str_finish(&text);
        return !saved; /* it still holds records since its base */
    }
    drop_base(s);
    hr__place_move(&s->base, &input);
    s->base_state = hr__str_take(&text);
    return s->base_state != NULL || no_memory(stage);
}

/* The place of sequencer `k` as its base and the number of outputs since. */
static bool place_by_base(struct hr_stage *stage, size_t k, struct hr_place *ret_place)
{
    struct hr_sequencer *s = &stage->sequencers[k];
    struct hr_place input = {0}, marked;
    char *state;

    assert(s->base_state != NULL);
    if (s->out + s->skip == 0 && s->base_state[0] == '\0') {
        hr__place_copy(ret_place, &s->base);
        return true;
    }
    if (s->mark == NULL) {
        hr__place_copy(&input, &s->base);
        state = hr__strdup(s->base_state);
        s->mark = hr__mark_create(&stage->marks, s->number, hr__mark_order(stage, k),
                                  &input, state);
        if (s->mark == NULL)
            return no_memory(stage);
    }
    marked = (struct hr_place){
        .mark = s->mark, .at = s->out + s->skip, .uneven = stage->uneven};
    hr__place_copy(ret_place, &marked);
    return true;
}

/* The same for one whose state is a number. */
static bool place_by_number(struct hr_stage *stage, size_t k, struct hr_place *ret_place)
{
    struct hr_sequencer *s = &stage->sequencers[k];
    uint64_t number = s->op->number(s->state);

    if (!hr__sequence_place(stage, k, ret_place))
        return false;
    if (number == 0)
        return true;
    ret_place->mark = hr__mark_number(&stage->marks, s->number, hr__mark_order(stage, k),
                                      ret_place, number);
    if (ret_place->mark == NULL)
        return no_memory(stage);
    ret_place->uneven = stage->uneven;
    return true;
}

/* The place after the children of the record that are consumed. */
static bool place_of_input(struct hr_stage *stage, struct hr_place *ret_place)
{
    uint32_t expand = stage->program.plan->expand;
    struct hr_place input = {0}, marked;

    if (stage->child == stage->children) {
        hr__place_copy(ret_place, &stage->after);
        return true;
    }
    if (stage->child == 0) {
        hr__place_copy(ret_place, &stage->before);
        return true;
    }
    if (expand == stage->engine->child_node && stage->after.mark == NULL) {
        assert(stage->after.at > 0 && stage->after.child == 0);
        *ret_place = (struct hr_place){.at = stage->after.at - 1, .child = stage->child};
        return true;
    }
    if (stage->parent == NULL) {
        hr__place_copy(&input, &stage->before);
        stage->parent = hr__mark_create(&stage->marks, expand, hr__expand_order(stage),
                                        &input, hr__strdup(""));
        if (stage->parent == NULL)
            return no_memory(stage);
    }
    marked = (struct hr_place){.mark = stage->parent, .at = stage->child};
    hr__place_copy(ret_place, &marked);
    return true;
}

bool hr__sequence_place(struct hr_stage *stage, size_t k, struct hr_place *ret_place)
{
    struct hr_sequencer *s;
    struct hr_place input = {0};
    struct hr_str text;
    struct hr_mark *mark;

    if (k == 0) {
        if (!place_of_input(stage, ret_place))
            return false;
        ret_place->uneven = ret_place->uneven || stage->uneven;
        return true;
    }
    s = &stage->sequencers[k - 1];
    if (s->op->number != NULL && s->skip == 0)
        return place_by_number(stage, k - 1, ret_place);
    hr__str_init(&text);
    if (saves_rarely(s) || !can_save(s, &text)) {
        hr__str_finish(&text);
        return place_by_base(stage, k - 1, ret_place);
    }
    if (!hr__sequence_place(stage, k - 1, &input)) {
        hr__str_finish(&text);
        return false;
    }
    if (text.length == 0 && hr__str_ok(&text)) {
        hr__str_finish(&text);
        hr__place_move(ret_place, &input);
        return true;
    }
    mark = hr__mark_create(&stage->marks, s->number, hr__mark_order(stage, k - 1), &input,
                           hr__str_take(&text));
    if (mark == NULL)
        return no_memory(stage);
    *ret_place = (struct hr_place){.mark = mark, .uneven = stage->uneven};
    return true;
}

/* ---- records ---- */

bool hr__sequence_begin(struct hr_stage *stage, uint64_t epoch)
{
    if (stage->sequence_epoch == epoch + 1)
        return true;
    hr__place_clear(&stage->before);
    hr__place_clear(&stage->after);
    stage->children = stage->child = stage->skip_children = 0;
    stage->uneven = false;
    for (size_t k = 0; k < stage->sequencer_count; k++) {
        struct hr_error error = {0};
        enum hr_err code = begin(stage, k, epoch, &error);

        if (code != HR_OK)
            return hr__sequence_fail(stage, k, code, &error);
        if (!set_base(stage, k))
            return false;
    }
    stage->sequence_epoch = epoch + 1;
    return true;
}

static bool has_ended(const struct hr_sequencer *s)
{
    return s->op->ended != NULL && s->op->ended(s->state);
}

/* The sequencer needs no more records of the epoch. */
static void end_epoch(struct hr_stage *stage, size_t k, uint64_t epoch)
{
    struct hr_engine *engine = stage->engine;

    stage->sequencers[k].ended = true;
    pthread_mutex_lock(&engine->lock);
    if (engine->stages[0].cut < epoch + 1)
        engine->stages[0].cut = epoch + 1;
    for (size_t i = 0; i <= stage->number; i++)
        if (engine->stages[i].ended_epoch < epoch + 1)
            engine->stages[i].ended_epoch = epoch + 1;
    pthread_mutex_unlock(&engine->lock);
}

/* The same during a run, after the sequencer was given its last record. */
static bool end_epoch_here(struct hr_stage *stage, size_t k)
{
    uint64_t epoch = stage->sequence_epoch - 1;
    struct hr_place place = {0};

    end_epoch(stage, k, epoch);
    if (!hr__sequence_place(stage, k + 1, &place))
        return false;
    hr__ledger_settle(&stage->engine->ledger, stage->number, epoch, &place);
    hr__place_clear(&place);
    return true;
}

enum hr_err hr__sequencer_restore(struct hr_stage *stage, size_t k, uint64_t epoch,
                                  const struct hr_place *input, const char *state,
                                  uint64_t skip, struct hr_error *reterr)
{
    struct hr_sequencer *s = &stage->sequencers[k];
    enum hr_err code;

    code = begin(stage, k, epoch, reterr);
    if (code == HR_OK && state[0] != '\0' && s->op->held == NULL)
        code = s->op->restore == NULL
                   ? hr__fail(reterr, HR_ERR_FORMAT, "it has no state to restore")
                   : s->op->restore(s->state, state, reterr);
    if (code != HR_OK) {
        hr__graph_blame(stage->engine->graph, s->number, reterr);
        hr__error_prefix(reterr, "the iterator state is damaged");
        return code;
    }
    if (state[0] != '\0' && has_ended(s))
        end_epoch(stage, k, epoch);
    s->skip = skip;
    hr__place_copy(&s->base, input);
    s->base_state = hr__strdup(state);
    return s->base_state != NULL ? HR_OK
                                 : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

/* Counts an output of the sequencer. Returns false if it must be skipped. */
static bool counts(struct hr_sequencer *s)
{
    s->out++;
    if (s->skip == 0) {
        s->given++;
        return true;
    }
    s->skip--;
    return false;
}

/* Whether the run's limit on records ends the batch that is being gathered. */
static bool limit_reached(const struct hr_stage *stage, const struct hr_sequencer *s)
{
    const struct hr_engine *engine = stage->engine;
    uint64_t limit = (uint64_t)engine->options.records_max;

    return limit > 0 && hr__stage_is_final(stage) && s->op->held_records != NULL &&
           s == &stage->sequencers[stage->sequencer_count - 1] &&
           engine->sequenced_records + s->op->held_records(s->state) >= limit;
}

bool hr__sequence_add(struct hr_stage *stage, size_t k, struct hr_sequence_record *record)
{
    for (; k < stage->sequencer_count; k++) {
        struct hr_sequencer *s = &stage->sequencers[k];
        enum hr_sequence_verdict verdict;
        struct hr_error error;
        enum hr_err code;

        hr__error_init(&error);
        assert(!s->draining);
        if (s->ended)
            return true;
        s->received++;
        code = s->op->add(s->state, record, &verdict, &error);
        if (code != HR_OK)
            return refuse_record(stage, k, code, &record->id, &error);
        if (verdict == HR_SEQUENCE_HELD && limit_reached(stage, s)) {
            code = s->op->flush(s->state, HR_FLUSH_LIMIT, &error);
            verdict = HR_SEQUENCE_READY;
        }
        if (code != HR_OK)
            return hr__sequence_fail(stage, k, code, &error);
        if (has_ended(s) && !end_epoch_here(stage, k))
            return false;
        switch (verdict) {
        case HR_SEQUENCE_PASS:
            if (!counts(s))
                return true;
            if (saves_rarely(s) && s->out >= OUTPUTS_MAX && !set_base(stage, k))
                return false;
            break;
        case HR_SEQUENCE_READY:
            s->draining = true;
            return true;
        case HR_SEQUENCE_DROP:
        case HR_SEQUENCE_HELD:
            return true;
        }
    }
    return hr__emit(stage, record, stage->sequence_epoch - 1);
}

bool hr__sequence_add_rows(struct hr_stage *stage, const struct hr_record_id *ids,
                           uint32_t count, uint32_t *ret_taken)
{
    struct hr_sequencer *s = &stage->sequencers[0];
    enum hr_sequence_verdict verdict = HR_SEQUENCE_HELD;
    struct hr_error error = {0};
    enum hr_err code;

    assert(stage->columns != NULL && !s->draining && !s->ended && count > 0);
    code = s->op->add_rows(s->state, ids, stage->columns, count, ret_taken, &verdict,
                           &error);
    if (code != HR_OK)
        return hr__sequence_fail(stage, 0, code, &error);
    assert(*ret_taken > 0 && *ret_taken <= count);
    assert(verdict == HR_SEQUENCE_HELD || verdict == HR_SEQUENCE_READY);
    s->received += *ret_taken;
    s->draining = verdict == HR_SEQUENCE_READY;
    return true;
}

/* Passes one output of a sequencer to those after it. */
static bool give(struct hr_stage *stage, size_t k)
{
    struct hr_sequencer *s = &stage->sequencers[k];
    struct hr_sequence_record record = {.values = s->row, .records = 1};
    struct hr_error error;
    bool any = false, more = false, ok = true;
    unsigned was = hr__meter_begin(stage->sequencer, s->number);
    enum hr_err code;

    hr__error_init(&error);
    code = s->op->next(s->state, &record, &any, &more, &error);
    hr__meter_end(stage->sequencer, was);
    if (code != HR_OK) {
        hr__row_clear(s->row, s->fields);
        return hr__sequence_fail(stage, k, code, &error);
    }
    assert(any || !more);
    s->draining = more;
    if (!any)
        return true;
    ok = counts(s);
    if (!more && s->skip == 0 && (s->op->replays || s->out >= OUTPUTS_MAX) &&
        !set_base(stage, k)) {
        hr__row_clear(s->row, s->fields);
        return false;
    }
    if (ok)
        ok = hr__sequence_add(stage, k + 1, &record);
    else
        ok = true; /* left out */
    hr__row_clear(s->row, s->fields);
    return ok;
}

bool hr__sequence_drain(struct hr_stage *stage)
{
    size_t k = stage->sequencer_count;

    while (k > 0) {
        if (!stage->sequencers[k - 1].draining) {
            k--;
            continue;
        }
        if (!hr__stage_has_room(stage) || !give(stage, k - 1))
            return false;
        k = stage->sequencer_count; /* a later one may have outputs now */
    }
    return true;
}

bool hr__sequence_flush(struct hr_stage *stage)
{
    for (size_t k = 0; k < stage->sequencer_count; k++) {
        struct hr_sequencer *s = &stage->sequencers[k];
        struct hr_error error = {0};
        enum hr_err code = HR_OK;

        if (!hr__sequence_drain(stage))
            return false;
        if (s->flushed)
            continue;
        if (s->op->flush != NULL)
            code = s->op->flush(s->state, HR_FLUSH_EPOCH, &error);
        if (code != HR_OK)
            return hr__sequence_fail(stage, k, code, &error);
        s->flushed = true;
        s->draining = s->op->next != NULL;
    }
    return hr__sequence_drain(stage);
}

void hr__sequencers_count(struct hr_stage *stage)
{
    for (size_t k = 0; k < stage->sequencer_count; k++) {
        struct hr_sequencer *s = &stage->sequencers[k];
        struct hr_node_meter *meter = hr__meter_node(stage->sequencer, s->number);

        meter->records_in += s->received;
        meter->records_out += s->given;
        s->received = s->given = 0;
    }
}
