/*
 * core/fit.h - weighted sums over pairs (x, y): the mean and variance of y, and the
 * least-squares line through the pairs. Adding a pair costs six multiplications.
 */
#ifndef HR_CORE_FIT_H
#define HR_CORE_FIT_H

struct hr_fit {
    double weight, y, yy; /* sums of w, w y, w y y, ... */
    double x, xx, xy;
};

static inline void hr__fit_add(struct hr_fit *fit, double weight, double x, double y)
{
    fit->weight += weight;
    fit->y += weight * y;
    fit->yy += weight * y * y;
    fit->x += weight * x;
    fit->xx += weight * x * x;
    fit->xy += weight * x * y;
}

void hr__fit_merge(struct hr_fit *fit, const struct hr_fit *other);

/* Mean and variance of y; 0 without pairs. */
double hr__fit_mean(const struct hr_fit *fit);
double hr__fit_variance(const struct hr_fit *fit);
/* Slope of y over x; 0 if x does not vary. */
double hr__fit_slope(const struct hr_fit *fit);

#endif
