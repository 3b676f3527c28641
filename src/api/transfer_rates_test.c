/*
 * api/transfer_rates_test.c - rates that are plausible, or not known.
 */
#include "api/transfer_rates.h"
#include "core/alloc.h"
#include "tests/support/check.h"

TEST(records_and_bytes_have_a_cost)
{
    int fds = check_open_files();
    struct hr_profile_machine machine;

    hr__profile_machine(&machine);
    CHECK(machine.transfer == HR_PROFILE_UNKNOWN &&
          machine.transfer_ns == HR_PROFILE_UNKNOWN);
    hr__transfer_rates(&machine);
    CHECK(machine.transfer_ns > 1 && machine.transfer_ns < 1e9);
    CHECK(machine.transfer > 1e6 && machine.transfer < 1e15);
    CHECK_EQ_INT(check_open_files(), fds);
}

TEST(what_fails_is_not_known)
{
    int fds = check_open_files();
    struct hr_profile_machine machine = {0};

    for (uint64_t n = 1; n < 20; n++) {
        hr__fault_arm(HR_FAULT_ALLOC, n);
        hr__transfer_rates(&machine);
        hr__fault_arm(0, 0);
        CHECK(machine.transfer_ns > 0 || machine.transfer == HR_PROFILE_UNKNOWN);
    }
    CHECK_EQ_INT(check_open_files(), fds);
}
