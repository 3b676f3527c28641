/*
 * api/dataset_index.h - opens the index of a folder for the dataset functions.
 */
#ifndef HR_API_DATASET_INDEX_H
#define HR_API_DATASET_INDEX_H

#include "store/index.h"

/* Labels are folders if the layout has them; a flat folder has no labels. */
HR_CHECK enum hr_err
hr__api_index_open(const char *root, const char *path, struct hr_index **ret_index,
                   struct hr_error *reterr);

#endif
