/*
 * ops/inputs_test_util.c - the files that the rows of traits_test_util.h read.
 */
#include "ops/inputs_test_util.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "codec/bpe_test_util.h"
#include "codec/image.h"
#include "core/alloc.h"
#include "core/file.h"
#include "core/str.h"
#include "kernel/pixels.h"
#include "store/tfrecord.h"
#include "tests/support/check.h"
#include "tests/support/tar.h"
#include "tests/support/wav.h"

static char files[512], sounds[512], list[512], idx[512], examples[512], records[512],
    tar[512], tfrecord[512], ranks[512], table[512], jsonl[512], pieces[512], arrow[512],
    parquet[512], lmdb[512], hdf5[512], coco[512], voc[512], videos[512];
static const struct {
    const char *name, *path;
} inputs[] = {
    {"${files}",    files   },
    {"${sounds}",   sounds  },
    {"${videos}",   videos  },
    {"${list}",     list    },
    {"${idx}",      idx     },
    {"${examples}", examples},
    {"${records}",  records },
    {"${tar}",      tar     },
    {"${tfrecord}", tfrecord},
    {"${arrow}",    arrow   },
    {"${parquet}",  parquet },
    {"${lmdb}",     lmdb    },
    {"${hdf5}",     hdf5    },
    {"${ranks}",    ranks   },
    {"${table}",    table   },
    {"${jsonl}",    jsonl   },
    {"${pieces}",   pieces  },
    {"${coco}",     coco    },
    {"${voc}",      voc     },
};

static void write_file(const char *name, const void *data, size_t bytes, char *ret_path)
{
    snprintf(ret_path, 512, "%s/%s", check_temp_dir(), name);
    CHECK_OK(hr__file_replace(ret_path, data, bytes, NULL));
}

/* A photo of smooth colours: its file is smaller than its pixels. */
static void write_photo(const char *name, int32_t width, int32_t height)
{
    uint8_t levels[64 * 64 * 3];
    struct hr_pixels pixels = hr__pixels_u8(levels, width, height, 3);
    struct hr_jpeg_options options = {.quality = 60, .sampling_x = 2, .sampling_y = 2};
    char path[512];
    size_t bytes;
    void *data;

    for (int32_t i = 0; i < width * height * 3; i++)
        levels[i] = (uint8_t)(100 + i * 97 / (width * height * 3) + 30 * (i % 3));
    CHECK_OK(hr__image_encode_jpeg(&pixels, &options, &data, &bytes, NULL));
    write_file(name, data, bytes, path);
    hr__free(data);
}

/* Two channels: a tone between silences. */
static void write_sound(const char *name, int frames)
{
    struct wav_head head = {1, 2, 8000, 16, 0};
    int16_t samples[2000] = {0};
    struct hr_str file;
    char path[512];

    for (int i = 300; i < 2 * frames - 300; i++)
        samples[i] = (int16_t)(i * i % 20011);
    wav_file(&file, &head, samples, (size_t)frames * 4);
    write_file(name, file.text, file.length, path);
    hr__str_finish(&file);
}

/* Of tf.train.Example, with a feature `label`: a number of one byte. */
static void write_examples(void)
{
    char example[18] = "\x0a\x10\x0a\x0e\x0a\x05label\x12\x05\x1a\x03\x0a\x01";
    char head[HR_TFRECORD_HEAD], tail[HR_TFRECORD_TAIL];
    struct hr_str text;

    hr__str_init(&text);
    for (int i = 0; i < 24; i++) {
        example[17] = (char)i;
        hr__tfrecord_frame(example, sizeof example, head, tail);
        hr__str_add_bytes(&text, head, sizeof head);
        hr__str_add_bytes(&text, example, sizeof example);
        hr__str_add_bytes(&text, tail, sizeof tail);
    }
    write_file("examples.tfrecord", text.text, text.length, examples);
    hr__str_finish(&text);
}

/* A vector of two numbers for each of 1,000 ids. */
static void write_table(void)
{
    static const char dict[] =
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1000, 2)}\n";
    static char file[10 + sizeof dict - 1 + 8000] = "\x93NUMPY\x01";

    file[8] = (char)(sizeof dict - 1);
    memcpy(file + 10, dict, sizeof dict - 1);
    write_file("table.npy", file, sizeof file, table);
}

static void make_inputs(void)
{
    static const char lines[] = "one\ntwo\nthree\n";
    static const char objects[] = "{\"a\": 1}\n{\"a\": 2}\n{\"a\": 3}\n";
    static const unsigned char pictures[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0,  2,
                                             0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 70, 8};
    static const char *const folders[] = {"", "/JPEGImages", "/SegmentationClass",
                                          "/ImageSets", "/ImageSets/Segmentation"};
    char folder[512], name[16];
    static struct tiny tiny;
    struct hr_rng rng;
    struct hr_str archive;

    if (files[0] != '\0')
        return;
    hr__rng_init(&rng, 1, 0, 0);
    snprintf(files, sizeof files, "%s/files", check_temp_dir());
    CHECK_EQ_INT(mkdir(files, 0700), 0);
    for (int i = 0; i < 3; i++) {
        snprintf(folder, sizeof folder, "%s/files/%c", check_temp_dir(), 'a' + i);
        CHECK_EQ_INT(mkdir(folder, 0700), 0);
    }
    write_photo("files/a/1.jpg", 64, 48);
    write_photo("files/b/2.jpg", 40, 56);
    write_photo("files/c/3.jpg", 50, 50);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(folder, sizeof folder, "%s/voc%s", check_temp_dir(), folders[i]);
        CHECK_EQ_INT(mkdir(folder, 0700), 0);
    }
    write_photo("voc/JPEGImages/1.jpg", 64, 48);
    write_photo("voc/SegmentationClass/1.png", 64, 48); /* masks are not looked into */
    write_file("voc/ImageSets/Segmentation/train.txt", "1\n", 2, voc);
    snprintf(voc, sizeof voc, "%s/voc", check_temp_dir());
    snprintf(sounds, sizeof sounds, "%s/sounds", check_temp_dir());
    CHECK_EQ_INT(mkdir(sounds, 0700), 0);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "sounds/%d.wav", i);
        write_sound(name, 700 + 100 * i);
    }
    write_file("lines.txt", lines, sizeof lines - 1, list);
    write_file("objects.jsonl", objects, sizeof objects - 1, jsonl);
    write_file("pictures.idx", pictures, sizeof pictures, idx);
    hr__str_init(&archive);
    for (int i = 0; i < 24; i++) {
        snprintf(name, sizeof name, "%02d.bin", i);
        tar_member(&archive, name, name, sizeof name);
        snprintf(name, sizeof name, "%02d.cls", i);
        tar_member(&archive, name, name, 2);
    }
    tar_end(&archive);
    write_file("some.tar", archive.text, archive.length, tar);
    hr__str_finish(&archive);
    tiny_draw(&tiny, &rng);
    tiny_ranks(&tiny, &archive);
    write_file("some.tiktoken", archive.text, archive.length, ranks);
    hr__str_finish(&archive);
    write_examples();
    write_table();
    snprintf(tfrecord, sizeof tfrecord, "%s/fuzz/corpus/tfrecord/whole",
             check_source_dir());
    snprintf(coco, sizeof coco, "%s/fuzz/corpus/coco/whole", check_source_dir());
    snprintf(videos, sizeof videos, "%s/fuzz/corpus/video", check_source_dir());
    snprintf(pieces, sizeof pieces, "%s/fuzz/corpus/sentencepiece/unigram",
             check_source_dir());
    snprintf(arrow, sizeof arrow, "%s/fuzz/corpus/arrow/plain", check_source_dir());
    snprintf(parquet, sizeof parquet, "%s/fuzz/corpus/parquet/plain", check_source_dir());
    snprintf(lmdb, sizeof lmdb, "%s/fuzz/corpus/lmdb/plain", check_source_dir());
    snprintf(hdf5, sizeof hdf5, "%s/fuzz/corpus/hdf5/chunked", check_source_dir());
    snprintf(records, sizeof records, "%s/fuzz/corpus/records/texts", check_source_dir());
}

const char *inputs_fill(const char *text)
{
    static char made[4096];
    size_t length = 0;

    make_inputs();
    for (; *text != '\0'; text++) {
        const char *path = NULL;

        for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
            if (strncmp(text, inputs[i].name, strlen(inputs[i].name)) == 0)
                path = inputs[i].path;
        CHECK(length + sizeof files < sizeof made);
        if (path == NULL) {
            made[length++] = *text;
            continue;
        }
        length += (size_t)snprintf(made + length, sizeof made - length, "%s", path);
        text = strchr(text, '}');
    }
    made[length] = '\0';
    return made;
}
