"""The operators as functions of a pipeline: `hr.ops.image_resize(pipe, 224)`.

`help(hr.ops.image_resize)` says what `headrace ops image.resize` says.
"""

from . import _ops
from ._ops import *

__all__ = _ops.__all__
