"""Keras: a pipeline as a tf.data.Dataset, with a model saved after each epoch.

headrace synth photos photos/ --count 300               # or your own photos, one folder per class
python examples/train_tensorflow.py photos/ model.keras # stop and restart it: resumes with the next epoch
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
from typing import Any

import headrace as hr

try:
    import tensorflow as tf

    from headrace.adapters.tensorflow import dataset
except ImportError as error:
    sys.exit(f"{error}; this example needs TensorFlow: pip install tensorflow")


def pipeline(photos: pathlib.Path, batch: int) -> hr.Pipeline:
    images = hr.files(photos, labels="folder").shuffle().decode().random_resized_crop(64).flip()
    return images.normalize("imagenet").to("float32").batch(batch)


def network(classes: int) -> Any:
    layers = tf.keras.layers
    convolution = layers.Conv2D(16, 3, strides=4, activation="relu")
    model = tf.keras.Sequential([convolution, layers.GlobalAveragePooling2D(), layers.Dense(classes)])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def train(options: argparse.Namespace) -> None:
    loader = pipeline(options.photos, options.batch).loader(seed=1, output="numpy")
    batches = dataset(loader, pairs=("image", "label"))
    place = options.checkpoint.with_name(options.checkpoint.name + ".epoch")
    begin = 0
    if options.checkpoint.exists() and place.exists():
        model, begin = tf.keras.models.load_model(options.checkpoint), json.loads(place.read_text())
        if begin < options.epochs:
            print(f"resuming with epoch {begin + 1}", flush=True)
    else:
        tf.keras.utils.set_random_seed(1)
        model = network(sum(one.is_dir() and not one.name.startswith(".") for one in options.photos.iterdir()))

    def keep(epoch: int, logs: object) -> None:
        new = options.checkpoint.with_name("new-" + options.checkpoint.name)
        model.save(new)
        os.replace(new, options.checkpoint)
        place.write_text(json.dumps(epoch + 1))

    loader.set_epoch(begin)  # tf.data reads ahead: the position is known only between epochs
    after_each = tf.keras.callbacks.LambdaCallback(on_epoch_end=keep)
    verbose = 1 if sys.stdout.isatty() else 2
    model.fit(
        batches, epochs=options.epochs, initial_epoch=begin, callbacks=[after_each], shuffle=False, verbose=verbose
    )
    print(f"{options.epochs} epochs completed; the model is in {options.checkpoint}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=pathlib.Path, help="a folder of photos, one folder per class")
    parser.add_argument("checkpoint", type=pathlib.Path, help="MODEL.keras: saved here; resumes from it if it exists")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32, help="photos per step")
    options = parser.parse_args()
    if options.checkpoint.suffix != ".keras":
        parser.error(f"Keras saves models as .keras; not {options.checkpoint}")
    try:
        train(options)
    except (hr.HeadraceError, OSError) as error:
        sys.exit(f"{parser.prog}: {error}")
    except KeyboardInterrupt:
        sys.exit(f"stopped; run the same command again to resume from {options.checkpoint}")


if __name__ == "__main__":
    main()
