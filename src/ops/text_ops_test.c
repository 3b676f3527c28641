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
