/*
 * core/alloc.h - the only way to allocate memory in the library.
 *
 * All allocations go through here, so that a test can count them (steady state makes none
 * per record) and make the n-th one fail (torture tests).
 */
#ifndef HR_CORE_ALLOC_H
#define HR_CORE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *hr__malloc(size_t bytes);
void *hr__calloc(size_t count, size_t bytes);
void *hr__realloc(void *old, size_t bytes); /* on failure `old` stays valid */
void *hr__aligned_alloc(size_t align, size_t bytes);
char *hr__strdup(const char *text);
char *hr__strndup(const char *text, size_t length);
void hr__free(void *block); /* NULL is fine; also frees aligned blocks */

/* Whole pages of zeros, for 2 MiB and more: aligned to 2 MiB and backed by huge pages
 * where the kernel has them (fewer faults, fewer TLB misses). Free with the same `bytes`.
 */
void *hr__pages_alloc(size_t bytes);
void hr__pages_free(void *pages, size_t bytes);
#define HR_PAGES_MIN ((size_t)2 << 20)
/* Gives the whole pages among these bytes back to the system; their contents are lost.
 * The memory stays allocated. */
void hr__pages_release(void *at, size_t bytes);

/* Grows *array to hold `need` more items of `item_bytes`; false if out of memory. */
bool hr__array_room(void *array, size_t count, size_t *room, size_t need,
                    size_t item_bytes);

/* Allocations made since the start of the process. */
uint64_t hr__alloc_count(void);

/* Bytes that this thread has allocated and not freed; negative if it freed what others
 * allocated. */
int64_t hr__alloc_live(void);

/*
 * Fault injection. Code that can fail because of the outside world first asks
 * hr__fault(KIND) and, if that returns true, behaves as if the call had failed. A test
 * arms the n-th call among the kinds in a mask. Unarmed, it costs one relaxed load.
 */
enum hr_fault_kind {
    HR_FAULT_ALLOC = 1,
    HR_FAULT_OPEN = 2,
    HR_FAULT_READ = 4,
    HR_FAULT_WRITE = 8,
    HR_FAULT_THREAD = 16,
};
bool hr__fault(enum hr_fault_kind kind);
void hr__fault_arm(unsigned kinds, uint64_t nth); /* 1 = the next call; 0 disarms */
uint64_t hr__fault_calls(void); /* calls of the armed kinds since arming, failed or not */

#endif
