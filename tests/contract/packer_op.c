/*
 * tests/contract/packer_op.c - a sequencer whose state spans records and is written down:
 * lists of numbers are joined and cut into rows of one length. What is left of a list
 * begins the next row; the last row of an epoch is padded.
 *
 * A row has the identity of the record that its first number comes from, and is a child
 * of it, because several rows may begin in one record.
 */
#include "tests/contract/contract.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/alloc.h"

#define LIST_MAX 4096 /* numbers of a record: with a row this bounds the state */

struct pack {
    const char *field;
    int64_t length, pad;
};

static const struct hr_param pack_params[] = {
    HR_P_FIELD(struct pack, field, .fallback = "tokens", .access = HR_ACCESS_UPDATE,
               .help = "the lists; other fields are dropped"),
    HR_P_INT(struct pack, length, .required = true, HR_RANGE(1, LIST_MAX),
             .help = "numbers in a row"),
    HR_P_INT(struct pack, pad, .fallback = "-1", HR_RANGE(INT32_MIN, INT32_MAX),
             .help = "what fills the last row"),
};

static enum hr_err pack_infer(struct hr_infer *infer)
{
    const struct pack *p = infer->params;
    struct hr_field *field = infer->fields[0];
    size_t at = (size_t)(field - infer->output->fields);

    if (field->kind != HR_FIELD_TENSOR || field->ndim != 1 || field->dtype != HR_I32)
        return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                              "field \"%s\" is no list of int32", field->name);
    hr__dim_set(&field->dims[0], p->length);
    for (size_t i = infer->output->count; i-- > 0;)
        if (i != at)
            hr__schema_remove(infer->output, i);
    infer->output->records = -1;
    return HR_OK;
}

struct packer {
    const struct pack *params;
    struct hr_pool *pool;
    uint64_t seed;
    size_t field;                    /* in the input */
    struct hr_record_id first, last; /* records of the first number held, of the last */
    uint64_t row;                    /* rows that began in `first` already */
    bool flushing;
    size_t count; /* numbers held */
    int32_t held[2 * LIST_MAX];
};

static enum hr_err pack_begin(const struct hr_sequence_begin *begin, void **sequencer)
{
    struct packer *s = *sequencer;

    if (s == NULL && (s = hr__calloc(1, sizeof *s)) == NULL)
        return hr__fail(begin->error, HR_ERR_MEMORY, "out of memory");
    s->params = begin->params;
    s->pool = begin->pool;
    s->seed = begin->seed;
    s->seed = begin->seed;
    s->flushing = false;
    s->count = 0;
    for (s->field = 0;
         strcmp(begin->input->fields[s->field].name, s->params->field) != 0;)
        s->field++;
    *sequencer = s;
    return HR_OK;
}

static bool is_ready(const struct packer *s)
{
    return s->count >= (size_t)s->params->length || (s->flushing && s->count > 0);
}

static enum hr_err pack_add(void *sequencer, struct hr_sequence_record *record,
                            enum hr_sequence_verdict *ret_verdict, struct hr_error *error)
{
    struct packer *s = sequencer;
    const struct hr_value *list = &record->values[s->field];
    int64_t count = hr__value_count(list);

    if (count > LIST_MAX)
        return hr__fail(error, HR_ERR_LIMIT, "a list of %lld numbers; at most %d fit",
                        (long long)count, LIST_MAX);
    if (s->count == 0) {
        s->first = record->id;
        s->row = 0;
    }
    s->last = record->id;
    hr__value_copy(list, &s->held[s->count]);
    s->count += (size_t)count;
    *ret_verdict = is_ready(s) ? HR_SEQUENCE_READY : HR_SEQUENCE_HELD;
    return HR_OK;
}

static bool same_record(const struct hr_record_id *a, const struct hr_record_id *b)
{
    return a->position == b->position && a->depth == b->depth &&
           memcmp(a->child, b->child, a->depth * sizeof a->child[0]) == 0;
}

/* Takes the first `count` numbers out. All that was held of earlier records is shorter
 * than a row, so the next row begins in the last one. */
static void drop(struct packer *s, size_t count)
{
    s->count -= count;
    memmove(s->held, s->held + count, s->count * sizeof s->held[0]);
    s->row = same_record(&s->first, &s->last) ? s->row + 1 : 0;
    s->first = s->last;
}

static enum hr_err pack_next(void *sequencer, struct hr_sequence_record *record,
                             bool *ret_any, bool *ret_more, struct hr_error *error)
{
    struct packer *s = sequencer;
    size_t length = (size_t)s->params->length;
    size_t count = s->count < length ? s->count : length;
    struct hr_buffer *buffer;
    int32_t *row;

    *ret_any = is_ready(s);
    *ret_more = false;
    if (!*ret_any)
        return HR_OK;
    if (hr_pool_get(s->pool, length * sizeof *row, &buffer) != HR_OK)
        return hr__fail(error, HR_ERR_MEMORY, "no memory for a row");
    row = hr_buffer_data(buffer);
    memcpy(row, s->held, count * sizeof *row);
    for (size_t i = count; i < length; i++)
        row[i] = (int32_t)s->params->pad;
    hr__value_set_tensor(&record->values[0], HR_I32, 1, &s->params->length, row, buffer);
    record->id = s->first;
    hr__record_child(&record->id, s->row);
    drop(s, count);
    *ret_more = is_ready(s);
    return HR_OK;
}

static enum hr_err
pack_flush(void *sequencer, enum hr_sequence_flush why, struct hr_error *error)
{
    (void)why, (void)error;
    ((struct packer *)sequencer)->flushing = true;
    return HR_OK;
}

/* ---- state: numbers with a blank after each ---- */

static void add_number(struct hr_str *out, uint64_t number)
{
    hr__str_addf(out, "%" PRIu64 " ", number);
}

static void add_id(struct hr_str *out, const struct hr_record_id *id)
{
    add_number(out, id->position);
    add_number(out, id->index);
    add_number(out, id->epoch);
    add_number(out, id->draw_epoch);
    add_number(out, id->depth);
    for (uint32_t i = 0; i < id->depth; i++)
        add_number(out, id->child[i]);
}

static bool pack_save(const void *sequencer, struct hr_str *out)
{
    const struct packer *s = sequencer;

    if (s->count == 0)
        return true;
    add_id(out, &s->first);
    add_id(out, &s->last);
    add_number(out, s->row);
    add_number(out, s->count);
    for (size_t i = 0; i < s->count; i++)
        add_number(out, (uint32_t)s->held[i]);
    return true;
}

static bool take(const char **at, uint64_t most, uint64_t *ret_number)
{
    uint64_t number = 0;
    const char *from = *at;

    for (; **at >= '0' && **at <= '9' && number <= most / 10; (*at)++)
        number = 10 * number + (uint64_t)(**at - '0');
    *ret_number = number;
    return *at > from && number <= most && *(*at)++ == ' ';
}

static bool take_32(const char **at, uint64_t most, uint32_t *ret_number)
{
    uint64_t number;

    if (!take(at, most, &number))
        return false;
    *ret_number = (uint32_t)number;
    return true;
}

static bool take_id(const char **at, uint64_t seed, struct hr_record_id *id)
{
    *id = (struct hr_record_id){.seed = seed};
    if (!take(at, HR_INDEX_MAX - 1, &id->position) ||
        !take(at, HR_INDEX_MAX - 1, &id->index) || !take_32(at, UINT32_MAX, &id->epoch) ||
        !take_32(at, UINT32_MAX, &id->draw_epoch) ||
        !take_32(at, HR_CHILD_DEPTH_MAX - 1, &id->depth))
        return false;
    for (uint32_t i = 0; i < id->depth; i++)
        if (!take_32(at, UINT32_MAX, &id->child[i]))
            return false;
    return true;
}

static enum hr_err pack_restore(void *sequencer, const char *text, struct hr_error *error)
{
    struct packer *s = sequencer;
    const char *at = text;
    uint64_t count;

    if (!take_id(&at, s->seed, &s->first) || !take_id(&at, s->seed, &s->last) ||
        !take(&at, LIST_MAX, &s->row) ||
        !take(&at, (uint64_t)s->params->length + LIST_MAX - 1, &count))
        return hr__fail(error, HR_ERR_FORMAT, "the state of a packer is damaged");
    for (s->count = 0; s->count < count; s->count++) {
        uint32_t number;

        if (!take_32(&at, UINT32_MAX, &number))
            return hr__fail(error, HR_ERR_FORMAT, "the state of a packer is damaged");
        s->held[s->count] = (int32_t)number;
    }
    if (*at != '\0' || count == 0)
        return hr__fail(error, HR_ERR_FORMAT, "the state of a packer is damaged");
    return HR_OK;
}

static void pack_end(void *sequencer)
{
    hr__free(sequencer);
}

static const struct hr_op pack_op = {
    .name = "test.pack",
    .summary = "lists to rows of one length",
    .version = 1,
    .kind = HR_OP_SEQUENCE,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(pack_params, struct pack),
    .infer = pack_infer,
    .sequence = {.begin = pack_begin,
                 .add = pack_add,
                 .next = pack_next,
                 .flush = pack_flush,
                 .save = pack_save,
                 .restore = pack_restore,
                 .end = pack_end,
                 .numbers = true},
};
CONTRACT_OP(pack_op)

/* ---- an op that makes lists ---- */

struct lists {
    const char *field, *to;
    int64_t most;
};

static const struct hr_param lists_params[] = {
    HR_P_FIELD(struct lists, field, .fallback = "value", .access = HR_ACCESS_READ,
               .help = "a number"),
    HR_P_FIELD(struct lists, to, .fallback = "tokens", .access = HR_ACCESS_WRITE,
               .help = "the field for the list"),
    HR_P_INT(struct lists, most, .fallback = "20", HR_RANGE(0, LIST_MAX),
             .help = "length of the longest list"),
};

static enum hr_err lists_infer(struct hr_infer *infer)
{
    infer->fields[1]->dtype = HR_I32;
    infer->fields[1]->ndim = 1;
    hr__dim_unknown(&infer->fields[1]->dims[0], "numbers");
    return HR_OK;
}

/* 1000 v, 1000 v + 1, ... */
static enum hr_err lists_apply(struct hr_op_ctx *ctx)
{
    const struct lists *p = ctx->params;
    int64_t value, count;
    struct hr_rng rng;
    void *memory;

    hr__op_rng(ctx, &rng);
    count = (int64_t)hr__rng_below(&rng, (uint64_t)p->most + 1);
    memcpy(&value, ctx->fields[0]->data, sizeof value);
    HR_TRY(hr__op_alloc(ctx, (size_t)count * sizeof(int32_t) + 1, &memory));
    for (int64_t i = 0; i < count; i++)
        ((int32_t *)memory)[i] = (int32_t)(1000 * value + i);
    hr__value_set_tensor(ctx->fields[1], HR_I32, 1, &count, memory, NULL);
    return HR_OK;
}

static const struct hr_op lists_op = {
    .name = "test.lists",
    .summary = "lists of any length",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(lists_params, struct lists),
    .infer = lists_infer,
    .apply = lists_apply,
};
CONTRACT_OP(lists_op)

/* ---- tests ---- */

#define HEAD "headrace: 1\npipeline:\n  - source.range: {n: 70}\n"
#define FAIL "  - debug.fail: {probability: 0.1}\n"
#define BATCH "  - batch.stack: {size: 3}\n"

static void check(const char *text)
{
    outcome_free(contract_check(contract_job(text)));
}

TEST(rows_have_one_digest)
{
    check(HEAD "  - order.shuffle: {}\n" FAIL
               "  - test.lists: {}\n  - test.pack: {length: 16}\n" FAIL BATCH);
}

TEST(rows_that_are_shorter_than_lists_have_one_digest)
{
    check(HEAD "  - test.lists: {most: 9}\n  - test.pack: {length: 4}\n" FAIL BATCH);
}

TEST(rows_are_counted_shuffled_and_packed_again)
{
    check(HEAD "  - record.filter: {expr: \"value % 3 != 1\"}\n"
               "  - test.lists: {}\n  - test.pack: {length: 5}\n"
               "  - order.skip: {count: 2}\n  - order.shuffle: {window: 8}\n"
               "  - order.take: {count: 41}\n"
               "  - test.pack: {length: 7}\n" BATCH);
}

TEST(rows_hold_all_numbers_in_order_and_then_padding)
{
    struct outcome_job job =
        contract_job(HEAD "  - test.lists: {}\n  - test.pack: {length: 16}\n" BATCH);
    struct contract_batches batches;
    int32_t last = -1;
    bool padded = false;

    job.options.epochs = 1;
    contract_take(&job, &batches);
    for (size_t b = 0; b < batches.count; b++) {
        struct hr_field_view rows = contract_field(batches.items[b], "tokens");

        CHECK_EQ_INT(hr_batch_field_count(batches.items[b]), 1);
        CHECK(rows.ndim == 2 && rows.dims[1] == 16);
        for (int64_t i = 0; i < 16 * rows.dims[0]; i++) {
            int32_t number = ((const int32_t *)rows.data)[i];

            CHECK(!padded || number == -1);
            padded = number == -1;
            /* the next of its list, or the first of a later one */
            CHECK(padded || number == last + 1 ||
                  (number % 1000 == 0 && number / 1000 > last / 1000) || last == -1);
            last = padded ? last : number;
        }
    }
    CHECK(last > 50 * 1000);
    contract_drop(&batches);
}

TEST(paths_of_more_numbers_than_fit_are_refused)
{
    struct outcome_job job =
        contract_job(HEAD "  - test.lists: {}\n  - test.pack: {length: 5}\n"
                          "  - test.pack: {length: 5}\n  - test.pack: {length: 5}\n"
                          "  - test.pack: {length: 5}\n  - test.pack: {length: 5}\n"
                          "  - test.pack: {length: 5}\n  - test.pack: {length: 5}\n"
                          "  - test.pack: {length: 5}\n  - test.pack: {length: 5}\n");
    struct outcome *o = outcome_run(&job);

    CHECK_ERR(HR_ERR_LIMIT, o->code);
    CHECK_HAS(o->error.message, "number 9");
    outcome_free(o);
}
