/*
 * store/shard_saved_test.c - saved indexes of shards: what is scanned again, damage,
 * lies, and failures. Shards are files of lines or CSV, with a scan that counts its
 * calls.
 */
#include "store/shard_internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/rng.h"
#include "core/str.h"
#include "store/csv_scan.h"
#include "store/lines.h"
#include "store/store_memory.h"
#include "tests/support/check.h"

#define SHARDS 5
#define LINES 2500 /* more than two marks of lines */

static char folder[512], pattern[600], saved[600];
static struct hr_error error;
static int scans;

static enum hr_err count_scan(struct hr_shard_scan *scan)
{
    scans++;
    return hr__lines_scan(scan);
}

static const char *shard_path(int at)
{
    static char path[700];

    snprintf(path, sizeof path, "%s/%d.txt", folder, at);
    return path;
}

/* Long ago, so that the identity lasts; each version has its own time. */
static void set_time(const char *path, int version)
{
    const struct timespec times[2] = {{.tv_sec = 1000 + version},
                                      {.tv_sec = 1000 + version}};

    CHECK_EQ_INT(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void write_shard(int at, int version)
{
    struct hr_str text;

    hr__str_init(&text);
    for (int i = 0; i < LINES + at; i++)
        hr__str_addf(&text, "%d.%d line %d\n%s", at, version, i, i % 7 == 3 ? "\n" : "");
    CHECK_OK(hr__file_replace(shard_path(at), text.text, text.length, NULL));
    hr__str_finish(&text);
    set_time(shard_path(at), version);
}

static void begin(const char *name)
{
    snprintf(folder, sizeof folder, "%s/%s", check_temp_dir(), name);
    CHECK_OK(hr__file_make_folder(folder, 0700, NULL));
    snprintf(pattern, sizeof pattern, "%s/*.txt", folder);
    snprintf(saved, sizeof saved, "%s/saved.index", folder);
    for (int i = 0; i < SHARDS; i++)
        write_shard(i, 0);
}

static struct hr_shard_index *open_as(const char *format, const char *path)
{
    struct hr_lines_scan scan = {.skip = HR_LINES_SKIP_EMPTY};
    const struct hr_shard_saving saving = {.format = format, .path = path};
    struct hr_shard_index *index = NULL;

    scans = 0;
    CHECK_OK(hr__shard_index_open(pattern, ".txt", count_scan, &scan, NULL, &saving,
                                  &index, &error));
    return index;
}

/* All shards are scanned. */
static struct hr_shard_index *reference(void)
{
    struct hr_shard_index *index = open_as("lines", "/dev/null/no");

    CHECK_EQ_INT(hr__shard_index_kept(index), 0);
    return index;
}

static void check_same(const struct hr_shard_index *a, const struct hr_shard_index *b)
{
    CHECK(hr__hash_equal(hr__shard_index_identity(a), hr__shard_index_identity(b)));
    CHECK_EQ_INT(hr__shard_index_count(a), hr__shard_index_count(b));
    for (uint64_t i = 0; i < hr__shard_index_count(a); i++) {
        struct hr_shard_place x, y;
        uint64_t at[2], line[2];

        hr__shard_index_place(a, i, &x);
        hr__shard_index_place(b, i, &y);
        hr__shard_index_line(a, i, &at[0], &line[0]);
        hr__shard_index_line(b, i, &at[1], &line[1]);
        CHECK_EQ_STR(x.uri, y.uri);
        CHECK(x.offset == y.offset && x.bytes == y.bytes);
        CHECK(at[0] == at[1] && line[0] == line[1]);
        CHECK(hr__hash_equal(x.identity, y.identity));
    }
}

/* Opens with the saved index, and compares with an index that is not saved. */
static void check_open(int expected_scans)
{
    struct hr_shard_index *index = open_as("lines", saved), *other;

    CHECK_EQ_INT(scans, expected_scans);
    CHECK_EQ_INT(hr__shard_index_kept(index), index->shard_count - (size_t)scans);
    other = reference();
    check_same(index, other);
    hr__shard_index_close(index);
    hr__shard_index_close(other);
}

TEST(only_shards_that_changed_are_scanned_again)
{
    begin("changed");
    check_open(SHARDS);
    check_open(0);
    write_shard(2, 1); /* of the same size */
    check_open(1);
    check_open(0);
    write_shard(SHARDS, 0);
    write_shard(SHARDS + 1, 0);
    check_open(2);
    CHECK_EQ_INT(unlink(shard_path(0)), 0);
    check_open(0);
    check_open(0);
}

TEST(a_file_that_may_change_unnoticed_is_not_saved)
{
    begin("young");
    CHECK_EQ_INT(utimensat(AT_FDCWD, shard_path(1), NULL, 0), 0); /* now */
    check_open(SHARDS);
    check_open(1);
    set_time(shard_path(1), 3);
    check_open(1);
    check_open(0);
}

TEST(another_format_does_not_use_it)
{
    begin("formats");
    check_open(SHARDS);
    hr__shard_index_close(open_as("other", saved));
    CHECK_EQ_INT(scans, SHARDS);
    check_open(SHARDS);
}

TEST(memory_is_not_saved)
{
    begin("memory");
    CHECK_OK(hr__memory_put("mem://saved/1.txt", "a\nb\n", 4, NULL));
    snprintf(pattern, sizeof pattern, "mem://saved/1.txt");
    check_open(1);
    check_open(1);
    CHECK(access(saved, F_OK) != 0);
}

TEST(a_shard_that_comes_twice_is_saved_once)
{
    begin("twice");
    snprintf(pattern, sizeof pattern, "%s/{1,0,1}.txt", folder);
    check_open(3);
    check_open(0);
}

TEST(records_that_are_large_or_far_are_saved_too)
{
    static const char line[] = "far\nlast";
    const off_t far = ((off_t)1 << 40) + 12345;
    struct hr_shard_index *index;
    struct hr_shard_place place;
    int fd;

    begin("large");
    snprintf(pattern, sizeof pattern, "%s/{0,large,1}.txt", folder);
    /* a sparse file, which no scan can read through in a test: what a scan would find is
     * put into the index by hand */
    fd = open(shard_path(9), O_CREAT | O_WRONLY, 0600);
    CHECK(fd >= 0 && pwrite(fd, line, sizeof line - 1, far) == sizeof line - 1);
    close(fd);
    set_time(shard_path(9), 0);
    snprintf(pattern, sizeof pattern, "%s/9.txt", folder);
    {
        struct hr_hash128 format = hr__hash128("lines", 5), words[3] = {
                                                                {0, 0}
        };
        struct hr_shard shard = {.uri = pattern, .lasting = true};
        uint64_t records[2] = {HR_SHARD_IS_LARGE,
                               1 << HR_SHARD_LENGTH_BITS | HR_SHARD_IS_LARGE},
                 mark = 7;
        struct hr_shard_extent large[2] = {
            {0,                 (uint64_t)far + 4},
            {(uint64_t)far + 4, 4                }
        };
        struct hr_shard_index made = {.shards = &shard, .shard_count = 1, .count = 2};
        struct hr_object object;

        CHECK_OK(hr__store_open(pattern, &object, NULL));
        shard.bytes = object.bytes;
        words[0] = object.identity;
        words[1] = hr__hash128(pattern, strlen(pattern));
        shard.key = hr__hash128(words, sizeof words);
        hr__store_close(&object);
        made.records = records;
        made.large = large;
        made.large_count = 2;
        made.lines = &mark;
        CHECK_OK(hr__shard_section_write(saved, format, &made, NULL));
    }
    index = open_as("lines", saved);
    CHECK_EQ_INT(scans, 0);
    hr__shard_index_place(index, 0, &place);
    CHECK(place.offset == 0 && place.bytes == (uint64_t)far + 4);
    hr__shard_index_place(index, 1, &place);
    CHECK(place.offset == (uint64_t)far + 4 && place.bytes == 4);
    hr__shard_index_close(index);
}

/* ---- CSV ---- */

static uint64_t open_csv(const char *names, char *ret_first)
{
    struct hr_csv_scan scan = {.bytes_max = 1 << 20};
    char text[HR_CSV_FORMAT_BYTES];
    const struct hr_shard_saving saving = {
        .format = text, .path = saved, .look = hr__csv_look};
    struct hr_shard_index *index = NULL;
    uint64_t kept;

    snprintf(pattern, sizeof pattern,
             strchr(names, ',') != NULL ? "%s/{%s}.csv" : "%s/%s.csv", folder, names);
    hr__csv_format(&scan, text);
    CHECK_OK(hr__shard_index_open(pattern, ".csv", hr__csv_scan, &scan, NULL, &saving,
                                  &index, &error));
    kept = hr__shard_index_kept(index);
    snprintf(ret_first, 32, "%s %llu %zu", scan.has_header ? scan.names[0] : "-",
             (unsigned long long)hr__shard_index_count(index), scan.columns);
    hr__shard_index_close(index);
    hr__csv_scan_finish(&scan);
    return kept;
}

static void write_csv(const char *name, const char *text)
{
    char path[700];

    snprintf(path, sizeof path, "%s/%s.csv", folder, name);
    CHECK_OK(hr__file_replace(path, text, strlen(text), NULL));
    set_time(path, 0);
}

/* Whether a file has a header follows from the first, so that a file's records follow
 * from those before it. */
TEST(the_header_of_csv_is_read_again)
{
    char found[32];

    begin("csv");
    write_csv("a", "\nname,n\nx,1\ny,2\n");
    write_csv("b", "name,n\nz,3\n");
    write_csv("c", "1,2\n3,4\n");
    CHECK_EQ_INT(open_csv("a,b", found), 0);
    CHECK_EQ_STR(found, "name 3 2");
    CHECK_EQ_INT(open_csv("a,b", found), 2);
    CHECK_EQ_STR(found, "name 3 2");
    CHECK_EQ_INT(open_csv("c,b", found), 0); /* no header: "name,n" is a record */
    CHECK_EQ_STR(found, "- 4 2");
    CHECK_EQ_INT(open_csv("c,b", found), 2);
    CHECK_EQ_STR(found, "- 4 2");
    CHECK_EQ_INT(open_csv("b", found), 0);
    CHECK_EQ_STR(found, "name 1 2");
}

/* ---- the cache folder ---- */

static int files_in_cache(void)
{
    char command[700];
    FILE *out;
    int count = -1;

    snprintf(command, sizeof command, "ls %s/cache/indexes 2>/dev/null | wc -l", folder);
    out = popen(command, "r");
    CHECK(out != NULL && fscanf(out, "%d", &count) == 1);
    pclose(out);
    return count;
}

static int open_cached(void)
{
    hr__shard_index_close(open_as("lines", NULL));
    return scans;
}

TEST(the_cache_folder_has_the_indexes_of_large_data_sets)
{
    char cache[600];

    begin("cached");
    snprintf(cache, sizeof cache, "%s/cache", folder);
    setenv("HEADRACE_CACHE", cache, 1);
    CHECK_EQ_INT(open_cached(), SHARDS);
    CHECK_EQ_INT(open_cached(), SHARDS);
    CHECK_EQ_INT(files_in_cache(), 0);
    CHECK_EQ_INT(truncate(shard_path(1), (off_t)HR_SHARDS_SAVED_FROM), 0); /* zeros */
    set_time(shard_path(1), 1);
    CHECK_EQ_INT(open_cached(), SHARDS);
    CHECK_EQ_INT(open_cached(), 0);
    CHECK_EQ_INT(files_in_cache(), 1);
    setenv("HEADRACE_CACHE", "", 1);
    CHECK_EQ_INT(open_cached(), SHARDS);
    setenv("HEADRACE_CACHE", "/dev/null/no", 1);
    CHECK_EQ_INT(open_cached(), SHARDS);
    unsetenv("HEADRACE_CACHE");
}

/* ---- damage ---- */

static char *read_saved(size_t *ret_bytes)
{
    char *data = NULL, *aligned;

    CHECK_OK(hr__file_read(saved, 1 << 24, &data, ret_bytes, NULL));
    aligned = hr__aligned_alloc(64, *ret_bytes + 1);
    memcpy(aligned, data, *ret_bytes);
    hr__free(data);
    return aligned;
}

/* A byte changed anywhere costs a scan, or nothing. */
TEST(damage_costs_a_scan_and_nothing_else)
{
    struct hr_rng rng;
    size_t bytes;
    char *whole;

    begin("damage");
    hr__rng_init(&rng, check_seed(), 0, 1);
    check_open(SHARDS);
    whole = read_saved(&bytes);
    for (int i = 0; i < 60; i++) {
        size_t at = hr__rng_below(&rng, i % 2 == 0 ? bytes : 600), cut = bytes;
        struct hr_shard_index *index, *other = reference();

        if (i % 10 == 9)
            cut = at;
        whole[at] ^= (char)(1 + hr__rng_below(&rng, 255));
        CHECK_OK(hr__file_replace(saved, whole, cut, NULL));
        index = open_as("lines", saved);
        check_same(index, other);
        hr__shard_index_close(index);
        hr__shard_index_close(other);
        hr__free(whole);
        check_open(0); /* it was written anew, or the damage lay in padding */
        whole = read_saved(&bytes);
    }
    hr__free(whole);
}

/* Checksums that are right do not make an offset right. */
TEST(a_record_outside_its_shard_is_not_believed)
{
    struct hr_hash128 format = hr__hash128("lines", 5);
    struct hr_shard_section section;
    struct hr_shard_index *index;
    uint64_t good;

    begin("outside");
    index = open_as("lines", saved);
    for (int i = 0; i < 4; i++) {
        uint64_t *record = &index->records[i < 2 ? 0 : index->shards[3].first + 7];

        good = *record;
        *record = i == 0   ? 1                                         /* too far */
                  : i == 1 ? good & ~HR_SHARD_IS_LARGE                 /* no bytes */
                  : i == 2 ? good | HR_SHARD_IS_LARGE                  /* not there */
                           : (good | (HR_SHARD_IS_LARGE - 1)) & ~1ull; /* too long */
        if (i == 0)
            *record |= index->shards[0].bytes << HR_SHARD_LENGTH_BITS;
        CHECK_OK(hr__shard_section_write(saved, format, index, NULL));
        *record = good;
        check_open(1);
        check_open(0);
    }
    hr__shard_section_open(saved, format, &section);
    CHECK_EQ_INT(section.count, SHARDS);
    hr__shard_section_close(&section);
    hr__shard_index_close(index);
}

/* ---- failures ---- */

static enum hr_err open_any(const char *path)
{
    struct hr_lines_scan scan = {.skip = HR_LINES_SKIP_EMPTY};
    const struct hr_shard_saving saving = {.format = "lines", .path = path};
    struct hr_shard_index *index = NULL;
    enum hr_err code = hr__shard_index_open(pattern, ".txt", count_scan, &scan, NULL,
                                            &saving, &index, &error);

    if (code == HR_OK)
        hr__shard_index_close(index);
    return code;
}

TEST(whatever_fails_leaves_a_saved_index_that_can_be_used)
{
    begin("torture");
    for (unsigned kinds = HR_FAULT_ALLOC; kinds <= HR_FAULT_WRITE; kinds *= 2)
        for (uint64_t nth = 1;; nth++) {
            enum hr_err code;
            uint64_t calls;

            write_shard((int)(nth % SHARDS), (int)nth);
            hr__fault_arm(kinds, nth);
            code = open_any(saved);
            calls = hr__fault_calls();
            hr__fault_arm(0, 0);
            CHECK(code == HR_OK || code == HR_ERR_MEMORY || code == HR_ERR_IO);
            CHECK_OK(open_any(saved));
            if (calls < nth)
                break;
        }
    check_open(0);
}

/* ---- compressed shards ---- */

static struct hr_shard_index *open_packed(const char *path, uint64_t bytes_max)
{
    struct hr_lines_scan scan = {.skip = HR_LINES_SKIP_EMPTY};
    const struct hr_packed_limits limits = {
        .bytes_max = bytes_max, .ratio_max = 1000, .cache_bytes = 8 << 20};
    const struct hr_shard_saving saving = {.format = "packed lines", .path = path};
    struct hr_shard_index *index = NULL;

    scans = 0;
    if (hr__shard_index_open(pattern, ".txt", count_scan, &scan, &limits, &saving, &index,
                             &error) != HR_OK)
        return NULL;
    return index;
}

/* A shard of about 4 MiB of lines, so that it has marks, by gzip. */
static void pack_shard(int at, int version)
{
    char path[700];
    struct hr_rng rng;
    gzFile file;

    snprintf(path, sizeof path, "%s/%d.txt.gz", folder, at);
    hr__rng_init(&rng, check_seed(), (uint32_t)version, (uint64_t)at);
    file = gzopen(path, "wb1");
    CHECK(file != NULL);
    for (int i = 0; i < 100000; i++)
        CHECK(gzprintf(file, "%d %d %016llx %016llx\n", at, i,
                       (unsigned long long)hr__rng_below(&rng, UINT64_MAX),
                       (unsigned long long)i) > 0);
    CHECK_EQ_INT(gzclose(file), Z_OK);
    set_time(path, version);
}

static void check_records(const struct hr_shard_index *a, const struct hr_shard_index *b)
{
    char x[200], y[200];
    struct hr_rng rng;

    check_same(a, b);
    hr__rng_init(&rng, check_seed(), 7, 7);
    for (int i = 0; i < 300; i++) {
        uint64_t at = hr__rng_below(&rng, hr__shard_index_count(a));
        struct hr_shard_place p, q;
        bool waited;

        hr__shard_index_place(a, at, &p);
        hr__shard_index_place(b, at, &q);
        CHECK(p.packed && q.packed && p.bytes <= sizeof x);
        CHECK_OK(hr__store_read(p.object, p.offset, x, (size_t)p.bytes, NULL, &waited,
                                &error));
        CHECK_OK(hr__store_read(q.object, q.offset, y, (size_t)p.bytes, NULL, &waited,
                                &error));
        CHECK(memcmp(x, y, (size_t)p.bytes) == 0);
    }
}

TEST(compressed_shards_are_not_decoded_again)
{
    struct hr_shard_index *first, *second;

    begin("packed");
    snprintf(pattern, sizeof pattern, "%s/*.txt.gz", folder);
    for (int i = 0; i < 3; i++)
        pack_shard(i, 1);
    first = open_packed(saved, 1 << 30);
    CHECK(first != NULL);
    CHECK_EQ_INT(scans, 3);
    second = open_packed(saved, 1 << 30);
    CHECK(second != NULL);
    CHECK_EQ_INT(scans, 0);
    CHECK_EQ_INT(hr__shard_index_kept(second), 3);
    CHECK(hr__packed_entries(second->shards[1].packed) > 2);
    check_records(first, second);
    hr__shard_index_close(second);
    pack_shard(1, 2);
    second = open_packed(saved, 1 << 30);
    CHECK(second != NULL);
    CHECK_EQ_INT(scans, 1);
    hr__shard_index_close(second);
    CHECK(open_packed(saved, 1000) == NULL); /* limits hold for what is known, too */
    CHECK_HAS(error.message, "unpacked_max");
    hr__shard_index_close(first);
}
