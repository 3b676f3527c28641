/*
 * store/classes.c - see store/classes.h. A hash table finds the name of a cell among a
 * million others while labels are read.
 */
#include "store/classes.h"
#include "core/alloc.h"
#include "core/hash.h"
#include <stdlib.h>
#include <string.h>

/* The slot of the name, or the free one where it belongs. */
static uint32_t *slot_of(const struct hr_class_set *set, const char *name, size_t bytes)
{
    for (uint64_t slot = hr__hash64(name, bytes, 0);; slot++) {
        uint32_t *entry = &set->table[slot & (set->table_size - 1)];
        const struct hr_class_name *other;

        if (*entry == 0)
            return entry;
        other = &set->names[*entry - 1];
        if (other->bytes == bytes && memcmp(set->text + other->at, name, bytes) == 0)
            return entry;
    }
}

static bool grow_table(struct hr_class_set *set)
{
    size_t size = set->table_size == 0 ? 1024 : set->table_size * 2;
    uint32_t *table = hr__calloc(size, sizeof *table);

    if (table == NULL)
        return false;
    hr__free(set->table);
    set->table = table;
    set->table_size = size;
    for (size_t i = 0; i < set->count; i++)
        *slot_of(set, set->text + set->names[i].at, set->names[i].bytes) =
            (uint32_t)i + 1;
    return true;
}

int64_t hr__class_add(struct hr_class_set *set, const char *name, size_t bytes)
{
    uint32_t *slot;

    if (set->count * 2 >= set->table_size && !grow_table(set))
        return -1;
    slot = slot_of(set, name, bytes);
    if (*slot != 0)
        return *slot - 1;
    if (set->count >= INT32_MAX ||
        !hr__array_room(&set->names, set->count, &set->room, 1, sizeof *set->names) ||
        !hr__array_room(&set->text, set->text_bytes, &set->text_room, bytes + 1, 1))
        return -1;
    memcpy(set->text + set->text_bytes, name, bytes);
    set->names[set->count] = (struct hr_class_name){set->text_bytes, bytes};
    set->text_bytes += bytes;
    *slot = (uint32_t)++set->count;
    return (int64_t)set->count - 1;
}

int64_t hr__class_find(const struct hr_class_set *set, const char *name, size_t bytes)
{
    return set->count == 0 ? -1 : (int64_t)*slot_of(set, name, bytes) - 1;
}

struct ranked {
    const char *name;
    uint32_t number;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    return strcmp(x->name, y->name);
}

static bool sort(struct hr_classes *classes, uint32_t *ranks)
{
    struct ranked *ranked = hr__malloc(classes->count * sizeof *ranked + 1);

    if (ranked == NULL)
        return false;
    for (size_t i = 0; i < classes->count; i++)
        ranked[i] = (struct ranked){classes->names[i], (uint32_t)i};
    qsort(ranked, classes->count, sizeof *ranked, compare_ranked);
    for (size_t i = 0; i < classes->count; i++) {
        classes->names[i] = ranked[i].name;
        ranks[ranked[i].number] = (uint32_t)i;
    }
    hr__free(ranked);
    return true;
}

enum hr_err hr__class_close(const struct hr_class_set *set, uint32_t *ranks,
                            struct hr_classes *ret_classes)
{
    struct hr_classes classes = {.count = set->count};
    char *text;

    classes.bytes = set->count * (sizeof *classes.names + 1) + set->text_bytes;
    classes.names = hr__malloc(classes.bytes + 1);
    if (classes.names == NULL)
        return HR_ERR_MEMORY;
    text = (char *)(classes.names + set->count);
    for (size_t i = 0; i < set->count; i++) {
        memcpy(text, set->text + set->names[i].at, set->names[i].bytes);
        text[set->names[i].bytes] = '\0';
        classes.names[i] = text;
        text += set->names[i].bytes + 1;
    }
    if (ranks != NULL && !sort(&classes, ranks)) {
        hr__classes_free(&classes);
        return HR_ERR_MEMORY;
    }
    *ret_classes = classes;
    return HR_OK;
}

void hr__class_set_free(struct hr_class_set *set)
{
    hr__free(set->text);
    hr__free(set->names);
    hr__free(set->table);
}

void hr__classes_free(struct hr_classes *classes)
{
    hr__free(classes->names);
    *classes = (struct hr_classes){0};
}
