/*
 * svc/queue.h - numbers in the order of their keys, the least first.
 *
 * A binary heap that knows where each number lies, so that its key may change. Equal keys
 * go by number: the order does not depend on how it came about. Everything but
 * initialization takes O(log n) or less and allocates nothing.
 */
#ifndef HR_SVC_QUEUE_H
#define HR_SVC_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "headrace/base.h"

struct hr_queue_item {
    uint64_t key;
    uint32_t number;
};

struct hr_queue {
    struct hr_queue_item *items; /* a heap */
    uint32_t *places;            /* by number: 1 + its index in items; 0: not queued */
    uint32_t count, room;
};

/* For the numbers below `room`. HR_ERR_MEMORY. Finish it also after failure. */
HR_CHECK enum hr_err
hr__queue_init(struct hr_queue *queue, uint32_t room, struct hr_error *reterr);
void hr__queue_finish(struct hr_queue *queue);

/* Adds a number, or changes its key. */
void hr__queue_put(struct hr_queue *queue, uint32_t number, uint64_t key);
/* Does nothing if it is not queued. */
void hr__queue_remove(struct hr_queue *queue, uint32_t number);

/* The number with the least key, which stays queued; NULL if the queue is empty. */
static inline const struct hr_queue_item *hr__queue_first(const struct hr_queue *queue)
{
    return queue->count > 0 ? &queue->items[0] : NULL;
}

#endif
