/*
 * api/iter.h - what an iterator is: a run in this process, one whose batches come from a
 * service, or one in this process whose first steps run there.
 */
#ifndef HR_API_ITER_H
#define HR_API_ITER_H

#include "engine/engine.h"
#include "fleet/remote.h"
#include "fleet/supply.h"

/* Either engine or remote is NULL; with a supply, remote. */
struct hr_iter {
    struct hr_engine *engine;
    struct hr_remote *remote;
    struct hr_supply *supply; /* feeds the engine, or NULL */
};

#endif
