/*
 * flow.window - consecutive records become one record with a leading dimension.
 *
 * Records wait in an array of rows, in order; a window is a run of rows, of which
 * hr__stack_join copies the values. The rows that no later window has are then released.
 * The array has room for two windows, so that rows are moved to its front once in `size`
 * records.
 *
 * What is held is not part of a state. Between windows that do not overlap nothing is
 * held; otherwise resuming replays the epoch up to its place.
 */
#include "ops/batch.h"
#include "ops/ordinal.h"
#include "ops/stack.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"

#define SIZE_MAX_RECORDS (1 << 20)

struct window_params {
    int64_t size, stride;
    bool drop_last, ragged;
};

static const struct hr_param window_params[] = {
    HR_P_INT(struct window_params, size, .required = true, HR_RANGE(1, SIZE_MAX_RECORDS),
             .unit = "records", .help = "records in a window"),
    HR_P_INT(struct window_params, stride, .fallback = "0", HR_RANGE(0, SIZE_MAX_RECORDS),
             .unit = "records",
             .help =
                 "records from the beginning of a window to that of the next; 0: size, "
                 "so that each record is in one window. With less, windows overlap; "
                 "with more, the records between them are left out"),
    HR_P_BOOL(struct window_params, drop_last, .fallback = "true",
              .help =
                  "leave out records at the end that fill no window; false: they make "
                  "a shorter one"),
    HR_P_BOOL(struct window_params, ragged, .fallback = "false",
              .help = "tensors whose size differs between records keep their sizes and "
                      "are stored one after the other, with offsets; else they are "
                      "refused"),
};

struct window {
    const struct window_params *params;
    const struct hr_schema *schema; /* of one record */
    struct hr_pool *pool;
    size_t fields;
    int64_t size, stride;
    int64_t first, count, room; /* rows: the first one held, held, allocated */
    int64_t seen;               /* of those held, that an earlier window has */
    int64_t gap;                /* records to leave out before the next window */
    uint64_t rank, world;       /* of every `world` windows, the one that is made */
    uint64_t turn;              /* of these, the number of the next one */
    bool ready;
    struct hr_value *rows; /* room x fields */
    struct hr_record_id *ids;
};

static int64_t stride_of(const struct window_params *p)
{
    return p->stride > 0 ? p->stride : p->size;
}

/* ---- schema ---- */

static enum hr_err window_infer(struct hr_infer *infer)
{
    const struct window_params *p = infer->params;
    struct hr_schema *out = infer->output;

    HR_TRY(hr__infer_batch(infer, p->size, p->drop_last, p->ragged));
    out->batch_rank--;
    out->records = -1;
    for (size_t i = 0; i < out->count; i++) {
        struct hr_field *field = &out->fields[i];

        if (!p->drop_last)
            hr__dim_unknown(&field->dims[0], "window");
        if (field->meaning < HR_MEANING_IMAGE_U8)
            continue;
        field->meaning = HR_MEANING_NONE; /* several images are none */
        field->layout = HR_LAYOUT_NONE;
        field->rate = 0;
    }
    return HR_OK;
}

/* ---- rows ---- */

static void release(struct window *w, int64_t count)
{
    struct hr_value *rows = &w->rows[(size_t)w->first * w->fields];

    assert(count <= w->count);
    for (size_t i = 0; i < (size_t)count * w->fields; i++)
        hr__value_clear(&rows[i]);
    w->first += count;
    w->count -= count;
    if (w->count == 0)
        w->first = 0;
}

static void window_end(void *sequencer)
{
    struct window *w = sequencer;

    if (w->rows != NULL)
        release(w, w->count);
    hr__free(w->rows);
    hr__free(w->ids);
    hr__free(w);
}

static enum hr_err window_begin(const struct hr_sequence_begin *begin, void **sequencer)
{
    struct window *w = *sequencer;

    if (w == NULL)
        w = hr__calloc(1, sizeof *w);
    if (w == NULL)
        return hr__fail(begin->error, HR_ERR_MEMORY, "out of memory");
    w->params = begin->params;
    w->schema = begin->input;
    w->pool = begin->pool;
    w->fields = begin->input->count;
    w->size = w->params->size;
    w->stride = stride_of(w->params);
    w->rank = begin->rank;
    w->world = begin->world;
    assert(w->rank < w->world);
    release(w, w->count);
    w->seen = w->gap = 0;
    w->turn = 0;
    w->ready = false;
    *sequencer = w;
    return HR_OK;
}

static enum hr_err grow(struct window *w, struct hr_error *error)
{
    int64_t most = 2 * w->size, room = w->room == 0 ? 64 : 2 * w->room;
    struct hr_record_id *ids;
    struct hr_value *rows;

    room = room < most ? room : most;
    ids = hr__realloc(w->ids, (size_t)room * sizeof *ids);
    if (ids != NULL)
        w->ids = ids;
    rows = hr__realloc(w->rows, ((size_t)room * w->fields + 1) * sizeof *rows);
    if (rows != NULL)
        w->rows = rows;
    if (ids == NULL || rows == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "no memory for a window of %lld records",
                        (long long)w->size);
    w->room = room;
    return HR_OK;
}

/* Makes room for a row after those held. */
static enum hr_err make_room(struct window *w, struct hr_error *error)
{
    if (w->first + w->count < w->room)
        return HR_OK;
    if (w->room < 2 * w->size)
        return grow(w, error);
    memmove(w->rows, &w->rows[(size_t)w->first * w->fields],
            (size_t)w->count * w->fields * sizeof *w->rows);
    memmove(w->ids, &w->ids[w->first], (size_t)w->count * sizeof *w->ids);
    w->first = 0;
    return HR_OK;
}

/* The window at the front was made, or is another rank's. */
static void pass(struct window *w)
{
    release(w, w->count < w->size || w->count < w->stride ? w->count : w->stride);
    w->seen = w->count;
    w->gap = w->stride > w->size ? w->stride - w->size : 0;
    w->turn = (w->turn + 1) % w->world;
}

static enum hr_err
window_add(void *sequencer, struct hr_sequence_record *record,
           enum hr_sequence_verdict *ret_verdict, struct hr_error *error)
{
    struct window *w = sequencer;
    size_t at;

    assert(!w->ready && w->count < w->size);
    if (w->gap > 0) {
        w->gap--;
        *ret_verdict = HR_SEQUENCE_DROP;
        return HR_OK;
    }
    HR_TRY(make_room(w, error));
    at = (size_t)(w->first + w->count++);
    w->ids[at] = record->id;
    memcpy(&w->rows[at * w->fields], record->values, w->fields * sizeof *w->rows);
    memset(record->values, 0, w->fields * sizeof *w->rows);
    w->ready = w->count == w->size && w->turn == w->rank;
    if (w->count == w->size && !w->ready)
        pass(w);
    *ret_verdict = w->ready ? HR_SEQUENCE_READY : HR_SEQUENCE_HELD;
    return HR_OK;
}

static enum hr_err window_next(void *sequencer, struct hr_sequence_record *record,
                               bool *ret_any, bool *ret_more, struct hr_error *error)
{
    struct window *w = sequencer;
    struct hr_stack_spec spec = {.size = w->size, .ragged = w->params->ragged};
    enum hr_err code;

    *ret_more = false;
    *ret_any = w->ready;
    if (!w->ready)
        return HR_OK;
    record->id = w->ids[w->first];
    record->records = 1;
    code = hr__stack_join(w->pool, w->schema, w->count, NULL,
                          &w->rows[(size_t)w->first * w->fields], w->fields, &spec,
                          record->values, error);
    w->ready = false;
    pass(w);
    return code;
}

static enum hr_err
window_flush(void *sequencer, enum hr_sequence_flush why, struct hr_error *error)
{
    struct window *w = sequencer;

    (void)error;
    if (why == HR_FLUSH_EPOCH && !w->params->drop_last && w->count > w->seen &&
        w->turn == w->rank) {
        w->ready = true;
        return HR_OK;
    }
    release(w, w->count);
    w->ready = false;
    return HR_OK;
}

/* ---- state: turn * stride + gap ---- */

static bool window_save(const void *sequencer, struct hr_str *out)
{
    const struct window *w = sequencer;
    uint64_t number = w->turn * (uint64_t)w->stride + (uint64_t)w->gap;

    assert(w->gap < w->stride);
    if (number > 0)
        hr__str_addf(out, "%llu", (unsigned long long)number);
    return w->count == 0;
}

static enum hr_err
window_restore(void *sequencer, const char *text, struct hr_error *error)
{
    struct window *w = sequencer;
    uint64_t number = 0, stride = (uint64_t)w->stride;

    HR_TRY(hr__saved_number(text, w->world * stride - 1, &number, error));
    if (number % stride > (uint64_t)(w->stride > w->size ? w->stride - w->size : 0))
        return hr__fail(error, HR_ERR_FORMAT,
                        "the state \"%.40s\" is in the middle of a window", text);
    w->gap = (int64_t)(number % stride);
    w->turn = number / stride;
    return HR_OK;
}

static uint64_t window_held_bytes(const void *sequencer)
{
    const struct window *w = sequencer;
    uint64_t bytes = 0;

    for (size_t i = 0; i < (size_t)w->count * w->fields; i++)
        bytes += w->rows[(size_t)w->first * w->fields + i].bytes;
    return bytes;
}

static uint64_t
window_holds(const void *params, const void *state, const struct hr_schema *input)
{
    (void)state, (void)input;
    return (uint64_t)((const struct window_params *)params)->size;
}

static enum hr_sequence_ranks window_ranks(const void *params)
{
    (void)params;
    return HR_RANKS_OUTPUTS;
}

const struct hr_op hr_op_flow_window = {
    .name = "flow.window",
    .summary = "consecutive records become one record with a leading dimension",
    .doc =
        "As `window` of tf.data, with its `shift` called `stride` and each window made "
        "into "
        "tensors: numbers become a list, tensors gain a first dimension, byte strings "
        "become "
        "lists of byte strings. What comes after it sees one record per window, with the "
        "identity of its first record; batches follow as usual. Fields that were images, "
        "masks, boxes, points or samples are plain tensors afterwards.\n\n"
        "Windows are of the records that arrive: after a filter, of those that it keeps, "
        "and "
        "a bad record that is skipped is in none. They end with the epoch. A shuffle "
        "before "
        "it gives windows of records in random order; to shuffle windows, put "
        "order.shuffle "
        "with a `window` after it. Ranks divide the windows, exactly, and each of them "
        "reads all records; order.shard may stand after it, not before it.\n\n"
        "It holds at most `size` records. A run resumes at any window; where windows "
        "overlap, by running the epoch up to there again.",
    .version = 1,
    .kind = HR_OP_SEQUENCE,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(window_params, struct window_params),
    .infer = window_infer,
    .sequence =
        {
                   .begin = window_begin,
                   .add = window_add,
                   .next = window_next,
                   .flush = window_flush,
                   .save = window_save,
                   .restore = window_restore,
                   .end = window_end,
                   .held_bytes = window_held_bytes,
                   .holds = window_holds,
                   .joins = window_holds,
                   .replays = true,
                   .ranks = window_ranks,
                   },
};
