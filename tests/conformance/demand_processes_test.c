/*
 * tests/conformance/demand_processes_test.c - worker processes follow a demand: fewer of
 * them get records while it is low, all do when it rises, and the batches are those of a
 * run without a demand, whichever process ends or dies meanwhile.
 *
 * Processes log each record that they are given in shared memory, so the tests look at
 * who did what, not at times. Decisions of the controller are waited for.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "api/iter.h"
#include "core/rng.h"
#include "headrace/code.h"
#include "tests/support/check.h"
#include "tests/support/outcome.h"
#include "tests/support/peers.h"

#define THREADS 4
#define CALLS_MAX 2000000
#define BATCHES_MAX 100000
/* More than the records that threads which fall asleep have with their processes: two
 * requests each, of 30 ms. */
#define IN_FLIGHT 150
#define PROCESSES_MAX 64

/* ---- the code, and its log ---- */

struct log {
    atomic_uint count;
    atomic_int pids[CALLS_MAX]; /* of each call; 0: not written yet */
};

static struct log *the_log; /* NULL: nothing is logged, and nobody waits */

static struct log *open_log(void)
{
    const char *path = getenv("HR_CODE_LOG");
    int fd = path != NULL ? open(path, O_RDWR | O_CREAT, 0600) : -1;
    void *memory = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, sizeof(struct log)) == 0)
        memory =
            mmap(NULL, sizeof(struct log), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return memory != MAP_FAILED ? memory : NULL;
}

static enum hr_err call_work(void *user, struct hr_code_call *call, struct hr_error *e)
{
    struct timespec nap = {.tv_nsec = 2000000};
    struct hr_field_view view;
    int64_t value;
    void *memory;
    enum hr_err code = hr_code_input(call, 0, &view);

    (void)user;
    if (code == HR_OK)
        code = hr_code_room(call, 0, HR_I64, 0, NULL, &memory, e);
    if (code != HR_OK)
        return code;
    memcpy(&value, view.data, sizeof value);
    value = 2 * value + 1;
    memcpy(memory, &value, sizeof value);
    if (the_log != NULL) {
        unsigned at = atomic_fetch_add(&the_log->count, 1);

        if (at < CALLS_MAX)
            atomic_store(&the_log->pids[at], (int)getpid());
        nanosleep(&nap, NULL);
    }
    return HR_OK;
}

static const struct hr_code the_code = {.identity = "work", .call = call_work};

static const struct hr_code *find(void *user, const char *name)
{
    (void)user;
    return strcmp(name, "work") == 0 ? &the_code : NULL;
}

__attribute__((constructor)) static void serve(void)
{
    if (peers_argument() == NULL)
        return;
    the_log = open_log();
    peers_serve(find, NULL);
}

/* ---- runs ---- */

#define MAP "  - code.map: {code: work, fields: value, outputs: \"value: int64\"}\n"
#define RANGE "headrace: 1\npipeline:\n  - source.range: {n: 1000000}\n"
#define SHUFFLE "  - order.shuffle: {}\n"

static const char *const graphs[] = {
    /* All steps in processes; and two stages that have steps of both kinds. */
    RANGE SHUFFLE MAP "  - batch.stack: {size: 4}\n",
    RANGE SHUFFLE "  - debug.spin: {us: 20}\n" MAP
                  "  - record.filter: {expr: \"value % 3 != 1\"}\n"
                  "  - order.shuffle: {window: 8}\n" MAP "  - debug.spin: {us: 20}\n"
                  "  - batch.stack: {size: 4}\n",
};
#define GRAPHS (sizeof graphs / sizeof graphs[0])

struct run {
    struct peers peers;
    struct log *log; /* by which the test reads what processes did */
    struct hr_graph *graph;
    struct hr_iter *iter;
    struct hr_iter_stats stats; /* after the latest batch */
    const char *text;
    uint64_t *hashes;
    size_t batches;
};

static struct hr_graph *load(const char *text)
{
    struct outcome_job job = outcome_job_text(text);
    struct hr_graph *graph = outcome_graph(&job, NULL);

    CHECK(graph != NULL);
    CHECK_OK(hr_graph_code(graph, "work", &the_code, NULL));
    return graph;
}

static void set_keep(struct run *run, uint64_t ns)
{
    struct hr_engine *engine = run->iter->engine;

    pthread_mutex_lock(&engine->lock);
    engine->demand.control.keep_ns = ns;
    pthread_mutex_unlock(&engine->lock);
}

static void begin(struct run *run, const char *text, double demand)
{
    struct hr_iter_options options;
    char path[512], changed[2048];

    memset(run, 0, sizeof *run);
    run->text = text;
    run->hashes = calloc(BATCHES_MAX, sizeof *run->hashes);
    CHECK(run->hashes != NULL);
    snprintf(path, sizeof path, "%s/log", check_temp_dir());
    unlink(path);
    setenv("HR_CODE_LOG", path, 1);
    run->log = open_log();
    CHECK(run->log != NULL);
    peers_text(text, changed, sizeof changed);
    peers_init(&run->peers, "");
    run->graph = load(changed);
    CHECK_OK(peers_host(&run->peers, run->graph, NULL));
    hr_iter_options_init(&options);
    options.threads = THREADS;
    options.demand = demand;
    CHECK_OK(hr_iter_open(run->graph, &options, &run->iter, NULL));
    set_keep(run, UINT64_MAX);
}

/* Processes so far. */
static int started(struct run *run)
{
    int count;

    pthread_mutex_lock(&run->peers.lock);
    count = run->peers.count;
    pthread_mutex_unlock(&run->peers.lock);
    return count;
}

static void take(struct run *run)
{
    struct hr_batch *batch;
    struct hr_error error = {0};

    if (hr_iter_next(run->iter, &batch, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "batch %zu: %s", run->batches, error.message);
    CHECK(run->batches < BATCHES_MAX);
    run->hashes[run->batches++] = outcome_hash(batch);
    hr_batch_unref(batch);
    hr_iter_stats(run->iter, &run->stats);
    CHECK(run->stats.processes_used <= run->stats.processes);
    CHECK(atomic_load(&run->log->count) < CALLS_MAX);
}

/* Ends the run, and compares its batches with those of one without demand and processes.
 */
static void finish(struct run *run)
{
    struct hr_graph *graph = load(run->text);
    struct hr_iter_options options;
    struct hr_iter *iter;

    hr_iter_close(run->iter);
    hr_graph_unref(run->graph);
    peers_finish(&run->peers);
    munmap(run->log, sizeof *run->log);
    hr_iter_options_init(&options);
    options.variant = HR_VARIANT_INLINE;
    CHECK_OK(hr_iter_open(graph, &options, &iter, NULL));
    for (size_t i = 0; i < run->batches; i++) {
        struct hr_batch *batch;

        CHECK_OK(hr_iter_next(iter, &batch, NULL));
        if (outcome_hash(batch) != run->hashes[i])
            check_failed(__FILE__, __LINE__, "batch %zu differs", i);
        hr_batch_unref(batch);
    }
    hr_iter_close(iter);
    hr_graph_unref(graph);
    free(run->hashes);
}

/* Processes that were given records in calls [from, to). */
static int processes_in(const struct run *run, unsigned from, unsigned to)
{
    int found[PROCESSES_MAX], count = 0;

    for (unsigned at = from; at < to; at++) {
        int pid = atomic_load(&run->log->pids[at]), i = 0;

        while (i < count && found[i] != pid)
            i++;
        if (pid != 0 && i == count) {
            CHECK(count < PROCESSES_MAX);
            found[count++] = pid;
        }
    }
    return count;
}

/* Takes batches until fewer threads are used, and no thread has changed its mind for as
 * many calls as are in flight; then checks who gets records. */
static void check_few(struct run *run)
{
    unsigned from = 0;
    uint32_t changes = UINT32_MAX;

    do {
        take(run);
        if (run->stats.threads_used == THREADS || run->stats.thread_changes != changes) {
            changes = run->stats.thread_changes;
            from = atomic_load(&run->log->count) + IN_FLIGHT;
        }
    } while (run->stats.threads_used == THREADS ||
             atomic_load(&run->log->count) < from + IN_FLIGHT);
    CHECK_EQ_INT(run->stats.processes_used,
                 run->stats.processes / THREADS * run->stats.threads_used);
    CHECK(processes_in(run, from, from + IN_FLIGHT) <= run->stats.processes_used);
}

/* Asks for more than can be made, and takes batches until all processes get records. */
static void check_all(struct run *run)
{
    unsigned from;

    CHECK_OK(hr_iter_demand(run->iter, 1e9, NULL));
    while (run->stats.threads_used < THREADS)
        take(run);
    from = atomic_load(&run->log->count);
    while (processes_in(run, from, atomic_load(&run->log->count)) < run->stats.processes)
        take(run);
    CHECK_EQ_INT(run->stats.processes_used, run->stats.processes);
    CHECK_EQ_INT(run->stats.processes_alive, run->stats.processes);
}

TEST(processes_follow_a_demand_and_are_used_again)
{
    for (size_t i = 0; i < GRAPHS; i++) {
        struct run run;

        begin(&run, graphs[i], 5);
        check_few(&run);
        check_all(&run);
        CHECK_OK(hr_iter_demand(run.iter, 5, NULL));
        check_few(&run);
        CHECK_EQ_INT(started(&run), run.stats.processes);
        finish(&run);
    }
}

TEST(processes_without_work_end_and_start_again)
{
    struct run run;
    int kept;

    begin(&run, graphs[1], 5);
    check_few(&run);
    CHECK_EQ_INT(run.stats.processes_alive, run.stats.processes);
    set_keep(&run, 1);
    while (run.stats.processes_alive > run.stats.processes_used)
        take(&run);
    kept = run.stats.processes_alive;
    CHECK(kept < run.stats.processes);
    check_all(&run);
    CHECK(started(&run) >= 2 * run.stats.processes - kept);
    finish(&run);
}

/* ---- deaths ---- */

/* Kills the process unless it has been given few records or is dead: dying three times at
 * one record is another test. */
static bool kill_one(struct run *run, int number, bool *dead)
{
    unsigned count = atomic_load(&run->log->count);
    int calls = 0;
    pid_t pid;

    pthread_mutex_lock(&run->peers.lock);
    pid = run->peers.pids[number];
    pthread_mutex_unlock(&run->peers.lock);
    for (unsigned at = 0; at < count; at++)
        calls += atomic_load(&run->log->pids[at]) == pid;
    if (dead[number] || calls < 20)
        return false;
    dead[number] = true;
    kill(pid, SIGKILL);
    return true;
}

TEST(processes_that_die_asleep_are_replaced)
{
    bool dead[PEERS_MAX] = {false};
    struct run run;
    int killed = 0, count;

    begin(&run, graphs[0], 5);
    check_few(&run);
    count = started(&run);
    for (int k = 0; k < count; k++)
        killed += kill_one(&run, k, dead);
    check_all(&run);
    CHECK(killed > 0);
    CHECK_EQ_INT(started(&run), count + killed);
    finish(&run);
}

/* Demands, deaths and ends of idle processes at random moments. */
TEST(any_changes_and_deaths_leave_the_batches_as_they_are)
{
    uint64_t seed = check_seed();
    struct hr_rng rng;

    printf("# HEADRACE_TEST_SEED=%llu\n", (unsigned long long)seed);
    hr__rng_init(&rng, seed, 0, 0);
    for (size_t i = 0; i < GRAPHS; i++) {
        static const double demands[] = {0, 1, 300, 1e9, HR_DEMAND_CONSUMER};
        bool dead[PEERS_MAX] = {false};
        struct run run;
        int kills = 0;

        begin(&run, graphs[i], 1);
        for (int step = 0; step < 300; step++) {
            uint64_t draw = hr__rng_below(&rng, 16);

            take(&run);
            if (draw == 0)
                CHECK_OK(hr_iter_demand(run.iter, demands[hr__rng_below(&rng, 5)], NULL));
            else if (draw == 1)
                set_keep(&run, hr__rng_below(&rng, 2) ? 1 : UINT64_MAX);
            else if (draw < 6)
                kills += kill_one(&run, (int)hr__rng_below(&rng, (uint64_t)started(&run)),
                                  dead);
        }
        while (kills == 0) {
            take(&run);
            kills += kill_one(&run, 0, dead);
        }
        finish(&run);
    }
}
