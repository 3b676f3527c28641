"""A Hugging Face dataset of pictures, decoded by Headrace's threads instead of PIL.

python examples/cookbook/hf_dataset.py uoft-cs/cifar10      # from the hub, or a folder of Parquet files
"""

import sys

import datasets

import headrace as hr

data = datasets.load_dataset(sys.argv[1] if len(sys.argv) > 1 else "uoft-cs/cifar10", split="train")
picture = next(name for name, feature in data.features.items() if isinstance(feature, datasets.Image))
data = data.cast_column(picture, datasets.Image(decode=False))  # the files' bytes, read in Arrow's memory

train = (
    hr.from_dataset(data)
    .shuffle()
    .decode(field=f"{picture}.bytes", to="pixels")
    .random_resized_crop(32, field="pixels")
    .flip(field="pixels")
    .normalize("imagenet", field="pixels")
    .layout("chw", field="pixels")
    .batch(64)
)

loader = train.loader(output="numpy")
for number, batch in enumerate(loader):
    if number % 100 == 0:
        print(f"batch {number}: {', '.join(f'{name} {value.shape}' for name, value in batch.items())}")
print(f"{len(data)} pictures in {len(loader)} batches")
