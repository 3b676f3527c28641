/*
 * core/library_test.c - a library that is there, one that is not, one that is too old;
 * exit() while threads use one.
 */
#include "core/library.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/check.h"

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

/* Uses OpenSSL until the process ends. */
static void *fetch(void *user)
{
    void *(*md_fetch)(void *, const char *, const char *);
    void (*md_free)(void *);
    void *symbols[2] = {dlsym(user, "EVP_MD_fetch"), dlsym(user, "EVP_MD_free")};

    memcpy(&md_fetch, &symbols[0], sizeof md_fetch);
    memcpy(&md_free, &symbols[1], sizeof md_free);
    for (;;)
        md_free(md_fetch(NULL, "SHA256", NULL));
    return NULL;
}

/* In a process of its own, whose threads are in OpenSSL when it exits. */
static void exit_with_threads(void)
{
    static void *to;
    static const struct hr_symbol symbols[] = {
        {"curl_easy_init", &to}
    };
    struct hr_library library = HR_LIBRARY("libcurl.so.4", "libcurl4", symbols);
    void *crypto;
    pthread_t thread;

    if (hr__library_load(&library, NULL) != HR_OK)
        _exit(2);
    crypto = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_NOLOAD);
    if (crypto == NULL)
        _exit(2);
    for (int i = 0; i < 3; i++)
        if (pthread_create(&thread, NULL, fetch, crypto) != 0)
            _exit(3);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    exit(0);
}

TEST(exit_leaves_openssl_to_threads_that_are_still_in_it)
{
    for (int i = 0; i < 10; i++) {
        pid_t child = fork();
        int status;

        CHECK(child >= 0);
        if (child == 0)
            exit_with_threads();
        CHECK_EQ_INT(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
            SKIP("libcurl is not installed, or does not use OpenSSL");
        CHECK_EQ_INT(status, 0);
    }
}
