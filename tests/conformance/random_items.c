/*
 * tests/conformance/random_items.c - random graphs over all kinds of data: the rows that
 * each op has for the tests of its traits (ops/traits_test_util.h) begin them and follow.
 */
#include <stdio.h>
#include <string.h>

#include "ops/inputs_test_util.h"
#include "ops/traits_test_util.h"
#include "tests/conformance/random_graph.h"

#define add random_graph_add
#define keep random_graph_keep
#define below random_graph_below

/* Ops that other makers draw, or that only take time. */
static bool is_of_others(const struct hr_op *op)
{
    return op == NULL || op->code != NULL || op->inputs_min > 1 ||
           (op->traits & HR_TRAIT_TEST_ONLY) != 0;
}

static const struct row *any_row(struct random_graph *m)
{
    const struct row *row;

    do
        row = &rows[below(m, ROWS)];
    while (is_of_others(op_of(row)));
    return row;
}

/* A photo that is cut short. */
static void damage_inputs(void)
{
    static bool done;
    FILE *file;

    if (done)
        return;
    done = true;
    file = fopen(inputs_fill("${files}/b/4.jpg"), "w");
    CHECK(file != NULL);
    fputs("\xFF\xD8\xFF\xE0", file);
    CHECK_EQ_INT(fclose(file), 0);
}

/* Inputs are of few records. */
static void add_order(struct random_graph *m)
{
    static const char *const orders[] = {"order.repeat: {count: 3}", "order.shuffle: {}",
                                         "order.sample: {count: 9}",
                                         "order.shard: {rank: 1, world: 2}"};
    size_t length = m->length;

    for (uint64_t times = below(m, 3); times > 0; times--) {
        add(m, "  - %s\n", orders[below(m, 4)]);
        keep(m, length);
        length = m->length;
    }
}

/* The graph that leads to the row; its source is the first line. False if what the row
 * needs was refused. */
static bool begin(struct random_graph *m, const struct row *row)
{
    char source[200], params[200];
    const char *rest = "";
    size_t length;

    if (row->before != NULL) {
        snprintf(source, sizeof source, "%.*s", (int)strcspn(row->before, "\n"),
                 row->before);
        rest = row->before + strcspn(row->before, "\n") + 1;
    } else {
        snprintf(source, sizeof source, "  - %s: %s", row->op, row->params);
    }
    for (int take = 0; m->length == 0; take++) {
        if (take == 2)
            return false;
        add(m, "headrace: 1\npipeline:\n%s\n%s", inputs_fill(source),
            take > 0 ? "  - order.take: {count: 30}\n" : ""); /* there are too many */
        keep(m, 0);
    }
    add_order(m);
    length = m->length;
    add(m, "%s", inputs_fill(rest));
    if (row->before != NULL) {
        snprintf(params, sizeof params, "%s", row->params);
        add(m, "  - %s: %s\n", row->op, inputs_fill(params));
    }
    m->decodes = strstr(rest, "{mode: exact}") != NULL;
    return m->length == length || keep(m, length);
}

static void add_other(struct random_graph *m)
{
    static const char *const others[] = {
        "debug.identity: {}",
        "debug.fail: {probability: 0.1}",
        "order.shuffle: {window: 4}",
        "order.take: {count: 7}",
        "flow.cache: {random: freeze}",
        "flow.window: {size: 3, stride: 2, ragged: true, drop_last: false}",
        "batch.stack: {size: 3, ragged: true}",
        "batch.unbatch: {}",
        "record.flat: {fields: tokens}",
        "record.flat: {fields: words}",
    };

    add(m, "  - %s\n", others[below(m, sizeof others / sizeof others[0])]);
}

/* User code that reads all fields. */
static void add_code(struct random_graph *m)
{
    size_t length = m->length;

    add(m, "  - code.map: {code: look, outputs: [\"seen%zu: int64\"]}\n", m->codes);
    m->codes += keep(m, length);
}

/* A row that needs the same source. */
static bool add_relative(struct random_graph *m, const struct row *first)
{
    const struct row *row = any_row(m);
    size_t bytes;

    if (first->before == NULL || row->before == NULL)
        return false;
    bytes = strcspn(first->before, "\n");
    if (strncmp(row->before, first->before, bytes) != 0)
        return false;
    add(m, "  - %s: %s\n", row->op, inputs_fill(row->params));
    return true;
}

void random_graph_items(struct random_graph *m, uint64_t seed)
{
    const struct row *row;

    damage_inputs();
    *m = (struct random_graph){0};
    hr__rng_init(&m->rng, seed, 0, 2);
    do {
        m->length = 0;
        row = any_row(m);
    } while (!begin(m, row));
    for (uint64_t steps = below(m, 5), tries = 0; m->steps < 3 + steps && tries < 60;
         tries++) {
        size_t length = m->length;

        if (below(m, 4) == 0)
            add_other(m);
        else if (!add_relative(m, row))
            continue;
        keep(m, length);
    }
    if (below(m, 4) == 0)
        add_code(m);
    random_graph_batch(m);
    if (below(m, 8) == 0)
        add_code(m);
}
