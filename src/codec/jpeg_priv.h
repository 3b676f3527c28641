/*
 * codec/jpeg_priv.h - shared by the files of the JPEG decoder: header, tables, state of
 * the entropy decoder, and a table of inner loops per instruction set.
 *
 * Coefficients are stored in groups of four horizontally adjacent blocks, row by row: row
 * k of block b is at [32 * k + 8 * b]. So one register holds the same row of all four,
 * and the transform writes 32 pixels of a row at once. The 256 coefficients of a group
 * are followed by a margin for the stores of table entries that have no value.
 */
#ifndef HR_CODEC_JPEG_PRIV_H
#define HR_CODEC_JPEG_PRIV_H

#include "headrace/base.h"

#define HR_JPEG_BITS 11 /* that index a look-up table */
#define HR_JPEG_LOOKS (1 << HR_JPEG_BITS)
#define HR_JPEG_GROUP 288    /* coefficients from one group to the next */
#define HR_JPEG_BATCH 16     /* MCUs decoded before they are transformed */
#define HR_JPEG_BLOCKS_MAX 6 /* in an MCU */
/* Zero bytes after the unstuffed data: more than the longest MCU (6 blocks of 64 symbols
 * of at most 16 + 11 bits) and a refill. Bounds are checked once per MCU. */
#define HR_JPEG_PAD 1536
#define HR_JPEG_VALUE_MAX 8191 /* of coefficient times step; see jpeg_idct.h */

/* ---- the header ---- */

struct hr_jpeg_component {
    int32_t id, h, v; /* sampling factors */
    int32_t quant, dc, ac;
};

/* Pointers are into the file. */
struct hr_jpeg_header {
    int32_t width, height, components;
    struct hr_jpeg_component component[3];
    const uint8_t *dc[4], *ac[4];   /* DHT: 16 counts, then the symbols; or NULL */
    uint16_t quant[4][64];          /* natural order; [0] is 0 if undefined */
    int32_t mcu_rows_per_read;      /* rows of MCUs that libjpeg reads at a time */
    int32_t restart;                /* MCUs between restart markers; 0: none */
    const uint8_t *scan, *data_end; /* start of the entropy-coded data; end of the file */
    bool jfif, adobe;
    int32_t adobe_transform;
};

/* Maps zigzag index to natural order. */
extern const uint8_t hr__jpeg_natural[64];

/* Returns false to decline. */
HR_CHECK bool
hr__jpeg_parse(const uint8_t *data, size_t bytes, struct hr_jpeg_header *ret_header);

/* ---- Huffman tables ---- */

/*
 * Indexed by the next 11 bits of the data. An entry of `look` has the value of the
 * coefficient in its upper half, the step to its position (run + 1) in the second byte,
 * and the number of bits of code plus value in the first. The end of a block is a step of
 * HR_JPEG_END, which ends the loop as the last coefficient does. If code and value do not
 * fit in 11 bits, the first byte is 0, the second the length of the code (0: longer than
 * 11 bits, or invalid), the third the symbol.
 *
 * `step` is for parsing only: length of the code << 16, step << 8, bits of code plus
 * value; 0 if the code does not fit. `skip` combines up to four symbols: sum of their
 * steps << 8, total bits; 0 if even the first is too long.
 *
 * `look` treats AC values of more than `size_max` bits as if they did not fit, so that
 * the others need no check against HR_JPEG_VALUE_MAX.
 */
struct hr_jpeg_table {
    uint32_t look[HR_JPEG_LOOKS];
    uint32_t step[HR_JPEG_LOOKS]; /* for AC tables */
    uint16_t skip[HR_JPEG_LOOKS]; /* for AC tables, if `skips` */
    uint32_t limit[17]; /* first 16-bit pattern after the codes of that length */
    int32_t offset[17]; /* code of that length to index of its symbol */
    uint8_t counts[16], symbols[256];
    int32_t size_max;
    bool made, skips;
};
#define HR_JPEG_END 128

/* Builds the table from a DHT segment's counts and symbols, unless it already matches.
 * `size_max` is 0 for DC. Returns false to decline; then the table is not `made`. */
HR_CHECK bool
hr__jpeg_table_make(struct hr_jpeg_table *table, const uint8_t *code, int size_max);

/* ---- entropy decoding ---- */

enum hr_jpeg_want {
    HR_JPEG_NOTHING, /* skip the block */
    HR_JPEG_DC,      /* only its mean */
    HR_JPEG_LOW, /* the coefficients a reduced transform uses: zigzag index <= `last` */
    HR_JPEG_ALL,
};

struct hr_jpeg_block {
    const struct hr_jpeg_table *dc, *ac;
    int32_t component;
    int32_t x, step_x; /* batch column of this block in the first MCU, and the increment
                          per MCU */
    int16_t *groups;   /* its row of blocks in the batch */
    const int16_t *quant; /* natural order */
    enum hr_jpeg_want want;
    uint32_t last; /* for LOW */
};

struct hr_jpeg_scan {
    uint64_t bits; /* the next bits, most significant first */
    uint64_t left; /* number of valid bits: 0..63, in the low six bits */
    const uint8_t *at;
    const uint8_t *end; /* end of the unstuffed data; HR_JPEG_PAD zero bytes follow */
    int32_t predictor[3];
    int32_t dc_max[3]; /* larger absolute means are declined; see jpeg_idct.h */
    int32_t first;     /* next MCU of the batch */
    int32_t block_count;
    struct hr_jpeg_block block[HR_JPEG_BLOCKS_MAX];
};

/* ---- inner loops ---- */

struct hr_jpeg_kernels {
    /* Copies data without stuffed zeros up to a marker; returns the marker's position, or
     * NULL if there is none. May overwrite up to 64 bytes after *ret_to. */
    const uint8_t *(*unstuff)(const uint8_t *from, const uint8_t *end, uint8_t *to,
                              uint8_t **ret_to);
    void (*make_skip)(struct hr_jpeg_table *table);
    /* Skips the next `count` MCUs, or decodes them into the batch (count <=
     * HR_JPEG_BATCH, coefficients zeroed before). Returns false to decline. */
    bool (*skip)(struct hr_jpeg_scan *scan, int32_t count);
    bool (*decode)(struct hr_jpeg_scan *scan, int32_t count);
    /* Transforms `count` groups to blocks of 1, 2, 4, 8 pixels (indexed by log2) and
     * zeroes them. Returns false if a block is outside the range in which all
     * implementations agree (jpeg_idct.h). */
    bool (*idct[4])(int16_t *groups, const int16_t *quant, int32_t count, uint8_t *out,
                    ptrdiff_t stride);
    /* Upsample a row as libjpeg-turbo does: to twice the width (triangle filter; n
     * inputs, 2 n outputs, the ends replicated), or between two rows. `sums` has n + 2
     * elements. `far` is the row above (bias 1) or below (bias 2). */
    void (*wider)(const uint8_t *in, uint16_t *sums, uint8_t *out, int32_t n);
    void (*wider_between)(const uint8_t *near, const uint8_t *far, uint16_t *sums,
                          uint8_t *out, int32_t n);
    void (*between)(const uint8_t *near, const uint8_t *far, int bias, uint8_t *out,
                    int32_t n);
    void (*rgb)(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *out,
                int32_t n);
};

extern const struct hr_jpeg_kernels hr__jpeg_kernels_c;
extern const struct hr_jpeg_kernels hr__jpeg_kernels_neon;
extern const struct hr_jpeg_kernels hr__jpeg_kernels_avx2;
extern const struct hr_jpeg_kernels hr__jpeg_kernels_avx512;
/* The best table at or below hr__isa(). */
const struct hr_jpeg_kernels *hr__jpeg_kernels(void);

#endif
