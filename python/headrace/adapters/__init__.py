"""Headrace in other frameworks; each module is imported on demand.

    headrace.adapters.lightning     DataModule, Batches
    headrace.adapters.huggingface   Trainer, FromPipelines
    headrace.adapters.jax           batches on a mesh of devices
    headrace.adapters.tensorflow    a tf.data.Dataset
    headrace.adapters.ray           iter_torch_batches in Ray Train

A plain PyTorch loop, Accelerate and torchtitan need none: a loader has the methods that they call.
"""
