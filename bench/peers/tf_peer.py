"""tf.data with decode_and_crop_jpeg (vision) and as cedar writes its SimCLR pipeline."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

BATCH = 256
MEAN = tf.constant([0.485, 0.456, 0.406]) * 255
SCALE = 1 / (tf.constant([0.229, 0.224, 0.225]) * 255)


def vision(path):
    data = tf.io.read_file(path)
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        tf.image.extract_jpeg_shape(data), tf.zeros([1, 0, 4]), min_object_covered=0.0,
        aspect_ratio_range=[3 / 4, 4 / 3], area_range=[0.08, 1.0],
        use_image_if_no_bounding_boxes=True)
    window = tf.stack([begin[0], begin[1], size[0], size[1]])
    image = tf.image.decode_and_crop_jpeg(data, window, channels=3)
    image = tf.image.resize(image, [224, 224])
    image = tf.image.random_flip_left_right(image)
    return tf.transpose((image - MEAN) * SCALE, [2, 0, 1])


def gaussian(size, sigma):
    x = tf.range(-(size // 2), size // 2 + 1, dtype=tf.float32)
    line = tf.nn.softmax(-x * x / (2 * sigma * sigma))
    return tf.reshape(line[:, None] * line[None, :], [size, size, 1, 1])


KERNEL = gaussian(11, 1.0)


def simclr(path):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)[None]
    image = tf.cast(image, tf.float32) * (1 / 255)
    low = tf.random.uniform([1, 2], 0, 0.5)
    box = tf.concat([low, low + tf.random.uniform([1, 2], 0.28, 0.5)], axis=1)
    image = tf.image.crop_and_resize(image, box, [0], [244, 244])
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_brightness(image, 0.1)
    image = tf.image.random_contrast(image, 0.9, 1.1)
    image = tf.image.random_saturation(image, 0.9, 1.1)
    image = tf.image.random_hue(image, 0.1)
    image = tf.image.rgb_to_grayscale(image)
    image = tf.pad(image, [[0, 0], [5, 5], [5, 5], [0, 0]], "REFLECT")
    image = tf.nn.depthwise_conv2d(image, KERNEL, [1, 1, 1, 1], "VALID")
    return tf.image.per_image_standardization(image)[0]


def batches(work, form, files, knob):
    calls = int(knob)  # -1: AUTOTUNE
    if work == "noop":
        data = tf.data.Dataset.range(1 << 40)
        for _ in range(4):
            data = data.map(lambda x: x)
        data = data.batch(BATCH)
    else:
        data = tf.data.Dataset.from_tensor_slices(files)
        data = data.shuffle(len(files)).repeat()
        data = data.map(vision if work == "vision" else simclr, num_parallel_calls=calls)
        data = data.batch(BATCH, drop_remainder=True)
        options = tf.data.Options()
        # map writes directly into the batch; without it a thread copies every record.
        options.experimental_optimization.map_and_batch_fusion = form != "unfused"
        data = data.with_options(options)
    data = data.prefetch(1 if work != "noop" else tf.data.AUTOTUNE)
    return ((batch, batch.shape[0]) for batch in data), 1
