/*
 * wire/record.c - blocks of records.
 */
#include "wire/record.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"

static const char magic[8] = {'H', 'R', 'R', 'E', 'C', 'O', 'R', 'D'};

struct block_head {
    char magic[8];
    uint32_t version, id_bytes;
    uint64_t bytes; /* of the whole block */
    uint32_t records, fields;
    uint32_t schema_bytes, zero; /* 0: the schema is not inside */
    uint64_t hash[2];            /* of the schema's bytes */
    uint64_t zeros;
};

_Static_assert(sizeof(struct block_head) == 64, "the format has no padding");

static bool
values_are_columns(const struct hr_wire_lane *lane, const struct hr_value *value)
{
    return value->kind == HR_VALUE_TENSOR &&
           (size_t)hr__value_count(value) * hr_dtype_size((enum hr_dtype)value->dtype) ==
               lane->bytes;
}

/* ---- writing ---- */

enum hr_err
hr__wire_writer_init(struct hr_wire_writer *writer, const struct hr_schema *schema,
                     bool schema_inside, struct hr_error *reterr)
{
    const struct hr_field *fields[HR_SCHEMA_FIELDS_MAX];

    *writer = (struct hr_wire_writer){.schema = schema, .schema_inside = schema_inside};
    hr__str_init(&writer->schema_bytes);
    hr__wire_schema_write(schema, &writer->schema_bytes);
    for (size_t i = 0; i < schema->count; i++)
        fields[i] = &schema->fields[i];
    if (!hr__str_ok(&writer->schema_bytes) ||
        hr__wire_layout_init(&writer->layout, fields, schema->count, true) != HR_OK)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for a block of records");
    writer->hash =
        hr__hash128(hr__str_text(&writer->schema_bytes), writer->schema_bytes.length);
    return HR_OK;
}

void hr__wire_writer_finish(struct hr_wire_writer *writer)
{
    hr__wire_layout_finish(&writer->layout);
    hr__str_finish(&writer->schema_bytes);
}

static size_t id_bytes_of(const struct hr_wire_record *records, size_t count)
{
    size_t most = HR_WIRE_ID_BYTES;

    for (size_t i = 0; i < count; i++) {
        size_t bytes = hr__wire_id_bytes(&records[i].id);

        most = bytes > most ? bytes : most;
    }
    return most;
}

static void
lay(struct hr_wire_writer *writer, const struct hr_wire_record *records, size_t count)
{
    size_t at = sizeof(struct block_head);

    if (writer->schema_inside)
        at += writer->schema_bytes.length;
    hr__wire_lay(&writer->layout, hr__wire_align(at), count, id_bytes_of(records, count));
}

size_t hr__wire_block_bytes(struct hr_wire_writer *writer,
                            const struct hr_wire_record *records, size_t count)
{
    size_t bytes;

    lay(writer, records, count);
    bytes = writer->layout.end;
    for (size_t i = 0; i < count; i++)
        for (size_t f = 0; f < writer->layout.count; f++)
            if (writer->layout.lanes[f].bytes == 0)
                bytes += hr__wire_value_bytes(&records[i].values[f]);
    return bytes;
}

static enum hr_err put_value(const struct hr_wire_lane *lane, char *base, char *item,
                             const struct hr_value *value, size_t *place)
{
    size_t bytes, gap; /* a tensor has one at its end only */

    if (lane->bytes > 0) {
        if (!values_are_columns(lane, value))
            return HR_ERR_TYPE;
        hr__value_copy(value, item);
        return HR_OK;
    }
    if (value->kind == HR_VALUE_NONE || !hr__wire_describes(value))
        return HR_ERR_TYPE;
    bytes = hr__wire_value_bytes(value);
    gap = value->kind == HR_VALUE_TENSOR && bytes > 0 ? bytes - HR_WIRE_ALIGN : 0;
    memset(base + *place + gap, 0, bytes - gap);
    hr__wire_value_put(value, base, *place, (struct hr_wire_value *)item);
    *place += bytes;
    return HR_OK;
}

static void write_head(const struct hr_wire_writer *writer, size_t id_bytes, size_t count,
                       size_t bytes, char *to)
{
    size_t schema_bytes = writer->schema_inside ? writer->schema_bytes.length : 0;
    struct block_head head = {
        .version = HR_WIRE_VERSION,
        .id_bytes = (uint32_t)id_bytes,
        .bytes = bytes,
        .records = (uint32_t)count,
        .fields = (uint32_t)writer->schema->count,
        .schema_bytes = (uint32_t)schema_bytes,
        .hash = {writer->hash.low, writer->hash.high},
    };

    memcpy(head.magic, magic, sizeof magic);
    memcpy(to, &head, sizeof head);
    memcpy(to + sizeof head, hr__str_text(&writer->schema_bytes), schema_bytes);
}

bool hr__wire_is_far(const struct hr_value *value, size_t bytes_min)
{
    return value->kind == HR_VALUE_TENSOR && value->owner != NULL &&
           value->bytes >= bytes_min && value->bytes % HR_WIRE_ALIGN == 0 &&
           hr__value_contiguous(value);
}

static bool is_far(const struct hr_wire_writer *writer, const struct hr_value *value)
{
    return writer->far != NULL && hr__wire_is_far(value, writer->far_min);
}

/* Describes the payloads that are not written, after all others. */
static void put_far(struct hr_wire_writer *writer, const struct hr_wire_record *record,
                    char *base, size_t *place)
{
    writer->far_count = 0;
    for (size_t f = 0; writer->far != NULL && f < writer->layout.count; f++) {
        const struct hr_wire_lane *lane = &writer->layout.lanes[f];
        const struct hr_value *value = &record->values[f];
        struct hr_wire_value wire = {.place = *place, .bytes = value->bytes};

        if (lane->bytes > 0 || !is_far(writer, value))
            continue;
        hr__wire_value_head(value, &wire);
        memcpy(base + lane->at, &wire, sizeof wire);
        writer->far[writer->far_count++] =
            (struct hr_wire_far){*place, value->bytes, value->data, value->owner};
        *place += value->bytes;
    }
}

enum hr_err
hr__wire_block_write(struct hr_wire_writer *writer, const struct hr_wire_record *records,
                     size_t count, void *to, struct hr_error *reterr)
{
    struct hr_wire_layout *layout = &writer->layout;
    size_t id_bytes = id_bytes_of(records, count), place;
    char *base = to;

    assert((uintptr_t)to % HR_WIRE_ALIGN == 0 && count <= HR_WIRE_RECORDS_MAX);
    lay(writer, records, count);
    place = layout->end;
    memset(to, 0, layout->end); /* gaps between lanes */
    for (size_t i = 0; i < count; i++) {
        hr__wire_id_put(&records[i].id, base + layout->ids + i * id_bytes, id_bytes);
        for (size_t f = 0; f < layout->count; f++) {
            const struct hr_wire_lane *lane = &layout->lanes[f];

            if (lane->bytes == 0 && is_far(writer, &records[i].values[f]))
                continue;
            if (put_value(lane, base, base + lane->at + i * lane->step,
                          &records[i].values[f], &place) != HR_OK)
                return hr__fail(reterr, HR_ERR_TYPE,
                                "field '%s' is not what its schema says",
                                lane->field->name);
        }
    }
    assert(writer->far == NULL || count == 1);
    put_far(writer, records, base, &place);
    write_head(writer, id_bytes, count, place, base);
    return HR_OK;
}

/* ---- reading ---- */

static enum hr_err malformed(struct hr_error *reterr, const char *what)
{
    return hr__fail(reterr, HR_ERR_FORMAT, "a block of records is malformed: %s", what);
}

static enum hr_err
check_head(const struct block_head *head, size_t bytes, struct hr_error *reterr)
{
    if (memcmp(head->magic, magic, sizeof magic) != 0)
        return malformed(reterr, "it does not begin with HRRECORD");
    if (head->version != HR_WIRE_VERSION)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "a block of records is of version %u; this library reads "
                        "version %u",
                        head->version, HR_WIRE_VERSION);
    if (head->bytes != bytes)
        return malformed(reterr, "its length is not what it says");
    if (head->records > HR_WIRE_RECORDS_MAX || head->fields > HR_SCHEMA_FIELDS_MAX ||
        head->id_bytes < HR_WIRE_ID_BYTES || head->id_bytes > HR_WIRE_ID_BYTES_MAX ||
        head->id_bytes % 8 != 0 || head->zero != 0 || head->zeros != 0)
        return malformed(reterr, "its counts are out of range");
    return HR_OK;
}

/* The schema inside the block, or the known one when it is what the block names. */
static enum hr_err find_schema(struct hr_wire_block *block, const struct block_head *head,
                               const struct hr_schema *known, struct hr_error *reterr)
{
    const char *bytes = block->region.base + sizeof *head;
    struct hr_wire_input in = {bytes, head->schema_bytes, false};
    struct hr_hash128 want = {head->hash[0], head->hash[1]}, own;
    struct hr_str text;

    if (head->schema_bytes > block->region.bytes - sizeof *head)
        return malformed(reterr, "its schema is cut");
    block->schema = hr__calloc(1, sizeof *block->schema);
    if (block->schema == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for a block of records");
    if (head->schema_bytes > 0) {
        own = hr__hash128(bytes, head->schema_bytes);
        if (!hr__hash_equal(own, want) || !hr__wire_schema_read(&in, block->schema) ||
            in.left > 0)
            return malformed(reterr, "its schema");
        return HR_OK;
    }
    if (known == NULL)
        return malformed(reterr, "it brings no schema");
    hr__str_init(&text);
    hr__wire_schema_write(known, &text);
    own = hr__hash128(hr__str_text(&text), text.length);
    hr__str_finish(&text);
    if (!hr__hash_equal(own, want))
        return malformed(reterr, "it is of another schema");
    *block->schema = *known;
    return HR_OK;
}

static enum hr_err lay_block(struct hr_wire_block *block, const struct block_head *head,
                             struct hr_error *reterr)
{
    if (head->fields != block->schema->count)
        return malformed(reterr, "its schema has another number of fields");
    for (size_t i = 0; i < head->fields; i++)
        block->fields[i] = &block->schema->fields[i];
    if (hr__wire_layout_init(&block->layout, block->fields, head->fields, true) != HR_OK)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for a block of records");
    hr__wire_lay(&block->layout, hr__wire_align(sizeof *head + head->schema_bytes),
                 head->records, head->id_bytes);
    if (block->layout.end > block->region.bytes)
        return malformed(reterr, "its records are cut");
    block->count = head->records;
    block->id_bytes = head->id_bytes;
    return HR_OK;
}

/* The block is zero but for its region; `total`: bytes of it with what lies elsewhere. */
static enum hr_err
open_block(struct hr_wire_block *block, size_t total, struct hr_buffer *owner,
           const struct hr_schema *known, struct hr_error *reterr)
{
    struct block_head head;

    assert((uintptr_t)block->region.base % HR_WIRE_ALIGN == 0);
    if (block->region.bytes < sizeof head)
        return malformed(reterr, "it is shorter than its head");
    memcpy(&head, block->region.base, sizeof head);
    HR_TRY(check_head(&head, total, reterr));
    HR_TRY(find_schema(block, &head, known, reterr));
    HR_TRY(lay_block(block, &head, reterr));
    block->owner = owner != NULL ? hr_buffer_ref(owner) : NULL;
    return HR_OK;
}

enum hr_err
hr__wire_block_open(struct hr_wire_block *block, const void *data, size_t bytes,
                    struct hr_buffer *owner, const struct hr_schema *known,
                    struct hr_arena *arena, uint32_t nodes, struct hr_error *reterr)
{
    *block = (struct hr_wire_block){
        .region = {.base = data, .bytes = bytes, .arena = arena, .nodes = nodes}
    };
    return open_block(block, bytes, owner, known, reterr);
}

enum hr_err hr__wire_block_open_far(struct hr_wire_block *block, const void *data,
                                    size_t bytes, const struct hr_wire_far *far,
                                    size_t far_count, struct hr_buffer *owner,
                                    struct hr_arena *arena, struct hr_error *reterr)
{
    size_t total =
        far_count > 0 ? far[far_count - 1].place + far[far_count - 1].bytes : bytes;

    *block = (struct hr_wire_block){
        .region = {.base = data,
                   .bytes = bytes,
                   .far = far,
                   .far_count = far_count,
                   .arena = arena}
    };
    return open_block(block, total, owner, NULL, reterr);
}

void hr__wire_block_close(struct hr_wire_block *block)
{
    hr__wire_layout_finish(&block->layout);
    hr__free(block->schema);
    hr_buffer_unref(block->owner);
    *block = (struct hr_wire_block){0};
}

static enum hr_err
get_value(const struct hr_wire_region *region, const struct hr_wire_lane *lane, size_t at,
          struct hr_value *ret_value, struct hr_error *reterr)
{
    char *item = (char *)(uintptr_t)region->base + lane->at + at * lane->step;
    int64_t dims[HR_MAX_DIMS];
    struct hr_wire_value wire;

    if (lane->bytes == 0) {
        memcpy(&wire, item, sizeof wire);
        HR_TRY(hr__wire_value_get(region, &wire, ret_value, reterr));
        return hr__wire_value_fits(ret_value, lane->field, reterr);
    }
    for (int d = 0; d < lane->field->ndim; d++)
        dims[d] = lane->field->dims[d].size;
    hr__value_set_tensor(ret_value, lane->field->dtype, lane->field->ndim, dims, item,
                         NULL);
    ret_value->layout = (uint8_t)lane->field->layout;
    ret_value->shared = true;
    return HR_OK;
}

enum hr_err hr__wire_block_get(const struct hr_wire_block *block, size_t at,
                               struct hr_record_id *ret_id, struct hr_value *values,
                               struct hr_error *reterr)
{
    const char *id = block->region.base + block->layout.ids + at * block->id_bytes;

    assert(at < block->count);
    if (!hr__wire_id_get(id, block->id_bytes, ret_id))
        return malformed(reterr, "an identity");
    memset(values, 0, block->layout.count * sizeof *values);
    for (size_t f = 0; f < block->layout.count; f++) {
        enum hr_err code =
            get_value(&block->region, &block->layout.lanes[f], at, &values[f], reterr);

        if (code != HR_OK) {
            values[f].owner = NULL;
            for (size_t i = 0; i < f; i++)
                hr__value_clear(&values[i]);
            return code;
        }
        if (block->owner != NULL)
            values[f].owner = hr_buffer_ref(block->owner);
    }
    return HR_OK;
}

/* ---- single records of a known schema ---- */

enum hr_err hr__wire_reader_init(struct hr_wire_reader *reader,
                                 const struct hr_schema *schema, struct hr_error *reterr)
{
    static const size_t id_bytes[HR_WIRE_LAYOUTS] = {HR_WIRE_ID_BYTES,
                                                     HR_WIRE_ID_BYTES_MAX};
    const struct hr_field *fields[HR_SCHEMA_FIELDS_MAX];
    struct hr_str text;
    enum hr_err code;

    *reader = (struct hr_wire_reader){0};
    hr__str_init(&text);
    hr__wire_schema_write(schema, &text);
    code = hr__str_ok(&text) ? HR_OK : HR_ERR_MEMORY;
    reader->hash = hr__hash128(hr__str_text(&text), text.length);
    hr__str_finish(&text);
    for (size_t i = 0; i < schema->count; i++)
        fields[i] = &schema->fields[i];
    for (size_t i = 0; code == HR_OK && i < HR_WIRE_LAYOUTS; i++) {
        code = hr__wire_layout_init(&reader->layouts[i], fields, schema->count, true);
        if (code == HR_OK)
            hr__wire_lay(&reader->layouts[i], sizeof(struct block_head), 1, id_bytes[i]);
    }
    return code == HR_OK
               ? HR_OK
               : hr__fail(reterr, code, "out of memory for a schema of records");
}

void hr__wire_reader_finish(struct hr_wire_reader *reader)
{
    for (size_t i = 0; i < HR_WIRE_LAYOUTS; i++)
        hr__wire_layout_finish(&reader->layouts[i]);
}

/* Checks everything before the values, which must be there, of a block of `bytes` bytes.
 */
static enum hr_err
pick_layout(const struct hr_wire_reader *reader, const char *data, size_t bytes,
            const struct hr_wire_layout **ret_layout, struct hr_error *reterr)
{
    const struct hr_wire_layout *layout;
    struct hr_record_id id;
    struct block_head head;

    if (bytes < sizeof head)
        return malformed(reterr, "it is shorter than its head");
    memcpy(&head, data, sizeof head);
    HR_TRY(check_head(&head, bytes, reterr));
    if (head.records != 1 || head.schema_bytes != 0)
        return malformed(reterr, "it is no single record");
    if (head.hash[0] != reader->hash.low || head.hash[1] != reader->hash.high)
        return malformed(reterr, "it is of another schema");
    layout = &reader->layouts[head.id_bytes > HR_WIRE_ALIGN];
    if (head.fields != layout->count || layout->end > bytes)
        return malformed(reterr, "its records are cut");
    if (!hr__wire_id_get(data + layout->ids, head.id_bytes, &id))
        return malformed(reterr, "an identity");
    *ret_layout = layout;
    return HR_OK;
}

enum hr_err
hr__wire_reader_open(const struct hr_wire_reader *reader, const void *data, size_t bytes,
                     struct hr_arena *arena, struct hr_wire_single *ret_single,
                     struct hr_error *reterr)
{
    assert((uintptr_t)data % HR_WIRE_ALIGN == 0);
    HR_TRY(pick_layout(reader, data, bytes, &ret_single->layout, reterr));
    ret_single->region =
        (struct hr_wire_region){.base = data, .bytes = bytes, .arena = arena};
    return HR_OK;
}

size_t hr__wire_reader_front(const struct hr_wire_reader *reader)
{
    return reader->layouts[HR_WIRE_LAYOUTS - 1].end;
}

enum hr_err hr__wire_reader_locate(const struct hr_wire_reader *reader, const void *front,
                                   size_t bytes, size_t field, uint64_t *ret_at,
                                   uint64_t *ret_bytes, struct hr_error *reterr)
{
    const struct hr_wire_layout *layout = NULL;
    const struct hr_wire_lane *lane;
    struct hr_wire_value wire;

    HR_TRY(pick_layout(reader, front, bytes, &layout, reterr));
    assert(field < layout->count);
    lane = &layout->lanes[field];
    if (lane->bytes > 0) {
        *ret_at = lane->at;
        *ret_bytes = lane->bytes;
        return HR_OK;
    }
    memcpy(&wire, (const char *)front + lane->at, sizeof wire);
    if (wire.kind != HR_VALUE_BYTES || wire.where != HR_WIRE_HERE ||
        !hr__wire_inside(bytes, wire.place, wire.bytes))
        return malformed(reterr, "a byte string");
    *ret_at = wire.place;
    *ret_bytes = wire.bytes;
    return HR_OK;
}

enum hr_err hr__wire_single_get(const struct hr_wire_single *single, size_t field,
                                struct hr_value *ret_value, struct hr_error *reterr)
{
    assert(field < single->layout->count);
    return get_value(&single->region, &single->layout->lanes[field], 0, ret_value,
                     reterr);
}
