/*
 * core/fit.h - weighted sums over pairs (x, y): the mean and variance of y, and the
 * least-squares line through the pairs. Adding a pair costs seven multiplications.
 */
#ifndef HR_CORE_FIT_H
#define HR_CORE_FIT_H

struct hr_fit {
    double weight, y, yy; /* sums of w, w y, w y y, ... */
    double x, xx, xy;
    double ww; /* w w: with `weight`, how many pairs the weights are worth */
};

static inline void hr__fit_add(struct hr_fit *fit, double weight, double x, double y)
{
    fit->weight += weight;
    fit->y += weight * y;
    fit->yy += weight * y * y;
    fit->x += weight * x;
    fit->xx += weight * x * x;
    fit->xy += weight * x * y;
    fit->ww += weight * weight;
}

void hr__fit_merge(struct hr_fit *fit, const struct hr_fit *other);
/* Removes the pairs of an earlier copy of the same sums. */
void hr__fit_subtract(struct hr_fit *fit, const struct hr_fit *earlier);

/* The number of pairs of equal weight that would know as much; 0 without pairs. */
double hr__fit_count(const struct hr_fit *fit);

/* Mean and variance of y; 0 without pairs. */
double hr__fit_mean(const struct hr_fit *fit);
double hr__fit_variance(const struct hr_fit *fit);
/* Slope of y over x; 0 if x does not vary. */
double hr__fit_slope(const struct hr_fit *fit);

/* Half of the 95 % confidence interval of the mean of y, as a part of that mean; -1 with
 * fewer than 8 pairs. */
double hr__fit_width(const struct hr_fit *fit);
/* The part of the mean of y, 0 to 1, that the line says is there at x = 0: what does not
 * grow with x. -1 where that is not known to within about 0.3. */
double hr__fit_fixed(const struct hr_fit *fit);

#endif
