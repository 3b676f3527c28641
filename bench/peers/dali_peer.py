"""DALI with CPU operators: the crop is fused into the decoder, resizing antialiases."""
from nvidia.dali import fn, pipeline_def, types

BATCH = 256


def decoded(files):
    encoded, _ = fn.readers.file(files=files, random_shuffle=True, name="photos")
    return fn.decoders.image_random_crop(
        encoded, device="cpu", output_type=types.RGB, random_area=[0.08, 1.0],
        random_aspect_ratio=[3 / 4, 4 / 3])


def vision(files):
    image = fn.resize(decoded(files), size=[224, 224], antialias=True,
                      interp_type=types.INTERP_LINEAR)
    return fn.crop_mirror_normalize(
        image, dtype=types.FLOAT, output_layout="CHW", mirror=fn.random.coin_flip(),
        mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
        std=[0.229 * 255, 0.224 * 255, 0.225 * 255])


def simclr(files, form):
    """u8 until normalise, or floats. DALI converts only u8 to grey, so in the float form the
    jitter outputs u8 and the blur converts back to floats."""
    image = decoded(files)
    dtype = types.UINT8
    if form == "float":
        dtype = types.FLOAT
        image = fn.cast(image, dtype=dtype)
    image = fn.resize(image, size=[244, 244], antialias=True, dtype=dtype,
                      interp_type=types.INTERP_LINEAR)
    image = fn.flip(image, horizontal=fn.random.coin_flip())
    near_one = dict(range=[0.9, 1.1])
    image = fn.color_twist(
        image, dtype=types.UINT8, brightness=fn.random.uniform(**near_one),
        contrast=fn.random.uniform(**near_one), saturation=fn.random.uniform(**near_one),
        hue=fn.random.uniform(range=[-36.0, 36.0]))
    image = fn.color_space_conversion(image, image_type=types.RGB, output_type=types.GRAY)
    image = fn.gaussian_blur(image, window_size=11, dtype=dtype,
                             sigma=fn.random.uniform(range=[0.1, 2]))
    return fn.crop_mirror_normalize(image, dtype=types.FLOAT, output_layout="CHW",
                                    mean=[0.1307 * 255], std=[0.3081 * 255])


def batches(work, form, files, knob):
    @pipeline_def(batch_size=BATCH, num_threads=int(knob), device_id=None)
    def pipeline():
        return vision(files) if work == "vision" else simclr(files, form)

    running = pipeline()
    running.build()

    def run():
        while True:
            (images,) = running.run()
            yield images.as_tensor(), BATCH  # contiguous, as a trainer needs it

    return run(), 1
