/*
 * core/fit.c - weighted least squares from running sums. Costs of records vary by orders
 * of magnitude, so the differences of large sums keep enough digits; a variance that
 * rounding makes negative counts as 0.
 */
#include "core/fit.h"

/* A variance below this, relative to the mean square, is rounding error. */
#define ROUNDING 1e-12

void hr__fit_merge(struct hr_fit *fit, const struct hr_fit *other)
{
    fit->weight += other->weight;
    fit->y += other->y;
    fit->yy += other->yy;
    fit->x += other->x;
    fit->xx += other->xx;
    fit->xy += other->xy;
}

double hr__fit_mean(const struct hr_fit *fit)
{
    return fit->weight > 0 ? fit->y / fit->weight : 0;
}

static double variance(double weight, double sum, double squares)
{
    double mean = sum / weight, value = squares / weight - mean * mean;

    return value > squares / weight * ROUNDING ? value : 0;
}

double hr__fit_variance(const struct hr_fit *fit)
{
    return fit->weight > 0 ? variance(fit->weight, fit->y, fit->yy) : 0;
}

double hr__fit_slope(const struct hr_fit *fit)
{
    double spread = fit->weight > 0 ? variance(fit->weight, fit->x, fit->xx) : 0;

    if (spread == 0)
        return 0;
    return (fit->xy / fit->weight - fit->x / fit->weight * (fit->y / fit->weight)) /
           spread;
}
