/*
 * store/web.c - GETs by libcurl's multi interface, in one thread.
 *
 * A request has up to two attempts: curl handles that each copy a body to its place in
 * the request's memory, from the byte they asked for. Both bring the same bytes (their
 * identities are compared), so overlapping writes by the one thread do no harm. All but
 * the list of submitted requests belongs to the thread. web_answer.c reads what comes.
 *
 * HTTP/1.1 only: for large bodies many connections are faster than many streams of one.
 */
#include "core/alloc.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/thread.h"
#include "store/store_internal.h"
#include "store/web_internal.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define RECEIVE_BYTES (256l << 10)
#define REDIRECTS_MAX 5l
#define PAUSE_NS (100 * MS)      /* before the first retry; doubles */
#define PAUSE_MAX_NS (5000 * MS) /* and ends here, unless the server asks for more */
#define PROGRESS_BYTES                                                                   \
    (64u << 10) /* a retry that brings as much starts the count again */
#define URGENT_CONNECTIONS 8
#define LOOK_EVERY_NS (5 * MS) /* at the times of running requests */
#define SAMPLES 128            /* first bytes that a hedge is judged by */
#define SAMPLES_MIN 32
#define HEDGE_MIN_NS (20 * MS)
#define HEDGES_FREE 8 /* beyond them and one in HEDGE_SHARE requests it takes longer */
#define HEDGE_PATIENCE 8
#define HEDGE_SHARE 20
#define WINDOW_NS (20 * MS) /* at least, for the rate of bodies */
#define BODY_SILENT_NS (100 * MS)

struct limits {
    uint64_t connections, tries, stall_ns, connect_ms, hedge_percent;
};

struct transport {
    CURLM *multi;
    pthread_t thread;
    struct limits limits;
    atomic_bool stop;
    /* under lock.mutex */
    struct hr_web_request *submitted, **submitted_end;
    bool any_cancelled;
    /* the thread's */
    struct hr_web_request *ready, **ready_end; /* in order */
    struct hr_web_request *delayed, *running;
    struct hr_web_attempt *idle;
    uint64_t active; /* attempts */
    uint64_t looked_ns;
    uint64_t samples[SAMPLES], sample_count, hedge_after_ns;
    uint64_t finished, hedges;
    uint64_t random;
    uint64_t serial;
    struct hr_web_bodies bodies;
};

static struct {
    pthread_mutex_t mutex;
    struct transport *current; /* or NULL */
    bool prepared, exiting;
} lock = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static struct {
    atomic_uint_fast64_t requests, gets, retries, resumed, stalls, hedges, hedges_won,
        bytes, connections;
} counts;

static void count(atomic_uint_fast64_t *counter, uint64_t more)
{
    atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

void hr__web_count_bytes(size_t bytes)
{
    count(&counts.bytes, bytes);
}

void hr__web_stats(struct hr_web_stats *ret_stats)
{
    ret_stats->requests = atomic_load(&counts.requests);
    ret_stats->gets = atomic_load(&counts.gets);
    ret_stats->retries = atomic_load(&counts.retries);
    ret_stats->resumed = atomic_load(&counts.resumed);
    ret_stats->stalls = atomic_load(&counts.stalls);
    ret_stats->hedges = atomic_load(&counts.hedges);
    ret_stats->hedges_won = atomic_load(&counts.hedges_won);
    ret_stats->bytes = atomic_load(&counts.bytes);
    ret_stats->connections = atomic_load(&counts.connections);
}

/* ---- limits ---- */

static uint64_t
number_of(const char *variable, uint64_t usual, uint64_t least, uint64_t most)
{
    const char *text = getenv(variable);
    uint64_t value;

    if (text == NULL || !hr__bytes_parse(text, &value))
        return usual;
    return value < least ? least : value < most ? value : most;
}

static void read_limits(struct limits *limits)
{
    limits->connections = number_of("HEADRACE_HTTP_CONNECTIONS", 128, 1, 1024);
    limits->tries = number_of("HEADRACE_HTTP_TRIES", 6, 1, 100);
    limits->stall_ns = number_of("HEADRACE_HTTP_STALL_MS", 20000, 10, 3600000) * MS;
    limits->connect_ms = number_of("HEADRACE_HTTP_CONNECT_MS", 10000, 10, 3600000);
    limits->hedge_percent = number_of("HEADRACE_HTTP_HEDGE", 95, 0, 99);
}

uint64_t hr__web_whole_bytes(void)
{
    return number_of("HEADRACE_HTTP_WHOLE_BYTES", (uint64_t)1 << 30, 0, UINT64_MAX);
}

/* ---- attempts ---- */

static CURL *
set_up(struct transport *t, struct hr_web_attempt *attempt, const struct hr_web_get *get)
{
    const struct hr_web_request *request = attempt->request;
    bool secure = strncmp(hr__str_text(&get->url), "https:", 6) == 0;
    const char *bundle = getenv("CURL_CA_BUNDLE");
    CURL *easy = attempt->easy;
    char range[64];

    hr__curl.easy_reset(easy);
    hr__curl.easy_setopt(easy, CURLOPT_PRIVATE, attempt);
    hr__curl.easy_setopt(easy, CURLOPT_URL, hr__str_text(&get->url));
    hr__curl.easy_setopt(easy, CURLOPT_HTTPHEADER, attempt->headers);
    hr__curl.easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    hr__curl.easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR,
                         secure ? "https" : "http,https");
    hr__curl.easy_setopt(easy, CURLOPT_FOLLOWLOCATION, (long)get->redirects);
    hr__curl.easy_setopt(easy, CURLOPT_MAXREDIRS, REDIRECTS_MAX);
    hr__curl.easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    hr__curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1l);
    hr__curl.easy_setopt(easy, CURLOPT_PATH_AS_IS, 1l);
    hr__curl.easy_setopt(easy, CURLOPT_BUFFERSIZE, RECEIVE_BYTES);
    hr__curl.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)t->limits.connect_ms);
    hr__curl.easy_setopt(easy, CURLOPT_ERRORBUFFER, attempt->curl_error);
    hr__curl.easy_setopt(easy, CURLOPT_HEADERFUNCTION, hr__web_take_header);
    hr__curl.easy_setopt(easy, CURLOPT_HEADERDATA, attempt);
    hr__curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, hr__web_take_body);
    hr__curl.easy_setopt(easy, CURLOPT_WRITEDATA, attempt);
    hr__curl.easy_setopt(easy, CURLOPT_USERAGENT, "headrace/" HR_VERSION);
    if (bundle != NULL && bundle[0] != '\0')
        hr__curl.easy_setopt(easy, CURLOPT_CAINFO, bundle);
    if (request->plain || request->want == HR_WEB_TEXT)
        return easy;
    if (request->want == HR_WEB_LOOK) {
        hr__curl.easy_setopt(easy, CURLOPT_RANGE, "0-0");
    } else if (request->bytes != HR_RANGE_REST) {
        snprintf(range, sizeof range, "%llu-%llu",
                 (unsigned long long)hr__web_wanted_first(attempt),
                 (unsigned long long)(request->offset + request->bytes - 1));
        hr__curl.easy_setopt(easy, CURLOPT_RANGE, range);
    } else if (hr__web_wanted_first(attempt) > 0) {
        snprintf(range, sizeof range, "%llu-",
                 (unsigned long long)hr__web_wanted_first(attempt));
        hr__curl.easy_setopt(easy, CURLOPT_RANGE, range);
    }
    return easy;
}

/* One header of each line; false if out of memory. */
static bool add_headers(struct hr_web_attempt *attempt, struct hr_str *lines)
{
    char *at = lines->text, *end;

    for (; at != NULL && (end = strchr(at, '\n')) != NULL; at = end + 1) {
        struct curl_slist *more;

        *end = '\0';
        more = hr__curl.slist_append(attempt->headers, at);
        if (more == NULL)
            return false;
        attempt->headers = more;
    }
    return true;
}

static void free_attempt(struct transport *t, struct hr_web_attempt *attempt)
{
    hr__curl.slist_free_all(attempt->headers);
    attempt->headers = NULL;
    attempt->request = NULL;
    attempt->next = t->idle;
    t->idle = attempt;
}

static struct hr_web_attempt *new_attempt(struct transport *t)
{
    struct hr_web_attempt *attempt = t->idle;

    if (attempt != NULL) {
        t->idle = attempt->next;
        return attempt;
    }
    attempt = hr__malloc(sizeof *attempt);
    if (attempt == NULL)
        return NULL;
    attempt->headers = NULL;
    attempt->easy = hr__curl.easy_init();
    if (attempt->easy == NULL) {
        hr__free(attempt);
        return NULL;
    }
    return attempt;
}

static enum hr_err
prepare(struct transport *t, struct hr_web_attempt *attempt, struct hr_error *why)
{
    const struct hr_web_request *request = attempt->request;
    struct hr_web_get get = {.redirects = true};
    enum hr_err err;

    hr__str_init(&get.url);
    hr__str_init(&get.headers);
    err = request->kind->prepare(request->uri, request->query, &get, why);
    if (err == HR_OK &&
        (!hr__str_ok(&get.url) || !hr__str_ok(&get.headers) ||
         !add_headers(attempt, &get.headers) ||
         hr__curl.multi_add_handle(t->multi, set_up(t, attempt, &get)) != CURLM_OK))
        err = hr__fail(why, HR_ERR_MEMORY, "out of memory");
    hr__str_finish(&get.url);
    hr__str_finish(&get.headers);
    return err;
}

/* Starts one from the byte that the request has reached. */
static enum hr_err
start_attempt(struct transport *t, struct hr_web_request *request, struct hr_error *why)
{
    struct hr_web_attempt *attempt = new_attempt(t);
    int place = request->attempts[0] != NULL;
    enum hr_err err;

    assert(request->attempts[place] == NULL);
    if (attempt == NULL)
        return hr__fail(why, HR_ERR_MEMORY, "out of memory");
    attempt->request = request;
    attempt->bodies = &t->bodies;
    attempt->body = HR_WEB_BODY_FREE;
    attempt->from = attempt->at = request->got;
    attempt->begun_ns = attempt->heard_ns = hr__now_ns();
    attempt->skip = attempt->body_bytes = attempt->unused = 0;
    attempt->checked = attempt->answered = attempt->stalled = attempt->broken = false;
    attempt->err = HR_OK;
    attempt->error_bytes = 0;
    attempt->curl_error[0] = '\0';
    hr__web_forget_response(&attempt->response);
    if (request->want == HR_WEB_TEXT)
        hr__str_clear(&request->text);
    err = prepare(t, attempt, why);
    if (err != HR_OK) {
        free_attempt(t, attempt);
        return err;
    }
    request->attempts[place] = attempt;
    t->active++;
    count(&counts.gets, 1);
    if (attempt->from > 0)
        count(&counts.resumed, 1);
    return HR_OK;
}

static void drop_attempt(struct transport *t, struct hr_web_attempt *attempt)
{
    struct hr_web_request *request = attempt->request;

    if (request->attempts[0] == attempt)
        request->attempts[0] = request->attempts[1];
    else
        assert(request->attempts[1] == attempt);
    request->attempts[1] = NULL;
    hr__web_body_ends(attempt);
    assert(t->active > 0);
    t->active--;
    hr__curl.multi_remove_handle(t->multi, attempt->easy);
    free_attempt(t, attempt);
}

/* ---- requests ---- */

static void unlink_request(struct hr_web_request **list, struct hr_web_request *request)
{
    while (*list != request)
        list = &(*list)->next;
    *list = request->next;
}

/* A running request is over. */
static void
end_request(struct transport *t, struct hr_web_request *request, enum hr_err err)
{
    while (request->attempts[0] != NULL)
        drop_attempt(t, request->attempts[0]);
    unlink_request(&t->running, request);
    t->finished++;
    request->done(request, err);
}

static void fail_request(struct transport *t, struct hr_web_request *request,
                         const struct hr_error *why, enum hr_err err)
{
    hr__store_note(request->error, request->uri);
    hr__fail(request->error, err, "%s", why->message);
    end_request(t, request, err);
}

static void run_request(struct transport *t, struct hr_web_request *request)
{
    struct hr_error why = {0};
    enum hr_err err;

    request->next = t->running;
    t->running = request;
    request->serial = t->serial++;
    err = start_attempt(t, request, &why);
    if (err != HR_OK)
        fail_request(t, request, &why, err);
}

/* Repeats it after a pause: between a half and all of one that doubles. */
static void
delay_request(struct transport *t, struct hr_web_request *request, uint64_t least_s)
{
    uint64_t pause = PAUSE_NS;

    for (int i = 1; i < request->failures && pause < PAUSE_MAX_NS; i++)
        pause *= 2;
    if (pause > PAUSE_MAX_NS)
        pause = PAUSE_MAX_NS;
    t->random = hr__hash64(&t->random, sizeof t->random, hr__now_ns());
    pause = pause / 2 + t->random % (pause / 2 + 1);
    if (pause < least_s * 1000 * MS)
        pause = least_s * 1000 * MS;
    count(&counts.retries, 1);
    unlink_request(&t->running, request);
    request->due_ns = hr__now_ns() + pause;
    request->next = t->delayed;
    t->delayed = request;
}

/* ---- how attempts end ---- */

/* After a 416 without the size, which a GET of the whole tells. */
static void repeat_plain(struct transport *t, struct hr_web_request *request)
{
    struct hr_error why = {0};
    enum hr_err err;

    while (request->attempts[0] != NULL)
        drop_attempt(t, request->attempts[0]);
    request->plain = true;
    err = start_attempt(t, request, &why);
    if (err != HR_OK)
        fail_request(t, request, &why, err);
}

static void add_sample(struct transport *t, uint64_t ns);

static void
end_attempt(struct transport *t, struct hr_web_attempt *attempt, CURLcode code)
{
    struct hr_web_request *request = attempt->request;
    bool again, won;
    struct hr_error why;
    uint64_t least_s = attempt->response.retry_after_s;
    enum hr_err err;

    if (code == CURLE_OK && attempt->err == HR_OK && !attempt->checked)
        attempt->err = hr__web_check_response(attempt);
    if (hr__web_is_complete(attempt, code)) {
        won = request->hedged && attempt == request->attempts[1];
        count(&counts.hedges_won, won);
        end_request(t, request, HR_OK);
        return;
    }
    if (attempt->response.status == 416 && !attempt->answered && !request->plain) {
        repeat_plain(t, request);
        return;
    }
    err = attempt->err;
    again = err == HR_OK && hr__web_may_pass(attempt, code);
    if (err == HR_OK)
        err = hr__web_explain(attempt, code, t->limits.stall_ns);
    why = attempt->why;
    if (attempt->at - attempt->from >= PROGRESS_BYTES)
        request->failures = 0;
    drop_attempt(t, attempt);
    if (again && request->attempts[0] != NULL)
        return; /* the other one continues */
    if (!again) {
        fail_request(t, request, &why, err);
    } else if ((uint64_t)++request->failures >= t->limits.tries) {
        size_t used = strlen(why.message);

        snprintf(why.message + used, sizeof why.message - used, ", after %d tries",
                 request->failures);
        fail_request(t, request, &why, err);
    } else {
        delay_request(t, request, least_s);
    }
}

static void reap(struct transport *t)
{
    struct CURLMsg *message;
    int left;

    while ((message = hr__curl.multi_info_read(t->multi, &left)) != NULL) {
        struct hr_web_attempt *attempt = NULL;
        CURLcode code = message->data.result;
        long connections = 0;
        curl_off_t first_us = 0;

        if (message->msg != CURLMSG_DONE)
            continue;
        hr__curl.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &attempt);
        hr__curl.easy_getinfo(message->easy_handle, CURLINFO_NUM_CONNECTS, &connections);
        hr__curl.easy_getinfo(message->easy_handle, CURLINFO_STARTTRANSFER_TIME_T,
                              &first_us);
        count(&counts.connections, connections > 0 ? (uint64_t)connections : 0);
        if (attempt->answered)
            add_sample(t, (uint64_t)first_us * 1000);
        end_attempt(t, attempt, code);
    }
}

/* ---- time ---- */

static int compare_times(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* The time to a first byte; every so often the percentile is computed again. */
static void add_sample(struct transport *t, uint64_t ns)
{
    uint64_t sorted[SAMPLES], count;

    t->samples[t->sample_count++ % SAMPLES] = ns;
    if (t->limits.hedge_percent == 0 || t->sample_count % SAMPLES_MIN != 0)
        return;
    count = t->sample_count < SAMPLES ? t->sample_count : SAMPLES;
    memcpy(sorted, t->samples, (size_t)count * sizeof sorted[0]);
    qsort(sorted, (size_t)count, sizeof sorted[0], compare_times);
    t->hedge_after_ns = 2 * sorted[count * t->limits.hedge_percent / 100];
    if (t->hedge_after_ns < HEDGE_MIN_NS)
        t->hedge_after_ns = HEDGE_MIN_NS;
}

/* A second attempt for a request that is silent for too long; once many were started, for
 * much too long, so that a server under load gets no load more. */
static void hedge(struct transport *t, struct hr_web_request *request, uint64_t now)
{
    struct hr_web_attempt *attempt = request->attempts[0];
    bool many = t->hedges >= HEDGES_FREE + t->finished / HEDGE_SHARE;
    uint64_t after_ns = many ? HEDGE_PATIENCE * t->hedge_after_ns : t->hedge_after_ns;
    struct hr_error why;

    if (after_ns == 0 || request->attempts[1] != NULL || request->want == HR_WEB_TEXT ||
        now - attempt->heard_ns < after_ns || t->active >= t->limits.connections ||
        start_attempt(t, request, &why) != HR_OK)
        return; /* the first continues */
    request->hedged = true;
    t->hedges++;
    count(&counts.hedges, 1);
}

/* One that waits is not silent. One that is silent no longer keeps others waiting. */
static void check_body(struct hr_web_attempt *attempt, uint64_t now)
{
    if (attempt->body == HR_WEB_BODY_WAITS)
        attempt->heard_ns = now;
    else if (now - attempt->heard_ns >= BODY_SILENT_NS)
        hr__web_body_ends(attempt);
}

static void check_times(struct transport *t, uint64_t now)
{
    struct hr_web_request *request, *next;

    for (request = t->running; request != NULL; request = next) {
        next = request->next;
        for (int i = 1; i >= 0; i--) {
            struct hr_web_attempt *attempt = request->attempts[i];

            if (attempt != NULL)
                check_body(attempt, now);
            if (attempt == NULL || now - attempt->heard_ns < t->limits.stall_ns)
                continue;
            attempt->stalled = true;
            count(&counts.stalls, 1);
            end_attempt(t, attempt, CURLE_OPERATION_TIMEDOUT);
            /* after the second the first is left, so the request is still there */
        }
    }
    for (request = t->running; request != NULL; request = request->next)
        hedge(t, request, now);
}

/* ---- bodies ---- */

static void begin_bodies(struct transport *t, uint64_t now)
{
    struct hr_web_attempt *first;

    hr__web_bodies_adapt(&t->bodies, now,
                         t->hedge_after_ns > WINDOW_NS ? t->hedge_after_ns : WINDOW_NS);
    while ((first = hr__web_body_next(&t->bodies, now)) != NULL) {
        CURLcode code = hr__curl.easy_pause(first->easy, CURLPAUSE_CONT);

        if (code != CURLE_OK)
            end_attempt(t, first, code);
    }
}

/* ---- the thread ---- */

/* Those that somebody waits for overtake reads ahead. */
static void add_ready(struct transport *t, struct hr_web_request *request)
{
    if (request->urgent && t->ready != NULL) {
        request->next = t->ready;
        t->ready = request;
        return;
    }
    request->next = NULL;
    *t->ready_end = request;
    t->ready_end = &request->next;
}

/* Takes what was submitted; false once it must stop. */
static bool accept_submitted(struct transport *t, bool *ret_cancelled)
{
    struct hr_web_request *request;

    pthread_mutex_lock(&lock.mutex);
    while ((request = t->submitted) != NULL) {
        t->submitted = request->next;
        add_ready(t, request);
    }
    t->submitted_end = &t->submitted;
    *ret_cancelled = t->any_cancelled;
    t->any_cancelled = false;
    pthread_mutex_unlock(&lock.mutex);
    return !atomic_load(&t->stop);
}

static struct hr_web_request *next_cancelled(struct hr_web_request *list, bool all)
{
    while (list != NULL && !all && !atomic_load(&list->cancelled))
        list = list->next;
    return list;
}

/* Those that wait are made running first, from where they end as all do. */
static void cancel_of(struct transport *t, struct hr_web_request **list, bool all)
{
    struct hr_web_request *request;

    while ((request = next_cancelled(*list, all)) != NULL) {
        if (list != &t->running) {
            unlink_request(list, request);
            request->next = t->running;
            t->running = request;
        }
        hr__fail(request->error, HR_ERR_CANCELLED, "reading %s was cancelled",
                 request->uri);
        end_request(t, request, HR_ERR_CANCELLED);
    }
}

static void cancel_requests(struct transport *t, bool all)
{
    cancel_of(t, &t->running, all);
    cancel_of(t, &t->delayed, all);
    cancel_of(t, &t->ready, all);
    t->ready_end = &t->ready;
    while (*t->ready_end != NULL)
        t->ready_end = &(*t->ready_end)->next;
}

/* Urgent ones have connections of their own. */
static bool may_start(const struct transport *t, const struct hr_web_request *request)
{
    return t->active < t->limits.connections + (request->urgent ? URGENT_CONNECTIONS : 0);
}

/* Starts what may be started; returns when to look again at the latest. */
static uint64_t start_requests(struct transport *t, uint64_t now)
{
    struct hr_web_request **link = &t->delayed, *request;
    uint64_t soon = now + 1000 * MS;

    while ((request = *link) != NULL) {
        if (request->due_ns > now) {
            soon = soon < request->due_ns ? soon : request->due_ns;
            link = &request->next;
            continue;
        }
        *link = request->next;
        add_ready(t, request);
    }
    while ((request = t->ready) != NULL && may_start(t, request)) {
        t->ready = request->next;
        if (t->ready == NULL)
            t->ready_end = &t->ready;
        run_request(t, request);
    }
    if (t->running != NULL && soon > now + LOOK_EVERY_NS)
        soon = now + LOOK_EVERY_NS;
    return soon;
}

static void *run(void *user)
{
    struct transport *t = user;
    bool cancelled;
    int running;

    while (accept_submitted(t, &cancelled)) {
        uint64_t now = hr__now_ns(), soon;

        if (cancelled)
            cancel_requests(t, false);
        soon = start_requests(t, now);
        hr__curl.multi_perform(t->multi, &running);
        reap(t);
        begin_bodies(t, hr__now_ns());
        if (now - t->looked_ns >= LOOK_EVERY_NS) {
            t->looked_ns = now;
            check_times(t, hr__now_ns()); /* later than any byte was heard */
        }
        if (t->ready == NULL || !may_start(t, t->ready))
            hr__curl.multi_poll(t->multi, NULL, 0, (int)((soon - now + MS - 1) / MS),
                                NULL);
    }
    cancel_requests(t, true);
    return NULL;
}

static void free_transport(struct transport *t)
{
    while (t->idle != NULL) {
        struct hr_web_attempt *attempt = t->idle;

        t->idle = attempt->next;
        hr__curl.easy_cleanup(attempt->easy);
        hr__free(attempt);
    }
    if (t->multi != NULL)
        hr__curl.multi_cleanup(t->multi);
    hr__free(t);
}

static enum hr_err
create_transport(struct transport **ret_transport, struct hr_error *reterr)
{
    struct transport *t = hr__calloc(1, sizeof *t);
    enum hr_err err = HR_ERR_MEMORY;

    if (t == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    t->submitted_end = &t->submitted;
    t->ready_end = &t->ready;
    t->random = hr__now_ns();
    read_limits(&t->limits);
    hr__web_bodies_init(&t->bodies);
    t->multi = hr__curl.multi_init();
    if (t->multi == NULL) {
        hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    } else {
        hr__curl.multi_setopt(t->multi, CURLMOPT_MAXCONNECTS,
                              (long)(t->limits.connections + URGENT_CONNECTIONS));
        err = hr__thread_start(&t->thread, "hr-http", run, t, reterr);
    }
    if (err == HR_OK)
        *ret_transport = t;
    else
        free_transport(t);
    return err;
}

/* A child has the memory of the requests but not their thread: it starts afresh. */
static void forget_in_child(void)
{
    pthread_mutex_init(&lock.mutex, NULL);
    lock.current = NULL;
}

static void stop_at_exit(void)
{
    pthread_mutex_lock(&lock.mutex);
    lock.exiting = true;
    pthread_mutex_unlock(&lock.mutex);
    hr__web_stop();
}

/* Once per process; lock held. */
static enum hr_err prepare_process(struct hr_error *reterr)
{
    if (lock.exiting)
        return hr__fail(reterr, HR_ERR_CANCELLED, "the process is about to exit");
    if (lock.prepared)
        return HR_OK;
    HR_TRY(hr__curl_load(reterr));
    if (hr__curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return hr__fail(reterr, HR_ERR_INTERNAL, "libcurl cannot be used");
    /* after what curl registers, so that this runs before it */
    if (pthread_atfork(NULL, NULL, forget_in_child) != 0 || atexit(stop_at_exit) != 0)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    lock.prepared = true;
    return HR_OK;
}

enum hr_err hr__web_submit(struct hr_web_request *request, struct hr_error *reterr)
{
    enum hr_err err;

    assert(request->want != HR_WEB_RANGE ||
           (request->room != NULL && request->bytes > 0));
    request->next = NULL;
    request->attempts[0] = request->attempts[1] = NULL;
    request->data = NULL;
    request->got = request->need = 0;
    request->failures = 0;
    request->begun = request->hedged = request->plain = request->has_ranges = false;
    atomic_store(&request->cancelled, false);
    hr__str_init(&request->text);
    pthread_mutex_lock(&lock.mutex);
    err = prepare_process(reterr);
    if (err == HR_OK && lock.current == NULL)
        err = create_transport(&lock.current, reterr);
    if (err == HR_OK) {
        *lock.current->submitted_end = request;
        lock.current->submitted_end = &request->next;
        hr__curl.multi_wakeup(lock.current->multi);
        count(&counts.requests, 1);
    }
    pthread_mutex_unlock(&lock.mutex);
    return err;
}

void hr__web_cancel(struct hr_web_request *request)
{
    pthread_mutex_lock(&lock.mutex);
    atomic_store(&request->cancelled, true);
    if (lock.current != NULL) {
        lock.current->any_cancelled = true;
        hr__curl.multi_wakeup(lock.current->multi);
    }
    pthread_mutex_unlock(&lock.mutex);
}

void hr__web_stop(void)
{
    struct transport *t;

    pthread_mutex_lock(&lock.mutex);
    t = lock.current;
    lock.current = NULL;
    pthread_mutex_unlock(&lock.mutex);
    if (t == NULL)
        return;
    atomic_store(&t->stop, true);
    hr__curl.multi_wakeup(t->multi);
    pthread_join(t->thread, NULL);
    free_transport(t);
}

/* ---- waiting ---- */

struct waiter {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool done;
    enum hr_err err;
};

static void wake(struct hr_web_request *request, enum hr_err err)
{
    struct waiter *waiter = request->user;

    pthread_mutex_lock(&waiter->mutex);
    waiter->done = true;
    waiter->err = err;
    pthread_cond_signal(&waiter->cond);
    pthread_mutex_unlock(&waiter->mutex);
}

enum hr_err hr__web_fetch(struct hr_web_request *request)
{
    struct waiter waiter = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                            .cond = PTHREAD_COND_INITIALIZER};
    struct hr_error *error = request->error;

    request->done = wake;
    request->user = &waiter;
    request->urgent = true;
    HR_TRY(hr__web_submit(request, error));
    pthread_mutex_lock(&waiter.mutex);
    while (!waiter.done)
        pthread_cond_wait(&waiter.cond, &waiter.mutex);
    pthread_mutex_unlock(&waiter.mutex);
    pthread_mutex_destroy(&waiter.mutex);
    pthread_cond_destroy(&waiter.cond);
    return waiter.err;
}
