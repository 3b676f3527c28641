/*
 * plan_options.c - passes the options of a plan to the library.
 */
#include "plan_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PLAN_BYTES_MAX ((size_t)4 << 20)

static int read_plan(const char *path, char **ret_text)
{
    FILE *file = fopen(path, "rb");
    char *text = malloc(PLAN_BYTES_MAX + 1);
    size_t length =
        file != NULL && text != NULL ? fread(text, 1, PLAN_BYTES_MAX, file) : 0;
    int code = CLI_OK;

    if (file == NULL)
        code = cli_usage("cannot read %s: %s", path, strerror(errno));
    else if (text == NULL)
        code = cli_failed("out of memory");
    else if (ferror(file))
        code = cli_failed("cannot read %s: %s", path, strerror(errno));
    else if (length == PLAN_BYTES_MAX || memchr(text, '\0', length) != NULL)
        code = cli_usage("%s is not a plan", path);
    if (file != NULL)
        fclose(file);
    if (code != CLI_OK) {
        free(text);
        return code;
    }
    text[length] = '\0';
    *ret_text = text;
    return CLI_OK;
}

int plan_options_set(const struct plan_options *options, struct hr_iter_options *ret,
                     char **ret_text)
{
    bool decides = options->threads > 0 || options->variant != 0 || !options->ordered ||
                   options->no_fuse || options->memory_bytes > 0 ||
                   options->ahead_bytes > 0;
    int code;

    *ret_text = NULL;
    if (options->file != NULL && decides)
        return cli_usage("--plan excludes --threads, --variant, --ordered, --no-fuse, "
                         "--memory and --ahead: the plan contains them; edit it instead");
    ret->threads = (int)options->threads;
    ret->variant = (enum hr_variant)options->variant;
    ret->ordered = options->ordered;
    ret->fuse = !options->no_fuse;
    ret->memory_bytes = (uint64_t)options->memory_bytes;
    ret->ahead_bytes = (uint64_t)options->ahead_bytes;
    if (options->file == NULL)
        return CLI_OK;
    ret->plan_name = options->file;
    code = read_plan(options->file, ret_text);
    ret->plan = *ret_text;
    return code;
}
