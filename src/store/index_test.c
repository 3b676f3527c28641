/* Names of files: order, patterns, labels, saved indexes, lists, and damage to each. */
#include "core/alloc.h"
#include "core/file.h"
#include "store/index.h"
#include "store/index_internal.h"
#include "tests/support/check.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[512]; /* of the tree of the running test */
static char joined[1024];

static const char *in_root(const char *path)
{
    snprintf(joined, sizeof joined, "%s/%s", root, path);
    return joined;
}

static void begin_tree(const char *name)
{
    snprintf(root, sizeof root, "%s/%s", check_temp_dir(), name);
    CHECK_EQ_INT(mkdir(root, 0755), 0);
}

/* A file with the folders above it; "x/" makes a folder only. */
static void put(const char *path)
{
    char whole[1024];
    int fd;

    snprintf(whole, sizeof whole, "%s/%s", root, path);
    for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL;
         slash++) {
        *slash = '\0';
        (void)mkdir(whole, 0755);
        *slash = '/';
    }
    if (path[strlen(path) - 1] == '/')
        return;
    fd = open(whole, O_CREAT | O_WRONLY, 0644);
    CHECK(fd >= 0);
    close(fd);
}

static void put_all(const char *const *paths)
{
    for (; *paths != NULL; paths++)
        put(*paths);
}

/* Make a folder look as if it had rested for a while, so that its time can be trusted. */
static void rest(const char *path)
{
    static int64_t tick = 1000000000;
    struct timespec times[2] = {
        {tick, 7},
        {tick, 7}
    };

    tick++;
    CHECK_EQ_INT(utimensat(AT_FDCWD, in_root(path), times, 0), 0);
}

static struct hr_index_options options(void)
{
    return (struct hr_index_options){.root = root, .recursive = true, .threads = 2};
}

static struct hr_index *open_ok(const struct hr_index_options *opt)
{
    struct hr_index *index = NULL;
    struct hr_error error = {0};
    enum hr_err err = hr__index_open(opt, &index, &error);

    if (err != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    return index;
}

/* All paths below root with labels, one a line. */
static char *listing(const struct hr_index *index)
{
    static char text[2][16384];
    static int turn;
    char *to = text[turn ^= 1], path[PATH_MAX];
    size_t used = 0, length;

    to[0] = '\0';
    for (uint64_t i = 0; i < hr__index_count(index); i++) {
        int64_t label = hr__index_label(index, i);

        CHECK_OK(hr__index_path(index, i, path, sizeof path, &length));
        CHECK_EQ_INT(length, strlen(path));
        used += (size_t)snprintf(to + used, sizeof text[0] - used, "%s",
                                 path + strlen(root) + 1);
        if (label >= 0)
            used += (size_t)snprintf(to + used, sizeof text[0] - used, "=%d", (int)label);
        used += (size_t)snprintf(to + used, sizeof text[0] - used, "\n");
    }
    return to;
}

static struct hr_index_stats stats_of(const struct hr_index *index)
{
    struct hr_index_stats stats;

    hr__index_stats(index, &stats);
    return stats;
}

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
    CHECK_EQ_INT(hr__index_label_count(index), 0);
    CHECK(hr__index_label_name(index, 0) == NULL);
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

TEST(a_root_that_exists_is_no_pattern)
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
    CHECK_EQ_INT(hr__index_label_count(index), 4);
    CHECK_EQ_STR(hr__index_label_name(index, 1), "a-b");
    CHECK_EQ_STR(hr__index_label_name(index, 3), "empty");
    CHECK(hr__index_label_name(index, 4) == NULL);
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

TEST(an_empty_set_tells_where_and_what_was_looked_for)
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

TEST(slashes_behind_root_do_not_matter)
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
    CHECK_EQ_STR(listing(index), "a/1.jpg\na/2.jpg\nb/1.jpg\nb/2.jpg\n");
    CHECK(stats_of(index).skipped >= 6); /* 3.jpg, pipe.jpg and the circle, twice each */
    hr__index_unref(index);
}

TEST(deep_trees_need_no_stack)
{
    struct hr_index_options opt;
    struct hr_index *index;
    char path[PATH_MAX] = "";
    size_t length;
    int fd;

    begin_tree("deep");
    for (int i = 0; i < 1500; i++)
        strcat(path, "d/");
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

/* ---- saved ---- */

static char saved_path[600];

/* A tree that has rested: g0..g4 with files, one nested. */
static void begin_saved(const char *name)
{
    char path[64];

    begin_tree(name);
    for (int folder = 0; folder < 5; folder++) {
        for (int file = 0; file < 7; file++) {
            snprintf(path, sizeof path, "g%d/photo_%d.jpg", folder, file * file);
            put(path);
        }
    }
    put("g3/deep/er/x.jpg");
    for (int folder = 0; folder < 5; folder++) {
        snprintf(path, sizeof path, "g%d", folder);
        rest(path);
    }
    rest("g3/deep/er");
    rest("g3/deep");
    rest("g3");
    rest("");
    snprintf(saved_path, sizeof saved_path, "%s/%s.idx", check_temp_dir(), name);
}

/* Open with the saved index; the result must be what a fresh walk gives. */
static struct hr_index_stats reopen(bool labels)
{
    struct hr_index_options opt = options();
    struct hr_index *fresh, *index;
    struct hr_index_stats stats;

    opt.folder_labels = labels;
    fresh = open_ok(&opt);
    opt.saved = saved_path;
    index = open_ok(&opt);
    CHECK_EQ_STR(listing(index), listing(fresh));
    CHECK(hr__hash_equal(hr__index_identity(index), hr__index_identity(fresh)));
    stats = stats_of(index);
    CHECK_EQ_INT(stats.folders, stats_of(fresh).folders);
    CHECK_EQ_INT(stats.skipped, stats_of(fresh).skipped);
    hr__index_unref(index);
    hr__index_unref(fresh);
    return stats;
}

TEST(a_saved_index_spares_reading_folders)
{
    begin_saved("spare");
    CHECK(!reopen(false).from_saved);
    CHECK(reopen(false).from_saved);
    CHECK_EQ_INT(reopen(false).folders_rescanned, 0);
    CHECK_EQ_INT(reopen(true).folders_rescanned, 0); /* another identity, same names */
    CHECK_EQ_INT(reopen(false).folders_rescanned, 0);
}

static void rest_changed(const char *const *paths)
{
    for (; *paths != NULL; paths++)
        rest(*paths);
}

TEST(only_changed_folders_are_read_again)
{
    begin_saved("changed");
    (void)reopen(true);

    put("g1/new.jpg");
    rest_changed((const char *const[]){"g1", NULL});
    CHECK_EQ_INT(reopen(true).folders_rescanned, 1);
    CHECK_EQ_INT(reopen(true).folders_rescanned, 0);

    CHECK_EQ_INT(unlink(in_root("g3/photo_9.jpg")), 0);
    rest_changed((const char *const[]){"g3", NULL});
    CHECK_EQ_INT(reopen(true).folders_rescanned, 1);
    CHECK_EQ_INT(reopen(true).folders_rescanned, 0);

    put("g2a/first.jpg");
    rest_changed((const char *const[]){"g2a", "", NULL});
    CHECK_EQ_INT(reopen(true).folders_rescanned, 2);
    CHECK_EQ_INT(reopen(true).folders_rescanned, 0);

    CHECK_EQ_INT(unlink(in_root("g3/deep/er/x.jpg")), 0);
    CHECK_EQ_INT(rmdir(in_root("g3/deep/er")), 0);
    CHECK_EQ_INT(rmdir(in_root("g3/deep")), 0);
    rest_changed((const char *const[]){"g3", NULL});
    CHECK_EQ_INT(reopen(true).folders_rescanned, 1);
    CHECK_EQ_INT(reopen(true).folders_rescanned, 0);
}

TEST(a_renamed_or_exchanged_folder_is_noticed)
{
    char from[600], to[600];

    begin_saved("renamed");
    (void)reopen(true);
    snprintf(from, sizeof from, "%s/g0", root);
    snprintf(to, sizeof to, "%s/g9", root);
    CHECK_EQ_INT(rename(from, to), 0);
    rest_changed((const char *const[]){"", NULL});
    CHECK_EQ_INT(reopen(true).folders_rescanned, 2); /* root, and g9 by its new name */
    CHECK_EQ_INT(reopen(true).folders_rescanned, 0);

    CHECK_EQ_INT(rename(to, from), 0); /* g0 again, with other files */
    CHECK_EQ_INT(unlink(in_root("g0/photo_0.jpg")), 0);
    rest_changed((const char *const[]){"g0", "", NULL});
    CHECK_EQ_INT(reopen(true).folders_rescanned, 2);
}

TEST(a_folder_that_changed_just_before_is_not_trusted)
{
    begin_saved("young");
    put("g0/late.jpg"); /* g0 is younger than two seconds */
    (void)reopen(false);
    CHECK_EQ_INT(reopen(false).folders_rescanned, 1);
    rest("g0");
    CHECK_EQ_INT(reopen(false).folders_rescanned, 1);
    CHECK_EQ_INT(reopen(false).folders_rescanned, 0);
}

TEST(links_that_lead_nowhere_are_looked_at_each_time)
{
    begin_saved("dangling");
    CHECK_EQ_INT(symlink("../later.jpg", in_root("g0/link.jpg")), 0);
    rest("g0");
    (void)reopen(false);
    CHECK_EQ_INT(reopen(false).folders_rescanned, 1);
    put("later.jpg");
    rest("");
    (void)reopen(false);
    CHECK_EQ_INT(reopen(false).folders_rescanned, 0);
}

TEST(a_link_to_a_folder_that_moved_away_starts_over)
{
    char from[600], to[600];

    begin_saved("moved");
    snprintf(from, sizeof from, "%s/%s", check_temp_dir(), "moved-target");
    snprintf(to, sizeof to, "%s/%s", check_temp_dir(), "moved-off");
    CHECK_EQ_INT(mkdir(from, 0755), 0);
    CHECK_EQ_INT(symlink(from, in_root("g4/link")), 0);
    rest("g4/link");
    rest("g4");
    (void)reopen(false);
    CHECK_EQ_INT(reopen(false).folders_rescanned, 0);
    CHECK_EQ_INT(rename(from, to), 0);
    CHECK(!reopen(false).from_saved);
}

TEST(other_suffixes_do_not_use_the_saved_names)
{
    static const char *const suffixes[] = {"_4.jpg"};
    struct hr_index_options opt;
    struct hr_index *index;

    begin_saved("othersuffix");
    (void)reopen(false);
    opt = options();
    opt.saved = saved_path;
    opt.suffixes = suffixes;
    opt.suffix_count = 1;
    index = open_ok(&opt);
    CHECK_EQ_INT(hr__index_count(index), 5);
    CHECK(!stats_of(index).from_saved);
    hr__index_unref(index);
}

TEST(a_saved_index_that_cannot_be_written_does_no_harm)
{
    struct hr_index_options opt;
    struct hr_index *index;
    struct hr_error error = {0};

    begin_saved("nowrite");
    opt = options();
    opt.saved = in_root("no/such/folder/x.idx");
    index = open_ok(&opt);
    CHECK(stats_of(index).save_failed);
    CHECK_EQ_INT(hr__index_count(index), 36);
    CHECK(hr__index_save(index, opt.saved, &error) != HR_OK);
    CHECK_HAS(error.message, "x.idx");
    hr__index_unref(index);
}

/* Flip one byte at a time: found to be damaged, and the result is right all the same. */
TEST(damage_anywhere_is_noticed_and_repaired)
{
    char *whole;
    size_t bytes;

    begin_saved("damage");
    (void)reopen(true);
    CHECK_OK(hr__file_read(saved_path, 1 << 20, &whole, &bytes, NULL));
    for (size_t at = 0; at < bytes; at += at < 256 ? 5 : 41) {
        struct hr_index_stats stats;

        whole[at] ^= 0x10;
        CHECK_OK(hr__file_replace(saved_path, whole, bytes, NULL));
        whole[at] ^= 0x10;
        stats = reopen(true);
        /* bytes between sections and the reserved ones of the header hold nothing */
        CHECK(stats.saved_damaged || stats.folders_rescanned == 0);
        CHECK(!stats.saved_damaged || !stats.from_saved);
    }
    for (size_t keep = 0; keep < bytes; keep += 97) {
        CHECK_OK(hr__file_replace(saved_path, whole, keep, NULL));
        CHECK(reopen(true).saved_damaged);
    }
    CHECK_EQ_INT(reopen(true).folders_rescanned, 0);
    hr__free(whole);
}

TEST(unknown_sections_are_passed_over)
{
    struct section {
        uint32_t kind, flags;
        uint64_t at, bytes, checksum;
    } * section;
    char *whole;
    size_t bytes;
    uint64_t checksum;

    begin_saved("unknown");
    (void)reopen(false);
    CHECK_OK(hr__file_read(saved_path, 1 << 20, &whole, &bytes, NULL));
    /* A sixth section, in place of the padding behind the table if there is room. */
    section = (void *)(whole + 64 + 5 * 32);
    CHECK_EQ_INT((64 + 5 * 32) % 64, 32); /* 32 free bytes before the first section */
    *section = (struct section){.kind = 900, .at = 64, .bytes = 32, .checksum = 1};
    *(uint32_t *)(void *)(whole + 12) = 6;
    checksum = hr__hash64(whole, 24, 1);
    checksum = hr__hash64(whole + 64, 6 * 32, checksum);
    memcpy(whole + 24, &checksum, sizeof checksum);
    CHECK_OK(hr__file_replace(saved_path, whole, bytes, NULL));
    CHECK(reopen(false).from_saved);
    hr__free(whole);
}

/* ---- lists ---- */

static const char *list_text(const char *name, const char *text, size_t bytes)
{
    static char path[600];

    snprintf(path, sizeof path, "%s/%s", check_temp_dir(), name);
    CHECK_OK(hr__file_replace(path, text, bytes, NULL));
    return path;
}

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

TEST(json_lines_are_read_quickly_and_slowly_alike)
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

/* ---- failures ---- */

static int open_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

/* Fail the n-th call of each kind: an error with words or a right result, no leak. */
static void torture(struct hr_index_options opt, unsigned kinds)
{
    int before = open_descriptors();

    for (uint64_t nth = 1;; nth++) {
        struct hr_index *index = NULL;
        struct hr_error error = {0};
        uint64_t calls;
        enum hr_err err;

        if (opt.saved != NULL && nth % 2 == 0)
            (void)unlink(opt.saved);
        hr__fault_arm(kinds, nth);
        err = hr__index_open(&opt, &index, &error);
        calls = hr__fault_calls();
        hr__fault_arm(0, 0);
        if (err == HR_OK)
            CHECK_EQ_INT(hr__index_count(index), opt.label_file != NULL ? 3 : 36);
        else
            CHECK(index == NULL && error.message[0] != '\0' && error.code == err);
        hr__index_unref(index);
        CHECK_EQ_INT(open_descriptors(), before);
        if (calls < nth)
            return;
    }
}

TEST(every_call_may_fail_once)
{
    static const char csv[] = "a,x\nb,y\nc,x\n";
    static const char jsonl[] =
        "{\"path\":\"a\\u0062\"}\n{\"path\":\"b\"}\n{\"path\":\"c\"}\n";
    struct hr_index_options opt;

    begin_saved("torture");
    opt = options();
    opt.folder_labels = true;
    opt.saved = saved_path;
    torture(opt, HR_FAULT_ALLOC);
    torture(opt, HR_FAULT_OPEN);
    torture(opt, HR_FAULT_READ);
    torture(opt, HR_FAULT_WRITE);
    torture(opt, HR_FAULT_THREAD);
    opt.saved = NULL;
    opt.folder_labels = false;
    opt.label_file = list_text("t.csv", csv, strlen(csv));
    torture(opt, HR_FAULT_ALLOC | HR_FAULT_OPEN | HR_FAULT_READ);
    opt.label_file = list_text("t.jsonl", jsonl, strlen(jsonl));
    torture(opt, HR_FAULT_ALLOC);
}
