/*
 * svc/claim_test.c - an independent consumer, event by event.
 */
#include "svc/claim.h"

#include "core/alloc.h"
#include "svc/svc_test_util.h"

#define DISPATCHER 1

static struct hr_claims claims;
static char payload;

static struct hr_claims_options plain(void)
{
    return (struct hr_claims_options){.job = 7,
                                      .nonce = 5,
                                      .end = 100,
                                      .rank = 1,
                                      .workers_max = 2,
                                      .pieces_max = 4,
                                      .budget = 1000,
                                      .beat_ns = 100 * MS,
                                      .weight = 1};
}

static void start(void)
{
    struct hr_claims_options options = plain();

    CHECK_OK(hr__claims_init(&claims, &options, NULL));
    hr__claims_connected(&claims, DISPATCHER, 0, 0, fresh());
    CHECK_EQ_INT(sent(DISPATCHER, HR_FRAME_HELLO, 0)->u.hello.rank, 1);
}

static void stop(void)
{
    while (hr__claims_drop(&claims) != NULL)
        ;
    hr__claims_finish(&claims);
}

static enum hr_claims_do welcome(uint32_t generation, uint64_t nonce, uint64_t committed)
{
    struct hr_frame frame = {HR_FRAME_WELCOME, .position = 1, .generation = generation};

    frame.u.welcome.nonce = nonce;
    frame.u.welcome.committed = committed;
    return hr__claims_frame(&claims, DISPATCHER, &frame, fresh());
}

static void bound(uint64_t from, uint64_t until)
{
    struct hr_frame frame = {HR_FRAME_BIND, .count = 1, .generation = claims.generation};

    frame.u.lease.ranges[0] = (struct hr_frame_range){from, until};
    CHECK_EQ_INT(hr__claims_frame(&claims, DISPATCHER, &frame, fresh()),
                 HR_CLAIMS_NOTHING);
}

static bool data(uint64_t position, uint32_t count, uint32_t generation)
{
    struct hr_frame frame = {HR_FRAME_DATA, .position = position, .count = count,
                             .generation = generation};
    bool kept;

    hr__claims_data(&claims, 2, &frame, 10, &payload, &kept, fresh());
    return kept;
}

static void check_take(uint64_t position, uint32_t count, uint32_t skip)
{
    struct hr_claim_piece piece;

    CHECK(hr__claims_take(&claims, 100, &piece, fresh()));
    CHECK(piece.last);
    CHECK_EQ_INT(piece.position, position);
    CHECK_EQ_INT(piece.count, count);
    CHECK_EQ_INT(piece.skip, skip);
}

static enum hr_claims_do committed(uint64_t id)
{
    struct hr_frame frame = {HR_FRAME_COMMITTED, .generation = claims.generation};

    frame.u.commit.id = id;
    return hr__claims_frame(&claims, DISPATCHER, &frame, fresh());
}

TEST(the_dispatcher_says_which_checkpoint_counts)
{
    start();
    CHECK_EQ_INT(welcome(1, 6, 3), HR_CLAIMS_NOTHING); /* of an older incarnation */
    CHECK_EQ_INT(claims.state, HR_CLAIMS_APART);
    CHECK(!claims.resolved);
    CHECK_EQ_INT(welcome(1, 5, 3), HR_CLAIMS_NOTHING);
    CHECK_EQ_INT(claims.state, HR_CLAIMS_JOINED);
    CHECK_EQ_INT(welcome(1, 5, 4), HR_CLAIMS_NOTHING);
    CHECK(claims.resolved && claims.committed == 3); /* it was known */
    CHECK_EQ_INT(hr__claims_resolve(&claims, 3, 0), HR_CLAIMS_NOTHING);
    CHECK_EQ_INT(hr__claims_resolve(&claims, 3, 4), HR_CLAIMS_KEEP);
    CHECK_EQ_INT(hr__claims_resolve(&claims, 2, 3), HR_CLAIMS_RENAME);
    CHECK_EQ_INT(hr__claims_resolve(&claims, 1, 2), HR_CLAIMS_STOP);
    CHECK_EQ_INT(claims.error.code, HR_ERR_STATE);
    CHECK_HAS(claims.error.message, "checkpoint 3 is the one that was committed last");
    CHECK_EQ_INT(hr__claims_resolve(&claims, 0, 0), HR_CLAIMS_STOP);
    CHECK_HAS(claims.error.message, "checkpoint 3 of this consumer is committed: resume");
    stop();
}

TEST(only_what_is_bound_is_accepted_in_order_and_once)
{
    start();
    hr__claims_connected(&claims, 2, HR_FRAME_WORKER, 0, fresh());
    welcome(1, 5, 3);
    CHECK_EQ_INT(sent(2, HR_FRAME_CREDIT, 0)->u.credit.total, 500);
    bound(12, 20);
    bound(30, 40);
    CHECK(!data(14, 2, 1)); /* 12 comes first */
    CHECK(!data(10, 4, 2)); /* of another incarnation */
    CHECK(data(10, 4, 1));
    CHECK(!data(10, 4, 1));
    CHECK(data(30, 4, 1));
    CHECK(data(12, 20, 1)); /* to the end of the range */
    check_take(12, 2, 2);
    check_take(30, 4, 0);
    check_take(14, 6, 2);
    CHECK_EQ_INT(claims.bytes, 0);
    stop();
}

TEST(frames_that_come_before_their_range_wait_for_it)
{
    start();
    hr__claims_connected(&claims, 2, HR_FRAME_WORKER, 0, fresh());
    welcome(1, 5, 3);
    CHECK(data(10, 4, 1));
    CHECK(data(14, 6, 1));
    CHECK(data(50, 5, 1));
    CHECK_EQ_INT(claims.bytes, 30);
    CHECK_EQ_INT(claims.piece_count, 0);
    bound(10, 20);
    check_take(10, 4, 0);
    check_take(14, 6, 0);
    CHECK(!data(14, 6, 1)); /* it is known */
    hr__claims_tick(&claims, 1000 * MS, fresh());
    CHECK(hr__claims_expired(&claims, 1000 * MS) == NULL);
    CHECK(hr__claims_expired(&claims, 1001 * MS) != NULL);
    CHECK(hr__claims_expired(&claims, 1001 * MS) == NULL);
    CHECK_EQ_INT(claims.bytes, 0);
    for (uint64_t i = 0; i < HR_CLAIMS_EARLY; i++)
        CHECK(data(20 + i, 1, 1));
    CHECK(!data(95, 1, 1));
    stop();
}

TEST(a_commit_names_what_was_taken_since_the_last_one)
{
    const struct hr_frame *frame;

    start();
    hr__claims_connected(&claims, 2, HR_FRAME_WORKER, 0, fresh());
    welcome(1, 5, 3);
    bound(10, 20);
    bound(20, 30);
    CHECK(data(10, 10, 1));
    CHECK(data(20, 4, 1));
    CHECK(data(24, 2, 1));
    check_take(10, 10, 0);
    check_take(20, 4, 0);
    hr__claims_commit(&claims, fresh());
    frame = sent(DISPATCHER, HR_FRAME_COMMIT, 0);
    CHECK_EQ_INT(frame->u.commit.id, 4);
    CHECK_EQ_INT(frame->count, 2);
    CHECK_EQ_INT(frame->u.commit.ranges[1].until, 24);
    check_take(24, 2, 0);
    hr__claims_tick(&claims, 100 * MS, fresh());
    frame = sent(DISPATCHER, HR_FRAME_COMMIT, 0);
    CHECK_EQ_INT(frame->u.commit.ranges[1].until, 24); /* as before */
    CHECK_EQ_INT(sent(DISPATCHER, HR_FRAME_PROGRESS, 0)->position, 26);
    CHECK_EQ_INT(committed(3), HR_CLAIMS_NOTHING);
    CHECK_EQ_INT(committed(4), HR_CLAIMS_RENAME);
    CHECK_EQ_INT(committed(4), HR_CLAIMS_NOTHING);
    CHECK_EQ_INT(claims.count, 1);
    hr__claims_commit(&claims, fresh());
    frame = sent(DISPATCHER, HR_FRAME_COMMIT, 0);
    CHECK(frame->count == 1 && frame->u.commit.ranges[0].from == 24);
    stop();
}

TEST(parts_of_a_frame_are_taken_and_its_bytes_are_held_until_the_last)
{
    struct hr_claim_piece piece;

    start();
    hr__claims_connected(&claims, 2, HR_FRAME_WORKER, 0, fresh());
    welcome(1, 5, 3);
    bound(10, 20);
    CHECK(data(8, 12, 1));
    CHECK(hr__claims_take(&claims, 3, &piece, fresh()));
    CHECK(piece.position == 10 && piece.count == 3 && piece.skip == 2 && !piece.last);
    CHECK_EQ_INT(claims.bytes, 10);
    CHECK_EQ_INT(hr__claims_uncommitted(&claims), 3);
    hr__claims_commit(&claims, fresh());
    CHECK_EQ_INT(sent(DISPATCHER, HR_FRAME_COMMIT, 0)->u.commit.ranges[0].until, 13);
    check_take(13, 7, 5);
    CHECK_EQ_INT(sent(DISPATCHER, HR_FRAME_PROGRESS, 0)->count, 1);
    CHECK_EQ_INT(claims.bytes, 0);
    CHECK_EQ_INT(hr__claims_uncommitted(&claims), 7);
    stop();
}

static void progress(uint64_t position)
{
    struct hr_frame frame = {HR_FRAME_PROGRESS, .position = position,
                             .generation = claims.generation};

    CHECK_EQ_INT(hr__claims_frame(&claims, DISPATCHER, &frame, fresh()),
                 HR_CLAIMS_NOTHING);
}

TEST(a_commit_is_due_when_nothing_comes_without_it)
{
    start();
    hr__claims_connected(&claims, 2, HR_FRAME_WORKER, 0, fresh());
    welcome(1, 5, 3);
    bound(0, 10);
    progress(0); /* it has not heard of what was bound */
    CHECK(!claims.idle);
    CHECK(data(0, 10, 1));
    check_take(0, 10, 0);
    CHECK(!hr__claims_is_due(&claims));
    progress(0);
    CHECK(hr__claims_is_due(&claims));
    bound(10, 20);
    CHECK(!hr__claims_is_due(&claims));
    CHECK(data(10, 10, 1));
    check_take(10, 10, 0);
    progress(0);
    hr__claims_commit(&claims, fresh());
    CHECK(!hr__claims_is_due(&claims));
    hr__claims_tick(&claims, 100 * MS, fresh());
    CHECK_EQ_INT(sent(DISPATCHER, HR_FRAME_PROGRESS, 0)->count, 0);
    CHECK_EQ_INT(committed(4), HR_CLAIMS_RENAME);
    CHECK_EQ_INT(sent(DISPATCHER, HR_FRAME_PROGRESS, 0)->position, HR_FRAME_POSITION_MAX);
    CHECK(!hr__claims_is_due(&claims) && !claims.done);
    progress(100);
    CHECK(claims.done);
    stop();
}

TEST(a_pending_commit_is_sent_again_after_a_reconnect)
{
    start();
    welcome(1, 5, 3);
    hr__claims_commit(&claims, fresh());
    hr__claims_lost(&claims, DISPATCHER);
    CHECK_EQ_INT(claims.state, HR_CLAIMS_APART);
    hr__claims_connected(&claims, 3, 0, 0, fresh());
    CHECK_EQ_INT(sent(3, HR_FRAME_HELLO, 0)->generation, 1);
    claims.dispatcher = DISPATCHER;
    CHECK_EQ_INT(welcome(1, 5, 3), HR_CLAIMS_NOTHING);
    CHECK_EQ_INT(sent(DISPATCHER, HR_FRAME_COMMIT, 0)->u.commit.id, 4);
    stop();
}

TEST(a_dispatcher_with_another_journal_stops_the_consumer)
{
    struct hr_frame frame = {HR_FRAME_WELCOME, .position = 1, .generation = 1};

    start();
    frame.u.welcome.nonce = 5;
    frame.u.welcome.window = 77;
    CHECK_EQ_INT(hr__claims_frame(&claims, DISPATCHER, &frame, fresh()),
                 HR_CLAIMS_NOTHING);
    CHECK_EQ_INT(claims.journal, 77);
    hr__claims_lost(&claims, DISPATCHER);
    hr__claims_connected(&claims, DISPATCHER, 0, 0, fresh());
    CHECK_EQ_INT(hr__claims_frame(&claims, DISPATCHER, &frame, fresh()),
                 HR_CLAIMS_NOTHING);
    frame.u.welcome.window = 78;
    CHECK_EQ_INT(hr__claims_frame(&claims, DISPATCHER, &frame, fresh()), HR_CLAIMS_STOP);
    CHECK_EQ_INT(claims.error.code, HR_ERR_STATE);
    CHECK_HAS(claims.error.message, "another journal");
    stop();
}

TEST(an_evicted_consumer_stops_and_a_refused_one_tries_again)
{
    struct hr_frame error = {HR_FRAME_ERROR};

    start();
    error.u.error.code = HR_ERR_IO; /* the journal's disk is full */
    snprintf(error.u.error.text, sizeof error.u.error.text, "wait");
    CHECK_EQ_INT(hr__claims_frame(&claims, DISPATCHER, &error, fresh()),
                 HR_CLAIMS_NOTHING);
    CHECK_EQ_INT(claims.state, HR_CLAIMS_REFUSED);
    hr__claims_tick(&claims, 100 * MS, fresh());
    CHECK(sent(DISPATCHER, HR_FRAME_HELLO, 0) != NULL);
    welcome(1, 5, 3);
    CHECK_EQ_INT(welcome(2, 5, 3), HR_CLAIMS_STOP); /* evicted in between */
    CHECK_EQ_INT(claims.state, HR_CLAIMS_REPLACED);
    hr__claims_tick(&claims, 300 * MS, fresh());
    CHECK_EQ_INT(actions.count, 0);
    stop();
    start();
    welcome(1, 5, 3);
    error.u.error.code = HR_ERR_CANCELLED;
    CHECK_EQ_INT(hr__claims_frame(&claims, DISPATCHER, &error, fresh()), HR_CLAIMS_STOP);
    CHECK_HAS(claims.error.message, "refuses this client: wait");
    stop();
}

TEST(held_pieces_are_bounded_and_failed_allocations_reported)
{
    struct hr_claims_options options = plain();

    start();
    hr__claims_connected(&claims, 2, HR_FRAME_WORKER, 0, fresh());
    welcome(1, 5, 3);
    bound(0, 100);
    for (uint64_t i = 0; i < 4; i++)
        CHECK(data(i, 1, 1));
    CHECK(!data(4, 1, 1));
    check_take(0, 1, 0);
    CHECK(data(4, 1, 1));
    stop();
    for (uint64_t nth = 1; nth <= 2; nth++) {
        hr__fault_arm(HR_FAULT_ALLOC, nth);
        CHECK_ERR(HR_ERR_MEMORY, hr__claims_init(&claims, &options, NULL));
        hr__fault_arm(HR_FAULT_ALLOC, 0);
        hr__claims_finish(&claims);
    }
}
