/*
 * fleet/control_read.c - see control.h.
 */
#include "fleet/control.h"

#include <string.h>

#include "core/alloc.h"
#include "core/doc.h"
#include "core/error.h"

/* ---- requests ---- */

/* Reads 1 to 18 digits. */
static bool read_number(const char *text, size_t length, uint64_t *ret)
{
    uint64_t value = 0;

    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(text[i] - '0');
    }
    *ret = value;
    return length > 0 && length <= 18;
}

enum hr_err hr__control_read_page(const char *query, struct hr_control_page *ret_page,
                                  struct hr_error *reterr)
{
    struct hr_control_page page = {.limit = HR_CONTROL_LIMIT};

    while (*query != '\0') {
        size_t length = strcspn(query, "&"), name = strcspn(query, "=&");
        uint64_t *to = NULL;

        if (name == 5 && memcmp(query, "limit", 5) == 0)
            to = &page.limit;
        if (name == 5 && memcmp(query, "after", 5) == 0)
            to = &page.after;
        if (to == NULL)
            return hr__fail(reterr, HR_ERR_ARGUMENT,
                            "unknown parameter '%.*s'; expected limit or after",
                            (int)(name < 64 ? name : 64), query);
        if (name == length || !read_number(query + name + 1, length - name - 1, to))
            return hr__fail(reterr, HR_ERR_ARGUMENT,
                            "'%.*s' must be a number of at most 18 digits", (int)name,
                            query);
        query += length + (query[length] == '&');
    }
    *ret_page = page;
    return HR_OK;
}

enum hr_err
hr__control_read_drain(const char *text, size_t bytes,
                       char ret_worker[HR_NET_ADDRESS_MAX], struct hr_error *reterr)
{
    const char *worker;
    struct hr_doc *doc;
    enum hr_err code = HR_OK;

    HR_TRY(hr__doc_parse(text, bytes, "request.json", &doc, reterr));
    worker = hr__doc_get_string(doc, "worker");
    if (worker == NULL || strlen(worker) >= HR_NET_ADDRESS_MAX)
        code = hr__fail(reterr, HR_ERR_FORMAT,
                        "expected {\"worker\": \"host:port\"}, as /v1/workers says it");
    else
        memcpy(ret_worker, worker, strlen(worker) + 1);
    hr__doc_destroy(doc);
    return code;
}

/* A name of a request; HR_ERR_FORMAT. */
static enum hr_err get_name(const struct hr_doc *doc, const char *key, char *to,
                            size_t room, struct hr_error *reterr)
{
    const char *name = hr__doc_get_string(doc, key);

    if (name == NULL || strlen(name) >= room)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "expected {\"job\": NAME, \"consumer\": NAME}, as /v1/consumers "
                        "says them");
    memcpy(to, name, strlen(name) + 1);
    return HR_OK;
}

enum hr_err
hr__control_read_evict(const char *text, size_t bytes, struct hr_control_evict *ret_evict,
                       struct hr_error *reterr)
{
    struct hr_control_evict e;
    struct hr_doc *doc;
    enum hr_err code;

    HR_TRY(hr__doc_parse(text, bytes, "request.json", &doc, reterr));
    code = get_name(doc, "job", e.job, sizeof e.job, reterr);
    if (code == HR_OK)
        code = get_name(doc, "consumer", e.consumer, sizeof e.consumer, reterr);
    hr__doc_destroy(doc);
    if (code == HR_OK)
        *ret_evict = e;
    return code;
}

/* ---- /v1/status ---- */

static enum hr_err wrong(const char *key, struct hr_error *reterr)
{
    return hr__fail(reterr, HR_ERR_FORMAT,
                    "this is no answer of a dispatcher: \"%s\" is missing or of another "
                    "type",
                    key);
}

static enum hr_err get_count(const struct hr_doc *doc, const char *key, uint64_t *ret,
                             struct hr_error *reterr)
{
    const struct hr_doc *value = hr__doc_get(doc, key);

    if (value == NULL || value->kind != HR_DOC_INT || value->as.integer < 0)
        return wrong(key, reterr);
    *ret = (uint64_t)value->as.integer;
    return HR_OK;
}

static enum hr_err get_double(const struct hr_doc *doc, const char *key, double *ret,
                              struct hr_error *reterr)
{
    const struct hr_doc *value = hr__doc_get(doc, key);

    if (value != NULL && value->kind == HR_DOC_INT)
        *ret = (double)value->as.integer;
    else if (value != NULL && value->kind == HR_DOC_DOUBLE)
        *ret = value->as.number;
    else
        return wrong(key, reterr);
    return HR_OK;
}

static enum hr_err
get_bool(const struct hr_doc *doc, const char *key, bool *ret, struct hr_error *reterr)
{
    const struct hr_doc *value = hr__doc_get(doc, key);

    if (value == NULL || value->kind != HR_DOC_BOOL)
        return wrong(key, reterr);
    *ret = value->as.boolean;
    return HR_OK;
}

static enum hr_err get_text(const struct hr_doc *doc, const char *key, char *to,
                            size_t room, struct hr_error *reterr)
{
    const char *text = hr__doc_get_string(doc, key);

    if (text == NULL || strlen(text) >= room)
        return wrong(key, reterr);
    memcpy(to, text, strlen(text) + 1);
    return HR_OK;
}

static enum hr_err read_worker(const struct hr_doc *doc, struct hr_control_worker *w,
                               struct hr_error *reterr)
{
    HR_TRY(get_text(doc, "address", w->address, sizeof w->address, reterr));
    HR_TRY(get_bool(doc, "draining", &w->draining, reterr));
    HR_TRY(get_count(doc, "leases", &w->leases, reterr));
    HR_TRY(get_count(doc, "positions_leased", &w->positions_leased, reterr));
    HR_TRY(get_count(doc, "positions_finished", &w->positions_finished, reterr));
    HR_TRY(get_count(doc, "positions_shared", &w->positions_shared, reterr));
    HR_TRY(get_double(doc, "position_seconds", &w->position_seconds, reterr));
    HR_TRY(get_double(doc, "silent_seconds", &w->silent_seconds, reterr));
    HR_TRY(get_text(doc, "compression", w->compression, sizeof w->compression, reterr));
    HR_TRY(get_count(doc, "bytes_made", &w->bytes_made, reterr));
    return get_count(doc, "bytes_sent", &w->bytes_sent, reterr);
}

static enum hr_err
read_job(const struct hr_doc *doc, struct hr_control_job *j, struct hr_error *reterr)
{
    HR_TRY(get_text(doc, "name", j->name, sizeof j->name, reterr));
    HR_TRY(get_count(doc, "positions", &j->positions, reterr));
    HR_TRY(get_count(doc, "cursor", &j->cursor, reterr));
    HR_TRY(get_count(doc, "positions_leased", &j->positions_leased, reterr));
    HR_TRY(get_count(doc, "generation", &j->generation, reterr));
    HR_TRY(get_bool(doc, "connected", &j->connected, reterr));
    HR_TRY(get_bool(doc, "stands", &j->stands, reterr));
    HR_TRY(get_count(doc, "consumers", &j->consumers, reterr));
    HR_TRY(get_count(doc, "consumers_connected", &j->consumers_connected, reterr));
    HR_TRY(get_count(doc, "weight", &j->weight, reterr));
    return get_bool(doc, "done", &j->done, reterr);
}

static enum hr_err read_consumer(const struct hr_doc *doc, struct hr_control_consumer *c,
                                 struct hr_error *reterr)
{
    HR_TRY(get_text(doc, "job", c->job, sizeof c->job, reterr));
    HR_TRY(get_text(doc, "consumer", c->name, sizeof c->name, reterr));
    HR_TRY(get_bool(doc, "connected", &c->connected, reterr));
    HR_TRY(get_count(doc, "generation", &c->generation, reterr));
    HR_TRY(get_count(doc, "checkpoint", &c->checkpoint, reterr));
    HR_TRY(get_count(doc, "splits", &c->splits, reterr));
    return get_count(doc, "splits_taken", &c->splits_taken, reterr);
}

static const struct hr_doc *get_list(const struct hr_doc *doc, const char *key)
{
    const struct hr_doc *list = hr__doc_get(doc, key);

    return list != NULL && list->kind == HR_DOC_LIST ? list : NULL;
}

static enum hr_err
read_lists(const struct hr_doc *doc, struct hr_control_status *s, struct hr_error *reterr)
{
    const struct hr_doc *workers = get_list(doc, "workers"),
                        *jobs = get_list(doc, "jobs"),
                        *consumers = get_list(doc, "consumers");

    if (workers == NULL || jobs == NULL || consumers == NULL)
        return wrong(workers == NULL ? "workers"
                     : jobs == NULL  ? "jobs"
                                     : "consumers",
                     reterr);
    s->workers = hr__calloc(workers->as.list.count + 1, sizeof *s->workers);
    s->jobs = hr__calloc(jobs->as.list.count + 1, sizeof *s->jobs);
    s->consumers = hr__calloc(consumers->as.list.count + 1, sizeof *s->consumers);
    if (s->workers == NULL || s->jobs == NULL || s->consumers == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < workers->as.list.count; i++)
        HR_TRY(read_worker(workers->as.list.items[i], &s->workers[s->worker_count++],
                           reterr));
    for (size_t i = 0; i < jobs->as.list.count; i++)
        HR_TRY(read_job(jobs->as.list.items[i], &s->jobs[s->job_count++], reterr));
    for (size_t i = 0; i < consumers->as.list.count; i++)
        HR_TRY(read_consumer(consumers->as.list.items[i],
                             &s->consumers[s->consumer_count++], reterr));
    return HR_OK;
}

static enum hr_err read_journal(const struct hr_doc *doc, enum hr_control_journal *ret,
                                struct hr_error *reterr)
{
    static const char *const words[] = {[HR_CONTROL_JOURNAL_NONE] = "none",
                                        [HR_CONTROL_JOURNAL_HELD] = "held",
                                        [HR_CONTROL_JOURNAL_LOST] = "lost"};
    const char *word = hr__doc_get_string(doc, "journal");

    for (size_t i = 0; word != NULL && i < sizeof words / sizeof words[0]; i++)
        if (strcmp(word, words[i]) == 0) {
            *ret = (enum hr_control_journal)i;
            return HR_OK;
        }
    return wrong("journal", reterr);
}

static enum hr_err read_status(const struct hr_doc *doc, struct hr_control_status *s,
                               struct hr_error *reterr)
{
    HR_TRY(get_text(doc, "version", s->version, sizeof s->version, reterr));
    HR_TRY(get_text(doc, "address", s->address, sizeof s->address, reterr));
    HR_TRY(get_double(doc, "uptime_seconds", &s->uptime_seconds, reterr));
    HR_TRY(get_count(doc, "connections", &s->connections, reterr));
    HR_TRY(get_count(doc, "connections_max", &s->connections_max, reterr));
    HR_TRY(get_count(doc, "clients", &s->clients, reterr));
    HR_TRY(get_count(doc, "job_count", &s->jobs_known, reterr));
    HR_TRY(get_count(doc, "positions_finished", &s->positions_finished, reterr));
    HR_TRY(read_journal(doc, &s->journal, reterr));
    return read_lists(doc, s, reterr);
}

void hr__control_status_free(struct hr_control_status *status)
{
    if (status == NULL)
        return;
    hr__free(status->workers);
    hr__free(status->jobs);
    hr__free(status->consumers);
    hr__free(status);
}

enum hr_err
hr__control_read_status(const char *text, size_t bytes,
                        struct hr_control_status **ret_status, struct hr_error *reterr)
{
    struct hr_control_status *status;
    struct hr_doc *doc;
    enum hr_err code;

    HR_TRY(hr__doc_parse(text, bytes, "status.json", &doc, reterr));
    status = hr__calloc(1, sizeof *status);
    code = status != NULL ? read_status(doc, status, reterr)
                          : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    hr__doc_destroy(doc);
    if (code != HR_OK) {
        hr__control_status_free(status);
        return code;
    }
    *ret_status = status;
    return HR_OK;
}
