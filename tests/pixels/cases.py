"""The cases to compare: our pipeline, the other library's result for the same photo, and the
maximum difference in grey levels.

References take a Pillow image in RGB (Pillow) or a uint8 tensor CHW (torchvision) and return an
array HWC in grey levels, or CHW where the case says so.
"""
from dataclasses import dataclass
from typing import Callable

import numpy as np
import torch
from PIL import Image, ImageOps
from torchvision.transforms import InterpolationMode, v2
from torchvision.transforms.v2 import functional as tv

FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "box": Image.Resampling.BOX,
    "lanczos": Image.Resampling.LANCZOS,
}
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass
class Case:
    name: str
    nodes: list  # our ops after the decode, as YAML flow maps
    reference: Callable  # Pillow image -> array
    against: str
    levels: float = 1  # maximum difference
    beyond: float = 0  # fraction of the values that may differ by more
    decode: str = "{mode: exact}"
    unit: object = 1  # grey levels per unit of the output, a number or one per channel
    line_less: bool = False  # theirs may have an extra line (rotate's expand), which is then dropped


def tensor(image):
    return tv.pil_to_tensor(image)


def hwc(result):
    """Converts a tensor CHW or a Pillow image to an array HWC."""
    if isinstance(result, Image.Image):
        array = np.asarray(result)
        return array[:, :, None] if array.ndim == 2 else array
    return result.permute(1, 2, 0).numpy()


def on_tensor(function):
    return lambda image: hwc(function(tensor(image)))


def on_floats(function):
    return lambda image: hwc(function(tensor(image).to(torch.float32) / 255))


def decodes():
    def gray(image):
        with Image.open(image.filename_of_photo) as again:
            again.draft("L", again.size)
            return hwc(again.convert("L"))

    yield Case("decode", [], hwc, "Pillow")
    yield Case("decode gray", [], gray, "Pillow", decode="{mode: exact, color: gray}")
    yield Case("decode, orientation", [],
               lambda image: hwc(ImageOps.exif_transpose(image.opened).convert("RGB")),
               "Pillow", decode="{mode: exact, orientation: true}")


def exact_nearest(height, width):
    """Row y comes from floor((y + 1/2) * in / out), in integer arithmetic. Pillow and Headrace use
    floating point, so a position exactly between two pixels may go either way: one row or
    column in 77 here, nothing else."""
    def places(size, wanted):
        return (2 * np.arange(wanted) + 1) * size // (2 * wanted)

    return lambda image: hwc(image)[places(image.height, height)][:, places(image.width, width)]


def unclipped(size, which):
    """Pillow on floats: for uint8 it rounds and clips between its two passes, which removes the
    overshoot of bicubic and lanczos and gives differences of up to 34 levels at edges."""
    def resize(image):
        planes = [np.asarray(plane.convert("F").resize(size, which)) for plane in image.split()]
        return np.rint(np.clip(np.dstack(planes), 0, 255))

    return resize


def resizes():
    sizes = {"down": (97, 141), "down a little": (211, 301), "up": (701, 903),
             "one side up": (601, 77)}
    for name, which in FILTERS.items():
        for how, (height, width) in sizes.items():
            nodes = [f"image.resize: {{size: [{height}, {width}], interpolation: {name}}}"]
            pillow = (lambda image, s=(width, height), f=which: hwc(image.resize(s, f)))
            if name == "nearest":
                yield Case(f"resize {name}, {how}", nodes, exact_nearest(height, width),
                           "whole numbers", beyond=0.01)
                yield Case(f"resize {name}, {how}", nodes, pillow, "Pillow", beyond=0.01)
            elif name in ("bicubic", "lanczos"):
                yield Case(f"resize {name}, {how}", nodes, unclipped((width, height), which),
                           "Pillow on floats")
                yield Case(f"resize {name}, {how}", nodes, pillow, "Pillow", beyond=0.002)
            else:
                yield Case(f"resize {name}, {how}", nodes, pillow, "Pillow")
    for name in ("bilinear", "bicubic"):
        mode = InterpolationMode(name)
        for how, (height, width) in (("down", (97, 141)), ("up", (701, 903))):
            node = (f"image.resize: {{size: [{height}, {width}], interpolation: {name}, "
                    "antialias: false}")
            plain = (lambda t, s=[height, width], m=mode: tv.resize(
                t.to(torch.float32), s, m, antialias=False).clamp(0, 255))
            yield Case(f"resize {name}, {how}, no antialias", [node], on_tensor(plain),
                       "torchvision on floats")
            node = node.replace(", antialias: false", "")
            yield Case(f"resize {name}, {how}, floats",
                       ["tensor.cast: {dtype: float32}", node],
                       on_floats(lambda t, s=[height, width], m=mode:
                                 tv.resize(t, s, m, antialias=True)), "torchvision",
                       unit=255)
    yield Case("resize_shortest 256", ["image.resize_shortest: {size: 256}"],
               lambda image: hwc(tv.resize(image, 256)), "torchvision on Pillow")
    yield Case("resize_shortest 256, crop 224",
               ["image.resize_shortest: {size: 256}", "image.center_crop: {size: 224}"],
               lambda image: hwc(tv.center_crop(tv.resize(image, 256), 224)),
               "torchvision on Pillow")


def moves():
    yield Case("center_crop", ["image.center_crop: {size: [101, 90]}"],
               lambda image: hwc(tv.center_crop(image, [101, 90])), "torchvision")
    for name in ("horizontal", "vertical"):
        flip = tv.horizontal_flip if name == "horizontal" else tv.vertical_flip
        yield Case(f"flip {name}", [f"image.flip: {{p: 1, direction: {name}}}"],
                   on_tensor(flip), "torchvision")
    for mode in ("constant", "edge", "reflect"):
        fill = ", fill: 77" if mode == "constant" else ""
        yield Case(f"pad {mode}",
                   [f"image.pad: {{padding: [3, 5, 30, 17], mode: {mode}{fill}}}"],
                   on_tensor(lambda t, m=mode: tv.pad(t, [3, 5, 30, 17], 77, m)),
                   "torchvision")
    yield Case("random_crop of the whole",
               ["image.center_crop: {size: 64}", "image.random_crop: {size: 64}"],
               lambda image: hwc(tv.center_crop(image, 64)), "torchvision")


def colours():
    """torchvision truncates where we round: once in a blend, and for contrast once more in the
    grey values of its mean. So contrast of uint8 may differ by 2; floats agree."""
    factors = {"brightness": (0.4, 1.7), "contrast": (0.4, 1.7), "saturation": (0.0, 0.4, 1.7),
               "hue": (-0.5, -0.1, 0.03, 0.25)}
    for name, values in factors.items():
        adjust = getattr(tv, f"adjust_{name}")
        for value in values:
            node = f"image.color_jitter: {{{name}: [{value}, {value}]}}"
            yield Case(f"color_jitter {name} {value}", [node],
                       on_tensor(lambda t, a=adjust, v=value: a(t, v)), "torchvision",
                       levels=2 if name == "contrast" else 1)
            yield Case(f"color_jitter {name} {value}, floats",
                       ["tensor.cast: {dtype: float32}", node],
                       on_floats(lambda t, a=adjust, v=value: a(t, v)), "torchvision",
                       unit=255)
    yield Case("grayscale", ["image.grayscale: {}"], lambda image: hwc(image.convert("L")),
               "Pillow")
    yield Case("grayscale, 3 channels", ["image.grayscale: {channels: 3}"],
               on_tensor(lambda t: tv.rgb_to_grayscale(t, 3)), "torchvision")
    yield Case("grayscale, floats", ["tensor.cast: {dtype: float32}", "image.grayscale: {}"],
               on_floats(tv.rgb_to_grayscale), "torchvision", unit=255)


def blurs():
    for height, width, sigma in ((11, 11, 0.1), (11, 11, 1.1), (11, 11, 2.0), (5, 9, 1.5),
                                 (23, 23, 4.0)):
        node = f"image.gaussian_blur: {{size: [{height}, {width}], sigma: {sigma}}}"
        blur = (lambda t, k=[width, height], s=[sigma, sigma]: tv.gaussian_blur(t, k, s))
        yield Case(f"gaussian_blur {height}x{width}, sigma {sigma}", [node], on_tensor(blur),
                   "torchvision")
        yield Case(f"gaussian_blur {height}x{width}, sigma {sigma}, floats",
                   ["tensor.cast: {dtype: float32}", node], on_floats(blur), "torchvision",
                   unit=255)


BORDER = 0.001


def turned(function, fill=0):
    """torchvision's warp of floats (it truncates uint8) with the fill blended in. Its own `fill`
    applies the weight of a bilinear border pixel twice, so the fill is subtracted first, which
    makes it zero, and added afterwards."""
    return lambda image: hwc(function(tensor(image).to(torch.float32) - fill) + fill)


def turns():
    """Nearest: where a source position falls on the border of two pixels, rounding decides, and
    either neighbour is correct. Hence a few values may differ by more than a level; a quarter
    turn about the centre needs sides whose difference is even."""
    for angle in (30, -77.3, 90, 180):
        for name in ("nearest", "bilinear"):
            mode = InterpolationMode(name)
            yield Case(f"rotate {angle}, {name}",
                       ["image.center_crop: {size: [92, 70]}",
                        f"image.rotate: {{degrees: [{angle}, {angle}], interpolation: {name}, "
                        "fill: 40}"],
                       turned(lambda t, a=angle, m=mode:
                              tv.rotate(tv.center_crop(t, [92, 70]), a, m), 40),
                       "torchvision", beyond=BORDER if name == "nearest" else 0)
    for angle, name in ((30, "nearest"), (-77.3, "bilinear")):
        yield Case(f"rotate {angle}, {name}, whole photo",
                   [f"image.rotate: {{degrees: [{angle}, {angle}], interpolation: {name}}}"],
                   turned(lambda t, a=angle, m=InterpolationMode(name): tv.rotate(t, a, m)),
                   "torchvision", beyond=BORDER if name == "nearest" else 0)
    yield Case("rotate 90, expand", ["image.rotate: {degrees: [90, 90], expand: true}"],
               lambda image: np.rot90(hwc(image)), "numpy", levels=0)
    yield Case("rotate 30, bilinear, expand",
               ["image.rotate: {degrees: [30, 30], interpolation: bilinear, expand: true}"],
               turned(lambda t: tv.rotate(t, 30, InterpolationMode.BILINEAR, expand=True)),
               "torchvision", line_less=True)
    for name in ("nearest", "bilinear"):
        mode = InterpolationMode(name)
        yield Case(f"affine, {name}",
                   ["image.affine: {degrees: [20, 20], scale: [0.8, 0.8], "
                    f"shear: [10, 10, -5, -5], interpolation: {name}}}"],
                   turned(lambda t, m=mode: tv.affine(t, 20, [0, 0], 0.8, [10, -5], m)),
                   "torchvision", beyond=BORDER if name == "nearest" else 0)


def stores():
    levels = np.array(STD, np.float32) * 255
    normal = v2.Compose([v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])
    node = "image.normalize: {mean: imagenet, std: imagenet}"
    yield Case("normalize", [node], on_tensor(normal), "torchvision", 0.01, unit=levels)
    yield Case("normalize, chw", [node, "tensor.layout: {order: chw}"],
               lambda image: normal(tensor(image)).numpy(), "torchvision", 0.01,
               unit=levels[:, None, None])
    yield Case("cast float32", ["tensor.cast: {dtype: float32}"], on_floats(lambda t: t),
               "torchvision", 0.001, unit=255)
    yield Case("vision_eval", ["image.resize_shortest: {size: 256}",
                               "image.center_crop: {size: 224}", node,
                               "tensor.layout: {order: chw}"],
               lambda image: normal(tensor(tv.center_crop(tv.resize(image, 256), 224))).numpy(),
               "torchvision on Pillow", unit=levels[:, None, None])


def all_cases():
    for part in (decodes, resizes, moves, colours, blurs, turns, stores):
        yield from part()
