/*
 * User code in a graph: it gives what the built-in op of the same meaning gives, the same
 * bytes whatever runs it, and its failures are told by node, field and record.
 */
#include "tests/support/check.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/hash.h"
#include "headrace/code.h"

#define BATCHES_MAX 512

/* ---- code ---- */

/* What all code of a test shares. */
struct world {
    atomic_int entered, left, calls, inside, most, released;
    int64_t end;   /* of a source without a count */
    int64_t every; /* each n-th record fails; 0: none */
};

static void *enter(void *user)
{
    struct world *w = user;

    atomic_fetch_add(&w->entered, 1);
    return w;
}

static void leave(void *user, void *token)
{
    struct world *w = user;

    CHECK(token == w);
    atomic_fetch_add(&w->left, 1);
}

static void release(void *user)
{
    atomic_fetch_add(&((struct world *)user)->released, 1);
}

static int64_t get_int(struct hr_code_call *call, size_t at)
{
    struct hr_field_view view;
    int64_t value = -1;

    CHECK_OK(hr_code_input(call, at, &view));
    CHECK(view.dtype == HR_I64 && view.ndim == 0 && view.buffer == NULL);
    memcpy(&value, view.data, sizeof value);
    return value;
}

static enum hr_err
put_int(struct hr_code_call *call, size_t at, int64_t value, struct hr_error *reterr)
{
    enum hr_err code;
    void *memory;

    code = hr_code_room(call, at, HR_I64, 0, NULL, &memory, reterr);
    if (code == HR_OK)
        memcpy(memory, &value, sizeof value);
    return code;
}

static void count_in(struct world *w)
{
    int now = atomic_fetch_add(&w->inside, 1) + 1, most = atomic_load(&w->most);

    atomic_fetch_add(&w->calls, 1);
    while (now > most && !atomic_compare_exchange_weak(&w->most, &most, now))
        continue;
}

static bool fails(const struct world *w, const struct hr_code_call *call)
{
    struct hr_code_record record;

    hr_code_record(call, &record);
    return w->every > 0 && (int64_t)(record.index + 1) % w->every == 0;
}

static enum hr_err fail(struct hr_code_call *call, struct hr_error *reterr)
{
    hr_code_detail(call, "Traceback:\n  line 1\n");
    reterr->code = HR_ERR_RANGE;
    snprintf(reterr->message, sizeof reterr->message, "it does not like this one");
    return HR_ERR_RANGE;
}

/* The record's number. */
static enum hr_err call_range(void *user, struct hr_code_call *call, struct hr_error *e)
{
    struct world *w = user;
    struct hr_code_record record;

    hr_code_record(call, &record);
    count_in(w);
    atomic_fetch_sub(&w->inside, 1);
    CHECK_EQ_INT(hr_code_input_count(call), 0);
    if ((int64_t)record.index >= w->end)
        return HR_ERR_END;
    if (fails(w, call))
        return fail(call, e);
    return put_int(call, 0, (int64_t)record.index, e);
}

static enum hr_err call_map(void *user, struct hr_code_call *call, struct hr_error *e)
{
    struct world *w = user;
    enum hr_err code;

    count_in(w);
    code = fails(w, call) ? fail(call, e) : put_int(call, 0, get_int(call, 0) * 2 + 1, e);
    atomic_fetch_sub(&w->inside, 1);
    return code;
}

static enum hr_err call_third(void *user, struct hr_code_call *call, struct hr_error *e)
{
    struct world *w = user;

    count_in(w);
    atomic_fetch_sub(&w->inside, 1);
    if (fails(w, call))
        return fail(call, e);
    hr_code_keep(call, get_int(call, 0) % 3 != 1);
    return HR_OK;
}

/* value % 3 children, each with the value and its place. */
static enum hr_err call_expand(void *user, struct hr_code_call *call, struct hr_error *e)
{
    struct world *w = user;
    int64_t value = get_int(call, 0);

    count_in(w);
    atomic_fetch_sub(&w->inside, 1);
    for (int64_t i = 0; i < value % 3; i++) {
        enum hr_err code = hr_code_child(call, e);

        if (code == HR_OK)
            code = hr_code_pass(call, 0, 0, e);
        if (code == HR_OK)
            code = put_int(call, 1, i, e);
        if (code == HR_OK && fails(w, call))
            code = fail(call, e);
        if (code != HR_OK)
            return code;
    }
    return HR_OK;
}

/* Two draws that belong to the record. */
static enum hr_err call_key(void *user, struct hr_code_call *call, struct hr_error *e)
{
    struct hr_code_record record;

    (void)user;
    hr_code_record(call, &record);
    return put_int(call, 0, (int64_t)(record.key[0] ^ record.key[1]), e);
}

/* Anything at all, by the value. */
static enum hr_err call_shapes(void *user, struct hr_code_call *call, struct hr_error *e)
{
    int64_t value = get_int(call, 0), dims[2] = {2, 3};
    enum hr_dtype dtype = HR_F32;
    enum hr_err code;
    void *memory;

    (void)user;
    if (value == 5)
        dims[1] = 4;
    if (value == 6)
        dtype = HR_F64;
    if (value == 7)
        return HR_OK;
    if (value == 8)
        return HR_ERR_END;
    if (value == 9)
        return (enum hr_err)77;
    code = hr_code_room(call, 0, dtype, 2, dims, &memory, e);
    if (code == HR_OK)
        memset(memory, (int)value, 24);
    return code;
}

/* A text of `value` letters. */
static enum hr_err call_text(void *user, struct hr_code_call *call, struct hr_error *e)
{
    int64_t value = get_int(call, 0) % 19;
    enum hr_err code;
    void *memory;

    (void)user;
    code = hr_code_room(call, 0, HR_DTYPE_NONE, 1, &value, &memory, e);
    if (code == HR_OK && value > 0)
        memset(memory, 'a' + (int)value, (size_t)value);
    return code;
}

/* A batch of numbers and strings: sums it up, and passes the strings on. */
static enum hr_err call_batch(void *user, struct hr_code_call *call, struct hr_error *e)
{
    struct hr_field_view numbers, texts;
    int64_t dims[1], sum = 0, *out;
    enum hr_err code;
    void *memory;

    (void)user;
    CHECK_OK(hr_code_input(call, 0, &numbers));
    CHECK_OK(hr_code_input(call, 1, &texts));
    CHECK(numbers.ndim == 1 && texts.offsets != NULL && texts.dtype == HR_DTYPE_NONE);
    CHECK_EQ_INT(numbers.dims[0], texts.dims[0]);
    dims[0] = numbers.dims[0];
    code = hr_code_room(call, 0, HR_I64, 1, dims, &memory, e);
    if (code != HR_OK)
        return code;
    out = memory;
    for (int64_t i = 0; i < dims[0]; i++)
        out[i] = sum +=
            ((const int64_t *)numbers.data)[i] + texts.offsets[i + 1] - texts.offsets[i];
    return hr_code_pass(call, 1, 1, e);
}

static const struct {
    const char *name;
    enum hr_err (*call)(void *, struct hr_code_call *, struct hr_error *);
} codes[] = {
    {"range",  call_range },
    {"map",    call_map   },
    {"third",  call_third },
    {"expand", call_expand},
    {"key",    call_key   },
    {"shapes", call_shapes},
    {"text",   call_text  },
    {"batch",  call_batch },
};
#define CODES (sizeof codes / sizeof codes[0])

/* ---- runs ---- */

struct outcome {
    enum hr_err code;
    struct hr_error error;
    char detail[64];
    size_t batches;
    int64_t records;
    uint64_t hashes[BATCHES_MAX];
    char *states[BATCHES_MAX];
    struct hr_iter_stats stats;
    struct hr_node_stats nodes[8];
};

/* Without memory of its own: it runs while allocations fail. */
static uint64_t hash_batch(const struct hr_batch *batch)
{
    struct hr_field_view view;
    uint64_t hash = 0;

    for (size_t i = 0; i < hr_batch_field_count(batch); i++) {
        CHECK_OK(hr_batch_field(batch, i, &view));
        hash = hr__hash64(view.name, strlen(view.name), hash);
        hash = hr__hash64(view.dims, sizeof view.dims[0] * (size_t)view.ndim, hash);
        hash = hr__hash64(view.data, view.bytes, hash);
        if (view.offsets != NULL)
            hash = hr__hash64(view.offsets, ((size_t)view.dims[0] + 1) * 8, hash);
    }
    return hash;
}

static enum hr_err
load(const char *text, struct world *w, struct hr_graph **ret_graph, struct hr_error *e)
{
    enum hr_err code =
        hr_graph_parse(text, strlen(text), "test.yaml", NULL, 0, ret_graph, e);

    for (size_t i = 0; code == HR_OK && i < CODES; i++) {
        struct hr_code made = {codes[i].name, w, codes[i].call, enter, leave, release};

        code = hr_graph_code(*ret_graph, codes[i].name, &made, e);
    }
    return code;
}

static void take_all(struct hr_iter *iter, struct outcome *o, bool states,
                     struct hr_batch **ret_first)
{
    struct hr_batch *batch;

    while ((o->code = hr_iter_next(iter, &batch, &o->error)) == HR_OK) {
        CHECK(o->batches < BATCHES_MAX);
        o->records += hr_batch_records(batch);
        o->hashes[o->batches] = hash_batch(batch);
        if (states)
            CHECK_OK(hr_iter_save(iter, &o->states[o->batches], NULL));
        if (o->batches++ == 0 && ret_first != NULL)
            *ret_first = hr_batch_ref(batch);
        hr_batch_unref(batch);
    }
}

static struct outcome *
run_first(const char *text, struct world *w, int threads,
          const struct hr_iter_options *given, struct hr_batch **ret_first)
{
    struct outcome *o = calloc(1, sizeof *o);
    struct hr_iter_options options;
    struct hr_graph *graph = NULL;
    struct hr_iter *iter = NULL;

    hr_iter_options_init(&options);
    if (given != NULL)
        options = *given;
    options.threads = threads;
    options.variant = threads == 0 ? HR_VARIANT_INLINE : HR_VARIANT_THREADS;
    o->code = load(text, w, &graph, &o->error);
    if (o->code == HR_OK)
        o->code = hr_iter_open(graph, &options, &iter, &o->error);
    if (o->code == HR_OK)
        take_all(iter, o, options.ordered, ret_first);
    if (iter != NULL) {
        snprintf(o->detail, sizeof o->detail, "%s", hr_iter_detail(iter));
        hr_iter_stats(iter, &o->stats);
        for (size_t i = 0; i < 8; i++)
            if (hr_iter_node_stats(iter, i, &o->nodes[i]) == HR_OK)
                o->nodes[i].node = o->nodes[i].op = o->nodes[i].fused_into = NULL;
    }
    hr_iter_close(iter);
    hr_graph_unref(graph);
    CHECK_EQ_INT(w->entered, w->left);
    return o;
}

static struct outcome *
run(const char *text, struct world *w, int threads, const struct hr_iter_options *given)
{
    return run_first(text, w, threads, given, NULL);
}

static void outcome_free(struct outcome *o)
{
    for (size_t i = 0; i < o->batches; i++)
        hr_free(o->states[i]);
    free(o);
}

static void check_same(const struct outcome *a, const struct outcome *b, size_t skip)
{
    CHECK_ERR(a->code, b->code);
    CHECK_EQ_INT(b->batches + skip, a->batches);
    for (size_t i = 0; i < b->batches; i++)
        CHECK(a->hashes[i + skip] == b->hashes[i]);
}

/* Inline against 1, 2, 4, 8 threads, then restarts behind every batch. */
static void
check_equivalent(const char *text, struct world *w, const struct hr_iter_options *given)
{
    struct outcome *first = run(text, w, 0, given);
    struct hr_iter_options options;

    if (first->code != HR_ERR_END)
        check_failed(__FILE__, __LINE__, "%s", first->error.message);
    CHECK(first->batches > 0);
    for (int threads = 1; threads <= 8; threads *= 2) {
        struct outcome *other = run(text, w, threads, given);

        check_same(first, other, 0);
        outcome_free(other);
    }
    hr_iter_options_init(&options);
    if (given != NULL)
        options = *given;
    for (size_t i = 0; i < first->batches; i += 1 + first->batches / 30) {
        struct outcome *rest;

        options.state = first->states[i];
        rest = run(text, w, i % 3 == 0 ? 0 : 2, &options);
        check_same(first, rest, i + 1);
        outcome_free(rest);
    }
    outcome_free(first);
}

/* The two graphs give the same batches. */
static void check_alike(const char *a, const char *b)
{
    struct world w = {.end = INT64_MAX};
    struct outcome *left = run(a, &w, 2, NULL), *right = run(b, &w, 2, NULL);

    if (left->code != HR_ERR_END || right->code != HR_ERR_END)
        check_failed(__FILE__, __LINE__, "%s%s", left->error.message,
                     right->error.message);
    CHECK(left->batches > 0);
    check_same(left, right, 0);
    outcome_free(left);
    outcome_free(right);
}

#define GRAPH(steps) "headrace: 1\npipeline:\n" steps
#define RANGE(n) "  - source.range: {n: " #n "}\n"
#define CODE_RANGE(n)                                                                    \
    "  - code.source: {code: range, count: " #n ", outputs: \"value: int64\"}\n"
#define ENDLESS "  - code.source: {code: range, outputs: \"value: int64\"}\n"
#define SHUFFLE "  - order.shuffle: {}\n"
#define BATCH(n) "  - batch.stack: {size: " #n "}\n"
#define MAP "  - code.map: {code: map, fields: value, outputs: \"value: int64\"}\n"
#define THIRD "  - code.filter: {code: third, fields: value}\n"
#define DROP_THIRD "  - record.filter: {expr: \"value % 3 != 1\"}\n"
#define EXPAND                                                                           \
    "  - code.expand: {code: expand, fields: value, outputs: [\"value: int64\", \"at: "  \
    "int64\"]}\n"

/* ---- meaning ---- */

TEST(code_gives_what_the_built_in_op_of_the_same_meaning_gives)
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
    struct hr_batch *batch = NULL;
    struct outcome *o = run_first(GRAPH(RANGE(9) EXPAND BATCH(100)), &w, 2, NULL, &batch);
    static const int64_t values[] = {1, 2, 2, 4, 5, 5, 7, 8, 8},
                         ats[] = {0, 0, 1, 0, 0, 1, 0, 0, 1};
    struct hr_field_view view;

    CHECK_ERR(HR_ERR_END, o->code);
    CHECK_EQ_INT(o->records, 9);
    CHECK_OK(hr_batch_find(batch, "value", &view));
    CHECK(memcmp(view.data, values, sizeof values) == 0);
    CHECK_OK(hr_batch_find(batch, "at", &view));
    CHECK(memcmp(view.data, ats, sizeof ats) == 0);
    hr_batch_unref(batch);
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

TEST(epochs_draw_anew_and_records_keep_their_keys_in_any_order)
{
#define KEYS "  - code.map: {code: key, outputs: \"key: int64\"}\n"
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

TEST(fields_that_are_named_are_taken_and_all_others_stay)
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

        CHECK_OK(load(cases[i].graph, &w, &graph, NULL));
        CHECK_OK(hr_graph_freeze(graph, NULL));
        for (size_t f = 0; hr_graph_field_info(graph, 1, f, &info) == HR_OK; f++)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s ",
                     info.name);
        CHECK_EQ_STR(names, cases[i].fields);
        hr_graph_unref(graph);
        CHECK_EQ_INT(w.released, CODES);
    }
}

TEST(a_batch_is_a_record_behind_a_batch_op)
{
#define MAP_BATCH                                                                        \
    "  - code.map: {code: batch, fields: [value, text], outputs: [\"value: "             \
    "int64[batch]\", \"text: strings[batch]\"]}\n"
#define TEXTS "  - code.map: {code: text, outputs: \"text: bytes\"}\n"
    struct world w = {.end = INT64_MAX};
    struct hr_batch *batch = NULL;
    struct hr_field_view view;
    struct outcome *o =
        run_first(GRAPH(RANGE(100) TEXTS BATCH(16) MAP_BATCH), &w, 2, NULL, &batch);

    if (o->code != HR_ERR_END)
        check_failed(__FILE__, __LINE__, "%s", o->error.message);
    CHECK_EQ_INT(o->batches, 7);
    CHECK_EQ_INT(o->records, 100);
    CHECK_EQ_INT(hr_batch_records(batch), 16);
    CHECK_OK(hr_batch_find(batch, "text", &view));
    CHECK_EQ_INT(view.dims[0], 16);
    CHECK_EQ_INT(view.offsets[16], 120);
    CHECK_OK(hr_batch_find(batch, "value", &view));
    CHECK_EQ_INT(view.ndim, 1);
    CHECK_EQ_INT(((const int64_t *)view.data)[15], 240);
    hr_batch_unref(batch);
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

TEST(a_failure_names_node_and_record_and_brings_its_long_text)
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
}

TEST(the_ledger_has_the_long_text)
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

TEST(what_is_not_as_declared_is_refused_with_names)
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
    struct hr_graph *graph = NULL;
    struct world w = {0};
    enum hr_err got = load(text, &w, &graph, &error);

    if (got == HR_OK)
        got = hr_graph_freeze(graph, &error);
    CHECK_HAS(error.message, words);
    CHECK_ERR(code, got);
    hr_graph_unref(graph);
}

TEST(a_graph_that_cannot_be_is_refused_at_freeze)
{
    refused(GRAPH(RANGE(4) "  - code.map: {code: mapp, outputs: \"value: int64\"}\n"),
            HR_ERR_NOT_FOUND,
            "node 'code.map' (code.map): nobody has given the code \"mapp\"; did you "
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
    refused(GRAPH(ENDLESS SHUFFLE BATCH(2)), HR_ERR_GRAPH,
            "'code.source' tells that only at the end: give 'code.source' a count, or "
            "this a window");
    refused(GRAPH(ENDLESS "  - order.repeat: {count: 2}\n" BATCH(2)), HR_ERR_GRAPH,
            "give 'code.source' a count");
}

TEST(giving_code_twice_late_or_malformed_is_refused)
{
    struct world w = {0};
    struct hr_code code = {"1", &w, call_map, NULL, NULL, release};
    struct hr_error error = {0};
    struct hr_graph *graph;

    CHECK_OK(load(GRAPH(RANGE(4) MAP), &w, &graph, NULL));
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
    CHECK_HAS(o->error.message, "node 'code.map' (code.map): it wants worker processes");
    outcome_free(o);
}

/* ---- sources that end ---- */

TEST(a_source_that_ends_gives_what_one_of_that_length_gives)
{
    for (int64_t end = 0; end < 40; end++) {
        char text[256];
        struct world w = {.end = end}, known = {.end = INT64_MAX};
        struct outcome *want;

        snprintf(text, sizeof text, GRAPH("  - source.range: {n: %d}\n" MAP BATCH(8)),
                 (int)end);
        want = run(text, &known, 1, NULL);
        for (int threads = 0; threads < 5; threads++) {
            struct outcome *o = run(GRAPH(ENDLESS MAP BATCH(8)), &w, threads, NULL);

            CHECK_EQ_INT(o->records, end);
            check_same(want, o, 0);
            CHECK_EQ_INT(o->stats.epoch_records, -1);
            outcome_free(o);
        }
        outcome_free(want);
    }
}

TEST(an_end_is_the_same_for_all_with_stream_ops_epochs_and_bad_records)
{
    static const char *const graphs[] = {
        GRAPH(ENDLESS BATCH(8)),
        GRAPH(ENDLESS THIRD BATCH(8)),
        GRAPH(ENDLESS "  - order.take: {count: 70}\n" MAP BATCH(8)),
        GRAPH(ENDLESS "  - order.skip: {count: 30}\n"
                      "  - order.shuffle: {window: 16}\n" BATCH(8)),
        GRAPH(ENDLESS "  - order.shuffle: {window: 64}\n" MAP EXPAND BATCH(8)),
        GRAPH(ENDLESS MAP),
    };
    struct hr_iter_options options;

    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++) {
        struct world w = {.end = 103}, bad = {.end = 103, .every = 10};

        hr_iter_options_init(&options);
        options.epochs = 3;
        check_equivalent(graphs[i], &w, &options);
        options.epochs = 1;
        options.on_error = HR_ON_ERROR_SKIP;
        check_equivalent(graphs[i], &bad, &options);
        options.on_error = HR_ON_ERROR_SUBSTITUTE;
        check_equivalent(graphs[i], &bad, &options);
    }
}

TEST(batches_as_completed_hold_every_record_of_a_source_that_ends)
{
    struct hr_iter_options options;

    hr_iter_options_init(&options);
    options.ordered = false;
    options.epochs = 3;
    for (int64_t end = 1; end < 200; end += 33) {
        struct world w = {.end = end};
        struct outcome *o = run(GRAPH(ENDLESS BATCH(8)), &w, 4, &options);

        CHECK_ERR(HR_ERR_END, o->code);
        CHECK_EQ_INT(o->records, 3 * end);
        outcome_free(o);
    }
}

TEST(a_source_without_records_ends_endless_epochs)
{
    struct world w = {.end = 0};
    struct hr_iter_options options;
    struct outcome *o;

    hr_iter_options_init(&options);
    options.epochs = 0;
    o = run(GRAPH(ENDLESS BATCH(8)), &w, 2, &options);
    CHECK_ERR(HR_ERR_END, o->code);
    CHECK_EQ_INT(o->batches, 0);
    outcome_free(o);
}

TEST(ranks_share_a_source_that_ends)
{
    int64_t records = 0;

    for (int rank = 0; rank < 3; rank++) {
        struct world w = {.end = 100};
        struct hr_iter_options options;
        struct outcome *o;

        hr_iter_options_init(&options);
        options.rank = rank;
        options.world = 3;
        o = run(GRAPH(ENDLESS BATCH(8)), &w, 2, &options);
        CHECK_ERR(HR_ERR_END, o->code);
        records += o->records;
        outcome_free(o);
    }
    CHECK_EQ_INT(records, 100);
}

/* ---- allocations that fail ---- */

static bool
survives(const char *text, int threads, enum hr_on_error on_error, uint64_t nth)
{
    struct world w = {.end = 40, .every = 9};
    struct hr_iter_options options;
    struct outcome *o;
    uint64_t calls;

    hr_iter_options_init(&options);
    options.on_error = on_error;
    options.ordered = false;
    hr__fault_arm(HR_FAULT_ALLOC, nth);
    o = run(text, &w, threads, &options);
    calls = hr__fault_calls();
    hr__fault_arm(0, 0);
    CHECK(o->code != HR_OK);
    if (calls < nth)
        CHECK_ERR(HR_ERR_END, o->code);
    if (o->code != HR_ERR_END)
        CHECK(o->error.message[0] != '\0');
    outcome_free(o);
    return calls >= nth;
}

TEST(any_allocation_may_fail)
{
    static const char *const graphs[] = {
        GRAPH(ENDLESS MAP BATCH(8)),
        GRAPH(CODE_RANGE(40) THIRD EXPAND BATCH(8)),
        GRAPH(RANGE(40) TEXTS BATCH(8) MAP_BATCH),
    };

    for (size_t i = 0; i < 3; i++)
        for (int threads = 0; threads < 3; threads += 2)
            for (uint64_t nth = 1;
                 survives(graphs[i], threads,
                          i == 1 ? HR_ON_ERROR_SUBSTITUTE : HR_ON_ERROR_SKIP, nth);)
                nth += nth < 400 ? 1 : 37;
}
