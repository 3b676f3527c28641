/*
 * op/ragged.h - values whose items differ in size: lists of byte strings, of lists, of
 * boxes [n, 4], of images, and batches of such batches.
 *
 * The items of all records are stored contiguously. Splits say where each begins: those
 * of the last level count elements (bytes for strings), those of an earlier level count
 * items of the next one. Every level has one split more than it has items, and the first
 * split is 0. Items of two or more dimensions have their shapes beside them.
 */
#ifndef HR_OP_RAGGED_H
#define HR_OP_RAGGED_H

#include "core/arena.h"
#include "op/schema.h"
#include "op/value.h"

#define HR_RAGGED_LEVELS_MAX HR_FIELD_LEVELS_MAX

struct hr_ragged {
    int levels;    /* 1: a batch of items; 2: a batch of such batches; ... */
    int item_ndim; /* of the items: 0 for byte strings, else at least 1 */
    const int64_t *splits[HR_RAGGED_LEVELS_MAX];
    const int64_t *shapes; /* items x item_ndim; NULL when item_ndim is at most 1 */
};

struct hr_field_view;

/* A made value as user code and batches show it (headrace/engine.h). A byte string is
 * its bytes, or a batch of strings. Holds no reference. */
void hr__value_view(const struct hr_value *value, const char *name,
                    struct hr_field_view *ret_view);

/* Sets a value of `count` items of level 0, whose elements are the `bytes` bytes at
 * `items`. Takes over the reference `owner`, which keeps all of it (NULL: the arena's).
 */
void hr__ragged_set(struct hr_value *value, enum hr_dtype dtype, int64_t count,
                    const struct hr_ragged *ragged, void *items, size_t bytes,
                    struct hr_buffer *owner);

/* Items of a level; level 0 has dims[0] of them. */
int64_t hr__ragged_items(const struct hr_value *value, int level);

/* A copy of all but the items in the arena; NULL when out of memory. */
struct hr_ragged *
hr__ragged_copy_splits(const struct hr_value *value, struct hr_arena *arena);

/* Bytes that hr__ragged_copy needs. */
size_t hr__ragged_copy_bytes(const struct hr_value *value);

/* Copies header, splits, shapes and items to `memory`, aligned to 16. *ret_value shows
 * the copy and takes over the reference `owner` (may be NULL). */
void hr__ragged_copy(const struct hr_value *value, void *memory, struct hr_buffer *owner,
                     struct hr_value *ret_value);

/*
 * Joins `count` values (first, first + stride, ...) of one field to one ragged value in a
 * buffer of its own: byte strings, tensors of one rank and dtype, or ragged values of one
 * form, which gain a level. HR_ERR_SHAPE, HR_ERR_LIMIT or HR_ERR_MEMORY, with a message
 * that names `field`.
 */
HR_CHECK enum hr_err
hr__ragged_join(struct hr_pool *pool, const char *field, const struct hr_value *first,
                size_t stride, int64_t count, struct hr_value *ret_value,
                struct hr_error *reterr);

/* Item `at` of level 0: a byte string, a tensor, or a ragged value with one level less.
 * The first two show the bytes of `value` and hold a reference to its owner; the last is
 * a copy in a buffer of `pool`. */
HR_CHECK enum hr_err
hr__ragged_item(const struct hr_value *value, int64_t at, struct hr_pool *pool,
                struct hr_value *ret_item, struct hr_error *reterr);

/* Whether the value is a list of items: a tensor of one dimension or more, or ragged. */
bool hr__value_has_items(const struct hr_value *value);
/* The number of the first of the values that is no list, or has not as many items as the
 * first one; `count` if there is none. */
size_t hr__values_odd(struct hr_value *const *values, size_t count);

/* Record `at` of a batch's value, a tensor or a ragged value: as above. */
HR_CHECK enum hr_err
hr__batch_item(const struct hr_value *value, int64_t at, struct hr_pool *pool,
               struct hr_value *ret_item, struct hr_error *reterr);

#endif
