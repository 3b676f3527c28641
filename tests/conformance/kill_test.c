/*
 * tests/conformance/kill_test.c - kill -9 at 50 random moments: the batches delivered
 * over all runs equal those of an uninterrupted run, in order, each exactly once.
 *
 * A child process resumes from a file with the state and the hashes of the batches so
 * far. After each batch it replaces that file by rename, so both change atomically. It
 * writes a byte to a pipe per batch; the parent waits for a few of them plus a random
 * delay, then kills. So the test makes progress on a machine of any speed.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/rng.h"
#include "tests/conformance/photos.h"
#include "tests/support/check.h"
#include "tests/support/outcome.h"

#define KILLS 50
#define SAVED_MAX (1 << 20)
#define HASH_BYTES 17 /* 16 digits and a newline */

/* The file's contents: a line of state, then a line per batch. */
struct saved {
    char text[SAVED_MAX];
    size_t bytes, hashes_at; /* offset of the first hash */
};

static void saved_load(struct saved *saved, const char *path)
{
    FILE *file = fopen(path, "r");

    saved->bytes = saved->hashes_at = 0;
    if (file == NULL)
        return;
    saved->bytes = fread(saved->text, 1, SAVED_MAX - 1, file);
    fclose(file);
    saved->text[saved->bytes] = '\0';
    saved->hashes_at = (size_t)(strchr(saved->text, '\n') + 1 - saved->text);
}

/* Replaces the state and appends a hash, by one rename. */
static bool saved_advance(struct saved *saved, const char *path, const char *state,
                          const struct hr_batch *batch)
{
    static struct saved next;
    char fresh[600];
    FILE *file;
    bool written;

    next.hashes_at = strlen(state) + 1;
    next.bytes = (size_t)snprintf(next.text, SAVED_MAX, "%s\n%.*s%016" PRIx64 "\n", state,
                                  (int)(saved->bytes - saved->hashes_at),
                                  saved->text + saved->hashes_at, outcome_hash(batch));
    snprintf(fresh, sizeof fresh, "%s.fresh", path);
    file = fopen(fresh, "w");
    if (file == NULL)
        return false;
    written = fwrite(next.text, 1, next.bytes, file) == next.bytes;
    written = fclose(file) == 0 && written;
    memcpy(saved, &next, sizeof next);
    return written && rename(fresh, path) == 0;
}

/* Resumes and runs to the end; never returns. Exit code 0 on success. */
static _Noreturn void child(struct outcome_job job, const char *path, int pipe)
{
    static struct saved saved;
    static char state[SAVED_MAX];
    struct hr_graph *graph;
    struct hr_iter *iter;
    struct hr_batch *batch;
    struct hr_error error = {0};
    enum hr_err code;
    char *json;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    saved_load(&saved, path);
    snprintf(state, sizeof state, "%.*s", (int)saved.hashes_at, saved.text);
    job.options.state = saved.bytes > 0 ? state : NULL;
    graph = outcome_graph(&job, &error);
    if (graph == NULL || hr_iter_open(graph, &job.options, &iter, &error) != HR_OK) {
        printf("# child: %s\n", error.message);
        _exit(1);
    }
    while ((code = hr_iter_next(iter, &batch, &error)) == HR_OK) {
        if (hr_iter_save(iter, &json, NULL) != HR_OK ||
            !saved_advance(&saved, path, json, batch) || write(pipe, "", 1) != 1)
            _exit(1);
        hr_free(json);
        hr_batch_unref(batch);
        usleep(300); /* slow down, so that a fast machine does not finish before it is
                        killed */
    }
    _exit(code == HR_ERR_END ? 0 : 1);
}

/* Waits for `count` bytes, or for the end of the pipe. */
static void wait_bytes(int pipe, uint64_t count)
{
    char byte;

    while (count > 0) {
        ssize_t got = read(pipe, &byte, 1);

        if (got == 1)
            count--;
        else if (got == 0 || errno != EINTR)
            return;
    }
}

/* Runs a child; kills it after `batches` batches plus some microseconds, unless `batches`
 * is UINT64_MAX. Returns the wait status. */
static int run_child(const struct outcome_job *job, const char *path, uint64_t batches,
                     uint64_t microseconds)
{
    int ends[2], status;
    pid_t pid;

    CHECK_EQ_INT(pipe(ends), 0);
    fflush(stdout);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        close(ends[0]);
        child(*job, path, ends[1]);
    }
    close(ends[1]);
    wait_bytes(ends[0], batches);
    if (batches != UINT64_MAX) {
        usleep((useconds_t)microseconds);
        kill(pid, SIGKILL);
    }
    CHECK_EQ_INT(waitpid(pid, &status, 0), pid);
    close(ends[0]);
    return status;
}

static void check_hashes(const struct outcome *whole, const struct saved *saved)
{
    const char *at = saved->text + saved->hashes_at;
    char hash[HASH_BYTES + 1];

    CHECK_EQ_INT(saved->bytes - saved->hashes_at, whole->batches * HASH_BYTES);
    for (size_t i = 0; i < whole->batches; i++, at += HASH_BYTES) {
        snprintf(hash, sizeof hash, "%016" PRIx64 "\n", whole->hashes[i]);
        if (memcmp(at, hash, HASH_BYTES) != 0)
            check_failed(__FILE__, __LINE__, "batch %zu of %zu differs", i,
                         whole->batches);
    }
}

/* `name` is the name of the file to resume from. */
static void check_kills(struct outcome_job job, const char *name)
{
    static struct saved saved;
    struct outcome *whole = outcome_run(&job);
    struct hr_rng rng;
    char path[512];
    int killed = 0;

    CHECK_ERR(HR_ERR_END, whole->code);
    printf("# %zu batches\n", whole->batches);
    snprintf(path, sizeof path, "%s/%s", check_temp_dir(), name);
    hr__rng_init(&rng, check_seed(), 0, 0);
    for (int i = 0; i < KILLS; i++) {
        int status;

        outcome_job_threads(&job, (int)hr__rng_below(&rng, 4));
        status = run_child(&job, path, hr__rng_below(&rng, 4), hr__rng_below(&rng, 1500));
        CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
        killed += WIFSIGNALED(status);
    }
    CHECK(killed > KILLS / 2); /* the run must be long enough for most kills */
    outcome_job_threads(&job, 2);
    CHECK_EQ_INT(run_child(&job, path, UINT64_MAX, 0), 0);
    saved_load(&saved, path);
    check_hashes(whole, &saved);
    outcome_free(whole);
}

#define HEAD                                                                             \
    "headrace: 1\n"                                                                      \
    "params:\n"                                                                          \
    "  data: {type: path}\n"                                                             \
    "pipeline:\n"                                                                        \
    "  - source.files: {path: \"${data}\", labels: folder}\n"                            \
    "  - order.shuffle: {}\n"
#define TRAIN                                                                            \
    "  - image.decode: {}\n"                                                             \
    "  - image.random_resized_crop: {size: 32}\n"                                        \
    "  - image.flip: {}\n"
#define BATCH "  - batch.stack: {size: 3}\n"

static struct outcome_job job_photos(const char *text, const char *photos)
{
    struct outcome_job job = outcome_job_text(text);

    job.params[job.param_count++] = (struct hr_graph_param){"data", photos};
    job.options.epochs = 12;
    return job;
}

TEST(fifty_kills_change_no_batch_of_photos)
{
    check_kills(job_photos(HEAD TRAIN BATCH, photos_good()), "photos");
}

TEST(fifty_kills_change_no_batch_after_a_filter_and_a_window)
{
    check_kills(job_photos(HEAD "  - record.filter: {expr: \"label % 3 != 1\"}\n"
                                "  - order.shuffle: {window: 16}\n" TRAIN BATCH,
                           photos_good()),
                "filtered");
}

TEST(fifty_kills_change_no_batch_of_a_run_that_substitutes)
{
    struct outcome_job job = job_photos(HEAD TRAIN BATCH, photos_broken(10));

    job.options.on_error = HR_ON_ERROR_SUBSTITUTE;
    check_kills(job, "substituted");
}

TEST(fifty_kills_change_no_batch_of_a_run_that_skips)
{
    struct outcome_job job = job_photos(HEAD TRAIN BATCH, photos_broken(10));

    job.options.on_error = HR_ON_ERROR_SKIP;
    check_kills(job, "skipped");
}
