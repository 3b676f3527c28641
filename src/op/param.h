/*
 * op/param.h - the parameter table of an operator: written once, read by everybody.
 *
 * The same table checks a graph, fills the op's C struct, prints `headrace ops`, writes
 * docs/ops, feeds the fingerprint and later the Python signatures and the tuner. A row
 * says type, range, default, unit and help; the default is text, parsed as YAML would be,
 * so it is checked by the same code as the user's values.
 */
#ifndef HR_OP_PARAM_H
#define HR_OP_PARAM_H

#include "core/doc.h"
#include "core/str.h"

enum hr_param_type {
    HR_PARAM_INT,    /* int64_t */
    HR_PARAM_FLOAT,  /* double */
    HR_PARAM_BOOL,   /* bool */
    HR_PARAM_STRING, /* const char *, NULL when absent */
    HR_PARAM_PATH,   /* const char *, as STRING; relative paths are the user's business */
    HR_PARAM_ENUM,   /* int: position in `names` */
    HR_PARAM_DTYPE,  /* enum hr_dtype (an int) */
    HR_PARAM_BYTES,  /* int64_t: a count of bytes, "64MB" allowed */
    HR_PARAM_FIELD, /* const char *: name of a field; bound to a slot, see hr_param_access
                     */
    HR_PARAM_INTS,  /* struct hr_ints */
    HR_PARAM_FLOATS,  /* struct hr_floats */
    HR_PARAM_FIELDS,  /* struct hr_names: field names; bound to slots in order */
    HR_PARAM_MAP,     /* struct hr_pairs: name -> name */
    HR_PARAM_STRINGS, /* struct hr_names: any texts */
    HR_PARAM_TEXTS,   /* const struct hr_doc *: a list of texts of any length, the
                         canonical value; NULL when absent */
};

/* How an op uses the field that a FIELD(S) parameter names. */
enum hr_param_access {
    HR_ACCESS_NONE,   /* a name only, not bound */
    HR_ACCESS_READ,   /* must exist */
    HR_ACCESS_UPDATE, /* must exist, gets a new value */
    HR_ACCESS_WRITE,  /* is made; an existing field of that name is replaced */
    HR_ACCESS_TAKE,   /* must exist, is read and then gone from the record */
};

#define HR_LIST_MAX 64
struct hr_ints {
    int count;
    int64_t values[HR_LIST_MAX];
};
struct hr_floats {
    int count;
    double values[HR_LIST_MAX];
};
struct hr_names {
    int count;
    const char *values[HR_LIST_MAX];
};
struct hr_pairs {
    int count;
    const char *keys[HR_LIST_MAX];
    const char *values[HR_LIST_MAX];
};

/* A word that stands for a value, e.g. {"imagenet", "[0.485, 0.456, 0.406]"}. */
struct hr_param_alias {
    const char *word, *text;
};

struct hr_param {
    const char *name;
    enum hr_param_type type;
    size_t offset;           /* in the op's parameter struct */
    bool required;           /* no default */
    const char *fallback;    /* default as text; NULL: zero, NULL, empty */
    bool has_min, has_max;   /* numbers, and every item of a list of numbers */
    bool min_open, max_open; /* the bound itself is not allowed */
    double min, max;
    int items_min, items_max; /* lists; one scalar is accepted as a list of one. 0, 0: 1
                                 to HR_LIST_MAX */
    bool one_is_item; /* lists: the canonical form of one item is the item, so that a
                       * FIELD can become FIELDS and graphs keep their fingerprints */
    bool texts;       /* MAP: to texts of any length, else names of fields */
    bool values;      /* MAP: the same; numbers and booleans become texts */
    const char *const *names;             /* ENUM, ends with NULL */
    const struct hr_param_alias *aliases; /* ends with {NULL, NULL} */
    const char *unit;                     /* "pixels", "degrees", "bytes"; NULL: none */
    const char *help;                     /* one sentence, starts small, no full stop */
    enum hr_param_access access;          /* FIELD, FIELDS */
    bool
        not_identity; /* the value does not change what a record's bytes are (rank, world,
                       * paths whose content counts): left out of the fingerprint */
};

/*
 * Fill `params` (params_size bytes, zeroed by the callee) from a YAML/JSON map (NULL: all
 * defaults; a null value counts as absent). Errors carry parameter, line and column, and
 * the nearest valid name. `canonical` receives every parameter with its value as it
 * counts (defaults and aliases resolved), keys sorted. Strings in params point into it,
 * so it must outlive them; it may be NULL only for tables without text.
 */
HR_CHECK enum hr_err
hr__params_parse(const struct hr_param *table, size_t count, const struct hr_doc *map,
                 void *params, size_t params_size, struct hr_doc **ret_canonical,
                 struct hr_error *reterr);

/*
 * The fields that FIELD and FIELDS parameters with an access bind, in table order, FIELDS
 * unrolled; absent optional ones are left out. At most `room` are written; returns how
 * many there are.
 */
size_t hr__params_bindings(const struct hr_param *table, size_t count, const void *params,
                           const char **names, enum hr_param_access *access, size_t room);

/* Parse flow YAML: a scalar, "[1, 2]", "{a: b}". NULL and *reterr when malformed. */
struct hr_doc *hr__param_flow(const char *text, struct hr_error *reterr);

/* The value as a message names it: `the string "big"`, `the int 5`, `a list`. Returns
 * `text`. */
const char *hr__param_value_text(const struct hr_doc *value, char *text, size_t room);

/* "0 to 255", "one of a, b", ... for help. Appends. */
void hr__param_range_text(const struct hr_param *param, struct hr_str *out);
const char *hr__param_type_name(enum hr_param_type type);

/* Row makers. Further settings follow as designated initialisers. */
#define HR_P(type_, struct_, field_, ...)                                                \
    {                                                                                    \
        .name = #field_, .type = (type_), .offset = offsetof(struct_, field_),           \
        __VA_ARGS__                                                                      \
    }
/* A member of the struct's member `in_`, under its own name. */
#define HR_P_IN(type_, struct_, in_, field_, ...)                                        \
    {                                                                                    \
        .name = #field_, .type = (type_), .offset = offsetof(struct_, in_.field_),       \
        __VA_ARGS__                                                                      \
    }
#define HR_P_INT(s, f, ...) HR_P(HR_PARAM_INT, s, f, __VA_ARGS__)
#define HR_P_FLOAT(s, f, ...) HR_P(HR_PARAM_FLOAT, s, f, __VA_ARGS__)
#define HR_P_BOOL(s, f, ...) HR_P(HR_PARAM_BOOL, s, f, __VA_ARGS__)
#define HR_P_STRING(s, f, ...) HR_P(HR_PARAM_STRING, s, f, __VA_ARGS__)
#define HR_P_PATH(s, f, ...) HR_P(HR_PARAM_PATH, s, f, __VA_ARGS__)
#define HR_P_ENUM(s, f, ...) HR_P(HR_PARAM_ENUM, s, f, __VA_ARGS__)
#define HR_P_DTYPE(s, f, ...) HR_P(HR_PARAM_DTYPE, s, f, __VA_ARGS__)
#define HR_P_BYTES(s, f, ...) HR_P(HR_PARAM_BYTES, s, f, __VA_ARGS__)
#define HR_P_FIELD(s, f, ...) HR_P(HR_PARAM_FIELD, s, f, __VA_ARGS__)
#define HR_P_INTS(s, f, ...) HR_P(HR_PARAM_INTS, s, f, __VA_ARGS__)
#define HR_P_FLOATS(s, f, ...) HR_P(HR_PARAM_FLOATS, s, f, __VA_ARGS__)
#define HR_P_FIELDS(s, f, ...) HR_P(HR_PARAM_FIELDS, s, f, __VA_ARGS__)
#define HR_P_MAP(s, f, ...) HR_P(HR_PARAM_MAP, s, f, __VA_ARGS__)
#define HR_P_STRINGS(s, f, ...) HR_P(HR_PARAM_STRINGS, s, f, __VA_ARGS__)
#define HR_P_TEXTS(s, f, ...) HR_P(HR_PARAM_TEXTS, s, f, __VA_ARGS__)
#define HR_RANGE(low, high) .has_min = true, .min = (low), .has_max = true, .max = (high)
#define HR_MIN(low) .has_min = true, .min = (low)

#endif
