/*
 * store/cache_test.c - caches give back what was put, in memory and in a folder, with
 * several writers, killed writers, damaged files, no room and no memory.
 */
#include "store/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "core/str.h"
#include "tests/support/check.h"

#define VALUE_MAX 4096

static struct hr_pool *pool;
static struct hr_rng rng;

static void setup(void)
{
    if (pool != NULL)
        return;
    pool = hr_pool_create(0);
    CHECK(pool != NULL);
    hr__rng_init(&rng, check_seed(), 0, 0);
}

static struct hr_hash128 number(uint64_t i)
{
    return hr__hash128(&i, sizeof i);
}

/* A folder that does not exist yet. */
static const char *new_folder(void)
{
    static char path[512];
    static int count;

    snprintf(path, sizeof path, "%s/cache%d", check_temp_dir(), count++);
    return path;
}

static struct hr_cache *open_of(const char *folder, uint64_t bytes_max, uint64_t of)
{
    struct hr_cache_options options = {folder, bytes_max, number(1000 + of)};
    struct hr_error error = {0};
    struct hr_cache *cache = NULL;

    setup();
    CHECK_OK(hr__cache_open(&options, &cache, &error));
    return cache;
}

/* The value of key i: every seventh is a mark. */
static size_t bytes_of(uint64_t i)
{
    return i % 7 == 6 ? 0 : 1 + (size_t)(i * 7919 % 3000);
}

static void fill_value(uint64_t i, unsigned char *to)
{
    for (size_t k = 0; k < bytes_of(i); k++)
        to[k] = (unsigned char)(i + k * 31);
}

static bool put(struct hr_cache *cache, uint64_t i)
{
    struct hr_cache_value value;

    if (bytes_of(i) == 0) {
        hr__cache_mark(cache, number(i));
        return true;
    }
    if (!hr__cache_room(cache, bytes_of(i), pool, &value))
        return false;
    CHECK_EQ_INT((uintptr_t)value.data % 64, 0);
    fill_value(i, value.data);
    hr__cache_put(cache, number(i), &value);
    return true;
}

/* Whether it is there; then it is right. */
static bool check_value(struct hr_cache *cache, uint64_t i)
{
    unsigned char expected[VALUE_MAX];
    struct hr_cache_value value;
    enum hr_cache_found found = hr__cache_get(cache, number(i), pool, &value);

    if (found == HR_CACHE_NONE)
        return false;
    CHECK_EQ_INT(found, bytes_of(i) == 0 ? HR_CACHE_MARK : HR_CACHE_BYTES);
    if (found == HR_CACHE_MARK)
        return true;
    CHECK_EQ_INT(value.bytes, bytes_of(i));
    CHECK_EQ_INT((uintptr_t)value.data % 64, 0);
    fill_value(i, expected);
    CHECK_BYTES(value.data, expected, value.bytes);
    hr_buffer_unref(value.owner);
    return true;
}

static uint64_t count_values(struct hr_cache *cache, uint64_t from, uint64_t to)
{
    uint64_t found = 0;

    for (uint64_t i = from; i < to; i++)
        found += check_value(cache, i);
    return found;
}

static struct hr_cache_stats stats_of(struct hr_cache *cache)
{
    struct hr_cache_stats stats;

    hr__cache_stats(cache, &stats);
    return stats;
}

/* The only file of a cache in `folder` that ends so; `other`: of the next one. */
static char *find_file(const char *folder, const char *end)
{
    static char path[1200];
    char inner[800] = "";
    struct dirent *item;
    DIR *all = opendir(folder);

    CHECK(all != NULL);
    while ((item = readdir(all)) != NULL)
        if (strncmp(item->d_name, "cache-", 6) == 0)
            snprintf(inner, sizeof inner, "%s/%s", folder, item->d_name);
    closedir(all);
    all = opendir(inner);
    path[0] = '\0';
    while (all != NULL && (item = readdir(all)) != NULL)
        if (strstr(item->d_name, end) != NULL)
            snprintf(path, sizeof path, "%s/%s", inner, item->d_name);
    if (all != NULL)
        closedir(all);
    return path;
}

static void flip(const char *path, off_t at)
{
    int fd = open(path, O_RDWR);
    unsigned char byte;

    CHECK(fd >= 0 && pread(fd, &byte, 1, at) == 1);
    byte ^= 0x10;
    CHECK(pwrite(fd, &byte, 1, at) == 1);
    close(fd);
}

static void rest(long ms)
{
    struct timespec time = {0, ms * 1000000};

    nanosleep(&time, NULL);
}

/* ---- tests ---- */

TEST(values_come_back_from_memory_and_from_a_folder)
{
    for (int disk = 0; disk < 2; disk++) {
        struct hr_cache *cache = open_of(disk ? new_folder() : NULL, 64 << 20, 0);

        CHECK_EQ_INT(count_values(cache, 0, 500), 0);
        for (uint64_t i = 0; i < 500; i++)
            CHECK(put(cache, i));
        CHECK_EQ_INT(count_values(cache, 0, 500), 500);
        CHECK_EQ_INT(stats_of(cache).entries, 500);
        CHECK_EQ_INT(stats_of(cache).hits, 500);
        CHECK_EQ_INT(stats_of(cache).misses, 500);
        CHECK(hr__cache_holds(cache, number(3)) && !hr__cache_holds(cache, number(500)));
        hr__cache_close(cache);
    }
}

TEST(a_folder_is_found_again_by_what_its_values_are_of)
{
    const char *folder = new_folder();
    struct hr_cache *cache = open_of(folder, 0, 1);

    for (uint64_t i = 0; i < 100; i++)
        CHECK(put(cache, i));
    hr__cache_close(cache);
    cache = open_of(folder, 0, 1);
    CHECK_EQ_INT(count_values(cache, 0, 100), 100);
    hr__cache_close(cache);
    cache = open_of(folder, 0, 2);
    CHECK_EQ_INT(count_values(cache, 0, 100), 0);
    hr__cache_close(cache);
}

TEST(a_full_cache_says_so_once_and_keeps_what_it_has)
{
    for (int disk = 0; disk < 2; disk++) {
        struct hr_cache *cache = open_of(disk ? new_folder() : NULL, 300000, 0);
        struct hr_cache_stats stats;
        uint64_t put_count = 0;

        while (put(cache, put_count) && put_count < 1000 && !stats_of(cache).full)
            put_count++;
        stats = stats_of(cache);
        CHECK(stats.full && stats.bytes <= 300000);
        CHECK_HAS(stats.reason, "budget");
        CHECK(put_count > 50 && put_count < 300);
        CHECK(count_values(cache, 0, put_count) >= put_count - 1);
        CHECK(!put(cache, 10000));
        CHECK(!check_value(cache, 10000));
        hr__cache_close(cache);
    }
}

TEST(values_larger_than_a_slab_have_memory_of_their_own)
{
    struct hr_cache *cache = open_of(NULL, 1 << 20, 0);
    struct hr_cache_value value;

    for (uint64_t i = 0; i < 20; i++) {
        size_t bytes = i % 2 ? 20 : 40000;

        CHECK(hr__cache_room(cache, bytes, pool, &value));
        memset(value.data, (int)i, bytes);
        hr__cache_put(cache, number(i), &value);
    }
    for (uint64_t i = 0; i < 20; i++) {
        CHECK_EQ_INT(hr__cache_get(cache, number(i), pool, &value), HR_CACHE_BYTES);
        for (size_t k = 0; k < value.bytes; k++)
            CHECK_EQ_INT(((unsigned char *)value.data)[k], i);
        hr_buffer_unref(value.owner);
    }
    CHECK(stats_of(cache).bytes <= 1 << 20);
    hr__cache_close(cache);
}

TEST(damaged_values_are_not_found_and_may_be_put_again)
{
    const char *folder = new_folder();
    struct hr_cache *cache = open_of(folder, 0, 0);
    struct stat info;
    uint64_t found;
    char path[1200];

    for (uint64_t i = 0; i < 60; i++)
        CHECK(put(cache, i));
    hr__cache_close(cache);
    snprintf(path, sizeof path, "%s", find_file(folder, ".values"));
    CHECK(stat(path, &info) == 0);
    for (int i = 0; i < 10; i++)
        flip(path, (off_t)hr__rng_below(&rng, (uint64_t)info.st_size));
    flip(path, 0); /* at least this one is no gap */
    cache = open_of(folder, 0, 0);
    found = count_values(cache, 0, 60);
    CHECK(found >= 49 && found < 60);
    CHECK_EQ_INT(stats_of(cache).damaged, 60 - found);
    for (uint64_t i = 0; i < 60; i++)
        if (!hr__cache_holds(cache, number(i)))
            CHECK(put(cache, i));
    CHECK_EQ_INT(count_values(cache, 0, 60), 60);
    hr__cache_close(cache);
    cache = open_of(folder, 0, 0); /* the later value counts */
    CHECK_EQ_INT(count_values(cache, 0, 60), 60);
    hr__cache_close(cache);
}

TEST(damaged_and_cut_entries_are_passed_over)
{
    const char *folder = new_folder();
    struct hr_cache *cache = open_of(folder, 0, 0);
    char path[1200];
    struct stat info;

    for (uint64_t i = 0; i < 60; i++)
        CHECK(put(cache, i));
    hr__cache_close(cache);
    snprintf(path, sizeof path, "%s", find_file(folder, ".index"));
    CHECK(stat(path, &info) == 0);
    CHECK_EQ_INT(info.st_size, 64 * 61);
    flip(path, 64 * 5 + (off_t)hr__rng_below(&rng, 64));
    CHECK(truncate(path, 64 * 40 + 13) == 0);
    cache = open_of(folder, 0, 0);
    CHECK_EQ_INT(count_values(cache, 0, 60), 38);
    hr__cache_close(cache);
    flip(path, 3); /* no cache any more */
    cache = open_of(folder, 0, 0);
    CHECK_EQ_INT(count_values(cache, 0, 60), 0);
    hr__cache_close(cache);
}

TEST(processes_fill_a_folder_at_once_and_see_what_others_put)
{
    const char *folder = new_folder();
    struct hr_cache *cache = open_of(folder, 0, 0);
    pid_t children[3];

    for (uint64_t c = 0; c < 3; c++) {
        children[c] = fork();
        if (children[c] == 0) {
            struct hr_cache *own = open_of(folder, 0, 0);

            for (uint64_t i = 0; i < 300; i++)
                if (!check_value(own, (i + 100 * c) % 300))
                    (void)put(own, (i + 100 * c) % 300);
            hr__cache_close(own);
            _exit(0);
        }
    }
    for (uint64_t c = 0; c < 3; c++) {
        int status;

        CHECK(waitpid(children[c], &status, 0) == children[c] && status == 0);
    }
    rest(300);
    CHECK_EQ_INT(count_values(cache, 0, 300), 300);
    CHECK_EQ_INT(stats_of(cache).damaged, 0);
    hr__cache_close(cache);
}

static void *use_in_thread(void *user)
{
    struct hr_cache *cache = user;

    for (uint64_t i = 0; i < 600; i++) {
        uint64_t key = i * 7 % 400;

        if (!check_value(cache, key))
            (void)put(cache, key);
        (void)hr__cache_holds(cache, number(key + 1));
    }
    return NULL;
}

TEST(threads_put_and_get_at_once)
{
    for (int disk = 0; disk < 2; disk++) {
        const char *folder = disk ? new_folder() : NULL;
        struct hr_cache *caches[2];
        pthread_t threads[6];

        caches[0] = open_of(folder, 2 << 20, 0);
        caches[1] = disk ? open_of(folder, 2 << 20, 0) : caches[0];
        for (int i = 0; i < 6; i++)
            CHECK(pthread_create(&threads[i], NULL, use_in_thread, caches[i % 2]) == 0);
        for (int i = 0; i < 6; i++)
            pthread_join(threads[i], NULL);
        CHECK_EQ_INT(count_values(caches[0], 0, 400), 400);
        CHECK_EQ_INT(stats_of(caches[0]).damaged, 0);
        if (disk)
            hr__cache_close(caches[1]);
        hr__cache_close(caches[0]);
    }
}

/* The folder has values 0 to `count`, all of them intact. */
static void check_values(const char *folder, uint64_t count)
{
    struct hr_cache *cache = open_of(folder, 0, 0);

    CHECK_EQ_INT(count_values(cache, 0, count), count);
    CHECK_EQ_INT(stats_of(cache).damaged, 0);
    hr__cache_close(cache);
}

TEST(a_mark_after_the_last_value_is_found_again)
{
    const char *folder = new_folder();
    struct hr_cache *cache = open_of(folder, 0, 0);

    for (uint64_t i = 0; i < 7; i++) /* 6 is a mark */
        CHECK(put(cache, i));
    hr__cache_close(cache);
    check_values(folder, 7);
}

TEST(a_forked_process_writes_files_of_its_own)
{
    const char *folder = new_folder();
    struct hr_cache *cache = open_of(folder, 0, 0);
    int status;
    pid_t child;

    CHECK(put(cache, 0));
    child = fork();
    for (uint64_t i = 0; i < 100; i++)
        (void)put(cache, 1 + 2 * i + (child == 0));
    if (child == 0)
        _exit(0);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    hr__cache_close(cache);
    check_values(folder, 201);
}

TEST(what_a_killed_process_put_is_whole)
{
    const char *folder = new_folder();
    uint64_t found = 0;

    for (int round = 0; round < 5; round++) {
        int ready[2], status;
        struct hr_cache *cache;
        pid_t child;
        char byte;

        setup();
        CHECK(pipe(ready) == 0);
        child = fork();
        if (child == 0) {
            uint64_t first = (uint64_t)round * 100000;

            cache = open_of(folder, 0, 0);
            for (uint64_t i = first;; i++) {
                (void)put(cache, i);
                if (i == first + 20 && write(ready[1], "x", 1) != 1)
                    _exit(1);
            }
        }
        CHECK(read(ready[0], &byte, 1) == 1);
        rest((long)hr__rng_below(&rng, 8));
        kill(child, SIGKILL);
        CHECK(waitpid(child, &status, 0) == child);
        close(ready[0]);
        close(ready[1]);
        cache = open_of(folder, 0, 0);
        CHECK_EQ_INT(
            count_values(cache, (uint64_t)round * 100000, (uint64_t)round * 100000 + 20),
            20);
        CHECK(stats_of(cache).entries > found);
        found = stats_of(cache).entries;
        CHECK_EQ_INT(stats_of(cache).damaged, 0);
        hr__cache_close(cache);
    }
}

TEST(a_disk_without_room_ends_the_filling)
{
    for (uint64_t nth = 1; nth < 12; nth++) {
        const char *folder = new_folder();
        struct hr_cache *cache = open_of(folder, 0, 0);
        uint64_t before, i = 0;

        hr__fault_arm(HR_FAULT_WRITE, nth);
        for (; i < 40 && !stats_of(cache).full; i++)
            (void)put(cache, i);
        hr__fault_arm(0, 0);
        CHECK(stats_of(cache).full && i < 40);
        CHECK(stats_of(cache).reason[0] != '\0');
        before = count_values(cache, 0, 40);
        CHECK(before <= i && !put(cache, 77));
        hr__cache_close(cache);
        cache = open_of(folder, 0, 0);
        CHECK_EQ_INT(count_values(cache, 0, 40), before);
        hr__cache_close(cache);
    }
}

TEST(without_memory_or_files_values_are_only_missing)
{
    for (int disk = 0; disk < 2; disk++) {
        const char *folder = disk ? new_folder() : NULL;
        bool failed = true;

        for (uint64_t nth = 1; failed && nth < 400; nth++) {
            struct hr_cache_options options = {folder, 1 << 20, number(5)};
            struct hr_error error = {0};
            struct hr_cache *cache = NULL;
            enum hr_err code;

            setup();
            hr__fault_arm(HR_FAULT_ALLOC | HR_FAULT_OPEN | HR_FAULT_READ, nth);
            code = hr__cache_open(&options, &cache, &error);
            for (uint64_t i = 0; code == HR_OK && i < 30; i++)
                (void)put(cache, i);
            for (uint64_t i = 0; code == HR_OK && i < 30; i++)
                (void)check_value(cache, i);
            failed = hr__fault_calls() >= nth;
            hr__fault_arm(0, 0);
            CHECK(code == HR_OK || (failed && code == HR_ERR_MEMORY) ||
                  (failed && code == HR_ERR_IO));
            if (code == HR_OK)
                (void)count_values(cache, 0, 30);
            hr__cache_close(cache);
        }
        CHECK(!failed);
    }
}

TEST(other_caches_make_room_unless_they_are_open)
{
    const char *folder = new_folder();
    struct hr_cache *old = open_of(folder, 300000, 1), *open, *cache;

    for (uint64_t i = 0; i < 60; i++)
        CHECK(put(old, i));
    hr__cache_close(old);
    rest(20);
    open = open_of(folder, 300000, 2);
    for (uint64_t i = 0; i < 60; i++)
        CHECK(put(open, i));
    cache = open_of(folder, 300000, 3);
    for (uint64_t i = 0; i < 150; i++) /* over 200 kB */
        CHECK(put(cache, i));
    CHECK_EQ_INT(stats_of(cache).evicted, 1);
    CHECK_EQ_INT(count_values(open, 0, 60), 60);
    while (!stats_of(cache).full)
        (void)put(cache, 1000 + stats_of(cache).entries);
    CHECK_EQ_INT(stats_of(cache).evicted, 1);
    hr__cache_close(open);
    hr__cache_close(cache);
    old = open_of(folder, 300000, 1);
    CHECK_EQ_INT(count_values(old, 0, 60), 0);
    hr__cache_close(old);
}

TEST(a_folder_that_cannot_be_made_is_an_error)
{
    struct hr_cache_options options = {"/proc/none/cache", 0, number(0)};
    struct hr_error error = {0};
    struct hr_cache *cache = NULL;

    CHECK(hr__cache_open(&options, &cache, &error) != HR_OK);
    CHECK_HAS(error.message, "/proc/none");
}
