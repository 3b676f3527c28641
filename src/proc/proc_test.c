/*
 * proc/proc_test.c - requests to real worker processes: what code makes of numbers and
 * says of errors.
 */
#include "proc/proc_test_util.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "op/code_call.h"
#include "proc/request.h"

TEST(columns_go_through_map_and_back)
{
    int fds = check_open_files();
    struct single s = {0};
    struct numbers *n = numbers_make(600);
    struct hr_proc_stats stats;
    struct hr_proc *proc;

    single_numbers(&s, "add");
    proc = open_program(&s.program, 0);
    for (size_t count = 1; count <= 600; count = count * 5 / 2 + 1) {
        run_program(proc, n->records, count);
        for (size_t i = 0; i < count; i++)
            CHECK_EQ_INT(number(&n->records[i], 0), (int64_t)i + 1);
    }
    hr__proc_stats(proc, &stats);
    CHECK(stats.shared_bytes > 600 * 16 && stats.shared_bytes < 200000);
    CHECK_EQ_INT(stats.replaced, 0);
    CHECK_EQ_INT(close_program(proc), 1);
    CHECK_EQ_INT(check_open_files(), fds);
    free(n);
}

/* source -> map -> filter -> map over slots; results: the source's slot and the last. */
TEST(several_steps_run_in_one_request)
{
    struct hr_field f[4] = {number_field("a"), number_field("b"), number_field("c")};
    const struct hr_field *out[3] = {&f[0], &f[1], &f[2]};
    const struct hr_field *result_fields[2] = {&f[0], &f[2]};
    uint16_t slots[3] = {0, 1, 2}, results[2] = {0, 2};
    struct hr_proc_step steps[4] = {
        {"source", "s", 0, HR_OP_SOURCE, 0, 1, NULL,      &slots[0], &out[0], NULL   },
        {"add",    "m", 1, HR_OP_MAP,    1, 1, &slots[0], &slots[1], &out[1], &out[0]},
        {"add",    "n", 2, HR_OP_MAP,    1, 1, &slots[1], &slots[2], &out[2], &out[1]},
        {"even",   "f", 3, HR_OP_FILTER, 1, 0, &slots[2], NULL,      NULL,    &out[2]},
    };
    struct hr_proc_program program = {.slot_count = 3,
                                      .steps = steps,
                                      .step_count = 4,
                                      .result_count = 2,
                                      .results = results,
                                      .result_fields = result_fields,
                                      .nodes = 1};
    struct numbers *n = numbers_make(20);
    struct hr_proc *proc = open_program(&program, 0);

    run_program(proc, n->records, 20);
    for (size_t i = 0; i < 20; i++) {
        if (i >= 10) {
            CHECK_EQ_INT(n->records[i].code, HR_ERR_END);
            continue;
        }
        CHECK(!n->records[i].drop);
        CHECK_EQ_INT(number(&n->records[i], 0), 2 * (int64_t)i);
        CHECK_EQ_INT(number(&n->records[i], 1), 2 * (int64_t)i + 2);
    }
    hr__proc_close(proc);
    steps[3].inputs = &slots[1];
    proc = open_program(&program, 0);
    run_program(proc, n->records, 5);
    for (size_t i = 0; i < 5; i++)
        CHECK(n->records[i].drop);
    CHECK_EQ_INT(close_program(proc), 2);
    free(n);
}

TEST(random_keys_are_those_of_the_record)
{
    struct single s = {0};
    struct numbers *n = numbers_make(40);
    struct hr_proc *proc;

    s.out[0] = number_field("k0");
    s.out[1] = number_field("k1");
    single_make(&s, "key", HR_OP_MAP, 0, 2);
    proc = open_program(&s.program, 0);
    run_program(proc, n->records, 40);
    for (size_t i = 0; i < 40; i++) {
        struct hr_code_call call = {.id = n->records[i].id, .draw_id = 3, .node = "x"};
        uint64_t key[2];

        hr__code_key(&call, key);
        CHECK_EQ_INT(number(&n->records[i], 0), (int64_t)key[0]);
        CHECK_EQ_INT(number(&n->records[i], 1), (int64_t)key[1]);
    }
    close_program(proc);
    free(n);
}

TEST(expansions_give_children_with_the_parents_fields)
{
    struct single s = {0};
    const struct hr_field *result_fields[3] = {&s.out[0], &s.out[1], &s.in[0]};
    uint16_t results[3] = {1, 2, 0};
    struct numbers *n = numbers_make(20);
    struct hr_proc *proc;

    s.in[0] = number_field("in");
    s.out[0] = number_field("number");
    s.out[1] = bytes_field("text");
    single_make(&s, "children", HR_OP_EXPAND, 1, 2);
    s.program.results = results;
    s.program.result_fields = result_fields;
    s.program.result_count = 3;
    proc = open_program(&s.program, 0);
    run_program(proc, n->records, 20);
    for (int64_t i = 0; i < 20; i++) {
        const struct hr_proc_record *record = &n->records[i];

        CHECK_EQ_INT(record->code, HR_OK);
        CHECK_EQ_INT(record->child_count, i);
        for (int64_t c = 0; c < i; c++) {
            const struct hr_value *child = record->results + 3 * c;

            CHECK_EQ_INT(*(const int64_t *)child[0].data, i * 10 + c);
            CHECK_EQ_INT(child[1].bytes, c);
            if (c > 0)
                CHECK_EQ_INT(((const char *)child[1].data)[c - 1], 'a' + c);
            CHECK_EQ_INT(*(const int64_t *)child[2].data, i);
        }
    }
    close_program(proc);
    free(n);
}

TEST(errors_come_with_code_parameter_and_detail)
{
    struct single s = {0};
    struct numbers *n = numbers_make(10);
    struct hr_proc *proc;

    single_numbers(&s, "fail");
    proc = open_program(&s.program, 0);
    run_program(proc, n->records, 10);
    for (int64_t i = 0; i < 10; i++) {
        if (i % 3 != 0) {
            CHECK_EQ_INT(number(&n->records[i], 0), i);
            CHECK(n->records[i].detail == NULL);
            continue;
        }
        CHECK_EQ_INT(n->records[i].code, HR_ERR_RANGE);
        CHECK_EQ_INT(n->records[i].error.code, HR_ERR_RANGE);
        CHECK_HAS(n->records[i].error.message, "is a multiple of 3");
        CHECK_EQ_STR(n->records[i].error.param, "number");
        CHECK_EQ_STR(n->records[i].error.node, "mine");
        CHECK_EQ_INT(strlen(n->records[i].detail), i == 3 ? HR_PROC_DETAIL_MAX : 10);
        hr__free(n->records[i].detail);
    }
    close_program(proc);
    free(n);
}

TEST(code_that_breaks_its_contract_is_told_so)
{
    static const char *const words[] = {"made no output 'out'", "declared as int64",
                                        "declared as int64", "returned 77",
                                        "only a source may"};
    static const enum hr_err want[] = {HR_ERR_STATE, HR_ERR_SHAPE, HR_ERR_TYPE,
                                       HR_ERR_INTERNAL, HR_ERR_STATE};
    struct single s = {0};
    struct numbers *n = numbers_make(5);
    struct hr_proc *proc;

    single_numbers(&s, "forgets");
    proc = open_program(&s.program, 0);
    run_program(proc, n->records, 5);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ_INT(n->records[i].code, want[i]);
        CHECK_HAS(n->records[i].error.message, words[i]);
    }
    close_program(proc);
    free(n);
}

TEST(an_unknown_name_is_the_error_of_every_record)
{
    struct single s = {0};
    struct numbers *n = numbers_make(5);
    struct hr_proc *proc;

    single_numbers(&s, "nobody");
    proc = open_program(&s.program, 0);
    run_program(proc, n->records, 5);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ_INT(n->records[i].code, HR_ERR_NOT_FOUND);
        CHECK_HAS(n->records[i].error.message, "no code named 'nobody'");
    }
    close_program(proc);
    free(n);
}

TEST(code_that_says_cancelled_ends_the_run)
{
    struct single s = {0};
    struct numbers *n = numbers_make(10);
    struct hr_error error = {0};
    struct hr_proc *proc;

    single_numbers(&s, "stop");
    proc = open_program(&s.program, 0);
    CHECK_ERR(HR_ERR_CANCELLED, hr__proc_run(proc, n->records, 10, &error));
    run_program(proc, n->records, 5);
    CHECK_EQ_INT(close_program(proc), 1);
    free(n);
}

static enum hr_err
host_cannot(void *user, int fd, int64_t *ret_id, struct hr_error *reterr)
{
    (void)user;
    (void)fd;
    (void)ret_id;
    return hr__fail(reterr, HR_ERR_UNSUPPORTED, "no processes here");
}

TEST(a_host_that_cannot_start_is_reported)
{
    int fds = check_open_files();
    struct hr_code_host none = {.start = host_cannot, .kill = host_kill};
    struct hr_code_host brief = host;
    struct single s = {0};
    struct hr_error error = {0};
    struct hr_proc *proc = NULL;

    single_numbers(&s, "add");
    CHECK_ERR(HR_ERR_UNSUPPORTED,
              hr__proc_open(&none, &s.program, 0, NULL, &proc, &error));
    CHECK_HAS(error.message, "no processes here");
    brief.user = (void *)"HR_PROC_TEST_SHORT=1";
    CHECK_ERR(HR_ERR_IO, hr__proc_open(&brief, &s.program, 0, NULL, &proc, &error));
    CHECK_HAS(error.message, "ended before it was ready");
    CHECK(proc == NULL);
    reap();
    CHECK_EQ_INT(check_open_files(), fds);
}
