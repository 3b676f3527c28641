/*
 * kernel/sound_c.c - the loops on sound, in plain C: every other table must give the same
 * bytes.
 */
#define VL 1
#define NAME hr__sound_c
#include "kernel/sound_lanes.h"
