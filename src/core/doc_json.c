/*
 * core/doc_json.c - a strict JSON reader (RFC 8259) with source positions.
 *
 * Not jansson, which does not report where a value was. Stricter than the RFC: no
 * duplicate keys, no NUL in a key, only UTF-8, no lone surrogates. A byte order mark is
 * skipped. A number too large for a double reads as infinity (the printer writes infinity
 * as 1e999); an integer too large for int64 reads as a double.
 */
#include "core/alloc.h"
#include "core/doc_internal.h"
#include "core/error.h"
#include "core/str.h"

#include <string.h>

struct json {
    struct hr_doc_reader *reader;
    const char *at, *end;
    const char *marked; /* the position of `mark`; only moves forward */
    struct hr_doc_mark mark;
};

static enum hr_err read_value(struct json *json, struct hr_doc **ret_doc);

/* The position of json->at. Columns count characters. */
static struct hr_doc_mark here(struct json *json)
{
    for (; json->marked < json->at; json->marked++) {
        if (*json->marked == '\n') {
            json->mark.line++;
            json->mark.column = 1;
        } else if (((unsigned char)*json->marked & 0xC0) != 0x80) {
            json->mark.column++;
        }
    }
    return json->mark;
}

static enum hr_err fault(struct json *json, const char *message)
{
    if (json->at >= json->end)
        message = "unexpected end of text";
    return hr__doc_fail(json->reader, HR_ERR_FORMAT, here(json), "%s", message);
}

static enum hr_err no_memory(struct json *json)
{
    return hr__doc_fail(json->reader, HR_ERR_MEMORY, here(json), "out of memory");
}

/* Skips white space; returns the next byte without consuming it, or 0 at the end. */
static char peek(struct json *json)
{
    while (json->at < json->end && *json->at != '\0' && strchr(" \t\r\n", *json->at))
        json->at++;
    return json->at < json->end ? *json->at : '\0';
}

static bool read_hex4(struct json *json, uint32_t *ret_code)
{
    uint32_t code = 0;

    if (json->end - json->at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        char c = json->at[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;

        if (digit < 0)
            return false;
        code = code << 4 | (unsigned)digit;
    }
    json->at += 4;
    *ret_code = code;
    return true;
}

static void add_utf8(struct hr_str *out, uint32_t code)
{
    char bytes[4];
    size_t count = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};

    for (size_t i = count - 1; i > 0; i--) {
        bytes[i] = (char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    bytes[0] = (char)(lead[count] | code);
    hr__str_add_bytes(out, bytes, count);
}

/* Just after "\u". */
static enum hr_err read_unicode(struct json *json, struct hr_str *out)
{
    uint32_t code, low;

    if (!read_hex4(json, &code))
        return fault(json, "\\u must be followed by four hexadecimal digits");
    if (code >= 0xD800 && code < 0xDC00) {
        if (json->end - json->at < 2 || json->at[0] != '\\' || json->at[1] != 'u')
            return fault(json, "unpaired surrogate");
        json->at += 2;
        if (!read_hex4(json, &low) || low < 0xDC00 || low > 0xDFFF)
            return fault(json, "unpaired surrogate");
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
        return fault(json, "unpaired surrogate");
    }
    add_utf8(out, code);
    return HR_OK;
}

static enum hr_err read_escape(struct json *json, struct hr_str *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *at;

    json->at++;
    if (json->at >= json->end)
        return fault(json, "");
    if (*json->at == 'u') {
        json->at++;
        return read_unicode(json, out);
    }
    at = *json->at != '\0' ? strchr(from, *json->at) : NULL;
    if (at == NULL)
        return fault(json, "unknown escape sequence");
    hr__str_add_bytes(out, &to[at - from], 1);
    json->at++;
    return HR_OK;
}

/* A run of characters that need no unescaping. */
static enum hr_err read_plain(struct json *json, struct hr_str *out)
{
    const char *start = json->at;

    while (json->at < json->end && *json->at != '"' && *json->at != '\\') {
        size_t length = hr__utf8_length(json->at, (size_t)(json->end - json->at));

        if (length == 0)
            return fault(json, "invalid UTF-8 in a string");
        if ((unsigned char)*json->at < 0x20)
            return fault(json, "unescaped control character in a string (write \\u00xx)");
        json->at += length;
    }
    hr__str_add_bytes(out, start, (size_t)(json->at - start));
    return HR_OK;
}

/* At the opening quote; *out starts empty, and the caller finishes it. */
static enum hr_err read_text(struct json *json, struct hr_str *out)
{
    json->at++;
    while (json->at < json->end && *json->at != '"') {
        if (*json->at == '\\')
            HR_TRY(read_escape(json, out));
        else
            HR_TRY(read_plain(json, out));
    }
    if (json->at >= json->end)
        return fault(json, "");
    json->at++;
    return hr__str_ok(out) ? HR_OK : no_memory(json);
}

bool hr__doc_unescape(const char *text, size_t bytes, struct hr_str *out)
{
    struct hr_doc_reader reader = {.name = ""};
    struct json json = {
        .reader = &reader, .at = text, .end = text + bytes, .marked = text};
    enum hr_err err = HR_OK;

    while (err == HR_OK && json.at < json.end) {
        if (*json.at == '"')
            return false;
        err = *json.at == '\\' ? read_escape(&json, out) : read_plain(&json, out);
    }
    return err == HR_OK && hr__str_ok(out);
}

static enum hr_err read_string(struct json *json, struct hr_doc *doc)
{
    struct hr_str text;
    enum hr_err err;
    size_t length;

    hr__str_init(&text);
    err = read_text(json, &text);
    length = text.length;
    if (err == HR_OK) {
        doc->as.string.text = hr__str_take(&text);
        if (doc->as.string.text == NULL)
            err = no_memory(json);
    }
    if (err == HR_OK) {
        doc->kind = HR_DOC_STRING;
        doc->as.string.length = length;
        doc->quoted = true;
    }
    hr__str_finish(&text);
    return err;
}

static enum hr_err read_key(struct json *json, char **ret_key)
{
    struct hr_str text;
    enum hr_err err;

    if (peek(json) != '"')
        return fault(json, "expected a key in quotes");
    hr__str_init(&text);
    err = read_text(json, &text);
    if (err == HR_OK && text.length > 0 && memchr(text.text, '\0', text.length) != NULL)
        err = fault(json, "a key must not contain a NUL character");
    if (err == HR_OK) {
        *ret_key = hr__str_take(&text);
        if (*ret_key == NULL)
            err = no_memory(json);
    }
    hr__str_finish(&text);
    return err;
}

static void skip_digits(struct json *json)
{
    while (json->at < json->end && *json->at >= '0' && *json->at <= '9')
        json->at++;
}

static bool skip_some_digits(struct json *json)
{
    const char *start = json->at;

    skip_digits(json);
    return json->at > start;
}

static enum hr_err read_number(struct json *json, struct hr_doc *doc)
{
    const char *start = json->at;

    json->at += *json->at == '-';
    if (json->at < json->end && *json->at == '0')
        json->at++;
    else if (!skip_some_digits(json))
        return fault(json, "expected a JSON value");
    if (json->at < json->end && *json->at == '.') {
        json->at++;
        if (!skip_some_digits(json))
            return fault(json, "expected a digit after the decimal point");
    }
    if (json->at < json->end && (*json->at == 'e' || *json->at == 'E')) {
        json->at++;
        if (json->at < json->end && (*json->at == '+' || *json->at == '-'))
            json->at++;
        if (!skip_some_digits(json))
            return fault(json, "expected a digit after the exponent's e");
    }
    if (json->at - start > 400)
        return fault(json, "number longer than 400 characters");
    return hr__doc_set_scalar(doc, start, (size_t)(json->at - start));
}

static enum hr_err read_word(struct json *json, struct hr_doc *doc)
{
    static const char *const words[] = {"true", "false", "null"};

    for (int i = 0; i < 3; i++) {
        size_t length = strlen(words[i]);

        if ((size_t)(json->end - json->at) >= length &&
            memcmp(json->at, words[i], length) == 0) {
            json->at += length;
            return hr__doc_set_scalar(doc, words[i], length);
        }
    }
    return fault(json, "expected a JSON value");
}

/* After an element: sets *ret_more if another one follows. */
static enum hr_err read_separator(struct json *json, char close, bool *ret_more)
{
    char c = peek(json);

    if (c != ',' && c != close)
        return fault(json, close == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
    json->at++;
    *ret_more = c == ',';
    return HR_OK;
}

static enum hr_err read_list(struct json *json, struct hr_doc *list)
{
    bool more = true;

    json->at++;
    if (peek(json) == ']') {
        json->at++;
        return HR_OK;
    }
    while (more) {
        struct hr_doc *item;

        HR_TRY(read_value(json, &item));
        if (hr__doc_append(list, item) != HR_OK)
            return no_memory(json);
        HR_TRY(read_separator(json, ']', &more));
    }
    return HR_OK;
}

static enum hr_err read_pair(struct json *json, struct hr_doc *map)
{
    struct hr_doc *value = NULL;
    struct hr_doc_mark mark;
    char *key = NULL;
    enum hr_err err;

    (void)peek(json);
    mark = here(json);
    HR_TRY(read_key(json, &key));
    if (peek(json) == ':') {
        json->at++;
        err = read_value(json, &value);
    } else {
        err = fault(json, "expected ':'");
    }
    if (err != HR_OK) {
        hr__free(key);
        return err;
    }
    return hr__doc_push_pair(map, key, value, mark) == HR_OK ? HR_OK : no_memory(json);
}

static enum hr_err read_map(struct json *json, struct hr_doc *map)
{
    bool more = true;

    json->at++;
    if (peek(json) == '}') {
        json->at++;
        return HR_OK;
    }
    while (more) {
        HR_TRY(read_pair(json, map));
        HR_TRY(read_separator(json, '}', &more));
    }
    return hr__doc_check_keys(json->reader, map);
}

static enum hr_err read_collection(struct json *json, struct hr_doc *doc)
{
    enum hr_err err;

    HR_TRY(hr__doc_enter(json->reader, here(json)));
    doc->kind = *json->at == '[' ? HR_DOC_LIST : HR_DOC_MAP;
    err = doc->kind == HR_DOC_LIST ? read_list(json, doc) : read_map(json, doc);
    json->reader->depth--;
    return err;
}

static enum hr_err read_value(struct json *json, struct hr_doc **ret_doc)
{
    char c = peek(json);
    struct hr_doc *doc;
    enum hr_err err;

    HR_TRY(hr__doc_node(json->reader, HR_DOC_NULL, here(json), &doc));
    if (c == '{' || c == '[')
        err = read_collection(json, doc);
    else if (c == '"')
        err = read_string(json, doc);
    else if (c == '-' || (c >= '0' && c <= '9'))
        err = read_number(json, doc);
    else
        err = read_word(json, doc);
    if (err != HR_OK) {
        hr__doc_destroy(doc);
        return err;
    }
    *ret_doc = doc;
    return HR_OK;
}

enum hr_err hr__doc_read_json(struct hr_doc_reader *reader, const char *text,
                              size_t bytes, struct hr_doc **ret_doc)
{
    struct json json = {.reader = reader, .at = text, .end = text + bytes};
    struct hr_doc *doc;

    if (bytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
        json.at += 3;
    json.marked = json.at;
    json.mark = (struct hr_doc_mark){1, 1};
    HR_TRY(read_value(&json, &doc));
    (void)peek(&json);
    if (json.at < json.end) {
        hr__doc_destroy(doc);
        return fault(&json, "unexpected text after the value");
    }
    *ret_doc = doc;
    return HR_OK;
}
