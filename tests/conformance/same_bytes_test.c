/*
 * tests/conformance/same_bytes_test.c - a graph over photos, sounds or texts has one
 * digest, however it is run: number of threads, instruction set, read-ahead, memory,
 * fusion, restarts after each batch, in every mode; also if a filter drops a third, and
 * if photos are broken. Another seed or epoch has another digest. kill_test covers kill
 * -9; src/engine has the same tests on numbers.
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/image.h"
#include "codec/video.h"
#include "core/alloc.h"
#include "core/cpu.h"
#include "core/file.h"
#include "core/str.h"
#include "graph/graph.h"
#include "opt/opt.h"
#include "store/store.h"
#include "tests/conformance/photos.h"
#include "tests/support/check.h"
#include "tests/support/outcome.h"
#include "tests/support/wav.h"

#define HEAD                                                                             \
    "headrace: 1\n"                                                                      \
    "params:\n"                                                                          \
    "  data: {type: path}\n"                                                             \
    "pipeline:\n"                                                                        \
    "  - source.files: {path: \"${data}\", labels: folder}\n"                            \
    "  - order.shuffle: {}\n"
#define DROP_THIRD "  - record.filter: {expr: \"label % 3 != 1\"}\n"
#define DECODE_EXACT "  - image.decode: {mode: exact}\n"
#define DECODE_CLOSE "  - image.decode: {mode: close}\n"
#define DECODE_FAST "  - image.decode: {mode: fast}\n"
#define TRAIN                                                                            \
    "  - image.random_resized_crop: {size: 40}\n"                                        \
    "  - image.flip: {p: 0.5}\n"                                                         \
    "  - image.normalize: {mean: imagenet, std: imagenet}\n"                             \
    "  - tensor.layout: {order: chw}\n"
#define VIEWS                                                                            \
    "  - image.rand_augment: {num_ops: 3}\n"                                             \
    "  - image.aug_mix: {}\n"                                                            \
    "  - tensor.cast: {dtype: float32}\n"                                                \
    "  - image.random_resized_crop: {size: 44}\n"                                        \
    "  - image.flip: {p: 0.5}\n"                                                         \
    "  - image.color_jitter: {brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: "    \
    "0.1}\n"                                                                             \
    "  - image.grayscale: {p: 0.2, channels: 3}\n"                                       \
    "  - image.gaussian_blur: {size: 7, sigma: [0.1, 2.0]}\n"                            \
    "  - image.normalize: {mean: imagenet, std: imagenet}\n"
#define EVALUATE                                                                         \
    "  - image.resize_shortest: {size: 48}\n"                                            \
    "  - image.center_crop: {size: 40}\n"                                                \
    "  - image.normalize: {mean: imagenet, std: imagenet, dtype: bfloat16}\n"
#define BATCH "  - batch.stack: {size: 7}\n"

struct variation {
    const char *name;
    int threads; /* 0: inline */
    enum hr_isa isa;
    uint64_t ahead, memory; /* memory 1: the minimum that works */
    bool written;           /* compose nothing */
};

#define BEST HR_ISA_AVX512
static const struct variation variations[] = {
    {"one thread",                        1, BEST,        0,        0,         false},
    {"two threads",                       2, BEST,        0,        0,         false},
    {"three threads",                     3, BEST,        0,        0,         false},
    {"eight threads",                     8, BEST,        0,        0,         false},
    {"plain C",                           2, HR_ISA_C,    0,        0,         false},
    {"AVX2",                              2, HR_ISA_AVX2, 0,        0,         false},
    {"little read-ahead",                 2, BEST,        4096,     0,         false},
    {"much read-ahead",                   2, BEST,        64 << 20, 0,         false},
    {"little memory",                     2, BEST,        0,        1,         false},
    {"much memory",                       3, BEST,        0,        512 << 20, false},
    {"every node alone",                  2, BEST,        0,        0,         true },
    {"every node alone, inline, plain C", 0, HR_ISA_C,    0,        0,         true },
};

static struct outcome_job job_text(const char *text, const char *photos)
{
    struct outcome_job job = outcome_job_text(text);

    job.params[job.param_count++] = (struct hr_graph_param){"data", photos};
    return job;
}

static struct outcome_job job_example(const char *name, char *path, size_t room)
{
    struct outcome_job job = job_text(NULL, photos_good());

    snprintf(path, room, "%s/examples/%s.yaml", check_source_dir(), name);
    job.path = path;
    job.params[job.param_count++] = (struct hr_graph_param){"size", "40"};
    job.params[job.param_count++] = (struct hr_graph_param){"batch", "7"};
    return job;
}

/* The smallest of a series of doubling values with which the graph opens. */
static uint64_t least_memory(const struct outcome_job *given)
{
    struct outcome_job job = *given;

    job.options.records_max = 1;
    for (uint64_t memory = 1 << 14; memory < (uint64_t)1 << 32; memory *= 2) {
        struct outcome *o;
        bool enough;

        job.options.memory_bytes = memory;
        o = outcome_run(&job);
        enough = o->code == HR_ERR_END || o->code != HR_ERR_LIMIT;
        outcome_free(o);
        if (enough)
            return memory;
    }
    check_failed(__FILE__, __LINE__, "no memory is enough");
}

static void check_variation(const struct outcome_job *given, const struct outcome *whole,
                            const struct variation *v)
{
    struct outcome_job job = *given;
    struct outcome *other;

    outcome_job_threads(&job, v->threads);
    job.states = false;
    job.options.ahead_bytes = v->ahead;
    job.options.memory_bytes = v->memory;
    job.options.fuse = !v->written;
    if (v->memory == 1)
        job.options.memory_bytes = least_memory(&job);
    hr__isa_limit(v->isa);
    other = outcome_run(&job);
    hr__isa_limit(BEST);
    outcome_check_same(whole, other, 0, v->name);
    outcome_free(other);
}

/* Checks that all variations and restarts give what the inline run gives, which is
 * returned. */
static struct outcome *check_one_digest(struct outcome_job job)
{
    struct outcome *whole;

    job.states = true;
    whole = outcome_run(&job);
    if (whole->code != HR_ERR_END)
        check_failed(__FILE__, __LINE__, "%s", whole->error.message);
    CHECK(whole->batches > 1);
    for (size_t i = 0; i < sizeof variations / sizeof variations[0]; i++)
        check_variation(&job, whole, &variations[i]);
    outcome_check_restarts(&job, whole, SIZE_MAX);
    return whole;
}

static void check_example(const char *name)
{
    char path[1024];
    struct outcome *o = check_one_digest(job_example(name, path, sizeof path));

    CHECK_EQ_INT(o->records, PHOTOS);
    outcome_free(o);
}

TEST(vision_rrc_has_one_digest)
{
    check_example("vision_rrc");
}

TEST(vision_eval_has_one_digest)
{
    check_example("vision_eval");
}

TEST(simclr_has_one_digest)
{
    check_example("simclr");
}

static void check_text(const char *text, const char *photos, int64_t records)
{
    struct outcome *o = check_one_digest(job_text(text, photos));

    if (records > 0)
        CHECK_EQ_INT(o->records, records);
    outcome_free(o);
}

/* As ResNet50 of examples/papers has it, and cv_tf. */
TEST(turned_windows_have_one_digest)
{
    check_text(HEAD DECODE_CLOSE "  - image.random_area_crop: {scale: [0.05, 1]}\n"
                                 "  - image.flip: {p: 0.5}\n"
                                 "  - image.rotate: {degrees: [0, 5]}\n"
                                 "  - image.affine: {degrees: 0, shear: 5.71}\n"
                                 "  - image.resize: {size: 40, antialias: false}\n"
                                 "  - image.standardize: {}\n" BATCH,
               photos_good(), PHOTOS);
}

/* ---- videos ---- */

/* All clips of four videos of 24 frames, taken apart into frames; one at random. */
TEST(clips_of_videos_have_one_digest)
{
    char folder[600], version[64];

    if (hr__video_version(version, sizeof version, NULL) != HR_OK)
        SKIP("FFmpeg's libraries are missing");
    snprintf(folder, sizeof folder, "%s/fuzz/corpus/video", check_source_dir());
    check_text("headrace: 1\n"
               "params:\n"
               "  data: {type: path}\n"
               "pipeline:\n"
               "  - source.files: {path: \"${data}\", suffixes: [mkv, mp4, webm, mpg]}\n"
               "  - order.shuffle: {}\n"
               "  - video.clips: {frames: 7, step: 8}\n"
               "  - video.decode: {frames: 3, stride: 3, start_from: start, size: 12}\n"
               "  - record.flat: {fields: video}\n"
               "  - image.flip: {field: video, p: 0.5}\n" BATCH,
               folder, 4 * 3 * 3);
    check_text("headrace: 1\n"
               "params:\n"
               "  data: {type: path}\n"
               "pipeline:\n"
               "  - source.files: {path: \"${data}\", suffixes: [mkv, mp4, webm, mpg]}\n"
               "  - video.decode: {frames: 4, start_to: start, fps_to: fps}\n"
               "  - batch.stack: {size: 2}\n",
               folder, 4);
}

/* ---- scenes ---- */

struct listing {
    struct hr_str images, boxes;
    int count;
};

/* hr_store_visit_fn: a photo with up to three boxes. */
static bool add_photo(void *user, const char *name, size_t name_bytes, uint64_t bytes)
{
    struct listing *l = user;

    (void)bytes;
    if (name_bytes < 4 || memcmp(name + name_bytes - 4, ".jpg", 4) != 0)
        return true;
    hr__str_addf(&l->images, "%s{\"id\": %d, \"file_name\": \"%.*s\"}",
                 l->count > 0 ? ", " : "", l->count, (int)name_bytes, name);
    for (int i = 0; i < l->count % 4; i++)
        hr__str_addf(&l->boxes,
                     "%s{\"id\": %d, \"image_id\": %d, \"category_id\": %d, \"bbox\": "
                     "[%d, %d.5, %d, %d]}",
                     l->boxes.length > 0 ? ", " : "", 10 * l->count + i, l->count,
                     1 + i % 2, 5 + 7 * i, l->count % 9, 20 + l->count % 30, 11 + 9 * i);
    l->count++;
    return true;
}

/* The annotations of photos_good(). */
static const char *annotations(void)
{
    static char path[512];
    struct listing l = {.count = 0};
    struct hr_str file;

    if (path[0] != '\0')
        return path;
    hr__str_init(&l.images);
    hr__str_init(&l.boxes);
    hr__str_init(&file);
    CHECK_OK(hr__store_list(photos_good(), add_photo, &l, NULL));
    CHECK_EQ_INT(l.count, PHOTOS);
    hr__str_addf(&file,
                 "{\"images\": [%s], \"annotations\": [%s], \"categories\": [{\"id\": 1, "
                 "\"name\": \"a\"}, {\"id\": 2, \"name\": \"b\"}]}",
                 hr__str_text(&l.images), hr__str_text(&l.boxes));
    snprintf(path, sizeof path, "%s/instances.json", check_temp_dir());
    CHECK_OK(hr__file_replace(path, file.text, file.length, NULL));
    hr__str_finish(&l.images);
    hr__str_finish(&l.boxes);
    hr__str_finish(&file);
    return path;
}

/* As SSD of examples/papers has it. */
TEST(scenes_have_one_digest)
{
    static const char text[] =
        "headrace: 1\n"
        "params:\n"
        "  data: {type: path}\n"
        "  annotations: {type: path}\n"
        "pipeline:\n"
        "  - source.coco: {path: \"${data}\", annotations: \"${annotations}\"}\n"
        "  - order.shuffle: {}\n" DECODE_CLOSE
        "  - image.zoom_out: {fill: [123, 117, 104], p: 1, field: [image, boxes]}\n"
        "  - image.iou_crop: {field: [image, boxes]}\n"
        "  - boxes.sanitize: {}\n"
        "  - image.flip: {p: 0.5, field: [image, boxes]}\n"
        "  - boxes.anchors: {size: 64}\n"
        "  - image.photometric_distort: {p: 1}\n"
        "  - tensor.cast: {dtype: float32, scale: true}\n"
        "  - batch.stack: {size: 7, ragged: true}\n";
    struct outcome_job job = job_text(text, photos_good());
    struct outcome *o;

    job.params[job.param_count++] = (struct hr_graph_param){"annotations", annotations()};
    o = check_one_digest(job);
    CHECK_EQ_INT(o->records, PHOTOS);
    outcome_free(o);
}

/* ---- Pascal VOC ---- */

static void make_folder(const char *name, char *ret_path)
{
    snprintf(ret_path, 512, "%s/voc%s", check_temp_dir(), name);
    CHECK_EQ_INT(mkdir(ret_path, 0700), 0);
}

struct voc_set {
    char folder[512];
    struct hr_str names;
    int count;
};

/* An annotation with up to three boxes, and a mask of stripes. */
static void describe_photo(const struct voc_set *set, int32_t width, int32_t height)
{
    uint8_t *levels = malloc((size_t)width * (size_t)height);
    struct hr_pixels pixels = hr__pixels_u8(levels, width, height, 1);
    struct hr_str text;
    char path[600];
    size_t bytes;
    void *png;

    CHECK(levels != NULL);
    for (int32_t i = 0; i < width * height; i++)
        levels[i] = (uint8_t)(i % width / 7 % 3 == 0 ? 255 : i / width / 9 + set->count);
    CHECK_OK(hr__image_encode_png(&pixels, &png, &bytes, NULL));
    snprintf(path, sizeof path, "%s/SegmentationClass/%d.png", set->folder, set->count);
    CHECK_OK(hr__file_replace(path, png, bytes, NULL));
    hr__str_init(&text);
    hr__str_addf(&text, "<annotation><size><width>%d</width><height>%d</height></size>\n",
                 (int)width, (int)height);
    for (int i = 0; i < set->count % 4; i++)
        hr__str_addf(&text,
                     "<object><name>%s</name><bndbox><xmin>%d</xmin><ymin>%d</ymin>"
                     "<xmax>%d</xmax><ymax>%d</ymax></bndbox></object>\n",
                     i % 2 == 0 ? "cat" : "sofa", 5 + 7 * i, 1 + set->count % 9,
                     25 + 7 * i, 30 + i);
    hr__str_add(&text, "</annotation>");
    snprintf(path, sizeof path, "%s/Annotations/%d.xml", set->folder, set->count);
    CHECK_OK(hr__file_replace(path, text.text, text.length, NULL));
    hr__str_finish(&text);
    hr__free(png);
    free(levels);
}

/* hr_store_visit_fn: a photo of the set. */
static bool add_to_voc(void *user, const char *name, size_t name_bytes, uint64_t bytes)
{
    struct voc_set *set = user;
    struct hr_image_info info;
    char photo[1024], path[600];
    char *data;
    size_t size;

    (void)bytes;
    if (name_bytes < 4 || memcmp(name + name_bytes - 4, ".jpg", 4) != 0)
        return true;
    snprintf(photo, sizeof photo, "%s/%.*s", photos_good(), (int)name_bytes, name);
    snprintf(path, sizeof path, "%s/JPEGImages/%d.jpg", set->folder, set->count);
    CHECK_EQ_INT(symlink(photo, path), 0);
    CHECK_OK(hr__store_load(photo, 1 << 24, &data, &size, NULL));
    CHECK_OK(hr__image_probe(data, size, &info, NULL));
    describe_photo(set, info.width, info.height);
    hr__str_addf(&set->names, "%d\n", set->count++);
    hr__free(data);
    return true;
}

/* photos_good() as a set of Pascal VOC. */
static const char *voc_folder(void)
{
    static struct voc_set set;
    static const char *const folders[] = {
        "/JPEGImages", "/Annotations",    "/SegmentationClass",
        "/ImageSets",  "/ImageSets/Main", "/ImageSets/Segmentation"};
    char path[600];

    if (set.folder[0] != '\0')
        return set.folder;
    make_folder("", set.folder);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        make_folder(folders[i], path);
    hr__str_init(&set.names);
    CHECK_OK(hr__store_list(photos_good(), add_to_voc, &set, NULL));
    for (size_t i = 4; i < 6; i++) {
        snprintf(path, sizeof path, "%s%s/train.txt", set.folder, folders[i]);
        CHECK_OK(hr__file_replace(path, set.names.text, set.names.length, NULL));
    }
    hr__str_finish(&set.names);
    return set.folder;
}

#define VOC(params)                                                                      \
    "headrace: 1\n"                                                                      \
    "params:\n"                                                                          \
    "  data: {type: path}\n"                                                             \
    "pipeline:\n"                                                                        \
    "  - source.voc: {path: \"${data}\", " params "}\n"                                  \
    "  - order.shuffle: {}\n" DECODE_CLOSE

TEST(masks_have_one_digest)
{
    check_text(
        VOC("task: segmentation, columns: [name]") "  - image.decode: {field: mask, to: "
                                                   "mask, color: labels}\n"
                                                   "  - image.scale_jitter: {size: 70, "
                                                   "scale: [0.5, 1.5], field: [image, "
                                                   "mask]}\n"
                                                   "  - image.random_crop: {size: 50, "
                                                   "pad_if_needed: true, mask_fill: 255, "
                                                   "field: "
                                                   "[image, mask]}\n"
                                                   "  - image.flip: {p: 0.5, field: "
                                                   "[image, mask]}\n"
                                                   "  - image.rotate: {degrees: 9, "
                                                   "mask_fill: 255, field: [image, "
                                                   "mask]}\n"
                                                   "  - tensor.cast: {field: mask, "
                                                   "dtype: int64}\n" BATCH,
        voc_folder(), PHOTOS);
}

#ifdef HR_XML
TEST(annotated_photos_have_one_digest)
{
    check_text(
        VOC("columns: [name]") "  - image.iou_crop: {field: [image, boxes]}\n"
                               "  - boxes.sanitize: {rows: [labels, difficult, "
                               "truncated]}\n"
                               "  - image.resize: {size: 40, field: [image, boxes]}\n"
                               "  - batch.stack: {size: 7, ragged: true}\n",
        voc_folder(), PHOTOS);
}
#endif

TEST(fusion_changes_no_byte_in_any_mode)
{
    static const char *const graphs[] = {
        HEAD DECODE_EXACT TRAIN BATCH,    HEAD DECODE_CLOSE TRAIN BATCH,
        HEAD DECODE_FAST TRAIN BATCH,     HEAD DECODE_EXACT EVALUATE BATCH,
        HEAD DECODE_CLOSE EVALUATE BATCH, HEAD DECODE_FAST EVALUATE BATCH,
        HEAD DECODE_EXACT VIEWS BATCH,    HEAD DECODE_CLOSE VIEWS BATCH,
        HEAD DECODE_FAST VIEWS BATCH,
    };

    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++)
        check_text(graphs[i], photos_good(), PHOTOS);
}

/* As a cache of decoded pixels would. */
static enum hr_err make_decoded(void *user, struct hr_graph *graph, struct hr_error *e)
{
    (void)user;
    (void)e;
    CHECK_EQ_STR(graph->nodes[2].op->name, "image.decode");
    return hr__graph_make_after(graph, 2);
}

TEST(making_photos_early_changes_bytes_in_mode_close_only_and_leaves_one_digest)
{
    static const char *const graphs[] = {HEAD DECODE_EXACT EVALUATE BATCH,
                                         HEAD DECODE_CLOSE EVALUATE BATCH};

    for (int i = 0; i < 2; i++) {
        struct outcome_job job = job_text(graphs[i], photos_good());
        struct outcome *plain = outcome_run(&job), *early;

        job.prepare = make_decoded;
        early = check_one_digest(job);
        CHECK((outcome_difference(plain, early, 0) != NULL) == (i == 1));
        outcome_free(plain);
        outcome_free(early);
    }
}

/* Of 2 kB and less, which lie side by side in a block where they are made. */
TEST(a_cut_between_edits_of_small_images_changes_no_byte)
{
    static const char text[] =
        HEAD DECODE_CLOSE "  - image.center_crop: {size: [14, 48]}\n"
                          "  - image.resize_shortest: {size: 5}\n" BATCH;
    struct outcome_job job = job_text(text, photos_good());
    struct hr_graph *graph = outcome_graph(&job, NULL);
    struct hr_opt_settings settings = {.cpus = 2, .ordered = true, .fuse = true};
    struct outcome *whole = outcome_run(&job);

    CHECK(graph != NULL);
    CHECK_OK(hr_graph_freeze(graph, NULL));
    for (uint32_t node = 2; node < 4; node++) { /* the decode, the crop */
        struct hr_plan plan;
        struct outcome *o;
        struct hr_str out;

        settings.cuts = &node;
        settings.cut_count = 1;
        CHECK_OK(hr__plan_make(graph, &settings, &plan, NULL));
        hr__str_init(&out);
        hr__plan_print(&plan, HR_GRAPH_YAML, &out);
        job.options.plan = hr__str_text(&out);
        o = outcome_run(&job);
        outcome_check_same(whole, o, 0, graph->nodes[node].name);
        outcome_free(o);
        hr__str_finish(&out);
        hr__plan_finish(&plan);
    }
    outcome_free(whole);
    hr_graph_unref(graph);
}

TEST(a_filter_that_drops_a_third_leaves_one_digest)
{
    check_text(HEAD DROP_THIRD DECODE_EXACT TRAIN BATCH, photos_good(), PHOTOS * 3 / 4);
    check_text(HEAD DECODE_EXACT TRAIN DROP_THIRD
               "  - order.shuffle: {window: 16}\n" BATCH,
               photos_good(), PHOTOS * 3 / 4);
}

static void check_broken(enum hr_on_error policy, const char *text, int every)
{
    struct outcome_job job = job_text(text, photos_broken(every));
    int64_t broken = (PHOTOS - 4) / every + 1;
    struct outcome *o;

    job.options.on_error = policy;
    job.options.epochs = 2;
    o = check_one_digest(job);
    if (strstr(text, "filter") == NULL) {
        CHECK(o->stats.errors >= (uint64_t)(2 * broken));
        if (policy == HR_ON_ERROR_SUBSTITUTE)
            CHECK_EQ_INT(o->stats.substituted, 2 * broken);
        CHECK_EQ_INT(o->records,
                     2 * (PHOTOS - (policy == HR_ON_ERROR_SKIP ? broken : 0)));
    }
    outcome_free(o);
}

TEST(one_in_a_hundred_broken_leaves_one_digest)
{
    check_broken(HR_ON_ERROR_SKIP, HEAD DECODE_EXACT TRAIN BATCH, 100);
    check_broken(HR_ON_ERROR_SUBSTITUTE, HEAD DECODE_EXACT TRAIN BATCH, 100);
}

TEST(one_in_ten_broken_leaves_one_digest)
{
    check_broken(HR_ON_ERROR_SKIP, HEAD DECODE_EXACT TRAIN BATCH, 10);
    check_broken(HR_ON_ERROR_SUBSTITUTE, HEAD DECODE_EXACT TRAIN BATCH, 10);
}

TEST(one_in_ten_broken_after_a_filter_leaves_one_digest)
{
    check_broken(HR_ON_ERROR_SKIP, HEAD DROP_THIRD DECODE_EXACT TRAIN BATCH, 10);
    check_broken(HR_ON_ERROR_SUBSTITUTE, HEAD DROP_THIRD DECODE_EXACT TRAIN BATCH, 10);
}

TEST(another_seed_or_epoch_has_another_digest)
{
    struct outcome_job job = job_text(HEAD DECODE_EXACT TRAIN BATCH, photos_good());
    struct outcome *first = outcome_run(&job), *seed, *epoch;

    job.options.seed = 1;
    seed = outcome_run(&job);
    job.options.seed = 0;
    job.options.epoch_first = 1;
    epoch = outcome_run(&job);
    CHECK_ERR(HR_ERR_END, first->code);
    for (size_t i = 0; i < first->batches; i++) {
        CHECK(first->hashes[i] != seed->hashes[i]);
        CHECK(first->hashes[i] != epoch->hashes[i]);
        CHECK(seed->hashes[i] != epoch->hashes[i]);
    }
    outcome_free(first);
    outcome_free(seed);
    outcome_free(epoch);
}

TEST(a_run_that_starts_at_epoch_1_equals_the_second_epoch)
{
    struct outcome_job job = job_text(HEAD DECODE_EXACT TRAIN BATCH, photos_good());
    struct outcome *both, *second;
    const char *difference;

    job.options.epochs = 2;
    both = outcome_run(&job);
    job.options.epochs = 1;
    job.options.epoch_first = 1;
    second = outcome_run(&job);
    difference = outcome_difference(both, second, both->batches / 2);
    if (difference != NULL)
        check_failed(__FILE__, __LINE__, "%s", difference);
    outcome_free(both);
    outcome_free(second);
}

#define REAL                                                                             \
    "headrace: 1\n"                                                                      \
    "params:\n"                                                                          \
    "  data: {type: path}\n"                                                             \
    "pipeline:\n"                                                                        \
    "  - source.files: {path: \"${data}\"}\n"                                            \
    "  - order.shuffle: {}\n"                                                            \
    "  - order.take: {count: 24}\n"

/* Mixed rates, one in seven files cut short. */
static const char *sounds(void)
{
    static char dir[512];
    char path[600];

    if (dir[0] != '\0')
        return dir;
    snprintf(dir, sizeof dir, "%s/sounds", check_temp_dir());
    CHECK_EQ_INT(mkdir(dir, 0700), 0);
    for (int n = 0; n < 42; n++) {
        struct wav_head head = {1, 1 + (uint32_t)n % 2, n % 3 ? 8000 : 11025, 16, 0};
        int16_t samples[2000];
        struct hr_str file;

        for (int i = 0; i < 2000; i++)
            samples[i] = (int16_t)(i * i * (n + 1) % 30011 - 15000);
        wav_file(&file, &head, samples, 2000 + 40 * (size_t)n);
        snprintf(path, sizeof path, "%s/%02d.wav", dir, n);
        CHECK_OK(hr__file_replace(path, file.text, file.length - (n % 7 == 3), NULL));
        hr__str_finish(&file);
    }
    return dir;
}

#define HEAR                                                                             \
    "headrace: 1\n"                                                                      \
    "params:\n"                                                                          \
    "  data: {type: path}\n"                                                             \
    "pipeline:\n"                                                                        \
    "  - source.files: {path: \"${data}\", suffixes: [wav]}\n"                           \
    "  - order.shuffle: {}\n"                                                            \
    "  - audio.decode: {}\n"                                                             \
    "  - audio.mono: {}\n"                                                               \
    "  - audio.resample: {rate: 16000}\n"                                                \
    "  - audio.gain: {db: [-6, 6]}\n"

static void check_sounds(struct outcome_job job)
{
    struct outcome *o;

    job.options.on_error = HR_ON_ERROR_SKIP;
    o = check_one_digest(job);
    CHECK_EQ_INT(o->records, 36);
    CHECK_EQ_INT(o->stats.errors, 6);
    outcome_free(o);
}

TEST(asr_has_one_digest)
{
    struct outcome_job job = job_text(NULL, sounds());
    char path[1024];

    snprintf(path, sizeof path, "%s/examples/asr.yaml", check_source_dir());
    job.path = path;
    job.params[job.param_count++] = (struct hr_graph_param){"batch", "5"};
    check_sounds(job);
}

TEST(sounds_have_one_digest)
{
    static const char *const graphs[] = {
        HEAR "  - audio.trim: {top_db: 30, frame: 256, hop: 64}\n"
             "  - audio.mel: {hop: 160}\n"
             "  - audio.db: {}\n"
             "  - batch.pad: {size: 5}\n",
        HEAR "  - audio.crop: {frames: 1500}\n"
             "  - audio.spectrogram: {n_fft: 256, power: 1}\n"
             "  - audio.log: {}\n"
             "  - batch.stack: {size: 5}\n",
        HEAR "  - audio.speed: {factors: [0.9, 1, 1.1]}\n"
             "  - audio.pitch: {steps: [-2, 2], n_fft: 256}\n"
             "  - audio.time_stretch: {rate: [0.8, 1.25], n_fft: 400, hop: 100}\n"
             "  - batch.pad: {size: 5}\n",
        HEAR "  - audio.reverb: {rt60: [0.01, 0.1], p: 0.7}\n"
             "  - audio.noise: {path: \"${data}/*2.wav\", snr: [0, 20], p: 0.7}\n"
             "  - batch.pad: {size: 5}\n",
    };

    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++)
        check_sounds(job_text(graphs[i], sounds()));
}

/* ---- text ---- */

static const char *texts(void)
{
    static char dir[512];
    char path[600], line[600];

    if (dir[0] != '\0')
        return dir;
    snprintf(dir, sizeof dir, "%s/texts", check_temp_dir());
    CHECK_EQ_INT(mkdir(dir, 0700), 0);
    memset(line, 'x', sizeof line);
    for (int n = 0; n < 3; n++) {
        struct hr_str file;

        hr__str_init(&file);
        for (int i = 0; i < 40; i++) {
            hr__str_addf(&file, "%d: %.*s\n", i, i * i % 300 + (i % 13 ? 0 : 280), line);
            for (int k = i % 11 == 0 ? 3 * i + 100 : 0; k > 0; k--) /* not in a window */
                hr__str_addf(&file, "%.500s%s", line, k > 1 ? "" : "\r\n");
        }
        snprintf(path, sizeof path, "%s/%d.txt", dir, n);
        CHECK_OK(hr__file_replace(path, file.text, file.length, NULL));
        hr__str_finish(&file);
    }
    return dir;
}

TEST(lines_have_one_digest)
{
    struct outcome_job job =
        job_text("headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"
                 "  - source.lines: {path: \"${data}\", max_bytes: 90000}\n"
                 "  - order.shuffle: {}\n  - batch.stack: {size: 7, ragged: true}\n",
                 texts());
    struct outcome *o;

    job.options.on_error = HR_ON_ERROR_SKIP;
    job.options.epochs = 2;
    o = check_one_digest(job);
    CHECK_EQ_INT(o->stats.errors, 2 * 3); /* the last long one of each file */
    CHECK_EQ_INT(o->records, 2 * 3 * 43);
    outcome_free(o);
}

/* An array of uint64; one in 20 of its 120 items is larger than an int64. */
static const char *numbers(void)
{
    static const char dict[] =
        "{'descr': '<u8', 'fortran_order': False, 'shape': (120, 90)}\n";
    static char path[600], file[10 + sizeof dict - 1 + 120 * 720] = "\x93NUMPY\x01";

    file[8] = (char)(sizeof dict - 1);
    memcpy(file + 10, dict, sizeof dict - 1);
    for (size_t i = 0; i < 120; i++) {
        char *item = file + 10 + sizeof dict - 1 + 720 * i;

        memset(item, (int)i, 720);
        for (size_t k = 7; k < 720; k += 8)
            item[k] = 0;
        item[7] = i % 20 == 3 ? (char)128 : 0;
    }
    snprintf(path, sizeof path, "%s/numbers.npy", check_temp_dir());
    CHECK_OK(hr__file_replace(path, file, sizeof file, NULL));
    return path;
}

/* The same rows in both. */
#ifdef HR_ZSTD
#define WITH_NULLS "zstd"
#else
#define WITH_NULLS "file"
#endif

TEST(arrow_files_have_one_digest)
{
    char path[600];
    struct outcome_job job;
    struct outcome *o;

    snprintf(path, sizeof path, "%s/fuzz/corpus/arrow", check_source_dir());
    job = job_text("headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"
                   "  - source.arrow: {path: \"${data}/{plain,plain}\"}\n"
                   "  - order.shuffle: {}\n  - batch.stack: {size: 7, ragged: true}\n",
                   path);
    job.options.epochs = 2;
    o = check_one_digest(job);
    CHECK_EQ_INT(o->records, 2 * 48);
    outcome_free(o);
    job = job_text("headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"
                   "  - source.arrow: {path: \"${data}/" WITH_NULLS
                   "\", columns: [i, t, l, y], "
                   "fill: {i: '-7'}}\n"
                   "  - order.shuffle: {}\n  - batch.stack: {size: 1, ragged: true}\n",
                   path);
    job.options.on_error = HR_ON_ERROR_SKIP;
    o = check_one_digest(job);
    CHECK_EQ_INT(o->stats.errors, 1); /* a null */
    CHECK_EQ_INT(o->records, 2);
    outcome_free(o);
}

TEST(parquet_files_have_one_digest)
{
    char path[600];
    struct outcome_job job;
    struct outcome *o;

    snprintf(path, sizeof path, "%s/fuzz/corpus/parquet", check_source_dir());
    job =
        job_text("headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"
                 "  - source.parquet: {path: \"${data}/{plain,snappy}\", page_cache: 0}\n"
                 "  - order.shuffle: {}\n  - batch.stack: {size: 7, ragged: true}\n",
                 path);
    job.options.epochs = 2;
    o = check_one_digest(job);
    CHECK_EQ_INT(o->records, 2 * 48);
    outcome_free(o);
    job = job_text("headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"
                   "  - source.parquet: {path: \"${data}/{gzip,lz4}\", "
                   "columns: [i, t, l, x], fill: {i: '-7', t: none, l: '='}}\n"
                   "  - order.shuffle: {}\n  - batch.stack: {size: 1, ragged: true}\n",
                   path);
    job.options.on_error = HR_ON_ERROR_SKIP;
    o = check_one_digest(job);
    CHECK_EQ_INT(o->stats.errors, 6); /* nulls of x */
    CHECK_EQ_INT(o->records, 24);
    outcome_free(o);
}

TEST(rows_of_parquet_files_where_a_condition_holds_have_one_digest)
{
    char path[600];
    struct outcome_job job;
    struct outcome *o;

    snprintf(path, sizeof path, "%s/fuzz/corpus/parquet", check_source_dir());
    job = job_text("headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"
                   "  - source.parquet: {path: \"${data}/{plain,snappy}\", "
                   "where: \"id % 3 == 0 and id > 8\"}\n"
                   "  - order.shuffle: {}\n  - batch.stack: {size: 4, ragged: true}\n",
                   path);
    job.options.epochs = 2;
    o = check_one_digest(job);
    CHECK_EQ_INT(o->records, 2 * 2 * 5); /* 9, 12, 15, 18, 21 */
    outcome_free(o);
}

TEST(entries_of_lmdb_files_have_one_digest)
{
    char path[600];
    struct outcome_job job;
    struct outcome *o;

    snprintf(path, sizeof path, "%s/fuzz/corpus/lmdb/plain", check_source_dir());
    job = job_text("headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"
                   "  - source.lmdb: {path: \"${data}\"}\n"
                   "  - order.shuffle: {}\n  - batch.stack: {size: 7, ragged: true}\n",
                   path);
    job.options.epochs = 2;
    o = check_one_digest(job);
    CHECK_EQ_INT(o->records, 2 * 100);
    outcome_free(o);
}

TEST(datasets_of_hdf5_files_have_one_digest)
{
    static const char *const names[] = {"chunked", "chunked_new", "texts", "plain"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[600];
        struct outcome_job job;
        struct outcome *o;

        snprintf(path, sizeof path, "%s/fuzz/corpus/hdf5/%s", check_source_dir(),
                 names[i]);
        job = job_text("headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"
                       "  - source.hdf5: {path: \"${data}\", unpack_cache: 1000}\n"
                       "  - order.shuffle: {}\n"
                       "  - batch.stack: {size: 7, ragged: true}\n",
                       path);
        job.options.epochs = 2;
        o = check_one_digest(job);
        CHECK_EQ_INT(o->records, 2 * 20);
        outcome_free(o);
    }
}

TEST(arrays_of_numpy_have_one_digest)
{
    struct outcome_job job =
        job_text("headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"
                 "  - source.npy: {path: \"${data}\"}\n"
                 "  - order.shuffle: {}\n  - batch.stack: {size: 7}\n",
                 numbers());
    struct outcome *o;

    job.options.on_error = HR_ON_ERROR_SKIP;
    job.options.epochs = 2;
    o = check_one_digest(job);
    CHECK_EQ_INT(o->stats.errors, 2 * 6);
    CHECK_EQ_INT(o->records, 2 * 114);
    outcome_free(o);
}

/* Rows of both formats; one in 20 is bad. */
static const char *rows(bool csv)
{
    static char path[600];
    struct hr_str file;

    hr__str_init(&file);
    hr__str_add(&file, csv ? "id,text\n" : "");
    for (int i = 0; i < 120; i++) {
        const char *bad = i % 20 == 7 ? "x" : "";

        if (csv)
            hr__str_addf(&file, "%s%d, \"a \"\"line\"\"\n%d\"\r\n", bad, i, i * i);
        else
            hr__str_addf(&file, "{\"text\": \"a \\\"line\\\"\\n%d\", \"id\": %s%d}\n",
                         i * i, bad, i);
    }
    snprintf(path, sizeof path, "%s/rows", check_temp_dir());
    CHECK_OK(hr__file_replace(path, file.text, file.length, NULL));
    hr__str_finish(&file);
    return path;
}

TEST(rows_have_one_digest)
{
    for (int csv = 0; csv < 2; csv++) {
        char text[400];
        struct outcome_job job;
        struct outcome *o;

        snprintf(text, sizeof text,
                 "headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"
                 "  - source.%s: {path: \"${data}\", types: {id: int64}}\n"
                 "  - order.shuffle: {}\n  - batch.stack: {size: 7, ragged: true}\n",
                 csv ? "csv" : "jsonl");
        job = job_text(text, rows(csv != 0));
        job.options.on_error = HR_ON_ERROR_SKIP;
        job.options.epochs = 2;
        o = check_one_digest(job);
        CHECK_EQ_INT(o->stats.errors, 2 * 6);
        CHECK_EQ_INT(o->records, 2 * 114);
        outcome_free(o);
    }
}

TEST(real_photos_have_one_digest)
{
    char path[1024];
    const char *data = check_data_dir();

    if (data == NULL)
        SKIP("no real photos");
    snprintf(path, sizeof path, "%s/images", data);
    check_text(REAL DECODE_EXACT TRAIN BATCH, path, 24);
}
