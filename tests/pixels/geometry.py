"""The windows drawn by random_resized_crop and random_crop.

For a picture whose red is x and whose green is y, the result shows which window was
taken. Random draws depend on seed, record and node, not on pixels, so photos of the same
size get the same windows; they are compared with Pillow's resized crop of that window.
"""
import numpy as np
import torch
from PIL import Image
from torchvision.transforms import v2

from frame import Row

WIDTH, HEIGHT, COUNT, SIZE = 250, 190, 400, 64


def coordinates(folder):
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.uint8)
    save(folder, [np.dstack([x, y, x])] * COUNT)


def pieces(folder, photos):
    """COUNT images of WIDTH x HEIGHT from the photos, enlarging small ones."""
    arrays = []
    for path in photos:
        with Image.open(path) as image:
            arrays.append(np.asarray(image.convert("RGB").resize((WIDTH, HEIGHT))))
    save(folder, [arrays[i % len(arrays)] for i in range(COUNT)])
    return arrays


def save(folder, arrays):
    folder.mkdir(parents=True, exist_ok=True)
    for at, array in enumerate(arrays):
        Image.fromarray(array).save(folder / f"{at:05}.png", compress_level=1)


def span(line):
    """Position and length of the window whose `line` is this ramp of coordinates.
    Ignores the ends of the ramp, where the filter reaches the border."""
    inner = slice(len(line) // 5, len(line) - len(line) // 5)
    at = np.arange(len(line))[inner] + 0.5
    slope, begin = np.polyfit(at, line[inner] + 0.5, 1)
    return begin, slope * len(line)


def windows(made):
    """Returns an array of x, y, width, height."""
    found = []
    for image in made:
        x, width = span(image[:, :, 0].astype(float).mean(axis=0))
        y, height = span(image[:, :, 1].astype(float).mean(axis=1))
        found.append((x, y, width, height))
    return np.array(found)


def distance(ours, theirs):
    """Kolmogorov-Smirnov: the maximum distance of two distributions, and the distance that chance
    exceeds once in a thousand."""
    every = np.concatenate([ours, theirs])
    below = [np.searchsorted(np.sort(s), every, side="right") / len(s) for s in (ours, theirs)]
    limit = 1.95 * np.sqrt((len(ours) + len(theirs)) / (len(ours) * len(theirs)))
    return np.abs(below[0] - below[1]).max(), limit


def their_windows(count):
    torch.manual_seed(1)
    crop = v2.RandomResizedCrop(SIZE)
    image = torch.zeros(3, HEIGHT, WIDTH, dtype=torch.uint8)
    draws = [crop.make_params([image]) for _ in range(count)]
    return np.array([[d["left"], d["top"], d["width"], d["height"]] for d in draws], float)


def check_rrc(bench, name, photos):
    # A cast, or an identity: the crop must be the same node in each graph.
    crop = [f"image.random_resized_crop: {{size: {SIZE}}}"]
    floats = ["image.decode: {}", "tensor.cast: {dtype: float32}"] + crop
    levels = ["image.decode: {}", "debug.identity: {}"] + crop
    mapped, cut = bench.work / "coordinates", bench.work / "pieces"
    coordinates(mapped)
    originals = pieces(cut, photos)
    ramps, problem = bench.run(mapped, floats)  # floats, so that windows can be read exactly
    if problem:
        yield Row(f"{name}: windows", "torchvision", 0).broken(problem)
        return
    found = windows([255 * r for r in ramps])
    yield whole_numbers(name, found)
    theirs = their_windows(20000)
    yield from distributions(name, found, theirs)
    made, problem = bench.run(cut, levels)
    row = Row(f"{name}: pixels", "Pillow", 1)
    if problem:
        yield row.broken(problem)
        return
    for at, (window, ours) in enumerate(zip(np.rint(found).astype(int), made)):
        x, y, w, h = window
        image = Image.fromarray(originals[at % len(originals)]).crop((x, y, x + w, y + h))
        their = np.asarray(image.resize((SIZE, SIZE), Image.Resampling.BILINEAR))
        row.add(np.abs(ours.astype(float) - their))
    yield row


def whole_numbers(name, found):
    """Checks that windows are on whole pixels inside the image."""
    row = Row(f"{name}: whole pixels, inside (pixels)", "torchvision", 0.1)
    inside = np.rint(found)
    row.add(np.abs(found - inside))
    x, y, w, h = inside.T
    if (x < 0).any() or (y < 0).any() or (x + w > WIDTH).any() or (y + h > HEIGHT).any():
        return row.broken("a window reaches out of the image")
    return row


def distributions(name, found, theirs):
    quantities = {
        "area": lambda v: v[:, 2] * v[:, 3],
        "log ratio": lambda v: np.log(v[:, 2] / v[:, 3]),
        "left": lambda v: v[:, 0],
        "top": lambda v: v[:, 1],
        "place in x": lambda v: v[:, 0] / np.maximum(1, WIDTH - v[:, 2]),
        "place in y": lambda v: v[:, 1] / np.maximum(1, HEIGHT - v[:, 3]),
    }
    for what, of in quantities.items():
        gap, limit = distance(of(np.rint(found)), of(theirs))
        row = Row(f"{name}: distribution of {what} (KS)", "torchvision", limit)
        row.add(np.array([gap]))
        row.photos = len(found)
        yield row


def check_random_crop(bench, name, photos):
    mapped = bench.work / "coordinates"
    coordinates(mapped)
    made, problem = bench.run(mapped, ["image.decode: {}", "image.random_crop: {size: [90, 50]}"])
    row = Row(f"{name}: windows hold what they held", "itself", 0)
    if problem:
        yield row.broken(problem)
        return
    corners = []
    for image in made:
        x, y = int(image[0, 0, 0]), int(image[0, 0, 1])
        expected = np.dstack(np.meshgrid(np.arange(x, x + 50), np.arange(y, y + 90)))
        row.add(np.abs(image[:, :, :2].astype(int) - expected))
        corners.append((x, y))
    yield row
    corners = np.array(corners, float)
    rng = np.random.default_rng(1)
    for at, room in ((0, WIDTH - 50), (1, HEIGHT - 90)):
        gap, limit = distance(corners[:, at], rng.integers(0, room + 1, 20000).astype(float))
        row = Row(f"{name}: distribution of {'xy'[at]} (KS)", "uniform", limit)
        row.add(np.array([gap]))
        row.photos = len(made)
        yield row


def check_close(bench, name, photos):
    """Mode close vs. mode exact on the same windows: the effect of reduced decoding."""
    for size in (224, 64):
        row = Row(f"{name}, crop {size}: mean of all", "mode exact", 1)
        made = {}
        for mode in ("close", "exact"):
            made[mode], problem = bench.run(
                bench.photos, [f"image.decode: {{mode: {mode}}}",
                               f"image.random_resized_crop: {{size: {size}}}"])
            if problem:
                yield row.broken(problem)
                return
        means = [np.abs(close.astype(float) - exact).mean()
                 for close, exact in zip(made["close"], made["exact"])]
        row.add(np.array([np.mean(means)]))
        row.photos = len(means)
        row.remark = f"the worst image {max(means):.2f}"
        yield row


CHECKS = {
    "random_resized_crop": check_rrc,
    "random_crop": check_random_crop,
    "mode close": check_close,
}
