/*
 * op/record_id.h - who a record is, wherever it is.
 */
#ifndef HR_OP_RECORD_ID_H
#define HR_OP_RECORD_ID_H

#include <stdint.h>

/* A substitute draws numbers of its own. */
#define HR_EPOCH_SUBSTITUTE 0x80000000u

/* Who a record is: the key of its random draws, whatever the order it is visited in. */
struct hr_record_id {
    uint64_t seed;
    uint32_t epoch;    /* with HR_EPOCH_SUBSTITUTE when it stands in for a bad record */
    uint64_t index;    /* source index, mixed with child numbers behind an EXPAND op */
    uint64_t position; /* place in the epoch's order, for messages */
};

#endif
