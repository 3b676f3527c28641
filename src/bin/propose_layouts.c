/*
 * propose_layouts.c - data sets that are recognised by the names of their files: Pascal
 * VOC, COCO, IDX (MNIST).
 */
#include "propose_layouts.h"

#include <string.h>
#include <unistd.h>

static bool exists(const char *folder, const char *name)
{
    char path[2 * PROPOSE_PATH_MAX];

    return look_join(path, sizeof(path), folder, name) && access(path, F_OK) == 0;
}

void propose_add_path(struct proposal *p, const char *name, const char *help,
                      const char *folder, const char *below)
{
    struct propose_param *param = &p->params[p->param_count++];

    param->name = name;
    param->help = help;
    p->is_long |= !look_join(param->value, sizeof(param->value), folder, below);
}

bool propose_is_voc(const char *folder)
{
    return exists(folder, "JPEGImages") && exists(folder, "ImageSets") &&
           (exists(folder, "Annotations") || exists(folder, "SegmentationClass"));
}

/* Detection if there are lists for it, else segmentation; the first list that is there.
 */
int propose_voc(struct proposal *p, const char *folder)
{
    static const char *const splits[] = {"train", "trainval", "val", "test"};
    bool detection = exists(folder, "ImageSets/Main") && exists(folder, "Annotations");
    const char *split = NULL;

    for (size_t i = 0; i < sizeof(splits) / sizeof(*splits) && split == NULL; i++) {
        char name[64];

        snprintf(name, sizeof(name), "ImageSets/%s/%s.txt",
                 detection ? "Main" : "Segmentation", splits[i]);
        if (exists(folder, name))
            split = splits[i];
    }
    if (split == NULL)
        return cli_usage("%s looks like Pascal VOC, and has no list train, trainval, val "
                         "or test in ImageSets/%s: write a graph with source.voc and its "
                         "parameter split",
                         folder, detection ? "Main" : "Segmentation");
    snprintf(p->title, sizeof(p->title), "Pascal VOC: photos with %s",
             detection ? "boxes" : "masks");
    p->source = "source.voc";
    snprintf(p->arguments, sizeof(p->arguments), "path: \"${data}\", split: %s%s", split,
             detection ? "" : ", task: segmentation");
    p->about = detection ? "Labels are numbers of VOC's 20 classes; for others set "
                           "find_classes: true, or classes."
                         : NULL;
    propose_add_path(p, "data", "the folder with JPEGImages and ImageSets", folder, "");
    p->photo = "data";
    p->boxes = detection;
    p->mask = !detection;
    return CLI_OK;
}

int propose_coco(struct proposal *p, const struct coco_file *coco)
{
    snprintf(p->title, sizeof(p->title), "COCO: photos with boxes");
    p->source = "source.coco";
    snprintf(p->arguments, sizeof(p->arguments),
             "path: \"${data}\", annotations: \"${annotations}\"");
    p->about = "Boxes are x1, y1, x2, y2 in pixels; labels are numbered in order of "
               "category id.";
    propose_add_path(p, "data", "the folder of the photos", coco->photos, "");
    propose_add_path(p, "annotations", "the file with their boxes", coco->annotations,
                     "");
    p->photo = "data";
    p->boxes = true;
    return CLI_OK;
}

/* Replaces a part of a name; false if it is not in it. */
static bool
replace(const char *name, const char *part, const char *by, char *to, size_t room)
{
    const char *at = strstr(name, part);

    if (at == NULL)
        return false;
    snprintf(to, room, "%.*s%s%s", (int)(at - name), name, by, at + strlen(part));
    return true;
}

/* Of an IDX file of images, the name of the file of labels. */
static bool idx_labels(const char *items, char *to, size_t room)
{
    return replace(items, "images-idx3", "labels-idx1", to, room) ||
           replace(items, "images.idx3", "labels.idx1", to, room);
}

/* The first items in order of name, and of MNIST's the training set. */
int propose_idx(struct proposal *p, const char *folder, const struct look *look)
{
    char items[LOOK_PATH_MAX], labels[LOOK_PATH_MAX];

    if (!replace(look->kinds[LOOK_IDX].first, "t10k-", "train-", items, sizeof(items)) ||
        !exists(folder, items))
        snprintf(items, sizeof(items), "%s", look->kinds[LOOK_IDX].first);
    p->source = "source.idx";
    p->image = strstr(items, "idx3") != NULL;
    propose_add_path(p, "data", "the IDX file of the items, plain or gzipped", folder,
                     items);
    snprintf(p->title, sizeof(p->title), "Items of an IDX file");
    snprintf(p->arguments, sizeof(p->arguments), "path: \"${data}\"");
    if (!idx_labels(items, labels, sizeof(labels)) || !exists(folder, labels))
        return CLI_OK;
    snprintf(p->title, sizeof(p->title), "Items of an IDX file, with labels");
    snprintf(p->arguments, sizeof(p->arguments),
             "path: \"${data}\", labels: \"${labels}\"");
    propose_add_path(p, "labels", "the IDX file of their labels", folder, labels);
    return CLI_OK;
}
