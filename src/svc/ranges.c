/*
 * svc/ranges.c - the table of leased ranges.
 */
#include "svc/ranges.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"

enum hr_err
hr__ranges_init(struct hr_ranges *ranges, size_t room, struct hr_error *reterr)
{
    ranges->count = 0;
    ranges->room = room;
    ranges->items = hr__malloc(room * sizeof *ranges->items);
    if (ranges->items == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    return HR_OK;
}

void hr__ranges_finish(struct hr_ranges *ranges)
{
    hr__free(ranges->items);
    memset(ranges, 0, sizeof *ranges);
}

void hr__ranges_add(struct hr_ranges *ranges, const struct hr_lease *lease)
{
    size_t at = ranges->count;

    assert(ranges->count < ranges->room && lease->from < lease->until);
    while (at > 0 && ranges->items[at - 1].from > lease->from)
        at--;
    memmove(&ranges->items[at + 1], &ranges->items[at],
            (ranges->count - at) * sizeof *ranges->items);
    ranges->items[at] = *lease;
    ranges->count++;
}

void hr__ranges_remove(struct hr_ranges *ranges, size_t at)
{
    ranges->count--;
    memmove(&ranges->items[at], &ranges->items[at + 1],
            (ranges->count - at) * sizeof *ranges->items);
}

bool hr__ranges_gap(const struct hr_ranges *ranges, uint64_t from, uint64_t limit,
                    struct hr_frame_range *ret_gap)
{
    size_t i;

    for (i = 0; i < ranges->count && ranges->items[i].from <= from; i++)
        if (ranges->items[i].until > from)
            from = ranges->items[i].until;
    if (from >= limit)
        return false;
    ret_gap->from = from;
    ret_gap->until = i < ranges->count && ranges->items[i].from < limit
                         ? ranges->items[i].from
                         : limit;
    return true;
}
