/*
 * svc/lease_team_test.c - which workers the dispatcher gives to which client.
 */
#include "svc/lease.h"

#include "svc/svc_test_util.h"

#define WINDOW 64u

static struct hr_dispatcher d;
static uint64_t now;

/* Clients are consumers of jobs of their own: job 10 for the client of connection 10. */
static void start(size_t team)
{
    const struct hr_lease_options options = {.peers_max = 40,
                                             .jobs_max = 9,
                                             .team_max = team,
                                             .ranges_max = 32,
                                             .lease_min = 8,
                                             .lease_max = 1000,
                                             .target_ns = 100 * MS,
                                             .ttl_ns = 1000000 * (uint64_t)MS,
                                             .served_ns = 500 * MS,
                                             .hedge_ns = UINT64_MAX,
                                             .silent_ns = UINT64_MAX,
                                             .absent_ns = 100 * MS};

    now = 1000;
    CHECK_OK(hr__lease_init(&d, &options, NULL));
}

static void event(hr_peer peer, const struct hr_frame *frame)
{
    CHECK_OK(hr__lease_frame(&d, peer, frame, now, fresh(), NULL));
}

static void join_worker(hr_peer peer)
{
    struct hr_frame hello = worker_hello(8, peer);

    event(peer, &hello);
}

static void join_workers(hr_peer first, hr_peer last)
{
    for (hr_peer peer = first; peer <= last; peer++)
        join_worker(peer);
}

static struct hr_lease_consumer *consumer_of(hr_peer client)
{
    return &hr__lease_find_job(&d, client)->consumers[0];
}

static void join_client(hr_peer peer, uint64_t job)
{
    struct hr_frame hello = client_hello(job, 1, 0, peer);

    if (hr__lease_find_job(&d, job) == NULL)
        CHECK_OK(hr__lease_add_job(
            &d, &(struct hr_lease_job_options){job, 100000, 1, WINDOW, 1}, NULL));
    event(peer, &hello);
}

static void tick(void)
{
    now += 10 * MS;
    hr__lease_tick(&d, now, fresh());
}

/* The list of workers that the last event sends to the client; NULL: none. */
static const struct hr_action_workers *told(hr_peer client)
{
    int place = place_of(HR_ACTION_TELL, client);

    return place >= 0 ? &actions.items[place].u.workers : NULL;
}

static bool names(const struct hr_action_workers *workers, hr_peer worker)
{
    for (uint32_t i = 0; i < workers->count; i++)
        if (workers->peers[i] == worker)
            return true;
    return false;
}

static size_t count(enum hr_action_kind kind)
{
    size_t sum = 0;

    for (size_t i = 0; i < actions.count; i++)
        sum += actions.items[i].kind == kind;
    return sum;
}

static bool works_for(hr_peer worker, hr_peer client)
{
    for (size_t i = 0; i < d.options.team_max; i++)
        if (consumer_of(client)->team[i].worker == worker)
            return true;
    return false;
}

/* Says for a worker that it has sent all that it has for a client. */
static void serve(hr_peer worker, hr_peer client)
{
    struct hr_frame done = {HR_FRAME_FINISHED, .generation = 1, .job = client};
    const struct hr_ranges *leases = &consumer_of(client)->leases;

    for (size_t i = 0; i < leases->count; i++)
        if (leases->items[i].worker == worker && !leases->items[i].served)
            done.u.lease.ranges[done.count++] =
                (struct hr_frame_range){leases->items[i].from, leases->items[i].until};
    event(worker, &done);
}

static void take(hr_peer client, uint64_t cursor)
{
    event(client,
          &(struct hr_frame){HR_FRAME_PROGRESS, .position = cursor, .generation = 1});
}

TEST(with_no_more_workers_than_a_team_has_all_work_for_all)
{
    start(3);
    join_workers(1, 3);
    join_client(10, 10);
    CHECK(told(10) == NULL && !d.divided);
    CHECK(sent(1, HR_FRAME_LEASE, 0) != NULL && sent(3, HR_FRAME_LEASE, 0) != NULL);
    tick();
    CHECK_EQ_INT(count(HR_ACTION_TELL), 0);
    hr__lease_finish(&d);
}

TEST(a_client_is_told_its_team_and_only_that_gets_its_leases)
{
    const struct hr_action_workers *team;

    start(2);
    join_workers(1, 5);
    join_client(10, 10);
    team = told(10);
    CHECK(team != NULL && place_of(HR_ACTION_TELL, 10) > place_of(HR_ACTION_SEND, 10));
    CHECK_EQ_INT(team->count, 2);
    for (hr_peer worker = 1; worker <= 5; worker++)
        CHECK_EQ_INT(sent(worker, HR_FRAME_LEASE, 0) != NULL, names(team, worker));
    hr__lease_finish(&d);
}

TEST(clients_share_the_workers_evenly_and_teams_stay)
{
    uint32_t users = 0;

    start(2);
    join_workers(1, 5);
    for (hr_peer client = 10; client < 16; client++)
        join_client(client, client);
    for (hr_peer worker = 1; worker <= 5; worker++) {
        CHECK(d.peers[worker].users == 2 || d.peers[worker].users == 3);
        users += d.peers[worker].users;
    }
    CHECK_EQ_INT(users, 12);
    for (int i = 0; i < 20; i++) {
        tick();
        CHECK_EQ_INT(count(HR_ACTION_TELL), 0);
    }
    hr__lease_finish(&d);
}

TEST(the_place_of_a_lost_worker_is_filled)
{
    hr_peer lost, other;

    start(2);
    join_workers(1, 3);
    join_client(10, 10);
    lost = told(10)->peers[0];
    other = told(10)->peers[1];
    hr__lease_lost(&d, lost, now, fresh());
    tick();
    CHECK_EQ_INT(told(10)->count, 2);
    CHECK(names(told(10), other) && !names(told(10), lost));
    CHECK(sent(6 - lost - other, HR_FRAME_LEASE, 0) != NULL);
    hr__lease_finish(&d);
}

TEST(a_worker_that_drains_stays_in_the_list_while_it_has_leases)
{
    hr_peer drained, other;

    start(2);
    join_workers(1, 3);
    join_client(10, 10);
    drained = told(10)->peers[0];
    other = told(10)->peers[1];
    event(drained, &(struct hr_frame){HR_FRAME_GOODBYE});
    tick();
    CHECK_EQ_INT(count(HR_ACTION_TELL), 0);
    CHECK(works_for(6 - drained - other, 10) && !works_for(drained, 10));
    CHECK(sent(6 - drained - other, HR_FRAME_LEASE, 0) == NULL);
    serve(drained, 10);
    serve(other, 10);
    take(10, WINDOW);
    CHECK(sent(drained, HR_FRAME_LEASE, 0) == NULL);
    tick();
    CHECK(!names(told(10), drained) && names(told(10), 6 - drained - other));
    CHECK(sent(6 - drained - other, HR_FRAME_LEASE, 0) != NULL);
    hr__lease_finish(&d);
}

/* All that the clients may have is sent, and they take up to `cursor`. */
static void serve_all(hr_peer last_worker, hr_peer last_client, uint64_t cursor)
{
    for (hr_peer client = 10; client <= last_client; client++)
        for (hr_peer worker = 1; worker <= last_worker; worker++)
            serve(worker, client);
    for (hr_peer client = 10; client <= last_client; client++)
        take(client, cursor);
}

TEST(a_worker_that_joins_takes_places_when_the_leases_of_others_are_over)
{
    start(2);
    join_workers(1, 3);
    for (hr_peer client = 10; client <= 15; client++)
        join_client(client, client);
    for (int i = 0; i < 9; i++)
        serve_all(3, 15, 0);
    join_worker(4);
    CHECK_EQ_INT(d.peers[4].users, 0);
    tick();
    CHECK_EQ_INT(d.peers[4].users, 3);
    CHECK_EQ_INT(count(HR_ACTION_TELL), 0);
    CHECK(sent(4, HR_FRAME_LEASE, 0) == NULL);
    serve_all(3, 15, WINDOW);
    CHECK_EQ_INT(d.peers[4].held, 0);
    tick();
    for (hr_peer client = 10; client <= 15; client++) {
        CHECK_EQ_INT(told(client) != NULL, works_for(4, client));
        CHECK(told(client) == NULL || names(told(client), 4));
    }
    CHECK(sent(4, HR_FRAME_LEASE, 0) != NULL);
    hr__lease_finish(&d);
}

static bool has_work(hr_peer worker, hr_peer client)
{
    const struct hr_ranges *leases = &consumer_of(client)->leases;

    for (size_t i = 0; i < leases->count; i++)
        if (leases->items[i].worker == worker && !leases->items[i].served)
            return true;
    return false;
}

TEST(runs_of_which_each_wants_all_of_a_worker_take_turns)
{
    uint64_t turns[2] = {0};

    start(1);
    join_workers(1, 2);
    for (hr_peer client = 10; client <= 13; client++)
        join_client(client, client);
    CHECK(works_for(1, 10) && works_for(1, 12) && d.peers[1].users == 2);
    for (int i = 0; i < 40; i++) {
        bool first = has_work(1, 10) && (turns[1] <= turns[0] || !has_work(1, 12));
        hr_peer client = first ? 10 : 12;

        serve(1, client);
        take(client, consumer_of(client)->sent);
        turns[client == 10]++;
    }
    CHECK_EQ_INT(turns[0], 20);
    CHECK_EQ_INT(turns[1], 20);
    hr__lease_finish(&d);
}

TEST(what_workers_have_when_there_are_too_many_decides_about_teams)
{
    start(2);
    join_workers(1, 2);
    join_client(10, 10);
    CHECK(sent(1, HR_FRAME_LEASE, 0) != NULL && sent(2, HR_FRAME_LEASE, 0) != NULL);
    join_workers(3, 4);
    CHECK(d.divided && sent(3, HR_FRAME_LEASE, 0) == NULL);
    tick();
    CHECK(names(told(10), 1) && names(told(10), 2));
    hr__lease_finish(&d);
}

TEST(a_client_that_comes_back_is_told_again_and_one_that_leaves_frees_its_team)
{
    start(2);
    join_workers(1, 3);
    join_client(10, 10);
    hr__lease_lost(&d, 10, now, fresh());
    join_client(10, 10);
    CHECK(told(10) != NULL && told(10)->count == 2);
    event(10, &(struct hr_frame){HR_FRAME_GOODBYE});
    for (hr_peer worker = 1; worker <= 3; worker++)
        CHECK_EQ_INT(d.peers[worker].users, 0);
    join_client(11, 11);
    hr__lease_lost(&d, 11, now, fresh());
    for (int i = 0; i < 12; i++)
        tick(); /* more than absent_ns */
    for (hr_peer worker = 1; worker <= 3; worker++)
        CHECK_EQ_INT(d.peers[worker].users, 0);
    hr__lease_finish(&d);
}

TEST(users_of_a_worker_are_told_its_new_address)
{
    start(2);
    join_workers(1, 3);
    join_client(10, 10);
    join_client(11, 11);
    hr__lease_tell_users(&d, 3);
    tick();
    CHECK_EQ_INT(told(10) != NULL, works_for(3, 10));
    CHECK_EQ_INT(told(11) != NULL, works_for(3, 11));
    CHECK_EQ_INT(count(HR_ACTION_TELL), d.peers[3].users);
    hr__lease_finish(&d);
}

TEST(a_team_prefers_its_clients_host_but_nobody_stays_unused)
{
    start(2);
    for (hr_peer worker = 1; worker <= 6; worker++) {
        hr__lease_set_host(&d, worker, worker <= 3 ? 88 : 77);
        join_worker(worker);
    }
    for (hr_peer client = 10; client < 12; client++) {
        hr__lease_set_host(&d, client, client == 10 ? 77 : 99);
        join_client(client, client);
    }
    CHECK_EQ_INT(told(11)->count, 2);
    for (hr_peer worker = 1; worker <= 3; worker++)
        CHECK(!works_for(worker, 10));
    for (hr_peer client = 12; client < 16; client++) {
        hr__lease_set_host(&d, client, 77);
        join_client(client, client);
    }
    for (uint64_t i = 1; i < 10; i++) {
        serve_all(6, 15, i * WINDOW);
        tick();
    }
    for (hr_peer worker = 1; worker <= 6; worker++)
        CHECK(d.peers[worker].users >= (worker <= 3 ? 1 : 2));
    hr__lease_finish(&d);
}
