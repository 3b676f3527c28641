/*
 * svc/queue.c - see queue.h.
 */
#include "svc/queue.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

enum hr_err hr__queue_init(struct hr_queue *queue, uint32_t room, struct hr_error *reterr)
{
    memset(queue, 0, sizeof *queue);
    queue->room = room;
    queue->items = hr__calloc(room, sizeof *queue->items);
    queue->places = hr__calloc(room, sizeof *queue->places);
    if (queue->items == NULL || queue->places == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    return HR_OK;
}

void hr__queue_finish(struct hr_queue *queue)
{
    hr__free(queue->items);
    hr__free(queue->places);
    memset(queue, 0, sizeof *queue);
}

static bool is_before(const struct hr_queue_item *a, const struct hr_queue_item *b)
{
    return a->key != b->key ? a->key < b->key : a->number < b->number;
}

static void set(struct hr_queue *queue, uint32_t at, struct hr_queue_item item)
{
    queue->items[at] = item;
    queue->places[item.number] = at + 1;
}

/* Moves the gap at `at` to where the item belongs, and fills it. */
static void settle(struct hr_queue *queue, uint32_t at, struct hr_queue_item item)
{
    uint32_t child;

    for (; at > 0 && is_before(&item, &queue->items[(at - 1) / 2]); at = (at - 1) / 2)
        set(queue, at, queue->items[(at - 1) / 2]);
    while ((child = 2 * at + 1) < queue->count) {
        child += child + 1 < queue->count &&
                 is_before(&queue->items[child + 1], &queue->items[child]);
        if (!is_before(&queue->items[child], &item))
            break;
        set(queue, at, queue->items[child]);
        at = child;
    }
    set(queue, at, item);
}

void hr__queue_put(struct hr_queue *queue, uint32_t number, uint64_t key)
{
    uint32_t place;

    assert(number < queue->room);
    place = queue->places[number];
    if (place != 0 && queue->items[place - 1].key == key)
        return;
    settle(queue, place != 0 ? place - 1 : queue->count++,
           (struct hr_queue_item){key, number});
}

void hr__queue_remove(struct hr_queue *queue, uint32_t number)
{
    uint32_t place;

    assert(number < queue->room);
    place = queue->places[number];
    if (place == 0)
        return;
    queue->places[number] = 0;
    queue->count--;
    if (place - 1 < queue->count)
        settle(queue, place - 1, queue->items[queue->count]);
}
