/*
 * net/lookup.c - see lookup.h.
 */
#include "net/lookup.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/thread.h"
#include "net/address.h"
#include "net/net.h"

#define LOOKUPS_MAX 80u       /* more than a client knows workers */
#define FRESH_NS 5000000000ul /* after that, a result is looked up again */

/* Held by its thread and by the list; the last one frees it. */
struct hr_lookup {
    struct hr_lookup *next;
    char address[HR_NET_ADDRESS_MAX];
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t done;
    int holders;
    uint64_t ended_ns; /* 0: under way */
    enum hr_err code;
    struct hr_error error;
    struct sockaddr_storage found;
    socklen_t bytes;
};

static void release(struct hr_lookup *lookup)
{
    bool last;

    pthread_mutex_lock(&lookup->lock);
    last = --lookup->holders == 0;
    pthread_mutex_unlock(&lookup->lock);
    if (!last)
        return;
    pthread_cond_destroy(&lookup->done);
    pthread_mutex_destroy(&lookup->lock);
    hr__free(lookup);
}

static void *run(void *user)
{
    struct hr_lookup *lookup = user;
    struct sockaddr_storage found = {0};
    struct hr_error error = {0};
    socklen_t bytes = 0;
    enum hr_err code = hr__address_parse(lookup->address, &found, &bytes, &error);

    pthread_mutex_lock(&lookup->lock);
    lookup->code = code;
    lookup->error = error;
    lookup->found = found;
    lookup->bytes = bytes;
    lookup->ended_ns = hr__now_ns();
    pthread_cond_broadcast(&lookup->done);
    pthread_mutex_unlock(&lookup->lock);
    release(lookup);
    return NULL;
}

static struct hr_lookup *create(const char *address)
{
    struct hr_lookup *lookup = hr__calloc(1, sizeof *lookup);

    if (lookup == NULL)
        return NULL;
    snprintf(lookup->address, sizeof lookup->address, "%s", address);
    pthread_mutex_init(&lookup->lock, NULL);
    hr__cond_init(&lookup->done);
    lookup->holders = 1;
    return lookup;
}

static enum hr_err
begin(const char *address, struct hr_lookup **ret_lookup, struct hr_error *reterr)
{
    struct hr_lookup *lookup = create(address);
    pthread_t thread;
    enum hr_err code;

    if (lookup == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    lookup->holders = 2;
    code = hr__thread_start(&thread, "hr-lookup", run, lookup, reterr);
    if (code != HR_OK) {
        lookup->holders = 1;
        release(lookup);
        return code;
    }
    pthread_detach(thread);
    *ret_lookup = lookup;
    return HR_OK;
}

static uint64_t ended_ns(struct hr_lookup *lookup)
{
    uint64_t ns;

    pthread_mutex_lock(&lookup->lock);
    ns = lookup->ended_ns;
    pthread_mutex_unlock(&lookup->lock);
    return ns;
}

/* Whether it ends within that time. */
static bool await(struct hr_lookup *lookup, uint64_t patience_ns)
{
    uint64_t until = hr__now_ns() + patience_ns;
    int failed = 0;
    bool ended;

    pthread_mutex_lock(&lookup->lock);
    while (lookup->ended_ns == 0 && failed == 0)
        failed = hr__cond_wait(&lookup->done, &lookup->lock, until);
    ended = lookup->ended_ns != 0;
    pthread_mutex_unlock(&lookup->lock);
    return ended;
}

static void drop(struct hr_lookups *lookups, struct hr_lookup **at)
{
    struct hr_lookup *lookup = *at;

    *at = lookup->next;
    lookups->count--;
    release(lookup);
}

/* The place in the list where the address is, or the end. Drops old results. */
static struct hr_lookup **find(struct hr_lookups *lookups, const char *address)
{
    struct hr_lookup **at = &lookups->first, **found = NULL;

    while (*at != NULL) {
        uint64_t ended = ended_ns(*at);

        if (ended != 0 && hr__now_ns() - ended > FRESH_NS) {
            drop(lookups, at);
            continue;
        }
        if (strcmp((*at)->address, address) == 0)
            found = at;
        at = &(*at)->next;
    }
    return found != NULL ? found : at;
}

enum hr_err hr__look_up(struct hr_lookups *lookups, const char *address,
                        uint64_t patience_ns, struct sockaddr_storage *ret_address,
                        socklen_t *ret_bytes, struct hr_error *reterr)
{
    enum hr_err code = hr__address_parse_number(address, ret_address, ret_bytes, reterr);
    struct hr_lookup **at, *lookup;

    if (code != HR_ERR_NOT_FOUND)
        return code;
    at = find(lookups, address);
    if (*at == NULL) {
        if (lookups->count >= LOOKUPS_MAX)
            return hr__fail(reterr, HR_ERR_LIMIT, "%u names are being looked up already",
                            lookups->count);
        HR_TRY(begin(address, at, reterr));
        lookups->count++;
    } else {
        patience_ns = 0;
    }
    lookup = *at;
    if (!await(lookup, patience_ns))
        return hr__fail(reterr, HR_ERR_TIMEOUT,
                        "cannot look up '%s': the name server has not answered", address);
    code = lookup->code;
    *ret_address = lookup->found;
    *ret_bytes = lookup->bytes;
    if (code != HR_OK && reterr != NULL)
        *reterr = lookup->error;
    drop(lookups, at);
    return code;
}

void hr__lookups_finish(struct hr_lookups *lookups)
{
    while (lookups->first != NULL)
        drop(lookups, &lookups->first);
}
