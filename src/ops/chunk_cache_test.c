/*
 * ops/chunk_cache_test.c - chunks are made once while they are kept, by any number of
 * threads.
 */
#include "ops/chunk_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/rng.h"
#include "tests/support/check.h"

#define CHUNKS 20
#define BYTES 1000

struct job {
    uint64_t number;
    bool fails;
};
static atomic_int made;

static enum hr_err make(void *user, struct hr_buffer **ret_buffer)
{
    const struct job *job = user;

    atomic_fetch_add(&made, 1);
    if (job->fails)
        return HR_ERR_FORMAT;
    *ret_buffer = hr_buffer_create(BYTES);
    if (*ret_buffer == NULL)
        return HR_ERR_MEMORY;
    memset(hr_buffer_data(*ret_buffer), (int)job->number, BYTES);
    return HR_OK;
}

static enum hr_err
get(struct hr_chunk_cache *cache, const void *owner, uint64_t number, bool fails)
{
    struct job job = {number, fails};
    struct hr_buffer *buffer = NULL;
    enum hr_err code = hr__chunk_cache_get(cache, owner, number, make, &job, &buffer);

    if (code == HR_OK) {
        const unsigned char *data = hr_buffer_data(buffer);

        CHECK(data[0] == number && data[BYTES - 1] == number);
    }
    hr_buffer_unref(buffer);
    return code;
}

TEST(a_chunk_is_made_once_while_it_is_kept)
{
    struct hr_chunk_cache *cache;
    int a, b;

    atomic_store(&made, 0);
    CHECK_OK(hr__chunk_cache_create(3 * BYTES, &cache, NULL));
    for (int times = 0; times < 3; times++)
        for (uint64_t i = 0; i < 3; i++)
            CHECK_OK(get(cache, &a, i, false));
    CHECK_EQ_INT(atomic_load(&made), 3);
    CHECK_OK(get(cache, &b, 0, false)); /* another's; the oldest goes */
    CHECK_OK(get(cache, &a, 1, false));
    CHECK_OK(get(cache, &a, 2, false));
    CHECK_EQ_INT(atomic_load(&made), 4);
    CHECK_OK(get(cache, &a, 0, false));
    CHECK_EQ_INT(atomic_load(&made), 5);
    hr__chunk_cache_destroy(cache);
}

TEST(it_says_what_it_has)
{
    struct hr_chunk_cache *cache;
    int a, b;

    CHECK_OK(hr__chunk_cache_create(1 << 20, &cache, NULL));
    CHECK_OK(get(cache, &a, 1, false));
    CHECK_ERR(HR_ERR_FORMAT, get(cache, &a, 2, true));
    CHECK(hr__chunk_cache_has(cache, &a, 1));
    CHECK(!hr__chunk_cache_has(cache, &a, 2) && !hr__chunk_cache_has(cache, &b, 1));
    hr__chunk_cache_destroy(cache);
}

TEST(a_chunk_that_failed_is_made_again)
{
    struct hr_chunk_cache *cache;
    int a;

    atomic_store(&made, 0);
    CHECK_OK(hr__chunk_cache_create(1 << 20, &cache, NULL));
    CHECK_ERR(HR_ERR_FORMAT, get(cache, &a, 1, true));
    CHECK_ERR(HR_ERR_FORMAT, get(cache, &a, 1, true));
    CHECK_OK(get(cache, &a, 1, false));
    CHECK_OK(get(cache, &a, 1, true));
    CHECK_EQ_INT(atomic_load(&made), 3);
    hr__chunk_cache_destroy(cache);
}

TEST(a_cache_of_no_bytes_keeps_nothing)
{
    struct hr_chunk_cache *cache;
    int a;

    atomic_store(&made, 0);
    CHECK_OK(hr__chunk_cache_create(0, &cache, NULL));
    for (int i = 0; i < 600; i++)
        CHECK_OK(get(cache, &a, 7, false));
    CHECK_EQ_INT(atomic_load(&made), 600);
    hr__chunk_cache_destroy(cache);
}

static void *read_some(void *user)
{
    static const int owners[2];
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, (uint64_t)(uintptr_t)pthread_self());
    for (int i = 0; i < 3000; i++) {
        bool fails = hr__rng_below(&rng, 20) == 0;
        enum hr_err code = get(user, &owners[hr__rng_below(&rng, 2)],
                               hr__rng_below(&rng, CHUNKS), fails);

        CHECK(code == HR_OK || fails);
    }
    return NULL;
}

TEST(threads_share_it)
{
    struct hr_chunk_cache *cache;
    pthread_t threads[4];

    CHECK_OK(hr__chunk_cache_create(10 * BYTES, &cache, NULL));
    (void)check_seed(); /* drawn and printed before there are threads */
    for (int i = 0; i < 4; i++)
        CHECK_EQ_INT(pthread_create(&threads[i], NULL, read_some, cache), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ_INT(pthread_join(threads[i], NULL), 0);
    hr__chunk_cache_destroy(cache);
}
