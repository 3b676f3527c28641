/*
 * fleet/parcel.c - see parcel.h.
 */
#include "fleet/parcel.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "op/ragged.h"
#include "wire/frame.h"
#include "wire/record.h"

/* The structs are the format: little-endian, without padding. */

static const char magic[8] = {'H', 'R', 'P', 'A', 'R', 'C', 'E', 'L'};

enum kind { BATCH, FAILURE, FAILED, ROWS };

struct head {
    char magic[8];
    uint32_t version, count, entries, zero;
    uint64_t zeros[5];
};

struct entry {
    uint64_t at, bytes;
    uint32_t kind, count; /* positions */
    uint64_t zeros;
};

#define TEXTS 6
struct failure {
    int64_t record, epoch, position, offset;
    int32_t code;
    uint32_t depth, children[HR_CHILD_DEPTH_MAX];
    uint32_t lengths[TEXTS]; /* of the texts that follow */
};

_Static_assert(sizeof(struct head) == 64, "no padding");
_Static_assert(sizeof(struct entry) == 32, "no padding");
_Static_assert(sizeof(struct failure) == 96, "no padding");

static size_t table_bytes(size_t count)
{
    return hr__wire_align(sizeof(struct head) + count * sizeof(struct entry));
}

/* ---- failures ---- */

struct text {
    char *at;
    size_t room;
};

/* The texts of an error, in the order of the format. */
static void texts_of(struct hr_error *e, struct text to[TEXTS])
{
    to[0] = (struct text){e->node, sizeof e->node};
    to[1] = (struct text){e->op, sizeof e->op};
    to[2] = (struct text){e->param, sizeof e->param};
    to[3] = (struct text){e->file, sizeof e->file};
    to[4] = (struct text){e->message, sizeof e->message};
    to[5] = (struct text){e->raised, sizeof e->raised};
}

static size_t failure_bytes(const struct hr_error *error)
{
    size_t bytes = sizeof(struct failure);
    struct text texts[TEXTS];

    texts_of((struct hr_error *)(uintptr_t)error, texts);
    for (size_t i = 0; i < TEXTS; i++)
        bytes += strlen(texts[i].at);
    return bytes;
}

static void write_failure(const struct hr_error *error, char *to)
{
    struct failure f = {.record = error->record,
                        .epoch = error->epoch,
                        .position = error->position,
                        .offset = error->offset,
                        .code = error->code,
                        .depth = error->depth};
    char *text = to + sizeof f;
    struct text texts[TEXTS];

    memcpy(f.children, error->children, sizeof f.children);
    texts_of((struct hr_error *)(uintptr_t)error, texts);
    for (size_t i = 0; i < TEXTS; i++) {
        f.lengths[i] = (uint32_t)strlen(texts[i].at);
        memcpy(text, texts[i].at, f.lengths[i]);
        text += f.lengths[i];
    }
    memcpy(to, &f, sizeof f);
}

static enum hr_err malformed(struct hr_error *reterr, const char *what)
{
    return hr__fail(reterr, HR_ERR_FORMAT, "a worker sent a malformed frame: %s", what);
}

/* Returns the error that the bytes describe. */
static enum hr_err read_failure(const char *from, size_t bytes, struct hr_error *reterr)
{
    struct hr_error error = {0};
    struct failure f;
    struct text texts[TEXTS];
    size_t left = bytes;

    if (bytes < sizeof f)
        return malformed(reterr, "a failure is cut");
    memcpy(&f, from, sizeof f);
    if (f.code >= 0 || f.code == HR_ERR_END || f.depth > HR_CHILD_DEPTH_MAX ||
        strcmp(hr_err_name((enum hr_err)f.code), "HR_ERR_UNKNOWN") == 0)
        return malformed(reterr, "a failure without an error");
    error.record = f.record;
    error.epoch = f.epoch;
    error.position = f.position;
    error.offset = f.offset;
    error.code = (enum hr_err)f.code;
    error.depth = f.depth;
    memcpy(error.children, f.children, sizeof f.children);
    texts_of(&error, texts);
    from += sizeof f;
    left -= sizeof f;
    for (size_t i = 0; i < TEXTS; i++) {
        if (f.lengths[i] >= texts[i].room || f.lengths[i] > left ||
            memchr(from, '\0', f.lengths[i]) != NULL)
            return malformed(reterr, "a text of a failure");
        memcpy(texts[i].at, from, f.lengths[i]);
        from += f.lengths[i];
        left -= f.lengths[i];
    }
    if (reterr != NULL)
        *reterr = error;
    return error.code;
}

/* ---- batches ---- */

/* A batch knows names, values and which texts are text: its schema for the wire. Its
 * `values` may be some of their rows. */
static void schema_of(const struct hr_batch *batch, const struct hr_value *values,
                      struct hr_schema *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->records = -1;
    ret->batch_rank = 1;
    ret->count = batch->field_count;
    for (size_t i = 0; i < batch->field_count; i++) {
        const struct hr_value *value = &values[i];
        struct hr_field *field = &ret->fields[i];
        bool ragged = value->kind == HR_VALUE_RAGGED;

        memcpy(field->name, batch->names[i], strlen(batch->names[i]) + 1);
        field->meaning = batch->texts[i] ? HR_MEANING_TEXT : HR_MEANING_NONE;
        field->kind = !ragged          ? HR_FIELD_TENSOR
                      : value->strings ? HR_FIELD_STRINGS
                                       : HR_FIELD_RAGGED;
        field->dtype =
            ragged && value->strings ? HR_DTYPE_NONE : (enum hr_dtype)value->dtype;
        field->levels = ragged ? value->u.ragged->levels : 0;
        field->ndim = value->ndim;
        for (int d = 0; d < value->ndim; d++)
            field->dims[d].size = value->dims[d];
    }
}

/* Whether two batches have one schema, so that they may share a block. */
static bool is_alike(const struct hr_batch *a, const struct hr_batch *b)
{
    bool alike = a->field_count == b->field_count;

    for (size_t i = 0; alike && i < a->field_count; i++) {
        const struct hr_value *x = &a->values[i], *y = &b->values[i];

        alike =
            x->kind == y->kind && x->dtype == y->dtype && x->strings == y->strings &&
            x->ndim == y->ndim && a->texts[i] == b->texts[i] &&
            memcmp(x->dims, y->dims, x->ndim * sizeof *x->dims) == 0 &&
            (x->kind != HR_VALUE_RAGGED || x->u.ragged->levels == y->u.ragged->levels) &&
            strcmp(a->names[i], b->names[i]) == 0;
    }
    return alike;
}

/* ---- writing ---- */

/* Tensors of at least this size are sent from where they lie. */
#define FAR_MIN ((size_t)64 << 10)

/* Neighbouring items of one entry. */
struct group {
    const struct hr_parcel_item *items;
    size_t count, bytes;
};

struct writing {
    const struct hr_schema *given; /* of records; NULL: batches have their own */
    size_t group_count;
    struct group groups[HR_PARCEL_ITEMS_MAX];
    struct hr_schema schema;
    struct hr_wire_writer writer;
    struct hr_value rows[HR_SCHEMA_FIELDS_MAX];   /* of a group of rows; borrowed */
    struct hr_wire_far far[HR_SCHEMA_FIELDS_MAX]; /* payloads that are not written */
    size_t far_count;
    struct hr_wire_record records[HR_PARCEL_ITEMS_MAX];
};

/* Of its block. */
static size_t records_of(const struct group *group)
{
    return group->items[0].is_row ? 1 : group->count;
}

/* A group of rows is one record: these rows of each field. */
static void take_rows(struct writing *w, const struct group *group)
{
    const struct hr_batch *pack = group->items[0].batch;

    for (size_t f = 0; f < pack->field_count; f++) {
        w->rows[f] =
            hr__value_rows(&pack->values[f], group->items[0].row, (int64_t)group->count);
        w->rows[f].owner = pack->values[f].owner;
    }
    w->records[0] = (struct hr_wire_record){.values = w->rows};
}

/* Room for what is written about a group; its writer is to be finished. */
static enum hr_err
begin_group(struct writing *w, const struct group *group, struct hr_error *reterr)
{
    const struct hr_parcel_item *first = &group->items[0];

    for (size_t i = 0; i < records_of(group); i++)
        w->records[i] = (struct hr_wire_record){.values = group->items[i].batch->values};
    if (first->is_row)
        take_rows(w, group);
    if (w->given != NULL)
        w->schema = *w->given;
    else
        schema_of(first->batch, w->records[0].values, &w->schema);
    HR_TRY(hr__wire_writer_init(&w->writer, &w->schema, true, reterr));
    if (w->group_count == 1 && records_of(group) == 1) {
        w->writer.far = w->far;
        w->writer.far_min = FAR_MIN;
    }
    return HR_OK;
}

static enum hr_err
measure(struct writing *w, struct group *group, struct hr_error *reterr)
{
    enum hr_err code;

    if (group->items[0].batch == NULL) {
        const struct hr_error *error = group->items[0].error;

        group->bytes = error != NULL ? failure_bytes(error) : 0;
        return HR_OK;
    }
    code = begin_group(w, group, reterr);
    if (code == HR_OK)
        group->bytes = hr__wire_block_bytes(&w->writer, w->records, records_of(group));
    hr__wire_writer_finish(&w->writer);
    return code;
}

static enum hr_err write_group(struct writing *w, const struct group *group, char *to,
                               struct hr_error *reterr)
{
    enum hr_err code;

    if (group->items[0].batch == NULL) {
        if (group->items[0].error != NULL)
            write_failure(group->items[0].error, to);
        return HR_OK;
    }
    code = begin_group(w, group, reterr);
    if (code == HR_OK)
        code =
            hr__wire_block_write(&w->writer, w->records, records_of(group), to, reterr);
    w->far_count = w->writer.far_count;
    hr__wire_writer_finish(&w->writer);
    return code;
}

/* Whether an item belongs to the entry of the one before it. */
static bool joins(const struct writing *w, const struct hr_parcel_item *before,
                  const struct hr_parcel_item *item)
{
    if (item->batch == NULL || before->batch == NULL)
        return item->batch == before->batch && item->error == before->error;
    if (item->is_row || before->is_row)
        return item->is_row && before->is_row && item->batch == before->batch &&
               item->row == before->row + 1;
    return w->given != NULL || is_alike(item->batch, before->batch);
}

static void
group_items(struct writing *w, const struct hr_parcel_item *items, size_t count)
{
    w->group_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && joins(w, &items[i - 1], &items[i]))
            w->groups[w->group_count - 1].count++;
        else
            w->groups[w->group_count++] = (struct group){.items = &items[i], .count = 1};
    }
}

/* Bytes of all groups, and of those that are not written (below). */
static enum hr_err measure_all(struct writing *w, size_t *ret_total, size_t *ret_far,
                               struct hr_error *reterr)
{
    size_t total = table_bytes(w->group_count);
    const struct group *only = &w->groups[0];

    *ret_far = 0;
    for (size_t i = 0; i < w->group_count; i++) {
        HR_TRY(measure(w, &w->groups[i], reterr));
        total += hr__wire_align(w->groups[i].bytes);
        if (total > HR_FRAME_DATA_MAX)
            return hr__fail(reterr, HR_ERR_LIMIT,
                            "a batch is larger than a frame of the service: at most %u "
                            "bytes; make batches smaller",
                            HR_FRAME_DATA_MAX);
    }
    if (w->group_count == 1 && only->items[0].batch != NULL && records_of(only) == 1)
        for (size_t f = 0; f < only->items[0].batch->field_count; f++) {
            const struct hr_value *value = &w->records[0].values[f];

            *ret_far += hr__wire_is_far(value, FAR_MIN) ? value->bytes : 0;
        }
    *ret_total = total;
    return HR_OK;
}

static enum kind kind_of(const struct hr_parcel_item *item)
{
    return item->is_row          ? ROWS
           : item->batch != NULL ? BATCH
           : item->error != NULL ? FAILURE
                                 : FAILED;
}

static enum hr_err
write_all(struct writing *w, size_t count, char *base, struct hr_error *reterr)
{
    struct head head = {.version = HR_PARCEL_VERSION,
                        .count = (uint32_t)count,
                        .entries = (uint32_t)w->group_count};
    size_t place = table_bytes(w->group_count), table = sizeof head;

    memset(base, 0, place);
    memcpy(head.magic, magic, sizeof magic);
    memcpy(base, &head, sizeof head);
    for (size_t i = 0; i < w->group_count; i++) {
        const struct group *group = &w->groups[i];
        struct entry entry = {.at = place,
                              .bytes = group->bytes,
                              .kind = kind_of(&group->items[0]),
                              .count = (uint32_t)group->count};
        size_t end = place + group->bytes, next = hr__wire_align(end);

        memcpy(base + table, &entry, sizeof entry);
        table += sizeof entry;
        if (next > end) /* all of it is written */
            memset(base + end, 0, next - end);
        HR_TRY(write_group(w, group, base + place, reterr));
        place = next;
    }
    return HR_OK;
}

/* What was written, and what was not. */
static void list_pieces(const struct writing *w, struct hr_buffer *written, size_t total,
                        struct hr_parcel_pieces *ret)
{
    *ret = (struct hr_parcel_pieces){.bytes = total, .count = 1};
    ret->parts[0] =
        (struct hr_net_part){hr_buffer_data(written), hr_buffer_bytes(written), written};
    for (size_t i = 0; i < w->far_count; i++) {
        const struct hr_wire_far *far = &w->far[i];

        ret->parts[ret->count++] =
            (struct hr_net_part){far->data, far->bytes, hr_buffer_ref(far->owner)};
    }
}

static enum hr_err
write_pieces(struct writing *w, size_t count, struct hr_pool *pool,
             struct hr_parcel_pieces *ret_pieces, struct hr_error *reterr)
{
    struct hr_buffer *buffer;
    size_t total = 0, far = 0;
    enum hr_err code;

    HR_TRY(measure_all(w, &total, &far, reterr));
    if (hr_pool_get(pool, total - far, &buffer) != HR_OK)
        return hr__fail(reterr, HR_ERR_MEMORY, "no memory for a batch of %zu bytes",
                        total - far);
    code = write_all(w, count, hr_buffer_data(buffer), reterr);
    if (code != HR_OK) {
        hr_buffer_unref(buffer);
        return code;
    }
    list_pieces(w, buffer, total, ret_pieces);
    return HR_OK;
}

enum hr_err hr__parcel_write(const struct hr_parcel_item *items, size_t count,
                             const struct hr_schema *records, struct hr_pool *pool,
                             struct hr_parcel_pieces *ret_pieces, struct hr_error *reterr)
{
    struct writing *w = hr__malloc(sizeof *w);
    enum hr_err code;

    assert(count > 0 && count <= HR_PARCEL_ITEMS_MAX);
    if (w == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    w->given = records;
    w->far_count = 0;
    group_items(w, items, count);
    code = write_pieces(w, count, pool, ret_pieces, reterr);
    hr__free(w);
    return code;
}

void hr__parcel_drop(struct hr_parcel_pieces *pieces)
{
    for (size_t i = 0; i < pieces->count; i++)
        hr_buffer_unref(pieces->parts[i].owner);
    pieces->count = 0;
}

/* ---- reading ---- */

/* What the values of a block keep alive: the payload, and what they need beside it. */
struct keep {
    struct hr_buffer *buffer;
    struct hr_arena arena;
};

struct hr_parcel {
    struct hr_buffer *buffer;
    size_t count, entries;
    size_t far_count;
    struct hr_wire_far far[HR_SCHEMA_FIELDS_MAX]; /* of the only entry */
    /* The entry that was read last. */
    size_t at, first; /* its number; its first position */
    struct entry entry;
    struct hr_wire_block block; /* of batches, open if `is_open` */
    bool is_open;
    struct hr_batch
        *rows; /* an open entry's whose batches are the rows of this; or NULL */
    bool fits; /* it is known to have the schema of the records that are wanted */
};

static struct entry entry_at(const struct hr_buffer *buffer, size_t at)
{
    struct entry entry;

    memcpy(&entry,
           (const char *)hr_buffer_data(buffer) + sizeof(struct head) + at * sizeof entry,
           sizeof entry);
    return entry;
}

static enum hr_err check_table(const struct hr_buffer *buffer, size_t far_bytes,
                               const struct head *head, struct hr_error *reterr)
{
    size_t bytes = hr_buffer_bytes(buffer) + far_bytes;
    size_t after = table_bytes(head->entries);
    uint64_t positions = 0;

    if (head->entries == 0 || head->entries > head->count ||
        hr_buffer_bytes(buffer) < after)
        return malformed(reterr, "it is shorter than its table");
    for (size_t i = 0; i < head->entries; i++) {
        struct entry entry = entry_at(buffer, i);

        if (entry.at != after || entry.kind > ROWS || entry.count == 0 ||
            (entry.kind == FAILED && entry.bytes > 0) || entry.bytes > bytes - after ||
            hr__wire_align(entry.bytes) > bytes - after)
            return malformed(reterr, "its table");
        after += hr__wire_align(entry.bytes);
        positions += entry.count;
    }
    return after == bytes && positions == head->count ? HR_OK
                                                      : malformed(reterr, "its length");
}

static enum hr_err check(const struct hr_buffer *buffer, size_t far_bytes, size_t count,
                         struct head *ret_head, struct hr_error *reterr)
{
    struct head head;

    if (count == 0 || count > HR_PARCEL_ITEMS_MAX ||
        hr_buffer_bytes(buffer) < sizeof head)
        return malformed(reterr, "it is shorter than its head");
    memcpy(&head, hr_buffer_data(buffer), sizeof head);
    if (memcmp(head.magic, magic, sizeof magic) != 0)
        return malformed(reterr, "its head");
    if (head.version != HR_PARCEL_VERSION)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "a worker sends batches in version %u; this release knows "
                        "version %u: install the same release everywhere",
                        head.version, HR_PARCEL_VERSION);
    if (head.count != count)
        return malformed(reterr, "its number of batches");
    *ret_head = head;
    return check_table(buffer, far_bytes, &head, reterr);
}

/* Only a batch or a pack of its own has payloads elsewhere: they end the block. */
static enum hr_err set_far(struct hr_parcel *parcel, const struct hr_wire_far *far,
                           size_t count, struct hr_error *reterr)
{
    size_t near = hr_buffer_bytes(parcel->buffer), place = near - parcel->entry.at;

    if (count > 0 && (parcel->entries > 1 || near % HR_WIRE_ALIGN != 0 ||
                      !(parcel->entry.kind == ROWS ||
                        (parcel->entry.kind == BATCH && parcel->count == 1))))
        return malformed(reterr, "payloads elsewhere");
    parcel->far_count = count;
    for (size_t i = 0; i < count; i++) {
        parcel->far[i] = far[i];
        parcel->far[i].place = place;
        place += far[i].bytes;
    }
    return HR_OK;
}

enum hr_err
hr__parcel_open(struct hr_buffer *buffer, size_t count, const struct hr_wire_far *far,
                size_t far_count, struct hr_parcel **ret_parcel, struct hr_error *reterr)
{
    struct hr_parcel *parcel;
    struct head head = {0};
    size_t far_bytes = 0;

    assert(far_count <= HR_SCHEMA_FIELDS_MAX);
    for (size_t i = 0; i < far_count; i++)
        far_bytes += far[i].bytes;
    HR_TRY(check(buffer, far_bytes, count, &head, reterr));
    parcel = hr__calloc(1, sizeof *parcel);
    if (parcel == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    parcel->buffer = hr_buffer_ref(buffer);
    parcel->count = count;
    parcel->entries = head.entries;
    parcel->entry = entry_at(buffer, 0);
    if (set_far(parcel, far, far_count, reterr) != HR_OK) {
        hr__parcel_close(parcel);
        return HR_ERR_FORMAT;
    }
    *ret_parcel = parcel;
    return HR_OK;
}

static void close_entry(struct hr_parcel *parcel)
{
    if (parcel->is_open)
        hr__wire_block_close(&parcel->block);
    hr_batch_unref(parcel->rows);
    parcel->rows = NULL;
    parcel->is_open = parcel->fits = false;
}

void hr__parcel_close(struct hr_parcel *parcel)
{
    if (parcel == NULL)
        return;
    close_entry(parcel);
    hr_buffer_unref(parcel->buffer);
    hr__free(parcel);
}

static void release(void *user)
{
    struct keep *keep = user;

    hr_buffer_unref(keep->buffer);
    hr__arena_finish(&keep->arena);
    hr__free(keep);
}

/* The payload again, with an arena that ends with it. */
static struct hr_buffer *keep_payload(struct hr_buffer *buffer, struct keep **ret_keep)
{
    struct keep *keep = hr__calloc(1, sizeof *keep);
    struct hr_buffer *owner;

    if (keep == NULL)
        return NULL;
    hr__arena_init(&keep->arena);
    owner =
        hr_buffer_wrap(hr_buffer_data(buffer), hr_buffer_bytes(buffer), release, keep);
    if (owner == NULL) {
        hr__free(keep);
        return NULL;
    }
    keep->buffer = hr_buffer_ref(buffer);
    *ret_keep = keep;
    return owner;
}

static enum hr_err open_block(struct hr_parcel *parcel, struct hr_buffer *owner,
                              struct hr_arena *arena, struct hr_error *reterr)
{
    const char *at = (const char *)hr_buffer_data(parcel->buffer) + parcel->entry.at;

    if (parcel->far_count == 0)
        return hr__wire_block_open(&parcel->block, at, parcel->entry.bytes, owner, NULL,
                                   arena, 0, reterr);
    return hr__wire_block_open_far(&parcel->block, at, parcel->far[0].place, parcel->far,
                                   parcel->far_count, owner, arena, reterr);
}

static enum hr_err open_entry(struct hr_parcel *parcel, struct hr_error *reterr)
{
    const struct entry *entry = &parcel->entry;
    struct keep *keep;
    struct hr_buffer *owner;
    enum hr_err code;

    if (parcel->is_open)
        return HR_OK;
    owner = keep_payload(parcel->buffer, &keep);
    if (owner == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    code = open_block(parcel, owner, &keep->arena, reterr);
    if (code == HR_OK && parcel->block.count != (entry->kind == ROWS ? 1 : entry->count))
        code = malformed(reterr, "a wrong number of batches");
    if (code != HR_OK)
        hr__wire_block_close(&parcel->block);
    parcel->is_open = code == HR_OK;
    hr_buffer_unref(owner);
    return code;
}

/* Moves to the entry of a position. */
static void find_entry(struct hr_parcel *parcel, size_t at)
{
    if (at >= parcel->first && at - parcel->first < parcel->entry.count)
        return;
    close_entry(parcel);
    if (at < parcel->first)
        parcel->at = parcel->first = 0;
    parcel->entry = entry_at(parcel->buffer, parcel->at);
    while (at - parcel->first >= parcel->entry.count) {
        parcel->first += parcel->entry.count;
        parcel->entry = entry_at(parcel->buffer, ++parcel->at);
    }
}

static enum hr_err fill_batch(const struct hr_wire_block *block, size_t at,
                              struct hr_batch *batch, struct hr_error *reterr)
{
    struct hr_record_id id;

    HR_TRY(hr__wire_block_get(block, at, &id, batch->values, reterr));
    for (size_t i = 0; i < batch->field_count; i++) {
        const struct hr_value *value = &batch->values[i];

        if ((value->kind != HR_VALUE_TENSOR && value->kind != HR_VALUE_RAGGED) ||
            value->ndim < 1 || value->dims[0] != batch->records)
            return malformed(reterr, "a field has a wrong number of records");
        batch->bytes += value->bytes;
    }
    return HR_OK;
}

static enum hr_err
make_batch(const struct hr_wire_block *block, size_t at, int64_t records,
           struct hr_batch **ret_batch, struct hr_error *reterr)
{
    struct hr_batch *batch = hr__batch_create(block->schema, NULL);
    enum hr_err code;

    if (batch == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    batch->records = records;
    code = fill_batch(block, at, batch, reterr);
    if (code == HR_OK)
        *ret_batch = batch;
    else
        hr_batch_unref(batch);
    return code;
}

static bool has_lists(const struct hr_batch *batch)
{
    for (size_t f = 0; f < batch->field_count; f++)
        if (batch->values[f].kind != HR_VALUE_TENSOR)
            return true;
    return false;
}

/* The batch that is row `at` of the entry's only record. */
static enum hr_err get_row(struct hr_parcel *parcel, size_t at, int64_t records,
                           struct hr_batch **ret_batch, struct hr_error *reterr)
{
    if (parcel->rows == NULL) {
        struct hr_batch *rows;

        HR_TRY(
            make_batch(&parcel->block, 0, (int64_t)parcel->entry.count, &rows, reterr));
        if (has_lists(rows)) {
            hr_batch_unref(rows);
            return malformed(reterr, "rows of a field of lists");
        }
        parcel->rows = rows;
    }
    if (records != 1)
        return malformed(reterr, "a field has a wrong number of records");
    *ret_batch = hr__batch_row(parcel->rows, (int64_t)at);
    return *ret_batch != NULL ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

enum hr_err hr__parcel_get(struct hr_parcel *parcel, size_t at, int64_t records,
                           struct hr_batch **ret_batch, struct hr_error *reterr)
{
    const struct entry *entry = &parcel->entry;

    assert(at < parcel->count);
    find_entry(parcel, at);
    if (entry->kind == FAILURE)
        return read_failure((const char *)hr_buffer_data(parcel->buffer) + entry->at,
                            entry->bytes, reterr);
    if (entry->kind == FAILED)
        return malformed(reterr, "a record instead of a batch");
    HR_TRY(open_entry(parcel, reterr));
    if (entry->kind == ROWS)
        return get_row(parcel, at - parcel->first, records, ret_batch, reterr);
    return make_batch(&parcel->block, at - parcel->first, records, ret_batch, reterr);
}

/* ---- records ---- */

static enum hr_err check_schema(struct hr_parcel *parcel, const struct hr_schema *schema,
                                struct hr_error *reterr)
{
    struct hr_str wanted, got;
    bool alike;

    if (parcel->fits)
        return HR_OK;
    hr__str_init(&wanted);
    hr__str_init(&got);
    hr__wire_schema_write(schema, &wanted);
    hr__wire_schema_write(parcel->block.schema, &got);
    alike = hr__str_ok(&wanted) && hr__str_ok(&got) && wanted.length == got.length &&
            memcmp(hr__str_text(&wanted), hr__str_text(&got), got.length) == 0;
    hr__str_finish(&wanted);
    hr__str_finish(&got);
    parcel->fits = alike;
    return alike ? HR_OK : malformed(reterr, "its records have another schema");
}

static bool is_made(const struct hr_value *values, size_t count)
{
    for (size_t f = 0; f < count; f++)
        if (values[f].kind != HR_VALUE_NONE && !hr__value_is_made(&values[f]))
            return false;
    return true;
}

enum hr_err
hr__parcel_get_record(struct hr_parcel *parcel, size_t at, const struct hr_schema *schema,
                      struct hr_value *values, bool *ret_failed, struct hr_error *reterr)
{
    const struct entry *entry = &parcel->entry;
    struct hr_record_id id;

    assert(at < parcel->count);
    find_entry(parcel, at);
    *ret_failed = entry->kind == FAILED;
    if (entry->kind == FAILED)
        return HR_OK;
    if (entry->kind == FAILURE)
        return read_failure((const char *)hr_buffer_data(parcel->buffer) + entry->at,
                            entry->bytes, reterr);
    if (entry->kind == ROWS)
        return malformed(reterr, "batches instead of records");
    HR_TRY(open_entry(parcel, reterr));
    HR_TRY(check_schema(parcel, schema, reterr));
    HR_TRY(hr__wire_block_get(&parcel->block, at - parcel->first, &id, values, reterr));
    if (is_made(values, schema->count))
        return HR_OK;
    for (size_t f = 0; f < schema->count; f++)
        hr__value_clear(&values[f]);
    return malformed(reterr, "a value that is not made");
}
