/*
 * cmd_index.c - headrace index: lists a folder, or finds the records of shards, once, so
 * that later runs start immediately.
 */
#include "cli.h"
#include "headrace/dataset.h"
#include "inspect_shard.h"
#include "out.h"
#include "progress.h"
#include "stop.h"
#include "term.h"

#include <string.h>
#include <sys/stat.h>

struct index_options {
    const char *output;
    int64_t threads;
    bool json, quiet, seek;
};

#define AT(field) offsetof(struct index_options, field)

/* clang-format off */
static const struct cli_option index_table[] = {
    {"output", 'o', CLI_TEXT, AT(output), "FILE",
     "where to write the index; required"},
    {"seek", 0, CLI_FLAG, AT(seek), NULL,
     "also read all photos and record seek points inside them"},
    {"threads", 0, CLI_INT, AT(threads), "N",
     "number of threads reading photos; default: the CPUs that this process may use", 0, 4096},
    CLI_OPTION_JSON,
    {"quiet", 'q', CLI_FLAG, AT(quiet), NULL,
     "do not print a report"},
};

static const struct cli_example index_examples[] = {
    {"headrace index photos -o photos.index",
     "then give source.files the parameter `index: photos.index`"},
    {"headrace index photos -o photos.index --seek",
     "then the first epoch decodes crops as fast as later ones"},
    {"headrace index 'shards/{000..099}.tar' -o shards.index",
     "then give source.tar the parameter `index: shards.index`"},
};
/* clang-format on */

static void print_seek(const struct hr_index_seek_result *s)
{
    char photos[32], bytes[24];

    if (s->files > 0)
        printf("seek points in %s of %llu files, %s\n",
               term_count(photos, sizeof(photos), s->photos),
               (unsigned long long)s->files,
               term_bytes(bytes, sizeof(bytes), (double)s->bytes));
}

static void
print_result(const struct hr_index_result *r, const char *output, double seconds)
{
    char files[32], folders[32], bytes[24], passed[24];

    printf("%s files in %s folders (%llu read), %llu labels; %s, %s, %s\n",
           term_count(files, sizeof(files), r->files),
           term_count(folders, sizeof(folders), r->folders),
           (unsigned long long)r->folders_rescanned, (unsigned long long)r->classes,
           output, term_bytes(bytes, sizeof(bytes), (double)r->bytes),
           term_seconds(passed, sizeof(passed), seconds));
}

static void
print_json(const struct hr_index_result *r, const struct hr_index_seek_result *s,
           const char *output, double seconds)
{
    struct json json = {.out = stdout};

    json_open(&json, NULL, '{');
    json_text(&json, "index", output);
    json_u64(&json, "files", r->files);
    json_u64(&json, "folders", r->folders);
    json_u64(&json, "folders_rescanned", r->folders_rescanned);
    json_u64(&json, "classes", r->classes);
    json_u64(&json, "bytes", r->bytes);
    if (s->files > 0) {
        json_u64(&json, "seek_photos", s->photos);
        json_u64(&json, "seek_bytes", s->bytes);
    }
    json_double(&json, "seconds", seconds);
    json_close(&json, '}');
    json_end(&json);
}

static enum hr_err seek(const char *root, const struct index_options *o,
                        struct hr_index_seek_result *result, struct hr_error *error)
{
    struct progress progress;
    enum hr_err err;

    progress_begin(&progress, o->quiet || o->json, "files");
    stop_watch(NULL);
    err = hr_index_seek(root, o->output, (int)o->threads, progress_count, &progress,
                        result, error);
    stop_unwatch();
    progress_clear(&progress);
    return err;
}

/* ---- shards ---- */

static void print_shards(const struct index_options *o, int64_t records, uint64_t bytes,
                         double seconds)
{
    char count[32], size[24], passed[24];
    struct json json = {.out = stdout};

    if (!o->json) {
        printf("%s records; %s, %s, %s\n",
               term_count(count, sizeof(count), (uint64_t)records), o->output,
               term_bytes(size, sizeof(size), (double)bytes),
               term_seconds(passed, sizeof(passed), seconds));
        return;
    }
    json_open(&json, NULL, '{');
    json_text(&json, "index", o->output);
    json_u64(&json, "records", (uint64_t)records);
    json_u64(&json, "bytes", bytes);
    json_double(&json, "seconds", seconds);
    json_close(&json, '}');
    json_end(&json);
}

/* Opening a graph with the index saves it. */
static int index_shards(const char *path, const struct index_options *options)
{
    double began = term_now();
    struct hr_graph *graph;
    struct stat about;
    int64_t records;
    int code;

    if (options->seek)
        return cli_usage("--seek is for folders of photos");
    code = inspect_shard_open(path, options->output, &graph);
    if (code != CLI_OK)
        return code;
    records = hr_graph_record_count(graph);
    hr_graph_unref(graph);
    if (stat(options->output, &about) != 0)
        return cli_failed(
            "%s was not written: compressed shards, and shards that changed "
            "within the last two seconds, are not saved",
            options->output);
    if (!options->quiet || options->json)
        print_shards(options, records, (uint64_t)about.st_size, term_now() - began);
    return CLI_OK;
}

static bool is_folder(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static int index_run(void *values, const struct cli_rest *rest)
{
    const struct index_options *options = values;
    struct hr_index_result result = {0};
    struct hr_index_seek_result noted = {0};
    struct hr_error error = {0};
    double began = term_now();
    int code;

    if (options->output == NULL)
        return cli_usage("index needs -o FILE (see headrace index --help)");
    code = out_probe(options->output);
    if (code != CLI_OK)
        return code;
    if (inspect_is_shard(rest->words[0]) && !is_folder(rest->words[0]))
        return index_shards(rest->words[0], options);
    if (hr_index_write(rest->words[0], options->output, &result, &error) != HR_OK)
        return cli_library(&error);
    if (options->seek) {
        enum hr_err err = seek(rest->words[0], options, &noted, &error);

        if (err == HR_ERR_CANCELLED && stop_requested()) {
            fprintf(stderr,
                    "headrace: interrupted; run the same command again to continue\n");
            return CLI_INTERRUPTED;
        }
        if (err != HR_OK)
            return cli_library(&error);
    }
    if (options->json) {
        print_json(&result, &noted, options->output, term_now() - began);
    } else if (!options->quiet) {
        print_result(&result, options->output, term_now() - began);
        print_seek(&noted);
    }
    return CLI_OK;
}

const struct cli_command cmd_index = {
    .name = "index",
    .summary = "save an index of the files in a folder, or of shards",
    .args = "DIR|SHARDS",
    .args_min = 1,
    .args_max = 1,
    .text = "Walks DIR and saves its file names, labels and folder times. A run with the "
            "index starts without walking DIR, and re-reads only folders that changed. "
            "An existing index is updated, and what runs have recorded in it about "
            "photos is kept. SHARDS is a file, or a pattern that ends as files do: .tar, "
            ".tfrecord, .txt, .jsonl or .csv. Their records are found, and a run with "
            "the index scans only shards that have changed. Without an index sources "
            "keep one for large data sets in the cache folder.",
    CLI_OPTIONS(index_table, struct index_options),
    CLI_EXAMPLES(index_examples),
    .run = index_run,
};
