/*
 * graph/plan_test.c - plans as text: every member is printed, read and compared.
 */
#include "graph/plan_items.h"

#include <stdlib.h>

#include "core/str.h"
#include "opt/opt.h"
#include "tests/support/check.h"
#include "tests/support/outcome.h"

#define GRAPH                                                                            \
    "headrace: 1\npipeline:\n  - source.range: {n: 50}\n"                                \
    "  - record.filter: {expr: \"value % 3 != 1\"}\n  - batch.stack: {size: 8}\n"        \
    "  - batch.unbatch: {}\n  - debug.identity: {}\n  - batch.stack: {size: 3}\n"

static struct hr_graph *graph;
static struct hr_plan plan;

static void setup(void)
{
    struct hr_opt_settings settings = {.threads = 2, .ordered = true, .fuse = true};
    struct outcome_job job = outcome_job_text(GRAPH);

    graph = outcome_graph(&job, NULL);
    CHECK(graph != NULL);
    CHECK_OK(hr_graph_freeze(graph, NULL));
    CHECK_OK(hr__plan_make(graph, &settings, &plan, NULL));
}

static void finish(void)
{
    hr__plan_finish(&plan);
    hr_graph_unref(graph);
}

/* Reads the plan back from its own text, without a check. */
static struct hr_plan read_back(enum hr_graph_format format)
{
    struct hr_error error = {0};
    struct hr_plan read;
    struct hr_str text;

    hr__str_init(&text);
    hr__plan_print(&plan, format, &text);
    CHECK(hr__str_ok(&text));
    if (hr__plan_parse(graph, hr__str_text(&text), text.length,
                       format == HR_GRAPH_JSON ? "p.json" : "p.yaml", &read,
                       &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s in\n%s", error.message, hr__str_text(&text));
    hr__str_finish(&text);
    return read;
}

static size_t bytes_of(const struct hr_plan_table *table)
{
    static const size_t sizes[] = {
        [HR_PLAN_INT] = 4,  [HR_PLAN_U32] = 4,  [HR_PLAN_U64] = 8,
        [HR_PLAN_BOOL] = 1, [HR_PLAN_WORD] = 4, [HR_PLAN_REASON] = HR_PLAN_REASON_MAX};
    size_t bytes = 0;

    for (size_t i = 0; i < table->count; i++)
        bytes += sizes[table->items[i].type];
    return bytes;
}

/* What is left is padding, less than two words. */
TEST(the_tables_name_every_member_of_the_memory_of_a_plan)
{
    CHECK(sizeof(struct hr_plan_memory) - bytes_of(&hr__plan_memory) < 16);
    CHECK(sizeof(struct hr_plan_stage_memory) - bytes_of(&hr__plan_stage_memory) < 16);
}

/* Changes a member such that its value is another legal one. */
static void change(const struct hr_plan_item *item, void *object)
{
    int64_t value;

    if (item->type == HR_PLAN_REASON) {
        snprintf(hr__plan_item_text(item, object), HR_PLAN_REASON_MAX, "%s",
                 "because: \"x\", 'y'\n- \xc3\xa4 # no");
        return;
    }
    value = hr__plan_item_get(item, object);
    hr__plan_item_set(item, object, value < item->max ? value + 1 : item->min);
}

static void check_table(const struct hr_plan_table *table, void *object)
{
    for (size_t i = 0; i < table->count; i++) {
        struct hr_plan before = read_back(HR_GRAPH_YAML), yaml, json;

        CHECK(hr__plan_equal(&plan, &before));
        change(&table->items[i], object);
        yaml = read_back(HR_GRAPH_YAML);
        json = read_back(HR_GRAPH_JSON);
        if (hr__plan_equal(&plan, &before) || !hr__plan_equal(&plan, &yaml) ||
            !hr__plan_equal(&plan, &json))
            check_failed(__FILE__, __LINE__, "%s is lost", table->items[i].key);
        hr__plan_finish(&before);
        hr__plan_finish(&yaml);
        hr__plan_finish(&json);
    }
}

TEST(every_member_is_printed_read_and_compared)
{
    setup();
    CHECK_EQ_INT(plan.stage_count, 3);
    check_table(&hr__plan_top, &plan);
    check_table(&hr__plan_memory, &plan.memory);
    for (size_t i = 0; i < plan.stage_count; i++) {
        check_table(&hr__plan_stage, &plan.stages[i]);
        check_table(&hr__plan_stage_memory, &plan.stages[i].memory);
        if (plan.stages[i].expand != HR_NO_NODE)
            check_table(&hr__plan_expand, &plan.stages[i]);
        for (size_t k = 0; k < plan.stages[i].step_count; k++)
            check_table(&hr__plan_step, &plan.stages[i].steps[k]);
    }
    finish();
}

TEST(nodes_and_their_order_are_compared)
{
    struct hr_plan read;
    struct hr_plan_step swapped;

    setup();
    read = read_back(HR_GRAPH_YAML);
    swapped = read.stages[0].steps[0];
    read.stages[0].steps[0] = read.stages[0].steps[1];
    read.stages[0].steps[1] = swapped;
    CHECK(!hr__plan_equal(&plan, &read));
    hr__plan_finish(&read);
    read = read_back(HR_GRAPH_JSON);
    read.stages[2].sequence_count = 0;
    CHECK(!hr__plan_equal(&plan, &read));
    hr__plan_finish(&read);
    finish();
}
