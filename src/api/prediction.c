/*
 * api/prediction.c - see prediction.h.
 */
#include "api/prediction.h"

#include "engine/engine.h"

static void set_machine(const struct hr_asked *asked, struct hr_cost_machine *ret)
{
    const struct hr_machine *m = &asked->machine;

    hr__cost_machine(asked->profile, ret);
    ret->cores = m->cores > 0 ? m->cores : ret->cores;
    ret->disk = m->disk > 0 ? m->disk : ret->disk;
    ret->copy = m->copy > 0 ? m->copy : ret->copy;
    ret->memory = m->memory;
    ret->price = m->price;
}

enum hr_err hr__predict(struct hr_graph *graph, const struct hr_cost_fact *facts,
                        const struct hr_asked *asked, struct hr_prediction *made,
                        struct hr_error *reterr)
{
    struct hr_cost_machine machine;
    struct hr_plan plan;
    struct hr_sizes sizes;
    enum hr_err code;

    set_machine(asked, &machine);
    HR_TRY(hr__engine_plan(graph, &asked->run, &plan, &sizes, reterr));
    made->threads = plan.threads;
    code = hr__cost_plan(&plan, facts, &machine, &made->cost, reterr);
    hr__plan_finish(&plan);
    return code;
}
