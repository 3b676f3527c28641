"""make bench B=augment: augmentations of uint8 images vs. torchvision's, on one core.

    bench/python/augment.py [IMAGES]

Needs torch and torchvision. Images of 224 x 224 with smooth colours and noise, from a .npy file: ours
through the package, with nothing but the op and batches of 64; torchvision's transforms on tensors in
memory, stacked to batches of 64, with one thread. "nothing" is the rate without the op. All run in
turns, five times. Prints images per second of CPU time, medians, and the ratio.
"""

import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np
import torch
import torchvision.transforms.v2 as v2

import headrace as hr

SIDE, BATCH = 224, 64
CASES = {
    "nothing": (lambda p: p, v2.Identity()),
    "RandAugment": (lambda p: p.rand_augment(), v2.RandAugment()),
    "RandAugment, bilinear": (
        lambda p: p.rand_augment(interpolation="bilinear"),
        v2.RandAugment(interpolation=v2.InterpolationMode.BILINEAR),
    ),
    "perspective": (lambda p: p.perspective(p=1), v2.RandomPerspective(p=1)),
    "gaussian noise": (lambda p: p.gaussian_noise(), v2.GaussianNoise()),
    "ColorJitter for 80 %": (
        lambda p: p.apply(lambda q: q.color_jitter(brightness=0.8, contrast=0.8, saturation=0.8, hue=0.2), p=0.8),
        v2.RandomApply([v2.ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8),
    ),
    "TrivialAugmentWide": (lambda p: p.trivial_augment_wide(), v2.TrivialAugmentWide()),
}


def photos(count):
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:SIDE, 0:SIDE]
    for _ in range(count):
        a, b, c = rng.uniform(0.01, 0.08, 3)
        smooth = 127 + 90 * np.stack([np.sin(a * x + b * y), np.cos(b * x), np.sin(c * y - a * x)], axis=2)
        yield np.clip(smooth + rng.integers(-15, 16, smooth.shape), 0, 255).astype(np.uint8)


def ours(path, op, _images):
    pipe = op(hr.npy(path).rename({"array": "image"}).kind("image", "image"))
    for batch in pipe.batch(BATCH).loader(threads=0, output="numpy"):
        yield len(batch["image"])


def theirs(_path, transform, images):
    for first in range(0, len(images), BATCH):
        yield len(torch.stack([transform(image) for image in images[first : first + BATCH]]))


def rate(run, *args):
    begin = time.process_time()
    count = sum(run(*args))
    return count / (time.process_time() - begin)


def main(count):
    torch.set_num_threads(1)
    print(f"{'images per CPU second':32} {'headrace':>10} {'torchvision':>12} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "images.npy"
        arrays = np.stack(list(photos(count)))
        np.save(path, arrays)
        images = [torch.from_numpy(a).permute(2, 0, 1).contiguous() for a in arrays]
        for name, (op, transform) in CASES.items():
            rates = [(rate(ours, path, op, images), rate(theirs, path, transform, images)) for _ in range(5)]
            ratio = statistics.median(mine / other for mine, other in rates)
            mine, other = (statistics.median(values) for values in zip(*rates, strict=True))
            print(f"{name:32} {mine:10,.0f} {other:12,.0f} {ratio:6.2f}")


main(int(sys.argv[1]) if len(sys.argv) > 1 else 1024)
