/*
 * stop.h - Ctrl-C: the first requests a clean stop, the second kills the process.
 */
#ifndef BIN_STOP_H
#define BIN_STOP_H

#include "headrace/engine.h"

/* After this call, the first SIGINT or SIGTERM cancels `iter` (NULL: is only
 * recorded). */
void stop_watch(struct hr_iter *iter);

/* Restores the default action; call it before closing `iter`. */
void stop_unwatch(void);

bool stop_requested(void);

#endif
