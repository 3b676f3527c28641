/*
 * core/doc_yaml.c - reads YAML from libyaml's events.
 *
 * libyaml finds the structure; this file interprets plain scalars (core schema) and
 * enforces what is allowed and the limits. An alias becomes a copy of its anchor and
 * counts against the same limits as written values. Not supported: keys that are not
 * scalars, merge keys, tags other than !!str, more than one document.
 *
 * Why libyaml rather than libfyaml: docs/decisions/0005-libyaml.md. libyaml has its own
 * allocator, so core/alloc.h does not count its allocations.
 */
#include "core/alloc.h"
#include "core/doc_internal.h"
#include "core/error.h"
#include "core/str.h"

#include <string.h>
#include <yaml.h>

struct anchor {
    struct anchor *next;
    char *name;
    const struct hr_doc *doc; /* in the tree being built */
};

struct yaml {
    struct hr_doc_reader *reader;
    const char *text;
    size_t bytes;
    yaml_parser_t parser;
    struct anchor *anchors; /* newest first: a later anchor may reuse a name */
};

static enum hr_err
read_node(struct yaml *yaml, yaml_event_t *event, struct hr_doc **ret_doc);

static struct hr_doc_mark at(yaml_mark_t mark)
{
    return (struct hr_doc_mark){(int)mark.line + 1, (int)mark.column + 1};
}

/* For bytes that libyaml cannot decode it reports an offset but no line. */
static struct hr_doc_mark at_offset(const struct yaml *yaml, size_t offset)
{
    struct hr_doc_mark mark = {1, 1};

    for (size_t i = 0; i < offset && i < yaml->bytes; i++) {
        if (yaml->text[i] == '\n') {
            mark.line++;
            mark.column = 1;
        } else if (((unsigned char)yaml->text[i] & 0xC0) != 0x80) {
            mark.column++;
        }
    }
    return mark;
}

static enum hr_err parser_failed(const struct yaml *yaml)
{
    const yaml_parser_t *parser = &yaml->parser;
    const char *problem = parser->problem != NULL ? parser->problem : "malformed YAML";

    if (parser->error == YAML_MEMORY_ERROR)
        return hr__doc_fail(yaml->reader, HR_ERR_MEMORY, at(parser->mark),
                            "out of memory");
    if (parser->error == YAML_READER_ERROR)
        return hr__doc_fail(yaml->reader, HR_ERR_FORMAT,
                            at_offset(yaml, parser->problem_offset), "%s", problem);
    if (parser->context == NULL)
        return hr__doc_fail(yaml->reader, HR_ERR_FORMAT, at(parser->problem_mark), "%s",
                            problem);
    return hr__doc_fail(yaml->reader, HR_ERR_FORMAT, at(parser->problem_mark),
                        "%s (%s from line %d)", problem, parser->context,
                        (int)parser->context_mark.line + 1);
}

static enum hr_err next_event(struct yaml *yaml, yaml_event_t *event)
{
    return yaml_parser_parse(&yaml->parser, event) ? HR_OK : parser_failed(yaml);
}

static enum hr_err no_memory(struct yaml *yaml, yaml_mark_t mark)
{
    return hr__doc_fail(yaml->reader, HR_ERR_MEMORY, at(mark), "out of memory");
}

static enum hr_err add_anchor(struct yaml *yaml, const yaml_char_t *name,
                              yaml_mark_t mark, const struct hr_doc *doc)
{
    struct anchor *anchor;

    if (name == NULL)
        return HR_OK;
    anchor = hr__calloc(1, sizeof *anchor);
    if (anchor == NULL)
        return no_memory(yaml, mark);
    anchor->name = hr__strdup((const char *)name);
    if (anchor->name == NULL) {
        hr__free(anchor);
        return no_memory(yaml, mark);
    }
    anchor->doc = doc;
    anchor->next = yaml->anchors;
    yaml->anchors = anchor;
    return HR_OK;
}

static void free_anchors(struct yaml *yaml)
{
    while (yaml->anchors != NULL) {
        struct anchor *anchor = yaml->anchors;

        yaml->anchors = anchor->next;
        hr__free(anchor->name);
        hr__free(anchor);
    }
}

/* Counts a copy of `doc` against the limits; false if it exceeds them. */
static bool count_copy(struct hr_doc_reader *reader, const struct hr_doc *doc, int depth)
{
    if (++reader->nodes > HR_DOC_NODES_MAX || reader->bytes > HR_DOC_BYTES_MAX ||
        depth > HR_DOC_DEPTH_MAX)
        return false;
    if (doc->kind == HR_DOC_STRING)
        reader->bytes += doc->as.string.length;
    if (doc->kind == HR_DOC_LIST) {
        for (size_t i = 0; i < doc->as.list.count; i++) {
            if (!count_copy(reader, doc->as.list.items[i], depth + 1))
                return false;
        }
    }
    if (doc->kind == HR_DOC_MAP) {
        for (size_t i = 0; i < doc->as.map.count; i++) {
            reader->bytes += strlen(doc->as.map.pairs[i].key);
            if (!count_copy(reader, doc->as.map.pairs[i].value, depth + 1))
                return false;
        }
    }
    return true;
}

static enum hr_err
read_alias(struct yaml *yaml, const yaml_event_t *event, struct hr_doc **ret_doc)
{
    const char *name = (const char *)event->data.alias.anchor;
    const struct anchor *anchor = yaml->anchors;
    struct hr_doc *copy;

    while (anchor != NULL && strcmp(anchor->name, name) != 0)
        anchor = anchor->next;
    if (anchor == NULL)
        return hr__doc_fail(yaml->reader, HR_ERR_FORMAT, at(event->start_mark),
                            "alias *%.100s has no finished anchor before it", name);
    if (!count_copy(yaml->reader, anchor->doc, yaml->reader->depth))
        return hr__doc_fail(yaml->reader, HR_ERR_LIMIT, at(event->start_mark),
                            "alias *%.100s makes the document too large", name);
    copy = hr__doc_copy(anchor->doc);
    if (copy == NULL)
        return no_memory(yaml, event->start_mark);
    copy->line = at(event->start_mark).line;
    copy->column = at(event->start_mark).column;
    *ret_doc = copy;
    return HR_OK;
}

/* "!" and "!!str" make a string of any scalar. */
static bool is_string_tag(const yaml_char_t *tag)
{
    return tag != NULL && (strcmp((const char *)tag, "!") == 0 ||
                           strcmp((const char *)tag, YAML_STR_TAG) == 0);
}

static enum hr_err
refuse_tag(struct yaml *yaml, const yaml_event_t *event, const yaml_char_t *tag)
{
    return hr__doc_fail(yaml->reader, HR_ERR_UNSUPPORTED, at(event->start_mark),
                        "tag %.100s is not supported", (const char *)tag);
}

static enum hr_err
read_scalar(struct yaml *yaml, const yaml_event_t *event, struct hr_doc **ret_doc)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    struct hr_doc *doc;
    enum hr_err err;

    if (event->data.scalar.tag != NULL && !is_string_tag(event->data.scalar.tag))
        return refuse_tag(yaml, event, event->data.scalar.tag);
    HR_TRY(hr__doc_node(yaml->reader, HR_DOC_NULL, at(event->start_mark), &doc));
    doc->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE ||
                  event->data.scalar.tag != NULL;
    err = doc->quoted ? hr__doc_set_string(doc, text, length)
                      : hr__doc_set_scalar(doc, text, length);
    if (err == HR_OK) {
        *ret_doc = doc;
        return HR_OK;
    }
    hr__doc_destroy(doc);
    return no_memory(yaml, event->start_mark);
}

static enum hr_err read_items(struct yaml *yaml, struct hr_doc *list)
{
    for (;;) {
        struct hr_doc *item;
        yaml_event_t event;
        enum hr_err err;

        HR_TRY(next_event(yaml, &event));
        if (event.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&event);
            return HR_OK;
        }
        err = read_node(yaml, &event, &item);
        if (err == HR_OK && hr__doc_append(list, item) != HR_OK)
            err = no_memory(yaml, event.start_mark);
        yaml_event_delete(&event);
        HR_TRY(err);
    }
}

static enum hr_err read_key(struct yaml *yaml, const yaml_event_t *event, char **ret_key)
{
    const char *text = (const char *)event->data.scalar.value;
    char *key;

    if (event->type != YAML_SCALAR_EVENT)
        return hr__doc_fail(yaml->reader, HR_ERR_UNSUPPORTED, at(event->start_mark),
                            "a key must be a plain or quoted scalar");
    if (event->data.scalar.tag != NULL && !is_string_tag(event->data.scalar.tag))
        return refuse_tag(yaml, event, event->data.scalar.tag);
    if (event->data.scalar.anchor != NULL)
        return hr__doc_fail(yaml->reader, HR_ERR_UNSUPPORTED, at(event->start_mark),
                            "anchors on keys are not supported");
    if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && strcmp(text, "<<") == 0)
        return hr__doc_fail(yaml->reader, HR_ERR_UNSUPPORTED, at(event->start_mark),
                            "merge keys (<<) are not supported: list the keys instead");
    if (memchr(text, '\0', event->data.scalar.length) != NULL)
        return hr__doc_fail(yaml->reader, HR_ERR_FORMAT, at(event->start_mark),
                            "a key must not contain a NUL character");
    key = hr__strdup(text);
    if (key == NULL)
        return no_memory(yaml, event->start_mark);
    *ret_key = key;
    return HR_OK;
}

static enum hr_err read_next(struct yaml *yaml, struct hr_doc **ret_doc)
{
    yaml_event_t event;
    enum hr_err err;

    HR_TRY(next_event(yaml, &event));
    err = read_node(yaml, &event, ret_doc);
    yaml_event_delete(&event);
    return err;
}

static enum hr_err read_pairs(struct yaml *yaml, struct hr_doc *map)
{
    for (;;) {
        struct hr_doc *value = NULL;
        yaml_event_t event;
        yaml_mark_t mark;
        enum hr_err err;
        char *key = NULL;

        HR_TRY(next_event(yaml, &event));
        mark = event.start_mark;
        if (event.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&event);
            return hr__doc_check_keys(yaml->reader, map);
        }
        err = read_key(yaml, &event, &key);
        yaml_event_delete(&event);
        HR_TRY(err);
        err = read_next(yaml, &value);
        if (err != HR_OK) {
            hr__free(key);
            return err;
        }
        if (hr__doc_push_pair(map, key, value, at(mark)) != HR_OK)
            return no_memory(yaml, mark);
    }
}

static enum hr_err
read_collection(struct yaml *yaml, const yaml_event_t *event, struct hr_doc **ret_doc)
{
    bool is_list = event->type == YAML_SEQUENCE_START_EVENT;
    const yaml_char_t *tag =
        is_list ? event->data.sequence_start.tag : event->data.mapping_start.tag;
    struct hr_doc *doc;
    enum hr_err err;

    if (tag != NULL && strcmp((const char *)tag, "!") != 0)
        return refuse_tag(yaml, event, tag);
    HR_TRY(hr__doc_enter(yaml->reader, at(event->start_mark)));
    HR_TRY(hr__doc_node(yaml->reader, is_list ? HR_DOC_LIST : HR_DOC_MAP,
                        at(event->start_mark), &doc));
    err = is_list ? read_items(yaml, doc) : read_pairs(yaml, doc);
    yaml->reader->depth--;
    if (err != HR_OK) {
        hr__doc_destroy(doc);
        return err;
    }
    *ret_doc = doc;
    return HR_OK;
}

/* Reads the value that starts with `event`; the caller deletes the event. After a
 * failure, anchors may point to freed values and reading must stop. */
static enum hr_err
read_node(struct yaml *yaml, yaml_event_t *event, struct hr_doc **ret_doc)
{
    const yaml_char_t *name = NULL;
    struct hr_doc *doc = NULL;

    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return read_alias(yaml, event, ret_doc);
    case YAML_SCALAR_EVENT:
        name = event->data.scalar.anchor;
        HR_TRY(read_scalar(yaml, event, &doc));
        break;
    case YAML_SEQUENCE_START_EVENT:
        name = event->data.sequence_start.anchor;
        HR_TRY(read_collection(yaml, event, &doc));
        break;
    case YAML_MAPPING_START_EVENT:
        name = event->data.mapping_start.anchor;
        HR_TRY(read_collection(yaml, event, &doc));
        break;
    default:
        return hr__doc_fail(yaml->reader, HR_ERR_FORMAT, at(event->start_mark),
                            "expected a value");
    }
    if (add_anchor(yaml, name, event->start_mark, doc) != HR_OK) {
        hr__doc_destroy(doc);
        return HR_ERR_MEMORY;
    }
    *ret_doc = doc;
    return HR_OK;
}

/* Fails with `message` unless the next event is of `type`. */
static enum hr_err expect(struct yaml *yaml, yaml_event_type_t type, const char *message)
{
    enum hr_err err = HR_OK;
    yaml_event_t event;

    HR_TRY(next_event(yaml, &event));
    if (event.type != type)
        err = hr__doc_fail(yaml->reader, HR_ERR_FORMAT, at(event.start_mark), "%s",
                           message);
    yaml_event_delete(&event);
    return err;
}

static enum hr_err read_stream(struct yaml *yaml, struct hr_doc **ret_doc)
{
    struct hr_doc *doc = NULL;
    yaml_event_type_t type;
    yaml_event_t event;
    enum hr_err err;

    HR_TRY(expect(yaml, YAML_STREAM_START_EVENT, "expected a YAML stream"));
    HR_TRY(next_event(yaml, &event));
    type = event.type;
    yaml_event_delete(&event);
    if (type == YAML_STREAM_END_EVENT) /* nothing but comments */
        return hr__doc_node(yaml->reader, HR_DOC_NULL, (struct hr_doc_mark){1, 1},
                            ret_doc);
    HR_TRY(read_next(yaml, &doc));
    err = expect(yaml, YAML_DOCUMENT_END_EVENT, "expected the end of the document");
    if (err == HR_OK)
        err = expect(yaml, YAML_STREAM_END_EVENT, "expected a single document");
    if (err != HR_OK) {
        hr__doc_destroy(doc);
        return err;
    }
    *ret_doc = doc;
    return HR_OK;
}

enum hr_err hr__doc_read_yaml(struct hr_doc_reader *reader, const char *text,
                              size_t bytes, struct hr_doc **ret_doc)
{
    struct yaml yaml = {.reader = reader, .text = text, .bytes = bytes};
    enum hr_err err;

    if (hr__fault(HR_FAULT_ALLOC) || !yaml_parser_initialize(&yaml.parser))
        return hr__doc_fail(reader, HR_ERR_MEMORY, (struct hr_doc_mark){1, 1},
                            "out of memory");
    yaml_parser_set_encoding(&yaml.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&yaml.parser, (const unsigned char *)text, bytes);
    err = read_stream(&yaml, ret_doc);
    free_anchors(&yaml);
    yaml_parser_delete(&yaml.parser);
    return err;
}
