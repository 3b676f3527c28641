"""The operators as functions, and as methods of Pipeline; written by tools/gen-python.

Edit an operator's table in src/ops instead, then run `make docs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ._check import checked_op, listed
from ._types import DType, PathLike

if TYPE_CHECKING:
    from .pipeline import Pipeline

__all__ = [
    "audio_crop",
    "audio_db",
    "audio_decode",
    "audio_freq_mask",
    "audio_gain",
    "audio_log",
    "audio_mel",
    "audio_mel_scale",
    "audio_mfcc",
    "audio_mono",
    "audio_noise",
    "audio_pad",
    "audio_pitch",
    "audio_resample",
    "audio_reverb",
    "audio_spectrogram",
    "audio_speed",
    "audio_time_mask",
    "audio_time_stretch",
    "audio_trim",
    "batch_bucket",
    "batch_cutmix",
    "batch_mixup",
    "batch_pad",
    "batch_stack",
    "batch_unbatch",
    "boxes_anchors",
    "boxes_convert",
    "boxes_sanitize",
    "debug_fail",
    "debug_identity",
    "debug_inflate",
    "debug_sleep",
    "debug_spin",
    "flow_cache",
    "flow_concat",
    "flow_interleave",
    "flow_join",
    "flow_mix",
    "flow_window",
    "flow_zip",
    "image_affine",
    "image_aug_mix",
    "image_auto_augment",
    "image_autocontrast",
    "image_center_crop",
    "image_clip",
    "image_color_jitter",
    "image_cover_crop",
    "image_decode",
    "image_elastic",
    "image_encode",
    "image_equalize",
    "image_erase",
    "image_five_crop",
    "image_fixed_size_crop",
    "image_flip",
    "image_gaussian_blur",
    "image_gaussian_noise",
    "image_grayscale",
    "image_invert",
    "image_iou_crop",
    "image_jpeg",
    "image_normalize",
    "image_pad",
    "image_permute_channels",
    "image_perspective",
    "image_photometric_distort",
    "image_posterize",
    "image_rand_augment",
    "image_random_area_crop",
    "image_random_crop",
    "image_random_resized_crop",
    "image_random_shortest_size",
    "image_resize",
    "image_resize_shortest",
    "image_rotate",
    "image_scale_jitter",
    "image_sharpness",
    "image_solarize",
    "image_standardize",
    "image_ten_crop",
    "image_trivial_augment_wide",
    "image_zoom_out",
    "order_repeat",
    "order_sample",
    "order_shard",
    "order_shuffle",
    "order_skip",
    "order_split",
    "order_take",
    "record_classes",
    "record_drop",
    "record_filter",
    "record_flat",
    "record_kind",
    "record_parse_example",
    "record_rename",
    "record_select",
    "source_arrow",
    "source_coco",
    "source_csv",
    "source_files",
    "source_hdf5",
    "source_idx",
    "source_jsonl",
    "source_lines",
    "source_list",
    "source_lmdb",
    "source_npy",
    "source_parquet",
    "source_range",
    "source_records",
    "source_tar",
    "source_tfrecord",
    "source_voc",
    "tensor_cast",
    "tensor_layout",
    "tensor_one_hot",
    "text_detokenize",
    "text_lower",
    "text_normalize",
    "text_split",
    "text_strip",
    "text_tokenize_bpe",
    "text_tokenize_unigram",
    "text_tokenize_wordpiece",
    "tokens_add",
    "tokens_embed",
    "tokens_mask",
    "tokens_pack",
    "tokens_pad",
    "tokens_truncate",
    "tokens_vocab_lookup",
    "video_clips",
    "video_decode",
]


@checked_op("audio.crop")
def audio_crop(
    pipeline: Pipeline,
    frames: int,
    *,
    at: Literal["random", "start", "center", "end"] = "random",
    field: str = "audio",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Cut a piece of fixed length out of a sound.

    Operator `audio.crop`, kind map, version 1; random.

    A shorter sound gets silence at its end, so that all have `frames` frames.

    Args:
        pipeline: what the operator reads.
        frames: length of the result; int, 1 to 1099511627776, in frames, required.
        at: which piece of the sound; enum, one of random, start, center, end, default
            random.
        field: the field with the sound; field, default audio.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"frames": frames, "at": at, "field": field}
    defaults: dict[str, Any] = {"at": "random", "field": "audio"}
    return pipeline._then("audio.crop", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("audio.db")
def audio_db(
    pipeline: Pipeline,
    *,
    of: Literal["power", "magnitude"] = "power",
    amin: float = 1e-10,
    ref: float = 1.0,
    top_db: float = 80.0,
    field: str = "audio",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Spectrum in decibels.

    Operator `audio.db`, kind map, version 1; pure.

    10 * log10(max(x, amin) / ref), or 20 times it for magnitudes, as
    torchaudio.transforms.AmplitudeToDB and librosa.power_to_db (whose top_db is 80,
    too). `top_db` counts from the largest number of the record.

    Args:
        pipeline: what the operator reads.
        of: what the numbers are: 10 or 20 times their decadic logarithm; enum, one of
            power, magnitude, default power.
        amin: smaller numbers count as this; float, 1.2e-38 to 1e+30, default 1e-10.
        ref: the number of 0 dB; float, 1.2e-38 to 1e+30, default 1.
        top_db: raise what is further than this below the record's largest; 0: nothing;
            float, 0 to 1000000, in dB, default 80.
        field: the field with the spectrum, or any float32 numbers; field, default
            audio.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"of": of, "amin": amin, "ref": ref, "top_db": top_db, "field": field}
    defaults: dict[str, Any] = {"of": "power", "amin": 1e-10, "ref": 1.0, "top_db": 80.0, "field": "audio"}
    return pipeline._then("audio.db", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("audio.decode")
def audio_decode(
    pipeline: Pipeline,
    *,
    field: str = "data",
    to: str = "audio",
    rate_to: str = "rate",
    rate: int = 0,
    start: int = 0,
    frames: int = 0,
    samples_max: int = 268435456,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Decode a WAV, FLAC, Ogg or MP3 file to samples.

    Operator `audio.decode`, kind map, version 1; pure, grows.

    Outputs float32 `[channels, frames]` in -1..1, as torchaudio.load does, and the
    file's rate as an int64. The format is found by content. WAV files of 8, 16, 24 and
    32-bit integers and of 32 and 64-bit floats are read, plain, extensible or RF64;
    FLAC, Ogg (Vorbis, Opus) and MP3 by the machine's libsndfile: samples of lossy
    formats depend on its version. `start` and `frames` decode a window of a long file
    and nothing else of it. Rates never mix unnoticed: unless `rate` is given, the
    sounds may differ in it, and spectra and batches refuse them until audio.resample
    has given them one. A malformed header, a file that is cut short, and floats that
    are not finite are errors; so is a wrong checksum in an Ogg file of which all is
    decoded.

    Args:
        pipeline: what the operator reads.
        field: the field with the encoded bytes; it is dropped; field, default data.
        to: the field that becomes the sound; field, default audio.
        rate_to: the field that becomes the rate of the file, an int64; field, default
            rate.
        rate: the rate that all files have; a file with another one is a bad record. 0:
            any; int, 0 to 10000000, in Hz, default 0.
        start: the first frame to decode; int, 0 to 1e+15, in frames, default 0.
        frames: how many to decode at most; 0: all that follow; int, 0 to 1e+15, in
            frames, default 0.
        samples_max: refuse what decodes to more, in all channels; int, 1 to
            1099511627776, in samples, default 268435456.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"field": field, "to": to, "rate_to": rate_to, "rate": rate, "start": start, "frames": frames, "samples_max": samples_max}
    defaults: dict[str, Any] = {"field": "data", "to": "audio", "rate_to": "rate", "rate": 0, "start": 0, "frames": 0, "samples_max": 268435456}
    return pipeline._then("audio.decode", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("audio.freq_mask")
def audio_freq_mask(
    pipeline: Pipeline,
    max: int,
    *,
    count: int = 1,
    share: float = 1.0,
    value: float = 0.0,
    field: str = "audio",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Blank out random bands of frequencies of a spectrum.

    Operator `audio.freq_mask`, kind map, version 1; random.

    SpecAugment. Widths are drawn from 0 to the largest, both possible, then places; all
    channels have the same masks. torchaudio.transforms.FrequencyMasking never draws the
    largest width and makes one mask.

    Args:
        pipeline: what the operator reads.
        max: largest width of a mask; widths are drawn; int, 0 to 16777216, in rows,
            required.
        count: number of masks; they may overlap; int, 1 to 1000, default 1.
        share: no mask is wider than this share of the whole; float, 0 to 1, default 1.
        value: what is put there; float, default 0.
        field: the field with the spectrum, float32 [..., rows, time]; field, default
            audio.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"max": max, "count": count, "share": share, "value": value, "field": field}
    defaults: dict[str, Any] = {"count": 1, "share": 1.0, "value": 0.0, "field": "audio"}
    return pipeline._then("audio.freq_mask", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("audio.gain")
def audio_gain(
    pipeline: Pipeline,
    db: float | Sequence[float],
    *,
    field: str = "audio",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Change the level of a sound.

    Operator `audio.gain`, kind map, version 1; random.

    Multiplies all samples by 10^(db / 20); nothing is clipped. As
    torchaudio.transforms.Vol with `db`, which clips.

    Args:
        pipeline: what the operator reads.
        db: change of level: [least, most], drawn for each record; or one number; list
            of floats, 1 to 2 items, each -200 to 200, in dB, required.
        field: the field with the sound; field, default audio.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"db": db, "field": field}
    defaults: dict[str, Any] = {"field": "audio"}
    return pipeline._then("audio.gain", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("audio.log")
def audio_log(
    pipeline: Pipeline,
    *,
    offset: float = 1e-06,
    base: Literal["e", "2", "10"] = "e",
    field: str = "audio",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Logarithm of a spectrum.

    Operator `audio.log`, kind map, version 1; pure.

    log(x + offset), within 3e-7 of the base-2 logarithm. What is not above 0 after the
    addition counts as the least normal float32.

    Args:
        pipeline: what the operator reads.
        offset: added before, so that silence has a logarithm; float, 0 to 1e+30,
            default 1e-6.
        base: base of the logarithm; enum, one of e, 2, 10, default e.
        field: the field with the spectrum, or any float32 numbers; field, default
            audio.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"offset": offset, "base": base, "field": field}
    defaults: dict[str, Any] = {"offset": 1e-06, "base": "e", "field": "audio"}
    return pipeline._then("audio.log", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("audio.mel")
def audio_mel(
    pipeline: Pipeline,
    *,
    n_mels: int = 80,
    f_min: float = 0.0,
    f_max: float = 0.0,
    scale: Literal["htk", "slaney"] = "htk",
    norm: bool = False,
    n_fft: int = 400,
    win: int = 0,
    hop: int = 0,
    window: Literal["hann", "hamming", "blackman", "rectangular"] = "hann",
    power: int = 2,
    center: bool = True,
    pad: Literal["reflect", "zero"] = "reflect",
    field: str = "audio",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Mel spectrogram of a sound.

    Operator `audio.mel`, kind map, version 1; pure, shrinks.

    `[channels, frames]` becomes `[channels, n_mels, time]`. With its defaults, and
    their n_mels, as torchaudio.transforms.MelSpectrogram; as
    librosa.feature.melspectrogram with `scale: slaney, norm: true, n_fft: 2048, hop:
    512, pad: zero, n_mels: 128`. Bands are computed in float64 from the exact
    frequencies of the bins; torchaudio rounds half the rate down. A band between two
    bins is 0 throughout: then use fewer bands or a larger n_fft.

    Args:
        pipeline: what the operator reads.
        n_mels: number of bands; int, 1 to 4096, default 80.
        f_min: lower end of the first band; float, 0 to 10000000, in Hz, default 0.
        f_max: upper end of the last band; 0: half the rate; float, 0 to 10000000, in
            Hz, default 0.
        scale: the mel scale; enum, one of htk, slaney, default htk.
        norm: divide each band by its width (slaney's norm); bool, default false.
        n_fft: size of the transform; int, 2 to 1048576, in samples, default 400.
        win: size of the window, in the middle of the transform; 0: n_fft; int, 0 to
            1048576, in samples, default 0.
        hop: from frame to frame; 0: half the window; int, 0 to 1048576, in samples,
            default 0.
        window: the window, periodic; enum, one of hann, hamming, blackman, rectangular,
            default hann.
        power: exponent of the magnitude: 2 gives power, 1 magnitude; int, 1 to 2,
            default 2.
        center: frame t has sample t * hop in its middle; false: it begins there; bool,
            default true.
        pad: with center, what lies beyond the ends: the sound mirrored, or zeros; enum,
            one of reflect, zero, default reflect.
        field: the field with the sound; it becomes the spectrum; field, default audio.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"n_mels": n_mels, "f_min": f_min, "f_max": f_max, "scale": scale, "norm": norm, "n_fft": n_fft, "win": win, "hop": hop, "window": window, "power": power, "center": center, "pad": pad, "field": field}
    defaults: dict[str, Any] = {"n_mels": 80, "f_min": 0.0, "f_max": 0.0, "scale": "htk", "norm": False, "n_fft": 400, "win": 0, "hop": 0, "window": "hann", "power": 2, "center": True, "pad": "reflect", "field": "audio"}
    return pipeline._then("audio.mel", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("audio.mel_scale")
def audio_mel_scale(
    pipeline: Pipeline,
    rate: int,
    *,
    n_fft: int = 0,
    n_mels: int = 80,
    f_min: float = 0.0,
    f_max: float = 0.0,
    scale: Literal["htk", "slaney"] = "htk",
    norm: bool = False,
    field: str = "audio",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Mel bands of a spectrum.

    Operator `audio.mel_scale`, kind map, version 1; pure, shrinks.

    `[channels, bins, time]` becomes `[channels, n_mels, time]`, as
    torchaudio.transforms.MelScale: for spectra that are changed before, such as by
    audio.freq_mask. Else audio.mel is faster. The bands are its bands.

    Args:
        pipeline: what the operator reads.
        rate: the rate of the sounds, which spectra do not know; int, 1 to 10000000, in
            Hz, required.
        n_fft: size of the transform that made the spectrum; 0: twice the bins but one;
            int, 0 to 1048576, in samples, default 0.
        n_mels: number of bands; int, 1 to 4096, default 80.
        f_min: lower end of the first band; float, 0 to 10000000, in Hz, default 0.
        f_max: upper end of the last band; 0: half the rate; float, 0 to 10000000, in
            Hz, default 0.
        scale: the mel scale; enum, one of htk, slaney, default htk.
        norm: divide each band by its width (slaney's norm); bool, default false.
        field: the field with the spectrum, float32 [..., bins, time]; field, default
            audio.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"rate": rate, "n_fft": n_fft, "n_mels": n_mels, "f_min": f_min, "f_max": f_max, "scale": scale, "norm": norm, "field": field}
    defaults: dict[str, Any] = {"n_fft": 0, "n_mels": 80, "f_min": 0.0, "f_max": 0.0, "scale": "htk", "norm": False, "field": "audio"}
    return pipeline._then("audio.mel_scale", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("audio.mfcc")
def audio_mfcc(
    pipeline: Pipeline,
    *,
    n_mfcc: int = 40,
    field: str = "audio",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Cepstral coefficients of a log-mel spectrum.

    Operator `audio.mfcc`, kind map, version 1; pure.

    The orthonormal cosine transform of each frame's bands. After audio.mel and audio.db
    it gives torchaudio.transforms.MFCC (with its parameters; there n_mels is 128) and
    librosa.feature.mfcc.

    Args:
        pipeline: what the operator reads.
        n_mfcc: number of coefficients; int, 1 to 4096, default 40.
        field: the field with the log-mel spectrum, float32 [..., n_mels, time]; field,
            default audio.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"n_mfcc": n_mfcc, "field": field}
    defaults: dict[str, Any] = {"n_mfcc": 40, "field": "audio"}
    return pipeline._then("audio.mfcc", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("audio.mono")
def audio_mono(
    pipeline: Pipeline,
    *,
    field: str = "audio",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Average the channels of a sound.

    Operator `audio.mono`, kind map, version 1; pure, shrinks.

    `[channels, frames]` becomes `[frames]`, as librosa.to_mono makes it.

    Args:
        pipeline: what the operator reads.
        field: the field with the sound; field, default audio.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"field": field}
    defaults: dict[str, Any] = {"field": "audio"}
    return pipeline._then("audio.mono", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("audio.noise")
def audio_noise(
    pipeline: Pipeline,
    path: PathLike,
    *,
    suffix: str | PathLike = "wav",
    samples_max: int = 67108864,
    snr: float | Sequence[float] = (5, 20),
    p: float = 1.0,
    field: str = "audio",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Mix noise from files in.

    Operator `audio.noise`, kind map, version 1; random.

    A file, a place in it and a ratio of signal to noise are drawn for each record. As
    torchaudio.functional.add_noise for one channel; of several channels, the mean power
    counts, and all get the same noise. Noise that is shorter than the sound is
    repeated; a silent sound stays silent. The files are read when the graph is opened:
    their channels are averaged, and other rates resampled. Their samples, not their
    paths, are part of the fingerprint.

    Args:
        pipeline: what the operator reads.
        path: files with noise: one, a folder, or a pattern such as "sounds/*.wav";
            path, required.
        suffix: ending of the names in a folder; string, default wav.
        samples_max: refuse files that have more together; they stay in memory, four
            bytes a sample; int, 1 to 1099511627776, in samples, default 67108864.
        snr: how much louder than the noise the sound is: [least, most], drawn for each
            record; or one number; list of floats, 1 to 2 items, each -200 to 200, in
            dB, default [5, 20].
        p: probability that a record gets noise; float, 0 to 1, default 1.
        field: the field with the sound; field, default audio.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"path": path, "suffix": suffix, "samples_max": samples_max, "snr": snr, "p": p, "field": field}
    defaults: dict[str, Any] = {"suffix": "wav", "samples_max": 67108864, "snr": (5, 20), "p": 1.0, "field": "audio"}
    return pipeline._then("audio.noise", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("audio.pad")
def audio_pad(
    pipeline: Pipeline,
    *,
    frames: int = 0,
    multiple: int = 1,
    side: Literal["end", "start", "both"] = "end",
    field: str = "audio",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Lengthen sounds with silence.

    Operator `audio.pad`, kind map, version 1; pure, grows.

    Longer sounds stay as they are. To give all sounds one length, use audio.crop, which
    pads, too.

    Args:
        pipeline: what the operator reads.
        frames: the length that shorter sounds get; int, 0 to 1099511627776, in frames,
            default 0.
        multiple: round lengths up to a multiple of this; int, 1 to 1099511627776, in
            frames, default 1.
        side: where the silence goes; both: half of it before the sound, rounded down;
            enum, one of end, start, both, default end.
        field: the field with the sound; field, default audio.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"frames": frames, "multiple": multiple, "side": side, "field": field}
    defaults: dict[str, Any] = {"frames": 0, "multiple": 1, "side": "end", "field": "audio"}
    return pipeline._then("audio.pad", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("audio.pitch")
def audio_pitch(
    pipeline: Pipeline,
    steps: int | Sequence[int],
    *,
    octave: int = 12,
    n_fft: int = 2048,
    win: int = 0,
    hop: int = 0,
    field: str = "audio",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Make a sound higher or lower at the same length.

    Operator `audio.pitch`, kind map, version 1; random.

    As librosa.effects.pitch_shift: a stretch by a phase vocoder (see
    audio.time_stretch), then a change of rate back to the old length. Steps are whole
    numbers: for finer ones make `octave` larger, such as `octave: 120, steps: [-20,
    20]`.

    Args:
        pipeline: what the operator reads.
        steps: how much higher: [least, most], drawn for each record; or one number;
            list of ints, 1 to 2 items, each -4096 to 4096, in steps, required.
        octave: steps of an octave; int, 1 to 1200, in steps, default 12.
        n_fft: size of the transform, even; int, 2 to 1048576, in samples, default 2048.
        win: size of the Hann window, in the middle of the transform; 0: n_fft; int, 0
            to 1048576, in samples, default 0.
        hop: from frame to frame; 0: a quarter of the window; int, 0 to 1048576, in
            samples, default 0.
        field: the field with the sound; field, default audio.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"steps": steps, "octave": octave, "n_fft": n_fft, "win": win, "hop": hop, "field": field}
    defaults: dict[str, Any] = {"octave": 12, "n_fft": 2048, "win": 0, "hop": 0, "field": "audio"}
    return pipeline._then("audio.pitch", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("audio.resample")
def audio_resample(
    pipeline: Pipeline,
    rate: int,
    *,
    filter: Literal["hq", "torchaudio"] = "hq",
    field: str = "audio",
    rate_field: str | PathLike = "rate",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Change the rate of a sound.

    Operator `audio.resample`, kind map, version 1; pure.

    A polyphase filter; the result has frames * rate / old rate frames, rounded up.
    Frames beyond the ends count as silence. **hq** passes 91.3 % of the lower Nyquist
    frequency and stops all from 100 % on by 120 dB, like soxr's HQ. **torchaudio**
    gives the numbers of torchaudio.functional.resample with its defaults: fast, and up
    to a tenth of the band lets aliases through. All sounds have the same rate
    afterwards. Ratios whose filter would take more than 64 MiB (two rates without a
    large common divisor) are refused.

    Args:
        pipeline: what the operator reads.
        rate: the new rate; int, 1 to 10000000, in Hz, required.
        filter: hq: as good as soxr's HQ; torchaudio: the numbers of
            torchaudio.functional.resample, faster and with aliases; enum, one of hq,
            torchaudio, default hq.
        field: the field with the sound; field, default audio.
        rate_field: the field with the rate of each sound, for sounds that may have
            different ones; it gets the new rate; string, default rate.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"rate": rate, "filter": filter, "field": field, "rate_field": rate_field}
    defaults: dict[str, Any] = {"filter": "hq", "field": "audio", "rate_field": "rate"}
    return pipeline._then("audio.resample", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("audio.reverb")
def audio_reverb(
    pipeline: Pipeline,
    *,
    path: PathLike | None = None,
    suffix: str | PathLike = "wav",
    samples_max: int = 67108864,
    rt60: float | Sequence[float] = (0.2, 0.6),
    drr: float | Sequence[float] = (0, 12),
    p: float = 1.0,
    field: str = "audio",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Put a sound into a room.

    Operator `audio.reverb`, kind map, version 1; random.

    Convolution with an impulse response of energy 1. With `path` one of its files is
    drawn for each record; without, a response is: the direct sound, then noise that
    falls by 60 dB in `rt60`. The sound keeps its place and its length: the response's
    loudest sample counts as time 0, and what sounds on after the end is cut off. As
    torchaudio.functional.fftconvolve with such a response, cut that way. The files are
    read when the graph is opened: their channels are averaged, and other rates
    resampled. Their samples, not their paths, are part of the fingerprint.

    Args:
        pipeline: what the operator reads.
        path: files with impulse responses: one, a folder, or a pattern such as
            "sounds/*.wav"; path, optional.
        suffix: ending of the names in a folder; string, default wav.
        samples_max: refuse files that have more together; they stay in memory, four
            bytes a sample; int, 1 to 1099511627776, in samples, default 67108864.
        rt60: without path: time in which the room's echoes fall by 60 dB: [least,
            most], drawn for each record; or one number; list of floats, 1 to 2 items,
            each 0.001 to 30, in s, default [0.2, 0.6].
        drr: without path: how much louder than all echoes together the direct sound is,
            like rt60; list of floats, 1 to 2 items, each -60 to 60, in dB, default [0,
            12].
        p: probability that a record is changed; float, 0 to 1, default 1.
        field: the field with the sound; field, default audio.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"path": path, "suffix": suffix, "samples_max": samples_max, "rt60": rt60, "drr": drr, "p": p, "field": field}
    defaults: dict[str, Any] = {"suffix": "wav", "samples_max": 67108864, "rt60": (0.2, 0.6), "drr": (0, 12), "p": 1.0, "field": "audio"}
    return pipeline._then("audio.reverb", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("audio.spectrogram")
def audio_spectrogram(
    pipeline: Pipeline,
    *,
    n_fft: int = 400,
    win: int = 0,
    hop: int = 0,
    window: Literal["hann", "hamming", "blackman", "rectangular"] = "hann",
    power: int = 2,
    center: bool = True,
    pad: Literal["reflect", "zero"] = "reflect",
    field: str = "audio",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Short-time power spectrum of a sound.

    Operator `audio.spectrogram`, kind map, version 1; pure.

    `[channels, frames]` becomes `[channels, n_fft / 2 + 1, time]`. As
    torchaudio.transforms.Spectrogram with its defaults; librosa.stft has hop = win / 4
    and `pad: zero`. `power` is 1 or 2. All sizes are possible whose largest prime
    factor is at most 1024; products of 2, 3 and 5 are fast. A sound shorter than half
    the transform is mirrored repeatedly.

    Args:
        pipeline: what the operator reads.
        n_fft: size of the transform; int, 2 to 1048576, in samples, default 400.
        win: size of the window, in the middle of the transform; 0: n_fft; int, 0 to
            1048576, in samples, default 0.
        hop: from frame to frame; 0: half the window; int, 0 to 1048576, in samples,
            default 0.
        window: the window, periodic; enum, one of hann, hamming, blackman, rectangular,
            default hann.
        power: exponent of the magnitude: 2 gives power, 1 magnitude; int, 1 to 2,
            default 2.
        center: frame t has sample t * hop in its middle; false: it begins there; bool,
            default true.
        pad: with center, what lies beyond the ends: the sound mirrored, or zeros; enum,
            one of reflect, zero, default reflect.
        field: the field with the sound; it becomes the spectrum; field, default audio.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"n_fft": n_fft, "win": win, "hop": hop, "window": window, "power": power, "center": center, "pad": pad, "field": field}
    defaults: dict[str, Any] = {"n_fft": 400, "win": 0, "hop": 0, "window": "hann", "power": 2, "center": True, "pad": "reflect", "field": "audio"}
    return pipeline._then("audio.spectrogram", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("audio.speed")
def audio_speed(
    pipeline: Pipeline,
    *,
    factors: float | Sequence[float] = (0.9, 1, 1.1),
    filter: Literal["hq", "torchaudio"] = "hq",
    field: str = "audio",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Play a sound faster or slower.

    Operator `audio.speed`, kind map, version 1; random.

    As torchaudio.transforms.SpeedPerturbation: the sound is resampled as if its rate
    were `factor` times what it is, so its pitch changes, too; its rate stays. The
    result has frames / factor frames, rounded up. audio.time_stretch keeps the pitch.

    Args:
        pipeline: what the operator reads.
        factors: one of them is drawn for each record; above 1 is faster and shorter; up
            to three decimals; list of floats, 1 to 64 items, each 0.01 to 100, default
            [0.9, 1, 1.1].
        filter: hq: as good as soxr's HQ; torchaudio: the numbers of
            torchaudio.functional.resample, faster and with aliases; enum, one of hq,
            torchaudio, default hq.
        field: the field with the sound; field, default audio.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"factors": factors, "filter": filter, "field": field}
    defaults: dict[str, Any] = {"factors": (0.9, 1, 1.1), "filter": "hq", "field": "audio"}
    return pipeline._then("audio.speed", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("audio.time_mask")
def audio_time_mask(
    pipeline: Pipeline,
    max: int,
    *,
    count: int = 1,
    share: float = 1.0,
    value: float = 0.0,
    field: str = "audio",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Blank out random stretches of time of a spectrum.

    Operator `audio.time_mask`, kind map, version 1; random.

    SpecAugment. Widths are drawn from 0 to the largest, both possible, then places; all
    channels have the same masks. torchaudio.transforms.TimeMasking never draws the
    largest width and makes one mask.

    Args:
        pipeline: what the operator reads.
        max: largest width of a mask; widths are drawn; int, 0 to 16777216, in frames,
            required.
        count: number of masks; they may overlap; int, 1 to 1000, default 1.
        share: no mask is wider than this share of the whole; float, 0 to 1, default 1.
        value: what is put there; float, default 0.
        field: the field with the spectrum, float32 [..., rows, time]; field, default
            audio.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"max": max, "count": count, "share": share, "value": value, "field": field}
    defaults: dict[str, Any] = {"count": 1, "share": 1.0, "value": 0.0, "field": "audio"}
    return pipeline._then("audio.time_mask", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("audio.time_stretch")
def audio_time_stretch(
    pipeline: Pipeline,
    rate: float | Sequence[float],
    *,
    n_fft: int = 2048,
    win: int = 0,
    hop: int = 0,
    field: str = "audio",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Make a sound longer or shorter at the same pitch.

    Operator `audio.time_stretch`, kind map, version 1; random.

    A phase vocoder, as librosa.effects.time_stretch: the result has frames / rate
    frames, rounded. Spectra and phases are in float64; librosa gives the same numbers
    for float64 sounds, while for float32 ones its phases lose digits as they add up.
    torchaudio.transforms.TimeStretch does the same to a complex spectrum.

    Args:
        pipeline: what the operator reads.
        rate: above 1 is faster and shorter: [least, most], drawn for each record; or
            one number; list of floats, 1 to 2 items, each 0.01 to 100, required.
        n_fft: size of the transform, even; int, 2 to 1048576, in samples, default 2048.
        win: size of the Hann window, in the middle of the transform; 0: n_fft; int, 0
            to 1048576, in samples, default 0.
        hop: from frame to frame; 0: a quarter of the window; int, 0 to 1048576, in
            samples, default 0.
        field: the field with the sound; field, default audio.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"rate": rate, "n_fft": n_fft, "win": win, "hop": hop, "field": field}
    defaults: dict[str, Any] = {"n_fft": 2048, "win": 0, "hop": 0, "field": "audio"}
    return pipeline._then("audio.time_stretch", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("audio.trim")
def audio_trim(
    pipeline: Pipeline,
    *,
    top_db: float = 60.0,
    frame: int = 2048,
    hop: int = 512,
    field: str = "audio",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Cut off silence before and after a sound.

    Operator `audio.trim`, kind map, version 1; pure, shrinks.

    As librosa.effects.trim with its defaults: silent is what in all channels is more
    than `top_db` below the loudest part.

    Args:
        pipeline: what the operator reads.
        top_db: what is softer than the loudest part by more than this is silence;
            float, more than 0 and at most 200, in dB, default 60.
        frame: samples whose mean power counts together; int, 1 to 16777216, in frames,
            default 2048.
        hop: from one mean to the next; int, 1 to 16777216, in frames, default 512.
        field: the field with the sound; field, default audio.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"top_db": top_db, "frame": frame, "hop": hop, "field": field}
    defaults: dict[str, Any] = {"top_db": 60.0, "frame": 2048, "hop": 512, "field": "audio"}
    return pipeline._then("audio.trim", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("batch.bucket")
def batch_bucket(
    pipeline: Pipeline,
    boundaries: int | Sequence[int],
    size: int | Sequence[int] | None = None,
    *,
    elements: int = 0,
    by: str | None = None,
    dim: int = -1,
    drop_last: bool = False,
    value: float = 0.0,
    multiple: int = 1,
    lengths: str | Sequence[str] | None = None,
    pad_to: Literal["longest", "boundary"] = "longest",
    too_long: Literal["refuse", "drop"] = "refuse",
    coordinated: bool = False,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Stack records of similar length into batches.

    Operator `batch.bucket`, kind batch, version 1; pure, grows.

    Records are gathered in buckets by length, so that little padding is left. The
    length is a dimension of the field `by`, the bytes of a text, or an integer field,
    such as a stored duration. Bucket i holds lengths below `boundaries[i]` and not
    below `boundaries[i - 1]`, the last one all others. A batch is output as soon as its
    bucket has `size` records or, with `elements`, before a record would make the number
    of records times the longest length exceed it (an empty record counts as one
    element). At the end of an epoch what is left is output in order of buckets. The
    order of batches follows from that of the records alone; put `order.shuffle` before
    it.  Padding, `value`, `multiple` and `lengths` are those of batch.pad. With
    `pad_to: boundary` every dimension that varies is padded to its bucket's boundary -
    1, the longest length that it may hold, rounded up to `multiple`: a model is
    compiled for as many shapes as there are boundaries. For lists of up to 128 and 256
    items the boundaries are 129 and 257.  Ranks that train together wait in each step
    for the one with the longest batch. With `coordinated` (coordinated reads of tf.data
    service) step k of all ranks is of the same bucket: a bucket gathers a round of
    `size` records for each rank and deals them out in turn. Each rank makes the records
    of all for that, which pays where a step costs more than making them, as with text.
    What is left at the end of an epoch makes smaller batches. Last come the buckets
    without a record for each rank: some ranks get a batch more, none does, or the last
    record is repeated, as the run's `even` says (none, drop, repeat). With the last
    two, all ranks make equally many steps, and need not agree on them.  A state names
    the records in buckets, which are made again when a run resumes; after a step that
    makes several records of one, or looks at their order, all records from the last
    place where the buckets were empty are.

    Args:
        pipeline: what the operator reads.
        boundaries: lengths in ascending order: a bucket holds those below its boundary
            and not below the one before, the last bucket all others; list of ints, 1 to
            63 items, each 1 to 1099511627776, required.
        size: records in a batch: one number, or one for each bucket; list of ints, 1 to
            64 items, each 1 to 16777216, in records, optional.
        elements: instead of `size`: records times the longest one's padded length, at
            most; int, 0 to 1099511627776, in elements, default 0.
        by: the field whose length counts: a tensor, text or bytes, or an integer that
            is the length; by default the only field whose size varies; field, optional.
        dim: the dimension of that field that is the length, from 0; -1: the one that
            varies; int, -1 to 7, default -1.
        drop_last: leave out what buckets hold at the end of an epoch; bool, default
            false.
        value: value of the padding after shorter records; float, default 0.
        multiple: round padded dimensions up to a multiple of this; int, 1 to 1048576,
            in elements, default 1.
        lengths: the fields whose sizes before padding are wanted: `x` adds `x_length`;
            list of fields, optional.
        pad_to: pad to the longest record of the batch, or to the longest that its
            bucket may hold: its boundary - 1; enum, one of longest, boundary, default
            longest.
        too_long: what becomes of a record that is longer than `elements`, or, with
            `pad_to: boundary`, of one in the last bucket: the run fails, or the record
            is dropped; enum, one of refuse, drop, default refuse.
        coordinated: give all ranks batches of the same bucket in each step; bool,
            default false.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"boundaries": boundaries, "size": size, "elements": elements, "by": by, "dim": dim, "drop_last": drop_last, "value": value, "multiple": multiple, "lengths": lengths, "pad_to": pad_to, "too_long": too_long, "coordinated": coordinated}
    defaults: dict[str, Any] = {"elements": 0, "dim": -1, "drop_last": False, "value": 0.0, "multiple": 1, "pad_to": "longest", "too_long": "refuse", "coordinated": False}
    return pipeline._then("batch.bucket", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("batch.cutmix")
def batch_cutmix(
    pipeline: Pipeline,
    *,
    alpha: float = 1.0,
    num_classes: int = 0,
    field: str = "image",
    label: str = "label",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Replace a rectangle of each image of a batch by another's, and mix labels.

    Operator `batch.cutmix`, kind map, version 1; random, dtype, batched.

    Like torchvision's CutMix: one rectangle is drawn per batch, and each image gets
    that of the image before it in the batch (the last one for the first), so the
    records must be shuffled. Labels become float32 `[batch, classes]`, mixed by area.
    Images of any type.

    Args:
        pipeline: what the operator reads.
        alpha: both parameters of the beta distribution that the share of a record is
            drawn from; float, more than 0 and at most 1000000, default 1.
        num_classes: number of classes; 0: labels are rows of probabilities already;
            int, 0 to 16777216, default 0.
        field: the field with the images; field, default image.
        label: the field with class numbers, or with rows of probabilities; field,
            default label.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"alpha": alpha, "num_classes": num_classes, "field": field, "label": label}
    defaults: dict[str, Any] = {"alpha": 1.0, "num_classes": 0, "field": "image", "label": "label"}
    return pipeline._then("batch.cutmix", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("batch.mixup")
def batch_mixup(
    pipeline: Pipeline,
    *,
    alpha: float = 1.0,
    num_classes: int = 0,
    field: str = "image",
    label: str = "label",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Blend the images of a batch, and their labels.

    Operator `batch.mixup`, kind map, version 1; random, dtype, batched.

    Like torchvision's MixUp: one share is drawn per batch from a beta distribution, and
    each image becomes share * image + (1 - share) * the image before it in the batch
    (the last one for the first), so the records must be shuffled. Labels become float32
    `[batch, classes]`.

    Args:
        pipeline: what the operator reads.
        alpha: both parameters of the beta distribution that the share of a record is
            drawn from; float, more than 0 and at most 1000000, default 1.
        num_classes: number of classes; 0: labels are rows of probabilities already;
            int, 0 to 16777216, default 0.
        field: the field with the images; field, default image.
        label: the field with class numbers, or with rows of probabilities; field,
            default label.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"alpha": alpha, "num_classes": num_classes, "field": field, "label": label}
    defaults: dict[str, Any] = {"alpha": 1.0, "num_classes": 0, "field": "image", "label": "label"}
    return pipeline._then("batch.mixup", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("batch.pad")
def batch_pad(
    pipeline: Pipeline,
    size: int,
    *,
    drop_last: bool = False,
    value: float = 0.0,
    multiple: int = 1,
    lengths: str | Sequence[str] | None = None,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Stack records of differing shapes into batches.

    Operator `batch.pad`, kind batch, version 1; pure, grows, batched.

    Each dimension of a field is padded at its end to the largest in the batch, rounded
    up to `multiple`. For a field `x` in `lengths` batches have a field `x_length`,
    int64: the sizes that its records had, `[batch]` where one of its dimensions differs
    between records, else `[batch, n]` for the n that do, in their order.

    Args:
        pipeline: what the operator reads.
        size: records in a batch; int, 1 to 16777216, in records, required.
        drop_last: leave out the last batch when it is not full; bool, default false.
        value: value of the padding after shorter records; float, default 0.
        multiple: round padded dimensions up to a multiple of this; int, 1 to 1048576,
            in elements, default 1.
        lengths: the fields whose sizes before padding are wanted: `x` adds `x_length`;
            list of fields, optional.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"size": size, "drop_last": drop_last, "value": value, "multiple": multiple, "lengths": lengths}
    defaults: dict[str, Any] = {"drop_last": False, "value": 0.0, "multiple": 1}
    return pipeline._then("batch.pad", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("batch.stack")
def batch_stack(
    pipeline: Pipeline,
    size: int,
    *,
    drop_last: bool = False,
    ragged: bool = False,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Stack records of one shape into batches.

    Operator `batch.stack`, kind batch, version 1; pure, batched.

    Every tensor field gains a first dimension. Shapes must agree within a batch (see
    batch.pad). Byte strings become a list of byte strings.

    Args:
        pipeline: what the operator reads.
        size: records in a batch; int, 1 to 16777216, in records, required.
        drop_last: leave out the last batch when it is not full; bool, default false.
        ragged: tensors whose size differs between records (lists, boxes, images) keep
            their sizes and are stored one after the other, with offsets; else they are
            refused; bool, default false.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"size": size, "drop_last": drop_last, "ragged": ragged}
    defaults: dict[str, Any] = {"drop_last": False, "ragged": False}
    return pipeline._then("batch.stack", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("batch.unbatch")
def batch_unbatch(
    pipeline: Pipeline,
    *,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Take batches apart into records.

    Operator `batch.unbatch`, kind expand, version 1; pure, zero copy.

    Record i of batch b is child i of b, and its identity says so. Padding stays. A
    batch whose fields have different numbers of records, as user code may return, is a
    bad record.

    Args:
        pipeline: what the operator reads.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    return pipeline._then("batch.unbatch", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("boxes.anchors")
def boxes_anchors(
    pipeline: Pipeline,
    size: int | Sequence[int],
    *,
    levels: int | Sequence[int] = (3, 7),
    scales: int = 3,
    ratios: float | Sequence[float] = (1, 2, 0.5),
    anchor_size: float = 4.0,
    match: float = 0.5,
    unmatched: float = 0.5,
    field: str = "boxes",
    labels: str = "labels",
    class_targets: str = "class_targets",
    box_targets: str = "box_targets",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """The class and the box that each anchor of a detector stands for.

    Operator `boxes.anchors`, kind map, version 1; pure, grows.

    For detectors of RetinaNet's kind. Anchors are numbered by level, then row and
    column of the cell in whose middle they lie, then size, then ratio; `size` is the
    image's. An anchor stands for the box that it overlaps most, if by at least `match`;
    each box also gets the anchor that overlaps it most (of two boxes with the same one,
    the box with more overlap). `class_targets` (int64) is the box's label, -1 for
    background, -2 for anchors to be ignored. `box_targets` (float32 [anchors, 4]) is
    the box's centre minus the anchor's, in sides of the anchor, and the logarithms of
    its sides in sides of the anchor, as torchvision's BoxCoder with weights of 1; 0
    where there is no box.

    Args:
        pipeline: what the operator reads.
        size: [height, width], or one number for both; list of ints, 1 to 2 items, each
            1 to 65535, in pixels, required.
        levels: first and last level of the pyramid; a cell of level l has a side of 2^l
            pixels; list of ints, 2 items, each 0 to 16, default [3, 7].
        scales: sizes of anchors per level: 2^(0/scales), 2^(1/scales), ... times
            anchor_size; int, 1 to 16, default 3.
        ratios: width / height of the anchors; list of floats, 1 to 64 items, each more
            than 0 and at most 1000, default [1, 2, 0.5].
        anchor_size: side of a square anchor, in sides of a cell; float, more than 0 and
            at most 1000, default 4.
        match: least overlap (intersection over union) of an anchor that stands for a
            box; float, 0 to 1, default 0.5.
        unmatched: anchors with less overlap are background; those between the two are
            ignored; float, 0 to 1, default 0.5.
        field: the boxes; field, default boxes.
        labels: their class numbers, int64 [n]; field, default labels.
        class_targets: the field that becomes the class of each anchor: -1 background,
            -2 to be ignored; field, default class_targets.
        box_targets: the field that becomes the place of each anchor's box; field,
            default box_targets.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"size": size, "levels": levels, "scales": scales, "ratios": ratios, "anchor_size": anchor_size, "match": match, "unmatched": unmatched, "field": field, "labels": labels, "class_targets": class_targets, "box_targets": box_targets}
    defaults: dict[str, Any] = {"levels": (3, 7), "scales": 3, "ratios": (1, 2, 0.5), "anchor_size": 4.0, "match": 0.5, "unmatched": 0.5, "field": "boxes", "labels": "labels", "class_targets": "class_targets", "box_targets": "box_targets"}
    return pipeline._then("boxes.anchors", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("boxes.convert")
def boxes_convert(
    pipeline: Pipeline,
    to: Literal["xyxy", "xywh", "cxcywh"],
    *,
    format: Literal["xyxy", "xywh", "cxcywh"] = "xyxy",
    field: str = "boxes",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Write boxes in another format.

    Operator `boxes.convert`, kind map, version 1; pure.

    Ops that move an image take boxes as corners, x1, y1, x2, y2. Other formats are
    converted to `xyxy` before them, which declares the field to be boxes, and from it
    after them, which makes it a plain tensor.

    Args:
        pipeline: what the operator reads.
        to: xyxy: two corners; xywh: the top left corner, width, height; cxcywh: the
            centre, width, height; enum, one of xyxy, xywh, cxcywh, required.
        format: the format that the rows have; enum, one of xyxy, xywh, cxcywh, default
            xyxy.
        field: the field, float32 [n, 4]; field, default boxes.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"to": to, "format": format, "field": field}
    defaults: dict[str, Any] = {"format": "xyxy", "field": "boxes"}
    return pipeline._then("boxes.convert", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("boxes.sanitize")
def boxes_sanitize(
    pipeline: Pipeline,
    *,
    field: str = "boxes",
    rows: str | Sequence[str] = ("labels",),
    image: str | None = None,
    min_size: float = 1.0,
    min_area: float = 1.0,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Drop boxes that are too small, and their labels.

    Operator `boxes.sanitize`, kind map, version 1; pure, defers, shrinks.

    Like torchvision's SanitizeBoundingBoxes. Crops leave boxes outside of their window
    as rows of no width or height, so that rows agree with labels; this drops such rows
    of `field` and of all fields in `rows`. With `image` it also drops boxes that reach
    beyond the image's edges.

    Args:
        pipeline: what the operator reads.
        field: the boxes; field, default boxes.
        rows: fields with one row per box, whose rows go with the boxes; list of fields,
            0 to 64 items, default [labels].
        image: the image: boxes that are not inside it are dropped, too; field,
            optional.
        min_size: smallest width and height that remains; float, 0 to 1000000000, in
            pixels, default 1.
        min_area: smallest width * height that remains; float, 0 to 1e+18, in pixels,
            default 1.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"field": field, "rows": rows, "image": image, "min_size": min_size, "min_area": min_area}
    defaults: dict[str, Any] = {"field": "boxes", "rows": ("labels",), "min_size": 1.0, "min_area": 1.0}
    return pipeline._then("boxes.sanitize", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("debug.fail")
def debug_fail(
    pipeline: Pipeline,
    *,
    every: int = 0,
    probability: float = 0.0,
    at: int | Sequence[int] = (),
    message: str | PathLike = "made to fail by debug.fail",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Fail for chosen records.

    Operator `debug.fail`, kind map, version 1; random.

    Args:
        pipeline: what the operator reads.
        every: fail for each n-th record of the source; 0: do not; int, 0 to 1e+15, in
            records, default 0.
        probability: fail with this probability, for the same records in every run;
            float, 0 to 1, default 0.
        at: fail for records with these source indices; list of ints, 0 to 64 items,
            each at least 0, default [].
        message: what the error says; string, default made to fail by debug.fail.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"every": every, "probability": probability, "at": at, "message": message}
    defaults: dict[str, Any] = {"every": 0, "probability": 0.0, "at": (), "message": "made to fail by debug.fail"}
    return pipeline._then("debug.fail", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("debug.identity")
def debug_identity(
    pipeline: Pipeline,
    *,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Changes nothing.

    Operator `debug.identity`, kind map, version 1; pure, identity.

    Args:
        pipeline: what the operator reads.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    return pipeline._then("debug.identity", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("debug.inflate")
def debug_inflate(
    pipeline: Pipeline,
    *,
    factor: float = 2.5,
    field: str = "data",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Repeat a record's bytes.

    Operator `debug.inflate`, kind map, version 1; pure, grows.

    With `factor: 2.5` the bytes twice, then their first half.

    Args:
        pipeline: what the operator reads.
        factor: how many times as many bytes, rounded down; float, 0 to 1000000, default
            2.5.
        field: the field with the bytes; field, default data.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"factor": factor, "field": field}
    defaults: dict[str, Any] = {"factor": 2.5, "field": "data"}
    return pipeline._then("debug.inflate", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("debug.sleep")
def debug_sleep(
    pipeline: Pipeline,
    ms: float,
    *,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Wait without using the CPU.

    Operator `debug.sleep`, kind map, version 1; pure.

    Args:
        pipeline: what the operator reads.
        ms: how long each record waits; float, 0 to 3600000, in ms, required.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"ms": ms}
    defaults: dict[str, Any] = {}
    return pipeline._then("debug.sleep", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("debug.spin")
def debug_spin(
    pipeline: Pipeline,
    us: float,
    *,
    every: int = 0,
    factor: float = 1.0,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Use the CPU for some time.

    Operator `debug.spin`, kind map, version 1; pure.

    Args:
        pipeline: what the operator reads.
        us: CPU time that each record costs; float, 0 to 1000000000, in us, required.
        every: every n-th record by source index costs more; 0: none; int, 0 to 1e+15,
            default 0.
        factor: how many times as much; float, 0 to 1000000, default 1.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"us": us, "every": every, "factor": factor}
    defaults: dict[str, Any] = {"every": 0, "factor": 1.0}
    return pipeline._then("debug.spin", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("flow.cache")
def flow_cache(
    pipeline: Pipeline,
    folder: PathLike | None = None,
    *,
    budget: int | str = 0,
    random: Literal["refuse", "freeze"] = "refuse",
    refresh: int = 0,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Keep records in memory or in a folder, so that later epochs skip the work.

    Operator `flow.cache`, kind map, version 1; pure.

    The first epoch makes each record and keeps it. From then on nothing before the
    cache runs for that record: no read, no decoding, no filter. Whole pipelines give
    the same records with and without it, in every order and with any number of threads,
    ranks and resumes.  Records are known by what makes them: all nodes before the cache
    with their parameters, and the names that the source lists. A change of any of these
    uses another cache; orders (shuffle, take, shard) may change freely. In a folder,
    records of local files are also known by size, modification time and inode of their
    files, so that a file which was overwritten is read again; one that is gone or
    cannot be read is the error that it is without a cache. Not noticed are a change
    that keeps all three (in place, of the same length, within one tick of the file
    system's clock) and changes of objects on servers: delete the folder then. What a
    file held before it was overwritten stays in the folder, and counts against its
    budget, until the folder is deleted. A file that changes while a run uses its data
    set is kept only from the next run on. A cache in memory does not look at files: it
    lasts as long as its loader. Records that a filter before the cache drops are kept
    as dropped.  Put it after the expensive work and before random augmentation. Random
    ops before it are refused, because every epoch would repeat the first: see `random`
    and `refresh`. Batches are not cached: put it before `batch.stack`. Images are made
    before they are kept, so in modes `close` and `fast` a cache between `image.decode`
    and a resize changes pixels as any op that needs them does; after the whole group it
    changes none. As uint8 an image takes a quarter of what it takes normalised.  When
    the budget is used up, what is there stays and the rest is made in every epoch: in
    an epoch each record is wanted once, so replacing one by another would gain nothing.
    `headrace run` shows how full it is, and why.  A folder may be shared by any number
    of processes of a machine, also while they fill it, and outlives them. Each record
    has a checksum; a damaged one is made again. With a budget, caches of other
    pipelines in the same folder are removed when room is needed, the least recently
    used first, and none that is in use.

    Args:
        pipeline: what the operator reads.
        folder: where records are kept; null keeps them in memory; path, optional.
        budget: bytes that it may take; 0: in memory up to half of the run's memory
            budget, or a quarter of the machine's memory (or cgroup's) without one; in a
            folder all but a twentieth of the disk; bytes, at least 0, default 0.
        random: what to do about ops before it that draw random numbers: refuse them, or
            freeze their draws, the same in all epochs; enum, one of refuse, freeze,
            default refuse.
        refresh: freeze draws for this many epochs, then draw again; 0: as `random`
            says; int, 0 to 1000000000, default 0.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"folder": folder, "budget": budget, "random": random, "refresh": refresh}
    defaults: dict[str, Any] = {"budget": 0, "random": "refuse", "refresh": 0}
    return pipeline._then("flow.cache", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("flow.concat")
def flow_concat(
    *pipelines: Pipeline,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """The records of several inputs, one input after the other.

    Operator `flow.concat`, kind merge, version 1; pure.

    The result is like one source: shuffle, split, take, shard and resume see all
    records. All inputs must have the same fields, of the same types, in any order;
    sizes may differ, and so do class numbers: inputs that number classes by their own
    folders give one number to different classes unless they name the same `classes`.
    How many records each has must be known beforehand: filters, expansions and batches
    come after it. What is done to one input only, such as a resize, comes before it.
    Errors and the ledger name a record by its number and file in its own input;
    functions and draws after it number the records of the inputs in turn.

    Args:
        pipelines: what is joined.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    from .pipeline import Pipeline

    params: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    return Pipeline._join(pipelines, "flow.concat", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("flow.interleave")
def flow_interleave(
    *pipelines: Pipeline,
    block: int = 1,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """The records of several inputs in turns, a block of each.

    Operator `flow.interleave`, kind merge, version 1; pure.

    `block` records of the first input, then as many of the second, and so on, again and
    again, as tf.data's `interleave` does with a `cycle_length` of all inputs. An input
    without records left is passed over, so that every record comes once. Each input
    keeps its order. flow.mix takes records in given proportions instead. A run resumes
    at any position, and ranks divide the result. Fields, classes and numbers of records
    are as in flow.concat.

    Args:
        pipelines: what is joined.
        block: consecutive records of an input before it is the next one's turn; int, 1
            to 1099511627776, in records, default 1.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    from .pipeline import Pipeline

    params: dict[str, Any] = {"block": block}
    defaults: dict[str, Any] = {"block": 1}
    return Pipeline._join(pipelines, "flow.interleave", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("flow.join")
def flow_join(
    *pipelines: Pipeline,
    on: str | PathLike | None = None,
    left_on: str | PathLike | None = None,
    right_on: str | PathLike | None = None,
    integers: bool = False,
    how: Literal["inner", "left"] = "inner",
    fill: Mapping[str, str | float] = {},
    matched: str | None = None,
    prefix: str | Sequence[str] = (),
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Join the records of two inputs that have equal keys.

    Operator `flow.join`, kind zip, version 1; pure, defers, zero copy.

    An inner join, as `merge` of pandas: one record for each pair of equal keys, in the
    order of the first input, and for one record there in the order of the second. A
    record without a match is left out; `headrace explain` says how many of each input
    are used. An inner join in which no record at all has a match is refused. With `how:
    left`, a record of the first input without a match comes once, in its place, even if
    none has one. Its fields of the second input need values that cannot be taken for
    data: `fill` names them, or `matched` names a new field that is true where there is
    a match. Without either the join is refused, as are fields that cannot be made up:
    the bytes of files, and pictures of differing sizes. A key that is null matches
    nothing; a damaged record whose key cannot be read is an error. Keys are integers or
    texts, and those of both inputs must be the same kind. They are read once, when the
    graph is opened: each pair takes 8 bytes of memory, which a budget counts. While
    they are read, a record of the second input takes 24 to 40 bytes and its key, one of
    the first 4 bytes: put the smaller table second.  A key is a field of the records
    that reach the join, under its name there. As with order.split, its values must be
    known before any record is read: a field of the source as it is or renamed, or what
    steps before the join make of such integers and texts, such as text.lower,
    text.strip or tensor.cast. These steps run once for each key when the graph is
    opened, on nothing else of the record. Your own functions and random steps cannot
    make a key. Where no field has the name, it is that of a key of the source: path,
    stem, index, or a field that was dropped. A record without a match has no key in
    fields of the second input. The output has the field `on` once; other names that
    both inputs have need a `prefix`. Both inputs must know their number of records:
    filters, expansions, batches and shuffles come after it, and a shuffle costs the
    same there. Steps before it run for each joined record, with the same random draws
    for a record that is joined twice; steps after it draw anew for each. To join by
    position instead, see flow.zip.

    Args:
        pipelines: what is joined.
        on: the key, if it has the same name in both inputs: a field that the source
            knows before it reads a record (a column, a label, an integer or a text of
            an archive), or that is made of such fields; path, stem or index, as for
            order.split; string, optional.
        left_on: the key of the first input; string, optional.
        right_on: the key of the second input; string, optional.
        integers: read keys that are texts as decimal integers, so that the file
            000123.jpg, by its stem, is the number 123; bool, default false.
        how: inner: records of the first input without a match are left out; left: they
            come once, and `fill` or `matched` is needed; enum, one of inner, left,
            default inner.
        fill: left: what the fields of the second input become, under their names after
            the join, where there is no match, such as {age: -1, name: '='}; = stands
            for the text after it, here an empty one, and for an empty list; map,
            default {}.
        matched: left: a new field, true where there is a match; fields that `fill` does
            not name are then zeros, and empty texts and lists; field, optional.
        prefix: prefixes of each input's field names, in order; [] for none; list of
            fields, 0 to 8 items, default [].
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    from .pipeline import Pipeline

    params: dict[str, Any] = {"on": on, "left_on": left_on, "right_on": right_on, "integers": integers, "how": how, "fill": fill, "matched": matched, "prefix": prefix}
    defaults: dict[str, Any] = {"integers": False, "how": "inner", "fill": {}, "prefix": ()}
    return Pipeline._join(pipelines, "flow.join", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("flow.mix")
def flow_mix(
    *pipelines: Pipeline,
    until: Literal["first", "all"],
    weights: float | Sequence[float] = (),
    seed: int = -1,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """The records of several inputs, interleaved by weights.

    Operator `flow.mix`, kind merge, version 1; random.

    Each input has its part of any stretch of records, exactly: within a block of 4096
    records an input has its share or one record more or less for each input before it,
    in random order. Which record comes at which position depends on the run's seed, the
    epoch, and `seed` or else the node's name, so a run resumes at any position, and
    ranks divide the mix. An input's own records come in its own order except within a
    block: shuffle each before it, or the mix after it, which loses the even spread of
    the inputs.  With `until: first` the epoch ends before an input would have to begin
    again, so that the other inputs are not read completely: `first_exhausted` of
    Hugging Face's interleave_datasets. With `until: all` every record comes at least
    once (`all_exhausted`); shorter inputs are repeated, in another order if they are
    shuffled, and random ops draw again. Fields, classes and numbers of records are as
    in flow.concat.

    Args:
        pipelines: what is joined.
        weights: how often each input is read, in order; they need not add up to 1; []
            for equal parts; list of floats, 0 to 8 items, default [].
        until: the epoch ends when the first input is exhausted, or when all are:
            shorter ones then begin again; enum, one of first, all, required.
        seed: decides the order together with the run's seed; -1: the node's name does;
            int, -1 to 9e+15, default -1.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    from .pipeline import Pipeline

    params: dict[str, Any] = {"weights": weights, "until": until, "seed": seed}
    defaults: dict[str, Any] = {"weights": (), "seed": -1}
    return Pipeline._join(pipelines, "flow.mix", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("flow.window")
def flow_window(
    pipeline: Pipeline,
    size: int,
    *,
    stride: int = 0,
    drop_last: bool = True,
    ragged: bool = False,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Consecutive records become one record with a leading dimension.

    Operator `flow.window`, kind batch, version 1; pure.

    As `window` of tf.data, with its `shift` called `stride` and each window made into
    tensors: numbers become a list, tensors gain a first dimension, byte strings become
    lists of byte strings. What comes after it sees one record per window, with the
    identity of its first record; batches follow as usual. Fields that were images,
    masks, boxes, points or samples are plain tensors afterwards.  Windows are of the
    records that arrive: after a filter, of those that it keeps, and a bad record that
    is skipped is in none. They end with the epoch. A shuffle before it gives windows of
    records in random order; to shuffle windows, put order.shuffle with a `window` after
    it. Ranks divide the windows, exactly, and each of them reads all records;
    order.shard may stand after it, not before it.  It holds at most `size` records. A
    run resumes at any window; where windows overlap, by running the epoch up to there
    again.

    Args:
        pipeline: what the operator reads.
        size: records in a window; int, 1 to 1048576, in records, required.
        stride: records from the beginning of a window to that of the next; 0: size, so
            that each record is in one window. With less, windows overlap; with more,
            the records between them are left out; int, 0 to 1048576, in records,
            default 0.
        drop_last: leave out records at the end that fill no window; false: they make a
            shorter one; bool, default true.
        ragged: tensors whose size differs between records keep their sizes and are
            stored one after the other, with offsets; else they are refused; bool,
            default false.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"size": size, "stride": stride, "drop_last": drop_last, "ragged": ragged}
    defaults: dict[str, Any] = {"stride": 0, "drop_last": True, "ragged": False}
    return pipeline._then("flow.window", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("flow.zip")
def flow_zip(
    *pipelines: Pipeline,
    prefix: str | Sequence[str] = (),
    paired: bool = True,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Join the records of several inputs, position by position.

    Operator `flow.zip`, kind zip, version 1; pure, defers, zero copy.

    All inputs must have the same number of records, known beforehand: filters,
    expansions and batches come after it. A shuffle belongs after it, too: it moves the
    joined records, and costs the same. Shuffles before it must all have the same
    `seed`, and shards, splits and merges that alternate equal parameters, else the
    records would be mispaired and the graph is refused. So it is where the files of two
    folders have like names, such as img1.jpg and img1_mask.png, and one would be paired
    with the file of another. Field names must differ; see `prefix`.

    Args:
        pipelines: what is joined.
        prefix: prefixes of each input's field names, in order; [] for none; list of
            fields, 0 to 8 items, default [].
        paired: refuse inputs whose random orders or names of files differ; false joins
            them as they come, to pair records at random; bool, default true.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    from .pipeline import Pipeline

    params: dict[str, Any] = {"prefix": prefix, "paired": paired}
    defaults: dict[str, Any] = {"prefix": (), "paired": True}
    return Pipeline._join(pipelines, "flow.zip", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.affine")
def image_affine(
    pipeline: Pipeline,
    degrees: float | Sequence[float],
    *,
    translate: float | Sequence[float] = (0, 0),
    scale: float | Sequence[float] = (1, 1),
    shear: float | Sequence[float] = (0, 0),
    center: float | Sequence[float] = (),
    interpolation: Literal["nearest", "bilinear"] = "nearest",
    fill: float | Sequence[float] = 0,
    mask_fill: int | None = None,
    field: str | Sequence[str] = ("image",),
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Rotate, shift, scale and shear the image at random.

    Operator `image.affine`, kind map, version 1; random, warps.

    Like torchvision's RandomAffine. Every quantity is drawn, even if its interval is a
    single number.

    Args:
        pipeline: what the operator reads.
        degrees: [least, most], clockwise; one number d means [-d, d]; list of floats, 1
            to 2 items, each -360 to 360, in degrees, required.
        translate: largest shift as a fraction of [width, height]; list of floats, 2
            items, each 0 to 1, default [0, 0].
        scale: [least, most] magnification; list of floats, 2 items, each more than 0
            and at most 1000, default [1, 1].
        shear: along x: one number s for [-s, s], or [least, most]; along y too: four
            numbers; list of floats, 1 to 4 items, each -89 to 89, in degrees, default
            [0, 0].
        center: [x, y] from the top left corner of the point that stays in place; []:
            the middle of the image; list of floats, 0 to 2 items, each -65535 to 65535,
            in pixels, default [].
        interpolation: how values between pixels are computed; enum, one of nearest,
            bilinear, default nearest.
        fill: what is outside, one number or one per channel, in the image's own range
            (0..255 or 0..1); list of floats, 1 to 4 items, each -1000000 to 1000000, in
            levels, default 0.
        mask_fill: what is outside of masks that move with the image, such as 255 where
            a loss ignores it; default: 0; int, 0 to 255, in label, optional.
        field: the field with the image; or a list: the image, then images, masks, boxes
            and points that move with it; list of fields, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"degrees": degrees, "translate": translate, "scale": scale, "shear": shear, "center": center, "interpolation": interpolation, "fill": fill, "mask_fill": mask_fill, "field": field}
    defaults: dict[str, Any] = {"translate": (0, 0), "scale": (1, 1), "shear": (0, 0), "center": (), "interpolation": "nearest", "fill": 0, "field": ("image",)}
    return pipeline._then("image.affine", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.aug_mix")
def image_aug_mix(
    pipeline: Pipeline,
    *,
    severity: int = 3,
    mixture_width: int = 3,
    chain_depth: int = -1,
    alpha: float = 1.0,
    all_ops: bool = True,
    interpolation: Literal["nearest", "bilinear"] = "bilinear",
    fill: float | Sequence[float] = 0,
    field: str = "image",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Mix the image with chains of random changes of it.

    Operator `image.aug_mix`, kind map, version 1; random.

    Like torchvision's AugMix: `mixture_width` chains of changes, as those of
    image.rand_augment, are run on the image; the result is a mean of the image and of
    their results by drawn weights, truncated to whole levels. Masks, boxes and points
    cannot follow.

    Args:
        pipeline: what the operator reads.
        severity: number of magnitudes, of 10 from none to the greatest, that are drawn
            from; int, 1 to 10, default 3.
        mixture_width: number of chains; int, 1 to 64, default 3.
        chain_depth: steps of a chain; 0 or -1: 1 to 3, drawn; int, -1 to 64, default
            -1.
        alpha: parameter of the distributions of the weights; float, more than 0 and at
            most 1000000, default 1.
        all_ops: brightness, color, contrast and sharpness are drawn as well; bool,
            default true.
        interpolation: how values between pixels are computed when the image is sheared,
            shifted or rotated; enum, one of nearest, bilinear, default bilinear.
        fill: what is outside then: one level or one per channel; list of floats, 1 to 4
            items, each 0 to 255, in levels, default 0.
        field: the field with the image; field, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"severity": severity, "mixture_width": mixture_width, "chain_depth": chain_depth, "alpha": alpha, "all_ops": all_ops, "interpolation": interpolation, "fill": fill, "field": field}
    defaults: dict[str, Any] = {"severity": 3, "mixture_width": 3, "chain_depth": -1, "alpha": 1.0, "all_ops": True, "interpolation": "bilinear", "fill": 0, "field": "image"}
    return pipeline._then("image.aug_mix", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.auto_augment")
def image_auto_augment(
    pipeline: Pipeline,
    *,
    policy: Literal["imagenet", "cifar10", "svhn"] = "imagenet",
    interpolation: Literal["nearest", "bilinear"] = "nearest",
    fill: float | Sequence[float] = 0,
    mask_fill: int | None = None,
    field: str | Sequence[str] = ("image",),
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Two random changes of a pair that was found for a data set.

    Operator `image.auto_augment`, kind map, version 1; random.

    Like torchvision's AutoAugment: draws one of the policy's 25 pairs; each of its two
    changes has a probability and a strength. What is said of levels and of other fields
    at image.rand_augment holds here.

    Args:
        pipeline: what the operator reads.
        policy: the data set whose pairs of steps are taken; enum, one of imagenet,
            cifar10, svhn, default imagenet.
        interpolation: how values between pixels are computed when the image is sheared,
            shifted or rotated; enum, one of nearest, bilinear, default nearest.
        fill: what is outside then: one level or one per channel; list of floats, 1 to 4
            items, each 0 to 255, in levels, default 0.
        mask_fill: what is outside of masks that move with the image, such as 255 where
            a loss ignores it; default: 0; int, 0 to 255, in label, optional.
        field: the field with the image; or a list: the image, then images, masks, boxes
            and points that move with it; list of fields, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"policy": policy, "interpolation": interpolation, "fill": fill, "mask_fill": mask_fill, "field": field}
    defaults: dict[str, Any] = {"policy": "imagenet", "interpolation": "nearest", "fill": 0, "field": ("image",)}
    return pipeline._then("image.auto_augment", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.autocontrast")
def image_autocontrast(
    pipeline: Pipeline,
    *,
    p: float = 0.5,
    field: str = "image",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Stretch each channel to the whole range, with a probability.

    Operator `image.autocontrast`, kind map, version 1; random.

    Like torchvision's RandomAutocontrast: the least level of a channel becomes black
    and the largest white. A channel of one level is unchanged. uint8 images are
    truncated, as there, so their white may be 254.

    Args:
        pipeline: what the operator reads.
        p: probability that the image is changed; float, 0 to 1, default 0.5.
        field: the field with the image; field, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"p": p, "field": field}
    defaults: dict[str, Any] = {"p": 0.5, "field": "image"}
    return pipeline._then("image.autocontrast", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.center_crop")
def image_center_crop(
    pipeline: Pipeline,
    size: int | Sequence[int],
    *,
    field: str | Sequence[str] = ("image",),
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Crop the centre of the image.

    Operator `image.center_crop`, kind map, version 1; pure, defers, shrinks.

    As torchvision: a smaller image is framed with zeros first; half a pixel is rounded
    to even.

    Args:
        pipeline: what the operator reads.
        size: [height, width], or one number for both; list of ints, 1 to 2 items, each
            1 to 65535, in pixels, required.
        field: the field with the image; or a list: the image, then images, masks, boxes
            and points that move with it; list of fields, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"size": size, "field": field}
    defaults: dict[str, Any] = {"field": ("image",)}
    return pipeline._then("image.center_crop", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.clip")
def image_clip(
    pipeline: Pipeline,
    min: float,
    max: float,
    *,
    field: str = "image",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Clamp values to an interval.

    Operator `image.clip`, kind map, version 1; pure, pointwise.

    In the image's own range: 0..255, 0..1, or that of a normalised image. Images of 1
    or 3 channels.

    Args:
        pipeline: what the operator reads.
        min: smaller values become this; float, in levels, required.
        max: larger values become this; float, in levels, required.
        field: the field with the image; field, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"min": min, "max": max, "field": field}
    defaults: dict[str, Any] = {"field": "image"}
    return pipeline._then("image.clip", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.color_jitter")
def image_color_jitter(
    pipeline: Pipeline,
    *,
    brightness: float | Sequence[float] = 0,
    contrast: float | Sequence[float] = 0,
    saturation: float | Sequence[float] = 0,
    hue: float | Sequence[float] = 0,
    field: str = "image",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Change brightness, contrast, saturation and hue at random.

    Operator `image.color_jitter`, kind map, version 1; random.

    Like torchvision's ColorJitter: four steps in random order. Hue is rotated exactly,
    in HSV. uint8 images are rounded to the nearest level after each step (torchvision
    truncates). Saturation and hue do not change images of one channel or of three equal
    ones.

    Args:
        pipeline: what the operator reads.
        brightness: factor: b for [max(0, 1 - b), 1 + b], or [least, most]; 0: no
            change; list of floats, 1 to 2 items, each 0 to 1000, default 0.
        contrast: factor, like brightness; list of floats, 1 to 2 items, each 0 to 1000,
            default 0.
        saturation: factor, like brightness; images of one channel are unchanged; list
            of floats, 1 to 2 items, each 0 to 1000, default 0.
        hue: h for [-h, h], or [least, most]; images of one channel are unchanged; list
            of floats, 1 to 2 items, each -0.5 to 0.5, in turns, default 0.
        field: the field with the image; field, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"brightness": brightness, "contrast": contrast, "saturation": saturation, "hue": hue, "field": field}
    defaults: dict[str, Any] = {"brightness": 0, "contrast": 0, "saturation": 0, "hue": 0, "field": "image"}
    return pipeline._then("image.color_jitter", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.cover_crop")
def image_cover_crop(
    pipeline: Pipeline,
    *,
    cover: float = 0.1,
    ratio: float | Sequence[float] = (0.75, 1.33),
    scale: float | Sequence[float] = (0.05, 1),
    trials: int = 100,
    keep: float = 0.0,
    field: str | Sequence[str] = ("image",),
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Crop a random window that covers part of a box.

    Operator `image.cover_crop`, kind map, version 1; random, geometric, crops, defers,
    shrinks.

    Like TensorFlow's sample_distorted_bounding_box: draws aspect, height and place of a
    window until it covers enough of one box. `field` lists the image and its boxes:
    `field: [image, boxes]`. Boxes that are not kept become rows of zeros, so that rows
    still agree with labels; boxes.sanitize drops both. Any window will do for an image
    without boxes.

    Args:
        pipeline: what the operator reads.
        cover: least part of a box's area that the window covers, for one box at least;
            float, 0 to 1, default 0.1.
        ratio: smallest and largest width / height of the window; list of floats, 2
            items, each more than 0 and at most 1000, default [0.75, 1.33].
        scale: smallest and largest area of the window, in areas of the image; list of
            floats, 2 items, each more than 0 and at most 1, default [0.05, 1].
        trials: windows to try before the image is left as it is; int, 1 to 100000,
            default 100.
        keep: boxes of which the window covers this part or less become rows of zeros;
            float, 0 to 1, default 0.
        field: the field with the image; or a list: the image, then images, masks, boxes
            and points that move with it; list of fields, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"cover": cover, "ratio": ratio, "scale": scale, "trials": trials, "keep": keep, "field": field}
    defaults: dict[str, Any] = {"cover": 0.1, "ratio": (0.75, 1.33), "scale": (0.05, 1), "trials": 100, "keep": 0.0, "field": ("image",)}
    return pipeline._then("image.cover_crop", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.decode")
def image_decode(
    pipeline: Pipeline,
    *,
    field: str = "data",
    to: str = "image",
    color: Literal["rgb", "gray", "unchanged", "labels"] = "rgb",
    orientation: bool = False,
    mode: Literal["exact", "close", "fast"] = "close",
    pixels_max: int = 268435456,
    seek_bytes: int | str = "256MB",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Decode a JPEG, PNG, WebP or PNM file to an image.

    Operator `image.decode`, kind map, version 1; pure, decodes, defers, grows.

    Outputs uint8 levels, [height, width, channels]. Decoding is deferred until pixels
    are needed: after a crop the rest of the photo is never decoded, and after a resize
    it may be decoded at a reduced scale (JPEG, see `mode`). In baseline JPEGs it
    records seek points, places where decoding can start, a few kilobytes per photo, by
    the hash of the file's contents; the next epoch, or a second view in the same
    record, starts there. If the source has an `index`, they are saved to that file when
    an epoch or an iterator ends, and later runs use them. `seek_bytes` is in addition
    to the memory of the iterator; saved points are mapped and do not count. They change
    no pixel. Differs from torchvision: CMYK is converted to RGB, 16-bit files are
    reduced to 8 bits, and a damaged file is an error instead of a partly gray image.
    `color: labels` gives a mask, uint8 [height, width, 1], of the numbers that a PNG
    holds: of a palette the numbers and not the colours (Pascal VOC), of gray the levels
    as they are stored (Cityscapes' labelIds, ADE20K), also where they have 1, 2 or 4
    bits, which other values of `color` scale to 0..255. Any other file is a bad record:
    colours and lossy files have no labels, and those of 16 bits do not fit. The field
    is of kind mask: it needs no record.kind.

    Args:
        pipeline: what the operator reads.
        field: the field with the encoded bytes; it is dropped; field, default data.
        to: the field that becomes the image; field, default image.
        color: channels: rgb repeats gray and drops alpha; unchanged keeps those of the
            file; labels: a mask, the numbers in a PNG with a palette or in gray; enum,
            one of rgb, gray, unchanged, labels, default rgb.
        orientation: rotate and mirror the image according to its EXIF data; bool,
            default false.
        mode: exact: decode at full size always; close: at a half, quarter or eighth
            where 1.5 times the wanted size remains; fast: where the wanted size
            remains; enum, one of exact, close, fast, default close.
        pixels_max: refuse larger images; int, 1 to 4000000000, in pixels, default
            268435456.
        seek_bytes: memory for seek points in JPEGs, at which decoding can start; 0:
            none are recorded or used; bytes, at least 0, default 256MB.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"field": field, "to": to, "color": color, "orientation": orientation, "mode": mode, "pixels_max": pixels_max, "seek_bytes": seek_bytes}
    defaults: dict[str, Any] = {"field": "data", "to": "image", "color": "rgb", "orientation": False, "mode": "close", "pixels_max": 268435456, "seek_bytes": "256MB"}
    return pipeline._then("image.decode", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.elastic")
def image_elastic(
    pipeline: Pipeline,
    *,
    alpha: float | Sequence[float] = 50,
    sigma: float | Sequence[float] = 5,
    interpolation: Literal["nearest", "bilinear"] = "bilinear",
    fill: float | Sequence[float] = 0,
    mask_fill: int | None = None,
    field: str | Sequence[str] = ("image",),
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Move each pixel by smooth random shifts.

    Operator `image.elastic`, kind map, version 1; random.

    Like torchvision's ElasticTransform: a random shift from -1 to 1 for each pixel and
    direction, blurred by `sigma` and multiplied by `alpha`, which is in pixels times
    two on a square image; on others, shifts along x are `alpha` * width / height / 2
    pixels and those along y `alpha` * height / width / 2. Taps of the blur whose total
    weight is below 0.1 % are omitted, and it may be larger than the image. Boxes become
    upright ones around their four corners, and corners and points move by the shift at
    their place, which is nearly the inverse where shifts are smooth.

    Args:
        pipeline: what the operator reads.
        alpha: how far pixels move: [along x, along y], or one number for both; list of
            floats, 1 to 2 items, each 0 to 1000000, default 50.
        sigma: how smooth the shifts are: the standard deviation of their blur, [along
            x, along y], or one number for both; 0: not at all; list of floats, 1 to 2
            items, each 0 to 100, in pixels, default 5.
        interpolation: how values between pixels are computed; enum, one of nearest,
            bilinear, default bilinear.
        fill: what is outside, one number or one per channel, in the image's own range
            (0..255 or 0..1); list of floats, 1 to 4 items, each -1000000 to 1000000, in
            levels, default 0.
        mask_fill: what is outside of masks that move with the image, such as 255 where
            a loss ignores it; default: 0; int, 0 to 255, in label, optional.
        field: the field with the image; or a list: the image, then images, masks, boxes
            and points that move with it; list of fields, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"alpha": alpha, "sigma": sigma, "interpolation": interpolation, "fill": fill, "mask_fill": mask_fill, "field": field}
    defaults: dict[str, Any] = {"alpha": 50, "sigma": 5, "interpolation": "bilinear", "fill": 0, "field": ("image",)}
    return pipeline._then("image.elastic", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.encode")
def image_encode(
    pipeline: Pipeline,
    *,
    field: str = "image",
    to: str = "data",
    format: Literal["jpeg", "png"] = "jpeg",
    quality: int = 95,
    sampling: Literal["420", "422", "444"] = "420",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Encode an image as a JPEG or PNG file.

    Operator `image.encode`, kind map, version 1; pure.

    What image.decode reads. Photos that are resized once and kept as files, by
    flow.cache or `headrace pack`, take about a fifth of the bytes of their pixels:
    `resize_shortest(256).encode().cache("folder").decode()`. A JPEG changes levels a
    little, a PNG does not. The same pixels give the same bytes with the same build of
    libjpeg-turbo or libpng.

    Args:
        pipeline: what the operator reads.
        field: the image; it is dropped; field, default image.
        to: the field that becomes the file's bytes; field, default data.
        format: png loses nothing, and takes several times as many bytes; enum, one of
            jpeg, png, default jpeg.
        quality: of a JPEG, as libjpeg counts; int, 1 to 100, default 95.
        sampling: of a JPEG's colours: 420 halves both sides, as most files do, 422 the
            width, 444 neither; enum, one of 420, 422, 444, default 420.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"field": field, "to": to, "format": format, "quality": quality, "sampling": sampling}
    defaults: dict[str, Any] = {"field": "image", "to": "data", "format": "jpeg", "quality": 95, "sampling": "420"}
    return pipeline._then("image.encode", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.equalize")
def image_equalize(
    pipeline: Pipeline,
    *,
    p: float = 0.5,
    field: str = "image",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Make the histogram of each channel flat, with a probability.

    Operator `image.equalize`, kind map, version 1; random.

    Like torchvision's RandomEqualize, and Pillow's ImageOps.equalize. float32 images
    are brought to 256 levels. A channel with fewer than 255 pixels outside its highest
    level keeps its levels.

    Args:
        pipeline: what the operator reads.
        p: probability that the image is changed; float, 0 to 1, default 0.5.
        field: the field with the image; field, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"p": p, "field": field}
    defaults: dict[str, Any] = {"p": 0.5, "field": "image"}
    return pipeline._then("image.equalize", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.erase")
def image_erase(
    pipeline: Pipeline,
    *,
    p: float = 0.5,
    scale: float | Sequence[float] = (0.02, 0.33),
    ratio: float | Sequence[float] = (0.3, 3.3),
    value: float | Sequence[float] = 0,
    random: bool = False,
    field: str = "image",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Replace a random rectangle, with a probability.

    Operator `image.erase`, kind map, version 1; random.

    Like torchvision's RandomErasing, also after image.normalize: `random: true` is its
    value "random", except for uint8, where torchvision wraps normal numbers around.
    Masks and boxes stay as they are.

    Args:
        pipeline: what the operator reads.
        p: probability that a rectangle is erased; float, 0 to 1, default 0.5.
        scale: smallest and largest fraction of the area to erase; list of floats, 2
            items, each 0 to 1, default [0.02, 0.33].
        ratio: smallest and largest height / width of the rectangle; list of floats, 2
            items, each more than 0 and at most 1000, default [0.3, 3.3].
        value: what takes its place, one number or one per channel, in the image's own
            range; list of floats, 1 to 4 items, each -1000000 to 1000000, in levels,
            default 0.
        random: noise takes its place: normal of deviation 1 in float32, every level as
            likely in uint8; bool, default false.
        field: the field with the image; field, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"p": p, "scale": scale, "ratio": ratio, "value": value, "random": random, "field": field}
    defaults: dict[str, Any] = {"p": 0.5, "scale": (0.02, 0.33), "ratio": (0.3, 3.3), "value": 0, "random": False, "field": "image"}
    return pipeline._then("image.erase", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.five_crop")
def image_five_crop(
    pipeline: Pipeline,
    size: int | Sequence[int],
    *,
    field: str = "image",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """The four corners and the centre of an image, each as a record.

    Operator `image.five_crop`, kind expand, version 1; pure.

    Like torchvision's FiveCrop, in its order: top left, top right, bottom left, bottom
    right, centre. A record becomes five that follow each other, with the other fields
    of the image, so a batch of a multiple of 5 has all crops of its images:
    `model(x).view(-1, 5, classes).mean(1)` is the mean over them. A smaller image is a
    bad record.

    Args:
        pipeline: what the operator reads.
        size: [height, width], or one number for both; list of ints, 1 to 2 items, each
            1 to 65535, in pixels, required.
        field: the field with the image; field, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"size": size, "field": field}
    defaults: dict[str, Any] = {"field": "image"}
    return pipeline._then("image.five_crop", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.fixed_size_crop")
def image_fixed_size_crop(
    pipeline: Pipeline,
    size: int | Sequence[int],
    *,
    fill: float | Sequence[float] = 0,
    mask_fill: int | None = None,
    mode: Literal["constant", "edge", "reflect"] = "constant",
    field: str | Sequence[str] = ("image",),
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Crop or pad the image to a size.

    Operator `image.fixed_size_crop`, kind map, version 1; random, defers, shrinks.

    Like torchvision's FixedSizeCrop: a side that is too long is cropped at a random
    place, one that is too short is padded at its end. Boxes outside of the window stay
    as rows of no width or height: boxes.sanitize drops them.

    Args:
        pipeline: what the operator reads.
        size: [height, width], or one number for both; list of ints, 1 to 2 items, each
            1 to 65535, in pixels, required.
        fill: what is outside, one number or one per channel, in the image's own range
            (0..255 or 0..1); list of floats, 1 to 4 items, each -1000000 to 1000000, in
            levels, default 0.
        mask_fill: what is outside of masks that move with the image, such as 255 where
            a loss ignores it; default: 0; int, 0 to 255, in label, optional.
        mode: constant: fill; edge: repeat the outermost pixels; reflect: mirror at
            them; enum, one of constant, edge, reflect, default constant.
        field: the field with the image; or a list: the image, then images, masks, boxes
            and points that move with it; list of fields, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"size": size, "fill": fill, "mask_fill": mask_fill, "mode": mode, "field": field}
    defaults: dict[str, Any] = {"fill": 0, "mode": "constant", "field": ("image",)}
    return pipeline._then("image.fixed_size_crop", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.flip")
def image_flip(
    pipeline: Pipeline,
    *,
    p: float = 0.5,
    direction: Literal["horizontal", "vertical"] = "horizontal",
    field: str | Sequence[str] = ("image",),
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Mirror the image with a probability.

    Operator `image.flip`, kind map, version 1; random, geometric, defers.

    Like torchvision's RandomHorizontalFlip and RandomVerticalFlip. `p: 1` mirrors
    always.

    Args:
        pipeline: what the operator reads.
        p: probability that the image is mirrored; float, 0 to 1, default 0.5.
        direction: horizontal swaps left and right; enum, one of horizontal, vertical,
            default horizontal.
        field: the field with the image; or a list: the image, then images, masks, boxes
            and points that move with it; list of fields, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"p": p, "direction": direction, "field": field}
    defaults: dict[str, Any] = {"p": 0.5, "direction": "horizontal", "field": ("image",)}
    return pipeline._then("image.flip", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.gaussian_blur")
def image_gaussian_blur(
    pipeline: Pipeline,
    size: int | Sequence[int],
    *,
    sigma: float | Sequence[float] = (0.1, 2),
    field: str = "image",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Blur the image with a random strength.

    Operator `image.gaussian_blur`, kind map, version 1; random.

    Like torchvision's GaussianBlur, with mirrored borders; but two sizes are [height,
    width], as in all ops here, taps whose total weight is below a quarter of a level
    are omitted, and the kernel may be larger than the image.

    Args:
        pipeline: what the operator reads.
        size: [height, width] of the kernel, odd, or one number for both; list of ints,
            1 to 2 items, each 1 to 511, in pixels, required.
        sigma: standard deviation: [least, most], or one number; list of floats, 1 to 2
            items, each more than 0 and at most 1000, in pixels, default [0.1, 2].
        field: the field with the image; field, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"size": size, "sigma": sigma, "field": field}
    defaults: dict[str, Any] = {"sigma": (0.1, 2), "field": "image"}
    return pipeline._then("image.gaussian_blur", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.gaussian_noise")
def image_gaussian_noise(
    pipeline: Pipeline,
    *,
    mean: float = 0.0,
    sigma: float = 0.1,
    clip: bool = True,
    field: str = "image",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Add normal noise to every level.

    Operator `image.gaussian_noise`, kind map, version 1; random.

    Like torchvision's GaussianNoise: each level of each channel gets noise of its own,
    in uint8 images truncated to whole levels. The noise takes 65,536 values, the
    quantiles of the normal distribution, so none is further than 4.33 deviations from
    the mean.

    Args:
        pipeline: what the operator reads.
        mean: mean of the noise, where white is 1; float, -1 to 1, default 0.
        sigma: standard deviation of the noise, where white is 1; float, 0 to 1, default
            0.1.
        clip: keep levels between black and white; without it float32 images go beyond,
            and the levels of uint8 images wrap around; bool, default true.
        field: the field with the image; field, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"mean": mean, "sigma": sigma, "clip": clip, "field": field}
    defaults: dict[str, Any] = {"mean": 0.0, "sigma": 0.1, "clip": True, "field": "image"}
    return pipeline._then("image.gaussian_noise", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.grayscale")
def image_grayscale(
    pipeline: Pipeline,
    *,
    channels: int = 1,
    p: float = 1.0,
    field: str = "image",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Replace colours by their luma.

    Operator `image.grayscale`, kind map, version 1; random, pointwise, shrinks.

    0.2989 R + 0.587 G + 0.114 B, like torchvision; uint8 images are rounded to the
    nearest level. `channels: 3` with `p: 0.1` is RandomGrayscale.

    Args:
        pipeline: what the operator reads.
        channels: 1, or 3 for the same value three times; int, 1 to 3, default 1.
        p: probability of the conversion; float, 0 to 1, default 1.
        field: the field with the image; field, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"channels": channels, "p": p, "field": field}
    defaults: dict[str, Any] = {"channels": 1, "p": 1.0, "field": "image"}
    return pipeline._then("image.grayscale", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.invert")
def image_invert(
    pipeline: Pipeline,
    *,
    p: float = 0.5,
    field: str = "image",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Replace each level by white minus it, with a probability.

    Operator `image.invert`, kind map, version 1; random, pointwise.

    Like torchvision's RandomInvert: uint8 x becomes 255 - x, float32 1 - x. `p: 1`
    inverts always.

    Args:
        pipeline: what the operator reads.
        p: probability that the image is inverted; float, 0 to 1, default 0.5.
        field: the field with the image; field, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"p": p, "field": field}
    defaults: dict[str, Any] = {"p": 0.5, "field": "image"}
    return pipeline._then("image.invert", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.iou_crop")
def image_iou_crop(
    pipeline: Pipeline,
    *,
    scale: float | Sequence[float] = (0.3, 1),
    ratio: float | Sequence[float] = (0.5, 2),
    overlaps: float | Sequence[float] = (0, 0.1, 0.3, 0.5, 0.7, 0.9, 1),
    trials: int = 40,
    field: str | Sequence[str] = ("image",),
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Crop a random window that overlaps a box well enough.

    Operator `image.iou_crop`, kind map, version 1; random, geometric, crops, defers,
    shrinks.

    Like torchvision's RandomIoUCrop: draws the least overlap, then windows until the
    centre of a box with that overlap lies inside. `field` lists the image and its
    boxes: `field: [image, boxes]`. Boxes whose centre is outside become rows of zeros,
    so that rows still agree with labels; boxes.sanitize drops both. An image without
    boxes stays as it is, and so does one for which 50 overlaps gave no window, where
    torchvision tries for ever.

    Args:
        pipeline: what the operator reads.
        scale: smallest and largest side of the window, in sides of the image; list of
            floats, 2 items, each more than 0 and at most 1, default [0.3, 1].
        ratio: smallest and largest width / height of the window; list of floats, 2
            items, each more than 0 and at most 1000, default [0.5, 2].
        overlaps: least overlap of the window with a box (intersection over union), of
            which one is drawn; 1 or more leaves the image as it is; list of floats, 1
            to 64 items, each 0 to 1000, default [0, 0.1, 0.3, 0.5, 0.7, 0.9, 1].
        trials: windows to try before another overlap is drawn; int, 1 to 100000,
            default 40.
        field: the field with the image; or a list: the image, then images, masks, boxes
            and points that move with it; list of fields, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"scale": scale, "ratio": ratio, "overlaps": overlaps, "trials": trials, "field": field}
    defaults: dict[str, Any] = {"scale": (0.3, 1), "ratio": (0.5, 2), "overlaps": (0, 0.1, 0.3, 0.5, 0.7, 0.9, 1), "trials": 40, "field": ("image",)}
    return pipeline._then("image.iou_crop", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.jpeg")
def image_jpeg(
    pipeline: Pipeline,
    quality: int | Sequence[int],
    *,
    field: str = "image",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Compress the image with a random quality, and decode it.

    Operator `image.jpeg`, kind map, version 1; random.

    torchvision's JPEG: the blocks and ringing of files of that quality. Colours have
    half the resolution, as in most files.

    Args:
        pipeline: what the operator reads.
        quality: one number, or [least, most]; list of ints, 1 to 2 items, each 1 to
            100, required.
        field: the field with the image; field, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"quality": quality, "field": field}
    defaults: dict[str, Any] = {"field": "image"}
    return pipeline._then("image.jpeg", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.normalize")
def image_normalize(
    pipeline: Pipeline,
    mean: float | Sequence[float] | Literal["imagenet", "mnist", "half"],
    std: float | Sequence[float] | Literal["imagenet", "mnist", "half"] | None = None,
    *,
    dtype: DType = "float32",
    field: str = "image",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Subtract a mean and divide by a deviation, per channel.

    Operator `image.normalize`, kind map, version 1; pure, pointwise, affine, dtype,
    defers, grows.

    `(x - mean) / std` with x in 0..1: uint8 images are divided by 255 in the same step,
    so no cast is needed before. Computed as `x * a + b` in float32, hence up to one
    unit in the last place from torchvision. `mean: half` gives -1..1.

    Args:
        pipeline: what the operator reads.
        mean: subtracted, per channel, in 0..1; one number for all channels; or
            imagenet, mnist, half; list of floats, 1 to 4 items, required.
        std: divided by, per channel; or imagenet, mnist, half; list of floats, 1 to 4
            items, each more than 0, required; left out, it follows `mean` where that is
            a word.
        dtype: float32, float16 or bfloat16; dtype, default float32.
        field: the field with the image; field, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"mean": mean, "std": mean if std is None and isinstance(mean, str) else std, "dtype": dtype, "field": field}
    defaults: dict[str, Any] = {"dtype": "float32", "field": "image"}
    return pipeline._then("image.normalize", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.pad")
def image_pad(
    pipeline: Pipeline,
    padding: int | Sequence[int],
    *,
    fill: float | Sequence[float] = 0,
    mask_fill: int | None = None,
    mode: Literal["constant", "edge", "reflect"] = "constant",
    field: str | Sequence[str] = ("image",),
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Pad the image.

    Operator `image.pad`, kind map, version 1; pure, grows.

    Like torchvision's Pad. `reflect` reflects repeatedly if the padding is wider than
    the image, which torchvision rejects.

    Args:
        pipeline: what the operator reads.
        padding: one number for all sides, [left and right, top and bottom], or [left,
            top, right, bottom]; list of ints, 1 to 4 items, each 0 to 65535, in pixels,
            required.
        fill: what is outside, one number or one per channel, in the image's own range
            (0..255 or 0..1); list of floats, 1 to 4 items, each -1000000 to 1000000, in
            levels, default 0.
        mask_fill: what is outside of masks that move with the image, such as 255 where
            a loss ignores it; default: 0; int, 0 to 255, in label, optional.
        mode: constant: fill; edge: repeat the outermost pixels; reflect: mirror at
            them; enum, one of constant, edge, reflect, default constant.
        field: the field with the image; or a list: the image, then images, masks, boxes
            and points that move with it; list of fields, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"padding": padding, "fill": fill, "mask_fill": mask_fill, "mode": mode, "field": field}
    defaults: dict[str, Any] = {"fill": 0, "mode": "constant", "field": ("image",)}
    return pipeline._then("image.pad", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.permute_channels")
def image_permute_channels(
    pipeline: Pipeline,
    *,
    field: str = "image",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Order the channels at random.

    Operator `image.permute_channels`, kind map, version 1; random, pointwise.

    Like torchvision's RandomChannelPermutation: all orders, the image's own among them,
    are equally likely.

    Args:
        pipeline: what the operator reads.
        field: the field with the image; field, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"field": field}
    defaults: dict[str, Any] = {"field": "image"}
    return pipeline._then("image.permute_channels", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.perspective")
def image_perspective(
    pipeline: Pipeline,
    *,
    distortion_scale: float = 0.5,
    p: float = 0.5,
    interpolation: Literal["nearest", "bilinear"] = "bilinear",
    fill: float | Sequence[float] = 0,
    mask_fill: int | None = None,
    field: str | Sequence[str] = ("image",),
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """See the image from another side, with a probability.

    Operator `image.perspective`, kind map, version 1; random, warps.

    Like torchvision's RandomPerspective: each corner moves inwards by up to
    `distortion_scale` of half a side. An image whose corners would lie on one line (of
    one pixel's width, or with a scale near 1) is unchanged. Boxes become upright ones
    around their four moved corners.

    Args:
        pipeline: what the operator reads.
        distortion_scale: how far corners move at most, as a fraction of half a side;
            float, 0 to 1, default 0.5.
        p: probability that the image is changed; float, 0 to 1, default 0.5.
        interpolation: how values between pixels are computed; enum, one of nearest,
            bilinear, default bilinear.
        fill: what is outside, one number or one per channel, in the image's own range
            (0..255 or 0..1); list of floats, 1 to 4 items, each -1000000 to 1000000, in
            levels, default 0.
        mask_fill: what is outside of masks that move with the image, such as 255 where
            a loss ignores it; default: 0; int, 0 to 255, in label, optional.
        field: the field with the image; or a list: the image, then images, masks, boxes
            and points that move with it; list of fields, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"distortion_scale": distortion_scale, "p": p, "interpolation": interpolation, "fill": fill, "mask_fill": mask_fill, "field": field}
    defaults: dict[str, Any] = {"distortion_scale": 0.5, "p": 0.5, "interpolation": "bilinear", "fill": 0, "field": ("image",)}
    return pipeline._then("image.perspective", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.photometric_distort")
def image_photometric_distort(
    pipeline: Pipeline,
    *,
    brightness: float | Sequence[float] = (0.875, 1.125),
    contrast: float | Sequence[float] = (0.5, 1.5),
    saturation: float | Sequence[float] = (0.5, 1.5),
    hue: float | Sequence[float] = (-0.05, 0.05),
    p: float = 0.5,
    field: str = "image",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Change colours and the order of the channels, each with a probability.

    Operator `image.photometric_distort`, kind map, version 1; random.

    Like torchvision's RandomPhotometricDistort, in its order: brightness, contrast,
    saturation, hue (contrast with probability 1/2 after hue instead), channels. Each
    has probability `p`, so `p: 1` changes all of them. Rounding and hue are those of
    image.color_jitter.

    Args:
        pipeline: what the operator reads.
        brightness: least and largest factor; list of floats, 2 items, each 0 to 1000,
            default [0.875, 1.125].
        contrast: least and largest factor; list of floats, 2 items, each 0 to 1000,
            default [0.5, 1.5].
        saturation: least and largest factor; images of one channel are unchanged; list
            of floats, 2 items, each 0 to 1000, default [0.5, 1.5].
        hue: least and largest; images of one channel are unchanged; list of floats, 2
            items, each -0.5 to 0.5, in turns, default [-0.05, 0.05].
        p: probability of each of the five changes; float, 0 to 1, default 0.5.
        field: the field with the image; field, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"brightness": brightness, "contrast": contrast, "saturation": saturation, "hue": hue, "p": p, "field": field}
    defaults: dict[str, Any] = {"brightness": (0.875, 1.125), "contrast": (0.5, 1.5), "saturation": (0.5, 1.5), "hue": (-0.05, 0.05), "p": 0.5, "field": "image"}
    return pipeline._then("image.photometric_distort", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.posterize")
def image_posterize(
    pipeline: Pipeline,
    bits: int,
    *,
    p: float = 0.5,
    field: str = "image",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Keep the highest bits of each level, with a probability.

    Operator `image.posterize`, kind map, version 1; random, pointwise.

    Like torchvision's RandomPosterize. A float32 image gets 2^bits levels from 0 on,
    the highest of which is 1 - 2^-bits.

    Args:
        pipeline: what the operator reads.
        bits: highest bits of each level to keep; int, 0 to 8, in bits, required.
        p: probability that the image is changed; float, 0 to 1, default 0.5.
        field: the field with the image; field, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"bits": bits, "p": p, "field": field}
    defaults: dict[str, Any] = {"p": 0.5, "field": "image"}
    return pipeline._then("image.posterize", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.rand_augment")
def image_rand_augment(
    pipeline: Pipeline,
    *,
    num_ops: int = 2,
    magnitude: int = 9,
    num_magnitude_bins: int = 31,
    interpolation: Literal["nearest", "bilinear"] = "nearest",
    fill: float | Sequence[float] = 0,
    mask_fill: int | None = None,
    field: str | Sequence[str] = ("image",),
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """A number of random changes, all of one strength.

    Operator `image.rand_augment`, kind map, version 1; random.

    Like torchvision's RandAugment: each step is one of identity, shear, shift and
    rotation, brightness, color, contrast, sharpness, posterize, solarize, autocontrast
    and equalize, and half of those that have a direction or a factor get a negative
    magnitude. uint8 images get the levels that torchvision computes; shears and
    rotations may take the neighbouring pixel where a position lies between two. Masks,
    boxes and points that are listed follow shears, shifts and rotations; torchvision
    refuses them.

    Args:
        pipeline: what the operator reads.
        num_ops: number of steps, one after the other; int, 0 to 64, default 2.
        magnitude: of every step, from 0 to num_magnitude_bins - 1; int, 0 to 1048575,
            default 9.
        num_magnitude_bins: number of magnitudes from none to the greatest; int, 2 to
            1048576, default 31.
        interpolation: how values between pixels are computed when the image is sheared,
            shifted or rotated; enum, one of nearest, bilinear, default nearest.
        fill: what is outside then: one level or one per channel; list of floats, 1 to 4
            items, each 0 to 255, in levels, default 0.
        mask_fill: what is outside of masks that move with the image, such as 255 where
            a loss ignores it; default: 0; int, 0 to 255, in label, optional.
        field: the field with the image; or a list: the image, then images, masks, boxes
            and points that move with it; list of fields, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"num_ops": num_ops, "magnitude": magnitude, "num_magnitude_bins": num_magnitude_bins, "interpolation": interpolation, "fill": fill, "mask_fill": mask_fill, "field": field}
    defaults: dict[str, Any] = {"num_ops": 2, "magnitude": 9, "num_magnitude_bins": 31, "interpolation": "nearest", "fill": 0, "field": ("image",)}
    return pipeline._then("image.rand_augment", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.random_area_crop")
def image_random_area_crop(
    pipeline: Pipeline,
    *,
    scale: float | Sequence[float] = (0.08, 1),
    ratio: float | Sequence[float] = (0.75, 1.3333333333333333),
    field: str | Sequence[str] = ("image",),
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Crop a random window of a random size.

    Operator `image.random_area_crop`, kind map, version 1; random, geometric, crops,
    defers, shrinks.

    The window of image.random_resized_crop, without the resize: sizes differ between
    records until image.resize. TensorFlow's sample_distorted_bounding_box without boxes
    draws the aspect from its interval itself, here from that of its logarithm, as
    torchvision does.

    Args:
        pipeline: what the operator reads.
        scale: smallest and largest fraction of the area to keep; list of floats, 2
            items, each more than 0 and at most 1, default [0.08, 1].
        ratio: smallest and largest width / height of the window; list of floats, 2
            items, each more than 0 and at most 1000, default [0.75,
            1.3333333333333333].
        field: the field with the image; or a list: the image, then images, masks, boxes
            and points that move with it; list of fields, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"scale": scale, "ratio": ratio, "field": field}
    defaults: dict[str, Any] = {"scale": (0.08, 1), "ratio": (0.75, 1.3333333333333333), "field": ("image",)}
    return pipeline._then("image.random_area_crop", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.random_crop")
def image_random_crop(
    pipeline: Pipeline,
    size: int | Sequence[int],
    *,
    padding: int | Sequence[int] = 0,
    pad_if_needed: bool = False,
    fill: float | Sequence[float] = 0,
    mask_fill: int | None = None,
    mode: Literal["constant", "edge", "reflect"] = "constant",
    field: str | Sequence[str] = ("image",),
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Crop a window of fixed size at a random position.

    Operator `image.random_crop`, kind map, version 1; random, defers, shrinks.

    Like torchvision's RandomCrop, with draws in the same order (top, then left; none if
    there is no choice).

    Args:
        pipeline: what the operator reads.
        size: [height, width], or one number for both; list of ints, 1 to 2 items, each
            1 to 65535, in pixels, required.
        padding: padding added first: one number, [left and right, top and bottom], or
            [left, top, right, bottom]; list of ints, 1 to 4 items, each 0 to 65535, in
            pixels, default 0.
        pad_if_needed: pad images that are smaller than size; else they are an error;
            bool, default false.
        fill: what is outside, one number or one per channel, in the image's own range
            (0..255 or 0..1); list of floats, 1 to 4 items, each -1000000 to 1000000, in
            levels, default 0.
        mask_fill: what is outside of masks that move with the image, such as 255 where
            a loss ignores it; default: 0; int, 0 to 255, in label, optional.
        mode: constant: fill; edge: repeat the outermost pixels; reflect: mirror at
            them; enum, one of constant, edge, reflect, default constant.
        field: the field with the image; or a list: the image, then images, masks, boxes
            and points that move with it; list of fields, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"size": size, "padding": padding, "pad_if_needed": pad_if_needed, "fill": fill, "mask_fill": mask_fill, "mode": mode, "field": field}
    defaults: dict[str, Any] = {"padding": 0, "pad_if_needed": False, "fill": 0, "mode": "constant", "field": ("image",)}
    return pipeline._then("image.random_crop", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.random_resized_crop")
def image_random_resized_crop(
    pipeline: Pipeline,
    size: int | Sequence[int],
    *,
    scale: float | Sequence[float] = (0.08, 1),
    ratio: float | Sequence[float] = (0.75, 1.3333333333333333),
    interpolation: Literal["nearest", "bilinear", "bicubic", "box", "lanczos"] = "bilinear",
    antialias: bool = True,
    field: str | Sequence[str] = ("image",),
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """A random window of the image, resized to a fixed size.

    Operator `image.random_resized_crop`, kind map, version 1; random, resampling,
    crops, defers, shrinks.

    Like torchvision's RandomResizedCrop, with draws in the same order: area and aspect
    are drawn up to ten times until the window fits, then its position; else the largest
    centred window of a permitted aspect is used. Pixels outside the window do not
    affect the result.

    Args:
        pipeline: what the operator reads.
        size: [height, width], or one number for both; list of ints, 1 to 2 items, each
            1 to 65535, in pixels, required.
        scale: smallest and largest fraction of the area to keep; list of floats, 2
            items, each more than 0 and at most 1, default [0.08, 1].
        ratio: smallest and largest width / height of the window; list of floats, 2
            items, each more than 0 and at most 1000, default [0.75,
            1.3333333333333333].
        interpolation: how values between pixels are computed; enum, one of nearest,
            bilinear, bicubic, box, lanczos, default bilinear.
        antialias: average over all pixels that a new pixel covers when shrinking;
            nearest never does; bool, default true.
        field: the field with the image; or a list: the image, then images, masks, boxes
            and points that move with it; list of fields, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"size": size, "scale": scale, "ratio": ratio, "interpolation": interpolation, "antialias": antialias, "field": field}
    defaults: dict[str, Any] = {"scale": (0.08, 1), "ratio": (0.75, 1.3333333333333333), "interpolation": "bilinear", "antialias": True, "field": ("image",)}
    return pipeline._then("image.random_resized_crop", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.random_shortest_size")
def image_random_shortest_size(
    pipeline: Pipeline,
    *,
    sizes: int | Sequence[int] = (),
    between: int | Sequence[int] = (),
    max_size: int = 0,
    interpolation: Literal["nearest", "bilinear", "bicubic", "box", "lanczos"] = "bilinear",
    antialias: bool = True,
    field: str | Sequence[str] = ("image",),
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Resize the shorter side to a random length, keep the aspect.

    Operator `image.random_shortest_size`, kind map, version 1; random, resampling,
    defers, shrinks.

    torchvision's RandomShortestSize (`sizes`, with `max_size`) and RandomResize
    (`between`): training at several scales, as DETR and Mask R-CNN do. batch.pad makes
    batches of the results.

    Args:
        pipeline: what the operator reads.
        sizes: lengths of the shorter side, of which one is drawn; list of ints, 0 to 64
            items, each 1 to 65535, in pixels, default [].
        between: instead of sizes: [least, most], and all whole numbers between; list of
            ints, 0 to 2 items, each 1 to 65535, in pixels, default [].
        max_size: make both sides smaller when the longer would exceed this; 0: no
            limit; int, 0 to 65535, in pixels, default 0.
        interpolation: how values between pixels are computed; enum, one of nearest,
            bilinear, bicubic, box, lanczos, default bilinear.
        antialias: average over all pixels that a new pixel covers when shrinking;
            nearest never does; bool, default true.
        field: the field with the image; or a list: the image, then images, masks, boxes
            and points that move with it; list of fields, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"sizes": sizes, "between": between, "max_size": max_size, "interpolation": interpolation, "antialias": antialias, "field": field}
    defaults: dict[str, Any] = {"sizes": (), "between": (), "max_size": 0, "interpolation": "bilinear", "antialias": True, "field": ("image",)}
    return pipeline._then("image.random_shortest_size", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.resize")
def image_resize(
    pipeline: Pipeline,
    size: int | Sequence[int],
    *,
    interpolation: Literal["nearest", "bilinear", "bicubic", "box", "lanczos"] = "bilinear",
    antialias: bool = True,
    field: str | Sequence[str] = ("image",),
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Resize to a fixed height and width.

    Operator `image.resize`, kind map, version 1; pure, resampling, defers, shrinks.

    Differs from torchvision: one number means a square of that side. To resize the
    shorter side and keep the aspect, use image.resize_shortest. uint8 images are
    rounded to whole levels; `nearest` is torchvision's NEAREST_EXACT.

    Args:
        pipeline: what the operator reads.
        size: [height, width], or one number for both; list of ints, 1 to 2 items, each
            1 to 65535, in pixels, required.
        interpolation: how values between pixels are computed; enum, one of nearest,
            bilinear, bicubic, box, lanczos, default bilinear.
        antialias: average over all pixels that a new pixel covers when shrinking;
            nearest never does; bool, default true.
        field: the field with the image; or a list: the image, then images, masks, boxes
            and points that move with it; list of fields, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"size": size, "interpolation": interpolation, "antialias": antialias, "field": field}
    defaults: dict[str, Any] = {"interpolation": "bilinear", "antialias": True, "field": ("image",)}
    return pipeline._then("image.resize", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.resize_shortest")
def image_resize_shortest(
    pipeline: Pipeline,
    size: int,
    *,
    max_size: int = 0,
    interpolation: Literal["nearest", "bilinear", "bicubic", "box", "lanczos"] = "bilinear",
    antialias: bool = True,
    field: str | Sequence[str] = ("image",),
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Resize the shorter side to a length, keep the aspect.

    Operator `image.resize_shortest`, kind map, version 1; pure, resampling, defers,
    shrinks.

    torchvision's Resize with one number, `max_size` included: the longer side is cut
    off to a whole number. A limit below `size` is refused; one equal to it is allowed
    here.

    Args:
        pipeline: what the operator reads.
        size: length of the shorter side; int, 1 to 65535, in pixels, required.
        max_size: make both sides smaller when the longer would exceed this; 0: no
            limit; int, 0 to 65535, in pixels, default 0.
        interpolation: how values between pixels are computed; enum, one of nearest,
            bilinear, bicubic, box, lanczos, default bilinear.
        antialias: average over all pixels that a new pixel covers when shrinking;
            nearest never does; bool, default true.
        field: the field with the image; or a list: the image, then images, masks, boxes
            and points that move with it; list of fields, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"size": size, "max_size": max_size, "interpolation": interpolation, "antialias": antialias, "field": field}
    defaults: dict[str, Any] = {"max_size": 0, "interpolation": "bilinear", "antialias": True, "field": ("image",)}
    return pipeline._then("image.resize_shortest", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.rotate")
def image_rotate(
    pipeline: Pipeline,
    degrees: float | Sequence[float],
    *,
    interpolation: Literal["nearest", "bilinear"] = "nearest",
    expand: bool = False,
    center: float | Sequence[float] = (),
    fill: float | Sequence[float] = 0,
    mask_fill: int | None = None,
    field: str | Sequence[str] = ("image",),
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Rotate the image by a random angle.

    Operator `image.rotate`, kind map, version 1; random, warps.

    Like torchvision's RandomRotation. `degrees: [90, 90]` rotates by a fixed angle.
    uint8 images are rounded to the nearest level. `expand` chooses the smallest size
    that shows everything; torchvision may add a line.

    Args:
        pipeline: what the operator reads.
        degrees: [least, most], counter-clockwise; one number d means [-d, d]; list of
            floats, 1 to 2 items, each -360 to 360, in degrees, required.
        interpolation: how values between pixels are computed; enum, one of nearest,
            bilinear, default nearest.
        expand: enlarge the image to show all of it; bool, default false.
        center: [x, y] from the top left corner of the point that stays in place; []:
            the middle of the image; list of floats, 0 to 2 items, each -65535 to 65535,
            in pixels, default [].
        fill: what is outside, one number or one per channel, in the image's own range
            (0..255 or 0..1); list of floats, 1 to 4 items, each -1000000 to 1000000, in
            levels, default 0.
        mask_fill: what is outside of masks that move with the image, such as 255 where
            a loss ignores it; default: 0; int, 0 to 255, in label, optional.
        field: the field with the image; or a list: the image, then images, masks, boxes
            and points that move with it; list of fields, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"degrees": degrees, "interpolation": interpolation, "expand": expand, "center": center, "fill": fill, "mask_fill": mask_fill, "field": field}
    defaults: dict[str, Any] = {"interpolation": "nearest", "expand": False, "center": (), "fill": 0, "field": ("image",)}
    return pipeline._then("image.rotate", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.scale_jitter")
def image_scale_jitter(
    pipeline: Pipeline,
    size: int | Sequence[int],
    *,
    scale: float | Sequence[float] = (0.1, 2),
    interpolation: Literal["nearest", "bilinear", "bicubic", "box", "lanczos"] = "bilinear",
    antialias: bool = True,
    field: str | Sequence[str] = ("image",),
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Resize to fit into a size, times a random factor.

    Operator `image.scale_jitter`, kind map, version 1; random, resampling, defers,
    shrinks.

    Like torchvision's ScaleJitter: the image is resized so that it just fits into
    `size`, times a factor from `scale`; its aspect stays. image.fixed_size_crop makes
    images of one size of the results.

    Args:
        pipeline: what the operator reads.
        size: [height, width], or one number for both; list of ints, 1 to 2 items, each
            1 to 65535, in pixels, required.
        scale: smallest and largest factor; list of floats, 2 items, each more than 0
            and at most 1000, default [0.1, 2].
        interpolation: how values between pixels are computed; enum, one of nearest,
            bilinear, bicubic, box, lanczos, default bilinear.
        antialias: average over all pixels that a new pixel covers when shrinking;
            nearest never does; bool, default true.
        field: the field with the image; or a list: the image, then images, masks, boxes
            and points that move with it; list of fields, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"size": size, "scale": scale, "interpolation": interpolation, "antialias": antialias, "field": field}
    defaults: dict[str, Any] = {"scale": (0.1, 2), "interpolation": "bilinear", "antialias": True, "field": ("image",)}
    return pipeline._then("image.scale_jitter", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.sharpness")
def image_sharpness(
    pipeline: Pipeline,
    factor: float | Sequence[float],
    *,
    p: float = 0.5,
    field: str = "image",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Smooth or sharpen the image, with a probability.

    Operator `image.sharpness`, kind map, version 1; random.

    Like torchvision's RandomAdjustSharpness, whose factor is one number: the image is
    blended with one that is smoothed by 3x3 weights. The outermost pixels do not
    change. uint8 images are truncated, as there.

    Args:
        pipeline: what the operator reads.
        factor: 0 smooths, 1 changes nothing, 2 sharpens: one number, or [least, most]
            to draw from; list of floats, 1 to 2 items, each 0 to 1000, required.
        p: probability that the image is changed; float, 0 to 1, default 0.5.
        field: the field with the image; field, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"factor": factor, "p": p, "field": field}
    defaults: dict[str, Any] = {"p": 0.5, "field": "image"}
    return pipeline._then("image.sharpness", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.solarize")
def image_solarize(
    pipeline: Pipeline,
    threshold: float,
    *,
    p: float = 0.5,
    field: str = "image",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Invert bright levels, with a probability.

    Operator `image.solarize`, kind map, version 1; random, pointwise.

    Like torchvision's RandomSolarize. The threshold is in the image's own range: 0..255
    for uint8, 0..1 for float32.

    Args:
        pipeline: what the operator reads.
        threshold: levels at or above it are inverted; float, 0 to 255, in levels,
            required.
        p: probability that the image is changed; float, 0 to 1, default 0.5.
        field: the field with the image; field, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"threshold": threshold, "p": p, "field": field}
    defaults: dict[str, Any] = {"p": 0.5, "field": "image"}
    return pipeline._then("image.solarize", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.standardize")
def image_standardize(
    pipeline: Pipeline,
    *,
    field: str = "image",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Bring each image to mean 0 and deviation 1.

    Operator `image.standardize`, kind map, version 1; pure, dtype, grows.

    As tf.image.per_image_standardization on levels 0..1: mean and deviation are those
    of all pixels and channels of the image, and a deviation below 1 / sqrt(number of
    levels) counts as that, so that images of one colour become 0. The result is
    float32. To subtract the same numbers from all images, use image.normalize.

    Args:
        pipeline: what the operator reads.
        field: the field with the image; field, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"field": field}
    defaults: dict[str, Any] = {"field": "image"}
    return pipeline._then("image.standardize", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.ten_crop")
def image_ten_crop(
    pipeline: Pipeline,
    size: int | Sequence[int],
    *,
    vertical: bool = False,
    field: str = "image",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """The four corners and the centre of an image and of its mirror image, each as a
    record.

    Operator `image.ten_crop`, kind expand, version 1; pure.

    Like torchvision's TenCrop, in its order: top left, top right, bottom left, bottom
    right, centre; then those of the mirrored image. A record becomes ten that follow
    each other, with the other fields of the image, so a batch of a multiple of 10 has
    all crops of its images: `model(x).view(-1, 10, classes).mean(1)` is the mean over
    them. A smaller image is a bad record.

    Args:
        pipeline: what the operator reads.
        size: [height, width], or one number for both; list of ints, 1 to 2 items, each
            1 to 65535, in pixels, required.
        vertical: the last five are of the image upside down, not mirrored; bool,
            default false.
        field: the field with the image; field, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"size": size, "vertical": vertical, "field": field}
    defaults: dict[str, Any] = {"vertical": False, "field": "image"}
    return pipeline._then("image.ten_crop", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.trivial_augment_wide")
def image_trivial_augment_wide(
    pipeline: Pipeline,
    *,
    num_magnitude_bins: int = 31,
    interpolation: Literal["nearest", "bilinear"] = "nearest",
    fill: float | Sequence[float] = 0,
    mask_fill: int | None = None,
    field: str | Sequence[str] = ("image",),
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """One random change of a random strength.

    Operator `image.trivial_augment_wide`, kind map, version 1; random.

    Like torchvision's TrivialAugmentWide. The changes, and what is said of their levels
    and of other fields, are those of image.rand_augment; their ranges are wider.

    Args:
        pipeline: what the operator reads.
        num_magnitude_bins: number of magnitudes from none to the greatest; int, 2 to
            1048576, default 31.
        interpolation: how values between pixels are computed when the image is sheared,
            shifted or rotated; enum, one of nearest, bilinear, default nearest.
        fill: what is outside then: one level or one per channel; list of floats, 1 to 4
            items, each 0 to 255, in levels, default 0.
        mask_fill: what is outside of masks that move with the image, such as 255 where
            a loss ignores it; default: 0; int, 0 to 255, in label, optional.
        field: the field with the image; or a list: the image, then images, masks, boxes
            and points that move with it; list of fields, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"num_magnitude_bins": num_magnitude_bins, "interpolation": interpolation, "fill": fill, "mask_fill": mask_fill, "field": field}
    defaults: dict[str, Any] = {"num_magnitude_bins": 31, "interpolation": "nearest", "fill": 0, "field": ("image",)}
    return pipeline._then("image.trivial_augment_wide", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("image.zoom_out")
def image_zoom_out(
    pipeline: Pipeline,
    *,
    fill: float | Sequence[float] = 0,
    mask_fill: int | None = None,
    side_range: float | Sequence[float] = (1, 4),
    p: float = 0.5,
    field: str | Sequence[str] = ("image",),
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Place the image at random on a larger canvas.

    Operator `image.zoom_out`, kind map, version 1; random, grows.

    Like torchvision's RandomZoomOut: both sides of the canvas are those of the image
    times one number.

    Args:
        pipeline: what the operator reads.
        fill: what is outside, one number or one per channel, in the image's own range
            (0..255 or 0..1); list of floats, 1 to 4 items, each -1000000 to 1000000, in
            levels, default 0.
        mask_fill: what is outside of masks that move with the image, such as 255 where
            a loss ignores it; default: 0; int, 0 to 255, in label, optional.
        side_range: smallest and largest canvas, in sides of the image; list of floats,
            2 items, each 1 to 1000, default [1, 4].
        p: probability that the image is placed on a canvas; float, 0 to 1, default 0.5.
        field: the field with the image; or a list: the image, then images, masks, boxes
            and points that move with it; list of fields, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"fill": fill, "mask_fill": mask_fill, "side_range": side_range, "p": p, "field": field}
    defaults: dict[str, Any] = {"fill": 0, "side_range": (1, 4), "p": 0.5, "field": ("image",)}
    return pipeline._then("image.zoom_out", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("order.repeat")
def order_repeat(
    pipeline: Pipeline,
    count: int,
    *,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Repeat the data within an epoch.

    Operator `order.repeat`, kind order, version 1; pure, grows.

    A shuffle before it gives every pass its own order; a shuffle after it mixes the
    passes. Random ops draw again in every pass.

    Args:
        pipeline: what the operator reads.
        count: number of passes over the data in an epoch; int, 1 to 1000000, in passes,
            required.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"count": count}
    defaults: dict[str, Any] = {}
    return pipeline._then("order.repeat", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("order.sample")
def order_sample(
    pipeline: Pipeline,
    *,
    count: int = 0,
    replacement: bool = True,
    weight: str | PathLike | None = None,
    balance: str | PathLike | None = None,
    weights: PathLike | None = None,
    seed: int = -1,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Draw records by weights, with or without replacement.

    Operator `order.sample`, kind order, version 1; random.

    Each of the `count` records of an epoch is drawn from all records, so some come
    several times and some not at all, with the chances that their weights give, as
    torch's WeightedRandomSampler does with replacement. Random ops after it treat each
    draw of a record differently. The draws depend on the run's seed, the epoch, the
    position, and `seed` or else the node's name, so a run resumes at any position, and
    ranks divide them.  With `replacement: false`, no record comes twice in an epoch:
    each draw is one of the records that are left, with the chances that their weights
    give, as torch.multinomial does it. Without weights this is a random subset, another
    one in every epoch, in random order; order.split gives one that stays. The draws of
    an epoch are found together, when its first record is read, in 0.1 to 0.4 us for
    each record that there is, the more are drawn the longer. It takes 8 bytes per
    record if there are weights, and 32 bytes for each that is drawn. The last four
    epochs' draws are kept: a shuffle of more passes of order.repeat would find them
    again for every record, and is not needed, since the draws are in random order. More
    draws than records with a weight above 0 are refused.  Weights need not add up to 1.
    They come from a `.npy` file (`weights`, in the order of the records that this op
    reads), from a key that is known before a record is read (`weight`), or make the
    values of a key equally frequent: `balance: label` draws all classes equally often.
    As with order.split, a key is a field that the records have here, of the source or
    made by steps of what the source knows. A weight of 0 leaves a record out, and one
    that is missing or damaged is refused. The op comes before any shuffle, which it
    makes unnecessary, and before filters and batches.

    Args:
        pipeline: what the operator reads.
        count: number of draws in an epoch; 0: as many as there are records; int, 0 to
            1e+15, in records, default 0.
        replacement: a record may be drawn again; false: each at most once in an epoch;
            bool, default true.
        weight: the key that holds each record's weight, a number that is known before
            the record is read, such as a column; string, optional.
        balance: the key whose values are drawn equally often, such as label: a record's
            weight is 1 / the number of records with its value; string, optional.
        weights: a .npy file with one weight per record; path, optional.
        seed: decides the draws together with the run's seed; -1: the node's name does;
            int, -1 to 9e+15, default -1.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"count": count, "replacement": replacement, "weight": weight, "balance": balance, "weights": weights, "seed": seed}
    defaults: dict[str, Any] = {"count": 0, "replacement": True, "seed": -1}
    return pipeline._then("order.sample", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("order.shard")
def order_shard(
    pipeline: Pipeline,
    rank: int,
    world: int,
    *,
    even: Literal["none", "drop", "repeat"] = "none",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """This process's share of the records.

    Operator `order.shard`, kind order, version 1; pure, shrinks, shards.

    Every rank must use the same graph and seed. After an op that drops records the
    epoch's length is unknown: shares may differ by one whatever `even` says, and every
    rank runs all records up to here.

    Args:
        pipeline: what the operator reads.
        rank: number of this process, from 0; int, 0 to 1000000, required.
        world: number of processes that divide the records; int, 1 to 1000000, required.
        even: if the records do not divide evenly: none (some ranks get one more), drop
            the rest, or repeat records from the beginning; enum, one of none, drop,
            repeat, default none.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"rank": rank, "world": world, "even": even}
    defaults: dict[str, Any] = {"even": "none"}
    return pipeline._then("order.shard", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("order.shuffle")
def order_shuffle(
    pipeline: Pipeline,
    *,
    window: int = 0,
    seed: int = -1,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Visit the records in a random order, different in each epoch.

    Operator `order.shuffle`, kind order, version 2; random.

    With `window: 0` the whole epoch is shuffled, without using memory. A window keeps
    neighbours near each other (for slow disks), and is needed after an op that drops
    records, where the epoch's length is unknown: there, each `window` records are
    gathered and then output in random order. The order depends on the run's seed, the
    epoch, and `seed` or else the node's name, never on threads: shuffles with an equal
    `seed` and `window` give equal numbers of records the same order.

    Args:
        pipeline: what the operator reads.
        window: number of records that are shuffled together; 0: the whole epoch; int, 0
            to 1000000000000, in records, default 0.
        seed: decides the order together with the run's seed; -1: the node's name does;
            int, -1 to 9e+15, default -1.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"window": window, "seed": seed}
    defaults: dict[str, Any] = {"window": 0, "seed": -1}
    return pipeline._then("order.shuffle", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("order.skip")
def order_skip(
    pipeline: Pipeline,
    count: int,
    *,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Skip the first records.

    Operator `order.skip`, kind order, version 1; pure, shrinks.

    For the parts of a data set use order.split, whose parts keep their records when
    others are added.  The records of all ranks are counted. Where their number is not
    known before, after a filter, an expansion or an iterable, every rank runs all
    records up to here, and ranks divide what is kept.

    Args:
        pipeline: what the operator reads.
        count: number of records to skip; int, 0 to 1e+15, in records, required.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"count": count}
    defaults: dict[str, Any] = {}
    return pipeline._then("order.skip", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("order.split")
def order_split(
    pipeline: Pipeline,
    fractions: float | Sequence[float],
    part: int,
    *,
    seed: int = 0,
    by: str | PathLike = "path",
    group: str | PathLike | None = None,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """One part of the data, such as the training set.

    Operator `order.split`, kind order, version 1; pure, shrinks.

    Graphs with equal `fractions`, `seed`, `by` and `group`, and each `part` in one of
    them, divide the records: every record is in exactly one part, in every epoch,
    whatever the run's seed and the ranks. The hash of a record's key decides, so
    records keep their part when others are added or removed, and records with equal
    keys are always in one part: `by: label` puts each class as a whole into one. Parts
    have about the sizes that `fractions` says, the more records (or groups) the closer;
    `headrace explain` shows them. A fraction that is cut in two leaves the other parts
    as they are.  Keys are texts: numbers in decimal, names of classes rather than their
    numbers. A key is a field of the records that reach this node, under its name here.
    Its values must be known before any record is read: those of the source, or what
    steps before the split make of its numbers and texts, such as text.lower,
    tensor.cast or record.rename. These steps run once for each key when the graph is
    opened. A field that your own functions or random steps make, or that the record
    must be read for, is refused: split before they change it. Where no field has the
    name, it is that of a key of the source: path, stem, index, or a field that was
    dropped.  Sources know keys without decoding or reading whole records: files their
    paths, labels and columns; archives the key of a record as `path`, and its integers
    and texts; packed records their numbers and texts; code.source what the code says
    that it knows, such as the columns of a frame in Python. A damaged record is known
    by its number, and reading it reports the damage. With `index`, records keep their
    part only if others are added after them. The split comes before any shuffle, filter
    or batch.

    Args:
        pipeline: what the operator reads.
        fractions: the sizes of all parts; they add up to 1; list of floats, 2 to 64
            items, each more than 0 and less than 1, required.
        part: the part to keep, from 0; int, 0 to 63, required.
        seed: decides, with a record's key, which part it is in; the run's seed does
            not; int, 0 to 9e+15, default 0.
        by: the key: path (of the file, below the source's folder; in an archive the
            record's key), stem (the file's name without its ending), a field that is
            known before a record is read (a label, a column, a number or a text of an
            archive, or what steps before the split make of these), or index (the
            record's number in the source); string, default path.
        group: a regular expression (POSIX, extended: [0-9], not \\d, and no .*?): what
            it matches in the key is used in place of the key, so that "^[^/]+" keeps
            the files of a folder together; string, optional.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"fractions": fractions, "part": part, "seed": seed, "by": by, "group": group}
    defaults: dict[str, Any] = {"seed": 0, "by": "path"}
    return pipeline._then("order.split", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("order.take")
def order_take(
    pipeline: Pipeline,
    count: int,
    *,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Keep the first records.

    Operator `order.take`, kind order, version 1; pure, shrinks.

    After a shuffle these are different records in every epoch; before it, the same
    ones.  The records of all ranks are counted. Where their number is not known before,
    after a filter, an expansion or an iterable, every rank runs all records up to here,
    and ranks divide what is kept.

    Args:
        pipeline: what the operator reads.
        count: number of records to keep; int, 0 to 1e+15, in records, required.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"count": count}
    defaults: dict[str, Any] = {}
    return pipeline._then("order.take", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("record.classes")
def record_classes(
    pipeline: Pipeline,
    field: str,
    classes: str | Sequence[str],
    *,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Name the classes whose numbers a field has.

    Operator `record.classes`, kind map, version 2; pure, zero copy, batched.

    For labels that come as numbers: in tables, arrays and data sets in Python. States,
    `inspect` and contact sheets then have the names, and resuming with others, or
    mixing with a source that numbers classes otherwise, is refused. The numbers stay as
    they are and are not checked: -1 for a record without a label is fine.

    Args:
        pipeline: what the operator reads.
        field: the field with class numbers: integers of any shape; field, required.
        classes: names of the classes in the order of their numbers, from 0; list of
            strings, 1 to 16777216 items, required.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"field": field, "classes": classes}
    defaults: dict[str, Any] = {}
    return pipeline._then("record.classes", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("record.drop")
def record_drop(
    pipeline: Pipeline,
    *fields: str | Sequence[str],
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Remove some fields.

    Operator `record.drop`, kind map, version 1; pure, defers, zero copy, shrinks.

    Args:
        pipeline: what the operator reads.
        fields: the fields to remove; list of fields, required.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"fields": [n for f in fields for n in ([f] if isinstance(f, str) else f)]}
    defaults: dict[str, Any] = {}
    return pipeline._then("record.drop", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("record.filter")
def record_filter(
    pipeline: Pipeline,
    expr: str | PathLike,
    *,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Keep the records for which a condition holds.

    Operator `record.filter`, kind filter, version 1; pure, defers, zero copy.

    `or`, `and`, `not`, comparisons, `in [..]`, `+ - * / %`; names of fields, and
    `f.height`, `f.width`, `f.channels`, `f.length`. Sizes of an image are known from
    its header, so filtering by them decodes nothing.

    Args:
        pipeline: what the operator reads.
        expr: the condition, such as "label < 10 and image.height >= 64"; string,
            required.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"expr": expr}
    defaults: dict[str, Any] = {}
    return pipeline._then("record.filter", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("record.flat")
def record_flat(
    pipeline: Pipeline,
    fields: str | Sequence[str],
    *,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """A record for each item of its lists.

    Operator `record.flat`, kind expand, version 1; pure, zero copy.

    Lists are token ids, texts, boxes, frames: item i of each field in `fields` goes to
    record i, and all other fields go to every record, as `explode` of pandas and
    polars, and `flat_map` of tf.data with `from_tensor_slices`. Lists of one record
    that differ in length make it a bad record; one with empty lists gives none. Record
    i is child i of the one that held the list, and its identity says so. `code.expand`
    makes records by your own code.

    Args:
        pipeline: what the operator reads.
        fields: the fields that hold lists, equally long in each record: item i of each
            goes to record i; all other fields go to every record; list of fields,
            required.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"fields": fields}
    defaults: dict[str, Any] = {}
    return pipeline._then("record.flat", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("record.kind")
def record_kind(
    pipeline: Pipeline,
    field: str,
    kind: Literal["image", "mask", "boxes", "points", "samples"],
    *,
    rate: int = 0,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Declare a field to be an image, a mask, boxes, points or samples.

    Operator `record.kind`, kind map, version 1; pure, zero copy.

    Ops that move an image (crops, flips, resizes, pads, rotations) take a list of
    fields: the image first, then what moves with it, each by its kind. A **mask** is an
    image of labels: it is resized by the nearest pixel and padded with the label
    `mask_fill` (or by the op's `mode`), and ops on colours refuse it. **Boxes** are
    rows of x1, y1, x2, y2 and **points** rows of x, y, in pixels of the image, where 0
    is its left or top edge. A crop clips boxes to its window; a box that lies outside
    stays as a row of no width or no height, so that rows still agree with labels.
    Points are never clipped. A decoded photo that is declared a mask is decoded in
    full: a reduced scale would mix labels; image.decode reads masks in PNG files with
    `color: labels`. **Samples** are sound, as audio.decode makes it, at `rate` frames
    per second.

    Args:
        pipeline: what the operator reads.
        field: the field to declare; field, required.
        kind: image, mask: uint8 [height, width, channels], images also float32 of 0..1;
            boxes: float32 [n, 4]; points: float32 [n, 2]; samples: float32 [...,
            frames]; enum, one of image, mask, boxes, points, samples, required.
        rate: samples: frames per second, of all records; int, 0 to 10000000, in Hz,
            default 0.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"field": field, "kind": kind, "rate": rate}
    defaults: dict[str, Any] = {"rate": 0}
    return pipeline._then("record.kind", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("record.parse_example")
def record_parse_example(
    pipeline: Pipeline,
    features: Mapping[str, str],
    *,
    field: str = "data",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """The features of a tf.train.Example as fields.

    Operator `record.parse_example`, kind map, version 1; pure.

    Usually after source.tfrecord. Features that are not named are ignored; one that is
    missing, of another type or of another shape makes the record bad. Of a tensor one
    dimension may be unknown (a name or -1); it follows from the number of items. A
    feature without items is an empty list of any type. Byte strings are used where they
    lie. The field with the Example is gone afterwards.

    Args:
        pipeline: what the operator reads.
        field: the field that holds the bytes of an Example; field, default data.
        features: field: its type, or "feature: type" where the feature has another
            name: {label: int64, image: "image/encoded: bytes", box: "float32[4]", ids:
            "int64[length]"}; map, required.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"field": field, "features": features}
    defaults: dict[str, Any] = {"field": "data"}
    return pipeline._then("record.parse_example", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("record.rename")
def record_rename(
    pipeline: Pipeline,
    fields: Mapping[str, str],
    *,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Give fields other names.

    Operator `record.rename`, kind map, version 1; pure, defers, zero copy.

    Args:
        pipeline: what the operator reads.
        fields: old name: new name; all at once, so two may be swapped; map, required.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"fields": fields}
    defaults: dict[str, Any] = {}
    return pipeline._then("record.rename", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("record.select")
def record_select(
    pipeline: Pipeline,
    *fields: str | Sequence[str],
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Keep only some fields.

    Operator `record.select`, kind map, version 1; pure, defers, zero copy.

    Args:
        pipeline: what the operator reads.
        fields: the fields to keep; list of fields, required.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"fields": [n for f in fields for n in ([f] if isinstance(f, str) else f)]}
    defaults: dict[str, Any] = {}
    return pipeline._then("record.select", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("source.arrow")
def source_arrow(
    path: PathLike,
    *,
    columns: str | Sequence[str] = ("*",),
    fill: Mapping[str, str | float] = {},
    batch_max: int | str = "4GiB",
    batch_cache: int | str = "256MiB",
    name: str | None = None,
) -> Pipeline:
    """The rows of Apache Arrow files and streams.

    Operator `source.arrow`, kind source, version 1; pure, zero copy.

    Reads Arrow's IPC format, as files (`.arrow`, Feather 2) and as streams, which
    Hugging Face `datasets` saves. Bool, integers and floats become numbers, utf8 text,
    binary byte strings, lists of numbers tensors of one dimension; dictionary-encoded
    text is text. uint32 and uint64 become int64, and a row with a larger number is a
    bad record. Dates, times, timestamps and durations become integers; explain says in
    which unit. The columns of a struct become fields called "struct.column", so a
    Hugging Face image is `image.bytes` and `image.path`. Other types are refused by
    name. A row with a null is a bad record unless `fill` says what it becomes.  Local
    files are mapped into memory and used in place. Record batches of other stores, and
    those compressed by zstd, are loaded when one of their rows is wanted and kept in
    `batch_cache`; rows in order need one batch at a time, a shuffled epoch is fast
    where all fit. LZ4 is refused. Rows can be read in any order, so shuffle, split,
    shard and resume work as for files.  Arrow has no checksums: damage to offsets,
    dictionaries and metadata is found, damage to numbers and text is not. A batch whose
    metadata are damaged is one bad record, and so is the rest of a file that is cut.
    The identity of the source is the metadata of all batches, and the first, middle and
    last 64 KiB of each file.

    Args:
        path: a file; or several: "data-{00000..00003}.arrow", a pattern such as
            "train/data-*.arrow", or a folder of .arrow files; path, required.
        columns: the columns that become fields, by name; * stands for all, the name of
            a struct for its columns, "image.bytes" for one; list of strings, 1 to 64
            items, default ["*"].
        fill: column: what a null becomes, such as {label: -1, text: '='}; = stands for
            the text after it, here an empty one; without, a row with a null is a bad
            record; map, default {}.
        batch_max: a record batch that takes more memory is not read; those of local
            files that are not compressed take none; bytes, 1 to 1125899906842624, in
            bytes, default 4GiB.
        batch_cache: of files that are compressed or not local: record batches that are
            kept in memory, at most 64; bytes, 0 to 1125899906842624, in bytes, default
            256MiB.
        name: what the node is called in messages and files; the operator's name by default.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    from .pipeline import Pipeline

    params: dict[str, Any] = {"path": path, "columns": columns, "fill": fill, "batch_max": batch_max, "batch_cache": batch_cache}
    defaults: dict[str, Any] = {"columns": ("*",), "fill": {}, "batch_max": "4GiB", "batch_cache": "256MiB"}
    return Pipeline._source("source.arrow", params, defaults, name=name)


@checked_op("source.coco")
def source_coco(
    path: PathLike,
    annotations: PathLike,
    *,
    crowd: bool = True,
    empty: bool = True,
    classes: str | Sequence[str] | None = None,
    columns: str | Sequence[str] = (),
    name: str | None = None,
) -> Pipeline:
    """The images of a COCO data set, with boxes and labels.

    Operator `source.coco`, kind source, version 1; pure.

    One record per image, in order of id: `data` (the bytes of its file), `boxes`
    (float32 [n, 4]: x1, y1, x2, y2 in pixels), `labels` (int64 [n]) and `image_id`. Ids
    of categories become numbers from 0 without gaps, in order of id; the field knows
    the names. A validation set gets the numbers of the training set by `classes`.
    Boxes are as the file has them, also those of no width: boxes.sanitize drops them.
    What is wrong with an annotation (no bbox, a negative width, an unknown category)
    makes its image a bad record, whose message names the annotation's id; an annotation
    of an image that is not listed is an error at once. Polygons and key points are
    skipped.

    Args:
        path: the folder of the images, or its URI; path, required.
        annotations: the file of annotations, such as instances_train2017.json; path,
            required.
        crowd: keep annotations of crowds (iscrowd), whose box is around many objects;
            bool, default true.
        empty: keep images without annotations; bool, default true.
        classes: names of the categories in the order of their numbers, such as those of
            the training set; default: the file's, in order of id; list of strings, 1 to
            32768 items, optional.
        columns: further fields: area, iscrowd and annotation_id of each box, path of
            the image; list of strings, 0 to 4 items, default [].
        name: what the node is called in messages and files; the operator's name by default.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    from .pipeline import Pipeline

    params: dict[str, Any] = {"path": path, "annotations": annotations, "crowd": crowd, "empty": empty, "classes": classes, "columns": columns}
    defaults: dict[str, Any] = {"crowd": True, "empty": True, "columns": ()}
    return Pipeline._source("source.coco", params, defaults, name=name)


@checked_op("source.csv")
def source_csv(
    path: PathLike,
    *,
    columns: str | Sequence[str] = ("*",),
    types: Mapping[str, str] = {},
    header: Literal["auto", "yes", "no"] = "auto",
    names: str | Sequence[str] = (),
    delimiter: str | PathLike = ",",
    max_bytes: int | str = "64MiB",
    unpacked_max: int | str = "64GiB",
    ratio_max: int = 1000,
    unpack_cache: int | str = "64MiB",
    index: PathLike | None = None,
    name: str | None = None,
) -> Pipeline:
    """The rows of CSV files, with typed fields.

    Operator `source.csv`, kind source, version 1; pure.

    RFC 4180: cells in quotes may contain delimiters, line ends and quotes, which are
    doubled. Lines end in LF or CR LF; blanks around a cell, blank lines and a byte
    order mark do not count. Several files have the same header. The columns that
    `columns` names become fields: int64, float64, bool (true or false, case ignored) or
    text. Types that are not declared follow from all rows, which are read once for it
    when the graph is checked: whole numbers are int64, other numbers among them make
    float64, anything else makes text, which holds cells as they are written. Bytes of
    texts are not checked: they may be any encoding.  A row with more or fewer cells
    than the first line, a value of another type and a missing value (an empty cell;
    among numbers also nan, NA, N/A, null, none) without a default are bad records,
    whose message names file, line, byte and column. A quote that is not closed within
    `max_bytes` costs its line. Rows can be read in any order, so shuffle, split, shard
    and resume work as for files; 8 bytes of memory are kept per row. The identity of
    the source is the contents of its files.  Where the records are is found by a scan
    of the files when the graph is opened, and kept in a saved index ([its
    format](../formats/source-index.md)): the next start scans only files that have
    changed since, by their size, inode and time, or the ETag that the server gives. Set
    `HEADRACE_CACHE` to nothing to keep no index in the cache folder.  Files that are
    compressed by gzip or zstd are recognised by how they begin, and read as what they
    unpack to. The first opening decodes and checks each of them. Then records are read
    in any order: in order without decoding anything twice, otherwise as fast as
    `unpack_cache` allows ([compressed files](../formats/compressed.md)). Damage costs
    the gzip member or zstd frame that it is in; of a file that is cut short, all that
    comes before is read.

    Args:
        path: a file; or several: "part-{000..099}.csv", a pattern such as "part-*.csv",
            or a folder of .csv files; path, required.
        columns: the columns that become fields, by name; * stands for all, of JSON for
            the keys of the first row, and those that types names; list of strings, 1 to
            64 items, default ["*"].
        types: column: its type (int64, float64, bool, text, json), and perhaps what a
            missing value becomes: {label: int64, score: "float64 = 0", note: "text ="};
            default: inferred from all rows; map, default {}.
        header: whether the first line of each file names the columns; auto: if it has a
            name that columns or types has, or no cell that is a number or contains a
            dot or a slash; refused where numbers follow such a cell, or it is one name
            that contains ;, | or a tab; enum, one of auto, yes, no, default auto.
        names: names of the columns in their order, where the files have no header or
            another one; default without a header: column_1, column_2 and so on; list of
            strings, 0 to 64 items, default [].
        delimiter: what stands between cells: one ASCII character, or tab; string,
            default ,.
        max_bytes: a longer record is bad, and is not read; bytes, 1 to 1073741824, in
            bytes, default 64MiB.
        unpacked_max: a compressed file that unpacks to more is refused; bytes, 1 to
            1125899906842624, in bytes, default 64GiB.
        ratio_max: a compressed file that unpacks to more than 64 MiB and more than this
            many times its size is refused; int, 1 to 1073741824, default 1000.
        unpack_cache: unpacked bytes of compressed files that are kept in memory: a
            shuffled epoch is fast where all of them fit; bytes, 0 to 1099511627776, in
            bytes, default 64MiB.
        index: a file that keeps where the records are, so that the next start scans
            only files that have changed; default: one in the cache folder, for remote
            files and for 16 MiB or more; path, optional.
        name: what the node is called in messages and files; the operator's name by default.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    from .pipeline import Pipeline

    params: dict[str, Any] = {"path": path, "columns": columns, "types": types, "header": header, "names": names, "delimiter": delimiter, "max_bytes": max_bytes, "unpacked_max": unpacked_max, "ratio_max": ratio_max, "unpack_cache": unpack_cache, "index": index}
    defaults: dict[str, Any] = {"columns": ("*",), "types": {}, "header": "auto", "names": (), "delimiter": ",", "max_bytes": "64MiB", "unpacked_max": "64GiB", "ratio_max": 1000, "unpack_cache": "64MiB"}
    return Pipeline._source("source.csv", params, defaults, name=name)


@checked_op("source.files")
def source_files(
    path: PathLike | Iterable[PathLike],
    *,
    files: str | Sequence[str] | None = None,
    labels: str | PathLike = "none",
    path_column: str | PathLike = "path",
    label_column: str | PathLike = "label",
    columns: str | Sequence[str] = ("*",),
    classes: str | Sequence[str] | None = None,
    skip: Literal["none", "unlisted", "missing", "both"] = "none",
    suffixes: str | Sequence[str] = ("jpg", "jpeg", "png", "webp", "ppm", "pgm", "pbm", "pnm"),
    recursive: bool = True,
    paths: bool = False,
    index: PathLike | None = None,
    field: str = "data",
    label: str = "label",
    path_field: str = "path",
    name: str | None = None,
) -> Pipeline:
    """The files of a folder, with labels.

    Operator `source.files`, kind source, version 1; pure.

    Files follow the bytes of their paths below `path`, so record numbers agree on every
    machine. `labels: folder` numbers the folders directly below `path` in order of
    name, as torchvision's ImageFolder does. Names that begin with a dot are ignored; a
    link that leads nowhere is a bad record. The fields `label` and `path` exist only
    when asked for.  `files` lists the files instead, in any order, also more than once;
    they are opened when they are read, so that a missing one is a bad record.  A labels
    file is CSV (RFC 4180) or JSON lines (one object a line), and decides which files
    there are and their order. The first line of a CSV file names the columns; without
    such a line the columns are path and label. The type of a column follows from all of
    its cells: whole numbers are int64, other numbers float64, true and false (of JSON)
    bool. Labels that are texts are classes, numbered in the order of their names; any
    other text is a byte string. A cell without a value, a file without a line and a
    line without a file are errors.

    Args:
        path: a folder, its URI, or a pattern such as "photos/?x/*.jpg" (two stars: any
            number of folders); path, required.
        files: the files, by paths relative to path, in this order; default: all in the
            folder; list of strings, 1 to 16777216 items, optional.
        labels: none; folder (the rank of the first folder below path); or the path of a
            CSV or JSONL file that lists the files; string, default none.
        path_column: the column of the labels file that holds paths, relative to path;
            string, default path.
        label_column: the column that holds labels: numbers, or names of classes; ""
            when there is none; string, default label.
        columns: the further columns that become fields; * stands for all; list of
            strings, 0 to 64 items, default ["*"].
        classes: names of the classes in the order of their numbers, such as those of
            the training set; default: those found, in order of name; list of strings, 1
            to 16777216 items, optional.
        skip: what to leave out instead of failing: unlisted (files without a line in
            the labels file), missing (lines without a file), both; enum, one of none,
            unlisted, missing, both, default none.
        suffixes: endings of the names to include, case ignored; [] for all files; list
            of fields, 0 to 64 items, default [jpg, jpeg, png, webp, ppm, pgm, pbm,
            pnm].
        recursive: include files in folders below path; bool, default true.
        paths: add the path of each file as a field; bool, default false.
        index: a file that keeps the list of names, so that the next start does not read
            unchanged folders, and what image.decode learns about the photos (see its
            `seek_bytes`); path, optional.
        field: the field that holds a file's bytes; field, default data.
        label: the field that holds the label, when there are labels; field, default
            label.
        path_field: the field that holds the path, when paths are wanted; field, default
            path.
        name: what the node is called in messages and files; the operator's name by default.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    from .pipeline import Pipeline

    path, files = listed(path, files)
    params: dict[str, Any] = {"path": path, "files": files, "labels": labels, "path_column": path_column, "label_column": label_column, "columns": columns, "classes": classes, "skip": skip, "suffixes": suffixes, "recursive": recursive, "paths": paths, "index": index, "field": field, "label": label, "path_field": path_field}
    defaults: dict[str, Any] = {"labels": "none", "path_column": "path", "label_column": "label", "columns": ("*",), "skip": "none", "suffixes": ("jpg", "jpeg", "png", "webp", "ppm", "pgm", "pbm", "pnm"), "recursive": True, "paths": False, "field": "data", "label": "label", "path_field": "path"}
    return Pipeline._source("source.files", params, defaults, name=name)


@checked_op("source.hdf5")
def source_hdf5(
    path: PathLike,
    *,
    fields: Mapping[str, str] | None = None,
    unpacked_max: int | str = "256MiB",
    unpack_cache: int | str = "64MiB",
    name: str | None = None,
) -> Pipeline:
    """The items of datasets of HDF5 files.

    Operator `source.hdf5`, kind source, version 2; pure.

    The items along the first dimension become records: datasets of shape [1000, 28, 28]
    and [1000] have 1000 records with fields of shape [28, 28] and []. The datasets that
    are chosen must have equally many items. Bool, integers and floats of up to 64 bits,
    little-endian and big-endian (uint32 and uint64 become int64, and an item with a
    larger number is a bad record); texts of fixed size, and texts and bytes of any
    length. An array type adds its dimensions. Each member of a compound type is a
    dataset of its own, `points.x`. Several files must have items of one type and shape.
    No library is needed: files are read that any version of HDF5's library writes, with
    data compact, contiguous or in chunks, and chunks filtered by shuffle, gzip, LZF and
    Fletcher's checksum. What is not read (other filters, virtual datasets, external
    storage, arrays of compound types, references) is refused by name, with what to do.
    Contiguous items and those of plain chunks are read where they lie, in any order, so
    shuffle, split, shard and resume work as for files. A filtered chunk is unpacked as
    a whole, once for all threads while it is in the cache: in order each is unpacked
    once, shuffled as often as `unpack_cache` forces it. A damaged chunk costs the
    records in it. HDF5 has no checksums by default: damage to plain items cannot be
    seen. The identity of the source is the names and shapes, the places of the chunks,
    and the first, middle and last 64 KiB of the files.

    Args:
        path: a file; or several: "part-{000..099}.h5", a pattern such as "part-*.hdf5",
            or a folder of .h5 files, or of .hdf5 files; path, required.
        fields: field: the path of its dataset, as in {image: train/images, label:
            train/labels}; default: every dataset that can be read, named by its path
            with _ for /; a member of a compound type is train/points.x; map, optional.
        unpacked_max: datasets whose chunks unpack to more are refused, and items of any
            length that have more are bad; bytes, 1 to 4294967296, in bytes, default
            256MiB.
        unpack_cache: unpacked chunks that are kept in memory: a shuffled epoch is fast
            where all of them fit; bytes, 0 to 1099511627776, in bytes, default 64MiB.
        name: what the node is called in messages and files; the operator's name by default.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    from .pipeline import Pipeline

    params: dict[str, Any] = {"path": path, "fields": fields, "unpacked_max": unpacked_max, "unpack_cache": unpack_cache}
    defaults: dict[str, Any] = {"unpacked_max": "256MiB", "unpack_cache": "64MiB"}
    return Pipeline._source("source.hdf5", params, defaults, name=name)


@checked_op("source.idx")
def source_idx(
    path: PathLike,
    *,
    labels: PathLike | None = None,
    field: str = "image",
    label_field: str = "label",
    name: str | None = None,
) -> Pipeline:
    """The items of an IDX file, as MNIST comes.

    Operator `source.idx`, kind source, version 1; pure, zero copy.

    Items of unsigned bytes in two dimensions become images of one channel (height,
    width, 1); in three, with 1 or 3 as the last, images too. Others become tensors of
    their own type. Files may be gzipped. The identity of the source is its data, not
    its name.

    Args:
        path: the IDX file of the items, plain or gzipped, or its URI; path, required.
        labels: an IDX file with one label per item, in the same order; path, optional.
        field: the field that holds an item; field, default image.
        label_field: the field that holds its label, int64; field, default label.
        name: what the node is called in messages and files; the operator's name by default.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    from .pipeline import Pipeline

    params: dict[str, Any] = {"path": path, "labels": labels, "field": field, "label_field": label_field}
    defaults: dict[str, Any] = {"field": "image", "label_field": "label"}
    return Pipeline._source("source.idx", params, defaults, name=name)


@checked_op("source.jsonl")
def source_jsonl(
    path: PathLike,
    *,
    columns: str | Sequence[str] = ("*",),
    types: Mapping[str, str] = {},
    max_bytes: int | str = "64MiB",
    unpacked_max: int | str = "64GiB",
    ratio_max: int = 1000,
    unpack_cache: int | str = "64MiB",
    index: PathLike | None = None,
    name: str | None = None,
) -> Pipeline:
    """The rows of JSON lines files, with typed fields.

    Operator `source.jsonl`, kind source, version 1; pure.

    Each line is one JSON object, in UTF-8; blank lines do not count, and neither does a
    byte order mark. The members that `columns` names become fields: int64, float64,
    bool, text, or json (any value, as compact JSON). Types that are not declared follow
    from all lines, which are read once for it when the graph is checked: whole numbers
    are int64, any other numbers make float64, lists and objects json; texts and numbers
    in one column are an error. A whole number that does not fit an int64 is a bad
    record, unless the column is declared as float64, or as json, which keeps its
    digits; those inside lists and objects become float64.  A line that is no object, a
    value of another type and a missing value (null, or no such key) without a default
    are bad records, whose message names file, line, byte and column. Lines can be read
    in any order, so shuffle, split, shard and resume work as for files; 8 bytes of
    memory are kept per line. The identity of the source is the contents of its files.
    Where the records are is found by a scan of the files when the graph is opened, and
    kept in a saved index ([its format](../formats/source-index.md)): the next start
    scans only files that have changed since, by their size, inode and time, or the ETag
    that the server gives. Set `HEADRACE_CACHE` to nothing to keep no index in the cache
    folder.  Files that are compressed by gzip or zstd are recognised by how they begin,
    and read as what they unpack to. The first opening decodes and checks each of them.
    Then records are read in any order: in order without decoding anything twice,
    otherwise as fast as `unpack_cache` allows ([compressed
    files](../formats/compressed.md)). Damage costs the gzip member or zstd frame that
    it is in; of a file that is cut short, all that comes before is read.

    Args:
        path: a file; or several: "part-{000..099}.jsonl", a pattern such as
            "part-*.jsonl", or a folder of .jsonl files; path, required.
        columns: the columns that become fields, by name; * stands for all, of JSON for
            the keys of the first row, and those that types names; list of strings, 1 to
            64 items, default ["*"].
        types: column: its type (int64, float64, bool, text, json), and perhaps what a
            missing value becomes: {label: int64, score: "float64 = 0", note: "text ="};
            default: inferred from all rows; map, default {}.
        max_bytes: a longer record is bad, and is not read; bytes, 1 to 1073741824, in
            bytes, default 64MiB.
        unpacked_max: a compressed file that unpacks to more is refused; bytes, 1 to
            1125899906842624, in bytes, default 64GiB.
        ratio_max: a compressed file that unpacks to more than 64 MiB and more than this
            many times its size is refused; int, 1 to 1073741824, default 1000.
        unpack_cache: unpacked bytes of compressed files that are kept in memory: a
            shuffled epoch is fast where all of them fit; bytes, 0 to 1099511627776, in
            bytes, default 64MiB.
        index: a file that keeps where the records are, so that the next start scans
            only files that have changed; default: one in the cache folder, for remote
            files and for 16 MiB or more; path, optional.
        name: what the node is called in messages and files; the operator's name by default.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    from .pipeline import Pipeline

    params: dict[str, Any] = {"path": path, "columns": columns, "types": types, "max_bytes": max_bytes, "unpacked_max": unpacked_max, "ratio_max": ratio_max, "unpack_cache": unpack_cache, "index": index}
    defaults: dict[str, Any] = {"columns": ("*",), "types": {}, "max_bytes": "64MiB", "unpacked_max": "64GiB", "ratio_max": 1000, "unpack_cache": "64MiB"}
    return Pipeline._source("source.jsonl", params, defaults, name=name)


@checked_op("source.lines")
def source_lines(
    path: PathLike,
    *,
    skip_empty: bool = False,
    max_bytes: int | str = "64MiB",
    field: str = "text",
    unpacked_max: int | str = "64GiB",
    ratio_max: int = 1000,
    unpack_cache: int | str = "64MiB",
    index: PathLike | None = None,
    name: str | None = None,
) -> Pipeline:
    """The lines of text files.

    Operator `source.lines`, kind source, version 1; pure.

    A line ends in LF or CR LF; the last one of a file needs no ending. A byte order
    mark at the beginning of a file is no part of its first line. Empty lines are
    records unless `skip_empty` is set. Bytes are not checked: they may be any encoding,
    and a text that is not UTF-8 stays as it is. Files are read through once when the
    graph is opened, and 8 bytes of memory are kept per line; then lines can be read in
    any order, so shuffle, split, shard and resume work as for files. The identity of
    the source is the contents of its files. `source.list` reads the lines of a single
    file that is mapped into memory.  Where the records are is found by a scan of the
    files when the graph is opened, and kept in a saved index ([its
    format](../formats/source-index.md)): the next start scans only files that have
    changed since, by their size, inode and time, or the ETag that the server gives. Set
    `HEADRACE_CACHE` to nothing to keep no index in the cache folder.  Files that are
    compressed by gzip or zstd are recognised by how they begin, and read as what they
    unpack to. The first opening decodes and checks each of them. Then records are read
    in any order: in order without decoding anything twice, otherwise as fast as
    `unpack_cache` allows ([compressed files](../formats/compressed.md)). Damage costs
    the gzip member or zstd frame that it is in; of a file that is cut short, all that
    comes before is read.

    Args:
        path: a file; or several: "part-{000..099}.txt", a pattern such as "part-*.txt",
            or a folder of .txt files; path, required.
        skip_empty: leave out empty lines; bool, default false.
        max_bytes: a longer line is a bad record, and is not read; bytes, 1 to
            1073741824, in bytes, default 64MiB.
        field: the field that holds a line, without its line ending; field, default
            text.
        unpacked_max: a compressed file that unpacks to more is refused; bytes, 1 to
            1125899906842624, in bytes, default 64GiB.
        ratio_max: a compressed file that unpacks to more than 64 MiB and more than this
            many times its size is refused; int, 1 to 1073741824, default 1000.
        unpack_cache: unpacked bytes of compressed files that are kept in memory: a
            shuffled epoch is fast where all of them fit; bytes, 0 to 1099511627776, in
            bytes, default 64MiB.
        index: a file that keeps where the records are, so that the next start scans
            only files that have changed; default: one in the cache folder, for remote
            files and for 16 MiB or more; path, optional.
        name: what the node is called in messages and files; the operator's name by default.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    from .pipeline import Pipeline

    params: dict[str, Any] = {"path": path, "skip_empty": skip_empty, "max_bytes": max_bytes, "field": field, "unpacked_max": unpacked_max, "ratio_max": ratio_max, "unpack_cache": unpack_cache, "index": index}
    defaults: dict[str, Any] = {"skip_empty": False, "max_bytes": "64MiB", "field": "text", "unpacked_max": "64GiB", "ratio_max": 1000, "unpack_cache": "64MiB"}
    return Pipeline._source("source.lines", params, defaults, name=name)


@checked_op("source.list")
def source_list(
    path: PathLike,
    *,
    skip_empty: bool = False,
    field: str = "text",
    name: str | None = None,
) -> Pipeline:
    """The lines of a text file.

    Operator `source.list`, kind source, version 1; pure, zero copy.

    A line ends with LF or CR LF; the last one needs no ending. Bytes are not checked:
    they may be any encoding.

    Args:
        path: the text file, or its URI; path, required.
        skip_empty: skip empty lines; bool, default false.
        field: the field that holds a line, without its line ending; field, default
            text.
        name: what the node is called in messages and files; the operator's name by default.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    from .pipeline import Pipeline

    params: dict[str, Any] = {"path": path, "skip_empty": skip_empty, "field": field}
    defaults: dict[str, Any] = {"skip_empty": False, "field": "text"}
    return Pipeline._source("source.list", params, defaults, name=name)


@checked_op("source.lmdb")
def source_lmdb(
    path: PathLike,
    *,
    database: str | PathLike = "",
    key: str = "key",
    value: str = "value",
    name: str | None = None,
) -> Pipeline:
    """The entries of an LMDB environment, as bytes.

    Operator `source.lmdb`, kind source, version 1; pure, zero copy.

    Entries in the order of their keys, of the newest whole transaction. They can be
    read in any order, so shuffle, split, shard and resume work as for files. The file
    is mapped into memory and values are used in place: opening reads the pages with
    keys, not large values. No lock file is made or looked at, so the file may be
    read-only, and must not be written while it is read.  Files of 64-bit little-endian
    machines are read, with pages of any size. Databases with several values for a key
    (MDB_DUPSORT) are refused. Where the environment has named databases, `database`
    says which one. LMDB has no checksums: a page whose structure is damaged is found, a
    changed byte of a value is not. The identity of the source is the transaction, the
    number of entries, and the first, middle and last 64 KiB of the file.

    Args:
        path: the folder of an environment, or its data.mdb file; path, required.
        database: the name of a database in it; default: the unnamed one; string,
            default .
        key: the field that holds an entry's key; field, default key.
        value: the field that holds an entry's value; field, default value.
        name: what the node is called in messages and files; the operator's name by default.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    from .pipeline import Pipeline

    params: dict[str, Any] = {"path": path, "database": database, "key": key, "value": value}
    defaults: dict[str, Any] = {"database": "", "key": "key", "value": "value"}
    return Pipeline._source("source.lmdb", params, defaults, name=name)


@checked_op("source.npy")
def source_npy(
    path: PathLike,
    *,
    arrays: str | Sequence[str] = ("*",),
    field: str = "array",
    unpacked_max: int | str = "4GiB",
    name: str | None = None,
) -> Pipeline:
    """The items of NumPy's .npy and .npz files.

    Operator `source.npy`, kind source, version 1; pure.

    The items along the first axis become records: a file of shape [1000, 28, 28] has
    1000 records with a field of shape [28, 28]. The arrays of a .npz file that are
    chosen, which must have equally many items, become fields of one record under their
    names. Bool, integers and floats of up to 64 bits, little-endian and big-endian;
    uint32 and uint64 become int64, and an item with a larger number is a bad record.
    Arrays in Fortran order, of text, of complex numbers or of objects are refused.
    Several files must have items of one dtype and shape.  Items are read where they lie
    in the file, in any order, so shuffle, split, shard and resume work as for files.
    Deflated arrays of .npz files (`numpy.savez_compressed`) are unpacked into memory
    when the graph is checked. The arrays of .npz files have checksums: they are read
    through and checked when the graph is opened, and a damaged one is refused. A .npy
    file has none, so damage to its items cannot be seen; its header is checked. The
    identity of the source is the shapes and, of .npz files, the checksums; of .npy
    files, the first, middle and last 64 KiB of the items.

    Args:
        path: a file; or several: "part-{000..099}.npy", a pattern such as "part-*.npz",
            or a folder of .npy files, or of .npz files; path, required.
        arrays: the arrays of .npz files that become fields, by name; * stands for all;
            list of strings, 1 to 64 items, default ["*"].
        field: the field that holds an item of a .npy file; field, default array.
        unpacked_max: deflated arrays of .npz files are unpacked into memory; files
            whose arrays take more are refused; bytes, 1 to 1125899906842624, in bytes,
            default 4GiB.
        name: what the node is called in messages and files; the operator's name by default.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    from .pipeline import Pipeline

    params: dict[str, Any] = {"path": path, "arrays": arrays, "field": field, "unpacked_max": unpacked_max}
    defaults: dict[str, Any] = {"arrays": ("*",), "field": "array", "unpacked_max": "4GiB"}
    return Pipeline._source("source.npy", params, defaults, name=name)


@checked_op("source.parquet")
def source_parquet(
    path: PathLike,
    *,
    columns: str | Sequence[str] = ("*",),
    fill: Mapping[str, str | float] = {},
    page_max: int | str = "1GiB",
    page_cache: int | str = "256MiB",
    where: str | PathLike = "",
    name: str | None = None,
) -> Pipeline:
    """The rows of Apache Parquet files.

    Operator `source.parquet`, kind source, version 1; pure, zero copy.

    Reads what pyarrow, pandas, polars, Spark, DuckDB and Hugging Face write: data pages
    of both versions, all encodings of today, uncompressed or compressed by snappy,
    zstd, gzip or lz4_raw. Only the chosen columns are read. Bool, integers and floats
    become numbers, strings text, binary byte strings, lists of numbers tensors of one
    dimension. uint32 and uint64 become int64, and a row with a larger number is a bad
    record. Dates, times and timestamps become integers; explain says in which unit. The
    columns of a struct become fields called "struct.column", so a Hugging Face image is
    `image.bytes` and `image.path`. Decimals, INT96, maps and other nested columns are
    refused by name; those beside them can be chosen. A row with a null is a bad record
    unless `fill` says what it becomes.  Local files are mapped into memory; values of
    uncompressed pages are used in place. A page is decoded when one of its rows is
    wanted, and kept in `page_cache`: rows in order need each page once, a shuffled
    epoch is fast where all fit. Of a list in pages of version 1 (pyarrow's default),
    which may end anywhere, the column of a row group is decoded as a whole. Of files in
    other stores, the chosen columns of a row group are fetched when one of its rows is
    wanted. Rows can be read in any order, so shuffle, split, shard and resume work as
    for files.  `where` is a condition as of record.filter, on fields of the source: the
    records are those of a record.filter directly after it. Row groups are skipped where
    the statistics of the footer show that the condition is false for every row: their
    bytes are not read, and damage or nulls in other columns of their rows is not found.
    Of other rows, the columns that the condition reads are decoded first. Nulls without
    `fill`, NaN and missing statistics keep a row group. The number of records is then
    known only at the end, but order.shuffle, order.split, order.repeat and shards still
    choose among all rows of the row groups that are left; order.take and order.skip
    count the rows for which the condition holds.  Checksums of pages are checked where
    the writer has written some (`write_page_checksum` in pyarrow). The rows of a
    damaged page are bad records; where the header of a page is damaged, those after it
    in its row group are, too. A file with a damaged footer is refused. The identity of
    the source is the footers, and the first, middle and last 64 KiB of each file.

    Args:
        path: a file; or several: "data-{00000..00003}.parquet", a pattern such as
            "train/*.parquet", or a folder of .parquet files; path, required.
        columns: the columns that become fields, by name; * stands for all, the name of
            a struct for its columns, "image.bytes" for one; list of strings, 1 to 64
            items, default ["*"].
        fill: column: what a null becomes, such as {label: -1, text: '='}; = stands for
            the text after it, here an empty one; without, a row with a null is a bad
            record; map, default {}.
        page_max: a page that takes more memory is not read, and so is a column of a row
            group that is larger, if the file is not local; bytes, 1 to
            1125899906842624, in bytes, default 1GiB.
        page_cache: decoded pages that are kept in memory, but at least 8 for each
            column: a shuffled epoch is fast where all of them fit; bytes, 0 to
            1125899906842624, in bytes, default 256MiB.
        where: a condition on the chosen columns, such as "lang == 'en' and score >
            0.5": other rows are dropped, and row groups whose statistics show that they
            have none are not read; string, default .
        name: what the node is called in messages and files; the operator's name by default.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    from .pipeline import Pipeline

    params: dict[str, Any] = {"path": path, "columns": columns, "fill": fill, "page_max": page_max, "page_cache": page_cache, "where": where}
    defaults: dict[str, Any] = {"columns": ("*",), "fill": {}, "page_max": "1GiB", "page_cache": "256MiB", "where": ""}
    return Pipeline._source("source.parquet", params, defaults, name=name)


@checked_op("source.range")
def source_range(
    n: int,
    *,
    start: int = 0,
    step: int = 1,
    field: str = "value",
    name: str | None = None,
) -> Pipeline:
    """The numbers start, start + step, .

    Operator `source.range`, kind source, version 1; pure.

    Record `i` holds `start + i * step` as an int64 scalar.

    Args:
        n: number of records; int, 0 to 1e+15, in records, required.
        start: the first number; int, -1e+15 to 1e+15, default 0.
        step: the difference between consecutive numbers; int, -1000 to 1000, default 1.
        field: the field that holds the number; field, default value.
        name: what the node is called in messages and files; the operator's name by default.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    from .pipeline import Pipeline

    params: dict[str, Any] = {"n": n, "start": start, "step": step, "field": field}
    defaults: dict[str, Any] = {"start": 0, "step": 1, "field": "value"}
    return Pipeline._source("source.range", params, defaults, name=name)


@checked_op("source.records")
def source_records(
    path: PathLike,
    *,
    unpacked_max: int | str = "1GiB",
    name: str | None = None,
) -> Pipeline:
    """Records of files that headrace pack has written.

    Operator `source.records`, kind source, version 1; pure.

    Reads Headrace's own container: every field of every record with its type, shape and
    meaning, and the names of its classes, as it was at the end of the graph that was
    packed. Records can be read in any order, so shuffle, shard and resume work as for
    files. Each record has a checksum, which is checked: damage costs the records that
    it lies in. Records that were packed with --zstd or --lz4 are unpacked. A file whose
    schema or index is damaged is still read whole; a file without an end (its writer
    was interrupted, or it was cut) is read up to its last whole record, and one more
    record, which is bad, says so. The identity of the source is the sizes and checksums
    of its records, hence its contents, however they are divided over files.

    Args:
        path: a file; or several: "train-{000..099}.records", a pattern such as
            "packed/train-*.records", or a folder of .records files; path, required.
        unpacked_max: a compressed record that unpacks to more is bad; bytes, 1 to
            1125899906842624, in bytes, default 1GiB.
        name: what the node is called in messages and files; the operator's name by default.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    from .pipeline import Pipeline

    params: dict[str, Any] = {"path": path, "unpacked_max": unpacked_max}
    defaults: dict[str, Any] = {"unpacked_max": "1GiB"}
    return Pipeline._source("source.records", params, defaults, name=name)


@checked_op("source.tar")
def source_tar(
    path: PathLike,
    *,
    fields: Mapping[str, str] | None = None,
    keys: bool = False,
    key_field: str = "key",
    unpacked_max: int | str = "64GiB",
    ratio_max: int = 1000,
    unpack_cache: int | str = "64MiB",
    index: PathLike | None = None,
    name: str | None = None,
) -> Pipeline:
    """Records of tar archives, as WebDataset packs them.

    Operator `source.tar`, kind source, version 1; pure.

    Members that follow each other and have the same key are one record: the key is the
    name up to the first dot of its last part, the ending is what follows it. Each field
    takes the member with its ending (case ignored); members that no field takes are
    ignored, and a record that lacks one is bad. Without `fields`, the members of the
    first record are the fields, each named after its ending: "seg.png" is seg_png.
    Members whose ending is cls, cls2, class, count, index, inx or id are decimal
    integers and become int64; all others are bytes. Records can be read in any order,
    so shuffle, shard and resume work as for files. A damaged header costs the records
    that it lies in, and a sparse member is a bad record. Links, folders and members
    without an ending belong to no record. The identity of the source is the names and
    sizes of the members: a member whose bytes change but not its size goes unnoticed.
    Where the records are is found by a scan of the files when the graph is opened, and
    kept in a saved index ([its format](../formats/source-index.md)): the next start
    scans only files that have changed since, by their size, inode and time, or the ETag
    that the server gives. Set `HEADRACE_CACHE` to nothing to keep no index in the cache
    folder.  Files that are compressed by gzip or zstd are recognised by how they begin,
    and read as what they unpack to. The first opening decodes and checks each of them.
    Then records are read in any order: in order without decoding anything twice,
    otherwise as fast as `unpack_cache` allows ([compressed
    files](../formats/compressed.md)). Damage costs the gzip member or zstd frame that
    it is in; of a file that is cut short, all that comes before is read.

    Args:
        path: an archive; or several: "train-{000..099}.tar", "{a,b}.tar", a pattern
            such as "shards/*.tar", or a folder; path, required.
        fields: field: the ending of its member, or several that stand for each other,
            as in {image: jpg|jpeg|png, label: cls}; default: the members of the first
            record, each named after its ending; map, optional.
        keys: add the key of each record as a field; bool, default false.
        key_field: the field that holds the key, when keys are wanted; field, default
            key.
        unpacked_max: a compressed file that unpacks to more is refused; bytes, 1 to
            1125899906842624, in bytes, default 64GiB.
        ratio_max: a compressed file that unpacks to more than 64 MiB and more than this
            many times its size is refused; int, 1 to 1073741824, default 1000.
        unpack_cache: unpacked bytes of compressed files that are kept in memory: a
            shuffled epoch is fast where all of them fit; bytes, 0 to 1099511627776, in
            bytes, default 64MiB.
        index: a file that keeps where the records are, so that the next start scans
            only files that have changed; default: one in the cache folder, for remote
            files and for 16 MiB or more; path, optional.
        name: what the node is called in messages and files; the operator's name by default.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    from .pipeline import Pipeline

    params: dict[str, Any] = {"path": path, "fields": fields, "keys": keys, "key_field": key_field, "unpacked_max": unpacked_max, "ratio_max": ratio_max, "unpack_cache": unpack_cache, "index": index}
    defaults: dict[str, Any] = {"keys": False, "key_field": "key", "unpacked_max": "64GiB", "ratio_max": 1000, "unpack_cache": "64MiB"}
    return Pipeline._source("source.tar", params, defaults, name=name)


@checked_op("source.tfrecord")
def source_tfrecord(
    path: PathLike,
    *,
    field: str = "data",
    unpacked_max: int | str = "64GiB",
    ratio_max: int = 1000,
    unpack_cache: int | str = "64MiB",
    index: PathLike | None = None,
    name: str | None = None,
) -> Pipeline:
    """Records of TFRecord files, as bytes.

    Operator `source.tfrecord`, kind source, version 1; pure.

    Records can be read in any order, so shuffle, shard and resume work as for files.
    Checksums are checked: a record whose data is damaged is bad, and a damaged length
    costs the record that it belongs to. The identity of the source is the lengths and
    checksums of its records, hence its contents.  Where the records are is found by a
    scan of the files when the graph is opened, and kept in a saved index ([its
    format](../formats/source-index.md)): the next start scans only files that have
    changed since, by their size, inode and time, or the ETag that the server gives. Set
    `HEADRACE_CACHE` to nothing to keep no index in the cache folder.  Files that are
    compressed by gzip or zstd are recognised by how they begin, and read as what they
    unpack to. The first opening decodes and checks each of them. Then records are read
    in any order: in order without decoding anything twice, otherwise as fast as
    `unpack_cache` allows ([compressed files](../formats/compressed.md)). Damage costs
    the gzip member or zstd frame that it is in; of a file that is cut short, all that
    comes before is read. Files that are compressed as zlib (TensorFlow's `ZLIB`) are
    read, too. As records have checksums of their own, those before the damage in a
    damaged stream are read.

    Args:
        path: a file; or several: "train-{000..099}.tfrecord", a pattern such as
            "data/train.tfrecord-*", or a folder of .tfrecord files; path, required.
        field: the field that holds a record's data; field, default data.
        unpacked_max: a compressed file that unpacks to more is refused; bytes, 1 to
            1125899906842624, in bytes, default 64GiB.
        ratio_max: a compressed file that unpacks to more than 64 MiB and more than this
            many times its size is refused; int, 1 to 1073741824, default 1000.
        unpack_cache: unpacked bytes of compressed files that are kept in memory: a
            shuffled epoch is fast where all of them fit; bytes, 0 to 1099511627776, in
            bytes, default 64MiB.
        index: a file that keeps where the records are, so that the next start scans
            only files that have changed; default: one in the cache folder, for remote
            files and for 16 MiB or more; path, optional.
        name: what the node is called in messages and files; the operator's name by default.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    from .pipeline import Pipeline

    params: dict[str, Any] = {"path": path, "field": field, "unpacked_max": unpacked_max, "ratio_max": ratio_max, "unpack_cache": unpack_cache, "index": index}
    defaults: dict[str, Any] = {"field": "data", "unpacked_max": "64GiB", "ratio_max": 1000, "unpack_cache": "64MiB"}
    return Pipeline._source("source.tfrecord", params, defaults, name=name)


@checked_op("source.voc")
def source_voc(
    path: PathLike,
    *,
    split: str | PathLike = "train",
    task: Literal["detection", "segmentation"] = "detection",
    classes: str | Sequence[str] | None = None,
    find_classes: bool = False,
    difficult: bool = True,
    raw: bool = False,
    columns: str | Sequence[str] = (),
    suffix: str | PathLike = ".jpg",
    name: str | None = None,
) -> Pipeline:
    """The pictures of a Pascal VOC data set, with boxes and labels or masks.

    Operator `source.voc`, kind source, version 1; pure.

    One record per name of the list, in its order. In VOC's lists of a class, such as
    aeroplane_train.txt, each name is followed by 1, 0 (only difficult objects) or -1
    (none): lines `NAME -1` are left out, and it is an error if all are. `data` holds
    the bytes of JPEGImages/NAME.jpg. For detection the objects of Annotations/NAME.xml
    follow, in its order: `boxes` (float32 [n, 4]: x1, y1, x2, y2 in pixels), `labels`
    (int64 [n]), `difficult` and `truncated` (int64 [n], 0 or 1). For segmentation
    `mask` holds the bytes of SegmentationClass/NAME.png: image.decode with `color:
    labels` makes it a mask of class numbers, 0 being background and 255 the outlines,
    which a loss ignores. VOC's classes have the numbers 0 to 19 in `labels` and 1 to 20
    in masks.  VOC counts pixels from 1 and names the first and the last pixel of an
    object. Boxes here count from 0, and x2 and y2 are where the last pixel ends: xmin 1
    and xmax 500 are 0 and 500. torchvision's VOCDetection gives the numbers of the
    file, as `raw` does; use it too for sets whose tools counted from 0.  A missing or
    damaged file, an object without a name or a box, a name that is not among the
    classes, and a size that is not the picture's make a bad record, whose message names
    the file, and in annotations line and object. Annotations without objects, and those
    that say no size, are fine. The identity of the source is its list and its classes.
    Detection needs expat.

    Args:
        path: the folder with JPEGImages, Annotations and ImageSets, such as
            VOCdevkit/VOC2012, or its URI; path, required.
        split: train, val, trainval or another list of ImageSets/Main or
            ImageSets/Segmentation; with a / in it or .txt at its end, the path of a
            file with a name per line; string, default train.
        task: detection: boxes and labels; segmentation: masks; enum, one of detection,
            segmentation, default detection.
        classes: names of the classes in the order of their numbers; default: the 20 of
            VOC; list of strings, 1 to 32768 items, optional.
        find_classes: without `classes`: the names in the annotations of the list,
            sorted; all are read when the graph is opened; bool, default false.
        difficult: keep objects that are marked difficult; bool, default true.
        raw: boxes in the numbers of the file, as torchvision gives them; bool, default
            false.
        columns: further fields: name of the picture; instances: the file of
            SegmentationObject, for segmentation; list of strings, 0 to 2 items, default
            [].
        suffix: of the files in JPEGImages; string, default .jpg.
        name: what the node is called in messages and files; the operator's name by default.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    from .pipeline import Pipeline

    params: dict[str, Any] = {"path": path, "split": split, "task": task, "classes": classes, "find_classes": find_classes, "difficult": difficult, "raw": raw, "columns": columns, "suffix": suffix}
    defaults: dict[str, Any] = {"split": "train", "task": "detection", "find_classes": False, "difficult": True, "raw": False, "columns": (), "suffix": ".jpg"}
    return Pipeline._source("source.voc", params, defaults, name=name)


@checked_op("tensor.cast")
def tensor_cast(
    pipeline: Pipeline,
    dtype: DType,
    *,
    scale: bool = True,
    field: str = "image",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Convert to another element type.

    Operator `tensor.cast`, kind map, version 1; pure, pointwise, affine, dtype, defers.

    Images as torchvision's ToDtype(scale=True): uint8 times 1/255 is a float in 0..1.
    Back to uint8 the value times 255 is rounded to the nearest level (torchvision
    multiplies by 255.999 and truncates). Other tensors keep their values: floats are
    truncated, and values out of range are clamped.

    Args:
        pipeline: what the operator reads.
        dtype: the new element type; dtype, required.
        scale: images: uint8 0..255 becomes 0..1 and back; bool, default true.
        field: the field to convert; field, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"dtype": dtype, "scale": scale, "field": field}
    defaults: dict[str, Any] = {"scale": True, "field": "image"}
    return pipeline._then("tensor.cast", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("tensor.layout")
def tensor_layout(
    pipeline: Pipeline,
    order: Literal["hwc", "chw"],
    *,
    field: str = "image",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Order an image's dimensions as [h, w, c] or [c, h, w].

    Operator `tensor.layout`, kind map, version 1; pure, layout, defers.

    Values do not change. PyTorch wants `chw`.

    Args:
        pipeline: what the operator reads.
        order: hwc: the channels of a pixel are adjacent; chw: one plane per channel;
            enum, one of hwc, chw, required.
        field: the field with the image; field, default image.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"order": order, "field": field}
    defaults: dict[str, Any] = {"field": "image"}
    return pipeline._then("tensor.layout", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("tensor.one_hot")
def tensor_one_hot(
    pipeline: Pipeline,
    classes: int,
    *,
    field: str = "label",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Class numbers to rows of zeros and a one.

    Operator `tensor.one_hot`, kind map, version 1; pure, dtype, grows.

    int64 scalar to float32 `[classes]`. A number outside 0..classes - 1 is an error.

    Args:
        pipeline: what the operator reads.
        classes: length of the row; int, 1 to 16777216, required.
        field: the field with the class number; field, default label.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"classes": classes, "field": field}
    defaults: dict[str, Any] = {"field": "label"}
    return pipeline._then("tensor.one_hot", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("text.detokenize")
def text_detokenize(
    pipeline: Pipeline,
    *,
    field: str = "tokens",
    to: str = "text",
    json: PathLike | None = None,
    ranks: PathLike | None = None,
    pattern: Literal["r50k", "cl100k", "o200k", "llama3"] = "r50k",
    encoder: PathLike | None = None,
    merges: PathLike | None = None,
    model: PathLike | None = None,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Token ids back to text.

    Operator `text.detokenize`, kind map, version 1; pure.

    int32 `[tokens]` to a byte string: the bytes of the tokens one after the other,
    which are those of the text that text.tokenize_bpe was given. With `model` it is the
    text as normalised by the model, without control symbols; with a tokenizer.json of
    WordPiece or Unigram, the tokens as its decoder joins them. An id that is no token
    is an error. The files are as in text.tokenize_bpe and text.tokenize_unigram.

    Args:
        pipeline: what the operator reads.
        field: the field with the ids; it is dropped; field, default tokens.
        to: the field that becomes the text; field, default text.
        json: Hugging Face's tokenizer.json; path, optional.
        ranks: or a rank file of tiktoken; path, optional.
        pattern: with ranks: how text is split into words; enum, one of r50k, cl100k,
            o200k, llama3, default r50k.
        encoder: or GPT-2's encoder.json, with merges; path, optional.
        merges: GPT-2's vocab.bpe, with encoder; path, optional.
        model: or a model as in text.tokenize_unigram; path, optional.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"field": field, "to": to, "json": json, "ranks": ranks, "pattern": pattern, "encoder": encoder, "merges": merges, "model": model}
    defaults: dict[str, Any] = {"field": "tokens", "to": "text", "pattern": "r50k"}
    return pipeline._then("text.detokenize", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("text.lower")
def text_lower(
    pipeline: Pipeline,
    *,
    field: str = "text",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Text to lower case.

    Operator `text.lower`, kind map, version 1; pure.

    Each character becomes its lower case by Unicode 16.0, as Python's `str.lower` has
    it for that character alone: sigma at the end of a word is no exception. Bytes that
    are not UTF-8 stay as they are.

    Args:
        pipeline: what the operator reads.
        field: the field with the text; field, default text.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"field": field}
    defaults: dict[str, Any] = {"field": "text"}
    return pipeline._then("text.lower", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("text.normalize")
def text_normalize(
    pipeline: Pipeline,
    *,
    form: Literal["nfc", "nfd", "nfkc", "nfkd"] = "nfc",
    field: str = "text",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Text to a normal form of Unicode.

    Operator `text.normalize`, kind map, version 1; pure.

    The forms NFC, NFD, NFKC and NFKD of Unicode 16.0, whatever libraries are installed.
    Bytes that are not UTF-8 stay as they are.

    Args:
        pipeline: what the operator reads.
        form: c: composed, d: decomposed; k: characters that only look different
            (ligatures, full width) become the usual ones; enum, one of nfc, nfd, nfkc,
            nfkd, default nfc.
        field: the field with the text; field, default text.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"form": form, "field": field}
    defaults: dict[str, Any] = {"form": "nfc", "field": "text"}
    return pipeline._then("text.normalize", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("text.split")
def text_split(
    pipeline: Pipeline,
    *,
    separator: str | PathLike | None = None,
    empty: bool = True,
    field: str = "text",
    to: str = "words",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """A text to the list of its parts.

    Operator `text.split`, kind map, version 1; pure.

    A byte string to a list of byte strings. Without `separator` the parts are what is
    between white space (Unicode 16.0), none of them empty, as Python's `str.split` has
    them. With one they are what is between its occurrences from the left on: one more
    than these.

    Args:
        pipeline: what the operator reads.
        separator: what is between parts, as it is; left out, runs of white space;
            string, optional.
        empty: with separator: keep parts that are empty; bool, default true.
        field: the field with the text; it is dropped; field, default text.
        to: the field that becomes the list of parts; field, default words.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"separator": separator, "empty": empty, "field": field, "to": to}
    defaults: dict[str, Any] = {"empty": True, "field": "text", "to": "words"}
    return pipeline._then("text.split", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("text.strip")
def text_strip(
    pipeline: Pipeline,
    *,
    side: Literal["both", "start", "end"] = "both",
    field: str = "text",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Remove white space at the ends of a text.

    Operator `text.strip`, kind map, version 1; pure.

    White space is what Unicode 16.0 calls White_Space: what Python's `str.strip`
    removes, except U+001C to U+001F.

    Args:
        pipeline: what the operator reads.
        side: which end of the text; enum, one of both, start, end, default both.
        field: the field with the text; field, default text.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"side": side, "field": field}
    defaults: dict[str, Any] = {"side": "both", "field": "text"}
    return pipeline._then("text.strip", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("text.tokenize_bpe")
def text_tokenize_bpe(
    pipeline: Pipeline,
    *,
    field: str = "text",
    to: str = "tokens",
    json: PathLike | None = None,
    ranks: PathLike | None = None,
    pattern: Literal["r50k", "cl100k", "o200k", "llama3"] = "r50k",
    encoder: PathLike | None = None,
    merges: PathLike | None = None,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Text to token ids by byte-level BPE.

    Operator `text.tokenize_bpe`, kind map, version 1; pure.

    A byte string to int32 `[tokens]`, whose length differs between records: collect
    batches with `batch.pad` or with `ragged: true`. The ids are those of tiktoken's
    `encode_ordinary` and of Hugging Face's tokenizers without special tokens: text that
    looks like a special token is ordinary text. Each byte that is not part of a
    well-formed UTF-8 character is encoded as it is. `json` must be a byte-level BPE
    without normalizer, with the pattern of GPT-2, Llama 3 or o200k. The contents of the
    files, not their paths, are part of the fingerprint. Each thread keeps about 20 MB,
    which a memory budget counts.

    Args:
        pipeline: what the operator reads.
        field: the field with the text; it is dropped; field, default text.
        to: the field that becomes the ids; field, default tokens.
        json: Hugging Face's tokenizer.json; path, optional.
        ranks: or a rank file of tiktoken; path, optional.
        pattern: with ranks: how text is split into words; enum, one of r50k, cl100k,
            o200k, llama3, default r50k.
        encoder: or GPT-2's encoder.json, with merges; path, optional.
        merges: GPT-2's vocab.bpe, with encoder; path, optional.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"field": field, "to": to, "json": json, "ranks": ranks, "pattern": pattern, "encoder": encoder, "merges": merges}
    defaults: dict[str, Any] = {"field": "text", "to": "tokens", "pattern": "r50k"}
    return pipeline._then("text.tokenize_bpe", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("text.tokenize_unigram")
def text_tokenize_unigram(
    pipeline: Pipeline,
    model: PathLike,
    *,
    field: str = "text",
    to: str = "tokens",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Text to token ids by a SentencePiece or Unigram model.

    Operator `text.tokenize_unigram`, kind map, version 1; pure.

    A byte string to int32 `[tokens]`, whose length differs between records: collect
    batches with `batch.pad` or with `ragged: true`. The ids are those of the
    sentencepiece library, without begin and end symbols: tokens.add puts them. Models
    of type unigram and bpe are read, with their normalisation, byte fallback and
    user-defined symbols. Text that looks like a control symbol is ordinary text, and
    each byte that is not part of a well-formed UTF-8 character is U+FFFD. With a
    tokenizer.json the ids are those of Hugging Face's library for Unigram models as T5,
    XLNet, ALBERT, mBART and XLM-R have them; its post_processor, truncation and padding
    do not apply, and what is not supported is refused by name. The contents of the
    file, not its path, are part of the fingerprint. Each thread keeps about 9 MB, which
    a memory budget counts.

    Args:
        pipeline: what the operator reads.
        model: a SentencePiece model of type unigram or bpe (spm.model), or Hugging
            Face's tokenizer.json of a Unigram model; path, required.
        field: the field with the text; it is dropped; field, default text.
        to: the field that becomes the ids; field, default tokens.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"model": model, "field": field, "to": to}
    defaults: dict[str, Any] = {"field": "text", "to": "tokens"}
    return pipeline._then("text.tokenize_unigram", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("text.tokenize_wordpiece")
def text_tokenize_wordpiece(
    pipeline: Pipeline,
    *,
    vocab: PathLike | None = None,
    lower: bool = True,
    accents: Literal["auto", "strip", "keep"] = "auto",
    clean: bool = True,
    chinese: bool = True,
    unknown: str | PathLike = "[UNK]",
    prefix: str | PathLike = "##",
    chars_max: int = 100,
    field: str = "text",
    to: str = "tokens",
    json: PathLike | None = None,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Text to token ids by BERT's WordPiece.

    Operator `text.tokenize_wordpiece`, kind map, version 1; pure.

    A byte string to int32 `[tokens]`, without [CLS] and [SEP]: tokens.add puts them.
    The ids are those of Hugging Face's BertNormalizer, BertPreTokenizer and WordPiece:
    text that looks like a special token is ordinary text, and Unicode's properties are
    those of version 8, as there. Bytes that are not UTF-8 are characters of no kind.
    `json` must have BertNormalizer or no normalizer, and BertPreTokenizer; its
    post_processor, truncation and padding do not apply. The words and ids of the
    vocabulary, not its path, are part of the fingerprint.

    Args:
        pipeline: what the operator reads.
        vocab: the vocabulary, BERT's vocab.txt: a token per line, whose id is the
            number of the line from 0; path, optional.
        lower: lower case first; bool, default true.
        accents: what becomes of accents; auto: strip them with `lower`, else keep them;
            enum, one of auto, strip, keep, default auto.
        clean: remove control characters; bool, default true.
        chinese: make each Chinese character a word; bool, default true.
        unknown: the token of words that the vocabulary cannot spell; string, default
            [UNK].
        prefix: marks tokens that continue a word; string, default ##.
        chars_max: longer words are unknown; int, 1 to 1000, in characters, default 100.
        field: the field with the text; it is dropped; field, default text.
        to: the field that becomes the ids; field, default tokens.
        json: instead of the vocabulary: Hugging Face's tokenizer.json of a WordPiece
            model, which says what the other parameters say; path, optional.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"vocab": vocab, "lower": lower, "accents": accents, "clean": clean, "chinese": chinese, "unknown": unknown, "prefix": prefix, "chars_max": chars_max, "field": field, "to": to, "json": json}
    defaults: dict[str, Any] = {"lower": True, "accents": "auto", "clean": True, "chinese": True, "unknown": "[UNK]", "prefix": "##", "chars_max": 100, "field": "text", "to": "tokens"}
    return pipeline._then("text.tokenize_wordpiece", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("tokens.add")
def tokens_add(
    pipeline: Pipeline,
    *,
    begin: int | Sequence[int] | None = None,
    end: int | Sequence[int] | None = None,
    field: str = "tokens",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Add ids before and after token ids.

    Operator `tokens.add`, kind map, version 1; pure, grows.

    int32 `[n]` to `[len(begin) + n + len(end)]`.

    Args:
        pipeline: what the operator reads.
        begin: ids that come first; list of ints, -2147483648 to 2147483647, optional.
        end: ids that come last; list of ints, -2147483648 to 2147483647, optional.
        field: the field with the ids; field, default tokens.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"begin": begin, "end": end, "field": field}
    defaults: dict[str, Any] = {"field": "tokens"}
    return pipeline._then("tokens.add", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("tokens.embed")
def tokens_embed(
    pipeline: Pipeline,
    table: PathLike,
    *,
    field: str = "tokens",
    to: str = "embeddings",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Token ids to the rows of a table.

    Operator `tokens.embed`, kind map, version 1; pure, grows.

    Ids `[...]`, int32 or int64, to `[..., columns]` in the table's dtype. An id that is
    no row is an error. The table is a matrix in a .npy file (C order), which is mapped:
    threads and processes share it, and it must not be changed or cut while in use. Its
    contents, not its path, are part of the fingerprint, so freezing the graph reads all
    of it once.

    Args:
        pipeline: what the operator reads.
        table: a .npy file with a matrix: row i is the vector of id i; path, required.
        field: the field with the ids; field, default tokens.
        to: the field that becomes their vectors; field, default embeddings.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"table": table, "field": field, "to": to}
    defaults: dict[str, Any] = {"field": "tokens", "to": "embeddings"}
    return pipeline._then("tokens.embed", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("tokens.mask")
def tokens_mask(
    pipeline: Pipeline,
    mask_id: int,
    *,
    vocab_size: int = 0,
    special: int | Sequence[int] | None = None,
    probability: float = 0.15,
    masked: float = 0.8,
    random: float = 0.1,
    whole_words: bool = False,
    vocab: PathLike | None = None,
    prefix: str | PathLike = "##",
    ignore: int = -100,
    field: str = "tokens",
    labels: str = "labels",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Mask token ids for masked language models.

    Operator `tokens.mask`, kind map, version 1; random, grows.

    int32 `[n]` to int32 `[n]` and labels, int32 `[n]`. Each token that is not special
    is chosen with `probability`; of the chosen ones `masked` become mask_id, `random`
    any id below vocab_size, and the rest stay. With `whole_words` a word is chosen as a
    whole: a token and those after it that begin with `prefix`; what becomes of each is
    still drawn by itself. The draws are the record's own and differ between epochs.

    Args:
        pipeline: what the operator reads.
        mask_id: the id that stands for a masked token; int, 0 to 2147483647, required.
        vocab_size: random ids are below this; required unless `random` is 0; int, 0 to
            2147483647, default 0.
        special: ids that are never chosen, such as those that begin, end and fill up a
            text; list of ints, 0 to 2147483647, optional.
        probability: of a token, or with whole_words of a word, to be chosen; float, 0
            to 1, default 0.15.
        masked: part of the chosen tokens that become mask_id; float, 0 to 1, default
            0.8.
        random: part of them that become a random id; the rest stay as they are; float,
            0 to 1, default 0.1.
        whole_words: choose all tokens of a word or none; bool, default false.
        vocab: with whole_words: the vocabulary, as text.tokenize_wordpiece reads it;
            path, optional.
        prefix: with whole_words: marks tokens that continue a word; string, default ##.
        ignore: the label of tokens that were not chosen; int, -2147483648 to
            2147483647, default -100.
        field: the field with the ids; field, default tokens.
        labels: the field that becomes the labels: the ids of chosen tokens before they
            were masked, and `ignore`; field, default labels.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"mask_id": mask_id, "vocab_size": vocab_size, "special": special, "probability": probability, "masked": masked, "random": random, "whole_words": whole_words, "vocab": vocab, "prefix": prefix, "ignore": ignore, "field": field, "labels": labels}
    defaults: dict[str, Any] = {"vocab_size": 0, "probability": 0.15, "masked": 0.8, "random": 0.1, "whole_words": False, "prefix": "##", "ignore": -100, "field": "tokens", "labels": "labels"}
    return pipeline._then("tokens.mask", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("tokens.pack")
def tokens_pack(
    pipeline: Pipeline,
    length: int,
    *,
    fit: Literal["best", "first"] = "best",
    bins: int = 0,
    overflow: Literal["split", "refuse"] = "split",
    value: int = 0,
    field: str = "tokens",
    segment_ids: str = "segment_ids",
    positions: str = "positions",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Pack lists into rows of one length.

    Operator `tokens.pack`, kind batch, version 1; pure, grows.

    Lists of integers, `[n]`, to rows `[length]`, with `segment_ids` and `positions`,
    int32 `[length]`: a list is numbered from 1 in its row, an item from 0 in its list.
    A list goes into one of at most `bins` open rows; if it fits into none, the fullest
    row is output, filled up with `value`. A row that is full is output at once, all
    others at the end of the epoch. With `overflow: split` a list longer than a row is
    cut into full rows and a rest, each a list of its own. Empty lists leave no trace.
    More `bins` leave less filling and make longer states.

    Args:
        pipeline: what the operator reads.
        length: items in a row; int, 1 to 131072, in items, required.
        fit: the open row that a list goes into: the one that it fills most, or the one
            opened first; enum, one of best, first, default best.
        bins: rows open at a time; 0: 64, or as many as a saved state may hold; int, 0
            to 4096, in rows, default 0.
        overflow: what becomes of lists that are longer than a row; enum, one of split,
            refuse, default split.
        value: fills what is left of a row; int, -2147483648 to 2147483647, default 0.
        field: the field with the lists; all others are dropped; field, default tokens.
        segment_ids: the field that becomes the number of each item's list in the row,
            from 1; 0 for filling; field, default segment_ids.
        positions: the field that becomes each item's position in its list, from 0;
            field, default positions.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"length": length, "fit": fit, "bins": bins, "overflow": overflow, "value": value, "field": field, "segment_ids": segment_ids, "positions": positions}
    defaults: dict[str, Any] = {"fit": "best", "bins": 0, "overflow": "split", "value": 0, "field": "tokens", "segment_ids": "segment_ids", "positions": "positions"}
    return pipeline._then("tokens.pack", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("tokens.pad")
def tokens_pad(
    pipeline: Pipeline,
    *,
    length: int = 0,
    multiple: int = 1,
    value: float = 0.0,
    side: Literal["end", "start"] = "end",
    mask: bool = False,
    lengths: bool = False,
    field: str = "tokens",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Lengthen lists to a length or a multiple.

    Operator `tokens.pad`, kind map, version 1; pure, grows.

    A list of any dtype, `[n]`, to `[length]`, or to `[m]`, m the next multiple of
    `multiple`. To pad the lists of a batch to the longest of them, use batch.pad.

    Args:
        pipeline: what the operator reads.
        length: the length that all lists get; longer ones are refused; int, 0 to
            2147483647, in items, default 0.
        multiple: or round lengths up to a multiple of this; int, 1 to 1048576, in
            items, default 1.
        value: value of the padding; float, -1e+15 to 1e+15, default 0.
        side: where the padding goes; enum, one of end, start, default end.
        mask: add `x_mask` for field `x`: true for items, false for padding; bool,
            default false.
        lengths: add `x_length` for field `x`: the length before padding; bool, default
            false.
        field: the field with the list; field, default tokens.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"length": length, "multiple": multiple, "value": value, "side": side, "mask": mask, "lengths": lengths, "field": field}
    defaults: dict[str, Any] = {"length": 0, "multiple": 1, "value": 0.0, "side": "end", "mask": False, "lengths": False, "field": "tokens"}
    return pipeline._then("tokens.pad", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("tokens.truncate")
def tokens_truncate(
    pipeline: Pipeline,
    length: int,
    *,
    keep: Literal["start", "end"] = "start",
    field: str = "tokens",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Cut lists to a maximal length.

    Operator `tokens.truncate`, kind map, version 1; pure, shrinks.

    A list of any dtype, `[n]`, to `[min(n, length)]`.

    Args:
        pipeline: what the operator reads.
        length: items that remain of a longer list; int, 0 to 2147483647, required.
        keep: which end of the list remains; enum, one of start, end, default start.
        field: the field with the list; field, default tokens.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"length": length, "keep": keep, "field": field}
    defaults: dict[str, Any] = {"keep": "start", "field": "tokens"}
    return pipeline._then("tokens.truncate", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("tokens.vocab_lookup")
def tokens_vocab_lookup(
    pipeline: Pipeline,
    path: PathLike,
    *,
    unknown: str | PathLike | None = None,
    skip_unknown: bool = False,
    field: str = "words",
    to: str = "tokens",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Words to their ids in a vocabulary.

    Operator `tokens.vocab_lookup`, kind map, version 1; pure.

    A list of byte strings to int32 `[n]`, or one byte string to an int32 scalar. Words
    are compared byte by byte. In a file of lines, line ends are LF or CRLF, a byte
    order mark at the start is skipped, and a word may occur once. The words and ids,
    not the path, are part of the fingerprint.

    Args:
        pipeline: what the operator reads.
        path: the vocabulary: a word per line, whose id is the number of the line from
            0; or, if it ends in .json, an object of words and ids; path, required.
        unknown: the word of the vocabulary whose id all unknown words get; left out, an
            unknown word is an error; string, optional.
        skip_unknown: leave unknown words out of lists; bool, default false.
        field: the field with the words, or with one word; it is dropped; field, default
            words.
        to: the field that becomes the ids; field, default tokens.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"path": path, "unknown": unknown, "skip_unknown": skip_unknown, "field": field, "to": to}
    defaults: dict[str, Any] = {"skip_unknown": False, "field": "words", "to": "tokens"}
    return pipeline._then("tokens.vocab_lookup", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("video.clips")
def video_clips(
    pipeline: Pipeline,
    *,
    field: str = "data",
    to: str = "start",
    frames: int = 16,
    stride: int = 1,
    too_short: Literal["error", "last"] = "error",
    step: int = 0,
    pixels_max: int = 67108864,
    frames_max: int = 1000000,
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """A record for each clip of a video.

    Operator `video.clips`, kind expand, version 1; pure, grows.

    The record's fields, with the number of the clip's first frame: `video.clips:
    {frames: 16}` and then `video.decode: {frames: 16, start_from: start}` decode all of
    a video, 16 frames at a time. Nothing is decoded here, and the bytes are not copied.
    Frames after the last whole clip are left out. Clip i is child i of the record that
    held the video, and its identity says so.

    Args:
        pipeline: what the operator reads.
        field: the field with the encoded bytes, which all clips keep; field, default
            data.
        to: the field that becomes the number of the clip's first frame, an int64:
            `start_from` of video.decode; field, default start.
        frames: frames of a clip; int, 1 to 1048576, in frames, default 16.
        stride: from each frame of a clip to its next, in frames of the video; int, 1 to
            1048576, in frames, default 1.
        too_short: what becomes of a video that is shorter than a clip: error, a bad
            record; last, its last frame again and again; enum, one of error, last,
            default error.
        step: from the start of a clip to that of the next; 0: `frames` times `stride`,
            so that no frame is in two clips; int, 0 to 1099511627776, in frames,
            default 0.
        pixels_max: refuse videos whose frames have more; int, 1 to 1073741824, in
            pixels, default 67108864.
        frames_max: refuse videos that have more; int, 1 to 4294967296, in frames,
            default 1000000.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"field": field, "to": to, "frames": frames, "stride": stride, "too_short": too_short, "step": step, "pixels_max": pixels_max, "frames_max": frames_max}
    defaults: dict[str, Any] = {"field": "data", "to": "start", "frames": 16, "stride": 1, "too_short": "error", "step": 0, "pixels_max": 67108864, "frames_max": 1000000}
    return pipeline._then("video.clips", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


@checked_op("video.decode")
def video_decode(
    pipeline: Pipeline,
    *,
    field: str = "data",
    to: str = "video",
    frames: int = 16,
    stride: int = 1,
    too_short: Literal["error", "last"] = "error",
    at: Literal["random", "start", "center", "end"] = "random",
    start: int = 0,
    start_from: str | None = None,
    size: int | Sequence[int] | None = None,
    start_to: str | None = None,
    fps_to: str | None = None,
    duration_to: str | None = None,
    pixels_max: int = 67108864,
    frames_max: int = 1000000,
    bytes_max: int | str = "1GiB",
    name: str | None = None,
    keep_position: bool = False,
    depends_on: Sequence[str] = (),
) -> Pipeline:
    """Decode a clip of a video file to frames.

    Operator `video.decode`, kind map, version 1; random, grows.

    Outputs uint8 `[frames, height, width, 3]`, RGB. The format is found by content:
    MP4, MOV, WebM, Matroska, AVI, MPEG, FLV, Ogg, ASF, NUT and IVF with H.264, HEVC,
    VP8, VP9, AV1, MPEG and older codecs, by the machine's FFmpeg libraries, whose
    version frames of lossy codecs may depend on. Frame i is the one with the i-th time
    of the file, so rates may vary. Decoding starts at the last key frame before the
    clip and ends with it, in one thread: threads of the plan decode different records.
    Colours are converted by the matrix and range that the file names, else by BT.601;
    pixels are taken as square, and a rotation that the file asks for is not applied.
    `size` scales frames while they are converted, so that clips of different videos can
    be batched. record.flat makes each frame a record. For all clips of a video, put
    video.clips before and give its field as `start_from`. Damage that the decoder
    notices, before or within the clip, makes a bad record.

    Args:
        pipeline: what the operator reads.
        field: the field with the encoded bytes; it is dropped; field, default data.
        to: the field that becomes the frames; field, default video.
        frames: frames of a clip; int, 1 to 1048576, in frames, default 16.
        stride: from each frame of a clip to its next, in frames of the video; int, 1 to
            1048576, in frames, default 1.
        too_short: what becomes of a video that is shorter than a clip: error, a bad
            record; last, its last frame again and again; enum, one of error, last,
            default error.
        at: which clip of the video; enum, one of random, start, center, end, default
            random.
        start: the first frame that a clip may have; int, 0 to 1000000000000, in frames,
            default 0.
        start_from: the field with the clip's first frame, an int64 as video.clips gives
            it; then `at` and `start` do not count; field, optional.
        size: [height, width] that frames are scaled to, bicubic, or one number for
            both; absent: as they are; list of ints, 1 to 2 items, each 1 to 65535, in
            pixels, optional.
        start_to: the field that becomes the number of the clip's first frame; field,
            optional.
        fps_to: the field that becomes the frames per second of the video; field,
            optional.
        duration_to: the field that becomes the duration of the video in seconds; field,
            optional.
        pixels_max: refuse videos whose frames have more; int, 1 to 1073741824, in
            pixels, default 67108864.
        frames_max: refuse videos that have more; int, 1 to 4294967296, in frames,
            default 1000000.
        bytes_max: refuse clips that would take more memory; bytes, 1 to 1099511627776,
            default 1GiB.
        name: what the node is called in messages and files; the operator's name by default.
        keep_position: the optimiser must not move this node.
        depends_on: names of nodes before this one that must stay before it.

    Raises:
        HeadraceError: a parameter is wrong, with the nearest valid one.
    """
    params: dict[str, Any] = {"field": field, "to": to, "frames": frames, "stride": stride, "too_short": too_short, "at": at, "start": start, "start_from": start_from, "size": size, "start_to": start_to, "fps_to": fps_to, "duration_to": duration_to, "pixels_max": pixels_max, "frames_max": frames_max, "bytes_max": bytes_max}
    defaults: dict[str, Any] = {"field": "data", "to": "video", "frames": 16, "stride": 1, "too_short": "error", "at": "random", "start": 0, "pixels_max": 67108864, "frames_max": 1000000, "bytes_max": "1GiB"}
    return pipeline._then("video.decode", params, defaults, name=name, keep_position=keep_position, depends_on=depends_on)


class Methods:
    """The operators under their short names; Pipeline inherits them."""

    crop_audio = audio_crop
    db = audio_db
    decode_audio = audio_decode
    freq_mask = audio_freq_mask
    gain = audio_gain
    log_scale = audio_log
    mel = audio_mel
    mel_scale = audio_mel_scale
    mfcc = audio_mfcc
    mono = audio_mono
    add_noise = audio_noise
    pad_audio = audio_pad
    pitch = audio_pitch
    resample = audio_resample
    reverb = audio_reverb
    spectrogram = audio_spectrogram
    speed = audio_speed
    time_mask = audio_time_mask
    time_stretch = audio_time_stretch
    trim_audio = audio_trim
    bucketed_batch = batch_bucket
    cutmix = batch_cutmix
    mixup = batch_mixup
    padded_batch = batch_pad
    batch = batch_stack
    unbatch = batch_unbatch
    anchors = boxes_anchors
    convert_boxes = boxes_convert
    sanitize = boxes_sanitize
    cache = flow_cache
    window = flow_window
    affine = image_affine
    aug_mix = image_aug_mix
    auto_augment = image_auto_augment
    autocontrast = image_autocontrast
    center_crop = image_center_crop
    clip = image_clip
    color_jitter = image_color_jitter
    cover_crop = image_cover_crop
    decode = image_decode
    elastic = image_elastic
    encode = image_encode
    equalize = image_equalize
    erase = image_erase
    five_crop = image_five_crop
    fixed_size_crop = image_fixed_size_crop
    flip = image_flip
    gaussian_blur = image_gaussian_blur
    gaussian_noise = image_gaussian_noise
    grayscale = image_grayscale
    invert = image_invert
    iou_crop = image_iou_crop
    jpeg = image_jpeg
    normalize = image_normalize
    pad = image_pad
    permute_channels = image_permute_channels
    perspective = image_perspective
    photometric_distort = image_photometric_distort
    posterize = image_posterize
    rand_augment = image_rand_augment
    random_area_crop = image_random_area_crop
    random_crop = image_random_crop
    random_resized_crop = image_random_resized_crop
    random_shortest_size = image_random_shortest_size
    resize = image_resize
    resize_shortest = image_resize_shortest
    rotate = image_rotate
    scale_jitter = image_scale_jitter
    sharpness = image_sharpness
    solarize = image_solarize
    standardize = image_standardize
    ten_crop = image_ten_crop
    trivial_augment_wide = image_trivial_augment_wide
    zoom_out = image_zoom_out
    repeat = order_repeat
    sample = order_sample
    shard = order_shard
    shuffle = order_shuffle
    skip = order_skip
    take = order_take
    classes = record_classes
    drop = record_drop
    where = record_filter
    flat = record_flat
    kind = record_kind
    parse_example = record_parse_example
    rename = record_rename
    select = record_select
    cast = tensor_cast
    layout = tensor_layout
    one_hot = tensor_one_hot
    detokenize = text_detokenize
    lower_text = text_lower
    normalize_text = text_normalize
    split_text = text_split
    strip_text = text_strip
    tokenize_bpe = text_tokenize_bpe
    tokenize_unigram = text_tokenize_unigram
    tokenize_wordpiece = text_tokenize_wordpiece
    add_tokens = tokens_add
    embed_tokens = tokens_embed
    mask_tokens = tokens_mask
    pack_tokens = tokens_pack
    pad_tokens = tokens_pad
    truncate_tokens = tokens_truncate
    vocab_lookup = tokens_vocab_lookup
    video_clips = video_clips
    decode_video = video_decode
