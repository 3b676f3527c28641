/*
 * store/web_requests.c - how a request is carried out, in the thread of web.c.
 *
 * A request has up to two attempts: curl handles that each copy a body to its place in
 * the request's memory, from the byte they asked for. Both bring the same bytes (their
 * identities are compared), so overlapping writes by the one thread do no harm.
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

#define RECEIVE_BYTES (256l << 10)
#define REDIRECTS_MAX 5l
/* Before the first retry. It doubles up to the limit, unless the server asks for more. */
#define PAUSE_NS (100 * HR_WEB_MS)
#define PAUSE_MAX_NS (5000 * HR_WEB_MS)
/* A retry that brings as much starts the count of retries again. */
#define PROGRESS_BYTES (64u << 10)
#define SAMPLES_MIN 32
#define HEDGE_MIN_NS (20 * HR_WEB_MS)
#define HEDGES_FREE 8 /* beyond them and one in HEDGE_SHARE requests it takes longer */
#define HEDGE_PATIENCE 8
#define HEDGE_SHARE 20
#define WINDOW_NS (20 * HR_WEB_MS) /* at least, for the rate of bodies */
#define BODY_SILENT_NS (100 * HR_WEB_MS)

/* ---- attempts ---- */

static CURL *set_up(struct hr_web_transport *t, struct hr_web_attempt *attempt,
                    const struct hr_web_get *get)
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

static void free_attempt(struct hr_web_transport *t, struct hr_web_attempt *attempt)
{
    hr__curl.slist_free_all(attempt->headers);
    attempt->headers = NULL;
    attempt->request = NULL;
    attempt->next = t->idle;
    t->idle = attempt;
}

static struct hr_web_attempt *new_attempt(struct hr_web_transport *t)
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
prepare(struct hr_web_transport *t, struct hr_web_attempt *attempt, struct hr_error *why)
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
static enum hr_err start_attempt(struct hr_web_transport *t,
                                 struct hr_web_request *request, struct hr_error *why)
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
    hr__web_count(&hr__web_counts.gets, 1);
    if (attempt->from > 0)
        hr__web_count(&hr__web_counts.resumed, 1);
    return HR_OK;
}

static void drop_attempt(struct hr_web_transport *t, struct hr_web_attempt *attempt)
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

void hr__web_unlink(struct hr_web_request **list, struct hr_web_request *request)
{
    while (*list != request)
        list = &(*list)->next;
    *list = request->next;
}

/* A running request is over. */
void hr__web_end(struct hr_web_transport *t, struct hr_web_request *request,
                 enum hr_err err)
{
    while (request->attempts[0] != NULL)
        drop_attempt(t, request->attempts[0]);
    hr__web_unlink(&t->running, request);
    t->finished++;
    request->done(request, err);
}

static void fail_request(struct hr_web_transport *t, struct hr_web_request *request,
                         const struct hr_error *why, enum hr_err err)
{
    hr__store_note(request->error, request->uri);
    hr__fail(request->error, err, "%s", why->message);
    hr__web_end(t, request, err);
}

void hr__web_run(struct hr_web_transport *t, struct hr_web_request *request)
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
static void delay_request(struct hr_web_transport *t, struct hr_web_request *request,
                          uint64_t least_s)
{
    uint64_t pause = PAUSE_NS;

    for (int i = 1; i < request->failures && pause < PAUSE_MAX_NS; i++)
        pause *= 2;
    if (pause > PAUSE_MAX_NS)
        pause = PAUSE_MAX_NS;
    t->random = hr__hash64(&t->random, sizeof t->random, hr__now_ns());
    pause = pause / 2 + t->random % (pause / 2 + 1);
    if (pause < least_s * 1000 * HR_WEB_MS)
        pause = least_s * 1000 * HR_WEB_MS;
    hr__web_count(&hr__web_counts.retries, 1);
    hr__web_unlink(&t->running, request);
    request->due_ns = hr__now_ns() + pause;
    request->next = t->delayed;
    t->delayed = request;
}

/* ---- how attempts end ---- */

/* After a 416 without the size, which a GET of the whole tells. */
static void repeat_plain(struct hr_web_transport *t, struct hr_web_request *request)
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

static void add_sample(struct hr_web_transport *t, uint64_t ns);

static void
end_attempt(struct hr_web_transport *t, struct hr_web_attempt *attempt, CURLcode code)
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
        hr__web_count(&hr__web_counts.hedges_won, won);
        hr__web_end(t, request, HR_OK);
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

void hr__web_reap(struct hr_web_transport *t)
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
        hr__web_count(&hr__web_counts.connections,
                      connections > 0 ? (uint64_t)connections : 0);
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
static void add_sample(struct hr_web_transport *t, uint64_t ns)
{
    uint64_t sorted[HR_WEB_SAMPLES], count;

    t->samples[t->sample_count++ % HR_WEB_SAMPLES] = ns;
    if (t->limits.hedge_percent == 0 || t->sample_count % SAMPLES_MIN != 0)
        return;
    count = t->sample_count < HR_WEB_SAMPLES ? t->sample_count : HR_WEB_SAMPLES;
    memcpy(sorted, t->samples, (size_t)count * sizeof sorted[0]);
    qsort(sorted, (size_t)count, sizeof sorted[0], compare_times);
    t->hedge_after_ns = 2 * sorted[count * t->limits.hedge_percent / 100];
    if (t->hedge_after_ns < HEDGE_MIN_NS)
        t->hedge_after_ns = HEDGE_MIN_NS;
}

/* How long nothing came although the thread looked. Bytes may be heard after `now`, which
 * is before the thread served its connections: what it spends on others is not a
 * server's silence. */
static uint64_t silent_ns(const struct hr_web_attempt *attempt, uint64_t now)
{
    return now > attempt->heard_ns ? now - attempt->heard_ns : 0;
}

/* A second attempt for a request that is silent for too long; once many were started, for
 * much too long, so that a server under load gets no load more. */
static void
hedge(struct hr_web_transport *t, struct hr_web_request *request, uint64_t now)
{
    struct hr_web_attempt *attempt = request->attempts[0];
    bool many = t->hedges >= HEDGES_FREE + t->finished / HEDGE_SHARE;
    uint64_t after_ns = many ? HEDGE_PATIENCE * t->hedge_after_ns : t->hedge_after_ns;
    struct hr_error why;

    if (after_ns == 0 || request->attempts[1] != NULL || request->want == HR_WEB_TEXT ||
        silent_ns(attempt, now) < after_ns || t->active >= t->limits.connections ||
        start_attempt(t, request, &why) != HR_OK)
        return; /* the first continues */
    request->hedged = true;
    t->hedges++;
    hr__web_count(&hr__web_counts.hedges, 1);
}

/* One that waits is not silent. One that is silent no longer keeps others waiting. */
static void check_body(struct hr_web_attempt *attempt, uint64_t now)
{
    if (attempt->body == HR_WEB_BODY_WAITS)
        attempt->heard_ns = now;
    else if (silent_ns(attempt, now) >= BODY_SILENT_NS)
        hr__web_body_ends(attempt);
}

void hr__web_check_times(struct hr_web_transport *t, uint64_t now)
{
    struct hr_web_request *request, *next;

    for (request = t->running; request != NULL; request = next) {
        next = request->next;
        for (int i = 1; i >= 0; i--) {
            struct hr_web_attempt *attempt = request->attempts[i];

            if (attempt != NULL)
                check_body(attempt, now);
            if (attempt == NULL || silent_ns(attempt, now) < t->limits.stall_ns)
                continue;
            attempt->stalled = true;
            hr__web_count(&hr__web_counts.stalls, 1);
            end_attempt(t, attempt, CURLE_OPERATION_TIMEDOUT);
            /* after the second the first is left, so the request is still there */
        }
    }
    for (request = t->running; request != NULL; request = request->next)
        hedge(t, request, now);
}

/* ---- bodies ---- */

void hr__web_begin_bodies(struct hr_web_transport *t, uint64_t now)
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
