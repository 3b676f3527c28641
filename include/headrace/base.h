/*
 * headrace/base.h - shared by all other headers: errors, element types, version.
 *
 * Functions that can fail return `enum hr_err` and, where an explanation is useful, fill
 * a caller-owned `struct hr_error`. The library never prints, never exits and never keeps
 * a pointer to the caller's error. All functions may be called from any thread; a single
 * object may be used by one thread at a time unless its header says otherwise.
 */
#ifndef HR_BASE_H
#define HR_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define HR_API __attribute__((visibility("default")))
#define HR_CHECK __attribute__((warn_unused_result))
#define HR_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define HR_API
#define HR_CHECK
#define HR_PRINTF(text, first)
#endif

#ifdef __cplusplus
#define HR_BEGIN_DECLS extern "C" {
#define HR_END_DECLS }
#else
#define HR_BEGIN_DECLS
#define HR_END_DECLS
#endif

HR_BEGIN_DECLS

/* X(name, value, text): the list of all errors. */
#define HR_ERRORS(X)                                                                     \
    X(HR_OK, 0, "ok")                                                                    \
    X(HR_ERR_MEMORY, -1, "out of memory")                                                \
    X(HR_ERR_ARGUMENT, -2, "wrong argument")                                             \
    X(HR_ERR_STATE, -3, "not possible in this state")                                    \
    X(HR_ERR_IO, -4, "input or output failed")                                           \
    X(HR_ERR_NOT_FOUND, -5, "not found")                                                 \
    X(HR_ERR_FORMAT, -6, "malformed data")                                               \
    X(HR_ERR_SHAPE, -7, "wrong shape")                                                   \
    X(HR_ERR_TYPE, -8, "wrong type")                                                     \
    X(HR_ERR_RANGE, -9, "value out of range")                                            \
    X(HR_ERR_LIMIT, -10, "a limit was reached")                                          \
    X(HR_ERR_UNSUPPORTED, -11, "not supported")                                          \
    X(HR_ERR_CANCELLED, -12, "cancelled")                                                \
    X(HR_ERR_END, -13, "end of data")                                                    \
    X(HR_ERR_GRAPH, -14, "wrong graph")                                                  \
    X(HR_ERR_INTERNAL, -15, "internal error")                                            \
    X(HR_ERR_TIMEOUT, -16, "took too long")                                              \
    X(HR_ERR_DENIED, -17, "access denied")

enum hr_err {
#define HR_ERR_ENUM(name, value, text) name = (value),
    HR_ERRORS(HR_ERR_ENUM)
#undef HR_ERR_ENUM
};

/* The name ("HR_ERR_IO") and the text of an error; never NULL, static storage. */
HR_API const char *hr_err_name(enum hr_err code);
HR_API const char *hr_err_text(enum hr_err code);

/* Expansions that a record can have passed. */
#define HR_CHILD_DEPTH_MAX 8

/*
 * An error as a message and in parts. Strings are NUL-terminated and truncated to fit;
 * parts that do not apply are empty or zero. `message` is complete by itself: it names
 * node, op, parameter, file and record where they are known. Zero-initialise the struct.
 */
struct hr_error {
    enum hr_err code;
    int line, column; /* 1-based position in `file` if a text is at fault, else 0 */
    int64_t record;   /* source index + 1 if a record is at fault, else 0 */
    int64_t epoch;    /* of the record; the next four are 0 if there is none */
    int64_t position; /* of the record in the epoch's order, over all ranks */
    int64_t offset;   /* of the record in `file` */
    uint32_t depth;   /* expansions that the record has passed: numbers in `children` */
    uint32_t children[HR_CHILD_DEPTH_MAX]; /* its number among the children of each */
    char node[64];                         /* node name */
    char op[64];                           /* op name */
    char param[64];                        /* parameter or field name */
    char file[512];                        /* graph file or data file */
    char message[768];                     /* one sentence, no newline */
    /* What user code raised, for its binding: the exception's class and its bases, most
     * derived first, as "module:name", separated by spaces. */
    char raised[256];
};

/* Element types of tensors. The values are part of file formats: never renumber them. */
enum hr_dtype {
    HR_DTYPE_NONE = 0,
    HR_U8 = 1,
    HR_I16 = 2,
    HR_I32 = 3,
    HR_I64 = 4,
    HR_F16 = 5,
    HR_BF16 = 6,
    HR_F32 = 7,
    HR_F64 = 8,
    HR_BOOL = 9,
    HR_I8 = 10,
    HR_U16 = 11,
};

#define HR_MAX_DIMS 8

/* Size of an element in bytes (0 for HR_DTYPE_NONE); name as in graph files
 * ("float32"). */
HR_API size_t hr_dtype_size(enum hr_dtype dtype);
HR_API const char *hr_dtype_name(enum hr_dtype dtype);

/* The dtype of a name ("float32", "uint8", ...), or HR_DTYPE_NONE if unknown. */
HR_API enum hr_dtype hr_dtype_from_name(const char *name);

/* The library's version as "major.minor.patch". */
HR_API const char *hr_version(void);

HR_END_DECLS

#endif
