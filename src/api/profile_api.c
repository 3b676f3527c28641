/*
 * api/profile_api.c - include/headrace/profile.h: checks arguments.
 */
#include <math.h>
#include <string.h>

#include "api/iter.h"
#include "api/profile_run.h"
#include "api/profile_saved.h"
#include "core/alloc.h"
#include "core/error.h"
#include "core/str.h"

#define SECONDS_MAX 86400.0

void hr_profile_options_init(struct hr_profile_options *options)
{
    memset(options, 0, sizeof *options);
    options->variant = HR_VARIANT_INLINE;
    options->seconds_max = 5;
    options->width = 0.05;
}

static enum hr_err
check(const struct hr_profile_options *options, struct hr_error *reterr)
{
    if (!(options->seconds_max > 0 && options->seconds_max <= SECONDS_MAX))
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "seconds_max must be more than 0 and at most %.0f, not %g",
                        SECONDS_MAX, options->seconds_max);
    if (!(options->width > 0 && options->width < HUGE_VAL))
        return hr__fail(reterr, HR_ERR_ARGUMENT, "width must be more than 0, not %g",
                        options->width);
    if (options->records_max < 0)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "records_max must not be negative: %lld",
                        (long long)options->records_max);
    if ((unsigned)options->variant > HR_VARIANT_PROCESSES)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "variant %d is unknown",
                        (int)options->variant);
    return HR_OK;
}

/* Moves the profile to memory of its own. */
static enum hr_err
return_profile(struct hr_profile *profile, enum hr_err code,
               struct hr_profile **ret_profile, struct hr_error *reterr)
{
    struct hr_profile *made = code == HR_OK ? hr__malloc(sizeof *made) : NULL;

    if (made == NULL) {
        hr__profile_finish(profile);
        return code == HR_OK ? hr__fail(reterr, HR_ERR_MEMORY, "out of memory") : code;
    }
    *made = *profile;
    *ret_profile = made;
    return HR_OK;
}

enum hr_err
hr_graph_profile(struct hr_graph *graph, const struct hr_profile_options *options,
                 struct hr_profile **ret_profile, struct hr_error *reterr)
{
    struct hr_profile_options chosen, defaults;
    struct hr_profile profile = {.node_count = 0};
    enum hr_err code;

    if (graph == NULL || ret_profile == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "graph and ret_profile must not be NULL");
    hr_profile_options_init(&defaults);
    chosen = options != NULL ? *options : defaults;
    if (chosen.seconds_max == 0)
        chosen.seconds_max = defaults.seconds_max;
    if (chosen.width == 0)
        chosen.width = defaults.width;
    HR_TRY(check(&chosen, reterr));
    HR_TRY(hr_graph_freeze(graph, reterr));
    code = hr__profile_run(graph, &chosen, &profile, reterr);
    return return_profile(&profile, code, ret_profile, reterr);
}

enum hr_err hr_iter_profile(const struct hr_iter *iter, struct hr_profile **ret_profile,
                            struct hr_error *reterr)
{
    struct hr_profile profile = {.node_count = 0};
    enum hr_err code;

    if (iter == NULL || ret_profile == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "iter and ret_profile must not be NULL");
    if (iter->engine == NULL)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "a service makes the batches of this run, so there is nothing "
                        "to measure here");
    code = hr__profile_iter(iter, &profile, reterr);
    return return_profile(&profile, code, ret_profile, reterr);
}

enum hr_err hr_profile_parse(const char *text, size_t bytes, const char *name,
                             struct hr_profile **ret_profile, struct hr_error *reterr)
{
    struct hr_profile profile = {.node_count = 0};
    enum hr_err code;

    if (text == NULL || name == NULL || ret_profile == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "text, name and ret_profile must not be NULL");
    code = hr__profile_parse(text, bytes, name, &profile, reterr);
    return return_profile(&profile, code, ret_profile, reterr);
}

enum hr_err hr_profile_print(const struct hr_profile *profile, char **ret_json,
                             struct hr_error *reterr)
{
    struct hr_str text;

    if (profile == NULL || ret_json == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "profile and ret_json must not be NULL");
    hr__str_init(&text);
    hr__profile_print(profile, &text);
    *ret_json = hr__str_take(&text);
    hr__str_finish(&text);
    return *ret_json != NULL ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

void hr_profile_free(struct hr_profile *profile)
{
    hr__profile_finish(profile);
    hr__free(profile);
}

enum hr_err hr_profile_node(const struct hr_profile *profile, size_t at,
                            struct hr_profile_info *ret_info)
{
    const struct hr_profile_node *node;

    if (profile == NULL || ret_info == NULL)
        return HR_ERR_ARGUMENT;
    if (at >= profile->node_count)
        return HR_ERR_RANGE;
    node = &profile->nodes[at];
    *ret_info = (struct hr_profile_info){
        .node = node->name,
        .op = node->op,
        .records_in = node->records_in,
        .records_out = node->records_out,
        .cpu_ns = node->cpu_ns,
        .wait_ns = node->wait_ns,
        .deviation_ns = node->deviation_ns,
        .bytes_in = node->bytes_in,
        .bytes_out = node->bytes_out,
        .fixed = node->fixed,
        .width = node->width,
        .serial = node->serial,
        .process_ns = node->process_ns,
        .crowd = node->crowd,
        .ordered = node->ordered,
    };
    return HR_OK;
}

enum hr_err hr_profile_merge(struct hr_profile *profile, const struct hr_profile *other,
                             struct hr_error *reterr)
{
    if (profile == NULL || other == NULL || profile == other)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "two profiles are needed");
    return hr__profile_merge(profile, other, reterr);
}

enum hr_err hr_profile_save(const struct hr_profile *profile, struct hr_graph *graph,
                            const char *folder, struct hr_error *reterr)
{
    if (profile == NULL || graph == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "profile and graph must not be NULL");
    HR_TRY(hr_graph_freeze(graph, reterr));
    return hr__profile_save(profile, graph, folder, reterr);
}

enum hr_err hr_profile_load(struct hr_graph *graph,
                            const struct hr_profile_options *options, const char *folder,
                            struct hr_profile **ret_profile, struct hr_error *reterr)
{
    struct hr_profile profile = {.node_count = 0};
    enum hr_variant variant = options != NULL ? options->variant : HR_VARIANT_INLINE;
    enum hr_err code;

    if (graph == NULL || ret_profile == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "graph and ret_profile must not be NULL");
    if ((unsigned)variant > HR_VARIANT_PROCESSES)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "variant %d is unknown", (int)variant);
    HR_TRY(hr_graph_freeze(graph, reterr));
    hr__profile_begin(&profile, variant, options != NULL && options->fuse);
    code = hr__profile_load(&profile, graph, folder, reterr);
    return return_profile(&profile, code, ret_profile, reterr);
}

uint64_t hr_profile_measured(const struct hr_profile *profile)
{
    uint64_t oldest = 0;

    for (size_t i = 0; profile != NULL && i < profile->node_count; i++)
        if (oldest == 0 || profile->nodes[i].measured < oldest)
            oldest = profile->nodes[i].measured;
    return oldest;
}

double hr_profile_seconds(const struct hr_profile *profile)
{
    return profile != NULL ? profile->seconds : 0;
}
