/*
 * core/perm.h - a keyed permutation of [0, n): global shuffle in O(1) memory.
 *
 * n >= 4096: 8-round Feistel network over the next power of two with cycle walking.
 * n < 4096: Fisher-Yates with Philox, into a table of 16 bits an entry.
 * perm_test.c has the statistics that it passes; fewer rounds and smaller n fail them.
 */
#ifndef HR_CORE_PERM_H
#define HR_CORE_PERM_H

#include "headrace/base.h"

struct hr_perm {
    uint64_t n;
    uint64_t key[8];
    uint32_t low_bits, high_bits; /* of an index, n >= 4096 */
    uint16_t *table;              /* n < 4096 */
};

/* Entries of a table for any n < 4096. */
#define HR_PERM_TABLE 4096

/* n in [0, 2^63]. `table` has HR_PERM_TABLE entries, is the caller's, and is used when n
 * is below that; it must live as long as the permutation. Nothing can fail: a shuffle
 * that fell back on another order would lose and repeat records. */
void hr__perm_init(struct hr_perm *perm, uint64_t n, uint64_t seed, uint64_t stream,
                   uint16_t *table);

/* Where position `at` (< n) goes. Thread-safe. */
uint64_t hr__perm_map(const struct hr_perm *perm, uint64_t at);

#endif
