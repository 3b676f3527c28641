/*
 * api/op_api.c - headrace/op.h: the registry and the parameter tables as text.
 */
#include "headrace/op.h"

#include <stdio.h>
#include <string.h>

#include "op/op.h"

static const struct hr_op *op_at(size_t at)
{
    size_t count;
    const struct hr_op *const *ops = hr__op_list(&count);

    return at < count ? ops[at] : NULL;
}

size_t hr_op_count(void)
{
    size_t count;

    hr__op_list(&count);
    return count;
}

enum hr_err hr_op_info(size_t at, struct hr_op_info *ret_info)
{
    static const char *const kinds[] = {
        [HR_OP_SOURCE] = "source", [HR_OP_ORDER] = "order",   [HR_OP_MAP] = "map",
        [HR_OP_FILTER] = "filter", [HR_OP_EXPAND] = "expand", [HR_OP_SEQUENCE] = "batch",
        [HR_OP_ZIP] = "zip",       [HR_OP_MERGE] = "merge"};
    const struct hr_op *op = op_at(at);

    if (ret_info == NULL)
        return HR_ERR_ARGUMENT;
    if (op == NULL)
        return HR_ERR_RANGE;
    *ret_info = (struct hr_op_info){
        .name = op->name,
        .kind = kinds[op->kind],
        .summary = op->summary,
        .doc = op->doc,
        .version = op->version,
        .test_only = (op->traits & HR_TRAIT_TEST_ONLY) != 0,
        .param_count = op->param_count,
    };
    return HR_OK;
}

enum hr_err hr_op_find(const char *name, size_t *ret_at, struct hr_error *reterr)
{
    const struct hr_op *op;
    size_t at = 0;

    if (name == NULL || ret_at == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "%s must not be NULL",
                        name == NULL ? "name" : "ret_at");
    HR_TRY(hr__op_get(name, &op, reterr));
    while (op_at(at) != op)
        at++;
    *ret_at = at;
    return HR_OK;
}

enum hr_err hr_op_param(size_t at, size_t param, struct hr_param_info *ret_info)
{
    const struct hr_op *op = op_at(at);
    const struct hr_param *p;

    if (ret_info == NULL)
        return HR_ERR_ARGUMENT;
    if (op == NULL || param >= op->param_count)
        return HR_ERR_RANGE;
    p = &op->params[param];
    *ret_info = (struct hr_param_info){
        .name = p->name,
        .type = hr__param_type_name(p->type),
        .fallback = p->fallback,
        .unit = p->unit,
        .help = p->help,
        .required = p->required,
    };
    return HR_OK;
}

const char *hr_op_param_range(size_t at, size_t param, char *text, size_t room)
{
    const struct hr_op *op = op_at(at);
    struct hr_str out;

    if (text == NULL || room == 0)
        return "";
    text[0] = '\0';
    if (op == NULL || param >= op->param_count)
        return text;
    hr__str_init(&out);
    hr__param_range_text(&op->params[param], &out);
    snprintf(text, room, "%s", hr__str_text(&out));
    hr__str_finish(&out);
    return text;
}

const char *hr_op_traits(size_t at, char *text, size_t room)
{
    static const struct {
        uint32_t trait;
        const char *word;
    } words[] = {
        {HR_TRAIT_PURE,       "pure"      },
        {HR_TRAIT_RANDOM,     "random"    },
        {HR_TRAIT_POINTWISE,  "pointwise" },
        {HR_TRAIT_AFFINE,     "affine"    },
        {HR_TRAIT_GEOMETRIC,  "geometric" },
        {HR_TRAIT_RESAMPLING, "resampling"},
        {HR_TRAIT_WARPS,      "warps"     },
        {HR_TRAIT_CROPS,      "crops"     },
        {HR_TRAIT_DTYPE,      "dtype"     },
        {HR_TRAIT_LAYOUT,     "layout"    },
        {HR_TRAIT_DECODES,    "decodes"   },
        {HR_TRAIT_DEFERS,     "defers"    },
        {HR_TRAIT_ZERO_COPY,  "zero copy" },
        {HR_TRAIT_SHRINKS,    "shrinks"   },
        {HR_TRAIT_GROWS,      "grows"     },
        {HR_TRAIT_IDENTITY,   "identity"  },
        {HR_TRAIT_SHARDS,     "shards"    },
        {HR_TRAIT_BATCHED,    "batched"   },
    };
    const struct hr_op *op = op_at(at);
    size_t length = 0;

    if (text == NULL || room == 0)
        return "";
    text[0] = '\0';
    for (size_t i = 0; op != NULL && i < sizeof words / sizeof words[0]; i++) {
        if ((op->traits & words[i].trait) && length < room)
            length += (size_t)snprintf(text + length, room - length, "%s%s",
                                       length > 0 ? ", " : "", words[i].word);
    }
    return text;
}
