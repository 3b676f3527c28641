/*
 * kernel/polyphase.h - changes the rate of a sound by a ratio of whole numbers.
 *
 * The tables depend on the two rates and the filter only. They are made once, are
 * read-only, and are shared between threads.
 */
#ifndef HR_KERNEL_POLYPHASE_H
#define HR_KERNEL_POLYPHASE_H

#include "core/arena.h"
#include "headrace/base.h"
#include "kernel/shape.h"

struct hr_polyphase;

/* HR_ERR_LIMIT if the tables for this ratio would take more than 64 MiB, HR_ERR_MEMORY.
 */
HR_CHECK enum hr_err
hr__polyphase_create(int32_t from, int32_t to, enum hr_rate_filter filter,
                     struct hr_polyphase **ret_polyphase, struct hr_error *reterr);
void hr__polyphase_destroy(struct hr_polyphase *polyphase); /* NULL is allowed */

/* Samples that `count` samples become: count * to / from, rounded up. */
int64_t hr__polyphase_count(const struct hr_polyphase *polyphase, int64_t count);

/* Floats that run() may write to `out`: at least the count. */
int64_t hr__polyphase_room(const struct hr_polyphase *polyphase, int64_t count);

/* Output i is at the time of input i * from / to; outside the sound is silence. Scratch
 * comes from the arena. HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__polyphase_run(const struct hr_polyphase *polyphase, struct hr_arena *arena,
                  const float *in, int64_t count, float *out);

#endif
