/*
 * tokens.mask - masks token ids for masked language models (BERT).
 */
#include "codec/vocab.h"
#include "core/alloc.h"
#include "core/file.h"
#include "op/op.h"

#include <string.h>

struct mask {
    const char *field, *labels, *vocab, *prefix;
    int64_t mask_id, vocab_size, ignore;
    struct hr_ints special;
    double probability, masked, random;
    bool whole_words;
};

static const struct hr_param mask_params[] = {
    HR_P_INT(struct mask, mask_id, .required = true, HR_RANGE(0, INT32_MAX),
             .help = "the id that stands for a masked token"),
    HR_P_INT(struct mask, vocab_size, .fallback = "0", HR_RANGE(0, INT32_MAX),
             .help = "random ids are below this; required unless `random` is 0"),
    HR_P_INTS(struct mask, special, .items_min = 0, HR_RANGE(0, INT32_MAX),
              .help = "ids that are never chosen, such as those that begin, end and fill "
                      "up a text"),
    HR_P_FLOAT(struct mask, probability, .fallback = "0.15", HR_RANGE(0, 1),
               .help = "of a token, or with whole_words of a word, to be chosen"),
    HR_P_FLOAT(struct mask, masked, .fallback = "0.8", HR_RANGE(0, 1),
               .help = "part of the chosen tokens that become mask_id"),
    HR_P_FLOAT(struct mask, random, .fallback = "0.1", HR_RANGE(0, 1),
               .help = "part of them that become a random id; the rest stay as they are"),
    HR_P_BOOL(struct mask, whole_words, .fallback = "false",
              .help = "choose all tokens of a word or none"),
    HR_P_PATH(struct mask, vocab, .not_identity = true,
              .help =
                  "with whole_words: the vocabulary, as text.tokenize_wordpiece reads "
                  "it"),
    HR_P_STRING(struct mask, prefix, .fallback = "##",
                .help = "with whole_words: marks tokens that continue a word"),
    HR_P_INT(struct mask, ignore, .fallback = "-100", HR_RANGE(INT32_MIN, INT32_MAX),
             .help = "the label of tokens that were not chosen"),
    HR_P_FIELD(struct mask, field, .fallback = "tokens", .access = HR_ACCESS_UPDATE,
               .help = "the field with the ids"),
    HR_P_FIELD(struct mask, labels, .fallback = "labels", .access = HR_ACCESS_WRITE,
               .help =
                   "the field that becomes the labels: the ids of chosen tokens before "
                   "they were masked, and `ignore`"),
};

enum { FIELD_IDS, FIELD_LABELS };

static enum hr_err mask_infer(struct hr_infer *infer)
{
    const struct mask *p = infer->params;
    const struct hr_field *ids = infer->fields[FIELD_IDS];
    struct hr_field *labels = infer->fields[FIELD_LABELS];

    if (ids->kind != HR_FIELD_TENSOR || ids->ndim != 1 || ids->dtype != HR_I32)
        return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                              "field \"%s\" must be a list of int32", ids->name);
    if (p->masked + p->random > 1 + 1e-9)
        return hr__infer_fail(
            infer, "random", HR_ERR_RANGE,
            "masked and random are parts of the chosen tokens: together "
            "at most 1");
    if (p->random > 0 && p->vocab_size == 0)
        return hr__infer_fail(
            infer, "vocab_size", HR_ERR_ARGUMENT,
            "give vocab_size, below which random ids are, or random: 0");
    if (p->whole_words != (p->vocab != NULL))
        return hr__infer_fail(
            infer, "vocab", HR_ERR_ARGUMENT,
            "whole_words needs a vocabulary, and only whole_words does");
    labels->dtype = HR_I32;
    labels->ndim = 1;
    labels->dims[0] = ids->dims[0];
    return HR_OK;
}

/* ---- state: which tokens continue a word ---- */

struct words {
    int32_t count;
    struct hr_hash128 hash;
    bool continues[];
};

static bool continues_word(const struct hr_vocab *vocab, int32_t id, const char *prefix)
{
    size_t bytes, length = strlen(prefix);
    const char *word = hr__vocab_word(vocab, id, &bytes);

    return word != NULL && length > 0 && bytes >= length &&
           memcmp(word, prefix, length) == 0;
}

static enum hr_err mask_open(const struct hr_open *open, void **ret_state)
{
    const struct mask *p = open->params;
    struct hr_tokenizer_file file = {.name = p->vocab};
    struct hr_vocab *vocab = NULL;
    struct words *words;
    enum hr_err err;
    char *data;

    if (!p->whole_words)
        return HR_OK;
    HR_TRY(
        hr__file_read(p->vocab, HR_TOKENIZER_FILE_MAX, &data, &file.bytes, open->error));
    file.data = data;
    err = hr__vocab_read(&file, &vocab, open->error);
    hr__free(data);
    if (err != HR_OK)
        return err;
    words = hr__calloc(1, sizeof *words + (size_t)hr__vocab_size(vocab));
    if (words != NULL) {
        words->count = hr__vocab_size(vocab);
        words->hash = hr__vocab_hash(vocab);
        for (int32_t id = 0; id < words->count; id++)
            words->continues[id] = continues_word(vocab, id, p->prefix);
    }
    hr__vocab_destroy(vocab);
    if (words == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    *ret_state = words;
    return HR_OK;
}

static void mask_close(void *state)
{
    hr__free(state);
}

static void mask_identity(const void *params, const void *state, struct hr_hasher *hasher)
{
    const struct words *words = state;

    (void)params;
    if (words != NULL)
        hr__hasher_add(hasher, &words->hash, sizeof words->hash);
}

/* ---- records ---- */

static bool is_special(const struct mask *p, int32_t id)
{
    for (int i = 0; i < p->special.count; i++)
        if (p->special.values[i] == id)
            return true;
    return false;
}

/* What becomes of a chosen token. */
static int32_t replace(const struct mask *p, struct hr_rng *rng, int32_t id)
{
    double draw = hr__rng_double(rng);

    if (draw < p->masked)
        return (int32_t)p->mask_id;
    if (draw < p->masked + p->random)
        return (int32_t)hr__rng_below(rng, (uint64_t)p->vocab_size);
    return id;
}

static void mask_ids(const struct mask *p, const struct words *words, struct hr_rng *rng,
                     int32_t *ids, int32_t *labels, int64_t count)
{
    bool chosen = false, in_word = false;

    for (int64_t i = 0; i < count; i++) {
        int32_t id = ids[i];
        bool special = is_special(p, id);
        bool more = in_word && words != NULL && id >= 0 && id < words->count &&
                    words->continues[id];

        in_word = !special;
        if (!special && !more)
            chosen = hr__rng_double(rng) < p->probability;
        labels[i] = chosen && !special ? id : (int32_t)p->ignore;
        if (chosen && !special)
            ids[i] = replace(p, rng, id);
    }
}

static enum hr_err mask_apply(struct hr_op_ctx *ctx)
{
    struct hr_value *list = ctx->fields[FIELD_IDS];
    int64_t count = list->dims[0];
    size_t bytes = (size_t)count * sizeof(int32_t);
    struct hr_rng rng;
    void *ids, *labels;

    HR_TRY(hr__op_result(ctx, FIELD_IDS, bytes, &ids));
    HR_TRY(hr__op_result(ctx, FIELD_LABELS, bytes, &labels));
    hr__value_copy(list, ids);
    hr__op_rng(ctx, &rng);
    mask_ids(ctx->params, ctx->state, &rng, ids, labels, count);
    hr__value_clear(list);
    hr__value_set_tensor(list, HR_I32, 1, &count, ids, NULL);
    hr__value_set_tensor(ctx->fields[FIELD_LABELS], HR_I32, 1, &count, labels, NULL);
    return HR_OK;
}

const struct hr_op hr_op_tokens_mask = {
    .name = "tokens.mask",
    .summary = "mask token ids for masked language models",
    .doc =
        "int32 `[n]` to int32 `[n]` and labels, int32 `[n]`. Each token that is not "
        "special is chosen with `probability`; of the chosen ones `masked` become "
        "mask_id, `random` any id below vocab_size, and the rest stay. With "
        "`whole_words` a word is chosen as a whole: a token and those after it that "
        "begin with `prefix`; what becomes of each is still drawn by itself. The draws "
        "are the record's own and differ between epochs.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_GROWS,
    HR_PARAMS(mask_params, struct mask),
    .infer = mask_infer,
    .open = mask_open,
    .close = mask_close,
    .identity = mask_identity,
    .apply = mask_apply,
    .placed = true,
};
