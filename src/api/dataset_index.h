/*
 * api/dataset_index.h - the index of a folder as the dataset calls open it.
 */
#ifndef HR_API_DATASET_INDEX_H
#define HR_API_DATASET_INDEX_H

#include "store/index.h"

/* Folder labels where the layout has them; a flat folder has none. */
HR_CHECK enum hr_err
hr__api_index_open(const char *root, const char *path, struct hr_index **ret_index,
                   struct hr_error *reterr);

#endif
