/*
 * tests/contract/contract.c - the registry with the ops of a test program in it, and the
 * table of ways to run a graph.
 *
 * hr__op_list() returns the library's ops and those that were added. A program links this
 * object before the library, so ops/registry.c is left out.
 */
#include "tests/contract/contract.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/str.h"
#include "graph/graph.h"
#include "opt/opt.h"
#include "tests/support/peers.h"

/* ---- the registry ---- */

#define HR_OP(symbol) extern const struct hr_op hr_op_##symbol;
#include "ops/ops.def"
#undef HR_OP

#define OPS_MAX 256

static const struct hr_op *ops[OPS_MAX + 1] = {
#define HR_OP(symbol) &hr_op_##symbol,
#include "ops/ops.def"
#undef HR_OP
};

static size_t count_ops(void)
{
    size_t count = 0;

    while (ops[count] != NULL)
        count++;
    return count;
}

void contract_add(const struct hr_op *op)
{
    size_t at = count_ops();

    if (at == OPS_MAX)
        abort();
    for (; at > 0 && strcmp(ops[at - 1]->name, op->name) > 0; at--)
        ops[at] = ops[at - 1];
    ops[at] = op;
}

const struct hr_op *const *hr__op_list(size_t *ret_count)
{
    *ret_count = count_ops();
    return ops;
}

static const struct hr_code *no_code(void *user, const char *name)
{
    (void)user;
    (void)name;
    return NULL;
}

/* After the ops were added. */
__attribute__((constructor(102))) static void serve(void)
{
    if (peers_argument() != NULL)
        peers_serve(no_code, NULL);
}

/* ---- jobs ---- */

static const char *ledger_path(void)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/ledger", check_temp_dir());
    return path;
}

struct outcome_job contract_job(const char *text)
{
    struct outcome_job job = outcome_job_text(text);

    job.options.seed = check_seed();
    job.options.epochs = 2;
    job.options.on_error = HR_ON_ERROR_SKIP;
    job.options.errors_max = 100000;
    return job;
}

static void add_line(struct hr_str *out, struct hr_rng *rng, int words_max)
{
    static const char *const words[] = {
        "water",   "wheel", "a",     "the",  "race",       "of",   "mill",
        "turbine", "head",  "drop",  "flow", "headwaters", "gate", "weir",
        "channel", "x",     "flood", "dam",  "sluice",     "no"};
    uint64_t count = hr__rng_below(rng, (uint64_t)words_max + 1);

    for (uint64_t i = 0; i < count; i++)
        hr__str_addf(out, "%s%s%s", i == 0 ? "" : " ",
                     words[hr__rng_below(rng, sizeof words / sizeof words[0])],
                     hr__rng_below(rng, 5) == 0 ? "." : "");
    hr__str_add(out, "\n");
}

const char *contract_text(int lines, int words_max, const char **ret_text)
{
    static char path[512], *text;
    struct hr_rng rng;
    struct hr_str out;

    hr__rng_init(&rng, check_seed(), 0, 7);
    hr__str_init(&out);
    for (int i = 0; i < lines; i++)
        add_line(&out, &rng, words_max);
    snprintf(path, sizeof path, "%s/lines-%d-%d.txt", check_temp_dir(), lines, words_max);
    CHECK_OK(hr__file_replace(path, hr__str_text(&out), out.length, NULL));
    hr__free(text);
    text = hr__str_take(&out);
    *ret_text = text;
    return path;
}

struct outcome_job contract_lines(int lines, int words_max, const char *nodes)
{
    static char graph[4096];
    const char *text;
    int length = snprintf(graph, sizeof graph,
                          "headrace: 1\npipeline:\n  - source.list: {path: '%s'}\n%s",
                          contract_text(lines, words_max, &text), nodes);

    CHECK(length < (int)sizeof graph);
    return contract_job(graph);
}

const char *contract_bytes(void)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static char node[600];
    struct hr_str text;
    char path[512];

    hr__str_init(&text);
    for (int i = 0; i < 256; i++)
        hr__str_addf(&text, "%c%c== %d\n", digits[i >> 2], digits[(i & 3) << 4], i);
    snprintf(path, sizeof path, "%s/bytes.tiktoken", check_temp_dir());
    CHECK_OK(hr__file_replace(path, text.text, text.length, NULL));
    hr__str_finish(&text);
    snprintf(node, sizeof node, "  - text.tokenize_bpe: {ranks: '%s'}\n", path);
    return node;
}

void contract_take(const struct outcome_job *job, struct contract_batches *ret_batches)
{
    struct hr_error error = {0};
    struct hr_graph *graph = outcome_graph(job, &error);
    struct hr_iter *iter;
    enum hr_err code;

    if (graph == NULL || hr_iter_open(graph, &job->options, &iter, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    ret_batches->count = 0;
    while ((code = hr_iter_next(iter, &ret_batches->items[ret_batches->count], &error)) ==
           HR_OK)
        CHECK(++ret_batches->count <
              sizeof ret_batches->items / sizeof(struct hr_batch *));
    if (code != HR_ERR_END)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    hr_iter_close(iter);
    hr_graph_unref(graph);
}

void contract_drop(struct contract_batches *batches)
{
    while (batches->count > 0)
        hr_batch_unref(batches->items[--batches->count]);
}

struct hr_field_view contract_field(const struct hr_batch *batch, const char *name)
{
    struct hr_field_view view;

    CHECK_OK(hr_batch_find(batch, name, &view));
    return view;
}

/* ---- ways to run ---- */

#define PLANS_MAX (2 * HR_GRAPH_NODES_MAX)

struct trial {
    struct outcome_job job;
    struct hr_graph *graph;
    struct outcome *whole;
    char *plans[PLANS_MAX]; /* as text: with a cut, with steps in processes */
    size_t plan_count;
    struct peers peers;
};

static void check_same(const struct trial *t, const struct outcome_job *job, size_t skip,
                       const char *words)
{
    struct outcome *other = outcome_run(job);

    outcome_check_same(t->whole, other, skip, words);
    outcome_free(other);
}

static void check_variants(const struct trial *t)
{
    static const struct {
        const char *name;
        int threads;
        bool alone;
    } variants[] = {
        {"1 thread",         1, false},
        {"2 threads",        2, false},
        {"8 threads",        8, false},
        {"every node alone", 2, true },
    };

    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        struct outcome_job job = t->job;

        outcome_job_threads(&job, variants[i].threads);
        job.options.fuse = !variants[i].alone;
        check_same(t, &job, 0, variants[i].name);
    }
}

static enum hr_err host(void *user, struct hr_graph *graph, struct hr_error *reterr)
{
    struct trial *t = user;

    return peers_host(&t->peers, graph, reterr);
}

/* The plan is added as text if the graph allows it; its text must read back to it. */
static bool add_plan(struct trial *t, const struct hr_opt_settings *settings,
                     enum hr_graph_format format)
{
    struct hr_error error = {0};
    struct hr_plan plan, read;
    struct hr_str text;

    if (hr__plan_make(t->graph, settings, &plan, &error) != HR_OK)
        return false;
    hr__str_init(&text);
    hr__plan_print(&plan, format, &text);
    CHECK(hr__str_ok(&text) && t->plan_count < PLANS_MAX);
    if (hr__plan_read(t->graph, hr__str_text(&text), text.length,
                      format == HR_GRAPH_JSON ? "plan.json" : "plan.yaml", &read,
                      &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s in\n%s", error.message, hr__str_text(&text));
    CHECK(hr__plan_equal(&plan, &read));
    hr__plan_finish(&read);
    hr__plan_finish(&plan);
    t->plans[t->plan_count++] = hr__str_take(&text);
    return true;
}

/* Without cuts; with one after each node that allows it; and all steps that can be in
 * worker processes are, without a cut and with one. */
static void make_plans(struct trial *t)
{
    struct hr_opt_settings settings = {
        .cpus = 2, .threads = 2, .ordered = true, .fuse = true};
    bool away[HR_GRAPH_NODES_MAX];
    size_t cuts = 0;

    memset(away, true, sizeof away);
    CHECK(add_plan(t, &settings, HR_GRAPH_JSON));
    settings.processes = away;
    CHECK(add_plan(t, &settings, HR_GRAPH_YAML));
    settings.cut_count = 1;
    for (uint32_t node = 0; node < t->graph->count; node++) {
        settings.cuts = &node;
        settings.processes = NULL;
        settings.threads = node % 2 == 0 ? 2 : -1;
        cuts += add_plan(t, &settings, HR_GRAPH_YAML);
        settings.processes = away;
        if (node % 2 == 0)
            (void)add_plan(t, &settings, HR_GRAPH_YAML);
    }
    CHECK(cuts > 0);
}

/* Resumes after each batch: inline, in threads, and under each of the plans in turn. */
static void check_restarts(const struct trial *t, char *const *states, const char *by)
{
    for (size_t i = 0; i < t->whole->batches; i++) {
        struct outcome_job job = t->job;
        char words[128];

        job.options.state = states[i];
        outcome_job_threads(&job, i % 3 == 0 ? 0 : 2);
        snprintf(words, sizeof words, "resumed after batch %zu, saved %s", i, by);
        check_same(t, &job, i + 1, words);
        job.options.plan = t->plans[i % t->plan_count];
        snprintf(words, sizeof words, "resumed after batch %zu under plan %zu, saved %s",
                 i, i % t->plan_count, by);
        check_same(t, &job, i + 1, words);
    }
}

static void check_plans(const struct trial *t)
{
    for (size_t i = 0; i < t->plan_count; i++) {
        struct outcome_job job = t->job;
        char words[64];

        job.options.plan = t->plans[i];
        snprintf(words, sizeof words, "plan %zu", i);
        check_same(t, &job, 0, words);
    }
}

/* States that were saved under a plan with a cut. */
static void check_cut_states(const struct trial *t)
{
    struct outcome_job job = t->job;
    struct outcome *cut;

    job.options.plan = t->plans[t->plan_count - 1];
    job.states = true;
    cut = outcome_run(&job);
    outcome_check_same(t->whole, cut, 0, "states under the last plan");
    check_restarts(t, cut->states, "under the last plan");
    outcome_free(cut);
}

struct outcome *contract_check(struct outcome_job job)
{
    struct trial t = {.job = job};
    struct hr_error error = {0};

    t.job.prepare = host;
    t.job.user = &t;
    t.job.options.ledger = ledger_path();
    peers_init(&t.peers, "serve");
    t.graph = outcome_graph(&t.job, &error);
    if (t.graph == NULL || hr_graph_freeze(t.graph, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    t.job.states = true;
    t.whole = outcome_run(&t.job);
    t.job.states = false;
    if (t.whole->code != HR_ERR_END)
        check_failed(__FILE__, __LINE__, "%s", t.whole->error.message);
    CHECK(t.whole->batches > 2);
    make_plans(&t);
    check_variants(&t);
    check_plans(&t);
    check_restarts(&t, t.whole->states, "inline");
    check_cut_states(&t);
    while (t.plan_count > 0)
        hr__free(t.plans[--t.plan_count]);
    hr_graph_unref(t.graph);
    peers_finish(&t.peers);
    return t.whole;
}
