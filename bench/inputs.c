/*
 * inputs.c - see inputs.h. Sounds, digits and text are taken from the folders beside the
 * photos, as in ../shared/data; what is made (annotations, tables, messages, a TFRecord
 * file) lies beside the program.
 */
#include "inputs.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/synth_picture.h"
#include "headrace/dataset.h"
#include "headrace/pack.h"

/* Where each input is; empty: it is not there. */
static char inputs[INPUTS][4096];
static char encoder[4096], merges[4096], table[4096], model[4096], words[4096],
    vectors[4096], annotations[4096], labels[4200], images[4200];

const struct input_graph input_graphs[] = {
    {"cv_torch",        "papers/cv_torch",        PHOTOS  },
    {"cv_tf",           "papers/cv_tf",           PHOTOS  },
    {"asr",             "papers/asr",             SOUNDS  },
    {"nlp_torch",       "papers/nlp_torch",       TEXT    },
    {"nlp_hf_tf",       "papers/nlp_hf_tf",       TEXT    },
    {"nlp_tf",          "papers/nlp_tf",          PIECES  },
    {"news20",          "papers/news20",          MESSAGES},
    {"ssd_torch",       "papers/ssd_torch",       SCENES  },
    {"ssd_tf",          "papers/ssd_tf",          SCENES  },
    {"resnet50",        "papers/resnet50",        LABELLED},
    {"simclr",          "papers/simclr",          PHOTOS  },
    {"retinanet",       "papers/retinanet",       SCENES  },
    {"asr_transformer", "papers/asr_transformer", SOUNDS  },
    {"inflate",         "papers/inflate",         RECORDS },
    {"lenet",           "papers/lenet",           DIGITS  },
    {"example asr",     "asr",                    SOUNDS  },
    {"example mnist",   "mnist",                  IDX     },
    {"example noop",    "noop",                   NUMBERS },
    {"example simclr",  "simclr",                 PHOTOS  },
    {"example views",   "simclr_views",           PHOTOS  },
    {"example eval",    "vision_eval",            PHOTOS  },
    {"example rrc",     "vision_rrc",             PHOTOS  },
};
const size_t input_graph_count = sizeof(input_graphs) / sizeof(input_graphs[0]);

/* ---- data ---- */

/* Sets `path` to what lies beside the photos; to "" if it is not there. */
static void beside(const struct bench *bench, const char *name, char *path, size_t room)
{
    path[0] = '\0';
    if (bench->dir == NULL)
        return;
    snprintf(path, room, "%s/../%s", bench->dir, name);
    if (access(path, R_OK) != 0)
        path[0] = '\0';
}

/* An embedding beside the program, made once, as a .npy file: nlp's takes 154 MB. */
static void make_table(const char *name, int rows, int columns, char path[4096])
{
    static const float row[1024];
    char head[128];
    FILE *file;
    int length;

    bench_path(path, 4096, name);
    if (access(path, R_OK) == 0)
        return;
    memset(head, ' ', sizeof(head));
    memcpy(head, "\x93NUMPY\1\0\x76\0", 10);
    length = snprintf(head + 10, sizeof(head) - 10,
                      "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }",
                      rows, columns);
    head[10 + length] = ' ';
    head[sizeof(head) - 1] = '\n';
    file = fopen(path, "wb");
    if (file == NULL || fwrite(head, sizeof(head), 1, file) != 1)
        bench_die("cannot write %s", path);
    for (int i = 0; i < rows; i++)
        if (fwrite(row, sizeof(row[0]) * (size_t)columns, 1, file) != 1)
            bench_die("cannot write %s", path);
    if (fclose(file) != 0)
        bench_die("cannot write %s", path);
}

/* ---- pieces and messages ---- */

static FILE *open_file(const char *path, const char *mode)
{
    FILE *file = fopen(path, mode);

    if (file == NULL)
        bench_die("cannot open %s", path);
    return file;
}

/* A piece of a SentencePiece model: text, score, type; the text is short. */
static void put_piece(FILE *file, const char *text, size_t bytes, float score, int type)
{
    putc(0x0A, file);
    putc((int)(2 + bytes + 5 + 2), file);
    putc(0x0A, file);
    putc((int)bytes, file);
    fwrite(text, bytes, 1, file);
    putc(0x15, file);
    fwrite(&score, sizeof(score), 1, file);
    putc(0x18, file);
    putc(type, file);
}

/* GPT-2's merge "left right" as a piece; false if it has other than ASCII characters and
 * spaces, which are U+0120 there. */
static bool piece_of(const char *line, char *piece, size_t *ret_bytes)
{
    size_t bytes = 0;

    for (; *line != '\0' && *line != '\n'; line++) {
        if (memcmp(line, "\xC4\xA0", 2) == 0) {
            memcpy(piece + bytes, "\xE2\x96\x81", 3);
            bytes += 3;
            line++;
        } else if ((unsigned char)*line >= 0x80 || bytes > 60) {
            return false;
        } else if (*line != ' ') {
            piece[bytes++] = *line;
        }
    }
    *ret_bytes = bytes;
    return bytes > 0;
}

/* A SentencePiece model of type bpe with GPT-2's merges, as far as they are ASCII. */
static void make_model(void)
{
    FILE *from = open_file(merges, "r"), *to;
    char line[512], piece[80];
    size_t bytes;

    bench_path(model, sizeof(model), "gpt2-merges.model");
    to = open_file(model, "wb");
    put_piece(to, "<unk>", 5, 0, 2);
    put_piece(to, "\xE2\x96\x81", 3, -1e6F, 1);
    for (char c = '!'; c <= '~'; c++)
        put_piece(to, &c, 1, -1e6F, 1);
    for (int rank = 0; fgets(line, sizeof(line), from) != NULL; rank++)
        if (line[0] != '#' && piece_of(line, piece, &bytes))
            put_piece(to, piece, bytes, -(float)rank, 1);
    fwrite("\x12\x02\x18\x02", 4, 1, to); /* type bpe */
    fclose(from);
    if (fclose(to) != 0)
        bench_die("cannot write %s", model);
}

#define GROUPS 20
#define MESSAGES_PER_GROUP 25
#define VOCABULARY 5000

/* Messages of ten lines of the text each, and a vocabulary of its words. */
static void make_messages(void)
{
    FILE *text = open_file(inputs[TEXT], "r"), *to;
    char path[4300], line[16384];
    int count = 0;

    bench_path(inputs[MESSAGES], sizeof(inputs[MESSAGES]), "20news");
    mkdir(inputs[MESSAGES], 0777);
    for (int i = 0; i < GROUPS * MESSAGES_PER_GROUP; i++) {
        snprintf(path, sizeof(path), "%s/group.%02d", inputs[MESSAGES],
                 i / MESSAGES_PER_GROUP);
        mkdir(path, 0777);
        snprintf(path + strlen(path), sizeof(path) - strlen(path), "/%d", 50000 + i);
        to = open_file(path, "w");
        for (int k = 0; k < 10 && fgets(line, sizeof(line), text) != NULL; k++)
            fputs(line, to);
        fclose(to);
    }
    fclose(text);
    bench_path(words, sizeof(words), "pieces.txt");
    text = open_file(merges, "r");
    to = open_file(words, "w");
    fputs("<padding>\n", to);
    while (count < VOCABULARY - 1 && fgets(line, sizeof(line), text) != NULL) {
        size_t bytes;

        /* the merges of whole words, which begin with a space */
        if (strncmp(line, "\xC4\xA0", 2) == 0 && piece_of(line, path, &bytes)) {
            fprintf(to, "%.*s\n", (int)bytes - 3, path + 3);
            count++;
        }
    }
    fclose(text);
    fclose(to);
}

#define SCENE_PHOTOS 500
#define SCENE_CLASSES 10

/* Annotations of the synthesised photos, as COCO writes them: 7 boxes on each. */
static void make_annotations(void)
{
    FILE *to;

    bench_path(annotations, sizeof(annotations), "instances.json");
    to = open_file(annotations, "w");
    fputs("{\"images\": [", to);
    for (int i = 0; i < SCENE_PHOTOS; i++) {
        struct hr_synth_front front;

        hr__synth_front(i % SCENE_CLASSES, SCENE_CLASSES, &front);
        fprintf(to, "%s{\"id\": %d, \"file_name\": \"%s/photo_%08d.jpg\"}",
                i > 0 ? ", " : "", i, front.name, i);
    }
    fputs("], \"annotations\": [", to);
    for (int i = 0; i < 7 * SCENE_PHOTOS; i++)
        fprintf(
            to,
            "%s{\"id\": %d, \"image_id\": %d, \"category_id\": %d, \"bbox\": [%d, %d, "
            "%d, %d]}",
            i > 0 ? ", " : "", i, i / 7, i % SCENE_CLASSES, i * 13 % 100, i * 29 % 120,
            10 + i * 7 % 110, 10 + i * 11 % 90);
    fputs("], \"categories\": [", to);
    for (int i = 0; i < SCENE_CLASSES; i++)
        fprintf(to, "%s{\"id\": %d, \"name\": \"%d\"}", i > 0 ? ", " : "", i, i);
    fputs("]}\n", to);
    if (fclose(to) != 0)
        bench_die("cannot write %s", annotations);
}

/* The photos as a TFRecord file. */
static void pack_photos(const char *photos)
{
    static const char text[] =
        "headrace: 1\nparams: {data: {type: path}}\npipeline:\n"
        "  - source.files: {path: \"${data}\"}\n  - record.select: {fields: data}\n";
    struct hr_graph_param param = {"data", photos};
    struct hr_iter_options options;
    struct hr_pack_options pack;
    struct hr_pack_result result;
    struct hr_error error = {0};
    struct hr_graph *graph = NULL;
    char prefix[32];

    snprintf(prefix, sizeof(prefix), "photos-%ld", (long)getpid());
    hr_iter_options_init(&options);
    hr_pack_options_init(&pack);
    bench_path(inputs[RECORDS], sizeof(inputs[RECORDS]), "");
    pack.folder = inputs[RECORDS];
    pack.format = HR_PACK_TFRECORD;
    pack.prefix = prefix;
    bench_must(hr_graph_parse(text, strlen(text), "photos", &param, 1, &graph, &error),
               &error);
    bench_must(hr_pack(graph, &options, &pack, &result, &error), &error);
    hr_graph_unref(graph);
    snprintf(inputs[RECORDS] + strlen(inputs[RECORDS]),
             sizeof(inputs[RECORDS]) - strlen(inputs[RECORDS]), "%s-000000.tfrecord",
             prefix);
}

void inputs_remove(void)
{
    unlink(inputs[RECORDS]);
    snprintf(strstr(inputs[RECORDS], "-000000.tfrecord"), sizeof(".json"), ".json");
    unlink(inputs[RECORDS]);
}

void inputs_find(struct bench *bench)
{
    struct hr_synth_photos what = {
        .count = SCENE_PHOTOS, .classes = SCENE_CLASSES, .vary = true};
    struct hr_error error = {0};
    char path[4096];

    snprintf(inputs[PHOTOS], sizeof(inputs[PHOTOS]), "%s",
             bench_photos(bench, path, sizeof(path)));
    bench_path(inputs[LABELLED], sizeof(inputs[LABELLED]), "photos");
    bench_must(hr_synth_photos(inputs[LABELLED], &what, NULL, NULL, &error), &error);
    snprintf(inputs[SCENES], sizeof(inputs[SCENES]), "%s", inputs[LABELLED]);
    make_annotations();
    beside(bench, "audio", inputs[SOUNDS], sizeof(inputs[SOUNDS]));
    beside(bench, "mnist", inputs[DIGITS], sizeof(inputs[DIGITS]));
    snprintf(inputs[IDX], sizeof(inputs[IDX]), "%s", inputs[DIGITS]);
    snprintf(inputs[NUMBERS], sizeof(inputs[NUMBERS]), "none");
    beside(bench, "text/wikitext2-valid.txt", inputs[TEXT], sizeof(inputs[TEXT]));
    beside(bench, "tokenizer/gpt2-encoder.json", encoder, sizeof(encoder));
    beside(bench, "tokenizer/gpt2-vocab.bpe", merges, sizeof(merges));
    if (encoder[0] == '\0' || merges[0] == '\0')
        inputs[TEXT][0] = '\0';
    if (inputs[TEXT][0] != '\0') {
        make_table("rows.npy", 50257, 764, table);
        make_table("vectors.npy", VOCABULARY, 100, vectors);
        make_model();
        make_messages();
        snprintf(inputs[PIECES], sizeof(inputs[PIECES]), "%s", inputs[TEXT]);
    }
    pack_photos(inputs[PHOTOS]);
}

bool input_is_there(enum input input)
{
    return inputs[input][0] != '\0';
}

static void
add(struct hr_graph_param *params, size_t *count, const char *name, const char *value)
{
    params[(*count)++] = (struct hr_graph_param){name, value};
}

/* The files of MNIST's test part. */
static void add_idx(struct hr_graph_param *params, size_t *count)
{
    snprintf(images, sizeof(images), "%s/t10k-images-idx3-ubyte.gz", inputs[IDX]);
    snprintf(labels, sizeof(labels), "%s/t10k-labels-idx1-ubyte.gz", inputs[IDX]);
    add(params, count, "images", images);
    add(params, count, "labels", labels);
}

size_t input_params(enum input input, struct hr_graph_param params[INPUT_PARAMS_MAX])
{
    size_t count = 0;

    if (input != IDX && input != NUMBERS)
        add(params, &count, "data", inputs[input]);
    if (input == LABELLED)
        add(params, &count, "classes", "10");
    if (input == SCENES)
        add(params, &count, "annotations", annotations);
    if (input == DIGITS)
        add(params, &count, "part", "t10k");
    if (input == IDX)
        add_idx(params, &count);
    if (input == TEXT) {
        add(params, &count, "encoder", encoder);
        add(params, &count, "merges", merges);
    }
    if (input == PIECES)
        add(params, &count, "model", model);
    if (input == TEXT || input == PIECES)
        add(params, &count, "table", table);
    if (input == MESSAGES) {
        add(params, &count, "words", words);
        add(params, &count, "table", vectors);
    }
    return count;
}
