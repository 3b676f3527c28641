/*
 * store/index_list.h - what index_list.c, index_list_text.c and index_store.c share.
 */
#ifndef HR_STORE_INDEX_LIST_H
#define HR_STORE_INDEX_LIST_H

#include "store/index_internal.h"

struct hr_span {
    const char *text;
    size_t bytes;
};

struct hr_list_class {
    size_t at, bytes; /* in class_text */
    uint32_t rank;
};

struct hr_list_reading {
    const char *path; /* for messages */
    int line;         /* where the record began */
    struct hr_error *error;
    const char *at, *end;
    /* the records so far */
    struct hr_index_bytes pool;
    uint64_t *offset;
    size_t count, offset_room;
    int64_t *labels; /* number, or class while names are collected */
    size_t label_room;
    bool labelled, texts, numbers;
    struct hr_index_bytes class_text;
    struct hr_list_class *classes;
    size_t class_count, class_room;
    uint32_t *table; /* class + 1 by hash; power of two */
    size_t table_size;
    struct hr_index_bytes field; /* of the record being read, unquoted */
};

/* Reads all records from at to end. */
enum hr_err hr__list_read_csv(struct hr_list_reading *r);
enum hr_err hr__list_read_jsonl(struct hr_list_reading *r);

/* Adds a record; `label` is ignored unless has_label. */
enum hr_err hr__list_add_record(struct hr_list_reading *r, struct hr_span path,
                                struct hr_span label, bool has_label);

/* A class that may have no records. */
enum hr_err hr__list_add_class(struct hr_list_reading *r, struct hr_span name);

/* Turns the records into a list; free the rest with hr__list_free. */
enum hr_err hr__list_hand_over(struct hr_list_reading *r, struct hr_index_list *list);
void hr__list_free(struct hr_list_reading *r);

/* Parses an integer that fits, with nothing around it. */
bool hr__list_number(struct hr_span text, int64_t *ret_number);
bool hr__list_add_bytes(struct hr_index_bytes *to, const void *bytes, size_t count);

/* HR_ERR_FORMAT with file and line; HR_ERR_MEMORY. */
enum hr_err hr__list_wrong(struct hr_list_reading *r, const char *what);
enum hr_err hr__list_no_memory(struct hr_list_reading *r);

#endif
