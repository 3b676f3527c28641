/*
 * cache_report.c - see cache_report.h.
 */
#include "cache_report.h"
#include "term.h"

#include <string.h>
#include <unistd.h>

static const char *const variants[] = {"threads", "inline", "processes"};

int cache_ask_check(const struct cache_ask *ask)
{
    if (ask->epochs == 0 &&
        (ask->memory != CACHE_MEMORY_DEFAULT || ask->folder != NULL ||
         ask->folder_bytes != 0 || ask->refresh != 0 || ask->quality != 0))
        return cli_usage("--cache-memory, --cache-folder, --cache-bytes, "
                         "--cache-quality and --refresh need --epochs N: how many "
                         "epochs the job will make");
    if (ask->memory == 0 && ask->folder == NULL)
        return cli_usage("--cache-memory 0 needs --cache-folder FOLDER: else there is no "
                         "cache");
    if (ask->folder == NULL && ask->folder_bytes != 0)
        return cli_usage("--cache-bytes needs --cache-folder FOLDER");
    return CLI_OK;
}

/* Removes the last part of the path, and the slashes around it. */
static void cut_path(char *path)
{
    size_t bytes = strlen(path);

    while (bytes > 0 && path[bytes - 1] == '/')
        bytes--;
    while (bytes > 0 && path[bytes - 1] != '/')
        bytes--;
    while (bytes > 1 && path[bytes - 1] == '/')
        bytes--;
    path[bytes] = '\0';
}

/* The bytes of the part of the path that exists. */
static size_t existing(const char *folder)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s", folder);
    while (path[0] != '\0' && access(path, F_OK) != 0)
        cut_path(path);
    return strlen(path);
}

/* Removes the empty folders beyond the first `bytes` of the path. */
static void remove_empty(const char *folder, size_t bytes)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s", folder);
    while (strlen(path) > bytes && rmdir(path) == 0)
        cut_path(path);
}

enum hr_err
cache_propose(struct hr_graph *graph, const struct hr_profile *profile,
              const struct cache_ask *ask, enum hr_strictness strictness,
              const struct hr_optimize_options *order, struct hr_graph **ret_graph,
              struct hr_cache_places **ret_places, struct hr_error *error)
{
    struct hr_cache_options options;
    size_t had = ask->folder != NULL ? existing(ask->folder) : 0;
    enum hr_err code;

    hr_cache_options_init(&options);
    options.epochs = ask->epochs;
    options.memory = ask->memory == CACHE_MEMORY_DEFAULT ? 0
                     : ask->memory == 0                  ? -1
                                                         : ask->memory;
    options.folder = ask->folder;
    options.folder_bytes = ask->folder_bytes;
    options.refresh = ask->refresh;
    options.quality = (int)ask->quality;
    options.strictness = strictness;
    options.order = order;
    code = hr_graph_propose_cache(graph, profile, &options, ret_graph, ret_places, error);
    if (ask->folder != NULL) /* entries were written there for their time */
        remove_empty(ask->folder, had);
    return code;
}

const char *cache_place_text(const struct hr_cache_place *place, char *text, size_t room)
{
    if (place->node == NULL)
        snprintf(text, room, "none");
    else
        snprintf(text, room, "after '%.60s' in %s%s", place->node,
                 place->in_folder ? "the folder" : "memory",
                 place->image != NULL ? ", as JPEGs" : "");
    return text;
}

bool cache_chosen(const struct hr_cache_places *places, struct hr_cache_place *ret_place)
{
    for (size_t i = 0; hr_cache_places_get(places, i, ret_place) == HR_OK; i++)
        if (ret_place->chosen)
            return true;
    return false;
}

bool cache_runner_up(const struct hr_cache_places *places,
                     struct hr_cache_place *ret_place)
{
    for (size_t i = 0; hr_cache_places_get(places, i, ret_place) == HR_OK; i++)
        if (!ret_place->chosen && ret_place->refused == NULL)
            return true;
    return false;
}

static void print_place(const struct hr_cache_place *place)
{
    char where[96], text[112], entry[32], total[32];

    snprintf(text, sizeof(text), "%s%s", cache_place_text(place, where, sizeof(where)),
             place->chosen ? " (chosen)" : "");
    printf("  %s%-46s%s %5.2fx", place->chosen ? term_bold(stdout) : "", text,
           place->chosen ? term_plain(stdout) : "", place->gain);
    if (place->node != NULL) {
        term_bytes(entry, sizeof(entry), place->entry_bytes);
        term_bytes(total, sizeof(total), place->total_bytes);
        printf("  %s a record, %s in all", entry, total);
        if (place->part < 1)
            printf(", room for %.0f %%", 100 * place->part);
        printf("; the epoch that fills it %.2fx, later ones %.2fx",
               place->fill_rate * place->gain / place->rate,
               place->hit_rate * place->gain / place->rate);
        if (place->variant == HR_VARIANT_PROCESSES)
            printf("; in %s", variants[place->variant]);
    }
    printf("\n");
    if (place->refused != NULL)
        printf("    refused: %s\n", place->refused);
}

#define SHOWN 4

void cache_report_print(const struct hr_cache_places *places, int64_t epochs)
{
    struct hr_cache_place place;
    size_t shown = 0;
    bool chosen = false;

    if (places == NULL)
        return;
    printf("  cache, rates over %lld epochs by the rate without one (predicted):\n",
           (long long)epochs);
    for (size_t i = 0;
         hr_cache_places_get(places, i, &place) == HR_OK && (shown < SHOWN || !chosen);
         i++) {
        chosen = chosen || place.chosen;
        if (shown >= SHOWN && !place.chosen)
            continue;
        print_place(&place);
        shown++;
    }
}

void cache_report_json(struct json *json, const struct hr_cache_places *places)
{
    struct hr_cache_place place;

    if (places == NULL)
        return;
    json_open(json, "caches", '[');
    for (size_t i = 0; hr_cache_places_get(places, i, &place) == HR_OK; i++) {
        json_open(json, NULL, '{');
        json_text(json, "after", place.node);
        json_text(json, "in",
                  place.node == NULL ? NULL
                  : place.in_folder  ? "folder"
                                     : "memory");
        json_bool(json, "chosen", place.chosen);
        json_text(json, "variant", variants[place.variant]);
        json_double(json, "entry_bytes", place.entry_bytes);
        json_double(json, "total_bytes", place.total_bytes);
        json_double(json, "part", place.part);
        json_double(json, "fill_rate", place.fill_rate);
        json_double(json, "hit_rate", place.hit_rate);
        json_double(json, "rate", place.rate);
        json_double(json, "gain", place.gain);
        json_text(json, "image", place.image);
        json_text(json, "refused", place.refused);
        json_close(json, '}');
    }
    json_close(json, ']');
}
