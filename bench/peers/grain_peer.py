"""Grain's threads with OpenCV's decoder and resize (which does not antialias)."""
import cv2
import grain
import numpy as np

BATCH = 256
cv2.setNumThreads(0)

LEVELS = cv2.dnn.Image2BlobParams()
LEVELS.scalefactor = tuple(1 / (255 * s) for s in (0.229, 0.224, 0.225)) + (1.0,)
LEVELS.mean = tuple(255 * m for m in (0.485, 0.456, 0.406)) + (0.0,)
LEVELS.swapRB = True


def window(height, width, rng):
    """torchvision's RandomResizedCrop.get_params: scale .08 to 1, ratio 3/4 to 4/3."""
    for _ in range(10):
        area = height * width * rng.uniform(0.08, 1.0)
        ratio = np.exp(rng.uniform(np.log(3 / 4), np.log(4 / 3)))
        w, h = int(round((area * ratio) ** 0.5)), int(round((area / ratio) ** 0.5))
        if 0 < w <= width and 0 < h <= height:
            return rng.integers(0, height - h + 1), rng.integers(0, width - w + 1), h, w
    side = min(height, width)
    return (height - side) // 2, (width - side) // 2, side, side


def vision(path, rng):
    with open(path, "rb") as file:
        data = np.frombuffer(file.read(), np.uint8)
    image = cv2.imdecode(data, cv2.IMREAD_COLOR)
    y, x, h, w = window(image.shape[0], image.shape[1], rng)
    image = cv2.resize(image[y:y + h, x:x + w], (224, 224), interpolation=cv2.INTER_LINEAR)
    if rng.random() < 0.5:
        image = cv2.flip(image, 1)
    return cv2.dnn.blobFromImageWithParams(image, LEVELS)[0]


def batches(work, form, files, knob):
    """knob: records:N or batches:N: each of N threads makes a record or a batch at a time."""
    kind, _, threads = knob.partition(":")
    threads = int(threads)
    reading = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=64 * threads)
    if work == "noop":
        data = grain.MapDataset.range(1 << 40)
        for _ in range(4):
            data = data.map(lambda x: x)
        data = data.to_iter_dataset(reading).batch(BATCH)
    else:
        data = grain.MapDataset.source(files).seed(1).shuffle().repeat()
        data = data.random_map(vision)
        if kind == "batches":  # a thread makes a whole batch, including stacking
            reading = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=threads)
            data = data.batch(BATCH, drop_remainder=True).to_iter_dataset(reading)
        else:
            data = data.to_iter_dataset(reading).batch(BATCH, drop_remainder=True)
    together = max(1, threads) if kind == "batches" else 1
    return ((batch, len(batch)) for batch in data), together
