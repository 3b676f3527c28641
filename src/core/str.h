/*
 * core/str.h - a growing string, and the few text helpers that several parts share.
 *
 * A failed append marks the string; check hr__str_ok() once at the end. The text is
 * always NUL-terminated.
 */
#ifndef HR_CORE_STR_H
#define HR_CORE_STR_H

#include "headrace/base.h"
#include <stdarg.h>

struct hr_str {
    char *text; /* never NULL to read through hr__str_text() */
    size_t length, room;
    bool failed;
};

void hr__str_init(struct hr_str *str);
void hr__str_finish(struct hr_str *str); /* empty, as after init */
void hr__str_clear(struct hr_str *str);  /* empty, keeps its room */

void hr__str_add(struct hr_str *str, const char *text);
void hr__str_add_bytes(struct hr_str *str, const void *bytes, size_t count);
void hr__str_addf(struct hr_str *str, const char *format, ...) HR_PRINTF(2, 3);
void hr__str_vaddf(struct hr_str *str, const char *format, va_list args);

bool hr__str_ok(const struct hr_str *str);
/* Until the next change; "" when nothing was added. After a failure, what went in before.
 */
const char *hr__str_text(const struct hr_str *str);

/* Hand the text over to the caller (hr__free it); the string is empty afterwards. NULL
 * when failed. */
char *hr__str_take(struct hr_str *str);

/* Append `bytes` as a JSON string with quotes; bytes that are not UTF-8 become U+FFFD. */
void hr__str_add_json(struct hr_str *str, const char *bytes, size_t count);

/* Append a double so that it reads back equal, shortest form ("0.1", "1e-05", "3"). */
void hr__str_add_double(struct hr_str *str, double value);

/* A whole text as a decimal number, '.' as its point whatever the locale says. False when
 * it is none, or longer than 400 characters; too large gives an infinity. */
bool hr__double_parse(const char *text, size_t length, double *ret_value);

/* Bytes of the UTF-8 character at `bytes` (1..4), or 0 when it is none: cut, overlong, a
 * surrogate or beyond U+10FFFF. `count` >= 1. */
size_t hr__utf8_length(const char *bytes, size_t count);

/* The name among `names` nearest to `wrong` by edit distance, or NULL when none is near.
 */
const char *hr__nearest(const char *wrong, const char *const *names, size_t count);

/* "1.5 GB", "640 B": decimal units. Returns `text`. */
const char *hr__bytes_text(char *text, size_t room, uint64_t bytes);

/* Bytes of "64", "64k", "1.5MB", "2GiB" (k, M, G, T decimal; Ki, Mi, Gi, Ti binary);
 * false when malformed. */
bool hr__bytes_parse(const char *text, uint64_t *ret_bytes);

#endif
