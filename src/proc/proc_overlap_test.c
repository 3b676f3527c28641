/*
 * proc/proc_overlap_test.c - two requests under way in one worker process: their order,
 * and whose a death is.
 */
#include "proc/proc_test_util.h"

#include <stdlib.h>

struct pair {
    struct single s;
    struct numbers *n[2];
    struct hr_proc *proc;
};

/* Channel 0 has the numbers from 0, channel 1 those from 1000. */
static void pair_open(struct pair *p, const char *code, size_t count)
{
    *p = (struct pair){
        .n = {numbers_make(count), numbers_make(count)}
    };
    single_numbers(&p->s, code);
    for (size_t i = 0; i < count; i++)
        p->n[1]->values[i] = 1000 + (int64_t)i;
    p->proc = open_program(&p->s.program, 0);
}

static int pair_close(struct pair *p)
{
    free(p->n[0]);
    free(p->n[1]);
    return close_program(p->proc);
}

static void begin(struct pair *p, unsigned channel, size_t count)
{
    struct hr_error error = {0};

    CHECK_OK(hr__proc_begin(hr__proc_channel(p->proc, channel), p->n[channel]->records,
                            count, &error));
}

static void end(struct pair *p, unsigned channel)
{
    struct hr_error error = {0};

    CHECK_OK(hr__proc_end(hr__proc_channel(p->proc, channel), &error));
}

/* Each number became the next one, but for the poison, which is a bad record. */
static void
check_channel(const struct pair *p, unsigned channel, size_t count, int64_t poison)
{
    for (size_t i = 0; i < count; i++) {
        const struct hr_proc_record *record = &p->n[channel]->records[i];

        if (p->n[channel]->values[i] == poison)
            CHECK_EQ_INT(record->code, HR_ERR_IO);
        else
            CHECK_EQ_INT(number(record, 0), p->n[channel]->values[i] + 1);
    }
}

TEST(two_channels_take_turns)
{
    struct pair p;

    pair_open(&p, "add", 600);
    begin(&p, 0, 600);
    for (int round = 0; round < 39; round++) {
        size_t count = 1 + (size_t)round * 15;

        begin(&p, 1, count);
        end(&p, 0);
        check_channel(&p, 0, round == 0 ? 600 : count, -1);
        begin(&p, 0, count + 15);
        end(&p, 1);
        check_channel(&p, 1, count, -1);
    }
    end(&p, 0);
    CHECK_EQ_INT(pair_close(&p), 1);
}

TEST(a_death_in_either_channel_costs_the_other_nothing)
{
    static const char *const codes[] = {"die_once", "die_twice", "die"};

    for (int k = 0; k < 6; k++) {
        unsigned killer = (unsigned)k % 2;
        struct hr_proc_stats stats;
        struct pair p;

        pair_open(&p, codes[k / 2], 60);
        p.n[killer]->values[40] = 7;
        p.n[0]->values[7] = killer == 0 ? 7 : 0;
        begin(&p, 0, 60);
        begin(&p, 1, 60);
        end(&p, 0);
        check_channel(&p, 0, 60, k / 2 == 2 && killer == 0 ? 7 : -1);
        end(&p, 1);
        check_channel(&p, 1, 60, k / 2 == 2 && killer == 1 ? 7 : -1);
        hr__proc_stats(p.proc, &stats);
        if (k / 2 < 2)
            CHECK_EQ_INT(stats.replaced, k / 2 + 1);
        else
            CHECK_EQ_INT(stats.replaced, killer == 0 ? 6 : 3);
        CHECK_EQ_INT(pair_close(&p), 1);
    }
}

/* As where a bad record's substitute goes alone while the next records wait. */
TEST(results_outlive_a_peer_that_dies_in_a_later_request)
{
    struct hr_proc_stats stats;
    struct pair p;

    pair_open(&p, "die_once", 60);
    p.n[0]->values[7] = 0;
    begin(&p, 0, 60);
    begin(&p, 1, 60);
    end(&p, 0);
    p.n[0]->values[7] = 7;
    begin(&p, 0, 60);
    end(&p, 0);
    check_channel(&p, 0, 60, -1);
    end(&p, 1);
    check_channel(&p, 1, 60, -1);
    hr__proc_stats(p.proc, &stats);
    CHECK_EQ_INT(stats.replaced, 1);
    CHECK_EQ_INT(pair_close(&p), 1);
}

TEST(arrays_of_both_channels_lie_apart)
{
    struct mixed *m[2] = {mixed_make("pass", 4), mixed_make("pass", 4)};
    struct hr_error error = {0};
    struct hr_proc *proc = open_program(&m[0]->s.program, 0);

    for (unsigned k = 0; k < 2; k++)
        CHECK_OK(hr__proc_begin(hr__proc_channel(proc, k), m[k]->records, 8, &error));
    for (unsigned k = 0; k < 2; k++)
        CHECK_OK(hr__proc_end(hr__proc_channel(proc, k), &error));
    for (int k = 0; k < 2; k++)
        mixed_check(m[k], 4);
    CHECK_EQ_INT(close_program(proc), 1);
    mixed_free(m[0]);
    mixed_free(m[1]);
}

TEST(closing_with_requests_under_way_leaves_nothing_behind)
{
    int fds = check_open_files();
    struct pair p;

    pair_open(&p, "hang", 60);
    begin(&p, 0, 60);
    begin(&p, 1, 60);
    CHECK_EQ_INT(pair_close(&p), 0);
    CHECK_EQ_INT(check_open_files(), fds);
}
