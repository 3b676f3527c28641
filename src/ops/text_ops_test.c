#include "codec/bpe_test_util.h"
#include "ops/fill.h"
#include "ops/ops_test_util.h"

#include "core/file.h"
#include "op/ragged.h"

static struct tiny tiny;
static struct bench b;
static char encoder[512], merges[512], ranks[512], json[512];

static void put_file(const char *name, struct hr_str *text, char ret_path[512])
{
    snprintf(ret_path, 512, "%s/%s", check_temp_dir(), name);
    CHECK_OK(hr__file_replace(ret_path, text->text, text->length, NULL));
    hr__str_finish(text);
}

static void make_files(void)
{
    struct hr_rng rng;
    struct hr_str text;

    if (encoder[0] != '\0')
        return;
    hr__rng_init(&rng, check_seed(), 0, 0);
    tiny_draw(&tiny, &rng);
    tiny_encoder(&tiny, &text);
    put_file("encoder.json", &text, encoder);
    tiny_merges(&tiny, &text);
    put_file("vocab.bpe", &text, merges);
    tiny_ranks(&tiny, &text);
    put_file("x.tiktoken", &text, ranks);
    tiny_json(&tiny, TINY_R50K, &text);
    put_file("tokenizer.json", &text, json);
}

/* Runs the op on a text with the parameters of a format. */
static enum hr_err
tokenize(const char *text, size_t bytes, const char *format, const char *a, const char *c)
{
    char params[1200];

    make_files();
    snprintf(params, sizeof params, format, a, c);
    bench_clear(&b);
    bench_put_bytes(&b, "text", text, bytes);
    memset(&b.error, 0, sizeof b.error);
    return bench_op(&b, "text.tokenize_bpe", params);
}

static void check_ids(const char *format, const char *a, const char *c, bool by_ranks)
{
    struct hr_rng rng;
    struct hr_str text;
    int32_t *want, *got;
    size_t count, bytes;

    hr__rng_init(&rng, check_seed(), 0, 1);
    hr__str_init(&text);
    tiny_text(&rng, 200, &text);
    want = malloc((text.length + 1) * sizeof *want);
    CHECK_OK(tokenize(text.text, text.length, format, a, c));
    count = tiny_encode(&tiny, by_ranks, (const uint8_t *)text.text, text.length, want);
    got = bench_bytes(&b, "tokens", &bytes);
    CHECK_EQ_INT(bytes, count * sizeof *want);
    CHECK_BYTES(got, want, bytes);
    CHECK(hr__schema_find(&b.schema, "text") == NULL);
    CHECK(bench_field(&b, "tokens")->dtype == HR_I32 &&
          bench_field(&b, "tokens")->ndim == 1);
    free(got);
    free(want);
    hr__str_finish(&text);
}

TEST(tokenize_bpe_gives_the_ids_of_each_form_of_files)
{
    make_files();
    bench_init(&b);
    check_ids("{encoder: '%s', merges: '%s'}", encoder, merges, false);
    check_ids("{json: '%s'%s}", json, "", false);
    check_ids("{ranks: '%s', pattern: %s}", ranks, "r50k", true);
    bench_finish(&b);
}

TEST(tokenize_bpe_gives_nothing_for_an_empty_text)
{
    int32_t *got;
    size_t bytes;

    bench_init(&b);
    make_files();
    CHECK_OK(tokenize("", 0, "{json: '%s', to: %s}", json, "text"));
    got = bench_bytes(&b, "text", &bytes);
    CHECK_EQ_INT(bytes, 0);
    free(got);
    bench_finish(&b);
}

#define REFUSED(err, format, a, c, words)                                                \
    do {                                                                                 \
        CHECK_ERR(err, tokenize("x", 1, format, a, c));                                  \
        CHECK_HAS(b.error.message, words);                                               \
    } while (0)

TEST(tokenize_bpe_refuses_files_that_are_missing_damaged_or_too_many)
{
    make_files();
    bench_init(&b);
    REFUSED(HR_ERR_ARGUMENT, "{%s%s}", "", "", "give the files of one tokenizer");
    REFUSED(HR_ERR_ARGUMENT, "{json: '%s', ranks: '%s'}", json, ranks, "one tokenizer");
    REFUSED(HR_ERR_ARGUMENT, "{encoder: '%s'%s}", encoder, "", "give both");
    REFUSED(HR_ERR_ARGUMENT, "{json: '%s', merges: '%s'}", json, merges, "give both");
    REFUSED(HR_ERR_NOT_FOUND, "{json: '%s'%s}", "/nowhere/t.json", "", "/nowhere/t.json");
    REFUSED(HR_ERR_FORMAT, "{json: '%s'%s}", encoder, "", "encoder.json:1");
    REFUSED(HR_ERR_FORMAT, "{ranks: '%s'%s}", merges, "", "vocab.bpe:1");
    CHECK(tokenize("x", 1, "{ranks: '%s', pattern: %s}", ranks, "gpt9") != HR_OK);
    CHECK_HAS(b.error.message, "cl100k");
    bench_clear(&b);
    bench_put(&b, "text");
    bench_field(&b, "text")->dtype = HR_I64;
    CHECK_ERR(HR_ERR_TYPE, bench_op(&b, "text.tokenize_bpe", "{json: 'x'}"));
    CHECK_HAS(b.error.message, "no text to tokenize");
    bench_finish(&b);
}

static enum hr_err unigram(const char *text, const char *model)
{
    char params[700];

    snprintf(params, sizeof params, "{model: '%s/fuzz/corpus/sentencepiece/%s'}",
             check_source_dir(), model);
    bench_clear(&b);
    bench_put_bytes(&b, "text", text, strlen(text));
    memset(&b.error, 0, sizeof b.error);
    return bench_op(&b, "text.tokenize_unigram", params);
}

static void check_tokens(const int32_t *want, size_t want_bytes)
{
    size_t bytes;
    int32_t *got = bench_bytes(&b, "tokens", &bytes);

    CHECK_EQ_INT(bytes, want_bytes);
    CHECK_BYTES(got, want, bytes);
    free(got);
}

TEST(tokenize_unigram_gives_the_ids_of_pieces)
{
    static const int32_t want[] = {33, 0, 35, 48, 5, 0};
    static const int32_t longer[] = {30, 33, 40, 30, 42, 36, 41, 35};
    static const char text[] = "water \u2047  wheel<sep>t \u2047 ";
    char params[700];

    bench_init(&b);
    CHECK_OK(unigram("waterX\twheel<sep>t\u00c9 ", "unigram"));
    check_tokens(want, sizeof want);
    CHECK(hr__schema_find(&b.schema, "text") == NULL);
    CHECK(bench_field(&b, "tokens")->dtype == HR_I32 &&
          bench_field(&b, "tokens")->ndim == 1);
    snprintf(params, sizeof params, "{model: '%s/fuzz/corpus/sentencepiece/unigram'}",
             check_source_dir());
    CHECK_OK(bench_op(&b, "text.detokenize", params));
    CHECK_EQ_INT(bench_value(&b, "text")->bytes, sizeof text - 1);
    CHECK_BYTES(bench_value(&b, "text")->data, text, sizeof text - 1);
    CHECK_OK(unigram("", "unigram"));
    check_tokens(NULL, 0);
    CHECK_OK(unigram("\ufdfa", "unigram")); /* more ids than bytes */
    check_tokens(longer, sizeof longer);
    bench_finish(&b);
}

TEST(tokenize_unigram_refuses_what_is_no_model)
{
    bench_init(&b);
    CHECK_ERR(HR_ERR_FORMAT, unigram("x", "cut"));
    CHECK_HAS(b.error.message, "malformed at byte");
    CHECK_ERR(HR_ERR_FORMAT, unigram("x", "empty"));
    CHECK_ERR(HR_ERR_UNSUPPORTED, unigram("x", "type-word"));
    CHECK_HAS(b.error.message, "type word");
    CHECK_ERR(HR_ERR_NOT_FOUND, unigram("x", "no-such-model"));
    CHECK_HAS(b.error.message, "no-such-model");
    CHECK(bench_op(&b, "text.tokenize_unigram", "{}") != HR_OK);
    bench_clear(&b);
    bench_put(&b, "text");
    bench_field(&b, "text")->dtype = HR_I64;
    CHECK_ERR(HR_ERR_TYPE, bench_op(&b, "text.tokenize_unigram", "{model: x}"));
    CHECK_HAS(b.error.message, "must be a byte string");
    bench_put(&b, "tokens");
    bench_field(&b, "tokens")->dtype = HR_I32;
    bench_field(&b, "tokens")->ndim = 1;
    CHECK_ERR(HR_ERR_ARGUMENT, bench_op(&b, "text.detokenize", "{model: x, ranks: y}"));
    CHECK_HAS(b.error.message, "not both");
    bench_finish(&b);
}

/* ---- lists of ids ---- */

#define LIST(...)                                                                        \
    do {                                                                                 \
        static int32_t list_[] = {__VA_ARGS__};                                          \
                                                                                         \
        put_list(list_, sizeof list_ / sizeof list_[0]);                                 \
    } while (0)
#define IS_LIST(...)                                                                     \
    do {                                                                                 \
        static const int32_t want_[] = {__VA_ARGS__};                                    \
                                                                                         \
        check_tokens(want_, sizeof want_);                                               \
    } while (0)
#define OP(name, params) CHECK_OK(bench_op(&b, name, params))

static void put_list(int32_t *ids, size_t count)
{
    const int64_t dims[1] = {(int64_t)count};

    bench_clear(&b);
    hr__value_set_tensor(bench_put(&b, "tokens"), HR_I32, 1, dims, ids, NULL);
    bench_field(&b, "tokens")->dtype = HR_I32;
    bench_field(&b, "tokens")->ndim = 1;
    hr__dim_unknown(&bench_field(&b, "tokens")->dims[0], "tokens");
}

TEST(truncate_cuts_long_lists_at_either_end)
{
    bench_init(&b);
    LIST(1, 2, 3, 4, 5);
    OP("tokens.truncate", "{length: 3}");
    IS_LIST(1, 2, 3);
    OP("tokens.truncate", "{length: 2, keep: end}");
    IS_LIST(2, 3);
    OP("tokens.truncate", "{length: 2}");
    IS_LIST(2, 3);
    OP("tokens.truncate", "{length: 0}");
    check_tokens(NULL, 0);
    bench_finish(&b);
}

TEST(truncate_takes_lists_with_gaps)
{
    bench_init(&b);
    LIST(1, 0, 2, 0, 3, 0);
    bench_value(&b, "tokens")->dims[0] = 3;
    bench_value(&b, "tokens")->strides[0] = 8;
    OP("tokens.truncate", "{length: 2, keep: end}");
    IS_LIST(2, 3);
    bench_finish(&b);
}

TEST(add_puts_ids_before_and_after)
{
    bench_init(&b);
    LIST(1, 2);
    OP("tokens.add", "{begin: 7, end: [8, 9]}");
    IS_LIST(7, 1, 2, 8, 9);
    OP("tokens.truncate", "{length: 0}");
    OP("tokens.add", "{end: [-1]}");
    IS_LIST(-1);
    bench_finish(&b);
}

TEST(pad_lengthens_lists_at_either_end)
{
    static const uint8_t mask[] = {0, 0, 1, 1, 1};
    int64_t *length;
    size_t bytes;
    void *got;

    bench_init(&b);
    LIST(1, 2, 3);
    OP("tokens.pad", "{multiple: 2}");
    IS_LIST(1, 2, 3, 0);
    OP("tokens.pad", "{length: 4, value: 9}");
    IS_LIST(1, 2, 3, 0);
    LIST(1, 2, 3);
    OP("tokens.pad", "{length: 5, value: -7, side: start, mask: true, lengths: true}");
    IS_LIST(-7, -7, 1, 2, 3);
    got = bench_bytes(&b, "tokens_mask", &bytes);
    CHECK_EQ_INT(bytes, sizeof mask);
    CHECK_BYTES(got, mask, bytes);
    free(got);
    length = bench_bytes(&b, "tokens_length", &bytes);
    CHECK_EQ_INT(*length, 3);
    free(length);
    CHECK_EQ_INT(bench_field(&b, "tokens")->dims[0].size, 5);
    CHECK_EQ_INT(bench_field(&b, "tokens_mask")->dims[0].size, 5);
    bench_finish(&b);
}

TEST(pad_takes_empty_lists_and_any_dtype)
{
    static const float want[] = {1.5f, -0.5f, -0.5f};
    static float numbers[] = {1.5f};
    size_t bytes;
    void *got;

    bench_init(&b);
    LIST(0);
    bench_value(&b, "tokens")->dims[0] = 0;
    OP("tokens.pad", "{multiple: 8}");
    check_tokens(NULL, 0);
    OP("tokens.pad", "{length: 2, value: 3}");
    IS_LIST(3, 3);
    LIST(0);
    hr__value_set_tensor(bench_value(&b, "tokens"), HR_F32, 1, &(int64_t){1}, numbers,
                         NULL);
    bench_field(&b, "tokens")->dtype = HR_F32;
    OP("tokens.pad", "{length: 3, value: -0.5}");
    got = bench_bytes(&b, "tokens", &bytes);
    CHECK_EQ_INT(bytes, sizeof want);
    CHECK_BYTES(got, want, bytes);
    free(got);
    bench_finish(&b);
}

TEST(pad_refuses_what_it_cannot_do)
{
    bench_init(&b);
    LIST(1, 2, 3);
    CHECK_ERR(HR_ERR_SHAPE, bench_op(&b, "tokens.pad", "{length: 2}"));
    CHECK_HAS(b.error.message, "tokens.truncate");
    CHECK_ERR(HR_ERR_ARGUMENT, bench_op(&b, "tokens.pad", "{}"));
    CHECK_HAS(b.error.message, "either a length or a multiple");
    CHECK_ERR(HR_ERR_ARGUMENT, bench_op(&b, "tokens.pad", "{length: 4, multiple: 4}"));
    CHECK_ERR(HR_ERR_RANGE, bench_op(&b, "tokens.pad", "{length: 4, value: 0.5}"));
    CHECK_HAS(b.error.message, "cannot hold the value 0.5");
    CHECK_ERR(HR_ERR_RANGE, bench_op(&b, "tokens.pad", "{length: 4, value: 1e10}"));
    CHECK(bench_op(&b, "tokens.pad", "{length: 4, side: left}") != HR_OK);
    CHECK_ERR(HR_ERR_RANGE,
              bench_op(&b, "batch.pad", "{size: 2, multiple: 4, value: 0.5}"));
    CHECK_HAS(b.error.message, "cannot hold the value 0.5");
    CHECK_ERR(HR_ERR_RANGE, bench_op(&b, "batch.bucket",
                                     "{by: tokens, boundaries: [4], size: 2, "
                                     "multiple: 4, value: 1e10}"));
    CHECK_HAS(b.error.message, "cannot hold the value 1e+10");
    bench_field(&b, "tokens")->dtype = HR_I64;
    CHECK_ERR(HR_ERR_RANGE, bench_op(&b, "batch.pad", "{size: 2, value: -1e19}"));
    CHECK_HAS(b.error.message, "cannot hold the value -1e+19");
    for (int sign = 0; sign < 2; sign++) {
        CHECK_ERR(HR_ERR_RANGE,
                  bench_op(&b, "batch.pad",
                           sign == 0 ? "{size: 2, value: 9007199254740993}"
                                     : "{size: 2, value: -9007199254740993}"));
        CHECK_HAS(b.error.message,
                  "9007199254740992 pads field \"tokens\" of dtype int64, "
                  "and may have been rounded");
    }
    bench_field(&b, "tokens")->dtype = HR_I32;
    bench_put(&b, "tokens_mask");
    CHECK_ERR(HR_ERR_ARGUMENT, bench_op(&b, "tokens.pad", "{length: 4, mask: true}"));
    CHECK_HAS(b.error.message, "tokens_mask");
    bench_field(&b, "tokens")->ndim = 0;
    CHECK_ERR(HR_ERR_TYPE, bench_op(&b, "tokens.pad", "{length: 4}"));
    bench_finish(&b);
}

TEST(padding_of_floats_is_finite_as_the_value)
{
    static const struct {
        enum hr_dtype dtype;
        double most, more; /* rounds to the greatest number, and to infinity */
    } limits[] = {
        {HR_F16,  65519.9,               65520         },
        {HR_BF16, 0x1.fefffep127,        0x1.ffp127    },
        {HR_F32,  0x1.fffffefffffffp127, 0x1.ffffffp127},
    };

    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        for (int sign = -1; sign <= 1; sign += 2) {
            CHECK(hr__fill_fits(limits[i].dtype, sign * limits[i].most));
            CHECK(!hr__fill_fits(limits[i].dtype, sign * limits[i].more));
            CHECK(hr__fill_fits(limits[i].dtype, sign * (double)INFINITY));
        }
    CHECK(hr__fill_fits(HR_F16, (double)NAN));
    CHECK(hr__fill_fits(HR_F64, -1e300));
}

TEST(padding_that_floats_cannot_hold_is_refused)
{
    static const enum hr_dtype dtypes[] = {HR_F16, HR_F32};

    bench_init(&b);
    LIST(1, 2, 3);
    for (int i = 0; i < 2; i++) {
        bench_field(&b, "tokens")->dtype = dtypes[i];
        CHECK_ERR(HR_ERR_RANGE, bench_op(&b, "batch.pad", "{size: 2, value: -1e300}"));
        CHECK_HAS(b.error.message, "cannot hold the value -1e+300");
        CHECK_ERR(HR_ERR_RANGE, bench_op(&b, "batch.bucket",
                                         "{by: tokens, boundaries: [4], size: 2, "
                                         "value: 1e39}"));
        CHECK_HAS(b.error.message, "cannot hold the value 1e+39");
    }
    bench_finish(&b);
}

TEST(schemas_of_lists_of_known_length_have_their_new_length)
{
    bench_init(&b);
    LIST(1, 2, 3);
    hr__dim_set(&bench_field(&b, "tokens")->dims[0], 3);
    OP("tokens.add", "{begin: 7}");
    CHECK_EQ_INT(bench_field(&b, "tokens")->dims[0].size, 4);
    OP("tokens.truncate", "{length: 5}");
    CHECK_EQ_INT(bench_field(&b, "tokens")->dims[0].size, 4);
    OP("tokens.truncate", "{length: 2}");
    CHECK_EQ_INT(bench_field(&b, "tokens")->dims[0].size, 2);
    bench_finish(&b);
}

TEST(ops_on_lists_refuse_other_fields)
{
    bench_init(&b);
    LIST(1);
    CHECK_ERR(HR_ERR_ARGUMENT, bench_op(&b, "tokens.add", "{}"));
    CHECK_HAS(b.error.message, "give the ids to add");
    bench_field(&b, "tokens")->dtype = HR_I64;
    CHECK_ERR(HR_ERR_TYPE, bench_op(&b, "tokens.add", "{begin: 1}"));
    CHECK_HAS(b.error.message, "list of int32");
    bench_field(&b, "tokens")->ndim = 2;
    CHECK_ERR(HR_ERR_TYPE, bench_op(&b, "tokens.truncate", "{length: 1}"));
    CHECK_HAS(b.error.message, "one dimension");
    CHECK(bench_op(&b, "tokens.truncate", "{length: -1}") != HR_OK);
    CHECK(bench_op(&b, "tokens.truncate", "{}") != HR_OK);
    CHECK(bench_op(&b, "tokens.add", "{begin: 3000000000}") != HR_OK);
    bench_finish(&b);
}

/* ---- text ---- */

static void put_text(const char *text, size_t bytes)
{
    bench_clear(&b);
    bench_put_bytes(&b, "text", text, bytes);
}

#define TEXT(text) put_text(text, sizeof text - 1)

static void check_text(const char *want)
{
    const struct hr_value *value = bench_value(&b, "text");

    CHECK_EQ_INT(value->bytes, strlen(want));
    CHECK_BYTES(value->data, want, value->bytes);
}

TEST(texts_are_changed)
{
    bench_init(&b);
    TEXT(" \u00c9T\u00c9\u3000");
    OP("text.strip", "{side: start}");
    check_text("\u00c9T\u00c9\u3000");
    OP("text.strip", "{}");
    check_text("\u00c9T\u00c9");
    OP("text.lower", "{}");
    check_text("\u00e9t\u00e9");
    OP("text.normalize", "{form: nfd}");
    check_text("e\u0301te\u0301");
    OP("text.normalize", "{}");
    check_text("\u00e9t\u00e9");
    TEXT("a \n");
    OP("text.strip", "{side: end}");
    check_text("a");
    TEXT("");
    OP("text.strip", "{}");
    OP("text.lower", "{}");
    OP("text.normalize", "{form: nfkd}");
    check_text("");
    bench_finish(&b);
}

/* The strings of the list, each in brackets. */
static void check_words(const char *name, const char *want)
{
    const struct hr_value *value = bench_value(&b, name);
    const int64_t *splits = value->u.ragged->splits[0];
    struct hr_str text;

    CHECK(value->kind == HR_VALUE_RAGGED && value->strings);
    hr__str_init(&text);
    for (int64_t i = 0; i < value->dims[0]; i++) {
        hr__str_add(&text, "[");
        hr__str_add_bytes(&text, (const char *)value->data + splits[i],
                          (size_t)(splits[i + 1] - splits[i]));
        hr__str_add(&text, "]");
    }
    CHECK_EQ_STR(hr__str_text(&text), want);
    hr__str_finish(&text);
}

static void check_split(const char *text, const char *params, const char *want)
{
    put_text(text, strlen(text));
    OP("text.split", params);
    CHECK(hr__schema_find(&b.schema, "text") == NULL);
    CHECK_EQ_INT(bench_field(&b, "words")->kind, HR_FIELD_STRINGS);
    check_words("words", want);
}

TEST(texts_are_split)
{
    bench_init(&b);
    check_split(" a  b\u3000\xff\tc\n", "{}", "[a][b][\xff][c]");
    check_split("", "{}", "");
    check_split(" \n", "{}", "");
    check_split("a,b,,c", "{separator: ','}", "[a][b][][c]");
    check_split(",a,", "{separator: ','}", "[][a][]");
    check_split(",a,,", "{separator: ',', empty: false}", "[a]");
    check_split("", "{separator: ','}", "[]");
    check_split("", "{separator: ',', empty: false}", "");
    check_split("aaaa", "{separator: aa}", "[][][]");
    check_split("x <sep> y", "{separator: ' <sep> '}", "[x][y]");
    TEXT("a b");
    OP("text.split", "{to: text}");
    check_words("text", "[a][b]");
    bench_finish(&b);
}

static char vocabulary[512];

static void lookup(const char *format)
{
    char params[700];

    snprintf(params, sizeof params, format, vocabulary);
    OP("tokens.vocab_lookup", params);
}

TEST(words_are_looked_up)
{
    struct hr_str text;
    size_t bytes;
    int32_t *got;

    hr__str_init(&text);
    hr__str_add(&text, "?\nthe\nwheel\n");
    put_file("vocabulary.txt", &text, vocabulary);
    bench_init(&b);
    TEXT("wheel the wheel");
    OP("text.split", "{}");
    lookup("{path: '%s'}");
    IS_LIST(2, 1, 2);
    CHECK(hr__schema_find(&b.schema, "words") == NULL);
    TEXT("the mill wheel");
    OP("text.split", "{}");
    lookup("{path: '%s', unknown: '?'}");
    IS_LIST(1, 0, 2);
    TEXT("the mill");
    OP("text.split", "{}");
    lookup("{path: '%s', skip_unknown: true}");
    IS_LIST(1);
    TEXT("wheel");
    lookup("{path: '%s', field: text}");
    got = bench_bytes(&b, "tokens", &bytes);
    CHECK(bytes == 4 && got[0] == 2);
    free(got);
    bench_finish(&b);
}

static void not_looked_up(enum hr_err code, const char *format, const char *words)
{
    char params[700];

    snprintf(params, sizeof params, format, vocabulary);
    TEXT("the mill");
    OP("text.split", "{}");
    memset(&b.error, 0, sizeof b.error);
    CHECK_ERR(code, bench_op(&b, "tokens.vocab_lookup", params));
    CHECK_HAS(b.error.message, words);
}

TEST(lookups_refuse_what_is_not_there)
{
    struct hr_str text;

    hr__str_init(&text);
    hr__str_add(&text, "the\n");
    put_file("vocabulary.txt", &text, vocabulary);
    bench_init(&b);
    not_looked_up(HR_ERR_NOT_FOUND, "{path: '%s'}", "the word \"mill\" is not in");
    not_looked_up(HR_ERR_NOT_FOUND, "{path: '%s', unknown: '?'}", "for unknown words");
    not_looked_up(HR_ERR_ARGUMENT, "{path: '%s', unknown: the, skip_unknown: true}",
                  "either unknown or skip_unknown");
    not_looked_up(HR_ERR_NOT_FOUND, "{path: '%s.no'}", "vocabulary.txt.no");
    TEXT("the");
    CHECK_ERR(HR_ERR_ARGUMENT, bench_op(&b, "tokens.vocab_lookup",
                                        "{path: x, field: text, skip_unknown: true}"));
    LIST(1);
    CHECK_ERR(HR_ERR_TYPE,
              bench_op(&b, "tokens.vocab_lookup", "{path: x, field: tokens}"));
    CHECK_ERR(HR_ERR_TYPE, bench_op(&b, "text.lower", "{field: tokens}"));
    CHECK_HAS(b.error.message, "must be a byte string");
    CHECK_ERR(HR_ERR_TYPE, bench_op(&b, "text.split", "{field: tokens}"));
    TEXT("a");
    CHECK_ERR(HR_ERR_ARGUMENT, bench_op(&b, "text.split", "{separator: ''}"));
    CHECK(bench_op(&b, "text.normalize", "{form: nfx}") != HR_OK);
    bench_finish(&b);
}

/* ---- back to text, and vectors ---- */

TEST(ids_become_the_text_that_they_came_from)
{
    struct hr_rng rng;
    struct hr_str text;
    char params[700];

    make_files();
    bench_init(&b);
    hr__rng_init(&rng, check_seed(), 0, 2);
    hr__str_init(&text);
    tiny_text(&rng, 200, &text);
    CHECK_OK(tokenize(text.text, text.length, "{json: '%s'%s}", json, ""));
    snprintf(params, sizeof params, "{json: '%s'}", json);
    OP("text.detokenize", params);
    CHECK_EQ_INT(bench_value(&b, "text")->bytes, text.length);
    CHECK_BYTES(bench_value(&b, "text")->data, text.text, text.length);
    CHECK(hr__schema_find(&b.schema, "tokens") == NULL);
    CHECK_EQ_INT(bench_field(&b, "text")->kind, HR_FIELD_BYTES);
    LIST(0);
    bench_value(&b, "tokens")->dims[0] = 0;
    OP("text.detokenize", params);
    CHECK_EQ_INT(bench_value(&b, "text")->bytes, 0);
    LIST(1, 123456);
    CHECK_ERR(HR_ERR_RANGE, bench_op(&b, "text.detokenize", params));
    CHECK_HAS(b.error.message, "id 123456 at position 1 is no token");
    bench_field(&b, "tokens")->dtype = HR_I64;
    CHECK_ERR(HR_ERR_TYPE, bench_op(&b, "text.detokenize", params));
    CHECK_ERR(HR_ERR_ARGUMENT, bench_op(&b, "text.detokenize", "{}"));
    hr__str_finish(&text);
    bench_finish(&b);
}

/* A table of uint16 with `rows` rows of two: row i is 10 i, 10 i + 1. */
static const char *table_params(const char *order, int rows, bool cut)
{
    static char params[700];
    char path[512], dict[100];
    struct hr_str text;

    snprintf(dict, sizeof dict,
             "{'descr': '<u2', 'fortran_order': %s, 'shape': (%d, 2), }\n", order, rows);
    hr__str_init(&text);
    hr__str_add_bytes(&text, "\x93NUMPY\x01\0", 8);
    hr__str_add_bytes(&text, (char[2]){(char)strlen(dict)}, 2);
    hr__str_add(&text, dict);
    for (int i = 0; i < rows; i++)
        hr__str_add_bytes(&text,
                          (uint16_t[2]){(uint16_t)(10 * i), (uint16_t)(10 * i + 1)}, 4);
    text.length -= cut;
    put_file("table.npy", &text, path);
    snprintf(params, sizeof params, "{table: '%s'}", path);
    return params;
}

TEST(ids_become_rows_of_a_table)
{
    static const uint16_t want[] = {20, 21, 0, 1, 20, 21};
    const char *params = table_params("False", 3, false);
    static int32_t gaps[] = {1, 9, 0, 9};
    size_t bytes;
    void *got;

    bench_init(&b);
    LIST(2, 0, 2);
    OP("tokens.embed", params);
    got = bench_bytes(&b, "embeddings", &bytes);
    CHECK_EQ_INT(bytes, sizeof want);
    CHECK_BYTES(got, want, bytes);
    free(got);
    CHECK_EQ_INT(bench_field(&b, "embeddings")->dims[1].size, 2);
    IS_LIST(2, 0, 2);
    LIST(0);
    bench_value(&b, "tokens")->dims[0] = 0;
    OP("tokens.embed", params);
    CHECK_EQ_INT(bench_value(&b, "embeddings")->dims[0], 0);
    put_list(gaps, 2);
    bench_value(&b, "tokens")->strides[0] = 8;
    OP("tokens.embed", params);
    got = bench_bytes(&b, "embeddings", &bytes);
    CHECK_BYTES(got, ((const uint16_t[]){10, 11, 0, 1}), bytes);
    free(got);
    bench_finish(&b);
}

TEST(tables_and_ids_that_do_not_fit_are_refused)
{
    bench_init(&b);
    LIST(3);
    CHECK_ERR(HR_ERR_RANGE,
              bench_op(&b, "tokens.embed", table_params("False", 3, false)));
    CHECK_HAS(b.error.message, "id 3 is no row");
    LIST(-1);
    CHECK_ERR(HR_ERR_RANGE,
              bench_op(&b, "tokens.embed", table_params("False", 3, false)));
    CHECK_ERR(HR_ERR_UNSUPPORTED,
              bench_op(&b, "tokens.embed", table_params("True", 3, false)));
    CHECK_HAS(b.error.message, "ascontiguousarray");
    CHECK_ERR(HR_ERR_SHAPE,
              bench_op(&b, "tokens.embed", table_params("False", 0, false)));
    CHECK_ERR(HR_ERR_FORMAT,
              bench_op(&b, "tokens.embed", table_params("False", 3, true)));
    CHECK_HAS(b.error.message, "ends before its data");
    CHECK_ERR(HR_ERR_NOT_FOUND, bench_op(&b, "tokens.embed", "{table: /nowhere/t.npy}"));
    bench_field(&b, "tokens")->dtype = HR_F32;
    CHECK_ERR(HR_ERR_TYPE, bench_op(&b, "tokens.embed", table_params("False", 3, false)));
    bench_finish(&b);
}

/* ---- masks ---- */

#define MANY 20000

/* Masks 20,000 tokens with ids 10 to 1009, of which 10 is special; *ret_counts: not
 * chosen, masked, random, kept. */
static void count_masked(const char *params, int64_t counts[4])
{
    static int32_t ids[MANY];
    struct hr_rng rng;
    int32_t *got, *labels;
    size_t bytes;

    hr__rng_init(&rng, check_seed(), 0, 3);
    for (int i = 0; i < MANY; i++)
        ids[i] = 10 + (int32_t)hr__rng_below(&rng, 1000);
    put_list(ids, MANY);
    b.id.seed = check_seed();
    OP("tokens.mask", params);
    got = bench_bytes(&b, "tokens", &bytes);
    labels = bench_bytes(&b, "labels", &bytes);
    memset(counts, 0, 4 * sizeof *counts);
    for (int i = 0; i < MANY; i++) {
        CHECK(labels[i] == -100 || labels[i] == ids[i]);
        CHECK(labels[i] != 10);
        CHECK(labels[i] != -100 || got[i] == ids[i]);
        CHECK(got[i] >= 0 && got[i] < 3000);
        counts[labels[i] == -100 ? 0 : got[i] == 3 ? 1 : got[i] == ids[i] ? 3 : 2]++;
    }
    free(got);
    free(labels);
}

/* Nearly ten standard deviations: sqrt(0.5 * 0.5 / 20000) is 0.0035. */
static void check_part(int64_t count, double part)
{
    double off = (double)count / MANY - part;

    if (off > 0.035 || off < -0.035)
        check_failed(__FILE__, __LINE__, "a part of %g instead of %g",
                     (double)count / MANY, part);
}

TEST(tokens_are_chosen_and_replaced_by_their_probabilities)
{
    int64_t counts[4];

    bench_init(&b);
    count_masked("{mask_id: 3, vocab_size: 3000, special: [10, 11111]}", counts);
    check_part(counts[0], 0.85);
    check_part(counts[1], 0.12);
    check_part(counts[2], 0.015);
    check_part(counts[3], 0.015);
    count_masked(
        "{mask_id: 3, vocab_size: 3000, special: 10, probability: 1, masked: 0.5, "
        "random: 0.3}",
        counts);
    check_part(counts[0], 0.001);
    check_part(counts[1], 0.5);
    check_part(counts[2], 0.3);
    check_part(counts[3], 0.2);
    count_masked("{mask_id: 3, special: 10, probability: 1, masked: 1, random: 0}",
                 counts);
    CHECK_EQ_INT(counts[2] + counts[3], 0);
    count_masked("{mask_id: 3, special: 10, probability: 0, random: 0}", counts);
    CHECK_EQ_INT(counts[0], MANY);
    bench_finish(&b);
}

/* Words of one to three tokens, and special ones: 0 special, 1 begins, 2 continues. */
TEST(words_are_masked_as_a_whole)
{
    static int32_t ids[MANY];
    struct hr_rng rng;
    struct hr_str text;
    char path[512], params[700];
    size_t bytes;
    int32_t *labels;

    hr__str_init(&text);
    hr__str_add(&text, "[PAD]\nwater\n##wheel\n[MASK]\n");
    put_file("pieces.txt", &text, path);
    hr__rng_init(&rng, check_seed(), 0, 4);
    for (int i = 0; i < MANY; i++)
        ids[i] = (int32_t)hr__rng_below(&rng, 3);
    bench_init(&b);
    put_list(ids, MANY);
    snprintf(params, sizeof params,
             "{mask_id: 3, special: 0, random: 0, probability: 0.5, whole_words: true, "
             "vocab: '%s'}",
             path);
    OP("tokens.mask", params);
    labels = bench_bytes(&b, "labels", &bytes);
    for (int i = 0; i < MANY; i++) {
        bool more = i > 0 && ids[i] == 2 && ids[i - 1] != 0;

        CHECK(labels[i] == (ids[i] == 0 ? -100 : labels[i]));
        CHECK(!more || (labels[i] == -100) == (labels[i - 1] == -100));
    }
    free(labels);
    bench_finish(&b);
}

TEST(masks_that_make_no_sense_are_refused)
{
    bench_init(&b);
    LIST(1);
    CHECK_ERR(HR_ERR_ARGUMENT, bench_op(&b, "tokens.mask", "{mask_id: 3}"));
    CHECK_HAS(b.error.message, "vocab_size");
    CHECK_ERR(HR_ERR_RANGE,
              bench_op(&b, "tokens.mask", "{mask_id: 3, vocab_size: 9, random: 0.3}"));
    CHECK_ERR(
        HR_ERR_ARGUMENT,
        bench_op(&b, "tokens.mask", "{mask_id: 3, vocab_size: 9, whole_words: true}"));
    CHECK_ERR(HR_ERR_ARGUMENT,
              bench_op(&b, "tokens.mask", "{mask_id: 3, vocab_size: 9, vocab: x}"));
    CHECK(bench_op(&b, "tokens.mask", "{}") != HR_OK);
    CHECK(bench_op(&b, "tokens.mask", "{mask_id: 3, probability: 1.5}") != HR_OK);
    bench_field(&b, "tokens")->ndim = 2;
    CHECK_ERR(HR_ERR_TYPE, bench_op(&b, "tokens.mask", "{mask_id: 3, random: 0}"));
    LIST(0);
    bench_value(&b, "tokens")->dims[0] = 0;
    OP("tokens.mask", "{mask_id: 3, random: 0}");
    check_tokens(NULL, 0);
    bench_finish(&b);
}
