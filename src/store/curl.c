/*
 * store/curl.c - see curl.h.
 */
#include "store/curl.h"

#include "core/error.h"
#include "core/library.h"

#define OLDEST 0x075500 /* 7.85.0: CURLOPT_PROTOCOLS_STR */

struct hr_curl hr__curl;

#define SYMBOL(name_) {"curl_" #name_, &hr__curl.name_},
static const struct hr_symbol symbols[] = {HR_CURL_FUNCTIONS(SYMBOL)};
#undef SYMBOL

static struct hr_library library = HR_LIBRARY("libcurl.so.4", "libcurl4", symbols);

enum hr_err hr__curl_load(struct hr_error *reterr)
{
    const curl_version_info_data *info;

    HR_TRY(hr__library_load(&library, reterr));
    info = hr__curl.version_info(CURLVERSION_NOW);
    if (info->version_num < OLDEST)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "libcurl is version %s, and 7.85 or later is needed",
                        info->version);
    return HR_OK;
}
