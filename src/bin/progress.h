/*
 * progress.h - how far long work is, on stderr.
 *
 * On a terminal one line is redrawn a few times a second; elsewhere a plain line comes
 * every few seconds. Both cost a clock read per update otherwise.
 */
#ifndef BIN_PROGRESS_H
#define BIN_PROGRESS_H

#include "headrace/engine.h"

struct progress {
    bool quiet, live, shown;
    double began, drawn;     /* seconds; when the last line came */
    double rate, bytes_rate; /* smoothed */
    uint64_t records, bytes; /* at the last line */
    int64_t epochs, limit;   /* of the run, 0: unknown */
    int64_t epoch_first;
    const char *what; /* "photos" for progress_count */
};

void progress_begin(struct progress *progress, bool quiet, const char *what);

/* A run: call it after each batch. */
void progress_run(struct progress *progress, const struct hr_iter *iter);

/* Any counted work; an hr_progress_fn with user = the progress; false once the user has
 * pressed Ctrl-C (stop.h). */
bool progress_count(void *user, uint64_t done, uint64_t all);

/* Remove the live line. Call it before anything else is printed. */
void progress_clear(struct progress *progress);

#endif
