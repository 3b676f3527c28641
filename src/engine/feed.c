/*
 * engine/feed.c - the segment of steps that run on remote workers: takes the values that
 * they make.
 */
#include "engine/feed.h"

#include "engine/run.h"

/* Positions count from where the share begins in the epoch. */
static uint64_t begin_of(const struct hr_engine *engine, uint64_t epoch)
{
    uint64_t rank, world;

    if (epoch != engine->base_epoch)
        return 0;
    hr__state_share(engine->graph, &engine->options, &rank, &world);
    return world > 0 ? engine->base / world : 0;
}

enum hr_err hr__feed_begin(struct hr_engine *engine, struct hr_error *reterr)
{
    const struct hr_stage *first = &engine->stages[0];
    uint64_t rank, world;
    struct hr_feed_place place = {first->epoch,
                                  begin_of(engine, first->epoch) + first->position};

    if (engine->feed == NULL)
        return HR_OK;
    hr__state_share(engine->graph, &engine->options, &rank, &world);
    if (first->epoch_count == 0) /* all of the epoch was done, by whatever ranks */
        place = (struct hr_feed_place){first->epoch + 1, 0};
    else if (engine->base_epoch == first->epoch && world > 0 && engine->base % world != 0)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "a service cannot resume from this iterator state: it was saved "
                        "by another rank or world; resume without the service until the "
                        "epoch ends");
    return engine->feed->begin(engine->feed->user, &place, reterr);
}

/* The first record that is still in stage 0. */
static struct hr_feed_place floor_of(struct hr_engine *engine)
{
    const struct hr_stage *stage = &engine->stages[0];
    const struct hr_block *oldest = NULL;
    struct hr_feed_place place = {0};

    pthread_mutex_lock(&engine->lock);
    for (size_t i = 0; i < stage->block_count; i++) {
        const struct hr_block *block = &stage->blocks[i];

        if (block->state != HR_BLOCK_EMPTY &&
            (oldest == NULL || block->number < oldest->number))
            oldest = block;
    }
    if (oldest != NULL)
        place = (struct hr_feed_place){oldest->epoch,
                                       begin_of(engine, oldest->epoch) + oldest->first};
    pthread_mutex_unlock(&engine->lock);
    return place;
}

static struct hr_feed_place place_of(const struct hr_pass *pass, uint32_t row)
{
    const struct hr_block *block = pass->block;

    return (struct hr_feed_place){block->epoch,
                                  begin_of(pass->runner->engine, block->epoch) +
                                      block->first + pass->at + row};
}

/* Ends the run at this row: the service failed, so no record or node is at fault. */
static void
fail_outside(struct hr_pass *pass, uint32_t row, uint32_t node, enum hr_err code)
{
    pass->runner->error.code = code;
    hr__run_note_outside(pass->runner, pass->block, pass->at + row);
    hr__pass_ended(pass, row, node, HR_RECORD_BAD);
}

/* Nothing comes. */
static void give_up(struct hr_pass *pass, uint32_t node, enum hr_err code)
{
    struct hr_runner *runner = pass->runner;

    if (code == HR_ERR_CANCELLED && hr__pass_stopped(pass))
        memset(&runner->error, 0, sizeof runner->error);
    else
        fail_outside(pass, pass->chunk->live[0], node, code);
    hr__pass_give_up(pass, node);
}

/* Returns false if the record failed there. */
static bool take_row(struct hr_pass *pass, const struct hr_segment *segment,
                     struct hr_value *values, uint32_t row)
{
    struct hr_runner *runner = pass->runner;
    const struct hr_feed *feed = runner->engine->feed;
    struct hr_feed_place place = place_of(pass, row);
    struct hr_value *slots = hr__pass_slots(pass, row);
    bool failed = false;
    enum hr_err code = feed->get(feed->user, &place, values, &failed, &runner->error);

    if (code != HR_OK) {
        fail_outside(pass, row, feed->node, code);
        return true;
    }
    if (failed)
        return false;
    for (size_t f = 0; f < segment->result_count; f++) {
        slots[segment->results[f]] = values[f];
        pass->bytes += values[f].bytes;
    }
    return true;
}

/* Lists in `failed` the rows whose records failed there; returns how many. */
static uint32_t take_rows(struct hr_pass *pass, const struct hr_segment *segment,
                          struct hr_value *values, uint32_t *failed)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < pass->chunk->live_count; i++)
        if (!take_row(pass, segment, values, pass->chunk->live[i]))
            failed[count++] = pass->chunk->live[i];
    return count;
}

/* A record that failed there is made here again: a value that could not be made there may
 * not be needed, since a filter after the cut drops the record, say. So the record is
 * bad, by the same node, only if it is in a run without a service. */
static void run_failed(struct hr_pass *pass, const struct hr_segment *segment,
                       const uint32_t *failed, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        hr__pass_run_row(pass, segment, failed[i]);
}

static enum hr_err wait_for(struct hr_pass *pass)
{
    const struct hr_chunk *chunk = pass->chunk;
    struct hr_engine *engine = pass->runner->engine;
    struct hr_feed_place to = place_of(pass, chunk->live[chunk->live_count - 1]);
    struct hr_feed_place floor = floor_of(engine);
    uint64_t begin = hr__ticks();
    enum hr_err code = engine->feed->wait(engine->feed->user, &to, &floor, &engine->stop,
                                          &pass->runner->error);

    pass->lost_ticks += hr__ticks() - begin;
    return code;
}

void hr__feed_segment(struct hr_pass *pass, const struct hr_segment *segment)
{
    struct hr_runner *runner = pass->runner;
    uint32_t node = runner->engine->feed->node;
    unsigned was = hr__meter_begin(runner, node);
    struct hr_value *values = hr__arena_alloc(
        &runner->thread.arena, (segment->result_count + 1) * sizeof *values);
    uint32_t *failed =
        hr__arena_alloc(&runner->thread.arena, pass->chunk->live_count * sizeof *failed);
    uint32_t failed_count = 0;
    enum hr_err code;

    if (hr__pass_stopped(pass))
        code = HR_ERR_CANCELLED;
    else if (values == NULL || failed == NULL)
        code = hr__fail(&runner->error, HR_ERR_MEMORY, "out of memory");
    else
        code = wait_for(pass);
    if (code != HR_OK)
        give_up(pass, node, code);
    if (code == HR_OK)
        failed_count = take_rows(pass, segment, values, failed);
    hr__meter_end(runner, was);
    if (failed_count > 0)
        run_failed(pass, segment, failed, failed_count);
}
