"""The contenders: what is run, with which settings, and notes on the result.

Each peer gets a short sweep over its settings (`knobs`) for every number of cores, and the best
one is then compared. The setting that usually wins comes first; a quick run uses only that one.
`form` selects one of the peer's ways to write the pipeline.
"""
from dataclasses import dataclass, field

WORKS = {
    "vision": "JPEG file -> RandomResizedCrop(224) -> flip -> normalise -> float32 CHW, batch 256",
    "simclr": "SimCLR as cedar writes it: crop 244, flip, jitter, grayscale, blur 11, normalise, batch 256",
    "noop": "range -> four identity ops -> batch 256",
}


@dataclass
class Contender:
    key: str
    work: str
    label: str
    module: str  # peer.py's module; "headrace" and "full_decode" are programs
    form: str = "-"
    knobs: dict = field(default_factory=dict)  # cores -> settings to try
    note: str = ""

    @property
    def ours(self):
        return self.module == "headrace"


LOADER = {1: ["1", "0", "2"], 2: ["2", "0", "1", "3"]}
TFDATA = {1: ["-1", "1", "2"], 2: ["4", "2", "3", "-1"]}
GRAIN = {1: ["records:1", "records:2", "batches:1"],
         2: ["records:3", "records:2", "records:4", "batches:2", "batches:3"]}
DALI = {1: ["1", "2"], 2: ["2", "3"]}
OURS = {1: ["1"], 2: ["2"]}

CONTENDERS = [
    Contender("full_decode", "vision", "libjpeg-turbo, full decode to RGB only",
              "full_decode", knobs=OURS, note="baseline; files in memory"),
    Contender("ours", "vision", "Headrace", "headrace", "vision_rrc", OURS, "antialias"),
    Contender("ours_exact", "vision", "Headrace, mode exact", "headrace", "vision_rrc:exact",
              OURS, "antialias; never decodes at a reduced scale"),
    Contender("grain", "vision", "Grain threads + OpenCV", "grain_peer", knobs=GRAIN,
              note="no antialias"),
    Contender("tfdata", "vision", "tf.data decode_and_crop_jpeg", "tf_peer", "fused", TFDATA,
              "no antialias"),
    Contender("dali", "vision", "DALI CPU, image_random_crop + resize", "dali_peer",
              knobs=DALI, note="antialias"),
    Contender("loader_io", "vision", "DataLoader + torchvision.io + v2", "torch_peer", "io",
              LOADER, "antialias"),
    Contender("loader_pil", "vision", "DataLoader + PIL + torchvision v2", "torch_peer",
              "pil", LOADER, "antialias"),
    Contender("ours", "simclr", "Headrace", "headrace", "simclr", OURS, "written order"),
    Contender("ours_unfused", "simclr", "Headrace, nothing fused", "headrace",
              "simclr:unfused", OURS, "written order, nothing composed"),
    Contender("dali_u8", "simclr", "DALI CPU, u8 until normalise", "dali_peer", "u8", DALI,
              "fixed order of the jitter"),
    Contender("tfdata", "simclr", "tf.data as cedar writes it", "tf_peer", "fused", TFDATA,
              "no antialias; blur of fixed strength"),
    Contender("dali_float", "simclr", "DALI CPU, float", "dali_peer", "float", DALI,
              "fixed order of the jitter"),
    Contender("loader_u8", "simclr", "DataLoader + torchvision, u8 until normalise",
              "torch_peer", "u8", LOADER),
    Contender("loader_float", "simclr", "DataLoader + torchvision as cedar writes it",
              "torch_peer", "float", LOADER, "in 0..1"),
    Contender("ours", "noop", "Headrace", "headrace", "noop", OURS),
    Contender("loader", "noop", "DataLoader", "torch_peer",
              knobs={1: ["0"], 2: ["0", "2"]}),
    Contender("tfdata", "noop", "tf.data", "tf_peer", knobs={1: ["-1"], 2: ["-1"]},
              note="it removes the identities"),
    Contender("grain", "noop", "Grain", "grain_peer",
              knobs={1: ["records:0", "records:1"], 2: ["records:0", "records:2"]}),
]

# The project's claims for the largest number of cores: (work, contender, minimum ratio of our rate to
# its rate); None: shown without a claim.
TARGETS = [
    ("vision", "full_decode", None),
    ("vision", "grain", 2.8),
    ("vision", "tfdata", 2.8),
    ("vision", "dali", 3),
    ("vision", "loader_pil", 5),
    ("simclr", "dali_u8", 5),
    ("simclr", "loader_float", 10),
]
