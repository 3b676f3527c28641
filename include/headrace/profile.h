/*
 * headrace/profile.h - measures what each node of a graph costs on this machine.
 *
 *     hr_profile_options_init(&options);
 *     hr_graph_profile(graph, &options, &profile, &error);
 *     for (at = 0; hr_profile_node(profile, at, &node) == HR_OK; at++)
 *         ... node.cpu_ns ...
 *     hr_profile_free(profile);
 */
#ifndef HR_PROFILE_H
#define HR_PROFILE_H

#include "headrace/dataset.h"
#include "headrace/engine.h"

HR_BEGIN_DECLS

struct hr_profile;

struct hr_profile_options {
    uint64_t seed;       /* of order and augmentation, below 2^63 */
    int64_t records_max; /* stop after this many records of the sources; 0: no limit */
    double seconds_max;  /* measure about this long at most; 0: 5 */
    double width;        /* stop once the 95 % confidence intervals are within this part,
                            those of the sum of costs and of each node with a fifth of
                            it; others may be off by a fifth of this part of the sum.
                            0: 0.05 */
    enum hr_variant variant; /* where nodes run */
    int threads;             /* unless inline; 0: the CPUs this process may use */
    bool fuse;               /* compose nodes. false: each makes its own result, so each
                                has its own cost, where that changes no byte */
    /* Called several times per second with the records that the sources gave, and a guess
     * at how many they will give; NULL: none. */
    hr_progress_fn *progress;
    void *user;
    uint64_t reserved[8]; /* zero */
};

/* Defaults: inline, not composed, 5 seconds, a width of 0.05. */
HR_API void hr_profile_options_init(struct hr_profile_options *options);

/*
 * Runs the graph, over as many epochs as needed, and measures its nodes. What comes
 * before the first batch is not counted, nor is what comes while the process grows by
 * more than 16 MB a second, for at most seconds_max. Freezes the graph if necessary. Bad
 * records are skipped. Free *ret_profile with hr_profile_free(). HR_ERR_CANCELLED if
 * `progress` returned false; HR_ERR_STATE if no record reaches the output: the message
 * names the node that dropped them; HR_ERR_TIMEOUT if no batch was complete in time.
 *
 * If nodes run inline, the same records are run once more in threads on all cores, for
 * what nodes cost there; at most seconds_max again. In graphs with user code, that is
 * measured instead: with the lock of its host, and in worker processes if there is a host
 * to start them, about as long again for each.
 */
HR_API HR_CHECK enum hr_err
hr_graph_profile(struct hr_graph *graph, const struct hr_profile_options *options,
                 struct hr_profile **ret_profile, struct hr_error *reterr);

/* What the nodes of a run have cost since it was opened, from its own meters, which are
 * always on: the same, without running anything for it, but with the first calls of
 * nodes, and as long as the costs are not sure, with a `width` that says so. */
HR_API HR_CHECK enum hr_err
hr_iter_profile(const struct hr_iter *iter, struct hr_profile **ret_profile,
                struct hr_error *reterr);

/* Reads what hr_profile_print wrote (docs/formats/profile.md); `name` is used in
 * messages. */
HR_API HR_CHECK enum hr_err
hr_profile_parse(const char *text, size_t bytes, const char *name,
                 struct hr_profile **ret_profile, struct hr_error *reterr);

/* The profile as JSON; free with hr_free(). */
HR_API HR_CHECK enum hr_err hr_profile_print(const struct hr_profile *profile,
                                             char **ret_json, struct hr_error *reterr);

/* NULL is allowed. */
HR_API void hr_profile_free(struct hr_profile *profile);

/* A node; docs/formats/profile.md describes the numbers. Times and bytes are per record
 * that enters the node. Strings live as long as the profile. */
struct hr_profile_info {
    const char *node, *op;
    uint64_t records_in, records_out;
    double cpu_ns, wait_ns, deviation_ns;
    double bytes_in, bytes_out;
    double fixed, width;       /* -1: not known */
    double serial, process_ns; /* of user code in threads and in processes; the same */
    double crowd;              /* cpu_ns while all cores compute, by cpu_ns; the same */
    double ordered;            /* part of cpu_ns that one thread at a time does, in order;
                                  the same */
    uint64_t reserved[6];      /* zero */
};
/* Nodes in the order of the graph; HR_ERR_RANGE past the last. */
HR_API HR_CHECK enum hr_err hr_profile_node(const struct hr_profile *profile, size_t at,
                                            struct hr_profile_info *ret_info);

/* Adds what `other` knows to `profile`: nodes that only one has are kept, those of both
 * are averaged by their numbers of records, of which older ones count less. HR_ERR_STATE
 * if they are of different machines, libraries or variants; the profile is unchanged
 * then. */
HR_API HR_CHECK enum hr_err
hr_profile_merge(struct hr_profile *profile, const struct hr_profile *other,
                 struct hr_error *reterr);

/*
 * Saved profiles: a folder with a file for each node, found by the node's fingerprint,
 * the machine, the library and how it ran, so that an edit of a graph leaves the others
 * valid. `folder` NULL: "profiles" in $HEADRACE_CACHE, else in $XDG_CACHE_HOME/headrace,
 * else in
 * ~/.cache/headrace; an empty HEADRACE_CACHE turns saving off. Any number of processes
 * may use a folder at once. Beyond HR_SAVED_FILES_MAX files or HR_SAVED_BYTES_MAX bytes
 * the oldest are removed.
 */
#define HR_SAVED_FILES_MAX 4096
#define HR_SAVED_BYTES_MAX (8 << 20)

/* Saves what the profile knows of the graph's nodes, merged with what is there. A damaged
 * file is replaced. Freezes the graph if necessary. HR_ERR_IO if the folder cannot be
 * written, HR_ERR_NOT_FOUND if there is none; the message says what to do, and nothing is
 * lost but the time to measure again. */
HR_API HR_CHECK enum hr_err
hr_profile_save(const struct hr_profile *profile, struct hr_graph *graph,
                const char *folder, struct hr_error *reterr);

/* The saved profile of all nodes of the graph, for this machine and the `variant` and
 * `fuse` of the options (NULL: the defaults). HR_ERR_NOT_FOUND if one is missing,
 * HR_ERR_FORMAT if one is damaged; the message names the node, and the file. */
HR_API HR_CHECK enum hr_err
hr_profile_load(struct hr_graph *graph, const struct hr_profile_options *options,
                const char *folder, struct hr_profile **ret_profile,
                struct hr_error *reterr);

/* When the oldest of its nodes was measured: seconds since 1970. */
HR_API uint64_t hr_profile_measured(const struct hr_profile *profile);

/* Seconds that were measured. */
HR_API double hr_profile_seconds(const struct hr_profile *profile);

HR_END_DECLS

#endif
