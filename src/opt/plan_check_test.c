/*
 * opt/plan_check_test.c - plans that somebody edited: those that the graph allows give
 * the same bytes, all others are refused with the place of what is wrong.
 */
#include "tests/support/check.h"
#include "tests/support/outcome.h"

#include <stdlib.h>

#include "core/rng.h"

#define CHAIN                                                                            \
    "headrace: 1\n"                                                                      \
    "pipeline:\n"                                                                        \
    "  - source.range: {n: 50}\n"                                                        \
    "  - debug.identity: {}\n"                                                           \
    "    name: first\n"                                                                  \
    "  - debug.identity: {}\n"                                                           \
    "    name: second\n"                                                                 \
    "  - record.filter: {expr: \"value % 3 != 1\"}\n"                                    \
    "    name: odd\n"                                                                    \
    "  - batch.stack: {size: 8}\n"

#define DIRECT                                                                           \
    "headrace: 1\n"                                                                      \
    "pipeline:\n"                                                                        \
    "  - source.range: {n: 50}\n"                                                        \
    "  - order.shuffle: {}\n"                                                            \
    "  - batch.stack: {size: 8}\n"

#define FORK                                                                             \
    "headrace: 1\n"                                                                      \
    "pipeline:\n"                                                                        \
    "  - source.range: {n: 50}\n"                                                        \
    "  - debug.identity: {}\n"                                                           \
    "    name: left\n"                                                                   \
    "    inputs: [source.range]\n"                                                       \
    "  - debug.identity: {}\n"                                                           \
    "    name: right\n"                                                                  \
    "    inputs: [source.range]\n"                                                       \
    "  - flow.zip: {prefix: [l_, r_]}\n"                                                 \
    "    inputs: [left, right]\n"                                                        \
    "  - batch.stack: {size: 8}\n"

/* The plan of two threads with the n-th occurrence of `from` replaced by `to`; free() it.
 */
static char *edited(const char *graph_text, const char *from, int nth, const char *to)
{
    struct outcome_job job = outcome_job_text(graph_text);
    struct hr_graph *graph = outcome_graph(&job, NULL);
    char *text = NULL, *at, *made;
    size_t room;

    outcome_job_threads(&job, 2);
    CHECK(graph != NULL);
    CHECK_OK(hr_graph_plan(graph, &job.options, HR_GRAPH_YAML, &text, NULL));
    at = strstr(text, from);
    for (; at != NULL && nth > 1; nth--)
        at = strstr(at + 1, from);
    if (at == NULL)
        check_failed(__FILE__, __LINE__, "there is no \"%s\" in\n%s", from, text);
    room = strlen(text) + strlen(to) + 1;
    made = malloc(room);
    CHECK(made != NULL);
    snprintf(made, room, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    hr_free(text);
    hr_graph_unref(graph);
    return made;
}

struct edit {
    const char *graph, *from;
    int nth;
    const char *to;
    const char *words; /* in the message */
};

/* The line on which the first difference between the two lies. */
static int line_of(const char *text, const char *edited_text)
{
    int line = 1;

    for (; *text == *edited_text && *text != '\0'; text++, edited_text++)
        line += *text == '\n';
    return line;
}

/* `there`: the place is not after the edit. */
static void check_refused(const struct edit *e, bool there)
{
    struct outcome_job job = outcome_job_text(e->graph);
    char *plan = edited(e->graph, e->from, e->nth, e->to);
    char *as_it_was = edited(e->graph, "headrace_plan", 1, "headrace_plan");
    char place[64];
    struct outcome *o;

    job.options.plan = plan;
    job.options.plan_name = "my.plan.yaml";
    o = outcome_run(&job);
    if (o->code == HR_ERR_END || strstr(o->error.message, e->words) == NULL)
        check_failed(__FILE__, __LINE__, "%s -> %s: \"%s\" without \"%s\" in\n%s",
                     e->from, e->to, o->error.message, e->words, plan);
    CHECK_EQ_STR(o->error.file, "my.plan.yaml");
    CHECK(o->error.line > 0 && o->error.column > 0);
    CHECK(!there || o->error.line <= line_of(as_it_was, plan));
    snprintf(place, sizeof place, "my.plan.yaml:%d:%d: ", o->error.line, o->error.column);
    CHECK_HAS(o->error.message, place);
    outcome_free(o);
    free(as_it_was);
    free(plan);
}

static const char cut[] = "        reason: \"a cut\"\n"
                          "    expand: null\n"
                          "    sequence: []\n"
                          "  - direct: false\n"
                          "    parallelism: 1\n"
                          "    chunk_ns: 50000\n"
                          "    chunk_records: 4096\n"
                          "    chunk_bytes: 0\n"
                          "    request_ns: 0\n"
                          "    overlap_ns: 0\n"
                          "    memory:\n"
                          "      block_records: 4\n"
                          "      block_count: 3\n"
                          "      block_bytes: 4096\n"
                          "      queue_records: 3\n"
                          "      queue_bytes: 1000\n"
                          "      held_bytes: 0\n"
                          "    steps:\n";
#define REASON "        reason: \"runs in the same thread on the same record\"\n"

TEST(edited_plans_that_the_graph_allows_give_the_same_bytes)
{
    const struct edit edits[] = {
        {CHAIN, "threads: 2",          1, "threads: 5",                ""},
        {CHAIN, "threads: 2",          1, "threads: 0",                ""},
        {CHAIN, "ordered: true",       1, "ordered: true # as it was", ""},
        {CHAIN, "block_records: 256",  1, "block_records: 1",          ""},
        {CHAIN, "block_count: 4",      1, "block_count: 1",            ""},
        {CHAIN, "chunk_records: 4096", 1, "chunk_records: 1",          ""},
        {CHAIN, "chunk_ns: 50000",     1, "chunk_ns: 1",               ""},
        {CHAIN, "parallelism: 2",      1, "parallelism: 1",            ""},
        {CHAIN, "batches_ahead: 63",   1, "batches_ahead: 1",          ""},
        {CHAIN, "help_ns: 300000",     1, "help_ns: 0",                ""},
        {CHAIN, "wake_ns: 300000",     1, "wake_ns: 0",                ""},
        {CHAIN, REASON,                1, cut,                         ""},
        {CHAIN, REASON,                2, cut,                         ""},
        {CHAIN, REASON,                3, cut,                         ""},
        {FORK,  REASON,                4, "",                          ""},
    };

    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        const struct edit *e = &edits[i];
        struct outcome_job job = outcome_job_with(e->graph, 0, NULL);
        struct outcome *whole = outcome_run(&job);
        char *plan = edited(e->graph, e->from, e->nth, e->to);

        CHECK_ERR(HR_ERR_END, whole->code);
        job.options.plan = plan;
        for (int k = 0; k < 5; k++) {
            struct outcome *other = outcome_run(&job);

            outcome_check_same(whole, other, 0, e->to);
            outcome_free(other);
        }
        outcome_free(whole);
        free(plan);
    }
}

TEST(a_plan_that_is_malformed_is_refused_with_its_place)
{
    const struct edit edits[] = {
        {CHAIN, "headrace_plan: 1",               1, "plan: 1",          "this is no plan"               },
        {CHAIN, "headrace_plan: 1",               1, "headrace_plan: 2", "format version 2"              },
        {CHAIN, "graph: ",                        1, "graph: f00",       "for another graph"             },
        {CHAIN, "threads: 2",                     1, "threads: many",    "a whole number"                },
        {CHAIN, "threads: 2",                     1, "threads: -1",      "0 to 4096"                     },
        {CHAIN, "threads: 2\n",                   1, "",                 "the key \"threads\" is missing"},
        {CHAIN, "    expand: null\n",             1, "",                 "the key \"expand\" is missing" },
        {CHAIN, "parallelism:",                   1, "paralelism:",      "did you mean \"parallelism\""  },
        {CHAIN, "variant: threads",               2, "variant: gpu",     "one of threads, inline"        },
        {CHAIN, "ordered: true",                  1, "ordered: perhaps", "true or false"                 },
        {CHAIN, "caches: []",                     1, "caches: [odd]",    "no caches yet"                 },
        {CHAIN, "node: first",                    1, "node: frist",      "frist"                         },
        {CHAIN, "sequence:\n      - batch.stack", 1, "sequence: odd",    "must be a list"                },
        {CHAIN, "chunk_ns: 50000",                1, "chunk_ns: 0",      "\"chunk_ns\" must be 1 to"     },
        {CHAIN, "block_count: 4",                 1, "block_count: 1e3", "a whole number"                },
    };

    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++)
        check_refused(&edits[i], true);
}

TEST(a_plan_that_the_graph_does_not_allow_is_refused_with_its_place)
{
    const struct edit edits[] = {
        {CHAIN,  "node: second",                   1, "node: first",                              "'first' is in the plan twice"     },
        {CHAIN,  "node: first",                    1, "node: odd",                                "has not run by then"              },
        {CHAIN,  "sequence:\n      - batch.stack", 1, "sequence: []",
         "'batch.stack' is missing"                                                                                                  },
        {CHAIN,  "expand: null",                   1, "expand: odd\n    expand_variant: threads",
         "belongs under \"steps\""                                                                                                   },
        {CHAIN,  "sequence:\n      - batch.stack", 1, "sequence: [odd]",
         "belongs under \"steps\""                                                                                                   },
        {CHAIN,  "group: second",                  1, "group: first",                             "the group of 'second' is 'second'"},
        {CHAIN,  "made_after: false",              3, "made_after: true",                         "made_after"                       },
        {CHAIN,  "direct: false",                  1, "direct: true",                             "\"direct\" is false"              },
        {CHAIN,  "variant: threads",               2, "variant: processes",                       "must be at least 1"               },
        {FORK,   "variant: threads",               4, "variant: processes",                       "what only this process has"       },
        {CHAIN,  "variant: threads",               2, "variant: remote",                          "no remote workers"                },
        {CHAIN,  "queue_records: 0",               1, "queue_records: 9",                         "no queue leads to stage 1"        },
        {CHAIN,  "request_ns: 0",                  1, "request_ns: 9",                            "\"request_ns\" must be 0"         },
        {CHAIN,  "budget: 0",                      1, "budget: 1000",                             "more than its budget"             },
        {CHAIN,  "block_records: 256",             1, "block_records: 16777216",
         "must be at most 16777216"                                                                                                  },
        {DIRECT, "block_records: 8",               1, "block_records: 9",                         "must be 8, not 9"                 },
        {DIRECT, "block_count: 64",                1, "block_count: 9",                           "\"batches_ahead\", 64, not 9"     },
        {DIRECT, "sequence:\n      - batch.stack", 1,
         "sequence: [order.shuffle, batch.stack]",                                                "part of no stage"                 },
        {FORK,   REASON,                           2, cut,                                        "a cut is legal where"             },
        {FORK,   REASON,                           3, cut,                                        "a cut is legal where"             },
    };

    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++)
        check_refused(&edits[i], false);
}

/* ---- any edit ---- */

struct editor {
    struct hr_rng rng;
    char lines[256][200];
    size_t count;
};

static size_t below(struct editor *e, size_t n)
{
    return (size_t)hr__rng_below(&e->rng, n);
}

static void take_lines(struct editor *e, const char *text)
{
    for (e->count = 0; *text != '\0'; e->count++) {
        size_t length = strcspn(text, "\n");

        CHECK(e->count < 250 && length < sizeof e->lines[0]);
        snprintf(e->lines[e->count], sizeof e->lines[0], "%.*s", (int)length, text);
        text += length + (text[length] == '\n');
    }
}

/* Another value in the place of the one on the line. */
static void change_value(struct editor *e, char *line)
{
    static const char *const values[] = {"0",     "1",    "2",       "7",     "-3",
                                         "true",  "null", "second",  "odd",   "1000000",
                                         "false", "[]",   "threads", "inline"};
    char *colon = strchr(line, ':');

    if (colon != NULL && colon[1] != '\0')
        snprintf(colon, sizeof e->lines[0] - (size_t)(colon - line), ": %s",
                 values[below(e, sizeof values / sizeof values[0])]);
}

/* A value, or a line that goes, comes twice or changes its place. */
static void edit(struct editor *e)
{
    size_t at = below(e, e->count), other = below(e, e->count);
    char line[200];

    memcpy(line, e->lines[at], sizeof line);
    switch (below(e, 6)) {
    case 0:
        memmove(e->lines[at], e->lines[at + 1], (e->count - at - 1) * sizeof line);
        e->count--;
        break;
    case 1:
        memmove(e->lines[at + 1], e->lines[at], (e->count - at) * sizeof line);
        e->count++;
        break;
    case 2:
        memcpy(e->lines[at], e->lines[other], sizeof line);
        memcpy(e->lines[other], line, sizeof line);
        break;
    default:
        change_value(e, e->lines[at]);
        break;
    }
}

static char *text_of(const struct editor *e)
{
    size_t room = (e->count + 1) * sizeof e->lines[0], length = 0;
    char *text = calloc(room, 1);

    CHECK(text != NULL);
    for (size_t i = 0; i < e->count; i++)
        length += (size_t)snprintf(text + length, room - length, "%s\n", e->lines[i]);
    return text;
}

static void check_edited(struct editor *e, const char *graph, const struct outcome *whole,
                         size_t *ran)
{
    struct outcome_job job = outcome_job_text(graph);
    char *plan = text_of(e);
    struct outcome *o;

    job.options.plan = plan;
    o = outcome_run(&job);
    *ran += o->code == HR_ERR_END;
    if (o->code == HR_ERR_END && strstr(plan, "ordered: true") != NULL &&
        outcome_difference(whole, o, 0) != NULL)
        check_failed(__FILE__, __LINE__, "%s, with\n%s", outcome_difference(whole, o, 0),
                     plan);
    if (o->code != HR_ERR_END && (o->error.line == 0 || o->batches > 0))
        check_failed(__FILE__, __LINE__, "\"%s\" without a place, or late, with\n%s",
                     o->error.message, plan);
    outcome_free(o);
    free(plan);
}

TEST(any_edited_plan_gives_the_same_bytes_or_is_refused_with_a_place)
{
    const char *const graphs[] = {CHAIN, DIRECT, FORK};
    uint64_t seed = check_seed();
    size_t ran = 0;

    for (uint64_t i = 0; i < 900; i++) {
        const char *graph = graphs[i % 3];
        struct outcome_job job = outcome_job_text(graph);
        struct outcome *whole = outcome_run(&job);
        char *plan = edited(graph, "threads: 2", 1, "threads: 2");
        static struct editor e;

        hr__rng_init(&e.rng, seed, 0, i);
        take_lines(&e, plan);
        for (size_t edits = 1 + below(&e, 2); edits > 0; edits--)
            edit(&e);
        check_edited(&e, graph, whole, &ran);
        free(plan);
        outcome_free(whole);
    }
    printf("# %zu of 900 ran\n", ran);
    CHECK(ran > 10);
}

TEST(substitutes_do_not_run_through_a_cut)
{
    struct outcome_job job = outcome_job_text(CHAIN);
    char *plan = edited(CHAIN, REASON, 2, cut);
    struct outcome *o;

    job.options.plan = plan;
    job.options.on_error = HR_ON_ERROR_SUBSTITUTE;
    o = outcome_run(&job);
    CHECK_ERR(HR_ERR_UNSUPPORTED, o->code);
    CHECK_HAS(o->error.message, "plan cuts a stage in two");
    outcome_free(o);
    free(plan);
}
