/*
 * codec/parquet_page.c - the header of a page, and its rows.
 *
 * Levels are read first: they say which rows and elements have a value. Values are then
 * decoded one after the other, and moved to where they belong.
 */
#include "codec/parquet.h"

#include <assert.h>
#include <string.h>

#include "codec/thrift.h"
#include "core/alloc.h"
#include "core/error.h"

/* Rows that are looked through for a null at once. */
#define RUN_MAX 1024

static enum hr_err damaged(struct hr_error *reterr, const char *what)
{
    return hr__fail(reterr, HR_ERR_FORMAT, "a damaged page: %s", what);
}

/* ---- headers ---- */

struct head {
    struct hr_thrift thrift;
    struct hr_parquet_header *header;
    bool has_kind;
};

/* A count or size. */
static uint32_t read_u32(struct hr_thrift *thrift, const struct hr_thrift_field *field)
{
    int64_t number = hr__thrift_int(thrift, field);

    if (number < 0 || number > INT32_MAX)
        thrift->bad = true;
    return thrift->bad ? 0 : (uint32_t)number;
}

/* Of a data page, or a dictionary, whose first two fields are the same. */
static void read_data(struct hr_thrift *thrift, struct hr_parquet_header *header)
{
    struct hr_thrift_field field = {0};

    while (hr__thrift_next(thrift, &field))
        switch (field.id) {
        case 1:
            header->values = read_u32(thrift, &field);
            break;
        case 2:
            header->encoding = (int)read_u32(thrift, &field);
            break;
        case 3:
            if (header->kind == HR_PARQUET_DATA) {
                header->def_encoding = (int)read_u32(thrift, &field);
                break;
            }
            hr__thrift_skip(thrift, field.type);
            break;
        case 4:
            header->rep_encoding = (int)read_u32(thrift, &field);
            break;
        default:
            hr__thrift_skip(thrift, field.type);
        }
}

static void read_data_2(struct hr_thrift *thrift, struct hr_parquet_header *header)
{
    struct hr_thrift_field field = {0};

    header->is_packed = true;
    header->def_encoding = header->rep_encoding = HR_PARQUET_ENC_RLE;
    while (hr__thrift_next(thrift, &field))
        switch (field.id) {
        case 1:
            header->values = read_u32(thrift, &field);
            break;
        case 2:
            header->nulls = read_u32(thrift, &field);
            break;
        case 3:
            header->rows = read_u32(thrift, &field);
            break;
        case 4:
            header->encoding = (int)read_u32(thrift, &field);
            break;
        case 5:
            header->def_bytes = read_u32(thrift, &field);
            break;
        case 6:
            header->rep_bytes = read_u32(thrift, &field);
            break;
        case 7:
            header->is_packed = hr__thrift_bool(thrift, &field);
            break;
        default:
            hr__thrift_skip(thrift, field.type);
        }
}

static void read_field(struct head *head, const struct hr_thrift_field *field)
{
    struct hr_thrift *thrift = &head->thrift;
    struct hr_parquet_header *header = head->header;
    bool mine = (field->id == 5 && header->kind == HR_PARQUET_DATA) ||
                (field->id == 7 && header->kind == HR_PARQUET_DICTIONARY) ||
                (field->id == 8 && header->kind == HR_PARQUET_DATA_2);

    switch (field->id) {
    case 1:
        header->kind = (enum hr_parquet_kind)read_u32(thrift, field);
        return;
    case 2:
        header->unpacked = read_u32(thrift, field);
        return;
    case 3:
        header->stored = read_u32(thrift, field);
        return;
    case 4:
        header->crc = (uint32_t)hr__thrift_int(thrift, field);
        header->has_crc = true;
        return;
    default:
        break;
    }
    if (!mine) {
        hr__thrift_skip(thrift, field->type);
        return;
    }
    head->has_kind = hr__thrift_struct(thrift, field);
    header->is_packed = true;
    if (header->kind == HR_PARQUET_DATA_2)
        read_data_2(thrift, header);
    else
        read_data(thrift, header);
}

enum hr_err
hr__parquet_header(const void *data, size_t bytes, struct hr_parquet_header *ret_header,
                   struct hr_error *reterr)
{
    struct head head = {
        .thrift = {data, bytes, 0, false},
          .header = ret_header
    };
    struct hr_thrift_field field = {0};

    *ret_header = (struct hr_parquet_header){.encoding = -1};
    ret_header->kind = HR_PARQUET_INDEX;
    while (hr__thrift_next(&head.thrift, &field))
        read_field(&head, &field);
    if (head.thrift.bad || head.thrift.at > UINT32_MAX ||
        ret_header->stored > bytes - head.thrift.at ||
        ret_header->kind > HR_PARQUET_DATA_2 ||
        (ret_header->kind != HR_PARQUET_INDEX &&
         (!head.has_kind || ret_header->encoding < 0)) ||
        (uint64_t)ret_header->def_bytes + ret_header->rep_bytes > ret_header->stored ||
        (uint64_t)ret_header->def_bytes + ret_header->rep_bytes > ret_header->unpacked)
        return hr__fail(reterr, HR_ERR_FORMAT, "the header of a page is damaged");
    ret_header->head = (uint32_t)head.thrift.at;
    return HR_OK;
}

/* ---- decoding ---- */

struct decode {
    const struct hr_arrow_column *column;
    const struct hr_parquet_storage *storage;
    const struct hr_parquet_header *header;
    const uint8_t *at, *end; /* of what is not read yet */
    const struct hr_parquet_page *dictionary;
    struct hr_parquet_page *page;
    uint64_t bytes_max;
    struct hr_error *error;
};

static bool is_text(const struct hr_arrow_column *column)
{
    return column->kind == HR_ARROW_BYTES;
}

/* Bytes of an element of the page. */
static size_t element_bytes(const struct hr_arrow_column *column)
{
    return column->kind == HR_ARROW_FIXED ? (size_t)column->size : column->width;
}

static bool is_coded(const struct hr_parquet_header *header)
{
    return header->encoding == HR_PARQUET_ENC_PLAIN_DICTIONARY ||
           header->encoding == HR_PARQUET_ENC_RLE_DICTIONARY;
}

static enum hr_err no_memory(struct decode *d)
{
    return hr__fail(d->error, HR_ERR_MEMORY, "out of memory for a page of %u values",
                    (unsigned)d->header->values);
}

/* Makes *own `bytes` bytes large, and keeps what was in it. */
static enum hr_err grow(struct decode *d, int own, uint64_t bytes, void **ret_memory)
{
    void *memory;

    *ret_memory = NULL;
    if (bytes > d->bytes_max || d->page->bytes > d->bytes_max - bytes)
        return hr__fail(d->error, HR_ERR_LIMIT,
                        "its values take more memory than page_max (%llu bytes)",
                        (unsigned long long)d->bytes_max);
    memory = hr__realloc(d->page->own[own], (size_t)bytes + 64);
    if (memory == NULL)
        return no_memory(d);
    d->page->own[own] = memory;
    *ret_memory = memory;
    return HR_OK;
}

enum { OWN_PRESENT, OWN_DATA, OWN_OFFSETS, OWN_BYTES };

/* ---- levels ---- */

static unsigned bits_of(unsigned level)
{
    return level > 0 ? 32 - (unsigned)__builtin_clz(level) : 0;
}

/* The bytes of levels; of the first version they begin with their number. */
static enum hr_err
level_bytes(struct decode *d, int encoding, const uint8_t **ret_data, size_t *ret_bytes)
{
    uint32_t bytes;

    *ret_data = NULL;
    *ret_bytes = 0;
    if (encoding != HR_PARQUET_ENC_RLE)
        return hr__fail(d->error, HR_ERR_UNSUPPORTED,
                        "levels in encoding %d, which only writers of before 2014 used: "
                        "write the file again",
                        encoding);
    if (d->end - d->at < 4)
        return damaged(d->error, "it is too short");
    memcpy(&bytes, d->at, 4);
    d->at += 4;
    if (bytes > (size_t)(d->end - d->at))
        return damaged(d->error, "its levels are not inside it");
    *ret_data = d->at;
    *ret_bytes = bytes;
    d->at += bytes;
    return HR_OK;
}

#define LEVELS_AT_ONCE 256

static enum hr_err
read_levels(struct decode *d, struct hr_parquet_runs *runs, unsigned most, uint8_t *to)
{
    uint32_t some[LEVELS_AT_ONCE], count = d->header->values;

    for (uint32_t i = 0; i < count;) {
        uint32_t take = count - i < LEVELS_AT_ONCE ? count - i : LEVELS_AT_ONCE;

        if (!hr__parquet_runs_read(runs, some, take))
            return damaged(d->error, "levels are missing");
        for (uint32_t k = 0; k < take; k++) {
            if (some[k] > most)
                return damaged(d->error, "a level is too high");
            to[i++] = (uint8_t)some[k];
        }
    }
    return HR_OK;
}

struct levels {
    struct hr_parquet_runs rep, def;
};

static enum hr_err
find_levels(struct decode *d, const uint8_t *sections, struct levels *ret_levels)
{
    const uint8_t *rep = sections, *def = sections + d->header->rep_bytes;
    size_t rep_bytes = d->header->rep_bytes, def_bytes = d->header->def_bytes;
    bool old = d->header->kind == HR_PARQUET_DATA;

    if (old && d->storage->is_list)
        HR_TRY(level_bytes(d, d->header->rep_encoding, &rep, &rep_bytes));
    if (old && d->storage->def_max > 0)
        HR_TRY(level_bytes(d, d->header->def_encoding, &def, &def_bytes));
    hr__parquet_runs_begin(&ret_levels->rep, 1, rep, rep_bytes);
    hr__parquet_runs_begin(&ret_levels->def, bits_of(d->storage->def_max), def,
                           def_bytes);
    return HR_OK;
}

/* Headers have no checksum: where the page has, that the levels fill their section says
 * that its size is right. */
static enum hr_err check_levels(struct decode *d, const struct levels *levels)
{
    if (d->header->kind != HR_PARQUET_DATA_2 || !d->header->has_crc ||
        d->header->values == 0)
        return HR_OK;
    if ((!d->storage->is_list && d->header->rep_bytes > 0) ||
        (d->storage->def_max == 0 && d->header->def_bytes > 0) ||
        (d->storage->is_list && !hr__parquet_runs_end(&levels->rep)) ||
        (d->storage->def_max > 0 && !hr__parquet_runs_end(&levels->def)))
        return damaged(d->error, "its levels have another size");
    return HR_OK;
}

/* ---- values ---- */

/* The next length-prefixed byte string. */
static bool plain_text(struct decode *d, struct hr_parquet_text *text)
{
    if (d->end - d->at < 4)
        return false;
    memcpy(&text->bytes, d->at, 4);
    d->at += 4;
    if (text->bytes > (size_t)(d->end - d->at))
        return false;
    text->data = d->at;
    d->at += text->bytes;
    return true;
}

static enum hr_err plain(struct decode *d, size_t count, void *to)
{
    size_t width = d->storage->width;

    if (is_text(d->column)) {
        for (size_t i = 0; i < count; i++)
            if (!plain_text(d, (struct hr_parquet_text *)to + i))
                return damaged(d->error, "its byte strings are not inside it");
        return HR_OK;
    }
    if (d->storage->type == HR_PARQUET_BOOLEAN) {
        if ((count + 7) / 8 > (size_t)(d->end - d->at))
            return damaged(d->error, "values are missing");
        for (size_t i = 0; i < count; i++)
            ((uint8_t *)to)[i] = d->at[i / 8] >> i % 8 & 1;
        return HR_OK;
    }
    if (width > 0 && count > (size_t)(d->end - d->at) / width)
        return damaged(d->error, "values are missing");
    memcpy(to, d->at, count * width);
    return HR_OK;
}

static enum hr_err runs_of_bools(struct decode *d, size_t count, uint8_t *to)
{
    struct hr_parquet_runs runs;
    const uint8_t *data;
    uint32_t some[LEVELS_AT_ONCE];
    size_t bytes;

    HR_TRY(level_bytes(d, HR_PARQUET_ENC_RLE, &data, &bytes));
    hr__parquet_runs_begin(&runs, 1, data, bytes);
    for (size_t i = 0; i < count;) {
        size_t take = count - i < LEVELS_AT_ONCE ? count - i : LEVELS_AT_ONCE;

        if (!hr__parquet_runs_read(&runs, some, take))
            return damaged(d->error, "values are missing");
        for (size_t k = 0; k < take; k++)
            to[i++] = some[k] == 1;
    }
    return HR_OK;
}

/* Copies entries of the dictionary. */
static void look_up(struct decode *d, const uint32_t *indices, size_t count, void *to)
{
    const struct hr_parquet_page *dictionary = d->dictionary;
    size_t width = element_bytes(d->column);
    char *out = to;

    if (is_text(d->column))
        for (size_t i = 0; i < count; i++)
            ((struct hr_parquet_text *)to)[i] = dictionary->texts[indices[i]];
    else if (width == 8)
        for (size_t i = 0; i < count; i++)
            memcpy(out + 8 * i, dictionary->data + 8 * (size_t)indices[i], 8);
    else if (width == 4)
        for (size_t i = 0; i < count; i++)
            memcpy(out + 4 * i, dictionary->data + 4 * (size_t)indices[i], 4);
    else
        for (size_t i = 0; i < count; i++)
            memcpy(out + width * i, dictionary->data + width * indices[i], width);
}

static enum hr_err coded(struct decode *d, size_t count, char *to)
{
    size_t width =
        is_text(d->column) ? sizeof(struct hr_parquet_text) : element_bytes(d->column);
    uint32_t some[LEVELS_AT_ONCE];
    struct hr_parquet_runs runs;

    if (d->dictionary == NULL)
        return damaged(d->error, "its column has no dictionary");
    if (d->at == d->end || *d->at > 32)
        return damaged(d->error, "indices of the dictionary are missing");
    hr__parquet_runs_begin(&runs, *d->at, d->at + 1, (size_t)(d->end - d->at - 1));
    for (size_t i = 0; i < count;) {
        size_t take = count - i < LEVELS_AT_ONCE ? count - i : LEVELS_AT_ONCE;

        if (!hr__parquet_runs_read(&runs, some, take))
            return damaged(d->error, "indices of the dictionary are missing");
        for (size_t k = 0; k < take; k++)
            if (some[k] >= d->dictionary->rows)
                return damaged(d->error, "its dictionary has no such entry");
        look_up(d, some, take, to + i * width);
        i += take;
    }
    return HR_OK;
}

/* Bytes of each value are stored in streams: the first of all, the second of all. */
static enum hr_err split(struct decode *d, size_t count, uint8_t *to)
{
    size_t width = d->storage->width;

    if (width == 0 || count > (size_t)(d->end - d->at) / width)
        return damaged(d->error, "values are missing");
    for (size_t k = 0; k < width; k++)
        for (size_t i = 0; i < count; i++)
            to[i * width + k] = d->at[k * count + i];
    return HR_OK;
}

/* ---- byte strings as differences ---- */

/* Reads `count` lengths into fresh memory. */
static enum hr_err read_lengths(struct decode *d, size_t count, uint32_t **ret_lengths)
{
    *ret_lengths = hr__malloc(count * sizeof **ret_lengths + 1);
    if (*ret_lengths == NULL)
        return no_memory(d);
    return hr__parquet_delta(&d->at, d->end, 4, count, *ret_lengths)
               ? HR_OK
               : damaged(d->error, "lengths of its byte strings");
}

/* Takes byte strings of these lengths, which follow each other. */
static enum hr_err take_texts(struct decode *d, const uint32_t *lengths, size_t count,
                              struct hr_parquet_text *to)
{
    for (size_t i = 0; i < count; i++) {
        if (lengths[i] > (size_t)(d->end - d->at))
            return damaged(d->error, "its byte strings are not inside it");
        to[i] = (struct hr_parquet_text){d->at, lengths[i]};
        d->at += lengths[i];
    }
    return HR_OK;
}

static enum hr_err delta_lengths(struct decode *d, size_t count, void *to)
{
    uint32_t *lengths = NULL;
    enum hr_err code = read_lengths(d, count, &lengths);

    if (code == HR_OK)
        code = take_texts(d, lengths, count, to);
    hr__free(lengths);
    return code;
}

/* Puts byte strings together: the beginning of the one before, and what follows. */
static enum hr_err join(struct decode *d, const uint32_t *prefixes,
                        struct hr_parquet_text *texts, size_t count)
{
    uint64_t total = 0;
    uint8_t *out;
    void *memory;

    for (size_t i = 0; i < count; i++) {
        uint64_t before = i > 0 ? (uint64_t)prefixes[i - 1] + texts[i - 1].bytes : 0;

        if (prefixes[i] > before || (uint64_t)prefixes[i] + texts[i].bytes > UINT32_MAX)
            return damaged(d->error, "beginnings of its byte strings");
        total += (uint64_t)prefixes[i] + texts[i].bytes;
    }
    HR_TRY(grow(d, OWN_BYTES, total, &memory));
    d->page->bytes += total;
    out = memory;
    for (size_t i = 0; i < count; i++) {
        if (prefixes[i] > 0)
            memcpy(out, texts[i - 1].data, prefixes[i]);
        if (texts[i].bytes > 0)
            memcpy(out + prefixes[i], texts[i].data, texts[i].bytes);
        texts[i] = (struct hr_parquet_text){out, prefixes[i] + texts[i].bytes};
        out += texts[i].bytes;
    }
    return HR_OK;
}

static enum hr_err delta_texts(struct decode *d, size_t count, struct hr_parquet_text *to)
{
    uint32_t *prefixes = NULL;
    enum hr_err code = read_lengths(d, count, &prefixes);

    if (code == HR_OK)
        code = delta_lengths(d, count, to);
    if (code == HR_OK)
        code = join(d, prefixes, to, count);
    hr__free(prefixes);
    return code;
}

/* The same of values of one size. */
static enum hr_err delta_fixed(struct decode *d, size_t count, char *to)
{
    struct hr_parquet_text *texts = hr__malloc(count * sizeof *texts + 1);
    size_t width = d->storage->width;
    enum hr_err code;

    if (texts == NULL)
        return no_memory(d);
    code = delta_texts(d, count, texts);
    for (size_t i = 0; i < count && code == HR_OK; i++) {
        if (texts[i].bytes != width)
            code = damaged(d->error, "a value has another size");
        else if (width > 0)
            memcpy(to + i * width, texts[i].data, width);
    }
    hr__free(texts);
    return code;
}

/* `count` values, one after the other: texts, or of the width that they are stored in;
 * from a dictionary, that of the column. */
static enum hr_err read_values(struct decode *d, size_t count, void *to)
{
    enum hr_parquet_type type = d->storage->type;
    bool is_int = type == HR_PARQUET_INT32 || type == HR_PARQUET_INT64;
    int encoding = d->header->encoding;

    if (count == 0)
        return HR_OK;
    if (encoding == HR_PARQUET_ENC_PLAIN)
        return plain(d, count, to);
    if (is_coded(d->header))
        return coded(d, count, to);
    if (encoding == HR_PARQUET_ENC_RLE && type == HR_PARQUET_BOOLEAN)
        return runs_of_bools(d, count, to);
    if (encoding == HR_PARQUET_ENC_DELTA && is_int)
        return hr__parquet_delta(&d->at, d->end, d->storage->width, count, to)
                   ? HR_OK
                   : damaged(d->error, "its differences");
    if (encoding == HR_PARQUET_ENC_DELTA_LENGTH && type == HR_PARQUET_BYTES)
        return delta_lengths(d, count, to);
    if (encoding == HR_PARQUET_ENC_DELTA_BYTES && type == HR_PARQUET_BYTES)
        return delta_texts(d, count, to);
    if (encoding == HR_PARQUET_ENC_DELTA_BYTES && type == HR_PARQUET_FIXED)
        return delta_fixed(d, count, to);
    if (encoding == HR_PARQUET_ENC_SPLIT && type != HR_PARQUET_BYTES &&
        type != HR_PARQUET_BOOLEAN)
        return split(d, count, to);
    return hr__fail(d->error, HR_ERR_FORMAT,
                    "a page in encoding %d, which values of its type do not have",
                    encoding);
}

/* Integers that are stored in more bytes than they have. */
static void narrow(char *data, size_t count, size_t from, size_t to)
{
    for (size_t i = 0; i < count; i++)
        memmove(data + i * to, data + i * from, to);
}

/* Moves the values to the slots that have one, from the last on. */
static void
spread(char *data, size_t width, const uint8_t *has, size_t slots, size_t values)
{
    while (slots-- > 0) {
        if (has[slots])
            memmove(data + slots * width, data + --values * width, width);
        else
            memset(data + slots * width, 0, width);
    }
}

/* Decodes `values` values into `slots` slots at `to`, which has room for as many of the
 * stored width. has[i]: slot i has a value; NULL: all have. */
static enum hr_err
fill_slots(struct decode *d, const uint8_t *has, size_t slots, size_t values, void *to)
{
    size_t stored = d->storage->width, width = element_bytes(d->column);

    HR_TRY(read_values(d, values, to));
    if (is_text(d->column))
        width = sizeof(struct hr_parquet_text);
    else if (stored != width && !is_coded(d->header))
        narrow(to, values, stored, width);
    if (has != NULL && values < slots)
        spread(to, width, has, slots, values);
    return HR_OK;
}

/* Bytes of a slot while it is decoded. */
static uint64_t slot_bytes(const struct decode *d)
{
    size_t width = element_bytes(d->column);

    if (is_text(d->column))
        return sizeof(struct hr_parquet_text);
    return width > d->storage->width ? width : d->storage->width;
}

/* ---- flat columns ---- */

static enum hr_err
read_present(struct decode *d, struct levels *levels, size_t *ret_values)
{
    size_t rows = d->header->values;
    unsigned most = d->storage->def_max;
    void *memory;
    uint8_t *has;

    *ret_values = rows;
    if (most == 0 || hr__parquet_runs_are(&levels->def, most, rows))
        return HR_OK;
    HR_TRY(grow(d, OWN_PRESENT, rows, &memory));
    d->page->bytes += rows;
    d->page->present = has = memory;
    HR_TRY(read_levels(d, &levels->def, most, has));
    *ret_values = 0;
    for (size_t i = 0; i < rows; i++)
        *ret_values += has[i] = has[i] == most;
    return HR_OK;
}

static enum hr_err decode_flat(struct decode *d, struct levels *levels)
{
    struct hr_parquet_page *page = d->page;
    size_t rows = d->header->values, values;
    uint64_t bytes = slot_bytes(d) * rows;
    void *memory;

    if (page->rows > 0)
        return damaged(d->error, "a second one");
    HR_TRY(read_present(d, levels, &values));
    HR_TRY(check_levels(d, levels));
    page->rows = page->elements = rows;
    if (d->header->kind == HR_PARQUET_DATA_2 &&
        (d->header->rows != rows || d->header->nulls != rows - values))
        return damaged(d->error, "its rows and nulls are not as many as it says");
    if (values == rows && d->header->encoding == HR_PARQUET_ENC_PLAIN &&
        !is_text(d->column) && d->storage->type != HR_PARQUET_BOOLEAN &&
        d->storage->width == element_bytes(d->column)) {
        if ((uint64_t)(d->end - d->at) < bytes)
            return damaged(d->error, "values are missing");
        page->data = d->at;
        page->shows_body = true;
        return HR_OK;
    }
    HR_TRY(grow(d, OWN_DATA, bytes, &memory));
    page->bytes += bytes;
    HR_TRY(fill_slots(d, page->present, rows, values, memory));
    if (is_text(d->column)) {
        page->texts = memory;
        page->shows_body = !is_coded(d->header);
    } else {
        page->data = memory;
    }
    return HR_OK;
}

/* ---- lists ---- */

/* Makes room for the rows and elements that `count` levels may begin. */
static enum hr_err grow_list(struct decode *d, size_t count)
{
    struct hr_parquet_page *page = d->page;
    uint64_t slot = slot_bytes(d);
    uint64_t bytes = (page->rows + count) * 9 + 8 + (page->elements + count) * slot;
    void *memory;

    page->bytes = 0;
    if (bytes > d->bytes_max)
        return grow(d, OWN_DATA, bytes, &memory);
    HR_TRY(grow(d, OWN_PRESENT, page->rows + count, &memory));
    page->present = memory;
    HR_TRY(grow(d, OWN_OFFSETS, (page->rows + count + 1) * 8, &memory));
    page->offsets = memory;
    HR_TRY(grow(d, OWN_DATA, (page->elements + count) * slot, &memory));
    page->data = memory;
    page->bytes = bytes;
    return HR_OK;
}

/* Adds the rows of the levels; has[i] becomes whether element i of the page has a value.
 */
static enum hr_err add_rows(struct decode *d, const uint8_t *rep, uint8_t *has,
                            size_t *ret_elements, size_t *ret_values)
{
    const struct hr_parquet_storage *storage = d->storage;
    struct hr_parquet_page *page = d->page;
    uint8_t *present = d->page->own[OWN_PRESENT];
    uint64_t *offsets = d->page->own[OWN_OFFSETS];
    size_t elements = 0, values = 0;

    for (size_t i = 0; i < d->header->values; i++) {
        uint8_t def = has[i];

        if (rep[i] == 0) {
            present[page->rows] =
                def >= storage->def_list ? HR_PARQUET_YES : HR_PARQUET_NULL;
            offsets[page->rows++] = page->elements + elements;
        } else if (page->rows == 0 || def < storage->def_item) {
            return damaged(d->error, "an element belongs to no list");
        }
        if (def < storage->def_item)
            continue;
        has[elements] = def == storage->def_max;
        if (!has[elements])
            present[page->rows - 1] = HR_PARQUET_HOLES;
        values += has[elements++];
    }
    offsets[page->rows] = page->elements + elements;
    *ret_elements = elements;
    *ret_values = values;
    return HR_OK;
}

static enum hr_err decode_list(struct decode *d, struct levels *levels)
{
    size_t count = d->header->values, elements = 0, values = 0;
    uint64_t before = d->page->rows;
    uint8_t *rep, *def;
    enum hr_err code;

    HR_TRY(grow_list(d, count));
    rep = hr__malloc(2 * count + 1);
    if (rep == NULL)
        return no_memory(d);
    def = rep + count;
    code = read_levels(d, &levels->rep, 1, rep);
    if (code == HR_OK)
        code = read_levels(d, &levels->def, d->storage->def_max, def);
    if (code == HR_OK)
        code = check_levels(d, levels);
    if (code == HR_OK)
        code = add_rows(d, rep, def, &elements, &values);
    if (code == HR_OK && d->header->kind == HR_PARQUET_DATA_2 &&
        (d->page->rows - before != d->header->rows || values != count - d->header->nulls))
        code = damaged(d->error, "its rows and nulls are not as many as it says");
    if (code == HR_OK)
        code = fill_slots(d, def, elements, values,
                          (char *)d->page->own[OWN_DATA] +
                              d->page->elements * element_bytes(d->column));
    if (code == HR_OK)
        d->page->elements += elements;
    hr__free(rep);
    return code;
}

enum hr_err
hr__parquet_decode(const struct hr_arrow_column *column,
                   const struct hr_parquet_storage *storage,
                   const struct hr_parquet_header *header,
                   const struct hr_parquet_body *body,
                   const struct hr_parquet_page *dictionary, uint64_t bytes_max,
                   struct hr_parquet_page *page, struct hr_error *reterr)
{
    struct decode d = {.column = column,
                       .storage = storage,
                       .header = header,
                       .at = body->values,
                       .end = body->values + body->bytes,
                       .dictionary = dictionary,
                       .page = page,
                       .bytes_max = bytes_max,
                       .error = reterr};
    struct hr_parquet_storage flat = *storage;
    struct levels levels;

    if (header->kind == HR_PARQUET_DICTIONARY) {
        struct hr_parquet_header plain_header = *header;

        flat.is_list = false;
        flat.def_max = 0;
        plain_header.encoding = HR_PARQUET_ENC_PLAIN;
        d.storage = &flat;
        d.header = &plain_header;
        return decode_flat(&d, &levels);
    }
    HR_TRY(find_levels(&d, body->levels, &levels));
    return storage->is_list ? decode_list(&d, &levels) : decode_flat(&d, &levels);
}

void hr__parquet_page_finish(struct hr_parquet_page *page)
{
    for (size_t i = 0; i < sizeof page->own / sizeof page->own[0]; i++)
        hr__free(page->own[i]);
    *page = (struct hr_parquet_page){0};
}

enum hr_err
hr__parquet_cell(const struct hr_arrow_column *column, const struct hr_parquet_page *page,
                 uint64_t row, struct hr_arrow_cell *ret_cell, struct hr_error *reterr)
{
    uint8_t present = page->present != NULL ? page->present[row] : HR_PARQUET_YES;
    size_t width = element_bytes(column);
    uint64_t first = row;

    *ret_cell = (struct hr_arrow_cell){.is_null = present == HR_PARQUET_NULL, .count = 1};
    if (ret_cell->is_null)
        return HR_OK;
    if (present == HR_PARQUET_HOLES)
        return hr__fail(reterr, HR_ERR_FORMAT, "a list with a null in it");
    if (is_text(column)) {
        ret_cell->data = page->texts[row].data;
        ret_cell->bytes = page->texts[row].bytes;
        return HR_OK;
    }
    if (page->offsets != NULL) {
        first = page->offsets[row];
        ret_cell->count = (int64_t)(page->offsets[row + 1] - first);
    }
    ret_cell->bytes = column->kind == HR_ARROW_FIXED ? width : 0;
    ret_cell->data = page->data + first * width;
    return HR_OK;
}

void hr__parquet_run(const struct hr_arrow_column *column,
                     const struct hr_parquet_page *page, uint64_t row,
                     struct hr_arrow_cell *ret_cell, uint64_t *ret_rows)
{
    uint64_t most = page->rows - row < RUN_MAX ? page->rows - row : RUN_MAX, rows = 0;

    assert(row < page->rows && column->kind == HR_ARROW_NUMBER);
    if (page->present == NULL)
        rows = page->rows - row;
    while (page->present != NULL && rows < most &&
           page->present[row + rows] == HR_PARQUET_YES)
        rows++;
    *ret_cell = (struct hr_arrow_cell){.count = (int64_t)rows};
    if (rows > 0)
        ret_cell->data = page->data + row * element_bytes(column);
    *ret_rows = rows;
}
