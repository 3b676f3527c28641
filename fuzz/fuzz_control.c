/*
 * fuzz/fuzz_control.c - any text as the query of a list, as the body of a drain, and as
 * the answer of a dispatcher's control port: refused with a message, or read within its
 * limits.
 */
#include "fleet/control.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void read_drain(const char *text, size_t bytes)
{
    char worker[HR_NET_ADDRESS_MAX];
    struct hr_error error = {0};

    if (hr__control_read_drain(text, bytes, worker, &error) != HR_OK) {
        if (error.message[0] == '\0')
            abort();
        return;
    }
    if (strlen(worker) >= sizeof worker)
        abort();
}

static void read_page(const char *text, size_t bytes)
{
    struct hr_control_page page;
    struct hr_error error = {0};
    char *query = malloc(bytes + 1);

    if (query == NULL)
        abort();
    memcpy(query, text, bytes);
    query[bytes] = '\0';
    if (hr__control_read_page(query, &page, &error) != HR_OK && error.message[0] == '\0')
        abort();
    free(query);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hr_control_status *status = NULL;
    struct hr_error error = {0};

    read_page((const char *)data, bytes);
    read_drain((const char *)data, bytes);
    if (hr__control_read_status((const char *)data, bytes, &status, &error) != HR_OK) {
        if (error.message[0] == '\0' || status != NULL)
            abort();
        return 0;
    }
    for (size_t i = 0; i < status->worker_count; i++)
        if (strlen(status->workers[i].address) >= sizeof status->workers[i].address)
            abort();
    for (size_t i = 0; i < status->job_count; i++)
        if (strlen(status->jobs[i].name) >= sizeof status->jobs[i].name)
            abort();
    for (size_t i = 0; i < status->consumer_count; i++)
        if (strlen(status->consumers[i].job) >= sizeof status->consumers[i].job ||
            strlen(status->consumers[i].name) >= sizeof status->consumers[i].name)
            abort();
    hr__control_status_free(status);
    return 0;
}
