"""NumPy, imported when it is first used.

It is two thirds of what `import headrace` would take. So it is imported while the engine
makes the first batch (`loader.Run` asks for it then), and not at all where nothing needs it.
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
