/*
 * net/intake.c - see intake.h.
 */
#include "net/intake.h"

#include <assert.h>
#include <string.h>

void hr__intake_init(struct hr_intake *in, struct hr_pool *pool, size_t payload_max)
{
    memset(in, 0, sizeof *in);
    in->pool = pool;
    in->payload_max = payload_max;
}

void hr__intake_finish(struct hr_intake *in)
{
    hr_buffer_unref(in->data);
    in->data = NULL;
}

static enum hr_err open_payload(struct hr_intake *in, struct hr_error *reterr)
{
    if (in->guarded && in->head.type != HR_FRAME_AUTH)
        return hr__fail(reterr, HR_ERR_DENIED,
                        "a token is needed here: give --token-file, or set "
                        "HEADRACE_TOKEN_FILE");
    if (!hr__frame_has_body(in->head.type))
        return HR_OK;
    if ((in->head.type == HR_FRAME_DATA || in->head.type == HR_FRAME_SHARED ||
         in->head.type == HR_FRAME_COMPRESSED) &&
        in->head.bytes > in->payload_max)
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "a %s frame announces %u bytes; this side takes at most %zu",
                        hr__frame_name(in->head.type), in->head.bytes, in->payload_max);
    if (hr_pool_get(in->pool, in->head.bytes, &in->data) != HR_OK)
        return hr__fail(reterr, HR_ERR_MEMORY, "no memory for a frame of %u bytes",
                        in->head.bytes);
    return HR_OK;
}

/* Copies what is missing of the first `until` bytes of the frame to `to`. */
static size_t
fill(struct hr_intake *in, char *to, size_t until, const char *bytes, size_t count)
{
    size_t more = until - in->have;

    more = count < more ? count : more;
    if (more > 0)
        memcpy(to, bytes, more);
    in->have += more;
    return more;
}

static char *payload_of(struct hr_intake *in)
{
    return in->data != NULL ? hr_buffer_data(in->data) : in->bytes + HR_FRAME_HEAD;
}

/* Hashes the runs of the body that are complete. */
static void sum_body(struct hr_intake *in)
{
    size_t have = in->have - HR_FRAME_HEAD;
    size_t until =
        have < in->head.bytes ? have / HR_FRAME_RUN * HR_FRAME_RUN : in->head.bytes;

    if (in->sealed)
        return;
    in->sum = hr__frame_sum(in->sum, payload_of(in) + in->summed, until - in->summed);
    in->summed = until;
}

static enum hr_err complete(struct hr_intake *in, struct hr_frame *ret_frame,
                            struct hr_buffer **ret_data, struct hr_error *reterr)
{
    if (in->data != NULL)
        HR_TRY(hr__frame_read_body(&in->head, in->sum, in->tail, ret_frame, reterr));
    else
        HR_TRY(hr__frame_read(in->bytes, &in->head, payload_of(in), ret_frame, reterr));
    *ret_data = in->data;
    in->data = NULL;
    in->have = 0;
    return HR_OK;
}

static enum hr_err open_frame(struct hr_intake *in, struct hr_error *reterr)
{
    HR_TRY(hr__frame_read_head(in->bytes, &in->head, reterr));
    HR_TRY(open_payload(in, reterr));
    in->summed = 0;
    in->sum = in->head.hash;
    return HR_OK;
}

/* What follows the header. Returns the bytes used. */
static size_t
take_rest(struct hr_intake *in, const char *bytes, size_t count, bool *ret_complete)
{
    size_t body = HR_FRAME_HEAD + in->head.bytes, used = 0;

    if (in->have < body || in->data == NULL)
        used = fill(in, payload_of(in) + (in->have - HR_FRAME_HEAD), body, bytes, count);
    *ret_complete = in->have == body;
    if (in->data == NULL)
        return used;
    if (in->have <= body)
        sum_body(in);
    if (in->have >= body)
        used += fill(in, in->tail + (in->have - body), body + HR_FRAME_TAIL, bytes + used,
                     count - used);
    *ret_complete = in->have == body + HR_FRAME_TAIL;
    return used;
}

enum hr_err
hr__intake_add(struct hr_intake *in, const char *bytes, size_t count, size_t *ret_used,
               bool *ret_complete, struct hr_frame *ret_frame,
               struct hr_buffer **ret_data, struct hr_error *reterr)
{
    bool whole = false;
    size_t used = 0;

    *ret_used = 0;
    *ret_complete = false;
    if (in->have < HR_FRAME_HEAD) {
        used = fill(in, in->bytes + in->have, HR_FRAME_HEAD, bytes, count);
        if (in->have == HR_FRAME_HEAD)
            HR_TRY(open_frame(in, reterr));
    }
    if (in->have >= HR_FRAME_HEAD)
        used += take_rest(in, bytes + used, count - used, &whole);
    if (whole)
        HR_TRY(complete(in, ret_frame, ret_data, reterr));
    *ret_complete = whole;
    *ret_used = used;
    return HR_OK;
}

size_t hr__intake_room(const struct hr_intake *in, char **ret_to)
{
    size_t body = HR_FRAME_HEAD + in->head.bytes;

    if (in->data == NULL || in->have >= body)
        return 0;
    *ret_to = (char *)hr_buffer_data(in->data) + (in->have - HR_FRAME_HEAD);
    return body - in->have;
}

void hr__intake_wrote(struct hr_intake *in, size_t bytes)
{
    assert(in->data != NULL && in->have + bytes <= HR_FRAME_HEAD + in->head.bytes);
    in->have += bytes;
    sum_body(in);
}
