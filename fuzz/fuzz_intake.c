/*
 * fuzz/fuzz_intake.c - any bytes in pieces of any sizes: the frames are those of the
 * whole stream. The first byte seeds the sizes; hashes are put right as far as the
 * headers allow, so that mutations reach what follows.
 */
#include "net/intake.h"

#include "core/alloc.h"
#include "core/hash.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define PAYLOAD_MAX 4096

static void repair(char *at, size_t bytes)
{
    struct hr_error error = {0};
    struct hr_frame_head head;

    while (bytes >= HR_FRAME_HEAD) {
        uint64_t sum = hr__hash64(at, 24, 0);
        bool body = hr__frame_has_body((enum hr_frame_type)(uint8_t)at[3]);
        size_t size;

        if (body)
            memcpy(at + 24, &sum, 8);
        if (hr__frame_read_head(at, &head, &error) != HR_OK)
            return;
        size = HR_FRAME_HEAD + head.bytes + (body ? HR_FRAME_TAIL : 0);
        if (size > bytes)
            return;
        sum = body ? hr__frame_sum(sum, at + HR_FRAME_HEAD, head.bytes)
                   : hr__hash64(at + HR_FRAME_HEAD, head.bytes, sum);
        memcpy(body ? at + HR_FRAME_HEAD + head.bytes : at + 24, &sum, 8);
        at += size;
        bytes -= size;
    }
}

/* Runs the stream in pieces of 1 to `most` bytes; returns a hash of what came out. */
static uint64_t
run(struct hr_pool *pool, const char *at, size_t bytes, size_t most, uint32_t seed)
{
    struct hr_intake in;
    uint64_t sum = 0;
    enum hr_err code = HR_OK;

    hr__intake_init(&in, pool, PAYLOAD_MAX);
    while (bytes > 0 && code == HR_OK) {
        struct hr_error error = {0};
        struct hr_buffer *payload = NULL;
        struct hr_frame frame;
        bool complete = false;
        size_t piece, used = 0, room;
        char *to;

        seed = seed * 1664525 + 1013904223;
        piece = 1 + (seed >> 8) % most;
        piece = piece < bytes ? piece : bytes;
        room = hr__intake_room(&in, &to);
        if (room > 0 && seed >> 31) {
            used = room < piece ? room : piece;
            memcpy(to, at, used);
            hr__intake_wrote(&in, used);
        } else {
            code = hr__intake_add(&in, at, piece, &used, &complete, &frame, &payload,
                                  &error);
        }
        if (code == HR_OK && used == 0)
            abort();
        if (complete)
            sum = hr__hash64(&frame.type, sizeof frame.type, sum + frame.position);
        if (payload != NULL)
            sum = hr__hash64(hr_buffer_data(payload), hr_buffer_bytes(payload), sum);
        if (code != HR_OK)
            sum = hr__hash64(error.message, strlen(error.message), sum);
        hr_buffer_unref(payload);
        at += used;
        bytes -= used;
    }
    hr__intake_finish(&in);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hr_pool *pool;
    char *copy;

    if (bytes < 1)
        return 0;
    pool = hr_pool_create(0);
    copy = hr__malloc(bytes);
    if (pool == NULL || copy == NULL)
        abort();
    memcpy(copy, data + 1, bytes - 1);
    repair(copy, bytes - 1);
    if (run(pool, copy, bytes - 1, bytes, data[0]) !=
        run(pool, copy, bytes - 1, 1 + data[0] % 64, data[0]))
        abort();
    hr__free(copy);
    hr_pool_unref(pool);
    return 0;
}
