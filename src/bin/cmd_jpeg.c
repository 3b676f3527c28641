/*
 * cmd_jpeg.c - headrace jpeg: describes photos, decodes parts of them, saves seek points.
 *
 * Unreadable files are reported on stderr and skipped; the exit code is then 1.
 */
#include "jpeg.h"
#include "out.h"
#include "term.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(struct jpeg_options, field)

/* clang-format off */
static const struct cli_option jpeg_table[] = {
    {"output", 'o', CLI_TEXT, AT(output), "PATH",
     "decode: output PNG; index: output folder, default next to each photo"},
    {"window", 0, CLI_TEXT, AT(window), "X,Y,WIDTH,HEIGHT",
     "decode: the part to decode; with --size it may be fractional"},
    {"size", 0, CLI_TEXT, AT(size), "WIDTHxHEIGHT",
     "decode: resize to this size, with antialiasing"},
    {"scale", 0, CLI_CHOICE, AT(scale), "1|2|4|8",
     "decode: reduce by this factor while decoding; default 1"},
    {"mode", 0, CLI_CHOICE, AT(mode), "exact|close|fast",
     "decode with --size: how much detail decoding may skip; default exact"},
    {"gray", 0, CLI_FLAG, AT(gray), NULL,
     "decode: output luma only"},
    {"threads", 0, CLI_INT, AT(threads), "N",
     "decode: number of threads to split the photo among; default 1", 1, 64},
    {"index", 0, CLI_TEXT, AT(index), "FILE",
     "decode: seek points from headrace jpeg index"},
    {"step", 0, CLI_INT, AT(step), "N",
     "index: a seek point every N MCUs, 0 for row starts only; default 16", 0, 8192},
    {"json", 0, CLI_FLAG, AT(json), NULL,
     "info: print one JSON object on stdout"},
    {"quiet", 'q', CLI_FLAG, AT(quiet), NULL,
     "decode and index: do not print a report"},
};

static const struct cli_example jpeg_examples[] = {
    {"headrace jpeg info photos/*.jpg",
     "size, sampling, quality, and whether Headrace's own decoder handles them"},
    {"headrace jpeg decode big.jpg -o part.png --window 4000,3000,512,512",
     "decode a part without the rest"},
    {"headrace jpeg decode big.jpg -o small.png --size 640x480 --mode fast",
     "a thumbnail of a large photo"},
    {"headrace jpeg index big.jpg -o points && headrace jpeg decode big.jpg -o all.png "
     "--index points/big.jpg.entries --threads 8",
     "decode one photo with several threads"},
};
/* clang-format on */

/* ---- files ---- */

static int read_all(FILE *in, struct jpeg_file *file)
{
    size_t room = 1 << 16, got;

    for (;;) {
        void *more = realloc(file->data, room);

        if (more == NULL)
            return cli_failed("%s: out of memory", file->path);
        file->data = more;
        got = fread((char *)file->data + file->bytes, 1, room - file->bytes, in);
        file->bytes += got;
        if (file->bytes < room)
            break;
        room *= 2;
    }
    return ferror(in) ? cli_failed("%s: %s", file->path, strerror(errno)) : CLI_OK;
}

int jpeg_read(const char *path, struct jpeg_file *ret_file)
{
    FILE *in = fopen(path, "rb");
    int code;

    *ret_file = (struct jpeg_file){.path = path};
    if (in == NULL)
        return cli_failed("%s: %s", path, strerror(errno));
    code = read_all(in, ret_file);
    fclose(in);
    if (code == CLI_OK)
        return CLI_OK;
    free(ret_file->data);
    ret_file->data = NULL;
    return code;
}

int jpeg_failed(const struct jpeg_file *file, const struct hr_error *error)
{
    return cli_failed("%s: %s", file->path,
                      error->message[0] ? error->message : hr_err_text(error->code));
}

/* ---- info ---- */

static const char *sampling_name(const struct hr_jpeg_info *info)
{
    static const char *const names[5][3] = {
        {"mixed", "",      ""     },
        {"",      "4:4:4", "4:4:0"},
        {"",      "4:2:2", "4:2:0"},
        {"",      "",      ""     },
        {"",      "4:1:1", "4:1:0"}
    };
    int x = info->sampling_x, y = info->sampling_y;

    if (info->components == 1)
        return "gray";
    if (x < 0 || x > 4 || y < 0 || y > 2 || names[x][y][0] == '\0')
        return "other";
    return names[x][y];
}

static void print_info(const struct jpeg_file *file, const struct hr_jpeg_info *info)
{
    char size[32], quality[12] = "-", bytes[24];

    snprintf(size, sizeof(size), "%dx%d", (int)info->width, (int)info->height);
    if (info->quality > 0)
        snprintf(quality, sizeof(quality), "%d", (int)info->quality);
    printf("%-12s %10s  %-6s %7s %8d %7d  %-30s %s\n", size,
           term_bytes(bytes, sizeof(bytes), (double)file->bytes), sampling_name(info),
           quality, (int)info->restart, (int)info->orientation,
           info->accepted ? "yes" : info->reason, file->path);
}

static void info_json(struct json *json, const struct jpeg_file *file,
                      const struct hr_jpeg_info *info)
{
    json_open(json, NULL, '{');
    json_text(json, "file", file->path);
    json_u64(json, "bytes", file->bytes);
    json_i64(json, "width", info->width);
    json_i64(json, "height", info->height);
    json_i64(json, "components", info->components);
    json_text(json, "sampling", sampling_name(info));
    json_i64(json, "quality", info->quality);
    json_i64(json, "restart", info->restart);
    json_i64(json, "orientation", info->orientation);
    json_bool(json, "baseline", info->baseline);
    json_bool(json, "accepted", info->accepted);
    json_text(json, "reason", info->accepted ? NULL : info->reason);
    json_close(json, '}');
}

static int info_of(const char *path, struct json *json)
{
    struct hr_error error = {0};
    struct hr_jpeg_info info;
    struct jpeg_file file;
    int code = jpeg_read(path, &file);

    if (code != CLI_OK)
        return code;
    if (hr_jpeg_read_info(file.data, file.bytes, &info, &error) != HR_OK)
        code = jpeg_failed(&file, &error);
    else if (json != NULL)
        info_json(json, &file, &info);
    else
        print_info(&file, &info);
    free(file.data);
    return code;
}

static int
info_run(const struct jpeg_options *options, const char *const *paths, size_t count)
{
    struct json json = {.out = stdout};
    int code = CLI_OK;

    if (options->json) {
        json_open(&json, NULL, '{');
        json_open(&json, "photos", '[');
    } else {
        printf("%s%-12s %10s  %-6s %7s %8s %7s  %-30s %s%s\n", term_bold(stdout), "size",
               "bytes", "chroma", "quality", "restart", "turned", "own decoder", "file",
               term_plain(stdout));
    }
    for (size_t i = 0; i < count; i++)
        if (info_of(paths[i], options->json ? &json : NULL) != CLI_OK)
            code = CLI_FAILED;
    if (options->json) {
        json_close(&json, ']');
        json_close(&json, '}');
        json_end(&json);
    }
    return code;
}

/* ---- index ---- */

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* Reports the gain for a window in the middle of the photo, a quarter of its size. */
static void
report_entries(const struct jpeg_file *file, const struct hr_jpeg_entries *entries,
               const struct hr_jpeg_info *photo, const char *path)
{
    const struct hr_jpeg_window middle = {.x = photo->width / 4,
                                          .y = photo->height / 4,
                                          .width = photo->width / 2 + 1,
                                          .height = photo->height / 2 + 1};
    struct hr_jpeg_entries_info info;
    char bytes[24], skipped[24];

    hr_jpeg_entries_describe(entries, &info);
    printf("%s, %s (%.2f %% of the photo); its middle quarter skips %s (%.0f %%)\n", path,
           term_bytes(bytes, sizeof(bytes), (double)info.bytes),
           100.0 * (double)info.bytes / (double)file->bytes,
           term_bytes(skipped, sizeof(skipped),
                      (double)hr_jpeg_entries_skip(entries, &middle)),
           100.0 * (double)hr_jpeg_entries_skip(entries, &middle) / (double)file->bytes);
}

static int index_file(const struct jpeg_options *options, struct hr_jpeg_worker *worker,
                      const struct jpeg_file *file)
{
    struct hr_jpeg_entries *entries = NULL;
    struct hr_error error = {0};
    struct hr_jpeg_info info;
    char path[2100];
    enum hr_err err;

    if (options->output != NULL)
        snprintf(path, sizeof(path), "%s/%s.entries", options->output,
                 base_of(file->path));
    else
        snprintf(path, sizeof(path), "%s.entries", file->path);
    err = hr_jpeg_read_info(file->data, file->bytes, &info, &error);
    if (err == HR_OK)
        err = hr_jpeg_entries_make(worker, file->data, file->bytes,
                                   (int32_t)options->step, &entries, &error);
    if (err != HR_OK)
        return jpeg_failed(file, &error);
    err = hr_jpeg_entries_save(entries, path, &error);
    if (err == HR_OK && !options->quiet)
        report_entries(file, entries, &info, path);
    hr_jpeg_entries_destroy(entries);
    return err == HR_OK ? CLI_OK : cli_library_failed(&error);
}

static int
index_run(const struct jpeg_options *options, const char *const *paths, size_t count)
{
    struct hr_jpeg_worker *worker;
    int code = CLI_OK;

    if (options->output != NULL && out_folder(options->output) != CLI_OK)
        return CLI_FAILED;
    worker = hr_jpeg_worker_create();
    if (worker == NULL)
        return cli_failed("out of memory");
    for (size_t i = 0; i < count; i++) {
        struct jpeg_file file;

        if (jpeg_read(paths[i], &file) != CLI_OK) {
            code = CLI_FAILED;
            continue;
        }
        if (index_file(options, worker, &file) != CLI_OK)
            code = CLI_FAILED;
        free(file.data);
    }
    hr_jpeg_worker_destroy(worker);
    return code;
}

/* ---- the command ---- */

static int
decode_run(const struct jpeg_options *options, const char *const *paths, size_t count)
{
    struct jpeg_file file;
    int code;

    if (count != 1)
        return cli_usage("jpeg decode expects one photo, not %zu", count);
    code = jpeg_read(paths[0], &file);
    if (code != CLI_OK)
        return code;
    code = jpeg_decode(options, &file);
    free(file.data);
    return code;
}

static int jpeg_run(void *values, const struct cli_rest *rest)
{
    static const char *const actions[] = {"info", "decode", "index"};
    const char *action = rest->words[0];
    char nearest[96];

    if (strcmp(action, "info") == 0)
        return info_run(values, rest->words + 1, rest->count - 1);
    if (strcmp(action, "decode") == 0)
        return decode_run(values, rest->words + 1, rest->count - 1);
    if (strcmp(action, "index") == 0)
        return index_run(values, rest->words + 1, rest->count - 1);
    return cli_usage("expected jpeg info, decode or index, not '%s'%s", action,
                     cli_nearest(action, actions, 3, nearest, sizeof(nearest)));
}

static const struct jpeg_options jpeg_defaults = {.threads = 1, .step = 16};

const struct cli_command cmd_jpeg = {
    .name = "jpeg",
    .summary = "describe JPEG photos, decode parts of them, save seek points",
    .args = "info|decode|index FILE...",
    .args_min = 2,
    .args_max = CLI_WORDS_MAX,
    .text =
        "info shows what the headers say, and whether Headrace's own decoder handles the "
        "photo or leaves it to libjpeg-turbo, and why; the pixels are equal. decode "
        "writes a window of a photo, optionally resized, as a PNG. index saves seek "
        "points, which let a window be decoded without what precedes it and threads "
        "split a photo; they are rejected if the photo has changed.",
    .defaults = &jpeg_defaults,
    CLI_OPTIONS(jpeg_table, struct jpeg_options),
    CLI_EXAMPLES(jpeg_examples),
    .run = jpeg_run,
};
