/*
 * codec/arrow.h - columns of Apache Arrow arrays, and the cells of a row.
 *
 * A column is what its type says; a view is its buffers in one record batch, wherever
 * they come from: a file (codec/arrow_ipc.h) or another library (Arrow's C data
 * interface). Buffers are not trusted: an offset is checked when its cell is read.
 */
#ifndef HR_CODEC_ARROW_H
#define HR_CODEC_ARROW_H

#include "headrace/base.h"

#define HR_ARROW_NAME_MAX 63
#define HR_ARROW_FORMAT_MAX 32

enum hr_arrow_kind {
    HR_ARROW_NUMBER, /* a number, a bool, a time: a tensor without dimensions */
    HR_ARROW_BYTES,  /* a text or a byte string of any length */
    HR_ARROW_FIXED,  /* a byte string of `size` bytes */
    HR_ARROW_LIST,   /* any number of numbers: a tensor of one dimension */
    HR_ARROW_VECTOR, /* `size` numbers */
};

struct hr_arrow_column {
    char name[HR_ARROW_NAME_MAX + 1];
    enum hr_arrow_kind kind;
    bool is_text, is_large; /* offsets have 64 bits */
    bool is_bits;           /* bools: elements are bits */
    bool is_widened;        /* uint32 and uint64 become int64 */
    enum hr_dtype dtype;    /* of the tensor */
    uint8_t width;          /* bytes of a stored element */
    int32_t size;
    const char *unit;    /* of times: "days since 1970"; or NULL */
    bool has_dictionary; /* cells are indices of a view of texts or byte strings */
    bool index_signed;   /* with a dictionary: of indices, of index_width bytes */
    uint8_t index_width;
};

/* A column of a file, which may become a field: a top-level one, or "struct.child". */
struct hr_arrow_leaf {
    struct hr_arrow_column column;
    const char *reason; /* why it cannot; or NULL */
    bool bad_name;      /* the name is empty, cut, or not UTF-8 */
    int node;           /* its number in the schema's nodes */
    int parent;         /* of Arrow: the number of its struct, or -1 */
    int64_t dictionary; /* of Arrow: its id, with column.has_dictionary */
};
#define HR_ARROW_COLUMNS_MAX 4096

/* Appends `part` to the name, after a dot if there is one already. Sets bad_name if the
 * part is empty, does not fit, or is not UTF-8. */
void hr__arrow_leaf_name(struct hr_arrow_leaf *leaf, const void *part, size_t bytes);

/*
 * Sets all but the name from the type's format string as in the C data interface ("l",
 * "+w:4"). `child` is that of its only child, or NULL; `values` those of its dictionary,
 * or NULL: then `format` is the type of the indices. False if tensors and byte strings
 * cannot represent the type: *ret_reason says what it is.
 */
HR_CHECK bool hr__arrow_column(const char *format, const char *child, const char *values,
                               struct hr_arrow_column *column, const char **ret_reason);

/* The buffers of a column. Validity may be NULL: nothing is null there. */
struct hr_arrow_view {
    int64_t rows, first;     /* row 0 is element `first` of the buffers */
    const uint8_t *validity; /* bits of (first + rows) rows */
    const uint8_t *struct_validity;
    int64_t struct_first;
    const void *offsets; /* BYTES, LIST: first + rows + 1 */
    const uint8_t *data;
    uint64_t data_bytes; /* of a list: of its elements */
    const uint8_t *child_validity;
    int64_t child_rows, child_first;
    const struct hr_arrow_view *dictionary;
};

/* The bytes of a cell in its buffers. */
struct hr_arrow_cell {
    bool is_null;
    const uint8_t *data;
    uint64_t bytes; /* BYTES, FIXED */
    int64_t count;  /* elements of a tensor */
    uint64_t bit;   /* of bools: the first one, from the first bit of `data` */
};

/* HR_ERR_FORMAT if the offsets of the cell are damaged; messages name the column. */
HR_CHECK enum hr_err
hr__arrow_cell(const struct hr_arrow_column *column, const struct hr_arrow_view *view,
               int64_t row, struct hr_arrow_cell *ret_cell, struct hr_error *reterr);

/* The tensors of the rows from `row` on up to the next null, as one cell: *ret_rows of
 * them. Of NUMBER and VECTOR; 0 if `row` is null, or must be read by itself. */
void hr__arrow_run(const struct hr_arrow_column *column, const struct hr_arrow_view *view,
                   int64_t row, struct hr_arrow_cell *ret_cell, uint64_t *ret_rows);

/* Whether a tensor can show the elements where they are, if they are aligned. */
static inline bool hr__arrow_is_plain(const struct hr_arrow_column *column)
{
    return !column->is_bits && !column->is_widened;
}

/* Converts the elements of a tensor. HR_ERR_RANGE: one is larger than an int64. */
HR_CHECK enum hr_err
hr__arrow_elements(const struct hr_arrow_column *column, const struct hr_arrow_cell *cell,
                   void *to, struct hr_error *reterr);

#endif
