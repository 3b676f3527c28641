/*
 * fleet/fleet.c - see fleet.h.
 */
#include "fleet/fleet.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "core/alloc.h"
#include "core/kill_point.h"
#include "net/address.h"

/* One of them, up to a comma. */
static enum hr_err add_address(struct hr_fleet_list *list, const char *text, size_t bytes,
                               struct hr_error *reterr)
{
    struct sockaddr_storage at;
    socklen_t length;
    enum hr_err code;

    list->items[list->count] = hr__strndup(text, bytes);
    if (list->items[list->count] == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    code = hr__address_parse_number(list->items[list->count++], &at, &length, reterr);
    return code == HR_ERR_NOT_FOUND ? HR_OK : code; /* a name */
}

enum hr_err
hr__fleet_list(const char *text, struct hr_fleet_list *ret_list, struct hr_error *reterr)
{
    struct hr_fleet_list list = {0};
    enum hr_err code = HR_OK;

    for (const char *at = text; code == HR_OK && at != NULL;) {
        size_t bytes = strcspn(at, ",");

        if (list.count == HR_FLEET_DISPATCHERS)
            code =
                hr__fail(reterr, HR_ERR_ARGUMENT, "at most %u dispatchers, not '%.100s'",
                         HR_FLEET_DISPATCHERS, text);
        else
            code = add_address(&list, at, bytes, reterr);
        at = at[bytes] == ',' ? at + bytes + 1 : NULL;
    }
    if (code == HR_OK)
        *ret_list = list;
    else
        hr__fleet_list_finish(&list);
    return code;
}

void hr__fleet_list_finish(struct hr_fleet_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        hr__free(list->items[i]);
    list->count = 0;
}

enum hr_err hr__fleet_nonce(uint64_t *ret_nonce, struct hr_error *reterr)
{
    uint64_t nonce;

    if (getrandom(&nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce)
        return hr__fail_errno(reterr, HR_ERR_IO, errno, "cannot draw a random number");
    *ret_nonce = nonce | 1;
    return HR_OK;
}

void hr__fleet_perform(struct hr_net *net, struct hr_actions *actions)
{
    for (size_t i = 0; i < actions->count; i++) {
        const struct hr_action *action = &actions->items[i];

        if (action->kind == HR_ACTION_SEND) {
            if (action->u.frame.type == HR_FRAME_LEASE)
                HR_KILL_POINT("lease.granted");
            if (action->u.frame.type == HR_FRAME_FINISHED)
                HR_KILL_POINT("lease.finished");
            hr__net_send(net, action->peer, &action->u.frame);
        } else if (action->kind == HR_ACTION_CLOSE) {
            hr__net_drop(net, action->peer);
        }
        HR_KILL_POINT("actions.between");
    }
    actions->count = 0;
}

void hr__fleet_send_text(struct hr_net *net, uint32_t peer, const struct hr_frame *frame,
                         const char *text, size_t bytes)
{
    struct hr_buffer *body = hr_buffer_create(bytes);

    if (body == NULL) {
        hr__net_drop(net, peer);
        return;
    }
    if (bytes > 0)
        memcpy(hr_buffer_data(body), text, bytes);
    hr__net_send_body(
        net, peer, frame,
        &(struct hr_net_part){hr_buffer_data(body), hr_buffer_bytes(body), body}, 1);
    hr_buffer_unref(body);
}

enum hr_err hr__fleet_check_weight(const struct hr_tenant *tenant,
                                   const struct hr_frame *hello, struct hr_error *reterr)
{
    uint32_t weight = hello->u.hello.weight;

    if (tenant == NULL || weight <= tenant->weight_max)
        return HR_OK;
    return hr__fail(reterr, HR_ERR_DENIED,
                    "a run of tenant %s may have a weight of %u, not %u", tenant->name,
                    tenant->weight_max, weight);
}

void hr__fleet_refuse(struct hr_net *net, uint32_t peer, const struct hr_error *error)
{
    struct hr_frame frame = {.type = HR_FRAME_ERROR};

    frame.u.error.code = error->code;
    snprintf(frame.u.error.text, sizeof frame.u.error.text, "%.*s",
             (int)HR_FRAME_TEXT_MAX, error->message);
    hr__net_send(net, peer, &frame);
    hr__net_drop(net, peer);
}

/* What hr__net_open() takes over. */
static enum hr_err read_files(const struct hr_fleet_door *door,
                              struct hr_net_options *options, struct hr_error *reterr)
{
    HR_TRY(hr__token_load(door->token_file, &options->token, reterr));
    HR_TRY(hr__tls_open(&door->tls, door->tls_uses, &options->tls, reterr));
    HR_TRY(hr__token_check_listen(&options->token, door->listen,
                                  door->insecure || hr__tls_asks_clients(options->tls),
                                  reterr));
    return door->tenants_file == NULL
               ? HR_OK
               : hr__tenants_load(door->tenants_file, &options->token, &options->tenants,
                                  reterr);
}

enum hr_err
hr__fleet_open(const struct hr_fleet_door *door, struct hr_net_options *options,
               struct hr_net **ret_net, struct hr_error *reterr)
{
    enum hr_err code = read_files(door, options, reterr);

    if (code != HR_OK) {
        hr__tls_close(options->tls);
        return code;
    }
    HR_TRY(hr__net_open(options, ret_net, reterr));
    return hr__net_listen(*ret_net, door->listen, reterr);
}

enum hr_err hr__fleet_check_control(const char *listen, bool has_tls, bool insecure,
                                    struct hr_error *reterr)
{
    const struct hr_token none = {0};

    if (!has_tls || hr__token_check_listen(&none, listen, insecure, NULL) == HR_OK)
        return HR_OK;
    return hr__fail(reterr, HR_ERR_ARGUMENT,
                    "the control port has no TLS: at %s others could read the token that "
                    "TLS hides elsewhere; listen at 127.0.0.1 and put a proxy with TLS "
                    "in front, or say --insecure",
                    listen);
}
