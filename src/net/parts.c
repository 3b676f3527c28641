/*
 * net/parts.c - see parts.h.
 */
#include "net/parts.h"

#include <assert.h>
#include <string.h>

const char *hr__net_gather(const struct hr_net_part *parts, size_t count, size_t at,
                           size_t bytes, char *room)
{
    size_t have = 0;

    for (size_t i = 0; i < count && have < bytes; i++) {
        const struct hr_net_part *part = &parts[i];
        size_t more;

        if (at >= part->bytes) {
            at -= part->bytes;
            continue;
        }
        more = part->bytes - at;
        if (have == 0 && more >= bytes)
            return part->data + at;
        more = more < bytes - have ? more : bytes - have;
        memcpy(room + have, part->data + at, more);
        have += more;
        at = 0;
    }
    assert(have == bytes);
    return room;
}
