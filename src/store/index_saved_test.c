/*
 * store/index_saved_test.c - saved indexes: which folders are read again, and damage.
 */
#include "core/alloc.h"
#include "core/hash.h"
#include "store/index_parts.h"
#include "store/index_test_util.h"

/* Opens with the saved index; the result must be that of a fresh walk. */
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

TEST(dangling_links_are_checked_each_time)
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

/* Flips one byte at a time: the damage is found, and the result is correct anyway. */
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

/* Writes sections 1 to 5 of the saved index with correct checksums. */
static void rewrite(const char *whole)
{
    const struct hr_index_section *sections;
    struct hr_index_piece pieces[5];
    struct hr_index_part parts[5];
    uint32_t count;
    uint64_t bytes;

    memcpy(&bytes, whole + 16, sizeof bytes);
    CHECK_OK(hr__index_parts_check(whole, bytes, &sections, &count, NULL));
    CHECK_EQ_INT(count, 5);
    for (int i = 0; i < 5; i++) {
        pieces[i] = (struct hr_index_piece){whole + sections[i].at, sections[i].bytes};
        parts[i] = (struct hr_index_part){sections[i].kind, &pieces[i], 1};
    }
    CHECK_OK(hr__index_parts_write(saved_path, parts, 5, NULL));
}

/* False counts and offsets with correct checksums: the folders are read instead. */
TEST(false_offsets_with_correct_checksums_are_not_used)
{
    const struct hr_index_section *sections;
    static const struct {
        int section;
        size_t at;
        uint64_t value;
        size_t bytes;
    } lies[] = {
        {0, 32,      3,                 8}, /* files in all */
        {1, 16,      UINT64_MAX - 3,    8}, /* root: offsets; it has no files */
        {1, 64 + 16, UINT64_MAX / 4,    8}, /* g0: offsets */
        {1, 64 + 24, UINT64_MAX - 1023, 8}, /* names */
        {1, 64 + 32, UINT32_MAX,        4}, /* bytes of names */
        {1, 64 + 36, UINT32_MAX,        4}, /* files */
        {1, 64 + 40, UINT32_MAX,        4}, /* parent */
        {1, 64 + 44, UINT32_MAX,        4}, /* its name */
        {1, 64 + 48, UINT16_MAX,        2}, /* bytes of its name */
        {1, 64 + 50, UINT16_MAX,        2}, /* prefix */
        {1, 64 + 52, UINT16_MAX,        2}, /* suffix */
        {3, 0,       UINT32_MAX,        4}, /* offsets */
        {3, 4,       0,                 4},
    };
    char *whole;
    size_t bytes;
    uint32_t count;

    begin_saved("lies");
    (void)reopen(true);
    CHECK_OK(hr__file_read(saved_path, 1 << 20, &whole, &bytes, NULL));
    CHECK_OK(hr__index_parts_check(whole, bytes, &sections, &count, NULL));
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        char *place = whole + sections[lies[i].section].at + lies[i].at, honest[8];

        memcpy(honest, place, lies[i].bytes);
        memcpy(place, &lies[i].value, lies[i].bytes);
        rewrite(whole);
        memcpy(place, honest, lies[i].bytes);
        CHECK_EQ_INT(reopen(true).saved_damaged, i != 1);
    }
    hr__free(whole);
}

TEST(unknown_sections_are_ignored)
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
    /* A sixth section, in the padding after the table. */
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
