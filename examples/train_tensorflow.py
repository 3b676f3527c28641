"""Keras: a pipeline as a tf.data.Dataset.

headrace synth photos photos/ --count 300
python examples/train_tensorflow.py photos/
"""

from __future__ import annotations

import sys

import tensorflow as tf

import headrace as hr
from headrace.adapters.tensorflow import dataset


def main(photos: str, epochs: int = 2) -> None:
    train = (
        hr.files(photos, labels="folder")
        .shuffle()
        .decode()
        .random_resized_crop(64)
        .flip()
        .normalize("imagenet")
        .to("float32")
        .batch(32)
    )
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Conv2D(16, 3, strides=4, activation="relu"),
            tf.keras.layers.GlobalAveragePooling2D(),
            tf.keras.layers.Dense(10),
        ]
    )
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(dataset(train, pairs=("image", "label"), seed=1), epochs=epochs, verbose=2)


if __name__ == "__main__":
    main(sys.argv[1])
