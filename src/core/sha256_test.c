/* core/sha256_test.c - vectors of FIPS 180-4 and RFC 4231. */
#include "core/sha256.h"
#include "tests/support/check.h"
#include <stdlib.h>

static const char *hash_of(const void *data, size_t bytes)
{
    static char text[HR_SHA256_TEXT_BYTES];
    unsigned char hash[HR_SHA256_BYTES];

    hr__sha256(data, bytes, hash);
    hr__sha256_text(hash, text);
    return text;
}

static const char *hmac_of(const void *key, size_t key_bytes, const char *data)
{
    static char text[HR_SHA256_TEXT_BYTES];
    unsigned char hash[HR_SHA256_BYTES];

    hr__hmac_sha256(key, key_bytes, data, strlen(data), hash);
    hr__sha256_text(hash, text);
    return text;
}

TEST(hashes_are_those_of_the_standard)
{
    static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    char *million = malloc(1000000);

    CHECK_EQ_STR(hash_of("", 0),
                 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK_EQ_STR(hash_of("abc", 3),
                 "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK_EQ_STR(hash_of(two, sizeof two - 1),
                 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK(million != NULL);
    memset(million, 'a', 1000000);
    CHECK_EQ_STR(hash_of(million, 1000000),
                 "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

TEST(macs_are_those_of_rfc_4231)
{
    unsigned char key[131];

    memset(key, 0x0b, 20);
    CHECK_EQ_STR(hmac_of(key, 20, "Hi There"),
                 "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    CHECK_EQ_STR(hmac_of("Jefe", 4, "what do ya want for nothing?"),
                 "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, 131);
    CHECK_EQ_STR(
        hmac_of(key, 131, "Test Using Larger Than Block-Size Key - Hash Key First"),
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}
