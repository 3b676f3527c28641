"""Pictures and masks of Pascal VOC: one draw moves both, and masks keep their labels.

python examples/cookbook/segmentation.py VOCdevkit/VOC2012
"""

import sys

import numpy as np

import headrace as hr

OUTSIDE = 255  # the label of outlines, and of what rotation brings in: the loss's ignore_index
both = ["image", "mask"]

scenes = hr.voc(sys.argv[1] if len(sys.argv) > 1 else "VOCdevkit/VOC2012", split="train", task="segmentation")
train = (
    scenes.shuffle()
    .decode()
    .decode(field="mask", to="mask", color="labels")
    .rotate(10, mask_fill=OUTSIDE, field=both)
    .random_resized_crop(96, scale=[0.25, 1], field=both)
    .flip(field=both)
    .color_jitter(brightness=0.4)  # the image alone
    .normalize("imagenet")
    .layout("chw")
    .cast("int64", field="mask")
    .batch(4)
)

for batch in train.loader(output="numpy"):
    labels, counts = np.unique(batch.mask[batch.mask != OUTSIDE], return_counts=True)
    shares = ", ".join(f"{label}: {share:.0%}" for label, share in zip(labels, counts / counts.sum(), strict=True))
    print(f"images {batch.image.shape}, masks {batch.mask.shape}; pixels by label {shares}")
