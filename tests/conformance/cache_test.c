/*
 * tests/conformance/cache_test.c - a pipeline with a cache gives the records that it
 * gives without: in every epoch, variant and order, on ranks and resumed, from a cold,
 * warm, full or damaged cache, and when several processes fill one or are killed. What it
 * has it does not make again. random_graphs_test has caches in all kinds of graphs.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/rng.h"
#include "core/str.h"
#include "tests/conformance/photos.h"
#include "tests/conformance/random_graph.h"
#include "tests/support/check.h"
#include "tests/support/outcome.h"
#include "tests/support/peers.h"

__attribute__((constructor)) static void serve(void)
{
    if (peers_argument() != NULL)
        peers_serve(random_graph_code, NULL);
}

/* A folder that no test has used yet. */
static const char *new_folder(void)
{
    static char path[512];
    static int count;

    snprintf(path, sizeof path, "%s/kept%d", check_temp_dir(), count++);
    return path;
}

/* Evaluation on photos, as examples/vision_eval.yaml, shuffled, in mode close: with a
 * cache after the crop, or without (NULL). */
static const char *photos_text(const char *cache)
{
    static char text[4096];

    snprintf(text, sizeof text,
             "headrace: 1\npipeline:\n"
             "  - source.files: {path: '%s', labels: folder}\n"
             "  - order.shuffle: {}\n"
             "  - image.decode: {mode: close}\n"
             "  - image.resize_shortest: {size: 48}\n"
             "  - image.center_crop: {size: 40}\n"
             "%s%s%s"
             "  - image.normalize: {mean: imagenet, std: imagenet}\n"
             "  - image.flip: {p: 0.5}\n"
             "  - batch.stack: {size: 7, drop_last: false}\n",
             photos_good(), cache != NULL ? "  - flow.cache: {" : "",
             cache != NULL ? cache : "", cache != NULL ? "}\n" : "");
    return text;
}

/* Numbers of which some are dropped, expanded and looked at by user code. */
static const char *numbers_text(const char *cache)
{
    static char text[4096];

    snprintf(
        text, sizeof text,
        "headrace: 1\npipeline:\n"
        "  - source.range: {n: 200}\n"
        "  - order.shuffle: {}\n"
        "  - record.filter: {expr: \"value %% 5 != 1\"}\n"
        "  - code.expand: {code: few, fields: [value], outputs: [\"value: int64[]\", "
        "\"child: int64\"]}\n"
        "  - record.filter: {expr: \"child %% 3 != 1\"}\n"
        "%s%s%s"
        "  - order.shuffle: {window: 9}\n"
        "  - batch.pad: {size: 6, drop_last: false}\n",
        cache != NULL ? "  - flow.cache: {" : "", cache != NULL ? cache : "",
        cache != NULL ? "}\n" : "");
    return text;
}

/* Lists of words, of which each is taken from the cache many times in a batch. */
static const char *words_text(const char *cache)
{
    static char text[4096];

    snprintf(text, sizeof text,
             "headrace: 1\npipeline:\n"
             "  - source.files: {path: '%s', labels: folder}\n"
             "  - order.take: {count: 4}\n"
             "  - order.shuffle: {}\n"
             "  - text.split: {field: data}\n"
             "%s%s%s"
             "  - order.repeat: {count: 45}\n"
             "  - batch.pad: {size: 9, drop_last: false}\n",
             photos_good(), cache != NULL ? "  - flow.cache: {" : "",
             cache != NULL ? cache : "", cache != NULL ? "}\n" : "");
    return text;
}

typedef const char *make_text(const char *cache);

static struct outcome_job job_of(const char *text)
{
    struct outcome_job job = outcome_job_text(text);

    job.prepare = random_graph_prepare;
    job.options.epochs = 3;
    job.options.seed = check_seed();
    return job;
}

static struct outcome *run(const struct outcome_job *job)
{
    struct outcome *outcome = outcome_run(job);

    if (outcome->code != HR_ERR_END)
        check_failed(__FILE__, __LINE__, "%s in\n%s", outcome->error.message, job->text);
    return outcome;
}

/* The run of a graph with this cache gives what the run without gives; returns it. */
static struct outcome *check_equal(make_text *text, const char *cache, int threads)
{
    struct outcome_job job = job_of(text(NULL));
    struct outcome *plain = run(&job), *cached;

    job.text = text(cache);
    outcome_job_threads(&job, threads);
    cached = run(&job);
    outcome_check_same(plain, cached, 0, cache);
    outcome_free(plain);
    return cached;
}

/* ---- the same records ---- */

TEST(photos_are_the_same_with_a_cache_and_without)
{
    char cache[700];

    snprintf(cache, sizeof cache, "folder: '%s'", new_folder());
    for (int i = 0; i < 6; i++) {
        struct outcome *outcome =
            check_equal(photos_text, i % 2 == 0 ? cache : "", i / 2 * 2);
        uint64_t made = i % 2 == 0 && i > 0 ? 0 : PHOTOS;
        uint64_t read = outcome->nodes[0].records;

        /* Threads may be at one record in two epochs at once, at the end of the first. */
        CHECK(i < 2 || made == 0 ? read == made : read >= made && read < 3 * made / 2);
        CHECK_EQ_INT(outcome->nodes[2].records, read); /* image.decode */
        CHECK_EQ_INT(outcome->nodes[5].records, 3 * PHOTOS);
        CHECK_EQ_INT(outcome->nodes[5].kept_entries, PHOTOS);
        outcome_free(outcome);
    }
}

TEST(numbers_are_the_same_with_a_cache_and_without)
{
    char cache[700];

    /* The user code draws nothing; the graph is told so. */
    snprintf(cache, sizeof cache, "random: freeze, folder: '%s'", new_folder());
    for (int i = 0; i < 6; i++)
        outcome_free(
            check_equal(numbers_text, i % 2 == 0 ? cache : "random: freeze", i / 2 * 2));
}

TEST(words_are_the_same_with_a_cache_and_without)
{
    for (int i = 0; i < 8; i++) {
        char cache[700];

        snprintf(cache, sizeof cache, "folder: '%s'", new_folder());
        outcome_free(check_equal(words_text, i % 2 == 0 ? cache : "", i / 2 * 3));
    }
}

TEST(runs_with_a_cache_resume_like_those_without)
{
    char cache[700];

    for (int i = 0; i < 2; i++) {
        make_text *text = i == 0 ? photos_text : numbers_text;
        struct outcome_job job;
        struct outcome *whole;

        snprintf(cache, sizeof cache, "random: freeze, folder: '%s'", new_folder());
        job = job_of(text(cache));
        job.states = true;
        whole = run(&job);
        outcome_check_restarts(&job, whole, 12);
        outcome_free(whole);
    }
}

static enum hr_err
prepare_peers(void *user, struct hr_graph *graph, struct hr_error *reterr)
{
    enum hr_err code = random_graph_prepare(NULL, graph, reterr);

    return code == HR_OK ? peers_host(user, graph, reterr) : code;
}

TEST(worker_processes_give_and_skip_the_same_records)
{
    static char text[8192];
    char cache[700];

    snprintf(cache, sizeof cache, "random: freeze, folder: '%s'", new_folder());
    for (int i = 0; i < 2; i++) {
        struct outcome_job job = job_of(numbers_text(NULL));
        struct outcome *plain = run(&job), *cached;
        struct peers peers;

        peers_text(numbers_text(cache), text, sizeof text);
        peers_init(&peers, "");
        outcome_job_threads(&job, 2);
        job.text = text;
        job.prepare = prepare_peers;
        job.user = &peers;
        cached = run(&job);
        outcome_check_same(plain, cached, 0, i == 0 ? "cold" : "warm");
        peers_finish(&peers);
        outcome_free(plain);
        outcome_free(cached);
    }
}

TEST(ranks_share_a_folder)
{
    char cache[700];

    snprintf(cache, sizeof cache, "folder: '%s'", new_folder());
    for (int64_t rank = 0; rank < 2; rank++) {
        struct outcome_job job = job_of(photos_text(NULL));
        struct outcome *plain, *cached;

        job.options.rank = rank;
        job.options.world = 2;
        plain = run(&job);
        job.text = photos_text(cache);
        cached = run(&job);
        outcome_check_same(plain, cached, 0, "rank");
        outcome_free(plain);
        outcome_free(cached);
    }
}

/* ---- what is made and what is not ---- */

/* ---- files ---- */

/* A folder of its own with copies of the photos: 0/0.jpg, 1/1.jpg, 0/2.jpg, ... */
static const char *copied_photos(void)
{
    static char folder[512];
    static int count;
    char command[2000];

    snprintf(folder, sizeof folder, "%s/copies%d", check_temp_dir(), count++);
    snprintf(command, sizeof command,
             "mkdir -p '%s/0' '%s/1' && i=0 && for f in '%s'/*/*.jpg; do "
             "cp \"$f\" '%s'/$((i %% 2))/$i.jpg && i=$((i+1)); done",
             folder, folder, photos_good(), folder);
    CHECK_EQ_INT(system(command), 0);
    return folder;
}

static const char *photo_path(const char *folder, int photo)
{
    static char path[600];

    snprintf(path, sizeof path, "%s/%d/%d.jpg", folder, photo % 2, photo);
    return path;
}

enum overwrite {
    IN_PLACE, /* the same inode and length, another time */
    REPLACED, /* another inode, the same length and time */
    LONGER,   /* the same inode and time */
    WIPED,    /* the same inode, length and time: not noticed */
    OVERWRITES
};

/* Gives the photo the pixels of another one, which is no longer in bytes; or, WIPED,
 * none.
 */
static void overwrite(const char *folder, int photo, int from, enum overwrite how)
{
    const char *path = photo_path(folder, photo);
    size_t from_bytes, bytes;
    struct timespec times[2];
    char next[600], *pixels;
    struct stat info;
    int fd;

    CHECK(stat(path, &info) == 0);
    times[0] = info.st_atim;
    times[1] = info.st_mtim;
    times[1].tv_sec -= how == IN_PLACE ? 10 : 0;
    CHECK_OK(
        hr__file_read(photo_path(folder, from), 1 << 24, &pixels, &from_bytes, NULL));
    bytes = how == LONGER ? (size_t)info.st_size + 1 : (size_t)info.st_size;
    CHECK(from_bytes <= bytes);
    snprintf(next, sizeof next, "%s/next", folder);
    path = photo_path(folder, photo);
    fd = open(how == REPLACED ? next : path, O_WRONLY | O_CREAT, 0666);
    CHECK(fd >= 0);
    if (how == WIPED)
        memset(pixels, 'x', from_bytes);
    /* What is behind the end of a photo is ignored. */
    CHECK(write(fd, pixels, from_bytes) == (ssize_t)from_bytes);
    CHECK(ftruncate(fd, (off_t)bytes) == 0);
    CHECK(futimens(fd, times) == 0);
    close(fd);
    if (how == REPLACED)
        CHECK(rename(next, path) == 0);
    hr__free(pixels);
}

static int largest_photo(const char *folder)
{
    off_t most = 0;
    int largest = 0;

    for (int i = 0; i < PHOTOS; i++) {
        struct stat info;

        CHECK(stat(photo_path(folder, i), &info) == 0);
        if (info.st_size > most) {
            most = info.st_size;
            largest = i;
        }
    }
    return largest;
}

TEST(nothing_is_read_for_a_record_that_is_kept)
{
    char cache[700], text[2048], folder[512];
    struct outcome_job job;
    struct outcome *plain, *cached;

    snprintf(folder, sizeof folder, "%s", copied_photos());
    snprintf(cache, sizeof cache, "folder: '%s'", new_folder());
    snprintf(text, sizeof text,
             "headrace: 1\npipeline:\n"
             "  - source.files: {path: '%s'}\n"
             "  - order.shuffle: {}\n"
             "  - image.decode: {}\n"
             "  - image.resize: {size: 24}\n"
             "  - flow.cache: {%s}\n"
             "  - batch.stack: {size: 7, drop_last: false}\n",
             folder, cache);
    job = job_of(text);
    plain = run(&job);
    /* The files are there, to be listed and looked at, and unreadable. */
    for (int i = 0; i < PHOTOS; i++)
        overwrite(folder, i, i, WIPED);
    cached = run(&job);
    outcome_check_same(plain, cached, 0, "without the files");
    CHECK_EQ_INT(cached->nodes[0].records, 0);
    outcome_free(plain);
    outcome_free(cached);
}

/* Graphs with caches wherever records have files; `more` stays as it is. */
static const struct shape {
    const char *name, *text;
} shapes[] = {
    {"a chain",                               "  - source.files: {path: '${data}'}\n"
                "  - order.shuffle: {}\n"
                "  - image.decode: {}\n"
                "  - image.resize: {size: 24}\n"
                "  - flow.cache: {folder: '${kept}'}\n"                                                            },
    {"a filter",                              "  - source.files: {path: '${data}', labels: folder}\n"
                 "  - image.decode: {}\n"
                 "  - record.filter: {expr: \"label == 1\"}\n"
                 "  - image.resize: {size: 24}\n"
                 "  - flow.cache: {folder: '${kept}'}\n"                                                          },
    {"a concatenation",                       "  - source.files: {path: '${more}'}\n"
                        "    name: other\n"
                        "  - source.files: {path: '${data}'}\n"
                        "    name: data\n"
                        "    inputs: []\n"
                        "  - flow.concat: {}\n"
                        "    inputs: [other, data]\n"
                        "  - order.shuffle: {}\n"
                        "  - image.decode: {}\n"
                        "  - image.resize: {size: 24}\n"
                        "  - flow.cache: {folder: '${kept}'}\n"                                            },
    {"a mix, with a cache in one input, too", "  - source.files: {path: '${data}'}\n"
                                              "  - image.decode: {}\n"
                                              "  - image.resize: {size: 24}\n"
                                              "  - flow.cache: {folder: '${kept}'}\n"
                                              "    name: data\n"
                                              "  - source.files: {path: '${more}'}\n"
                                              "    inputs: []\n"
                                              "  - image.decode: {}\n"
                                              "  - image.resize: {size: 24}\n"
                                              "    name: other\n"
                                              "  - flow.mix: {until: all}\n"
                                              "    inputs: [data, other]\n"
                                              "  - flow.cache: {folder: '${kept}'}\n"},
    {"a zip",                                 "  - source.files: {path: '${more}', field: other}\n"
              "  - image.decode: {field: other, to: other}\n"
              "  - image.resize: {field: other, size: 24}\n"
              "    name: other\n"
              "  - source.files: {path: '${data}'}\n"
              "    inputs: []\n"
              "  - image.decode: {}\n"
              "  - image.resize: {size: 24}\n"
              "    name: data\n"
              "  - flow.zip: {}\n"
              "    inputs: [other, data]\n"
              "  - order.shuffle: {}\n"
              "  - flow.cache: {folder: '${kept}'}\n"                                                                },
    {"a later stage",                         "  - source.files: {path: '${data}'}\n"
                      "  - order.shuffle: {window: 9}\n"
                      "  - image.decode: {}\n"
                      "  - image.resize: {size: 24}\n"
                      "  - flow.cache: {folder: '${kept}'}\n"                                                },
};

/* The shape's text with these folders; without caches if `kept` is NULL. */
static const char *shape_text(const struct shape *shape, const char *data,
                              const char *more, const char *kept)
{
    static char text[8192];
    struct hr_str out;

    hr__str_init(&out);
    hr__str_add(&out, "headrace: 1\npipeline:\n");
    for (const char *at = shape->text; *at != '\0';) {
        const char *end = strchr(at, '\n') + 1, *hole;

        if (kept == NULL && strncmp(at, "  - flow.cache", 14) == 0) {
            if (strncmp(end, "    name", 8) == 0) /* keeps the name for its reader */
                hr__str_add(&out, "  - record.select: {fields: [image]}\n");
            at = end;
            continue;
        }
        for (; (hole = strstr(at, "${")) != NULL && hole < end; at = hole + 7) {
            hr__str_add_bytes(&out, at, (size_t)(hole - at));
            hr__str_add(&out, strncmp(hole, "${data}", 7) == 0   ? data
                              : strncmp(hole, "${more}", 7) == 0 ? more
                                                                 : kept);
        }
        hr__str_add_bytes(&out, at, (size_t)(end - at));
        at = end;
    }
    hr__str_add(&out, "  - batch.stack: {size: 7, drop_last: false}\n");
    CHECK(hr__str_ok(&out));
    snprintf(text, sizeof text, "%s", hr__str_text(&out));
    hr__str_finish(&out);
    return text;
}

/* A run of the shape with a cache gives what one without gives; how many photos it
 * decodes. */
static int64_t decoded(const struct shape *shape, const char *data, const char *more,
                       const char *kept, int threads)
{
    struct outcome_job job = job_of(shape_text(shape, data, more, NULL));
    struct outcome *plain = run(&job), *cached;
    int64_t count;

    job.text = shape_text(shape, data, more, kept);
    outcome_job_threads(&job, threads);
    cached = run(&job);
    outcome_check_same(plain, cached, 0, shape->name);
    count = cached->decoded;
    outcome_free(plain);
    outcome_free(cached);
    return count;
}

TEST(a_file_that_was_overwritten_is_read_again_and_no_other_one)
{
    char data[512], more[512];

    snprintf(data, sizeof data, "%s", copied_photos());
    snprintf(more, sizeof more, "%s", copied_photos());
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const char *kept = new_folder();

        CHECK(decoded(&shapes[i], data, more, kept, 0) >= PHOTOS);
        for (int how = 0; how < WIPED; how++) {
            int photo = largest_photo(data), threads = how == IN_PLACE ? 2 : 0;
            int64_t again;

            overwrite(data, photo, (photo + 1 + how) % PHOTOS, (enum overwrite)how);
            again = decoded(&shapes[i], data, more, kept, threads);
            /* A zip's other photo is decoded with it. Threads may be at it in all three
             * epochs at once. */
            if (again == 0 || again > (threads > 0 ? 6 : 2))
                check_failed(__FILE__, __LINE__, "%s: %d photos are decoded again",
                             shapes[i].name, (int)again);
            CHECK_EQ_INT(decoded(&shapes[i], data, more, kept, threads), 0);
        }
    }
}

/* A segmentation of Pascal VOC reads a mask beside each picture. */
TEST(a_file_beside_a_picture_that_was_overwritten_is_read_again)
{
    static const char *const files[][2] = {
        {"JPEGImages/a.jpg",                 "a picture"},
        {"JPEGImages/b.jpg",                 "another"  },
        {"SegmentationClass/a.png",          "a mask"   },
        {"SegmentationClass/b.png",          "the other"},
        {"ImageSets/Segmentation/train.txt", "a\nb\n"   }
    };
    char data[512], path[600], text[2048];
    struct outcome_job job;
    uint64_t before = 0;

    snprintf(data, sizeof data, "%s/voc", check_temp_dir());
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", data, files[i][0]);
        *strrchr(path, '/') = '\0';
        CHECK_OK(hr__file_make_folder(path, 0777, NULL));
        path[strlen(path)] = '/';
        CHECK_OK(hr__file_replace(path, files[i][1], strlen(files[i][1]), NULL));
    }
    snprintf(text, sizeof text,
             "headrace: 1\npipeline:\n"
             "  - source.voc: {path: '%s', task: segmentation}\n"
             "  - flow.cache: {folder: '%s'}\n"
             "  - batch.stack: {size: 2, ragged: true}\n",
             data, new_folder());
    job = job_of(text);
    for (int i = 0; i < 4; i++) {
        struct outcome *outcome;

        if (i == 2) {
            snprintf(path, sizeof path, "%s/%s", data, files[3][0]);
            CHECK_OK(hr__file_replace(path, "the third", 9, NULL));
        }
        outcome = run(&job);
        CHECK_EQ_INT(outcome->nodes[0].records, i % 2 == 1 ? 0 : i == 0 ? 2 : 1);
        CHECK((i == 0 || outcome->hashes[0] == before) == (i != 2));
        before = outcome->hashes[0];
        outcome_free(outcome);
    }
}

TEST(a_file_that_is_gone_is_the_error_that_it_is_without_a_cache)
{
    static const struct shape listed = {
        "a list",
        "  - source.files: {path: '${data}', files: [0/0.jpg, 1/1.jpg, 0/2.jpg]}\n"
        "  - image.decode: {}\n"
        "  - image.resize: {size: 24}\n"
        "  - flow.cache: {folder: '${kept}'}\n"};
    char data[512];
    const char *kept = new_folder();

    snprintf(data, sizeof data, "%s", copied_photos());
    CHECK_EQ_INT(decoded(&listed, data, NULL, kept, 0), 3);
    CHECK_EQ_INT(decoded(&listed, data, NULL, kept, 0), 0);
    CHECK(unlink(photo_path(data, 1)) == 0);
    for (int skip = 0; skip < 2; skip++) {
        struct outcome_job job = job_of(shape_text(&listed, data, NULL, kept));
        struct outcome *outcome;

        job.options.on_error = skip ? HR_ON_ERROR_SKIP : HR_ON_ERROR_FAIL;
        outcome = outcome_run(&job);
        if (skip) {
            CHECK_EQ_INT(outcome->code, HR_ERR_END);
            CHECK_EQ_INT(outcome->records, 2 * 3);
            CHECK_EQ_INT(outcome->decoded, 0);
        } else {
            CHECK_EQ_INT(outcome->code, HR_ERR_NOT_FOUND);
            CHECK_HAS(outcome->error.message, "1.jpg");
        }
        outcome_free(outcome);
    }
}

/* The hash of the next epoch, which is one batch. */
static uint64_t next_hash(struct hr_iter *iter)
{
    struct hr_batch *batch;
    uint64_t hash;

    CHECK_OK(hr_iter_next(iter, &batch, NULL));
    CHECK_EQ_INT(hr_batch_records(batch), PHOTOS);
    hash = outcome_hash(batch);
    hr_batch_unref(batch);
    return hash;
}

/* What was read ahead, or mapped, may be older than the file's time. */
TEST(a_file_that_changes_during_a_run_is_not_kept_before_the_next_one)
{
    char data[512], text[2048];
    struct outcome_job job;
    struct outcome *plain;
    struct hr_graph *graph;
    struct hr_iter *iter;
    struct hr_node_stats stats;
    uint64_t before, after;
    int photo;

    snprintf(data, sizeof data, "%s", copied_photos());
    for (int cached = 1; cached >= 0; cached--) {
        snprintf(text, sizeof text,
                 "headrace: 1\npipeline:\n"
                 "  - source.files: {path: '%s'}\n"
                 "  - image.decode: {}\n"
                 "  - image.resize: {size: 24}\n"
                 "%s%s%s"
                 "  - batch.stack: {size: %d}\n",
                 data, cached ? "  - flow.cache: {folder: '" : "",
                 cached ? new_folder() : "", cached ? "'}\n" : "", PHOTOS);
        job = job_of(text);
        if (!cached)
            break;
        job.options.epochs = 4;
        graph = outcome_graph(&job, NULL);
        CHECK_OK(hr_iter_open(graph, &job.options, &iter, NULL));
        before = next_hash(iter);
        photo = largest_photo(data);
        overwrite(data, photo, (photo + 1) % PHOTOS, REPLACED);
        CHECK(next_hash(iter) != before);
        after = next_hash(iter);
        CHECK(after == next_hash(iter) && after != before);
        CHECK_OK(hr_iter_node_stats(iter, 1, &stats));
        CHECK_EQ_INT(stats.records, PHOTOS + 3);
        hr_iter_close(iter);
        hr_graph_unref(graph);
        for (int i = 0; i < 2; i++) { /* and then it is */
            plain = run(&job);
            CHECK_EQ_INT(plain->decoded, 1 - i);
            CHECK(plain->hashes[0] == after);
            outcome_free(plain);
        }
    }
    plain = run(&job);
    CHECK(plain->hashes[0] == after);
    outcome_free(plain);
}

TEST(an_edited_graph_has_another_cache)
{
    char cache[700], text[4096], *size;
    const char *folder = new_folder();
    struct outcome_job job;
    struct outcome *cached, *plain;

    snprintf(cache, sizeof cache, "folder: '%s'", folder);
    outcome_free(check_equal(photos_text, cache, 2));
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "%s", photos_text(i == 0 ? cache : NULL));
        size = strstr(text, "size: 48");
        memcpy(size, "size: 44", 8);
        job = job_of(text);
        if (i == 0)
            cached = run(&job);
        else
            plain = run(&job);
    }
    outcome_check_same(plain, cached, 0, "edited");
    CHECK_EQ_INT(cached->nodes[0].records, PHOTOS); /* inline: each one once */
    outcome_free(plain);
    outcome_free(cached);
}

TEST(a_full_cache_keeps_what_it_has)
{
    char cache[700];

    for (int disk = 0; disk < 2; disk++) {
        struct outcome *outcome;

        snprintf(cache, sizeof cache, "budget: 120000%s%s%s", disk ? ", folder: '" : "",
                 disk ? new_folder() : "", disk ? "'" : "");
        outcome = check_equal(photos_text, cache, 0);
        CHECK(outcome->nodes[5].kept_bytes <= 120000);
        CHECK(outcome->nodes[5].kept_entries > 10);
        CHECK(outcome->nodes[0].records > PHOTOS);
        CHECK(outcome->nodes[0].records < 3 * PHOTOS);
        CHECK_EQ_INT(outcome->nodes[0].records,
                     3 * PHOTOS - 2 * outcome->nodes[5].kept_entries);
        outcome_free(outcome);
    }
}

TEST(a_memory_budget_holds_the_cache_too)
{
    struct outcome_job job = job_of(photos_text("budget: 100MB"));
    struct outcome *outcome;

    job.options.memory_bytes = (int64_t)64 << 20;
    outcome = outcome_run(&job);
    CHECK(outcome->code != HR_ERR_END);
    CHECK_HAS(outcome->error.message, "memory budget");
    CHECK_HAS(outcome->error.message, "kept by 'flow.cache'");
    outcome_free(outcome);
    job.text = photos_text("");
    outcome = run(&job);
    CHECK(outcome->nodes[5].kept_bytes <= 32 << 20);
    CHECK_EQ_INT(outcome->nodes[5].kept_entries, PHOTOS);
    outcome_free(outcome);
}

TEST(a_run_may_leave_its_caches_out)
{
    char cache[700];
    const char *folder = new_folder();
    struct outcome_job job;
    struct outcome *plain, *cached;
    struct stat info;

    snprintf(cache, sizeof cache, "folder: '%s'", folder);
    job = job_of(photos_text(cache));
    job.options.uncached = true;
    plain = run(&job);
    CHECK_EQ_INT(plain->nodes[0].records, 3 * PHOTOS);
    CHECK(stat(folder, &info) != 0);
    job.options.uncached = false;
    cached = run(&job);
    outcome_check_same(plain, cached, 0, "with its cache");
    outcome_free(plain);
    outcome_free(cached);
}

/* ---- draws ---- */

TEST(frozen_draws_do_not_depend_on_what_is_kept)
{
    static const char *const freezes[] = {"random: freeze", "refresh: 2"};
    char cache[800];

    for (size_t i = 0; i < 2; i++) {
        struct outcome *outcomes[3];
        static const char *const more[] = {", budget: 1", "", ", folder: "};

        for (size_t k = 0; k < 3; k++) {
            static char text[4096];
            struct outcome_job job;

            snprintf(cache, sizeof cache, "%s%s%s", freezes[i], more[k],
                     k == 2 ? new_folder() : "");
            snprintf(text, sizeof text,
                     "headrace: 1\npipeline:\n"
                     "  - source.files: {path: '%s', labels: folder}\n"
                     "  - image.decode: {mode: close}\n"
                     "  - image.random_resized_crop: {size: 24}\n"
                     "  - flow.cache: {%s}\n"
                     "  - batch.stack: {size: %d}\n",
                     photos_good(), cache, PHOTOS);
            job = job_of(text);
            outcome_job_threads(&job, k == 1 ? 2 : 0);
            outcomes[k] = run(&job);
        }
        CHECK_EQ_INT(outcomes[0]->batches, 3);
        outcome_check_same(outcomes[0], outcomes[1], 0, "in memory");
        outcome_check_same(outcomes[0], outcomes[2], 0, "in a folder");
        CHECK(outcomes[0]->hashes[0] == outcomes[0]->hashes[1]);
        CHECK((outcomes[0]->hashes[1] == outcomes[0]->hashes[2]) == (i == 0));
        for (size_t k = 0; k < 3; k++)
            outcome_free(outcomes[k]);
    }
}

/* ---- damage ---- */

static void damage(const char *folder, const char *end, struct hr_rng *rng)
{
    char inner[1200], path[1800];
    struct dirent *item;
    struct stat info;
    DIR *all = opendir(folder);

    inner[0] = '\0';
    while ((item = readdir(all)) != NULL)
        if (strncmp(item->d_name, "cache-", 6) == 0)
            snprintf(inner, sizeof inner, "%s/%s", folder, item->d_name);
    closedir(all);
    all = opendir(inner);
    CHECK(all != NULL);
    while ((item = readdir(all)) != NULL) {
        int fd;

        if (strstr(item->d_name, end) == NULL)
            continue;
        snprintf(path, sizeof path, "%s/%s", inner, item->d_name);
        fd = open(path, O_RDWR);
        CHECK(fd >= 0 && fstat(fd, &info) == 0);
        for (int i = 0; i < 20; i++) {
            off_t at = (off_t)hr__rng_below(rng, (uint64_t)info.st_size);
            unsigned char byte = (unsigned char)hr__rng_below(rng, 256);

            CHECK(pwrite(fd, &byte, 1, at) == 1);
        }
        close(fd);
    }
    closedir(all);
}

TEST(damaged_records_are_made_again)
{
    char cache[700], folder[512];
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 1, 0);
    snprintf(folder, sizeof folder, "%s", new_folder());
    snprintf(cache, sizeof cache, "folder: '%s'", folder);
    outcome_free(check_equal(photos_text, cache, 0));
    for (int i = 0; i < 4; i++) {
        struct outcome *outcome;

        damage(folder, i % 2 == 0 ? ".values" : ".index", &rng);
        outcome = check_equal(photos_text, cache, 2);
        CHECK(outcome->nodes[0].records > 0 || i % 2 == 1);
        CHECK(outcome->nodes[0].records < 3 * PHOTOS / 2);
        outcome_free(outcome);
    }
}

/* ---- processes ---- */

static _Noreturn void fill(const char *text, int threads)
{
    struct outcome_job job = job_of(text);
    struct outcome *outcome;

    outcome_job_threads(&job, threads);
    outcome = outcome_run(&job);
    _exit(outcome->code == HR_ERR_END ? 0 : 1);
}

TEST(processes_fill_one_folder_at_once)
{
    char cache[700];
    pid_t children[3];

    snprintf(cache, sizeof cache, "folder: '%s'", new_folder());
    fflush(stdout);
    for (int i = 0; i < 3; i++) {
        children[i] = fork();
        if (children[i] == 0)
            fill(photos_text(cache), i);
    }
    for (int i = 0; i < 3; i++) {
        int status;

        CHECK(waitpid(children[i], &status, 0) == children[i] && status == 0);
    }
    {
        struct outcome *outcome = check_equal(photos_text, cache, 2);

        CHECK_EQ_INT(outcome->nodes[0].records, 0);
        CHECK_EQ_INT(outcome->nodes[5].kept_entries, PHOTOS);
        outcome_free(outcome);
    }
}

TEST(a_run_that_was_killed_leaves_whole_records)
{
    char cache[700];
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 2, 0);
    snprintf(cache, sizeof cache, "folder: '%s'", new_folder());
    for (int i = 0; i < 4; i++) {
        struct timespec time = {0, (long)hr__rng_below(&rng, 60) * 1000000};
        pid_t child;

        fflush(stdout);
        child = fork();
        if (child == 0)
            fill(photos_text(cache), 2);
        nanosleep(&time, NULL);
        kill(child, SIGKILL);
        CHECK(waitpid(child, NULL, 0) == child);
    }
    outcome_free(check_equal(photos_text, cache, 2));
}

TEST(a_folder_that_cannot_be_made_ends_the_run_at_its_start)
{
    struct outcome_job job = job_of(photos_text("folder: /proc/none"));
    struct outcome *outcome = outcome_run(&job);

    CHECK(outcome->code != HR_ERR_END);
    CHECK_HAS(outcome->error.message, "'flow.cache'");
    CHECK_HAS(outcome->error.message, "/proc/none");
    outcome_free(outcome);
}
