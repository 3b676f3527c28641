/*
 * store/s3_test.c - what S3 answers in XML, and where its configuration comes from.
 */
#include "core/file.h"
#include "store/s3_config.h"
#include "store/s3_xml.h"
#include "store/store.h"
#include "tests/support/check.h"

#include <stdlib.h>

/* ---- XML ---- */

static bool note_key(void *user, const char *key, size_t bytes, uint64_t size)
{
    struct hr_str *found = user;

    CHECK_EQ_INT(strlen(key), bytes);
    hr__str_addf(found, "%s=%llu ", key, (unsigned long long)size);
    return strcmp(key, "stop") != 0;
}

static enum hr_err parse(const char *xml, const char *keys, const char *next)
{
    struct hr_str found, token;
    struct hr_error error = {0};
    enum hr_err err;

    hr__str_init(&found);
    hr__str_init(&token);
    err = hr__s3_parse_list(xml, strlen(xml), note_key, &found, &token, &error);
    if (err == HR_OK) {
        CHECK_EQ_STR(hr__str_text(&found), keys);
        CHECK_EQ_STR(hr__str_text(&token), next);
    } else {
        CHECK_HAS(error.message, "the server's list is");
    }
    hr__str_finish(&found);
    hr__str_finish(&token);
    return err;
}

#define HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
#define LIST "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
#define KEY(name, size)                                                                  \
    "<Contents><Key>" name "</Key><Owner><ID>x</ID></Owner><Size>" size                  \
    "</Size></Contents>"

TEST(keys_sizes_and_tokens_are_read)
{
    CHECK_OK(
        parse(HEAD LIST "<IsTruncated>false</IsTruncated></ListBucketResult>", "", ""));
    CHECK_OK(parse(HEAD LIST "<IsTruncated>true</IsTruncated>" KEY("a b", "5")
                       KEY("c&amp;d&#x20;e",
                           "0") "<NextContinuationToken>t+1</NextContinuationToken>"
                                "</ListBucketResult>",
                   "a b=5 c&d e=0 ", "t+1"));
    CHECK_OK(parse(LIST "<EncodingType>url</EncodingType>" KEY(
                       "a%20b%2Bc+d%zz%4", "12") "</ListBucketResult>",
                   "a b+c d%zz%4=12 ", ""));
    CHECK_OK(parse(LIST KEY("stop", "1") KEY("more", "2") "</ListBucketResult>",
                   "stop=1 ", ""));
}

TEST(other_answers_are_refused)
{
    static const char *const wrong[] = {
        "",
        "not XML",
        "<html></html>",
        LIST KEY("a", "1"),                                        /* cut short */
        LIST "<IsTruncated>true</IsTruncated></ListBucketResult>", /* and no token */
        LIST KEY("", "1") "</ListBucketResult>",
        LIST "<EncodingType>url</EncodingType>" KEY("a%00b", "1") "</ListBucketResult>",
        "<!DOCTYPE x [<!ENTITY a \"b\">]>" LIST KEY("&a;", "1") "</ListBucketResult>",
    };
    size_t bytes = 40000;
    char *large = malloc(bytes + 200);

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK_ERR(HR_ERR_FORMAT, parse(wrong[i], "", ""));
    CHECK(large != NULL);
    snprintf(large, bytes, LIST "<Contents><Key>");
    memset(large + strlen(large), 'k', bytes);
    large[bytes] = '\0';
    CHECK_ERR(HR_ERR_LIMIT, parse(large, "", ""));
    free(large);
}

TEST(errors_are_named_with_code_and_message)
{
    static const char xml[] =
        HEAD "<Error><Code>AccessDenied</Code><Message>no\nway</Message>"
             "<RequestId>1</RequestId></Error>";
    static const char list[] =
        LIST KEY("a", "1") "<NextContinuationToken>t</NextContinuationToken>"
                           "</ListBucketResult>";
    char text[100];

    CHECK(hr__s3_parse_error(xml, sizeof xml - 1, text, sizeof text));
    CHECK_EQ_STR(text, "AccessDenied: no way");
    CHECK(hr__s3_parse_error("<Error><Code>SlowDown</Code></Error>", 36, text,
                             sizeof text));
    CHECK_EQ_STR(text, "SlowDown");
    CHECK(!hr__s3_parse_error(list, sizeof list - 1, text, sizeof text));
    CHECK(!hr__s3_parse_error("<html>", 6, text, sizeof text));
    CHECK(!hr__s3_parse_error("", 0, text, sizeof text));
}

/* ---- configuration ---- */

static void clear_variables(void)
{
    static const char *const names[] = {"AWS_ACCESS_KEY_ID",
                                        "AWS_SECRET_ACCESS_KEY",
                                        "AWS_SESSION_TOKEN",
                                        "AWS_PROFILE",
                                        "AWS_REGION",
                                        "AWS_DEFAULT_REGION",
                                        "AWS_ENDPOINT_URL_S3",
                                        "AWS_ENDPOINT_URL",
                                        "AWS_CONFIG_FILE",
                                        "HEADRACE_S3_ANONYMOUS",
                                        "AWS_SHARED_CREDENTIALS_FILE",
                                        "HEADRACE_S3_STYLE"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
    setenv("HOME", check_temp_dir(), 1);
}

static void write_file(const char *name, const char *text, const char *variable)
{
    char path[1024];

    snprintf(path, sizeof path, "%s/%s", check_temp_dir(), name);
    CHECK_OK(hr__file_replace(path, text, strlen(text), NULL));
    setenv(variable, path, 1);
}

static struct hr_s3_config read_ok(void)
{
    struct hr_s3_config config;
    struct hr_error error = {0};
    enum hr_err err = hr__s3_config_read(&config, &error);

    if (err != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    return config;
}

TEST(credentials_come_from_variables_or_from_a_profile)
{
    struct hr_s3_config c;
    struct hr_error error = {0};

    clear_variables();
    CHECK_ERR(HR_ERR_ARGUMENT, hr__s3_config_read(&c, &error));
    CHECK_HAS(error.message, "AWS_ACCESS_KEY_ID");
    write_file("credentials",
               "# a comment\r\n[default]\r\naws_access_key_id = K1\r\n"
               "aws_secret_access_key=S1=/+\r\n\r\n[ other ]\n"
               "aws_access_key_id=K2\naws_secret_access_key = S2  \naws_session_token=T2",
               "AWS_SHARED_CREDENTIALS_FILE");
    write_file("config",
               "[default]\nregion = r1\ns3 =\n  region = nested\n[profile other]\n"
               "region=r2\nendpoint_url = http://localhost:9000/\n",
               "AWS_CONFIG_FILE");
    c = read_ok();
    CHECK_EQ_STR(c.key, "K1");
    CHECK_EQ_STR(c.secret, "S1=/+");
    CHECK_EQ_STR(c.token, "");
    CHECK_EQ_STR(c.region, "r1");
    CHECK(!c.is_path_style && c.endpoint[0] == '\0');
    setenv("AWS_PROFILE", "other", 1);
    c = read_ok();
    CHECK_EQ_STR(c.key, "K2");
    CHECK_EQ_STR(c.secret, "S2");
    CHECK_EQ_STR(c.token, "T2");
    CHECK_EQ_STR(c.region, "r2");
    CHECK_EQ_STR(c.endpoint, "http://localhost:9000");
    CHECK(c.is_path_style);
    setenv("AWS_ACCESS_KEY_ID", "K3", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "S3", 1);
    setenv("AWS_REGION", "r3", 1);
    setenv("HEADRACE_S3_STYLE", "virtual", 1);
    c = read_ok();
    CHECK_EQ_STR(c.key, "K3");
    CHECK_EQ_STR(c.token, ""); /* not the profile's */
    CHECK_EQ_STR(c.region, "r3");
    CHECK(!c.is_path_style);
    clear_variables();
    setenv("HEADRACE_S3_ANONYMOUS", "1", 1);
    c = read_ok();
    CHECK(c.anonymous && c.key[0] == '\0');
    CHECK_EQ_STR(c.region, "us-east-1");
}

TEST(wrong_settings_are_refused_without_showing_credentials)
{
    static const char *const endpoints[] = {"localhost:9000", "ftp://x", "http://",
                                            "http://me:hunter2@x", "http://x/path"};
    struct hr_error error = {0};
    struct hr_s3_config c;

    clear_variables();
    setenv("AWS_ACCESS_KEY_ID", "K", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "hunter2\nX: y", 1);
    CHECK_ERR(HR_ERR_ARGUMENT, hr__s3_config_read(&c, &error));
    CHECK_HAS(error.message, "AWS_SECRET_ACCESS_KEY contains");
    CHECK(strstr(error.message, "hunter2") == NULL);
    setenv("AWS_SECRET_ACCESS_KEY", "S", 1);
    for (size_t i = 0; i < sizeof endpoints / sizeof endpoints[0]; i++) {
        setenv("AWS_ENDPOINT_URL", endpoints[i], 1);
        CHECK_ERR(HR_ERR_ARGUMENT, hr__s3_config_read(&c, &error));
        CHECK(strstr(error.message, "hunter2") == NULL);
    }
    unsetenv("AWS_ENDPOINT_URL");
    setenv("HEADRACE_S3_STYLE", "sub", 1);
    CHECK_ERR(HR_ERR_ARGUMENT, hr__s3_config_read(&c, &error));
    unsetenv("HEADRACE_S3_STYLE");
    setenv("AWS_CONFIG_FILE", "/none/at/all", 1);
    CHECK_ERR(HR_ERR_NOT_FOUND, hr__s3_config_read(&c, &error));
    CHECK_HAS(error.message, "/none/at/all");
    clear_variables();
}

TEST(names_without_a_bucket_or_a_key_are_refused)
{
    static const char *const wrong[] = {"s3://", "s3:///key", "s3://a@b/key",
                                        "s3://a b/c"};
    struct hr_error error = {0};
    struct hr_object object;

    clear_variables();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_ERR(HR_ERR_ARGUMENT, hr__store_open(wrong[i], &object, &error));
        CHECK_HAS(error.message, "s3://BUCKET/KEY");
    }
    CHECK_ERR(HR_ERR_TYPE, hr__store_open("s3://bucket", &object, &error));
    CHECK_ERR(HR_ERR_ARGUMENT, hr__store_open("s3://bucket/key", &object, &error));
    CHECK_HAS(error.message, "no credentials");
}
