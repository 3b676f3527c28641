/*
 * tests/support/isas.h - the instruction sets that this processor family may have;
 * hr__isa_limit() with one that the machine lacks selects the next lower one.
 */
#ifndef HR_TESTS_ISAS_H
#define HR_TESTS_ISAS_H

#include "core/cpu.h"

#if defined(__x86_64__)
static const enum hr_isa test_isas[] = {HR_ISA_C, HR_ISA_AVX2, HR_ISA_AVX512};
#else
static const enum hr_isa test_isas[] = {HR_ISA_C, HR_ISA_NEON};
#endif
#define TEST_ISAS ((int32_t)(sizeof test_isas / sizeof test_isas[0]))

#endif
