/*
 * engine/threads.c - what a thread does next, and when it sleeps.
 *
 * A thread sequences a block that is ready, else claims records of the last stage that
 * has some, else sleeps. Threads that a budget, a lock of user code or a demand makes
 * spare claim nothing; they complete the requests that they have sent to worker
 * processes.
 */
#include "engine/budget.h"
#include "engine/run.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/thread.h"

/* Sleepers look at the cancel flag this often, so a signal handler need not wake them. */
#define WAIT_MS 50
/* Largest interval left undivided when a thread goes to sleep. */
#define ASLEEP_NS 20000u

/* ---- sleep ---- */

static void
wait_on(struct hr_engine *engine, pthread_cond_t *condition, uint64_t until_ns)
{
    uint64_t ns = hr__now_ns() + WAIT_MS * 1000000u;

    hr__cond_wait(condition, &engine->lock, ns < until_ns ? ns : until_ns);
}

void hr__engine_sleep(struct hr_runner *runner, pthread_cond_t *condition,
                      uint64_t until_ns)
{
    unsigned was;

    hr__meter_settle(&runner->meter, ASLEEP_NS);
    hr__meter_show(&runner->meter);
    was = hr__meter_switch(&runner->meter, hr__meter_asleep(&runner->meter));
    wait_on(runner->engine, condition, until_ns);
    hr__meter_switch(&runner->meter, was);
}

/* ---- work ---- */

/* Whether the plan lets another thread work on the stage. A thread whose requests overlap
 * has two claims. */
static bool may_claim(const struct hr_stage *stage)
{
    const struct hr_plan_stage *plan = stage->program.plan;
    int most = plan->overlap_ns > 0 ? 2 * plan->parallelism : plan->parallelism;

    return plan->parallelism >= stage->engine->thread_count || stage->claims < most;
}

static bool is_under_way(const struct hr_stage *stage)
{
    return stage->claims > 0 || stage->sequencing;
}

/* A budget that was divided again may allow fewer threads than there are, and so may a
 * lock of user code, or a demand. Thread 0 is never spare. */
static bool is_spare(const struct hr_runner *runner)
{
    const struct hr_engine *engine = runner->engine;

    hr__engine_assert_locked(engine);
    return runner->number < engine->thread_count &&
           (runner->number >= engine->plan.threads ||
            runner->number >= engine->contention.allowed ||
            runner->number >= hr__demand_threads(engine));
}

/* Whether the next batch needs whichever records of the stage are claimed next: no others
 * are under way, or all that are belong to the batch whose records are being claimed. */
static bool is_awaited(const struct hr_stage *stage, bool older)
{
    return !older || (stage->direct && stage->open != NULL && stage->live == 1);
}

static bool claim_any(struct hr_runner *runner, struct hr_claim *ret_claim)
{
    struct hr_engine *engine = runner->engine;
    bool helper = engine->thread_count > 0 && runner->number == engine->thread_count;
    bool older = false; /* records are under way that precede what would be claimed */

    if (engine->finished || is_spare(runner))
        return false;
    for (size_t i = engine->stage_count;
         i-- > 0 && !hr__stage_failed(&engine->stages[i]);) {
        struct hr_stage *stage = &engine->stages[i];

        older = older || is_under_way(stage);
        /* Where user code may wait, the consumer runs it only for records that its next
         * batch needs, since other threads may have completed that by then. It waits
         * neither for a call in another thread nor for a worker process, since only code
         * in its own thread can serve signals. */
        if (helper && ((stage->program.may_wait && !is_awaited(stage, older)) ||
                       stage->program.one_at_a_time || stage->program.processes))
            continue;
        if (!may_claim(stage) || !hr__stage_claim(stage, ret_claim))
            continue;
        stage->claims++;
        return true;
    }
    return false;
}

/* Whether to queue a second request for a worker process: not if that could leave another
 * worker process idle. */
static bool may_overlap(const struct hr_runner *runner)
{
    const struct hr_stage *stage = runner->under_way->pass.stage;
    double most = (double)stage->program.plan->overlap_ns;

    return stage->record_ns > 0 && stage->record_ns < most;
}

/* The stage of the claim, or of the outstanding request. */
static size_t stage_of(const struct hr_runner *runner, const struct hr_claim *claim)
{
    return claim->stage != NULL ? claim->stage->number
                                : runner->under_way->pass.stage->number;
}

/* Memory that the arena keeps for later records. */
static uint64_t scratch_of(const struct hr_arena *arena)
{
    return arena->recent_bytes > arena->used_bytes ? arena->recent_bytes
                                                   : arena->used_bytes;
}

/* After a piece of work that took `ticks`. */
static void
note_work(struct hr_runner *runner, const struct hr_claim *claim, uint64_t ticks)
{
    struct hr_engine *engine = runner->engine;
    uint64_t queued = runner->queued_ticks;

    hr__engine_assert_locked(engine);
    runner->queued_ticks = 0;
    if (runner->number < engine->thread_count && engine->thread_count > 1)
        hr__contention_note(&engine->contention, ticks, queued < ticks ? queued : ticks,
                            claim->count, hr__now_ns());
}

static uint64_t without(uint64_t ticks, uint64_t lost)
{
    return ticks > lost ? ticks - lost : 0;
}

bool hr__engine_work(struct hr_engine *engine, struct hr_runner *runner)
{
    struct hr_claim claim = {0};
    uint64_t begin = hr__ticks();
    struct hr_cpu_use use;
    bool watched;
    unsigned was;

    hr__engine_assert_locked(engine);
    if (hr__engine_pump(engine, runner)) {
        hr__demand_note(engine, &claim, hr__ticks() - begin, NULL);
        return true;
    }
    if (runner->under_way == NULL) {
        if (!claim_any(runner, &claim))
            return false;
    } else if (may_overlap(runner)) {
        (void)claim_any(runner, &claim);
    }
    watched = hr__demand_watches(runner);
    pthread_mutex_unlock(&engine->lock);
    if (watched)
        hr__cpu_watch_begin(&runner->watch);
    was = hr__meter_switch(&runner->meter,
                           hr__meter_records(&runner->meter, stage_of(runner, &claim)));
    begin = runner->meter.since;
    hr__run_claim(runner, &claim);
    if (claim.stage != NULL)
        hr__budget_measure(&claim, scratch_of(&runner->thread.arena));
    hr__meter_switch(&runner->meter, was);
    begin = runner->meter.since - begin;
    if (watched) {
        watched = hr__cpu_watch_end(&runner->watch, &use);
        runner->watched_ticks = runner->meter.since;
    }
    pthread_mutex_lock(&engine->lock);
    hr__meter_show(&runner->meter);
    note_work(runner, &claim, begin);
    begin = without(begin, claim.lost_ticks);
    hr__demand_note(engine, &claim,
                    watched ? without(use.ticks, claim.lost_ticks) : begin,
                    watched ? &use : NULL);
    if (claim.stage != NULL) {
        assert(claim.stage->claims > 0);
        claim.stage->claims--;
        hr__stage_complete(claim.stage, &claim, (uint64_t)hr__ticks_to_ns(begin));
    }
    return true;
}

/* ---- threads ---- */

/* Ends the worker processes of a thread that has no work, if the demand has not needed it
 * for a while. Returns whether it did, with the lock released meanwhile. */
static bool release_processes(struct hr_runner *runner)
{
    struct hr_engine *engine = runner->engine;

    if (runner->processes == 0 || !hr__demand_releases(engine, runner->number))
        return false;
    assert(runner->under_way == NULL);
    pthread_mutex_unlock(&engine->lock);
    hr__process_release(runner);
    pthread_mutex_lock(&engine->lock);
    return true;
}

static void *run_thread(void *user)
{
    struct hr_runner *runner = user;
    struct hr_engine *engine = runner->engine;

    if (engine->nice > 0)
        hr__thread_nice(engine->nice);
    hr__meter_adopt(&runner->meter);
    (void)hr__meter_begin(runner, (uint32_t)engine->graph->output);
    pthread_mutex_lock(&engine->lock);
    while (!atomic_load_explicit(&engine->stop, memory_order_relaxed)) {
        uint64_t begin;

        if (hr__engine_work(engine, runner) || release_processes(runner))
            continue;
        if (engine->consumer_waits && engine->out_count > 0)
            pthread_cond_signal(&engine->ready);
        engine->idle++;
        begin = hr__now_ns();
        hr__contention_retry(&engine->contention, begin);
        hr__engine_sleep(runner, is_spare(runner) ? &engine->left : &engine->work,
                         UINT64_MAX);
        engine->blocked_ns += hr__now_ns() - begin;
        engine->idle--;
    }
    hr__engine_leave(runner);
    return NULL;
}

/* Under the lock, so that no thread sees a runner whose `handle` is not set. */
static enum hr_err
start_thread(struct hr_engine *engine, int number, struct hr_error *reterr)
{
    struct hr_runner *runner = &engine->runners[number];
    char name[16];
    enum hr_err code;

    snprintf(name, sizeof name, "hr-thread-%d", number % 1000);
    pthread_mutex_lock(&engine->lock);
    code = hr__thread_start(&runner->handle, name, run_thread, runner, reterr);
    if (code == HR_OK) {
        runner->started = true;
        hr__engine_enter(runner);
    }
    pthread_mutex_unlock(&engine->lock);
    return code;
}

enum hr_err hr__engine_start_threads(struct hr_engine *engine, struct hr_error *reterr)
{
    engine->runners =
        hr__calloc((size_t)engine->thread_count + 1, sizeof *engine->runners);
    if (engine->runners == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    for (int i = 0; i <= engine->thread_count; i++)
        if (hr__runner_init(&engine->runners[i], engine, i) != HR_OK)
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    for (int i = 0; i < engine->thread_count; i++)
        HR_TRY(start_thread(engine, i, reterr));
    return HR_OK;
}
