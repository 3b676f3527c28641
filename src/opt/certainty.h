/*
 * opt/certainty.h - whether the costs of a graph's nodes have been measured long enough.
 * Pure.
 *
 * What matters is how far predictions can be off, so the error of a node counts as a part
 * of all nodes' time: a node of 0.1 % of it may be off by any factor that measuring
 * finds. With many nodes an interval of each would not do: one of them is always
 * disturbed.
 */
#ifndef HR_OPT_CERTAINTY_H
#define HR_OPT_CERTAINTY_H

#include <stdbool.h>
#include <stddef.h>

/* A node with this part of the time or more needs an interval of its own of the width
 * that is asked for; one with a smaller part may be off by as much of all time as that
 * allows a node with this part. */
#define HR_CERTAINTY_SHARE 0.2
/* With less than this, nothing needs to be known of it. */
#define HR_CERTAINTY_SHARE_MIN 0.01

struct hr_certainty {
    double ns;    /* its time in the run; 0: the node does not count */
    double width; /* half of the 95 % confidence interval of what was measured, as a part
                     of ns; < 0: not known */
};

/* Whether each node is known as well as its part of the time requires, and the sum to
 * within `width`, taking the nodes' errors as independent. */
bool hr__certain(const struct hr_certainty *nodes, size_t count, double width);

#endif
