/*
 * tests/conformance/random_graphs_test.c - random graphs give the same bytes however they
 * are run.
 *
 * A graph grows step by step: an operator is drawn from the registry, its parameters from
 * its own table, and steps that freezing rejects are removed again. So new operators are
 * tested without a change here. A drawn step may fail on records (a crop larger than the
 * image): then all runs must fail with the same message after the same batches. Images
 * are decoded in mode exact, so one of the runs composes nothing.
 *
 * HEADRACE_TEST_SEED=n runs only graph n, HEADRACE_TEST_GRAPHS=n that many graphs.
 */
#include <stdarg.h>
#include <stdlib.h>

#include "core/cpu.h"
#include "core/rng.h"
#include "core/str.h"
#include "op/op.h"
#include "opt/opt.h"
#include "tests/conformance/photos.h"
#include "tests/support/check.h"
#include "tests/support/outcome.h"

static size_t cuts; /* plans with one that were run */

#define GRAPHS 100
#define TEXT_MAX 8192

struct maker {
    struct hr_rng rng;
    char text[TEXT_MAX];
    size_t length;
    struct hr_graph *graph; /* frozen from the text */
    size_t steps, forks;
};

static uint64_t below(struct maker *m, uint64_t n)
{
    return hr__rng_below(&m->rng, n);
}

static void HR_PRINTF(2, 3) add(struct maker *m, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    m->length +=
        (size_t)vsnprintf(m->text + m->length, TEXT_MAX - m->length, format, args);
    va_end(args);
    CHECK(m->length < TEXT_MAX);
}

/* Freezes the graph in the text; if that fails, truncates the text to `length`. */
static bool keep(struct maker *m, size_t length)
{
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};
    enum hr_err code =
        hr_graph_parse(m->text, m->length, "random.yaml", NULL, 0, &graph, &error);

    if (code == HR_OK)
        code = hr_graph_freeze(graph, &error);
    if (code != HR_OK) {
        CHECK(error.message[0] != '\0');
        hr_graph_unref(graph);
        m->text[m->length = length] = '\0';
        return false;
    }
    hr_graph_unref(m->graph);
    m->graph = graph;
    m->steps++;
    return true;
}

/* Field `at` after the last step; false past the last field. */
static bool field_at(struct maker *m, size_t at, struct hr_field_info *ret_field)
{
    return hr_graph_field_info(m->graph, hr_graph_node_count(m->graph) - 1, at,
                               ret_field) == HR_OK;
}

static size_t field_count(struct maker *m)
{
    return hr_graph_field_count(m->graph, hr_graph_node_count(m->graph) - 1);
}

static bool has_field(struct maker *m, const char *name)
{
    struct hr_field_info field;

    for (size_t i = 0; field_at(m, i, &field); i++)
        if (strcmp(field.name, name) == 0)
            return true;
    return false;
}

static const char *any_field(struct maker *m)
{
    struct hr_field_info field = {.name = "value"};

    if (field_count(m) > 0)
        CHECK(field_at(m, below(m, field_count(m)), &field));
    return field.name;
}

/* ---- parameters ---- */

static double number(struct maker *m, const struct hr_param *p, double low, double high)
{
    if (p->has_min && p->min > low)
        low = p->min;
    if (p->has_max && p->max < high)
        high = p->max;
    return hr__rng_uniform(&m->rng, low, high);
}

static void add_list(struct maker *m, const struct hr_param *p, bool whole)
{
    int least = p->items_min > 0 ? p->items_min : 1;
    int most = p->items_max > 0 && p->items_max < 4 ? p->items_max : 4;
    int count =
        least >= most ? least : least + (int)below(m, (uint64_t)(most - least + 1));
    double value = whole ? 0 : number(m, p, -1, 1);

    add(m, "[");
    for (int i = 0; i < count; i++) {
        if (whole)
            add(m, "%s%d", i == 0 ? "" : ", ", (int)number(m, p, 0, 60));
        else
            add(m, "%s%.3f", i == 0 ? "" : ", ", value += number(m, p, 0, 1.5));
    }
    add(m, "]");
}

static void add_name(struct maker *m, const struct hr_param *p)
{
    int count = 0;

    while (p->names[count] != NULL)
        count++;
    add(m, "%s", p->names[below(m, (uint64_t)count)]);
}

static void add_value(struct maker *m, const struct hr_param *p)
{
    static const char *const dtypes[] = {"float32", "float16", "bfloat16", "uint8",
                                         "int32"};

    switch (p->type) {
    case HR_PARAM_INT:
    case HR_PARAM_BYTES:
        add(m, "%d", (int)number(m, p, 0, below(m, 4) != 0 ? 6 : 70));
        break;
    case HR_PARAM_FLOAT:
        add(m, "%.3f", number(m, p, 0, 2));
        break;
    case HR_PARAM_BOOL:
        add(m, below(m, 2) == 0 ? "true" : "false");
        break;
    case HR_PARAM_ENUM:
        add_name(m, p);
        break;
    case HR_PARAM_DTYPE:
        add(m, "%s", dtypes[below(m, 5)]);
        break;
    case HR_PARAM_INTS:
    case HR_PARAM_FLOATS:
        add_list(m, p, p->type == HR_PARAM_INTS);
        break;
    case HR_PARAM_FIELDS:
    case HR_PARAM_STRINGS:
        add(m, "[%s]", any_field(m));
        break;
    case HR_PARAM_MAP:
        add(m, "{%s: other}", any_field(m));
        break;
    case HR_PARAM_STRING: /* a filter condition */
        add(m, "\"%s %% %d != 1\"", any_field(m), 2 + (int)below(m, 3));
        break;
    case HR_PARAM_FIELD:
    case HR_PARAM_PATH:
        add(m, "%s", any_field(m));
        break;
    }
}

/* True for required parameters and a third of the others; names of missing fields are
 * replaced by existing ones. */
static bool wants(struct maker *m, const struct hr_param *p)
{
    if (p->required)
        return true;
    if (p->type == HR_PARAM_FIELD && p->access != HR_ACCESS_WRITE && p->fallback != NULL)
        return !has_field(m, p->fallback);
    return p->type != HR_PARAM_FIELD && p->type != HR_PARAM_PATH &&
           p->type != HR_PARAM_STRING && p->type != HR_PARAM_FIELDS && below(m, 3) == 0;
}

static void add_step(struct maker *m, const struct hr_op *op)
{
    const char *comma = "";

    add(m, "  - %s: {", op->name);
    for (size_t i = 0; i < op->param_count; i++) {
        if (!wants(m, &op->params[i]))
            continue;
        add(m, "%s%s: ", comma, op->params[i].name);
        add_value(m, &op->params[i]);
        comma = ", ";
    }
    add(m, "}\n");
}

/* ---- graphs ---- */

/* A random op for the middle of a graph. Ops that only take time are excluded; they are
 * recognised by having a single, required, numeric parameter. */
static const struct hr_op *any_op(struct maker *m)
{
    for (;;) {
        size_t count;
        const struct hr_op *const *list = hr__op_list(&count);
        const struct hr_op *op = list[below(m, count)];

        if (op->kind == HR_OP_SOURCE || op->kind == HR_OP_ZIP ||
            op->kind == HR_OP_BATCH || (op->traits & HR_TRAIT_DECODES) != 0 ||
            op->code != NULL)
            continue;
        if ((op->traits & HR_TRAIT_TEST_ONLY) != 0 && op->param_count > 0 &&
            (op->params[0].required || below(m, 4) != 0))
            continue;
        return op;
    }
}

static void grow(struct maker *m, size_t steps)
{
    for (size_t tries = 0; steps > 0 && tries < 60; tries++) {
        size_t length = m->length;

        add_step(m, any_op(m));
        steps -= keep(m, length);
    }
}

/* Adds two branches and joins them. */
static void fork_and_join(struct maker *m)
{
    size_t length = m->length, number = m->forks++;

    add(m, "  - debug.identity: {}\n    name: fork%zu\n", number);
    for (int branch = 0; branch < 2; branch++) {
        add(m, "  - debug.identity: {}\n    name: branch%zu_%d\n    inputs: [fork%zu]\n",
            number, branch, number);
        if (has_field(m, "image") && below(m, 2) == 0)
            add(m, "  - image.flip: {}\n    name: end%zu_%d\n", number, branch);
        else
            add(m, "  - debug.identity: {}\n    name: end%zu_%d\n", number, branch);
    }
    add(m,
        "  - flow.zip: {prefix: [left%zu_, right%zu_]}\n    inputs: [end%zu_0, "
        "end%zu_1]\n",
        number, number, number, number);
    if (!keep(m, length))
        check_failed(__FILE__, __LINE__, "a fork is refused in\n%s", m->text);
}

static bool all_known(struct maker *m)
{
    struct hr_field_info field;

    for (size_t i = 0; field_at(m, i, &field); i++)
        for (int d = 0; d < field.ndim; d++)
            if (field.dims[d] < 0)
                return false;
    return true;
}

static void add_batch(struct maker *m)
{
    size_t length = m->length;
    int size = 1 + (int)below(m, 9);

    if (!all_known(m) && below(m, 2) == 0) {
        add(m, "  - image.resize: {size: [%d, %d]}\n", 8 + (int)below(m, 40),
            8 + (int)below(m, 40));
        keep(m, length);
        length = m->length;
    }
    add(m, "  - batch.%s: {size: %d, drop_last: %s}\n",
        all_known(m) || below(m, 8) == 0 ? "stack" : "pad", size,
        below(m, 3) == 0 ? "true" : "false");
    keep(m, length);
}

static void make_graph(struct maker *m, uint64_t seed, const char *photos)
{
    size_t length;

    *m = (struct maker){0};
    hr__rng_init(&m->rng, seed, 0, 0);
    add(m, "headrace: 1\npipeline:\n");
    if (below(m, 3) == 0) {
        add(m, "  - source.range: {n: %d}\n", 20 + (int)below(m, 200));
        CHECK(keep(m, 0));
        grow(m, 1 + below(m, 4));
    } else {
        add(m, "  - source.files: {path: '%s', labels: folder}\n", photos);
        CHECK(keep(m, 0));
        grow(m, below(m, 2));
        length = m->length;
        add(m, "  - order.take: {count: %d}\n", 6 + (int)below(m, 14));
        keep(m, length);
        length = m->length;
        add(m, "  - image.decode: {mode: exact}\n");
        keep(m, length);
        grow(m, 1 + below(m, 6));
    }
    if (below(m, 5) == 0)
        fork_and_join(m);
    add_batch(m);
    if (below(m, 5) == 0) {
        grow(m, 1 + below(m, 2));
        add_batch(m);
    }
}

/* A failing run of several stages may end before all good batches are delivered: the
 * error overtakes them. */
static bool overtakes(const struct maker *m, const struct outcome *whole)
{
    return whole->code != HR_ERR_END && strstr(m->text, "batch.unbatch") != NULL;
}

static void check_same(const struct maker *m, const struct outcome *whole,
                       const struct outcome_job *job, size_t skip, const char *name)
{
    struct outcome *other = outcome_run(job);
    const char *difference = outcome_difference(whole, other, skip);

    if (difference != NULL && overtakes(m, whole) && whole->code == other->code)
        difference = NULL;
    if (difference != NULL)
        check_failed(__FILE__, __LINE__, "%s: %s, in\n%s", name, difference, m->text);
    outcome_free(other);
}

/* ---- plans ---- */

/* The plan as text, and a run of what is read back from it. */
static void
check_plan(const struct maker *m, const struct outcome *whole, struct outcome_job job,
           const struct hr_plan *plan, enum hr_graph_format format, const char *name)
{
    struct hr_error error = {0};
    struct hr_plan read;
    struct hr_str text;

    hr__str_init(&text);
    hr__plan_print(plan, format, &text);
    CHECK(hr__str_ok(&text));
    if (hr__plan_read(m->graph, hr__str_text(&text), text.length,
                      format == HR_GRAPH_JSON ? "plan.json" : "plan.yaml", &read,
                      &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s: %s, in\n%s\n%s", name, error.message,
                     m->text, hr__str_text(&text));
    CHECK(hr__plan_equal(plan, &read));
    job.options.plan = hr__str_text(&text);
    check_same(m, whole, &job, 0, name);
    hr__plan_finish(&read);
    hr__str_finish(&text);
}

/* Every cut that is legal; a record that fails after one cannot be substituted. */
static void check_cuts(const struct maker *m, const struct outcome *whole,
                       const struct outcome_job *job, struct hr_opt_settings *settings)
{
    for (uint32_t node = 0; node < m->graph->count; node++) {
        struct hr_plan plan;
        char name[128];

        settings->cuts = &node;
        settings->cut_count = 1;
        if (job->options.on_error == HR_ON_ERROR_SUBSTITUTE ||
            hr__plan_make(m->graph, settings, &plan, NULL) != HR_OK)
            continue;
        cuts++;
        snprintf(name, sizeof name, "cut after %s", m->graph->nodes[node].name);
        check_plan(m, whole, *job, &plan, HR_GRAPH_YAML, name);
        hr__plan_finish(&plan);
    }
}

static void
check_plans(struct maker *m, const struct outcome *whole, const struct outcome_job *job)
{
    struct hr_opt_settings settings = {.threads = (int)below(m, 4) - 1,
                                       .cpus = 2,
                                       .ordered = true,
                                       .fuse = below(m, 2) == 0};
    struct hr_plan plan;

    if (hr__plan_make(m->graph, &settings, &plan, NULL) != HR_OK) {
        CHECK(whole->batches == 0 && whole->code != HR_ERR_END);
        return;
    }
    check_plan(m, whole, *job, &plan, below(m, 2) == 0 ? HR_GRAPH_YAML : HR_GRAPH_JSON,
               "plan saved and loaded");
    hr__plan_finish(&plan);
    check_cuts(m, whole, job, &settings);
}

static void check_graph(struct maker *m, uint64_t seed)
{
    struct outcome_job job = outcome_job_text(m->text);
    struct outcome *whole;
    uint64_t batches;

    job.options.seed = seed;
    job.options.epochs = 1 + (int64_t)below(m, 2);
    job.options.on_error = (enum hr_on_error)below(m, 3);
    job.options.errors_max = 1000000;
    job.states = true;
    whole = outcome_run(&job);
    batches = whole->batches;
    job.states = false;
    outcome_job_threads(&job, 1 + (int)below(m, 4));
    check_same(m, whole, &job, 0, "threads");
    job.options.fuse = false;
    check_same(m, whole, &job, 0, "every node alone");
    job.options.fuse = true;
    hr__isa_limit(HR_ISA_C);
    check_same(m, whole, &job, 0, "plain C");
    hr__isa_limit(HR_ISA_AVX512);
    check_plans(m, whole, &job);
    for (int i = 0; i < 3 && batches > 0; i++) {
        uint64_t at = below(m, batches);

        job.options.state = whole->states[at];
        outcome_job_threads(&job, (int)below(m, 3));
        check_same(m, whole, &job, at + 1, "restarted");
    }
    outcome_free(whole);
}

static uint64_t from_environment(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);

    return text != NULL ? strtoull(text, NULL, 0) : fallback;
}

TEST(random_graphs_give_the_same_bytes_whatever_runs_them)
{
    const char *photos = photos_good();
    static struct maker m;
    uint64_t one = from_environment("HEADRACE_TEST_SEED", UINT64_MAX);
    uint64_t first = one != UINT64_MAX ? one : 0;
    uint64_t count =
        one != UINT64_MAX ? 1 : from_environment("HEADRACE_TEST_GRAPHS", GRAPHS);

    for (uint64_t seed = first; seed < first + count; seed++) {
        make_graph(&m, seed, photos);
        printf("%s", one != UINT64_MAX ? m.text : "");
        printf("# HEADRACE_TEST_SEED=%llu\n", (unsigned long long)seed);
        check_graph(&m, seed);
        hr_graph_unref(m.graph);
    }
    printf("# %zu plans with a cut\n", cuts);
}
