/*
 * tests/conformance/random_graphs_test.c - random graphs give the same batches and the
 * same ledger of bad records however they are run: each variant of the table below is
 * compared with the run in the caller's thread, in mode exact and in mode close. Where
 * records fail, all runs fail with the same message after the same batches.
 *
 * Every run draws new graphs. HEADRACE_TEST_SEED=n runs graph n and prints it,
 * HEADRACE_TEST_GRAPHS=m runs m graphs, starting from n if both are set.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/cpu.h"
#include "core/str.h"
#include "graph/graph.h"
#include "opt/opt.h"
#include "tests/conformance/photos.h"
#include "tests/conformance/random_graph.h"
#include "tests/support/check.h"
#include "tests/support/outcome.h"
#include "tests/support/peers.h"

#define GRAPHS 200
#define STATE_MAX (1 << 16)
/* Some graphs make a batch of each pixel of many photos: millions. They are not run. */
#define BATCHES_MAX 5000

static size_t cuts;   /* plans with a cut that were run */
static bool all_cuts; /* false: a quarter of them */
static size_t too_long;

__attribute__((constructor)) static void serve(void)
{
    if (peers_argument() != NULL)
        peers_serve(random_graph_code, NULL);
}

/* A graph in one mode. */
struct trial {
    struct random_graph *m;
    const char *mode;
    struct hr_graph *graph; /* in that mode, frozen */
    char text[RANDOM_GRAPH_MAX];
    struct outcome_job job;
    struct outcome *whole;
    bool limited; /* by errors_max: a run that resumes counts from 0 again */
};

static void check_same(const struct trial *t, const struct outcome_job *job, size_t skip,
                       const char *name)
{
    struct outcome *other = outcome_run(job);
    const char *difference = outcome_difference(t->whole, other, skip);

    if (difference != NULL)
        check_failed(__FILE__, __LINE__, "%s, %s: %s, in\n%s", t->mode, name, difference,
                     t->text);
    outcome_free(other);
}

/* ---- variants ---- */

static void run_threads(struct trial *t, const char *name, int threads)
{
    struct outcome_job job = t->job;

    outcome_job_threads(&job, threads);
    check_same(t, &job, 0, name);
}

static void run_alone(struct trial *t, const char *name, int threads)
{
    struct outcome_job job = t->job;

    outcome_job_threads(&job, threads);
    job.options.fuse = false;
    check_same(t, &job, 0, name);
}

static void run_plain(struct trial *t, const char *name, int every)
{
    struct outcome_job job = t->job;

    if (random_graph_below(t->m, (uint64_t)every) != 0)
        return;
    hr__isa_limit(HR_ISA_C);
    check_same(t, &job, 0, name);
    hr__isa_limit(HR_ISA_AVX512);
}

/* A random node's values are made right after it; in mode exact the bytes are the same.
 */
static enum hr_err prepare_early(void *user, struct hr_graph *graph, struct hr_error *e)
{
    struct random_graph *m = user;
    uint32_t node = (uint32_t)random_graph_below(m, hr_graph_node_count(graph));

    HR_TRY(hr__graph_make_after(graph, node));
    return random_graph_prepare(NULL, graph, e);
}

static void run_early(struct trial *t, const char *name, int threads)
{
    struct outcome_job job = t->job;

    if (strcmp(t->mode, "exact") != 0)
        return;
    outcome_job_threads(&job, threads);
    job.prepare = prepare_early;
    job.user = t->m;
    check_same(t, &job, 0, name);
}

/* The beginning of a random node that reads the node before it; NULL if there is none. */
static const char *any_reader(struct trial *t)
{
    const char *found = NULL, *end;
    uint64_t count = 0;

    for (const char *at = strstr(t->text, "\n  - "); at != NULL; at = end) {
        const char *inputs = strstr(at, "\n    inputs:");

        end = strstr(at + 1, "\n  - ");
        if (inputs != NULL && (end == NULL || inputs < end))
            continue;
        if (random_graph_below(t->m, ++count) == 0)
            found = at + 1;
    }
    return found;
}

/* An identity anywhere moves no draw of the others. */
static void run_identity(struct trial *t, const char *name, int threads)
{
    static char text[RANDOM_GRAPH_MAX + 64];
    struct outcome_job job = t->job;
    const char *at = any_reader(t);
    struct hr_graph *graph;

    if (at == NULL)
        return;
    snprintf(text, sizeof text, "%.*s  - debug.identity: {}\n    name: inserted\n%s",
             (int)(at - t->text), t->text, at);
    job.text = text;
    outcome_job_threads(&job, threads);
    graph = outcome_graph(&job, NULL);
    if (graph != NULL && hr_graph_freeze(graph, NULL) == HR_OK) /* not before a source */
        check_same(t, &job, 0, name);
    hr_graph_unref(graph);
}

static enum hr_err
prepare_peers(void *user, struct hr_graph *graph, struct hr_error *reterr)
{
    enum hr_err code = random_graph_prepare(NULL, graph, reterr);

    return code == HR_OK ? peers_host(user, graph, reterr) : code;
}

static void run_processes(struct trial *t, const char *name, int threads)
{
    static char text[RANDOM_GRAPH_MAX];
    struct outcome_job job = t->job;
    struct peers peers;

    if (t->m->codes == 0)
        return;
    peers_text(t->text, text, sizeof text);
    peers_init(&peers, "");
    outcome_job_threads(&job, threads);
    job.text = text;
    job.prepare = prepare_peers;
    job.user = &peers;
    check_same(t, &job, 0, name);
    peers_finish(&peers);
}

static void run_resumed(struct trial *t, const char *name, int times)
{
    struct outcome_job job = t->job;

    for (int i = 0; i < times && t->whole->batches > 0 && !t->limited; i++) {
        uint64_t at = random_graph_below(t->m, t->whole->batches);

        job.options.state = t->whole->states[at];
        outcome_job_threads(&job, (int)random_graph_below(t->m, 3));
        check_same(t, &job, at + 1, name);
    }
}

/* Runs the job and writes the state after each batch, with its NUL; never returns. */
static _Noreturn void child(const struct outcome_job *job, int fd)
{
    struct hr_error error = {0};
    struct hr_iter *iter = NULL;
    struct hr_batch *batch;
    struct hr_graph *graph;
    char *state;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    graph = outcome_graph(job, &error);
    if (graph == NULL || hr_iter_open(graph, &job->options, &iter, &error) != HR_OK)
        _exit(1);
    while (hr_iter_next(iter, &batch, &error) == HR_OK) {
        size_t left, sent = 0;

        if (hr_iter_save(iter, &state, &error) != HR_OK)
            _exit(1);
        for (left = strlen(state) + 1; left > 0; left -= sent) {
            ssize_t wrote = write(fd, state + strlen(state) + 1 - left, left);

            if (wrote <= 0)
                _exit(1);
            sent = (size_t)wrote;
        }
        hr_free(state);
        hr_batch_unref(batch);
    }
    _exit(0);
}

/* The `count`-th state from the pipe; false if it ends before. */
static bool read_state(int fd, uint64_t count, char *state)
{
    size_t length = 0;

    while (count > 0) {
        CHECK(length < STATE_MAX);
        if (read(fd, state + length, 1) != 1)
            return false;
        if (state[length++] != '\0')
            continue;
        length = 0;
        count--;
    }
    return true;
}

/* Kills a run at a random time after some batch, and resumes it in this process. */
static void run_killed(struct trial *t, const char *name, int threads)
{
    static char state[STATE_MAX];
    struct outcome_job job = t->job;
    uint64_t at;
    int ends[2];
    bool whole;
    pid_t pid;

    if (t->whole->batches == 0 || t->limited)
        return;
    at = random_graph_below(t->m, t->whole->batches);
    outcome_job_threads(&job, (int)random_graph_below(t->m, (uint64_t)threads + 1));
    CHECK_EQ_INT(pipe(ends), 0);
    fflush(stdout);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        job.options.ledger = NULL;
        close(ends[0]);
        child(&job, ends[1]);
    }
    close(ends[1]);
    whole = read_state(ends[0], at + 1, state);
    kill(pid, SIGKILL);
    CHECK_EQ_INT(waitpid(pid, NULL, 0), pid);
    close(ends[0]);
    if (!whole)
        check_failed(__FILE__, __LINE__, "%s, %s: %llu batches did not arrive, in\n%s",
                     t->mode, name, (unsigned long long)at + 1, t->text);
    job.options.state = state;
    check_same(t, &job, at + 1, name);
}

/* ---- plans ---- */

/* Runs the plan that is read back from its own text. */
static void
check_plan(struct trial *t, struct outcome_job job, const struct hr_plan *plan,
           enum hr_graph_format format, size_t skip, const char *name)
{
    struct hr_error error = {0};
    struct hr_plan read;
    struct hr_str text;

    hr__str_init(&text);
    hr__plan_print(plan, format, &text);
    CHECK(hr__str_ok(&text));
    if (hr__plan_read(t->graph, hr__str_text(&text), text.length,
                      format == HR_GRAPH_JSON ? "plan.json" : "plan.yaml", &read,
                      &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s, %s: %s, in\n%s\n%s", t->mode, name,
                     error.message, t->text, hr__str_text(&text));
    CHECK(hr__plan_equal(plan, &read));
    job.options.plan = hr__str_text(&text);
    check_same(t, &job, skip, name);
    hr__plan_finish(&read);
    hr__str_finish(&text);
}

static struct hr_opt_settings random_settings(struct trial *t, int threads)
{
    return (struct hr_opt_settings){
        .threads = (int)random_graph_below(t->m, (uint64_t)threads + 2) - 1,
        .cpus = 2,
        .ordered = true,
        .fuse = random_graph_below(t->m, 2) == 0,
    };
}

static void run_plan(struct trial *t, const char *name, int threads)
{
    struct hr_opt_settings settings = random_settings(t, threads);
    bool json = random_graph_below(t->m, 2) == 0;
    struct hr_plan plan;

    if (hr__plan_make(t->graph, &settings, &plan, NULL) != HR_OK) {
        CHECK(t->whole->batches == 0 && t->whole->code != HR_ERR_END);
        return;
    }
    check_plan(t, t->job, &plan, json ? HR_GRAPH_JSON : HR_GRAPH_YAML, 0, name);
    hr__plan_finish(&plan);
}

/* Any steps in worker processes, user code and ops alike; records cross the cuts between
 * them as the record codec has it. */
static void run_steps_away(struct trial *t, const char *name, int every)
{
    struct hr_opt_settings settings = random_settings(t, 1);
    bool away[HR_GRAPH_NODES_MAX];
    struct outcome_job job = t->job;
    struct peers peers;
    struct hr_plan plan;

    if (!all_cuts && random_graph_below(t->m, (uint64_t)every) != 0)
        return;
    for (uint32_t node = 0; node < t->graph->count; node++)
        away[node] = random_graph_below(t->m, 3) > 0;
    settings.processes = away;
    if (hr__plan_make(t->graph, &settings, &plan, NULL) != HR_OK)
        return;
    peers_init(&peers, "");
    job.prepare = prepare_peers;
    job.user = &peers;
    check_plan(t, job, &plan, HR_GRAPH_YAML, 0, name);
    peers_finish(&peers);
    hr__plan_finish(&plan);
}

/* Cuts that are legal; a record that fails after one cannot be substituted. */
/* A state of a run without a cut resumes with one, and the other way round. */
static void resume_with(struct trial *t, const struct hr_plan *plan, const char *name)
{
    struct outcome_job job = t->job;
    struct outcome *o;
    struct hr_str text;
    uint64_t at;

    if (t->whole->batches == 0 || t->limited)
        return;
    at = random_graph_below(t->m, t->whole->batches);
    job.options.state = t->whole->states[at];
    check_plan(t, job, plan, HR_GRAPH_YAML, at + 1, name);
    hr__str_init(&text);
    hr__plan_print(plan, HR_GRAPH_YAML, &text);
    job.options.state = NULL;
    job.options.plan = hr__str_text(&text);
    job.states = true;
    o = outcome_run(&job);
    if (at < o->batches) {
        job.options.state = o->states[at];
        job.options.plan = NULL;
        check_same(t, &job, at + 1, name);
    }
    outcome_free(o);
    hr__str_finish(&text);
}

static void run_cuts(struct trial *t, const char *name, int threads)
{
    struct hr_opt_settings settings = random_settings(t, threads);

    if (t->job.options.on_error == HR_ON_ERROR_SUBSTITUTE)
        return;
    for (uint32_t node = 0; node < t->graph->count; node++) {
        struct hr_plan plan;
        char words[128];

        if (!all_cuts && (t->job.options.seed + node) % 4 != 0)
            continue;
        settings.cuts = &node;
        settings.cut_count = 1;
        if (hr__plan_make(t->graph, &settings, &plan, NULL) != HR_OK)
            continue;
        cuts++;
        snprintf(words, sizeof words, "%s %s", name, t->graph->nodes[node].name);
        check_plan(t, t->job, &plan, HR_GRAPH_YAML, 0, words);
        resume_with(t, &plan, words);
        hr__plan_finish(&plan);
    }
}

/* Ways to run a graph that must not affect its batches. */
static const struct variant {
    const char *name;
    void (*run)(struct trial *t, const char *name, int number);
    int number;
} variants[] = {
    {"1 thread",              run_threads,    1},
    {"2 threads",             run_threads,    2},
    {"8 threads",             run_threads,    8},
    {"every node alone",      run_alone,      2},
    {"values made early",     run_early,      2},
    {"identity inserted",     run_identity,   2},
    {"plain C",               run_plain,      4},
    {"plan saved and loaded", run_plan,       2},
    {"cut after",             run_cuts,       2},
    {"processes",             run_processes,  1},
    {"steps in processes",    run_steps_away, 2},
    {"resumed",               run_resumed,    2},
    {"killed, and resumed",   run_killed,     2},
};

/* ---- graphs ---- */

static void set_mode(struct trial *t)
{
    char *place;

    memcpy(t->text, t->m->text, t->m->length + 1);
    for (place = t->text; (place = strstr(place, "{mode: exact}")) != NULL; place++)
        memcpy(place + sizeof "{mode: " - 1, t->mode, 5);
}

static void check_mode(struct random_graph *m, uint64_t seed, const char *mode)
{
    static struct trial t;
    char ledger[512];

    t = (struct trial){.m = m, .mode = mode};
    set_mode(&t);
    t.job = outcome_job_text(t.text);
    t.job.prepare = random_graph_prepare;
    t.job.options.seed = seed;
    t.job.options.epochs = random_graph_below(m, 4) == 0 ? 2 : 1;
    t.job.options.on_error = (enum hr_on_error)random_graph_below(m, 3);
    /* Where every record is bad, each has all others tried in its place. */
    if (strstr(t.text, "order.repeat") != NULL &&
        t.job.options.on_error == HR_ON_ERROR_SUBSTITUTE)
        t.job.options.on_error = HR_ON_ERROR_SKIP;
    t.limited = random_graph_below(m, 4) == 0;
    t.job.options.errors_max =
        t.limited ? 1 + (int64_t)random_graph_below(m, 9) : 1000000;
    snprintf(ledger, sizeof ledger, "%s/ledger", check_temp_dir());
    unlink(ledger);
    t.job.options.ledger = ledger;
    t.job.states = true;
    t.graph = outcome_graph(&t.job, NULL);
    CHECK(t.graph != NULL);
    CHECK_OK(hr_graph_freeze(t.graph, NULL));
    t.job.batches_max = BATCHES_MAX;
    t.whole = outcome_run(&t.job);
    t.job.states = false;
    t.job.batches_max = 0;
    if (t.whole->code == HR_OK)
        too_long++;
    else
        for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
            variants[i].run(&t, variants[i].name, variants[i].number);
    outcome_free(t.whole);
    hr_graph_unref(t.graph);
}

static uint64_t from_environment(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);

    return text != NULL ? strtoull(text, NULL, 0) : fallback;
}

typedef void make_fn(struct random_graph *m, uint64_t seed);

static void check_graphs(make_fn *make, uint64_t graphs)
{
    static struct random_graph m;
    bool one = getenv("HEADRACE_TEST_SEED") != NULL;
    uint64_t first = check_seed();
    uint64_t count = from_environment("HEADRACE_TEST_GRAPHS", one ? 1 : graphs);

    all_cuts = getenv("HEADRACE_TEST_GRAPHS") != NULL || one;
    cuts = too_long = 0;
    for (uint64_t seed = first; seed < first + count; seed++) {
        make(&m, seed);
        printf("%s# HEADRACE_TEST_SEED=%llu\n", one && count == 1 ? m.text : "",
               (unsigned long long)seed);
        fflush(stdout); /* so that a crash has printed its seed */
        check_mode(&m, seed, "exact");
        if (m.decodes)
            check_mode(&m, seed, "close");
        hr_graph_unref(m.graph);
    }
    printf("# %zu plans with a cut, %zu graphs of too many batches\n", cuts, too_long);
}

static void make_any(struct random_graph *m, uint64_t seed)
{
    random_graph_make(m, seed, photos_good());
}

TEST(random_graphs_give_the_same_bytes_whatever_runs_them)
{
    check_graphs(make_any, GRAPHS);
}

TEST(random_items_give_the_same_bytes_whatever_runs_them)
{
    check_graphs(random_graph_items, GRAPHS / 2);
}

TEST(random_sequences_give_the_same_records_and_ledger_whatever_runs_them)
{
    check_graphs(random_graph_sequence, GRAPHS);
}
