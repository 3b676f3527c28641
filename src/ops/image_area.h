/*
 * ops/image_area.h - shared by image.random_resized_crop and image.random_area_crop: a
 * random window that is chosen by its area and its aspect.
 */
#ifndef HR_OPS_IMAGE_AREA_H
#define HR_OPS_IMAGE_AREA_H

#include "ops/move.h"

struct hr_area {
    struct hr_names field; /* first, for HR_MOVE_STATE */
    struct hr_floats scale, ratio;
};

/* The rows of an op whose parameters begin with a struct hr_area; and the last one. */
#define HR_P_AREA                                                                        \
    HR_P_FLOATS(struct hr_area, scale, .fallback = "[0.08, 1]", .items_min = 2,          \
                .items_max = 2, HR_RANGE(0, 1), .min_open = true,                        \
                .help = "smallest and largest fraction of the area to keep"),            \
        HR_P_FLOATS(struct hr_area, ratio, .fallback = "[0.75, 1.3333333333333333]",     \
                    .items_min = 2, .items_max = 2, HR_RANGE(0, 1000), .min_open = true, \
                    .help = "smallest and largest width / height of the window")
#define HR_P_AREA_MOVED HR_P_MOVED(struct hr_area)

/* infer: the smaller number of each pair comes first. */
HR_CHECK enum hr_err hr__infer_area(struct hr_infer *infer, const struct hr_area *area);

/* Sets the move's window. Like torchvision: ten tries, each draws area, aspect, position;
 * then the largest centred window of a permitted aspect. */
void hr__move_area(struct hr_move *move, const struct hr_area *area, struct hr_rng *rng);

#endif
