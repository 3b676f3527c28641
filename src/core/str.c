/*
 * core/str.c - a growing string and small text helpers.
 *
 * Numbers are formatted and parsed by the C library, but always in the C locale: Python
 * programs set others, and "0,5" in a state file could not be read back.
 */
#include "core/str.h"
#include "core/alloc.h"

#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hr__str_init(struct hr_str *str)
{
    memset(str, 0, sizeof *str);
}

void hr__str_finish(struct hr_str *str)
{
    hr__free(str->text);
    hr__str_init(str);
}

void hr__str_clear(struct hr_str *str)
{
    str->length = 0;
    str->failed = false;
    if (str->text != NULL)
        str->text[0] = '\0';
}

/* Reserves `more` bytes plus the terminating NUL; marks the string as failed if out of
 * memory. */
static bool reserve(struct hr_str *str, size_t more)
{
    size_t room = str->room * 2 > 64 ? str->room * 2 : 64;
    char *text;

    if (str->failed || more > SIZE_MAX / 4) {
        str->failed = true;
        return false;
    }
    if (str->length + more < str->room)
        return true;
    if (room <= str->length + more)
        room = str->length + more + 1;
    text = hr__realloc(str->text, room);
    if (text == NULL) {
        str->failed = true;
        return false;
    }
    str->text = text;
    str->room = room;
    return true;
}

void hr__str_add_bytes(struct hr_str *str, const void *bytes, size_t count)
{
    if (!reserve(str, count))
        return;
    if (count != 0)
        memcpy(str->text + str->length, bytes, count);
    str->length += count;
    str->text[str->length] = '\0';
}

void hr__str_add(struct hr_str *str, const char *text)
{
    hr__str_add_bytes(str, text, strlen(text));
}

void hr__str_vaddf(struct hr_str *str, const char *format, va_list args)
{
    va_list again;
    int length;

    va_copy(again, args);
    length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0) {
        str->failed = true;
        return;
    }
    if (!reserve(str, (size_t)length))
        return;
    vsnprintf(str->text + str->length, (size_t)length + 1, format, args);
    str->length += (size_t)length;
}

void hr__str_addf(struct hr_str *str, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    hr__str_vaddf(str, format, args);
    va_end(args);
}

bool hr__str_ok(const struct hr_str *str)
{
    return !str->failed;
}

const char *hr__str_text(const struct hr_str *str)
{
    return str->text != NULL ? str->text : "";
}

char *hr__str_take(struct hr_str *str)
{
    char *text;

    if (!reserve(str, 0))
        return NULL;
    text = str->text;
    text[str->length] = '\0';
    hr__str_init(str);
    return text;
}

size_t hr__utf8_length(const char *bytes, size_t count)
{
    const unsigned char *b = (const unsigned char *)bytes;
    uint32_t code, least;
    size_t length;

    if (b[0] < 0x80)
        return 1;
    length = b[0] >= 0xF0 ? 4 : b[0] >= 0xE0 ? 3 : 2;
    if (b[0] < 0xC2 || b[0] > 0xF4 || length > count)
        return 0;
    code = b[0] & (0x7FU >> length);
    for (size_t i = 1; i < length; i++) {
        if ((b[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (b[i] & 0x3F);
    }
    least = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0x80;
    if (code < least || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        return 0;
    return length;
}

bool hr__utf8_is_valid(const char *bytes, size_t count)
{
    for (size_t at = 0, length; at < count; at += length) {
        length = hr__utf8_length(bytes + at, count - at);
        if (length == 0)
            return false;
    }
    return true;
}

static void add_json_ascii(struct hr_str *str, char c)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *at = c != '\0' ? strchr(from, c) : NULL;

    if (at != NULL)
        hr__str_addf(str, "\\%c", to[at - from]);
    else if ((unsigned char)c < 0x20 || c == 0x7F)
        hr__str_addf(str, "\\u%04x", (unsigned)c);
    else
        hr__str_add_bytes(str, &c, 1);
}

/* Characters that YAML does not allow unescaped, or treats as line breaks: C1 controls,
 * U+2028, U+2029, the byte order mark, U+FFFE and U+FFFF. */
static uint32_t unsafe_code(const char *bytes, size_t length)
{
    const unsigned char *b = (const unsigned char *)bytes;
    uint32_t code = 0;

    if (length == 2)
        code = (b[0] & 0x1FU) << 6 | (b[1] & 0x3FU);
    else if (length == 3)
        code = (b[0] & 0x0FU) << 12 | (b[1] & 0x3FU) << 6 | (b[2] & 0x3FU);
    if ((code >= 0x80 && code < 0xA0) || code == 0x2028 || code == 0x2029 ||
        code == 0xFEFF || code >= 0xFFFE)
        return code;
    return 0;
}

void hr__str_add_json(struct hr_str *str, const char *bytes, size_t count)
{
    hr__str_add(str, "\"");
    for (size_t i = 0; i < count;) {
        size_t length = hr__utf8_length(bytes + i, count - i);
        uint32_t unsafe = unsafe_code(bytes + i, length);

        if (length == 1)
            add_json_ascii(str, bytes[i]);
        else if (length == 0)
            hr__str_add(str, "\xEF\xBF\xBD");
        else if (unsafe != 0)
            hr__str_addf(str, "\\u%04x", (unsigned)unsafe);
        else
            hr__str_add_bytes(str, bytes + i, length);
        i += length != 0 ? length : 1;
    }
    hr__str_add(str, "\"");
}

bool hr__double_parse(const char *text, size_t length, double *ret_value)
{
    const char *point = localeconv()->decimal_point;
    char copy[512], *end;
    size_t at = 0;
    double value;

    if (length == 0 || length > 400)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '.' && strlen(point) < 16 && at < 440)
            at += (size_t)snprintf(copy + at, 20, "%s", point);
        else if (strchr("0123456789+-eE", text[i]) != NULL && text[i] != '\0')
            copy[at++] = text[i];
        else
            return false;
        if (at > 480)
            return false;
    }
    copy[at] = '\0';
    value = strtod(copy, &end);
    if (end != copy + at)
        return false;
    *ret_value = value;
    return true;
}

void hr__str_add_double(struct hr_str *str, double value)
{
    char text[64];
    bool in_point = false;

    if (!isfinite(value)) {
        hr__str_add(str, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    for (const char *c = text; *c != '\0'; c++) {
        bool plain = strchr("0123456789+-e", *c) != NULL;

        if (plain)
            hr__str_add_bytes(str, c, 1);
        else if (!in_point)
            hr__str_add(str, ".");
        in_point = !plain;
    }
}

#define NAME_MAX_LENGTH 64

static unsigned smallest(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;

    return least < c ? least : c;
}

/* Edit distance (insert, delete, replace, transpose neighbours) from a to b, ignoring
 * case. */
static unsigned distance(const char *a, const char *b)
{
    unsigned rows[3][NAME_MAX_LENGTH + 1];
    unsigned *row = rows[0], *last = rows[1], *before = rows[2];
    size_t length = strlen(b);

    for (unsigned j = 0; j <= length; j++)
        last[j] = j;
    for (unsigned i = 1; a[i - 1] != '\0'; i++) {
        unsigned *oldest = before;

        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            int x = tolower((unsigned char)a[i - 1]),
                y = tolower((unsigned char)b[j - 1]);

            row[j] = smallest(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
                y == tolower((unsigned char)a[i - 2]) && before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
        before = last;
        last = row;
        row = oldest;
    }
    return last[length];
}

const char *hr__nearest(const char *wrong, const char *const *names, size_t count)
{
    size_t length = strlen(wrong);
    const char *nearest = NULL;
    unsigned best = UINT32_MAX;

    if (length > NAME_MAX_LENGTH)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t longer = strlen(names[i]);
        unsigned edits;

        if (longer > NAME_MAX_LENGTH)
            continue;
        edits = distance(wrong, names[i]);
        longer = longer > length ? longer : length;
        if (edits < best && edits < longer && edits <= (longer + 2) / 3) {
            best = edits;
            nearest = names[i];
        }
    }
    return nearest;
}

static uint64_t rounded(uint64_t bytes, uint64_t unit)
{
    return bytes / unit + (bytes % unit >= unit / 2);
}

const char *hr__bytes_text(char *text, size_t room, uint64_t bytes)
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    uint64_t scale = 1000, tenths;
    size_t unit = 0;

    if (bytes < 1000) {
        snprintf(text, room, "%u B", (unsigned)bytes);
        return text;
    }
    for (; unit < 5 && rounded(bytes, scale) >= 1000; unit++)
        scale *= 1000;
    tenths = rounded(bytes, scale / 10);
    if (tenths < 1000 && tenths % 10 != 0)
        snprintf(text, room, "%u.%u %s", (unsigned)tenths / 10, (unsigned)tenths % 10,
                 units[unit]);
    else
        snprintf(text, room, "%u %s", (unsigned)rounded(bytes, scale), units[unit]);
    return text;
}

/* The factor of a unit ("", "k", "MB", "GiB", "B"); 0 if unknown. */
static double unit_factor(const char *unit)
{
    static const char letters[] = "kmgt";
    double base = 1000, factor = 1;

    while (*unit == ' ')
        unit++;
    if (*unit != '\0' && strchr(letters, tolower((unsigned char)*unit)) != NULL) {
        long power = strchr(letters, tolower((unsigned char)*unit)) - letters + 1;

        unit++;
        if (*unit == 'i') {
            base = 1024;
            unit++;
        }
        while (power-- > 0)
            factor *= base;
    }
    if (*unit == 'B' || *unit == 'b')
        unit++;
    return *unit == '\0' ? factor : 0;
}

bool hr__bytes_parse(const char *text, uint64_t *ret_bytes)
{
    size_t digits = strspn(text, "0123456789."), whole = strspn(text, "0123456789");
    double factor = unit_factor(text + digits), value;

    if (!isdigit((unsigned char)text[0]) || factor == 0 ||
        !hr__double_parse(text, digits, &value) || !(value * factor < 0x1p64))
        return false;
    if (whole == digits && value < 0x1p64) { /* exact beyond 2^53 */
        uint64_t count = strtoull(text, NULL, 10);

        return !__builtin_mul_overflow(count, (uint64_t)factor, ret_bytes);
    }
    *ret_bytes = (uint64_t)(value * factor);
    return true;
}
