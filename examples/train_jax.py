"""JAX: a training step over photos; batches arrive as JAX arrays, on several devices sharded along the batch.

headrace synth photos photos/ --count 300               # or your own photos, one folder per class
python examples/train_jax.py photos/ model.npz          # stop and restart it: resumes
XLA_FLAGS=--xla_force_host_platform_device_count=4 python examples/train_jax.py photos/ model.npz
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
from typing import Any

import numpy as np

import headrace as hr

try:
    import jax
    import jax.numpy as jnp
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    from headrace.adapters.jax import loader as jax_loader
    from headrace.adapters.jax import on_devices
except ImportError as error:
    sys.exit(f"{error}; this example needs JAX: pip install jax")

Params = dict[str, jax.Array]


def loss_of(params: Params, image: jax.Array, label: jax.Array) -> jax.Array:
    pooled = jax.image.resize(image, (image.shape[0], 8, 8, 3), "linear").reshape(image.shape[0], -1)
    hidden = jax.nn.relu(pooled @ params["first"])
    logits = jax.nn.log_softmax(hidden @ params["second"])
    return -jnp.mean(jnp.take_along_axis(logits, label[:, None], axis=1))


@jax.jit
def step(params: Params, image: jax.Array, label: jax.Array) -> tuple[Params, jax.Array]:
    loss, slopes = jax.value_and_grad(loss_of)(params, image, label)
    return {name: value - 0.05 * slopes[name] for name, value in params.items()}, loss


def pipeline(photos: pathlib.Path, batch: int) -> hr.Pipeline:
    images = hr.files(photos, labels="folder").shuffle().decode().random_resized_crop(64).flip()
    pixels = images.normalize("imagenet").to("float32").cast("int32", field="label")
    return pixels.batch(batch, drop_last=True)  # one shape, so one compilation


def save(path: pathlib.Path, params: Params, epoch: int, state: dict[str, object]) -> None:
    """Saves atomically: a run that is killed while saving keeps its last checkpoint."""
    temporary = path.with_name(path.name + ".new")
    parts: dict[str, Any] = {"place": json.dumps({"epoch": epoch, "loader": state}), **params}
    with temporary.open("wb") as file:
        np.savez(file, **parts)
    os.replace(temporary, path)


def train(options: argparse.Namespace) -> None:
    loader = jax_loader(pipeline(options.photos, options.batch), seed=1, progress=sys.stderr.isatty())
    devices = jax.devices()
    if options.batch % len(devices):
        sys.exit(f"--batch {options.batch} cannot be split among {len(devices)} devices; use a multiple")
    if len(loader) == 0:
        sys.exit(f"there are fewer than {options.batch} photos in {options.photos}; use a smaller --batch")
    sharding = NamedSharding(Mesh(np.array(devices), ("data",)), PartitionSpec("data"))
    classes = sum(one.is_dir() and not one.name.startswith(".") for one in options.photos.iterdir())
    keys = jax.random.split(jax.random.key(1))
    params = {
        "first": 0.05 * jax.random.normal(keys[0], (192, 64)),
        "second": 0.05 * jax.random.normal(keys[1], (64, classes)),
    }
    begin = 0
    if options.checkpoint.exists():
        with np.load(options.checkpoint) as parts:
            place = json.loads(str(parts["place"]))
            params = {name: jnp.asarray(parts[name]) for name in params}
        loader.load_state_dict(place["loader"])
        begin = place["epoch"]
        if begin < options.epochs:
            print(f"resuming in epoch {begin}", flush=True)
    for epoch in range(begin, options.epochs):
        loader.set_epoch(epoch)  # keeps a loaded position in that epoch
        for number, batch in enumerate(on_devices(loader, sharding), 1):
            params, loss = step(params, batch["image"], batch["label"])
            if number % options.save_every == 0:
                save(options.checkpoint, params, epoch, loader.state_dict())
            if number % options.log_every == 0:
                print(f"epoch {epoch}  {len(batch['label'])} photos  loss {loss:.3f}", flush=True)
        save(options.checkpoint, params, epoch + 1, loader.state_dict())
    print(f"{options.epochs} epochs completed; the model is in {options.checkpoint}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=pathlib.Path, help="a folder of photos, one folder per class")
    parser.add_argument("checkpoint", type=pathlib.Path, help="saved here; resumes from it if it exists")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32, help="photos per step")
    parser.add_argument("--save-every", type=int, default=10, metavar="STEPS")
    parser.add_argument("--log-every", type=int, default=1, metavar="STEPS")
    options = parser.parse_args()
    try:
        train(options)
    except (hr.HeadraceError, OSError) as error:
        sys.exit(f"{parser.prog}: {error}")
    except KeyboardInterrupt:
        sys.exit(f"stopped; run the same command again to resume from {options.checkpoint}")


if __name__ == "__main__":
    main()
