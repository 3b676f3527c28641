/*
 * graph/graph_private.h - shared by the files of graph/: how a graph was built.
 */
#ifndef HR_GRAPH_GRAPH_PRIVATE_H
#define HR_GRAPH_GRAPH_PRIVATE_H

#include "graph/graph.h"
#include "graph/graph_key_steps.h"
#include <stdatomic.h>

/* A parameter that the file declares, and the value it has. */
struct hr_graph_declared {
    const char *name;        /* the file's */
    const char *type, *help; /* the file's or static; help may be NULL */
    char *fallback;          /* as text, or NULL */
    char **choices;          /* as text; NULL if any value is allowed */
    size_t choice_count;
    bool required;
    struct hr_doc *value; /* override or default; of kind NULL if neither */
    bool overridden;
};

struct hr_graph_private {
    atomic_uint refs;
    size_t node_room;
    struct hr_doc *written; /* the whole file; NULL for a graph built by calls */
    struct hr_doc *about;   /* title and description of a copy's file; NULL: none */
    size_t written_nodes;   /* number of nodes in it */
    struct hr_graph_declared *declared;
    size_t declared_count;
    const char *output; /* of `written`, or NULL */
};

/* graph.c: appends a node. Takes ownership of `given` (may be NULL), also on failure. */
HR_CHECK enum hr_err
hr__graph_append(struct hr_graph *graph, const char *op, const char *name,
                 const uint32_t *inputs, size_t input_count, struct hr_doc *given,
                 int line, int column, struct hr_error *reterr);
/* The default name of the node at `at`: its op, and from the second node of that op on
 * its place among them ("image.flip2"), or the next place whose name is free. NULL if out
 * of memory. */
HR_CHECK char *
hr__graph_auto_name(const struct hr_graph *graph, size_t at, const char *op);
/* Fails with the nearest name. */
HR_CHECK enum hr_err hr__graph_find(const struct hr_graph *graph, const char *name,
                                    uint32_t *ret_node, struct hr_error *reterr);
void hr__graph_destroy(struct hr_graph *graph);

/* graph_params.c */
HR_CHECK enum hr_err
hr__graph_declare(struct hr_graph *graph, const struct hr_doc *params,
                  const struct hr_graph_param *given, size_t given_count,
                  struct hr_error *reterr);
void hr__graph_declared_finish(struct hr_graph_private *private);
/* A copy of `written` with ${name} replaced. */
HR_CHECK enum hr_err
hr__graph_substitute(const struct hr_graph *graph, const struct hr_doc *written,
                     struct hr_doc **ret_doc, struct hr_error *reterr);

/* graph_groups.c: replaces the groups (apply, one_of) in the list of nodes of a file by
 * their steps, which have the parameter `when`. */
HR_CHECK enum hr_err
hr__graph_open_groups(struct hr_doc *pipeline, const char *file, struct hr_error *error);

/* graph_when.c: reads the parameter `when` of a node. */
HR_CHECK enum hr_err
hr__graph_read_when(struct hr_graph_node *node, const struct hr_doc *value,
                    struct hr_error *reterr);
/* Fails if the op cannot be left out for some records. Needs the node's fields. */
HR_CHECK enum hr_err
hr__graph_check_when(const struct hr_graph_node *n, struct hr_error *error);
/* Makes `after` the schema of records that may skip the node. Sizes that differ become
 * unknown; with `largest`, those known of both become the larger. */
HR_CHECK enum hr_err
hr__graph_join_when(const struct hr_graph_node *n, const struct hr_schema *before,
                    bool largest, struct hr_schema *after, struct hr_error *error);

/* graph_check.c: checks everything that needs no schema. `order` (count entries) becomes
 * a topological order. */
HR_CHECK enum hr_err hr__graph_check(struct hr_graph *graph, uint32_t *order,
                                     uint32_t *ret_output, struct hr_error *reterr);

#define HR_KEY_INDEX SIZE_MAX
/* Of a node: how the source that knows a key is found. */
struct hr_key_way {
    bool asked, knows, checked;
    size_t input;               /* where it leads on */
    size_t key;                 /* of a source: the number of the key, or HR_KEY_INDEX */
    struct hr_key_steps *steps; /* of a source: what makes the key, or NULL */
};

/* graph_keys.c: the keys of the records of an input of ORDER or ZIP node `node`, which
 * chooses or joins by them: the field of that name, or without one the key that sources
 * have by it. HR_ERR_ARGUMENT with the names that are known. Call
 * hr__graph_keys_finish() also after failure. */
struct hr_graph_keys {
    struct hr_keys base;
    const struct hr_graph *graph;
    uint32_t node;  /* the input */
    const char *by; /* NULL: no keys are asked for */
    bool by_index;  /* by the number in the source, or in the inputs of a merge in turn */
    struct hr_key_way *ways;      /* by node */
    struct hr_key_runner *runner; /* if nodes make keys */
};
HR_CHECK enum hr_err
hr__graph_keys(const struct hr_graph *graph, uint32_t node, size_t input,
               struct hr_graph_keys *ret_keys, struct hr_error *error);
void hr__graph_keys_finish(struct hr_graph_keys *keys);

/* graph_pairs.c: fails if a zip would join records that are not known to belong together.
 * Needs the record counts of the nodes before it. */
HR_CHECK enum hr_err
hr__graph_check_pairs(const struct hr_graph *graph, uint32_t zip, struct hr_error *error);

/* graph_names.c: fails if the files of two inputs of a zip have like names, and would be
 * paired with others. */
HR_CHECK enum hr_err hr__graph_check_names(const struct hr_graph *graph, uint32_t zip,
                                           size_t input, struct hr_error *error);

/* graph_cache.c: fails if a cache cannot be where it is; tells caches what their records
 * are, and sets draws_for. Needs fingerprints. */
HR_CHECK enum hr_err hr__graph_check_caches(struct hr_graph *graph, const uint32_t *order,
                                            struct hr_error *error);
/* graph_fingerprint.c: of what makes the records after a node, from their identities:
 * like its fingerprint, but ORDER nodes, which only choose and order records, do not
 * count, unless a join by keys numbers the records after them. `order` as above. */
HR_CHECK enum hr_err
hr__graph_content(const struct hr_graph *graph, const uint32_t *order, uint32_t node,
                  struct hr_hash128 *ret_content);

/* graph_compose.c: groups and where values are made. Needs schemas and record counts. */
HR_CHECK enum hr_err
hr__graph_compose(struct hr_graph *graph, const uint32_t *order, struct hr_error *reterr);

/* graph_fingerprint.c */
HR_CHECK enum hr_err hr__graph_identify(struct hr_graph *graph, const uint32_t *order,
                                        struct hr_error *reterr);

/* graph.c: sets the error's place to the value in the file that has this text or this
 * name, unless it has a place. */
void hr__graph_point_at(const struct hr_graph_node *n, const char *text,
                        struct hr_error *error);

/* Prefixes a message about the graph file with "file:line:column: ". Called once, last.
 */
void hr__graph_tell_place(const struct hr_graph *graph, struct hr_error *error);

#endif
