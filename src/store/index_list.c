/*
 * store/index_list.c - lists of files and labels: what the records mean.
 *
 * A list is read in one pass into the bytes of the paths and one label each. If all
 * labels are integers they are kept; otherwise they are class names, and a label is the
 * rank of its name. A hash table finds class names while the list is read. The syntax of
 * records is in index_list_text.c.
 */
#include "store/index_list.h"
#include "core/alloc.h"
#include "core/error.h"
#include "store/store.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FILE_BYTES_MAX ((size_t)16 << 30)

enum hr_err hr__list_wrong(struct hr_list_reading *r, const char *what)
{
    if (r->error != NULL) {
        r->error->line = r->line;
        r->error->column = 0;
        strncpy(r->error->file, r->path, sizeof r->error->file - 1);
        r->error->file[sizeof r->error->file - 1] = '\0';
    }
    return hr__fail(r->error, HR_ERR_FORMAT, "%s:%d: %s", r->path, r->line, what);
}

enum hr_err hr__list_no_memory(struct hr_list_reading *r)
{
    return hr__fail(r->error, HR_ERR_MEMORY, "out of memory while reading %s", r->path);
}

bool hr__list_add_bytes(struct hr_index_bytes *to, const void *bytes, size_t count)
{
    if (!hr__index_room(&to->data, to->bytes, &to->room, count, 1))
        return false;
    if (count > 0)
        memcpy(to->data + to->bytes, bytes, count);
    to->bytes += count;
    return true;
}

bool hr__list_number(struct hr_span text, int64_t *ret_number)
{
    size_t i = text.bytes > 0 && text.text[0] == '-';
    uint64_t value = 0;
    bool negative = i == 1;

    if (i == text.bytes || text.bytes - i > 19)
        return false;
    for (; i < text.bytes; i++) {
        if (text.text[i] < '0' || text.text[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(text.text[i] - '0');
    }
    if (value > INT64_MAX)
        return false;
    *ret_number = negative ? -(int64_t)value : (int64_t)value;
    return true;
}

static bool grow_table(struct hr_list_reading *r)
{
    size_t size = r->table_size == 0 ? 1024 : r->table_size * 2;
    uint32_t *table = hr__calloc(size, sizeof *table);

    if (table == NULL)
        return false;
    for (size_t i = 0; i < r->class_count; i++) {
        const struct hr_list_class *name = &r->classes[i];
        uint64_t slot = hr__hash64(r->class_text.data + name->at, name->bytes, 0);

        while (table[slot & (size - 1)] != 0)
            slot++;
        table[slot & (size - 1)] = (uint32_t)i + 1;
    }
    hr__free(r->table);
    r->table = table;
    r->table_size = size;
    return true;
}

/* The number of class `text`, added if it is new; -1 when out of memory. */
static int64_t class_of(struct hr_list_reading *r, struct hr_span text)
{
    uint64_t slot = hr__hash64(text.text, text.bytes, 0);

    if (r->class_count * 2 >= r->table_size && !grow_table(r))
        return -1;
    for (;; slot++) {
        uint32_t *entry = &r->table[slot & (r->table_size - 1)];

        if (*entry != 0) {
            const struct hr_list_class *name = &r->classes[*entry - 1];

            if (name->bytes == text.bytes &&
                memcmp(r->class_text.data + name->at, text.text, text.bytes) == 0)
                return *entry - 1;
            continue;
        }
        if (r->class_count >= INT32_MAX ||
            !hr__index_room(&r->classes, r->class_count, &r->class_room, 1,
                            sizeof *r->classes) ||
            !hr__list_add_bytes(&r->class_text, text.text, text.bytes))
            return -1;
        r->classes[r->class_count] =
            (struct hr_list_class){r->class_text.bytes - text.bytes, text.bytes, 0};
        *entry = (uint32_t)++r->class_count;
        return (int64_t)r->class_count - 1;
    }
}

enum hr_err hr__list_add_class(struct hr_list_reading *r, struct hr_span name)
{
    return class_of(r, name) < 0 ? hr__list_no_memory(r) : HR_OK;
}

static enum hr_err add_label(struct hr_list_reading *r, int64_t label)
{
    if (!hr__index_room(&r->labels, r->count, &r->label_room, 1, sizeof *r->labels))
        return hr__list_no_memory(r);
    r->labels[r->count] = label;
    return HR_OK;
}

static enum hr_err add_path(struct hr_list_reading *r, struct hr_span path)
{
    if (path.bytes == 0)
        return hr__list_wrong(r, "the path is empty");
    if (path.bytes >= HR_INDEX_PATH_MAX)
        return hr__list_wrong(r, "the path is too long");
    if (memchr(path.text, '\0', path.bytes) != NULL)
        return hr__list_wrong(r, "the path holds a zero byte");
    if (!hr__index_room(&r->offset, r->count, &r->offset_room, 2, sizeof *r->offset) ||
        !hr__list_add_bytes(&r->pool, path.text, path.bytes))
        return hr__list_no_memory(r);
    r->offset[r->count++] = r->pool.bytes - path.bytes;
    r->offset[r->count] = r->pool.bytes;
    return HR_OK;
}

/* Whether labels are numbers is known only at the end of a CSV file; until then each text
 * is a class. */
enum hr_err hr__list_add_record(struct hr_list_reading *r, struct hr_span path,
                                struct hr_span label, bool has_label)
{
    int64_t class;

    if (r->count > 0 && has_label != r->labelled)
        return hr__list_wrong(r, has_label
                                     ? "has a label, the records before it have none"
                                     : "has no label, the records before it have one");
    if (has_label && label.bytes == 0)
        return hr__list_wrong(r, "the label is empty");
    if (has_label && memchr(label.text, '\0', label.bytes) != NULL)
        return hr__list_wrong(r, "the label holds a zero byte");
    r->labelled = has_label;
    if (has_label) {
        class = class_of(r, label);
        if (class < 0)
            return hr__list_no_memory(r);
        HR_TRY(add_label(r, class));
    }
    return add_path(r, path);
}

static bool all_are_numbers(const struct hr_list_reading *r)
{
    int64_t number;

    for (size_t i = 0; i < r->class_count; i++) {
        if (!hr__list_number((struct hr_span){r->class_text.data + r->classes[i].at,
                                              r->classes[i].bytes},
                             &number))
            return false;
    }
    return true;
}

static enum hr_err numbers_from_names(struct hr_list_reading *r)
{
    int64_t *numbers = hr__malloc(r->class_count * sizeof *numbers);

    if (numbers == NULL)
        return hr__list_no_memory(r);
    for (size_t i = 0; i < r->class_count; i++)
        (void)hr__list_number(
            (struct hr_span){r->class_text.data + r->classes[i].at, r->classes[i].bytes},
            &numbers[i]);
    for (size_t i = 0; i < r->count; i++)
        r->labels[i] = numbers[r->labels[i]];
    hr__free(numbers);
    return HR_OK;
}

struct ranked {
    char *text;
    uint32_t class;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    return strcmp(x->text, y->text);
}

/* Sorts class names into one block after their pointers; labels become ranks. */
static enum hr_err rank_names(struct hr_list_reading *r, struct hr_index_list *list)
{
    size_t count = r->class_count;
    size_t bytes = count * sizeof *list->classes + r->class_text.bytes + count;
    struct ranked *ranked = hr__malloc(count * sizeof *ranked);
    char **classes = hr__malloc(bytes);
    char *text;

    if (ranked == NULL || classes == NULL) {
        hr__free(ranked);
        hr__free(classes);
        return hr__list_no_memory(r);
    }
    text = (char *)(classes + count);
    for (size_t i = 0; i < count; i++) {
        memcpy(text, r->class_text.data + r->classes[i].at, r->classes[i].bytes);
        text[r->classes[i].bytes] = '\0';
        ranked[i] = (struct ranked){text, (uint32_t)i};
        text += r->classes[i].bytes + 1;
    }
    qsort(ranked, count, sizeof *ranked, compare_ranked);
    for (size_t i = 0; i < count; i++) {
        classes[i] = ranked[i].text;
        r->classes[ranked[i].class].rank = (uint32_t)i;
    }
    for (size_t i = 0; i < r->count; i++)
        r->labels[i] = r->classes[r->labels[i]].rank;
    hr__free(ranked);
    list->classes = classes;
    list->class_count = count;
    list->class_bytes = bytes;
    return HR_OK;
}

static bool is_jsonl(const char *path, const char *text, size_t bytes)
{
    size_t length = strlen(path);

    return (length > 6 && strcasecmp(path + length - 6, ".jsonl") == 0) ||
           (bytes > 0 && text[0] == '{');
}

static void shrink(void *array, size_t bytes)
{
    void *old, *small;

    memcpy(&old, array, sizeof old);
    small = hr__realloc(old, bytes);
    if (small != NULL)
        memcpy(array, &small, sizeof small);
}

enum hr_err hr__list_hand_over(struct hr_list_reading *r, struct hr_index_list *list)
{
    if (r->labelled && r->count > 0) {
        if (!r->texts && all_are_numbers(r))
            HR_TRY(numbers_from_names(r));
        else
            HR_TRY(rank_names(r, list));
        shrink(&r->labels, r->count * sizeof *r->labels);
        list->labels = r->labels;
        r->labels = NULL;
    }
    if (r->count > 0) {
        shrink(&r->pool.data, r->pool.bytes);
        shrink(&r->offset, (r->count + 1) * sizeof *r->offset);
    }
    list->pool = r->pool.data;
    list->offset = r->offset;
    list->count = r->count;
    r->pool.data = NULL;
    r->offset = NULL;
    return HR_OK;
}

void hr__list_free(struct hr_list_reading *r)
{
    hr__free(r->pool.data);
    hr__free(r->offset);
    hr__free(r->labels);
    hr__free(r->class_text.data);
    hr__free(r->classes);
    hr__free(r->table);
    hr__free(r->field.data);
}

enum hr_err hr__index_list_parse(const char *text, size_t bytes, const char *path,
                                 struct hr_index_list *ret_list, struct hr_error *reterr)
{
    struct hr_index_list list = {0};
    struct hr_list_reading r = {.path = path, .error = reterr, .end = text + bytes};
    enum hr_err err;

    r.at = text + (bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0);
    err = is_jsonl(path, r.at, (size_t)(r.end - r.at)) ? hr__list_read_jsonl(&r)
                                                       : hr__list_read_csv(&r);
    if (err == HR_OK)
        err = hr__list_hand_over(&r, &list);
    if (err == HR_OK)
        *ret_list = list;
    hr__list_free(&r);
    return err;
}

enum hr_err hr__index_list_read(const char *path, struct hr_index_list *ret_list,
                                struct hr_error *reterr)
{
    size_t bytes;
    char *text;
    enum hr_err err;

    HR_TRY(hr__store_load(path, FILE_BYTES_MAX, &text, &bytes, reterr));
    err = hr__index_list_parse(text, bytes, path, ret_list, reterr);
    hr__free(text);
    return err;
}

void hr__index_list_finish(struct hr_index_list *list)
{
    hr__free(list->offset);
    hr__free(list->pool);
    hr__free(list->labels);
    hr__free(list->classes);
    memset(list, 0, sizeof *list);
}
