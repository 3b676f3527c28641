/*
 * progress.h - progress of long work, on stderr.
 *
 * On a terminal one line is redrawn a few times per second; elsewhere a plain line is
 * printed every few seconds. In between, an update costs one clock read.
 */
#ifndef BIN_PROGRESS_H
#define BIN_PROGRESS_H

#include "headrace/engine.h"

struct progress {
    bool quiet, live, shown;
    double began, drawn;     /* drawn: time of the last line; in seconds */
    double rate, bytes_rate; /* smoothed */
    uint64_t records, bytes; /* at the last line */
    int64_t epochs, limit;   /* of the run, 0: unknown */
    int64_t epoch_first;
    const char *what; /* "photos" for progress_count */
    char waits[400];  /* the last text of progress_wait; "" if batches came since */
    double waited;    /* when it was printed */
};

void progress_begin(struct progress *progress, bool quiet, const char *what);

/* For a run: call it after each batch. */
void progress_run(struct progress *progress, const struct hr_iter *iter);

/* For a run of a service that waits for its next batch: prints what it waits for, if that
 * is more than the making of batches. */
void progress_wait(struct progress *progress, const struct hr_iter *iter);

/* For any counted work: an hr_progress_fn whose `user` is the progress. Returns false
 * once the user has pressed Ctrl-C (stop.h). */
bool progress_count(void *user, uint64_t done, uint64_t all);

/* Clears the live line. Call it before printing anything else. */
void progress_clear(struct progress *progress);

#endif
