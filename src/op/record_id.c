/*
 * op/record_id.c - names of random streams: why no two of them meet.
 *
 * Philox turns a 64-bit key and a 128-bit counter into a block of numbers, and for one
 * key it is a bijection: streams share a block only if they share key and counter. The
 * counter holds block, epoch and index, and how deep the record is among children. What
 * is left for the key is seed, node and child path. Without children the key is seed ^
 * node id, which differs for any two nodes of a graph, because freezing refuses equal
 * ids. A child path of one or two numbers adds a bijection of the path; a longer one is
 * hashed. See docs/decisions/0015-identity-and-randomness.md for what remains improbable
 * only.
 */
#include "op/op.h"

#include <assert.h>

#define DEPTH_SHIFT 62
#define DEPTH_MARK_MAX 3u

_Static_assert(HR_INDEX_MAX == (uint64_t)1 << DEPTH_SHIFT,
               "the bits above an index hold the depth");

void hr__record_child(struct hr_record_id *id, uint64_t child)
{
    assert(id->depth < HR_CHILD_DEPTH_MAX);
    assert(child <= UINT32_MAX);
    id->child[id->depth++] = (uint32_t)child;
}

void hr__record_json(const struct hr_record_id *id, struct hr_str *out)
{
    assert(id->depth <= HR_CHILD_DEPTH_MAX);
    hr__str_addf(out, "\"epoch\":%lu,\"position\":%llu,\"record\":%llu,\"children\":[",
                 (unsigned long)id->epoch, (unsigned long long)id->position,
                 (unsigned long long)id->index);
    for (uint32_t i = 0; i < id->depth; i++)
        hr__str_addf(out, "%s%lu", i > 0 ? "," : "", (unsigned long)id->child[i]);
    hr__str_add(out, "]");
}

/* Differs for any two paths of one length up to 2. */
static uint64_t path_key(const struct hr_record_id *id)
{
    uint64_t key = id->child[0];

    assert(id->depth > 0 && id->depth <= HR_CHILD_DEPTH_MAX);
    if (id->depth > 1)
        key = key << 32 | id->child[1];
    for (uint32_t i = 2; i < id->depth; i++)
        key = hr__rng_mix(key) ^ id->child[i];
    return hr__rng_mix(key);
}

void hr__record_rng(const struct hr_record_id *id, uint64_t draw_id,
                    struct hr_rng *ret_rng)
{
    uint64_t key = id->seed ^ draw_id, record = id->index, depth = id->depth;

    assert(record < HR_INDEX_MAX);
    if (depth > 0) {
        key ^= path_key(id);
        record |= (depth < DEPTH_MARK_MAX ? depth : DEPTH_MARK_MAX) << DEPTH_SHIFT;
    }
    hr__rng_init(ret_rng, key, id->draw_epoch, record);
}

void hr__op_rng(const struct hr_op_ctx *ctx, struct hr_rng *ret_rng)
{
    hr__record_rng(ctx->id, ctx->draw_id, ret_rng);
}
