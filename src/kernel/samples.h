/*
 * kernel/samples.h - sound as numbers: conversion to f32, and blocks in lanes.
 *
 * Conversions are exact or rounded once, so plain C is the same on every machine.
 */
#ifndef HR_KERNEL_SAMPLES_H
#define HR_KERNEL_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Little-endian samples in a file; integers are full scale at -1..1. */
enum hr_sample_coding {
    HR_SAMPLE_U8, /* 128 is silence */
    HR_SAMPLE_S16,
    HR_SAMPLE_S24,
    HR_SAMPLE_S32,
    HR_SAMPLE_F32,
    HR_SAMPLE_F64,
};

size_t hr__sample_bytes(enum hr_sample_coding coding);

/* `count` samples, `step` samples apart, from unaligned memory. */
void hr__samples_to_f32(enum hr_sample_coding coding, const void *from, size_t step,
                        float *to, size_t count);

/* out[i] = mean of channel[c][i], summed in order; `out` may be channel 0. */
void hr__samples_mean(const float *from, size_t stride, size_t channels, float *out,
                      size_t count);

/* Raises numbers to the largest minus `range`, in place. */
void hr__limit_range(float *data, size_t count, float range);

/* What is beyond the ends of a sound. */
enum hr_sound_edge {
    HR_EDGE_REFLECT, /* the sound mirrored about its first and last sample */
    HR_EDGE_ZERO,
};

/*
 * Cuts a sound into blocks of `block` samples and puts each into a column: row r, column
 * c of `to` is sample from + c * block + r, for r < rows <= block. `from` may be
 * negative; samples outside [0, count) follow `edge`. A kernel that works along columns
 * then has one block per lane. Further
 * columns up to `stride`, which lanes may read, become 0.
 */
void hr__sound_columns(const float *sound, int64_t count, enum hr_sound_edge edge,
                       int64_t from, size_t block, size_t rows, float *to, size_t stride,
                       size_t columns);

#endif
