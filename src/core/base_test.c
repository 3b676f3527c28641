/*
 * core/base_test.c - names of errors and dtypes, error messages, starting threads.
 */
#include "core/alloc.h"
#include "core/error.h"
#include "core/thread.h"
#include "tests/support/check.h"

#include <errno.h>
#include <signal.h>

TEST(codes_have_names_and_texts)
{
    CHECK_EQ_STR(hr_err_name(HR_ERR_LIMIT), "HR_ERR_LIMIT");
    CHECK_EQ_STR(hr_err_text(HR_ERR_LIMIT), "a limit was reached");
    CHECK_EQ_STR(hr_err_name((enum hr_err)(-99)), "HR_ERR_UNKNOWN");
}

TEST(dtypes_have_sizes_and_names_that_read_back)
{
    static const size_t sizes[] = {0, 1, 2, 4, 8, 2, 2, 4, 8, 1, 1, 2};

    for (int i = 0; i <= HR_U16; i++) {
        enum hr_dtype dtype = (enum hr_dtype)i;

        CHECK_EQ_INT(hr_dtype_size(dtype), sizes[i]);
        CHECK_EQ_INT(hr_dtype_from_name(hr_dtype_name(dtype)), dtype);
    }
    CHECK_EQ_INT(hr_dtype_from_name("float"), HR_DTYPE_NONE);
    CHECK_EQ_INT(hr_dtype_size((enum hr_dtype)77), 0);
    CHECK_EQ_STR(hr_dtype_name(HR_BF16), "bfloat16");
    CHECK(hr_version()[0] != '\0');
}

TEST(fail_sets_code_and_message_and_leaves_the_parts)
{
    struct hr_error error = {.node = "crop"};

    CHECK_ERR(HR_ERR_RANGE, hr__fail(&error, HR_ERR_RANGE, "%d is\ntoo much", 7));
    CHECK_EQ_INT(error.code, HR_ERR_RANGE);
    CHECK_EQ_STR(error.message, "7 is too much");
    CHECK_EQ_STR(error.node, "crop");
    CHECK_ERR(HR_ERR_IO, hr__fail(NULL, HR_ERR_IO, "ignored"));
}

TEST(the_old_message_may_be_an_argument)
{
    struct hr_error error = {0};

    (void)hr__fail_errno(&error, HR_ERR_IO, ENOSPC, "cannot write %s", "/x");
    CHECK_EQ_STR(error.message, "cannot write /x: No space left on device");
    (void)hr__fail(&error, HR_ERR_IO, "node a: %s", error.message);
    hr__error_prefix(&error, "graph %d", 3);
    CHECK_EQ_STR(error.message,
                 "graph 3: node a: cannot write /x: No space left on device");
    hr__error_prefix(NULL, "nothing");
}

TEST(a_long_message_is_cut_between_characters)
{
    struct hr_error error = {0};
    char text[3 * 400 + 2] = "x";
    size_t length;

    for (size_t i = 0; i < 400; i++)
        memcpy(text + 1 + 3 * i, "\xE2\x82\xAC", 4);
    for (int shift = 0; shift < 2; shift++) {
        (void)hr__fail(&error, HR_ERR_IO, "%s", text + shift);
        length = strlen(error.message);
        CHECK(length > sizeof error.message - 8);
        CHECK_EQ_INT(length % 3, 1 - shift);
    }
}

TEST(a_message_is_utf8)
{
    struct hr_error error = {0};

    (void)hr__fail(&error, HR_ERR_IO, "no '%.2s', '%s'", "x\xC3\xB6", "a\xFF\xC3\xB6");
    CHECK_EQ_STR(error.message, "no 'x?', 'a?\xC3\xB6'");
}

static void *look_at_mask(void *user)
{
    sigset_t *mask = user;

    pthread_sigmask(SIG_SETMASK, NULL, mask);
    return user;
}

TEST(a_thread_blocks_signals_and_its_starter_keeps_its_own)
{
    sigset_t mask, own;
    pthread_t thread;
    void *result;

    CHECK_OK(
        hr__thread_start(&thread, "a name that is too long", look_at_mask, &mask, NULL));
    CHECK_EQ_INT(pthread_join(thread, &result), 0);
    CHECK(result == &mask);
    CHECK(sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGSEGV) == 0);
    pthread_sigmask(SIG_SETMASK, NULL, &own);
    CHECK(sigismember(&own, SIGINT) == 0);
}

TEST(a_failed_thread_start_names_the_thread_and_the_limits)
{
    struct hr_error error = {0};
    pthread_t thread;

    hr__fault_arm(HR_FAULT_THREAD, 1);
    CHECK_ERR(HR_ERR_LIMIT, hr__thread_start(&thread, "w1", look_at_mask, NULL, &error));
    hr__fault_arm(HR_FAULT_ALLOC, 1);
    CHECK_ERR(HR_ERR_MEMORY, hr__thread_start(&thread, "w1", look_at_mask, NULL, NULL));
    hr__fault_arm(0, 0);
    CHECK_HAS(error.message, "'w1'");
    CHECK_HAS(error.message, "ulimit -u");
}
