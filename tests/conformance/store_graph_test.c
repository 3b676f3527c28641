/*
 * tests/conformance/store_graph_test.c - a graph over objects of another store is the
 * graph over files: one fingerprint, the same batches, from any thread count and with
 * reads ahead. What a source refuses it refuses with the URI.
 */
#include "core/alloc.h"
#include "core/file.h"
#include "core/str.h"
#include "headrace/dataset.h"
#include "store/index.h"
#include "store/store.h"
#include "store/store_memory.h"
#include "tests/conformance/photos.h"
#include "tests/support/check.h"
#include "tests/support/outcome.h"
#include "tests/support/server.h"
#include "tests/support/tar.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- data sets in files and in memory ---- */

struct copying {
    const char *from, *to;
};

static bool copy_object(void *user, const char *name, size_t name_bytes, uint64_t size)
{
    const struct copying *copying = user;
    char from[1024], to[1024], *data;
    size_t bytes;

    (void)name_bytes;
    (void)size;
    snprintf(from, sizeof from, "%s/%s", copying->from, name);
    snprintf(to, sizeof to, "%s/%s", copying->to, name);
    CHECK_OK(hr__store_load(from, 1 << 30, &data, &bytes, NULL));
    CHECK_OK(hr__memory_put(to, data, bytes, NULL));
    hr_free(data);
    return true;
}

static const char *photos_in_memory(void)
{
    static bool made;
    struct copying copying = {photos_good(), "mem://photos"};

    if (!made)
        CHECK_OK(hr__store_list(copying.from, copy_object, &copying, NULL));
    made = true;
    return "mem://photos";
}

static const char *graph_text =
    "headrace: 1\nparams:\n  data: {type: path}\n  labels: {type: string}\npipeline:\n"
    "  - source.files: {path: \"${data}\", labels: \"${labels}\", skip: unlisted}\n"
    "  - order.shuffle: {}\n"
    "  - image.decode: {}\n"
    "  - image.random_resized_crop: {size: 40}\n"
    "  - batch.stack: {size: 16}\n";

static struct outcome_job
job_of(const char *text, const char *data, const char *labels, int threads)
{
    struct outcome_job job = outcome_job_with(text, threads, NULL);

    job.params[0] = (struct hr_graph_param){"data", data};
    job.params[1] = (struct hr_graph_param){"labels", labels};
    job.param_count = labels != NULL ? 2 : 1;
    return job;
}

static void fingerprint_of(const struct outcome_job *job, char ret_text[])
{
    struct hr_error error = {0};
    struct hr_graph *graph = outcome_graph(job, &error);

    if (graph == NULL)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    CHECK_OK(hr_graph_freeze(graph, &error));
    CHECK_OK(hr_graph_fingerprint(graph, ret_text));
    hr_graph_unref(graph);
}

/* The outcomes of both are equal, batch by batch. */
static void
check_same(const char *text, const char *files, const char *objects, const char *labels)
{
    for (int threads = 0; threads < 3; threads++) {
        struct outcome_job a = job_of(text, files, labels, threads);
        struct outcome_job b = job_of(text, objects, labels, threads);
        struct outcome *x = outcome_run(&a), *y = outcome_run(&b);
        char first[HR_FINGERPRINT_BYTES], second[HR_FINGERPRINT_BYTES];

        if (x->code != HR_ERR_END || y->code != HR_ERR_END)
            check_failed(__FILE__, __LINE__, "%s %s", x->error.message, y->error.message);
        CHECK(x->batches > 0);
        CHECK_EQ_INT(x->batches, y->batches);
        CHECK_BYTES(x->hashes, y->hashes, x->batches * sizeof *x->hashes);
        fingerprint_of(&a, first);
        fingerprint_of(&b, second);
        CHECK_EQ_STR(first, second);
        outcome_free(x);
        outcome_free(y);
    }
}

TEST(photos_in_memory_give_the_batches_of_photos_in_files)
{
    const char *objects = photos_in_memory();

    check_same(graph_text, photos_good(), objects, "folder");
    check_same(graph_text, photos_good(), objects, "none");
}

TEST(a_file_uri_is_its_path)
{
    char uri[600];

    snprintf(uri, sizeof uri, "file://%s", photos_good());
    check_same(graph_text, photos_good(), uri, "folder");
}

TEST(patterns_choose_the_same_objects)
{
    char files[600];

    snprintf(files, sizeof files, "%s/[b-c]*[rt]/*.jpg", photos_good());
    (void)photos_in_memory();
    check_same(graph_text, files, "mem://photos/[b-c]*[rt]/*.jpg", "folder");
}

TEST(lines_and_arrays_are_read_where_they_lie)
{
    static const char lines[] = "one\ntwo\r\n\nfour";
    static const unsigned char idx[] = {0, 0, 8, 2, 0, 0, 0, 3, 0,
                                        0, 0, 2, 1, 2, 3, 4, 5, 6};
    char path[600];

    snprintf(path, sizeof path, "%s/lines.txt", check_temp_dir());
    CHECK_OK(hr__file_replace(path, lines, sizeof lines - 1, NULL));
    CHECK_OK(hr__memory_put("mem://lines.txt", lines, sizeof lines - 1, NULL));
    check_same("headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"
               "  - source.list: {path: \"${data}\"}\n  - batch.stack: {size: 3}\n",
               path, "mem://lines.txt", NULL);
    snprintf(path, sizeof path, "%s/some.idx", check_temp_dir());
    CHECK_OK(hr__file_replace(path, idx, sizeof idx, NULL));
    CHECK_OK(hr__memory_put("mem://some.idx", idx, sizeof idx, NULL));
    check_same("headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"
               "  - source.idx: {path: \"${data}\"}\n  - batch.stack: {size: 2}\n",
               path, "mem://some.idx", NULL);
}

TEST(records_of_archives_are_read_from_any_store)
{
    static const char data[40000]; /* too large for a window */
    char path[600], name[32];
    struct hr_str text;

    hr__str_init(&text);
    for (int i = 0; i < 9; i++) {
        snprintf(name, sizeof name, "%d.bin", i);
        tar_member(&text, name, data, (size_t)(i * i * 600));
        snprintf(name, sizeof name, "%d.cls", i);
        tar_member(&text, name, name, 1);
    }
    tar_end(&text);
    snprintf(path, sizeof path, "%s/some.tar", check_temp_dir());
    CHECK_OK(hr__file_replace(path, text.text, text.length, NULL));
    CHECK_OK(hr__memory_put("mem://some.tar", text.text, text.length, NULL));
    hr__str_finish(&text);
    check_same("headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"
               "  - source.tar: {path: \"${data}\", fields: {data: bin, label: cls}}\n"
               "  - order.shuffle: {}\n  - batch.stack: {size: 2, ragged: true}\n",
               path, "mem://some.tar", NULL);
}

TEST(lines_are_read_from_any_store)
{
    static const char lines[] = "one\ntwo\r\n\nfour";
    char path[600];

    snprintf(path, sizeof path, "%s/some.txt", check_temp_dir());
    CHECK_OK(hr__file_replace(path, lines, sizeof lines - 1, NULL));
    CHECK_OK(hr__memory_put("mem://some.txt", lines, sizeof lines - 1, NULL));
    check_same("headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"
               "  - source.lines: {path: \"${data}\"}\n"
               "  - order.shuffle: {}\n  - batch.stack: {size: 3, ragged: true}\n",
               path, "mem://some.txt", NULL);
}

TEST(arrays_of_numpy_are_read_from_any_store)
{
    static const char dict[] =
        "{'descr': '>i2', 'fortran_order': False, 'shape': (9, 3, 6000)}\n";
    static char file[10 + sizeof dict - 1 + 9 * 36000] = "\x93NUMPY\x01";
    char path[600];

    file[8] = (char)(sizeof dict - 1);
    memcpy(file + 10, dict, sizeof dict - 1);
    for (size_t i = 10 + sizeof dict; i < sizeof file; i++)
        file[i] = (char)(i * i >> 7);
    snprintf(path, sizeof path, "%s/some.npy", check_temp_dir());
    CHECK_OK(hr__file_replace(path, file, sizeof file, NULL));
    CHECK_OK(hr__memory_put("mem://some.npy", file, sizeof file, NULL));
    check_same("headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"
               "  - source.npy: {path: \"${data}\"}\n"
               "  - order.shuffle: {}\n  - batch.stack: {size: 2}\n",
               path, "mem://some.npy", NULL);
}

TEST(arrow_files_are_read_from_any_store)
{
    static const char *const names[] = {"plain", "zstd"};
    char path[600], uri[64], *data;
    size_t bytes;

    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/fuzz/corpus/arrow/%s", check_source_dir(),
                 names[i]);
        snprintf(uri, sizeof uri, "mem://some-%s.arrow", names[i]);
        CHECK_OK(hr__store_load(path, 1 << 20, &data, &bytes, NULL));
        CHECK_OK(hr__memory_put(uri, data, bytes, NULL));
        hr__free(data);
        check_same(
            i == 0 ? "headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"
                     "  - source.arrow: {path: \"${data}\", batch_cache: 0}\n"
                     "  - order.shuffle: {}\n  - batch.stack: {size: 5, ragged: true}\n"
                   : "headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"
                     "  - source.arrow: {path: \"${data}\", columns: [i, l, t, d], "
                     "fill: {i: '-1', t: none}}\n"
                     "  - order.shuffle: {}\n  - batch.stack: {size: 2, ragged: true}\n",
            path, uri, NULL);
    }
}

TEST(parquet_files_are_read_from_any_store)
{
    static const char *const names[] = {"plain", "gzip"};
    char path[600], uri[64], *data;
    size_t bytes;

    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/fuzz/corpus/parquet/%s", check_source_dir(),
                 names[i]);
        snprintf(uri, sizeof uri, "mem://some-%s.parquet", names[i]);
        CHECK_OK(hr__store_load(path, 1 << 20, &data, &bytes, NULL));
        CHECK_OK(hr__memory_put(uri, data, bytes, NULL));
        hr__free(data);
        check_same(
            i == 0 ? "headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"
                     "  - source.parquet: {path: \"${data}\", page_cache: 0}\n"
                     "  - order.shuffle: {}\n  - batch.stack: {size: 5, ragged: true}\n"
                   : "headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"
                     "  - source.parquet: {path: \"${data}\", columns: [i, l, t, d], "
                     "fill: {i: '-1', t: none, l: '=', d: '0'}}\n"
                     "  - order.shuffle: {}\n  - batch.stack: {size: 2, ragged: true}\n",
            path, uri, NULL);
    }
}

TEST(pictures_of_voc_are_read_from_any_store)
{
    static const char *const folders[] = {"",
                                          "JPEGImages",
                                          "SegmentationClass",
                                          "Annotations",
                                          "ImageSets",
                                          "ImageSets/Segmentation",
                                          "ImageSets/Main"};
    static const struct {
        const char *name, *text;
    } files[] = {
        {"JPEGImages/a.jpg",                 "a picture"                                    },
        {"JPEGImages/b.jpg",                 "another"                                      },
        {"SegmentationClass/a.png",          "a mask"                                       },
        {"SegmentationClass/b.png",          "the other"                                    },
        {"Annotations/a.xml",                "<annotation><object><name>cat</name><bndbox>"
                              "<xmin>1</xmin><xmax>2</xmax><ymin>3</ymin><ymax>4</ymax>"
                              "</bndbox></object></annotation>"},
        {"Annotations/b.xml",                "<annotation/>"                                },
        {"ImageSets/Segmentation/train.txt", "a\nb\n"                                       },
        {"ImageSets/Main/train.txt",         "b\na\n"                                       },
    };
    char path[600];

    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(path, sizeof path, "%s/voc/%s", check_temp_dir(), folders[i]);
        CHECK_EQ_INT(mkdir(path, 0700), 0);
    }
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/voc/%s", check_temp_dir(), files[i].name);
        CHECK_OK(hr__file_replace(path, files[i].text, strlen(files[i].text), NULL));
        snprintf(path, sizeof path, "mem://voc/%s", files[i].name);
        CHECK_OK(hr__memory_put(path, files[i].text, strlen(files[i].text), NULL));
    }
    snprintf(path, sizeof path, "%s/voc/", check_temp_dir());
    check_same("headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"
               "  - source.voc: {path: \"${data}\", task: segmentation}\n"
               "  - order.shuffle: {}\n  - batch.stack: {size: 1, ragged: true}\n",
               path, "mem://voc", NULL);
#ifdef HR_XML
    check_same("headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"
               "  - source.voc: {path: \"${data}\", find_classes: true}\n"
               "  - order.shuffle: {}\n  - batch.stack: {size: 1, ragged: true}\n",
               path, "mem://voc", NULL);
#endif
}

TEST(rows_are_read_from_any_store)
{
    static const char objects[] =
        "{\"a\": 1, \"b\": \"x\"}\n\n{\"a\": 2.5, \"b\": \"\\n\"}";
    static const char cells[] = "a,b\n1,x\n2.5,\"\n\"";
    char path[600];

    snprintf(path, sizeof path, "%s/some.jsonl", check_temp_dir());
    CHECK_OK(hr__file_replace(path, objects, sizeof objects - 1, NULL));
    CHECK_OK(hr__memory_put("mem://some.jsonl", objects, sizeof objects - 1, NULL));
    check_same("headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"
               "  - source.jsonl: {path: \"${data}\"}\n"
               "  - order.shuffle: {}\n  - batch.stack: {size: 2, ragged: true}\n",
               path, "mem://some.jsonl", NULL);
    snprintf(path, sizeof path, "%s/some.csv", check_temp_dir());
    CHECK_OK(hr__file_replace(path, cells, sizeof cells - 1, NULL));
    CHECK_OK(hr__memory_put("mem://some.csv", cells, sizeof cells - 1, NULL));
    check_same("headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"
               "  - source.csv: {path: \"${data}\"}\n"
               "  - order.shuffle: {}\n  - batch.stack: {size: 2, ragged: true}\n",
               path, "mem://some.csv", NULL);
}

TEST(a_list_of_labels_names_objects)
{
    static const char list[] = "path,label\nboat/photo_00000001.jpg,b\n"
                               "balloon/photo_00000000.jpg,a\n";
    char path[600];

    snprintf(path, sizeof path, "%s/labels.csv", check_temp_dir());
    CHECK_OK(hr__file_replace(path, list, sizeof list - 1, NULL));
    check_same(graph_text, photos_good(), photos_in_memory(), path);
    CHECK_OK(hr__memory_put("mem://labels.csv", list, sizeof list - 1, NULL));
    check_same(graph_text, photos_good(), photos_in_memory(), "mem://labels.csv");
}

/* ---- what an index makes of names that no folder has ---- */

static struct hr_index_options options_of(const char *root)
{
    return (struct hr_index_options){.root = root, .recursive = true};
}

static void put(const char *uri)
{
    CHECK_OK(hr__memory_put(uri, "x", 1, NULL));
}

/* "/etc/x" below a root would be read as a local path. */
TEST(names_with_empty_parts_are_passed_over_and_counted)
{
    struct hr_index_options options = options_of("mem://odd");
    struct hr_index_stats stats;
    struct hr_index *index;
    char path[64];

    put("mem://odd//etc/x.jpg");
    put("mem://odd/a//b.jpg");
    put("mem://odd/a/../b.jpg");
    put("mem://odd/.hidden/c.jpg");
    put("mem://odd/d.jpg");
    CHECK_OK(hr__index_open(&options, &index, NULL));
    hr__index_stats(index, &stats);
    CHECK_EQ_INT(hr__index_count(index), 1);
    CHECK_EQ_INT(stats.skipped, 2);
    CHECK_OK(hr__index_path(index, 0, path, sizeof path, NULL));
    CHECK_EQ_STR(path, "mem://odd/d.jpg");
    hr__index_unref(index);
}

TEST(classes_without_photos_count_and_photos_without_class_are_refused)
{
    static const char *const suffixes[] = {".jpg"};
    struct hr_index_options options = options_of("mem://classes");
    struct hr_error error = {0};
    struct hr_index *index;

    put("mem://classes/b/1.jpg");
    put("mem://classes/a/note.txt");
    options.suffixes = suffixes;
    options.suffix_count = 1;
    options.folder_labels = true;
    CHECK_OK(hr__index_open(&options, &index, NULL));
    CHECK_EQ_INT(hr__index_count(index), 1);
    CHECK_EQ_INT(hr__index_label(index, 0), 1);
    CHECK_EQ_INT(hr__index_classes(index)->count, 2);
    CHECK_EQ_STR(hr__index_classes(index)->names[0], "a");
    hr__index_unref(index);
    put("mem://classes/c.jpg");
    CHECK_ERR(HR_ERR_ARGUMENT, hr__index_open(&options, &index, &error));
    CHECK_HAS(error.message, "c.jpg lies in mem://classes itself");
    options.folder_labels = false;
    options.recursive = false;
    CHECK_OK(hr__index_open(&options, &index, NULL));
    CHECK_EQ_INT(hr__index_count(index), 1);
    hr__index_unref(index);
}

/* ---- errors ---- */

TEST(what_cannot_be_read_is_refused_with_its_uri)
{
    static const char *const uris[][2] = {
        {"mem://nothing/here", "mem://nothing/here"        },
        {"s9://bucket",        "no store has the scheme s9"},
    };

    for (size_t i = 0; i < sizeof uris / sizeof uris[0]; i++) {
        struct outcome_job job = job_of(graph_text, uris[i][0], "none", 0);
        struct outcome *outcome = outcome_run(&job);

        CHECK(outcome->code != HR_ERR_END);
        CHECK_HAS(outcome->error.message, uris[i][1]);
        outcome_free(outcome);
    }
}

TEST(a_bad_object_is_named_by_its_uri)
{
    struct outcome_job job = job_of(graph_text, "mem://bad", "none", 2);
    struct outcome *outcome;

    CHECK_OK(hr__memory_put("mem://bad/x.jpg", "no photo", 8, NULL));
    outcome = outcome_run(&job);
    CHECK(outcome->code != HR_ERR_END);
    CHECK_HAS(outcome->error.message, "mem://bad/x.jpg");
    CHECK_EQ_STR(outcome->error.file, "mem://bad/x.jpg");
    outcome_free(outcome);
}

/* ---- a server that does not answer ---- */

/* A plan by which the consumer's thread makes batches whatever they take. */
static char *
plan_that_helps(struct hr_graph *graph, const struct hr_iter_options *options)
{
    char *plan = NULL;

    CHECK_OK(hr_graph_plan(graph, options, HR_GRAPH_YAML, &plan, NULL));
    return outcome_edit_plan(plan, "help_ns", "1000000000000");
}

/* Eight objects come, eight do not. */
TEST(a_wait_with_an_end_is_not_spent_at_a_server)
{
    const char *root = http_server_start(check_temp_dir());
    char path[1024], text[2048];
    struct outcome_job job;
    struct hr_graph *graph;
    struct hr_batch *batch;
    struct hr_iter *iter;
    enum hr_err code;
    int got = 0, empty = 0;

    setenv("HEADRACE_HTTP_STALL_MS", "3000", 1);
    setenv("HEADRACE_HTTP_TRIES", "1", 1);
    setenv("HEADRACE_HTTP_HEDGE", "0", 1);
    snprintf(path, sizeof path, "%s/o", check_temp_dir());
    CHECK_OK(hr__file_replace(path, "abc", 3, NULL));
    snprintf(text, sizeof text,
             "headrace: 1\npipeline:\n  - source.files: {path: \"%s\", suffixes: [],\n"
             "      files: [o, o, o, o, o, o, o, o, f/stall=0/o, f/stall=0/o, "
             "f/stall=0/o, f/stall=0/o, f/stall=0/o, f/stall=0/o, f/stall=0/o, "
             "f/stall=0/o]}\n  - batch.stack: {size: 1}\n",
             root);
    job = outcome_job_with(text, 1, NULL);
    graph = outcome_graph(&job, NULL);
    CHECK(graph != NULL);
    job.options.plan = plan_that_helps(graph, &job.options);
    CHECK_OK(hr_iter_open(graph, &job.options, &iter, NULL));
    do {
        code = hr_iter_next_for(iter, UINT64_C(10000000), &batch, NULL);
        if (code == HR_OK && batch != NULL)
            got++;
        else if (got == 8)
            empty++;
        hr_batch_unref(code == HR_OK ? batch : NULL);
    } while (code == HR_OK && empty < 10);
    CHECK_EQ_INT(code, HR_OK);
    CHECK_EQ_INT(got, 8);
    hr_iter_close(iter);
    hr__free((char *)(uintptr_t)job.options.plan);
    hr_graph_unref(graph);
}
