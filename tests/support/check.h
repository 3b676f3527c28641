/*
 * tests/support/check.h - the unit test framework.
 *
 * A test file includes this, writes any number of TEST(a_sentence_with_underscores) { ...
 * }, and is linked with check.c, whose main() runs them (a substring as argument selects
 * some) and prints TAP. Tests that need something a machine may lack (data, a kernel
 * feature) call SKIP("why").
 */
#ifndef HR_TESTS_CHECK_H
#define HR_TESTS_CHECK_H

#include "headrace/base.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef void check_fn(void);
void check_register(const char *name, check_fn *run);
_Noreturn void
check_failed(const char *file, int line, const char *format, ...) HR_PRINTF(3, 4);
_Noreturn void check_skip(const char *why);

/* The folder of real data ($HEADRACE_DATA, else ../shared/data next to the source tree),
 * or NULL. */
const char *check_data_dir(void);
/* The source tree; and a temporary folder that is removed when the test program exits. */
const char *check_source_dir(void);
const char *check_temp_dir(void);

/* The program's seed: $HEADRACE_TEST_SEED, else drawn, below 2^32; printed with the first
 * call. */
uint64_t check_seed(void);

/* Number of open file descriptors; compare before and after to detect leaks. */
int check_open_files(void);

#define TEST(name)                                                                       \
    static void test_##name(void);                                                       \
    __attribute__((constructor)) static void register_##name(void)                       \
    {                                                                                    \
        check_register(#name, test_##name);                                              \
    }                                                                                    \
    static void test_##name(void)

#define SKIP(why) check_skip(why)

#define CHECK(condition)                                                                 \
    do {                                                                                 \
        if (!(condition))                                                                \
            check_failed(__FILE__, __LINE__, "false: %s", #condition);                   \
    } while (0)

#define CHECK_ERR(expected, expression)                                                  \
    do {                                                                                 \
        enum hr_err check_want_ = (expected), check_got_ = (expression);                 \
        if (check_want_ != check_got_)                                                   \
            check_failed(__FILE__, __LINE__, "%s: %s instead of %s", #expression,        \
                         hr_err_name(check_got_), hr_err_name(check_want_));             \
    } while (0)

#define CHECK_OK(expression) CHECK_ERR(HR_OK, expression)

#define CHECK_EQ_INT(a, b)                                                               \
    do {                                                                                 \
        long long check_a_ = (long long)(a), check_b_ = (long long)(b);                  \
        if (check_a_ != check_b_)                                                        \
            check_failed(__FILE__, __LINE__, "%s is %lld, not %s = %lld", #a, check_a_,  \
                         #b, check_b_);                                                  \
    } while (0)

#define CHECK_EQ_STR(a, b)                                                               \
    do {                                                                                 \
        const char *check_a_ = (a), *check_b_ = (b);                                     \
        if (strcmp(check_a_, check_b_) != 0)                                             \
            check_failed(__FILE__, __LINE__, "%s is\n  \"%s\", not\n  \"%s\"", #a,       \
                         check_a_, check_b_);                                            \
    } while (0)

#define CHECK_HAS(text, part)                                                            \
    do {                                                                                 \
        const char *check_t_ = (text), *check_p_ = (part);                               \
        if (strstr(check_t_, check_p_) == NULL)                                          \
            check_failed(__FILE__, __LINE__, "%s is\n  \"%s\", without\n  \"%s\"",       \
                         #text, check_t_, check_p_);                                     \
    } while (0)

#define CHECK_NEAR(a, b, tolerance)                                                      \
    do {                                                                                 \
        double check_a_ = (a), check_b_ = (b);                                           \
        if (!(fabs(check_a_ - check_b_) <= (tolerance)))                                 \
            check_failed(__FILE__, __LINE__, "%s is %.9g, not %s = %.9g", #a, check_a_,  \
                         #b, check_b_);                                                  \
    } while (0)

/* With no bytes, a and b may be NULL. */
#define CHECK_BYTES(a, b, count)                                                         \
    do {                                                                                 \
        const void *check_a_ = (a), *check_b_ = (b);                                     \
        size_t check_bytes_ = (count);                                                   \
        if (check_bytes_ > 0 && memcmp(check_a_, check_b_, check_bytes_) != 0)           \
            check_failed(__FILE__, __LINE__, "%s and %s differ within %zu bytes", #a,    \
                         #b, check_bytes_);                                              \
    } while (0)

#endif
