/*
 * codec/arrow_ipc.c - messages of Arrow's IPC format.
 */
#include "codec/arrow_ipc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

static enum hr_err damaged(struct hr_error *reterr, const char *what)
{
    return hr__fail(reterr, HR_ERR_FORMAT, "damaged Arrow metadata: %s", what);
}

/* ---- flatbuffers ---- */

/* Positions are bytes from the start; 0 stands for what is absent. What does not lie
 * inside sets `bad` and is absent. */
struct flat {
    const uint8_t *data;
    size_t bytes;
    bool bad;
};

static uint64_t number(struct flat *flat, size_t at, size_t bytes)
{
    uint64_t value = 0;

    if (bytes > flat->bytes || at > flat->bytes - bytes) {
        flat->bad = true;
        return 0;
    }
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)flat->data[at + i] << 8 * i;
    return value;
}

/* Follows the offset at `at`. */
static size_t follow(struct flat *flat, size_t at)
{
    uint64_t to = at + number(flat, at, 4);

    if (to == at || to >= flat->bytes) {
        flat->bad = true;
        return 0;
    }
    return (size_t)to;
}

/* Where member `field` of `bytes` bytes of a table is. */
static size_t member(struct flat *flat, size_t table, int field, size_t bytes)
{
    int64_t vtable;
    uint64_t size, offset, slot = 4 + 2 * (uint64_t)field;

    if (table == 0)
        return 0;
    vtable = (int64_t)table - (int32_t)number(flat, table, 4);
    if (vtable < 0 || (uint64_t)vtable >= flat->bytes) {
        flat->bad = true;
        return 0;
    }
    size = number(flat, (size_t)vtable, 2);
    if (slot + 2 > size)
        return 0;
    offset = number(flat, (size_t)vtable + (size_t)slot, 2);
    if (offset == 0)
        return 0;
    (void)number(flat, table + (size_t)offset, bytes);
    return flat->bad ? 0 : table + (size_t)offset;
}

static int64_t
scalar(struct flat *flat, size_t table, int field, size_t bytes, int64_t fallback)
{
    size_t at = member(flat, table, field, bytes);
    uint64_t value = at != 0 ? number(flat, at, bytes) : 0;

    if (at == 0)
        return fallback;
    if (bytes < 8 && value >> (8 * bytes - 1) != 0)
        value |= UINT64_MAX << 8 * bytes;
    return (int64_t)value;
}

/* A table, string or vector that a member refers to. */
static size_t reference(struct flat *flat, size_t table, int field)
{
    size_t at = member(flat, table, field, 4);

    return at != 0 ? follow(flat, at) : 0;
}

/* Where the items of a vector are. */
static size_t
vector(struct flat *flat, size_t table, int field, size_t item, size_t *ret_count)
{
    size_t at = reference(flat, table, field);
    uint64_t count = at != 0 ? number(flat, at, 4) : 0;

    *ret_count = 0;
    if (at == 0 || flat->bad)
        return 0;
    if (count > (flat->bytes - at - 4) / item) {
        flat->bad = true;
        return 0;
    }
    *ret_count = (size_t)count;
    return at + 4;
}

static size_t root(struct flat *flat)
{
    return follow(flat, 0);
}

/* ---- messages ---- */

enum { TYPE_SCHEMA = 1, TYPE_DICTIONARY = 2, TYPE_BATCH = 3 };
enum { MESSAGE_VERSION, MESSAGE_TYPE, MESSAGE_HEADER, MESSAGE_BODY };

enum hr_err hr__arrow_head(const void *head, size_t *ret_meta, struct hr_error *reterr)
{
    struct flat flat = {head, HR_ARROW_HEAD, false};
    uint64_t mark = number(&flat, 0, 4), bytes = number(&flat, 4, 4);

    if (mark == 0) { /* the end of a stream, as Arrow wrote it before 0.15 */
        *ret_meta = 0;
        return HR_OK;
    }
    if (mark != UINT32_MAX)
        return damaged(reterr, "a message does not begin with its mark (Arrow before "
                               "0.15 wrote none)");
    if (bytes > INT32_MAX)
        return damaged(reterr, "a message has a negative size");
    if (bytes > HR_ARROW_META_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT, "metadata of %" PRIu64 " bytes", bytes);
    *ret_meta = (size_t)bytes;
    return HR_OK;
}

enum hr_err
hr__arrow_message(const void *meta, size_t bytes, struct hr_arrow_message *ret_message,
                  struct hr_error *reterr)
{
    struct flat flat = {meta, bytes, false};
    size_t message = root(&flat);
    int64_t type = scalar(&flat, message, MESSAGE_TYPE, 1, 0);
    int64_t body = scalar(&flat, message, MESSAGE_BODY, 8, 0);

    if (flat.bad || body < 0)
        return damaged(reterr, "a message has no table inside it");
    ret_message->body = (uint64_t)body;
    ret_message->type = type == TYPE_SCHEMA       ? HR_ARROW_SCHEMA
                        : type == TYPE_DICTIONARY ? HR_ARROW_DICTIONARY
                        : type == TYPE_BATCH      ? HR_ARROW_BATCH
                                                  : HR_ARROW_OTHER;
    return HR_OK;
}

/* The table of a message of this type; 0. */
static size_t header(struct flat *flat, int type)
{
    size_t message = root(flat);

    if (scalar(flat, message, MESSAGE_TYPE, 1, 0) != type)
        flat->bad = true;
    return reference(flat, message, MESSAGE_HEADER);
}

/* ---- types ---- */

enum {
    FIELD_NAME,
    FIELD_NULLABLE,
    FIELD_TYPE,
    FIELD_TABLE,
    FIELD_DICTIONARY,
    FIELD_CHILDREN
};
enum {
    IS_NULL = 1,
    IS_INT,
    IS_FLOAT,
    IS_BINARY,
    IS_TEXT,
    IS_BOOL,
    IS_DECIMAL,
    IS_DATE,
    IS_TIME,
    IS_TIMESTAMP,
    IS_INTERVAL,
    IS_LIST,
    IS_STRUCT,
    IS_UNION,
    IS_FIXED_BINARY,
    IS_FIXED_LIST,
    IS_MAP,
    IS_DURATION,
    IS_LARGE_BINARY,
    IS_LARGE_TEXT,
    IS_LARGE_LIST,
    IS_RUN_END,
    IS_BINARY_VIEW,
    IS_TEXT_VIEW,
    IS_LIST_VIEW,
    IS_LARGE_LIST_VIEW,
    TYPES
};

/* Buffers of a node of each type. */
static const uint8_t buffer_counts[TYPES] = {
    [IS_INT] = 2,        [IS_FLOAT] = 2,        [IS_BINARY] = 3,
    [IS_TEXT] = 3,       [IS_BOOL] = 2,         [IS_DECIMAL] = 2,
    [IS_DATE] = 2,       [IS_TIME] = 2,         [IS_TIMESTAMP] = 2,
    [IS_INTERVAL] = 2,   [IS_LIST] = 2,         [IS_STRUCT] = 1,
    [IS_UNION] = 1,      [IS_FIXED_BINARY] = 2, [IS_FIXED_LIST] = 1,
    [IS_MAP] = 2,        [IS_DURATION] = 2,     [IS_LARGE_BINARY] = 3,
    [IS_LARGE_TEXT] = 3, [IS_LARGE_LIST] = 2,   [IS_BINARY_VIEW] = 2,
    [IS_TEXT_VIEW] = 2,  [IS_LIST_VIEW] = 3,    [IS_LARGE_LIST_VIEW] = 3,
};

static void int_format(struct flat *flat, size_t table, char *format)
{
    int64_t bits = scalar(flat, table, 0, 4, 0);
    bool is_signed = scalar(flat, table, 1, 1, 0) != 0;
    const char *letters = is_signed ? "csil" : "CSIL";

    format[0] = bits == 8    ? letters[0]
                : bits == 16 ? letters[1]
                : bits == 32 ? letters[2]
                : bits == 64 ? letters[3]
                             : '?';
    format[1] = '\0';
}

static char unit_letter(struct flat *flat, size_t table, int64_t fallback)
{
    int64_t unit = scalar(flat, table, 0, 2, fallback);

    return unit >= 0 && unit < 4 ? "smun"[unit] : '?';
}

/* The type as a format string of the C data interface. */
static void type_format(struct flat *flat, int64_t type, size_t table,
                        char format[HR_ARROW_FORMAT_MAX])
{
    static const char *const simple[TYPES] = {
        [IS_NULL] = "n",        [IS_BINARY] = "z",       [IS_TEXT] = "u",
        [IS_BOOL] = "b",        [IS_DECIMAL] = "d:",     [IS_INTERVAL] = "ti",
        [IS_LIST] = "+l",       [IS_STRUCT] = "+s",      [IS_UNION] = "+u",
        [IS_MAP] = "+m",        [IS_LARGE_BINARY] = "Z", [IS_LARGE_TEXT] = "U",
        [IS_LARGE_LIST] = "+L", [IS_RUN_END] = "+r",     [IS_BINARY_VIEW] = "vz",
        [IS_TEXT_VIEW] = "vu",  [IS_LIST_VIEW] = "+vl",  [IS_LARGE_LIST_VIEW] = "+vL",
    };
    int64_t code;

    snprintf(format, HR_ARROW_FORMAT_MAX, "%s",
             type >= 0 && type < TYPES && simple[type] != NULL ? simple[type] : "?");
    switch (type) {
    case IS_INT:
        int_format(flat, table, format);
        break;
    case IS_FLOAT:
        code = scalar(flat, table, 0, 2, 0);
        format[0] = code >= 0 && code < 3 ? "efg"[code] : '?';
        break;
    case IS_DATE:
        code = scalar(flat, table, 0, 2, 1);
        memcpy(format,
               code == 0   ? "tdD"
               : code == 1 ? "tdm"
                           : "?",
               code <= 1 && code >= 0 ? 4 : 2);
        break;
    case IS_TIME:
        snprintf(format, HR_ARROW_FORMAT_MAX, "tt%c", unit_letter(flat, table, 1));
        break;
    case IS_TIMESTAMP:
        snprintf(format, HR_ARROW_FORMAT_MAX, "ts%c:", unit_letter(flat, table, 0));
        break;
    case IS_DURATION:
        snprintf(format, HR_ARROW_FORMAT_MAX, "tD%c", unit_letter(flat, table, 1));
        break;
    case IS_FIXED_BINARY:
        snprintf(format, HR_ARROW_FORMAT_MAX, "w:%" PRId64, scalar(flat, table, 0, 4, 0));
        break;
    case IS_FIXED_LIST:
        snprintf(format, HR_ARROW_FORMAT_MAX, "+w:%" PRId64,
                 scalar(flat, table, 0, 4, 0));
        break;
    default:
        break;
    }
}

/* ---- schema ---- */

#define DEPTH_MAX 32

struct walk {
    struct flat flat;
    struct hr_arrow_schema *schema;
    int version;
    struct hr_error *error;
};

static enum hr_err add_node(struct walk *walk, int64_t type, size_t table)
{
    struct hr_arrow_schema *schema = walk->schema;
    struct hr_arrow_node *node;

    if (schema->node_count == HR_ARROW_COLUMNS_MAX)
        return hr__fail(walk->error, HR_ERR_LIMIT, "more than %d columns",
                        HR_ARROW_COLUMNS_MAX);
    if (!hr__array_room(&schema->nodes, schema->node_count, &schema->node_room, 1,
                        sizeof *schema->nodes))
        return hr__fail(walk->error, HR_ERR_MEMORY, "out of memory");
    node = &schema->nodes[schema->node_count++];
    *node = (struct hr_arrow_node){
        .buffers = type >= 0 && type < TYPES ? buffer_counts[type] : 0,
        .has_views = type == IS_BINARY_VIEW || type == IS_TEXT_VIEW};
    if (type == IS_UNION) /* dense ones have offsets; before version 5, all validity */
        node->buffers = (uint8_t)(1 + (scalar(&walk->flat, table, 0, 2, 0) == 1) +
                                  (walk->version < 4));
    return HR_OK;
}

/* Adds the nodes below a field that is no leaf. */
static enum hr_err add_children(struct walk *walk, size_t field, int depth)
{
    size_t count, at = vector(&walk->flat, field, FIELD_CHILDREN, 4, &count);

    if (depth == DEPTH_MAX)
        return hr__fail(walk->error, HR_ERR_LIMIT, "columns are nested more than %d deep",
                        DEPTH_MAX);
    for (size_t i = 0; i < count && !walk->flat.bad; i++) {
        size_t child = follow(&walk->flat, at + 4 * i);
        bool coded = reference(&walk->flat, child, FIELD_DICTIONARY) != 0;
        int64_t type = coded ? IS_INT : scalar(&walk->flat, child, FIELD_TYPE, 1, 0);

        HR_TRY(add_node(walk, type, reference(&walk->flat, child, FIELD_TABLE)));
        if (!coded)
            HR_TRY(add_children(walk, child, depth + 1));
    }
    return HR_OK;
}

static void
set_name(struct walk *walk, size_t field, const char *prefix, struct hr_arrow_leaf *leaf)
{
    size_t count, at = vector(&walk->flat, field, FIELD_NAME, 1, &count);

    if (prefix != NULL)
        memcpy(leaf->column.name, prefix, strlen(prefix) + 1);
    hr__arrow_leaf_name(leaf, walk->flat.data + at, count);
}

static void set_column(struct walk *walk, size_t field, struct hr_arrow_leaf *leaf)
{
    struct flat *flat = &walk->flat;
    char format[HR_ARROW_FORMAT_MAX], child[HR_ARROW_FORMAT_MAX],
        index[HR_ARROW_FORMAT_MAX];
    size_t dictionary = reference(flat, field, FIELD_DICTIONARY), count, at, table;

    type_format(flat, scalar(flat, field, FIELD_TYPE, 1, 0),
                reference(flat, field, FIELD_TABLE), format);
    at = vector(flat, field, FIELD_CHILDREN, 4, &count);
    child[0] = '\0';
    if (count == 1 && !flat->bad) {
        size_t below = follow(flat, at);

        if (reference(flat, below, FIELD_DICTIONARY) == 0)
            type_format(flat, scalar(flat, below, FIELD_TYPE, 1, 0),
                        reference(flat, below, FIELD_TABLE), child);
    }
    index[0] = 'i';
    index[1] = '\0';
    if (dictionary != 0) {
        leaf->dictionary = scalar(flat, dictionary, 0, 8, 0);
        table = reference(flat, dictionary, 1);
        if (table != 0)
            int_format(flat, table, index);
    }
    if (hr__arrow_column(dictionary != 0 ? index : format,
                         child[0] != '\0' ? child : NULL, dictionary != 0 ? format : NULL,
                         &leaf->column, &leaf->reason))
        leaf->reason = NULL;
}

static enum hr_err
add_field(struct walk *walk, size_t field, const char *prefix, int parent)
{
    struct hr_arrow_schema *schema = walk->schema;
    bool coded = reference(&walk->flat, field, FIELD_DICTIONARY) != 0;
    int64_t type = coded ? IS_INT : scalar(&walk->flat, field, FIELD_TYPE, 1, 0);
    struct hr_arrow_leaf leaf = {.node = (int)schema->node_count, .parent = parent};

    set_name(walk, field, prefix, &leaf);
    HR_TRY(add_node(walk, type, reference(&walk->flat, field, FIELD_TABLE)));
    if (type == IS_STRUCT && prefix == NULL && !leaf.bad_name) {
        size_t count, at = vector(&walk->flat, field, FIELD_CHILDREN, 4, &count);

        for (size_t i = 0; i < count && !walk->flat.bad; i++)
            HR_TRY(add_field(walk, follow(&walk->flat, at + 4 * i), leaf.column.name,
                             leaf.node));
        return HR_OK;
    }
    set_column(walk, field, &leaf);
    if (!hr__array_room(&schema->leaves, schema->leaf_count, &schema->leaf_room, 1,
                        sizeof *schema->leaves))
        return hr__fail(walk->error, HR_ERR_MEMORY, "out of memory");
    schema->leaves[schema->leaf_count++] = leaf;
    return coded ? HR_OK : add_children(walk, field, 0);
}

enum hr_err
hr__arrow_schema_read(const void *meta, size_t bytes, struct hr_arrow_schema *ret_schema,
                      struct hr_error *reterr)
{
    struct walk walk = {
        .flat = {meta, bytes, false},
          .schema = ret_schema, .error = reterr
    };
    size_t table = header(&walk.flat, TYPE_SCHEMA), count, at;

    walk.version = (int)scalar(&walk.flat, root(&walk.flat), MESSAGE_VERSION, 2, 0);
    if (scalar(&walk.flat, table, 0, 2, 0) != 0)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED, "it is big-endian");
    at = vector(&walk.flat, table, 1, 4, &count);
    for (size_t i = 0; i < count && !walk.flat.bad; i++)
        HR_TRY(add_field(&walk, follow(&walk.flat, at + 4 * i), NULL, -1));
    return walk.flat.bad || table == 0 ? damaged(reterr, "its schema") : HR_OK;
}

void hr__arrow_schema_finish(struct hr_arrow_schema *schema)
{
    hr__free(schema->leaves);
    hr__free(schema->nodes);
    *schema = (struct hr_arrow_schema){0};
}

/* ---- batches ---- */

enum { BATCH_ROWS, BATCH_NODES, BATCH_BUFFERS, BATCH_COMPRESSION, BATCH_VIEWS };

struct batch {
    struct flat flat;
    size_t table, nodes, node_count, buffers, buffer_count, views, view_count;
    uint64_t body;
};

static enum hr_err open_batch(struct batch *batch, const void *meta, size_t bytes,
                              bool is_dictionary, struct hr_error *reterr)
{
    struct flat *flat = &batch->flat;
    struct hr_arrow_message message;

    HR_TRY(hr__arrow_message(meta, bytes, &message, reterr));
    *batch = (struct batch){
        .flat = {meta, bytes, false},
          .body = message.body
    };
    batch->table = header(flat, is_dictionary ? TYPE_DICTIONARY : TYPE_BATCH);
    if (is_dictionary)
        batch->table = reference(flat, batch->table, 1);
    batch->nodes = vector(flat, batch->table, BATCH_NODES, 16, &batch->node_count);
    batch->buffers = vector(flat, batch->table, BATCH_BUFFERS, 16, &batch->buffer_count);
    batch->views = vector(flat, batch->table, BATCH_VIEWS, 8, &batch->view_count);
    return flat->bad || batch->table == 0 ? damaged(reterr, "a record batch") : HR_OK;
}

enum hr_err
hr__arrow_batch_read(const void *meta, size_t bytes, struct hr_arrow_batch *ret_batch,
                     struct hr_error *reterr)
{
    struct flat flat = {meta, bytes, false};
    bool is_dictionary =
        scalar(&flat, root(&flat), MESSAGE_TYPE, 1, 0) == TYPE_DICTIONARY;
    size_t dictionary = is_dictionary ? header(&flat, TYPE_DICTIONARY) : 0, compression;
    struct batch batch;
    int64_t codec;

    HR_TRY(open_batch(&batch, meta, bytes, is_dictionary, reterr));
    *ret_batch = (struct hr_arrow_batch){
        .rows = scalar(&batch.flat, batch.table, BATCH_ROWS, 8, 0),
        .dictionary = scalar(&flat, dictionary, 0, 8, 0),
        .is_delta = scalar(&flat, dictionary, 2, 1, 0) != 0};
    compression = reference(&batch.flat, batch.table, BATCH_COMPRESSION);
    codec = scalar(&batch.flat, compression, 0, 1, 0);
    if (flat.bad || batch.flat.bad || ret_batch->rows < 0)
        return damaged(reterr, "a record batch");
    if (compression != 0 && (codec < 0 || codec > 1))
        return hr__fail(reterr, HR_ERR_UNSUPPORTED, "its compression is unknown");
    ret_batch->codec = compression == 0 ? HR_ARROW_PLAIN
                       : codec == 0     ? HR_ARROW_LZ4
                                        : HR_ARROW_ZSTD;
    return HR_OK;
}

static struct hr_arrow_extent extent(struct batch *batch, size_t at)
{
    struct hr_arrow_extent made;

    if (at >= batch->buffer_count) {
        batch->flat.bad = true;
        return (struct hr_arrow_extent){0};
    }
    made.at = number(&batch->flat, batch->buffers + 16 * at, 8);
    made.bytes = number(&batch->flat, batch->buffers + 16 * at + 8, 8);
    if (made.at > batch->body || made.bytes > batch->body - made.at)
        batch->flat.bad = true;
    return made;
}

static int64_t node_rows(struct batch *batch, size_t node)
{
    int64_t rows;

    if (node >= batch->node_count) {
        batch->flat.bad = true;
        return 0;
    }
    rows = (int64_t)number(&batch->flat, batch->nodes + 16 * node, 8);
    if (rows < 0)
        batch->flat.bad = true;
    return rows;
}

/* The number of the first buffer of `node`. */
static size_t
first_buffer(struct batch *batch, const struct hr_arrow_schema *schema, size_t node)
{
    size_t buffer = 0, view = 0;

    for (size_t i = 0; i < node; i++) {
        buffer += schema->nodes[i].buffers;
        if (!schema->nodes[i].has_views)
            continue;
        if (view == batch->view_count) {
            batch->flat.bad = true;
            return 0;
        }
        buffer += number(&batch->flat, batch->views + 8 * view++, 8);
        if (buffer > batch->buffer_count)
            batch->flat.bad = true;
    }
    return buffer;
}

static bool is_list(const struct hr_arrow_column *column)
{
    return column->kind == HR_ARROW_LIST || column->kind == HR_ARROW_VECTOR;
}

/* Places a column whose first buffer is `at`. */
static void
place_column(struct batch *batch, const struct hr_arrow_column *column, size_t node,
             size_t at, bool is_values, struct hr_arrow_place *place)
{
    bool indexed = column->has_dictionary && !is_values;

    *place = (struct hr_arrow_place){.rows = node_rows(batch, node)};
    place->validity = extent(batch, at++);
    if (!indexed && (column->kind == HR_ARROW_BYTES || column->kind == HR_ARROW_LIST))
        place->offsets = extent(batch, at++);
    if (!indexed && is_list(column)) {
        place->child_rows = node_rows(batch, node + 1);
        place->child_validity = extent(batch, at++);
    }
    place->data = extent(batch, at);
}

/* Bytes of `count` items of `bits` bits are there; no validity means all are valid. */
static bool fits(uint64_t bytes, int64_t count, uint64_t bits)
{
    uint64_t need;

    return !__builtin_mul_overflow((uint64_t)count, bits, &need) &&
           need / 8 + (need % 8 != 0) <= bytes;
}

enum hr_err
hr__arrow_check(const struct hr_arrow_column *column, const struct hr_arrow_place *place,
                bool is_values, struct hr_error *reterr)
{
    bool indexed = column->has_dictionary && !is_values;
    uint64_t width = column->is_bits ? 1 : 8 * (uint64_t)column->width;
    int64_t rows = place->rows, items;
    bool good = (place->validity.bytes == 0 || fits(place->validity.bytes, rows, 1)) &&
                (place->struct_validity.bytes == 0 ||
                 fits(place->struct_validity.bytes, rows, 1));

    if (indexed)
        good = good && fits(place->data.bytes, rows, 8 * (uint64_t)column->index_width);
    else if (column->kind == HR_ARROW_NUMBER)
        good = good && fits(place->data.bytes, rows, width);
    else if (column->kind == HR_ARROW_FIXED)
        good = good && fits(place->data.bytes, rows, 8 * (uint64_t)column->size);
    else if (column->kind != HR_ARROW_VECTOR) /* with offsets */
        good = good &&
               (rows == 0 || (rows < INT64_MAX && fits(place->offsets.bytes, rows + 1,
                                                       column->is_large ? 64 : 32)));
    if (!indexed && column->kind == HR_ARROW_VECTOR)
        good = good && !__builtin_mul_overflow(rows, column->size, &items) &&
               items <= place->child_rows;
    if (!indexed && is_list(column))
        good = good && fits(place->data.bytes, place->child_rows, width) &&
               (place->child_validity.bytes == 0 ||
                fits(place->child_validity.bytes, place->child_rows, 1));
    return good ? HR_OK
                : hr__fail(reterr, HR_ERR_FORMAT,
                           "column \"%s\": buffers are too small for %" PRId64 " rows",
                           column->name, rows);
}

enum hr_err
hr__arrow_batch_place(const void *meta, size_t bytes,
                      const struct hr_arrow_schema *schema, const size_t *leaves,
                      size_t count, struct hr_arrow_place *ret_places,
                      struct hr_error *reterr)
{
    struct hr_arrow_batch info;
    struct batch batch;

    HR_TRY(hr__arrow_batch_read(meta, bytes, &info, reterr));
    HR_TRY(open_batch(&batch, meta, bytes, false, reterr));
    if (batch.node_count != schema->node_count)
        return damaged(reterr, "a record batch has not the columns of the schema");
    for (size_t i = 0; i < count; i++) {
        const struct hr_arrow_leaf *leaf = &schema->leaves[leaves[i]];
        struct hr_arrow_place *place = &ret_places[i];

        place_column(&batch, &leaf->column, (size_t)leaf->node,
                     first_buffer(&batch, schema, (size_t)leaf->node), false, place);
        if (leaf->parent >= 0)
            place->struct_validity =
                extent(&batch, first_buffer(&batch, schema, (size_t)leaf->parent));
        if (batch.flat.bad || place->rows != info.rows)
            return damaged(reterr, "a record batch's buffers are not inside it");
        if (info.codec == HR_ARROW_PLAIN)
            HR_TRY(hr__arrow_check(&leaf->column, place, false, reterr));
    }
    return HR_OK;
}

enum hr_err
hr__arrow_dictionary_place(const void *meta, size_t bytes,
                           const struct hr_arrow_column *column,
                           struct hr_arrow_place *ret_place, struct hr_error *reterr)
{
    struct hr_arrow_batch info;
    struct batch batch;

    HR_TRY(hr__arrow_batch_read(meta, bytes, &info, reterr));
    HR_TRY(open_batch(&batch, meta, bytes, true, reterr));
    place_column(&batch, column, 0, 0, true, ret_place);
    if (batch.flat.bad || ret_place->rows != info.rows)
        return damaged(reterr, "a dictionary's buffers are not inside it");
    return info.codec == HR_ARROW_PLAIN ? hr__arrow_check(column, ret_place, true, reterr)
                                        : HR_OK;
}

static const void *at_extent(const void *body, const struct hr_arrow_extent *extent)
{
    return extent->bytes > 0 ? (const char *)body + extent->at : NULL;
}

void hr__arrow_view(const struct hr_arrow_place *place, const void *body,
                    struct hr_arrow_view *ret_view)
{
    *ret_view = (struct hr_arrow_view){
        .rows = place->rows,
        .validity = at_extent(body, &place->validity),
        .struct_validity = at_extent(body, &place->struct_validity),
        .offsets = at_extent(body, &place->offsets),
        .data = at_extent(body, &place->data),
        .data_bytes = place->data.bytes,
        .child_validity = at_extent(body, &place->child_validity),
        .child_rows = place->child_rows};
}
