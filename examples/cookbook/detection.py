"""Pictures with boxes from COCO's JSON: augmented together, in batches of different numbers of boxes.

python examples/cookbook/detection.py val2017 instances_val2017.json
"""

import sys

import headrace as hr

folder, annotations = sys.argv[1:] or ("val2017", "instances_val2017.json")
scenes = hr.coco(folder, annotations)
names = scenes.fields["labels"].classes

both = ["image", "boxes"]
train = (
    scenes.shuffle()
    .decode()
    .iou_crop(field=both)  # SSD's random crop
    .sanitize()  # drops boxes that the crop cut away, with their labels
    .flip(field=both)
    .resize([300, 300], field=both)
    .normalize("imagenet")
    .layout("chw")
    .batch(8, ragged=True)
)

for batch in train.loader(output="numpy"):
    print(f"{batch.image.shape[0]} pictures of {batch.image.shape[1:]}")
    for boxes, labels in zip(batch.boxes.items(), batch.labels.items(), strict=True):
        for (x1, y1, x2, y2), label in zip(boxes, labels, strict=True):
            print(f"  {names[label]} from ({x1:.0f}, {y1:.0f}) to ({x2:.0f}, {y2:.0f})")
