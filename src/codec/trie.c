/*
 * codec/trie.c - building a double array. Free nodes are a list through `base` (the next)
 * and `value` (the one before); node 0, the root, ends it.
 */
#include "codec/trie.h"
#include "core/alloc.h"

#include <stdlib.h>
#include <string.h>

#define TRIES 32 /* free nodes that are tried before the array grows */
#define LOW                                                                              \
    256 /* nodes below, but the root, are not used, so that a base is positive           \
         */

/* Keys that share their first `depth` bytes, and the node of these. */
struct range {
    size_t first, end;
    uint32_t depth, node;
};

struct build {
    struct hr_trie *trie;
    const struct hr_trie_key *keys;
    size_t room;
    uint32_t next_free, last_free; /* 0: none */
    struct range *todo;
    size_t todo_count, todo_room;
};

static int compare(const void *a, const void *b)
{
    const struct hr_trie_key *x = a, *y = b;
    size_t least = x->count < y->count ? x->count : y->count;
    int order = memcmp(x->bytes, y->bytes, least);

    return order != 0 ? order : (x->count > y->count) - (x->count < y->count);
}

/* ---- free nodes ---- */

static bool grow(struct build *b, uint32_t count)
{
    struct hr_trie *t = b->trie;

    if (count <= t->count)
        return true;
    if (!hr__array_room(&t->nodes, t->count, &b->room, count - t->count,
                        sizeof *t->nodes))
        return false;
    for (uint32_t i = t->count; i < count; i++) {
        t->nodes[i] = (struct hr_trie_node){0, HR_TRIE_FREE, (int32_t)b->last_free};
        if (i < LOW)
            continue;
        if (b->last_free != 0)
            t->nodes[b->last_free].base = i;
        else
            b->next_free = i;
        b->last_free = i;
    }
    t->count = count;
    return true;
}

static void take(struct build *b, uint32_t node, uint32_t parent)
{
    struct hr_trie_node *n = &b->trie->nodes[node];
    uint32_t after = n->base, before = (uint32_t)n->value;

    if (before != 0)
        b->trie->nodes[before].base = after;
    else
        b->next_free = after;
    if (after != 0)
        b->trie->nodes[after].value = (int32_t)before;
    else
        b->last_free = before;
    *n = (struct hr_trie_node){0, parent, -1};
}

static bool
fits(const struct build *b, uint32_t base, const uint8_t *labels, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        uint32_t at = base + labels[i];

        if (at < b->trie->count && b->trie->nodes[at].parent != HR_TRIE_FREE)
            return false;
    }
    return true;
}

/* Where the children can be, in ascending order of their labels. */
static uint32_t find_base(const struct build *b, const uint8_t *labels, unsigned count)
{
    uint32_t at = b->next_free;

    for (int i = 0; i < TRIES && at != 0; i++, at = b->trie->nodes[at].base)
        if (fits(b, at - labels[0], labels, count))
            return at - labels[0];
    return b->trie->count;
}

/* ---- nodes ---- */

static unsigned find_labels(const struct build *b, const struct range *r, size_t first,
                            uint8_t labels[256])
{
    unsigned count = 0;

    for (size_t i = first; i < r->end; i++) {
        uint8_t label = b->keys[i].bytes[r->depth];

        if (count == 0 || labels[count - 1] != label)
            labels[count++] = label;
    }
    return count;
}

static enum hr_err add_children(struct build *b, struct range r)
{
    size_t first = r.first, at;
    uint8_t labels[256];
    unsigned count;
    uint32_t base;

    if (b->keys[first].count == r.depth)
        b->trie->nodes[r.node].value = b->keys[first++].value;
    count = find_labels(b, &r, first, labels);
    if (count == 0)
        return HR_OK;
    base = find_base(b, labels, count);
    if (!grow(b, base + 256) ||
        !hr__array_room(&b->todo, b->todo_count, &b->todo_room, count, sizeof *b->todo))
        return HR_ERR_MEMORY;
    b->trie->nodes[r.node].base = base;
    at = first;
    for (unsigned i = 0; i < count; i++) {
        size_t from = at;

        while (at < r.end && b->keys[at].bytes[r.depth] == labels[i])
            at++;
        take(b, base + labels[i], r.node);
        b->todo[b->todo_count++] =
            (struct range){from, at, r.depth + 1, base + labels[i]};
    }
    return HR_OK;
}

/* Free nodes become no child of any node; a node without children has base 0. */
static void forget_free(struct hr_trie *trie)
{
    for (uint32_t i = 1; i < trie->count; i++)
        if (trie->nodes[i].parent == HR_TRIE_FREE)
            trie->nodes[i] = (struct hr_trie_node){0, HR_TRIE_FREE, -1};
}

enum hr_err hr__trie_build(struct hr_trie *trie, struct hr_trie_key *keys, size_t count,
                           int32_t *ret_twice)
{
    struct build b = {.trie = trie, .keys = keys};
    enum hr_err err = HR_OK;

    *trie = (struct hr_trie){NULL};
    if (count > 0)
        qsort(keys, count, sizeof *keys, compare);
    for (size_t i = 1; i < count; i++)
        if (compare(&keys[i - 1], &keys[i]) == 0) {
            *ret_twice = keys[i].value;
            return HR_ERR_FORMAT;
        }
    if (!grow(&b, 2 * LOW) ||
        !hr__array_room(&b.todo, 0, &b.todo_room, 1, sizeof *b.todo))
        err = HR_ERR_MEMORY;
    else
        trie->nodes[0] = (struct hr_trie_node){0, HR_TRIE_FREE, -1};
    if (err == HR_OK && count > 0)
        b.todo[b.todo_count++] = (struct range){0, count, 0, 0};
    while (err == HR_OK && b.todo_count > 0)
        err = add_children(&b, b.todo[--b.todo_count]);
    hr__free(b.todo);
    if (err == HR_OK)
        forget_free(trie);
    else
        hr__trie_finish(trie);
    return err;
}

void hr__trie_finish(struct hr_trie *trie)
{
    hr__free(trie->nodes);
    *trie = (struct hr_trie){NULL};
}
