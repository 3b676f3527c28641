/*
 * cmd_inspect.c - headrace inspect: what a graph produces, before running it for hours,
 * or what a file of records holds.
 *
 * Shapes come from the frozen graph and need no data; records come from a short run.
 * --save writes the images that the trainer would receive as picture files.
 */
#include "graph_file.h"
#include "headrace/dataset.h"
#include "inspect_shard.h"
#include "out.h"
#include "picture.h"
#include "term.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHEET_MAX 256

struct inspect_options {
    struct cli_params params;
    int64_t count, seed, epoch;
    const char *save;
    bool no_records, help_params, json;
};

struct inspect {
    const struct inspect_options *options;
    struct hr_graph *graph;
    struct hr_iter *iter;
    struct picture sheet[SHEET_MAX];
    size_t sheet_count, saved, stretched;
    int64_t shown;
    bool shard; /* a file of records */
};

#define AT(field) offsetof(struct inspect_options, field)

/* clang-format off */
static const struct cli_option inspect_table[] = {
    CLI_OPTION_PARAM,
    CLI_OPTION_HELP_PARAMS,
    {"count", 'n', CLI_INT, AT(count), "N",
     "number of records to show; default 3, with --save 32", 1, 1000000},
    {"no-records", 0, CLI_FLAG, AT(no_records), NULL,
     "show fields only; run nothing"},
    {"json", 0, CLI_FLAG, AT(json), NULL,
     "print parameters, nodes and fields as one JSON object; run nothing"},
    {"seed", 0, CLI_INT, AT(seed), "S",
     "seed for order and augmentation; default 0"},
    {"epoch", 0, CLI_INT, AT(epoch), "E",
     "epoch to show; default 0", 0, UINT32_MAX},
    {"save", 0, CLI_TEXT, AT(save), "DIR",
     "write images as DIR/000000.png ... and a contact sheet DIR/contact.png; u8 and "
     "0..1 are shown unchanged, other ranges are stretched per image"},
};

static const struct cli_example inspect_examples[] = {
    {"headrace inspect examples/vision_rrc.yaml -p data=photos",
     "fields, dtypes and shapes after each node, and three records"},
    {"headrace inspect examples/vision_rrc.yaml -p data=photos --save look -n 64",
     "64 augmented photos, and all of them in look/contact.png"},
    {"headrace inspect packed/part-000000.records",
     "the fields of a file of records, and whether all of it is whole"},
};
/* clang-format on */

static void print_type(const struct hr_field_info *field)
{
    printf("%s%s", field->ragged ? "ragged " : "",
           field->dtype == HR_DTYPE_NONE ? "bytes" : hr_dtype_name(field->dtype));
    if (field->ndim == 0)
        return;
    printf("[");
    for (int i = 0; i < field->ndim; i++) {
        const char *name = field->dim_names[i] != NULL ? field->dim_names[i] : "";

        printf("%s", i > 0 ? ", " : "");
        if (field->dims[i] >= 0)
            printf("%lld", (long long)field->dims[i]);
        else
            printf("%s", name[0] ? name : "?");
    }
    printf("]");
}

#define CLASSES_SHOWN 8

/* " (3 classes: ant, bee, cat)" */
static void print_classes(const struct hr_field_info *field)
{
    if (field->class_count == 0)
        return;
    printf(" (%zu class%s:", field->class_count, field->class_count == 1 ? "" : "es");
    for (size_t i = 0; i < field->class_count && i < CLASSES_SHOWN; i++)
        printf("%s %s", i > 0 ? "," : "", field->classes[i]);
    printf("%s)", field->class_count > CLASSES_SHOWN ? ", ..." : "");
}

static void print_fields(const struct hr_graph *graph)
{
    struct hr_node_info node;
    struct hr_field_info field;

    printf("\n%sNodes and the fields after them%s\n", term_bold(stdout),
           term_plain(stdout));
    for (size_t i = 0; i < hr_graph_node_count(graph); i++) {
        if (hr_graph_node_info(graph, i, &node) != HR_OK)
            continue;
        printf("  %-28s", node.name);
        for (size_t k = 0; k < hr_graph_field_count(graph, i); k++) {
            if (hr_graph_field_info(graph, i, k, &field) != HR_OK)
                continue;
            printf("%s%s%s%s ", k > 0 ? ", " : "", term_bold(stdout), field.name,
                   term_plain(stdout));
            print_type(&field);
            if (node.input_count == 0)
                print_classes(&field);
        }
        printf("\n");
        if (node.note != NULL)
            printf("  %-28s%s\n", "", node.note);
    }
}

static void print_graph(const struct hr_graph *graph, const char *path)
{
    char fingerprint[HR_FINGERPRINT_BYTES], count[32];
    int64_t records = hr_graph_record_count(graph);

    printf("%s%s%s\n", term_bold(stdout), path, term_plain(stdout));
    if (hr_graph_fingerprint(graph, fingerprint) == HR_OK)
        printf("fingerprint        %s\n", fingerprint);
    if (records >= 0)
        printf("records per epoch  %s\n",
               term_count(count, sizeof(count), (uint64_t)records));
    else
        printf("records per epoch  known only at run time\n");
    graph_file_print_params(graph);
    print_fields(graph);
}

/* ---- records ---- */

static void print_bytes(const struct hr_field_view *view, int64_t record)
{
    int64_t from = view->offsets[record], to = view->offsets[record + 1];
    const char *data = view->data;

    printf("%lld bytes \"", (long long)(to - from));
    for (int64_t i = from; i < to && i < from + 48; i++)
        putchar(isprint((unsigned char)data[i]) ? data[i] : '.');
    printf("%s\"\n", to - from > 48 ? "..." : "");
}

/* Integers in full. */
static void print_number(enum hr_dtype dtype, const void *element)
{
    int64_t whole;

    if (dtype == HR_I64) {
        memcpy(&whole, element, sizeof(whole));
        printf("%lld\n", (long long)whole);
    } else {
        printf("%.*g\n", dtype == HR_I32 ? 10 : 9, picture_element(dtype, element));
    }
}

static void print_tensor(const struct hr_field_view *view, int64_t record)
{
    double low = INFINITY, high = -INFINITY, sum = 0, value = 0;
    struct picture_walk walk;
    const void *element, *last = NULL;
    int64_t count;

    picture_walk_begin(&walk, view, record);
    count = walk.left;
    while ((element = picture_walk_next(&walk)) != NULL) {
        last = element;
        value = picture_element(view->dtype, element);
        low = value < low ? value : low;
        high = value > high ? value : high;
        sum += value;
    }
    if (count == 1 && view->ndim == 1) {
        print_number(view->dtype, last);
        return;
    }
    printf("%s[", hr_dtype_name(view->dtype));
    for (int d = 1; d < view->ndim; d++)
        printf("%s%lld", d > 1 ? ", " : "", (long long)view->dims[d]);
    if (count == 0)
        printf("]\n");
    else
        printf("] from %.4g to %.4g, mean %.4g\n", low, high, sum / (double)count);
}

static void print_ragged(const struct hr_field_view *view, int64_t record)
{
    int64_t items = view->offsets[record + 1] - view->offsets[record];
    const char *type =
        view->dtype == HR_DTYPE_NONE ? "bytes" : hr_dtype_name(view->dtype);

    if (view->levels > 1) {
        printf("%s, a batch of %lld\n", type, (long long)items);
    } else if (view->shapes == NULL) {
        printf("%s, %lld elements\n", type, (long long)items);
    } else {
        printf("%s[", type);
        for (int d = 0; d < view->item_ndim; d++)
            printf("%s%lld", d > 0 ? ", " : "",
                   (long long)view->shapes[record * view->item_ndim + d]);
        printf("]\n");
    }
}

static void print_record(const struct hr_batch *batch, int64_t record, int64_t number)
{
    struct hr_field_view view;

    printf("\n%srecord %lld%s\n", term_bold(stdout), (long long)number,
           term_plain(stdout));
    for (size_t i = 0; i < hr_batch_field_count(batch); i++) {
        if (hr_batch_field(batch, i, &view) != HR_OK)
            continue;
        printf("  %-16s ", view.name);
        if (view.dtype == HR_DTYPE_NONE && view.levels <= 1)
            print_bytes(&view, record);
        else if (view.offsets != NULL)
            print_ragged(&view, record);
        else
            print_tensor(&view, record);
    }
}

static int
save_image(struct inspect *inspect, const struct hr_field_view *view, int64_t record)
{
    struct picture picture;
    enum picture_scale scale;
    struct hr_error error = {0};
    char path[2200];

    if (!picture_make(view, record, &picture, &scale))
        return cli_failed("out of memory");
    inspect->stretched += scale == PICTURE_RANGE;
    snprintf(path, sizeof(path), "%s/%06zu.png", inspect->options->save,
             inspect->saved++);
    if (hr_png_write(path, picture.pixels, picture.width, picture.height,
                     picture.channels, &error) != HR_OK) {
        free(picture.pixels);
        return cli_library(&error);
    }
    if (inspect->sheet_count < SHEET_MAX)
        inspect->sheet[inspect->sheet_count++] = picture;
    else
        free(picture.pixels);
    return CLI_OK;
}

static int
save_images(struct inspect *inspect, const struct hr_batch *batch, int64_t record)
{
    struct hr_field_view view;
    int code = CLI_OK;

    for (size_t i = 0; i < hr_batch_field_count(batch) && code == CLI_OK; i++)
        if (hr_batch_field(batch, i, &view) == HR_OK && picture_is_image(&view))
            code = save_image(inspect, &view, record);
    return code;
}

static int show_batch(struct inspect *inspect, const struct hr_batch *batch)
{
    int code = CLI_OK;

    for (int64_t i = 0; i < hr_batch_records(batch) && code == CLI_OK &&
                        inspect->shown < inspect->options->count;
         i++, inspect->shown++) {
        if (inspect->options->save != NULL)
            code = save_images(inspect, batch, i);
        if (inspect->shown < 3 || inspect->options->save == NULL)
            print_record(batch, i, inspect->shown);
    }
    return code;
}

static int show_records(struct inspect *inspect)
{
    struct hr_iter_options options;
    struct hr_error error = {0};
    enum hr_err code;
    int shown = CLI_OK;

    hr_iter_options_init(&options);
    options.seed = (uint64_t)inspect->options->seed;
    options.epoch_first = inspect->options->epoch;
    options.records_max = inspect->options->count;
    options.uncached = true;
    if (inspect->shard) {
        options.on_error = HR_ON_ERROR_SKIP;
        options.errors_max = INT64_MAX;
    }
    code = hr_iter_open(inspect->graph, &options, &inspect->iter, &error);
    while (code == HR_OK && shown == CLI_OK && inspect->shown < inspect->options->count) {
        struct hr_batch *batch = NULL;

        code = hr_iter_next(inspect->iter, &batch, &error);
        if (code == HR_OK)
            shown = show_batch(inspect, batch);
        hr_batch_unref(batch);
    }
    if (shown != CLI_OK || code == HR_OK || code == HR_ERR_END)
        return shown;
    return cli_library_failed(&error);
}

static int save_sheet(struct inspect *inspect)
{
    struct picture sheet;
    struct hr_error error = {0};
    char path[2200];
    enum hr_err code;

    if (inspect->saved == 0)
        return cli_failed("no field of these records looks like an image (expected three "
                          "dimensions, one or three channels)");
    if (!picture_sheet(inspect->sheet, inspect->sheet_count, &sheet))
        return cli_failed("out of memory");
    snprintf(path, sizeof(path), "%s/contact.png", inspect->options->save);
    code = hr_png_write(path, sheet.pixels, sheet.width, sheet.height, 3, &error);
    free(sheet.pixels);
    if (code != HR_OK)
        return cli_library(&error);
    printf("\n%zu images in %s; contact sheet %s\n", inspect->saved,
           inspect->options->save, path);
    if (inspect->stretched > 0)
        printf("values outside 0..1: each image is stretched from its smallest to its "
               "largest value\n");
    return CLI_OK;
}

static int inspect_graph(struct inspect *inspect, const char *path)
{
    int code = CLI_OK;

    if (inspect->options->save != NULL)
        code = out_folder(inspect->options->save);
    if (code == CLI_OK)
        code = inspect->shard
                   ? inspect_shard_open(path, NULL, &inspect->graph)
                   : graph_file_open(path, &inspect->options->params, &inspect->graph);
    if (code != CLI_OK)
        return code;
    if (inspect->options->json) {
        graph_file_print_json(inspect->graph, path);
        return CLI_OK;
    }
    print_graph(inspect->graph, path);
    if (inspect->options->no_records)
        return CLI_OK;
    code = show_records(inspect);
    if (code == CLI_OK && inspect->options->save != NULL)
        code = save_sheet(inspect);
    if (code == CLI_OK && inspect->shard)
        code = inspect_shard_check(inspect->graph);
    return code;
}

static int inspect_run(void *values, const struct cli_rest *rest)
{
    struct inspect_options *options = values;
    struct inspect inspect = {.options = options,
                              .shard = inspect_is_shard(rest->words[0])};
    int code;

    if (!inspect.shard) {
        code = graph_file_propose(rest->words[0], options->json || options->help_params);
        if (code != CLI_OK)
            return code;
    }
    if (options->help_params)
        return graph_file_help(rest->words[0], &options->params);
    if (options->count == 0)
        options->count = options->save != NULL ? 32 : 3;
    code = inspect_graph(&inspect, rest->words[0]);
    hr_iter_close(inspect.iter);
    hr_graph_unref(inspect.graph);
    for (size_t i = 0; i < inspect.sheet_count; i++)
        free(inspect.sheet[i].pixels);
    return code;
}

const struct cli_command cmd_inspect = {
    .name = "inspect",
    .summary = "show the fields, shapes and a few records of a graph or file of records",
    .args = "GRAPH|FOLDER|FILE",
    .args_min = 1,
    .args_max = 1,
    .text =
        "Checks the graph, prints its fingerprint and the fields after each node with "
        "dtypes and shapes, and runs it for a few records. For a folder of data it makes "
        "a "
        "graph as headrace init does. Of a file of records "
        "(.records, .tar, .tfrecord, .txt, .jsonl, .csv, also compressed: .gz, .zst; "
        ".arrow, .parquet, .npy, .npz, .h5, .hdf5) it reads all, and lists what is "
        "damaged and at "
        "which byte.",
    CLI_OPTIONS(inspect_table, struct inspect_options),
    CLI_EXAMPLES(inspect_examples),
    .run = inspect_run,
};
