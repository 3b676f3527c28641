/*
 * ops/registry_test.c - the list of all operators, and rules that every descriptor keeps.
 */
#include "core/alloc.h"
#include "op/op.h"
#include "tests/support/check.h"

#define EACH(op)                                                                         \
    size_t count;                                                                        \
    const struct hr_op *const *ops = hr__op_list(&count);                                \
    for (size_t i = 0; i < count; i++)                                                   \
        for (const struct hr_op *op = ops[i]; op != NULL; op = NULL)

TEST(ops_stand_in_order_of_name_without_doubles)
{
    size_t count;
    const struct hr_op *const *ops = hr__op_list(&count);

    CHECK(count > 0);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(ops[i - 1]->name, ops[i]->name) >= 0)
            check_failed(__FILE__, __LINE__, "%s stands before %s", ops[i - 1]->name,
                         ops[i]->name);
    }
    for (size_t i = 0; i < count; i++)
        CHECK(hr__op_find(ops[i]->name) == ops[i]);
}

TEST(descriptors_are_whole)
{
    EACH(op)
    {
        bool ok = op->summary != NULL && op->version > 0 && strchr(op->name, '.') != NULL;

        ok = ok && (op->open == NULL && op->prepare == NULL) == (op->close == NULL);
        ok = ok && op->infer != NULL;
        switch (op->kind) {
        case HR_OP_SOURCE:
            ok =
                ok && (op->apply != NULL || op->code != NULL) && op->source.count != NULL;
            ok = ok && (op->source.key == NULL) == (op->source.key_name == NULL);
            break;
        case HR_OP_ORDER:
            ok = ok && op->order.count != NULL && op->order.map != NULL;
            ok = ok && (op->order.by == NULL) == (op->order.same == NULL);
            ok = ok && (op->order.by == NULL || op->open != NULL);
            break;
        case HR_OP_EXPAND:
            ok = ok && (op->code != NULL ||
                        (op->expand.count != NULL && op->expand.child != NULL));
            break;
        case HR_OP_SEQUENCE:
            ok = ok && op->sequence.begin != NULL && op->sequence.add != NULL &&
                 op->sequence.end != NULL;
            break;
        case HR_OP_MERGE:
            ok = ok && op->inputs_max > 1 && op->merge.count != NULL &&
                 op->merge.map != NULL;
            break;
        case HR_OP_ZIP:
            ok = ok && op->inputs_max > 1;
            ok = ok && (op->zip.by == NULL || op->open != NULL);
            ok = ok && (op->zip.by == NULL) == (op->zip.count == NULL);
            ok = ok && (op->zip.by == NULL) == (op->zip.map == NULL);
            break;
        default:
            ok = ok && (op->apply != NULL || op->code != NULL);
        }
        if (!ok)
            check_failed(__FILE__, __LINE__, "%s lacks something", op->name);
    }
}

static bool is_set(const void *hooks, size_t bytes)
{
    static const char none[256];

    CHECK(bytes <= sizeof none);
    return memcmp(hooks, none, bytes) != 0;
}

TEST(hooks_of_a_group_are_set_only_by_ops_of_its_kind)
{
    EACH(op)
    {
        enum hr_op_kind kind = op->kind;

        CHECK(kind == HR_OP_SOURCE || !is_set(&op->source, sizeof op->source));
        CHECK(kind == HR_OP_ORDER || !is_set(&op->order, sizeof op->order));
        CHECK(kind == HR_OP_ZIP || !is_set(&op->zip, sizeof op->zip));
        CHECK(kind == HR_OP_EXPAND || !is_set(&op->expand, sizeof op->expand));
        CHECK(kind == HR_OP_SEQUENCE || kind == HR_OP_ORDER ||
              !is_set(&op->sequence, sizeof op->sequence));
        CHECK(op->open != NULL || !is_set(&op->learner.rest, sizeof op->learner.rest));
    }
}

TEST(parameter_tables_are_well_formed_and_their_defaults_pass_their_own_ranges)
{
    EACH(op)
    {
        for (size_t k = 0; k < op->param_count; k++) {
            struct hr_param row = op->params[k];
            char params[8192];
            struct hr_doc *canonical = NULL;
            struct hr_error error = {0};

            CHECK(op->params_size <= sizeof params);
            CHECK(row.help != NULL && row.offset < op->params_size);
            CHECK(strcmp(row.name, "keep_position") != 0);
            CHECK(strcmp(row.name, "depends_on") != 0);
            CHECK(row.access == HR_ACCESS_NONE || row.type == HR_PARAM_FIELD ||
                  row.type == HR_PARAM_FIELDS);
            CHECK(row.type != HR_PARAM_ENUM || row.names != NULL);
            row.required = false;
            if (hr__params_parse(&row, 1, NULL, params, op->params_size, &canonical,
                                 &error) != HR_OK)
                check_failed(__FILE__, __LINE__, "%s: %s", op->name, error.message);
            hr__doc_destroy(canonical);
        }
    }
}

TEST(an_unknown_op_is_refused_with_the_nearest)
{
    struct hr_error error = {0};
    const struct hr_op *op;

    CHECK_ERR(HR_ERR_NOT_FOUND, hr__op_get("image.flop", &op, &error));
    CHECK_EQ_STR(error.message,
                 "there is no op \"image.flop\"; did you mean \"image.flip\"?");
    CHECK_ERR(HR_ERR_NOT_FOUND, hr__op_get("qqqqqqqqq", &op, &error));
    CHECK_EQ_STR(error.message, "there is no op \"qqqqqqqqq\"");
}
