/*
 * svc/cursor.h - what a client has: the authority on what was delivered.
 *
 * `next` is the lowest position of the share (svc/share.h) that was not taken. Frames
 * are accepted by position: a piece of a frame is kept if next <= p < next + window and
 * p is neither held nor taken. Held pieces are bounded in bytes, but the one at `next` is
 * always accepted. An ordered cursor gives out pieces at `next` only; an unordered one
 * any, and its checkpoint lists what was taken beyond `next`.
 *
 * Checkpoints are JSON: {"headrace_cursor":1,"job","membership","world","rank","base",
 * "end","split","position","ordered","done":[[from,count],...]}, in positions of the
 * epoch.
 */
#ifndef HR_SVC_CURSOR_H
#define HR_SVC_CURSOR_H

#include "core/str.h"
#include "engine/done.h"
#include "svc/share.h"

#define HR_CURSOR_VERSION 1
#define HR_CURSOR_WINDOW_MAX (1u << 20)
#define HR_CURSOR_PIECES_MAX (1u << 16)

struct hr_cursor_options {
    uint64_t job;
    uint32_t membership;
    struct hr_share share;
    uint64_t window; /* positions, at most HR_CURSOR_WINDOW_MAX */
    size_t budget;   /* bytes of payload that may be held without a grant */
    size_t pieces;   /* that may be held, at most HR_CURSOR_PIECES_MAX */
    bool ordered;
};

/* Positions of a frame that are held. */
struct hr_piece {
    uint64_t from; /* local */
    uint32_t count;
    uint32_t skip; /* positions of the frame before them */
    size_t bytes;  /* of the whole payload */
    void *payload; /* the caller's */
};

struct hr_cursor {
    struct hr_cursor_options options;
    uint64_t next;  /* local */
    uint64_t size;  /* of the share */
    uint64_t *have; /* ring of bits: positions of the window that are held or taken */
    uint64_t room;  /* bits of the ring, a power of two */
    struct hr_piece *pieces; /* ascending */
    size_t piece_count;
    size_t bytes;        /* held */
    struct hr_done done; /* taken before: beyond the position of a checkpoint */
};

/* At the beginning of the share. HR_ERR_ARGUMENT, HR_ERR_MEMORY. Finish it also after
 * failure. */
HR_CHECK enum hr_err
hr__cursor_init(struct hr_cursor *cursor, const struct hr_cursor_options *options,
                struct hr_error *reterr);
/* The caller must have taken or dropped all pieces that hold something. */
void hr__cursor_finish(struct hr_cursor *cursor);

/* Removes a held piece and returns its payload; NULL if none is held. */
void *hr__cursor_drop(struct hr_cursor *cursor);

/* Offers the payload of a frame. If *ret_kept it belongs to the cursor until it is taken
 * whole. One that was begun within a grant is kept beyond the budget, too.
 * HR_ERR_FORMAT for positions that the client does not own. */
HR_CHECK enum hr_err
hr__cursor_accept(struct hr_cursor *cursor, uint64_t position, uint32_t count,
                  size_t bytes, bool granted, void *payload, bool *ret_kept,
                  struct hr_error *reterr);

/* Taken positions: those of a payload from `skip` on. */
struct hr_taken {
    uint64_t position; /* of the epoch */
    uint32_t count, skip;
    void *payload;
    bool last; /* the payload belongs to the caller again */
};

/* Takes up to `most` (> 0) positions; false if none can be taken now. */
bool hr__cursor_take(struct hr_cursor *cursor, uint32_t most, struct hr_taken *ret_taken);

/* The position of the epoch below which all owned ones were taken. */
static inline uint64_t hr__cursor_position(const struct hr_cursor *cursor)
{
    return hr__share_position(&cursor->options.share, cursor->next);
}

static inline bool hr__cursor_is_at_end(const struct hr_cursor *cursor)
{
    return cursor->next == cursor->size;
}

/* ---- cursor_state.c ---- */

/* Appends the checkpoint. HR_ERR_MEMORY, HR_ERR_LIMIT. */
HR_CHECK enum hr_err hr__cursor_save(const struct hr_cursor *cursor, struct hr_str *out,
                                     struct hr_error *reterr);

/* Reads what a client was: fills in job, membership, share and order of *options, which
 * hr__cursor_init() takes, and what hr__cursor_resume() takes. HR_ERR_FORMAT. */
struct hr_cursor_saved {
    uint64_t position;
    struct hr_done done;
};
HR_CHECK enum hr_err
hr__cursor_parse(const char *text, struct hr_cursor_options *options,
                 struct hr_cursor_saved *ret_saved, struct hr_error *reterr);
/* Moves a fresh cursor to the checkpoint and takes over what it lists. */
void hr__cursor_resume(struct hr_cursor *cursor, struct hr_cursor_saved *saved);

/*
 * Merges the checkpoints of all ranks of a job into one of rank 0 of 1 with the next
 * membership; set world and rank of the options after parsing it to divide the rest of
 * the epoch anew. HR_ERR_STATE if they do not belong together.
 */
HR_CHECK enum hr_err hr__cursor_merge(const char *const *texts, size_t count,
                                      struct hr_str *out, struct hr_error *reterr);

#endif
