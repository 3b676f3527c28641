/*
 * codec/unicode.c - the table, which tools/gen-unicode writes.
 */
#include "codec/unicode.h"

#include "codec/unicode.def"
