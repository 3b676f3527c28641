/*
 * engine/budget_test.c - how far threads run before they check the bytes of their claims.
 */
#include "engine/budget.h"
#include "engine/engine.h"
#include "tests/support/check.h"

TEST(all_threads_together_run_few_records_between_two_checks)
{
    static struct hr_engine engine;
    static struct hr_stage stage = {.engine = &engine};
    static const double times[] = {0, 1, 500, 4000, 1e7};
    struct hr_claim claim = {.stage = &stage};

    for (engine.thread_count = 0; engine.thread_count <= 16; engine.thread_count++)
        for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
            uint32_t threads =
                engine.thread_count > 0 ? (uint32_t)engine.thread_count : 1;
            uint32_t step;

            claim.record_ns = times[i];
            claim.room_bytes = 1000;
            step = hr__budget_step(&claim);
            CHECK(step == 2 || (step > 2 && step * threads <= 8));
            claim.room_bytes = UINT64_MAX; /* sizes are known, or there is no budget */
            CHECK(hr__budget_step(&claim) == UINT32_MAX);
        }
}
