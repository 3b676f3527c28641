/*
 * core/library_test.c - a library that is there, one that is not, one that is too old.
 */
#include "core/library.h"
#include "tests/support/check.h"

#include <math.h>

static double (*cosine)(double);

TEST(a_function_of_a_library_can_be_called)
{
    static const struct hr_symbol symbols[] = {
        {"cos", &cosine}
    };
    static struct hr_library library = HR_LIBRARY("libm.so.6", "libc6", symbols);
    struct hr_error error;

    for (int i = 0; i < 2; i++)
        CHECK_OK(hr__library_load(&library, &error));
    CHECK_NEAR(cosine(1), cos(1), 0);
}

TEST(an_absent_library_is_an_error_that_says_what_to_install)
{
    static struct hr_library library = {"libabsent.so.1",          "libabsent1", NULL, 0,
                                        PTHREAD_MUTEX_INITIALIZER, false};
    struct hr_error error;

    for (int i = 0; i < 2; i++) {
        CHECK_ERR(HR_ERR_UNSUPPORTED, hr__library_load(&library, &error));
        CHECK_HAS(error.message, "cannot load libabsent.so.1");
        CHECK_HAS(error.message, "install it (in Debian: libabsent1)");
    }
}

TEST(a_library_without_the_function_is_too_old)
{
    static void (*function)(void);
    static const struct hr_symbol symbols[] = {
        {"cos_of_tomorrow", &function}
    };
    static struct hr_library library = HR_LIBRARY("libm.so.6", "libc6", symbols);
    struct hr_error error;

    CHECK_ERR(HR_ERR_UNSUPPORTED, hr__library_load(&library, &error));
    CHECK_HAS(error.message,
              "libm.so.6 has no function cos_of_tomorrow: install a newer");
}
