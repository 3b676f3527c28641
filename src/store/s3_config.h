/*
 * store/s3_config.h - endpoint, region and credentials of s3://.
 *
 * From the variables that Amazon's tools read: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
 * AWS_SESSION_TOKEN, AWS_PROFILE, AWS_REGION or AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3
 * or AWS_ENDPOINT_URL, AWS_SHARED_CREDENTIALS_FILE, AWS_CONFIG_FILE; else from
 * ~/.aws/credentials and ~/.aws/config. HEADRACE_S3_ANONYMOUS=1 sends no credentials;
 * HEADRACE_S3_STYLE is path or virtual.
 */
#ifndef HR_STORE_S3_CONFIG_H
#define HR_STORE_S3_CONFIG_H

#include "headrace/base.h"

struct hr_s3_config {
    char
        endpoint[512]; /* "https://host:port", without a slash at its end; "": Amazon's */
    char region[64];
    char key[256], secret[256], token[4096];
    bool anonymous;
    bool is_path_style; /* "https://host/bucket/key", else "https://bucket.host/key" */
};

/* HR_ERR_ARGUMENT: no credentials, or a setting is malformed; the message names where
 * they were looked for, and no credential. HR_ERR_IO, HR_ERR_LIMIT: a file that a
 * variable names cannot be read. */
HR_CHECK enum hr_err
hr__s3_config_read(struct hr_s3_config *ret_config, struct hr_error *reterr);

#endif
