/*
 * core/fit.c - weighted least squares from running sums. Costs of records vary by orders
 * of magnitude, so the differences of large sums keep enough digits; a variance that
 * rounding makes negative counts as 0.
 */
#include "core/fit.h"

#include <math.h>

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
    fit->ww += other->ww;
}

void hr__fit_subtract(struct hr_fit *fit, const struct hr_fit *earlier)
{
    fit->weight -= earlier->weight;
    fit->y -= earlier->y;
    fit->yy -= earlier->yy;
    fit->x -= earlier->x;
    fit->xx -= earlier->xx;
    fit->xy -= earlier->xy;
    fit->ww -= earlier->ww;
}

double hr__fit_count(const struct hr_fit *fit)
{
    return fit->ww > 0 ? fit->weight * fit->weight / fit->ww : 0;
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

double hr__fit_width(const struct hr_fit *fit)
{
    double count = hr__fit_count(fit), mean = hr__fit_mean(fit);

    if (count < 8 || mean <= 0)
        return -1;
    return 2 * sqrt(hr__fit_variance(fit) / (count - 1)) / mean;
}

double hr__fit_fixed(const struct hr_fit *fit)
{
    double count = hr__fit_count(fit), mean = hr__fit_mean(fit), grows, spread, rest;

    if (count < 8 || mean <= 0)
        return -1;
    spread = variance(fit->weight, fit->x, fit->xx);
    if (spread == 0)
        return -1;
    grows = hr__fit_slope(fit) * (fit->x / fit->weight) / mean;
    rest = hr__fit_variance(fit) - hr__fit_slope(fit) * hr__fit_slope(fit) * spread;
    rest = rest > 0 ? rest : 0;
    if (2 * sqrt(rest / (count - 2) / spread) * (fit->x / fit->weight) / mean > 0.3)
        return -1;
    return fmin(fmax(1 - grows, 0), 1);
}
