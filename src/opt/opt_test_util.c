/*
 * opt/opt_test_util.c - see opt_test_util.h.
 */
#include "opt/opt_test_util.h"

static void *enter(void *user)
{
    return user;
}

static void leave(void *user, void *token)
{
    (void)user;
    (void)token;
}

static enum hr_err call(void *user, struct hr_code_call *code, struct hr_error *reterr)
{
    (void)user;
    (void)code;
    (void)reterr;
    return HR_OK;
}

const struct hr_code opt_test_locked = {
    .identity = "1", .call = call, .enter = enter, .leave = leave};

enum hr_err opt_test_add_code(struct hr_graph *graph, struct hr_error *reterr)
{
    static const struct hr_code free_code = {.identity = "2", .call = call};
    enum hr_err code = hr_graph_code(graph, "locked", &opt_test_locked, reterr);

    return code == HR_OK ? hr_graph_code(graph, "free", &free_code, reterr) : code;
}
