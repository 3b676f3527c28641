/* codec/image_pnm.c - placeholder until the format is written. */
#include "codec/image_priv.h"
#include "core/error.h"

enum hr_err hr__pnm_probe(const uint8_t *data, size_t bytes,
                          struct hr_image_info *ret_info, struct hr_error *reterr)
{
    (void)data;
    (void)bytes;
    (void)ret_info;
    return hr__fail(reterr, HR_ERR_UNSUPPORTED, "pnm");
}

enum hr_err hr__pnm_decode(const struct hr_image_job *job, struct hr_image_part *ret_part)
{
    (void)ret_part;
    return hr__fail(job->reterr, HR_ERR_UNSUPPORTED, "pnm");
}
