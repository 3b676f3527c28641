/*
 * engine/place.c - places and marks.
 */
#include "engine/place.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"

/* Iterative: a chain has a mark per sequencer and expansion of the graph. */
static void mark_unref(struct hr_mark *mark)
{
    while (mark != NULL && __atomic_fetch_sub(&mark->refs, 1, __ATOMIC_ACQ_REL) == 1) {
        struct hr_mark *input = mark->input.mark;

        hr__free(mark->state);
        hr__free(mark);
        mark = input;
    }
}

struct hr_mark *
hr__mark_create(uint32_t node, uint32_t order, struct hr_place *input, char *state)
{
    struct hr_mark *mark = hr__malloc(sizeof *mark);

    if (mark == NULL || state == NULL) {
        hr__free(mark);
        hr__free(state);
        hr__place_clear(input);
        return NULL;
    }
    assert(input->mark == NULL || input->mark->order < order);
    *mark = (struct hr_mark){
        .refs = 1, .node = node, .order = order, .input = *input, .state = state};
    memset(input, 0, sizeof *input);
    return mark;
}

const struct hr_place *hr__place_source(const struct hr_place *place)
{
    while (place->mark != NULL)
        place = &place->mark->input;
    return place;
}

/* Collects the places that lead to a place, from the source on. */
static size_t chain_of(const struct hr_place *place,
                       const struct hr_place *chain[HR_PLACE_MARKS_MAX + 1])
{
    const struct hr_place *back[HR_PLACE_MARKS_MAX + 1];
    size_t count = 0;

    for (;; place = &place->mark->input) {
        assert(count <= HR_PLACE_MARKS_MAX);
        back[count++] = place;
        if (place->mark == NULL)
            break;
    }
    for (size_t i = 0; i < count; i++)
        chain[i] = back[count - 1 - i];
    return count;
}

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

int hr__place_compare(const struct hr_place *a, const struct hr_place *b)
{
    const struct hr_place *x[HR_PLACE_MARKS_MAX + 1], *y[HR_PLACE_MARKS_MAX + 1];
    size_t n = chain_of(a, x), m = chain_of(b, y);
    int order = compare(x[0]->at, y[0]->at);

    if (order == 0)
        order = compare(x[0]->child, y[0]->child);
    for (size_t i = 1; order == 0 && i < n && i < m; i++) {
        order = compare(y[i]->mark->order, x[i]->mark->order);
        if (order == 0)
            order = compare(x[i]->at, y[i]->at);
    }
    return order != 0 ? order : compare(n, m);
}

void hr__place_copy(struct hr_place *to, const struct hr_place *from)
{
    assert(to != from);
    if (from->mark != NULL)
        __atomic_fetch_add(&from->mark->refs, 1, __ATOMIC_RELAXED);
    mark_unref(to->mark);
    *to = *from;
}

void hr__place_move(struct hr_place *to, struct hr_place *from)
{
    assert(to != from);
    mark_unref(to->mark);
    *to = *from;
    memset(from, 0, sizeof *from);
}

void hr__place_clear(struct hr_place *place)
{
    mark_unref(place->mark);
    memset(place, 0, sizeof *place);
}
