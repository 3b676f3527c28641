/*
 * codec/vocab_test.c - vocabulary files of lines and of JSON.
 */
#include "codec/vocab.h"
#include "tests/support/check.h"

static struct hr_error error;

static enum hr_err
open_vocab(const char *name, const char *text, size_t bytes, struct hr_vocab **ret_vocab)
{
    const struct hr_tokenizer_file file = {.data = text, .bytes = bytes, .name = name};

    memset(&error, 0, sizeof error);
    return hr__vocab_read(&file, ret_vocab, &error);
}

static void check_ids(const struct hr_vocab *vocab, const char *word, int32_t id)
{
    const char *found;
    size_t bytes;

    CHECK_EQ_INT(hr__vocab_find(vocab, word, strlen(word)), id);
    if (id < 0)
        return;
    found = hr__vocab_word(vocab, id, &bytes);
    CHECK_EQ_INT(bytes, strlen(word));
    CHECK_BYTES(found, word, bytes);
}

#define OPEN(name, text) CHECK_OK(open_vocab(name, text, sizeof text - 1, &v))

TEST(a_line_is_a_word)
{
    struct hr_vocab *v;

    OPEN("v.txt", "\xEF\xBB\xBF[PAD]\r\nthe\n{\n\n two words\nlast");
    check_ids(v, "[PAD]", 0);
    check_ids(v, "the", 1);
    check_ids(v, "{", 2);
    check_ids(v, "", 3);
    check_ids(v, " two words", 4);
    check_ids(v, "last", 5);
    check_ids(v, "las", -1);
    CHECK_EQ_INT(hr__vocab_size(v), 6);
    CHECK(hr__vocab_word(v, 6, &(size_t){0}) == NULL);
    CHECK(hr__vocab_word(v, -1, &(size_t){0}) == NULL);
    hr__vocab_destroy(v);
    OPEN("v.txt", "a\nb\n");
    CHECK_EQ_INT(hr__vocab_size(v), 2);
    hr__vocab_destroy(v);
}

TEST(an_object_has_ids_with_gaps)
{
    struct hr_vocab *v, *lines;

    OPEN("v.json", "{\"a\": 3, \"\\u00e9\": 0}");
    check_ids(v, "a", 3);
    check_ids(v, "\u00e9", 0);
    CHECK(hr__vocab_word(v, 1, &(size_t){0}) == NULL);
    CHECK_EQ_INT(hr__vocab_size(v), 4);
    hr__vocab_destroy(v);
    OPEN("v.json", "{\"a\": 0, \"b\": 1}");
    CHECK_OK(open_vocab("v.txt", "a\nb", 3, &lines));
    CHECK(hr__hash_equal(hr__vocab_hash(v), hr__vocab_hash(lines)));
    hr__vocab_destroy(lines);
    CHECK_OK(open_vocab("v.txt", "b\na", 3, &lines));
    CHECK(!hr__hash_equal(hr__vocab_hash(v), hr__vocab_hash(lines)));
    hr__vocab_destroy(lines);
    hr__vocab_destroy(v);
}

TEST(vocabularies_of_many_words)
{
    char text[60000], word[16];
    size_t bytes = 0;
    struct hr_vocab *v;

    for (int i = 0; i < 7000; i++)
        bytes += (size_t)snprintf(text + bytes, sizeof text - bytes, "w%d\n", i);
    CHECK_OK(open_vocab("v", text, bytes, &v));
    for (int i = 0; i < 7000; i++) {
        snprintf(word, sizeof word, "w%d", i);
        check_ids(v, word, i);
    }
    hr__vocab_destroy(v);
}

static void
check_refused(const char *name, const char *text, enum hr_err code, const char *words)
{
    struct hr_vocab *v;

    CHECK_ERR(code, open_vocab(name, text, strlen(text), &v));
    CHECK_HAS(error.message, words);
}

TEST(damaged_vocabularies_are_refused)
{
    check_refused("v.txt", "", HR_ERR_FORMAT, "holds no words");
    check_refused("v.txt", "a\nb\na\n", HR_ERR_FORMAT, "v.txt:3");
    check_refused("v.txt", "a\n\nb\n\n", HR_ERR_FORMAT, "v.txt:4");
    check_refused("v.json", "{\"a\": 1, \"b\": 1}", HR_ERR_FORMAT, "another word's");
    check_refused("v.json", "{\"a\": -1}", HR_ERR_RANGE, "v.json:1");
    check_refused("v.json", "{\"a\": 2097151}", HR_ERR_RANGE, "2097150");
    check_refused("v.json", "{\"a\": \"b\"}", HR_ERR_FORMAT, "must be an integer");
    check_refused("v.json", "[1]", HR_ERR_FORMAT, "not a list");
    check_refused("v.json", "{}", HR_ERR_FORMAT, "holds no words");
    check_refused("v.json", "{\"a\": 1", HR_ERR_FORMAT, "v.json:1");
}
