/*
 * api/iter.h - what an iterator is: a run in this process, or one whose batches come from
 * a service.
 */
#ifndef HR_API_ITER_H
#define HR_API_ITER_H

#include "engine/engine.h"
#include "fleet/remote.h"

/* One of them is NULL. */
struct hr_iter {
    struct hr_engine *engine;
    struct hr_remote *remote;
};

#endif
