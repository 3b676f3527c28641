"""headrace.vision: torchvision's transforms by its names, on one image at a time."""

from __future__ import annotations

import multiprocessing
import pickle
import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr

torch = pytest.importorskip("torch")

from headrace import vision as T  # noqa: E402 - as torchvision's users call theirs

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def picture(seed: int, height: int = 50, width: int = 70) -> Any:
    y, x = np.mgrid[0:height, 0:width]
    return (np.stack([3 * x + seed, 4 * y, x + y], axis=2) % 256).astype(np.uint8)


def encoded(image: Any) -> bytes:
    """As PPM."""
    return b"P6 %d %d 255\n" % (image.shape[1], image.shape[0]) + image.tobytes()


def next_seed() -> int:
    """What the next call of a transform draws; the generator stays as it is."""
    state = torch.get_rng_state()
    seed = int(torch.empty((), dtype=torch.int64).random_())
    torch.set_rng_state(state)
    return seed


def record_0(steps: Callable[[hr.Pipeline], hr.Pipeline], image: Any, seed: int) -> Any:
    """The first record of a run over a data set of this image."""
    outputs = {"image": hr.spec(image.dtype, (None, None, image.shape[2]))}
    source = hr.from_dataset([image], names=["image"], outputs=outputs).kind("image", "image")
    pipe = steps(source).layout("chw")
    (batch,) = pipe.batch(1).loader(seed=seed, output="numpy", threads=1)
    return batch.image[0]


SAME: list[tuple[Any, Callable[[hr.Pipeline], hr.Pipeline]]] = [
    (T.Resize(20), lambda p: p.resize_shortest(20)),
    (T.Resize([20, 30], "bicubic"), lambda p: p.resize([20, 30], interpolation="bicubic")),
    (T.Resize(20, max_size=25, antialias=False), lambda p: p.resize_shortest(20, max_size=25, antialias=False)),
    (T.ScaleJitter((30, 40), (0.5, 1.5)), lambda p: p.scale_jitter([30, 40], scale=[0.5, 1.5])),
    (T.CenterCrop(33), lambda p: p.center_crop(33)),
    (T.RandomCrop(30, padding=4, padding_mode="reflect"), lambda p: p.random_crop(30, padding=4, mode="reflect")),
    (T.RandomCrop(90, pad_if_needed=True, fill=7), lambda p: p.random_crop(90, pad_if_needed=True, fill=7)),
    (T.RandomResizedCrop(24, (0.2, 1.0)), lambda p: p.random_resized_crop(24, scale=[0.2, 1])),
    (T.RandomShortestSize([8, 30, 70], 60), lambda p: p.random_shortest_size(sizes=[8, 30, 70], max_size=60)),
    (T.RandomResize(8, 50), lambda p: p.random_shortest_size(between=[8, 49])),
    (T.Pad([1, 2, 3, 4], fill=9), lambda p: p.pad([1, 2, 3, 4], fill=9)),
    (T.RandomZoomOut(side_range=(1, 2), p=0.9), lambda p: p.zoom_out(side_range=[1, 2], p=0.9)),
    (T.RandomHorizontalFlip(), lambda p: p.flip()),
    (T.RandomVerticalFlip(0.7), lambda p: p.flip(p=0.7, direction="vertical")),
    (T.RandomRotation(30, expand=True), lambda p: p.rotate(30, expand=True)),
    (
        T.RandomAffine(10, (0.1, 0.2), (0.8, 1.2), 5),
        lambda p: p.affine(10, translate=[0.1, 0.2], scale=[0.8, 1.2], shear=5),
    ),
    (T.RandomRotation(30, center=(3, 4)), lambda p: p.rotate(30, center=[3, 4])),
    (T.RandomAffine(30, center=(3, 4)), lambda p: p.affine(30, center=[3, 4])),
    (T.RandomAffine([5, 9]), lambda p: p.affine([5, 9])),
    (T.RandomPerspective(0.3, p=1), lambda p: p.perspective(distortion_scale=0.3, p=1)),
    (T.ElasticTransform(40.0, 4.0), lambda p: p.elastic(alpha=40, sigma=4)),
    (T.RandomErasing(p=1, value=3), lambda p: p.erase(p=1, value=3)),
    (T.RandomErasing(p=1, value="random"), lambda p: p.erase(p=1, random=True)),
    (T.ColorJitter(0.4, (0.5, 1.5), hue=0.1), lambda p: p.color_jitter(brightness=0.4, contrast=[0.5, 1.5], hue=0.1)),
    (T.RandomPhotometricDistort(), lambda p: p.photometric_distort()),
    (T.RandomChannelPermutation(), lambda p: p.permute_channels()),
    (T.Grayscale(), lambda p: p.grayscale()),
    (T.Grayscale(3), lambda p: p.grayscale(channels=3)),
    (T.RandomGrayscale(0.5), lambda p: p.grayscale(p=0.5, channels=3)),
    (T.GaussianBlur([9, 3]), lambda p: p.gaussian_blur([3, 9])),  # [width, height]
    (T.GaussianBlur(5, 1.5), lambda p: p.gaussian_blur(5, sigma=1.5)),
    (T.GaussianNoise(sigma=0.2), lambda p: p.gaussian_noise(sigma=0.2)),
    (T.JPEG((5, 60)), lambda p: p.jpeg([5, 60])),
    (T.RandomInvert(), lambda p: p.invert()),
    (T.RandomPosterize(3, 1), lambda p: p.posterize(3, p=1)),
    (T.RandomSolarize(100, 1), lambda p: p.solarize(100, p=1)),
    (T.RandomAdjustSharpness(2, 1), lambda p: p.sharpness(2, p=1)),
    (T.RandomAutocontrast(1), lambda p: p.autocontrast(p=1)),
    (T.RandomEqualize(1), lambda p: p.equalize(p=1)),
    (T.AutoAugment("svhn"), lambda p: p.auto_augment(policy="svhn")),
    (T.RandAugment(3, 5), lambda p: p.rand_augment(num_ops=3, magnitude=5)),
    (T.TrivialAugmentWide(), lambda p: p.trivial_augment_wide()),
    (T.AugMix(2, alpha=0.5), lambda p: p.aug_mix(severity=2, alpha=0.5)),
    (T.ToDtype(torch.float32, scale=True), lambda p: p.cast("float32")),
    (T.ToDtype("float16"), lambda p: p.cast("float16", scale=False)),
    (T.ConvertImageDtype(torch.float32), lambda p: p.cast("float32")),
    (T.ToTensor(), lambda p: p.cast("float32")),
    (T.Normalize(MEAN, STD), lambda p: p.normalize("imagenet")),
    (T.Identity(), lambda p: p),
    (T.RandomApply([T.RandomInvert(1), T.Pad(1)], 0.4), lambda p: p.apply(lambda q: q.invert(p=1).pad(1), p=0.4)),
    (
        T.RandomChoice([T.RandomInvert(1), T.Identity()], [0.3, 0.7]),
        lambda p: p.one_of([lambda q: q.invert(p=1), lambda q: q], weights=[0.3, 0.7]),
    ),
    (
        T.Compose([T.RandomResizedCrop(20), T.ToImage(), T.ToDtype(torch.float32, True), T.Normalize(MEAN, STD)]),
        lambda p: p.random_resized_crop(20).cast("float32").normalize("imagenet"),
    ),
]


@pytest.mark.parametrize(("transform", "steps"), SAME, ids=lambda v: repr(v)[:60] if isinstance(v, T.Transform) else "")
def test_a_transform_is_the_operator_of_a_pipeline(transform: Any, steps: Any, rng: random.Random) -> None:
    torch.manual_seed(rng.getrandbits(60))
    for at in range(4):
        image = picture(at, 40 + 5 * at)
        wanted = record_0(steps, image, next_seed())
        made = transform(image)
        assert isinstance(made, torch.Tensor)
        assert tuple(made.shape) == wanted.shape
        assert np.array_equal(made.numpy(), wanted)


@pytest.mark.parametrize(("transform", "steps"), SAME, ids=lambda v: repr(v)[:60] if isinstance(v, T.Transform) else "")
def test_images_of_floats_are_0_to_1(transform: Any, steps: Any, rng: random.Random) -> None:
    torch.manual_seed(rng.getrandbits(60))
    image = picture(3).astype(np.float32) / 255
    tensor = torch.from_numpy(image).permute(2, 0, 1)
    try:
        wanted = record_0(steps, image, next_seed())
    except hr.HeadraceError as error:  # a level above 1, or an operator of uint8 levels
        with pytest.raises(type(error), match=r"0\.\.1|uint8"):
            transform(tensor)
    else:
        assert np.array_equal(transform(tensor).numpy(), wanted)


def test_every_transform_is_compared() -> None:
    def inside(transform: Any) -> list[type]:
        return [type(transform), *(k for t in getattr(transform, "transforms", ()) for k in inside(t))]

    tested = {kind for transform, _ in SAME for kind in inside(transform)}
    there = {kind for kind in vars(T).values() if isinstance(kind, type) and issubclass(kind, T.Transform)}
    assert there - tested == {T.Transform, T.Lambda, T.RandomOrder, T.PILToTensor, T.ToPureTensor}
    assert type(T.PILToTensor()).__mro__[1] is T.Identity is type(T.ToPureTensor()).__mro__[1]


TRAIN = T.Compose([T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.ColorJitter(0.4, 0.4, 0.4), T.ToTensor()])


def test_torch_decides_what_is_drawn() -> None:
    image = picture(0)
    torch.manual_seed(3)
    first = [TRAIN(image) for _ in range(3)]
    torch.manual_seed(3)
    again = [TRAIN(image) for _ in range(3)]
    assert all(map(torch.equal, first, again))
    assert not torch.equal(first[0], first[1])
    state = torch.get_rng_state()
    one = TRAIN(image)
    torch.set_rng_state(state)
    assert torch.equal(TRAIN(image), one)


def test_an_image_is_the_same_in_every_form() -> None:
    image = picture(5)
    forms = [image, torch.from_numpy(image).permute(2, 0, 1), encoded(image), memoryview(encoded(image))]
    try:
        from PIL import Image
    except ImportError:
        pass
    else:
        forms += [Image.fromarray(image), Image.fromarray(image).convert("RGBA").convert("P", palette=1, colors=256)]
    torch.manual_seed(1)
    wanted = TRAIN(image)
    for form in forms[:5]:
        torch.manual_seed(1)
        assert torch.equal(TRAIN(form), wanted)
    for form in forms[5:]:
        assert T.Identity()(form).shape == (3, 50, 70)
    gray = image[:, :, 0]
    assert torch.equal(T.Identity()(gray)[0], torch.from_numpy(gray))
    assert torch.equal(T.Identity()(gray[:, :, None]), T.Identity()(torch.from_numpy(gray)[None]))
    floats = image.astype(np.float32) / 255
    assert torch.equal(T.Identity()(floats), torch.from_numpy(floats).permute(2, 0, 1))
    flipped = image[:, ::-1]  # not contiguous
    assert torch.equal(T.Identity()(flipped), torch.from_numpy(flipped.copy()).permute(2, 0, 1))


def test_arguments_may_have_torchs_and_numpys_types() -> None:
    image = picture(1)
    for given, plain in (
        (T.Resize(np.int64(20)), T.Resize(20)),
        (T.Resize(None, max_size=35), T.Resize(25)),  # of 50 x 70
        (T.GaussianBlur(np.int64(3), sigma=(1, 1)), T.GaussianBlur(3, sigma=(1, 1))),
        (T.Pad(2, fill={torch.Tensor: 7, "others": 1}), T.Pad(2, fill=7)),
        (T.Pad(2, fill={"others": (1, 2, 3)}), T.Pad(2, fill=(1, 2, 3))),
        (T.Normalize(torch.tensor([0.5] * 3), np.full(3, 0.25)), T.Normalize([0.5] * 3, [0.25] * 3)),
        (T.RandomApply(torch.nn.ModuleList([torch.nn.Identity()]), p=1), T.Identity()),
    ):
        assert torch.equal(given(image), plain(image))
    with pytest.raises(hr.ArgumentError, match="size=None needs max_size"):
        T.Resize(None)
    with pytest.raises(hr.ArgumentError, match='give one for "others"'):
        T.Pad(2, fill={int: 3})
    pipe = hr.from_dataset([image], names=["image"])
    assert pipe.normalize(torch.tensor([0.5] * 3), torch.tensor([0.25] * 3)) == pipe.normalize([0.5] * 3, [0.25] * 3)


def test_what_is_no_image_is_refused_with_what_to_do() -> None:
    flip = T.RandomHorizontalFlip()
    for call in (lambda: flip(picture(1), 3), lambda: flip({"image": picture(1)}), lambda: flip((picture(1), 3))):
        with pytest.raises(hr.ArgumentError, match=r'takes one image.*field=\["image", "boxes"\]'):
            call()
    with pytest.raises(hr.DtypeError, match=r"not str; vision.read\(path\)"):
        flip("photo.jpg")
    for name, words in (("functional", "is torchvision's"), ("RGB", "expand"), ("CentreCrop", "did you mean.*Center")):
        with pytest.raises(AttributeError, match=f"no {name}.*{words}"):
            getattr(T, name)


def test_results_stay_when_later_images_come() -> None:
    images = [picture(at) for at in range(40)]
    made = [T.Identity()(image) for image in images]
    one = T.Compose([T.Identity()])
    kept = [one(image) for image in images]
    for image, a, b in zip(images, made, kept, strict=True):
        assert torch.equal(a, torch.from_numpy(image).permute(2, 0, 1))
        assert torch.equal(a, b)


def test_a_bad_image_ends_nothing() -> None:
    with pytest.raises(hr.UnsupportedError, match="image.decode"):
        TRAIN(b"no image")
    with pytest.raises(hr.FormatError):
        TRAIN(encoded(picture(0))[:60])
    assert TRAIN(encoded(picture(0))).shape == (3, 24, 24)
    for wrong in (3, None, "photo.jpg", np.zeros((2, 2, 2, 2), np.uint8), np.zeros((2, 2, 3)), np.zeros((2, 2, 5), np.uint8),
                  torch.zeros(2, 2, 2, 2)):  # fmt: skip
        with pytest.raises(hr.DtypeError, match="an image"):
            TRAIN(wrong)
    with pytest.raises(hr.HeadraceError):
        T.Compose([T.Resize(8), T.Grayscale(3), T.Normalize([0.5] * 4, [0.5] * 4)])(picture(0))


def test_wrong_arguments_are_refused_when_a_transform_is_made() -> None:
    for wrong, word in (
        (lambda: T.Resize(0), "size"),
        (lambda: T.Resize([4, 4], max_size=9), "max_size"),
        (lambda: T.RandomHorizontalFlip(p=2), '"p"'),
        (lambda: T.RandomResizedCrop("large"), "size"),
        (lambda: T.RandomRotation(10, center=(1, 2, 3)), "center"),
        (lambda: T.Pad(1, padding_mode="symmetric"), "symmetric"),
        (lambda: T.Resize(9, interpolation="hamming"), "hamming"),
        (lambda: T.Compose([]), "list of transforms"),
        (lambda: T.Compose([T.Resize(3), 7]), "7 is neither"),
        (lambda: T.Lambda(7), "not a function"),  # type: ignore[arg-type]
        (lambda: T.RandomResize(9, 8), "max_size"),
        (lambda: T.JPEG(0), "quality"),
        (lambda: T.RandomApply(T.Resize(3)), "list of transforms"),
        (lambda: T.ToDtype("complex64"), "complex64"),
    ):
        with pytest.raises(hr.HeadraceError) as caught:
            wrong()
        assert word in str(caught.value)
    with pytest.raises(AttributeError, match="mixup"):
        T.MixUp  # noqa: B018
    with pytest.raises(AttributeError, match="has no Sparkle"):
        T.Sparkle  # noqa: B018


def test_it_is_a_step_of_a_pipeline() -> None:
    images = [picture(at) for at in range(9)]
    source = hr.from_dataset(images, names=["image"]).kind("image", "image")
    ours = (
        source.random_resized_crop(24).flip().color_jitter(brightness=0.4, contrast=0.4, saturation=0.4).cast("float32")
    )
    assert source.pipe(TRAIN).fingerprint == TRAIN(source).fingerprint == ours.fingerprint


def doubled(image: Any) -> Any:
    return image * 2


def test_functions_among_transforms_get_the_tensor(rng: random.Random) -> None:
    seed = rng.getrandbits(60)
    first, second = T.Compose([T.RandomCrop(16), T.RandomInvert()]), T.RandomHorizontalFlip()
    chain = T.Compose([T.RandomCrop(16), T.RandomInvert(), doubled, T.RandomHorizontalFlip()])
    for one in (chain, pickle.loads(pickle.dumps(chain))):
        for image in (picture(0), encoded(picture(0))):
            torch.manual_seed(seed)
            wanted = second(first(image) * 2)
            torch.manual_seed(seed)
            assert torch.equal(one(image), wanted)
    image = torch.from_numpy(picture(0)).permute(2, 0, 1)
    assert torch.equal(T.Compose([doubled])(picture(0)), image * 2)
    assert torch.equal(T.Lambda(doubled)(picture(0)), image * 2)
    for made, chance in (
        (T.RandomApply([doubled, T.Pad(1)], 0.3), 0.3),
        (T.RandomChoice([doubled, len], [1, 3]), 0.75),
    ):
        torch.manual_seed(seed)
        odd = sum(not torch.is_tensor(out) or out.shape != image.shape for out in (made(image) for _ in range(400)))
        assert abs(odd - 400 * chance) < 5 * 10
    with pytest.raises(hr.UnsupportedError, match="doubled is a function of yours .*pipeline.map"):
        hr.from_dataset([picture(0)], names=["image"]).pipe(chain)


def test_transforms_in_a_random_order(rng: random.Random) -> None:
    torch.manual_seed(rng.getrandbits(60))
    made = {}
    for transforms in ([T.Pad(1, fill=1), T.Pad(1, fill=2)], [T.Pad(1, fill=1), T.Lambda(T.Pad(1, fill=2))]):
        one = T.RandomOrder(transforms)
        made = {bytes(one(np.zeros((1, 1, 1), np.uint8)).flatten().tolist()) for _ in range(60)}
        assert {outside[0] for outside in made} == {1, 2} and len(made) == 2
    source = hr.from_dataset([np.zeros((1, 1, 3), np.uint8)] * 60, names=["image"]).kind("image", "image")
    pipe = source.pipe(T.RandomOrder([T.Pad(1, fill=1), T.Pad(1, fill=2)])).batch(60)
    (batch,) = pipe.loader(output="numpy", seed=rng.getrandbits(60))
    assert set(batch.image[:, 0, 0, 0].tolist()) == {1, 2}
    with pytest.raises(hr.UnsupportedError, match="too many orders"):
        source.pipe(T.RandomOrder([T.Pad(1)] * 5))


def test_threads_and_pickles() -> None:
    copy = pickle.loads(pickle.dumps(TRAIN))
    TRAIN(picture(0))
    other = pickle.loads(pickle.dumps(TRAIN))
    assert repr(copy) == repr(other) == repr(TRAIN)
    torch.manual_seed(9)
    wanted = TRAIN(picture(0))
    for made in (copy, other):
        torch.manual_seed(9)
        assert torch.equal(made(picture(0)), wanted)
    plain = T.Compose([T.Resize(20), T.CenterCrop(16)])
    images = [picture(at) for at in range(50)]
    results: list[list[Any]] = [[] for _ in range(4)]

    def work(into: list[Any]) -> None:
        into.extend(plain(image) for image in images)

    threads = [threading.Thread(target=work, args=(into,)) for into in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for into in results[1:]:
        assert all(map(torch.equal, results[0], into))


class Pictures:
    """A data set of torch's kind."""

    def __len__(self) -> int:
        return 24

    def __getitem__(self, at: int) -> Any:
        return TRAIN(picture(0)), at


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_draw_apart(start: str) -> None:
    TRAIN(picture(0))  # a run that a forked worker must not use
    assert start in multiprocessing.get_all_start_methods()
    loader = hr.DataLoader(Pictures(), batch_size=4, num_workers=2, multiprocessing_context=start)
    epochs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        epochs.append(torch.cat([images for images, _ in loader]))
    assert torch.equal(epochs[0], epochs[1])
    assert len(torch.unique(torch.cat([epochs[0], epochs[2]]).flatten(1), dim=0)) == 48


def test_it_runs_in_a_pipeline_of_python() -> None:
    for variant in ("threads", "processes"):
        pipe = hr.from_dataset(Pictures(), variant=variant).batch(8)
        with pipe.loader(threads=2) as loader:
            made = torch.cat([images for images, _ in loader])
        assert made.shape == (24, 3, 24, 24)


def test_torchvisions_argument_of_an_operator_is_explained() -> None:
    source = hr.from_dataset([picture(0)], names=["image"])
    for call, word in (
        (lambda: source.gaussian_blur(kernel_size=3), "size"),
        (lambda: source.random_crop(3, padding_mode="edge"), "mode"),
        (lambda: source.iou_crop(min_scale=0.3), r"scale=\[least, most\]"),
    ):
        with pytest.raises(hr.ArgumentError, match=f"torchvision's .* is {word}"):
            call()


@pytest.mark.parametrize(("transform", "steps"), SAME, ids=lambda v: repr(v)[:60] if isinstance(v, T.Transform) else "")
@pytest.mark.parametrize("shape", [(0, 5, 3), (5, 0, 3)])
def test_an_image_without_pixels_is_an_error(transform: Any, steps: Any, shape: tuple[int, ...]) -> None:
    empty = np.zeros(shape, np.uint8)
    for call in (lambda: transform(empty), lambda: record_0(steps, empty, 1)):
        with pytest.raises(hr.ShapeError, match="at least one pixel"):
            call()


def test_images_without_pixels_can_be_filtered() -> None:
    images = [picture(0), np.zeros((0, 5, 3), np.uint8), picture(1)]
    pipe = hr.from_dataset(images, names=["image"], outputs={"image": hr.spec("uint8", (None, None, 3))})
    kept = pipe.kind("image", "image").where("image.height > 0").resize([8, 8]).batch(9)
    assert [len(batch.image) for batch in kept.loader(output="numpy")] == [2]
    with pytest.raises(hr.ShapeError, match="record 1"):
        list(pipe.kind("image", "image").resize([8, 8]).batch(9).loader(output="numpy"))


def test_batches_of_images_without_pixels_are_not_mixed() -> None:
    pairs = [(np.zeros((0, 5, 3), np.uint8), at % 2) for at in range(4)]
    pipe = hr.from_dataset(pairs, names=["image", "label"]).batch(4).cutmix(num_classes=2)
    with pytest.raises(hr.ShapeError, match="at least one pixel"):
        next(iter(pipe.loader(output="numpy")))
