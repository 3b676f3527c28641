/*
 * store/sigv4.c - AWS Signature Version 4.
 *
 * The Range header is not signed, which S3 allows, so that libcurl may set it.
 */
#include "store/sigv4.h"
#include "core/sha256.h"
#include <string.h>
#include <time.h>

#define EMPTY_HASH "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* hash = HMAC(hash, text) */
static void chain(unsigned char hash[HR_SHA256_BYTES], const char *text)
{
    unsigned char next[HR_SHA256_BYTES];

    hr__hmac_sha256(hash, HR_SHA256_BYTES, text, strlen(text), next);
    memcpy(hash, next, sizeof next);
}

static void text_hash(const struct hr_str *text, char ret_text[HR_SHA256_TEXT_BYTES])
{
    unsigned char hash[HR_SHA256_BYTES];

    hr__sha256(hr__str_text(text), text->length, hash);
    hr__sha256_text(hash, ret_text);
}

/* The key of the day, region and service. */
static void derive_key(const struct hr_sigv4 *request, const char *day,
                       unsigned char ret_key[HR_SHA256_BYTES])
{
    struct hr_str secret;

    hr__str_init(&secret);
    hr__str_addf(&secret, "AWS4%s", request->secret);
    hr__hmac_sha256(hr__str_text(&secret), secret.length, day, strlen(day), ret_key);
    hr__str_finish(&secret);
    chain(ret_key, request->region);
    chain(ret_key, "s3");
    chain(ret_key, "aws4_request");
}

void hr__sigv4_headers(const struct hr_sigv4 *request, struct hr_str *headers)
{
    const char *names = request->token[0] != '\0'
                            ? "host;x-amz-content-sha256;x-amz-date;x-amz-security-token"
                            : "host;x-amz-content-sha256;x-amz-date";
    time_t seconds = (time_t)(request->wall_ns / 1000000000);
    char date[20], day[12], hash[HR_SHA256_TEXT_BYTES];
    unsigned char key[HR_SHA256_BYTES];
    struct hr_str lines, text;
    struct tm tm;

    gmtime_r(&seconds, &tm);
    strftime(date, sizeof date, "%Y%m%dT%H%M%SZ", &tm);
    strftime(day, sizeof day, "%Y%m%d", &tm);
    hr__str_init(&lines);
    hr__str_init(&text);
    hr__str_addf(&lines, "x-amz-content-sha256:%s\nx-amz-date:%s\n", EMPTY_HASH, date);
    if (request->token[0] != '\0')
        hr__str_addf(&lines, "x-amz-security-token:%s\n", request->token);
    hr__str_addf(&text, "GET\n%s\n%s\nhost:%s\n%s\n%s\n%s", request->path, request->query,
                 request->host, hr__str_text(&lines), names, EMPTY_HASH);
    text_hash(&text, hash);
    text.failed |= lines.failed;
    headers->failed |= text.failed;
    hr__str_clear(&text);
    hr__str_addf(&text, "AWS4-HMAC-SHA256\n%s\n%s/%s/s3/aws4_request\n%s", date, day,
                 request->region, hash);
    derive_key(request, day, key);
    chain(key, hr__str_text(&text));
    hr__sha256_text(key, hash);
    hr__str_add(headers, hr__str_text(&lines));
    hr__str_addf(headers,
                 "Authorization:AWS4-HMAC-SHA256 Credential=%s/%s/%s/s3/aws4_request,"
                 "SignedHeaders=%s,Signature=%s\n",
                 request->key, day, request->region, names, hash);
    headers->failed |= text.failed;
    hr__str_finish(&text);
    hr__str_finish(&lines);
}
