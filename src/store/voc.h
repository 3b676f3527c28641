/*
 * store/voc.h - Pascal VOC's files: the objects of a picture, and lists of pictures.
 */
#ifndef HR_STORE_VOC_H
#define HR_STORE_VOC_H

#include "store/classes.h"

#define HR_VOC_CLASSES 20
extern const char *const hr__voc_classes[HR_VOC_CLASSES]; /* VOC's names, in its order */

struct hr_voc_object {
    int64_t label;
    bool difficult, truncated;
    float box[4]; /* x1, y1, x2, y2 in pixels from 0: the last pixel of an object ends at
                     x2; with `raw` as the file has them, the first pixel being 1 */
};

struct hr_voc {
    int32_t width, height; /* that the file says; 0: it says none */
    size_t count;
    struct hr_voc_object *objects; /* in the order of the file */
};

struct hr_voc_options {
    const struct hr_class_set *classes; /* labels; another name is an error, */
    const struct hr_classes *names;     /* which lists these, the same ones */
    struct hr_class_set *found;         /* or NULL: gets each name; then labels are 0 */
    bool drop_difficult, raw;
};

#define HR_VOC_BYTES_MAX ((size_t)16 << 20) /* of an annotation */

/* Reads an annotation, whose URI is for messages. HR_ERR_FORMAT with line and column, and
 * the number and name of the object; HR_ERR_LIMIT; HR_ERR_MEMORY; HR_ERR_UNSUPPORTED
 * without expat. Finish with hr__voc_finish, also after failure. */
HR_CHECK enum hr_err hr__voc_parse(const char *text, size_t bytes, const char *uri,
                                   const struct hr_voc_options *options,
                                   struct hr_voc *ret_voc, struct hr_error *reterr);
void hr__voc_finish(struct hr_voc *voc);

/* The names of pictures in a list such as ImageSets/Main/train.txt. */
struct hr_voc_list {
    size_t count;
    const char **names;
    char *texts;
};

/* One name per line; blanks around it and empty lines are ignored. In lists of one class,
 * a line that ends in " -1" is left out; "  0" and "  1" are cut off. HR_ERR_FORMAT if
 * that leaves no name, and with the line if a name has a NUL byte. Finish as above. */
HR_CHECK enum hr_err hr__voc_list(const char *text, size_t bytes, const char *uri,
                                  struct hr_voc_list *ret_list, struct hr_error *reterr);
void hr__voc_list_finish(struct hr_voc_list *list);

#endif
