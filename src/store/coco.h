/*
 * store/coco.h - COCO's annotations of objects (instances_*.json): images, the boxes on
 * each, and categories.
 *
 * The file is scanned once; polygons and all else that is not used are skipped, so that
 * 100 MB of polygons take no memory. What is wrong with the file as a whole is an error
 * with line and column. What is wrong with one annotation is kept as the fault of its
 * image, so that the other images can be read.
 */
#ifndef HR_STORE_COCO_H
#define HR_STORE_COCO_H

#include "headrace/base.h"

struct hr_coco_object {
    int64_t id, category; /* category: its id in the file */
    int32_t label;        /* its dense number */
    bool crowd;
    float box[4]; /* x1, y1, x2, y2 in pixels */
    double area;  /* of the object in pixels; of the box if the file gives none */
};

struct hr_coco_image {
    int64_t id;
    const char *name;      /* file_name */
    uint32_t first, count; /* its objects, in the order of the file */
    const char *fault;     /* what is wrong with an annotation of it, or NULL */
    int64_t fault_id;      /* of that annotation */
};

struct hr_coco {
    size_t image_count, object_count, category_count;
    struct hr_coco_image *images; /* in order of id */
    struct hr_coco_object *objects;
    const char **categories; /* names by dense number */
    char *texts;
};

/* Which annotations and images to leave out, and the dense numbers of categories. */
struct hr_coco_options {
    bool drop_crowd; /* no annotations with iscrowd */
    bool drop_empty; /* no images without annotations, after drop_crowd */
    /* Names of categories by dense number, which must outlive the result; NULL: the
     * file's categories in order of id. */
    const char *const *classes;
    size_t class_count;
};

/* Reads the object `uri`, or `bytes` bytes of a text that is named `uri` in messages.
 * HR_ERR_FORMAT with line and column; HR_ERR_MEMORY. Finish with hr__coco_finish, also
 * after failure. */
HR_CHECK enum hr_err hr__coco_read(const char *uri, const struct hr_coco_options *options,
                                   struct hr_coco *ret_coco, struct hr_error *reterr);
HR_CHECK enum hr_err hr__coco_parse(const char *text, size_t bytes, const char *uri,
                                    const struct hr_coco_options *options,
                                    struct hr_coco *ret_coco, struct hr_error *reterr);
void hr__coco_finish(struct hr_coco *coco);

#endif
