/*
 * cmd_synth.c - headrace synth: synthetic data sets of any size, generated from a seed.
 */
#include "cli.h"
#include "headrace/dataset.h"
#include "out.h"
#include "progress.h"
#include "stop.h"
#include "term.h"

#include <string.h>

struct synth_options {
    int64_t count, seed, classes, width, height, quality, folders;
    bool uniform, quiet;
};

#define AT(field) offsetof(struct synth_options, field)

/* clang-format off */
static const struct cli_option synth_table[] = {
    {"count", 'n', CLI_INT, AT(count), "N",
     "number of photos, names or lines; default 1000", 1},
    {"seed", 0, CLI_INT, AT(seed), "S",
     "photos: seed that determines the whole set; default 0"},
    {"classes", 0, CLI_INT, AT(classes), "N",
     "photos: number of label folders; default 10", 1, 1000000},
    {"width", 0, CLI_INT, AT(width), "PIXELS",
     "photos: mean width; default 500", 8, 16384},
    {"height", 0, CLI_INT, AT(height), "PIXELS",
     "photos: mean height; default 375", 8, 16384},
    {"quality", 0, CLI_INT, AT(quality), "Q",
     "photos: JPEG quality, 0 for a mix of 70 to 96; default 0", 0, 100},
    {"uniform", 0, CLI_FLAG, AT(uniform), NULL,
     "photos: same size and sampling for all, instead of a mix as on the web"},
    {"folders", 0, CLI_INT, AT(folders), "N",
     "names: number of folders; default 1000", 1, 1000000},
    {"quiet", 'q', CLI_FLAG, AT(quiet), NULL,
     "no progress output, no report"},
};

static const struct cli_example synth_examples[] = {
    {"headrace synth photos photos --count 5000 --classes 20",
     "5000 JPEG photos in 20 label folders; run it again to finish after an interruption"},
    {"headrace synth names many --count 1281167 --folders 1000",
     "as many empty files as ImageNet has photos, for start-up tests"},
    {"headrace synth range numbers.txt --count 100000",
     "a file with the lines 0 to 99999, for source.list"},
};
/* clang-format on */

static int finish(enum hr_err code, const struct hr_error *error, const char *path)
{
    if (code == HR_ERR_CANCELLED && stop_requested()) {
        fprintf(stderr,
                "headrace: interrupted; run the same command again to continue\n");
        return CLI_INTERRUPTED;
    }
    if (code != HR_OK)
        return code == HR_ERR_ARGUMENT ? cli_usage("%s", error->message)
                                       : cli_failed("%s", error->message);
    (void)path;
    return CLI_OK;
}

static int
synth_photos(const struct synth_options *o, const char *dir, struct progress *progress)
{
    struct hr_synth_photos what = {
        .seed = (uint64_t)o->seed,
        .count = (uint64_t)o->count,
        .classes = (int)o->classes,
        .width = (int)o->width,
        .height = (int)o->height,
        .quality = (int)o->quality,
        .vary = !o->uniform,
    };
    struct hr_error error = {0};
    enum hr_err code = hr_synth_photos(dir, &what, progress_count, progress, &error);

    progress_clear(progress);
    return finish(code, &error, dir);
}

static int
synth_names(const struct synth_options *o, const char *dir, struct progress *progress)
{
    struct hr_error error = {0};
    enum hr_err code = hr_synth_names(dir, (uint64_t)o->count, (uint64_t)o->folders,
                                      progress_count, progress, &error);

    progress_clear(progress);
    return finish(code, &error, dir);
}

static int
synth_range(const struct synth_options *o, const char *path, struct progress *progress)
{
    struct out out;
    int code = out_begin(&out, path);

    if (code != CLI_OK)
        return code;
    for (int64_t i = 0; i < o->count; i++) {
        fprintf(out.file, "%lld\n", (long long)i);
        if (i % 65536 == 0 && !progress_count(progress, (uint64_t)i, (uint64_t)o->count))
            break;
    }
    progress_clear(progress);
    if (stop_requested()) {
        out_abort(&out);
        fprintf(stderr, "headrace: interrupted; %s is unchanged\n", path);
        return CLI_INTERRUPTED;
    }
    return out_commit(&out);
}

static int synth_run(void *values, const struct cli_rest *rest)
{
    const struct synth_options *o = values;
    static const char *const kinds[] = {"photos", "names", "range"};
    int (*const makers[])(const struct synth_options *, const char *,
                          struct progress *) = {synth_photos, synth_names, synth_range};
    struct progress progress;
    char nearest[96], count[32], seconds[24];
    int code;

    for (size_t i = 0; i < 3; i++) {
        double began = term_now();

        if (strcmp(rest->words[0], kinds[i]) != 0)
            continue;
        progress_begin(&progress, o->quiet, i == 2 ? "lines" : kinds[i]);
        stop_watch(NULL);
        code = makers[i](o, rest->words[1], &progress);
        stop_unwatch();
        if (code == CLI_OK && !o->quiet)
            printf("%s %s in %s, %s\n",
                   term_count(count, sizeof(count), (uint64_t)o->count), progress.what,
                   rest->words[1],
                   term_seconds(seconds, sizeof(seconds), term_now() - began));
        return code;
    }
    return cli_usage("expected synth photos, names or range, not '%s'%s", rest->words[0],
                     cli_nearest(rest->words[0], kinds, 3, nearest, sizeof(nearest)));
}

static const struct synth_options synth_defaults = {
    .count = 1000, .classes = 10, .folders = 1000};

const struct cli_command cmd_synth = {
    .name = "synth",
    .summary = "generate a data set of any size from a seed",
    .args = "photos|names|range PATH",
    .complete = "photos names range",
    .args_min = 2,
    .args_max = 2,
    .text =
        "photos: a folder of JPEG photos in label folders: landscapes, in which the "
        "folder's name says what stands in front: a balloon, a boat, a car. names: many "
        "empty files in "
        "folders. range: a text file with one number per line. Photo i depends only on "
        "i and the options other than --count. Existing files are kept, so an "
        "interrupted run can continue.",
    CLI_OPTIONS(synth_table, struct synth_options),
    CLI_EXAMPLES(synth_examples),
    .defaults = &synth_defaults,
    .run = synth_run,
};
