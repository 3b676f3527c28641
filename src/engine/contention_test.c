/*
 * engine/contention_test.c - how many threads are kept, and when the others try again.
 */
#include "core/clock.h"
#include "engine/contention.h"
#include "tests/support/check.h"

#define SECOND UINT64_C(1000000000)

/* One decision: pieces of work of which the threads queue for this share. */
static void work(struct hr_contention *c, double queued, uint64_t now_ns)
{
    uint64_t ticks = (uint64_t)(2e6 / hr__ticks_to_ns(1000000) * 1e6);

    for (int i = 0; i < 16; i++)
        hr__contention_note(c, ticks, (uint64_t)(queued * (double)ticks), now_ns);
}

static int kept(int threads, double queued)
{
    struct hr_contention c;

    hr__contention_init(&c, threads);
    work(&c, queued, 0);
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
    for (int i = 0; i < 15; i++)
        hr__contention_note(&c, UINT64_C(1) << 40, UINT64_C(1) << 40, 0);
    CHECK_EQ_INT(c.allowed, 2);
    hr__contention_note(&c, UINT64_C(1) << 40, UINT64_C(1) << 40, 0);
    CHECK_EQ_INT(c.allowed, 1);
}

TEST(all_try_again_later_and_later)
{
    struct hr_contention c;
    uint64_t now = 5 * SECOND, pause = SECOND;

    hr__contention_init(&c, 4);
    for (int i = 0; i < 7; i++) {
        work(&c, 0.75, now);
        CHECK_EQ_INT(c.allowed, 1);
        hr__contention_retry(&c, now + pause - 1);
        CHECK_EQ_INT(c.allowed, 1);
        now += pause;
        hr__contention_retry(&c, now);
        CHECK_EQ_INT(c.allowed, 4);
        pause = 2 * pause < 16 * SECOND ? 2 * pause : 16 * SECOND;
    }
    work(&c, 0, now); /* nobody queues any more: the next pause is short again */
    CHECK_EQ_INT(c.allowed, 4);
    work(&c, 0.75, now);
    hr__contention_retry(&c, now + SECOND);
    CHECK_EQ_INT(c.allowed, 4);
}
