/*
 * tests/contract/words_op.c - a text op: the numbers of a line's words. Lists differ in
 * length, so batches of them are ragged.
 */
#include "tests/contract/contract.h"

#include <stdlib.h>

#include "core/hash.h"

struct words {
    const char *field, *to;
    int64_t vocabulary;
};

static const struct hr_param words_params[] = {
    HR_P_FIELD(struct words, field, .fallback = "text", .access = HR_ACCESS_READ,
               .help = "the text"),
    HR_P_FIELD(struct words, to, .fallback = "tokens", .access = HR_ACCESS_WRITE,
               .help = "the field for the numbers of its words"),
    HR_P_INT(struct words, vocabulary, .fallback = "1000", HR_RANGE(1, 1 << 30),
             .help = "numbers are below this"),
};

static enum hr_err words_infer(struct hr_infer *infer)
{
    const struct hr_field *text = infer->fields[0];
    struct hr_field *tokens = infer->fields[1];

    if (text->kind != HR_FIELD_BYTES)
        return hr__infer_fail(infer, "field", HR_ERR_TYPE, "field \"%s\" is no text",
                              text->name);
    tokens->kind = HR_FIELD_TENSOR;
    tokens->dtype = HR_I32;
    tokens->ndim = 1;
    hr__dim_unknown(&tokens->dims[0], "words");
    return HR_OK;
}

/* The next word from *at on; false if there is none. */
static bool next_word(const char **at, const char *end, const char **word, size_t *length)
{
    while (*at < end && **at == ' ')
        (*at)++;
    *word = *at;
    while (*at < end && **at != ' ')
        (*at)++;
    *length = (size_t)(*at - *word);
    return *length > 0;
}

static int32_t number_of(const char *word, size_t length, int64_t vocabulary)
{
    return (int32_t)(hr__hash64(word, length, 0) % (uint64_t)vocabulary);
}

static enum hr_err words_apply(struct hr_op_ctx *ctx)
{
    const struct words *p = ctx->params;
    const struct hr_value *text = ctx->fields[0];
    const char *at = text->data, *end = at + text->bytes, *word;
    int64_t count = 0;
    size_t length;
    void *numbers;

    HR_TRY(hr__op_alloc(ctx, (text->bytes / 2 + 1) * sizeof(int32_t), &numbers));
    while (next_word(&at, end, &word, &length))
        ((int32_t *)numbers)[count++] = number_of(word, length, p->vocabulary);
    hr__value_set_tensor(ctx->fields[1], HR_I32, 1, &count, numbers, NULL);
    return HR_OK;
}

static const struct hr_op words_op = {
    .name = "test.words",
    .summary = "the numbers of words",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(words_params, struct words),
    .infer = words_infer,
    .apply = words_apply,
};
CONTRACT_OP(words_op)

#define LINES 60
static struct outcome_job job_after(const char *more)
{
    return contract_lines(LINES, 9, more);
}

TEST(lists_of_any_length_have_one_digest)
{
    outcome_free(contract_check(job_after("  - order.shuffle: {}\n"
                                          "  - debug.fail: {probability: 0.1}\n"
                                          "  - test.words: {}\n"
                                          "  - batch.stack: {size: 4, ragged: true}\n")));
}

TEST(lists_of_any_length_are_padded)
{
    outcome_free(contract_check(job_after("  - test.words: {}\n"
                                          "  - batch.pad: {size: 4}\n")));
}

TEST(lists_go_through_batches_of_batches_and_back)
{
    outcome_free(contract_check(job_after("  - test.words: {}\n"
                                          "  - batch.stack: {size: 3, ragged: true}\n"
                                          "  - batch.stack: {size: 2, ragged: true}\n"
                                          "  - batch.unbatch: {}\n  - batch.unbatch: {}\n"
                                          "  - debug.fail: {probability: 0.1}\n"
                                          "  - batch.stack: {size: 5, ragged: true}\n")));
}

TEST(batches_hold_the_words_of_their_lines)
{
    struct outcome_job job = job_after("  - test.words: {vocabulary: 5000}\n"
                                       "  - batch.stack: {size: 7, ragged: true}\n");
    struct contract_batches batches;
    const char *at;
    size_t seen = 0;

    (void)contract_text(LINES, 9, &at);
    job.options.epochs = 1;
    contract_take(&job, &batches);
    for (size_t b = 0; b < batches.count; b++) {
        struct hr_field_view tokens = contract_field(batches.items[b], "tokens");
        struct hr_field_view text = contract_field(batches.items[b], "text");

        CHECK(tokens.levels == 1 && tokens.item_ndim == 1 && tokens.dtype == HR_I32);
        CHECK(text.levels == 1 && text.item_ndim == 0);
        for (int64_t i = 0; i < tokens.dims[0]; i++, seen++) {
            const char *end = strchr(at, '\n'), *word;
            int64_t k = tokens.splits[0][i];
            size_t length;

            CHECK_EQ_INT(text.splits[0][i + 1] - text.splits[0][i], end - at);
            CHECK_BYTES((const char *)text.data + text.splits[0][i], at,
                        (size_t)(end - at));
            for (; next_word(&at, end, &word, &length); k++)
                CHECK_EQ_INT(((const int32_t *)tokens.data)[k],
                             number_of(word, length, 5000));
            CHECK_EQ_INT(k, tokens.splits[0][i + 1]);
            at = end + 1;
        }
    }
    CHECK_EQ_INT(seen, LINES);
    contract_drop(&batches);
}
