/*
 * api/cache_rates.h - how fast entries of a cache are written and read on this machine.
 */
#ifndef HR_API_CACHE_RATES_H
#define HR_API_CACHE_RATES_H

#include "core/error.h"
#include "opt/cache_point.h"

/*
 * Writes and reads small and large entries of a cache (store/cache.h) in memory, or in a
 * new folder inside `folder` that is removed again, and sets the rates of `medium`. Takes
 * some 10 ms and about 20 MB; in memory 0.2 s of CPU time and up to 1 GB, at most a
 * sixteenth of the machine's. Entries that were just written come from the page cache, so
 * nothing is learnt of the device. HR_ERR_IO if the folder cannot be written.
 */
HR_CHECK enum hr_err hr__cache_rates(const char *folder, struct hr_cache_medium *medium,
                                     struct hr_error *reterr);

#endif
