/*
 * codec/trie.h - strings to numbers, as a double array: one load and one comparison per
 * byte of a string.
 */
#ifndef HR_CODEC_TRIE_H
#define HR_CODEC_TRIE_H

#include "headrace/base.h"

/* Node `n` has the child `base + byte` if that node's parent is n. Every sum is an index
 * of the array. */
struct hr_trie_node {
    uint32_t base;
    uint32_t parent; /* HR_TRIE_FREE: no node */
    int32_t value;   /* -1: no string ends here */
};
#define HR_TRIE_FREE UINT32_MAX

/* Zero-initialised: without strings, and must not be searched. */
struct hr_trie {
    struct hr_trie_node *nodes;
    uint32_t count;
};

/* A string of at least one byte, without zero bytes. */
struct hr_trie_key {
    const uint8_t *bytes;
    uint32_t count;
    int32_t value; /* >= 0 */
};

/* Sorts `keys`. HR_ERR_FORMAT if two are equal; *ret_twice is the value of one of them.
 * HR_ERR_MEMORY. */
HR_CHECK enum hr_err hr__trie_build(struct hr_trie *trie, struct hr_trie_key *keys,
                                    size_t count, int32_t *ret_twice);
void hr__trie_finish(struct hr_trie *trie);

/* Moves *node, 0 at first, to its child; false if there is none. */
static inline bool hr__trie_step(const struct hr_trie *trie, uint32_t *node, uint8_t byte)
{
    uint32_t child = trie->nodes[*node].base + byte;

    if (trie->nodes[child].parent != *node)
        return false;
    *node = child;
    return true;
}

/* The value of a string, or -1. */
static inline int32_t
hr__trie_find(const struct hr_trie *trie, const uint8_t *bytes, size_t count)
{
    uint32_t node = 0;

    for (size_t i = 0; i < count; i++)
        if (!hr__trie_step(trie, &node, bytes[i]))
            return -1;
    return trie->nodes[node].value;
}

#endif
