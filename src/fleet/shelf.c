/*
 * fleet/shelf.c - see shelf.h.
 */
#include "fleet/shelf.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bisect.h"
#include "engine/batch.h"

#define ENTRY_BYTES 512u /* that an entry takes beside its values, about */
#define NEVER UINT64_MAX

static uint64_t bit_of(uint32_t follower)
{
    return follower < HR_SHELF_FOLLOWERS ? (uint64_t)1 << follower : 0;
}

static bool is_shared(const struct hr_shelf *shelf)
{
    return (shelf->followers & (shelf->followers - 1)) != 0;
}

/* How many batches the first of the followers that need this one takes before; NEVER:
 * none does. */
static uint64_t distance(const struct hr_shelf *shelf, const struct hr_shelf_entry *entry)
{
    uint64_t left = shelf->followers & ~entry->got, least = NEVER;

    for (; left != 0; left &= left - 1) {
        uint64_t cursor = shelf->cursors[__builtin_ctzll(left)];

        if (cursor <= entry->number && entry->number - cursor < least)
            least = entry->number - cursor;
    }
    return least;
}

/* ---- entries ---- */

static struct hr_shelf_entry *entries_of(const struct hr_shelf *shelf)
{
    return shelf->count > 0 ? shelf->entries + shelf->first : NULL;
}

/* Where the batch is, or would be. */
static size_t place_of(const struct hr_shelf *shelf, uint64_t number)
{
    const struct hr_shelf_entry *entries = entries_of(shelf);
    size_t at;

    if (shelf->count == 0)
        return 0;
    at = HR_BISECT(entries, shelf->count, number, number);
    return entries[at].number < number ? at + 1 : at;
}

/* NULL if there is none. */
static struct hr_shelf_entry *find(const struct hr_shelf *shelf, uint64_t number)
{
    struct hr_shelf_entry *entries = entries_of(shelf);
    size_t at = place_of(shelf, number);

    return at < shelf->count && entries[at].number == number ? &entries[at] : NULL;
}

/* Takes the entry at this place out; its batch is the caller's. */
static struct hr_batch *extract(struct hr_shelf *shelf, size_t at)
{
    struct hr_shelf_entry *entries = entries_of(shelf);
    struct hr_batch *batch = entries[at].batch;

    shelf->bytes -= entries[at].bytes;
    shelf->count--;
    if (at == 0)
        shelf->first++;
    else
        memmove(&entries[at], &entries[at + 1], (shelf->count - at) * sizeof *entries);
    if (shelf->count == 0)
        shelf->first = 0;
    return batch;
}

static bool insert(struct hr_shelf *shelf, const struct hr_shelf_entry *entry)
{
    size_t at = place_of(shelf, entry->number);
    struct hr_shelf_entry *entries;

    if (shelf->first > shelf->count) {
        memmove(shelf->entries, shelf->entries + shelf->first,
                shelf->count * sizeof *shelf->entries);
        shelf->first = 0;
    }
    if (!hr__array_room(&shelf->entries, shelf->first + shelf->count, &shelf->room,
                        shelf->first + shelf->count + 1, sizeof *shelf->entries))
        return false;
    entries = shelf->entries + shelf->first;
    memmove(&entries[at + 1], &entries[at], (shelf->count - at) * sizeof *entries);
    entries[at] = *entry;
    shelf->count++;
    shelf->bytes += entry->bytes;
    return true;
}

/* Drops what is needed in `least` batches or later; NEVER: what is not needed. */
static void drop_later(struct hr_shelf *shelf, uint64_t least)
{
    struct hr_shelf_entry *entries = entries_of(shelf);
    size_t left = 0;

    for (size_t i = 0; i < shelf->count; i++) {
        if (distance(shelf, &entries[i]) < least) {
            entries[left++] = entries[i];
            continue;
        }
        shelf->bytes -= entries[i].bytes;
        hr_batch_unref(entries[i].batch);
    }
    shelf->count = left;
}

static uint64_t farthest(const struct hr_shelf *shelf)
{
    const struct hr_shelf_entry *entries = entries_of(shelf);
    uint64_t most = 0;

    for (size_t i = 0; i < shelf->count; i++) {
        uint64_t far = distance(shelf, &entries[i]);

        most = far > most ? far : most;
    }
    return most;
}

/* An eighth more than needed, so that not each batch looks at all. */
void hr__shelf_trim(struct hr_shelf *shelf, const struct hr_shelf_budget *budget)
{
    size_t most = budget->most / (budget->jobs > 0 ? budget->jobs : 1);

    if (shelf->bytes <= most)
        return;
    drop_later(shelf, NEVER);
    while (shelf->count > 0 && shelf->bytes > most - most / 8) {
        uint64_t far = farthest(shelf);

        drop_later(shelf, far - far / 8);
    }
}

/* ---- followers ---- */

uint32_t
hr__shelf_join(struct hr_shelf *shelf, struct hr_shelf_budget *budget, uint64_t cursor)
{
    bool shared = is_shared(shelf);
    uint32_t follower;

    if (~shelf->followers == 0)
        return HR_SHELF_NOBODY;
    follower = (uint32_t)__builtin_ctzll(~shelf->followers);
    shelf->followers |= bit_of(follower);
    shelf->cursors[follower] = cursor;
    budget->jobs += is_shared(shelf) && !shared;
    return follower;
}

void hr__shelf_move(struct hr_shelf *shelf, uint32_t follower, uint64_t cursor)
{
    if (follower == HR_SHELF_NOBODY || cursor <= shelf->cursors[follower])
        return;
    shelf->cursors[follower] = cursor;
    while (shelf->count > 0 && distance(shelf, &shelf->entries[shelf->first]) == NEVER)
        hr_batch_unref(extract(shelf, 0));
}

void hr__shelf_leave(struct hr_shelf *shelf, struct hr_shelf_budget *budget,
                     uint32_t follower)
{
    bool shared = is_shared(shelf);

    if (follower == HR_SHELF_NOBODY)
        return;
    shelf->followers &= ~bit_of(follower);
    for (size_t i = 0; i < shelf->count; i++)
        shelf->entries[shelf->first + i].got &= ~bit_of(follower);
    drop_later(shelf, NEVER);
    budget->jobs -= shared && !is_shared(shelf);
}

/* ---- batches ---- */

bool hr__shelf_has(const struct hr_shelf *shelf, uint64_t number)
{
    return find(shelf, number) != NULL;
}

struct hr_batch *
hr__shelf_take(struct hr_shelf *shelf, uint64_t number, uint32_t follower)
{
    struct hr_shelf_entry *entry = find(shelf, number);

    if (entry == NULL)
        return NULL;
    entry->got |= bit_of(follower);
    if (distance(shelf, entry) != NEVER)
        return hr_batch_ref(entry->batch);
    return extract(shelf, (size_t)(entry - shelf->entries) - shelf->first);
}

bool hr__shelf_put(struct hr_shelf *shelf, const struct hr_shelf_budget *budget,
                   uint64_t number, uint32_t follower, struct hr_batch *batch)
{
    struct hr_shelf_entry entry = {.number = number,
                                   .got = bit_of(follower),
                                   .batch = batch,
                                   .bytes = batch->bytes + ENTRY_BYTES};
    struct hr_shelf_entry *same = find(shelf, number);

    if (same != NULL)
        same->got |= entry.got;
    if (same != NULL || budget->most == 0 || distance(shelf, &entry) == NEVER ||
        !insert(shelf, &entry))
        return false;
    hr_batch_ref(batch);
    hr__shelf_trim(shelf, budget);
    return hr__shelf_has(shelf, number);
}

void hr__shelf_finish(struct hr_shelf *shelf, struct hr_shelf_budget *budget)
{
    budget->jobs -= is_shared(shelf);
    for (size_t i = 0; i < shelf->count; i++)
        hr_batch_unref(shelf->entries[shelf->first + i].batch);
    hr__free(shelf->entries);
    *shelf = (struct hr_shelf){0};
}
