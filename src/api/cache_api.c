/*
 * api/cache_api.c - include/headrace/cache.h: predicts caches (opt/cache_point.h), and
 * takes the best that the graph allows.
 */
#include "headrace/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "api/cache_files.h"
#include "api/cache_rates.h"
#include "api/cache_split.h"
#include "api/prediction.h"
#include "core/alloc.h"
#include "core/cpu.h"
#include "core/file.h"
#include "engine/engine.h"

#define OP "flow.cache"
#define EPOCHS 10
#define EPOCHS_MAX 1000000000
#define LEAST_GAIN 1.02
#define MEDIA_MAX 2
#define VARIANTS 2

struct place {
    struct hr_cache_point point;
    enum hr_variant variant;
    bool chosen;
    char refused[sizeof((struct hr_error *)0)->message];
};

struct hr_cache_places {
    struct hr_graph *graph; /* a reference; in the order that was asked for */
    struct hr_cache_medium media[MEDIA_MAX];
    size_t media_count;
    double rate; /* without a cache */
    struct place *items;
    size_t count;
};

struct proposing {
    struct hr_graph *graph;
    const struct hr_cache_options *options;
    struct hr_cost_machine machine;
    struct hr_cost_fact *facts;
    struct hr_cache_job job;
    struct hr_cost_fact **split; /* per node: with a cache after it, or NULL */
    struct hr_cache_file *files; /* per node; NULL: images are kept as they are */
    struct hr_cache_places *places;
    struct hr_error *error;
};

void hr_cache_options_init(struct hr_cache_options *options)
{
    memset(options, 0, sizeof *options);
    options->epochs = EPOCHS;
}

static enum hr_err check(const struct hr_cache_options *o, struct hr_error *reterr)
{
    if (o->epochs < 1 || o->epochs > EPOCHS_MAX)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "epochs must be 1 to %d, not %lld",
                        EPOCHS_MAX, (long long)o->epochs);
    if (o->refresh < 0 || o->refresh > EPOCHS_MAX)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "refresh must be 0 to %d, not %lld",
                        EPOCHS_MAX, (long long)o->refresh);
    if (o->memory < -1 || o->folder_bytes < 0)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "memory must be -1 or more, and folder_bytes 0 or more");
    if (o->quality < 0 || o->quality > 100)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "quality must be 1 to 100, not %d",
                        o->quality);
    if ((unsigned)o->strictness > HR_STRICTNESS_RELAXED)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "strictness is no value of its enum: initialise the options with "
                        "hr_cache_options_init");
    if (o->memory == -1 && o->folder == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "a cache needs memory or a folder: neither is allowed");
    return HR_OK;
}

/* ---- where entries may be ---- */

static double memory_room(const struct hr_cache_options *o)
{
    return o->memory > 0 ? (double)o->memory : (double)(hr__memory_bytes() / 4);
}

static double folder_room(const struct hr_cache_options *o)
{
    struct statvfs disk;

    if (o->folder_bytes > 0)
        return (double)o->folder_bytes;
    if (statvfs(o->folder, &disk) != 0)
        return 0;
    return (double)disk.f_frsize * ((double)disk.f_bavail - (double)disk.f_blocks / 20);
}

static enum hr_err add_medium(struct proposing *p, const char *folder)
{
    struct hr_cache_medium medium = {.folder = folder != NULL};

    HR_TRY(hr__cache_rates(folder, &medium, p->error));
    medium.room = folder != NULL ? folder_room(p->options) : memory_room(p->options);
    if (folder != NULL) { /* what memory does not hold comes from the disk again */
        medium.device = p->machine.disk;
        medium.device_from = (double)hr__memory_bytes() / 2;
    }
    p->places->media[p->places->media_count++] = medium;
    return HR_OK;
}

static enum hr_err add_media(struct proposing *p)
{
    if (p->options->memory >= 0)
        HR_TRY(add_medium(p, NULL));
    return p->options->folder != NULL ? add_medium(p, p->options->folder) : HR_OK;
}

static enum hr_err add_split(struct proposing *p)
{
    p->split = hr__calloc(p->graph->count, sizeof *p->split);
    if (p->split == NULL)
        return hr__fail(p->error, HR_ERR_MEMORY, "out of memory");
    return hr__cache_split(p->graph, p->options->refresh > 0, p->split, p->error);
}

static enum hr_err add_files(struct proposing *p)
{
    if (p->options->quality == 0)
        return HR_OK;
    p->files = hr__calloc(p->graph->count, sizeof *p->files);
    if (p->files == NULL)
        return hr__fail(p->error, HR_ERR_MEMORY, "out of memory");
    return hr__cache_files(p->graph, p->options->quality, p->files, p->error);
}

/* ---- predictions ---- */

/* Of the largest source; 0 if one does not know. */
static double records_of(const struct hr_graph *graph)
{
    int64_t most = 0;

    for (uint32_t i = 0; i < graph->count; i++) {
        if (graph->nodes[i].input_count > 0)
            continue;
        if (graph->nodes[i].schema.records < 0)
            return 0;
        if (graph->nodes[i].schema.records > most)
            most = graph->nodes[i].schema.records;
    }
    return (double)most;
}

static enum hr_err
add_points(struct proposing *p, const struct hr_plan *plan, enum hr_variant variant)
{
    struct hr_cache_places *places = p->places;
    size_t room = 2 * p->graph->count * places->media_count + 1, count = 0;
    struct hr_cache_point *points = hr__calloc(room, sizeof *points);
    enum hr_err code;

    if (points == NULL)
        return hr__fail(p->error, HR_ERR_MEMORY, "out of memory");
    code = hr__cache_points(
        plan, p->facts, &p->machine, &p->job, places->media, places->media_count,
        (const struct hr_cost_fact *const *)p->split, p->files, points, &count, p->error);
    for (size_t i = 0; i < count; i++)
        places->items[places->count++] =
            (struct place){.point = points[i], .variant = variant};
    hr__free(points);
    return code;
}

static enum hr_err add_variant(struct proposing *p, const struct hr_iter_options *run)
{
    struct hr_plan plan;
    struct hr_sizes sizes;
    enum hr_err code;

    HR_TRY(hr__engine_plan(p->graph, run, NULL, &plan, &sizes, p->error));
    code = add_points(p, &plan, run->variant);
    hr__plan_finish(&plan);
    return code;
}

static int by_rate(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->point.rate != y->point.rate)
        return x->point.rate > y->point.rate ? -1 : 1;
    if (x->point.total != y->point.total)
        return x->point.total > y->point.total ? 1 : -1;
    return (int)x->variant - (int)y->variant;
}

/* Of a place that is there once per variant, keeps the best. */
static void drop_repeated(struct hr_cache_places *places)
{
    size_t kept = 0;

    for (size_t i = 0; i < places->count; i++) {
        const struct hr_cache_point *point = &places->items[i].point;
        bool seen = false;

        for (size_t k = 0; k < kept && !seen; k++)
            seen = places->items[k].point.node == point->node &&
                   places->items[k].point.file == point->file &&
                   places->items[k].point.medium == point->medium;
        if (!seen)
            places->items[kept++] = places->items[i];
    }
    places->count = kept;
    for (size_t i = 0; i < kept; i++)
        if (places->items[i].point.node == HR_NO_NODE)
            places->rate = places->items[i].point.rate;
}

static enum hr_err predict_all(struct proposing *p)
{
    struct hr_cache_places *places = p->places;
    struct hr_iter_options run;

    places->items = hr__calloc(VARIANTS * (2 * p->graph->count * places->media_count + 1),
                               sizeof *places->items);
    if (places->items == NULL)
        return hr__fail(p->error, HR_ERR_MEMORY, "out of memory");
    hr_iter_options_init(&run);
    if (p->options->run != NULL)
        HR_TRY(add_variant(p, p->options->run));
    else
        for (int i = 0; i < VARIANTS; i++) {
            run.variant = i == 0 ? HR_VARIANT_THREADS : HR_VARIANT_PROCESSES;
            HR_TRY(add_variant(p, &run));
        }
    qsort(places->items, places->count, sizeof *places->items, by_rate);
    drop_repeated(places);
    return HR_OK;
}

/* ---- the graph ---- */

/* Parameters of the cache; NULL when out of memory. */
static struct hr_doc *params_of(const struct proposing *p, bool folder)
{
    const struct hr_cache_options *o = p->options;
    int64_t budget = folder ? o->folder_bytes : o->memory;
    struct hr_doc *map = hr__doc_new(HR_DOC_MAP);
    enum hr_err code = map != NULL ? HR_OK : HR_ERR_MEMORY;

    if (code == HR_OK && folder)
        code = hr__doc_set(map, "folder", hr__doc_string(o->folder));
    if (code == HR_OK && budget > 0)
        code = hr__doc_set(map, "budget", hr__doc_int(budget));
    if (code == HR_OK && o->refresh > 0)
        code = hr__doc_set(map, "refresh", hr__doc_int(o->refresh));
    if (code == HR_OK)
        return map;
    hr__doc_destroy(map);
    return NULL;
}

/* A cache within a composed group makes images there, which are others then. JPEGs were
 * asked for, and are others anyway. */
static bool would_change(const struct proposing *p, struct place *place)
{
    const struct hr_graph_node *n = &p->graph->nodes[place->point.node];

    if (place->point.file || n->passed_strictness <= p->options->strictness)
        return false;
    snprintf(place->refused, sizeof place->refused,
             "images would be made there, with other pixels than the ops after it make "
             "of the whole: allow that with strictness %s, or decode with mode exact",
             hr__strictness_name(n->passed_strictness));
    return true;
}

/* Whether the gain is more than what the costs may be off by. */
static bool is_sure(struct place *place)
{
    if (place->point.sure >= LEAST_GAIN)
        return true;
    snprintf(place->refused, sizeof place->refused,
             "the gain is within what the profile may be off by: profile for longer, or "
             "while the machine is idle");
    return false;
}

/* *ret_graph stays NULL if the graph cannot have a cache there, with the reason in
 * place->refused. */
static enum hr_err
try_place(struct proposing *p, struct place *place, struct hr_graph **ret_graph)
{
    bool folder = p->places->media[place->point.medium].folder;
    struct hr_doc *given = params_of(p, folder);
    struct hr_graph *other = NULL;
    struct hr_error error = {0};

    if (given == NULL)
        return hr__fail(p->error, HR_ERR_MEMORY, "out of memory");
    if (place->point.file)
        HR_TRY(hr__cache_insert_file(p->graph, place->point.node, p->options->quality,
                                     given, &other, p->error));
    else
        HR_TRY(
            hr__graph_insert(p->graph, place->point.node, OP, given, &other, p->error));
    if (hr__graph_freeze(other, &error) == HR_OK) {
        *ret_graph = other;
        place->chosen = true;
        return HR_OK;
    }
    hr__graph_unref(other);
    if (error.code == HR_ERR_MEMORY || error.code == HR_ERR_IO) {
        *p->error = error;
        return error.code;
    }
    memcpy(place->refused, error.message, sizeof place->refused);
    return HR_OK;
}

static enum hr_err take_best(struct proposing *p, struct hr_graph **ret_graph)
{
    struct hr_cache_places *places = p->places;

    for (size_t i = 0; *ret_graph == NULL && i < places->count; i++) {
        struct place *place = &places->items[i];

        if (place->point.node == HR_NO_NODE ||
            place->point.rate < LEAST_GAIN * places->rate)
            break;
        if (is_sure(place) && !would_change(p, place))
            HR_TRY(try_place(p, place, ret_graph));
    }
    if (*ret_graph != NULL)
        return HR_OK;
    for (size_t i = 0; i < places->count; i++)
        if (places->items[i].point.node == HR_NO_NODE)
            places->items[i].chosen = true;
    hr__graph_ref(p->graph);
    *ret_graph = p->graph;
    return HR_OK;
}

static enum hr_err propose(struct proposing *p, const struct hr_profile *profile,
                           struct hr_graph **ret_graph)
{
    HR_TRY(hr__ordered_facts(p->graph, profile, p->options->order, &p->places->graph,
                             &p->facts, p->error));
    p->graph = p->places->graph;
    hr__cost_machine(profile, &p->machine);
    p->job = (struct hr_cache_job){.epochs = (double)p->options->epochs,
                                   .refresh = (double)p->options->refresh,
                                   .records = records_of(p->graph)};
    if (p->job.records == 0)
        return hr__fail(p->error, HR_ERR_STATE,
                        "the sources do not know how many records they have, so it is "
                        "not known what a cache would hold");
    HR_TRY(add_media(p));
    HR_TRY(add_split(p));
    HR_TRY(add_files(p));
    HR_TRY(predict_all(p));
    return take_best(p, ret_graph);
}

static void finish(struct proposing *p)
{
    for (size_t i = 0; p->split != NULL && i < p->graph->count; i++)
        hr__free(p->split[i]);
    hr__free(p->split);
    hr__free(p->files);
    hr__free(p->facts);
}

enum hr_err
hr_graph_propose_cache(struct hr_graph *graph, const struct hr_profile *profile,
                       const struct hr_cache_options *options,
                       struct hr_graph **ret_graph, struct hr_cache_places **ret_places,
                       struct hr_error *reterr)
{
    struct hr_error error = {0};
    struct hr_cache_options defaults;
    struct hr_graph *found = NULL;
    struct proposing p = {.graph = graph, .options = options, .error = &error};
    enum hr_err code;

    if (graph == NULL || profile == NULL || ret_graph == NULL || ret_places == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "graph, profile, ret_graph and ret_places must not be NULL");
    hr_cache_options_init(&defaults);
    p.options = options != NULL ? options : &defaults;
    HR_TRY(check(p.options, reterr));
    HR_TRY(hr__graph_freeze(graph, reterr));
    p.places = hr__calloc(1, sizeof *p.places);
    if (p.places == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    code = propose(&p, profile, &found);
    finish(&p);
    if (code != HR_OK) {
        hr_cache_places_free(p.places);
        if (reterr != NULL)
            *reterr = error;
        return code;
    }
    *ret_graph = found;
    *ret_places = p.places;
    return HR_OK;
}

/* ---- the result ---- */

enum hr_err hr_cache_places_get(const struct hr_cache_places *places, size_t at,
                                struct hr_cache_place *ret_place)
{
    const struct place *place;

    if (places == NULL || ret_place == NULL)
        return HR_ERR_ARGUMENT;
    if (at >= places->count)
        return HR_ERR_RANGE;
    place = &places->items[at];
    *ret_place = (struct hr_cache_place){
        .variant = place->variant,
        .chosen = place->chosen,
        .entry_bytes = place->point.bytes,
        .total_bytes = place->point.total,
        .part = place->point.part,
        .fill_rate = place->point.fill,
        .hit_rate = place->point.hit,
        .rate = place->point.rate,
        .gain = places->rate > 0 ? place->point.rate / places->rate : 1,
        .refused = place->refused[0] != '\0' ? place->refused : NULL,
    };
    if (place->point.node != HR_NO_NODE) {
        ret_place->needs = places->graph->nodes[place->point.node].passed_strictness;
        ret_place->node = places->graph->nodes[place->point.node].name;
        ret_place->in_folder = places->media[place->point.medium].folder;
        if (place->point.file)
            ret_place->image =
                hr__cache_image(&places->graph->nodes[place->point.node].schema)->name;
    }
    return HR_OK;
}

void hr_cache_places_free(struct hr_cache_places *places)
{
    if (places == NULL)
        return;
    hr__graph_unref(places->graph);
    hr__free(places->items);
    hr__free(places);
}
