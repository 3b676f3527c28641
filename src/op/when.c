/*
 * when.c - decides whether a node runs for a record.
 */
#include "op/when.h"

#include <string.h>

/* Nodes' names are hashed with 0. */
#define SEED 1

uint64_t hr__when_draw_id(const char *name)
{
    return hr__hash64(name, strlen(name), SEED);
}

bool hr__when_holds(const struct hr_when *when, size_t count,
                    const struct hr_record_id *id)
{
    for (size_t i = 0; i < count; i++) {
        struct hr_rng rng;
        double number;

        hr__record_rng(id, when[i].draw_id, &rng);
        number = hr__rng_double(&rng);
        if (number < when[i].from || number >= when[i].below)
            return false;
    }
    return true;
}

enum hr_err hr__op_apply(const struct hr_op *op, struct hr_op_ctx *ctx)
{
    if (ctx->when_count > 0 && !hr__when_holds(ctx->when, ctx->when_count, ctx->id))
        return HR_OK;
    return op->apply(ctx);
}
