/*
 * headrace/graph.h - describe, save and identify an input pipeline.
 *
 * A graph is built from a YAML or JSON file, or call by call. Freezing checks all of it
 * (including shapes and dtypes, before any data is read), opens its sources, and makes it
 * a value: a frozen graph never changes and may be read from any thread; equal
 * fingerprints mean equal records.
 */
#ifndef HR_GRAPH_H
#define HR_GRAPH_H

#include "headrace/base.h"

HR_BEGIN_DECLS

struct hr_graph;

/* How far two ways of making a value may differ. */
enum hr_strictness {
    HR_STRICTNESS_EXACT,   /* not at all */
    HR_STRICTNESS_CLOSE,   /* by the rounding of an interpolation */
    HR_STRICTNESS_RELAXED, /* visibly; alike as samples of a distribution */
};

/* A struct, so that nodes and integers cannot be confused. */
struct hr_node {
    uint32_t id;
};

/* Creates an empty graph with one reference. NULL when out of memory. */
HR_API HR_CHECK struct hr_graph *hr_graph_create(void);

/* Add or drop a reference; the last one frees the graph. NULL is allowed. Thread-safe. */
HR_API struct hr_graph *hr_graph_ref(struct hr_graph *graph);
HR_API void hr_graph_unref(struct hr_graph *graph);

/* A value for a parameter of the file ("-p name=value"), written as in YAML. */
struct hr_graph_param {
    const char *name, *value;
};

/* Reads a graph file (YAML or JSON) and replaces ${name} by `params` or the file's
 * defaults. Relative paths in it are relative to the working directory. On failure
 * *reterr has file, line, column, node, parameter, and the nearest valid name. */
HR_API HR_CHECK enum hr_err
hr_graph_load(const char *path, const struct hr_graph_param *params, size_t param_count,
              struct hr_graph **ret_graph, struct hr_error *reterr);

/* The same from memory; `name` is used in messages, and a name ending in ".json" means
 * JSON. */
HR_API HR_CHECK enum hr_err
hr_graph_parse(const char *text, size_t bytes, const char *name,
               const struct hr_graph_param *params, size_t param_count,
               struct hr_graph **ret_graph, struct hr_error *reterr);

/* Appends op `op`, which reads from the nodes `inputs` (none for a source). `params` is a
 * YAML or JSON map as text; NULL means defaults. `name` may be NULL: the node is then
 * named after the op, with a number if taken. On failure the graph and *ret_node are
 * unchanged. HR_ERR_STATE if frozen. */
HR_API HR_CHECK enum hr_err
hr_graph_add(struct hr_graph *graph, const char *op, const char *name,
             const struct hr_node *inputs, size_t input_count, const char *params,
             struct hr_node *ret_node, struct hr_error *reterr);

/* Checks the graph, infers schemas, opens sources. The output is the node that no other
 * node reads; there must be exactly one. Freezing a frozen graph does nothing. On failure
 * the graph is unchanged. */
HR_API HR_CHECK enum hr_err
hr_graph_freeze(struct hr_graph *graph, struct hr_error *reterr);

/* 128 bits as 32 hex digits, equal for graphs that give the same records. Covers ops,
 * versions, parameters, connections and source identity; not the graph file's name, node
 * names, comments, key order, or rank and world of a shard. HR_ERR_STATE unless the graph
 * is frozen. */
#define HR_FINGERPRINT_BYTES 33
HR_API HR_CHECK enum hr_err
hr_graph_fingerprint(const struct hr_graph *graph, char ret_text[HR_FINGERPRINT_BYTES]);

enum hr_graph_format {
    HR_GRAPH_YAML,
    HR_GRAPH_JSON,
};

/* The graph as NUL-terminated text that reads back as the same graph; free with
 * hr_free(). A graph from a file keeps its params and ${} as written. A frozen graph
 * also has the names of the classes that its sources found. */
HR_API HR_CHECK enum hr_err
hr_graph_print(const struct hr_graph *graph, enum hr_graph_format format, char **ret_text,
               struct hr_error *reterr);

/* Frees memory that the library returned. NULL is allowed. */
HR_API void hr_free(void *memory);

/* A parameter that the graph file declares, for help texts. Strings are owned by the
 * graph. HR_ERR_RANGE past the end. */
struct hr_graph_param_info {
    const char *name, *type, *fallback, *help; /* fallback, help may be NULL */
    bool required;
    const char *const *choices; /* the values that are allowed, as text; NULL: any */
    size_t choice_count;
};
HR_API HR_CHECK enum hr_err hr_graph_param_info(const struct hr_graph *graph, size_t at,
                                                struct hr_graph_param_info *ret_info);

/* Nodes in the order they were added. Strings are owned by the graph. */
struct hr_node_info {
    const char *name, *op;
    size_t input_count;
    struct hr_node inputs[8];
    /* What a source of a frozen graph found when it was opened, for people: the columns
     * of a labels file; NULL if there is nothing to say. */
    const char *note;
};
HR_API size_t hr_graph_node_count(const struct hr_graph *graph);
HR_API HR_CHECK enum hr_err hr_graph_node_info(const struct hr_graph *graph, size_t at,
                                               struct hr_node_info *ret_info);

/* The parameters of node `at` as given, with ${} replaced and including hints
 * (keep_position, depends_on), but without those left to their defaults: a compact JSON
 * map that hr_graph_add accepts; free with hr_free(). HR_ERR_RANGE past the last node. */
HR_API HR_CHECK enum hr_err
hr_graph_node_params(const struct hr_graph *graph, size_t at, char **ret_json,
                     struct hr_error *reterr);

/* A field after a node of a frozen graph. */
struct hr_field_info {
    const char *name;
    enum hr_dtype dtype; /* HR_DTYPE_NONE for byte strings */
    bool ragged;
    bool text; /* byte strings that are meant as UTF-8; not checked */
    int ndim;
    int64_t dims[HR_MAX_DIMS]; /* ndim of them; -1: unknown before data is read */
    const char *dim_names[HR_MAX_DIMS]; /* "height"; "" if unnamed */
    const char *const *classes;         /* names of class numbers, the graph's; or NULL */
    size_t class_count;                 /* 0 if the field holds no classes with names */
};
HR_API size_t hr_graph_field_count(const struct hr_graph *graph, size_t node);
HR_API HR_CHECK enum hr_err
hr_graph_field_info(const struct hr_graph *graph, size_t node, size_t field,
                    struct hr_field_info *ret_info);

/* Number of records that a frozen graph outputs per epoch (counting records inside
 * batches), or -1 if it is known only at run time (a filter). */
HR_API int64_t hr_graph_record_count(const struct hr_graph *graph);

HR_END_DECLS

#endif
