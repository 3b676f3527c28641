/*
 * tests/conformance/cache_test.c - a pipeline with a cache gives the records that it
 * gives without: in every epoch, variant and order, on ranks and resumed, from a cold,
 * warm, full or damaged cache, and when several processes fill one or are killed. What it
 * has it does not make again. random_graphs_test has caches in all kinds of graphs.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/rng.h"
#include "core/str.h"
#include "tests/conformance/photos.h"
#include "tests/conformance/random_graph.h"
#include "tests/support/check.h"
#include "tests/support/outcome.h"
#include "tests/support/peers.h"

__attribute__((constructor)) static void serve(void)
{
    if (peers_argument() != NULL)
        peers_serve(random_graph_code, NULL);
}

/* A folder that no test has used yet. */
static const char *new_folder(void)
{
    static char path[512];
    static int count;

    snprintf(path, sizeof path, "%s/kept%d", check_temp_dir(), count++);
    return path;
}

/* Evaluation on photos, as examples/vision_eval.yaml, shuffled, in mode close: with a
 * cache after the crop, or without (NULL). */
static const char *photos_text(const char *cache)
{
    static char text[4096];

    snprintf(text, sizeof text,
             "headrace: 1\npipeline:\n"
             "  - source.files: {path: '%s', labels: folder}\n"
             "  - order.shuffle: {}\n"
             "  - image.decode: {mode: close}\n"
             "  - image.resize_shortest: {size: 48}\n"
             "  - image.center_crop: {size: 40}\n"
             "%s%s%s"
             "  - image.normalize: {mean: imagenet, std: imagenet}\n"
             "  - image.flip: {p: 0.5}\n"
             "  - batch.stack: {size: 7, drop_last: false}\n",
             photos_good(), cache != NULL ? "  - flow.cache: {" : "",
             cache != NULL ? cache : "", cache != NULL ? "}\n" : "");
    return text;
}

/* Numbers of which some are dropped, expanded and looked at by user code. */
static const char *numbers_text(const char *cache)
{
    static char text[4096];

    snprintf(
        text, sizeof text,
        "headrace: 1\npipeline:\n"
        "  - source.range: {n: 200}\n"
        "  - order.shuffle: {}\n"
        "  - record.filter: {expr: \"value %% 5 != 1\"}\n"
        "  - code.expand: {code: few, fields: [value], outputs: [\"value: int64[]\", "
        "\"child: int64\"]}\n"
        "  - record.filter: {expr: \"child %% 3 != 1\"}\n"
        "%s%s%s"
        "  - order.shuffle: {window: 9}\n"
        "  - batch.pad: {size: 6, drop_last: false}\n",
        cache != NULL ? "  - flow.cache: {" : "", cache != NULL ? cache : "",
        cache != NULL ? "}\n" : "");
    return text;
}

typedef const char *make_text(const char *cache);

static struct outcome_job job_of(const char *text)
{
    struct outcome_job job = outcome_job_text(text);

    job.prepare = random_graph_prepare;
    job.options.epochs = 3;
    job.options.seed = check_seed();
    return job;
}

static struct outcome *run(const struct outcome_job *job)
{
    struct outcome *outcome = outcome_run(job);

    if (outcome->code != HR_ERR_END)
        check_failed(__FILE__, __LINE__, "%s in\n%s", outcome->error.message, job->text);
    return outcome;
}

/* The run of a graph with this cache gives what the run without gives; returns it. */
static struct outcome *check_equal(make_text *text, const char *cache, int threads)
{
    struct outcome_job job = job_of(text(NULL));
    struct outcome *plain = run(&job), *cached;

    job.text = text(cache);
    outcome_job_threads(&job, threads);
    cached = run(&job);
    outcome_check_same(plain, cached, 0, cache);
    outcome_free(plain);
    return cached;
}

/* ---- the same records ---- */

TEST(photos_are_the_same_with_a_cache_and_without)
{
    char cache[700];

    snprintf(cache, sizeof cache, "folder: '%s'", new_folder());
    for (int i = 0; i < 6; i++) {
        struct outcome *outcome =
            check_equal(photos_text, i % 2 == 0 ? cache : "", i / 2 * 2);
        uint64_t made = i % 2 == 0 && i > 0 ? 0 : PHOTOS;
        uint64_t read = outcome->nodes[0].records;

        /* Threads may be at one record in two epochs at once, at the end of the first. */
        CHECK(i < 2 || made == 0 ? read == made : read >= made && read < 3 * made / 2);
        CHECK_EQ_INT(outcome->nodes[2].records, read); /* image.decode */
        CHECK_EQ_INT(outcome->nodes[5].records, 3 * PHOTOS);
        CHECK_EQ_INT(outcome->nodes[5].kept_entries, PHOTOS);
        outcome_free(outcome);
    }
}

TEST(numbers_are_the_same_with_a_cache_and_without)
{
    char cache[700];

    /* The user code draws nothing; the graph is told so. */
    snprintf(cache, sizeof cache, "random: freeze, folder: '%s'", new_folder());
    for (int i = 0; i < 6; i++)
        outcome_free(
            check_equal(numbers_text, i % 2 == 0 ? cache : "random: freeze", i / 2 * 2));
}

TEST(runs_with_a_cache_resume_like_those_without)
{
    char cache[700];

    for (int i = 0; i < 2; i++) {
        make_text *text = i == 0 ? photos_text : numbers_text;
        struct outcome_job job;
        struct outcome *whole;

        snprintf(cache, sizeof cache, "random: freeze, folder: '%s'", new_folder());
        job = job_of(text(cache));
        job.states = true;
        whole = run(&job);
        outcome_check_restarts(&job, whole, 12);
        outcome_free(whole);
    }
}

static enum hr_err
prepare_peers(void *user, struct hr_graph *graph, struct hr_error *reterr)
{
    enum hr_err code = random_graph_prepare(NULL, graph, reterr);

    return code == HR_OK ? peers_host(user, graph, reterr) : code;
}

TEST(worker_processes_give_and_skip_the_same_records)
{
    static char text[8192];
    char cache[700];

    snprintf(cache, sizeof cache, "random: freeze, folder: '%s'", new_folder());
    for (int i = 0; i < 2; i++) {
        struct outcome_job job = job_of(numbers_text(NULL));
        struct outcome *plain = run(&job), *cached;
        struct peers peers;

        peers_text(numbers_text(cache), text, sizeof text);
        peers_init(&peers, "");
        outcome_job_threads(&job, 2);
        job.text = text;
        job.prepare = prepare_peers;
        job.user = &peers;
        cached = run(&job);
        outcome_check_same(plain, cached, 0, i == 0 ? "cold" : "warm");
        peers_finish(&peers);
        outcome_free(plain);
        outcome_free(cached);
    }
}

TEST(ranks_share_a_folder)
{
    char cache[700];

    snprintf(cache, sizeof cache, "folder: '%s'", new_folder());
    for (int64_t rank = 0; rank < 2; rank++) {
        struct outcome_job job = job_of(photos_text(NULL));
        struct outcome *plain, *cached;

        job.options.rank = rank;
        job.options.world = 2;
        plain = run(&job);
        job.text = photos_text(cache);
        cached = run(&job);
        outcome_check_same(plain, cached, 0, "rank");
        outcome_free(plain);
        outcome_free(cached);
    }
}

/* ---- what is made and what is not ---- */

TEST(nothing_is_read_for_a_record_that_is_kept)
{
    char cache[700], moved[700];
    struct outcome_job job;
    struct outcome *plain, *cached;

    snprintf(cache, sizeof cache, "folder: '%s'", new_folder());
    job = job_of(photos_text(cache));
    plain = run(&job);
    /* The files are there, to be listed, and unreadable. */
    snprintf(moved, sizeof moved, "find '%s' -name '*.jpg' -exec truncate -s 0 {} +",
             photos_good());
    {
        char copy[700];

        snprintf(copy, sizeof copy, "cp -r '%s' '%s/saved'", photos_good(),
                 check_temp_dir());
        CHECK_EQ_INT(system(copy), 0);
        CHECK_EQ_INT(system(moved), 0);
        cached = run(&job);
        outcome_check_same(plain, cached, 0, "without the files");
        snprintf(copy, sizeof copy, "rm -r '%s' && mv '%s/saved' '%s'", photos_good(),
                 check_temp_dir(), photos_good());
        CHECK_EQ_INT(system(copy), 0);
    }
    outcome_free(plain);
    outcome_free(cached);
}

TEST(an_edited_graph_has_another_cache)
{
    char cache[700], text[4096], *size;
    const char *folder = new_folder();
    struct outcome_job job;
    struct outcome *cached, *plain;

    snprintf(cache, sizeof cache, "folder: '%s'", folder);
    outcome_free(check_equal(photos_text, cache, 2));
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "%s", photos_text(i == 0 ? cache : NULL));
        size = strstr(text, "size: 48");
        memcpy(size, "size: 44", 8);
        job = job_of(text);
        if (i == 0)
            cached = run(&job);
        else
            plain = run(&job);
    }
    outcome_check_same(plain, cached, 0, "edited");
    CHECK_EQ_INT(cached->nodes[0].records, PHOTOS); /* inline: each one once */
    outcome_free(plain);
    outcome_free(cached);
}

TEST(a_full_cache_keeps_what_it_has)
{
    char cache[700];

    for (int disk = 0; disk < 2; disk++) {
        struct outcome *outcome;

        snprintf(cache, sizeof cache, "budget: 120000%s%s%s", disk ? ", folder: '" : "",
                 disk ? new_folder() : "", disk ? "'" : "");
        outcome = check_equal(photos_text, cache, 0);
        CHECK(outcome->nodes[5].kept_bytes <= 120000);
        CHECK(outcome->nodes[5].kept_entries > 10);
        CHECK(outcome->nodes[0].records > PHOTOS);
        CHECK(outcome->nodes[0].records < 3 * PHOTOS);
        CHECK_EQ_INT(outcome->nodes[0].records,
                     3 * PHOTOS - 2 * outcome->nodes[5].kept_entries);
        outcome_free(outcome);
    }
}

TEST(a_memory_budget_holds_the_cache_too)
{
    struct outcome_job job = job_of(photos_text("budget: 100MB"));
    struct outcome *outcome;

    job.options.memory_bytes = (int64_t)64 << 20;
    outcome = outcome_run(&job);
    CHECK(outcome->code != HR_ERR_END);
    CHECK_HAS(outcome->error.message, "memory budget");
    CHECK_HAS(outcome->error.message, "the budget of 'flow.cache'");
    outcome_free(outcome);
    job.text = photos_text("");
    outcome = run(&job);
    CHECK(outcome->nodes[5].kept_bytes <= 32 << 20);
    CHECK_EQ_INT(outcome->nodes[5].kept_entries, PHOTOS);
    outcome_free(outcome);
}

TEST(a_run_may_leave_its_caches_out)
{
    char cache[700];
    const char *folder = new_folder();
    struct outcome_job job;
    struct outcome *plain, *cached;
    struct stat info;

    snprintf(cache, sizeof cache, "folder: '%s'", folder);
    job = job_of(photos_text(cache));
    job.options.uncached = true;
    plain = run(&job);
    CHECK_EQ_INT(plain->nodes[0].records, 3 * PHOTOS);
    CHECK(stat(folder, &info) != 0);
    job.options.uncached = false;
    cached = run(&job);
    outcome_check_same(plain, cached, 0, "with its cache");
    outcome_free(plain);
    outcome_free(cached);
}

/* ---- draws ---- */

TEST(frozen_draws_do_not_depend_on_what_is_kept)
{
    static const char *const freezes[] = {"random: freeze", "refresh: 2"};
    char cache[800];

    for (size_t i = 0; i < 2; i++) {
        struct outcome *outcomes[3];
        static const char *const more[] = {", budget: 1", "", ", folder: "};

        for (size_t k = 0; k < 3; k++) {
            static char text[4096];
            struct outcome_job job;

            snprintf(cache, sizeof cache, "%s%s%s", freezes[i], more[k],
                     k == 2 ? new_folder() : "");
            snprintf(text, sizeof text,
                     "headrace: 1\npipeline:\n"
                     "  - source.files: {path: '%s', labels: folder}\n"
                     "  - image.decode: {mode: close}\n"
                     "  - image.random_resized_crop: {size: 24}\n"
                     "  - flow.cache: {%s}\n"
                     "  - batch.stack: {size: %d}\n",
                     photos_good(), cache, PHOTOS);
            job = job_of(text);
            outcome_job_threads(&job, k == 1 ? 2 : 0);
            outcomes[k] = run(&job);
        }
        CHECK_EQ_INT(outcomes[0]->batches, 3);
        outcome_check_same(outcomes[0], outcomes[1], 0, "in memory");
        outcome_check_same(outcomes[0], outcomes[2], 0, "in a folder");
        CHECK(outcomes[0]->hashes[0] == outcomes[0]->hashes[1]);
        CHECK((outcomes[0]->hashes[1] == outcomes[0]->hashes[2]) == (i == 0));
        for (size_t k = 0; k < 3; k++)
            outcome_free(outcomes[k]);
    }
}

/* ---- damage ---- */

static void damage(const char *folder, const char *end, struct hr_rng *rng)
{
    char inner[1200], path[1800];
    struct dirent *item;
    struct stat info;
    DIR *all = opendir(folder);

    inner[0] = '\0';
    while ((item = readdir(all)) != NULL)
        if (strncmp(item->d_name, "cache-", 6) == 0)
            snprintf(inner, sizeof inner, "%s/%s", folder, item->d_name);
    closedir(all);
    all = opendir(inner);
    CHECK(all != NULL);
    while ((item = readdir(all)) != NULL) {
        int fd;

        if (strstr(item->d_name, end) == NULL)
            continue;
        snprintf(path, sizeof path, "%s/%s", inner, item->d_name);
        fd = open(path, O_RDWR);
        CHECK(fd >= 0 && fstat(fd, &info) == 0);
        for (int i = 0; i < 20; i++) {
            off_t at = (off_t)hr__rng_below(rng, (uint64_t)info.st_size);
            unsigned char byte = (unsigned char)hr__rng_below(rng, 256);

            CHECK(pwrite(fd, &byte, 1, at) == 1);
        }
        close(fd);
    }
    closedir(all);
}

TEST(damaged_records_are_made_again)
{
    char cache[700], folder[512];
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 1, 0);
    snprintf(folder, sizeof folder, "%s", new_folder());
    snprintf(cache, sizeof cache, "folder: '%s'", folder);
    outcome_free(check_equal(photos_text, cache, 0));
    for (int i = 0; i < 4; i++) {
        struct outcome *outcome;

        damage(folder, i % 2 == 0 ? ".values" : ".index", &rng);
        outcome = check_equal(photos_text, cache, 2);
        CHECK(outcome->nodes[0].records > 0 || i % 2 == 1);
        CHECK(outcome->nodes[0].records < 3 * PHOTOS / 2);
        outcome_free(outcome);
    }
}

/* ---- processes ---- */

static _Noreturn void fill(const char *text, int threads)
{
    struct outcome_job job = job_of(text);
    struct outcome *outcome;

    outcome_job_threads(&job, threads);
    outcome = outcome_run(&job);
    _exit(outcome->code == HR_ERR_END ? 0 : 1);
}

TEST(processes_fill_one_folder_at_once)
{
    char cache[700];
    pid_t children[3];

    snprintf(cache, sizeof cache, "folder: '%s'", new_folder());
    fflush(stdout);
    for (int i = 0; i < 3; i++) {
        children[i] = fork();
        if (children[i] == 0)
            fill(photos_text(cache), i);
    }
    for (int i = 0; i < 3; i++) {
        int status;

        CHECK(waitpid(children[i], &status, 0) == children[i] && status == 0);
    }
    {
        struct outcome *outcome = check_equal(photos_text, cache, 2);

        CHECK_EQ_INT(outcome->nodes[0].records, 0);
        CHECK_EQ_INT(outcome->nodes[5].kept_entries, PHOTOS);
        outcome_free(outcome);
    }
}

TEST(a_run_that_was_killed_leaves_whole_records)
{
    char cache[700];
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 2, 0);
    snprintf(cache, sizeof cache, "folder: '%s'", new_folder());
    for (int i = 0; i < 4; i++) {
        struct timespec time = {0, (long)hr__rng_below(&rng, 60) * 1000000};
        pid_t child;

        fflush(stdout);
        child = fork();
        if (child == 0)
            fill(photos_text(cache), 2);
        nanosleep(&time, NULL);
        kill(child, SIGKILL);
        CHECK(waitpid(child, NULL, 0) == child);
    }
    outcome_free(check_equal(photos_text, cache, 2));
}

TEST(a_folder_that_cannot_be_made_ends_the_run_at_its_start)
{
    struct outcome_job job = job_of(photos_text("folder: /proc/none"));
    struct outcome *outcome = outcome_run(&job);

    CHECK(outcome->code != HR_ERR_END);
    CHECK_HAS(outcome->error.message, "'flow.cache'");
    CHECK_HAS(outcome->error.message, "/proc/none");
    outcome_free(outcome);
}
