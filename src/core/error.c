/*
 * core/error.c - filling in a struct hr_error.
 *
 * A message is formatted in a separate buffer, so that the old message may be one of its
 * arguments. A message is one line of UTF-8: control characters become spaces, and what
 * is no character, such as the half of one that "%.63s" leaves, a question mark.
 */
#include "core/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/str.h"

#define MESSAGE_ROOM sizeof((struct hr_error *)NULL)->message

static void set_message(struct hr_error *error, const char *text, size_t wanted)
{
    size_t length = strlen(text), start = length, at = 0;

    if (wanted > length) {
        while (start > 0 && length - start < 3 &&
               ((unsigned char)text[start - 1] & 0xC0) == 0x80)
            start--;
        if (start > 0 && (unsigned char)text[start - 1] >= 0xC0)
            length = start - 1;
    }
    memcpy(error->message, text, length);
    error->message[length] = '\0';
    while (at < length) {
        size_t bytes = hr__utf8_length(error->message + at, length - at);

        if (bytes == 0)
            error->message[at] = '?';
        else if ((unsigned char)error->message[at] < 0x20)
            error->message[at] = ' ';
        at += bytes > 0 ? bytes : 1;
    }
}

static void
format_message(struct hr_error *error, const char *tail, const char *format, va_list args)
{
    char text[MESSAGE_ROOM];
    int head = vsnprintf(text, sizeof text, format, args);
    size_t wanted = head > 0 ? (size_t)head : 0;

    if (head < 0)
        text[0] = '\0';
    if (tail != NULL) {
        if (wanted < sizeof text)
            snprintf(text + wanted, sizeof text - wanted, ": %s", tail);
        wanted += 2 + strlen(tail);
    }
    set_message(error, text, wanted);
}

enum hr_err hr__fail(struct hr_error *error, enum hr_err code, const char *format, ...)
{
    va_list args;

    if (error == NULL)
        return code;
    va_start(args, format);
    format_message(error, NULL, format, args);
    va_end(args);
    error->code = code;
    return code;
}

enum hr_err hr__fail_errno(struct hr_error *error, enum hr_err code, int errnum,
                           const char *format, ...)
{
    char room[128];
    va_list args;

    if (error == NULL)
        return code;
    va_start(args, format);
    format_message(error, strerror_r(errnum, room, sizeof room), format, args);
    va_end(args);
    error->code = code;
    return code;
}

void hr__error_prefix(struct hr_error *error, const char *format, ...)
{
    va_list args;
    char old[MESSAGE_ROOM];

    if (error == NULL)
        return;
    memcpy(old, error->message, sizeof old);
    va_start(args, format);
    format_message(error, old, format, args);
    va_end(args);
}

enum hr_err hr__fail_in(struct hr_error *error, enum hr_err code, const char *path,
                        int line, int column, const char *format, ...)
{
    char what[sizeof error->message], place[48] = "";
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (error != NULL) {
        error->line = line;
        error->column = column;
        snprintf(error->file, sizeof error->file, "%s", path);
    }
    if (line > 0 && column > 0)
        snprintf(place, sizeof place, ":%d:%d", line, column);
    else if (line > 0)
        snprintf(place, sizeof place, ":%d", line);
    return hr__fail(error, code, "%s%s: %s", path, place, what);
}
