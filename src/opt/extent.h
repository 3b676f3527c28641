/*
 * opt/extent.h - how large the records of a graph get, by the sizes of some of them.
 *
 * The engine looks at records up to the first node that would make pixels; from there on
 * schemas are inferred, as at freeze, but with the sizes that a record has.
 */
#ifndef HR_OPT_EXTENT_H
#define HR_OPT_EXTENT_H

#include "graph/graph.h"

/* The largest record after a node. */
struct hr_extent {
    bool known;
    bool measured;           /* not inferred from the node's inputs */
    struct hr_schema schema; /* dims: the largest of each */
    uint64_t bytes;          /* of all fields that are not tensors */
    uint64_t encoded;        /* of what deferred values are made from, besides */
    uint64_t force;  /* scratch that making its deferred values takes, besides them */
    uint64_t frames; /* hr_op.frames of its fields */
    /* Of records that were run; else 0. */
    uint64_t ran;      /* what the steps up to the node took of the thread's arena */
    uint64_t children; /* of an expansion: all children of a record, hr__values_bytes()
                          included */
};

/* One per node; NULL when out of memory. Free with hr__free(). */
struct hr_extent *hr__extents_create(const struct hr_graph *graph);

/* Infers a node that is not known, and before it its inputs. What cannot be inferred
 * stays unknown. */
void hr__extents_infer(const struct hr_graph *graph, uint32_t node,
                       struct hr_extent *all);

/* Infers the nodes of `one` that are not known up to `output`, then raises `most` to the
 * sizes of `one`. */
void hr__extents_add(const struct hr_graph *graph, struct hr_extent *one,
                     struct hr_extent *most);

/* After the last record: a batch may hold the tallest and the widest. Raises each node of
 * `most` to what follows from its inputs. */
HR_CHECK enum hr_err
hr__extents_close(const struct hr_graph *graph, struct hr_extent *most);

#endif
