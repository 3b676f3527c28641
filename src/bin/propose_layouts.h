/*
 * propose_layouts.h - proposals for data sets that are recognised by the names of their
 * files. Functions return a cli_exit code and print the reason on failure.
 */
#ifndef BIN_PROPOSE_LAYOUTS_H
#define BIN_PROPOSE_LAYOUTS_H

#include "coco_file.h"
#include "look.h"
#include "propose.h"

/* Whether the folder has the subfolders of Pascal VOC. */
bool propose_is_voc(const char *folder);
/* Detection if there are lists for it, else segmentation. */
int propose_voc(struct proposal *p, const char *folder);
int propose_coco(struct proposal *p, const struct coco_file *coco);
/* The first items in order of name; of MNIST's the training set. */
int propose_idx(struct proposal *p, const char *folder, const struct look *look);

/* Adds a parameter whose value is the path of `below` in `folder`; "": of `folder`. */
void propose_add_path(struct proposal *p, const char *name, const char *help,
                      const char *folder, const char *below);

#endif
