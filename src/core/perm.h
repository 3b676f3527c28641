/*
 * core/perm.h - a keyed permutation of [0, n): a global shuffle in O(1) memory.
 *
 * For n >= 4096: an 8-round Feistel network over the next power of two, with cycle
 * walking. For n < 4096: Fisher-Yates into a table of 16-bit entries. perm_test.c has the
 * statistical tests; fewer rounds, or eight rounds on a smaller n, fail them.
 */
#ifndef HR_CORE_PERM_H
#define HR_CORE_PERM_H

#include "core/rng.h"
#include "headrace/base.h"

struct hr_perm {
    uint64_t n;
    uint64_t key[8];
    uint32_t low_bits, high_bits; /* bits of each half; n >= 4096 */
    uint16_t *table;              /* the caller's; n < 4096 */
};

/* Entries of the caller's table, enough for any n < 4096. */
#define HR_PERM_TABLE 4096

/* Chooses a permutation of [0, n), n at most 2^63, by draws from `rng`. `table` is the
 * caller's array of HR_PERM_TABLE entries. It is used if n is smaller than that, and must
 * outlive the permutation. Cannot fail: falling back to another order would lose and
 * repeat records. */
void hr__perm_init(struct hr_perm *perm, uint64_t n, struct hr_rng *rng, uint16_t *table);

/* Where position `at` (< n) maps to. Thread-safe. */
uint64_t hr__perm_map(const struct hr_perm *perm, uint64_t at);

#endif
