/*
 * graph/graph_keys_test.c - finding the source of a key takes time in proportion to the
 * nodes of the graph, and reading a key none at all: counted in questions to sources.
 */
#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

#include "core/str.h"
#include "tests/support/check.h"

/* ---- ops ---- */

static int named; /* calls of key_name */
static int read;  /* keys */

struct source {
    int64_t n;
    const char *key;
};

static const struct hr_param source_params[] = {
    HR_P_INT(struct source, n, .required = true, HR_RANGE(0, 1e9), .help = "records"),
    HR_P_STRING(struct source, key, .help = "the only key"),
};

static uint64_t source_count(const void *params, const void *state)
{
    (void)state;
    return (uint64_t)((const struct source *)params)->n;
}

static const char *source_key_name(const void *params, const void *state, size_t i)
{
    (void)state;
    named++;
    return i == 0 ? ((const struct source *)params)->key : NULL;
}

static enum hr_err source_key(const void *params, const void *state, size_t i,
                              uint64_t index, struct hr_str *out, struct hr_error *error)
{
    (void)params, (void)state, (void)error;
    CHECK_EQ_INT(i, 0);
    hr__str_addf(out, "%llu", (unsigned long long)index);
    read++;
    return HR_OK;
}

static const struct hr_op op_source = {
    .name = "test.source",
    .version = 1,
    .kind = HR_OP_SOURCE,
    HR_PARAMS(source_params, struct source),
    .source = {.count = source_count, .key_name = source_key_name, .key = source_key},
};

struct by {
    const char *by;
};

static const struct hr_param by_params[] = {
    HR_P_STRING(struct by, by, .required = true, .help = "the key"),
};

static const char *by_of(const void *params, const char **ret_param)
{
    *ret_param = "by";
    return ((const struct by *)params)->by;
}

/* Reads all keys. */
static enum hr_err choose_open(const struct hr_open *open, void **ret_state)
{
    struct hr_str key, expected;
    enum hr_err code = HR_OK;

    hr__str_init(&key);
    hr__str_init(&expected);
    for (uint64_t i = 0; code == HR_OK && i < open->keys[0]->count; i++) {
        code = open->keys[0]->get(open->keys[0], i, &key, open->error);
        hr__str_clear(&expected);
        hr__str_addf(&expected, "%llu", (unsigned long long)i);
        if (code == HR_OK)
            CHECK_EQ_STR(hr__str_text(&key), hr__str_text(&expected));
    }
    hr__str_finish(&key);
    hr__str_finish(&expected);
    *ret_state = NULL;
    return code;
}

static void choose_close(void *state)
{
    (void)state;
}

static uint64_t choose_count(const void *params, const void *state, uint64_t n)
{
    (void)params, (void)state;
    return n;
}

static const struct hr_op op_choose = {
    .name = "test.choose",
    .version = 1,
    .kind = HR_OP_ORDER,
    HR_PARAMS(by_params, struct by),
    .open = choose_open,
    .close = choose_close,
    .order = {.count = choose_count, .by = by_of},
};

struct none {
    char unused;
};

static const struct hr_op op_zip = {
    .name = "test.zip",
    .version = 1,
    .kind = HR_OP_ZIP,
    .params_size = sizeof(struct none),
    .inputs_min = 2,
    .inputs_max = 8,
};

const struct hr_op *const *hr__op_list(size_t *ret_count)
{
    static const struct hr_op *const list[] = {&op_choose, &op_source, &op_zip};

    *ret_count = sizeof list / sizeof list[0];
    return list;
}

/* ---- tests ---- */

/* Freezes it and counts questions. */
static enum hr_err count_questions(const struct hr_str *text, struct hr_error *error)
{
    struct hr_graph *graph = NULL;
    enum hr_err code;

    CHECK(hr__str_ok(text));
    CHECK_OK(hr_graph_parse(hr__str_text(text), text->length, "g.yaml", NULL, 0, &graph,
                            error));
    named = read = 0;
    code = hr_graph_freeze(graph, error);
    hr_graph_unref(graph);
    return code;
}

static void add_source(struct hr_str *text, const char *name, int records, bool has_key)
{
    hr__str_addf(text, "  - test.source: {n: %d%s}\n    name: %s\n    inputs: []\n",
                 records, has_key ? ", key: k" : "", name);
}

/* Zips within zips, `depth` of them; the key is that of the innermost source, or of the
 * outermost one. */
static int count_deep(int depth, int records, bool innermost)
{
    struct hr_str text;
    struct hr_error error = {0};

    hr__str_init(&text);
    hr__str_add(&text, "headrace: 1\npipeline:\n");
    add_source(&text, "z0", records, innermost);
    for (int i = 1; i <= depth; i++) {
        char name[16];

        snprintf(name, sizeof name, "s%d", i);
        add_source(&text, name, records, !innermost && i == depth);
        hr__str_addf(&text, "  - test.zip: {}\n    name: z%d\n    inputs: [z%d, %s]\n", i,
                     i - 1, name);
    }
    hr__str_addf(&text, "  - test.choose: {by: k}\n    inputs: [z%d]\n", depth);
    CHECK_OK(count_questions(&text, &error));
    CHECK_EQ_INT(read, records);
    hr__str_finish(&text);
    return named;
}

TEST(questions_grow_with_sources_and_not_with_records)
{
    for (int innermost = 0; innermost <= 1; innermost++) {
        int some = count_deep(20, 3, innermost), many = count_deep(200, 3, innermost);

        CHECK(some > 0);
        CHECK_EQ_INT(count_deep(20, 500, innermost), some);
        CHECK(many <= 10 * some);
    }
}

/* Each of the 60 zips joins the one before it with itself, so that 2^60 ways lead to the
 * source. */
static void add_diamonds(struct hr_str *text, bool has_key)
{
    hr__str_init(text);
    hr__str_add(text, "headrace: 1\npipeline:\n");
    add_source(text, "z0", 5, has_key);
    for (int i = 1; i <= 60; i++)
        hr__str_addf(text, "  - test.zip: {}\n    name: z%d\n    inputs: [z%d, z%d]\n", i,
                     i - 1, i - 1);
    hr__str_add(text, "  - test.choose: {by: k}\n    inputs: [z60]\n");
}

TEST(a_source_that_is_reached_in_many_ways_is_asked_once)
{
    struct hr_error error = {0};
    struct hr_str text;
    int once;

    add_diamonds(&text, true);
    CHECK_OK(count_questions(&text, &error));
    once = named;
    CHECK(once <= 4);
    hr__str_finish(&text);
    add_diamonds(&text, false);
    CHECK_ERR(HR_ERR_ARGUMENT, count_questions(&text, &error));
    CHECK_HAS(error.message, "before a record of 'z0' is read, its \"k\" is not known");
    CHECK(named <= once + 4);
    hr__str_finish(&text);
}
