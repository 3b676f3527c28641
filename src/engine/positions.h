/*
 * engine/positions.h - maps the consumer's positions to records. Any thread.
 */
#ifndef HR_ENGINE_POSITIONS_H
#define HR_ENGINE_POSITIONS_H

#include "engine/program.h"

struct hr_engine;

/* Sets *ret_id to the record at the consumer's `position` of the epoch, as `path` reads
 * it. A bad record's n-th substitute (`attempt`) is the n-th following record over all
 * ranks, wrapping around; it keeps the bad record's position. A record that only fills up
 * a share has a position of its own, behind the epoch's last. Time is charged to
 * the order ops on the way, unless `thread` is NULL. */
void hr__engine_map(const struct hr_engine *engine, const struct hr_path *path,
                    uint64_t epoch, uint64_t position, uint64_t attempt,
                    struct hr_thread *thread, struct hr_record_id *ret_id);
/* How many of `records` consecutive records of this rank, from one at `position` of the
 * epoch's order on, only fill up its share: they are the last ones. */
int64_t
hr__engine_padding(const struct hr_engine *engine, uint64_t position, int64_t records);
/* Position in the epoch's order over all ranks: the input of the order ops, or of those
 * before an order.shard if the graph has one. Behind the last one for records that fill
 * up a share; these begin again at 0. */
uint64_t hr__engine_global(const struct hr_engine *engine, const struct hr_path *path,
                           uint64_t epoch, uint64_t position);
/* Number of the consumer's positions in the epoch. */
uint64_t hr__engine_positions(const struct hr_engine *engine, uint64_t epoch);
/* Upper bound of epoch numbers: random draws count each pass of an order.repeat as an
 * epoch, up to HR_DRAW_EPOCHS_MAX. */
uint64_t hr__engine_epochs_max(const struct hr_engine *engine);
/* Whether another world did the record at this position of stage 0; if not, *ret_children
 * of its children are done. */
bool hr__engine_is_done(const struct hr_engine *engine, uint64_t epoch, uint64_t position,
                        uint64_t *ret_children);

#endif
