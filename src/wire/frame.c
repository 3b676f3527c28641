/*
 * wire/frame.c - frames to bytes and back.
 *
 * visit() lists the payload of each type once, for both directions.
 */
#include "wire/frame.h"

#include <assert.h>
#include <string.h>

#include "core/hash.h"
#include "core/str.h"

enum use { POSITION = 1, COUNT = 2, GENERATION = 4, RANGES = 8, BODY = 16 };

/* What a type uses of the header, and the bytes of its payload without ranges and text;
 * of a body at most. */
static const struct kind {
    const char *name;
    unsigned uses;
    uint32_t bytes;
} kinds[] = {
    [HR_FRAME_HELLO] = {"HELLO",      POSITION | COUNT | GENERATION,        48                },
    [HR_FRAME_WELCOME] = {"WELCOME",    POSITION | GENERATION,                32                },
    [HR_FRAME_PROGRESS] = {"PROGRESS",   POSITION | COUNT | GENERATION,        0                 },
    [HR_FRAME_ACK] = {"ACK",        POSITION | GENERATION,                0                 },
    [HR_FRAME_LEASE] = {"LEASE",      COUNT | GENERATION | RANGES,          16                },
    [HR_FRAME_BIND] = {"BIND",       COUNT | GENERATION | RANGES,          16                },
    [HR_FRAME_DATA] = {"DATA",       POSITION | COUNT | GENERATION | BODY, HR_FRAME_DATA_MAX },
    [HR_FRAME_FINISHED] = {"FINISHED",   COUNT | GENERATION | RANGES,          16                },
    [HR_FRAME_CREDIT] = {"CREDIT",     POSITION | GENERATION,                8                 },
    [HR_FRAME_COMMIT] = {"COMMIT",     COUNT | GENERATION | RANGES,          8                 },
    [HR_FRAME_COMMITTED] = {"COMMITTED",  GENERATION,                           8                 },
    [HR_FRAME_ERROR] = {"ERROR",      0,                                    4                 },
    [HR_FRAME_GOODBYE] = {"GOODBYE",    0,                                    0                 },
    [HR_FRAME_JOB] = {"JOB",        POSITION | BODY,                      HR_FRAME_JOB_MAX  },
    [HR_FRAME_WORKERS] = {"WORKERS",    COUNT | BODY,                         HR_FRAME_LIST_MAX },
    [HR_FRAME_AUTH] = {"AUTH",       BODY,                                 HR_FRAME_TOKEN_MAX},
    [HR_FRAME_SEGMENT] = {"SEGMENT",    COUNT,                                8                 },
    [HR_FRAME_SHARED] = {"SHARED",     POSITION | COUNT | GENERATION | BODY,
                        HR_FRAME_DATA_MAX                                                     },
    [HR_FRAME_RELEASE] = {"RELEASE",    POSITION,                             0                 },
    [HR_FRAME_COMPRESSED] = {"COMPRESSED", POSITION | COUNT | GENERATION | BODY,
                        HR_FRAME_DATA_MAX                                                     },
    [HR_FRAME_TRAFFIC] = {"TRAFFIC",    POSITION | COUNT,                     16                },
    [HR_FRAME_CONSUMER] = {"CONSUMER",   BODY,                                 HR_FRAME_NAME_MAX },
    [HR_FRAME_RECEIVED] = {"RECEIVED",   POSITION,                             0                 },
};
#define KINDS (sizeof kinds / sizeof kinds[0])

const char *hr__frame_name(enum hr_frame_type type)
{
    return (size_t)type < KINDS ? kinds[type].name : NULL;
}

bool hr__frame_has_body(enum hr_frame_type type)
{
    return (size_t)type < KINDS && (kinds[type].uses & BODY) != 0;
}

bool hr__frame_is_large(enum hr_frame_type type, size_t body_bytes)
{
    return (type == HR_FRAME_DATA || type == HR_FRAME_COMPRESSED) &&
           body_bytes >= HR_FRAME_LARGE;
}

/* ---- payloads ---- */

/* Bytes that are written to, or read from, `at`. */
struct stream {
    char *to;
    const char *from; /* NULL: writing */
    size_t left;
    bool failed;
};

static void pass(struct stream *s, void *value, size_t bytes)
{
    if (s->failed || bytes > s->left) {
        s->failed = true;
        return;
    }
    if (s->from != NULL) {
        memcpy(value, s->from, bytes);
        s->from += bytes;
    } else {
        memcpy(s->to, value, bytes);
        s->to += bytes;
    }
    s->left -= bytes;
}

size_t hr__frame_plain(const char *bytes, size_t count)
{
    size_t length = hr__utf8_length(bytes, count);
    unsigned char first = (unsigned char)bytes[0];
    bool control = first < 0x20 || first == 0x7f ||
                   (first == 0xc2 && length == 2 && (unsigned char)bytes[1] < 0xa0);

    return control ? 0 : length;
}

bool hr__frame_is_plain(const char *text, size_t bytes)
{
    size_t length;

    for (; bytes > 0; text += length, bytes -= length) {
        length = hr__frame_plain(text, bytes);
        if (length == 0)
            return false;
    }
    return true;
}

static void pass_ranges(struct stream *s, struct hr_frame_range *ranges, uint32_t count)
{
    pass(s, ranges, count * sizeof *ranges);
}

/* Replaces what must not reach a terminal or a log. A text that was cut may end within a
 * character. */
static void make_plain(char *text)
{
    for (size_t left = strlen(text), length; left > 0; left -= length, text += length) {
        length = hr__frame_plain(text, left);
        if (length == 0) {
            *text = '?';
            length = 1;
        }
    }
}

static void pass_text(struct stream *s, char *text)
{
    size_t bytes = s->from != NULL ? s->left : strlen(text);

    if (bytes > HR_FRAME_TEXT_MAX) {
        s->failed = true;
        return;
    }
    pass(s, text, bytes);
    if (s->from == NULL)
        return;
    text[bytes] = '\0';
    s->failed = s->failed || strlen(text) != bytes;
    make_plain(text);
}

static void pass_error(struct stream *s, struct hr_frame *f)
{
    int32_t code = f->u.error.code;

    pass(s, &code, sizeof code);
    f->u.error.code = (enum hr_err)code;
    pass_text(s, f->u.error.text);
}

static void visit(struct stream *s, struct hr_frame *f)
{
    switch (f->type) {
    case HR_FRAME_HELLO:
        pass(s, &f->job, 8);
        pass(s, &f->u.hello, sizeof f->u.hello);
        return;
    case HR_FRAME_WELCOME:
        pass(s, &f->job, 8);
        pass(s, &f->u.welcome, sizeof f->u.welcome);
        return;
    case HR_FRAME_LEASE:
    case HR_FRAME_BIND:
    case HR_FRAME_FINISHED:
        pass(s, &f->job, 8);
        pass(s, &f->u.lease.rank, 4);
        pass(s, f->type == HR_FRAME_FINISHED ? &f->u.lease.work_us : &f->u.lease.ttl_ms,
             4);
        pass_ranges(s, f->u.lease.ranges, f->count);
        return;
    case HR_FRAME_CREDIT:
        pass(s, &f->u.credit.total, 8);
        return;
    case HR_FRAME_COMMIT:
    case HR_FRAME_COMMITTED:
        pass(s, &f->u.commit.id, 8);
        pass_ranges(s, f->u.commit.ranges, f->count);
        return;
    case HR_FRAME_ERROR:
        pass_error(s, f);
        return;
    case HR_FRAME_SEGMENT:
        pass(s, &f->u.segment.bytes, 8);
        return;
    case HR_FRAME_TRAFFIC:
        pass(s, &f->u.traffic, sizeof f->u.traffic);
        return;
    case HR_FRAME_PROGRESS:
    case HR_FRAME_ACK:
    case HR_FRAME_DATA:
    case HR_FRAME_GOODBYE:
    case HR_FRAME_JOB:
    case HR_FRAME_WORKERS:
    case HR_FRAME_AUTH:
    case HR_FRAME_SHARED:
    case HR_FRAME_COMPRESSED:
    case HR_FRAME_RELEASE:
    case HR_FRAME_CONSUMER:
    case HR_FRAME_RECEIVED:
        return;
    }
}

_Static_assert(sizeof(((struct hr_frame *)0)->u.hello) == 40, "no padding");
_Static_assert(sizeof(((struct hr_frame *)0)->u.welcome) == 24, "no padding");
_Static_assert(sizeof(((struct hr_frame *)0)->u.traffic) == 16, "no padding");
_Static_assert(sizeof(struct hr_frame_range) == 16, "no padding");

/* ---- checks ---- */

static bool ranges_are_sound(const struct hr_frame_range *ranges, uint32_t count)
{
    uint64_t after = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (ranges[i].from < after || ranges[i].until <= ranges[i].from ||
            ranges[i].until > HR_FRAME_POSITION_MAX)
            return false;
        after = ranges[i].until;
    }
    return true;
}

static bool hello_is_sound(const struct hr_frame *f)
{
    bool worker = f->u.hello.role == HR_FRAME_WORKER;

    if (worker)
        return f->count > 0 && f->position == 0 && f->generation == 0 && f->job == 0 &&
               f->u.hello.base == 0 && f->u.hello.membership == 0 &&
               f->u.hello.world == 0 && f->u.hello.rank == 0 && f->u.hello.weight == 0 &&
               f->u.hello.zero == 0;
    return f->u.hello.role == HR_FRAME_CLIENT && f->count <= HR_FRAME_KINDS_MAX &&
           f->u.hello.world > 0 && f->u.hello.world <= HR_FRAME_WORLD_MAX &&
           f->u.hello.rank < f->u.hello.world &&
           f->u.hello.base <= HR_FRAME_POSITION_MAX && f->u.hello.weight > 0 &&
           f->u.hello.weight <= HR_FRAME_WEIGHT_MAX && f->u.hello.zero == 0;
}

static bool error_is_sound(const struct hr_frame *f)
{
    return f->u.error.code < 0 &&
           strcmp(hr_err_name(f->u.error.code), "HR_ERR_UNKNOWN") != 0 &&
           f->u.error.text[0] != '\0';
}

static bool message_is_sound(const struct hr_frame *f)
{
    switch (f->type) {
    case HR_FRAME_HELLO:
        return hello_is_sound(f);
    case HR_FRAME_WELCOME:
        return f->u.welcome.window <= HR_FRAME_POSITION_MAX;
    case HR_FRAME_LEASE:
        return f->count > 0 && f->u.lease.rank < HR_FRAME_WORLD_MAX &&
               f->u.lease.ttl_ms > 0 && ranges_are_sound(f->u.lease.ranges, f->count);
    case HR_FRAME_BIND:
    case HR_FRAME_FINISHED:
        return f->count > 0 && f->u.lease.rank < HR_FRAME_WORLD_MAX &&
               f->u.lease.ttl_ms == 0 && ranges_are_sound(f->u.lease.ranges, f->count);
    case HR_FRAME_COMMIT:
        return f->u.commit.id > 0 && ranges_are_sound(f->u.commit.ranges, f->count);
    case HR_FRAME_COMMITTED:
        return f->u.commit.id > 0;
    case HR_FRAME_ERROR:
        return error_is_sound(f);
    case HR_FRAME_TRAFFIC:
        return f->count <= HR_FRAME_KINDS_MAX;
    case HR_FRAME_DATA:
    case HR_FRAME_SHARED:
    case HR_FRAME_COMPRESSED:
        return f->count > 0;
    default:
        return true;
    }
}

static enum hr_err
head_is_sound(const struct hr_frame_head *head, struct hr_error *reterr)
{
    const struct kind *kind = &kinds[head->type];
    uint64_t most = kind->bytes;

    if ((!(kind->uses & POSITION) && head->position != 0) ||
        (!(kind->uses & COUNT) && head->count != 0) ||
        (!(kind->uses & GENERATION) && head->generation != 0) ||
        head->position > HR_FRAME_POSITION_MAX ||
        ((kind->uses & RANGES) && head->count > HR_FRAME_RANGES_MAX))
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "a %s frame has a number in its header that the type does not "
                        "allow",
                        kind->name);
    if (kind->uses & RANGES)
        most += (uint64_t)head->count * sizeof(struct hr_frame_range);
    if (head->type == HR_FRAME_ERROR)
        most += HR_FRAME_TEXT_MAX;
    if (head->bytes > most)
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "a %s frame announces %u bytes; at most %llu are allowed",
                        kind->name, head->bytes, (unsigned long long)most);
    return HR_OK;
}

/* ---- frames ---- */

#define HASHED 24 /* bytes of the header that its hash covers */

static uint64_t hash(const void *head, const void *payload, size_t bytes)
{
    uint64_t sum = hr__hash64(head, HASHED, 0);

    return payload != NULL ? hr__hash64(payload, bytes, sum) : sum;
}

uint64_t hr__frame_sum(uint64_t sum, const void *body, size_t bytes)
{
    const char *at = body;

    while (bytes > 0) {
        size_t run = bytes < HR_FRAME_RUN ? bytes : HR_FRAME_RUN;

        sum = hr__hash64(at, run, sum);
        at += run;
        bytes -= run;
    }
    return sum;
}

uint64_t hr__frame_sum_parts(uint64_t sum, const struct iovec *parts, size_t count)
{
    return count == 1 ? hr__hash64(parts[0].iov_base, parts[0].iov_len, sum)
                      : hr__hash64_parts(parts, count, sum);
}

/* The hash covers the payload if that is no body: NULL. */
static uint64_t
write_head(const struct hr_frame *f, const void *payload, size_t bytes, char *to)
{
    const uint8_t magic[4] = {'H', 'R', HR_FRAME_VERSION, (uint8_t)f->type};
    uint32_t length = (uint32_t)bytes;
    uint64_t sum;

    memcpy(to, magic, 4);
    memcpy(to + 4, &length, 4);
    memcpy(to + 8, &f->position, 8);
    memcpy(to + 16, &f->count, 4);
    memcpy(to + 20, &f->generation, 4);
    sum = hash(to, payload, bytes);
    memcpy(to + HASHED, &sum, 8);
    return sum;
}

size_t hr__frame_write(const struct hr_frame *frame, void *to)
{
    struct stream s = {.to = (char *)to + HR_FRAME_HEAD, .left = HR_FRAME_CONTROL_MAX};
    size_t bytes;

    assert(!hr__frame_has_body(frame->type) && message_is_sound(frame));
    visit(&s, (struct hr_frame *)frame); /* writing changes nothing */
    assert(!s.failed);
    bytes = HR_FRAME_CONTROL_MAX - s.left;
    (void)write_head(frame, (char *)to + HR_FRAME_HEAD, bytes, to);
    return HR_FRAME_HEAD + bytes;
}

uint64_t hr__frame_write_body(const struct hr_frame *frame, size_t bytes, void *to)
{
    assert(hr__frame_has_body(frame->type) && message_is_sound(frame) &&
           bytes <= kinds[frame->type].bytes);
    return write_head(frame, NULL, bytes, to);
}

static enum hr_err damaged(enum hr_frame_type type, struct hr_error *reterr)
{
    return hr__fail(reterr, HR_ERR_FORMAT, "a %s frame was damaged on its way",
                    kinds[type].name);
}

enum hr_err hr__frame_read_head(const void *from, struct hr_frame_head *ret_head,
                                struct hr_error *reterr)
{
    struct hr_frame_head head;
    const char *at = from;
    uint8_t magic[4];

    memcpy(magic, at, 4);
    if (magic[0] != 'H' || magic[1] != 'R')
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the peer does not send Headrace frames; check the port");
    if (magic[2] != HR_FRAME_VERSION)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "the peer sends frames of version %u; this side knows version "
                        "%u: install the same release on both",
                        magic[2], HR_FRAME_VERSION);
    if (magic[3] >= KINDS || kinds[magic[3]].name == NULL)
        return hr__fail(reterr, HR_ERR_FORMAT, "a frame has the unknown type %u",
                        magic[3]);
    head.type = (enum hr_frame_type)magic[3];
    memcpy(&head.bytes, at + 4, 4);
    memcpy(&head.position, at + 8, 8);
    memcpy(&head.count, at + 16, 4);
    memcpy(&head.generation, at + 20, 4);
    memcpy(&head.hash, at + HASHED, 8);
    HR_TRY(head_is_sound(&head, reterr));
    if (hr__frame_has_body(head.type) && hash(from, NULL, 0) != head.hash)
        return damaged(head.type, reterr);
    *ret_head = head;
    return HR_OK;
}

static struct hr_frame frame_of(const struct hr_frame_head *head)
{
    return (struct hr_frame){.type = head->type,
                             .position = head->position,
                             .count = head->count,
                             .generation = head->generation};
}

enum hr_err
hr__frame_read_body(const struct hr_frame_head *head, uint64_t sum, const void *tail,
                    struct hr_frame *ret_frame, struct hr_error *reterr)
{
    struct hr_frame frame = frame_of(head);

    assert(hr__frame_has_body(head->type));
    if (memcmp(&sum, tail, HR_FRAME_TAIL) != 0)
        return damaged(head->type, reterr);
    if (!message_is_sound(&frame))
        return hr__fail(reterr, HR_ERR_FORMAT, "a %s frame has a wrong header",
                        kinds[head->type].name);
    *ret_frame = frame;
    return HR_OK;
}

enum hr_err
hr__frame_read(const void *from, const struct hr_frame_head *head, const void *payload,
               struct hr_frame *ret_frame, struct hr_error *reterr)
{
    struct stream s = {.from = payload, .left = head->bytes};
    struct hr_frame frame = frame_of(head);

    if (hr__frame_has_body(head->type))
        return hr__frame_read_body(head, hr__frame_sum(head->hash, payload, head->bytes),
                                   (const char *)payload + head->bytes, ret_frame,
                                   reterr);
    if (hash(from, payload, head->bytes) != head->hash)
        return damaged(head->type, reterr);
    visit(&s, &frame);
    if (s.failed || s.left > 0)
        return hr__fail(reterr, HR_ERR_FORMAT, "a %s frame has a wrong length",
                        kinds[head->type].name);
    if (!message_is_sound(&frame))
        return hr__fail(reterr, HR_ERR_FORMAT, "a %s frame has a wrong payload",
                        kinds[head->type].name);
    *ret_frame = frame;
    return HR_OK;
}
