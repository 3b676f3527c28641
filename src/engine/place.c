/*
 * engine/place.c - places and marks.
 */
#include "engine/place.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"

/* ---- marks; a free one has the next in input.mark ---- */

static void release(struct hr_mark *mark)
{
    struct hr_marks *marks = mark->marks;

    if (mark->state != NULL)
        hr__free(mark->state);
    mark->input.mark = atomic_load_explicit(&marks->released, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&marks->released, &mark->input.mark,
                                                  mark, memory_order_release,
                                                  memory_order_relaxed))
        continue;
}

/* Takes a reference away. Returns whether it was the last one. */
static bool is_unused(struct hr_mark *mark)
{
    return __atomic_load_n(&mark->refs, __ATOMIC_ACQUIRE) == 1 ||
           __atomic_fetch_sub(&mark->refs, 1, __ATOMIC_ACQ_REL) == 1;
}

/* Iterative: a chain has a mark per sequencer and expansion of the graph. */
static void mark_unref(struct hr_mark *mark)
{
    while (mark != NULL && is_unused(mark)) {
        struct hr_mark *input = mark->input.mark;

        release(mark);
        mark = input;
    }
}

static struct hr_mark *take_free(struct hr_marks *marks)
{
    struct hr_mark *mark = marks->free;

    if (mark == NULL)
        mark = atomic_exchange_explicit(&marks->released, NULL, memory_order_acquire);
    if (mark == NULL)
        return hr__malloc(sizeof *mark);
    marks->free = mark->input.mark;
    return mark;
}

struct hr_mark *hr__mark_number(struct hr_marks *marks, uint32_t node, uint32_t order,
                                struct hr_place *input, uint64_t number)
{
    struct hr_mark *mark = take_free(marks);

    if (mark == NULL) {
        hr__place_clear(input);
        return NULL;
    }
    assert(input->mark == NULL || input->mark->order < order);
    *mark = (struct hr_mark){.marks = marks,
                             .refs = 1,
                             .node = node,
                             .order = order,
                             .input = *input,
                             .number = number};
    memset(input, 0, sizeof *input);
    return mark;
}

struct hr_mark *hr__mark_create(struct hr_marks *marks, uint32_t node, uint32_t order,
                                struct hr_place *input, char *state)
{
    struct hr_mark *mark = NULL;

    if (state != NULL)
        mark = hr__mark_number(marks, node, order, input, 0);
    else
        hr__place_clear(input);
    if (mark != NULL)
        mark->state = state;
    else
        hr__free(state);
    return mark;
}

void hr__marks_finish(struct hr_marks *marks)
{
    for (;;) {
        struct hr_mark *mark = marks->free;

        if (mark == NULL)
            mark = atomic_exchange(&marks->released, NULL);
        if (mark == NULL)
            break;
        marks->free = mark->input.mark;
        hr__free(mark);
    }
}

/* ---- places ---- */

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
