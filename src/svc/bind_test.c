/*
 * svc/bind_test.c - the dispatcher of independent consumers, event by event.
 */
#include "svc/bind.h"

#include "core/alloc.h"
#include "svc/svc_test_util.h"

#define JOB 7

static struct hr_binder binder;

static struct hr_bind_options plain(void)
{
    return (struct hr_bind_options){.job = JOB,
                                    .end = 95,
                                    .split = 10,
                                    .consumers = 3,
                                    .journal = 77,
                                    .window = 6,
                                    .ahead = 2,
                                    .peers_max = 20,
                                    .ttl_ns = 1000 * MS,
                                    .served_ns = 500 * MS,
                                    .silent_ns = 2000 * MS,
                                    .absent_ns = 2000 * MS};
}

static void start(void)
{
    const struct hr_bind_options options = plain();

    CHECK_OK(hr__bind_init(&binder, &options, NULL));
}

static void join_worker(hr_peer peer, uint32_t slots, uint64_t now)
{
    struct hr_frame hello = worker_hello(slots, peer);

    hr__bind_frame(&binder, peer, &hello, now, fresh());
    CHECK(sent(peer, HR_FRAME_WELCOME, 0) != NULL);
}

static void join_client(hr_peer peer, uint32_t rank, uint64_t nonce, uint64_t now)
{
    struct hr_frame hello = client_hello(JOB, 3, rank, nonce);

    hr__bind_frame(&binder, peer, &hello, now, fresh());
}

static void commit(hr_peer peer, uint32_t generation, uint64_t id, uint64_t from,
                   uint64_t until, uint64_t now)
{
    struct hr_frame frame = {HR_FRAME_COMMIT, .generation = generation};

    frame.u.commit.id = id;
    frame.count = from < until;
    frame.u.commit.ranges[0] = (struct hr_frame_range){from, until};
    hr__bind_frame(&binder, peer, &frame, now, fresh());
}

static void
finished(hr_peer peer, uint32_t generation, uint64_t from, uint64_t until, uint64_t now)
{
    struct hr_frame frame = {HR_FRAME_FINISHED, .count = 1, .generation = generation,
                             .job = JOB};

    frame.u.lease.ranges[0] = (struct hr_frame_range){from, until};
    hr__bind_frame(&binder, peer, &frame, now, fresh());
}

static void
took(hr_peer peer, uint32_t generation, uint32_t splits, uint64_t missing, uint64_t now)
{
    struct hr_frame frame = {HR_FRAME_PROGRESS, .position = missing, .count = splits,
                             .generation = generation};

    hr__bind_frame(&binder, peer, &frame, now, fresh());
}

static void progress(hr_peer peer, uint32_t generation, uint64_t missing, uint64_t now)
{
    took(peer, generation, 0, missing, now);
}

static void check_lease(hr_peer peer, size_t nth, uint64_t from, uint64_t until)
{
    const struct hr_frame *lease = sent(peer, HR_FRAME_LEASE, nth);

    CHECK(lease != NULL);
    CHECK_EQ_INT(lease->u.lease.ranges[0].from, from);
    CHECK_EQ_INT(lease->u.lease.ranges[0].until, until);
}

static void check_work(uint64_t committed, uint64_t leased, uint32_t leases)
{
    struct hr_bind_work work = hr__bind_work(&binder, 0);

    CHECK_EQ_INT(work.committed, committed);
    CHECK_EQ_INT(work.leased, leased);
    CHECK_EQ_INT(work.leases, leases);
}

TEST(a_binding_is_journalled_before_client_and_worker_hear_of_it)
{
    const struct hr_frame *bound;

    start();
    join_worker(1, 8, 0);
    join_client(2, 0, 99, 0);
    CHECK_EQ_INT(actions.items[0].u.row.kind, HR_ROW_GENERATION);
    CHECK_EQ_INT(sent(2, HR_FRAME_WELCOME, 0)->generation, 1);
    CHECK_EQ_INT(actions.items[2].kind, HR_ACTION_JOURNAL);
    CHECK_EQ_INT(actions.items[2].u.row.kind, HR_ROW_BIND);
    CHECK(!actions.items[2].u.row.lazy);
    CHECK_EQ_INT(actions.items[3].u.frame.type, HR_FRAME_BIND);
    CHECK_EQ_INT(actions.items[4].u.frame.type, HR_FRAME_LEASE);
    bound = sent(2, HR_FRAME_BIND, 1);
    CHECK(bound != NULL && bound->u.lease.ranges[0].from == 10);
    check_lease(1, 1, 10, 20);
    CHECK(sent(1, HR_FRAME_LEASE, 2) == NULL); /* two ahead */
    hr__bind_finish(&binder);
}

TEST(whoever_has_room_gets_the_next_split)
{
    start();
    join_worker(1, 8, 0);
    join_client(2, 0, 99, 0);
    join_client(3, 1, 98, 0);
    check_lease(1, 0, 20, 30);
    finished(1, 2, 20, 30, 1);
    check_work(0, 30, 3);
    CHECK(sent(1, HR_FRAME_LEASE, 0) == NULL); /* it has not taken that */
    took(3, 2, 1, 30, 1);
    check_lease(1, 0, 40, 50);
    CHECK_EQ_INT(sent(1, HR_FRAME_LEASE, 0)->u.lease.rank, 1);
    took(3, 2, 2, 40, 2);
    check_lease(1, 0, 50, 60);
    took(3, 2, 3, 50, 3);
    CHECK(sent(1, HR_FRAME_LEASE, 0) == NULL); /* the window ends */
    CHECK(sent(3, HR_FRAME_PROGRESS, 0) == NULL);
    hr__bind_finish(&binder);
}

TEST(who_can_get_nothing_before_it_commits_is_told_so)
{
    start();
    join_worker(1, 8, 0);
    join_client(2, 0, 99, 0);
    for (uint32_t n = 1; n < 6; n++) {
        took(2, 1, n, HR_FRAME_POSITION_MAX, n);
        CHECK(sent(2, HR_FRAME_PROGRESS, 0) == NULL);
    }
    took(2, 1, 6, HR_FRAME_POSITION_MAX, 6); /* the window ends */
    CHECK_EQ_INT(sent(2, HR_FRAME_PROGRESS, 0)->position, 0);
    commit(2, 1, 1, 0, 60, 7);
    check_lease(1, 0, 60, 70);
    commit(2, 1, 2, 60, 95, 8); /* not all of that is bound */
    check_refused(2, HR_ERR_CANCELLED, "does not follow");
    took(2, 1, 2, HR_FRAME_POSITION_MAX, 9);
    took(2, 1, 4, HR_FRAME_POSITION_MAX, 9);
    CHECK_EQ_INT(sent(2, HR_FRAME_PROGRESS, 0)->position, 60);
    commit(2, 1, 2, 60, 95, 10);
    took(2, 1, 0, HR_FRAME_POSITION_MAX, 11);
    CHECK_EQ_INT(sent(2, HR_FRAME_PROGRESS, 0)->position, 95);
    hr__bind_finish(&binder);
}

TEST(a_consumer_that_says_goodbye_leaves_what_it_has_to_others)
{
    start();
    join_worker(1, 8, 0);
    join_client(2, 0, 99, 0);
    join_client(3, 1, 98, 0);
    took(3, 2, 2, HR_FRAME_POSITION_MAX, 1);
    hr__bind_frame(&binder, 2, &(struct hr_frame){HR_FRAME_GOODBYE}, 2, fresh());
    CHECK_EQ_INT(actions.items[0].u.row.kind, HR_ROW_EVICT);
    CHECK_EQ_INT(binder.consumers[0].bound, 0);
    took(3, 2, 4, HR_FRAME_POSITION_MAX, 3);
    check_lease(1, 0, 0, 10);
    hr__bind_frame(&binder, 2, &(struct hr_frame){HR_FRAME_GOODBYE}, 4, fresh());
    CHECK_EQ_INT(actions.count, 0);
    hr__bind_finish(&binder);
}

TEST(commits_end_splits_and_are_answered_again_but_not_counted_twice)
{
    start();
    join_worker(1, 8, 0);
    join_client(2, 0, 99, 0);
    commit(2, 1, 1, 0, 14, 1);
    CHECK_EQ_INT(actions.items[0].u.row.kind, HR_ROW_COMMIT);
    CHECK_EQ_INT(sent(2, HR_FRAME_COMMITTED, 0)->u.commit.id, 1);
    CHECK_EQ_INT(binder.first, 1);
    check_work(14, 16, 2);
    commit(2, 1, 1, 0, 14, 2);
    CHECK_EQ_INT(actions.items[0].kind, HR_ACTION_SEND);
    CHECK_EQ_INT(sent(2, HR_FRAME_COMMITTED, 0)->u.commit.id, 1);
    commit(2, 1, 2, 13, 20, 3); /* committed up to 14 */
    check_refused(2, HR_ERR_CANCELLED, "does not follow from checkpoint 1");
    commit(2, 1, 3, 14, 20, 4);
    check_refused(2, HR_ERR_CANCELLED, "checkpoint 3 does not follow");
    commit(2, 1, 2, 50, 60, 5);
    check_refused(2, HR_ERR_CANCELLED, "does not follow");
    commit(2, 1, 2, 14, 30, 6);
    CHECK_EQ_INT(binder.first, 3);
    commit(2, 1, 3, 0, 0, 7); /* nothing new but the number */
    CHECK_EQ_INT(sent(2, HR_FRAME_COMMITTED, 0)->u.commit.id, 3);
    hr__bind_finish(&binder);
}

TEST(an_epoch_ends_when_all_is_committed)
{
    start();
    join_worker(1, 8, 0);
    join_client(2, 0, 99, 0);
    for (uint64_t n = 0; n < 10; n++) {
        CHECK(!hr__bind_is_done(&binder));
        finished(1, 1, 10 * n, n < 9 ? 10 * n + 10 : 95, n);
        commit(2, 1, n + 1, 10 * n, n < 9 ? 10 * n + 10 : 95, n);
        CHECK(sent(2, HR_FRAME_COMMITTED, 0) != NULL);
    }
    CHECK(hr__bind_is_done(&binder));
    check_work(95, 0, 0);
    CHECK_EQ_INT(binder.counts.positions_taken, 95);
    CHECK_EQ_INT(binder.counts.positions_finished, 95);
    CHECK_EQ_INT(binder.counts.leases_finished, 10);
    CHECK_EQ_INT(binder.peers[1].finished, 95);
    hr__bind_finish(&binder);
}

TEST(an_evicted_consumer_loses_what_it_has_not_committed_and_is_refused)
{
    start();
    join_worker(1, 8, 0);
    join_client(2, 0, 99, 0);
    commit(2, 1, 1, 0, 4, 1);
    join_client(3, 1, 98, 2);
    hr__bind_evict(&binder, 0, 3, fresh());
    CHECK_EQ_INT(actions.items[0].u.row.kind, HR_ROW_EVICT);
    took(3, 2, 1, 30, 4);
    check_lease(1, 0, 4, 10);
    CHECK_EQ_INT(sent(1, HR_FRAME_LEASE, 0)->u.lease.rank, 1);
    commit(2, 1, 2, 4, 10, 6);
    check_refused(2, HR_ERR_CANCELLED, "go back to its committed checkpoint");
    join_client(4, 0, 97, 7);
    CHECK_EQ_INT(sent(4, HR_FRAME_WELCOME, 0)->u.welcome.committed, 1);
    CHECK_EQ_INT(sent(4, HR_FRAME_WELCOME, 0)->generation, 4);
    hr__bind_evict(&binder, 2, 8, fresh()); /* it has nothing */
    CHECK_EQ_INT(actions.count, 0);
    hr__bind_finish(&binder);
}

TEST(silent_consumers_and_workers_are_given_up)
{
    start();
    join_worker(1, 8, 0);
    join_client(2, 0, 99, 0);
    join_worker(5, 8, 1900 * MS);
    join_client(3, 1, 98, 1900 * MS);
    hr__bind_tick(&binder, 2100 * MS, fresh());
    CHECK(place_of(HR_ACTION_CLOSE, 1) >= 0 && place_of(HR_ACTION_CLOSE, 2) >= 0);
    took(3, 2, 1, 30, 2100 * MS);
    CHECK_EQ_INT(binder.consumers[0].bound, 0);
    check_lease(5, 0, 0, 10);
    CHECK_EQ_INT(sent(5, HR_FRAME_LEASE, 0)->u.lease.rank, 1);
    hr__bind_finish(&binder);
}

TEST(a_new_incarnation_is_told_its_checkpoint_and_what_is_bound_to_it)
{
    const struct hr_frame *bound;
    struct hr_frame again = client_hello(JOB, 3, 0, 99);

    start();
    join_worker(1, 8, 0);
    join_client(2, 0, 99, 0);
    commit(2, 1, 1, 0, 4, 1);
    join_client(3, 0, 55, 2);
    check_refused(3, HR_ERR_STATE, "held by a client that is alive");
    hr__bind_lost(&binder, 2, 3, fresh());
    join_client(3, 0, 55, 4);
    CHECK_EQ_INT(sent(3, HR_FRAME_WELCOME, 0)->generation, 2);
    CHECK_EQ_INT(sent(3, HR_FRAME_WELCOME, 0)->u.welcome.committed, 1);
    CHECK_EQ_INT(sent(3, HR_FRAME_WELCOME, 0)->u.welcome.window, 77);
    bound = sent(3, HR_FRAME_BIND, 0);
    CHECK_EQ_INT(bound->count, 2);
    CHECK_EQ_INT(bound->u.lease.ranges[0].from, 4);
    check_lease(1, 0, 4, 10);
    again.generation = 1;
    hr__bind_frame(&binder, 4, &again, 5, fresh());
    check_refused(4, HR_ERR_CANCELLED, "evicted or replaced");
    again.generation = 3; /* none was given yet */
    hr__bind_frame(&binder, 5, &again, 5, fresh());
    check_refused(5, HR_ERR_CANCELLED, "known to another journal");
    hr__bind_finish(&binder);
}

TEST(leases_expire_and_what_was_lost_on_its_way_is_sent_again)
{
    start();
    join_worker(1, 8, 0);
    join_client(2, 0, 99, 0);
    join_worker(5, 8, 0);
    finished(1, 1, 0, 10, 10 * MS);
    took(2, 1, 1, 10, 10 * MS);
    check_lease(5, 0, 20, 30);
    hr__bind_tick(&binder, 1000 * MS, fresh());
    CHECK(sent(5, HR_FRAME_LEASE, 0) != NULL); /* 10..20, which the first had */
    progress(2, 1, HR_FRAME_POSITION_MAX, 1100 * MS);
    CHECK(sent(1, HR_FRAME_LEASE, 0) == NULL && sent(5, HR_FRAME_LEASE, 0) == NULL);
    progress(2, 1, 7, 1100 * MS);
    CHECK(sent(1, HR_FRAME_LEASE, 0) != NULL || sent(5, HR_FRAME_LEASE, 0) != NULL);
    hr__bind_lost(&binder, 5, 1200 * MS, fresh());
    CHECK(sent(1, HR_FRAME_LEASE, 0) != NULL);
    hr__bind_finish(&binder);
}

static enum hr_err replay(enum hr_row_kind kind, uint32_t rank, uint64_t number,
                          uint64_t from, uint64_t until)
{
    struct hr_row row = {.kind = kind, .job = JOB, .rank = rank, .number = number};

    row.generation = 3;
    row.count = from < until;
    row.ranges[0] = (struct hr_frame_range){from, until};
    return hr__bind_replay(&binder, &row, NULL);
}

TEST(a_restarted_dispatcher_knows_bindings_and_commits)
{
    const struct hr_frame *bound;

    start();
    CHECK_OK(replay(HR_ROW_GENERATION, 1, 99, 0, 0));
    CHECK_OK(replay(HR_ROW_BIND, 1, 0, 0, 10));
    CHECK_OK(replay(HR_ROW_BIND, 1, 0, 10, 20));
    CHECK_OK(replay(HR_ROW_COMMIT, 1, 5, 0, 12));
    join_client(2, 1, 99, 0);
    CHECK_EQ_INT(sent(2, HR_FRAME_WELCOME, 0)->u.welcome.committed, 5);
    bound = sent(2, HR_FRAME_BIND, 0);
    CHECK(bound->count == 1 && bound->u.lease.ranges[0].from == 12);
    CHECK_OK(replay(HR_ROW_EVICT, 1, 0, 0, 0));
    CHECK_EQ_INT(binder.consumers[1].bound, 0);
    CHECK_ERR(HR_ERR_FORMAT, replay(HR_ROW_EVICT, 3, 0, 0, 0));
    CHECK_ERR(HR_ERR_FORMAT, replay(HR_ROW_BIND, 1, 0, 90, 96));
    CHECK_ERR(HR_ERR_FORMAT, replay(HR_ROW_BIND, 1, 0, 90, 95)); /* beyond the window */
    hr__bind_finish(&binder);
}

TEST(wrong_peers_are_refused_with_a_reason)
{
    struct hr_frame hello = client_hello(JOB, 9, 3, 5);

    start();
    hr__bind_frame(&binder, 1, &hello, 0, fresh());
    check_refused(1, HR_ERR_NOT_FOUND, "no consumer of rank 3");
    progress(2, 1, 0, 0);
    check_refused(2, HR_ERR_STATE, "a PROGRESS frame is not expected here");
    join_client(3, 0, 99, 0);
    join_client(3, 1, 99, 0);
    check_refused(3, HR_ERR_NOT_FOUND, "no consumer of rank 1");
    join_worker(4, 8, 0);
    finished(4, 1, 5000, 6000, 0);
    commit(4, 1, 1, 0, 1, 0);
    check_refused(4, HR_ERR_STATE, "a COMMIT frame is not expected here");
    hr__bind_frame(&binder, 4, &(struct hr_frame){HR_FRAME_GOODBYE}, 0, fresh());
    CHECK(binder.peers[4].leaving);
    hr__bind_finish(&binder);
}

TEST(options_are_checked_and_failed_allocations_reported)
{
    struct hr_bind_options options = plain();

    for (uint64_t nth = 1; nth <= 3; nth++) {
        hr__fault_arm(HR_FAULT_ALLOC, nth);
        CHECK_ERR(HR_ERR_MEMORY, hr__bind_init(&binder, &options, NULL));
        hr__fault_arm(HR_FAULT_ALLOC, 0);
        hr__bind_finish(&binder);
    }
    options.ahead = 0;
    CHECK_ERR(HR_ERR_ARGUMENT, hr__bind_init(&binder, &options, NULL));
    hr__bind_finish(&binder);
}
