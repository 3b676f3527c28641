/*
 * ops/kinds.c - the list of the kinds of field.
 */
#include "ops/kinds.h"

#include <assert.h>
#include <string.h>

static const struct hr_kind *const kinds[] = {
    &hr__kind_image, &hr__kind_mask, &hr__kind_boxes, &hr__kind_points, &hr__kind_samples,
};

#define COUNT (sizeof kinds / sizeof kinds[0])

/* In the order of the list. */
const char *const hr__kind_names[] = {"image",  "mask",    "boxes",
                                      "points", "samples", NULL};
_Static_assert(sizeof hr__kind_names / sizeof hr__kind_names[0] == COUNT + 1,
               "each kind has a name");

const struct hr_kind *hr__kind_of(const struct hr_field *field)
{
    if (field->kind != HR_FIELD_TENSOR)
        return NULL;
    for (size_t i = 0; i < COUNT; i++)
        if (field->meaning >= kinds[i]->meaning &&
            field->meaning <= kinds[i]->meaning_last)
            return kinds[i];
    return NULL;
}

const struct hr_kind *hr__kind_find(const char *name)
{
    for (size_t i = 0; i < COUNT; i++) {
        assert(strcmp(kinds[i]->name, hr__kind_names[i]) == 0);
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    }
    return NULL;
}
