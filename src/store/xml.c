/*
 * store/xml.c - XML documents by expat.
 */
#include "store/xml.h"

#include <stdio.h>

#include "core/error.h"
#include "core/library.h"

#ifdef HR_XML
#include <expat.h>
#include <string.h>

/* expat's functions. */
static struct {
    __typeof__(XML_ErrorString) *error_string;
    __typeof__(XML_GetCurrentColumnNumber) *column;
    __typeof__(XML_GetCurrentLineNumber) *line;
    __typeof__(XML_GetErrorCode) *error_code;
    __typeof__(XML_Parse) *parse;
    __typeof__(XML_ParserCreate) *create;
    __typeof__(XML_ParserFree) *free;
    __typeof__(XML_SetCharacterDataHandler) *on_text;
    __typeof__(XML_SetElementHandler) *on_elements;
    __typeof__(XML_SetStartDoctypeDeclHandler) *on_type;
    __typeof__(XML_SetUserData) *set_user;
    __typeof__(XML_StopParser) *stop;
    __typeof__(XML_ExpatVersion) *version;
} lib;

static const struct hr_symbol symbols[] = {
    {"XML_ErrorString",                &lib.error_string},
    {"XML_GetCurrentColumnNumber",     &lib.column      },
    {"XML_GetCurrentLineNumber",       &lib.line        },
    {"XML_GetErrorCode",               &lib.error_code  },
    {"XML_Parse",                      &lib.parse       },
    {"XML_ParserCreate",               &lib.create      },
    {"XML_ParserFree",                 &lib.free        },
    {"XML_SetCharacterDataHandler",    &lib.on_text     },
    {"XML_SetElementHandler",          &lib.on_elements },
    {"XML_SetStartDoctypeDeclHandler", &lib.on_type     },
    {"XML_SetUserData",                &lib.set_user    },
    {"XML_StopParser",                 &lib.stop        },
    {"XML_ExpatVersion",               &lib.version     },
};

static struct hr_library library = HR_LIBRARY("libexpat.so.1", "libexpat1", symbols);

enum hr_err hr__xml_version(char *text, size_t room, struct hr_error *reterr)
{
    const char *version;

    HR_TRY(hr__library_load(&library, reterr));
    version = lib.version();
    snprintf(text, room, "%s",
             strncmp(version, "expat_", 6) == 0 ? version + 6 : version);
    return HR_OK;
}

struct parse {
    struct hr_xml xml;
    const struct hr_xml_handlers *handlers;
};

enum hr_err hr__xml_fail(struct hr_xml *xml, enum hr_err code, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return hr__fail_in(xml->error, code, xml->uri, (int)lib.line(xml->parser),
                       (int)lib.column(xml->parser) + 1, "%s", text);
}

static void stop(struct parse *p, enum hr_err err)
{
    p->xml.err = err;
    lib.stop(p->xml.parser, XML_FALSE);
}

static void XMLCALL refuse_type(void *user, const XML_Char *name, const XML_Char *system,
                                const XML_Char *public, int internal)
{
    struct parse *p = user;

    (void)name, (void)system, (void)public, (void)internal;
    stop(p, hr__xml_fail(&p->xml, HR_ERR_FORMAT,
                         "a document type (<!DOCTYPE ...>) is not read: remove it"));
}

static void XMLCALL begin_element(void *user, const XML_Char *name, const XML_Char **atts)
{
    struct parse *p = user;
    enum hr_err err;

    (void)atts;
    if (p->xml.err != HR_OK)
        return;
    hr__str_clear(&p->xml.text);
    if (++p->xml.depth > HR_XML_DEPTH_MAX)
        err = hr__xml_fail(&p->xml, HR_ERR_LIMIT, "elements are nested more than %d deep",
                           HR_XML_DEPTH_MAX);
    else
        err = p->handlers->begin(&p->xml, name);
    if (err != HR_OK)
        stop(p, err);
}

static void XMLCALL add_text(void *user, const XML_Char *text, int bytes)
{
    struct parse *p = user;

    if (p->xml.err != HR_OK)
        return;
    if ((size_t)bytes > HR_XML_TEXT_MAX - p->xml.text.length)
        stop(p, hr__xml_fail(&p->xml, HR_ERR_LIMIT,
                             "the text of an element is longer than %d bytes",
                             HR_XML_TEXT_MAX));
    else
        hr__str_add_bytes(&p->xml.text, text, (size_t)bytes);
}

static void XMLCALL end_element(void *user, const XML_Char *name)
{
    struct parse *p = user;
    enum hr_err err;

    if (p->xml.err != HR_OK)
        return;
    err = hr__str_ok(&p->xml.text)
              ? p->handlers->end(&p->xml, name, &p->xml.text)
              : hr__xml_fail(&p->xml, HR_ERR_MEMORY, "out of memory");
    p->xml.depth--;
    hr__str_clear(&p->xml.text);
    if (err != HR_OK)
        stop(p, err);
}

static enum hr_err run(struct parse *p, const char *text, size_t bytes)
{
    enum XML_Error code;

    lib.set_user(p->xml.parser, p);
    lib.on_elements(p->xml.parser, begin_element, end_element);
    lib.on_text(p->xml.parser, add_text);
    lib.on_type(p->xml.parser, refuse_type);
    if (lib.parse(p->xml.parser, text, (int)bytes, 1) != XML_STATUS_ERROR ||
        p->xml.err != HR_OK)
        return p->xml.err;
    code = lib.error_code(p->xml.parser);
    return hr__xml_fail(&p->xml,
                        code == XML_ERROR_NO_MEMORY ? HR_ERR_MEMORY : HR_ERR_FORMAT,
                        "this is no well-formed XML: %s", lib.error_string(code));
}

enum hr_err
hr__xml_parse(const char *text, size_t bytes, const char *uri,
              const struct hr_xml_handlers *handlers, void *user, struct hr_error *reterr)
{
    struct parse p = {
        .xml = {.uri = uri, .user = user, .error = reterr},
          .handlers = handlers
    };
    enum hr_err err;

    HR_TRY(hr__library_load(&library, reterr));
    if (bytes > INT32_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT, "%s is larger than 2 GB", uri);
    p.xml.parser = lib.create(NULL);
    if (p.xml.parser == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    hr__str_init(&p.xml.text);
    err = run(&p, text, bytes);
    hr__str_finish(&p.xml.text);
    lib.free(p.xml.parser);
    return err;
}

#else

enum hr_err hr__xml_version(char *text, size_t room, struct hr_error *reterr)
{
    (void)text;
    (void)room;
    return hr__library_left_out("libexpat1-dev", reterr);
}

enum hr_err hr__xml_fail(struct hr_xml *xml, enum hr_err code, const char *format, ...)
{
    (void)xml;
    (void)format;
    return code;
}

enum hr_err
hr__xml_parse(const char *text, size_t bytes, const char *uri,
              const struct hr_xml_handlers *handlers, void *user, struct hr_error *reterr)
{
    (void)text;
    (void)bytes;
    (void)handlers;
    (void)user;
    return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                    "%s: this build reads no XML: install libexpat1-dev and build again",
                    uri);
}

#endif
