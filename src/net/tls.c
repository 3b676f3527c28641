/*
 * net/tls.c - a process's certificates and whom it trusts: see tls.h.
 */
#include "net/tls.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/file.h"
#include "core/library.h"
#include "net/ssl.h"

#define FILE_MAX ((size_t)1 << 20) /* bytes of a file */
#define READ_AT_ONCE 131072u       /* bytes that OpenSSL reads ahead: 8 records */
/* The fastest with AES instructions first; all of them are of TLS 1.3. */
#define SUITES                                                                           \
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"

struct hr_ssl hr__ssl;

#define SYMBOL(name_) {#name_, &hr__ssl.name_},
static const struct hr_symbol symbols[] = {HR_SSL_FUNCTIONS(SYMBOL)};
#undef SYMBOL

static struct hr_library library = HR_LIBRARY("libssl.so.3", "libssl3", symbols);

enum hr_err hr__ssl_load(struct hr_error *reterr)
{
    return hr__library_load(&library, reterr);
}

/* ---- what is given ---- */

static const char *choose(const char *given, const char *variable)
{
    if (given == NULL)
        given = getenv(variable);
    return given != NULL && given[0] != '\0' ? given : NULL;
}

/* Only what concerns a process that does this. */
static struct hr_tls_files complete(const struct hr_tls_files *given, unsigned uses)
{
    struct hr_tls_files files = {.cert = choose(given->cert, "HEADRACE_TLS_CERT"),
                                 .key = choose(given->key, "HEADRACE_TLS_KEY")};

    if (uses & HR_TLS_LISTENS)
        files.client_ca = choose(given->client_ca, "HEADRACE_TLS_CLIENT_CA");
    if (uses & HR_TLS_CONNECTS) {
        files.ca = choose(given->ca, "HEADRACE_TLS_CA");
        files.name = choose(given->name, "HEADRACE_TLS_NAME");
    }
    return files;
}

static enum hr_err
check_given(const struct hr_tls_files *files, unsigned uses, struct hr_error *reterr)
{
    if ((files->cert == NULL) != (files->key == NULL))
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "TLS takes a certificate and its key: give --tls-%s, too",
                        files->cert == NULL ? "cert" : "key");
    if ((uses & HR_TLS_LISTENS) && files->cert == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "a listener with TLS needs a certificate: give --tls-cert "
                        "and --tls-key");
    if ((uses & HR_TLS_CONNECTS) && files->ca == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "a connection with TLS needs a CA to trust: give "
                        "--tls-ca, the certificate of the CA that signed the service's");
    return HR_OK;
}

/* For a message of the system if it cannot be read; OpenSSL has none. */
static enum hr_err check_file(const char *path, struct hr_error *reterr)
{
    size_t bytes;
    char *data;

    HR_TRY(hr__file_read(path, FILE_MAX, &data, &bytes, reterr));
    explicit_bzero(data, bytes); /* it may be a key */
    hr__free(data);
    return HR_OK;
}

/* ---- certificates ---- */

static int refuse_passphrase(char *to, int room, int writing, void *user)
{
    (void)to;
    (void)room;
    (void)writing;
    *(bool *)user = true;
    return -1;
}

static enum hr_err
load_key(SSL_CTX *ctx, const struct hr_tls_files *files, struct hr_error *reterr)
{
    bool encrypted = false;
    unsigned long code;
    int done;

    hr__ssl.SSL_CTX_set_default_passwd_cb(ctx, refuse_passphrase);
    hr__ssl.SSL_CTX_set_default_passwd_cb_userdata(ctx, &encrypted);
    done = hr__ssl.SSL_CTX_use_PrivateKey_file(ctx, files->key, SSL_FILETYPE_PEM);
    hr__ssl.SSL_CTX_set_default_passwd_cb_userdata(ctx, NULL);
    hr__ssl.SSL_CTX_set_default_passwd_cb(ctx, NULL);
    if (done == 1)
        return HR_OK;
    if (encrypted)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "%s: the key has a passphrase, which cannot be entered here; "
                        "openssl pkey -in %s -out FILE removes it",
                        files->key, files->key);
    code = hr__ssl.ERR_peek_last_error();
    if (ERR_GET_LIB(code) == ERR_LIB_X509)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "%s: this key does not belong to the certificate in %s",
                        files->key, files->cert);
    return hr__fail(reterr, HR_ERR_FORMAT, "%s: no private key in PEM format (%s)",
                    files->key, hr__tls_reason());
}

static enum hr_err check_dates(SSL_CTX *ctx, const char *path, struct hr_error *reterr)
{
    const ASN1_TIME *end =
        hr__ssl.X509_get0_notAfter(hr__ssl.SSL_CTX_get0_certificate(ctx));
    char text[32] = "?";
    struct tm tm;

    if (hr__ssl.X509_cmp_current_time(end) >= 0)
        return HR_OK;
    if (hr__ssl.ASN1_TIME_to_tm(end, &tm) == 1)
        (void)!strftime(text, sizeof text, "%Y-%m-%d", &tm);
    return hr__fail(reterr, HR_ERR_ARGUMENT,
                    "%s: the certificate expired on %s; renew it, or set this machine's "
                    "clock",
                    path, text);
}

static enum hr_err
load_own(SSL_CTX *ctx, const struct hr_tls_files *files, struct hr_error *reterr)
{
    if (files->cert == NULL)
        return HR_OK;
    HR_TRY(check_file(files->cert, reterr));
    HR_TRY(check_file(files->key, reterr));
    if (hr__ssl.SSL_CTX_use_certificate_chain_file(ctx, files->cert) != 1)
        return hr__fail(reterr, HR_ERR_FORMAT, "%s: no certificate in PEM format (%s)",
                        files->cert, hr__tls_reason());
    HR_TRY(load_key(ctx, files, reterr));
    return check_dates(ctx, files->cert, reterr);
}

static enum hr_err load_trusted(SSL_CTX *ctx, const char *path, struct hr_error *reterr)
{
    if (path == NULL)
        return HR_OK;
    HR_TRY(check_file(path, reterr));
    if (hr__ssl.SSL_CTX_load_verify_file(ctx, path) != 1)
        return hr__fail(reterr, HR_ERR_FORMAT, "%s: no certificate in PEM format (%s)",
                        path, hr__tls_reason());
    return HR_OK;
}

/* `trusted`: CAs of the other side, or NULL: it needs no certificate. */
static enum hr_err open_context(const struct hr_tls_files *files, const char *trusted,
                                SSL_CTX **ret_ctx, struct hr_error *reterr)
{
    SSL_CTX *ctx;

    hr__ssl.ERR_clear_error();
    ctx = *ret_ctx = hr__ssl.SSL_CTX_new(hr__ssl.TLS_method());
    if (ctx == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "OpenSSL does not start: %s",
                        hr__tls_reason());
    if (hr__ssl.SSL_CTX_ctrl(ctx, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, NULL) !=
            1 ||
        hr__ssl.SSL_CTX_set_ciphersuites(ctx, SUITES) != 1 ||
        hr__ssl.SSL_CTX_set_num_tickets(ctx, 0) != 1)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED, "OpenSSL has no TLS 1.3 here: %s",
                        hr__tls_reason());
    (void)hr__ssl.SSL_CTX_ctrl(ctx, SSL_CTRL_MODE,
                               SSL_MODE_ENABLE_PARTIAL_WRITE |
                                   SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                   SSL_MODE_RELEASE_BUFFERS,
                               NULL);
    (void)hr__ssl.SSL_CTX_ctrl(ctx, SSL_CTRL_SET_READ_AHEAD, 1, NULL);
    hr__ssl.SSL_CTX_set_default_read_buffer_len(ctx, READ_AT_ONCE);
    hr__ssl.SSL_CTX_set_verify(
        ctx, trusted != NULL ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0,
        NULL);
    HR_TRY(load_own(ctx, files, reterr));
    return load_trusted(ctx, trusted, reterr);
}

/* ---- its life ---- */

static enum hr_err open_all(struct hr_tls *tls, const struct hr_tls_files *files,
                            unsigned uses, struct hr_error *reterr)
{
    tls->asks_clients = files->client_ca != NULL;
    tls->key_records = HR_TLS_KEY_RECORDS;
    tls->method = hr__tls_method();
    if (files->name != NULL)
        tls->name = hr__strdup(files->name);
    if (tls->method == NULL || (files->name != NULL && tls->name == NULL))
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    if (uses & HR_TLS_LISTENS)
        HR_TRY(open_context(files, files->client_ca, &tls->listens, reterr));
    if (uses & HR_TLS_CONNECTS)
        HR_TRY(open_context(files, files->ca, &tls->connects, reterr));
    return HR_OK;
}

enum hr_err hr__tls_open(const struct hr_tls_files *files, unsigned uses,
                         struct hr_tls **ret_tls, struct hr_error *reterr)
{
    const struct hr_tls_files all = complete(files, uses);
    struct hr_tls *tls;
    enum hr_err code;

    *ret_tls = NULL;
    if (all.cert == NULL && all.key == NULL && all.ca == NULL && all.client_ca == NULL &&
        all.name == NULL)
        return HR_OK;
    HR_TRY(check_given(&all, uses, reterr));
    HR_TRY(hr__ssl_load(reterr));
    tls = hr__calloc(1, sizeof *tls);
    if (tls == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    code = open_all(tls, &all, uses, reterr);
    if (code != HR_OK) {
        hr__tls_close(tls);
        return code;
    }
    *ret_tls = tls;
    return HR_OK;
}

void hr__tls_close(struct hr_tls *tls)
{
    if (tls == NULL)
        return;
    hr__ssl.SSL_CTX_free(tls->listens);
    hr__ssl.SSL_CTX_free(tls->connects);
    hr__ssl.BIO_meth_free(tls->method);
    hr__free(tls->name);
    hr__free(tls);
}

bool hr__tls_asks_clients(const struct hr_tls *tls)
{
    return tls != NULL && tls->asks_clients;
}
