/*
 * batch.bucket - batches of records of similar length.
 *
 * Each bucket gathers its records as batch.pad does. A batch is output once its bucket is
 * full; at the end of an epoch, buckets are output in order of length. So the order of
 * outputs follows from the order of records.
 *
 * With `elements` a record may not fit into its bucket: the bucket is output first, and
 * the record, which waits beside it, begins the next batch.
 *
 * With `coordinated` a bucket gathers a round, a batch for each rank, and deals its
 * records out in turn. Every rank sees all records, so all know when a round is full, and
 * none has to be asked; a rank keeps its own records only.
 */
#include "ops/batch.h"
#include "ops/bucket.h"
#include "ops/saved.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"

#define BOUNDARIES_MAX (HR_LIST_MAX - 1)
#define LENGTH_MAX ((int64_t)1 << 40)

static const char *const pad_names[] = {"longest", "boundary", NULL};
enum { LONG_REFUSE, LONG_DROP };
static const char *const long_names[] = {"refuse", "drop", NULL};

static const struct hr_param bucket_params[] = {
    HR_P_INTS(struct hr_bucket, boundaries, .required = true, .items_min = 1,
              .items_max = BOUNDARIES_MAX, HR_RANGE(1, LENGTH_MAX),
              .help =
                  "lengths in ascending order: a bucket holds those below its "
                  "boundary and not below the one before, the last bucket all others"),
    HR_P_INTS(struct hr_bucket, size, .items_min = 1, .items_max = HR_LIST_MAX,
              HR_RANGE(1, 1 << 24), .unit = "records",
              .help = "records in a batch: one number, or one for each bucket"),
    HR_P_INT(struct hr_bucket, elements, .fallback = "0", HR_RANGE(0, LENGTH_MAX),
             .unit = "elements",
             .help =
                 "instead of `size`: records times the longest one's padded length, at "
                 "most"),
    HR_P_FIELD(struct hr_bucket, by, .access = HR_ACCESS_READ,
               .help = "the field whose length counts: a tensor, text or bytes, or an "
                       "integer that is the length; by default the only field whose size "
                       "varies"),
    HR_P_INT(struct hr_bucket, dim, .fallback = "-1", HR_RANGE(-1, HR_MAX_DIMS - 1),
             .help =
                 "the dimension of that field that is the length, from 0; -1: the one "
                 "that varies"),
    HR_P_IN(HR_PARAM_BOOL, struct hr_bucket, padding, drop_last, .fallback = "false",
            .help = "leave out what buckets hold at the end of an epoch"),
    HR_P_PADDING(struct hr_bucket, padding),
    HR_P_ENUM(struct hr_bucket, pad_to, .fallback = "longest", .names = pad_names,
              .help =
                  "pad to the longest record of the batch, or to the longest that its "
                  "bucket may hold: its boundary - 1"),
    HR_P_ENUM(struct hr_bucket, too_long, .fallback = "refuse", .names = long_names,
              .help = "what becomes of a record that is longer than `elements`, or, with "
                      "`pad_to: boundary`, of one in the last bucket: the run fails, or "
                      "the record is dropped"),
    HR_P_BOOL(struct hr_bucket, coordinated, .fallback = "false",
              .help = "give all ranks batches of the same bucket in each step"),
};

/* ---- schema ---- */

/* Batches are of one size only where all buckets are, and short ones are left out. */
static enum hr_err bucket_infer(struct hr_infer *infer)
{
    const struct hr_bucket *p = infer->params;
    struct hr_bucket_measure unused;
    bool uniform = p->size.count == 1;

    if (infer->state == NULL)
        HR_TRY(hr__bucket_measure(infer, &unused));
    infer->output->records = -1;
    HR_TRY(hr__infer_batch(infer, hr__bucket_size(p, 0), uniform && p->padding.drop_last,
                           false));
    return hr__infer_padding(infer, &p->padding);
}

/* The state of a node is where lengths are: schemas inferred later have sizes of single
 * records, in which nothing varies. */
static enum hr_err bucket_open(const struct hr_open *open, void **ret_state)
{
    struct hr_infer infer = {.params = open->params,
                             .inputs = open->input,
                             .input_count = 1,
                             .error = open->error};
    struct hr_bucket_measure *m = hr__calloc(1, sizeof *m);

    if (m == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    if (hr__bucket_measure(&infer, m) != HR_OK) {
        hr__free(m);
        return open->error->code;
    }
    *ret_state = m;
    return HR_OK;
}

static void bucket_close(void *state)
{
    hr__free(state);
}

/* ---- the sequencer ---- */

/* A round: the next batch of each rank. Record i of it is in that of rank i % world. */
struct held {
    void *stacker;   /* this rank's records */
    uint64_t count;  /* records of the round */
    int64_t longest; /* of these, padded */
    uint64_t *positions;
    uint64_t room;
    struct hr_value *spare; /* with HR_EVEN_REPEAT: the last record before this rank's
                               first, which the epoch may not have */
    struct hr_record_id spare_id;
};

struct buckets {
    const struct hr_bucket *params;
    const struct hr_schema *schema; /* of one record */
    struct hr_bucket_measure measure;
    uint64_t rank, world;
    enum hr_even even;
    bool children; /* positions do not name the epoch's records */
    int ready;     /* the bucket that is to be output, or -1 */
    bool flushing; /* all that follow it, too */
    int count;
    struct held held[HR_LIST_MAX];
    struct hr_value *late; /* a record that did not fit into the bucket that is ready */
    bool has_late;
    struct hr_record_id late_id;
};

static bool repeats(const struct buckets *s)
{
    return s->world > 1 && s->even == HR_EVEN_REPEAT;
}

static void clear_row(const struct buckets *s, struct hr_value *row)
{
    for (size_t f = 0; row != NULL && f < s->schema->count; f++)
        hr__value_clear(&row[f]);
}

/* Moves the record's values to an empty row. */
static void
move_row(const struct buckets *s, struct hr_sequence_record *record, struct hr_value *row)
{
    memcpy(row, record->values, s->schema->count * sizeof *row);
    memset(record->values, 0, s->schema->count * sizeof *row);
}

/* The round is over, or left out. */
static void clear_round(struct buckets *s, int at)
{
    hr__stacker_clear(s->held[at].stacker);
    clear_row(s, s->held[at].spare);
    s->held[at].count = 0;
    s->held[at].longest = 0;
}

static void bucket_end(void *sequencer)
{
    struct buckets *s = sequencer;

    for (int i = 0; i < s->count; i++) {
        if (s->held[i].stacker != NULL)
            hr__stacker_end(s->held[i].stacker);
        clear_row(s, s->held[i].spare);
        hr__free(s->held[i].spare);
        hr__free(s->held[i].positions);
    }
    clear_row(s, s->late);
    hr__free(s->late);
    hr__free(s);
}

static enum hr_err create(const struct hr_sequence_begin *begin, struct buckets **ret)
{
    const struct hr_bucket *p = begin->params;
    struct buckets *s = hr__calloc(1, sizeof *s);

    if (s == NULL)
        return HR_ERR_MEMORY;
    s->params = p;
    s->schema = begin->input;
    s->measure = *(const struct hr_bucket_measure *)begin->state;
    s->rank = p->coordinated ? begin->rank : 0;
    s->world = p->coordinated ? begin->world : 1;
    s->even = begin->even;
    assert(s->rank < s->world);
    s->late = hr__calloc(s->schema->count + 1, sizeof *s->late);
    s->count = hr__bucket_count(p);
    for (int i = 0; i < s->count; i++) {
        struct hr_stack_spec spec = hr__padding_spec(&p->padding, hr__bucket_size(p, i));

        spec.keep_rows = p->elements > 0;
        spec.pad_to = hr__bucket_target(p, i) > 0 ? hr__bucket_target(p, i) : 0;
        if (repeats(s))
            s->held[i].spare = hr__calloc(s->schema->count + 1, sizeof *s->late);
        if (s->late == NULL || (repeats(s) && s->held[i].spare == NULL) ||
            hr__stacker_begin(begin, &spec, &s->held[i].stacker) != HR_OK) {
            bucket_end(s);
            return HR_ERR_MEMORY;
        }
    }
    *ret = s;
    return HR_OK;
}

static enum hr_err bucket_begin(const struct hr_sequence_begin *begin, void **sequencer)
{
    struct buckets *s = *sequencer;

    if (s == NULL && create(begin, &s) != HR_OK)
        return hr__fail(begin->error, HR_ERR_MEMORY, "out of memory");
    s->ready = -1;
    s->flushing = s->has_late = s->children = false;
    for (int i = 0; i < s->count; i++)
        assert(s->held[i].count == 0);
    *sequencer = s;
    return HR_OK;
}

/* The padded length of a record in a bucket. An empty record counts as one element, so
 * that a batch has an end. */
static int64_t padded(const struct buckets *s, int at, int64_t length)
{
    int64_t target = hr__bucket_target(s->params, at);

    length = target >= 0 ? target : hr__pad_up(length, s->params->padding.multiple);
    return length > 1 ? length : 1;
}

/* Whether a batch of that many records fits into `elements`. */
static bool fits(const struct buckets *s, uint64_t records, int64_t longest)
{
    return records <= (uint64_t)(s->params->elements / longest);
}

/* Whether one more record fits into the round, after which its longest is `longest`. */
static bool has_room(const struct buckets *s, int at, int64_t longest)
{
    uint64_t count = s->held[at].count, size;

    if (s->params->elements > 0)
        return fits(s, count / s->world + 1, longest);
    size = (uint64_t)hr__bucket_size(s->params, at);
    return count / s->world < size;
}

/* Notes the record, which its bucket is about to hold. */
static enum hr_err
note(struct buckets *s, int at, const struct hr_record_id *id, struct hr_error *error)
{
    struct held *held = &s->held[at];
    uint64_t count = held->count, *positions;

    if (count == held->room) {
        uint64_t room = held->room == 0 ? 64 : 2 * held->room;

        positions = hr__realloc(held->positions, room * sizeof *positions);
        if (positions == NULL)
            return hr__fail(error, HR_ERR_MEMORY, "out of memory");
        held->positions = positions;
        held->room = room;
    }
    held->positions[count] = id->position;
    s->children = s->children || id->depth > 0;
    return HR_OK;
}

/* Deals the record out to a rank of its bucket's round, which has room; sets `ready` if
 * none is left. */
static enum hr_err put(struct buckets *s, int at, int64_t length,
                       struct hr_sequence_record *record, struct hr_error *error)
{
    struct held *held = &s->held[at];
    enum hr_sequence_verdict unused;

    HR_TRY(note(s, at, &record->id, error));
    if (held->count <= s->rank)
        clear_row(s, held->spare);
    if (held->count % s->world == s->rank) {
        HR_TRY(hr__stacker_add(held->stacker, record, &unused, error));
    } else if (held->count < s->rank && held->spare != NULL) {
        held->spare_id = record->id;
        move_row(s, record, held->spare);
    } else {
        clear_row(s, record->values);
    }
    held->count++;
    if (length > held->longest)
        held->longest = length;
    if (!has_room(s, at, held->longest))
        s->ready = at;
    return HR_OK;
}

/* Refuses values that are larger than what their bucket is padded to. */
static enum hr_err check_sizes(const struct buckets *s, int at,
                               const struct hr_value *values, struct hr_error *error)
{
    int64_t target = hr__bucket_target(s->params, at);

    for (size_t f = 0; target >= 0 && f < s->schema->count; f++) {
        const struct hr_field *field = &s->schema->fields[f];

        for (int d = 0; hr__bucket_varies(field) && d < field->ndim; d++)
            if (field->dims[d].size < 0 && values[f].dims[d] > target)
                return hr__fail(error, HR_ERR_SHAPE,
                                "field \"%s\" has size %lld in dimension %d, more than "
                                "the %lld that its bucket is padded to",
                                field->name, (long long)values[f].dims[d], d,
                                (long long)target);
    }
    return HR_OK;
}

static bool is_too_long(const struct buckets *s, int at, int64_t length)
{
    const struct hr_bucket *p = s->params;

    return (p->pad_to == HR_BUCKET_BOUNDARY && at == p->boundaries.count) ||
           (p->elements > 0 && !fits(s, 1, padded(s, at, length)));
}

static enum hr_err
refuse(const struct buckets *s, int at, int64_t length, struct hr_error *error)
{
    const struct hr_bucket *p = s->params;
    const char *name = s->schema->fields[s->measure.field].name;

    if (p->pad_to == HR_BUCKET_BOUNDARY && at == p->boundaries.count)
        return hr__fail(error, HR_ERR_SHAPE,
                        "the length by field \"%s\" is %lld, and the last boundary %lld: "
                        "with `pad_to: boundary` records are shorter; add a boundary, or "
                        "give `too_long: drop`",
                        name, (long long)length,
                        (long long)p->boundaries.values[p->boundaries.count - 1]);
    return hr__fail(error, HR_ERR_SHAPE,
                    "the length by field \"%s\" is %lld, padded %lld, more than the %lld "
                    "elements of a batch; give more, or `too_long: drop`",
                    name, (long long)length, (long long)padded(s, at, length),
                    (long long)p->elements);
}

static enum hr_err
bucket_add(void *sequencer, struct hr_sequence_record *record,
           enum hr_sequence_verdict *ret_verdict, struct hr_error *error)
{
    struct buckets *s = sequencer;
    int64_t length = hr__bucket_length(&s->measure, record->values), longest;
    int at = hr__bucket_of(s->params, length);

    assert(s->ready < 0 && !s->has_late);
    if (is_too_long(s, at, length)) {
        *ret_verdict = HR_SEQUENCE_DROP;
        return s->params->too_long == LONG_DROP ? HR_OK : refuse(s, at, length, error);
    }
    HR_TRY(check_sizes(s, at, record->values, error));
    length = padded(s, at, length);
    longest = length > s->held[at].longest ? length : s->held[at].longest;
    if (!has_room(s, at, longest)) {
        move_row(s, record, s->late);
        s->late_id = record->id;
        s->has_late = true;
        s->ready = at;
    } else {
        HR_TRY(put(s, at, length, record, error));
    }
    *ret_verdict = s->ready >= 0 ? HR_SEQUENCE_READY : HR_SEQUENCE_HELD;
    return HR_OK;
}

/* Begins the next batch of the bucket `at` with the record that waited for it. */
static enum hr_err put_late(struct buckets *s, int at, struct hr_error *error)
{
    struct hr_sequence_record record = {
        .values = s->late, .id = s->late_id, .records = 1};

    s->has_late = false;
    return put(s, at, padded(s, at, hr__bucket_length(&s->measure, s->late)), &record,
               error);
}

/* The next bucket to be output at the end of an epoch, or -1: those that have a record
 * for each rank in order, then those with the most. So ranks without a record of a bucket
 * have none of those that follow. */
static int next_held(const struct buckets *s)
{
    uint64_t most = 0;
    int found = -1;

    for (int at = 0; at < s->count; at++) {
        const struct held *held = &s->held[at];
        uint64_t ranks = held->count < s->world ? held->count : s->world;

        if (hr__stacker_held_records(held->stacker) > 0 && ranks > most) {
            most = ranks;
            found = at;
        }
    }
    return found;
}

static enum hr_err bucket_next(void *sequencer, struct hr_sequence_record *record,
                               bool *ret_any, bool *ret_more, struct hr_error *error)
{
    struct buckets *s = sequencer;
    int at = s->ready;

    *ret_any = *ret_more = false;
    if (at < 0)
        return HR_OK;
    s->ready = -1;
    HR_TRY(hr__stacker_flush(s->held[at].stacker, HR_FLUSH_LIMIT, error));
    HR_TRY(hr__stacker_next(s->held[at].stacker, record, ret_any, ret_more, error));
    assert(*ret_any);
    clear_round(s, at);
    if (s->has_late)
        HR_TRY(put_late(s, at, error));
    if (s->flushing)
        s->ready = next_held(s);
    *ret_more = s->ready >= 0;
    return HR_OK;
}

/* What becomes of a round that is not full when the epoch ends. If all ranks have records
 * of it, it is a round of smaller batches. */
static enum hr_err
end_round(struct buckets *s, int at, enum hr_sequence_flush why, struct hr_error *error)
{
    struct held *held = &s->held[at];
    struct hr_sequence_record spare = {
        .values = held->spare, .id = held->spare_id, .records = 1};
    enum hr_sequence_verdict unused;
    bool all = held->count >= s->world;

    if (held->count == 0)
        return HR_OK;
    if ((why == HR_FLUSH_EPOCH && s->params->padding.drop_last) ||
        (!all && s->even == HR_EVEN_DROP)) {
        clear_round(s, at);
        return HR_OK;
    }
    if (held->count <= s->rank && held->spare != NULL)
        return hr__stacker_add(held->stacker, &spare, &unused, error);
    return HR_OK;
}

static enum hr_err
bucket_flush(void *sequencer, enum hr_sequence_flush why, struct hr_error *error)
{
    struct buckets *s = sequencer;

    assert(s->ready < 0 && !s->has_late);
    for (int i = 0; i < s->count; i++) {
        HR_TRY(end_round(s, i, why, error));
        if (hr__stacker_held_records(s->held[i].stacker) == 0)
            clear_round(s, i);
    }
    s->flushing = true;
    s->ready = next_held(s);
    return HR_OK;
}

static bool bucket_save(const void *sequencer, struct hr_str *out)
{
    const struct buckets *s = sequencer;
    bool empty = !s->has_late;

    (void)out;
    for (int i = 0; i < s->count; i++)
        empty = empty && s->held[i].count == 0;
    return empty;
}

static bool bucket_held(const void *sequencer, struct hr_str *out)
{
    const struct buckets *s = sequencer;

    if (s->children || s->has_late)
        return false;
    for (int i = 0; i < s->count; i++)
        for (uint64_t k = 0; k < s->held[i].count; k++)
            hr__saved_add(out, s->held[i].positions[k]);
    return true;
}

static uint64_t bytes_of(const struct buckets *s, const struct hr_value *row)
{
    uint64_t bytes = 0;

    for (size_t f = 0; row != NULL && f < s->schema->count; f++)
        bytes += row[f].kind != HR_VALUE_NONE ? row[f].bytes : 0;
    return bytes;
}

static uint64_t bucket_held_bytes(const void *sequencer)
{
    const struct buckets *s = sequencer;
    uint64_t bytes = s->has_late ? bytes_of(s, s->late) : 0;

    for (int i = 0; i < s->count; i++)
        bytes +=
            hr__stacker_held_bytes(s->held[i].stacker) + bytes_of(s, s->held[i].spare);
    return bytes;
}

static enum hr_sequence_ranks bucket_ranks(const void *params)
{
    return ((const struct hr_bucket *)params)->coordinated ? HR_RANKS_ROUNDS
                                                           : HR_RANKS_INPUTS;
}

const struct hr_op hr_op_batch_bucket = {
    .name = "batch.bucket",
    .summary = "stack records of similar length into batches",
    .doc =
        "Records are gathered in buckets by length, so that little padding is left. The "
        "length is a dimension of the field `by`, the bytes of a text, or an integer "
        "field, such as a stored duration. Bucket i holds lengths below `boundaries[i]` "
        "and not below `boundaries[i - 1]`, the last one all others. A batch is output "
        "as soon as its bucket has `size` records or, with `elements`, before a record "
        "would make the number of records times the longest length exceed it (an empty "
        "record counts as one element). At the end of an epoch what is left is output in "
        "order of buckets. The order of batches follows from that of the records alone; "
        "put `order.shuffle` before it.\n\n"
        "Padding, `value`, `multiple` and `lengths` are those of batch.pad. With "
        "`pad_to: boundary` every dimension that varies is padded to its "
        "bucket's "
        "boundary - 1, the longest length that it may hold, rounded up to `multiple`: a "
        "model is compiled for as many shapes as there are boundaries. For lists of up "
        "to 128 and 256 items the boundaries are 129 and 257.\n\n"
        "Ranks that train together wait in each step for the one with the longest batch. "
        "With `coordinated` (coordinated reads of tf.data service) step k of all ranks "
        "is "
        "of the same bucket: a bucket gathers a round of `size` records for each rank "
        "and "
        "deals them out in turn. Each rank makes the records of all for that, which pays "
        "where a step costs more than making them, as with text. What is left at the end "
        "of an epoch makes smaller batches. Last come the buckets without a record for "
        "each rank: some ranks get a batch more, none does, or the last record is "
        "repeated, as the run's `even` says (none, drop, repeat). With the last two, all "
        "ranks make equally many steps, and need not agree on them.\n\n"
        "A state names the records in buckets, which are made again when a run resumes; "
        "after a step that makes several records of one, or looks at their order, all "
        "records from the last place where the buckets were empty are.",
    .version = 1,
    .kind = HR_OP_SEQUENCE,
    .traits = HR_TRAIT_PURE | HR_TRAIT_GROWS,
    HR_PARAMS(bucket_params, struct hr_bucket),
    .check = hr__bucket_check,
    .infer = bucket_infer,
    .open = bucket_open,
    .close = bucket_close,
    .sequence = {.begin = bucket_begin,
                 .add = bucket_add,
                 .next = bucket_next,
                 .flush = bucket_flush,
                 .save = bucket_save,
                 .held = bucket_held,
                 .end = bucket_end,
                 .held_bytes = bucket_held_bytes,
                 .holds = hr__bucket_holds,
                 .joins = hr__bucket_joins,
                 .ranks = bucket_ranks,
                 .replays = true},
};
