/*
 * coco_file.h - finds the annotations of a COCO data set in a folder, and its photos.
 */
#ifndef BIN_COCO_FILE_H
#define BIN_COCO_FILE_H

#include <stdbool.h>

struct coco_file {
    char annotations[1280]; /* a file with images and boxes */
    char photos[1280];      /* the folder that its file names are relative to */
};

/* Looks at the .json files in the folder and in its "annotations", those with "train" in
 * their name first. True if one lists a photo that is there. */
bool coco_file_find(const char *folder, struct coco_file *ret_found);

#endif
