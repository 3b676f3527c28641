/*
 * core/poison.h - marks bytes of our own memory as inaccessible for ASan.
 */
#ifndef HR_CORE_POISON_H
#define HR_CORE_POISON_H

#if defined(__SANITIZE_ADDRESS__)
#define HR_HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HR_HAS_ASAN 1
#endif
#endif

#ifdef HR_HAS_ASAN
#include <sanitizer/asan_interface.h>
#define HR_POISON(at, bytes) ASAN_POISON_MEMORY_REGION(at, bytes)
#define HR_UNPOISON(at, bytes) ASAN_UNPOISON_MEMORY_REGION(at, bytes)
#else
#define HR_POISON(at, bytes) ((void)(at), (void)(bytes))
#define HR_UNPOISON(at, bytes) ((void)(at), (void)(bytes))
#endif

#endif
