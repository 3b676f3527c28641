/*
 * svc/client_test.c - the client's side of its connections, event by event.
 */
#include "svc/client.h"

#include "core/alloc.h"
#include "core/rng.h"
#include "svc/svc_test_util.h"

#define DISPATCHER 1

static struct hr_cursor cursor;
static struct hr_client client;

static void start(size_t budget)
{
    const struct hr_cursor_options options = {
        .job = 7,
        .share = {.end = 1000, .split = 1000, .world = 1},
        .window = 64,
        .budget = budget,
        .pieces = 64,
        .ordered = true
    };
    const struct hr_client_options own = {
        .nonce = 5, .workers_max = 3, .beat_ns = 100 * MS, .weight = 1};

    CHECK_OK(hr__cursor_init(&cursor, &options, NULL));
    CHECK_OK(hr__client_init(&client, &cursor, &own, NULL));
}

static void stop(void)
{
    while (hr__cursor_drop(&cursor) != NULL)
        ;
    hr__cursor_finish(&cursor);
    hr__client_finish(&client);
}

static void welcome(uint32_t generation, uint64_t nonce)
{
    struct hr_frame frame = {HR_FRAME_WELCOME, .generation = generation};

    frame.u.welcome.nonce = nonce;
    hr__client_frame(&client, DISPATCHER, &frame, 0, fresh());
}

static void refuse(enum hr_err code)
{
    struct hr_frame frame = {HR_FRAME_ERROR};

    frame.u.error.code = code;
    snprintf(frame.u.error.text, sizeof frame.u.error.text, "because");
    hr__client_frame(&client, DISPATCHER, &frame, 0, fresh());
}

static bool data(hr_peer peer, uint64_t position, uint32_t count, size_t bytes)
{
    struct hr_frame frame = {HR_FRAME_DATA, .position = position, .count = count,
                             .generation = client.generation};
    static char payload;
    bool kept;

    CHECK_OK(
        hr__client_data(&client, peer, &frame, bytes, &payload, &kept, fresh(), NULL));
    return kept;
}

TEST(workers_are_greeted_when_the_dispatcher_has_given_a_generation)
{
    start(90);
    hr__client_connected(&client, 2, HR_FRAME_WORKER, 0, fresh());
    CHECK_EQ_INT(actions.count, 0);
    hr__client_connected(&client, DISPATCHER, 0, 0, fresh());
    CHECK_EQ_INT(sent(DISPATCHER, HR_FRAME_HELLO, 0)->u.hello.nonce, 5);
    welcome(4, 6); /* of an older incarnation */
    CHECK_EQ_INT(client.state, HR_CLIENT_APART);
    welcome(4, 5);
    CHECK_EQ_INT(client.state, HR_CLIENT_JOINED);
    CHECK_EQ_INT(sent(2, HR_FRAME_HELLO, 0)->generation, 4);
    CHECK_EQ_INT(sent(2, HR_FRAME_CREDIT, 0)->u.credit.total, 30);
    hr__client_connected(&client, 3, HR_FRAME_WORKER, 0, fresh());
    CHECK_EQ_INT(sent(3, HR_FRAME_HELLO, 0)->generation, 4);
    CHECK_EQ_INT(sent(3, HR_FRAME_CREDIT, 0)->u.credit.total, 30);
    hr__client_connected(&client, 4, HR_FRAME_WORKER, 0, fresh());
    hr__client_connected(&client, 5, HR_FRAME_WORKER, 0, fresh());
    CHECK(place_of(HR_ACTION_CLOSE, 5) >= 0);
    stop();
}

TEST(credit_comes_back_when_records_are_taken)
{
    struct hr_taken taken;

    start(99);
    hr__client_connected(&client, DISPATCHER, 0, 0, fresh());
    hr__client_connected(&client, 2, HR_FRAME_WORKER, 0, fresh());
    welcome(1, 5);
    CHECK(data(2, 1, 1, 33));
    CHECK_EQ_INT(sent(2, HR_FRAME_CREDIT, 0)->u.credit.total, 66);
    CHECK(data(2, 2, 1, 33));
    CHECK_EQ_INT(sent(2, HR_FRAME_CREDIT, 0)->u.credit.total, 99);
    CHECK(data(2, 3, 1, 33)); /* the budget is used up */
    CHECK(sent(2, HR_FRAME_CREDIT, 0) == NULL);
    CHECK(!data(2, 4, 1, 33)); /* beyond all credit */
    CHECK(data(2, 0, 1, 33));  /* at the cursor */
    CHECK_EQ_INT(sent(2, HR_FRAME_CREDIT, 0)->u.credit.total, 165);
    CHECK(hr__cursor_take(&cursor, 1, &taken) && hr__cursor_take(&cursor, 1, &taken));
    hr__client_taken(&client, 0, fresh());
    CHECK_EQ_INT(sent(2, HR_FRAME_CREDIT, 0)->u.credit.total, 198);
    CHECK_EQ_INT(sent(2, HR_FRAME_CREDIT, 0)->position, 2);
    CHECK(!data(2, 0, 1, 30)); /* again */
    CHECK_EQ_INT(sent(2, HR_FRAME_CREDIT, 0)->u.credit.total, 228);
    stop();
}

TEST(progress_is_told_by_steps_and_beats_and_durable_cursors_at_once)
{
    struct hr_taken taken;

    start(10000);
    hr__client_connected(&client, DISPATCHER, 0, 0, fresh());
    hr__client_saved(&client, 3, fresh());
    CHECK_EQ_INT(actions.count, 0);
    hr__client_tick(&client, 100 * MS, fresh());
    CHECK(sent(DISPATCHER, HR_FRAME_HELLO, 0) != NULL);
    welcome(1, 5);
    CHECK_EQ_INT(sent(DISPATCHER, HR_FRAME_ACK, 0)->position, 3);
    hr__client_connected(&client, 2, HR_FRAME_WORKER, 0, fresh());
    CHECK(data(2, 0, 20, 40));
    CHECK(hr__cursor_take(&cursor, 8, &taken));
    hr__client_taken(&client, 0, fresh());
    CHECK(sent(DISPATCHER, HR_FRAME_PROGRESS, 0) == NULL);
    CHECK(hr__cursor_take(&cursor, 1, &taken));
    hr__client_taken(&client, 0, fresh());
    CHECK_EQ_INT(sent(DISPATCHER, HR_FRAME_PROGRESS, 0)->position, 9);
    hr__client_tick(&client, 200 * MS, fresh());
    CHECK(sent(DISPATCHER, HR_FRAME_PROGRESS, 0) != NULL);
    CHECK(sent(2, HR_FRAME_HELLO, 0) != NULL); /* it has not answered */
    hr__client_saved(&client, 9, fresh());
    CHECK_EQ_INT(sent(DISPATCHER, HR_FRAME_ACK, 0)->position, 9);
    stop();
}

TEST(a_full_dispatcher_or_a_late_hello_is_no_reason_to_stop)
{
    static const enum hr_err passing[] = {HR_ERR_LIMIT, HR_ERR_MEMORY, HR_ERR_TIMEOUT};

    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++) {
        start(100);
        hr__client_connected(&client, DISPATCHER, 0, 0, fresh());
        refuse(passing[i]);
        CHECK_EQ_INT(client.state, HR_CLIENT_REFUSED);
        hr__client_lost(&client, DISPATCHER);
        hr__client_connected(&client, DISPATCHER, 0, 0, fresh());
        CHECK(sent(DISPATCHER, HR_FRAME_HELLO, 0) != NULL);
        welcome(2, 5);
        CHECK_EQ_INT(client.state, HR_CLIENT_JOINED);
        stop();
    }
}

TEST(a_refused_client_tries_again_and_a_replaced_one_stops)
{
    start(100);
    hr__client_connected(&client, DISPATCHER, 0, 0, fresh());
    refuse(HR_ERR_STATE);
    CHECK_EQ_INT(client.state, HR_CLIENT_REFUSED);
    hr__client_lost(&client, DISPATCHER);
    hr__client_connected(&client, DISPATCHER, 0, 0, fresh());
    CHECK(sent(DISPATCHER, HR_FRAME_HELLO, 0) != NULL);
    welcome(2, 5);
    CHECK_EQ_INT(client.state, HR_CLIENT_JOINED);
    refuse(HR_ERR_CANCELLED);
    CHECK_EQ_INT(client.state, HR_CLIENT_REPLACED);
    CHECK_HAS(client.error.message, "refuses this client: because");
    hr__client_lost(&client, DISPATCHER);
    hr__client_connected(&client, DISPATCHER, 0, 0, fresh());
    CHECK_EQ_INT(actions.count, 0);
    welcome(3, 5);
    CHECK_EQ_INT(client.state, HR_CLIENT_REPLACED);
    stop();
}

/* Workers that send as soon as they may, and a consumer that is slower: once the size of
 * a frame is known, each finds room. */
TEST(frames_larger_than_a_grant_find_room)
{
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 1, 0);
    for (int trial = 0; trial < 200; trial++) {
        size_t bytes = 1 + (size_t)hr__rng_below(&rng, 150);
        uint64_t credit[5] = {0}, given[5] = {0}, next = 0;

        start(100);
        hr__client_connected(&client, DISPATCHER, 0, 0, fresh());
        welcome(1, 5);
        for (hr_peer p = 2; p < 5; p++)
            hr__client_connected(&client, p, HR_FRAME_WORKER, 0, &actions);
        for (int step = 0; step < 400 && next < 1000; step++) {
            hr_peer peer = (hr_peer)(2 + hr__rng_below(&rng, 3));
            struct hr_taken taken;

            for (hr_peer p = 2; p < 5; p++)
                for (size_t i = 0; sent(p, HR_FRAME_CREDIT, i) != NULL; i++)
                    credit[p] = sent(p, HR_FRAME_CREDIT, i)->u.credit.total;
            fresh();
            if (hr__rng_below(&rng, 3) == 0) {
                if (hr__cursor_take(&cursor, 1, &taken))
                    hr__client_taken(&client, 0, &actions);
            } else if (next < cursor.next + 64 &&
                       (given[peer] < credit[peer] || next == cursor.next)) {
                CHECK(data(peer, next++, 1, bytes));
                given[peer] += bytes;
                CHECK(cursor.bytes <= 100 + 4 * bytes);
            }
        }
        stop();
    }
}

/* Random data, takes, losses: held and granted bytes stay within the budget. */
TEST(credit_is_bounded_by_the_budget)
{
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (int trial = 0; trial < 200; trial++) {
        uint64_t credit[4] = {0}, given[4] = {0};

        start(3 + (size_t)hr__rng_below(&rng, 200));
        hr__client_connected(&client, DISPATCHER, 0, 0, fresh());
        welcome(1, 5);
        for (int step = 0; step < 300 && !hr__cursor_is_at_end(&cursor); step++) {
            hr_peer peer = (hr_peer)(2 + hr__rng_below(&rng, 2));
            uint64_t before[4], way = 0;
            struct hr_taken taken;

            memcpy(before, credit, sizeof before);
            fresh();
            switch (hr__rng_below(&rng, 4)) {
            case 0:
                if (hr__rng_below(&rng, 10) == 0) {
                    hr__client_lost(&client, peer);
                    credit[peer] = given[peer] = 0;
                    hr__client_connected(&client, peer, HR_FRAME_WORKER, 0, &actions);
                }
                break;
            case 1:
                if (hr__cursor_take(&cursor, 1, &taken))
                    hr__client_taken(&client, 0, &actions);
                break;
            default:
                if (given[peer] < credit[peer]) {
                    size_t bytes =
                        1 + (size_t)hr__rng_below(&rng, credit[peer] - given[peer]);

                    given[peer] += bytes;
                    data(peer, cursor.next + hr__rng_below(&rng, 8), 1, bytes);
                }
                break;
            }
            for (hr_peer p = 2; p < 4; p++) {
                for (size_t i = 0; sent(p, HR_FRAME_CREDIT, i) != NULL; i++)
                    credit[p] = sent(p, HR_FRAME_CREDIT, i)->u.credit.total;
                CHECK(credit[p] >= before[p] || credit[p] == 0 || given[p] == 0);
                way += credit[p] - given[p];
            }
            CHECK(cursor.bytes + way <= cursor.options.budget);
        }
        stop();
    }
}

TEST(a_failed_allocation_is_reported)
{
    const struct hr_client_options own = {.workers_max = 3, .weight = 1};

    hr__fault_arm(HR_FAULT_ALLOC, 1);
    CHECK_ERR(HR_ERR_MEMORY, hr__client_init(&client, &cursor, &own, NULL));
    hr__fault_arm(HR_FAULT_ALLOC, 0);
    hr__client_finish(&client);
}
