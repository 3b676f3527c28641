/*
 * tokens.pack - packs lists into rows of one length.
 *
 * Up to `bins` rows are open at a time. A list goes into the open row that the fit
 * chooses; if it fits into none and no more may be opened, the fullest is closed, filled
 * up and given. Lists are copied once, into the row's memory. What open rows hold is
 * the sequencer's state, so `bins` is limited by the length of its text.
 *
 * A row has the identity of the record that its first item comes from, and is a child of
 * it, because a long list begins several rows.
 */
#include "op/op.h"
#include "ops/fill.h"
#include "ops/saved.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"

#define BINS_MAX 4096
#define BINS_USUAL 64

struct pack {
    const char *field, *segment_ids, *positions;
    int64_t length, bins, value;
    int fit, overflow;
};

enum { FIT_BEST, FIT_FIRST };
static const char *const fits[] = {"best", "first", NULL};
enum { OVERFLOW_SPLIT, OVERFLOW_REFUSE };
static const char *const overflows[] = {"split", "refuse", NULL};

static const struct hr_param pack_params[] = {
    HR_P_INT(struct pack, length, .required = true, HR_RANGE(1, 1 << 17), .unit = "items",
             .help = "items in a row"),
    HR_P_ENUM(struct pack, fit, .fallback = "best", .names = fits,
              .help =
                  "the open row that a list goes into: the one that it fills most, or "
                  "the one opened first"),
    HR_P_INT(struct pack, bins, .fallback = "0", HR_RANGE(0, BINS_MAX), .unit = "rows",
             .help = "rows open at a time; 0: 64, or as many as a saved state may hold"),
    HR_P_ENUM(struct pack, overflow, .fallback = "split", .names = overflows,
              .help = "what becomes of lists that are longer than a row"),
    HR_P_INT(struct pack, value, .fallback = "0", HR_RANGE(INT32_MIN, INT32_MAX),
             .help = "fills what is left of a row"),
    HR_P_FIELD(struct pack, field, .fallback = "tokens", .access = HR_ACCESS_UPDATE,
               .help = "the field with the lists; all others are dropped"),
    HR_P_FIELD(
        struct pack, segment_ids, .fallback = "segment_ids", .access = HR_ACCESS_WRITE,
        .help = "the field that becomes the number of each item's list in the row, "
                "from 1; 0 for filling"),
    HR_P_FIELD(struct pack, positions, .fallback = "positions", .access = HR_ACCESS_WRITE,
               .help = "the field that becomes each item's position in its list, from 0"),
};

/* What a row consists of, in the order of bound fields. */
enum { ITEMS, SEGMENTS, POSITIONS, PARTS };

/* ---- schema ---- */

/* Open rows whose state is never longer than it may be. */
static int64_t bins_room(const struct pack *p, enum hr_dtype dtype)
{
    size_t length = (size_t)p->length;
    size_t text = HR_SAVED_ID_MAX + 3 * HR_SAVED_NUMBER_MAX +
                  HR_SAVED_BYTES_MAX((length + 7) / 8) +
                  HR_SAVED_BYTES_MAX(length * hr_dtype_size(dtype));

    return (int64_t)(HR_SEQUENCE_STATE_MAX / text);
}

static int64_t bins_of(const struct pack *p, enum hr_dtype dtype)
{
    int64_t room = bins_room(p, dtype);

    return p->bins > 0 ? p->bins : room < BINS_USUAL ? room : BINS_USUAL;
}

static enum hr_err check_bins(struct hr_infer *infer, enum hr_dtype dtype)
{
    const struct pack *p = infer->params;
    int64_t room = bins_room(p, dtype);

    if (room == 0)
        return hr__infer_fail(infer, "length", HR_ERR_LIMIT,
                              "a saved state cannot hold one row of %lld items of %s",
                              (long long)p->length, hr_dtype_name(dtype));
    if (p->bins > room)
        return hr__infer_fail(infer, "bins", HR_ERR_LIMIT,
                              "a saved state holds at most %lld rows of %lld items",
                              (long long)room, (long long)p->length);
    return HR_OK;
}

static enum hr_err pack_infer(struct hr_infer *infer)
{
    const struct pack *p = infer->params;
    struct hr_field *field = infer->fields[ITEMS];
    struct hr_schema *out = infer->output;
    bool kept[HR_SCHEMA_FIELDS_MAX] = {false};

    if (field->kind != HR_FIELD_TENSOR || field->ndim != 1 ||
        !hr__dtype_is_integer(field->dtype))
        return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                              "field \"%s\" must be a list of integers", field->name);
    if (!hr__fill_fits(field->dtype, (double)p->value))
        return hr__infer_fail(infer, "value", HR_ERR_RANGE,
                              "field \"%s\" of dtype %s cannot hold the value %lld",
                              field->name, hr_dtype_name(field->dtype),
                              (long long)p->value);
    HR_TRY(check_bins(infer, field->dtype));
    for (int i = 0; i < PARTS; i++) {
        kept[infer->fields[i] - out->fields] = true;
        if (i != ITEMS)
            infer->fields[i]->dtype = HR_I32;
        infer->fields[i]->ndim = 1;
        hr__dim_set(&infer->fields[i]->dims[0], p->length);
    }
    for (size_t i = out->count; i-- > 0;)
        if (!kept[i])
            hr__schema_remove(out, i);
    out->records = -1;
    return HR_OK;
}

/* ---- rows ---- */

struct bin {
    struct hr_record_id first; /* of its first item */
    uint64_t row;              /* of the rows that begin in that record */
    int64_t used;
    int32_t segments;
    struct hr_buffer *parts[PARTS];
};

struct packer {
    const struct pack *params;
    struct hr_pool *pool;
    uint64_t seed;
    uint32_t epoch;
    enum hr_dtype dtype;
    size_t in, out[PARTS]; /* fields of the input, of the output */
    int64_t room, count;   /* rows that may be open, that are, in the order of opening */
    int64_t *left;         /* items that each has room for */
    struct bin *bins;
    uint8_t *scratch; /* of a row's items, for the state */
    bool is_ready, flushing;
    struct bin ready; /* the next output */
    /* The list that is not placed yet. */
    struct hr_value list;
    int64_t placed, length;
    struct hr_record_id id;
    uint64_t rows; /* that began in it */
};

static size_t part_item(const struct packer *s, int part)
{
    return part == ITEMS ? hr_dtype_size(s->dtype) : sizeof(int32_t);
}

static void drop_bin(struct bin *bin)
{
    for (int i = 0; i < PARTS; i++) {
        hr_buffer_unref(bin->parts[i]);
        bin->parts[i] = NULL;
    }
}

static enum hr_err open_bin(struct packer *s, const struct hr_record_id *first,
                            uint64_t row, struct hr_error *error)
{
    struct bin *bin = &s->bins[s->count];

    *bin = (struct bin){.first = *first, .row = row};
    for (int i = 0; i < PARTS; i++) {
        enum hr_err code = hr_pool_get(
            s->pool, (size_t)s->params->length * part_item(s, i), &bin->parts[i]);

        if (code != HR_OK) {
            drop_bin(bin);
            return hr__fail(error, code, "no memory for a row");
        }
    }
    s->left[s->count++] = s->params->length;
    return HR_OK;
}

static char *part_at(const struct packer *s, const struct bin *bin, int part)
{
    return (char *)hr_buffer_data(bin->parts[part]) +
           (size_t)bin->used * part_item(s, part);
}

/* Makes `count` items that are in the row already one list. */
static void add_segment(struct packer *s, int64_t at, int64_t count)
{
    struct bin *bin = &s->bins[at];
    int32_t *segments = (int32_t *)part_at(s, bin, SEGMENTS);
    int32_t *positions = (int32_t *)part_at(s, bin, POSITIONS);

    bin->segments++;
    for (int32_t i = 0; i < (int32_t)count; i++) {
        segments[i] = bin->segments;
        positions[i] = i;
    }
    bin->used += count;
    s->left[at] -= count;
}

/* Fills up the row and makes it the next output. */
static void close_bin(struct packer *s, int64_t at)
{
    const struct bin *bin = &s->bins[at];

    assert(!s->is_ready);
    hr__fill(part_at(s, bin, ITEMS), s->dtype, s->left[at], (double)s->params->value);
    hr__fill(part_at(s, bin, SEGMENTS), HR_I32, s->left[at], 0);
    hr__fill(part_at(s, bin, POSITIONS), HR_I32, s->left[at], 0);
    s->ready = *bin;
    s->is_ready = true;
    s->count--;
    memmove(&s->bins[at], &s->bins[at + 1], (size_t)(s->count - at) * sizeof *s->bins);
    memmove(&s->left[at], &s->left[at + 1], (size_t)(s->count - at) * sizeof *s->left);
}

/* The open row that a list of `count` items goes into, or -1. */
static int64_t choose(const struct packer *s, int64_t count)
{
    int64_t best = -1;

    for (int64_t i = 0; i < s->count; i++) {
        if (s->left[i] < count || (best >= 0 && s->left[i] >= s->left[best]))
            continue;
        best = i;
        if (s->params->fit == FIT_FIRST)
            break;
    }
    return best;
}

static int64_t fullest(const struct packer *s)
{
    int64_t most = 0;

    for (int64_t i = 1; i < s->count; i++)
        if (s->left[i] < s->left[most])
            most = i;
    return most;
}

/* Places the next part of the list, unless a row has to be given before. */
static enum hr_err place(struct packer *s, struct hr_error *error)
{
    int64_t length = s->params->length, count = s->length - s->placed, at;
    size_t item = hr_dtype_size(s->dtype);

    count = count < length ? count : length;
    at = choose(s, count);
    if (at < 0 && s->count == s->room && count < length) {
        close_bin(s, fullest(s));
        return HR_OK;
    }
    if (at < 0) {
        HR_TRY(open_bin(s, &s->id, s->rows, error));
        s->rows++;
        at = s->count - 1;
    }
    memcpy(part_at(s, &s->bins[at], ITEMS),
           (const char *)s->list.data + (size_t)s->placed * item, (size_t)count * item);
    add_segment(s, at, count);
    s->placed += count;
    if (s->left[at] == 0)
        close_bin(s, at);
    return HR_OK;
}

/* Goes on until there is an output or nothing more to do. */
static enum hr_err advance(struct packer *s, struct hr_error *error)
{
    while (!s->is_ready && s->placed < s->length)
        HR_TRY(place(s, error));
    if (s->placed == s->length) {
        hr__value_clear(&s->list);
        s->placed = s->length = 0;
    }
    if (!s->is_ready && s->flushing && s->count > 0)
        close_bin(s, 0);
    return HR_OK;
}

/* ---- hooks ---- */

static void pack_end(void *sequencer)
{
    struct packer *s = sequencer;

    for (int64_t i = 0; i < s->count; i++)
        drop_bin(&s->bins[i]);
    drop_bin(&s->ready);
    hr__value_clear(&s->list);
    hr__free(s->bins);
    hr__free(s->left);
    hr__free(s->scratch);
    hr__free(s);
}

static size_t field_at(const struct hr_schema *schema, const char *name)
{
    return (size_t)(hr__schema_get(schema, name) - schema->fields);
}

/* The room for one more row is for one that a long list fills at once. */
static enum hr_err create(const struct hr_sequence_begin *begin, struct packer **ret)
{
    const struct pack *p = begin->params;
    struct packer *s = hr__calloc(1, sizeof *s);

    if (s == NULL)
        return HR_ERR_MEMORY;
    s->params = p;
    s->in = field_at(begin->input, p->field);
    s->out[ITEMS] = field_at(begin->output, p->field);
    s->out[SEGMENTS] = field_at(begin->output, p->segment_ids);
    s->out[POSITIONS] = field_at(begin->output, p->positions);
    s->dtype = begin->input->fields[s->in].dtype;
    s->room = bins_of(p, s->dtype);
    s->bins = hr__calloc((size_t)s->room + 1, sizeof *s->bins);
    s->left = hr__calloc((size_t)s->room + 1, sizeof *s->left);
    s->scratch = hr__malloc((size_t)p->length * hr_dtype_size(s->dtype));
    if (s->bins == NULL || s->left == NULL || s->scratch == NULL) {
        pack_end(s);
        return HR_ERR_MEMORY;
    }
    *ret = s;
    return HR_OK;
}

static enum hr_err pack_begin(const struct hr_sequence_begin *begin, void **sequencer)
{
    struct packer *s = *sequencer;

    if (s == NULL && create(begin, &s) != HR_OK)
        return hr__fail(begin->error, HR_ERR_MEMORY, "out of memory");
    assert(s->count == 0 && !s->is_ready && s->length == 0);
    s->pool = begin->pool;
    s->seed = begin->seed;
    s->epoch = begin->epoch;
    s->flushing = false;
    *sequencer = s;
    return HR_OK;
}

/* Takes the value over, without gaps between its items. */
static enum hr_err
take_list(struct packer *s, struct hr_value *list, struct hr_error *error)
{
    struct hr_buffer *buffer;
    enum hr_err code;

    if (!hr__value_contiguous(list)) {
        code = hr_pool_get(s->pool, list->bytes, &buffer);
        if (code != HR_OK)
            return hr__fail(error, code, "no memory for a list of %lld items",
                            (long long)list->dims[0]);
        hr__value_copy(list, hr_buffer_data(buffer));
        hr__value_set_tensor(list, s->dtype, 1, list->dims, hr_buffer_data(buffer),
                             buffer);
    }
    s->list = *list;
    memset(list, 0, sizeof *list);
    return HR_OK;
}

static enum hr_err pack_add(void *sequencer, struct hr_sequence_record *record,
                            enum hr_sequence_verdict *ret_verdict, struct hr_error *error)
{
    struct packer *s = sequencer;
    struct hr_value *list = &record->values[s->in];
    int64_t count = list->dims[0];

    assert(!s->is_ready && s->length == 0);
    if (count > s->params->length && s->params->overflow == OVERFLOW_REFUSE)
        return hr__fail(
            error, HR_ERR_SHAPE,
            "a list of %lld items is longer than a row: give overflow: split, "
            "or put tokens.truncate before",
            (long long)count);
    HR_TRY(take_list(s, list, error));
    s->length = count;
    s->id = record->id;
    s->rows = 0;
    HR_TRY(advance(s, error));
    *ret_verdict = s->is_ready ? HR_SEQUENCE_READY : HR_SEQUENCE_HELD;
    return HR_OK;
}

static enum hr_err pack_next(void *sequencer, struct hr_sequence_record *record,
                             bool *ret_any, bool *ret_more, struct hr_error *error)
{
    struct packer *s = sequencer;

    *ret_any = s->is_ready;
    *ret_more = false;
    if (!s->is_ready)
        return HR_OK;
    for (int i = 0; i < PARTS; i++) {
        hr__value_set_tensor(&record->values[s->out[i]], i == ITEMS ? s->dtype : HR_I32,
                             1, &s->params->length, hr_buffer_data(s->ready.parts[i]),
                             s->ready.parts[i]);
        s->ready.parts[i] = NULL;
    }
    record->id = s->ready.first;
    hr__record_child(&record->id, s->ready.row);
    s->is_ready = false;
    HR_TRY(advance(s, error));
    *ret_more = s->is_ready;
    return HR_OK;
}

static enum hr_err
pack_flush(void *sequencer, enum hr_sequence_flush why, struct hr_error *error)
{
    struct packer *s = sequencer;

    (void)why;
    s->flushing = true;
    return advance(s, error);
}

static uint64_t pack_held_bytes(const void *sequencer)
{
    const struct packer *s = sequencer;
    uint64_t row = 0;

    for (int i = 0; i < PARTS; i++)
        row += (uint64_t)s->params->length * part_item(s, i);
    return (uint64_t)(s->count + s->is_ready) * row + s->list.bytes;
}

/* ---- state: of each open row its identity, its lists and its items ---- */

/* Writes the k-th bytes of all items together, from the lowest; returns how many bytes an
 * item needs. Ids are small, so the state is shorter. */
static size_t gather_bytes(const uint8_t *items, size_t item, size_t count, uint8_t *to)
{
    size_t needed = 0;

    for (size_t k = 0; k < item; k++) {
        uint8_t any = 0;

        for (size_t i = 0; i < count; i++) {
            to[k * count + i] = items[i * item + k];
            any |= items[i * item + k];
        }
        if (any != 0)
            needed = k + 1;
    }
    return needed;
}

static void scatter_bytes(const uint8_t *from, size_t width, size_t item, size_t count,
                          uint8_t *items)
{
    memset(items, 0, count * item);
    for (size_t k = 0; k < width; k++)
        for (size_t i = 0; i < count; i++)
            items[i * item + k] = from[k * count + i];
}

static bool begins_list(const int32_t *segments, size_t at)
{
    return at == 0 || segments[at] != segments[at - 1];
}

static void save_bin(const struct packer *s, const struct bin *bin, struct hr_str *out)
{
    const int32_t *segments = hr_buffer_data(bin->parts[SEGMENTS]);
    size_t count = (size_t)bin->used, starts = (count + 7) / 8, width;

    hr__saved_add_id(out, &bin->first);
    hr__saved_add(out, bin->row);
    hr__saved_add(out, count);
    memset(s->scratch, 0, starts);
    for (size_t i = 0; i < count; i++)
        if (begins_list(segments, i))
            s->scratch[i / 8] |= (uint8_t)(1 << i % 8);
    hr__saved_add_bytes(out, s->scratch, starts);
    width = gather_bytes(hr_buffer_data(bin->parts[ITEMS]), hr_dtype_size(s->dtype),
                         count, s->scratch);
    hr__saved_add(out, width);
    hr__saved_add_bytes(out, s->scratch, width * count);
}

static bool pack_save(const void *sequencer, struct hr_str *out)
{
    const struct packer *s = sequencer;

    if (s->is_ready || s->length > 0)
        return false;
    for (int64_t i = 0; i < s->count; i++)
        save_bin(s, &s->bins[i], out);
    return true;
}

static enum hr_err damaged(struct hr_error *error)
{
    return hr__fail(error, HR_ERR_FORMAT, "the state of open rows is damaged");
}

/* Divides the row's first `count` items into lists; false if the bits are not starts of
 * lists. */
static bool restore_lists(struct packer *s, int64_t at, size_t count)
{
    size_t from = 0;

    if ((s->scratch[0] & 1) == 0 ||
        (count % 8 > 0 && s->scratch[count / 8] >> count % 8 != 0))
        return false;
    for (size_t i = 1; i <= count; i++)
        if (i == count || (s->scratch[i / 8] >> i % 8 & 1) != 0) {
            add_segment(s, at, (int64_t)(i - from));
            from = i;
        }
    return true;
}

static enum hr_err restore_bin(struct packer *s, const char **at, struct hr_error *error)
{
    size_t item = hr_dtype_size(s->dtype);
    struct hr_record_id first;
    uint64_t row, count, width;

    if (s->count == s->room || !hr__saved_take_id(at, s->seed, s->epoch, &first) ||
        !hr__saved_take(at, UINT32_MAX, &row) ||
        !hr__saved_take(at, (uint64_t)s->params->length - 1, &count) || count == 0 ||
        !hr__saved_take_bytes(at, s->scratch, (count + 7) / 8))
        return damaged(error);
    HR_TRY(open_bin(s, &first, row, error));
    if (!restore_lists(s, s->count - 1, count) || !hr__saved_take(at, item, &width) ||
        !hr__saved_take_bytes(at, s->scratch, width * count))
        return damaged(error);
    scatter_bytes(s->scratch, width, item, count,
                  hr_buffer_data(s->bins[s->count - 1].parts[ITEMS]));
    return HR_OK;
}

static enum hr_err pack_restore(void *sequencer, const char *text, struct hr_error *error)
{
    const char *at = text;

    do
        HR_TRY(restore_bin(sequencer, &at, error));
    while (*at != '\0');
    return HR_OK;
}

const struct hr_op hr_op_tokens_pack = {
    .name = "tokens.pack",
    .summary = "pack lists into rows of one length",
    .doc =
        "Lists of integers, `[n]`, to rows `[length]`, with `segment_ids` and "
        "`positions`, int32 `[length]`: a list is numbered from 1 in its row, an item "
        "from 0 in its list. A list goes into one of at most `bins` open rows; if it "
        "fits into none, the fullest row is output, filled up with `value`. A row that "
        "is full is output at once, all others at the end of the epoch. With "
        "`overflow: split` a list longer than a row is cut into full rows and a rest, "
        "each a list of its own. Empty lists leave no trace. More `bins` leave less "
        "filling and make longer states.",
    .version = 1,
    .kind = HR_OP_SEQUENCE,
    .traits = HR_TRAIT_PURE | HR_TRAIT_GROWS,
    HR_PARAMS(pack_params, struct pack),
    .infer = pack_infer,
    .sequence = {.begin = pack_begin,
                 .add = pack_add,
                 .next = pack_next,
                 .flush = pack_flush,
                 .save = pack_save,
                 .restore = pack_restore,
                 .end = pack_end,
                 .held_bytes = pack_held_bytes,
                 .numbers = true},
};
