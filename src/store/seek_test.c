/*
 * store/seek_test.c - entries by content: limits, damage, and saved indexes that several
 * runs write.
 */
#include "core/alloc.h"
#include "core/file.h"
#include "core/thread.h"
#include "store/index.h"
#include "store/index_parts.h"
#include "store/seek.h"
#include "store/seek_internal.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALL 500

static const char *path_of(const char *name)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/%s", check_temp_dir(), name);
    return path;
}

static struct hr_hash128 key_of(uint64_t number)
{
    return hr__hash128(&number, sizeof number);
}

/* Entry `number` in the version `done`: its length and bytes follow from both. */
static size_t make(uint64_t number, uint32_t done, uint8_t bytes[256])
{
    size_t length = 1 + number * 7 % 200 + done;

    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)(number * 31 + done + i);
    return length;
}

static void put(struct hr_seek *seek, uint64_t number, uint32_t done)
{
    uint8_t bytes[256];
    size_t length = make(number, done, bytes);

    hr__seek_put(seek, key_of(number), bytes, length, done);
}

/* The version that is found; 0: none. Anything but an intact version is a failure. */
static uint32_t found(struct hr_seek *seek, uint64_t number)
{
    struct hr_arena arena;
    uint8_t bytes[256];
    const uint8_t *data;
    size_t length = 0;
    uint32_t done = 0;

    hr__arena_init(&arena);
    if (hr__seek_find(seek, key_of(number), &arena, &data, &length)) {
        while (make(number, ++done, bytes) < length)
            ;
        CHECK_EQ_INT(make(number, done, bytes), length);
        CHECK_BYTES(data, bytes, length);
    }
    hr__arena_finish(&arena);
    return done;
}

static struct hr_seek *create(const char *path, uint64_t bytes_max)
{
    struct hr_error error = {0};
    struct hr_seek *seek;

    CHECK_OK(hr__seek_create(path, bytes_max, &seek, &error));
    return seek;
}

static struct hr_seek_stats stats_of(struct hr_seek *seek)
{
    struct hr_seek_stats stats;

    hr__seek_stats(seek, &stats);
    return stats;
}

TEST(an_entry_is_found_by_its_key_and_replaced)
{
    struct hr_seek *seek = create(NULL, 1 << 20);

    for (uint64_t i = 0; i < ALL; i++)
        put(seek, i, 1);
    for (uint64_t i = 0; i < ALL; i += 2)
        put(seek, i, 3);
    for (uint64_t i = 0; i < ALL; i++)
        CHECK_EQ_INT(found(seek, i), i % 2 == 0 ? 3 : 1);
    CHECK_EQ_INT(found(seek, ALL), 0);
    CHECK_EQ_INT(stats_of(seek).entries, ALL);
    CHECK_EQ_INT(stats_of(seek).hits, ALL);
    CHECK_EQ_INT(stats_of(seek).misses, 1);
    hr__seek_unref(seek);
}

TEST(memory_is_bounded_and_the_first_entries_stay)
{
    struct hr_seek *seek = create(NULL, 8192);
    int there = 0;

    for (uint64_t i = 0; i < ALL; i++)
        put(seek, i, 1);
    CHECK(stats_of(seek).memory_bytes <= 8192 + 512);
    CHECK(stats_of(seek).refused > 0);
    for (uint64_t i = 0; i < ALL; i++)
        there += found(seek, i) != 0;
    CHECK(there > 20 && found(seek, 0) == 1 && found(seek, ALL - 1) == 0);
    CHECK_EQ_INT(there, stats_of(seek).entries);
    hr__seek_unref(seek);
    seek = create(NULL, 0);
    put(seek, 1, 1);
    CHECK_EQ_INT(found(seek, 1), 0);
    hr__seek_unref(seek);
}

TEST(a_later_run_finds_saved_entries)
{
    const char *path = path_of("later.index");
    struct hr_seek *seek = create(path, 1 << 20);

    for (uint64_t i = 0; i < ALL; i++)
        put(seek, i, 2);
    hr__seek_save(seek);
    CHECK_EQ_INT(stats_of(seek).memory_bytes, 0);
    CHECK_EQ_INT(stats_of(seek).mapped_entries, ALL);
    CHECK_EQ_INT(found(seek, 7), 2);
    put(seek, 7, 9);
    CHECK_EQ_INT(found(seek, 7), 9);
    hr__seek_unref(seek);

    seek = create(path, 0);
    CHECK_EQ_INT(stats_of(seek).entries, ALL);
    for (uint64_t i = 0; i < ALL; i++)
        CHECK_EQ_INT(found(seek, i), i == 7 ? 9 : 2);
    CHECK(!stats_of(seek).damaged);
    hr__seek_unref(seek);
}

TEST(a_rest_saves_if_it_is_worth_it_and_the_end_saves_all)
{
    const char *path = path_of("rest.index");
    struct hr_seek *seek = create(path, 1 << 20);

    for (uint64_t i = 0; i < 160; i++)
        put(seek, i, 1);
    hr__seek_rest(seek);
    CHECK_EQ_INT(stats_of(seek).mapped_entries, 160);
    for (uint64_t i = 200; i < 209; i++)
        put(seek, i, 1);
    hr__seek_rest(seek);
    CHECK_EQ_INT(stats_of(seek).mapped_entries, 160);
    put(seek, 209, 1);
    hr__seek_rest(seek);
    CHECK_EQ_INT(stats_of(seek).mapped_entries, 170);
    put(seek, 300, 1);
    hr__seek_unref(seek);
    seek = create(path, 0);
    CHECK_EQ_INT(stats_of(seek).entries, 171);
    hr__seek_unref(seek);
}

/* Until the save that a pause began has ended. */
static void await_saved(struct hr_seek *seek, uint64_t entries)
{
    for (int i = 0; i < 30000 && stats_of(seek).mapped_entries < entries; i++)
        usleep(1000);
    CHECK_EQ_INT(stats_of(seek).mapped_entries, entries);
}

/* A look-up may fail while a save holds the lock; a later one succeeds. */
static uint32_t found_soon(struct hr_seek *seek, uint64_t number)
{
    uint32_t rows = found(seek, number);

    for (int i = 0; i < 30000 && rows == 0; i++) {
        usleep(1000);
        rows = found(seek, number);
    }
    return rows;
}

TEST(a_pause_saves_while_others_continue)
{
    const char *path = path_of("pause.index");
    struct hr_seek *seek = create(path, 1 << 20), *other;

    for (uint64_t i = 0; i < 160; i++)
        put(seek, i, 1);
    hr__seek_pause(seek);
    for (uint64_t i = 0; i < 160; i++)
        CHECK_EQ_INT(found_soon(seek, i), 1);
    await_saved(seek, 160);
    CHECK_EQ_INT(stats_of(seek).memory_bytes, 0);
    other = create(path, 0); /* as after this process was killed */
    CHECK_EQ_INT(stats_of(other).entries, 160);
    hr__seek_unref(other);
    for (uint64_t i = 200; i < 209; i++)
        put(seek, i, 1);
    hr__seek_pause(seek); /* too few */
    hr__seek_rest(seek);
    CHECK_EQ_INT(stats_of(seek).mapped_entries, 160);
    hr__seek_unref(seek);
}

TEST(memory_that_is_half_full_is_saved)
{
    struct hr_seek *seek = create(path_of("half.index"), 32 << 10);
    uint64_t count = 0;

    while (stats_of(seek).memory_bytes <= 16 << 10 && count < ALL)
        put(seek, count++, 1);
    CHECK(count < ALL);
    await_saved(seek, count);
    CHECK_EQ_INT(stats_of(seek).refused, 0);
    hr__seek_unref(seek);
}

TEST(an_entry_that_covers_more_is_counted_once)
{
    struct hr_seek *seek = create(path_of("once.index"), 1 << 20);

    for (uint64_t i = 0; i < 10; i++)
        put(seek, i, 1);
    hr__seek_save(seek);
    put(seek, 3, 9);
    CHECK_EQ_INT(stats_of(seek).entries, 10);
    CHECK_EQ_INT(stats_of(seek).mapped_entries, 10);
    CHECK_NEAR(stats_of(seek).done, 1.8 / HR_SEEK_WHOLE, 1e-9);
    CHECK_EQ_INT(stats_of(seek).bytes, 10 * (1 + 1) + 7 * 45 + 8);
    hr__seek_unref(seek);
}

TEST(what_windows_went_through_is_saved_with_the_entries)
{
    const char *path = path_of("use.index");
    struct hr_seek *seek;

    for (int run = 0; run < 2; run++) {
        seek = create(path, 1 << 20);
        put(seek, (uint64_t)run, 1);
        hr__seek_count(seek, HR_SEEK_WHOLE / 5, HR_SEEK_WHOLE);
        hr__seek_save(seek);
        hr__seek_count(seek, HR_SEEK_WHOLE / 5 * 3, HR_SEEK_WHOLE / 5 * 3);
        CHECK_NEAR(stats_of(seek).went, 0.4, 1e-9);
        CHECK_NEAR(stats_of(seek).would, 0.8, 1e-9);
        put(seek, 10 + (uint64_t)run, 1);
        hr__seek_unref(seek);
    }
    seek = create(path, 0);
    CHECK_NEAR(stats_of(seek).went, 0.4, 1e-9);
    CHECK_NEAR(stats_of(seek).would, 0.8, 1e-9);
    hr__seek_unref(seek);
}

/* Two runs over overlapping photos; each has covered more of some. */
TEST(runs_that_save_to_one_file_add_to_each_other)
{
    const char *path = path_of("both.index");
    struct hr_seek *a = create(path, 1 << 20), *b = create(path, 1 << 20);

    for (uint64_t i = 0; i < 100; i++)
        put(a, i, i % 3 == 0 ? 5 : 2);
    for (uint64_t i = 50; i < 150; i++)
        put(b, i, 3);
    hr__seek_unref(a);
    hr__seek_unref(b);
    a = create(path, 0);
    for (uint64_t i = 0; i < 150; i++)
        CHECK_EQ_INT(found(a, i), i < 100 && i % 3 == 0 ? 5 : i < 50 ? 2 : 3);
    hr__seek_unref(a);
}

TEST(other_sections_are_kept_and_writing_names_keeps_entries)
{
    const char *path = path_of("mixed.index");
    struct hr_index_piece piece = {"others", 6};
    struct hr_index_part part = {900, &piece, 1};
    struct hr_index_options options = {.root = check_temp_dir(), .saved = path};
    const struct hr_index_section *sections;
    struct hr_error error = {0};
    struct hr_index *index;
    struct hr_index_map map;
    struct hr_seek *seek;
    uint32_t count;
    bool there = false;

    CHECK_OK(hr__index_parts_write(path, &part, 1, &error));
    seek = create(path, 1 << 20);
    put(seek, 1, 1);
    hr__seek_unref(seek);
    CHECK_OK(hr__index_open(&options, &index, &error)); /* writes names */
    hr__index_unref(index);
    CHECK_OK(hr__index_open(&options, &index, &error));
    CHECK_OK(hr__index_save(index, path, &error));
    hr__index_unref(index);
    seek = create(path, 0);
    CHECK_EQ_INT(found(seek, 1), 1);
    hr__seek_unref(seek);
    CHECK_OK(hr__index_map(path, &map, &error));
    CHECK_OK(hr__index_parts_check(map.data, map.bytes, &sections, &count, &error));
    CHECK_EQ_INT(count, 7);
    for (uint32_t i = 0; i < count; i++)
        there |= sections[i].kind == 900 &&
                 memcmp((char *)map.data + sections[i].at, "others", 6) == 0;
    CHECK(there);
    hr__index_unmap(&map);
}

/* Flips any byte: entries are intact or missing, and saving repairs the file. */
TEST(damage_is_noticed_where_it_is)
{
    const char *path = path_of("damage.index");
    struct hr_error error = {0};
    struct hr_seek *seek = create(path, 1 << 20);
    char *whole = NULL;
    size_t bytes = 0;
    int lost = 0;

    for (uint64_t i = 0; i < 20; i++)
        put(seek, i, 4);
    hr__seek_unref(seek);
    CHECK_OK(hr__file_read(path, 1 << 20, &whole, &bytes, &error));
    for (size_t at = 0; at < bytes; at += 3) {
        int there = 0;

        whole[at] ^= 16;
        CHECK_OK(hr__file_replace(path, whole, bytes, &error));
        whole[at] ^= 16;
        seek = create(path, 1 << 20);
        for (uint64_t i = 0; i < 20; i++) {
            uint32_t done = found(seek, i);

            CHECK(done == 0 || done == 4);
            there += done == 4;
        }
        CHECK(there == 20 || there == 19 || there == 0);
        CHECK(there > 0 || stats_of(seek).damaged);
        lost += 20 - there;
        put(seek, 3, 8);
        hr__seek_unref(seek);
        seek = create(path, 0);
        CHECK(!stats_of(seek).damaged);
        CHECK_EQ_INT(found(seek, 3), 8);
        hr__seek_unref(seek);
    }
    CHECK(lost > 100);
    CHECK_OK(hr__file_replace(path, whole, bytes / 2, &error));
    seek = create(path, 0);
    CHECK(stats_of(seek).damaged);
    hr__seek_unref(seek);
    hr__free(whole);
}

struct lie {
    const char *what;
    uint64_t at;
    uint32_t bytes, done;
    bool damaged; /* the whole section is refused, not just the entry */
};

/* A section of two entries with correct checksums: an honest one of 100 bytes, and one
 * with a false place. */
static void write_lie(const char *path, const struct lie *lie)
{
    struct {
        struct hr_seek_head head;
        struct hr_seek_record records[2];
    } whole = {
        .head = {.count = 2, .use = {.count = 1, .went = UINT64_MAX}}
    };
    static uint8_t entries[400];
    struct hr_index_piece pieces[] = {
        {&whole,  sizeof whole  },
        {entries, sizeof entries}
    };
    struct hr_index_part part = {HR_INDEX_KIND_SEEK, pieces, 2};
    int honest = hr__seek_compare(key_of(0), key_of(1)) < 0 ? 0 : 1;
    size_t length = lie->bytes <= sizeof entries ? lie->bytes : 0;

    whole.records[honest] = (struct hr_seek_record){
        key_of(0), sizeof whole, hr__seek_checksum(key_of(0), entries, 100), 100, 1};
    whole.records[1 - honest] = (struct hr_seek_record){
        key_of(1), lie->at, hr__seek_checksum(key_of(1), entries, length), lie->bytes,
        lie->done};
    /* The checksum of the bytes that it points to, if they are in the section's head. */
    if (lie->at < sizeof whole && lie->bytes <= sizeof whole - lie->at)
        whole.records[1 - honest].checksum =
            hr__seek_checksum(key_of(1), (char *)&whole + lie->at, lie->bytes);
    whole.head.checksum =
        hr__index_part_checksum(HR_INDEX_KIND_SEEK, &whole.head.use,
                                sizeof whole - offsetof(struct hr_seek_head, use));
    CHECK_OK(hr__index_parts_write(path, &part, 1, NULL));
}

TEST(an_entry_with_a_false_place_is_ignored)
{
    static const struct lie lies[] = {
        {"far outside",             UINT64_MAX - 4095,   1,          1,       false},
        {"before the section",      (uint64_t)-64,       8,          1,       false},
        {"in the records",          40,                  8,          1,       false},
        {"one byte too many",       40 + 80 + 300,       101,        1,       false},
        {"length overflows",        40 + 80,             UINT32_MAX, 1,       false},
        {"covers more than all",    40 + 80 + 100,       300,        1 << 20, false},
        {"overlaps the honest one", 40 + 80 + 100 - 100, 400,        1,       true },
    };
    const char *path = path_of("lies.index");
    struct hr_arena arena;
    const uint8_t *data;
    size_t bytes;

    hr__arena_init(&arena);
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct hr_seek *seek;

        write_lie(path, &lies[i]);
        seek = create(path, 1 << 20);
        if (hr__seek_find(seek, key_of(1), &arena, &data, &bytes) ||
            hr__seek_find(seek, key_of(0), &arena, &data, &bytes) == lies[i].damaged)
            check_failed(__FILE__, __LINE__, "%s", lies[i].what);
        CHECK_EQ_INT(stats_of(seek).damaged, lies[i].damaged);
        CHECK(stats_of(seek).bytes <= 400 && stats_of(seek).done <= 1);
        CHECK(stats_of(seek).went <= 1);
        put(seek, 1, 1);
        hr__seek_unref(seek); /* merges with the honest entry */
        seek = create(path, 0);
        CHECK_EQ_INT(found(seek, 1), 1);
        CHECK(!stats_of(seek).damaged);
        hr__seek_unref(seek);
        CHECK_EQ_INT(unlink(path), 0);
    }
    hr__arena_finish(&arena);
}

TEST(a_place_that_cannot_be_written_is_no_error)
{
    struct hr_seek *seek = create("/nowhere/at/all.index", 1 << 20);

    put(seek, 1, 1);
    hr__seek_save(seek);
    CHECK(stats_of(seek).save_failed);
    CHECK_EQ_INT(found(seek, 1), 1);
    hr__seek_unref(seek);
}

static void *work(void *user)
{
    struct hr_seek *seek = user;

    for (uint64_t i = 0; i < 4000; i++) {
        uint64_t number = i * 2654435761u % ALL;

        if (found(seek, number) == 0)
            put(seek, number, 1 + (uint32_t)(i % 20));
    }
    return NULL;
}

TEST(threads_use_it_while_it_is_saved)
{
    struct hr_seek *seek = create(path_of("threads.index"), 1 << 20);
    struct hr_error error = {0};
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        CHECK_OK(hr__thread_start(&threads[i], "seek", work, seek, &error));
    for (int i = 0; i < 5; i++) {
        hr__seek_save(seek);
        hr__seek_pause(seek);
    }
    hr__seek_rest(seek);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (uint64_t i = 0; i < ALL; i++) {
        if (found(seek, i) == 0)
            put(seek, i, 1);
        CHECK(found(seek, i) > 0);
    }
    hr__seek_unref(seek);
}

#define SAVES 40

static void save_some(const char *path, uint64_t first)
{
    for (uint64_t i = 0; i < SAVES; i++) {
        struct hr_seek *seek = create(path, 1 << 20);

        put(seek, first + i, 1);
        hr__seek_unref(seek);
    }
}

/* Processes save at once and one is killed: the file is intact at any time. A save may
 * lose what others have written since it read the file, but not its own entry. */
TEST(processes_save_at_once)
{
    const char *path = path_of("processes.index");
    struct hr_seek *seek;
    pid_t children[3];
    int status, there = 0;
    uint32_t last;

    for (int i = 0; i < 3; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            save_some(path, (uint64_t)i * 1000);
            _exit(0);
        }
        CHECK(children[i] > 0);
    }
    save_some(path, 5000);
    kill(children[0], SIGKILL);
    for (int i = 0; i < 3; i++)
        CHECK(waitpid(children[i], &status, 0) == children[i]);
    seek = create(path, 0);
    CHECK(!stats_of(seek).damaged);
    for (uint64_t i = 0; i < 6000; i++)
        there += found(seek, i) == 1;
    last = found(seek, 1000 + SAVES - 1) + found(seek, 2000 + SAVES - 1) +
           found(seek, 5000 + SAVES - 1);
    for (uint64_t i = 0; i < SAVES; i++) /* of the one that was killed */
        last += found(seek, i);
    CHECK(last >= 1);
    CHECK_EQ_INT(there, stats_of(seek).entries);
    hr__seek_unref(seek);
}
