/*
 * store/tar_test.c - headers of tar archives, their records, shards and windows.
 */
#include "core/alloc.h"
#include "core/file.h"
#include "core/rng.h"
#include "store/shards.h"
#include "store/store_memory.h"
#include "store/tar.h"
#include "store/window.h"
#include "tests/support/check.h"
#include "tests/support/tar.h"

#include <stdlib.h>

static struct hr_tar_member member;
static struct hr_error error;

static enum hr_err parse(const struct hr_str *text)
{
    size_t need;

    error = (struct hr_error){0};
    return hr__tar_parse(text->text, text->length, &member, &need, &error);
}

/* Sets a header's checksum again. */
static void fix(char *head)
{
    unsigned sum = 0;

    memset(head + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += (unsigned char)head[i];
    snprintf(head + 148, 8, "%06o", sum);
}

/* ---- headers ---- */

TEST(a_header_says_name_and_size)
{
    struct hr_str text;

    hr__str_init(&text);
    tar_member(&text, "a/b.jpg", "hello", 5);
    CHECK_OK(parse(&text));
    CHECK_EQ_STR(member.name, "a/b.jpg");
    CHECK(member.file && member.bytes == 5 && member.data == 512 && member.next == 1024);
    memcpy(text.text + 345, "some/where", 10);
    fix(text.text);
    CHECK_OK(parse(&text));
    CHECK_EQ_STR(member.name, "some/where/a/b.jpg");
    memcpy(text.text + 124, "\200\0\0\0\0\0\0\2\0\0\0\1", 12);
    fix(text.text);
    CHECK_OK(parse(&text));
    CHECK(member.bytes == ((uint64_t)2 << 32) + 1);
    text.text[0]++;
    CHECK_ERR(HR_ERR_FORMAT, parse(&text));
    CHECK_HAS(error.message, "checksum");
    hr__str_finish(&text);
}

TEST(extensions_say_more_than_a_header_can)
{
    static const char pax[] = "20 path=some/long.cls\n";
    char name[301] = {0};
    struct hr_str text;
    size_t need;

    hr__str_init(&text);
    memset(name, 'n', 300);
    tar_header(&text, 'L', "././@LongLink", 301);
    tar_contents(&text, name, 301);
    tar_member(&text, "nnn", "x", 1);
    CHECK_OK(parse(&text));
    CHECK_EQ_STR(member.name, name);
    CHECK(member.data == 3 * 512 && member.next == 4 * 512);
    for (size_t have = 0; have < 3 * 512; have += 100) {
        CHECK_ERR(HR_ERR_RANGE, hr__tar_parse(text.text, have, &member, &need, NULL));
        CHECK(need > have && need <= 3 * 512);
    }
    hr__str_clear(&text);
    tar_header(&text, 'x', "PaxHeaders/x", sizeof pax - 1);
    tar_contents(&text, pax, sizeof pax - 1);
    tar_member(&text, "short", "7", 1);
    CHECK_ERR(HR_ERR_FORMAT, parse(&text)); /* the length is wrong */
    memcpy(text.text + 512, "22 path=some/long.cls\n", 22);
    CHECK_OK(parse(&text));
    CHECK_EQ_STR(member.name, "some/long.cls");
    memcpy(text.text + 512, "22 GNU.sparse.major=1\n", 22);
    CHECK_ERR(HR_ERR_FORMAT, parse(&text));
    CHECK_HAS(error.message, "sparse");
    CHECK(member.next == 4 * 512);
    text.text[0] ^= 1; /* of the extension's header */
    CHECK_ERR(HR_ERR_FORMAT, parse(&text));
    CHECK_HAS(error.message, "checksum");
    CHECK(member.next == 4 * 512);
    text.text[1024] ^= 1; /* of the member's */
    CHECK_ERR(HR_ERR_FORMAT, parse(&text));
    CHECK(member.next == 0);
    text.text[0] ^= 1;
    text.text[1024] ^= 1;
    memcpy(text.text + 512, "22 size=0000000001000\n", 22);
    CHECK_OK(parse(&text));
    CHECK_EQ_INT(member.bytes, 1000);
    hr__str_clear(&text);
    tar_header(&text, 'x', "x", HR_TAR_HEAD_MAX);
    CHECK_ERR(HR_ERR_FORMAT, parse(&text));
    hr__str_finish(&text);
}

static void check_key(const char *name, const char *key, const char *ending)
{
    size_t key_bytes, ending_bytes;

    member.file = true;
    member.name_bytes = strlen(name);
    memcpy(member.name, name, member.name_bytes + 1);
    if (key == NULL) {
        CHECK(!hr__tar_key(&member, &key_bytes, &ending_bytes));
        return;
    }
    CHECK(hr__tar_key(&member, &key_bytes, &ending_bytes));
    CHECK_EQ_INT(key_bytes, strlen(key));
    CHECK_EQ_INT(ending_bytes, strlen(ending));
    CHECK_EQ_STR(name + key_bytes + 1, ending);
}

TEST(a_key_ends_at_the_first_dot_of_the_last_part)
{
    check_key("a.jpg", "a", "jpg");
    check_key("x.y/a.seg.png", "x.y/a", "seg.png");
    check_key("x.y/a", NULL, NULL);
    check_key("README", NULL, NULL);
    check_key(".hidden", NULL, NULL);
    check_key("x/.hidden.txt", NULL, NULL);
    check_key("a.", NULL, NULL);
    check_key("__meta.x__", NULL, NULL);
    check_key("x/__meta.x__", "x/__meta", "x__");
}

/* ---- records ---- */

static const char *put(const char *name, const struct hr_str *text)
{
    static char path[600];

    snprintf(path, sizeof path, "%s/%s", check_temp_dir(), name);
    CHECK_OK(hr__file_replace(path, text->text, text->length, NULL));
    return path;
}

/* Records of two members of different sizes, with a folder and a file without an ending
 * between some. */
static void write_records(struct hr_str *text, int count)
{
    static const char data[2000];
    char name[32];

    for (int i = 0; i < count; i++) {
        if (i % 5 == 1)
            tar_header(text, '5', "folder/", 0);
        snprintf(name, sizeof name, "folder/%04d.bin", i);
        tar_member(text, name, data, (size_t)(i * 97 % 1500));
        if (i % 7 == 2)
            tar_member(text, "README", data, 10);
        snprintf(name, sizeof name, "folder/%04d.cls", i);
        tar_member(text, name, "1", 1);
    }
    tar_end(text);
}

static uint64_t count_of(const char *path)
{
    struct hr_shard_index *index;
    uint64_t count;

    CHECK_OK(hr__shard_index_open(path, ".tar", hr__tar_scan, NULL, NULL, NULL, &index,
                                  &error));
    count = hr__shard_index_count(index);
    hr__shard_index_close(index);
    return count;
}

TEST(members_with_one_key_are_a_record)
{
    const char *uris[2] = {"mem://one.tar", "mem://two.tar"};
    struct hr_shard_index *index;
    struct hr_str text;

    hr__str_init(&text);
    write_records(&text, 30);
    CHECK_OK(hr__memory_put(uris[0], text.text, text.length, NULL));
    CHECK_OK(hr__memory_put(uris[1], text.text, text.length, NULL));
    CHECK_OK(hr__shard_index_open("mem://{one,two}.tar", ".tar", hr__tar_scan, NULL, NULL,
                                  NULL, &index, &error));
    CHECK_EQ_INT(hr__shard_index_count(index), 60);
    for (uint64_t i = 0; i < 60; i++) {
        struct hr_shard_place place;
        size_t need;

        hr__shard_index_place(index, i, &place);
        CHECK_EQ_STR(place.uri, uris[i / 30]);
        CHECK(place.offset + place.bytes <= text.length && place.bytes >= 1025);
        CHECK_OK(
            hr__tar_parse(text.text + place.offset, place.bytes, &member, &need, NULL));
        CHECK_EQ_INT(atoi(member.name + 7), i % 30);
        CHECK_EQ_INT(member.bytes, i % 30 * 97 % 1500);
    }
    hr__shard_index_close(index);
    hr__str_finish(&text);
}

TEST(a_damaged_header_costs_the_records_that_it_lies_in)
{
    struct hr_str text;
    struct hr_rng rng;
    uint64_t count;

    hr__str_init(&text);
    hr__rng_init(&rng, check_seed(), 0, 1);
    write_records(&text, 40);
    for (size_t at = 0; at < text.length - 1024; at += 512) {
        size_t byte = at + hr__rng_below(&rng, 512), need;
        char was = text.text[byte];
        bool header = hr__tar_parse(text.text + at, 512, &member, &need, NULL) == HR_OK;

        text.text[byte] = (char)(was ^ (1 << hr__rng_below(&rng, 7)));
        count = count_of(put("damaged.tar", &text));
        if (count < 39 || count > 42 || (!header && count != 40))
            check_failed(__FILE__, __LINE__, "byte %zu: %llu records", byte,
                         (unsigned long long)count);
        text.text[byte] = was;
    }
    hr__str_finish(&text);
}

TEST(an_archive_may_lack_its_end)
{
    struct hr_str text;
    size_t whole;

    hr__str_init(&text);
    write_records(&text, 20);
    whole = text.length;
    for (size_t cut = 0; cut <= 4096; cut += 256) {
        text.length = whole - cut;
        CHECK(count_of(put("cut.tar", &text)) >= (cut <= 1024 ? 20 : 17));
    }
    text.length = whole - 512; /* one block of zeros, then more members */
    tar_member(&text, "folder/9999.bin", "x", 1);
    tar_end(&text);
    CHECK_EQ_INT(count_of(put("lone.tar", &text)), 21);
    hr__str_finish(&text);
}

static void check_refused(const char *name, const struct hr_str *text, enum hr_err code,
                          const char *part)
{
    const char *path = put(name, text);
    struct hr_shard_index *index;

    error = (struct hr_error){0};
    CHECK_ERR(code, hr__shard_index_open(path, ".tar", hr__tar_scan, NULL, NULL, NULL,
                                         &index, &error));
    CHECK_HAS(error.message, part);
    CHECK_HAS(error.message, name);
}

TEST(what_is_no_archive_is_refused)
{
    struct hr_str text;

    hr__str_init(&text);
    hr__str_add_bytes(&text, "\x1f\x8b\x08\0\0\0\0\0", 8);
    check_refused("x.tar.gz", &text, HR_ERR_UNSUPPORTED, "unpack it");
    hr__str_clear(&text);
    for (int i = 0; i < 1000; i++)
        hr__str_add(&text, "a page of text\n");
    check_refused("x.txt", &text, HR_ERR_FORMAT, "no tar archive");
    text.length = 3;
    check_refused("y.txt", &text, HR_ERR_FORMAT, "too short");
    text.length = 0;
    CHECK_EQ_INT(count_of(put("empty.tar", &text)), 0);
    hr__str_finish(&text);
}

/* ---- shards ---- */

static struct hr_shards shards;

static enum hr_err find(const char *pattern)
{
    char path[700];

    hr__shards_finish(&shards);
    error = (struct hr_error){0};
    snprintf(path, sizeof path, "%s/%s", check_temp_dir(), pattern);
    return hr__shards_find(path, ".tar", false, &shards, &error);
}

static void check_shard(size_t at, const char *name)
{
    const char *path = shards.uris[at];

    CHECK_EQ_STR(path + strlen(path) - strlen(name), name);
}

TEST(braces_and_stars_name_shards)
{
    struct hr_str text;
    char name[32];

    hr__str_init(&text);
    for (int i = 8; i < 12; i++) {
        snprintf(name, sizeof name, "s-%03d.tar", i);
        put(name, &text);
    }
    put("t.tar", &text);
    put("odd{1}.tar", &text);
    CHECK_OK(find("s-{008..011}.tar"));
    CHECK_EQ_INT(shards.count, 4);
    check_shard(0, "/s-008.tar");
    check_shard(3, "/s-011.tar");
    CHECK_OK(find("{t,s-010}.tar"));
    CHECK_EQ_INT(shards.count, 2);
    check_shard(0, "/t.tar");
    CHECK_OK(find("s-*.tar"));
    CHECK_EQ_INT(error.code, HR_OK); /* that it is no file is no error */
    CHECK_EQ_INT(shards.count, 4);
    CHECK_OK(find("odd{1}.tar")); /* a file of this name */
    CHECK_EQ_INT(shards.count, 1);
    CHECK_ERR(HR_ERR_NOT_FOUND, find("s-{007..011}.tar"));
    CHECK_HAS(error.message, "s-007.tar");
    CHECK_ERR(HR_ERR_ARGUMENT, find("s-{011..008}.tar"));
    CHECK_HAS(error.message, "{011..008}");
    CHECK_ERR(HR_ERR_ARGUMENT, find("s-{8..}.tar"));
    CHECK_ERR(HR_ERR_ARGUMENT, find("s-{8.tar"));
    hr__shards_finish(&shards);
    hr__str_finish(&text);
}

/* ---- windows ---- */

TEST(a_window_gives_the_bytes_of_the_object)
{
    size_t bytes = 3 * HR_WINDOW_MAX + 777;
    struct hr_window window = {0};
    unsigned char *all = hr__malloc(bytes);
    struct hr_rng rng;
    const void *data;

    CHECK(all != NULL);
    hr__rng_init(&rng, check_seed(), 0, 2);
    for (size_t i = 0; i < bytes; i++)
        all[i] = (unsigned char)hr__rng_u32(&rng);
    CHECK_OK(hr__memory_put("mem://window", all, bytes, NULL));
    CHECK_OK(hr__window_open(&window, "mem://window", &error));
    for (int i = 0; i < 5000; i++) {
        size_t want = hr__rng_below(&rng, i % 100 == 0 ? 2 * HR_WINDOW_MAX : 3000);
        size_t at = i % 3 == 0 ? hr__rng_below(&rng, bytes - want + 1)
                               : (size_t)window.at + hr__rng_below(&rng, 9000);

        if (at > bytes || want > bytes - at) {
            CHECK_ERR(HR_ERR_RANGE, hr__window_get(&window, at, want, &data, &error));
            continue;
        }
        CHECK_OK(hr__window_get(&window, at, want, &data, &error));
        CHECK_BYTES(data, all + at, want);
    }
    CHECK_ERR(HR_ERR_NOT_FOUND, hr__window_open(&window, "mem://no such thing", NULL));
    CHECK_OK(hr__window_open(&window, "mem://window", &error));
    hr__window_finish(&window);
    hr__free(all);
}
