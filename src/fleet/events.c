/*
 * fleet/events.c - see events.h.
 */
#include "fleet/events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/kill_point.h"
#include "core/str.h"

struct hr_events {
    int fd;
    uint64_t lost;
    bool torn; /* the file ends within a line */
};

/* Whether an earlier process was stopped by a full disk within a line. */
static bool is_torn(const char *path, int fd)
{
    struct stat status;
    char last = '\n';
    int reader;

    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0)
        return false;
    reader = open(path, O_RDONLY | O_CLOEXEC);
    if (reader < 0)
        return false;
    (void)!pread(reader, &last, 1, status.st_size - 1);
    close(reader);
    return last != '\n';
}

enum hr_err
hr__events_open(const char *path, struct hr_events **ret_events, struct hr_error *reterr)
{
    struct hr_events *events = hr__calloc(1, sizeof *events);

    if (events == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    events->fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
    if (events->fd < 0) {
        hr__free(events);
        return hr__fail_errno(reterr, HR_ERR_IO, errno, "cannot write %s", path);
    }
    events->torn = is_torn(path, events->fd);
    *ret_events = events;
    return HR_OK;
}

void hr__events_close(struct hr_events *events)
{
    if (events == NULL)
        return;
    close(events->fd);
    hr__free(events);
}

uint64_t hr__events_lost(const struct hr_events *events)
{
    return events != NULL ? events->lost : 0;
}

static void add_time(struct hr_str *line)
{
    uint64_t wall = hr__wall_ns();
    time_t seconds = (time_t)(wall / 1000000000);
    struct tm utc;
    char text[32];

    gmtime_r(&seconds, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    hr__str_addf(line, "{\"time\":\"%s.%06uZ\"", text,
                 (unsigned)(wall % 1000000000 / 1000));
}

/* A full disk may take a part of a line. The next one then begins on a line of its own,
 * so readers lose only what was lost. */
static void write_line(struct hr_events *events, const struct hr_str *line)
{
    ssize_t done = -1;

    if (hr__str_ok(line) && (!events->torn || write(events->fd, "\n", 1) == 1)) {
        events->torn = false;
        done = write(events->fd, hr__str_text(line), line->length);
    }
    if (done == (ssize_t)line->length)
        return;
    events->lost++;
    events->torn = events->torn || done > 0;
}

void hr__events_add(struct hr_events *events, const char *event, ...)
{
    struct hr_str line;
    const char *key;
    va_list args;

    if (events == NULL)
        return;
    hr__str_init(&line);
    add_time(&line);
    hr__str_addf(&line, ",\"event\":\"%s\"", event);
    va_start(args, event);
    while ((key = va_arg(args, const char *)) != NULL) {
        const char *value = va_arg(args, const char *);

        hr__str_addf(&line, ",\"%s\":", key);
        hr__str_add_json(&line, value, strlen(value));
    }
    va_end(args);
    hr__str_add(&line, "}\n");
    write_line(events, &line);
    HR_KILL_POINT("event.written");
    hr__str_finish(&line);
}
