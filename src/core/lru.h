/*
 * core/lru.h - items in the order of their last use: a cache drops from the old end.
 *
 * The link is the first member of an item, so that a pointer to it is one to the item.
 * Nothing is allocated, and nothing is locked.
 */
#ifndef HR_CORE_LRU_H
#define HR_CORE_LRU_H

#include <stddef.h>

struct hr_lru_link {
    struct hr_lru_link *newer, *older;
};

struct hr_lru { /* zeroed: empty */
    struct hr_lru_link *newest, *oldest;
};

/* Adds an item that is not in the list, as the newest. */
static inline void hr__lru_add(struct hr_lru *lru, struct hr_lru_link *link)
{
    link->newer = NULL;
    link->older = lru->newest;
    *(lru->newest != NULL ? &lru->newest->newer : &lru->oldest) = link;
    lru->newest = link;
}

static inline void hr__lru_remove(struct hr_lru *lru, struct hr_lru_link *link)
{
    *(link->newer != NULL ? &link->newer->older : &lru->newest) = link->older;
    *(link->older != NULL ? &link->older->newer : &lru->oldest) = link->newer;
    link->newer = link->older = NULL;
}

/* Makes an item of the list the newest. */
static inline void hr__lru_use(struct hr_lru *lru, struct hr_lru_link *link)
{
    if (lru->newest == link)
        return;
    hr__lru_remove(lru, link);
    hr__lru_add(lru, link);
}

#endif
