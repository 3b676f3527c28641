/*
 * engine/outputs_test.c - any batches of a run, made by themselves, are those of the
 * whole run, and so are their states.
 */
#include "engine/outputs.h"

#include "core/rng.h"
#include "engine/engine.h"
#include "engine/engine_test_util.h"
#include "op/op.h"

#define BATCHES_MAX 400

struct known {
    int64_t records, epoch;
    uint64_t hash;
};

static struct known known_of(const struct hr_batch *batch)
{
    struct known k = {hr_batch_records(batch), hr_batch_epoch(batch), 0};

    for (size_t i = 0; i < hr_batch_field_count(batch); i++) {
        struct hr_field_view view;

        CHECK_OK(hr_batch_field(batch, i, &view));
        k.hash = hr__hash64(view.data, view.bytes, k.hash);
        if (view.offsets != NULL)
            k.hash = hr__hash64(view.offsets, 8 * ((size_t)view.dims[0] + 1), k.hash);
    }
    return k;
}

static void check_batch(struct hr_engine *engine, const struct known *wanted)
{
    struct hr_error error = {0};
    struct hr_batch *batch;
    struct known k;

    if (hr__engine_next(engine, UINT64_MAX, &batch, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    k = known_of(batch);
    CHECK_EQ_INT(k.records, wanted->records);
    CHECK_EQ_INT(k.epoch, wanted->epoch);
    CHECK(k.hash == wanted->hash);
    hr_batch_unref(batch);
}

/* No records were begun beyond these batches. */
static void
check_made(struct hr_engine *engine, const struct known *known, uint64_t count)
{
    struct hr_node_stats source;
    uint64_t records = 0;

    for (uint64_t i = 0; i < count; i++)
        records += (uint64_t)known[i].records;
    CHECK_OK(hr__engine_stop(engine, UINT64_MAX, NULL));
    CHECK_OK(hr__engine_node_stats(engine, 0, &source));
    CHECK_EQ_INT(source.records, records);
}

/* A local run that begins at the state; the next batch must be `wanted`, or the end. */
static void check_state(struct hr_graph *graph, const struct hr_iter_options *options,
                        const char *state, const struct known *wanted)
{
    struct hr_iter_options o = *options;
    struct hr_engine *engine;

    o.state = state;
    CHECK_OK(hr__engine_open(graph, &o, &engine, NULL));
    if (wanted != NULL) {
        check_batch(engine, wanted);
    } else {
        struct hr_batch *batch;

        CHECK_ERR(HR_ERR_END, hr__engine_next(engine, UINT64_MAX, &batch, NULL));
    }
    hr__engine_close(engine);
}

static uint64_t run_whole(struct hr_graph *graph, const struct hr_iter_options *options,
                          const struct hr_outputs *outputs, struct known *known)
{
    struct hr_engine *engine;
    struct hr_batch *batch;
    uint64_t count = 0, records = 0;
    enum hr_err code;

    CHECK_OK(hr__engine_open(graph, options, &engine, NULL));
    while ((code = hr__engine_next(engine, UINT64_MAX, &batch, NULL)) == HR_OK) {
        struct hr_str state;
        uint64_t number;

        CHECK(count < BATCHES_MAX);
        known[count] = known_of(batch);
        CHECK_EQ_INT(hr__outputs_before(outputs, count), records);
        CHECK_EQ_INT(hr__outputs_records(outputs, count), known[count].records);
        records += (uint64_t)known[count].records;
        count++;
        hr_batch_unref(batch);
        hr__str_init(&state);
        CHECK_OK(hr__state_print(engine, &state));
        if (hr__outputs_resume(outputs, hr__str_text(&state), &number, NULL) != HR_OK)
            check_failed(__FILE__, __LINE__, "%s", hr__str_text(&state));
        CHECK_EQ_INT(number, count);
        hr__str_finish(&state);
    }
    CHECK_ERR(HR_ERR_END, code);
    hr__engine_close(engine);
    return count;
}

static void check_parts(const struct hr_outputs *outputs, const struct known *known,
                        struct hr_rng *rng)
{
    struct hr_pool *pool = hr_pool_create(0);

    for (int trial = 0; trial < 12 && outputs->end > 0; trial++) {
        uint64_t from = hr__rng_below(rng, outputs->end), within;
        uint64_t until = from + 1 + hr__rng_below(rng, 5), rest;
        struct hr_engine *engine;

        hr__outputs_epoch(outputs, from, &within);
        rest = outputs->batches - within;
        until = until < from + rest ? until : from + rest;
        until = until < outputs->end ? until : outputs->end;
        CHECK_OK(hr__outputs_open(outputs, NULL, from, until, pool, 0, &engine, NULL));
        for (uint64_t i = from; i < until; i++)
            check_batch(engine, &known[i]);
        check_made(engine, &known[from], until - from);
        hr__engine_close(engine);
    }
    hr_pool_unref(pool);
}

/* Rows of packs that begin anywhere are the batches of the run. */
static void check_packs(const struct hr_outputs *outputs, const struct known *known,
                        struct hr_rng *rng)
{
    uint64_t size = hr__outputs_pack_size(outputs, 4096, 2 + hr__rng_below(rng, 9));
    struct hr_graph *packed;

    if (size == 1)
        return;
    CHECK_OK(hr__outputs_pack(outputs, size, &packed, NULL));
    for (int trial = 0; trial < 12 && outputs->end > 0; trial++) {
        uint64_t from = hr__rng_below(rng, outputs->end), within, until, at = from;
        struct hr_engine *engine;

        hr__outputs_epoch(outputs, from, &within);
        until = from + 1 + hr__rng_below(rng, outputs->batches - within);
        until = until < outputs->end ? until : outputs->end;
        CHECK_OK(hr__outputs_open(outputs, packed, from, until, NULL, 0, &engine, NULL));
        while (at < until) {
            struct hr_batch *batch;

            CHECK_OK(hr__engine_next(engine, UINT64_MAX, &batch, NULL));
            CHECK(hr_batch_records(batch) <= (int64_t)size);
            for (int64_t i = 0; i < hr_batch_records(batch); i++) {
                struct hr_batch *row = hr__batch_row(batch, i);
                struct known k = known_of(row);

                CHECK(k.hash == known[at].hash && k.epoch == known[at].epoch);
                CHECK_EQ_INT(k.records, known[at].records);
                hr_batch_unref(row);
                at++;
            }
            hr_batch_unref(batch);
        }
        CHECK_EQ_INT(at, until);
        hr__engine_close(engine);
    }
    hr_graph_unref(packed);
}

static void check_states(struct hr_graph *graph, const struct hr_outputs *outputs,
                         const struct known *known, struct hr_rng *rng)
{
    for (int trial = 0; trial < 8; trial++) {
        uint64_t number =
            trial == 0 ? outputs->end : hr__rng_below(rng, outputs->end + 1);
        uint64_t again;
        struct hr_str state;

        hr__str_init(&state);
        CHECK_OK(hr__outputs_state(outputs, number, &state, NULL));
        CHECK_OK(hr__outputs_resume(outputs, hr__str_text(&state), &again, NULL));
        CHECK_EQ_INT(again, number);
        check_state(graph, &outputs->options, hr__str_text(&state),
                    number < outputs->end ? &known[number] : NULL);
        hr__str_finish(&state);
    }
}

static void
check(const char *text, const struct hr_iter_options *options, struct hr_rng *rng)
{
    static struct known known[BATCHES_MAX];
    struct hr_graph *graph = load(text);
    struct hr_outputs outputs;
    struct hr_error error = {0};

    CHECK_OK(hr_graph_freeze(graph, NULL));
    if (hr__outputs_init(&outputs, graph, options, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    CHECK_EQ_INT(run_whole(graph, options, &outputs, known), outputs.end);
    check_parts(&outputs, known, rng);
    check_packs(&outputs, known, rng);
    check_states(graph, &outputs, known, rng);
    hr_graph_unref(graph);
}

TEST(any_batches_made_by_themselves_are_those_of_the_run)
{
    static const char *const graphs[] = {
        GRAPH(RANGE(103) SHUFFLE BATCH(8)),
        GRAPH(RANGE(103) SHUFFLE "  - batch.stack: {size: 8, drop_last: true}\n"),
        GRAPH(RANGE(40) SHUFFLE),
        GRAPH("  - source.range: {n: 77, field: label}\n" SHUFFLE
              "  - tensor.one_hot: {classes: 80}\n"),
        GRAPH(RANGE(30) "  - order.repeat: {count: 2}\n" SHUFFLE),
        GRAPH(RANGE(60) "  - order.take: {count: 37}\n" BATCH(5)),
        GRAPH(RANGE(30) "  - order.repeat: {count: 2}\n" SHUFFLE BATCH(7)),
        GRAPH(RANGE(5) BATCH(64)),
        GRAPH(RANGE(90) "  - order.shuffle: {window: 9}\n" BATCH(4)),
    };
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (size_t g = 0; g < sizeof graphs / sizeof graphs[0]; g++)
        for (int trial = 0; trial < 6; trial++) {
            struct hr_iter_options options;

            hr_iter_options_init(&options);
            options.threads = 2;
            options.seed = hr__rng_below(&rng, 1000);
            options.epochs = 1 + (int64_t)hr__rng_below(&rng, 3);
            options.epoch_first = (int64_t)hr__rng_below(&rng, 3);
            if (trial % 2 == 1)
                options.records_max = 1 + (int64_t)hr__rng_below(&rng, 150);
            if (trial / 2 > 0) {
                options.world = 1 + (int64_t)hr__rng_below(&rng, 4);
                options.rank = (int64_t)hr__rng_below(&rng, (uint64_t)options.world);
                options.even = (enum hr_even)hr__rng_below(&rng, HR_EVEN_PAD);
            }
            check(graphs[g], &options, &rng);
        }
}

static void
refused(const char *text, const struct hr_iter_options *options, const char *part)
{
    struct hr_graph *graph = load(text);
    struct hr_outputs outputs;
    struct hr_error error = {0};

    CHECK_OK(hr_graph_freeze(graph, NULL));
    CHECK_ERR(HR_ERR_UNSUPPORTED, hr__outputs_init(&outputs, graph, options, &error));
    CHECK_HAS(error.message, part);
    hr_graph_unref(graph);
}

TEST(graphs_and_options_whose_batches_depend_on_those_before_are_refused)
{
    struct hr_iter_options options;

    hr_iter_options_init(&options);
    refused(GRAPH(RANGE(100) DROP_THIRD BATCH(4)), &options, "record.filter");
    refused(GRAPH(RANGE(100) BATCH(5) "  - batch.unbatch\n" BATCH(4)), &options,
            "batch.unbatch");
    refused(GRAPH(RANGE(100) BATCH(4) BATCH(3)), &options, "batches of batches");
    options.on_error = HR_ON_ERROR_SKIP;
    refused(GRAPH(RANGE(100) BATCH(4)), &options, "skipping bad records");
    options.on_error = HR_ON_ERROR_FAIL;
    options.trace = true;
    refused(GRAPH(RANGE(100) BATCH(4)), &options, "traces");
}

/* As hr_iter_save says: other worlds begin where the limit ended. */
TEST(a_limit_may_cut_the_batch_of_a_rank_alone)
{
    struct hr_graph *graph = load(GRAPH(RANGE(100) BATCH(4)));
    struct hr_iter_options options;
    struct hr_outputs outputs;
    struct hr_str state;

    hr_iter_options_init(&options);
    options.world = 1;
    options.records_max = 5;
    CHECK_OK(hr_graph_freeze(graph, NULL));
    CHECK_OK(hr__outputs_init(&outputs, graph, &options, NULL));
    hr__str_init(&state);
    CHECK_OK(hr__outputs_state(&outputs, outputs.end, &state, NULL));
    CHECK_HAS(hr__str_text(&state), "\"end\":[5,0]");
    hr__str_finish(&state);
    hr_graph_unref(graph);
}

TEST(states_that_do_not_fit_are_refused)
{
    struct hr_graph *graph = load(GRAPH(RANGE(100) BATCH(4)));
    struct hr_graph *other = load(GRAPH(RANGE(101) BATCH(4)));
    struct hr_iter_options options;
    struct hr_outputs outputs;
    struct hr_error error = {0};
    struct hr_str state;
    uint64_t number;

    hr_iter_options_init(&options);
    CHECK_OK(hr_graph_freeze(graph, NULL));
    CHECK_OK(hr_graph_freeze(other, NULL));
    CHECK_OK(hr__outputs_init(&outputs, other, &options, NULL));
    hr__str_init(&state);
    CHECK_OK(hr__outputs_state(&outputs, 3, &state, NULL));
    CHECK_OK(hr__outputs_init(&outputs, graph, &options, NULL));
    CHECK_ERR(HR_ERR_STATE,
              hr__outputs_resume(&outputs, hr__str_text(&state), &number, &error));
    CHECK_HAS(error.message, "another graph");
    CHECK_ERR(HR_ERR_FORMAT, hr__outputs_resume(&outputs, "{}", &number, &error));
    hr__str_clear(&state);
    CHECK_OK(hr__outputs_state(&outputs, 3, &state, NULL));
    options.rank = 1;
    options.world = 2;
    CHECK_OK(hr__outputs_init(&outputs, graph, &options, NULL));
    CHECK_ERR(HR_ERR_UNSUPPORTED,
              hr__outputs_resume(&outputs, hr__str_text(&state), &number, &error));
    CHECK_HAS(error.message, "another rank or world");
    hr__str_finish(&state);
    hr_graph_unref(graph);
    hr_graph_unref(other);
}
