/*
 * fuzz/fuzz_frame.c - any bytes as a stream of frames, as a connection delivers them. The
 * hash is put right first, so that mutations reach the checks after it; an accepted
 * control message is written again and must give the same bytes, but for what readers
 * replace in the text of an ERROR.
 */
#include "core/alloc.h"
#include "core/hash.h"
#include "wire/frame.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_written(const struct hr_frame *frame, const uint8_t *data, size_t size)
{
    char again[HR_FRAME_HEAD + HR_FRAME_CONTROL_MAX];
    const size_t text =
        HR_FRAME_HEAD + 4; /* of an ERROR: what is not plain is replaced */
    bool changes = frame->type == HR_FRAME_ERROR &&
                   !hr__frame_is_plain((const char *)data + text, size - text);

    if (hr__frame_write(frame, again) != size ||
        (!changes && memcmp(again, data, size) != 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hr_error error = {0};
    struct hr_frame_head head;
    struct hr_frame frame;

    while (bytes >= HR_FRAME_HEAD) {
        uint8_t start[HR_FRAME_HEAD], *copy;
        uint64_t sum = hr__hash64(data, 24, 0);
        size_t size;

        memcpy(start, data, sizeof start);
        if (hr__frame_has_body((enum hr_frame_type)start[3]))
            memcpy(start + 24, &sum, 8);
        if (hr__frame_read_head(start, &head, &error) != HR_OK)
            break;
        size = HR_FRAME_HEAD + head.bytes;
        if (hr__frame_has_body(head.type))
            size += HR_FRAME_TAIL;
        if (size > bytes)
            break;
        copy = hr__malloc(size); /* its end is known to the sanitizer */
        if (copy == NULL)
            break;
        memcpy(copy, data, size);
        memcpy(copy, start, sizeof start);
        if (hr__frame_has_body(head.type)) {
            sum = hr__frame_sum(head.hash, copy + HR_FRAME_HEAD, head.bytes);
            memcpy(copy + HR_FRAME_HEAD + head.bytes, &sum, HR_FRAME_TAIL);
        } else {
            sum = hr__hash64(copy + HR_FRAME_HEAD, head.bytes, hr__hash64(copy, 24, 0));
            memcpy(copy + 24, &sum, 8);
            head.hash = sum;
        }
        if (hr__frame_read(copy, &head, copy + HR_FRAME_HEAD, &frame, &error) == HR_OK &&
            !hr__frame_has_body(frame.type))
            check_written(&frame, copy, size);
        hr__free(copy);
        data += size;
        bytes -= size;
    }
    if (error.code != HR_OK && error.message[0] == '\0')
        abort();
    return 0;
}
