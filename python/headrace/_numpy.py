"""NumPy, imported when it is first used.

It would be two thirds of the time of `import headrace`. So `loader_run.Run` imports it while the
engine makes the first batch, or it is not imported at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
else:

    class _Numpy:
        def __getattr__(self, name: str) -> Any:
            import numpy

            made = getattr(numpy, name)
            setattr(self, name, made)
            return made

    np = _Numpy()


def load() -> None:
    """Import it, if it is not there."""
    import numpy  # noqa: F401


__all__ = ["load", "np"]
