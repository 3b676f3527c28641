/*
 * opt/certainty.c - see certainty.h.
 */
#include "opt/certainty.h"

#include <math.h>

#define WIDTH_UNKNOWN 1.0 /* of nodes of which nothing needs to be known */

bool hr__certain(const struct hr_certainty *nodes, size_t count, double width)
{
    double all = 0, squares = 0;

    for (size_t i = 0; i < count; i++)
        all += nodes[i].ns;
    for (size_t i = 0; i < count && all > 0; i++) {
        double share = nodes[i].ns / all;
        bool known = nodes[i].width >= 0;
        double off = share * (known ? nodes[i].width : WIDTH_UNKNOWN);

        if (!known && share >= HR_CERTAINTY_SHARE_MIN)
            return false;
        if (known && off > width * fmax(share, HR_CERTAINTY_SHARE))
            return false;
        squares += off * off;
    }
    return sqrt(squares) <= width;
}
