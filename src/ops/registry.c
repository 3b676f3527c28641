/*
 * ops/registry.c - the list of all operators, one line each in ops.def, and of the
 * classes of deferred values.
 */
#include <string.h>

#include "op/op.h"
#include "ops/image_job.h"

#define HR_OP(symbol) extern const struct hr_op hr_op_##symbol;
#include "ops/ops.def"
#undef HR_OP

static const struct hr_op *const list[] = {
#define HR_OP(symbol) &hr_op_##symbol,
#include "ops/ops.def"
#undef HR_OP
    NULL,
};

const struct hr_op *const *hr__op_list(size_t *ret_count)
{
    *ret_count = sizeof list / sizeof list[0] - 1;
    return list;
}

const struct hr_lazy_class *hr__lazy_class_find(const char *name)
{
    static const struct hr_lazy_class *const classes[] = {&hr__image_class};

    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (strcmp(classes[i]->name, name) == 0)
            return classes[i];
    return NULL;
}
