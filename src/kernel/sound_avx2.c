/*
 * kernel/sound_avx2.c - the loops on sound, for 8 lanes.
 */
#define VL 8
#define NAME hr__sound_avx2
#include "kernel/sound_lanes.h"
