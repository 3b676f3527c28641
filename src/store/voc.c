/*
 * store/voc.c - reads Pascal VOC's files.
 *
 * An object's parts (head, hands) have names and boxes of their own, one level deeper,
 * and are ignored like all else that is not used.
 */
#include "store/voc.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "store/index_internal.h"
#include "store/lines.h"
#include "store/xml.h"

const char *const hr__voc_classes[HR_VOC_CLASSES] = {
    "aeroplane", "bicycle",     "bird",  "boat",        "bottle", "bus",      "car",
    "cat",       "chair",       "cow",   "diningtable", "dog",    "horse",    "motorbike",
    "person",    "pottedplant", "sheep", "sofa",        "train",  "tvmonitor"};

/* ---- annotations ---- */

enum { XMIN, YMIN, XMAX, YMAX, CORNERS };
static const char *const corners[CORNERS] = {"xmin", "ymin", "xmax", "ymax"};

enum within { IN_OTHER, IN_SIZE, IN_OBJECT };

struct scan {
    const struct hr_voc_options *options;
    struct hr_voc *voc;
    size_t room, number; /* of objects; of the object that is open, from 1 */
    enum within within;  /* the child of the root that is open */
    bool in_box;
    /* the object that is open */
    char name[128];
    int64_t label;
    bool has_name, has_box, difficult, truncated;
    bool has[CORNERS];
    double corner[CORNERS];
};

/* "object 2 ("dog")", in a message. */
static enum hr_err
object_fault(struct hr_xml *xml, const char *format, ...) HR_PRINTF(2, 3);

static enum hr_err object_fault(struct hr_xml *xml, const char *format, ...)
{
    const struct scan *s = xml->user;
    char text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!s->has_name)
        return hr__xml_fail(xml, HR_ERR_FORMAT, "object %zu %s", s->number, text);
    return hr__xml_fail(xml, HR_ERR_FORMAT, "object %zu (\"%s\") %s", s->number, s->name,
                        text);
}

static enum hr_err begin_element(struct hr_xml *xml, const char *name)
{
    struct scan *s = xml->user;

    if (xml->depth == 1 && strcmp(name, "annotation") != 0)
        return hr__xml_fail(xml, HR_ERR_FORMAT,
                            "an <annotation> of Pascal VOC was expected, not <%.100s>",
                            name);
    if (xml->depth == 2) {
        s->within = strcmp(name, "object") == 0 ? IN_OBJECT
                    : strcmp(name, "size") == 0 ? IN_SIZE
                                                : IN_OTHER;
        s->number += s->within == IN_OBJECT;
        s->has_name = s->has_box = s->difficult = s->truncated = false;
    }
    if (xml->depth == 3) {
        s->in_box = s->within == IN_OBJECT && strcmp(name, "bndbox") == 0;
        if (s->in_box && s->has_box)
            return object_fault(xml, "has two <bndbox>");
        if (s->in_box)
            memset(s->has, 0, sizeof s->has);
        s->has_box = s->has_box || s->in_box;
    }
    return HR_OK;
}

/* The text without blanks around it. */
static const char *trimmed(const struct hr_str *text, size_t *ret_bytes)
{
    const char *from = hr__str_text(text), *to = from + text->length;

    while (from < to && (unsigned char)*from <= ' ')
        from++;
    while (to > from && (unsigned char)to[-1] <= ' ')
        to--;
    *ret_bytes = (size_t)(to - from);
    return from;
}

static enum hr_err
read_name(struct hr_xml *xml, struct scan *s, const char *text, size_t bytes)
{
    const struct hr_voc_options *options = s->options;
    struct hr_str what;

    if (s->has_name)
        return object_fault(xml, "has two names");
    if (bytes == 0)
        return object_fault(xml, "has an empty name");
    s->has_name = true;
    snprintf(s->name, sizeof s->name, "%.*s", (int)bytes, text);
    if (options->found != NULL)
        return hr__class_add(options->found, text, bytes) < 0
                   ? hr__xml_fail(xml, HR_ERR_MEMORY, "out of memory")
                   : HR_OK;
    s->label = hr__class_find(options->classes, text, bytes);
    if (s->label >= 0)
        return HR_OK;
    hr__str_init(&what);
    hr__index_class_tail(options->names, s->name, &what);
    hr__xml_fail(xml, HR_ERR_FORMAT, "object %zu: %s", s->number, hr__str_text(&what));
    hr__str_finish(&what);
    return HR_ERR_FORMAT;
}

static enum hr_err read_number(struct hr_xml *xml, const char *name, const char *text,
                               size_t bytes, double *ret_number)
{
    if (bytes > 0 && hr__double_parse(text, bytes, ret_number) &&
        fabs(*ret_number) <= 1e9)
        return HR_OK;
    return object_fault(xml, "has \"%.*s\" as its %s, which is no number",
                        bytes < 60 ? (int)bytes : 60, text, name);
}

/* A mark that is missing, empty or "Unspecified" is not set. */
static enum hr_err read_mark(struct hr_xml *xml, const char *name, const char *text,
                             size_t bytes, bool *ret_mark)
{
    double number = 0;

    if (bytes > 0 && !(bytes == 11 && memcmp(text, "Unspecified", 11) == 0))
        HR_TRY(read_number(xml, name, text, bytes, &number));
    *ret_mark = number != 0;
    return HR_OK;
}

static void read_side(const char *text, size_t bytes, int32_t *ret_side)
{
    double number;

    *ret_side = 0;
    if (hr__double_parse(text, bytes, &number) && number >= 1 && number <= INT32_MAX)
        *ret_side = (int32_t)number;
}

static enum hr_err
read_part(struct hr_xml *xml, struct scan *s, const char *name, const struct hr_str *held)
{
    size_t bytes;
    const char *text = trimmed(held, &bytes);

    if (s->within == IN_SIZE && strcmp(name, "width") == 0)
        read_side(text, bytes, &s->voc->width);
    else if (s->within == IN_SIZE && strcmp(name, "height") == 0)
        read_side(text, bytes, &s->voc->height);
    else if (s->within == IN_OBJECT && strcmp(name, "name") == 0)
        return read_name(xml, s, text, bytes);
    else if (s->within == IN_OBJECT && strcmp(name, "difficult") == 0)
        return read_mark(xml, name, text, bytes, &s->difficult);
    else if (s->within == IN_OBJECT && strcmp(name, "truncated") == 0)
        return read_mark(xml, name, text, bytes, &s->truncated);
    return HR_OK;
}

static enum hr_err read_corner(struct hr_xml *xml, struct scan *s, const char *name,
                               const struct hr_str *held)
{
    size_t bytes;
    const char *text = trimmed(held, &bytes);

    for (int i = 0; i < CORNERS; i++)
        if (strcmp(name, corners[i]) == 0) {
            if (s->has[i])
                return object_fault(xml, "has two <%s>", name);
            s->has[i] = true;
            return read_number(xml, name, text, bytes, &s->corner[i]);
        }
    return HR_OK;
}

static enum hr_err add_object(struct hr_xml *xml, struct scan *s)
{
    double from = s->options->raw ? 0 : 1;
    struct hr_voc *voc = s->voc;
    struct hr_voc_object *to;

    if (s->options->drop_difficult && s->difficult)
        return HR_OK;
    if (voc->count == s->room) {
        s->room = s->room * 2 + 16;
        to = hr__realloc(voc->objects, s->room * sizeof *to);
        if (to == NULL)
            return hr__xml_fail(xml, HR_ERR_MEMORY, "out of memory");
        voc->objects = to;
    }
    to = &voc->objects[voc->count++];
    *to = (struct hr_voc_object){
        .label = s->label,
        .difficult = s->difficult,
        .truncated = s->truncated,
        .box = {(float)(s->corner[XMIN] - from), (float)(s->corner[YMIN] - from),
                (float)s->corner[XMAX], (float)s->corner[YMAX]},
    };
    return HR_OK;
}

static enum hr_err end_object(struct hr_xml *xml, struct scan *s)
{
    if (!s->has_name)
        return object_fault(xml, "has no <name>");
    if (!s->has_box)
        return object_fault(xml, "has no <bndbox>");
    for (int i = 0; i < CORNERS; i++)
        if (!s->has[i])
            return object_fault(xml, "has no <%s> in its <bndbox>", corners[i]);
    for (int i = 0; i < 2; i++)
        if (s->corner[i + 2] < s->corner[i])
            return object_fault(xml, "has a %s of %g, which is less than its %s of %g",
                                corners[i + 2], s->corner[i + 2], corners[i],
                                s->corner[i]);
    return add_object(xml, s);
}

static enum hr_err
end_element(struct hr_xml *xml, const char *name, const struct hr_str *text)
{
    struct scan *s = xml->user;

    if (xml->depth == 4 && s->in_box)
        return read_corner(xml, s, name, text);
    if (xml->depth == 3)
        return read_part(xml, s, name, text);
    if (xml->depth == 2 && s->within == IN_OBJECT)
        return end_object(xml, s);
    return HR_OK;
}

enum hr_err hr__voc_parse(const char *text, size_t bytes, const char *uri,
                          const struct hr_voc_options *options, struct hr_voc *ret_voc,
                          struct hr_error *reterr)
{
    static const struct hr_xml_handlers handlers = {begin_element, end_element};
    struct scan s = {.options = options, .voc = ret_voc};

    memset(ret_voc, 0, sizeof *ret_voc);
    if (bytes > HR_VOC_BYTES_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "%s: an annotation of more than %zu bytes is not read", uri,
                        HR_VOC_BYTES_MAX);
    return hr__xml_parse(text, bytes, uri, &handlers, &s, reterr);
}

void hr__voc_finish(struct hr_voc *voc)
{
    hr__free(voc->objects);
}

/* ---- lists ---- */

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The name in a line, without VOC's mark of a class; 0 bytes: none, or one without the
 * class, which sets *left_out. */
static size_t name_in(const char **from, size_t bytes, bool *left_out)
{
    const char *at = *from;

    while (bytes > 0 && is_blank(at[bytes - 1]))
        bytes--;
    while (bytes > 0 && is_blank(*at)) {
        at++;
        bytes--;
    }
    *from = at;
    if (bytes >= 3 && memcmp(at + bytes - 3, " -1", 3) == 0) {
        *left_out = true;
        return 0;
    }
    if (bytes >= 3 &&
        (memcmp(at + bytes - 3, "  1", 3) == 0 || memcmp(at + bytes - 3, "  0", 3) == 0))
        bytes -= 3;
    while (bytes > 0 && is_blank(at[bytes - 1]))
        bytes--;
    return bytes;
}

static enum hr_err copy_names(const char *text, const char *end, const char *uri,
                              char *to, struct hr_voc_list *list, struct hr_error *reterr)
{
    bool left_out = false;

    for (int line = 1; text < end; line++) {
        const char *feed = memchr(text, '\n', (size_t)(end - text)), *from = text;
        const char *stop = feed != NULL ? feed : end;
        size_t bytes = name_in(&from, (size_t)(stop - text), &left_out);

        if (memchr(from, '\0', bytes) != NULL)
            return hr__fail_in(reterr, HR_ERR_FORMAT, uri, line, 1,
                               "the name of a picture contains a NUL byte");
        if (bytes > 0) {
            list->names[list->count++] = to;
            memcpy(to, from, bytes);
            to += bytes;
            *to++ = '\0';
        }
        text = feed != NULL ? feed + 1 : end;
    }
    if (left_out && list->count == 0)
        return hr__fail(
            reterr, HR_ERR_FORMAT,
            "%s: every name is followed by -1, which VOC writes after pictures "
            "without the class: no picture is left",
            uri);
    return HR_OK;
}

enum hr_err hr__voc_list(const char *text, size_t bytes, const char *uri,
                         struct hr_voc_list *ret_list, struct hr_error *reterr)
{
    size_t bom = hr__bom_bytes(text, bytes), lines = 1;

    memset(ret_list, 0, sizeof *ret_list);
    for (size_t i = bom; i < bytes; i++)
        lines += text[i] == '\n';
    ret_list->texts = hr__malloc(bytes + 1);
    ret_list->names = hr__malloc(lines * sizeof *ret_list->names);
    if (ret_list->texts == NULL || ret_list->names == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory while reading %s", uri);
    return copy_names(text + bom, text + bytes, uri, ret_list->texts, ret_list, reterr);
}

void hr__voc_list_finish(struct hr_voc_list *list)
{
    hr__free(list->texts);
    hr__free(list->names);
}
