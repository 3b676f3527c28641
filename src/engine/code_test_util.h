/*
 * engine/code_test_util.h - shared by the tests of user code: functions, runs of graphs
 * with them, comparisons.
 */
#ifndef HR_ENGINE_CODE_TEST_UTIL_H
#define HR_ENGINE_CODE_TEST_UTIL_H

#include "tests/support/check.h"
#include "tests/support/outcome.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/alloc.h"
#include "headrace/code.h"

/* ---- code ---- */

/* Shared by all user code of a test. */
struct world {
    atomic_int entered, left, calls, inside, most, released;
    int64_t end;   /* of a source without a count */
    int64_t every; /* every n-th record fails; 0: none */
};

static inline void *enter(void *user)
{
    struct world *w = user;

    atomic_fetch_add(&w->entered, 1);
    return w;
}

static inline void leave(void *user, void *token)
{
    struct world *w = user;

    CHECK(token == w);
    atomic_fetch_add(&w->left, 1);
}

static inline void release(void *user)
{
    atomic_fetch_add(&((struct world *)user)->released, 1);
}

static inline int64_t get_int(struct hr_code_call *call, size_t at)
{
    struct hr_field_view view;
    int64_t value = -1;

    CHECK_OK(hr_code_input(call, at, &view));
    CHECK(view.dtype == HR_I64 && view.ndim == 0 && view.buffer == NULL);
    memcpy(&value, view.data, sizeof value);
    return value;
}

static inline enum hr_err
put_int(struct hr_code_call *call, size_t at, int64_t value, struct hr_error *reterr)
{
    enum hr_err code;
    void *memory;

    code = hr_code_room(call, at, HR_I64, 0, NULL, &memory, reterr);
    if (code == HR_OK)
        memcpy(memory, &value, sizeof value);
    return code;
}

static inline void count_in(struct world *w)
{
    int now = atomic_fetch_add(&w->inside, 1) + 1, most = atomic_load(&w->most);

    atomic_fetch_add(&w->calls, 1);
    while (now > most && !atomic_compare_exchange_weak(&w->most, &most, now))
        continue;
}

static inline bool fails(const struct world *w, const struct hr_code_call *call)
{
    struct hr_code_record record;

    hr_code_record(call, &record);
    return w->every > 0 && (int64_t)(record.index + 1) % w->every == 0;
}

static inline enum hr_err fail(struct hr_code_call *call, struct hr_error *reterr)
{
    hr_code_detail(call, "Traceback:\n  line 1\n");
    reterr->code = HR_ERR_RANGE;
    snprintf(reterr->message, sizeof reterr->message, "it does not like this one");
    return HR_ERR_RANGE;
}

/* The record's number. */
static inline enum hr_err
call_range(void *user, struct hr_code_call *call, struct hr_error *e)
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

static inline enum hr_err
call_map(void *user, struct hr_code_call *call, struct hr_error *e)
{
    struct world *w = user;
    enum hr_err code;

    count_in(w);
    code = fails(w, call) ? fail(call, e) : put_int(call, 0, get_int(call, 0) * 2 + 1, e);
    atomic_fetch_sub(&w->inside, 1);
    return code;
}

static inline enum hr_err
call_third(void *user, struct hr_code_call *call, struct hr_error *e)
{
    struct world *w = user;

    count_in(w);
    atomic_fetch_sub(&w->inside, 1);
    if (fails(w, call))
        return fail(call, e);
    hr_code_keep(call, get_int(call, 0) % 3 != 1);
    return HR_OK;
}

/* value % 3 children, each with the value and its number. */
static inline enum hr_err
call_expand(void *user, struct hr_code_call *call, struct hr_error *e)
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
static inline enum hr_err
call_key(void *user, struct hr_code_call *call, struct hr_error *e)
{
    uint64_t key[2];

    (void)user;
    hr_code_key(call, key);
    return put_int(call, 0, (int64_t)(key[0] ^ key[1]), e);
}

/* A different outcome for each value. */
static inline enum hr_err
call_shapes(void *user, struct hr_code_call *call, struct hr_error *e)
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
static inline enum hr_err
call_text(void *user, struct hr_code_call *call, struct hr_error *e)
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
static inline enum hr_err
call_batch(void *user, struct hr_code_call *call, struct hr_error *e)
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

/* An image of height 6 and width 5 that counts up from the value. */
static inline enum hr_err
call_tile(void *user, struct hr_code_call *call, struct hr_error *e)
{
    int64_t dims[3] = {6, 5, 3}, value = get_int(call, 0);
    enum hr_err code;
    void *memory;

    (void)user;
    code = hr_code_room(call, 0, HR_U8, 3, dims, &memory, e);
    for (size_t i = 0; code == HR_OK && i < 90; i++)
        ((uint8_t *)memory)[i] = (uint8_t)(i + (size_t)value);
    return code;
}

/* A hash of the bytes of a contiguous or strided image. */
static inline int64_t image_sum(struct hr_code_call *call, size_t at)
{
    struct hr_field_view view;
    int64_t sum = 0, place = 1;
    size_t item;

    CHECK_OK(hr_code_input(call, at, &view));
    CHECK(view.data != NULL && view.ndim == 3);
    item = hr_dtype_size(view.dtype);
    for (int64_t y = 0; y < view.dims[0]; y++)
        for (int64_t x = 0; x < view.dims[1]; x++)
            for (int64_t c = 0; c < view.dims[2]; c++)
                for (size_t b = 0; b < item; b++)
                    sum += place++ * ((const uint8_t *)view.data + y * view.strides[0] +
                                      x * view.strides[1] + c * view.strides[2])[b];
    return sum;
}

static inline enum hr_err
call_sum(void *user, struct hr_code_call *call, struct hr_error *e)
{
    (void)user;
    return put_int(call, 0, image_sum(call, 0), e);
}

static inline enum hr_err
call_even(void *user, struct hr_code_call *call, struct hr_error *e)
{
    (void)user;
    (void)e;
    hr_code_keep(call, image_sum(call, 0) % 2 == 0);
    return HR_OK;
}

/* Two children with the image's sum. */
static inline enum hr_err
call_sums(void *user, struct hr_code_call *call, struct hr_error *e)
{
    enum hr_err code = HR_OK;

    (void)user;
    for (int64_t i = 0; i < 2 && code == HR_OK; i++) {
        code = hr_code_child(call, e);
        if (code == HR_OK)
            code = put_int(call, 0, image_sum(call, 0) + i, e);
    }
    return code;
}

struct piece {
    const char *name;
    enum hr_err (*call)(void *, struct hr_code_call *, struct hr_error *);
};

static const struct piece codes[] = {
    {"range",  call_range },
    {"map",    call_map   },
    {"third",  call_third },
    {"expand", call_expand},
    {"key",    call_key   },
    {"shapes", call_shapes},
    {"text",   call_text  },
    {"batch",  call_batch },
    {"tile",   call_tile  },
    {"sum",    call_sum   },
    {"even",   call_even  },
    {"sums",   call_sums  },
};
#define CODES (sizeof codes / sizeof codes[0])

/* ---- runs ---- */

/* Registers these functions and what `more` adds; NULL: nothing. */
struct set_up {
    struct world *world;
    enum hr_err (*more)(void *user, struct hr_graph *graph);
    void *user;
};

static inline enum hr_err
give_codes(void *user, struct hr_graph *graph, struct hr_error *reterr)
{
    const struct set_up *up = user;
    enum hr_err code = HR_OK;

    for (size_t i = 0; code == HR_OK && i < CODES; i++) {
        struct hr_code made = {codes[i].name, up->world, codes[i].call,
                               enter,         leave,     release};

        code = hr_graph_code(graph, codes[i].name, &made, reterr);
    }
    return code == HR_OK && up->more != NULL ? up->more(up->user, graph) : code;
}

static inline struct outcome_job
code_job(const char *text, struct set_up *up, int threads,
         const struct hr_iter_options *options)
{
    struct outcome_job job = outcome_job_with(text, threads, options);

    job.first = true;
    job.prepare = give_codes;
    job.user = up;
    return job;
}

/* Returns NULL on failure, with *reterr (may be NULL). */
static inline struct hr_graph *
load(const char *text, struct world *w, struct hr_error *reterr)
{
    struct set_up up = {w, NULL, NULL};
    struct outcome_job job = code_job(text, &up, 0, NULL);

    return outcome_graph(&job, reterr);
}

static inline struct outcome *
run_with(const char *text, struct world *w, int threads,
         const struct hr_iter_options *options,
         enum hr_err (*more)(void *user, struct hr_graph *graph), void *user)
{
    struct set_up up = {w, more, user};
    struct outcome_job job = code_job(text, &up, threads, options);
    struct outcome *o = outcome_run(&job);

    CHECK_EQ_INT(w->entered, w->left);
    return o;
}

static inline struct outcome *
run(const char *text, struct world *w, int threads, const struct hr_iter_options *options)
{
    return run_with(text, w, threads, options, NULL, NULL);
}

static inline void
check_equivalent(const char *text, struct world *w, const struct hr_iter_options *options)
{
    struct set_up up = {w, NULL, NULL};

    outcome_check_threads_and_restarts(code_job(text, &up, 0, options));
    CHECK_EQ_INT(w->entered, w->left);
}

/* Checks a run in which allocation `nth` of `calls` failed: if it failed, it has a
 * message. */
static inline void check_survived(const struct outcome *o, uint64_t calls, uint64_t nth)
{
    CHECK(o->code != HR_OK);
    if (calls < nth)
        CHECK_ERR(HR_ERR_END, o->code);
    if (o->code != HR_ERR_END)
        CHECK(o->error.message[0] != '\0');
}

/* Checks that the two graphs give the same batches. */
static inline void check_alike(const char *a, const char *b)
{
    struct world w = {.end = INT64_MAX};
    struct outcome *left = run(a, &w, 2, NULL), *right = run(b, &w, 2, NULL);

    if (left->code != HR_ERR_END || right->code != HR_ERR_END)
        check_failed(__FILE__, __LINE__, "%s%s", left->error.message,
                     right->error.message);
    CHECK(left->batches > 0);
    outcome_check_same(left, right, 0, a);
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
#define MAP_BATCH                                                                        \
    "  - code.map: {code: batch, fields: [value, text], outputs: [\"value: "             \
    "int64[batch]\", \"text: strings[batch]\"]}\n"
#define KEYS "  - code.map: {code: key, outputs: \"key: int64\"}\n"
#define TILES                                                                            \
    "  - code.map: {code: tile, fields: value, outputs: \"image: uint8[6, 5, 3]\"}\n"
#define SUM "  - code.map: {code: sum, fields: image, outputs: \"sum: int64\"}\n"
#define EVEN "  - code.filter: {code: even, fields: image}\n"
#define SUMS "  - code.expand: {code: sums, fields: image, outputs: \"sum: int64\"}\n"
#define TEXTS "  - code.map: {code: text, outputs: \"text: bytes\"}\n"

#endif
