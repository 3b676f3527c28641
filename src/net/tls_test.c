/*
 * net/tls_test.c - links over sockets of this process: bytes however they are torn, keys
 * that change, records that were changed on their way, and peers that talk nonsense.
 *
 * Certificates are made by the command openssl; without it these tests are skipped.
 */
#include "net/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/rng.h"
#include "net/ssl.h"
#include "tests/support/check.h"

#define BYTES (3u << 20)
#define PARTS 5

static char folder[64], cert[96], key[96];

static void remove_files(void)
{
    (void)!unlink(cert);
    (void)!unlink(key);
    (void)!rmdir(folder);
}

/* A certificate of its own CA, for the name "here". */
static void make_files(void)
{
    char command[512];

    if (folder[0] != '\0')
        return;
    snprintf(folder, sizeof folder, "%s", "/tmp/headrace-tls-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    atexit(remove_files);
    snprintf(cert, sizeof cert, "%s/cert", folder);
    snprintf(key, sizeof key, "%s/key", folder);
    snprintf(
        command, sizeof command,
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "
        "%s -out %s -subj /CN=here -days 2 -addext subjectAltName=DNS:here "
        ">/dev/null 2>&1",
        key, cert);
    if (system(command) != 0)
        SKIP("the command openssl makes no certificate");
}

static struct hr_tls *open_tls(const char *name)
{
    const struct hr_tls_files files = {
        .cert = cert, .key = key, .ca = cert, .client_ca = "", .name = name};
    struct hr_tls *tls = NULL;

    make_files();
    CHECK_OK(hr__tls_open(&files, HR_TLS_LISTENS | HR_TLS_CONNECTS, &tls, NULL));
    CHECK(tls != NULL);
    return tls;
}

/* Two ends and their links. */
struct pair {
    struct hr_tls *tls;
    int fds[2];
    struct hr_tls_link *server, *client;
};

static struct pair open_pair(struct hr_tls *tls)
{
    struct pair pair = {.tls = tls};

    CHECK_EQ_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.fds), 0);
    CHECK_OK(hr__tls_link(tls, pair.fds[0], NULL, &pair.server, NULL));
    CHECK_OK(hr__tls_link(tls, pair.fds[1], "here:7070", &pair.client, NULL));
    return pair;
}

static void close_pair(struct pair *pair)
{
    hr__tls_unlink(pair->server);
    hr__tls_unlink(pair->client);
    close(pair->fds[0]);
    close(pair->fds[1]);
    hr__tls_close(pair->tls);
}

static void shake(struct pair *pair)
{
    bool server = false, client = false;

    for (int i = 0; i < 20 && !(server && client); i++) {
        if (!client)
            CHECK_OK(hr__tls_shake(pair->client, &client, NULL));
        if (!server)
            CHECK_OK(hr__tls_shake(pair->server, &server, NULL));
    }
    CHECK(server && client);
}

/* Random parts of [at, BYTES). */
static size_t cut(struct hr_rng *rng, char *data, size_t at, struct iovec *parts)
{
    size_t count = 0;

    for (; count < PARTS && at < BYTES; count++) {
        size_t bytes = hr__rng_below(rng, 1u << hr__rng_below(rng, 20));

        bytes = bytes < BYTES - at ? bytes : BYTES - at;
        parts[count] = (struct iovec){data + at, bytes};
        at += bytes;
    }
    return count;
}

static size_t moved(ssize_t done)
{
    CHECK(done >= 0 || errno == EAGAIN);
    return done < 0 ? 0 : (size_t)done;
}

/* Sends BYTES random bytes in random pieces and compares what comes. */
static void transfer(struct hr_tls_link *from, struct hr_tls_link *to)
{
    static char out[BYTES], in[BYTES];
    struct iovec parts[PARTS];
    struct hr_rng rng;
    size_t sent = 0, got = 0;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (size_t i = 0; i < BYTES; i++)
        out[i] = (char)hr__rng_u64(&rng);
    memset(in, 0, BYTES);
    for (int turn = 0; got < BYTES; turn++) {
        CHECK(turn < 1000000);
        sent += moved(hr__tls_write(from, parts, cut(&rng, out, sent, parts)));
        if (hr__rng_below(&rng, 3) > 0)
            got += moved(hr__tls_read(to, parts, cut(&rng, in, got, parts)));
    }
    CHECK_EQ_INT(hr__tls_waiting(from), 0);
    CHECK_EQ_INT(memcmp(out, in, BYTES), 0);
}

TEST(bytes_arrive_however_they_are_torn)
{
    struct pair pair = open_pair(open_tls(NULL));

    shake(&pair);
    transfer(pair.client, pair.server);
    transfer(pair.server, pair.client);
    close_pair(&pair);
}

TEST(keys_change_on_the_way)
{
    struct pair pair = open_pair(open_tls(NULL));

    pair.tls->key_records = 3;
    shake(&pair);
    transfer(pair.client, pair.server);
    transfer(pair.server, pair.client);
    close_pair(&pair);
}

TEST(a_certificate_for_another_name_is_refused_on_both_sides)
{
    struct pair pair = open_pair(open_tls("there"));
    struct hr_error error = {0};
    bool done;

    CHECK_OK(hr__tls_shake(pair.client, &done, NULL));
    CHECK_OK(hr__tls_shake(pair.server, &done, NULL));
    CHECK_ERR(HR_ERR_DENIED, hr__tls_shake(pair.client, &done, &error));
    CHECK_HAS(error.message, "here:7070 is not for there");
    CHECK_HAS(error.message, "--tls-name");
    CHECK_ERR(HR_ERR_DENIED, hr__tls_shake(pair.server, &done, &error));
    close_pair(&pair);
}

/* Moves bytes from one socket to another and changes one of them. */
static void forge(int from, int to, uint64_t at)
{
    char bytes[65536];
    ssize_t got = read(from, bytes, sizeof bytes);

    CHECK(got > 0);
    bytes[at % (uint64_t)got] ^= 0x10;
    CHECK_EQ_INT(write(to, bytes, (size_t)got), got);
}

TEST(a_record_that_was_changed_ends_the_link)
{
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 1, 0);
    for (int i = 0; i < 40; i++) {
        struct pair pair = open_pair(open_tls(NULL));
        char data[20000] = {0};
        struct iovec part = {data, sizeof data};
        int between[2];

        shake(&pair);
        CHECK_EQ_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, between), 0);
        CHECK_EQ_INT(hr__tls_write(pair.client, &part, 1), sizeof data);
        /* what the server would read goes to a socket that takes its place */
        forge(pair.fds[0], between[1], hr__rng_u64(&rng));
        CHECK_EQ_INT(dup2(between[0], pair.fds[0]), pair.fds[0]);
        close(between[1]);
        while (hr__tls_read(pair.server, &part, 1) > 0)
            continue;
        CHECK(errno == EPROTO || errno == ECONNRESET);
        CHECK_EQ_INT(hr__tls_read(pair.server, &part, 1), -1);
        CHECK_EQ_INT(hr__tls_failure(pair.server)->code, HR_ERR_IO);
        close(between[0]);
        close_pair(&pair);
    }
}

TEST(nonsense_ends_a_handshake_with_an_error)
{
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 2, 0);
    for (int i = 0; i < 200; i++) {
        struct pair pair = open_pair(open_tls(NULL));
        struct hr_tls_link *link = i % 2 == 0 ? pair.client : pair.server;
        struct hr_error error = {0};
        char bytes[400];
        bool done = false;

        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (char)hr__rng_u64(&rng);
        if (i % 4 < 2) /* a record, at least */
            memcpy(bytes, "\x16\x03\x01\x00\x80\x01\x00\x00\x7c\x03\x03", 11);
        CHECK_EQ_INT(write(pair.fds[i % 2], bytes, sizeof bytes), sizeof bytes);
        (void)!shutdown(pair.fds[i % 2], SHUT_WR);
        for (int k = 0; k < 5 && error.code == HR_OK; k++)
            (void)!hr__tls_shake(link, &done, &error);
        CHECK(!done);
        CHECK(error.code != HR_OK && error.message[0] != '\0');
        close_pair(&pair);
    }
}

TEST(without_settings_there_is_no_tls)
{
    const struct hr_tls_files none = {NULL}, half = {.cert = "/nowhere"},
                              lone = {.name = "here"};
    struct hr_tls *tls = NULL;
    struct hr_error error = {0};

    CHECK_OK(hr__tls_open(&none, HR_TLS_LISTENS | HR_TLS_CONNECTS, &tls, NULL));
    CHECK(tls == NULL && !hr__tls_asks_clients(tls));
    CHECK_ERR(HR_ERR_ARGUMENT, hr__tls_open(&half, HR_TLS_LISTENS, &tls, &error));
    CHECK_HAS(error.message, "--tls-key");
    CHECK_ERR(HR_ERR_ARGUMENT, hr__tls_open(&lone, HR_TLS_CONNECTS, &tls, &error));
    CHECK_HAS(error.message, "--tls-ca");
    CHECK_OK(hr__tls_open(&lone, HR_TLS_LISTENS, &tls, NULL)); /* not its concern */
    CHECK(tls == NULL);
}
