/*
 * tests/svc/sim_shape.c - what a schedule is like: sizes and faults.
 */
#include <string.h>

#include "tests/svc/sim.h"

void sim_draw(struct sim *sim)
{
    struct sim_shape *s = &sim->shape;

    memset(s, 0, sizeof *s);
    s->workers = 1 + (sim_below(sim, 3) > 0 ? sim_below(sim, 3) : sim_below(sim, 8));
    s->clients = 1 + sim_below(sim, SIM_CLIENTS);
    s->split = 1 + sim_below(sim, 5);
    s->splits = 1 + sim_below(sim, 12);
    s->end = s->split * s->splits - sim_below(sim, s->split);
    s->frame_positions = 1 + sim_below(sim, 3);
    s->window = 1 + sim_below(sim, 30);
    s->budget = SIM_PAYLOAD * (1 + sim_below(sim, 24));
    s->ordered = sim_below(sim, 2) == 0;
    s->faulty_steps = 20 + sim_below(sim, 250);
    s->any_order = sim_below(sim, 4) == 0;
    s->roll_back = sim_below(sim, 3) == 0;
    s->late = sim_below(sim, 2) * 9500;
    s->silent_ms = 20 + sim_below(sim, 100);
    if (sim_below(sim, 2) == 0) {
        s->single_crash = 1 + sim_below(sim, s->faulty_steps);
    } else {
        s->crash = 50 + sim_below(sim, 500);
        s->cut = 100;
        s->between = sim_below(sim, 3) * 100;
        s->block = sim_below(sim, 2) * 100;
        s->forget = sim_below(sim, 2) * 100;
        s->lose = sim_below(sim, 4) == 0 ? 200 : 0;
    }
    if (sim_below(sim, 2) == 0)
        s->team = 1 + sim_below(sim, s->workers);
    if (sim_below(sim, 4) == 0)
        s->resize = 1 + sim_below(sim, s->faulty_steps);
    if (sim->design->draw != NULL)
        sim->design->draw(sim);
}
