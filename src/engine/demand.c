/*
 * engine/demand.c - see demand.h.
 */
#include "engine/demand.h"

#include <math.h>

#include "core/clock.h"
#include "core/error.h"
#include "engine/engine.h"

#define STEP_NS 10000000
#define WATCH_NS 2000000 /* between pieces of work of a thread that are measured */

enum hr_err hr__demand_check(double demand, struct hr_error *reterr)
{
    if (demand == HR_DEMAND_CONSUMER || (isfinite(demand) && demand >= 0))
        return HR_OK;
    return hr__fail(reterr, HR_ERR_ARGUMENT,
                    "a demand is a number of records per second, 0 for none, or "
                    "HR_DEMAND_CONSUMER; not %g",
                    demand);
}

/* Threads sleep where is_spare() of engine.c puts them: each must look again. */
static void wake_all(struct hr_engine *engine)
{
    pthread_cond_broadcast(&engine->work);
    pthread_cond_broadcast(&engine->left);
}

void hr__demand_set(struct hr_engine *engine, double demand)
{
    struct hr_demand *d = &engine->demand;
    bool told = demand > 0, was_told = engine->options.demand > 0;

    hr__engine_assert_locked(engine);
    engine->options.demand = demand;
    if (demand == 0 || engine->thread_count <= 1)
        d->on = false;
    else if (d->on && told == was_told)
        hr__control_demand(&d->control, told ? demand : 0);
    else {
        hr__control_init(&d->control, engine->thread_count, hr__cpu_count(),
                         told ? demand : 0);
        d->on = true;
    }
    wake_all(engine);
}

static void ask(struct hr_engine *engine, uint64_t now_ns)
{
    struct hr_demand *d = &engine->demand;
    struct hr_control_sums sums = {
        .now_ns = now_ns,
        .busy_ns = (uint64_t)hr__ticks_to_ns(d->busy_ticks),
        .watched_ns = (uint64_t)hr__ticks_to_ns(d->watched_ticks),
        .cpu_ns = d->cpu_ns,
        .delay_ns = d->delay_ns,
        .made = d->made,
        .batches = engine->delivered_batches,
        .taken = engine->delivered_records,
        .waits_ns = d->waits_ns,
    };

    if (d->waits_from_ns > 0 && d->waits_from_ns < now_ns)
        sums.waits_ns += now_ns - d->waits_from_ns;
    d->next_ns = now_ns + STEP_NS;
    if (hr__control_step(&d->control, &sums))
        wake_all(engine);
}

/* Records delivered for each record of the last stage, so far. */
static double yield(const struct hr_engine *engine)
{
    uint64_t made = engine->sequenced_records - engine->earlier_records;

    return engine->demand.passed > 0 && made > 0
               ? (double)made / (double)engine->demand.passed
               : 1;
}

/* The consumer's thread may be another one each time, which a watch cannot be of. */
bool hr__demand_watches(const struct hr_runner *runner)
{
    const struct hr_engine *engine = runner->engine;

    hr__engine_assert_locked(engine);
    return engine->demand.on && runner->number < engine->thread_count &&
           hr__ticks_to_ns(hr__ticks() - runner->watched_ticks) >= WATCH_NS;
}

void hr__demand_note(struct hr_engine *engine, const struct hr_claim *claim,
                     uint64_t ticks, const struct hr_cpu_use *use)
{
    struct hr_demand *d = &engine->demand;
    uint64_t now_ns;

    hr__engine_assert_locked(engine);
    if (!d->on)
        return;
    d->busy_ticks += ticks;
    if (use != NULL) {
        d->watched_ticks += ticks;
        d->cpu_ns += use->cpu_ns;
        d->delay_ns += use->delay_ns;
    }
    if (claim->stage != NULL && claim->stage->number + 1 == engine->stage_count)
        d->made += claim->count * yield(engine);
    now_ns = hr__now_ns();
    if (now_ns >= d->next_ns)
        ask(engine, now_ns);
}

void hr__demand_wait(struct hr_engine *engine, bool waits)
{
    struct hr_demand *d = &engine->demand;

    hr__engine_assert_locked(engine);
    if (waits)
        d->waits_from_ns = d->on ? hr__now_ns() : 0;
    else if (d->waits_from_ns > 0) {
        d->waits_ns += hr__now_ns() - d->waits_from_ns;
        d->waits_from_ns = 0;
    }
}

int hr__demand_threads(const struct hr_engine *engine)
{
    const struct hr_demand *d = &engine->demand;

    hr__engine_assert_locked(engine);
    return d->on ? d->control.threads : engine->thread_count;
}

bool hr__demand_releases(struct hr_engine *engine, int number)
{
    struct hr_demand *d = &engine->demand;

    hr__engine_assert_locked(engine);
    return d->on && number >= hr__control_keep(&d->control, hr__now_ns());
}
