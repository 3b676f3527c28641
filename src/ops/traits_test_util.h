/*
 * ops/traits_test_util.h - every op, with parameters that exercise its traits, and its
 * input. A new op needs a row here.
 */
#ifndef HR_OPS_TRAITS_TEST_UTIL_H
#define HR_OPS_TRAITS_TEST_UTIL_H

#include "codec/video.h"
#include "op/op.h"
#include "tests/support/check.h"

#define NUMBERS "  - source.range: {n: 24}\n"
#define FILES "  - source.files: {path: '${files}', labels: folder}\n"
#define PICTURES FILES "  - image.decode: {mode: exact}\n"
#define SCENES                                                                           \
    "  - source.coco: {path: '${files}', annotations: '${coco}'}\n"                      \
    "  - image.decode: {mode: exact}\n"
#define WAVS "  - source.files: {path: '${sounds}', suffixes: [.wav]}\n"
#define SOUNDS WAVS "  - audio.decode: {rate: 8000}\n"
#define VIDEOS "  - source.files: {path: '${videos}', suffixes: [mkv, mp4, webm, mpg]}\n"
#define LINES "  - source.list: {path: '${list}'}\n"
#define MELS SOUNDS "  - audio.mel: {}\n  - audio.db: {}\n"
#define SPECTRA SOUNDS "  - audio.spectrogram: {}\n"
#define TOKENS LINES "  - text.tokenize_bpe: {ranks: '${ranks}'}\n"
#define WORDS LINES "  - text.split: {}\n"
#define EXAMPLES "  - source.tfrecord: {path: '${examples}'}\n"
#define SMALL PICTURES "  - image.resize: {size: 6}\n"
#define BATCHES NUMBERS "  - batch.stack: {size: 4}\n"

struct row {
    const char *op, *params;
    const char *before; /* the graph that leads to it; NULL: none, it is a source */
};

#define CODE "{code: draw, fields: value, outputs: \"value: int64\"}"

/* In order of name. What is written ${...} is made for the test. */
static const struct row rows[] = {
    {"audio.crop",                 "{frames: 300}",                                           SOUNDS                              },
    {"audio.db",                   "{}",                                                      SOUNDS                              },
    {"audio.decode",               "{}",                                                      WAVS                                },
    {"audio.freq_mask",            "{max: 20}",                                               MELS                                },
    {"audio.gain",                 "{db: [-6, 6]}",                                           SOUNDS                              },
    {"audio.log",                  "{}",                                                      SOUNDS                              },
    {"audio.mel",                  "{n_mels: 20}",                                            SOUNDS                              },
    {"audio.mel_scale",            "{rate: 8000, n_mels: 20}",                                SPECTRA                             },
    {"audio.mfcc",                 "{n_mfcc: 13}",                                            MELS                                },
    {"audio.mono",                 "{}",                                                      SOUNDS                              },
    {"audio.noise",                "{path: '${sounds}'}",                                     SOUNDS                              },
    {"audio.pad",                  "{multiple: 1000}",                                        SOUNDS                              },
    {"audio.pitch",                "{steps: [-1, 1], n_fft: 64}",                             SOUNDS                              },
    {"audio.resample",             "{rate: 16000}",                                           SOUNDS                              },
    {"audio.reverb",               "{rt60: 0.02}",                                            SOUNDS                              },
    {"audio.spectrogram",          "{}",                                                      SOUNDS                              },
    {"audio.speed",                "{}",                                                      SOUNDS                              },
    {"audio.time_mask",            "{max: 5}",                                                MELS                                },
    {"audio.time_stretch",         "{rate: [0.8, 1.2], n_fft: 64}",                           SOUNDS                              },
    {"audio.trim",                 "{frame: 100, hop: 50}",                                   SOUNDS                              },
    {"batch.bucket",               "{boundaries: [1000], by: image, dim: 0, size: 3}",        PICTURES                            },
    {"batch.cutmix",               "{num_classes: 9}",                                        SMALL "  - batch.stack: {size: 4}\n"},
    {"batch.mixup",                "{num_classes: 9}",
     SMALL "  - tensor.cast: {dtype: float32}\n  - batch.stack: {size: 4}\n"                                                      },
    {"batch.pad",                  "{size: 3}",                                               PICTURES                            },
    {"batch.stack",                "{size: 3}",                                               NUMBERS                             },
    {"batch.unbatch",              "{}",                                                      BATCHES                             },
    {"boxes.anchors",              "{size: 64}",                                              SCENES                              },
    {"boxes.convert",              "{to: xywh}",                                              SCENES                              },
    {"boxes.sanitize",             "{min_size: 25, image: image}",                            SCENES                              },
    {"code.expand",                "{code: child, fields: value, outputs: \"value: int64\"}", NUMBERS                             },
    {"code.filter",                "{code: keep, fields: value}",                             NUMBERS                             },
    {"code.map",                   CODE,                                                      NUMBERS                             },
    {"code.source",                "{code: made, outputs: \"value: int64\", count: 24}",      NULL                                },
    {"debug.fail",                 "{probability: 0.3}",                                      NUMBERS                             },
    {"debug.identity",             "{}",                                                      PICTURES                            },
    {"debug.inflate",              "{}",                                                      FILES                               },
    {"debug.sleep",                "{ms: 0}",                                                 NUMBERS                             },
    {"debug.spin",                 "{us: 1}",                                                 NUMBERS                             },
    {"flow.cache",                 "{budget: 64MB}",                                          PICTURES                            },
    {"flow.concat",                "{}",                                                      NULL                                },
    {"flow.interleave",            "{block: 2}",                                              NULL                                },
    {"flow.join",                  "{on: path, prefix: [a_, b_]}",                            NULL                                },
    {"flow.mix",                   "{until: first}",                                          NULL                                },
    {"flow.window",                "{size: 3, stride: 2}",                                    NUMBERS                             },
    {"flow.zip",                   "{prefix: [a_, b_]}",                                      NULL                                },
    {"image.affine",               "{degrees: 30}",                                           PICTURES                            },
    {"image.aug_mix",              "{severity: 7}",                                           PICTURES                            },
    {"image.auto_augment",         "{policy: svhn}",                                          PICTURES                            },
    {"image.autocontrast",         "{}",                                                      PICTURES                            },
    {"image.center_crop",          "{size: 5}",                                               PICTURES                            },
    {"image.clip",                 "{min: 20, max: 200}",                                     PICTURES                            },
    {"image.color_jitter",         "{brightness: 0.4, contrast: 0.4}",                        PICTURES                            },
    {"image.cover_crop",           "{field: [image, boxes], scale: [0.1, 0.9]}",              SCENES                              },
    {"image.decode",               "{mode: exact}",                                           FILES                               },
    {"image.elastic",              "{}",                                                      PICTURES                            },
    {"image.encode",               "{quality: 80}",                                           PICTURES                            },
    {"image.equalize",             "{}",                                                      PICTURES                            },
    {"image.erase",                "{}",                                                      PICTURES                            },
    {"image.erase",                "{random: true, p: 1}",                                    PICTURES                            },
    {"image.five_crop",            "{size: 4}",                                               PICTURES                            },
    {"image.fixed_size_crop",      "{size: [5, 6]}",                                          PICTURES                            },
    {"image.flip",                 "{p: 0.5}",                                                PICTURES                            },
    {"image.gaussian_blur",        "{size: 3, sigma: [0.5, 2]}",                              PICTURES                            },
    {"image.gaussian_noise",       "{}",                                                      PICTURES                            },
    {"image.grayscale",            "{p: 1}",                                                  PICTURES                            },
    {"image.grayscale",            "{p: 0.5, channels: 3}",                                   PICTURES                            },
    {"image.invert",               "{}",                                                      PICTURES                            },
    {"image.iou_crop",             "{field: [image, boxes], overlaps: 0.1}",                  SCENES                              },
    {"image.jpeg",                 "{quality: [5, 90]}",                                      PICTURES                            },
    {"image.normalize",            "{mean: imagenet, std: imagenet}",                         PICTURES                            },
    {"image.pad",                  "{padding: 2}",                                            PICTURES                            },
    {"image.permute_channels",     "{}",                                                      PICTURES                            },
    {"image.perspective",          "{p: 0.8}",                                                PICTURES                            },
    {"image.photometric_distort",  "{}",                                                      PICTURES                            },
    {"image.posterize",            "{bits: 3}",                                               PICTURES                            },
    {"image.rand_augment",         "{num_ops: 3}",                                            PICTURES                            },
    {"image.random_area_crop",     "{}",                                                      PICTURES                            },
    {"image.random_crop",          "{size: 5}",                                               PICTURES                            },
    {"image.random_resized_crop",  "{size: 5}",                                               PICTURES                            },
    {"image.random_shortest_size", "{between: [4, 8]}",                                       PICTURES                            },
    {"image.resize",               "{size: [6, 5]}",                                          PICTURES                            },
    {"image.resize_shortest",      "{size: 5}",                                               PICTURES                            },
    {"image.rotate",               "{degrees: 30}",                                           PICTURES                            },
    {"image.scale_jitter",         "{size: 7, scale: [0.5, 1.2]}",                            PICTURES                            },
    {"image.sharpness",            "{factor: [0, 3]}",                                        PICTURES                            },
    {"image.solarize",             "{threshold: 128}",                                        PICTURES                            },
    {"image.standardize",          "{}",                                                      PICTURES                            },
    {"image.ten_crop",             "{size: [3, 4]}",                                          PICTURES                            },
    {"image.trivial_augment_wide", "{}",                                                      PICTURES                            },
    {"image.zoom_out",             "{side_range: [1, 1.5]}",                                  PICTURES                            },
    {"order.repeat",               "{count: 2}",                                              NUMBERS                             },
    {"order.sample",               "{}",                                                      NUMBERS                             },
    {"order.shard",                "{rank: 0, world: 3}",                                     NUMBERS                             },
    {"order.shuffle",              "{}",                                                      NUMBERS                             },
    {"order.skip",                 "{count: 5}",                                              NUMBERS                             },
    {"order.split",                "{fractions: [0.5, 0.5], part: 0, by: index}",             NUMBERS                             },
    {"order.take",                 "{count: 5}",                                              NUMBERS                             },
    {"record.classes",             "{field: label, classes: [low, middle, high]}",            PICTURES                            },
    {"record.drop",                "{fields: [label]}",                                       PICTURES                            },
    {"record.filter",              "{expr: \"label != 1\"}",                                  PICTURES                            },
    {"record.flat",                "{fields: boxes}",                                         SCENES                              },
    {"record.kind",                "{field: image, kind: image}",                             PICTURES                            },
    {"record.parse_example",       "{features: {label: int64}}",                              EXAMPLES                            },
    {"record.rename",              "{fields: {label: class}}",                                PICTURES                            },
    {"record.select",              "{fields: [image]}",                                       PICTURES                            },
    {"source.arrow",               "{path: '${arrow}'}",                                      NULL                                },
    {"source.coco",                "{path: '${files}', annotations: '${coco}'}",              NULL                                },
    {"source.csv",                 "{path: '${list}'}",                                       NULL                                },
    {"source.files",               "{path: '${files}', labels: folder}",                      NULL                                },
    {"source.hdf5",                "{path: '${hdf5}'}",                                       NULL                                },
    {"source.idx",                 "{path: '${idx}'}",                                        NULL                                },
    {"source.jsonl",               "{path: '${jsonl}'}",                                      NULL                                },
    {"source.lines",               "{path: '${list}'}",                                       NULL                                },
    {"source.list",                "{path: '${list}'}",                                       NULL                                },
    {"source.lmdb",                "{path: '${lmdb}'}",                                       NULL                                },
    {"source.npy",                 "{path: '${table}'}",                                      NULL                                },
    {"source.parquet",             "{path: '${parquet}'}",                                    NULL                                },
    {"source.range",               "{n: 24}",                                                 NULL                                },
    {"source.records",             "{path: '${records}'}",                                    NULL                                },
    {"source.tar",                 "{path: '${tar}', fields: {data: bin, label: cls}}",       NULL                                },
    {"source.tfrecord",            "{path: '${tfrecord}'}",                                   NULL                                },
    {"source.voc",                 "{path: '${voc}', task: segmentation}",                    NULL                                },
    {"tensor.cast",                "{field: image, dtype: float32}",                          PICTURES                            },
    {"tensor.layout",              "{order: chw}",                                            PICTURES                            },
    {"tensor.one_hot",             "{field: label, classes: 3}",                              PICTURES                            },
    {"text.detokenize",            "{ranks: '${ranks}'}",                                     TOKENS                              },
    {"text.lower",                 "{}",                                                      LINES                               },
    {"text.normalize",             "{form: nfkd}",                                            LINES                               },
    {"text.split",                 "{}",                                                      LINES                               },
    {"text.strip",                 "{}",                                                      LINES                               },
    {"text.tokenize_bpe",          "{ranks: '${ranks}'}",                                     LINES                               },
    {"text.tokenize_unigram",      "{model: '${pieces}'}",                                    LINES                               },
    {"text.tokenize_wordpiece",    "{vocab: '${list}', unknown: one}",                        LINES                               },
    {"tokens.add",                 "{begin: 7}",                                              TOKENS                              },
    {"tokens.embed",               "{table: '${table}'}",                                     TOKENS                              },
    {"tokens.mask",                "{mask_id: 3, vocab_size: 300, probability: 0.5}",         TOKENS                              },
    {"tokens.pack",                "{length: 16}",                                            TOKENS                              },
    {"tokens.pad",                 "{length: 50, mask: true}",                                TOKENS                              },
    {"tokens.truncate",            "{length: 2}",                                             TOKENS                              },
    {"tokens.vocab_lookup",        "{path: '${list}'}",                                       WORDS                               },
    {"video.clips",                "{frames: 4}",                                             VIDEOS                              },
    {"video.decode",               "{frames: 3, stride: 2}",                                  VIDEOS                              },
};
#define ROWS (sizeof rows / sizeof rows[0])

/* Whether the ops on video work: FFmpeg's libraries are there. */
static inline bool has_video(void)
{
    char version[64];

    return hr__video_version(version, sizeof version, NULL) == HR_OK;
}

/* NULL for an op that cannot run here. */
static inline const struct hr_op *op_of(const struct row *row)
{
    const struct hr_op *op = hr__op_find(row->op);

    CHECK(op != NULL);
    return strncmp(row->op, "video.", 6) != 0 || has_video() ? op : NULL;
}

#define EACH(row, op)                                                                    \
    for (const struct row *row = rows; row < rows + ROWS; row++)                         \
        for (const struct hr_op *op = op_of(row); op != NULL; op = NULL)

/* Its first row only. */
#define EACH_OP(row, op)                                                                 \
    EACH(row, op) if (row == rows || strcmp(row->op, row[-1].op) != 0)

#endif
