/*
 * tests/robust/broken_test.c - broken inputs, each between two good photos in its own
 * folder: with `fail` the message names file, node and op; with `skip` the record is
 * counted and written to the ledger; with `substitute` another takes its place. Never a
 * crash, a hang or a leak.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/image.h"
#include "core/alloc.h"
#include "core/doc.h"
#include "core/file.h"
#include "kernel/pixels.h"
#include "tests/support/check.h"
#include "tests/support/outcome.h"

#define WIDTH 60
#define HEIGHT 44

struct bytes {
    uint8_t data[1 << 16];
    size_t count;
};

/* ---- files ---- */

static struct bytes encoded(bool png)
{
    static uint8_t levels[HEIGHT * WIDTH * 3];
    struct hr_pixels pixels = hr__pixels_u8(levels, WIDTH, HEIGHT, 3);
    const struct hr_jpeg_options options = {
        .quality = 85, .sampling_x = 2, .sampling_y = 2};
    struct bytes bytes;
    void *data;

    for (int i = 0; i < HEIGHT * WIDTH * 3; i++)
        levels[i] = (uint8_t)(i * 7 + i / WIDTH * 3 + i * i % 31);
    if (png)
        CHECK_OK(hr__image_encode_png(&pixels, &data, &bytes.count, NULL));
    else
        CHECK_OK(hr__image_encode_jpeg(&pixels, &options, &data, &bytes.count, NULL));
    CHECK(bytes.count <= sizeof bytes.data);
    memcpy(bytes.data, data, bytes.count);
    hr__free(data);
    return bytes;
}

static void write_bytes(const char *path, const void *data, size_t count)
{
    FILE *file = fopen(path, "w");

    CHECK(file != NULL);
    CHECK_EQ_INT(fwrite(data, 1, count, file), count);
    CHECK_EQ_INT(fclose(file), 0);
}

/* A folder with a good photo first and last; a file "m" sorts between them. */
static const char *folder(void)
{
    static char dir[600];
    static int number;
    const struct bytes png = encoded(true);
    char path[700];

    snprintf(dir, sizeof dir, "%s/%d", check_temp_dir(), number++);
    CHECK_EQ_INT(mkdir(dir, 0777), 0);
    snprintf(path, sizeof path, "%s/a.png", dir);
    write_bytes(path, png.data, png.count);
    snprintf(path, sizeof path, "%s/z.png", dir);
    write_bytes(path, png.data, png.count);
    return dir;
}

/* ---- runs ---- */

/* A change to a file between opening the graph and its first record. */
typedef void change_file_fn(const char *path);

struct expect {
    const char *node, *text; /* in the error */
};

static struct outcome_job job_of(const char *dir)
{
    static const char text[] = "headrace: 1\n"
                               "params:\n"
                               "  data: {type: path}\n"
                               "pipeline:\n"
                               "  - source.files: {path: \"${data}\"}\n"
                               "    name: photos\n"
                               "  - image.decode: {}\n"
                               "    name: pixels\n"
                               "  - image.resize: {size: [20, 24]}\n"
                               "  - batch.stack: {size: 8}\n";
    struct outcome_job job = outcome_job_text(text);

    job.params[job.param_count++] = (struct hr_graph_param){"data", dir};
    return job;
}

static void check_fail(struct outcome_job job, const char *name, struct expect want)
{
    struct outcome *o;

    for (int i = 0; i < 4; i++) {
        outcome_job_threads(&job, i % 2 * 2);
        job.options.fuse = i < 2;
        o = outcome_run(&job);
        CHECK(o->code != HR_ERR_END && o->code != HR_OK);
        CHECK_EQ_INT(o->batches, 0);
        CHECK_HAS(o->error.message, want.text);
        CHECK_HAS(o->error.message, want.node);
        CHECK_HAS(o->error.message, name);
        CHECK_EQ_STR(o->error.node, want.node);
        CHECK(o->error.op[0] != '\0');
        CHECK_HAS(o->error.file, name);
        CHECK_EQ_INT(o->error.record, 2);
        outcome_free(o);
    }
}

static bool is_utf8(const char *text, size_t count)
{
    for (size_t i = 0; i < count;) {
        unsigned char c = (unsigned char)text[i++];
        int more = c < 0x80                ? 0
                   : c >= 0xc2 && c < 0xe0 ? 1
                   : c >= 0xe0 && c < 0xf0 ? 2
                   : c >= 0xf0 && c < 0xf5 ? 3
                                           : -1;

        if (more < 0)
            return false;
        for (; more > 0; more--, i++)
            if (i >= count || ((unsigned char)text[i] & 0xc0) != 0x80)
                return false;
    }
    return true;
}

/* Checks that the ledger has one line, an object that names the file. */
static void check_ledger(const char *path, const struct expect *want, const char *outcome)
{
    struct hr_doc *doc;
    char *text, *end;
    size_t count;

    CHECK_OK(hr__file_read(path, 1 << 20, &text, &count, NULL));
    CHECK(is_utf8(text, count));
    end = strchr(text, '\n');
    CHECK(end != NULL && end[1] == '\0');
    CHECK_OK(hr__doc_parse(text, (size_t)(end - text), "ledger.json", &doc, NULL));
    CHECK_EQ_STR(hr__doc_get_string(doc, "outcome"), outcome);
    CHECK_EQ_STR(hr__doc_get_string(doc, "node"), want->node);
    CHECK_HAS(hr__doc_get_string(doc, "message"), want->text);
    CHECK(hr__doc_get_string(doc, "file")[0] != '\0');
    CHECK_EQ_INT(hr__doc_get(doc, "record")->as.integer, 1);
    hr__doc_destroy(doc);
    hr__free(text);
}

static void check_continues(struct outcome_job job, struct expect want)
{
    static const char *const outcomes[] = {"", "skipped", "substituted"};
    char ledger[700];

    snprintf(ledger, sizeof ledger, "%s/ledger", check_temp_dir());
    job.options.ledger = ledger;
    for (int i = 0; i < 4; i++) {
        enum hr_on_error policy = i % 2 == 0 ? HR_ON_ERROR_SKIP : HR_ON_ERROR_SUBSTITUTE;
        struct outcome *o;

        unlink(ledger);
        job.options.on_error = policy;
        outcome_job_threads(&job, i / 2 * 3);
        o = outcome_run(&job);
        if (o->code != HR_ERR_END)
            check_failed(__FILE__, __LINE__, "%s", o->error.message);
        CHECK_EQ_INT(o->records, policy == HR_ON_ERROR_SKIP ? 2 : 3);
        CHECK_EQ_INT(o->stats.errors, 1);
        CHECK_EQ_INT(o->stats.substituted, policy == HR_ON_ERROR_SUBSTITUTE);
        check_ledger(ledger, &want, outcomes[policy]);
        outcome_free(o);
    }
}

static void
check_broken(const char *name, const void *data, size_t count, struct expect want)
{
    const char *dir = folder();
    char path[800];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    write_bytes(path, data, count);
    check_fail(job_of(dir), name, want);
    check_continues(job_of(dir), want);
}

/* The same for a photo that is still good when the graph is opened. */
static void check_changed_file(change_file_fn *change, struct expect want)
{
    const struct bytes png = encoded(true);
    const char *dir = folder();
    struct outcome_job job = job_of(dir);
    char path[800];

    snprintf(path, sizeof path, "%s/m.png", dir);
    for (int i = 0; i < 6; i++) {
        struct hr_graph *graph;
        struct hr_iter *iter;
        struct hr_batch *batch = NULL;
        struct hr_error error = {0};
        enum hr_err code;

        write_bytes(path, png.data, png.count);
        outcome_job_threads(&job, i % 2 * 2);
        job.options.on_error = (enum hr_on_error)(i / 2);
        graph = outcome_graph(&job, &error);
        CHECK(graph != NULL);
        CHECK_OK(hr_graph_freeze(graph, NULL));
        change(path);
        CHECK_OK(hr_iter_open(graph, &job.options, &iter, &error));
        code = hr_iter_next(iter, &batch, &error);
        if (i / 2 == HR_ON_ERROR_FAIL) {
            CHECK(code != HR_OK && code != HR_ERR_END);
            CHECK_HAS(error.message, "m.png");
            CHECK_HAS(error.message, want.text);
            CHECK_EQ_STR(error.node, want.node);
        } else {
            CHECK_OK(code);
            CHECK_EQ_INT(hr_batch_records(batch), i / 2 == HR_ON_ERROR_SKIP ? 2 : 3);
        }
        hr_batch_unref(batch);
        hr_iter_close(iter);
        hr_graph_unref(graph);
        CHECK_EQ_INT(remove(path) == 0 || access(path, F_OK) != 0, 1);
    }
}

/* ---- files that are not photos ---- */

TEST(an_empty_file_is_reported)
{
    check_broken("m.jpg", "", 0, (struct expect){"pixels", "empty"});
}

TEST(a_text_named_jpg_is_reported)
{
    static const char text[] = "Dear reader, this is not a photo at all.\n";

    check_broken("m.jpg", text, strlen(text), (struct expect){"pixels", ""});
}

TEST(an_html_page_named_png_is_reported)
{
    static const char text[] = "<!DOCTYPE html>\n<html><body>404</body></html>\n";

    check_broken("m.png", text, strlen(text), (struct expect){"pixels", "HTML"});
}

TEST(zero_bytes_are_reported)
{
    static const char zeros[5000];

    check_broken("m.jpeg", zeros, sizeof zeros, (struct expect){"pixels", ""});
}

/* ---- photos that are truncated or inconsistent ---- */

TEST(a_photo_truncated_anywhere_is_reported)
{
    for (int png = 0; png < 2; png++) {
        const struct bytes whole = encoded(png == 1);
        const char *name = png == 1 ? "m.png" : "m.jpg";

        for (size_t i = 1; i < 8; i++)
            check_broken(name, whole.data, whole.count * i / 8,
                         (struct expect){"pixels", ""});
        check_broken(name, whole.data, 3, (struct expect){"pixels", ""});
    }
}

TEST(a_webp_without_a_picture_is_reported)
{
    static const char riff[] = "RIFF\x40\0\0\0WEBPVP8 \x34\0\0\0\x30\x01\0\x9d\x01\x2a"
                               "\x40\0\x30\0\0\0\0\0\0\0\0\0";

    check_broken("m.webp", riff, sizeof riff - 1, (struct expect){"pixels", ""});
}

static size_t find_frame(const struct bytes *jpeg)
{
    for (size_t i = 2; i + 9 < jpeg->count; i++)
        if (jpeg->data[i] == 0xff && jpeg->data[i + 1] == 0xc0)
            return i;
    check_failed(__FILE__, __LINE__, "no SOF0");
}

static void put16(uint8_t *at, unsigned value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

TEST(a_jpeg_with_too_large_dimensions_is_reported)
{
    struct bytes jpeg = encoded(false);
    size_t frame = find_frame(&jpeg);

    put16(jpeg.data + frame + 5, 20000); /* rows */
    check_broken("m.jpg", jpeg.data, jpeg.count, (struct expect){"pixels", ""});
    put16(jpeg.data + frame + 5, HEIGHT);
    put16(jpeg.data + frame + 7, 0); /* columns */
    check_broken("m.jpg", jpeg.data, jpeg.count, (struct expect){"pixels", ""});
}

TEST(a_jpeg_of_65535_by_65535_is_refused_by_its_header)
{
    struct bytes jpeg = encoded(false);
    size_t frame = find_frame(&jpeg);

    put16(jpeg.data + frame + 5, 65535);
    put16(jpeg.data + frame + 7, 65535);
    check_broken("m.jpg", jpeg.data, jpeg.count, (struct expect){"pixels", "65535"});
}

static uint32_t crc32_of(const uint8_t *data, size_t count)
{
    uint32_t crc = ~0u;

    for (size_t i = 0; i < count; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

/* Sets another size in the header of a PNG, with a valid checksum. */
static void set_png_size(struct bytes *png, uint32_t width, uint32_t height)
{
    uint32_t crc;

    put16(png->data + 16, width >> 16);
    put16(png->data + 18, width & 0xffff);
    put16(png->data + 20, height >> 16);
    put16(png->data + 22, height & 0xffff);
    crc = crc32_of(png->data + 12, 17);
    put16(png->data + 29, crc >> 16);
    put16(png->data + 31, crc & 0xffff);
}

TEST(a_png_with_too_large_dimensions_is_reported)
{
    static const uint32_t sizes[][2] = {
        {WIDTH,     HEIGHT + 1},
        {WIDTH * 2, HEIGHT    },
        {WIDTH,     100000    },
        {0,         HEIGHT    }
    };
    struct bytes png = encoded(true);

    for (size_t i = 0; i < 4; i++) {
        set_png_size(&png, sizes[i][0], sizes[i][1]);
        check_broken("m.png", png.data, png.count, (struct expect){"pixels", ""});
    }
}

TEST(a_png_of_65535_by_65535_and_more_is_refused_by_its_header)
{
    struct bytes png = encoded(true);

    set_png_size(&png, 65535, 65535);
    check_broken("m.png", png.data, png.count, (struct expect){"pixels", "65535"});
    set_png_size(&png, 0x7fffffff, 0x7fffffff);
    check_broken("m.png", png.data, png.count, (struct expect){"pixels", ""});
}

TEST(an_inconsistent_pnm_is_reported)
{
    static const char *const texts[] = {"P6\n65535 65535\n255\n\x01\x02\x03",
                                        "P6 100 100 255\nabc",
                                        "P5\n99999999999999999999 2\n255\n",
                                        "P6\n-4 4\n255\nabcdabcdabcdabcd",
                                        "P3\n4 4\n255\n1 2 three",
                                        "P6\n4 4\n70000\n",
                                        "P6"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        check_broken("m.ppm", texts[i], strlen(texts[i]), (struct expect){"pixels", ""});
}

/* ---- names and kinds of files ---- */

TEST(a_name_that_is_not_utf8_leaves_a_valid_ledger)
{
    check_broken("m\xff\xfe\xc3\x28\"\\\n.jpg", "x", 1, (struct expect){"pixels", ""});
}

static void remove_file(const char *path)
{
    CHECK_EQ_INT(remove(path), 0);
}

static void make_pipe(const char *path)
{
    remove_file(path);
    CHECK_EQ_INT(mkfifo(path, 0666), 0);
}

static void make_folder(const char *path)
{
    remove_file(path);
    CHECK_EQ_INT(mkdir(path, 0777), 0);
}

static void make_link_to_itself(const char *path)
{
    remove_file(path);
    CHECK_EQ_INT(symlink(path, path), 0);
}

static void make_empty(const char *path)
{
    CHECK_EQ_INT(truncate(path, 0), 0);
}

static void forbid(const char *path)
{
    CHECK_EQ_INT(chmod(path, 0), 0);
}

TEST(a_missing_file_is_reported)
{
    check_changed_file(remove_file, (struct expect){"photos", "No such file"});
}

TEST(a_file_that_became_something_else_is_reported)
{
    check_changed_file(make_pipe, (struct expect){"photos", "pipe"});
    check_changed_file(make_folder, (struct expect){"photos", ""});
    check_changed_file(make_link_to_itself, (struct expect){"photos", "symbolic links"});
    check_changed_file(make_empty, (struct expect){"pixels", "empty"});
}

TEST(an_unreadable_file_is_reported)
{
    if (geteuid() == 0)
        SKIP("root may read everything");
    check_changed_file(forbid, (struct expect){"photos", "Permission denied"});
}

TEST(pipes_and_loops_in_a_folder_are_ignored)
{
    const char *dir = folder();
    struct outcome_job job = job_of(dir);
    struct outcome *o;
    char path[800];

    snprintf(path, sizeof path, "%s/m.jpg", dir);
    CHECK_EQ_INT(mkfifo(path, 0666), 0);
    snprintf(path, sizeof path, "%s/loop", dir);
    CHECK_EQ_INT(symlink(".", path), 0);
    snprintf(path, sizeof path, "%s/inner", dir);
    CHECK_EQ_INT(mkdir(path, 0777), 0);
    snprintf(path, sizeof path, "%s/inner/outer", dir);
    CHECK_EQ_INT(symlink("..", path), 0);
    snprintf(path, sizeof path, "%s/self.jpg", dir);
    CHECK_EQ_INT(symlink(path, path), 0);
    o = outcome_run(&job);
    if (o->code != HR_ERR_END)
        check_failed(__FILE__, __LINE__, "%s", o->error.message);
    CHECK_EQ_INT(o->records, 2);
    outcome_free(o);
}

TEST(a_link_that_leads_nowhere_is_a_bad_record)
{
    const char *dir = folder();
    struct outcome_job job = job_of(dir);
    struct outcome *o;
    char path[800];

    snprintf(path, sizeof path, "%s/nowhere.jpg", dir);
    CHECK_EQ_INT(symlink("/nonexistent/photo.jpg", path), 0);
    o = outcome_run(&job);
    CHECK_EQ_STR(o->error.node, "photos");
    CHECK_HAS(o->error.message, "nowhere.jpg: No such file");
    outcome_free(o);
    job.options.on_error = HR_ON_ERROR_SKIP;
    o = outcome_run(&job);
    CHECK_ERR(HR_ERR_END, o->code);
    CHECK_EQ_INT(o->records, 2);
    outcome_free(o);
}

TEST(a_folder_with_only_broken_files_ends)
{
    const char *dir = folder();
    struct outcome_job job = job_of(dir);
    char path[800];

    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%c.png", dir, i == 0 ? 'a' : 'z');
        write_bytes(path, "", 0);
    }
    for (int i = 0; i < 4; i++) {
        struct outcome *o;

        outcome_job_threads(&job, i % 2 * 2);
        job.options.on_error = i / 2 == 0 ? HR_ON_ERROR_SKIP : HR_ON_ERROR_SUBSTITUTE;
        job.options.epochs = 3;
        o = outcome_run(&job);
        CHECK_EQ_INT(o->batches, 0);
        if (job.options.on_error == HR_ON_ERROR_SKIP)
            CHECK_ERR(HR_ERR_END, o->code);
        else
            CHECK(o->code == HR_ERR_END || o->error.message[0] != '\0');
        outcome_free(o);
    }
}
