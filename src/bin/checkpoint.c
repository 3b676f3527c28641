/*
 * checkpoint.c - see checkpoint.h.
 */
#include "checkpoint.h"
#include "cli.h"
#include "core/kill_point.h"
#include "out.h"
#include "stop.h"
#include "text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_NS 250000000ull /* then it looks what it waits for */

struct aside {
    char path[PATH_MAX + 32];
};

static struct aside aside_of(const char *path, uint64_t number)
{
    struct aside aside;

    snprintf(aside.path, sizeof(aside.path), "%.*s.%llu", PATH_MAX, path,
             (unsigned long long)number);
    return aside;
}

static int failed(const struct hr_error *error)
{
    if (error->code == HR_ERR_CANCELLED && stop_requested())
        return CLI_INTERRUPTED;
    return cli_library_failed(error);
}

/* A name that was made or changed survives a power cut, too. */
static int sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX] = ".";
    int fd, error;

    if (slash != NULL)
        snprintf(folder, sizeof(folder), "%.*s", (int)(slash + 1 - path), path);
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    error = fd < 0 || fsync(fd) != 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    return error == 0 || error == EINVAL
               ? CLI_OK
               : cli_failed("cannot write to %s: %s", folder, strerror(error));
}

static int put_in_place(const struct aside *aside, const char *path)
{
    if (rename(aside->path, path) != 0)
        return cli_failed("cannot rename %s to %s: %s", aside->path, path,
                          strerror(errno));
    return sync_folder(path);
}

static int
ask_committed(struct hr_iter *iter, struct progress *progress, uint64_t *ret_number)
{
    for (;;) {
        struct hr_error error = {0};
        enum hr_err code = hr_iter_committed(iter, WAIT_NS, ret_number, &error);

        if (code == HR_OK)
            return CLI_OK;
        if (code != HR_ERR_TIMEOUT)
            return failed(&error);
        progress_wait(progress, iter);
    }
}

/* Batches up to a state; hr_iter_save() wrote it. */
static unsigned long long batches_in(const char *state)
{
    const char *at = strstr(state, "\"batches\": ");

    return at != NULL ? strtoull(at + strlen("\"batches\": "), NULL, 10) : 0;
}

static int resume(struct hr_iter *iter, const char *path, uint64_t number, bool quiet)
{
    struct hr_error error = {0};
    char *text = NULL;
    int code;

    if (access(path, F_OK) != 0)
        return cli_usage("checkpoint %llu of this consumer is committed, and there is "
                         "neither %s nor %s.%llu: bring it here, or take another name "
                         "for a new consumer",
                         (unsigned long long)number, path, path,
                         (unsigned long long)number);
    code = text_file_read(path, "the state of a run", &text);
    if (code == CLI_OK && hr_iter_resume(iter, text, &error) != HR_OK)
        code = cli_usage("%s: %s", path, error.message);
    if (code == CLI_OK && !quiet)
        fprintf(stderr, "headrace: resuming from %s, after %llu batches\n", path,
                batches_in(text));
    free(text);
    return code;
}

int checkpoint_resume(struct hr_iter *iter, const char *path, struct progress *progress,
                      bool *ret_resumed)
{
    uint64_t number = 0;
    struct aside aside;
    int code = ask_committed(iter, progress, &number);

    if (code != CLI_OK)
        return code;
    if (number == 0 && access(path, F_OK) == 0) /* what lies aside may count elsewhere */
        return cli_usage("%s exists, and the dispatcher knows no checkpoint of this "
                         "consumer: name a dispatcher with the journal of its commits, "
                         "or remove the file to begin",
                         path);
    aside = aside_of(path, number + 1); /* of a commit that does not count */
    if (unlink(aside.path) != 0 && errno != ENOENT)
        return cli_failed("cannot remove %s: %s", aside.path, strerror(errno));
    aside = aside_of(path, number);
    if (number > 0 && access(aside.path, F_OK) == 0)
        code = put_in_place(&aside, path);
    if (code != CLI_OK)
        return code;
    *ret_resumed = number > 0;
    return number > 0 ? resume(iter, path, number, progress->quiet) : CLI_OK;
}

static int commit(struct hr_iter *iter, struct progress *progress)
{
    for (;;) {
        struct hr_error error = {0};
        /* After Ctrl-C the library waits for a few seconds in one call. */
        enum hr_err code =
            hr_iter_commit(iter, stop_requested() ? UINT64_MAX : WAIT_NS, &error);

        if (code == HR_OK)
            return CLI_OK;
        if (code != HR_ERR_TIMEOUT)
            return cli_library_failed(&error);
        progress_wait(progress, iter);
    }
}

int checkpoint_commit(struct hr_iter *iter, const char *path, struct progress *progress)
{
    struct hr_error error = {0};
    struct aside aside;
    uint64_t number;
    char *text = NULL;
    int code = ask_committed(iter, progress, &number);

    if (code != CLI_OK)
        return code;
    aside = aside_of(path, number + 1);
    if (hr_iter_save(iter, &text, &error) != HR_OK)
        return failed(&error);
    code = out_replace(aside.path, text);
    hr_free(text);
    if (code == CLI_OK)
        code = sync_folder(path);
    HR_KILL_POINT("checkpoint.aside");
    if (code == CLI_OK)
        code = commit(iter, progress);
    HR_KILL_POINT("checkpoint.committed");
    if (code == CLI_OK)
        code = put_in_place(&aside, path);
    return code;
}
