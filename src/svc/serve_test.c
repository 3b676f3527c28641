/*
 * svc/serve_test.c - the worker, event by event.
 */
#include "svc/serve.h"

#include "core/alloc.h"
#include "svc/svc_test_util.h"

#define JOB 7
#define DISPATCHER 1

static struct hr_worker worker;

static void start(uint32_t leases)
{
    const struct hr_serve_options options = {.nonce = 3,
                                             .peers_max = 9,
                                             .leases_max = leases,
                                             .frame_positions = 4,
                                             .beat_ns = 100 * MS};

    CHECK_OK(hr__serve_init(&worker, &options, NULL));
    hr__serve_connected(&worker, DISPATCHER, 0, fresh());
    CHECK_EQ_INT(sent(DISPATCHER, HR_FRAME_HELLO, 0)->count, leases);
}

static void lease(uint32_t generation, uint64_t from, uint64_t until, uint64_t now)
{
    struct hr_frame frame = {HR_FRAME_LEASE, .count = 1, .generation = generation,
                             .job = JOB};

    frame.u.lease.ttl_ms = 1000;
    frame.u.lease.ranges[0] = (struct hr_frame_range){from, until};
    hr__serve_frame(&worker, DISPATCHER, &frame, now, fresh());
}

static void join(hr_peer peer, uint32_t generation, uint64_t cursor)
{
    struct hr_frame hello = client_hello(JOB, 1, 0, 5);

    hello.generation = generation;
    hello.position = cursor;
    hr__serve_frame(&worker, peer, &hello, 0, fresh());
}

static void credit(hr_peer peer, uint32_t generation, uint64_t total, uint64_t cursor)
{
    struct hr_frame frame = {HR_FRAME_CREDIT, .position = cursor,
                             .generation = generation};

    frame.u.credit.total = total;
    hr__serve_frame(&worker, peer, &frame, 0, fresh());
}

/* Makes the next frame of this many bytes, in as many nanoseconds; checks where it
 * begins; -1: there is none. */
static void check_next(int64_t position, size_t bytes)
{
    struct hr_serve_task task;
    bool found = hr__serve_next(&worker, &task, fresh());

    CHECK_EQ_INT(found, position >= 0);
    if (!found)
        return;
    CHECK_EQ_INT(task.position, position);
    hr__serve_sent(&worker, &task, bytes, (struct hr_serve_took){bytes, bytes}, &actions);
}

TEST(frames_of_the_lowest_lease_go_out_as_far_as_the_credit_goes)
{
    start(8);
    lease(1, 20, 30, 0);
    lease(1, 10, 16, 0);
    check_next(-1, 0); /* no client yet */
    join(2, 1, 0);
    CHECK_EQ_INT(sent(2, HR_FRAME_WELCOME, 0)->generation, 1);
    check_next(-1, 0); /* no credit */
    credit(2, 1, 25, 0);
    check_next(10, 10);
    check_next(14, 10);
    CHECK_EQ_INT(sent(DISPATCHER, HR_FRAME_FINISHED, 0)->u.lease.ranges[0].from, 10);
    check_next(20, 10);
    check_next(-1, 0);
    credit(2, 1, 20, 0); /* an old one */
    check_next(-1, 0);
    credit(2, 1, 31, 0);
    check_next(24, 10);
    hr__serve_finish(&worker);
}

TEST(one_frame_at_the_cursor_needs_no_credit)
{
    start(8);
    join(2, 1, 0);
    lease(1, 8, 20, 0);
    check_next(-1, 0);
    credit(2, 1, 0, 8);
    check_next(8, 10);
    credit(2, 1, 0, 12); /* the first has not arrived */
    check_next(-1, 0);
    credit(2, 1, 10, 12);
    check_next(12, 10);
    hr__serve_finish(&worker);
}

TEST(what_the_client_has_taken_is_not_sent)
{
    start(8);
    join(2, 1, 0);
    lease(1, 8, 20, 0);
    lease(1, 20, 40, 0);
    credit(2, 1, 1000, 22);
    check_next(22, 10);
    CHECK_EQ_INT(sent(DISPATCHER, HR_FRAME_FINISHED, 0)->u.lease.ranges[0].from, 8);
    hr__serve_finish(&worker);
}

TEST(a_later_incarnation_of_a_client_ends_the_leases_of_the_earlier_one)
{
    start(8);
    join(2, 1, 0);
    credit(2, 1, 1000, 0);
    lease(1, 8, 20, 0);
    check_next(8, 10);
    join(3, 2, 0);
    check_next(-1, 0);
    lease(2, 8, 20, 0);
    credit(3, 2, 1000, 0);
    check_next(8, 10);
    join(4, 1, 0);
    check_refused(4, HR_ERR_CANCELLED, "has taken over");
    join(5, 0, 0);
    check_refused(5, HR_ERR_STATE, "join the dispatcher first");
    hr__serve_finish(&worker);
}

TEST(leases_expire_are_renewed_and_the_oldest_makes_room)
{
    start(2);
    join(2, 1, 0);
    lease(1, 0, 10, 0);
    lease(1, 0, 10, 500 * MS);
    CHECK_EQ_INT(worker.lease_count, 1);
    hr__serve_tick(&worker, 1000 * MS, fresh());
    CHECK_EQ_INT(worker.lease_count, 1);
    CHECK(sent(DISPATCHER, HR_FRAME_PROGRESS, 0) != NULL);
    lease(1, 10, 20, 1000 * MS);
    lease(1, 20, 30, 1000 * MS);
    CHECK_EQ_INT(worker.lease_count, 2);
    credit(2, 1, 1000, 10);
    check_next(10, 1);
    hr__serve_tick(&worker, 2000 * MS, fresh());
    CHECK_EQ_INT(worker.lease_count, 0);
    hr__serve_finish(&worker);
}

/* Rank 1 of the job joins as peer 3, and a lease for it comes. */
static void join_weighing(uint32_t weight, uint64_t from, uint64_t until)
{
    struct hr_frame hello = client_hello(JOB, 2, 1, 6);
    struct hr_frame other = {HR_FRAME_LEASE, .count = 1, .generation = 2, .job = JOB};

    hello.generation = 2;
    hello.u.hello.weight = weight;
    hr__serve_frame(&worker, 3, &hello, 0, fresh());
    other.u.lease.rank = 1;
    other.u.lease.ttl_ms = 1000;
    other.u.lease.ranges[0] = (struct hr_frame_range){from, until};
    hr__serve_frame(&worker, DISPATCHER, &other, 0, fresh());
}

static void join_other(uint64_t from, uint64_t until)
{
    join_weighing(1, from, until);
}

/* Two clients with leases and credit, neither of which was sent anything. */
static void start_weighing(uint32_t weight)
{
    start(8);
    join(2, 1, 0);
    lease(1, 0, 100, 0);
    join_weighing(weight, 500, 600);
    credit(2, 1, 1000, 0);
    credit(3, 2, 1000, 0);
}

static void start_two(void)
{
    start_weighing(1);
}

/* Makes the next frame; checks where it begins, and says that it took this long. */
static void check_next_takes(uint64_t position, uint64_t ns)
{
    struct hr_serve_task task;

    CHECK(hr__serve_next(&worker, &task, fresh()));
    CHECK_EQ_INT(task.position, position);
    hr__serve_sent(&worker, &task, 1, (struct hr_serve_took){ns, ns}, &actions);
}

TEST(clients_have_equal_parts_of_the_time_whatever_their_batches_take)
{
    start_two();
    check_next_takes(500, 1000 * MS); /* the later lease: neither was sent anything */
    for (uint64_t i = 0; i < 10; i++)
        check_next_takes(4 * i, 101 * MS);
    check_next_takes(504, 1000 * MS);
    check_next_takes(40, 101 * MS);
    hr__serve_finish(&worker);
}

TEST(a_client_of_weight_three_has_three_times_as_much_of_the_time)
{
    uint64_t other = 504;

    start_weighing(3);
    check_next_takes(500, 101 * MS); /* the later lease: neither was sent anything */
    for (uint64_t i = 0; i < 4; i++) {
        check_next_takes(4 * i, 102 * MS);
        for (int k = 0; k < 3; k++, other += 4)
            check_next_takes(other, 101 * MS);
    }
    hr__serve_finish(&worker);
}

TEST(a_client_that_comes_later_or_wants_nothing_for_a_while_does_not_catch_up)
{
    start(8);
    join(2, 1, 0);
    lease(1, 0, 100, 0);
    credit(2, 1, 1000, 0);
    for (uint64_t i = 0; i < 5; i++)
        check_next_takes(4 * i, 100 * MS);
    join_other(500, 600);
    credit(3, 2, 2, 0);
    check_next_takes(500, 101 * MS);
    check_next_takes(20, 102 * MS);
    check_next_takes(504, 101 * MS);
    for (uint64_t i = 6; i < 10; i++)
        check_next_takes(4 * i, 100 * MS); /* the other one has no credit */
    credit(3, 2, 1000, 0);
    for (uint64_t i = 0; i < 5; i++) {
        check_next_takes(40 + 4 * i, 100 * MS); /* it got the latest one before that */
        check_next_takes(508 + 4 * i, 100 * MS);
    }
    hr__serve_finish(&worker);
}

TEST(clients_are_served_in_turns)
{
    start_two();
    check_next(500, 30); /* the later lease: neither was sent anything */
    check_next(0, 20);
    check_next(4, 20);
    check_next(504, 20);
    hr__serve_finish(&worker);
}

TEST(what_of_a_frame_is_not_there_yet_is_sent_after_others)
{
    struct hr_serve_task waits, task;

    start(8);
    worker.options.turn_ns = 40 * MS;
    join(2, 1, 0);
    lease(1, 0, 6, 0);
    join_other(500, 600);
    credit(2, 1, 1000, 0);
    credit(3, 2, 1000, 0);
    CHECK(hr__serve_next(&worker, &waits, fresh()));
    CHECK_EQ_INT(waits.position, 500);
    for (uint32_t i = 0; i < 2; i++) { /* the first of four positions, then none */
        CHECK(hr__serve_next(&worker, &task, fresh()));
        CHECK_EQ_INT(task.position, i);
        hr__serve_shorten(&worker, &task, 1 - i);
        CHECK_EQ_INT(task.count, 1 - i);
        hr__serve_sent(&worker, &task, 1 - i, (struct hr_serve_took){10 * MS, 10 * MS},
                       &actions);
        CHECK(sent(DISPATCHER, HR_FRAME_FINISHED, 0) == NULL);
    }
    hr__serve_sent(&worker, &waits, 1, (struct hr_serve_took){10 * MS, 10 * MS},
                   &actions);
    check_next_takes(504, 50 * MS); /* the other one's turn is over */
    check_next_takes(1, 10 * MS);
    check_next_takes(5, 10 * MS);
    CHECK_EQ_INT(sent(DISPATCHER, HR_FRAME_FINISHED, 0)->u.lease.ranges[0].until, 6);
    hr__serve_finish(&worker);
}

/* Two frames, the second of which ends a run that used `run_ns`; what FINISHED says. */
static uint32_t work_of_lease(uint64_t run_ns)
{
    uint32_t work_us;

    start(8);
    join(2, 1, 0);
    lease(1, 0, 8, 0);
    credit(2, 1, 1000, 0);
    for (uint64_t i = 0; i < 2; i++) {
        struct hr_serve_took took = {.ns = 10 * MS, .work_ns = MS, .run_ns = i * run_ns};
        struct hr_serve_task task;

        CHECK(hr__serve_next(&worker, &task, fresh()));
        hr__serve_sent(&worker, &task, 1, took, &actions);
    }
    work_us = sent(DISPATCHER, HR_FRAME_FINISHED, 0)->u.lease.work_us;
    hr__serve_finish(&worker);
    return work_us;
}

TEST(a_lease_took_the_time_of_its_frames_or_that_of_its_run)
{
    CHECK_EQ_INT(work_of_lease(0), 20000);
    CHECK_EQ_INT(work_of_lease(19 * MS), 20000);
    CHECK_EQ_INT(work_of_lease(300 * MS), 300000);
    CHECK_EQ_INT(work_of_lease(UINT64_MAX / 2), UINT32_MAX);
}

/* A client whose batches are long in coming has used no more than it computed. */
TEST(waits_for_batches_are_nobodys_time)
{
    struct hr_serve_task task;

    start_two();
    worker.options.turn_ns = 0;
    CHECK(hr__serve_next(&worker, &task, fresh()));
    CHECK_EQ_INT(task.position, 500);
    hr__serve_sent(&worker, &task, 1, (struct hr_serve_took){1000 * MS, MS}, &actions);
    check_next_takes(0, 2 * MS);
    check_next_takes(504, 2 * MS);
    check_next_takes(4, 2 * MS);
    hr__serve_finish(&worker);
}

TEST(each_dispatcher_hears_of_its_leases)
{
    const struct hr_frame *done;
    struct hr_frame other = {HR_FRAME_LEASE, .count = 1, .generation = 1, .job = JOB};

    start(8);
    hr__serve_connected(&worker, 5, 0, fresh());
    CHECK(sent(5, HR_FRAME_HELLO, 0) != NULL);
    join(2, 1, 0);
    credit(2, 1, 1000, 0);
    lease(1, 0, 4, 0);
    other.u.lease.ttl_ms = 1000;
    other.u.lease.ranges[0] = (struct hr_frame_range){4, 8};
    hr__serve_frame(&worker, 5, &other, 0, fresh());
    check_next(0, 1);
    CHECK(sent(DISPATCHER, HR_FRAME_FINISHED, 0) != NULL);
    CHECK(sent(5, HR_FRAME_FINISHED, 0) == NULL);
    check_next(4, 1);
    done = sent(5, HR_FRAME_FINISHED, 0);
    CHECK(done != NULL && done->u.lease.ranges[0].from == 4);
    CHECK(sent(DISPATCHER, HR_FRAME_FINISHED, 0) == NULL);
    hr__serve_tick(&worker, 100 * MS, fresh());
    CHECK(sent(DISPATCHER, HR_FRAME_PROGRESS, 0) != NULL);
    CHECK(sent(5, HR_FRAME_PROGRESS, 0) != NULL);

    lease(1, 8, 12, 0);
    hr__serve_lost(&worker, DISPATCHER);
    CHECK(hr__serve_is_dispatcher(&worker, 5));
    CHECK(!hr__serve_is_dispatcher(&worker, DISPATCHER));
    check_next(8, 1); /* made, but there is nobody to tell */
    CHECK(sent(DISPATCHER, HR_FRAME_FINISHED, 0) == NULL);
    CHECK(sent(5, HR_FRAME_FINISHED, 0) == NULL);
    hr__serve_finish(&worker);
}

TEST(a_lost_client_stops_its_frames_and_wrong_messages_are_refused)
{
    struct hr_frame ack = {HR_FRAME_ACK};

    start(8);
    join(2, 1, 0);
    credit(2, 1, 1000, 0);
    lease(1, 0, 100, 0);
    hr__serve_lost(&worker, 2);
    check_next(-1, 0);
    hr__serve_frame(&worker, 4, &ack, 0, fresh());
    check_refused(4, HR_ERR_STATE, "ACK frame is not expected here");
    hr__serve_lost(&worker, DISPATCHER);
    hr__serve_tick(&worker, 1000 * MS, fresh());
    CHECK_EQ_INT(actions.count, 0);
    hr__serve_finish(&worker);
}

TEST(the_latest_connection_of_a_client_is_served)
{
    start(8);
    join(5, 1, 0);
    credit(5, 1, 1000, 0);
    join(2, 1, 0); /* it came back; the older one is not known to be lost */
    credit(2, 1, 1000, 0);
    join(5, 1, 0); /* said again, late */
    lease(1, 0, 10, 0);
    check_next(0, 10);
    CHECK_EQ_INT(worker.clients[2].sent, 10);
    join(6, 1, 0);
    credit(6, 1, 1000, 4);
    hr__serve_lost(&worker, 5);
    check_next(4, 10);
    CHECK_EQ_INT(worker.clients[6].sent, 10);
    hr__serve_finish(&worker);
}

static bool has_lease(uint64_t from)
{
    for (uint32_t i = 0; i < worker.lease_count; i++)
        if (worker.leases[i].from == from)
            return true;
    return false;
}

TEST(leases_that_nobody_is_here_for_make_room_first)
{
    struct hr_frame hello = client_hello(JOB, 2, 1, 6);
    struct hr_frame other = {HR_FRAME_LEASE, .count = 1, .generation = 2, .job = JOB};

    start(3);
    join(2, 1, 0);
    lease(1, 0, 10, 0); /* the oldest one, of a client that is here */
    other.u.lease.rank = 1;
    other.u.lease.ttl_ms = 1000;
    for (uint64_t i = 5; i < 9; i++) {
        other.u.lease.ranges[0] = (struct hr_frame_range){100 * i, 100 * i + 10};
        hr__serve_frame(&worker, DISPATCHER, &other, i * MS, fresh());
    }
    CHECK(has_lease(0) && has_lease(700) && has_lease(800));
    hello.generation = 2;
    hr__serve_frame(&worker, 3, &hello, 0, fresh());
    lease(1, 20, 30, 10 * MS); /* all have a client: the oldest gives way */
    CHECK(has_lease(20) && has_lease(700) && has_lease(800));
    hr__serve_lost(&worker, 3);
    CHECK_EQ_INT(worker.lease_count, 3); /* it may come back */
    lease(1, 40, 50, 11 * MS);
    CHECK(has_lease(20) && has_lease(40) && has_lease(800));
    lease(1, 60, 70, 12 * MS);
    CHECK(has_lease(20) && has_lease(40) && has_lease(60));
    hr__serve_finish(&worker);
}

TEST(leases_of_a_client_that_says_goodbye_end_unless_it_has_another_connection)
{
    struct hr_serve_task task;

    start(8);
    join(2, 1, 0);
    join(3, 1, 0); /* the newer connection of the same client */
    lease(1, 0, 10, 0);
    hr__serve_frame(&worker, 2, &(struct hr_frame){HR_FRAME_GOODBYE}, 0, fresh());
    credit(3, 1, 1000, 0);
    check_next(0, 10);
    CHECK(hr__serve_next(&worker, &task, fresh()));
    hr__serve_frame(&worker, 3, &(struct hr_frame){HR_FRAME_GOODBYE}, 0, fresh());
    CHECK_EQ_INT(worker.lease_count, 0);
    CHECK(hr__serve_is_done(&worker));
    hr__serve_sent(&worker, &task, 10, (struct hr_serve_took){10, 10},
                   fresh()); /* it was in the making */
    CHECK_EQ_INT(actions.count, 0);
    hr__serve_finish(&worker);
}

TEST(failed_allocations_are_reported)
{
    const struct hr_serve_options options = {.peers_max = 9, .leases_max = 4};

    for (uint64_t nth = 1; nth <= 2; nth++) {
        hr__fault_arm(HR_FAULT_ALLOC, nth);
        CHECK_ERR(HR_ERR_MEMORY, hr__serve_init(&worker, &options, NULL));
        hr__fault_arm(HR_FAULT_ALLOC, 0);
        hr__serve_finish(&worker);
    }
}

TEST(a_client_that_takes_nothing_or_whose_job_is_not_open_is_sent_nothing)
{
    struct hr_serve_task task;

    start(4);
    join(2, 1, 0);
    credit(2, 1, 1000, 0);
    lease(1, 0, 10, 0);
    worker.clients[2].full = true;
    CHECK(!hr__serve_next(&worker, &task, fresh()));
    worker.clients[2].full = false;
    worker.clients[2].waiting = true;
    CHECK(!hr__serve_next(&worker, &task, fresh()));
    worker.clients[2].waiting = false;
    worker.clients[2].frame_positions = 3;
    CHECK(hr__serve_next(&worker, &task, fresh()));
    CHECK_EQ_INT(task.position, 0);
    CHECK_EQ_INT(task.count, 3);
    CHECK_EQ_INT(task.until, 10);
    hr__serve_finish(&worker);
}
