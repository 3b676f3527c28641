/*
 * engine/rerun.c - which records a resumed run makes again.
 */
#include "engine/rerun.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/error.h"
#include "engine/engine.h"

void hr__rerun_finish(struct hr_rerun *rerun)
{
    hr__free(rerun->positions);
    *rerun = (struct hr_rerun){0};
}

/* Whether only steps that keep the order and the number of records, or drop some, lead
 * from the source to the sequencer. */
static bool is_first(const struct hr_stage *stage, size_t k)
{
    const struct hr_stage *stages = stage->engine->stages;

    for (const struct hr_stage *s = stages; s <= stage; s++)
        if (s->program.plan->expand != HR_NO_NODE ||
            (s == stage ? k > 0 : s->sequencer_count > 0))
            return false;
    return true;
}

bool hr__rerun_save(const struct hr_stage *stage, size_t k, struct hr_str *out)
{
    const struct hr_sequencer *s = &stage->sequencers[k];

    return s->op->held != NULL && !s->draining && s->skip == 0 && is_first(stage, k) &&
           s->op->held(s->state, out) && out->length <= HR_SEQUENCE_STATE_MAX;
}

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static bool has(const uint64_t *sorted, size_t count, uint64_t number)
{
    return bsearch(&number, sorted, count, sizeof *sorted, compare) != NULL;
}

/* Reads numbers, each followed by a blank; NULL if they are not, or memory is short. */
static uint64_t *parse(const char *text, size_t *ret_count)
{
    uint64_t *numbers;
    size_t count = 0;

    for (const char *at = text; *at != '\0'; at++)
        count += *at == ' ';
    numbers = hr__malloc((count + 1) * sizeof *numbers);
    for (size_t i = 0; numbers != NULL && i < count; i++) {
        char *end;

        numbers[i] = strtoull(text, &end, 10);
        if (*text < '0' || *text > '9' || *end != ' ') {
            hr__free(numbers);
            return NULL;
        }
        text = end + 1;
    }
    if (numbers == NULL || *text != '\0') {
        hr__free(numbers);
        return NULL;
    }
    qsort(numbers, count, sizeof *numbers, compare);
    *ret_count = count;
    return numbers;
}

/* Turns positions over all ranks into this consumer's. False if some are not its own, or
 * not before `end`. */
static bool find_own(const struct hr_engine *engine, uint64_t epoch, uint64_t end,
                     uint64_t *numbers, size_t count)
{
    const struct hr_path *path = &engine->stages[0].program.paths[0];
    uint64_t *own = hr__malloc((count + 1) * sizeof *own);
    size_t left = count;

    while (own != NULL && left > 0 && end-- > 0) {
        uint64_t position = hr__engine_global(engine, path, epoch, end);

        if (position < numbers[0])
            break;
        if (has(numbers, count, position))
            own[--left] = end;
    }
    for (size_t i = 0; own != NULL && left == 0 && i < count; i++)
        numbers[i] = own[i];
    hr__free(own);
    return left == 0;
}

enum hr_err
hr__rerun_restore(struct hr_engine *engine, const struct hr_stage *stage, size_t k,
                  uint64_t epoch, uint64_t end, const char *text, struct hr_error *reterr)
{
    size_t count = 0;
    uint64_t *numbers = is_first(stage, k) ? parse(text, &count) : NULL;

    if (numbers == NULL || count == 0 || !find_own(engine, epoch, end, numbers, count)) {
        hr__free(numbers);
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the iterator state is damaged: \"%.40s\" are no records before "
                        "its position",
                        text);
    }
    hr__rerun_finish(&engine->rerun);
    engine->rerun = (struct hr_rerun){numbers, count, end};
    engine->stages[0].position = numbers[0];
    return HR_OK;
}

bool hr__rerun_is_past(const struct hr_engine *engine, uint64_t epoch, uint64_t position)
{
    return position < engine->rerun.end && epoch == engine->base_epoch;
}

bool hr__rerun_skips(const struct hr_engine *engine, uint64_t epoch, uint64_t position)
{
    return hr__rerun_is_past(engine, epoch, position) &&
           !has(engine->rerun.positions, engine->rerun.count, position);
}
