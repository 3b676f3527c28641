/*
 * store/classes.h - names of classes and their numbers.
 *
 * A set numbers names as they are added. Closing it gives the names, in that order or
 * sorted by their bytes, as one block of memory.
 */
#ifndef HR_STORE_CLASSES_H
#define HR_STORE_CLASSES_H

#include "headrace/base.h"

struct hr_classes {
    const char **names; /* class i is names[i]; the texts follow the pointers */
    size_t count, bytes;
};

/* Zero-initialise. */
struct hr_class_set {
    char *text;
    size_t text_bytes, text_room;
    struct hr_class_name {
        size_t at, bytes; /* in text */
    } * names;
    size_t count, room;
    uint32_t *table; /* name + 1 by hash; power of two */
    size_t table_size;
};

/* The number of the name, added if it is new; -1 when out of memory. */
int64_t hr__class_add(struct hr_class_set *set, const char *name, size_t bytes);
/* The number of the name; -1 if it is not in the set. */
int64_t hr__class_find(const struct hr_class_set *set, const char *name, size_t bytes);

/* The names, sorted: ranks[number] is then the new number of a name. With ranks NULL they
 * stay in order. HR_ERR_MEMORY. */
HR_CHECK enum hr_err hr__class_close(const struct hr_class_set *set, uint32_t *ranks,
                                     struct hr_classes *ret_classes);
void hr__class_set_free(struct hr_class_set *set);
void hr__classes_free(struct hr_classes *classes);

#endif
