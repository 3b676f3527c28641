/*
 * core/cache_folder_test.c - which variable gives the folder, and the folders that are
 * made.
 */
#include "core/alloc.h"
#include "core/cache_folder.h"
#include "core/file.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <sys/stat.h>

static void set(const char *name, const char *value)
{
    if (value == NULL)
        unsetenv(name);
    else
        setenv(name, value, 1);
}

static void set_all(const char *own, const char *all, const char *home)
{
    set("HEADRACE_CACHE", own);
    set("XDG_CACHE_HOME", all);
    set("HOME", home);
}

static void check_folder(const char *want)
{
    char *path = NULL;

    CHECK_OK(hr__cache_folder(&path, NULL));
    CHECK_EQ_STR(path, want);
    hr__free(path);
}

TEST(the_first_variable_that_is_set_gives_the_folder)
{
    struct hr_error error = {0};
    char *path = NULL;

    set_all("/own", "/all", "/home/me");
    check_folder("/own");
    set_all("", "/all", "/home/me");
    check_folder("/all/headrace");
    set_all(NULL, "relative", "/home/me");
    check_folder("/home/me/.cache/headrace");
    set_all(NULL, "", "");
    CHECK_ERR(HR_ERR_NOT_FOUND, hr__cache_folder(&path, &error));
    CHECK_HAS(error.message, "set HEADRACE_CACHE or HOME");
    set_all(NULL, "/all", NULL);
    check_folder("/all/headrace");
}

TEST(the_folders_above_a_file_are_made)
{
    char root[512], want[600], *path = NULL;
    struct hr_error error = {0};
    struct stat info;

    snprintf(root, sizeof root, "%s/x/y", check_temp_dir());
    set_all(root, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(hr__cache_file("runs/one.jsonl", &path, NULL));
        snprintf(want, sizeof want, "%s/runs/one.jsonl", root);
        CHECK_EQ_STR(path, want);
        CHECK_OK(hr__file_replace(path, "x", 1, NULL));
        hr__free(path);
    }
    snprintf(want, sizeof want, "%s/runs", root);
    CHECK_EQ_INT(stat(want, &info), 0);
    CHECK_EQ_INT(info.st_mode & 0777, 0700);
    snprintf(want, sizeof want, "%s/runs/one.jsonl", root);
    set_all(want, NULL, NULL); /* a file is in the way */
    CHECK_ERR(HR_ERR_IO, hr__cache_file("a/b", &path, &error));
    CHECK(path == NULL);
    CHECK_HAS(error.message, "cannot make the folder");
}

TEST(failed_allocations_are_reported)
{
    enum hr_err code = HR_ERR_MEMORY;
    char *path = NULL;

    set_all(check_temp_dir(), NULL, NULL);
    for (uint64_t nth = 1; code != HR_OK; nth++) {
        hr__fault_arm(HR_FAULT_ALLOC, nth);
        code = hr__cache_file("a/b", &path, NULL);
        hr__fault_arm(0, 0);
        CHECK(code == HR_OK || code == HR_ERR_MEMORY);
        CHECK(nth < 20);
    }
    hr__free(path);
}
