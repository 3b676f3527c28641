/*
 * svc/lease_order_test.c - the dispatcher's queues, index and sums against its tables,
 * after random events.
 */
#include "core/rng.h"
#include "svc/lease_internal.h"
#include "svc/svc_test_util.h"

#define PEERS 30u
#define JOBS 6u
#define SLOTS 3u
#define LEASE_MIN 5u
#define TARGET_NS (100 * (uint64_t)MS)

static struct hr_dispatcher d;
static struct hr_rng rng;
static uint64_t now;
static uint32_t hosts; /* on which peers run; 0: unknown */

static uint32_t below(uint32_t limit)
{
    return (uint32_t)hr__rng_below(&rng, limit);
}

/* ---- what must hold ---- */

static bool has_room(const struct hr_lease_peer *p)
{
    return p->role == HR_FRAME_WORKER && !p->leaving && p->held < p->slots &&
           (p->outstanding < LEASE_MIN || p->work_ns < TARGET_NS);
}

static bool is_queued(const struct hr_queue *queue, uint32_t number, uint64_t key)
{
    uint32_t place = queue->places[number];

    if (place == 0)
        return false;
    CHECK_EQ_INT(queue->items[place - 1].number, number);
    CHECK_EQ_INT(queue->items[place - 1].key, key);
    return true;
}

static void check_workers(void)
{
    size_t workers = 0, clients = 0, leaving = 0;

    for (hr_peer i = 1; i <= PEERS; i++) {
        const struct hr_lease_peer *p = &d.peers[i];

        for (uint32_t degree = 0; degree < HR_LEASE_DOUBTS; degree++)
            CHECK_EQ_INT(is_queued(&d.idle[degree], i, hr__lease_busy(p)),
                         has_room(p) && degree == (p->doubt < 3 ? p->doubt : 3));
        CHECK_EQ_INT(hr__lease_has_room(&d, i, UINT64_MAX), has_room(p));
        CHECK(!has_room(p) || (hr__lease_has_room(&d, i, p->outstanding + 1) &&
                               !hr__lease_has_room(&d, i, p->outstanding)));
        workers += p->role == HR_FRAME_WORKER;
        clients += p->role == HR_FRAME_CLIENT;
        leaving += p->leaving;
    }
    CHECK_EQ_INT(d.worker_count, workers);
    CHECK_EQ_INT(d.client_count, clients);
    CHECK_EQ_INT(d.leaving_count, leaving);
}

static bool
find_gap(const struct hr_lease_job *job, uint32_t rank, struct hr_frame_range *ret_gap)
{
    const struct hr_lease_consumer *c = &job->consumers[rank];
    struct hr_share share = hr__lease_share(job, rank);
    uint64_t limit = c->cursor + job->options.window, size = hr__share_size(&share);

    return c->peer != 0 && !c->stands && c->leases.count < c->leases.room &&
           hr__ranges_gap(&c->leases, c->cursor, limit < size ? limit : size, ret_gap);
}

/* With equal jobs one may have enough of what workers keep, or wait until the window has
 * room for a whole lease of that. */
static bool lacks_leases(const struct hr_lease_job *job, uint32_t rank)
{
    const struct hr_lease_consumer *c = &job->consumers[rank];
    struct hr_frame_range gap;

    if (!find_gap(job, rank, &gap) || c->known_leases == d.options.known_max)
        return false;
    return job->kin == NULL || gap.from == c->cursor ||
           gap.until < c->cursor + job->options.window;
}

/* What the tables say of workers. */
struct sums {
    uint32_t kept[PEERS + 1], held[PEERS + 1];
    uint64_t outstanding[PEERS + 1], work_ns[PEERS + 1], all, known;
};

static void add_up(const struct hr_lease_consumer *c, struct sums *sums)
{
    uint64_t outstanding = 0;
    uint64_t known_positions = 0;
    uint32_t known = 0;

    for (size_t i = 0; i < c->leases.count; i++) {
        const struct hr_lease *lease = &c->leases.items[i];
        uint64_t positions = lease->served ? 0 : lease->until - lease->from;
        bool is_work = !lease->served && !lease->known && !c->stands;

        sums->kept[lease->worker]++;
        sums->held[lease->worker] += !lease->served;
        sums->outstanding[lease->worker] += is_work ? positions : 0;
        sums->work_ns[lease->worker] += is_work ? lease->work_ns : 0;
        outstanding += positions;
        known += !lease->served && lease->known;
        known_positions += lease->known ? positions : 0;
    }
    CHECK_EQ_INT(c->outstanding, outstanding);
    CHECK_EQ_INT(c->known_leases, known);
    CHECK_EQ_INT(c->known, known_positions);
    CHECK(known <= d.options.known_max);
    sums->known += known;
    CHECK(!c->stands || outstanding > 0);
    sums->all += outstanding;
}

static void check_sums(const struct sums *sums)
{
    CHECK_EQ_INT(d.outstanding, sums->all);
    for (hr_peer i = 1; i <= PEERS; i++) {
        CHECK_EQ_INT(d.peers[i].kept, sums->kept[i]);
        CHECK_EQ_INT(d.peers[i].held, sums->held[i]);
        CHECK_EQ_INT(d.peers[i].outstanding, sums->outstanding[i]);
        CHECK_EQ_INT(d.peers[i].work_ns, sums->work_ns[i]);
    }
}

static void check_job(size_t at, struct sums *sums)
{
    struct hr_lease_job *job = &d.jobs[at];
    const struct hr_queue_item *first = hr__queue_first(&job->hungry);

    CHECK(hr__lease_find_job(&d, job->options.id) == job);
    CHECK_EQ_INT(is_queued(&d.hungry, (uint32_t)at, first != NULL ? first->key : 0),
                 first != NULL);
    for (uint32_t rank = 0; rank < job->world; rank++) {
        const struct hr_lease_consumer *c = &job->consumers[rank];

        CHECK(c->lacks || !lacks_leases(job, rank));
        CHECK(!is_queued(&job->hungry, rank, hr__lease_turn(&d, c))
                  ? !c->lacks || d.divided
                  : c->lacks);
        add_up(c, sums);
    }
    for (hr_peer peer = job->clients; peer != 0; peer = d.peers[peer].next)
        CHECK(d.peers[peer].role == HR_FRAME_CLIENT && d.peers[peer].job == at);
}

/* ---- teams ---- */

static bool may_join(hr_peer worker)
{
    return d.peers[worker].role == HR_FRAME_WORKER && !d.peers[worker].leaving;
}

/* Counts the ties of workers. */
static void check_team(const struct hr_lease_consumer *c, uint32_t users[PEERS + 1])
{
    uint32_t tied = 0, replaced = 0, times[PEERS + 1] = {0};

    for (size_t i = 0; i < d.options.team_max; i++) {
        const struct hr_lease_tie *tie = &c->team[i];

        CHECK(tie->consumer == c);
        replaced += tie->former != 0;
        if (tie->worker == 0)
            continue;
        CHECK(may_join(tie->worker));
        CHECK_EQ_INT(times[tie->worker]++, 0);
        CHECK(tie->next->previous == tie && tie->previous->next == tie);
        CHECK_EQ_INT(tie->next->worker, tie->worker);
        users[tie->worker]++;
        tied++;
    }
    CHECK_EQ_INT(c->tied, tied);
    CHECK_EQ_INT(c->replaced, replaced);
    CHECK(d.divided || tied + replaced == 0);
}

static void check_teams(void)
{
    uint32_t users[PEERS + 1] = {0};

    for (size_t at = 0; at < d.job_count; at++)
        for (uint32_t rank = 0; rank < d.jobs[at].world; rank++)
            check_team(&d.jobs[at].consumers[rank], users);
    for (hr_peer i = 1; i <= PEERS; i++) {
        const struct hr_lease_peer *p = &d.peers[i];

        CHECK_EQ_INT(p->users, users[i]);
        CHECK(p->ties == NULL ? users[i] == 0 : p->ties->worker == i);
        CHECK_EQ_INT(is_queued(&d.unused, i, users[i]), may_join(i));
        CHECK_EQ_INT(is_queued(&d.busy, i, UINT64_MAX - users[i]), may_join(i));
    }
}

/* Whether the worker gets leases of the consumer. */
static bool works_for(hr_peer worker, const struct hr_lease_consumer *c)
{
    for (size_t i = 0; i < d.options.team_max; i++)
        if (c->team[i].worker == worker && c->team[i].former == 0)
            return true;
    return !d.divided;
}

/* Leases go to members of the team only, and no list is longer than a team. */
static void check_actions(void)
{
    for (size_t i = 0; i < actions.count; i++) {
        const struct hr_action *action = &actions.items[i];
        const struct hr_frame *f = &action->u.frame;
        const struct hr_lease_job *job;

        if (action->kind == HR_ACTION_TELL)
            CHECK(d.divided && action->u.workers.count <= d.options.team_max);
        if (action->kind != HR_ACTION_SEND || f->type != HR_FRAME_LEASE)
            continue;
        job = hr__lease_find_job(&d, f->job);
        CHECK(works_for(action->peer, &job->consumers[f->u.lease.rank]));
    }
}

/* Returns how many leases are known. */
static uint64_t check_all(void)
{
    struct sums sums = {0};
    size_t known = 0;

    check_workers();
    check_teams();
    check_actions();
    for (size_t at = 0; at < d.job_count; at++)
        check_job(at, &sums);
    check_sums(&sums);
    for (uint64_t id = 0; id < JOBS; id++)
        known += hr__lease_find_job(&d, 10 * id) != NULL;
    CHECK_EQ_INT(known, d.job_count);
    return sums.known;
}

/* Nothing waits while there is a worker for it. */
static void check_all_is_leased(void)
{
    for (size_t at = 0; at < d.job_count; at++)
        for (uint32_t rank = 0; rank < d.jobs[at].world; rank++)
            for (hr_peer i = 1; lacks_leases(&d.jobs[at], rank) && i <= PEERS; i++)
                CHECK(!has_room(&d.peers[i]) || d.peers[i].outstanding >= LEASE_MIN ||
                      !works_for(i, &d.jobs[at].consumers[rank]));
}

/* ---- events ---- */

static void event(hr_peer peer, const struct hr_frame *frame)
{
    CHECK_OK(hr__lease_frame(&d, peer, frame, now, fresh(), NULL));
}

/* When all has been taken and nothing else happens, teams are full, and as equal as they
 * can be, but that nobody gives up workers on its host as long as all are used. */
static void check_balance(void)
{
    uint32_t least = UINT32_MAX, most = 0;

    for (hr_peer i = 1; i <= PEERS; i++)
        if (d.peers[i].role == HR_FRAME_CLIENT)
            event(i, &(struct hr_frame){HR_FRAME_PROGRESS, .position = 200,
                                        .generation = d.peers[i].generation});
    for (int tick = 0; tick < 300; tick++) {
        for (hr_peer i = 1; i <= PEERS; i++)
            d.peers[i].heard_ns = now;
        now += 10 * MS;
        hr__lease_tick(&d, now, fresh());
        check_actions();
    }
    for (hr_peer i = 1; i <= PEERS; i++) {
        if (!may_join(i))
            continue;
        least = d.peers[i].users < least ? d.peers[i].users : least;
        most = d.peers[i].users > most ? d.peers[i].users : most;
    }
    CHECK(least == UINT32_MAX || most <= (hosts > 0 && least > 0 ? most : least + 1));
    for (size_t at = 0; at < d.job_count; at++)
        for (uint32_t rank = 0; rank < d.jobs[at].world; rank++) {
            const struct hr_lease_consumer *c = &d.jobs[at].consumers[rank];
            size_t full =
                d.options.team_max < d.unused.count ? d.options.team_max : d.unused.count;

            CHECK(c->peer == 0 || !d.divided || (c->tied == full && c->told));
        }
}

static void say_hello(hr_peer peer)
{
    struct hr_frame hello = worker_hello(1 + below(SLOTS), peer);

    if (d.peers[peer].role == HR_FRAME_CLIENT ||
        (d.peers[peer].role == 0 && below(2) == 0)) {
        uint32_t world = 1 + below(3);

        hello = client_hello(10 * (uint64_t)below(JOBS), world, below(world),
                             1 + hr__rng_below(&rng, 3));
        hello.u.hello.membership = below(20) == 0;
        hello.position = below(60);
        hello.generation = below(3);
    }
    hr__lease_set_host(&d, peer, hosts > 0 ? 1 + below(hosts) : 0);
    event(peer, &hello);
}

static void say_progress(hr_peer peer)
{
    struct hr_frame frame = {HR_FRAME_PROGRESS};

    if (d.peers[peer].role == HR_FRAME_CLIENT) {
        frame.generation = d.peers[peer].generation;
        frame.position = below(200);
        if (below(8) == 0)
            frame.type = HR_FRAME_ACK;
    }
    event(peer, &frame);
}

static void say_finished(void)
{
    struct hr_frame frame = {HR_FRAME_FINISHED, .count = 1};
    const struct hr_lease_consumer *consumer;
    const struct hr_lease_job *job;
    const struct hr_lease *lease;
    struct hr_share share;

    if (d.job_count == 0)
        return;
    job = &d.jobs[below((uint32_t)d.job_count)];
    frame.u.lease.rank = below(job->world);
    consumer = &job->consumers[frame.u.lease.rank];
    if (consumer->leases.count == 0)
        return;
    lease = &consumer->leases.items[below((uint32_t)consumer->leases.count)];
    if (lease->worker == 0)
        return;
    share = hr__lease_share(job, frame.u.lease.rank);
    frame.job = job->options.id;
    frame.generation = consumer->generation;
    frame.u.lease.ranges[0].from = hr__share_position(&share, lease->from);
    frame.u.lease.ranges[0].until = hr__share_position(&share, lease->until - 1) + 1;
    event(lease->worker, &frame);
}

static void add_job(void)
{
    const struct hr_lease_job_options options = {.id = 10 * (uint64_t)below(JOBS),
                                                 .end = 200,
                                                 .split = 1 + below(7),
                                                 .window = 1 + below(100),
                                                 .world = 1 + below(3),
                                                 .kin = below(3)};

    if (hr__lease_find_job(&d, options.id) == NULL)
        CHECK_OK(hr__lease_add_job(&d, &options, NULL));
}

static void something_happens(void)
{
    hr_peer peer = 1 + below(PEERS);

    (void)fresh();
    switch (below(10)) {
    case 0:
        add_job();
        break;
    case 1:
        hr__lease_lost(&d, peer, now, fresh());
        break;
    case 2:
        if (below(4) == 0)
            event(peer, &(struct hr_frame){HR_FRAME_GOODBYE});
        break;
    case 3:
    case 4:
        say_hello(peer);
        break;
    case 5:
    case 6:
        say_progress(peer);
        break;
    case 7:
        now += below(60) * MS;
        hr__lease_tick(&d, now, fresh());
        if (d.divided) { /* where a job is forgotten another one may be passed over */
            check_actions();
            hr__lease_tick(&d, now, fresh());
        }
        if (hr__actions_left(&actions) > 0)
            check_all_is_leased();
        break;
    default:
        say_finished();
        break;
    }
}

static bool some_stand(void)
{
    for (size_t at = 0; at < d.job_count; at++)
        for (uint32_t rank = 0; rank < d.jobs[at].world; rank++)
            if (d.jobs[at].consumers[rank].stands)
                return true;
    return false;
}

TEST(queues_index_and_sums_agree_with_the_tables_after_each_event)
{
    struct hr_lease_options options = {.peers_max = PEERS,
                                       .jobs_max = JOBS,
                                       .lease_min = LEASE_MIN,
                                       .lease_max = 40,
                                       .target_ns = TARGET_NS,
                                       .ttl_ns = 500 * MS,
                                       .served_ns = 200 * MS,
                                       .hedge_ns = 150 * MS,
                                       .silent_ns = 2000 * MS,
                                       .absent_ns = 300 * MS,
                                       .idle_ns = 400 * MS};
    uint64_t leases = 0, hedged = 0, expired = 0, divided = 0, standing = 0, known = 0;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (int trial = 0; trial < 20; trial++) {
        now = 1000 * (uint64_t)MS;
        hosts = below(2) * (1 + below(4));
        options.team_max = below(2) * (1 + below(5));
        options.known_max = 1 + below(2) * below(20);
        options.ranges_max = 6 + below(2) * 20;
        CHECK_OK(hr__lease_init(&d, &options, NULL));
        for (int step = 0; step < 1000; step++) {
            something_happens();
            known += check_all();
            standing += some_stand();
        }
        leases += d.counts.leases;
        hedged += d.counts.leases_hedged;
        expired += d.counts.leases_expired;
        divided += d.divided;
        check_balance();
        (void)check_all();
        hr__lease_finish(&d);
    }
    CHECK(divided > 0);
    CHECK(leases > 100 && hedged > 0 && expired > 10 && standing > 100 && known > 100);
}

/* ---- bounded ticks ---- */

static void expect_closed(uint32_t count)
{
    uint32_t closed = 0;

    for (size_t i = 0; i < actions.count; i++)
        closed += actions.items[i].kind == HR_ACTION_CLOSE;
    CHECK_EQ_INT(closed, count);
}

TEST(a_tick_looks_at_some_peers_and_the_next_one_at_others)
{
    const uint32_t peers = 2 * HR_LEASE_TICK_PEERS;
    const struct hr_lease_options options = {
        .peers_max = peers, .jobs_max = 1, .lease_min = 1, .silent_ns = 100};

    CHECK_OK(hr__lease_init(&d, &options, NULL));
    for (hr_peer peer = 1; peer <= peers; peer += HR_LEASE_TICK_PEERS)
        CHECK_OK(hr__lease_frame(&d, peer,
                                 &(struct hr_frame){HR_FRAME_HELLO, .count = 1,
                                                    .u.hello.role = HR_FRAME_WORKER},
                                 1, fresh(), NULL));
    for (int tick = 0; tick < 2; tick++) {
        hr__lease_tick(&d, 200, fresh());
        expect_closed(1);
    }
    hr__lease_tick(&d, 200, fresh());
    expect_closed(0);
    hr__lease_finish(&d);
}

TEST(idle_jobs_are_forgotten_over_several_ticks_and_found_no_more)
{
    const uint32_t jobs = 3 * HR_LEASE_TICK_CONSUMERS;
    const struct hr_lease_options options = {.peers_max = 1,
                                             .jobs_max = jobs,
                                             .ranges_max = 1,
                                             .lease_min = 1,
                                             .idle_ns = 100};
    size_t before;

    CHECK_OK(hr__lease_init(&d, &options, NULL));
    for (uint32_t i = 0; i < jobs; i++)
        CHECK_OK(hr__lease_add_job(
            &d, &(struct hr_lease_job_options){i * 7919 % jobs, 9, 1, 1, 1}, NULL));
    for (int tick = 0; tick < 3; tick++)
        hr__lease_tick(&d, 1000, fresh());
    CHECK_EQ_INT(d.job_count, jobs);
    do {
        before = d.job_count;
        hr__lease_tick(&d, 1100, fresh());
        CHECK_EQ_INT(before - d.job_count, HR_LEASE_TICK_CONSUMERS);
        for (size_t at = 0; at < d.job_count; at++)
            CHECK(hr__lease_find_job(&d, d.jobs[at].options.id) == &d.jobs[at]);
    } while (d.job_count > 0);
    CHECK_EQ_INT(d.changes, jobs);
    hr__lease_finish(&d);
}

/* 10 ms per position, and the same number of leases. */
static uint64_t turn_of(uint32_t weight, uint64_t outstanding)
{
    const struct hr_lease_consumer consumer = {
        .weight = weight, .outstanding = outstanding, .ns_per_position = 10 * MS};

    return hr__lease_turn(&d, &consumer);
}

TEST(the_next_lease_is_for_the_consumer_with_the_least_work_by_weight)
{
    CHECK(turn_of(1, 10) < turn_of(1, 11));
    CHECK(turn_of(3, 29) < turn_of(1, 10) && turn_of(1, 10) < turn_of(3, 31));
    CHECK(turn_of(100, 999) < turn_of(1, 10) && turn_of(1, 10) < turn_of(100, 1011));
    CHECK(turn_of(1, 0) == turn_of(100, 0) && turn_of(1, 0) < turn_of(100, 1));
}
