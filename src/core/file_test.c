/*
 * core/file_test.c - files are replaced completely or not at all, whichever step fails.
 */
#include "core/alloc.h"
#include "core/file.h"
#include "tests/support/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *path_of(const char *name)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/%s", check_temp_dir(), name);
    return path;
}

static void check_holds(const char *path, const char *text)
{
    char *data;
    size_t bytes;

    CHECK_OK(hr__file_read(path, 1000000, &data, &bytes, NULL));
    CHECK_EQ_INT(bytes, strlen(text));
    CHECK_EQ_STR(data, text);
    hr__free(data);
}

static int files_in_temp(void)
{
    DIR *folder = opendir(check_temp_dir());
    int count = 0;

    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count - 2;
}

TEST(a_replaced_file_holds_the_data_and_keeps_its_mode)
{
    const char *path = path_of("a");
    struct stat info;

    CHECK_OK(hr__file_replace(path, "one", 3, NULL));
    check_holds(path, "one");
    CHECK_EQ_INT(chmod(path, 0640), 0);
    CHECK_OK(hr__file_replace(path, "", 0, NULL));
    check_holds(path, "");
    CHECK_EQ_INT(stat(path, &info), 0);
    CHECK_EQ_INT(info.st_mode & 0777, 0640);
    CHECK_EQ_INT(files_in_temp(), 1);
    unlink(path);
}

TEST(reading_obeys_the_limit_and_sizes_that_lie)
{
    const char *path = path_of("b");
    struct hr_error error = {0};
    char *data = NULL;
    size_t bytes = 0;

    CHECK_OK(hr__file_replace(path, "12345", 5, NULL));
    CHECK_ERR(HR_ERR_LIMIT, hr__file_read(path, 4, &data, &bytes, &error));
    CHECK_HAS(error.message, "larger than 4 bytes");
    CHECK_OK(hr__file_read(path, 5, &data, &bytes, NULL));
    CHECK_EQ_INT(bytes, 5);
    hr__free(data);
    /* Files in /proc report size 0. */
    CHECK_OK(hr__file_read("/proc/self/maps", 1 << 20, &data, &bytes, NULL));
    CHECK(bytes > 100);
    hr__free(data);
    unlink(path);
}

TEST(a_pipe_is_written_and_stays)
{
    char path[512], got[8] = "";
    struct stat info;
    int fd;

    snprintf(path, sizeof path, "%s/pipe", check_temp_dir());
    CHECK_EQ_INT(mkfifo(path, 0600), 0);
    fd = open(path, O_RDWR);
    CHECK(fd >= 0);
    CHECK_OK(hr__file_replace(path, "abc", 3, NULL));
    CHECK_EQ_INT(read(fd, got, sizeof got), 3);
    CHECK_EQ_STR(got, "abc");
    CHECK(stat(path, &info) == 0 && S_ISFIFO(info.st_mode));
    close(fd);
    unlink(path);
}

TEST(failures_name_the_file_and_the_reason)
{
    struct hr_error error = {0};
    char *data;
    size_t bytes;

    CHECK_ERR(HR_ERR_NOT_FOUND, hr__file_read("/no/such", 10, &data, &bytes, &error));
    CHECK_EQ_STR(error.message, "cannot open /no/such: No such file or directory");
    CHECK_EQ_STR(error.file, "/no/such");
    CHECK_ERR(HR_ERR_NOT_FOUND, hr__file_replace("/no/such", "x", 1, &error));
    CHECK_EQ_STR(error.message, "cannot write /no/such: No such file or directory");
    CHECK_ERR(HR_ERR_IO, hr__file_read("/", 10, &data, &bytes, &error));
    hr__fault_arm(HR_FAULT_WRITE, 1);
    CHECK_ERR(HR_ERR_IO, hr__file_replace(path_of("c"), "x", 1, &error));
    hr__fault_arm(0, 0);
    CHECK_HAS(error.message, "c: No space left on device");
}

TEST(whatever_fails_the_old_file_stays_and_nothing_is_left)
{
    const char *path = path_of("d");
    enum hr_err err = HR_ERR_IO;
    char *data;
    size_t bytes;

    CHECK_OK(hr__file_replace(path, "old", 3, NULL));
    for (uint64_t nth = 1; err != HR_OK; nth++) {
        check_holds(path, "old");
        CHECK_EQ_INT(files_in_temp(), 1);
        hr__fault_arm(HR_FAULT_ALLOC | HR_FAULT_OPEN | HR_FAULT_WRITE, nth);
        err = hr__file_replace(path, "new", 3, NULL);
        hr__fault_arm(0, 0);
        CHECK(nth < 50);
    }
    check_holds(path, "new");
    err = HR_ERR_IO;
    for (uint64_t nth = 1; err != HR_OK; nth++) {
        data = NULL;
        hr__fault_arm(HR_FAULT_ALLOC | HR_FAULT_OPEN | HR_FAULT_READ, nth);
        err = hr__file_read(path, 100, &data, &bytes, NULL);
        hr__fault_arm(0, 0);
        CHECK((data != NULL) == (err == HR_OK));
        hr__free(data);
        CHECK(nth < 50);
    }
    unlink(path);
}

TEST(pieces_are_joined_and_an_abort_removes_them)
{
    const char *path = path_of("e");
    struct hr_file_writer *writer;

    CHECK_OK(hr__file_begin(path, &writer, NULL));
    CHECK_OK(hr__file_write(writer, "ab", 2, NULL));
    CHECK_OK(hr__file_write(writer, "", 0, NULL));
    CHECK_OK(hr__file_write(writer, "cd", 2, NULL));
    CHECK(access(path, F_OK) != 0);
    CHECK_OK(hr__file_commit(writer, NULL));
    check_holds(path, "abcd");
    CHECK_OK(hr__file_begin(path, &writer, NULL));
    CHECK_OK(hr__file_write(writer, "zz", 2, NULL));
    hr__file_abort(writer);
    hr__file_abort(NULL);
    check_holds(path, "abcd");
    CHECK_EQ_INT(files_in_temp(), 1);
    unlink(path);
}

TEST(pieces_of_any_size_follow_each_other)
{
    static const size_t sizes[] = {1, 100000, 262143, 262144, 700001, 0, 62144, 600000};
    static char data[700001];
    const char *path = path_of("sizes");
    struct hr_file_writer *writer;
    size_t bytes, at = 0;
    char *whole;

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 31 / 7);
    CHECK_OK(hr__file_begin(path, &writer, NULL));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        CHECK_OK(hr__file_write(writer, data, sizes[i], NULL));
    CHECK_OK(hr__file_commit(writer, NULL));
    CHECK_OK(hr__file_read(path, 4000000, &whole, &bytes, NULL));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; at += sizes[i++])
        CHECK_BYTES(whole + at, data, sizes[i]);
    CHECK_EQ_INT(bytes, at);
    hr__free(whole);
    unlink(path);
}

TEST(a_commit_after_a_failed_write_is_refused)
{
    static const char large[1 << 20]; /* not gathered */
    const char *path = path_of("f");
    struct hr_file_writer *writer;

    CHECK_OK(hr__file_begin(path, &writer, NULL));
    hr__fault_arm(HR_FAULT_WRITE, 1);
    CHECK_ERR(HR_ERR_IO, hr__file_write(writer, large, sizeof large, NULL));
    hr__fault_arm(0, 0);
    CHECK_ERR(HR_ERR_STATE, hr__file_commit(writer, NULL));
    CHECK_OK(hr__file_begin(path, &writer, NULL));
    CHECK_OK(hr__file_write(writer, "x", 1, NULL));
    hr__fault_arm(HR_FAULT_WRITE, 1);
    CHECK_ERR(HR_ERR_IO, hr__file_commit(writer, NULL));
    hr__fault_arm(0, 0);
    CHECK_EQ_INT(files_in_temp(), 0);
}

TEST(a_lock_keeps_others_out_until_it_is_removed)
{
    const char *path = path_of("lock");
    struct hr_error error = {0};
    int lock, other;

    CHECK_OK(hr__file_lock(path, &lock, NULL));
    CHECK_ERR(HR_ERR_STATE, hr__file_lock(path, &other, &error));
    CHECK(strstr(error.message, "lock is locked") != NULL);
    CHECK_EQ_INT(files_in_temp(), 1);
    hr__file_unlock(path, lock);
    CHECK_EQ_INT(files_in_temp(), 0);
    CHECK_OK(hr__file_replace(path, "left", 4, NULL)); /* by a process that was killed */
    CHECK_OK(hr__file_lock(path, &lock, NULL));
    hr__file_unlock(path, lock);
    CHECK_EQ_INT(files_in_temp(), 0);
    CHECK_ERR(HR_ERR_NOT_FOUND, hr__file_lock("/no/such/folder/lock", &lock, NULL));
}

/* A process counts in a file under the lock. */
static void count_under_lock(const char *path, const char *counter, int times)
{
    while (times > 0) {
        char *data, text[32];
        size_t bytes;
        int lock;

        if (hr__file_lock(path, &lock, NULL) != HR_OK)
            continue;
        CHECK_OK(hr__file_read(counter, 100, &data, &bytes, NULL));
        snprintf(text, sizeof text, "%d", atoi(data) + 1);
        hr__free(data);
        CHECK_OK(hr__file_replace(counter, text, strlen(text), NULL));
        hr__file_unlock(path, lock);
        times--;
    }
}

TEST(processes_take_turns_with_a_lock)
{
    char path[512], counter[512];
    pid_t pids[3];
    int status;

    snprintf(path, sizeof path, "%s", path_of("lock"));
    snprintf(counter, sizeof counter, "%s", path_of("counter"));
    CHECK_OK(hr__file_replace(counter, "0", 1, NULL));
    for (int i = 0; i < 3; i++) {
        pids[i] = fork();
        CHECK(pids[i] >= 0);
        if (pids[i] == 0) {
            count_under_lock(path, counter, 100);
            _exit(0);
        }
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQ_INT(waitpid(pids[i], &status, 0), pids[i]);
        CHECK_EQ_INT(status, 0);
    }
    check_holds(counter, "300");
    unlink(counter);
}
