/*
 * codec/image_png.h - shared by PNG reading and writing: allocation and errors of libpng.
 */
#ifndef HR_CODEC_IMAGE_PNG_H
#define HR_CODEC_IMAGE_PNG_H

#include "headrace/base.h"

#include <png.h>

/* User data of both the error and the memory functions. */
struct hr_png_fault {
    enum hr_err blame; /* the error for a failure other than out of memory */
    enum hr_err code;  /* HR_OK: no failure */
    char text[256];
};

_Noreturn void hr__png_on_error(png_structp png, png_const_charp text); /* longjmp */
void hr__png_on_warning(png_structp png, png_const_charp text);         /* ignores it */
png_voidp hr__png_allocate(png_structp png, png_alloc_size_t bytes);
void hr__png_release(png_structp png, png_voidp block);

/* Converts the failure to an error: "PNG: " and libpng's message. */
HR_CHECK enum hr_err
hr__png_report(const struct hr_png_fault *fault, struct hr_error *reterr);

#endif
