/*
 * codec/image_exif.c - the orientation tag of a photo's EXIF block.
 *
 * EXIF is a TIFF directory; only tag 0x0112 of IFD 0 is read. Anything malformed (unknown
 * byte order mark, directory outside the block, value outside 1..8) means upright, as in
 * image viewers. XMP orientation is not read.
 */
#include "codec/image_priv.h"

#include <string.h>

#define EXIF_TAG_ORIENTATION 0x0112
#define EXIF_TYPE_SHORT 3
#define EXIF_TYPE_LONG 4
#define EXIF_ENTRY_BYTES 12

struct exif {
    const uint8_t *data;
    size_t bytes;
    bool big;
};

static uint32_t exif_u16(const struct exif *exif, size_t at)
{
    const uint8_t *p = exif->data + at;

    return exif->big ? hr__be16(p) : (uint32_t)p[1] << 8 | p[0];
}

static uint32_t exif_u32(const struct exif *exif, size_t at)
{
    return exif->big ? hr__be32(exif->data + at) : hr__le32(exif->data + at);
}

/* The value of the directory entry at `at` if it is a valid orientation, else 1. */
static int32_t exif_value(const struct exif *exif, size_t at)
{
    uint32_t type = exif_u16(exif, at + 2);
    uint32_t value;

    if (exif_u32(exif, at + 4) != 1)
        return 1;
    if (type == EXIF_TYPE_SHORT)
        value = exif_u16(exif, at + 8);
    else if (type == EXIF_TYPE_LONG)
        value = exif_u32(exif, at + 8);
    else
        return 1;
    return value >= 1 && value <= 8 ? (int32_t)value : 1;
}

int32_t hr__exif_orientation(const uint8_t *tiff, size_t bytes)
{
    struct exif exif = {tiff, bytes, false};
    size_t at;
    uint32_t count;

    if (bytes < 14)
        return 1;
    if (memcmp(tiff, "MM\0*", 4) == 0)
        exif.big = true;
    else if (memcmp(tiff, "II*\0", 4) != 0)
        return 1;
    at = exif_u32(&exif, 4);
    if (at > bytes - 2)
        return 1;
    count = exif_u16(&exif, at);
    at += 2;
    for (; count > 0 && bytes - at >= EXIF_ENTRY_BYTES; count--, at += EXIF_ENTRY_BYTES)
        if (exif_u16(&exif, at) == EXIF_TAG_ORIENTATION)
            return exif_value(&exif, at);
    return 1;
}

int32_t hr__exif_orientation_prefixed(const uint8_t *data, size_t bytes)
{
    if (bytes >= 6 && memcmp(data, "Exif\0\0", 6) == 0) {
        data += 6;
        bytes -= 6;
    }
    return hr__exif_orientation(data, bytes);
}
