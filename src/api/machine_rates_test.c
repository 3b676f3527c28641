/*
 * api/machine_rates_test.c - rates that are plausible, or not known.
 */
#include "api/machine_rates.h"
#include "core/alloc.h"
#include "tests/support/check.h"

TEST(a_machine_copies_and_is_crowded)
{
    struct hr_profile_machine machine;

    hr__profile_machine(&machine);
    CHECK(machine.copy == HR_PROFILE_UNKNOWN && machine.crowd == HR_PROFILE_UNKNOWN);
    hr__machine_rates(&machine);
    CHECK(machine.copy > 1e6 && machine.copy < 1e15);
    CHECK(machine.cores == 1 ? machine.crowd == HR_PROFILE_UNKNOWN : machine.crowd >= 1);
    machine.cores = 1;
    hr__machine_rates(&machine);
    CHECK(machine.copy > 0 && machine.crowd == HR_PROFILE_UNKNOWN);
    hr__fault_arm(HR_FAULT_ALLOC, 1);
    hr__machine_rates(&machine);
    hr__fault_arm(0, 0);
    CHECK(machine.copy == HR_PROFILE_UNKNOWN);
}
