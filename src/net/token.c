/*
 * net/token.c - see token.h.
 */
#include "net/token.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/file.h"
#include "core/sha256.h"
#include "net/address.h"

#define FILE_MAX 4096u
#define SPACES " \t\r\n"

enum hr_err hr__token_take(const char *text, const char *from, struct hr_token *ret_token,
                           struct hr_error *reterr)
{
    size_t bytes;

    text += strspn(text, SPACES);
    bytes = strlen(text);
    while (bytes > 0 && strchr(SPACES, text[bytes - 1]) != NULL)
        bytes--;
    for (size_t i = 0; i < bytes; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return hr__fail(reterr, HR_ERR_FORMAT,
                            "%s: a token has printable ASCII characters and no spaces; "
                            "byte %zu is another one",
                            from, i + 1);
    if (bytes < HR_TOKEN_MIN || bytes > HR_FRAME_TOKEN_MAX)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "%s: a token has %u to %u characters, not %zu; openssl rand -hex "
                        "32 makes one",
                        from, HR_TOKEN_MIN, HR_FRAME_TOKEN_MAX, bytes);
    memcpy(ret_token->text, text, bytes);
    ret_token->text[bytes] = '\0';
    ret_token->bytes = bytes;
    return HR_OK;
}

enum hr_err
hr__token_load(const char *path, struct hr_token *ret_token, struct hr_error *reterr)
{
    const char *given = getenv("HEADRACE_TOKEN");
    struct hr_token token = {0};
    enum hr_err code = HR_OK;
    size_t bytes;
    char *data;

    if (path == NULL)
        path = getenv("HEADRACE_TOKEN_FILE");
    if (path != NULL && path[0] != '\0') {
        HR_TRY(hr__file_read(path, FILE_MAX, &data, &bytes, reterr));
        code = hr__token_take(data, path, &token, reterr);
        hr__free(data);
    } else if (given != NULL && given[0] != '\0') {
        code = hr__token_take(given, "HEADRACE_TOKEN", &token, reterr);
    }
    if (code == HR_OK)
        *ret_token = token;
    return code;
}

bool hr__token_is(const struct hr_token *token, const void *text, size_t bytes)
{
    unsigned char a[HR_SHA256_BYTES], b[HR_SHA256_BYTES];
    volatile unsigned char differ = 0;

    hr__sha256(token->text, token->bytes, a);
    hr__sha256(text, bytes, b);
    for (size_t i = 0; i < sizeof a; i++)
        differ = (unsigned char)(differ | (a[i] ^ b[i]));
    return differ == 0;
}

static bool is_local(const struct sockaddr_storage *at)
{
    if (at->ss_family == AF_INET)
        return (ntohl(((const struct sockaddr_in *)at)->sin_addr.s_addr) >> 24) == 127;
    return at->ss_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)at)->sin6_addr);
}

enum hr_err hr__token_check_listen(const struct hr_token *token, const char *listen,
                                   bool insecure, struct hr_error *reterr)
{
    struct sockaddr_storage at;
    socklen_t bytes;

    if (token->bytes > 0 || insecure)
        return HR_OK;
    HR_TRY(hr__address_parse(listen, &at, &bytes, reterr));
    if (is_local(&at))
        return HR_OK;
    return hr__fail(reterr, HR_ERR_ARGUMENT,
                    "whoever reaches %s could read every file that this service reads: "
                    "give it a token (--token-file), or say --insecure",
                    listen);
}
