/*
 * tests/contract/rows_op.c - a source that makes many records in one call, and the same
 * source record by record: nothing but speed may tell them apart.
 *
 * Calls end early at places drawn by record, with junk after them; one record in eleven
 * is bad. Numbers and vectors have columns, texts of differing length have none; the
 * longer ones own their bytes.
 */
#include "tests/contract/contract.h"

#include <stdatomic.h>
#include <stdio.h>

#include "core/alloc.h"
#include "core/hash.h"

struct rows {
    int64_t n;
    bool single;
    const char *value, *vector, *text;
};

static const struct hr_param rows_params[] = {
    HR_P_INT(struct rows, n, .required = true, HR_RANGE(0, 1e15), .unit = "records",
             .help = "number of records"),
    HR_P_BOOL(struct rows, single, .fallback = "false", .not_identity = true,
              .help = "makes no two at once"),
    HR_P_FIELD(struct rows, value, .fallback = "value", .access = HR_ACCESS_WRITE,
               .help = "a number"),
    HR_P_FIELD(struct rows, text, .fallback = "text", .access = HR_ACCESS_WRITE,
               .help = "a text"),
    HR_P_FIELD(struct rows, vector, .fallback = "vector", .access = HR_ACCESS_WRITE,
               .help = "three numbers"),
};
#define VECTOR 3
#define TEXT_MAX 300

static atomic_ullong made_at_once;

static enum hr_err rows_infer(struct hr_infer *infer)
{
    infer->fields[0]->dtype = HR_I64;
    infer->fields[1]->kind = HR_FIELD_BYTES;
    infer->fields[2]->dtype = HR_I16;
    infer->fields[2]->ndim = 1;
    hr__dim_set(&infer->fields[2]->dims[0], VECTOR);
    infer->output->records = ((const struct rows *)infer->params)->n;
    return HR_OK;
}

static uint64_t rows_count(const void *params, const void *state)
{
    (void)state;
    return (uint64_t)((const struct rows *)params)->n;
}

static uint64_t drawn(uint64_t index, uint64_t seed)
{
    return hr__hash64(&index, sizeof index, seed);
}

static bool is_bad(uint64_t index)
{
    return drawn(index, 1) % 11 == 0;
}

static void write_vector(uint64_t index, char *to)
{
    for (int i = 0; i < VECTOR; i++) {
        int16_t item = (int16_t)drawn(index, (uint64_t)i + 2);

        memcpy(to + sizeof item * (size_t)i, &item, sizeof item);
    }
}

static enum hr_err set_text(struct hr_op_ctx *ctx, uint64_t index, struct hr_value *value)
{
    size_t bytes = drawn(index, 9) % TEXT_MAX;
    struct hr_buffer *owner = NULL;
    void *memory;

    if (bytes > TEXT_MAX / 2) {
        if (hr_pool_get(ctx->thread->pool, bytes, &owner) != HR_OK)
            return hr__fail(ctx->error, HR_ERR_MEMORY, "out of memory");
        memory = hr_buffer_data(owner);
    } else {
        HR_TRY(hr__op_alloc(ctx, bytes + 1, &memory));
    }
    memset(memory, 'a' + (int)(index % 26), bytes);
    hr__value_set_bytes(value, memory, bytes, owner);
    return HR_OK;
}

static enum hr_err rows_apply(struct hr_op_ctx *ctx)
{
    int64_t dims[] = {VECTOR};
    void *number, *vector;

    if (is_bad(ctx->id->index))
        return hr__fail(ctx->error, HR_ERR_FORMAT, "a bad row");
    HR_TRY(hr__op_alloc(ctx, sizeof(int64_t), &number));
    HR_TRY(hr__op_alloc(ctx, VECTOR * sizeof(int16_t), &vector));
    memcpy(number, &ctx->id->index, sizeof(int64_t));
    write_vector(ctx->id->index, vector);
    hr__value_set_tensor(ctx->fields[0], HR_I64, 0, NULL, number, NULL);
    hr__value_set_tensor(ctx->fields[2], HR_I16, 1, dims, vector, NULL);
    return set_text(ctx, ctx->id->index, ctx->fields[1]);
}

static void
write_columns(const struct hr_source_rows *rows, uint32_t i, const void *number)
{
    if (rows->columns[0] != NULL)
        memcpy(rows->columns[0] + i * sizeof(int64_t), number, sizeof(int64_t));
    if (rows->columns[2] != NULL)
        write_vector(rows->indices[i], rows->columns[2] + i * VECTOR * sizeof(int16_t));
}

static uint32_t rows_apply_rows(struct hr_op_ctx *ctx, const struct hr_source_rows *rows)
{
    uint64_t junk = 0xdeadbeefdeadbeef;
    uint32_t i = 0;

    CHECK(rows->columns[0] != NULL && rows->columns[1] == NULL);
    if (((const struct rows *)ctx->params)->single)
        return 0;
    for (; i < rows->count && !is_bad(rows->indices[i]); i++) {
        CHECK(rows->values[1][i * rows->stride].kind == HR_VALUE_NONE);
        write_columns(rows, i, &rows->indices[i]);
        if (set_text(ctx, rows->indices[i], &rows->values[1][i * rows->stride]) !=
                HR_OK ||
            drawn(rows->indices[i], 5) % 7 == 0)
            break;
    }
    if (i < rows->count) { /* of a record that is not made */
        write_columns(rows, i, &junk);
        (void)hr__fail(ctx->error, HR_ERR_STATE, "junk");
    }
    atomic_fetch_add(&made_at_once, i);
    return i;
}

static const struct hr_op rows_op = {
    .name = "test.rows",
    .summary = "numbers, vectors and texts",
    .version = 1,
    .kind = HR_OP_SOURCE,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(rows_params, struct rows),
    .infer = rows_infer,
    .apply = rows_apply,
    .source = {.count = rows_count, .apply_rows = rows_apply_rows},
};
CONTRACT_OP(rows_op)

#define RAGGED(size) "  - batch.stack: {size: " #size ", ragged: true}\n"
#define SHUFFLE "  - order.shuffle: {}\n"

static struct outcome_job job_of(bool single, const char *nodes)
{
    static char text[2][1024];

    snprintf(text[single], sizeof text[0],
             "headrace: 1\npipeline:\n  - test.rows: {n: 197, single: %s}\n%s",
             single ? "true" : "false", nodes);
    return contract_job(text[single]);
}

/* Every way to run the graph gives what records one by one give, and so do states. */
static void check(const char *nodes, bool at_once)
{
    struct outcome_job job = job_of(true, nodes);
    struct outcome *single, *rows;

    job.states = true;
    single = outcome_run(&job);
    job = job_of(false, nodes);
    atomic_store(&made_at_once, 0);
    outcome_free(outcome_run(&job));
    CHECK((atomic_load(&made_at_once) > 0) == at_once);
    rows = contract_check(job);
    outcome_check_same(single, rows, 0, "many records at once");
    for (size_t i = 0; i < single->batches; i++)
        CHECK_EQ_STR(single->states[i], rows->states[i]);
    outcome_free(single);
    outcome_free(rows);
}

TEST(batches_have_one_digest)
{
    check(RAGGED(9), true);
    check(SHUFFLE RAGGED(7), true);
    check("  - order.repeat: {count: 2}\n" SHUFFLE RAGGED(64), true);
}

TEST(windows_and_batches_of_batches_have_one_digest)
{
    check("  - order.shuffle: {window: 10}\n" RAGGED(8), true);
    check(SHUFFLE RAGGED(3) RAGGED(2), true);
}

TEST(steps_after_the_source_get_records_one_by_one)
{
    check(SHUFFLE "  - record.filter: {expr: \"value % 3 != 1\"}\n" RAGGED(7), false);
}

TEST(bad_records_are_substituted_alike)
{
    struct outcome_job jobs[] = {job_of(true, SHUFFLE RAGGED(10)),
                                 job_of(false, SHUFFLE RAGGED(10))};
    struct outcome *made[2];

    for (int i = 0; i < 2; i++) {
        jobs[i].options.on_error = HR_ON_ERROR_SUBSTITUTE;
        outcome_job_threads(&jobs[i], i);
        made[i] = outcome_run(&jobs[i]);
    }
    CHECK_ERR(HR_ERR_END, made[0]->code);
    CHECK_EQ_INT(made[0]->records, 2 * 197);
    outcome_check_same(made[0], made[1], 0, "substitutes");
    outcome_free(made[0]);
    outcome_free(made[1]);
}

TEST(a_run_fails_at_the_first_bad_record)
{
    struct outcome_job job = job_of(false, RAGGED(10));
    struct outcome *made;
    uint64_t bad = 0;
    char place[128];

    while (!is_bad(bad))
        bad++;
    snprintf(place, sizeof place, "node 'test.rows' (test.rows): a bad row (record %llu)",
             (unsigned long long)bad);
    job.options.on_error = HR_ON_ERROR_FAIL;
    made = outcome_run(&job);
    CHECK_ERR(HR_ERR_FORMAT, made->code);
    CHECK_EQ_STR(made->error.message, place);
    outcome_free(made);
}

TEST(counts_of_nodes_are_those_of_records_one_by_one)
{
    struct outcome_job jobs[] = {job_of(true, SHUFFLE RAGGED(10)),
                                 job_of(false, SHUFFLE RAGGED(10))};
    struct outcome *made[2];

    for (int i = 0; i < 2; i++)
        made[i] = outcome_run(&jobs[i]);
    for (int node = 0; node < 3; node++) {
        CHECK_EQ_INT(made[0]->nodes[node].records, made[1]->nodes[node].records);
        CHECK_EQ_INT(made[0]->nodes[node].records_out, made[1]->nodes[node].records_out);
        CHECK_EQ_INT(made[0]->nodes[node].errors, made[1]->nodes[node].errors);
    }
    CHECK(made[1]->nodes[0].seconds > 0 && made[1]->nodes[0].bytes_written > 0);
    outcome_free(made[0]);
    outcome_free(made[1]);
}

TEST(missing_memory_fails_the_run_or_changes_nothing)
{
    struct outcome_job job = job_of(false, RAGGED(10));
    struct outcome *whole;
    uint64_t nth = 1, calls;

    job.options.epochs = 1;
    whole = outcome_run(&job);
    do {
        struct outcome *other;

        hr__fault_arm(HR_FAULT_ALLOC, nth);
        other = outcome_run(&job);
        calls = hr__fault_calls();
        hr__fault_arm(0, 0);
        if (other->code == HR_ERR_END)
            outcome_check_same(whole, other, 0, "after a failed allocation");
        else
            CHECK_ERR(HR_ERR_MEMORY, other->code);
        outcome_free(other);
    } while (nth++ <= calls);
    outcome_free(whole);
}
