"""JAX: a training step over photos; batches arrive as JAX arrays.

headrace synth photos photos/ --count 300
python examples/train_jax.py photos/
"""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp

import headrace as hr

Params = dict[str, jax.Array]


def loss_of(params: Params, image: jax.Array, label: jax.Array) -> jax.Array:
    pooled = jax.image.resize(image, (image.shape[0], 8, 8, 3), "linear").reshape(image.shape[0], -1)
    hidden = jax.nn.relu(pooled @ params["first"])
    logits = jax.nn.log_softmax(hidden @ params["second"])
    return -jnp.mean(jnp.take_along_axis(logits, label[:, None].astype(jnp.int32), axis=1))


@jax.jit
def step(params: Params, image: jax.Array, label: jax.Array) -> tuple[Params, jax.Array]:
    loss, slopes = jax.value_and_grad(loss_of)(params, image, label)
    return {name: value - 0.05 * slopes[name] for name, value in params.items()}, loss


def main(photos: str, epochs: int = 2) -> None:
    train = (
        hr.files(photos, labels="folder")
        .shuffle()
        .decode()
        .random_resized_crop(64)
        .flip()
        .normalize("imagenet")
        .to("float32")
        .batch(32, drop_last=True)  # one shape, so one compilation
    )
    keys = jax.random.split(jax.random.key(1))
    params = {
        "first": 0.05 * jax.random.normal(keys[0], (192, 64)),
        "second": 0.05 * jax.random.normal(keys[1], (64, 10)),
    }
    for batch in train.loader(epochs=epochs, seed=1, output="jax"):
        params, loss = step(params, batch.image, batch.label)
        print(f"epoch {batch.epoch}  {batch.records} photos  loss {loss:.3f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
