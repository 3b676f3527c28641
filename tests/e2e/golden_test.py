"""Golden digests: the bytes of each operator on images, sounds and texts, over computed ones.

A changed digest means that an operator's version must be raised, or that there is a bug. All runs
are in mode exact, in which results do not depend on composition. `make golden-update` rewrites
tests/golden/digests.json. The pictures are PNG files of computed pixels, so codec versions do not
matter; the cases named jpeg use photos, which every libjpeg-turbo and instruction set decodes to
the same bytes.
"""
import base64
import io
import json
import os
import struct
import sys
import wave
import zipfile
import zlib

sys.path.insert(0, os.path.dirname(__file__))
from support import graph, main, run, run_json, source, temp, tests

golden = source / "tests/golden/digests.json"
head = "  - source.files: {{path: '{0}'}}\n  - order.shuffle: {{}}\n  - image.decode: {{mode: exact}}\n"
tail = "  - batch.stack: {size: 5}\n"
fixed = "  - image.resize: {size: [48, 64]}\n"
cases = {
    "resize": fixed,
    "resize up": "  - image.resize: {size: [150, 201]}\n",
    "resize bicubic": "  - image.resize: {size: [48, 64], interpolation: bicubic}\n",
    "resize nearest": "  - image.resize: {size: [48, 64], interpolation: nearest}\n",
    "resize without antialias": "  - image.resize: {size: [48, 64], antialias: false}\n",
    "resize_shortest, center_crop": "  - image.resize_shortest: {size: 56}\n  - image.center_crop: {size: 48}\n",
    "random_crop": fixed + "  - image.random_crop: {size: 32}\n",
    "random_resized_crop": "  - image.random_resized_crop: {size: 48}\n",
    "flip": fixed + "  - image.flip: {}\n",
    "pad": fixed + "  - image.pad: {padding: 5}\n",
    "rotate": fixed + "  - image.rotate: {degrees: 30}\n",
    "random_area_crop, standardize": "  - image.random_area_crop: {}\n" + fixed + "  - image.standardize: {}\n",
    "color_jitter": fixed + "  - image.color_jitter: {brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1}\n",
    "photometric_distort": fixed + "  - image.photometric_distort: {}\n",
    "invert, solarize, permute_channels": fixed + "  - image.invert: {}\n  - image.solarize: {threshold: 128}\n"
                                                  "  - image.permute_channels: {}\n",
    "posterize, autocontrast, equalize": fixed + "  - image.posterize: {bits: 4}\n  - image.autocontrast: {}\n"
                                                 "  - image.equalize: {}\n",
    "rand_augment": fixed + "  - image.rand_augment: {num_ops: 4, fill: 128}\n",
    "aug_mix": fixed + "  - image.aug_mix: {}\n  - image.aug_mix: {all_ops: false, severity: 9, chain_depth: 2}\n",
    "auto_augment": fixed + "  - image.auto_augment: {}\n  - image.auto_augment: {policy: cifar10}\n"
                            "  - image.auto_augment: {policy: svhn}\n",
    "trivial_augment_wide": fixed + "  - image.trivial_augment_wide: {interpolation: bilinear}\n",
    "sharpness": fixed + "  - image.sharpness: {factor: [0, 3], p: 0.8}\n",
    "mixup": fixed + "  - tensor.cast: {dtype: float32}\n  - batch.stack: {size: 5}\n  - batch.mixup: {num_classes: 9}\n"
             "  - batch.unbatch: {}\n",
    "cutmix": fixed + "  - batch.stack: {size: 5}\n  - batch.cutmix: {num_classes: 9}\n"
             "  - batch.unbatch: {}\n",
    "erase": fixed + "  - image.erase: {value: [123, 117, 104], p: 0.8}\n  - image.erase: {random: true}\n",
    "zoom_out": "  - image.zoom_out: {fill: [123, 117, 104], p: 0.8}\n" + fixed,
    "grayscale": fixed + "  - image.grayscale: {}\n",
    "gaussian_blur": fixed + "  - image.gaussian_blur: {size: 7}\n",
    "normalize": fixed + "  - image.normalize: {mean: imagenet, std: imagenet}\n",
    "normalize to float16, chw": fixed + "  - image.normalize: {mean: imagenet, std: imagenet, dtype: float16}\n"
                                         "  - tensor.layout: {order: chw}\n",
    "vision": "  - image.random_resized_crop: {size: 48}\n  - image.flip: {}\n"
              "  - image.normalize: {mean: imagenet, std: imagenet}\n  - tensor.layout: {order: chw}\n",
    "affine": fixed + "  - image.affine: {degrees: 20, translate: [0.1, 0.2], scale: [0.8, 1.3], shear: 9, "
                      "interpolation: bilinear}\n",
    "elastic": fixed + "  - image.elastic: {fill: 99}\n"
               "  - image.elastic: {alpha: [200, 20], sigma: [3, 0], interpolation: nearest}\n",
    "perspective": fixed + "  - image.perspective: {p: 0.8, fill: 99}\n"
                           "  - image.perspective: {p: 1, distortion_scale: 0.9, interpolation: nearest}\n",
    "gaussian_noise": fixed + "  - image.gaussian_noise: {mean: 0.1}\n  - tensor.cast: {dtype: float32}\n"
                              "  - image.gaussian_noise: {sigma: 0.05, clip: false}\n",
    "five_crop, ten_crop": fixed + "  - image.five_crop: {size: [30, 40]}\n  - image.ten_crop: {size: [8, 17]}\n",
    "groups of steps": fixed + "  - apply: {p: 0.7, steps: [image.flip: {p: 1}, image.invert]}\n"
                               "  - one_of: {choices: [image.equalize: {p: 1}, []], weights: [2, 1]}\n",
    "clip": fixed + "  - image.clip: {min: 40, max: 200}\n",
    "cast with scale": fixed + "  - tensor.cast: {dtype: float32, scale: true}\n",
    "jpeg": fixed,
    "jpeg at a reduced scale": fixed,
    "encode": fixed + "  - image.encode: {quality: 90, sampling: '444'}\n  - image.decode: {mode: exact}\n"
              "  - image.encode: {format: png}\n  - image.decode: {mode: exact}\n",
    "float views": "  - tensor.cast: {dtype: float32}\n  - image.random_resized_crop: {size: 48}\n"
                   "  - image.color_jitter: {brightness: 0.1, contrast: 0.1, saturation: 0.1, hue: 0.1}\n"
                   "  - image.gaussian_blur: {size: 5}\n",
}
sounds = {
    "mono, resample": "  - audio.mono: {}\n  - audio.resample: {rate: 16000}\n",
    "resample as torchaudio does": "  - audio.resample: {rate: 16000, filter: torchaudio}\n",
    "spectrogram": "  - audio.resample: {rate: 16000}\n  - audio.spectrogram: {window: hamming, power: 1}\n",
    "mel, db": "  - audio.mono: {}\n  - audio.resample: {rate: 16000}\n  - audio.mel: {hop: 160}\n  - audio.db: {}\n",
    "mel of slaney, log": "  - audio.resample: {rate: 8000}\n"
                          "  - audio.mel: {n_fft: 360, scale: slaney, norm: true}\n  - audio.log: {}\n",
    "mfcc, masks": "  - audio.resample: {rate: 8000}\n  - audio.mel: {}\n  - audio.db: {}\n"
                   "  - audio.mfcc: {n_mfcc: 20}\n  - audio.time_mask: {max: 9}\n  - audio.freq_mask: {max: 5, count: 2}\n",
    "gain, trim, crop, pad": "  - audio.resample: {rate: 11025}\n  - audio.gain: {db: [-6, 6]}\n"
                             "  - audio.trim: {top_db: 20, frame: 256, hop: 64}\n  - audio.crop: {frames: 900}\n"
                             "  - audio.pad: {frames: 1000, side: both}\n",
    "masks, mel_scale": "  - audio.resample: {rate: 8000}\n  - audio.spectrogram: {n_fft: 256}\n  - audio.freq_mask: {max: 40}\n"
                        "  - audio.mel_scale: {rate: 8000, n_mels: 32, norm: true}\n",
    "speed, pitch": "  - audio.mono: {}\n  - audio.resample: {rate: 8000}\n  - audio.speed: {factors: [0.5, 0.9, 1.1]}\n"
                    "  - audio.pitch: {steps: [-3, 3], n_fft: 256}\n",
    "time_stretch, reverb": "  - audio.resample: {rate: 8000}\n  - audio.time_stretch: {rate: [0.7, 1.3], n_fft: 360}\n"
                            "  - audio.reverb: {rt60: 0.05}\n",
    "noise, reverb of files": "  - audio.resample: {rate: 8000}\n  - audio.noise: {path: FILES, snr: [0, 9]}\n"
                              "  - audio.reverb: {path: FILES, p: 0.5}\n",
}
texts = {
    "tokenize, truncate, add, pad": "  - tokens.truncate: {length: 40}\n  - tokens.add: {begin: 1, end: [2, 3]}\n"
                                    "  - tokens.pad: {multiple: 7, value: -1, side: start, mask: true, lengths: true}\n"
                                    "  - batch.pad: {size: 4}\n",
    "strip, lower, normalize, split, vocab_lookup":
        "  - text.strip: {}\n  - text.lower: {}\n  - text.normalize: {form: nfkd}\n  - text.split: {}\n"
        "  - tokens.vocab_lookup: {path: '{words}', unknown: the}\n  - batch.pad: {size: 4}\n",
    "tokenize_wordpiece": "  - text.tokenize_wordpiece: {vocab: '{pieces}'}\n  - batch.pad: {size: 4}\n",
    "tokenize_unigram": "  - text.tokenize_unigram: {model: '{models}/unigram'}\n  - batch.pad: {size: 4}\n",
    "tokenize_unigram by bpe and bytes":
        "  - text.tokenize_unigram: {model: '{models}/bpe', to: a}\n  - text.detokenize: {model: '{models}/bpe', field: a}\n"
        "  - text.tokenize_unigram: {model: '{models}/bytes'}\n  - batch.pad: {size: 4}\n",
    "mask": "  - tokens.mask: {mask_id: 3, vocab_size: 265, special: 32}\n  - batch.pad: {size: 4}\n",
    "mask of whole words": "  - text.tokenize_wordpiece: {vocab: '{pieces}'}\n"
                           "  - tokens.mask: {mask_id: 0, random: 0, probability: 0.4, whole_words: true, vocab: '{pieces}'}\n"
                           "  - batch.pad: {size: 4}\n",
    "embed, detokenize": "  - tokens.embed: {table: '{table}'}\n  - text.detokenize: {ranks: '{ranks}'}\n"
                         "  - batch.pad: {size: 4}\n",
    "sample without replacement, window":
        "  - order.sample: {count: 40, replacement: false}\n  - text.split: {}\n"
        "  - flow.window: {size: 4, stride: 3, drop_last: false, ragged: true}\n  - batch.stack: {size: 2, ragged: true}\n",
    "join":
        "  - record.rename: {fields: {tokens: words}}\n    name: lines\n"
        "  - source.range: {n: 30, step: 3}\n    inputs: []\n  - order.repeat: {count: 2}\n    name: numbers\n"
        "  - flow.join: {on: index}\n    inputs: [lines, numbers]\n  - order.shuffle: {}\n"
        "  - batch.stack: {size: 2, ragged: true}\n",
    "pack": "  - tokens.pack: {length: 48, bins: 4, value: 3}\n  - batch.stack: {size: 4}\n",
}
scenes = {
    "coco, zoom_out, iou_crop, sanitize, convert":
        "  - image.zoom_out: {fill: [123, 117, 104], field: [image, boxes]}\n  - image.iou_crop: {field: [image, boxes]}\n"
        "  - boxes.sanitize: {rows: [labels, area, iscrowd, annotation_id]}\n  - image.flip: {field: [image, boxes]}\n"
        "  - boxes.convert: {to: cxcywh}\n",
    "coco, scale_jitter, fixed_size_crop, anchors":
        "  - image.scale_jitter: {size: 70, scale: [0.7, 1.3], field: [image, boxes]}\n"
        "  - image.fixed_size_crop: {size: 70, fill: 3, field: [image, boxes]}\n  - boxes.anchors: {size: 70, unmatched: 0.3}\n",
    "coco, cover_crop": "  - image.cover_crop: {cover: 0.4, keep: 0.3, field: [image, boxes]}\n",
}
rows = {
    "lines": ("a.txt", "one\ntwo\r\n\n\ufeffthree ü\n" + "x" * 40000 + "\nlast",
              "source.lines: {path: a.txt, skip_empty: true}"),
    "jsonl": ("a.jsonl", '{"n": 1, "t": "ü\\n", "l": [1, {"k": null}]}\n\n{"l": [], "t": "", "n": -0.5e3}\n',
              "source.jsonl: {path: a.jsonl}"),
    "csv": ("a.csv", 'n;t;b\n1;"a ""b""\n;";true\n 2.5 ; x y ;false', "source.csv: {path: a.csv, delimiter: ';', types: {b: bool}}"),
}
def npy(descr, shape, data):
    """A .npy file."""
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + data


def npz(arrays):
    """A .npz file whose second array is deflated."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for number, (name, array) in enumerate(arrays.items()):
            made.writestr(zipfile.ZipInfo(name + ".npy"), array, zipfile.ZIP_DEFLATED if number == 1 else zipfile.ZIP_STORED)
    return file.getvalue()


rows["npy"] = ("a.npy", npy(">i2", (5, 3), struct.pack(">15h", *range(-7, 8))), "source.npy: {path: a.npy}")
rows["npz"] = ("a.npz", npz({"x": npy("<u4", (5, 2), struct.pack("<10I", *range(2**32 - 10, 2**32))),
                             "y": npy("<f8", (5,), struct.pack("<5d", 0, -1, 2.5, 1e300, 7)),
                             "b": npy("|b1", (5, 1, 2), bytes([0, 1] * 5))}), "source.npy: {path: a.npz}")
rows["arrow"] = ("a.arrow", (source / "fuzz/corpus/arrow/plain").read_bytes(), "source.arrow: {path: a.arrow}")
rows["arrow with nulls"] = ("b.arrow", (source / "fuzz/corpus/arrow/file").read_bytes(),
                            "source.arrow: {path: b.arrow, columns: [i, b, t, y, l, v, f, d, s, e, ts], "
                            "fill: {i: '-7', b: 'true', t: none, s.bytes: x, s.path: '='}}")
for name in ("plain", "snappy"):
    rows[f"parquet {name}"] = (f"{name}.parquet", (source / "fuzz/corpus/parquet" / name).read_bytes(),
                               f"source.parquet: {{path: {name}.parquet}}")
for name in ("gzip", "lz4"):
    rows[f"parquet {name}"] = (f"{name}.parquet", (source / "fuzz/corpus/parquet" / name).read_bytes(),
                               f"source.parquet: {{path: {name}.parquet, "
                               "fill: {i: '-7', u: '7', t: none, f: '0.5', x: xx, b: 'true', l: '=', d: '3'}}")
rows["parquet where"] = ("snappy.parquet", (source / "fuzz/corpus/parquet/snappy").read_bytes(),
                         "source.parquet: {path: snappy.parquet, where: \"id >= 9 and text != '11'\"}")
rows["lmdb"] = ("data.mdb", (source / "fuzz/corpus/lmdb/plain").read_bytes(), "source.lmdb: {path: data.mdb}")
for name in ("plain", "chunked", "chunked_new", "texts"):
    rows[f"hdf5 {name}"] = (f"{name}.h5", (source / "fuzz/corpus/hdf5" / name).read_bytes(), f"source.hdf5: {{path: {name}.h5}}")
update = os.environ.get("HEADRACE_GOLDEN_UPDATE")
want = json.loads(golden.read_text()) if golden.exists() else {}
got = {}


def png(path, number):
    """Waves and blocks whose position and size depend on the number; the last one is gray."""
    width, height, channels = *sides(number), 1 if number == 11 else 3
    rows = b""
    for y in range(height):
        rows += b"\0" + bytes((x * (c + 2) + y * (5 - c) + (x * y) // (8 + number) + 40 * ((x // 16 + y // 11) % 3)) % 256
                              for x in range(width) for c in range(channels))
    write_png(path, width, height, 8, 2 if channels == 3 else 0, rows)


def mask(path, number):
    """Stripes of labels of 1, 2, 4 or 8 bits, of the picture's size, with a palette or in gray."""
    (width, height), depth = sides(number), (1, 2, 4, 8)[number % 4]
    rows = b""
    for y in range(height):
        labels = "".join(f"{(x // 9 + y // 7 * number) % (1 << depth):0{depth}b}" for x in range(width))
        rows += b"\0" + bytes(int(labels[at:at + 8].ljust(8, "0"), 2) for at in range(0, len(labels), 8))
    write_png(path, width, height, depth, 3 if number % 3 else 0, rows)


def sides(number):
    return 120 + 9 * number, 140 - 7 * number


def write_png(path, width, height, depth, colour, rows):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    palette = chunk(b"PLTE", bytes(i * k % 256 for i in range(1 << depth) for k in (3, 5, 7))) if colour == 3 else b""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + palette + chunk(b"IDAT", zlib.compress(rows)) +
                     chunk(b"IEND", b""))


def pictures(jpeg):
    folder = temp / ("jpeg" if jpeg else "png")
    if jpeg and not folder.exists():
        run("synth", "photos", folder, "--count", 12, "--classes", 3, "--width", 160, "--height", 120, "-q")
    elif not folder.exists():
        for number in range(12):
            png(folder / f"class_{number % 3}" / f"picture_{number:02}.png", number)
    return folder


def sound_files():
    """Two channels of two sweeps each, by integers, at three rates."""
    folder = temp / "wav"
    if folder.exists():
        return folder
    folder.mkdir()
    for number in range(9):
        with wave.open(str(folder / f"sound_{number}.wav"), "wb") as file:
            file.setnchannels(2)
            file.setsampwidth(2)
            file.setframerate((8000, 22050, 44100)[number % 3])
            values = [(i * i * (c + 3) // (7 + number) + 37 * i) % 20011 - 10005 if 500 < i < 2500 else 0
                      for i in range(3000 + 100 * number) for c in range(2)]
            file.writeframes(struct.pack(f"<{len(values)}h", *values))
    return folder


def sound_case(name, steps):
    def check():
        begin = f"  - source.files: {{path: '{sound_files()}', suffixes: [wav]}}\n  - audio.decode: {{}}\n"
        path = graph("golden.yaml", "pipeline:\n" + begin + steps.replace("FILES", f"'{sound_files()}'") + "  - batch.pad: {size: 4}\n")
        compare(name, path)

    add(name, check)


def text_files():
    """Lines of words, and a vocabulary of the 256 bytes and some pairs of letters."""
    lines, ranks = temp / "lines.txt", temp / "pairs.tiktoken"
    if not lines.exists():
        words = ["the", "water", "wheel", "é", "turns", "a mill", "in 1872,", "don't", "\u65e5\u672c"]
        lines.write_text("".join(" ".join(words[(i * i + k * 7) % 9] for k in range(i * 5 % 13)) + "\n"
                                 for i in range(60)), encoding="utf-8")
        pairs = [bytes(pair, "ascii") for pair in ("th", "he", " w", "er", "in", "the", " the", "tu", "ee")]
        tokens = [bytes([i]) for i in range(256)] + pairs
        ranks.write_text("".join(f"{base64.b64encode(t).decode()} {i}\n" for i, t in enumerate(tokens)))
        head = b"{'descr': '<i2', 'fortran_order': False, 'shape': (265, 4), }\n"
        (temp / "table.npy").write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head +
                                         struct.pack("<1060h", *(i * i % 30011 for i in range(1060))))
        (temp / "pieces.txt").write_text("[UNK]\nwat\n##er\nthe\nw\n##heel\ne\n,\ndon\n'\nt\n\u65e5\n1\n##87\n##2\n", encoding="utf-8")
        (temp / "words.txt").write_text("water\nthe\nwheel\nin\n")
    return lines, ranks


def text_case(name, steps):
    def check():
        lines, ranks = text_files()
        begin = f"  - source.list: {{path: '{lines}'}}\n"
        filled = steps.replace("{ranks}", str(ranks)).replace("{models}", str(source / "fuzz/corpus/sentencepiece"))
        for file in ("words.txt", "pieces.txt", "table.npy"):
            filled = filled.replace("{" + file.split(".")[0] + "}", str(temp / file))
        if "text." not in steps or "{ranks}" in steps:
            begin += f"  - text.tokenize_bpe: {{ranks: '{ranks}'}}\n"
        compare(name, graph("golden.yaml", "pipeline:\n" + begin + filled))

    add(name, check)


def scene_case(name, steps):
    """Three boxes on each picture but one, among them a crowd and one of no width."""
    def check():
        folder = pictures(False)
        files = sorted(path.relative_to(folder) for path in folder.rglob("*.png"))
        images = [{"id": 3 * i + 1, "file_name": str(path)} for i, path in enumerate(files)]
        boxes = [{"id": 100 + i, "image_id": 3 * (i // 3) + 1, "category_id": 5 + i * i % 3, "iscrowd": int(i % 7 == 0),
                  "bbox": [i * 5 % 60 + 0.5, i * 7 % 50, i * 13 % 45, 9 + i % 30]} for i in range(3 * len(files) - 3)]
        names = [{"id": i, "name": f"kind {i}"} for i in (7, 5, 6)]
        path = temp / "instances.json"
        path.write_text(json.dumps({"images": images, "annotations": boxes, "categories": names}))
        compare(name, graph("golden.yaml", f"pipeline:\n  - source.coco: {{path: '{folder}', annotations: '{path}', "
                            "columns: [path, area, iscrowd, annotation_id]}\n  - order.shuffle: {}\n"
                            "  - image.decode: {mode: exact}\n" + steps + "  - batch.stack: {size: 5, ragged: true}\n"))

    add(name, check)


def masks_case():
    def check():
        folder = temp / "voc"
        for number in range(8):
            png(folder / f"JPEGImages/{number}.png", number)
            mask(folder / f"SegmentationClass/{number}.png", number)
        (folder / "names.txt").write_text("".join(f"{number}\n" for number in range(8)))
        compare("masks", graph("golden.yaml", f"pipeline:\n  - source.voc: {{path: '{folder}', split: '{folder}/names.txt', "
                               "task: segmentation, suffix: .png, columns: [name]}\n  - order.shuffle: {}\n"
                               "  - image.decode: {mode: exact}\n  - image.decode: {field: mask, to: mask, color: labels}\n"
                               "  - image.rotate: {degrees: 30, mask_fill: 255, field: [image, mask]}\n"
                               "  - image.random_crop: {size: 130, pad_if_needed: true, mask_fill: 254, field: [image, mask]}\n"
                               "  - batch.stack: {size: 5}\n"))

    add("masks", check)


def case(name, steps):
    def check():
        begin = head.format(pictures(name.startswith("jpeg")))
        if name.endswith("reduced scale"):
            begin = begin.replace("exact", "fast")
        if "num_classes" in steps:
            begin = begin.replace("'}", "', labels: folder}")
        compare(name, graph("golden.yaml", "pipeline:\n" + begin + steps + tail))

    add(name, check)


def row_case(name, file, text, source):
    def check():
        (temp / file).write_bytes(text if isinstance(text, bytes) else text.encode())
        compare(name, graph("golden.yaml", f"pipeline:\n  - {source}\n  - order.shuffle: {{}}\n"
                                           "  - batch.stack: {size: 2, ragged: true}\n"))

    add(name, check)


def compare(name, path):
    got[name] = run_json("run", path, "--digest", "--seed", 7)["digest"]
    if not update:
        assert got[name] == want.get(name), f"{name}: {got[name]}, not {want.get(name)} (make golden-update)"


def add(name, check):
    check.__name__ = "bytes_of_" + name.replace(", ", "_and_").replace(" ", "_")
    tests.append(check)


def write():
    golden.parent.mkdir(exist_ok=True)
    golden.write_text(json.dumps(got, indent=1) + "\n")


for name, steps in cases.items():
    case(name, steps)
for name, steps in sounds.items():
    sound_case(name, steps)
for name, steps in texts.items():
    text_case(name, steps)
for name, steps in scenes.items():
    scene_case(name, steps)
for name, row in rows.items():
    row_case(name, *row)
masks_case()
if update:
    write.__name__ = "golden_digests_are_written"
    tests.append(write)
main()
