/*
 * profile_file.c - profiles in files and in the folder of saved ones.
 */
#include "profile_file.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "text_file.h"

int profile_file_read(const char *path, struct hr_profile **ret_profile)
{
    struct hr_error error = {0};
    char *text = NULL;
    int code = text_file_read(path, "a profile", &text);

    if (code == CLI_OK &&
        hr_profile_parse(text, strlen(text), path, ret_profile, &error) != HR_OK)
        code = cli_library(&error);
    free(text);
    return code;
}

struct hr_profile *profile_saved(struct hr_graph *graph,
                                 const struct hr_profile_options *options, bool quiet)
{
    struct hr_profile *profile = NULL;
    struct hr_error error = {0};
    enum hr_err code = hr_profile_load(graph, options, NULL, &profile, &error);

    if (code == HR_OK)
        return profile;
    if (code != HR_ERR_NOT_FOUND && !quiet)
        fprintf(stderr, "headrace: %s\n", error.message);
    return NULL;
}

void profile_keep(const struct hr_profile *profile, struct hr_graph *graph, bool quiet)
{
    struct hr_error error = {0};
    enum hr_err code = hr_profile_save(profile, graph, NULL, &error);

    if (code != HR_OK && code != HR_ERR_NOT_FOUND && !quiet)
        fprintf(stderr, "headrace: %s\n", error.message);
}
