/*
 * engine/code_process_test.c - user code in worker processes: the same bytes as in
 * threads, whichever process dies, and no wait for a process that hangs.
 *
 * A peer is this program again: a constructor sees the variable that the host sets,
 * serves, and ends before any test would run.
 */
#include "engine/code_test_util.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "tests/support/peers.h"

/* ---- the peer ---- */

/* Ends the process at one record, always. */
static enum hr_err call_die(void *user, struct hr_code_call *call, struct hr_error *e)
{
    if (get_int(call, 0) == 33)
        _exit(3);
    return call_map(user, call, e);
}

static enum hr_err call_hang(void *user, struct hr_code_call *call, struct hr_error *e)
{
    (void)user;
    (void)call;
    (void)e;
    while (pause() != 0)
        continue;
    return HR_OK;
}

/* Reports once that it is working, some records after the one at which the last peer
 * died: dying three times at one record is another test. */
static enum hr_err call_slow(void *user, struct hr_code_call *call, struct hr_error *e)
{
    struct timespec nap = {.tv_nsec = 200000};
    static int calls;

    if (++calls == 20 && getenv("HR_CODE_DIR") != NULL) {
        char path[512];

        snprintf(path, sizeof path, "%s/%d", getenv("HR_CODE_DIR"), (int)getpid());
        close(open(path, O_CREAT | O_WRONLY, 0600));
    }
    nanosleep(&nap, NULL);
    return call_map(user, call, e);
}

static const struct piece more[] = {
    {"die",  call_die },
    {"hang", call_hang},
    {"slow", call_slow},
};
#define MORE (sizeof more / sizeof more[0])

static const struct hr_code *find(void *user, const char *name)
{
    static struct hr_code found[CODES + MORE];

    for (size_t i = 0; i < CODES + MORE; i++) {
        const struct piece *piece = i < CODES ? &codes[i] : &more[i - CODES];

        if (strcmp(piece->name, name) != 0)
            continue;
        found[i] = (struct hr_code){name, user, piece->call, enter, leave, NULL};
        return &found[i];
    }
    return NULL;
}

__attribute__((constructor)) static void serve(void)
{
    const char *text = peers_argument();
    struct world w = {0};
    long long end, every;

    if (text == NULL)
        return;
    if (sscanf(text, "%lld %lld", &end, &every) != 2)
        _exit(2);
    w.end = end;
    w.every = every;
    peers_serve(find, &w);
}

/* ---- runs ---- */

struct host {
    struct peers peers;
    struct world *world;
    int killed;
    atomic_bool over;
};

static enum hr_err give_host(void *user, struct hr_graph *graph)
{
    struct host *host = user;

    for (size_t i = 0; i < MORE; i++) {
        struct hr_code code = {more[i].name, host->world, more[i].call, NULL, NULL, NULL};

        CHECK_OK(hr_graph_code(graph, more[i].name, &code, NULL));
    }
    return peers_host(&host->peers, graph, NULL);
}

static void host_init(struct host *host, struct world *w)
{
    char told[64];

    memset(host, 0, sizeof *host);
    host->world = w;
    snprintf(told, sizeof told, "%lld %lld", (long long)w->end, (long long)w->every);
    peers_init(&host->peers, told);
}

static struct outcome *run_processes(const char *text, struct world *w, int threads,
                                     const struct hr_iter_options *given)
{
    char changed[2048];
    struct outcome *o;
    struct host host;

    peers_text(text, changed, sizeof changed);
    host_init(&host, w);
    o = run_with(changed, w, threads, given, give_host, &host);
    CHECK(host.peers.count <= (threads > 0 ? threads : 1) * 4);
    peers_finish(&host.peers);
    return o;
}

static void
check_processes(const char *text, struct world *w, const struct hr_iter_options *given)
{
    struct outcome *first = run(text, w, 0, given);
    struct hr_iter_options options;

    if (first->code != HR_ERR_END)
        check_failed(__FILE__, __LINE__, "%s", first->error.message);
    for (int threads = 0; threads <= 3; threads++) {
        struct outcome *o = run_processes(text, w, threads, given);

        if (o->code != HR_ERR_END)
            check_failed(__FILE__, __LINE__, "%s", o->error.message);
        outcome_check_same(first, o, 0, "processes");
        outcome_free(o);
    }
    hr_iter_options_init(&options);
    if (given != NULL)
        options = *given;
    for (size_t i = 0; i < first->batches; i += 1 + first->batches / 3) {
        struct outcome *rest;

        options.state = first->states[i];
        rest = run_processes(text, w, 2, &options);
        outcome_check_same(first, rest, i + 1, "restarted");
        outcome_free(rest);
    }
    outcome_free(first);
}

TEST(processes_give_the_same_bytes_as_threads)
{
    struct world w = {.end = INT64_MAX};

    check_processes(GRAPH(RANGE(1000) SHUFFLE MAP BATCH(16)), &w, NULL);
    check_processes(GRAPH(CODE_RANGE(1000) SHUFFLE MAP THIRD MAP BATCH(16)), &w, NULL);
    check_processes(GRAPH(RANGE(500) SHUFFLE MAP EXPAND MAP BATCH(16)), &w, NULL);
    check_processes(GRAPH(RANGE(500) SHUFFLE MAP "  - debug.identity: {}\n" MAP
                                                 "  - tensor.cast: {field: value, dtype: "
                                                 "int32}\n" KEYS BATCH(16)),
                    &w, NULL);
    check_processes(GRAPH(RANGE(200) "  - code.map: {code: key, outputs: \"key: "
                                     "int64\"}\n" BATCH(8)),
                    &w, NULL);
    check_processes(GRAPH(RANGE(100) TEXTS BATCH(16) MAP_BATCH), &w, NULL);
}

/* Runs the graph of `text` with the plan of the graph of `planned`; *ret_peers is the
 * number of worker processes. */
static struct outcome *
run_planned(const char *text, const char *planned, struct world *w, size_t *ret_peers)
{
    struct host host;
    struct set_up up = {w, give_host, &host};
    struct outcome_job job = code_job(planned, &up, 2, NULL);
    struct hr_graph *graph;
    struct outcome *o;
    char *plan = NULL;

    host_init(&host, w);
    graph = outcome_graph(&job, NULL);
    CHECK(graph != NULL);
    CHECK_OK(hr_graph_plan(graph, &job.options, HR_GRAPH_YAML, &plan, NULL));
    hr_graph_unref(graph);
    job.text = text;
    job.options.plan = plan;
    o = outcome_run(&job);
    *ret_peers = (size_t)host.peers.count;
    hr_free(plan);
    peers_finish(&host.peers);
    return o;
}

TEST(the_plan_says_where_user_code_runs)
{
    const char *text = GRAPH(RANGE(500) SHUFFLE MAP THIRD EXPAND MAP BATCH(16));
    struct world w = {.end = INT64_MAX};
    struct outcome *whole = run(text, &w, 0, NULL), *o;
    char processes[2048];
    size_t peers;

    peers_text(text, processes, sizeof processes);
    o = run_planned(text, processes, &w, &peers);
    outcome_check_same(whole, o, 0, "in processes, by the plan");
    CHECK(peers > 0);
    outcome_free(o);
    o = run_planned(processes, text, &w, &peers);
    outcome_check_same(whole, o, 0, "in threads, by the plan");
    CHECK_EQ_INT(peers, 0);
    outcome_free(o);
    outcome_free(whole);
}

TEST(a_fork_into_processes_keeps_both_sides)
{
    struct world w = {.end = INT64_MAX};

    check_processes(
        GRAPH("  - source.range: {n: 200}\n    name: a\n" MAP "    name: b\n"
              "  - code.map: {code: key, outputs: \"key: int64\"}\n    name: c\n"
              "    inputs: [a]\n"
              "  - flow.zip: {prefix: [b_, c_]}\n    inputs: [b, c]\n" BATCH(8)),
        &w, NULL);
}

/* The images of some records are deferred when they reach the code, others are not: the
 * flip is random, and some images are small enough for the crop. */
#define FLIP "  - image.flip: {p: 0.67}\n"
#define JITTER "  - image.color_jitter: {brightness: 0.3}\n"

TEST(user_code_gets_made_images_after_random_edits)
{
    static const char *const graphs[] = {
        GRAPH(RANGE(100) SHUFFLE TILES FLIP SUM BATCH(16)),
        GRAPH(RANGE(100) SHUFFLE TILES JITTER FLIP SUM BATCH(16)),
        GRAPH(RANGE(100) SHUFFLE TILES FLIP JITTER FLIP SUM BATCH(16)),
        GRAPH(RANGE(100) SHUFFLE TILES
              "  - image.random_crop: {size: [6, 4], padding: 1}\n" FLIP EVEN BATCH(16)),
        GRAPH(RANGE(100) SHUFFLE TILES JITTER FLIP EVEN SUM BATCH(16)),
        GRAPH(RANGE(100) SHUFFLE TILES JITTER FLIP SUMS BATCH(16)),
        GRAPH(RANGE(100) SHUFFLE TILES
              "  - image.pad: {padding: 1}\n" FLIP EVEN FLIP SUM BATCH(16)),
        GRAPH(RANGE(100) SHUFFLE TILES FLIP
              "  - tensor.cast: {field: image, dtype: float16}\n" SUM BATCH(16)),
        GRAPH("  - source.range: {n: 100}\n" TILES "    name: a\n" FLIP "    name: b\n"
              "  - image.flip: {p: 0.3}\n    name: c\n    inputs: [a]\n"
              "  - flow.zip: {prefix: [b_, c_]}\n    inputs: [b, c]\n"
              "  - code.map: {code: sum, fields: b_image, outputs: \"b: int64\"}\n"
              "  - code.map: {code: sum, fields: c_image, outputs: \"c: int64\"}\n" BATCH(
                  8)),
    };
    struct world w = {.end = INT64_MAX};
    struct hr_iter_options options;

    hr_iter_options_init(&options);
    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++) {
        options.fuse = true;
        check_processes(graphs[i], &w, &options);
        options.fuse = false;
        check_processes(graphs[i], &w, &options);
    }
}

TEST(a_source_ends_and_records_fail_in_processes_as_in_threads)
{
    struct world w = {.end = 103}, bad = {.end = 103, .every = 10};
    struct hr_iter_options options;

    hr_iter_options_init(&options);
    options.epochs = 2;
    check_processes(GRAPH(ENDLESS MAP BATCH(8)), &w, &options);
    options.on_error = HR_ON_ERROR_SKIP;
    check_processes(GRAPH(ENDLESS MAP BATCH(8)), &bad, &options);
    options.on_error = HR_ON_ERROR_SUBSTITUTE;
    check_processes(GRAPH(RANGE(200) SHUFFLE MAP THIRD BATCH(8)), &bad, &options);
}

TEST(a_failure_in_a_process_is_reported_like_one_in_a_thread)
{
    struct world w = {.end = INT64_MAX, .every = 50};
    struct outcome *a = run(GRAPH(RANGE(100) THIRD MAP BATCH(10)), &w, 1, NULL);
    struct outcome *b = run_processes(GRAPH(RANGE(100) THIRD MAP BATCH(10)), &w, 2, NULL);

    CHECK_ERR(HR_ERR_RANGE, b->code);
    CHECK_EQ_STR(a->error.message, b->error.message);
    CHECK_EQ_STR(a->error.node, b->error.node);
    CHECK_EQ_INT(a->error.record, b->error.record);
    CHECK_EQ_STR(b->detail, "Traceback:\n  line 1\n");
    CHECK_EQ_INT(a->batches, b->batches);
    outcome_free(a);
    outcome_free(b);
}

TEST(meters_count_remote_steps)
{
    struct world w = {.end = INT64_MAX};
    struct outcome *o =
        run_processes(GRAPH(RANGE(999) MAP THIRD MAP BATCH(16)), &w, 1, NULL);

    CHECK_EQ_INT(o->nodes[1].records, 999);
    CHECK_EQ_INT(o->nodes[2].records, 999);
    CHECK_EQ_INT(o->nodes[2].dropped + o->nodes[3].records, 999);
    CHECK(o->nodes[2].dropped > 0);
    CHECK(o->nodes[1].seconds > 0);
    outcome_free(o);
}

/* ---- death ---- */

/* Kills each peer, once it is at work, until a dozen are dead or the run is over. */
static void *killer(void *user)
{
    struct host *host = user;

    while (host->killed < 12 && !atomic_load(&host->over)) {
        struct timespec nap = {.tv_nsec = 2000000};
        char path[512];
        pid_t pid = 0;

        nanosleep(&nap, NULL);
        pthread_mutex_lock(&host->peers.lock);
        if (host->killed < host->peers.count)
            pid = host->peers.pids[host->killed];
        pthread_mutex_unlock(&host->peers.lock);
        snprintf(path, sizeof path, "%s/%d", check_temp_dir(), (int)pid);
        if (pid != 0 && access(path, F_OK) == 0) {
            kill(pid, SIGKILL);
            host->killed++;
        }
    }
    return NULL;
}

TEST(peers_that_are_killed_lose_nothing)
{
#define SLOW "  - code.map: {code: slow, fields: value, outputs: \"value: int64\"}\n"
    struct world w = {.end = INT64_MAX};
    struct outcome *want = run(GRAPH(RANGE(2000) SHUFFLE MAP BATCH(32)), &w, 1, NULL), *o;
    char text[1024];
    struct host host;
    pthread_t thread;

    peers_text(GRAPH(RANGE(2000) SHUFFLE SLOW BATCH(32)), text, sizeof text);
    host_init(&host, &w);
    setenv("HR_CODE_DIR", check_temp_dir(), 1);
    CHECK_EQ_INT(pthread_create(&thread, NULL, killer, &host), 0);
    o = run_with(text, &w, 2, NULL, give_host, &host);
    atomic_store(&host.over, true);
    pthread_join(thread, NULL);
    unsetenv("HR_CODE_DIR");
    if (o->code != HR_ERR_END)
        check_failed(__FILE__, __LINE__, "%s", o->error.message);
    outcome_check_same(want, o, 0, "peers killed");
    CHECK(host.killed > 0 && host.peers.count > host.killed);
    peers_finish(&host.peers);
    outcome_free(want);
    outcome_free(o);
}

TEST(a_record_at_which_every_peer_dies_is_bad_by_itself)
{
#define DIE "  - code.map: {code: die, fields: value, outputs: \"value: int64\"}\n"
    struct world w = {.end = INT64_MAX};
    struct hr_iter_options options;
    struct outcome *o;
    struct host host;
    char text[1024];

    hr_iter_options_init(&options);
    options.on_error = HR_ON_ERROR_SKIP;
    peers_text(GRAPH(RANGE(100) DIE BATCH(10)), text, sizeof text);
    host_init(&host, &w);
    o = run_with(text, &w, 1, &options, give_host, &host);
    CHECK_ERR(HR_ERR_END, o->code);
    CHECK_EQ_INT(o->records, 99);
    CHECK_EQ_INT(o->stats.errors, 1);
    peers_finish(&host.peers);
    outcome_free(o);
}

TEST(a_host_that_cannot_start_a_peer_ends_the_run_under_any_policy)
{
    struct world w = {.end = INT64_MAX};
    struct hr_iter_options options;
    struct outcome *o;
    struct host host;
    char text[1024];

    hr_iter_options_init(&options);
    options.on_error = HR_ON_ERROR_SKIP;
    peers_text(GRAPH(RANGE(100) MAP BATCH(10)), text, sizeof text);
    for (int threads = 0; threads < 3; threads++) {
        host_init(&host, &w);
        host.peers.refuse = true;
        o = run_with(text, &w, threads, &options, give_host, &host);
        CHECK_ERR(HR_ERR_IO, o->code);
        CHECK_HAS(o->error.message, "the test refuses to start processes");
        CHECK_EQ_STR(o->error.node, "code.map");
        peers_finish(&host.peers);
        outcome_free(o);
    }
}

/* ---- hanging ---- */

static void *canceller(void *user)
{
    struct timespec nap = {.tv_nsec = 100000000};

    nanosleep(&nap, NULL);
    hr_iter_cancel(user);
    return NULL;
}

/* The code never returns. */
TEST(closing_does_not_wait_for_code_that_hangs_in_a_process)
{
#define HANG "  - code.map: {code: hang, fields: value, outputs: \"value: int64\"}\n"
    char text[1024];

    peers_text(GRAPH(RANGE(100) HANG BATCH(10)), text, sizeof text);
    for (int i = 0; i < 4; i++) {
        struct world w = {.end = INT64_MAX};
        struct hr_iter_options options;
        struct hr_graph *graph;
        struct hr_iter *iter;
        struct hr_batch *batch;
        struct host host;
        pthread_t thread;

        host_init(&host, &w);
        hr_iter_options_init(&options);
        options.threads = i % 2 + 1;
        options.variant = i % 2 == 0 ? HR_VARIANT_THREADS : HR_VARIANT_INLINE;
        graph = load(text, &w, NULL);
        CHECK(graph != NULL);
        CHECK_OK(give_host(&host, graph));
        CHECK_OK(hr_iter_open(graph, &options, &iter, NULL));
        if (i < 2) {
            CHECK_EQ_INT(pthread_create(&thread, NULL, canceller, iter), 0);
            CHECK_ERR(HR_ERR_CANCELLED, hr_iter_next(iter, &batch, NULL));
            pthread_join(thread, NULL);
        } else if (i == 2) { /* closed while its thread is in the peer */
            struct timespec nap = {.tv_nsec = 200000000};

            nanosleep(&nap, NULL);
        }
        hr_iter_close(iter);
        hr_graph_unref(graph);
        peers_finish(&host.peers);
    }
}

TEST(any_allocation_on_this_side_of_a_request_may_fail)
{
    struct world w = {.end = INT64_MAX, .every = 9};
    struct hr_iter_options options;
    uint64_t calls = 1;

    hr_iter_options_init(&options);
    options.on_error = HR_ON_ERROR_SKIP;
    options.ordered = false;
    for (uint64_t nth = 1; calls >= nth; nth += 5) {
        struct outcome *o;

        hr__fault_arm(HR_FAULT_ALLOC, nth);
        o = run_processes(GRAPH(RANGE(40) MAP THIRD EXPAND BATCH(8)), &w, 0, &options);
        calls = hr__fault_calls();
        hr__fault_arm(0, 0);
        check_survived(o, calls, nth);
        outcome_free(o);
    }
}
