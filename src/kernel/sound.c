/*
 * kernel/sound.c - chooses the table.
 */
#include "kernel/sound.h"

#include "core/cpu.h"

const struct hr_sound_table *hr__sound_table(void)
{
#ifdef HR_KERNEL_X86
    enum hr_isa isa = hr__isa();

    if (isa >= HR_ISA_AVX512)
        return &hr__sound_avx512;
    if (isa >= HR_ISA_AVX2)
        return &hr__sound_avx2;
#elif defined(HR_KERNEL_NEON)
    if (hr__isa() >= HR_ISA_NEON)
        return &hr__sound_neon;
#endif
    return &hr__sound_c;
}
