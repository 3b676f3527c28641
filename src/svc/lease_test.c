/*
 * svc/lease_test.c - the dispatcher, event by event.
 */
#include "svc/lease.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "svc/svc_test_util.h"

#define JOB 7
#define KIN 70

static struct hr_dispatcher d;

static const struct hr_lease_options usual = {.peers_max = 20,
                                              .jobs_max = 2,
                                              .ranges_max = 32,
                                              .known_max = 2,
                                              .lease_min = 20,
                                              .lease_max = 1000,
                                              .target_ns = 100 * MS,
                                              .ttl_ns = 1000 * MS,
                                              .served_ns = 500 * MS,
                                              .hedge_ns = 300 * MS,
                                              .silent_ns = 2000 * MS};

static void start(uint64_t end, uint64_t split, uint64_t window, uint32_t world)
{
    const struct hr_lease_job_options job = {JOB, end, split, window, world, KIN};

    CHECK_OK(hr__lease_init(&d, &usual, NULL));
    CHECK_OK(hr__lease_add_job(&d, &job, NULL));
}

static void event(hr_peer peer, const struct hr_frame *frame, uint64_t now)
{
    CHECK_OK(hr__lease_frame(&d, peer, frame, now, fresh(), NULL));
}

static void join_worker(hr_peer peer, uint32_t slots, uint64_t now)
{
    struct hr_frame hello = worker_hello(slots, peer);

    event(peer, &hello, now);
    CHECK(sent(peer, HR_FRAME_WELCOME, 0) != NULL);
}

static void join_client(hr_peer peer, uint32_t world, uint32_t rank, uint64_t nonce,
                        uint64_t cursor, uint64_t now)
{
    struct hr_frame hello = client_hello(JOB, world, rank, nonce);

    hello.position = cursor;
    event(peer, &hello, now);
}

static void progress(hr_peer peer, uint32_t generation, uint64_t cursor, uint64_t now)
{
    event(peer,
          &(struct hr_frame){HR_FRAME_PROGRESS, .position = cursor,
                             .generation = generation},
          now);
}

static void finished(hr_peer peer, uint64_t from, uint64_t until, uint64_t now)
{
    struct hr_frame frame = {HR_FRAME_FINISHED, .count = 1, .generation = 1, .job = JOB};

    frame.u.lease.ranges[0] = (struct hr_frame_range){from, until};
    event(peer, &frame, now);
}

static void check_lease(hr_peer peer, uint64_t from, uint64_t until)
{
    const struct hr_frame *lease = sent(peer, HR_FRAME_LEASE, 0);

    CHECK(lease != NULL);
    CHECK_EQ_INT(lease->u.lease.ranges[0].from, from);
    CHECK_EQ_INT(lease->u.lease.ranges[lease->count - 1].until, until);
}

TEST(a_client_gets_a_generation_that_is_journalled_first_and_workers_its_positions)
{
    start(100, 10, 40, 1);
    join_worker(1, 8, 0);
    CHECK(sent(1, HR_FRAME_LEASE, 0) == NULL);
    join_client(2, 1, 0, 99, 15, 0);
    CHECK(actions.items[0].kind == HR_ACTION_JOURNAL);
    CHECK_EQ_INT(actions.items[0].u.row.kind, HR_ROW_GENERATION);
    CHECK_EQ_INT(actions.items[0].u.row.number, 99);
    CHECK_EQ_INT(sent(2, HR_FRAME_WELCOME, 0)->generation, 1);
    CHECK_EQ_INT(sent(2, HR_FRAME_WELCOME, 0)->u.welcome.nonce, 99);
    check_lease(1, 15, 55);
    hr__lease_finish(&d);
}

TEST(positions_are_leased_lowest_first_within_the_window)
{
    start(1000, 10, 40, 1);
    join_client(2, 1, 0, 99, 0, 0);
    join_worker(1, 8, 0);
    check_lease(1, 0, 40);
    join_worker(3, 8, 0);
    CHECK(sent(3, HR_FRAME_LEASE, 0) == NULL);
    progress(2, 1, 5, 1);
    check_lease(3, 40, 45);
    hr__lease_finish(&d);
}

TEST(consumers_get_the_splits_of_their_rank)
{
    const struct hr_frame *lease;

    start(1000, 10, 30, 2);
    join_worker(1, 8, 0);
    join_client(2, 2, 1, 99, 0, 0);
    lease = sent(1, HR_FRAME_LEASE, 0);
    CHECK_EQ_INT(lease->u.lease.rank, 1);
    CHECK_EQ_INT(lease->u.lease.ranges[0].from, 10);
    CHECK_EQ_INT(lease->u.lease.ranges[0].until, 20);
    CHECK_EQ_INT(lease->u.lease.ranges[1].from, 30);
    hr__lease_finish(&d);
}

TEST(a_second_living_client_is_refused_and_the_first_once_it_was_replaced)
{
    struct hr_frame again = client_hello(JOB, 1, 0, 99);

    start(100, 10, 40, 1);
    join_client(2, 1, 0, 99, 0, 0);
    join_client(3, 1, 0, 77, 0, 1000 * MS);
    check_refused(3, HR_ERR_STATE, "held by a client that is alive");
    progress(2, 1, 5, 1500 * MS);
    join_client(4, 1, 0, 77, 0, 3400 * MS);
    check_refused(4, HR_ERR_STATE, "held by a client that is alive");
    join_client(5, 1, 0, 77, 0, 3600 * MS);
    CHECK_EQ_INT(sent(5, HR_FRAME_WELCOME, 0)->generation, 2);
    progress(2, 1, 50, 3700 * MS);
    check_refused(2, HR_ERR_CANCELLED, "has taken over rank 0");
    CHECK_EQ_INT(d.jobs[0].consumers[0].cursor, 0);
    again.generation = 1;
    event(6, &again, 3800 * MS);
    check_refused(6, HR_ERR_CANCELLED, "has taken over rank 0");
    hr__lease_finish(&d);
}

TEST(the_same_incarnation_comes_back_with_its_generation_and_its_leases)
{
    start(100, 10, 40, 1);
    join_worker(1, 8, 0);
    join_client(2, 1, 0, 99, 0, 0);
    hr__lease_lost(&d, 2, 1, fresh());
    join_worker(8, 8, 1);
    join_client(3, 1, 0, 99, 20, 2);
    CHECK_EQ_INT(sent(3, HR_FRAME_WELCOME, 0)->generation, 1);
    CHECK(place_of(HR_ACTION_JOURNAL, 0) == -1);
    check_lease(8, 40, 60);
    hr__lease_finish(&d);
}

TEST(a_client_that_says_goodbye_makes_room_at_once)
{
    start(100, 10, 40, 1);
    join_client(2, 1, 0, 99, 0, 0);
    event(2, &(struct hr_frame){HR_FRAME_GOODBYE}, 1);
    CHECK(sent(2, HR_FRAME_ERROR, 0) == NULL);
    join_client(3, 1, 0, 77, 0, 2);
    CHECK_EQ_INT(sent(3, HR_FRAME_WELCOME, 0)->generation, 2);
    hr__lease_finish(&d);
}

TEST(a_new_incarnation_is_believed_and_all_else_forgotten)
{
    start(100, 10, 40, 1);
    join_worker(1, 8, 0);
    join_client(2, 1, 0, 99, 0, 0);
    progress(2, 1, 60, 1);
    hr__lease_lost(&d, 2, 2, fresh());
    join_client(3, 1, 0, 77, 20, 3);
    CHECK_EQ_INT(sent(1, HR_FRAME_LEASE, 0)->generation, 2);
    check_lease(1, 20, 60);
    hr__lease_finish(&d);
}

TEST(an_expired_lease_goes_to_another_worker)
{
    start(100, 10, 40, 1);
    d.options.hedge_ns = UINT64_MAX;
    join_worker(1, 8, 0);
    join_client(2, 1, 0, 99, 0, 0);
    check_lease(1, 0, 40);
    join_worker(3, 8, 0);
    hr__lease_tick(&d, 999 * MS, fresh());
    progress(2, 1, 12, 999 * MS);
    hr__lease_tick(&d, 1000 * MS, fresh());
    check_lease(3, 12, 40);
    hr__lease_finish(&d);
}

TEST(the_leases_of_a_lost_worker_go_to_others)
{
    start(100, 10, 40, 1);
    join_worker(1, 8, 0);
    join_client(2, 1, 0, 99, 0, 0);
    join_worker(3, 8, 0);
    hr__lease_lost(&d, 1, 1, fresh());
    check_lease(3, 0, 40);
    hr__lease_finish(&d);
}

TEST(a_silent_worker_is_closed_and_its_leases_go_to_others)
{
    start(100, 10, 40, 1);
    d.options.hedge_ns = UINT64_MAX;
    join_worker(1, 8, 0);
    join_client(2, 1, 0, 99, 0, 0);
    join_worker(3, 8, 1900 * MS);
    progress(2, 1, 1, 1900 * MS);
    hr__lease_tick(&d, 2000 * MS, fresh());
    CHECK(place_of(HR_ACTION_CLOSE, 1) >= 0);
    check_lease(3, 1, 40);
    hr__lease_finish(&d);
}

TEST(what_was_sent_is_leased_again_only_when_the_client_waits_for_it)
{
    start(40, 10, 40, 1);
    join_worker(1, 8, 0);
    join_client(2, 1, 0, 99, 0, 0);
    check_lease(1, 0, 40);
    finished(1, 0, 40, 10 * MS);
    CHECK(sent(1, HR_FRAME_LEASE, 0) == NULL);
    hr__lease_tick(&d, 400 * MS, fresh());
    CHECK(sent(1, HR_FRAME_LEASE, 0) == NULL);
    progress(2, 1, 30, 450 * MS);
    hr__lease_tick(&d, 900 * MS, fresh()); /* the cursor moved 450 ms ago */
    CHECK(sent(1, HR_FRAME_LEASE, 0) == NULL);
    hr__lease_tick(&d, 950 * MS, fresh());
    check_lease(1, 30, 40);
    hr__lease_finish(&d);
}

TEST(a_slow_head_of_the_line_is_given_to_an_idle_worker_too)
{
    start(40, 10, 40, 1);
    join_worker(1, 8, 0);
    join_client(2, 1, 0, 99, 0, 0);
    join_worker(3, 8, 0);
    progress(2, 1, 4, 10 * MS);
    hr__lease_tick(&d, 299 * MS, fresh());
    CHECK(sent(3, HR_FRAME_LEASE, 0) == NULL);
    hr__lease_tick(&d, 300 * MS, fresh());
    check_lease(3, 4, 40);
    hr__lease_tick(&d, 600 * MS, fresh());
    CHECK(sent(1, HR_FRAME_LEASE, 0) == NULL && sent(3, HR_FRAME_LEASE, 0) == NULL);
    hr__lease_finish(&d);
}

TEST(a_head_of_the_line_that_nobody_has_goes_to_a_worker_that_has_enough)
{
    start(1000, 10, 400, 1);
    join_worker(1, 4, 0);
    join_worker(2, 4, 0);
    join_client(3, 1, 0, 5, 0, 0);
    check_lease(1, 0, 40);
    check_lease(2, 40, 80);
    hr__lease_lost(&d, 1, 10 * MS, fresh());
    CHECK(sent(2, HR_FRAME_LEASE, 0) == NULL); /* it has enough */
    hr__lease_tick(&d, 20 * MS, fresh());
    CHECK_EQ_INT(sent(2, HR_FRAME_LEASE, 0)->u.lease.ranges[0].from, 0);
    CHECK_EQ_INT(sent(2, HR_FRAME_LEASE, 0)->u.lease.ranges[0].until, 20);
    hr__lease_tick(&d, 40 * MS, fresh());
    CHECK(sent(2, HR_FRAME_LEASE, 0) == NULL); /* only the head */
    progress(3, 1, 20, 50 * MS);
    CHECK_EQ_INT(sent(2, HR_FRAME_LEASE, 0)->u.lease.ranges[0].from, 20);
    hr__lease_finish(&d);
}

/* A second job, whose client joins. */
static void join_other_job(hr_peer peer, uint64_t now)
{
    const struct hr_lease_job_options other = {8, 1000, 10, 400, 1};
    struct hr_frame hello = client_hello(8, 1, 0, peer);

    CHECK_OK(hr__lease_add_job(&d, &other, NULL));
    event(peer, &hello, now);
}

TEST(a_worker_of_a_run_that_stands_still_has_room_for_others)
{
    struct hr_frame done = {HR_FRAME_FINISHED, .count = 1, .generation = 1, .job = 8};
    const struct hr_lease_consumer *first;

    start(1000, 10, 100, 1);
    join_worker(1, 8, 0);
    join_client(2, 1, 0, 99, 0, 0);
    check_lease(1, 0, 40);
    progress(2, 1, 4, 20 * MS);
    hr__lease_tick(&d, 319 * MS, fresh());
    join_other_job(3, 319 * MS);
    check_lease(1, 0, 20); /* it has enough, so the new one gets little */
    progress(2, 1, 4, 319 * MS);
    hr__lease_tick(&d, 320 * MS, fresh()); /* 300 ms after the cursor moved */
    first = &d.jobs[0].consumers[0];
    CHECK(first->stands && first->outstanding == 40 && d.peers[1].outstanding == 20);
    done.u.lease.ranges[0] = (struct hr_frame_range){0, 20};
    event(1, &done, 329 * MS);
    check_lease(1, 20, 400); /* as much as one that has nothing else */

    progress(2, 1, 4, 330 * MS);
    CHECK(sent(1, HR_FRAME_LEASE, 0) == NULL); /* it asks for nothing */
    hr__lease_tick(&d, 600 * MS, fresh());
    CHECK(first->stands && sent(1, HR_FRAME_LEASE, 1) == NULL);
    progress(2, 1, 5, 610 * MS);
    CHECK(!first->stands && sent(1, HR_FRAME_LEASE, 0) == NULL);
    CHECK_EQ_INT(d.peers[1].outstanding, first->outstanding + 380);
    hr__lease_finish(&d);
}

TEST(what_is_sent_again_is_no_sign_that_a_run_goes_on)
{
    const struct hr_lease_consumer *consumer;

    start(1000, 10, 100, 1);
    join_worker(1, 8, 0);
    join_client(2, 1, 0, 99, 0, 0);
    finished(1, 0, 40, 10 * MS);
    consumer = &d.jobs[0].consumers[0];
    CHECK(consumer->outstanding > 0);
    hr__lease_tick(&d, 310 * MS, fresh());
    CHECK(consumer->stands);
    hr__lease_tick(&d, 600 * MS, fresh()); /* the head is leased again */
    CHECK(sent(1, HR_FRAME_LEASE, 0) != NULL && consumer->stands);
    finished(1, 0, sent(1, HR_FRAME_LEASE, 0)->u.lease.ranges[0].until, 610 * MS);
    CHECK(consumer->stands);
    finished(1, 40, 100, 620 * MS);
    CHECK(!consumer->stands);
    hr__lease_finish(&d);
}

TEST(an_idle_worker_helps_a_run_whose_positions_take_long)
{
    start(1000, 10, 100, 1);
    join_worker(1, 8, 0);
    join_client(2, 1, 0, 99, 0, 0);
    check_lease(1, 0, 40);
    hr__lease_tick(&d, 300 * MS, fresh());
    CHECK(d.jobs[0].consumers[0].stands);
    CHECK(sent(1, HR_FRAME_LEASE, 0) == NULL);
    join_worker(3, 8, 310 * MS);
    hr__lease_tick(&d, 320 * MS, fresh());
    check_lease(3, 0, 40); /* a second time: the head is slow */
    hr__lease_tick(&d, 340 * MS, fresh());
    CHECK(sent(3, HR_FRAME_LEASE, 0) == NULL); /* not idle any more */
    join_worker(4, 8, 350 * MS);
    hr__lease_tick(&d, 360 * MS, fresh());
    check_lease(4, 40, 80);
    finished(4, 40, 80, 400 * MS);
    CHECK(!d.jobs[0].consumers[0].stands);
    hr__lease_finish(&d);
}

TEST(a_fast_worker_gets_long_leases_and_a_leaving_one_none)
{
    start(100000, 10, 4000, 1);
    join_worker(1, 8, 0);
    join_client(2, 1, 0, 99, 0, 0);
    check_lease(1, 0, 40);
    finished(1, 0, 40, 4 * MS); /* 0.1 ms for a position: 1000 in the target time */
    check_lease(1, 40, 2040);
    event(1, &(struct hr_frame){HR_FRAME_GOODBYE}, 5 * MS);
    finished(1, 40, 2040, 6 * MS);
    CHECK(sent(1, HR_FRAME_LEASE, 0) == NULL);
    hr__lease_finish(&d);
}

TEST(the_consumer_with_the_least_in_work_is_served_first)
{
    const struct hr_lease_job_options other = {8, 1000, 10, 1000, 1};
    struct hr_frame hello = client_hello(8, 1, 0, 5);

    start(1000, 10, 1000, 1);
    CHECK_OK(hr__lease_add_job(&d, &other, NULL));
    join_worker(1, 8, 0);
    join_client(2, 1, 0, 99, 0, 0);
    CHECK_EQ_INT(sent(1, HR_FRAME_LEASE, 0)->job, JOB);
    event(3, &hello, 0);
    CHECK_EQ_INT(sent(1, HR_FRAME_LEASE, 0)->job, 8);
    check_lease(1, 0, 20); /* it has enough, so this is little */
    join_worker(4, 8, 0);
    CHECK_EQ_INT(sent(4, HR_FRAME_LEASE, 0)->job, 8);
    hr__lease_finish(&d);
}

/* What a worker has to send, oldest first. */
static struct hr_frame queued[40];
static size_t queued_count;

static void queue_leases(void)
{
    const struct hr_frame *lease;

    for (size_t i = 0; (lease = sent(1, HR_FRAME_LEASE, i)) != NULL; i++) {
        CHECK(queued_count < 40);
        queued[queued_count++] = *lease;
    }
}

/* The oldest lease of this job, or of the other one. */
static size_t oldest_lease(uint64_t job)
{
    for (size_t i = 0; i < queued_count; i++)
        if (queued[i].job == job)
            return i;
    return 0;
}

/* Two runs of which each wants all of a worker, which takes so long for a position of the
 * one and the other. Checks that each gets at least a third of its time. `taken_first`:
 * the client takes what was sent before the worker says so. */
static void check_shares(uint64_t first_ns, uint64_t other_ns, bool taken_first)
{
    const struct hr_lease_job_options other = {8, 1000000, 10, 4000, 1};
    struct hr_frame hello = client_hello(8, 1, 0, 5);
    uint64_t now = 0, until, spent[2] = {0};

    start(1000000, 10, 4000, 1);
    queued_count = 0;
    join_worker(1, 8, 0);
    join_client(2, 1, 0, 99, 0, 0);
    queue_leases();
    CHECK_OK(hr__lease_add_job(&d, &other, NULL));
    event(3, &hello, 0);
    queue_leases();
    for (size_t i = 0; i < 60; i++) {
        size_t at = oldest_lease(spent[0] < spent[1] ? 8 : JOB);
        struct hr_frame done = queued[at];
        bool is_first = done.job == JOB;
        uint64_t took;

        CHECK(queued_count > 0);
        memmove(queued + at, queued + at + 1, (--queued_count - at) * sizeof *queued);
        until = done.u.lease.ranges[done.count - 1].until;
        took = (until - done.u.lease.ranges[0].from) * (is_first ? first_ns : other_ns);
        now += took;
        spent[is_first] += took;
        done.type = HR_FRAME_FINISHED;
        for (int half = 0; half < 2; half++) {
            if (taken_first == (half == 0))
                progress(is_first ? 2 : 3, 1, until, now);
            else
                event(1, &done, now);
            queue_leases();
        }
    }
    CHECK(spent[0] * 2 >= spent[1] && spent[1] * 2 >= spent[0]);
    hr__lease_finish(&d);
}

TEST(runs_of_which_each_wants_all_of_a_worker_share_its_time)
{
    check_shares(MS / 10, MS / 10, false);
    check_shares(MS / 10, MS / 10, true);
    check_shares(MS / 10, 5 * MS, false);
    check_shares(5 * MS, MS / 10, false);
}

TEST(a_new_membership_is_journalled_and_older_clients_are_refused)
{
    struct hr_frame hello = client_hello(JOB, 2, 1, 5);

    start(100, 10, 40, 1);
    join_worker(1, 8, 0);
    join_client(2, 1, 0, 99, 0, 0);
    hello.u.hello.membership = 1;
    hello.u.hello.base = 33;
    hello.position = 43;
    event(3, &hello, 1);
    CHECK_EQ_INT(actions.items[0].u.row.kind, HR_ROW_MEMBERSHIP);
    CHECK_EQ_INT(actions.items[0].u.row.position, 33);
    CHECK_EQ_INT(actions.items[1].u.row.kind, HR_ROW_GENERATION);
    CHECK_EQ_INT(sent(3, HR_FRAME_WELCOME, 0)->generation, 2);
    check_lease(1, 43, 93);
    progress(2, 1, 60, 2);
    check_refused(2, HR_ERR_CANCELLED, "has taken over");
    join_client(4, 1, 0, 98, 0, 3);
    check_refused(4, HR_ERR_CANCELLED, "gone on with 2 consumers");
    hello.u.hello.base = 34;
    hello.u.hello.rank = 0;
    event(5, &hello, 4);
    check_refused(5, HR_ERR_ARGUMENT, "2 consumers from position 33 on");
    hello.u.hello.membership = 2;
    hello.u.hello.base = 101;
    event(6, &hello, 5);
    check_refused(6, HR_ERR_LIMIT, "within the epoch");
    hr__lease_finish(&d);
}

TEST(wrong_peers_are_refused_with_a_reason)
{
    struct hr_frame hello = client_hello(55, 1, 0, 5);

    start(100, 10, 40, 1);
    event(1, &hello, 0);
    check_refused(1, HR_ERR_NOT_FOUND, "there is no job 0000000000000037");
    progress(2, 1, 0, 0);
    check_refused(2, HR_ERR_STATE, "a PROGRESS frame is not expected here");
    join_client(3, 1, 0, 99, 0, 0);
    finished(3, 0, 10, 0);
    check_refused(3, HR_ERR_STATE, "a FINISHED frame is not expected here");
    join_worker(4, 3, 0);
    join_client(4, 1, 0, 99, 0, 0);
    check_refused(4, HR_ERR_STATE, "a HELLO frame is not expected here");
    join_client(3, 2, 1, 99, 0, 0);
    check_refused(3, HR_ERR_STATE, "one connection serves one consumer");
    finished(4, 500, 600, 0); /* of no lease: no harm */
    hr__lease_finish(&d);
}

TEST(acknowledged_cursors_are_journalled_lazily_and_end_the_job)
{
    struct hr_frame ack = {HR_FRAME_ACK, .position = 100, .generation = 1};

    start(100, 10, 40, 1);
    join_client(2, 1, 0, 99, 100, 0);
    CHECK(!hr__lease_job_is_done(&d.jobs[0]));
    event(2, &ack, 1);
    CHECK(actions.items[0].kind == HR_ACTION_JOURNAL && actions.items[0].u.row.lazy);
    CHECK(hr__lease_job_is_done(&d.jobs[0]));
    event(2, &ack, 2);
    CHECK_EQ_INT(actions.count, 0);
    hr__lease_finish(&d);
}

TEST(a_restarted_dispatcher_knows_generations_memberships_and_acknowledged_cursors)
{
    struct hr_frame again = client_hello(JOB, 3, 2, 99);
    struct hr_row row = {HR_ROW_MEMBERSHIP, .job = JOB, .number = 4, .world = 3,
                         .position = 20};
    struct hr_error error = {0};

    start(100, 10, 40, 1);
    CHECK_OK(hr__lease_replay(&d, &row, NULL));
    row = (struct hr_row){HR_ROW_GENERATION, .job = JOB, .rank = 2, .generation = 9,
                          .number = 77};
    CHECK_OK(hr__lease_replay(&d, &row, NULL));
    row = (struct hr_row){HR_ROW_ACK, .job = JOB, .rank = 2, .position = 45};
    CHECK_OK(hr__lease_replay(&d, &row, NULL));
    again.u.hello.membership = 4;
    again.u.hello.base = 20;
    again.generation = 8;
    event(2, &again, 0);
    check_refused(2, HR_ERR_CANCELLED, "has taken over rank 2");
    again.u.hello.nonce = 77;
    again.generation = 9;
    event(3, &again, 0);
    CHECK_EQ_INT(sent(3, HR_FRAME_WELCOME, 0)->generation, 9);
    CHECK_EQ_INT(sent(3, HR_FRAME_WELCOME, 0)->position, 45);
    row.rank = 3;
    CHECK_ERR(HR_ERR_FORMAT, hr__lease_replay(&d, &row, &error));
    row.job = 1;
    CHECK_ERR(HR_ERR_NOT_FOUND, hr__lease_replay(&d, &row, &error));
    hr__lease_finish(&d);
}

TEST(jobs_are_checked_and_limited)
{
    const struct hr_lease_job_options twin = {JOB, 100, 10, 40, 1},
                                      third = {9, 1, 1, 1, 1}, none = {10, 100, 0, 40, 1},
                                      other = {8, 1, 1, 1, 1};
    struct hr_error error = {0};

    start(100, 10, 40, 1);
    CHECK_ERR(HR_ERR_ARGUMENT, hr__lease_add_job(&d, &twin, &error));
    CHECK_HAS(error.message, "0000000000000007");
    CHECK_ERR(HR_ERR_ARGUMENT, hr__lease_add_job(&d, &none, &error));
    CHECK_OK(hr__lease_add_job(&d, &other, &error));
    CHECK_ERR(HR_ERR_LIMIT, hr__lease_add_job(&d, &third, &error));
    hr__lease_finish(&d);
}

TEST(of_full_jobs_the_one_that_never_had_a_client_gives_way)
{
    const struct hr_lease_job_options other = {8, 100, 10, 40, 1},
                                      third = {9, 100, 10, 40, 1};
    struct hr_error error = {0};

    start(100, 10, 40, 1);
    d.options.idle_ns = 60000 * MS;
    CHECK(hr__lease_has_place(&d, 0, 1000 * MS));
    CHECK_OK(hr__lease_add_job(&d, &other, &error));
    join_client(2, 1, 0, 5, 0, 0);
    hr__lease_tick(&d, 10 * MS, fresh());
    CHECK(!hr__lease_has_place(&d, 1009 * MS, 1000 * MS));
    CHECK(!hr__lease_make_place(&d, 1009 * MS, 1000 * MS));
    CHECK_ERR(HR_ERR_LIMIT, hr__lease_add_job(&d, &third, &error));
    CHECK(hr__lease_has_place(&d, 1010 * MS, 1000 * MS));
    CHECK(hr__lease_make_place(&d, 1010 * MS, 1000 * MS));
    CHECK(hr__lease_find_job(&d, 8) == NULL);
    CHECK(hr__lease_find_job(&d, JOB) == &d.jobs[0]);
    CHECK_OK(hr__lease_add_job(&d, &third, &error));
    CHECK(!hr__lease_make_place(&d, 1020 * MS, 1000 * MS)); /* no tick saw it yet */
    hr__lease_finish(&d);
}

TEST(a_job_that_its_client_left_gives_way_at_once)
{
    start(100, 10, 40, 2);
    d.options.idle_ns = 60000 * MS;
    join_worker(1, 4, 0);
    join_client(2, 2, 0, 5, 0, 0);
    join_client(3, 2, 1, 6, 0, 0);
    progress(2, 1, 10, 10 * MS);
    event(2, &(struct hr_frame){HR_FRAME_GOODBYE}, 20 * MS);
    CHECK(!hr__lease_make_place(&d, 30000 * MS, 1000 * MS)); /* the other one is there */
    event(3, &(struct hr_frame){HR_FRAME_GOODBYE}, 40 * MS);
    join_client(4, 2, 1, 7, 0, 50 * MS);
    CHECK(!hr__lease_make_place(&d, 30000 * MS, 1000 * MS)); /* and again */
    event(4, &(struct hr_frame){HR_FRAME_GOODBYE}, 60 * MS);
    CHECK(hr__lease_make_place(&d, 60 * MS, 1000 * MS));
    CHECK_EQ_INT(d.job_count, 0);
    event(2, &(struct hr_frame){HR_FRAME_PROGRESS, .generation = 1}, 70 * MS);
    check_refused(2, HR_ERR_STATE, "not expected");
    hr__lease_finish(&d);
}

TEST(a_client_whose_connection_broke_keeps_its_place_longer_if_it_has_taken_something)
{
    for (int taken = 0; taken < 2; taken++) {
        start(100, 10, 40, 1);
        d.options.idle_ns = 60000 * MS;
        join_worker(1, 4, 0);
        join_client(2, 1, 0, 5, 0, 0);
        progress(2, 1, taken ? 10 : 0, 10 * MS);
        hr__lease_lost(&d, 2, 20 * MS, fresh());
        CHECK(!hr__lease_make_place(&d, 30 * MS, 1000 * MS)); /* no tick saw it yet */
        hr__lease_tick(&d, 40 * MS, fresh());
        CHECK(!hr__lease_make_place(&d, 1039 * MS, 1000 * MS));
        join_client(2, 1, 0, 5, 0, 1039 * MS); /* it came back, and breaks again */
        CHECK(!hr__lease_make_place(&d, 9000 * MS, 1000 * MS));
        hr__lease_lost(&d, 2, 9000 * MS, fresh());
        CHECK(!hr__lease_make_place(&d, 9000 * MS, 1000 * MS));
        hr__lease_tick(&d, 9010 * MS, fresh());
        CHECK(hr__lease_make_place(&d, 10010 * MS, 1000 * MS) == !taken);
        CHECK_EQ_INT(d.job_count, taken);
        hr__lease_tick(&d, 69010 * MS, fresh());
        CHECK_EQ_INT(d.job_count, 0);
        hr__lease_finish(&d);
    }
}

TEST(of_several_jobs_the_one_that_is_due_longest_gives_way)
{
    const struct hr_lease_job_options other = {8, 100, 10, 40, 1};
    struct hr_frame hello = client_hello(8, 1, 0, 6);

    start(100, 10, 40, 1);
    d.options.idle_ns = 60000 * MS;
    CHECK_OK(hr__lease_add_job(&d, &other, NULL));
    join_client(2, 1, 0, 5, 0, 0);
    event(3, &hello, 0);
    hr__lease_lost(&d, 2, 10 * MS, fresh());
    hr__lease_tick(&d, 10 * MS, fresh());
    event(3, &(struct hr_frame){HR_FRAME_GOODBYE}, 500 * MS);
    hr__lease_tick(&d, 500 * MS, fresh());
    CHECK(hr__lease_make_place(&d, 1020 * MS, 1000 * MS)); /* 520 ms against 10 */
    CHECK(hr__lease_find_job(&d, 8) == NULL && hr__lease_find_job(&d, JOB) != NULL);
    CHECK(hr__lease_make_place(&d, 1020 * MS, 1000 * MS));
    CHECK_EQ_INT(d.job_count, 0);
    CHECK(!hr__lease_make_place(&d, 1020 * MS, 1000 * MS));
    hr__lease_finish(&d);
}

TEST(a_client_that_is_away_frees_the_slots_of_its_worker)
{
    const struct hr_lease_job_options other = {8, 100, 10, 40, 1};
    struct hr_frame hello = client_hello(8, 1, 0, 6);

    start(100, 10, 40, 1);
    d.options.absent_ns = 100 * MS;
    CHECK_OK(hr__lease_add_job(&d, &other, NULL));
    join_worker(1, 1, 0);
    join_client(2, 1, 0, 5, 0, 0);
    check_lease(1, 0, 40);
    progress(2, 1, 10, 0);
    hr__lease_lost(&d, 2, 1 * MS, fresh());
    hr__lease_tick(&d, 10 * MS, fresh());
    event(3, &hello, 20 * MS);
    hr__lease_tick(&d, 109 * MS, fresh());
    CHECK(sent(1, HR_FRAME_LEASE, 0) == NULL);
    hr__lease_tick(&d, 110 * MS, fresh());
    CHECK_EQ_INT(sent(1, HR_FRAME_LEASE, 0)->job, 8);
    CHECK_EQ_INT(d.jobs[0].consumers[0].leases.count, 0);
    join_client(2, 1, 0, 5, 0, 120 * MS); /* it comes back, and waits for a slot */
    CHECK(sent(1, HR_FRAME_LEASE, 0) == NULL);
    event(3, &(struct hr_frame){HR_FRAME_GOODBYE}, 130 * MS);
    hr__lease_tick(&d, 130 * MS, fresh());
    check_lease(1, 10, 50);
    hr__lease_finish(&d);
}

TEST(a_client_that_has_taken_nothing_frees_them_sooner)
{
    const struct hr_lease_job_options other = {8, 100, 10, 40, 1};
    struct hr_frame hello = client_hello(8, 1, 0, 6);

    start(100, 10, 40, 1);
    d.options.absent_ns = 100 * MS;
    CHECK_OK(hr__lease_add_job(&d, &other, NULL));
    join_worker(1, 1, 0);
    join_client(2, 1, 0, 5, 0, 0);
    check_lease(1, 0, 40);
    progress(2, 1, 0, 0); /* as clients say now and then */
    hr__lease_lost(&d, 2, 1 * MS, fresh());
    hr__lease_tick(&d, 10 * MS, fresh());
    event(3, &hello, 20 * MS);
    hr__lease_tick(&d, 34 * MS, fresh());
    CHECK(sent(1, HR_FRAME_LEASE, 0) == NULL);
    hr__lease_tick(&d, 35 * MS, fresh());
    CHECK_EQ_INT(sent(1, HR_FRAME_LEASE, 0)->job, 8);
    hr__lease_finish(&d);
}

TEST(a_job_without_a_client_is_forgotten_and_the_others_stay)
{
    const struct hr_lease_job_options other = {8, 100, 10, 40, 1};
    struct hr_frame hello = client_hello(8, 1, 0, 6);

    start(100, 10, 40, 1);
    d.options.idle_ns = 1000 * MS;
    CHECK_OK(hr__lease_add_job(&d, &other, NULL));
    join_worker(1, 4, 0);
    join_client(2, 1, 0, 5, 0, 0);
    event(3, &hello, 0);
    CHECK_EQ_INT(sent(3, HR_FRAME_WELCOME, 0)->generation, 1);
    event(2, &(struct hr_frame){HR_FRAME_GOODBYE}, 10 * MS);
    hr__lease_tick(&d, 20 * MS, fresh());
    event(1, &(struct hr_frame){HR_FRAME_PROGRESS}, 1000 * MS);
    progress(3, 1, 0, 1000 * MS);
    hr__lease_tick(&d, 1000 * MS, fresh());
    CHECK_EQ_INT(d.job_count, 2);
    hr__lease_tick(&d, 1020 * MS, fresh());
    CHECK_EQ_INT(d.job_count, 1);
    CHECK(hr__lease_find_job(&d, JOB) == NULL);
    CHECK(hr__lease_find_job(&d, 8) == &d.jobs[0]);
    progress(3, 1, 30, 1030 * MS); /* its client goes on */
    CHECK_EQ_INT(d.jobs[0].consumers[0].cursor, 30);
    event(2, &(struct hr_frame){HR_FRAME_PROGRESS, .generation = 1}, 1040 * MS);
    check_refused(2, HR_ERR_STATE, "not expected");
    join_client(4, 1, 0, 5, 0, 1050 * MS);
    check_refused(4, HR_ERR_NOT_FOUND, "there is no job");
    hr__lease_finish(&d);
}

static enum hr_err setup_and_resize(void)
{
    const struct hr_lease_options options = {.peers_max = 4,
                                             .jobs_max = 1,
                                             .ranges_max = 4,
                                             .lease_min = 1,
                                             .lease_max = 9,
                                             .ttl_ns = MS,
                                             .silent_ns = MS};
    const struct hr_lease_job_options job = {JOB, 100, 10, 40, 2};
    struct hr_frame hello = client_hello(JOB, 3, 1, 5);
    enum hr_err code = hr__lease_init(&d, &options, NULL);

    hello.u.hello.membership = 1;
    if (code == HR_OK)
        code = hr__lease_add_job(&d, &job, NULL);
    if (code == HR_OK)
        code = hr__lease_frame(&d, 1, &hello, 0, fresh(), NULL);
    if (code == HR_OK)
        CHECK_EQ_INT(d.jobs[0].world, 3);
    else if (d.job_count > 0)
        CHECK_EQ_INT(d.jobs[0].world, 2);
    hr__lease_finish(&d);
    return code;
}

TEST(failed_allocations_change_nothing)
{
    fresh();
    for (uint64_t nth = 1;; nth++) {
        enum hr_err code;

        hr__fault_arm(HR_FAULT_ALLOC, nth);
        code = setup_and_resize();
        if (hr__fault_calls() < nth) {
            hr__fault_arm(HR_FAULT_ALLOC, 0);
            CHECK_OK(code);
            CHECK(nth > 8);
            return;
        }
        hr__fault_arm(HR_FAULT_ALLOC, 0);
        CHECK_ERR(HR_ERR_MEMORY, code);
    }
}

/* ---- jobs that have the same records ---- */

/* Another job that has the records of the first one; its client joins. */
static void join_kin(hr_peer peer, uint64_t window, uint64_t now)
{
    const struct hr_lease_job_options kin = {9, 2000, 10, window, 1, KIN};
    struct hr_frame hello = client_hello(9, 1, 0, peer);

    CHECK_OK(hr__lease_add_job(&d, &kin, NULL));
    event(peer, &hello, now);
}

static void finished_kin(hr_peer peer, uint64_t from, uint64_t until, uint64_t now)
{
    struct hr_frame frame = {HR_FRAME_FINISHED, .count = 1, .generation = 1, .job = 9};

    frame.u.lease.ranges[0] = (struct hr_frame_range){from, until};
    event(peer, &frame, now);
}

TEST(what_a_worker_made_for_an_equal_job_is_leased_to_it)
{
    start(1000, 1000, 160, 1);
    join_worker(1, 8, 0);
    join_worker(3, 8, 0);
    join_client(2, 1, 0, 99, 0, 0);
    check_lease(1, 0, 40);
    check_lease(3, 40, 80);
    join_kin(4, 60, MS);
    check_lease(1, 0, 40);
    check_lease(3, 40, 60);                   /* up to its window */
    CHECK_EQ_INT(d.peers[1].outstanding, 40); /* it is no work */
    CHECK_EQ_INT(d.peers[3].outstanding, 40);
    CHECK_EQ_INT(d.jobs[1].consumers[0].outstanding, 60);
    hr__lease_finish(&d);
}

/* Else each step of the client would be a lease. */
TEST(an_equal_job_waits_until_its_window_has_room_for_a_whole_lease)
{
    const struct hr_lease_consumer *kin;

    start(1000, 1000, 150, 1);
    join_worker(1, 8, 0);
    join_client(2, 1, 0, 99, 0, 0);
    check_lease(1, 0, 40);
    finished(1, 0, 40, MS);
    check_lease(1, 40, 150);
    join_kin(4, 60, MS); /* a lease is half of its window */
    kin = &d.jobs[1].consumers[0];
    check_lease(1, 0, 40);
    CHECK_EQ_INT(kin->known_leases, 1);
    progress(4, 1, 9, MS);
    CHECK(kin->cursor == 9 && kin->known_leases == 1);
    progress(4, 1, 10, MS);
    check_lease(1, 40, 70);
    progress(4, 1, 70, MS);
    check_lease(1, 70, 130);
    progress(4, 1, 89, MS);
    CHECK(kin->cursor == 89 && kin->known_leases == 1);
    progress(4, 1, 90, MS);
    check_lease(1, 130, 150); /* the other one's lease ends there */
    hr__lease_finish(&d);
}

/* Nobody keeps anything for it, so it is work, and is measured. */
TEST(what_a_run_had_that_has_ended_is_leased_like_all_else)
{
    start(1000, 1000, 160, 1);
    join_worker(1, 8, 0);
    join_client(2, 1, 0, 99, 0, 0);
    check_lease(1, 0, 40);
    join_kin(4, 160, MS);
    CHECK_EQ_INT(d.jobs[1].consumers[0].known_leases, 1);
    hr__lease_lost(&d, 2, 2 * MS, fresh());
    finished(1, 0, 40, 3 * MS);
    finished_kin(1, 0, 40, 3 * MS);
    CHECK_EQ_INT(d.jobs[1].consumers[0].known_leases, 0);
    CHECK(d.jobs[1].consumers[0].outstanding > 0);
    CHECK_EQ_INT(d.peers[1].outstanding, d.jobs[1].consumers[0].outstanding);
    hr__lease_lost(&d, 4, 4 * MS, fresh());
    join_client(2, 1, 0, 99, 0, 5 * MS); /* the first again, from its start, alone */
    CHECK_EQ_INT(d.jobs[0].consumers[0].known_leases, 0);
    hr__lease_finish(&d);
}

/* Else a lease of one position that waits for its turn would be followed by another one
 * of one position. */
TEST(a_lease_took_what_its_worker_says)
{
    struct hr_frame done = {HR_FRAME_FINISHED, .count = 1, .generation = 1, .job = JOB};

    start(1000, 1000, 40, 1);
    join_worker(1, 8, 0);
    join_client(2, 1, 0, 99, 0, 0);
    check_lease(1, 0, 40);
    done.u.lease.ranges[0] = (struct hr_frame_range){0, 40};
    done.u.lease.work_us = 20000;
    event(1, &done, 4000 * MS);
    CHECK(fabs(d.peers[1].ns_per_position - 0.5 * MS) < 1);
    CHECK(fabs(d.jobs[0].consumers[0].ns_per_position - 0.5 * MS) < 1);
    hr__lease_finish(&d);
}

TEST(what_equal_jobs_get_for_nothing_is_not_measured)
{
    double ns;

    start(1000, 1000, 40, 1);
    join_worker(1, 8, 0);
    join_client(2, 1, 0, 99, 0, 0);
    join_kin(4, 40, 0);
    check_lease(1, 0, 40);
    finished(1, 0, 40, 40 * MS);
    ns = d.peers[1].ns_per_position;
    CHECK(ns > 0.9 * MS);
    finished_kin(1, 0, 40, 41 * MS);
    CHECK(d.peers[1].ns_per_position == ns);
    CHECK(d.peers[1].finished_ns == 40 * (uint64_t)MS);
    CHECK(d.jobs[1].consumers[0].ns_per_position == 0);
    hr__lease_finish(&d);
}

TEST(an_equal_job_has_few_leases_of_what_is_kept_and_then_its_own)
{
    const struct hr_lease_consumer *kin;

    start(1000, 1000, 400, 1);
    for (hr_peer worker = 11; worker < 14; worker++)
        join_worker(worker, 8, 0);
    join_client(2, 1, 0, 99, 0, 0); /* has 40 at each of them */
    join_kin(4, 2000, 0);
    kin = &d.jobs[1].consumers[0];
    CHECK(kin->known_leases == 2 && kin->leases.count == 2);
    check_lease(11, 0, 40);
    check_lease(12, 40, 80);
    CHECK(sent(13, HR_FRAME_LEASE, 0) == NULL);
    finished_kin(11, 0, 40, MS);
    check_lease(13, 80, 120);
    CHECK(kin->known_leases == 2);
    finished_kin(12, 40, 80, 2 * MS);
    CHECK(kin->known_leases == 1 && kin->leases.count == 3);
    finished(11, 0, 40, 40 * MS);
    CHECK_EQ_INT(sent(11, HR_FRAME_LEASE, 0)->job, 9); /* its first own */
    CHECK_EQ_INT(sent(11, HR_FRAME_LEASE, 0)->u.lease.ranges[0].from, 120);
    hr__lease_finish(&d);
}

TEST(what_a_lost_worker_made_is_leased_like_all_else)
{
    start(1000, 1000, 80, 1);
    join_worker(1, 8, 0);
    join_client(2, 1, 0, 99, 0, 0);
    check_lease(1, 0, 40);
    hr__lease_lost(&d, 1, MS, fresh());
    join_worker(3, 8, 2 * MS);
    check_lease(3, 0, 40);
    join_kin(4, 40, 3 * MS);
    check_lease(3, 0, 40);
    hr__lease_lost(&d, 3, 4 * MS, fresh());
    CHECK_EQ_INT(d.jobs[1].consumers[0].known_leases, 0);
    join_worker(5, 8, 5 * MS);
    CHECK(sent(5, HR_FRAME_LEASE, 0) != NULL && sent(5, HR_FRAME_LEASE, 1) != NULL);
    hr__lease_finish(&d);
}

TEST(a_job_that_is_alone_has_no_kin)
{
    start(1000, 1000, 40, 1);
    CHECK(d.jobs[0].kin == NULL);
    join_worker(1, 8, 0);
    join_kin(4, 40, 0);
    CHECK(d.jobs[0].kin != NULL && d.jobs[0].kin == d.jobs[1].kin);
    hr__lease_finish(&d);
}

/* Positions one by one at two workers, so that each is a lease of its own for equal jobs,
 * of which all leases expire in one tick. */
TEST(many_equal_jobs_get_their_leases_over_several_ticks)
{
    struct hr_lease_options options = usual;
    const struct hr_lease_job_options first = {JOB, 1000, 1, 40, 2, KIN};
    size_t known = 0;

    options.jobs_max = 9;
    options.ranges_max = 64;
    options.known_max = 15;
    options.lease_max = 20;
    options.hedge_ns = 5000 * (uint64_t)MS;
    options.silent_ns = 50000 * (uint64_t)MS;
    CHECK_OK(hr__lease_init(&d, &options, NULL));
    CHECK_OK(hr__lease_add_job(&d, &first, NULL));
    join_worker(1, 256, 0);
    join_worker(2, 256, 0);
    join_client(3, 2, 0, 99, 0, 0);
    join_client(4, 2, 1, 98, 0, 0);
    for (uint64_t job = 10; job < 18; job++) {
        const struct hr_lease_job_options kin = {job, 2000, 10, 1000, 1, KIN};
        struct hr_frame hello = client_hello(job, 1, 0, job);

        CHECK_OK(hr__lease_add_job(&d, &kin, NULL));
        event((hr_peer)job, &hello, MS);
        CHECK_EQ_INT(hr__lease_find_job(&d, job)->consumers[0].known_leases, 15);
    }
    for (uint64_t tick = 0; tick < 4; tick++) {
        hr__lease_tick(&d, (1001 + tick) * MS, fresh());
        CHECK(tick > 0 || actions.count == HR_ACTIONS_MAX);
    }
    for (uint64_t job = 10; job < 18; job++)
        known += hr__lease_find_job(&d, job)->consumers[0].known_leases;
    CHECK_EQ_INT(known, 8 * 15);
    hr__lease_finish(&d);
}
