/*
 * op/when.h - nodes that run for some of the records.
 *
 * A node may have draws, each a name and a part of [0, 1). For every record one uniform
 * number is drawn per name, and the node runs if each number falls into its part. Nodes
 * that share a name share the number: those of one group run together, or exclude each
 * other. Executors call hr__op_apply and know nothing else.
 */
#ifndef HR_OP_WHEN_H
#define HR_OP_WHEN_H

#include "op/op.h"

/* Draws of one node: as deep as groups can be nested. */
#define HR_WHEN_MAX 8

struct hr_when {
    uint64_t draw_id;   /* hash of the name, the key of the number */
    double from, below; /* from <= number < below */
};

/* The draw_id of a name; differs from that of a node with the same name. */
uint64_t hr__when_draw_id(const char *name);

bool hr__when_holds(const struct hr_when *when, size_t count,
                    const struct hr_record_id *id);

/* Runs the op on a record for which all draws of its context hold. For others its fields
 * stay as they are. */
HR_CHECK enum hr_err hr__op_apply(const struct hr_op *op, struct hr_op_ctx *ctx);

#endif
