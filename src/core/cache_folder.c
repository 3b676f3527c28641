/*
 * core/cache_folder.c - see cache_folder.h.
 */
#include "core/cache_folder.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/file.h"
#include "core/str.h"

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* False if no variable gives a folder. */
static bool add_folder(struct hr_str *path)
{
    const char *own = variable("HEADRACE_CACHE"), *all = variable("XDG_CACHE_HOME"),
               *home = variable("HOME");

    if (own != NULL)
        hr__str_add(path, own);
    else if (all != NULL && all[0] == '/')
        hr__str_addf(path, "%s/headrace", all);
    else if (home != NULL && home[0] == '/')
        hr__str_addf(path, "%s/.cache/headrace", home);
    else
        return false;
    return true;
}

static enum hr_err take(struct hr_str *path, char **ret_path, struct hr_error *reterr)
{
    *ret_path = hr__str_take(path);
    hr__str_finish(path);
    return *ret_path != NULL ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

enum hr_err hr__cache_folder(char **ret_path, struct hr_error *reterr)
{
    struct hr_str path;

    hr__str_init(&path);
    if (!add_folder(&path))
        return hr__fail(reterr, HR_ERR_NOT_FOUND,
                        "there is no folder to keep anything in: set HEADRACE_CACHE or "
                        "HOME");
    return take(&path, ret_path, reterr);
}

enum hr_err hr__cache_file(const char *name, char **ret_path, struct hr_error *reterr)
{
    char *folder = NULL, *slash;
    struct hr_str path;
    enum hr_err code;

    HR_TRY(hr__cache_folder(&folder, reterr));
    hr__str_init(&path);
    hr__str_addf(&path, "%s/%s", folder, name);
    hr__free(folder);
    HR_TRY(take(&path, ret_path, reterr));
    slash = strrchr(*ret_path, '/');
    *slash = '\0';
    code = hr__file_make_folder(*ret_path, 0700, reterr);
    *slash = '/';
    if (code != HR_OK) {
        hr__free(*ret_path);
        *ret_path = NULL;
    }
    return code;
}
