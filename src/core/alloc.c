/*
 * core/alloc.c - the system allocator with a call counter and fault injection.
 *
 * The counters are the only global state that the library writes at run time. They are
 * relaxed atomics; an allocation touches two of them while no fault is armed.
 */
#include "core/alloc.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static atomic_uint_fast64_t alloc_count;
static atomic_uint fault_kinds;
static atomic_uint_fast64_t fault_nth;
static atomic_uint_fast64_t fault_calls;
static _Thread_local int64_t live;

bool hr__fault(enum hr_fault_kind kind)
{
    uint64_t call;

    if ((atomic_load_explicit(&fault_kinds, memory_order_relaxed) & kind) == 0)
        return false;
    call = atomic_fetch_add_explicit(&fault_calls, 1, memory_order_relaxed) + 1;
    return call == atomic_load_explicit(&fault_nth, memory_order_relaxed);
}

void hr__fault_arm(unsigned kinds, uint64_t nth)
{
    atomic_store(&fault_kinds, 0);
    if (nth == 0)
        return;
    atomic_store(&fault_calls, 0);
    atomic_store(&fault_nth, nth);
    atomic_store(&fault_kinds, kinds);
}

uint64_t hr__fault_calls(void)
{
    return atomic_load(&fault_calls);
}

bool hr__array_room(void *array, size_t count, size_t *room, size_t need,
                    size_t item_bytes)
{
    size_t wanted = *room < 16 ? 16 : *room;
    void *old, *grown; /* `array` points to a pointer of any type: copied, not cast */

    if (need <= *room - count)
        return true;
    while (wanted - count < need) {
        if (wanted > SIZE_MAX / 2 / item_bytes)
            return false;
        wanted *= 2;
    }
    memcpy(&old, array, sizeof old);
    grown = hr__realloc(old, wanted * item_bytes);
    if (grown == NULL)
        return false;
    memcpy(array, &grown, sizeof grown);
    *room = wanted;
    return true;
}

uint64_t hr__alloc_count(void)
{
    return atomic_load_explicit(&alloc_count, memory_order_relaxed);
}

int64_t hr__alloc_live(void)
{
    return live;
}

static void *counted(void *block)
{
    live += (int64_t)malloc_usable_size(block); /* 0 of NULL */
    return block;
}

static bool fails_now(void)
{
    atomic_fetch_add_explicit(&alloc_count, 1, memory_order_relaxed);
    return hr__fault(HR_FAULT_ALLOC);
}

void *hr__malloc(size_t bytes)
{
    return fails_now() ? NULL : counted(malloc(bytes != 0 ? bytes : 1));
}

void *hr__calloc(size_t count, size_t bytes)
{
    if (count == 0 || bytes == 0)
        count = bytes = 1;
    return fails_now() ? NULL : counted(calloc(count, bytes));
}

void *hr__realloc(void *old, size_t bytes)
{
    int64_t before;
    void *block;

    if (fails_now())
        return NULL;
    before = (int64_t)malloc_usable_size(old);
    block = realloc(old, bytes != 0 ? bytes : 1);
    if (block != NULL)
        live -= before;
    return counted(block);
}

void *hr__aligned_alloc(size_t align, size_t bytes)
{
    void *block;

    if (fails_now())
        return NULL;
    if (posix_memalign(&block, align, bytes != 0 ? bytes : 1) != 0)
        return NULL;
    return counted(block);
}

char *hr__strdup(const char *text)
{
    return hr__strndup(text, strlen(text));
}

char *hr__strndup(const char *text, size_t length)
{
    size_t bytes = strnlen(text, length);
    char *copy = hr__malloc(bytes + 1);

    if (copy == NULL)
        return NULL;
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    return copy;
}

void hr__free(void *block)
{
    live -= (int64_t)malloc_usable_size(block);
    free(block);
}

static size_t whole_pages(size_t bytes)
{
    return (bytes + 4095) & ~(size_t)4095;
}

void *hr__pages_alloc(size_t bytes)
{
    size_t whole, head;
    char *map;

    if (fails_now() || bytes == 0 || bytes > SIZE_MAX / 2)
        return NULL;
    whole = whole_pages(bytes);
    map = mmap(NULL, whole + HR_PAGES_MIN, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    head = -(uintptr_t)map & (HR_PAGES_MIN - 1);
    if (head != 0)
        munmap(map, head);
    munmap(map + head + whole, HR_PAGES_MIN - head);
    (void)madvise(map + head, whole,
                  MADV_HUGEPAGE); /* best effort: the kernel may lack huge pages */
    live += (int64_t)whole;
    return map + head;
}

void hr__pages_release(void *at, size_t bytes)
{
    size_t head = -(uintptr_t)at & 4095;

    if (bytes > head && bytes - head >= 4096)
        (void)madvise((char *)at + head, (bytes - head) & ~(size_t)4095, MADV_DONTNEED);
}

void hr__pages_free(void *pages, size_t bytes)
{
    if (pages == NULL)
        return;
    live -= (int64_t)whole_pages(bytes);
    munmap(pages, whole_pages(bytes));
}
