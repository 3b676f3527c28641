/*
 * net/token_test.c - tokens from files and the environment, and where they are needed.
 */
#include "net/token.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/check.h"

static const char *const good = "0123456789abcdef";

static void start(void)
{
    unsetenv("HEADRACE_TOKEN");
    unsetenv("HEADRACE_TOKEN_FILE");
}

static const char *write_file(const char *text)
{
    static char path[] = "/tmp/headrace-token-XXXXXX";
    static bool made;
    FILE *file;
    int fd;

    if (!made) {
        fd = mkstemp(path);
        CHECK(fd >= 0);
        close(fd);
        made = true;
    }
    file = fopen(path, "w");
    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    CHECK_EQ_INT(fclose(file), 0);
    return path;
}

TEST(a_token_comes_from_the_option_then_the_file_of_the_environment_then_the_environment)
{
    struct hr_token token = {0};
    const char *path;

    start();
    CHECK_OK(hr__token_load(NULL, &token, NULL));
    CHECK_EQ_INT(token.bytes, 0);
    setenv("HEADRACE_TOKEN", "from-the-environment", 1);
    CHECK_OK(hr__token_load(NULL, &token, NULL));
    CHECK_EQ_STR(token.text, "from-the-environment");
    path = write_file(" \n0123456789abcdef\r\n");
    setenv("HEADRACE_TOKEN_FILE", path, 1);
    CHECK_OK(hr__token_load(NULL, &token, NULL));
    CHECK_EQ_STR(token.text, good);
    setenv("HEADRACE_TOKEN_FILE", "/nowhere/token", 1);
    CHECK_OK(hr__token_load(path, &token, NULL));
    CHECK_EQ_STR(token.text, good);
    CHECK_ERR(HR_ERR_NOT_FOUND, hr__token_load(NULL, &token, NULL));
    start();
    unlink(path);
}

TEST(a_wrong_token_file_is_refused_and_not_shown)
{
    static const char *const wrong[] = {"", "short-secret", "two words of a secret",
                                        "secret-with-\x01-inside"};
    static char text[400];
    struct hr_token token = {0};
    struct hr_error error = {0};
    const char *path = NULL;

    start();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        path = write_file(wrong[i]);
        CHECK_ERR(HR_ERR_FORMAT, hr__token_load(path, &token, &error));
        CHECK_HAS(error.message, path);
        CHECK(strstr(error.message, "secret") == NULL);
    }
    memset(text, 'a', 256);
    path = write_file(text);
    CHECK_ERR(HR_ERR_FORMAT, hr__token_load(path, &token, &error));
    text[255] = '\0';
    path = write_file(text);
    CHECK_OK(hr__token_load(path, &token, NULL));
    CHECK_EQ_INT(token.bytes, 255);
    unlink(path);
}

TEST(only_the_same_token_is_the_token)
{
    struct hr_token token = {.bytes = 16};

    memcpy(token.text, good, 17);
    CHECK(hr__token_is(&token, good, 16));
    CHECK(!hr__token_is(&token, good, 15));
    CHECK(!hr__token_is(&token, "0123456789abcdeF", 16));
    CHECK(!hr__token_is(&token, "", 0));
}

TEST(without_a_token_only_this_machine_may_connect)
{
    struct hr_token none = {0}, some = {.bytes = 16};
    struct hr_error error = {0};

    CHECK_OK(hr__token_check_listen(&none, "127.0.0.1:0", false, &error));
    CHECK_OK(hr__token_check_listen(&none, "127.3.2.1:0", false, &error));
    CHECK_OK(hr__token_check_listen(&none, "[::1]:0", false, &error));
    CHECK_OK(hr__token_check_listen(&none, "0.0.0.0:0", true, &error));
    CHECK_OK(hr__token_check_listen(&some, "0.0.0.0:0", false, &error));
    CHECK_ERR(HR_ERR_ARGUMENT, hr__token_check_listen(&none, "0.0.0.0:0", false, &error));
    CHECK_HAS(error.message, "--insecure");
    CHECK_ERR(HR_ERR_ARGUMENT, hr__token_check_listen(&none, "[::]:0", false, &error));
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr__token_check_listen(&none, "10.1.2.3:0", false, &error));
}
