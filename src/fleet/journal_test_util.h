/*
 * fleet/journal_test_util.h - a binder that a journal follows, and what every journal
 * does, whatever keeps it.
 */
#ifndef HR_FLEET_JOURNAL_TEST_UTIL_H
#define HR_FLEET_JOURNAL_TEST_UTIL_H

#include "fleet/journal.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/rng.h"
#include "svc/svc_test_util.h"

#define JOB 0xfedcba9876543210u
#define CONSUMERS 4u
#define WINDOW 6u

/* As a dispatcher does, from tick to tick. */
static inline void recover(struct hr_journal *journal)
{
    uint64_t began = hr__now_ns();
    struct hr_error error = {0};

    while (hr__journal_is_lost(journal) && hr__now_ns() - began < 60000000000u) {
        if (hr__journal_recover(journal, &error) != HR_OK)
            CHECK_EQ_INT(error.code, HR_ERR_IO);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    CHECK(!hr__journal_is_lost(journal));
}

/* Opens it; a server may still be busy with the end of the last session. */
static inline struct hr_journal *open_in(const char *where)
{
    struct hr_journal *journal = NULL;
    struct hr_error error = {0};

    CHECK_OK(hr__journal_open(where, false, &journal, &error));
    recover(journal);
    return journal;
}

static inline struct hr_journal_job job_of(void)
{
    return (struct hr_journal_job){
        .id = JOB, .end = 95, .split = 4, .name = "train", .tenant = ""};
}

static inline void init_binder(struct hr_binder *binder)
{
    const struct hr_journal_job job = job_of();
    const struct hr_bind_options options = {.job = job.id,
                                            .end = job.end,
                                            .split = job.split,
                                            .consumers = CONSUMERS,
                                            .window = WINDOW,
                                            .ahead = 2,
                                            .peers_max = 20,
                                            .ttl_ns = 1000 * MS,
                                            .served_ns = 500 * MS,
                                            .silent_ns = 2000 * MS,
                                            .absent_ns = 2000 * MS};

    CHECK_OK(hr__bind_init(binder, &options, NULL));
}

static inline enum hr_err
named(void *user, uint32_t rank, const char *name, struct hr_error *reterr)
{
    uint32_t *count = user;
    char wanted[16];

    (void)reterr;
    snprintf(wanted, sizeof wanted, "gpu%u", rank);
    CHECK_EQ_STR(name, wanted);
    CHECK_EQ_INT(rank, (*count)++);
    return HR_OK;
}

/* A binder that fails to be restored is none. */
static inline enum hr_err
try_restore(struct hr_journal *journal, struct hr_binder *to, struct hr_error *reterr)
{
    uint32_t count = 0;
    enum hr_err code;

    init_binder(to);
    code = hr__journal_restore(journal, to, named, &count, reterr);
    if (code != HR_OK)
        hr__bind_finish(to);
    else
        CHECK_EQ_INT(count, CONSUMERS);
    return code;
}

static inline void restore(struct hr_journal *journal, struct hr_binder *to)
{
    struct hr_error error = {0};

    CHECK_OK(try_restore(journal, to, &error));
}

/* All that a journal holds of a binder. */
struct held {
    uint64_t first, generation, splits[WINDOW][2], consumers[CONSUMERS][4];
};

static inline struct held held_by(const struct hr_binder *b)
{
    struct held held = {.first = b->first, .generation = b->generation};

    for (uint32_t i = 0; i < WINDOW; i++) {
        held.splits[i][0] = b->window[i].owner;
        held.splits[i][1] = b->window[i].committed;
    }
    for (uint32_t r = 0; r < CONSUMERS; r++) {
        held.consumers[r][0] = b->consumers[r].generation;
        held.consumers[r][1] = b->consumers[r].nonce;
        held.consumers[r][2] = b->consumers[r].committed;
        held.consumers[r][3] = b->consumers[r].bound;
    }
    return held;
}

static inline bool same(const struct held *a, const struct held *b)
{
    return memcmp(a, b, sizeof *a) == 0; /* no padding */
}

static inline bool agree(const struct hr_binder *a, const struct hr_binder *b)
{
    const struct held held[2] = {held_by(a), held_by(b)};

    return same(&held[0], &held[1]);
}

/* ---- a binder with consumers that come, commit and go ---- */

static struct hr_binder binder;
static struct hr_rng rng;
static uint64_t nonce;

static inline uint32_t below(uint32_t limit)
{
    return hr__rng_u32(&rng) % limit;
}

/* Commits a part of the first split that it has. */
static inline void commit(uint32_t rank, hr_peer peer)
{
    struct hr_frame frame = {HR_FRAME_COMMIT};
    const struct hr_bind_consumer *consumer = &binder.consumers[rank];

    frame.generation = consumer->generation;
    frame.u.commit.id = consumer->committed + 1;
    for (uint64_t n = binder.first;
         n < binder.first + WINDOW && n < binder.splits && frame.count == 0; n++) {
        const struct hr_bind_split *split = &binder.window[n % WINDOW];
        uint64_t from = n * 4 + split->committed, end = n * 4 + 4;

        end = end < 95 ? end : 95;
        if (split->owner != rank + 1)
            continue;
        frame.u.commit.ranges[frame.count++] =
            (struct hr_frame_range){from, from + 1 + below((uint32_t)(end - from))};
    }
    hr__bind_frame(&binder, peer, &frame, 0, fresh());
}

/* One event; the peers of consumers are 2 and on. */
static inline void act(void)
{
    uint32_t rank = below(CONSUMERS);
    struct hr_frame hello = client_hello(JOB, CONSUMERS, rank, 0);
    hr_peer peer = 2 + rank;

    fresh();
    if (binder.consumers[rank].peer == 0) {
        hello.u.hello.nonce = ++nonce;
        hr__bind_frame(&binder, peer, &hello, 0, fresh());
    } else if (below(8) == 0) {
        hr__bind_evict(&binder, rank, 0, &actions);
        hr__bind_lost(&binder, peer, 0, &actions);
    } else if (below(8) == 0) {
        hr__bind_lost(&binder, peer, 0, fresh());
    } else {
        commit(rank, peer);
    }
}

static inline void add_worker(void)
{
    struct hr_frame hello = worker_hello(100, 1);

    hr__bind_frame(&binder, 1, &hello, 0, fresh());
}

static inline void begin(void)
{
    init_binder(&binder);
    add_worker();
}

static inline void add_names(struct hr_journal *journal)
{
    const struct hr_journal_job job = job_of();

    CHECK_OK(hr__journal_add(journal, &job, NULL));
    for (uint32_t rank = 0; rank < CONSUMERS; rank++) {
        char name[16];

        snprintf(name, sizeof name, "gpu%u", rank);
        CHECK_OK(hr__journal_name(journal, JOB, rank, name, NULL));
    }
}

/* Both get a journal that is not there yet. */
typedef const char *new_place_fn(void);

static inline void check_restored(new_place_fn *new_place, int trials)
{
    const char *place;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (int trial = 0; trial < trials; trial++) {
        struct hr_journal *journal = open_in(place = new_place());

        begin();
        add_names(journal);
        for (int i = 0; i < 2000 && !hr__bind_is_done(&binder); i++) {
            struct hr_binder other;

            act();
            CHECK_OK(hr__journal_write(journal, &binder, &actions, NULL));
            if (below(10) == 0) {
                hr__journal_close(journal);
                journal = open_in(place);
            }
            restore(journal, &other);
            CHECK(agree(&binder, &other));
            hr__bind_finish(&other);
        }
        CHECK(hr__bind_is_done(&binder));
        hr__bind_finish(&binder);
        hr__journal_close(journal);
    }
}

static inline void check_jobs(new_place_fn *new_place)
{
    struct hr_journal *journal = open_in(new_place());
    struct hr_journal_job job = job_of(), found;

    CHECK_ERR(HR_ERR_NOT_FOUND, hr__journal_find(journal, JOB, &found, NULL));
    snprintf(job.tenant, sizeof job.tenant, "vision");
    CHECK_OK(hr__journal_add(journal, &job, NULL));
    CHECK_ERR(HR_ERR_IO, hr__journal_add(journal, &job, NULL)); /* it is there */
    CHECK_OK(hr__journal_name(journal, JOB, 0, "gpu0", NULL));
    CHECK_OK(hr__journal_find(journal, JOB, &found, NULL));
    CHECK(found.end == 95 && found.split == 4 && found.first == 0);
    CHECK_EQ_STR(found.name, "train");
    CHECK_EQ_STR(found.tenant, "vision");
    CHECK_OK(hr__journal_touch(journal, JOB, NULL));
    CHECK_OK(hr__journal_expire(journal, 100, NULL));
    CHECK_OK(hr__journal_find(journal, JOB, &found, NULL));
    sleep(2);
    CHECK_OK(hr__journal_expire(journal, 1, NULL));
    CHECK_ERR(HR_ERR_NOT_FOUND, hr__journal_find(journal, JOB, &found, NULL));
    CHECK_OK(hr__journal_add(journal, &job, NULL));
    CHECK_OK(hr__journal_name(journal, JOB, 0, "gpu0", NULL)); /* its rank is free */
    hr__journal_close(journal);
}

#endif
