/*
 * plan_options.c - passes the options of a plan to the library.
 */
#include "plan_options.h"
#include "text_file.h"

#include <string.h>

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
    code = text_file_read(options->file, "a plan", ret_text);
    ret->plan = *ret_text;
    return code;
}
