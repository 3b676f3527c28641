/*
 * image_area.c - draws windows by area and aspect.
 */
#include "ops/image_area.h"

#include <math.h>

enum hr_err hr__infer_area(struct hr_infer *infer, const struct hr_area *area)
{
    HR_TRY(hr__infer_order(infer, "scale", &area->scale));
    return hr__infer_order(infer, "ratio", &area->ratio);
}

struct window {
    int32_t x, y, width, height;
};

static struct window
choose(const struct hr_area *p, struct hr_rng *rng, int32_t width, int32_t height)
{
    double low = log(p->ratio.values[0]), high = log(p->ratio.values[1]);
    double area = (double)width * height, aspect = (double)width / height;
    struct window window = {0, 0, width, height};

    for (int i = 0; i < 10; i++) {
        double part = area * hr__rng_uniform(rng, p->scale.values[0], p->scale.values[1]);
        double shape = exp(hr__rng_uniform(rng, low, high));
        double w = rint(sqrt(part * shape)), h = rint(sqrt(part / shape));
        if (w < 1 || h < 1 || w > width || h > height)
            continue;
        window.width = (int32_t)w;
        window.height = (int32_t)h;
        window.y = (int32_t)hr__rng_below(rng, (uint64_t)(height - window.height) + 1);
        window.x = (int32_t)hr__rng_below(rng, (uint64_t)(width - window.width) + 1);
        return window;
    }
    if (aspect < p->ratio.values[0])
        window.height = (int32_t)fmin(rint(width / p->ratio.values[0]), height);
    else if (aspect > p->ratio.values[1])
        window.width = (int32_t)fmin(rint(height * p->ratio.values[1]), width);
    window.height = window.height < 1 ? 1 : window.height;
    window.width = window.width < 1 ? 1 : window.width;
    window.x = (width - window.width) / 2;
    window.y = (height - window.height) / 2;
    return window;
}

void hr__move_area(struct hr_move *move, const struct hr_area *area, struct hr_rng *rng)
{
    struct window window = choose(area, rng, move->width, move->height);

    hr__move_crop(move, window.x, window.y, window.width, window.height);
}
