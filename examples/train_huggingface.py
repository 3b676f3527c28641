"""Hugging Face Trainer: pipelines instead of datasets. Checkpoints include the position in the data.

headrace synth photos photos/train --count 300          # or your own photos, one folder per class
headrace synth photos photos/val --count 60 --seed 2
python examples/train_huggingface.py photos/ runs/      # stop and restart it: resumes, even within an epoch
torchrun --nproc-per-node 2 examples/train_huggingface.py photos/ runs/
"""

from __future__ import annotations

import argparse
import pathlib
import sys

import headrace as hr

try:
    from transformers import ResNetConfig, ResNetForImageClassification, TrainingArguments, set_seed
    from transformers.trainer_utils import get_last_checkpoint

    from headrace.adapters.huggingface import Trainer
except ImportError as error:
    sys.exit(f"{error}; this example needs Transformers: pip install torch transformers accelerate")


def finished(images: hr.Pipeline, batch: int) -> hr.Pipeline:
    """Renames fields to those of transformers models."""
    pixels = images.normalize("imagenet").to("float32", layout="chw")
    return pixels.rename(fields={"image": "pixel_values", "label": "labels"}).batch(batch)


def train(options: argparse.Namespace) -> None:
    train = hr.files(options.photos / "train", labels="folder").shuffle().decode().random_resized_crop(64).flip()
    val = hr.files(options.photos / "val", labels="folder").decode().resize_shortest(72).center_crop(64)
    classes = sum(one.is_dir() and not one.name.startswith(".") for one in (options.photos / "train").iterdir())
    set_seed(1)
    trainer = Trainer(
        ResNetForImageClassification(
            ResNetConfig(
                embedding_size=16,
                hidden_sizes=[16, 32],
                depths=[1, 1],
                layer_type="basic",
                num_labels=classes,  # pyright: ignore[reportCallIssue]
            )
        ),
        TrainingArguments(
            str(options.runs),
            num_train_epochs=options.epochs,
            save_steps=options.save_every,
            eval_strategy="epoch",
            logging_steps=5,
            report_to="none",
            use_cpu=True,
        ),
        train_dataset=finished(train, options.batch),
        eval_dataset=finished(val, options.batch),
    )
    runs = str(options.runs)
    trainer.train(resume_from_checkpoint=get_last_checkpoint(runs) if options.runs.is_dir() else None)
    loss = trainer.evaluate()["eval_loss"]
    if trainer.is_world_process_zero():
        print(f"validation loss {loss:.3f} after {trainer.state.global_step} steps")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=pathlib.Path, help="folder with train/ and val/, each with one folder per class")
    parser.add_argument("runs", type=pathlib.Path, help="folder for checkpoints; resumes from the last one")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32, help="photos per step and rank")
    parser.add_argument("--save-every", type=int, default=10, metavar="STEPS")
    options = parser.parse_args()
    try:
        train(options)
    except (hr.HeadraceError, OSError) as error:
        sys.exit(f"{parser.prog}: {error}")
    except KeyboardInterrupt:
        sys.exit(f"stopped; run the same command again to resume from {options.runs}")


if __name__ == "__main__":
    main()
