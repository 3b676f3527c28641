"""Two random views of each photo, for contrastive training (SimCLR, BYOL, DINO).

The photo is read and decoded once; crops, flips and colours are drawn for each view.

    python examples/cookbook/two_views.py photos
"""

import sys

import headrace as hr

photos = hr.files(sys.argv[1] if len(sys.argv) > 1 else "photos", paths=True).shuffle().decode()


def view(images: hr.Pipeline) -> hr.Pipeline:
    return (
        images.random_resized_crop(96, scale=[0.2, 1])
        .flip()
        .color_jitter(brightness=0.8, contrast=0.8, saturation=0.8, hue=0.2)
        .grayscale(p=0.2, channels=3)
        .gaussian_blur(9, sigma=[0.1, 2.0])
        .normalize("imagenet")
        .layout("chw")
    )


pairs = hr.zip(view(photos), view(photos), prefix=["a_", "b_"])

for batch in pairs.batch(64).loader(output="numpy"):
    a, b = batch.a_image, batch.b_image
    assert a.shape == b.shape and (batch.a_path == batch.b_path)
    print(f"{len(a)} pairs of {a.shape[1:]}, mean difference {abs(a - b).mean():.2f}")
