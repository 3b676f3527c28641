/*
 * api/compare.c - runs two graphs side by side, then in turns for their times. Inline, so
 * that CPU time is that of this thread.
 */
#include "api/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "kernel/pixels.h"

#define SLICE_NS 50000000u /* between calls of the progress function */

struct comparing {
    const struct hr_optimize_options *options;
    struct hr_graph *const *graphs;
    struct hr_iter *iters[2];
    struct hr_batch *batches[2];
    bool levels;
    double expected, most; /* ratio of their times, as predicted and allowed */
    enum hr_on_error on_error;
    struct hr_comparison *result;
};

/* ---- fields ---- */

static bool is_level(enum hr_dtype dtype)
{
    return dtype == HR_U8 || dtype == HR_F16 || dtype == HR_BF16 || dtype == HR_F32 ||
           dtype == HR_F64;
}

static double level(const struct hr_field_view *view, size_t at)
{
    float half;

    switch (view->dtype) {
    case HR_U8:
        return ((const uint8_t *)view->data)[at];
    case HR_F16:
        hr__f16_to_f32((const uint16_t *)view->data + at, &half, 1);
        return (double)half;
    case HR_BF16:
        hr__bf16_to_f32((const uint16_t *)view->data + at, &half, 1);
        return (double)half;
    case HR_F32:
        return (double)((const float *)view->data)[at];
    default:
        return ((const double *)view->data)[at];
    }
}

/* The largest difference, as a part of the range of the first field's levels. */
static double apart(const struct hr_field_view *a, const struct hr_field_view *b)
{
    double most = 0, low = HUGE_VAL, high = -HUGE_VAL;
    size_t count = a->bytes / hr_dtype_size(a->dtype);

    for (size_t i = 0; i < count; i++) {
        double x = level(a, i), y = level(b, i);

        low = fmin(low, x);
        high = fmax(high, x);
        if (x != y && !(isnan(x) && isnan(y)))
            most = isnan(x) || isnan(y) ? HUGE_VAL : fmax(most, fabs(x - y));
    }
    return most == 0 ? 0 : high > low ? most / (high - low) : HUGE_VAL;
}

static bool same_form(const struct hr_field_view *a, const struct hr_field_view *b)
{
    bool same = strcmp(a->name, b->name) == 0 && a->dtype == b->dtype &&
                a->ndim == b->ndim && a->levels == b->levels &&
                a->item_ndim == b->item_ndim && a->dims[0] == b->dims[0];

    for (int d = 1; same && a->offsets == NULL && d < a->ndim; d++)
        same = a->dims[d] == b->dims[d];
    return same;
}

/* Where the items of a ragged field begin and end, and their shapes. */
static bool same_splits(const struct hr_field_view *a, const struct hr_field_view *b)
{
    int64_t items = a->dims[0];

    for (int l = 0; l < a->levels; l++) {
        if (memcmp(a->splits[l], b->splits[l], ((size_t)items + 1) * sizeof(int64_t)) !=
            0)
            return false;
        if (l + 1 < a->levels)
            items = a->splits[l][items];
    }
    return a->shapes == NULL ||
           memcmp(a->shapes, b->shapes,
                  (size_t)(items * a->item_ndim) * sizeof(int64_t)) == 0;
}

static bool same_bytes(const struct hr_field_view *a, const struct hr_field_view *b)
{
    return a->bytes == b->bytes && (a->levels == 0 || same_splits(a, b)) &&
           (a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0);
}

static void compare_fields(struct comparing *c, const struct hr_field_view *a,
                           const struct hr_field_view *b)
{
    struct hr_comparison *result = c->result;

    if (!same_form(a, b))
        snprintf(result->wrong, sizeof result->wrong,
                 "field \"%.64s\" would have another shape or dtype", a->name);
    else if (!c->levels || same_bytes(a, b))
        return;
    else if (a->offsets == NULL && is_level(a->dtype))
        result->difference = fmax(result->difference, apart(a, b));
    else
        snprintf(result->wrong, sizeof result->wrong,
                 "field \"%.64s\" would have other values", a->name);
}

static void compare_batches(struct comparing *c)
{
    struct hr_comparison *result = c->result;
    size_t count = hr_batch_field_count(c->batches[0]);
    struct hr_field_view a, b;

    if (count != hr_batch_field_count(c->batches[1]) ||
        hr_batch_records(c->batches[0]) != hr_batch_records(c->batches[1]))
        snprintf(result->wrong, sizeof result->wrong,
                 "batches would have other numbers of fields or records");
    for (size_t i = 0; i < count && result->wrong[0] == '\0'; i++)
        if (hr_batch_field(c->batches[0], i, &a) == HR_OK &&
            hr_batch_field(c->batches[1], i, &b) == HR_OK)
            compare_fields(c, &a, &b);
}

/* ---- runs ---- */

static enum hr_err begin(struct comparing *c, int which, struct hr_error *reterr)
{
    struct hr_iter_options run;

    hr_iter_options_init(&run);
    run.seed = c->options->seed;
    run.variant = HR_VARIANT_INLINE;
    run.uncached = true;
    run.records_max = c->options->records_max;
    run.on_error = c->on_error;
    return hr_iter_open(c->graphs[which], &run, &c->iters[which], reterr);
}

static void end(struct comparing *c, int which)
{
    hr_batch_unref(c->batches[which]);
    hr_iter_close(c->iters[which]);
    c->batches[which] = NULL;
    c->iters[which] = NULL;
}

static enum hr_err progress(const struct comparing *c, struct hr_error *reterr)
{
    const struct hr_optimize_options *o = c->options;

    if (o->progress == NULL ||
        o->progress(o->user, (uint64_t)c->result->records, (uint64_t)o->records_max))
        return HR_OK;
    return hr__fail(reterr, HR_ERR_CANCELLED, "the comparison was stopped");
}

/* The next batch; reports progress meanwhile, too. */
static enum hr_err next(struct comparing *c, int which, struct hr_error *reterr)
{
    enum hr_err code = HR_OK;

    hr_batch_unref(c->batches[which]);
    c->batches[which] = NULL;
    while (code == HR_OK && c->batches[which] == NULL) {
        code = hr_iter_next_for(c->iters[which], SLICE_NS, &c->batches[which], reterr);
        if (code == HR_OK)
            code = progress(c, reterr);
    }
    return code;
}

/* One batch of each; HR_ERR_END after the last. */
static enum hr_err turn(struct comparing *c, struct hr_error *reterr)
{
    enum hr_err codes[2];

    for (int i = 0; i < 2; i++) {
        codes[i] = next(c, i, reterr);
        if (codes[i] != HR_OK && codes[i] != HR_ERR_END)
            return codes[i];
    }
    if (codes[0] != codes[1])
        snprintf(c->result->wrong, sizeof c->result->wrong, "there would be %s records",
                 codes[0] == HR_OK ? "fewer" : "more");
    if (codes[0] != HR_OK || codes[1] != HR_OK)
        return HR_ERR_END;
    compare_batches(c);
    c->result->records += hr_batch_records(c->batches[0]);
    return progress(c, reterr);
}

static enum hr_err compare(struct comparing *c, struct hr_error *reterr)
{
    enum hr_err code = begin(c, 0, reterr);

    if (code == HR_OK)
        code = begin(c, 1, reterr);
    while (code == HR_OK && c->result->wrong[0] == '\0')
        code = turn(c, reterr);
    end(c, 0);
    end(c, 1);
    return code == HR_ERR_END ? HR_OK : code;
}

/* A whole run: an iterator may have made later batches before it delivers the first. */
static enum hr_err
time_run(struct comparing *c, int which, double *ret_ns, struct hr_error *reterr)
{
    enum hr_err code = begin(c, which, reterr);
    uint64_t began = hr__cpu_thread_ns();

    while (code == HR_OK)
        code = next(c, which, reterr);
    *ret_ns = fmax((double)(hr__cpu_thread_ns() - began), 1) / (double)c->result->records;
    end(c, which);
    return code == HR_ERR_END ? HR_OK : code;
}

/* Both graphs in turns until hr__trial() knows enough. */
static enum hr_err time_rounds(struct comparing *c, struct hr_error *reterr)
{
    double ns[2][HR_TRIAL_ROUNDS_MAX], ratios[HR_TRIAL_ROUNDS_MAX];
    struct hr_comparison *result = c->result;
    size_t count = 0;

    do {
        for (int i = 0; i < 2; i++) { /* the one that begins changes */
            int which = i ^ (int)(count % 2);

            HR_TRY(time_run(c, which, &ns[which][count], reterr));
        }
        ratios[count] = ns[1][count] / ns[0][count];
        count++;
        result->trial = hr__trial(ratios, count, c->expected, c->most);
    } while (result->trial == HR_TRIAL_MORE);
    for (int i = 0; i < 2; i++)
        result->ns[i] = hr__trial_median(ns[i], count);
    result->ratio = hr__trial_median(ratios, count);
    return HR_OK;
}

static enum hr_err compare_and_time(struct comparing *c, struct hr_error *reterr)
{
    *c->result = (struct hr_comparison){0};
    HR_TRY(compare(c, reterr));
    if (c->result->wrong[0] != '\0' || c->result->records == 0)
        return HR_OK;
    return time_rounds(c, reterr);
}

enum hr_err
hr__compare(struct hr_graph *const graphs[2], const struct hr_optimize_options *options,
            bool levels, double expected, double most,
            struct hr_comparison *ret_comparison, struct hr_error *reterr)
{
    struct comparing c = {.options = options,
                          .graphs = graphs,
                          .levels = levels,
                          .expected = expected,
                          .most = most,
                          .on_error = HR_ON_ERROR_FAIL,
                          .result = ret_comparison};
    enum hr_err code = compare_and_time(&c, reterr);

    /* Runs that may skip records make whole batches, however few are compared. */
    if (code == HR_OK || code == HR_ERR_CANCELLED)
        return code;
    c.on_error = HR_ON_ERROR_SKIP;
    return compare_and_time(&c, reterr);
}
