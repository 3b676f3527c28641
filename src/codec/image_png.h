/*
 * codec/image_png.h - what reading and writing PNG share: how libpng allocates and how it
 * tells a fault.
 */
#ifndef HR_CODEC_IMAGE_PNG_H
#define HR_CODEC_IMAGE_PNG_H

#include "headrace/base.h"

#include <png.h>

/* User data of both the error and the memory functions. */
struct hr_png_fault {
    enum hr_err blame; /* the code of a fault that is not about memory */
    enum hr_err code;  /* HR_OK: none */
    char text[256];
};

_Noreturn void hr__png_on_error(png_structp png, png_const_charp text); /* longjmp */
void hr__png_on_warning(png_structp png, png_const_charp text);         /* nothing */
png_voidp hr__png_allocate(png_structp png, png_alloc_size_t bytes);
void hr__png_release(png_structp png, png_voidp block);

/* The fault as an error, "PNG: " and libpng's words. */
HR_CHECK enum hr_err
hr__png_told(const struct hr_png_fault *fault, struct hr_error *reterr);

#endif
