/*
 * engine/contention_test.c - how many threads are kept, when all are allowed again, and
 * when it is tried again.
 */
#include "core/clock.h"
#include "engine/contention.h"
#include "tests/support/check.h"

#define SECOND UINT64_C(1000000000)

/* One decision: pieces of work of which the threads queue for this share. Returns the
 * time after them. */
static uint64_t
work(struct hr_contention *c, double queued, uint64_t records, uint64_t now_ns)
{
    uint64_t ticks = (uint64_t)(4e6 / hr__ticks_to_ns(1000000) * 1e6);

    for (int i = 0; i < 17; i++) { /* the first begins the measurement */
        now_ns += 1000;
        hr__contention_note(c, ticks, (uint64_t)(queued * (double)ticks), records,
                            now_ns);
    }
    return now_ns;
}

static int kept(int threads, double queued)
{
    struct hr_contention c;

    hr__contention_init(&c, threads);
    work(&c, queued, 100, SECOND);
    return c.allowed;
}

TEST(threads_that_only_queue_are_not_kept)
{
    CHECK_EQ_INT(kept(2, 0), 2);
    CHECK_EQ_INT(kept(2, 0.3), 2); /* 1.4 of them run */
    CHECK_EQ_INT(kept(2, 0.45), 1);
    CHECK_EQ_INT(kept(2, 1), 1);
    CHECK_EQ_INT(kept(16, 0.94), 1);
    CHECK_EQ_INT(kept(16, 0.5), 8);
    CHECK_EQ_INT(kept(16, 0.01), 16);
    CHECK_EQ_INT(kept(1, 1), 1);
}

TEST(a_few_pieces_of_work_decide_nothing)
{
    struct hr_contention c;

    hr__contention_init(&c, 2);
    for (uint64_t i = 0; i < 16; i++)
        hr__contention_note(&c, UINT64_C(1) << 40, UINT64_C(1) << 40, 1, SECOND + i);
    CHECK_EQ_INT(c.allowed, 2);
    hr__contention_note(&c, UINT64_C(1) << 40, UINT64_C(1) << 40, 1, SECOND + 16);
    CHECK_EQ_INT(c.allowed, 1);
}

TEST(threads_that_are_missed_come_back_at_once)
{
    struct hr_contention c;
    uint64_t now;

    hr__contention_init(&c, 4);
    now = work(&c, 0.75, 100, SECOND);
    CHECK_EQ_INT(c.allowed, 1);
    now = work(&c, 0, 95, now); /* nearly as many records: they were not worth it */
    CHECK_EQ_INT(c.allowed, 1);
    hr__contention_retry(&c, now + 2 * SECOND);
    CHECK_EQ_INT(c.allowed, 4);
    now = work(&c, 0.75, 100, now + 2 * SECOND);
    CHECK_EQ_INT(c.allowed, 1);
    now = work(&c, 0, 60, now);
    CHECK_EQ_INT(c.allowed, 4);
    now = work(&c, 0.75, 100, now); /* nothing is tried for a while */
    CHECK_EQ_INT(c.allowed, 4);
    now = work(&c, 0.75, 100, now + 3 * SECOND);
    CHECK_EQ_INT(c.allowed, 1);
}

TEST(all_try_again_later_and_later)
{
    struct hr_contention c;
    uint64_t now = 5 * SECOND, pause = SECOND;

    hr__contention_init(&c, 4);
    for (int i = 0; i < 7; i++) {
        now = work(&c, 0.75, 100, now);
        CHECK_EQ_INT(c.allowed, 1);
        hr__contention_retry(&c, now + pause - 100000);
        CHECK_EQ_INT(c.allowed, 1);
        now += pause;
        hr__contention_retry(&c, now);
        CHECK_EQ_INT(c.allowed, 4);
        pause = 2 * pause < 16 * SECOND ? 2 * pause : 16 * SECOND;
    }
    now = work(&c, 0, 100, now); /* nobody queues any more: the next pause is short */
    CHECK_EQ_INT(c.allowed, 4);
    now = work(&c, 0.75, 100, now);
    hr__contention_retry(&c, now + SECOND);
    CHECK_EQ_INT(c.allowed, 4);
}
