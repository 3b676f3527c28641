/*
 * fleet/control.c - what a dispatcher answers over HTTP: docs/control.json (OpenAPI)
 * describes it.
 *
 * Reads the dispatcher's tables under the net's lock; the only requests that change
 * anything are a drain and an eviction.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/doc.h"
#include "fleet/control.h"
#include "fleet/dispatcher.h"
#include "svc/compression.h"

#define PIECE 4096 /* of lists: work that is done at a time, in looks at a peer */
#define ENTRY 64   /* what a worker or job takes that is written */
/* Numbers of jobs of several consumers in lists, above all others. */
#define BOUND_JOBS ((uint64_t)1 << 52)

static double seconds_since(uint64_t then)
{
    return (double)(hr__now_ns() - then) * 1e-9;
}

static void add_number(struct hr_str *out, const char *key, double value)
{
    hr__str_addf(out, "\"%s\":", key);
    hr__str_add_double(out, value);
}

static bool is_worker(const struct hr_dispatcher_process *d, uint32_t peer)
{
    return d->role.peers[peer].role == HR_FRAME_WORKER && d->peers[peer].address != NULL;
}

/* ---- JSON ---- */

static void
add_worker(const struct hr_dispatcher_process *d, uint32_t peer, struct hr_str *out)
{
    const struct hr_lease_peer *role = &d->role.peers[peer];
    const char *address = d->peers[peer].address;
    struct hr_bind_work bound = hr__bound_work(d, peer);
    char kinds[HR_KINDS_TEXT];

    hr__str_add(out, "{\"address\":");
    hr__str_add_json(out, address, strlen(address));
    hr__str_addf(out,
                 ",\"draining\":%s,\"leases\":%u,\"leases_max\":%u,"
                 "\"positions_leased\":%llu,\"positions_finished\":%llu,"
                 "\"positions_shared\":%llu,",
                 role->leaving ? "true" : "false", role->held + bound.leases, role->slots,
                 (unsigned long long)(role->outstanding + bound.leased),
                 (unsigned long long)(role->finished + d->peers[peer].finished),
                 (unsigned long long)d->peers[peer].shared);
    add_number(out, "position_seconds", role->ns_per_position * 1e-9);
    hr__str_add(out, ",");
    add_number(out, "silent_seconds", seconds_since(role->heard_ns));
    hr__str_addf(out, ",\"compression\":\"%s\",\"bytes_made\":%llu,\"bytes_sent\":%llu}",
                 hr__dispatcher_kinds(d->peers[peer].kinds, kinds),
                 (unsigned long long)d->peers[peer].made,
                 (unsigned long long)d->peers[peer].sent);
}

static void add_job(const struct hr_dispatcher_job *job, const struct hr_lease_job *role,
                    struct hr_str *out)
{
    const struct hr_lease_consumer *client = &role->consumers[0]; /* a job has one */

    hr__str_add(out, "{\"name\":");
    hr__str_add_json(out, job->name, strlen(job->name));
    hr__str_addf(out,
                 ",\"id\":\"%016llx\",\"positions\":%llu,\"cursor\":%llu,"
                 "\"positions_leased\":%llu,\"leases\":%zu,\"generation\":%u,"
                 "\"connected\":%s,\"stands\":%s,\"done\":%s,\"consumers\":0,"
                 "\"consumers_connected\":0,\"weight\":%u}",
                 (unsigned long long)job->id, (unsigned long long)role->options.end,
                 (unsigned long long)client->cursor,
                 (unsigned long long)client->outstanding, client->leases.count,
                 client->generation, client->peer != 0 ? "true" : "false",
                 client->stands ? "true" : "false",
                 hr__lease_job_is_done(role) ? "true" : "false", client->weight);
}

/* A run of several consumers. */
static void add_bound_job(const struct hr_bound_job *job, struct hr_str *out)
{
    struct hr_bind_work work = hr__bind_work(&job->binder, 0);
    uint32_t connected = 0, weight = 1;

    for (uint32_t rank = 0; rank < job->count; rank++) {
        const struct hr_bind_consumer *consumer = &job->binder.consumers[rank];

        connected += consumer->peer != 0;
        if (consumer->peer != 0 && consumer->weight > weight)
            weight = consumer->weight;
    }
    hr__str_add(out, "{\"name\":");
    hr__str_add_json(out, job->about.name, strlen(job->about.name));
    hr__str_addf(out,
                 ",\"id\":\"%016llx\",\"positions\":%llu,\"cursor\":%llu,"
                 "\"positions_leased\":%llu,\"leases\":%u,\"generation\":%u,"
                 "\"connected\":%s,\"stands\":false,\"done\":%s,\"consumers\":%u,"
                 "\"consumers_connected\":%u,\"weight\":%u}",
                 (unsigned long long)job->about.id, (unsigned long long)job->about.end,
                 (unsigned long long)work.committed, (unsigned long long)work.leased,
                 work.leases, job->binder.generation, connected > 0 ? "true" : "false",
                 hr__bind_is_done(&job->binder) ? "true" : "false", job->count, connected,
                 weight);
}

static void
add_consumer(const struct hr_bound_job *job, uint32_t rank, struct hr_str *out)
{
    const struct hr_bind_consumer *consumer = &job->binder.consumers[rank];

    hr__str_add(out, "{\"job\":");
    hr__str_add_json(out, job->about.name, strlen(job->about.name));
    hr__str_add(out, ",\"consumer\":");
    hr__str_add_json(out, job->names[rank], strlen(job->names[rank]));
    hr__str_addf(out,
                 ",\"connected\":%s,\"generation\":%u,\"checkpoint\":%llu,"
                 "\"splits\":%u,\"splits_taken\":%u}",
                 consumer->peer != 0 ? "true" : "false", consumer->generation,
                 (unsigned long long)consumer->committed, consumer->bound,
                 consumer->taken);
}

/* ---- lists, in pieces ---- */

/* Of struct hr_http_place: which list. */
enum part {
    WORKERS = 1,
    JOBS,
    CONSUMERS,
    OF_STATUS = 4, /* a flag: the lists after this one follow */
};

static bool is_full(const struct hr_http_place *place)
{
    return place->count >= place->limit;
}

/* Adds workers in order of their peers' numbers: a worker that joins or leaves meanwhile
 * may be missing, every other one is listed once. False if the list goes on. */
static bool add_workers(const struct hr_dispatcher_process *d,
                        struct hr_http_place *place, int *left, struct hr_str *out)
{
    while (*left > 0 && !is_full(place) && place->number < d->peers_max) {
        uint32_t peer = (uint32_t)++place->number;

        --*left;
        if (!is_worker(d, peer))
            continue;
        hr__str_add(out, place->count++ > 0 ? "," : "");
        add_worker(d, peer, out);
        *left -= ENTRY;
    }
    if (place->number >= d->peers_max)
        place->number = 0; /* nothing follows */
    return place->number == 0 || is_full(place);
}

/* The same for jobs that have one client each, in order of their numbers. */
static bool add_single_jobs(const struct hr_dispatcher_process *d,
                            struct hr_http_place *place, int *left, struct hr_str *out)
{
    const struct hr_dispatcher_job *job = d->jobs;

    while (job != NULL && job->number <= place->number)
        job = job->next;
    for (; job != NULL && *left > 0 && !is_full(place); job = job->next) {
        const struct hr_lease_job *role = hr__lease_find_job(&d->role, job->id);

        place->number = job->number;
        *left -= ENTRY;
        if (role == NULL)
            continue;
        hr__str_add(out, place->count++ > 0 ? "," : "");
        add_job(job, role, out);
    }
    return job == NULL;
}

/* The same for those of several consumers, which are listed after the others. */
static bool add_bound_jobs(const struct hr_dispatcher_process *d,
                           struct hr_http_place *place, int *left, struct hr_str *out)
{
    const struct hr_bound_job *job = d->bound;

    while (job != NULL && BOUND_JOBS + job->number < place->number)
        job = job->next;
    for (; job != NULL && *left > 0 && !is_full(place); job = job->next) {
        hr__str_add(out, place->count++ > 0 ? "," : "");
        add_bound_job(job, out);
        place->number = BOUND_JOBS + job->number + 1;
        *left -= ENTRY;
    }
    return job == NULL;
}

static bool add_jobs(const struct hr_dispatcher_process *d, struct hr_http_place *place,
                     int *left, struct hr_str *out)
{
    bool all = place->number >= BOUND_JOBS || add_single_jobs(d, place, left, out);

    all = all && add_bound_jobs(d, place, left, out);
    if (all)
        place->number = 0; /* nothing follows */
    return all || is_full(place);
}

/* The rank of the job's first consumer after this place of the list. */
static uint32_t rank_after(const struct hr_bound_job *job, uint64_t place)
{
    uint64_t first = job->number * HR_BOUND_CONSUMERS;

    if (place <= first)
        return 0;
    return place - first < job->count ? (uint32_t)(place - first) : job->count;
}

/* The same for consumers, in order of their jobs' numbers, then of their ranks. */
static bool add_consumers(const struct hr_dispatcher_process *d,
                          struct hr_http_place *place, int *left, struct hr_str *out)
{
    for (const struct hr_bound_job *job = d->bound; job != NULL; job = job->next)
        for (uint32_t rank = rank_after(job, place->number); rank < job->count; rank++) {
            if (*left <= 0 || is_full(place))
                return is_full(place);
            hr__str_add(out, place->count++ > 0 ? "," : "");
            add_consumer(job, rank, out);
            place->number = job->number * HR_BOUND_CONSUMERS + rank + 1;
            *left -= ENTRY;
        }
    place->number = 0; /* nothing follows */
    return true;
}

static bool add_entries(const struct hr_dispatcher_process *d,
                        struct hr_http_place *place, int *left, struct hr_str *out)
{
    switch (place->part & ~(uint32_t)OF_STATUS) {
    case WORKERS:
        return add_workers(d, place, left, out);
    case JOBS:
        return add_jobs(d, place, left, out);
    default:
        return add_consumers(d, place, left, out);
    }
}

static void begin_list(uint32_t part, const struct hr_control_page *page,
                       struct hr_http_place *place, struct hr_str *out)
{
    static const char *const names[] = {
        [WORKERS] = "workers", [JOBS] = "jobs", [CONSUMERS] = "consumers"};

    *place =
        (struct hr_http_place){.number = page->after, .limit = page->limit, .part = part};
    hr__str_addf(out, "\"%s\":[", names[part & ~(uint32_t)OF_STATUS]);
}

static bool add_piece(void *user, struct hr_http_place *place, struct hr_str *out)
{
    const struct hr_dispatcher_process *d = user;
    int left = PIECE;

    while (add_entries(d, place, &left, out)) {
        hr__str_add(out, "]");
        if ((place->part & OF_STATUS) == 0)
            hr__str_addf(out, ",\"next\":%llu", (unsigned long long)place->number);
        if ((place->part & OF_STATUS) == 0 || place->part == (CONSUMERS | OF_STATUS)) {
            hr__str_add(out, "}\n");
            return false;
        }
        hr__str_add(out, ",");
        begin_list(place->part + 1, &(struct hr_control_page){.limit = place->limit},
                   place, out);
    }
    return true;
}

static void add_lists(uint32_t part, const struct hr_control_page *page,
                      struct hr_http_answer *answer)
{
    begin_list(part, page, &answer->place, &answer->body);
    answer->more = add_piece;
}

/* ---- status ---- */

/* Of jobs that have one client each, and of jobs of several consumers. */
struct counts {
    size_t jobs, clients;        /* of both kinds; clients are connected */
    size_t consumers, connected; /* of the second kind */
};

static struct counts count_all(const struct hr_dispatcher_process *d)
{
    struct counts c = {.jobs = d->role.job_count, .clients = d->role.client_count};

    for (const struct hr_bound_job *job = d->bound; job != NULL; job = job->next) {
        c.jobs++;
        c.consumers += job->count;
        for (uint32_t rank = 0; rank < job->count; rank++)
            c.connected += job->binder.consumers[rank].peer != 0;
    }
    c.clients += c.connected;
    return c;
}

static void add_status(const struct hr_dispatcher_process *d, struct hr_str *out)
{
    const struct counts counts = count_all(d);
    struct hr_net_counts net;

    hr__net_counts(d->base.net, &net);
    hr__str_addf(out,
                 "\"version\":\"" HR_VERSION "\",\"address\":\"%s\","
                 "\"connections\":%u,\"connections_max\":%u,\"clients\":%zu,"
                 "\"worker_count\":%u,\"job_count\":%zu,\"jobs_max\":%u,"
                 "\"consumer_count\":%zu,\"positions_finished\":%llu,"
                 "\"journal\":\"%s\",",
                 hr__net_address(d->base.net), net.open, d->peers_max, counts.clients,
                 d->worker_count, counts.jobs, d->jobs_max, counts.consumers,
                 (unsigned long long)(d->role.counts.positions_finished +
                                      d->counts.positions_finished),
                 d->journal == NULL                ? "none"
                 : hr__journal_is_lost(d->journal) ? "lost"
                                                   : "held");
    add_number(out, "uptime_seconds", seconds_since(d->started_ns));
    hr__str_add(out, ",");
}

/* ---- metrics ---- */

static void metric(struct hr_str *out, const char *name, const char *type,
                   const char *help, const char *labels, double value)
{
    hr__str_addf(out, "# HELP headrace_%s %s\n# TYPE headrace_%s %s\nheadrace_%s%s ",
                 name, help, name, type, name, labels);
    hr__str_add_double(out, value);
    hr__str_add(out, "\n");
}

static void
counter(struct hr_str *out, const char *name, const char *help, uint64_t value)
{
    metric(out, name, "counter", help, "", (double)value);
}

static void gauge(struct hr_str *out, const char *name, const char *help, double value)
{
    metric(out, name, "gauge", help, "", value);
}

static double resident_bytes(void)
{
    unsigned long long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file == NULL)
        return 0;
    if (fscanf(file, "%llu %llu", &size, &resident) != 2)
        resident = 0;
    fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

/* Of jobs that have one client each, and of the others. */
static void add_leases(const struct hr_lease_counts *c,
                       const struct hr_lease_counts *bound, struct hr_str *out)
{
    counter(out, "leases_total", "Leases given to workers.", c->leases + bound->leases);
    counter(out, "positions_leased_total", "Positions in leases given to workers.",
            c->positions + bound->positions);
    counter(out, "leases_finished_total", "Leases that workers say they have sent.",
            c->leases_finished + bound->leases_finished);
    counter(out, "positions_finished_total", "Positions that workers say they have sent.",
            c->positions_finished + bound->positions_finished);
    counter(out, "positions_taken_total", "Positions that clients say they have taken.",
            c->positions_taken + bound->positions_taken);
    counter(out, "leases_expired_total", "Leases that ended at their deadline.",
            c->leases_expired + bound->leases_expired);
    counter(out, "leases_hedged_total",
            "Leases given to a second worker because the first was slow.",
            c->leases_hedged + bound->leases_hedged);
}

static void add_connections(const struct hr_dispatcher_process *d, struct hr_str *out)
{
    struct hr_net_counts net;

    hr__net_counts(d->base.net, &net);
    gauge(out, "connections", "Open connections.", net.open);
    gauge(out, "connections_max", "Connections that are accepted at a time.",
          d->peers_max);
    counter(out, "connections_turned_away_total",
            "Connections refused because all places were taken.", net.turned_away);
    counter(out, "connections_idle_closed_total",
            "Connections closed because they said no HELLO.", net.strangers_closed);
    counter(out, "connections_denied_total",
            "Connections refused because of their token.", net.denied);
    gauge(out, "tick_cpu_seconds_max",
          "CPU time of a look at what is due, the longest of the last 5 to 10 s.",
          (double)net.longest_tick_ns * 1e-9);
    counter(out, "jobs_refused_total", "Jobs refused because there were too many.",
            d->jobs_refused);
}

static void add_metrics(const struct hr_dispatcher_process *d, struct hr_str *out)
{
    const struct counts counts = count_all(d);

    metric(out, "build_info", "gauge", "The release.", "{version=\"" HR_VERSION "\"}", 1);
    gauge(out, "uptime_seconds", "Since the dispatcher began.",
          seconds_since(d->started_ns));
    gauge(out, "workers", "Connected workers.", d->worker_count);
    gauge(out, "workers_draining", "Workers that get no more leases.",
          (double)d->role.leaving_count);
    gauge(out, "clients", "Connected clients.", (double)counts.clients);
    gauge(out, "consumers", "Connected clients of runs that have several consumers.",
          (double)counts.connected);
    gauge(out, "jobs", "Known jobs.", (double)counts.jobs);
    gauge(out, "positions_in_work", "Positions leased and not sent yet.",
          (double)(d->role.outstanding + hr__bound_work(d, 0).leased));
    add_leases(&d->role.counts, &d->counts, out);
    counter(out, "positions_shared_total",
            "Positions that workers sent to a client and had made for another one.",
            d->shared);
    gauge(out, "workers_compressing", "Workers that compress for some client.",
          d->compressing);
    counter(out, "data_bytes_total", "Bytes of batches that workers sent over TCP.",
            d->made);
    counter(out, "data_sent_bytes_total",
            "Bytes that these were as they were sent, compressed or not.", d->sent);
    add_connections(d, out);
    if (d->journal != NULL)
        gauge(
            out, "journal_held",
            "1: this dispatcher has its journal; 0: another one has it, or it cannot be "
            "reached.",
            !hr__journal_is_lost(d->journal));
    counter(out, "events_lost_total", "Lines of the events log that were not written.",
            hr__events_lost(d->events));
    metric(out, "process_cpu_seconds_total", "counter", "CPU time of this process.", "",
           (double)hr__cpu_process_ns() * 1e-9);
    gauge(out, "process_resident_memory_bytes", "Memory of this process.",
          resident_bytes());
}

/* ---- requests ---- */

static void refuse(struct hr_http_answer *answer, int status, const char *format, ...)
    HR_PRINTF(3, 4);
static void refuse(struct hr_http_answer *answer, int status, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    answer->status = status;
    hr__str_add(&answer->body, "{\"error\":");
    hr__str_add_json(&answer->body, text, strlen(text));
    hr__str_add(&answer->body, "}\n");
}

static void drain(struct hr_dispatcher_process *d, const struct hr_http_request *request,
                  struct hr_http_answer *answer)
{
    char worker[HR_NET_ADDRESS_MAX];
    struct hr_error error = {0};
    enum hr_err code =
        hr__control_read_drain(request->body, request->body_bytes, worker, &error);

    if (code != HR_OK) {
        refuse(answer, 400, "%s", error.message);
        return;
    }
    if (hr__dispatcher_drain(d, worker, &error) != HR_OK) {
        refuse(answer, 404, "%s", error.message);
        return;
    }
    hr__str_add(&answer->body, "{\"draining\":");
    hr__str_add_json(&answer->body, worker, strlen(worker));
    hr__str_add(&answer->body, "}\n");
}

static void evict(struct hr_dispatcher_process *d, const struct hr_http_request *request,
                  struct hr_http_answer *answer)
{
    struct hr_control_evict evicted;
    struct hr_error error = {0};

    if (hr__control_read_evict(request->body, request->body_bytes, &evicted, &error) !=
        HR_OK) {
        refuse(answer, 400, "%s", error.message);
        return;
    }
    if (hr__bound_evict(d, evicted.job, evicted.consumer, &error) != HR_OK) {
        refuse(answer, 404, "%s", error.message);
        return;
    }
    hr__str_add(&answer->body, "{\"evicted\":");
    hr__str_add_json(&answer->body, evicted.consumer, strlen(evicted.consumer));
    hr__str_add(&answer->body, "}\n");
}

/* Whether a new run would be taken. */
static bool is_ready(const struct hr_dispatcher_process *d)
{
    struct hr_net_counts net;

    hr__net_counts(d->base.net, &net);
    return net.open < d->peers_max &&
           hr__lease_has_place(&d->role, hr__now_ns(), HR_JOB_GRACE_NS);
}

/* What has lists. */
static void
get_lists(const struct hr_dispatcher_process *d, const struct hr_http_request *request,
          uint32_t part, struct hr_http_answer *answer)
{
    struct hr_control_page page;
    struct hr_error error = {0};

    if (hr__control_read_page(request->query, &page, &error) != HR_OK) {
        refuse(answer, 400, "%s", error.message);
        return;
    }
    if ((part & OF_STATUS) != 0 && page.after != 0) {
        refuse(answer, 400, "after is for /v1/workers, /v1/jobs and /v1/consumers");
        return;
    }
    hr__str_add(&answer->body, "{");
    if ((part & OF_STATUS) != 0)
        add_status(d, &answer->body);
    add_lists(part, &page, answer);
}

static void get(const struct hr_dispatcher_process *d,
                const struct hr_http_request *request, struct hr_http_answer *answer)
{
    const char *path = request->path;
    struct hr_str *out = &answer->body;

    if (strcmp(path, "/healthz") == 0) {
        hr__str_add(out, "{\"healthy\":true}\n");
    } else if (strcmp(path, "/readyz") == 0) {
        bool ready = is_ready(d);

        answer->status = ready ? 200 : 503;
        hr__str_addf(out, "{\"ready\":%s}\n", ready ? "true" : "false");
    } else if (strcmp(path, "/metrics") == 0) {
        answer->type = "text/plain; version=0.0.4; charset=utf-8";
        add_metrics(d, out);
    } else if (strcmp(path, "/v1/status") == 0) {
        get_lists(d, request, WORKERS | OF_STATUS, answer);
    } else if (strcmp(path, "/v1/workers") == 0) {
        get_lists(d, request, WORKERS, answer);
    } else if (strcmp(path, "/v1/jobs") == 0) {
        get_lists(d, request, JOBS, answer);
    } else if (strcmp(path, "/v1/consumers") == 0) {
        get_lists(d, request, CONSUMERS, answer);
    } else {
        refuse(answer, 404, "there is no %.200s", path);
    }
}

void hr__control_answer(void *user, const struct hr_http_request *request,
                        struct hr_http_answer *answer)
{
    struct hr_dispatcher_process *d = user;
    bool drains = strcmp(request->path, "/v1/drain") == 0;
    bool evicts = strcmp(request->path, "/v1/evict") == 0;

    if (drains && request->post)
        drain(d, request, answer);
    else if (evicts && request->post)
        evict(d, request, answer);
    else if (drains || evicts || request->post)
        refuse(answer, 405, "%.200s does not take this method", request->path);
    else
        get(d, request, answer);
}
