/*
 * tests/conformance/photos.c - folders of photos for whole-pipeline tests.
 */
#include "tests/conformance/photos.h"

#include <stdlib.h>
#include <unistd.h>

#include "api/synth_picture.h"
#include "headrace/dataset.h"
#include "tests/support/check.h"

#define CLASSES 4

static void make(const char *dir)
{
    const struct hr_synth_photos what = {.seed = 5,
                                         .count = PHOTOS,
                                         .classes = CLASSES,
                                         .width = 150,
                                         .height = 110,
                                         .vary = true};

    CHECK_OK(hr_synth_photos(dir, &what, NULL, NULL, NULL));
}

const char *photos_good(void)
{
    static char dir[512];

    if (dir[0] == '\0') {
        snprintf(dir, sizeof dir, "%s/good", check_temp_dir());
        make(dir);
    }
    return dir;
}

/* Changes the number of the first quantization table to one that does not exist: the size
 * of the photo can be read, its pixels cannot. */
static void break_table(const char *path)
{
    FILE *file = fopen(path, "r+");
    int last = 0, byte;

    CHECK(file != NULL);
    while ((byte = fgetc(file)) != EOF && !(last == 0xFF && byte == 0xDB))
        last = byte;
    CHECK_EQ_INT(byte, 0xDB);
    CHECK_EQ_INT(fseek(file, 2, SEEK_CUR), 0);
    fputc(0x0F, file);
    CHECK_EQ_INT(fclose(file), 0);
}

/* Damages a file: kind 0 truncates it, 1 empties it, 2 replaces it by text, 3 breaks a
 * table. */
static void damage(const char *path, int kind)
{
    FILE *file;

    if (kind % 4 < 2) {
        CHECK_EQ_INT(truncate(path, kind % 4 == 0 ? 1200 : 0), 0);
        return;
    }
    if (kind % 4 == 3) {
        break_table(path);
        return;
    }
    file = fopen(path, "w");
    CHECK(file != NULL);
    fputs("This is a text and no photo, whatever its name says.\n", file);
    CHECK_EQ_INT(fclose(file), 0);
}

const char *photos_broken(int every)
{
    static char dirs[2][512];
    char *dir = dirs[every == 100], path[600];

    if (dir[0] != '\0')
        return dir;
    snprintf(dir, sizeof dirs[0], "%s/broken%d", check_temp_dir(), every);
    make(dir);
    for (int i = 3, kind = 0; i < PHOTOS; i += every, kind++) {
        struct hr_synth_front front;

        hr__synth_front(i % CLASSES, CLASSES, &front);
        snprintf(path, sizeof path, "%s/%s/photo_%08d.jpg", dir, front.name, i);
        damage(path, kind);
    }
    return dir;
}
