"""tf.data service on this machine: a worker and a client on a core each, as bench/service.c measures ours.

    python tf_service.py

Prints one line: GB/s for batches of 256x224x224x3 levels (their bytes from memory, no compression), and
records of 1000 bytes per second.
"""
import multiprocessing
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def serve(ends):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    from tensorflow.data.experimental import service

    dispatcher = service.DispatchServer()
    worker = service.WorkerServer(service.WorkerConfig(dispatcher_address=dispatcher.target.split("://")[1]))
    ends.send(dispatcher.target)
    ends.recv()
    del worker


def rate(target, shape, warm, count):
    import tensorflow as tf

    data = tf.data.Dataset.from_tensors(tf.zeros(shape, tf.uint8)).repeat()
    data = data.apply(tf.data.experimental.service.distribute(
        processing_mode=tf.data.experimental.service.ShardingPolicy.OFF, service=target, compression=None))
    items = iter(data)
    for _ in range(warm):
        next(items)
    began = time.perf_counter()
    for _ in range(count):
        next(items)
    return count / (time.perf_counter() - began)


def main():
    multiprocessing.set_start_method("spawn")
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    target = ours.recv()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    batches = rate(target, (256, 224, 224, 3), 4, 16)
    records = rate(target, (1000,), 1000, 20000)
    print(f"{batches * 256 * 224 * 224 * 3 / 1e9:.2f} GB/s, {records:.0f} records/s", flush=True)
    server.kill()


if __name__ == "__main__":
    main()
