/*
 * fuzz/fuzz_voc.c - any bytes as an annotation of Pascal VOC, and as a list of pictures.
 * Accepted ones are looked at whole; refused ones have a message.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "store/voc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static struct hr_class_set set;
static struct hr_classes names;

static void open_classes(void)
{
    for (size_t i = 0; i < HR_VOC_CLASSES; i++)
        if (hr__class_add(&set, hr__voc_classes[i], strlen(hr__voc_classes[i])) < 0)
            abort();
    if (hr__class_close(&set, NULL, &names) != HR_OK)
        abort();
}

static void check(const struct hr_voc *voc)
{
    if (voc->width < 0 || voc->height < 0)
        abort();
    for (size_t i = 0; i < voc->count; i++) {
        const struct hr_voc_object *o = &voc->objects[i];

        if (o->label < 0 || (size_t)o->label >= names.count)
            abort();
        if (!(o->box[2] >= o->box[0]) || !(o->box[3] >= o->box[1]))
            abort();
    }
}

static void read_list(const char *text, size_t bytes)
{
    struct hr_error error = {0};
    struct hr_voc_list list;

    if (hr__voc_list(text, bytes, "a.txt", &list, &error) == HR_OK) {
        for (size_t i = 0; i < list.count; i++)
            if (list.names[i][0] == '\0' || strchr(list.names[i], '\n') != NULL)
                abort();
    } else if (error.message[0] == '\0') {
        abort();
    }
    hr__voc_list_finish(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const char *text = (const char *)data;

    if (names.names == NULL)
        open_classes();
    for (int i = 0; i < 3; i++) {
        struct hr_class_set found = {0};
        const struct hr_voc_options options = {.classes = &set,
                                               .names = &names,
                                               .found = i == 2 ? &found : NULL,
                                               .drop_difficult = i == 1,
                                               .raw = i == 1};
        struct hr_error error = {0};
        struct hr_voc voc;

        if (hr__voc_parse(text, bytes, "a.xml", &options, &voc, &error) == HR_OK)
            check(&voc);
        else if (error.message[0] == '\0')
            abort();
        hr__voc_finish(&voc);
        hr__class_set_free(&found);
    }
    read_list(text, bytes);
    return 0;
}
