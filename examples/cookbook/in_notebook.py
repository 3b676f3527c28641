# %% [markdown]
# Headrace in a notebook: look at pipelines and batches, and send functions of cells to worker processes.
# `pip install 'headrace[notebook]'` adds cloudpickle, which these functions need.

# %%
import os

import numpy as np

import headrace as hr

photos = hr.files(os.environ.get("PHOTOS", "photos"), labels="folder").shuffle(seed=1).decode().resize([64, 64])
photos  # draws the pipeline


# %%
def negative(image: np.ndarray) -> np.ndarray:
    return 255 - image


train = photos.map(negative, fields="image", variant="processes").batch(16)
loader = train.loader(output="numpy")

# %%
batch = next(iter(loader))
hr.show(batch)  # a contact sheet with the names of classes and files

# %%
loader.close()  # ends the worker processes; they also end by themselves
print(f"{batch.records} photos of {len(set(batch.label.tolist()))} classes, mean {batch.image.mean():.0f}")
