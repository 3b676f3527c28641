/*
 * tests/support/check.c - the main of every unit test: runs the tests, prints TAP.
 *
 * cmocka does the running (a failure leaves the test by longjmp, a crash is reported with
 * its test); its TAP output goes to meson, which counts every test.
 */
#define _GNU_SOURCE
#include "tests/support/check.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define CHECK_TESTS_MAX 512

static struct CMUnitTest check_tests[CHECK_TESTS_MAX];
static check_fn *check_runs[CHECK_TESTS_MAX];
static size_t check_count;
static char check_temp[256];

static void check_trampoline(void **state)
{
    check_fn *const *run = *state;

    (*run)();
}

void check_register(const char *name, check_fn *run)
{
    if (check_count == CHECK_TESTS_MAX)
        abort();
    check_runs[check_count] = run;
    check_tests[check_count].name = name;
    check_tests[check_count].test_func = check_trampoline;
    check_tests[check_count].initial_state = &check_runs[check_count];
    check_count++;
}

void check_failed(const char *file, int line, const char *format, ...)
{
    char message[4096];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    print_error("%s\n", message);
    _fail(file, line);
    abort();
}

void check_skip(const char *why)
{
    print_message("# skipped: %s\n", why);
    _skip(__FILE__, __LINE__);
    abort();
}

const char *check_source_dir(void)
{
    return HR_SOURCE_DIR;
}

const char *check_data_dir(void)
{
    static char path[1024];
    const char *given = getenv("HEADRACE_DATA");
    struct stat info;

    if (given != NULL)
        snprintf(path, sizeof path, "%s", given);
    else
        snprintf(path, sizeof path, "%s/../shared/data", HR_SOURCE_DIR);
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode) ? path : NULL;
}

static int
check_remove(const char *path, const struct stat *info, int kind, struct FTW *ftw)
{
    (void)info;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static void check_remove_temp(void)
{
    nftw(check_temp, check_remove, 16, FTW_DEPTH | FTW_PHYS);
}

const char *check_temp_dir(void)
{
    if (check_temp[0] == '\0') {
        const char *base = getenv("TMPDIR");

        snprintf(check_temp, sizeof check_temp, "%s/headrace-test-XXXXXX",
                 base != NULL ? base : "/tmp");
        if (mkdtemp(check_temp) == NULL)
            abort();
        atexit(check_remove_temp);
    }
    return check_temp;
}

int main(int argc, char **argv)
{
    char filter[256];

    if (getenv("CMOCKA_MESSAGE_OUTPUT") == NULL)
        cmocka_set_message_output(CM_OUTPUT_TAP);
    if (argc > 1) {
        snprintf(filter, sizeof filter, "*%s*", argv[1]);
        cmocka_set_test_filter(filter);
    }
    return _cmocka_run_group_tests(argv[0], check_tests, check_count, NULL, NULL);
}
