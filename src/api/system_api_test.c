/*
 * api/system_api_test.c - what the build and the machine say of themselves.
 */
#include "headrace/system.h"

#include <stdlib.h>
#include <string.h>

#include "core/cpu.h"
#include "tests/support/check.h"

TEST(a_machine_has_cpus_and_an_instruction_set)
{
    struct hr_machine_info info = {.cpus = -1};

    hr_machine_info(&info);
    CHECK(info.cpus == hr__cpu_count() && info.cpus >= 1);
    CHECK(info.cpus_affinity >= info.cpus);
    CHECK(info.cpus_quota == 0 || info.cpus_quota >= info.cpus);
    CHECK(info.memory_free_bytes > 0 && info.memory_free_bytes <= info.memory_bytes);
    CHECK(info.cpu[0] != '\0');
    CHECK_EQ_STR(info.isa, hr__isa_name(hr__isa()));
    hr__isa_limit(HR_ISA_C);
    hr_machine_info(&info);
    CHECK_EQ_STR(info.isa, "c");
    CHECK_EQ_STR(info.isa_machine, hr__isa_name(hr__isa_machine()));
    hr_machine_info(NULL);
}

TEST(the_cache_folder_is_the_variables)
{
    struct hr_machine_info info;

    setenv("HEADRACE_CACHE", "/a/folder", 1);
    hr_machine_info(&info);
    CHECK_EQ_STR(info.cache_folder, "/a/folder");
    unsetenv("HEADRACE_CACHE");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    hr_machine_info(&info);
    CHECK_EQ_STR(info.cache_folder, "");
}

TEST(every_part_is_ready_or_says_why_not)
{
    const char *const expected[] = {"libjpeg-turbo", "libpng", "zlib", "io_uring", "file",
                                    "mem",           "http",   "s3",   "gluster"};
    struct hr_part_info part;
    size_t found = 0, count = 0;

    for (; hr_part_info(count, &part) == HR_OK; count++) {
        CHECK(part.kind[0] != '\0' && part.gives[0] != '\0');
        CHECK((part.state == HR_PART_READY) == (part.problem[0] == '\0'));
        CHECK(part.state == HR_PART_READY || part.version[0] == '\0');
        if (strcmp(part.kind, "library") == 0 && part.state == HR_PART_READY)
            CHECK(strpbrk(part.version, "0123456789") != NULL);
        for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
            found += strcmp(part.name, expected[i]) == 0;
    }
    CHECK_EQ_INT(found, sizeof expected / sizeof *expected);
    CHECK_ERR(HR_ERR_RANGE, hr_part_info(count, &part));
    CHECK_ERR(HR_ERR_ARGUMENT, hr_part_info(0, NULL));
}
