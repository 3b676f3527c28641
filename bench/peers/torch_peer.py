"""PyTorch DataLoader with torchvision's transforms v2, on Pillow or on torchvision.io.

The data set lists every photo COPIES times to make one pass of the loader long: a new pass
would restart its workers.
"""
import random

import torch
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

BATCH = 256
COPIES = 400


class Photos(Dataset):
    def __init__(self, files, read, transform):
        self.files, self.read, self.transform = files, read, transform

    def __len__(self):
        return len(self.files) * COPIES

    def __getitem__(self, at):
        return self.transform(self.read(self.files[at % len(self.files)]))


class Numbers(Dataset):
    """range -> four identities, each a function call, like user transforms."""

    def __len__(self):
        return 2_000_000_000

    def __getitem__(self, at):
        return same(same(same(same(at))))


class InOrder(torch.utils.data.Sampler):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        return iter(range(self.count))

    def __len__(self):
        return self.count


def same(x):
    return x


def read_pil(path):
    from PIL import Image

    with Image.open(path) as image:
        return image.convert("RGB")


def read_io(path):
    from torchvision import io

    return io.decode_image(io.read_file(path), mode=io.ImageReadMode.RGB)


def vision(form):
    steps = [
        v2.RandomResizedCrop(224, antialias=True),
        v2.RandomHorizontalFlip(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ]
    if form == "pil":
        steps.insert(2, v2.PILToTensor())
    return v2.Compose(steps)


def simclr(form):
    steps = [
        v2.RandomResizedCrop(244, antialias=True),
        v2.RandomHorizontalFlip(),
        v2.ColorJitter(0.1, 0.1, 0.1, 0.1),
        v2.Grayscale(1),
        v2.GaussianBlur(11, (0.1, 2.0)),
        v2.Normalize((0.1307,), (0.3081,)),
    ]
    # As cedar writes it, but in 0..1: its own 0..255 floats are clamped by the jitter.
    steps.insert(0 if form == "float" else -1, v2.ToDtype(torch.float32, scale=True))
    return v2.Compose(steps)


def batches(work, form, files, knob):
    """Returns (iterator over (batch, records), number of batches made concurrently)."""
    workers = int(knob)
    if work == "noop":
        data, order = Numbers(), InOrder(2_000_000_000)
        loader = DataLoader(data, BATCH, sampler=order, num_workers=workers)
    else:
        transform = vision(form) if work == "vision" else simclr(form)
        read = read_pil if form == "pil" else read_io
        read(files[0])  # fails here rather than in a worker if the decoder is missing
        torch.manual_seed(random.randrange(1 << 31))
        loader = DataLoader(Photos(files, read, transform), BATCH, shuffle=True,
                            num_workers=workers)
    return ((batch, len(batch)) for batch in loader), max(1, workers)
