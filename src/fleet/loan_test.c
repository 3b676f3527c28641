/*
 * fleet/loan_test.c - what a client makes of SHARED frames: tables that lie, memory that
 * could shrink, loans that outlive their connection. The processes are tested in
 * tests/e2e/service_test.py.
 */
#include "fleet/loan.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/engine.h"
#include "engine/engine_test_util.h"
#include "tests/support/check.h"

#define SEGMENT_BYTES ((size_t)2 << 20)

static int woken;

static void wake(void *user)
{
    (void)user;
    woken++;
}

/* A sealed file of `bytes` bytes. */
static int make_file(size_t bytes, int seals)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    CHECK(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
    CHECK(seals == 0 || fcntl(fd, F_ADD_SEALS, seals) == 0);
    return fd;
}

static struct hr_buffer *make_body(const struct hr_loan_head *head,
                                   const struct hr_loan_piece *pieces, size_t count)
{
    size_t table = sizeof *head + count * sizeof *pieces;
    struct hr_buffer *body = hr_buffer_create((table + 63) / 64 * 64 + 128);

    CHECK(body != NULL);
    memset(hr_buffer_data(body), 0, hr_buffer_bytes(body));
    memcpy(hr_buffer_data(body), head, sizeof *head);
    memcpy((char *)hr_buffer_data(body) + sizeof *head, pieces, count * sizeof *pieces);
    return body;
}

TEST(segments_that_lie_are_refused)
{
    struct hr_borrower borrower = {0};
    struct hr_error error = {0};

    CHECK_ERR(HR_ERR_FORMAT, hr__borrow_segment(&borrower, 0, 4096, -1, &error));
    CHECK_HAS(error.message, "without its descriptor");
    CHECK_ERR(HR_ERR_FORMAT,
              hr__borrow_segment(&borrower, 0, 4096, make_file(4096, 0), &error));
    CHECK_HAS(error.message, "can shrink");
    CHECK_ERR(HR_ERR_FORMAT, hr__borrow_segment(&borrower, 0, 4097,
                                                make_file(4096, F_SEAL_SHRINK), &error));
    CHECK_HAS(error.message, "shorter than announced");
    CHECK_ERR(HR_ERR_FORMAT, hr__borrow_segment(&borrower, HR_SEGMENTS_MAX, 4096,
                                                make_file(4096, F_SEAL_SHRINK), &error));
    CHECK_OK(
        hr__borrow_segment(&borrower, 63, 4096, make_file(4096, F_SEAL_SHRINK), NULL));
    CHECK_OK(hr__borrow_segment(&borrower, 63, 0, -1, NULL));
    CHECK(borrower.mappings[63] == NULL);
    hr__borrow_finish(&borrower);
}

TEST(tables_that_lie_are_refused)
{
    static const struct {
        struct hr_loan_head head;
        struct hr_loan_piece piece;
    } wrong[] = {
        {{0, 0},  {0, 64, 1, 0}                },
        {{1, 1},  {0, 64, 1, 0}                },
        {{99, 0}, {0, 64, 1, 0}                },
        {{1, 0},  {0, 64, 2, 0}                },
        {{1, 0},  {0, 64, 64, 0}               },
        {{1, 0},  {0, 0, 1, 0}                 },
        {{1, 0},  {8, 64, 1, 0}                },
        {{1, 0},  {0, 63, 1, 0}                },
        {{1, 0},  {0, SEGMENT_BYTES + 64, 1, 0}},
        {{1, 0},  {SEGMENT_BYTES, 64, 1, 0}    },
        {{1, 0},  {UINT64_MAX - 63, 64, 1, 0}  },
        {{1, 0},  {64, UINT64_MAX - 63, 1, 0}  },
        {{1, 0},  {0, 64, 1, 2}                },
    };
    struct hr_desk *desk = hr__desk_create(wake, NULL);
    struct hr_borrower borrower = {0};
    struct hr_borrowed borrowed;

    CHECK(desk != NULL);
    CHECK_OK(hr__borrow_segment(&borrower, 1, SEGMENT_BYTES,
                                make_file(SEGMENT_BYTES, F_SEAL_SHRINK), NULL));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct hr_buffer *body = make_body(&wrong[i].head, &wrong[i].piece, 1);

        CHECK_ERR(HR_ERR_FORMAT, hr__borrow(&borrower, desk, body, &borrowed, NULL));
        CHECK(hr_buffer_is_writable(body));
        hr_buffer_unref(body);
    }
    hr__borrow_finish(&borrower);
    hr__desk_close(desk);
}

TEST(a_loan_comes_back_once_and_outlives_connection_and_desk)
{
    const struct hr_loan_head head = {.count = 1};
    const struct hr_loan_piece piece = {.offset = 64, .bytes = 128, .segment = 1};
    struct hr_desk *desk = hr__desk_create(wake, NULL);
    struct hr_borrower borrower = {.connection = 5};
    struct hr_borrowed first, second;
    struct hr_buffer *body = make_body(&head, &piece, 1);
    uint64_t connection = 0, frame = 0;
    int fd = make_file(SEGMENT_BYTES, F_SEAL_SHRINK);

    CHECK(desk != NULL && pwrite(fd, "batch", 5, 64) == 5);
    CHECK_OK(hr__borrow_segment(&borrower, 1, SEGMENT_BYTES, fd, NULL));
    CHECK_OK(hr__borrow(&borrower, desk, body, &first, NULL));
    CHECK_OK(hr__borrow(&borrower, desk, body, &second, NULL));
    hr_buffer_unref(body);
    hr__borrow_finish(&borrower);
    CHECK(!hr__desk_take(desk, &connection, &frame));
    woken = 0;
    hr_buffer_unref(first.buffer);
    CHECK_EQ_INT(woken, 1);
    CHECK(hr__desk_take(desk, &connection, &frame));
    CHECK(connection == 5 && frame == 1);
    CHECK(!hr__desk_take(desk, &connection, &frame));
    hr__desk_close(desk);
    CHECK_EQ_INT(memcmp(second.far[0].data, "batch", 5), 0);
    hr_buffer_unref(second.buffer);
    CHECK_EQ_INT(woken, 1);
}

/* Two clients have a tensor, and one of them writes to it. */
static void check_common(size_t files)
{
    const struct hr_loan_head head = {.count = 1};
    const struct hr_loan_piece piece = {
        .offset = 4096 + 64, .bytes = 8192, .segment = 1, .common = 1};
    struct hr_desk *desk = hr__desk_create(wake, NULL);
    struct hr_borrower many[5] = {0}, borrower = {.connection = 5};
    struct hr_borrowed first, second;
    struct hr_buffer *body = make_body(&head, &piece, 1);
    int fd = make_file(SEGMENT_BYTES, F_SEAL_SHRINK);
    char *data, text[6] = "";
    uint64_t connection, frame;

    for (size_t i = 0; i < files; i++)
        CHECK_OK(hr__borrow_segment(&many[i / HR_SEGMENTS_MAX],
                                    (uint32_t)(i % HR_SEGMENTS_MAX), 4096,
                                    make_file(4096, F_SEAL_SHRINK), NULL));
    CHECK(desk != NULL && pwrite(fd, "batch", 5, 4096 + 64) == 5);
    CHECK_OK(hr__borrow_segment(&borrower, 1, SEGMENT_BYTES, dup(fd), NULL));
    CHECK_OK(hr__borrow(&borrower, desk, body, &first, NULL));
    CHECK_OK(hr__borrow(&borrower, desk, body, &second, NULL));
    hr__borrow_finish(&borrower);
    data = (char *)(uintptr_t)first.far[0].data;
    CHECK_EQ_INT(memcmp(data, "batch", 5), 0);
    memcpy(data, "other", 5);
    CHECK_EQ_INT(memcmp(second.far[0].data, "batch", 5), 0);
    CHECK(pread(fd, text, 5, 4096 + 64) == 5 && memcmp(text, "batch", 5) == 0);
    hr_buffer_unref(first.buffer);
    hr_buffer_unref(second.buffer);
    for (int i = 0; i < 2; i++)
        CHECK(hr__desk_take(desk, &connection, &frame) && connection == 5);
    hr__desk_close(desk);
    for (size_t i = 0; i < sizeof many / sizeof many[0]; i++)
        hr__borrow_finish(&many[i]);
    hr_buffer_unref(body);
    close(fd);
}

TEST(who_writes_to_a_common_tensor_writes_to_a_copy)
{
    check_common(0);
    check_common(5 * HR_SEGMENTS_MAX); /* more files than are kept open */
    check_common(0);
}

/* Batches in a pool of segments, written, and read with their large tensors in place. */
TEST(a_parcel_reads_with_its_tensors_where_they_are)
{
    struct hr_pool *pool = hr__pool_create_shared();
    struct hr_iter_options options;
    struct hr_engine *engine;
    struct hr_parcel_pieces pieces;
    struct hr_parcel *parcel;
    struct hr_wire_far far[HR_SCHEMA_FIELDS_MAX];
    struct hr_batch *batch, *read;
    struct hr_field_view x, y;
    struct hr_graph *graph =
        load(GRAPH("  - source.range: {n: 600, field: label}\n"
                   "  - tensor.one_hot: {classes: 1024}\n" BATCH(300)));
    size_t offset = 0;

    CHECK(pool != NULL);
    CHECK_OK(hr_graph_freeze(graph, NULL));
    hr_iter_options_init(&options);
    CHECK_OK(hr__engine_open_in(graph, &options, &(struct hr_engine_place){.pool = pool},
                                &engine, NULL));
    CHECK_OK(hr__engine_next(engine, UINT64_MAX, &batch, NULL));
    CHECK_OK(hr__parcel_write(&(struct hr_parcel_item){.batch = batch}, 1, NULL, pool,
                              &pieces, NULL));
    CHECK_EQ_INT(pieces.count, 2);
    CHECK(hr__buffer_segment(pieces.parts[1].owner, &offset) != NULL);
    far[0] = (struct hr_wire_far){.bytes = pieces.parts[1].bytes,
                                  .data = pieces.parts[1].data};
    CHECK_OK(hr__parcel_open(pieces.parts[0].owner, 1, far, 1, &parcel, NULL));
    CHECK_OK(hr__parcel_get(parcel, 0, 300, &read, NULL));
    CHECK_OK(hr_batch_field(batch, 0, &x));
    CHECK_OK(hr_batch_field(read, 0, &y));
    CHECK(x.bytes == y.bytes && x.data == y.data);
    hr_batch_unref(read);
    hr__parcel_close(parcel);
    far[0].bytes -= 64; /* other bytes than the block says */
    CHECK_ERR(HR_ERR_FORMAT,
              hr__parcel_open(pieces.parts[0].owner, 1, far, 1, &parcel, NULL));
    hr__parcel_drop(&pieces);
    hr_batch_unref(batch);
    hr__engine_close(engine);
    hr_graph_unref(graph);
    for (uint32_t i = 0; i < HR_SEGMENTS_MAX; i++)
        CHECK(i < 8 || hr__pool_segment(pool, i) == 0);
    hr_pool_unref(pool);
}
