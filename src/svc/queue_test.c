/*
 * svc/queue_test.c - queues against a list that is searched.
 */
#include "svc/queue.h"

#include <string.h>

#include "core/rng.h"
#include "tests/support/check.h"

#define NUMBERS 40u

static uint64_t keys[NUMBERS];
static bool queued[NUMBERS];

static void check_first(const struct hr_queue *queue)
{
    const struct hr_queue_item *first = hr__queue_first(queue);
    uint32_t best = NUMBERS, count = 0;

    for (uint32_t i = 0; i < NUMBERS; i++) {
        count += queued[i];
        if (queued[i] && (best == NUMBERS || keys[i] < keys[best]))
            best = i;
    }
    CHECK_EQ_INT(queue->count, count);
    CHECK((first == NULL) == (best == NUMBERS));
    if (first == NULL)
        return;
    CHECK_EQ_INT(first->number, best);
    CHECK_EQ_INT(first->key, keys[best]);
}

TEST(random_changes_leave_the_least_key_first_and_equal_ones_by_number)
{
    struct hr_queue queue;
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (int trial = 0; trial < 50; trial++) {
        memset(queued, 0, sizeof queued);
        CHECK_OK(hr__queue_init(&queue, NUMBERS, NULL));
        for (int step = 0; step < 400; step++) {
            uint32_t number = (uint32_t)hr__rng_below(&rng, NUMBERS);

            queued[number] = hr__rng_below(&rng, 3) > 0;
            keys[number] = hr__rng_below(&rng, 20);
            if (queued[number])
                hr__queue_put(&queue, number, keys[number]);
            else
                hr__queue_remove(&queue, number);
            check_first(&queue);
        }
        while (queue.count > 0) {
            uint32_t number = hr__queue_first(&queue)->number;

            hr__queue_remove(&queue, number);
            queued[number] = false;
            check_first(&queue);
        }
        hr__queue_finish(&queue);
    }
}
