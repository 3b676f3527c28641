/*
 * tests/contract/sentences_op.c - an expansion: the sentences of a line. A sentence shows
 * its line's bytes, its two other fields are made for it, and everything that can tell
 * sentences apart (draws, the ledger, states) does so by line and number.
 */
#include "tests/contract/contract.h"

#include <stdlib.h>

#include "core/alloc.h"

struct sentences {
    const char *field, *words, *draw;
};

static const struct hr_param sentences_params[] = {
    HR_P_FIELD(struct sentences, field, .fallback = "text", .access = HR_ACCESS_UPDATE,
               .help = "the text"),
    HR_P_FIELD(struct sentences, words, .fallback = "words", .access = HR_ACCESS_WRITE,
               .help = "the field for the number of words"),
    HR_P_FIELD(struct sentences, draw, .fallback = "draw", .access = HR_ACCESS_WRITE,
               .help = "the field for a random number of the sentence"),
};

static enum hr_err sentences_infer(struct hr_infer *infer)
{
    if (infer->fields[0]->kind != HR_FIELD_BYTES)
        return hr__infer_fail(infer, "field", HR_ERR_TYPE, "field \"%s\" is no text",
                              infer->fields[0]->name);
    infer->fields[1]->dtype = HR_I64;
    infer->fields[2]->dtype = HR_I64;
    infer->output->records = -1;
    return HR_OK;
}

/* For each field of a sentence: the line's field, or what is made. */
enum { TEXT = -1, WORDS = -2, DRAW = -3 };
struct fields {
    int from[HR_SCHEMA_FIELDS_MAX];
};

static int find(const struct hr_schema *schema, const char *name)
{
    for (size_t i = 0; i < schema->count; i++)
        if (strcmp(schema->fields[i].name, name) == 0)
            return (int)i;
    return -4;
}

static enum hr_err sentences_open(const struct hr_open *open, void **ret_state)
{
    const struct sentences *p = open->params;
    struct fields *fields = hr__calloc(1, sizeof *fields);

    if (fields == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < open->output->count; i++)
        fields->from[i] = find(open->input, open->output->fields[i].name);
    fields->from[find(open->output, p->field)] = TEXT;
    fields->from[find(open->output, p->words)] = WORDS;
    fields->from[find(open->output, p->draw)] = DRAW;
    *ret_state = fields;
    return HR_OK;
}

static void sentences_close(void *state)
{
    hr__free(state);
}

/* The next sentence from *at on, with its full stop; false if there is none. */
static bool
next_sentence(const char **at, const char *end, const char **from, size_t *length)
{
    while (*at < end && **at == ' ')
        (*at)++;
    *from = *at;
    while (*at < end && *(*at)++ != '.')
        continue;
    *length = (size_t)(*at - *from);
    return *length > 0;
}

static int64_t count_words(const char *text, size_t length)
{
    int64_t words = length > 0;

    for (size_t i = 0; i < length; i++)
        words += text[i] == ' ';
    return words;
}

static enum hr_err sentences_count(struct hr_op_ctx *ctx, uint64_t *ret_count)
{
    const char *at = ctx->fields[0]->data, *end = at + ctx->fields[0]->bytes, *from;
    size_t length;

    for (*ret_count = 0; next_sentence(&at, end, &from, &length);)
        ++*ret_count;
    return HR_OK;
}

static int64_t draw_of(const struct hr_op_ctx *ctx, uint64_t at)
{
    struct hr_rng rng;

    hr__op_rng(ctx, &rng);
    for (uint64_t i = 0; i < at; i++)
        (void)hr__rng_u32(&rng);
    return (int64_t)hr__rng_u32(&rng);
}

static enum hr_err
put_number(struct hr_op_ctx *ctx, int64_t number, struct hr_value *ret_value)
{
    void *memory;

    HR_TRY(hr__op_alloc(ctx, sizeof number, &memory));
    memcpy(memory, &number, sizeof number);
    hr__value_set_tensor(ret_value, HR_I64, 0, NULL, memory, NULL);
    return HR_OK;
}

static void alias(const struct hr_value *from, struct hr_value *to)
{
    *to = *from;
    to->shared = true;
    if (to->owner != NULL)
        hr_buffer_ref(to->owner);
}

static enum hr_err
sentences_child(struct hr_op_ctx *ctx, uint64_t at, const struct hr_value *parents,
                struct hr_value *children, size_t count)
{
    const struct fields *fields = ctx->state;
    const struct hr_value *text = ctx->fields[0];
    const char *from = NULL, *next = text->data, *end = next + text->bytes;
    size_t length = 0;

    for (uint64_t i = 0; i <= at; i++)
        (void)next_sentence(&next, end, &from, &length);
    for (size_t f = 0; f < count; f++) {
        switch (fields->from[f]) {
        case TEXT:
            hr__value_set_bytes(&children[f], from, length,
                                text->owner != NULL ? hr_buffer_ref(text->owner) : NULL);
            break;
        case WORDS:
            HR_TRY(put_number(ctx, count_words(from, length), &children[f]));
            break;
        case DRAW:
            HR_TRY(put_number(ctx, draw_of(ctx, at), &children[f]));
            break;
        default:
            alias(&parents[fields->from[f]], &children[f]);
        }
    }
    return HR_OK;
}

static const struct hr_op sentences_op = {
    .name = "test.sentences",
    .summary = "a record per sentence",
    .version = 1,
    .kind = HR_OP_EXPAND,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(sentences_params, struct sentences),
    .infer = sentences_infer,
    .open = sentences_open,
    .close = sentences_close,
    .expand.count = sentences_count,
    .expand.child = sentences_child,
};
CONTRACT_OP(sentences_op)

#define LINES 40
#define FAIL "  - debug.fail: {probability: 0.15}\n"
#define BATCH "  - batch.stack: {size: 4}\n"

static struct outcome_job job_after(const char *more)
{
    return contract_lines(LINES, 12, more);
}

TEST(sentences_have_one_digest_and_one_ledger)
{
    outcome_free(contract_check(
        job_after("  - order.shuffle: {}\n" FAIL "  - test.sentences: {}\n" FAIL BATCH)));
}

TEST(sentences_are_filtered_shuffled_and_split_again)
{
    outcome_free(contract_check(job_after(
        "  - test.sentences: {}\n" FAIL "  - record.filter: {expr: \"words != 2\"}\n"
        "  - order.shuffle: {window: 8}\n"
        "  - test.sentences: {draw: draw2, words: words2}\n" FAIL BATCH)));
}

TEST(sentences_of_unbatched_lines_keep_their_identities)
{
    outcome_free(
        contract_check(job_after("  - batch.stack: {size: 3}\n  - batch.unbatch: {}\n"
                                 "  - test.sentences: {}\n" FAIL BATCH)));
}

TEST(every_sentence_comes_once_with_a_draw_of_its_own)
{
    struct outcome_job job = job_after("  - test.sentences: {}\n" BATCH);
    struct contract_batches batches;
    int64_t draws[1024];
    const char *at, *from;
    size_t seen = 0, length;

    (void)contract_text(LINES, 12, &at);
    job.options.epochs = 1;
    contract_take(&job, &batches);
    for (size_t b = 0; b < batches.count; b++) {
        struct hr_field_view text = contract_field(batches.items[b], "text");
        struct hr_field_view words = contract_field(batches.items[b], "words");
        struct hr_field_view draw = contract_field(batches.items[b], "draw");

        for (int64_t i = 0; i < text.dims[0]; i++, seen++) {
            const char *end = strchr(at, '\n');

            while (!next_sentence(&at, end, &from, &length)) {
                at = end + 1;
                end = strchr(at, '\n');
            }
            CHECK_EQ_INT(text.splits[0][i + 1] - text.splits[0][i], length);
            CHECK_BYTES((const char *)text.data + text.splits[0][i], from, length);
            CHECK_EQ_INT(((const int64_t *)words.data)[i], count_words(from, length));
            draws[seen] = ((const int64_t *)draw.data)[i];
            for (size_t k = 0; k < seen; k++)
                CHECK(draws[k] != draws[seen]);
        }
    }
    CHECK(seen > LINES);
    for (; *at != '\0'; at++)
        CHECK(*at == ' ' || *at == '\n');
    contract_drop(&batches);
}
