/*
 * store/packed_test.c - compressed files read at any place, by several threads, whole,
 * damaged, cut short and absurd.
 */
#include <stdlib.h>
#include <zlib.h>
#ifdef HR_ZSTD
#include <zstd.h>
#endif

#include "core/alloc.h"
#include "core/rng.h"
#include "core/str.h"
#include "core/thread.h"
#include "store/packed.h"
#include "store/store_memory.h"
#include "tests/support/check.h"

#define STREAMS_MAX 8
static const char uri[] = "mem://packed_test";

static const enum hr_packing packings[] = {HR_PACKING_GZIP, HR_PACKING_ZLIB,
#ifdef HR_ZSTD
                                           HR_PACKING_ZSTD
#endif
};
#define PACKINGS (sizeof packings / sizeof packings[0])

static const struct hr_packed_limits roomy = {
    .bytes_max = (uint64_t)1 << 40, .ratio_max = 1000000, .cache_bytes = 0};

static void pack_deflate(enum hr_packing packing, int level, const char *data,
                         size_t bytes, struct hr_str *out)
{
    z_stream stream = {0};
    size_t room = compressBound((uLong)bytes) + 64;
    char *to = malloc(room);

    CHECK(to != NULL);
    CHECK(deflateInit2(&stream, level, Z_DEFLATED, packing == HR_PACKING_GZIP ? 31 : 15,
                       8, Z_DEFAULT_STRATEGY) == Z_OK);
    stream.next_in = (unsigned char *)(uintptr_t)data;
    stream.avail_in = (uInt)bytes;
    stream.next_out = (unsigned char *)to;
    stream.avail_out = (uInt)room;
    CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    hr__str_add_bytes(out, to, room - stream.avail_out);
    deflateEnd(&stream);
    free(to);
}

/* Appends one stream. */
static void pack(enum hr_packing packing, int level, const char *data, size_t bytes,
                 struct hr_str *out)
{
#ifdef HR_ZSTD
    if (packing == HR_PACKING_ZSTD) {
        size_t room = ZSTD_compressBound(bytes), got;
        ZSTD_CCtx *context = ZSTD_createCCtx();
        char *to = malloc(room);

        CHECK(to != NULL && context != NULL);
        ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
        ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
        got = ZSTD_compress2(context, to, room, data, bytes);
        CHECK(!ZSTD_isError(got));
        hr__str_add_bytes(out, to, got);
        ZSTD_freeCCtx(context);
        free(to);
        return;
    }
#endif
    pack_deflate(packing, level, data, bytes, out);
}

/* Streams that can be entered nowhere but at their beginnings. */
#ifdef HR_ZSTD
#define PACKED HR_PACKING_ZSTD
#else
#define PACKED HR_PACKING_GZIP
#endif

/* A file of several streams, and where they begin in what it unpacks to and in it. */
struct file {
    struct hr_rng rng;
    enum hr_packing packing;
    struct hr_str plain, packed;
    size_t streams, begins[STREAMS_MAX + 1], at[STREAMS_MAX + 1];
};

/* Words from a list that grows, and runs of bytes that no one can pack. */
static void draw(struct hr_rng *rng, size_t bytes, struct hr_str *out)
{
    size_t end = out->length + bytes;

    while (out->length < end) {
        uint64_t kind = hr__rng_below(rng, 64), word = hr__rng_u64(rng);
        size_t room = end - out->length, most = kind == 0 ? 4096 : kind < 8 ? 8 : 5;

        if (kind == 0)
            for (size_t i = 0; i < most && i < room; i++) {
                char byte = (char)hr__rng_u32(rng);

                hr__str_add_bytes(out, &byte, 1);
            }
        else if (kind < 8)
            hr__str_add_bytes(out, &word, most < room ? most : room);
        else
            hr__str_add_bytes(out, &"word word\nline, 12345678"[word % 16],
                              most < room ? most : room);
    }
}

static void
file_init(struct file *file, enum hr_packing packing, uint64_t record, size_t bytes)
{
    *file = (struct file){.packing = packing};
    hr__rng_init(&file->rng, check_seed(), (uint32_t)packing, record);
    hr__str_init(&file->plain);
    hr__str_init(&file->packed);
    file->streams = packing == HR_PACKING_ZLIB
                        ? 1
                        : 1 + (size_t)hr__rng_below(&file->rng, STREAMS_MAX);
    for (size_t i = 0; i < file->streams; i++) {
        size_t begin = file->plain.length;

        file->begins[i] = begin;
        file->at[i] = file->packed.length;
        draw(&file->rng, (size_t)hr__rng_below(&file->rng, bytes), &file->plain);
        pack(packing, 1 + (int)hr__rng_below(&file->rng, 9),
             hr__str_text(&file->plain) + begin, file->plain.length - begin,
             &file->packed);
    }
    file->begins[file->streams] = file->plain.length;
    file->at[file->streams] = file->packed.length;
}

static void file_finish(struct file *file)
{
    hr__str_finish(&file->plain);
    hr__str_finish(&file->packed);
}

struct opened {
    struct hr_packed_cache *cache;
    struct hr_packed *packed;
    struct hr_error error;
};

static enum hr_err try_open(struct opened *opened, const struct hr_packed_limits *limits,
                            enum hr_packing packing, const struct hr_str *bytes)
{
    *opened = (struct opened){0};
    CHECK_OK(hr__memory_put(uri, hr__str_text(bytes), bytes->length, NULL));
    CHECK_OK(hr__packed_cache_create(limits, &opened->cache, NULL));
    return hr__packed_open(opened->cache, uri, packing, &opened->packed, &opened->error);
}

static void open_file(struct opened *opened, const struct file *file)
{
    CHECK_OK(try_open(opened, &roomy, file->packing, &file->packed));
}

static void close_file(struct opened *opened)
{
    hr__packed_close(opened->packed);
    hr__packed_cache_destroy(opened->cache);
}

static enum hr_err read_at(struct opened *opened, uint64_t at, size_t bytes, char *to)
{
    bool waited;

    return hr__store_read(hr__packed_object(opened->packed), at, to, bytes, NULL, &waited,
                          &opened->error);
}

/* ---- whole ---- */

/* A range that is often short, and sometimes most of the file. */
static void
draw_range(struct hr_rng *rng, size_t length, size_t *ret_at, size_t *ret_bytes)
{
    size_t most;

    *ret_at = (size_t)hr__rng_below(rng, length + 1);
    most = length - *ret_at;
    if (hr__rng_below(rng, 8) > 0 && most > 2000)
        most = 2000;
    *ret_bytes = (size_t)hr__rng_below(rng, most + 1);
}

static void check_ranges(struct opened *opened, const struct file *file,
                         struct hr_rng *rng, int count)
{
    char *got = malloc(file->plain.length + 1);

    CHECK(got != NULL);
    for (int i = 0; i < count; i++) {
        size_t at, bytes;

        draw_range(rng, file->plain.length, &at, &bytes);
        CHECK_OK(read_at(opened, at, bytes, got));
        CHECK_BYTES(got, hr__str_text(&file->plain) + at, bytes);
    }
    free(got);
}

TEST(any_range_has_the_bytes_that_were_packed)
{
    static const size_t sizes[] = {1, 300, 100000, 1500000};

    for (size_t i = 0; i < PACKINGS; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            struct opened opened;
            struct file file;

            file_init(&file, packings[i], k, sizes[k]);
            open_file(&opened, &file);
            CHECK_EQ_INT(hr__packed_object(opened.packed)->bytes, file.plain.length);
            check_ranges(&opened, &file, &file.rng, 40);
            close_file(&opened);
            file_finish(&file);
        }
}

/* Blocks have 1 to 1.25 MiB: streams must not be as long by luck. */
TEST(streams_of_any_length_can_be_entered)
{
    struct file file;

    file_init(&file, HR_PACKING_GZIP, 77, 1);
    for (size_t bytes = 300000; bytes <= 3000000; bytes += 180000) {
        struct opened opened;

        hr__str_clear(&file.plain);
        hr__str_clear(&file.packed);
        for (size_t i = 0; i < 12; i++) {
            size_t begin = file.plain.length;

            while (file.plain.length < begin + bytes)
                hr__str_add(&file.plain, "some words and some words and a number: 7\n");
            pack(PACKED, 1, hr__str_text(&file.plain) + begin, file.plain.length - begin,
                 &file.packed);
        }
        file.packing = PACKED;
        open_file(&opened, &file);
        CHECK(hr__packed_entries(opened.packed) >=
              (bytes >= 1 << 20 ? 12 : file.plain.length / (3 << 20)));
        check_ranges(&opened, &file, &file.rng, 5);
        close_file(&opened);
    }
    file_finish(&file);
}

TEST(what_compresses_extremely_well_is_read_too)
{
    for (size_t i = 0; i < PACKINGS; i++) {
        struct file file = {.packing = packings[i]};
        struct opened opened;
        size_t bytes = (size_t)8 << 20;
        char *zeros = calloc(1, bytes);

        CHECK(zeros != NULL);
        hr__rng_init(&file.rng, check_seed(), 99, i);
        hr__str_init(&file.plain);
        hr__str_init(&file.packed);
        hr__str_add_bytes(&file.plain, zeros, bytes);
        pack(packings[i], 9, zeros, bytes, &file.packed);
        open_file(&opened, &file);
        check_ranges(&opened, &file, &file.rng, 10);
        close_file(&opened);
        file_finish(&file);
        free(zeros);
    }
}

struct worker {
    struct opened *opened;
    const struct file *file;
    uint64_t number;
};

static void *read_along(void *user)
{
    struct worker *worker = user;
    struct opened own = {.packed = worker->opened->packed};
    struct hr_rng rng;
    char buffer[8192];

    hr__rng_init(&rng, check_seed(), 1234, worker->number);
    for (size_t at = 0; at < worker->file->plain.length; at += sizeof buffer) {
        size_t bytes = worker->file->plain.length - at;

        bytes = bytes < sizeof buffer ? bytes : sizeof buffer;
        CHECK_OK(read_at(&own, at, bytes, buffer));
        CHECK_BYTES(buffer, hr__str_text(&worker->file->plain) + at, bytes);
    }
    check_ranges(&own, worker->file, &rng, 30);
    return NULL;
}

TEST(threads_read_one_file)
{
    for (size_t i = 0; i < PACKINGS; i++) {
        struct worker workers[4];
        pthread_t threads[4];
        struct opened opened;
        struct file file;

        file_init(&file, packings[i], 77, 1500000);
        open_file(&opened, &file);
        for (size_t k = 0; k < 4; k++) {
            workers[k] = (struct worker){&opened, &file, k};
            CHECK_OK(
                hr__thread_start(&threads[k], "reads", read_along, &workers[k], NULL));
        }
        for (size_t k = 0; k < 4; k++)
            pthread_join(threads[k], NULL);
        close_file(&opened);
        file_finish(&file);
    }
}

TEST(zeros_after_the_last_stream_are_padding)
{
    for (size_t i = 0; i < PACKINGS; i++) {
        struct opened opened;
        struct file file;
        char zeros[1000] = {0};

        file_init(&file, packings[i], 3, 5000);
        hr__str_add_bytes(&file.packed, zeros, sizeof zeros);
        open_file(&opened, &file);
        CHECK_EQ_INT(hr__packed_object(opened.packed)->bytes, file.plain.length);
        close_file(&opened);
        file_finish(&file);
    }
}

/* ---- damaged ---- */

/* Each stream is either read as it was packed, or refused with the place; returns how
 * many are refused. Ends of damaged streams are not known, so streams are looked for by
 * their bytes. */
static size_t
check_streams(struct opened *opened, const struct file *file, size_t damaged)
{
    size_t refused = 0;
    uint64_t shift = 0, all = hr__packed_object(opened->packed)->bytes;
    char *got = malloc(file->plain.length + 1);

    CHECK(got != NULL);
    for (size_t i = 0; i < file->streams; i++) {
        size_t begin = file->begins[i], bytes = file->begins[i + 1] - begin;
        enum hr_err code;

        /* streams of zstd and cut ones take another number of bytes when damaged */
        if (i == damaged + 1)
            shift = all - file->plain.length;
        if (bytes == 0)
            continue;
        if (begin + shift + bytes > all) {
            refused++;
            continue;
        }
        code = read_at(opened, begin + shift, bytes, got);
        if (code == HR_OK) {
            CHECK_BYTES(got, hr__str_text(&file->plain) + begin, bytes);
            continue;
        }
        CHECK_ERR(HR_ERR_FORMAT, code);
        CHECK_HAS(opened->error.message, uri);
        CHECK_HAS(opened->error.message, "of the file: ");
        refused++;
    }
    free(got);
    return refused;
}

TEST(damage_anywhere_costs_the_stream_that_it_is_in)
{
    for (size_t i = 0; i < PACKINGS; i++)
        for (uint64_t round = 0; round < 60; round++) {
            struct opened opened;
            struct file file;
            size_t at, stream = 0;
            enum hr_err code;

            if (packings[i] == HR_PACKING_ZLIB) /* only of records with checksums */
                break;
            file_init(&file, packings[i], 1000 + round, 20000);
            at = (size_t)hr__rng_below(&file.rng, file.packed.length);
            while (file.at[stream + 1] <= at)
                stream++;
            file.packed.text[at] ^= (char)(1 + hr__rng_below(&file.rng, 255));
            code = try_open(&opened, &roomy, file.packing, &file.packed);
            if (code == HR_ERR_LIMIT) /* the only frame asks for too much memory */
                CHECK_EQ_INT(file.streams, 1);
            else
                CHECK(code == HR_OK && check_streams(&opened, &file, stream) <= 1);
            close_file(&opened);
            file_finish(&file);
        }
}

#define FRAME_HEADER 14 /* of zstd, with the length of what follows */

/* What follows a damaged stream stays at its place, whichever byte is wrong, but for
 * those of zstd that say how long it is. (A last stream may look cut short.) */
static void check_place(enum hr_packing packing, uint64_t round)
{
    struct opened opened;
    struct file file;
    size_t stream, end, at, least = packing == HR_PACKING_ZSTD ? FRAME_HEADER : 0;

    file_init(&file, packing, 1500 + round, 5000);
    stream = (size_t)hr__rng_below(&file.rng, file.streams);
    end = file.at[stream + 1];
    at = end - 1 - round % 8; /* checksums and lengths */
    if (round >= 32)
        at = file.at[stream] + (size_t)hr__rng_below(&file.rng, end - file.at[stream]);
    if (stream < file.streams - 1 && file.begins[stream] < file.begins[stream + 1] &&
        at >= file.at[stream] + least) {
        file.packed.text[at] ^= (char)(1 + hr__rng_below(&file.rng, 255));
        open_file(&opened, &file);
        CHECK_EQ_INT(hr__packed_object(opened.packed)->bytes, file.plain.length);
        CHECK(check_streams(&opened, &file, stream) <= 1);
        close_file(&opened);
    }
    file_finish(&file);
}

TEST(a_damaged_stream_moves_nothing_that_follows)
{
    for (uint64_t round = 0; round < 60; round++) {
        check_place(HR_PACKING_GZIP, round);
        check_place(PACKED, 100 + round);
    }
}

#ifdef HR_ZSTD
TEST(a_frame_that_asks_for_much_memory_is_damaged_unless_all_do)
{
    static const char *const texts[] = {"the first", "the second", "the third"};

    for (unsigned large = 1; large < 8; large++) {
        struct opened opened;
        struct hr_str packed;
        enum hr_err code;
        char got[9];

        hr__str_init(&packed);
        for (size_t i = 0; i < 3; i++) {
            size_t at = packed.length;

            pack(HR_PACKING_ZSTD, 3, texts[i], strlen(texts[i]), &packed);
            if (large >> i & 1)
                memcpy(packed.text + at + 4, "\0\xff", 2); /* a window of 2^41 bytes */
        }
        code = try_open(&opened, &roomy, HR_PACKING_ZSTD, &packed);
        if (large == 7) {
            CHECK_ERR(HR_ERR_LIMIT, code);
            CHECK_HAS(opened.error.message, "mem://packed_test: its window is larger");
        } else {
            CHECK_OK(code);
            code = read_at(&opened, 0, sizeof got, got);
            CHECK_ERR(large & 1 ? HR_ERR_FORMAT : HR_OK, code);
            CHECK_HAS(opened.error.message, large & 1 ? "its window is larger" : "");
        }
        close_file(&opened);
        hr__str_finish(&packed);
    }
}
#endif

TEST(a_file_that_is_cut_short_has_all_that_came_before)
{
    for (size_t i = 0; i < PACKINGS; i++)
        for (uint64_t round = 0; round < 15; round++) {
            struct hr_object *object;
            struct opened opened;
            struct file file;
            size_t stream = 0, whole;
            char *got;

            file_init(&file, packings[i], 2000 + round, 300000);
            file.packed.length = (size_t)hr__rng_below(&file.rng, file.packed.length);
            while (file.at[stream + 1] <= file.packed.length)
                stream++;
            open_file(&opened, &file);
            object = hr__packed_object(opened.packed);
            if (file.packed.length == file.at[stream]) { /* between streams */
                CHECK_EQ_INT(object->bytes, file.begins[stream]);
                close_file(&opened);
                file_finish(&file);
                continue;
            }
            whole = (size_t)object->bytes;
            got = malloc(whole);
            CHECK(got != NULL && whole > file.begins[stream]);
            CHECK_ERR(HR_ERR_FORMAT, read_at(&opened, 0, whole, got));
            CHECK_HAS(opened.error.message, "ends inside of a");
            CHECK_ERR(HR_ERR_FORMAT, read_at(&opened, whole - 1, 1, got));
            while (read_at(&opened, 0, whole, got) != HR_OK) /* what was decoded */
                whole--;
            CHECK(whole >= file.begins[stream] && whole <= file.plain.length);
            CHECK_BYTES(got, hr__str_text(&file.plain), whole);
            free(got);
            close_file(&opened);
            file_finish(&file);
        }
}

TEST(what_follows_and_is_no_stream_is_damage)
{
    for (size_t i = 0; i < PACKINGS; i++) {
        struct opened opened;
        struct file file;
        char got[2];

        file_init(&file, packings[i], 5, 5000);
        hr__str_add(&file.packed, "some text");
        open_file(&opened, &file);
        CHECK(hr__packed_object(opened.packed)->bytes > file.plain.length);
        CHECK_ERR(HR_ERR_FORMAT, read_at(&opened, file.plain.length, 1, got));
        CHECK_HAS(opened.error.message, "stream begins here");
        check_ranges(&opened, &file, &file.rng, 5);
        close_file(&opened);
        file_finish(&file);
    }
}

/* ---- limits ---- */

TEST(a_file_that_unpacks_to_more_than_the_limits_is_refused)
{
    struct hr_packed_limits limits = {.bytes_max = 1000000, .ratio_max = 100};
    size_t bytes = (size_t)100 << 20;
    char *zeros = calloc(1, bytes);

    CHECK(zeros != NULL);
    for (size_t i = 0; i < PACKINGS; i++) {
        struct opened opened;
        struct hr_str packed;

        hr__str_init(&packed);
        pack(packings[i], 9, zeros, 1000001, &packed);
        CHECK_ERR(HR_ERR_LIMIT, try_open(&opened, &limits, packings[i], &packed));
        CHECK_HAS(opened.error.message, "unpacked_max");
        close_file(&opened);
        hr__str_clear(&packed);
        pack(packings[i], 9, zeros, bytes, &packed);
        limits.bytes_max = UINT64_MAX;
        CHECK_ERR(HR_ERR_LIMIT, try_open(&opened, &limits, packings[i], &packed));
        CHECK_HAS(opened.error.message, "ratio_max");
        close_file(&opened);
        limits.bytes_max = 1000000;
        hr__str_finish(&packed);
    }
    free(zeros);
}

TEST(a_file_that_changes_is_told_from_damage)
{
    struct opened opened;
    struct file file;
    char got[1];

    file_init(&file, HR_PACKING_GZIP, 9, 5000);
    while (file.plain.length < ((size_t)12 << 20)) { /* more than the cache keeps */
        size_t begin = file.plain.length;

        draw(&file.rng, 1000000, &file.plain);
        pack(HR_PACKING_GZIP, 1, hr__str_text(&file.plain) + begin, 1000000,
             &file.packed);
    }
    open_file(&opened, &file);
    CHECK_OK(hr__memory_put(uri, "other", 5, NULL));
    CHECK_ERR(HR_ERR_STATE, read_at(&opened, 0, 1, got));
    CHECK_HAS(opened.error.message, "changed");
    close_file(&opened);
    file_finish(&file);
}

TEST(names_and_beginnings_must_agree)
{
    struct hr_error error = {0};
    enum hr_packing packing;

    CHECK_OK(hr__packed_look(&roomy, "a.txt", "\x1f\x8b\x08\0", 4, &packing, &error));
    CHECK_EQ_INT(packing, HR_PACKING_GZIP);
    CHECK_OK(hr__packed_look(&roomy, "a.gz", "\x28\xb5\x2f\xfd", 4, &packing, &error));
    CHECK_EQ_INT(packing, HR_PACKING_ZSTD);
    CHECK_OK(hr__packed_look(&roomy, "a.txt", "", 0, &packing, &error));
    CHECK_EQ_INT(packing, HR_PACKING_NONE);
    CHECK_ERR(HR_ERR_FORMAT,
              hr__packed_look(&roomy, "a.gz", "text", 4, &packing, &error));
    CHECK_HAS(error.message,
              "a.gz: byte 0: its name says gzip, and it does not begin so");
    CHECK_ERR(HR_ERR_FORMAT, hr__packed_look(&roomy, "a.ZST", "", 0, &packing, &error));
    CHECK_HAS(error.message, "it is empty");
}

/* ---- failures of memory and reads ---- */

TEST(each_failure_is_reported_and_frees_all)
{
    struct file file;

    file_init(&file, HR_PACKING_GZIP, 11, 500000);
    CHECK_OK(hr__memory_put(uri, hr__str_text(&file.packed), file.packed.length, NULL));
    for (uint64_t nth = 1; nth < 150; nth++) {
        struct opened opened = {0};
        enum hr_err code;
        char got[100];

        hr__fault_arm(HR_FAULT_ALLOC | HR_FAULT_READ | HR_FAULT_OPEN, nth);
        code = hr__packed_cache_create(&roomy, &opened.cache, &opened.error);
        if (code == HR_OK)
            code = hr__packed_open(opened.cache, uri, file.packing, &opened.packed,
                                   &opened.error);
        if (code == HR_OK && file.plain.length > 100)
            code = read_at(&opened, file.plain.length - 100, 100, got);
        hr__fault_arm(0, 0);
        CHECK(code == HR_OK || code == HR_ERR_MEMORY || code == HR_ERR_IO);
        if (opened.packed != NULL)
            check_ranges(&opened, &file, &file.rng, 1);
        close_file(&opened);
    }
    file_finish(&file);
}
