/*
 * svc/credit.c - dividing a client's budget among its workers.
 */
#include "svc/credit.h"

#include <string.h>

#include "core/alloc.h"

enum hr_err hr__credit_init(struct hr_credit *credit, size_t workers, uint64_t budget,
                            struct hr_error *reterr)
{
    credit->room = credit->parts = workers;
    credit->budget = budget;
    credit->workers = hr__calloc(workers + 1, sizeof *credit->workers);
    if (credit->workers == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    return HR_OK;
}

void hr__credit_finish(struct hr_credit *credit)
{
    hr__free(credit->workers);
    memset(credit, 0, sizeof *credit);
}

struct hr_credit_worker *hr__credit_find(struct hr_credit *credit, hr_peer peer)
{
    for (size_t i = 0; i < credit->room; i++)
        if (credit->workers[i].peer == peer)
            return &credit->workers[i];
    return NULL;
}

struct hr_credit_worker *
hr__credit_add(struct hr_credit *credit, hr_peer peer, struct hr_actions *actions)
{
    struct hr_credit_worker *worker = hr__credit_find(credit, 0);

    if (worker == NULL) {
        hr__close(actions, peer);
        return NULL;
    }
    memset(worker, 0, sizeof *worker);
    worker->peer = peer;
    return worker;
}

void hr__credit_remove(struct hr_credit *credit, hr_peer peer)
{
    struct hr_credit_worker *worker = hr__credit_find(credit, peer);

    if (worker != NULL)
        memset(worker, 0, sizeof *worker);
}

static uint64_t on_its_way(const struct hr_credit_worker *worker)
{
    return worker->granted > worker->received ? worker->granted - worker->received : 0;
}

static void tell(struct hr_credit_worker *worker, const struct hr_credit_use *use,
                 struct hr_actions *actions)
{
    struct hr_frame *frame;

    if (hr__actions_left(actions) == 0)
        return;
    if (worker->granted < worker->received) /* by the frame at the position */
        worker->granted = worker->received;
    frame = hr__send(actions, worker->peer, HR_FRAME_CREDIT);
    frame->position = use->position;
    frame->generation = use->generation;
    frame->u.credit.total = worker->told = worker->granted;
    worker->told_position = use->position;
}

/* Tells a worker that has used up what it was told, at once; others when a quarter of
 * their part has come together. */
static bool is_worth_telling(const struct hr_credit_worker *worker,
                             const struct hr_credit_use *use, uint64_t part)
{
    if (worker->granted - worker->told > part / 4)
        return true;
    return worker->told <= worker->received &&
           (worker->granted > worker->told || worker->told_position != use->position);
}

void hr__credit_give(struct hr_credit *credit, const struct hr_credit_use *use,
                     struct hr_actions *actions)
{
    uint64_t used = use->held, budget = credit->budget;
    uint64_t part = budget > credit->parts ? budget / credit->parts : 1;

    for (size_t i = 0; i < credit->room; i++)
        used += on_its_way(&credit->workers[i]);
    for (size_t i = 0; i < credit->room; i++) {
        struct hr_credit_worker *worker = &credit->workers[i];
        uint64_t has = on_its_way(worker), more = has < part ? part - has : 0;

        if (!worker->joined)
            continue;
        more = used >= budget ? 0 : more < budget - used ? more : budget - used;
        if (worker->granted < worker->received)
            worker->granted = worker->received;
        worker->granted += more;
        used += more;
        if (is_worth_telling(worker, use, part))
            tell(worker, use, actions);
    }
}

void hr__credit_remind(struct hr_credit_worker *worker, const struct hr_credit_use *use,
                       struct hr_actions *actions)
{
    if (worker->silent)
        tell(worker, use, actions);
    worker->silent = true;
}
