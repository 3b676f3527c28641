/*
 * fleet/lend.c - the worker's side of fleet/loan.h.
 */
#include "fleet/loan.h"

#include <string.h>

#include "core/alloc.h"
#include "core/kill_point.h"
#include "wire/value.h"

struct hr_loan {
    struct hr_loan *next;
    uint64_t frame;
    size_t bytes, count;
    struct hr_buffer *owners[HR_SCHEMA_FIELDS_MAX];
};

/* Finds where the large tensors lie; false if one is not in a segment. */
static bool find_pieces(const struct hr_parcel_pieces *pieces, bool common,
                        struct hr_loan_piece *ret_pieces,
                        const struct hr_memory_segment **ret_segments)
{
    for (size_t i = 1; i < pieces->count; i++) {
        const struct hr_net_part *part = &pieces->parts[i];
        const struct hr_memory_segment *segment;
        size_t offset = 0;

        segment = hr__buffer_segment(part->owner, &offset);
        if (segment == NULL)
            return false;
        offset += (size_t)(part->data - (const char *)hr_buffer_data(part->owner));
        if (offset % HR_WIRE_ALIGN != 0)
            return false;
        ret_pieces[i - 1] = (struct hr_loan_piece){.offset = offset,
                                                   .bytes = part->bytes,
                                                   .segment = segment->index,
                                                   .common = common};
        ret_segments[i - 1] = segment;
    }
    return pieces->count > 1;
}

static void tell(struct hr_lender *lender, struct hr_net *net, uint32_t peer,
                 uint32_t index, const struct hr_memory_segment *segment)
{
    struct hr_frame frame = {.type = HR_FRAME_SEGMENT, .count = index};

    if (segment != NULL) {
        frame.u.segment.bytes = segment->bytes;
        hr__net_send_fd(net, peer, &frame, segment->fd);
    } else {
        hr__net_send(net, peer, &frame);
    }
    lender->told[index] = segment != NULL ? segment->id : 0;
}

/* The client forgets segments that are gone, and gets those that it needs. */
static void
tell_all(struct hr_lender *lender, struct hr_net *net, uint32_t peer,
         struct hr_pool *pool, const struct hr_memory_segment **segments, size_t count)
{
    for (uint32_t i = 0; i < HR_SEGMENTS_MAX; i++)
        if (lender->told[i] != 0 && lender->told[i] != hr__pool_segment(pool, i))
            tell(lender, net, peer, i, NULL);
    for (size_t i = 0; i < count; i++)
        if (lender->told[segments[i]->index] != segments[i]->id)
            tell(lender, net, peer, segments[i]->index, segments[i]);
}

static struct hr_buffer *make_head(const struct hr_loan_piece *pieces, size_t count)
{
    struct hr_loan_head head = {.count = (uint32_t)count};
    size_t bytes = hr__wire_align(sizeof head + count * sizeof *pieces);
    struct hr_buffer *buffer = hr_buffer_create(bytes);

    if (buffer == NULL)
        return NULL;
    memset(hr_buffer_data(buffer), 0, bytes);
    memcpy(hr_buffer_data(buffer), &head, sizeof head);
    memcpy((char *)hr_buffer_data(buffer) + sizeof head, pieces, count * sizeof *pieces);
    return buffer;
}

static struct hr_loan *make_loan(const struct hr_parcel_pieces *pieces)
{
    struct hr_loan *loan = hr__calloc(1, sizeof *loan);

    for (size_t i = 1; loan != NULL && i < pieces->count; i++) {
        loan->owners[loan->count++] = hr_buffer_ref(pieces->parts[i].owner);
        loan->bytes += pieces->parts[i].bytes;
    }
    return loan;
}

static void free_loan(struct hr_lender *lender, struct hr_loan *loan)
{
    lender->bytes -= loan->bytes;
    for (size_t i = 0; i < loan->count; i++)
        hr_buffer_unref(loan->owners[i]);
    hr__free(loan);
}

static void note(struct hr_lender *lender, struct hr_loan *loan)
{
    loan->frame = ++lender->frames;
    lender->bytes += loan->bytes;
    if (lender->first == NULL)
        lender->first = loan;
    else
        lender->last->next = loan;
    lender->last = loan;
}

bool hr__lend(struct hr_lender *lender, struct hr_net *net, uint32_t peer,
              struct hr_pool *pool, const struct hr_frame *data,
              const struct hr_parcel_pieces *pieces, bool common)
{
    const struct hr_memory_segment *segments[HR_SCHEMA_FIELDS_MAX];
    struct hr_loan_piece table[HR_SCHEMA_FIELDS_MAX];
    struct hr_frame frame = *data;
    struct hr_buffer *head;
    struct hr_loan *loan;

    if (!hr__net_is_local(net, peer) ||
        lender->bytes + pieces->bytes > HR_LEND_BYTES_MAX ||
        !find_pieces(pieces, common, table, segments))
        return false;
    head = make_head(table, pieces->count - 1);
    loan = head != NULL ? make_loan(pieces) : NULL;
    if (loan == NULL) {
        hr_buffer_unref(head);
        return false;
    }
    tell_all(lender, net, peer, pool, segments, pieces->count - 1);
    HR_KILL_POINT("segment.told");
    frame.type = HR_FRAME_SHARED;
    hr__net_send_body(
        net, peer, &frame,
        (const struct hr_net_part[]){
            {hr_buffer_data(head), hr_buffer_bytes(head), head},
            pieces->parts[0]
    },
        2);
    hr_buffer_unref(head);
    note(lender, loan);
    HR_KILL_POINT("loan.made");
    return true;
}

void hr__lend_release(struct hr_lender *lender, uint64_t frame)
{
    struct hr_loan **at = &lender->first, *loan, *before = NULL;

    while (*at != NULL && (*at)->frame != frame) {
        before = *at;
        at = &(*at)->next;
    }
    loan = *at;
    if (loan == NULL)
        return;
    *at = loan->next;
    if (lender->last == loan)
        lender->last = before;
    free_loan(lender, loan);
}

void hr__lend_finish(struct hr_lender *lender)
{
    while (lender->first != NULL) {
        struct hr_loan *loan = lender->first;

        lender->first = loan->next;
        free_loan(lender, loan);
    }
    *lender = (struct hr_lender){0};
}
