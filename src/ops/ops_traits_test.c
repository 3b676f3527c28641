/*
 * ops/ops_traits_test.c - traits are true, as whole runs and frozen graphs show. The
 * optimizer relies on traits, so each is checked. Those about pixels are in
 * pixel_traits_test.c.
 */
#include "ops/inputs_test_util.h"
#include "ops/ops_test_util.h"
#include "ops/traits_test_util.h"

#include "graph/graph.h"
#include "headrace/code.h"
#include "tests/support/outcome.h"

#define IDS 24 /* identities to draw with */

/* ---- graphs ---- */

/* The graph of the row, up to its op or without it. */
static const char *graph_text(const struct row *row, bool with_op)
{
    char text[3000];

    if (hr__op_find(row->op)->inputs_min > 1)
        snprintf(text, sizeof text,
                 "headrace: 1\npipeline:\n" PICTURES "    name: left\n" PICTURES
                 "    name: right\n%s%s%s%s%s%s",
                 with_op ? "  - " : "", with_op ? row->op : "", with_op ? ": " : "",
                 with_op ? row->params : "",
                 with_op ? "\n    inputs: [left, right]\n" : "",
                 with_op && hr__op_find(row->op)->kind == HR_OP_ZIP
                     ? "  - image.flip: {p: 1, field: a_image}\n"
                     : "");
    else
        snprintf(text, sizeof text, "headrace: 1\npipeline:\n%s%s%s%s%s%s",
                 row->before != NULL ? row->before : "", with_op ? "  - " : "",
                 with_op ? row->op : "", with_op ? ": " : "", with_op ? row->params : "",
                 with_op ? "\n" : "");
    return inputs_fill(text);
}

/* ---- code ---- */

static enum hr_err put_key(struct hr_code_call *call, struct hr_error *e)
{
    uint64_t key[2];
    void *memory;

    hr_code_key(call, key);
    HR_TRY(hr_code_room(call, 0, HR_I64, 0, NULL, &memory, e));
    memcpy(memory, key, sizeof(int64_t));
    return HR_OK;
}

static enum hr_err call_draw(void *user, struct hr_code_call *call, struct hr_error *e)
{
    (void)user;
    return put_key(call, e);
}

static enum hr_err call_child(void *user, struct hr_code_call *call, struct hr_error *e)
{
    (void)user;
    HR_TRY(hr_code_child(call, e));
    return put_key(call, e);
}

static enum hr_err call_keep(void *user, struct hr_code_call *call, struct hr_error *e)
{
    uint64_t key[2];

    (void)user;
    (void)e;
    hr_code_key(call, key);
    hr_code_keep(call, (key[0] & 1) != 0);
    return HR_OK;
}

static enum hr_err give_code(void *user, struct hr_graph *graph, struct hr_error *e)
{
    const struct hr_code draw = {.identity = "draw", .call = call_draw};
    const struct hr_code child = {.identity = "child", .call = call_child};
    const struct hr_code keep = {.identity = "keep", .call = call_keep};

    (void)user;
    HR_TRY(hr_graph_code(graph, "draw", &draw, e));
    HR_TRY(hr_graph_code(graph, "made", &draw, e));
    HR_TRY(hr_graph_code(graph, "child", &child, e));
    return hr_graph_code(graph, "keep", &keep, e);
}

/* ---- runs ---- */

static struct outcome_job job_of(const char *text)
{
    struct outcome_job job = outcome_job_text(text);

    job.options.on_error = HR_ON_ERROR_SKIP;
    job.options.errors_max = 1000;
    job.prepare = give_code;
    return job;
}

static struct outcome *
run(const struct row *row, bool with_op, uint64_t seed, int64_t epoch)
{
    struct outcome_job job = job_of(graph_text(row, with_op));
    struct outcome *o;

    job.options.seed = seed;
    job.options.epoch_first = epoch;
    o = outcome_run(&job);
    if (o->code != HR_ERR_END)
        check_failed(__FILE__, __LINE__, "%s: %s", row->op, o->error.message);
    CHECK(o->records > 0);
    return o;
}

static struct hr_graph *frozen(const char *text)
{
    struct outcome_job job = job_of(text);
    struct hr_error error = {0};
    struct hr_graph *graph = outcome_graph(&job, &error);

    if (graph == NULL || hr_graph_freeze(graph, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s in\n%s", error.message, text);
    return graph;
}

TEST(every_op_has_a_row)
{
    size_t count, row = 0;
    const struct hr_op *const *ops = hr__op_list(&count);

    for (size_t i = 0; i < count; i++) {
        CHECK(row < ROWS);
        CHECK_EQ_STR(ops[i]->name, rows[row].op);
        while (row < ROWS && strcmp(ops[i]->name, rows[row].op) == 0)
            row++;
    }
    CHECK_EQ_INT(row, ROWS);
}

/* ---- by whole runs ---- */

/* Whether the row gives other bytes with another seed and epoch. */
static bool draws(const struct row *row)
{
    struct outcome *first = run(row, true, 1, 0), *again = run(row, true, 1, 0);
    bool differs = false;

    outcome_check_same(first, again, 0, row->op);
    for (uint64_t seed = 1; seed <= IDS; seed++) {
        struct outcome *other = run(row, true, seed, (int64_t)seed % 3);

        differs = differs || outcome_difference(first, other, 0) != NULL;
        outcome_free(other);
    }
    outcome_free(first);
    outcome_free(again);
    return differs;
}

TEST(pure_ops_give_the_same_whatever_the_seed_and_the_epoch_and_random_ones_do_not)
{
    EACH_OP(row, op)
    {
        bool random = (op->traits & HR_TRAIT_RANDOM) != 0, differs = false;

        CHECK(((op->traits & HR_TRAIT_PURE) != 0) != random);
        for (const struct row *r = row; r < rows + ROWS && strcmp(r->op, row->op) == 0;
             r++)
            differs = draws(r) || differs;
        if (differs != random)
            check_failed(__FILE__, __LINE__, "%s is declared %s, and is not", row->op,
                         random ? "random" : "pure");
    }
}

/* Bytes that the op adds; negative if it removes some. */
static int64_t bytes_added(const struct row *row)
{
    struct outcome *with = run(row, true, 1, 0), *without = run(row, false, 1, 0);
    int64_t added = (int64_t)(with->stats.bytes - without->stats.bytes);

    outcome_free(with);
    outcome_free(without);
    return added;
}

TEST(ops_shrink_or_grow_where_they_declare_it)
{
    EACH_OP(row, op)
    {
        int64_t added;

        if ((op->traits & (HR_TRAIT_SHRINKS | HR_TRAIT_GROWS)) == 0)
            continue;
        added = bytes_added(row);
        if ((added < 0) != ((op->traits & HR_TRAIT_SHRINKS) != 0) ||
            (added > 0) != ((op->traits & HR_TRAIT_GROWS) != 0))
            check_failed(__FILE__, __LINE__, "%s adds %lld bytes", row->op,
                         (long long)added);
    }
}

TEST(identities_change_nothing)
{
    EACH(row, op)
    {
        struct outcome *with, *without;

        if ((op->traits & HR_TRAIT_IDENTITY) == 0)
            continue;
        with = run(row, true, 1, 0);
        without = run(row, false, 1, 0);
        outcome_check_same(without, with, 0, row->op);
        outcome_free(with);
        outcome_free(without);
    }
}

/* Each of 24 numbers goes to one rank. */
TEST(ops_that_shard_give_each_record_to_one_rank)
{
    EACH(row, op)
    {
        int seen[24] = {0};

        if ((op->traits & HR_TRAIT_SHARDS) == 0)
            continue;
        CHECK_EQ_INT(op->kind, HR_OP_ORDER);
        for (int rank = 0; rank < 3; rank++) {
            struct outcome_job job;
            struct outcome *o;
            char text[400];

            snprintf(text, sizeof text,
                     "headrace: 1\npipeline:\n" NUMBERS "  - %s: {rank: %d, world: 3}\n"
                     "  - batch.stack: {size: 24}\n",
                     op->name, rank);
            job = job_of(text);
            job.first = true;
            o = outcome_run(&job);
            CHECK_EQ_INT(o->batches, 1);
            for (int64_t i = 0; i < o->sizes[0]; i++) {
                struct hr_field_view view;

                CHECK_OK(hr_batch_find(o->first, "value", &view));
                seen[((const int64_t *)view.data)[i]]++;
            }
            outcome_free(o);
        }
        for (int i = 0; i < 24; i++)
            CHECK_EQ_INT(seen[i], 1);
    }
}

/* ---- by frozen graphs ---- */

TEST(only_debug_ops_are_for_tests)
{
    EACH(row, op)
    CHECK(((op->traits & HR_TRAIT_TEST_ONLY) != 0) ==
          (strncmp(row->op, "debug.", 6) == 0));
}

TEST(ops_take_batches_where_they_say_so)
{
    EACH(row, op)
    {
        struct outcome_job job;
        struct hr_error error = {0};
        struct hr_graph *graph;
        char text[1000];
        bool refused;

        if (op->kind == HR_OP_SOURCE || op->kind == HR_OP_ZIP ||
            op->kind == HR_OP_MERGE || op->kind == HR_OP_EXPAND)
            continue;
        snprintf(text, sizeof text, "headrace: 1\npipeline:\n" BATCHES "  - %s: %s\n",
                 row->op, row->params);
        job = job_of(inputs_fill(text));
        graph = outcome_graph(&job, &error);
        CHECK(graph != NULL);
        refused = hr_graph_freeze(graph, &error) != HR_OK &&
                  (strstr(error.message, "works on single records") != NULL ||
                   strstr(error.message, "selects records by number") != NULL);
        if (refused == ((op->traits & HR_TRAIT_BATCHED) != 0))
            check_failed(__FILE__, __LINE__, "%s after a batch: \"%s\"", row->op,
                         error.message);
        hr_graph_unref(graph);
    }
}

/* Both traits concern fields that keep their names; ops without them must not change
 * either. */
TEST(ops_change_dtypes_and_layouts_where_they_say_so)
{
    EACH(row, op)
    {
        bool dtype = false, layout = false;
        struct hr_graph *graph;
        struct hr_graph_node *n;

        if (op->kind != HR_OP_MAP && op->kind != HR_OP_FILTER)
            continue;
        graph = frozen(graph_text(row, true));
        n = &graph->nodes[graph->count - 1];
        for (size_t i = 0; i < n->schema.count; i++) {
            const struct hr_field *after = &n->schema.fields[i];
            const struct hr_field *before =
                hr__schema_find(&graph->nodes[n->inputs[0]].schema, after->name);

            dtype = dtype || (before != NULL && before->dtype != after->dtype);
            layout = layout || (before != NULL && before->layout != after->layout);
        }
        if (dtype != ((op->traits & HR_TRAIT_DTYPE) != 0) ||
            layout != ((op->traits & HR_TRAIT_LAYOUT) != 0))
            check_failed(__FILE__, __LINE__, "%s: dtype %s, layout %s", row->op,
                         dtype ? "changes" : "stays", layout ? "changes" : "stays");
        hr_graph_unref(graph);
    }
}

static bool
is_value_of(const struct hr_graph *graph, const struct hr_graph_node *n, int slot)
{
    for (size_t i = 0; i < n->alias_count; i++)
        if (n->aliases[i].to == slot)
            return true;
    for (size_t k = 0; k < n->input_count; k++)
        for (size_t i = 0; i < graph->nodes[n->inputs[k]].schema.count; i++)
            if (graph->nodes[n->inputs[k]].schema.fields[i].slot == slot)
                return true;
    return false;
}

/* No value is made: every output field is an input field. */
TEST(ops_that_copy_nothing_pass_on_their_inputs_values)
{
    EACH(row, op)
    {
        struct hr_graph *graph;
        struct hr_graph_node *n;

        if ((op->traits & HR_TRAIT_ZERO_COPY) == 0 || op->kind == HR_OP_SOURCE ||
            op->kind == HR_OP_EXPAND)
            continue;
        graph = frozen(graph_text(row, true));
        n = &graph->nodes[graph->count - (op->kind == HR_OP_ZIP ? 2 : 1)];
        CHECK(n->op == op && n->schema.count > 0);
        for (size_t i = 0; i < n->schema.count; i++)
            if (!is_value_of(graph, n, n->schema.fields[i].slot))
                check_failed(__FILE__, __LINE__, "%s makes '%s'", row->op,
                             n->schema.fields[i].name);
        hr_graph_unref(graph);
    }
}

/* The flip after the zip edits the description that its decode began. */
TEST(a_join_that_defers_keeps_descriptions)
{
    EACH(row, op)
    {
        struct hr_graph *graph;

        if (op->kind != HR_OP_ZIP || (op->traits & HR_TRAIT_DEFERS) == 0)
            continue;
        graph = frozen(graph_text(row, true));
        CHECK_EQ_STR(graph->nodes[graph->nodes[graph->count - 1].group].name, "left");
        hr_graph_unref(graph);
    }
}
