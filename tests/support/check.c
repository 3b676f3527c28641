/*
 * tests/support/check.c - main() of every unit test: runs the tests and prints TAP.
 *
 * A failed check leaves its test by longjmp. A crash ends the program; the TAP plan is
 * printed first, so meson sees that tests are missing. A check that fails in another
 * thread also ends the program.
 */
#include "tests/support/check.h"

#include <dirent.h>
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHECK_TESTS_MAX 512

enum check_result {
    CHECK_PASSED,
    CHECK_FAILED,
    CHECK_SKIPPED,
};

static struct {
    const char *name;
    check_fn *run;
} check_tests[CHECK_TESTS_MAX];
static size_t check_count;
static char check_temp[256];
static jmp_buf check_leave;
static pthread_t check_thread;
static const char *check_reason;

void check_register(const char *name, check_fn *run)
{
    if (check_count == CHECK_TESTS_MAX)
        abort();
    check_tests[check_count].name = name;
    check_tests[check_count].run = run;
    check_count++;
}

void check_failed(const char *file, int line, const char *format, ...)
{
    char message[4096];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    printf("# %s:%d: %s\n", file, line, message);
    fflush(stdout);
    if (!pthread_equal(pthread_self(), check_thread))
        abort();
    longjmp(check_leave, CHECK_FAILED);
}

void check_skip(const char *why)
{
    check_reason = why;
    longjmp(check_leave, CHECK_SKIPPED);
}

uint64_t check_seed(void)
{
    static bool known;
    static uint64_t seed;
    const char *given = getenv("HEADRACE_TEST_SEED");
    uint32_t drawn;

    if (known)
        return seed;
    CHECK_EQ_INT(getrandom(&drawn, sizeof drawn, 0), sizeof drawn);
    seed = given != NULL ? strtoull(given, NULL, 0) : drawn;
    known = true;
    printf("# HEADRACE_TEST_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout); /* so that a crash has printed it */
    return seed;
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

int check_open_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    if (folder == NULL)
        abort();
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

/* Runs one test and prints its TAP line. */
static bool check_run(size_t number, size_t at)
{
    volatile int result = setjmp(check_leave);

    if (result == CHECK_PASSED)
        check_tests[at].run();
    printf("%s %zu - %s", result == CHECK_FAILED ? "not ok" : "ok", number,
           check_tests[at].name);
    if (result == CHECK_SKIPPED)
        printf(" # SKIP %s", check_reason);
    printf("\n");
    fflush(stdout);
    return result != CHECK_FAILED;
}

int main(int argc, char **argv)
{
    size_t number = 0, chosen = 0;
    bool passed = true;

    check_thread = pthread_self();
    for (size_t i = 0; i < check_count; i++)
        chosen += argc < 2 || strstr(check_tests[i].name, argv[1]) != NULL;
    printf("1..%zu\n", chosen);
    for (size_t i = 0; i < check_count; i++)
        if (argc < 2 || strstr(check_tests[i].name, argv[1]) != NULL)
            passed = check_run(++number, i) && passed;
    return passed ? 0 : 1;
}
