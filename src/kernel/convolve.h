/*
 * kernel/convolve.h - a sound through a room: convolution with a long response.
 */
#ifndef HR_KERNEL_CONVOLVE_H
#define HR_KERNEL_CONVOLVE_H

#include "core/arena.h"
#include "headrace/base.h"

struct hr_convolver;

/* For responses of up to `longest` samples, at most HR_CONVOLVE_MAX. HR_ERR_MEMORY. */
#define HR_CONVOLVE_MAX ((int64_t)1 << 22)
HR_CHECK enum hr_err
hr__convolver_create(int64_t longest, struct hr_convolver **ret_convolver,
                     struct hr_error *reterr);
void hr__convolver_destroy(struct hr_convolver *convolver); /* NULL is allowed */

/*
 * out[i] = sum of response[k] * in[i + from - k], for i < count; `in` has `count`
 * samples, outside is silence. Summed in double by transforms. Scratch comes from the
 * arena. HR_ERR_MEMORY.
 */
HR_CHECK enum hr_err
hr__convolver_run(const struct hr_convolver *convolver, struct hr_arena *arena,
                  const float *response, int64_t taps, const float *in, int64_t count,
                  int64_t from, float *out);

#endif
