/*
 * graph/graph_keys.c - what the records of a node's input are known by before they are
 * read, and which source a record comes from.
 */
#include "graph/graph_private.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"

static const char *key_name(const struct hr_graph_node *source, size_t i);

/* The number of key `by` of the source; HR_KEY_INDEX if it has none. */
static size_t find_key(const struct hr_graph_node *source, const char *by)
{
    size_t key = 0;

    while (key_name(source, key) != NULL && strcmp(key_name(source, key), by) != 0)
        key++;
    return key_name(source, key) != NULL ? key : HR_KEY_INDEX;
}

/* Whether the sources of the node's records know the key. Asks each node once, and leaves
 * the way there. */
static bool knows(struct hr_graph_keys *keys, uint32_t node)
{
    const struct hr_graph_node *n = &keys->graph->nodes[node];
    struct hr_key_way *way = &keys->ways[node];
    bool merges = n->op->kind == HR_OP_MERGE;
    size_t input = 0;

    if (way->asked)
        return way->knows;
    way->asked = true;
    if (n->input_count == 0) {
        way->key = find_key(n, keys->by);
        way->knows = way->key != HR_KEY_INDEX;
        return way->knows;
    }
    while (input < n->input_count && knows(keys, n->inputs[input]) == merges)
        input++;
    way->knows = (input == n->input_count) == merges;
    if (way->knows && !merges)
        way->input = input;
    return way->knows;
}

/* The source that is read for position *at of the node's output, or the one to which the
 * ways lead (NULL: the first), if there are several; *at becomes the index there, and
 * *base the records of the inputs of merges before it. NODE_NONE if the ways lead to an
 * input of a join that has no record. Nothing before the node orders at random. */
#define NODE_NONE UINT32_MAX
static uint32_t find_source(const struct hr_graph *graph, uint32_t node,
                            const struct hr_key_way *ways, uint64_t *at, uint64_t *base)
{
    struct hr_record_id id = {0};

    *base = 0;
    while (graph->nodes[node].input_count > 0) {
        const struct hr_graph_node *n = &graph->nodes[node];
        size_t input = 0;

        if (n->op->kind == HR_OP_ORDER) {
            *at = n->op->order.map(n->params, n->state,
                                   (uint64_t)graph->nodes[n->inputs[0]].positions, *at,
                                   &id, n->draw_id);
        } else if (n->op->kind == HR_OP_MERGE) {
            uint64_t counts[HR_NODE_INPUTS_MAX];
            struct hr_merge_inputs inputs = {counts, n->input_count};

            for (size_t i = 0; i < n->input_count; i++)
                counts[i] = (uint64_t)graph->nodes[n->inputs[i]].schema.records;
            input = n->op->merge.map(n->params, &inputs, (uint64_t)n->schema.records, 1,
                                     *at, &id, n->draw_id, at);
            for (size_t i = 0; i < input; i++)
                *base += counts[i];
        } else if (n->op->kind == HR_OP_ZIP) {
            input = ways != NULL ? ways[node].input : 0;
            if (n->op->zip.by != NULL)
                *at = n->op->zip.map(n->state, input, *at);
            if (*at == HR_INDEX_NONE)
                return NODE_NONE;
        }
        node = n->inputs[input];
    }
    return node;
}

uint32_t hr__graph_source(const struct hr_graph *graph, uint32_t node, uint64_t *at)
{
    uint64_t before;

    return find_source(graph, node, NULL, at, &before);
}

static enum hr_err get_key(const struct hr_keys *base, uint64_t at, struct hr_str *key,
                           struct hr_error *error)
{
    const struct hr_graph_keys *keys = (const struct hr_graph_keys *)base;
    const struct hr_graph_node *source = NULL;
    enum hr_err code = HR_OK;
    uint64_t before, first = at;
    uint32_t node;

    assert(keys->by != NULL && at < base->count);
    node = find_source(keys->graph, keys->node, keys->by_index ? NULL : keys->ways, &at,
                       &before);
    if (node == NODE_NONE) {
        (void)find_source(keys->graph, keys->node, NULL, &first, &before);
        at = first;
        code = HR_ERR_NOT_FOUND;
    } else {
        source = &keys->graph->nodes[node];
    }
    hr__str_clear(key);
    if (keys->by_index || source == NULL)
        hr__str_addf(key, "%llu", (unsigned long long)(before + at));
    else if (keys->ways[node].steps != NULL)
        code = hr__key_run(keys->runner, keys->ways[node].steps, source, at, key, error);
    else
        code = source->op->source.key(source->params, source->state, keys->ways[node].key,
                                      at, key, error);
    if (code == HR_ERR_FORMAT && source != NULL && keys->ways[node].steps != NULL) {
        hr__str_clear(key); /* of a step that failed */
        hr__str_addf(key, "%llu", (unsigned long long)at);
    }
    return hr__str_ok(key) ? code : hr__fail(error, HR_ERR_MEMORY, "out of memory");
}

/* The name of the source's i-th key; "index" is the last one. */
static const char *key_name(const struct hr_graph_node *source, size_t i)
{
    const struct hr_op_source *op = &source->op->source;

    if (op->key_name == NULL)
        return NULL;
    return op->key_name(source->params, source->state, i);
}

static enum hr_err refuse(const struct hr_graph_node *source, const char *by,
                          const char *param, struct hr_error *error)
{
    const char *names[HR_SCHEMA_FIELDS_MAX + 2], *near;
    struct hr_str tail;
    size_t count = 0;

    while (count <= HR_SCHEMA_FIELDS_MAX && key_name(source, count) != NULL) {
        names[count] = key_name(source, count);
        count++;
    }
    names[count++] = "index";
    near = hr__nearest(by, names, count);
    hr__str_init(&tail);
    if (near != NULL)
        hr__str_addf(&tail, "; did you mean \"%s\"?", near);
    hr__str_add(&tail, near != NULL ? " Known are: " : "; known are: ");
    for (size_t i = 0; i < count; i++)
        hr__str_addf(&tail, "%s%s", i > 0 ? ", " : "", names[i]);
    snprintf(error->param, sizeof error->param, "%s", param);
    hr__fail(error, HR_ERR_ARGUMENT,
             "before a record of '%s' is read, its \"%s\" is not known%s (its number, "
             "which changes when others are added before it)%s",
             source->name, by, hr__str_text(&tail),
             source->op->source.key_name == NULL && source->op->source.locate != NULL
                 ? ". Of records that 'headrace pack' has written all numbers and texts "
                   "are known"
                 : "");
    hr__str_finish(&tail);
    return HR_ERR_ARGUMENT;
}

/* That of a key which is no field (NULL) is a text: a path. */
static enum hr_key_type type_of(const struct hr_field *field)
{
    if (field == NULL || field->kind == HR_FIELD_BYTES || field->classes != NULL)
        return HR_KEY_TEXT;
    if (field->kind != HR_FIELD_TENSOR || field->ndim != 0 || field->dtype == HR_BOOL ||
        field->dtype == HR_F16 || field->dtype == HR_BF16 || field->dtype == HR_F32 ||
        field->dtype == HR_F64)
        return HR_KEY_OTHER;
    return HR_KEY_INTEGER;
}

static bool is_float(const struct hr_field *field)
{
    return field->kind == HR_FIELD_TENSOR && field->ndim == 0 &&
           (field->dtype == HR_F32 || field->dtype == HR_F64);
}

/* Where keys are looked for. */
struct search {
    struct hr_graph_keys *keys;
    struct hr_key_need need;      /* none: by the name that the source has for it */
    const struct hr_field *field; /* where it begins; or NULL */
    const char *param;
    struct hr_error *error;
};

/* Whether the source's key is the value of its field, which nodes can take. */
static enum hr_err check_input(const struct search *s, const struct hr_graph_node *source,
                               const struct hr_field *field, bool made)
{
    bool joins = s->need.chooser == NULL;

    if (source->op->source.path_below && strcmp(field->name, "path") == 0 &&
        (made || strcmp(s->need.by, "path") != 0))
        return hr__fail(s->error, HR_ERR_ARGUMENT,
                        "the \"%s\" of '%s' is made of the \"path\" of '%s', which is "
                        "known as one below its folder: %s by \"path\"%s, or by \"stem\"",
                        s->need.by, s->need.of, source->name, joins ? "join" : "choose",
                        joins ? "" : " before it is changed");
    if (made && !is_float(field) &&
        (type_of(field) == HR_KEY_OTHER || field->classes != NULL))
        return hr__fail(s->error, HR_ERR_ARGUMENT,
                        "the \"%s\" of '%s' is made of the \"%s\" of '%s', %s%s",
                        s->need.by, s->need.of, field->name, source->name,
                        field->classes != NULL ? "whose key is the name of a class"
                                               : "which is neither a number nor a text",
                        joins ? "" : ": choose by it before it is changed");
    return HR_OK;
}

/* Keys that are made are numbers or texts. A join says itself what it takes. */
static enum hr_err check_made(const struct search *s)
{
    if (s->need.chooser == NULL || is_float(s->field) ||
        type_of(s->field) != HR_KEY_OTHER)
        return HR_OK;
    return hr__fail(s->error, HR_ERR_ARGUMENT,
                    "the \"%s\" of '%s' is neither a number nor a text: put '%s' before "
                    "what makes it, or choose by another field",
                    s->need.by, s->need.of, s->need.chooser);
}

/* Whether the source's field "index", which it does not know as a key, stands for its
 * number. */
static bool is_number(const struct search *s, const struct hr_field *field, bool made)
{
    return !made && s->need.chooser != NULL && strcmp(s->keys->by, "index") == 0 &&
           strcmp(field->name, "index") == 0;
}

static enum hr_err
refuse_input(const struct search *s, const struct hr_graph_node *source, const char *name)
{
    enum hr_err code = refuse(source, name, s->param, s->error);

    if (strcmp(name, s->need.by) != 0)
        hr__error_prefix(s->error, "the \"%s\" of '%s' is made of the \"%s\" of '%s'",
                         s->need.by, s->need.of, name, source->name);
    return code;
}

/* A source whose key is that of a field, or is made of those of some. */
static enum hr_err find_made(struct search *s, uint32_t node)
{
    const struct hr_graph_node *n = &s->keys->graph->nodes[node];
    struct hr_key_way *way = &s->keys->ways[node];
    struct hr_key_steps *steps =
        hr__key_steps_create(&s->need, s->keys->graph, &n->schema, s->field->slot);
    bool made = false;

    way->steps = steps;
    if (steps == NULL)
        return hr__fail(s->error, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < steps->step_count; i++)
        made = made || steps->steps[i].node != HR_KEY_MOVE;
    assert(steps->input_count == s->need.count);
    for (size_t i = 0; i < steps->input_count; i++) {
        steps->inputs[i].key = find_key(n, steps->inputs[i].field->name);
        if (steps->inputs[i].key == HR_KEY_INDEX &&
            is_number(s, steps->inputs[i].field, made))
            s->keys->by_index = true;
        else if (steps->inputs[i].key == HR_KEY_INDEX)
            return refuse_input(s, n, steps->inputs[i].field->name);
        HR_TRY(check_input(s, n, steps->inputs[i].field, made));
    }
    s->keys->base.type = type_of(s->field);
    if (made) {
        HR_TRY(check_made(s));
        if (s->keys->runner == NULL)
            s->keys->runner = hr__key_runner_create(s->keys->graph);
        return s->keys->runner != NULL
                   ? HR_OK
                   : hr__fail(s->error, HR_ERR_MEMORY, "out of memory");
    }
    assert(steps->input_count == 1);
    way->key = steps->inputs[0].key;
    s->keys->base.type = type_of(steps->inputs[0].field);
    hr__key_steps_destroy(steps);
    way->steps = NULL;
    return HR_OK;
}

static enum hr_err find_known(struct search *s, uint32_t node)
{
    struct hr_graph_keys *keys = s->keys;
    const struct hr_graph_node *n = &keys->graph->nodes[node];

    if (!knows(keys, node) && strcmp(keys->by, "index") != 0)
        return refuse(n, keys->by, s->param, s->error);
    keys->by_index = keys->by_index || !knows(keys, node);
    keys->base.type =
        keys->by_index ? HR_KEY_INTEGER : type_of(hr__schema_get(&n->schema, keys->by));
    return HR_OK;
}

static enum hr_err find_sources(struct search *s, uint32_t node);

static enum hr_err find_inputs(struct search *s, uint32_t node)
{
    const struct hr_graph_node *n = &s->keys->graph->nodes[node];

    for (size_t i = 0; i < n->input_count; i++) {
        struct hr_key_need before = s->need;

        if (s->need.count > 0)
            HR_TRY(hr__key_need_before(&s->need, s->keys->graph, node, i, s->error));
        HR_TRY(find_sources(s, n->inputs[i]));
        before.steps = s->need.steps; /* which may have grown */
        before.room = s->need.room;
        s->need = before;
    }
    return HR_OK;
}

/* Checks that the sources of all records know the key, or what nodes make it of; each
 * node once. */
static enum hr_err find_sources(struct search *s, uint32_t node)
{
    const struct hr_graph *graph = s->keys->graph;
    bool needs = s->need.count > 0;

    for (;;) {
        const struct hr_graph_node *n = &graph->nodes[node];
        struct hr_key_way *way = &s->keys->ways[node];

        if (way->checked)
            return HR_OK;
        way->checked = true;
        if (n->input_count == 0)
            return needs ? find_made(s, node) : find_known(s, node);
        if (n->op->kind == HR_OP_MERGE)
            return find_inputs(s, node);
        if (!needs)
            (void)knows(s->keys, node); /* which input */
        else if (n->input_count > 1)
            HR_TRY(hr__key_need_input(&s->need, graph, node, &way->input, s->error));
        if (needs)
            HR_TRY(hr__key_need_before(&s->need, graph, node, way->input, s->error));
        node = n->inputs[way->input];
    }
}

void hr__graph_keys_finish(struct hr_graph_keys *keys)
{
    for (size_t i = 0; keys->ways != NULL && i < keys->graph->count; i++)
        hr__key_steps_destroy(keys->ways[i].steps);
    hr__free(keys->ways);
    hr__key_runner_destroy(keys->runner);
}

enum hr_err hr__graph_keys(const struct hr_graph *graph, uint32_t node, size_t input,
                           struct hr_graph_keys *ret_keys, struct hr_error *error)
{
    const struct hr_graph_node *n = &graph->nodes[node];
    uint32_t from = n->inputs[input];
    struct search search = {.keys = ret_keys, .param = "by", .error = error};
    enum hr_err code;

    assert(input < n->input_count && graph->nodes[from].positions >= 0);
    *ret_keys = (struct hr_graph_keys){
        .base = {.count = (uint64_t)graph->nodes[from].positions,
                 .of = graph->nodes[from].name,
                 .get = get_key},
        .graph = graph,
        .node = from,
        .by = n->op->kind == HR_OP_ZIP ? n->op->zip.by(n->params, input, &search.param)
                                       : n->op->order.by(n->params, &search.param),
        .ways = hr__calloc(graph->count, sizeof *ret_keys->ways),
    };
    if (ret_keys->ways == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    if (ret_keys->by == NULL)
        return HR_OK;
    search.field = hr__schema_get(&graph->nodes[from].schema, ret_keys->by);
    if (search.field != NULL)
        hr__key_need_init(&search.need, search.field->slot, ret_keys->by,
                          ret_keys->base.of, n->op->kind == HR_OP_ORDER ? n->name : NULL);
    code = find_sources(&search, from);
    if (code == HR_OK && ret_keys->by_index && ret_keys->runner != NULL)
        code = hr__fail(error, HR_ERR_ARGUMENT,
                        "the \"index\" of '%s' is made for some records, and is the "
                        "number of others: give it another name",
                        ret_keys->base.of);
    if (code != HR_OK && error->param[0] == '\0')
        snprintf(error->param, sizeof error->param, "%s", search.param);
    hr__key_need_finish(&search.need);
    return code;
}
