/*
 * papers.c - make bench B=papers: each pipeline of examples/papers as it is written
 * (every node alone, photos decoded at full size) and as Headrace composes it, on one
 * thread and two, with the figures that were measured for cedar itself.
 *
 * The argument is the folder of photos; sounds, digits and text are taken from the
 * folders beside it, as in ../shared/data. Pipelines without their data are left out.
 * cedar's figures come from other machines (research/measured.md): they say what it
 * reached there, and no ratio is claimed.
 */
#include "passes.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headrace/dataset.h"
#include "headrace/pack.h"

enum input {
    PHOTOS,
    LABELLED,
    SOUNDS,
    TEXT,
    PIECES,
    MESSAGES,
    DIGITS,
    RECORDS,
    SCENES,
    INPUTS
};

/* Where each input is; empty: it is not there. */
static char inputs[INPUTS][4096];
static char encoder[4096], merges[4096], table[4096], model[4096], words[4096],
    vectors[4096], annotations[4096];

static const struct paper {
    const char *name, *graph;
    enum input input;
    const char *figures; /* of others, or NULL */
} papers[] = {
    {"cv_torch",        "papers/cv_torch",        PHOTOS,
     "cedar unoptimised 122/s, its own plan 243, by hand 338, DataLoader 161 "
     "(measured.md); "
     "its paper 339 on 8 CPUs"                                                                            },
    {"cv_tf",           "papers/cv_tf",           PHOTOS,   "cedar's paper 438/s on 8 CPUs, tf.data 435"  },
    {"asr",             "papers/asr",             SOUNDS,
     "cedar 235/s, DataLoader 300 (measured.md, other sounds); its paper 106 on 8 CPUs, "
     "on longer ones"                                                                                     },
    {"nlp_torch",       "papers/nlp_torch",       TEXT,
     "cedar unoptimised 6733/s, its own plan 6979, DataLoader 6317, with a plain-Python "
     "BPE "
     "(measured.md); its paper 2960 on 8 CPUs"                                                            },
    {"nlp_hf_tf",       "papers/nlp_hf_tf",       TEXT,     "cedar's paper 1205/s on 8 CPUs"              },
    {"nlp_tf",          "papers/nlp_tf",          PIECES,   "cedar's paper 5696/s on 8 CPUs, tf.data 6230"},
    {"news20",          "papers/news20",          MESSAGES, NULL                                          },
    {"ssd_torch",       "papers/ssd_torch",       SCENES,
     "cedar's paper 58/s on 8 CPUs, DataLoader 20"                                                        },
    {"ssd_tf",          "papers/ssd_tf",          SCENES,   "cedar's paper 162/s on 8 CPUs, tf.data 72"   },
    {"resnet50",        "papers/resnet50",        LABELLED, NULL                                          },
    {"simclr",          "papers/simclr",          PHOTOS,   NULL                                          },
    {"retinanet",       "papers/retinanet",       SCENES,   NULL                                          },
    {"asr_transformer", "papers/asr_transformer", SOUNDS,   NULL                                          },
    {"inflate",         "papers/inflate",         RECORDS,  NULL                                          },
    {"lenet",           "papers/lenet",           DIGITS,   NULL                                          },
};
#define PAPERS (sizeof(papers) / sizeof(papers[0]))

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
    for (int i = 0; i < SCENE_PHOTOS; i++)
        fprintf(to, "%s{\"id\": %d, \"file_name\": \"class_%04d/photo_%08d.jpg\"}",
                i > 0 ? ", " : "", i, i % SCENE_CLASSES, i);
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

static void remove_records(void)
{
    unlink(inputs[RECORDS]);
    snprintf(strstr(inputs[RECORDS], "-000000.tfrecord"), sizeof(".json"), ".json");
    unlink(inputs[RECORDS]);
}

static void find_inputs(struct bench *bench)
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

/* ---- passes ---- */

/* In mode close, groups of image ops are part of the graph. */
static bool is_photos(const struct paper *paper)
{
    return paper->input == PHOTOS || paper->input == LABELLED || paper->input == SCENES;
}

static void add_params(const struct paper *paper, struct pass *pass)
{
    if (paper->input == LABELLED)
        pass->params[pass->param_count++] = (struct hr_graph_param){"classes", "10"};
    if (paper->input == SCENES)
        pass->params[pass->param_count++] =
            (struct hr_graph_param){"annotations", annotations};
    if (paper->input == DIGITS)
        pass->params[pass->param_count++] = (struct hr_graph_param){"part", "t10k"};
    if (paper->input == TEXT) {
        pass->params[pass->param_count++] = (struct hr_graph_param){"encoder", encoder};
        pass->params[pass->param_count++] = (struct hr_graph_param){"merges", merges};
        pass->params[pass->param_count++] = (struct hr_graph_param){"table", table};
    }
    if (paper->input == PIECES) {
        pass->params[pass->param_count++] = (struct hr_graph_param){"model", model};
        pass->params[pass->param_count++] = (struct hr_graph_param){"table", table};
    }
    if (paper->input == MESSAGES) {
        pass->params[pass->param_count++] = (struct hr_graph_param){"words", words};
        pass->params[pass->param_count++] = (struct hr_graph_param){"table", vectors};
    }
}

static void run_paper(struct bench *bench, const struct paper *paper, int round)
{
    static const char *const rows[2][2] = {
        {"as written, 1 thread",  "composed, 1 thread" },
        {"as written, 2 threads", "composed, 2 threads"},
    };
    struct pass pass = {
        .graph = paper->graph, .dir = inputs[paper->input], .round = round};

    add_params(paper, &pass);
    bench_group(bench, paper->name);
    for (pass.threads = 1; pass.threads <= 2 && pass.threads <= bench_cpus();
         pass.threads++)
        for (int composed = 0; composed < 2; composed++) {
            size_t count = pass.param_count;

            pass.unfused = !composed;
            if (!composed && is_photos(paper))
                pass.params[pass.param_count++] =
                    (struct hr_graph_param){"mode", "exact"};
            pass_run(bench, rows[pass.threads - 1][composed], &pass, NULL, 0);
            pass.param_count = count;
        }
}

int main(int argc, char **argv)
{
    static struct bench bench;

    bench_init(&bench, argc, argv, "papers",
               "the pipelines of examples/papers, with their own batch sizes",
               "records/s");
    bench.cpu_heading = "per CPU s";
    find_inputs(&bench);
    for (int i = 0; i < bench.rounds; i++)
        for (size_t k = 0; k < PAPERS; k++)
            if (inputs[papers[k].input][0] != '\0')
                run_paper(&bench, &papers[k], i);
    for (size_t k = 0; k < PAPERS; k++)
        if (inputs[papers[k].input][0] == '\0')
            bench_fact(&bench, papers[k].name, "left out: its data is not beside %s",
                       inputs[PHOTOS]);
        else if (papers[k].figures != NULL)
            bench_fact(&bench, papers[k].name, "%s", papers[k].figures);
    remove_records();
    bench_print(&bench);
    return 0;
}
