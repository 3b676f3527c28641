/*
 * store/index_list_test.c - lists of files and labels: their meaning, and their errors.
 */
#include "store/index_test_util.h"

static struct hr_index *open_list(const char *name, const char *text)
{
    struct hr_index_options opt = options();

    opt.label_file = list_text(name, text, strlen(text));
    return open_ok(&opt);
}

TEST(csv_lists_keep_their_order_and_number_labels)
{
    struct hr_index *index;

    begin_tree("csv");
    index = open_list("n.csv", "z.jpg,7\na/b.jpg,3\r\n\"q,\"\"x\"\".jpg\",-2\n");
    CHECK_EQ_STR(listing(index), "z.jpg=7\na/b.jpg=3\nq,\"x\".jpg\n");
    CHECK_EQ_INT(hr__index_label(index, 2), -2);
    CHECK_EQ_INT(hr__index_label_count(index), 0);
    hr__index_unref(index);
    index = open_list("h.csv", "\xef\xbb\xbfid,Label,PATH\n1,cat,x\n2,ant,y\n\n3,cat,z");
    CHECK_EQ_STR(listing(index), "x=1\ny=0\nz=1\n");
    CHECK_EQ_STR(hr__index_label_name(index, 0), "ant");
    CHECK_EQ_STR(hr__index_label_name(index, 1), "cat");
    hr__index_unref(index);
    index = open_list("p.csv", "x\ny\n");
    CHECK_EQ_INT(hr__index_label(index, 1), -1);
    hr__index_unref(index);
}

TEST(both_json_parsers_give_the_same)
{
    struct hr_index *index;

    begin_tree("jsonl");
    index =
        open_list("a.jsonl", "{\"path\": \"x\", \"label\": \"dog\"}\n\n"
                             "{\"label\":\"cat\",\"path\":\"y\"}\r\n"
                             "{\"path\": \"z\\u00e4\", \"label\": \"dog\", \"w\": 1}");
    CHECK_EQ_STR(listing(index), "x=1\ny=0\nz\xc3\xa4=1\n");
    hr__index_unref(index);
    index = open_list("b.jsonl", "{\"path\": \"x\", \"label\": 12}\n");
    CHECK_EQ_STR(listing(index), "x=12\n");
    hr__index_unref(index);
}

TEST(listed_paths_that_begin_with_a_slash_stay_as_they_are)
{
    struct hr_index *index;
    char path[64];

    begin_tree("absolute");
    index = open_list("abs.csv", "/somewhere/x.jpg,1\n");
    CHECK_OK(hr__index_path(index, 0, path, sizeof path, NULL));
    CHECK_EQ_STR(path, "/somewhere/x.jpg");
    hr__index_unref(index);
}

static void
check_wrong(const char *name, const char *text, size_t bytes, int line, const char *what)
{
    struct hr_index_options opt = options();
    struct hr_index *index = NULL;
    struct hr_error error = {0};
    char place[32];

    opt.label_file = list_text(name, text, bytes);
    CHECK_ERR(HR_ERR_FORMAT, hr__index_open(&opt, &index, &error));
    snprintf(place, sizeof place, "%s:%d: ", name, line);
    CHECK_HAS(error.message, place);
    CHECK_HAS(error.message, what);
    CHECK_EQ_INT(error.line, line);
    CHECK_EQ_STR(error.file, opt.label_file);
    CHECK(index == NULL);
}

#define CHECK_WRONG(name, text, line, what)                                              \
    check_wrong(name, text, sizeof text - 1, line, what)

TEST(errors_in_lists_name_file_and_line)
{
    begin_tree("wronglist");
    CHECK_WRONG("w.csv", "a,1\nb\n", 2, "another number of columns");
    CHECK_WRONG("w.csv", "a,1\n\"b\nc\",2\n,3\n", 4, "the path is empty");
    CHECK_WRONG("w.csv", "a,1\nb,\n", 2, "the label is empty");
    CHECK_WRONG("w.csv", "a,\"1\n", 1, "a quote is not closed");
    CHECK_WRONG("w.csv", "\"a\"x,1\n", 1, "follows a closing quote");
    CHECK_WRONG("w.csv", "a\"x,1\n", 1, "a quote stands inside");
    CHECK_WRONG("w.csv", "a,1,2\n", 1, "no header");
    CHECK_WRONG("w.csv", "a\0b,1\n", 1, "zero byte");
    CHECK_WRONG("w.jsonl", "{\"path\":\"a\",\"label\":1}\n{\"label\":1}\n", 2,
                "\"path\"");
    CHECK_WRONG("w.jsonl",
                "{\"path\":\"a\",\"label\":1}\n{\"path\":\"b\",\"label\":\"x\"}", 2,
                "the label is a text");
    CHECK_WRONG("w.jsonl", "{\"path\":\"a\",\"label\":1}\n{\"path\":\"b\"}", 2,
                "has no label");
    CHECK_WRONG("w.jsonl", "{\"path\":\"a\",\"label\":1.5}\n", 1, "neither text nor");
    CHECK_WRONG("w.jsonl", "{\"path\":\n", 1, "no JSON object");
}

TEST(a_list_and_a_walk_of_the_same_files_have_the_same_identity)
{
    struct hr_index_options opt;
    struct hr_index *walked, *listed, *other;
    struct hr_error error = {0};

    begin_tree("identity");
    put("a/1");
    put("b/2");
    opt = options();
    walked = open_ok(&opt);
    listed = open_list("same.csv", "a/1\nb/2\n");
    other = open_list("other.csv", "b/2\na/1\n");
    CHECK(hr__hash_equal(hr__index_identity(walked), hr__index_identity(listed)));
    CHECK(!hr__hash_equal(hr__index_identity(walked), hr__index_identity(other)));
    CHECK_ERR(HR_ERR_UNSUPPORTED, hr__index_save(listed, "/nowhere", &error));
    hr__index_unref(hr__index_ref(walked));
    hr__index_unref(walked);
    hr__index_unref(listed);
    hr__index_unref(other);
}
