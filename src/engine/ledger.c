/*
 * engine/ledger.c - the ledger's lines: JSON objects, sorted, one write each.
 */
#include "engine/ledger.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/kill_point.h"

struct hr_ledger_line {
    uint64_t epoch;
    struct hr_place after; /* the record */
    size_t stage;
    bool ends; /* the run */
    char *text;
    struct hr_ledger_line *next;
};

void hr__ledger_init(struct hr_ledger *ledger)
{
    *ledger = (struct hr_ledger){.fd = -1};
    pthread_mutex_init(&ledger->lock, NULL);
}

enum hr_err
hr__ledger_open(struct hr_ledger *ledger, const char *path, struct hr_error *reterr)
{
    assert(ledger->fd < 0);
    if (!hr__fault(HR_FAULT_OPEN))
        ledger->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    else
        errno = EACCES;
    if (ledger->fd < 0)
        return hr__fail_errno(reterr, HR_ERR_IO, errno,
                              "cannot write the list of bad records %s", path);
    return HR_OK;
}

/* Removes the first line. */
static struct hr_ledger_line *take_first(struct hr_ledger *ledger)
{
    struct hr_ledger_line *line = ledger->lines;

    assert(line != NULL && atomic_load(&ledger->waiting) > 0);
    ledger->lines = line->next;
    atomic_fetch_sub(&ledger->waiting, 1);
    return line;
}

static void line_destroy(struct hr_ledger_line *line)
{
    hr__place_clear(&line->after);
    hr__free(line->text);
    hr__free(line);
}

void hr__ledger_finish(struct hr_ledger *ledger)
{
    while (ledger->lines != NULL)
        line_destroy(take_first(ledger));
    assert(atomic_load(&ledger->waiting) == 0);
    if (ledger->fd >= 0)
        close(ledger->fd);
    pthread_mutex_destroy(&ledger->lock);
}

/* ---- adding ---- */

static void add_text(struct hr_str *line, const char *key, const char *text)
{
    hr__str_addf(line, ",\"%s\":", key);
    hr__str_add_json(line, text, strlen(text));
}

/* Returns NULL when out of memory; "" where no record is at fault: it marks the place up
 * to which lines are written. */
static char *print_line(const struct hr_bad *bad, const char *outcome)
{
    struct hr_str line;
    char *text;

    if (bad->outside)
        return hr__strdup("");
    hr__str_init(&line);
    hr__str_add(&line, "{");
    hr__record_json(&bad->id, &line);
    hr__str_addf(&line, ",\"offset\":%lld", (long long)bad->error.offset);
    add_text(&line, "outcome", outcome);
    add_text(&line, "node", bad->error.node);
    add_text(&line, "op", bad->error.op);
    add_text(&line, "file", bad->error.file);
    add_text(&line, "error", hr_err_name(bad->error.code));
    add_text(&line, "message", bad->error.message);
    if (bad->detail != NULL)
        add_text(&line, "detail", bad->detail);
    hr__str_add(&line, "}\n");
    text = hr__str_ok(&line) ? hr__strdup(hr__str_text(&line)) : NULL;
    hr__str_finish(&line);
    return text;
}

/* Orders by record, then by stage. Lines of one stage arrive in order. */
static int compare_lines(const struct hr_ledger_line *a, const struct hr_ledger_line *b)
{
    int order = (a->epoch > b->epoch) - (a->epoch < b->epoch);

    if (order == 0)
        order = hr__place_compare(&a->after, &b->after);
    return order != 0 ? order : (a->stage > b->stage) - (a->stage < b->stage);
}

void hr__ledger_add(struct hr_ledger *ledger, const struct hr_bad *bad, size_t stage,
                    uint64_t epoch, const struct hr_place *after, const char *outcome,
                    bool ends)
{
    struct hr_ledger_line *line, **place = &ledger->lines;

    if (ledger->fd < 0)
        return;
    line = hr__calloc(1, sizeof *line);
    if (line != NULL)
        line->text = print_line(bad, outcome);
    if (line == NULL || line->text == NULL) {
        hr__free(line);
        return;
    }
    line->epoch = epoch;
    hr__place_copy(&line->after, after);
    line->stage = stage;
    line->ends = ends;
    pthread_mutex_lock(&ledger->lock);
    while (*place != NULL && compare_lines(*place, line) <= 0)
        place = &(*place)->next;
    line->next = *place;
    *place = line;
    atomic_fetch_add(&ledger->waiting, 1);
    pthread_mutex_unlock(&ledger->lock);
}

void hr__ledger_settle(struct hr_ledger *ledger, size_t stage, uint64_t epoch,
                       const struct hr_place *place)
{
    if (atomic_load_explicit(&ledger->waiting, memory_order_relaxed) == 0)
        return;
    pthread_mutex_lock(&ledger->lock);
    for (struct hr_ledger_line *line = ledger->lines; line != NULL; line = line->next)
        if (line->epoch == epoch && line->stage <= stage &&
            hr__place_compare(&line->after, place) > 0)
            hr__place_copy(&line->after, place);
    pthread_mutex_unlock(&ledger->lock);
}

/* ---- writing ---- */

static void write_line(const struct hr_ledger *ledger, const char *text)
{
    size_t left = strlen(text);

    assert(ledger->fd >= 0);
    while (left > 0 && !hr__fault(HR_FAULT_WRITE)) {
        ssize_t wrote = write(ledger->fd, text, left);

        if (wrote <= 0)
            break;
        text += wrote;
        left -= (size_t)wrote;
    }
}

/* Whether a run that starts at the place would not run the line's record again. */
static bool
precedes(const struct hr_ledger_line *line, uint64_t epoch, const struct hr_place *place)
{
    return line->epoch < epoch ||
           (line->epoch == epoch && hr__place_compare(&line->after, place) <= 0);
}

void hr__ledger_write(struct hr_ledger *ledger, uint64_t epoch,
                      const struct hr_place *place)
{
    if (atomic_load_explicit(&ledger->waiting, memory_order_relaxed) == 0)
        return;
    pthread_mutex_lock(&ledger->lock);
    while (ledger->lines != NULL &&
           (place == NULL || precedes(ledger->lines, epoch, place))) {
        struct hr_ledger_line *line = take_first(ledger);

        write_line(ledger, line->text);
        HR_KILL_POINT("ledger.written");
        line_destroy(line);
    }
    pthread_mutex_unlock(&ledger->lock);
}

void hr__ledger_write_end(struct hr_ledger *ledger, size_t stage)
{
    struct hr_ledger_line *last, *line;

    pthread_mutex_lock(&ledger->lock);
    last = ledger->lines;
    while (last != NULL && (!last->ends || last->stage != stage))
        last = last->next;
    do {
        line = last != NULL ? take_first(ledger) : NULL;
        if (line == NULL)
            break;
        if (line == last || !line->ends)
            write_line(ledger, line->text);
        line_destroy(line);
    } while (line != last);
    pthread_mutex_unlock(&ledger->lock);
}
