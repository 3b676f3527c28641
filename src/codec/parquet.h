/*
 * codec/parquet.h - Apache Parquet: the footer of a file, the headers of pages, and the
 * values of a page.
 *
 * Columns and cells are those of codec/arrow.h. Nothing is trusted: counts and offsets
 * are checked against their section, and memory against a limit, before they are used.
 * Messages name no file.
 */
#ifndef HR_CODEC_PARQUET_H
#define HR_CODEC_PARQUET_H

#include "codec/arrow.h"

#define HR_PARQUET_MARK "PAR1"
#define HR_PARQUET_MARK_BYTES 4
#define HR_PARQUET_TAIL 8 /* the last bytes of a file: size of the footer, mark */
#define HR_PARQUET_FOOTER_MAX ((size_t)1 << 30)
#define HR_PARQUET_ROWS_MAX INT32_MAX /* of a row group */

/* The tail of a file: bytes of the footer before it. HR_ERR_FORMAT, HR_ERR_LIMIT,
 * HR_ERR_UNSUPPORTED if it is encrypted. */
HR_CHECK enum hr_err
hr__parquet_tail(const void *tail, size_t *ret_footer, struct hr_error *reterr);

/* ---- footer ---- */

enum hr_parquet_type {
    HR_PARQUET_BOOLEAN,
    HR_PARQUET_INT32,
    HR_PARQUET_INT64,
    HR_PARQUET_INT96,
    HR_PARQUET_FLOAT,
    HR_PARQUET_DOUBLE,
    HR_PARQUET_BYTES,
    HR_PARQUET_FIXED,
};

enum hr_parquet_codec {
    HR_PARQUET_PLAIN,
    HR_PARQUET_SNAPPY,
    HR_PARQUET_GZIP,
    HR_PARQUET_LZO,
    HR_PARQUET_BROTLI,
    HR_PARQUET_LZ4_HADOOP,
    HR_PARQUET_ZSTD,
    HR_PARQUET_LZ4,
};
/* "SNAPPY"; or NULL: there is no such codec. */
const char *hr__parquet_codec_name(int codec);

/* How a leaf is stored. */
struct hr_parquet_storage {
    enum hr_parquet_type type;
    uint32_t width; /* bytes of a stored value; 0 for BYTES */
    bool is_list;
    uint8_t def_max;            /* definition level of a value that is there */
    uint8_t def_list, def_item; /* of a list that is there, and of an element */
};

#define HR_PARQUET_ENCODINGS 10

struct hr_parquet_chunk { /* a column of a row group */
    uint64_t at, bytes;   /* its pages in the file */
    int64_t values;
    int codec;
    const char *reason; /* why it cannot be read; or NULL */
    uint16_t encodings; /* bit of each that it uses */
    bool has_pages;     /* data pages are counted, by encoding */
    uint32_t pages[HR_PARQUET_ENCODINGS];
};

/* What the footer says of a chunk's values. Bounds are encoded as PLAIN values are, need
 * not be tight, and show the footer's bytes; NULL: none. */
struct hr_parquet_stats {
    int64_t nulls; /* -1: not said */
    const uint8_t *low, *high;
    size_t low_bytes, high_bytes;
    bool is_old; /* in the order of signed values, whatever the type */
};

/* Of a column's bounds. */
enum hr_parquet_order {
    HR_PARQUET_ORDER_NONE, /* not said */
    HR_PARQUET_ORDER_TYPE, /* that of its type */
    HR_PARQUET_ORDER_OTHER,
};

struct hr_parquet_meta {
    struct hr_arrow_leaf *leaves;        /* node: number of its chunk in a row group */
    struct hr_parquet_storage *storages; /* of the leaves */
    size_t leaf_count, leaf_room, storage_room;
    size_t column_count; /* chunks of a row group */
    int64_t *groups;     /* rows of each row group */
    size_t group_count, group_room;
    struct hr_parquet_chunk *chunks; /* column_count of each row group */
    struct hr_parquet_stats *stats;  /* of the chunks */
    size_t chunk_count, chunk_room, stats_room;
    uint8_t *orders; /* enum hr_parquet_order, of the columns of a row group; or NULL */
    int64_t rows;
};

/* Reads the footer of a file of `file_bytes`, which must stay while the statistics are
 * used; ends with hr__parquet_meta_finish(), also
 * after a failure, of what the caller has zeroed. */
HR_CHECK enum hr_err
hr__parquet_meta_read(const void *footer, size_t bytes, uint64_t file_bytes,
                      struct hr_parquet_meta *ret_meta, struct hr_error *reterr);
void hr__parquet_meta_finish(struct hr_parquet_meta *meta);

/* ---- pages ---- */

enum hr_parquet_kind {
    HR_PARQUET_DATA,
    HR_PARQUET_INDEX,
    HR_PARQUET_DICTIONARY,
    HR_PARQUET_DATA_2, /* data page v2 */
};

enum hr_parquet_encoding {
    HR_PARQUET_ENC_PLAIN = 0,
    HR_PARQUET_ENC_PLAIN_DICTIONARY = 2,
    HR_PARQUET_ENC_RLE = 3,
    HR_PARQUET_ENC_BIT_PACKED = 4,
    HR_PARQUET_ENC_DELTA = 5,
    HR_PARQUET_ENC_DELTA_LENGTH = 6,
    HR_PARQUET_ENC_DELTA_BYTES = 7,
    HR_PARQUET_ENC_RLE_DICTIONARY = 8,
    HR_PARQUET_ENC_SPLIT = 9,
};

struct hr_parquet_header {
    enum hr_parquet_kind kind;
    uint32_t head, stored, unpacked; /* bytes: of the header, of the page in the file, of
                                        the page */
    bool has_crc, is_packed;
    uint32_t crc; /* of the stored bytes */
    uint32_t values;
    int encoding, def_encoding, rep_encoding;
    uint32_t rows, nulls, def_bytes, rep_bytes; /* DATA_2 */
};

/* The header at the beginning of the bytes, whose page lies inside them. */
HR_CHECK enum hr_err
hr__parquet_header(const void *data, size_t bytes, struct hr_parquet_header *ret_header,
                   struct hr_error *reterr);

struct hr_parquet_text {
    const uint8_t *data;
    uint32_t bytes;
};

/* The rows of a page: of a list, those of consecutive pages. */
struct hr_parquet_page {
    uint64_t rows, elements;
    const uint8_t *present; /* of each row, enum hr_parquet_present; NULL: YES */
    const uint8_t *data;    /* elements; of a list, those of all rows */
    const struct hr_parquet_text *texts; /* of byte strings */
    const uint64_t *offsets;             /* of a list: rows + 1 */
    void *own[4];
    uint64_t bytes;  /* memory */
    bool shows_body; /* elements or texts lie in the body */
};
enum hr_parquet_present {
    HR_PARQUET_NULL,
    HR_PARQUET_YES,
    HR_PARQUET_HOLES, /* a list with a null in it */
};

/* A page that is unpacked. */
struct hr_parquet_body {
    const uint8_t *levels; /* DATA_2: rep_bytes + def_bytes; else among the values */
    const uint8_t *values;
    size_t bytes; /* of the values */
};

/*
 * Decodes a page of data, or a dictionary, and appends its rows to *page, which is zeroed
 * before its first one, and of flat columns takes only one. `dictionary` is that of the
 * column, or NULL. HR_ERR_LIMIT if *page would take more than `bytes_max`. The values may
 * show the body's bytes and the dictionary's, which must stay. The caller ends with
 * hr__parquet_page_finish(), also after a failure.
 */
HR_CHECK enum hr_err
hr__parquet_decode(const struct hr_arrow_column *column,
                   const struct hr_parquet_storage *storage,
                   const struct hr_parquet_header *header,
                   const struct hr_parquet_body *body,
                   const struct hr_parquet_page *dictionary, uint64_t bytes_max,
                   struct hr_parquet_page *page, struct hr_error *reterr);
void hr__parquet_page_finish(struct hr_parquet_page *page);

/* The cell of a row (< rows). HR_ERR_FORMAT for a list with a null in it. */
HR_CHECK enum hr_err
hr__parquet_cell(const struct hr_arrow_column *column, const struct hr_parquet_page *page,
                 uint64_t row, struct hr_arrow_cell *ret_cell, struct hr_error *reterr);

/* The numbers of the rows from `row` on up to the next null, as one cell: *ret_rows of
 * them. Of columns of one number in each row. */
void hr__parquet_run(const struct hr_arrow_column *column,
                     const struct hr_parquet_page *page, uint64_t row,
                     struct hr_arrow_cell *ret_cell, uint64_t *ret_rows);

/* ---- encodings: codec/parquet_values.c ---- */

/* Numbers of `bits` bits (<= 32) in runs and packed groups. */
struct hr_parquet_runs {
    const uint8_t *at, *end;
    unsigned bits;
    uint64_t left; /* in the run */
    bool is_packed;
    uint32_t value;
    uint64_t bit; /* of packed ones: the next one's, from `at` */
};
void hr__parquet_runs_begin(struct hr_parquet_runs *runs, unsigned bits, const void *data,
                            size_t bytes);
/* The next `count` numbers; false if there are fewer. */
HR_CHECK bool
hr__parquet_runs_read(struct hr_parquet_runs *runs, uint32_t *to, size_t count);
/* Whether all are read, but for those that fill the last group. */
bool hr__parquet_runs_end(const struct hr_parquet_runs *runs);
/* Whether the next `count` numbers are all `value`, and one run; then they are read. */
bool hr__parquet_runs_are(struct hr_parquet_runs *runs, uint32_t value, uint64_t count);

/* DELTA_BINARY_PACKED: `count` numbers of `width` (4 or 8) bytes from *data, which moves
 * past them; false if damaged. */
HR_CHECK bool hr__parquet_delta(const uint8_t **data, const uint8_t *end, unsigned width,
                                size_t count, void *to);

#endif
