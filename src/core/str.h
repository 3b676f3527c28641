/*
 * core/str.h - a growing string and the text helpers that several parts share.
 *
 * A failed append marks the string as failed; check hr__str_ok() once at the end. The
 * text is always NUL-terminated.
 */
#ifndef HR_CORE_STR_H
#define HR_CORE_STR_H

#include "headrace/base.h"
#include <stdarg.h>

struct hr_str {
    char *text; /* may be NULL: read it through hr__str_text() */
    size_t length, room;
    bool failed;
};

void hr__str_init(struct hr_str *str);
void hr__str_finish(struct hr_str *str); /* frees the text; empty, as after init */
void hr__str_clear(struct hr_str *str);  /* empty, keeps its capacity */

void hr__str_add(struct hr_str *str, const char *text);
void hr__str_add_bytes(struct hr_str *str, const void *bytes, size_t count);
void hr__str_addf(struct hr_str *str, const char *format, ...) HR_PRINTF(2, 3);
void hr__str_vaddf(struct hr_str *str, const char *format, va_list args);

bool hr__str_ok(const struct hr_str *str);
/* The text, valid until the next change; "" if nothing was added. After a failed append,
 * everything added before it. */
const char *hr__str_text(const struct hr_str *str);

/* Transfers the text to the caller, who frees it with hr__free, and empties the string.
 * NULL if an append failed. */
char *hr__str_take(struct hr_str *str);

/* Appends `bytes` as a quoted JSON string; invalid UTF-8 becomes U+FFFD. */
void hr__str_add_json(struct hr_str *str, const char *bytes, size_t count);

/* Appends a double in the shortest form that reads back equal ("0.1", "1e-05", "3"). */
void hr__str_add_double(struct hr_str *str, double value);

/* Parses a whole text as a decimal number with '.' as its decimal point, whatever the
 * locale. False if malformed or longer than 400 characters; overflow gives infinity. */
bool hr__double_parse(const char *text, size_t length, double *ret_value);

/* Length of the UTF-8 character at `bytes` (1..4), or 0 if invalid: truncated, overlong,
 * a surrogate or beyond U+10FFFF. `count` >= 1. */
size_t hr__utf8_length(const char *bytes, size_t count);
/* Whether all of it is UTF-8. */
bool hr__utf8_is_valid(const char *bytes, size_t count);

/* The name among `names` closest to `wrong` by edit distance, or NULL if none is
 * close. */
const char *hr__nearest(const char *wrong, const char *const *names, size_t count);

/* "1.5 GB", "640 B": decimal units. Returns `text`. */
const char *hr__bytes_text(char *text, size_t room, uint64_t bytes);

/* Parses "64", "64k", "1.5MB", "2GiB" (k, M, G, T decimal; Ki, Mi, Gi, Ti binary) to
 * bytes; false if malformed. */
bool hr__bytes_parse(const char *text, uint64_t *ret_bytes);

#endif
