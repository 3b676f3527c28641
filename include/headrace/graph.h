/*
 * headrace/graph.h - describe, save and identify an input pipeline.
 *
 * A graph is built from a YAML or JSON file, or call by call. Freezing checks it whole
 * (shapes and dtypes included, before any data is read), opens its sources, and makes it
 * a value: a frozen graph never changes and may be read from any thread; equal
 * fingerprints mean equal records.
 */
#ifndef HR_GRAPH_H
#define HR_GRAPH_H

#include "headrace/base.h"

HR_BEGIN_DECLS

struct hr_graph;

/* A struct, so that a node cannot be passed where a count is meant. */
struct hr_node {
    uint32_t id;
};

/* New, empty graph holding one reference. NULL only when out of memory. */
HR_API HR_CHECK struct hr_graph *hr_graph_create(void);

/* Add or drop a reference; the last one frees. NULL is fine. Safe from any thread. */
HR_API struct hr_graph *hr_graph_ref(struct hr_graph *graph);
HR_API void hr_graph_unref(struct hr_graph *graph);

/* A value for a parameter of the file ("-p name=value"): text as it would stand in YAML.
 */
struct hr_graph_param {
    const char *name, *value;
};

/* Read a graph file (YAML or JSON), substituting ${name} by `params` or the file's
 * defaults. Relative paths in it stay relative to the working directory. On failure
 * *reterr has file, line, column, node, parameter, and the nearest valid name. */
HR_API HR_CHECK enum hr_err
hr_graph_load(const char *path, const struct hr_graph_param *params, size_t param_count,
              struct hr_graph **ret_graph, struct hr_error *reterr);

/* Same from memory; `name` stands for the file in messages, ".json" in it means JSON. */
HR_API HR_CHECK enum hr_err
hr_graph_parse(const char *text, size_t bytes, const char *name,
               const struct hr_graph_param *params, size_t param_count,
               struct hr_graph **ret_graph, struct hr_error *reterr);

/* Append op `op`, reading from the nodes `inputs` (none for a source). `params` is a YAML
 * or JSON map as text, copied; NULL means defaults. `name` may be NULL: then it is the
 * op's name, with a number when taken. On failure the graph and *ret_node are as before.
 * HR_ERR_STATE when frozen. */
HR_API HR_CHECK enum hr_err
hr_graph_add(struct hr_graph *graph, const char *op, const char *name,
             const struct hr_node *inputs, size_t input_count, const char *params,
             struct hr_node *ret_node, struct hr_error *reterr);

/* Check everything, infer schemas, open sources. The last node added without a consumer
 * is the output; there must be one only. Repeating it is fine. On failure the graph is as
 * before. */
HR_API HR_CHECK enum hr_err
hr_graph_freeze(struct hr_graph *graph, struct hr_error *reterr);

/* 128 bits as 32 hex digits: equal for graphs that give the same records. Covers ops,
 * versions, parameters, wiring and source identity; not names of files that hold the
 * graph, node names, comments, key order, nor rank and world of a shard. Frozen graphs
 * only (else HR_ERR_STATE). */
#define HR_FINGERPRINT_BYTES 33
HR_API HR_CHECK enum hr_err
hr_graph_fingerprint(const struct hr_graph *graph, char ret_text[HR_FINGERPRINT_BYTES]);

enum hr_graph_format {
    HR_GRAPH_YAML,
    HR_GRAPH_JSON,
};

/* The graph as text that reads back as the same graph, NUL-terminated; hr_free() it. A
 * loaded file keeps params and ${} as written. */
HR_API HR_CHECK enum hr_err
hr_graph_print(const struct hr_graph *graph, enum hr_graph_format format, char **ret_text,
               struct hr_error *reterr);

/* Free what the library handed out as plain memory. NULL is fine. */
HR_API void hr_free(void *memory);

/* Parameters that a graph file declares, for help; -> strings of the graph. HR_ERR_RANGE
 * beyond the end. */
struct hr_graph_param_info {
    const char *name, *type, *fallback, *help; /* fallback, help may be NULL */
    bool required;
};
HR_API HR_CHECK enum hr_err hr_graph_param_info(const struct hr_graph *graph, size_t at,
                                                struct hr_graph_param_info *ret_info);

/* Nodes in order of adding. Strings are the graph's. */
struct hr_node_info {
    const char *name, *op;
    size_t input_count;
    struct hr_node inputs[8];
};
HR_API size_t hr_graph_node_count(const struct hr_graph *graph);
HR_API HR_CHECK enum hr_err hr_graph_node_info(const struct hr_graph *graph, size_t at,
                                               struct hr_node_info *ret_info);

/* The parameters of node `at` as they were given, ${} replaced and hints (keep_position,
 * depends_on) included: a compact JSON map that hr_graph_add takes; hr_free() it. Those
 * left to their defaults are not in it. HR_ERR_RANGE beyond the last node. */
HR_API HR_CHECK enum hr_err
hr_graph_node_params(const struct hr_graph *graph, size_t at, char **ret_json,
                     struct hr_error *reterr);

/* A field of a frozen graph's node, after it ran. */
struct hr_field_info {
    const char *name;
    enum hr_dtype dtype; /* HR_DTYPE_NONE for byte strings */
    bool ragged;
    int ndim;
    int64_t dims[HR_MAX_DIMS];          /* -1: not known before data is read */
    const char *dim_names[HR_MAX_DIMS]; /* "height"; "" when plain */
};
HR_API size_t hr_graph_field_count(const struct hr_graph *graph, size_t node);
HR_API HR_CHECK enum hr_err
hr_graph_field_info(const struct hr_graph *graph, size_t node, size_t field,
                    struct hr_field_info *ret_info);

/* Records that the graph's output gives in an epoch (batches count their records), or -1
 * when only the run tells (a filter). Frozen graphs. */
HR_API int64_t hr_graph_record_count(const struct hr_graph *graph);

HR_END_DECLS

#endif
