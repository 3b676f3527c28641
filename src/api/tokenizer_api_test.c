#include "codec/bpe_test_util.h"
#include "tests/support/check.h"

#include "core/alloc.h"
#include "core/file.h"
#include "core/thread.h"

#include <stdlib.h>

static struct tiny tiny;

static const char *temp_file(const char *name, struct hr_str *text)
{
    static char path[3][512];
    static int at;

    at = (at + 1) % 3;
    snprintf(path[at], sizeof path[at], "%s/%s", check_temp_dir(), name);
    CHECK_OK(hr__file_replace(path[at], text->text, text->length, NULL));
    hr__str_finish(text);
    return path[at];
}

static struct hr_rng rng_of(uint64_t stream)
{
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, stream);
    return rng;
}

static struct hr_tokenizer *open_gpt2(void)
{
    struct hr_rng rng = rng_of(1);
    struct hr_str encoder, merges;
    struct hr_tokenizer *t = NULL;
    const char *path;

    tiny_draw(&tiny, &rng);
    tiny_encoder(&tiny, &encoder);
    tiny_merges(&tiny, &merges);
    path = temp_file("encoder.json", &encoder);
    CHECK_OK(hr_tokenizer_from_gpt2(path, temp_file("vocab.bpe", &merges), &t, NULL));
    return t;
}

TEST(files_of_every_form_give_the_same_ids)
{
    struct hr_tokenizer *t[3] = {open_gpt2()};
    enum hr_tokenizer_pattern pattern;
    struct hr_str text, file;
    struct hr_tokens ids[3] = {{NULL}};
    int32_t end;

    CHECK(hr_tokenizer_pattern_find("r50k", &pattern));
    tiny_ranks(&tiny, &file);
    CHECK_OK(
        hr_tokenizer_from_tiktoken(temp_file("x.tiktoken", &file), pattern, &t[1], NULL));
    tiny_json(&tiny, TINY_R50K, &file);
    CHECK_OK(hr_tokenizer_from_json(temp_file("tokenizer.json", &file), &t[2], NULL));
    CHECK_EQ_INT(hr_tokenizer_vocab_size(t[0]), TINY_TOKENS);
    CHECK_EQ_INT(hr_tokenizer_vocab_size(t[1]), TINY_TOKENS);
    CHECK_EQ_INT(hr_tokenizer_vocab_size(t[2]), TINY_TOKENS + 1);
    hr__str_init(&text);
    /* a few merges are the same by pairs and by ranks */
    hr__str_add(&text, "ab, it's 12\n");
    for (int i = 0; i < 3; i++)
        CHECK_OK(hr_tokenizer_append(t[i], text.text, text.length, &ids[i], NULL));
    CHECK_EQ_INT(ids[0].count, ids[2].count);
    CHECK_BYTES(ids[0].ids, ids[2].ids, ids[0].count * sizeof(int32_t));
    end = TINY_TOKENS;
    CHECK_OK(
        hr_tokenizer_decode(t[2], &end, 1, text.text, text.length, &ids[0].room, NULL));
    CHECK_EQ_INT(ids[0].room, 7);
    CHECK_BYTES(text.text, "<|end|>", 7);
    for (int i = 0; i < 3; i++) {
        hr_tokens_finish(&ids[i]);
        hr_tokenizer_destroy(t[i]);
    }
    hr__str_finish(&text);
}

TEST(ids_go_to_a_buffer_of_any_size_that_holds_them)
{
    struct hr_tokenizer *t = open_gpt2();
    struct hr_error error = {0};
    struct hr_rng rng = rng_of(2);
    struct hr_tokens all = {NULL};
    int32_t *ids;
    struct hr_str text;
    size_t count;

    hr__str_init(&text);
    tiny_text(&rng, 50, &text);
    CHECK_OK(hr_tokenizer_append(t, text.text, text.length, &all, NULL));
    ids = malloc((text.length + 5) * sizeof *ids);
    for (size_t room = 0; room < text.length + 5; room++) {
        enum hr_err err;

        memset(ids, 0x55, (text.length + 5) * sizeof *ids);
        err = hr_tokenizer_encode(t, text.text, text.length, ids, room, &count, &error);
        CHECK_ERR(room >= all.count ? HR_OK : HR_ERR_LIMIT, err);
        CHECK_EQ_INT(count, all.count);
        if (err == HR_OK)
            CHECK_BYTES(ids, all.ids, count * sizeof *ids);
        for (size_t i = room; i < text.length + 5; i++)
            CHECK_EQ_INT(ids[i], 0x55555555);
    }
    CHECK_HAS(error.message, "room is for");
    CHECK_OK(hr_tokenizer_encode(t, "", 0, NULL, 0, &count, NULL));
    CHECK_EQ_INT(count, 0);
    free(ids);
    hr_tokens_finish(&all);
    hr__str_finish(&text);
    hr_tokenizer_destroy(t);
}

TEST(batches_do_not_depend_on_the_number_of_threads)
{
    struct hr_tokenizer *t = open_gpt2();
    struct hr_rng rng = rng_of(3);
    struct hr_tokenizer_text texts[300];
    int64_t offsets[301], want[301];
    struct hr_tokens all = {NULL}, values = {NULL};
    struct hr_str text;

    hr__str_init(&text);
    while (text.length < 500000)
        tiny_text(&rng, 1000, &text);
    for (size_t i = 0, at = 0; i < 300; i++) {
        size_t left = text.length - at;
        size_t bytes = i == 299 ? left : hr__rng_below(&rng, 2 * left / (300 - i) + 1);

        texts[i] = (struct hr_tokenizer_text){text.text + at, bytes};
        at += bytes;
        want[i] = (int64_t)all.count;
        CHECK_OK(hr_tokenizer_append(t, texts[i].data, bytes, &all, NULL));
    }
    want[300] = (int64_t)all.count;
    for (int threads = 0; threads < 9; threads++) {
        CHECK_OK(
            hr_tokenizer_encode_batch(t, texts, 300, threads, &values, offsets, NULL));
        CHECK_EQ_INT(values.count, all.count);
        CHECK_BYTES(values.ids, all.ids, all.count * sizeof *all.ids);
        CHECK_BYTES(offsets, want, sizeof want);
    }
    CHECK_OK(hr_tokenizer_encode_batch(t, NULL, 0, 2, &values, offsets, NULL));
    CHECK(values.count == 0 && offsets[0] == 0);
    hr_tokens_finish(&all);
    hr_tokens_finish(&values);
    hr__str_finish(&text);
    hr_tokenizer_destroy(t);
}

/* Threads that are refused, and memory that is. */
TEST(failures_within_a_batch_are_reported_or_made_up_for)
{
    static char block[600000]; /* its ids are mapped */
    struct hr_tokenizer *t = open_gpt2();
    struct hr_tokenizer_text texts[3];
    struct hr_tokens values = {NULL};
    struct hr_error error = {0};
    int64_t offsets[4];
    bool failed = true;

    memset(block, 'a', sizeof block);
    for (size_t i = 0; i < sizeof block; i += 9)
        block[i] = ' ';
    for (int i = 0; i < 3; i++)
        texts[i] = (struct hr_tokenizer_text){block, sizeof block};
    hr__fault_arm(HR_FAULT_THREAD, 1);
    CHECK_OK(hr_tokenizer_encode_batch(t, texts, 3, 3, &values, offsets, &error));
    CHECK_EQ_INT(values.count, 3 * offsets[1]);
    for (int i = 1; i < 3; i++)
        CHECK_BYTES(values.ids + offsets[i], values.ids,
                    (size_t)offsets[1] * sizeof *values.ids);
    hr__fault_arm(0, 0);
    CHECK_EQ_INT(offsets[3], 3 * offsets[1]);
    for (uint64_t nth = 1; failed; nth++) {
        enum hr_err err;

        hr__fault_arm(HR_FAULT_ALLOC, nth);
        err = hr_tokenizer_encode_batch(t, texts, 3, 3, &values, offsets, &error);
        failed = hr__fault_calls() >= nth;
        hr__fault_arm(0, 0);
        CHECK(failed ? err == HR_ERR_MEMORY || err == HR_OK : err == HR_OK);
        CHECK(err == HR_OK || values.count == 0);
        hr_tokens_finish(&values);
    }
    hr_tokenizer_destroy(t);
}

struct encoder {
    struct hr_tokenizer *t;
    struct hr_str text;
    const struct hr_tokens *want;
    bool same;
};

static void *encode_often(void *user)
{
    struct encoder *e = user;
    struct hr_tokens ids = {NULL};

    e->same = true;
    for (int i = 0; i < 200 && e->same; i++) {
        ids.count = 0;
        e->same = hr_tokenizer_append(e->t, e->text.text, e->text.length, &ids, NULL) ==
                      HR_OK &&
                  ids.count == e->want->count &&
                  memcmp(ids.ids, e->want->ids, ids.count * sizeof *ids.ids) == 0;
    }
    hr_tokens_finish(&ids);
    return NULL;
}

TEST(many_threads_encode_with_one_tokenizer)
{
    struct hr_tokenizer *t = open_gpt2();
    struct encoder encoders[6];
    struct hr_tokens want[6] = {{NULL}};
    pthread_t threads[6];

    for (uint64_t i = 0; i < 6; i++) {
        struct hr_rng rng = rng_of(10 + i);

        encoders[i] = (struct encoder){.t = t, .want = &want[i]};
        tiny_text(&rng, 200, &encoders[i].text);
        CHECK_OK(hr_tokenizer_append(t, encoders[i].text.text, encoders[i].text.length,
                                     &want[i], NULL));
    }
    for (int i = 0; i < 6; i++)
        CHECK_OK(
            hr__thread_start(&threads[i], "encoder", encode_often, &encoders[i], NULL));
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 6; i++) {
        CHECK(encoders[i].same);
        hr__str_finish(&encoders[i].text);
        hr_tokens_finish(&want[i]);
    }
    hr_tokenizer_destroy(t);
}

TEST(sentencepiece_models_are_read)
{
    static const int32_t want[] = {30, 33, 40, 30, 42, 36, 41, 35};
    struct hr_tokenizer *t = NULL;
    struct hr_error error = {0};
    int32_t ids[8];
    size_t count = 0;
    char path[600];

    snprintf(path, sizeof path, "%s/fuzz/corpus/sentencepiece/unigram",
             check_source_dir());
    CHECK_OK(hr_tokenizer_from_sentencepiece(path, &t, NULL));
    CHECK_EQ_INT(hr_tokenizer_vocab_size(t), 52);
    CHECK_ERR(HR_ERR_LIMIT, hr_tokenizer_encode(t, "\ufdfa", 3, ids, 7, &count, &error));
    CHECK_EQ_INT(count, 8); /* a text may have more ids than bytes */
    CHECK_OK(hr_tokenizer_encode(t, "\ufdfa", 3, ids, 8, &count, NULL));
    CHECK_BYTES(ids, want, sizeof want);
    hr_tokenizer_destroy(t);
    CHECK_ERR(HR_ERR_ARGUMENT, hr_tokenizer_from_sentencepiece(NULL, &t, NULL));
    CHECK_ERR(HR_ERR_NOT_FOUND,
              hr_tokenizer_from_sentencepiece("/nowhere/x.model", &t, &error));
    CHECK_HAS(error.message, "/nowhere/x.model");
}

TEST(wrong_arguments_are_refused)
{
    enum hr_tokenizer_pattern pattern;
    struct hr_tokenizer *t = open_gpt2(), *none = NULL;
    struct hr_error error = {0};
    struct hr_tokens values = {NULL};
    int64_t offsets[1];
    int32_t id = TINY_TOKENS, ok = 3;
    size_t bytes;
    char text[4];

    CHECK(!hr_tokenizer_pattern_find("gpt2", &pattern));
    CHECK_ERR(HR_ERR_NOT_FOUND, hr_tokenizer_from_json("/nowhere/x.json", &none, &error));
    CHECK_HAS(error.message, "/nowhere/x.json");
    CHECK_ERR(HR_ERR_NOT_FOUND,
              hr_tokenizer_from_tiktoken("/nowhere/x", HR_PATTERN_o200k, &none, &error));
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_tokenizer_from_tiktoken("/nowhere/x", (enum hr_tokenizer_pattern)9,
                                         &none, NULL));
    CHECK_ERR(HR_ERR_NOT_FOUND,
              hr_tokenizer_from_gpt2("/nowhere/e", "/nowhere/m", &none, &error));
    CHECK_ERR(HR_ERR_ARGUMENT, hr_tokenizer_from_json(NULL, &none, NULL));
    CHECK_ERR(HR_ERR_LIMIT,
              hr_tokenizer_append(t, text, HR_TOKENIZER_TEXT_MAX + 1, &values, &error));
    CHECK_HAS(error.message, "split it");
    CHECK_ERR(HR_ERR_ARGUMENT, hr_tokenizer_append(t, NULL, 1, &values, NULL));
    CHECK_OK(hr_tokenizer_append(t, "a", 1, &values, NULL));
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_tokenizer_encode_batch(t, NULL, 0, 1000, &values, offsets, NULL));
    CHECK_EQ_INT(values.count, 0);
    hr_tokens_finish(&values);
    CHECK_ERR(HR_ERR_RANGE, hr_tokenizer_decode(t, &id, 1, text, 4, &bytes, &error));
    CHECK_HAS(error.message, "id 376 at position 0");
    id = -1;
    CHECK_ERR(HR_ERR_RANGE, hr_tokenizer_decode(t, &id, 1, text, 4, &bytes, NULL));
    CHECK_ERR(HR_ERR_LIMIT, hr_tokenizer_decode(t, &ok, 1, NULL, 0, &bytes, &error));
    CHECK_EQ_INT(bytes, 1);
    hr_tokenizer_destroy(t);
    hr_tokenizer_destroy(NULL);
}

TEST(gpt2_encodes_what_it_is_known_to)
{
    static const int32_t want[] = {15496, 995, 0, 314, 1101, 220, 1353, 1849, 19526, 254};
    char encoder[512], merges[512];
    struct hr_tokenizer *t = NULL;
    struct hr_tokens ids = {NULL};
    const char *dir = check_data_dir();

    if (dir == NULL)
        SKIP("no shared data");
    snprintf(encoder, sizeof encoder, "%s/tokenizer/gpt2-encoder.json", dir);
    snprintf(merges, sizeof merges, "%s/tokenizer/gpt2-vocab.bpe", dir);
    CHECK_OK(hr_tokenizer_from_gpt2(encoder, merges, &t, NULL));
    CHECK_EQ_INT(hr_tokenizer_vocab_size(t), 50257);
    CHECK_OK(hr_tokenizer_append(t, "Hello world! I'm  top\xC2\xA0\xE4\xBD\xA0", 26, &ids,
                                 NULL));
    CHECK_EQ_INT(ids.count, sizeof want / sizeof want[0]);
    CHECK_BYTES(ids.ids, want, sizeof want);
    hr_tokens_finish(&ids);
    hr_tokenizer_destroy(t);
}
