/*
 * store/s3_xml.c - S3's lists and errors.
 */
#include "store/s3_xml.h"

#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "store/store.h"
#include "store/xml.h"

struct parse {
    struct hr_str key, code, message;
    struct hr_str *next; /* continuation token */
    uint64_t size;
    bool is_list, is_error, in_contents, is_encoded, is_truncated;
    hr_s3_visit_fn *visit;
    void *user;
};

static enum hr_err begin_element(struct hr_xml *xml, const char *name)
{
    struct parse *p = xml->user;

    if (xml->depth == 1) {
        p->is_list = p->visit != NULL && strcmp(name, "ListBucketResult") == 0;
        p->is_error = strcmp(name, "Error") == 0;
    } else if (xml->depth == 2 && strcmp(name, "Contents") == 0) {
        p->in_contents = true;
        hr__str_clear(&p->key);
        p->size = HR_BYTES_UNKNOWN;
    }
    return HR_OK;
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

/* HR_ERR_END: no more are wanted. */
static enum hr_err end_contents(struct parse *p)
{
    p->in_contents = false;
    if (p->is_encoded)
        decode(&p->key);
    if (p->key.length == 0 || strlen(hr__str_text(&p->key)) != p->key.length)
        return HR_ERR_FORMAT;
    return p->visit(p->user, hr__str_text(&p->key), p->key.length, p->size) ? HR_OK
                                                                            : HR_ERR_END;
}

static enum hr_err
end_of_list(struct hr_xml *xml, const char *name, const struct hr_str *text)
{
    struct parse *p = xml->user;
    bool is_true = strcmp(hr__str_text(text), "true") == 0;

    if (xml->depth == 3 && p->in_contents && strcmp(name, "Key") == 0)
        copy(&p->key, text);
    else if (xml->depth == 3 && p->in_contents && strcmp(name, "Size") == 0)
        (void)hr__bytes_parse(hr__str_text(text), &p->size);
    else if (xml->depth == 2 && strcmp(name, "Contents") == 0)
        return end_contents(p);
    else if (xml->depth == 2 && strcmp(name, "IsTruncated") == 0)
        p->is_truncated = is_true;
    else if (xml->depth == 2 && strcmp(name, "EncodingType") == 0)
        p->is_encoded = strcmp(hr__str_text(text), "url") == 0;
    else if (xml->depth == 2 && strcmp(name, "NextContinuationToken") == 0)
        copy(p->next, text);
    return HR_OK;
}

static enum hr_err
end_element(struct hr_xml *xml, const char *name, const struct hr_str *text)
{
    struct parse *p = xml->user;

    if (p->is_list)
        return end_of_list(xml, name, text);
    if (p->is_error && xml->depth == 2 && strcmp(name, "Code") == 0)
        copy(&p->code, text);
    else if (p->is_error && xml->depth == 2 && strcmp(name, "Message") == 0)
        copy(&p->message, text);
    return HR_OK;
}

static enum hr_err
run(struct parse *p, const char *text, size_t bytes, struct hr_error *error)
{
    static const struct hr_xml_handlers handlers = {begin_element, end_element};

    hr__str_init(&p->key);
    hr__str_init(&p->code);
    hr__str_init(&p->message);
    return hr__xml_parse(text, bytes, "the server's answer", &handlers, p, error);
}

static void finish(struct parse *p)
{
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

    hr__str_clear(ret_next);
    err = run(&p, text, bytes, reterr);
    if (err == HR_ERR_END)
        hr__str_clear(ret_next);
    else if (err == HR_OK && (!hr__str_ok(&p.key) || !hr__str_ok(ret_next)))
        err = HR_ERR_MEMORY;
    else if (err == HR_OK && (!p.is_list || p.is_truncated != (ret_next->length > 0)))
        err = HR_ERR_FORMAT;
    finish(&p);
    if (err == HR_OK || err == HR_ERR_END)
        return HR_OK;
    if (err == HR_ERR_UNSUPPORTED) /* no expat: *reterr says so */
        return err;
    return hr__fail(reterr, err, "the server's list is %s",
                    err == HR_ERR_LIMIT    ? "one of a name that is too long"
                    : err == HR_ERR_MEMORY ? "too large for the memory"
                                           : "not an answer of ListObjectsV2");
}

bool hr__s3_parse_error(const char *answer, size_t bytes, char *text, size_t room)
{
    struct parse p = {.size = 0};
    bool any;

    any = run(&p, answer, bytes, NULL) == HR_OK && p.is_error && hr__str_ok(&p.code) &&
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
