/*
 * wire/value.h - one field's value as bytes: a descriptor of fixed size, and a payload.
 *
 * The descriptor says what the payload is (kind, dtype, dims) and where it lies in its
 * region: a block of records (wire/record.h) or the memory that two processes share
 * (proc/). Payloads start at multiples of 64 bytes and tensors are contiguous, so a
 * reader uses them in place. A deferred value crosses as its description: the descriptor
 * of the made value that it starts from, then the bytes of its class (op/value.h). No
 * pixel is made for a cut, and none is lost by one.
 *
 * The structs are the format (docs/formats/record.md): little-endian, without padding.
 */
#ifndef HR_WIRE_VALUE_H
#define HR_WIRE_VALUE_H

#include "core/arena.h"
#include "core/error.h"
#include "op/schema.h"
#include "op/value.h"

#define HR_WIRE_ALIGN ((size_t)64)

enum hr_wire_flag {
    HR_WIRE_STRINGS = 1 << 0, /* RAGGED: the items are byte strings */
};

/* Where the payload lies. A block of records knows HR_WIRE_HERE only. */
enum hr_wire_where {
    HR_WIRE_HERE,   /* at `place` of the region */
    HR_WIRE_PASSED, /* it is that of input number `place` of the record's request */
};

struct hr_wire_value {
    uint64_t place;   /* of the payload, a multiple of HR_WIRE_ALIGN */
    uint64_t bytes;   /* of the payload; offsets are not counted */
    uint64_t offsets; /* RAGGED: place of the splits of each level, then of the shapes,
                         each at a multiple of HR_WIRE_ALIGN */
    uint8_t kind;     /* enum hr_value_kind */
    uint8_t dtype;    /* enum hr_dtype */
    uint8_t ndim;
    uint8_t flags;             /* enum hr_wire_flag */
    uint8_t layout;            /* enum hr_layout */
    uint8_t levels;            /* RAGGED: of splits; else 0 */
    uint8_t where;             /* enum hr_wire_where */
    uint8_t item_ndim;         /* RAGGED: dims of the items; else 0 */
    int64_t dims[HR_MAX_DIMS]; /* 0 beyond ndim */
};

/* The payload of a deferred value: this, then `bytes` bytes that belong to the class. */
#define HR_WIRE_CLASS_BYTES 16
struct hr_wire_lazy {
    struct hr_wire_value source; /* the made value that the description starts from */
    char class[HR_WIRE_CLASS_BYTES];
    uint32_t bytes, zero;
};

static inline size_t hr__wire_align(size_t at)
{
    return (at + HR_WIRE_ALIGN - 1) & ~(HR_WIRE_ALIGN - 1);
}

/* True when a region of `limit` bytes holds `bytes` bytes at `place`. */
static inline bool hr__wire_inside(size_t limit, uint64_t place, uint64_t bytes)
{
    return place <= limit && bytes <= limit - place;
}

/* False for a deferred value whose class cannot describe it: it has to be made first. */
bool hr__wire_describes(const struct hr_value *value);

/* Bytes that the payload of a value takes in a region, a multiple of HR_WIRE_ALIGN. */
size_t hr__wire_value_bytes(const struct hr_value *value);

/* Writes the payload to base + place, a multiple of HR_WIRE_ALIGN with that much room,
 * and describes it. */
void hr__wire_value_put(const struct hr_value *value, char *base, size_t place,
                        struct hr_wire_value *ret_wire);

/* The head of a value in its descriptor: everything but where it lies. */
void hr__wire_value_head(const struct hr_value *value, struct hr_wire_value *ret_wire);

/* A payload that does not lie in its region. */
struct hr_wire_far {
    size_t place, bytes; /* of the region; multiples of HR_WIRE_ALIGN */
    const char *data;
    struct hr_buffer *owner; /* borrowed; NULL: who keeps the region keeps it */
};

/* What values are read from. */
struct hr_wire_region {
    const char *base;
    size_t bytes;                  /* at `base` */
    const struct hr_wire_far *far; /* what follows them, in order */
    size_t far_count;
    bool unsteady; /* another process may change it: what is checked is copied first */
    struct hr_arena *arena; /* descriptions and copies */
    uint32_t nodes;         /* node numbers in descriptions are below this */
};

/*
 * The value that `wire` describes, in place where the region is steady. Every number is
 * checked before it is used: HR_ERR_FORMAT, saying what is wrong. *wire is the caller's
 * copy. *ret_value is shared and owns nothing.
 */
HR_CHECK enum hr_err
hr__wire_value_get(const struct hr_wire_region *region, const struct hr_wire_value *wire,
                   struct hr_value *ret_value, struct hr_error *reterr);

/* HR_ERR_FORMAT when the value is not of the kind, dtype and shape of the field. */
HR_CHECK enum hr_err
hr__wire_value_fits(const struct hr_value *value, const struct hr_field *field,
                    struct hr_error *reterr);

#endif
