/*
 * op/registry.c - finding an op by name in the list that ops/registry.c holds.
 *
 * There are some dozens of ops and a name is looked up once per node of a graph, so a
 * linear search is enough. The list itself is in ops/, because op/ knows no operator; a
 * test may link its own list instead.
 */
#include "op/op.h"

#include <assert.h>
#include <string.h>

const struct hr_op *hr__op_find(const char *name)
{
    size_t count;
    const struct hr_op *const *ops = hr__op_list(&count);

    for (size_t i = 0; i < count; i++) {
        if (strcmp(ops[i]->name, name) == 0)
            return ops[i];
    }
    return NULL;
}

enum hr_err
hr__op_get(const char *name, const struct hr_op **ret_op, struct hr_error *reterr)
{
    const struct hr_op *op = hr__op_find(name);
    const char *names[512], *near;
    size_t count, kept = 0;
    const struct hr_op *const *ops;

    if (op != NULL) {
        *ret_op = op;
        return HR_OK;
    }
    ops = hr__op_list(&count);
    assert(count <= sizeof names / sizeof names[0]);
    for (size_t i = 0; i < count && kept < sizeof names / sizeof names[0]; i++) {
        if (!(ops[i]->traits & HR_TRAIT_TEST_ONLY))
            names[kept++] = ops[i]->name;
    }
    near = hr__nearest(name, names, kept);
    return hr__fail(reterr, HR_ERR_NOT_FOUND, "there is no op \"%.63s\"%s%s%s", name,
                    near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
                    near != NULL ? "\"?" : "");
}

bool hr__op_is_portable(const struct hr_op *op)
{
    if (op->code != NULL || op->cache.begin != NULL)
        return false;
    if (op->kind == HR_OP_SOURCE)
        return op->open == NULL;
    return op->kind == HR_OP_MAP || op->kind == HR_OP_FILTER || op->kind == HR_OP_EXPAND;
}

bool hr__op_drops(const struct hr_op *op, const void *params)
{
    return op->kind == HR_OP_FILTER ||
           (op->source.drops != NULL && op->source.drops(params));
}
