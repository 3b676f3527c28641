/*
 * api/profile_saved.c - the folder of saved profiles.
 *
 * A file is a profile of one node. Its name is a hash of what the costs depend on: the
 * node's fingerprint, which covers all nodes before it; those of the nodes that it shares
 * its work with if they were composed, which may come after it; machine, library and
 * variant. Files are replaced as a whole. When two processes save one node at a time, one
 * of the two measurements stays.
 */
#include "api/profile_saved.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/cache_folder.h"
#include "core/error.h"
#include "core/file.h"
#include "core/str.h"
#include "headrace/profile.h"

#define FILE_MAX 65536 /* bytes */
#define ADVICE                                                                           \
    "set HEADRACE_CACHE to a folder that can be written, or to nothing to save no "      \
    "profiles"

/* ---- the folder ---- */

/* The path of the folder of saved profiles; the caller frees it. */
static enum hr_err
find_folder(const char *folder, char **ret_path, struct hr_error *reterr)
{
    char *cache = NULL;
    struct hr_str path;
    enum hr_err code = HR_OK;

    if (folder == NULL)
        code = hr__cache_is_off() ? HR_ERR_NOT_FOUND : hr__cache_folder(&cache, reterr);
    if (code == HR_ERR_NOT_FOUND)
        return hr__fail(reterr, HR_ERR_NOT_FOUND,
                        "no profiles are saved: there is no cache folder; " ADVICE);
    HR_TRY(code);
    hr__str_init(&path);
    hr__str_addf(&path, "%s%s", folder != NULL ? folder : cache,
                 folder != NULL ? "" : "/profiles");
    hr__free(cache);
    *ret_path = hr__str_take(&path);
    hr__str_finish(&path);
    return *ret_path != NULL ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

/* ---- files ---- */

static void add_text(struct hr_hasher *hasher, const char *text)
{
    hr__hasher_add(hasher, text, strlen(text) + 1);
}

static void add_hash(struct hr_hasher *hasher, struct hr_hash128 hash)
{
    char text[HR_HASH_TEXT_BYTES];

    hr__hash_text(hash, text);
    add_text(hasher, text);
}

/* The path of a node's file in a folder. */
static enum hr_err
find_file(const struct hr_profile *profile, const struct hr_graph *graph, size_t node,
          const char *folder, struct hr_str *out, struct hr_error *reterr)
{
    const struct hr_graph_node *nodes = graph->nodes;
    struct hr_hasher *hasher = hr__hasher_create();
    char text[HR_HASH_TEXT_BYTES];

    if (hasher == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    snprintf(text, sizeof text, "1 %u %d %d", profile->machine.cores,
             (int)profile->variant, profile->fused);
    add_text(hasher, text);
    add_text(hasher, profile->machine.cpu);
    add_text(hasher, profile->machine.isa);
    add_text(hasher, profile->library);
    add_hash(hasher, nodes[node].fingerprint);
    for (size_t i = 0; profile->fused && i < graph->count; i++)
        if (i != node && nodes[i].group == nodes[node].group)
            add_hash(hasher, nodes[i].fingerprint);
    hr__hash_text(hr__hasher_value(hasher), text);
    hr__hasher_destroy(hasher);
    hr__str_clear(out);
    hr__str_addf(out, "%s/%s.json", folder, text);
    return hr__str_ok(out) ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

/* Reads a file and checks that it is of this node. HR_ERR_NOT_FOUND if there is none, and
 * HR_ERR_FORMAT if it is damaged. */
static enum hr_err read_file(const char *path, const struct hr_graph_node *node,
                             struct hr_profile *ret_profile, struct hr_error *reterr)
{
    size_t bytes = 0;
    char *text = NULL;
    enum hr_err code = hr__file_read(path, FILE_MAX, &text, &bytes, reterr);

    if (code == HR_ERR_LIMIT)
        code = hr__fail(reterr, HR_ERR_FORMAT, "%s: it is too long", path);
    if (code != HR_OK)
        return code;
    code = hr__profile_parse(text, bytes, path, ret_profile, reterr);
    hr__free(text);
    if (code != HR_OK)
        return code == HR_ERR_MEMORY ? code : HR_ERR_FORMAT;
    if (ret_profile->node_count == 1 &&
        hr__hash_equal(ret_profile->nodes[0].fingerprint, node->fingerprint))
        return HR_OK;
    hr__profile_finish(ret_profile);
    return hr__fail(reterr, HR_ERR_FORMAT, "%s: it is of another node", path);
}

/* ---- saving ---- */

/* Merges with what the file has; a file that cannot be read or merged is replaced. */
static enum hr_err save_file(const char *path, const struct hr_graph_node *node,
                             const struct hr_profile *one, struct hr_error *reterr)
{
    struct hr_profile saved = {.node_count = 0};
    const struct hr_profile *merged = one;
    enum hr_err code = read_file(path, node, &saved, NULL);
    struct hr_str text;

    if (code == HR_OK && hr__profile_merge(&saved, one, NULL) == HR_OK)
        merged = &saved;
    hr__str_init(&text);
    hr__profile_print(merged, &text);
    code = hr__str_ok(&text)
               ? hr__file_replace(path, hr__str_text(&text), text.length, reterr)
               : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    hr__str_finish(&text);
    hr__profile_finish(&saved);
    return code;
}

static enum hr_err
save_nodes(const struct hr_profile *profile, const struct hr_graph *graph,
           const char *folder, const struct hr_profile_node **known,
           struct hr_error *reterr)
{
    enum hr_err code = HR_OK;
    struct hr_str path;

    hr__str_init(&path);
    for (size_t i = 0; code == HR_OK && i < graph->count; i++) {
        struct hr_profile one = *profile;
        struct hr_profile_node node;

        if (known[i] == NULL)
            continue;
        node = *known[i];
        node.name = graph->nodes[i].name; /* as nodes that are alike share a file */
        one.nodes = &node;
        one.node_count = 1;
        code = find_file(profile, graph, i, folder, &path, reterr);
        if (code == HR_OK)
            code = save_file(hr__str_text(&path), &graph->nodes[i], &one, reterr);
    }
    hr__str_finish(&path);
    return code;
}

static enum hr_err save_to(const struct hr_profile *profile, const struct hr_graph *graph,
                           const char *folder, struct hr_error *reterr)
{
    const struct hr_profile_node **known = hr__calloc(graph->count, sizeof *known);
    enum hr_err code;

    if (known == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    hr__profile_match(graph, profile, known);
    code = hr__file_make_folder(folder, 0700, reterr);
    if (code == HR_OK)
        code = save_nodes(profile, graph, folder, known, reterr);
    hr__free(known);
    if (code == HR_OK)
        hr__evict_files(folder, HR_SAVED_FILES_MAX, HR_SAVED_BYTES_MAX);
    else
        hr__error_prefix(reterr, "the profile cannot be saved (" ADVICE ")");
    return code;
}

enum hr_err
hr__profile_save(const struct hr_profile *profile, const struct hr_graph *graph,
                 const char *folder, struct hr_error *reterr)
{
    enum hr_err code;
    char *path;

    HR_TRY(find_folder(folder, &path, reterr));
    code = save_to(profile, graph, path, reterr);
    hr__free(path);
    return code;
}

/* ---- loading ---- */

/* Adds the node under the name that it has here. */
static enum hr_err load_node(struct hr_profile *profile, const struct hr_graph_node *node,
                             const char *path, struct hr_error *reterr)
{
    struct hr_profile one = {.node_count = 0};
    struct hr_error why = {0};
    enum hr_err code = read_file(path, node, &one, &why);
    char *name = code == HR_OK ? hr__strdup(node->name) : NULL;

    if (code == HR_OK && name == NULL)
        code = hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    if (code == HR_OK) {
        double seconds =
            fmax(profile->seconds, one.seconds); /* all were measured in one */

        hr__free(one.nodes[0].name);
        one.nodes[0].name = name;
        code = hr__profile_merge(profile, &one, &why);
        if (code != HR_OK)
            hr__error_prefix(&why, "%s", path);
        profile->seconds = seconds;
    }
    hr__profile_finish(&one);
    if (code == HR_OK || code == HR_ERR_MEMORY)
        return code == HR_OK ? HR_OK : hr__fail(reterr, code, "out of memory");
    if (code == HR_ERR_NOT_FOUND)
        return hr__fail(reterr, code, "no profile of node '%s' (%s) is saved", node->name,
                        node->op->name);
    return hr__fail(reterr, HR_ERR_FORMAT,
                    "the saved profile of node '%s' (%s) cannot be used, and will be "
                    "replaced: %.400s",
                    node->name, node->op->name, why.message);
}

static enum hr_err load_nodes(struct hr_profile *profile, const struct hr_graph *graph,
                              const char *folder, struct hr_error *reterr)
{
    enum hr_err code = HR_OK;
    struct hr_str path;

    hr__str_init(&path);
    for (size_t i = 0; code == HR_OK && i < graph->count; i++) {
        code = find_file(profile, graph, i, folder, &path, reterr);
        if (code == HR_OK)
            code = load_node(profile, &graph->nodes[i], hr__str_text(&path), reterr);
    }
    hr__str_finish(&path);
    return code;
}

enum hr_err hr__profile_load(struct hr_profile *profile, const struct hr_graph *graph,
                             const char *folder, struct hr_error *reterr)
{
    enum hr_err code;
    char *path;

    HR_TRY(find_folder(folder, &path, reterr));
    profile->graph = graph->nodes[graph->output].fingerprint;
    code = load_nodes(profile, graph, path, reterr);
    hr__free(path);
    return code;
}
