/*
 * op/value.h - a field's value while a record is being worked on.
 *
 * A record is a row of values, one per slot; which field sits in which slot is settled
 * when a graph is compiled, so nothing looks a name up per record. A value describes
 * bytes; it owns them through `owner`, or they live in the thread's arena until the
 * record is delivered. A value may be deferred: described, not made yet
 * (ops/image_job.h); the code that needs its bytes forces it.
 */
#ifndef HR_OP_VALUE_H
#define HR_OP_VALUE_H

#include <stdbool.h>
#include <string.h>

#include "core/str.h"
#include "headrace/buffer.h"

enum hr_value_kind {
    HR_VALUE_NONE,
    HR_VALUE_TENSOR,
    HR_VALUE_BYTES,    /* a byte string: data, bytes */
    HR_VALUE_RAGGED,   /* in a batch: dims[0] items of differing size; op/ragged.h */
    HR_VALUE_DEFERRED, /* a tensor that is described by `lazy` */
};

struct hr_lazy;
struct hr_ragged;

struct hr_value {
    uint8_t kind;  /* enum hr_value_kind */
    uint8_t dtype; /* enum hr_dtype; of the items for RAGGED (HR_U8 for strings) */
    uint8_t ndim;
    bool shared;    /* another value shows the same bytes: do not write in place */
    bool strings;   /* RAGGED: items are byte strings, not tensors */
    uint8_t layout; /* enum hr_layout of an image tensor; 0: by its dims (the short side
                       of the two ends is channels, HWC when in doubt) */
    void *data;
    size_t bytes; /* bytes that belong to the value: for contiguous tensors all of it */
    struct hr_buffer *owner; /* one reference, or NULL: the arena's, or the batch's */
    union {
        const struct hr_ragged *ragged; /* RAGGED */
        struct hr_lazy *lazy;           /* DEFERRED, in the arena */
    } u;
    int64_t dims[HR_MAX_DIMS];
    int64_t strides[HR_MAX_DIMS]; /* in bytes */
};

/* Drop what the value owns and make it NONE. */
void hr__value_clear(struct hr_value *value);

/* `to` becomes another sight of `from` (both are marked shared; the owner gains a
 * reference). `to` is cleared first. */
void hr__value_alias(struct hr_value *to, struct hr_value *from);

/* A contiguous tensor of these dims at `data`. Takes over the reference `owner` (may be
 * NULL). */
void hr__value_set_tensor(struct hr_value *value, enum hr_dtype dtype, int ndim,
                          const int64_t *dims, void *data, struct hr_buffer *owner);

/* A byte string. Takes over the reference `owner` (may be NULL). */
void hr__value_set_bytes(struct hr_value *value, const void *data, size_t bytes,
                         struct hr_buffer *owner);

/* True if the bytes of the value exist: it is a TENSOR, BYTES or RAGGED. Whatever hands a
 * value to the outside (user code, another process, a batch) asserts this. */
static inline bool hr__value_is_made(const struct hr_value *value)
{
    if (value->kind != HR_VALUE_TENSOR && value->kind != HR_VALUE_BYTES &&
        value->kind != HR_VALUE_RAGGED)
        return false;
    return value->data != NULL || value->bytes == 0;
}

/* True for tensors without gaps, last dim fastest. */
bool hr__value_contiguous(const struct hr_value *value);

/* Elements of a tensor. */
int64_t hr__value_count(const struct hr_value *value);

/* Copy a tensor's elements, whatever its strides, to contiguous memory at `to`. */
void hr__value_copy(const struct hr_value *value, void *to);

/*
 * A deferred tensor. Its maker embeds this first in a struct of its own, which lives in
 * the arena. Only the class knows how to make the bytes.
 */
struct hr_thread;
struct hr_op_ctx;
struct hr_arena;

/* A description that has come across a cut, to be made into a value again. */
struct hr_lazy_decode {
    struct hr_arena *arena;
    struct hr_value source; /* TENSOR or BYTES, checked; outlives the result */
    const void *bytes;      /* as `encode` wrote them; not checked */
    uint32_t nodes;         /* node numbers are below this */
};

struct hr_lazy_class {
    const char *name; /* at most 15 bytes; part of the record format */
    /* Make the bytes. With `into` they are stored contiguously there (it has room for
     * exactly the tensor's bytes, in the value's dtype); else in the arena in any strides
     * that suit the next op. The value becomes a TENSOR. May be called for a copy that
     * shares the description. */
    HR_CHECK enum hr_err (*force)(struct hr_thread *thread, struct hr_value *value,
                                  void *into, struct hr_error *reterr);

    /* Scratch memory that force takes besides the result, in bytes, at most. With
     * `drawn`, also after other draws of the random edits. */
    uint64_t (*scratch)(const struct hr_lazy *lazy, bool drawn);

    /*
     * Across a cut (wire/value.h) a description travels as the made value that it starts
     * from, and bytes for the rest. `encode` is NULL for a class whose values have to be
     * made before a cut. source: borrows that value. encode: writes `encoded_bytes`
     * bytes. decode: makes a deferred value that forces to the same bytes as the
     * original; HR_ERR_FORMAT for bytes that `encode` cannot have written.
     */
    uint32_t encoded_bytes;
    void (*source)(const struct hr_lazy *lazy, struct hr_value *ret_source);
    void (*encode)(const struct hr_lazy *lazy, void *to);
    HR_CHECK enum hr_err (*decode)(const struct hr_lazy_decode *decode,
                                   struct hr_value *ret_value, struct hr_error *reterr);
};

struct hr_lazy {
    const struct hr_lazy_class *class;
};

/* The class with this name, or NULL; ops/lazy_classes.c has the list. */
const struct hr_lazy_class *hr__lazy_class_find(const char *name);

/* Force a value if it is deferred (see above); anything else is left, or copied into
 * `into` when given. */
HR_CHECK enum hr_err hr__value_force(struct hr_thread *thread, struct hr_value *value,
                                     void *into, struct hr_error *reterr);
/* Makes a deferred value before a node needs it, as a plan may ask. If that fails, the
 * value stays deferred: the node that needs it reports the error, under every plan. */
void hr__value_force_early(struct hr_thread *thread, struct hr_value *value);
/* Whether a deferred value that could not be made, with the error `code`, before a node
 * needs it may cross a cut as its description, for the same reason. Then the failure is
 * not charged to a node. Lack of memory is an error at once. */
bool hr__value_may_wait(struct hr_thread *thread, const struct hr_value *value,
                        enum hr_err code);

/* The number at `data`, which need not be aligned: of an integer dtype or bool. */
static inline int64_t hr__integer_at(enum hr_dtype dtype, const void *data)
{
    size_t bytes = hr_dtype_size(dtype);
    bool is_signed = dtype != HR_U8 && dtype != HR_U16 && dtype != HR_BOOL;
    uint64_t number = 0;

    memcpy(&number, data, bytes); /* little-endian */
    if (is_signed && bytes < sizeof number && number >> (8 * bytes - 1) != 0)
        number |= UINT64_MAX << 8 * bytes;
    return (int64_t)number;
}

/* Whether hr__number_text() knows the numbers. */
static inline bool hr__has_number_text(enum hr_dtype dtype)
{
    return dtype != HR_F16 && dtype != HR_BF16 && dtype != HR_DTYPE_NONE;
}

/* Appends the number at `data`, which need not be aligned, in the shortest decimal form
 * that reads back equal. */
void hr__number_text(struct hr_str *out, enum hr_dtype dtype, const void *data);

#endif
