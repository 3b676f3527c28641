"""Imports torchaudio also where its wheel is for CUDA and torch's for CPUs: its transforms are Python."""
import sys
import types

try:
    import torchaudio
except OSError:
    extension = types.ModuleType("torchaudio._extension")
    extension.__path__ = []
    extension._IS_TORCHAUDIO_EXT_AVAILABLE = extension._IS_RIR_AVAILABLE = extension._IS_ALIGN_AVAILABLE = False
    extension.fail_if_no_align = lambda function: function
    sys.modules[extension.__name__] = extension
    for name in [name for name in sys.modules if name.startswith("torchaudio.") and name != extension.__name__]:
        del sys.modules[name]
    import torchaudio

__all__ = ["torchaudio"]
