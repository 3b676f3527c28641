/*
 * ops/subset.c - samples without replacement.
 *
 * The logarithm is computed here: that of the C library has other last bits on other
 * machines, which could exchange two records.
 */
#include "ops/subset.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"

struct arrival {
    double time;
    uint32_t record;
};

struct sample {
    atomic_uint_fast64_t sequence; /* odd while it is being written; 0: empty */
    atomic_uint_fast64_t seed, epoch;
    _Atomic uint32_t *records; /* in the order of arrival */
};

struct hr_subset {
    uint64_t n, count;
    double *weights; /* at most 1 each; NULL: equal */
    pthread_mutex_t lock;
    struct sample samples[HR_SUBSET_SAMPLES];
    /* Guarded by lock. */
    struct arrival *heap; /* the latest arrival is first */
    size_t oldest;        /* the sample to be replaced next */
};

/* ---- arrival times ---- */

/* -log(x), 0 < x < 1, with a relative error of a few 2^-52. */
static double minus_log(double x)
{
    int power;
    double m = frexp(x, &power), s, square, sum = 0;

    if (m < 0.70710678118654752) {
        m *= 2;
        power--;
    }
    s = (m - 1) / (m + 1); /* log(m) = 2 (s + s^3 / 3 + s^5 / 5 + ...), |s| < 0.172 */
    square = s * s;
    for (int k = 21; k > 0; k -= 2)
        sum = sum * square + 1.0 / k;
    return -(power * 0.69314718055994531 + 2 * s * sum);
}

static struct arrival
arrival_of(const struct hr_subset *s, uint64_t seed, uint32_t epoch, uint64_t i)
{
    struct arrival arrival = {.record = (uint32_t)i};
    struct hr_rng rng;
    double u;

    hr__rng_init(&rng, seed, epoch, i);
    u = ((double)(hr__rng_u64(&rng) >> 12) + 0.5) * 0x1p-52; /* never 0 or 1 */
    arrival.time = s->weights == NULL ? u : minus_log(u) / s->weights[i];
    return arrival;
}

static bool is_later(const struct arrival *a, const struct arrival *b)
{
    return a->time > b->time || (a->time == b->time && a->record > b->record);
}

/* ---- finding a sample ---- */

/* Moves the entry at `at` down to its place in a heap of n. */
static void sift(struct arrival *heap, uint64_t n, uint64_t at)
{
    struct arrival moved = heap[at];

    for (uint64_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_later(&heap[child + 1], &heap[child]))
            child++;
        if (!is_later(&heap[child], &moved))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

/* Leaves the first `count` arrivals in s->heap, in order. */
static void find(struct hr_subset *s, uint64_t seed, uint32_t epoch)
{
    struct arrival *heap = s->heap;
    uint64_t held = 0;

    for (uint64_t i = 0; i < s->n; i++) {
        struct arrival arrival;

        if (s->weights != NULL && s->weights[i] <= 0)
            continue;
        arrival = arrival_of(s, seed, epoch, i);
        if (held < s->count) {
            heap[held++] = arrival;
            for (uint64_t k = held == s->count ? held / 2 : 0; k > 0; k--)
                sift(heap, held, k - 1);
        } else if (is_later(&heap[0], &arrival)) {
            heap[0] = arrival;
            sift(heap, held, 0);
        }
    }
    for (uint64_t end = held; end > 1; end--) {
        struct arrival latest = heap[0];

        heap[0] = heap[end - 1];
        sift(heap, end - 1, 0);
        heap[end - 1] = latest;
    }
}

/* ---- samples that threads share ---- */

/* Returns false if it is another sample or being written. */
static bool look_up(struct sample *sample, uint64_t seed, uint32_t epoch, uint64_t at,
                    uint32_t *ret_record)
{
    uint64_t before = atomic_load_explicit(&sample->sequence, memory_order_acquire);
    uint32_t record;

    if (before % 2 != 0 || before == 0 ||
        atomic_load_explicit(&sample->seed, memory_order_relaxed) != seed ||
        atomic_load_explicit(&sample->epoch, memory_order_relaxed) != epoch)
        return false;
    record = atomic_load_explicit(&sample->records[at], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&sample->sequence, memory_order_relaxed) != before)
        return false;
    *ret_record = record;
    return true;
}

static bool look_up_any(struct hr_subset *s, uint64_t seed, uint32_t epoch, uint64_t at,
                        uint32_t *ret_record)
{
    for (size_t i = 0; i < HR_SUBSET_SAMPLES; i++)
        if (look_up(&s->samples[i], seed, epoch, at, ret_record))
            return true;
    return false;
}

static void replace(struct hr_subset *s, uint64_t seed, uint32_t epoch)
{
    struct sample *sample = &s->samples[s->oldest];
    uint64_t sequence = atomic_load_explicit(&sample->sequence, memory_order_relaxed);

    find(s, seed, epoch);
    s->oldest = (s->oldest + 1) % HR_SUBSET_SAMPLES;
    atomic_store_explicit(&sample->sequence, sequence + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&sample->seed, seed, memory_order_relaxed);
    atomic_store_explicit(&sample->epoch, epoch, memory_order_relaxed);
    for (uint64_t i = 0; i < s->count; i++)
        atomic_store_explicit(&sample->records[i], s->heap[i].record,
                              memory_order_relaxed);
    atomic_store_explicit(&sample->sequence, sequence + 2, memory_order_release);
}

uint64_t hr__subset_at(struct hr_subset *s, uint64_t seed, uint32_t epoch, uint64_t at)
{
    uint32_t record = 0;

    if (look_up_any(s, seed, epoch, at, &record))
        return record;
    pthread_mutex_lock(&s->lock);
    if (!look_up_any(s, seed, epoch, at, &record)) {
        replace(s, seed, epoch);
        record = s->heap[at].record;
    }
    pthread_mutex_unlock(&s->lock);
    return record;
}

/* ---- life ---- */

/* Divides by the greatest, so that no quotient of a time is needlessly infinite. Returns
 * how many are above 0. */
static uint64_t scale(double *weights, uint64_t n)
{
    double most = 0;
    uint64_t positive = 0;

    for (uint64_t i = 0; i < n; i++)
        most = weights[i] > most ? weights[i] : most;
    for (uint64_t i = 0; i < n; i++) {
        if (weights[i] <= 0)
            continue;
        positive++;
        weights[i] /= most;
        weights[i] = weights[i] > 0x1p-1022 ? weights[i] : 0x1p-1022;
    }
    return positive;
}

void hr__subset_close(struct hr_subset *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < HR_SUBSET_SAMPLES; i++)
        hr__free((void *)s->samples[i].records);
    hr__free(s->heap);
    hr__free(s->weights);
    pthread_mutex_destroy(&s->lock);
    hr__free(s);
}

static bool allocate(struct hr_subset *s)
{
    bool good = true;

    for (size_t i = 0; i < HR_SUBSET_SAMPLES; i++) {
        s->samples[i].records = hr__calloc(s->count + 1, sizeof *s->samples[i].records);
        good = good && s->samples[i].records != NULL;
    }
    s->heap = hr__calloc(s->count + 1, sizeof *s->heap);
    return good && s->heap != NULL;
}

enum hr_err hr__subset_open(double *weights, uint64_t n, uint64_t count,
                            struct hr_subset **ret_subset, struct hr_error *error)
{
    struct hr_subset *s = hr__calloc(1, sizeof *s);
    uint64_t positive = weights != NULL ? scale(weights, n) : n;
    enum hr_err code = HR_OK;

    if (s == NULL) {
        hr__free(weights);
        return hr__fail(error, HR_ERR_MEMORY, "out of memory for a sample");
    }
    *s = (struct hr_subset){.n = n, .count = count, .weights = weights};
    pthread_mutex_init(&s->lock, NULL);
    if (positive < count)
        code =
            hr__fail(error, HR_ERR_ARGUMENT,
                     "without replacement, %llu different records are to be drawn, and "
                     "%llu have a weight above 0: set count to at most %llu, or "
                     "replacement to true",
                     (unsigned long long)count, (unsigned long long)positive,
                     (unsigned long long)positive);
    else if (!allocate(s))
        code =
            hr__fail(error, HR_ERR_MEMORY, "out of memory for a sample of %llu records",
                     (unsigned long long)count);
    if (code == HR_OK)
        *ret_subset = s;
    else
        hr__subset_close(s);
    return code;
}

bool hr__subset_same(const struct hr_subset *a, const struct hr_subset *b)
{
    if (a->n != b->n || a->count != b->count ||
        (a->weights == NULL) != (b->weights == NULL))
        return false;
    return a->weights == NULL ||
           memcmp(a->weights, b->weights, a->n * sizeof *a->weights) == 0;
}

const double *hr__subset_weights(const struct hr_subset *s)
{
    return s->weights;
}
