#include "codec/bpe_test_util.h"
#include "ops/ops_test_util.h"

#include "core/file.h"

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
        check_list(want_, sizeof want_);                                                 \
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

static void check_list(const int32_t *want, size_t want_bytes)
{
    size_t bytes;
    int32_t *got = bench_bytes(&b, "tokens", &bytes);

    CHECK_EQ_INT(bytes, want_bytes);
    CHECK_BYTES(got, want, bytes);
    free(got);
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
    check_list(NULL, 0);
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
    check_list(NULL, 0);
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
    bench_put(&b, "tokens_mask");
    CHECK_ERR(HR_ERR_ARGUMENT, bench_op(&b, "tokens.pad", "{length: 4, mask: true}"));
    CHECK_HAS(b.error.message, "tokens_mask");
    bench_field(&b, "tokens")->ndim = 0;
    CHECK_ERR(HR_ERR_TYPE, bench_op(&b, "tokens.pad", "{length: 4}"));
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
