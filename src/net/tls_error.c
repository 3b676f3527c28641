/*
 * net/tls_error.c - why a handshake or a link failed, and what to do about it.
 */
#include "core/error.h"
#include "net/ssl.h"

const char *hr__tls_reason(void)
{
    const char *text = hr__ssl.ERR_reason_error_string(hr__ssl.ERR_peek_last_error());

    return text != NULL ? text : "no reason given";
}

/* This side does not trust the other one's certificate. */
static enum hr_err distrust(long result, bool listens, const char *who, const char *name,
                            struct hr_error *reterr)
{
    const char *ca = listens ? "--tls-client-ca" : "--tls-ca";

    switch (result) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return hr__fail(reterr, HR_ERR_DENIED,
                        "the certificate of %s, or of a CA of it, has expired: renew it "
                        "there, or set this machine's clock",
                        who);
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return hr__fail(reterr, HR_ERR_DENIED,
                        "the certificate of %s is not valid yet: compare the clocks of "
                        "both machines",
                        who);
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return hr__fail(reterr, HR_ERR_DENIED,
                        "the certificate of %s is not for %s: connect by a name that it "
                        "has as a subjectAltName, or give that name by --tls-name",
                        who, name);
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        return hr__fail(reterr, HR_ERR_DENIED,
                        "the certificate of %s was not signed by a CA that is trusted "
                        "here: %s must name the file with that CA's certificate",
                        who, ca);
    default:
        return hr__fail(reterr, HR_ERR_DENIED, "the certificate of %s is refused: %s",
                        who, hr__ssl.X509_verify_cert_error_string(result));
    }
}

/* The other side sent this alert. */
static enum hr_err
alerted(int alert, bool listens, const char *who, struct hr_error *reterr)
{
    const char *ca = listens ? "--tls-ca" : "--tls-client-ca";

    switch (alert) {
    case SSL_AD_INTERNAL_ERROR:
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "%s has no place for another connection, or its TLS failed; try "
                        "again later",
                        who);
    case SSL_AD_CERTIFICATE_REQUIRED:
    case SSL_AD_HANDSHAKE_FAILURE:
        return hr__fail(reterr, HR_ERR_DENIED,
                        "%s asks for a certificate: give --tls-cert and --tls-key", who);
    case SSL_AD_UNKNOWN_CA:
        return hr__fail(
            reterr, HR_ERR_DENIED,
            "%s does not trust the CA of this side's certificate: its %s must "
            "name it",
            who, ca);
    case SSL_AD_CERTIFICATE_EXPIRED:
        return hr__fail(reterr, HR_ERR_DENIED,
                        "%s says that this side's certificate has expired: renew it",
                        who);
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
        return hr__fail(reterr, HR_ERR_DENIED,
                        "%s refuses this side's certificate (%s): its message says why",
                        who, hr__tls_reason());
    case SSL_AD_PROTOCOL_VERSION:
        return hr__fail(reterr, HR_ERR_DENIED, "%s has no TLS 1.3, which is needed", who);
    default:
        return hr__fail(reterr, HR_ERR_IO, "TLS with %s failed: %s", who,
                        hr__tls_reason());
    }
}

enum hr_err hr__tls_explain(SSL *ssl, bool listens, const char *who, const char *name,
                            struct hr_error *reterr)
{
    unsigned long code = hr__ssl.ERR_peek_error();
    int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;

    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
        return distrust(hr__ssl.SSL_get_verify_result(ssl), listens, who, name, reterr);
    if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
        return hr__fail(reterr, HR_ERR_DENIED,
                        "%s has no certificate, which --tls-client-ca asks for", who);
    if (reason == SSL_R_UNSUPPORTED_PROTOCOL || reason == SSL_R_NO_PROTOCOLS_AVAILABLE)
        return hr__fail(reterr, HR_ERR_DENIED, "%s has no TLS 1.3, which is needed", who);
    if (reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256)
        return alerted(reason - SSL_AD_REASON_OFFSET, listens, who, reterr);
    return hr__fail(reterr, HR_ERR_IO, "TLS with %s failed: %s", who, hr__tls_reason());
}
