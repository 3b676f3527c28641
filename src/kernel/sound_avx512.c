/*
 * kernel/sound_avx512.c - the loops on sound, for 16 lanes.
 */
#define VL 16
#define NAME hr__sound_avx512
#include "kernel/sound_lanes.h"
