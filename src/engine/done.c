/*
 * engine/done.c - sets of done positions: runs, their normal form and their text.
 */
#include "engine/done.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

void hr__done_finish(struct hr_done *done)
{
    hr__free(done->runs);
    hr__free(done->parts);
    memset(done, 0, sizeof *done);
}

static enum hr_err too_many(struct hr_error *reterr)
{
    return hr__fail(reterr, HR_ERR_LIMIT,
                    "the iterator state has more than %d runs of done records; merge the "
                    "states of fewer ranks",
                    HR_DONE_MAX);
}

static bool is_power_of_two(size_t n)
{
    return (n & (n - 1)) == 0;
}

static enum hr_err
add_run(struct hr_done *done, struct hr_done_run run, struct hr_error *reterr)
{
    size_t n = done->run_count;

    if (n == 2 * HR_DONE_MAX) /* normalising may need room for dense runs */
        return too_many(reterr);
    if (is_power_of_two(n)) {
        struct hr_done_run *grown =
            hr__realloc(done->runs, (n == 0 ? 1 : 2 * n) * sizeof *grown);

        if (grown == NULL)
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
        done->runs = grown;
    }
    done->runs[done->run_count++] = run;
    return HR_OK;
}

enum hr_err hr__done_add(struct hr_done *done, uint64_t from, uint64_t count,
                         uint64_t step, struct hr_error *reterr)
{
    uint64_t length, end;

    assert(step > 0);
    if (count == 0)
        return HR_OK;
    if (__builtin_mul_overflow(count, step, &length) ||
        __builtin_add_overflow(from, length, &end) || end > HR_STATE_NUMBER_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "the iterator state is beyond the end of any epoch");
    return add_run(done, (struct hr_done_run){step, from, count}, reterr);
}

enum hr_err hr__done_add_children(struct hr_done *done, uint64_t position,
                                  uint64_t children, struct hr_error *reterr)
{
    size_t n = done->part_count;

    if (children == 0)
        return HR_OK;
    if (position > HR_STATE_NUMBER_MAX || children > HR_STATE_NUMBER_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "the iterator state is beyond the end of any epoch");
    if (n == HR_DONE_MAX)
        return too_many(reterr);
    if (is_power_of_two(n)) {
        struct hr_done_part *grown =
            hr__realloc(done->parts, (n == 0 ? 1 : 2 * n) * sizeof *grown);

        if (grown == NULL)
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
        done->parts = grown;
    }
    done->parts[done->part_count++] = (struct hr_done_part){position, children};
    return HR_OK;
}

/* ---- the normal form ---- */

static uint64_t end_of(const struct hr_done_run *run)
{
    return run->from + (run->count - 1) * run->step + 1;
}

static int order(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* Steps, then remainders, then beginnings. */
static int compare_runs(const void *one, const void *other)
{
    const struct hr_done_run *a = one, *b = other;

    if (a->step != b->step)
        return order(a->step, b->step);
    if (a->from % a->step != b->from % b->step)
        return order(a->from % a->step, b->from % b->step);
    return order(a->from, b->from);
}

static int compare_parts(const void *one, const void *other)
{
    const struct hr_done_part *a = one, *b = other;

    return a->position != b->position ? order(a->position, b->position)
                                      : order(a->children, b->children);
}

static void sort_and_join(struct hr_done *done)
{
    size_t kept = 0;

    for (size_t i = 0; i < done->run_count; i++)
        if (done->runs[i].count == 1)
            done->runs[i].step = 1;
    if (done->run_count > 0)
        qsort(done->runs, done->run_count, sizeof *done->runs, compare_runs);
    for (size_t i = 0; i < done->run_count; i++) {
        struct hr_done_run run = done->runs[i], *last = &done->runs[kept - (kept > 0)];

        if (kept > 0 && last->step == run.step &&
            last->from % run.step == run.from % run.step &&
            run.from <= last->from + last->count * run.step) {
            uint64_t count = (run.from - last->from) / run.step + run.count;

            last->count = count > last->count ? count : last->count;
        } else {
            done->runs[kept++] = run;
        }
    }
    done->run_count = kept;
}

/* Where a remainder begins to be covered without a gap, or ceases to be. */
struct edge {
    uint64_t at;
    bool ends;
};

static int compare_edges(const void *one, const void *other)
{
    const struct edge *a = one, *b = other;

    return a->at != b->at ? order(a->at, b->at) : (int)b->ends - (int)a->ends;
}

/* Adds runs of step 1 where `count` runs of one step cover all its remainders. A run has
 * every position of its remainder from just after the one before its first to just before
 * the one after its last. */
static enum hr_err
add_dense(struct hr_done *done, size_t first, size_t count, struct hr_error *reterr)
{
    uint64_t step = done->runs[first].step, covered = 0;
    struct edge *edges;
    enum hr_err code = HR_OK;

    if (step == 1 || count < step)
        return HR_OK;
    edges = hr__malloc(2 * count * sizeof *edges);
    if (edges == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < count; i++) {
        const struct hr_done_run *run = &done->runs[first + i];

        edges[2 * i] = (struct edge){run->from < step ? 0 : run->from - step + 1, false};
        edges[2 * i + 1] = (struct edge){run->from + run->count * step, true};
    }
    qsort(edges, 2 * count, sizeof *edges, compare_edges);
    for (size_t i = 0; code == HR_OK && i < 2 * count; i++) {
        covered += edges[i].ends ? UINT64_MAX : 1;
        assert(covered <= step);
        if (covered == step && edges[i + 1].at > edges[i].at)
            code = add_run(
                done, (struct hr_done_run){1, edges[i].at, edges[i + 1].at - edges[i].at},
                reterr);
    }
    hr__free(edges);
    return code;
}

static size_t class_end(const struct hr_done *done, size_t first)
{
    size_t low = first, high = done->run_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (done->runs[middle].step == done->runs[first].step)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The run of this step and position's remainder that begins at or before the position, in
 * runs `first` to `end`; NULL if there is none. */
static struct hr_done_run *
find(const struct hr_done *done, size_t first, size_t end, uint64_t position)
{
    struct hr_done_run key;
    size_t low = first;

    if (first == end)
        return NULL;
    key = (struct hr_done_run){done->runs[first].step, position, 1};
    while (low < end) {
        size_t middle = low + (end - low) / 2;

        if (compare_runs(&done->runs[middle], &key) <= 0)
            low = middle + 1;
        else
            end = middle;
    }
    if (low == first || done->runs[low - 1].from % key.step != position % key.step)
        return NULL;
    return &done->runs[low - 1];
}

static size_t dense_count(const struct hr_done *done)
{
    return done->run_count > 0 && done->runs[0].step == 1 ? class_end(done, 0) : 0;
}

/* Shortens runs where one of step 1 covers an end; drops those without positions. */
static void remove_covered(struct hr_done *done)
{
    size_t dense = dense_count(done), kept = dense;

    for (size_t i = dense; i < done->run_count; i++) {
        struct hr_done_run run = done->runs[i];
        const struct hr_done_run *cover = find(done, 0, dense, run.from);

        if (cover != NULL && end_of(cover) > run.from) {
            uint64_t gone = (end_of(cover) - run.from + run.step - 1) / run.step;

            gone = gone < run.count ? gone : run.count;
            run.from += gone * run.step;
            run.count -= gone;
        }
        if (run.count == 0)
            continue;
        cover = find(done, 0, dense, end_of(&run) - 1);
        if (cover != NULL && end_of(cover) >= end_of(&run)) {
            if (cover->from <= run.from)
                continue;
            run.count = (cover->from - run.from + run.step - 1) / run.step;
        }
        done->runs[kept++] = run;
    }
    done->run_count = kept;
}

/* One entry per position, the largest; none where the record is done. */
static void join_parts(struct hr_done *done)
{
    uint64_t children;
    size_t kept = 0, count = done->part_count;

    if (count > 0)
        qsort(done->parts, count, sizeof *done->parts, compare_parts);
    done->part_count = 0;
    for (size_t i = 0; i < count; i++)
        if ((i + 1 == count || done->parts[i + 1].position != done->parts[i].position) &&
            !hr__done_has(done, done->parts[i].position, &children))
            done->parts[kept++] = done->parts[i];
    done->part_count = kept;
}

enum hr_err hr__done_normalise(struct hr_done *done, struct hr_error *reterr)
{
    size_t count;

    sort_and_join(done);
    count = done->run_count;
    for (size_t at = 0; at < count;) {
        size_t end = class_end(done, at);

        end = end < count ? end : count; /* dense runs follow */
        HR_TRY(add_dense(done, at, end - at, reterr));
        at = end;
    }
    sort_and_join(done);
    remove_covered(done);
    sort_and_join(done); /* a run of one position has step 1 */
    join_parts(done);
    return done->run_count <= HR_DONE_MAX ? HR_OK : too_many(reterr);
}

/* ---- questions ---- */

bool hr__done_has(const struct hr_done *done, uint64_t position, uint64_t *ret_children)
{
    size_t low = 0, high = done->part_count;

    *ret_children = 0;
    for (size_t at = 0; at < done->run_count;) {
        size_t end = class_end(done, at);
        const struct hr_done_run *run = find(done, at, end, position);

        if (run != NULL && position < end_of(run))
            return true;
        at = end;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (done->parts[middle].position < position)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < done->part_count && done->parts[low].position == position)
        *ret_children = done->parts[low].children;
    return false;
}

uint64_t hr__done_first_open(const struct hr_done *done, uint64_t base)
{
    size_t dense = dense_count(done);
    uint64_t children;

    for (size_t i = 0; i < HR_DONE_MAX && hr__done_has(done, base, &children); i++) {
        const struct hr_done_run *run = find(done, 0, dense, base);

        base = run != NULL && end_of(run) > base ? end_of(run) : base + 1;
    }
    return base;
}

void hr__done_cut(struct hr_done *done, uint64_t base)
{
    size_t kept = 0;

    for (size_t i = 0; i < done->run_count; i++) {
        struct hr_done_run run = done->runs[i];

        if (run.from < base) {
            uint64_t gone = (base - run.from + run.step - 1) / run.step;

            gone = gone < run.count ? gone : run.count;
            run.from += gone * run.step;
            run.count -= gone;
        }
        if (run.count > 0)
            done->runs[kept++] = run;
    }
    done->run_count = kept;
    kept = 0;
    for (size_t i = 0; i < done->part_count; i++)
        if (done->parts[i].position >= base)
            done->parts[kept++] = done->parts[i];
    done->part_count = kept;
    sort_and_join(done); /* a run of one position has step 1 */
}

bool hr__done_equal(const struct hr_done *a, const struct hr_done *b)
{
    return a->run_count == b->run_count && a->part_count == b->part_count &&
           (a->run_count == 0 ||
            memcmp(a->runs, b->runs, a->run_count * sizeof *a->runs) == 0) &&
           (a->part_count == 0 ||
            memcmp(a->parts, b->parts, a->part_count * sizeof *a->parts) == 0);
}

/* ---- text ---- */

void hr__done_print(const struct hr_done *done, struct hr_str *out)
{
    hr__str_add(out, "\"done\":[");
    for (size_t i = 0; i < done->run_count; i++) {
        const struct hr_done_run *run = &done->runs[i];

        hr__str_addf(out, "%s[%llu,%llu", i > 0 ? "," : "", (unsigned long long)run->from,
                     (unsigned long long)run->count);
        if (run->step > 1)
            hr__str_addf(out, ",%llu", (unsigned long long)run->step);
        hr__str_add(out, "]");
    }
    hr__str_add(out, "]");
    for (size_t i = 0; i < done->part_count; i++)
        hr__str_addf(out, "%s[%llu,%llu]", i > 0 ? "," : ",\"parts\":[",
                     (unsigned long long)done->parts[i].position,
                     (unsigned long long)done->parts[i].children);
    if (done->part_count > 0)
        hr__str_add(out, "]");
}

static enum hr_err damaged(struct hr_error *reterr)
{
    return hr__fail(reterr, HR_ERR_FORMAT,
                    "the iterator state is damaged: \"done\" must be a list of [from, "
                    "count] or [from, count, step], \"parts\" one of [position, "
                    "children]");
}

/* Reads 2 to `most` numbers, positive except for the first. */
static bool read_numbers(const struct hr_doc *list, size_t most, uint64_t ret_numbers[3])
{
    if (list->kind != HR_DOC_LIST || list->as.list.count < 2 ||
        list->as.list.count > most)
        return false;
    for (size_t i = 0; i < list->as.list.count; i++) {
        const struct hr_doc *item = list->as.list.items[i];

        if (item->kind != HR_DOC_INT || item->as.integer < (i > 0) ||
            (uint64_t)item->as.integer > HR_STATE_NUMBER_MAX)
            return false;
        ret_numbers[i] = (uint64_t)item->as.integer;
    }
    return true;
}

static enum hr_err parse(const struct hr_doc *runs, const struct hr_doc *parts,
                         struct hr_done *done, struct hr_error *reterr)
{
    if (runs == NULL || runs->kind != HR_DOC_LIST ||
        (parts != NULL && parts->kind != HR_DOC_LIST))
        return damaged(reterr);
    if (runs->as.list.count > HR_DONE_MAX)
        return too_many(reterr);
    for (size_t i = 0; i < runs->as.list.count; i++) {
        uint64_t n[3] = {0, 0, 1};

        if (!read_numbers(runs->as.list.items[i], 3, n) ||
            hr__done_add(done, n[0], n[1], n[2], NULL) == HR_ERR_LIMIT)
            return damaged(reterr);
    }
    for (size_t i = 0; parts != NULL && i < parts->as.list.count; i++) {
        uint64_t n[3];

        if (!read_numbers(parts->as.list.items[i], 2, n))
            return damaged(reterr);
        HR_TRY(hr__done_add_children(done, n[0], n[1], reterr));
    }
    return hr__done_normalise(done, reterr);
}

enum hr_err hr__done_parse(const struct hr_doc *runs, const struct hr_doc *parts,
                           struct hr_done *ret_done, struct hr_error *reterr)
{
    struct hr_done done = {0};
    enum hr_err code = parse(runs, parts, &done, reterr);

    if (code != HR_OK) {
        hr__done_finish(&done);
        return code;
    }
    *ret_done = done;
    return HR_OK;
}
