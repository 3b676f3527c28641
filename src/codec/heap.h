/*
 * codec/heap.h - a binary heap of numbers, the least first, in memory of its user.
 */
#ifndef HR_CODEC_HEAP_H
#define HR_CODEC_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct hr_heap {
    uint64_t *items;
    size_t count;
};

static inline void hr__heap_push(struct hr_heap *heap, uint64_t item)
{
    size_t at = heap->count++;

    for (; at > 0 && heap->items[(at - 1) / 2] > item; at = (at - 1) / 2)
        heap->items[at] = heap->items[(at - 1) / 2];
    heap->items[at] = item;
}

/* Removes the least item of a heap that is not empty. */
static inline uint64_t hr__heap_pop(struct hr_heap *heap)
{
    uint64_t first = heap->items[0], last = heap->items[--heap->count];
    size_t at = 0, child;

    while ((child = 2 * at + 1) < heap->count) {
        child += child + 1 < heap->count && heap->items[child + 1] < heap->items[child];
        if (heap->items[child] >= last)
            break;
        heap->items[at] = heap->items[child];
        at = child;
    }
    heap->items[at] = last;
    return first;
}

#endif
