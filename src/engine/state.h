/*
 * engine/state.h - states as text: printed, read, restored, merged.
 */
#ifndef HR_ENGINE_STATE_H
#define HR_ENGINE_STATE_H

#include "core/str.h"
#include "engine/cursor.h"
#include "engine/done.h"

struct hr_engine;

/* state.c: a state that was read, of this or another engine. `fingerprint` lies in the
 * document; `done` is the caller's to finish. */
#define HR_STATE_VERSION 2
struct hr_saved {
    const char *fingerprint;
    uint64_t seed, base, world, rank, records;
    bool moves, even;
    struct hr_cursor cursor;
    struct hr_done done;
};
HR_CHECK enum hr_err hr__saved_parse(const struct hr_doc *doc, struct hr_saved *ret_saved,
                                     struct hr_error *reterr);
HR_CHECK enum hr_err hr__state_print(const struct hr_engine *engine, struct hr_str *out);
HR_CHECK enum hr_err
hr__state_restore(struct hr_engine *engine, const char *json, struct hr_error *reterr);

/* merge.c: one state of those of all ranks of a world, for any world. */
HR_CHECK enum hr_err hr__state_merge(const char *const *states, size_t count,
                                     struct hr_str *out, struct hr_error *reterr);

#endif
