/*
 * engine/state.c - prints an iterator's place as JSON and resumes from it. The format is
 * docs/formats/state.md.
 *
 * The same rank of the same world resumes exactly at the place, under any plan of the
 * graph: sequencers save what they hold, or how many outputs to skip.
 *
 * Other ranks and worlds begin at a global position. If every position is a record, all
 * ranks of the old world have come equally far after the same number of steps ("even"),
 * so the state of any one suffices. Otherwise each rank is elsewhere ("end"), and the
 * states of all ranks must be merged: merge.c. A merged state has world 0. After a
 * window, or if records are counted after a filter, no source position tells what is
 * done: such a state is valid only for its rank and world ("moves" is false).
 */
#include "engine/engine.h"
#include "engine/sequence.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/doc.h"
#include "core/error.h"

/* ---- what a place means for other ranks ---- */

static const struct hr_graph_node *sharding_node(const struct hr_graph *graph)
{
    for (size_t i = 0; i < graph->count; i++)
        if (graph->nodes[i].op->traits & HR_TRAIT_SHARDS)
            return &graph->nodes[i];
    return NULL;
}

void hr__state_share(const struct hr_graph *graph, const struct hr_iter_options *options,
                     uint64_t *ret_rank, uint64_t *ret_world)
{
    const struct hr_graph_node *node;

    *ret_rank = (uint64_t)options->rank;
    *ret_world = (uint64_t)options->world;
    if (options->world > 0)
        return;
    node = sharding_node(graph);
    assert(node != NULL && node->op->order.share != NULL);
    node->op->order.share(node->params, ret_rank, ret_world);
}

static uint64_t rank_of(const struct hr_engine *engine)
{
    uint64_t rank, world;

    hr__state_share(engine->graph, &engine->options, &rank, &world);
    return rank;
}

static uint64_t world_of(const struct hr_engine *engine)
{
    uint64_t rank, world;

    hr__state_share(engine->graph, &engine->options, &rank, &world);
    return world;
}

static bool expands(const struct hr_stage *stage)
{
    return stage->program.plan->expand != HR_NO_NODE;
}

/* Whether a source position tells what is done. */
static bool moves(const struct hr_engine *engine)
{
    for (size_t i = 0; i < engine->stage_count; i++) {
        const struct hr_stage *stage = &engine->stages[i];

        if (expands(stage) && stage->program.plan->expand != engine->child_node)
            return false;
        for (size_t k = 0; k < stage->sequencer_count; k++)
            if (stage->sequencers[k].op->runs == NULL)
                return false;
    }
    return true;
}

/* Whether ranks take the same number of positions per step, bad records aside. */
static bool steps_are_even(const struct hr_engine *engine)
{
    for (size_t i = 0; i < engine->stage_count; i++)
        if (engine->plan.stages[i].filters || expands(&engine->stages[i]))
            return false;
    if (engine->options.records_max > 0 && engine->options.world != 1)
        return false; /* the limit may end any batch early */
    return moves(engine);
}

/* Whether all ranks are at the same place at the same step. If bad records are skipped, a
 * rank cannot know how many the others had. */
static bool is_even(const struct hr_engine *engine)
{
    bool skips = engine->options.on_error == HR_ON_ERROR_SKIP;

    return steps_are_even(engine) && !(skips && world_of(engine) > 1) &&
           !engine->place.uneven &&
           (engine->epoch != engine->base_epoch || hr__done_is_empty(&engine->done));
}

/* Records per step. */
static uint64_t step_size(const struct hr_engine *engine)
{
    uint64_t size = 1;

    for (size_t i = 0; i < engine->stage_count; i++) {
        const struct hr_stage *stage = &engine->stages[i];

        for (size_t k = 0; k < stage->sequencer_count; k++) {
            const struct hr_sequencer *s = &stage->sequencers[k];
            struct hr_sequence_runs runs;

            if (s->op->runs == NULL || size >= HR_STATE_NUMBER_MAX >> 32)
                continue;
            s->op->runs(s->node->params, &runs);
            size *= (uint64_t)runs.size;
        }
    }
    return size;
}

uint64_t hr__state_step_end(uint64_t world, uint64_t step, uint64_t position)
{
    return world > 1 ? (position + step - 1) / step * step : position;
}

/* ---- writing ---- */

static void print_node(const struct hr_graph *graph, const struct hr_place *place,
                       bool first, struct hr_str *out)
{
    const struct hr_mark *mark = place->mark;
    const char *name = graph->nodes[mark->node].name;

    hr__str_add(out, first ? ",\"nodes\":[{\"node\":" : ",{\"node\":");
    hr__str_add_json(out, name, strlen(name));
    if (mark->state == NULL) {
        hr__str_addf(out, ",\"state\":\"%llu\"", (unsigned long long)mark->number);
    } else if (mark->state[0] != '\0') {
        hr__str_add(out, ",\"state\":");
        hr__str_add_json(out, mark->state, strlen(mark->state));
    }
    if (place->at > 0)
        hr__str_addf(out, ",\"skip\":%llu", (unsigned long long)place->at);
    hr__str_add(out, "}");
}

/* Prints the marks that lead to a place, from the source on. */
static void print_nodes(const struct hr_graph *graph, const struct hr_place *place,
                        struct hr_str *out)
{
    const struct hr_place *chain[HR_SAVED_NODES_MAX];
    size_t count = 0;

    for (; place->mark != NULL; place = &place->mark->input) {
        assert(count < HR_SAVED_NODES_MAX);
        chain[count++] = place;
    }
    for (size_t i = count; i-- > 0;)
        print_node(graph, chain[i], i + 1 == count, out);
    if (count > 0)
        hr__str_add(out, "]");
}

void hr__saved_print_head(const struct hr_saved *s, struct hr_str *out)
{
    hr__str_addf(
        out,
        "{\"headrace_state\":%d,\"fingerprint\":\"%s\",\"seed\":%llu,\"epoch\":%llu,"
        "\"base\":%llu,\"position\":%llu,\"child\":%llu,\"world\":%llu,\"rank\":%llu,"
        "\"records\":%llu,\"moves\":%s,\"even\":%s,\"end\":[%llu,%llu]",
        HR_STATE_VERSION, s->fingerprint, (unsigned long long)s->seed,
        (unsigned long long)s->epoch, (unsigned long long)s->base,
        (unsigned long long)s->position, (unsigned long long)s->child,
        (unsigned long long)s->world, (unsigned long long)s->rank,
        (unsigned long long)s->records, s->moves ? "true" : "false",
        s->even ? "true" : "false", (unsigned long long)s->end_position,
        (unsigned long long)s->end_child);
}

enum hr_err hr__state_print(const struct hr_engine *engine, struct hr_str *out)
{
    const struct hr_place *source = hr__place_source(&engine->place);
    bool first = engine->epoch == engine->base_epoch, even = is_even(engine);
    const struct hr_saved saved = {
        .fingerprint = engine->fingerprint,
        .seed = engine->options.seed,
        .epoch = engine->epoch,
        .base = first ? engine->base : 0,
        .position = source->at,
        .child = source->child,
        .world = world_of(engine),
        .rank = rank_of(engine),
        .records = engine->earlier_records + engine->delivered_records,
        .moves = moves(engine),
        .even = even,
        .end_position =
            even ? hr__state_step_end(world_of(engine), step_size(engine), source->at)
                 : source->at,
        .end_child = source->child};

    if (!engine->plan.ordered || engine->one_record)
        return HR_ERR_UNSUPPORTED;
    hr__saved_print_head(&saved, out);
    if (first && !hr__done_is_empty(&engine->done)) {
        hr__str_add(out, ",");
        hr__done_print(&engine->done, out);
    }
    print_nodes(engine->graph, &engine->place, out);
    hr__state_print_classes(engine->graph, out);
    hr__str_add(out, "}");
    return hr__str_ok(out) ? HR_OK : HR_ERR_MEMORY;
}

/* ---- reading ---- */

static enum hr_err get(const struct hr_doc *doc, const char *key, uint64_t *ret_value,
                       struct hr_error *reterr)
{
    const struct hr_doc *value = hr__doc_get(doc, key);

    if (value == NULL || value->kind != HR_DOC_INT || value->as.integer < 0 ||
        (uint64_t)value->as.integer > HR_STATE_NUMBER_MAX)
        return hr__fail(
            reterr, HR_ERR_FORMAT,
            "the iterator state is damaged: \"%s\" is missing or not a number", key);
    *ret_value = (uint64_t)value->as.integer;
    return HR_OK;
}

static enum hr_err get_flag(const struct hr_doc *doc, const char *key, bool *ret_value,
                            struct hr_error *reterr)
{
    const struct hr_doc *value = hr__doc_get(doc, key);

    if (value == NULL || value->kind != HR_DOC_BOOL)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the iterator state is damaged: \"%s\" is missing or neither "
                        "true nor false",
                        key);
    *ret_value = value->as.boolean;
    return HR_OK;
}

static enum hr_err
get_end(const struct hr_doc *doc, uint64_t ret_end[2], struct hr_error *reterr)
{
    const struct hr_doc *list = hr__doc_get(doc, "end");

    if (list == NULL || list->kind != HR_DOC_LIST || list->as.list.count != 2)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the iterator state is damaged: \"end\" is not two numbers");
    for (size_t i = 0; i < 2; i++) {
        const struct hr_doc *item = list->as.list.items[i];

        if (item->kind != HR_DOC_INT || item->as.integer < 0 ||
            (uint64_t)item->as.integer > HR_STATE_NUMBER_MAX)
            return hr__fail(reterr, HR_ERR_FORMAT,
                            "the iterator state is damaged: \"end\" is not two numbers");
        ret_end[i] = (uint64_t)item->as.integer;
    }
    return HR_OK;
}

static enum hr_err
get_nodes(const struct hr_doc *doc, struct hr_saved *saved, struct hr_error *reterr)
{
    const struct hr_doc *list = hr__doc_get(doc, "nodes");

    if (list == NULL)
        return HR_OK;
    if (list->kind != HR_DOC_LIST || list->as.list.count > HR_SAVED_NODES_MAX)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the iterator state is damaged: \"nodes\" is not a list of at "
                        "most %d nodes",
                        HR_SAVED_NODES_MAX);
    for (size_t i = 0; i < list->as.list.count; i++) {
        const struct hr_doc *item = list->as.list.items[i];
        struct hr_saved_node *node = &saved->nodes[saved->node_count++];

        node->node = hr__doc_get_string(item, "node");
        if (node->node == NULL)
            return hr__fail(reterr, HR_ERR_FORMAT,
                            "the iterator state is damaged: item %zu of \"nodes\" names "
                            "no node",
                            i + 1);
        node->state = hr__doc_get_string(item, "state");
        if (node->state == NULL)
            node->state = "";
        if (hr__doc_get(item, "skip") != NULL)
            HR_TRY(get(item, "skip", &node->skip, reterr));
    }
    return HR_OK;
}

enum hr_err hr__saved_parse(const struct hr_doc *doc, struct hr_saved *ret_saved,
                            struct hr_error *reterr)
{
    struct hr_saved s = {0};
    uint64_t version = 0, end[2] = {0};
    const struct hr_doc *done = hr__doc_get(doc, "done"), *seed;

    HR_TRY(get(doc, "headrace_state", &version, reterr));
    if (version != HR_STATE_VERSION)
        return hr__fail(
            reterr, HR_ERR_UNSUPPORTED,
            "the iterator state is of version %llu; this library reads version %d",
            (unsigned long long)version, HR_STATE_VERSION);
    s.fingerprint = hr__doc_get_string(doc, "fingerprint");
    seed = hr__doc_get(doc, "seed");
    if (s.fingerprint == NULL || seed == NULL || seed->kind != HR_DOC_INT ||
        seed->as.integer < 0)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the iterator state is damaged: \"fingerprint\" or \"seed\" is "
                        "missing or out of range");
    s.seed = (uint64_t)seed->as.integer;
    HR_TRY(get(doc, "epoch", &s.epoch, reterr));
    HR_TRY(get(doc, "base", &s.base, reterr));
    HR_TRY(get(doc, "position", &s.position, reterr));
    HR_TRY(get(doc, "child", &s.child, reterr));
    HR_TRY(get(doc, "world", &s.world, reterr));
    HR_TRY(get(doc, "rank", &s.rank, reterr));
    HR_TRY(get(doc, "records", &s.records, reterr));
    HR_TRY(get_flag(doc, "moves", &s.moves, reterr));
    HR_TRY(get_flag(doc, "even", &s.even, reterr));
    HR_TRY(get_end(doc, end, reterr));
    HR_TRY(get_nodes(doc, &s, reterr));
    s.classes = hr__doc_get(doc, "classes");
    s.end_position = end[0];
    s.end_child = end[1];
    if (done != NULL)
        HR_TRY(hr__done_parse(done, hr__doc_get(doc, "parts"), &s.done, reterr));
    *ret_saved = s;
    return HR_OK;
}

/* ---- resuming ---- */

static enum hr_err check_identity(const struct hr_engine *engine,
                                  const struct hr_saved *s, struct hr_error *reterr)
{
    if (strcmp(s->fingerprint, engine->fingerprint) != 0)
        HR_TRY(hr__state_check_classes(engine->graph, s->classes, reterr));
    if (strcmp(s->fingerprint, engine->fingerprint) != 0)
        return hr__fail(
            reterr, HR_ERR_STATE,
            "the iterator state belongs to another graph or data set (fingerprint %s, "
            "here %s)",
            s->fingerprint, engine->fingerprint);
    if (s->seed != engine->options.seed)
        return hr__fail(
            reterr, HR_ERR_STATE, "the iterator state was saved with seed %llu, not %llu",
            (unsigned long long)s->seed, (unsigned long long)engine->options.seed);
    return HR_OK;
}

static enum hr_err refuse_move(const struct hr_engine *engine, const struct hr_saved *s,
                               const char *why, struct hr_error *reterr)
{
    return hr__fail(
        reterr, HR_ERR_STATE,
        "the iterator state was saved by rank %llu of %llu, and this is rank %llu of "
        "%llu; %s",
        (unsigned long long)s->rank, (unsigned long long)s->world,
        (unsigned long long)rank_of(engine), (unsigned long long)world_of(engine), why);
}

/* Another rank or world saved it: begins at a global position instead. */
static enum hr_err
move(const struct hr_engine *engine, struct hr_saved *s, struct hr_error *reterr)
{
    uint64_t end, done;

    if (!moves(engine))
        return refuse_move(
            engine, s,
            "windows of records, batches by length, and after a filter a window shuffle, "
            "take or skip (or batches that are taken apart) tie a state to its rank and "
            "world. Give each rank its own state; a shuffle before the filter leaves the "
            "world free",
            reterr);
    if (!s->even || !steps_are_even(engine))
        return refuse_move(
            engine, s,
            "ranks that filter, expand or skip records reach different places: "
            "give each rank its own state, or merge those of all ranks "
            "(hr_state_merge, in Python hr.merge_states)",
            reterr);
    end = hr__state_step_end(s->world, step_size(engine), s->end_position);
    if (__builtin_mul_overflow(end, s->world, &done) || done > HR_STATE_NUMBER_MAX)
        return hr__fail(reterr, HR_ERR_STATE,
                        "the iterator state's place is beyond the epoch's end");
    s->base += done;
    s->position = s->child = 0;
    s->node_count = 0;
    return HR_OK;
}

/* Whether to resume exactly there. Ranks that may have been given another rank's state
 * all begin at the same place, so that their states can be merged. */
static bool is_own(const struct hr_engine *engine, const struct hr_saved *s)
{
    return s->world == world_of(engine) && s->rank == rank_of(engine) &&
           (s->world == 1 || !s->even || !moves(engine));
}

/* Walks the stages and the saved nodes of a state together. */
struct walk {
    struct hr_engine *engine;
    const struct hr_saved *saved;
    size_t used;           /* saved nodes that were used */
    struct hr_place place; /* after the nodes passed so far */
};

/* The saved state of the node, if the node is the next saved one. */
static const struct hr_saved_node *saved_of(struct walk *w, uint32_t node)
{
    const struct hr_saved_node *next = &w->saved->nodes[w->used];

    if (w->used == w->saved->node_count ||
        strcmp(next->node, w->engine->graph->nodes[node].name) != 0)
        return NULL;
    w->used++;
    return next;
}

static enum hr_err
pass(struct walk *w, struct hr_stage *stage, uint32_t node, uint32_t order,
     const char *state, uint64_t skip, struct hr_error *error)
{
    struct hr_mark *mark =
        hr__mark_create(&stage->marks, node, order, &w->place, hr__strdup(state));

    if (mark == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    w->place = (struct hr_place){.mark = mark, .at = skip, .uneven = !w->saved->even};
    return HR_OK;
}

static enum hr_err
restore_expansion(struct walk *w, struct hr_stage *stage, struct hr_error *reterr)
{
    uint32_t node = stage->program.plan->expand;
    const struct hr_saved_node *saved;

    if (node == HR_NO_NODE)
        return HR_OK;
    if (node == w->engine->child_node) {
        stage->skip_children = w->saved->child;
        w->place.child = w->saved->child;
    }
    saved = saved_of(w, node);
    if (saved == NULL)
        return HR_OK;
    stage->skip_children = saved->skip;
    return pass(w, stage, node, hr__expand_order(stage), "", saved->skip, reterr);
}

static enum hr_err
restore_stage(struct walk *w, struct hr_stage *stage, struct hr_error *reterr)
{
    uint64_t epoch = w->saved->epoch;

    hr__place_copy(&stage->before, &w->place);
    stage->uneven = !w->saved->even;
    HR_TRY(restore_expansion(w, stage, reterr));
    hr__place_copy(&stage->after, &w->place);
    for (size_t k = 0; k < stage->sequencer_count; k++) {
        const struct hr_saved_node *saved = saved_of(w, stage->sequencers[k].number);

        HR_TRY(hr__sequencer_restore(stage, k, epoch, &w->place,
                                     saved != NULL ? saved->state : "",
                                     saved != NULL ? saved->skip : 0, reterr));
        if (saved != NULL && saved->state[0] != '\0' &&
            stage->sequencers[k].op->held != NULL)
            HR_TRY(hr__rerun_restore(w->engine, stage, k, epoch, w->saved->position,
                                     saved->state, reterr));
        if (saved != NULL)
            HR_TRY(pass(w, stage, stage->sequencers[k].number, hr__mark_order(stage, k),
                        saved->state, saved->skip, reterr));
    }
    stage->sequence_epoch = epoch + 1;
    return HR_OK;
}

/* Moves all stages to the place of the state. */
static enum hr_err restore_stages(struct hr_engine *engine, const struct hr_saved *s,
                                  struct hr_error *reterr)
{
    struct walk w = {
        .engine = engine, .saved = s, .place = {.at = s->position, .uneven = !s->even}
    };
    enum hr_err code = HR_OK;

    for (size_t i = 0; code == HR_OK && i < engine->stage_count; i++)
        code = restore_stage(&w, &engine->stages[i], reterr);
    if (code == HR_OK &&
        (w.used < s->node_count || (s->child > 0 && engine->child_node == HR_NO_NODE)))
        code = hr__fail(reterr, HR_ERR_STATE,
                        "the iterator state names node '%s', which the graph does "
                        "not have in that place",
                        w.used < s->node_count ? s->nodes[w.used].node : "");
    if (code == HR_OK)
        hr__place_move(&engine->place, &w.place);
    hr__place_clear(&w.place);
    return code;
}

static enum hr_err
apply(struct hr_engine *engine, struct hr_saved *s, struct hr_error *reterr)
{
    const struct hr_path *path = &engine->stages[0].program.paths[0];
    uint64_t n = hr__path_global_count(path);

    HR_TRY(check_identity(engine, s, reterr));
    if (s->world != 0 && !is_own(engine, s))
        HR_TRY(move(engine, s, reterr));
    if (s->world == 0 &&
        (!moves(engine) || s->node_count > 0 || s->position > 0 || s->child > 0))
        return hr__fail(
            reterr, HR_ERR_FORMAT,
            "the iterator state is damaged: no merged state can be at this place");
    engine->base_epoch = s->epoch;
    engine->base = s->base < n ? s->base : n;
    engine->done = s->done;
    memset(&s->done, 0, sizeof s->done);
    hr__done_cut(&engine->done, engine->base);
    engine->epoch = s->epoch;
    engine->earlier_records = engine->sequenced_records = s->records;
    atomic_store(&engine->finished,
                 engine->options.records_max > 0 &&
                     s->records >= (uint64_t)engine->options.records_max);
    if (s->position > hr__engine_positions(engine, s->epoch))
        return hr__fail(reterr, HR_ERR_STATE,
                        "the iterator state is at position %llu, beyond the epoch's end",
                        (unsigned long long)s->position);
    engine->stages[0].position = s->position;
    return restore_stages(engine, s, reterr);
}

enum hr_err
hr__state_restore(struct hr_engine *engine, const char *json, struct hr_error *reterr)
{
    struct hr_saved saved = {0};
    struct hr_doc *doc;
    enum hr_err code = hr__doc_parse(json, strlen(json), "the state", &doc, reterr);

    if (code != HR_OK) {
        hr__error_prefix(reterr, "the iterator state is damaged");
        return code;
    }
    code = hr__saved_parse(doc, &saved, reterr);
    if (code == HR_OK)
        code = apply(engine, &saved, reterr);
    hr__done_finish(&saved.done);
    hr__doc_destroy(doc);
    return code;
}
