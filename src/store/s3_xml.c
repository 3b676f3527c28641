/*
 * store/s3_xml.c - S3's XML by expat, which is loaded with the first answer. A document
 * type ends the parse, so there are no entities but XML's own five.
 */
#include "store/s3_xml.h"
#include "core/error.h"
#include "core/library.h"
#include "store/store.h"
#include <expat.h>
#include <stdio.h>
#include <string.h>

#define TEXT_BYTES_MAX (3 * (size_t)HR_URI_MAX) /* of an element; keys may be encoded */

/* expat's functions. */
static struct {
    __typeof__(XML_GetErrorCode) *error_code;
    __typeof__(XML_Parse) *parse;
    __typeof__(XML_ParserCreate) *create;
    __typeof__(XML_ParserFree) *free;
    __typeof__(XML_SetCharacterDataHandler) *on_text;
    __typeof__(XML_SetElementHandler) *on_elements;
    __typeof__(XML_SetStartDoctypeDeclHandler) *on_type;
    __typeof__(XML_SetUserData) *set_user;
    __typeof__(XML_StopParser) *stop;
} xml;

static const struct hr_symbol symbols[] = {
    {"XML_GetErrorCode",               &xml.error_code },
    {"XML_Parse",                      &xml.parse      },
    {"XML_ParserCreate",               &xml.create     },
    {"XML_ParserFree",                 &xml.free       },
    {"XML_SetCharacterDataHandler",    &xml.on_text    },
    {"XML_SetElementHandler",          &xml.on_elements},
    {"XML_SetStartDoctypeDeclHandler", &xml.on_type    },
    {"XML_SetUserData",                &xml.set_user   },
    {"XML_StopParser",                 &xml.stop       },
};

static struct hr_library library = HR_LIBRARY("libexpat.so.1", "libexpat1", symbols);

struct parse {
    XML_Parser parser;
    struct hr_str text; /* of the element that is open */
    struct hr_str key, code, message;
    struct hr_str *next; /* continuation token */
    uint64_t size;
    int depth;
    bool is_list, is_error, in_contents, is_encoded, is_truncated;
    bool stopped; /* by visit */
    enum hr_err err;
    hr_s3_visit_fn *visit;
    void *user;
};

static void stop(struct parse *p, enum hr_err err)
{
    p->err = err;
    xml.stop(p->parser, XML_FALSE);
}

static void XMLCALL refuse_type(void *user, const XML_Char *name, const XML_Char *system,
                                const XML_Char *public, int internal)
{
    (void)name, (void)system, (void)public, (void)internal;
    stop(user, HR_ERR_FORMAT);
}

static void XMLCALL begin_element(void *user, const XML_Char *name, const XML_Char **atts)
{
    struct parse *p = user;

    (void)atts;
    hr__str_clear(&p->text);
    p->depth++;
    if (p->depth == 1) {
        p->is_list = p->visit != NULL && strcmp(name, "ListBucketResult") == 0;
        p->is_error = strcmp(name, "Error") == 0;
    } else if (p->depth == 2 && strcmp(name, "Contents") == 0) {
        p->in_contents = true;
        hr__str_clear(&p->key);
        p->size = HR_BYTES_UNKNOWN;
    }
}

static void XMLCALL add_text(void *user, const XML_Char *text, int bytes)
{
    struct parse *p = user;

    if ((size_t)bytes > TEXT_BYTES_MAX - p->text.length)
        stop(p, HR_ERR_LIMIT);
    else
        hr__str_add_bytes(&p->text, text, (size_t)bytes);
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* Percent-decoding in place, with '+' for a space. */
static void decode(struct hr_str *text)
{
    size_t to = 0;

    for (size_t i = 0; i < text->length; i++) {
        const char *at = text->text + i;

        if (*at == '%' && i + 2 < text->length && hex(at[1]) >= 0 && hex(at[2]) >= 0) {
            text->text[to++] = (char)(hex(at[1]) * 16 + hex(at[2]));
            i += 2;
        } else {
            text->text[to++] = *at == '+' ? ' ' : *at;
        }
    }
    if (text->text != NULL)
        text->text[to] = '\0';
    text->length = to;
}

static void copy(struct hr_str *to, const struct hr_str *from)
{
    hr__str_clear(to);
    hr__str_add_bytes(to, hr__str_text(from), from->length);
}

static void end_contents(struct parse *p)
{
    p->in_contents = false;
    if (p->is_encoded)
        decode(&p->key);
    if (p->key.length == 0 || strlen(hr__str_text(&p->key)) != p->key.length) {
        stop(p, HR_ERR_FORMAT);
    } else if (!p->visit(p->user, hr__str_text(&p->key), p->key.length, p->size)) {
        p->stopped = true;
        stop(p, HR_OK);
    }
}

static void end_of_list(struct parse *p, const char *name)
{
    const char *text = hr__str_text(&p->text);
    bool is_true = strcmp(text, "true") == 0;

    if (p->depth == 3 && p->in_contents && strcmp(name, "Key") == 0)
        copy(&p->key, &p->text);
    else if (p->depth == 3 && p->in_contents && strcmp(name, "Size") == 0)
        (void)hr__bytes_parse(text, &p->size);
    else if (p->depth == 2 && strcmp(name, "Contents") == 0)
        end_contents(p);
    else if (p->depth == 2 && strcmp(name, "IsTruncated") == 0)
        p->is_truncated = is_true;
    else if (p->depth == 2 && strcmp(name, "EncodingType") == 0)
        p->is_encoded = strcmp(text, "url") == 0;
    else if (p->depth == 2 && strcmp(name, "NextContinuationToken") == 0)
        copy(p->next, &p->text);
}

static void XMLCALL end_element(void *user, const XML_Char *name)
{
    struct parse *p = user;

    if (p->is_list)
        end_of_list(p, name);
    else if (p->is_error && p->depth == 2 && strcmp(name, "Code") == 0)
        copy(&p->code, &p->text);
    else if (p->is_error && p->depth == 2 && strcmp(name, "Message") == 0)
        copy(&p->message, &p->text);
    p->depth--;
    hr__str_clear(&p->text);
}

/* HR_ERR_FORMAT if it is not well-formed or cut short. The library is loaded. */
static enum hr_err run(struct parse *p, const char *text, size_t bytes)
{
    enum XML_Status status = XML_STATUS_ERROR;

    hr__str_init(&p->text);
    hr__str_init(&p->key);
    hr__str_init(&p->code);
    hr__str_init(&p->message);
    p->parser = xml.create(NULL);
    if (p->parser == NULL)
        return HR_ERR_MEMORY;
    xml.set_user(p->parser, p);
    xml.on_elements(p->parser, begin_element, end_element);
    xml.on_text(p->parser, add_text);
    xml.on_type(p->parser, refuse_type);
    if (bytes <= INT32_MAX)
        status = xml.parse(p->parser, text, (int)bytes, 1);
    if (status == XML_STATUS_ERROR && !p->stopped && p->err == HR_OK)
        p->err = xml.error_code(p->parser) == XML_ERROR_NO_MEMORY ? HR_ERR_MEMORY
                                                                  : HR_ERR_FORMAT;
    xml.free(p->parser);
    return p->err;
}

static void finish(struct parse *p)
{
    hr__str_finish(&p->text);
    hr__str_finish(&p->key);
    hr__str_finish(&p->code);
    hr__str_finish(&p->message);
}

enum hr_err
hr__s3_parse_list(const char *text, size_t bytes, hr_s3_visit_fn *visit, void *user,
                  struct hr_str *ret_next, struct hr_error *reterr)
{
    struct parse p = {.next = ret_next, .visit = visit, .user = user};
    enum hr_err err;

    HR_TRY(hr__library_load(&library, reterr));
    hr__str_clear(ret_next);
    err = run(&p, text, bytes);
    if (err == HR_OK &&
        (!hr__str_ok(&p.text) || !hr__str_ok(&p.key) || !hr__str_ok(ret_next)))
        err = HR_ERR_MEMORY;
    if (err == HR_OK && !p.stopped &&
        (!p.is_list || p.is_truncated != (ret_next->length > 0)))
        err = HR_ERR_FORMAT;
    if (p.stopped)
        hr__str_clear(ret_next);
    finish(&p);
    if (err == HR_OK)
        return HR_OK;
    return hr__fail(reterr, err, "the server's list is %s",
                    err == HR_ERR_LIMIT    ? "one of a name that is too long"
                    : err == HR_ERR_MEMORY ? "too large for the memory"
                                           : "not an answer of ListObjectsV2");
}

bool hr__s3_parse_error(const char *answer, size_t bytes, char *text, size_t room)
{
    struct parse p = {.depth = 0};
    struct hr_error error;
    bool any;

    if (hr__library_load(&library, &error) != HR_OK)
        return false;
    any = run(&p, answer, bytes) == HR_OK && p.is_error && hr__str_ok(&p.code) &&
          hr__str_ok(&p.message) && p.code.length > 0;
    if (any)
        snprintf(text, room, "%s%s%s", hr__str_text(&p.code),
                 p.message.length > 0 ? ": " : "", hr__str_text(&p.message));
    for (char *at = text; any && *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = ' ';
    finish(&p);
    return any;
}
