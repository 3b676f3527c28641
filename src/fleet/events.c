/*
 * fleet/events.c - see events.h.
 */
#include "fleet/events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/str.h"

struct hr_events {
    int fd;
    uint64_t lost;
};

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
    if (!hr__str_ok(&line) ||
        write(events->fd, hr__str_text(&line), line.length) != (ssize_t)line.length)
        events->lost++;
    hr__str_finish(&line);
}
