/*
 * store/index_list_test.c - files and labels from a table, and what does not match.
 */
#include "store/index_test_util.h"

static struct hr_table table;

/* Options for a list whose columns are path and, if there is one, label. */
static struct hr_index_options list_options(const char *name, const char *text)
{
    struct hr_index_options opt = options();
    int label;

    CHECK_OK(hr__table_parse(text, strlen(text), name, "path", &table, NULL));
    label = table.header             ? hr__table_find(&table, "label")
            : table.column_count > 1 ? 1
                                     : -1;
    CHECK_OK(hr__table_use_text(&table, 0, NULL));
    if (label >= 0)
        CHECK_OK(hr__table_use(&table, label, NULL));
    hr__table_drop_unused(&table);
    opt.table = &table;
    opt.label_column = label;
    return opt;
}

static struct hr_index *open_list(const char *name, const char *text)
{
    struct hr_index_options opt = list_options(name, text);

    return open_ok(&opt);
}

TEST(lists_keep_their_order_and_number_classes_by_name)
{
    struct hr_index *index;

    begin_tree("csv");
    put("z.jpg");
    put("a/b.jpg");
    put("q,\"x\".jpg");
    index = open_list("n.csv", "z.jpg,7\na/b.jpg,3\r\n\"q,\"\"x\"\".jpg\",-2\n");
    CHECK_EQ_STR(listing(index), "z.jpg=7\na/b.jpg=3\nq,\"x\".jpg\n");
    CHECK_EQ_INT(hr__index_label(index, 2), -2);
    CHECK_EQ_INT(hr__index_classes(index)->count, 0);
    hr__index_unref(index);
    index = open_list("h.csv", "path,Label\n./z.jpg,cat\na/b.jpg,ant\n"
                               "\"q,\"\"x\"\".jpg\",cat");
    CHECK_EQ_INT(hr__index_label(index, 0), 1);
    CHECK_EQ_INT(hr__index_label(index, 1), 0);
    CHECK_EQ_STR(hr__index_classes(index)->names[0], "ant");
    CHECK_EQ_STR(hr__index_classes(index)->names[1], "cat");
    hr__index_unref(index);
}

TEST(listed_paths_that_begin_with_a_slash_stay_as_they_are)
{
    struct hr_index *index;
    char text[1200], path[1024];

    begin_tree("absolute");
    put("x.jpg");
    snprintf(text, sizeof text, "%s,1\n", in_root("x.jpg"));
    index = open_list("abs.csv", text);
    CHECK_OK(hr__index_path(index, 0, path, sizeof path, NULL));
    CHECK_EQ_STR(path, in_root("x.jpg"));
    hr__index_unref(index);
}

static void
check_refused(struct hr_index_options opt, enum hr_err code, int line, const char *what)
{
    struct hr_index *index = NULL;
    struct hr_error error = {0};

    CHECK_ERR(code, hr__index_open(&opt, &index, &error));
    CHECK_HAS(error.message, what);
    CHECK_EQ_INT(error.line, line);
    CHECK(index == NULL && table.columns == NULL);
}

TEST(a_file_without_a_line_is_refused_or_skipped)
{
    struct hr_index_options opt;
    struct hr_index *index;

    begin_tree("unlisted");
    put("a.jpg");
    put("b/c.jpg");
    put("b/d.jpg");
    check_refused(list_options("l.csv", "a.jpg,1\n"), HR_ERR_NOT_FOUND, 0, "b/c.jpg in ");
    check_refused(list_options("l.csv", "a.jpg,1\n"), HR_ERR_NOT_FOUND, 0,
                  "has no line in l.csv (2 such files)");
    opt = list_options("l.csv", "a.jpg,1\n");
    opt.skip_unlisted = true;
    index = open_ok(&opt);
    CHECK_EQ_STR(listing(index), "a.jpg=1\n");
    CHECK_EQ_INT(stats_of(index).unlisted, 2);
    hr__index_unref(index);
    opt = list_options("l.csv", "a.jpg,1\n");
    opt.recursive = false; /* files below root are none of its files */
    index = open_ok(&opt);
    CHECK_EQ_INT(hr__index_count(index), 1);
    hr__index_unref(index);
}

TEST(a_line_without_a_file_is_refused_or_skipped)
{
    static const char text[] =
        "path,label\nb.jpg,x\na.jpg,u\n\nno.jpg,z\nc.bmp,w\na.jpg,v\n";
    static const char *const suffixes[] = {".jpg"};
    struct hr_index_options opt;
    struct hr_index *index;

    begin_tree("missing");
    put("a.jpg");
    put("b.jpg");
    put("c.bmp");
    check_refused(list_options("l.csv", text), HR_ERR_NOT_FOUND, 5, "l.csv:5: ");
    check_refused(list_options("l.csv", text), HR_ERR_NOT_FOUND, 5, "no.jpg");
    opt = list_options("l.csv", text);
    opt.skip_missing = true;
    opt.suffixes = suffixes; /* a listed file may have any name */
    opt.suffix_count = 1;
    index = open_ok(&opt);
    CHECK_EQ_STR(listing(index), "b.jpg=3\na.jpg=0\nc.bmp=2\na.jpg=1\n");
    CHECK_EQ_INT(stats_of(index).missing, 1);
    hr__index_unref(index);
    check_refused(list_options("l.csv", "a.jpg,1\n\"\",2\n"), HR_ERR_FORMAT, 2,
                  "the path is empty");
}

TEST(given_classes_decide_the_numbers)
{
    static const char *const cat_dog[] = {"dog", "cat", "owl"};
    struct hr_index_options opt;
    struct hr_index *index;

    begin_tree("given");
    put("cat/1");
    put("dog/2");
    opt = list_options("l.csv", "path,label\ncat/1,cat\ndog/2,dog\n");
    opt.classes = cat_dog;
    opt.class_count = 3;
    index = open_ok(&opt);
    CHECK_EQ_STR(listing(index), "cat/1=1\ndog/2=0\n");
    CHECK_EQ_INT(hr__index_classes(index)->count, 3);
    hr__index_unref(index);
    opt.table = NULL;
    opt.folder_labels = true;
    index = open_ok(&opt);
    CHECK_EQ_STR(listing(index), "cat/1=1\ndog/2=0\n");
    CHECK_EQ_STR(hr__index_classes(index)->names[2], "owl");
    hr__index_unref(index);
    put("dogs/3");
    check_refused(opt, HR_ERR_ARGUMENT, 0,
                  "\"dogs\" is not among the 3 given classes; did you mean \"dog\"?");
    opt = list_options("l.csv", "path,label\ncat/1,cat\ndog/2,zebra\n");
    opt.classes = cat_dog;
    opt.class_count = 3;
    opt.skip_unlisted = true;
    check_refused(opt, HR_ERR_ARGUMENT, 3, "l.csv:3: class \"zebra\" is not among");
    opt = list_options("l.csv", "path,label\ncat/1,1\n");
    opt.classes = cat_dog;
    opt.class_count = 3;
    opt.skip_unlisted = true;
    check_refused(opt, HR_ERR_ARGUMENT, 0, "are numbers");
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

TEST(the_identity_covers_every_used_column)
{
    static const char *const texts[] = {"path,n\na/1,1\n", "path,n\na/1,2\n",
                                        "path,n\na/1,2.0\n", "path,n\na/1,x\n"};
    struct hr_hash128 seen[4];

    begin_tree("columns");
    put("a/1");
    for (int i = 0; i < 4; i++) {
        struct hr_index_options opt = options();
        struct hr_index *index;

        CHECK_OK(
            hr__table_parse(texts[i], strlen(texts[i]), "l.csv", "path", &table, NULL));
        CHECK_OK(hr__table_use_text(&table, 0, NULL));
        CHECK_OK(hr__table_use(&table, 1, NULL));
        opt.table = &table;
        opt.label_column = -1;
        index = open_ok(&opt);
        seen[i] = hr__index_identity(index);
        for (int k = 0; k < i; k++)
            CHECK(!hr__hash_equal(seen[k], seen[i]));
        hr__index_unref(index);
    }
}
