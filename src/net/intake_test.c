/*
 * net/intake_test.c - frames that arrive in pieces.
 */
#include "net/intake.h"

#include "core/alloc.h"
#include "core/rng.h"
#include "tests/support/check.h"

#define FRAMES 40
#define PAYLOAD_MAX 5000

static struct hr_pool *pool;
static char stream[FRAMES * (HR_FRAME_HEAD + PAYLOAD_MAX + HR_FRAME_TAIL)];
static size_t stream_bytes;
static struct hr_rng rng;

/* A frame with a body; returns its size. */
static size_t
write_frame(const struct hr_frame *frame, const char *body, size_t bytes, char *to)
{
    uint64_t sum = hr__frame_write_body(frame, bytes, to);

    sum = hr__frame_sum(sum, body, bytes);
    memmove(to + HR_FRAME_HEAD, body, bytes);
    memcpy(to + HR_FRAME_HEAD + bytes, &sum, HR_FRAME_TAIL);
    return HR_FRAME_HEAD + bytes + HR_FRAME_TAIL;
}

/* A random mix of PROGRESS, ERROR and DATA; frame i bears position i. */
static void make_stream(void)
{
    static char payload[PAYLOAD_MAX];

    stream_bytes = 0;
    for (size_t i = 0; i < FRAMES; i++) {
        struct hr_frame frame = {.type = HR_FRAME_PROGRESS, .position = i};

        if (hr__rng_u64(&rng) % 2 == 0) {
            size_t bytes = hr__rng_u64(&rng) % PAYLOAD_MAX;

            for (size_t k = 0; k < bytes; k++)
                payload[k] = (char)(i + k);
            frame.type = HR_FRAME_DATA;
            frame.count = 1;
            stream_bytes += write_frame(&frame, payload, bytes, stream + stream_bytes);
        } else {
            stream_bytes += hr__frame_write(&frame, stream + stream_bytes);
        }
    }
}

static void check_frame(const struct hr_frame *frame, struct hr_buffer *data, size_t i)
{
    CHECK_EQ_INT(frame->position, i);
    CHECK_EQ_INT(data != NULL, frame->type == HR_FRAME_DATA);
    for (size_t k = 0; data != NULL && k < hr_buffer_bytes(data); k++)
        CHECK_EQ_INT(((const char *)hr_buffer_data(data))[k], (char)(i + k));
    hr_buffer_unref(data);
}

static void begin(struct hr_intake *in)
{
    if (pool == NULL) {
        pool = hr_pool_create(0);
        hr__rng_init(&rng, check_seed(), 0, 0);
    }
    hr__intake_init(in, pool, PAYLOAD_MAX);
}

TEST(frames_that_are_torn_anywhere_arrive_whole)
{
    for (int round = 0; round < 50; round++) {
        struct hr_intake in;
        size_t at = 0, frames = 0;

        begin(&in);
        make_stream();
        while (at < stream_bytes) {
            size_t piece = 1 + hr__rng_u64(&rng) % (round % 2 == 0 ? 50 : 5000), used;
            struct hr_buffer *data = NULL;
            struct hr_frame frame;
            bool complete;
            char *to;
            size_t room = hr__intake_room(&in, &to);

            piece = piece < stream_bytes - at ? piece : stream_bytes - at;
            if (room > 0 && hr__rng_u64(&rng) % 2 == 0) { /* read in place */
                room = room < piece ? room : piece;
                memcpy(to, stream + at, room);
                hr__intake_wrote(&in, room);
                at += room;
                continue;
            }
            CHECK_OK(hr__intake_add(&in, stream + at, piece, &used, &complete, &frame,
                                    &data, NULL));
            CHECK(used > 0 && used <= piece);
            at += used;
            if (complete)
                check_frame(&frame, data, frames++);
        }
        CHECK_EQ_INT(frames, FRAMES);
        hr__intake_finish(&in);
    }
}

static enum hr_err
add(struct hr_intake *in, const char *bytes, size_t count, struct hr_error *reterr)
{
    struct hr_buffer *data = NULL;
    struct hr_frame frame;
    bool complete;
    size_t used;

    return hr__intake_add(in, bytes, count, &used, &complete, &frame, &data, reterr);
}

TEST(a_payload_that_is_too_large_is_refused_before_it_is_received)
{
    struct hr_frame frame = {.type = HR_FRAME_DATA, .count = 1};
    char head[HR_FRAME_HEAD];
    struct hr_error error = {0};
    struct hr_intake in;

    begin(&in);
    hr__frame_write_body(&frame, PAYLOAD_MAX + 1, head);
    CHECK_ERR(HR_ERR_LIMIT, add(&in, head, sizeof head, &error));
    CHECK_HAS(error.message, "announces 5001 bytes; this side takes at most 5000");
    CHECK(in.data == NULL);
}

TEST(what_is_malformed_is_refused_wherever_it_is_torn)
{
    struct hr_frame frame = {.type = HR_FRAME_DATA, .count = 1};
    char bytes[HR_FRAME_HEAD + 100 + HR_FRAME_TAIL] = {0};
    struct hr_error error = {0};
    struct hr_intake in;

    begin(&in);
    write_frame(&frame, bytes + HR_FRAME_HEAD, 100, bytes);
    bytes[HR_FRAME_HEAD + 50] ^= 1;
    for (size_t cut = 0; cut < sizeof bytes; cut++) {
        hr__intake_init(&in, pool, PAYLOAD_MAX);
        CHECK_OK(add(&in, bytes, cut, &error));
        CHECK_ERR(HR_ERR_FORMAT, add(&in, bytes + cut, sizeof bytes - cut, &error));
        CHECK_HAS(error.message, "damaged");
        hr__intake_finish(&in);
    }
    hr__intake_init(&in, pool, PAYLOAD_MAX);
    CHECK_ERR(HR_ERR_FORMAT,
              add(&in, "GET / HTTP/1.1\r\nHost: x\r\nAccept: y\r\n", 36, &error));
    CHECK_HAS(error.message, "check the port");
}

TEST(a_sealed_body_is_in_no_hash)
{
    struct hr_frame frame = {.type = HR_FRAME_DATA, .count = 1};
    char bytes[HR_FRAME_HEAD + 100 + HR_FRAME_TAIL] = {0};
    uint64_t sum = hr__frame_write_body(&frame, 100, bytes);
    struct hr_error error = {0};
    struct hr_intake in;

    begin(&in);
    memset(bytes + HR_FRAME_HEAD, 7, 100);
    memcpy(bytes + HR_FRAME_HEAD + 100, &sum, sizeof sum);
    for (size_t cut = 0; cut < sizeof bytes; cut++) {
        struct hr_buffer *data = NULL;
        bool complete;
        size_t used;

        hr__intake_init(&in, pool, PAYLOAD_MAX);
        in.sealed = true;
        CHECK_OK(add(&in, bytes, cut, &error));
        CHECK_OK(hr__intake_add(&in, bytes + cut, sizeof bytes - cut, &used, &complete,
                                &frame, &data, &error));
        CHECK(complete && ((const char *)hr_buffer_data(data))[99] == 7);
        hr_buffer_unref(data);
        hr__intake_finish(&in);
    }
    hr__intake_init(&in, pool, PAYLOAD_MAX);
    in.sealed = true;
    bytes[sizeof bytes - 1] ^= 1;
    CHECK_ERR(HR_ERR_FORMAT, add(&in, bytes, sizeof bytes, &error));
    CHECK_HAS(error.message, "damaged");
    hr__intake_finish(&in);
}

TEST(memory_that_is_refused_is_an_error)
{
    struct hr_frame frame = {.type = HR_FRAME_DATA, .count = 1};
    char bytes[HR_FRAME_HEAD + 100 + HR_FRAME_TAIL] = {0};
    struct hr_pool *small = hr_pool_create(10);
    struct hr_error error = {0};
    struct hr_intake in;

    write_frame(&frame, bytes + HR_FRAME_HEAD, 100, bytes);
    hr__intake_init(&in, small, PAYLOAD_MAX);
    CHECK_ERR(HR_ERR_MEMORY, add(&in, bytes, sizeof bytes, &error));
    CHECK_HAS(error.message, "100 bytes");
    hr__intake_finish(&in);
    hr_pool_unref(small);
}
