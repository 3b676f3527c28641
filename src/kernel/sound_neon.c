/*
 * kernel/sound_neon.c - the loops on sound, for 4 lanes.
 */
#define VL 4
#define NAME hr__sound_neon
#include "kernel/sound_lanes.h"
