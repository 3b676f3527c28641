/*
 * codec/jpeg_priv.h - what the files of the JPEG decoder share: header, tables, the state
 * of the entropy decoder, and one table of inner loops per instruction set.
 *
 * Coefficients are kept in groups of four blocks that lie side by side, row by row: row
 * k of block b is at [32 * k + 8 * b]. So one register holds the same row of all four,
 * and the transform writes 32 pixels of a row at once. Behind the 256 coefficients each
 * group has a margin that takes the stores of entries that have no value.
 */
#ifndef HR_CODEC_JPEG_PRIV_H
#define HR_CODEC_JPEG_PRIV_H

#include "headrace/base.h"

#define HR_JPEG_BITS 11 /* of the index of a look-up table */
#define HR_JPEG_LOOKS (1 << HR_JPEG_BITS)
#define HR_JPEG_GROUP 288    /* coefficients from one group of four blocks to the next */
#define HR_JPEG_BATCH 16     /* MCUs between entropy decoding and transform */
#define HR_JPEG_BLOCKS_MAX 6 /* in an MCU */
/* Zero bytes behind the unstuffed data: more than the longest MCU, 6 blocks of 64 symbols
 * of at most 16 + 11 bits, and a refill. Bounds are checked once per MCU. */
#define HR_JPEG_PAD 1536
#define HR_JPEG_VALUE_MAX 8191 /* of coefficients times their steps, see jpeg_idct.h */

/* ---- the header ---- */

struct hr_jpeg_component {
    int32_t id, h, v; /* sampling factors */
    int32_t quant, dc, ac;
};

/* Points into the file. */
struct hr_jpeg_header {
    int32_t width, height, components;
    struct hr_jpeg_component component[3];
    const uint8_t *dc[4], *ac[4];   /* DHT: 16 counts, then the symbols; or NULL */
    uint16_t quant[4][64];          /* natural order; [0] is 0 when not defined */
    int32_t rows_together;          /* rows of MCUs that libjpeg reads at once */
    int32_t restart;                /* MCUs between restart markers, 0: none */
    const uint8_t *scan, *data_end; /* entropy-coded data begins; the file ends */
    bool jfif, adobe;
    int32_t adobe_transform;
};

/* Natural order by zigzag index. */
extern const uint8_t hr__jpeg_natural[64];

/* False: declined. */
HR_CHECK bool
hr__jpeg_parse(const uint8_t *data, size_t bytes, struct hr_jpeg_header *ret_header);

/* ---- Huffman tables ---- */

/*
 * By the next 11 bits of the data. An entry of `look` has the value of the coefficient in
 * its upper half, the step to its place (run + 1) in the second byte, and the bits of
 * code and value in the first. The end of a block is a step of HR_JPEG_END, which leaves
 * the loop like the last coefficient does. When code and value do not fit in 11 bits, the
 * first byte is 0, the second the length of the code (0: longer than 11 bits, or none),
 * the third the symbol.
 *
 * `step` is for those who only pass: length of the code << 16, step << 8, bits of code
 * and value; 0 when the code does not fit. `skip` holds up to four symbols at once: sum
 * of their steps << 8, bits of all; 0 when even the first is long.
 *
 * `look` treats AC values of more than `size_max` bits as if they did not fit, so that
 * the others need no check against HR_JPEG_VALUE_MAX.
 */
struct hr_jpeg_table {
    uint32_t look[HR_JPEG_LOOKS];
    uint32_t step[HR_JPEG_LOOKS]; /* AC only */
    uint16_t skip[HR_JPEG_LOOKS]; /* AC only, when `skips` */
    uint32_t limit[17]; /* first 16-bit pattern beyond the codes of that length */
    int32_t offset[17]; /* code of that length -> index of its symbol */
    uint8_t counts[16], symbols[256];
    int32_t size_max;
    bool made, skips;
};
#define HR_JPEG_END 128

/* Make a table of a DHT's counts and symbols, unless it is that already. `size_max` is 0
 * for DC. False: declined, the table is not `made`. */
HR_CHECK bool
hr__jpeg_table_make(struct hr_jpeg_table *table, const uint8_t *code, int size_max);

/* ---- entropy decoding ---- */

enum hr_jpeg_want {
    HR_JPEG_NOTHING, /* pass over the block */
    HR_JPEG_DC,      /* its mean only */
    HR_JPEG_LOW,     /* what a reduced transform shows: up to zigzag index `last` */
    HR_JPEG_ALL,
};

struct hr_jpeg_block {
    const struct hr_jpeg_table *dc, *ac;
    int32_t component;
    int32_t x, step_x; /* column in the batch of the first MCU's block, of the next's */
    int16_t *groups;   /* of its row of blocks in the batch */
    const int16_t *quant; /* natural order */
    enum hr_jpeg_want want;
    uint32_t last; /* LOW */
};

struct hr_jpeg_scan {
    uint64_t bits; /* the next ones, highest first */
    uint64_t left; /* how many of them count: 0..63 in the low six bits */
    const uint8_t *at;
    const uint8_t *end; /* of the unstuffed data; HR_JPEG_PAD zero bytes follow */
    int32_t predictor[3];
    int32_t dc_max[3]; /* larger means (absolute) are declined, see jpeg_idct.h */
    int32_t first;     /* MCU of the batch that comes next */
    int32_t block_count;
    struct hr_jpeg_block block[HR_JPEG_BLOCKS_MAX];
};

/* ---- inner loops ---- */

struct hr_jpeg_kernels {
    /* Copy data without its stuffed zeros up to a marker: its place, NULL when there is
     * none. At most 64 bytes behind *ret_to are overwritten. */
    const uint8_t *(*unstuff)(const uint8_t *from, const uint8_t *end, uint8_t *to,
                              uint8_t **ret_to);
    void (*make_skip)(struct hr_jpeg_table *table);
    /* The next `count` MCUs: passed over, or into the batch (count <= HR_JPEG_BATCH; its
     * coefficients are zero before). False: the data is odd. */
    bool (*skip)(struct hr_jpeg_scan *scan, int32_t count);
    bool (*decode)(struct hr_jpeg_scan *scan, int32_t count);
    /* Transform `count` groups to blocks of 1, 2, 4, 8 pixels (by log2) and zero them.
     * False: one is beyond what all implementations agree on (jpeg_idct.h). */
    bool (*idct[4])(int16_t *groups, const int16_t *quant, int32_t count, uint8_t *out,
                    ptrdiff_t stride);
    /* Upsampling of a row as libjpeg-turbo does it: twice as wide (the triangle filter;
     * n inputs, 2 n outputs, the ends repeated), or between two rows. `sums` has room for
     * n + 2. `far` is the row above or below; bias 1 for above, 2 for below. */
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
/* The best for hr__isa(). */
const struct hr_jpeg_kernels *hr__jpeg_kernels(void);

#endif
