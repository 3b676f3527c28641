/*
 * fuzz/fuzz_coco.c - any bytes as COCO's annotations. Accepted files are looked at whole.
 */
#include "store/coco.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(const struct hr_coco *coco)
{
    size_t texts = 0;

    for (size_t i = 0; i < coco->category_count; i++)
        texts += strlen(coco->categories[i]);
    for (size_t i = 0; i < coco->image_count; i++) {
        const struct hr_coco_image *image = &coco->images[i];

        texts += strlen(image->name);
        if (image->first + (size_t)image->count > coco->object_count ||
            (i > 0 && image->id <= coco->images[i - 1].id))
            abort();
        for (uint32_t k = 0; k < image->count && image->fault == NULL; k++) {
            const struct hr_coco_object *o = &coco->objects[image->first + k];

            if (o->label < 0 || (size_t)o->label >= coco->category_count ||
                !(o->box[2] >= o->box[0]) || !(o->box[3] >= o->box[1]))
                abort();
        }
    }
    if (texts == SIZE_MAX)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char *const classes[] = {"dog", "cat"};

    for (int i = 0; i < 2; i++) {
        const struct hr_coco_options options = {.drop_crowd = i == 1,
                                                .drop_empty = i == 1,
                                                .classes = i == 1 ? classes : NULL,
                                                .class_count = i == 1 ? 2 : 0};
        struct hr_coco coco;

        if (hr__coco_parse((const char *)data, bytes, "a.json", &options, &coco, NULL) ==
            HR_OK)
            check(&coco);
        hr__coco_finish(&coco);
    }
    return 0;
}
