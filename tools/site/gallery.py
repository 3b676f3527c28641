"""Pictures of augmentations: one photo six times through each call, as PNG files, and their page."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import tempfile

import headrace as hr

COUNT, SIDE = 6, 120
CALLS = {
    "Geometry": (
        "random_resized_crop(120)",
        "flip()",
        "rotate(30)",
        "affine(15, translate=[0.1, 0.1], scale=[0.8, 1.2], shear=[-10, 10])",
        "zoom_out(p=1, side_range=[1.0, 2.0])",
    ),
    "Colours": (
        "color_jitter(brightness=0.5, contrast=0.5, saturation=0.5, hue=0.2)",
        "photometric_distort()",
        "grayscale(p=0.5, channels=3)",
        "posterize(3)",
        "solarize(128)",
        "equalize()",
        "autocontrast()",
        "invert()",
        "permute_channels()",
    ),
    "Sharpness and holes": (
        "gaussian_blur(9, sigma=[0.1, 3.0])",
        "sharpness(5)",
        "jpeg([2, 15])",
        "erase()",
    ),
    "Policies": ("rand_augment()", "trivial_augment_wide()", "auto_augment()", "aug_mix()"),
}


def draw(folder: pathlib.Path) -> str:
    """Write the pictures to `folder`; returns the Markdown that shows them."""
    folder.mkdir(parents=True)
    made = []
    with tempfile.TemporaryDirectory() as photos:
        synth = [os.environ["HEADRACE_COMMAND"], "synth", "photos", photos, "--count", "1", "--seed", "8"]
        subprocess.run(synth, check=True, capture_output=True)
        (photo,) = pathlib.Path(photos).rglob("*.jpg")
        same = hr.files([photo] * COUNT).decode().resize([SIDE, SIDE])
        for title, calls in CALLS.items():
            made.append(f"## {title}\n")
            for call in calls:
                pipe = eval(f"same.{call}", {"same": same})
                if call.startswith("zoom_out"):
                    pipe = pipe.resize([SIDE, SIDE])
                batch = next(iter(pipe.batch(COUNT).loader(seed=3, output="numpy", shard=None)))
                name = re.match(r"\w+", call)[0]
                hr.show(batch, columns=6).save(folder / f"{name}.png")
                picture = f"![six photos after {name}](gallery/{name}.png){{loading=lazy}}"
                made.append(f"[`.{call}`](ops/image.{name}.md)\n\n{picture}\n")
    return "\n".join(made)
