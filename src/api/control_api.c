/*
 * api/control_api.c - include/headrace/control.h: one HTTP request each.
 */
#include "headrace/control.h"

#include <string.h>

#include "core/error.h"
#include "core/str.h"
#ifdef HR_SERVICE
#include "fleet/control.h"
#include "net/http.h"
#endif

#define TIMEOUT_NS 10000000000u

void hr_control_options_init(struct hr_control_options *options)
{
    *options = (struct hr_control_options){.address = "127.0.0.1:7071",
                                           .timeout_ns = TIMEOUT_NS};
}

#ifdef HR_SERVICE

static enum hr_err ask(const struct hr_control_options *options, const char *path,
                       const char *body, struct hr_str *ret_body, struct hr_error *reterr)
{
    struct hr_token token = {0};

    if (options == NULL || options->address == NULL || path == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "options.address and path must not be NULL");
    HR_TRY(hr__token_load(options->token_file, &token, reterr));
    return hr__http_request(options->address, &token, path, body, options->timeout_ns,
                            ret_body, reterr);
}

enum hr_err
hr_control_status(const struct hr_control_options *options,
                  struct hr_control_status **ret_status, struct hr_error *reterr)
{
    struct hr_str body;
    enum hr_err code;

    hr__str_init(&body);
    code = ask(options, "/v1/status" HR_CONTROL_ALL, NULL, &body, reterr);
    if (code == HR_OK)
        code =
            hr__control_read_status(hr__str_text(&body), body.length, ret_status, reterr);
    hr__str_finish(&body);
    return code;
}

void hr_control_status_free(struct hr_control_status *status)
{
    hr__control_status_free(status);
}

enum hr_err hr_control_get(const struct hr_control_options *options, const char *path,
                           char **ret_body, struct hr_error *reterr)
{
    struct hr_str body;
    enum hr_err code;

    hr__str_init(&body);
    code = ask(options, path, NULL, &body, reterr);
    if (code != HR_OK) {
        hr__str_finish(&body);
        return code;
    }
    hr__str_add(&body, "");
    *ret_body = hr__str_take(&body);
    return *ret_body != NULL ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

enum hr_err hr_control_drain(const struct hr_control_options *options, const char *worker,
                             struct hr_error *reterr)
{
    struct hr_str body, answer;
    enum hr_err code;

    if (worker == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "worker must not be NULL");
    hr__str_init(&body);
    hr__str_init(&answer);
    hr__str_add(&body, "{\"worker\":");
    hr__str_add_json(&body, worker, strlen(worker));
    hr__str_add(&body, "}");
    code = hr__str_ok(&body)
               ? ask(options, "/v1/drain", hr__str_text(&body), &answer, reterr)
               : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    hr__str_finish(&body);
    hr__str_finish(&answer);
    return code;
}

enum hr_err hr_control_evict(const struct hr_control_options *options, const char *job,
                             const char *consumer, struct hr_error *reterr)
{
    struct hr_str body, answer;
    enum hr_err code;

    if (job == NULL || consumer == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "job and consumer must not be NULL");
    hr__str_init(&body);
    hr__str_init(&answer);
    hr__str_add(&body, "{\"job\":");
    hr__str_add_json(&body, job, strlen(job));
    hr__str_add(&body, ",\"consumer\":");
    hr__str_add_json(&body, consumer, strlen(consumer));
    hr__str_add(&body, "}");
    code = hr__str_ok(&body)
               ? ask(options, "/v1/evict", hr__str_text(&body), &answer, reterr)
               : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    hr__str_finish(&body);
    hr__str_finish(&answer);
    return code;
}

#else

static enum hr_err refuse(struct hr_error *reterr)
{
    return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                    "this library was built without libevent, which the service needs");
}

enum hr_err
hr_control_status(const struct hr_control_options *options,
                  struct hr_control_status **ret_status, struct hr_error *reterr)
{
    (void)options;
    (void)ret_status;
    return refuse(reterr);
}

void hr_control_status_free(struct hr_control_status *status)
{
    (void)status;
}

enum hr_err hr_control_get(const struct hr_control_options *options, const char *path,
                           char **ret_body, struct hr_error *reterr)
{
    (void)options;
    (void)path;
    (void)ret_body;
    return refuse(reterr);
}

enum hr_err hr_control_drain(const struct hr_control_options *options, const char *worker,
                             struct hr_error *reterr)
{
    (void)options;
    (void)worker;
    return refuse(reterr);
}

enum hr_err hr_control_evict(const struct hr_control_options *options, const char *job,
                             const char *consumer, struct hr_error *reterr)
{
    (void)options;
    (void)job;
    (void)consumer;
    return refuse(reterr);
}

#endif
