"""Hugging Face Trainer: pipelines in the place of datasets. Checkpoints hold the place in the data.

headrace synth photos photos/train --count 300
headrace synth photos photos/val --count 60 --seed 2
python examples/train_huggingface.py photos/ runs/              # stop it, start it again: it goes on
"""

from __future__ import annotations

import sys

from transformers import ResNetConfig, ResNetForImageClassification, TrainingArguments, set_seed
from transformers.trainer_utils import get_last_checkpoint

import headrace as hr
from headrace.adapters.huggingface import Trainer


def finished(images: hr.Pipeline) -> hr.Pipeline:
    """Fields as the models of transformers name them."""
    pixels = images.normalize("imagenet").to("float32", layout="chw").cast("int64", field="label")
    return pixels.rename(fields={"image": "pixel_values", "label": "labels"}).batch(32)


def main(folder: str, runs: str) -> None:
    train = hr.files(f"{folder}/train", labels="folder").shuffle().decode().random_resized_crop(64).flip()
    val = hr.files(f"{folder}/val", labels="folder").decode().resize_shortest(72).center_crop(64)
    set_seed(1)
    trainer = Trainer(
        ResNetForImageClassification(
            ResNetConfig(
                embedding_size=16,
                hidden_sizes=[16, 32],
                depths=[1, 1],
                layer_type="basic",
                num_labels=10,  # pyright: ignore[reportCallIssue]
            )
        ),
        TrainingArguments(
            runs,
            num_train_epochs=2,
            save_steps=2,
            eval_strategy="epoch",
            logging_steps=5,
            report_to="none",
            use_cpu=True,
        ),
        train_dataset=finished(train),
        eval_dataset=finished(val),
    )
    trainer.train(resume_from_checkpoint=get_last_checkpoint(runs))
    print(f"validation loss {trainer.evaluate()['eval_loss']:.3f} after {trainer.state.global_step} steps")


if __name__ == "__main__":
    main(*sys.argv[1:])
