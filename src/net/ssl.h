/*
 * net/ssl.h - OpenSSL's functions, which are loaded when a service uses TLS; and what
 * tls*.c share.
 *
 * Some calls of OpenSSL's manual are macros over these; tls*.c spell them out.
 */
#ifndef HR_NET_SSL_H
#define HR_NET_SSL_H

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "net/tls.h"

/* Of a function F(name): one member for each that is used, of the same name. libssl's
 * handle finds those of libcrypto, too. */
#define HR_SSL_FUNCTIONS(F)                                                              \
    F(ASN1_TIME_to_tm)                                                                   \
    F(BIO_clear_flags)                                                                   \
    F(BIO_free)                                                                          \
    F(BIO_get_data)                                                                      \
    F(BIO_meth_new)                                                                      \
    F(BIO_meth_set_ctrl)                                                                 \
    F(BIO_meth_set_read_ex)                                                              \
    F(BIO_meth_set_write_ex)                                                             \
    F(BIO_new)                                                                           \
    F(BIO_set_data)                                                                      \
    F(BIO_set_flags)                                                                     \
    F(BIO_set_init)                                                                      \
    F(BIO_meth_free)                                                                     \
    F(ERR_clear_error)                                                                   \
    F(ERR_peek_error)                                                                    \
    F(ERR_peek_last_error)                                                               \
    F(ERR_reason_error_string)                                                           \
    F(OpenSSL_version)                                                                   \
    F(SSL_CTX_ctrl)                                                                      \
    F(SSL_CTX_free)                                                                      \
    F(SSL_CTX_get0_certificate)                                                          \
    F(SSL_CTX_load_verify_file)                                                          \
    F(SSL_CTX_new)                                                                       \
    F(SSL_CTX_set_ciphersuites)                                                          \
    F(SSL_CTX_set_default_passwd_cb)                                                     \
    F(SSL_CTX_set_default_passwd_cb_userdata)                                            \
    F(SSL_CTX_set_default_read_buffer_len)                                               \
    F(SSL_CTX_set_num_tickets)                                                           \
    F(SSL_CTX_set_verify)                                                                \
    F(SSL_CTX_use_PrivateKey_file)                                                       \
    F(SSL_CTX_use_certificate_chain_file)                                                \
    F(SSL_ctrl)                                                                          \
    F(SSL_do_handshake)                                                                  \
    F(SSL_free)                                                                          \
    F(SSL_get0_param)                                                                    \
    F(SSL_get_error)                                                                     \
    F(SSL_get_verify_result)                                                             \
    F(SSL_has_pending)                                                                   \
    F(SSL_key_update)                                                                    \
    F(SSL_new)                                                                           \
    F(SSL_read_ex)                                                                       \
    F(SSL_set1_host)                                                                     \
    F(SSL_set_accept_state)                                                              \
    F(SSL_set_bio)                                                                       \
    F(SSL_set_connect_state)                                                             \
    F(SSL_set_hostflags)                                                                 \
    F(SSL_shutdown)                                                                      \
    F(SSL_write_ex)                                                                      \
    F(TLS_method)                                                                        \
    F(X509_VERIFY_PARAM_set1_ip_asc)                                                     \
    F(X509_cmp_current_time)                                                             \
    F(X509_get0_notAfter)                                                                \
    F(X509_verify_cert_error_string)

#define HR_SSL_MEMBER(name_) __typeof__(name_) *name_;
struct hr_ssl {
    HR_SSL_FUNCTIONS(HR_SSL_MEMBER)
};
#undef HR_SSL_MEMBER

extern struct hr_ssl hr__ssl;

/* Fills hr__ssl. HR_ERR_UNSUPPORTED if there is no OpenSSL 3. Thread-safe. */
HR_CHECK enum hr_err hr__ssl_load(struct hr_error *reterr);

#define HR_TLS_RECORD 16384u /* bytes of a full record */
/* AES-GCM allows 2^24.5 records with one key (RFC 8446, 5.5). */
#define HR_TLS_KEY_RECORDS ((uint64_t)1 << 23)

struct hr_tls {
    SSL_CTX *listens, *connects; /* NULL: it does not */
    BIO_METHOD *method;
    char *name; /* expected of listeners, or NULL */
    bool asks_clients;
    uint64_t key_records;      /* then the key of what is sent is changed */
    char plain[HR_TLS_RECORD]; /* small parts, joined to a record */
};

/* tls_error.c. What OpenSSL's queue says about a link; `who` is the other side. */
enum hr_err hr__tls_explain(SSL *ssl, bool listens, const char *who, const char *name,
                            struct hr_error *reterr);
/* The newest reason in OpenSSL's queue. */
const char *hr__tls_reason(void);

/* tls_link.c. How links read and write. NULL without memory. */
BIO_METHOD *hr__tls_method(void);

#endif
