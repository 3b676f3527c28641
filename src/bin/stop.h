/*
 * stop.h - Ctrl-C: the first asks for an orderly end, the second ends the process.
 */
#ifndef BIN_STOP_H
#define BIN_STOP_H

#include "headrace/engine.h"

/* From here on the first SIGINT or SIGTERM cancels `iter` (may be NULL: only noted). */
void stop_watch(struct hr_iter *iter);

/* Back to the default action; call it before `iter` is closed. */
void stop_unwatch(void);

bool stop_requested(void);

#endif
