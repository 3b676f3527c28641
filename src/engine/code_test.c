/*
 * engine/code_test.c - user code in a graph: it gives the same bytes as the built-in op
 * of the same meaning, wherever it runs, and failures name node, field and record.
 */
#include "engine/code_test_util.h"

#include <sched.h>

#include "core/clock.h"

/* ---- meaning ---- */

TEST(code_gives_the_same_as_the_built_in_op_of_that_meaning)
{
    check_alike(GRAPH(CODE_RANGE(1000) SHUFFLE BATCH(16)),
                GRAPH(RANGE(1000) SHUFFLE BATCH(16)));
    check_alike(
        GRAPH(RANGE(1000) SHUFFLE MAP BATCH(16)),
        GRAPH("  - source.range: {n: 1000, start: 1, step: 2}\n" SHUFFLE BATCH(16)));
    check_alike(GRAPH(RANGE(1000) SHUFFLE THIRD BATCH(16)),
                GRAPH(RANGE(1000) SHUFFLE DROP_THIRD BATCH(16)));
}

TEST(an_expansion_gives_its_children_in_order)
{
    struct world w = {.end = INT64_MAX};
    struct outcome *o = run(GRAPH(RANGE(9) EXPAND BATCH(100)), &w, 2, NULL);
    static const int64_t values[] = {1, 2, 2, 4, 5, 5, 7, 8, 8},
                         ats[] = {0, 0, 1, 0, 0, 1, 0, 0, 1};
    struct hr_field_view view;

    CHECK_ERR(HR_ERR_END, o->code);
    CHECK_EQ_INT(o->records, 9);
    CHECK_OK(hr_batch_find(o->first, "value", &view));
    CHECK(memcmp(view.data, values, sizeof values) == 0);
    CHECK_OK(hr_batch_find(o->first, "at", &view));
    CHECK(memcmp(view.data, ats, sizeof ats) == 0);
    outcome_free(o);
}

TEST(code_gives_the_same_bytes_in_any_number_of_threads_and_after_restarts)
{
    struct world w = {.end = INT64_MAX};

    check_equivalent(GRAPH(CODE_RANGE(1000) SHUFFLE MAP BATCH(7)), &w, NULL);
    check_equivalent(GRAPH(RANGE(1000) SHUFFLE "  - debug.identity: {}\n" MAP
                                               "  - debug.identity: {}\n" MAP BATCH(64)),
                     &w, NULL);
    check_equivalent(GRAPH(RANGE(1000) SHUFFLE THIRD MAP BATCH(16)), &w, NULL);
    check_equivalent(GRAPH(RANGE(600) SHUFFLE EXPAND MAP BATCH(16)), &w, NULL);
    check_equivalent(
        GRAPH(RANGE(600) SHUFFLE EXPAND "  - order.shuffle: {window: 16}\n" BATCH(16)),
        &w, NULL);
    check_equivalent(GRAPH(RANGE(200) MAP), &w, NULL);
    check_equivalent(GRAPH(RANGE(300) "  - code.map: {code: key, outputs: \"key: "
                                      "int64\", variant: inline}\n" BATCH(8)),
                     &w, NULL);
    check_equivalent(GRAPH(RANGE(300) "  - code.map: {code: text, outputs: \"text: "
                                      "bytes\"}\n" BATCH(8)),
                     &w, NULL);
}

TEST(epochs_draw_again_and_records_keep_their_keys_in_any_order)
{
    struct world w = {.end = INT64_MAX};
    struct hr_iter_options options;
    struct outcome *o;

    hr_iter_options_init(&options);
    options.epochs = 2;
    o = run(GRAPH(RANGE(50) KEYS BATCH(50)), &w, 2, &options);
    CHECK_EQ_INT(o->batches, 2);
    CHECK(o->hashes[0] != o->hashes[1]);
    outcome_free(o);
}

TEST(named_fields_are_dropped_and_all_others_stay)
{
    static const struct {
        const char *graph, *fields;
    } cases[] = {
        {GRAPH(RANGE(4) "  - code.map: {code: key, outputs: \"key: int64\"}\n"),
         "value key "                                                                       },
        {GRAPH(RANGE(4) "  - code.map: {code: key, fields: value, outputs: \"key: "
                        "int64\"}\n"),
         "key "                                                                             },
        {GRAPH(RANGE(4) MAP),                                                    "value "   },
        {GRAPH(RANGE(4) "  - code.map: {code: map, outputs: \"value: int64\", keep: "
                        "false}\n"),
         "value "                                                                           },
        {GRAPH(RANGE(4) "  - code.map: {code: key, outputs: \"key: int64\", keep: "
                        "false}\n"),
         "key "                                                                             },
        {GRAPH(RANGE(4) THIRD),                                                  "value "   },
        {GRAPH(RANGE(4) EXPAND),                                                 "value at "},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w = {0};
        struct hr_graph *graph;
        struct hr_field_info info;
        char names[256] = "";

        graph = load(cases[i].graph, &w, NULL);
        CHECK(graph != NULL);
        CHECK_OK(hr_graph_freeze(graph, NULL));
        for (size_t f = 0; hr_graph_field_info(graph, 1, f, &info) == HR_OK; f++)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s ",
                     info.name);
        CHECK_EQ_STR(names, cases[i].fields);
        hr_graph_unref(graph);
        CHECK_EQ_INT(w.released, CODES);
    }
}

/* A picture of height 6 and width 5 that counts up from the record's number. */
static enum hr_err call_picture(void *user, struct hr_code_call *call, struct hr_error *e)
{
    int64_t dims[3] = {6, 5, 3};
    struct hr_code_record record;
    enum hr_err code;
    void *memory;

    (void)user;
    hr_code_record(call, &record);
    CHECK_EQ_INT(hr_code_index(call), record.index);
    code = hr_code_room(call, 0, HR_U8, 3, dims, &memory, e);
    for (size_t i = 0; code == HR_OK && i < 90; i++)
        ((uint8_t *)memory)[i] = (uint8_t)(i + record.index);
    return code;
}

/* Checks the declaration and the shape of the picture, and passes it on. */
static enum hr_err call_look(void *user, struct hr_code_call *call, struct hr_error *e)
{
    struct hr_field_info info;
    struct hr_field_view view;

    (void)user;
    CHECK_EQ_INT(hr_code_output_count(call), 1);
    CHECK_OK(hr_code_output(call, 0, &info));
    CHECK_ERR(HR_ERR_RANGE, hr_code_output(call, 1, &info));
    CHECK_EQ_STR(info.name, "image");
    CHECK(info.dtype == HR_U8 && info.ndim == 3 && info.dims[0] == 4 &&
          info.dims[1] == -1);
    CHECK_EQ_STR(info.dim_names[1], "width");
    CHECK_ERR(HR_ERR_RANGE, hr_code_input(call, 1, &view));
    CHECK_OK(hr_code_input(call, 0, &view));
    CHECK(view.dtype == HR_U8 && view.ndim == 3 && view.dims[0] == 4 &&
          view.dims[1] == 4);
    CHECK_ERR(HR_ERR_RANGE, hr_code_pass(call, 0, 1, e));
    CHECK_ERR(HR_ERR_RANGE, hr_code_pass(call, 1, 0, e));
    CHECK_ERR(HR_ERR_STATE, hr_code_child(call, e));
    return hr_code_pass(call, 0, 0, e);
}

static enum hr_err give_pictures(void *user, struct hr_graph *graph)
{
    struct hr_code picture = {"picture", user, call_picture, NULL, NULL, NULL};
    struct hr_code look = {"look", user, call_look, NULL, NULL, NULL};

    CHECK_OK(hr_graph_code(graph, "picture", &picture, NULL));
    return hr_graph_code(graph, "look", &look, NULL);
}

TEST(pictures_pass_between_code_and_image_ops)
{
#define PICTURES                                                                         \
    "  - code.source: {code: picture, count: 40, outputs: \"image: uint8[height, "       \
    "width, "                                                                            \
    "3]\"}\n"                                                                            \
    "  - image.flip: {}\n  - image.resize: {size: 4}\n"
    static const char with[] = GRAPH(
        PICTURES "  - code.map: {code: look, fields: image, outputs: \"image: uint8[4, "
                 "width, 3]\"}\n"
                 "  - image.center_crop: {size: 2}\n" BATCH(8));
    static const char without[] =
        GRAPH(PICTURES "  - image.center_crop: {size: 2}\n" BATCH(8));
    struct world w = {0};
    struct hr_field_view view;
    struct outcome *a = run_with(with, &w, 2, NULL, give_pictures, &w);
    struct hr_iter_options options;
    struct outcome *b;

    if (a->code != HR_ERR_END)
        check_failed(__FILE__, __LINE__, "%s", a->error.message);
    CHECK_OK(hr_batch_find(a->first, "image", &view));
    CHECK(view.ndim == 4 && view.dims[0] == 8 && view.dims[1] == 2 && view.dims[2] == 2);
    hr_iter_options_init(&options);
    options.fuse = false; /* two pieces of work, as the code makes them */
    b = run_with(without, &w, 1, &options, give_pictures, &w);
    outcome_check_same(a, b, 0, "with code");
    outcome_free(a);
    outcome_free(b);
}

/* Passes a byte string on, and says whether it is text. */
static enum hr_err call_told(void *user, struct hr_code_call *call, struct hr_error *e)
{
    struct hr_field_view view;
    enum hr_err code;

    (void)user;
    CHECK_OK(hr_code_input(call, 0, &view));
    code = put_int(call, 1, view.text, e);
    return code == HR_OK ? hr_code_pass(call, 0, 0, e) : code;
}

static enum hr_err give_told(void *user, struct hr_graph *graph)
{
    struct hr_code told = {"told", user, call_told, NULL, NULL, NULL};

    return hr_graph_code(graph, "told", &told, NULL);
}

static void check_text(const char *before, const char *after)
{
    struct world w = {0};
    struct hr_field_view view;
    struct outcome *o;
    char text[1024];

    snprintf(text, sizeof text,
             GRAPH(RANGE(8) "  - code.map: {code: text, fields: value, outputs: \"a: "
                            "%s\"}\n"
                            "  - code.map: {code: told, fields: a, outputs: [\"a: %s\", "
                            "\"told: int64\"]}\n" BATCH(8)),
             before, after);
    o = run_with(text, &w, 2, NULL, give_told, &w);
    CHECK_ERR(HR_ERR_END, o->code);
    CHECK_OK(hr_batch_find(o->first, "a", &view));
    CHECK(view.dtype == HR_DTYPE_NONE && view.text == (strcmp(after, "text") == 0));
    CHECK_OK(hr_batch_find(o->first, "told", &view));
    CHECK(!view.text);
    CHECK_EQ_INT(*(const int64_t *)view.data, strcmp(before, "text") == 0);
    outcome_free(o);
}

TEST(code_and_batches_are_told_which_byte_strings_are_text)
{
    static const char *const types[] = {"text", "bytes"};

    for (int i = 0; i < 4; i++)
        check_text(types[i / 2], types[i % 2]);
}

/* The dims after a resize to 4 x 4 of a field that is declared so; 0 if it is not an
 * image. */
static void check_image(const char *declared, int64_t first, int64_t last)
{
    struct world w = {0};
    struct hr_field_info info;
    struct hr_graph *graph;
    char text[1024];
    enum hr_err code;

    snprintf(text, sizeof text,
             GRAPH(PICTURES "  - code.map: {code: look, fields: image, outputs: \"%s\"}\n"
                            "  - image.resize: {size: 4}\n"),
             declared);
    graph = load(text, &w, NULL);
    CHECK(graph != NULL);
    CHECK_OK(give_pictures(&w, graph));
    code = hr_graph_freeze(graph, NULL);
    CHECK_ERR(first == 0 ? HR_ERR_TYPE : HR_OK, code);
    if (code == HR_OK) {
        CHECK_OK(hr_graph_field_info(graph, hr_graph_node_count(graph) - 1, 0, &info));
        CHECK_EQ_INT(info.dims[0], first);
        CHECK_EQ_INT(info.dims[1], 4);
        CHECK_EQ_INT(info.dims[2], last);
    }
    hr_graph_unref(graph);
}

TEST(a_declaration_decides_whether_a_field_is_an_image_and_its_layout)
{
    check_image("image: uint8[7, 9, 3]", 4, 3);
    check_image("image: uint8[-1, -1, -1]", 4, -1);
    check_image("image: uint8[3, 7, 9]", 3, 4);
    check_image("image: uint8[3, height, width]", 3, 4);
    check_image("image: float32[3, height, width]", 3, 4);
    check_image("image: uint8[7, 9, 2]", 0, 0);
    check_image("image: float32[3, 7, 9]", 0, 0);
    check_image("image: uint8[7, 9]", 0, 0);
}

TEST(a_batch_is_a_record_after_a_batch_op)
{
    struct world w = {.end = INT64_MAX};
    struct hr_field_view view;
    struct outcome *o = run(GRAPH(RANGE(100) TEXTS BATCH(16) MAP_BATCH), &w, 2, NULL);

    if (o->code != HR_ERR_END)
        check_failed(__FILE__, __LINE__, "%s", o->error.message);
    CHECK_EQ_INT(o->batches, 7);
    CHECK_EQ_INT(o->records, 100);
    CHECK_EQ_INT(hr_batch_records(o->first), 16);
    CHECK_OK(hr_batch_find(o->first, "text", &view));
    CHECK_EQ_INT(view.dims[0], 16);
    CHECK_EQ_INT(view.offsets[16], 120);
    CHECK_OK(hr_batch_find(o->first, "value", &view));
    CHECK_EQ_INT(view.ndim, 1);
    CHECK_EQ_INT(((const int64_t *)view.data)[15], 240);
    outcome_free(o);
    check_equivalent(GRAPH(RANGE(100) SHUFFLE TEXTS BATCH(16) MAP_BATCH), &w, NULL);
    check_equivalent(
        GRAPH(RANGE(100) TEXTS BATCH(16) MAP_BATCH "  - batch.unbatch: {}\n" BATCH(9)),
        &w, NULL);
}

TEST(an_inline_node_is_in_one_call_at_a_time)
{
    struct world w = {.end = INT64_MAX};
    struct outcome *o =
        run(GRAPH(RANGE(3000) "  - code.map: {code: map, fields: value, outputs: "
                              "\"value: int64\", variant: inline}\n" BATCH(10)),
            &w, 4, NULL);

    CHECK_ERR(HR_ERR_END, o->code);
    CHECK_EQ_INT(w.most, 1);
    CHECK_EQ_INT(w.calls, 3000);
    outcome_free(o);
}

/* `word` in the text becomes `other`; both of the same length. */
static void put_in(char *text, const char *word, const char *other)
{
    char *at = strstr(text, word);

    CHECK(at != NULL && strlen(word) == strlen(other));
    memcpy(at, other, strlen(other));
}

/* The number after `word` becomes this digit. */
static void put_number(char *text, const char *word, int digit)
{
    char *at = strstr(text, word);

    CHECK(at != NULL);
    at += strlen(word);
    *at++ = (char)('0' + digit);
    while (*at >= '0' && *at <= '9')
        *at++ = ' ';
}

TEST(a_plan_bounds_the_threads_of_a_stage_and_keeps_calls_apart)
{
    static const char *const edits[][2] = {
        {"parallelism: 4",                            "parallelism: 1"},
        {"group: code.map\n        variant: threads",
         "group: code.map\n        variant:  inline"                  },
    };
    const char *text = GRAPH(RANGE(3000) MAP BATCH(10));

    for (int i = 0; i < 2; i++) {
        struct world w = {.end = INT64_MAX};
        struct set_up up = {&w, NULL, NULL};
        struct outcome_job job = code_job(text, &up, 4, NULL);
        struct hr_graph *graph = outcome_graph(&job, NULL);
        struct outcome *o;
        char *plan = NULL;

        CHECK(graph != NULL);
        CHECK_OK(hr_graph_plan(graph, &job.options, HR_GRAPH_YAML, &plan, NULL));
        hr_graph_unref(graph);
        put_in(plan, "help_ns: 300000", "help_ns: 0     ");
        put_in(plan, edits[i][0], edits[i][1]);
        job.options.plan = plan;
        o = outcome_run(&job);
        CHECK_ERR(HR_ERR_END, o->code);
        CHECK_EQ_INT(w.most, 1);
        CHECK_EQ_INT(w.calls, 3000);
        outcome_free(o);
        hr_free(plan);
    }
}

/* How often the consumer had to sleep, if it takes all that is ready after each sleep. A
 * thread makes a batch in 1 ms or more. */
static int count_sleeps(const char *wake_ns)
{
    struct outcome_job job = outcome_job_with(
        GRAPH(RANGE(100) "  - debug.sleep: {ms: 1}\n" BATCH(1)), 1, NULL);
    struct hr_graph *graph = outcome_graph(&job, NULL);
    struct hr_iter *iter;
    enum hr_err code = HR_OK;
    char *plan = NULL;
    int sleeps = 0;

    CHECK(graph != NULL);
    CHECK_OK(hr_graph_plan(graph, &job.options, HR_GRAPH_YAML, &plan, NULL));
    plan = outcome_edit_plan(plan, "help_ns", "0");
    plan = outcome_edit_plan(plan, "wake_ns", wake_ns);
    job.options.plan = plan;
    CHECK_OK(hr_iter_open(graph, &job.options, &iter, NULL));
    while (code == HR_OK) {
        struct hr_batch *batch = NULL;

        code = hr_iter_next(iter, &batch, NULL);
        sleeps++;
        while (code == HR_OK && batch != NULL) {
            hr_batch_unref(batch);
            code = hr_iter_next_for(iter, 0, &batch, NULL);
        }
    }
    CHECK_ERR(HR_ERR_END, code);
    hr_iter_close(iter);
    hr_graph_unref(graph);
    hr_free(plan);
    return sleeps;
}

TEST(a_plan_says_for_which_batches_the_consumer_is_woken_one_by_one)
{
    int each = count_sleeps("0"), several = count_sleeps("1000000000");

    if (4 * several > each)
        check_failed(__FILE__, __LINE__, "%d sleeps, and %d", several, each);
}

static atomic_bool waits_for_consumer, consumer_has_two;

/* Record 8 waits until the consumer has what comes before it. */
static enum hr_err
call_wait(void *user, struct hr_code_call *call, struct hr_error *reterr)
{
    (void)user;
    if (get_int(call, 0) == 8) {
        atomic_store(&waits_for_consumer, true);
        while (!atomic_load(&consumer_has_two))
            sched_yield();
    }
    return hr_code_pass(call, 0, 0, reterr);
}

static enum hr_err give_wait(void *user, struct hr_graph *graph, struct hr_error *reterr)
{
    static const struct hr_code code = {
        .identity = "waits", .call = call_wait, .may_wait = true};

    (void)user;
    return hr_graph_code(graph, "map", &code, reterr);
}

/* Batch 1 is complete while there is no room for it, and its thread waits in batch 2. */
TEST(a_complete_batch_is_delivered_while_user_code_waits_for_the_consumer)
{
    const char *text =
        GRAPH(RANGE(16) "  - record.filter: {expr: \"value >= 0\"}\n" MAP BATCH(4));
    struct outcome_job job = outcome_job_with(text, 1, NULL);
    struct hr_graph *graph;
    struct hr_batch *batch;
    struct hr_iter *iter;
    char *plan = NULL;

    job.prepare = give_wait;
    graph = outcome_graph(&job, NULL);
    CHECK(graph != NULL);
    CHECK_OK(hr_graph_plan(graph, &job.options, HR_GRAPH_YAML, &plan, NULL));
    put_in(plan, "help_ns: 300000", "help_ns: 0     ");
    put_number(plan, "batches_ahead: ", 1);
    put_number(plan, "block_records: ", 4);
    job.options.plan = plan;
    CHECK_OK(hr_iter_open(graph, &job.options, &iter, NULL));
    while (!atomic_load(&waits_for_consumer))
        sched_yield();
    for (int i = 0; i < 2; i++) {
        CHECK_OK(hr_iter_next_for(iter, 20 * UINT64_C(1000000000), &batch, NULL));
        CHECK(batch != NULL);
        hr_batch_unref(batch);
    }
    atomic_store(&consumer_has_two, true);
    hr_iter_close(iter);
    hr_graph_unref(graph);
    hr_free(plan);
}

/* A lock that threads get in the order in which they came. */
static struct {
    atomic_uint next, served;
} queue;

static void *enter_queue(void *user)
{
    unsigned ticket = atomic_fetch_add(&queue.next, 1);

    while (atomic_load(&queue.served) != ticket)
        sched_yield();
    return user;
}

static void leave_queue(void *user, void *token)
{
    (void)user;
    (void)token;
    atomic_fetch_add(&queue.served, 1);
}

static enum hr_err
call_long(void *user, struct hr_code_call *call, struct hr_error *reterr)
{
    uint64_t begin = hr__now_ns();

    (void)user;
    while (hr__now_ns() - begin < 20000)
        continue;
    return hr_code_pass(call, 0, 0, reterr);
}

static enum hr_err give_queue(void *user, struct hr_graph *graph, struct hr_error *reterr)
{
    static const struct hr_code code = {.identity = "queue",
                                        .call = call_long,
                                        .enter = enter_queue,
                                        .leave = leave_queue};

    (void)user;
    return hr_graph_code(graph, "map", &code, reterr);
}

TEST(threads_that_queue_for_the_lock_of_user_code_are_not_used)
{
    struct outcome_job job =
        outcome_job_with(GRAPH(RANGE(1000000) MAP BATCH(16)), 2, NULL);
    struct hr_iter_stats stats = {.threads_used = 2};
    struct hr_field_view view;
    int64_t first, records = 0;
    struct hr_graph *graph;
    struct hr_batch *batch;
    struct hr_iter *iter;

    job.prepare = give_queue;
    graph = outcome_graph(&job, NULL);
    CHECK(graph != NULL);
    CHECK_OK(hr_iter_open(graph, &job.options, &iter, NULL));
    while (stats.threads_used == 2) {
        CHECK_OK(hr_iter_next(iter, &batch, NULL));
        CHECK_OK(hr_batch_field(batch, 0, &view));
        memcpy(&first, view.data, sizeof first);
        CHECK_EQ_INT(first, records);
        records += 16;
        hr_batch_unref(batch);
        hr_iter_stats(iter, &stats);
    }
    CHECK_EQ_INT(stats.threads, 2);
    CHECK_EQ_INT(stats.threads_used, 1);
    hr_iter_close(iter);
    hr_graph_unref(graph);
}

/* What the first call of a thread's sequence was told, and how many calls came since. */
static _Thread_local struct {
    uint64_t indices[4096];
    size_t count, next, longest;
} ahead;

static enum hr_err
call_following(void *user, struct hr_code_call *call, struct hr_error *reterr)
{
    size_t count = hr_code_following(call, NULL, 0);

    (void)user;
    CHECK(count > 0 && count <= 4096);
    if (ahead.next == ahead.count) {
        ahead.next = 0;
        ahead.count = hr_code_following(call, ahead.indices, 4096);
        ahead.longest = count > ahead.longest ? count : ahead.longest;
    }
    CHECK_EQ_INT(count, ahead.count - ahead.next);
    CHECK_EQ_INT(hr_code_index(call), ahead.indices[ahead.next]);
    ahead.next++;
    return put_int(call, 0, (int64_t)hr_code_index(call), reterr);
}

static enum hr_err
give_following(void *user, struct hr_graph *graph, struct hr_error *reterr)
{
    static const struct hr_code code = {.identity = "following", .call = call_following};

    (void)user;
    return hr_graph_code(graph, "range", &code, reterr);
}

TEST(a_source_is_told_which_records_follow)
{
    for (int threads = 0; threads < 2; threads++) {
        struct outcome_job job =
            outcome_job_with(GRAPH(CODE_RANGE(20000) SHUFFLE BATCH(256)), threads, NULL);
        struct outcome *o;

        memset(&ahead, 0, sizeof ahead);
        job.prepare = give_following;
        o = outcome_run(&job);
        CHECK_ERR(HR_ERR_END, o->code);
        CHECK(threads > 0 || (ahead.next == ahead.count && ahead.longest > 16));
        outcome_free(o);
    }
    CHECK_EQ_INT(hr_code_following(NULL, NULL, 0), 0);
}

TEST(code_is_entered_once_for_many_records)
{
    struct world w = {.end = INT64_MAX};
    struct outcome *o = run(GRAPH(RANGE(20000) MAP BATCH(256)), &w, 1, NULL);

    CHECK_ERR(HR_ERR_END, o->code);
    CHECK_EQ_INT(w.calls, 20000);
    CHECK(w.entered < 2000);
    CHECK_EQ_INT(o->nodes[1].records, 20000);
    CHECK(o->nodes[1].seconds > 0);
    outcome_free(o);
}

/* ---- failures ---- */

TEST(bad_records_are_skipped_or_substituted_with_the_same_bytes_for_all)
{
    static const char *const graphs[] = {
        GRAPH(RANGE(1000) SHUFFLE MAP BATCH(16)),
        GRAPH(CODE_RANGE(1000) SHUFFLE MAP BATCH(16)),
        GRAPH(RANGE(1000) SHUFFLE THIRD MAP BATCH(16)),
        GRAPH(RANGE(500) SHUFFLE EXPAND BATCH(16)),
        GRAPH(RANGE(1000) SHUFFLE DROP_THIRD MAP THIRD BATCH(16)),
    };
    struct hr_iter_options options;

    hr_iter_options_init(&options);
    options.errors_max = 1000;
    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++) {
        struct world w = {.end = INT64_MAX, .every = 7};

        options.on_error = HR_ON_ERROR_SKIP;
        check_equivalent(graphs[i], &w, &options);
        options.on_error = HR_ON_ERROR_SUBSTITUTE;
        check_equivalent(graphs[i], &w, &options);
    }
}

TEST(skipping_and_substituting_count_what_they_should)
{
    struct world w = {.end = INT64_MAX, .every = 100};
    struct hr_iter_options options;
    struct outcome *o;

    hr_iter_options_init(&options);
    options.on_error = HR_ON_ERROR_SKIP;
    o = run(GRAPH(RANGE(1000) MAP BATCH(10)), &w, 2, &options);
    CHECK_EQ_INT(o->records, 990);
    CHECK_EQ_INT(o->stats.errors, 10);
    outcome_free(o);
    options.on_error = HR_ON_ERROR_SUBSTITUTE;
    o = run(GRAPH(RANGE(1000) MAP BATCH(10)), &w, 2, &options);
    CHECK_EQ_INT(o->records, 1000);
    CHECK_EQ_INT(o->stats.substituted, 10);
    outcome_free(o);
    options.errors_max = 5;
    o = run(GRAPH(RANGE(1000) MAP BATCH(10)), &w, 2, &options);
    CHECK_ERR(HR_ERR_LIMIT, o->code);
    outcome_free(o);
}

TEST(a_failure_names_node_and_record_and_has_its_detail)
{
    for (int threads = 0; threads < 3; threads++) {
        struct world w = {.end = INT64_MAX, .every = 50};
        struct outcome *o =
            run(GRAPH(RANGE(100) "  - code.map: {code: map, fields: value, outputs: "
                                 "\"value: int64\"}\n    name: mine\n" BATCH(10)),
                &w, threads, NULL);

        CHECK_ERR(HR_ERR_RANGE, o->code);
        CHECK_EQ_INT(o->batches, 4);
        CHECK_EQ_STR(o->error.node, "mine");
        CHECK_EQ_STR(o->error.op, "code.map");
        CHECK_EQ_INT(o->error.record, 50);
        CHECK_HAS(o->error.message, "node 'mine' (code.map): it does not like this one");
        CHECK_EQ_STR(o->detail, "Traceback:\n  line 1\n");
        outcome_free(o);
    }
    CHECK_EQ_STR(hr_iter_detail(NULL), "");
}

TEST(the_ledger_has_the_detail)
{
    struct world w = {.end = INT64_MAX, .every = 50};
    struct hr_iter_options options;
    char path[512], text[4096];
    struct outcome *o;
    FILE *file;

    snprintf(path, sizeof path, "%s/ledger", check_temp_dir());
    hr_iter_options_init(&options);
    options.on_error = HR_ON_ERROR_SKIP;
    options.ledger = path;
    o = run(GRAPH(RANGE(100) MAP BATCH(10)), &w, 2, &options);
    CHECK_ERR(HR_ERR_END, o->code);
    CHECK_EQ_STR(o->detail, "");
    outcome_free(o);
    file = fopen(path, "r");
    CHECK(file != NULL);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    CHECK_HAS(text, "\"detail\":\"Traceback:\\n  line 1\\n\"");
}

TEST(outputs_that_differ_from_the_declaration_are_refused_by_name)
{
    static const struct {
        int value;
        enum hr_err code;
        const char *words;
    } cases[] = {
        {5, HR_ERR_SHAPE,
         "field 'm' is declared as float32 [2, 3]; the code made float32 [2, 4]"},
        {6, HR_ERR_TYPE,
         "field 'm' is declared as float32 [2, 3]; the code made float64 [2, 3]"},
        {7, HR_ERR_STATE,    "made no output 'm'"                               },
        {8, HR_ERR_STATE,    "only a source may"                                },
        {9, HR_ERR_INTERNAL, "returned 77"                                      },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        struct world w = {0};
        struct outcome *o;

        snprintf(text, sizeof text,
                 GRAPH("  - source.range: {n: 1, start: %d}\n"
                       "  - code.map: {code: shapes, outputs: \"m: float32[2, 3]\"}\n"
                       "    name: made\n" BATCH(1)),
                 cases[i].value);
        o = run(text, &w, 1, NULL);
        CHECK_ERR(cases[i].code, o->code);
        CHECK_HAS(o->error.message, cases[i].words);
        CHECK_HAS(o->error.message, "node 'made' (code.map)");
        CHECK_HAS(o->error.message, "record 0");
        CHECK_EQ_STR(o->error.node, "made");
        outcome_free(o);
    }
}

static void refused(const char *text, enum hr_err code, const char *words)
{
    struct hr_error error = {0};
    struct world w = {0};
    struct hr_graph *graph = load(text, &w, &error);
    enum hr_err got = graph != NULL ? hr_graph_freeze(graph, &error) : error.code;

    CHECK_HAS(error.message, words);
    CHECK_ERR(code, got);
    hr_graph_unref(graph);
}

TEST(an_impossible_graph_is_refused_at_freeze)
{
    refused(GRAPH(RANGE(4) "  - code.map: {code: mapp, outputs: \"value: int64\"}\n"),
            HR_ERR_NOT_FOUND,
            "node 'code.map' (code.map): the code \"mapp\" is not registered; did you "
            "mean \"map\"?");
    refused(GRAPH(RANGE(4) "  - code.map: {code: map, outputs: \"value\"}\n"),
            HR_ERR_FORMAT, "no ':'");
    refused(GRAPH(RANGE(4) "  - code.map: {code: map, outputs: \"value: int63\"}\n"),
            HR_ERR_FORMAT, "no type of this name");
    refused(GRAPH(RANGE(4) "  - code.map: {code: map, outputs: \"v: int64[3, ]]\"}\n"),
            HR_ERR_FORMAT, "more than a type");
    refused(GRAPH(RANGE(4) "  - code.map: {code: map, outputs: \"v: int64[-2]\"}\n"),
            HR_ERR_FORMAT, "no size, name or -1");
    refused(GRAPH(RANGE(4) "  - code.map: {code: map, outputs: [\"v: int64\", \"v: "
                           "int64\"]}\n"),
            HR_ERR_ARGUMENT, "named twice");
    refused(GRAPH(RANGE(4) "  - code.map: {code: map, fields: volue, outputs: \"v: "
                           "int64\"}\n"),
            HR_ERR_GRAPH, "there is no field \"volue\"; did you mean \"value\"?");
    refused(
        GRAPH(ENDLESS SHUFFLE BATCH(2)), HR_ERR_GRAPH,
        "'code.source' knows it only at the end: give 'code.source' a count, or set a "
        "window here");
    refused(GRAPH(ENDLESS "  - order.repeat: {count: 2}\n" BATCH(2)), HR_ERR_GRAPH,
            "give 'code.source' a count");
}

TEST(giving_code_twice_late_or_malformed_is_refused)
{
    struct world w = {0};
    struct hr_code code = {"1", &w, call_map, NULL, NULL, release};
    struct hr_error error = {0};
    struct hr_graph *graph;

    graph = load(GRAPH(RANGE(4) MAP), &w, NULL);
    CHECK(graph != NULL);
    CHECK_ERR(HR_ERR_ARGUMENT, hr_graph_code(graph, "map", &code, &error));
    CHECK_HAS(error.message, "has code \"map\" already");
    CHECK_ERR(HR_ERR_ARGUMENT, hr_graph_code(graph, "", &code, NULL));
    CHECK_ERR(HR_ERR_ARGUMENT, hr_graph_code(graph, "a\nb", &code, NULL));
    code.identity = NULL;
    CHECK_ERR(HR_ERR_ARGUMENT, hr_graph_code(graph, "x", &code, NULL));
    code.identity = "1";
    CHECK_OK(hr_graph_freeze(graph, NULL));
    CHECK_ERR(HR_ERR_STATE, hr_graph_code(graph, "x", &code, NULL));
    CHECK_EQ_INT(w.released, 0);
    hr_graph_unref(graph);
    CHECK_EQ_INT(w.released, CODES);
}

static void fingerprint(const char *text, const char *identity, char *ret)
{
    struct world w = {0};
    struct hr_code code = {identity, &w, call_map, NULL, NULL, NULL};
    struct hr_graph *graph;

    CHECK_OK(hr_graph_parse(text, strlen(text), "t.yaml", NULL, 0, &graph, NULL));
    CHECK_OK(hr_graph_code(graph, "map", &code, NULL));
    CHECK_OK(hr_graph_freeze(graph, NULL));
    CHECK_OK(hr_graph_fingerprint(graph, ret));
    hr_graph_unref(graph);
}

TEST(the_identity_is_in_the_fingerprint_and_the_variant_is_not)
{
    char a[HR_FINGERPRINT_BYTES], b[HR_FINGERPRINT_BYTES];

    fingerprint(GRAPH(RANGE(4) MAP), "one", a);
    fingerprint(GRAPH(RANGE(4) MAP), "two", b);
    CHECK(strcmp(a, b) != 0);
    fingerprint(GRAPH(RANGE(4) "  - code.map: {code: map, fields: value, outputs: "
                               "\"value: int64\", variant: processes}\n"),
                "one", b);
    CHECK_EQ_STR(a, b);
}

TEST(worker_processes_without_a_host_are_refused_at_open)
{
    struct world w = {0};
    struct outcome *o =
        run(GRAPH(RANGE(4) "  - code.map: {code: map, fields: value, outputs: "
                           "\"value: int64\", variant: processes}\n"),
            &w, 1, NULL);

    CHECK_ERR(HR_ERR_STATE, o->code);
    CHECK_HAS(o->error.message,
              "node 'code.map' (code.map): it runs in worker processes");
    outcome_free(o);
}
