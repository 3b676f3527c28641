/*
 * op/thread.h - what the owner of a thread context does beyond what ops may (op.h).
 */
#ifndef HR_OP_THREAD_H
#define HR_OP_THREAD_H

#include "op/op.h"

/* Destroy the objects that ops made in this thread. */
void hr__thread_objects_destroy(struct hr_thread *thread);

#endif
