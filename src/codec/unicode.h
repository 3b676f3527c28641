/*
 * codec/unicode.h - the classes of characters that tokenizers distinguish (Unicode 16.0).
 */
#ifndef HR_CODEC_UNICODE_H
#define HR_CODEC_UNICODE_H

#include <stdint.h>

enum hr_char_class {
    HR_CHAR_OTHER,
    HR_CHAR_UPPER,    /* Lu, Lt */
    HR_CHAR_LOWER,    /* Ll */
    HR_CHAR_CASELESS, /* Lm, Lo */
    HR_CHAR_MARK,     /* Mn, Mc, Me */
    HR_CHAR_NUMBER,   /* Nd, Nl, No */
    HR_CHAR_WHITE,    /* White_Space */
};

/* Two stages: the block of a character, and the classes in it. */
#define HR_CHAR_BLOCK_BITS 7
extern const uint8_t hr__char_blocks[0x110000 >> HR_CHAR_BLOCK_BITS];
extern const uint8_t hr__char_classes[][1 << HR_CHAR_BLOCK_BITS];

/* The class of a code point below 0x110000. */
static inline enum hr_char_class hr__char_class(uint32_t code)
{
    return (
        enum hr_char_class)hr__char_classes[hr__char_blocks[code >> HR_CHAR_BLOCK_BITS]]
                                           [code & ((1 << HR_CHAR_BLOCK_BITS) - 1)];
}

/* The code point of a well-formed character of 1 to 4 bytes. */
static inline uint32_t hr__char_code(const uint8_t *b, unsigned length)
{
    switch (length) {
    case 1:
        return b[0];
    case 2:
        return (b[0] & 0x1FU) << 6 | (b[1] & 0x3FU);
    case 3:
        return (b[0] & 0x0FU) << 12 | (b[1] & 0x3FU) << 6 | (b[2] & 0x3FU);
    default:
        return (b[0] & 0x07U) << 18 | (b[1] & 0x3FU) << 12 | (b[2] & 0x3FU) << 6 |
               (b[3] & 0x3FU);
    }
}

#endif
