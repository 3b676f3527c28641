/*
 * store/xml.h - XML documents by expat, which is loaded with the first of them.
 *
 * A document type ends the parse, so there are no entities but XML's own five, and none
 * that grow. Depth and texts have limits.
 */
#ifndef HR_STORE_XML_H
#define HR_STORE_XML_H

#include "core/str.h"

#define HR_XML_DEPTH_MAX 64
#define HR_XML_TEXT_MAX 12288 /* bytes of one element's text */

/* A parse, for its handlers. */
struct hr_xml {
    const char *uri; /* of the document, for messages */
    void *user;
    struct hr_error *error; /* or NULL */
    int depth;              /* of the element that begins or ends; of the root 1 */
    void *parser;           /* expat's */
    struct hr_str text;
    enum hr_err err;
};

/* What is done with elements. A result other than HR_OK ends the parse with it. */
struct hr_xml_handlers {
    enum hr_err (*begin)(struct hr_xml *xml, const char *name);
    /* `text`: what the element has held since its last child; may contain NUL bytes. */
    enum hr_err (*end)(struct hr_xml *xml, const char *name, const struct hr_str *text);
};

/* Parses a whole document. HR_ERR_FORMAT with line and column if it is not well-formed or
 * has a document type; HR_ERR_LIMIT; HR_ERR_MEMORY; HR_ERR_UNSUPPORTED if the build has
 * no expat, or the machine. */
HR_CHECK enum hr_err hr__xml_parse(const char *text, size_t bytes, const char *uri,
                                   const struct hr_xml_handlers *handlers, void *user,
                                   struct hr_error *reterr);

/* Writes the version of expat, which is loaded. HR_ERR_STATE if the build is without it,
 * HR_ERR_UNSUPPORTED if it is not installed. */
HR_CHECK enum hr_err hr__xml_version(char *text, size_t room, struct hr_error *reterr);

/* An error at the place that the parse has reached. Returns `code`. */
enum hr_err hr__xml_fail(struct hr_xml *xml, enum hr_err code, const char *format, ...)
    HR_PRINTF(3, 4);

#endif
