/*
 * store/sigv4_test.c - examples of "Authenticating Requests: Using the Authorization
 * Header (AWS Signature Version 4)" in Amazon's S3 API reference.
 */
#include "store/sigv4.h"
#include "tests/support/check.h"

static void check_signature(const char *query, const char *token, const char *signature)
{
    struct hr_sigv4 request = {
        .key = "AKIAIOSFODNN7EXAMPLE",
        .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        .token = token,
        .region = "us-east-1",
        .host = "examplebucket.s3.amazonaws.com",
        .path = "/",
        .query = query,
        .wall_ns = UINT64_C(1369353600) * 1000000000, /* 24 May 2013 */
    };
    struct hr_str headers;

    hr__str_init(&headers);
    hr__sigv4_headers(&request, &headers);
    CHECK(hr__str_ok(&headers));
    CHECK_HAS(hr__str_text(&headers), "x-amz-date:20130524T000000Z\n");
    CHECK_HAS(hr__str_text(&headers),
              "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,");
    CHECK_HAS(hr__str_text(&headers), signature);
    CHECK(strstr(hr__str_text(&headers), request.secret) == NULL);
    hr__str_finish(&headers);
}

TEST(signatures_are_those_of_amazons_examples)
{
    check_signature("lifecycle=", "",
                    "Signature="
                    "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543\n");
    check_signature("max-keys=2&prefix=J", "",
                    "Signature="
                    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7\n");
}

TEST(a_session_token_is_sent_and_signed)
{
    check_signature("max-keys=2&prefix=J", "the-token",
                    "x-amz-security-token:the-token\n");
    check_signature(
        "max-keys=2&prefix=J", "the-token",
        "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,");
}
