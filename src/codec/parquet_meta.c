/*
 * codec/parquet_meta.c - the footer of a Parquet file: its schema and where columns lie.
 */
#include "codec/parquet.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codec/thrift.h"
#include "core/alloc.h"
#include "core/error.h"

#define DEPTH_MAX 32

static enum hr_err damaged(struct hr_error *reterr, const char *what)
{
    return hr__fail(reterr, HR_ERR_FORMAT, "damaged Parquet footer: %s", what);
}

enum hr_err
hr__parquet_tail(const void *tail, size_t *ret_footer, struct hr_error *reterr)
{
    const uint8_t *at = tail;
    size_t bytes = at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;

    if (memcmp(at + 4, "PARE", 4) == 0)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED, "it is encrypted");
    if (memcmp(at + 4, HR_PARQUET_MARK, HR_PARQUET_MARK_BYTES) != 0)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "its last bytes are not those of a Parquet file: it is another "
                        "kind of file, or cut");
    if (bytes > HR_PARQUET_FOOTER_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT, "a footer of %zu bytes", bytes);
    *ret_footer = bytes;
    return HR_OK;
}

const char *hr__parquet_codec_name(int codec)
{
    static const char *const names[] = {"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO",
                                        "BROTLI",       "LZ4",    "ZSTD", "LZ4_RAW"};

    return codec >= 0 && codec < (int)(sizeof names / sizeof names[0]) ? names[codec]
                                                                       : NULL;
}

/* ---- schema ---- */

enum { REQUIRED, OPTIONAL, REPEATED };

enum { /* converted types */
       OLD_UTF8,
       OLD_MAP,
       OLD_MAP_KEY_VALUE,
       OLD_LIST,
       OLD_ENUM,
       OLD_DECIMAL,
       OLD_DATE,
       OLD_TIME_MILLIS,
       OLD_TIME_MICROS,
       OLD_TIMESTAMP_MILLIS,
       OLD_TIMESTAMP_MICROS,
       OLD_UINT_8,
       OLD_INT_8 = 15,
       OLD_INT_64 = 18,
       OLD_JSON,
       OLD_BSON,
       OLD_INTERVAL,
};

enum { /* logical types */
       LOGICAL_TEXT = 1,
       LOGICAL_MAP,
       LOGICAL_LIST,
       LOGICAL_ENUM,
       LOGICAL_DECIMAL,
       LOGICAL_DATE,
       LOGICAL_TIME,
       LOGICAL_TIMESTAMP,
       LOGICAL_INTEGER = 10,
       LOGICAL_UNKNOWN,
       LOGICAL_JSON,
       LOGICAL_BSON,
       LOGICAL_UUID,
       LOGICAL_F16,
};

struct element {
    const void *name;
    size_t name_bytes;
    int64_t type, width, repetition, children, converted;
    int logical;
    char unit; /* of a time: 'm', 'u', 'n' */
    int64_t bits;
    bool is_signed;
};

struct walk {
    struct hr_thrift thrift;
    struct hr_parquet_meta *meta;
    size_t left; /* elements */
    uint64_t file_bytes;
    struct hr_error *error;
};

static void read_unit(struct hr_thrift *thrift, struct element *element)
{
    struct hr_thrift_field field = {0};

    while (hr__thrift_next(thrift, &field)) {
        element->unit = field.id >= 1 && field.id <= 3 ? "mun"[field.id - 1] : '?';
        hr__thrift_skip(thrift, field.type);
    }
}

/* A time: is_adjusted, unit; or an integer: bits, is_signed. */
static void read_parameters(struct hr_thrift *thrift, struct element *element)
{
    struct hr_thrift_field field = {0};
    bool integer = element->logical == LOGICAL_INTEGER;
    bool time = element->logical == LOGICAL_TIME || element->logical == LOGICAL_TIMESTAMP;

    while (hr__thrift_next(thrift, &field))
        if (integer && field.id == 1)
            element->bits = hr__thrift_int(thrift, &field);
        else if (integer && field.id == 2)
            element->is_signed = hr__thrift_bool(thrift, &field);
        else if (time && field.id == 2 && hr__thrift_struct(thrift, &field))
            read_unit(thrift, element);
        else
            hr__thrift_skip(thrift, field.type);
}

static void read_logical(struct hr_thrift *thrift, struct element *element)
{
    struct hr_thrift_field field = {0};

    while (hr__thrift_next(thrift, &field)) {
        element->logical = field.id;
        if (field.type == HR_THRIFT_STRUCT)
            read_parameters(thrift, element);
        else
            hr__thrift_skip(thrift, field.type);
    }
}

static void read_element(struct walk *walk, struct element *element)
{
    struct hr_thrift *thrift = &walk->thrift;
    struct hr_thrift_field field = {0};

    *element = (struct element){.type = -1, .converted = -1};
    if (walk->left == 0)
        thrift->bad = true;
    walk->left--;
    while (hr__thrift_next(thrift, &field))
        switch (field.id) {
        case 1:
            element->type = hr__thrift_int(thrift, &field);
            break;
        case 2:
            element->width = hr__thrift_int(thrift, &field);
            break;
        case 3:
            element->repetition = hr__thrift_int(thrift, &field);
            break;
        case 4:
            element->name = hr__thrift_binary(thrift, &field, &element->name_bytes);
            break;
        case 5:
            element->children = hr__thrift_int(thrift, &field);
            break;
        case 6:
            element->converted = hr__thrift_int(thrift, &field);
            break;
        case 10:
            if (hr__thrift_struct(thrift, &field))
                read_logical(thrift, element);
            break;
        default:
            hr__thrift_skip(thrift, field.type);
        }
    if (element->children < 0 || element->children > (int64_t)walk->left ||
        element->repetition < REQUIRED || element->repetition > REPEATED ||
        (element->children == 0 &&
         (element->type < HR_PARQUET_BOOLEAN || element->type > HR_PARQUET_FIXED)) ||
        element->width < 0 || element->width > INT32_MAX)
        thrift->bad = true;
}

/* ---- types ---- */

/* What older writers say, as a logical type. */
static void set_logical(struct element *element)
{
    int64_t old = element->converted;

    if (element->logical != 0)
        return;
    switch (old) {
    case OLD_UTF8:
    case OLD_ENUM:
    case OLD_JSON:
        element->logical = LOGICAL_TEXT;
        return;
    case OLD_MAP:
    case OLD_MAP_KEY_VALUE:
        element->logical = LOGICAL_MAP;
        return;
    case OLD_LIST:
        element->logical = LOGICAL_LIST;
        return;
    case OLD_DECIMAL:
        element->logical = LOGICAL_DECIMAL;
        return;
    case OLD_DATE:
        element->logical = LOGICAL_DATE;
        return;
    case OLD_TIME_MILLIS:
    case OLD_TIME_MICROS:
        element->logical = LOGICAL_TIME;
        element->unit = old == OLD_TIME_MILLIS ? 'm' : 'u';
        return;
    case OLD_TIMESTAMP_MILLIS:
    case OLD_TIMESTAMP_MICROS:
        element->logical = LOGICAL_TIMESTAMP;
        element->unit = old == OLD_TIMESTAMP_MILLIS ? 'm' : 'u';
        return;
    default:
        break;
    }
    if (old >= OLD_UINT_8 && old <= OLD_INT_64) {
        element->logical = LOGICAL_INTEGER;
        element->is_signed = old >= OLD_INT_8;
        element->bits = 8 << (old - OLD_UINT_8) % 4;
    }
}

static char integer_letter(const struct element *element)
{
    const char *letters = element->is_signed ? "csil" : "CSIL";

    switch (element->bits) {
    case 8:
        return letters[0];
    case 16:
        return letters[1];
    case 32:
        return letters[2];
    default:
        return letters[3];
    }
}

/* The type as a format string of Arrow's C data interface; "?" if it has none. */
static void type_format(struct element *element, char format[HR_ARROW_FORMAT_MAX])
{
    bool is_int = element->type == HR_PARQUET_INT32 || element->type == HR_PARQUET_INT64;
    bool is_long = element->type == HR_PARQUET_INT64;
    static const char *const simple[] = {"b", "i", "l", "?", "f", "g", "z", "w:"};

    set_logical(element);
    snprintf(format, HR_ARROW_FORMAT_MAX, "%s", simple[element->type]);
    if (element->type == HR_PARQUET_FIXED)
        snprintf(format, HR_ARROW_FORMAT_MAX, "w:%" PRId64, element->width);
    if (element->logical == LOGICAL_UNKNOWN)
        snprintf(format, HR_ARROW_FORMAT_MAX, "n");
    else if (element->logical == LOGICAL_DECIMAL)
        snprintf(format, HR_ARROW_FORMAT_MAX, "d:");
    else if (element->converted == OLD_INTERVAL)
        snprintf(format, HR_ARROW_FORMAT_MAX, "ti");
    else if (element->logical == LOGICAL_F16 && element->width == 2)
        snprintf(format, HR_ARROW_FORMAT_MAX, "e");
    else if (element->type == HR_PARQUET_BYTES &&
             (element->logical == LOGICAL_TEXT || element->logical == LOGICAL_ENUM ||
              element->logical == LOGICAL_JSON))
        snprintf(format, HR_ARROW_FORMAT_MAX, "u");
    else if (is_int && element->logical == LOGICAL_INTEGER)
        snprintf(format, HR_ARROW_FORMAT_MAX, "%c", integer_letter(element));
    else if (is_int && !is_long && element->logical == LOGICAL_DATE)
        snprintf(format, HR_ARROW_FORMAT_MAX, "tdD");
    else if (is_int && element->logical == LOGICAL_TIME)
        snprintf(format, HR_ARROW_FORMAT_MAX, "tt%c", element->unit);
    else if (is_long && element->logical == LOGICAL_TIMESTAMP)
        snprintf(format, HR_ARROW_FORMAT_MAX, "ts%c:", element->unit);
}

static uint32_t stored_width(const struct element *element)
{
    static const uint8_t widths[] = {1, 4, 8, 12, 4, 8, 0, 0};

    return element->type == HR_PARQUET_FIXED ? (uint32_t)element->width
                                             : widths[element->type];
}

/* ---- leaves ---- */

/* Where in the schema a node is. */
struct place {
    struct hr_arrow_leaf leaf; /* with the name so far */
    int def;
    int depth;
};

static enum hr_err add_leaf(struct walk *walk, const struct hr_arrow_leaf *leaf,
                            struct hr_parquet_storage storage)
{
    struct hr_parquet_meta *meta = walk->meta;

    if (meta->leaf_count == HR_ARROW_COLUMNS_MAX)
        return hr__fail(walk->error, HR_ERR_LIMIT, "more than %d columns",
                        HR_ARROW_COLUMNS_MAX);
    if (!hr__array_room(&meta->leaves, meta->leaf_count, &meta->leaf_room, 1,
                        sizeof *meta->leaves) ||
        !hr__array_room(&meta->storages, meta->leaf_count, &meta->storage_room, 1,
                        sizeof *meta->storages))
        return hr__fail(walk->error, HR_ERR_MEMORY, "out of memory");
    meta->leaves[meta->leaf_count] = *leaf;
    meta->storages[meta->leaf_count++] = storage;
    return HR_OK;
}

/* A leaf of the schema, in a list or not. */
static enum hr_err
add_values(struct walk *walk, struct element *element, struct hr_arrow_leaf *leaf,
           struct hr_parquet_storage storage)
{
    char format[HR_ARROW_FORMAT_MAX];
    struct hr_arrow_column *column = &leaf->column;
    bool known;

    type_format(element, format);
    storage.type = (enum hr_parquet_type)element->type;
    storage.width = stored_width(element);
    leaf->node = (int)walk->meta->column_count++;
    known = storage.is_list ? hr__arrow_column("+l", format, NULL, column, &leaf->reason)
                            : hr__arrow_column(format, NULL, NULL, column, &leaf->reason);
    if (known)
        leaf->reason = NULL;
    else if (element->type == HR_PARQUET_INT96 && !storage.is_list)
        leaf->reason = "a timestamp of 96 bits (INT96)";
    if (known && column->width > storage.width && column->kind != HR_ARROW_BYTES &&
        column->kind != HR_ARROW_FIXED)
        leaf->reason = "a number that is wider than what it is stored in";
    column->is_bits = false; /* as bytes */
    return add_leaf(walk, leaf, storage);
}

/* Counts the columns below a node that cannot be a field. */
static enum hr_err skip_below(struct walk *walk, const struct element *element, int depth)
{
    if (depth > DEPTH_MAX)
        return hr__fail(walk->error, HR_ERR_LIMIT, "columns are nested more than %d deep",
                        DEPTH_MAX);
    if (element->children == 0)
        walk->meta->column_count++;
    for (int64_t i = 0; i < element->children && !walk->thrift.bad; i++) {
        struct element child;

        read_element(walk, &child);
        HR_TRY(skip_below(walk, &child, depth + 1));
    }
    return HR_OK;
}

static enum hr_err refuse_node(struct walk *walk, const struct element *element,
                               struct place *place, const char *reason)
{
    struct hr_parquet_storage storage = {0};

    place->leaf.reason = reason;
    HR_TRY(add_leaf(walk, &place->leaf, storage));
    return skip_below(walk, element, place->depth);
}

static const char not_a_number[] = "a list of what is not a number";

/* The only child of a list: a repeated value, or a group around the element. */
static enum hr_err add_list(struct walk *walk, struct place *place)
{
    struct hr_parquet_storage storage = {.is_list = true,
                                         .def_list = (uint8_t)place->def,
                                         .def_item = (uint8_t)(place->def + 1),
                                         .def_max = (uint8_t)(place->def + 1)};
    struct element items, element;

    read_element(walk, &items);
    if (walk->thrift.bad)
        return HR_OK;
    if (items.repetition != REPEATED)
        return refuse_node(walk, &items, place, not_a_number);
    if (items.children == 0)
        return add_values(walk, &items, &place->leaf, storage);
    if (items.children > 1)
        return refuse_node(walk, &items, place, not_a_number);
    read_element(walk, &element);
    if (walk->thrift.bad)
        return HR_OK;
    if (element.children > 0 || element.repetition == REPEATED ||
        (items.name_bytes == 5 && memcmp(items.name, "array", 5) == 0))
        return refuse_node(walk, &element, place, not_a_number);
    storage.def_max = (uint8_t)(storage.def_max + (element.repetition == OPTIONAL));
    return add_values(walk, &element, &place->leaf, storage);
}

static enum hr_err add_node(struct walk *walk, const struct place *above)
{
    struct place place = *above;
    struct hr_parquet_storage storage;
    struct element element;

    read_element(walk, &element);
    if (walk->thrift.bad)
        return HR_OK;
    if (++place.depth > DEPTH_MAX)
        return hr__fail(walk->error, HR_ERR_LIMIT, "columns are nested more than %d deep",
                        DEPTH_MAX);
    hr__arrow_leaf_name(&place.leaf, element.name, element.name_bytes);
    set_logical(&element);
    if (element.repetition == REPEATED && element.children > 0)
        return refuse_node(walk, &element, &place,
                           element.logical == LOGICAL_MAP ? "a map" : not_a_number);
    place.def += element.repetition == OPTIONAL;
    storage = (struct hr_parquet_storage){.def_max = (uint8_t)place.def};
    if (element.repetition == REPEATED) {
        storage.is_list = true;
        storage.def_list = (uint8_t)place.def;
        storage.def_max = storage.def_item = (uint8_t)(place.def + 1);
    }
    if (element.children == 0)
        return add_values(walk, &element, &place.leaf, storage);
    if (element.logical == LOGICAL_MAP)
        return refuse_node(walk, &element, &place, "a map");
    if (element.logical == LOGICAL_LIST)
        return element.children == 1 ? add_list(walk, &place)
                                     : refuse_node(walk, &element, &place, not_a_number);
    for (int64_t i = 0; i < element.children && !walk->thrift.bad; i++)
        HR_TRY(add_node(walk, &place));
    return HR_OK;
}

static enum hr_err read_schema(struct walk *walk, const struct hr_thrift_field *field)
{
    struct place top = {.leaf.parent = -1};
    struct element root;

    if (walk->meta->leaf_count > 0)
        return damaged(walk->error, "a second schema");
    walk->left = hr__thrift_list(&walk->thrift, field, HR_THRIFT_STRUCT);
    read_element(walk, &root);
    for (int64_t i = 0; i < root.children && !walk->thrift.bad; i++)
        HR_TRY(add_node(walk, &top));
    return walk->thrift.bad || walk->left > 0 ? damaged(walk->error, "its schema")
                                              : HR_OK;
}

/* ---- row groups ---- */

static void read_encodings(struct hr_thrift *thrift, const struct hr_thrift_field *field,
                           struct hr_parquet_chunk *chunk)
{
    for (size_t n = hr__thrift_list(thrift, field, HR_THRIFT_I32); n > 0; n--) {
        int64_t encoding = hr__thrift_element(thrift);

        if (encoding >= 0 && encoding < HR_PARQUET_ENCODINGS)
            chunk->encodings |= (uint16_t)(1u << encoding);
    }
}

static void read_page_counts(struct hr_thrift *thrift, const struct hr_thrift_field *list,
                             struct hr_parquet_chunk *chunk)
{
    for (size_t n = hr__thrift_list(thrift, list, HR_THRIFT_STRUCT); n > 0; n--) {
        struct hr_thrift_field field = {0};
        int64_t kind = -1, encoding = -1, count = 0;

        while (hr__thrift_next(thrift, &field))
            if (field.id == 1)
                kind = hr__thrift_int(thrift, &field);
            else if (field.id == 2)
                encoding = hr__thrift_int(thrift, &field);
            else if (field.id == 3)
                count = hr__thrift_int(thrift, &field);
            else
                hr__thrift_skip(thrift, field.type);
        chunk->has_pages = true;
        if ((kind == HR_PARQUET_DATA || kind == HR_PARQUET_DATA_2) && encoding >= 0 &&
            encoding < HR_PARQUET_ENCODINGS)
            chunk->pages[encoding] += (uint32_t)count;
    }
}

static void read_stats(struct hr_thrift *thrift, struct hr_parquet_stats *stats)
{
    struct hr_thrift_field field = {0};
    const void *data[7] = {NULL};
    size_t bytes[7] = {0};
    int low, high;

    while (hr__thrift_next(thrift, &field))
        if (field.id == 3)
            stats->nulls = hr__thrift_int(thrift, &field);
        else if (field.id == 1 || field.id == 2 || field.id == 5 || field.id == 6)
            data[field.id] = hr__thrift_binary(thrift, &field, &bytes[field.id]);
        else
            hr__thrift_skip(thrift, field.type);
    stats->is_old = data[5] == NULL || data[6] == NULL;
    low = stats->is_old ? 2 : 6;
    high = stats->is_old ? 1 : 5;
    if (data[low] == NULL || data[high] == NULL)
        return;
    stats->low = data[low];
    stats->low_bytes = bytes[low];
    stats->high = data[high];
    stats->high_bytes = bytes[high];
}

static enum hr_err read_chunk_meta(struct walk *walk, struct hr_parquet_chunk *chunk,
                                   struct hr_parquet_stats *stats)
{
    struct hr_thrift *thrift = &walk->thrift;
    struct hr_thrift_field field = {0};
    int64_t bytes = -1, data = -1, dictionary = 0;

    chunk->values = -1;
    chunk->codec = -1;
    while (hr__thrift_next(thrift, &field))
        switch (field.id) {
        case 2:
            read_encodings(thrift, &field, chunk);
            break;
        case 4:
            chunk->codec = (int)hr__thrift_int(thrift, &field);
            break;
        case 5:
            chunk->values = hr__thrift_int(thrift, &field);
            break;
        case 7:
            bytes = hr__thrift_int(thrift, &field);
            break;
        case 9:
            data = hr__thrift_int(thrift, &field);
            break;
        case 11:
            dictionary = hr__thrift_int(thrift, &field);
            break;
        case 12:
            if (hr__thrift_struct(thrift, &field))
                read_stats(thrift, stats);
            break;
        case 13:
            read_page_counts(thrift, &field, chunk);
            break;
        default:
            hr__thrift_skip(thrift, field.type);
        }
    if (dictionary > 0 && dictionary < data)
        data = dictionary;
    if (thrift->bad || chunk->values < 0 || bytes < 0 || data < 0 ||
        (uint64_t)data > walk->file_bytes ||
        (uint64_t)bytes > walk->file_bytes - (uint64_t)data)
        return damaged(walk->error, "where a column lies");
    chunk->at = (uint64_t)data;
    chunk->bytes = (uint64_t)bytes;
    return HR_OK;
}

static enum hr_err read_chunk(struct walk *walk, struct hr_parquet_chunk *chunk,
                              struct hr_parquet_stats *stats)
{
    struct hr_thrift *thrift = &walk->thrift;
    struct hr_thrift_field field = {0};
    bool has_meta = false;

    *chunk = (struct hr_parquet_chunk){0};
    *stats = (struct hr_parquet_stats){.nulls = -1};
    while (hr__thrift_next(thrift, &field))
        switch (field.id) {
        case 1:
            chunk->reason = "in another file";
            hr__thrift_skip(thrift, field.type);
            break;
        case 3:
            has_meta = hr__thrift_struct(thrift, &field);
            HR_TRY(read_chunk_meta(walk, chunk, stats));
            break;
        case 8:
            chunk->reason = "encrypted";
            hr__thrift_skip(thrift, field.type);
            break;
        default:
            hr__thrift_skip(thrift, field.type);
        }
    if (!has_meta && chunk->reason == NULL)
        return damaged(walk->error, "a column without metadata");
    return HR_OK;
}

static enum hr_err read_chunks(struct walk *walk, const struct hr_thrift_field *field)
{
    struct hr_parquet_meta *meta = walk->meta;
    size_t count = hr__thrift_list(&walk->thrift, field, HR_THRIFT_STRUCT);

    if (walk->thrift.bad || count != meta->column_count)
        return damaged(walk->error, "a row group has not the columns of the schema");
    if (!hr__array_room(&meta->chunks, meta->chunk_count, &meta->chunk_room, count,
                        sizeof *meta->chunks) ||
        !hr__array_room(&meta->stats, meta->chunk_count, &meta->stats_room, count,
                        sizeof *meta->stats))
        return hr__fail(walk->error, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < count; i++, meta->chunk_count++)
        HR_TRY(read_chunk(walk, &meta->chunks[meta->chunk_count],
                          &meta->stats[meta->chunk_count]));
    return HR_OK;
}

static enum hr_err read_group(struct walk *walk)
{
    struct hr_parquet_meta *meta = walk->meta;
    struct hr_thrift_field field = {0};
    size_t chunks = meta->chunk_count;
    int64_t rows = -1;

    while (hr__thrift_next(&walk->thrift, &field))
        if (field.id == 1)
            HR_TRY(read_chunks(walk, &field));
        else if (field.id == 3)
            rows = hr__thrift_int(&walk->thrift, &field);
        else
            hr__thrift_skip(&walk->thrift, field.type);
    if (walk->thrift.bad || rows < 0 || meta->chunk_count != chunks + meta->column_count)
        return damaged(walk->error, "a row group");
    if (rows > HR_PARQUET_ROWS_MAX)
        return hr__fail(walk->error, HR_ERR_LIMIT, "a row group of %" PRId64 " rows",
                        rows);
    if (!hr__array_room(&meta->groups, meta->group_count, &meta->group_room, 1,
                        sizeof *meta->groups))
        return hr__fail(walk->error, HR_ERR_MEMORY, "out of memory");
    meta->groups[meta->group_count++] = rows;
    meta->rows += rows;
    return HR_OK;
}

/* A list that does not fit the columns says nothing. */
static enum hr_err read_orders(struct walk *walk, const struct hr_thrift_field *list)
{
    struct hr_parquet_meta *meta = walk->meta;
    size_t count = hr__thrift_list(&walk->thrift, list, HR_THRIFT_STRUCT);
    bool fits = count > 0 && count == meta->column_count;

    if (fits && meta->orders == NULL) {
        meta->orders = hr__calloc(count, 1);
        if (meta->orders == NULL)
            return hr__fail(walk->error, HR_ERR_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < count && !walk->thrift.bad; i++) {
        struct hr_thrift_field field = {0};

        while (hr__thrift_next(&walk->thrift, &field)) {
            if (fits)
                meta->orders[i] =
                    field.id == 1 ? HR_PARQUET_ORDER_TYPE : HR_PARQUET_ORDER_OTHER;
            hr__thrift_skip(&walk->thrift, field.type);
        }
    }
    return HR_OK;
}

static enum hr_err
read_field(struct walk *walk, const struct hr_thrift_field *field, int64_t *ret_rows)
{
    size_t count;

    switch (field->id) {
    case 2:
        return read_schema(walk, field);
    case 3:
        *ret_rows = hr__thrift_int(&walk->thrift, field);
        return HR_OK;
    case 4:
        count = hr__thrift_list(&walk->thrift, field, HR_THRIFT_STRUCT);
        for (size_t i = 0; i < count; i++)
            HR_TRY(read_group(walk));
        return HR_OK;
    case 7:
        return read_orders(walk, field);
    default:
        hr__thrift_skip(&walk->thrift, field->type);
        return HR_OK;
    }
}

enum hr_err
hr__parquet_meta_read(const void *footer, size_t bytes, uint64_t file_bytes,
                      struct hr_parquet_meta *ret_meta, struct hr_error *reterr)
{
    struct walk walk = {
        .thrift = {footer, bytes, 0, false},
        .meta = ret_meta,
        .file_bytes = file_bytes,
        .error = reterr
    };
    struct hr_thrift_field field = {0};
    int64_t rows = -1;

    while (hr__thrift_next(&walk.thrift, &field))
        HR_TRY(read_field(&walk, &field, &rows));
    if (walk.thrift.bad || rows < 0 || ret_meta->column_count == 0)
        return damaged(reterr, "its beginning");
    if (rows != ret_meta->rows)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "damaged Parquet footer: %" PRId64 " rows in the file, %" PRId64
                        " in its row groups",
                        rows, ret_meta->rows);
    return HR_OK;
}

void hr__parquet_meta_finish(struct hr_parquet_meta *meta)
{
    hr__free(meta->leaves);
    hr__free(meta->storages);
    hr__free(meta->groups);
    hr__free(meta->chunks);
    hr__free(meta->stats);
    hr__free(meta->orders);
    *meta = (struct hr_parquet_meta){0};
}
