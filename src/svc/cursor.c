/*
 * svc/cursor.c - accepting frames by position and giving them out once.
 */
#include "svc/cursor.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "svc/mutant.h"

static bool options_are_sound(const struct hr_cursor_options *o)
{
    return o->share.split > 0 && o->share.world > 0 && o->share.rank < o->share.world &&
           o->share.base <= o->share.end && o->share.end <= HR_STATE_NUMBER_MAX &&
           o->window > 0 && o->window <= HR_CURSOR_WINDOW_MAX && o->pieces > 0 &&
           o->pieces <= HR_CURSOR_PIECES_MAX;
}

enum hr_err
hr__cursor_init(struct hr_cursor *cursor, const struct hr_cursor_options *options,
                struct hr_error *reterr)
{
    memset(cursor, 0, sizeof *cursor);
    if (!options_are_sound(options))
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "a cursor needs a window of 1 to %u positions, 1 to %u pieces "
                        "and a rank below its world",
                        HR_CURSOR_WINDOW_MAX, HR_CURSOR_PIECES_MAX);
    cursor->options = *options;
    cursor->size = hr__share_size(&options->share);
    cursor->room = 64;
    while (cursor->room < options->window)
        cursor->room *= 2;
    cursor->have = hr__calloc(cursor->room / 64, sizeof *cursor->have);
    cursor->pieces = hr__calloc(options->pieces + 1, sizeof *cursor->pieces);
    if (cursor->have == NULL || cursor->pieces == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    return HR_OK;
}

void hr__cursor_finish(struct hr_cursor *cursor)
{
    assert(cursor->piece_count == 0);
    hr__done_finish(&cursor->done);
    hr__free(cursor->have);
    hr__free(cursor->pieces);
    memset(cursor, 0, sizeof *cursor);
}

/* ---- the window ---- */

static bool has(const struct hr_cursor *cursor, uint64_t local)
{
    uint64_t bit = local & (cursor->room - 1);

    return cursor->have[bit / 64] >> bit % 64 & 1;
}

static void set(struct hr_cursor *cursor, uint64_t local, bool on)
{
    uint64_t bit = local & (cursor->room - 1);

    if (on)
        cursor->have[bit / 64] |= (uint64_t)1 << bit % 64;
    else
        cursor->have[bit / 64] &= ~((uint64_t)1 << bit % 64);
}

/* A position enters the window: was it taken before the checkpoint? */
static void enter(struct hr_cursor *cursor, uint64_t local)
{
    uint64_t children;

    if (!hr__done_is_empty(&cursor->done) && local < cursor->size &&
        hr__done_has(&cursor->done, hr__share_position(&cursor->options.share, local),
                     &children))
        set(cursor, local, true);
}

/* Moves `next` past what was taken. */
static void advance(struct hr_cursor *cursor)
{
    while (cursor->next < cursor->size && has(cursor, cursor->next) &&
           (cursor->piece_count == 0 || cursor->pieces[0].from != cursor->next)) {
        set(cursor, cursor->next, false);
        enter(cursor, cursor->next + cursor->options.window);
        cursor->next++;
    }
}

void hr__cursor_resume(struct hr_cursor *cursor, struct hr_cursor_saved *saved)
{
    uint64_t end;

    assert(cursor->next == 0 && cursor->piece_count == 0);
    cursor->done = saved->done;
    memset(&saved->done, 0, sizeof saved->done);
    cursor->next = hr__share_below(&cursor->options.share, saved->position);
    end = cursor->next + cursor->options.window;
    for (uint64_t at = cursor->next; at < end; at++)
        enter(cursor, at);
    advance(cursor);
}

/* ---- accepting ---- */

static void insert(struct hr_cursor *cursor, const struct hr_piece *piece)
{
    size_t at = cursor->piece_count;

    while (at > 0 && cursor->pieces[at - 1].from > piece->from)
        at--; /* frames come nearly in order */
    memmove(&cursor->pieces[at + 1], &cursor->pieces[at],
            (cursor->piece_count - at) * sizeof *cursor->pieces);
    cursor->pieces[at] = *piece;
    cursor->piece_count++;
    cursor->bytes += piece->bytes;
    for (uint64_t i = 0; i < piece->count; i++)
        if (piece->from + i >= cursor->next) /* always, but for mutants */
            set(cursor, piece->from + i, true);
}

/* The first neighbours among [*from, *until) that are missing; false if none are. */
static bool find_missing(const struct hr_cursor *cursor, uint64_t *from, uint64_t *until)
{
    uint64_t limit = cursor->next + cursor->options.window;
    uint64_t low = *from > cursor->next ? *from : cursor->next;
    uint64_t end = *until < limit ? *until : limit;

    while (low < end && has(cursor, low))
        low++;
    *from = low;
    while (low < end && !has(cursor, low))
        low++;
    *until = low;
    return *from < *until;
}

static bool
there_is_room(const struct hr_cursor *cursor, uint64_t from, size_t bytes, bool granted)
{
    return (from == cursor->next && cursor->piece_count <= cursor->options.pieces) ||
           (cursor->piece_count < cursor->options.pieces &&
            (granted || (bytes <= cursor->options.budget &&
                         cursor->bytes <= cursor->options.budget - bytes)));
}

#ifdef HR_SVC_MUTANTS
/* The wrong filters. */
static bool
mutant_missing(const struct hr_cursor *cursor, uint64_t *from, uint64_t *until)
{
    uint64_t limit = cursor->next + cursor->options.window, count = *until - *from;
    uint64_t last = *from - *from % cursor->options.share.split;

    last += cursor->options.share.split - 1;
    last = last < cursor->size ? last : cursor->size - 1;
    if (HR_MUTANT(FILTER_BY_SPLIT) &&
        (last < cursor->next || (last < limit && has(cursor, last))))
        return false;
    if (HR_MUTANT(CLIENT_COUNTS)) {
        *from = cursor->next;
        while (*from < limit && has(cursor, *from))
            ++*from;
        *until = *from + count < limit ? *from + count : limit;
        *until = *until < cursor->size ? *until : cursor->size;
        return *from < *until;
    }
    *until = *until < limit ? *until : limit;
    return *from < *until;
}
#endif

enum hr_err hr__cursor_accept(struct hr_cursor *cursor, uint64_t position, uint32_t count,
                              size_t bytes, bool granted, void *payload, bool *ret_kept,
                              struct hr_error *reterr)
{
    uint64_t local, from, until;
    bool missing;

    *ret_kept = false;
    if (count == 0 || !hr__share_owns(&cursor->options.share, position, count, &local))
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "a worker sent %u positions from %llu on, which rank %u of %u "
                        "does not own",
                        count, (unsigned long long)position, cursor->options.share.rank,
                        cursor->options.share.world);
    from = local;
    until = local + count;
#ifdef HR_SVC_MUTANTS
    if (HR_MUTANT(NO_FILTER) || HR_MUTANT(FILTER_BY_SPLIT) || HR_MUTANT(CLIENT_COUNTS))
        missing = mutant_missing(cursor, &from, &until);
    else
#endif
        missing = find_missing(cursor, &from, &until);
    if (!missing || !there_is_room(cursor, from, bytes, granted))
        return HR_OK;
    insert(cursor, &(struct hr_piece){
                       .from = from,
                       .count = (uint32_t)(until - from),
                       .skip = HR_MUTANT(CLIENT_COUNTS) ? 0 : (uint32_t)(from - local),
                       .bytes = bytes,
                       .payload = payload});
    *ret_kept = true;
    return HR_OK;
}

/* ---- giving out ---- */

static void remove_first(struct hr_cursor *cursor)
{
    cursor->bytes -= cursor->pieces[0].bytes;
    cursor->piece_count--;
    memmove(&cursor->pieces[0], &cursor->pieces[1],
            cursor->piece_count * sizeof *cursor->pieces);
}

void *hr__cursor_drop(struct hr_cursor *cursor)
{
    void *payload;

    if (cursor->piece_count == 0)
        return NULL;
    payload = cursor->pieces[0].payload;
    for (uint64_t i = 0; i < cursor->pieces[0].count; i++)
        set(cursor, cursor->pieces[0].from + i, false);
    remove_first(cursor);
    return payload;
}

bool hr__cursor_take(struct hr_cursor *cursor, uint32_t most, struct hr_taken *ret_taken)
{
    struct hr_piece *piece = &cursor->pieces[0];
    uint32_t count;

    assert(most > 0);
    if (cursor->piece_count == 0 ||
        (cursor->options.ordered && piece->from > cursor->next))
        return false;
    count = piece->count < most ? piece->count : most;
    ret_taken->position = hr__share_position(&cursor->options.share, piece->from);
    ret_taken->count = count;
    ret_taken->skip = piece->skip;
    ret_taken->payload = piece->payload;
    ret_taken->last = count == piece->count;
    piece->from += count;
    piece->skip += count;
    piece->count -= count;
    if (ret_taken->last)
        remove_first(cursor);
    advance(cursor);
    return true;
}
