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

enum kind { BATCH, FAILURE };

struct head {
    char magic[8];
    uint32_t version, count;
    uint64_t zeros[6];
};

struct entry {
    uint64_t at, bytes;
    uint32_t kind, zero;
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

/* A batch knows names, values and which texts are text: its schema for the wire. */
static void schema_of(const struct hr_batch *batch, struct hr_schema *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->records = -1;
    ret->batch_rank = 1;
    ret->count = batch->field_count;
    for (size_t i = 0; i < batch->field_count; i++) {
        const struct hr_value *value = &batch->values[i];
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

/* A batch on its way to the wire. */
struct packed {
    struct hr_schema schema;
    struct hr_wire_writer writer;
    struct hr_wire_record record;
};

static enum hr_err
pack(struct packed *packed, const struct hr_batch *batch, struct hr_error *reterr)
{
    schema_of(batch, &packed->schema);
    packed->record = (struct hr_wire_record){.values = batch->values};
    return hr__wire_writer_init(&packed->writer, &packed->schema, true, reterr);
}

static enum hr_err item_bytes(const struct hr_parcel_item *item, size_t *ret_bytes,
                              struct packed *packed, struct hr_error *reterr)
{
    enum hr_err code;

    if (item->batch == NULL) {
        *ret_bytes = failure_bytes(item->error);
        return HR_OK;
    }
    code = pack(packed, item->batch, reterr);
    if (code == HR_OK)
        *ret_bytes = hr__wire_block_bytes(&packed->writer, &packed->record, 1);
    hr__wire_writer_finish(&packed->writer);
    return code;
}

static enum hr_err write_item(const struct hr_parcel_item *item, char *to,
                              struct packed *packed, struct hr_error *reterr)
{
    enum hr_err code;

    if (item->batch == NULL) {
        write_failure(item->error, to);
        return HR_OK;
    }
    code = pack(packed, item->batch, reterr);
    if (code == HR_OK) {
        (void)hr__wire_block_bytes(&packed->writer, &packed->record, 1); /* lays it */
        code = hr__wire_block_write(&packed->writer, &packed->record, 1, to, reterr);
    }
    hr__wire_writer_finish(&packed->writer);
    return code;
}

static enum hr_err
write_all(const struct hr_parcel_item *items, size_t count, const size_t *sizes,
          char *base, struct packed *packed, struct hr_error *reterr)
{
    struct head head = {.version = HR_PARCEL_VERSION, .count = (uint32_t)count};
    size_t place = table_bytes(count), table = sizeof head;

    memset(base, 0, place);
    memcpy(head.magic, magic, sizeof magic);
    memcpy(base, &head, sizeof head);
    for (size_t i = 0; i < count; i++) {
        struct entry entry = {.at = place,
                              .bytes = sizes[i],
                              .kind = items[i].batch != NULL ? BATCH : FAILURE};
        size_t end = place + sizes[i], next = hr__wire_align(end);

        memcpy(base + table, &entry, sizeof entry);
        table += sizeof entry;
        memset(base + end, 0, next - end);
        HR_TRY(write_item(&items[i], base + place, packed, reterr));
        place = next;
    }
    return HR_OK;
}

enum hr_err
hr__parcel_write(const struct hr_parcel_item *items, size_t count, struct hr_pool *pool,
                 struct hr_buffer **ret_buffer, struct hr_error *reterr)
{
    size_t total = table_bytes(count), sizes[HR_PARCEL_ITEMS_MAX];
    struct packed *packed = hr__malloc(sizeof *packed);
    struct hr_buffer *buffer = NULL;
    enum hr_err code = HR_OK;

    assert(count > 0 && count <= HR_PARCEL_ITEMS_MAX);
    if (packed == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; code == HR_OK && i < count; i++) {
        code = item_bytes(&items[i], &sizes[i], packed, reterr);
        total += code == HR_OK ? hr__wire_align(sizes[i]) : 0;
        if (total > HR_FRAME_DATA_MAX)
            code = hr__fail(reterr, HR_ERR_LIMIT,
                            "a batch is larger than a frame of the service: at most %u "
                            "bytes; make batches smaller",
                            HR_FRAME_DATA_MAX);
    }
    if (code == HR_OK && hr_pool_get(pool, total, &buffer) != HR_OK)
        code =
            hr__fail(reterr, HR_ERR_MEMORY, "no memory for a batch of %zu bytes", total);
    if (code == HR_OK)
        code = write_all(items, count, sizes, hr_buffer_data(buffer), packed, reterr);
    hr__free(packed);
    if (code != HR_OK) {
        hr_buffer_unref(buffer);
        return code;
    }
    *ret_buffer = buffer;
    return HR_OK;
}

/* ---- reading ---- */

static struct entry entry_at(const struct hr_buffer *buffer, size_t at)
{
    struct entry entry;

    memcpy(&entry,
           (const char *)hr_buffer_data(buffer) + sizeof(struct head) + at * sizeof entry,
           sizeof entry);
    return entry;
}

enum hr_err
hr__parcel_check(const struct hr_buffer *buffer, size_t count, struct hr_error *reterr)
{
    size_t bytes = hr_buffer_bytes(buffer), after = table_bytes(count);
    struct head head;

    if (count == 0 || count > HR_PARCEL_ITEMS_MAX || bytes < after)
        return malformed(reterr, "it is shorter than its table");
    memcpy(&head, hr_buffer_data(buffer), sizeof head);
    if (memcmp(head.magic, magic, sizeof magic) != 0 || head.count != count)
        return malformed(reterr, "its head");
    if (head.version != HR_PARCEL_VERSION)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "a worker sends batches in version %u; this release knows "
                        "version %u: install the same release everywhere",
                        head.version, HR_PARCEL_VERSION);
    for (size_t i = 0; i < count; i++) {
        struct entry entry = entry_at(buffer, i);

        if (entry.at != after || entry.kind > FAILURE || entry.bytes > bytes - after ||
            hr__wire_align(entry.bytes) > bytes - after)
            return malformed(reterr, "its table");
        after += hr__wire_align(entry.bytes);
    }
    return after == bytes ? HR_OK : malformed(reterr, "its length");
}

/* What the values of a batch keep alive: the payload, and what they need beside it. */
struct keep {
    struct hr_buffer *buffer;
    struct hr_arena arena;
};

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

static enum hr_err fill_batch(const struct hr_wire_block *block, struct hr_batch *batch,
                              struct hr_error *reterr)
{
    struct hr_record_id id;

    HR_TRY(hr__wire_block_get(block, 0, &id, batch->values, reterr));
    for (size_t i = 0; i < batch->field_count; i++) {
        const struct hr_value *value = &batch->values[i];

        if ((value->kind != HR_VALUE_TENSOR && value->kind != HR_VALUE_RAGGED) ||
            value->ndim < 1 || value->dims[0] != batch->records)
            return malformed(reterr, "a field has a wrong number of records");
        batch->bytes += value->bytes;
    }
    return HR_OK;
}

static enum hr_err make_batch(const struct hr_wire_block *block, int64_t records,
                              struct hr_batch **ret_batch, struct hr_error *reterr)
{
    struct hr_batch *batch;
    enum hr_err code;

    if (block->count != 1)
        return malformed(reterr, "a batch of several");
    batch = hr__batch_create(block->schema, NULL);
    if (batch == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    batch->records = records;
    code = fill_batch(block, batch, reterr);
    if (code == HR_OK)
        *ret_batch = batch;
    else
        hr_batch_unref(batch);
    return code;
}

static enum hr_err
read_batch(struct hr_buffer *buffer, const struct entry *entry, int64_t records,
           struct hr_batch **ret_batch, struct hr_error *reterr)
{
    struct hr_wire_block block;
    struct keep *keep;
    struct hr_buffer *owner = keep_payload(buffer, &keep);
    enum hr_err code;

    if (owner == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    code = hr__wire_block_open(&block, (const char *)hr_buffer_data(buffer) + entry->at,
                               entry->bytes, owner, NULL, &keep->arena, 0, reterr);
    if (code == HR_OK)
        code = make_batch(&block, records, ret_batch, reterr);
    hr__wire_block_close(&block);
    hr_buffer_unref(owner);
    return code;
}

enum hr_err hr__parcel_get(struct hr_buffer *buffer, size_t at, int64_t records,
                           struct hr_batch **ret_batch, struct hr_error *reterr)
{
    struct entry entry = entry_at(buffer, at);

    if (entry.kind == FAILURE)
        return read_failure((const char *)hr_buffer_data(buffer) + entry.at, entry.bytes,
                            reterr);
    return read_batch(buffer, &entry, records, ret_batch, reterr);
}
