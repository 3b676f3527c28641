/*
 * core/library.c - see library.h.
 */
#include "core/library.h"

#include <dlfcn.h>
#include <string.h>

#include "core/error.h"

#define OPENSSL_INIT_NO_ATEXIT 0x00080000u /* openssl/crypto.h */

/* Keeps exit() from tearing OpenSSL down: a thread whose read hangs outlives its run and
 * may still be inside. Has no effect if OpenSSL was initialised before. */
static void keep_openssl(void *handle)
{
    int (*init)(uint64_t options, const void *settings);
    void *found = dlsym(handle, "OPENSSL_init_crypto");

    if (found == NULL)
        return;
    memcpy(&init, &found, sizeof found);
    (void)init(OPENSSL_INIT_NO_ATEXIT, NULL);
}

static enum hr_err
find_symbols(const struct hr_library *library, void *handle, struct hr_error *reterr)
{
    for (size_t i = 0; i < library->symbol_count; i++) {
        void *found = dlsym(handle, library->symbols[i].name);

        if (found == NULL)
            return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                            "%s has no function %s: install a newer version (in Debian: "
                            "%s)",
                            library->file, library->symbols[i].name, library->package);
        memcpy(library->symbols[i].to, &found, sizeof found);
    }
    return HR_OK;
}

static enum hr_err load(const struct hr_library *library, struct hr_error *reterr)
{
    void *handle = dlopen(library->file, RTLD_NOW | RTLD_LOCAL);
    enum hr_err err;

    if (handle == NULL)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "cannot load %s (%s): install it (in Debian: %s)", library->file,
                        dlerror(), library->package);
    err = find_symbols(library, handle, reterr);
    if (err == HR_OK)
        keep_openssl(handle);
    else
        dlclose(handle);
    return err;
}

enum hr_err hr__library_load(struct hr_library *library, struct hr_error *reterr)
{
    enum hr_err err = HR_OK;

    pthread_mutex_lock(&library->mutex);
    if (!library->loaded)
        err = load(library, reterr);
    library->loaded = err == HR_OK;
    pthread_mutex_unlock(&library->mutex);
    return err;
}

enum hr_err hr__library_left_out(const char *packages, struct hr_error *reterr)
{
    return hr__fail(reterr, HR_ERR_STATE,
                    "left out of this build: install %s and build again", packages);
}
