/*
 * op/worker.h - what the owner of a worker does beyond what ops may (op.h).
 */
#ifndef HR_OP_WORKER_H
#define HR_OP_WORKER_H

#include "op/op.h"

/* Destroy the objects that ops made in this worker. */
void hr__worker_objects_destroy(struct hr_worker *worker);

#endif
