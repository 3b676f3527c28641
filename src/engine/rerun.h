/*
 * engine/rerun.h - resuming with the records that a sequencer held.
 *
 * The state of a sequencer with the hook `held` may name the positions of the records
 * that it holds. The run then begins at the first of them, and of the records before the
 * saved place makes only these: to all others it is as if a filter had dropped them. This
 * works where no other sequencer and no expansion precedes it.
 */
#ifndef HR_ENGINE_RERUN_H
#define HR_ENGINE_RERUN_H

#include "core/str.h"
#include "headrace/base.h"

struct hr_engine;
struct hr_stage;

struct hr_rerun {
    uint64_t *positions; /* of this consumer, ascending */
    size_t count;
    uint64_t end; /* the saved place: 0 if there is nothing to make again */
};

void hr__rerun_finish(struct hr_rerun *rerun);

/* Appends the positions of the records that sequencer `k` holds after its input. False,
 * after any text, if they would not restore it. */
bool hr__rerun_save(const struct hr_stage *stage, size_t k, struct hr_str *out);

/* Prepares the run to make again the records in `text`, which hr__rerun_save() printed at
 * position `end`. HR_ERR_FORMAT if the text is damaged. */
HR_CHECK enum hr_err
hr__rerun_restore(struct hr_engine *engine, const struct hr_stage *stage, size_t k,
                  uint64_t epoch, uint64_t end, const char *text,
                  struct hr_error *reterr);

/* Whether the record at this position of stage 0 was sequenced before the run resumed. */
bool hr__rerun_is_past(const struct hr_engine *engine, uint64_t epoch, uint64_t position);
/* Whether it was, and is not needed again. */
bool hr__rerun_skips(const struct hr_engine *engine, uint64_t epoch, uint64_t position);

#endif
