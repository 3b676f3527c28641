/*
 * kernel/shape.c - the filters of a change of rate.
 */
#include "kernel/shape.h"

#include <math.h>

#define PI 3.14159265358979323846

/* The modified Bessel function of order 0. */
static double bessel0(double x)
{
    double sum = 1, term = 1;

    for (int k = 1; term > 1e-18 * sum; k++) {
        term *= x * x / (4.0 * k * k);
        sum += term;
    }
    return sum;
}

struct hr_shape hr__shape_of(double ratio, enum hr_rate_filter filter)
{
    double lower = ratio < 1 ? ratio : 1; /* the lower of the rates */
    struct hr_shape s = {.filter = filter};

    if (filter == HR_RATE_TORCHAUDIO) {
        s.scale = 0.99 * lower;
        s.half = 6 / s.scale;
    } else {
        const double pass = 0.913, stopped_db = 120;

        s.scale = (1 + pass) / 2 * lower;
        s.half = (stopped_db - 7.95) / (2.285 * 2 * PI * (1 - pass) / 2 * lower) / 2;
        s.beta = 0.1102 * (stopped_db - 8.7);
        s.peak = bessel0(s.beta);
    }
    return s;
}

double hr__shape_at(const struct hr_shape *s, double time)
{
    double x = time * s->scale, part = time / s->half, window;

    if (fabs(part) >= 1)
        return 0;
    if (s->filter == HR_RATE_TORCHAUDIO) {
        window = cos(part * PI / 2);
        window *= window;
    } else {
        window = bessel0(s->beta * sqrt(1 - part * part)) / s->peak;
    }
    return s->scale * window * (x == 0 ? 1 : sin(PI * x) / (PI * x));
}
