/*
 * cmd_init.c - headrace init: writes a graph with comments for what lies in a folder.
 */
#include "cli.h"
#include "out.h"
#include "propose.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct init_options {
    const char *output;
    bool force;
};

#define AT(field) offsetof(struct init_options, field)

/* clang-format off */
static const struct cli_option init_table[] = {
    {"output", 'o', CLI_TEXT, AT(output), "FILE",
     "the graph file to write; default: print it"},
    {"force", 'f', CLI_FLAG, AT(force), NULL,
     "replace FILE if it exists"},
};

static const struct cli_example init_examples[] = {
    {"headrace init photos -o train.yaml",
     "a graph for the photos; then headrace run train.yaml"},
    {"headrace init data.parquet",
     "print a graph for the rows of a file"},
    {"headrace init photos | headrace run - -p batch=16",
     "run it without writing it"},
};
/* clang-format on */

static int init_run(void *values, const struct cli_rest *rest)
{
    const struct init_options *options = values;
    const char *path = rest->words[0];
    char *text = NULL;
    int code;

    if (options->output != NULL && !options->force && access(options->output, F_OK) == 0)
        return cli_usage("%s exists; --force replaces it", options->output);
    if (!propose_is_data(path))
        return access(path, F_OK) == 0
                   ? cli_usage("%s is no folder, and no source reads files with its "
                               "ending (see headrace ops source)",
                               path)
                   : cli_usage("there is no %s", path);
    code = propose(path, &text);
    if (code == CLI_OK && options->output != NULL)
        code = out_replace(options->output, text);
    else if (code == CLI_OK)
        fputs(text, stdout);
    if (code == CLI_OK && options->output != NULL)
        printf("%s: %.*s\nheadrace run %s\n", options->output,
               (int)strcspn(text + 2, "\n"), text + 2, options->output);
    free(text);
    return code;
}

const struct cli_command cmd_init = {
    .name = "init",
    .summary = "write a graph with comments for the data in a folder",
    .args = "FOLDER|FILE",
    .args_min = 1,
    .args_max = 1,
    .text =
        "Looks at names, tables and first records, and writes a graph that reads them: "
        "photos or sounds in class folders, beside a table of labels, or without labels; "
        "COCO, Pascal VOC, IDX; tar archives, TFRecord, Parquet, Arrow, LMDB, NumPy and "
        "packed records; JSON lines, CSV and text. A folder train beside others such as "
        "val is taken as the training set. An existing file is never replaced without "
        "--force.",
    CLI_OPTIONS(init_table, struct init_options),
    CLI_EXAMPLES(init_examples),
    .run = init_run,
};
