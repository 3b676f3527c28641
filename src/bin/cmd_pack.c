/*
 * cmd_pack.c - headrace pack: writes the records of a graph into shards.
 */
#include "graph_file.h"
#include "headrace/op.h"
#include "headrace/pack.h"
#include "out.h"
#include "plan_options.h"
#include "progress.h"
#include "record_options.h"
#include "stop.h"
#include "term.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct pack_options {
    struct cli_params params;
    struct plan_options plan;
    struct record_options records;
    const char *folder, *at, *prefix;
    int format; /* enum hr_pack_format */
    int64_t shard_bytes, shard_records, zstd, lz4;
    bool append, json, quiet, help_params;
};

#define AT(field) offsetof(struct pack_options, field)

/* clang-format off */
static const struct cli_option pack_table[] = {
    {"out", 'o', CLI_TEXT, AT(folder), "DIR",
     "the folder of the shards, created if missing"},
    CLI_OPTION_PARAM,
    CLI_OPTION_HELP_PARAMS,
    {"at", 0, CLI_TEXT, AT(at), "NODE",
     "pack the records after this node; default: the end, before records are joined into "
     "batches"},
    {"format", 0, CLI_CHOICE, AT(format), "records|tar|tfrecord",
     "Headrace's own container (default: all fields with their types), WebDataset's tar "
     "archives (byte strings and int64 numbers), or TFRecord files (one byte string)"},
    {"prefix", 0, CLI_TEXT, AT(prefix), "NAME",
     "shards are DIR/NAME-000000.records and so on; default part"},
    {"shard-bytes", 0, CLI_BYTES, AT(shard_bytes), "BYTES",
     "a shard ends with the record that makes it as large; default 256 MiB"},
    {"shard-records", 0, CLI_INT, AT(shard_records), "N",
     "or with this many records"},
    {"zstd", 0, CLI_INT, AT(zstd), "LEVEL",
     "compress the records of the container, level 1 to 19, where that saves space"},
    {"lz4", 0, CLI_INT, AT(lz4), "LEVEL",
     "the same by LZ4, level 1 to 12: it unpacks faster, and saves less"},
    {"append", 0, CLI_FLAG, AT(append), NULL,
     "add the records to those that are in DIR under this prefix, which have the same "
     "fields"},
    {"epochs", 0, CLI_INT, AT(records.epochs), "N",
     "number of epochs; default 1", 1},
    RECORD_OPTIONS,
    PLAN_OPTIONS,
    CLI_OPTION_JSON,
    {"quiet", 'q', CLI_FLAG, AT(quiet), NULL,
     "no progress output, no report"},
};

static const struct cli_example pack_examples[] = {
    {"headrace pack examples/vision_rrc.yaml -p data=photos -o packed --at source.files",
     "photos and labels into a few files; source.records reads them"},
    {"headrace pack train.yaml -o shards --format tar --shard-records 10000",
     "archives of 10,000 records; stop it with Ctrl-C or kill it: the same command "
     "continues"},
    {"headrace pack today.yaml -o packed --append",
     "add records to what is packed there"},
};
/* clang-format on */

/* ---- which part of the graph ---- */

static bool is_batcher(const struct hr_node_info *node)
{
    struct hr_op_info op;
    size_t at;

    return hr_op_find(node->op, &at, NULL) == HR_OK && hr_op_info(at, &op) == HR_OK &&
           strcmp(op.kind, "batch") == 0 && node->input_count > 0;
}

/* The node that no other reads; the last one if there are several, which freezing then
 * refuses. */
static size_t last_node(const struct hr_graph *graph)
{
    size_t count = hr_graph_node_count(graph), last = 0;
    struct hr_node_info node;

    for (size_t i = 0; i < count; i++) {
        bool read = false;

        for (size_t k = 0; k < count; k++)
            if (hr_graph_node_info(graph, k, &node) == HR_OK)
                for (size_t n = 0; n < node.input_count; n++)
                    read = read || node.inputs[n].id == i;
        if (!read)
            last = i;
    }
    return last;
}

/* The node to pack after. */
static int choose_node(const struct hr_graph *graph, const char *name, size_t *ret_node)
{
    const char *names[256];
    char nearest[96];
    size_t count = hr_graph_node_count(graph), known = 0, at;
    struct hr_node_info node;

    for (size_t i = 0; name != NULL && i < count; i++) {
        if (hr_graph_node_info(graph, i, &node) != HR_OK)
            continue;
        if (strcmp(node.name, name) == 0) {
            *ret_node = i;
            return CLI_OK;
        }
        if (known < sizeof(names) / sizeof(*names))
            names[known++] = node.name;
    }
    if (name != NULL)
        return cli_usage("there is no node '%s'%s", name,
                         cli_nearest(name, names, known, nearest, sizeof(nearest)));
    at = last_node(graph);
    while (hr_graph_node_info(graph, at, &node) == HR_OK && is_batcher(&node))
        at = node.inputs[0].id;
    *ret_node = at;
    return CLI_OK;
}

/* ---- the result ---- */

static void
report(const struct pack_options *o, const struct hr_pack_result *result, double seconds)
{
    char records[32], bytes[24], passed[24];

    if (result->resumed && result->records_now == 0) {
        printf("%s is complete already\n", o->folder);
        return;
    }
    if (result->records_earlier > 0)
        printf("%s records added: ",
               term_count(records, sizeof(records),
                          result->records - result->records_earlier));
    printf("%s records in %llu shard%s, %s, in %s; %s\n",
           term_count(records, sizeof(records), result->records),
           (unsigned long long)result->shards, result->shards == 1 ? "" : "s",
           term_bytes(bytes, sizeof(bytes), (double)result->bytes), o->folder,
           term_seconds(passed, sizeof(passed), seconds));
    if (result->errors > 0)
        printf("%llu bad record%s\n", (unsigned long long)result->errors,
               result->errors == 1 ? "" : "s");
}

static void report_json(const struct pack_options *o, const char *graph,
                        const struct hr_pack_result *result, const char *status,
                        const char *message, double seconds)
{
    static const char *const formats[] = {"records", "tar", "tfrecord"};
    struct json json = {.out = stdout};

    json_open(&json, NULL, '{');
    json_text(&json, "graph", graph);
    json_text(&json, "folder", o->folder);
    json_text(&json, "format", formats[o->format]);
    json_text(&json, "status", status);
    if (message[0] != '\0')
        json_text(&json, "error", message);
    json_bool(&json, "resumed", result->resumed);
    json_u64(&json, "shards", result->shards);
    json_u64(&json, "records", result->records);
    json_u64(&json, "records_now", result->records_now);
    json_u64(&json, "records_earlier", result->records_earlier);
    json_u64(&json, "bytes", result->bytes);
    json_u64(&json, "errors", result->errors);
    json_double(&json, "seconds", seconds);
    json_close(&json, '}');
    json_end(&json);
}

/* ---- the run ---- */

static int write_shards(struct hr_graph *graph, const struct pack_options *o,
                        const struct hr_iter_options *options, const char *path)
{
    struct hr_pack_result result = {0};
    struct hr_pack_options pack;
    struct hr_error error = {0};
    struct progress progress;
    double began = term_now();
    enum hr_err code;

    hr_pack_options_init(&pack);
    pack.format = (enum hr_pack_format)o->format;
    pack.folder = o->folder;
    pack.prefix = o->prefix;
    pack.shard_bytes = (uint64_t)o->shard_bytes;
    pack.shard_records = (uint64_t)o->shard_records;
    pack.zstd_level = o->zstd > INT_MAX || o->zstd < 0 ? -1 : (int)o->zstd;
    pack.lz4_level = o->lz4 > INT_MAX || o->lz4 < 0 ? -1 : (int)o->lz4;
    pack.append = o->append;
    pack.progress = progress_count;
    pack.user = &progress;
    progress_begin(&progress, o->quiet, "records");
    stop_watch(NULL);
    code = hr_pack(graph, options, &pack, &result, &error);
    stop_unwatch();
    progress_clear(&progress);
    if (o->json)
        report_json(o, path, &result,
                    code == HR_OK              ? "complete"
                    : code == HR_ERR_CANCELLED ? "interrupted"
                                               : "failed",
                    code == HR_OK || code == HR_ERR_CANCELLED ? "" : error.message,
                    term_now() - began);
    else if (code == HR_OK && !o->quiet)
        report(o, &result, term_now() - began);
    if (code == HR_ERR_CANCELLED && !o->quiet)
        fprintf(stderr,
                "headrace: interrupted after %llu whole shards; run the same command "
                "again to continue\n",
                (unsigned long long)result.shards);
    if (code == HR_ERR_CANCELLED)
        return CLI_INTERRUPTED;
    return code == HR_OK ? CLI_OK : cli_library(&error);
}

static int
pack_graph(struct hr_graph *graph, const struct pack_options *o, const char *path)
{
    struct hr_iter_options options;
    char *plan = NULL;
    int code;

    hr_iter_options_init(&options);
    record_options_set(&o->records, &options);
    code = plan_options_set(&o->plan, &options, &plan);
    if (code == CLI_OK)
        code = out_folder(o->folder);
    if (code == CLI_OK)
        code = write_shards(graph, o, &options, path);
    free(plan);
    return code;
}

static int pack_run(void *values, const struct cli_rest *rest)
{
    const struct pack_options *o = values;
    struct hr_graph *whole = NULL, *part = NULL;
    size_t node = 0;
    int code;

    if (o->help_params)
        return graph_file_help(rest->words[0], &o->params);
    if (o->folder == NULL)
        return cli_usage("pack needs --out DIR, the folder of the shards");
    code = graph_file_load(rest->words[0], &o->params, &whole);
    if (code == CLI_OK)
        code = choose_node(whole, o->at, &node);
    if (code == CLI_OK && node == last_node(whole))
        part = hr_graph_ref(whole);
    else if (code == CLI_OK)
        code = graph_file_cut(whole, node, &part);
    if (code == CLI_OK)
        code = pack_graph(part, o, rest->words[0]);
    hr_graph_unref(part);
    hr_graph_unref(whole);
    return code;
}

static const struct pack_options pack_defaults = {.plan = PLAN_DEFAULTS,
                                                  .records = RECORD_DEFAULTS};

const struct cli_command cmd_pack = {
    .name = "pack",
    .summary = "write the records of a graph into shards",
    .args = "GRAPH",
    .args_min = 1,
    .args_max = 1,
    .text =
        "Runs the graph file GRAPH and writes its records, in order, into files of about "
        "equal size, which source.records, source.tar and source.tfrecord read. The "
        "files "
        "are the same for any number of threads. Each appears under its name when it is "
        "complete. After a Ctrl-C, an error or a kill the same command continues after "
        "the last complete shard, as DIR/NAME.json says.\n\n"
        "With --append the records follow those that DIR holds: in the last shard, if it "
        "is a container and has room, then in further shards. Records that are there "
        "stay as they are, whatever happens. An append that was stopped continues with "
        "or without --append; without it, nothing is added twice if it was complete.",
    CLI_OPTIONS(pack_table, struct pack_options),
    CLI_EXAMPLES(pack_examples),
    .defaults = &pack_defaults,
    .run = pack_run,
};
