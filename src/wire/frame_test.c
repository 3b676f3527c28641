/*
 * wire/frame_test.c - frames to bytes and back: every type with random contents, two
 * frames byte by byte as docs/formats/frame.md describes them, and bytes that lie.
 */
#include "wire/frame.h"

#include "core/hash.h"
#include "core/rng.h"
#include "tests/support/check.h"

#define ROOM (HR_FRAME_HEAD + HR_FRAME_CONTROL_MAX)

static struct hr_rng rng;

static void start(void)
{
    hr__rng_init(&rng, check_seed(), 0, 0);
}

static uint64_t below(uint64_t n)
{
    return hr__rng_below(&rng, n);
}

static enum hr_err
reread(const char *bytes, struct hr_frame *ret_frame, struct hr_error *reterr)
{
    struct hr_frame_head head;

    HR_TRY(hr__frame_read_head(bytes, &head, reterr));
    return hr__frame_read(bytes, &head, bytes + HR_FRAME_HEAD, ret_frame, reterr);
}

/* Repairs the hash, so that the checks after it are reached. */
static void reseal(char *bytes, size_t payload)
{
    uint64_t sum = hr__hash64(bytes + HR_FRAME_HEAD, payload, hr__hash64(bytes, 24, 0));

    memcpy(bytes + 24, &sum, 8);
}

static void random_ranges(struct hr_frame *f, struct hr_frame_range *ranges)
{
    uint64_t at = 0;

    f->count = (uint32_t)(1 + below(HR_FRAME_RANGES_MAX));
    for (uint32_t i = 0; i < f->count; i++) {
        ranges[i].from = at + below(100);
        at = ranges[i].until = ranges[i].from + 1 + below(1u << 20);
    }
}

static void random_hello(struct hr_frame *f)
{
    f->u.hello.nonce = hr__rng_u64(&rng);
    if (below(2) == 0) {
        f->u.hello.role = HR_FRAME_WORKER;
        f->count = (uint32_t)(1 + below(64));
        return;
    }
    f->u.hello.role = HR_FRAME_CLIENT;
    f->count = (uint32_t)below(HR_FRAME_KINDS_MAX + 1);
    f->position = below(HR_FRAME_POSITION_MAX);
    f->generation = hr__rng_u32(&rng);
    f->job = hr__rng_u64(&rng);
    f->u.hello.base = below(HR_FRAME_POSITION_MAX);
    f->u.hello.membership = hr__rng_u32(&rng);
    f->u.hello.world = (uint32_t)(1 + below(HR_FRAME_WORLD_MAX));
    f->u.hello.rank = (uint32_t)below(f->u.hello.world);
    f->u.hello.weight = (uint32_t)(1 + below(HR_FRAME_WEIGHT_MAX));
}

static void random_frame(struct hr_frame *f, enum hr_frame_type type)
{
    memset(f, 0, sizeof *f);
    f->type = type;
    if (type == HR_FRAME_HELLO) {
        random_hello(f);
        return;
    }
    if (type != HR_FRAME_ERROR && type != HR_FRAME_GOODBYE && type < HR_FRAME_SEGMENT)
        f->generation = hr__rng_u32(&rng);
    if (type == HR_FRAME_WELCOME || type == HR_FRAME_PROGRESS || type == HR_FRAME_ACK ||
        type == HR_FRAME_CREDIT || type == HR_FRAME_RELEASE || type == HR_FRAME_RECEIVED)
        f->position = below(HR_FRAME_POSITION_MAX);
    if (type == HR_FRAME_PROGRESS)
        f->count = hr__rng_u32(&rng);
    if (type == HR_FRAME_WELCOME) {
        f->job = hr__rng_u64(&rng);
        f->u.welcome.nonce = hr__rng_u64(&rng);
        f->u.welcome.committed = hr__rng_u64(&rng);
        f->u.welcome.window = below(HR_FRAME_POSITION_MAX);
    }
    if (type == HR_FRAME_LEASE || type == HR_FRAME_BIND || type == HR_FRAME_FINISHED) {
        f->job = hr__rng_u64(&rng);
        f->u.lease.rank = (uint32_t)below(HR_FRAME_WORLD_MAX);
        f->u.lease.ttl_ms = type == HR_FRAME_LEASE ? (uint32_t)(1 + below(100000)) : 0;
        f->u.lease.work_us = type == HR_FRAME_FINISHED ? (uint32_t)below(100000) : 0;
        random_ranges(f, f->u.lease.ranges);
    }
    if (type == HR_FRAME_SEGMENT) {
        f->count = (uint32_t)below(64);
        f->u.segment.bytes = hr__rng_u64(&rng);
    }
    if (type == HR_FRAME_TRAFFIC) {
        f->count = (uint32_t)below(HR_FRAME_KINDS_MAX + 1);
        f->position = below(1000);
        f->u.traffic.made = hr__rng_u64(&rng);
        f->u.traffic.sent = hr__rng_u64(&rng);
    }
    if (type == HR_FRAME_CREDIT)
        f->u.credit.total = hr__rng_u64(&rng);
    if (type == HR_FRAME_COMMIT || type == HR_FRAME_COMMITTED)
        f->u.commit.id = 1 + below(1000);
    if (type == HR_FRAME_COMMIT)
        random_ranges(f, f->u.commit.ranges);
    if (type == HR_FRAME_ERROR) {
        f->u.error.code = HR_ERR_STATE;
        memset(f->u.error.text, 'x', 1 + below(HR_FRAME_TEXT_MAX));
    }
}

static const enum hr_frame_type types[] = {
#define TYPE(name, value) HR_FRAME_##name,
    HR_FRAMES(TYPE)
#undef TYPE
};
#define TYPES (sizeof types / sizeof types[0])

TEST(every_control_message_reads_back_as_it_was_written)
{
    struct hr_frame frame, read;
    struct hr_error error = {0};
    char bytes[ROOM];

    start();
    for (int trial = 0; trial < 2000; trial++) {
        enum hr_frame_type type = types[below(TYPES)];
        struct hr_frame_head head;
        size_t size;

        if (hr__frame_has_body(type))
            continue;
        random_frame(&frame, type);
        size = hr__frame_write(&frame, bytes);
        CHECK_OK(hr__frame_read_head(bytes, &head, &error));
        CHECK_EQ_INT(size, HR_FRAME_HEAD + head.bytes);
        CHECK_OK(reread(bytes, &read, &error));
        CHECK_BYTES(&frame, &read, sizeof frame);
    }
}

TEST(a_body_has_any_bytes_and_its_hash)
{
    const struct hr_frame frames[] = {
        {HR_FRAME_DATA,       .position = 7, .count = 3, .generation = 2},
        {HR_FRAME_JOB,        .position = 7, .count = 0, .generation = 0},
        {HR_FRAME_WORKERS,    .position = 0, .count = 2, .generation = 0},
        {HR_FRAME_AUTH,       .position = 0, .count = 0, .generation = 0},
        {HR_FRAME_SHARED,     .position = 7, .count = 3, .generation = 2},
        {HR_FRAME_COMPRESSED, .position = 7, .count = 3, .generation = 2},
    };
    const uint32_t most[] = {HR_FRAME_DATA_MAX,  HR_FRAME_JOB_MAX,  HR_FRAME_LIST_MAX,
                             HR_FRAME_TOKEN_MAX, HR_FRAME_DATA_MAX, HR_FRAME_DATA_MAX};

    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
        uint32_t more = most[i] + 1;
        struct hr_frame_head head;
        struct hr_error error = {0};
        struct hr_frame read;
        char bytes[ROOM];
        uint64_t sum;

        CHECK(hr__frame_has_body(frames[i].type));
        sum = hr__frame_sum(hr__frame_write_body(&frames[i], 5, bytes), "hello", 5);
        memcpy(bytes + HR_FRAME_HEAD, "hello", 5);
        memcpy(bytes + HR_FRAME_HEAD + 5, &sum, HR_FRAME_TAIL);
        CHECK_OK(hr__frame_read_head(bytes, &head, &error));
        CHECK_EQ_INT(head.bytes, 5);
        CHECK_OK(reread(bytes, &read, &error));
        CHECK_BYTES(&frames[i], &read, sizeof read);
        bytes[HR_FRAME_HEAD + 4] ^= 1;
        CHECK_ERR(HR_ERR_FORMAT, reread(bytes, &read, &error));
        CHECK_HAS(error.message, hr__frame_name(frames[i].type));
        CHECK_HAS(error.message, "was damaged");
        memcpy(bytes + 4, &more, 4);
        CHECK_ERR(HR_ERR_LIMIT, hr__frame_read_head(bytes, &head, &error));
    }
    CHECK(!hr__frame_has_body(HR_FRAME_HELLO));
}

TEST(the_bytes_are_those_of_the_page)
{
    static const unsigned char credit[] = {
        'H',  'R',  7,    9,    8,    0,    0,    0,    42, 0, 0, 0, 0, 0, 0, 0,
        0,    0,    0,    0,    5,    0,    0,    0, /* the hash follows */
        0x9a, 0x44, 0x8d, 0xbf, 0xfa, 0x9d, 0xb5, 0x82, 0,  0, 1, 0, 0, 0, 0, 0};
    static const unsigned char hello[] = {
        'H',  'R',  7,    1,    48,   0,    0,    0,    /* header */
        96,   0,    0,    0,    0,    0,    0,    0,    /* cursor */
        7,    0,    0,    0,    3,    0,    0,    0,    /* count, generation */
        0,    0,    0,    0,    0,    0,    0,    0,    /* hash */
        0x11, 0,    0,    0,    0,    0,    0,    0,    /* job */
        0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01, /* nonce */
        64,   0,    0,    0,    0,    0,    0,    0,    /* base */
        2,    0,    0,    0,    4,    0,    0,    0,    /* membership, world */
        1,    0,    0,    0,    1,    0,    0,    0,    /* rank, role */
        5,    0,    0,    0,    0,    0,    0,    0};   /* weight */
    struct hr_frame frame = {HR_FRAME_CREDIT, .position = 42, .generation = 5};
    char bytes[ROOM];

    frame.u.credit.total = 65536;
    CHECK_EQ_INT(hr__frame_write(&frame, bytes), sizeof credit);
    CHECK_BYTES(bytes, credit, sizeof credit);
    frame = (struct hr_frame){HR_FRAME_HELLO, .position = 96, .count = 7, .generation = 3,
                              .job = 17};
    frame.u.hello.nonce = 0x0123456789abcdef;
    frame.u.hello.base = 64;
    frame.u.hello.membership = 2;
    frame.u.hello.world = 4;
    frame.u.hello.rank = 1;
    frame.u.hello.role = HR_FRAME_CLIENT;
    frame.u.hello.weight = 5;
    CHECK_EQ_INT(hr__frame_write(&frame, bytes), sizeof hello);
    memset(bytes + 24, 0, 8); /* the other frame shows the hash */
    CHECK_BYTES(bytes, hello, sizeof hello);
}

/* Sets a number of a valid frame, reseals it and expects the error. */
static void refused(enum hr_frame_type type, size_t at, uint64_t value, size_t size,
                    enum hr_err code, const char *part)
{
    struct hr_error error = {0};
    struct hr_frame frame, read;
    char bytes[ROOM];

    do
        random_frame(&frame, type);
    while (type == HR_FRAME_HELLO && frame.u.hello.role == HR_FRAME_WORKER);
    hr__frame_write(&frame, bytes);
    memcpy(bytes + at, &value, size);
    uint32_t payload;
    memcpy(&payload, bytes + 4, 4);
    if (payload <= HR_FRAME_CONTROL_MAX)
        reseal(bytes, payload);
    CHECK_ERR(code, reread(bytes, &read, &error));
    CHECK_HAS(error.message, part);
}

TEST(bytes_that_lie_are_refused_with_a_reason)
{
    const size_t payload = HR_FRAME_HEAD;
    const uint64_t far = HR_FRAME_POSITION_MAX + 1;

    start();
    refused(HR_FRAME_ACK, 0, 'X', 1, HR_ERR_FORMAT, "check the port");
    refused(HR_FRAME_ACK, 2, 9, 1, HR_ERR_UNSUPPORTED, "frames of version 9");
    refused(HR_FRAME_ACK, 3, 0, 1, HR_ERR_FORMAT, "unknown type 0");
    refused(HR_FRAME_ACK, 3, 200, 1, HR_ERR_FORMAT, "unknown type 200");
    refused(HR_FRAME_ACK, 4, 1, 4, HR_ERR_LIMIT, "announces 1 bytes; at most 0");
    refused(HR_FRAME_ACK, 8, far, 8, HR_ERR_FORMAT, "number in its header");
    refused(HR_FRAME_ACK, 16, 1, 4, HR_ERR_FORMAT, "number in its header");
    refused(HR_FRAME_LEASE, 8, 1, 8, HR_ERR_FORMAT, "number in its header");
    refused(HR_FRAME_LEASE, 16, 65, 4, HR_ERR_FORMAT, "number in its header");
    refused(HR_FRAME_LEASE, 16, 0, 4, HR_ERR_LIMIT, "a LEASE frame announces");
    refused(HR_FRAME_CREDIT, 4, 7, 4, HR_ERR_FORMAT, "a CREDIT frame has a wrong length");
    refused(HR_FRAME_LEASE, payload + 16, far, 8, HR_ERR_FORMAT, "wrong payload");
    refused(HR_FRAME_LEASE, payload + 12, 0, 4, HR_ERR_FORMAT, "wrong payload");
    refused(HR_FRAME_BIND, payload + 24, 0, 8, HR_ERR_FORMAT, "wrong payload");
    refused(HR_FRAME_FINISHED, payload + 8, 1u << 30, 4, HR_ERR_FORMAT, "wrong payload");
    refused(HR_FRAME_COMMIT, payload, 0, 8, HR_ERR_FORMAT, "wrong payload");
    refused(HR_FRAME_COMMITTED, payload, 0, 8, HR_ERR_FORMAT, "wrong payload");
    refused(HR_FRAME_HELLO, payload + 32, 1u << 21, 4, HR_ERR_FORMAT, "wrong payload");
    refused(HR_FRAME_HELLO, 16, 8, 4, HR_ERR_FORMAT, "wrong payload");
    refused(HR_FRAME_TRAFFIC, 16, 8, 4, HR_ERR_FORMAT, "wrong payload");
    refused(HR_FRAME_HELLO, payload + 36, 3, 4, HR_ERR_FORMAT, "wrong payload");
    refused(HR_FRAME_HELLO, payload + 40, 0, 4, HR_ERR_FORMAT, "wrong payload");
    refused(HR_FRAME_HELLO, payload + 40, 101, 4, HR_ERR_FORMAT, "wrong payload");
    refused(HR_FRAME_HELLO, payload + 44, 1, 4, HR_ERR_FORMAT, "wrong payload");
    refused(HR_FRAME_WELCOME, payload + 24, far, 8, HR_ERR_FORMAT, "wrong payload");
    refused(HR_FRAME_ERROR, payload, 5, 4, HR_ERR_FORMAT, "wrong payload");
    refused(HR_FRAME_ERROR, payload, (uint32_t)-99, 4, HR_ERR_FORMAT, "wrong payload");
    refused(HR_FRAME_ERROR, payload + 4, 0, 1, HR_ERR_FORMAT, "wrong");
}

/* Reads an ERROR frame with this text of a peer. */
static void check_text(const char *sent, const char *read_as)
{
    struct hr_frame frame = {.type = HR_FRAME_ERROR, .u.error.code = HR_ERR_STATE}, read;
    struct hr_frame_head head;
    char bytes[ROOM];

    memcpy(frame.u.error.text, sent, strlen(sent) + 1);
    (void)hr__frame_write(&frame, bytes);
    CHECK_OK(hr__frame_read_head(bytes, &head, NULL));
    CHECK_OK(hr__frame_read(bytes, &head, bytes + HR_FRAME_HEAD, &read, NULL));
    CHECK_EQ_STR(read.u.error.text, read_as);
}

TEST(texts_of_peers_cannot_rewrite_a_terminal)
{
    check_text("rank 0 is held; \xc3\xa9\xe2\x82\xac",
               "rank 0 is held; \xc3\xa9\xe2\x82\xac");
    check_text("\x1b[2J\r\nok\x7f\t", "?[2J??ok??");
    check_text("\xc2\x9b"
               "31m",
               "??31m"); /* the control character CSI */
    check_text("cut \xe2\x82", "cut ??");
    check_text("\xff\xc0\x80", "???");
}

TEST(any_changed_bit_of_a_frame_is_found)
{
    struct hr_frame frame, read;
    char bytes[ROOM];

    start();
    for (size_t i = 0; i < TYPES; i++) {
        size_t size;

        if (hr__frame_has_body(types[i]))
            continue;
        random_frame(&frame, types[i]);
        size = hr__frame_write(&frame, bytes);
        for (int trial = 0; trial < 200; trial++) {
            size_t bit = below(8 * size);

            bytes[bit / 8] ^= (char)(1 << bit % 8);
            CHECK(reread(bytes, &read, NULL) != HR_OK);
            bytes[bit / 8] ^= (char)(1 << bit % 8);
        }
        CHECK_OK(reread(bytes, &read, NULL));
    }
}

TEST(names_are_those_of_the_types)
{
    CHECK_EQ_STR(hr__frame_name(HR_FRAME_HELLO), "HELLO");
    CHECK_EQ_STR(hr__frame_name(HR_FRAME_GOODBYE), "GOODBYE");
    CHECK(hr__frame_name((enum hr_frame_type)0) == NULL);
    CHECK_EQ_STR(hr__frame_name(HR_FRAME_WORKERS), "WORKERS");
    CHECK_EQ_STR(hr__frame_name(HR_FRAME_RELEASE), "RELEASE");
    CHECK_EQ_STR(hr__frame_name(HR_FRAME_TRAFFIC), "TRAFFIC");
    CHECK_EQ_STR(hr__frame_name(HR_FRAME_CONSUMER), "CONSUMER");
    CHECK_EQ_STR(hr__frame_name(HR_FRAME_RECEIVED), "RECEIVED");
    CHECK(hr__frame_name((enum hr_frame_type)24) == NULL);
}
