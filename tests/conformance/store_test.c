/*
 * tests/conformance/store_test.c - the contract of store/store.h, for every store.
 *
 * A store is tested through a `place`, which can create, change and remove its objects.
 * To test a new one, add its place to the table; no test names a store.
 */
#include "core/alloc.h"
#include "core/clock.h"
#include "core/file.h"
#include "core/thread.h"
#include "store/reader.h"
#include "store/store.h"
#include "store/store_memory.h"
#include "store/web.h"
#include "tests/support/check.h"
#include "tests/support/server.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    NONE = 0,
    NO_LISTS = 1,
    NOT_KEPT = 2, /* an open object that is replaced is an error to read */
};

struct place {
    const char *name;
    const char *(*root)(void); /* a URI without a trailing slash */
    void (*put)(const char *uri, const void *data, size_t bytes);
    void (*remove)(const char *uri);
    unsigned lacks;
};

/* ---- places ---- */

static const char *file_root(void)
{
    static char root[512];

    snprintf(root, sizeof root, "%s", check_temp_dir());
    return root;
}

static const char *file_uri_root(void)
{
    static char root[600];

    snprintf(root, sizeof root, "file://%s", check_temp_dir());
    return root;
}

static const char *path_of(const char *uri)
{
    return strncmp(uri, "file://", 7) == 0 ? uri + 7 : uri;
}

static void file_put(const char *uri, const void *data, size_t bytes)
{
    char path[1024];

    snprintf(path, sizeof path, "%s", path_of(uri));
    for (char *slash = path + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        (void)mkdir(path, 0755);
        *slash = '/';
    }
    CHECK_OK(hr__file_replace(path, data, bytes, NULL));
}

static void file_remove(const char *uri)
{
    CHECK_EQ_INT(unlink(path_of(uri)), 0);
}

static const char *memory_root(void)
{
    return "mem://conformance";
}

static void memory_put(const char *uri, const void *data, size_t bytes)
{
    CHECK_OK(hr__memory_put(uri, data, bytes, NULL));
}

static void memory_remove(const char *uri)
{
    CHECK(hr__memory_remove(uri));
}

#ifdef HR_HTTP
static const char *http_root(void)
{
    static char root[600];

    if (root[0] == '\0')
        snprintf(root, sizeof root, "%s/http", http_server_start(check_temp_dir()));
    return root;
}

/* The file that the server shows. */
static const char *http_path(const char *uri)
{
    static char path[1024];

    snprintf(path, sizeof path, "%s/http%s", check_temp_dir(), uri + strlen(http_root()));
    return path;
}

static void http_put(const char *uri, const void *data, size_t bytes)
{
    file_put(http_path(uri), data, bytes);
}

static void http_remove(const char *uri)
{
    file_remove(http_path(uri));
}
#endif

static const char *gluster_root(void)
{
    static char root[600];

    if (root[0] == '\0')
        snprintf(root, sizeof root, "%s/conformance", gluster_start(check_temp_dir()));
    return root;
}

/* What stores keep open between calls. */
static void close_connections(void)
{
#ifdef HR_HTTP
    hr__web_stop();
#endif
}

static const struct place all[] = {
    {"path",    file_root,     file_put,    file_remove,    NONE               },
    {"file",    file_uri_root, file_put,    file_remove,    NONE               },
    {"memory",  memory_root,   memory_put,  memory_remove,  NONE               },
#ifdef HR_HTTP
    {"http",    http_root,     http_put,    http_remove,    NO_LISTS | NOT_KEPT},
#endif
    {"gluster", gluster_root,  gluster_put, gluster_remove, NONE               },
};

/* Those to test: GlusterFS, which has to be installed, is alone in a run of its own, with
 * HEADRACE_TEST_STORE=gluster. */
static const struct place *places = all;
#define PLACES place_count()

static size_t place_count(void)
{
    const char *one = getenv("HEADRACE_TEST_STORE");
    size_t rest = sizeof all / sizeof all[0] - 1;

    if (one == NULL)
        return rest;
    places = &all[rest];
    CHECK_EQ_STR(one, places->name);
    return 1;
}

/* ---- objects ---- */

static const char *in(const struct place *place, const char *name)
{
    static char uris[8][1024];
    static int turn;
    char *uri = uris[turn++ % 8];

    snprintf(uri, sizeof uris[0], "%s/%s", place->root(), name);
    return uri;
}

static unsigned char byte_of(size_t at)
{
    return (unsigned char)(at * 31 + (at >> 8) * 7 + (at >> 16));
}

static unsigned char *bytes_of(size_t bytes)
{
    unsigned char *data = malloc(bytes + 1);

    CHECK(data != NULL);
    for (size_t i = 0; i < bytes; i++)
        data[i] = byte_of(i);
    return data;
}

static void put_bytes(const struct place *place, const char *name, size_t bytes)
{
    const char *uri = in(place, name); /* first: where there is no server, it skips */
    unsigned char *data = bytes_of(bytes);

    place->put(uri, data, bytes);
    free(data);
}

static bool is_right(const void *data, uint64_t offset, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (((const unsigned char *)data)[i] != byte_of((size_t)offset + i))
            return false;
    return true;
}

static struct hr_object open_ok(const char *uri)
{
    struct hr_object object;
    struct hr_error error = {0};
    enum hr_err err = hr__store_open(uri, &object, &error);

    if (err != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    return object;
}

static struct hr_hash128 identity_of(const char *uri)
{
    struct hr_object object = open_ok(uri);
    struct hr_hash128 identity = object.identity;

    hr__store_close(&object);
    return identity;
}

static struct hr_range range_of(const char *uri, uint64_t offset, uint64_t bytes)
{
    struct hr_range range = {.offset = offset, .bytes = bytes};

    snprintf(range.uri, sizeof range.uri, "%s", uri);
    return range;
}

/* ---- open, ranges ---- */

TEST(an_object_has_its_size_and_ranges_are_its_bytes)
{
    enum { SIZE = 300001 };
    static const struct {
        uint64_t offset;
        size_t bytes;
    } ranges[] = {
        {0,        SIZE    },
        {0,        1       },
        {0,        0       },
        {SIZE - 1, 1       },
        {SIZE,     0       },
        {4095,     8194    },
        {7,        SIZE - 7},
    };

    for (size_t p = 0; p < PLACES; p++) {
        const struct place *place = &places[p];
        unsigned char *data = malloc(SIZE);
        struct hr_error error = {0};
        struct hr_object object;
        bool waited;

        put_bytes(place, "ranges/object", SIZE);
        object = open_ok(in(place, "ranges/object"));
        CHECK_EQ_INT(object.bytes, SIZE);
        for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
            CHECK_OK(hr__store_read(&object, ranges[i].offset, data, ranges[i].bytes,
                                    NULL, &waited, &error));
            CHECK(is_right(data, ranges[i].offset, ranges[i].bytes));
        }
        hr__store_close(&object);
        place->remove(in(place, "ranges/object"));
        free(data);
    }
}

TEST(a_range_beyond_the_end_is_refused_by_name)
{
    static const struct {
        uint64_t offset;
        size_t bytes;
    } ranges[] = {
        {0,          1001    },
        {1000,       1       },
        {1001,       0       },
        {UINT64_MAX, 1       },
        {1,          SIZE_MAX},
    };

    for (size_t p = 0; p < PLACES; p++) {
        const struct place *place = &places[p];
        struct hr_error error = {0};
        struct hr_object object;
        char data[8];
        bool waited;

        put_bytes(place, "beyond", 1000);
        object = open_ok(in(place, "beyond"));
        for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
            CHECK_ERR(HR_ERR_RANGE,
                      hr__store_read(&object, ranges[i].offset, data, ranges[i].bytes,
                                     NULL, &waited, &error));
            CHECK_HAS(error.message, in(place, "beyond"));
            CHECK_HAS(error.message, "1000 bytes");
        }
        hr__store_close(&object);
        place->remove(in(place, "beyond"));
    }
}

TEST(an_empty_object_is_an_object)
{
    for (size_t p = 0; p < PLACES; p++) {
        const struct place *place = &places[p];
        struct hr_store_map map;
        struct hr_object object;
        size_t bytes = 7;
        char *data;
        bool waited;

        put_bytes(place, "empty", 0);
        object = open_ok(in(place, "empty"));
        CHECK_EQ_INT(object.bytes, 0);
        CHECK_OK(hr__store_read(&object, 0, NULL, 0, NULL, &waited, NULL));
        hr__store_close(&object);
        CHECK_OK(hr__store_load(in(place, "empty"), 100, &data, &bytes, NULL));
        CHECK_EQ_INT(bytes, 0);
        hr__free(data);
        CHECK_OK(hr__store_map(in(place, "empty"), &map, NULL));
        CHECK(map.bytes == 0);
        hr__store_unmap(&map);
        place->remove(in(place, "empty"));
    }
}

TEST(whole_objects_are_loaded_and_mapped)
{
    for (size_t p = 0; p < PLACES; p++) {
        const struct place *place = &places[p];
        struct hr_error error = {0};
        struct hr_store_map map;
        size_t bytes;
        char *data;

        put_bytes(place, "whole", 77777);
        CHECK_OK(hr__store_load(in(place, "whole"), 77777, &data, &bytes, &error));
        CHECK(bytes == 77777 && is_right(data, 0, bytes));
        hr__free(data);
        CHECK_ERR(HR_ERR_LIMIT,
                  hr__store_load(in(place, "whole"), 77776, &data, &bytes, &error));
        CHECK_HAS(error.message, "whole");
        CHECK_OK(hr__store_map(in(place, "whole"), &map, &error));
        place->remove(in(place, "whole")); /* a mapping stays valid */
        CHECK(map.bytes == 77777 && is_right(map.data, 0, map.bytes));
        hr__store_unmap(&map);
    }
}

TEST(missing_objects_and_unknown_schemes_are_refused_by_name)
{
    static const char *const unknown[] = {"s4://bucket/x", "a+b://", "1://y"};
    struct hr_error error = {0};
    struct hr_object object;

    for (size_t p = 0; p < PLACES; p++) {
        const char *uri = in(&places[p], "there/is/none");

        CHECK_ERR(HR_ERR_NOT_FOUND, hr__store_open(uri, &object, &error));
        CHECK_HAS(error.message, uri);
        CHECK_EQ_STR(error.file, uri);
    }
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        CHECK_ERR(HR_ERR_ARGUMENT, hr__store_open(unknown[i], &object, &error));
        CHECK_HAS(error.message, unknown[i]);
        CHECK_HAS(error.message, "file, mem");
    }
    CHECK_ERR(HR_ERR_ARGUMENT, hr__store_open("file://relative", &object, &error));
    CHECK_HAS(error.message, "slash");
    CHECK_ERR(HR_ERR_NOT_FOUND, hr__store_open("no:/scheme", &object, &error));
}

/* ---- identity ---- */

TEST(names_that_no_volume_has_are_refused)
{
    static const struct {
        const char *uri, *message;
    } wrong[] = {
        {"gluster://",                "names no host and volume"},
        {"gluster://host",            "names no host and volume"},
        {"gluster:///volume/a",       "names no host and volume"},
        {"gluster://host/",           "names no volume"         },
        {"gluster://host//a",         "names no volume"         },
        {"gluster://me@host/v/a",     "has more than a host"    },
        {"gluster://one,two/v/a",     "has more than a host"    },
        {"gluster://host:/v/a",       "has a port that is none" },
        {"gluster://host:0/v/a",      "has a port that is none" },
        {"gluster://host:65536/v/a",  "has a port that is none" },
        {"gluster://host:24007x/v/a", "has a port that is none" },
        {"gluster://:24007/v/a",      "has a port that is none" },
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct hr_error error = {0};
        struct hr_object object;

        CHECK_ERR(HR_ERR_ARGUMENT, hr__store_open(wrong[i].uri, &object, &error));
        CHECK_HAS(error.message, wrong[i].message);
        CHECK_HAS(error.message, wrong[i].uri);
    }
}

TEST(an_identity_stays_while_contents_do_and_changes_with_them)
{
    for (size_t p = 0; p < PLACES; p++) {
        const struct place *place = &places[p];
        const char *uri = in(place, "identity");
        struct hr_hash128 before, after;

        place->put(uri, "abc", 3);
        before = identity_of(uri);
        CHECK(hr__hash_equal(before, identity_of(uri)));
        place->put(uri, "abd", 3); /* of the same size */
        after = identity_of(uri);
        CHECK(!hr__hash_equal(before, after));
        place->put(uri, "abcd", 4);
        CHECK(!hr__hash_equal(after, identity_of(uri)));
        place->remove(uri);
        place->put(uri, "abc", 3);
        CHECK(!hr__hash_equal(after, identity_of(uri)));
        place->remove(uri);
    }
}

TEST(a_stamp_changes_with_a_file_and_is_unknown_without_one)
{
    for (size_t p = 0; p < PLACES; p++) {
        const char *uri = in(&places[p], "stamp");
        bool file = uri[0] == '/' || strncmp(uri, "file://", 7) == 0;
        uint64_t before;

        places[p].put(uri, "abc", 3);
        before = hr__store_stamp(uri, UINT64_MAX);
        CHECK((before != 0) == file && before != HR_STAMP_UNKNOWN);
        CHECK(hr__store_stamp(uri, UINT64_MAX) == before);
        /* It has changed since 1970. */
        CHECK(hr__store_stamp(uri, 0) == (file ? HR_STAMP_UNKNOWN : 0));
        places[p].put(uri, "abcd", 4);
        CHECK((hr__store_stamp(uri, UINT64_MAX) != before) == file);
        places[p].remove(uri);
        CHECK(hr__store_stamp(uri, UINT64_MAX) == (file ? HR_STAMP_UNKNOWN : 0));
    }
    CHECK(hr__store_stamp("nowhere://x", UINT64_MAX) == HR_STAMP_UNKNOWN);
}

TEST(a_replaced_object_keeps_its_bytes_while_open_or_is_refused_by_name)
{
    for (size_t p = 0; p < PLACES; p++) {
        const struct place *place = &places[p];
        struct hr_object object;
        struct hr_error error = {0};
        unsigned char data[5000];
        bool waited;

        put_bytes(place, "replaced", sizeof data);
        object = open_ok(in(place, "replaced"));
        place->put(in(place, "replaced"), "short", 5);
        if (place->lacks & NOT_KEPT) {
            CHECK_ERR(HR_ERR_FORMAT, hr__store_read(&object, 0, data, sizeof data, NULL,
                                                    &waited, &error));
            CHECK_HAS(error.message, in(place, "replaced"));
            CHECK_HAS(error.message, "changed");
        } else {
            CHECK_OK(hr__store_read(&object, 0, data, sizeof data, NULL, &waited, NULL));
            CHECK(is_right(data, 0, sizeof data));
        }
        hr__store_close(&object);
        place->remove(in(place, "replaced"));
    }
}

TEST(a_range_of_an_object_that_changed_since_is_refused_by_name)
{
    for (size_t p = 0; p < PLACES; p++) {
        const struct place *place = &places[p];
        const char *uri = in(place, "since");
        struct hr_range range;
        struct hr_error error = {0};
        struct hr_object object;
        size_t bytes;

        put_bytes(place, "since", 100);
        range = range_of(uri, 10, 50);
        range.identity = identity_of(uri);
        CHECK_OK(hr__range_open(&range, &object, &bytes, &error));
        CHECK_EQ_INT(bytes, 50);
        hr__store_close(&object);
        put_bytes(place, "since", 120);
        CHECK_ERR(HR_ERR_STATE, hr__range_open(&range, &object, &bytes, &error));
        CHECK_HAS(error.message, uri);
        place->remove(uri);
    }
}

/* ---- lists ---- */

struct found {
    char text[4096];
    int left;
};

static bool note_name(void *user, const char *name, size_t bytes, uint64_t size)
{
    struct found *found = user;
    size_t used = strlen(found->text);

    CHECK_EQ_INT(strlen(name), bytes);
    CHECK(size == HR_BYTES_UNKNOWN || size == 3 ||
          size == 3000); /* the sizes of the objects put */
    snprintf(found->text + used, sizeof found->text - used, "%s ", name);
    return --found->left > 0;
}

TEST(names_are_listed_in_the_order_of_their_bytes)
{
    static const char *const names[] = {"b", "a/z", "a.c", "a/b/c", "a-b/x", "A", "a0"};
    const size_t count = sizeof names / sizeof names[0];

    for (size_t p = 0; p < PLACES; p++) {
        const struct place *place = &places[p];
        struct found found = {.left = 100};
        char name[64];

        if (place->lacks & NO_LISTS)
            continue;
        for (size_t i = 0; i < count; i++) {
            snprintf(name, sizeof name, "list/%s", names[i]);
            place->put(in(place, name), "abc", 3);
        }
        place->put(in(place, "list-not"), "x", 1);
        CHECK_OK(hr__store_list(in(place, "list"), note_name, &found, NULL));
        CHECK_EQ_STR(found.text, "A a-b/x a.c a/b/c a/z a0 b ");
        found = (struct found){.left = 100};
        CHECK_OK(hr__store_list(in(place, "list/"), note_name, &found, NULL));
        CHECK_EQ_STR(found.text, "A a-b/x a.c a/b/c a/z a0 b ");
        found = (struct found){.left = 100};
        CHECK_OK(hr__store_list(in(place, "list/a"), note_name, &found, NULL));
        CHECK_EQ_STR(found.text, "b/c z ");
        found = (struct found){.left = 2};
        CHECK_OK(hr__store_list(in(place, "list"), note_name, &found, NULL));
        CHECK_EQ_STR(found.text, "A a-b/x ");
        for (size_t i = 0; i < count; i++) {
            snprintf(name, sizeof name, "list/%s", names[i]);
            place->remove(in(place, name));
        }
        place->remove(in(place, "list-not"));
    }
}

TEST(a_missing_folder_is_refused_by_name)
{
    for (size_t p = 0; p < PLACES; p++) {
        struct hr_error error = {0};
        struct found found = {.left = 100};
        enum hr_err err =
            hr__store_list(in(&places[p], "no/folder"), note_name, &found, &error);

        CHECK_ERR(places[p].lacks & NO_LISTS ? HR_ERR_UNSUPPORTED : HR_ERR_NOT_FOUND,
                  err);
        CHECK_HAS(error.message, "no/folder");
        CHECK_EQ_STR(found.text, "");
    }
}

/* ---- in flight ---- */

struct flight {
    struct hr_store_read read; /* first */
    struct hr_range range;
    struct hr_error error;
    unsigned char *data;
    atomic_int done; /* times */
    enum hr_err err;
};

static enum hr_err give_room(struct hr_store_read *read, void **ret_data)
{
    struct flight *flight = (struct flight *)read;

    flight->data = malloc(read->bytes + 1);
    *ret_data = flight->data;
    return flight->data != NULL ? HR_OK : HR_ERR_MEMORY;
}

static void arrived(struct hr_store_read *read, enum hr_err err)
{
    struct flight *flight = (struct flight *)read;

    flight->err = err;
    atomic_fetch_add(&flight->done, 1);
}

static struct hr_store_read *read_of(struct flight *flight)
{
    flight->read = (struct hr_store_read){.range = &flight->range,
                                          .error = &flight->error,
                                          .room = give_room,
                                          .done = arrived};
    return &flight->read;
}

static void begin(struct hr_channel *channel, struct flight *flight)
{
    hr__channel_submit(channel, read_of(flight));
}

static void await(struct flight *flight)
{
    for (int i = 0; i < 20000 && atomic_load(&flight->done) == 0; i++)
        usleep(1000);
    CHECK_EQ_INT(atomic_load(&flight->done), 1);
}

static const enum hr_channel_mode modes[] = {HR_CHANNEL_AUTO, HR_CHANNEL_THREADS};
#define MODES 2

static struct hr_channel *channel_of(const struct place *place, enum hr_channel_mode mode)
{
    struct hr_channel_options options = {.mode = mode, .depth = 8, .threads = 3};
    struct hr_channel *channel;
    struct hr_error error = {0};

    CHECK_OK(hr__channel_open(place->root(), &options, &channel, &error));
    CHECK(hr__channel_takes(channel, in(place, "x")));
    CHECK(hr__channel_mode(channel) != HR_CHANNEL_AUTO);
    return channel;
}

#define FLIGHTS 200

static void check_flights(const struct place *place, enum hr_channel_mode mode)
{
    struct hr_channel *channel = channel_of(place, mode);
    struct flight *flights = calloc(FLIGHTS, sizeof *flights);
    char name[64];

    CHECK(flights != NULL);
    for (size_t i = 0; i < FLIGHTS; i++) {
        snprintf(name, sizeof name, "flight/%zu", i % 20);
        flights[i].range =
            range_of(in(place, name), i % 13 * 7, i % 3 == 0 ? HR_RANGE_REST : i * 17);
        begin(channel, &flights[i]);
    }
    for (size_t i = 0; i < FLIGHTS; i++) {
        uint64_t offset = i % 13 * 7;
        size_t bytes = i % 3 == 0 ? 5000 + i % 20 * 999 - offset : i * 17;

        await(&flights[i]);
        CHECK_OK(flights[i].err);
        CHECK_EQ_INT(flights[i].read.bytes, bytes);
        CHECK(is_right(flights[i].data, offset, bytes));
        free(flights[i].data);
    }
    hr__channel_close(channel);
    free(flights);
}

TEST(many_reads_are_in_flight_at_once)
{
    char name[64];

    for (size_t p = 0; p < PLACES; p++) {
        for (size_t i = 0; i < 20; i++) {
            snprintf(name, sizeof name, "flight/%zu", i);
            put_bytes(&places[p], name, 5000 + i * 999);
        }
        for (int m = 0; m < MODES; m++)
            check_flights(&places[p], modes[m]);
        for (size_t i = 0; i < 20; i++) {
            snprintf(name, sizeof name, "flight/%zu", i);
            places[p].remove(in(&places[p], name));
        }
    }
}

TEST(errors_of_reads_in_flight_name_the_object)
{
    for (size_t p = 0; p < PLACES; p++) {
        const struct place *place = &places[p];

        put_bytes(place, "small", 100);
        for (int m = 0; m < MODES; m++) {
            struct hr_channel *channel = channel_of(place, modes[m]);
            struct flight missing = {
                .range = range_of(in(place, "missing"), 0, HR_RANGE_REST)};
            struct flight beyond = {.range = range_of(in(place, "small"), 90, 11)};
            struct flight other = {.range = range_of(in(place, "small"), 0, 10)};

            other.range.identity.low = 1;
            begin(channel, &missing);
            begin(channel, &beyond);
            begin(channel, &other);
            await(&missing);
            await(&beyond);
            await(&other);
            CHECK_ERR(HR_ERR_NOT_FOUND, missing.err);
            CHECK_HAS(missing.error.message, in(place, "missing"));
            CHECK_ERR(HR_ERR_RANGE, beyond.err);
            CHECK_HAS(beyond.error.message, in(place, "small"));
            CHECK_ERR(HR_ERR_STATE, other.err);
            CHECK_HAS(other.error.message, in(place, "small"));
            hr__channel_close(channel);
        }
        place->remove(in(place, "small"));
    }
}

/* Closes and cancels at random times: each read completes once, or never if cancelled. */
TEST(reads_in_flight_can_be_cancelled)
{
    uint64_t seed = hr__now_ns();

    printf("# seed %llu\n", (unsigned long long)seed);
    for (size_t p = 0; p < PLACES; p++) {
        put_bytes(&places[p], "cancel", 200000);
        for (int round = 0; round < 40; round++) {
            struct hr_channel *channel = channel_of(&places[p], modes[round % MODES]);
            struct flight *flights = calloc(32, sizeof *flights);

            CHECK(flights != NULL);
            for (int i = 0; i < 32; i++) {
                flights[i].range = range_of(in(&places[p], "cancel"), 0, HR_RANGE_REST);
                begin(channel, &flights[i]);
            }
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            usleep((unsigned)(seed >> 40) % 300);
            for (int i = 31; i >= 16; i--)
                if (hr__channel_withdraw(channel, &flights[i].read))
                    atomic_fetch_add(&flights[i].done, 100);
            hr__channel_close(channel);
            for (int i = 0; i < 32; i++) {
                int done = atomic_load(&flights[i].done);

                CHECK(done == 1 || (done == 100 && i >= 16));
                CHECK(done == 100 || flights[i].err == HR_OK ||
                      flights[i].err == HR_ERR_CANCELLED);
                CHECK(done == 100 || flights[i].err != HR_OK ||
                      is_right(flights[i].data, 0, 200000));
                free(flights[i].data);
            }
            free(flights);
        }
        places[p].remove(in(&places[p], "cancel"));
    }
}

/* ---- faults ---- */

TEST(a_read_that_fails_midway_is_resumed)
{
    for (size_t p = 0; p < PLACES; p++) {
        const struct place *place = &places[p];
        size_t size = (size_t)20 << 20; /* large enough to be read in pieces */
        unsigned char *data = malloc(size);
        struct hr_object object;
        struct hr_error error = {0};
        bool waited;

        put_bytes(place, "resume", size);
        for (uint64_t nth = 1; nth < 4; nth++) {
            object = open_ok(in(place, "resume"));
            memset(data, 0, size);
            hr__fault_arm(HR_FAULT_READ, nth);
            CHECK_OK(hr__store_read(&object, 0, data, size, NULL, &waited, &error));
            hr__fault_arm(0, 0);
            CHECK(is_right(data, 0, size));
            hr__store_close(&object);
        }
        place->remove(in(place, "resume"));
        free(data);
    }
}

TEST(a_cancelled_read_stops)
{
    for (size_t p = 0; p < PLACES; p++) {
        const struct place *place = &places[p];
        unsigned char data[10000];
        struct hr_object object;
        struct hr_error error = {0};
        atomic_bool stop = true;
        bool waited;

        put_bytes(place, "stop", sizeof data);
        object = open_ok(in(place, "stop"));
        hr__fault_arm(HR_FAULT_READ, 1); /* none of it is cached */
        CHECK_ERR(HR_ERR_CANCELLED,
                  hr__store_read(&object, 0, data, sizeof data, &stop, &waited, &error));
        hr__fault_arm(0, 0);
        CHECK_HAS(error.message, in(place, "stop"));
        hr__store_close(&object);
        place->remove(in(place, "stop"));
    }
}

/* Fetches, opens, reads and closes with the n-th call failing; true if there were fewer
 * calls. */
static bool fail_nth(const struct place *place, unsigned kinds, uint64_t nth)
{
    const char *uri = in(place, "faults/a");
    struct flight flight = {.range = range_of(uri, 10, HR_RANGE_REST)};
    struct found found = {.left = 100};
    struct hr_error error = {0};
    struct hr_object object;
    struct hr_store_map map;
    unsigned char data[3000];
    uint64_t calls;
    bool waited;

    hr__fault_arm(kinds, nth);
    if (hr__store_fetch(read_of(&flight), NULL) == HR_OK) {
        CHECK_EQ_INT(flight.read.bytes, 2990);
        CHECK(is_right(flight.data, 10, 2990));
    }
    free(flight.data);
    if (hr__store_open(uri, &object, &error) == HR_OK) {
        if (hr__store_read(&object, 5, data, 2990, NULL, &waited, &error) == HR_OK)
            CHECK(is_right(data, 5, 2990));
        hr__store_close(&object);
    }
    if (hr__store_map(uri, &map, &error) == HR_OK) {
        CHECK(is_right(map.data, 0, 3000));
        hr__store_unmap(&map);
    }
    if (hr__store_list(in(place, "faults"), note_name, &found, &error) == HR_OK)
        CHECK_EQ_STR(found.text, "a ");
    calls = hr__fault_calls();
    hr__fault_arm(0, 0);
    return calls < nth;
}

TEST(every_call_may_fail)
{
    static const unsigned kinds[] = {HR_FAULT_ALLOC, HR_FAULT_OPEN, HR_FAULT_READ};
    unsigned char *data = bytes_of(3000);

    for (size_t p = 0; p < PLACES; p++) {
        int before;

        places[p].put(in(&places[p], "faults/a"), data, 3000);
        close_connections();
        before = check_open_files();
        for (size_t kind = 0; kind < 3; kind++)
            for (uint64_t nth = 1; !fail_nth(&places[p], kinds[kind], nth); nth++)
                continue;
        close_connections();
        CHECK_EQ_INT(check_open_files(), before);
        places[p].remove(in(&places[p], "faults/a"));
    }
    free(data);
}

/* ---- through the reader ---- */

TEST(a_reader_takes_ranges_and_reads_them_ahead)
{
    for (size_t p = 0; p < PLACES; p++) {
        const struct place *place = &places[p];
        struct hr_pool *pool = hr_pool_create(0);
        struct hr_reader_options options = {.pool = pool, .depth = 8, .threads = 2};
        struct hr_reader_stats stats;
        struct hr_reader *reader;

        put_bytes(place, "taken", 100000);
        CHECK_OK(hr__reader_create(&options, &reader, NULL));
        for (uint64_t i = 0; i < 60; i++) {
            struct hr_range ahead = range_of(in(place, "taken"), 1000 * (i + 3), 900);
            struct hr_range now = range_of(in(place, "taken"), 1000 * i, 900);
            struct hr_buffer *buffer;

            hr__reader_ahead(reader, &ahead);
            CHECK_OK(hr__reader_take(reader, &now, &buffer, NULL));
            CHECK_EQ_INT(hr_buffer_bytes(buffer), 900);
            CHECK(is_right(hr_buffer_data(buffer), 1000 * i, 900));
            hr_buffer_unref(buffer);
        }
        hr__reader_stats(reader, &stats);
        CHECK_EQ_INT(stats.files, 60);
        CHECK_EQ_INT(stats.ahead_started, 60);
        hr__reader_destroy(reader);
        hr_pool_unref(pool);
        place->remove(in(place, "taken"));
    }
}

/* Ranges that were announced but never taken are dropped, so that read-ahead continues.
 */
TEST(a_reader_drops_ranges_that_are_never_taken)
{
    struct hr_pool *pool = hr_pool_create(0);
    struct hr_reader_options options = {.pool = pool, .depth = 4, .threads = 2};
    struct hr_reader_stats stats;
    struct hr_reader *reader;

    put_bytes(&places[0], "stale", 100000);
    CHECK_OK(hr__reader_create(&options, &reader, NULL));
    hr__reader_stats(reader, &stats);
    for (uint64_t i = 0; i < 20000 && stats.ahead_started <= 20; i++) {
        struct hr_range range = range_of(in(&places[0], "stale"), 4 * i, 50);

        hr__reader_ahead(reader, &range);
        usleep(100);
        hr__reader_stats(reader, &stats);
    }
    CHECK(stats.ahead_started > 20);
    CHECK(stats.ahead_files <= 4);
    hr__reader_destroy(reader);
    hr_pool_unref(pool);
    places[0].remove(in(&places[0], "stale"));
}
