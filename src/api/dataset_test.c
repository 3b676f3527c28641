/*
 * api/dataset_test.c - synthetic data sets, index, digest, PNG.
 */
#include "api/synth_picture.h"
#include "core/alloc.h"
#include "core/file.h"
#include "headrace/dataset.h"
#include "tests/support/check.h"

#include <sys/stat.h>
#include <unistd.h>

static char *read_all(const char *path, size_t *ret_bytes)
{
    char *data = NULL;

    CHECK_OK(hr__file_read(path, 1 << 24, &data, ret_bytes, NULL));
    return data;
}

static const char *in_temp(char *path, size_t room, const char *name)
{
    snprintf(path, room, "%s/%s", check_temp_dir(), name);
    return path;
}

TEST(photos_depend_on_seed_and_number_only)
{
    struct hr_synth_photos few = {
        .seed = 3, .count = 4, .classes = 2, .width = 64, .height = 48, .vary = true};
    struct hr_synth_photos many = few;
    char a[512], b[512], path[600];
    char *one, *two;
    size_t one_bytes, two_bytes;

    many.count = 7;
    CHECK_OK(hr_synth_photos(in_temp(a, sizeof a, "few"), &few, NULL, NULL, NULL));
    CHECK_OK(hr_synth_photos(in_temp(b, sizeof b, "many"), &many, NULL, NULL, NULL));
    snprintf(path, sizeof path, "%s/boat/photo_00000003.jpg", a);
    one = read_all(path, &one_bytes);
    snprintf(path, sizeof path, "%s/boat/photo_00000003.jpg", b);
    two = read_all(path, &two_bytes);
    CHECK_EQ_INT(one_bytes, two_bytes);
    CHECK_BYTES(one, two, one_bytes);
    hr__free(one);
    hr__free(two);
}

TEST(folders_are_called_after_what_stands_in_front_in_the_order_of_classes)
{
    struct hr_synth_front front, before;

    hr__synth_front(0, 10, &front);
    CHECK_EQ_STR(front.name, "balloon");
    hr__synth_front(9, 10, &front);
    CHECK_EQ_STR(front.name, "tree");
    hr__synth_front(19, 20, &front);
    CHECK_EQ_STR(front.name, "tree_2");
    hr__synth_front(0, 1000, &front);
    CHECK_EQ_STR(front.name, "balloon_001");
    for (int classes = 1; classes < 300; classes += 7) {
        for (int i = 0; i < classes; i++) {
            hr__synth_front(i, classes, &front);
            CHECK(i == 0 || strcmp(before.name, front.name) < 0);
            CHECK(i == 0 || before.thing != front.thing || before.hue < front.hue);
            before = front;
        }
    }
}

TEST(a_photo_has_about_half_a_byte_a_pixel)
{
    struct hr_synth_photos what = {.seed = 1, .count = 40, .classes = 1, .vary = false};
    char dir[512], path[600];
    uint64_t bytes = 0;
    struct stat info;

    CHECK_OK(hr_synth_photos(in_temp(dir, sizeof dir, "half"), &what, NULL, NULL, NULL));
    for (int i = 0; i < 40; i++) {
        snprintf(path, sizeof path, "%s/balloon/photo_%08d.jpg", dir, i);
        CHECK(stat(path, &info) == 0);
        bytes += (uint64_t)info.st_size;
    }
    CHECK_NEAR((double)bytes / (40.0 * 500 * 375), 0.5, 0.15);
}

TEST(whole_photos_are_kept_and_truncated_ones_made_again)
{
    struct hr_synth_photos what = {.count = 2, .classes = 1, .width = 32, .height = 32};
    char dir[512], first[600], second[600];
    struct stat before, after, whole;

    CHECK_OK(hr_synth_photos(in_temp(dir, sizeof dir, "kept"), &what, NULL, NULL, NULL));
    snprintf(first, sizeof first, "%s/balloon/photo_00000000.jpg", dir);
    snprintf(second, sizeof second, "%s/balloon/photo_00000001.jpg", dir);
    CHECK(stat(first, &before) == 0 && stat(second, &whole) == 0);
    CHECK(truncate(second, 100) == 0);
    CHECK_OK(hr_synth_photos(dir, &what, NULL, NULL, NULL));
    CHECK(stat(first, &after) == 0);
    CHECK_EQ_INT(after.st_ino, before.st_ino);
    CHECK(stat(second, &after) == 0);
    CHECK_EQ_INT(after.st_size, whole.st_size);
}

TEST(another_set_is_not_mixed_in)
{
    struct hr_synth_photos what = {.count = 1, .classes = 1, .width = 32, .height = 32};
    struct hr_error error = {0};
    char dir[512];

    CHECK_OK(hr_synth_photos(in_temp(dir, sizeof dir, "mix"), &what, NULL, NULL, NULL));
    what.seed = 9;
    CHECK_ERR(HR_ERR_ARGUMENT, hr_synth_photos(dir, &what, NULL, NULL, &error));
    CHECK_HAS(error.message, "different settings");
}

static bool stop_at_two(void *user, uint64_t done, uint64_t all)
{
    (void)user;
    (void)all;
    return done < 2;
}

TEST(the_caller_may_stop_it)
{
    struct hr_synth_photos what = {.count = 9, .classes = 1, .width = 32, .height = 32};
    char dir[512], path[600];

    in_temp(dir, sizeof dir, "stop");
    CHECK_ERR(HR_ERR_CANCELLED, hr_synth_photos(dir, &what, stop_at_two, NULL, NULL));
    snprintf(path, sizeof path, "%s/balloon/photo_00000001.jpg", dir);
    CHECK(access(path, F_OK) == 0);
    snprintf(path, sizeof path, "%s/balloon/photo_00000002.jpg", dir);
    CHECK(access(path, F_OK) != 0);
}

TEST(an_index_counts_files_and_is_updated)
{
    struct hr_index_result result;
    char dir[512], path[512], more[600];

    in_temp(dir, sizeof dir, "names");
    in_temp(path, sizeof path, "names.index");
    CHECK_OK(hr_synth_names(dir, 1000, 10, NULL, NULL, NULL));
    CHECK_OK(hr_index_write(dir, path, &result, NULL));
    CHECK_EQ_INT(result.files, 1000);
    CHECK_EQ_INT(result.classes, 10);
    CHECK(result.bytes > 0);
    snprintf(more, sizeof more, "%s/n00000003/zz.jpg", dir);
    CHECK_OK(hr__file_replace(more, "", 0, NULL));
    CHECK_OK(hr_index_write(dir, path, &result, NULL));
    CHECK_EQ_INT(result.files, 1001);
}

TEST(an_index_of_nothing_names_the_folder)
{
    struct hr_index_result result;
    struct hr_error error = {0};
    char path[512];

    CHECK(hr_index_write("/nowhere/at/all", in_temp(path, sizeof path, "x"), &result,
                         &error) != HR_OK);
    CHECK_HAS(error.message, "/nowhere/at/all");
    CHECK(access(path, F_OK) != 0);
}

TEST(a_digest_is_xxh3_128)
{
    struct hr_digest *digest = hr_digest_create();
    char text[33];

    CHECK(digest != NULL);
    hr_digest_text(digest, text);
    CHECK_EQ_STR(text, "99aa06d3014798d86001c324468d497f"); /* of no bytes */
    hr_digest_add(digest, "ab", 2);
    hr_digest_add(digest, "c", 1);
    hr_digest_text(digest, text);
    CHECK_EQ_STR(text, "06b05ab6733a618578af5f94892f3950"); /* of "abc" */
    hr_digest_destroy(digest);
    hr_digest_destroy(NULL);
}

TEST(a_png_appears_whole_or_not_at_all)
{
    uint8_t pixels[12] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 9, 9};
    struct hr_error error = {0};
    char path[512], *data;
    size_t bytes;

    CHECK_OK(hr_png_write(in_temp(path, sizeof path, "x.png"), pixels, 2, 2, 3, NULL));
    data = read_all(path, &bytes);
    CHECK(bytes > 8 && memcmp(data, "\x89PNG", 4) == 0);
    hr__free(data);
    CHECK_ERR(HR_ERR_ARGUMENT, hr_png_write(path, pixels, 2, 2, 2, NULL));
    CHECK(hr_png_write("/nowhere/x.png", pixels, 2, 2, 3, &error) != HR_OK);
    CHECK_HAS(error.message, "/nowhere/x.png");
}

static bool stop_at_ten(void *user, uint64_t done, uint64_t all)
{
    (void)user;
    (void)all;
    return done < 10;
}

TEST(seek_points_are_recorded_for_a_folder_once)
{
    const struct hr_synth_photos what = {.seed = 1, .count = 30, .classes = 2};
    struct hr_index_seek_result first, second;
    struct hr_index_result names;
    struct hr_error error = {0};
    char dir[512], path[512];

    in_temp(dir, sizeof dir, "noted");
    in_temp(path, sizeof path, "noted.index");
    CHECK_OK(hr_synth_photos(dir, &what, NULL, NULL, NULL));
    CHECK_ERR(HR_ERR_CANCELLED,
              hr_index_seek(dir, path, 1, stop_at_ten, NULL, &first, &error));
    CHECK_OK(hr_index_seek(dir, path, 3, NULL, NULL, &first, &error));
    CHECK_EQ_INT(first.files, 30);
    CHECK_EQ_INT(first.photos, 30);
    CHECK(first.bytes > 30 * 100);
    CHECK_OK(hr_index_write(dir, path, &names, NULL));
    CHECK(names.bytes > first.bytes);
    CHECK_OK(hr_index_seek(dir, path, 2, NULL, NULL, &second, &error));
    CHECK_EQ_INT(second.photos, 30);
    CHECK_EQ_INT(second.bytes, first.bytes);
    CHECK_ERR(HR_ERR_ARGUMENT, hr_index_seek(NULL, path, 1, NULL, NULL, NULL, &error));
}
