/*
 * tests/contract/bucket_op.c - a sequencer that replays: lists are gathered in buckets by
 * length, and a bucket that is full becomes a padded batch, whatever the others hold.
 *
 * Records in buckets are not written down, so a run resumes where all were empty. To
 * bound what is run again, all buckets are emptied after every `window` records.
 */
#include "tests/contract/contract.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "ops/batch.h"
#include "ops/stack.h"

#define BUCKETS_MAX 8

struct bucket {
    const char *field;
    struct hr_ints bounds;
    int64_t size, window;
};

static const struct hr_param bucket_params[] = {
    HR_P_FIELD(struct bucket, field, .fallback = "tokens", .access = HR_ACCESS_READ,
               .help = "the lists whose lengths count"),
    HR_P_INTS(struct bucket, bounds, .required = true, .items_min = 1,
              .items_max = BUCKETS_MAX - 1, HR_RANGE(0, 1e9),
              .help = "the first length of each bucket but the first, in order"),
    HR_P_INT(struct bucket, size, .required = true, HR_RANGE(1, 1 << 16),
             .unit = "records", .help = "records in a batch"),
    HR_P_INT(struct bucket, window, .fallback = "64", HR_RANGE(1, 1 << 20),
             .unit = "records", .help = "empty all buckets after this many"),
};

static enum hr_err bucket_infer(struct hr_infer *infer)
{
    const struct bucket *p = infer->params;

    for (int i = 1; i < p->bounds.count; i++)
        if (p->bounds.values[i] <= p->bounds.values[i - 1])
            return hr__infer_fail(infer, "bounds", HR_ERR_RANGE, "bounds must increase");
    infer->output->records = -1;
    return hr__infer_batch(infer, p->size, false, false);
}

struct held {
    int64_t count;
    struct hr_record_id first;
    struct hr_value *rows; /* size x fields */
};

struct buckets {
    const struct bucket *params;
    const struct hr_schema *schema; /* of one record */
    struct hr_pool *pool;
    size_t field;
    int64_t seen; /* of the window */
    bool emptying;
    int count;
    struct held held[BUCKETS_MAX];
};

static void clear(const struct buckets *s, struct held *held)
{
    for (size_t i = 0; i < (size_t)held->count * s->schema->count; i++)
        hr__value_clear(&held->rows[i]);
    held->count = 0;
}

static void bucket_end(void *sequencer)
{
    struct buckets *s = sequencer;

    for (int i = 0; i < s->count; i++) {
        if (s->held[i].rows != NULL)
            clear(s, &s->held[i]);
        hr__free(s->held[i].rows);
    }
    hr__free(s);
}

static enum hr_err bucket_begin(const struct hr_sequence_begin *begin, void **sequencer)
{
    struct buckets *s = *sequencer;

    if (s == NULL) {
        s = hr__calloc(1, sizeof *s);
        if (s == NULL)
            return hr__fail(begin->error, HR_ERR_MEMORY, "out of memory");
        s->params = begin->params;
        s->schema = begin->input;
        s->pool = begin->pool;
        s->count = s->params->bounds.count + 1;
        while (strcmp(s->schema->fields[s->field].name, s->params->field) != 0)
            s->field++;
        for (int i = 0; i < s->count; i++) {
            s->held[i].rows = hr__calloc((size_t)s->params->size * (s->schema->count + 1),
                                         sizeof(struct hr_value));
            if (s->held[i].rows != NULL)
                continue;
            bucket_end(s);
            return hr__fail(begin->error, HR_ERR_MEMORY, "out of memory");
        }
    }
    s->seen = 0;
    s->emptying = false;
    *sequencer = s;
    return HR_OK;
}

static struct held *bucket_of(struct buckets *s, const struct hr_value *list)
{
    int64_t length = list->ndim > 0 ? list->dims[0] : 0;
    int at = 0;

    while (at < s->params->bounds.count && length >= s->params->bounds.values[at])
        at++;
    return &s->held[at];
}

static enum hr_err
bucket_add(void *sequencer, struct hr_sequence_record *record,
           enum hr_sequence_verdict *ret_verdict, struct hr_error *error)
{
    struct buckets *s = sequencer;
    struct held *held = bucket_of(s, &record->values[s->field]);
    size_t fields = s->schema->count;

    (void)error;
    assert(held->count < s->params->size && !s->emptying);
    if (held->count == 0)
        held->first = record->id;
    memcpy(&held->rows[(size_t)held->count * fields], record->values,
           fields * sizeof *record->values);
    memset(record->values, 0, fields * sizeof *record->values);
    held->count++;
    s->seen = (s->seen + 1) % s->params->window;
    s->emptying = s->seen == 0;
    *ret_verdict = s->emptying || held->count == s->params->size ? HR_SEQUENCE_READY
                                                                 : HR_SEQUENCE_HELD;
    return HR_OK;
}

/* The next bucket to give out, or NULL. */
static struct held *ready(struct buckets *s)
{
    for (int i = 0; i < s->count; i++)
        if (s->held[i].count == s->params->size || (s->emptying && s->held[i].count > 0))
            return &s->held[i];
    return NULL;
}

static enum hr_err bucket_next(void *sequencer, struct hr_sequence_record *record,
                               bool *ret_any, bool *ret_more, struct hr_error *error)
{
    struct buckets *s = sequencer;
    struct held *held = ready(s);
    struct hr_stack_spec spec = {.size = s->params->size, .pad = true, .pad_multiple = 1};
    enum hr_err code;

    *ret_any = held != NULL;
    *ret_more = false;
    if (held == NULL)
        return HR_OK;
    record->id = held->first;
    record->records = held->count;
    code = hr__stack_join(s->pool, s->schema, held->count, NULL, held->rows,
                          s->schema->count, &spec, record->values, error);
    clear(s, held);
    *ret_more = ready(s) != NULL;
    s->emptying = s->emptying && *ret_more;
    return code;
}

static enum hr_err
bucket_flush(void *sequencer, enum hr_sequence_flush why, struct hr_error *error)
{
    struct buckets *s = sequencer;

    (void)why, (void)error;
    s->emptying = true;
    if (ready(s) == NULL)
        s->emptying = false;
    return HR_OK;
}

static uint64_t bucket_held_records(const void *sequencer)
{
    const struct buckets *s = sequencer;
    uint64_t records = 0;

    for (int i = 0; i < s->count; i++)
        records += (uint64_t)s->held[i].count;
    return records;
}

static bool bucket_save(const void *sequencer, struct hr_str *out)
{
    const struct buckets *s = sequencer;

    if (bucket_held_records(s) > 0)
        return false;
    if (s->seen > 0)
        hr__str_addf(out, "%" PRId64, s->seen);
    return true;
}

static enum hr_err
bucket_restore(void *sequencer, const char *text, struct hr_error *error)
{
    struct buckets *s = sequencer;
    char *end;

    s->seen = strtoll(text, &end, 10);
    if (*text < '1' || *text > '9' || *end != '\0' || s->seen >= s->params->window)
        return hr__fail(error, HR_ERR_FORMAT, "\"%.40s\" is no number of records", text);
    return HR_OK;
}

static uint64_t bucket_held_bytes(const void *sequencer)
{
    const struct buckets *s = sequencer;
    uint64_t bytes = 0;

    for (int i = 0; i < s->count; i++)
        for (size_t k = 0; k < (size_t)s->held[i].count * s->schema->count; k++)
            bytes += s->held[i].rows[k].bytes;
    return bytes;
}

static uint64_t
bucket_holds(const void *params, const void *state, const struct hr_schema *input)
{
    (void)state, (void)input;
    return (uint64_t)((const struct bucket *)params)->window;
}

static const struct hr_op bucket_op = {
    .name = "test.bucket",
    .summary = "batches of lists of similar length",
    .version = 1,
    .kind = HR_OP_SEQUENCE,
    .traits = HR_TRAIT_PURE | HR_TRAIT_GROWS,
    HR_PARAMS(bucket_params, struct bucket),
    .infer = bucket_infer,
    .sequence = {.begin = bucket_begin,
                 .add = bucket_add,
                 .next = bucket_next,
                 .flush = bucket_flush,
                 .save = bucket_save,
                 .restore = bucket_restore,
                 .end = bucket_end,
                 .held_bytes = bucket_held_bytes,
                 .holds = bucket_holds,
                 .replays = true},
};
CONTRACT_OP(bucket_op)

/* A line of words as the list of its letters. */
struct letters {
    const char *field, *to;
};

static const struct hr_param letters_params[] = {
    HR_P_FIELD(struct letters, field, .fallback = "text", .access = HR_ACCESS_READ,
               .help = "the text"),
    HR_P_FIELD(struct letters, to, .fallback = "tokens", .access = HR_ACCESS_WRITE,
               .help = "the field for its letters"),
};

static enum hr_err letters_infer(struct hr_infer *infer)
{
    infer->fields[1]->dtype = HR_U8;
    infer->fields[1]->ndim = 1;
    hr__dim_unknown(&infer->fields[1]->dims[0], "letters");
    return HR_OK;
}

static enum hr_err letters_apply(struct hr_op_ctx *ctx)
{
    struct hr_value *text = ctx->fields[0];
    int64_t count = (int64_t)text->bytes;
    void *memory;

    HR_TRY(hr__op_alloc(ctx, text->bytes + 1, &memory));
    if (count > 0)
        memcpy(memory, text->data, text->bytes);
    hr__value_set_tensor(ctx->fields[1], HR_U8, 1, &count, memory, NULL);
    return HR_OK;
}

static const struct hr_op letters_op = {
    .name = "test.letters",
    .summary = "text as a list of numbers",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(letters_params, struct letters),
    .infer = letters_infer,
    .apply = letters_apply,
};
CONTRACT_OP(letters_op)

/* ---- tests ---- */

#define FAIL "  - debug.fail: {probability: 0.1}\n"
static struct outcome_job job_after(const char *more)
{
    return contract_lines(90, 9, more);
}

TEST(buckets_have_one_digest)
{
    outcome_free(contract_check(
        job_after("  - order.shuffle: {}\n" FAIL "  - test.letters: {}\n"
                  "  - test.bucket: {bounds: [8, 20], size: 4, window: 32}\n")));
}

TEST(buckets_after_a_filter_are_unbatched)
{
    outcome_free(contract_check(
        job_after("  - test.letters: {}\n" FAIL
                  "  - record.filter: {expr: \"tokens.length != 3\"}\n"
                  "  - test.bucket: {bounds: [1, 12, 30], size: 5, window: 17}\n"
                  "  - batch.unbatch: {}\n" FAIL "  - batch.pad: {size: 6}\n")));
}

TEST(a_limit_on_records_ends_with_the_batch_that_reaches_it)
{
    struct outcome_job job =
        job_after("  - test.letters: {}\n"
                  "  - test.bucket: {bounds: [8, 20], size: 4, window: 64}\n");
    struct outcome *o;

    job.options.records_max = 21;
    o = contract_check(job);
    CHECK(o->records >= 21 && o->records < 25);
    outcome_free(o);
}

TEST(batches_hold_lists_of_one_bucket_and_every_line_once)
{
    struct outcome_job job =
        job_after("  - test.letters: {}\n"
                  "  - test.bucket: {bounds: [8, 20], size: 4, window: 32}\n");
    struct contract_batches batches;
    int64_t records = 0;

    job.options.epochs = 1;
    contract_take(&job, &batches);
    for (size_t b = 0; b < batches.count; b++) {
        struct hr_field_view text = contract_field(batches.items[b], "text");
        struct hr_field_view tokens = contract_field(batches.items[b], "tokens");
        int64_t bucket = -1;

        CHECK(text.dims[0] <= 4 && tokens.ndim == 2);
        for (int64_t i = 0; i < text.dims[0]; i++) {
            int64_t from = text.splits[0][i], length = text.splits[0][i + 1] - from;
            const char *row = (const char *)tokens.data + i * tokens.dims[1];

            CHECK(bucket < 0 || bucket == (length >= 8) + (length >= 20));
            bucket = (length >= 8) + (length >= 20);
            CHECK_BYTES(row, (const char *)text.data + from, (size_t)length);
            for (int64_t k = length; k < tokens.dims[1]; k++)
                CHECK_EQ_INT(row[k], 0);
        }
        records += text.dims[0];
    }
    CHECK_EQ_INT(records, 90);
    contract_drop(&batches);
}
