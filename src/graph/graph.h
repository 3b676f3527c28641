/*
 * graph/graph.h - the graph as the compiler and the engine see it.
 */
#ifndef HR_GRAPH_GRAPH_H
#define HR_GRAPH_GRAPH_H

#include "core/doc.h"
#include "core/hash.h"
#include "headrace/graph.h"
#include "op/code_table.h"
#include "op/op.h"
#include "op/when.h"

#define HR_NODE_INPUTS_MAX 8
#define HR_GRAPH_NODES_MAX 1024
#define HR_NODE_NAME_MAX 63 /* bytes */

/*
 * Values are numbered over the whole graph: hr_field.slot. A field keeps its number when
 * ops pass it on, update or rename it; a written field gets a new one. If a node's output
 * has several consumers, each of them gets new numbers for its values (`to` for `from`).
 */
struct hr_alias {
    int from, to;
    size_t input; /* which of the node's inputs */
};

/* Where a bound field's value is made, see graph_compose.c. */
struct hr_graph_made {
    bool before;                   /* a deferred value is made before the node */
    enum hr_strictness strictness; /* of the group that ends there */
};

/*
 * A change to a graph that keeps its meaning within a strictness. One that is not exact
 * changes bytes, so its name and strictness are hashed into the fingerprint of its node.
 * Known: "make", the values that the node describes are made right after it.
 */
struct hr_graph_rewrite {
    const char *name; /* static */
    uint32_t node;
    enum hr_strictness strictness; /* frozen */
};

struct hr_graph_node {
    char *name;       /* unique in the graph */
    uint64_t draw_id; /* hash of the name, the key of the node's random draws: adding or
                         removing other nodes does not change them */
    const struct hr_op *op;
    struct hr_doc
        *given; /* parameters as given by the user, after substitution; or NULL */
    struct hr_doc *canonical; /* see hr__params_parse; owns the strings in params */
    bool keep_position;       /* hints that any node may have in its parameter map */
    bool distribute;          /* a service's workers run the graph up to here; part of no
                                 fingerprint */
    char **depends_on;
    size_t depends_count;
    struct hr_when when[HR_WHEN_MAX]; /* draws that decide whether it runs */
    size_t when_count;
    int line, column; /* in the graph file, or 0 */
    uint32_t inputs[HR_NODE_INPUTS_MAX];
    size_t input_count;
    void *params; /* op->params_size bytes */

    /* frozen: */
    struct hr_schema schema; /* after the node */
    void *state;             /* op->open */
    uint64_t state_bytes;    /* that preparing and opening it allocated */
    const char *side_file; /* of hr_op_learner, of this node or one before it; or NULL */
    size_t field_count;    /* bound fields in table order */
    const char **field_names;
    enum hr_param_access *field_access;
    struct hr_bindings *bindings;  /* names that op->binds returned, or NULL */
    struct hr_hash128 fingerprint; /* of the graph up to this node */
    uint32_t draws_for; /* epochs for which its draws stay the same, because of a cache
                           (graph_cache.c); HR_DRAWS_ONCE: all; 0: one */
    struct hr_alias *aliases; /* new numbers of the values of shared inputs */
    size_t alias_count;

    /* frozen, composition (graph_compose.c): */
    /* Of a node by number: its records, dropped ones included; or -1. */
    int64_t positions;
    /* The most records that can reach the node in an epoch, those of a batch counted one
     * by one; or -1. Known after filters, too. */
    int64_t reach;
    bool by_number;  /* its output records are a function of their number */
    bool describes;  /* it edits the description of a deferred value */
    bool made_after; /* rewritten: the values that it describes are made after it */
    uint32_t group;  /* node that heads its group; the node itself if alone */
    enum hr_strictness
        strictness; /* the greatest of its groups; exact ones may be split */
    enum hr_strictness made_strictness; /* the greatest of the groups that end here */
    enum hr_strictness
        passed_strictness; /* and of those that go on at a node which reads this one */
    struct hr_graph_made *made; /* per bound field */
    char reason[160]; /* why it was or was not composed; empty if there was no choice */
};

struct hr_graph {
    struct hr_graph_node *nodes;
    size_t count;
    uint32_t output;
    bool frozen;
    int value_count; /* frozen: values are numbered from 1 to this */
    int64_t whole;   /* frozen: records after the last multiple of this in an epoch are in
                        no batch (drop_last) and are not read; 0: all records are read */
    uint64_t opened_ns; /* frozen: wall-clock time before its sources were opened */
    struct hr_graph_rewrite *rewrites;
    size_t rewrite_count;
    char *file; /* for messages, or NULL */
    /* The fingerprint that states of its runs bear; "": its own. An order of a graph that
     * was optimised has that of the written one, so that either can resume the other. */
    char states_of[HR_FINGERPRINT_BYTES];
    struct hr_code_table *codes;
    /* private to graph/: */
    struct hr_graph_private *private;
};

/* The functions of headrace/graph.h, for checked arguments. */
HR_CHECK struct hr_graph *hr__graph_create(void);
void hr__graph_ref(struct hr_graph *graph);
void hr__graph_unref(struct hr_graph *graph);
HR_CHECK enum hr_err
hr__graph_add(struct hr_graph *graph, const char *op, const char *name,
              const struct hr_node *inputs, size_t input_count, const char *params,
              struct hr_node *ret_node, struct hr_error *reterr);
HR_CHECK enum hr_err
hr__graph_load(const char *path, const struct hr_graph_param *params, size_t param_count,
               struct hr_graph **ret_graph, struct hr_error *reterr);
HR_CHECK enum hr_err
hr__graph_parse(const char *text, size_t bytes, const char *name,
                const struct hr_graph_param *params, size_t param_count,
                struct hr_graph **ret_graph, struct hr_error *reterr);
HR_CHECK enum hr_err hr__graph_freeze(struct hr_graph *graph, struct hr_error *reterr);
HR_CHECK enum hr_err
hr__graph_print(const struct hr_graph *graph, enum hr_graph_format format,
                char **ret_text, struct hr_error *reterr);
HR_CHECK enum hr_err hr__graph_node_params(const struct hr_graph *graph, size_t at,
                                           char **ret_json, struct hr_error *reterr);
HR_CHECK enum hr_err hr__graph_param_info(const struct hr_graph *graph, size_t at,
                                          struct hr_graph_param_info *ret_info);

/* The schema after a node of a frozen graph whose inputs have these schemas, such as the
 * sizes of one record. The numbers of new values are not set. */
HR_CHECK enum hr_err
hr__graph_infer(const struct hr_graph *graph, uint32_t node,
                const struct hr_schema *inputs, struct hr_schema *ret_output);

/* Calls hr_op_learner.rest of all nodes: an iterator over the graph has ended. */
void hr__graph_rest(struct hr_graph *graph);
/* Calls hr_op_learner.pause of all nodes: an epoch has ended. */
void hr__graph_pause(struct hr_graph *graph);

/* Consumers of a node's output. */
size_t hr__graph_consumers(const struct hr_graph *graph, uint32_t node);

/* Whether what the node makes reaches the output only through `reader`. */
bool hr__graph_feeds_only(const struct hr_graph *graph, uint32_t node, uint32_t reader);

/* Marks the sources by whose files the records of cache `node` are known: none unless it
 * asks for stamps. Returns how many. */
size_t hr__graph_stamped(const struct hr_graph *graph, uint32_t node, bool *ret_sources);

/* The number of the value that bound field `at` refers to: the one that the node writes,
 * or the one in its inputs. -1 if there is none. */
int hr__graph_bound_value(const struct hr_graph *graph, const struct hr_graph_node *node,
                          size_t at);

/* The user code that a node calls; NULL: it is none. */
static inline const struct hr_code_use *hr__node_code(const struct hr_graph_node *node)
{
    return node->op->code != NULL ? node->op->code(node->state) : NULL;
}

/* Whether the node's records have numbers of their own: it is a source, a merge or a join
 * by keys. */
static inline bool hr__node_numbers(const struct hr_graph_node *node)
{
    return node->op->kind == HR_OP_SOURCE || node->op->kind == HR_OP_MERGE ||
           node->op->zip.by != NULL;
}

/* The source of record *at of a node by number before which nothing orders at random, of
 * the first input of nodes that join; *at becomes the index there. */
uint32_t hr__graph_source(const struct hr_graph *graph, uint32_t node, uint64_t *at);

/* RANDOM ORDER and MERGE nodes: see hr_op_order.draws_by_params. */
static inline bool hr__node_draws_by_params(const struct hr_graph_node *node)
{
    bool (*hook)(const void *params) = node->op->kind == HR_OP_MERGE
                                           ? node->op->merge.draws_by_params
                                           : node->op->order.draws_by_params;

    return hook != NULL && hook(node->params);
}

/* Whether its results depend on draws for each record. */
static inline bool hr__node_draws(const struct hr_graph_node *node)
{
    return (node->op->traits & HR_TRAIT_RANDOM) || node->when_count > 0;
}

/* Whether the values of its results depend on such draws, which a cache after the node
 * would repeat: false for ops that only choose records. */
static inline bool hr__node_draws_values(const struct hr_graph_node *node)
{
    return hr__node_draws(node) && node->op->kind != HR_OP_ORDER &&
           node->op->kind != HR_OP_MERGE;
}

/* Whether the source of a node by number may drop some of its records. */
static inline bool hr__node_drops(const struct hr_graph_node *node)
{
    return node->by_number && node->positions >= 0 && node->schema.records < 0;
}

/* Whether an ORDER node after a source that drops records sees those that are left, in
 * order; else it orders all of them by number. */
bool hr__node_orders_kept(const struct hr_graph_node *n);

/* Whether the node's values outlive the run of a record through its steps: all are made
 * before it. */
bool hr__node_spans_records(const struct hr_graph_node *n);

/* How many records of the sizes in `input` a node joins into one output, at most as many
 * as reach it in an epoch; 0: it joins none. */
uint64_t hr__node_joins(const struct hr_graph_node *n, const struct hr_schema *input);
/* The most records that a node holds, besides those of its runs. */
uint64_t hr__node_holds(const struct hr_graph_node *n, const struct hr_schema *input);

const char *hr__strictness_name(enum hr_strictness strictness);

/* Whether a plan may make the values of this node's group earlier than the graph says,
 * because no byte changes. */
bool hr__graph_may_split(const struct hr_graph *graph, uint32_t node);

/* Adds the rewrite "make" at a node. Must precede freeze. */
HR_CHECK enum hr_err hr__graph_make_after(struct hr_graph *graph, uint32_t node);

/*
 * A copy whose place i holds the node `nodes[i]`, a permutation of graph->count numbers,
 * and reads what place i reads. Nodes keep their names, hence their random draws, and
 * their lines in the file; the copy shares the graph's table of code and is not frozen.
 * Freezing it fails if nodes do not fit where they stand. It prints with all values in
 * place of the file's parameters.
 */
HR_CHECK enum hr_err
hr__graph_permute(const struct hr_graph *graph, const uint32_t *nodes,
                  struct hr_graph **ret_graph, struct hr_error *reterr);

/* A copy with a new node of this op right after node `after`: what read that node reads
 * the new one. Otherwise as hr__graph_permute(). Takes ownership of `given` (may be
 * NULL), also on failure. HR_ERR_ARGUMENT or HR_ERR_GRAPH if the op does not take
 * `given`. */
HR_CHECK enum hr_err
hr__graph_insert(const struct hr_graph *graph, uint32_t after, const char *op,
                 struct hr_doc *given, struct hr_graph **ret_graph,
                 struct hr_error *reterr);

/* Marks the node and all that it reads, directly or not; one entry per node. */
void hr__graph_before(const struct hr_graph *graph, uint32_t node, bool *ret_before);

/* A copy of the part of the graph that `node` reads, directly or not, which ends with it.
 * ret_places (an entry per node): its number in the copy, or graph->count. Otherwise as
 * hr__graph_permute(). */
HR_CHECK enum hr_err
hr__graph_prefix(const struct hr_graph *graph, uint32_t node, uint32_t *ret_places,
                 struct hr_graph **ret_graph, struct hr_error *reterr);

/* Sets code, place and message; returns `code`. */
enum hr_err hr__fail_at(struct hr_error *error, enum hr_err code, const char *file,
                        int line, int column, const char *format, ...) HR_PRINTF(6, 7);

/* Sets node and op (and the place, if known) in an error, and prefixes its message with
 * "node 'x' (op): ". */
void hr__graph_blame(const struct hr_graph *graph, uint32_t node, struct hr_error *error);

#endif
