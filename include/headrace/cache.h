/*
 * headrace/cache.h - where in a graph a cache of records (flow.cache) pays, by a profile.
 *
 *     hr_cache_options_init(&options);
 *     options.epochs = 10;
 *     hr_graph_propose_cache(graph, profile, &options, &faster, &places, &error);
 *     hr_cache_places_get(places, 0, &best);    the runner-up is at 1
 *     ... run `faster`, or keep hr_graph_print(faster) ...
 *     hr_cache_places_free(places);
 */
#ifndef HR_CACHE_H
#define HR_CACHE_H

#include "headrace/engine.h"
#include "headrace/optimize.h"
#include "headrace/profile.h"

HR_BEGIN_DECLS

struct hr_cache_options {
    int64_t epochs; /* that the job will still make, > 0 */
    /* Bytes that a cache in memory may take; 0: a quarter of the memory that this process
     * may use; -1: none is proposed. */
    int64_t memory;
    const char *folder;   /* where entries may be kept; NULL: none is proposed there */
    int64_t folder_bytes; /* that they may take; 0: all but a twentieth of the disk */
    /* Random draws before the cache may stay the same for this many epochs; 0: no cache
     * is put after ops that draw. */
    int64_t refresh;
    /* Puts the nodes in the cheapest order first, by this rule and strictness, as
     * hr_graph_predict_order() does; NULL: as written. */
    const struct hr_optimize_options *order;
    /* How the graph would run; NULL: the better of threads and worker processes, for each
     * place. */
    const struct hr_iter_options *run;
    /* Images may also be kept as JPEGs of this quality, 1 to 100, in a fraction of the
     * bytes: image.encode stands before the cache and image.decode after it, which
     * changes their levels. 0: they are kept as they are. */
    int quality;
    /* How far records may differ. A cache within a composed group has the images made
     * there, and what follows works on these: in modes close and fast, pixels are others
     * then. */
    enum hr_strictness strictness;
    uint64_t reserved[7]; /* zero */
};

/* Defaults: 10 epochs, in memory. */
HR_API void hr_cache_options_init(struct hr_cache_options *options);

/* A place for a cache. Strings live as long as the places. */
struct hr_cache_place {
    const char *node;           /* that it is right after; NULL: no cache */
    bool in_folder;             /* else in memory */
    bool chosen;                /* the graph has it */
    enum hr_variant variant;    /* in which the graph was predicted to run */
    enum hr_strictness needs;   /* for what a cache there changes */
    double entry_bytes;         /* of a record */
    double total_bytes;         /* of all records */
    double part;                /* of the records that find room, 0 to 1 */
    double fill_rate, hit_rate; /* records/s while it fills, and after that */
    double rate;                /* mean over the epochs */
    double gain;                /* by the rate without a cache */
    const char *refused;  /* why it is not there; NULL: it is, or it was not tried */
    const char *image;    /* the field that is kept as a JPEG; NULL: none is */
    uint64_t reserved[6]; /* zero */
};
struct hr_cache_places;

/*
 * Predicts runs of the graph with a cache in each place where there may be one, by the
 * profile and by measuring how fast entries are written and read here, and puts the best
 * into the graph. *ret_graph is the new graph, frozen, or the same graph if no cache
 * gains at least 2 %; hr_graph_unref() it. *ret_places lists all places, the best first;
 * free it. Nodes keep their names, so records do not change unless `refresh` or `quality`
 * is given.
 * HR_ERR_STATE if the profile is of another graph, or the sources do not know how many
 * records they have; HR_ERR_IO if the folder cannot be written.
 */
HR_API HR_CHECK enum hr_err
hr_graph_propose_cache(struct hr_graph *graph, const struct hr_profile *profile,
                       const struct hr_cache_options *options,
                       struct hr_graph **ret_graph, struct hr_cache_places **ret_places,
                       struct hr_error *reterr);

/* HR_ERR_RANGE past the last. */
HR_API HR_CHECK enum hr_err
hr_cache_places_get(const struct hr_cache_places *places, size_t at,
                    struct hr_cache_place *ret_place);
/* NULL is allowed. */
HR_API void hr_cache_places_free(struct hr_cache_places *places);

HR_END_DECLS

#endif
