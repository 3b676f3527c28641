/*
 * store/s3_config.c - Amazon's variables and files.
 *
 * Roles of instances, single sign-on and commands that print credentials are left out:
 * `aws configure export-credentials` turns them into variables.
 */
#include "store/s3_config.h"
#include "core/alloc.h"
#include "core/error.h"
#include "core/file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_BYTES_MAX ((size_t)1 << 20)

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

static enum hr_err set(char *to, size_t room, const char *from, size_t bytes,
                       const char *what, struct hr_error *reterr)
{
    if (bytes >= room)
        return hr__fail(reterr, HR_ERR_LIMIT, "%s is longer than %zu bytes", what,
                        room - 1);
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)from[i] <= ' ' || from[i] == 0x7f)
            return hr__fail(reterr, HR_ERR_ARGUMENT,
                            "%s contains a space or a control character", what);
    memcpy(to, from, bytes);
    to[bytes] = '\0';
    return HR_OK;
}

#define SET(field, from, bytes, what) set(field, sizeof field, from, bytes, what, reterr)

/* ---- files ---- */

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    return at;
}

static const char *cut_blanks(const char *at, const char *end)
{
    while (end > at && strchr(" \t\r", end[-1]) != NULL)
        end--;
    return end;
}

/* "[name]" or, in the config file, "[profile name]". */
static bool
is_section(const char *at, const char *end, const char *profile, bool is_config)
{
    const char *close = memchr(at, ']', (size_t)(end - at));

    if (close == NULL)
        return false;
    at = skip_blanks(at + 1, close);
    if (is_config && strcmp(profile, "default") != 0) {
        if (close - at < 8 || memcmp(at, "profile", 7) != 0 ||
            (at[7] != ' ' && at[7] != '\t'))
            return false;
        at = skip_blanks(at + 7, close);
    }
    close = cut_blanks(at, close);
    return (size_t)(close - at) == strlen(profile) &&
           memcmp(at, profile, strlen(profile)) == 0;
}

static bool is_name(const char *at, const char *end, const char *name)
{
    return (size_t)(end - at) == strlen(name) && memcmp(at, name, strlen(name)) == 0;
}

struct reading {
    struct hr_s3_config *config;
    const char *profile;
    bool is_config;  /* its sections have other names */
    bool takes_keys; /* they come from one place */
};

/* One setting of the profile's section; a setting that is there already stays. */
static enum hr_err take_setting(const struct reading *reading, const char *at,
                                const char *end, struct hr_error *reterr)
{
    struct hr_s3_config *c = reading->config;
    const char *equals = memchr(at, '=', (size_t)(end - at)), *value, *name_end;
    size_t bytes;

    if (equals == NULL)
        return HR_OK;
    name_end = cut_blanks(at, equals);
    value = skip_blanks(equals + 1, end);
    bytes = (size_t)(end - value);
    if (is_name(at, name_end, "aws_access_key_id") && reading->takes_keys)
        HR_TRY(SET(c->key, value, bytes, "aws_access_key_id"));
    else if (is_name(at, name_end, "aws_secret_access_key") && reading->takes_keys)
        HR_TRY(SET(c->secret, value, bytes, "aws_secret_access_key"));
    else if (is_name(at, name_end, "aws_session_token") && reading->takes_keys)
        HR_TRY(SET(c->token, value, bytes, "aws_session_token"));
    else if (is_name(at, name_end, "region") && c->region[0] == '\0')
        HR_TRY(SET(c->region, value, bytes, "region"));
    else if (is_name(at, name_end, "endpoint_url") && c->endpoint[0] == '\0')
        HR_TRY(SET(c->endpoint, value, bytes, "endpoint_url"));
    return HR_OK;
}

static enum hr_err take_file(const struct reading *reading, const char *text,
                             size_t bytes, struct hr_error *reterr)
{
    const char *end = text + bytes, *next;
    bool inside = false;

    for (const char *at = text; at < end; at = next) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        const char *stop;

        next = line_end != NULL ? line_end + 1 : end;
        stop = cut_blanks(at, line_end != NULL ? line_end : end);
        if (at == stop || *at == '#' || *at == ';')
            continue;
        if (*at == '[')
            inside = is_section(at, stop, reading->profile, reading->is_config);
        else if (inside && *at != ' ' && *at != '\t') /* indented: of a nested setting */
            HR_TRY(take_setting(reading, at, stop, reterr));
    }
    return HR_OK;
}

/* A file that no variable names may be missing. */
static enum hr_err
read_file(struct hr_s3_config *c, const char *named_by, const char *usual,
          const char *profile, bool is_config, struct hr_error *reterr)
{
    const char *path = variable(named_by), *home = variable("HOME");
    struct reading reading = {c, profile, is_config, c->key[0] == '\0'};
    char own[1024], *text;
    size_t bytes;
    enum hr_err err;

    if (path == NULL) {
        if (home == NULL ||
            (size_t)snprintf(own, sizeof own, "%s/%s", home, usual) >= sizeof own)
            return HR_OK;
    }
    err = hr__file_read(path != NULL ? path : own, FILE_BYTES_MAX, &text, &bytes, reterr);
    if (err != HR_OK)
        return path == NULL ? HR_OK : err;
    err = take_file(&reading, text, bytes, reterr);
    hr__free(text);
    return err;
}

/* ---- variables ---- */

static enum hr_err read_variables(struct hr_s3_config *c, struct hr_error *reterr)
{
    const char *key = variable("AWS_ACCESS_KEY_ID");
    const char *secret = variable("AWS_SECRET_ACCESS_KEY");
    const char *token = variable("AWS_SESSION_TOKEN");
    const char *region = variable("AWS_REGION");
    const char *endpoint = variable("AWS_ENDPOINT_URL_S3");

    if (region == NULL)
        region = variable("AWS_DEFAULT_REGION");
    if (endpoint == NULL)
        endpoint = variable("AWS_ENDPOINT_URL");
    if (region != NULL)
        HR_TRY(SET(c->region, region, strlen(region), "AWS_REGION"));
    if (endpoint != NULL)
        HR_TRY(SET(c->endpoint, endpoint, strlen(endpoint), "AWS_ENDPOINT_URL"));
    if (key == NULL || secret == NULL)
        return HR_OK;
    HR_TRY(SET(c->key, key, strlen(key), "AWS_ACCESS_KEY_ID"));
    HR_TRY(SET(c->secret, secret, strlen(secret), "AWS_SECRET_ACCESS_KEY"));
    if (token != NULL)
        HR_TRY(SET(c->token, token, strlen(token), "AWS_SESSION_TOKEN"));
    return HR_OK;
}

static enum hr_err read_style(struct hr_s3_config *c, struct hr_error *reterr)
{
    const char *style = variable("HEADRACE_S3_STYLE");

    c->is_path_style = c->endpoint[0] != '\0';
    if (style == NULL)
        return HR_OK;
    if (strcmp(style, "path") != 0 && strcmp(style, "virtual") != 0)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "HEADRACE_S3_STYLE is \"%.40s\" instead of path or virtual",
                        style);
    c->is_path_style = style[0] == 'p';
    return HR_OK;
}

static enum hr_err check_endpoint(struct hr_s3_config *c, struct hr_error *reterr)
{
    size_t bytes = strlen(c->endpoint), scheme;
    const char *host;

    while (bytes > 0 && c->endpoint[bytes - 1] == '/')
        c->endpoint[--bytes] = '\0';
    if (bytes == 0)
        return HR_OK;
    scheme = strncmp(c->endpoint, "http://", 7) == 0    ? 7
             : strncmp(c->endpoint, "https://", 8) == 0 ? 8
                                                        : 0;
    host = c->endpoint + scheme;
    if (scheme == 0 || *host == '\0' || strpbrk(host, "/@?#") != NULL)
        return hr__fail(
            reterr, HR_ERR_ARGUMENT,
            "the endpoint of S3 must be http://HOST:PORT or https://HOST:PORT, "
            "without a path or a user name");
    return HR_OK;
}

enum hr_err hr__s3_config_read(struct hr_s3_config *ret_config, struct hr_error *reterr)
{
    const char *profile = variable("AWS_PROFILE");
    const char *anonymous = variable("HEADRACE_S3_ANONYMOUS");
    struct hr_s3_config c = {.anonymous =
                                 anonymous != NULL && strcmp(anonymous, "0") != 0};

    if (profile == NULL)
        profile = "default";
    HR_TRY(read_variables(&c, reterr));
    HR_TRY(read_file(&c, "AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials", profile,
                     false, reterr));
    HR_TRY(read_file(&c, "AWS_CONFIG_FILE", ".aws/config", profile, true, reterr));
    HR_TRY(check_endpoint(&c, reterr));
    HR_TRY(read_style(&c, reterr));
    if (c.region[0] == '\0')
        memcpy(c.region, "us-east-1", sizeof "us-east-1");
    if (!c.anonymous && (c.key[0] == '\0' || c.secret[0] == '\0'))
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "no credentials for S3: set AWS_ACCESS_KEY_ID and "
                        "AWS_SECRET_ACCESS_KEY, or put them into the section [%.100s] of "
                        "~/.aws/credentials, or set HEADRACE_S3_ANONYMOUS=1 for public "
                        "buckets",
                        profile);
    *ret_config = c;
    return HR_OK;
}
