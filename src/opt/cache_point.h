/*
 * opt/cache_point.h - where in a graph a cache of records pays, and what a run of several
 * epochs gains by it. Pure.
 *
 * In an epoch that fills the cache a record costs its work and the write of its entry.
 * Later a record that found room costs the read of its entry instead of the work before
 * the cache. Whether a cache may stand in a place at all (random draws, batches) is
 * decided where the graph is frozen (graph/graph_cache.c).
 */
#ifndef HR_OPT_CACHE_POINT_H
#define HR_OPT_CACHE_POINT_H

#include "opt/cost.h"

/* Where entries are kept. Rates are of one thread. */
struct hr_cache_medium {
    bool folder;               /* else memory */
    double room;               /* bytes that it may take */
    double read_ns, read_rate; /* of an entry, and bytes/s; read_rate 0: no bytes move */
    double write_ns, write_rate; /* the same; 0: takes no time */
    double device, device_from;  /* bytes/s of the device once all entries take more than
                                    `device_from` bytes; 0: never waited for */
};

/* An image that is kept as a file, and decoded when it comes back. */
struct hr_cache_file {
    double bytes;                /* of the file; 0: there is no such image */
    double pixels;               /* bytes of the image, in whose place it is */
    double encode_ns, decode_ns; /* CPU time */
};

struct hr_cache_job {
    double epochs;  /* that the job will still make; >= 1 */
    double refresh; /* random draws before the cache change after this many; 0: never */
    double records; /* of the largest source in an epoch; > 0 */
};

struct hr_cache_point {
    uint32_t node; /* the cache is right after it; HR_NO_NODE: none */
    size_t medium;
    bool file;        /* its image is kept as a file */
    double bytes;     /* of an entry */
    double total;     /* of all entries */
    double part;      /* of the records that find room, 0 to 1 */
    double fill, hit; /* records/s in epochs that fill it, and in the others */
    double rate;      /* mean over the epochs */
    double sure;      /* `rate` by that without a cache, if nodes take as little as their
                         confidence intervals allow */
};

/*
 * Bytes/s of a long fill, by one that was measured: ns[i] is the time of part i, of
 * `bytes` bytes each; 0 if it took no time. Memory may come in two kinds: what was in use
 * a moment ago is ready, and the rest the host of a virtual machine must find first. The
 * part of a long fill that is ready is small, so the slowest quarter counts. `count` > 0.
 */
double hr__cache_fill_rate(const double *ns, size_t count, double bytes);

/* The bytes of a record after the node: its fields of known size, and what the profile
 * says of the others. */
double hr__cache_entry_bytes(const struct hr_graph *graph,
                             const struct hr_cost_fact *facts, uint32_t node);

/* The image of a record that can be kept as a JPEG: its only one, of uint8, channels
 * last. NULL: it has none, or several. */
const struct hr_field *hr__cache_image(const struct hr_schema *schema);

/*
 * All points of a plan of the graph that the facts are of, the best first; no cache is
 * one of them. Of equal rates the one with fewer bytes comes first. `split`: of each
 * node, the facts of all with its values made after it, as a cache there has them; NULL
 * where that is not known, or if nothing is. `files`: of each node; NULL: no images are
 * kept as files. `ret_points` has room for (2 * graph->count * media_count + 1).
 * HR_ERR_MEMORY or HR_ERR_STATE as hr__cost_plan().
 */
HR_CHECK enum hr_err
hr__cache_points(const struct hr_plan *plan, const struct hr_cost_fact *facts,
                 const struct hr_cost_machine *machine, const struct hr_cache_job *job,
                 const struct hr_cache_medium *media, size_t media_count,
                 const struct hr_cost_fact *const *split,
                 const struct hr_cache_file *files, struct hr_cache_point *ret_points,
                 size_t *ret_count, struct hr_error *reterr);

#endif
