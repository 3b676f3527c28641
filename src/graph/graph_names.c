/*
 * graph/graph_names.c - whether a zip pairs files by the order of their names although
 * the names say otherwise.
 *
 * Two folders that hold the same things under like names, img1.jpg and img1_mask.png,
 * sort differently ('.' is before '0', '_' after it), and a missing file moves all that
 * follow. What all names of a folder begin and end with is no part of what tells them
 * apart. Where the rest of a name is found in the other folder, but at another position,
 * records would be mispaired. Names that have nothing to do with each other say nothing.
 */
#include "graph/graph_private.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/str.h"

#define NAMES_SEEN 60 /* bytes of a name in a message */

/* Of one source: a path without its ending for each record, all in one text. */
struct names {
    struct hr_str text;
    uint64_t *end;
    uint64_t count;
    size_t head, tail; /* bytes that all names begin and end with */
};

/* What tells a name from the others of its source. */
struct core {
    const char *text;
    size_t bytes;
};

static struct core whole_name(const struct names *names, uint64_t at)
{
    uint64_t from = at > 0 ? names->end[at - 1] : 0;

    return (struct core){hr__str_text(&names->text) + from,
                         (size_t)(names->end[at] - from)};
}

static struct core core_of(const struct names *names, uint64_t at)
{
    struct core name = whole_name(names, at);

    name.text += names->head;
    name.bytes -= names->head + names->tail;
    return name;
}

static int compare(const void *a, const void *b)
{
    const struct core *one = a, *other = b;
    size_t least = one->bytes < other->bytes ? one->bytes : other->bytes;
    int order = least > 0 ? memcmp(one->text, other->text, least) : 0;

    return order != 0 ? order : (one->bytes > other->bytes) - (one->bytes < other->bytes);
}

static void find_affixes(struct names *names)
{
    struct core first = whole_name(names, 0);
    size_t head = first.bytes, tail = first.bytes, least = first.bytes;

    for (uint64_t i = 1; i < names->count; i++) {
        struct core name = whole_name(names, i);
        size_t n = 0;

        least = name.bytes < least ? name.bytes : least;
        while (n < head && n < name.bytes && name.text[n] == first.text[n])
            n++;
        head = n;
        for (n = 0; n < tail && n < name.bytes; n++) {
            if (name.text[name.bytes - 1 - n] != first.text[first.bytes - 1 - n])
                break;
        }
        tail = n;
    }
    names->head = head;
    names->tail = tail < least - head ? tail : least - head;
}

/* The source of a zip's input, if it lists files by name and the nodes between keep the
 * numbers of its records or change them at random, which the zip allows where both
 * inputs do it alike. */
static const struct hr_graph_node *listing(const struct hr_graph *graph, uint32_t node)
{
    const struct hr_graph_node *n = &graph->nodes[node];

    for (; n->input_count == 1; n = &graph->nodes[n->inputs[0]]) {
        if (n->op->kind == HR_OP_ORDER && !(n->op->traits & HR_TRAIT_RANDOM) &&
            n->op->order.by == NULL)
            return NULL;
    }
    if (n->input_count != 0 || n->op->source.in_name_order == NULL ||
        !n->op->source.in_name_order(n->params))
        return NULL;
    return n;
}

/* The number of the key "path". */
static size_t path_key(const struct hr_graph_node *source)
{
    size_t key = 0;
    const char *name;

    while ((name = source->op->source.key_name(source->params, source->state, key)) !=
               NULL &&
           strcmp(name, "path") != 0)
        key++;
    return name != NULL ? key : HR_KEY_INDEX;
}

static size_t without_ending(const char *name, size_t bytes)
{
    const char *dot = memrchr(name, '.', bytes), *slash = memrchr(name, '/', bytes);

    return dot != NULL && dot > name && (slash == NULL || dot > slash + 1)
               ? (size_t)(dot - name)
               : bytes;
}

static enum hr_err read_names(const struct hr_graph_node *source, struct names *names,
                              struct hr_error *error)
{
    const struct hr_op_source *op = &source->op->source;
    size_t key = path_key(source);
    struct hr_str name;
    enum hr_err code = HR_OK;

    hr__str_init(&name);
    names->count = key != HR_KEY_INDEX ? (uint64_t)source->schema.records : 0;
    names->end = hr__malloc((size_t)names->count * sizeof *names->end + 1);
    for (uint64_t i = 0; names->end != NULL && code == HR_OK && i < names->count; i++) {
        hr__str_clear(&name);
        code = op->key(source->params, source->state, key, i, &name, error);
        hr__str_add_bytes(&names->text, hr__str_text(&name),
                          without_ending(hr__str_text(&name), name.length));
        names->end[i] = names->text.length;
    }
    if (code == HR_OK &&
        (names->end == NULL || !hr__str_ok(&name) || !hr__str_ok(&names->text)))
        code = hr__fail(error, HR_ERR_MEMORY, "out of memory");
    hr__str_finish(&name);
    return code;
}

static struct core *sorted(const struct names *names)
{
    struct core *cores = hr__malloc((size_t)names->count * sizeof *cores);

    for (uint64_t i = 0; cores != NULL && i < names->count; i++)
        cores[i] = core_of(names, i);
    if (cores != NULL)
        qsort(cores, (size_t)names->count, sizeof *cores, compare);
    return cores;
}

/* Whether most names of one side are on the other, and one of them at another position.
 */
static bool
are_moved(const struct names *a, const struct names *b, const struct core *b_sorted)
{
    uint64_t found = 0;
    bool moved = false;

    for (uint64_t i = 0; i < a->count; i++) {
        struct core one = core_of(a, i), other = core_of(b, i);

        if (bsearch(&one, b_sorted, (size_t)b->count, sizeof one, compare) == NULL)
            continue;
        found++;
        moved = moved || compare(&one, &other) != 0;
    }
    return moved && found >= a->count / 2;
}

/* The first position at which the names differ; `count` if there is none. */
static uint64_t first_other(const struct names *a, const struct names *b)
{
    uint64_t i = 0;

    for (; i < a->count; i++) {
        struct core one = core_of(a, i), other = core_of(b, i);

        if (compare(&one, &other) != 0)
            break;
    }
    return i;
}

static enum hr_err
compare_names(const struct hr_graph_node *const source[2], struct names names[2],
              const char *zip, struct hr_error *error)
{
    struct core *cores, one, other;
    uint64_t at;
    bool moved;

    find_affixes(&names[0]);
    find_affixes(&names[1]);
    at = first_other(&names[0], &names[1]);
    if (at == names[0].count)
        return HR_OK;
    cores = sorted(&names[1]);
    if (cores == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    moved = are_moved(&names[0], &names[1], cores);
    hr__free(cores);
    if (!moved)
        return HR_OK;
    one = whole_name(&names[0], at);
    other = whole_name(&names[1], at);
    return hr__fail(
        error, HR_ERR_GRAPH,
        "files are paired in the order of their names, and '%.*s' of '%s' would be with "
        "'%.*s' of '%s', although others there have the same names as here. Is a file "
        "missing, or do the names sort differently? Join them by name (flow.join, in "
        "Python hr.join(a, b, on=\"stem\")), or list both in one order (files). To pair "
        "them as they come, set \"paired: false\" on '%s'",
        (int)(one.bytes < NAMES_SEEN ? one.bytes : NAMES_SEEN), one.text, source[0]->name,
        (int)(other.bytes < NAMES_SEEN ? other.bytes : NAMES_SEEN), other.text,
        source[1]->name, zip);
}

enum hr_err hr__graph_check_names(const struct hr_graph *graph, uint32_t zip,
                                  size_t input, struct hr_error *error)
{
    const struct hr_graph_node *n = &graph->nodes[zip];
    const struct hr_graph_node *const source[2] = {listing(graph, n->inputs[0]),
                                                   listing(graph, n->inputs[input])};
    struct names names[2] = {{.count = 0}, {.count = 0}};
    enum hr_err code = HR_OK;

    if (source[0] == NULL || source[1] == NULL || source[0] == source[1])
        return HR_OK;
    for (int i = 0; i < 2; i++)
        hr__str_init(&names[i].text);
    for (int i = 0; code == HR_OK && i < 2; i++)
        code = read_names(source[i], &names[i], error);
    if (code == HR_OK && names[0].count > 0 && names[0].count == names[1].count)
        code = compare_names(source, names, n->name, error);
    for (int i = 0; i < 2; i++) {
        hr__str_finish(&names[i].text);
        hr__free(names[i].end);
    }
    return code;
}
