/*
 * engine/state_test.c - states that other ranks and worlds resume, and hostile
 * states.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/str.h"
#include "headrace/engine.h"
#include "tests/support/check.h"

#define GRAPH(steps) "headrace: 1\npipeline:\n" steps
#define RANGE(n) "  - source.range: {n: " #n "}\n"
#define SHUFFLE "  - order.shuffle: {}\n"
#define BATCH(n) "  - batch.stack: {size: " #n "}\n"
#define DROP_THIRD "  - record.filter: {expr: \"value % 3 != 1\"}\n"
#define RECORDS 1003
#define WORLD_MAX 8

/* Which records were given, how often; the state of each rank of the last world. */
struct training {
    const char *text;
    enum hr_on_error on_error;
    int64_t records_max; /* of a whole run */
    int64_t seen[RECORDS];
    char *states[WORLD_MAX], *merged;
    int world;
};

static enum hr_err open_with(const struct training *t, struct hr_iter_options *options,
                             struct hr_iter **ret_iter, struct hr_error *error)
{
    struct hr_graph *graph = NULL;
    enum hr_err code;

    options->threads = 1;
    options->on_error = t->on_error;
    CHECK_OK(
        hr_graph_parse(t->text, strlen(t->text), "graph.yaml", NULL, 0, &graph, NULL));
    code = hr_iter_open(graph, options, ret_iter, error);
    hr_graph_unref(graph);
    return code;
}

static enum hr_err
open_rank(const struct training *t, int rank, int world, const char *state,
          struct hr_iter **ret_iter, struct hr_error *error)
{
    struct hr_iter_options options;

    hr_iter_options_init(&options);
    options.rank = rank;
    options.world = world;
    options.state = state;
    options.records_max = t->records_max;
    return open_with(t, &options, ret_iter, error);
}

static enum hr_err open_seed(const struct training *t, uint64_t seed, const char *state,
                             struct hr_iter **ret_iter, struct hr_error *error)
{
    struct hr_iter_options options;

    hr_iter_options_init(&options);
    options.seed = seed;
    options.state = state;
    return open_with(t, &options, ret_iter, error);
}

/* Each rank of a world resumes from the state, makes `steps` steps (-1: all) and saves.
 */
static void train(struct training *t, const char *state, int world, int64_t steps)
{
    char *states[WORLD_MAX] = {0};

    for (int rank = 0; rank < world; rank++) {
        struct hr_error error = {0};
        struct hr_iter *iter = NULL;
        struct hr_batch *batch;
        struct hr_field_view view;

        if (open_rank(t, rank, world, state, &iter, &error) != HR_OK)
            check_failed(__FILE__, __LINE__, "%s", error.message);
        for (int64_t i = 0; i != steps && hr_iter_next(iter, &batch, NULL) == HR_OK;
             i++) {
            CHECK_OK(hr_batch_field(batch, 0, &view));
            for (int64_t r = 0; r < view.dims[0]; r++)
                t->seen[((const int64_t *)view.data)[r]]++;
            hr_batch_unref(batch);
        }
        CHECK_OK(hr_iter_save(iter, &states[rank], NULL));
        hr_iter_close(iter);
    }
    for (int rank = 0; rank < WORLD_MAX; rank++) {
        hr_free(t->states[rank]);
        t->states[rank] = states[rank];
    }
    t->world = world;
}

static void merge(struct training *t)
{
    struct hr_error error = {0};
    char *merged = NULL;

    if (hr_state_merge((const char *const *)t->states, (size_t)t->world, &merged,
                       &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    hr_free(t->merged);
    t->merged = merged;
}

static void forget(struct training *t)
{
    for (int rank = 0; rank < WORLD_MAX; rank++)
        hr_free(t->states[rank]);
    hr_free(t->merged);
}

TEST(ranks_that_filter_hand_the_rest_to_any_world)
{
    struct training t = {.text = GRAPH(RANGE(1003) SHUFFLE DROP_THIRD BATCH(8))};
    static const int worlds[] = {2, 3, 8, 1, 5};

    train(&t, NULL, 1, 11);
    merge(&t);
    for (int i = 0; i < 5; i++) {
        train(&t, t.merged, worlds[i], i == 4 ? -1 : 5);
        merge(&t);
    }
    for (int i = 0; i < RECORDS; i++)
        CHECK_EQ_INT(t.seen[i], i % 3 != 1);
    forget(&t);
}

/* The second world ends before it has passed what was done in the first. */
TEST(records_done_ahead_are_remembered_over_several_worlds)
{
    struct training t = {.text = GRAPH(RANGE(1003) SHUFFLE DROP_THIRD BATCH(1))};

    train(&t, NULL, 8, 9);
    merge(&t);
    CHECK_HAS(t.merged, "\"done\":[[");
    train(&t, t.merged, 7, 1);
    merge(&t);
    CHECK_HAS(t.merged, "],[");
    train(&t, t.merged, 3, 2);
    merge(&t);
    train(&t, t.merged, 2, -1);
    for (int i = 0; i < RECORDS; i++)
        CHECK_EQ_INT(t.seen[i], i % 3 != 1);
    forget(&t);
}

/* It saves the state that it started from: a merged one, or one of another world. */
TEST(a_rank_that_made_no_step_yet_can_be_merged_with_others)
{
    static const char *const texts[] = {GRAPH(RANGE(1003) SHUFFLE DROP_THIRD BATCH(8)),
                                        GRAPH(RANGE(1003) SHUFFLE BATCH(8))};

    for (int at = 0; at < 2; at++) {
        struct training t = {.text = texts[at]};
        struct hr_error error = {0};
        const char *states[3];
        char *start, *merged = NULL;

        train(&t, NULL, 2, 5);
        merge(&t);
        start = at == 0 ? t.merged : t.states[1];
        if (at == 0)
            t.merged = NULL;
        else
            t.states[1] = NULL;
        train(&t, start, 3, 0);
        for (int i = 0; i < 3; i++)
            states[i] = start;
        CHECK_OK(hr_state_merge(states, 3, &merged, &error));
        hr_free(merged);
        states[0] = t.states[2];
        states[2] = t.states[1];
        CHECK_OK(hr_state_merge(states, 3, &merged, &error));
        train(&t, merged, 1, -1);
        for (int i = 0; i < RECORDS; i++)
            CHECK_EQ_INT(t.seen[i], at == 1 || i % 3 != 1);
        hr_free(start);
        hr_free(merged);
        forget(&t);
    }
}

TEST(a_rank_of_the_same_world_resumes_from_its_own_state_only)
{
    struct training t = {.text = GRAPH(RANGE(1003) SHUFFLE DROP_THIRD BATCH(8))};
    struct hr_error error = {0};
    struct hr_iter *iter = NULL;

    train(&t, NULL, 2, 7);
    CHECK_OK(open_rank(&t, 1, 2, t.states[1], &iter, &error));
    hr_iter_close(iter);
    iter = NULL;
    CHECK_ERR(HR_ERR_STATE, open_rank(&t, 1, 2, t.states[0], &iter, &error));
    CHECK_HAS(error.message, "saved by rank 0 of 2, and this is rank 1 of 2");
    CHECK_HAS(error.message, "merge those of all ranks");
    CHECK_ERR(HR_ERR_STATE, open_rank(&t, 0, 3, t.states[0], &iter, &error));
    CHECK(iter == NULL);
    forget(&t);
}

/* Ranks 0 and 1 have 502 and 501 records, so their last batches end at other places. */
TEST(a_short_last_batch_ends_the_share_of_all_ranks)
{
    struct training t = {.text = GRAPH(RANGE(1003) SHUFFLE BATCH(8))};

    for (int from = 0; from < 2; from++) {
        memset(t.seen, 0, sizeof t.seen);
        train(&t, NULL, 2, -1);
        train(&t, t.states[from], 3, -1);
        for (int i = 0; i < RECORDS; i++)
            CHECK_EQ_INT(t.seen[i], 1);
    }
    forget(&t);
}

TEST(skipped_bad_records_tie_states_to_their_ranks)
{
    struct training t = {
        .text = GRAPH(RANGE(1003) "  - debug.fail: {at: [0, 2, 4, 6, 700]}\n" BATCH(8)),
        .on_error = HR_ON_ERROR_SKIP};
    struct hr_error error = {0};
    struct hr_iter *iter = NULL;

    train(&t, NULL, 2, 3); /* rank 1 has met no bad one */
    for (int i = 0; i < 2; i++) {
        CHECK_ERR(HR_ERR_STATE, open_rank(&t, 0, 3, t.states[i], &iter, &error));
        CHECK_ERR(HR_ERR_STATE, open_rank(&t, 1 - i, 2, t.states[i], &iter, &error));
    }
    merge(&t);
    train(&t, t.merged, 3, 2);
    merge(&t);
    train(&t, t.merged, 1, -1);
    for (int i = 0; i < RECORDS; i++)
        CHECK_EQ_INT(t.seen[i], i != 700 && (i > 6 || i % 2 == 1));
    forget(&t);
}

TEST(a_state_without_bad_records_resumes_in_any_world)
{
    struct training t = {.text =
                             GRAPH(RANGE(1003) "  - debug.fail: {at: [700]}\n" BATCH(8)),
                         .on_error = HR_ON_ERROR_SKIP};

    train(&t, NULL, 1, 5);
    train(&t, t.states[0], 2, -1);
    for (int i = 0; i < RECORDS; i++)
        CHECK_EQ_INT(t.seen[i], i != 700);
    forget(&t);
}

/* The limit cuts a batch; the same rank then goes on with batches that begin elsewhere.
 */
TEST(a_state_after_a_limit_resumes_in_any_world)
{
    struct training t = {.text = GRAPH(RANGE(1003) BATCH(8)), .records_max = 21};

    train(&t, NULL, 1, -1);
    CHECK_HAS(t.states[0], "\"end\":[21,0]");
    t.records_max = 0;
    train(&t, t.states[0], 1, 3);
    CHECK_HAS(t.states[0], "\"end\":[45,0]");
    train(&t, t.states[0], 3, 4);
    train(&t, t.states[0], 2, -1);
    for (int i = 0; i < RECORDS; i++)
        CHECK_EQ_INT(t.seen[i], 1);
    forget(&t);
}

TEST(a_window_after_a_filter_ties_a_state_to_its_rank)
{
    struct training t = {.text = GRAPH(RANGE(1003) DROP_THIRD
                                       "  - order.shuffle: {window: 16}\n" BATCH(8))};
    struct hr_error error = {0};
    struct hr_iter *iter = NULL;
    char *merged = NULL;

    train(&t, NULL, 2, 7);
    CHECK_ERR(HR_ERR_STATE, open_rank(&t, 0, 1, t.states[0], &iter, &error));
    CHECK_HAS(error.message, "a window shuffle");
    CHECK_ERR(HR_ERR_STATE,
              hr_state_merge((const char *const *)t.states, 2, &merged, &error));
    CHECK(merged == NULL);
    forget(&t);
}

TEST(states_that_do_not_belong_together_are_not_merged)
{
    struct training t = {.text = GRAPH(RANGE(1003) DROP_THIRD BATCH(8))};
    struct training other = {.text = GRAPH(RANGE(1003) BATCH(8))};
    struct hr_error error = {0};
    const char *states[2];
    char *merged = NULL;

    train(&t, NULL, 2, 7);
    train(&other, NULL, 2, 7);
    states[0] = states[1] = t.states[0];
    CHECK_ERR(HR_ERR_STATE, hr_state_merge(states, 2, &merged, &error));
    CHECK_HAS(error.message, "state 2 of 2: it is of rank 0, as another of them is");
    CHECK_ERR(HR_ERR_STATE, hr_state_merge(states, 1, &merged, &error));
    CHECK_HAS(error.message, "a world of 2 ranks, and the states of all");
    states[1] = other.states[1];
    CHECK_ERR(HR_ERR_STATE, hr_state_merge(states, 2, &merged, &error));
    CHECK_HAS(error.message, "ran different graphs");
    states[1] = "{";
    CHECK_ERR(HR_ERR_FORMAT, hr_state_merge(states, 2, &merged, &error));
    states[1] = NULL;
    CHECK_ERR(HR_ERR_ARGUMENT, hr_state_merge(states, 2, &merged, &error));
    CHECK_ERR(HR_ERR_ARGUMENT, hr_state_merge(states, 0, &merged, &error));
    CHECK(merged == NULL);
    forget(&t);
    forget(&other);
}

/* The state with the value of `key` replaced. */
static char *with(const char *state, const char *key, const char *value)
{
    const char *at = strstr(state, key), *end;
    struct hr_str text;

    CHECK(at != NULL);
    at += strlen(key);
    end = at + (*at == '[' ? strcspn(at, "]") + 1 : strcspn(at, ",}"));
    hr__str_init(&text);
    hr__str_add_bytes(&text, state, (size_t)(at - state));
    hr__str_add(&text, value);
    hr__str_add(&text, end);
    return hr__str_take(&text);
}

TEST(every_seed_below_2_to_the_63rd_is_saved_and_resumed)
{
    static const uint64_t seeds[] = {0, ((uint64_t)1 << 60) + 1, INT64_MAX};
    const struct training t = {.text = GRAPH(RANGE(1003) SHUFFLE BATCH(8))};
    struct hr_error error = {0};
    struct hr_iter *iter = NULL;

    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        char *state;

        CHECK_OK(open_seed(&t, seeds[i], NULL, &iter, &error));
        CHECK_OK(hr_iter_save(iter, &state, NULL));
        hr_iter_close(iter);
        CHECK_OK(open_seed(&t, seeds[i], state, &iter, &error));
        hr_iter_close(iter);
        hr_free(state);
    }
    CHECK_ERR(HR_ERR_ARGUMENT,
              open_seed(&t, (uint64_t)INT64_MAX + 1, NULL, &iter, &error));
    CHECK_HAS(error.message, "seed must be below 2^63");
}

/* Numbers that the engine does arithmetic on are checked. */
TEST(hostile_states_are_refused_or_end_the_epoch)
{
    static const char *const lies[][2] = {
        {"\"headrace_state\":", "1"                                             },
        {"\"headrace_state\":", "null"                                          },
        {"\"fingerprint\":",    "3"                                             },
        {"\"seed\":",           "\"a\""                                         },
        {"\"seed\":",           "-1"                                            },
        {"\"epoch\":",          "-1"                                            },
        {"\"base\":",           "9223372036854775807"                           },
        {"\"position\":",       "1152921504606846976"                           },
        {"\"world\":",          "1.5"                                           },
        {"\"world\":",          "[]"                                            },
        {"\"rank\":",           "99999999999999999999"                          },
        {"\"records\":",        "true"                                          },
        {"\"moves\":",          "1"                                             },
        {"\"even\":",           "{}"                                            },
        {"\"end\":",            "[1,2,3]"                                       },
        {"\"end\":",            "[-1,0]"                                        },
        {"\"child\":",          "1"                                             },
        {"\"nodes\":",          "3"                                             },
        {"\"nodes\":",          "[{\"node\":\"no.such\"}]"                      },
        {"\"nodes\":",          "[{\"state\":\"3\"}]"                           },
        {"\"nodes\":",          "[{\"node\":\"order.shuffle\",\"state\":\"x\"}]"},
        {"\"nodes\":",
         "[{\"node\":\"order.shuffle\",\"state\":\"1152921504606846976\"}]"     },
        {"\"nodes\":",          "[{\"node\":\"order.shuffle\",\"skip\":-1}]"    },
        {"\"nodes\":",          "[{\"node\":\"batch.stack\",\"state\":\"1\"}]"  },
    };
    struct training t = {.text = GRAPH(RANGE(1003) DROP_THIRD
                                       "  - order.shuffle: {window: 10}\n" BATCH(8))};

    train(&t, NULL, 1, 7);
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        char *state = with(t.states[0], lies[i][0], lies[i][1]);
        struct hr_error error = {0};
        struct hr_iter *iter = NULL;

        CHECK(open_rank(&t, 0, 1, state, &iter, &error) != HR_OK);
        CHECK(iter == NULL && error.message[0] != '\0');
        hr_free(state);
    }
    forget(&t);
}

TEST(hostile_merged_states_are_refused)
{
    static const char *const lies[] = {
        "3",
        "{}",
        "[3]",
        "[{}]",
        "[[]]",
        "[[0]]",
        "[[0,1,2,3]]",
        "[[-1,2]]",
        "[[0,0]]",
        "[[0,2,0]]",
        "[[0,-2]]",
        "[[0,2,\"a\"]]",
        "[[2e18,2]]",
        "[[0,1152921504606846975,2]]",
        "[[1152921504606846976,1]]",
        "[],\"parts\":3",
        "[],\"parts\":[[1]]",
        "[],\"parts\":[[1,0]]",
        "[],\"parts\":[[1,2,3]]",
    };
    struct training t = {.text = GRAPH(RANGE(1003) DROP_THIRD BATCH(1))};
    struct hr_error error = {0};
    struct hr_iter *iter = NULL;

    train(&t, NULL, 8, 9);
    merge(&t);
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        size_t kept = (size_t)(strstr(t.merged, "\"done\":") - t.merged);
        char state[1024];

        CHECK(kept < 700);
        snprintf(state, sizeof state, "%.*s\"done\":%s}", (int)kept, t.merged, lies[i]);
        CHECK(open_rank(&t, 0, 1, state, &iter, &error) != HR_OK);
        CHECK(iter == NULL);
        CHECK_HAS(error.message, "\"done\" must be a list");
    }
    forget(&t);
}

/* A state of a run over folders a and b, after one batch. */
static char *state_of_folders(const char *text, const char *state, struct hr_error *error)
{
    struct training t = {.text = text};
    struct hr_iter *iter = NULL;
    struct hr_batch *batch = NULL;
    char *made = NULL;

    if (open_rank(&t, 0, 1, state, &iter, error) != HR_OK)
        return NULL;
    CHECK_OK(hr_iter_next(iter, &batch, error));
    hr_batch_unref(batch);
    CHECK_OK(hr_iter_save(iter, &made, error));
    hr_iter_close(iter);
    return made;
}

static void put(const char *name)
{
    char path[600];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", check_temp_dir(), name);
    (void)mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/%s/1.jpg", check_temp_dir(), name);
    file = fopen(path, "w");
    CHECK(file != NULL && fclose(file) == 0);
}

TEST(a_state_of_other_classes_is_refused_by_their_names)
{
    struct hr_error error = {0};
    char text[800], *state, *merged, *again;

    put("ant");
    put("bee");
    snprintf(text, sizeof text,
             GRAPH("  - source.files: {path: %s, labels: folder}\n" BATCH(1)),
             check_temp_dir());
    state = state_of_folders(text, NULL, &error);
    CHECK_HAS(state, "\"classes\":[{\"node\":\"source.files\",\"field\":\"label\","
                     "\"names\":[\"ant\",\"bee\"]}]");
    again = state_of_folders(text, state, &error);
    CHECK(again != NULL);
    CHECK_OK(hr_state_merge((const char *const[]){state}, 1, &merged, &error));
    put("bat");
    CHECK(state_of_folders(text, state, &error) == NULL);
    CHECK_EQ_INT(error.code, HR_ERR_STATE);
    CHECK_HAS(error.message, "class 1 was \"bee\" then, and is \"bat\" now");
    CHECK(state_of_folders(text, merged, &error) == NULL);
    CHECK_HAS(error.message, "(2 classes then, 3 now)");
    hr_free(state);
    hr_free(again);
    hr_free(merged);
}
