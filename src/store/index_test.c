/*
 * store/index_test.c - names of files: order, patterns, labels, errors, and a failure of
 * every call.
 */
#include "core/alloc.h"
#include "store/index_internal.h"
#include "store/index_test_util.h"

static const char *const mixed[] = {
    "b/x.jpg",    "b-1/y.jpg",     "b.jpg",      "a/2.JPG",      "a/10.jpg", "a/1.jpg",
    "a/note.txt", "a/.hidden.jpg", ".git/z.jpg", "a/sub/3.jpeg", NULL};

TEST(files_come_in_the_order_of_path_bytes)
{
    struct hr_index_options opt;
    struct hr_index *index;

    begin_tree("order");
    put_all(mixed);
    opt = options();
    index = open_ok(&opt);
    CHECK_EQ_STR(listing(index), "a/1.jpg\na/10.jpg\na/2.JPG\na/note.txt\na/sub/3.jpeg\n"
                                 "b-1/y.jpg\nb.jpg\nb/x.jpg\n");
    CHECK_EQ_INT(hr__index_label(index, 0), -1);
    CHECK_EQ_INT(hr__index_classes(index)->count, 0);
    CHECK_EQ_INT(hr__index_classes(index)->count, 0);
    hr__index_unref(index);
}

TEST(files_and_folders_that_share_a_beginning_interleave_by_bytes)
{
    static const char *const paths[] = {"s/a/1",  "s/a-",   "s/a.", "s/a0", "s/a/b/1",
                                        "s/a/b-", "s/a/b0", "s/A",  NULL};
    struct hr_index_options opt;
    struct hr_index *index;

    begin_tree("interleave");
    put_all(paths);
    opt = options();
    index = open_ok(&opt);
    CHECK_EQ_STR(listing(index),
                 "s/A\ns/a-\ns/a.\ns/a/1\ns/a/b-\ns/a/b/1\ns/a/b0\ns/a0\n");
    hr__index_unref(index);
}

TEST(suffixes_ignore_case_and_recursion_can_be_off)
{
    static const char *const suffixes[] = {".jpg", ".Jpeg"};
    struct hr_index_options opt;
    struct hr_index *index;

    begin_tree("suffixes");
    put_all(mixed);
    opt = options();
    opt.suffixes = suffixes;
    opt.suffix_count = 2;
    index = open_ok(&opt);
    CHECK_EQ_STR(listing(index), "a/1.jpg\na/10.jpg\na/2.JPG\na/sub/3.jpeg\n"
                                 "b-1/y.jpg\nb.jpg\nb/x.jpg\n");
    hr__index_unref(index);
    opt.recursive = false;
    index = open_ok(&opt);
    CHECK_EQ_STR(listing(index), "b.jpg\n");
    hr__index_unref(index);
}

static char *matched(const char *pattern)
{
    struct hr_index_options opt = options();
    struct hr_index *index;
    char glob[1024], *text;

    snprintf(glob, sizeof glob, "%s/%s", root, pattern);
    opt.root = glob;
    index = open_ok(&opt);
    text = listing(index);
    hr__index_unref(index);
    return text;
}

TEST(patterns_choose_folders_and_files)
{
    begin_tree("patterns");
    put_all(mixed);
    CHECK_EQ_STR(matched("*/*.jpg"), "a/1.jpg\na/10.jpg\nb-1/y.jpg\nb/x.jpg\n");
    CHECK_EQ_STR(matched("**/*.jp*g"),
                 "a/1.jpg\na/10.jpg\na/sub/3.jpeg\nb-1/y.jpg\nb.jpg\nb/x.jpg\n");
    CHECK_EQ_STR(matched("**/sub/**"), "a/sub/3.jpeg\n");
    CHECK_EQ_STR(matched("[!b]/?.*"), "a/1.jpg\na/2.JPG\n");
    CHECK_EQ_STR(matched("a/.*.jpg"), "a/.hidden.jpg\n");
    CHECK_EQ_STR(matched("a/**/*.jpeg"), "a/sub/3.jpeg\n");
    CHECK_EQ_STR(matched("*.jpg"), "b.jpg\n");
}

TEST(globs_match_like_the_shell)
{
    static const struct {
        const char *glob, *name;
        bool match;
    } cases[] = {
        {"*",           "",       true },
        {"*a*b",        "xaxxb",  true },
        {"*a*b",        "xaxxbc", false},
        {"a?c",         "abc",    true },
        {"a?c",         "ac",     false},
        {"[a-c]x",      "bx",     true },
        {"[a-c]x",      "dx",     false},
        {"[^a-c]x",     "dx",     true },
        {"[]]",         "]",      true },
        {"[a",          "[a",     true },
        {"[a",          "a",      false},
        {"[*]",         "*",      true },
        {"a**",         "a",      true },
        {"**b",         "ab",     true },
        {"[a-]",        "-",      true },
        {"*.jpg",       ".jpg",   true },
        {"abc",         "ab",     false},
        {"ab",          "abc",    false},
        {"[\x80-\xff]", "\xe4",   true },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (hr__glob_match(cases[i].glob, strlen(cases[i].glob), cases[i].name,
                           strlen(cases[i].name)) != cases[i].match)
            check_failed(__FILE__, __LINE__, "%s on %s", cases[i].glob, cases[i].name);
    }
}

TEST(an_existing_root_is_not_a_pattern)
{
    struct hr_index_options opt;
    struct hr_index *index;

    begin_tree("set[1]*");
    put("a.jpg");
    opt = options();
    index = open_ok(&opt);
    CHECK_EQ_STR(listing(index), "a.jpg\n");
    hr__index_unref(index);
}

TEST(folder_labels_are_ranks_of_plain_names)
{
    static const char *const paths[] = {"a/1", "a-b/2", "a/z/3", "empty/", "c/4", NULL};
    struct hr_index_options opt;
    struct hr_index *index;

    begin_tree("labels");
    put_all(paths);
    opt = options();
    opt.folder_labels = true;
    index = open_ok(&opt);
    CHECK_EQ_STR(listing(index), "a-b/2=1\na/1=0\na/z/3=0\nc/4=2\n");
    CHECK_EQ_INT(hr__index_classes(index)->count, 4);
    CHECK_EQ_STR(hr__index_classes(index)->names[1], "a-b");
    CHECK_EQ_STR(hr__index_classes(index)->names[3], "empty");
    hr__index_unref(index);
}

TEST(folder_labels_refuse_files_directly_in_root)
{
    struct hr_index_options opt;
    struct hr_index *index = NULL;
    struct hr_error error = {0};

    begin_tree("loose");
    put("a/1.jpg");
    put("stray.jpg");
    opt = options();
    opt.folder_labels = true;
    CHECK_ERR(HR_ERR_ARGUMENT, hr__index_open(&opt, &index, &error));
    CHECK_HAS(error.message, "stray.jpg lies in ");
    CHECK_HAS(error.message, "move them into class folders");
    CHECK(index == NULL);
}

TEST(an_empty_set_is_reported_with_folder_and_suffixes)
{
    static const char *const suffixes[] = {".jpg", ".png"};
    struct hr_index_options opt;
    struct hr_index *index = NULL;
    struct hr_error error = {0};

    begin_tree("empty");
    put("a/note.txt");
    opt = options();
    opt.suffixes = suffixes;
    opt.suffix_count = 2;
    CHECK_ERR(HR_ERR_NOT_FOUND, hr__index_open(&opt, &index, &error));
    CHECK_HAS(error.message, "no files in ");
    CHECK_HAS(error.message, ", suffixes looked for: .jpg .png");
    opt.root = in_root("a/*.gif");
    CHECK_ERR(HR_ERR_NOT_FOUND, hr__index_open(&opt, &index, &error));
    CHECK_HAS(error.message, "no files match ");
}

TEST(a_root_that_is_missing_or_a_file_is_refused)
{
    struct hr_index_options opt;
    struct hr_index *index = NULL;
    struct hr_error error = {0};

    begin_tree("wrongroot");
    put("a.jpg");
    opt = options();
    opt.root = in_root("nowhere");
    CHECK_ERR(HR_ERR_NOT_FOUND, hr__index_open(&opt, &index, &error));
    CHECK_HAS(error.message, "wrongroot/nowhere");
    opt.root = in_root("a.jpg");
    CHECK_ERR(HR_ERR_ARGUMENT, hr__index_open(&opt, &index, &error));
    CHECK_HAS(error.message, "a.jpg is a file, not a folder");
    opt.root = "";
    CHECK_ERR(HR_ERR_ARGUMENT, hr__index_open(&opt, &index, &error));
}

TEST(trailing_slashes_of_root_do_not_matter)
{
    struct hr_index_options opt;
    struct hr_index *plain, *slashed;
    char with[600], path[PATH_MAX];

    begin_tree("slashes");
    put("a/1");
    opt = options();
    plain = open_ok(&opt);
    snprintf(with, sizeof with, "%s//", root);
    opt.root = with;
    slashed = open_ok(&opt);
    CHECK_OK(hr__index_path(slashed, 0, path, sizeof path, NULL));
    CHECK_EQ_STR(path, in_root("a/1"));
    CHECK(hr__hash_equal(hr__index_identity(plain), hr__index_identity(slashed)));
    hr__index_unref(plain);
    hr__index_unref(slashed);
}

TEST(names_are_bytes)
{
    static const char *const paths[] = {"d/\xff\xfe.jpg", "d/line\nbreak", "d/\xc3\xa4",
                                        "d/ ", NULL};
    struct hr_index_options opt;
    struct hr_index *index;

    begin_tree("bytes");
    put_all(paths);
    opt = options();
    index = open_ok(&opt);
    CHECK_EQ_STR(listing(index), "d/ \nd/line\nbreak\nd/\xc3\xa4\nd/\xff\xfe.jpg\n");
    hr__index_unref(index);
}

TEST(a_path_that_does_not_fit_is_refused_at_the_byte)
{
    struct hr_index_options opt;
    struct hr_index *index;
    char path[PATH_MAX];
    size_t length;

    begin_tree("fit");
    put("a/1");
    opt = options();
    index = open_ok(&opt);
    CHECK_OK(hr__index_path(index, 0, path, sizeof path, &length));
    for (size_t room = 0; room <= length; room++)
        CHECK_ERR(HR_ERR_LIMIT, hr__index_path(index, 0, path, room, NULL));
    CHECK_OK(hr__index_path(index, 0, path, length + 1, NULL));
    hr__index_unref(index);
}

TEST(links_are_followed_but_not_in_circles)
{
    struct hr_index_options opt;
    struct hr_index *index;

    begin_tree("links");
    put("a/1.jpg");
    CHECK_EQ_INT(symlink("1.jpg", in_root("a/2.jpg")), 0);
    CHECK_EQ_INT(symlink("gone.jpg", in_root("a/3.jpg")), 0);
    CHECK_EQ_INT(symlink("a", in_root("b")), 0);
    CHECK_EQ_INT(symlink("..", in_root("a/up")), 0);
    CHECK_EQ_INT(mkfifo(in_root("a/pipe.jpg"), 0644), 0);
    opt = options();
    index = open_ok(&opt);
    CHECK_EQ_STR(listing(index),
                 "a/1.jpg\na/2.jpg\na/3.jpg\nb/1.jpg\nb/2.jpg\nb/3.jpg\n");
    CHECK(stats_of(index).skipped >= 4); /* pipe.jpg and the circle, twice each */
    hr__index_unref(index);
}

TEST(deep_trees_need_no_stack)
{
    struct hr_index_options opt;
    struct hr_index *index;
    char path[PATH_MAX];
    size_t length;
    int fd;

    begin_tree("deep");
    for (int i = 0; i < 1500; i++)
        memcpy(path + 2 * (size_t)i, "d/", 3);
    fd = open(root, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 1500; i++) {
        int inner;

        CHECK_EQ_INT(mkdirat(fd, "d", 0755), 0);
        inner = openat(fd, "d", O_RDONLY | O_DIRECTORY);
        close(fd);
        fd = inner;
    }
    close(openat(fd, "f", O_CREAT | O_WRONLY, 0644));
    close(fd);
    opt = options();
    index = open_ok(&opt);
    CHECK_EQ_INT(hr__index_count(index), 1);
    CHECK_OK(hr__index_path(index, 0, path, sizeof path, &length));
    CHECK_EQ_INT(length, strlen(root) + 1 + 1500 * 2 + 1);
    CHECK_EQ_INT(stats_of(index).folders, 1501);
    hr__index_unref(index);
}

TEST(an_unreadable_folder_is_named)
{
    struct hr_index_options opt;
    struct hr_index *index = NULL;
    struct hr_error error = {0};

    begin_tree("locked");
    put("a/1.jpg");
    opt = options();
    opt.threads = 1;
    hr__fault_arm(HR_FAULT_OPEN,
                  3); /* root, its entries, then a: also when we are root */
    CHECK_ERR(HR_ERR_IO, hr__index_open(&opt, &index, &error));
    hr__fault_arm(0, 0);
    CHECK_HAS(error.message, "locked/a: Permission denied");
}

static void count_progress(uint64_t count, void *user)
{
    *(uint64_t *)user = count;
}

TEST(opening_reports_progress_and_can_be_cancelled)
{
    struct hr_index_options opt;
    struct hr_index *index = NULL;
    struct hr_error error = {0};
    atomic_bool cancel = false;
    uint64_t seen = 0;

    begin_tree("cancel");
    put("a/1");
    put("b/2");
    opt = options();
    opt.threads = 1;
    opt.progress = count_progress;
    opt.progress_user = &seen;
    opt.cancel = &cancel;
    index = open_ok(&opt);
    CHECK_EQ_INT(seen, 2);
    hr__index_unref(index);
    index = NULL;
    cancel = true;
    CHECK_ERR(HR_ERR_CANCELLED, hr__index_open(&opt, &index, &error));
    CHECK(index == NULL);
}

static enum hr_err
read_list(struct hr_index_options *opt, const char *path, struct hr_error *error)
{
    static struct hr_table table;
    enum hr_err err = hr__table_read(path, "path", &table, error);

    if (err == HR_OK)
        err = hr__table_use_text(&table, 0, error);
    if (err == HR_OK)
        err = hr__table_use(&table, 1, error);
    if (err != HR_OK)
        hr__table_finish(&table);
    opt->table = &table;
    opt->label_column = 1;
    return err;
}

/* The n-th call of each kind fails: an error with a message or a correct result. */
static void torture(struct hr_index_options opt, unsigned kinds, const char *list)
{
    int before = check_open_files();

    for (uint64_t nth = 1;; nth++) {
        struct hr_index *index = NULL;
        struct hr_error error = {0};
        uint64_t calls;
        enum hr_err err;

        if (opt.saved != NULL && nth % 2 == 0)
            (void)unlink(opt.saved);
        hr__fault_arm(kinds, nth);
        err = list != NULL ? read_list(&opt, list, &error) : HR_OK;
        if (err == HR_OK)
            err = hr__index_open(&opt, &index, &error);
        calls = hr__fault_calls();
        hr__fault_arm(0, 0);
        if (err == HR_OK)
            CHECK_EQ_INT(hr__index_count(index), list != NULL ? 3 : 36);
        else
            CHECK(index == NULL && error.message[0] != '\0' && error.code == err);
        hr__index_unref(index);
        CHECK_EQ_INT(check_open_files(), before);
        if (calls < nth)
            return;
    }
}

TEST(every_call_may_fail_once)
{
    static const char csv[] = "path,label\na,x\nb,y\nc,x\n";
    static const char jsonl[] =
        "{\"path\":\"\\u0061\",\"label\":1}\n{\"path\":\"b\",\"label\":2}\n"
        "{\"path\":\"c\",\"label\":2}\n";
    struct hr_index_options opt;

    begin_saved("torture");
    opt = options();
    opt.folder_labels = true;
    opt.saved = saved_path;
    torture(opt, HR_FAULT_ALLOC, NULL);
    torture(opt, HR_FAULT_OPEN, NULL);
    torture(opt, HR_FAULT_READ, NULL);
    torture(opt, HR_FAULT_WRITE, NULL);
    torture(opt, HR_FAULT_THREAD, NULL);
    opt.saved = NULL;
    opt.folder_labels = false;
    begin_tree("torture_list");
    put("a");
    put("b");
    put("c");
    torture(opt, HR_FAULT_ALLOC | HR_FAULT_OPEN | HR_FAULT_READ,
            list_text("t.csv", csv, strlen(csv)));
    torture(opt, HR_FAULT_ALLOC, list_text("t.jsonl", jsonl, strlen(jsonl)));
}
