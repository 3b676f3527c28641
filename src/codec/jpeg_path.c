/*
 * codec/jpeg_path.c - which JPEG decoder to use: as forced, else as HEADRACE_JPEG says.
 */
#include "codec/jpeg.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_int path_chosen = -1;

enum hr_jpeg_path hr__jpeg_path(void)
{
    int path = atomic_load_explicit(&path_chosen, memory_order_relaxed);
    const char *name;

    if (path >= 0)
        return (enum hr_jpeg_path)path;
    name = getenv("HEADRACE_JPEG");
    path = HR_JPEG_AUTO;
    if (name != NULL && strcmp(name, "libjpeg") == 0)
        path = HR_JPEG_LIBJPEG;
    else if (name != NULL && strcmp(name, "own") == 0)
        path = HR_JPEG_OWN;
    atomic_store_explicit(&path_chosen, path, memory_order_relaxed);
    return (enum hr_jpeg_path)path;
}

void hr__jpeg_path_force(enum hr_jpeg_path path)
{
    atomic_store_explicit(&path_chosen, (int)path, memory_order_relaxed);
}
