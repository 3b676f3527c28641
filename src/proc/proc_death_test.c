/*
 * proc/proc_death_test.c - peers that die, are killed or hang: which records are lost,
 * which are blamed, and what leaks.
 */
#include "proc/proc_test_util.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"

TEST(a_peer_that_dies_once_or_twice_is_replaced_and_nothing_is_lost)
{
    for (int deaths = 1; deaths <= 2; deaths++) {
        int fds = check_open_files();
        struct single s = {0};
        struct numbers *n = numbers_make(300);
        struct hr_proc_stats stats;
        struct hr_proc *proc;

        single_numbers(&s, deaths == 1 ? "die_once" : "die_twice");
        proc = open_program(&s.program, 0);
        run_program(proc, n->records, 300);
        for (int64_t i = 0; i < 300; i++)
            CHECK_EQ_INT(number(&n->records[i], 0), i + 1);
        hr__proc_stats(proc, &stats);
        CHECK_EQ_INT(stats.replaced, deaths);
        CHECK_EQ_INT(close_program(proc), 1);
        CHECK_EQ_INT(check_open_files(), fds);
        free(n);
    }
}

TEST(user_code_learns_how_many_workers_it_replaces)
{
    struct single s = {0};
    struct numbers *n = numbers_make(3);
    struct hr_proc *proc;

    single_numbers(&s, "replaced");
    proc = open_program(&s.program, 0);
    run_program(proc, n->records, 3);
    CHECK_EQ_INT(number(&n->records[0], 0), 0);
    CHECK_EQ_INT(number(&n->records[1], 0), 2);
    CHECK_EQ_INT(number(&n->records[2], 0), 2);
    close_program(proc);
    free(n);
}

TEST(a_record_that_kills_three_peers_is_bad_by_itself)
{
    struct single s = {0};
    struct numbers *n = numbers_make(300);
    struct hr_proc *proc;

    single_numbers(&s, "die");
    n->values[200] = 7;
    proc = open_program(&s.program, 0);
    run_program(proc, n->records, 300);
    for (int64_t i = 0; i < 300; i++) {
        if (i != 7 && i != 200) {
            CHECK_EQ_INT(number(&n->records[i], 0), i + 1);
            continue;
        }
        CHECK_EQ_INT(n->records[i].code, HR_ERR_IO);
        CHECK_HAS(n->records[i].error.message, "worker process died");
        CHECK_HAS(n->records[i].error.message, "in a row; the last one was killed by 9");
        CHECK_EQ_STR(n->records[i].error.node, "mine");
    }
    close_program(proc);
    free(n);
}

/* Kills at random moments, but never three peers in a row: then their record is bad, or
 * the run is given up. A kill that comes too late for its run is the first of the next.
 */
struct killer {
    uint64_t naps_ns; /* naps are shorter */
    int kills, left;  /* under kill_lock; left: in this run */
};

static void *killer(void *user)
{
    struct killer *k = user;
    uint64_t state = 99;

    for (int kills = 0; kills < 50;) {
        uint64_t ns = draw(&state) % k->naps_ns;
        struct timespec nap = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

        nanosleep(&nap, NULL);
        pthread_mutex_lock(&kill_lock);
        if (k->left > 0 && peer_last > 0 && kill(peer_last, SIGKILL) == 0) {
            peer_last = 0;
            k->left--;
            k->kills++;
        }
        kills = k->kills;
        pthread_mutex_unlock(&kill_lock);
    }
    return NULL;
}

static void allow_kills(struct killer *k)
{
    pthread_mutex_lock(&kill_lock);
    k->left = peer_last > 0 ? 2 : 1;
    pthread_mutex_unlock(&kill_lock);
}

TEST(fifty_kills_at_random_moments_lose_nothing)
{
    struct killer k = {0};
    int fds = check_open_files();
    struct single s = {0};
    struct numbers *n = numbers_make(60);
    pthread_t thread;
    struct hr_proc *proc;

    single_numbers(&s, "slow");
    k.naps_ns = hr__now_ns();
    proc = open_program(&s.program, 0);
    k.naps_ns = 3 * (hr__now_ns() - k.naps_ns) + 10000000; /* most come to their work */
    pthread_create(&thread, NULL, killer, &k);
    do {
        allow_kills(&k);
        run_program(proc, n->records, 60);
        for (int64_t i = 0; i < 60; i++) {
            CHECK_EQ_INT(n->records[i].code, HR_OK);
            CHECK_EQ_INT(number(&n->records[i], 0), i + 1);
        }
    } while (pthread_tryjoin_np(thread, NULL) != 0);
    CHECK_EQ_INT(k.kills, 50);
    close_program(proc);
    CHECK_EQ_INT(check_open_files(), fds);
    free(n);
}

struct canceller {
    int told; /* the read end of tell_fd */
    atomic_bool cancel;
};

static void *cancel_when_told(void *user)
{
    struct canceller *c = user;
    char byte;

    CHECK_EQ_INT(read(c->told, &byte, 1), 1);
    atomic_store(&c->cancel, true);
    return NULL;
}

TEST(a_call_that_hangs_is_cancelled_and_its_process_ended)
{
    struct single s = {0};
    struct numbers *n = numbers_make(10);
    struct canceller c = {0};
    struct hr_error error = {0};
    struct hr_proc *proc;
    pthread_t thread;
    int ends[2];

    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    c.told = ends[0];
    tell_fd = ends[1];
    single_numbers(&s, "hang");
    CHECK_OK(hr__proc_open(&host, &s.program, 0, &c.cancel, &proc, &error));
    run_program(proc, n->records, 5);
    pthread_create(&thread, NULL, cancel_when_told, &c);
    CHECK_ERR(HR_ERR_CANCELLED, hr__proc_run(proc, n->records, 10, &error));
    pthread_join(thread, NULL);
    CHECK_EQ_INT(close_program(proc), 0);
    tell_fd = -1;
    close(ends[0]);
    close(ends[1]);
    free(n);
}

TEST(a_run_that_is_cancelled_before_it_waits_ends_its_process)
{
    struct single s = {0};
    struct numbers *n = numbers_make(10);
    struct hr_error error = {0};
    atomic_bool cancel = false;
    struct hr_proc *proc;

    single_numbers(&s, "hang");
    CHECK_OK(hr__proc_open(&host, &s.program, 0, &cancel, &proc, &error));
    run_program(proc, n->records, 5);
    cancel = true;
    CHECK_ERR(HR_ERR_CANCELLED, hr__proc_run(proc, n->records, 10, &error));
    CHECK_EQ_INT(close_program(proc), 0);
    free(n);
}
