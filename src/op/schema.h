/*
 * op/schema.h - what is known about a node's records before any data is read.
 */
#ifndef HR_OP_SCHEMA_H
#define HR_OP_SCHEMA_H

#include "headrace/base.h"

#define HR_FIELD_NAME_MAX 63
#define HR_DIM_NAME_MAX 23
#define HR_FIELD_LEVELS_MAX 4 /* batches of batches of lists */

/* A dimension: its size, or HR_DIM_UNKNOWN and a name for people ("height"). */
#define HR_DIM_UNKNOWN (-1)
struct hr_dim {
    int64_t size;
    char name[HR_DIM_NAME_MAX + 1];
};

/* Whether the dtype is of integers; bool is not. */
static inline bool hr__dtype_is_integer(enum hr_dtype dtype)
{
    return dtype == HR_U8 || dtype == HR_I8 || dtype == HR_I16 || dtype == HR_U16 ||
           dtype == HR_I32 || dtype == HR_I64;
}

enum hr_field_kind {
    HR_FIELD_TENSOR,
    HR_FIELD_BYTES,  /* byte string */
    HR_FIELD_RAGGED, /* in a batch: dims[0] tensors of differing size, dims[1..] theirs */
    HR_FIELD_STRINGS /* in a batch: dims[0] byte strings */
};

/* What the numbers of a tensor mean, so that an op can refuse what it would spoil. */
enum hr_meaning {
    HR_MEANING_NONE,
    HR_MEANING_ENCODED,      /* BYTES: a file's bytes, to be decoded */
    HR_MEANING_TEXT,         /* BYTES: text, a path */
    HR_MEANING_LABEL,        /* class number */
    HR_MEANING_IMAGE_U8,     /* 0..255 */
    HR_MEANING_IMAGE_UNIT,   /* floats 0..1 */
    HR_MEANING_IMAGE_NORMAL, /* floats after normalisation: any range */
    HR_MEANING_MASK,         /* an image of labels */
    HR_MEANING_BOXES,        /* rows of x1, y1, x2, y2 in pixels of an image */
    HR_MEANING_POINTS,       /* rows of x, y */
    HR_MEANING_SAMPLES,      /* sound: the last dim is time, those before it channels */
};

enum hr_layout {
    HR_LAYOUT_NONE,
    HR_LAYOUT_HWC,
    HR_LAYOUT_CHW,
};

/* Names of classes by number. The state of the node that made the field owns them; they
 * are there once it is open. */
struct hr_field_classes {
    const char *const *names;
    size_t count;
};

struct hr_field {
    char name[HR_FIELD_NAME_MAX + 1];
    enum hr_field_kind kind;
    enum hr_dtype dtype;
    int ndim;
    struct hr_dim dims[HR_MAX_DIMS];
    enum hr_meaning meaning;
    enum hr_layout layout; /* images */
    int32_t rate; /* SAMPLES: frames per second, 0 if it differs between records */
    const struct hr_field_classes *classes; /* LABEL; or NULL */
    const char *left_by; /* BOXES, POINTS: the op that moved their image alone; or NULL */
    int levels;          /* RAGGED, STRINGS: batches that it is nested in, at least 1 */
    int slot;            /* set by the compiler of a stage; ops leave it alone */
};

/* Frames per second that a sound may have. */
#define HR_RATE_MAX 10000000

/* Fields in order; a value type that holds its own storage. */
#define HR_SCHEMA_FIELDS_MAX 64
struct hr_schema {
    size_t count;
    struct hr_field fields[HR_SCHEMA_FIELDS_MAX];
    int64_t records; /* records in an epoch, or -1 */
    int batch_rank;  /* 0: records, 1: batches, ... */
};

/* NULL when there is none of that name. hr__schema_get: for a schema that is only read.
 */
struct hr_field *hr__schema_find(struct hr_schema *schema, const char *name);
const struct hr_field *hr__schema_get(const struct hr_schema *schema, const char *name);

/* Add or replace a field by name; NULL when the schema is full. The rest of the field is
 * zeroed. */
struct hr_field *hr__schema_put(struct hr_schema *schema, const char *name);

/* Remove by index. */
void hr__schema_remove(struct hr_schema *schema, size_t at);

bool hr__field_is_image(const struct hr_field *field);
/* An image or a mask: pixels in rows and columns. */
bool hr__field_has_pixels(const struct hr_field *field);
/* Whether its values may be deferred. True of all fields with pixels. */
bool hr__field_may_defer(const struct hr_field *field);
/* Sizes of a field with pixels by meaning, whatever its layout; HR_DIM_UNKNOWN when
 * unknown.
 */
struct hr_dim *hr__field_height(struct hr_field *field);
struct hr_dim *hr__field_width(struct hr_field *field);
struct hr_dim *hr__field_channels(struct hr_field *field);

/* True when a dimension is not known before the data is read. */
bool hr__field_has_unknown_dims(const struct hr_field *field);

/* Bytes of one record's value, or -1 when not known. */
int64_t hr__field_bytes(const struct hr_field *field);

/* A size that all records have; one that differs, with a name for messages. */
void hr__dim_set(struct hr_dim *dim, int64_t size);
void hr__dim_unknown(struct hr_dim *dim, const char *name);

/* "float32 [3, 224, 224]", "bytes", "uint8 [height, width, 3]". Returns `text`. */
const char *hr__field_text(const struct hr_field *field, char *text, size_t room);

/* As headrace/graph.h shows it; the strings are the field's. */
struct hr_field_info;
void hr__field_info(const struct hr_field *field, struct hr_field_info *ret_info);

#endif
