"""Photos in one folder per class: training and validation batches for a classifier.

headrace synth photos photos --count 300        # or your own photos
python examples/cookbook/folders.py photos
"""

import sys

import headrace as hr

photos = hr.files(sys.argv[1] if len(sys.argv) > 1 else "photos", labels="folder")
train, val = hr.split(photos, [0.8, 0.2], seed=1)

train = train.shuffle().decode().random_resized_crop(64).flip().color_jitter(brightness=0.4)
val = val.decode().resize_shortest(72).center_crop(64)


def batches(images: hr.Pipeline) -> hr.Pipeline:
    return images.normalize("imagenet").to("float32", layout="chw").batch(32)


classes = photos.fields["label"].classes
print(f"{train.record_count} photos to train on, {val.record_count} to validate with, of {', '.join(classes)}")

for number, batch in enumerate(batches(train).loader(output="numpy")):
    print(f"batch {number}: {batch.image.dtype} {batch.image.shape}, first label {classes[batch.label[0]]}")

seen = sum(int(batch.valid.sum()) for batch in batches(val).loader(output="numpy", eval=True))
assert seen == val.record_count  # eval=True gives each photo once, whatever the number of ranks
