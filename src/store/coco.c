/*
 * store/coco.c - reads COCO's annotations of objects.
 *
 * Not core/doc: a tree of the polygons of COCO's training set takes tens of gigabytes.
 * Values that are not used are skipped by their brackets and quotes alone.
 */
#include "store/coco.h"

#include "core/alloc.h"
#include "core/doc.h"
#include "core/error.h"
#include "core/str.h"
#include "store/lines.h"
#include "store/store.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct category {
    int64_t id;
    size_t name; /* in the texts */
    int32_t label;
};

struct object {
    struct hr_coco_object object;
    int64_t image_id;
    uint32_t image;
    uint32_t order;
    const char *fault;
};

struct image {
    int64_t id;
    size_t name;
};

/* A growing array. */
struct rows {
    char *data;
    size_t count, room;
};

struct scan {
    const char *begin, *at, *end;
    const char *uri;
    struct hr_error *error;
    struct hr_str texts; /* names, each with its NUL */
    struct rows images, objects, categories;
    bool has_images;
};

/* ---- JSON ---- */

static enum hr_err fault_at(struct scan *s, const char *at, const char *what)
{
    int line = 1, column = 1;

    for (const char *p = s->begin; p < at; p++) {
        column = *p == '\n' ? 1 : column + 1;
        line += *p == '\n';
    }
    return hr__fail_in(s->error, HR_ERR_FORMAT, s->uri, line, column, "%s", what);
}

static enum hr_err fault(struct scan *s, const char *what)
{
    return fault_at(s, s->at, s->at >= s->end ? "unexpected end of text" : what);
}

static enum hr_err no_memory(struct scan *s)
{
    return hr__fail(s->error, HR_ERR_MEMORY, "out of memory while reading %s", s->uri);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* The next byte that is not blank, 0 at the end. */
static char peek(struct scan *s)
{
    while (s->at < s->end && is_blank(*s->at))
        s->at++;
    return s->at < s->end ? *s->at : '\0';
}

/* A string as it is written between its quotes. */
static enum hr_err read_string(struct scan *s, const char **ret_text, size_t *ret_bytes)
{
    const char *from;

    if (peek(s) != '"')
        return fault(s, "a text in quotes was expected");
    from = ++s->at;
    while (s->at < s->end && *s->at != '"')
        s->at += *s->at == '\\' && s->end - s->at > 1 ? 2 : 1;
    if (s->at >= s->end)
        return fault(s, "");
    *ret_text = from;
    *ret_bytes = (size_t)(s->at++ - from);
    return HR_OK;
}

/* A word or number, to the next separator. */
static size_t word_bytes(const struct scan *s)
{
    const char *at = s->at;

    while (at < s->end && !is_blank(*at) && memchr(",]}[{\":", *at, 7) == NULL)
        at++;
    return (size_t)(at - s->at);
}

/* Any value; brackets and strings are balanced, the rest is not looked at. */
static enum hr_err skip_value(struct scan *s)
{
    const char *text;
    size_t bytes, depth = 0;

    do {
        char c = peek(s);

        if (c == '"') {
            HR_TRY(read_string(s, &text, &bytes));
        } else if (c == '[' || c == '{') {
            depth++;
            s->at++;
        } else if (depth > 0 && (c == ']' || c == '}')) {
            depth--;
            s->at++;
        } else if (depth > 0 && (c == ',' || c == ':')) {
            s->at++;
        } else {
            bytes = word_bytes(s);
            if (bytes == 0)
                return fault(s, "a value was expected");
            s->at += bytes;
        }
    } while (depth > 0);
    return HR_OK;
}

/* Whether another item follows in a list or an object that ends with `close`. */
static enum hr_err next_item(struct scan *s, char close, bool first, bool *ret_more)
{
    char c = peek(s);

    *ret_more = false;
    if (c == close) {
        s->at++;
        return HR_OK;
    }
    if (!first) {
        if (c != ',')
            return fault(s, close == ']' ? "',' or ']' was expected"
                                         : "',' or '}' was expected");
        s->at++;
    }
    *ret_more = true;
    return HR_OK;
}

typedef enum hr_err member_fn(struct scan *s, void *user, const char *key, size_t bytes);
typedef enum hr_err item_fn(struct scan *s, void *user);

/* Calls `each` at the value of each member; it reads or skips it. */
static enum hr_err each_member(struct scan *s, member_fn *each, void *user)
{
    const char *key;
    size_t bytes;
    bool more;

    if (peek(s) != '{')
        return fault(s, "an object { was expected");
    s->at++;
    for (bool first = true;; first = false) {
        HR_TRY(next_item(s, '}', first, &more));
        if (!more)
            return HR_OK;
        HR_TRY(read_string(s, &key, &bytes));
        if (peek(s) != ':')
            return fault(s, "':' was expected");
        s->at++;
        HR_TRY(each(s, user, key, bytes));
    }
}

static enum hr_err each_item(struct scan *s, item_fn *each, void *user)
{
    bool more;

    if (peek(s) != '[')
        return fault(s, "a list [ was expected");
    s->at++;
    for (bool first = true;; first = false) {
        HR_TRY(next_item(s, ']', first, &more));
        if (!more)
            return HR_OK;
        HR_TRY(each(s, user));
    }
}

static bool is(const char *key, size_t bytes, const char *name)
{
    return bytes == strlen(name) && memcmp(key, name, bytes) == 0;
}

static enum hr_err read_id(struct scan *s, int64_t *ret_id, const char *what)
{
    size_t bytes, at;
    int64_t id = 0;
    bool negative;

    (void)peek(s);
    bytes = word_bytes(s);
    negative = bytes > 0 && *s->at == '-';
    if (bytes == negative || bytes > 18)
        return fault(s, what);
    for (at = negative; at < bytes; at++) {
        if (s->at[at] < '0' || s->at[at] > '9')
            return fault(s, what);
        id = id * 10 + (s->at[at] - '0');
    }
    s->at += bytes;
    *ret_id = negative ? -id : id;
    return HR_OK;
}

/* Skips the value; *ret_number is NAN if it is no number. */
static enum hr_err read_number(struct scan *s, double *ret_number)
{
    size_t bytes;

    *ret_number = NAN;
    (void)peek(s);
    bytes = word_bytes(s);
    if (bytes == 0 || !hr__double_parse(s->at, bytes, ret_number))
        return skip_value(s);
    s->at += bytes;
    return HR_OK;
}

/* Adds a text to the names: *ret_at is where it begins. */
static enum hr_err read_name(struct scan *s, size_t *ret_at)
{
    const char *text = NULL, *from = s->at;
    size_t bytes = 0;

    HR_TRY(read_string(s, &text, &bytes));
    *ret_at = s->texts.length;
    if (!hr__doc_unescape(text, bytes, &s->texts))
        return hr__str_ok(&s->texts)
                   ? fault_at(s, from, "this text is no valid JSON string")
                   : no_memory(s);
    if (s->texts.length > *ret_at &&
        memchr(s->texts.text + *ret_at, '\0', s->texts.length - *ret_at) != NULL)
        return fault_at(s, from, "this text contains a NUL character");
    hr__str_add_bytes(&s->texts, "", 1);
    return hr__str_ok(&s->texts) ? HR_OK : no_memory(s);
}

/* ---- the lists ---- */

static enum hr_err
add_row(struct scan *s, struct rows *rows, const void *row, size_t size)
{
    if (rows->count == rows->room) {
        size_t room = rows->room * 2 + 64;
        void *grown = room > UINT32_MAX ? NULL : hr__realloc(rows->data, room * size);

        if (grown == NULL)
            return no_memory(s);
        rows->data = grown;
        rows->room = room;
    }
    memcpy(rows->data + rows->count++ * size, row, size);
    return HR_OK;
}

struct image_row {
    struct image image;
    bool has_id, has_name;
};

static enum hr_err image_member(struct scan *s, void *user, const char *key, size_t bytes)
{
    struct image_row *row = user;

    if (is(key, bytes, "id")) {
        row->has_id = true;
        return read_id(s, &row->image.id, "the id of an image is a whole number");
    }
    if (is(key, bytes, "file_name")) {
        row->has_name = true;
        return read_name(s, &row->image.name);
    }
    return skip_value(s);
}

static enum hr_err read_image(struct scan *s, void *user)
{
    struct image_row row = {0};
    const char *from = s->at;

    (void)user;
    HR_TRY(each_member(s, image_member, &row));
    if (!row.has_id)
        return fault_at(s, from, "this image has no id");
    if (!row.has_name)
        return fault_at(s, from, "this image has no file_name");
    return add_row(s, &s->images, &row.image, sizeof row.image);
}

struct category_row {
    struct category category;
    bool has_id, has_name;
};

static enum hr_err
category_member(struct scan *s, void *user, const char *key, size_t bytes)
{
    struct category_row *row = user;

    if (is(key, bytes, "id")) {
        row->has_id = true;
        return read_id(s, &row->category.id, "the id of a category is a whole number");
    }
    if (is(key, bytes, "name")) {
        row->has_name = true;
        return read_name(s, &row->category.name);
    }
    return skip_value(s);
}

static enum hr_err read_category(struct scan *s, void *user)
{
    struct category_row row = {0};
    const char *from = s->at;

    (void)user;
    HR_TRY(each_member(s, category_member, &row));
    if (!row.has_id || !row.has_name)
        return fault_at(s, from, "this category has no id or no name");
    return add_row(s, &s->categories, &row.category, sizeof row.category);
}

struct object_row {
    struct object object;
    bool has_id, has_image, has_category, has_box, has_area;
    size_t numbers;
    double box[4];
};

static enum hr_err box_number(struct scan *s, void *user)
{
    struct object_row *row = user;
    double number;

    HR_TRY(read_number(s, &number));
    if (row->numbers < 4)
        row->box[row->numbers] = number;
    row->numbers++;
    return HR_OK;
}

static enum hr_err
object_member(struct scan *s, void *user, const char *key, size_t bytes)
{
    struct object_row *row = user;
    struct hr_coco_object *o = &row->object.object;
    double number;

    if (is(key, bytes, "id")) {
        row->has_id = true;
        return read_id(s, &o->id, "the id of an annotation is a whole number");
    }
    if (is(key, bytes, "image_id")) {
        row->has_image = true;
        return read_id(s, &row->object.image_id, "image_id is a whole number");
    }
    if (is(key, bytes, "category_id")) {
        row->has_category = true;
        return read_id(s, &o->category, "category_id is a whole number");
    }
    if (is(key, bytes, "bbox") && peek(s) == '[') {
        row->has_box = true;
        row->numbers = 0;
        return each_item(s, box_number, row);
    }
    if (is(key, bytes, "area")) {
        HR_TRY(read_number(s, &o->area));
        row->has_area = !isnan(o->area);
        return HR_OK;
    }
    if (is(key, bytes, "iscrowd")) {
        HR_TRY(read_number(s, &number));
        o->crowd = number != 0 && !isnan(number);
        return HR_OK;
    }
    return skip_value(s);
}

/* Why the annotation cannot be used, or NULL. */
static const char *object_fault(const struct object_row *row)
{
    if (!row->has_category)
        return "it has no category_id";
    if (!row->has_box)
        return "it has no bbox";
    if (row->numbers != 4)
        return "its bbox must have 4 numbers";
    for (int i = 0; i < 4; i++)
        if (!isfinite(row->box[i]) || fabs(row->box[i]) > 1e9)
            return "its bbox must have 4 finite numbers";
    if (row->box[2] < 0 || row->box[3] < 0)
        return "the width and height of its bbox must not be negative";
    return NULL;
}

static enum hr_err read_object(struct scan *s, void *user)
{
    struct object_row row = {0};
    struct hr_coco_object *o = &row.object.object;
    const char *from = s->at;

    (void)user;
    HR_TRY(each_member(s, object_member, &row));
    if (!row.has_id)
        return fault_at(s, from, "this annotation has no id");
    if (!row.has_image)
        return fault_at(s, from, "this annotation has no image_id");
    row.object.fault = object_fault(&row);
    row.object.order = (uint32_t)s->objects.count;
    o->box[0] = (float)row.box[0];
    o->box[1] = (float)row.box[1];
    o->box[2] = (float)(row.box[0] + row.box[2]);
    o->box[3] = (float)(row.box[1] + row.box[3]);
    if (!row.has_area)
        o->area = row.box[2] * row.box[3];
    return add_row(s, &s->objects, &row.object, sizeof row.object);
}

static enum hr_err top_member(struct scan *s, void *user, const char *key, size_t bytes)
{
    (void)user;
    if (is(key, bytes, "images")) {
        s->has_images = true;
        return each_item(s, read_image, NULL);
    }
    if (is(key, bytes, "annotations"))
        return each_item(s, read_object, NULL);
    if (is(key, bytes, "categories"))
        return each_item(s, read_category, NULL);
    return skip_value(s);
}

static enum hr_err read_all(struct scan *s)
{
    s->at += hr__bom_bytes(s->at, (size_t)(s->end - s->at));
    HR_TRY(each_member(s, top_member, NULL));
    if (peek(s) != '\0' || s->at < s->end)
        return fault(s, "something follows the object");
    if (!s->has_images)
        return hr__fail(s->error, HR_ERR_FORMAT,
                        "%s: there is no list \"images\": a file such as COCO's "
                        "instances_train2017.json is expected",
                        s->uri);
    return HR_OK;
}

/* ---- what belongs together ---- */

static int by_image_id(const void *a, const void *b)
{
    const struct image *x = a, *y = b;

    return (x->id > y->id) - (x->id < y->id);
}

static int by_category_id(const void *a, const void *b)
{
    const struct category *x = a, *y = b;

    return (x->id > y->id) - (x->id < y->id);
}

static int by_image(const void *a, const void *b)
{
    const struct object *x = a, *y = b;

    if (x->image != y->image)
        return x->image > y->image ? 1 : -1;
    return (x->order > y->order) - (x->order < y->order);
}

/* qsort and bsearch need an array even of nothing. */
static void sort(struct rows *rows, size_t size, int (*order)(const void *, const void *))
{
    if (rows->count > 1)
        qsort(rows->data, rows->count, size, order);
}

static const void *find(const struct rows *rows, const void *key, size_t size,
                        int (*order)(const void *, const void *))
{
    return rows->count > 0 ? bsearch(key, rows->data, rows->count, size, order) : NULL;
}

static enum hr_err check_twice(struct scan *s, const char *what, int64_t id)
{
    return hr__fail(s->error, HR_ERR_FORMAT, "%s: two %s have the id %" PRId64, s->uri,
                    what, id);
}

static const char *name_at(const struct scan *s, size_t at)
{
    return hr__str_text(&s->texts) + at;
}

/* More would take long to compare by name. */
#define CATEGORIES_MAX 32768

/* A name stands for one number: a graph that is given its classes finds them by name. */
static enum hr_err check_names(struct scan *s, const struct category *c)
{
    for (size_t i = 0; i < s->categories.count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(name_at(s, c[i].name), name_at(s, c[k].name)) == 0)
                return hr__fail(s->error, HR_ERR_FORMAT,
                                "%s: categories %" PRId64 " and %" PRId64
                                " are both called \"%s\"",
                                s->uri, c[k].id, c[i].id, name_at(s, c[i].name));
    return HR_OK;
}

/* Numbers the categories: in order of id, or as the options say; -1: not among them. */
static enum hr_err
number_categories(struct scan *s, const struct hr_coco_options *options)
{
    struct category *c = (struct category *)(void *)s->categories.data;

    if (s->categories.count > CATEGORIES_MAX)
        return hr__fail(s->error, HR_ERR_LIMIT, "%s: more than %d categories", s->uri,
                        CATEGORIES_MAX);
    sort(&s->categories, sizeof *c, by_category_id);
    HR_TRY(check_names(s, c));
    for (size_t i = 0; i < s->categories.count; i++) {
        if (i > 0 && c[i].id == c[i - 1].id)
            return check_twice(s, "categories", c[i].id);
        c[i].label = options->classes == NULL ? (int32_t)i : -1;
        for (size_t k = 0; k < options->class_count && c[i].label < 0; k++)
            if (strcmp(options->classes[k], name_at(s, c[i].name)) == 0)
                c[i].label = (int32_t)k;
    }
    return HR_OK;
}

/* Finds the image and the category of each annotation. */
static enum hr_err link_objects(struct scan *s)
{
    const struct image *images = (const struct image *)(const void *)s->images.data;
    struct object *objects = (struct object *)(void *)s->objects.data;

    for (size_t i = 0; i < s->objects.count; i++) {
        struct object *o = &objects[i];
        const struct image image = {.id = o->image_id}, *found;
        const struct category key = {.id = o->object.category}, *category;

        found = find(&s->images, &image, sizeof image, by_image_id);
        if (found == NULL)
            return hr__fail(s->error, HR_ERR_FORMAT,
                            "%s: annotation %" PRId64 " is of image %" PRId64
                            ", which is not listed",
                            s->uri, o->object.id, o->image_id);
        o->image = (uint32_t)(found - images);
        category = find(&s->categories, &key, sizeof key, by_category_id);
        if (category == NULL && o->fault == NULL)
            o->fault = "its category is not listed";
        if (category != NULL && category->label < 0 && o->fault == NULL)
            o->fault = "its category is not among `classes`";
        o->object.label = category != NULL ? category->label : 0;
    }
    return HR_OK;
}

static enum hr_err take_categories(struct scan *s, const struct hr_coco_options *options,
                                   struct hr_coco *coco)
{
    const struct category *c = (const struct category *)(const void *)s->categories.data;

    coco->category_count =
        options->classes != NULL ? options->class_count : s->categories.count;
    coco->categories = hr__malloc(coco->category_count * sizeof *coco->categories + 1);
    if (coco->categories == NULL)
        return no_memory(s);
    for (size_t i = 0; i < coco->category_count; i++)
        coco->categories[i] =
            options->classes != NULL ? options->classes[i] : coco->texts + c[i].name;
    return HR_OK;
}

/* Copies the objects of an image from objects[*at] on. */
static void
take_objects(const struct scan *s, const struct hr_coco_options *options, uint32_t image,
             size_t *at, struct hr_coco *coco, struct hr_coco_image *to)
{
    const struct object *objects = (const struct object *)(const void *)s->objects.data;

    to->first = (uint32_t)coco->object_count;
    for (; *at < s->objects.count && objects[*at].image == image; ++*at) {
        const struct object *o = &objects[*at];

        if (options->drop_crowd && o->object.crowd)
            continue;
        if (o->fault != NULL && to->fault == NULL) {
            to->fault = o->fault;
            to->fault_id = o->object.id;
        }
        coco->objects[coco->object_count++] = o->object;
    }
    to->count = (uint32_t)coco->object_count - to->first;
}

static enum hr_err
take(struct scan *s, const struct hr_coco_options *options, struct hr_coco *coco)
{
    const struct image *images = (const struct image *)(const void *)s->images.data;
    size_t at = 0;

    coco->texts = s->texts.length > 0 ? hr__str_take(&s->texts) : NULL;
    coco->images = hr__calloc(s->images.count + 1, sizeof *coco->images);
    coco->objects = hr__calloc(s->objects.count + 1, sizeof *coco->objects);
    if (coco->images == NULL || coco->objects == NULL)
        return no_memory(s);
    HR_TRY(take_categories(s, options, coco));
    for (size_t i = 0; i < s->images.count; i++) {
        struct hr_coco_image *to = &coco->images[coco->image_count];

        *to = (struct hr_coco_image){.id = images[i].id,
                                     .name = coco->texts + images[i].name};
        take_objects(s, options, (uint32_t)i, &at, coco, to);
        if (!options->drop_empty || to->count > 0)
            coco->image_count++;
    }
    return HR_OK;
}

static enum hr_err
arrange(struct scan *s, const struct hr_coco_options *options, struct hr_coco *coco)
{
    const struct image *images;

    sort(&s->images, sizeof *images, by_image_id);
    images = (const struct image *)(const void *)s->images.data;
    for (size_t i = 1; i < s->images.count; i++)
        if (images[i].id == images[i - 1].id)
            return check_twice(s, "images", images[i].id);
    HR_TRY(number_categories(s, options));
    HR_TRY(link_objects(s));
    sort(&s->objects, sizeof(struct object), by_image);
    return take(s, options, coco);
}

enum hr_err hr__coco_parse(const char *text, size_t bytes, const char *uri,
                           const struct hr_coco_options *options,
                           struct hr_coco *ret_coco, struct hr_error *reterr)
{
    struct scan s = {
        .begin = text, .at = text, .end = text + bytes, .uri = uri, .error = reterr};
    enum hr_err err;

    memset(ret_coco, 0, sizeof *ret_coco);
    hr__str_init(&s.texts);
    err = read_all(&s);
    if (err == HR_OK)
        err = arrange(&s, options, ret_coco);
    hr__str_finish(&s.texts);
    hr__free(s.images.data);
    hr__free(s.objects.data);
    hr__free(s.categories.data);
    return err;
}

enum hr_err hr__coco_read(const char *uri, const struct hr_coco_options *options,
                          struct hr_coco *ret_coco, struct hr_error *reterr)
{
    struct hr_store_map map;
    enum hr_err err;

    memset(ret_coco, 0, sizeof *ret_coco);
    HR_TRY(hr__store_map(uri, &map, reterr));
    err = hr__coco_parse(map.data != NULL ? map.data : "", map.bytes, uri, options,
                         ret_coco, reterr);
    hr__store_unmap(&map);
    return err;
}

void hr__coco_finish(struct hr_coco *coco)
{
    hr__free(coco->images);
    hr__free(coco->objects);
    hr__free(coco->categories);
    hr__free(coco->texts);
}
