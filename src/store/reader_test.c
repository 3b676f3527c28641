/*
 * store/reader_test.c - whole files: equality, reading ahead, errors, cancelling,
 * failures.
 */
#include "core/alloc.h"
#include "core/clock.h"
#include "store/reader.h"
#include "tests/support/check.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILES 48

static char paths[FILES][512];
static const enum hr_reader_mode modes[] = {HR_READER_URING, HR_READER_THREADS,
                                            HR_READER_NONE};

static size_t size_of(int file)
{
    return file == 0 ? 0 : (size_t)file * 1777 + (file == 7 ? 3000000 : 0);
}

static unsigned char byte_of(int file, size_t at)
{
    return (unsigned char)(at * 31 + (size_t)file * 7 + (at >> 9));
}

static void make_files(void)
{
    if (paths[0][0] != '\0')
        return;
    for (int file = 0; file < FILES; file++) {
        unsigned char *data = malloc(size_of(file) + 1);
        int fd;

        for (size_t i = 0; i < size_of(file); i++)
            data[i] = byte_of(file, i);
        snprintf(paths[file], sizeof paths[file], "%s/f%d", check_temp_dir(), file);
        fd = open(paths[file], O_CREAT | O_WRONLY, 0644);
        CHECK_EQ_INT(write(fd, data, size_of(file)), size_of(file));
        CHECK_EQ_INT(fsync(fd), 0);
        close(fd);
        free(data);
    }
}

static void make_cold(void)
{
    for (int file = 0; file < FILES; file++) {
        int fd = open(paths[file], O_RDONLY);

        CHECK_EQ_INT(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
        close(fd);
    }
}

static bool is_right(int file, const struct hr_buffer *buffer)
{
    const unsigned char *data = hr_buffer_data(buffer);

    if (hr_buffer_bytes(buffer) != size_of(file))
        return false;
    for (size_t i = 0; i < size_of(file); i++) {
        if (data[i] != byte_of(file, i))
            return false;
    }
    for (size_t i = 0; i < HR_READER_SLACK_BYTES; i++) {
        if (data[size_of(file) + i] != 0)
            return false;
    }
    return true;
}

static struct hr_range whole(const char *uri)
{
    struct hr_range range = {.bytes = HR_RANGE_REST};

    snprintf(range.uri, sizeof range.uri, "%s", uri);
    return range;
}

static void name_ahead(struct hr_reader *reader, const char *uri)
{
    struct hr_range range = whole(uri);

    hr__reader_ahead(reader, &range);
}

static enum hr_err take(struct hr_reader *reader, const char *uri,
                        struct hr_buffer **ret_buffer, struct hr_error *error)
{
    struct hr_range range = whole(uri);

    return hr__reader_take(reader, &range, ret_buffer, error);
}

/* NULL where io_uring is not available. */
static struct hr_reader *reader_of(struct hr_pool *pool, enum hr_reader_mode mode)
{
    struct hr_reader_options options = {
        .pool = pool, .mode = mode, .depth = 8, .threads = 3};
    struct hr_reader *reader = NULL;
    struct hr_error error = {0};
    enum hr_err err = hr__reader_create(&options, &reader, &error);

    if (err == HR_ERR_UNSUPPORTED && mode == HR_READER_URING)
        return NULL;
    CHECK_OK(err);
    return reader;
}

static void take_right(struct hr_reader *reader, int file)
{
    struct hr_buffer *buffer = NULL;
    struct hr_error error = {0};
    enum hr_err err = take(reader, paths[file], &buffer, &error);

    if (err != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    CHECK(is_right(file, buffer));
    hr_buffer_unref(buffer);
}

static struct hr_reader_stats stats_of(struct hr_reader *reader)
{
    struct hr_reader_stats stats;

    hr__reader_stats(reader, &stats);
    return stats;
}

TEST(files_are_read_whole_in_every_mode)
{
    struct hr_pool *pool = hr_pool_create(0);

    make_files();
    for (int mode = 0; mode < 3; mode++) {
        struct hr_reader *reader = reader_of(pool, modes[mode]);

        for (int file = 0; reader != NULL && file < FILES; file++)
            take_right(reader, file);
        if (reader != NULL)
            CHECK_EQ_INT(stats_of(reader).files, FILES);
        hr__reader_destroy(reader);
    }
    hr_pool_unref(pool);
}

/* Until a file that was named is being read: on a busy machine the reader's thread may
 * not run before the files have been taken. */
static void await_ahead(struct hr_reader *reader)
{
    for (int i = 0; i < 20000 && stats_of(reader).ahead_bytes == 0; i++)
        usleep(1000);
}

TEST(files_named_ahead_are_the_files_taken)
{
    struct hr_pool *pool = hr_pool_create(0);

    make_files();
    for (int mode = 0; mode < 3; mode++) {
        struct hr_reader *reader = reader_of(pool, modes[mode]);

        for (int round = 0; reader != NULL && round < 4; round++) {
            if (round % 2 == 0)
                make_cold();
            for (int file = 0; file < FILES; file++) {
                for (int next = file; next < FILES && next < file + 6; next++)
                    name_ahead(reader, paths[next]);
                if (round == 0 && file == 1 && modes[mode] != HR_READER_NONE)
                    await_ahead(reader);
                take_right(reader, file);
            }
        }
        if (reader != NULL && modes[mode] != HR_READER_NONE) {
            CHECK(stats_of(reader).ahead_ready + stats_of(reader).ahead_late > 0);
            CHECK_EQ_INT(stats_of(reader).ahead_files, 0);
            CHECK_EQ_INT(stats_of(reader).ahead_bytes, 0);
        }
        hr__reader_destroy(reader);
    }
    hr_pool_unref(pool);
}

TEST(a_cold_file_makes_the_reader_cold_and_cached_ones_warm_again)
{
    struct hr_pool *pool = hr_pool_create(0);
    struct hr_reader *reader = reader_of(pool, HR_READER_NONE);

    make_files();
    for (int file = 0; file < FILES; file++)
        take_right(reader, file);
    for (int i = 0; i < 1000; i++)
        take_right(reader, 3);
    CHECK(!hr__reader_is_cold(reader));
    make_cold();
    take_right(reader, 9);
    if (stats_of(reader).waited == 0) {
        hr__reader_destroy(reader);
        hr_pool_unref(pool);
        SKIP("this file system does not drop cached pages");
    }
    CHECK(hr__reader_is_cold(reader));
    for (int i = 0; i < 1000; i++)
        take_right(reader, 9);
    CHECK(!hr__reader_is_cold(reader));
    hr__reader_destroy(reader);
    hr_pool_unref(pool);
}

static struct hr_reader *shared_reader;
static atomic_int next_file;

static void *take_many(void *user)
{
    int *wrong = user;

    for (;;) {
        int at = atomic_fetch_add(&next_file, 1);
        struct hr_buffer *buffer = NULL;

        if (at >= FILES * 10)
            return NULL;
        for (int ahead = at + 1; ahead < at + 5; ahead++)
            name_ahead(shared_reader, paths[ahead % FILES]);
        if (take(shared_reader, paths[at % FILES], &buffer, NULL) != HR_OK ||
            !is_right(at % FILES, buffer))
            *wrong = 1;
        hr_buffer_unref(buffer);
    }
}

TEST(many_threads_take_and_name_files)
{
    struct hr_pool *pool = hr_pool_create(0);

    make_files();
    for (int mode = 0; mode < 3; mode++) {
        pthread_t threads[4];
        int wrong[4] = {0};

        shared_reader = reader_of(pool, modes[mode]);
        if (shared_reader == NULL)
            continue;
        make_cold();
        atomic_store(&next_file, 0);
        for (int i = 0; i < 4; i++)
            CHECK_EQ_INT(pthread_create(&threads[i], NULL, take_many, &wrong[i]), 0);
        for (int i = 0; i < 4; i++) {
            pthread_join(threads[i], NULL);
            CHECK_EQ_INT(wrong[i], 0);
        }
        hr__reader_destroy(shared_reader);
    }
    hr_pool_unref(pool);
}

TEST(depth_and_budget_limit_what_is_read_ahead)
{
    struct hr_pool *pool = hr_pool_create(0);
    struct hr_reader_options options = {
        .pool = pool, .mode = HR_READER_THREADS, .depth = 4, .ahead_bytes_max = 5000};
    struct hr_reader *reader = NULL;

    make_files();
    CHECK_OK(hr__reader_create(&options, &reader, NULL));
    for (int file = 1; file < FILES; file++)
        name_ahead(reader, paths[file]);
    for (int i = 0; i < 200; i++) {
        CHECK(stats_of(reader).ahead_bytes <= 5000);
        CHECK(stats_of(reader).ahead_files <= 4);
        usleep(100);
    }
    for (int file = 1; file < FILES; file++)
        take_right(reader, file);
    CHECK_EQ_INT(stats_of(reader).ahead_bytes, 0);
    hr__reader_destroy(reader);
    hr_pool_unref(pool);
}

static struct hr_reader *small_reader(struct hr_pool *pool)
{
    struct hr_reader_options options = {.pool = pool,
                                        .mode = HR_READER_THREADS,
                                        .depth = 8,
                                        .threads = 3,
                                        .ahead_bytes_max = 2 * size_of(FILES - 1)};
    struct hr_reader *reader = NULL;

    CHECK_OK(hr__reader_create(&options, &reader, NULL));
    return reader;
}

/* Until `bytes` bytes are read ahead, or are being read. */
static void await_bytes(struct hr_reader *reader, size_t bytes)
{
    for (int i = 0; i < 20000 && stats_of(reader).ahead_bytes < bytes; i++)
        usleep(1000);
}

TEST(ranges_that_the_budget_has_no_room_for_are_read_ahead_later)
{
    struct hr_pool *pool = hr_pool_create(0);
    struct hr_reader *reader;
    struct hr_range range;

    make_files();
    reader = small_reader(pool);
    for (int file = FILES - 8; file < FILES; file++) {
        range = whole(paths[file]);
        range.bytes = size_of(file);
        CHECK(hr__reader_ahead(reader, &range));
    }
    range = whole(paths[1]);
    CHECK(!hr__reader_ahead(reader, &range)); /* the depth is used up */
    for (int file = FILES - 8; file < FILES; file++) {
        struct hr_buffer *buffer = NULL;

        await_bytes(reader, size_of(file));
        range = whole(paths[file]);
        range.bytes = size_of(file);
        CHECK_OK(hr__reader_take(reader, &range, &buffer, NULL));
        CHECK(is_right(file, buffer));
        hr_buffer_unref(buffer);
    }
    CHECK_EQ_INT(stats_of(reader).ahead_started, 8);
    CHECK_EQ_INT(stats_of(reader).ahead_ready + stats_of(reader).ahead_late, 8);
    CHECK_EQ_INT(stats_of(reader).ahead_unused, 0);
    CHECK(hr__reader_ahead(reader, &range));
    hr__reader_destroy(reader);
    hr_pool_unref(pool);
}

/* All are started, as nothing is known about sizes, and most are refused. */
TEST(ranges_of_unknown_size_are_queued_again_when_they_do_not_fit)
{
    struct hr_pool *pool = hr_pool_create(0);
    struct hr_reader *reader;

    make_files();
    reader = small_reader(pool);
    for (int file = FILES - 8; file < FILES; file++)
        name_ahead(reader, paths[file]);
    for (int file = FILES - 8; file < FILES; file++) {
        await_bytes(reader, size_of(file));
        CHECK(stats_of(reader).ahead_bytes <= 2 * size_of(FILES - 1));
        take_right(reader, file);
    }
    CHECK(stats_of(reader).ahead_ready + stats_of(reader).ahead_late > 2);
    CHECK_EQ_INT(stats_of(reader).ahead_files, 0);
    hr__reader_destroy(reader);
    hr_pool_unref(pool);
}

TEST(destroying_with_requests_in_flight_leaves_nothing)
{
    struct hr_pool *pool = hr_pool_create(0);
    struct hr_pool_stats left;

    make_files();
    for (int round = 0; round < 30; round++) {
        struct hr_reader *reader = reader_of(pool, modes[round % 2]);

        if (reader == NULL)
            continue;
        make_cold();
        for (int file = 0; file < 8; file++)
            name_ahead(reader, paths[file + 1]);
        usleep((unsigned)(round % 5) * 50);
        hr__reader_destroy(reader);
    }
    hr_pool_stats(pool, &left);
    CHECK_EQ_INT(left.used_bytes, 0);
    hr_pool_unref(pool);
}

TEST(anything_but_a_regular_file_is_refused_by_name)
{
    struct hr_pool *pool = hr_pool_create(0);
    struct hr_reader *reader = reader_of(pool, HR_READER_AUTO);
    struct hr_buffer *buffer = NULL;
    struct hr_error error = {0};
    char fifo[600], missing[600];

    make_files();
    snprintf(fifo, sizeof fifo, "%s/fifo", check_temp_dir());
    snprintf(missing, sizeof missing, "%s/missing", check_temp_dir());
    CHECK_EQ_INT(mkfifo(fifo, 0644), 0);
    name_ahead(reader, fifo);
    name_ahead(reader, missing);
    CHECK_ERR(HR_ERR_TYPE, take(reader, fifo, &buffer, &error));
    CHECK_HAS(error.message, "fifo is a pipe, not a file");
    CHECK_EQ_STR(error.file, fifo);
    CHECK_ERR(HR_ERR_NOT_FOUND, take(reader, missing, &buffer, &error));
    CHECK_HAS(error.message, "missing: No such file");
    CHECK_ERR(HR_ERR_TYPE, take(reader, check_temp_dir(), &buffer, &error));
    CHECK_HAS(error.message, "is a folder, not a file");
    CHECK_ERR(HR_ERR_TYPE, take(reader, "/dev/null", &buffer, &error));
    CHECK_HAS(error.message, "/dev/null is a device");
    CHECK(buffer == NULL);
    hr__reader_destroy(reader);
    hr_pool_unref(pool);
}

TEST(files_over_the_limit_and_full_pools_are_errors)
{
    struct hr_pool *pool = hr_pool_create(40000);
    struct hr_reader_options options = {
        .pool = pool, .file_bytes_max = 70000, .mode = HR_READER_THREADS};
    struct hr_reader *reader = NULL;
    struct hr_buffer *buffer = NULL;
    struct hr_error error = {0};

    make_files();
    CHECK_OK(hr__reader_create(&options, &reader, NULL));
    CHECK_ERR(HR_ERR_LIMIT, take(reader, paths[40], &buffer, &error));
    CHECK_HAS(error.message, "f40 has 71080 bytes, more than the limit of 70000");
    CHECK_ERR(HR_ERR_LIMIT, take(reader, paths[30], &buffer, &error));
    CHECK_HAS(error.message, "f30: the pool's limit is reached");
    /* ranges read ahead make room for one that is taken */
    name_ahead(reader, paths[10]);
    name_ahead(reader, paths[11]);
    for (int i = 0; i < 2000 && stats_of(reader).ahead_bytes < size_of(10) + size_of(11);
         i++)
        usleep(1000);
    take_right(reader, 14);
    hr__reader_destroy(reader);
    hr_pool_unref(pool);
}

TEST(errors_of_reading_ahead_are_reported_by_take)
{
    struct hr_pool *pool = hr_pool_create(0);

    make_files();
    for (int mode = 0; mode < 2; mode++) {
        struct hr_reader *reader = reader_of(pool, modes[mode]);
        struct hr_buffer *buffer = NULL;
        struct hr_error error = {0};

        if (reader == NULL)
            continue;
        name_ahead(reader, "/nonexistent/x.jpg");
        usleep(2000);
        CHECK_ERR(HR_ERR_NOT_FOUND, take(reader, "/nonexistent/x.jpg", &buffer, &error));
        CHECK_HAS(error.message, "/nonexistent/x.jpg");
        hr__reader_destroy(reader);
    }
    hr_pool_unref(pool);
}

/* The life of a reader in which the n-th call fails; true if there was no n-th call. */
static bool fail_nth(enum hr_reader_mode mode, unsigned kinds, uint64_t nth)
{
    struct hr_pool *pool = hr_pool_create(0);
    struct hr_reader_options options = {
        .pool = pool, .mode = mode, .depth = 4, .threads = 2};
    struct hr_reader *reader = NULL;
    struct hr_error error = {0};
    uint64_t calls;

    hr__fault_arm(kinds, nth);
    if (hr__reader_create(&options, &reader, &error) != HR_OK)
        CHECK(reader == NULL && error.message[0] != '\0');
    for (int file = 1; reader != NULL && file < 6; file++) {
        struct hr_buffer *buffer = NULL;
        enum hr_err err;

        name_ahead(reader, paths[file + 1]);
        err = take(reader, paths[file], &buffer, &error);
        CHECK(err != HR_OK ? buffer == NULL : is_right(file, buffer));
        hr_buffer_unref(buffer);
    }
    hr__reader_destroy(reader);
    calls = hr__fault_calls();
    hr__fault_arm(0, 0);
    hr_pool_unref(pool);
    return calls < nth;
}

TEST(every_call_may_fail_once)
{
    static const unsigned kinds[] = {HR_FAULT_ALLOC, HR_FAULT_OPEN, HR_FAULT_READ,
                                     HR_FAULT_THREAD};
    int before;

    make_files();
    before = check_open_files();
    for (int mode = 0; mode < 3; mode++) {
        for (size_t kind = 0; kind < 4; kind++) {
            for (uint64_t nth = 1; !fail_nth(modes[mode], kinds[kind], nth); nth++)
                continue;
            for (int i = 0; i < 1000 && check_open_files() != before; i++)
                usleep(1000);
            CHECK_EQ_INT(check_open_files(), before);
        }
    }
}

TEST(a_warm_take_makes_no_allocation)
{
    struct hr_pool *pool = hr_pool_create(0);
    struct hr_reader *reader = reader_of(pool, HR_READER_AUTO);
    uint64_t before;

    make_files();
    for (int i = 0; i < 10; i++)
        take_right(reader, 20);
    before = hr__alloc_count();
    for (int i = 0; i < 300; i++)
        take_right(reader, 20);
    CHECK_EQ_INT(hr__alloc_count(), before);
    hr__reader_destroy(reader);
    hr_pool_unref(pool);
}

/* Denies io_uring to this thread and to the threads that it starts. */
static bool forbid_uring(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void *read_without_uring(void *user)
{
    struct hr_reader_options options = {.pool = user};
    struct hr_reader *reader = NULL;
    struct hr_buffer *buffer = NULL;
    struct hr_error error = {0};
    const char *wrong = NULL;

    if (!forbid_uring())
        return NULL;
    options.mode = HR_READER_URING;
    if (hr__reader_create(&options, &reader, NULL) != HR_ERR_UNSUPPORTED)
        return "a ring although it is forbidden";
    options.mode = HR_READER_AUTO;
    if (hr__reader_create(&options, &reader, &error) != HR_OK)
        return "no reader";
    name_ahead(reader, paths[8]);
    if (stats_of(reader).mode != HR_READER_THREADS || error.message[0] != '\0')
        wrong = "not by threads";
    else if (take(reader, paths[8], &buffer, NULL) != HR_OK || !is_right(8, buffer))
        wrong = "other bytes";
    hr_buffer_unref(buffer);
    hr__reader_destroy(reader);
    return (void *)wrong;
}

TEST(threads_read_ahead_where_io_uring_is_forbidden)
{
    struct hr_pool *pool = hr_pool_create(0);
    pthread_t thread;
    void *wrong = NULL;

    make_files();
    CHECK_EQ_INT(pthread_create(&thread, NULL, read_without_uring, pool), 0);
    pthread_join(thread, &wrong);
    hr_pool_unref(pool);
    if (wrong != NULL)
        check_failed(__FILE__, __LINE__, "%s", (const char *)wrong);
}
