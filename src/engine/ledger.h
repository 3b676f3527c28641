/*
 * engine/ledger.h - the ledger of bad records.
 *
 * Sequencers meet bad records before the consumer has the batches around them, and
 * several stages may do so at once. A line waits here until the consumer has taken a
 * batch that follows its record. So the file lists the bad records of what was consumed,
 * in the order of records: the same lines in every variant, each once even if a run is
 * saved, closed and resumed. Unordered plans write lines at once.
 */
#ifndef HR_ENGINE_LEDGER_H
#define HR_ENGINE_LEDGER_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/block.h"
#include "engine/place.h"

struct hr_ledger_line;

struct hr_ledger {
    int fd; /* -1: none is kept */
    pthread_mutex_t lock;
    struct hr_ledger_line *lines; /* not yet written; in the order of records */
    atomic_size_t waiting;        /* number of lines; written under the lock */
};

/* No ledger is kept. */
void hr__ledger_init(struct hr_ledger *ledger);
/* Opens `path` for appending. */
HR_CHECK enum hr_err
hr__ledger_open(struct hr_ledger *ledger, const char *path, struct hr_error *reterr);
/* Discards the lines that wait. */
void hr__ledger_finish(struct hr_ledger *ledger);

/* A record of stage `stage` is bad; `after` is the place after it in the stage's input.
 * `ends`: the run ends with it. Called by that stage's sequencer. If memory runs out the
 * line is lost; the run's counters still include it. */
void hr__ledger_add(struct hr_ledger *ledger, const struct hr_bad *bad, size_t stage,
                    uint64_t epoch, const struct hr_place *after, const char *outcome,
                    bool ends);

/* The epoch ended at this place: a run that starts there reads no more of it. So the
 * lines of later places, of this stage and those before it, move to the place. Called by
 * that stage's sequencer. */
void hr__ledger_settle(struct hr_ledger *ledger, size_t stage, uint64_t epoch,
                       const struct hr_place *place);

/* Writes the lines of records before the place (NULL: all lines). Called by the consumer.
 * Lines that cannot be written are lost. */
void hr__ledger_write(struct hr_ledger *ledger, uint64_t epoch,
                      const struct hr_place *place);
/* Writes the line of the record that ended the run at this stage, and those before it;
 * nothing if the run ended for another reason. */
void hr__ledger_write_end(struct hr_ledger *ledger, size_t stage);

#endif
