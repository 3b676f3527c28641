/*
 * graph/profile.h - what each node of a graph costs on one machine: a value that
 * hr_graph_profile measures, that is kept as JSON, and that opt chooses plans by.
 *
 * Nodes are found by fingerprint, so an edit of the graph invalidates only the nodes that
 * it changes and those after them.
 */
#ifndef HR_GRAPH_PROFILE_H
#define HR_GRAPH_PROFILE_H

#include "graph/plan.h"

#define HR_PROFILE_VERSION 4
#define HR_PROFILE_TEXT_MAX 128
/* For `fixed` and `width`: not known. */
#define HR_PROFILE_UNKNOWN (-1.0)

/* What the costs depend on besides the graph. */
struct hr_profile_machine {
    char cpu[HR_PROFILE_TEXT_MAX]; /* model name; "unknown" */
    char isa[16];                  /* hr__isa_name */
    uint32_t cores;                /* that the process may use */
    /* Measured; HR_PROFILE_UNKNOWN or 0: not known. */
    double copy;  /* bytes/s that a core copies in memory */
    double crowd; /* CPU time of work while all cores are busy, by that while one is;
                     of nodes that do not know theirs */
    double disk;  /* bytes/s that the sources read while they kept everything waiting */
    /* CPU time of a record that goes to a worker process and back, on both sides: ns, and
     * bytes/s of what it takes there and brings back. */
    double transfer_ns, transfer;
};

/*
 * A node. "Per record" is per record that enters it: the records of a batch op's input,
 * the batches of an unbatch op's.
 *
 * Nodes with records_in 0 were not measured. Order ops that are functions of a record's
 * number (shuffle, take, shard) cost nothing where they are above all filters.
 */
struct hr_profile_node {
    char *name; /* of the node in the graph */
    char *op;
    struct hr_hash128 fingerprint; /* hr_graph_node.fingerprint: op, parameters, inputs */
    uint64_t records_in;           /* that were measured */
    uint64_t records_out; /* that went on; children of an expansion, batches of a batch */
    uint64_t measured;    /* when: seconds since 1970 */
    double cpu_ns;        /* per record; in worker processes included */
    double wait_ns; /* per record: wall time without CPU (files, processes, locks), as far
                       as known without the time that it waited for a core */
    double deviation_ns; /* standard deviation of the CPU time of a record */
    double bytes_in; /* per record: of the fields that it reads, takes or updates, before.
                        Of a value that is not made yet: what it would have */
    double bytes_out; /* per record: of the fields that it writes or updates, after */
    double fixed;     /* 0 to 1: part of cpu_ns that does not depend on the bytes of the
                         record; HR_PROFILE_UNKNOWN where their sizes hardly vary */
    double width; /* half of the 95 % confidence interval of cpu_ns, as a part of cpu_ns;
                     HR_PROFILE_UNKNOWN where too few records were timed */
    /* User code; HR_PROFILE_UNKNOWN for built-in ops and where it was not measured. */
    double serial; /* 0 to 1: part of cpu_ns in which other threads cannot run user code,
                      such as with an interpreter's lock */
    double process_ns; /* CPU time per record in a worker process, transfer included */
    double crowd;   /* CPU time per record while all cores run the graph, by cpu_ns: they
                       share caches and memory. HR_PROFILE_UNKNOWN: as the machine's */
    double ordered; /* of nodes that see records in order, 0 to 1: part of cpu_ns in which
                       they do, one thread at a time; HR_PROFILE_UNKNOWN for others */
};

struct hr_profile {
    char file[256]; /* that it was read from; "": none */
    struct hr_profile_machine machine;
    char library[32];              /* hr_version() */
    struct hr_hash128 graph;       /* fingerprint of its output */
    enum hr_plan_variant variant;  /* where the nodes ran */
    bool fused;                    /* composed nodes shared their work */
    double seconds;                /* that it took */
    struct hr_profile_node *nodes; /* in the order of the graph */
    size_t node_count;
};

/* Frees what the profile holds. */
void hr__profile_finish(struct hr_profile *profile);

/* This machine, with rates unknown. */
void hr__profile_machine(struct hr_profile_machine *ret_machine);

/* Appends a node with these strings, copied, and everything else zero or unknown; NULL
 * when out of memory. */
HR_CHECK struct hr_profile_node *
hr__profile_add(struct hr_profile *profile, const char *name, const char *op);

/* True if both print the same text. */
bool hr__profile_equal(const struct hr_profile *a, const struct hr_profile *b);

/* Wall time per record. */
static inline double hr__profile_wall_ns(const struct hr_profile_node *node)
{
    return node->cpu_ns + node->wait_ns;
}

/* Records out for each record in; 1 where nothing was measured. */
static inline double hr__profile_kept(const struct hr_profile_node *node)
{
    return node->records_in > 0 ? (double)node->records_out / (double)node->records_in
                                : 1;
}

/*
 * Finds the nodes of a frozen graph: ret_nodes[i] is the profile's node with the
 * fingerprint of node i (where several have it, the one with its name), or NULL.
 * `ret_nodes` has room for graph->count pointers, which live as long as the profile.
 * Returns the number of nodes found.
 */
size_t hr__profile_match(const struct hr_graph *graph, const struct hr_profile *profile,
                         const struct hr_profile_node **ret_nodes);

/* Fails with HR_ERR_STATE: the profile has no node like this one. */
HR_CHECK enum hr_err
hr__profile_lacks(const struct hr_profile *profile, const struct hr_graph_node *of,
                  struct hr_error *reterr);

/*
 * Adds what `other` knows to `profile`: nodes of one are kept, nodes of both are averaged
 * by their numbers of records, where those of the older measurement count half for each
 * HR_PROFILE_HALF_LIFE seconds between the two. Rates of the machine that `profile` does
 * not know are taken over. HR_ERR_STATE if machine, library, variant or composition
 * differ; the profile is unchanged on failure.
 */
#define HR_PROFILE_HALF_LIFE ((uint64_t)30 * 24 * 3600)
HR_CHECK enum hr_err
hr__profile_merge(struct hr_profile *profile, const struct hr_profile *other,
                  struct hr_error *reterr);

/* The profile as indented JSON. hr__profile_parse() reads an equal profile from it. Marks
 * `out` as failed when out of memory. */
void hr__profile_print(const struct hr_profile *profile, struct hr_str *out);

/* Reads a profile. Checks all keys, types and ranges; on failure *reterr has file
 * (`name`), line and column. hr__profile_finish() the result. */
HR_CHECK enum hr_err
hr__profile_parse(const char *text, size_t bytes, const char *name,
                  struct hr_profile *ret_profile, struct hr_error *reterr);

#endif
