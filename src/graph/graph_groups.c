/*
 * graph/graph_groups.c - groups of steps in a graph file.
 *
 *   - apply: {p: 0.8, steps: [...]}            # all of them, for 80 % of the records
 *   - one_of: {choices: [...], weights: [...]} # one of them for each record
 *
 * A choice is a step or a list of steps, and a step may be a group. Groups are a way of
 * writing: each step gets the parameter `when`, with the name of the group's draw, and
 * takes the group's place in the list. So a printed graph has none, and nothing after
 * this file knows about them.
 *
 * A draw is keyed by its name. A group without a name is called by its kind, and from the
 * second one on by its place among those ("apply2").
 */
#include "graph/graph_private.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"

struct groups {
    const char *file;
    struct hr_error *error;
    struct hr_doc *flat;   /* the steps so far */
    struct hr_doc *taken;  /* a map with the names of draws */
    struct hr_doc *inputs; /* of the group whose first step comes next; or NULL */
    int counts[2];         /* of groups by kind */
};

static const char *const kinds[] = {"apply", "one_of"};

static enum hr_err no_memory(const struct groups *g)
{
    return hr__fail(g->error, HR_ERR_MEMORY, "out of memory");
}

static enum hr_err
refuse(const struct groups *g, const struct hr_doc *at, const char *what)
{
    return hr__fail_at(g->error, HR_ERR_GRAPH, g->file, at->line, at->column, "%s", what);
}

/* The pair of a group's kind, or NULL for a step. */
static struct hr_doc_pair *group_pair(const struct hr_doc *item)
{
    if (item->kind != HR_DOC_MAP)
        return NULL;
    for (size_t i = 0; i < item->as.map.count; i++)
        for (size_t k = 0; k < 2; k++)
            if (strcmp(item->as.map.pairs[i].key, kinds[k]) == 0)
                return &item->as.map.pairs[i];
    return NULL;
}

/* ---- names of draws ---- */

static enum hr_err take_name(struct groups *g, const char *name)
{
    return hr__doc_set(g->taken, name, hr__doc_bool(true)) == HR_OK ? HR_OK
                                                                    : no_memory(g);
}

/* Takes those that steps name themselves. */
static enum hr_err take_written(struct groups *g, const struct hr_doc *doc)
{
    for (size_t i = 0; doc->kind == HR_DOC_LIST && i < doc->as.list.count; i++)
        HR_TRY(take_written(g, doc->as.list.items[i]));
    for (size_t i = 0; doc->kind == HR_DOC_MAP && i < doc->as.map.count; i++) {
        const struct hr_doc_pair *pair = &doc->as.map.pairs[i];
        bool when = strcmp(pair->key, "when") == 0 && pair->value->kind == HR_DOC_MAP;

        for (size_t k = 0; when && k < pair->value->as.map.count; k++)
            HR_TRY(take_name(g, pair->value->as.map.pairs[k].key));
        HR_TRY(take_written(g, pair->value));
    }
    return HR_OK;
}

/* Copies the name of the group's draw to `name`. */
static enum hr_err name_group(struct groups *g, const struct hr_doc *item,
                              const char *kind, char name[HR_NODE_NAME_MAX + 1])
{
    const struct hr_doc *given = hr__doc_get(item, "name");
    int *count = &g->counts[strcmp(kind, kinds[0]) != 0];

    ++*count;
    if (given == NULL) {
        snprintf(name, HR_NODE_NAME_MAX + 1, *count > 1 ? "%s%d" : "%s", kind, *count);
        while (hr__doc_get(g->taken, name) != NULL)
            snprintf(name, HR_NODE_NAME_MAX + 1, "%s%d", kind, ++*count);
        return take_name(g, name);
    }
    if (given->kind != HR_DOC_STRING || given->as.string.length == 0 ||
        given->as.string.length > HR_NODE_NAME_MAX)
        return refuse(g, given, "the name of a group is a text of 1 to 63 bytes");
    if (hr__doc_get(g->taken, given->as.string.text) != NULL)
        return refuse(g, given,
                      "another group has this name already, and groups draw by their "
                      "names: choose another name");
    snprintf(name, HR_NODE_NAME_MAX + 1, "%s", given->as.string.text);
    return take_name(g, name);
}

/* ---- steps ---- */

/* Adds the draws of `when` to the parameters of a step. */
static enum hr_err
add_draws(struct groups *g, struct hr_doc_pair *op, const struct hr_doc *when)
{
    struct hr_doc *own, *params = op->value;

    assert(when->kind == HR_DOC_MAP && when->as.map.count > 0);
    if (params->kind == HR_DOC_NULL) {
        params = hr__doc_new(HR_DOC_MAP);
        if (params == NULL)
            return no_memory(g);
        params->line = op->value->line;
        params->column = op->value->column;
        hr__doc_destroy(op->value);
        op->value = params;
    }
    if (params->kind != HR_DOC_MAP)
        return HR_OK; /* an error of the step, found when it is added */
    own = hr__doc_get(params, "when");
    if (own == NULL || own->kind != HR_DOC_MAP) {
        own = hr__doc_new(HR_DOC_MAP);
        if (own == NULL || hr__doc_set(params, "when", own) != HR_OK)
            return no_memory(g);
    }
    for (size_t i = 0; i < when->as.map.count; i++) {
        const struct hr_doc_pair *pair = &when->as.map.pairs[i];
        struct hr_doc *copy = hr__doc_copy(pair->value);

        if (copy == NULL || hr__doc_set(own, pair->key, copy) != HR_OK)
            return no_memory(g);
    }
    return HR_OK;
}

/* Turns "op.name" into {op.name: }. */
static enum hr_err open_text(struct groups *g, struct hr_doc **item)
{
    struct hr_doc *map = hr__doc_new(HR_DOC_MAP);
    struct hr_doc *none = hr__doc_new(HR_DOC_NULL);

    if (map == NULL || none == NULL) {
        hr__doc_destroy(map);
        hr__doc_destroy(none);
        return no_memory(g);
    }
    if (hr__doc_set(map, (*item)->as.string.text, none) != HR_OK) {
        hr__doc_destroy(map);
        return no_memory(g);
    }
    map->line = map->as.map.pairs[0].line = (*item)->line;
    map->column = map->as.map.pairs[0].column = (*item)->column;
    hr__doc_destroy(*item);
    *item = map;
    return HR_OK;
}

/* `when` NULL: outside of groups. */
static enum hr_err
change_step(struct groups *g, struct hr_doc **item, const struct hr_doc *when)
{
    if (when == NULL)
        return HR_OK;
    if ((*item)->kind == HR_DOC_STRING)
        HR_TRY(open_text(g, item));
    if ((*item)->kind != HR_DOC_MAP)
        return refuse(g, *item,
                      "a step of a group is op.name, {op.name: {parameters}} "
                      "or a group");
    if (hr__doc_get(*item, "inputs") != NULL)
        return refuse(g, hr__doc_get(*item, "inputs"),
                      "a step of a group reads the step before it; give the group the "
                      "inputs");
    for (size_t i = 0; i < (*item)->as.map.count; i++)
        if (strchr((*item)->as.map.pairs[i].key, '.') != NULL)
            HR_TRY(add_draws(g, &(*item)->as.map.pairs[i], when));
    if (g->inputs != NULL) {
        struct hr_doc *inputs = g->inputs;

        g->inputs = NULL;
        if (hr__doc_set(*item, "inputs", inputs) != HR_OK)
            return no_memory(g);
    }
    return HR_OK;
}

/* ---- groups ---- */

static enum hr_err
open_item(struct groups *g, struct hr_doc **slot, const struct hr_doc *when);

/* Opens a step or a list of steps. */
static enum hr_err
open_steps(struct groups *g, struct hr_doc **slot, const struct hr_doc *when)
{
    struct hr_doc *steps = *slot;

    if (steps->kind != HR_DOC_LIST)
        return open_item(g, slot, when);
    for (size_t i = 0; i < steps->as.list.count; i++)
        HR_TRY(open_item(g, &steps->as.list.items[i], when));
    return HR_OK;
}

/* A copy of `when` with one more draw. Takes ownership of `part`. */
static enum hr_err add_draw(struct groups *g, const struct hr_doc *when, const char *name,
                            struct hr_doc *part, struct hr_doc **ret_when)
{
    struct hr_doc *made = when != NULL ? hr__doc_copy(when) : hr__doc_new(HR_DOC_MAP);

    if (made == NULL || part == NULL) {
        hr__doc_destroy(made);
        hr__doc_destroy(part);
        return no_memory(g);
    }
    if (hr__doc_set(made, name, part) != HR_OK) {
        hr__doc_destroy(made);
        return no_memory(g);
    }
    *ret_when = made;
    return HR_OK;
}

static enum hr_err check_body(const struct groups *g, const struct hr_doc_pair *pair,
                              const char *list, const char *other)
{
    const struct hr_doc *body = pair->value;
    const struct hr_doc *steps = hr__doc_get(body, list);
    char text[160];

    snprintf(text, sizeof text, "\"%s\" is written as {%s: [ops], %s: ...}", pair->key,
             list, other);
    if (body->kind != HR_DOC_MAP || steps == NULL || steps->kind != HR_DOC_LIST)
        return refuse(g, body, text);
    if (steps->as.list.count == 0)
        return refuse(g, steps, "a group has at least one step");
    if (body->as.map.count > 1 + (size_t)(hr__doc_get(body, other) != NULL))
        return refuse(g, body, text);
    return HR_OK;
}

static enum hr_err open_apply(struct groups *g, const struct hr_doc_pair *pair,
                              const struct hr_doc *when, const char *name)
{
    const struct hr_doc *p = hr__doc_get(pair->value, "p");
    struct hr_doc *steps, *all;
    enum hr_err code;

    HR_TRY(check_body(g, pair, "steps", "p"));
    steps = hr__doc_get(pair->value, "steps");
    HR_TRY(
        add_draw(g, when, name, p != NULL ? hr__doc_copy(p) : hr__doc_double(0.5), &all));
    code = open_steps(g, &steps, all);
    hr__doc_destroy(all);
    return code;
}

/* {choice: at, of: weights or count}; NULL if out of memory. */
static struct hr_doc *choice_part(size_t at, size_t count, const struct hr_doc *weights)
{
    struct hr_doc *part = hr__doc_new(HR_DOC_MAP);

    if (part == NULL)
        return NULL;
    if (hr__doc_set(part, "choice", hr__doc_int((int64_t)at)) == HR_OK &&
        hr__doc_set(part, "of",
                    weights != NULL ? hr__doc_copy(weights)
                                    : hr__doc_int((int64_t)count)) == HR_OK)
        return part;
    hr__doc_destroy(part);
    return NULL;
}

static enum hr_err open_choices(struct groups *g, const struct hr_doc_pair *pair,
                                const struct hr_doc *when, const char *name)
{
    const struct hr_doc *weights = hr__doc_get(pair->value, "weights");
    struct hr_doc *choices;
    enum hr_err code = HR_OK;

    HR_TRY(check_body(g, pair, "choices", "weights"));
    choices = hr__doc_get(pair->value, "choices");
    if (weights != NULL && weights->kind == HR_DOC_LIST &&
        weights->as.list.count != choices->as.list.count)
        return refuse(g, weights, "a group has as many weights as choices");
    for (size_t i = 0; code == HR_OK && i < choices->as.list.count; i++) {
        struct hr_doc *part = choice_part(i, choices->as.list.count, weights), *all;

        HR_TRY(add_draw(g, when, name, part, &all));
        code = open_steps(g, &choices->as.list.items[i], all);
        hr__doc_destroy(all);
    }
    return code;
}

static enum hr_err
check_keys(const struct groups *g, const struct hr_doc *item, const char *kind)
{
    for (size_t i = 0; i < item->as.map.count; i++) {
        const struct hr_doc_pair *pair = &item->as.map.pairs[i];

        if (strcmp(pair->key, kind) != 0 && strcmp(pair->key, "name") != 0 &&
            strcmp(pair->key, "inputs") != 0)
            return hr__fail_at(g->error, HR_ERR_GRAPH, g->file, pair->line, pair->column,
                               "a group \"%s\" has the keys name and inputs beside it, "
                               "not \"%.63s\"",
                               kind, pair->key);
    }
    return HR_OK;
}

static enum hr_err
open_group(struct groups *g, struct hr_doc *item, const struct hr_doc *when)
{
    const struct hr_doc_pair *pair = group_pair(item);
    const struct hr_doc *inputs = hr__doc_get(item, "inputs");
    char name[HR_NODE_NAME_MAX + 1];
    size_t before = g->flat->as.list.count;

    assert(pair != NULL && g->inputs == NULL);
    HR_TRY(check_keys(g, item, pair->key));
    HR_TRY(name_group(g, item, pair->key, name));
    if (inputs != NULL && when != NULL)
        return refuse(g, inputs,
                      "a step of a group reads the step before it; give the outer group "
                      "the inputs");
    if (inputs != NULL) {
        g->inputs = hr__doc_copy(inputs);
        if (g->inputs == NULL)
            return no_memory(g);
    }
    if (strcmp(pair->key, kinds[0]) == 0)
        HR_TRY(open_apply(g, pair, when, name));
    else
        HR_TRY(open_choices(g, pair, when, name));
    if (g->flat->as.list.count == before)
        return refuse(g, item, "a group has at least one step");
    return HR_OK;
}

/* Appends the item's steps; takes a step out of its slot. */
static enum hr_err
open_item(struct groups *g, struct hr_doc **slot, const struct hr_doc *when)
{
    struct hr_doc *item;

    if (group_pair(*slot) != NULL)
        return open_group(g, *slot, when);
    HR_TRY(change_step(g, slot, when));
    item = *slot;
    *slot = NULL; /* hr__doc_append owns it, also on failure */
    return hr__doc_append(g->flat, item) == HR_OK ? HR_OK : no_memory(g);
}

static enum hr_err open_all(struct groups *g, struct hr_doc *pipeline)
{
    struct hr_doc old;

    g->flat = hr__doc_new(HR_DOC_LIST);
    g->taken = hr__doc_new(HR_DOC_MAP);
    if (g->flat == NULL || g->taken == NULL)
        return no_memory(g);
    HR_TRY(take_written(g, pipeline));
    for (size_t i = 0; i < pipeline->as.list.count; i++)
        HR_TRY(open_item(g, &pipeline->as.list.items[i], NULL));
    assert(g->inputs == NULL); /* a group's first step takes them */
    old = *pipeline;
    pipeline->as.list = g->flat->as.list;
    g->flat->as.list = old.as.list;
    return HR_OK;
}

enum hr_err
hr__graph_open_groups(struct hr_doc *pipeline, const char *file, struct hr_error *error)
{
    struct groups g = {.file = file, .error = error};
    bool any = false;
    enum hr_err code;

    for (size_t i = 0; i < pipeline->as.list.count; i++)
        any = any || group_pair(pipeline->as.list.items[i]) != NULL;
    if (!any)
        return HR_OK;
    code = open_all(&g, pipeline);
    hr__doc_destroy(g.flat);
    hr__doc_destroy(g.taken);
    hr__doc_destroy(g.inputs);
    return code;
}
