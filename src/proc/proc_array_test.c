/*
 * proc/proc_array_test.c - arrays, strings and ragged columns on requests, and the shared
 * memory that they take.
 */
#include "proc/proc_test_util.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "proc/proc_internal.h"

TEST(arrays_strings_and_ragged_columns_are_passed_on)
{
    struct mixed *m = mixed_make("pass", 4);
    struct hr_proc *proc = open_program(&m->s.program, 0);

    for (int i = 0; i < 3; i++) {
        run_program(proc, m->records, 8);
        mixed_check(m, 4);
        CHECK(m->records[1].results[0].data != m->inputs[1][0].data);
        CHECK(m->records[1].results[0].shared);
    }
    CHECK_EQ_INT(close_program(proc), 1);
    mixed_free(m);
}

TEST(arrays_and_strings_are_made)
{
    struct mixed *m = mixed_make("copy", 3);
    struct hr_proc *proc = open_program(&m->s.program, 0);

    for (int i = 0; i < 3; i++) {
        run_program(proc, m->records, 8);
        mixed_check(m, 3);
    }
    CHECK_EQ_INT(close_program(proc), 1);
    mixed_free(m);
}

TEST(a_bound_splits_the_chunk_and_changes_no_result)
{
    size_t bounds[] = {240000, 400000, 700000, 4000000};

    for (size_t k = 0; k < 4; k++)
        for (int copy = 0; copy < 2; copy++) {
            struct mixed *m = mixed_make(copy ? "copy" : "pass", 3);
            struct hr_proc_stats stats;
            struct hr_proc *proc;

            if (copy && bounds[k] < 400000)
                bounds[k] = 400000;
            proc = open_program(&m->s.program, bounds[k]);
            for (int i = 0; i < 3; i++) {
                run_program(proc, m->records, 8);
                mixed_check(m, 3);
            }
            hr__proc_stats(proc, &stats);
            CHECK(stats.shared_bytes <= bounds[k]);
            close_program(proc);
            mixed_free(m);
        }
}

/* Two strings as long as the number says. */
static void single_grow(struct single *s)
{
    s->in[0] = number_field("in");
    s->out[0] = bytes_field("p");
    s->out[1] = bytes_field("q");
    single_make(s, "grow", HR_OP_MAP, 1, 2);
}

TEST(a_record_beyond_the_bound_is_bad_and_the_others_are_done)
{
    struct single s = {0};
    struct numbers *n = numbers_make(10);
    struct hr_proc *proc;

    single_grow(&s);
    n->values[4] = 300000;
    n->values[9] = 60000;
    proc = open_program(&s.program, 200000);
    run_program(proc, n->records, 10);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ_INT(n->records[i].code, i == 4 ? HR_ERR_LIMIT : HR_OK);
        if (i != 4)
            CHECK_EQ_INT(n->records[i].results[1].bytes, n->values[i]);
    }
    CHECK_HAS(n->records[4].error.message, "200000 bytes");
    CHECK_HAS(n->records[4].error.message, "memory_bytes");
    close_program(proc);
    free(n);
}

static uint64_t pages_held(const struct hr_proc *proc)
{
    struct stat in, out;

    fstat(proc->in.fd, &in);
    fstat(proc->out.fd, &out);
    return (uint64_t)(in.st_blocks + out.st_blocks) * 512;
}

TEST(memory_grows_under_a_call_and_a_peak_is_given_back)
{
    struct single s = {0};
    struct numbers *n = numbers_make(10);
    struct hr_proc *proc;

    single_grow(&s);
    proc = open_program(&s.program, 0);
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < 10; i++)
            n->values[i] = round == 3 ? 1000000 + i : 100 + i;
        run_program(proc, n->records, 10);
        for (int i = 0; i < 10; i++) {
            const struct hr_value *r = n->records[i].results;

            CHECK_EQ_INT(r[0].bytes, n->values[i]);
            CHECK_EQ_INT(((const char *)r[0].data)[r[0].bytes - 1], 'p');
            CHECK_EQ_INT(((const char *)r[1].data)[0], 'q');
            CHECK_EQ_INT(((const char *)r[1].data)[r[1].bytes - 1], 'q');
        }
        if (round == 3)
            CHECK(pages_held(proc) > 20000000);
    }
    CHECK(pages_held(proc) < 200000);
    close_program(proc);
    free(n);
}
